/* SPDX-License-Identifier: BSD-3-Clause */
/* Adding and removing nodes and their lanes. Nothing here is on the hot path. */
#include "gate/above.h"
#include "gate/kind.h"
#include "gate/pending.h"
#include "gate/room.h"
#include <errno.h>
#include <stdlib.h>

/* ---- lanes */

/* Get an unused lane: one that was freed, or a new one. */
static int tree_lane_get(struct weir_gate *g, struct lane **ret_lane)
{
	if (g->free_lanes != NODE_NIL) {
		*ret_lane = g->lanes[g->free_lanes];
		g->free_lanes = (*ret_lane)->node;
		return 0;
	}
	if (g->n_lanes == g->room_lanes) {
		uint32_t room = room_more(g->room_lanes, 8);

		if (room_places(g, room) || ROOM_GROW(g->lanes, g->n_lanes, room))
			return -ENOMEM;
		g->room_lanes = room;
		g->home.lanes = g->lanes;
	}
	struct lane *lane = pool_array(NULL, 0, sizeof *lane);

	if (!lane)
		return -ENOMEM;
	lane->number = g->n_lanes;
	g->lanes[g->n_lanes++] = lane;
	*ret_lane = lane;
	return 0;
}

static void tree_lane_put(struct weir_gate *g, struct lane *lane)
{
	uint32_t number = lane->number;

	lane_free(lane);
	lane_init(lane, number, g->free_lanes, 0, 0, false, NULL);
	g->free_lanes = number;
}

static int tree_lane_new(struct weir_gate *g, uint32_t n, unsigned slot, struct lane **ret_lane)
{
	static const uint32_t offset[] = {offsetof(struct node, entry_priority),
		offsetof(struct node, entry_reserved), offsetof(struct node, entry_rest)};
	const struct node_inner *in = g->nodes[n].inner;
	struct lane *lane;

	if (tree_lane_get(g, &lane))
		return -ENOMEM;
	lane_init(lane, lane->number, n, (uint8_t)slot, offset[node_class(slot)],
		g->order != WEIR_FAIR, g->place[node_class(slot)]);
	if (lane_fit(lane, in->children + 1)) {
		tree_lane_put(g, lane);
		return -ENOMEM;
	}
	*ret_lane = lane;
	return 0;
}

/* Create lane `slot` of inner node n, and of every node above it, where missing. */
static int tree_lane(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct node_inner *in = g->nodes[n].inner;

	if (slot < NODE_PRIORITIES && !in->priority) {
		in->priority = calloc(NODE_PRIORITIES, sizeof(*in->priority));
		if (!in->priority)
			return -ENOMEM;
	}
	if (n != WEIR_ROOT) {
		int r = tree_lane(g, g->nodes[n].parent, slot);

		if (r)
			return r;
	}
	if (*node_lane_of(in, slot))
		return 0;
	return tree_lane_new(g, n, slot, node_lane_of(in, slot));
}

int tree_slot(struct weir_gate *g, uint32_t n, unsigned slot)
{
	return tree_lane(g, g->nodes[n].parent, slot);
}

/* Free a lane whose children are all gone. */
static void tree_lane_free(struct weir_gate *g, uint32_t n, struct lane *lane)
{
	if (!lane)
		return;
	if (lane->own.group != LANE_NONE && lane->keyed)
		lane_key_out(node_lane(g, g->nodes[n].parent, lane->slot), &lane->own,
			lane->number | LANE_OF_LANE);
	tree_lane_put(g, lane);
}

static int tree_fit_lane(const struct node_inner *in, struct lane *lane)
{
	return lane ? lane_fit(lane, in->children + 1) : 0;
}

/* Fit the lanes of an inner node to the number of its children. */
static int tree_fit(const struct node_inner *in)
{
	int r = tree_fit_lane(in, in->lane[0]);

	if (!r)
		r = tree_fit_lane(in, in->lane[1]);
	for (unsigned s = 0; !r && in->priority && s < NODE_PRIORITIES; s++)
		r = tree_fit_lane(in, in->priority[s]);
	return r;
}

/* ---- inner nodes */

/* Remove a leaf without requests from the sets of leaves to be checked, before it ceases to be one. */
static void tree_forget(struct weir_gate *g, uint32_t n)
{
	g->nodes[n].may = 0;
	pending_remove(g, n);
	if (g->run_node == n)
		g->run_left = 0;
}

void tree_shape(struct weir_gate *g)
{
	g->simple = g->order == WEIR_FAIR && g->run < 2 && !g->above && !g->window_bytes;
	g->flat = g->simple && g->n_inner == 1;
}

