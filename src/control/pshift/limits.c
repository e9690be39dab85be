/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: decide what servers are told of a bucket's limit: as much of the wanted number as the
 * books allow. The safety argument in pshift.h is about this file.
 *
 * SYMBOLS  of a bucket, in tokens, over the live servers: free, the sum that may be raised:
 *          limit − Σ most; over, the sum that may be lowered: usable Σ least − the part of the
 *          reservation that others do not have; due, the sum that must be lowered, since others may
 *          have fallen back to more: Σ told (most, of those that take no grants) − the part of the
 *          limit that they do not have.
 */
#include "control/pshift/control-impl.h"
#include "base/lesser.h"

#define NONE UINT32_MAX

/* Return the period of the last grant that the server may have taken, from this controller or, if
 * the server restarted unnoticed, from the previous one; 0: never. */
static uint64_t last_told(const struct pshift_control *c, const struct pshift_member *s)
{
	uint64_t last = s->told > s->granted ? s->told : s->granted;

	return !last || last > c->since + PSHIFT_LEAD ? last : c->since + PSHIFT_LEAD;
}

/* Return true if the hold of all that the server was granted has ended, and a majority has taken grants since: a
 * controller that takes over knows of it, too, by its period. */
static bool has_ended(const struct pshift_control *c, size_t server)
{
	uint64_t last = last_told(c, &c->servers[server]);

	/* A live server has its grant renewed, and so keeps its holdings. */
	return (!last || c->ruled > last + PSHIFT_HOLD) && !pshift_tell_live(c, server);
}

int64_t pshift_limits_entitled(const struct pshift_control *c, const struct pshift_entry *e)
{
	const struct pshift_member *s = &c->servers[e->server];

	if (has_ended(c, e->server))
		return e->static_part;
	return s->apart ? greater(e->limit.most, e->static_part) : e->limit.most;
}

int64_t pshift_limits_begins(const struct pshift_control *c, const struct pshift_entry *e)
{
	const struct pshift_member *s = &c->servers[e->server];

	if (has_ended(c, e->server))
		return e->static_part;
	return pshift_may_be_static(c, s) ? greater(e->limit.most, e->static_part) : e->limit.most;
}

int64_t pshift_limits_cap(const struct pshift_control *c, const struct pshift_entry *e)
{
	return has_ended(c, e->server) ? lesser(e->cap.most, e->static_part) : e->cap.most;
}

void pshift_limits_heard(struct pshift_control *c, struct pshift_entry *e, uint64_t period)
{
	int64_t *unknown = c->buckets[e->bucket].unknown;
	/* Subtract only what it surely has: for a period that it has yet to begin, its
	 * entitlement. */
	int64_t cap = period == c->period ? e->cap.most : period < c->period ? e->limit.most : 0;

	unknown[0] -= lesser(unknown[0], cap);
	unknown[1] -= lesser(unknown[1], e->limit.most);
	e->had = e->limit.most;
}

/* Return the last period in which unknown holdings may be kept. */
static uint64_t unknown_until(const struct pshift_share *b)
{
	return b->since + PSHIFT_LEAD + PSHIFT_HOLD;
}

/* Return the tokens that a server gains by falling back to its static part, and that do not count
 * beside the unknown: that was granted by a previous controller, which counted the static part of
 * each server that may fall back while the grant is held. If it falls back later, return all that
 * it does not have now. */
static int64_t besides(const struct pshift_control *c, const struct pshift_entry *e, bool entitled)
{
	const struct pshift_member *s = &c->servers[e->server];
	uint64_t until = unknown_until(&c->buckets[e->bucket]);
	int64_t most = entitled ? pshift_limits_entitled(c, e) : pshift_limits_cap(c, e);

	if (entitled ? !s->apart : !pshift_may_be_static(c, s))
		return 0;
	if (!entitled && s->granted && c->period == c->since) /* `had` belongs to the next period */
		return 0;
	if (pshift_granted(s) + PSHIFT_APART >= until)
		return greater(0, lesser(most, e->static_part) - e->limit.most);
	return greater(0, lesser(most, e->static_part) - e->had);
}

void pshift_limits_holds(struct pshift_control *c, struct pshift_entry *e, int64_t limit)
{
	int64_t *unknown = c->buckets[e->bucket].unknown, more = greater(0, limit - e->had);

	if (c->servers[e->server].granted)
		return;
	unknown[0] -= lesser(unknown[0], more);
	unknown[1] -= lesser(unknown[1], more);
	e->had += more;
}

static int64_t all_besides(const struct pshift_control *c, size_t bucket, bool entitled)
{
	int64_t sum = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++)
		sum += besides(c, &c->entries[c->place[p]], entitled);
	return sum;
}

/* Return true if the unknown use of a restarted server counts. */
static bool is_renewed(const struct pshift_control *c, const struct pshift_share *b, bool entitled)
{
	return c->period + entitled <= b->renewed;
}

