/* SPDX-License-Identifier: BSD-3-Clause */
/* policy: values as written, defaults, warnings, other files, foreign documents. */
#include "policy/impl.h"
#include "policy/text.h"
#include <errno.h>

static void test_example_of_the_design(void)
{
	struct weir_policy *p = parse(
		"listen: [\"unix:/run/weir/nbd.sock\", \"tcp:127.0.0.1:10809\"]\n"
		"resources:\n"
		"  - name: array1\n"
		"    back: \"nbd://array.example:10809/lun0\"\n"
		"    depth: 64\n"
		"    capacity: auto\n"
		"exports:\n"
		"  - {name: db-data, resource: array1, offset: 0, size: 100 GiB}\n"
		"  - {name: web-1,   resource: array1, offset: 100 GiB, size: 20 GiB}\n"
		"tenants:\n"
		"  - name: prod\n"
		"    weight: 4\n"
		"    min: 2k iops\n"
		"    children:\n"
		"      - {name: db,  weight: 3, slo: \"p99.9 < 10ms\", match: {export: \"db-*\"}}\n"
		"      - {name: web, weight: 1, max: 1k iops, burst: 3k iops for 30s, match: "
		"{export: \"web-*\", client: 10.0.0.0/24}}\n"
		"  - {name: batch, weight: 1, match: {export: \"*\"}}\n");
	const struct weir_tenant *t = p->tenants;

	CHECK_INT(remarks.n_warnings, 1); /* for the slo */
	CHECK_INT(p->n_tenants, 4);
	CHECK_STR(t[0].path, "prod");
	CHECK_STR(t[1].path, "prod/db");
	CHECK_STR(t[2].path, "prod/web");
	CHECK_STR(t[3].path, "batch");
	CHECK_STR(t[2].name, "web");
	CHECK(t[0].parent == -1 && t[1].parent == 0 && t[2].parent == 0 && t[3].parent == -1);
	CHECK(t[0].first_child == 1 && t[1].next_sibling == 2 && t[2].next_sibling == -1);
	CHECK(t[0].next_sibling == 3 && t[3].first_child == -1);
	CHECK_NEAR(t[0].weight, 4, 0);
	CHECK_INT(t[0].n_min, 1);
	CHECK_NEAR(t[0].min[0].rate, 2000, 0);
	CHECK_INT(t[0].min[0].unit, WEIR_UNIT_REQUESTS);
	CHECK_INT(t[0].min[0].ops, WEIR_OPS_ALL);
	CHECK_NEAR(t[1].slo_percentile, 99.9, 1e-12);
	CHECK_INT(t[1].slo_latency, 10 * WEIR_MS);
	CHECK_NEAR(t[2].max[0].rate, 1000, 0);
	CHECK_NEAR(t[2].max[0].burst_rate, 3000, 0);
	CHECK_INT(t[2].max[0].burst_for, 30 * WEIR_SEC);
	CHECK_STR(t[2].match[0].client, "10.0.0.0/24");
	CHECK_INT(t[2].at.line, 16);
	CHECK_STR(t[2].at.file, "t.yaml");
	CHECK_INT(p->n_listen, 2);
	CHECK_STR(p->listen[1], "tcp:127.0.0.1:10809");
	CHECK_STR(p->resources[0].back, "nbd://array.example:10809/lun0");
	CHECK_NEAR(p->resources[0].depth, 64, 0);
	CHECK(p->resources[0].capacity_auto);
	CHECK_INT(p->exports[1].offset, 100LL << 30);
	CHECK_INT(p->exports[1].size, 20LL << 30);
	CHECK(p->enforce);
	CHECK_INT(p->default_tenant, -1);
	CHECK_INT(weir_policy_find(p, "prod/web"), 2);
	CHECK_INT(weir_policy_find(p, "web"), -ENOENT);
	weir_policy_free(p);
}

