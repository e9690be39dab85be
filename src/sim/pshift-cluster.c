/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/pshift-cluster.h"
#include "ctl/pshift-ids.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER      1
#define MOST_PERIODS 100000 /* a change each, of each bucket, is remembered */

/* ---- places */

static int site_grow(struct pshift_site *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	void *places, *listed, *turn, *loads;

	if (s->n < s->room)
		return 0;
	places = realloc(s->places, room * sizeof(*s->places));
	s->places = places ? places : s->places;
	listed = realloc(s->listed, room * sizeof(*s->listed));
	s->listed = listed ? listed : s->listed;
	turn = realloc(s->turn, room * sizeof(*s->turn));
	s->turn = turn ? turn : s->turn;
	loads = realloc(s->loads, room * sizeof(*s->loads));
	s->loads = loads ? loads : s->loads;
	if (!places || !listed || !turn || !loads)
		return -ENOMEM;
	s->room = room;
	return 0;
}

/* Servers that a bucket may come to. */
static uint32_t parts_of(const struct pshift_cluster *c, uint32_t bucket)
{
	return c->config.nested && bucket < c->config.servers ? bucket + 1 : c->config.servers;
}

/* Static parts: equal ones. */
static int64_t part_of(const struct pshift_cluster *c, uint32_t bucket, int64_t whole)
{
	return whole == LEASE_NO_LIMIT ? whole : whole / parts_of(c, bucket);
}

struct pshift_place *pshift_cluster_place(
	struct pshift_cluster *c, uint32_t bucket, uint32_t server)
{
	struct pshift_site *s = &c->sites[server];
	uint64_t key = (uint64_t)bucket << 32 | server;
	size_t at = pshift_ids_find(c->pairs, key);
	struct pshift_server_bucket b = {.id = bucket + 1,
		.reserved = part_of(c, bucket, c->buckets[bucket].reservation),
		.limit = part_of(c, bucket, c->buckets[bucket].limit)};

	if (at != SIZE_MAX)
		return &s->places[at];
	if (site_grow(s) || pshift_ids_add(c->pairs, key, (uint32_t)s->n) ||
		pshift_server_add(s->server, &b, 0) != (int64_t)s->n)
		return NULL;
	s->places[s->n] = (struct pshift_place){.bucket = bucket, .index = (uint32_t)s->n};
	return &s->places[s->n++];
}

/* ---- messages */

static void carry(struct pshift_cluster *c, uint32_t server, bool up, const struct lease_message *m)
{
	weir_time at = c->now + c->config.delay;
	struct pshift_parcel *p;
	size_t i;

	c->messages[!up]++;
	c->entries[!up] += m->n;
	if (c->n_free) {
		i = c->free_parcels[--c->n_free];
	} else {
		if (c->n_parcels == c->room_parcels) {
			size_t room = c->room_parcels ? 2 * c->room_parcels : 256;
			void *a = realloc(c->parcels, room * sizeof(*c->parcels));
			void *b = a ? realloc(c->free_parcels, room * sizeof(uint32_t)) : NULL;

			c->parcels = a ? a : c->parcels;
			c->free_parcels = b ? b : c->free_parcels;
			if (!a || !b) {
				c->failed = -ENOMEM;
				return;
			}
			c->room_parcels = room;
		}
		i = c->n_parcels++;
	}
	p = &c->parcels[i];
	*p = (struct pshift_parcel){.bytes = malloc(LEASE_FRAME(m->n)), .server = server, .up = up};
	if (!p->bytes) {
		c->failed = -ENOMEM;
		return;
	}
	p->n = lease_write(p->bytes, m);
	c->bytes[!up] += p->n + PEER_SEAL;
	if (rng_double(&c->rng) < c->config.loss)
		at = WEIR_NEVER;
	if (heap_push(&c->under_way, (struct heap_item){.key = at, .serial = i, .value = i}))
		c->failed = -ENOMEM;
}

static void server_sends(void *arg, const struct lease_message *m)
{
	struct pshift_site *s = arg;

	if (s->cluster->config.control)
		carry(s->cluster, s->number, true, m);
}

static void control_sends(void *arg, size_t server, const struct lease_message *m)
{
	carry(arg, (uint32_t)server, false, m);
}

