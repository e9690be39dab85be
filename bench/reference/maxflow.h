/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maxflow: textbook maximum flow, to measure and check pShift against.
 *
 * The graph of an input of pshift.h: source → bucket (its reservation), bucket → server (the demand
 * there), server → sink (its capacity). The largest flow is phi. Two methods find it, each in its
 * own file: push-relabel, the strongest peer, and Edmonds–Karp, whose time grows with the buckets
 * like that of the paper's bQueue. Neither is used to allocate tokens.
 */
#pragma once

#include "control/pshift/alloc.h"

typedef struct pshift_input maxflow_input;

struct maxflow {
	uint32_t nodes;      /* the source is 0, the sink 1, then buckets, then servers */
	uint32_t arcs;       /* both directions of each edge */
	uint32_t *first;     /* nodes + 1: index of a node's first arc */
	uint32_t *to, *back; /* per arc: the node it leads to, the arc in the other direction */
	int64_t *room;       /* per arc: remaining capacity */
	void *memory;        /* all of the above, and the arrays below */
	/* for the searches */
	int64_t *excess;                        /* nodes */
	uint32_t *level, *current, *queue, *by; /* nodes; `by`: the arc that led there */
	uint32_t *levels;                       /* nodes + 1: number of nodes per level */
};

/* The input must be valid (pshift_check). Return 0 or -ENOMEM; free with maxflow_free. */
int maxflow_new(const struct pshift_input *in, struct maxflow *ret);
void maxflow_free(struct maxflow *g);
/* Build the graph again, in the same memory; the input must have the same sizes. */
void maxflow_again(const struct pshift_input *in, struct maxflow *g);
/* Reset all flow to 0. */
void maxflow_reset(const struct pshift_input *in, struct maxflow *g);

/* Return the largest flow, and leave it in the graph. */
int64_t maxflow_push_relabel(struct maxflow *g);
int64_t maxflow_edmonds_karp(struct maxflow *g);
/* Get the flow as tokens: for each entry, at most its demand. */
void maxflow_tokens(const struct pshift_input *in, const struct maxflow *g, int64_t *ret_tokens);
