/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/plan.h"
#include "base/rng.h"
#include "test.h"

enum { TENANTS = 6, STAGES = 2, REQUESTS = 400 };

static struct meister_arrival arrivals[REQUESTS];
static struct plan_hop hops[TENANTS][STAGES];
static struct plan_tenant tenants[TENANTS];
static struct plan_stage stages[STAGES];

static const struct meister_search search = {.greedy = true, .anneal = true, .seed = 1};

/* Bursts of requests of some work, apart by a mean gap. */
static void make_trace(struct rng *r, double gap, double work)
{
	double t = 0;

	for (size_t i = 0; i < REQUESTS; i++) {
		t += rng_below(r, 4) ? 0 : gap * 8 * rng_double(r);
		arrivals[i] = (struct meister_arrival){t, work * (0.5 + rng_double(r))};
	}
}

static struct plan_input make_input(uint64_t seed, uint32_t n)
{
	struct rng r;

	rng_init(&r, seed, "plan");
	for (uint32_t k = 0; k < STAGES; k++)
		stages[k] = (struct plan_stage){.rate = k ? 1000 : 1,
			.depth = k ? 1 : 4,
			.inside = k ? 0 : 0.001,
			.levels = 64};
	for (uint32_t i = 0; i < n; i++) {
		tenants[i] =
			(struct plan_tenant){0.5, hops[i], 1 + (uint32_t)rng_below(&r, STAGES)};
		for (uint32_t k = 0; k < tenants[i].n_hops; k++) {
			make_trace(&r, 0.02, k ? 1 : 0.001);
			CHECK_INT(
				plan_hop_of(arrivals, REQUESTS, 4, stages[k].rate, &hops[i][k]), 0);
			hops[i][k].stage = k;
			stages[k].largest = fmax(stages[k].largest, hops[i][k].largest);
		}
	}
	return (struct plan_input){stages, tenants, STAGES, n, search};
}

/* Every trace fits its buckets: replayed, none is ever short of tokens. */
static void traces_fit(void)
{
	struct rng r;
	struct plan_hop h;

	rng_init(&r, 7, "fits");
	make_trace(&r, 0.02, 0.001);
	CHECK_INT(plan_hop_of(arrivals, REQUESTS, 4, 1, &h), 0);
	CHECK(h.n >= 1 && h.n <= 4);
	for (unsigned k = 0; k < h.n; k++) {
		double level = h.pair[k].size;

		CHECK(h.pair[k].size >= h.largest);
		for (size_t i = 0; i < REQUESTS; i++) {
			double gap = i ? arrivals[i].t - arrivals[i - 1].t : 0;

			level = fmin(level + gap * h.pair[k].rate, h.pair[k].size) -
				arrivals[i].work;
			CHECK(level > -1e-9);
		}
	}
}

/* One request, or all at once: the buckets fill again. */
static void odd_traces(void)
{
	struct plan_hop h;

	arrivals[0] = (struct meister_arrival){0, 0.002};
	CHECK_INT(plan_hop_of(arrivals, 1, 4, 1, &h), 0);
	CHECK_INT(h.n, 1);
	CHECK(h.pair[0].rate == PLAN_RATE_LEAST && h.pair[0].size == 0.002);
	for (size_t i = 0; i < 100; i++)
		arrivals[i] = (struct meister_arrival){5, 0.001};
	CHECK_INT(plan_hop_of(arrivals, 100, 4, 1, &h), 0);
	CHECK(fabs(h.pair[h.n - 1].size - 0.1) < 1e-9);
	/* its mean is steeper than a gate's bucket can be */
	arrivals[0] = (struct meister_arrival){0, 0.0002};
	arrivals[1] = (struct meister_arrival){3e-7, 0.0002};
	CHECK_INT(plan_hop_of(arrivals, 2, 4, 1, &h), 0);
	CHECK_INT(h.n, 1);
	CHECK(h.pair[0].rate == PLAN_RATE_MOST);
	CHECK(fabs(h.pair[0].size - (0.0004 - PLAN_RATE_MOST * 3e-7)) < 1e-12);
}

