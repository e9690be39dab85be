/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/tree.h"
#include "base/no-memory.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST   1000.0 /* bytes/s: HTB takes no rate of 0 */
#define SEGMENT 100e-6 /* s that the largest segment takes */
#define BURST   1e-3   /* s at a class's rate: a timer may be that late */
#define QUEUE   0.1    /* s */
#define ENDLESS 125e9  /* bytes/s: 1 Tbit/s, above any link */

/* ---- nodes */

/* Return true if the tenant, or one below it, is a service. */
static bool has_service(const struct weir_policy *p, size_t tenant)
{
	if (p->tenants[tenant].net)
		return true;
	for (int c = p->tenants[tenant].first_child; c >= 0; c = p->tenants[c].next_sibling)
		if (has_service(p, (size_t)c))
			return true;
	return false;
}

static void add_node(
	struct tree *t, const struct weir_policy *p, size_t tenant, const uint16_t *numbers)
{
	const struct weir_tenant *of = &p->tenants[tenant];
	struct tree_node *n = &t->nodes[t->n++];

	*n = (struct tree_node){.path = of->path,
		.tenant = tenant,
		.parent = of->parent >= 0 ? numbers[of->parent] : 0,
		.leaf = of->first_child < 0,
		.weight = 1,
		.max = INFINITY};
	if (n->parent)
		n->depth = t->nodes[n->parent].depth + 1;
	if (of->net) {
		const struct policy_net_share *s =
			&of->net->share[POLICY_NET_MACHINE][POLICY_NET_OUT];

		n->weight = s->weight;
		n->min = s->min;
		n->max = s->max;
		n->burst = of->net->burst;
	}
}

/* Raise the min of each node to its children's. */
static int add_up(struct tree *t)
{
	double *mins = calloc(t->n, sizeof(*mins)); /* of the children; of node 0: of the top */

	for (size_t i = t->n; mins && i-- > 1;) {
		struct tree_node *n = &t->nodes[i];

		n->min = fmax(n->min, mins[i]);
		mins[n->parent] += n->min;
	}
	free(mins);
	return mins ? 0 : -ENOMEM;
}

/* The least load that a bound of completion times allows. */
static double load_of(const struct weir_policy *p)
{
	double rate = policy_net_capacity(p->network, POLICY_NET_MACHINE, POLICY_NET_OUT), load = 1;

	for (size_t i = 0; rate < INFINITY && i < p->n_tenants; i++)
		if (p->tenants[i].net)
			load = fmin(load,
				policy_net_bounded(&p->tenants[i].net->share[POLICY_NET_MACHINE]
									    [POLICY_NET_OUT],
					rate) /
					rate);
	return load;
}

static int fill(
	struct tree *t, const struct weir_policy *p, uint16_t *numbers, struct weir_err *err)
{
	t->nodes[t->n++] =
		(struct tree_node){.path = "", .leaf = true, .weight = 1, .max = INFINITY};
	for (size_t i = 0; i < p->n_tenants; i++) {
		if (!has_service(p, i))
			continue;
		if (t->n == SHAPE_NODES)
			return weir_err_set(err, -EINVAL, "more than %d services", SHAPE_NODES - 1);
		numbers[i] = (uint16_t)t->n;
		add_node(t, p, i, numbers);
		if (t->nodes[t->n - 1].depth >= TREE_DEPTH)
			return weir_err_set(err, -EINVAL,
				"'%s' is deeper than %d services, of which HTB has no more levels",
				p->tenants[i].path, TREE_DEPTH);
		if (p->tenants[i].first_child < 0)
			t->of[i] = numbers[i];
	}
	for (size_t i = 0; i < t->n; i++)
		t->nodes[i].slot = t->by_slot[i] = (uint16_t)i;
	t->load = load_of(p);
	return add_up(t) < 0 ? no_memory(err) : 0;
}

