/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search: with one stage greedy finds an order whenever brute force does; with several stages annealing finds nearly all; few
 * levels are used as well as possible; results are repeatable.
 */
#include "systems.h"

static struct system_room x;

static void set_slos(struct rng *r, double slack)
{
	uint32_t order[LOADS];

	/* a random order of its own at each stage meets these slos */
	for (uint32_t i = 0; i < x.s.n_stages; i++) {
		for (uint32_t w = 0; w < x.s.n_workloads; w++)
			order[w] = w;
		for (uint32_t w = x.s.n_workloads; w > 1; w--) {
			uint32_t k = (uint32_t)rng_below(r, w), was = order[w - 1];

			order[w - 1] = order[k];
			order[k] = was;
		}
		for (uint32_t h = 0; h < x.s.n_hops; h++)
			if (x.hop[h].stage == i)
				x.hop[h].priority = order[x.hop[h].workload];
	}
	CHECK_INT(meister_bounds(&x.s), 0);
	for (uint32_t w = 0; w < x.s.n_workloads; w++)
		x.workload[w].slo = meister_latency(&x.s, w) * slack;
	CHECK((meister_violation(&x.s) == 0) == (slack >= 1));
}

/* Return true if an order of the first n priorities meets every slo: all of them, one stage. */
static bool brute_force(uint32_t *order, uint32_t n, uint32_t fixed)
{
	if (fixed == n) {
		for (uint32_t i = 0; i < n; i++)
			x.hop[order[i]].priority = i;
		CHECK_INT(meister_bounds(&x.s), 0);
		return meister_violation(&x.s) == 0;
	}
	for (uint32_t i = fixed; i < n; i++) {
		uint32_t was = order[fixed];
		bool found;

		order[fixed] = order[i];
		order[i] = was;
		found = brute_force(order, n, fixed + 1);
		was = order[fixed];
		order[fixed] = order[i];
		order[i] = was;
		if (found)
			return true;
	}
	return false;
}

static void check_bounds_hold(void)
{
	double bound[LOADS * STAGES];

	for (uint32_t h = 0; h < x.s.n_hops; h++)
		bound[h] = x.hop[h].bound;
	CHECK_INT(meister_bounds(&x.s), 0);
	for (uint32_t h = 0; h < x.s.n_hops; h++)
		CHECK(bound[h] == x.hop[h].bound ||
			fabs(bound[h] - x.hop[h].bound) < 1e-9 * bound[h]);
}

static void one_stage_is_optimal(void)
{
	const struct meister_search greedy = {.greedy = true};
	enum meister_found found;
	struct rng r;
	int feasible = 0;

	rng_init(&r, 1, "search");
	for (int round = 0; round < 200; round++) {
		uint32_t n = 2 + (uint32_t)rng_below(&r, 4), order[LOADS] = {0, 1, 2, 3, 4, 5};

		random_system(&x, &r, n, 1, 0.9);
		set_slos(&r, 1);
		for (uint32_t w = 0; w < n; w++)
			x.workload[w].slo *= between(&r, 0.6, 1.5);
		CHECK_INT(meister_search(&x.s, &greedy, &found), 0);
		check_bounds_hold();
		feasible += found == MEISTER_GREEDY;
		CHECK((found == MEISTER_GREEDY) == brute_force(order, n, 0));
	}
	CHECK(feasible > 20 && feasible < 180);
}

static void several_stages_are_found(void)
{
	const struct meister_search greedy = {.greedy = true}, both = {true, true, 1, 0};
	enum meister_found found;
	struct rng r;
	int by_greedy = 0, by_both = 0, rounds = 60;

	rng_init(&r, 2, "search");
	for (int round = 0; round < rounds; round++) {
		random_system(&x, &r, 8 + (uint32_t)rng_below(&r, 5), 3, 0.9);
		set_slos(&r, 1.2);
		CHECK_INT(meister_search(&x.s, &greedy, &found), 0);
		by_greedy += found == MEISTER_GREEDY;
		CHECK_INT(meister_search(&x.s, &both, &found), 0);
		by_both += found != MEISTER_NOT;
		check_bounds_hold();
		CHECK((found == MEISTER_NOT) == (meister_violation(&x.s) > 0));
	}
	printf("found: greedy %d, with annealing %d of %d\n", by_greedy, by_both, rounds);
	CHECK(by_both >= 0.95 * rounds);
	CHECK(by_greedy < by_both);
}

/* Compare with every partition of the order into groups. */
static void levels_are_optimal(void)
{
	const struct meister_search greedy = {.greedy = true};
	enum meister_found found;
	struct rng r;

	rng_init(&r, 3, "search");
	for (int round = 0; round < 20; round++) {
		uint32_t order[LOADS], levels = 2 + (uint32_t)rng_below(&r, 3), n = 7;
		double got, best = HUGE_VAL;

		random_system(&x, &r, n, 1, 0.9);
		set_slos(&r, 0.7);
		CHECK_INT(meister_search(&x.s, &greedy, &found), 0);
		for (uint32_t h = 0; h < n; h++)
			order[x.hop[h].priority] = h;
		x.stage[0].levels = levels;
		CHECK_INT(meister_search(&x.s, &greedy, &found), 0);
		check_bounds_hold();
		got = meister_violation(&x.s);
		for (uint32_t cuts = 0; cuts < 1u << (n - 1); cuts++) {
			uint32_t level = 0;

			for (uint32_t i = 0; i < n; i++) {
				level += i && cuts >> (i - 1) & 1;
				x.hop[order[i]].priority = level;
			}
			if (level >= levels)
				continue;
			CHECK_INT(meister_bounds(&x.s), 0);
			best = fmin(best, meister_violation(&x.s));
		}
		CHECK(got <= best * (1 + 1e-9) && got >= best * (1 - 1e-9));
	}
}

static void is_repeatable(void)
{
	const struct meister_search both = {true, true, 7, 0};
	uint32_t priority[LOADS * STAGES];
	enum meister_found found;
	struct rng r;

	rng_init(&r, 4, "search");
	random_system(&x, &r, 10, 3, 0.9);
	set_slos(&r, 1.05);
	CHECK_INT(meister_search(&x.s, &both, &found), 0);
	for (uint32_t h = 0; h < x.s.n_hops; h++)
		priority[h] = x.hop[h].priority;
	CHECK_INT(meister_search(&x.s, &both, &found), 0);
	for (uint32_t h = 0; h < x.s.n_hops; h++)
		CHECK_INT(x.hop[h].priority, priority[h]);
}

int main(void)
{
	RUN(one_stage_is_optimal);
	RUN(several_stages_are_found);
	RUN(levels_are_optimal);
	RUN(is_repeatable);
	return 0;
}
