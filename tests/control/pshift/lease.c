/* SPDX-License-Identifier: BSD-3-Clause */
/* lease: the end of a lease, to the nanosecond, and a first request, which must not wait. */
#include "control/lone-server.h"
#include "control/pshift/server-impl.h"

#define LIMIT 500

/* Start one bucket with a limit, granted in period 2 and never again, with unlimited demand. */
static void begin(struct lone *x)
{
	struct lease_tokens t = {1, 100, LIMIT, 100, LIMIT, false};

	lone_begin(x, 5000, true);
	lone_add(x, 20, 60);
	lone_run(x, LONE_LENGTH);
	lone_ask(x);
	CHECK(lone_grant(x, &t, 1) == PEER_TAKEN);
	x->gates[0].loop = 100;
}

/* No period exceeds its cap, and when it is used up the gate has no tokens; nor between the end
 * of a period by one clock and its begin by another. */
static void ends_on_time(void)
{
	struct pshift_server_tokens t;
	struct lone x;

	begin(&x);
	lone_mark(&x);
	lone_run(&x, LONE_LENGTH - LONE_LENGTH / PSHIFT_DRIFT - 2 * LONE_STEP);
	for (weir_time end = 2 * LONE_LENGTH; x.now < end; x.now += LONE_STEP / 10) {
		lone_look(&x);
		if (x.now < end - LONE_LENGTH / PSHIFT_DRIFT)
			continue;
		CHECK_INT(x.gates[0].r + x.gates[0].l, 0);
	}
	CHECK(lone_since(&x, 0) <= LIMIT && lone_since(&x, 0) > LIMIT * 9 / 10);
	x.now = 2 * LONE_LENGTH + LONE_LENGTH / PSHIFT_DRIFT;
	lone_mark(&x);
	lone_run(&x, 2 * PSHIFT_PACE);
	pshift_server_tokens(x.server, 0, &t);
	CHECK(t.cap == LIMIT && lone_since(&x, 0) > 0);
	lone_end(&x);
}

/* By period: leased, held, held within the static part, static; and never above what the state
 * allows. */
static void states_if_held_for(uint64_t hold)
{
	struct lease_tokens t = {1, 100, LIMIT, 100, LIMIT, false};
	struct pshift_server_status s;
	struct lone x;

	begin(&x);
	x.hold = hold;
	CHECK(lone_grant(&x, &t, 1) == PEER_TAKEN);
	pshift_server_status(x.server, &s);
	CHECK_INT(s.until, 2 + hold);
	for (uint64_t k = 2; k <= 2 + PSHIFT_HOLD + PSHIFT_GAP + 2; k++) {
		bool late = k > 2 + hold;

		lone_mark(&x);
		lone_run(&x, LONE_LENGTH / 2);
		CHECK_INT(lone_state(&x), k <= 3                              ? LEASE_LEASED
					  : k <= 2 + PSHIFT_HOLD + PSHIFT_GAP ? LEASE_HELD
									      : LEASE_STATIC);
		lone_run(&x, LONE_LENGTH / 2);
		CHECK(lone_since(&x, 0) <= (late ? 60 : LIMIT));
		CHECK(lone_since(&x, 0) >= (late ? 50 : LIMIT * 9 / 10));
	}
	lone_end(&x);
}

static void states(void)
{
	states_if_held_for(PSHIFT_HOLD);
	states_if_held_for(2);
}

/* Two controllers may have the same generation, but their periods differ. */
static void another_of_the_same_generation(void)
{
	struct lease_tokens t = {1, 100, LIMIT, 100, LIMIT, false};
	struct pshift_server_status s;
	struct lone x;

	begin(&x);
	lone_run(&x, LONE_LENGTH / 2);
	x.instance = 1;
	x.late = LONE_LENGTH / 4;
	lone_ask(&x);
	CHECK(lone_grant(&x, &t, 1) == PEER_TAKEN);
	lone_run(&x, LONE_LENGTH / 2 + LONE_LENGTH / 8);
	pshift_server_status(x.server, &s);
	CHECK_INT(s.period, 2);
	lone_run(&x, LONE_LENGTH / 4);
	pshift_server_status(x.server, &s);
	CHECK_INT(s.period, 3);
	lone_end(&x);
}

