/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting knobs: all are checked, then memory is allocated for all, and only then are they applied: no step that can
 * fail comes after the first change. */
#include "base/no-memory.h"
#include "gate/above.h"
#include "gate/kind.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KNOB_BUCKETS_MAX 64
#define KNOB_WEIGHT_MIN  (1.0 / 1024)
#define KNOB_WEIGHT_MAX  1048576.0

static int knob_refuse(struct weir_err *err, const struct weir_knob *k, const char *why)
{
	return weir_err_set(err, -EINVAL, "node %u: %s", k->node, why);
}

static int knob_check_buckets(
	const struct weir_gate *g, const struct weir_knob *k, struct weir_err *err)
{
	bool inner = g->nodes[k->node].flags & NODE_INNER;

	if (k->n_buckets > KNOB_BUCKETS_MAX)
		return knob_refuse(err, k, "more than 64 buckets");
	for (uint32_t i = 0; i < k->n_buckets; i++) {
		const char *why = bucket_check(&k->buckets[i]);

		if (!why && inner && k->buckets[i].kind != WEIR_HOLD)
			why = "only a leaf has profile, R and L buckets";
		if (why)
			return weir_err_set(
				err, -EINVAL, "node %u: bucket %u: %s", k->node, i, why);
	}
	return 0;
}

static bool knob_has(const struct weir_gate *g, const struct weir_knob *set, size_t n,
	weir_node node, enum weir_bucket_kind kind)
{
	const struct limits *l = &g->nodes[node].limits;
	bool has = kind == WEIR_RTOKENS ? l->n_r : l->n_l;

	for (size_t i = 0; i < n; i++) { /* a bucket given earlier in the same set counts */
		if (set[i].node != node || set[i].kind != WEIR_KNOB_BUCKETS)
			continue;
		has = false;
		for (uint32_t b = 0; b < set[i].n_buckets; b++)
			has |= set[i].buckets[b].kind == kind;
	}
	return has;
}

static const char *knob_check_value(
	const struct weir_gate *g, const struct weir_knob *set, size_t i)
{
	const struct weir_knob *k = &set[i];
	double v = k->value;

	switch (k->kind) {
	case WEIR_KNOB_WINDOW:
		return v >= 0 && v <= WINDOW_MAX ? NULL : "window must be between 0 and 1e6";
	case WEIR_KNOB_WINDOW_BYTES:
		return v >= 0 && v <= WINDOW_BYTES_MAX && v == floor(v)
			       ? NULL
			       : "window in bytes must be a whole number up to 2^52";
	case WEIR_KNOB_WEIGHT:
		return v >= KNOB_WEIGHT_MIN && v <= KNOB_WEIGHT_MAX
			       ? NULL
			       : "weight must be between 1/1024 and 2^20";
	case WEIR_KNOB_PRIORITY:
		return v == -1 || (v >= 0 && v < NODE_PRIORITIES && v == floor(v))
			       ? NULL
			       : "priority must be a whole number from 0 to 63, or -1 for none";
	case WEIR_KNOB_DEADLINE:
		if (g->order != WEIR_EDF)
			return "a deadline needs the order EDF";
		return v >= 0 && v < 9e18 ? NULL : "deadline must not be negative";
	case WEIR_KNOB_RGRANT:
	case WEIR_KNOB_LGRANT:
		if (!knob_has(g, set, i, k->node,
			    k->kind == WEIR_KNOB_RGRANT ? WEIR_RTOKENS : WEIR_LTOKENS))
			return "a grant needs a token bucket of its kind";
		return fabs(v) <= (double)BUCKET_SIZE_MAX ? NULL
							  : "grant must be within 2^52 tokens";
	case WEIR_KNOB_LEVEL:
		if (k->n_buckets >= g->nodes[k->node].limits.n_hold)
			return "no such hold bucket";
		return fabs(v) <= (double)BUCKET_SIZE_MAX ? NULL
							  : "level must be within 2^52 units";
	case WEIR_KNOB_RUN:
		return v >= 0 && v <= 65536 ? NULL : "run must be between 0 and 65536";
	case WEIR_KNOB_DISTANCE:
	case WEIR_KNOB_CREDIT:
		return v >= 0 && v < 9e18 ? NULL : "must not be negative";
	default:
		return "no such knob";
	}
}

