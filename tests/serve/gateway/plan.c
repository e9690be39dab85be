/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: a plan's file is read or refused with the reason; what is not true of a policy any more is named; claims. */
#include "serve/snapshot/note.h"
#include "serve/gateway/plan.h"
#include "serve/gateway/plan/kept.h"
#include "policy-parse.h"
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define ONES  "1111111111111111111111111111111111111111111111111111111111111111"
#define HEAD                                                                                       \
	"{\"version\": 1, \"policy\": \"" ZEROS "\", \"profiles\": {\"d\": \"" ZEROS               \
	"\"}, \"tenants\": ["
#define SLO "\"slo\": {\"percentile\": 99, \"latency\": 0.01}, \"bound\": 0.009, "
#define STAGE                                                                                      \
	"{\"name\": \"d\", \"unit\": \"time\", \"priority\": 3, \"buckets\": [[0.5, 0.002], "      \
	"[0.1, 0.02]]}"
#define GOOD HEAD "{\"name\": \"g/a\", " SLO "\"stages\": [" STAGE "]}]}"

static struct gateway_plan *read_plan(const char *text)
{
	struct gateway_plan *p;
	struct weir_err err;

	if (gateway_plan_read(text, strlen(text), &p, &err) < 0)
		FAIL("%s", err.text);
	return p;
}

static void refused(const char *text, const char *why)
{
	struct gateway_plan *p;
	struct weir_err err = {""};

	CHECK_INT(gateway_plan_read(text, strlen(text), &p, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("%s: not: %s", err.text, why);
}

static void test_read(void)
{
	struct gateway_plan *p = read_plan(GOOD);
	const struct gateway_plan_tenant *t = gateway_plan_tenant(p, "g/a");

	CHECK_INT(p->n_tenants, 1);
	CHECK(t && !gateway_plan_tenant(p, "g"));
	CHECK_NEAR(t->latency, 0.01, 1e-12);
	CHECK_INT(t->stages[0].claim.priority, 3);
	CHECK_INT(t->stages[0].claim.n, 2);
	CHECK_INT(t->stages[0].claim.profile[1].kind, WEIR_PROFILE);
	CHECK_INT(t->stages[0].claim.profile[1].unit, WEIR_UNIT_TIME);
	CHECK_NEAR(t->stages[0].claim.profile[1].rate, 1e8, 1);
	CHECK_NEAR(t->stages[0].claim.profile[1].size, 2e7, 1);
	gateway_plan_drop(p);
}

/* A plan that was kept over a restart equals the applied one to the last bit. */
static void test_kept(void)
{
	static const char third[] =
		HEAD "{\"name\": \"g/a\", " SLO
		     "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", \"priority\": 3, "
		     "\"buckets\": [[0.33333333333333331, 0.30000000000000004]]}]}]}";
	char folder[] = "/tmp/weir-plan-XXXXXX", path[64];
	struct gateway_plan *before = read_plan(third), *after;
	struct weir_err err;
	uint64_t number;

	CHECK(mkdtemp(folder));
	CHECK_INT(plan_kept_write(folder, "plan.json",
			  &(struct plan_kept){
				  .number = 7, .digest = "", .tenants = "", .text = third},
			  &err),
		0);
	CHECK_INT(plan_kept_read(folder, "plan.json", &number, &after, &err), 0);
	CHECK_INT(number, 7);
	const struct weir_bucket_spec *a = before->tenants[0].stages[0].claim.profile,
				      *b = after->tenants[0].stages[0].claim.profile;

	CHECK(a->rate == b->rate && a->size == b->size);
	gateway_plan_drop(before);
	gateway_plan_drop(after);
	snprintf(path, sizeof(path), "%s/plan.json", folder);
	unlink(path);
	rmdir(folder);
}

static void test_refused(void)
{
	refused("", "plan:1:");
	refused("[]", "must be an object");
	refused("{\"version\": 2}", "version: must be 1");
	refused("{\"version\": 1, \"policy\": \"ab\"}", "policy: must be a SHA-256");
	refused(HEAD "{\"name\": \"\"}]}", "name of a tenant: must be a text");
	refused(HEAD "{\"name\": \"a\"}]}", "a: slo must have");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": []}]}", "stages: must be");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [" STAGE ", " STAGE "]}]}",
		"d: stands twice");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [" STAGE "]}, {\"name\": \"a\", " SLO
		     "\"stages\": [" STAGE "]}]}",
		"a: stands twice");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", "
		     "\"priority\": 64, \"buckets\": [[1, 1]]}]}]}",
		"priority: must be");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", "
		     "\"priority\": 0, \"buckets\": [[1, 0]]}]}]}",
		"tenant a at d: buckets: the size must be a number above 0");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", "
		     "\"priority\": 0, \"buckets\": [[257, 1]]}]}]}",
		"tenant a at d: buckets: the rate must be a number above 0, 256 at most");
	refused(HEAD "{\"name\": \"a\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", "
		     "\"priority\": 0, \"buckets\": [[1]]}]}]}",
		"must be pairs");
	/* the steepest of a planner */
	gateway_plan_drop(read_plan(
		HEAD "{\"name\": \"a\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": \"time\", "
		     "\"priority\": 0, \"buckets\": [[256, 1]]}]}]}"));
}

static void untrue(const struct weir_policy *policy, const char *digest, const char *profile,
	unsigned depth, const char *want)
{
	struct gateway_plan *p = read_plan(GOOD);
	struct gateway_profile of = {.table = {.depth = depth}}, *all[] = {profile ? &of : NULL};
	struct gateway_profiles profiles = {all, 1};
	struct gateway_note note = {0};
	char said[1000] = "";

	if (profile)
		strcpy(of.digest, profile);
	gateway_plan_untrue(p, policy, digest, &profiles, &note);
	for (size_t i = 0; i < note.n; i++) {
		strcat(said, note.lines[i]);
		strcat(said, "\n");
	}
	if (want ? !strstr(said, want) : *said != 0)
		FAIL("'%s', not '%s'", said, want ? want : "");
	gateway_note_free(&note);
	gateway_plan_drop(p);
}

