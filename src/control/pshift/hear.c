/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hear: process reports of servers: their demand, and their holdings in the books. Also decide
 * which of two controllers, and which of two instances of a server, to believe.
 */
#include "control/pshift/control-impl.h"
#include "base/array.h"
#include "base/lesser.h"
#include <errno.h>
#include <math.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- entries */

static uint64_t pair(size_t bucket, size_t server)
{
	return (uint64_t)bucket << 32 | (uint64_t)server;
}

static struct pshift_entry *entry_of(
	struct pshift_control *c, size_t bucket, size_t server, bool add)
{
	size_t at = ids_find(&c->pairs, pair(bucket, server));
	struct pshift_entry *e;

	if (at != SIZE_MAX)
		return &c->entries[at];
	if (!add || array_grow(&c->entries, &c->room_entries, c->n_entries + 1) ||
		ids_add(&c->pairs, pair(bucket, server), (uint32_t)c->n_entries))
		return NULL;
	e = &c->entries[c->n_entries];
	*e = (struct pshift_entry){.bucket = (uint32_t)bucket,
		.server = (uint32_t)server,
		.next = c->servers[server].entries};
	c->servers[server].entries = (uint32_t)c->n_entries++;
	c->buckets[bucket].seen++;
	c->stale_order = true;
	return e;
}

/* Return the most that the server may have used of this period. If it never took a grant: its
 * static part, less the unknown use of its previous instance, which is counted already. */
static int64_t may_have_used(const struct pshift_control *c, const struct pshift_entry *e)
{
	const struct pshift_share *b = &c->buckets[e->bucket];
	bool counted = !c->servers[e->server].granted && c->period <= b->renewed;
	int64_t used = e->cap.most - (counted ? b->unknown[0] : 0);

	return used > 0 ? used : 0;
}

/* The previous instance ended; count its possible use of this period as lost. */
static void starts_anew(struct pshift_control *c, struct pshift_member *s, uint64_t instance)
{
	for (uint32_t i = s->entries; i != NONE; i = c->entries[i].next) {
		struct pshift_entry *e = &c->entries[i];

		pshift_note_end(&c->buckets[e->bucket], c->period);
		if (pshift_has_limit(&c->buckets[e->bucket])) {
			c->buckets[e->bucket].lost += may_have_used(c, e);
			/* At a takeover servers may be a little ahead, in the next period. */
			if (c->period <= c->since)
				c->buckets[e->bucket].lost_next += pshift_limits_entitled(c, e);
		}
		e->cap = e->limit = (struct pshift_line){0};
		e->claim = e->reserved = e->used = e->queue = e->arriving = e->serving = 0;
		e->in = 0;
	}
	s->instance = instance;
	s->alive = pshift_granted(s);
	s->full = false;
	s->echo = 0;
	s->echo_at = INT64_MAX / 2; /* replaced by the next report */
	s->heard = s->accepted = s->granted = s->told = s->settled = 0;
	s->asked_at = -c->config.length;
	c->changed = true;
}

int64_t pshift_used(const struct pshift_control *c, const struct pshift_entry *e, weir_time now)
{
	bool heard = e->period == c->period;
	int64_t known = heard ? e->used : 0;
	weir_time since = now - (heard ? e->at : c->end - c->config.length);
	int64_t used = known + pshift_over((double)e->serving, since);

	/* Extrapolate, but not beyond its cap. */
	if (pshift_has_limit(&c->buckets[e->bucket]) && used > e->cap.most)
		used = known > e->cap.most ? known : e->cap.most;
	return used;
}

void pshift_hear_limit(struct pshift_control *c, size_t bucket)
{
	int64_t part = pshift_static_part(&c->buckets[bucket]);

	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_entry *e = entry_of(c, bucket, i, false);

		if (!e || e->static_part >= part)
			continue;
		e->static_part = part;
		if (pshift_may_be_static(c, &c->servers[i]) && e->cap.most < part)
			e->cap.most = part;
	}
}

/* Mark news: a round is due. */
static void look_again(struct pshift_control *c, weir_time now)
{
	c->news = c->changed ? c->news : now;
	c->changed = true;
}

/* A server that did not report before the takeover reports its holdings: subtract them from the
 * unknown. */
static void hear_unknown(
	struct pshift_control *c, const struct lease_report *r, struct pshift_entry *e)
{
	struct pshift_share *b = &c->buckets[e->bucket];

