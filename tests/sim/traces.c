/* SPDX-License-Identifier: BSD-3-Clause */
/* traces: a folder of traces for the hosts of a count: which are drawn, skipped, or slowed down. */
#include "sim/metrics.h"
#include "sim/sim.h"
#include "sim/scenario/scenario.h"
#include "test.h"
#include <errno.h>

#define TOP                                                                                        \
	"duration: 10s\n"                                                                          \
	"sample: 0s\n"                                                                             \
	"devices:\n"                                                                               \
	"  - {name: s, kind: server, rate: 10k iops}\n"                                            \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    count: %d\n"                                                                          \
	"    policy: {depth: 32, io_unit: 2 GiB}\n"                                                \
	"    workloads: [{traces: f%s}]\n"

static int reads; /* of files of the folder */

/* The content of "f/"; "tN" has N requests in a second. */
static const char *list;

static int give(const char *path, void *arg, char **ret, size_t *ret_len, struct weir_err *err)
{
	int n;
	FILE *f;

	if (strcmp(path, "f/") == 0) {
		*ret = strdup(list);
		*ret_len = strlen(list);
		return 0;
	}
	reads++;
	if (strcmp(path, "f/gone") == 0)
		return weir_err_set(err, -ENOENT, "%s: not there", path);
	f = open_memstream(ret, ret_len);
	if (sscanf(path, "f/t%d", &n) != 1)
		fputs("Dear reader,\n", f);
	else
		for (int i = 0; i <= n; i++)
			fprintf(f, "%s%lld R 0 4096 0\n", i ? "" : "# weir-trace 1\n",
				1000000000LL * i / n);
	fclose(f);
	return 0;
}

static int load(
	int count, const char *keys, uint64_t seed, struct scenario **ret, struct weir_err *err)
{
	char text[500];

	snprintf(text, sizeof(text), TOP, count, keys);
	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, ret, err), 0);
	(*ret)->seed = seed;
	reads = 0;
	return scenario_load(*ret, give, NULL, err);
}

/* Return the number of requests of each host. */
static double *asked(int count, const char *keys, uint64_t seed)
{
	static double ios[8];
	char name[64];
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	if (load(count, keys, seed, &s, &err) || sim_run(s, NULL, &m, NULL, &err))
		FAIL("%s", err.text);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "host.h%d.ios", i + 1);
		CHECK_INT(metrics_get(m, name, &ios[i]), 0);
	}
	metrics_free(m);
	scenario_free(s);
	return ios;
}

static void test_each_has_another(void)
{
	double seen = 0, first[3], *now;
	bool differs = false;

	list = "README\nt10\nt20\nsub/t\nt40\ngone\n";
	now = asked(3, "", 1);
	for (int i = 0; i < 3; i++)
		seen += first[i] = now[i];
	CHECK_NEAR(seen, 11 + 21 + 41, 0);
	for (uint64_t seed = 2; seed < 10; seed++) {
		now = asked(3, "", seed);
		CHECK_NEAR(now[0] + now[1] + now[2], 73, 0);
		differs |= now[0] != first[0];
	}
	CHECK(differs);
	now = asked(3, "", 1);
	CHECK(now[0] == first[0] && now[1] == first[1]);
}

static void test_only_as_many_as_needed(void)
{
	list = "t10\nt11\nt12\nt13\nt14\nt15\nt16\nt17\n";
	asked(2, "", 1);
	CHECK_INT(reads, 2);
}

static void test_shared_where_too_few(void)
{
	double *now;

	list = "t10\nt20\nnotes\n";
	now = asked(5, "", 1);
	CHECK(now[0] == now[2] && now[0] == now[4] && now[1] == now[3] && now[0] != now[1]);
}

/* Traces with a rate that is too high are left out; or the slowest of them is slowed down. */
static void test_rate_most(void)
{
	double *now, sum = 0;

	list = "t500\nt10\nt400\nt300\nt20\n";
	for (uint64_t seed = 1; seed < 8; seed++) {
		now = asked(2, ", rate_most: 25 iops", seed);
		CHECK_NEAR(now[0] + now[1], 11 + 21, 0);
	}
	now = asked(3, ", rate_most: 25 iops", 1);
	for (int i = 0; i < 3; i++)
		sum += now[i];
	CHECK_NEAR(sum, 11 + 21 + 251, 0.01); /* the trace of 300 takes 12 s now */
}

static void refuse(const char *keys, int code, const char *why)
{
	struct weir_err err = {""};
	struct scenario *s;

	CHECK_INT(load(2, keys, 1, &s, &err), code);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
	scenario_free(s);
}

static void test_refused(void)
{
	static const char both[] = "duration: 1s\n"
				   "devices:\n"
				   "  - {name: s, kind: server}\n"
				   "hosts:\n"
				   "  - {name: h, policy: {depth: 32, io_unit: 2 GiB}, workloads: "
				   "[{traces: f, trace: g}]}\n";
	static const char alone[] = "duration: 1s\n"
				    "devices:\n"
				    "  - {name: s, kind: server}\n"
				    "hosts:\n"
				    "  - name: h\n"
				    "    policy: {depth: 32, io_unit: 2 GiB}\n"
				    "    workloads: [{trace: g, rate_most: 5 iops}]\n";
	struct weir_err err = {""};
	struct scenario *s;

	list = "notes\n";
	refuse("", -ENOENT, "t.yaml:9:");
	list = "";
	refuse("", -ENOENT, "f: the folder has no trace");
	CHECK_INT(scenario_parse(both, strlen(both), "t", NULL, 0, &s, &err), -EINVAL);
	CHECK(strstr(err.text, "not both"));
	CHECK_INT(scenario_parse(alone, strlen(alone), "t", NULL, 0, &s, &err), -EINVAL);
	CHECK(strstr(err.text, "folder"));
}

int main(void)
{
	RUN(test_each_has_another);
	RUN(test_only_as_many_as_needed);
	RUN(test_shared_where_too_few);
	RUN(test_rate_most);
	RUN(test_refused);
	return 0;
}
