/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  R. K. Ahuja, J. B. Orlin, C. Stein, R. E. Tarjan, "Improved algorithms for bipartite
 *         network flow", 1994: push-relabel in which only the nodes of the smaller side, here the
 *         servers, ever have excess. Highest level first, gaps and global relabelling as in B. V.
 *         Cherkassky, A. V. Goldberg, "On implementing the push-relabel method for the maximum flow
 *         problem", 1997.
 * LAW     An overloaded server gives a bucket's tokens (tokens > 0) to a server at which the bucket
 *         has spare demand (spare > 0) and whose level is one less. If there is none, its level
 *         rises to one above the lowest that it could give to. A level without servers cuts off all
 *         servers above it: from there nothing reaches an underloaded server.
 * SYMBOLS level of a server: a lower bound of the transfers to the nearest underloaded one; of a
 *         bucket: a lower bound of the levels of the servers at which it has spare demand.
 * METHOD  A search backwards from the underloaded servers makes levels exact, at the start and
 *         whenever a few times as many entries were read as there are. Servers and buckets remember
 *         how far they have searched at their level. O(S² · entries) at most.
 * DIFFERS It begins with the given allocation. There is no second half: tokens that cannot reach an
 *         underloaded server stay, since an allocation with excess tokens is as good as any. An
 *         underloaded server takes no more than it has room for.
 * EXAMPLE Servers 1, 2, 3 have 25 too many, none, 25 too few; red moves from 1 to 2 and blue from 2
 *         to 3: the levels are 2, 1, 0. 1 gives 25 of red to 2, which then gives 25 of blue to 3.
 */
#include "control/pshift/alloc-impl.h"
#include <errno.h>

#define FAR UINT32_MAX
/* times all entries read: then recompute exact levels, which reads them about twice */
#define WORK 2

/* An entry. All of it in one place: a server reads its entries all over the memory. */
struct cell {
	int64_t tokens, spare; /* spare: demand − tokens */
	uint32_t server;
};

/* A bucket. */
struct row {
	uint32_t
		level; /* a lower bound of the levels of the servers at which it has spare demand */
	uint32_t next; /* no entry before this one can take tokens at that level */
	uint32_t first, end;
};

struct general {
	struct pshift_flow *f;
	struct cell *cells; /* of each entry */
	struct row *rows;   /* of each bucket */
	const uint32_t *of_first;
	const struct pshift_own *of; /* entries of each server */
	uint32_t *level;             /* by server, or FAR: nothing can be given from there */
	uint32_t *next;              /* by server: no entry in `of` before this one can give */
	uint32_t *queue;
	/* A ring of the servers of each level, overloaded ones first, linked both ways; the ring of
	 * level l begins and ends at servers + l. */
	uint32_t *after, *before;
	uint32_t highest; /* no server is above this level */
	uint32_t busy;    /* no overloaded server is above this level */
	size_t work;      /* entries read since levels were exact */
};

/* Prefetch row and cells of an entry. */
static inline void fetch(const struct general *g, const struct pshift_own *o)
{
	__builtin_prefetch(&g->rows[o[PSHIFT_PREFETCH].i]);
	__builtin_prefetch(&g->cells[o[PSHIFT_PREFETCH].e]);
}

/* ---- rings */

static void ring_remove(struct general *g, uint32_t j)
{
	g->after[g->before[j]] = g->after[j];
	g->before[g->after[j]] = g->before[j];
}

static void ring_insert(struct general *g, uint32_t j, uint32_t at)
{
	g->before[j] = at;
	g->after[j] = g->after[at];
	g->before[g->after[at]] = j;
	g->after[at] = j;
}

/* Put server j, which is in no ring, into the ring of its level. */
static void enter(struct general *g, uint32_t j)
{
	uint32_t level = g->level[j], ring = (uint32_t)g->f->servers + level;

	ring_insert(g, j, g->f->gap[j] > 0 ? ring : g->before[ring]);
	g->highest = level > g->highest ? level : g->highest;
	if (g->f->gap[j] > 0 && level > g->busy)
		g->busy = level;
}

static bool ring_empty(const struct general *g, uint32_t level)
{
	uint32_t ring = (uint32_t)g->f->servers + level;

	return g->after[ring] == ring;
}

/* ---- exact levels */

/* Server k has a level: set the levels of buckets with spare demand there, and of the servers that
 * have their tokens. */
