/* SPDX-License-Identifier: BSD-3-Clause */
/* knee: finds the knee on curves of different shapes, with windows that follow it, on a
 * disturbed host, after it moved, and with idle times. */
#include "control/parda/knee.h"
#include "base/rng.h"
#include "test.h"

struct resource {
	double capacity, base; /* per second; ns of an empty resource */
	bool sharp;            /* sharp knee, or a slow bend */
};

struct loop { /* windows that follow the threshold, as PARDA's do */
	struct resource resource;
	double window, before; /* requests: now, and in the interval before */
	double demand;         /* requests at most; 0: unlimited */
	double busy;           /* part of each interval with requests; 0: all */
	double disturbed;      /* part of the intervals that lose a fifth of the throughput */
	struct rng rng;
	struct knee knee;
};

static double throughput(const struct resource *r, double inside)
{
	double empty = inside / r->base * 1e9;

	return r->sharp ? fmin(empty, r->capacity) : r->capacity * (1 - exp(-empty / r->capacity));
}

/* Return the least latency with 95 % of the throughput, by trying every window. */
static double sweep(const struct resource *r)
{
	double n = 0.1;

	while (throughput(r, n) < 0.95 * r->capacity)
		n *= 1.001;
	return n / throughput(r, n) * 1e9;
}

static void start(struct loop *l, const struct resource *r, const struct knee_config *config)
{
	*l = (struct loop){.resource = *r, .window = 32, .before = 32};
	rng_init(&l->rng, 1, "knee");
	knee_init(&l->knee, config);
}

static void interval(struct loop *l)
{
	double n = l->demand > 0 ? fmin(l->window, l->demand) : l->window;
	double busy = l->busy > 0 ? l->busy : 1;
	double rate = throughput(&l->resource, n) * (1 + 0.01 * rng_normal(&l->rng));
	double latency;

	if (rng_double(&l->rng) < l->disturbed) /* the same number inside takes longer */
		rate *= 0.8;
	latency = n / rate * 1e9;
	/* Hosts do not measure at the same moment: while windows move, the sum of their rates is
	 * off by part of the change. */
	knee_step(&l->knee, &(struct knee_seen){busy * n, l->window,
				    busy * rate * (1 + 0.3 * log(l->window / l->before)), latency});
	l->before = l->window;
	l->window *= 0.2 + 0.8 * l->knee.asked / latency;
	l->window = fmax(0.25, fmin(l->window, 512));
}

static void run_intervals(struct loop *l, int n)
{
	while (n-- > 0)
		interval(l);
}

static const struct resource resources[] = {{3200, 5e6, true}, {3200, 5e6, false},
	{200, 9e6, false}, {90000, 0.3e6, false}, {90000, 0.3e6, true}, {2000, 4e6, true}};
#define N_RESOURCES (sizeof(resources) / sizeof(*resources))

static void test_finds_it(void)
{
	struct loop l;

	for (size_t i = 0; i < N_RESOURCES; i++) {
		start(&l, &resources[i], NULL);
		CHECK_NEAR(l.knee.asked, 100e6, 0);
		run_intervals(&l, 200);
		for (int k = 0; k < 400; k++) { /* and stays there */
			interval(&l);
			CHECK_NEAR(l.knee.knee, sweep(&resources[i]), 0.12);
		}
	}
}

/* One to three of ten intervals are disturbed: as many inside, fewer done, later. (At a slow
 * bend 1 % of throughput is 20 % of latency, so the result varies a little.) */
static void test_disturbed(void)
{
	struct loop l;

	for (size_t i = 0; i < N_RESOURCES; i++) {
		for (int tenths = 1; tenths <= 3; tenths++) {
			double knee = sweep(&resources[i]), mean = 0;

			start(&l, &resources[i], NULL);
			l.disturbed = tenths / 10.0;
			run_intervals(&l, 300);
			for (int k = 0; k < 300; k++) {
				interval(&l);
				CHECK_NEAR(l.knee.knee, knee, 0.4);
				mean += l.knee.knee / 300;
			}
			CHECK_NEAR(mean, knee, tenths < 3 ? 0.2 : 0.25);
		}
	}
}