static void granted(void *arg, size_t index, int64_t r, int64_t l)
{
	struct pshift_place *p = &((struct pshift_site *)arg)->places[index];

	p->r += r;
	p->l += l;
}

static int look(struct pshift_site *s)
{
	const struct pshift_cluster *c = s->cluster;
	double capacity = c->config.capacity * c->config.guess;

	for (size_t i = 0; i < s->n; i++) {
		const struct pshift_place *p = &s->places[i];

		s->loads[i] = (struct pshift_server_load){.arrived = p->arrived,
			.served = p->served,
			.queued = p->queued,
			.waited = p->waited};
	}
	if (c->config.learn) {
		capacity_step(&s->capacity, c->now + 1, &s->totals);
		if (capacity_known(&s->capacity))
			capacity = s->capacity.rate[0];
	}
	return pshift_server_look(s->server, c->now + s->offset, s->loads, capacity);
}

static int deliver(struct pshift_cluster *c)
{
	int r = 0;

	while (r == 0 && c->under_way.n && heap_min(&c->under_way)->key <= c->now) {
		uint32_t i = (uint32_t)heap_pop(&c->under_way).value;
		struct pshift_parcel *p = &c->parcels[i];
		struct pshift_site *s = &c->sites[p->server];
		bool up = p->up;

		if (lease_read(p->bytes, p->n, &c->in) != PEER_TAKEN)
			r = -EPROTO;
		free(p->bytes);
		p->bytes = NULL;
		c->free_parcels[c->n_free++] = i;
		if (r == 0 && up && c->control) {
			pshift_control_receive(c->control, c->now, &c->in);
		} else if (r == 0 && !up) {
			r = look(s);
			if (pshift_server_receive(s->server, c->now + s->offset, &c->in) ==
				PEER_TAKEN)
				r = r ? r : look(s);
		}
	}
	return r;
}

/* ---- a server's slot */

/* How many of an open loop come in a slot, in which `mean` do on average. */
static uint64_t come_in(struct pshift_site *s, struct pshift_place *p, double mean)
{
	uint64_t n;

	if (s->cluster->config.poisson) {
		p->part -= mean; /* what is left until the next one, in means */
		for (n = 0; p->part < 0; n++)
			p->part += rng_exp(&s->rng, 1);
		return n;
	}
	p->part += mean;
	n = (uint64_t)p->part;
	p->part -= (double)n;
	return n;
}

static void arrivals(struct pshift_site *s, weir_time slot)
{
	double seconds = (double)slot / (double)WEIR_SEC;
	size_t n = 0;

	for (size_t k = 0; k < s->n_listed; k++) {
		struct pshift_place *p = &s->places[s->listed[k]];

		if (p->loop) {
			p->arrived += p->loop - (p->queued < p->loop ? p->queued : p->loop);
			p->queued = p->loop;
			p->open += slot;
		} else if (p->rate > 0) {
			uint64_t come = come_in(s, p, p->rate * seconds);

			p->arrived += come;
			p->queued += come;
		}
		p->waited += (double)p->queued * (double)slot;
		p->listed = p->queued || p->rate > 0 || p->loop;
		if (p->listed)
			s->listed[n++] = s->listed[k];
	}
	s->n_listed = n;
}

static bool may_have(const struct pshift_cluster *c, const struct pshift_place *p, bool first)
{
	if (!p->queued && !p->loop)
		return false;
	if (!c->config.control)
		return !first;
	if (first)
		return p->r > 0;
	return c->buckets[p->bucket].limit == LEASE_NO_LIMIT || p->r + p->l > 0;
}

static void serve_one(struct pshift_cluster *c, struct pshift_place *p)
{
	p->served++;
	c->served++;
	if (p->loop) /* the next one comes at once */
		p->arrived++;
	else
		p->queued--;
	if (p->r > 0)
		p->r--;
	else if (c->buckets[p->bucket].limit != LEASE_NO_LIMIT)
		p->l--;
}

