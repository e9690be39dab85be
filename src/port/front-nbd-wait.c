/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front-nbd-wait: connections that wait for memory, and in which order they get on.
 *
 * LAW     Of one purse (a tenant's at a resource, good or doubtful) who came first goes first, one request at a time, and
 *         nobody of the same purse goes before, also if he needs less: else small requests would take
 *         what comes back, bit by bit, and a large one would wait for ever. But only as long as it helps:
 *         if the first needs more than there would be without all others of its purse, he waits for
 *         other tenants, and his own go on meanwhile.
 *         Purses have their turn one after the other.
 * METHOD  A connection whose own part is used up is in no queue: it goes into one when a job of its own is
 *         back. The others are looked at when something was given back, the first of each purse.
 * COST    A round wakes those that may go on, MOST at most, and looks at IN_VAIN others. What is left is
 *         looked at in the next round, which then comes at once; until all were, or something changed.
 */
#include "port/front-nbd-impl.h"

#define MOST    64 /* connections woken in one round: then the sockets have theirs */
#define IN_VAIN 16 /* looked at in one round without success */

/* ---- purses */

static void ring_put(struct front_nbd_ring *before, struct front_nbd_ring *r)
{
	r->prev = before->prev;
	r->next = before;
	r->prev->next = r;
	before->prev = r;
}

static void ring_take(struct front_nbd_ring *r)
{
	r->prev->next = r->next;
	r->next->prev = r->prev;
	r->next = r->prev = NULL;
}

static bool ring_empty(const struct front_nbd_ring *head)
{
	return head->next == head;
}

/* All of `from` behind those of `to`. */
static void ring_append(struct front_nbd_ring *to, struct front_nbd_ring *from)
{
	if (ring_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	from->next = from->prev = from;
}

void front_nbd_wait_init(struct front_nbd *f)
{
	f->waiting.next = f->waiting.prev = &f->waiting;
	f->looked.next = f->looked.prev = &f->looked;
}

/* ---- queues */

static void enqueue(struct front_nbd_conn *c, bool first)
{
	struct front_nbd_purse *p = c->purse;

	c->link_queued = first ? &p->first : p->end;
	c->next_queued = *c->link_queued;
	*c->link_queued = c;
	if (c->next_queued)
		c->next_queued->link_queued = &c->next_queued;
	else
		p->end = &c->next_queued;
	c->queued_in = p;
	if (p->n_queued++ == 0)
		ring_put(&c->front->waiting, &p->ring);
}

static void dequeue(struct front_nbd_conn *c)
{
	struct front_nbd_purse *p = c->queued_in;

	*c->link_queued = c->next_queued;
	if (c->next_queued)
		c->next_queued->link_queued = c->link_queued;
	else
		p->end = c->link_queued;
	c->queued_in = NULL;
	if (--p->n_queued == 0)
		ring_take(&p->ring);
}

/* ---- who waits */

/* Will it get on when nobody else of its purse does? A piece more, since that is always left for others. */
static bool helps(const struct front_nbd_conn *c)
{
	return c->need + CHUNK_MAX <= front_nbd_left(c->front) + c->purse->held;
}

bool front_nbd_goes_behind(const struct front_nbd_conn *c)
{
	const struct front_nbd_conn *first = c->purse->first;

	return first && first != c && c->front->waking != c && helps(first);
}

void front_nbd_pause(struct front_nbd_conn *c)
{
	if (c->paused)
		return;
	c->paused = true;
	if (!c->own)
		enqueue(c, c->front->waking == c && helps(c));
	front_nbd_events(c);
}

void front_nbd_unpause(struct front_nbd_conn *c)
{
	if (c->queued_in)
		dequeue(c);
	c->paused = false;
}

void front_nbd_returned(struct front_nbd_conn *c)
{
	c->front->given_back++;
	if (c->paused && !c->queued_in) {
		c->own = false;
		enqueue(c, false);
	}
}

/* ---- who gets on */

/* Its first was looked at: in vain, and he waits on, or not. Who stayed the first stands for all behind him. */
static void looked_at(struct front_nbd *f, struct front_nbd_purse *p, bool in_vain, bool stays)
{
	bool again = !in_vain || p->change != f->changes;

	p->in_vain = again ? in_vain : p->in_vain + 1;
	p->change = f->changes;
	if (!p->n_queued)
		return;
	ring_take(&p->ring);
	ring_put(stays || p->in_vain >= p->n_queued ? &f->looked : &f->waiting, &p->ring);
}

/* false: in vain. */
static bool wake_one(struct front_nbd *f)
{
	struct front_nbd_purse *p = (struct front_nbd_purse *)(void *)f->waiting.next;
	struct front_nbd_conn *c = p->first;
	uint64_t granted = f->granted;
	bool in_vain;

	front_nbd_unpause(c);
	f->waking = c;
	front_nbd_resume(c);
	f->waking = NULL;
	front_nbd_events(c);
	in_vain = c->paused && f->granted == granted;
	looked_at(f, p, in_vain && c->queued_in == p, in_vain && p->first == c);
	return !in_vain;
}

bool front_nbd_wake(struct front_nbd *f)
{
	size_t held = chunk_held(f->pool);
	unsigned woken = 0, in_vain = 0;

	if (f->given_back != f->seen_back || held < f->seen_held) {
		f->changes++;
		ring_append(&f->waiting, &f->looked);
	}
	f->seen_back = f->given_back;
	f->seen_held = held;
	while (!ring_empty(&f->waiting) && woken < MOST && in_vain < IN_VAIN) {
		if (wake_one(f))
			woken++;
		else
			in_vain++;
	}
	return !ring_empty(&f->waiting);
}
