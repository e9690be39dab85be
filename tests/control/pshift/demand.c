/* SPDX-License-Identifier: BSD-3-Clause */
/* demand: what is taken for a closed loop and what not, and what of random arrivals is reported. */
#include "base/rng.h"
#include "control/lone-server.h"

/* Limits that nobody comes to. */
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
	x.gates[0].loop = 0; /* it goes, and its queue runs dry */
	lone_run(&x, LONE_LENGTH);
	CHECK(!is_closed(&x, 0) && is_closed(&x, 1));
	lone_end(&x);
}

/* Most of its clients leave at once: those that stay are a loop for themselves. */
static void who_stays_is_closed(void)
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

/* A loop that is served as fast as it asks until its limit is spent, and then not at all: it never seems to
 * want less than the limit for a period. */
static void held_is_not_little(void)
{
	struct lease_tokens t = {1, 3000, 3000, 3000, 3000};
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

/* Nearly as much goes as comes, and something always waits: but nobody waits for an answer. */
static void even_is_not(void)
{
	struct lone x;
	int closed = 0;

	begin(&x, 19.3);
	x.gates[0].rate = 10;
	x.gates[1].rate = 10;
	x.gates[0].queued = x.gates[0].arrived = 4; /* stands, since the server is full */
	x.gates[1].queued = x.gates[1].arrived = 4;
	for (int k = 0; k < 100; k++) {
		lone_run(&x, LONE_LENGTH / 5);
		closed += is_closed(&x, 0) || is_closed(&x, 1);
	}
	CHECK(x.gates[0].queued >= 3);
	CHECK_INT(closed, 0);
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

/* 20 a second at random is 4 ± 2 in an interval: what is reported is within a third, nearly always. */
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
	/* Evenly 60: known as soon as an interval has seen it, and exactly after the next. */
	x.gates[0].rate = 60;
	lone_run(&x, LONE_LENGTH);
	CHECK_NEAR((double)x.demands[0].arriving, 60, 0.1);
	lone_end(&x);
}

int main(void)
{
	RUN(loop_is_closed);
	RUN(who_stays_is_closed);
	RUN(held_is_not_little);
	RUN(even_is_not);
	RUN(random_is_not);
	RUN(random_is_smoothed);
	return 0;
}
