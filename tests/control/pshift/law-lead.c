/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law-lead: which controller leads, and what a change of it costs: on the network of tests/control/pshift/rig.h, with
 * servers that are down or cut off, standbys, and controllers that start over and over.
 *
 *   A controller that starts while a server is down costs buckets whose demand does not move nothing.
 *   When the one that leads dies, a standby leads within two periods; a crash loop costs nothing.
 *   Only a controller that a majority of the servers follows grants; the others' servers go on without one.
 *   Where no controller is, a bucket whose demand moves has half of its reservation within a period, and all of it within
 *   three: a server stands in.
 *   No limit is passed in any period, over all servers, under any of this at once; not by a single token.
 */
#include "control/pshift/rig.h"

/* Each bucket wants all that it can have, at two servers other than the last one. */
static void demand_elsewhere(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (size_t j = 0; j < SERVERS; j++) {
			struct gate *g = &w.machines[j].gates[i];

			g->closed =
				j < SERVERS - 1 && (j + SERVERS - 1 - i % 4) % (SERVERS - 1) < 2;
			g->rate = 0;
			g->queued = 0;
		}
}

static struct pshift_control_status status_of(size_t k)
{
	struct pshift_control_status s = {0};

	if (w.chiefs[k].control)
		pshift_control_status(w.chiefs[k].control, &s);
	return s;
}

static void run(unsigned periods)
{
	for (unsigned i = 0; i < periods * LENGTH / STEP; i++)
		step();
}

/* Buckets that missed more than 5 % of their reservation, in the periods from `from` on. Of bucket 0 the limit is
 * the reservation: a server that is down may have its static part of it. */
static unsigned missed(uint64_t from)
{
	unsigned n = 0;

	CHECK(w.period > from + 3);
	for (uint64_t k = from; k + 3 < w.period; k++)
		for (size_t i = 1; i < BUCKETS; i++) {
			bool less = w.label[k][i] < w.reservation[i] * 95 / 100;

			if (less)
				printf("period %llu: bucket %zu has %lld of %lld\n",
					(unsigned long long)k, i, (long long)w.label[k][i],
					(long long)w.reservation[i]);
			n += less;
		}
	return n;
}

/* Steady demand, for long enough that all is placed: the first period to look at. */
static uint64_t steady(uint64_t n)
{
	begin(seed() * 1000 + n, false);
	demand_elsewhere();
	calm(20 * LENGTH / STEP);
	return w.period + 1;
}

static void a_server_is_down(void)
{
	uint64_t from = steady(1);

	w.machines[SERVERS - 1].down = true;
	kill_control(0);
	run(1);
	start_control(0);
	run(30);
	CHECK_INT(missed(from), 0);
	/* It comes back, in the state in which it was, and is taken on. */
	w.machines[SERVERS - 1].down = false;
	run(10);
	CHECK_INT(status_of(0).heard, SERVERS);
	CHECK_INT(missed(from), 0);
	end();
}

/* In the same moment, and one that never comes back while another one starts anew. */
static void a_server_starts_meanwhile(void)
{
	uint64_t from = steady(2);

	w.machines[SERVERS - 1].down = true;
	kill_control(0);
	start_control(0);
	run(3);
	kill_control(0);
	w.machines[SERVERS - 1].down = false;
	start_server(SERVERS - 1, false);
	start_control(0);
	run(30);
	CHECK_INT(missed(from), 0);
	CHECK_INT(status_of(0).heard, SERVERS);
	end();
}

/* ---- two controllers */

/* Periods until the controller grants, and all servers have its leases. */
static double periods_until_granting(size_t k)
{
	weir_time from = w.now;

	for (bool all = false; !all;) {
		CHECK(w.now - from < 10 * LENGTH);
		step();
		all = status_of(k).started;
		for (size_t j = 0; j < SERVERS; j++) {
			struct pshift_server_status s;

			pshift_server_status(w.machines[j].server, &s);
			all &= s.state == LEASE_LEASED && s.generation == status_of(k).generation;
		}
	}
	return (double)(w.now - from) / (double)LENGTH;
}

/* The one that came later takes over when it has lived for three periods, and the first stands by. */
static void a_standby_takes_over(void)
{
	uint64_t from = steady(3);
	double healed;

	start_control(1);
	run(2);
	CHECK(status_of(0).started && status_of(1).standby);
	run(4);
	CHECK(status_of(0).standby && status_of(1).started);
	for (size_t k = 1, i = 0; i < 8; i++, k = 1 - k) {
		/* Its process, or its machine: then nobody is told. */
		if (i % 2)
			lose_control(k);
		else
			kill_control(k);
		healed = periods_until_granting(1 - k);
		CHECK(healed < (i % 2 ? 2 : 0.5));
		run(3);
		CHECK(status_of(1 - k).started);
		start_control(k);
		run(i % 3);
		/* While the newcomer is new it takes nothing over. */
		CHECK(status_of(1 - k).started && !status_of(k).started);
	}
	CHECK_INT(missed(from), 0);
	end();
}

