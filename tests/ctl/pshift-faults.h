/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-faults: a cluster under pShift with faults, for tests; its judge shares no code with pshift-rig.h.
 *
 * A world is some servers, two controllers and, if started, stand-ins. Messages go as bytes, are lost, doubled and
 * reordered; each direction of each link may be cut. Processes are stopped, started and frozen (a frozen one goes on
 * later, as if nothing had happened), clocks differ in time and speed, and policies change on each machine at a time of
 * its own.
 *
 *   POTENTIAL  At every moment, for each period that a server is in: Σ over servers of what each has used of it or may
 *              yet use ≤ the limit. Of a server that is past the period: what it used; that has yet to begin it: its
 *              entitlement then; without periods: its static part.
 *   TIME       In 8 lengths of true time no more than 10 limits pass; without periods, no more than the static
 *              part in any length.
 */
#ifndef WEIR_TESTS_CTL_PSHIFT_FAULTS_H
#define WEIR_TESTS_CTL_PSHIFT_FAULTS_H

#include "base/rng.h"
#include "ctl/pshift-control.h"
#include "ctl/pshift-server.h"
#include "test.h"
#include <errno.h>

#define MOST     6 /* servers */
#define BUCKETS  4
#define LIMITED  3 /* the first of them */
#define CHIEFS   2
#define LEADERS  (CHIEFS + PSHIFT_STAND_INS)
#define LENGTH   (400 * WEIR_MS)
#define STEP     (2 * WEIR_MS)
#define PERIOD   ((unsigned)(LENGTH / STEP)) /* steps */
#define HISTORY  64                          /* periods that are remembered */
#define PARCELS  1024                        /* more are lost */
#define VERSIONS 64
#define WINDOW   8 /* lengths */
#define RING     1024

struct node { /* a process */
	weir_time offset;
	double speed;
	bool up, frozen;
	uint64_t instance;
	unsigned version; /* of the policy */
};

struct place { /* a bucket at a server */
	int64_t r, l;
	uint64_t arrived, served, queued;
	double waited;
	uint64_t loop;     /* so many wait, always; else … */
	double rate, part; /* … arrivals a second */
	uint64_t looked;   /* served, at the last look */
	struct book {      /* used, by the number of the period */
		uint64_t of[HISTORY];
		int64_t used[HISTORY];
	} mine, before;         /* by this instance and by earlier ones */
	weir_time last[RING];   /* when the last ones were served, by its own clock */
	uint64_t n_last, since; /* served in all; when it came to its static part */
};

static struct world {
	struct rng rng;
	weir_time now;
	size_t n; /* servers */
	struct node servers[MOST], leaders[LEADERS];
	struct pshift_server *server[MOST];
	struct pshift_control *control[LEADERS];
	struct place places[MOST][BUCKETS];
	bool is_static[MOST], forgets;
	bool cut[2][MOST][LEADERS]; /* [1]: of reports */
	double loss, twice, stuck;
	weir_time delay;
	struct parcel {
		weir_time at; /* 0: free */
		size_t server, leader;
		bool up;
		size_t n;
		uint8_t *bytes;
	} parcels[PARCELS];
	size_t n_parcels;
	uint64_t instances;
	unsigned version;
	int64_t limit[VERSIONS][BUCKETS], reservation[VERSIONS][BUCKETS];
	weir_time left[VERSIONS]; /* when the last node left it */
	int64_t passed[BUCKETS], windows[WINDOW + 1][BUCKETS];
	uint64_t window;
	int64_t label[4096][BUCKETS]; /* served, by the period that the server was in */
	weir_time calm;               /* since when no fault has happened */
	struct lease_message in;
} w;

static bool chance(double p)
{
	return rng_double(&w.rng) < p;
}

static weir_time clock_of(const struct node *x)
{
	return x->offset + (weir_time)((double)w.now * x->speed);
}

static bool runs(const struct node *x)
{
	return x->up && !x->frozen;
}

/* ---- messages */

static void post(size_t server, size_t leader, bool up, const struct lease_message *m)
{
	unsigned copies = chance(w.loss) ? 0 : chance(w.twice) ? 2 : 1;
	bool local = leader == CHIEFS + server; /* a stand-in and its own server */
	const struct node *to = up ? &w.leaders[leader] : &w.servers[server];

	/* Of what a frozen one is sent the first wait for it. */
	if (to->frozen && w.n_parcels > PARCELS / 4)
		return;
	if (w.cut[up][server][leader] && !local)
		return;
	for (size_t i = 0; copies && i < PARCELS; i++) {
		struct parcel *p = &w.parcels[i];
		double late = (double)(chance(w.stuck) ? 3 * LENGTH : w.delay);

		if (p->at)
			continue;
		p->at = w.now + 1 + (weir_time)(rng_double(&w.rng) * late);
		p->server = server;
		p->leader = leader;
		p->up = up;
		p->bytes = realloc(p->bytes, LEASE_FRAME(m->n));
		CHECK(p->bytes);
		p->n = lease_write(p->bytes, m);
		w.n_parcels = i < w.n_parcels ? w.n_parcels : i + 1;
		copies--;
	}
}

