/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  Peers are in one array, so that a step reads memory in order; a small hash maps ids to
 *         places. Peers are not removed: a forgotten host's place keeps its last instance and
 *         sequence, by which replayed reports are detected. Only when the table is full, the host
 *         forgotten for longest is replaced, and the hash is rebuilt.
 * COST    hear: O(1); O(n) when the table is full.
 */
#include "control/parda/peers.h"
#include "base/array.h"
#include "control/parda/start.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16
/* Steps that an instance must have been silent before another replaces it: one report may be lost
 * while its sender lives. */
#define DEAD_AFTER 2

static uint32_t slot_of(const struct parda_peers *t, uint64_t id)
{
	return (uint32_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (t->index_room - 1);
}

static struct parda_peer *find(const struct parda_peers *t, uint64_t id)
{
	uint32_t at = slot_of(t, id);

	for (; t->index[at]; at = (at + 1) & (t->index_room - 1)) {
		if (t->peers[t->index[at] - 1].last.id == id)
			return &t->peers[t->index[at] - 1];
	}
	return NULL;
}

static void enter(struct parda_peers *t, uint32_t place)
{
	uint32_t at = slot_of(t, t->peers[place].last.id);

	while (t->index[at])
		at = (at + 1) & (t->index_room - 1);
	t->index[at] = place + 1;
}

static void enter_all(struct parda_peers *t)
{
	memset(t->index, 0, t->index_room * sizeof(*t->index));
	for (uint32_t i = 0; i < t->n; i++)
		enter(t, i);
}

static int set_room(struct parda_peers *t, uint32_t room)
{
	uint32_t slots = 2 * FIRST_ROOM;

	while (slots < 2 * room)
		slots *= 2;
	if (array_resize(&t->peers, room) < 0 || array_resize(&t->index, slots) < 0)
		return -ENOMEM;
	t->index_room = slots;
	t->room = room;
	enter_all(t);
	return 0;
}

int parda_peers_init(struct parda_peers *t, uint32_t most, unsigned age)
{
	*t = (struct parda_peers){.most = most, .age = age};
	return set_room(t, most < FIRST_ROOM ? most : FIRST_ROOM);
}

void parda_peers_free(struct parda_peers *t)
{
	free(t->peers);
	free(t->index);
}

/* Return the place of the host that was forgotten first; NULL if all of them count. */
static struct parda_peer *longest_forgotten(struct parda_peers *t)
{
	struct parda_peer *found = NULL;

	for (uint32_t i = 0; i < t->n; i++) {
		struct parda_peer *p = &t->peers[i];

		if (!parda_peer_counts(t, p) && (!found || p->silent > found->silent))
			found = p;
	}
	return found;
}

static enum parda_heard add(struct parda_peers *t, const struct parda_report *r)
{
	struct parda_peer fresh = {.last = *r,
				  .before = fmax(r->inside, r->window),
				  .is_new = true},
			  *place;

	if (t->n == t->room && t->room < t->most)
		set_room(t, t->room > t->most / 2 ? t->most : 2 * t->room);
	if (t->n < t->room) {
		t->peers[t->n] = fresh;
		enter(t, t->n++);
		return PARDA_FRESH;
	}
	place = longest_forgotten(t);
	if (!place)
		return PARDA_FULL;
	*place = fresh;
	enter_all(t);
	return PARDA_FRESH;
}

static bool is_retired(const struct parda_peer *p, uint64_t instance)
{
	for (int i = 0; i < PARDA_RETIRED; i++) {
		if (p->retired[i] == instance)
			return true;
	}
	return false;
}

/* Replace the instance of this id. */
static void replace(struct parda_peer *p, const struct parda_report *r)
{
	memmove(p->retired + 1, p->retired, sizeof(p->retired) - sizeof(p->retired[0]));
	p->retired[0] = p->last.instance;
	if (p->other != r->instance) /* else room was made when it was first heard */
		p->is_new = true;
	p->before = fmax(r->inside, r->window);
	p->last = *r;
	p->silent = 0;
	p->has_left = false;
	p->other = 0;
}

static enum parda_heard hear_other(
	struct parda_peers *t, struct parda_peer *p, const struct parda_report *r)
{
	if (is_retired(p, r->instance))
		return PARDA_STALE;
	if (p->other == r->instance && r->sequence <= p->other_sequence)
		return PARDA_STALE;
	if (!parda_peer_counts(t, p) || (p->other == r->instance && p->silent >= DEAD_AFTER)) {
		replace(p, r);
		return PARDA_FRESH;
	}
	if (p->other != r->instance)
		p->is_new = true; /* most likely it has restarted that fast */
	p->other = r->instance;
	p->other_sequence = r->sequence;
	p->other_silent = 0;
	return p->twice ? PARDA_TWICE : PARDA_PENDING;
}

enum parda_heard parda_peers_hear(struct parda_peers *t, const struct parda_report *r)
{
	struct parda_peer *p = find(t, r->id);

	if (!p)
		return add(t, r);
	if (p->last.instance != r->instance)
		return hear_other(t, p, r);
	if (r->sequence <= p->last.sequence)
		return PARDA_STALE;
	/* The host was forgotten and has stepped all the while: the two were cut off from each other. A host
	 * that was stopped has not stepped, and knows it. */
	if (!parda_peer_counts(t, p) && p->last.steps > 0 &&
		r->steps > p->last.steps + p->silent / 2)
		p->apart = PARDA_APART;
	/* The other one has reported, and this one still does. */
	if (p->other && p->other_silent <= t->age)
		p->twice = t->age + 1;
	if (r->steps != p->last.steps || !r->steps) /* else it repeats its last report */
		p->before = r->sequence == p->last.sequence + 1 ? p->last.window
								: fmax(r->inside, r->window);
	p->last = *r;
	p->silent = 0;
	p->has_left = false;
	return PARDA_FRESH;
}

void parda_peers_leave(struct parda_peers *t, uint64_t id, uint64_t instance)
{
	struct parda_peer *p = find(t, id);

	if (!p || p->last.instance != instance)
		return;
	p->silent = t->age + 1;
	p->has_left = true;
}

double parda_peers_room(struct parda_peers *t, double shares)
{
	double all = shares, of_new = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		struct parda_peer *p = &t->peers[i];
		bool again = p->is_new && p->other && p->other_silent <= 1;

		if ((!parda_peer_counts(t, p) && !again) || !(p->last.shares > 0))
			continue;
		if (p->is_new && !(p->last.inside > 0) && !again) {
			p->is_new = p->last.steps <= PARDA_START_WAIT;
			continue;
		}
		all += p->last.shares;
		if (!p->is_new)
			continue;
		of_new += p->last.shares;
		p->is_new = false;
		p->apart = PARDA_APART;
	}
	return of_new > 0 && shares > 0 ? (all - of_new) / all : 1;
}

void parda_peers_divide(struct parda_peers *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->peers[i].apart)
			return; /* it is about to be */
	for (uint32_t i = 0; i < t->n; i++)
		t->peers[i].apart = PARDA_APART;
}

void parda_peers_settle(struct parda_peers *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		t->peers[i].is_new = false;
	parda_peers_divide(t);
}

static void grow(unsigned *steps)
{
	if (*steps < 1u << 30)
		++*steps;
}

void parda_peers_age(struct parda_peers *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		grow(&t->peers[i].silent);
		grow(&t->peers[i].other_silent);
		if (t->peers[i].twice)
			t->peers[i].twice--;
		if (t->peers[i].apart)
			t->peers[i].apart--;
	}
}
