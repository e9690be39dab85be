/* SPDX-License-Identifier: BSD-3-Clause */
/* maxflow: the graph; the methods are in separate files. */
#include "bench/reference/maxflow.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void maxflow_free(struct maxflow *g)
{
	free(g->memory);
	*g = (struct maxflow){.memory = NULL};
}

/* Allocate one block: the 8-byte arrays first, so that all are aligned. */
static int allocate_arrays(struct maxflow *g)
{
	size_t n = g->nodes, m = g->arcs;
	int64_t *at = malloc(8 * (m + n) + 4 * (2 * m + (n + 1) * 2 + 4 * n));

	if (!at)
		return -ENOMEM;
	g->memory = at;
	g->room = at;
	g->excess = g->room + m;
	g->to = (uint32_t *)(g->excess + n);
	g->back = g->to + m;
	g->first = g->back + m;
	g->levels = g->first + n + 1;
	g->level = g->levels + n + 1;
	g->current = g->level + n;
	g->queue = g->current + n;
	g->by = g->queue + n;
	return 0;
}

struct filling {
	struct maxflow *g;
	uint32_t *next; /* per node: index of its next arc */
};

static void add_arc(struct filling *f, uint32_t from, uint32_t to)
{
	uint32_t a = f->next[from]++, b = f->next[to]++;

	f->g->to[a] = to;
	f->g->to[b] = from;
	f->g->back[a] = b;
	f->g->back[b] = a;
}

static void fill_arcs(const struct pshift_input *in, struct maxflow *g)
{
	struct filling f = {g, g->current};
	uint32_t bucket = 2, server = 2 + (uint32_t)in->buckets;

	memset(g->first, 0, (g->nodes + 1) * sizeof(*g->first));
	g->first[1] = (uint32_t)in->buckets;
	g->first[2] = (uint32_t)in->servers;
	for (size_t i = 0; i < in->buckets; i++)
		g->first[bucket + i + 1] = 1 + in->first[i + 1] - in->first[i];
	for (size_t j = 0; j < in->servers; j++)
		g->first[server + j + 1] = 1;
	for (uint32_t e = 0; e < in->first[in->buckets]; e++)
		g->first[server + in->server[e] + 1]++;
	for (uint32_t v = 0; v < g->nodes; v++)
		g->first[v + 1] += g->first[v];
	memcpy(f.next, g->first, g->nodes * sizeof(*f.next));
	for (size_t i = 0; i < in->buckets; i++)
		add_arc(&f, 0, bucket + (uint32_t)i);
	for (size_t j = 0; j < in->servers; j++)
		add_arc(&f, server + (uint32_t)j, 1);
	for (size_t i = 0; i < in->buckets; i++) {
		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++)
			add_arc(&f, bucket + (uint32_t)i, server + in->server[e]);
	}
}

/* Relies on the order of arcs from fill_arcs: a bucket's first arc leads back to the source, a
 * server's first to the sink, and a bucket's others are its entries. */
void maxflow_reset(const struct pshift_input *in, struct maxflow *g)
{
	uint32_t bucket = 2, server = 2 + (uint32_t)in->buckets;

	memset(g->room, 0, g->arcs * sizeof(*g->room));
	for (size_t i = 0; i < in->buckets; i++) {
		uint32_t a = g->first[bucket + i];
		int64_t most = in->reservation[i];

		if (in->limit && in->limit[i] < most)
			most = in->limit[i];
		g->room[g->back[a]] = most;
		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++)
			g->room[++a] = in->demand[e];
	}
	for (size_t j = 0; j < in->servers; j++)
		g->room[g->first[server + j]] = in->capacity[j];
}

void maxflow_tokens(const struct pshift_input *in, const struct maxflow *g, int64_t *ret_tokens)
{
	for (size_t i = 0; i < in->buckets; i++) {
		uint32_t a = g->first[2 + i];

		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++)
			ret_tokens[e] = in->demand[e] - g->room[++a];
	}
}

void maxflow_again(const struct pshift_input *in, struct maxflow *g)
{
	fill_arcs(in, g);
	maxflow_reset(in, g);
}

int maxflow_new(const struct pshift_input *in, struct maxflow *ret)
{
	struct maxflow g = {.nodes = 2 + (uint32_t)(in->buckets + in->servers),
		.arcs = 2 * (uint32_t)(in->buckets + in->servers + in->first[in->buckets])};
	int r = allocate_arrays(&g);

	if (r)
		return r;
	maxflow_again(in, &g);
	*ret = g;
	return 0;
}
