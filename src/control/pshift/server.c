/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pshift/server.h"
#include "base/array.h"
#include "control/pshift/server-impl.h"
#include "base/lesser.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALONE 10 /* measurements a period, at least, without a controller */

int pshift_server_new(const struct cluster_server_config *config, struct pshift_server **ret)
{
	struct pshift_server *s;

	if (peer_name_check(config->name) || !config->instance || config->length <= 0 ||
		!config->grant || !config->send)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->config = *config;
	memcpy(s->name, config->name, strlen(config->name));
	s->config.name = s->name;
	if (s->config.tolerance == 0)
		s->config.tolerance = 0.02;
	s->length = config->length;
	s->interval = config->length / 5; /* as in the paper, until a controller says */
	if (s->interval <= 0)
		s->interval = 1;
	s->usual = s->interval;
	s->hold = PSHIFT_HOLD;
	s->gap = PSHIFT_GAP;
	s->state = config->fresh ? LEASE_STATIC : LEASE_BLIND;
	s->full = true;
	*ret = s;
	return 0;
}

void pshift_server_free(struct pshift_server *s)
{
	if (!s)
		return;
	pshift_borrow_end(s);
	lease_message_free(&s->out);
	ids_free(&s->ids);
	free(s->spots);
	free(s->resting);
	free(s);
}

static int make_room(struct pshift_server *s)
{
	size_t room = s->room ? 2 * s->room : 16;

	if (s->n < s->room)
		return 0;
	if (array_resize(&s->spots, room) < 0 || array_resize(&s->resting, room) < 0)
		return -ENOMEM;
	s->room = room;
	return 0;
}

const uint8_t *pshift_server_resting(const struct pshift_server *s)
{
	return s->n_resting ? s->resting : NULL;
}

void pshift_server_wake(struct pshift_server *s, size_t index)
{
	if (!s->resting[index])
		return;
	s->resting[index] = 0;
	s->n_resting--;
	s->spots[index].ready = s->now; /* nothing of it waited */
}

void pshift_server_wake_all(struct pshift_server *s)
{
	for (size_t i = 0; s->n_resting && i < s->n; i++)
		pshift_server_wake(s, i);
}

int64_t pshift_server_add(
	struct pshift_server *s, const struct cluster_server_bucket *b, uint64_t served)
{
	size_t at = ids_find(&s->ids, b->id);
	struct pshift_spot *spot;

	if (at == SIZE_MAX) {
		if (make_room(s) || ids_add(&s->ids, b->id, (uint32_t)s->n))
			return -ENOMEM;
		at = s->n++;
		spot = &s->spots[at];
		s->resting[at] = 0;
		*spot = (struct pshift_spot){.id = b->id,
			.served = served,
			.served0 = served,
			.served_at = {served, served},
			.delayed = s->now - s->length,
			.moved = s->now - s->length,
			.cap = b->limit};
		/* Another server may have had its tokens in this period: nothing until a grant. */
		if (b->limit != LEASE_NO_LIMIT && s->state != LEASE_STATIC)
			spot->cap = 0;
		spot->limit = b->limit;
	}
	pshift_server_wake(s, at);
	spot = &s->spots[at];
	spot->static_r = b->reserved;
	spot->static_l = b->limit;
	if (s->state == LEASE_STATIC) {
		spot->reserved = b->reserved;
		spot->limit = spot->cap = b->limit;
	}
	spot->reservation = b->reservation;
	spot->new = true;
	s->limits |= pshift_limited(spot);
	return (int64_t)at;
}

int64_t pshift_server_find(const struct pshift_server *s, uint64_t id)
{
	size_t at = ids_find(&s->ids, id);

	return at == SIZE_MAX ? -ENOENT : (int64_t)at;
}

/* Charge the requests served since the last look: R-tokens while there were any, then L-tokens. */
static void count(struct pshift_server *s, const struct cluster_server_load *loads)
{
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];
		int64_t more, from_r;

		if (s->resting[i])
			continue;
		more = (int64_t)(loads[i].served - b->served);
		from_r = more < b->r ? more : b->r;
		b->served = loads[i].served;
		b->arrived = loads[i].arrived;
		b->queued = loads[i].queued;
		b->inside = loads[i].inside;
		b->waited = loads[i].waited;
		b->recent = more > 0 ? more : 0;
		if (more <= 0)
			continue;
		b->used += more;
		b->r -= from_r;
		if (pshift_limited(b))
			b->l -= more - from_r;
	}
}

/* Return an interval after the last measurement (the interval may have become shorter since); and
 * at the begin of a period on all servers, so that a round has the measurements of all. A server
 * that has just measured continues from there. */
static weir_time next_measurement(const struct pshift_server *s)
{
	return lesser(s->measure, s->measured + s->interval + s->interval / 4);
}

