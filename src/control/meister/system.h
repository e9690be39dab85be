/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system: workloads with latency SLOs that pass through stages, and their priorities at each stage.
 *
 * A workload passes its stages one after the other, and each stage enforces the workload's buckets of that stage at its entry.
 * So its latency is at most the sum of its stages' bounds (bound.h): a stage that shapes again what a former one has delayed
 * releases no request later than that.
 *
 * EXAMPLE  weir-alloc(1), meister.
 */
#ifndef WEIR_CONTROL_MEISTER_SYSTEM_H
#define WEIR_CONTROL_MEISTER_SYSTEM_H

#include "control/meister/curve.h"
#include <stdint.h>

struct meister_stage {
	double rate;     /* work per second: 1 for device time */
	double blocking; /* work that requests of lower priority, best effort too, can have inside */
	double inside;   /* s: added to every bound; the time in the device beyond its work */
	unsigned levels; /* priorities that the stage can tell apart; 0: any number */
};

struct meister_hop { /* a workload at one of its stages */
	uint32_t workload, stage;
	struct meister_curve curve;
	uint32_t priority; /* 0 is the highest; equal ones are served first in, first out */
	double bound;      /* s, or INFINITY */
};

struct meister_workload {
	double slo;    /* s, > 0 */
	uint32_t hops; /* its first hop; its hops are in a row */
	uint32_t n_hops;
};

struct meister_system {
	const struct meister_stage *stages;
	const struct meister_workload *workloads;
	struct meister_hop *hops; /* by workload; a workload has a stage once at most */
	uint32_t n_stages, n_workloads, n_hops;
};

/* Return the bound of a workload's latency in s, or INFINITY; its hops' bounds are set. */
double meister_latency(const struct meister_system *s, uint32_t workload);
/* Return Σ of (latency − slo) / slo over the workloads that miss their slo; an unbounded one counts as
 * MEISTER_UNBOUNDED. */
#define MEISTER_UNBOUNDED 1e6
double meister_violation(const struct meister_system *s);

/* Set the bounds of all hops from their priorities. 0 or -ENOMEM. */
int meister_bounds(struct meister_system *s);

enum meister_found { MEISTER_NOT, MEISTER_GREEDY, MEISTER_ANNEAL };
struct meister_search {
	bool greedy,
		anneal; /* which to try, in this order; annealing begins from the result of the other */
	uint64_t seed;  /* of annealing */
	uint32_t moves; /* at most; 0: MEISTER_MOVES */
};
#define MEISTER_MOVES 40000

/* Set priorities and bounds so that every workload meets its slo, if such an order is found (ret_found), or else so that little
 * is missed. Stages with fewer levels than workloads have groups. 0 or -ENOMEM. */
int meister_search(
	struct meister_system *s, const struct meister_search *how, enum meister_found *ret_found);

#endif