/* A start every 0.4 periods, as every 2 s of 5; alone, beside a standby that lives, and while a server is down. */
static void crash_loop(uint64_t n, size_t k, bool standby, bool down)
{
	uint64_t from = steady(n);

	if (standby && !w.chiefs[1 - k].control)
		start_control(1 - k);
	w.machines[SERVERS - 1].down = down;
	for (unsigned i = 0; i < 40; i++) {
		kill_control(k);
		if (i % 3 == 0)
			calm(LENGTH / 10 / STEP);
		start_control(k);
		calm((i % 3 == 0 ? 3 : 4) * LENGTH / 10 / STEP);
	}
	run(8);
	CHECK_INT(missed(from), 0);
	end();
}

static void crash_loops(void)
{
	crash_loop(4, 0, false, false);
	crash_loop(5, 0, true, false);
	crash_loop(6, 0, false, true);
	crash_loop(7, 0, true, true);
	crash_loop(8, 1, true, true);
}

/* Three of five servers hear only the one controller, two only the other: that one stops within two periods, and
 * its servers go on as without a controller. */
static void a_minority_is_left_alone(void)
{
	uint64_t from = steady(9), generation;

	start_control(1);
	run(6);
	CHECK(status_of(1).started);
	for (size_t j = 0; j < SERVERS; j++)
		w.cut[j][j < 3] = true;
	run(3);
	CHECK(status_of(0).started && !status_of(1).started);
	generation = status_of(0).generation;
	run(12);
	CHECK(status_of(0).started && status_of(0).generation == generation);
	for (size_t j = 0; j < SERVERS; j++) {
		struct pshift_server_status s;

		pshift_server_status(w.machines[j].server, &s);
		CHECK_INT(s.state, j < 3 ? LEASE_LEASED : LEASE_STATIC);
	}
	memset(w.cut, 0, sizeof(w.cut));
	run(12);
	CHECK(status_of(0).started != status_of(1).started);
	from = w.period;
	run(8);
	CHECK_INT(missed(from), 0);
	end();
}

/* ---- no controller */

static void start_stand_ins(void)
{
	w.stand_in = true;
	for (size_t j = 0; j < DEPUTIES; j++)
		start_stand_in(j);
}

/* Of bucket i: what was served in the next period of time. */
static int64_t in_a_period(size_t i)
{
	int64_t before = w.served[i];

	run(1);
	return w.served[i] - before;
}

enum death { ALIVE, KILLED, LOST };

/* The controller is dead for `dead` periods when all demand of bucket i moves to server `to`. */
static void moves(uint64_t n, size_t i, size_t to, unsigned dead, enum death how)
{
	int64_t first, second;
	bool soon = how == KILLED; /* a death that nobody is told of is noticed later */

	steady(n);
	start_stand_ins();
	run(2);
	if (how == KILLED)
		kill_control(0);
	else if (how == LOST)
		lose_control(0);
	run(dead);
	calm((unsigned)rng_below(&w.rng, LENGTH / STEP)); /* at any time of a period */
	for (size_t j = 0; j < SERVERS; j++) {
		w.machines[j].gates[i].closed = j == to;
		w.machines[j].gates[i].queued = 0;
	}
	first = in_a_period(i);
	second = in_a_period(i);
	if (getenv("TRACE"))
		printf("%d bucket %zu to s%zu after %u: %lld %lld of %lld\n", how, i, to + 1, dead,
			(long long)first, (long long)second, (long long)w.reservation[i]);
	CHECK(!soon || first >= w.reservation[i] / 2);
	for (unsigned k = 0; k < 8; k++)
		CHECK(in_a_period(i) >= w.reservation[i] * 95 / 100);
	end();
}

static void demand_moves_without_a_controller(void)
{
	static const unsigned dead[] = {0, 1, 2, 3, 5, 6, 8, 20};

	for (size_t k = 0; k < sizeof(dead) / sizeof(dead[0]); k++) {
		moves(40 + k, 1, 4, dead[k], KILLED);
		moves(50 + k, 2, 4, dead[k], KILLED);
		moves(60 + k, 4, 4, dead[k], KILLED);
		moves(70 + k, 2, 0, dead[k], LOST);
		moves(80 + k, 1, 4, dead[k], ALIVE);
	}
}

