/* SPDX-License-Identifier: BSD-3-Clause */
/* tree: services as nodes, their shares, and the classes and quanta made of these. */
#include "serve/shape/tree.h"
#include "policy-parse.h"
#include <errno.h>

#define NETWORK "network: {devices: [{name: v0, rate: 100 Mbit/s}]}\n"
static const double mbit = 1e6 / 8;

static struct tree *make(const char *tenants, struct weir_policy **ret)
{
	char text[2000];
	struct weir_err err;
	struct tree *t;

	snprintf(text, sizeof(text), NETWORK "tenants:\n%s", tenants);
	*ret = parse(text);
	if (tree_new(*ret, &t, &err) < 0)
		FAIL("%s", err.text);
	return t;
}

/* a and b have children; others are services of their own. */
#define NESTED                                                                                     \
	"  - name: a\n    net: {max: 60 Mbit/s}\n    children:\n"                                  \
	"      - {name: x, net: {min: 10 Mbit/s}, match: {port: 1}}\n"                             \
	"      - {name: y, net: {min: 5 Mbit/s, weight: 2}, match: {port: 2}}\n"                   \
	"  - {name: b, net: {weight: 3}, match: {port: 3}}\n"                                      \
	"  - {name: disk, weight: 5}\n"

static void nodes(void)
{
	struct weir_policy *p;
	struct tree *t = make(NESTED, &p);

	CHECK_INT(t->n, 5); /* with the node of no service; the tenant of disks has none */
	CHECK_STR(t->nodes[1].path, "a");
	CHECK_NEAR(t->nodes[1].min, 15 * mbit, 1e-9);
	CHECK(!t->nodes[1].leaf && t->nodes[2].parent == 1 && t->nodes[2].depth == 1);
	CHECK_INT(t->of[0], 0);
	for (size_t i = 0; i < p->n_tenants; i++)
		if (strcmp(p->tenants[i].path, "b") == 0)
			CHECK_STR(t->nodes[t->of[i]].path, "b");
	tree_free(t);
	weir_policy_free(p);
}

/* 100: guarantees take 15; 85 by 1 : 3 : 1 (no service): a 15 + 17, b 51, 17; in a the 17 by 1 : 2. */
static void shares(void)
{
	struct weir_policy *p;
	struct tree *t = make(NESTED, &p);
	double share[5], demand[5] = {0, 0, INFINITY, INFINITY, 0};
	uint32_t quanta[5];

	CHECK_INT(tree_shares(t, 100 * mbit, NULL, share), 0);
	CHECK_NEAR(share[0], 17 * mbit, 1e-9);
	CHECK_NEAR(share[2], (10 + 17 / 3.0) * mbit, 1e-9);
	CHECK_NEAR(share[3], (5 + 34 / 3.0) * mbit, 1e-9);
	CHECK_NEAR(share[4], 51 * mbit, 1e-9);
	tree_quanta(t, 1514, share, NULL, quanta);
	CHECK_INT(quanta[2], 1514);
	CHECK_NEAR(quanta[4], 1514 * 51 / (10 + 17 / 3.0), 1e-3);
	/* Three destinations divide the quantum of a service, and each has a segment at least. */
	tree_quanta(t, 1514, share, (const uint32_t[]){0, 0, 3, 1, 1}, quanta);
	CHECK_INT(quanta[2], 1514);
	CHECK_NEAR(quanta[4], 3 * 1514 * 51 / (10 + 17 / 3.0), 1e-3);
	/* The others idle: a has its max. */
	CHECK_INT(tree_shares(t, 100 * mbit, demand, share), 0);
	CHECK_NEAR(share[2], 25 * mbit, 1e-9);
	CHECK_NEAR(share[3], 35 * mbit, 1e-9);
	share[0] = share[4] = 1e-3;
	tree_quanta(t, 1514, share, NULL, quanta);
	CHECK_INT(quanta[0], 1514);
	CHECK_INT(quanta[3], TREE_QUANTUM * 1514);
	tree_free(t);
	weir_policy_free(p);
}

static void classes(void)
{
	struct weir_policy *p;
	struct tree *t = make(NESTED, &p);
	struct tree_link l = {
		.rate = 50 * mbit, .part = 0.5, .segment = 1514}; /* one of two devices */
	struct tc_class c;

	l.open = true; /* the driver's word: no ceiling … */
	tree_link_class(t, &l, &c);
	CHECK(c.ceil > 1000 * 50 * mbit);
	t->load = 0.5; /* … but a bound's */
	tree_link_class(t, &l, &c);
	CHECK_NEAR(c.ceil, 25 * mbit, 1);
	t->load = 1;
	l.open = false;
	tree_link_class(t, &l, &c);
	CHECK_NEAR(c.ceil, 50 * mbit, 1e-9);
	tree_runtime_class(t, &l, 1, INFINITY, &c);
	CHECK_INT(c.parent, SHAPE_MAJOR | SHAPE_LINK);
	CHECK_NEAR(c.ceil, 30 * mbit, 1e-9);
	tree_runtime_class(t, &l, 1, 20 * mbit, &c);
	CHECK_NEAR(c.ceil, 10 * mbit, 1e-9);
	tree_default_class(t, &l, 3, INFINITY, &c);
	CHECK_INT(c.parent, SHAPE_MAJOR | (SHAPE_RUNTIME + 3));
	tree_default_class(t, &l, 0, INFINITY, &c);
	CHECK_INT(c.parent, SHAPE_MAJOR | SHAPE_LINK);
	tree_static_class(t, &l, 3, &c);
	CHECK_INT(c.parent, SHAPE_MAJOR | (SHAPE_STATIC + 1));
	CHECK_INT(tree_segments(t, 100 * mbit, 1500), 1);
	CHECK_INT(tree_segments(t, 1e12, 1500), 1); /* the slowest max counts: 60 Mbit/s */
	CHECK_INT(tree_queue(1), 75000);
	tree_free(t);
	weir_policy_free(p);
}

