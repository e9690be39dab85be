/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * round: place tokens again, by the latest reports: those of the rest of the period, and those of a
 * whole one. control/pshift/alloc.h has the law; this file makes its input and uses its result.
 *
 * SYMBOLS  of bucket i at server j, with t left of the period when j reported:
 *          demand = queue + arriving·t, as far as that is needed, of a closed loop at least
 *          capacity_j·t;
 *          to place = reservation_i − Σ used (and no less than 0), limit_i − Σ used − the part that
 *          servers which are not live may hold − the floors;
 *          claim = used + R-tokens, cap = used + R-tokens + L-tokens + floor + a part of the rest.
 *          For a whole period the same with used = 0.
 * KEPT     Demands are estimates; tokens that followed each of them would always be moving: a
 *          bucket keeps the tokens that its servers hold, if as much of its demand can be served
 *          with them, at servers that can serve it. See `enough`.
 */
#include "control/pshift/control-impl.h"
#include "base/array.h"
#include "base/lesser.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays */

static int make_room(struct pshift_control *c)
{
	size_t n = c->n_entries, b = c->n_buckets, s = c->n_servers;
	int r = 0;

	if (n > c->room_places) {
		n += n / 4;
		r = array_resize(&c->place, n) || array_resize(&c->server, n) ||
		    array_resize(&c->demand, n) || array_resize(&c->rtokens[0], n) ||
		    array_resize(&c->rtokens[1], n) || array_resize(&c->ltokens, n);
		c->room_places = r ? 0 : n;
	}
	if (!r && b + 1 > c->room_shares) {
		r = array_resize(&c->first, b + 2) || array_resize(&c->reservation, b + 1) ||
		    array_resize(&c->most, b + 1);
		c->room_shares = r ? 0 : b + 1;
	}
	if (!r && s + 1 > c->room_members) {
		r = array_resize(&c->capacity, s + 1) || array_resize(&c->spare, s + 1);
		c->room_members = r ? 0 : s + 1;
	}
	return r || !c->first || !c->place ? -ENOMEM : 0;
}

/* Sort entries by bucket. */
static int order(struct pshift_control *c)
{
	uint32_t at = 0;

	if (make_room(c))
		return -ENOMEM;
	for (size_t i = 0; i < c->n_buckets; i++) {
		c->first[i] = at;
		at += c->buckets[i].seen;
	}
	c->first[c->n_buckets] = at;
	for (size_t i = 0; i < c->n_entries; i++)
		c->place[c->first[c->entries[i].bucket]++] = (uint32_t)i;
	for (size_t i = c->n_buckets; i > 0; i--)
		c->first[i] = c->first[i - 1];
	c->first[0] = 0;
	for (size_t p = 0; p < c->n_entries; p++)
		c->server[p] = c->entries[c->place[p]].server;
	c->ordered = c->n_entries;
	c->stale_order = false;
	return 0;
}

/* ---- what goes in */

/* Return the time of a server's figures: its last report, if that belongs to this round: a report
 * need not be extrapolated, and service since then counts toward the claim. */
static weir_time as_of(const struct pshift_control *c, uint32_t server, weir_time round)
{
	return greater(round, c->servers[server].at);
}

/* Return the part of a bucket's limit that is kept at each of its live servers, for requests at
 * servers without demand so far: in all a sixteenth of the limit, and a token at each if that is an
 * eighth at most; nothing that is reserved. With less there is none, and such requests wait for a
 * round. */
static int64_t floor_of(const struct pshift_share *b, size_t live)
{
	int64_t n = (int64_t)live, free = greater(0, b->limit - b->reservation);

	if (!n)
		return 0;
	return greater(lesser(b->limit / 16, free) / n, n <= lesser(b->limit / 8, free));
}

