/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/device.h"
#include "base/no-memory.h"
#include "serve/shape/former.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINOR(id)   ((id)&0xffff)
#define TCX_INGRESS 46 /* enum bpf_attach_type, since Linux 6.6 */
#define TCX_EGRESS  47

/* ---- what is on the device */

static bool is_ours(const struct tc_queue *q)
{
	return q->handle == SHAPE_MAJOR && strcmp(q->kind, "htb") == 0;
}

bool device_held(struct tc *t, const struct tc_link *l)
{
	struct tc_queue q;

	return tc_root(t, l, &q, NULL) == 0 && is_ours(&q);
}

struct others {
	char name[80]; /* of the first program that is not the shaper's */
	bool ours;     /* one of the shaper's is there */
};

static int on_filter(void *arg, const struct tc_filter *f)
{
	struct others *o = arg;

	if (f->priority == PROGRAM_PRIORITY && strcmp(f->kind, "bpf") == 0)
		o->ours = true;
	else if (!o->name[0])
		snprintf(o->name, sizeof(o->name), "%.15s%s%.60s", f->kind, f->name[0] ? " " : "",
			f->name);
	return 0;
}

static int find_others(
	struct tc *t, const struct tc_link *l, struct others *ret, struct weir_err *err)
{
	*ret = (struct others){{0}, false};
	for (int type = TCX_INGRESS; type <= TCX_EGRESS; type++) {
		uint32_t flags, ids[8], n = 8;

		/* The kernel's call has a device's number where that of other types has a descriptor. */
		if (bpf_prog_query(l->index, (enum bpf_attach_type)type, 0, &flags, ids, &n) == 0 &&
			n)
			snprintf(ret->name, sizeof(ret->name), "tcx program %u", ids[0]);
	}
	return tc_filters(t, l, on_filter, ret, err);
}

int device_check(
	struct tc *t, const struct tc_link *l, const struct device_guard *g, struct weir_err *err)
{
	struct others others;
	struct tc_queue q;
	int r = tc_root(t, l, &q, err);

	if (r == 0)
		r = find_others(t, l, &others, err);
	if (r)
		return r;
	if (q.handle && !is_ours(&q) && !g->replace)
		return weir_err_set(err, -EBUSY,
			"%s: its qdisc '%s' is neither the kernel's default nor the shaper's "
			"(--replace takes it away until "
			"'weir shape clean')",
			l->name, q.kind);
	if (q.handle && !is_ours(&q) && (q.classes || q.len > TC_OPTIONS))
		return weir_err_set(err, -EBUSY,
			"%s: its qdisc '%s' has classes, which could not be put back", l->name,
			q.kind);
	if (others.name[0] && !g->beside)
		return weir_err_set(err, -EBUSY,
			"%s: another program is on it, '%s', which may choose classes, too "
			"(--beside runs both)",
			l->name, others.name);
	return 0;
}

/* ---- classes */

/* The tree's rates, of this device's part. */
static struct tree_link link_of(const struct device *d, const struct tree *tree)
{
	return (struct tree_link){.rate = d->rate,
		.part = d->part,
		.segment = d->link.mtu * tree_segments(tree, d->rate, d->link.mtu) + 14};
}

static int put_class(
	struct device *d, struct tc *t, const struct tc_class *c, bool queue, struct weir_err *err)
{
	uint32_t minor = MINOR(c->id);
	int r = tc_class(t, &d->link, c, err);

	if (r == 0) {
		d->made[minor] = true;
		d->above[minor] = MINOR(c->parent);
	}
	if (r == 0 && queue && !d->limited[minor]) {
		r = tc_class_queue(t, &d->link, c->id, tree_queue(c->ceil), err);
		d->limited[minor] = r == 0;
	}
	return r;
}

static int put_runtime(
	struct device *d, struct tc *t, const struct tree *tree, size_t node, struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	struct tc_class c;
	int r = 0;

	if (node) {
		tree_runtime_class(tree, &l, node, INFINITY, &c);
		r = put_class(d, t, &c, false, err);
	}
	if (r == 0 && tree->nodes[node].leaf) {
		tree_default_class(tree, &l, node, INFINITY, &c);
		c.quantum = d->quanta[node];
		r = put_class(d, t, &c, true, err);
	}
	return r;
}

static bool is_far(uint32_t a, uint32_t b)
{
	return fabs((double)a - b) > DEVICE_BAND * b;
}

int device_share(struct device *d, struct tc *t, const struct tree *tree, const double *share,
	struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	uint32_t *next = calloc(tree->n, sizeof(*next));
	int r = next ? 0 : no_memory(err);

	if (next)
		tree_quanta(tree, l.segment, share, next);
	for (size_t i = 0; r == 0 && i < tree->n; i++) {
		uint32_t was = d->quanta[i];

		if (!tree->nodes[i].leaf || !is_far(next[i], was))
			continue;
		d->quanta[i] = next[i];
		r = put_runtime(d, t, tree, i, err);
		if (r)
			d->quanta[i] = was;
	}
	free(next);
	return r;
}

