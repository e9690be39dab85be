/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tell: decide which changes servers are told, and when. Limits are in limits.c.
 */
#include "control/pshift/control-impl.h"
#include "base/lesser.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

bool pshift_tell_live(const struct pshift_control *c, size_t server)
{
	const struct pshift_member *s = &c->servers[server];
	uint64_t since = s->granted > s->since ? s->granted : s->since;

	/* A server that no grant has reached for so long may hold less than it was told, and must
	 * be asked. */
	return s->full && c->period <= since + PSHIFT_HOLD;
}

#define FEW 16

bool pshift_tell_differs(int64_t a, int64_t b)
{
	int64_t more = greater(a, b), by = llabs(a - b);

	return by > more / 64 && (by > 1 || more < FEW);
}

void pshift_tell_soon(struct pshift_control *c, struct pshift_entry *e)
{
	struct pshift_member *s = &c->servers[e->server];

	e->in = s->sequence + 1;
	s->due = true;
}

/* R-tokens: an excess for a while does little harm, but a shortage is lost, if it is more than
 * `slack` over all servers: one token at each of eight is 6 % of a reservation of 128. */
static bool short_of(int64_t want, int64_t has, bool slack)
{
	want = greater(want, 0);
	has = greater(has, 0);
	return want > has ? !slack : pshift_tell_differs(want, has);
}

/* of a bucket at all servers: missing R-tokens of the rest of this period, and of a whole one */
struct lack {
	int64_t now, whole;
};

static struct lack lack_of(const struct pshift_control *c, size_t bucket)
{
	struct lack lack = {0, 0};

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = pshift_used(c, e, c->now);

		if (!pshift_tell_live(c, e->server))
			continue;
		lack.now += greater(0, e->want_claim - greater(e->claim, used));
		lack.whole += greater(0, e->want_reserved - e->reserved);
	}
	return lack;
}

void pshift_tell_bucket(struct pshift_control *c, size_t bucket)
{
	struct lack lack = lack_of(c, bucket);
	int64_t slack = c->buckets[bucket].reservation / 512;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = pshift_used(c, e, c->now);

		if (!pshift_tell_live(c, e->server))
			continue;
		if (e->dirty)
			pshift_tell_soon(c, e);
		/* The open part counts: a claim that is used up is as good as any other. */
		if (short_of(e->want_claim - used, e->claim - used, lack.now <= slack) ||
			e->dirty) {
			e->claim = e->want_claim;
			pshift_tell_soon(c, e);
		}
		if (short_of(e->want_reserved, e->reserved, lack.whole <= slack) || e->dirty) {
			e->reserved = e->want_reserved;
			pshift_tell_soon(c, e);
		}
		e->dirty = false;
	}
	if (pshift_has_limit(&c->buckets[bucket]))
		pshift_limits_tell(c, bucket);
}

/* ---- messages */

/* Return the rate, in tokens a ns, at which the server would serve the bucket if it made up for its claim in `left`, as
 * rate_of() in lease.c does; no less than it does now. */
static double projected(const struct pshift_control *c, const struct pshift_entry *e, double left)
{
	double used = (double)pshift_used(c, e, c->now);
	double early = left - (double)c->config.length / PSHIFT_LATE;
	double rate = ((double)e->claim - used) / fmax(early, PSHIFT_PACE);

	return fmax((double)e->serving / (double)WEIR_SEC,
		fmin(rate, ((double)e->cap.told - used) / left));
}

/* Return true if claims can be made up for within the limit's pace, over all servers. */
static bool keeps_pace(const struct pshift_control *c, const struct pshift_share *b)
{
	size_t bucket = (size_t)(b - c->buckets);
	double left = fmax((double)(c->end - c->now - PSHIFT_AHEAD), PSHIFT_PACE), rate = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++)
		rate += projected(c, &c->entries[c->place[p]], left);
	return rate <= (double)b->limit / (double)c->config.length;
}

/* Return true if claims are made up for beyond the pace of caps: since demand has moved; or within the limit's pace,
 * unless tokens were with a server that ended. */
static bool makes_up(const struct pshift_control *c, const struct pshift_share *b)
{
	bool moved = b->moved && c->period <= b->moved + 1;

	return moved || (!pshift_just_ended(c, b) && keeps_pace(c, b));
}