/* Return the part of a bucket's limit that live servers may not have. */
static int64_t elsewhere(const struct pshift_control *c, size_t bucket, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t held = whole ? 0 : b->lost;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];

		if (!pshift_tell_live(c, e->server))
			held += whole ? pshift_limits_entitled(c, e) : pshift_limits_cap(c, e);
	}
	return held + pshift_limits_unknown(c, bucket, whole);
}

static size_t live_at(const struct pshift_control *c, size_t bucket)
{
	size_t n = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++)
		n += pshift_tell_live(c, c->server[p]);
	return n;
}

/* Queued requests exist; future ones may arrive elsewhere, and then their tokens are lost. So count
 * no more of these than are needed to place the open part, and this part more, which can be
 * shifted. */
#define ROOM 4

static double counted(
	const struct pshift_control *c, size_t bucket, weir_time now, bool whole, int64_t open)
{
	double queue = 0, coming = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		weir_time left = whole ? c->config.length : c->end - as_of(c, e->server, now);

		queue += (double)e->queue;
		coming += (double)pshift_over((double)e->arriving, left);
	}
	queue = (double)open + (double)open / ROOM - queue;
	return queue <= 0 ? 0 : queue < coming ? queue / coming : 1;
}

static void bucket_in(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t used = 0;
	double part;

	for (uint32_t p = c->first[bucket]; !whole && p < c->first[bucket + 1]; p++)
		used += pshift_used(c, &c->entries[c->place[p]], as_of(c, c->server[p], now));
	c->reservation[bucket] = greater(0, b->reservation - used);
	c->most[bucket] = LEASE_NO_LIMIT;
	if (pshift_has_limit(b)) {
		size_t live = live_at(c, bucket);
		int64_t floors = floor_of(b, live) * (int64_t)live;

		c->most[bucket] =
			greater(0, b->limit - used - floors - elsewhere(c, bucket, whole));
	}
	part = counted(c, bucket, now, whole,
		greater(0, (pshift_has_limit(b) ? b->limit : b->reservation) - used));
	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		weir_time left = whole ? c->config.length : c->end - as_of(c, e->server, now);
		int64_t d = e->queue + pshift_over(part * (double)e->arriving, left);

		if (e->closed)
			d = greater(d, c->capacity[e->server]);
		c->demand[p] = lesser(d, LEASE_TOKENS_MAX);
	}
}

/* Between two periods no bucket with a limit is served, for the drift of clocks and a round trip: a
 * server may then be idle, and the placement must not count on all of its time. */
#define PAUSE 128 /* as a part: 40 ms of 5 s */

static void input(struct pshift_control *c, weir_time now, bool whole)
{
	bool limits = false;

	for (size_t i = 0; !limits && i < c->n_buckets; i++)
		limits = pshift_has_limit(&c->buckets[i]);
	for (size_t j = 0; j < c->n_servers; j++) {
		const struct pshift_member *s = &c->servers[j];
		bool silent = now - s->at >= c->config.length;
		weir_time left = whole ? c->config.length : c->end - as_of(c, (uint32_t)j, now);

		c->capacity[j] = silent ? 0
					: pshift_over((double)s->capacity,
						  limits ? left - left / PAUSE : left);
	}
	for (size_t i = 0; i < c->n_buckets; i++)
		bucket_in(c, i, now, whole);
	c->input = (struct pshift_input){.servers = c->n_servers,
		.buckets = c->n_buckets,
		.capacity = c->capacity,
		.reservation = c->reservation,
		.limit = c->most,
		.first = c->first,
		.server = c->server,
		.demand = c->demand};
}

/* ---- what comes out */

/* The open part of a bucket's tokens at a server, present and new. */
struct held {
	int64_t r, cap; /* as told */
	int64_t new_r, new_cap;
};

static struct held held(const struct pshift_control *c, const struct pshift_entry *e, int64_t used,
	uint32_t p, bool whole, int64_t more)
{
	int64_t claim = whole ? e->reserved : e->claim, cap = whole ? e->limit.told : e->cap.told;
	int64_t r = c->rtokens[whole][p];
	struct held h = {
		greater(0, claim - used), greater(0, cap - used), r, r + c->ltokens[p] + more};

	if (!pshift_has_limit(&c->buckets[e->bucket]))
		h.cap = h.new_cap = LEASE_TOKENS_MAX;
	h.r = lesser(h.r, h.cap);
	return h;
}

