/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lone-server: one pshift-server with a simulated gate, and a controller that the test scripts.
 *
 * Time advances in steps of 1 ms from 0; periods begin at multiples of LONE_LENGTH, counted from 1.
 * The server serves `capacity` requests a second: in turn among buckets with R-tokens, then among
 * those that may be served.
 */
#ifndef WEIR_TESTS_CTL_LONE_SERVER_H
#define WEIR_TESTS_CTL_LONE_SERVER_H

#include "control/pshift/server.h"
#include "test.h"

#define LONE_BUCKETS 8
#define LONE_LENGTH  WEIR_SEC
#define LONE_STEP    WEIR_MS

struct lone {
	struct pshift_server *server;
	weir_time now;
	double capacity, credit; /* requests a second; requests that it may serve now */
	size_t n, turn;
	struct lone_gate {
		int64_t r, l;
		uint64_t arrived, served, queued, mark; /* mark: served when lone_mark was called */
		double waited, rate, part;              /* rate: arrivals a second */
		uint64_t loop;                          /* requests that always wait */
		bool limited;
		weir_time since, longest; /* when the oldest one came; the longest wait */
	} gates[LONE_BUCKETS];
	uint64_t generation, grants; /* of the controller */
	uint64_t instance;           /* see lone_instance */
	uint64_t hold;               /* how long a grant is held, periods */
	weir_time late;              /* its periods end this much later */
	struct lease_message said;   /* the last report */
	struct lease_demand demands[LONE_BUCKETS];
	uint64_t reports;
};

static void lone_granted(void *arg, size_t index, int64_t r, int64_t l)
{
	struct lone *x = arg;

	x->gates[index].r += r;
	x->gates[index].l += l;
	CHECK(x->gates[index].r >= 0 && x->gates[index].l >= 0);
}

static void lone_said(void *arg, const struct lease_message *m)
{
	struct lone *x = arg;

	CHECK(m->n <= LONE_BUCKETS);
	x->said = *m;
	x->said.room = 0;
	if (m->n)
		memcpy(x->demands, m->demands, m->n * sizeof(*m->demands));
	x->said.demands = x->demands;
	x->reports++;
}

static inline void lone_begin(struct lone *x, double capacity, bool fresh)
{
	struct cluster_server_config c = {.name = "s1",
		.cluster = 1,
		.instance = 7,
		.length = LONE_LENGTH,
		.fresh = fresh,
		.grant = lone_granted,
		.send = lone_said,
		.arg = x};

	*x = (struct lone){.capacity = capacity, .generation = 1, .hold = PSHIFT_HOLD};
	CHECK(pshift_server_new(&c, &x->server) == 0);
}

static inline void lone_end(struct lone *x)
{
	pshift_server_free(x->server);
}

/* Add a bucket with these static parts; ids count from 1. */
static inline size_t lone_add(struct lone *x, int64_t reserved, int64_t limit)
{
	struct cluster_server_bucket b = {x->n + 1, reserved, limit, 0};

	CHECK(x->n < LONE_BUCKETS);
	x->gates[x->n].limited = limit != LEASE_NO_LIMIT;
	CHECK_INT(pshift_server_add(x->server, &b, 0), x->n);
	return x->n++;
}

static inline void lone_look(struct lone *x)
{
	struct cluster_server_load loads[LONE_BUCKETS];

	for (size_t i = 0; i < x->n; i++) {
		const struct lone_gate *g = &x->gates[i];

		loads[i] = (struct cluster_server_load){.arrived = g->arrived,
			.served = g->served,
			.queued = g->queued,
			.waited = g->waited};
	}
	CHECK(pshift_server_look(x->server, x->now, loads, x->capacity) == 0);
}

/* ---- the controller */

static inline uint64_t lone_period(const struct lone *x)
{
	return (uint64_t)(x->now / LONE_LENGTH) + 1;
}

