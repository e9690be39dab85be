/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lead: which of a cluster's controllers leads. pshift.h, LEADING, has the law and the argument.
 *
 * METHOD  A controller is a standby, asks, or grants. A standby listens to reports, which servers
 *         send to all controllers, and asks when a majority of the servers follow no controller.
 *         Asking, it has its own generation: servers follow the highest, and of two the higher
 *         instance. It grants when all servers follow it, or a majority does and the others had an
 *         eighth of a period to answer; a quarter, if one answered and only the report of its
 *         holdings is missing. It becomes a standby again when it hears of a higher generation, or
 *         loses its majority. An elected one asks when it has a generation above all others. Votes age: a server's vote counts in the period in which the message
 *         that it acknowledges was sent, and in the next one.
 */
#include "control/pshift/control-impl.h"
#include <string.h>

#define NONE   UINT32_MAX
#define ASKS   20 /* asks per period, of a server that has not answered */
#define GATHER 8  /* part of a period in which the servers beyond a majority may answer, too */
#define RANKS  20 /* part of a period that a stand-in waits for those before it */
#define IDLE   3  /* periods: a stand-in without demand stands down */
#define STEADY 3  /* periods: a controller that started later takes over after so long */

/* ---- votes */

static size_t majority(const struct pshift_control *c)
{
	return c->n_servers / 2 + 1;
}

/* A server that started a moment ago may have forgotten which controller it followed: its vote
 * counts only if all servers are there. */
static bool may_vote(const struct pshift_member *s)
{
	return s->state != LEASE_BLIND;
}

/* Return true if a majority acknowledged messages that were sent no more than `age` periods ago. */
static bool has_majority(const struct pshift_control *c, unsigned age)
{
	size_t votes = 0, all = 0;

	for (size_t i = 0; i < c->n_servers; i++) {
		const struct pshift_member *s = &c->servers[i];

		if (s->age > age)
			continue;
		all++;
		votes += may_vote(s);
	}
	return votes >= majority(c) || all == c->n_servers;
}

/* Return true if that majority has taken grants of the period of these messages: it is in that period, or later. */
static bool has_ruled(const struct pshift_control *c, unsigned age)
{
	size_t votes = 0, all = 0;

	for (size_t i = 0; i < c->n_servers; i++) {
		const struct pshift_member *s = &c->servers[i];

		if (s->age > age || s->granted + age < c->period)
			continue;
		all++;
		votes += may_vote(s);
	}
	return votes >= majority(c) || all == c->n_servers;
}

static void look_for_rule(struct pshift_control *c)
{
	if (!c->started || c->ruled == c->period)
		return;
	if (has_ruled(c, 0))
		c->ruled = c->period;
	else if (c->ruled + 1 < c->period && has_ruled(c, 1))
		c->ruled = c->period - 1;
}

static void age_votes(struct pshift_control *c)
{
	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_member *s = &c->servers[i];

		s->mark[1] = s->mark[0];
		s->mark[0] = s->sequence;
		s->age += s->age < PSHIFT_TOO_OLD;
	}
}

/* ---- servers that start anew */

void pshift_lead_restarted(struct pshift_control *c, struct pshift_member *s)
{
	s->unproven = c->unproven = true;
	for (size_t i = 0; i < c->n_servers; i++) {
		c->servers[i].proof = c->servers[i].sequence;
		c->servers[i].due = true; /* to be acknowledged */
	}
}

static bool is_proven(const struct pshift_control *c)
{
	size_t votes = 0, all = 0;

	for (size_t i = 0; i < c->n_servers; i++) {
		const struct pshift_member *s = &c->servers[i];

		all += s->full;
		votes += s->acked > s->proof && may_vote(s);
	}
	return votes >= majority(c) || all == c->n_servers;
}

static void look_for_proof(struct pshift_control *c)
{
	if (!c->unproven || !is_proven(c))
		return;
	c->unproven = false;
	for (size_t i = 0; i < c->n_servers; i++)
		c->servers[i].unproven = false;
}

void pshift_lead_acknowledged(
	struct pshift_control *c, struct pshift_member *s, const struct lease_report *r)
{
	uint64_t to = r->accepted > r->asked ? r->accepted : r->asked;

	if (to > s->sequence)
		return;
	s->acked = to;
	if (to > s->mark[0])
		s->age = 0;
	else if (to > s->mark[1] && s->age > 1)
		s->age = 1;
	look_for_rule(c);
	look_for_proof(c);
}

/* ---- standing down */