static void test_defaults(void)
{
	struct weir_policy *p = parse("resources: [{name: r}]\ntenants: [{name: a}]\n");
	const struct weir_resource *r = p->resources;
	struct weir_resource same;

	CHECK_NEAR(p->tenants[0].weight, 1, 0);
	CHECK(p->tenants[0].n_min == 0 && p->tenants[0].n_max == 0 && !p->tenants[0].n_match);
	CHECK(p->tenants[0].slo_percentile == 0 && !p->tenants[0].is_default);
	CHECK(r->depth == 0 && r->cost == WEIR_UNIT_REQUESTS && r->capacity_auto && !r->back);
	CHECK(r->run == 0 && r->credit == 0 && r->io_unit == 256 * 1024);
	CHECK(r->flush_cost == 1 && r->trim_cost == 1);
	policy_resource_default("r", &same);
	CHECK(same.depth == r->depth && same.io_unit == r->io_unit &&
		same.run_distance == r->run_distance && same.cost == r->cost);
	weir_policy_free(p);
	p = parse("");
	CHECK_INT(p->n_tenants, 0);
	CHECK_INT(p->n_resources, 0);
	weir_policy_free(p);
	weir_policy_free(NULL);
}

static void depth_is(const char *text, double requests, uint64_t bytes)
{
	char all[128];
	struct weir_policy *p;

	snprintf(all, sizeof(all), "resources: [{name: r, depth: %s}]\n", text);
	p = parse(all);
	CHECK_NEAR(p->resources[0].depth, requests, 0);
	CHECK_INT(p->resources[0].depth_bytes, bytes);
	weir_policy_free(p);
}

static void test_depth(void)
{
	depth_is("8", 8, 0);
	depth_is("auto", 0, 0);
	depth_is("{requests: 8, bytes: 512 KiB}", 8, 512 << 10);
	depth_is("{bytes: 384 KiB}", 0, 384 << 10);
	depth_is("{requests: auto, bytes: 1 MiB}", 0, 1 << 20);
	depth_is("{requests: 16}", 16, 0);
}

static const struct weir_limit *limit(
	const struct weir_limit *l, unsigned n, enum weir_unit unit, uint8_t ops)
{
	for (unsigned i = 0; i < n; i++)
		if (l[i].unit == unit && l[i].ops == ops)
			return &l[i];
	FAIL("no such limit");
}

static void test_forms_of_limits(void)
{
	struct weir_policy *p = parse(
		"tenants:\n"
		"  - name: a\n"
		"    min: [2k iops, 20 MiB/s]\n"
		"    max: {all: 9k iops, reads: 8k iops, writes: [5k iops, 80 Mbit/s]}\n"
		"    burst: {writes: [6k iops for 2s, 20 MB/s for 1m], all: 10k iops for 5s}\n");
	const struct weir_tenant *t = p->tenants;

	CHECK_INT(t->n_min, 2);
	CHECK_NEAR(limit(t->min, 2, WEIR_UNIT_BYTES, WEIR_OPS_ALL)->rate, 20 * 1048576.0, 0);
	CHECK_INT(t->n_max, 4);
	CHECK_NEAR(limit(t->max, 4, WEIR_UNIT_BYTES, WEIR_OPS_WRITES)->rate, 1e7, 0);
	CHECK_NEAR(limit(t->max, 4, WEIR_UNIT_BYTES, WEIR_OPS_WRITES)->burst_rate, 2e7, 0);
	CHECK_INT(limit(t->max, 4, WEIR_UNIT_BYTES, WEIR_OPS_WRITES)->burst_for, 60 * WEIR_SEC);
	CHECK_NEAR(limit(t->max, 4, WEIR_UNIT_REQUESTS, WEIR_OPS_READS)->burst_rate, 0, 0);
	CHECK_NEAR(limit(t->max, 4, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL)->burst_rate, 10000, 0);
	CHECK_INT(WEIR_OPS_READS | WEIR_OPS_WRITES | WEIR_OPS(WEIR_STATUS), WEIR_OPS_ALL);
	CHECK_INT(WEIR_OPS_READS & WEIR_OPS_WRITES, 0);
	for (unsigned u = 0, s = 0; u < 2; u++) {
		CHECK_INT(weir_limit_slot((enum weir_unit)u, WEIR_OPS_ALL), s++);
		CHECK_INT(weir_limit_slot((enum weir_unit)u, WEIR_OPS_READS), s++);
		CHECK_INT(weir_limit_slot((enum weir_unit)u, WEIR_OPS_WRITES), s++);
	}
	weir_policy_free(p);
}

