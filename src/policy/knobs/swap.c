/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     A request is in the gate or handed back, never both and never neither. Requests of one
 *         tenant that move are handed back in the order in which they waited. After undo the gate's
 *         tree, knobs and requests are as before.
 * METHOD  Each new tenant finds its predecessor by its path. Steps go over the new tenants twice:
 *         first new nodes are added, parents first, with their knobs; no request can reach them
 *         yet. Then knobs that differ are set at the nodes that stay. Old nodes without a successor
 *         are put on the list of leaving nodes in reverse order of the tree, so children before
 *         parents, as a gate requires.
 * COST    A step of n tenants: n adds, or a comparison of 16 n tenants and one weir_gate_set for up
 *         to n of them.
 * EXAMPLE prod (leaf) becomes prod with db and web: a second node for prod, two below it; the old
 *         prod's queue is handed back, its node is removed when its last request is done.
 */
#include "base/no-memory.h"
#include "policy/knobs/swap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCAN 16 /* tenants that can be compared in the time of setting one */

static bool is_leaf(const struct weir_tenant *t)
{
	return t->first_child < 0;
}

/* Knobs of some tenants. */
enum { BATCH = 256 };
struct policy_swap_batch {
	struct weir_knob knobs[BATCH * POLICY_KNOBS];
	struct weir_bucket_spec buckets[BATCH * POLICY_BUCKETS];
	size_t n;    /* tenants */
	size_t used; /* knobs */
};

/* ---- which stay */

void policy_swap_map(const struct weir_policy *from, const struct weir_policy *to, int *ret_was)
{
	for (size_t i = 0; i < to->n_tenants; i++) {
		const char *path = to->tenants[i].path;

		if (from && i < from->n_tenants && strcmp(from->tenants[i].path, path) == 0)
			ret_was[i] = (int)i;
		else
			ret_was[i] = from ? weir_policy_find(from, path) : -1;
	}
}

/* A parent of the same path is a group in both policies, so it stays with its child. */
static void find_stays(struct policy_swap *s)
{
	const struct policy_swap_how *how = &s->how;

	if (how->was)
		memcpy(s->stays, how->was, s->n_next * sizeof(*s->stays));
	else
		policy_swap_map(how->from, how->to, s->stays);
	for (size_t i = 0; i < s->n_next; i++)
		if (s->stays[i] >= 0 &&
			is_leaf(&how->from->tenants[s->stays[i]]) != is_leaf(&how->to->tenants[i]))
			s->stays[i] = -1;
}

/* List nodes that no tenant takes over, children first, after those of earlier swaps. */
static int list_leaving(struct policy_swap *s)
{
	bool *taken = calloc(s->n_nodes + 1, sizeof(*taken));

	s->next_leaving = calloc(s->n_nodes + 1, sizeof(*s->next_leaving));
	s->room_leaving = calloc(s->n_leaving + s->n_nodes + 1, sizeof(*s->room_leaving));
	if (!taken || !s->next_leaving || !s->room_leaving) {
		free(taken);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_next; i++)
		if (s->stays[i] >= 0)
			taken[s->stays[i]] = true;
	s->n_next_leaving = 0;
	for (size_t i = s->n_nodes; i-- > 0;)
		if (!taken[i])
			s->next_leaving[s->n_next_leaving++] = s->nodes[i];
	free(taken);
	return 0;
}

/* ---- start */

static void forget_next(struct policy_swap *s)
{
	free(s->stays);
	free(s->next_nodes);
	free(s->next_leaving);
	free(s->room_leaving);
	free(s->own_bounds[0]);
	free(s->own_bounds[1]);
	free(s->batch);
	s->batch = NULL;
	s->stays = NULL;
	s->next_nodes = s->next_leaving = s->room_leaving = NULL;
	s->own_bounds[0] = s->own_bounds[1] = NULL;
	s->n_next = s->n_next_leaving = s->added = s->set = 0;
}

static int compute_bounds(
	const struct weir_policy *p, struct weir_bounds **own, const struct weir_bounds **ret)
{
	if (*ret || !p)
		return 0;
	*own = calloc(p->n_tenants + 1, sizeof(**own));
	*ret = *own;
	return *own ? weir_policy_bounds(p, *own) : -ENOMEM;
}

int policy_swap_start(
	struct policy_swap *s, const struct policy_swap_how *how, struct weir_err *err)
{
	size_t n = how->to->n_tenants;
	int rc;

	s->how = *how;
	s->n_next = n;
	s->added = s->set = 0;
	s->stays = calloc(n + 1, sizeof(*s->stays));
	s->next_nodes = calloc(n + 1, sizeof(*s->next_nodes));
	s->batch = malloc(sizeof(*s->batch));
	rc = s->stays && s->next_nodes && s->batch ? 0 : -ENOMEM;
	if (rc == 0)
		rc = compute_bounds(how->to, &s->own_bounds[0], &s->how.bounds);
	if (rc == 0)
		rc = compute_bounds(how->from, &s->own_bounds[1], &s->how.from_bounds);
	if (rc == 0) {
		find_stays(s);
		rc = list_leaving(s);
	}
	if (rc < 0) {
		forget_next(s);
		no_memory(err);
	}
	return rc;
}

