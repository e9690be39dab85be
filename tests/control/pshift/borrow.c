/* SPDX-License-Identifier: BSD-3-Clause */
/* borrow: a server's use of R-tokens after its controller is gone. */
#include "control/lone-server.h"

#define BUCKETS 4
#define BIG     600 /* of 990 reserved tokens, at a server of 1,000 a second */

/* Start with entitlements of 600, 300, 60 and 30, and limits `times` as high; the last grant is
 * for period 2. */
static void begin(struct lone *x, const uint64_t loops[BUCKETS], int64_t times)
{
	static const int64_t parts[BUCKETS] = {BIG, 300, 60, 30};
	struct lease_tokens t[BUCKETS];

	lone_begin(x, 1000, true);
	for (size_t i = 0; i < BUCKETS; i++) {
		t[i] = (struct lease_tokens){
			i + 1, parts[i], times * parts[i], parts[i], times * parts[i], false};
		lone_add(x, 100, 200);
		x->gates[i].loop = loops[i];
	}
	lone_run(x, LONE_LENGTH);
	lone_ask(x);
	CHECK(lone_grant(x, t, BUCKETS) == PEER_TAKEN);
	lone_run(x, 2 * LONE_LENGTH);
	CHECK_INT(lone_state(x), LEASE_LEASED); /* period 3 is still covered by the lease */
}

/* All buckets are busy all the time, and reservations claim all but a hundredth of the server. */
static void keeps_reservations(void)
{
	static const uint64_t loops[BUCKETS] = {5, 5, 5, 5};
	struct lone x;

	begin(&x, loops, 2);
	for (uint64_t k = 4; k <= 2 + PSHIFT_HOLD; k++) {
		lone_mark(&x);
		lone_run(&x, LONE_LENGTH);
		CHECK_INT(lone_state(&x), LEASE_HELD);
		/* Clocks may differ by a thousandth, and the server starts late by so much. */
		CHECK(lone_since(&x, 0) >= BIG - 2);
		CHECK(lone_since(&x, 1) >= 300 - 2);
		CHECK(lone_since(&x, 2) >= 60 && lone_since(&x, 2) <= 121);
		CHECK(lone_since(&x, 3) >= 30 && lone_since(&x, 3) <= 61);
	}
	lone_end(&x);
}

/* The largest bucket is idle: its tokens are borrowed in proportion to entitlements, up to
 * limits. */
static void lends_unused_tokens(void)
{
	static const uint64_t loops[BUCKETS] = {0, 0, 50, 50};
	struct lone x;
	int64_t beyond[BUCKETS] = {0};

	/* With a limit close by, only paced tokens would be at the gate. */
	begin(&x, loops, 40);
	for (int k = 0; k < 1000; k++) {
		struct pshift_server_tokens t;

		lone_run(&x, LONE_STEP);
		for (size_t i = 2; i < BUCKETS; i++) {
			pshift_server_tokens(x.server, i, &t);
			if (t.used >= t.claim && t.r > beyond[i])
				beyond[i] = t.r;
		}
	}
	CHECK(beyond[2] > beyond[3] && beyond[3] > 0);
	lone_end(&x);
}

/* Where busy buckets claim all of the server's capacity, no bucket borrows. */
static void lends_no_claimed_tokens(void)
{
	static const uint64_t loops[BUCKETS] = {5, 5, 5, 5};
	struct lone x;

	begin(&x, loops, 2);
	x.capacity = 990;
	for (int k = 0; k < 3000; k++) {
		struct pshift_server_tokens t;

		lone_run(&x, LONE_STEP);
		for (size_t i = 0; i < BUCKETS; i++) {
			pshift_server_tokens(x.server, i, &t);
			CHECK(t.r <= (t.claim > t.used ? t.claim - t.used : 0) + 1);
		}
	}
	lone_end(&x);
}

/* Without periods and claims, static parts of 300 and 100 reserved at a server of 200 are served
 * 3 to 1. */
static void divides_when_static(void)
{
	struct lone x;

	lone_begin(&x, 200, true);
	lone_add(&x, 300, 1000);
	lone_add(&x, 100, 1000);
	x.gates[0].loop = x.gates[1].loop = 5;
	lone_run(&x, LONE_LENGTH);
	lone_mark(&x);
	lone_run(&x, 5 * LONE_LENGTH);
	CHECK_INT(lone_state(&x), LEASE_STATIC);
	CHECK_NEAR((double)lone_since(&x, 0), 750, 0.05);
	CHECK_NEAR((double)lone_since(&x, 1), 250, 0.15);
	lone_end(&x);
}

/* A server may be without a controller for hours. A bucket that borrowed for ten minutes keeps
 * at least half of its part while it repays, and has all of it five minutes later; with the
 * paper's debts it has 62 % for longer than it borrowed. */
static void debts_are_bounded(void)
{
	struct lone x;

	lone_begin(&x, 1000, true);
	for (size_t i = 0; i < BUCKETS; i++)
		lone_add(&x, 250, LEASE_NO_LIMIT);
	x.gates[0].loop = 50;
	for (size_t i = 1; i < BUCKETS; i++)
		x.gates[i].rate = 20; /* a bucket with little demand lends the rest */
	lone_run(&x, 600 * LONE_LENGTH);
	CHECK_INT(lone_state(&x), LEASE_STATIC);
	for (size_t i = 1; i < BUCKETS; i++)
		x.gates[i].loop = 50;
	lone_run(&x, LONE_LENGTH);
	lone_mark(&x);
	lone_run(&x, 10 * LONE_LENGTH);
	CHECK(lone_since(&x, 0) >= 10 * 120);
	lone_run(&x, 300 * LONE_LENGTH);
	lone_mark(&x);
	lone_run(&x, 10 * LONE_LENGTH);
	CHECK(lone_since(&x, 0) >= 10 * 240);
	lone_end(&x);
}

int main(void)
{
	RUN(keeps_reservations);
	RUN(lends_unused_tokens);
	RUN(lends_no_claimed_tokens);
	RUN(divides_when_static);
	RUN(debts_are_bounded);
	return 0;
}
