/* SPDX-License-Identifier: BSD-3-Clause */
/* faults: processes that start and stop in the world of tests/control/pshift/world.h, the
 * service there, and time. */
#ifndef WEIR_TESTS_CTL_PSHIFT_FAULTS_H
#define WEIR_TESTS_CTL_PSHIFT_FAULTS_H

#include "control/pshift/world.h"

/* ---- processes */

static struct cluster_server_bucket server_bucket(const struct node *x, size_t i)
{
	int64_t limit = w.limit[x->version][i], res = w.reservation[x->version][i];

	return (struct cluster_server_bucket){.id = i + 1,
		.reserved = res / (int64_t)w.n,
		.limit = i < LIMITED ? limit / (int64_t)w.n : LEASE_NO_LIMIT,
		.reservation = res};
}

static void start_server(size_t j, bool fresh)
{
	struct node *x = &w.servers[j];
	char name[] = {'s', (char)('1' + j), 0};
	struct cluster_server_config c = {.name = name,
		.cluster = 1,
		.instance = ++w.instances,
		.length = LENGTH,
		.fresh = fresh,
		.grant = grant,
		.send = server_sends,
		.arg = x};

	x->up = true;
	x->frozen = false;
	x->version = w.version;
	CHECK(pshift_server_new(&c, &w.server[j]) == 0);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct place *p = &w.places[j][i];
		struct cluster_server_bucket b = server_bucket(x, i);

		p->r = p->l = 0;
		p->arrived = p->served = p->looked = p->queued = 0;
		p->mine = (struct book){0};
		p->waited = 0;
		p->since = p->n_last;
		CHECK_INT(pshift_server_add(w.server[j], &b, 0), i);
	}
	w.is_static[j] = fresh;
}

static struct cluster_bucket control_bucket(const struct node *x, size_t i)
{
	return (struct cluster_bucket){.id = i + 1,
		.reservation = w.reservation[x->version][i],
		.limit = i < LIMITED ? w.limit[x->version][i] : LEASE_NO_LIMIT,
		.parts = (uint32_t)w.n};
}

static void start_leader(size_t k)
{
	struct node *x = &w.leaders[k];
	char name[] = {'c', (char)('1' + k), 0};
	struct cluster_lead_config c = {.name = name,
		.cluster = 1,
		.instance = 2 * ++w.instances,
		.rank = k < CHIEFS ? 0 : (unsigned)(k - CHIEFS + 1),
		.length = LENGTH,
		.send = leader_sends,
		.arg = x};

	x->up = true;
	x->frozen = false;
	x->version = w.version;
	CHECK(pshift_control_new(&c, &w.control[k]) == 0);
	x->instance = pshift_control_instance(w.control[k]);
	for (size_t j = 0; j < w.n; j++) {
		char server[] = {'s', (char)('1' + j), 0};

		CHECK_INT(pshift_control_server(w.control[k], server), j);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		struct cluster_bucket b = control_bucket(x, i);

		CHECK_INT(pshift_control_bucket(w.control[k], &b), i);
	}
}

/* `told`: its connections are closed, which the servers that it is connected to notice. */
static void stop_leader(size_t k, bool told)
{
	if (!w.control[k])
		return;
	pshift_control_free(w.control[k]);
	w.control[k] = NULL;
	w.leaders[k].up = false;
	for (size_t j = 0; told && j < w.n; j++)
		if (runs(&w.servers[j]) && !w.cut[0][j][k])
			pshift_server_lost(w.server[j], w.leaders[k].instance);
}

/* Keep the use of a process that ends; without periods, count it in the newest period. */
static void close_books(size_t j)
{
	uint64_t newest = 0;

	for (size_t k = 0; k < w.n; k++) {
		struct pshift_server_status s = {0};

		if (w.servers[k].up)
			pshift_server_status(w.server[k], &s);
		newest = s.period > newest ? s.period : newest;
	}
	for (size_t i = 0; i < LIMITED; i++) {
		struct place *p = &w.places[j][i];

		for (size_t k = 0; k < HISTORY; k++)
			remember(&p->before, p->mine.of[k], p->mine.used[k]);
		for (uint64_t k = 1; w.is_static[j] && k <= p->n_last - p->since && k <= RING; k++)
			if (clock_of(&w.servers[j]) - p->last[(p->n_last - k) % RING] < LENGTH)
				remember(&p->before, newest, 1);
	}
}

static void stop_server(size_t j)
{
	if (!w.servers[j].up)
		return;
	close_books(j);
	pshift_server_free(w.server[j]);
	w.server[j] = NULL;
	w.servers[j].up = false;
	if (CHIEFS + j < LEADERS)
		stop_leader(CHIEFS + j, true);
}

/* ---- service */

static void report_counters(size_t j)
{
	struct cluster_server_load loads[BUCKETS];
	struct pshift_server_status s;

	for (size_t i = 0; i < BUCKETS; i++) {
		const struct place *p = &w.places[j][i];

		loads[i] = (struct cluster_server_load){.arrived = p->arrived,
			.served = p->served,
			.queued = p->queued,
			.waited = p->waited};
	}
	for (size_t i = 0; i < BUCKETS; i++)
		w.places[j][i].looked = w.places[j][i].served;
	CHECK(pshift_server_look(w.server[j], clock_of(&w.servers[j]), loads, 20000) == 0);
	pshift_server_status(w.server[j], &s);
	if ((s.state == LEASE_STATIC) != w.is_static[j])
		for (size_t i = 0; i < BUCKETS; i++)
			w.places[j][i].since = w.places[j][i].n_last;
	w.is_static[j] = s.state == LEASE_STATIC;
}