int device_leaf(struct device *d, struct tc *t, const struct tree *tree, size_t node,
	uint16_t minor, double rate, bool resize, struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	struct tc_class c;

	tree_leaf_class(tree, &l, node, minor, rate, &c);
	c.quantum = d->quanta[node];
	if (resize)
		d->limited[minor] = false;
	return put_class(d, t, &c, true, err);
}

int device_leaf_gone(struct device *d, struct tc *t, uint16_t minor)
{
	int r = d->made[minor] ? tc_class_delete(t, &d->link, SHAPE_MAJOR | minor, NULL) : 0;

	if (r == 0 || r == -ENOENT)
		d->made[minor] = d->limited[minor] = false;
	return r == -ENOENT ? 0 : r;
}

/* The quanta of all services with packets without end. */
static int full_quanta(struct device *d, const struct tree *tree)
{
	double *share = calloc(tree->n, sizeof(*share));
	uint32_t *quanta = calloc(tree->n, sizeof(*quanta));
	int r = share && quanta ? tree_shares(tree, d->rate / d->part * tree->load, NULL, share)
				: -ENOMEM;

	if (r == 0)
		tree_quanta(tree, link_of(d, tree).segment, share, quanta);
	free(share);
	if (r) {
		free(quanta);
		return r;
	}
	free(d->quanta);
	d->quanta = quanta;
	return 0;
}

void device_free(struct device *d)
{
	free(d->quanta);
}

/* Return true if a class is in this one. */
static bool has_classes(const struct device *d, uint32_t minor)
{
	for (uint32_t m = SHAPE_RUNTIME; m < 0x10000; m++)
		if (d->made[m] && d->above[m] == minor)
			return true;
	return false;
}

/* Delete the classes that `kept` does not have, those inside of others first. */
static int drop_classes(struct device *d, struct tc *t, const bool *kept, struct weir_err *err)
{
	bool more = true;
	int r = 0;

	while (more && r == 0) {
		more = false;
		for (uint32_t m = 0xffff; r == 0 && m >= SHAPE_RUNTIME; m--) {
			if (!d->made[m] || kept[m] || has_classes(d, m))
				continue;
			r = tc_class_delete(t, &d->link, SHAPE_MAJOR | m, err);
			d->made[m] = d->limited[m] = r != 0;
			more = true;
		}
	}
	return r;
}

/* Set `moved` for classes that HTB would have to move into another one, which it cannot, and for all inside of them. */
static void find_moved(const struct device *d, const struct tree *tree, bool *moved)
{
	struct tree_link l = link_of(d, tree);
	struct tc_class c;
	bool more = true;

	for (size_t i = 0; i < tree->n; i++) {
		tree_static_class(tree, &l, i, &c);
		moved[MINOR(c.id)] =
			d->made[MINOR(c.id)] && d->above[MINOR(c.id)] != MINOR(c.parent);
		tree_runtime_class(tree, &l, i, INFINITY, &c);
		moved[MINOR(c.id)] =
			d->made[MINOR(c.id)] && d->above[MINOR(c.id)] != MINOR(c.parent);
	}
	while (more) {
		more = false;
		for (uint32_t m = SHAPE_RUNTIME; m < SHAPE_LEAF_END; m++)
			if (d->made[m] && !moved[m] && moved[d->above[m]])
				more = moved[m] = true;
	}
}

/* Delete the classes that HTB cannot move. Their packets are lost. */
static int drop_moved(struct device *d, struct tc *t, const struct tree *tree, struct weir_err *err)
{
	bool *moved = calloc(2 * 0x10000, sizeof(*moved)), *kept = moved + 0x10000;
	int r;

	if (!moved)
		return no_memory(err);
	find_moved(d, tree, moved);
	for (uint32_t m = 0; m < 0x10000; m++)
		kept[m] = !moved[m];
	r = drop_classes(d, t, kept, err);
	free(moved);
	return r;
}

/* Make the classes of a tree. Classes that it does not have are deleted with `drop`, which loses their packets. */
static int device_classes(
	struct device *d, struct tc *t, const struct tree *tree, bool drop, struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	bool *kept = calloc(0x10000, sizeof(*kept));
	struct tc_class c;
	int r;

	if (!kept || full_quanta(d, tree) < 0) {
		free(kept);
		return no_memory(err);
	}
	tree_link_class(tree, &l, &c);
	r = put_class(d, t, &c, false, err);
	if (r == 0)
		r = drop_moved(d, t, tree, err);
	for (size_t i = 0; r == 0 && i < tree->n; i++) {
		tree_static_class(tree, &l, i, &c);
		c.quantum = d->quanta[i];
		r = put_class(d, t, &c, tree->nodes[i].leaf, err);
		if (r == 0)
			r = put_runtime(d, t, tree, i, err);
		kept[SHAPE_STATIC + i] = kept[SHAPE_RUNTIME + i] = kept[SHAPE_DEFAULT + i] = true;
	}
	memset(kept + SHAPE_LEAF, true, SHAPE_LEAF_END - SHAPE_LEAF + 1); /* leaves.h */
	if (r == 0 && drop)
		r = drop_classes(d, t, kept, err);
	free(kept);
	return r;
}

