/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-site: one server of a simulated cluster: its buckets, their arrivals, and its service in a
 * slot.
 *
 * SOURCE  pShift, Algorithm 1: round robin among buckets with R-tokens, then among the rest that
 *         may be served, each time from where the last one ended. With gates (pshift-gates.c) their
 *         law instead.
 */
#include "control/pshift/ids.h"
#include "sim/control/pshift-cluster.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places */

static int grow(struct pshift_site *s)
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

/* Return the static part: equal parts. */
static int64_t part_of(const struct pshift_cluster *c, uint32_t bucket, int64_t whole)
{
	return whole == LEASE_NO_LIMIT ? whole : whole / pshift_cluster_parts(c, bucket);
}

struct pshift_place *pshift_cluster_place(
	struct pshift_cluster *c, uint32_t bucket, uint32_t server)
{
	struct pshift_site *s = &c->sites[server];
	uint64_t key = (uint64_t)bucket << 32 | server;
	size_t at = pshift_ids_find(c->pairs, key);
	struct pshift_server_bucket b = {.id = bucket + 1,
		.reserved = part_of(c, bucket, c->buckets[bucket].reservation),
		.limit = part_of(c, bucket, c->buckets[bucket].limit),
		.reservation = c->buckets[bucket].reservation};

	if (at != SIZE_MAX)
		return &s->places[at];
	if (grow(s) || pshift_ids_add(c->pairs, key, (uint32_t)s->n) ||
		pshift_server_add(s->server, &b, 0) != (int64_t)s->n)
		return NULL;
	s->places[s->n] = (struct pshift_place){.bucket = bucket};
	if (s->gates && pshift_gates_add(s, b.limit != LEASE_NO_LIMIT))
		return NULL;
	return &s->places[s->n++];
}

/* Keep the list sorted, so that a turn continues where it ended. */
void pshift_site_list(struct pshift_site *s, struct pshift_place *p)
{
	uint32_t place = (uint32_t)(p - s->places);
	size_t lo = 0, hi = s->n_listed;

	if (p->listed)
		return;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->listed[mid] < place)
			lo = mid + 1;
		else
			hi = mid;
	}
	memmove(&s->listed[lo + 1], &s->listed[lo], (s->n_listed - lo) * sizeof(*s->listed));
	s->listed[lo] = place;
	s->n_listed++;
	p->listed = true;
}

/* ---- what it says, and is told */

static void server_sends(void *arg, const struct lease_message *m)
{
	struct pshift_site *s = arg;

	if (!s->cluster->config.control)
		return;
	pshift_post_send(s->cluster, s->number, 0, true, m);
	for (uint32_t k = 1; k <= PSHIFT_STAND_INS; k++)
		if (pshift_cluster_leader(s->cluster, k))
			pshift_post_send(s->cluster, s->number, k, true, m);
}

static void granted(void *arg, size_t index, int64_t r, int64_t l)
{
	struct pshift_site *s = arg;

	s->places[index].r += r;
	s->places[index].l += l;
	if (s->gates)
		pshift_gates_grant(s, index, r, l);
}

int pshift_site_look(struct pshift_site *s)
{
	const struct pshift_cluster *c = s->cluster;
	double capacity = c->config.capacity * c->config.guess;
	int r;

	for (size_t i = 0; i < s->n; i++) {
		const struct pshift_place *p = &s->places[i];

		s->loads[i] = (struct pshift_server_load){.arrived = p->arrived,
			.served = p->served,
			.queued = p->queued,
			.waited = p->waited,
			.inside = p->inside};
	}
	if (c->config.learn) {
		capacity_step(&s->capacity, c->now + 1, &s->totals);
		if (capacity_known(&s->capacity))
			capacity = s->capacity.rate[0];
	}
	r = pshift_server_look(s->server, c->now + s->offset, s->loads, capacity);
	return s->gates && r == 0 ? pshift_gates_set(s) : r;
}

/* ---- a slot */