static size_t reach(struct general *g, uint32_t k, size_t tail)
{
	const struct pshift_own *o = g->of + g->of_first[k], *end = g->of + g->of_first[k + 1];
	struct cell *cells = g->cells;
	struct row *rows = g->rows;
	uint32_t *level = g->level, own = level[k];

	for (; o < end; o++) {
		struct row *r = &rows[o->i];

		fetch(g, o);
		if (r->level != FAR || cells[o->e].spare == 0)
			continue;
		r->level = own;
		for (const struct cell *c = cells + r->first; c < cells + r->end; c++) {
			if (level[c->server] != FAR || c->tokens == 0)
				continue;
			level[c->server] = own + 1;
			g->queue[tail++] = c->server;
		}
	}
	return tail;
}

static void label(struct general *g)
{
	struct pshift_flow *f = g->f;
	size_t tail = 0;

	for (size_t j = 0; j < f->servers; j++) {
		g->level[j] = f->gap[j] < 0 ? 0 : FAR;
		g->next[j] = g->of_first[j];
		g->after[f->servers + j] = g->before[f->servers + j] = (uint32_t)(f->servers + j);
		if (f->gap[j] < 0)
			g->queue[tail++] = (uint32_t)j;
	}
	for (size_t i = 0; i < f->buckets; i++) {
		g->rows[i].level = FAR;
		g->rows[i].next = g->rows[i].first;
	}
	for (size_t head = 0; head < tail; head++)
		tail = reach(g, g->queue[head], tail);
	g->highest = g->busy = 0;
	g->work = 0;
	for (size_t x = 0; x < tail; x++)
		enter(g, g->queue[x]);
}

/* ---- relabelling */

/* Raise the row to the least level, above its own, of the servers at which it has spare demand. */
static void relabel_row(struct general *g, struct row *r)
{
	uint32_t least = FAR, e = r->first;

	r->next = e;
	for (; e < r->end && least != r->level + 1; e++) {
		uint32_t level = g->level[g->cells[e].server];

		if (level < least && g->cells[e].spare > 0) {
			least = level;
			r->next = e;
		}
	}
	r->level = least;
	g->work += e - r->first;
}

/* No server has this level any more: cut off those above it. */
static void cut_off(struct general *g, uint32_t level)
{
	for (uint32_t l = level + 1; l <= g->highest; l++) {
		uint32_t ring = (uint32_t)g->f->servers + l;

		for (uint32_t j = g->after[ring]; j != ring; j = g->after[j])
			g->level[j] = FAR;
		g->after[ring] = g->before[ring] = ring;
	}
	g->highest = level;
	g->busy = g->busy < level ? g->busy : level;
}

/* Raise server j to one above the lowest level that it could give to. */
static void relabel(struct general *g, uint32_t j)
{
	const struct pshift_own *o = g->of + g->of_first[j], *end = g->of + g->of_first[j + 1],
				*at = o;
	uint32_t old = g->level[j], least = FAR;

	ring_remove(g, j);
	for (; o < end && least != old; o++) {
		uint32_t level = g->rows[o->i].level;

		fetch(g, o);
		if (level < least && g->cells[o->e].tokens > 0) {
			least = level;
			at = o;
		}
	}
	g->work += (size_t)(o - g->of) - g->of_first[j];
	g->next[j] = (uint32_t)(at - g->of);
	/* A shortest path visits no server twice. */
	g->level[j] = least >= g->f->servers - 1 ? FAR : least + 1;
	if (g->level[j] != FAR)
		enter(g, j);
	if (ring_empty(g, old))
		cut_off(g, old);
}

/* ---- pushing */

/* Give tokens of cell c from server j, as far as its row has admissible servers. */
static void give(struct general *g, uint32_t j, struct cell *c, struct row *r)
{
	int64_t *gap = g->f->gap;
	uint32_t y = r->next;

	for (; y < r->end; y++) {
		struct cell *to = &g->cells[y];
		uint32_t k = to->server;
		int64_t n = to->spare, was = gap[k];

		if (g->level[k] != r->level || n == 0)
			continue;
		n = n < c->tokens ? n : c->tokens;
		n = n < gap[j] ? n : gap[j];
		if (was < 0)
			n = n < -was ? n : -was;
		c->tokens -= n;
		c->spare += n;
		to->tokens += n;
		to->spare -= n;
		gap[j] -= n;
		gap[k] += n;
		if (was == 0) { /* overloaded now: to the front */
			ring_remove(g, k);
			enter(g, k);
		} else if (was + n == 0) {
			relabel(g, k);
		}
		if (c->tokens == 0 || gap[j] == 0)
			break;
	}
	r->next = y;
	if (y == r->end)
		relabel_row(g, r);
}