static size_t collect(struct pshift_control *c, const struct pshift_member *s)
{
	size_t n = 0;

	for (uint32_t i = s->entries; i != NONE; i = c->entries[i].next) {
		const struct pshift_entry *e = &c->entries[i];
		const struct pshift_share *b = &c->buckets[e->bucket];
		bool limit = pshift_has_limit(b);

		if (e->in <= s->accepted)
			continue;
		c->out.tokens[n++] = (struct lease_tokens){b->id, e->claim,
			limit ? e->cap.told : LEASE_NO_LIMIT, e->reserved,
			limit ? e->limit.told : LEASE_NO_LIMIT, limit && makes_up(c, b)};
	}
	return n;
}

static int tell(struct pshift_control *c, size_t server, weir_time now)
{
	struct pshift_member *s = &c->servers[server];
	struct lease_message *m = &c->out;

	if (lease_message_room(m, c->n_buckets))
		return -ENOMEM;
	m->kind = LEASE_GRANT;
	m->cluster = c->config.cluster;
	m->instance = c->config.instance;
	m->sent = now;
	memcpy(m->name, c->name, sizeof(m->name));
	m->grant = (struct lease_grant){.generation = c->generation,
		.base = s->accepted,
		.heard = s->heard,
		.echo = s->echo,
		.left = c->end - s->echo_at,
		.togo = c->end - now,
		.period = c->period,
		.length = c->config.length,
		.interval = c->interval,
		.hold = c->hold,
		.gap = PSHIFT_HOLD + PSHIFT_GAP - c->hold};
	m->n = collect(c, s);
	m->sequence = ++s->sequence;
	s->due = false;
	s->told = c->period;
	s->told_at = now;
	s->until = c->period + c->hold;
	if (s->until > c->reach)
		c->reach = s->until;
	c->grants++;
	c->tokens += m->n;
	c->config.send(c->config.arg, server, m);
	return 0;
}

static bool unanswered(const struct pshift_control *c, const struct pshift_member *s)
{
	for (uint32_t i = s->entries; i != NONE; i = c->entries[i].next)
		if (c->entries[i].in > s->accepted)
			return true;
	return false;
}

/* Renewals go with the first round of the period, and are soon repeated, since they are
 * acknowledged at once; changes, and lost ones, are sent no more often than is of use: accepted
 * ones are acknowledged an interval later at the latest. */
#define RENEW 8 /* a part of a period */

bool pshift_tell_lost(const struct pshift_control *c, const struct pshift_member *s)
{
	return c->end - s->echo_at > 2 * c->config.length;
}

static weir_time due_at(const struct pshift_control *c, const struct pshift_member *s)
{
	weir_time due = WEIR_NEVER;

	if (!c->hold || !s->full || s->new || s->unproven || pshift_tell_lost(c, s))
		return due;
	if (s->told < c->period)
		return c->turned ? due : c->now;
	if (s->due || s->until < c->period + c->hold)
		due = s->told_at + c->interval / 8;
	else if (s->granted < c->period)
		due = s->told_at + c->config.length / RENEW;
	else if (s->sequence > s->accepted && s->sequence > s->settled)
		due = s->told_at + c->interval + c->interval / 2;
	return due;
}

static int tell_one(struct pshift_control *c, size_t server, weir_time now)
{
	struct pshift_member *s = &c->servers[server];

	if (!pshift_tell_live(c, server)) {
		s->full = false;
		c->ask = now;
		return 0;
	}
	if (s->told < c->period || s->until < c->period + c->hold || s->due ||
		s->granted < c->period || unanswered(c, s))
		return tell(c, server, now);
	s->settled = s->sequence;
	return 0;
}

int pshift_tell_servers(struct pshift_control *c, weir_time now)
{
	int r = 0;

	c->tell = WEIR_NEVER;
	for (size_t i = 0; i < c->n_servers; i++) {
		weir_time due = due_at(c, &c->servers[i]);

		if (due <= now) {
			r = tell_one(c, i, now) ? -ENOMEM : r;
			due = r ? now + c->interval : due_at(c, &c->servers[i]);
		}
		c->tell = due < c->tell ? due : c->tell;
	}
	return r;
}
