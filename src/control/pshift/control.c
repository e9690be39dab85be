/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pshift/control.h"
#include "base/array.h"
#include "control/pshift/control-impl.h"
#include "base/lesser.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE         UINT32_MAX
#define MOVED_MUCH   0.10 /* see control/pshift/control.h, INTERVAL */
#define MOVED_LITTLE 0.02
#define GATHER       8  /* part of an interval in which reports belong to one round */
#define STEPS        20 /* a period, while it does not grant */

int pshift_control_new(const struct cluster_lead_config *config, struct pshift_control **ret)
{
	struct pshift_control *c;

	if (peer_name_check(config->name) || !config->instance || config->length < 1000 ||
		!config->send || config->shortest < 0 || config->longest > config->length)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c || pshift_new(&c->alg[0]) || pshift_new(&c->alg[1])) {
		pshift_control_free(c);
		return -ENOMEM;
	}
	c->config = *config;
	c->config.instance = pshift_instance(config->instance, config->rank);
	memcpy(c->name, config->name, strlen(config->name));
	c->config.name = c->name;
	if (!c->config.shortest)
		c->config.shortest = config->length / 20;
	/* A stand-in leads because demand moves: short intervals. */
	if (!c->config.longest)
		c->config.longest = config->length / (config->rank ? 10 : 2);
	c->interval = config->length / 5; /* as in the paper, to begin with */
	if (c->interval < c->config.shortest)
		c->interval = c->config.shortest;
	if (c->interval > c->config.longest)
		c->interval = c->config.longest;
	c->began = c->unled = -1;
	pshift_lead_begin(c);
	*ret = c;
	return 0;
}

void pshift_control_free(struct pshift_control *c)
{
	if (!c)
		return;
	pshift_free(c->alg[0]);
	pshift_free(c->alg[1]);
	ids_free(&c->ids);
	ids_free(&c->names);
	ids_free(&c->pairs);
	lease_message_free(&c->out);
	free(c->servers);
	free(c->buckets);
	free(c->entries);
	free(c->first);
	free(c->place);
	free(c->server);
	free(c->demand);
	free(c->rtokens[0]);
	free(c->rtokens[1]);
	free(c->ltokens);
	free(c->reservation);
	free(c->most);
	free(c->capacity);
	free(c->spare);
	free(c);
}

uint64_t pshift_control_instance(const struct pshift_control *c)
{
	return c->config.instance;
}

int64_t pshift_control_server(struct pshift_control *c, const char *name)
{
	struct pshift_member *s;

	if (peer_name_check(name) || ids_find(&c->names, peer_hash(name)) != SIZE_MAX)
		return -EINVAL;
	if (array_grow(&c->servers, &c->room_servers, c->n_servers + 1) ||
		ids_add(&c->names, peer_hash(name), (uint32_t)c->n_servers))
		return -ENOMEM;
	s = &c->servers[c->n_servers];
	*s = (struct pshift_member){.entries = NONE,
		.asked_at = -c->config.length,
		.led_at = -1,
		.age = PSHIFT_TOO_OLD};
	memcpy(s->name, name, strlen(name));
	return (int64_t)c->n_servers++;
}

/* Return the index of the bucket; a new one has no reservation yet. */
static int64_t find_or_add(struct pshift_control *c, const struct cluster_bucket *b)
{
	size_t at = ids_find(&c->ids, b->id);

	if (b->reservation < 0 || b->reservation > LEASE_TOKENS_MAX || b->limit < 0 ||
		(b->limit > LEASE_TOKENS_MAX && b->limit != LEASE_NO_LIMIT) || !b->parts)
		return -EINVAL;
	if (at != SIZE_MAX)
		return (int64_t)at;
	if (array_grow(&c->buckets, &c->room_buckets, c->n_buckets + 1) ||
		ids_add(&c->ids, b->id, (uint32_t)c->n_buckets))
		return -ENOMEM;
	c->buckets[c->n_buckets] = (struct pshift_share){.id = b->id,
		.since = c->period,
		.limit = b->limit,
		.parts = b->parts,
		.unknown = {b->limit, b->limit}};
	c->stale_order = true;
	return (int64_t)c->n_buckets++;
}

