/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maxflow: textbook maximum flow, which pShift is measured against and checked with.
 *
 * The graph of an input of pshift.h: source → bucket (its reservation), bucket → server (the demand
 * there), server → sink (its capacity). The largest flow is phi. Two ways to find it, each in a file
 * of its own: push-relabel, which is the honest peer, and Edmonds–Karp, which grows with the buckets
 * as the paper's bQueue does. Nothing of it is used to allocate tokens.
 */
#ifndef WEIR_BENCH_REFERENCE_MAXFLOW_H
#define WEIR_BENCH_REFERENCE_MAXFLOW_H

#include "control/pshift/alloc.h"

struct maxflow {
	uint32_t nodes;      /* the source is 0, the sink 1, then buckets, then servers */
	uint32_t arcs;       /* both directions of each */
	uint32_t *first;     /* nodes + 1: the arcs of a node */
	uint32_t *to, *back; /* of each arc: the node it leads to, the arc the other way */
	int64_t *room;       /* of each arc: what may still flow */
	void *memory;        /* all of the above, and what a search works in */
	/* For the searches: */
	int64_t *excess;                        /* nodes */
	uint32_t *level, *current, *queue, *by; /* nodes; `by` the arc that led there */
	uint32_t *levels;                       /* nodes + 1: how many nodes a level has */
};

/* The input must be in order (pshift_check). 0 or -ENOMEM; free with maxflow_free. */
int maxflow_new(const struct pshift_input *in, struct maxflow *ret);
void maxflow_free(struct maxflow *g);
/* Makes the graph again, in the memory that is there; the input has the same sizes. */
void maxflow_again(const struct pshift_input *in, struct maxflow *g);
/* Back to no flow at all. */
void maxflow_reset(const struct pshift_input *in, struct maxflow *g);

/* The largest flow, which is left in the graph. */
int64_t maxflow_push_relabel(struct maxflow *g);
int64_t maxflow_edmonds_karp(struct maxflow *g);
/* The flow as tokens: of each entry, at most its demand. */
void maxflow_tokens(const struct pshift_input *in, const struct maxflow *g, int64_t *ret_tokens);

#endif
