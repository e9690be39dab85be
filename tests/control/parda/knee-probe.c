/* SPDX-License-Identifier: BSD-3-Clause */
/* knee-probe: finds the knee of a closed queue in six bursts, none longer than allowed. */
#include "control/parda/knee-probe.h"
#include "base/rng.h"
#include "test.h"

#define SERVERS_MAX 64

struct array { /* `disks` servers, each with its own queue; a read goes to any of them */
	int disks, spread;
	double service; /* ns */
	double limit;   /* least ns between any two reads, for a bottleneck in front of the disks */
	weir_time free[SERVERS_MAX], front;
	struct rng rng;
};

static weir_time serve(struct array *a, weir_time now)
{
	weir_time *disk = &a->free[(int)(rng_double(&a->rng) * a->disks)];
	double ns = a->service * (1 + a->spread / 100.0 * (2 * rng_double(&a->rng) - 1));

	a->front = (now > a->front ? now : a->front) + (weir_time)a->limit;
	*disk = (a->front > *disk ? a->front : *disk) + (weir_time)ns;
	return *disk;
}

/* Run a burst from *at, and set *at to its end. Return the most reads inside. */
static uint32_t burst(struct array *a, struct probe_burst *b, weir_time *at, weir_time stop)
{
	weir_time done[PROBE_MOST], from[PROBE_MOST], now = *at;
	uint32_t inside = 0, most = 0;

	probe_burst_start(b, now);
	for (;;) {
		uint32_t k = 0, more;

		b->over |= now >= stop;
		for (more = probe_burst_more(b, now); more > 0; more--) {
			done[inside] = serve(a, now);
			from[inside++] = now;
		}
		CHECK_INT(b->inside, inside);
		most = inside > most ? inside : most;
		if (inside == 0)
			break;
		for (uint32_t i = 1; i < inside; i++)
			k = done[i] < done[k] ? i : k;
		now = done[k];
		probe_burst_done(b, now, now - from[k]);
		done[k] = done[--inside];
		from[k] = from[inside];
	}
	*at = now;
	return most;
}

/* Return the long-term requests a second with n inside. */
static double rate(const struct array *like, int n)
{
	struct array a = *like;
	weir_time done[PROBE_MOST], now = 0;
	int count = 0;

	for (int i = 0; i < n; i++)
		done[i] = serve(&a, 0);
	for (; now < 60 * WEIR_SEC; count++) {
		int k = 0;

		for (int i = 1; i < n; i++)
			k = done[i] < done[k] ? i : k;
		now = done[k];
		done[k] = serve(&a, now);
	}
	return count * 1e9 / (double)now;
}

/* Return the least latency, ns, with 95 % of the throughput of `many` inside. */
static double true_knee(const struct array *a, int many)
{
	double most = rate(a, many);

	for (int n = 1; n < many; n++) {
		double x = rate(a, n);

		if (x >= 0.95 * most)
			return n / x * 1e9;
	}
	return NAN;
}

static void make(
	struct array *a, int disks, double service, int spread, double limit, uint64_t seed)
{
	*a = (struct array){.disks = disks, .service = service, .spread = spread, .limit = limit};
	rng_init(&a->rng, seed, "array");
}

static void check_knee(
	int disks, double service, int spread, double limit, int many, double tolerance)
{
	struct array a;
	double knee;
	int good = 0;

	make(&a, disks, service, spread, limit, 1);
	knee = true_knee(&a, many);
	for (uint64_t seed = 1; seed <= 10; seed++) {
		weir_time now = 1000 * WEIR_SEC;
		struct probe p;

		probe_init(&p, 200.0 * WEIR_MS, PROBE_BURST);
		make(&a, disks, service, spread, limit, seed);
		for (int i = 0; i < 6; i++) {
			struct probe_burst b;
			weir_time before = now;

			probe_plan(&p, &b);
			burst(&a, &b, &now, WEIR_NEVER);
			CHECK(now - before <= PROBE_BURST);
			probe_learn(&p, &b);
			now += 10 * WEIR_SEC;
		}
		good += fabs(p.knee / knee - 1) <= tolerance;
	}
	printf("%d disks: the knee is %.2f ms; near it %d of 10\n", disks, knee / 1e6, good);
	CHECK(good >= 9);
}

static void test_knee(void)
{
	/* The disks have 7 % more to give than the front: in the long run their queues become so
	 * uneven that they hold it up, but not in a burst, which finds 0.6 of the knee. */
	check_knee(10, 2.7e6, 40, 289e3, 200, 0.5);
	check_knee(40, 0.5e6, 20, 20e3, 400, 0.2);
	check_knee(4, 0.2e6, 50, 60e3, 100, 0.2);
}

