/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes come and go, and their lanes with them. Nothing here is on the hot path. */
#include "gate/node.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cost counts in fair queueing up to this many of the largest, so that one absurd request does
 * not put its tenant years behind. */
#define TREE_COST_CAP 64

static uint32_t tree_more(uint32_t room, uint32_t least)
{
	uint32_t more = room + room / 2;

	return more > least ? more : least;
}

/* Grows one array to `n` items, the new ones zero. */
#define TREE_GROW(array, had, n)                                                                   \
	tree_grow((void **)&(array), (size_t)(had) * sizeof *(array), (size_t)(n) * sizeof *(array))

static int tree_grow(void **array, size_t old_size, size_t size)
{
	void *p = pool_array(*array, old_size, size);

	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}

/* ---- entries */

static int tree_entries_room(struct weir_gate *g, uint32_t more)
{
	if (g->n_entries + more <= g->room_entries)
		return 0;
	uint32_t room = tree_more(g->room_entries, 64);

	if (TREE_GROW(g->entries, g->n_entries, room))
		return -ENOMEM;
	if (g->order != WEIR_FAIR) {
		if (TREE_GROW(g->place, g->n_entries, room))
			return -ENOMEM;
		for (uint32_t l = 0; l < g->n_lanes; l++)
			lane_place(&g->lanes[l], g->place);
	}
	g->room_entries = room;
	return 0;
}

static int tree_entry(struct weir_gate *g, uint32_t owner, uint32_t *ret_e)
{
	uint32_t e = g->free_entries;

	if (e != NODE_NIL) {
		g->free_entries = g->entries[e].next;
	} else {
		if (tree_entries_room(g, 1))
			return -ENOMEM;
		e = g->n_entries++;
	}
	g->entries[e] = (struct lane_entry){.next = LANE_NIL, .owner = owner};
	*ret_e = e;
	return 0;
}

/* A leaf's entries of the classes RESERVED and REST side by side, in one cache line: whoever passes
 * in one class has his place in the other looked at. While there is room at the end; after that they
 * are taken one by one from what was freed. */
static int tree_entry_pair(struct weir_gate *g, uint32_t leaf)
{
	uint32_t *e = g->nodes[leaf].entry;

	if (g->free_entries != NODE_NIL)
		return tree_entry(g, leaf, &e[WEIR_CLASS_REST]);
	if (tree_entries_room(g, 3))
		return -ENOMEM;
	g->n_entries += g->n_entries % 2; /* one is lost, next to a lane's */
	for (unsigned class = WEIR_CLASS_RESERVED; class <= WEIR_CLASS_REST; class ++) {
		e[class] = g->n_entries++;
		g->entries[e[class]] = (struct lane_entry){.next = LANE_NIL, .owner = leaf};
	}
	return 0;
}

void tree_entry_free(struct weir_gate *g, uint32_t e)
{
	g->entries[e].next = g->free_entries;
	g->free_entries = e;
}

void tree_orphan(struct weir_gate *g, uint32_t e)
{
	if (e == NODE_NIL)
		return;
	g->entries[e].owner = NODE_ORPHAN;
	if (g->entries[e].next == LANE_NIL)
		tree_entry_free(g, e);
}

/* ---- lanes */

static double tree_step(const struct weir_gate *g, const struct node_inner *in)
{
	return g->cost_max / in->weight_min;
}

static int tree_lane_new(struct weir_gate *g, uint32_t n, unsigned slot, uint32_t *ret_lane)
{
	uint32_t l = g->free_lanes, next_free = NODE_NIL, e = NODE_NIL;

	if (l != NODE_NIL) {
		next_free = g->lanes[l].node;
	} else {
		if (g->n_lanes == g->room_lanes) {
			uint32_t room = tree_more(g->room_lanes, 8);

			if (TREE_GROW(g->lanes, g->n_lanes, room))
				return -ENOMEM;
			g->room_lanes = room;
		}
		l = g->n_lanes;
	}
	if (n != WEIR_ROOT && tree_entry(g, l | LANE_OF_LANE, &e))
		return -ENOMEM;
	lane_init(&g->lanes[l], n, (uint8_t)slot, e, g->order != WEIR_FAIR, g->place);
	if (lane_fit(&g->lanes[l], g->entries, g->inner[n]->children + 1,
		    tree_step(g, g->inner[n]))) {
		tree_orphan(g, e);
		g->lanes[l].node = next_free;
		return -ENOMEM;
	}
	if (l == g->n_lanes)
		g->n_lanes++;
	else
		g->free_lanes = next_free;
	*ret_lane = l;
	return 0;
}