/* Measurements at the start are not typical, and the largest throughput seen is too low. */
static void test_bad_start(void)
{
	struct loop l;

	for (size_t i = 0; i < N_RESOURCES; i++) {
		for (int part = 3; part <= 10; part++) {
			start(&l, &resources[i], NULL);
			l.disturbed = part / 10.0;
			run_intervals(&l, 20);
			l.disturbed = 0;
			run_intervals(&l, 300);
			CHECK_NEAR(l.knee.knee, sweep(&resources[i]), 0.25);
		}
	}
}

/* Probing costs little throughput. */
static void test_throughput(void)
{
	struct loop l;

	for (size_t i = 0; i < N_RESOURCES; i++) {
		double done = 0;

		start(&l, &resources[i], NULL);
		run_intervals(&l, 200);
		for (int k = 0; k < 400; k++) {
			interval(&l);
			done += throughput(&resources[i], l.window) / 400;
		}
		CHECK(done > 0.93 * resources[i].capacity);
	}
}

/* The resource changes: slower, faster, or with more latency only. */
static void test_follows_it(void)
{
	static const struct resource pairs[][2] = {{{3200, 5e6, false}, {6400, 2e6, false}},
		{{2000, 4e6, true}, {1000, 8e6, true}}, {{2000, 4e6, true}, {1000, 4e6, true}},
		{{2000, 4e6, true}, {2000, 8e6, true}}, {{3200, 5e6, false}, {1600, 5e6, false}},
		{{3200, 5e6, false}, {1600, 20e6, false}}};
	struct loop l;

	for (int i = 0; i < 12 * 6; i++) { /* back and forth, with six seeds */
		const struct resource *pair = pairs[i % 6];
		bool back = i / 6 % 2;

		start(&l, &pair[back], NULL);
		rng_init(&l.rng, (uint64_t)i / 12 + 1, "f");
		run_intervals(&l, 500);
		CHECK_NEAR(l.knee.knee, sweep(&pair[back]), 0.2);
		l.resource = pair[!back];
		run_intervals(&l, 400);
		CHECK_NEAR(l.knee.knee, sweep(&pair[!back]), 0.25);
	}
}

/* Fewer inside with more latency was a disturbance, and must not hold the window. */
static void test_less_takes_no_longer(void)
{
	struct knee k;

	knee_init(&k, NULL);
	for (int i = 0; i < 6; i++)
		knee_step(&k, &(struct knee_seen){128, 128, 2000, 64e6});
	knee_step(&k, &(struct knee_seen){110, 112, 1700, 108e6});
	knee_step(&k, &(struct knee_seen){110, 110, 1950, 108e6});
	CHECK(k.knee <= 64e6);
}

static void test_little_demand(void)
{
	struct loop l;

	for (size_t i = 0; i < N_RESOURCES; i++) {
		double before;

		start(&l, &resources[i], NULL);
		run_intervals(&l, 300);
		before = l.knee.knee;
		l.demand = resources[i].capacity * resources[i].base / 5e9;
		run_intervals(&l, 300);
		CHECK_NEAR(l.knee.knee, before, 0.1);
		l.demand = 0;
		l.busy = 0.4; /* busy, part of the time */
		run_intervals(&l, 300);
		CHECK_NEAR(l.knee.knee, before, 0.1);
		knee_step(&l.knee, &(struct knee_seen){0}); /* without any requests */
		CHECK_NEAR(l.knee.knee, before, 0.1);
	}
}

static void test_bounds(void)
{
	struct knee_config config = {.least = 20e6, .most = 40e6};
	struct loop l;

	start(&l, &resources[0], &config);
	for (int i = 0; i < 400; i++) {
		interval(&l);
		CHECK(l.knee.asked >= 20e6 && l.knee.asked <= 40e6);
	}
	knee_step(&l.knee, &(struct knee_seen){NAN, 1, 1, 1});
	knee_step(&l.knee, &(struct knee_seen){1e30, 1e30, 1, 1});
	knee_step(&l.knee, &(struct knee_seen){1e-30, 1, 1, 1});
	knee_step(&l.knee, &(struct knee_seen){1, 1, NAN, INFINITY});
	run_intervals(&l, 10);
	CHECK(l.knee.asked >= 20e6 && l.knee.asked <= 40e6);
}

int main(void)
{
	RUN(test_finds_it);
	RUN(test_disturbed);
	RUN(test_bad_start);
	RUN(test_throughput);
	RUN(test_follows_it);
	RUN(test_less_takes_no_longer);
	RUN(test_little_demand);
	RUN(test_bounds);
	return 0;
}
