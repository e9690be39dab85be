/* SPDX-License-Identifier: BSD-3-Clause */
/* rack: all machines come to one division, with half of the messages lost, too; silent machines, claims, the fabric's limits; and
 * the size of reports. */
#include "control/parley/rack.h"
#include "base/rng.h"
#include "control/parley/machine.h"
#include "test.h"
#include "wire/peer.h"
#include <errno.h>

#define MOST  40
#define MANY  1000
#define MBIT  125000.
#define WORDS PEER_WORDS_MAX

static struct rack *racks[MOST];
static uint32_t ids[MANY];
static double use[MOST][RACK_DIRS][MANY], demand[MOST][MANY];
static uint64_t words[MANY];
static bool dead[MOST];
static weir_time now;

static struct parley_service service(double min, double max)
{
	return (struct parley_service){min, max, 1, 0, INFINITY, 1, -1};
}

static void open_racks(const struct parley_service *s, size_t n, size_t machines, double link)
{
	struct rack_config c = {.ids = ids,
		.services = {s, s},
		.n_services = n,
		.machines = machines,
		.link = {link, link},
		.nic = fmax(40 * MBIT, link / 8)};

	now = 100 * WEIR_SEC;
	for (size_t i = 0; i < n; i++)
		ids[i] = (uint32_t)(i * 2654435761u);
	for (size_t m = 0; m < machines; m++) {
		c.own = m;
		dead[m] = false;
		CHECK_INT(rack_new(&c, &racks[m]), 0);
	}
}

static void close_racks(size_t machines)
{
	for (size_t m = 0; m < machines; m++)
		rack_free(racks[m]);
}

static void send(size_t m, size_t machines, size_t n, double loss, struct rng *rng)
{
	for (size_t to = 0; to < machines; to++)
		for (size_t at = 0; to != m && at <= n; at += WORDS)
			if (!rng || rng_double(rng) >= loss)
				CHECK_INT(rack_hear(racks[to], m, words + at,
						  n - at < WORDS ? n - at : WORDS, now),
					RACK_TAKEN);
}

/* Services send what they may, up to a demand; loss: the part of datagrams that do not arrive. */
static void run_round(size_t machines, size_t n, double loss, struct rng *rng, size_t *ret_words)
{
	bool scaled[RACK_DIRS];

	now += WEIR_SEC;
	for (size_t m = 0; m < machines; m++) {
		const double *usage[RACK_DIRS] = {use[m][0], use[m][1]};
		size_t k;

		for (size_t i = 0; i < n; i++)
			for (int d = 0; d < RACK_DIRS; d++)
				use[m][d][i] = fmin(demand[m][i], rack_cap(racks[m], d, i));
		if (dead[m])
			continue;
		k = rack_report(racks[m], usage, now, words);
		if (ret_words)
			*ret_words = k;
		send(m, machines, k, loss, rng);
		if (k <= WORDS)
			send(m, machines, rack_beat(k), loss, rng);
	}
	for (size_t m = 0; m < machines; m++)
		if (!dead[m])
			rack_step(racks[m], now, scaled);
}

static double total(size_t machines, size_t service)
{
	double sum = 0;

	for (size_t m = 0; m < machines; m++)
		sum += fmin(demand[m][service], rack_cap(racks[m], RACK_UP, service));
	return sum;
}