size_t policy_swap_new(const struct policy_swap *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_next; i++)
		n += s->stays[i] < 0;
	return n;
}

/* ---- knobs of some tenants */

/* Make the knobs of tenant i of the new policy, or of its predecessor. */
static size_t make_knobs(const struct policy_swap *s, size_t i, bool old, struct weir_knob *knobs,
	struct weir_bucket_spec *buckets)
{
	const struct policy_swap_how *how = &s->how;
	weir_node node = s->next_nodes[i];
	size_t was = old ? (size_t)s->stays[i] : 0;

	if (how->refresh)
		how->refresh(how->refresh_arg, i);
	if (old)
		return policy_install_knobs(how->from, was, node, &how->from_bounds[was],
			how->from_part, knobs, buckets);
	return policy_install_knobs(how->to, i, node, &how->bounds[i], how->part, knobs, buckets);
}

static void batch_add(const struct policy_swap *s, struct policy_swap_batch *b, size_t i, bool old)
{
	b->used += make_knobs(s, i, old, &b->knobs[b->used], &b->buckets[b->n * POLICY_BUCKETS]);
	b->n++;
}

static int batch_set(
	struct policy_swap_batch *b, struct weir_gate *g, weir_time now, struct weir_err *err)
{
	size_t n = b->used;

	b->n = b->used = 0;
	return n ? weir_gate_set(g, now, b->knobs, n, err) : 0;
}

static bool same_bucket(const struct weir_bucket_spec *a, const struct weir_bucket_spec *b)
{
	return a->kind == b->kind && a->unit == b->unit && a->ops == b->ops && a->rate == b->rate &&
	       a->size == b->size;
}

/* Return true if tenant i, which stays, has other knobs than before. */
static bool differs(const struct policy_swap *s, size_t i)
{
	struct weir_knob new[POLICY_KNOBS], old[POLICY_KNOBS];
	struct weir_bucket_spec a[POLICY_BUCKETS], b[POLICY_BUCKETS];
	bool same;
	size_t n = make_knobs(s, i, false, new, a);

	same = make_knobs(s, i, true, old, b) == n && new[1].n_buckets == old[1].n_buckets;
	for (size_t k = 0; same && k < n; k++)
		same = new[k].value == old[k].value;
	for (uint32_t k = 0; same && k < new[1].n_buckets; k++)
		same = same_bucket(&a[k], &b[k]);
	return !same;
}

/* ---- steps */

static int add_node(struct policy_swap *s, struct weir_gate *g, size_t i, struct weir_err *err)
{
	const struct weir_tenant *t = &s->how.to->tenants[i];
	weir_node parent = t->parent < 0 ? WEIR_ROOT : s->next_nodes[t->parent];
	int rc;

	if (s->stays[i] >= 0) {
		s->next_nodes[i] = s->nodes[s->stays[i]];
		return 0;
	}
	rc = weir_gate_add(g, parent, &s->next_nodes[i]);
	return rc < 0 ? weir_err_set(err, rc, "no room for tenant '%s' in the gate", t->path) : 0;
}

static int add_nodes(struct policy_swap *s, struct policy_swap_batch *b, struct weir_gate *g,
	weir_time now, size_t n, struct weir_err *err)
{
	for (; n > 0 && s->added < s->n_next; n--) {
		size_t i = s->added;
		int rc = add_node(s, g, i, err);

		if (rc < 0)
			return rc;
		s->added++;
		if (s->stays[i] < 0)
			batch_add(s, b, i, false);
		if (b->n == BATCH && (rc = batch_set(b, g, now, err)) < 0)
			return rc;
	}
	return batch_set(b, g, now, err);
}

static int set_knobs(struct policy_swap *s, struct policy_swap_batch *b, struct weir_gate *g,
	weir_time now, size_t n, struct weir_err *err)
{
	size_t left = n > SIZE_MAX / SCAN ? SIZE_MAX : n * SCAN;
	int rc;

	for (; left > 0 && s->set < s->n_next; left--) {
		size_t i = s->set;

		if (s->stays[i] >= 0 && differs(s, i)) {
			batch_add(s, b, i, false);
			left -= left > SCAN ? SCAN - 1 : left - 1;
		}
		/* The batch failed: restore the knobs that it would have set. */
		s->set++;
		if (b->n == BATCH && (rc = batch_set(b, g, now, err)) < 0)
			return rc;
	}
	return batch_set(b, g, now, err);
}

int policy_swap_step(
	struct policy_swap *s, struct weir_gate *g, weir_time now, size_t n, struct weir_err *err)
{
	struct policy_swap_batch *b = s->batch;
	int rc;

