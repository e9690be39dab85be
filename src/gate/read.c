/* SPDX-License-Identifier: BSD-3-Clause */
/* Read back the tree, knobs, buckets and their levels. Nothing here changes the gate. */
#include "gate/node.h"
#include <errno.h>
#include <math.h>

static const struct node *read_node(const struct weir_gate *g, weir_node n)
{
	return n < g->n_nodes && g->nodes[n].flags ? &g->nodes[n] : NULL;
}

/* ---- the tree */

weir_node weir_gate_next_node(const struct weir_gate *g, weir_node after)
{
	/* (The largest number + 1 wraps to the root, where a walk ends.) */
	for (weir_node n = after + 1; n < g->n_nodes; n++)
		if (g->nodes[n].flags)
			return n;
	return WEIR_ROOT;
}

int weir_gate_get_parent(const struct weir_gate *g, weir_node n, weir_node *ret_parent)
{
	const struct node *node = read_node(g, n);

	if (!node || n == WEIR_ROOT)
		return -EINVAL;
	*ret_parent = node->parent;
	return 0;
}

bool weir_gate_is_leaf(const struct weir_gate *g, weir_node n)
{
	const struct node *node = read_node(g, n);

	return node && (node->flags & NODE_LEAF);
}

/* ---- knobs with a value */

/* Return the decimal number that a weight, which is kept as a float, stands for, if there is one. */
static double read_weight(float weight)
{
	double decimal = rint((double)weight * 1e7) / 1e7;

	return (float)decimal == weight ? decimal : (double)weight;
}

static int read_root(const struct weir_gate *g, enum weir_knob_kind kind, double *ret_value)
{
	switch (kind) {
	case WEIR_KNOB_WINDOW:
		*ret_value = (double)g->window.size / (double)WINDOW_ONE;
		return 0;
	case WEIR_KNOB_WINDOW_BYTES:
		*ret_value = (double)g->window_bytes;
		return 0;
	case WEIR_KNOB_RUN:
		*ret_value = g->run;
		return 0;
	case WEIR_KNOB_DISTANCE:
		*ret_value = (double)g->run_distance;
		return 0;
	case WEIR_KNOB_CREDIT:
		*ret_value = g->credit;
		return 0;
	default:
		return -EINVAL;
	}
}

int weir_gate_get(
	const struct weir_gate *g, weir_node n, enum weir_knob_kind kind, double *ret_value)
{
	const struct node *node = read_node(g, n);

	if (n == WEIR_ROOT)
		return read_root(g, kind, ret_value);
	if (!node)
		return -EINVAL;
	bool leaf = node->flags & NODE_LEAF;

	if (kind == WEIR_KNOB_WEIGHT)
		*ret_value = read_weight(node->weight);
	else if (kind == WEIR_KNOB_PRIORITY && leaf)
		*ret_value = node->priority == NODE_NO_PRIORITY ? -1 : node->priority;
	else if (kind == WEIR_KNOB_DEADLINE && leaf && g->deadline)
		*ret_value = (double)g->deadline[n];
	else
		return -EINVAL;
	return 0;
}

/* ---- buckets */

struct read_buckets {
	struct weir_bucket_spec *specs;
	double *levels;
	uint32_t max, n; /* room; and number of buckets */
};

/* Add n buckets, whose levels are valid for `span` ago. */
static void read_some(struct read_buckets *to, const struct bucket *b, unsigned n, weir_time span)
{
	for (unsigned i = 0; i < n; i++, to->n++) {
		struct bucket at = b[i];

		bucket_fill(&at, span);
		if (to->n >= to->max)
			continue;
		if (to->specs)
			to->specs[to->n] = (struct weir_bucket_spec){.kind = at.kind,
				.unit = at.unit,
				.ops = at.ops,
				.rate = (double)at.rate / (double)BUCKET_RATE_ONE,
				.size = (double)at.size};
		if (to->levels)
			to->levels[to->n] = (double)bucket_level(&at) / (double)BUCKET_UNIT;
	}
}

/* Add the buckets of a profile, which keeps the levels of narrow ones separately. */
static void read_profile(struct read_buckets *to, const struct profile *p, weir_time now)
{
	weir_time span = now > p->stamp ? now - p->stamp : 0;

	for (unsigned i = 0; i < p->n; i++) {
		struct bucket b = p->b[i];

		b.lack = profile_lack(p, i);
		read_some(to, &b, 1, span);
	}
}

int weir_gate_get_buckets(const struct weir_gate *g, weir_time now, weir_node n,
	struct weir_bucket_spec *ret_specs, double *ret_levels, uint32_t max)
{
	struct read_buckets to = {.specs = ret_specs, .levels = ret_levels, .max = max};
	const struct node *node = read_node(g, n);

	if (!node)
		return -EINVAL;
	const struct limits *l = &node->limits;

	if (now < g->now)
		now = g->now;
	read_some(&to, l->b, l->n_hold, now - l->stamp);
	if (node->profile)
		read_profile(&to, node->profile, now);
	read_some(&to, &l->b[l->r], l->n_r, now - l->r_stamp);
	read_some(&to, &l->b[l->l], l->n_l, now - l->stamp);
	return (int)to.n;
}