/* Figure 14 with four machines: A ≤ 30, B ≥ 30, of 60 in all. */
static void two_services(double loss)
{
	struct parley_service s[] = {service(0, 30 * MBIT), service(30 * MBIT, INFINITY)};
	struct rng rng;
	double slack = loss > 0 ? 1.1 : 1.001;

	s[0].weight = 1000; /* it gets what B's min leaves */
	rng_init(&rng, 7, "loss");
	open_racks(s, 2, 4, 60 * MBIT);
	for (int m = 0; m < 4; m++)
		demand[m][0] = 40 * MBIT, demand[m][1] = 0;
	for (int i = 0; i < 40; i++) {
		run_round(4, 2, loss, &rng, NULL);
		if (i > 4)
			CHECK(total(4, 0) <= 30 * MBIT * slack);
	}
	CHECK_NEAR(total(4, 0), 30 * MBIT, 0.1);
	CHECK_INT(rack_bound(racks[1], RACK_UP, 0), RACK_BOUND_MAX);
	for (int m = 0; m < 4; m++)
		demand[m][1] = 20 * MBIT;
	for (int i = 0; i < 40; i++) {
		run_round(4, 2, loss, &rng, NULL);
		if (i > 8)
			CHECK(total(4, 0) + total(4, 1) <= 60 * MBIT * slack);
	}
	CHECK_NEAR(total(4, 0), 30 * MBIT, 0.1);
	CHECK_NEAR(total(4, 1), 30 * MBIT, 0.1);
	CHECK_INT(rack_bound(racks[1], RACK_UP, 1), RACK_BOUND_LINK);
	if (loss == 0)
		for (int m = 1; m < 4; m++)
			for (size_t i = 0; i < 2; i++)
				CHECK(rack_cap(racks[m], RACK_UP, i) ==
					rack_cap(racks[0], RACK_UP, i));
	close_racks(4);
}

static void one_division(void)
{
	two_services(0);
}

static void half_lost(void)
{
	two_services(0.5);
}

/* A machine that is silent counts with its last usage for 5 s, then with its min. */
static void silent(void)
{
	struct parley_service s[] = {service(0, 30 * MBIT)};

	s[0].leaf_min = 3 * MBIT;
	open_racks(s, 1, 3, 60 * MBIT);
	for (int m = 0; m < 3; m++)
		demand[m][0] = 40 * MBIT;
	for (int i = 0; i < 10; i++)
		run_round(3, 1, 0, NULL, NULL);
	CHECK_NEAR(rack_cap(racks[0], RACK_UP, 0), 10 * MBIT, 0.01);
	dead[2] = true;
	for (int i = 0; i < 5; i++) {
		run_round(3, 1, 0, NULL, NULL);
		CHECK(rack_alive(racks[0], 2, now));
		CHECK_NEAR(rack_cap(racks[0], RACK_UP, 0), 10 * MBIT, 0.01);
	}
	for (int i = 0; i < 2; i++)
		run_round(3, 1, 0, NULL, NULL);
	CHECK(!rack_alive(racks[0], 2, now) && rack_alive(racks[0], 1, now));
	CHECK_NEAR(rack_cap(racks[0], RACK_UP, 0), 13.5 * MBIT, 0.01);
	dead[2] = false;
	run_round(3, 1, 0, NULL, NULL);
	CHECK(rack_alive(racks[0], 2, now));
	close_racks(3);
}

static void claims(void)
{
	const struct parley_service s[] = {service(0, 30 * MBIT), service(0, INFINITY)};
	uint64_t lie[2];

	open_racks(s, 2, 2, 60 * MBIT);
	demand[0][0] = demand[1][0] = 40 * MBIT;
	demand[0][1] = demand[1][1] = 0;
	for (int i = 0; i < 5; i++)
		run_round(2, 2, 0, NULL, NULL);
	CHECK_NEAR(rack_cap(racks[0], RACK_UP, 0), 15 * MBIT, 0.01);
	lie[0] = usage_pack(&(struct usage){ids[0], 0, 45 * MBIT}); /* above 40 */
	CHECK_INT(rack_hear(racks[0], 1, lie, 1, now), RACK_CLAIMS);
	lie[0] = usage_pack(&(struct usage){ids[0], 0, 30 * MBIT});
	lie[1] = usage_pack(&(struct usage){ids[1], 0, 30 * MBIT}); /* together above */
	CHECK_INT(rack_hear(racks[0], 1, lie, 2, now), RACK_CLAIMS);
	rack_step(racks[0], now, (bool[RACK_DIRS]){0});
	CHECK_NEAR(rack_cap(racks[0], RACK_UP, 0), 15 * MBIT, 0.01);
	lie[0] = usage_pack(&(struct usage){12345, 1, 1});
	rack_hear(racks[0], 1, lie, 1, now);
	CHECK_INT(rack_unknown(racks[0]), 1);
	ids[1] = ids[0];
	{
		struct rack_config c = {.ids = ids, .services = {s, s}, .n_services = 2};
		struct rack *r;

		CHECK_INT(rack_new(&c, &r), -EEXIST);
	}
	close_racks(2);
}

