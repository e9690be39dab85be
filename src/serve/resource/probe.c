/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/resource/probe.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <stdlib.h>

#define LOOK        (2 * WEIR_MS) /* ns: so often for clients, also where no read comes back */
#define BYTES_MOST  (256u << 10)  /* of a read */
#define PLACES      64            /* fewer are no random reads */
#define PLACE_LEAST (UINT64_C(256) << 20) /* bytes: a smaller part would be in some cache by now */

bool resource_probe_quiet(const struct resource *r)
{
	return !r->inside && !r->queued && !r->arrived.first && !r->again.first;
}

/* Has a client done anything since the burst began? */
static bool is_disturbed(struct resource_probe *p)
{
	return atomic_load(&p->stop) || resource_activity(p->resource) != p->activity;
}

static void read_more(struct resource_probe *p, weir_time now)
{
	struct resource *r = p->resource;

	p->burst.over |= is_disturbed(p);
	for (uint32_t n = probe_burst_more(&p->burst, now); n > 0; n--) {
		struct request *q = p->spare;

		p->spare = q->next;
		q->io = (struct back_io){.op = BACK_READ,
			.offset = p->low + rng_u64(&p->rng) % (p->span / p->bytes) * p->bytes,
			.length = p->bytes,
			.data = p->data};
		q->user = (uint64_t)now;
		p->reads++;
		resource_submit_own(r, q);
	}
}

static void end_if_over(struct resource_probe *p, weir_time now)
{
	if (p->burst.inside)
		return;
	loop_set(p->resource->loop, &p->timer, WEIR_NEVER);
	p->ended = now;
	p->resource->probing = NULL;
	p->over(p);
}

static void done(struct request *q)
{
	struct resource_probe *p = q->owner;
	weir_time now = p->resource->now;

	q->next = p->spare;
	p->spare = q;
	if (q->io.error) /* a back end that is away says nothing of its speed */
		p->burst.over = true;
	probe_burst_done(&p->burst, now, now - (weir_time)q->user);
	read_more(p, now);
	end_if_over(p, now);
}

static void look(struct loop_timer *t, weir_time now)
{
	struct resource_probe *p = container_of(t, struct resource_probe, timer);

	p->burst.over |= is_disturbed(p);
	loop_set(p->resource->loop, t, now + LOOK);
}

/* Where clients have been, or a quarter of a gigabyte around it. */
static int find_place(const struct resource *r, struct resource_probe *p)
{
	uint64_t size = r->back->info.size, low = r->low, high = r->high;

	if (high <= low) {
		low = 0;
		high = size;
	}
	if (high - low < PLACE_LEAST)
		high = low + PLACE_LEAST;
	if (high > size) {
		low = size > high - low ? size - (high - low) : 0;
		high = size;
	}
	p->bytes = p->bytes < BYTES_MOST ? p->bytes : BYTES_MOST;
	p->low = low - low % p->bytes;
	p->span = high - p->low;
	return p->bytes && p->span / p->bytes >= PLACES ? 0 : -ENOSPC;
}

static int make_room(struct resource_probe *p)
{
	if (p->requests)
		return 0;
	p->requests = calloc(PROBE_MOST, sizeof(*p->requests));
	p->data = aligned_alloc(4096, BYTES_MOST);
	if (!p->requests || !p->data) {
		resource_probe_free(p);
		return -ENOMEM;
	}
	for (int i = 0; i < PROBE_MOST; i++) {
		p->requests[i].done = done;
		p->requests[i].owner = p;
		p->requests[i].next = p->spare;
		p->spare = &p->requests[i];
	}
	rng_init(&p->rng, (uint64_t)loop_clock(), "probe");
	return 0;
}

int resource_probe_start(struct resource *r, struct resource_probe *p)
{
	weir_time now = loop_now(r->loop);
	int rc = make_room(p);

	if (rc < 0)
		return rc;
	if (!resource_probe_quiet(r) || r->probing || r->back->state != BACK_UP)
		return -EBUSY;
	rc = find_place(r, p);
	if (rc < 0)
		return rc;
	p->resource = r;
	p->reads = 0;
	p->activity = resource_activity(r);
	p->timer.due = look;
	r->probing = p;
	probe_burst_start(&p->burst, now);
	loop_set(r->loop, &p->timer, now + LOOK);
	read_more(p, now);
	return 0;
}

void resource_probe_free(struct resource_probe *p)
{
	free(p->requests);
	free(p->data);
	p->requests = p->spare = NULL;
	p->data = NULL;
}
