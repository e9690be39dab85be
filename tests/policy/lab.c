/* SPDX-License-Identifier: BSD-3-Clause */
/* lab: keys for experiments are refused unless they are asked for; a gateway refuses those that it cannot apply. */
#include "policy/policy.h"
#include "policy/impl.h"
#include "control/adaptbf/keys.h"
#include "test.h"
#include <errno.h>

static struct weir_policy_remarks remarks;

static struct weir_policy *parse(const char *text)
{
	struct weir_policy *p;

	if (policy_parse_lab(text, strlen(text), "t.yaml", true, NULL, NULL, &p, &remarks) < 0)
		FAIL("%s", remarks.errors[0].text);
	return p;
}

static void refused(const char *text, bool lab, const char *why)
{
	struct weir_policy *p;

	CHECK_INT(policy_parse_lab(text, strlen(text), "t.yaml", lab, NULL, NULL, &p, &remarks),
		-EINVAL);
	if (!strstr(remarks.errors[0].text, why))
		FAIL("'%s' does not say '%s'", remarks.errors[0].text, why);
}

#define RESOURCE(keys) "resources: [{name: r, " keys "}]\n"
#define TENANT(keys)   "tenants: [{name: t, " keys "}]\n"

static void test_refused_without_the_option(void)
{
	refused(RESOURCE("lab: {order: fifo}"), false,
		"t.yaml:1:28: resources[0].lab: is for experiments only: give --lab");
	refused(TENANT("lab: {priority: 1}"), false, "tenants[0].lab: is for experiments only");
	refused(RESOURCE("depth: none"), false, "resources[0].depth");
	refused(RESOURCE("depth: 0.5"), false, "must be from 1 to 65536");
	refused(RESOURCE("controller: none, adaptbf: {tokens: hold}"), false, "adaptbf is for");
	refused(RESOURCE("controller: adaptbf, adaptbf: {without: lending}"), false, "without");
}

static void test_values(void)
{
	struct weir_policy *p =
		parse(RESOURCE("depth: none, controller: adaptbf, tbf: {rules: []}, "
			       "lab: {order: edf, estimate: {io: 2ms}, without: "
			       "lending}") "tenants: [{name: a}, {name: b, lab: "
					   "{priority: 3, deadline: 5ms, profile: "
					   "[{rate: 5 iops, size: 2}], rtokens: "
					   "{rate: 1 iops, size: 1}}}]\n");
	const struct policy_lab_tenant *b;
	struct weir_gate_config config;
	struct weir_policy *copy;

	CHECK(p->resources[0].depth == POLICY_DEPTH_OPEN);
	CHECK_INT(p->resources[0].lab.estimate_io, 2 * WEIR_MS);
	CHECK_INT(((const struct adaptbf_settings *)p->resources[0].settings)->without,
		LEND_WITHOUT_LENDING);
	weir_policy_gate(&p->resources[0], &config);
	CHECK_INT(config.order, WEIR_EDF);
	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	CHECK(!policy_lab_of(copy, 0));
	b = policy_lab_of(copy, 1);
	CHECK(b != NULL);
	CHECK_INT(b->priority, 3);
	CHECK_INT(b->deadline, 5 * WEIR_MS);
	CHECK_INT(b->n_profile, 1);
	CHECK_INT(b->given, POLICY_LAB_PRIORITY | POLICY_LAB_DEADLINE | POLICY_LAB_PROFILE |
				    POLICY_LAB_RTOKENS);
	CHECK(copy->lab);
	weir_policy_free(copy);
}

static void test_errors(void)
{
	refused(RESOURCE("lab: {oder: fifo}"), true, "unknown key 'oder' (did you mean 'order'?)");
	refused(TENANT("lab: {priority: 64}"), true, "tenants[0].lab.priority");
	refused(TENANT("lab: {rgrant: 1}"), true, "unknown key 'rgrant'");
	refused(TENANT("lab: {priority: 1}, children: [{name: u}]"), true, "without children");
	refused(RESOURCE("adaptbf: {tokens: hold}"), true, "adaptbf is for 'controller: adaptbf'");
}

static void unserved(const char *text, const char *why)
{
	struct weir_policy *p = parse(text);
	struct weir_err err = {""};

	CHECK_INT(policy_lab_served(p, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
	weir_policy_free(p);
}

static void test_the_gateway_refuses_by_name(void)
{
	struct weir_policy *p = parse(RESOURCE(
		"depth: none, lab: {order: fifo, without: repayment}, controller: adaptbf"));

	CHECK_INT(policy_lab_served(p, NULL), 0);
	weir_policy_free(p);
	unserved(RESOURCE("lab: {estimate: {io: 1ms}}"), "t.yaml:1:28: lab: the gateway reads");
	unserved(RESOURCE("depth: 0"), "cannot use a 'depth' below 1");
	unserved(RESOURCE("lab: {plan: edf}"), "cannot use 'plan'");
	unserved(RESOURCE("controller: parda, threshold: 5ms, lab: {without: windows}"),
		"cannot use 'without' of 'parda'");
}

/* A gate's tenant has the priority, the deadline and the buckets of its `lab`, after its max. */
static void test_knobs(void)
{
	static const struct weir_bounds none;
	struct weir_policy *p = parse(TENANT("max: 100 iops, lab: {priority: 3, deadline: 1s, "
					     "profile: [{share: 0.5, size: 20ms}, {rate: 9 iops, "
					     "size: 2}], rtokens: {rate: 7 iops, size: 4}}"));
	struct weir_bucket_spec buckets[POLICY_BUCKETS];
	struct weir_knob knobs[POLICY_KNOBS];

	CHECK_INT(policy_install_knobs(p, 0, 5, &none, (struct policy_part){0}, knobs, buckets), 4);
	CHECK_INT(knobs[1].n_buckets, 4);
	CHECK_INT(buckets[0].kind, WEIR_HOLD);
	CHECK_INT(buckets[1].kind, WEIR_PROFILE);
	CHECK_INT(buckets[1].unit, WEIR_UNIT_TIME);
	CHECK_NEAR(buckets[1].rate, 5e8, 0);
	CHECK_NEAR(buckets[2].size, 2, 0);
	CHECK_INT(buckets[3].kind, WEIR_RTOKENS);
	CHECK_INT(knobs[2].kind, WEIR_KNOB_PRIORITY);
	CHECK_NEAR(knobs[2].value, 3, 0);
	CHECK_INT(knobs[3].kind, WEIR_KNOB_DEADLINE);
	CHECK_NEAR(knobs[3].value, 1e9, 0);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_knobs);
	RUN(test_refused_without_the_option);
	RUN(test_values);
	RUN(test_errors);
	RUN(test_the_gateway_refuses_by_name);
	return 0;
}