static int tree_inner(struct weir_gate *g, uint32_t n)
{
	struct node *node = &g->nodes[n];
	struct node_inner *in = calloc(1, sizeof *in);

	if (!in)
		return -ENOMEM;
	in->held = node->held;
	tree_forget(g, n);
	node->inner = in;
	node->flags = (uint8_t)((node->flags & ~(NODE_LEAF | NODE_SPLIT)) | NODE_INNER);
	if (node->limits.n_hold)
		above_begin(g, n);
	g->n_inner++;
	tree_shape(g);
	return 0;
}

/* Make a node whose last child is gone a leaf again. */
static void tree_leaf(struct weir_gate *g, uint32_t n)
{
	struct node *node = &g->nodes[n];
	struct node_inner *in = node->inner;

	for (unsigned s = 0; in->priority && s < NODE_PRIORITIES; s++)
		tree_lane_free(g, n, in->priority[s]);
	tree_lane_free(g, n, in->lane[0]);
	tree_lane_free(g, n, in->lane[1]);
	node->held = in->held;
	node->head = NULL;
	free(in->priority);
	free(in);
	node->flags = (uint8_t)((node->flags & ~(NODE_INNER | NODE_STOPPED)) | NODE_LEAF);
	g->n_inner--;
	tree_shape(g);
	kind_sort(g, n, g->now);
}

/* ---- buckets that do not fit in their node */

static size_t tree_lines(uint32_t buckets)
{
	return (buckets * sizeof(struct bucket) + POOL_LINE - 1) / POOL_LINE;
}

struct bucket *tree_buckets(struct weir_gate *g, uint32_t n)
{
	return pool_get(&g->pool, tree_lines(n));
}

void tree_limits_free(struct weir_gate *g, struct limits *l, struct profile *p)
{
	if (l->b && !limits_own(l))
		pool_put(&g->pool, l->b, tree_lines(l->n));
	if (p)
		pool_put(&g->pool, p, profile_lines(p->n));
}

/* ---- a gate */

static int tree_stats(struct weir_gate *g, uint32_t histograms)
{
	if (!histograms)
		return 0;
	g->stats = calloc(1, sizeof *g->stats);
	if (!g->stats)
		return -ENOMEM;
	g->stats->most = histograms;
	g->stats->pairs = calloc(histograms, sizeof *g->stats->pairs);
	return g->stats->pairs ? 0 : -ENOMEM;
}

static int tree_start(struct weir_gate *g, const struct weir_gate_config *config)
{
	int r = tree_stats(g, config->histograms);

	g->cost = config->cost;
	g->order = config->order;
	g->home.unit = g->cost == WEIR_UNIT_REQUESTS ? LANE_UNIT_REQUESTS : LANE_UNIT;
	g->run = config->run;
	g->run_distance = config->run_distance;
	g->credit = (double)config->credit;
	g->free_nodes = g->free_lanes = NODE_NIL;
	g->first = NODE_NIL;
	g->window_bytes = config->window_bytes;
	window_set(&g->window, config->window > 0 ? config->window : 32, 0);
	if (!r)
		r = room_fit(g, config->nodes > 2 ? config->nodes : 2);
	if (!r) {
		struct node *root = &g->nodes[WEIR_ROOT];

		*root = (struct node){
			.parent = NODE_NIL, .weight = 1, .timer.tick = -1, .limits.b = root->own};
		g->apart[WEIR_ROOT] = (struct node_apart){0};
		r = tree_inner(g, WEIR_ROOT);
	}
	if (!r) {
		g->n_nodes = 1;
		r = tree_lane(g, WEIR_ROOT, NODE_REST);
	}
	if (!r && g->stats)
		weir_gate_drain(g); /* allocate the first spare histograms */
	return r;
}

int weir_gate_new(const struct weir_gate_config *config, struct weir_gate **ret_gate)
{
	struct weir_gate *g;
	int r;

	if (config->cost > WEIR_UNIT_TIME || config->order > WEIR_EDF || !(config->window >= 0) ||
		config->window > WINDOW_MAX || (double)config->window_bytes > WINDOW_BYTES_MAX ||
		config->nodes >= NODE_MOST)
		return -EINVAL;
	g = calloc(1, sizeof *g);
	if (!g)
		return -ENOMEM;
	r = tree_start(g, config);
	if (r) {
		weir_gate_free(g);
		return r;
	}
	*ret_gate = g;
	return 0;
}

