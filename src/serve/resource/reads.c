/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reads: a burst of reads of a controller's own at a resource (site_ops.read).
 *
 * The reads pass by the gate, count for no tenant, and go all over the part of the back end that clients have touched. No
 * more go out when a client's request is there.
 */
#include "base/container.h"
#include "base/rng.h"
#include "serve/back/volumes.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <stdlib.h>

#define LOOK        (2 * WEIR_MS) /* ns: so often for clients, also where no read comes back */
#define BYTES_MOST  (256u << 10)  /* of a read */
#define PLACES      64            /* fewer are no random reads */
#define PLACE_LEAST (UINT64_C(256) << 20) /* bytes: a smaller part would be in some cache by now */

struct resource_reads {
	struct resource *resource;
	struct site_burst *burst;         /* NULL: none is under way */
	struct request *requests, *spare; /* room for burst->most; linked by next */
	uint8_t *data;
	uint32_t inside;
	uint64_t reads; /* of the burst */
	uint64_t low, span;
	uint64_t activity; /* of the resource when it began */
	struct rng rng;
	struct loop_timer timer;
};

static void look_for_clients(struct resource_reads *p)
{
	if (p->burst && resource_activity(p->resource) != p->activity)
		p->burst->ended = true;
}

static void read_more(struct resource_reads *p, weir_time now)
{
	struct site_burst *b = p->burst;

	look_for_clients(p);
	for (uint32_t n = b->more(b, now); n > 0 && p->spare; n--) {
		struct request *q = p->spare;

		p->spare = q->next;
		q->io = (struct back_io){.op = BACK_READ,
			.offset = p->low + rng_u64(&p->rng) % (p->span / b->bytes) * b->bytes,
			.length = b->bytes,
			.data = p->data};
		q->user = (uint64_t)now;
		p->inside++;
		p->reads++;
		resource_submit_own(p->resource, q);
	}
}

static void end_if_over(struct resource_reads *p, weir_time now)
{
	struct site_burst *b = p->burst;

	if (p->inside)
		return;
	loop_set(p->resource->loop, &p->timer, WEIR_NEVER);
	p->burst = NULL;
	b->over(b, now, p->reads);
}

static void done(struct request *q)
{
	struct resource_reads *p = q->owner;
	weir_time now = p->resource->now;

	q->next = p->spare;
	p->spare = q;
	p->inside--;
	if (!p->burst)
		return;
	if (q->io.error) /* a back end that is away tells nothing of its speed */
		p->burst->ended = true;
	p->burst->done(p->burst, now, now - (weir_time)q->user);
	read_more(p, now);
	end_if_over(p, now);
}

static void look_due(struct loop_timer *t, weir_time now)
{
	struct resource_reads *p = container_of(t, struct resource_reads, timer);

	look_for_clients(p);
	loop_set(p->resource->loop, t, now + LOOK);
}

/* The part that clients have touched, or a quarter of a gigabyte around it. */
static int find_place(const struct resource *r, struct resource_reads *p, struct site_burst *b)
{
	const struct back *storage = back_at(r->back, r->low);
	uint64_t first = r->low - r->low % BACK_VOLUMES_SIZE; /* of a volume */
	uint64_t size = storage ? first + storage->info.size : 0, low = r->low, high = r->high;

	if (high <= low) {
		low = first;
		high = size;
	}
	if (high - low < PLACE_LEAST)
		high = low + PLACE_LEAST;
	if (high > size) {
		low = size > first + (high - low) ? size - (high - low) : first;
		high = size;
	}
	if (high <= low)
		return -ENOSPC;
	b->bytes = b->bytes < BYTES_MOST ? b->bytes : BYTES_MOST;
	p->low = low - low % b->bytes;
	p->span = high - p->low;
	return b->bytes && p->span / b->bytes >= PLACES ? 0 : -ENOSPC;
}

void resource_reads_free(struct resource *r)
{
	struct resource_reads *p = r->reads;

	if (!p)
		return;
	if (p->timer.set)
		loop_set(r->loop, &p->timer, WEIR_NEVER);
	free(p->requests);
	free(p->data);
	free(p);
	r->reads = NULL;
}

static struct resource_reads *reads_of(struct resource *r, uint32_t most)
{
	struct resource_reads *p = r->reads;

	if (p)
		return p;
	p = r->reads = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct resource_reads){.resource = r,
		.requests = calloc(most, sizeof(*p->requests)),
		.data = aligned_alloc(4096, BYTES_MOST),
		.timer = {.due = look_due}};
	if (!p->requests || !p->data) {
		resource_reads_free(r);
		return NULL;
	}
	for (uint32_t i = 0; i < most; i++) {
		p->requests[i] = (struct request){.done = done, .owner = p, .next = p->spare};
		p->spare = &p->requests[i];
	}
	rng_init(&p->rng, (uint64_t)loop_clock(), "probe");
	return p;
}

int resource_reads_start(struct resource *r, struct site_burst *b)
{
	struct resource_reads *p = reads_of(r, b->most);
	weir_time now = loop_now(r->loop);
	int rc;

	if (!p)
		return -ENOMEM;
	back_look(r->back);
	if (resource_busy(r) || p->inside || r->back->state != BACK_UP)
		return -EBUSY;
	rc = find_place(r, p, b);
	if (rc < 0)
		return rc;
	p->burst = b;
	p->reads = 0;
	p->activity = resource_activity(r);
	loop_set(r->loop, &p->timer, now + LOOK);
	read_more(p, now);
	end_if_over(p, now);
	return 0;
}

void resource_reads_forget(struct resource *r, const struct site_burst *b)
{
	if (!r->reads || r->reads->burst != b)
		return;
	loop_set(r->loop, &r->reads->timer, WEIR_NEVER);
	r->reads->burst = NULL;
}
