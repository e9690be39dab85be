/* SPDX-License-Identifier: BSD-3-Clause */
/* law: each equation by hand, its fixed point, and its speed. */
#include "control/parda/law.h"
#include "test.h"

static void test_average(void)
{
	CHECK_NEAR(parda_average(20, 0.25, 40), 35, 1e-12);
	CHECK_NEAR(parda_average(0, 0.25, 40), 40, 1e-12); /* no earlier value */
	CHECK_NEAR(parda_average(20, 0, 40), 40, 1e-12);
	CHECK_NEAR(parda_average(20, 1, 40), 20, 1e-12);
	/* 1000 IOs in sequence are 1000 steps with weight 0.998 for the past */
	double one = 20;
	for (int i = 0; i < 1000; i++)
		one = 0.002 * 40 + 0.998 * one;
	CHECK_NEAR(parda_average_ios(20, 0.002, 40, 1000), one, 1e-9);
	CHECK_NEAR(parda_average_ios(20, 0.002, 40, 0), 20, 1e-12);
	/* two time spans are as one of their sum */
	CHECK_NEAR(parda_average_time(parda_average_time(20, 3, 10, 40), 4, 10, 40),
		parda_average_time(20, 7, 10, 40), 1e-12);
	CHECK_NEAR(parda_average_time(20, 10, 10, 40), 40 - 20 * exp(-1), 1e-12);
	CHECK_NEAR(parda_average_time(20, 1, 0, 40), 40, 1e-12);
}

static void test_window(void)
{
	struct parda_law law = {.threshold = 30, .gamma = 0.8, .wmin = 4, .wmax = 64};

	CHECK_NEAR(parda_window(&law, 32, 1, 37.2), 6.4 + 0.8 * (30 / 37.2 * 32 + 1), 1e-12);
	CHECK_NEAR(parda_window(&law, 32, 1, 30), 32.8, 1e-12);
	CHECK_NEAR(parda_window(&law, 32, 0, 30), 32, 1e-12);
	CHECK_NEAR(parda_window(&law, 60, 8, 10), 64, 1e-12);
	CHECK_NEAR(parda_window(&law, 5, 0, 300), 4, 1e-12);
	CHECK_NEAR(parda_window(&law, 32, 9, 0), 32, 1e-12); /* the latency is unknown */
	CHECK_NEAR(parda_window(&law, 99, 9, 0), 64, 1e-12);
	law.wmin = 0.05;
	CHECK_NEAR(parda_window(&law, 0.5, 0.01, 60), 0.1 + 0.8 * (0.25 + 0.01), 1e-12);
}

/* Hosts that are never idle before an array that serves C per ms: the array is Little's law. */
#define HOSTS 4
static double settle(
	const struct parda_law *law, const double *beta, double *w, double capacity, int steps)
{
	double sum = 0;

	for (int t = 0; t <= steps; t++) {
		sum = 0;
		for (int i = 0; i < HOSTS; i++)
			sum += w[i];
		for (int i = 0; t < steps && i < HOSTS; i++)
			w[i] = parda_window(law, w[i], beta[i], sum / capacity);
	}
	return sum / capacity;
}

static void test_equilibrium(void)
{
	struct parda_law law = {.threshold = 25, .gamma = 0.8, .wmin = 0, .wmax = 1e6};
	double beta[HOSTS] = {1, 1.5, 2, 4}, sum = 8.5, capacity = 3.2;

	for (int from = 0; from < 2; from++) {
		double w[HOSTS] = {64, 64, 64, 64}, small[HOSTS] = {1, 90, 2, 0.1}, latency;

		latency = settle(&law, beta, from ? small : w, capacity, 500);
		CHECK_NEAR(latency, parda_equilibrium_latency(sum, capacity, 25), 1e-9);
		for (int i = 0; i < HOSTS; i++)
			CHECK_NEAR((from ? small : w)[i],
				parda_equilibrium(beta[i], sum, capacity, 25), 1e-9);
	}
}