static void arrive(struct place *p)
{
	uint64_t come;

	p->part += p->rate * (double)STEP / (double)WEIR_SEC;
	come = (uint64_t)p->part;
	p->part -= (double)come;
	if (p->queued >= 500)
		come = 0;
	if (p->queued < p->loop)
		come = p->loop - p->queued;
	p->arrived += come;
	p->queued += come;
	p->waited += (double)p->queued * (double)STEP;
}

/* Serve everything that has tokens. A closed loop submits again at once, a few times. */
static void serve(size_t j)
{
	struct pshift_server_status s;

	pshift_server_status(w.server[j], &s);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct place *p = &w.places[j][i];
		unsigned most = p->loop ? 40 : 500;

		for (; p->queued && most; most--) {
			if (i < LIMITED && p->r + p->l <= 0)
				break;
			p->served++;
			w.passed[i]++;
			if (p->loop)
				p->arrived++;
			else
				p->queued--;
			if (p->r > 0)
				p->r--;
			else if (i < LIMITED)
				p->l--;
			if (s.period < 4096)
				w.label[s.period][i]++;
			if (i < LIMITED && s.state == LEASE_STATIC)
				judge_static(j, i);
			else if (i < LIMITED)
				remember(&p->mine, s.period, 1);
		}
	}
}

static void deliver(void)
{
	for (size_t n = 0; n < w.n_parcels; n++) {
		struct parcel *p = &w.parcels[n];
		bool up = p->up;
		size_t j = p->server, k = p->leader;

		if (!p->at || p->at > w.now)
			continue;
		/* A frozen process reads its messages later. */
		if (up ? w.leaders[k].up && w.leaders[k].frozen : w.servers[j].frozen)
			continue;
		p->at = 0;
		CHECK(lease_read(p->bytes, p->n, &w.in) == PEER_TAKEN);
		if (up && w.control[k]) {
			pshift_control_receive(w.control[k], clock_of(&w.leaders[k]), &w.in);
		} else if (!up && w.servers[j].up) {
			report_counters(j);
			pshift_server_receive(w.server[j], clock_of(&w.servers[j]), &w.in);
			report_counters(j);
		}
	}
}

static void step(void)
{
	w.now += STEP;
	note_versions();
	deliver();
	for (size_t k = 0; k < LEADERS; k++)
		if (w.control[k] && runs(&w.leaders[k]) &&
			(k < CHIEFS || runs(&w.servers[k - CHIEFS])))
			CHECK(pshift_control_step(w.control[k], clock_of(&w.leaders[k])) == 0);
	for (size_t j = 0; j < w.n; j++) {
		if (!runs(&w.servers[j]))
			continue;
		for (size_t i = 0; i < BUCKETS; i++)
			arrive(&w.places[j][i]);
		if (pshift_server_due(w.server[j]) <= clock_of(&w.servers[j]))
			report_counters(j);
		serve(j);
	}
	if (!w.forgets)
		judge();
	judge_window();
}

static void run_steps(unsigned steps)
{
	for (unsigned i = 0; i < steps; i++)
		step();
}

/* ---- beginning and end */

static void new_policy(void)
{
	unsigned v = w.version + 1 < VERSIONS ? w.version + 1 : w.version;

	for (size_t i = 0; i < BUCKETS; i++) {
		w.reservation[v][i] = 60 + (int64_t)rng_below(&w.rng, 200);
		w.limit[v][i] = w.reservation[v][i] * 2 + (int64_t)rng_below(&w.rng, 100);
	}
	w.limit[v][2] = w.reservation[v][2]; /* everything is reserved */
	w.version = v;
}

static inline void take_policy(struct node *x, struct pshift_server *s, struct pshift_control *c)
{
	x->version = w.version;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct cluster_server_bucket b = server_bucket(x, i);
		struct cluster_bucket k = control_bucket(x, i);

		CHECK_INT(s ? pshift_server_add(s, &b, 0) : pshift_control_bucket(c, &k), i);
		if (s) {
			struct place *p = &w.places[x - w.servers][i];

			p->since = p->n_last;
		}
	}
}

static void change_demand(size_t i)
{
	for (size_t j = 0; j < w.n; j++) {
		struct place *p = &w.places[j][i];

		p->loop = rng_below(&w.rng, 3) == 0 ? 8 : 0;
		p->rate = rng_below(&w.rng, 2) ? (double)rng_below(&w.rng, 2000) : 0;
		p->queued = 0;
	}
}

static void begin(uint64_t seed, size_t servers)
{
	memset(&w, 0, sizeof(w));
	rng_init(&w.rng, seed, "pshift-faults");
	w.n = servers;
	w.delay = 2 * WEIR_MS;
	new_policy();
	for (size_t j = 0; j < MOST + LEADERS; j++) {
		struct node *x = j < MOST ? &w.servers[j] : &w.leaders[j - MOST];

		x->offset = (weir_time)rng_below(&w.rng, (uint64_t)(1000 * WEIR_SEC));
		x->speed = 1 + (rng_double(&w.rng) - 0.5) / PSHIFT_DRIFT;
	}
	for (size_t j = 0; j < w.n; j++)
		start_server(j, true);
	for (size_t i = 0; i < BUCKETS; i++)
		change_demand(i);
	start_leader(0);
}

static void end(void)
{
	for (size_t k = 0; k < LEADERS; k++)
		stop_leader(k, false);
	for (size_t j = 0; j < w.n; j++)
		stop_server(j);
	for (size_t i = 0; i < PARCELS; i++)
		free(w.parcels[i].bytes);
	lease_message_free(&w.in);
}

static struct cluster_status status_of(size_t k)
{
	struct cluster_status s = {0};

	if (w.control[k])
		pshift_control_status(w.control[k], &s);
	return s;
}

#endif