/* Lane `slot` of inner node n, and of every node above it. */
static int tree_lane(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct node_inner *in = g->inner[n];

	if (slot < NODE_PRIORITIES && !in->lane_priority) {
		in->lane_priority = malloc(NODE_PRIORITIES * sizeof *in->lane_priority);
		if (!in->lane_priority)
			return -ENOMEM;
		memset(in->lane_priority, 0xff, NODE_PRIORITIES * sizeof *in->lane_priority);
	}
	if (n != WEIR_ROOT) {
		int r = tree_lane(g, g->nodes[n].parent, slot);

		if (r)
			return r;
	}
	if (*node_lane_of(in, slot) != NODE_NIL)
		return 0;
	return tree_lane_new(g, n, slot, node_lane_of(in, slot));
}

int tree_slot(struct weir_gate *g, uint32_t n, unsigned slot)
{
	uint32_t *e = &g->nodes[n].entry[node_entry_of(slot)];
	int r = tree_lane(g, g->nodes[n].parent, slot);

	if (r || *e != NODE_NIL)
		return r;
	return slot == NODE_REST ? tree_entry_pair(g, n) : tree_entry(g, n, e);
}

static void tree_lane_free(struct weir_gate *g, uint32_t l)
{
	struct lane *lane = &g->lanes[l];
	uint32_t e;

	if (l == NODE_NIL)
		return;
	while ((e = lane_first(lane, g->entries)) != LANE_NIL) { /* orphans, or a leaf long empty */
		lane_pop(lane, g->entries);
		if (g->entries[e].owner == NODE_ORPHAN)
			tree_entry_free(g, e);
	}
	tree_orphan(g, lane->entry);
	lane_free(lane);
	lane_init(lane, NODE_NIL, 0, NODE_NIL, false, NULL);
	lane->node = g->free_lanes;
	g->free_lanes = l;
}

static int tree_fit_lane(struct weir_gate *g, const struct node_inner *in, uint32_t l)
{
	if (l == NODE_NIL)
		return 0;
	return lane_fit(
		&g->lanes[l], g->entries, in->children + g->lanes[l].members + 1, tree_step(g, in));
}

int tree_fit(struct weir_gate *g, uint32_t n)
{
	const struct node_inner *in = g->inner[n];
	int r = tree_fit_lane(g, in, in->lane[0]);

	if (!r)
		r = tree_fit_lane(g, in, in->lane[1]);
	for (unsigned s = 0; !r && in->lane_priority && s < NODE_PRIORITIES; s++)
		r = tree_fit_lane(g, in, in->lane_priority[s]);
	return r;
}

/* ---- inner nodes */

static int tree_inner(struct weir_gate *g, uint32_t n)
{
	struct node_inner *in = malloc(sizeof *in);

	if (!in)
		return -ENOMEM;
	*in = (struct node_inner){.lane = {NODE_NIL, NODE_NIL}, .weight_min = INFINITY};
	g->inner[n] = in;
	g->nodes[n].flags = (uint8_t)((g->nodes[n].flags & ~NODE_LEAF) | NODE_INNER);
	g->nodes[n].may = 0;
	return 0;
}

static bool tree_holds(const struct weir_gate *g, uint32_t n)
{
	return g->nodes[n].limits && g->nodes[n].limits->n_hold;
}

static uint8_t tree_flags_of(const struct weir_gate *g, uint32_t n)
{
	uint8_t flags = (uint8_t)(g->nodes[n].flags & ~NODE_ABOVE);

	for (uint32_t p = n; p != WEIR_ROOT;) {
		p = g->nodes[p].parent;
		if (tree_holds(g, p))
			flags |= NODE_ABOVE | NODE_CLOCKS;
	}
	return flags;
}