/* The parts of each bound add up to it. */
static void parts_add_up(void)
{
	double others[TENANTS];

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct plan_input in = make_input(seed, TENANTS);
		struct plan p;

		stages[0].levels = seed % 2 ? 64 : 3; /* groups of equal priority as well */
		CHECK_INT(plan_make(&in, &p), 0);
		for (uint32_t i = 0; i < TENANTS; i++) {
			struct plan_parts parts = {.others = others};
			double sum, bound = meister_latency(&p.system, i);

			CHECK_INT(plan_explain(&p, i, &parts), 0);
			sum = parts.own + parts.blocking + parts.inside;
			for (uint32_t k = 0; k < TENANTS; k++)
				sum += others[k];
			CHECK(isfinite(bound));
			if (fabs(sum - bound) > 1e-9 * bound)
				FAIL("seed %d: the parts of tenant %u are %g, the bound %g",
					(int)seed, i, sum, bound);
		}
		plan_free(&p);
	}
}

static bool holds(const struct plan_input *in)
{
	struct plan p;
	bool feasible;

	CHECK_INT(plan_make(in, &p), 0);
	feasible = p.feasible;
	plan_free(&p);
	return feasible;
}

/* One tenant misses: each remedy, applied, meets every slo. */
static void remedies_do(void)
{
	struct plan_input in = make_input(3, 3);
	struct plan p;
	double most[TENANTS] = {10, 10, 10};
	double x, bound;

	for (uint32_t i = 0; i < 3; i++)
		tenants[i].slo = 10;
	CHECK(holds(&in));
	CHECK_INT(plan_make(&in, &p), 0);
	plan_free(&p);
	tenants[1].n_hops = 1;
	tenants[1].slo =
		stages[0].depth * stages[0].largest * 0.9 + hops[1][0].pair[0].size + 0.001;
	CHECK(!holds(&in)); /* below its blocking and its own burst */
	CHECK_INT(plan_remedy_slo(&in, most, &x), 1);
	CHECK(x > 0 && x < 1);
	bound = tenants[1].slo;
	tenants[1].slo += x * (10 - bound);
	CHECK(holds(&in));
	tenants[1].slo = bound;
	CHECK_INT(plan_remedy_depth(&in, 0, &x), 1);
	CHECK_INT(x, 3);
	stages[0].depth = x;
	CHECK(holds(&in));
	stages[0].depth = 4;
	CHECK_INT(plan_remedy_without(&in, 1), 1);
	CHECK_INT(plan_remedy_without(&in, 0), 0);
	CHECK(!holds(&in)); /* a remedy changes nothing of its input */
}

/* Load above the rate: no bound, and a part of the rate does. */
static void too_much(void)
{
	struct plan_input in = make_input(5, 2);
	struct plan p;
	double part;

	tenants[0].n_hops = tenants[1].n_hops = 1;
	tenants[0].slo = tenants[1].slo = 100;
	for (unsigned k = 0; k < hops[0][0].n; k++)
		hops[0][0].pair[k].rate += 1 - hops[0][0].pair[hops[0][0].n - 1].rate;
	CHECK(plan_load(&in, 0) > 1);
	CHECK_INT(plan_make(&in, &p), 0);
	CHECK(!p.feasible);
	CHECK(isinf(fmax(meister_latency(&p.system, 0), meister_latency(&p.system, 1))));
	plan_free(&p);
	CHECK_INT(plan_remedy_rate(&in, 0, &part), 1);
	CHECK(part < 1 && part > 0.3);
}

static void none(void)
{
	struct plan_input in = {stages, tenants, 0, 0, search};

	CHECK(holds(&in));
}

int main(void)
{
	RUN(traces_fit);
	RUN(odd_traces);
	RUN(parts_add_up);
	RUN(remedies_do);
	RUN(too_much);
	RUN(none);
	return 0;
}