	if (!pshift_has_limit(b))
		return;
	pshift_limits_heard(c, e, r->period);
	/* Of another period, or of none: in this period it may have its entitlement without a
	 * grant. */
	if (r->period != c->period) {
		e->cap = e->limit;
		e->cap.most = e->limit.most > e->static_part ? e->limit.most : e->static_part;
	}
	/* The server is ahead, and its use of this period stays unknown. */
	if (r->period > c->period && b->renewed < c->period)
		b->renewed = c->period;
	if (r->state != LEASE_BLIND)
		return;
	pshift_note_end(b, c->period);
	/* The previous instance's possible use of this period counts as used: its static part, or
	 * the unknown; this also in the next period, in which servers may be at a takeover. */
	if (pshift_limits_over(c, b)) {
		b->lost += e->static_part;
		e->cap = (struct pshift_line){0};
	} else {
		b->renewed = c->period + (c->period <= c->since);
	}
}

/* Demand that moves is news at any time, and is then measured more often; without a limit it is served before that. A
 * server that starts anew finds its demand where it was. */
static void look_for_move(struct pshift_control *c, weir_time now, const struct pshift_entry *e,
	const struct lease_demand *d)
{
	bool had = e->closed || e->queue || e->arriving, has = d->closed || d->queue || d->arriving;
	struct pshift_share *b = &c->buckets[e->bucket];

	if (!c->started || had == has || !pshift_has_limit(b) || !c->servers[e->server].granted)
		return;
	b->moved = c->period;
	c->interval = c->config.shortest;
	look_again(c, now);
}

static void hear_entry(struct pshift_control *c, weir_time now, const struct lease_report *r,
	struct pshift_entry *e, const struct lease_demand *d, bool known)
{
	double left = (double)(c->end - now) / (double)WEIR_SEC;
	/* Servers refuse grants of a period before the last one. */
	bool under_way = e->in > r->accepted && c->servers[e->server].told + 1 >= c->period;
	int64_t limit;

	if (c->started && !(e->closed && d->closed))
		c->moved += fabs(
			(double)(d->queue - e->queue) + (double)(d->arriving - e->arriving) * left);
	look_for_move(c, now, e, d);
	e->period = r->period;
	e->at = now;
	e->used = d->used;
	e->queue = d->queue;
	e->arriving = d->arriving;
	e->serving = d->serving;
	e->closed = d->closed;
	if (!d->holds)
		return;
	/* No limit at the server, but one in this controller's policy: use a number that can be
	 * added up. */
	e->static_part = d->static_part < LEASE_TOKENS_MAX ? d->static_part : LEASE_TOKENS_MAX;
	e->reserved = d->reserved;
	e->dirty = true;
	if (!pshift_has_limit(&c->buckets[e->bucket]) || d->limit == LEASE_NO_LIMIT)
		return;
	/* During a policy swap, use the greater part: the server may take the new one before it
	 * reports. */
	if (e->static_part < pshift_static_part(&c->buckets[e->bucket]))
		e->static_part = pshift_static_part(&c->buckets[e->bucket]);
	limit = d->limit;
	/* The next grant says so, and without a grant the server has no more. */
	if (c->started && pshift_is_late(c, r->granted)) {
		limit = lesser(limit, e->static_part);
		if (!under_way)
			pshift_books_most(&e->cap, e->static_part);
	}
	if (c->started && known)
		pshift_limits_holds(c, e, limit);
	pshift_books_holds(&e->limit, under_way, limit);
	if (c->started && r->period != c->period)
		return;
	pshift_books_holds(&e->cap, under_way, d->cap);
	e->cap_of = r->period;
}

static int hear_entries(
	struct pshift_control *c, weir_time now, size_t server, const struct lease_message *m)
{
	for (size_t i = 0; i < m->n; i++) {
		size_t bucket = ids_find(&c->ids, m->demands[i].bucket);
		struct pshift_entry *e;
		size_t known = c->n_entries;

		if (bucket == SIZE_MAX)
			continue;
		e = entry_of(c, bucket, server, m->demands[i].holds);
		if (!e && m->demands[i].holds)
			return -ENOMEM;
		if (e)
			hear_entry(c, now, &m->report, e, &m->demands[i], c->n_entries == known);
		if (c->started && c->n_entries > known)
			hear_unknown(c, &m->report, e);
	}
	return 0;
}

/* A server reports its use of a period, and so the end of its claim to it, only during that
 * period. */
