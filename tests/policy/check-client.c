/* SPDX-License-Identifier: BSD-3-Clause */
/* check-client: warnings about effects on clients: waits beyond their time-out, an slo that
 * nothing enforces. */
#include "policy/policy.h"
#include "policy/text.h"
#include <errno.h>

/* `want` NULL: no warning. */
static void warned(const char *text, const char *want)
{
	struct weir_policy *p = parse(text);

	if (!want && remarks.n_warnings)
		FAIL("%s\nwarned of: %s", text, remarks.warnings[0].text);
	if (want && (remarks.n_warnings != 1 || !strstr(remarks.warnings[0].text, want)))
		FAIL("%s\n%zu warnings, the first \"%s\", not \"%s\"", text, remarks.n_warnings,
			remarks.n_warnings ? remarks.warnings[0].text : "", want);
	weir_policy_free(p);
}

static void test_slo_is_not_kept(void)
{
	warned("tenants: [{name: a, slo: p99 < 1ms}]",
		"t.yaml:1:26: the slo of 'a' is only measured and reported");
	warned("tenants: [{name: a, slo: p99 < 1ms}, {name: b}, {name: c, slo: p50 < 1s}]",
		"the slo of 'a' and of 1 more is only measured and reported");
	warned("enforce: false\ntenants: [{name: a, slo: p99 < 1ms}]",
		"only measured and reported");
	warned("tenants: [{name: a}]", NULL);
}

#define TENANT(max) "resources: [{name: r}]\ntenants: [{name: a, max: " max "}]"

static void test_time_out(void)
{
	struct weir_policy *p = parse("{}");

	CHECK_INT(p->client_timeout, 30 * WEIR_SEC);
	weir_policy_free(p);
	/* A kernel client has 128 requests in flight. */
	warned(TENANT("1 MiB/s"),
		"t.yaml:2:26: 128 requests of 1 MiB wait up to 128s at the max of 'a', 1 MiB/s: "
		"clients that give up after 30s (client_timeout) fail");
	warned(TENANT("4.25 MiB/s"), "30.12s");
	warned(TENANT("4.3 MiB/s"), NULL);
	warned(TENANT("{writes: 1 MiB/s}"), "at the max of 'a', 1 MiB/s of writes");
	/* 1 MiB counts as four requests of 256 KiB. */
	warned(TENANT("17 iops"), "128 requests of 1 MiB wait up to 30.12s");
	warned(TENANT("17.1 iops"), NULL);
	warned("tenants: [{name: g, max: 1 MiB/s, children: [{name: a}]}]", "the max of 'g'");
	warned("client_timeout: 128s\n" TENANT("1 MiB/s"), NULL);
	warned("client_timeout: 127s\n" TENANT("1 MiB/s"), "give up after 127s");
	warned("client_timeout: none\n" TENANT("1 MiB/s"), NULL);
	warned("enforce: false\n" TENANT("1 MiB/s"), NULL); /* nothing waits */
}

static void test_time_out_resources(void)
{
	warned("resources: [{name: r, depth: 512}]\ntenants: [{name: a, max: 10 MiB/s}]",
		"512 requests of 1 MiB wait up to 51.2s");
	warned("resources: [{name: r, depth: 8}]\ntenants: [{name: a, max: 1 MiB/s}]",
		"128 requests of 1 MiB");
	warned("resources: [{name: r}, {name: s, io_unit: 4 KiB}]\n"
	       "tenants: [{name: a, max: 1k iops}]",
		"wait up to 32.77s");
}

static void test_key(void)
{
	struct weir_policy *p = parse("client_timeout: 2m");

	CHECK_INT(p->client_timeout, 120 * WEIR_SEC);
	weir_policy_free(p);
	p = parse("client_timeout: none");
	CHECK_INT(p->client_timeout, 0);
	weir_policy_free(p);
	refused("client_timeout: 0s", "must be more than 0, or none");
	refused("client_timeout: 30", "needs a unit");
}

int main(void)
{
	RUN(test_slo_is_not_kept);
	RUN(test_time_out);
	RUN(test_time_out_resources);
	RUN(test_key);
	return 0;
}