/* Return true if the tokens that its servers hold serve as much as the new placement. R-tokens, to
 * 1/512: of the demand at each server, within the server's capacity beyond the claims placed there;
 * and no more of them in all, to 1/64, since other buckets would wait for it. Caps, to 1/64 of the
 * limit, and no server with less than half of its new part. `more` is the floor and the spread
 * part. */
static bool enough(
	const struct pshift_control *c, size_t bucket, weir_time now, bool whole, int64_t more)
{
	int64_t r = 0, all = 0, new_r = 0, cap = 0, new_cap = 0;
	int64_t little = 1 + c->buckets[bucket].limit / 64;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = whole ? 0 : pshift_used(c, e, as_of(c, e->server, now)),
			demand = c->demand[p];
		struct held h = held(c, e, used, p, whole, more);
		int64_t use = lesser(h.r, demand);

		if (!pshift_tell_live(c, e->server) || use - h.new_r > c->spare[e->server] ||
			h.new_cap - h.cap > greater(h.new_cap / 2, little))
			return false;
		r += use;
		all += h.r;
		new_r += h.new_r;
		cap += lesser(h.cap, demand);
		new_cap += lesser(h.new_cap, demand);
	}
	return r + 1 + new_r / 512 >= new_r && all <= new_r + 1 + new_r / 64 &&
	       cap + little >= new_cap;
}

/* The bucket keeps its tokens: reduce the spare capacity if these are more than the new ones. */
static void keep(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = whole ? 0 : pshift_used(c, e, as_of(c, e->server, now));
		struct held h = held(c, e, used, p, whole, 0);

		c->spare[e->server] -= greater(0, lesser(h.r, c->demand[p]) - h.new_r);
		if (whole) {
			e->want_reserved = e->reserved;
			e->want_limit = e->limit.told;
		} else {
			e->want_claim = e->claim;
			e->want_cap = e->cap.told;
		}
	}
}

static void take_bucket(
	struct pshift_control *c, size_t bucket, weir_time now, bool whole, int64_t more)
{
	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = whole ? 0 : pshift_used(c, e, as_of(c, e->server, now));
		int64_t claim = lesser(used + c->rtokens[whole][p], LEASE_TOKENS_MAX);
		int64_t cap = lesser(claim + c->ltokens[p] + more, LEASE_TOKENS_MAX);

		if (whole) {
			e->want_reserved = claim;
			e->want_limit = cap;
		} else {
			e->want_claim = claim;
			e->want_cap = cap;
		}
	}
}

/* Return the tokens at each server beyond the placed ones: the floor, and a part of the rest, of
 * which half is kept back; without a floor a token, if there is one for each. */
static int64_t beyond(const struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t live = (int64_t)live_at(c, bucket), over;
	int64_t left = b->limit - elsewhere(c, bucket, whole), placed = 0, floor;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];

		placed += c->rtokens[whole][p] + c->ltokens[p];
		left -= whole ? 0 : pshift_used(c, e, as_of(c, e->server, now));
	}
	if (!live)
		return 0;
	over = greater(0, c->most[bucket] - placed);
	floor = lesser(floor_of(b, (size_t)live), greater(0, left - placed) / live);
	return floor + greater(over / 2 / live, !floor && over >= live);
}

static void look_for_use(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = whole ? 0 : pshift_used(c, e, as_of(c, e->server, now));

		e->could[whole] = used + c->demand[p];
	}
}

static void bucket_out(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	int64_t more = 0;

	look_for_use(c, bucket, now, whole);
	if (pshift_has_limit(&c->buckets[bucket]))
		more = beyond(c, bucket, now, whole);
	if (enough(c, bucket, now, whole, more))
		keep(c, bucket, now, whole);
	else
		take_bucket(c, bucket, now, whole, more);
}

