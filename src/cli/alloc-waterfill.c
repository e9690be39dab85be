/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-waterfill: rates of a tree of services that share a capacity. */
#include "control/parley/waterfill.h"
#include "base/arena.h"
#include "base/array.h"
#include "cli/alloc.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH 256 /* longer paths are cut */

static const char *const top_keys[] = {"capacity", "nodes", NULL};
static const char *const node_keys[] = {"name", "min", "max", "weight", "demand", "children", NULL};
static const struct alloc_range at_least_0 = {.most = 1e150};
static const struct alloc_range weights = {.most = 1e100, .above = true};

struct service {
	json_t *of;       /* object of the answer */
	json_t *children; /* NULL: a leaf */
	char path[PATH];
	double min, max, weight, demand;
	uint32_t first;
};

struct services { /* in breadth-first order; the first one stands for the whole */
	struct service *all;
	size_t n, room;
};

static int read_children(const struct alloc_at *at, struct service *to)
{
	int r;

	if (json_is_null(json_object_get(at->object, "children")) ||
		!json_object_get(at->object, "children"))
		return alloc_need(at, "demand", at_least_0, &to->demand);
	if ((r = alloc_list(at, "children", &to->children)))
		return r;
	if (json_array_size(to->children) == 0)
		return alloc_fail(at, "children", "must not be empty");
	return json_object_get(at->object, "demand")
		       ? alloc_fail(at, "demand", "is the sum of its children's")
		       : 0;
}

static int read_service(const struct alloc_at *at, void *arg, size_t i)
{
	struct services *s = arg;
	struct service *to;
	const char *name;
	int r = alloc_keys(at, node_keys);

	if (array_grow(&s->all, &s->room, s->n + 1) < 0)
		return -ENOMEM;
	to = &s->all[s->n];
	*to = (struct service){.of = at->object, .max = HUGE_VAL, .weight = 1};
	snprintf(to->path, sizeof(to->path), "%s", at->path);
	if (r || (r = alloc_name(at, &name)) ||
		(r = alloc_absent_ok(alloc_number(at, "min", at_least_0, &to->min))) ||
		(r = alloc_absent_ok(alloc_number(at, "max", at_least_0, &to->max))) ||
		(r = alloc_absent_ok(alloc_number(at, "weight", weights, &to->weight))))
		return r;
	if (to->weight < 1e-100) /* a rate over a weight must stay a number */
		return alloc_fail(at, "weight", "must be at least 1e-100");
	r = read_children(at, to);
	s->n += r == 0;
	return r;
}

/* Read the nodes below each inner node, level by level. */
static int read_all(struct services *s, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		struct alloc_at at = {"", s->all[i].of, err};
		char key[PATH + 16];

		if (!s->all[i].children)
			continue;
		s->all[i].first = (uint32_t)s->n;
		snprintf(key, sizeof(key), "%s%s", s->all[i].path, i ? ".children" : "nodes");
		r = alloc_each(&at, key, s->all[i].children, read_service, s);
	}
	return r;
}

/* Copy one member of all nodes into an array of its own. */
static double *column(struct arena *m, const struct services *s, size_t offset)
{
	double *to = arena_take(m, s->n, sizeof(*to));

	for (size_t i = 0; to && i < s->n; i++)
		memcpy(&to[i], (const char *)&s->all[i] + offset, sizeof(*to));
	return to;
}

static int fill(struct arena *m, const struct services *s, double capacity, double **ret_rate,
	bool *ret_scaled)
{
	uint32_t *first = arena_take(m, s->n, sizeof(*first));
	uint32_t *many = arena_take(m, s->n, sizeof(*many));
	uint32_t *parent = arena_take(m, s->n, sizeof(*parent));
	struct waterfill_tree t = {.first = first, .many = many, .parent = parent};

	t.min = column(m, s, offsetof(struct service, min));
	t.all.min = t.least = column(m, s, offsetof(struct service, min));
	t.all.demand = t.want = column(m, s, offsetof(struct service, demand));
	t.all.max = column(m, s, offsetof(struct service, max));
	t.all.weight = column(m, s, offsetof(struct service, weight));
	t.all.rate = arena_take(m, s->n, sizeof(double));
	t.all.base = arena_take(m, s->n, sizeof(double));
	t.all.room = arena_take(m, s->n, sizeof(double));
	t.all.kept = arena_take(m, 2 * s->n, sizeof(double));
	t.given = arena_take(m, s->n, sizeof(double));
	if (m->failed)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		first[i] = s->all[i].first;
		many[i] = (uint32_t)json_array_size(s->all[i].children);
		if (many[i])
			parent[t.parents++] = (uint32_t)i;
	}
	t.all.n = s->n;
	*ret_scaled = waterfill_tree(&t, capacity);
	*ret_rate = t.all.rate;
	return 0;
}

/* Add the rates to the nodes of `out`, a copy of the input. */
static int write_rates(const struct services *s, double capacity, json_t *out)
{
	struct arena m = {0};
	double *rate = NULL;
	bool scaled = false;
	int r = fill(&m, s, capacity, &rate, &scaled);

	for (size_t i = 1; r == 0 && i < s->n; i++)
		r = json_object_set_new(s->all[i].of, "rate", json_real(rate[i])) ? -ENOMEM : 0;
	if (r == 0 && (json_object_set_new(out, "rate", json_real(rate[0])) ||
			      json_object_set_new(out, "scaled", json_boolean(scaled))))
		r = -ENOMEM;
	arena_free(&m);
	return r;
}

int alloc_waterfill(json_t *in, json_t **ret_out, struct weir_err *err)
{
	json_t *out = json_deep_copy(in);
	struct alloc_at top = {"", out, err};
	struct service root = {.of = out, .max = HUGE_VAL, .weight = 1};
	struct services s = {0};
	double capacity = 0;
	int r = out && array_grow(&s.all, &s.room, 1) == 0 ? 0 : -ENOMEM;

	if (r == 0 && (r = alloc_keys(&top, top_keys)) == 0 &&
		(r = alloc_need(&top, "capacity", at_least_0, &capacity)) == 0 &&
		(r = alloc_list(&top, "nodes", &root.children)) == 0) {
		s.all[s.n++] = root;
		r = read_all(&s, err);
	}
	if (r == 0)
		r = write_rates(&s, capacity, out);
	free(s.all);
	if (r == 0)
		*ret_out = out;
	else
		json_decref(out);
	return r;
}