/* Return the next entry of server j that can give at its level; or the end. */
static const struct pshift_own *admissible(const struct general *g, uint32_t j)
{
	const struct pshift_own *o = g->of + g->next[j], *end = g->of + g->of_first[j + 1];
	const struct row *rows = g->rows;
	const struct cell *cells = g->cells;
	uint32_t level = g->level[j];

	for (; o < end; o++) {
		fetch(g, o);
		if (rows[o->i].level < level && cells[o->e].tokens > 0)
			break;
	}
	return o;
}

static void discharge(struct general *g, uint32_t j)
{
	while (g->level[j] != FAR && g->f->gap[j] > 0) {
		const struct pshift_own *o = admissible(g, j);

		g->work += (size_t)(o - g->of) - g->next[j];
		g->next[j] = (uint32_t)(o - g->of);
		if (g->next[j] == g->of_first[j + 1])
			relabel(g, j);
		else
			give(g, j, &g->cells[o->e], &g->rows[o->i]);
	}
	if (g->level[j] == FAR)
		return;
	ring_remove(g, j);
	enter(g, j);
}

/* ---- in and out */

/* Copy tokens and spare demand of all entries. */
static void copy_in(struct general *g)
{
	const struct pshift_flow *f = g->f;

	for (size_t i = 0; i < f->buckets; i++)
		g->rows[i] = (struct row){.first = f->first[i], .end = f->first[i + 1]};
	for (size_t e = 0; e < f->first[f->buckets]; e++)
		g->cells[e] =
			(struct cell){f->tokens[e], f->demand[e] - f->tokens[e], f->server[e]};
}

static int begin(struct pshift *p, struct pshift_flow *f, struct general *g)
{
	int r = pshift_by_server(p, f);

	*g = (struct general){.f = f};
	g->of_first = p->arrays[PSHIFT_OF_FIRST].at;
	g->of = p->arrays[PSHIFT_OF].at;
	g->level = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(*g->level));
	g->next = pshift_array(p, PSHIFT_NEXT, f->servers, sizeof(*g->next));
	g->queue = pshift_array(p, PSHIFT_QUEUE, f->servers, sizeof(*g->queue));
	g->after = pshift_array(p, PSHIFT_RINGS, 4 * f->servers, sizeof(*g->after));
	g->rows = pshift_array(p, PSHIFT_ROWS, f->buckets, sizeof(*g->rows));
	g->cells = pshift_array(p, PSHIFT_CELLS, f->first[f->buckets], sizeof(*g->cells));
	if (!g->level || !g->next || !g->queue || !g->after || !g->rows || !g->cells || r)
		return -ENOMEM;
	g->before = g->after + 2 * f->servers;
	copy_in(g);
	return 0;
}

/* Return the overloaded server of the highest level, or FAR. */
static uint32_t highest(struct general *g)
{
	for (;; g->busy--) {
		uint32_t j = g->after[g->f->servers + g->busy];

		if (j < g->f->servers && g->f->gap[j] > 0)
			return j;
		if (g->busy == 0)
			return FAR;
	}
}

static int solve(struct pshift *p, struct pshift_flow *f)
{
	struct general g;
	size_t entries = f->first[f->buckets];
	int r = begin(p, f, &g);

	if (r)
		return r;
	label(&g);
	for (uint32_t j = highest(&g); j != FAR; j = highest(&g)) {
		discharge(&g, j);
		if (g.work > WORK * entries)
			label(&g);
	}
	for (size_t e = 0; e < entries; e++)
		f->tokens[e] = g.cells[e].tokens;
	return 0;
}

int pshift_general(struct pshift *p, struct pshift_flow *f)
{
	struct pshift_flow joint;
	int r = f->servers > 0 ? pshift_join(p, f, &joint) : 0;

	if (r < 0 || f->servers == 0)
		return r;
	if (r == 0)
		return solve(p, f);
	r = solve(p, &joint);
	if (r == 0)
		pshift_part(p, &joint, f);
	return r;
}
