/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts-reads: bursts of reads of a simulated host's own.
 *
 * Hosts know of each other at once whether they have requests inside: a question and its answer take a network's
 * millisecond, less than the reads themselves. A host that its peers do not hear does not read. Reads are spread over the
 * part of the device that the hosts' workloads may touch.
 */
#include "sim/control/hosts-impl.h"
#include <errno.h>
#include <stdlib.h>

struct host_reads {
	struct world_own own;
	struct host *host;
	struct site_burst *burst; /* NULL: none is under way */
	struct rng rng;
	uint32_t inside;
	uint64_t reads;     /* of this burst */
	uint64_t low, span; /* bytes: where */
};

bool hosts_all_quiet(const struct site *s)
{
	const struct hosts *c = host_of(s)->hosts;
	struct weir_gate_totals t;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct host *h = &c->hosts[i];

		weir_gate_get_totals(h->world->gate->gate, h->site.world->now, &t);
		if (t.in_flight || t.queued || h->is_cut)
			return false;
	}
	return true;
}

static void read_more(struct host_reads *b, struct world *w)
{
	struct world_station *st = &w->stations[b->host->world->group->device];
	uint32_t bytes = b->burst->bytes;

	for (uint32_t n = b->burst->more(b->burst, w->now); n > 0; n--) {
		uint64_t place = rng_u64(&b->rng) % (b->span / bytes);

		if (world_own_read(w, &b->own, st, b->low + place * bytes, bytes))
			return; /* the world knows */
		b->inside++;
		b->reads++;
	}
}

static void end_if_over(struct host_reads *b, struct world *w)
{
	struct site_burst *burst = b->burst;

	if (b->inside)
		return;
	b->burst = NULL;
	burst->over(burst, w->now, b->reads);
}

static void done(struct world_own *o, struct world *w, weir_time latency)
{
	struct host_reads *b = container_of(o, struct host_reads, own);

	b->inside--;
	if (!b->burst)
		return;
	b->burst->done(b->burst, w->now, latency);
	if (!hosts_all_quiet(&b->host->site.site))
		b->burst->ended = true;
	read_more(b, w);
	end_if_over(b, w);
}

/* Return the range in which the hosts' workloads read and write. */
static void find_place(struct host_reads *b, const struct world *w)
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

static struct host_reads *reads_of(struct host *h, struct world *w)
{
	if (h->reads)
		return h->reads;
	h->reads = calloc(1, sizeof(*h->reads));
	if (!h->reads)
		return NULL;
	h->reads->own.done = done;
	h->reads->host = h;
	rng_init(&h->reads->rng, w->seed, "probe");
	find_place(h->reads, w);
	return h->reads;
}

int hosts_read(struct site *s, struct site_burst *burst)
{
	struct host *h = host_of(s);
	struct host_reads *b = reads_of(h, h->site.world);

	if (!b)
		return -ENOMEM;
	if (b->inside)
		return -EBUSY;
	b->burst = burst;
	b->reads = 0;
	read_more(b, h->site.world);
	end_if_over(b, h->site.world);
	return 0;
}

void hosts_forget(struct site *s, struct site_burst *burst)
{
	struct host *h = host_of(s);

	if (h->reads && h->reads->burst == burst)
		h->reads->burst = NULL;
}
