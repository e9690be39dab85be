/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  E. A. Dinitz, "Algorithm for solution of a problem of maximum flow in networks with power
 *         estimation", 1970.
 * LAW     Tokens go from overloaded servers to underloaded ones along shortest ways only; when none of
 *         that length is left, the next length. A way is server, bucket, server, …: a server gives a
 *         bucket's token (tokens > 0), the bucket takes it to another server (spare demand > 0).
 * SYMBOLS level of a server: transfers to the nearest underloaded one; of a bucket: the least level of
 *         the servers at which it has spare demand.
 * METHOD  A search backwards from the underloaded servers gives levels; then one from each overloaded
 *         server in depth, where every server and bucket remembers how far it has looked. At most S
 *         rounds of O(ways + S · entries). No recursion.
 * DIFFERS It begins with the allocation it is given, and stops with what cannot move where it is:
 *         tokens that are in excess are an allocation as good as any.
 * EXAMPLE Servers 1, 2, 3 have 25 too many, none, 25 too few; red moves from 1 to 2 and blue from 2 to
 *         3: the levels are 2, 1, 0 and the way is 1 red 2 blue 3.
 */
#include "alg/pshift-impl.h"
#include <errno.h>
#include <string.h>

#define FAR UINT32_MAX

struct general {
	struct pshift_flow *f;
	const uint32_t *of_first, *of; /* entries of each server */
	const uint32_t *row;           /* the bucket of each entry */
	uint32_t *level, *row_level;
	uint32_t *next, *row_next; /* how far they have looked: in `of`, in the bucket's entries */
	uint32_t *queue;
	uint32_t *path; /* entries: given from, taken to, in turn */
};

int pshift_by_server(struct pshift *p, const struct pshift_flow *f)
{
	size_t entries = f->first[f->buckets];
	uint32_t *first = pshift_array(p, PSHIFT_OF_FIRST, f->servers + 2, sizeof(*first));
	uint32_t *of = pshift_array(p, PSHIFT_OF, entries + 1, sizeof(*of));
	uint32_t *row = pshift_array(p, PSHIFT_ROW, entries + 1, sizeof(*row));

	if (!first || !of || !row)
		return -ENOMEM;
	/* Counted one place up, so that filling moves each to where it belongs. */
	memset(first, 0, (f->servers + 2) * sizeof(*first));
	for (size_t e = 0; e < entries; e++)
		first[f->server[e] + 2]++;
	for (size_t j = 2; j < f->servers + 2; j++)
		first[j] += first[j - 1];
	for (size_t i = 0; i < f->buckets; i++) {
		for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++) {
			of[first[f->server[e] + 1]++] = e;
			row[e] = (uint32_t)i;
		}
	}
	return 0;
}

/* ---- levels */

/* Server k has a level: so have the buckets with spare demand there, and who has their tokens. */
static size_t reach(struct general *g, uint32_t k, size_t tail)
{
	struct pshift_flow *f = g->f;

	for (uint32_t x = g->of_first[k]; x < g->of_first[k + 1]; x++) {
		uint32_t i = g->row[g->of[x]];

		if (g->row_level[i] != FAR || f->tokens[g->of[x]] >= f->demand[g->of[x]])
			continue;
		g->row_level[i] = g->level[k];
		for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++) {
			uint32_t j = f->server[e];

			if (f->tokens[e] == 0 || g->level[j] != FAR)
				continue;
			g->level[j] = g->level[k] + 1;
			g->queue[tail++] = j;
		}
	}
	return tail;
}

/* Can any overloaded server be reached? */
static bool label(struct general *g)
{
	struct pshift_flow *f = g->f;
	size_t tail = 0;
	bool found = false;

	for (size_t j = 0; j < f->servers; j++) {
		g->level[j] = f->gap[j] < 0 ? 0 : FAR;
		g->next[j] = g->of_first[j];
		if (f->gap[j] < 0)
			g->queue[tail++] = (uint32_t)j;
	}
	memset(g->row_level, 0xff, f->buckets * sizeof(*g->row_level));
	memcpy(g->row_next, f->first, f->buckets * sizeof(*g->row_next));
	for (size_t head = 0; head < tail; head++) {
		found |= f->gap[g->queue[head]] > 0;
		tail = reach(g, g->queue[head], tail);
	}
	return found;
}

