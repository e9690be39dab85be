/* SPDX-License-Identifier: BSD-3-Clause */
/* by-size: limits follow the size of exports; classes; refusals have their place. */
#include "policy/by-size.h"
#include "policy/policy.h"
#include "policy/override/override.h"
#include "text.h"
#include <math.h>

#define GIB (UINT64_C(1) << 30)

static uint64_t sizes(void *arg, const char *name)
{
	const uint64_t *of = arg;

	return strcmp(name, "a") == 0 ? of[0] : strcmp(name, "b") == 0 ? of[1] : 0;
}

static const struct weir_tenant *resolve(struct weir_policy *p, uint64_t a, uint64_t b)
{
	uint64_t of[2] = {a, b};

	policy_size_resolve(p, sizes, of);
	return &p->tenants[0];
}

#define TENANT(keys) "tenants: [{name: t, match: [{export: a}, {export: b}], " keys "}]\n"

static void test_follows(void)
{
	struct weir_policy *p = parse(TENANT("max: 10 iops/GiB"));
	const struct weir_tenant *t = &p->tenants[0];

	CHECK_INT(t->n_max, 0); /* not known */
	CHECK(policy_size_used(p));
	t = resolve(p, 3 * GIB, 0);
	CHECK_INT(t->n_max, 1);
	CHECK_NEAR(t->max[0].rate, 30, 1e-9);
	t = resolve(p, 3 * GIB, GIB / 2);
	CHECK_INT(t->n_max, 1);
	CHECK_NEAR(t->max[0].rate, 35, 1e-9);
	t = resolve(p, 0, 0);
	CHECK_INT(t->n_max, 0);
	weir_policy_free(p);
}

static void test_bounds(void)
{
	struct weir_policy *p = parse(TENANT(
		"max: [{rate: 3 iops/GiB, at_least: 100 iops, at_most: 16k iops}, 1 MiB/s/TiB]"));
	const struct weir_tenant *t = resolve(p, GIB, 0);

	CHECK_INT(t->n_max, 2);
	CHECK_NEAR(t->max[0].rate, 100, 1e-9);
	CHECK_NEAR(t->max[1].rate, 1024, 1e-6);
	t = resolve(p, 1024 * GIB, 0);
	CHECK_NEAR(t->max[0].rate, 3072, 1e-9);
	CHECK_NEAR(t->max[1].rate, 1 << 20, 1e-3);
	t = resolve(p, 100000 * GIB, 0);
	CHECK_NEAR(t->max[0].rate, 16000, 1e-9);
	weir_policy_free(p);
}

/* A burst is one while it is above the max; a max by size is never below the min. */
static void test_burst_and_min(void)
{
	struct weir_policy *p = parse("classes: {gold: {weight: 4, min: 500 iops, max: 10 "
				      "iops/GiB, burst: 6k iops for 30s}}\n" TENANT("class: gold"));
	const struct weir_tenant *t = resolve(p, 100 * GIB, 0);

	CHECK_STR(t->class_, "gold");
	CHECK_NEAR(t->weight, 4, 0);
	CHECK_NEAR(t->max[0].rate, 1000, 1e-9);
	CHECK_NEAR(t->max[0].burst_rate, 6000, 0);
	t = resolve(p, GIB, 0);
	CHECK_NEAR(t->max[0].rate, 500, 1e-9);
	t = resolve(p, 600 * GIB, 0);
	CHECK_NEAR(t->max[0].rate, 6000, 1e-9);
	CHECK_NEAR(t->max[0].burst_rate, 0, 0);
	weir_policy_free(p);
	p = parse(TENANT("min: 10 iops/GiB, max: 50 iops"));
	t = resolve(p, 3 * GIB, 0);
	CHECK_NEAR(t->min[0].rate, 30, 1e-9);
	t = resolve(p, 30 * GIB, 0);
	CHECK_NEAR(t->min[0].rate, 50, 1e-9);
	weir_policy_free(p);
}

static void test_stated(void)
{
	struct weir_policy *p =
		parse("resources: [{name: r, back: \"memory:1G\"}]\n"
		      "exports: [{name: a, size: 512 MiB}]\n"
		      "tenants: [{name: t, match: {export: a}, max: 100 iops/GiB}]\n");

	CHECK_INT(p->tenants[0].n_max, 1);
	CHECK_NEAR(p->tenants[0].max[0].rate, 50, 1e-9);
	weir_policy_free(p);
}

