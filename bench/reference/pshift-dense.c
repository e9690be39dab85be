/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  pShift §III-B, Algorithms 2 to 5.
 * LAW     TM_{j,k}[i] = min(a_i^j, d_i^k − a_i^k), TMS_{j,k} its sum over the buckets. For l from 1
 *         to S − 1, for each overloaded server: while it is, search breadth-first for an
 *         underloaded one at most l edges of TMS > 0 away, and move min(overload, underload, edges)
 *         along the path.
 * SYMBOLS as in pshift.c.
 * METHOD  The map is S² vectors of B numbers, one after the other. After each edge of a path the
 *         vectors into and out of its two servers are computed again. O(S² B) memory and time to
 *         begin with, then O(S B) for each edge moved along.
 * DIFFERS Shares are rounded by the largest remainder, by the code that pshift.c uses.
 * EXAMPLE Table III: TM_{1,2} = [25, 0, 0], TMS_{1,2} = 25.
 */
#include "bench/reference/pshift-dense.h"
#include "base/arena.h"
#include "control/pshift/alloc-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct dense {
	struct arena memory;
	size_t servers, buckets;
	int32_t *demand, *tokens; /* servers × buckets */
	int32_t *map;             /* servers × servers × buckets */
	int64_t *sums;            /* servers × servers */
	int64_t *gap;
	uint32_t *by, *depth, *queue, *path;
	bool changed_only;
	uint32_t *moved; /* buckets that moved along the last edge */
	size_t n_moved;
};

/* ---- the map */

static void update_entry(struct dense *t, size_t j, size_t k, size_t i)
{
	int32_t *at = &t->map[(j * t->servers + k) * t->buckets + i];
	int32_t has = t->tokens[j * t->buckets + i];
	int32_t spare = t->demand[k * t->buckets + i] - t->tokens[k * t->buckets + i];

	t->sums[j * t->servers + k] -= *at;
	*at = has < spare ? has : spare;
	t->sums[j * t->servers + k] += *at;
}

static void compute_edge(struct dense *t, size_t j, size_t k)
{
	int32_t *at = &t->map[(j * t->servers + k) * t->buckets];
	const int32_t *has = &t->tokens[j * t->buckets], *other = &t->tokens[k * t->buckets];
	const int32_t *demand = &t->demand[k * t->buckets];
	int64_t sum = 0;

	for (size_t i = 0; i < t->buckets; i++) {
		int32_t spare = demand[i] - other[i];

		at[i] = has[i] < spare ? has[i] : spare;
		sum += at[i];
	}
	t->sums[j * t->servers + k] = sum;
}

static void update_server(struct dense *t, size_t j)
{
	for (size_t k = 0; k < t->servers; k++) {
		if (k == j)
			continue;
		for (size_t x = 0; t->changed_only && x < t->n_moved; x++) {
			update_entry(t, j, k, t->moved[x]);
			update_entry(t, k, j, t->moved[x]);
		}
		if (!t->changed_only) {
			compute_edge(t, j, k);
			compute_edge(t, k, j);
		}
	}
}

/* ---- shift */

/* Return the underloaded server that is reached first, at most `most` edges away; or NONE. */
static uint32_t find_underloaded(struct dense *t, uint32_t from, uint32_t most)
{
	size_t head = 0, tail = 0;

	memset(t->by, 0xff, t->servers * sizeof(*t->by));
	t->depth[from] = 0;
	t->by[from] = from;
	t->queue[tail++] = from;
	while (head < tail) {
		uint32_t j = t->queue[head++];

		if (t->depth[j] == most)
			continue;
		for (uint32_t k = 0; k < t->servers; k++) {
			if (t->by[k] != NONE || t->sums[j * t->servers + k] == 0)
				continue;
			t->by[k] = j;
			t->depth[k] = t->depth[j] + 1;
			if (t->gap[k] < 0)
				return k;
			t->queue[tail++] = k;
		}
	}
	return NONE;
}

static void move_tokens(struct dense *t, size_t j, size_t k, int64_t n)
{
	const int32_t *map = &t->map[(j * t->servers + k) * t->buckets];

	t->n_moved = 0;
	for (size_t i = 0; i < t->buckets && n > 0; i++) {
		int32_t by = map[i] < n ? map[i] : (int32_t)n;

		if (by == 0)
			continue;
		t->tokens[j * t->buckets + i] -= by;
		t->tokens[k * t->buckets + i] += by;
		t->moved[t->n_moved++] = (uint32_t)i;
		n -= by;
	}
	update_server(t, j);
	update_server(t, k);
}

