/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  J. Edmonds, R. M. Karp, "Theoretical improvements in algorithmic efficiency for network flow
 *         problems", 1972. pShift's Figure 7 compares with bQueue, whose time grows as this one's does.
 * LAW     While there is a way from source to sink, as much as it takes goes along a shortest one.
 * SYMBOLS flows in tokens.
 * METHOD  A search in breadth for each way, stopped when it comes to the sink. O(V E²); with S servers
 *         and B buckets some B ways of O(S B) each.
 * EXAMPLE Source → bucket 100 → server 60 → sink 50: one way, 50.
 */
#include "bench/reference/maxflow.h"
#include <string.h>

#define NONE UINT32_MAX

/* Sets `by` along a shortest way to the sink; false: there is none. */
static bool search(struct maxflow *g)
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

	while (search(g)) {
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
