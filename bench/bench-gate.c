/* SPDX-License-Identifier: BSD-3-Clause */
/* weir bench gate: the cost of the gate per request, against one FIFO through the same driver
 * (gate-load.h). */
#include "bench/gate-load.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Measure a gate and its peer, with this many tenants each. */
static int measure_speed(struct bench *b, const char *name, uint32_t tenants, unsigned features,
	const char *peer, unsigned peer_features, const char *target)
{
	struct bench_samples gate = {.n = 0}, other = {.n = 0};
	uint64_t requests = b->quick ? 200000 : 2000000;
	struct gate_load *l, *p;
	int r = gate_load_new(tenants, features, 0, &l);

	if (r)
		return r;
	r = gate_load_new(tenants, peer_features, 0, &p);
	if (r) {
		gate_load_free(l);
		return r;
	}
	gate_load_warm(l);
	gate_load_warm(p);
	for (unsigned i = 0; i < b->runs; i++)
		gate_load_turns(l, p, requests, &gate, &other);
	bench_add_beside(b, name, "ns", &gate, peer, &other, target);
	gate_load_free(l);
	gate_load_free(p);
	return 0;
}

struct speed {
	const char *name;
	uint32_t tenants;
	unsigned features, peer;
	const char *target;
};

static const struct speed speeds[] = {
	{"10k tenants: weight, min, max; max rarely binds", 10000, GATE_LOAD_LIMITS,
		GATE_LOAD_FLOOR, "<= 4x"},
	{"10k tenants: the same, two requests each", 10000, GATE_LOAD_LIMITS | GATE_LOAD_TWO_EACH,
		GATE_LOAD_FLOOR | GATE_LOAD_TWO_EACH, NULL},
	{"10k tenants: the same, max binds nearly every time", 10000,
		GATE_LOAD_LIMITS | GATE_LOAD_BINDING, GATE_LOAD_FLOOR, NULL},
	{"10k tenants: batches of one", 10000, GATE_LOAD_LIMITS | GATE_LOAD_SINGLE,
		GATE_LOAD_FLOOR | GATE_LOAD_SINGLE, "<= 5x"},
	{"10k tenants: done 1,024 later, caches dirtied", 10000, GATE_LOAD_LIMITS | GATE_LOAD_LATE,
		GATE_LOAD_FLOOR | GATE_LOAD_LATE, "<= 131 ns"},
	{"10k tenants: the same, batches of one", 10000,
		GATE_LOAD_LIMITS | GATE_LOAD_LATE | GATE_LOAD_SINGLE,
		GATE_LOAD_FLOOR | GATE_LOAD_LATE | GATE_LOAD_SINGLE, "<= 238 ns"},
	{"10k tenants: one request each", 10000, GATE_LOAD_LIMITS | GATE_LOAD_ONE_EACH,
		GATE_LOAD_FLOOR | GATE_LOAD_ONE_EACH, "<= 74 ns"},
	{"10k tenants: one request each, batches of one", 10000,
		GATE_LOAD_LIMITS | GATE_LOAD_ONE_EACH | GATE_LOAD_SINGLE,
		GATE_LOAD_FLOOR | GATE_LOAD_ONE_EACH | GATE_LOAD_SINGLE, "<= 184 ns"},
	{"10k tenants: Zipf, max binds", 10000,
		GATE_LOAD_LIMITS | GATE_LOAD_BINDING | GATE_LOAD_ZIPF,
		GATE_LOAD_FLOOR | GATE_LOAD_ZIPF, "<= 100 ns"},
	{"10k tenants: Zipf, max binds, batches of one", 10000,
		GATE_LOAD_LIMITS | GATE_LOAD_BINDING | GATE_LOAD_ZIPF | GATE_LOAD_SINGLE,
		GATE_LOAD_FLOOR | GATE_LOAD_ZIPF | GATE_LOAD_SINGLE, "<= 100 ns"},
	{"100k tenants: weight, min, max; max rarely binds", 100000, GATE_LOAD_LIMITS,
		GATE_LOAD_FLOOR, "<= 150 ns"},
	{"100k tenants: 4 profile buckets and priorities besides", 100000,
		GATE_LOAD_LIMITS | GATE_LOAD_PROFILES, GATE_LOAD_LIMITS, "<= 2x"},
	{"100k tenants: the same, profiles in device time", 100000,
		GATE_LOAD_LIMITS | GATE_LOAD_PROFILES | GATE_LOAD_TIME,
		GATE_LOAD_LIMITS | GATE_LOAD_PROFILES, "<= 1.2x"},
	{"100k tenants: profiles, all begun at the same time", 100000,
		GATE_LOAD_LIMITS | GATE_LOAD_PROFILES | GATE_LOAD_AT_ONCE,
		GATE_LOAD_LIMITS | GATE_LOAD_AT_ONCE, NULL},
	{"10k tenants: histograms fed and drained", 10000, GATE_LOAD_LIMITS | GATE_LOAD_HISTOGRAMS,
		GATE_LOAD_LIMITS, "<= 2x"},
	{"1k tenants: weight, min, max", 1000, GATE_LOAD_LIMITS, GATE_LOAD_FLOOR, NULL},
	{"10k tenants: weight alone", 10000, GATE_LOAD_PLAIN, GATE_LOAD_FLOOR, NULL},
	{"10 tenants: weight, min, max", 10, GATE_LOAD_LIMITS, GATE_LOAD_FLOOR, NULL},
};