static void test_shares(void)
{
	struct weir_policy *p =
		parse("tenants:\n"
		      "  - {name: p, weight: 4, children: [{name: a, weight: 3}, {name: b}]}\n"
		      "  - {name: q, weight: 1}\n");
	double of_parent[4], of_all[4];

	weir_policy_share(p, of_parent, of_all);
	CHECK_NEAR(of_parent[0], 0.8, 1e-12);
	CHECK_NEAR(of_all[0], 0.8, 1e-12);
	CHECK_NEAR(of_parent[1], 0.75, 1e-12);
	CHECK_NEAR(of_all[1], 0.6, 1e-12);
	CHECK_NEAR(of_parent[2], 0.25, 1e-12);
	CHECK_NEAR(of_all[2], 0.2, 1e-12);
	CHECK_NEAR(of_parent[3], 0.2, 1e-12);
	CHECK_NEAR(of_all[3], 0.2, 1e-12);
	weir_policy_free(p);
}

static void warned(const char *text, const char *want)
{
	struct weir_policy *p = parse(text);

	if (remarks.n_warnings != 1 || !strstr(remarks.warnings[0].text, want))
		FAIL("%zu warnings, the first \"%s\", not \"%s\"", remarks.n_warnings,
			remarks.warnings[0].text, want);
	weir_policy_free(p);
}

static void test_warnings(void)
{
	warned("tenants: [{name: p, max: 1k iops, children: [{name: a, max: 2k iops}]}]",
		"t.yaml:1:61: 'p/a' can never reach its max of 2k iops: 'p' above it lets 1k iops");
	warned("tenants: [{name: p, max: 1k iops, children: [{name: a, max: {reads: 2k iops}}]}]",
		"'p/a' can never reach its max of 2k iops of reads");
	warned("tenants: [{name: p, max: 2k iops, children: [{name: a, max: 1k iops, "
	       "burst: 5k iops for 1s}]}]",
		"'p/a' can never reach its burst of 5k iops");
	warned("tenants: [{name: p, min: 2k iops, children: [{name: a, max: 1k iops}]}]",
		"'p' can never use its min of 2k iops");
	warned("resources: [{name: r, capacity: 1k iops}]\ntenants: [{name: a, max: 2k iops}]",
		"2:26: 'a' can never reach its max of 2k iops: the capacity is 1k iops");
	warned("tenants: [{name: a, match: {export: x}}, {name: b}]", "'b' has no match");
	warned("resources: [{name: r}]\nexports: [{name: e}]\n"
	       "tenants: [{name: a, match: {export: x*}}, {name: b, match: {export: e}}]",
		"'a': no export is called 'x*'");
	warned("resources: [{name: r}]\nexports: [{name: e, size: 1M}, {name: f, offset: 1M, size: "
	       "1M}, {name: g, offset: 2M}]\n"
	       "tenants: [{name: a, match: {export: g, client: 10.0.0.1}}]",
		"2:11: no tenant matches export 'e' and 1 more: clients are refused");
	/* reachable: an equal max, another class, another unit */
	weir_policy_free(parse("tenants: [{name: p, max: {reads: 1k iops}, children: [{name: a, "
			       "max: [2k iops, 1 GiB/s]}, {name: b, max: {reads: 1k iops}}]}]"));
	CHECK_INT(remarks.n_warnings, 0);
	/* some client has a tenant */
	weir_policy_free(parse("resources: [{name: r}]\nexports: [{name: e}]\n"
			       "tenants: [{name: a, match: {client: 10.0.0.1}}]"));
	CHECK_INT(remarks.n_warnings, 0);
}

static void test_more_errors_than_are_kept(void)
{
	char text[4000] = "tenants:\n";
	struct weir_policy *p = NULL;
	size_t n = WEIR_POLICY_REMARKS + 5;

	for (size_t i = 0; i < n; i++)
		strcat(text, "  - {name: a/b}\n");
	CHECK_INT(
		weir_policy_parse_all(text, strlen(text), "t", NULL, NULL, &p, &remarks), -EINVAL);
	CHECK_INT(remarks.n_errors, n);
	CHECK(strstr(remarks.errors[WEIR_POLICY_REMARKS - 1].text, "t:21:12:"));
	CHECK_INT(weir_policy_parse(text, strlen(text), "t", &p, NULL), -EINVAL);
}

