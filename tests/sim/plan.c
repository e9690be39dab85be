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
	"      controller: %s\n"                                                                   \
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
	return fixture_run(TOP, lab, "none", 1);
}

static void a_plan_meets_what_the_order_by_slo_misses(void)
{
	struct metrics *m = run("plan: meister");
	struct metrics *by_slo = fixture_run(TOP, "plan: none", "bySLO", 1);

	CHECK(get(m, "plan.h.b.priority") == 0 && get(m, "plan.h.c.priority") == 1);
	CHECK(get(m, "slo.h.b.ratio") < 1 && get(m, "slo.h.c.ratio") < 1);
	CHECK(get(by_slo, "slo.h.b.ratio") > 1 && get(by_slo, "slo.h.c.ratio") < 1);
	metrics_free(m);
	metrics_free(by_slo);
}

/* With fixed service times and exact estimates no request is later than its bound. */
static void no_request_is_later_than_its_bound(void)
{
	static const char *const labs[] = {
		"plan: meister", "plan: meister, aligned: true", "plan: meister, pairs: 8"};

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

/* A backlogged tenant has half of a device of which another wants 0.7: its queue grows, until Cake has raised its weight. Without
 * an slo that it misses no weight changes. */
static void cake_raises_the_weight_of_a_tenant_that_is_late(void)
{
#define CAKE                                                                                       \
	"duration: 400s\n"                                                                         \
	"warmup: 200s\n"                                                                           \
	"devices: [{name: d, kind: server, rate: 100 iops, service: fixed}]\n"                     \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy:\n"                                                                            \
	"      depth: 1\n"                                                                         \
	"      controller: cake\n"                                                                 \
	"      cake: {interval: 1s, step: 0.25}\n"                                                 \
	"      tenants: [{name: s, slo: p99 < %s}, {name: l}]\n"                                   \
	"    clients: {s: [{arrivals: uniform, rate: 70 iops}], l: [{outstanding: 4}]}\n"
	struct metrics *m = fixture_run(CAKE, "1s", "", 1), *even = fixture_run(CAKE, "1h", "", 1);

	CHECK_NEAR(get(m, "tenant.h.s.iops"), 70, 0.05);
	CHECK_NEAR(get(m, "tenant.h.l.iops"), 30, 0.1);
	CHECK(get(even, "tenant.h.s.iops") < 10); /* never late: its weight shrinks */
	metrics_free(m);
	metrics_free(even);
}

/* The first priority of the link is j's: k needs less of its slo for its device. Both are held within their bounds. */
static void devices_and_links_are_planned_together(void)
{
	struct metrics *m = fixture_run(
		"duration: 100s\n"
		"devices:\n"
		"  - {name: slow, kind: server, rate: 100 iops, service: fixed, policy: {depth: 1, "
		"lab: {plan: meister, estimate: {io: 10ms}}, tenants: [{name: j}]}}\n"
		"  - {name: fast, kind: server, rate: 10k iops, service: fixed, policy: {depth: 1, "
		"lab: {plan: meister, estimate: {io: 100us}}, tenants: [{name: k}]}}\n"
		"links: [{name: out, rate: 10 MB/s, strict: true, mtu: 8 KiB, policy: {lab: {plan: "
		"meister, limit: requests, levels: 7}, tenants: [{name: j}, {name: k}]}}]\n"
		"hosts:\n"
		"  - {name: hj, device: slow, reply: out, policy: {depth: none, tenants: [{name: "
		"j, slo: p99 < 90ms}]}, clients: {j: [{arrivals: uniform, rate: 20 iops, on: 1s, "
		"off: 1s, size: 64 KiB}]}}\n"
		"  - {name: hk, device: fast, reply: out, policy: {depth: none, tenants: [{name: "
		"k, slo: p99 < 80ms}]}, clients: {k: [{arrivals: bursts, rate: 20 iops, ca2: 4, "
		"peak: 200 iops, burst: 20ms, size: 64 KiB}]}}\n",
		"", "", 1);

	CHECK(get(m, "tenant.hj.j.max") <= get(m, "plan.hj.j.bound"));
	CHECK(get(m, "tenant.hk.k.max") <= get(m, "plan.hk.k.bound"));
	CHECK(get(m, "plan.hj.j.out.priority") + get(m, "plan.hk.k.out.priority") == 1);
	metrics_free(m);
}

/* Of random systems none exceeds its bound; without the blocking term many do. */
static void systems_compare_bounds_with_latencies(void)
{
	struct metrics *m =
		fixture_run("duration: 5s\nsystems: {count: 20, blocking: %s}\n", "true", "", 1);

	CHECK(get(m, "systems.run") == 20 && get(m, "systems.beyond") == 0);
	CHECK(get(m, "systems.ratio0") >= 1 && get(m, "systems.mean") < 3);
	metrics_free(m);
	m = fixture_run("duration: 5s\nsystems: {count: 20, blocking: %s}\n", "false", "", 1);
	CHECK(get(m, "systems.beyond") > 0);
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

/* At 300 s a tenant begins and the slo of b falls below what it reaches behind c; both are planned then, as if from the start. */
static void a_later_plan_replaces_the_first(void)
{
#define AGAIN                                                                                      \
	"duration: 1000s\n"                                                                        \
	"warmup: 300s\n"                                                                           \
	"sample: 100s\n"                                                                           \
	"devices: [{name: d, kind: server, rate: 100 iops, service: fixed}]\n"                     \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy:\n"                                                                            \
	"      depth: 1\n"                                                                         \
	"      lab: {estimate: {io: 10ms}, plan: meister}\n"                                       \
	"      controller: none\n"                                                                 \
	"      tenants:\n"                                                                         \
	"        - {name: a, slo: p99 < 100ms}\n"                                                  \
	"        - {name: b, slo: p99 < 9s}\n"                                                     \
	"        - {name: c, slo: p99 < 500ms}\n"                                                  \
	"        - {name: l}\n"                                                                    \
	"    clients:\n"                                                                           \
	"      a: [{arrivals: uniform, rate: 10 iops, stopped: true}]\n"                           \
	"      b: [{arrivals: uniform, rate: 20 iops}]\n"                                          \
	"      c: [{arrivals: bursts, rate: 20 iops, ca2: 4, peak: 90 iops}]\n"                    \
	"      l: [{outstanding: 4}]\n"                                                            \
	"at:\n"                                                                                    \
	"  - {time: 300s, set: [{workload: h/a/w1, run: true}, {tenant: h/b, slo: p99 < "          \
	"200ms}%s]}\n"
	struct metrics *with = fixture_run(AGAIN, ", {plan: again}", "", 1);
	struct metrics *without = fixture_run(AGAIN, "", "", 1);

	CHECK(get(with, "slo.h.a.ratio") < 1 && get(with, "slo.h.b.ratio") < 1);
	CHECK(get(with, "slo.h.c.ratio") < 1 && get(with, "slo.h.b.missed") < 0.01);
	CHECK(get(with, "plan.h.a.priority") == 0);
	CHECK(get(without, "slo.h.a.ratio") > 1 && get(without, "slo.h.b.missed") > 0.01);
	CHECK(get(without, "plan.h.b.ios") > get(with, "plan.h.b.ios"));
	metrics_free(with);
	metrics_free(without);
	fixture_refused(AGAIN, ", {plan: now}", "", "must be 'again'");
	fixture_refused(AGAIN, ", {tenant: h/l, slo: p99 < 1s}", "", "no tenant 'h/l' with an slo");
}

int main(void)
{
	RUN(a_later_plan_replaces_the_first);
	RUN(a_plan_meets_what_the_order_by_slo_misses);
	RUN(no_request_is_later_than_its_bound);
	RUN(cake_raises_the_weight_of_a_tenant_that_is_late);
	RUN(devices_and_links_are_planned_together);
	RUN(systems_compare_bounds_with_latencies);
	RUN(the_trace_is_described);
	RUN(buckets_that_hold_hold_no_planned_arrival);
	RUN(a_profile_gives_the_work);
	RUN(deadlines_are_the_slos);
	return 0;
}
