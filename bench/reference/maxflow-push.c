/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  A. V. Goldberg, R. E. Tarjan, "A new approach to the maximum-flow problem", 1988; gaps
 *         and global relabelling as in B. V. Cherkassky, A. V. Goldberg, "On implementing the
 *         push-relabel method for the maximum flow problem", 1997.
 * LAW     A node with excess pushes it along arcs that lead one level down; where none does, its
 *         level rises to one above the lowest that it could push to. A level that no node has any
 *         more cuts off all above it: from there nothing reaches the sink.
 * SYMBOLS level of a node: a lower bound of the arcs to the sink; excess in tokens.
 * METHOD  First in, first out, each node with its current arc; levels are made exact by searches
 *         backwards from the sink, and from the source for those that do not reach it, at the start
 *         and after every n relabels. Excess that cannot reach the sink goes back to the source.
 *         O(V³).
 * EXAMPLE Source → bucket 100 → server 60 → sink 50: 100 at the bucket, 60 at the server, 50 at the
 *         sink; the server's level rises past the source's, and so 10 and 40 flow back.
 */
#include "bench/reference/maxflow.h"
#include <string.h>

#define NONE UINT32_MAX

struct push {
	struct maxflow *g;
	uint32_t head, waiting; /* the queue, a ring */
	uint32_t relabels;      /* since the levels were exact */
};

static void enqueue(struct push *p, uint32_t v)
{
	struct maxflow *g = p->g;
	uint32_t at = p->head + p->waiting++;

	g->queue[at < g->nodes ? at : at - g->nodes] = v;
}

static uint32_t dequeue(struct push *p)
{
	uint32_t v = p->g->queue[p->head];

	p->head = p->head + 1 < p->g->nodes ? p->head + 1 : 0;
	p->waiting--;
	return v;
}

/* Set the levels of all nodes without one that reach `end`, which has one. */
static void set_levels(struct maxflow *g, uint32_t end)
{
	uint32_t *queue = g->by, head = 0, tail = 0;

	queue[tail++] = end;
	while (head < tail) {
		uint32_t v = queue[head++];

		for (uint32_t a = g->first[v]; a < g->first[v + 1]; a++) {
			uint32_t w = g->to[a];

			if (g->level[w] != NONE || g->room[g->back[a]] == 0)
				continue;
			g->level[w] = g->level[v] + 1;
			queue[tail++] = w;
		}
	}
}

/* Compute exact levels: below n, the distance to the sink; n and more, by way of the source. */
static void relabel_all(struct push *p)
{
	struct maxflow *g = p->g;
	uint32_t n = g->nodes;

	memset(g->level, 0xff, n * sizeof(*g->level));
	memset(g->levels, 0, (n + 1) * sizeof(*g->levels));
	memcpy(g->current, g->first, n * sizeof(*g->current));
	g->level[0] = n;
	g->level[1] = 0;
	set_levels(g, 1);
	set_levels(g, 0);
	for (uint32_t v = 0; v < n; v++) {
		if (g->level[v] < n)
			g->levels[g->level[v]]++;
		else if (g->level[v] == NONE)
			g->level[v] = 2 * n; /* the node has no excess, and never will */
	}
	p->relabels = 0;
}

/* No node is left at `level`: lift the nodes above it, which cannot reach the sink, past the
 * source. */
static void cut_off(struct maxflow *g, uint32_t level)
{
	for (uint32_t v = 2; v < g->nodes; v++) {
		if (g->level[v] > level && g->level[v] < g->nodes) {
			g->levels[g->level[v]]--;
			g->level[v] = g->nodes + 1;
			g->current[v] = g->first[v];
		}
	}
}

static void relabel(struct push *p, uint32_t v)
{
	struct maxflow *g = p->g;
	uint32_t old = g->level[v], least = 2 * g->nodes;

	for (uint32_t a = g->first[v]; a < g->first[v + 1]; a++) {
		if (g->room[a] > 0 && g->level[g->to[a]] + 1 < least)
			least = g->level[g->to[a]] + 1;
	}
	g->level[v] = least;
	g->current[v] = g->first[v];
	p->relabels++;
	if (least < g->nodes)
		g->levels[least]++;
	if (old < g->nodes && --g->levels[old] == 0)
		cut_off(g, old);
}

static void discharge(struct push *p, uint32_t v)
{
	struct maxflow *g = p->g;

	while (g->excess[v] > 0) {
		uint32_t a = g->current[v], w;
		int64_t n;

		if (a == g->first[v + 1]) {
			relabel(p, v);
			continue;
		}
		w = g->to[a];
		if (g->room[a] == 0 || g->level[v] != g->level[w] + 1) {
			g->current[v]++;
			continue;
		}
		n = g->excess[v] < g->room[a] ? g->excess[v] : g->room[a];
		g->room[a] -= n;
		g->room[g->back[a]] += n;
		if (g->excess[w] == 0 && w > 1)
			enqueue(p, w);
		g->excess[v] -= n;
		g->excess[w] += n;
	}
}

int64_t maxflow_push_relabel(struct maxflow *g)
{
	struct push p = {.g = g};

	memset(g->excess, 0, g->nodes * sizeof(*g->excess));
	for (uint32_t a = g->first[0]; a < g->first[1]; a++) {
		int64_t n = g->room[a];

		g->room[a] = 0;
		g->room[g->back[a]] += n;
		g->excess[g->to[a]] += n;
		if (n > 0)
			enqueue(&p, g->to[a]);
	}
	relabel_all(&p);
	while (p.waiting > 0) {
		discharge(&p, dequeue(&p));
		if (p.relabels > g->nodes)
			relabel_all(&p);
	}
	return g->excess[1];
}
