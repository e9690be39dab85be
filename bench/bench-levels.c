/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workloads in an order of priority, put into as many groups as a stage has levels (PriorityMeister §4.7): the planner's choice
 * beside every partition of 12 workloads into 7 groups, of which there are 462, or fewer, and beside random ones of 200 into 64.
 * A partition is judged by meister_bounds and meister_violation alone, which know nothing of the way that it was chosen.
 */
#include "base/rng.h"
#include "bench/bench.h"
#include "control/meister/system.h"
#include <math.h>

enum { MOST = 200, PAIRS = 4, SYSTEMS = 20, RANDOM = 2000 };

struct levels {
	struct meister_stage stage;
	struct meister_workload workload[MOST];
	struct meister_hop hop[MOST];
	struct meister_knee knee[MOST][PAIRS];
	struct meister_system s;
	uint32_t order[MOST]; /* hops by priority */
	uint32_t n, levels;
	double chosen;
};

struct judged {               /* of the partitions of all systems */
	double least, beyond; /* least and greatest of chosen ÷ the least of a system */
	double even;          /* Σ of even groups ÷ chosen */
	double tried, better; /* partitions, and those that are better than the chosen one */
};

static double between(struct rng *r, double least, double most)
{
	return least * pow(most / least, rng_double(r));
}

/* Make n workloads at one stage, with a load of 0.9. */
static void draw_system(struct levels *x, struct rng *r, uint32_t n, uint32_t levels)
{
	x->n = n;
	x->levels = levels;
	x->stage = (struct meister_stage){.rate = 1, .blocking = 0.01};
	x->s = (struct meister_system){&x->stage, x->workload, x->hop, 1, n, n};
	for (uint32_t i = 0; i < n; i++) {
		struct meister_pair pairs[PAIRS];
		double rate = 0.9 / n * between(r, 0.1, 1), size = between(r, 0.001, 1);
		size_t k;

		for (k = PAIRS; k-- > 0;) {
			pairs[k] = (struct meister_pair){rate, size};
			rate *= between(r, 1.1, 10);
			size *= between(r, 0.05, 0.9);
		}
		k = meister_pairs_reduce(pairs, PAIRS);
		meister_curve_of(pairs, k, x->knee[i]);
		x->workload[i] = (struct meister_workload){
			.slo = between(r, 0.05, 5), .hops = i, .n_hops = 1};
		x->hop[i] = (struct meister_hop){.workload = i, .curve = {k, x->knee[i]}};
	}
}

/* Find the order, and then the groups. */
static int choose(struct levels *x)
{
	const struct meister_search how = {.greedy = true};
	enum meister_found found;
	int r = meister_search(&x->s, &how, &found);

	for (uint32_t i = 0; i < x->n; i++)
		x->order[x->hop[i].priority] = i;
	x->stage.levels = x->levels;
	if (r == 0)
		r = meister_search(&x->s, &how, &found);
	if (r == 0)
		r = meister_bounds(&x->s);
	x->chosen = meister_violation(&x->s);
	return r;
}

/* Get the misses of the partition whose groups begin at these places of the order. */
static int judge(struct levels *x, const bool *begins, struct judged *j, double *ret)
{
	uint32_t level = 0;
	int r;

	for (uint32_t i = 0; i < x->n; i++) {
		level += i && begins[i];
		x->hop[x->order[i]].priority = level;
	}
	r = meister_bounds(&x->s);
	*ret = meister_violation(&x->s);
	j->tried++;
	j->better += *ret < x->chosen * (1 - 1e-9);
	return r;
}

static int judge_even(struct levels *x, struct judged *j)
{
	bool begins[MOST] = {false};
	struct judged unused = {0};
	double miss;
	int r;

	for (uint32_t i = 1; i < x->levels; i++)
		begins[i * x->n / x->levels] = true;
	r = judge(x, begins, &unused, &miss);
	j->even += miss / x->chosen / SYSTEMS;
	return r;
}

/* Every set of at most levels − 1 of the n − 1 places where a group may begin. */
static int judge_all(struct levels *x, struct rng *rng, struct judged *j)
{
	double miss, least = HUGE_VAL;
	int r = 0;

	for (uint32_t set = 0; r == 0 && set < 1u << (x->n - 1); set++) {
		bool begins[MOST] = {false};

		if ((uint32_t)__builtin_popcount(set) > x->levels - 1)
			continue;
		for (uint32_t i = 1; i < x->n; i++)
			begins[i] = set >> (i - 1) & 1;
		r = judge(x, begins, j, &miss);
		least = fmin(least, miss);
	}
	j->beyond = fmax(j->beyond, x->chosen / least);
	j->least = fmin(j->least, x->chosen / least);
	return r;
}

static int judge_random(struct levels *x, struct rng *rng, struct judged *j)
{
	double miss;
	int r = 0;

	for (uint32_t k = 0; r == 0 && k < RANDOM / SYSTEMS; k++) {
		bool begins[MOST] = {false};

		for (uint32_t left = x->levels - 1; left > 0;) {
			uint32_t i = 1 + (uint32_t)rng_below(rng, x->n - 1);

			left -= !begins[i];
			begins[i] = true;
		}
		r = judge(x, begins, j, &miss);
	}
	return r;
}

static int run_systems(struct rng *rng, uint32_t n, uint32_t levels,
	int (*all)(struct levels *, struct rng *, struct judged *), struct judged *ret)
{
	static struct levels x;
	int r = 0;

	*ret = (struct judged){.least = HUGE_VAL};
	for (int i = 0; r == 0 && i < SYSTEMS;) {
		draw_system(&x, rng, n, levels);
		r = choose(&x);
		if (r < 0 || !(x.chosen > 0 && x.chosen < MEISTER_UNBOUNDED))
			continue; /* nothing is missed, whatever the groups */
		i++;
		r = judge_even(&x, ret);
		if (r == 0)
			r = all(&x, rng, ret);
	}
	return r;
}

int bench_levels(struct bench *b, struct weir_err *err)
{
	struct judged few, many;
	struct rng rng;
	int r;

	rng_init(&rng, 1, "levels");
	r = run_systems(&rng, 12, 7, judge_all, &few);
	if (r == 0)
		r = run_systems(&rng, 200, 64, judge_random, &many);
	if (r < 0)
		return r;
	bench_add_value(b, "12 onto 7: partitions", "", few.tried / SYSTEMS, NULL)->key =
		"few.tried";
	bench_add_value(b, "12 onto 7: chosen / best, most", "", few.beyond, NULL)->key =
		"few.most";
	bench_add_value(b, "12 onto 7: chosen / best, least", "", few.least, NULL)->key =
		"few.least";
	bench_add_value(b, "12 onto 7: even groups / chosen", "", few.even, NULL)->key = "few.even";
	bench_add_value(b, "200 onto 64: partitions", "", many.tried, NULL)->key = "many.tried";
	bench_add_value(b, "200 onto 64: better than chosen", "", many.better, NULL)->key =
		"many.better";
	bench_add_value(b, "200 onto 64: even groups / chosen", "", many.even, NULL)->key =
		"many.even";
	return 0;
}