static void server_sends(void *arg, const struct lease_message *m)
{
	for (size_t k = 0; k < LEADERS; k++)
		if (w.control[k])
			post((size_t)((struct node *)arg - w.servers), k, true, m);
}

static void leader_sends(void *arg, size_t server, const struct lease_message *m)
{
	post(server, (size_t)((struct node *)arg - w.leaders), false, m);
}

static void grant(void *arg, size_t index, int64_t r, int64_t l)
{
	struct place *p = &w.places[(struct node *)arg - w.servers][index];

	p->r += r;
	p->l += l;
	CHECK(p->r >= 0 && p->l >= 0);
}

/* ---- the judge */

static int64_t part_of(const struct node *x, size_t i)
{
	return w.limit[x->version][i] / (int64_t)w.n;
}

/* The most of all policies that are in force somewhere, or were until a lease of then has ended. */
static int64_t limit_of(size_t i)
{
	int64_t most = w.limit[w.version][i];

	for (unsigned v = 0; v < w.version; v++)
		if (w.now - w.left[v] <= (PSHIFT_HOLD + PSHIFT_GAP + 2) * LENGTH &&
			w.limit[v][i] > most)
			most = w.limit[v][i];
	return most;
}

static void note_versions(void)
{
	for (size_t j = 0; j < w.n; j++)
		if (w.servers[j].up)
			w.left[w.servers[j].version] = w.now;
	for (size_t k = 0; k < LEADERS; k++)
		if (w.control[k])
			w.left[w.leaders[k].version] = w.now;
}

static int64_t used_of(const struct book *b, uint64_t period)
{
	return b->of[period % HISTORY] == period ? b->used[period % HISTORY] : 0;
}

