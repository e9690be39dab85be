/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig: a cluster under pShift for tests: servers with gates, one or two controllers, and a network
 * that loses, delays, doubles and reorders messages, with clocks that differ in time and speed.
 *
 * Every service checks that no limit is exceeded in its period, over all servers; every report
 * checks that the machine's view of a gate's tokens equals the gate. The period of a service is
 * judged from outside: by the time at which the controller's periods began, if it lived throughout
 * (`strict`), else by the server's own period.
 */
#ifndef WEIR_TESTS_CTL_PSHIFT_RIG_H
#define WEIR_TESTS_CTL_PSHIFT_RIG_H

#include "base/rng.h"
#include "control/pshift/control.h"
#include "control/pshift/server.h"
#include "test.h"
#include <errno.h>

#define SERVERS  5
#define BUCKETS  6
#define CHIEFS   2 /* controllers … */
#define DEPUTIES 3 /* … and servers that may stand in: the first three */
#define LEADERS  (CHIEFS + DEPUTIES)
#define LIMITED  4 /* the first of them */
#ifndef LENGTH
#define LENGTH (400 * WEIR_MS)
#endif
#define STEP    WEIR_MS
#define PERIODS 4096
#define WIRES   8192
#ifndef LAST
#define LAST 128 /* above any static part */
#endif

struct wire {         /* a message under way */
	weir_time at; /* in true time; 0: free */
	size_t server, chief;
	bool up; /* to the controller */
	struct lease_message m;
	struct lease_tokens entries[BUCKETS * 2];
};

struct machine {
	struct pshift_server *server;
	weir_time offset;
	double speed, capacity, credit;
	struct gate {
		int64_t r, l;
		uint64_t arrived, served, queued;
		double waited, rate, part; /* rate: arrivals a second */
		bool closed;               /* always 5 waiting */
		weir_time last[LAST];      /* times of service without periods */
		uint64_t turn, counted_in;
		int64_t counted;
	} gates[BUCKETS];
	uint64_t instance;
	bool down; /* receives nothing and does nothing */
};

static struct world {
	struct rng rng;
	weir_time now;
	struct machine machines[SERVERS];
	struct chief {
		struct pshift_control *control; /* NULL: dead */
		weir_time offset, back;
		double speed;
		uint64_t instance;
	} chiefs[LEADERS];
	double loss, twice, stuck;
	bool cut[SERVERS][LEADERS]; /* no connection between the two */
	weir_time delay;
	struct wire wires[WIRES];
	int used; /* of the wires in use */
	int64_t limit[BUCKETS], reservation[BUCKETS];
	uint64_t instances;
	bool elected; /* controllers lead only when they are told to */
	bool strict;
	bool stand_in;   /* servers may stand in */
	uint64_t period; /* the controller's; counted on while there is none */
	bool led;        /* a controller has counted */
	weir_time began;
	int64_t label[PERIODS][BUCKETS], truth[PERIODS][LIMITED];
	int64_t served[BUCKETS]; /* since the test cleared it */
	uint64_t messages;
} w;

static weir_time clock_of(weir_time offset, double speed)
{
	return offset + (weir_time)((double)w.now * speed);
}

static void put_on_wire(size_t server, size_t chief, bool up, const struct lease_message *m)
{
	int copies = rng_double(&w.rng) < w.loss ? 0 : rng_double(&w.rng) < w.twice ? 2 : 1;

	w.messages++;
	if (w.cut[server][chief])
		return;
	for (int i = 0; i < WIRES && copies; i++) {
		struct wire *x = &w.wires[i];

		if (x->at)
			continue;
		w.used = i < w.used ? w.used : i + 1;
		/* Now and then a message is delayed by more than a period. */
		weir_time late = rng_double(&w.rng) < w.stuck ? 2 * LENGTH : w.delay;

		x->at = w.now + 1 + (weir_time)(rng_double(&w.rng) * (double)late);
		x->server = server;
		x->chief = chief;
		x->up = up;
		x->m = *m;
		x->m.room = 0;
		CHECK(m->n <= BUCKETS * 2);
		if (up) {
			static struct lease_demand demands[WIRES][BUCKETS * 2];

			if (m->n)
				memcpy(demands[i], m->demands, m->n * sizeof(*m->demands));
			x->m.demands = demands[i];
		} else {
			if (m->n)
				memcpy(x->entries, m->tokens, m->n * sizeof(*m->tokens));
			x->m.tokens = x->entries;
		}
		copies--;
	}
}