/* ---- taking and giving back */

static void on_class(void *arg, const struct tc_class_state *c)
{
	struct device *d = arg;

	d->made[MINOR(c->id)] = true;
	d->limited[MINOR(c->id)] = c->limited;
	d->above[MINOR(c->id)] = MINOR(c->parent);
}

/* Write down what the device has, unless it is the shaper's already. */
static int keep_state(struct device *d, const struct tc_queue *root, const struct device_state *s,
	bool held, struct weir_err *err)
{
	struct former st = {.segments = d->link.segments, .root = *root};

	if (held && former_read(s, d->name, &st, NULL) == 0)
		return 0;
	if (held) /* a lost file: the kernel's defaults */
		st = (struct former){.segments = 65535};
	return former_write(s, d->name, &st, err);
}

/* Undo what was done before the last error. */
static void give_back(struct device *d, struct tc *t, const struct device_state *s)
{
	unsigned n;

	device_restore(t, s, &n, NULL);
}

int device_take(struct device *d, struct tc *t, const struct tree *tree, struct program *p,
	const struct device_state *s, const struct device_guard *g, struct weir_err *err)
{
	struct tc_queue root;
	struct former st;
	bool held, made = false;
	int r = tc_link(t, d->name, &d->link, err);

	if (r == 0)
		r = device_check(t, &d->link, g, err);
	if (r == 0)
		r = tc_root(t, &d->link, &root, err);
	if (r)
		return r;
	held = is_ours(&root);
	r = keep_state(d, &root, s, held, err);
	if (r == 0)
		r = held ? tc_classes(t, &d->link, on_class, d, err)
			 : tc_root_add(t, &d->link, SHAPE_MAJOR, g->replace, err);
	if (r == 0)
		r = device_classes(d, t, tree, false, err);
	if (r == 0)
		r = tc_set_segments(t, &d->link, tree_segments(tree, d->rate, d->link.mtu), err);
	if (r == 0)
		r = program_attach(p, d->link.index, &made, err);
	if (r == 0 && !made && !held && former_read(s, d->name, &st, err) == 0) {
		st.clsact = true;
		r = former_write(s, d->name, &st, err);
	}
	if (r == 0 && held)
		r = device_classes(d, t, tree, true, err);
	if (r < 0 && !held)
		give_back(d, t, s);
	return r;
}

static int restore_root(
	struct tc *t, const struct tc_link *l, const struct former *st, struct weir_err *err)
{
	struct tc_queue q;
	int r = tc_root(t, l, &q, err);

	if (r == 0 && is_ours(&q))
		r = tc_root_delete(t, l, SHAPE_MAJOR, err);
	if (r == 0 && is_ours(&q) && st->root.handle)
		r = tc_root_put(t, l, &st->root, err);
	return r;
}

static int restore_one(struct tc *t, const struct device_state *s, const struct tc_link *l,
	bool *ret_ours, struct weir_err *err)
{
	struct former st = {.segments = l->segments, .clsact = true};
	struct others others = {{0}, false};
	bool known = former_read(s, l->name, &st, NULL) == 0, held = device_held(t, l);
	int r = find_others(t, l, &others, err), e;

	*ret_ours = held || others.ours;
	if (r == 0 && *ret_ours) {
		r = restore_root(t, l, &st, err);
		e = program_detach(
			l->index, known && !st.clsact && !others.name[0], r ? NULL : err);
		r = r ? r : e;
		e = held && known ? tc_set_segments(t, l, st.segments, r ? NULL : err) : 0;
		r = r ? r : e;
	}
	if (r == 0)
		former_remove(s, l->name);
	return r;
}

struct restoring {
	struct tc_link *links;
	size_t n, room;
};

static int on_link(void *arg, const struct tc_link *l)
{
	struct restoring *to = arg;
	struct tc_link *grown;

	if (to->n == to->room) {
		grown = realloc(to->links, (to->room * 2 + 16) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		to->links = grown;
		to->room = to->room * 2 + 16;
	}
	to->links[to->n++] = *l;
	return 0;
}

int device_restore(
	struct tc *t, const struct device_state *s, unsigned *ret_n, struct weir_err *err)
{
	struct restoring all = {0};
	int r = tc_links(t, on_link, &all, err);
	unsigned n = 0;

	for (size_t i = 0; i < all.n; i++) {
		bool ours = false;
		int e = restore_one(t, s, &all.links[i], &ours, r ? NULL : err);

		r = r ? r : e;
		n += ours;
	}
	free(all.links);
	*ret_n = n;
	return r;
}
