/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  J. Edmonds, R. M. Karp, "Theoretical improvements in algorithmic efficiency for network
 *         flow problems", 1972. pShift's Figure 7 compares with bQueue, whose time grows as this
 *         one's does.
 * LAW     While there is a path from source to sink, as much flow as fits is sent along a shortest
 *         one.
 * SYMBOLS flows in tokens.
 * METHOD  A breadth-first search for each path, stopped when it reaches the sink. O(V E²); with S
 *         servers and B buckets some B paths of O(S B) each.
 * EXAMPLE Source → bucket 100 → server 60 → sink 50: one path, 50.
 */
#include "bench/reference/maxflow.h"
#include <string.h>

#define NONE UINT32_MAX

/* Set `by` along a shortest path to the sink; return false if there is none. */
static bool find_path(struct maxflow *g)
{
	uint32_t head = 0, tail = 0;

	memset(g->by, 0xff, g->nodes * sizeof(*g->by));
	g->queue[tail++] = 0;
	while (head < tail) {
		uint32_t v = g->queue[head++];

		for (uint32_t a = g->first[v]; a < g->first[v + 1]; a++) {
			uint32_t w = g->to[a];

			if (g->room[a] == 0 || w == 0 || g->by[w] != NONE)
				continue;
			g->by[w] = a;
			if (w == 1)
				return true;
			g->queue[tail++] = w;
		}
	}
	return false;
}

int64_t maxflow_edmonds_karp(struct maxflow *g)
{
	int64_t flow = 0;

	while (find_path(g)) {
		int64_t n = INT64_MAX;

		for (uint32_t v = 1; v != 0; v = g->to[g->back[g->by[v]]])
			n = g->room[g->by[v]] < n ? g->room[g->by[v]] : n;
		for (uint32_t v = 1; v != 0; v = g->to[g->back[g->by[v]]]) {
			g->room[g->by[v]] -= n;
			g->room[g->back[g->by[v]]] += n;
		}
		flow += n;
	}
	return flow;
}
