/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law-lead: which controller leads, and the cost of a change: on the network of
 * tests/control/pshift/rig.h, with servers that are down or cut off, standbys, and controllers that
 * restart again and again.
 *
 *   - A controller that starts while a server is down costs nothing to buckets whose demand does
 *     not move.
 *   - When the leader dies, a standby leads within two periods; a crash loop costs nothing.
 *   - Only a controller that a majority of the servers follows grants; the servers of another go on
 *     without a controller.
 *   - Without any controller, a bucket whose demand moves has half of its reservation within a
 *     period, and all of it within three: a server stands in. The same holds while a minority of
 *     the servers is down, with a stand-in, and from the third period on with a controller that
 *     took over.
 *   - No limit is exceeded in any period, over all servers, under all of this at once; not by a
 *     single token.
 */
#include "control/pshift/rig.h"

/* Each bucket has unlimited demand at two servers other than the last one. */
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

static struct cluster_status status_of(size_t k)
{
	struct cluster_status s = {0};

	if (w.chiefs[k].control)
		pshift_control_status(w.chiefs[k].control, &s);
	return s;
}

static void run_periods(unsigned periods)
{
	for (unsigned i = 0; i < periods * LENGTH / STEP; i++)
		step();
}

/* Return the number of buckets that missed more than 5 % of their reservation in the periods
 * from `from` on. The limit of bucket 0 is its reservation, of which a server that is down may
 * use its static part. */
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

/* Run steady demand until all tokens are placed. Return the first period to check. */
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
	run_periods(1);
	start_control(0);
	run_periods(30);
	CHECK_INT(missed(from), 0);
	/* The server returns with its old state and rejoins. */
	w.machines[SERVERS - 1].down = false;
	run_periods(10);
	CHECK_INT(status_of(0).heard, SERVERS);
	CHECK_INT(missed(from), 0);
	end();
}

/* At the same moment, one server never returns and another restarts. */
static void a_server_starts_meanwhile(void)
{
	uint64_t from = steady(2);

	w.machines[SERVERS - 1].down = true;
	kill_control(0);
	start_control(0);
	run_periods(3);
	kill_control(0);
	w.machines[SERVERS - 1].down = false;
	start_server(SERVERS - 1, false);
	start_control(0);
	run_periods(30);
	CHECK_INT(missed(from), 0);
	CHECK_INT(status_of(0).heard, SERVERS);
	end();
}

/* All start at once without any state: earlier service belongs to no counted period, and no server
 * waits for its end. */
static void all_start(void)
{
	for (uint64_t n = 140; n < 148; n++) {
		begin(seed() * 1000 + n, false);
		for (size_t j = 0; j < SERVERS; j++)
			start_server(j, false);
		demand_elsewhere();
		calm(LENGTH / STEP);
		for (size_t i = 1; i < BUCKETS; i++)
			CHECK(w.served[i] >= w.reservation[i] / 2);
		for (unsigned k = 0; k < 8; k++) {
			memset(w.served, 0, sizeof(w.served));
			calm(LENGTH / STEP);
			for (size_t i = 1; i < BUCKETS; i++)
				CHECK(w.served[i] >= w.reservation[i] * 95 / 100);
		}
		end();
	}
}

/* ---- two controllers */

/* Return the periods until the controller grants and all servers have its leases. */
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

/* The later controller takes over after three periods, and the first stands by. */
static void a_standby_takes_over(void)
{
	uint64_t from = steady(3);
	double healed;

	start_control(1);
	run_periods(2);
	CHECK(status_of(0).started && status_of(1).standby);
	run_periods(4);
	CHECK(status_of(0).standby && status_of(1).started);
	for (size_t k = 1, i = 0; i < 8; i++, k = 1 - k) {
		/* Its process ends, or its machine: then no connection is closed. */
		if (i % 2)
			lose_control(k);
		else
			kill_control(k);
		healed = periods_until_granting(1 - k);
		CHECK(healed < (i % 2 ? 2 : 0.5));
		run_periods(3);
		CHECK(status_of(1 - k).started);
		start_control(k);
		run_periods(i % 3);
		/* A newcomer takes nothing over at first. */
		CHECK(status_of(1 - k).started && !status_of(k).started);
	}
	CHECK_INT(missed(from), 0);
	end();
}

/* A start every 0.4 periods, as every 2 s of 5; alone, beside a running standby, and while a
 * server is down. */
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
	run_periods(8);
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

/* Three of five servers hear only one controller, two only the other: the latter stops within
 * two periods, and its servers go on without a controller. */
