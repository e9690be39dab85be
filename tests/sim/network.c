/* SPDX-License-Identifier: BSD-3-Clause */
/* network: keys of a network in a scenario, links, limits, feedback, brokers and their failures. */
#include "fixture.h"

#define TOP "duration: %s\nnetwork: {policy: {tenants: [{name: t%s}]}, "
#define RACKS                                                                                      \
	"racks: [{name: s, machines: 4}, {name: r, machines: 2, down: 10 Gbit/s, up: 10 Gbit/s}]"

static struct metrics *run_text(const char *text, uint64_t seed)
{
	struct sim_options o = {.seed = seed, .seed_set = 1};
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;

	if (scenario_parse(text, strlen(text), "n.yaml", NULL, 0, &s, &err) ||
		sim_run(s, &o, &m, NULL, &err))
		FAIL("%s", err.text);
	scenario_free(s);
	return m;
}

static struct metrics *run_network(const char *time, const char *net, const char *rest)
{
	char text[4096];

	snprintf(text, sizeof(text), TOP "%s}\n", time, net, rest);
	return run_text(text, 1);
}

static void refused(const char *rest, const char *why)
{
	char text[4096];
	struct scenario *s;
	struct weir_err err;

	snprintf(text, sizeof(text), TOP "%s}\n", "1s", "", rest);
	CHECK(scenario_parse(text, strlen(text), "n.yaml", NULL, 0, &s, &err) < 0);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

static void test_the_map(void)
{
	fixture_refused(
		"duration: 1s\nnetwork: {%s}\n", "racks: [{name: a}]", "", "needs 'policy'");
	refused("racks: []", "needs a rack");
	refused(RACKS ", segment: 32 B", "64 B to 64 KiB");
	refused(RACKS ", loss: 2", "loss: from 0 to 1");
	refused(RACKS ", rack_broker: no", "needs rack_broker");
	refused(RACKS ", colour: red", "colour");
	refused(RACKS ", flows: [{name: f, from: s, to: r}]", "tenant");
	refused(RACKS ", flows: [{name: f, tenant: t, from: x, to: r}]", "no machines 'x'");
	refused(RACKS ", flows: [{name: f, tenant: t, from: s.5, to: r}]", "no machines 's.5'");
	refused(RACKS ", flows: [{name: f, tenant: t, from: s.1, to: s.1}]", "same machine");
	refused(RACKS ", flows: [{name: f, tenant: t, from: s, to: r, kind: udp}]", "'rate'");
	refused(RACKS ", flows: [{name: f, tenant: t, from: s, to: r, kind: rpc, rate: 1 Gbit/s}]",
		"'size'");
	refused(RACKS ", at: [{time: 1s, tenant: t}]", "needs 'fabric'");
	refused(RACKS ", failures: [{broker: x}]", "broker");
}

/* One flow fills a link; nothing is created or lost on the way. */
static void test_link(void)
{
	struct metrics *m = run_network("100ms", "",
		RACKS ", flows: [{name: f, tenant: t, from: s.1, to: r.1, kind: udp, rate: 8 "
		      "Gbit/s}], sample: 10ms");

	CHECK_NEAR(fixture_get(m, "link.r.down.load"), 0.8, 1e-3);
	CHECK_NEAR(fixture_get(m, "link.r.1.in.load"), 0.8, 1e-3);
	CHECK_NEAR(fixture_get(m, "link.s.1.out.load"), 0.8, 1e-3);
	CHECK_INT(fixture_get(m, "link.r.down.drops"), 0);
	CHECK_INT(fixture_get(m, "link.r.2.in.load"), 0);
	metrics_free(m);
}

/* A message of 1.25 MB takes 1 ms at 10 Gbit/s, and its last packet the other two links and the delays. */
static void test_completion(void)
{
	struct metrics *m = run_network("10ms", "",
		RACKS
		", flows: [{name: f, tenant: t, from: s.1, to: r.1, kind: rpc, size: 1250 kB, "
		"rate: 1 Gbit/s, window: 1000}], sample: 1ms");

	CHECK_NEAR(fixture_get(m, "rpc.f.max"), 1 + 2 * 0.0012 + 3 * 0.001, 0.01);
	metrics_free(m);
}

/* Senders at line rate into one machine: feedback holds them at the service's max. */
static void test_feedback(const char *control, double drops_most, double drops_least)
{
	char text[1024];
	struct metrics *m;

	snprintf(text, sizeof(text),
		RACKS ", %s, rack_broker: no, fabric_broker: no, sample: 10ms, flows: [{name: f, "
		      "tenant: t, from: s, to: r.1, kind: udp, rate: 10 Gbit/s}]",
		control);
	m = run_network("100ms", ", net: {in: {max: 5 Gbit/s}}", text);
	CHECK(fixture_get(m, "link.r.down.drops") <= drops_most);
	CHECK(fixture_get(m, "link.r.down.drops") >= drops_least);
	metrics_free(m);
}

/* While its broker is dead a machine keeps its cap for 5 s, then it is as the policy states. */
static void test_failure(void)
{
	static const char rest[] = RACKS
		", segment: 8 KiB, failures: [{broker: rack, from: 6500ms}], flows: [{name: f, "
		"tenant: t, from: s, to: r}]";
	struct metrics *m = run_network("11s", ", net: {rack: {in: {max: 2 Gbit/s}}}", rest);

	CHECK_NEAR(fixture_get(m, "cap.r.1.t.in"), 1000, 1e-3);
	metrics_free(m);
	m = run_network("12s", ", net: {rack: {in: {max: 2 Gbit/s}}}", rest);
	CHECK(isnan(fixture_get(m, "cap.r.1.t.in")));
	metrics_free(m);
}

static void test_repeatable(void)
{
	static const char rest[] = RACKS
		", loss: 0.5, sample: 1ms, flows: [{name: f, tenant: t, from: s, to: r, kind: "
		"rpc, size: 100 kB, sizes: exponential, arrivals: poisson, rate: 5 Gbit/s}]";
	struct metrics *a = run_network("100ms", ", net: {in: {max: 2 Gbit/s}}", rest);
	struct metrics *b = run_network("100ms", ", net: {in: {max: 2 Gbit/s}}", rest);

	CHECK(fixture_get(a, "messages.lost") > 0);
	CHECK(fixture_get(a, "rpc.f.mean") == fixture_get(b, "rpc.f.mean"));
	CHECK(fixture_get(a, "rpc.f.done") == fixture_get(b, "rpc.f.done"));
	metrics_free(a);
	metrics_free(b);
}

int main(void)
{
	RUN(test_the_map);
	RUN(test_link);
	RUN(test_completion);
	test_feedback("feedback: yes", 5000, 0);
	test_feedback("feedback: no", 1e9, 10000);
	RUN(test_failure);
	RUN(test_repeatable);
	return 0;
}