/* Controllers have even instances, stand-ins odd ones. */
static inline uint64_t lone_instance(const struct lone *x)
{
	return 2 * (100 + x->generation + x->instance);
}

static inline void lone_ask(struct lone *x)
{
	struct lease_message m = {.kind = LEASE_ASK,
		.instance = lone_instance(x),
		.sequence = 1,
		.grant = {.generation = x->generation}};

	x->grants = 0;
	CHECK(pshift_server_receive(x->server, x->now, &m) == PEER_TAKEN);
	lone_look(x);
}

/* Grant for the current period by true time. */
static inline enum peer_verdict lone_grant(struct lone *x, struct lease_tokens *tokens, size_t n)
{
	weir_time end = (weir_time)lone_period(x) * LONE_LENGTH + x->late;
	enum peer_verdict v;
	struct lease_message m = {.kind = LEASE_GRANT,
		.instance = lone_instance(x),
		.sequence = ++x->grants + 1,
		.n = n,
		.tokens = tokens,
		.grant = {.generation = x->generation,
			.heard = x->said.sequence,
			.echo = x->said.sent,
			.left = end - x->said.sent,
			.togo = end - x->now,
			.period = lone_period(x),
			.length = LONE_LENGTH,
			.interval = LONE_LENGTH / 5,
			.hold = x->hold,
			.gap = PSHIFT_HOLD + PSHIFT_GAP - x->hold}};

	lone_look(x);
	v = pshift_server_receive(x->server, x->now, &m);
	lone_look(x);
	return v;
}

/* ---- time */

static void lone_arrive(struct lone *x, struct lone_gate *g)
{
	uint64_t come = g->loop > g->queued ? g->loop - g->queued : 0;

	g->part += g->rate * (double)LONE_STEP / (double)WEIR_SEC;
	come += (uint64_t)g->part;
	g->part -= (double)(uint64_t)g->part;
	if (!g->queued && come)
		g->since = x->now;
	g->arrived += come;
	g->queued += come;
}

static bool lone_may(const struct lone_gate *g, bool first)
{
	return g->queued && (g->r > 0 || (!first && (!g->limited || g->l > 0)));
}

static void lone_serve(struct lone *x, bool first)
{
	for (size_t idle = 0; x->credit >= 1 && idle < x->n; x->turn = (x->turn + 1) % x->n) {
		struct lone_gate *g = &x->gates[x->turn];

		idle++;
		if (!lone_may(g, first))
			continue;
		idle = 0;
		x->credit--;
		g->served++;
		g->queued--;
		if (g->r > 0)
			g->r--;
		else if (g->limited)
			g->l--;
		if (x->now - g->since > g->longest)
			g->longest = x->now - g->since;
		g->since = x->now;
	}
}

static inline void lone_run(struct lone *x, weir_time span)
{
	for (weir_time until = x->now + span; x->now < until; x->now += LONE_STEP) {
		for (size_t i = 0; i < x->n; i++)
			lone_arrive(x, &x->gates[i]);
		if (pshift_server_due(x->server) <= x->now)
			lone_look(x);
		x->credit += x->capacity * (double)LONE_STEP / (double)WEIR_SEC;
		lone_serve(x, true);
		lone_serve(x, false);
		for (size_t i = 0; i < x->n;
			i++) /* a request that is served at once has not waited */
			x->gates[i].waited += (double)x->gates[i].queued * (double)LONE_STEP;
		x->credit = x->credit > 1 ? 1 : x->credit; /* idle time is not saved */
	}
}

static inline void lone_mark(struct lone *x)
{
	for (size_t i = 0; i < x->n; i++)
		x->gates[i].mark = x->gates[i].served;
}

static inline int64_t lone_since(const struct lone *x, size_t i)
{
	return (int64_t)(x->gates[i].served - x->gates[i].mark);
}

static inline enum lease_state lone_state(const struct lone *x)
{
	struct pshift_server_status s;

	pshift_server_status(x->server, &s);
	return s.state;
}

#endif