/* A value that is shown can be set again; a fixed max replaces one by size. */
static void test_override(void)
{
	struct weir_policy *p = parse(TENANT("max: 10 iops/GiB, burst: 6k iops for 30s")), *q;
	char now[POLICY_OVERRIDE_TEXT];
	struct weir_err err;

	CHECK_INT(policy_override_show(p, "t.max", now), 0);
	CHECK_STR(now, "10 iops/GiB");
	CHECK_INT(policy_override_show(p, "t.burst", now), 0);
	CHECK_STR(now, "6k iops for 30s");
	CHECK_INT(policy_override_set(p, "t.max",
			  "{rate: 3 iops/GiB, at_least: 100 iops, at_most: 16k iops}", &err),
		0);
	CHECK_INT(policy_override_show(p, "t.max", now), 0);
	CHECK_STR(now, "{rate: 3 iops/GiB, at_least: 100 iops, at_most: 16k iops}");
	CHECK_INT(policy_copy(p, &q), 0);
	CHECK(policy_override_same(p, q, "t.max"));
	resolve(p, 50 * GIB, 0);
	CHECK_INT(policy_override_set(p, "t.max", "5k iops", &err), 0);
	CHECK(!policy_override_same(p, q, "t.max"));
	resolve(p, 60 * GIB, 0);
	CHECK_INT(p->tenants[0].n_max, 1);
	CHECK_NEAR(p->tenants[0].max[0].rate, 5000, 0);
	CHECK_INT(policy_override_set(p, "t.max", "none", &err), 0);
	CHECK_INT(p->tenants[0].n_max + p->tenants[0].n_max_by_size, 0);
	CHECK_INT(resolve(q, 50 * GIB, 0)->n_max, 1);
	CHECK_NEAR(q->tenants[0].max[0].rate, 150, 1e-9);
	weir_policy_free(p);
	weir_policy_free(q);
}

static void test_refused(void)
{
	refused("tenants: [{name: t, match: {export: \"a*\"}, max: 3 iops/GiB}]\n",
		"t.yaml:1:49: a limit by size needs a match that names its export");
	refused("tenants: [{name: t, match: {client: 10.0.0.1}, max: 3 iops/GiB}]\n",
		"names its export");
	refused("tenants: [{name: t, max: 3 iops/GiB, children: [{name: u, match: {export: "
		"a}}]}]\n",
		"t.yaml:1:26: a limit by size needs a match");
	refused(TENANT("max: [3 iops/GiB, 5 iops]"), "a second max in iops");
	refused(TENANT("max: 3/GiB"), "needs a unit");
	refused(TENANT("max: 3 iops/GiBB"), "max");
	refused(TENANT("max: {rate: 3 iops, at_least: 1 iops}"), "must be a rate by size");
	refused(TENANT("max: {rate: 3 iops/GiB, at_least: 1 MiB/s}"), "in the unit of the rate");
	refused(TENANT("max: {rate: 3 iops/GiB, at_least: 9 iops, at_most: 8 iops}"),
		"must not be below at_least");
	refused(TENANT("max: {rate: 3 iops/GiB, least: 9 iops}"), "unknown key 'least'");
	refused(TENANT("max: {rate: 3 iops/GiB, at_least: 9 iops}, burst: 8 iops for 1s"),
		"a burst must be more than the max");
	refused("resources: [{name: r, back: \"memory:1G\", capacity: 3 iops/GiB}]\n", "capacity");
	refused("classes: {gold: {weight: 4}}\n" TENANT("class: glod"), "did you mean 'gold'?");
	refused("classes: {gold: {wieght: 4}}\n" TENANT("class: gold"), "did you mean 'weight'?");
	refused("classes: {gold: {burst: 4 iops for 1s}}\n" TENANT("class: gold"), "needs a max");
	refused("classes: [gold]\n" TENANT("weight: 1"), "must be a map");
	refused("classes: {a/b: {weight: 4}}\n" TENANT("weight: 1"), "must not contain '/'");
}

/* A tenant's own keys come before its class's; its class's burst stays where it is above the max. */
static void test_class(void)
{
	struct weir_policy *p =
		parse("classes: {c: {weight: 4, min: 10 iops, max: 50 iops, burst: 60 iops for 1s, "
		      "slo: p99 < 5ms}}\n"
		      "tenants:\n"
		      "  - {name: a, class: c, match: {export: a}}\n"
		      "  - {name: b, class: c, weight: 2, max: 55 iops, match: {export: b}}\n"
		      "  - {name: d, class: c, max: 70 iops, match: {export: d}}\n"
		      "  - {name: e, class: c, burst: 90 iops for 2s, min: 20 iops, match: "
		      "{export: e}}\n");
	const struct weir_tenant *t = p->tenants;

	CHECK_NEAR(t[0].weight, 4, 0);
	CHECK_NEAR(t[0].max[0].burst_rate, 60, 0);
	CHECK_NEAR(t[0].slo_percentile, 99, 0);
	CHECK_NEAR(t[1].weight, 2, 0);
	CHECK_NEAR(t[1].min[0].rate, 10, 0);
	CHECK_NEAR(t[1].max[0].rate, 55, 0);
	CHECK_NEAR(t[1].max[0].burst_rate, 60, 0);
	CHECK_NEAR(t[2].max[0].burst_rate, 0, 0);
	CHECK_NEAR(t[3].max[0].rate, 50, 0);
	CHECK_NEAR(t[3].max[0].burst_rate, 90, 0);
	CHECK_NEAR(t[3].min[0].rate, 20, 0);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_follows);
	RUN(test_bounds);
	RUN(test_burst_and_min);
	RUN(test_stated);
	RUN(test_override);
	RUN(test_refused);
	RUN(test_class);
	return 0;
}
