/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda-hosts-probe: reads of a simulated host's own, by which it finds its threshold (control/parda/parda.h, PROBING).
 *
 * Hosts know of each other at once whether they have requests inside: a question and its answer take a network's millisecond,
 * less than the reads themselves. A host that its peers do not hear does not read. Reads are spread over all that the
 * hosts' workloads may touch.
 */
#include "sim/control/parda-hosts-impl.h"
#include <errno.h>
#include <stdlib.h>

#define LOOK (5 * WEIR_MS) /* between two looks whether somebody has requests inside */

struct hosts_probe {
	struct world_own own; /* first */
	struct hosts *hosts;
	struct host *host;
	struct probe_burst burst;
	struct rng rng;
	uint32_t bytes;     /* of a read */
	uint64_t reads;     /* of this burst */
	uint64_t low, span; /* bytes: where */
	bool on;            /* it reads, or waits until nobody does */
};

static bool is_quiet(const struct hosts *c, struct world *w)
{
	struct weir_gate_totals t;

	for (uint32_t i = 0; i < c->n; i++) {
		weir_gate_get_totals(c->hosts[i].world->gate->gate, w->now, &t);
		if (t.in_flight || t.queued || c->hosts[i].is_cut)
			return false;
	}
	return true;
}

static int read_more(struct hosts_probe *b, struct world *w)
{
	struct world_station *st = &w->stations[b->host->world->group->device];

	for (uint32_t n = probe_burst_more(&b->burst, w->now); n > 0; n--) {
		uint64_t place = rng_u64(&b->rng) % (b->span / b->bytes);

		if (world_own_read(w, &b->own, st, b->low + place * b->bytes, b->bytes))
			return -ENOMEM; /* the world knows */
		b->reads++;
	}
	return 0;
}

static void done(struct world_own *o, struct world *w, weir_time latency)
{
	struct hosts_probe *b = (struct hosts_probe *)o;

	probe_burst_done(&b->burst, w->now, latency);
	if (!is_quiet(b->hosts, w))
		b->burst.over = true;
	read_more(b, w);
	if (b->burst.inside)
		return;
	b->on = false;
	if (!b->host->is_down)
		parda_probe_learn(b->host->parda, &b->burst, b->reads, w->now);
}

/* Where the hosts' workloads read and write. */
static void find_place(struct hosts_probe *b, const struct world *w)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint32_t i = 0; i < w->n_loads; i++) {
		const struct world_load *l = &w->loads[i];
		uint64_t base, end;

		if (l->group->device != b->host->world->group->device)
			continue;
		base = l->config->config.base;
		end = base + l->config->config.region + l->config->spread * (l->group->count - 1);
		low = base < low ? base : low;
		high = end > high ? end : high;
	}
	b->low = low < high ? low : 0;
	b->span = high > b->low + (1u << 20) ? high - b->low : UINT64_C(1) << 30;
}

/* Begins as soon as nobody has requests inside, as long as it may. */
static void due(struct world_own *o, struct world *w)
{
	struct hosts_probe *b = (struct hosts_probe *)o;

	b->on = !b->host->is_down && parda_probe_plan(b->host->parda, w->now, &b->burst, &b->bytes);
	if (!b->on)
		return;
	if (!is_quiet(b->hosts, w)) {
		world_own_wait(w, o, w->now + LOOK);
		return;
	}
	b->reads = 0;
	probe_burst_start(&b->burst, w->now);
	read_more(b, w);
}

static struct hosts_probe *probe_of(struct hosts *c, struct host *h, struct world *w)
{
	if (h->probe)
		return h->probe;
	h->probe = calloc(1, sizeof(*h->probe));
	if (!h->probe)
		return NULL;
	h->probe->own = (struct world_own){.done = done, .due = due};
	h->probe->hosts = c;
	h->probe->host = h;
	rng_init(&h->probe->rng, w->seed, "probe");
	find_place(h->probe, w);
	return h->probe;
}

int parda_hosts_probe(struct hosts *c, struct world *w)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct host *h = &c->hosts[i];
		struct hosts_probe *b;

		if (h->is_down || (h->probe && h->probe->on) || !parda_probe_decides(h->parda))
			continue;
		b = probe_of(c, h, w);
		if (!b)
			return -ENOMEM;
		due(&b->own, w);
	}
	return 0;
}

void parda_hosts_probe_free(struct host *h)
{
	free(h->probe);
}