static void hear_accepted(
	struct pshift_control *c, struct pshift_member *s, uint64_t accepted, uint64_t period)
{
	c->freed |= accepted > s->accepted;
	/* Less than before if it had left and came back: tell it everything again. */
	s->accepted = accepted;
	for (uint32_t i = s->entries; i != NONE; i = c->entries[i].next) {
		struct pshift_entry *e = &c->entries[i];

		if (period == c->period) {
			pshift_books_accept(
				&e->cap, s->accepted, e->period == period ? e->used : 0);
			/* Its number may differ from the one told last. */
			if (pshift_may_be_static(c, s) && e->cap.most < e->static_part)
				e->cap.most = e->static_part;
		}
		pshift_books_accept(&e->limit, s->accepted, 0);
	}
}

/* While the period is not known: take the newest that a server is in, and its latest end. No server is ahead of a
 * controller that counts (pshift.h, LEASES): if one is, another controller has granted since. */
static void hear_period(struct pshift_control *c, weir_time now, const struct lease_report *r)
{
	weir_time left = r->left < c->config.length ? r->left : c->config.length;

	if (c->started || !r->period || r->period < c->period ||
		(c->counts && r->period == c->period))
		return;
	c->counts = false;
	if (r->period > c->period || now + left > c->end)
		c->end = now + left;
	c->period = r->period;
}

/* An unknown instance: if it answers a message sent after the last answer of the known one, the
 * known one has ended. Else ask: the live one will answer. */
static bool is_new(struct pshift_control *c, struct pshift_member *s, const struct lease_message *m)
{
	bool follows = pshift_lead_follows(c, &m->report);

	if (!follows || m->report.asked <= s->asked) {
		s->full = false;
		return false;
	}
	starts_anew(c, s, m->instance);
	return true;
}

static void hear(struct pshift_control *c, weir_time now, struct pshift_member *s,
	const struct lease_message *m)
{
	s->heard = m->sequence;
	s->at = now;
	if (now - m->sent <= s->echo_at - s->echo || now - s->echo_at >= c->config.length) {
		s->echo = m->sent;
		s->echo_at = now;
	}
	/* A report so soon after a round is an acknowledgement: no measurement, and no news. */
	if ((s->capacity != (int64_t)m->report.capacity || m->n) &&
		(m->report.full || now - c->round >= c->interval / 4)) {
		look_again(c, now);
		c->reporting -= s->awaited;
		s->awaited = false;
	}
	s->capacity = (int64_t)m->report.capacity;
	s->state = (enum lease_state)m->report.state;
}

enum peer_verdict pshift_hear(
	struct pshift_control *c, weir_time now, const struct lease_message *m)
{
	size_t at = ids_find(&c->names, peer_hash(m->name));
	struct pshift_member *s;

	if (m->kind != LEASE_REPORT)
		return PEER_BROKEN;
	if (at == SIZE_MAX || strcmp(c->servers[at].name, m->name) != 0)
		return PEER_NOISE;
	s = &c->servers[at];
	pshift_lead_hear(c, now, s, &m->report);
	if (m->instance != s->instance && !is_new(c, s, m))
		return PEER_UNPROVEN;
	if (m->sequence <= s->heard)
		return PEER_OLD;
	hear(c, now, s, m);
	if (!pshift_lead_follows(c, &m->report)) {
		s->full = false;
		c->ask = now;
		return PEER_TAKEN;
	}
	s->asked = m->report.asked > s->asked ? m->report.asked : s->asked;
	/* Its holdings may have been given to others, even if it took a later grant than was known. */
	s->full &= pshift_tell_live(c, at);
	/* The hold was possibly shortened because of this server. */
	if (c->hold < PSHIFT_HOLD &&
		(m->report.granted > s->granted || m->report.accepted > s->accepted))
		look_again(c, now);
	if (m->report.granted > s->granted) {
		s->granted = m->report.granted;
		if (s->granted + PSHIFT_APART >= c->period + PSHIFT_HOLD)
			s->apart = false;
	}
	if (s->granted > s->told) { /* by another controller */
		s->told = s->granted;
		c->reach =
			s->granted + PSHIFT_HOLD > c->reach ? s->granted + PSHIFT_HOLD : c->reach;
	}
	hear_period(c, now, &m->report);
	if (hear_entries(c, now, at, m))
		return PEER_CROWD;
	hear_accepted(c, s, m->report.accepted, m->report.period);
	if (m->report.full && !s->full) {
		s->full = s->new = true;
		s->since = c->period;
		look_again(c, now);
		if (m->report.state == LEASE_BLIND)
			pshift_lead_restarted(c, s);
	}
	pshift_lead_acknowledged(c, s, &m->report);
	return PEER_TAKEN;
}