/* Of two controllers with the same generation the higher instance wins; the other one again, when
 * that has been silent for longer than a vote counts. */
static void the_lower_of_the_same_generation(void)
{
	struct lease_message m = {.kind = LEASE_ASK, .instance = 1, .sequence = 1};
	struct lone x;

	begin(&x);
	m.grant.generation = x.generation;
	x.instance = 2;
	lone_ask(&x);
	lone_run(&x, (PSHIFT_YOUNG - 1) * LONE_LENGTH);
	CHECK(pshift_server_receive(x.server, x.now, &m) == PEER_OLD);
	lone_run(&x, 2 * LONE_LENGTH);
	CHECK(pshift_server_receive(x.server, x.now, &m) == PEER_TAKEN);
	lone_end(&x);
}

/* The controller returns while the server is HELD: the use in the period keeps counting. */
static void returns(void)
{
	struct lease_tokens t = {1, 100, LIMIT, 100, LIMIT, false};
	struct lone x;

	begin(&x);
	lone_run(&x, 3 * LONE_LENGTH);
	lone_mark(&x);
	lone_run(&x, LONE_LENGTH / 2);
	CHECK_INT(lone_state(&x), LEASE_HELD);
	x.generation++;
	lone_ask(&x);
	CHECK(lone_grant(&x, &t, 1) == PEER_TAKEN);
	CHECK_INT(lone_state(&x), LEASE_LEASED);
	lone_run(&x, LONE_LENGTH / 2);
	CHECK(lone_since(&x, 0) <= LIMIT && lone_since(&x, 0) > LIMIT * 9 / 10);
	lone_end(&x);
}

/* At a server where an idle bucket has only its floor, its first request waits less than 10 ms,
 * at any time and in any state. */
static void first_waits_for_nothing(void)
{
	struct lease_tokens t = {1, 0, 5, 0, 5, false};
	struct lone x;

	begin(&x);
	x.gates[0].loop = 0;
	CHECK(lone_grant(&x, &t, 1) == PEER_TAKEN);
	for (int k = 0; k < 3 * (PSHIFT_HOLD + PSHIFT_GAP + 4); k++) {
		lone_run(&x, LONE_LENGTH / 4 + (k % 7) * 10 * WEIR_MS);
		x.gates[0].rate = 1000;
		lone_run(&x, LONE_STEP);
		x.gates[0].rate = 0;
		lone_run(&x, 50 * WEIR_MS);
		CHECK_INT(x.gates[0].queued, 0);
	}
	CHECK(x.gates[0].longest < 10 * WEIR_MS);
	lone_end(&x);
}

/* A server whose capacity is fully claimed: all claims are met evenly over time, not the largest
 * at the end. */
static void claims_come_due(void)
{
	struct lease_tokens t[] = {{1, 600, 2000, 600, 2000, false},
		{2, 300, 2000, 300, 2000, false}, {3, 92, 2000, 92, 2000, false}};
	struct lone x;

	lone_begin(&x, 1000, true);
	for (size_t i = 0; i < 3; i++) {
		lone_add(&x, 20, 60);
		x.gates[i].loop = 5;
	}
	lone_run(&x, LONE_LENGTH);
	lone_ask(&x);
	CHECK(lone_grant(&x, t, 3) == PEER_TAKEN);
	lone_run(&x, LONE_LENGTH); /* its use without periods counts in the first one */
	lone_mark(&x);
	lone_run(&x, LONE_LENGTH / 2);
	CHECK(lone_since(&x, 0) >= 240 && lone_since(&x, 1) >= 120 && lone_since(&x, 2) >= 37);
	lone_run(&x, LONE_LENGTH / 2);
	CHECK(lone_since(&x, 0) >= 598 && lone_since(&x, 1) >= 298 && lone_since(&x, 2) >= 91);
	lone_end(&x);
}

int main(void)
{
	RUN(ends_on_time);
	RUN(states);
	RUN(another_of_the_same_generation);
	RUN(the_lower_of_the_same_generation);
	RUN(returns);
	RUN(first_waits_for_nothing);
	RUN(claims_come_due);
	return 0;
}