/* Its last child is gone: a leaf again. */
static void tree_leaf(struct weir_gate *g, uint32_t n)
{
	struct node_inner *in = g->inner[n];

	for (unsigned s = 0; in->lane_priority && s < NODE_PRIORITIES; s++)
		tree_lane_free(g, in->lane_priority[s]);
	tree_lane_free(g, in->lane[0]);
	tree_lane_free(g, in->lane[1]);
	free(in->lane_priority);
	free(in);
	g->inner[n] = NULL;
	g->nodes[n].flags =
		(uint8_t)((g->nodes[n].flags & ~(NODE_INNER | NODE_STOPPED)) | NODE_LEAF);
	g->nodes[n].flags = tree_flags_of(g, n);
}

void tree_flags(struct weir_gate *g)
{
	for (uint32_t n = 1; n < g->n_nodes; n++)
		if (g->nodes[n].flags)
			g->nodes[n].flags = tree_flags_of(g, n);
}

static size_t tree_limits_lines(uint32_t buckets)
{
	size_t size = sizeof(struct node_limits) + buckets * sizeof(struct bucket) +
		      sizeof(struct node_clocks);

	return (size + POOL_LINE - 1) / POOL_LINE;
}

struct node_limits *tree_limits(struct weir_gate *g, uint32_t buckets)
{
	return pool_get(&g->pool, tree_limits_lines(buckets));
}

void tree_limits_free(struct weir_gate *g, struct node_limits *l)
{
	if (l)
		pool_put(&g->pool, l, tree_limits_lines(l->n));
}

/* ---- room */

static uint32_t tree_words(uint32_t room, unsigned level)
{
	return (uint32_t)(((uint64_t)room + (UINT64_C(1) << (6 * (level + 1))) - 1) >>
			  (6 * (level + 1)));
}

static int tree_room(struct weir_gate *g, uint32_t room)
{
	int r = TREE_GROW(g->nodes, g->room, room);

	if (!r)
		r = TREE_GROW(g->inner, g->room, room);
	if (!r && g->order == WEIR_EDF)
		r = TREE_GROW(g->deadline, g->room, room);
	for (unsigned i = 0; !r && i < 3; i++)
		r = TREE_GROW(
			g->pending[i], g->room ? tree_words(g->room, i) : 0, tree_words(room, i));
	if (!r && g->stats) {
		r = TREE_GROW(g->stats->of, g->room, room);
		for (uint32_t n = g->room; !r && n < room; n++)
			g->stats->of[n] = NODE_NIL;
	}
	if (!r)
		r = g->room ? timer_grow(&g->timer, room) : timer_init(&g->timer, room);
	if (!r)
		g->room = room;
	return r;
}

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
	static const double cost_max[WEIR_UNITS] = {16, 256 * 1024, 100e6};
	int r = tree_stats(g, config->histograms);

	g->cost = config->cost;
	g->order = config->order;
	g->cost_max = config->cost_max ? (double)config->cost_max : cost_max[config->cost];
	g->cost_cap = g->cost_max * TREE_COST_CAP;
	g->run = config->run;
	g->run_distance = config->run_distance;
	g->credit = (double)config->credit;
	g->free_nodes = g->free_entries = g->free_lanes = NODE_NIL;
	window_set(&g->window, config->window > 0 ? config->window : 32, 0);
	if (!r)
		r = tree_room(g, config->nodes > 2 ? config->nodes : 2);
	if (!r && config->nodes > 64) { /* two entries a node, at once */
		uint32_t room = 2 * config->nodes;

		r = TREE_GROW(g->entries, 0, room);
		if (!r && g->order != WEIR_FAIR)
			r = TREE_GROW(g->place, 0, room);
		if (!r)
			g->room_entries = room;
	}
	if (!r)
		r = tree_inner(g, WEIR_ROOT);
	if (!r) {
		g->n_nodes = 1;
		g->nodes[WEIR_ROOT].parent = NODE_NIL;
		g->nodes[WEIR_ROOT].per_weight = 1;
		g->inner[WEIR_ROOT]->weight_min = 1;
		r = tree_lane(g, WEIR_ROOT, NODE_REST);
		g->inner[WEIR_ROOT]->weight_min = INFINITY;
	}
	if (!r && g->stats)
		weir_gate_drain(g); /* the first spare histograms */
	return r;
}

