/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world: the machines and links of a cluster under pShift, for tests with faults, and their judge,
 * which shares no code with tests/control/pshift/rig.h. tests/control/pshift/faults.h has the
 * events.
 *
 * A world has some servers, two controllers and, if started, stand-ins. Messages are sent as bytes,
 * lost, doubled and reordered; each direction of each link may be cut. Processes are stopped,
 * started and frozen (a frozen process goes on later as if nothing had happened), clocks differ in
 * time and speed, and policies change on each machine at a different time. The judge checks:
 *
 *   POTENTIAL  At every moment, for each period that a server is in: Σ over servers of what each
 *              has used of it or may yet use ≤ the limit. A server past the period counts with its
 *              use; a server that has yet to begin it, with its entitlement then; without periods,
 *              with its static part.
 *   TIME       In 8 lengths of true time no more than 10 limits pass; without periods, no more than
 *              the static part in any length.
 */
#ifndef WEIR_TESTS_CTL_PSHIFT_WORLD_H
#define WEIR_TESTS_CTL_PSHIFT_WORLD_H

#include "base/rng.h"
#include "control/pshift/control.h"
#include "control/pshift/server.h"
#include "test.h"
#include <errno.h>

#define MOST     6 /* servers */
#define BUCKETS  4
#define LIMITED  3 /* the first of them */
#define CHIEFS   2
#define LEADERS  (CHIEFS + CLUSTER_STAND_INS)
#define LENGTH   (400 * WEIR_MS)
#define STEP     (2 * WEIR_MS)
#define PERIOD   ((unsigned)(LENGTH / STEP)) /* steps */
#define HISTORY  64                          /* periods that are remembered */
#define PARCELS  1024                        /* more messages are lost */
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
	uint64_t loop;     /* requests that always wait; else … */
	double rate, part; /* … rate: arrivals a second */
	uint64_t looked;   /* served, at the last report */
	struct book {      /* tokens used, by period */
		uint64_t of[HISTORY];
		int64_t used[HISTORY];
	} mine, before;         /* by this instance and by earlier ones */
	weir_time last[RING];   /* times of the last services, by its own clock */
	uint64_t n_last, since; /* services in all; when it fell back to its static part */
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
	bool sleeps; /* clocks stand still: services just after that may count to two periods */
	bool cut[2][MOST][LEADERS]; /* [1]: of reports to controllers */
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
	weir_time left[VERSIONS]; /* when the last node replaced it */
	int64_t passed[BUCKETS], windows[WINDOW + 1][BUCKETS], limits[WINDOW + 1][BUCKETS];
	uint64_t window;
	int64_t label[4096][BUCKETS]; /* served, by the server's period */
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

	/* Only the first messages to a frozen process wait for it. */
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

/* Return the largest limit of all policies in force anywhere, or in force until a lease of that
 * time ended. */
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

/* Return what a server has used of a period or may yet use. */
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
	return before + most(most(t.cap, w.sleeps ? 0 : t.used), mine);
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
				FAIL("at %.3f, period %llu: bucket %zu may have %lld of %lld",
					(double)w.now / 1e9, (unsigned long long)s.period, i,
					(long long)sum, (long long)limit_of(i));
		}
	}
}

/* Return the largest sum of limits over the last lengths. */
static int64_t limit_in_window(size_t i)
{
	int64_t limit = 0;

	for (size_t k = 0; k <= WINDOW; k++)
		limit = most(limit, w.limits[k][i]);
	return limit;
}

static void judge_window(void)
{
	size_t to = w.window % (WINDOW + 1), from = (w.window + 1) % (WINDOW + 1);

	if (w.now % LENGTH)
		return;
	for (size_t i = 0; i < LIMITED; i++) {
		w.windows[to][i] = w.passed[i];
		w.limits[to][i] = limit_of(i);
		CHECK(w.window < WINDOW ||
			w.windows[to][i] - w.windows[from][i] <= (WINDOW + 2) * limit_in_window(i));
	}
	w.window++;
}

/* Without periods: no more than the static part in any length. */
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

#endif