/* Forget the servers' holdings. */
static void forget(struct pshift_control *c)
{
	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_member *s = &c->servers[i];

		s->full = s->new = s->due = s->apart = s->awaited = s->unproven = false;
		s->accepted = s->granted = s->alive = s->told = s->until = s->since = 0;
		s->settled = 0;
		s->acked = 0;
		s->age = PSHIFT_TOO_OLD;
		s->entries = NONE;
		s->asked_at = c->now - c->config.length;
	}
	for (size_t i = 0; i < c->n_buckets; i++) {
		struct pshift_share *b = &c->buckets[i];

		b->seen = 0;
		b->waiting = false;
		b->renewed = 0;
		b->lost = b->lost_next = b->unknown[0] = b->unknown[1] = 0;
	}
	ids_free(&c->pairs);
	c->n_entries = c->waiting = c->reporting = 0;
	c->stale_order = true;
	c->since = c->ruled = c->held = c->reach = c->frozen = 0;
	c->changed = c->turned = c->freed = false;
	c->result = (struct pshift_result){0};
}

static void stand_down(struct pshift_control *c)
{
	forget(c);
	c->started = c->asking = c->heir = false;
}

void pshift_lead_stop(struct pshift_control *c)
{
	if (c->asking)
		stand_down(c);
}

/* A server whose acknowledgement is old may follow another controller by now. */
void pshift_lead_turn(struct pshift_control *c)
{
	age_votes(c);
	look_for_rule(c);
	c->idle = c->result.asked ? 0 : c->idle + 1;
	if (!has_majority(c, 1) || (c->config.rank && c->idle > IDLE))
		stand_down(c);
}

/* Two controllers that ask at the same time would depose each other again and again: each waits for
 * its own time. */
static weir_time wait_of(const struct pshift_control *c)
{
	uint64_t h = (c->config.instance ^ c->generation) * UINT64_C(0x9e3779b97f4a7c15);

	return c->config.length / 4 + (weir_time)(h >> 32) % (c->config.length / 2);
}

bool pshift_lead_follows(struct pshift_control *c, const struct lease_report *r)
{
	bool higher = r->generation > c->generation ||
		      (r->generation == c->generation && r->controller > c->config.instance);

	if (r->controller == c->config.instance && r->generation == c->generation && c->asking)
		return true;
	if (r->generation > c->highest)
		c->highest = r->generation;
	if (!c->started && (higher || (r->controller && r->generation == c->generation)))
		c->counts = false; /* another one may have granted since */
	if (c->asking && higher) {
		stand_down(c);
		c->counts = false;
		c->period = 0;
		c->patience = c->now + wait_of(c);
	}
	return false;
}

/* ---- standing by */

void pshift_lead_hear(struct pshift_control *c, weir_time now, struct pshift_member *s,
	const struct lease_report *r)
{
	s->leader = r->controller;
	s->led_at = now;
	s->wants = r->wants;
	if (!r->controller || r->controller == c->config.instance)
		return;
	if (!c->first_leader)
		c->first_leader = r->controller;
	if (c->first_leader != r->controller)
		c->heir = false; /* others are in line */
}

/* Reports arrive twice a period. */
static bool is_silent(const struct pshift_control *c, const struct pshift_member *s, weir_time now)
{
	return s->led_at < 0 || now - s->led_at >= c->config.length + c->config.length / 2;
}

/* Return true if the server follows a controller that this one leaves alone. A controller takes
 * over from a stand-in after a period. */
static bool is_led(const struct pshift_control *c, const struct pshift_member *s, weir_time now)
{
	bool outranked = !c->config.rank && pshift_stands_in(s->leader) &&
			 now - c->began >= c->config.length;

	return s->leader && s->leader != c->config.instance && !outranked;
}

static bool may_ask(struct pshift_control *c, weir_time now)
{
	size_t heard = 0, led = 0;
	bool wanted = !c->config.rank;

	if (c->config.elected)
		return c->mandate > c->highest;
	for (size_t i = 0; i < c->n_servers; i++) {
		const struct pshift_member *s = &c->servers[i];

		if (is_silent(c, s, now))
			continue;
		heard++;
		led += is_led(c, s, now);
		wanted |= s->wants;
	}
	if (heard - led < majority(c) || !wanted)
		c->unled = -1;
	else if (c->unled < 0)
		c->unled = now;
	if (now < c->patience)
		return false;
	/* Controllers first, then stand-ins, one after the other. */
	if (c->unled >= 0 && now - c->unled >= c->config.rank * (c->config.length / RANKS))
		return true;
	return c->heir && now - c->began >= STEADY * c->config.length && heard >= majority(c);
}

static void begin_asking(struct pshift_control *c, weir_time now)
{
	forget(c);
	if (!c->counts)
		c->period = 0;
	c->generation = c->highest = c->config.elected ? c->mandate : c->highest + 1;
	c->asking = true;
	c->heir = false;
	c->marked = now;
	age_votes(c);
	age_votes(c);
}

