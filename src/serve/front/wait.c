/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait: connections that wait for memory, and their order.
 *
 * LAW     Within one usage (a tenant's at a resource, good or doubtful) the first to come goes
 *         first, one request at a time, and no other connection of the usage overtakes it, even if
 *         it needs less: else small requests would take the freed memory bit by bit, and a large
 *         one would wait forever. But only as long as that helps: if the first needs more than is
 *         free without all others of its usage, it waits for other tenants, and its own tenant's
 *         connections continue meanwhile. Usages take turns.
 * METHOD  A connection that has used up its own part is in no queue: it enters one when one of its
 *         own jobs returns. The others are checked when memory was freed, the first of each usage.
 * COST    A round resumes the connections that may continue, MOST at most, and checks FAILED
 *         others. The rest is checked in the next round, which then follows at once; until all were
 *         checked, or something changed.
 */
#include "base/container.h"
#include "serve/front/impl.h"

#define MOST   64 /* connections resumed in one round: then the sockets have their turn */
#define FAILED 16 /* checked in one round without success */

/* ---- rings */

static void ring_insert(struct front_ring *before, struct front_ring *r)
{
	r->prev = before->prev;
	r->next = before;
	r->prev->next = r;
	before->prev = r;
}

static void ring_remove(struct front_ring *r)
{
	r->prev->next = r->next;
	r->next->prev = r->prev;
	r->next = r->prev = NULL;
}

static bool ring_empty(const struct front_ring *head)
{
	return head->next == head;
}

/* Append all of `from` to `to`. */
static void ring_append(struct front_ring *to, struct front_ring *from)
{
	if (ring_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	from->next = from->prev = from;
}

void front_wait_init(struct front *f)
{
	f->waiting.next = f->waiting.prev = &f->waiting;
	f->looked.next = f->looked.prev = &f->looked;
}

/* ---- queues */

static void enqueue(struct front_conn *c, bool first)
{
	struct front_usage *p = c->usage;

	c->link_queued = first ? &p->first : p->end;
	c->next_queued = *c->link_queued;
	*c->link_queued = c;
	if (c->next_queued)
		c->next_queued->link_queued = &c->next_queued;
	else
		p->end = &c->next_queued;
	c->queued_in = p;
	if (p->n_queued++ == 0)
		ring_insert(&c->front->waiting, &p->ring);
}

static void dequeue(struct front_conn *c)
{
	struct front_usage *p = c->queued_in;

	*c->link_queued = c->next_queued;
	if (c->next_queued)
		c->next_queued->link_queued = c->link_queued;
	else
		p->end = c->link_queued;
	c->queued_in = NULL;
	if (--p->n_queued == 0)
		ring_remove(&p->ring);
}

/* ---- waiting */

/* Return true if the connection will continue when no other of its usage does. A chunk more, since
 * that is always left for others. */
static bool will_continue(const struct front_conn *c)
{
	return c->need + CHUNK_MAX <= front_left(c->front) + c->usage->held;
}

bool front_goes_behind(const struct front_conn *c)
{
	const struct front_conn *first = c->usage->first;

	return first && first != c && c->front->waking != c && will_continue(first);
}

void front_pause(struct front_conn *c)
{
	if (c->paused)
		return;
	c->paused = true;
	if (!c->own)
		enqueue(c, c->front->waking == c && will_continue(c));
	front_events(c);
}

void front_unpause(struct front_conn *c)
{
	if (c->queued_in)
		dequeue(c);
	c->paused = false;
}

void front_returned(struct front_conn *c)
{
	c->front->given_back++;
	if (c->paused && !c->queued_in) {
		c->own = false;
		enqueue(c, false);
	}
}

/* ---- resuming */

/* Record the check of a usage's first connection: whether it failed, and whether that one stays the
 * first. A first one that stays stands for all after it. */
static void record_check(struct front *f, struct front_usage *p, bool failed, bool stays)
{
	bool again = !failed || p->change != f->changes;

	p->failed = again ? failed : p->failed + 1;
	p->change = f->changes;
	if (!p->n_queued)
		return;
	ring_remove(&p->ring);
	ring_insert(stays || p->failed >= p->n_queued ? &f->looked : &f->waiting, &p->ring);
}

/* Resume the next one. Return false if it could not continue. */
static bool wake_one(struct front *f)
{
	struct front_usage *p = container_of(f->waiting.next, struct front_usage, ring);
	struct front_conn *c = p->first;
	uint64_t granted = f->granted;
	bool failed;

	front_unpause(c);
	f->waking = c;
	front_resume(c);
	f->waking = NULL;
	front_events(c);
	failed = c->paused && f->granted == granted;
	record_check(f, p, failed && c->queued_in == p, failed && p->first == c);
	return !failed;
}

bool front_wake(struct front *f)
{
	size_t held = chunk_held(f->pool);
	unsigned woken = 0, failed = 0;

	if (f->given_back != f->seen_back || held < f->seen_held) {
		f->changes++;
		ring_append(&f->waiting, &f->looked);
	}
	f->seen_back = f->given_back;
	f->seen_held = held;
	while (!ring_empty(&f->waiting) && woken < MOST && failed < FAILED) {
		if (wake_one(f))
			woken++;
		else
			failed++;
	}
	return !ring_empty(&f->waiting);
}