int weir_gate_new(const struct weir_gate_config *config, struct weir_gate **ret_gate)
{
	struct weir_gate *g;
	int r;

	if (config->cost > WEIR_UNIT_TIME || config->order > WEIR_EDF || !(config->window >= 0) ||
		config->window > WINDOW_MAX || config->nodes >= NODE_ORPHAN)
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
		if (g->inner[n])
			free(g->inner[n]->lane_priority);
		free(g->inner[n]);
	}
	for (uint32_t l = 0; l < g->n_lanes; l++)
		lane_free(&g->lanes[l]);
	if (g->stats) {
		for (uint32_t i = 0; g->stats->pairs && i < g->stats->most; i++)
			free(g->stats->pairs[i]);
		free(g->stats->pairs);
		free(g->stats->of);
		free(g->stats);
	}
	timer_free(&g->timer);
	pool_free(&g->pool);
	for (unsigned i = 0; i < 3; i++)
		free(g->pending[i]);
	free(g->nodes);
	free(g->inner);
	free(g->deadline);
	free(g->entries);
	free(g->place);
	free(g->lanes);
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
	return node->limits && node->limits->n > node->limits->n_hold ? -EINVAL : 0;
}

static int tree_index(struct weir_gate *g, uint32_t *ret_n)
{
	if (g->free_nodes != NODE_NIL) {
		*ret_n = g->free_nodes;
		g->free_nodes = g->nodes[*ret_n].parent;
		return 0;
	}
	if (g->n_nodes == g->room) {
		int r = g->room >= NODE_ORPHAN / 2 ? -ENOMEM : tree_room(g, tree_more(g->room, 16));

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
	g->nodes[n] = (struct node){.flags = NODE_LEAF,
		.parent = parent,
		.per_weight = 1,
		.priority = NODE_NO_PRIORITY,
		.entry = {NODE_NIL, NODE_NIL, NODE_NIL}};
	struct node_inner *in = g->inner[parent];

	if (g->deadline)
		g->deadline[n] = 0;
	in->children++;
	in->weight_min = fmin(in->weight_min, 1);
	r = tree_slot(g, n, NODE_REST);
	if (!r)
		r = tree_fit(g, parent);
	if (r) {
		tree_orphan(g, g->nodes[n].entry[WEIR_CLASS_REST]);
		tree_unindex(g, n);
		if (--in->children == 0 && parent != WEIR_ROOT)
			tree_leaf(g, parent);
		return r;
	}
	g->nodes[n].flags = tree_flags_of(g, n);
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
	for (unsigned i = 0; i < 3; i++)
		tree_orphan(g, node->entry[i]);
	timer_clear(&g->timer, n);
	g->pending[0][n >> 6] &= ~(UINT64_C(1) << (n & 63));
	if (g->run_node == n)
		g->run_left = 0;
	tree_limits_free(g, node->limits);
	node->limits = NULL;
	if (g->stats && g->stats->of[n] != NODE_NIL) {
		weir_gate_drain(g); /* records of n that are still in the ring */
		weir_hist_clear(&g->stats->pairs[g->stats->of[n]]->wait);
		weir_hist_clear(&g->stats->pairs[g->stats->of[n]]->device);
	}
	tree_unindex(g, n);
	if (--g->inner[parent]->children == 0 && parent != WEIR_ROOT)
		tree_leaf(g, parent);
	return 0;
}

size_t weir_gate_memory(const struct weir_gate *g)
{
	size_t bytes = sizeof *g + g->pool.bytes;

	bytes += g->room * (sizeof *g->nodes + sizeof *g->inner + sizeof(struct timer_entry));
	bytes += g->room_entries * sizeof *g->entries + g->room_lanes * sizeof *g->lanes;
	bytes += g->room / 8 + (g->deadline ? g->room * sizeof *g->deadline : 0);
	bytes += g->place ? g->room_entries * sizeof *g->place : 0;
	for (uint32_t l = 0; l < g->n_lanes; l++)
		bytes += lane_memory(&g->lanes[l]);
	for (uint32_t n = 0; n < g->n_nodes; n++)
		if (g->inner[n])
			bytes += sizeof **g->inner +
				 (g->inner[n]->lane_priority ? NODE_PRIORITIES * sizeof(uint32_t)
							     : 0);
	if (g->stats)
		bytes += sizeof *g->stats + g->room * sizeof *g->stats->of +
			 (g->stats->used + g->stats->spare) * sizeof(struct hist_pair);
	return bytes;
}