static void server_sends(void *arg, const struct lease_message *m)
{
	/* Send to all controllers of the policy; the server decides which one to follow. */
	for (size_t k = 0; k < LEADERS; k++)
		if (w.chiefs[k].control)
			put_on_wire((size_t)((struct machine *)arg - w.machines), k, true, m);
}

static void control_sends(void *arg, size_t server, const struct lease_message *m)
{
	put_on_wire(server, (size_t)((struct chief *)arg - w.chiefs), false, m);
}

static void grants(void *arg, size_t index, int64_t r, int64_t l)
{
	struct gate *g = &((struct machine *)arg)->gates[index];

	g->r += r;
	g->l += l;
}

/* ---- starting and killing */

static void start_server(size_t j, bool fresh)
{
	struct machine *x = &w.machines[j];
	char name[] = {'s', (char)('1' + j), 0};
	struct cluster_server_config c = {.name = name,
		.cluster = 1,
		.instance = x->instance = ++w.instances,
		.length = LENGTH,
		.fresh = fresh,
		.grant = grants,
		.send = server_sends,
		.arg = x};

	pshift_server_free(x->server);
	CHECK(pshift_server_new(&c, &x->server) == 0);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct gate *g = &x->gates[i];
		struct cluster_server_bucket b = {.id = i + 1,
			.reserved = w.reservation[i] / SERVERS,
			.limit = i < LIMITED ? w.limit[i] / SERVERS : LEASE_NO_LIMIT,
			.reservation = w.reservation[i]};

		*g = (struct gate){.rate = g->rate, .closed = g->closed, .turn = LAST};
		for (int k = 0; k < LAST; k++)
			g->last[k] = -LENGTH;
		CHECK_INT(pshift_server_add(x->server, &b, 0), i);
	}
}

static void start_control(size_t k)
{
	struct chief *x = &w.chiefs[k];
	char name[] = {'c', (char)('1' + k), 0};
	struct cluster_lead_config c = {.name = name,
		.cluster = 1,
		.instance = ++w.instances * 2,
		.rank = k < CHIEFS ? 0 : (unsigned)(k - CHIEFS + 1),
		.elected = w.elected && k < CHIEFS,
		.length = LENGTH,
		.send = control_sends,
		.arg = x};

	CHECK(pshift_control_new(&c, &x->control) == 0);
	x->instance = pshift_control_instance(x->control);
	for (size_t j = 0; j < SERVERS; j++) {
		char server[] = {'s', (char)('1' + j), 0};

		CHECK_INT(pshift_control_server(x->control, server), j);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		struct cluster_bucket b = {.id = i + 1,
			.reservation = w.reservation[i],
			.limit = w.limit[i],
			.parts = SERVERS};

		CHECK_INT(pshift_control_bucket(x->control, &b), i);
	}
}

/* Its machine is gone: connections are not closed. */
static void lose_control(size_t k)
{
	pshift_control_free(w.chiefs[k].control);
	w.chiefs[k].control = NULL;
}

/* Its process ends: connections are closed. */
static void kill_control(size_t k)
{
	lose_control(k);
	for (size_t j = 0; j < SERVERS; j++)
		if (!w.cut[j][k] && !w.machines[j].down)
			pshift_server_lost(w.machines[j].server, w.chiefs[k].instance);
}

static void start_stand_in(size_t j)
{
	kill_control(CHIEFS + j);
	start_control(CHIEFS + j);
}

/* Restart a server without its state. */
static inline void restart(size_t j)
{
	start_server(j, false);
	if (w.stand_in && j < DEPUTIES)
		start_stand_in(j);
}

static void change_demand(size_t i)
{
	for (size_t j = 0; j < SERVERS; j++) {
		struct gate *g = &w.machines[j].gates[i];

		g->closed = rng_below(&w.rng, 4) == 0;
		g->rate = rng_below(&w.rng, 2) ? (double)rng_below(&w.rng, 3000) : 0;
		g->queued = 0;
	}
}