/* Nor are bursts longer than allowed where few slow disks have long queues; one in a thousand has a read that takes twice as
 * long as all before it. */
static void test_slow(void)
{
	weir_time longest = 0;
	int late = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		weir_time now = WEIR_SEC;
		struct array a;
		struct probe p;

		make(&a, 5, 4.5e6, 60, 0, seed);
		probe_init(&p, 200.0 * WEIR_MS, PROBE_BURST);
		for (int i = 0; i < 20; i++) {
			weir_time before = now;
			struct probe_burst b;

			probe_plan(&p, &b);
			burst(&a, &b, &now, WEIR_NEVER);
			probe_learn(&p, &b);
			longest = now - before > longest ? now - before : longest;
			late += now - before > PROBE_BURST;
		}
	}
	printf("five slow disks: the longest of 2000 bursts takes %.0f ms, %d are late\n",
		(double)longest / WEIR_MS, late);
	CHECK(late <= 1);
}

/* A serial device needs only one read inside: the knee is its service time, or a little more. */
static void test_serial(void)
{
	weir_time now = WEIR_SEC;
	struct array a;
	struct probe p;

	make(&a, 1, 1e6, 10, 0, 1);
	probe_init(&p, 200.0 * WEIR_MS, PROBE_BURST);
	for (int i = 0; i < 6; i++) {
		struct probe_burst b;

		probe_plan(&p, &b);
		burst(&a, &b, &now, WEIR_NEVER);
		probe_learn(&p, &b);
	}
	CHECK(p.knee >= 0.9e6 && p.knee <= 1.5e6);
}

/* A burst that is cut short counts with its measurements; one without measurements changes
 * nothing. */
static void test_cut_short(void)
{
	struct array a;
	struct probe p;
	weir_time now = WEIR_SEC;
	double knee;
	unsigned bursts = 0;

	make(&a, 10, 2.7e6, 40, 289e3, 1);
	knee = true_knee(&a, 200);
	probe_init(&p, 200.0 * WEIR_MS, PROBE_BURST);
	for (; bursts < 200 && !(p.knee > 0); bursts++) {
		struct probe_burst b;

		probe_plan(&p, &b);
		burst(&a, &b, &now, now + 60 * WEIR_MS);
		probe_learn(&p, &b);
	}
	CHECK(bursts < 30);
	for (int i = 0; i < 20; i++) {
		struct probe_burst b;

		probe_plan(&p, &b);
		burst(&a, &b, &now, now + 60 * WEIR_MS);
		probe_learn(&p, &b);
	}
	CHECK_NEAR(p.knee, knee, 0.5);
	for (int i = 0; i < 50; i++) {
		struct probe before = p;
		struct probe_burst b;

		probe_plan(&p, &b);
		burst(&a, &b, &now, now + WEIR_MS);
		probe_learn(&p, &b);
		CHECK(memcmp(&p, &before, sizeof(p)) == 0);
	}
}

/* The result stays in its bounds for any measurements. */
static void test_hostile(void)
{
	struct rng rng;

	rng_init(&rng, 1, "hostile");
	for (int run = 0; run < 200; run++) {
		struct probe p;
		weir_time now = WEIR_SEC;

		probe_init(&p, 1e6 + rng_double(&rng) * 2e8, PROBE_BURST);
		for (int i = 0; i < 30; i++) {
			struct probe_burst b;
			weir_time end;

			probe_plan(&p, &b);
			CHECK(b.n >= 1 && b.n <= PROBE_PHASES);
			probe_burst_start(&b, now);
			end = now + PROBE_BURST;
			while (probe_burst_more(&b, now) || b.inside) {
				CHECK(b.inside <= PROBE_MOST);
				CHECK(b.over || now < end);
				now += (weir_time)(exp2(rng_double(&rng) * 24));
				probe_burst_done(&b, now, (weir_time)(exp2(rng_double(&rng) * 28)));
			}
			probe_learn(&p, &b);
			CHECK(p.knee >= 0 && p.knee <= p.latency_most);
			CHECK(isfinite(p.inside) && isfinite(p.rate));
		}
	}
}

int main(void)
{
	RUN(test_knee);
	RUN(test_slow);
	RUN(test_serial);
	RUN(test_cut_short);
	RUN(test_hostile);
	return 0;
}