/* Ask servers again that have not answered for so long. */
static void ask_again(struct pshift_control *c, weir_time now)
{
	if (now - c->marked < c->config.length)
		return;
	c->marked = now;
	age_votes(c);
	for (size_t i = 0; i < c->n_servers; i++)
		if (c->servers[i].age)
			c->servers[i].full = false;
}

void pshift_lead_ask(struct pshift_control *c, weir_time now)
{
	weir_time every = c->config.length / ASKS;
	struct lease_message m = {.kind = LEASE_ASK,
		.cluster = c->config.cluster,
		.instance = c->config.instance,
		.sent = now};

	memcpy(m.name, c->name, sizeof(m.name));
	/* 0: for information, not to be followed. */
	m.grant.generation = c->asking ? c->generation : 0;
	c->ask = WEIR_NEVER;
	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_member *s = &c->servers[i];

		if (c->asking ? s->full && !pshift_tell_lost(c, s) : !is_silent(c, s, now))
			continue;
		c->ask = now + every;
		if (now - s->asked_at < every)
			continue;
		s->asked_at = now;
		m.sequence = ++s->sequence;
		c->config.send(c->config.arg, i, &m);
	}
}

/* ---- taking over */

static bool may_start(const struct pshift_control *c, weir_time now)
{
	size_t all = 0, votes = 0;
	weir_time wait = c->config.length / GATHER;

	for (size_t i = 0; i < c->n_servers; i++) {
		const struct pshift_member *s = &c->servers[i];

		all += s->full && s->age <= 1;
		votes += s->full && s->age <= 1 && may_vote(s);
		/* The server follows, and the report of its holdings was lost: it soon sends another. */
		if (!s->full && s->age <= 1)
			wait = c->config.length / GATHER * 2;
	}
	return all == c->n_servers || (votes >= majority(c) && now - c->marked >= wait);
}

/* Return true if the server serves no bucket with a limit. (A server that was admitted in this
 * period or the last one still reports BLIND, since its earlier use is unknown.) */
static bool is_blind(const struct pshift_member *s)
{
	return s->state == LEASE_BLIND && !s->granted;
}

/* Compute the most that servers without a report may hold: the part of each limit that the others
 * do not. */
static void look_for_unknown(struct pshift_control *c)
{
	for (size_t i = 0; i < c->n_buckets; i++) {
		struct pshift_share *b = &c->buckets[i];

		b->since = c->period;
		b->unknown[0] = b->unknown[1] = b->parts > b->seen ? b->limit : 0;
	}
	for (size_t i = 0; i < c->n_entries; i++) {
		struct pshift_entry *e = &c->entries[i];

		pshift_limits_heard(c, e, e->cap_of);
	}
}

static void start(struct pshift_control *c, weir_time now)
{
	/* no server is in a period: all have just started, and earlier use counts for none */
	bool first = !c->period;

	c->started = c->counts = true;
	if (first) {
		c->period = 1;
		c->end = now + c->config.length;
	}
	c->since = c->period;
	c->held = c->reach;
	look_for_rule(c);
	pshift_limits_reach(c);
	c->round = now - c->interval;
	c->changed = true;
	c->idle = 0;
	/* The use by the previous instance of a BLIND server, in this period or, if it is ahead,
	 * the next, is unknown to this controller: the others' holdings were granted with regard to
	 * it; grant no more. */
	for (size_t i = 0; i < c->n_servers; i++)
		if (!first && c->servers[i].entries != NONE && c->servers[i].state == LEASE_BLIND)
			c->frozen = c->period + 2;
	/* A server that is still in the previous period will have its entitlement in this one, even
	 * if its report would confirm the cap of the previous one. */
	for (size_t i = 0; i < c->n_entries; i++) {
		struct pshift_entry *e = &c->entries[i];
		int64_t entitled = pshift_limits_begins(c, e), had = e->cap.most;

		/* Demand has not moved to a server that started anew, nor away from it. */
		if (!first && c->servers[e->server].state == LEASE_BLIND)
			pshift_note_end(&c->buckets[e->bucket], c->frozen);
		if (e->cap_of == c->period || is_blind(&c->servers[e->server]))
			continue;
		if (pshift_is_late(c, c->servers[e->server].granted))
			pshift_books_most(&e->limit, e->static_part);
		e->cap = e->limit;
		e->cap.most = had > entitled ? had : entitled;
	}
	look_for_unknown(c);
}

void pshift_lead_begin(struct pshift_control *c)
{
	c->heir = !c->config.rank;
	forget(c);
}

void pshift_lead_step(struct pshift_control *c, weir_time now)
{
	for (; c->counts && now >= c->end; c->end += c->config.length)
		c->period++; /* that it still knows */
	if (!c->asking && may_ask(c, now))
		begin_asking(c, now);
	if (!c->asking)
		return;
	ask_again(c, now);
	if (may_start(c, now))
		start(c, now);
}