static void begin(uint64_t seed, bool strict)
{
	memset(&w, 0, sizeof(w));
	w.strict = strict;
	rng_init(&w.rng, seed, "law-pshift");
	for (size_t k = 0; k < LEADERS; k++) {
		w.chiefs[k].offset = (weir_time)(5 + 70 * k) * WEIR_SEC;
		w.chiefs[k].speed = 1 + (rng_double(&w.rng) - 0.5) / PSHIFT_DRIFT;
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		w.limit[i] = i < LIMITED ? 50 + (int64_t)rng_below(&w.rng, 400) : LEASE_NO_LIMIT;
		w.reservation[i] = i < LIMITED ? w.limit[i] / (int64_t)(1 + i) : 150;
	}
	w.limit[3] = 3; /* fewer than one per server */
	w.reservation[3] = 0;
	for (size_t j = 0; j < SERVERS; j++) {
		struct machine *x = &w.machines[j];

		x->offset = (weir_time)rng_below(&w.rng, (uint64_t)(1000 * WEIR_SEC));
		x->speed = 1 + (rng_double(&w.rng) - 0.5) / PSHIFT_DRIFT;
		x->capacity = 1500 + (double)rng_below(&w.rng, 1000);
		start_server(j, true);
	}
	for (size_t i = 0; i < BUCKETS; i++)
		change_demand(i);
	start_control(0);
}

static void end(void)
{
	for (size_t k = 0; k < LEADERS; k++)
		kill_control(k);
	for (size_t j = 0; j < SERVERS; j++)
		pshift_server_free(w.machines[j].server);
}

/* ---- a step */

/* Return true if a server without periods of its own may serve bucket i: never more than the
 * static part in any span of a length. The service counts in the current period of most servers,
 * which may be longer than a length: but the static part only once. */
static bool free_of_periods(struct machine *x, size_t i)
{
	int64_t part = w.limit[i] / SERVERS;
	weir_time now = clock_of(x->offset, x->speed), *last = x->gates[i].last;
	int64_t *counted = &x->gates[i].counted;

	CHECK(part > 0 && part < LAST);
	CHECK(now - last[(x->gates[i].turn - (uint64_t)part) % LAST] >= LENGTH);
	last[x->gates[i].turn++ % LAST] = now;
	if (x->gates[i].counted_in != w.period)
		*counted = 0;
	x->gates[i].counted_in = w.period;
	return ++*counted <= part;
}

static void serve_one(struct machine *x, size_t i, uint64_t label)
{
	struct gate *g = &x->gates[i];

	g->served++;
	w.served[i]++;
	if (g->closed) /* the next one comes at once */
		g->arrived++;
	else
		g->queued--;
	if (g->r > 0)
		g->r--;
	else if (i < LIMITED)
		g->l--;
	CHECK(label < PERIODS && w.period < PERIODS);
	if (i >= LIMITED) {
		w.label[label ? label : w.period][i]++;
		return;
	}
	CHECK(g->r >= 0 && g->l >= 0);
	if (!label && !free_of_periods(x, i))
		return;
	if (!label)
		label = w.period;
	CHECK(++w.label[label][i] <= w.limit[i]);
	if (w.strict)
		CHECK(++w.truth[w.period][i] <= w.limit[i]);
}

/* Serve by Algorithm 1, from a random bucket on. */
static void serve(struct machine *x)
{
	struct pshift_server_status s;
	uint64_t label;

	pshift_server_status(x->server, &s);
	/* A server without periods serves in the true period. */
	label = s.period;
	x->credit = x->credit + x->capacity * (double)STEP / (double)WEIR_SEC;
	for (int class = 0; class < 2; class ++) {
		size_t from = rng_below(&w.rng, BUCKETS);
		bool any = true;

		while (any && x->credit >= 1) {
			any = false;
			for (size_t k = 0; k < BUCKETS && x->credit >= 1; k++) {
				size_t i = (from + k) % BUCKETS;
				const struct gate *g = &x->gates[i];

				if (!g->queued || (class == 0 && g->r <= 0) ||
					(class == 1 && i < LIMITED && g->r + g->l <= 0))
					continue;
				serve_one(x, i, label);
				x->credit--;
				any = true;
			}
		}
	}
	if (x->credit > 1)
		x->credit = 1; /* idle time is not saved */
}