/* Compute the servers' capacity beyond the R-tokens placed there. */
static void look_for_spare(struct pshift_control *c, bool whole)
{
	for (size_t j = 0; j < c->n_servers; j++)
		c->spare[j] = c->capacity[j];
	for (size_t p = 0; p < c->n_entries; p++)
		c->spare[c->server[p]] -= c->rtokens[whole][p];
}

/* Treat servers as unlimited: then nothing is shifted. */
static void split_only(struct pshift_control *c)
{
	for (size_t j = 0; j < c->n_servers; j++)
		c->spare[j] = PSHIFT_MOST;
	c->input.capacity = c->spare;
}

/* Move each bucket's tokens to other servers of its own, by a rotation drawn from its number. */
static void place_at_random(struct pshift_control *c, int64_t *rtokens)
{
	for (size_t i = 0; i < c->n_buckets; i++) {
		int64_t *r = rtokens + c->first[i], first;
		size_t n = c->first[i + 1] - c->first[i];
		uint64_t turn = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

		for (size_t k = 0; n > 1 && k < 1 + turn % (n - 1); k++) {
			first = r[0];
			memmove(r, r + 1, (n - 1) * sizeof(*r));
			r[n - 1] = first;
		}
	}
}

static int place(struct pshift_control *c, weir_time now, bool whole, bool warm)
{
	struct pshift_options options = {.warm = warm};
	struct pshift_result result;
	int r;

	input(c, now, whole);
	if (c->config.placing != CLUSTER_SHIFT)
		split_only(c);
	r = pshift_allocate(
		c->alg[whole], &c->input, &options, c->rtokens[whole], c->ltokens, &result);
	if (r)
		return r;
	if (c->config.placing == CLUSTER_RANDOM)
		place_at_random(c, c->rtokens[whole]);
	look_for_spare(c, whole);
	for (size_t i = 0; i < c->n_buckets; i++)
		bucket_out(c, i, now, whole);
	if (whole)
		c->result = result;
	return 0;
}

static void look_for_overdraft(struct pshift_control *c)
{
	c->overdrawn = false;
	for (size_t i = 0; i < c->n_buckets; i++) {
		int64_t parts = 0;

		if (!pshift_has_limit(&c->buckets[i]))
			continue;
		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			parts += c->entries[c->place[p]].static_part;
		c->overdrawn |= parts > c->buckets[i].limit;
	}
}

/* Mark buckets with a part at a silent server: tokens are missing, and demand has not moved. */
static void look_for_ended(struct pshift_control *c, weir_time now)
{
	for (size_t i = 0; i < c->n_buckets; i++)
		if (c->buckets[i].parts > c->buckets[i].seen)
			pshift_note_end(&c->buckets[i], c->period);
	for (size_t i = 0; i < c->n_entries; i++) {
		const struct pshift_entry *e = &c->entries[i];
		bool silent = now - c->servers[e->server].at >= c->config.length / 2;

		if (silent || !pshift_tell_live(c, e->server))
			pshift_note_end(&c->buckets[e->bucket], c->period);
	}
}

int pshift_round(struct pshift_control *c, weir_time now)
{
	bool warm = c->rounds && !c->stale_order;
	int r = 0;

	if (c->stale_order || !c->first) {
		r = order(c);
		if (r == 0)
			look_for_overdraft(c);
	}
	pshift_limits_reach(c);
	if (r == 0)
		r = place(c, now, false, warm);
	if (r == 0)
		r = place(c, now, true, warm);
	if (r)
		return r;
	c->rounds++;
	look_for_ended(c, now);
	for (size_t i = 0; i < c->n_buckets; i++)
		pshift_tell_bucket(c, i);
	for (size_t i = 0; i < c->n_servers; i++)
		c->servers[i].new = false;
	return 0;
}
