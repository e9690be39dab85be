/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law-leases: servers and their controllers on the network of tests/control/pshift/rig.h, while
 * servers and controllers are killed and restarted.
 *
 *   - No limit is exceeded in any period, over all servers; not by a single token.
 *   - The machine's view of a gate's tokens equals the gate.
 *   - A bucket whose demand does not move has its reservation in every period, for any behaviour of
 *     the network, and while the controller is dead for no longer than grants are held.
 *   - Of two controllers one stands down, and no limit is exceeded meanwhile.
 *   - In the end, every server has a lease, and reservations and limits are reached.
 */
#include "control/pshift/rig.h"

/* Restart a server unless it is the last one that knows the period: periods would be counted
 * from 1 again, and w.label too. */
static void restart_server(size_t j)
{
	bool known = false;

	for (size_t k = 0; k < SERVERS; k++) {
		struct pshift_server_status s;

		pshift_server_status(w.machines[k].server, &s);
		known |= k != j && s.period;
	}
	if (known)
		restart(j);
}

static void chaos(unsigned steps, bool kills)
{
	w.stuck = 0.02;
	for (unsigned i = 0; i < steps; i++) {
		uint64_t dice = rng_below(&w.rng, 20000);

		if (dice < 20)
			change_demand(rng_below(&w.rng, BUCKETS));
		else if (dice < 30)
			w.loss = rng_double(&w.rng) * 0.7;
		else if (dice < 40)
			w.delay = (weir_time)(rng_double(&w.rng) * 0.3 * (double)LENGTH);
		else if (dice < 45)
			w.twice = rng_double(&w.rng) * 0.5;
		else if (dice < 50 && kills)
			restart_server(rng_below(&w.rng, SERVERS));
		else if (dice < 56 && kills && w.chiefs[0].control) {
			kill_control(0);
			w.chiefs[0].back =
				w.now + (weir_time)(rng_double(&w.rng) * 9 * (double)LENGTH);
		}
		if (!w.chiefs[0].control && w.now >= w.chiefs[0].back)
			start_control(0);
		step();
	}
}

/* One bucket has unlimited demand at one server; the others have little. */
static void converges(void)
{
	struct cluster_status s;

	for (size_t i = 0; i < BUCKETS; i++)
		for (size_t j = 0; j < SERVERS; j++) {
			struct gate *g = &w.machines[j].gates[i];

			g->closed = j == i % SERVERS;
			g->rate = 0;
			g->queued = 0;
		}
	if (!w.chiefs[0].control)
		start_control(0);
	calm(60 * LENGTH / STEP); /* the longest time for a takeover and for delayed messages */
	memset(w.served, 0, sizeof(w.served));
	calm(20 * LENGTH / STEP);
	pshift_control_status(w.chiefs[0].control, &s);
	CHECK(s.started && s.heard == SERVERS && s.silent == 0);
	for (size_t j = 0; j < SERVERS; j++) {
		struct pshift_server_status v;

		pshift_server_status(w.machines[j].server, &v);
		CHECK_INT(v.state, LEASE_LEASED);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		int64_t want = i < LIMITED ? w.limit[i] : w.reservation[i];

		/* All but the floors of other servers; of 3 tokens those are all. */
		if (i != 3)
			CHECK(w.served[i] >= 20 * want * 9 / 10);
		if (i < LIMITED)
			CHECK(w.served[i] <= 21 * w.limit[i]);
		CHECK(w.served[i] >= 20 * w.reservation[i] * 9 / 10);
	}
}

static void lives_through_all(void)
{
	begin(seed() * 1000, false);
	chaos(60000, true);
	converges();
	end();
}

/* Periods by true time, to the token: no process is killed, but the network is as bad. */
static void true_periods(void)
{
	begin(seed() * 1000 + 77, true);
	chaos(30000, false);
	converges();
	end();
}

/* ---- reservations */

