/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: the grammar of slos, links, traces and paths; more tenants after those of a policy. */
#include "policy/policy.h"
#include "policy/plan.h"
#include "text.h"

#define TOP                                                                                        \
	"resources: [{name: a, profile: a.profile}, {name: b}]\n"                                  \
	"links: [{name: out, rate: 1 Gbit/s}, {name: in, rate: 10 MB/s, levels: 3, overhead: 64 "  \
	"B, "                                                                                      \
	"mtu: 1500 B}]\n"
#define TENANT(keys) TOP "tenants: [{name: t, match: {export: a}, " keys "}]\n"

static void slos(void)
{
	static const char *const good[] = {"p99.9 < 10ms", "p99 reads < 1s", "p50 writes < 3us",
		"p99.9 reads < 10ms over 5m", "p90 < 1ms over 1h"};
	char text[512], shown[POLICY_SLO_TEXT];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct weir_policy *p;

		snprintf(text, sizeof(text), TENANT("slo: \"%s\""), good[i]);
		p = parse(text);
		CHECK_STR(policy_plan_show_slo(&p->tenants[0], shown), good[i]);
		weir_policy_free(p);
	}
	refused(TENANT("slo: \"p99 trims < 1ms\""), "unknown unit");
	refused(TENANT("slo: \"reads < 1ms\""), "must be a percentile and a time");
	refused(TENANT("slo: \" reads < 1ms\""), "must be a percentile and a time");
	refused(TENANT("slo: \"p99 < 1ms over 0s\""), "the window must be more than 0");
	refused(TENANT("slo: \"p99 < 1ms over\""), "over");
	refused(TENANT("slo: \"p99 < over 5m\""), "");
	refused(TENANT("slo: \"<\""), "must be a percentile and a time");
}

static void keys(void)
{
	struct weir_policy *p = parse(TENANT("trace: t.trace, path: [in, a, out]")), *copy;
	const struct policy_planned *t;

	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	t = copy->tenants[0].planned;
	CHECK_STR(copy->resources[0].profile, "a.profile");
	CHECK_INT(copy->n_links, 2);
	CHECK_STR(copy->links[0].name, "out");
	CHECK_NEAR(copy->links[0].rate, 1.25e8, 1);
	CHECK_INT(copy->links[0].levels, POLICY_LINK_LEVELS);
	CHECK_INT(copy->links[1].mtu, 1500);
	CHECK_INT(copy->links[1].overhead, 64);
	CHECK_STR(t->trace, "t.trace");
	CHECK_INT(t->n_path, 3);
	CHECK(t->path[0].link && t->path[0].index == 1 && !t->path[1].link && t->path[2].link);
	weir_policy_free(copy);
}

static void refusals(void)
{
	refused(TENANT("path: [a, nowhere]"), "t.yaml:3:");
	refused(TENANT("path: [a, nowhere]"), "no resource or link 'nowhere'");
	refused(TENANT("path: [a, a]"), "stands twice");
	refused(TENANT("path: [a, b]"), "must have one resource");
	refused(TENANT("path: [out]"), "must have one resource");
	refused(TENANT("path: []"), "must have one resource");
	refused(TENANT("path: a"), "must be a list");
	refused(TENANT("trace: \"\""), "must not be empty");
	refused("links: [{name: l}]\n", "needs a rate");
	refused("links: [{rate: 1 MB/s}]\n", "needs a name");
	refused("links: [{name: l, rate: 5 iops}]\n", "rate of bytes");
	refused("links: [{name: l, rate: 1 MB/s, levels: 65}]\n", "64");
	refused("links: [{name: l, rate: 1 MB/s}, {name: l, rate: 1 MB/s}]\n", "a second stage");
	refused("resources: [{name: l}]\nlinks: [{name: l, rate: 1 MB/s}]\n", "a second stage");
	refused(TOP "tenants: [{name: g, trace: x, children: [{name: t, match: {export: a}}]}]\n",
		"only a tenant that takes requests");
}

static void together(void)
{
	static const char two[] =
		TOP "tenants: [{name: t, trace: x, match: {export: a}}, {name: u, "
		    "trace: y, match: {export: b}}, {name: v, match: {export: "
		    "c}}]\n";
	struct weir_policy *p, *copy;
	char text[1024];

	snprintf(text, sizeof(text), "%stogether: [u, t]\n", two);
	p = parse(text);
	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	CHECK_INT(policy_plan_together(copy, 0), 1);
	CHECK_INT(policy_plan_together(copy, 1), 1);
	CHECK_INT(policy_plan_together(copy, 2), 0);
	weir_policy_free(copy);
	snprintf(text, sizeof(text), "%stogether: [[t], [u]]\n", two);
	p = parse(text);
	CHECK_INT(policy_plan_together(p, 0), 1);
	CHECK_INT(policy_plan_together(p, 1), 2);
	weir_policy_free(p);
	snprintf(text, sizeof(text), "%stogether: [t, v]\n", two);
	refused(text, "tenant 'v' has no trace");
	snprintf(text, sizeof(text), "%stogether: [t, t]\n", two);
	refused(text, "stands twice");
	snprintf(text, sizeof(text), "%stogether: [w]\n", two);
	refused(text, "no tenant 'w'");
	snprintf(text, sizeof(text), "%stogether: t\n", two);
	refused(text, "must be a list");
}

static int more(const char *policy, const char *text, struct weir_policy **ret, size_t *ret_first)
{
	return policy_parse_more(&(struct policy_text){policy, strlen(policy), "t.yaml"},
		&(struct policy_text){text, strlen(text), "new.yaml"}, NULL, NULL, ret, ret_first,
		&remarks);
}

static void more_tenants(void)
{
	const char *first = TOP "tenants: [{name: g, children: [{name: t, match: {export: a}}]}]\n";
	struct weir_policy *p;
	size_t from;

	CHECK_INT(more(first, "tenants: [{name: n, path: [b, out], match: {export: b}}]\n", &p,
			  &from),
		0);
	CHECK_INT(from, 2);
	CHECK_INT(p->n_tenants, 3);
	CHECK_INT(p->tenants[0].next_sibling, 2);
	CHECK_INT(p->tenants[2].planned->n_path, 2);
	weir_policy_free(p);
	CHECK_INT(more(first, "[{name: n, match: {export: b}}]\n", &p, &from), 0);
	weir_policy_free(p);
	CHECK(more(first, "[{name: g, match: {export: b}}]\n", &p, &from) < 0); /* taken */
	CHECK(more(first, "{depth: 3}\n", &p, &from) < 0);
	CHECK(strncmp(remarks.errors[0].text, "new.yaml:1:", 11) == 0);
}

int main(void)
{
	RUN(slos);
	RUN(keys);
	RUN(refusals);
	RUN(together);
	RUN(more_tenants);
	return 0;
}