static void remember(struct book *b, uint64_t period, int64_t used)
{
	size_t at = period % HISTORY;

	b->used[at] = used_of(b, period) + used;
	b->of[at] = period;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What a server has used of a period, or may yet. */
static int64_t potential(size_t j, size_t i, uint64_t period)
{
	const struct node *x = &w.servers[j];
	const struct place *p = &w.places[j][i];
	int64_t before = used_of(&p->before, period), mine = used_of(&p->mine, period);
	int64_t part = part_of(x, i);
	struct pshift_server_status s;
	struct pshift_server_tokens t;

	if (!x->up)
		return before;
	pshift_server_status(w.server[j], &s);
	pshift_server_tokens(w.server[j], i, &t);
	if (s.state == LEASE_BLIND || s.period > period)
		return before + mine;
	if (s.state == LEASE_STATIC || period > s.granted + PSHIFT_HOLD + PSHIFT_GAP)
		return before + most(part, mine);
	if (s.period < period)
		return before + (period > s.until && t.limit > part ? part : t.limit);
	t.used += (int64_t)(p->served - p->looked);
	return before + most(most(t.cap, t.used), mine);
}

static void show(size_t i, uint64_t period)
{
	for (size_t j = 0; j < w.n; j++) {
		struct pshift_server_status s = {0};
		struct pshift_server_tokens t = {0};

		if (w.servers[j].up) {
			pshift_server_status(w.server[j], &s);
			pshift_server_tokens(w.server[j], i, &t);
		}
		printf("s%zu%s%s: state %d, period %llu, granted %llu until %llu gen %llu, cap "
		       "%lld limit %lld used %lld: %lld (%lld before, %lld mine)\n",
			j + 1, w.servers[j].up ? "" : " down", w.servers[j].frozen ? " frozen" : "",
			(int)s.state, (unsigned long long)s.period, (unsigned long long)s.granted,
			(unsigned long long)s.until, (unsigned long long)s.generation,
			(long long)t.cap, (long long)t.limit, (long long)t.used,
			(long long)potential(j, i, period),
			(long long)used_of(&w.places[j][i].before, period),
			(long long)used_of(&w.places[j][i].mine, period));
	}
	for (size_t k = 0; k < LEADERS; k++) {
		struct pshift_control_status s = {0};

		if (!w.control[k])
			continue;
		pshift_control_status(w.control[k], &s);
		printf("c%zu%s: %s, period %llu, gen %llu\n", k + 1,
			w.leaders[k].frozen ? " frozen" : "",
			s.started   ? "leads"
			: s.standby ? "stands by"
				    : "asks",
			(unsigned long long)s.period, (unsigned long long)s.generation);
	}
}

static void judge(void)
{
	for (size_t j = 0; j < w.n; j++) {
		struct pshift_server_status s;

		if (!runs(&w.servers[j]))
			continue;
		pshift_server_status(w.server[j], &s);
		if (s.state != LEASE_LEASED && s.state != LEASE_HELD)
			continue;
		for (size_t i = 0; i < LIMITED; i++) {
			int64_t sum = 0;

			for (size_t k = 0; k < w.n; k++)
				sum += potential(k, i, s.period);
			if (sum > limit_of(i))
				show(i, s.period);
			if (sum > limit_of(i))
				FAIL("at %.3f, period %llu: bucket %zu may have %lld of %lld",
					(double)w.now / 1e9, (unsigned long long)s.period, i,
					(long long)sum, (long long)limit_of(i));
		}
	}
}

static void judge_window(void)
{
	int64_t(*to)[BUCKETS] = &w.windows[w.window % (WINDOW + 1)];
	int64_t(*from)[BUCKETS] = &w.windows[(w.window + 1) % (WINDOW + 1)];

	if (w.now % LENGTH)
		return;
	memcpy(to, w.passed, sizeof(*to));
	for (size_t i = 0; i < LIMITED && w.window >= WINDOW; i++)
		CHECK((*to)[i] - (*from)[i] <= (WINDOW + 2) * limit_of(i));
	w.window++;
}

/* Without periods: no more than the part in any length. */
static void judge_static(size_t j, size_t i)
{
	struct place *p = &w.places[j][i];
	weir_time now = clock_of(&w.servers[j]);
	uint64_t part = (uint64_t)part_of(&w.servers[j], i);

	CHECK(part > 0 && part < RING);
	if (p->n_last - p->since >= part)
		CHECK(now - p->last[(p->n_last - part) % RING] >= LENGTH);
	p->last[p->n_last++ % RING] = now;
}

/* ---- processes */

static struct pshift_server_bucket server_bucket(const struct node *x, size_t i)
{
	int64_t limit = w.limit[x->version][i], res = w.reservation[x->version][i];

	return (struct pshift_server_bucket){.id = i + 1,
		.reserved = res / (int64_t)w.n,
		.limit = i < LIMITED ? limit / (int64_t)w.n : LEASE_NO_LIMIT,
		.reservation = res};
}

static void start_server(size_t j, bool fresh)
{
	struct node *x = &w.servers[j];
	char name[] = {'s', (char)('1' + j), 0};
	struct pshift_server_config c = {.name = name,
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
		struct pshift_server_bucket b = server_bucket(x, i);

		p->r = p->l = 0;
		p->arrived = p->served = p->looked = p->queued = 0;
		p->mine = (struct book){0};
		p->waited = 0;
		p->since = p->n_last;
		CHECK_INT(pshift_server_add(w.server[j], &b, 0), i);
	}
	w.is_static[j] = fresh;
}

static struct pshift_control_bucket control_bucket(const struct node *x, size_t i)
{
	return (struct pshift_control_bucket){.id = i + 1,
		.reservation = w.reservation[x->version][i],
		.limit = i < LIMITED ? w.limit[x->version][i] : LEASE_NO_LIMIT,
		.parts = (uint32_t)w.n};
}

static void start_leader(size_t k)
{
	struct node *x = &w.leaders[k];
	char name[] = {'c', (char)('1' + k), 0};
	struct pshift_control_config c = {.name = name,
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
		struct pshift_control_bucket b = control_bucket(x, i);

		CHECK_INT(pshift_control_bucket(w.control[k], &b), i);
	}
}

/* `told`: its connections are closed, which is noticed where there is a way. */
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

/* What it used counts on; without periods, in the newest that there is. */
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

static void look(size_t j)
{
	struct pshift_server_load loads[BUCKETS];
	struct pshift_server_status s;

	for (size_t i = 0; i < BUCKETS; i++) {
		const struct place *p = &w.places[j][i];

		loads[i] = (struct pshift_server_load){.arrived = p->arrived,
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

/* All that it has tokens for: what may pass does. A loop asks for more at once, a few times. */
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
		/* A frozen one reads what was sent to it, later. */
		if (up ? w.leaders[k].up && w.leaders[k].frozen : w.servers[j].frozen)
			continue;
		p->at = 0;
		CHECK(lease_read(p->bytes, p->n, &w.in) == PEER_TAKEN);
		if (up && w.control[k]) {
			pshift_control_receive(w.control[k], clock_of(&w.leaders[k]), &w.in);
		} else if (!up && w.servers[j].up) {
			look(j);
			pshift_server_receive(w.server[j], clock_of(&w.servers[j]), &w.in);
			look(j);
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
			look(j);
		serve(j);
	}
	if (!w.forgets)
		judge();
	judge_window();
}

static void run(unsigned steps)
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
	w.limit[v][2] = w.reservation[v][2]; /* all is reserved */
	w.version = v;
}

static void take_policy(struct node *x, struct pshift_server *s, struct pshift_control *c)
{
	x->version = w.version;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct pshift_server_bucket b = server_bucket(x, i);
		struct pshift_control_bucket k = control_bucket(x, i);

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

static struct pshift_control_status status_of(size_t k)
{
	struct pshift_control_status s = {0};

	if (w.control[k])
		pshift_control_status(w.control[k], &s);
	return s;
}

#endif