/* ---- tenants in a file of their own */

struct other {
	const char *text;
	int rc;
};

static int read_other(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	struct other *o = arg;

	CHECK_STR(from, "main.yaml");
	CHECK_STR(name, "other.yaml");
	if (o->rc < 0)
		return weir_err_set(err, o->rc, "other.yaml: cannot be read");
	*ret_text = strdup(o->text);
	*ret_len = strlen(o->text);
	return 0;
}

static int with_other(const char *text, int rc, struct weir_policy **ret)
{
	static const char main_text[] = "default: a\ntenants: other.yaml\n";
	struct other o = {text, rc};

	return weir_policy_parse_all(
		main_text, sizeof(main_text) - 1, "main.yaml", read_other, &o, ret, &remarks);
}

static void test_other_file(void)
{
	struct weir_policy *p = NULL;

	CHECK_INT(with_other("- {name: a, weight: 2}\n- {name: b}\n", 0, &p), 0);
	CHECK_INT(p->n_tenants, 2);
	CHECK_INT(p->default_tenant, 0);
	CHECK_STR(p->tenants[1].at.file, "other.yaml");
	weir_policy_free(p);
	CHECK_INT(with_other("tenants: [{name: a}]\n", 0, &p), 0);
	CHECK_INT(p->n_tenants, 1);
	weir_policy_free(p);
	p = NULL;
	CHECK_INT(with_other("- {name: a, weight: 0}\n", 0, &p), -EINVAL);
	CHECK(strstr(remarks.errors[0].text, "other.yaml:1:21:"));
	CHECK_INT(with_other("", -EACCES, &p), -EINVAL);
	CHECK(strstr(
		remarks.errors[0].text, "main.yaml:2:10: tenants: other.yaml: cannot be read"));
	/* a file that only names another file is not a list */
	CHECK_INT(with_other("tenants: third.yaml\n", 0, &p), -EINVAL);
	CHECK(strstr(remarks.errors[0].text, "must be a list"));
	CHECK_INT(with_other("resources: []\ntenants: []\n", 0, &p), -EINVAL);
	CHECK(strstr(remarks.errors[0].text, "other.yaml:1:1: unknown key 'resources'"));
	CHECK(!p);
}

static void test_policy_in_another_document(void)
{
	static const char text[] =
		"hosts: [{policy: {tenants: [{name: a, children: [{name: b}]}], "
		"resources: [{name: r, depth: none}]}}, {policy: {tenant: 1}}]\n";
	struct weir_policy *p = NULL;
	struct yamldoc *doc;
	struct weir_err err;
	yamldoc_node hosts;

	CHECK_INT(yamldoc_parse(text, sizeof(text) - 1, "s.yaml", &doc, &err), 0);
	hosts = yamldoc_get(yamldoc_root(doc), "hosts");
	CHECK_INT(policy_node_parse(
			  yamldoc_get(yamldoc_at(hosts, 1), "policy"), NULL, NULL, &p, &err),
		-EINVAL);
	CHECK(strstr(err.text, "hosts[1].policy: unknown key 'tenant' (did you mean 'tenants'?)"));
	CHECK_INT(policy_node_parse(
			  yamldoc_get(yamldoc_at(hosts, 0), "policy"), NULL, NULL, &p, &err),
		0);
	yamldoc_free(doc);
	CHECK_STR(p->tenants[1].path, "a/b");
	CHECK_STR(p->tenants[1].at.file, "s.yaml");
	CHECK(p->resources[0].depth == POLICY_DEPTH_OPEN);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_example_of_the_design);
	RUN(test_defaults);
	RUN(test_depth);
	RUN(test_forms_of_limits);
	RUN(test_shares);
	RUN(test_warnings);
	RUN(test_more_errors_than_are_kept);
	RUN(test_other_file);
	RUN(test_policy_in_another_document);
	return 0;
}