static void a_minority_is_left_alone(void)
{
	uint64_t from = steady(9), generation;

	start_control(1);
	run_periods(6);
	CHECK(status_of(1).started);
	for (size_t j = 0; j < SERVERS; j++)
		w.cut[j][j < 3] = true;
	run_periods(3);
	CHECK(status_of(0).started && !status_of(1).started);
	generation = status_of(0).generation;
	run_periods(12);
	CHECK(status_of(0).started && status_of(0).generation == generation);
	for (size_t j = 0; j < SERVERS; j++) {
		struct pshift_server_status s;

		pshift_server_status(w.machines[j].server, &s);
		CHECK_INT(s.state, j < 3 ? LEASE_LEASED : LEASE_STATIC);
	}
	memset(w.cut, 0, sizeof(w.cut));
	run_periods(12);
	CHECK(status_of(0).started != status_of(1).started);
	from = w.period;
	run_periods(8);
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

/* Return what is served of bucket i in the next period of time. */
static int64_t in_a_period(size_t i)
{
	int64_t before = w.served[i];

	run_periods(1);
	return w.served[i] - before;
}

enum death { ALIVE, KILLED, LOST };

/* All demand of bucket i moves to server `to` when the controller has been dead for `dead`
 * periods. */
static void moves(uint64_t n, size_t i, size_t to, unsigned dead, enum death how)
{
	int64_t first, second;
	bool soon = how == KILLED; /* a death without closed connections is noticed later */

	steady(n);
	start_stand_ins();
	run_periods(2);
	if (how == KILLED)
		kill_control(0);
	else if (how == LOST)
		lose_control(0);
	run_periods(dead);
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

/* Servers from `down` on, where bucket i has no demand, are down when a controller takes over or a
 * server stands in; then all demand of bucket i moves to server `to`. */
static void moves_beside_the_dead(uint64_t n, size_t i, size_t to, size_t down, bool stand_in)
{
	steady(n);
	if (stand_in)
		start_stand_ins();
	for (size_t j = down; j < SERVERS; j++)
		w.machines[j].down = true;
	run_periods(3);
	kill_control(0);
	if (!stand_in)
		start_control(0);
	run_periods(1);
	for (unsigned round = 0; round < 3; round++, to = (to + 1) % down) {
		calm((unsigned)rng_below(&w.rng, LENGTH / STEP));
		for (size_t j = 0; j < SERVERS; j++) {
			w.machines[j].gates[i].closed = j == to;
			w.machines[j].gates[i].queued = 0;
		}
		for (unsigned k = 0; k < 6; k++) {
			int64_t got = in_a_period(i);

			if (getenv("TRACE"))
				printf("%zu down: bucket %zu to s%zu: %lld of %lld\n",
					SERVERS - down, i, to + 1, (long long)got,
					(long long)w.reservation[i]);
			CHECK(k > 0 || !stand_in || got >= w.reservation[i] / 2);
			CHECK(k < 2 || got >= w.reservation[i] * 95 / 100);
		}
	}
	end();
}

static void demand_moves_while_servers_are_down(void)
{
	for (size_t k = 0; k < 4; k++) {
		moves_beside_the_dead(100 + k, 1, k, 4, true);
		moves_beside_the_dead(110 + k, 2, k, 4, false);
		moves_beside_the_dead(120 + k, 1, k % 3, 3, true);
		moves_beside_the_dead(130 + k, 1, k % 3, 3, false);
	}
}

/* The stand-in dies with its server; then the next one stands in. A controller that returns
 * takes over. */
static void stand_ins_die(void)
{
	uint64_t from;

	steady(90);
	start_stand_ins();
	kill_control(0);
	run_periods(2);
	for (size_t j = 0; j < SERVERS; j++)
		w.machines[j].gates[1].closed = j == 3;
	run_periods(3);
	CHECK(status_of(CHIEFS).started);
	w.machines[0].down = true;
	run_periods(3);
	CHECK(status_of(CHIEFS + 1).started);
	from = w.period;
	run_periods(8);
	CHECK(w.label[from + 2][1] >= w.reservation[1] * 95 / 100);
	start_control(0);
	run_periods(3);
	CHECK(status_of(0).started && !status_of(CHIEFS + 1).started);
	w.machines[0].down = false;
	run_periods(5);
	CHECK(status_of(0).started && !status_of(CHIEFS).started);
	CHECK_INT(status_of(0).heard, SERVERS);
	end();
}

/* While nothing waits, no server stands in, and servers fall back to their static parts. */
static void no_stand_in_without_demand(void)
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
	run_periods(9);
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
		/* A period that no majority knows would be counted from 1 again, and w.label
		 * too. */
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

/* No limit is exceeded by a single token, which every step checks; and in the end one controller
 * leads and all servers follow it. */
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

/* Controllers that are elected elsewhere: the servers elect none, and each generation leads once. */
static void elected_ones_lead(void)
{
	uint64_t from;

	begin(seed() * 1000 + 170, false);
	kill_control(0);
	w.elected = true;
	start_control(0);
	start_control(1);
	demand_elsewhere();
	run_periods(6);
	CHECK(!status_of(0).started && !status_of(1).started);
	pshift_control_elect(w.chiefs[0].control, 100);
	run_periods(20);
	CHECK(status_of(0).started && !status_of(1).started);
	CHECK_INT(status_of(0).generation, 100);
	/* The next one: at first with a generation that a store from a backup could give. */
	from = w.period + 1;
	pshift_control_elect(w.chiefs[1].control, 90);
	run_periods(3);
	CHECK(status_of(0).started && !status_of(1).started);
	CHECK_INT(status_of(1).highest, 100);
	pshift_control_elect(w.chiefs[1].control, 120);
	CHECK(periods_until_granting(1) < 1);
	CHECK(status_of(0).standby);
	run_periods(10);
	CHECK_INT(missed(from), 0);
	/* The store says that it does not lead any more. */
	pshift_control_elect(w.chiefs[1].control, 0);
	CHECK(status_of(1).standby);
	/* A server that starts again takes nothing of a generation below that which it obeyed before. */
	start_server(0, false);
	pshift_server_obeyed(w.machines[0].server, 200);
	pshift_control_elect(w.chiefs[0].control, 150);
	run_periods(3);
	CHECK_INT(status_of(0).highest, 200);
	CHECK(!status_of(0).started);
	pshift_control_elect(w.chiefs[0].control, 201);
	CHECK(periods_until_granting(0) < 10);
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
	RUN(all_start);
	RUN(a_standby_takes_over);
	RUN(crash_loops);
	RUN(a_minority_is_left_alone);
	RUN(demand_moves_without_a_controller);
	RUN(demand_moves_while_servers_are_down);
	RUN(stand_ins_die);
	RUN(no_stand_in_without_demand);
	RUN(elected_ones_lead);
	RUN(no_limit_is_passed);
	return 0;
}