static bool is_time_to_measure(struct pshift_server *s, weir_time now)
{
	if (s->period == s->counted && now < next_measurement(s))
		return false;
	s->measure = now + s->interval;
	return now - s->measured >= pshift_just(s);
}

int pshift_server_look(struct pshift_server *s, weir_time now,
	const struct cluster_server_load *loads, double capacity)
{
	int r = 0, e;

	if (s->started && now < s->now)
		now = s->now;
	s->capacity = capacity > 0 ? capacity : 0;
	count(s, loads);
	if (!s->started)
		pshift_lease_start(s, now);
	pshift_demand_watch(s, now);
	pshift_lease_turn(s, now);
	/* Leases are renewed when a period begins, and the renewal is repeated until it is
	 * acknowledged. */
	if (s->controller && now - s->spoke > s->length + s->length / 2)
		pshift_server_lost(s, s->controller);
	if (s->state == LEASE_HELD || s->state == LEASE_STATIC)
		r = pshift_borrow_step(s, now);
	else
		pshift_borrow_end(s);
	pshift_lease_tokens(s, now);
	s->now = now;
	pshift_demand_look_for_want(s, now);
	if (is_time_to_measure(s, now))
		pshift_demand_measure(s, now);
	s->counted = s->period;
	e = pshift_demand_report(s, now);
	if (s->config.rests && s->measured == now && s->n > PSHIFT_MANY)
		pshift_demand_rest(s);
	return r ? r : e;
}

weir_time pshift_server_due(const struct pshift_server *s)
{
	weir_time due = next_measurement(s);

	if (!s->started || s->full || s->answer)
		return s->now;
	if (s->limits)
		due = lesser(due, s->now + PSHIFT_PACE);
	if (s->period)
		due = lesser(due, s->now < s->end ? s->end : s->next);
	else if (s->state == LEASE_BLIND)
		due = lesser(due, pshift_lease_blind(s));
	return due > s->now ? due : s->now + 1;
}

/* ---- messages */

/* Return true if the controller that it follows was not heard for longer than any vote counts: it may
 * be gone, and leave a generation that another leads. */
static bool vote_is_old(const struct pshift_server *s, weir_time now)
{
	return s->lost && now - s->spoke > PSHIFT_YOUNG * pshift_longer(s->length);
}

static enum peer_verdict take_ask(
	struct pshift_server *s, weir_time now, const struct lease_message *m)
{
	uint64_t g = m->grant.generation;

	if (!g) { /* from a standby: for information, not to be followed */
		s->full = true;
		return PEER_TAKEN;
	}
	if (g < s->generation ||
		(g == s->generation && m->instance < s->controller && !vote_is_old(s, now)))
		return PEER_OLD;
	if (g != s->generation || m->instance != s->controller)
		s->accepted = s->asked = 0;
	s->generation = g;
	s->controller = m->instance;
	s->lost = s->left = false;
	s->spoke = now;
	s->asked = m->sequence > s->asked ? m->sequence : s->asked;
	s->full = true;
	return PEER_TAKEN;
}

enum peer_verdict pshift_server_receive(
	struct pshift_server *s, weir_time now, const struct lease_message *m)
{
	if (m->kind == LEASE_ASK)
		return take_ask(s, now, m);
	if (m->kind != LEASE_GRANT)
		return PEER_BROKEN;
	if (!pshift_lease_take(s, now, m)) {
		s->refused++;
		return PEER_OLD;
	}
	s->taken++;
	return PEER_TAKEN;
}

void pshift_server_obeyed(struct pshift_server *s, uint64_t generation)
{
	if (generation <= s->generation)
		return;
	s->generation = generation;
	s->controller = s->accepted = s->asked = 0;
	s->lost = s->left = false;
	s->full = true;
}

void pshift_server_met(struct pshift_server *s)
{
	s->full = true;
}

void pshift_server_lost(struct pshift_server *s, uint64_t controller)
{
	if (controller != s->controller || s->lost)
		return;
	s->lost = s->answer = true;
	/* Measure again soon what a stand-in needs to know. */
	if (s->interval > s->length / ALONE)
		s->interval = s->length / ALONE;
}

/* ---- looking */

void pshift_server_status(const struct pshift_server *s, struct pshift_server_status *ret)
{
	*ret = (struct pshift_server_status){s->state, s->period, s->granted, s->generation,
		s->granted ? s->granted + s->hold : 0, s->interval, s->reports, s->entries,
		s->taken, s->refused};
}

void pshift_server_tokens(
	const struct pshift_server *s, size_t index, struct pshift_server_tokens *ret)
{
	const struct pshift_spot *b = &s->spots[index];

	*ret = (struct pshift_server_tokens){
		b->used, b->claim, b->cap, b->reserved, b->limit, b->r, b->l, b->closed};
}