static int knob_check(
	const struct weir_gate *g, const struct weir_knob *set, size_t i, struct weir_err *err)
{
	const struct weir_knob *k = &set[i];
	const char *why;

	if (k->node >= g->n_nodes || !g->nodes[k->node].flags)
		return knob_refuse(err, k, "no such node");
	bool leaf = g->nodes[k->node].flags & NODE_LEAF;

	switch (k->kind) {
	case WEIR_KNOB_BUCKETS:
		return knob_check_buckets(g, k, err);
	case WEIR_KNOB_LEVEL:
		break;
	case WEIR_KNOB_WEIGHT:
		if (k->node == WEIR_ROOT)
			return knob_refuse(err, k, "the root has no weight");
		break;
	case WEIR_KNOB_PRIORITY:
	case WEIR_KNOB_DEADLINE:
	case WEIR_KNOB_RGRANT:
	case WEIR_KNOB_LGRANT:
		if (!leaf)
			return knob_refuse(err, k, "only a leaf has this knob");
		break;
	default:
		if (k->node != WEIR_ROOT)
			return knob_refuse(
				err, k, "this knob belongs to the whole gate: set it at the root");
	}
	why = knob_check_value(g, set, i);
	return why ? knob_refuse(err, k, why) : 0;
}

/* ---- memory */

/* A node's buckets as a knob sets them. */
struct knob_limits {
	struct limits l;
	struct bucket own[LIMITS_OWN];
	struct profile *profile;
};

/* Write the buckets of one kind to `to` and return how many there are. */
static uint8_t knob_buckets_of(
	const struct weir_knob *k, enum weir_bucket_kind kind, struct bucket *to)
{
	uint8_t n = 0;

	for (uint32_t i = 0; i < k->n_buckets; i++)
		if (k->buckets[i].kind == kind)
			bucket_init(&to[n++], &k->buckets[i]);
	return n;
}

static int knob_profile(
	struct weir_gate *g, const struct weir_knob *k, weir_time now, struct profile **ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n_buckets; i++)
		n += k->buckets[i].kind == WEIR_PROFILE;
	if (!n)
		return 0;
	*ret = pool_get(&g->pool, profile_lines(n));
	if (!*ret)
		return -ENOMEM;
	(*ret)->stamp = now;
	(*ret)->n = knob_buckets_of(k, WEIR_PROFILE, (*ret)->b);
	return 0;
}

static int knob_limits(
	struct weir_gate *g, const struct weir_knob *k, weir_time now, struct knob_limits *ret)
{
	struct limits *l = &ret->l;

	if (knob_profile(g, k, now, &ret->profile))
		return -ENOMEM;
	l->n = (uint8_t)(k->n_buckets - (ret->profile ? ret->profile->n : 0));
	l->b = limits_own(l) ? ret->own : tree_buckets(g, l->n);
	if (!l->b)
		return -ENOMEM;
	l->r = l->n_hold = knob_buckets_of(k, WEIR_HOLD, l->b);
	l->n_r = knob_buckets_of(k, WEIR_RTOKENS, &l->b[l->r]);
	l->l = (uint8_t)(l->r + l->n_r);
	l->n_l = knob_buckets_of(k, WEIR_LTOKENS, &l->b[l->l]);
	l->stamp = l->r_stamp = now;
	l->two = l->n == 1u + l->n_r && l->n_hold == 1 && l->n_r <= 1 &&
		 l->b[0].ops == WEIR_OPS_ALL && (!l->n_r || l->b[1].ops == WEIR_OPS_ALL);
	return 0;
}

/* Create the lanes that the knob lets a leaf wait in. */
static int knob_reserve(
	struct weir_gate *g, const struct weir_knob *k, const struct knob_limits *new)
{
	int r = 0;

	if (k->kind == WEIR_KNOB_PRIORITY && k->value >= 0)
		return tree_slot(g, k->node, (unsigned)k->value);
	if (k->kind != WEIR_KNOB_BUCKETS)
		return 0;
	if (new->l.n_r)
		r = tree_slot(g, k->node, NODE_RESERVED);
	if (!r && new->profile)
		r = tree_slot(g, k->node, NODE_PRIORITIES - 1);
	return r;
}

