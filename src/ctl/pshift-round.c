/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-round: tokens placed again, with what has been heard: of the rest of the period, and of a whole
 * one. alg/pshift is the law; here is what goes into it and what its tokens become.
 *
 * SYMBOLS  of bucket i at server j, with t left of the period when j reported:
 *          demand = queue + arriving·t, of a closed loop at least capacity_j·t;
 *          to place = reservation_i − Σ used (and no less than 0), limit_i − Σ used − what others than the
 *          live may hold − the floors;
 *          claim = used + R-tokens, cap = used + R-tokens + L-tokens + floor + a part of what is left over.
 *          Of a whole period the same with used = 0.
 */
#include "ctl/pshift-control-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- arrays */

static int renew(void **array, size_t n, size_t one)
{
	void *p = realloc(*array, (n ? n : 1) * one);

	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}

static int make_room(struct pshift_control *c)
{
	size_t n = c->n_entries, b = c->n_buckets, s = c->n_servers;
	int r = 0;

	if (n > c->room_places) {
		n += n / 4;
		r = renew((void **)&c->place, n, sizeof(*c->place)) ||
		    renew((void **)&c->server, n, sizeof(*c->server)) ||
		    renew((void **)&c->demand, n, sizeof(*c->demand)) ||
		    renew((void **)&c->rtokens[0], n, sizeof(**c->rtokens)) ||
		    renew((void **)&c->rtokens[1], n, sizeof(**c->rtokens)) ||
		    renew((void **)&c->ltokens, n, sizeof(*c->ltokens));
		c->room_places = r ? 0 : n;
	}
	if (!r && b + 1 > c->room_shares) {
		r = renew((void **)&c->first, b + 2, sizeof(*c->first)) ||
		    renew((void **)&c->reservation, b + 1, sizeof(*c->reservation)) ||
		    renew((void **)&c->most, b + 1, sizeof(*c->most));
		c->room_shares = r ? 0 : b + 1;
	}
	if (!r && s + 1 > c->room_members) {
		r = renew((void **)&c->capacity, s + 1, sizeof(*c->capacity));
		c->room_members = r ? 0 : s + 1;
	}
	return r ? -ENOMEM : 0;
}

/* Places in the order of buckets. */
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

/* Each server's figures count as of its last report, if that is of this round: what was said need not be
 * guessed, and what was served since counts toward the claim. */
static weir_time as_of(const struct pshift_control *c, uint32_t server, weir_time round)
{
	return most(round, c->servers[server].at);
}

static int64_t floor_of(const struct pshift_share *b, size_t live)
{
	int64_t n = (int64_t)live, all = least(b->limit / 16, most(b->limit - b->reservation, n));

	if (!n || b->limit < n)
		return 0;
	return most(all / n, 1);
}

/* Of a bucket's limit: what is not the live servers' to have. */
static int64_t elsewhere(const struct pshift_control *c, size_t bucket, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t held = whole ? 0 : b->lost;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];

		if (!pshift_tell_live(c, e->server))
			held += whole ? pshift_tell_entitled(c, e, c->period + 1) : e->cap.most;
	}
	if (b->parts > b->seen)
		held += (int64_t)(b->parts - b->seen) * pshift_static_part(b);
	return held;
}

static size_t live_at(const struct pshift_control *c, size_t bucket)
{
	size_t n = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++)
		n += pshift_tell_live(c, c->server[p]);
	return n;
}

static void bucket_in(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t used = 0;

	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		const struct pshift_entry *e = &c->entries[c->place[p]];
		weir_time at = as_of(c, e->server, now);
		weir_time left = whole ? c->config.length : c->end - at;
		int64_t d = e->queue + pshift_over((double)e->arriving, left);

		if (e->closed)
			d = most(d, c->capacity[e->server]);
		c->demand[p] = least(d, LEASE_TOKENS_MAX);
		used += whole ? 0 : pshift_used(c, e, at);
	}
	c->reservation[bucket] = most(0, b->reservation - used);
	c->most[bucket] = LEASE_NO_LIMIT;
	if (pshift_has_limit(b)) {
		size_t live = live_at(c, bucket);
		int64_t floors = floor_of(b, live) * (int64_t)live;

		c->most[bucket] = most(0, b->limit - used - floors - elsewhere(c, bucket, whole));
	}
}

/* Between two periods nobody with a limit is served, for the drift of clocks and a round trip: a server
 * may then be idle, and what is placed must not count on all of its time. */
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

static void bucket_out(struct pshift_control *c, size_t bucket, weir_time now, bool whole)
{
	const struct pshift_share *b = &c->buckets[bucket];
	int64_t floor = 0, spread = 0, placed = 0;
	size_t live = 0;

	if (pshift_has_limit(b)) {
		live = live_at(c, bucket);
		floor = floor_of(b, live);
		for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++)
			placed += c->rtokens[whole][p] + c->ltokens[p];
		spread = live ? most(0, c->most[bucket] - placed) / 2 / (int64_t)live : 0;
	}
	for (uint32_t p = c->first[bucket]; p < c->first[bucket + 1]; p++) {
		struct pshift_entry *e = &c->entries[c->place[p]];
		int64_t used = whole ? 0 : pshift_used(c, e, as_of(c, e->server, now));
		int64_t claim = least(used + c->rtokens[whole][p], LEASE_TOKENS_MAX);
		int64_t cap = least(claim + c->ltokens[p] + floor + spread, LEASE_TOKENS_MAX);

		if (whole) {
			e->want_reserved = claim;
			e->want_limit = cap;
		} else {
			e->want_claim = claim;
			e->want_cap = cap;
		}
	}
}

static int place(struct pshift_control *c, weir_time now, bool whole, bool warm)
{
	struct pshift_options options = {.parallel = c->config.parallel, .warm = warm};
	struct pshift_result result;
	int r;

	input(c, now, whole);
	r = pshift_allocate(
		c->alg[whole], &c->input, &options, c->rtokens[whole], c->ltokens, &result);
	if (r)
		return r;
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

		for (uint32_t p = c->first[i]; p < c->first[i + 1]; p++)
			parts += c->entries[c->place[p]].static_part;
		c->overdrawn |= pshift_has_limit(&c->buckets[i]) && parts > c->buckets[i].limit;
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
	if (r == 0)
		r = place(c, now, false, warm);
	if (r == 0)
		r = place(c, now, true, warm);
	if (r)
		return r;
	c->rounds++;
	for (size_t i = 0; i < c->n_buckets; i++)
		pshift_tell_bucket(c, i);
	return 0;
}
