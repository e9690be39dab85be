/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pace: a cluster's max holds over every second, too, not only over a QoS period; on the network of
 * tests/control/pshift/rig.h, in virtual time.
 *
 *   - While demand is steady, no second has more than 1.05 times the max, over all servers; also not
 *     when a controller takes over, or servers end and start.
 *   - After demand moved, no second has more than that and the reservation of a period: a lease.
 *   - A loop that moves has most of its min in the first period, and all of it in the second.
 *   - Pacing costs nothing: a bucket that is always busy has its max, and its min.
 */
#define LENGTH (5 * WEIR_SEC)
#define LAST   4096
#include "control/pshift/rig.h"

#define MAX    750 /* tokens a period: 150 a second */
#define SECOND (WEIR_SEC / STEP)

/* Services of each bucket in the last second. */
static struct {
	int64_t at[SECOND], last;
	int64_t now, most;
} seconds[LIMITED];

static void watch(void)
{
	size_t slot = (size_t)(w.now / STEP) % SECOND;

	for (size_t i = 0; i < LIMITED; i++) {
		int64_t more = w.served[i] - seconds[i].last;

		seconds[i].last = w.served[i];
		seconds[i].now += more - seconds[i].at[slot];
		seconds[i].at[slot] = more;
		if (seconds[i].now > seconds[i].most)
			seconds[i].most = seconds[i].now;
	}
}

static void run_for(weir_time span)
{
	for (weir_time end = w.now + span; w.now < end;) {
		calm(1);
		watch();
	}
}

static void forget(void)
{
	for (size_t i = 0; i < LIMITED; i++)
		seconds[i].most = 0;
}

/* Run a closed loop of bucket i at the servers whose bits are set, and none elsewhere. */
static void loop_at(size_t i, unsigned servers)
{
	for (size_t j = 0; j < SERVERS; j++) {
		struct gate *g = &w.machines[j].gates[i];

		g->closed = servers >> j & 1;
		g->rate = 0;
		if (!g->closed)
			g->queued = 0;
	}
}

/* Start with the same max for all buckets; the first reserves all of it, the others less and
 * less, or (closely) all of them most of it. */
static bool closely;

static void start(uint64_t number)
{
	begin(number, true);
	end();
	memset(seconds, 0, sizeof(seconds));
	for (size_t i = 0; i < LIMITED; i++) {
		w.limit[i] = MAX;
		w.reservation[i] = closely ? MAX - MAX / 9 * (int64_t)i : MAX / (int64_t)(1 + i);
	}
	for (size_t j = 0; j < SERVERS; j++) {
		w.machines[j].server = NULL;
		w.machines[j].capacity = 1500;
		start_server(j, true);
	}
	start_control(0);
	for (size_t i = 0; i < BUCKETS; i++)
		loop_at(i, 0);
}

static void show(const char *what)
{
	printf("%s:", what);
	for (size_t i = 0; i < LIMITED; i++)
		printf(" %.3f", (double)seconds[i].most / ((double)MAX * WEIR_SEC / LENGTH));
	printf("\n");
}

static void at_most(double times)
{
	for (size_t i = 0; i < LIMITED; i++)
		CHECK((double)seconds[i].most <= times * (double)MAX * WEIR_SEC / LENGTH);
}

/* Loops at all servers, at three, at two and at one. */
static void steady(void)
{
	int64_t before[LIMITED];

	start(seed());
	loop_at(0, 0x1f);
	loop_at(1, 0x07);
	loop_at(2, 0x11);
	loop_at(3, 0x08);
	run_for(4 * LENGTH);
	forget();
	memcpy(before, w.served, sizeof(before));
	run_for(8 * LENGTH);
	show("steady, most in a second / max");
	at_most(1.05);
	/* All but the floors of servers without demand. */
	for (size_t i = 0; i < LIMITED; i++)
		CHECK(w.served[i] - before[i] >= 8 * (MAX - MAX / 16));
	CHECK(w.served[0] - before[0] >= 8 * (MAX - MAX / 100));
	end();
}

/* Arrivals at three fifths of the max, unevenly spread: tokens not used in a second are not added
 * to the next. */
static void open_loops(void)
{
	start(seed() + 1);
	for (size_t i = 0; i < LIMITED; i++) {
		for (size_t j = 0; j < SERVERS; j++)
			w.machines[j].gates[i].rate = (double)(6 + 12 * ((i + j) % 3));
	}
	run_for(10 * LENGTH);
	forget();
	run_for(4 * LENGTH);
	at_most(1.05);
	end();
}

/* A loop moves from server to server at any moment of a period; another stops and starts. */
static void moves(void)
{
	start(seed() + 2);
	for (int k = 0; k < 40; k++) {
		loop_at(0, 1u << k % SERVERS);
		loop_at(1, 3u << k % (SERVERS - 1));
		loop_at(2, k % 2 ? 0x1f : 0);
		loop_at(3, k % 3 ? 0x01 : 0x1e);
		run_for(LENGTH / 3 + (weir_time)rng_below(&w.rng, LENGTH));
		if (k == 8)
			forget();
	}
	show("moves, most in a second / max");
	for (size_t i = 0; i < LIMITED; i++)
		CHECK((double)(seconds[i].most - w.reservation[i]) <=
			1.05 * (double)MAX * WEIR_SEC / LENGTH);
	end();
}

