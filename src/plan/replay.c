/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/replay-impl.h"
#include "base/rng.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REPEATS_MOST  64  /* of a trace that is much shorter than the longest */
#define REQUESTS_MOST 4e6 /* of a trace that is repeated */

struct outcome { /* of an alignment and a tenant */
	double at, next, max;
	uint64_t requests;
};

struct replay {
	const struct replay_input *in;
	struct replay_course *course;
	struct outcome *outcome; /* by alignment and tenant */
	weir_time horizon;
	int *rc; /* by alignment */
};

/* ---- the course of a trace */

/* Return the least time between the end of a trace and its begin with which both together fit a bucket. */
static double seam(const struct trace *t, const double *work, const struct meister_pair *p)
{
	double lack = 0, sum = 0, most = 0;

	for (size_t i = 0; i < t->n; i++) {
		double gap = i ? (double)(t->records[i].at - t->records[i - 1].at) * 1e-9 : 0;

		lack = fmax(0, lack - gap * p->rate) + work[i];
		sum += work[i];
		most = fmax(most, sum - p->rate * (double)t->records[i].at * 1e-9);
	}
	return fmax(0, (lack + most - p->size) / p->rate);
}

static weir_time own_period(const struct replay_tenant *t)
{
	double gap = 0;

	for (uint32_t k = 0; k < t->n_hops; k++)
		for (unsigned i = 0; i < t->hop[k].n; i++)
			gap = fmax(gap, seam(t->trace, t->work[k], &t->hop[k].pair[i]));
	return t->start + t->trace->records[t->trace->n - 1].at +
	       (weir_time)fmin(gap * 1e9, REPLAY_LONGEST) + 1000;
}

/* Set the periods: of each group the longest of its members', and so that no trace is repeated without end. */
static void set_periods(struct replay *r, weir_time *group)
{
	const struct replay_input *in = r->in;

	for (uint32_t i = 0; i < in->n_tenants; i++) {
		weir_time own = own_period(&in->tenants[i]), *of = &group[in->tenants[i].group];

		*of = own > *of ? own : *of;
		r->horizon = own > r->horizon ? own : r->horizon;
	}
	if (in->most && r->horizon > in->most)
		r->horizon = in->most;
	for (uint32_t i = 0; i < in->n_tenants; i++) {
		weir_time *of = &group[in->tenants[i].group];
		double least =
			(double)r->horizon *
			fmax(1.0 / REPEATS_MOST, (double)in->tenants[i].trace->n / REQUESTS_MOST);

		*of = (double)*of < least && least < (double)r->horizon ? (weir_time)least : *of;
	}
	for (uint32_t i = 0; i < in->n_tenants; i++)
		r->course[i].period = group[in->tenants[i].group];
}

/* ---- one alignment */

/* Return the n-th smallest; the order changes. */
static double select_nth(double *x, size_t n, size_t nth)
{
	size_t from = 0, to = n;

	while (to - from > 1) {
		double pivot = x[from + (to - from - 1) / 2]; /* not the last: j falls below it */
		size_t i = from, j = to - 1;

		for (;; i++,
			j--) { /* NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult): all n are set */
			while (x[i] < pivot)
				i++;
			while (x[j] > pivot)
				j--; /* NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult) */
			if (i >= j)
				break;
			double t = x[i];
			x[i] = x[j];
			x[j] = t;
		}
		/* x[from … j] ≤ pivot ≤ x[j + 1 … to − 1] */
		if (nth <= j)
			to = j + 1;
		else
			from = j + 1;
	}
	return x[nth];
}

static int measure(struct replay_sample *s, const struct replay_tenant *of, struct outcome *ret)
{
	struct outcome o = {NAN, NAN, 0, s->n};
	double *sorted = malloc((s->n + 1) * sizeof(*sorted));
	int rc = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		sorted[i] = s->latency[i];
		o.max = fmax(o.max, s->latency[i]);
	}
	if (rc == 0 && s->n) {
		size_t nth = (size_t)ceil((double)s->n * of->percentile / 100);

		o.at = select_nth(sorted, s->n, nth ? nth - 1 : 0);
		rc = replay_next(s, of, o.at, &o.next);
	}
	free(sorted);
	*ret = o;
	return rc;
}

