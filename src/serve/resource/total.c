/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * total: counters by node, and the time of requests from receipt to reply.
 *
 * METHOD  As in the gate: a latency is put into a ring, and the ring is emptied into the histograms
 *         in one go, so that the path of a request touches one hot cache line instead of a cold
 *         histogram of 9 KiB. A histogram is made when a node's first latency leaves the ring.
 */
#include "serve/resource/impl.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>

#define RING       1024 /* 16 KiB: stays in the second-level cache */
#define HISTOGRAMS 4096 /* nodes with histograms at once, as in the gate */
#define AHEAD      12   /* latencies whose histograms are fetched before it is their turn */

struct resource_totals {
	uint32_t n;    /* in the ring */
	uint32_t used; /* histograms */
	struct {
		weir_time ns;
		weir_node node;
	} ring[RING];
};

int resource_room(struct resource *r, size_t nodes)
{
	size_t room = nodes + nodes / 8 + 64;

	if (!r->ring && !(r->ring = calloc(1, sizeof(*r->ring))))
		return -ENOMEM;
	if (nodes <= r->n_counts)
		return 0;
	if (array_resize(&r->counts, room) < 0 || array_resize(&r->totals, room) < 0)
		return -ENOMEM;
	for (; r->n_counts < room; r->n_counts++) {
		r->counts[r->n_counts] = (struct resource_count){0};
		r->totals[r->n_counts] = NULL;
	}
	return 0;
}

void resource_room_reset(struct resource *r, weir_node node)
{
	resource_drain(r);
	r->ring->used -= r->totals[node] != NULL;
	free(r->totals[node]);
	r->totals[node] = NULL;
	r->counts[node] = (struct resource_count){0};
}

static struct weir_hist *hist_of(struct resource *r, weir_node node)
{
	struct weir_hist *h = r->totals[node];

	if (h || r->ring->used >= HISTOGRAMS)
		return h;
	h = malloc(sizeof(*h));
	if (!h)
		return NULL;
	weir_hist_clear(h);
	r->totals[node] = h;
	r->ring->used++;
	return h;
}

static void fetch(const struct resource *r, uint32_t i)
{
	const struct resource_totals *t = r->ring;
	const struct weir_hist *h = i < t->n ? r->totals[t->ring[i].node] : NULL;

	if (h)
		weir_hist_fetch(h, (uint64_t)t->ring[i].ns);
}

static void empty(struct resource *r)
{
	struct resource_totals *t = r->ring;

	for (uint32_t i = 0; i < t->n; i++) {
		struct weir_hist *h = hist_of(r, t->ring[i].node);

		fetch(r, i + AHEAD);
		if (h)
			weir_hist_record(h, (uint64_t)t->ring[i].ns);
		if (r->slos)
			resource_slo_record(r, t->ring[i].node, t->ring[i].ns);
	}
	t->n = 0;
}

void resource_total(struct resource *r, weir_node node, weir_time ns)
{
	struct resource_totals *t = r->ring;

	if (t->n == RING)
		empty(r);
	t->ring[t->n].ns = ns;
	t->ring[t->n++].node = node;
}

void resource_answered(const struct client *c, weir_time received, weir_time finished)
{
	struct resource *r = c->resource;

	if (r->shadow || c->tenant < 0)
		return;
	resource_total(r, c->node, finished - received);
	resource_stir(r); /* a reply may leave long after its request was done */
}

void resource_drain(struct resource *r)
{
	r->undrained = 0;
	empty(r);
	if (r->gate)
		weir_gate_drain(r->gate);
}