/* A device's classes, as slots. */
struct rig {
	uint16_t above[SHAPE_SLOTS];
	bool made[SHAPE_SLOTS], leaf[SHAPE_SLOTS];
};

static enum tree_slot rig_state(void *arg, uint16_t slot, uint16_t above, const struct tree_node *n)
{
	const struct rig *r = arg;

	return !r->made[slot]                                        ? TREE_FREE
	       : r->above[slot] == above && r->leaf[slot] == n->leaf ? TREE_FITS
								     : TREE_MOVES;
}

static void rig_take(struct rig *r, const struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct tree_node *n = &t->nodes[i];

		r->made[n->slot] = true;
		r->above[n->slot] = t->nodes[n->parent].slot;
		r->leaf[n->slot] = n->leaf;
		CHECK_INT(t->by_slot[n->slot], i);
	}
}

static const struct tree_node *node_of(const struct tree *t, const char *path)
{
	for (size_t i = 1; i < t->n; i++)
		if (strcmp(t->nodes[i].path, path) == 0)
			return &t->nodes[i];
	FAIL("no node %s", path);
}

/* A service keeps its classes, whatever its number; one that moves gets others, and no other service those that it leaves. */
static void slots(void)
{
	static struct rig rig;
	struct weir_policy *p, *q, *u;
	struct tree *t = make(NESTED, &p);
	struct tree *moved =
		make("  - {name: new, net: {}, match: {port: 4}}\n"
		     "  - {name: b, net: {}, match: {port: 3}}\n"
		     "  - name: a\n    children: [{name: x, net: {}, match: {port: 1}}]\n"
		     "  - {name: y, net: {}, match: {port: 2}}\n",
			&q);
	struct tree *leaf = make("  - {name: a, net: {}, match: {port: 1}}\n"
				 "  - {name: other, net: {}, match: {port: 2}}\n",
		&u);
	struct tc_class c;
	struct tree_link l = {.rate = 50 * mbit, .part = 1, .segment = 1514};

	tree_slots(t, NULL, rig_state, &rig);
	rig_take(&rig, t);
	CHECK_INT(node_of(t, "b")->slot, 4);
	tree_slots(moved, t, rig_state, &rig);
	CHECK_INT(node_of(moved, "b")->slot, 4);
	CHECK_INT(node_of(moved, "a")->slot, 1);
	CHECK_INT(node_of(moved, "a/x")->slot, 2);
	CHECK(node_of(moved, "new")->slot > 4 && node_of(moved, "y")->slot > 4);
	rig_take(&rig, moved);
	tree_runtime_class(moved, &l, (size_t)(node_of(moved, "a/x") - moved->nodes), INFINITY, &c);
	CHECK_INT(c.id, SHAPE_MAJOR | (SHAPE_RUNTIME + 2));
	CHECK_INT(c.parent, SHAPE_MAJOR | (SHAPE_RUNTIME + 1));
	tree_slots(leaf, moved, rig_state, &rig);
	CHECK(node_of(leaf, "a")->slot > 4); /* it held others */
	/* Across a restart numbers are taken as they fit. */
	tree_slots(leaf, NULL, rig_state, &rig);
	CHECK(node_of(leaf, "a")->slot != 1);
	tree_free(t);
	tree_free(moved);
	tree_free(leaf);
	weir_policy_free(p);
	weir_policy_free(q);
	weir_policy_free(u);
}

static void refused(void)
{
	struct weir_policy *p = parse(
		NETWORK "tenants:\n  - name: a\n    children:\n      - name: b\n        "
			"children:\n          - name: c\n"
			"            children:\n              - name: d\n                "
			"children:\n                  - name: e\n"
			"                    children: [{name: f, net: {}, match: {port: 1}}]\n");
	struct weir_err err;
	struct tree *t;

	CHECK_INT(tree_new(p, &t, &err), -EINVAL);
	CHECK(strstr(err.text, "is deeper than 5"));
	weir_policy_free(p);
}

int main(void)
{
	nodes();
	shares();
	classes();
	slots();
	refused();
	return 0;
}
