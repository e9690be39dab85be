/* SPDX-License-Identifier: BSD-3-Clause */
/* shares: the division of a link among the nodes of a tree, by control/parley/waterfill.h. */
#include "serve/shape/tree.h"
#include "control/parley/waterfill.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ARRAYS 13

struct order { /* breadth first: the link, then nodes */
	size_t n;
	uint32_t *node;         /* of the tree; [0]: the link, and not used */
	uint32_t *parent;       /* of the order: those with children */
	uint32_t *first, *many; /* by place in the order: the children */
	size_t parents;
};

/* Append the children of a node of the tree; of the link: those without a parent. */
static void append_children(const struct tree *t, size_t at, struct order *o)
{
	uint32_t of = o->node[at];

	o->first[at] = (uint32_t)o->n;
	for (size_t i = at ? of + 1 : 0; i < t->n; i++)
		if (t->nodes[i].parent == (at ? of : 0))
			o->node[o->n++] = (uint32_t)i;
	o->many[at] = (uint32_t)o->n - o->first[at];
	if (o->many[at])
		o->parent[o->parents++] = (uint32_t)at;
}

static int make_order(const struct tree *t, struct order *o)
{
	size_t n = t->n + 1;
	uint32_t *all = calloc(4 * n, sizeof(*all));

	if (!all)
		return -ENOMEM;
	*o = (struct order){
		.n = 1, .node = all, .parent = all + n, .first = all + 2 * n, .many = all + 3 * n};
	append_children(t, 0, o);
	for (size_t at = 1; at < o->n; at++)
		if (!t->nodes[o->node[at]].leaf)
			append_children(t, at, o);
	return 0;
}

int tree_shares(const struct tree *t, double capacity, const double *demand, double *ret)
{
	size_t n = t->n + 1;
	double *a = calloc(ARRAYS * n, sizeof(*a));
	struct order o = {0};
	int r = a ? make_order(t, &o) : -ENOMEM;
	double *max = a, *weight = a + n, *min = a + 2 * n, *least = a + 3 * n, *want = a + 4 * n,
	       *rate = a + 5 * n;
	struct waterfill_tree w = {.all = {.n = n,
					   .min = least,
					   .max = max,
					   .demand = want,
					   .weight = weight,
					   .rate = rate,
					   .base = a + 6 * n,
					   .room = a + 7 * n,
					   .kept = a + 8 * n},
		.parent = o.parent,
		.parents = o.parents,
		.first = o.first,
		.many = o.many,
		.min = min,
		.least = least,
		.want = want,
		.given = a + 10 * n};

	if (r == 0) {
		max[0] = INFINITY;
		weight[0] = 1;
		for (size_t i = 1; i < n; i++) {
			const struct tree_node *of = &t->nodes[o.node[i]];

			max[i] = of->max;
			weight[i] = of->weight;
			min[i] = least[i] = of->min;
			want[i] = demand ? demand[o.node[i]] : INFINITY;
		}
		waterfill_tree(&w, capacity);
		for (size_t i = 1; i < n; i++)
			ret[o.node[i]] = rate[i];
	}
	free(o.node);
	free(a);
	return r;
}
