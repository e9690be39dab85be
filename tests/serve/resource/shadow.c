/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow: the estimates of shadow mode equal the results once the policy is enforced; in virtual
 * time, on models of a server, an array and an SSD, with clients in open and in closed loops.
 */
#include "serve/shadow-rig.h"

static const struct {
	struct shadow_model model;
	unsigned depth; /* of the gate */
} devices[] = {{{"server", shadow_server_4, 4000, false}, 16},
	{{"ssd", shadow_ssd, 3900, false}, 16}, {{"array", shadow_array, 1700, true}, 68}};

static void run_policy(size_t device, const char *tenants, bool enforce,
	const struct rig_client *clients, size_t n, struct seen *ret)
{
	struct shadow_run how = {.model = &devices[device].model,
		.depth = devices[device].depth,
		.tenants = tenants,
		.clients = clients,
		.n = n,
		.seed = 1};

	shadow_run(&how, enforce, ret);
}

static void show(
	const char *what, size_t device, size_t n, const struct seen *is, const struct seen *says)
{
	printf("  %s, %s:", devices[device].model.name, what);
	for (size_t i = 0; i < n; i++)
		printf(" %.0f, shadow %.0f (%.2f; %.0f … %.0f; %u outstanding, think %.2f ms, "
		       "%u queued)%s",
			is->rate[i], says->rate[i], says->rate[i] / is->rate[i], says->low[i],
			says->high[i], (unsigned)says->estimate[i].outstanding,
			(double)says->estimate[i].think / WEIR_MS, says->queued[i],
			i + 1 == n ? "\n" : ";");
}

/* Open loop: within 15 % of enforcement. */
static void check_open(const char *what, const char *tenants, double a, double b)
{
	for (size_t d = 0; d < 3; d++) {
		struct rig_client clients[2] = {
			{.rate = a * devices[d].model.rate, .length = 4096},
			{.rate = b * devices[d].model.rate, .length = 4096},
		};
		struct seen is, says;

		run_policy(d, tenants, true, clients, 2, &is);
		run_policy(d, tenants, false, clients, 2, &says);
		show(what, d, 2, &is, &says);
		for (int i = 0; i < 2; i++) {
			CHECK_NEAR(says.rate[i], is.rate[i], 0.15);
			CHECK(says.queued[i] <= 1024);
		}
	}
}

/* Closed loop: the result of enforcement lies in the range, which is at most `wide`. */
static void check_all(const char *what, const char *tenants, const struct rig_client *clients,
	size_t n, double wide)
{
	for (size_t d = 0; d < 3; d++) {
		struct seen is, says;

		run_policy(d, tenants, true, clients, n, &is);
		run_policy(d, tenants, false, clients, n, &says);
		show(what, d, n, &is, &says);
		for (size_t i = 0; i < n; i++) {
			CHECK(says.low[i] <= is.rate[i] && is.rate[i] <= says.high[i]);
			CHECK(says.high[i] <= wide * says.low[i]);
			CHECK(says.queued[i] <= clients[i].depth);
			CHECK_NEAR((double)says.estimate[i].outstanding, clients[i].depth, 0.3);
		}
	}
}

static void check_closed(
	const char *what, const char *tenants, struct rig_client a, struct rig_client b)
{
	check_all(what, tenants, (struct rig_client[]){a, b}, 2, 3);
}

static void test_open(void)
{
	check_open("overloaded by two", TWO("weight: 1", "weight: 2"), 1.5, 1.5);
	check_open("one has a max", TWO("max: 500 iops", "weight: 1"), 0.5, 2);
	check_open("room for all", TWO("weight: 1", "weight: 1"), 0.2, 0.4);
	check_open("a light one", TWO("weight: 1", "weight: 1"), 0.1, 2);
}

/* Held writes of a tenant leave room for shadows of its reads. */
static void test_kinds(void)
{
	const char *tenants =
		"  - {name: a, max: {writes: 100 iops}, match: [{export: a}, {export: b}]}\n"
		"  - {name: b, match: {export: c}}\n";

	for (size_t d = 0; d < 3; d++) {
		struct rig_client clients[2] = {
			{.rate = 0.4 * devices[d].model.rate, .length = 4096},
			{.rate = 0.4 * devices[d].model.rate, .length = 4096, .op = BACK_WRITE},
		};
		struct seen is, says;

		run_policy(d, tenants, true, clients, 2, &is);
		run_policy(d, tenants, false, clients, 2, &says);
		printf("  %s: %.0f, shadow %.0f (%u queued)\n", devices[d].model.name, is.rate[0],
			says.rate[0], says.queued[0]);
		CHECK(is.rate[0] > 0.35 * devices[d].model.rate + 100);
		CHECK_NEAR(says.rate[0], is.rate[0], 0.15);
	}
}

static void test_closed(void)
{
	struct rig_client deep = {.depth = 64, .length = 4096}, one = {.depth = 1, .length = 4096};
	struct rig_client thinks = {
		.depth = 16, .length = 4096, .think = 5 * WEIR_MS, .even = true};

	check_closed("two alike", TWO("weight: 1", "weight: 2"), deep, deep);
	check_closed("one has a max", TWO("max: 300 iops", "weight: 1"), deep, deep);
	check_closed("one at a time beside a deep one", TWO("weight: 1", "weight: 1"), one, deep);
	check_closed("one thinks", TWO("weight: 4", "weight: 1"), thinks, deep);
	/* The device was hardly ever seen with so few requests inside. */
	check_all("both think", TWO("max: 200 iops", "weight: 1"),
		(struct rig_client[]){thinks, thinks}, 2, 6);
}

/* Other depths. With a max of the first tenant the device has fewer requests inside than ever
 * before: it may be as slow as before, or faster in proportion. */
static void test_depths(void)
{
	static const unsigned depths[][2] = {{1, 1}, {4, 2}, {16, 1}, {32, 4}};

	for (size_t k = 0; k < sizeof(depths) / sizeof(*depths); k++) {
		struct rig_client two[] = {{.depth = depths[k][0], .length = 4096},
			{.depth = depths[k][1], .length = 4096}};
		char what[64];

		snprintf(what, sizeof(what), "%u and %u", depths[k][0], depths[k][1]);
		check_all(what, TWO("max: 300 iops", "weight: 1"), two, 2, 15);
		two[0].think = WEIR_MS;
		check_all(what, TWO("weight: 1", "weight: 2"), two, 2, 3);
	}
}

static void test_four(void)
{
	static const unsigned depths[][TENANTS] = {{1, 2, 4, 16}, {2, 32, 4, 32}};

	for (size_t k = 0; k < sizeof(depths) / sizeof(*depths); k++) {
		struct rig_client four[TENANTS];
		char what[64];

		for (size_t i = 0; i < TENANTS; i++)
			four[i] = (struct rig_client){.depth = depths[k][i], .length = 4096};
		snprintf(what, sizeof(what), "%u, %u, %u and %u", depths[k][0], depths[k][1],
			depths[k][2], depths[k][3]);
		check_all(what,
			TWO("weight: 1", "weight: 2") "  - {name: c, weight: 4, match: {export: "
						      "c}}\n  - {name: d, match: {export: d}}\n",
			four, TENANTS, 3);
	}
}

int main(void)
{
	RUN(test_open);
	RUN(test_closed);
	RUN(test_depths);
	RUN(test_four);
	RUN(test_kinds);
	return 0;
}