static void set_numbers(struct pshift_control *c, size_t at, const struct cluster_bucket *b)
{
	struct pshift_share *s = &c->buckets[at];
	int64_t grows = b->limit == LEASE_NO_LIMIT ? 0 : b->limit - s->limit;

	s->reservation = b->reservation;
	s->limit = b->limit;
	s->parts = b->parts;
	s->staged = false;
	if (grows > 0) {
		/* Another controller may have granted it already. */
		pshift_limits_more(s, grows);
		pshift_hear_limit(c, at);
	}
}

int64_t pshift_control_bucket(struct pshift_control *c, const struct cluster_bucket *b)
{
	int64_t at = find_or_add(c, b);

	if (at < 0)
		return at;
	set_numbers(c, (size_t)at, b);
	c->changed = true;
	return at;
}

int64_t pshift_control_stage(struct pshift_control *c, const struct cluster_bucket *b)
{
	int64_t at = find_or_add(c, b);

	if (at < 0)
		return at;
	c->buckets[at].staged = true;
	c->buckets[at].next = *b;
	return at;
}

void pshift_control_enter(struct pshift_control *c)
{
	for (size_t i = 0; i < c->n_buckets; i++)
		if (c->buckets[i].staged)
			set_numbers(c, i, &c->buckets[i].next);
	c->changed = true;
}

void pshift_control_elect(struct pshift_control *c, uint64_t generation)
{
	c->mandate = generation;
	if (!generation)
		pshift_lead_stop(c);
}

enum peer_verdict pshift_control_receive(
	struct pshift_control *c, weir_time now, const struct lease_message *m)
{
	enum peer_verdict v = pshift_hear(c, now, m);

	/* A controller that has just started need not wait for its next step to ask. */
	if (!c->asking && c->began >= 0 && now - c->began < c->config.length) {
		pshift_lead_step(c, now);
		pshift_lead_ask(c, now);
	}
	return v;
}

/* ---- steps */

/* Open a round: choose the servers to wait for. */
static void open_round(struct pshift_control *c, weir_time now)
{
	c->reporting = 0;
	for (size_t i = 0; i < c->n_servers; i++) {
		struct pshift_member *s = &c->servers[i];

		s->awaited = s->full && now - s->at < c->config.length;
		c->reporting += s->awaited;
	}
}

/* Begin a period: caps are the servers' entitlements. A round is due when the servers, which
 * measure at the same time, have reported; until then they have their entitlements. */
static void turn(struct pshift_control *c)
{
	c->news = c->end;
	c->changed = c->turned = true;
	open_round(c, c->end);
	c->period++;
	c->end += c->config.length;
	pshift_lead_turn(c);
	if (!c->started)
		return;
	pshift_limits_reach(c);
	for (size_t i = 0; i < c->n_buckets; i++) {
		c->buckets[i].lost = c->buckets[i].lost_next;
		c->buckets[i].lost_next = 0;
		pshift_limits_turn(c, i);
	}
	for (size_t i = 0; i < c->n_entries; i++) {
		struct pshift_entry *e = &c->entries[i];

		e->claim = e->reserved;
		e->cap = e->limit;
		if (!pshift_has_limit(&c->buckets[e->bucket]))
			continue;
		e->cap.most = pshift_limits_begins(c, e);
		if (e->cap.told > e->cap.most)
			e->cap.told = e->cap.most;
	}
}

static void adapt(struct pshift_control *c, weir_time span)
{
	double can = 0, part;

	for (size_t i = 0; i < c->n_servers; i++)
		can += (double)c->servers[i].capacity;
	part = can > 0 ? c->moved / (can * (double)span / (double)WEIR_SEC) : 0;
	c->moved = 0;
	if (part > MOVED_MUCH)
		c->interval /= 2;
	else if (part < MOVED_LITTLE)
		c->interval += c->interval / 4;
	if (c->interval < c->config.shortest)
		c->interval = c->config.shortest;
	if (c->interval > c->config.longest)
		c->interval = c->config.longest;
}