/* ---- apply */

/* Let the k-th bucket of a kind, unit and mask take over the level of the k-th such bucket before. Hold and L-buckets
 * have the levels of `late` ns ago, which passed at the old rate. */
static void knob_inherit(
	struct bucket *new, unsigned n, const struct bucket *old, unsigned n_old, weir_time late)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < n; i++) {
		struct bucket *b = &new[i];

		for (unsigned j = 0; j < n_old; j++) {
			const struct bucket *o = &old[j];

			if ((taken >> j & 1) || o->kind != b->kind || o->unit != b->unit ||
				o->ops != b->ops)
				continue;
			bucket_inherit(b, o, o->kind == WEIR_RTOKENS ? 0 : late);
			taken |= UINT64_C(1) << j;
			break;
		}
	}
}

/* Replace a node's buckets. Until now the old levels grow at the old rates. */
static void knob_take_over(
	struct weir_gate *g, struct node *node, struct knob_limits *new, weir_time now)
{
	struct limits *old = &node->limits;
	weir_time late = 0;

	if (old->n) { /* a tenant that waits loses nothing (law 4) */
		new->l.stamp = limits_late(old->stamp, now);
		limits_fill(old, new->l.stamp);
		limits_fill_r(old, now);
		late = now - new->l.stamp;
	}
	knob_inherit(new->l.b, new->l.n, old->b, old->n, late);
	if (node->profile && new->profile) {
		profile_fill(node->profile, now);
		knob_inherit(
			new->profile->b, new->profile->n, node->profile->b, node->profile->n, 0);
	}
	tree_limits_free(g, old, node->profile);
	node->limits = new->l;
	node->profile = new->profile;
	if (node->profile) {
		profile_round(node->profile);
		profile_changed(node->profile);
	}
	if (limits_own(&new->l)) {
		memcpy(node->own, new->own, sizeof node->own);
		node->limits.b = node->own;
	}
	limits_pair(&node->limits);
	node->flags &= (uint8_t)~NODE_APART;
	if (node->profile || !limits_own(&node->limits))
		node->flags |= NODE_APART;
}

static void knob_buckets(struct weir_gate *g, uint32_t n, struct knob_limits *new, weir_time now)
{
	struct node *node = &g->nodes[n];

	if (new->profile && node->priority == NODE_NO_PRIORITY)
		node->priority = NODE_PRIORITIES - 1;
	g->ranked = g->ranked || node->priority != NODE_NO_PRIORITY;
	knob_take_over(g, node, new, now);
	if (!(node->flags & NODE_INNER))
		kind_sort(g, n, now);
	else if (new->l.n_hold)
		above_begin(g, n);
}

static void knob_priority(struct weir_gate *g, uint32_t n, double value)
{
	struct node *node = &g->nodes[n];
	uint8_t priority = value < 0 ? NODE_NO_PRIORITY : (uint8_t)value;

	if (priority == node->priority)
		return;
	if (g->run_node == n)
		g->run_left = 0;
	stand_forget(g, n);
	node->priority = priority;
	g->ranked = g->ranked || priority != NODE_NO_PRIORITY;
}

static void knob_grant(struct limits *l, enum weir_knob_kind kind, double value, weir_time now)
{
	unsigned from = kind == WEIR_KNOB_RGRANT ? l->r : l->l;
	unsigned n = kind == WEIR_KNOB_RGRANT ? l->n_r : l->n_l;

	limits_fill(l, limits_late(l->stamp, now));
	limits_fill_r(l, now);
	for (unsigned i = from; i < from + n; i++)
		bucket_grant(&l->b[i], llround(value));
	limits_pair(l);
}

/* The levels are those of `late` ns ago: the bucket has this level now. */
static void knob_level(struct limits *l, unsigned at, double level, weir_time now)
{
	struct bucket *b = &l->b[at];
	double whole = floor(level);

	limits_fill(l, limits_late(l->stamp, now));
	b->lack = bucket_units(b->size - (int64_t)whole) -
		  (int64_t)((level - whole) * (double)BUCKET_UNIT) +
		  (bucket_parts)b->rate * (now - l->stamp);
	limits_pair(l);
}

/* Change the tags of node n for its new weight. The node keeps its place among its siblings, scaled to the new
 * weight; so the levels above do not change. If it waits, it is in no group now. */