static void test_untrue(void)
{
	static const struct {
		const char *tenants, *said;
	} of[] = {{"[{name: g, children: [{name: a, slo: p99 < 10ms}]}]", NULL},
		{"[{name: g}]", "tenant g/a is no tenant any more"},
		{"[{name: g, children: [{name: a, children: [{name: b}]}]}]",
			"g/a takes no requests itself any more"},
		{"[{name: g, children: [{name: a}]}]", "g/a has no slo any more"},
		{"[{name: g, children: [{name: a, slo: p99 < 9ms}]}]",
			"g/a was planned for p99 < 10 ms, and its slo is p99 < 9ms"}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		char text[400];
		struct weir_policy *p;

		snprintf(text, sizeof(text), "resources: [{name: d, depth: 8}]\ntenants: %s\n",
			of[i].tenants);
		p = parse(text);
		untrue(p, ZEROS, ZEROS, 8, of[i].said);
		untrue(p, ONES, ZEROS, 8,
			"another policy: 000000000000…, which is 111111111111… now");
		untrue(p, ZEROS, ONES, 8,
			"another profile of d: 000000000000…, which is 111111111111");
		untrue(p, ZEROS, ZEROS, 4, "d has a depth of 8, and its profile was measured at 4");
		p->resources[0].depth = 0;
		untrue(p, ZEROS, ZEROS, 8, "d has no stated depth, and its profile was");
		if (i == 0)
			untrue(p, ZEROS, NULL, 8, "at 'd', which has no profile");
		weir_policy_free(p);
	}
}

/* Numbers as the library reads them, to the last bit. */
static void test_numbers(void)
{
	static const char *const good[] = {"10", "1", "0.5", "5.50701402805612e-5", "1e-05", "1E2",
		"1e+2", "123456789012345e-22", "999999999999999e-10", "3e-23",
		"12345678901234567e-12", "0.1000000000000000055", "4e-320", "7.00e00"};
	static const char *const bad[] = {
		"1.", "1.e5", "01", "1e", "1e+", ".5", "+1", "1.5e5.5", "0x1", "1e5x", "1e99999"};
	char text[600], number[64];
	unsigned seed = 1;

	for (size_t i = 0; i < 20000; i++) {
		struct gateway_plan *p;

		seed = seed * 1103515245u + 12345u;
		snprintf(number, sizeof(number), "%.*e", 1 + (int)(seed >> 16) % 17,
			(double)(seed % 100000 + 1) / 7 * pow(10, (double)(seed >> 20 & 31) - 33));
		snprintf(text, sizeof(text),
			HEAD "{\"name\": \"a\", \"slo\": {\"percentile\": 99, \"latency\": 1}, "
			     "\"bound\": %s, \"stages\": [" STAGE "]}]}",
			i < sizeof(good) / sizeof(*good) ? good[i] : number);
		p = read_plan(text);
		CHECK(p->tenants[0].bound ==
			strtod(i < sizeof(good) / sizeof(*good) ? good[i] : number, NULL));
		gateway_plan_drop(p);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text),
			HEAD "{\"name\": \"a\", \"slo\": {\"percentile\": 99, \"latency\": 1}, "
			     "\"bound\": %s, \"stages\": [" STAGE "]}]}",
			bad[i]);
		refused(text, "plan:");
	}
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Claims by the index of a tenant, also if the plan has another order; 10,000 of them. */
static void test_many(void)
{
	enum { N = 10000 };
	char *policy = malloc(60 * N + 1000), *text = malloc(400 * N + 1000);
	struct gateway_profile of = {.table = {.depth = 8}}, *all[] = {&of};
	struct gateway_profiles profiles = {all, 1};
	struct gateway_claims claims;
	struct gateway_plan *plan;
	struct weir_policy *p;
	size_t n = (size_t)sprintf(policy, "resources: [{name: d}]\ntenants:\n");
	size_t m = (size_t)sprintf(text, HEAD);
	double before;

	for (int i = 0; i < N; i++) {
		n += (size_t)sprintf(policy + n, "  - {name: t%d, slo: p99 < 10ms}\n", i);
		m += (size_t)sprintf(text + m,
			"%s{\"name\": \"t%d\", " SLO "\"stages\": [{\"name\": \"d\", \"unit\": "
			"\"time\", \"priority\": %d, \"buckets\": [[1.5, 0.001], [0.3, 0.002], "
			"[0.1, 0.004], [0.0001, 0.01]]}]}",
			i ? ", " : "", N - 1 - i, (N - 1 - i) % 64);
	}
	strcpy(text + m, "]}");
	p = parse(policy);
	before = cpu_ms();
	plan = read_plan(text);
	CHECK_INT(gateway_claims_make(plan, p, &profiles, &claims), 0);
	printf("  10,000 tenants: %.1f ms of CPU time\n", cpu_ms() - before);
	for (int i = 0; i < N; i++) {
		CHECK_INT(claims.of[0][i].n, 4);
		CHECK_INT(claims.of[0][i].priority, i % 64);
	}
	gateway_claims_free(&claims);
	gateway_plan_drop(plan);
	weir_policy_free(p);
	free(policy);
	free(text);
}

int main(void)
{
	RUN(test_read);
	RUN(test_kept);
	RUN(test_refused);
	RUN(test_untrue);
	RUN(test_numbers);
	RUN(test_many);
	return 0;
}
