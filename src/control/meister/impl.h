/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: shared by the parts of a search. */
#ifndef WEIR_CONTROL_MEISTER_IMPL_H
#define WEIR_CONTROL_MEISTER_IMPL_H

#include "control/meister/bound.h"
#include "control/meister/sum.h"
#include "control/meister/system.h"

struct meister_queue { /* one stage's hops */
	uint32_t n;
	uint32_t *hop;          /* numbers of hops: a search puts the highest priority first */
	struct meister_sum sum; /* of all of them; owners are hops */
	struct meister_curve above, group; /* each with room for a sum of any of them */
};

struct meister_searching {
	struct meister_system *system;
	struct meister_queue *queues; /* by stage */
	uint32_t *place;              /* by hop: selects owners for meister_sum_of */
};

int meister_searching_new(struct meister_system *s, struct meister_searching *ret);
void meister_searching_free(struct meister_searching *x);

/* Return by how much a latency misses an slo, relative to it. */
double meister_miss(double latency, double slo);

/* Return the bound of a hop in a class of equal priority (`own`), behind the work above, with the time inside. */
double meister_hop_bound(const struct meister_system *s, const struct meister_hop *h,
	const struct meister_curve *own, struct meister_above above);

/* Set the places of a queue's hops to their positions in it. */
void meister_queue_places(struct meister_searching *x, const struct meister_queue *q);

/* greedy.c: set orders and bounds by the paper's algorithm. 0 or -ENOMEM. */
int meister_greedy(struct meister_searching *x);
/* anneal.c: improve orders and bounds, all of which are set. 0 or -ENOMEM. */
int meister_anneal(struct meister_searching *x, const struct meister_search *how);
/* levels.c: set priorities and bounds of a stage's hops, which are in order, in groups for its levels. 0 or -ENOMEM. */
int meister_levels(struct meister_searching *x, uint32_t stage);

#endif