/* Each bucket has unlimited and constant demand at two servers. */
static void steady_demand(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (size_t j = 0; j < SERVERS; j++) {
			struct gate *g = &w.machines[j].gates[i];

			g->closed = (j + SERVERS - i % SERVERS) % SERVERS < 2;
			g->rate = 0;
			g->queued = 0;
		}
}

/* Return the last period for which all servers hold their grants. */
static uint64_t held_until(void)
{
	uint64_t first = UINT64_MAX;

	for (size_t j = 0; j < SERVERS; j++) {
		struct pshift_server_status s;

		pshift_server_status(w.machines[j].server, &s);
		first = s.until < first ? s.until : first;
	}
	return first;
}

/* Now and then the controller is killed for up to two periods, also while it takes over, if
 * grants are held for so long and one period more for the takeover. */
static void kill_and_start(uint64_t dice)
{
	if (dice < 10 && w.chiefs[0].control && w.period + 3 <= held_until()) {
		kill_control(0);
		w.chiefs[0].back = w.now + (weir_time)(rng_double(&w.rng) * 2 * (double)LENGTH);
	}
	if (!w.chiefs[0].control && w.now >= w.chiefs[0].back)
		start_control(0);
}

static void worse_or_better(uint64_t dice)
{
	if (dice < 20)
		w.loss = rng_double(&w.rng) * 0.5;
	else if (dice < 40)
		w.delay = (weir_time)(rng_double(&w.rng) * 0.2 * (double)LENGTH);
	else if (dice < 50)
		w.twice = rng_double(&w.rng) * 0.5;
}

/* During a takeover and in the period after it, servers' periods are off by the delay of
 * messages: pshift.h, (2). */
static bool taking_over(void)
{
	static uint64_t until;
	struct cluster_status s = {0};

	if (w.chiefs[0].control)
		pshift_control_status(w.chiefs[0].control, &s);
	if (!s.started)
		until = w.period + 2;
	return w.period < until;
}

static uint64_t short_of_reservation(uint64_t from, const bool *excused)
{
	uint64_t periods = 0, missed = 0;

	/* The last periods have not ended at every server. */
	for (uint64_t k = from; k + 3 < w.period; k++) {
		periods += !excused[k];
		/* The limit of bucket 0 is its reservation: the share of a server that is not
		 * heard counts against it, so that not always enough is left to give. */
		for (size_t i = 1; i < BUCKETS && !excused[k]; i++)
			missed += w.label[k][i] < w.reservation[i] * 95 / 100;
	}
	CHECK(periods > 20);
	return missed;
}

static void keeps_reservations(void)
{
	static bool excused[PERIODS];
	uint64_t from;

	memset(excused, 0, sizeof(excused));
	begin(seed() * 1000 + 5, false);
	steady_demand();
	calm(20 * LENGTH / STEP);
	from = w.period + 1;
	w.stuck = 0.02;
	for (unsigned i = 0; i < 100 * LENGTH / STEP; i++) {
		worse_or_better(rng_below(&w.rng, 20000));
		kill_and_start(rng_below(&w.rng, 20000));
		step();
		excused[w.period] |= taking_over();
	}
	CHECK_INT(short_of_reservation(from, excused), 0);
	converges();
	end();
}

/* The same with almost no message delay: then a takeover is no excuse. */
static void keeps_reservations_in_takeovers(void)
{
	static const bool excused[PERIODS];
	uint64_t from;

	begin(seed() * 1000 + 8, false);
	steady_demand();
	calm(20 * LENGTH / STEP);
	from = w.period + 1;
	for (unsigned i = 0; i < 100 * LENGTH / STEP; i++) {
		kill_and_start(rng_below(&w.rng, 2000));
		step();
	}
	CHECK_INT(short_of_reservation(from, excused), 0);
	end();
}

/* Each other bucket now and then moves to two other servers. */
static void crowd(void)
{
	size_t i = rng_below(&w.rng, BUCKETS), at = rng_below(&w.rng, SERVERS);

	for (size_t j = 0; j < SERVERS && i != 2; j++) {
		w.machines[j].gates[i].closed = (j + SERVERS - at) % SERVERS < 2;
		w.machines[j].gates[i].queued = 0;
	}
}