static void knob_reweigh(struct weir_gate *g, uint32_t n, double before)
{
	struct node *node = &g->nodes[n];
	bool inner = node->flags & NODE_INNER;
	const struct node_inner *in = (inner ? node : &g->nodes[node->parent])->inner;

	for (unsigned s = in->priority ? 0 : NODE_RESERVED; s <= NODE_REST; s++) {
		struct lane *above = node_lane(g, node->parent, s);
		struct lane *own = inner ? node_lane(g, n, s) : NULL;

		if (own)
			lane_reweigh(above, &g->home, &own->own, before, node->weight);
		else if (!inner && above && (s >= NODE_RESERVED || s == node->priority))
			lane_reweigh(above, &g->home, node_entry(node, node_class(s)), before,
				node->weight);
	}
}

static void knob_weight(struct weir_gate *g, uint32_t n, double weight)
{
	struct node *node = &g->nodes[n];
	double before = node->weight;

	node->weight = (float)weight;
	if (g->order != WEIR_FAIR)
		return;
	knob_reweigh(g, n, before);
	if (node->flags & NODE_INNER)
		above_rejoin_all(g, n);
}

static void knob_turn(
	struct weir_gate *g, const struct weir_knob *k, struct knob_limits *new, weir_time now)
{
	switch (k->kind) {
	case WEIR_KNOB_WINDOW:
		window_update(&g->window, now, g->in_flight);
		window_set(&g->window, k->value, now);
		gate_window(g, now);
		break;
	case WEIR_KNOB_WEIGHT:
		knob_weight(g, k->node, k->value);
		break;
	case WEIR_KNOB_PRIORITY:
		knob_priority(g, k->node, k->value);
		break;
	case WEIR_KNOB_DEADLINE:
		g->deadline[k->node] = (weir_time)k->value;
		break;
	case WEIR_KNOB_BUCKETS:
		knob_buckets(g, k->node, new, now);
		break;
	case WEIR_KNOB_RGRANT:
	case WEIR_KNOB_LGRANT:
		knob_grant(&g->nodes[k->node].limits, k->kind, k->value, now);
		break;
	case WEIR_KNOB_LEVEL:
		knob_level(&g->nodes[k->node].limits, k->n_buckets, k->value, now);
		break;
	case WEIR_KNOB_RUN:
		g->run = (uint32_t)k->value;
		g->run_left = 0;
		tree_shape(g);
		break;
	case WEIR_KNOB_DISTANCE:
		g->run_distance = (uint64_t)k->value;
		break;
	case WEIR_KNOB_CREDIT:
		g->credit = k->value;
		break;
	case WEIR_KNOB_WINDOW_BYTES:
		g->window_bytes = (uint64_t)k->value;
		tree_shape(g);
		gate_window(g, now);
		break;
	}
}

int weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs, size_t n,
	struct weir_err *err)
{
	struct knob_limits *limits = calloc(n ? n : 1, sizeof *limits);
	int r = limits ? 0 : no_memory(err);

	if (now > g->now)
		g->now = now;
	now = g->now;
	for (size_t i = 0; !r && i < n; i++)
		r = knob_check(g, knobs, i, err);
	for (size_t i = 0; !r && i < n; i++) {
		if ((knobs[i].kind == WEIR_KNOB_BUCKETS &&
			    knob_limits(g, &knobs[i], now, &limits[i])) ||
			knob_reserve(g, &knobs[i], &limits[i]))
			r = no_memory(err);
	}
	if (r) {
		for (size_t i = 0; limits && i < n; i++)
			tree_limits_free(g, &limits[i].l, limits[i].profile);
		free(limits);
		return r;
	}
	stats_first_end(g, now);
	gate_catch_up(g, now);
	for (size_t i = 0; i < n; i++)
		knob_turn(g, &knobs[i], &limits[i], now);
	free(limits);
	for (size_t i = 0; i < n; i++) {
		if (g->nodes[knobs[i].node].flags & NODE_INNER)
			above_release(g, knobs[i].node, now);
		else
			stand_update(g, knobs[i].node, now);
		above_release_all(g, knobs[i].node, now);
	}
	g->too_large = 0; /* it may be another request's turn */
	return 0;
}
