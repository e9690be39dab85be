/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waterfill: weighted max-min shares with guarantees and limits, for one level and for a tree.
 *
 * SOURCE  Jeyakumar et al., "Flexible Network Bandwidth and Latency Provisioning in the Datacenter"
 *         (Parley), §3.1, §3.2.2; the algorithm it names is Bertsekas and Gallager, Data Networks,
 *         §6.5.2.
 * LAW     rate_i = g_i + min(u_i − g_i, λ·w_i), with λ such that Σ rate_i = C, or every rate_i = u_i
 *         if Σ u_i ≤ C. If Σ g_i > C, rate_i = g_i·C/Σ g_i, and `scaled` is set.
 * SYMBOLS C   capacity; u_i = min(max_i, demand_i), the most that i can use; g_i = min(min_i, u_i),
 *         its guarantee; e_i = u_i − g_i, its room; w_i weight; λ the level. Rates are in any one
 *         unit; λ is in that unit per weight.
 *         An inner node of a tree: u = min(max, Σ u of its children), g = min(u, max(min, Σ g)).
 * METHOD  F(λ) = Σ min(e_i, λ·w_i) is concave and piecewise linear, so that Newton's step from any λ
 *         ends at or below the solution. Large levels first solve an evenly spaced sample; one pass
 *         with the interval around its level settles all but the few nodes inside of it. After
 *         eight steps, every other one halves the interval of floating-point numbers, so that no
 *         input takes more than 8 + 2·64 passes. Three passes over the arrays are usual: O(n), no
 *         sorting.
 * DIFFERS The paper satiates one service per iteration, O(n²), with rates rounded to 1 Mbit/s. Here
 *         rates are exact up to the rounding of doubles. The paper is silent about the division of
 *         excess where a service has both a guarantee and a weight: here excess comes on top of the
 *         guarantee.
 * EXAMPLE C = 10; a: min 6, demand 20; b: demand 1; c: demand 20, equal weights. g = 6, 0, 0; the
 *         rest of 4 is shared: b has 1, λ = 1.5: rates 7.5, 1, 1.5.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waterfill {
	size_t n;
	/* in: for each node; ≥ 0 and no NaN. `min` is finite, `max` and `demand` may be HUGE_VAL */
	const double *min, *max, *demand;
	const double *weight; /* in: for each node, 2^-512 … 2^512 */
	double *rate;         /* out: for each node */
	double *base, *room;  /* scratch, one for each node: g and e; kept for waterfill_again */
	double *kept;         /* scratch, two for each node */
	double level;         /* out: λ; HUGE_VAL if each node has all that it can use */
	bool scaled;          /* out: the guarantees exceed the capacity */
	double guaranteed;    /* out: Σ g; the three sums are kept for waterfill_again */
	double full;          /* Σ e of the nodes that are full: they have all they can use */
	double dry;           /* Σ w of the others */
};

/* Set the rates of one level that shares `capacity`, ≥ 0 and finite. */
void waterfill(struct waterfill *f, double capacity);

/* Set them again after min, max or demand of the nodes of the list `changed`, or the capacity, have
 * changed. A node may be named twice. O(n) as well, with about half of the passes. */
void waterfill_again(struct waterfill *f, double capacity, const uint32_t *changed, size_t n);

/* A tree in breadth-first order: the children of a node follow each other, and come after it. */
struct waterfill_tree {
	/* Arrays of all nodes; the root is node 0. `max`, `weight` and the scratch are read here;
	 * `min` and `demand` must be the arrays `least` and `want` below */
	struct waterfill all;
	const uint32_t *parent; /* in: the nodes with children, in order */
	size_t parents;         /* in: their number */
	const uint32_t *first,
		*many;     /* in: by node, of parents: the first child, and their number */
	const double *min; /* in: of inner nodes */
	double *least;     /* in: min of leaves; out: guarantee of inner nodes */
	double *want;      /* in: demand of leaves; out: of inner nodes */
	double *given;     /* scratch, one for each node: Σ g of its children */
};

/* Set the rates of all nodes; the root's is min(capacity, max, Σ u). Return true if guarantees were
 * scaled anywhere. */
bool waterfill_tree(struct waterfill_tree *t, double capacity);
