/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queueing: the server model against queueing theory.
 *
 * Poisson arrivals from one stream, services from the server's own, so that neither shifts the
 * other's numbers. Each run is cut into batches of equal length; their means give the noise, and
 * the difference to theory must be within it (three standard errors) as well as within 2 %.
 */
#include "model/server.h"
#include <weir/hist.h>
#include "test.h"

#define BATCHES 20
#define POOL    20000

struct result {
	double response, error; /* mean, and its standard error from the batches; s */
	double in_system;       /* mean number, over time */
	struct weir_hist hist;  /* of responses */
};

static struct device_io ios[POOL];
static struct result result;

static void record(const struct device_io *io, uint64_t n, uint64_t *count, double *batch)
{
	weir_time r = io->finished - io->arrived;

	if (*count < n)
		batch[*count * BATCHES / n] += (double)r;
	weir_hist_record(&result.hist, (uint64_t)r);
	(*count)++;
}

static void summarise(uint64_t n, const double *batch)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < BATCHES; i++) {
		double mean = batch[i] * BATCHES / (double)n / 1e9;

		sum += mean;
		squares += mean * mean;
	}
	result.response = sum / BATCHES;
	result.error =
		sqrt((squares / BATCHES - result.response * result.response) / (BATCHES - 1));
}

/* `n` arrivals at `rate` per second. */
static void simulate(struct server_config c, double rate, uint64_t n)
{
	double batch[BATCHES] = {0}, area = 0;
	struct device_io *spare = NULL, *io, *next;
	weir_time t = 0, arrival, last = 0;
	uint64_t count = 0, inside = 0, arrived = 0;
	struct device *d;
	struct rng r;

	CHECK_INT(server_new(&c, 1, "server", &d, NULL), 0);
	rng_init(&r, 1, "arrivals");
	weir_hist_clear(&result.hist);
	for (size_t i = 0; i < POOL; i++) {
		ios[i].next = spare;
		spare = &ios[i];
	}
	arrival = (weir_time)rng_exp(&r, 1e9 / rate);
	while (count < n) {
		bool arrives = arrived < n && arrival < device_next(d);

		t = arrives ? arrival : device_next(d);
		area += (double)inside * (double)(t - last);
		last = t;
		if (arrives) {
			CHECK(spare != NULL);
			io = spare;
			spare = io->next;
			device_submit(d, t, io);
			inside++;
			arrived++;
			arrival += (weir_time)(rng_exp(&r, 1e9 / rate) + 0.5);
			continue;
		}
		for (io = device_step(d, t); io; io = next) {
			next = io->next;
			record(io, n, &count, batch);
			io->next = spare;
			spare = io;
			inside--;
		}
	}
	device_free(d);
	summarise(n, batch);
	result.in_system = area / (double)last;
}

static void check(const char *what, double load, double rate, double wait, double service)
{
	double mean_wait = result.response - service, queue = result.in_system - rate * service;

	printf("%s at %.2f: wait %.4f (theory %.4f, error %.4f), queue %.4f (theory %.4f)\n", what,
		load, mean_wait * 1e3, wait * 1e3, result.error * 1e3, queue, rate * wait);
	CHECK_NEAR(result.response, wait + service, 0.02);
	CHECK_NEAR(mean_wait, wait, 0.02);
	CHECK_NEAR(queue, rate * wait, 0.02);
	CHECK_NEAR(result.in_system, rate * (wait + service), 0.02);
	CHECK(fabs(result.response - wait - service) < 3 * result.error);
	CHECK(result.error < 0.02 * wait);
}

static void mm1(void)
{
	static const struct {
		double load;
		uint64_t n;
	} rows[] = {{0.5, 1000000}, {0.8, 1500000}, {0.9, 3000000}};
	struct server_config c = {.servers = 1, .rate = 1000, .service = SERVER_EXPONENTIAL};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double rho = rows[i].load;

		simulate(c, 1000 * rho, rows[i].n);
		check("M/M/1", rho, 1000 * rho, 1e-3 * rho / (1 - rho), 1e-3);
		/* The response is exponential: its p-quantile is −ln(1 − p) / (µ − λ). At 0.9 the
		 * 99th percentile of so many arrivals is itself accurate only to some 3 %. */
		for (int p = 50; rho < 0.9 && p <= 99; p += 7)
			CHECK_NEAR((double)weir_hist_percentile(&result.hist, p),
				-log(1 - p / 100.0) * 1e9 / (1000 * (1 - rho)), 0.025);
	}
}

static void md1(void)
{
	static const double loads[] = {0.5, 0.8};
	struct server_config c = {.servers = 1, .rate = 1000, .service = SERVER_FIXED};

	for (int i = 0; i < 2; i++) {
		double rho = loads[i];

		simulate(c, 1000 * rho, i ? 1000000 : 500000);
		check("M/D/1", rho, 1000 * rho, 1e-3 * rho / (2 * (1 - rho)), 1e-3);
	}
}

/* Return Erlang's C: the probability that an arrival waits. */
static double erlang_c(unsigned k, double a)
{
	double term = 1, sum = 1;

	for (unsigned i = 1; i < k; i++) {
		term *= a / i;
		sum += term;
	}
	term *= a / k / (1 - a / k);
	return term / (sum + term);
}

static void mmk(void)
{
	static const struct {
		unsigned k;
		double load;
		uint64_t n;
	} rows[] = {{2, 0.6, 1000000}, {2, 0.8, 1500000}, {8, 0.8, 3000000}};

	CHECK_NEAR(erlang_c(1, 0.7), 0.7, 1e-12);
	CHECK_NEAR(erlang_c(2, 1), 1 / 3.0, 1e-12);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned k = rows[i].k;
		double rate = 1000 * rows[i].load;
		struct server_config c = {
			.servers = k, .rate = 1000, .service = SERVER_EXPONENTIAL};

		simulate(c, rate, rows[i].n);
		check(k == 2 ? "M/M/2" : "M/M/8", rows[i].load, rate,
			erlang_c(k, k * rows[i].load) / (1000 - rate), k * 1e-3);
	}
}

int main(void)
{
	RUN(mm1);
	RUN(md1);
	RUN(mmk);
	return 0;
}
