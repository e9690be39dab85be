/* SPDX-License-Identifier: BSD-3-Clause */
/* hsfq: a hierarchical start-time fair queue with plain arrays, which examines all children, as
 * a reference for shares. */
#ifndef WEIR_TESTS_GATE_HSFQ_H
#define WEIR_TESTS_GATE_HSFQ_H

#include "test.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define HSFQ_NODES 64

struct hsfq_node {
	uint32_t parent; /* of the root: itself */
	double weight, start, finish, virtual_;
	uint32_t backlog; /* leaves with requests below it, itself included */
	bool leaf;
};

struct hsfq {
	struct hsfq_node nodes[HSFQ_NODES];
	uint32_t n;
};

static inline void hsfq_init(struct hsfq *q)
{
	memset(q, 0, sizeof *q);
	q->n = 1;
}

static inline uint32_t hsfq_add(struct hsfq *q, uint32_t parent, double weight)
{
	CHECK(q->n < HSFQ_NODES);
	q->nodes[q->n] = (struct hsfq_node){.parent = parent, .weight = weight, .leaf = true};
	q->nodes[parent].leaf = false;
	return q->n++;
}

static inline void hsfq_busy(struct hsfq *q, uint32_t leaf, bool busy)
{
	for (uint32_t n = leaf;; n = q->nodes[n].parent) {
		struct hsfq_node *node = &q->nodes[n];

		if (busy && node->backlog++ == 0 && n != 0)
			node->start = fmax(q->nodes[node->parent].virtual_, node->finish);
		else if (!busy)
			node->backlog--;
		if (n == 0)
			return;
	}
}

/* Return the next leaf, or 0 if all are idle. */
static inline uint32_t hsfq_next(const struct hsfq *q)
{
	uint32_t at = 0;

	while (!q->nodes[at].leaf) {
		uint32_t best = 0;

		for (uint32_t n = 1; n < q->n; n++) {
			const struct hsfq_node *node = &q->nodes[n];

			if (node->parent == at && node->backlog &&
				(!best || node->start < q->nodes[best].start))
				best = n;
		}
		if (!best)
			return 0;
		at = best;
	}
	return at;
}

static inline void hsfq_serve(struct hsfq *q, uint32_t leaf, double cost)
{
	for (uint32_t n = leaf; n != 0; n = q->nodes[n].parent) {
		struct hsfq_node *node = &q->nodes[n];

		q->nodes[node->parent].virtual_ = node->start;
		node->finish = node->start + cost / node->weight;
		node->start =
			node->finish; /* if it becomes idle instead, hsfq_busy sets it again */
	}
}

#endif