int tree_new(const struct weir_policy *p, struct tree **ret, struct weir_err *err)
{
	struct tree *t = calloc(1, sizeof(*t));
	uint16_t *numbers = calloc(p->n_tenants + 1, sizeof(*numbers));
	int r;

	if (t) {
		t->nodes = calloc(p->n_tenants + 1, sizeof(*t->nodes));
		t->of = calloc(p->n_tenants + 1, sizeof(*t->of));
	}
	r = t && numbers && t->nodes && t->of ? fill(t, p, numbers, err) : no_memory(err);
	free(numbers);
	if (r) {
		tree_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->of);
	free(t);
}

/* ---- slots */

static int by_path(const void *a, const void *b)
{
	return strcmp((*(const struct tree_node *const *)a)->path,
		(*(const struct tree_node *const *)b)->path);
}

/* Return the nodes by path, or NULL. */
static const struct tree_node **sort_nodes(const struct tree *t)
{
	const struct tree_node **all = calloc(t->n, sizeof(*all));

	for (size_t i = 0; all && i < t->n; i++)
		all[i] = &t->nodes[i];
	if (all)
		qsort(all, t->n, sizeof(*all), by_path);
	return all;
}

struct slots {
	struct tree *t;
	tree_slot_state *state;
	void *arg;
	uint16_t next; /* none below it is free */
};

static bool is_taken(const struct tree *t, uint16_t slot)
{
	return !slot || t->by_slot[slot];
}

/* Return the first slot of no class, or if there is none, any that is not taken. */
static uint16_t free_slot(struct slots *s, uint16_t above, const struct tree_node *n)
{
	uint16_t any = 1;

	for (; s->next < SHAPE_SLOTS; s->next++)
		if (!is_taken(s->t, s->next) && s->state(s->arg, s->next, above, n) == TREE_FREE)
			return s->next;
	while (is_taken(s->t, any))
		any++;
	return any;
}

void tree_slots(struct tree *t, const struct tree *before, tree_slot_state *state, void *arg)
{
	struct slots s = {t, state, arg, 1};
	const struct tree_node **old = before ? sort_nodes(before) : NULL;

	memset(t->by_slot, 0, sizeof(t->by_slot));
	for (size_t i = 1; i < t->n; i++) {
		struct tree_node *n = &t->nodes[i];
		const struct tree_node **found =
			old ? bsearch(&n, old, before->n, sizeof(*old), by_path) : NULL;
		uint16_t above = t->nodes[n->parent].slot,
			 slot = found ? (*found)->slot : (uint16_t)i;
		enum tree_slot is = is_taken(t, slot) ? TREE_MOVES : state(arg, slot, above, n);

		/* Of a tree in force, classes that fit are still those of another service. */
		if (is == TREE_MOVES || (before && !found && is == TREE_FITS))
			slot = free_slot(&s, above, n);
		n->slot = slot;
		t->by_slot[slot] = (uint16_t)i;
	}
	free(old);
}

/* ---- classes */

/* The share of one of a node's classes. */
static double class_share(const double *share, const uint32_t *many, size_t node)
{
	return many && many[node] > 1 ? share[node] / many[node] : share[node];
}

void tree_quanta(const struct tree *t, uint32_t segment, const double *share, const uint32_t *many,
	uint32_t *ret)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->nodes[i].leaf) {
			least = fmin(least, class_share(share, many, i));
			most = fmax(most, class_share(share, many, i));
		}
	least = fmax(least, most / TREE_QUANTUM);
	for (size_t i = 0; i < t->n; i++) {
		double of = class_share(share, many, i);

		ret[i] = of > least ? (uint32_t)(of / least * segment) : segment;
	}
}

uint32_t tree_segments(const struct tree *t, double rate, unsigned mtu)
{
	double slowest = rate, segments;

	for (size_t i = 1; i < t->n; i++)
		slowest = fmin(slowest, t->nodes[i].max);
	segments = slowest * SEGMENT / mtu;
	return segments < 1 ? 1 : segments > 65535 ? 65535 : (uint32_t)segments;
}