/* Algorithm 1: round robin from where the last one ended. */
static void serve(struct pshift_site *s, bool first)
{
	struct pshift_cluster *c = s->cluster;
	size_t n = 0, from = 0;

	for (size_t k = 0; k < s->n_listed; k++) {
		if (!may_have(c, &s->places[s->listed[k]], first))
			continue;
		if (s->listed[k] < s->next)
			from = n + 1;
		s->turn[n++] = s->listed[k];
	}
	for (size_t k = n ? from % n : 0; n && s->credit >= 1; k++) {
		struct pshift_place *p;

		if (k >= n)
			k = 0;
		p = &s->places[s->turn[k]];
		serve_one(c, p);
		s->credit--;
		s->next = s->turn[k] + 1;
		if (!may_have(c, p, first)) {
			memmove(&s->turn[k], &s->turn[k + 1], (n - k - 1) * sizeof(*s->turn));
			n--;
			k--;
		}
	}
}

static int run_site(struct pshift_site *s, weir_time slot)
{
	struct pshift_cluster *c = s->cluster;
	const struct pshift_cluster_config *g = &c->config;
	uint64_t before = c->served;
	double noise = 1 + g->noise * (2 * rng_double(&s->rng) - 1);
	int r = 0;

	arrivals(s, slot);
	if (g->control && pshift_server_due(s->server) <= c->now + s->offset)
		r = look(s);
	s->credit += g->capacity * noise * (double)slot / (double)WEIR_SEC;
	serve(s, true);
	serve(s, false);
	s->totals.requests += c->served - before;
	if (s->credit < 1)
		s->totals.full += slot;
	else
		s->credit = 1; /* idle time is not saved up */
	return r;
}

/* ---- a run */

static int start_control(struct pshift_cluster *c)
{
	struct pshift_control_config config = {.name = "control",
		.cluster = CLUSTER,
		.instance = ++c->instances,
		.length = c->config.period,
		.shortest = c->config.interval,
		.longest = c->config.interval,
		.send = control_sends,
		.arg = c};
	int64_t r = pshift_control_new(&config, &c->control);

	for (uint32_t j = 0; r >= 0 && j < c->config.servers; j++) {
		char name[32];

		snprintf(name, sizeof(name), "s%u", j + 1);
		r = pshift_control_server(c->control, name);
	}
	for (uint32_t i = 0; r >= 0 && i < c->config.buckets; i++) {
		struct pshift_control_bucket b = {.id = i + 1,
			.reservation = c->buckets[i].reservation,
			.limit = c->buckets[i].limit,
			.parts = parts_of(c, i)};

		r = pshift_control_bucket(c->control, &b);
	}
	return r < 0 ? (int)r : 0;
}

static int step_control(struct pshift_cluster *c)
{
	const struct pshift_cluster_config *g = &c->config;
	bool gone = g->back > g->kill && c->now >= g->kill && c->now < g->back;
	int r;

	if (gone || !g->control) {
		pshift_control_free(c->control);
		c->control = NULL;
		return 0;
	}
	if (!c->control) {
		r = start_control(c);
		if (r)
			return r;
	}
	return pshift_control_step(c->control, c->now);
}

/* Who has a limit has its part at each server from the start. */
static int place_limited(struct pshift_cluster *c)
{
	for (uint32_t i = 0; c->config.limit > 0 && i < c->config.buckets; i++)
		for (uint32_t j = 0; j < parts_of(c, i); j++)
			if (!pshift_cluster_place(c, i, j))
				return -ENOMEM;
	return 0;
}

static int site_new(struct pshift_cluster *c, uint32_t j, uint64_t seed)
{
	struct pshift_site *s = &c->sites[j];
	char name[32];
	struct pshift_server_config config = {.name = name,
		.cluster = CLUSTER,
		.instance = ++c->instances,
		.length = c->config.period,
		.fresh = true,
		.grant = granted,
		.send = server_sends,
		.arg = s};

	snprintf(name, sizeof(name), "s%u", j + 1);
	s->cluster = c;
	s->number = j;
	rng_init(&s->rng, seed, name);
	s->offset = (weir_time)rng_below(&s->rng, (uint64_t)(1000 * WEIR_SEC));
	capacity_init(&s->capacity, NULL);
	return pshift_server_new(&config, &s->server);
}

