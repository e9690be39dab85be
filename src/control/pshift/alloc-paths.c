/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths: move tokens from the few servers that are still overloaded, one shortest path after
 * another.
 *
 * LAW     From an overloaded server, breadth first, over buckets that have tokens at one server and
 *         spare demand at the next, to the first underloaded one; as many tokens move as every step
 *         allows. If none is reached, no visited server can ever give to an underloaded one: no
 *         later path leads through it. So each server is done once, and dead ends are not searched
 *         again.
 * METHOD  A search reads the entries near one server, while alloc-general.c reads all of them
 *         several times. It stops when it has read more than that.
 */
#include "control/pshift/alloc-impl.h"
#include <errno.h>
#include <string.h>

#define READ 4          /* times all entries may be read: alloc-general.c costs more */
#define SOON 2          /* after this part of it the total can be estimated */
#define DEAD UINT32_MAX /* mark of a dead end */

struct paths {
	struct pshift_flow *f;
	const uint32_t *of_first;
	const struct pshift_own *of;
	uint32_t *server, *bucket; /* marks: the number of the search that visited it, or DEAD */
	uint32_t *queue;
	uint32_t *from, *to; /* of a visited server: the entries of the last step */
	uint32_t search;
	size_t work, most;   /* entries read; the most that may be */
	int64_t moved, left; /* tokens; left: still in excess */
};

/* Visit server k from `from`. Return true if it is underloaded. */
static bool enter(struct paths *p, uint32_t from, uint32_t to, size_t *tail)
{
	uint32_t k = p->f->server[to];

	p->server[k] = p->search;
	p->from[k] = from;
	p->to[k] = to;
	p->queue[(*tail)++] = k;
	return p->f->gap[k] < 0;
}

/* Visit the servers at which the bucket of entry `from` has spare demand. Return true if the last
 * one is underloaded. */
static bool reach(struct paths *p, struct pshift_own from, size_t *tail)
{
	const struct pshift_flow *f = p->f;

	p->bucket[from.i] = p->search;
	p->work += f->first[from.i + 1] - f->first[from.i];
	for (uint32_t e = f->first[from.i]; e < f->first[from.i + 1]; e++) {
		uint32_t mark = p->server[f->server[e]];

		if (mark == p->search || mark == DEAD || f->tokens[e] == f->demand[e])
			continue;
		if (enter(p, from.e, e, tail))
			return true;
	}
	return false;
}

/* Search from server j for the nearest underloaded one, at the end of the queue. Return false if
 * there is none. */
static bool find(struct paths *p, uint32_t j, size_t *tail)
{
	p->search++;
	p->server[j] = p->search;
	p->queue[0] = j;
	*tail = 1;
	for (size_t head = 0; head < *tail; head++) {
		uint32_t k = p->queue[head];

		p->work += p->of_first[k + 1] - p->of_first[k];
		for (uint32_t x = p->of_first[k]; x < p->of_first[k + 1]; x++) {
			uint32_t mark = p->bucket[p->of[x].i];

			if (mark != p->search && mark != DEAD && p->f->tokens[p->of[x].e] > 0 &&
				reach(p, p->of[x], tail))
				return true;
		}
	}
	return false;
}

/* Mark all visited servers, and each bucket with tokens at one of them, as dead ends. */
static void bury(struct paths *p, size_t n)
{
	for (size_t q = 0; q < n; q++) {
		uint32_t k = p->queue[q];

		p->server[k] = DEAD;
		p->left -= p->f->gap[k] > 0 ? p->f->gap[k] : 0;
		for (uint32_t x = p->of_first[k]; x < p->of_first[k + 1]; x++)
			if (p->bucket[p->of[x].i] == p->search)
				p->bucket[p->of[x].i] = DEAD;
	}
}

static void push(struct paths *p, uint32_t j, uint32_t last)
{
	struct pshift_flow *f = p->f;
	int64_t n = f->gap[j] < -f->gap[last] ? f->gap[j] : -f->gap[last];

	for (uint32_t k = last; k != j; k = f->server[p->from[k]]) {
		int64_t has = f->tokens[p->from[k]],
			spare = f->demand[p->to[k]] - f->tokens[p->to[k]];

		n = n < has ? n : has;
		n = n < spare ? n : spare;
	}
	for (uint32_t k = last; k != j; k = f->server[p->from[k]]) {
		f->tokens[p->from[k]] -= n;
		f->tokens[p->to[k]] += n;
	}
	f->gap[j] -= n;
	f->gap[last] += n;
	p->moved += n;
	p->left -= n;
}

/* Return true if it has read more than it may, or will at this rate. */
static bool takes_long(const struct paths *p)
{
	return p->work >= p->most ||
	       (p->work >= p->most / SOON &&
		       (double)p->work * (double)p->left > (double)p->most * (double)p->moved);
}

static int begin(struct pshift *p, struct pshift_flow *f, struct paths *ret)
{
	if (pshift_by_server(p, f))
		return -ENOMEM;
	*ret = (struct paths){.f = f, .most = READ * (size_t)f->first[f->buckets]};
	ret->of_first = p->arrays[PSHIFT_OF_FIRST].at;
	ret->of = p->arrays[PSHIFT_OF].at;
	ret->server = pshift_array(p, PSHIFT_LEVEL, f->servers, sizeof(uint32_t));
	ret->bucket = pshift_array(p, PSHIFT_ROWS, f->buckets, sizeof(uint32_t));
	ret->queue = pshift_array(p, PSHIFT_QUEUE, f->servers, sizeof(uint32_t));
	ret->from = pshift_array(p, PSHIFT_RINGS, 4 * f->servers, sizeof(uint32_t));
	if (!ret->server || !ret->bucket || !ret->queue || !ret->from)
		return -ENOMEM;
	ret->to = ret->from + f->servers;
	memset(ret->server, 0, f->servers * sizeof(uint32_t));
	memset(ret->bucket, 0, f->buckets * sizeof(uint32_t));
	return 0;
}

int pshift_paths(struct pshift *p, struct pshift_flow *f)
{
	struct paths s;
	int r = begin(p, f, &s);

	for (size_t j = 0; r == 0 && j < f->servers; j++)
		s.left += f->gap[j] > 0 ? f->gap[j] : 0;
	for (uint32_t j = 0; r == 0 && j < f->servers; j++) {
		while (f->gap[j] > 0 && s.server[j] != DEAD && !takes_long(&s)) {
			size_t tail;

			if (find(&s, j, &tail))
				push(&s, j, s.queue[tail - 1]);
			else
				bury(&s, tail);
		}
		if (f->gap[j] > 0 && s.server[j] != DEAD)
			return -EAGAIN;
	}
	return r;
}