uint32_t tree_queue(double ceil)
{
	double bytes = ceil * QUEUE;

	return bytes < 75e3 ? 75000 : bytes > 64e6 ? 64000000 : (uint32_t)bytes;
}

static uint32_t burst_of(double rate, uint64_t stated, uint32_t segment)
{
	double bytes = stated ? (double)stated : rate * BURST;

	bytes = fmax(bytes, 2.0 * segment);
	return bytes < 1e9 ? (uint32_t)bytes : 1000000000u;
}

static bool node_is_planned(const struct tree_node *n, size_t device)
{
	return n->planned == (int)device + 1;
}

unsigned tree_node_buckets(const struct tree_node *n, size_t device)
{
	return node_is_planned(n, device) ? n->n_buckets : 0;
}

/* Return what the class of the link may have, bytes/s. */
static double ceil_of(const struct tree *t, const struct tree_link *l)
{
	return l->open && t->load >= 1 ? ENDLESS : l->rate * t->load;
}

/* Fill in what the classes of a node have in common. */
static void set_class(const struct tree *t, const struct tree_link *l, size_t node, double cap,
	struct tc_class *ret)
{
	const struct tree_node *n = &t->nodes[node];

	ret->ceil = fmax(fmin(fmin(n->max, cap) * l->part, ceil_of(t, l)), LEAST);
	ret->rate = LEAST;
	ret->rate_burst = burst_of(ret->rate, 0, l->segment);
	ret->ceil_burst = burst_of(ret->ceil, n->burst, l->segment);
	ret->quantum = l->segment;
	ret->priority = !t->planned || !node_is_planned(n, l->index) ? t->planned * TREE_PRIORITIES
								     : n->priority;
}

void tree_link_class(const struct tree *t, const struct tree_link *l, struct tc_class *ret)
{
	double rate = ceil_of(t, l);
	uint32_t burst = burst_of(rate, 0, l->segment);

	*ret = (struct tc_class){
		SHAPE_MAJOR | SHAPE_LINK, SHAPE_MAJOR, rate, rate, burst, burst, l->segment, 0};
}

static uint32_t class_above(const struct tree *t, size_t node, uint32_t base)
{
	uint16_t parent = t->nodes[node].parent;

	return SHAPE_MAJOR | (parent ? base + t->nodes[parent].slot : SHAPE_LINK);
}

static uint32_t class_of(const struct tree *t, size_t node, uint32_t base)
{
	return SHAPE_MAJOR | (base + t->nodes[node].slot);
}

void tree_runtime_class(const struct tree *t, const struct tree_link *l, size_t node, double cap,
	struct tc_class *ret)
{
	*ret = (struct tc_class){.id = class_of(t, node, SHAPE_RUNTIME),
		.parent = class_above(t, node, SHAPE_RUNTIME)};
	set_class(t, l, node, cap, ret);
}

/* The class that holds those of a leaf of the tree. */
static uint32_t runtime_of(const struct tree *t, size_t node)
{
	return node ? class_of(t, node, SHAPE_RUNTIME) : SHAPE_MAJOR | SHAPE_LINK;
}

void tree_default_class(const struct tree *t, const struct tree_link *l, size_t node, double cap,
	struct tc_class *ret)
{
	*ret = (struct tc_class){
		.id = class_of(t, node, SHAPE_DEFAULT), .parent = runtime_of(t, node)};
	set_class(t, l, node, cap, ret);
}

void tree_leaf_class(const struct tree *t, const struct tree_link *l, size_t node, uint16_t minor,
	double rate, struct tc_class *ret)
{
	*ret = (struct tc_class){.id = SHAPE_MAJOR | minor, .parent = runtime_of(t, node)};
	set_class(t, l, node, rate / l->part, ret); /* the destination is behind one device */
}

void tree_static_class(
	const struct tree *t, const struct tree_link *l, size_t node, struct tc_class *ret)
{
	*ret = (struct tc_class){.id = class_of(t, node, SHAPE_STATIC),
		.parent = class_above(t, node, SHAPE_STATIC)};
	set_class(t, l, node, INFINITY, ret);
}
