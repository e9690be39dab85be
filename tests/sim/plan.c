/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans that a scenario asks for: buckets and priorities from its own arrivals. */
#include "fixture.h"

#define get fixture_get

/* c has the smallest slo and most of the load: with it first, b is late. A request takes 10 ms. */
#define TOP                                                                                        \
	"duration: 1000s\n"                                                                        \
	"sample: 0s\n"                                                                             \
	"devices: [{name: d, kind: server, rate: 100 iops, service: fixed}]\n"                     \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy:\n"                                                                            \
	"      depth: 1\n"                                                                         \
	"      lab: {estimate: {io: 10ms}, %s}\n"                                                  \
	"      tenants:\n"                                                                         \
	"        - {name: b, slo: p99 < 1500ms}\n"                                                 \
	"        - {name: c, slo: p99 < 1400ms}\n"                                                 \
	"        - {name: l}\n"                                                                    \
	"    clients:\n"                                                                           \
	"      b: [{arrivals: bursts, rate: 5 iops, ca2: 14, peak: 100 iops}]\n"                   \
	"      c: [{arrivals: bursts, rate: 55 iops, ca2: 2.2, peak: 80 iops}]\n"                  \
	"      l: [{outstanding: 4}]\n"

#define PROFILED                                                                                   \
	"duration: 1000s\n"                                                                        \
	"devices: [{name: d, kind: server, rate: 100 iops}]\n"                                     \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy:\n"                                                                            \
	"      depth: 1\n"                                                                         \
	"      lab: {plan: meister, estimate: {profile: d.profile}}\n"                             \
	"      tenants: [{name: r, slo: p99 < 1s}, {name: w, slo: p99 < 1s}]\n"                    \
	"    clients:\n"                                                                           \
	"      r: [{rate: 10 iops, reads: 1}]\n"                                                   \
	"      w: [{rate: 10 iops, reads: 0}]\n"

static struct metrics *run(const char *lab)
{
	return fixture_run(TOP, lab, "", 1);
}

static void a_plan_meets_what_the_order_by_slo_misses(void)
{
	struct metrics *m = run("plan: meister"), *by_slo = run("plan: byslo");

	CHECK(get(m, "plan.h.b.priority") == 0 && get(m, "plan.h.c.priority") == 1);
	CHECK(get(m, "slo.h.b.ratio") < 1 && get(m, "slo.h.c.ratio") < 1);
	CHECK(get(by_slo, "plan.h.b.priority") == 1 && get(by_slo, "plan.h.c.priority") == 0);
	CHECK(get(by_slo, "slo.h.b.ratio") > 1);
	metrics_free(m);
	metrics_free(by_slo);
}

/* With fixed service times and exact estimates no request is later than its bound. */
static void no_request_is_later_than_its_bound(void)
{
	static const char *const labs[] = {
		"plan: meister", "plan: byslo", "plan: meister, pairs: 8"};

	for (size_t i = 0; i < sizeof(labs) / sizeof(labs[0]); i++) {
		struct metrics *m = run(labs[i]);

		CHECK(get(m, "tenant.h.b.max") <= get(m, "plan.h.b.bound"));
		CHECK(get(m, "tenant.h.c.max") <= get(m, "plan.h.c.bound"));
		metrics_free(m);
	}
}

static void the_trace_is_described(void)
{
	struct metrics *m = run("plan: meister");

	CHECK_NEAR(get(m, "plan.h.b.load"), 0.05, 0.05);
	CHECK_NEAR(get(m, "plan.h.c.load"), 0.55, 0.05);
	CHECK_NEAR(get(m, "plan.h.b.ca2"), 14, 0.1);
	CHECK_NEAR(get(m, "plan.h.b.peak"), 1, 0.05);
	CHECK_NEAR(get(m, "plan.h.b.ios"), 5000, 0.05);
	CHECK_NEAR(get(m, "tenant.h.b.ios"), get(m, "plan.h.b.ios"), 0.01);
	metrics_free(m);
}

/* The buckets come from the arrivals themselves, so they hold no request of the first priority. (A hold bucket charges a request
 * that waited for others as of 20 ms before its dispatch, so it may hold those of the second.) */
static void buckets_that_hold_hold_no_planned_arrival(void)
{
	struct metrics *m = run("plan: meister, limit: requests");

	CHECK(get(m, "wait.h.b.max") == 0);
	CHECK(get(m, "slo.h.b.ratio") < 1 && get(m, "slo.h.c.ratio") < 1);
	metrics_free(m);
}

static int give_profile(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	const char *text = arg;

	CHECK_STR(path, "d.profile");
	*ret_text = strdup(text);
	*ret_len = strlen(text);
	return 0;
}

/* Device times come from a profile's table, by the gate and by the plan. */
static void a_profile_gives_the_work(void)
{
	char other[] = "profile: 2\n";
	char text[] = "profile: 1\ndepth: 1\nsizes: [4 KiB]\nread: {work: [{work: [10ms]}]}\n"
		      "write: {work: [{work: [20ms]}]}\n";
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	CHECK_INT(fixture_parse(PROFILED, "", "", &s, &err), 0);
	CHECK_INT(scenario_load(s, give_profile, other, &err), -EINVAL);
	CHECK_INT(scenario_load(s, give_profile, text, &err), 0);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), 0);
	CHECK_NEAR(get(m, "plan.h.r.load"), 0.1, 0.05);
	CHECK_NEAR(get(m, "plan.h.w.load"), 0.2, 0.05);
	scenario_free(s);
	metrics_free(m);
}

static void deadlines_are_the_slos(void)
{
	struct metrics *m = run("plan: edf");

	CHECK(get(m, "slo.h.b.ratio") < 1 && get(m, "slo.h.c.ratio") < 1);
	metrics_free(m);
	m = run("plan: none");
	CHECK(get(m, "slo.h.c.ratio") > 1);
	metrics_free(m);
}

int main(void)
{
	RUN(a_plan_meets_what_the_order_by_slo_misses);
	RUN(no_request_is_later_than_its_bound);
	RUN(the_trace_is_described);
	RUN(buckets_that_hold_hold_no_planned_arrival);
	RUN(a_profile_gives_the_work);
	RUN(deadlines_are_the_slos);
	return 0;
}
