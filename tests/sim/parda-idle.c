/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that is idle between bursts, beside one that floods: PARDA must not make it worse than no
 * control at all. */
#include "fixture.h"

/* Ten requests a second and a burst of so many every ten seconds; 256 at any time. Credit for
 * bursts covers a minute: it is full when the hosts have started and another minute is over. */
#define BESIDE_A_FLOOD                                                                             \
	"duration: 200s\nwarmup: 80s\nsample: 0s\n"                                                \
	"devices: [{name: d, kind: server, servers: 8, rate: 2k iops}]\n"                          \
	"hosts:\n"                                                                                 \
	"  - {name: v, clients: {t: [{rate: 10 iops},\n"                                           \
	"      {arrivals: uniform, rate: %s, on: 10ms, off: 9990ms}]%s}}\n"                        \
	"  - {name: f, clients: {t: [{outstanding: 256}]}}\n"

#define NONE "policy: {depth: none, tenants: [{name: t}]}\n"
#define PARDA(keys)                                                                                \
	"policy: {depth: none, tenants: [{name: t}], controller: parda, threshold: 20ms,\n"        \
	"  parda: {" keys "}}\n"

struct got {
	double mean, p99, total;
};

static struct got run_hosts(const char *burst, const char *beside, const char *scenario)
{
	struct metrics *m = fixture_run(scenario, burst, beside, 1);
	struct got g = {fixture_get(m, "tenant.v.t.mean"), fixture_get(m, "tenant.v.t.p99"),
		fixture_get(m, "total.iops")};

	metrics_free(m);
	return g;
}

static void compare(const char *burst, double most_mean, double most_p99)
{
	struct got none = run_hosts(burst, "", BESIDE_A_FLOOD NONE);
	struct got literal =
		run_hosts(burst, "", BESIDE_A_FLOOD PARDA("wmax: 256, idle: literal, burst: 0s"));
	struct got now = run_hosts(burst, "", BESIDE_A_FLOOD PARDA("wmax: 256"));

	CHECK(literal.p99 > 1.5 * none.p99); /* the effect of equation 4 to the letter */
	CHECK(now.mean <= most_mean * none.mean);
	CHECK(now.p99 <= most_p99 * none.p99);
	CHECK(now.total >= 0.98 * none.total);
}

static void test_bursts(void)
{
	struct got none, no_credit;

	compare("10k iops", 0.5, 0.8);  /* 100 requests */
	compare("100k iops", 1.0, 1.1); /* 1000: four times as many as the flood */
	/* These need the credit. */
	none = run_hosts("100k iops", "", BESIDE_A_FLOOD NONE);
	no_credit = run_hosts("100k iops", "", BESIDE_A_FLOOD PARDA("wmax: 256, burst: 0s"));
	CHECK(no_credit.p99 > 1.3 * none.p99);
}

/* With a second, always busy VM on the host, that VM does not get the shares of the idle one:
 * half of the array belongs to the other host. (With `ignore` the VM gets them.) */
static void test_no_profit(void)
{
	static const char beside[] = ", b: [{outstanding: 256}]}, "
				     "policy: {tenants: [{name: t}, {name: b}]";
	struct metrics *m = fixture_run(BESIDE_A_FLOOD PARDA(""), "1 iops", beside, 1);
	double ours = fixture_get(m, "tenant.v.b.iops"), other = fixture_get(m, "tenant.f.t.iops");

	CHECK(ours < 1.45 * other); /* half of the time is within the first minute */
	metrics_free(m);
	m = fixture_run(BESIDE_A_FLOOD PARDA("idle: ignore"), "1 iops", beside, 1);
	CHECK(fixture_get(m, "tenant.v.b.iops") > 1.7 * fixture_get(m, "tenant.f.t.iops"));
	metrics_free(m);
}

int main(void)
{
	RUN(test_bursts);
	RUN(test_no_profit);
	return 0;
}