void weir_gate_free(struct weir_gate *g)
{
	if (!g)
		return;
	for (uint32_t n = 0; n < g->n_nodes; n++) {
		if (!(g->nodes[n].flags & NODE_INNER))
			continue;
		free(g->nodes[n].inner->priority);
		free(g->nodes[n].inner);
	}
	for (uint32_t l = 0; l < g->n_lanes; l++) {
		lane_free(g->lanes[l]);
		pool_array_free(g->lanes[l]);
	}
	if (g->stats) {
		for (uint32_t i = 0; g->stats->pairs && i < g->stats->most; i++)
			free(g->stats->pairs[i]);
		free(g->stats->pairs);
		pool_array_free(g->stats->of);
		free(g->stats);
	}
	calendar_free(&g->timer);
	pool_free(&g->pool);
	for (unsigned i = 0; i < 3; i++) {
		pool_array_free(g->pending[i]);
		pool_array_free(g->place[i]);
	}
	pool_array_free(g->ahead.node);
	pool_array_free(g->nodes);
	pool_array_free(g->apart);
	pool_array_free(g->deadline);
	pool_array_free(g->lanes);
	free(g);
}

/* ---- add and remove */

static int tree_parent_check(const struct weir_gate *g, weir_node parent)
{
	unsigned depth = 0;

	if (parent >= g->n_nodes || !g->nodes[parent].flags)
		return -EINVAL;
	for (uint32_t p = parent; p != WEIR_ROOT; p = g->nodes[p].parent)
		if (++depth >= NODE_DEPTH_MAX)
			return -EINVAL;
	const struct node *node = &g->nodes[parent];

	if (node->flags & NODE_INNER)
		return 0;
	if (node->queued || node->in_flight)
		return -EBUSY;
	return node->profile || node->limits.n > node->limits.n_hold ? -EINVAL : 0;
}

static int tree_index(struct weir_gate *g, uint32_t *ret_n)
{
	if (g->free_nodes != NODE_NIL) {
		*ret_n = g->free_nodes;
		g->free_nodes = g->nodes[*ret_n].parent;
		return 0;
	}
	if (g->n_nodes == g->room) {
		int r = g->room >= NODE_MOST / 2 ? -ENOMEM : room_fit(g, room_more(g->room, 16));

		if (r)
			return r;
	}
	*ret_n = g->n_nodes++;
	return 0;
}

static void tree_unindex(struct weir_gate *g, uint32_t n)
{
	g->nodes[n].flags = 0;
	g->nodes[n].parent = g->free_nodes;
	g->free_nodes = n;
}

int weir_gate_reserve(struct weir_gate *g, uint32_t more)
{
	uint64_t room = (uint64_t)g->n_nodes + more;

	if (room >= NODE_MOST / 2)
		return -ENOMEM;
	return room > g->room ? room_fit(g, (uint32_t)room) : 0;
}

int weir_gate_add(struct weir_gate *g, weir_node parent, weir_node *ret_node)
{
	uint32_t n;
	int r = tree_parent_check(g, parent);

	if (!r)
		r = tree_index(g, &n);
	if (r)
		return r;
	if (g->nodes[parent].flags & NODE_LEAF)
		r = tree_inner(g, parent);
	if (r) {
		tree_unindex(g, n);
		return r;
	}
	struct node *node = &g->nodes[n];
	struct node_inner *in = g->nodes[parent].inner;

	*node = (struct node){.flags = NODE_LEAF,
		.parent = parent,
		.weight = 1,
		.priority = NODE_NO_PRIORITY,
		.entry_priority.group = LANE_NONE,
		.entry_reserved.group = LANE_NONE,
		.entry_rest.group = LANE_NONE,
		.timer.tick = -1,
		.limits.b = node->own};
	g->apart[n] = (struct node_apart){0};
	if (g->deadline)
		g->deadline[n] = 0;
	in->children++;
	r = tree_slot(g, n, NODE_REST);
	if (!r)
		r = tree_fit(in);
	if (r) {
		tree_unindex(g, n);
		if (--in->children == 0 && parent != WEIR_ROOT)
			tree_leaf(g, parent);
		return r;
	}
	*ret_node = n;
	return 0;
}

int weir_gate_remove(struct weir_gate *g, weir_node n)
{
	if (n == WEIR_ROOT || n >= g->n_nodes || !g->nodes[n].flags)
		return -EINVAL;
	struct node *node = &g->nodes[n];
	uint32_t parent = node->parent;

	if ((node->flags & NODE_INNER) || node->queued || node->in_flight)
		return -EBUSY;
	stand_forget(g, n);
	timer_clear(&g->timer, n);
	tree_forget(g, n);
	tree_limits_free(g, &node->limits, node->profile);
	node->profile = NULL;
	node->limits = (struct limits){.b = node->own};
	if (g->stats)
		weir_gate_drain(
			g); /* records of n in the ring must not count for the next user of its number */
	if (g->stats && g->stats->of[n] != NODE_NIL) {
		weir_hist_clear(&g->stats->pairs[g->stats->of[n]]->wait);
		weir_hist_clear(&g->stats->pairs[g->stats->of[n]]->device);
	}
	tree_unindex(g, n);
	if (--g->nodes[parent].inner->children == 0 && parent != WEIR_ROOT)
		tree_leaf(g, parent);
	return 0;
}