void pshift_cluster_free(struct pshift_cluster *c)
{
	pshift_judge_end(c);
	pshift_load_end(c);
	for (uint32_t j = 0; c->sites && j < c->config.servers; j++) {
		struct pshift_site *s = &c->sites[j];

		pshift_server_free(s->server);
		free(s->places);
		free(s->listed);
		free(s->turn);
		free(s->loads);
	}
	for (size_t i = 0; i < c->n_parcels; i++)
		free(c->parcels[i].bytes);
	pshift_control_free(c->control);
	heap_free(&c->under_way);
	lease_message_free(&c->in);
	if (c->pairs)
		pshift_ids_free(c->pairs);
	free(c->pairs);
	free(c->parcels);
	free(c->free_parcels);
	free(c->sites);
	free(c->buckets);
	metrics_free(c->metrics);
	free(c);
}

int pshift_cluster_new(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, struct pshift_cluster **ret)
{
	struct pshift_cluster *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	if (r)
		return r;
	c->config = *config;
	c->duration = duration;
	rng_init(&c->rng, seed, "pshift-cluster");
	heap_init(&c->under_way, NULL);
	heap_init(&c->moves, NULL);
	c->sites = calloc(config->servers, sizeof(*c->sites));
	c->buckets = calloc(config->buckets, sizeof(*c->buckets));
	c->pairs = calloc(1, sizeof(*c->pairs));
	r = !c->sites || !c->buckets || !c->pairs ? -ENOMEM : metrics_new(&c->metrics);
	for (uint32_t j = 0; r == 0 && j < config->servers; j++)
		r = site_new(c, j, seed);
	if (r == 0)
		r = pshift_load_begin(c);
	if (r == 0)
		r = place_limited(c);
	if (r == 0)
		r = pshift_judge_begin(c);
	if (r)
		pshift_cluster_free(c);
	else
		*ret = c;
	return r;
}

static int step(struct pshift_cluster *c)
{
	int r = deliver(c);

	if (r == 0)
		r = pshift_load_step(c);
	for (uint32_t j = 0; r == 0 && j < c->config.servers; j++)
		r = run_site(&c->sites[j], c->config.slot);
	return r ? r : c->failed;
}

/* Has a period ended? The controller says; without one they go on as long as they were. */
static bool turned(struct pshift_cluster *c)
{
	struct pshift_control_status s = {0};

	if (c->control)
		pshift_control_status(c->control, &s);
	if (s.started && s.period > c->period) {
		c->period = s.period;
		c->began = c->now;
		return true;
	}
	if (s.started || c->now - c->began < c->config.period)
		return false;
	c->period++;
	c->began += c->config.period;
	return true;
}

/* What has not ended when the run does is not judged. */
static int run(struct pshift_cluster *c, const struct sim_options *o)
{
	int r = 0;

	for (; r == 0 && c->now < c->duration; c->now += c->config.slot) {
		r = step_control(c);
		if (r == 0 && turned(c)) {
			r = pshift_judge_period(c);
			if (r == 0 && o && o->progress &&
				o->progress((double)c->now / (double)c->duration, o->progress_arg))
				return -ECANCELED;
		}
		if (r == 0)
			r = step(c);
	}
	return r;
}

int pshift_cluster_run(const struct pshift_cluster_config *config, weir_time duration,
	uint64_t seed, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err)
{
	struct pshift_cluster *c;
	int r;

	if (duration / config->period > MOST_PERIODS)
		return weir_err_set(err, -EINVAL, "cluster: more than %d periods", MOST_PERIODS);
	r = pshift_cluster_new(config, duration, seed, &c);
	if (r)
		return weir_err_set(err, r, "cluster: %s", strerror(-r));
	r = run(c, options);
	if (r == 0)
		r = pshift_judge_report(c);
	if (r == 0) {
		*ret = c->metrics;
		c->metrics = NULL;
		if (ret_cost)
			*ret_cost = (struct sim_cost){
				c->served + c->messages[0] + c->messages[1], c->served};
	} else if (r == -ENODATA) {
		weir_err_set(err, r, "cluster: no period ended after 'settle'");
	} else {
		weir_err_set(err, r, "cluster, at %.3f s: %s", (double)c->now / 1e9,
			r == -ECANCELED ? "stopped" : strerror(-r));
	}
	pshift_cluster_free(c);
	return r;
}