/* Return what bucket i has in the next length of a period, as a part of its reservation. */
static double next_period(size_t i)
{
	int64_t before = w.served[i];

	run_for(LENGTH);
	return (double)(w.served[i] - before) / (double)w.reservation[i];
}

/* A loop that was at one server for long is at another from some moment of a period on, alone or beside others: with a
 * controller it misses no more of its min than without one. */
static void moves_once(void)
{
	for (uint64_t k = 0; k < 4; k++) {
		start(seed() + 100 + k);
		for (size_t i = 1; i < LIMITED && k % 2; i++)
			loop_at(i, 0x1f);
		loop_at(0, 1);
		run_for(4 * LENGTH + (weir_time)k * (LENGTH / 4));
		loop_at(0, 2);
		CHECK(next_period(0) >= 0.8);
		CHECK(next_period(0) >= 0.99);
		end();
	}
}

/* Without the controller: within the held grants, and then within static parts. */
static void alone(void)
{
	start(seed() + 3);
	for (size_t i = 0; i < LIMITED; i++)
		loop_at(i, 0x1f);
	run_for(4 * LENGTH);
	forget();
	w.strict = false;
	kill_control(0);
	run_for(10 * LENGTH);
	show("without a controller, most in a second / max");
	at_most(1.05);
	end();
}

/* A controller comes back, or another one takes over, at any moment of a period, while servers hold
 * their grants or have fallen back to static parts. Demand is steady, so nothing is made up for. */
static void takeovers(void)
{
	start(seed() + 4);
	loop_at(0, 0x01);
	loop_at(1, 0x07);
	loop_at(2, 0x11);
	loop_at(3, 0x08);
	run_for(6 * LENGTH);
	forget();
	w.strict = false;
	for (int k = 0; k < 8; k++) {
		kill_control((size_t)k % CHIEFS);
		run_for((weir_time)rng_below(&w.rng, (k % 2 ? 10 : 3) * LENGTH));
		start_control((size_t)(k + 1) % CHIEFS);
		run_for(5 * LENGTH + (weir_time)rng_below(&w.rng, LENGTH));
	}
	show("takeovers, most in a second / max");
	at_most(1.05);
	end();
}

/* Servers end and start at any moment of a period, and a controller now and then, while the loops are at the servers
 * whose bits are set: tokens move between servers, demand does not. */
static void restarts_at(unsigned servers, uint64_t number)
{
	start(number);
	loop_at(0, servers);
	loop_at(1, servers ^ 0x1f);
	loop_at(2, 0x1f);
	loop_at(3, servers);
	run_for(6 * LENGTH);
	forget();
	w.strict = false;
	for (int k = 0; k < 9; k++) {
		size_t j = 2 + (size_t)k % 3;

		w.machines[j].down = true;
		if (k % 4 == 3)
			kill_control(0);
		run_for((weir_time)rng_below(&w.rng, (k % 2 ? 10 : 2) * LENGTH));
		w.machines[j].down = false;
		restart(j);
		if (k % 4 == 3)
			start_control(0);
		run_for(3 * LENGTH + (weir_time)rng_below(&w.rng, 5 * LENGTH));
	}
	show("restarts, most in a second / max");
	at_most(1.05);
	end();
}

/* 0x04, 0x08: the only server of a loop starts anew, with the controller or without. */
static void restarts(void)
{
	static const unsigned at[] = {0x1f, 0x04, 0x1d, 0x05, 0x1c, 0x08};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		restarts_at(at[i], seed() + 5 + i);
}

/* Worlds in which tokens are on their way between servers for a part of a period, and are granted late in it: servers
 * do not use them faster than the limit's pace. */
static void late_grants(void)
{
	restarts_at(0x1f, 1124);
	restarts_at(0x1c, 1072);
	restarts_at(0x1c, 1135);
	restarts_at(0x1d, 1140);
}

static void restarts_where_most_is_reserved(void)
{
	closely = true;
	restarts();
	closely = false;
}

/* The same where most is reserved: claims of a bucket that missed its reservation are not made up for late in a period
 * at more than the limit's pace. */
static void late_claims(void)
{
	closely = true;
	restarts_at(0x1d, 2022);
	restarts_at(0x1c, 2158);
	closely = false;
}

int main(void)
{
	printf("seed %llu\n", (unsigned long long)seed());
	RUN(steady);
	RUN(open_loops);
	RUN(moves);
	RUN(moves_once);
	RUN(alone);
	RUN(takeovers);
	RUN(restarts);
	RUN(late_grants);
	RUN(late_claims);
	RUN(restarts_where_most_is_reserved);
	return 0;
}
