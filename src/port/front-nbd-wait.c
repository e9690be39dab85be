/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front-nbd-wait: connections that wait for memory, and in which order they get on.
 *
 * LAW     Of one purse (a tenant's at a resource) who came first goes first, one request at a time, and
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

/* ---- queues */

static void purse_link(struct front_nbd *f, struct front_nbd_purse *p)
{
	p->next = NULL;
	p->link = f->waiting_end;
	*f->waiting_end = p;
	f->waiting_end = &p->next;
}

static void purse_unlink(struct front_nbd *f, struct front_nbd_purse *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	else
		f->waiting_end = p->link;
	p->link = NULL;
}

static void enqueue(struct front_nbd_conn *c, bool first)
{
	struct front_nbd *f = c->front;
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
		purse_link(f, p);
	f->n_waiting++;
}

static void dequeue(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;
	struct front_nbd_purse *p = c->queued_in;

	*c->link_queued = c->next_queued;
	if (c->next_queued)
		c->next_queued->link_queued = c->link_queued;
	else
		p->end = c->link_queued;
	c->queued_in = NULL;
	if (--p->n_queued == 0)
		purse_unlink(f, p);
	f->n_waiting--;
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

/* false: in vain. */
static bool wake_one(struct front_nbd *f)
{
	struct front_nbd_purse *p = f->waiting;
	struct front_nbd_conn *c = p->first;
	uint64_t granted = f->granted;

	front_nbd_unpause(c);
	f->waking = c;
	front_nbd_resume(c);
	f->waking = NULL;
	front_nbd_events(c);
	if (p->n_queued) {
		purse_unlink(f, p);
		purse_link(f, p);
	}
	if (!c->paused || f->granted != granted) {
		f->in_vain = 0;
		return true;
	}
	if (c->queued_in) /* as the first of its purse it speaks for all behind it */
		f->in_vain += p->first == c ? p->n_queued : 1;
	return false;
}

bool front_nbd_wake(struct front_nbd *f)
{
	size_t held = chunk_held(f->pool);
	unsigned woken = 0, in_vain = 0;

	if (f->given_back != f->seen_back || held < f->seen_held)
		f->in_vain = 0;
	f->seen_back = f->given_back;
	f->seen_held = held;
	while (woken < MOST && in_vain < IN_VAIN && f->in_vain < f->n_waiting) {
		if (wake_one(f))
			woken++;
		else
			in_vain++;
	}
	return f->in_vain < f->n_waiting;
}