/* Bucket 2 always has unlimited demand, at two servers with hardly more capacity than is
 * reserved at them, and that others crowd. So its tokens move between the two; the controller
 * may die at any moment. */
static void crowded(uint64_t seed)
{
	double reserved = 0;

	begin(seed, false);
	steady_demand();
	for (size_t i = 0; i < BUCKETS; i++)
		reserved += (double)w.reservation[i];
	for (size_t j = 0; j < SERVERS; j++)
		w.machines[j].capacity =
			1.2 * reserved / SERVERS * (double)WEIR_SEC / (double)LENGTH;
	calm(20 * LENGTH / STEP);
	for (unsigned i = 0; i < 60 * LENGTH / STEP; i++) {
		int64_t held = 0;

		if (rng_below(&w.rng, 100) == 0)
			crowd();
		step();
		for (size_t j = 0; j < SERVERS; j++) {
			struct pshift_server_tokens t;

			pshift_server_tokens(w.machines[j].server, 2, &t);
			held += w.machines[j].gates[2].closed ? t.limit : 0;
		}
		CHECK(held >= w.reservation[2]);
	}
	end();
}

static void nothing_is_lost_on_the_way(void)
{
	for (uint64_t k = 0; k < 20; k++)
		crowded(seed() * 1000 + 20 + k);
}

/* ---- two controllers */

/* Return the controller in charge: the other is dead, stands down, or has not started. */
static size_t in_charge(void)
{
	size_t found = CHIEFS, n = 0;

	for (size_t k = 0; k < CHIEFS; k++) {
		struct cluster_status s;

		if (!w.chiefs[k].control)
			continue;
		pshift_control_status(w.chiefs[k].control, &s);
		if (s.started) {
			found = k;
			n++;
		}
	}
	return n == 1 ? found : CHIEFS;
}

/* All servers follow the later controller and the other stands down by itself; every step checks
 * limits to the token. */
static void the_later_one_is_followed(void)
{
	struct cluster_status first, second;

	begin(seed() * 1000 + 6, false);
	calm(5 * LENGTH / STEP);
	start_control(1);
	calm(5 * LENGTH / STEP);
	pshift_control_status(w.chiefs[0].control, &first);
	pshift_control_status(w.chiefs[1].control, &second);
	CHECK(first.standby && !first.started && second.started);
	for (size_t j = 0; j < SERVERS; j++) {
		struct pshift_server_status v;

		pshift_server_status(w.machines[j].server, &v);
		CHECK_INT(v.state, LEASE_LEASED);
		CHECK_INT(v.generation, second.generation);
	}
	end();
}

/* Again and again, at any moment, and on a bad network; a controller that stood down is
 * restarted some time later. */
static void two_at_once(void)
{
	unsigned starts = 0;

	begin(seed() * 1000 + 7, false);
	for (unsigned i = 0; i < 40000; i++) {
		size_t k = rng_below(&w.rng, CHIEFS);
		uint64_t dice = rng_below(&w.rng, 20000);

		if (dice < 20)
			change_demand(rng_below(&w.rng, BUCKETS));
		else if (dice < 30)
			w.loss = rng_double(&w.rng) * 0.5;
		else if (dice < 40)
			w.delay = (weir_time)(rng_double(&w.rng) * 0.3 * (double)LENGTH);
		else if (dice < 60) {
			kill_control(k);
			start_control(k);
			starts++;
		}
		step();
	}
	CHECK(starts > 20);
	calm(60 * LENGTH / STEP);
	CHECK(in_charge() < CHIEFS);
	end();
}

int main(void)
{
	printf("seed %llu\n", (unsigned long long)seed());
	RUN(lives_through_all);
	RUN(true_periods);
	RUN(keeps_reservations);
	RUN(keeps_reservations_in_takeovers);
	RUN(nothing_is_lost_on_the_way);
	RUN(the_later_one_is_followed);
	RUN(two_at_once);
	return 0;
}
