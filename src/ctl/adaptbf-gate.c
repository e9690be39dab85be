/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/adaptbf-gate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_RULE    (-1.0)
#define WEIGHT_MIN (1.0 / 1024) /* the gate's */
#define WEIGHT_MAX 1048576.0

struct leaf {
	weir_node node;
	uint64_t id;
	uint32_t weight;
	uint32_t own, n_own; /* in `specs`: its own, and room for one more behind them */
	double share;        /* its weight in the gate by the policy */
	double rate, scale;  /* of its rule; NO_RULE and 1 */
};

struct adaptbf_gate {
	struct weir_gate *gate;
	enum adaptbf_gate_mode mode;
	double depth;
	struct leaf *leaves; /* by id */
	size_t n;
	struct weir_bucket_spec *specs;
	struct weir_knob *knobs;
	uint64_t bytes; /* dispatched, over the leaves, as of the last look */
};

int adaptbf_gate_new(struct weir_gate *gate, enum adaptbf_gate_mode mode, double depth,
	struct adaptbf_gate **ret)
{
	struct adaptbf_gate *d;

	if (depth != 0 && !(depth >= 1))
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->gate = gate;
	d->mode = mode;
	d->depth = depth > 0 ? depth : ADAPTBF_GATE_DEPTH;
	*ret = d;
	return 0;
}

void adaptbf_gate_free(struct adaptbf_gate *d)
{
	if (!d)
		return;
	free(d->leaves);
	free(d->specs);
	free(d->knobs);
	free(d);
}