static int rows_speed(struct bench *b)
{
	for (const struct speed *s = speeds; s < speeds + sizeof speeds / sizeof *speeds; s++) {
		const char *peer = s->peer & GATE_LOAD_FLOOR      ? "bare FIFO"
				   : s->peer & GATE_LOAD_PROFILES ? "in requests"
								  : "the same without";
		int r = measure_speed(
			b, s->name, s->tenants, s->features, peer, s->peer, s->target);

		if (r)
			return r;
	}
	return 0;
}

/* ---- the first request of an idle tenant among 100k busy ones */

static bool match_any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop_nothing(struct weir_req *r, void *arg)
{
}

/* Submit the requests, GATE_LOAD_BATCH at a time, each batch followed by a weir_gate_next that must
 * check their tenants. Requests of the load that pass are submitted again. Return the real ns in
 * all. */
static weir_time first_requests(struct gate_load *l, struct weir_req *extra, uint32_t n)
{
	weir_time spent = 0;

	for (uint32_t i = 0; i < n; i += GATE_LOAD_BATCH) {
		struct weir_req *reqs[GATE_LOAD_BATCH], *out;
		uint32_t some = n - i < GATE_LOAD_BATCH ? n - i : GATE_LOAD_BATCH;

		for (uint32_t k = 0; k < some; k++)
			reqs[k] = &extra[i + k];
		weir_time start = loop_clock();

		weir_gate_submit(l->gate, l->now, reqs, some);
		size_t passed = weir_gate_next(l->gate, l->now, &out, 1);

		spent += loop_clock() - start;
		weir_gate_done(l->gate, l->now, &out, passed);
		if (passed && out->user != extra)
			weir_gate_submit(l->gate, l->now, &out, 1);
	}
	return spent;
}

static int first_run(struct gate_load *l, struct weir_req *extra, uint32_t n, double *ret_ns)
{
	uint32_t added = 0;
	int r = 0;

	for (; !r && added < n; added += !r) {
		extra[added] = (struct weir_req){.bytes = 4096, .user = extra};
		r = weir_gate_add(l->gate, WEIR_ROOT, &extra[added].tenant);
	}
	if (!r)
		*ret_ns = (double)first_requests(l, extra, n) / n;
	for (uint32_t i = 0; i < added; i++) {
		weir_gate_cancel(l->gate, l->now, extra[i].tenant, match_any, drop_nothing, NULL);
		weir_gate_remove(l->gate, extra[i].tenant);
	}
	return r;
}

static int row_first(struct bench *b)
{
	const uint32_t busy = 100000, fresh = 10000;
	struct bench_samples s = {.n = 0};
	struct weir_req *extra = calloc(fresh, sizeof *extra);
	struct gate_load *l;
	int r = extra ? gate_load_new(busy, GATE_LOAD_LIMITS, 0, &l) : -ENOMEM;

	if (r) {
		free(extra);
		return r;
	}
	for (unsigned run = 0; !r && run < b->runs; run++) {
		double ns = 0;

		gate_load_time(l, busy * 2);
		r = first_run(l, extra, fresh, &ns);
		bench_sample(&s, ns);
	}
	if (!r)
		bench_add(b, "first request of a new tenant among 100k", "ns", &s, "<= 200 ns");
	free(extra);
	gate_load_free(l);
	return r;
}

/* ---- do limits and weights hold when limits bind? */

#define SECONDS 3

/* The results of a scene: a sample per second. */
struct promises {
	/* over all tenants: the least share of a tenant's min, the greatest of its max */
	struct bench_samples min, max;
	/* with GATE_LOAD_FLOOD: the greatest lag, relative to its bound */
	struct bench_samples lag;
};

/* Get the requests dispatched for each tenant. */
static void get_services(const struct gate_load *l, double *ret)
{
	struct weir_gate_stats s;

	for (uint32_t i = 0; i < l->tenants; i++) {
		weir_gate_get_stats(l->gate, l->now, l->nodes[i], &s);
		ret[i] = (double)s.dispatched;
	}
}

#define FAIR_K 5.0 /* the constant of law 6 */

/* Law 6: return the greatest difference of any two flooding tenants in service per weight, relative
 * to its bound. Requests cost 1, and there are no credits or runs. */