/* Return how many requests of an open loop arrive in a slot with `mean` arrivals on average. */
uint64_t pshift_site_come(struct pshift_site *s, struct pshift_place *p, double mean)
{
	uint64_t n;

	if (s->cluster->config.poisson) {
		p->part -= mean; /* the rest until the next one, in means */
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
			uint64_t come = pshift_site_come(s, p, p->rate * seconds);

			p->arrived += come;
			p->queued += come;
		} else if (!p->queued) {
			p->listed = false;
			continue;
		}
		s->listed[n++] = s->listed[k];
	}
	s->n_listed = n;
}

static bool may_have(const struct pshift_cluster *c, const struct pshift_place *p, bool first)
{
	if (!p->queued && !p->loop)
		return false;
	if (first)
		return p->r > 0;
	return !c->config.control || c->buckets[p->bucket].limit == LEASE_NO_LIMIT ||
	       p->r + p->l > 0;
}

static void serve_one(struct pshift_cluster *c, struct pshift_place *p)
{
	p->served++;
	c->served++;
	if (p->loop) /* the next one arrives at once */
		p->arrived++;
	else
		p->queued--;
	if (p->r > 0)
		p->r--;
	else if (c->buckets[p->bucket].limit != LEASE_NO_LIMIT)
		p->l--;
}

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

/* Let requests that were not served wait: one that is served in its first slot does not wait. */
static void let_wait(struct pshift_site *s, weir_time slot)
{
	for (size_t k = 0; k < s->n_listed; k++) {
		struct pshift_place *p = &s->places[s->listed[k]];

		p->waited += (double)p->queued * (double)slot;
	}
}

static void count_slot(struct pshift_site *s, weir_time slot, double rate)
{
	struct pshift_cluster *c = s->cluster;
	uint64_t before = c->served;

	arrivals(s, slot);
	s->credit += rate * (double)slot / (double)WEIR_SEC;
	if (c->config.control)
		serve(s, true);
	if (s->credit >= 1)
		serve(s, false);
	let_wait(s, slot);
	s->totals.requests += c->served - before;
	if (s->credit < 1)
		s->totals.full += slot;
	else
		s->credit = 1; /* idle time is not saved up */
}

int pshift_site_step(struct pshift_site *s, weir_time slot)
{
	const struct pshift_cluster *c = s->cluster;
	const struct pshift_cluster_config *g = &c->config;
	double rate = g->capacity * (1 + g->noise * (2 * rng_double(&s->rng) - 1));
	int r = 0;

	if (g->control && pshift_server_due(s->server) <= c->now + s->offset)
		r = pshift_site_look(s);
	if (r == 0 && s->gates)
		return pshift_gates_step(s, slot, rate);
	count_slot(s, slot, rate);
	return r;
}

/* ---- */

int pshift_site_begin(struct pshift_cluster *c, uint32_t number, uint64_t seed)
{
	struct pshift_site *s = &c->sites[number];
	char name[PSHIFT_SITE_NAME];
	struct pshift_server_config config = {.name = name,
		.cluster = PSHIFT_CLUSTER,
		.instance = ++c->instances,
		.length = c->config.period,
		.fresh = true,
		.grant = granted,
		.send = server_sends,
		.arg = s};
	int r;

	pshift_site_name(number, name);
	s->cluster = c;
	s->number = number;
	rng_init(&s->rng, seed, name);
	s->offset = (weir_time)rng_below(&s->rng, (uint64_t)(1000 * WEIR_SEC));
	capacity_init(&s->capacity, NULL);
	r = pshift_server_new(&config, &s->server);
	return r == 0 && c->config.gates ? pshift_gates_begin(s, seed) : r;
}

void pshift_site_name(uint32_t number, char name[PSHIFT_SITE_NAME])
{
	snprintf(name, PSHIFT_SITE_NAME, "s%u", number + 1);
}

void pshift_site_end(struct pshift_site *s)
{
	pshift_gates_end(s);
	pshift_server_free(s->server);
	free(s->places);
	free(s->listed);
	free(s->turn);
	free(s->loads);
}