static int by_id(const void *x, const void *y)
{
	const struct leaf *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

static struct leaf *find(const struct adaptbf_gate *d, uint64_t id)
{
	struct leaf key = {.id = id};

	return d->n ? bsearch(&key, d->leaves, d->n, sizeof(key), by_id) : NULL;
}

int adaptbf_gate_leaves(struct adaptbf_gate *d, const struct adaptbf_gate_leaf *leaves, size_t n)
{
	struct leaf *next = calloc(n + 1, sizeof(*next));
	struct weir_knob *knobs = calloc(2 * n + 1, sizeof(*knobs));
	struct weir_bucket_spec *specs;
	size_t room = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		room += leaves[i].n_own + 1;
	specs = calloc(room + 1, sizeof(*specs));
	if (!next || !knobs || !specs) {
		free(next);
		free(knobs);
		free(specs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct adaptbf_gate_leaf *l = &leaves[i];
		const struct leaf *old = find(d, l->id);

		next[i] = (struct leaf){
			l->node, l->id, l->weight, (uint32_t)at, l->n_own, l->share, NO_RULE, 1};
		if (old && old->node == l->node) {
			next[i].rate = old->rate;
			next[i].scale = old->scale;
		}
		if (l->n_own)
			memcpy(&specs[at], l->own, l->n_own * sizeof(*specs));
		at += l->n_own + 1;
	}
	qsort(next, n, sizeof(*next), by_id);
	free(d->leaves);
	free(d->specs);
	free(d->knobs);
	d->leaves = next;
	d->specs = specs;
	d->knobs = knobs;
	d->n = n;
	return 0;
}

/* ---- as a driver */

/* What its own limits let it have, in requests a second; by bytes, as large as its requests were. */
static double most(
	const struct adaptbf_gate *d, const struct leaf *l, const struct weir_gate_stats *s)
{
	double least = 0;

	for (uint32_t i = 0; i < l->n_own; i++) {
		const struct weir_bucket_spec *b = &d->specs[l->own + i];
		double rate = b->rate;

		if (b->kind != WEIR_HOLD || (b->ops && b->ops != WEIR_OPS_ALL))
			continue;
		if (b->unit == WEIR_UNIT_BYTES && s->bytes)
			rate *= (double)s->dispatched / (double)s->bytes;
		else if (b->unit != WEIR_UNIT_REQUESTS)
			continue;
		if (least <= 0 || rate < least)
			least = rate;
	}
	return least;
}

static int64_t gate_jobs(void *driver, weir_time now, struct adaptbf_job *list, size_t max)
{
	struct adaptbf_gate *d = driver;

	if (d->n > max)
		return (int64_t)d->n;
	d->bytes = 0;
	for (size_t i = 0; i < d->n; i++) {
		struct weir_gate_stats s;
		int r = weir_gate_stats(d->gate, now, d->leaves[i].node, &s);

		if (r)
			return r;
		list[i] = (struct adaptbf_job){d->leaves[i].id, d->leaves[i].weight, s.arrivals,
			s.dispatched, s.queued, most(d, &d->leaves[i], &s)};
		d->bytes += s.bytes;
	}
	return (int64_t)d->n;
}

static int gate_totals(void *driver, weir_time now, struct capacity_totals *ret)
{
	struct adaptbf_gate *d = driver;
	struct weir_gate_totals t;

	weir_gate_totals(d->gate, now, &t);
	*ret = (struct capacity_totals){t.served, d->bytes, t.full};
	return 0;
}

static struct weir_bucket_spec bucket(const struct adaptbf_gate *d, double rate)
{
	/* As gate.h says of R-buckets: what comes in while a request waits for a slot, or it is lost. */
	double claim = 2 + 0.02 * rate;

	return (struct weir_bucket_spec){
		.kind = d->mode == ADAPTBF_GATE_HOLD ? WEIR_HOLD : WEIR_RTOKENS,
		.unit = WEIR_UNIT_REQUESTS,
		.rate = rate,
		.size = d->mode == ADAPTBF_GATE_HOLD ? d->depth : claim,
	};
}

/* The knobs that make the leaf's rule this one, behind the m there are; how many there are then. */
static size_t turn(
	struct adaptbf_gate *d, const struct leaf *l, double rate, double scale, size_t m)
{
	struct weir_bucket_spec *own = &d->specs[l->own];
	bool rule = rate != NO_RULE;

	if (l->rate != rate) {
		/* Last, so that the others keep their places and so their levels. */
		if (rule)
			own[l->n_own] = bucket(d, rate);
		d->knobs[m++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = own,
			.n_buckets = l->n_own + rule};
	}
	if (l->scale != scale)
		d->knobs[m++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_WEIGHT,
			.value = fmin(fmax(l->share * scale, WEIGHT_MIN), WEIGHT_MAX)};
	return m;
}

static double scale_of(const struct adaptbf_gate *d, const struct adaptbf_rule *r)
{
	if (d->mode != ADAPTBF_GATE_HOLD || !r->active || r->initial == 0 || r->tokens == 0)
		return 1;
	return (double)r->tokens / (double)r->initial;
}

static double rate_of(const struct adaptbf_rule *r)
{
	return r->active ? r->rate : NO_RULE;
}

static int gate_apply(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n)
{
	struct adaptbf_gate *d = driver;
	size_t m = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct leaf *l = find(d, rules[i].id);

		if (l)
			m = turn(d, l, rate_of(&rules[i]), scale_of(d, &rules[i]), m);
	}
	if (m == 0)
		return 0;
	r = weir_gate_set(d->gate, now, d->knobs, m, NULL);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct leaf *l = find(d, rules[i].id);

		if (l) {
			l->rate = rate_of(&rules[i]);
			l->scale = scale_of(d, &rules[i]);
		}
	}
	return r;
}

int adaptbf_gate_release(struct adaptbf_gate *d, weir_time now)
{
	size_t m = 0;
	int r;

	for (size_t i = 0; i < d->n; i++)
		m = turn(d, &d->leaves[i], NO_RULE, 1, m);
	r = m ? weir_gate_set(d->gate, now, d->knobs, m, NULL) : 0;
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		d->leaves[i].rate = NO_RULE;
		d->leaves[i].scale = 1;
	}
	return r;
}

const struct adaptbf_driver_ops adaptbf_gate_ops = {
	.name = "gate",
	.jobs = gate_jobs,
	.totals = gate_totals,
	.apply = gate_apply,
};