	b->n = b->used = 0;
	if (s->added == 0)
		/* If this fails, each node allocates. */
		(void)weir_gate_reserve(g, (uint32_t)policy_swap_new(s));
	if (s->added < s->n_next)
		rc = add_nodes(s, b, g, now, n, err);
	else
		rc = set_knobs(s, b, g, now, n, err);
	if (rc < 0)
		return rc;
	return s->added < s->n_next || s->set < s->n_next;
}

/* A gate refuses nothing that it has had before, except for lack of memory; then a knob keeps the
 * next policy's value until the next change. */
static void unset_knobs(struct policy_swap *s, struct policy_swap_batch *b, struct weir_gate *g,
	weir_time now, size_t n)
{
	for (; n > 0 && s->set > 0; n--) {
		size_t i = --s->set;

		if (s->stays[i] >= 0 && differs(s, i))
			batch_add(s, b, i, true);
		if (b->n == BATCH)
			batch_set(b, g, now, NULL);
	}
	batch_set(b, g, now, NULL);
}

bool policy_swap_undo(struct policy_swap *s, struct weir_gate *g, weir_time now, size_t n)
{
	struct policy_swap_batch *b = s->batch;

	b->n = b->used = 0;
	if (s->set > 0) {
		unset_knobs(s, b, g, now, n);
		return true;
	}
	for (; n > 0 && s->added > 0; n--) {
		size_t i = --s->added;

		if (s->stays[i] < 0)
			weir_gate_remove(g, s->next_nodes[i]);
	}
	if (s->added > 0)
		return true;
	forget_next(s);
	return false;
}

int policy_swap_begin(struct policy_swap *s, const struct policy_swap_how *how, struct weir_gate *g,
	weir_time now, struct weir_err *err)
{
	int rc = policy_swap_start(s, how, err);

	if (rc < 0)
		return rc;
	while ((rc = policy_swap_step(s, g, now, SIZE_MAX, err)) > 0)
		;
	while (rc < 0 && policy_swap_undo(s, g, now, SIZE_MAX))
		;
	return rc;
}

weir_node policy_swap_node(const struct policy_swap *s, size_t i)
{
	return s->next_nodes ? s->next_nodes[i] : s->nodes[i];
}

/* ---- finish */

static bool all_of_them(const struct weir_req *q, void *arg)
{
	(void)q;
	(void)arg;
	return true;
}

/* Compact a sweep that is half done, and append the nodes that leave now. */
static void append_leaving(struct policy_swap *s, weir_node *room)
{
	size_t n = 0;

	for (size_t i = 0; i < s->sweep_to; i++)
		room[n++] = s->leaving[i];
	for (size_t i = s->sweep_from; i < s->n_leaving; i++)
		room[n++] = s->leaving[i];
	for (size_t i = 0; i < s->n_next_leaving; i++)
		room[n++] = s->next_leaving[i];
	s->sweep_from = s->sweep_to = 0;
	free(s->leaving);
	s->leaving = room;
	s->n_leaving = n;
}

void policy_swap_finish(struct policy_swap *s, struct weir_gate *g, weir_time now,
	const weir_node *busy, size_t n_busy, bool (*moves)(const struct weir_req *, void *),
	void (*moved)(struct weir_req *, void *), void *arg)
{
	/* A group's node, and a new one, has nothing to hand back. */
	for (size_t i = 0; !busy && i < s->n_next_leaving; i++)
		weir_gate_cancel(g, now, s->next_leaving[i], all_of_them, moved, arg);
	for (size_t i = 0; !busy && moves && i < s->n_next; i++)
		weir_gate_cancel(g, now, s->next_nodes[i], moves, moved, arg);
	for (size_t i = 0; busy && i < n_busy; i++)
		weir_gate_cancel(g, now, busy[i], moves, moved, arg);
	append_leaving(s, s->room_leaving);
	s->room_leaving = NULL;
	free(s->nodes);
	s->nodes = s->next_nodes;
	s->n_nodes = s->n_next;
	s->next_nodes = NULL;
	forget_next(s);
}

bool policy_swap_sweep(struct policy_swap *s, struct weir_gate *g, size_t n,
	void (*gone)(weir_node, void *), void *arg)
{
	for (; n > 0 && s->sweep_from < s->n_leaving; n--) {
		weir_node node = s->leaving[s->sweep_from++];

		if (weir_gate_remove(g, node) != 0)
			s->leaving[s->sweep_to++] = node;
		else if (gone)
			gone(node, arg);
	}
	if (s->sweep_from < s->n_leaving)
		return true;
	s->n_leaving = s->sweep_to;
	s->sweep_from = s->sweep_to = 0;
	return false;
}

void policy_swap_free(struct policy_swap *s)
{
	forget_next(s);
	free(s->nodes);
	free(s->leaving);
	*s = (struct policy_swap){0};
}