/* With the scale, latency settles at the threshold itself, within the scale's quantum. */
static void test_scale(void)
{
	for (double epsilon = 0.05; epsilon < 0.21; epsilon += 0.05) {
		for (double capacity = 0.1; capacity < 300; capacity *= 1.7) {
			double shares[HOSTS] = {1, 1, 2, 3}, w[HOSTS] = {9, 9, 9, 9}, latency = 0;
			struct parda_law law = {parda_fed(25, epsilon), 0.8, 0, 1e9};

			for (int t = 0; t < 600; t++) {
				double inside = w[0] + w[1] + w[2] + w[3], beta[HOSTS];
				double scale = parda_scale(epsilon, inside, 7);

				for (int i = 0; i < HOSTS; i++)
					beta[i] = scale * shares[i];
				latency = settle(&law, beta, w, capacity, 1);
			}
			CHECK_NEAR(latency, 25, 0.1 * epsilon);
			CHECK_NEAR(w[3] / w[0], 3, 1e-3);
			CHECK_NEAR(w[2] / w[1], 2, 1e-3);
		}
	}
	CHECK_NEAR(parda_scale(0.2, 0, 3), 0, 0);
	CHECK_NEAR(parda_scale(0.2, 3, 0), 0, 0);
	/* exact at the steps, and constant near them */
	CHECK_NEAR(parda_scale(1, 8, 2), 2, 1e-12);
	CHECK(parda_scale(1, 8.6, 2) == parda_scale(1, 7.4, 2));
	CHECK(parda_scale(1, 9, 2) == parda_scale(1, 9.7, 2));
}

/* After one time constant, (T/γ)(1 + 1/ε), 1/e of a wrong ratio is left. */
static void test_time_constant(void)
{
	const double epsilon = 0.05, gamma = 0.8;
	struct parda_law law = {parda_fed(25, epsilon), gamma, 0, 1e9};
	double beta[HOSTS], w[HOSTS] = {30, 10, 20, 20}; /* the fixed point is 20 each */
	double sum = epsilon / (1 + epsilon) * 80;

	for (int i = 0; i < HOSTS; i++)
		beta[i] = sum / HOSTS;
	settle(&law, beta, w, 80.0 / 25, (int)(1 / gamma * (1 + 1 / epsilon) + 0.5));
	CHECK_NEAR(w[0] - 20, 10 * exp(-1), 0.03);
	CHECK_NEAR(20 - w[1], 10 * exp(-1), 0.03);
}

static void test_shares(void)
{
	struct parda_vm vms[] = {{20, 30, 0, 0}, {10, 30, 0, 1}};

	CHECK_NEAR(parda_shares(vms, 2, 30), 30, 1e-12);
	vms[0].outstanding = 10; /* of its 20 slots */
	CHECK_NEAR(parda_shares(vms, 2, 30), 20, 1e-12);
	vms[0].outstanding = 0;
	CHECK_NEAR(parda_shares(vms, 2, 30), 10, 1e-12);
	vms[1].outstanding = 5;
	CHECK_NEAR(parda_shares(vms, 2, 30), 5, 1e-12);
	CHECK_NEAR(parda_shares(vms, 0, 30), 0, 0);
	CHECK_NEAR(parda_shares(vms, 2, 0), 30, 1e-12); /* no slots: none is unused */
}

static void test_floor(void)
{
	struct parda_vm vms[] = {{1, 30, 500, 0}, {1, 2, 500, 1}, {1, 30, 0, 2}};

	/* 500 a second at 20 ms need ten slots; a VM with two requests needs two */
	CHECK_NEAR(parda_floor(vms, 3, 0.020), 12, 1e-12);
	CHECK_NEAR(parda_floor(vms, 3, 0), 0, 0);
	CHECK_NEAR(parda_floor(vms + 2, 1, 0.020), 0, 0);
}

static void test_by_size(void)
{
	CHECK_NEAR(parda_by_size(10, 131072, 0), 10, 1e-12);
	CHECK_NEAR(parda_by_size(10, 0, 65536), 10, 1e-12); /* not known */
	CHECK_NEAR(parda_by_size(10, 512, 65536), 10, 1e-12);
	CHECK_NEAR(parda_by_size(10, 16384, 65536), 10, 1e-12);
	CHECK_NEAR(parda_by_size(10, 131072, 65536), 10.0 * 192 / 80, 1e-12);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void test_median(void)
{
	double values[257], sorted[257];
	unsigned random = 1;

	CHECK_NEAR(parda_median(values, 0), 0, 0);
	for (size_t n = 1; n <= 257; n++) {
		for (int kind = 0; kind < 4; kind++) {
			for (size_t i = 0; i < n; i++) {
				random = random * 1103515245 + 12345;
				values[i] = kind == 0   ? random >> 16
					    : kind == 1 ? (double)i
					    : kind == 2 ? (double)(n - i)
							: (random >> 16) % 3;
			}
			memcpy(sorted, values, n * sizeof(*values));
			qsort(sorted, n, sizeof(*sorted), by_value);
			CHECK(parda_median(values, n) == sorted[(n - 1) / 2]);
		}
	}
}

int main(void)
{
	RUN(test_average);
	RUN(test_window);
	RUN(test_equilibrium);
	RUN(test_scale);
	RUN(test_time_constant);
	RUN(test_shares);
	RUN(test_floor);
	RUN(test_by_size);
	RUN(test_median);
	return 0;
}