bool pshift_limits_over(const struct pshift_control *c, const struct pshift_share *b)
{
	return c->ruled > unknown_until(b);
}

static int64_t parts_of(const struct pshift_share *b)
{
	return b->parts > b->seen ? (int64_t)(b->parts - b->seen) * pshift_static_part(b) : 0;
}

int64_t pshift_limits_unknown(const struct pshift_control *c, size_t bucket, bool entitled)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t parts = parts_of(b), unknown;

	if (!is_renewed(c, b, entitled) && (b->parts <= b->seen || pshift_limits_over(c, b)))
		return parts;
	unknown = lesser(b->unknown[entitled], b->limit) - all_besides(c, bucket, entitled);
	return greater(unknown, parts);
}

void pshift_limits_turn(struct pshift_control *c, size_t bucket)
{
	struct pshift_share *b = &c->buckets[bucket];

	if (pshift_limits_over(c, b))
		b->unknown[1] = lesser(b->unknown[1], parts_of(b));
	b->unknown[0] = b->unknown[1];
}

void pshift_limits_more(struct pshift_share *b, int64_t tokens)
{
	for (int i = 0; i < 2; i++)
		b->unknown[i] = lesser(b->unknown[i], LEASE_TOKENS_MAX - tokens) + tokens;
}

/* Return the free part of a bucket's limit, in this period or (entitled) in each that follows; may
 * be negative. */
static int64_t free_of(const struct pshift_control *c, size_t bucket, bool entitled)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t free = b->limit - (entitled ? b->lost_next : b->lost);

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];

		free -= entitled ? pshift_limits_entitled(c, e) : pshift_limits_cap(c, e);
	}
	return free - pshift_limits_unknown(c, bucket, entitled);
}

/* Return the last period in which the server does not fall back to its static part; 0: not known. */
static uint64_t keeps_until(const struct pshift_member *s)
{
	uint64_t granted = pshift_granted(s);

	return granted ? granted + PSHIFT_APART : 0;
}

/* Return true if a bucket's books exceed its limit with the static part of this server, which did not count so far: all
 * grants are held for a shorter time. */
static bool exceeds(const struct pshift_control *c, const struct pshift_member *s)
{
	if (!s->apart || !keeps_until(s) || keeps_until(s) < c->reach)
		return false;
	for (uint32_t i = s->entries; i != NONE; i = c->entries[i].next) {
		const struct pshift_entry *e = &c->entries[i];

		if (!pshift_has_limit(&c->buckets[e->bucket]) || e->static_part <= e->limit.most)
			continue;
		/* Without an order there are no sums; the round makes one before anything is told. */
		if (c->stale_order || free_of(c, e->bucket, true) < 0)
			return true;
	}
	return false;
}

/* Return true if the server can be expected to take what it is told: it has taken a grant lately, or has only begun to
 * follow. */
static bool takes(const struct pshift_control *c, const struct pshift_member *s)
{
	return s->granted + 1 >= c->period || s->since + 1 >= c->period;
}

static void shorten(struct pshift_control *c, uint64_t until)
{
	if (until < c->period + c->hold)
		c->hold = until > c->period ? until - c->period : 0;
}

void pshift_limits_reach(struct pshift_control *c)
{
	uint64_t reach = c->reach > c->period + 1 ? c->reach : c->period + 1;

	c->hold = PSHIFT_HOLD;
	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_member *s = &c->servers[i];
		bool heard = s->full && c->now - s->at < c->config.length && takes(c, s);
		uint64_t until = keeps_until(s);

		s->apart = until < c->period + PSHIFT_HOLD;
		if (!s->apart || !heard || until < reach)
			continue;
		/* Server is alive: shorten the hold of new grants so that they expire before its
		 * old lease. */
		s->apart = false;
		shorten(c, until);
	}
	/* Server is silent: likewise, until others have given up as much as it gains by falling back. */
	for (size_t i = 0; i < c->n_servers; i++)
		if (exceeds(c, &c->servers[i]))
			shorten(c, keeps_until(&c->servers[i]));
}

/* A bucket's limit, in this period or (entitled) in each that follows, over all servers: the sums
 * that may be raised; that may be lowered; and that must be lowered, since servers that are not
 * live may have fallen back to more. While there are unknown servers, no more is lowered than is
 * raised elsewhere: a part that is given up counts as theirs with the next controller. */
struct room {
	int64_t free, over, due;
	bool unknown;
	int64_t more; /* wanted elsewhere, and not free */
};

/* Return the most that may move between servers at once, even if all is reserved: 1/32, and twice
 * the least difference of pshift_tell_differs, since both the old and the new part count. */
static int64_t on_its_way(const struct pshift_share *b)
{
	return b->limit / 32 + 4;
}

/* Return the reservation and an eighth: a bucket that holds so much at several servers does not use
 * all of it at each, because clients think for a moment, and periods do not end everywhere at the
 * same time. */
static int64_t kept_of(const struct pshift_share *b)
{
	return b->reservation + (b->reservation + 7) / 8;
}

