/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/device.h"
#include "base/no-memory.h"
#include "serve/shape/former.h"
#include <bpf/bpf.h>
#include <linux/pkt_sched.h>
#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINOR(id)   ((id)&0xffff)
#define CLASSES     0x10000
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

static int on_filter(void *arg, const struct tc_filter *f)
{
	struct device_others *o = arg;

	if (f->priority == PROGRAM_PRIORITY && strcmp(f->kind, "bpf") == 0)
		o->ours = true;
	else if (!o->name[0])
		snprintf(o->name, sizeof(o->name), "%.15s%s%.60s", f->kind, f->name[0] ? " " : "",
			f->name);
	return 0;
}

int device_others(
	struct tc *t, const struct tc_link *l, struct device_others *ret, struct weir_err *err)
{
	*ret = (struct device_others){{0}, false};
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
	struct device_others others;
	struct tc_queue q;
	int r = tc_root(t, l, &q, err);

	if (r == 0)
		r = device_others(t, l, &others, err);
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
		.open = d->open,
		.part = d->part,
		.index = d->index,
		.segment = d->link.mtu * tree_segments(tree, d->rate, d->link.mtu) + 14};
}

/* The first of the major numbers of a class's buckets: TREE_BUCKETS for each static and each default class, without the root's. */
static uint16_t first_of(uint32_t minor)
{
	uint32_t at = minor % SHAPE_SLOTS * 2 + (minor >= SHAPE_STATIC);

	at = at * TREE_BUCKETS + 1;
	return (uint16_t)(at + TREE_BUCKETS > SHAPE_MAJOR >> 16 ? at + TREE_BUCKETS : at);
}

/* Make the queue of a class, or change it. */
static int make_queue(struct device *d, struct tc *t, const struct tc_class *c,
	const struct tree_node *n, struct weir_err *err)
{
	unsigned many = tree_node_buckets(n, d->index);
	uint32_t minor = MINOR(c->id), segment = c->quantum;

	if (!many || minor >= SHAPE_LEAF)
		return tc_class_queue(t, &d->link, c->id, tree_queue(c->ceil), err);
	return tc_class_buckets(t, &d->link, c->id, first_of(minor), n->buckets, many,
		segment < 2000 ? 2000 : segment, tree_queue(c->ceil), err);
}

/* n: NULL: a class without a queue. */
static int put_class(struct device *d, struct tc *t, const struct tc_class *c,
	const struct tree_node *n, struct weir_err *err)
{
	struct device_class *of = &d->classes[MINOR(c->id)];
	int r = tc_class(t, &d->link, c, err);

	if (r == 0) {
		of->made = of->wanted = true;
		of->above = MINOR(c->parent);
	}
	if (r == 0 && n && !of->limited) {
		r = make_queue(d, t, c, n, err);
		of->limited = r == 0;
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
		tree_runtime_class(tree, &l, node, d->caps[node], &c);
		r = put_class(d, t, &c, NULL, err);
	}
	if (r == 0 && tree->nodes[node].leaf) {
		tree_default_class(tree, &l, node, d->caps[node], &c);
		c.quantum = d->quanta[node];
		r = put_class(d, t, &c, &tree->nodes[node], err);
	}
	return r;
}

static bool is_far(double a, double b)
{
	return a != b && fabs(a - b) > DEVICE_BAND * fmin(a, b); /* one may be INFINITY */
}