/* Return when the open round closes: when all have reported, else an eighth of an interval after
 * the first report; and not sooner than half an interval after the last round. */
static weir_time round_due(const struct pshift_control *c)
{
	weir_time heard = c->reporting ? c->news + c->interval / GATHER : c->news;
	weir_time apart = c->turned ? heard : c->round + c->interval / 2;

	if (!c->changed)
		return WEIR_NEVER;
	return heard > apart ? heard : apart;
}

/* Return when to tell waiting limits: when a server has given up some, for all that did so in an
 * eighth of an interval. */
static weir_time waiting_due(const struct pshift_control *c)
{
	/* Wishes of the last period do not hold for this one; and entries added since the last
	 * round have no place yet, so that no sum over a bucket includes them. */
	bool waits = c->freed && c->waiting && !c->turned && !c->stale_order;

	return waits ? c->told + c->interval / GATHER : WEIR_NEVER;
}

static int close_round(struct pshift_control *c, weir_time now)
{
	/* As of the reports, not of now: service since then counts toward the claims. */
	int r = pshift_round(c, c->news > c->round ? c->news : now);

	adapt(c, now - c->round);
	c->round = c->told = now;
	c->changed = r != 0;
	c->turned = c->freed = false;
	open_round(c, now);
	return r;
}

static void tell_waiting(struct pshift_control *c, weir_time now)
{
	for (size_t i = 0; i < c->n_buckets; i++)
		if (c->buckets[i].waiting)
			pshift_tell_bucket(c, i);
	c->told = now;
	c->freed = false;
}

int pshift_control_step(struct pshift_control *c, weir_time now)
{
	int r = 0;

	if (c->began < 0)
		c->began = now;
	c->now = now = now > c->now ? now : c->now;
	if (!c->started)
		pshift_lead_step(c, now);
	while (c->started && now >= c->end)
		turn(c);
	pshift_lead_ask(c, now);
	if (!c->started)
		return 0;
	if (now >= round_due(c))
		r = close_round(c, now);
	else if (now >= waiting_due(c))
		tell_waiting(c, now);
	return r ? r : pshift_tell_servers(c, now);
}

weir_time pshift_control_due(const struct pshift_control *c)
{
	if (!c->started)
		return c->began < 0 ? c->now : c->now + c->config.length / STEPS;
	return lesser(
		lesser(round_due(c), waiting_due(c)), lesser(lesser(c->end, c->tell), c->ask));
}

/* ---- looking */

void pshift_control_status(const struct pshift_control *c, struct cluster_status *ret)
{
	*ret = (struct cluster_status){.generation = c->generation,
		.period = c->period,
		.highest = c->highest,
		.started = c->started,
		.standby = !c->asking,
		.overdrawn = c->overdrawn,
		.interval = c->interval,
		.servers = c->n_servers,
		.buckets = c->n_buckets,
		.entries = c->n_entries,
		.waiting = c->waiting,
		.asked = c->result.asked,
		.phi = c->result.phi,
		.rounds = c->rounds,
		.grants = c->grants,
		.tokens = c->tokens};
	for (size_t i = 0; i < c->n_servers; i++) {
		ret->led |= c->servers[i].leader && c->servers[i].leader != c->config.instance;
		ret->heard += c->servers[i].full;
		ret->silent += c->now - c->servers[i].at >= c->config.length;
	}
}

int pshift_control_explain(struct pshift_control *c, pshift_name *server_name,
	pshift_name *bucket_name, void *arg, void (*line)(void *arg, const char *words))
{
	struct pshift_cut cut;
	char words[512];
	int r;

	if (!c->rounds || c->stale_order)
		return 0;
	r = pshift_explain(c->alg[1], &c->input, c->rtokens[1], &cut);
	for (size_t g = 0; r == 0 && g < cut.n; g++)
		line(arg, pshift_words(&c->input, &cut, g, server_name, bucket_name, arg, words,
				  sizeof(words)));
	return r;
}
