/* SPDX-License-Identifier: BSD-3-Clause */
/* demand: which demand is taken for a closed loop, and how random arrivals are reported. */
#include "base/rng.h"
#include "control/lone-server.h"

/* Start with limits that are never reached. */
static void begin(struct lone *x, double capacity)
{
	lone_begin(x, capacity, true);
	for (int i = 0; i < 2; i++)
		lone_add(x, 100, 2000);
	lone_ask(x);
}

static bool is_closed(const struct lone *x, size_t i)
{
	struct pshift_server_tokens t;

	pshift_server_tokens(x->server, i, &t);
	return t.closed;
}

static void loop_is_closed(void)
{
	struct lone x;

	begin(&x, 100);
	x.gates[0].loop = x.gates[1].loop = 5;
	lone_run(&x, 3 * LONE_LENGTH);
	CHECK(is_closed(&x, 0) && is_closed(&x, 1));
	x.gates[0].loop = 0; /* the clients leave, and the queue drains */
	lone_run(&x, LONE_LENGTH);
	CHECK(!is_closed(&x, 0) && is_closed(&x, 1));
	lone_end(&x);
}

/* Most clients leave at once: the remaining ones are still a closed loop. */
static void remaining_clients_are_a_closed_loop(void)
{
	struct lone x;

	begin(&x, 100);
	x.gates[0].loop = 118;
	lone_run(&x, 3 * LONE_LENGTH);
	x.gates[0].loop = x.gates[0].queued = 5;
	lone_run(&x, LONE_LENGTH / 5);
	CHECK(!is_closed(&x, 0));
	lone_run(&x, LONE_LENGTH);
	CHECK(is_closed(&x, 0));
	lone_end(&x);
}

/* A loop that is served as fast as it asks until its limit is used up, and then not at all: its
 * reported demand never falls below the limit for a period. */
static void held_is_not_little(void)
{
	struct lease_tokens t = {1, 3000, 3000, 3000, 3000, false};
	int64_t least = INT64_MAX;
	struct lone x;

	lone_begin(&x, 5000, true);
	lone_add(&x, 1000, 1000);
	x.gates[0].loop = 5;
	lone_run(&x, LONE_LENGTH);
	lone_ask(&x);
	for (int k = 0; k < 60; k++) {
		const struct lease_demand *d = &x.demands[0];

		if (k % 5 == 0)
			CHECK(lone_grant(&x, &t, 1) == PEER_TAKEN);
		lone_run(&x, LONE_LENGTH / 5);
		CHECK(x.said.n == 0 || d->bucket == 1);
		if (k >= 10 && !d->closed && d->queue + d->arriving < least)
			least = d->queue + d->arriving;
	}
	CHECK(least >= 3000);
	lone_end(&x);
}

/* Arrivals and services are nearly equal, and some requests always wait: but no client waits for
 * an answer. */
static void even_is_not(void)
{
	struct lone x;
	int closed = 0;

	begin(&x, 19.3);
	x.gates[0].rate = 10;
	x.gates[1].rate = 10;
	x.gates[0].queued = x.gates[0].arrived = 4; /* stays, since the server is full */
	x.gates[1].queued = x.gates[1].arrived = 4;
	for (int k = 0; k < 100; k++) {
		lone_run(&x, LONE_LENGTH / 5);
		closed += is_closed(&x, 0) || is_closed(&x, 1);
	}
	CHECK(x.gates[0].queued >= 3);
	CHECK_INT(closed, 0);
	lone_end(&x);
}

/* One and a half come in an interval, and a few always wait: an interval in which two come is no
 * sign of more. */
static void few_are_not_more(void)
{
	struct lone x;
	int64_t most = 0;

	begin(&x, 14.6);
	for (int i = 0; i < 2; i++) {
		x.gates[i].rate = 7.3;
		x.gates[i].queued = x.gates[i].arrived = 4;
	}
	for (int k = 0; k < 100; k++) {
		lone_run(&x, LONE_LENGTH / 5);
		for (size_t i = 0; k >= 50 && i < x.said.n; i++)
			most = x.demands[i].arriving > most ? x.demands[i].arriving : most;
	}
	CHECK(x.gates[0].queued >= 1);
	CHECK(most >= 7 && most <= 8);
	lone_end(&x);
}

static void random_is_not(void)
{
	struct rng rng;
	struct lone x;
	int closed = 0;

	rng_init(&rng, 1, "pshift-demand");
	begin(&x, 40);
	for (int k = 0; k < 100000; k++) {
		for (int i = 0; i < 2; i++)
			x.gates[i].rate = rng_double(&rng) < 0.02 ? 1000 : 0; /* 20 a second */
		lone_run(&x, LONE_STEP);
		closed += is_closed(&x, 0) + is_closed(&x, 1);
	}
	CHECK(closed < 2000); /* of 200,000 */
	lone_end(&x);
}

/* 20 a second at random is 4 ± 2 in an interval: the report is within a third, nearly always. */
static void random_is_smoothed(void)
{
	struct rng rng;
	struct lone x;
	int far = 0, n = 0;

	rng_init(&rng, 2, "pshift-demand");
	begin(&x, 1000);
	for (int k = 0; k < 60000; k++) {
		uint64_t reports = x.reports;

		x.gates[0].rate = rng_double(&rng) < 0.02 ? 1000 : 0;
		lone_run(&x, LONE_STEP);
		if (k < 10000 || reports == x.reports || !x.said.n || x.demands[0].bucket != 1)
			continue;
		n++;
		far += fabs((double)x.demands[0].arriving - 20) > 20. / 3;
	}
	CHECK(n > 50);
	CHECK(far * 6 <= n);
	/* A constant 60: reported after the first interval that sees it, and exactly after the
	 * next. */
	x.gates[0].rate = 60;
	lone_run(&x, LONE_LENGTH);
	CHECK_NEAR((double)x.demands[0].arriving, 60, 0.1);
	lone_end(&x);
}

int main(void)
{
	RUN(loop_is_closed);
	RUN(remaining_clients_are_a_closed_loop);
	RUN(held_is_not_little);
	RUN(even_is_not);
	RUN(few_are_not_more);
	RUN(random_is_not);
	RUN(random_is_smoothed);
	return 0;
}