static double greatest_lag(const struct gate_load *l, const double *got)
{
	double most = 0;

	for (uint32_t i = 1; i < l->tenants; i += 2)
		for (uint32_t j = 1; j < i; j += 2) {
			double a = 1 / gate_load_weight(l, i), b = 1 / gate_load_weight(l, j);

			most = fmax(most, fabs(got[i] * a - got[j] * b) / (FAIR_K * (a + b)));
		}
	return most;
}

static void judge_second(
	const struct gate_load *l, const double *got, double seconds, struct promises *p)
{
	const bool flood = l->features & GATE_LOAD_FLOOD;
	double least = INFINITY, most = 0;

	for (uint32_t i = 0; i < l->tenants; i += flood ? 2 : 1) {
		least = fmin(least, got[i] / seconds / gate_load_min(l, i));
		most = fmax(most, got[i] / seconds / gate_load_max(l, i));
	}
	bench_sample(&p->min, least);
	bench_sample(&p->max, most);
	if (flood)
		bench_sample(&p->lag, greatest_lag(l, got));
}

/* Observe some seconds, after half a second to settle. */
static void promises_see(struct gate_load *l, double *before, double *got, struct promises *p)
{
	gate_load_drive(l, (uint64_t)l->capacity / 2);
	for (unsigned second = 0; second < SECONDS; second++) {
		weir_time start = l->now;

		get_services(l, before);
		while (l->now < start + WEIR_SEC)
			if (gate_load_drive(l, 1000) < 1000)
				return;
		get_services(l, got);
		for (uint32_t i = 0; i < l->tenants; i++)
			got[i] -= before[i];
		judge_second(l, got, (double)(l->now - start) / 1e9, p);
	}
}

static int run_scene(unsigned features, struct promises *p)
{
	const uint32_t tenants = 1000;
	struct gate_load *l;
	int r = gate_load_new(tenants, features, 0, &l);

	if (r)
		return r;
	double *room = calloc((size_t)2 * tenants, sizeof *room);

	if (room)
		promises_see(l, room, room + tenants, p);
	free(room);
	gate_load_free(l);
	return !room ? -ENOMEM : p->min.n < SECONDS ? -EIO : 0;
}

/* Test min beside tenants that flood; max, with enough capacity for every tenant's max. */
static int rows_accuracy(struct bench *b)
{
	struct promises flood = {.min.n = 0}, enough = {.min.n = 0};
	int r = run_scene(GATE_LOAD_LIMITS | GATE_LOAD_ACCURATE | GATE_LOAD_FLOOD, &flood);

	if (!r)
		r = run_scene(GATE_LOAD_LIMITS | GATE_LOAD_ACCURATE, &enough);
	if (r)
		return r;
	/* The worst second must meet the target, too. */
	bench_add(b, "least service / min over 1 s, beside a flood", "", &flood.min, ">= 0.99")
		->met = flood.min.v[0] >= 0.99;
	bench_add(b, "most service / max over 1 s", "", &enough.max, "<= 1.01")->met =
		enough.max.v[enough.max.n - 1] <= 1.01;
	bench_add(b, "greatest lag / bound of two tenants that flood, over 1 s", "", &flood.lag,
		"<= 1")
		->met = flood.lag.v[flood.lag.n - 1] <= 1;
	return 0;
}

/* ---- memory, and an idle million */

static int rows_million(struct bench *b)
{
	const uint32_t million = 1000000, busy = 1000;
	struct bench_samples alone = {.n = 0}, among = {.n = 0};
	uint64_t requests = b->quick ? 200000 : 2000000;
	struct gate_load *few, *many;
	int r = gate_load_new(busy, GATE_LOAD_LIMITS, 0, &few);

	if (r)
		return r;
	r = gate_load_new(busy, GATE_LOAD_LIMITS, million - busy, &many);
	if (r) {
		gate_load_free(few);
		return r;
	}
	gate_load_time(few, 100000);
	gate_load_time(many, 100000);
	for (unsigned i = 0; i < b->runs; i++)
		gate_load_turns(few, many, requests, &alone, &among);
	bench_add_beside(b, "1k busy tenants among a million idle", "ns", &among, "1k alone",
		&alone, "< 1.1x");
	bench_add_value(b, "memory of a million tenants in one gate", "MB",
		(double)weir_gate_memory(many->gate) / 1e6, "<= 400 MB");
	gate_load_free(few);
	gate_load_free(many);

	r = gate_load_new(100000, GATE_LOAD_LIMITS, 0, &few); /* each with weight, min and max */
	if (r)
		return r;
	bench_add_value(b, "memory per tenant with weight, min and max", "bytes",
		(double)weir_gate_memory(few->gate) / 100000, "<= 400");
	gate_load_free(few);
	return 0;
}

int bench_gate(struct bench *b, struct weir_err *err)
{
	static int (*const parts[])(struct bench *) = {
		rows_speed, row_first, bench_gate_tail, rows_accuracy, rows_million};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		r = parts[i](b);
	return r;
}