int device_share(struct device *d, struct tc *t, const struct tree *tree, const double *share,
	const uint32_t *many, const double *caps, struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	uint32_t *next = calloc(tree->n, sizeof(*next));
	int r = next ? 0 : no_memory(err);

	if (next)
		tree_quanta(tree, l.segment, share, many, next);
	for (size_t i = 0; r == 0 && i < tree->n; i++) {
		uint32_t was = d->quanta[i];
		double cap = d->caps[i];

		if (!tree->nodes[i].leaf || (!is_far(next[i], was) && !is_far(caps[i], cap)))
			continue;
		d->quanta[i] = next[i];
		d->caps[i] = caps[i];
		r = put_runtime(d, t, tree, i, err);
		if (r) {
			d->quanta[i] = was;
			d->caps[i] = cap;
		}
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
		d->classes[minor].limited = false;
	return put_class(d, t, &c, &tree->nodes[node], err);
}

int device_leaf_gone(struct device *d, struct tc *t, uint16_t minor)
{
	int r = d->classes[minor].made ? tc_class_delete(t, &d->link, SHAPE_MAJOR | minor, NULL)
				       : 0;

	if (r == 0 || r == -ENOENT)
		d->classes[minor].made = d->classes[minor].limited = false;
	return r == -ENOENT ? 0 : r;
}

/* The quanta of all services with packets without end. */
static int full_quanta(struct device *d, const struct tree *tree)
{
	double *share = calloc(tree->n, sizeof(*share));
	double *caps = calloc(tree->n, sizeof(*caps));
	uint32_t *quanta = calloc(tree->n, sizeof(*quanta));
	int r = share && quanta && caps
			? tree_shares(tree, d->rate / d->part * tree->load, NULL, share)
			: -ENOMEM;

	if (r == 0)
		tree_quanta(tree, link_of(d, tree).segment, share, NULL, quanta);
	free(share);
	if (r) {
		free(quanta);
		free(caps);
		return r;
	}
	for (size_t i = 0; i < tree->n; i++)
		caps[i] = INFINITY;
	free(d->quanta);
	free(d->caps);
	d->quanta = quanta;
	d->caps = caps;
	return 0;
}

void device_free(struct device *d)
{
	free(d->quanta);
	free(d->classes);
	free(d->caps);
}

/* ---- classes that are there already */

static void on_class(void *arg, const struct tc_class_state *c)
{
	struct device *d = arg;
	struct device_class *of = &d->classes[MINOR(c->id)];

	if ((c->id & 0xffff0000) != SHAPE_MAJOR) /* of buckets */
		return;
	of->made = true;
	of->limited = c->limited;
	of->first = c->first;
	of->above = MINOR(c->parent);
	of->queued = c->queued;
	if (c->parent != TC_H_ROOT)
		d->classes[MINOR(c->parent)].inner = true;
}

static int look_at_classes(struct device *d, struct tc *t, struct weir_err *err)
{
	for (uint32_t m = 0; m < CLASSES; m++)
		d->classes[m].made = d->classes[m].limited = d->classes[m].inner = false;
	return device_held(t, &d->link) ? tc_classes(t, &d->link, on_class, d, err) : 0;
}

int device_look(struct device *d, struct tc *t, struct weir_err *err)
{
	int r = tc_link(t, d->name, &d->link, err);

	if (r)
		return r;
	if (!d->classes && !(d->classes = calloc(CLASSES, sizeof(*d->classes))))
		return no_memory(err);
	return look_at_classes(d, t, err);
}

/* Does a class that is there have as many buckets as the node asks for? */
static bool same_buckets(const struct device *d, uint32_t minor, const struct tree_node *n)
{
	const struct device_class *c = &d->classes[minor];
	unsigned many = tree_node_buckets(n, d->index);
	uint16_t first = first_of(minor);
	bool some = c->first >= first && c->first < first + TREE_BUCKETS;

	return !c->made || !c->limited || (some ? c->first == first + many - 1 : !many);
}

enum tree_slot device_slot(
	const struct device *d, uint16_t slot, uint16_t above, const struct tree_node *n)
{
	bool leaf = n->leaf;
	static const uint32_t bases[] = {SHAPE_STATIC, SHAPE_RUNTIME};
	const struct device_class *inside = &d->classes[SHAPE_DEFAULT + slot];
	bool made = inside->made;

	if (!leaf && inside->made)
		return TREE_MOVES;
	if (leaf && (!same_buckets(d, SHAPE_STATIC + slot, n) ||
			    !same_buckets(d, SHAPE_DEFAULT + slot, n)))
		return TREE_MOVES;
	for (int i = 0; i < 2; i++) {
		const struct device_class *c = &d->classes[bases[i] + slot];

		made |= c->made;
		if (c->made && c->above != (above ? bases[i] + above : SHAPE_LINK))
			return TREE_MOVES;
		if (bases[i] == SHAPE_STATIC && c->made && (leaf ? c->inner : c->limited))
			return TREE_MOVES;
	}
	return made ? TREE_FITS : TREE_FREE;
}

static int drop_class(struct device *d, struct tc *t, uint32_t minor, struct weir_err *err)
{
	int r = tc_class_delete(t, &d->link, SHAPE_MAJOR | minor, err);

	if (r == 0)
		d->classes[minor] = (struct device_class){.above = d->classes[minor].above};
	return r;
}

/* Delete the classes in a class, those inside of them first. */
static int drop_inside(struct device *d, struct tc *t, uint32_t minor, struct weir_err *err)
{
	int r = 0;

	for (uint32_t m = SHAPE_RUNTIME; r == 0 && m < CLASSES; m++)
		if (d->classes[m].made && d->classes[m].above == minor) {
			r = d->classes[m].inner ? drop_inside(d, t, m, err) : 0;
			r = r ? r : drop_class(d, t, m, err);
		}
	return r;
}

/* Delete what a slot's classes cannot be made of. Their packets are lost. */
static int drop_moved(
	struct device *d, struct tc *t, const struct tree *tree, size_t node, struct weir_err *err)
{
	static const uint32_t bases[] = {SHAPE_STATIC, SHAPE_RUNTIME, SHAPE_DEFAULT};
	const struct tree_node *n = &tree->nodes[node];
	int r = 0;

	if (!node || device_slot(d, n->slot, tree->nodes[n->parent].slot, n) != TREE_MOVES)
		return 0;
	for (int i = 0; r == 0 && i < 3; i++) {
		uint32_t m = bases[i] + n->slot;

		if (!d->classes[m].made)
			continue;
		r = drop_inside(d, t, m, err);
		r = r ? r : drop_class(d, t, m, err);
	}
	return r;
}

int device_retire(struct device *d, struct tc *t, struct weir_err *err)
{
	int r;

	if (--d->retiring)
		return 0;
	r = look_at_classes(d, t, err);
	for (uint32_t m = SHAPE_RUNTIME; r == 0 && m < SHAPE_LEAF; m++) {
		const struct device_class *c = &d->classes[m];

		if (!c->made || c->wanted)
			continue;
		d->retiring = 1;
		if (!c->inner && !c->queued)
			r = drop_class(d, t, m, err);
	}
	return r;
}

/* ---- all classes */

/* Make the classes of a tree. */
static int device_classes(
	struct device *d, struct tc *t, const struct tree *tree, struct weir_err *err)
{
	struct tree_link l = link_of(d, tree);
	struct tc_class c;
	int r;

	if (full_quanta(d, tree) < 0)
		return no_memory(err);
	for (uint32_t m = 0; m < SHAPE_LEAF; m++)
		d->classes[m].wanted = false;
	tree_link_class(tree, &l, &c);
	r = put_class(d, t, &c, NULL, err);
	for (size_t i = 0; r == 0 && i < tree->n; i++)
		r = drop_moved(d, t, tree, i, err);
	for (uint32_t m = 0; m < SHAPE_LEAF; m++)
		d->classes[m].limited = false; /* the limits of queues follow those of classes */
	for (size_t i = 0; r == 0 && i < tree->n; i++) {
		tree_static_class(tree, &l, i, &c);
		c.quantum = d->quanta[i];
		r = put_class(d, t, &c, tree->nodes[i].leaf ? &tree->nodes[i] : NULL, err);
		if (r == 0)
			r = put_runtime(d, t, tree, i, err);
	}
	return r;
}

/* ---- taking and giving back */

/* Write down what the device has, unless it is the shaper's already. ret: what it had. */
static int keep_state(struct device *d, const struct tc_queue *root, const struct device_state *s,
	struct former *ret, struct weir_err *err)
{
	bool held = is_ours(root);

	*ret = (struct former){.segments = d->link.segments, .clsact = root->clsact, .root = *root};
	if (held && former_read(s, d->name, ret, NULL) == 0)
		return 0;
	if (held) /* a lost file: the kernel's defaults */
		*ret = (struct former){.segments = 65535};
	return former_write(s, d->name, ret, err);
}

/* Undo what was done before the last error. */
static void undo(struct device *d, struct tc *t, const struct device_state *s)
{
	unsigned n;

	device_restore(t, s, &n, NULL);
}

int device_take(struct device *d, struct tc *t, const struct tree *tree, struct program *p,
	const struct device_state *s, const struct device_guard *g, struct weir_err *err)
{
	struct tc_queue root;
	struct former st;
	uint32_t segments;
	int r = d->classes ? 0 : device_look(d, t, err);

	if (r == 0)
		r = device_check(t, &d->link, g, err);
	if (r == 0)
		r = tc_root(t, &d->link, &root, err);
	if (r == 0)
		r = keep_state(d, &root, s, &st, err);
	if (r)
		return r;
	if (!is_ours(&root))
		r = tc_root_add(t, &d->link, SHAPE_MAJOR, g->replace, err);
	if (r == 0)
		r = device_classes(d, t, tree, err);
	segments = tree_segments(tree, d->rate, d->link.mtu);
	if (r == 0) /* never more than the device's own */
		r = tc_set_segments(
			t, &d->link, segments < st.segments ? segments : st.segments, err);
	if (r == 0)
		r = program_attach(p, d->link.index, err);
	d->retiring = r == 0 && is_ours(&root) ? 2 : 0;
	if (r < 0 && !is_ours(&root))
		undo(d, t, s);
	return r;
}

/* The root comes last, in one message: until then another call finds what is left to do. */
static int restore_root(
	struct tc *t, const struct tc_link *l, const struct tc_queue *former, struct weir_err *err)
{
	return former->handle ? tc_root_put(t, l, former, err)
			      : tc_root_delete(t, l, SHAPE_MAJOR, err);
}

int device_give_back(struct tc *t, const struct device_state *s, const struct tc_link *l,
	bool *ret_ours, struct weir_err *err)
{
	struct former st = {.segments = l->segments, .clsact = true};
	struct device_others others = {{0}, false};
	bool known = former_read(s, l->name, &st, NULL) == 0, held = false;
	struct tc_queue root;
	int r = tc_root(t, l, &root, err);

	if (r == 0) {
		held = is_ours(&root);
		r = device_others(t, l, &others, err);
	}
	*ret_ours = r == 0 && (held || others.ours);
	if (*ret_ours)
		r = program_detach(l->index, known && !st.clsact && !others.name[0], err);
	if (r == 0 && held && known)
		r = tc_set_segments(t, l, st.segments, err);
	if (r == 0 && held)
		r = restore_root(t, l, &st.root, err);
	if (r == 0)
		former_remove(s, l->name);
	return r;
}

int device_restore(
	struct tc *t, const struct device_state *s, unsigned *ret_n, struct weir_err *err)
{
	struct tc_link_list all;
	int r = tc_links(t, &all, err);
	unsigned n = 0;

	for (size_t i = 0; i < all.n; i++) {
		bool ours = false;
		int e = device_give_back(t, s, &all.links[i], &ours, r ? NULL : err);

		r = r ? r : e;
		n += ours;
	}
	free(all.links);
	*ret_n = n;
	return r;
}