/* ---- one way */

/* The next entry at which bucket i can take a token one level down; or its end. */
static uint32_t row_look(struct general *g, uint32_t i)
{
	struct pshift_flow *f = g->f;
	uint32_t e = g->row_next[i];

	while (e < f->first[i + 1] &&
		(g->level[f->server[e]] != g->row_level[i] || f->tokens[e] >= f->demand[e]))
		e++;
	g->row_next[i] = e;
	return e;
}

/* One more transfer from server j at path[len]; false: there is none. */
static bool step(struct general *g, uint32_t j, size_t len)
{
	struct pshift_flow *f = g->f;

	for (; g->next[j] < g->of_first[j + 1]; g->next[j]++) {
		uint32_t e = g->of[g->next[j]], i = g->row[e], to;

		if (f->tokens[e] == 0 || g->row_level[i] == FAR ||
			g->row_level[i] + 1 != g->level[j])
			continue;
		to = row_look(g, i);
		if (to == f->first[i + 1])
			continue;
		g->path[len] = e;
		g->path[len + 1] = to;
		return true;
	}
	return false;
}

static void move(struct general *g, uint32_t from, uint32_t to, size_t len)
{
	struct pshift_flow *f = g->f;
	int64_t n = f->gap[from] < -f->gap[to] ? f->gap[from] : -f->gap[to];

	for (size_t x = 0; x < len; x += 2) {
		int64_t tokens = f->tokens[g->path[x]];
		int64_t spare = f->demand[g->path[x + 1]] - f->tokens[g->path[x + 1]];

		n = tokens < n ? tokens : n;
		n = spare < n ? spare : n;
	}
	for (size_t x = 0; x < len; x += 2) {
		f->tokens[g->path[x]] -= n;
		f->tokens[g->path[x + 1]] += n;
	}
	f->gap[from] -= n;
	f->gap[to] += n;
}

/* All ways of their shortest length from overloaded server j. */
static void drain(struct general *g, uint32_t j)
{
	struct pshift_flow *f = g->f;
	uint32_t at = j;
	size_t len = 0;

	while (f->gap[j] > 0) {
		if (g->level[at] == 0 && f->gap[at] < 0) {
			move(g, j, at, len);
			at = j;
			len = 0;
		} else if (g->level[at] > 0 && step(g, at, len)) {
			at = f->server[g->path[len + 1]];
			len += 2;
		} else if (len == 0) {
			return;
		} else { /* a dead end: whoever led here looks further */
			len -= 2;
			g->row_next[g->row[g->path[len]]]++;
			at = f->server[g->path[len]];
		}
	}
}

static int begin(struct pshift *p, struct pshift_flow *f, struct general *g)
{
	int r = pshift_by_server(p, f);

	if (r)
		return r;
	*g = (struct general){.f = f};
	g->of_first = p->arrays[PSHIFT_OF_FIRST].at;
	g->of = p->arrays[PSHIFT_OF].at;
	g->row = p->arrays[PSHIFT_ROW].at;
	g->level = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(*g->level));
	g->next = pshift_array(p, PSHIFT_NEXT, f->servers, sizeof(*g->next));
	g->queue = pshift_array(p, PSHIFT_QUEUE, f->servers, sizeof(*g->queue));
	g->path = pshift_array(p, PSHIFT_PATH, 2 * f->servers + 2, sizeof(*g->path));
	g->row_level = pshift_array(p, PSHIFT_ROW_LEVEL, f->buckets, sizeof(*g->row_level));
	g->row_next = pshift_array(p, PSHIFT_ROW_NEXT, f->buckets, sizeof(*g->row_next));
	if (!g->level || !g->next || !g->queue || !g->path || !g->row_level || !g->row_next)
		return -ENOMEM;
	return 0;
}

int pshift_general(struct pshift *p, struct pshift_flow *f)
{
	struct general g;
	int r = begin(p, f, &g);

	while (r == 0 && label(&g)) {
		for (size_t j = 0; j < f->servers; j++) {
			if (f->gap[j] > 0 && g.level[j] != FAR)
				drain(&g, (uint32_t)j);
		}
	}
	return r;
}