/* Return the part that a server has in any case, even if it accepts all that it was told. */
static int64_t anyway(const struct pshift_control *c, const struct pshift_entry *e, bool entitled)
{
	return entitled && c->servers[e->server].apart ? e->static_part : 0;
}

static struct room room_of(const struct pshift_control *c, size_t bucket, bool entitled)
{
	const struct pshift_share *b = &c->buckets[bucket];
	struct room room = {.free = free_of(c, bucket, entitled), .unknown = b->parts > b->seen};
	int64_t serves = 0, told = 0, most = 0, want = 0, keep = kept_of(b);

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		const struct pshift_line *l = entitled ? &e->limit : &e->cap;

		if (!pshift_tell_live(c, e->server)) {
			keep -= lesser(l->least, e->static_part);
			continue;
		}
		serves += pshift_books_serves(l, e->could[entitled]);
		told += greater(
			takes(c, &c->servers[e->server]) ? greater(l->told, l->least) : l->most,
			anyway(c, e, entitled));
		most += entitled ? pshift_limits_entitled(c, e) : l->most;
		want += lesser(entitled ? e->want_limit : e->want_cap, e->could[entitled]);
		room.more += greater(0, (entitled ? e->want_limit : e->want_cap) - l->told);
	}
	room.more -= greater(0, room.free);
	/* Live servers keep the part that others do not have, unless they want less. */
	keep = lesser(keep, room.free + most - (room.unknown ? 0 : on_its_way(b)));
	room.over = serves - lesser(want, keep);
	room.due = greater(0, told - room.free - most);
	/* While grants from before the takeover are held, no server with one has fallen back to a
	 * static part. */
	if (!entitled && c->period <= c->held)
		room.due = 0;
	return room;
}

static void tell_line(struct pshift_control *c, struct pshift_entry *e, int64_t value,
	struct room *room, bool entitled)
{
	struct pshift_line *l = entitled ? &e->limit : &e->cap;
	int64_t part = anyway(c, e, entitled), told = greater(l->told, part);
	int64_t serves = pshift_books_serves(l, e->could[entitled]);
	int64_t before = entitled ? pshift_limits_entitled(c, e) : l->most;

	pshift_books_tell(l, value, c->servers[e->server].sequence + 1);
	room->free -= (entitled ? pshift_limits_entitled(c, e) : l->most) - before;
	room->over -= serves - pshift_books_serves(l, e->could[entitled]);
	room->due -= takes(c, &c->servers[e->server]) ? greater(0, told - greater(value, part)) : 0;
	room->more -= greater(0, told - value);
	pshift_tell_soon(c, e);
}

/* Tell the allowed number. Return true if that is less than wanted, so that it waits. */
static bool tell_wanted(
	struct pshift_control *c, struct pshift_entry *e, struct room *room, bool entitled)
{
	const struct pshift_line *l = entitled ? &e->limit : &e->cap;
	int64_t own = entitled ? pshift_limits_entitled(c, e) : l->most;
	int64_t want = entitled ? e->want_limit : e->want_cap;
	int64_t due = greater(room->due, 0);
	bool unknown = room->unknown || is_renewed(c, &c->buckets[e->bucket], entitled);
	int64_t may = pshift_books_lower(l, want, e->could[entitled], greater(room->over, 0) + due);

	if (room->unknown)
		may = greater(may, l->told - greater(room->more, 0) - due);
	may = pshift_books_may(l, own, may, room->free);

	/* A static part that counts in place of unknown holdings is not there to be granted. */
	if ((c->period < c->frozen || (unknown && besides(c, e, entitled))) && may > l->told)
		may = l->told;
	if (pshift_tell_differs(may, l->told))
		tell_line(c, e, may, room, entitled);
	return may < want && pshift_tell_differs(may, want);
}

/* Take back what must be given up beyond the unwanted part. */
static void take_back(struct pshift_control *c, size_t bucket, struct room *room, bool entitled)
{
	for (uint32_t p = c->first[bucket]; room->due > 0 && p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t told = entitled ? e->limit.told : e->cap.told;
		int64_t gives = told - anyway(c, e, entitled);

		if (gives > 0 && takes(c, &c->servers[e->server]) && pshift_tell_live(c, e->server))
			tell_line(c, e, told - (gives < room->due ? gives : room->due), room,
				entitled);
	}
}

void pshift_limits_tell(struct pshift_control *c, size_t bucket)
{
	struct pshift_share *b = &c->buckets[bucket];
	struct room now = room_of(c, bucket, false), whole = room_of(c, bucket, true);
	bool waits = false;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];

		if (!pshift_tell_live(c, e->server))
			continue;
		waits |= tell_wanted(c, e, &now, false);
		waits |= tell_wanted(c, e, &whole, true);
	}
	take_back(c, bucket, &now, false);
	take_back(c, bucket, &whole, true);
	c->waiting += (size_t)waits - (size_t)b->waiting;
	b->waiting = waits;
}
