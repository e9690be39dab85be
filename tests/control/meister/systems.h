/* SPDX-License-Identifier: BSD-3-Clause */
/* systems: random systems of workloads and stages for tests. */
#ifndef WEIR_TESTS_CONTROL_MEISTER_SYSTEMS_H
#define WEIR_TESTS_CONTROL_MEISTER_SYSTEMS_H

#include "base/rng.h"
#include "control/meister/system.h"
#include "test.h"

enum { LOADS = 16, STAGES = 3, PAIRS = 6 };

struct system_room {
	struct meister_stage stage[STAGES];
	struct meister_workload workload[LOADS];
	struct meister_hop hop[LOADS * STAGES];
	struct meister_knee knee[LOADS * STAGES][PAIRS];
	struct meister_pair pair[LOADS * STAGES][PAIRS];
	uint32_t n_pairs[LOADS * STAGES];
	struct meister_system s;
};

static inline double between(struct rng *r, double least, double most)
{
	return least * pow(most / least, rng_double(r)); /* every magnitude as often */
}

/* Make random pairs whose least rate is `rate`. */
static inline uint32_t random_pairs(struct rng *r, double rate, struct meister_pair *ret)
{
	uint32_t n = 1 + (uint32_t)rng_below(r, PAIRS);
	double size = between(r, 0.001, 1);

	for (uint32_t i = 0; i < n; i++) {
		ret[n - 1 - i] = (struct meister_pair){rate, size};
		rate *= between(r, 1.1, 10);
		size *= between(r, 0.05, 0.9);
	}
	return (uint32_t)meister_pairs_reduce(ret, n);
}

static inline void add_hop(
	struct system_room *x, uint32_t w, uint32_t stage, struct rng *r, double rate)
{
	uint32_t h = x->s.n_hops++;

	x->n_pairs[h] = random_pairs(r, rate, x->pair[h]);
	meister_curve_of(x->pair[h], x->n_pairs[h], x->knee[h]);
	x->hop[h] = (struct meister_hop){
		.workload = w, .stage = stage, .curve = {x->n_pairs[h], x->knee[h]}};
	x->workload[w].n_hops++;
}

/* Make n workloads, each at one to n_stages stages, with rates that add up to `load` of each stage at most. */
static inline void random_system(
	struct system_room *x, struct rng *r, uint32_t n, uint32_t n_stages, double load)
{
	x->s = (struct meister_system){x->stage, x->workload, x->hop, n_stages, n, 0};
	for (uint32_t i = 0; i < n_stages; i++)
		x->stage[i] = (struct meister_stage){.rate = between(r, 0.1, 10),
			.blocking = rng_below(r, 2) ? between(r, 1e-4, 0.1) : 0};
	for (uint32_t w = 0; w < n; w++) {
		uint32_t only = rng_below(r, 3) ? n_stages : (uint32_t)rng_below(r, n_stages);

		x->workload[w] = (struct meister_workload){.slo = 1, .hops = x->s.n_hops};
		for (uint32_t i = 0; i < n_stages; i++)
			if (only == n_stages || only == i)
				add_hop(x, w, i, r,
					load * x->stage[i].rate / n * between(r, 0.1, 1));
	}
}

#endif