static void arrive(struct machine *x)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct gate *g = &x->gates[i];

		if (g->closed) {
			g->arrived += 5 - g->queued;
			g->queued = 5;
		} else if (g->queued < 500) {
			g->part += g->rate * (double)STEP / (double)WEIR_SEC;
			g->arrived += (uint64_t)g->part;
			g->queued += (uint64_t)g->part;
			g->part -= (double)(uint64_t)g->part;
		}
		g->waited += (double)g->queued * (double)STEP;
	}
}

static void report_counters(struct machine *x)
{
	struct cluster_server_load loads[BUCKETS];

	for (size_t i = 0; i < BUCKETS; i++) {
		const struct gate *g = &x->gates[i];

		loads[i] = (struct cluster_server_load){.arrived = g->arrived,
			.served = g->served,
			.queued = g->queued,
			.waited = g->waited};
	}
	CHECK(pshift_server_look(x->server, clock_of(x->offset, x->speed), loads, x->capacity) ==
		0);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct pshift_server_tokens t;

		pshift_server_tokens(x->server, i, &t);
		CHECK_INT(x->gates[i].r, t.r);
		CHECK_INT(x->gates[i].l, t.l);
		CHECK(t.r >= 0 && t.l >= 0);
	}
}

/* A stand-in is down with its server. */
static bool is_down(size_t chief)
{
	return chief >= CHIEFS && w.machines[chief - CHIEFS].down;
}

static void deliver(void)
{
	for (int i = 0; i < w.used; i++) {
		struct wire *x = &w.wires[i];
		struct machine *to = &w.machines[x->server];

		if (!x->at || x->at > w.now)
			continue;
		x->at = 0;
		if (to->down || is_down(x->chief))
			continue;
		if (x->up && w.chiefs[x->chief].control) {
			const struct chief *k = &w.chiefs[x->chief];

			pshift_control_receive(k->control, clock_of(k->offset, k->speed), &x->m);
		} else if (!x->up) {
			report_counters(
				to); /* as a driver does: read the counters at the same moment */
			pshift_server_receive(to->server, clock_of(to->offset, to->speed), &x->m);
			report_counters(to);
		}
	}
}

/* Return the period of a controller that counts periods, or 0. */
static uint64_t control(const struct chief *k)
{
	struct cluster_status s;
	int r;

	if (!k->control)
		return 0;
	r = pshift_control_step(k->control, clock_of(k->offset, k->speed));
	pshift_control_status(k->control, &s);
	CHECK_INT(r, 0);
	/* If it lives throughout, it keeps counting while it does not grant. */
	return s.started || w.strict ? s.period : 0;
}

static void controls(void)
{
	uint64_t period = 0;

	for (size_t k = 0; k < LEADERS; k++) {
		uint64_t its = is_down(k) ? 0 : control(&w.chiefs[k]);

		period = its > period ? its : period;
	}
	if (period && !w.led &&
		w.period > period) { /* counted here so far: the first one begins at 1 */
		memset(w.label, 0, sizeof(w.label));
		w.period = 0;
	}
	w.led |= period;
	if (period > w.period) {
		w.period = period;
		w.began = w.now;
	}
	if (!period &&
		w.now - w.began >=
			LENGTH + LENGTH / 4) { /* no controller counts: go on counting here */
		w.period++;
		w.began += LENGTH;
	}
}

static void step(void)
{
	w.now += STEP;
	controls();
	deliver();
	for (size_t j = 0; j < SERVERS; j++) {
		struct machine *x = &w.machines[j];

		if (x->down)
			continue;
		arrive(x);
		if (pshift_server_due(x->server) <= clock_of(x->offset, x->speed))
			report_counters(x);
		serve(x);
	}
}

static void calm(unsigned steps)
{
	w.loss = w.twice = w.stuck = 0;
	w.delay = 2 * WEIR_MS;
	for (unsigned i = 0; i < steps; i++)
		step();
}

static uint64_t seed(void)
{
	const char *text = getenv("WEIR_SEED");

	return text ? strtoull(text, NULL, 10) : 1;
}

#endif
