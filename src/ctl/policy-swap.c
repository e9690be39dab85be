/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     A request is in the gate or handed back, never both and never neither. Requests of one
 *         tenant that move are handed back in the order in which they waited. On error the gate's
 *         tree, knobs and requests are as they were.
 * METHOD  Old tenants are sorted by path; each new one finds its predecessor there (O(n log n)). New
 *         nodes are added, parents first; then one weir_gate_set, the last thing that can fail. Old
 *         nodes that nobody took over are put on the list of leavers in reverse order of the tree,
 *         so children before parents, which is how a gate lets nodes go.
 * EXAMPLE prod (leaf) becomes prod with db and web: a second node for prod, two below it; the old
 *         prod's queue is handed back, its node goes when its last request is done.
 */
#include "ctl/policy-swap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_leaf(const struct weir_tenant *t)
{
	return t->first_child < 0;
}

/* ---- who stays */

static int by_path(const void *a, const void *b)
{
	const struct weir_tenant *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

/* stays[i]: the index in `from` whose node tenant i of `to` takes over, or -1. */
static int find_stays(const struct weir_policy *from, const struct weir_policy *to, int *stays)
{
	size_t n = from ? from->n_tenants : 0;
	const struct weir_tenant **sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &from->tenants[i];
	qsort(sorted, n, sizeof(*sorted), by_path);
	for (size_t i = 0; i < to->n_tenants; i++) {
		const struct weir_tenant *t = &to->tenants[i], *const * old;

		/* A parent of the same path is a group in both policies, so it stays with its child. */
		old = bsearch(&t, sorted, n, sizeof(*sorted), by_path);
		stays[i] = old && is_leaf(*old) == is_leaf(t) ? (int)(*old - from->tenants) : -1;
	}
	free(sorted);
	return 0;
}

/* ---- begin */

static void remove_added(struct weir_gate *g, const weir_node *nodes, const int *stays, size_t n)
{
	while (n-- > 0)
		if (stays[n] < 0)
			weir_gate_remove(g, nodes[n]);
}

/* Old nodes first, then the new ones below them. */
static int add_nodes(struct policy_swap *s, const struct weir_policy *to, const int *stays,
	struct weir_gate *g, struct weir_err *err)
{
	for (size_t i = 0; i < to->n_tenants; i++) {
		const struct weir_tenant *t = &to->tenants[i];
		int rc;

		if (stays[i] >= 0) {
			s->next_nodes[i] = s->nodes[stays[i]];
			continue;
		}
		rc = weir_gate_add(
			g, t->parent < 0 ? WEIR_ROOT : s->next_nodes[t->parent], &s->next_nodes[i]);
		if (rc < 0) {
			remove_added(g, s->next_nodes, stays, i);
			return weir_err_set(
				err, rc, "no room for tenant '%s' in the gate", t->path);
		}
	}
	return 0;
}

/* Those of before, and what nobody took over, children first. */
static int list_leaving(struct policy_swap *s, const int *stays, size_t n)
{
	bool *taken = calloc(s->n_nodes + 1, sizeof(*taken));

	s->next_leaving = calloc(s->n_leaving + s->n_nodes + 1, sizeof(*s->next_leaving));
	if (!taken || !s->next_leaving) {
		free(taken);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		if (stays[i] >= 0)
			taken[stays[i]] = true;
	s->n_next_leaving = 0;
	for (size_t i = 0; i < s->n_leaving; i++)
		s->next_leaving[s->n_next_leaving++] = s->leaving[i];
	for (size_t i = s->n_nodes; i-- > 0;)
		if (!taken[i])
			s->next_leaving[s->n_next_leaving++] = s->nodes[i];
	free(taken);
	return 0;
}

static void forget_next(struct policy_swap *s)
{
	free(s->next_nodes);
	free(s->next_leaving);
	s->next_nodes = s->next_leaving = NULL;
	s->n_next = s->n_next_leaving = 0;
}

int policy_swap_begin(struct policy_swap *s, const struct policy_swap_how *how, struct weir_gate *g,
	weir_time now, struct weir_err *err)
{
	const struct weir_policy *to = how->to;
	size_t n = to->n_tenants;
	int *stays = calloc(n + 1, sizeof(*stays)), rc = -ENOMEM;

	s->next_nodes = calloc(n + 1, sizeof(*s->next_nodes));
	if (stays && s->next_nodes)
		rc = find_stays(how->from, to, stays);
	if (rc == 0)
		rc = list_leaving(s, stays, n);
	if (rc < 0) {
		weir_err_set(err, rc, "out of memory");
	} else if ((rc = add_nodes(s, to, stays, g, err)) == 0) {
		rc = policy_install_set(
			to, g, now, s->next_nodes, how->part, how->more, how->n_more, err);
		if (rc < 0)
			remove_added(g, s->next_nodes, stays, n);
	}
	free(stays);
	s->n_next = n;
	if (rc < 0)
		forget_next(s);
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

void policy_swap_finish(struct policy_swap *s, struct weir_gate *g, weir_time now,
	bool (*moves)(const struct weir_req *, void *), void (*moved)(struct weir_req *, void *),
	void *arg)
{
	/* A group's node, and a new one, has nothing to hand back. */
	for (size_t i = s->n_leaving; i < s->n_next_leaving; i++)
		weir_gate_cancel(g, now, s->next_leaving[i], all_of_them, moved, arg);
	for (size_t i = 0; moves && i < s->n_next; i++)
		weir_gate_cancel(g, now, s->next_nodes[i], moves, moved, arg);
	free(s->nodes);
	free(s->leaving);
	s->nodes = s->next_nodes;
	s->n_nodes = s->n_next;
	s->leaving = s->next_leaving;
	s->n_leaving = s->n_next_leaving;
	s->next_nodes = s->next_leaving = NULL;
	s->n_next = s->n_next_leaving = 0;
}

size_t policy_swap_sweep(
	struct policy_swap *s, struct weir_gate *g, void (*gone)(weir_node, void *), void *arg)
{
	size_t left = 0;

	for (size_t i = 0; i < s->n_leaving; i++) {
		weir_node node = s->leaving[i];

		if (weir_gate_remove(g, node) != 0)
			s->leaving[left++] = node;
		else if (gone)
			gone(node, arg);
	}
	s->n_leaving = left;
	return left;
}

void policy_swap_free(struct policy_swap *s)
{
	forget_next(s);
	free(s->nodes);
	free(s->leaving);
	*s = (struct policy_swap){0};
}