static void shift_path(struct dense *t, uint32_t from, uint32_t to)
{
	int64_t n = t->gap[from] < -t->gap[to] ? t->gap[from] : -t->gap[to];
	uint32_t len = t->depth[to];

	for (uint32_t k = to, x = len; k != from; k = t->by[k]) {
		int64_t sum = t->sums[t->by[k] * t->servers + k];

		n = sum < n ? sum : n;
		t->path[x--] = k;
	}
	t->path[0] = from;
	for (uint32_t x = 0; x < len; x++)
		move_tokens(t, t->path[x], t->path[x + 1], n);
	t->gap[from] -= n;
	t->gap[to] += n;
}

static void shift_all(struct dense *t)
{
	for (uint32_t l = 1; l < t->servers; l++) {
		for (uint32_t j = 0; j < t->servers; j++) {
			while (t->gap[j] > 0) {
				uint32_t k = find_underloaded(t, j, l);

				if (k == NONE)
					break;
				shift_path(t, j, k);
			}
		}
	}
}

/* ---- set-up and result */

static int dense_init(const struct pshift_input *in, struct dense *t)
{
	size_t s = in->servers, b = in->buckets;
	struct arena *m = &t->memory;

	*t = (struct dense){.servers = s, .buckets = b};
	t->demand = arena_take(m, s * b + 1, sizeof(*t->demand));
	t->tokens = arena_take(m, s * b + 1, sizeof(*t->tokens));
	t->map = arena_take(m, s * s * b + 1, sizeof(*t->map));
	t->sums = arena_take(m, s * s + 1, sizeof(*t->sums));
	t->gap = arena_take(m, s + 1, sizeof(*t->gap));
	t->by = arena_take(m, 4 * (s + 1) + b, sizeof(*t->by));
	if (m->failed)
		return -ENOMEM;
	t->depth = t->by + s + 1;
	t->queue = t->depth + s + 1;
	t->path = t->queue + s + 1;
	t->moved = t->path + s + 1;
	return 0;
}

/* Algorithm 3, with the split of pshift.c. */
static int split_initially(const struct pshift_input *in, struct dense *t)
{
	struct pshift_flow f = {.servers = in->servers,
		.buckets = in->buckets,
		.first = in->first,
		.server = in->server,
		.demand = in->demand,
		.gap = t->gap};
	struct pshift_split s = {.flow = &f};
	struct pshift *p = NULL;
	int r = pshift_new(&p);

	f.tokens = malloc((in->first[in->buckets] + 1) * sizeof(*f.tokens));
	if (r == 0)
		s.want = pshift_wanted(p, in);
	if (r || !f.tokens || (!s.want && in->buckets > 0))
		r = -ENOMEM;
	for (size_t j = 0; r == 0 && j < in->servers; j++)
		t->gap[j] = -in->capacity[j];
	if (r == 0)
		r = pshift_split(p, &s, NULL);
	for (size_t i = 0; r == 0 && i < in->buckets; i++) {
		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++) {
			t->tokens[in->server[e] * in->buckets + i] = (int32_t)f.tokens[e];
			t->demand[in->server[e] * in->buckets + i] = (int32_t)in->demand[e];
		}
	}
	pshift_free(p);
	free(f.tokens);
	return r;
}

static bool too_large(const struct pshift_input *in)
{
	for (size_t j = 0; j < in->servers; j++) {
		if (in->capacity[j] > INT32_MAX)
			return true;
	}
	for (uint32_t e = 0; e < in->first[in->buckets]; e++) {
		if (in->demand[e] > INT32_MAX)
			return true;
	}
	return false;
}

int pshift_dense(const struct pshift_input *in, const struct pshift_dense_options *options,
	int64_t *rtokens, int64_t *ret_map, int64_t *ret_phi)
{
	struct dense t;
	int64_t phi = 0;
	int r = too_large(in) ? -ERANGE : 0;

	if (r)
		return r;
	r = dense_init(in, &t);
	if (r == 0)
		r = split_initially(in, &t);
	if (r) {
		arena_free(&t.memory);
		return r;
	}
	t.changed_only = options && options->changed_only;
	for (size_t j = 0; j < t.servers; j++) {
		for (size_t k = 0; k < t.servers; k++) {
			if (j != k)
				compute_edge(&t, j, k);
		}
	}
	if (ret_map)
		memcpy(ret_map, t.sums, t.servers * t.servers * sizeof(*ret_map));
	shift_all(&t);
	for (size_t j = 0; j < t.servers; j++)
		phi += in->capacity[j] + (t.gap[j] < 0 ? t.gap[j] : 0);
	for (size_t i = 0; rtokens && i < in->buckets; i++) {
		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++)
			rtokens[e] = t.tokens[in->server[e] * in->buckets + i];
	}
	*ret_phi = phi;
	arena_free(&t.memory);
	return 0;
}