/* The stand-in dies, too, with its server; then the next one stands in. A controller that comes back takes over. */
static void stand_ins_die(void)
{
	uint64_t from;

	steady(90);
	start_stand_ins();
	kill_control(0);
	run(2);
	for (size_t j = 0; j < SERVERS; j++)
		w.machines[j].gates[1].closed = j == 3;
	run(3);
	CHECK(status_of(CHIEFS).started);
	w.machines[0].down = true;
	run(3);
	CHECK(status_of(CHIEFS + 1).started);
	from = w.period;
	run(8);
	CHECK(w.label[from + 2][1] >= w.reservation[1] * 95 / 100);
	start_control(0);
	run(3);
	CHECK(status_of(0).started && !status_of(CHIEFS + 1).started);
	w.machines[0].down = false;
	run(5);
	CHECK(status_of(0).started && !status_of(CHIEFS).started);
	CHECK_INT(status_of(0).heard, SERVERS);
	end();
}

/* Where nothing waits, nobody stands in, and servers come to their static parts. */
static void nobody_stands_in_for_nothing(void)
{
	struct pshift_server_status s;

	steady(91);
	start_stand_ins();
	for (size_t i = 0; i < BUCKETS; i++)
		for (size_t j = 0; j < SERVERS; j++) {
			w.machines[j].gates[i].closed = false;
			w.machines[j].gates[i].queued = 0;
		}
	kill_control(0);
	run(9);
	pshift_server_status(w.machines[0].server, &s);
	CHECK_INT(s.state, LEASE_STATIC);
	end();
}

/* ---- everything at once */

static void fault(void)
{
	size_t j = rng_below(&w.rng, SERVERS), k = rng_below(&w.rng, CHIEFS);
	unsigned alive = 0, strange = 1;

	for (size_t i = 0; i < SERVERS; i++) {
		struct pshift_server_status s;

		pshift_server_status(w.machines[i].server, &s);
		alive += !w.machines[i].down;
		strange += i != j && !s.period;
	}
	switch (rng_below(&w.rng, 9)) {
	case 0:
		w.cut[j][k] ^= true;
		break;
	case 1:
		w.loss = rng_double(&w.rng) * 0.6;
		break;
	case 2:
		w.delay = (weir_time)(rng_double(&w.rng) * 0.3 * (double)LENGTH);
		break;
	case 3:
		w.twice = rng_double(&w.rng) * 0.5;
		break;
	case 4:
		/* A period that no majority knows would be counted from 1 again, and so would w.label. */
		if (strange > SERVERS / 2)
			break;
		restart(j);
		w.machines[j].down = false;
		break;
	case 5:
		w.machines[j].down = alive > 2;
		break;
	case 6:
		if (w.chiefs[k].control)
			kill_control(k);
		break;
	case 7:
		if (w.chiefs[k].control)
			lose_control(k);
		break;
	default:
		change_demand(rng_below(&w.rng, BUCKETS));
	}
	for (k = 0; k < CHIEFS; k++)
		if (!w.chiefs[k].control && rng_below(&w.rng, 4) == 0)
			start_control(k);
}

/* No limit is passed, to the token, as every step checks; and when all is quiet again there is one controller, which
 * all servers follow. */
static void all_faults(uint64_t n)
{
	begin(seed() * 1000 + n, false);
	calm(2 * LENGTH / STEP);
	if (n % 2)
		start_stand_ins();
	w.stuck = 0.02;
	for (unsigned i = 0; i < 25000; i++) {
		if (rng_below(&w.rng, 150) == 0)
			fault();
		step();
	}
	memset(w.cut, 0, sizeof(w.cut));
	for (size_t j = 0; j < SERVERS; j++)
		w.machines[j].down = false;
	for (size_t k = 0; k < CHIEFS; k++)
		if (!w.chiefs[k].control)
			start_control(k);
	calm(40 * LENGTH / STEP);
	CHECK(status_of(0).started != status_of(1).started);
	CHECK_INT(status_of(status_of(0).started ? 0 : 1).heard, SERVERS);
	end();
}

static void no_limit_is_passed(void)
{
	for (uint64_t n = 0; n < 4; n++)
		all_faults(20 + n);
}

int main(void)
{
	printf("seed %llu\n", (unsigned long long)seed());
	RUN(a_server_is_down);
	RUN(a_server_starts_meanwhile);
	RUN(a_standby_takes_over);
	RUN(crash_loops);
	RUN(a_minority_is_left_alone);
	RUN(demand_moves_without_a_controller);
	RUN(stand_ins_die);
	RUN(nobody_stands_in_for_nothing);
	RUN(no_limit_is_passed);
	return 0;
}
