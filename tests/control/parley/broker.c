/* SPDX-License-Identifier: BSD-3-Clause */
/* broker: Figure 1, silent members, growth of capped services, limits over many members; and the laws of
 * machine.h. */
#include "control/parley/broker.h"
#include "control/parley/machine.h"
#include "test.h"
#include <errno.h>

#define NEAR 1e-6

static struct parley_service service(double min, double max)
{
	return (struct parley_service){min, max, 1, 0, INFINITY, 1, -1};
}

/* Members that use all that they may, up to a demand of each service. */
static void round_of(struct parley_broker *b, size_t members, size_t services, const double *demand,
	double capacity, weir_time now)
{
	double usage[8];

	for (size_t m = 0; m < members; m++) {
		for (size_t s = 0; s < services; s++) {
			double cap = parley_broker_cap(b, m, s), want = demand[m * services + s];

			usage[s] = want < cap ? want : cap;
		}
		parley_broker_hear(b, m, usage, now);
	}
	parley_broker_step(b, capacity, now);
}

static void figure1(void)
{
	const struct parley_service s[] = {service(0, 1), service(6, 8)}; /* VMs, DFS */
	const double all[] = {10, 10, 10, 10}, idle[] = {10, 10, 10, 0}, dfs[] = {0, 10, 0, 0};
	struct parley_broker *b;
	weir_time now = 0;

	CHECK_INT(parley_broker_new(s, 2, 2, PARLEY_RACK, &b), 0);
	for (int i = 0; i < 5; i++)
		round_of(b, 2, 2, all, 10, now += WEIR_SEC);
	for (size_t m = 0; m < 2; m++) {
		CHECK_NEAR(parley_broker_cap(b, m, 0), 0.5, NEAR);
		CHECK_NEAR(parley_broker_cap(b, m, 1), 4, NEAR);
	}
	for (int i = 0; i < 5; i++)
		round_of(b, 2, 2, idle, 10, now += WEIR_SEC);
	CHECK_NEAR(parley_broker_cap(b, 0, 1), 8, NEAR);
	for (int i = 0; i < 5; i++)
		round_of(b, 2, 2, dfs, 10, now += WEIR_SEC);
	CHECK_NEAR(parley_broker_cap(b, 0, 1), 8, NEAR); /* its max, not 9 */
	parley_broker_free(b);
}

/* A service below its share is not limited; one that stays at its cap takes what another leaves. */
static void growth(void)
{
	const struct parley_service s[] = {service(0, INFINITY), service(0, INFINITY)};
	const double both[] = {100, 100}, one[] = {100, 2};
	struct parley_broker *b;
	weir_time now = 0;

	CHECK_INT(parley_broker_new(s, 2, 1, PARLEY_RACK, &b), 0);
	for (int i = 0; i < 3; i++)
		round_of(b, 1, 2, both, 10, now += WEIR_SEC);
	CHECK_NEAR(parley_broker_cap(b, 0, 0), 5, NEAR);
	CHECK_NEAR(parley_broker_cap(b, 0, 1), 5, NEAR);
	for (int i = 0; i < 2; i++)
		round_of(b, 1, 2, one, 10, now += WEIR_SEC);
	CHECK_NEAR(parley_broker_cap(b, 0, 0), 8, NEAR);
	CHECK(isinf(parley_broker_cap(b, 0, 1)));
	parley_broker_free(b);
}

/* A member that falls silent counts with its last usage, then with its mins. */
static void silence(void)
{
	struct parley_service s = service(0, INFINITY);
	const double usage = 6;
	struct parley_broker *b;

	s.leaf_min = 1;
	CHECK_INT(parley_broker_new(&s, 1, 2, PARLEY_RACK, &b), 0);
	parley_broker_hear(b, 0, &usage, WEIR_SEC);
	parley_broker_hear(b, 1, &usage, WEIR_SEC);
	parley_broker_step(b, 10, WEIR_SEC);
	CHECK_NEAR(parley_broker_cap(b, 0, 0), 5, NEAR);
	parley_broker_hear(b, 0, &usage, 6 * WEIR_SEC);
	parley_broker_step(b, 10, 6 * WEIR_SEC); /* silent for 5 s: 6 still */
	CHECK_NEAR(parley_broker_cap(b, 0, 0), 5, NEAR);
	parley_broker_hear(b, 0, &usage, 7 * WEIR_SEC);
	parley_broker_step(b, 10, 7 * WEIR_SEC); /* its min of 1 is kept for it */
	CHECK_NEAR(parley_broker_cap(b, 0, 0), 9, NEAR);
	parley_broker_free(b);
}

/* However members' usage moves, their caps under a max never add up to more. */
static void limit(void)
{
	const struct parley_service s = service(0, 20);
	struct parley_broker *b;
	weir_time now = 0;

	CHECK_INT(parley_broker_new(&s, 1, 10, PARLEY_FABRIC, &b), 0);
	for (int round = 0; round < 50; round++) {
		double sum = 0, demand[10];

		for (int m = 0; m < 10; m++)
			demand[m] = (round + m) % 3 ? 100 : 0;
		round_of(b, 10, 1, demand, INFINITY, now += 10 * WEIR_SEC);
		for (size_t m = 0; m < 10; m++)
			sum += parley_broker_cap(b, m, 0);
		CHECK_NEAR(sum, 20, NEAR);
	}
	parley_broker_free(b);
}

static void refusals(void)
{
	struct parley_service s[] = {service(0, 1), service(0, 1)};
	struct parley_broker *b;

	s[0].parent = 1;
	CHECK_INT(parley_broker_new(s, 2, 1, 1, &b), -EINVAL);
}

/* ---- machine.h */

static void limiter(void)
{
	struct parley_limiter l = {.rate = 1e6, .burst = 3000, .tokens = 3000};
	weir_time now = 0;
	uint64_t sent = 0;

	while (now < WEIR_SEC) {
		now = parley_limiter_due(&l, now);
		if (now >= WEIR_SEC)
			break;
		parley_limiter_take(&l, 1500);
		sent += 1500;
	}
	CHECK(sent <= 1000000 + 3000 + 1500);
	CHECK(sent >= 1000000);
	parley_limiter_set(&l, INFINITY, now);
	CHECK_INT(parley_limiter_due(&l, now), now);
}

static void periods(void)
{
	struct parley_cap c = {5, 9, 10};

	CHECK_INT(parley_period(1.25e9, 1500), 200 * WEIR_US);
	CHECK_INT(parley_period(1.25e7, 1500), 4800 * WEIR_US);
	CHECK_NEAR(parley_cap_now(&c, 9), 5, 0);
	CHECK_NEAR(parley_cap_now(&c, 10), 9, 0);
}

/* Four senders, of which none knows of the others, settle at a quarter within 30 periods. */
static void meter(void)
{
	struct parley_meter m;
	double rate = 1.25e9;

	parley_meter_init(&m, 1.25e9, true);
	for (int i = 0; i < 30; i++) {
		for (int k = 0; k < 4; k++)
			parley_meter_count(&m, (uint32_t)(rate * 200e-6), false);
		rate = parley_meter_step(&m, 1.125e9, PARLEY_PERIOD);
	}
	CHECK_NEAR(rate, 1.125e9 / 4, 1e-4 * 1.125e9);
	parley_meter_init(&m, 1.25e9, true);
	CHECK(!parley_meter_count(&m, 9999, true));
	CHECK(!parley_meter_count(&m, 0, true));
	CHECK(parley_meter_count(&m, 1, true));
}

int main(void)
{
	figure1();
	growth();
	silence();
	limit();
	refusals();
	limiter();
	periods();
	meter();
	return 0;
}