static void fabric(void)
{
	const struct parley_service s[] = {service(20 * MBIT, 30 * MBIT)};

	open_racks(s, 1, 2, 60 * MBIT);
	demand[0][0] = demand[1][0] = 40 * MBIT;
	for (int m = 0; m < 2; m++)
		rack_fabric(racks[m], RACK_UP, 0, 10 * MBIT, now + 10 * WEIR_SEC);
	for (int i = 0; i < 8; i++)
		run_round(2, 1, 0, NULL, NULL);
	CHECK_NEAR(total(2, 0), 10 * MBIT, 0.01);
	CHECK_INT(rack_bound(racks[0], RACK_UP, 0), RACK_BOUND_FABRIC);
	CHECK_INT(rack_bound(racks[0], RACK_DOWN, 0), RACK_BOUND_MAX);
	for (int i = 0; i < 8; i++)
		run_round(2, 1, 0, NULL, NULL);
	CHECK_NEAR(total(2, 0), 30 * MBIT, 0.01);
	CHECK_NEAR(rack_usage(racks[0], RACK_UP, 0), 30 * MBIT, 0.01);
	close_racks(2);
}

/* Mbit/s that a machine sends to all others, with seals and the headers of Ethernet, IP and UDP. */
static double traffic(size_t n)
{
	size_t datagrams = n > WORDS ? (n + WORDS - 1) / WORDS : 2; /* with a beat */

	return (double)((n + rack_beat(n)) * 8 + datagrams * (PEER_HEAD + PEER_SEAL + 42)) * 8 *
	       (MOST - 1) * 1e-6;
}

static void small_reports(void)
{
	static struct parley_service s[MANY];
	struct rng rng;
	size_t n;

	for (int i = 0; i < MANY; i++)
		s[i] = service(0, INFINITY);
	rng_init(&rng, 3, "moves");
	open_racks(s, MANY, 2, 80e9 / 8);
	for (int i = 0; i < MANY; i++)
		demand[0][i] = demand[1][i] = 20 * 1024;
	run_round(2, MANY, 0, NULL, &n);
	CHECK_INT(n, MANY);
	CHECK(traffic(n) <= 3);
	for (int r = 0; r < 50; r++) { /* 1 % of them moves */
		for (int i = 0; i < MANY / 100; i++)
			demand[1][rng_below(&rng, MANY)] = 15e3 + 20e3 * rng_double(&rng);
		run_round(2, MANY, 0, NULL, &n);
		if (r > 1)
			CHECK(traffic(n) <= 0.3);
	}
	/* All of them are known, each as it was last said. */
	for (int i = 0; i < MANY; i++) {
		double sum = rack_usage(racks[0], RACK_UP, (size_t)i);

		CHECK_NEAR(sum, demand[0][i] + demand[1][i], 0.02);
	}
	for (int i = 0; i < MANY; i++)
		demand[0][i] = demand[1][i] = 0;
	for (int r = 0; r < RACK_IDLE + 2; r++)
		run_round(2, MANY, 0, NULL, &n);
	CHECK_INT(n, 0); /* those that use nothing are left out at last */
	close_racks(2);
}

int main(void)
{
	RUN(one_division);
	RUN(half_lost);
	RUN(silent);
	RUN(claims);
	RUN(fabric);
	RUN(small_reports);
	return 0;
}
