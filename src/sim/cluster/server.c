/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: one server of a simulated cluster: its buckets, their arrivals, and the requests served in a slot.
 *
 * SOURCE  pShift, Algorithm 1: round robin among those with R-tokens, then among the rest that may be served,
 *         each time from where the last one ended. With gates (gates.c) their law instead.
 */
#include "base/array.h"
#include "control/ids.h"
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places */

static int grow(struct sim_server *s)
{
	return array_grow(&s->places, &s->room[0], s->n + 1) ||
			       array_grow(&s->listed, &s->room[1], s->n + 1) ||
			       array_grow(&s->turn, &s->room[2], s->n + 1) ||
			       array_grow(&s->loads, &s->room[3], s->n + 1)
		       ? -ENOMEM
		       : 0;
}

/* Set the static parts: equal ones. */
static int64_t part_of(const struct sim_cluster *c, uint32_t bucket, int64_t whole)
{
	return whole == LEASE_NO_LIMIT ? whole : whole / sim_cluster_parts(c, bucket);
}

struct sim_place *sim_cluster_place(struct sim_cluster *c, uint32_t bucket, uint32_t server)
{
	struct sim_server *s = &c->servers[server];
	uint64_t key = (uint64_t)bucket << 32 | server;
	size_t at = ids_find(c->pairs, key);
	struct cluster_server_bucket b = {.id = bucket + 1,
		.reserved = part_of(c, bucket, c->buckets[bucket].reservation),
		.limit = part_of(c, bucket, c->buckets[bucket].limit),
		.reservation = c->buckets[bucket].reservation};

	if (at != SIZE_MAX)
		return &s->places[at];
	if (grow(s) || ids_add(c->pairs, key, (uint32_t)s->n) ||
		c->machine->add(s->machine, &b) != (int64_t)s->n)
		return NULL;
	s->places[s->n] = (struct sim_place){.bucket = bucket};
	if (s->gates && sim_gates_add(s, b.limit != LEASE_NO_LIMIT))
		return NULL;
	return &s->places[s->n++];
}

/* Keep the list in order, so that a turn goes on where it ended. */
void sim_server_list(struct sim_server *s, struct sim_place *p)
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

/* ---- reports and grants */

static void server_sends(void *arg, const struct lease_message *m)
{
	struct sim_server *s = arg;

	if (!s->cluster->config.control)
		return;
	sim_post_send(s->cluster, s->number, 0, true, m);
	for (uint32_t k = 1; k <= CLUSTER_STAND_INS; k++)
		if (sim_cluster_leader(s->cluster, k))
			sim_post_send(s->cluster, s->number, k, true, m);
}

static void granted(void *arg, size_t index, int64_t r, int64_t l)
{
	struct sim_server *s = arg;

	s->places[index].r += r;
	s->places[index].l += l;
	if (s->gates)
		sim_gates_grant(s, index, r, l);
}

int sim_server_look(struct sim_server *s)
{
	const struct sim_cluster *c = s->cluster;
	double capacity = c->config.capacity * c->config.guess;
	int r;

	for (size_t i = 0; i < s->n; i++) {
		const struct sim_place *p = &s->places[i];

		s->loads[i] = (struct cluster_server_load){.arrived = p->arrived,
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
	r = c->machine->look(s->machine, c->now + s->offset, s->loads, capacity);
	return s->gates && r == 0 ? sim_gates_set(s) : r;
}

/* ---- a slot */

/* Return the number of requests of an open loop in a slot, `mean` on average. */
uint64_t sim_server_come(struct sim_server *s, struct sim_place *p, double mean)
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

static void arrivals(struct sim_server *s, weir_time slot)
{
	double seconds = (double)slot / (double)WEIR_SEC;
	size_t n = 0;

	for (size_t k = 0; k < s->n_listed; k++) {
		struct sim_place *p = &s->places[s->listed[k]];

		if (p->loop) {
			p->arrived += p->loop - (p->queued < p->loop ? p->queued : p->loop);
			p->queued = p->loop;
			p->open += slot;
		} else if (p->rate > 0) {
			uint64_t come = sim_server_come(s, p, p->rate * seconds);

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

static bool may_have(const struct sim_cluster *c, const struct sim_place *p, bool first)
{
	if (!p->queued && !p->loop)
		return false;
	if (first)
		return p->r > 0;
	return !c->config.control || c->buckets[p->bucket].limit == LEASE_NO_LIMIT ||
	       p->r + p->l > 0;
}

static void serve_one(struct sim_cluster *c, struct sim_place *p)
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

static void serve(struct sim_server *s, bool first)
{
	struct sim_cluster *c = s->cluster;
	size_t n = 0, from = 0;

	for (size_t k = 0; k < s->n_listed; k++) {
		if (!may_have(c, &s->places[s->listed[k]], first))
			continue;
		if (s->listed[k] < s->next)
			from = n + 1;
		s->turn[n++] = s->listed[k];
	}
	for (size_t k = n ? from % n : 0; n && s->credit >= 1; k++) {
		struct sim_place *p;

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

/* Count the waiting time of requests that were not served; a request that is served in its first slot does not wait. */
static void let_wait(struct sim_server *s, weir_time slot)
{
	for (size_t k = 0; k < s->n_listed; k++) {
		struct sim_place *p = &s->places[s->listed[k]];

		p->waited += (double)p->queued * (double)slot;
	}
}

static void count_slot(struct sim_server *s, weir_time slot, double rate)
{
	struct sim_cluster *c = s->cluster;
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

int sim_server_step(struct sim_server *s, weir_time slot)
{
	const struct sim_cluster *c = s->cluster;
	const struct sim_cluster_config *g = &c->config;
	double rate = g->capacity * (1 + g->noise * (2 * rng_double(&s->rng) - 1));
	int r = 0;

	if (g->control && c->machine->due(s->machine) <= c->now + s->offset)
		r = sim_server_look(s);
	if (r == 0 && s->gates)
		return sim_gates_step(s, slot, rate);
	count_slot(s, slot, rate);
	return r;
}

/* ---- */

int sim_server_begin(struct sim_cluster *c, uint32_t number, uint64_t seed)
{
	struct sim_server *s = &c->servers[number];
	char name[SIM_SERVER_NAME];
	struct cluster_server_config config = {.name = name,
		.cluster = SIM_CLUSTER,
		.instance = ++c->instances,
		.length = c->config.period,
		.fresh = true,
		.grant = granted,
		.send = server_sends,
		.arg = s};
	int r;

	sim_server_name(number, name);
	s->cluster = c;
	s->number = number;
	rng_init(&s->rng, seed, name);
	s->offset = (weir_time)rng_below(&s->rng, (uint64_t)(1000 * WEIR_SEC));
	capacity_init(&s->capacity, NULL);
	r = c->machine->new (&config, &s->machine);
	return r == 0 && c->config.gates ? sim_gates_begin(s, seed) : r;
}

void sim_server_name(uint32_t number, char name[SIM_SERVER_NAME])
{
	snprintf(name, SIM_SERVER_NAME, "s%u", number + 1);
}

void sim_server_end(struct sim_server *s)
{
	sim_gates_end(s);
	if (s->machine)
		s->cluster->machine->free(s->machine);
	free(s->places);
	free(s->listed);
	free(s->turn);
	free(s->loads);
}