static void draw_shifts(const struct replay *r, struct rng *rng, weir_time *group, weir_time *ret)
{
	const struct replay_input *in = r->in;

	for (uint32_t i = 0; i < in->n_tenants; i++)
		group[i] = -1;
	for (uint32_t i = 0; i < in->n_tenants; i++) {
		weir_time *of = &group[in->tenants[i].group];

		if (*of < 0)
			*of = in->aligned
				      ? 0
				      : (weir_time)rng_below(rng, (uint64_t)r->course[i].period);
		ret[i] = *of;
	}
}

static void run_alignment(void *arg, size_t number)
{
	struct replay *r = arg;
	const struct replay_input *in = r->in;
	size_t n = in->n_tenants;
	weir_time *shift = calloc(n, sizeof(*shift)), *group = calloc(n, sizeof(*group));
	struct replay_sample *samples = calloc(n, sizeof(*samples));
	char name[32];
	struct rng rng;
	int rc = shift && group && samples ? 0 : -ENOMEM;

	snprintf(name, sizeof(name), "alignment %zu", number);
	rng_init(&rng, in->seed, name);
	if (rc == 0) {
		draw_shifts(r, &rng, group, shift);
		rc = replay_align(in, r->course, shift, r->horizon, rng_u64(&rng), samples);
	}
	for (size_t i = 0; samples && i < n; i++) {
		if (rc == 0)
			rc = measure(&samples[i], &in->tenants[i], &r->outcome[number * n + i]);
		free(samples[i].latency);
		free(samples[i].born);
	}
	free(shift);
	free(group);
	free(samples);
	r->rc[number] = rc;
}

/* ---- all of them */

/* Student's t at 97.5 %, for n values. */
static double student(unsigned n)
{
	static const double t[] = {
		NAN, NAN, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};

	return n < sizeof(t) / sizeof(*t) ? t[n] : 1.96 + 2.7 / (n - 1);
}

/* Alignments without a request of the slo's kind do not count. */
static struct replay_result combine(const struct replay *r, uint32_t tenant)
{
	struct replay_result to = {.low = NAN, .high = NAN, .next = NAN};
	double squares = 0, half;
	unsigned n = 0;

	for (unsigned a = 0; a < r->in->alignments; a++) {
		const struct outcome *o = &r->outcome[(size_t)a * r->in->n_tenants + tenant];

		if (!o->requests)
			continue;
		n++;
		squares += (o->at - to.at) * (o->at - to.at) * (n - 1) / n; /* Welford */
		to.at += (o->at - to.at) / n;
		to.next = fmax(to.next, o->next);
		to.max = fmax(to.max, o->max);
		to.requests += o->requests;
	}
	to.at = n ? to.at : NAN;
	if (n > 1) {
		half = student(n) * sqrt(squares / (n - 1) / n);
		to.low = fmax(0, to.at - half);
		to.high = to.at + half;
	}
	return to;
}

int replay_run(const struct replay_input *in, struct replay_result *ret)
{
	struct replay r = {.in = in,
		.course = calloc(in->n_tenants + 1, sizeof(*r.course)),
		.outcome = calloc((size_t)in->alignments * in->n_tenants + 1, sizeof(*r.outcome)),
		.rc = calloc(in->alignments, sizeof(*r.rc))};
	weir_time *group = calloc(in->n_tenants + 1, sizeof(*group));
	int rc = r.course && r.outcome && r.rc && group ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < in->n_tenants; i++)
		if (in->tenants[i].start > REPLAY_LONGEST ||
			in->tenants[i].trace->records[in->tenants[i].trace->n - 1].at >
				REPLAY_LONGEST)
			rc = -ERANGE;
	if (rc == 0 && in->n_tenants) {
		set_periods(&r, group);
		if (in->run)
			in->run(in->pool, in->alignments, run_alignment, &r);
		for (unsigned a = 0; !in->run && a < in->alignments; a++)
			run_alignment(&r, a);
		for (unsigned a = 0; rc == 0 && a < in->alignments; a++)
			rc = r.rc[a];
	}
	for (uint32_t i = 0; rc == 0 && i < in->n_tenants; i++)
		ret[i] = combine(&r, i);
	free(r.course);
	free(r.outcome);
	free(r.rc);
	free(group);
	return rc;
}
