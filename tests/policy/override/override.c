/* SPDX-License-Identifier: BSD-3-Clause */
/* override: a value that is set has the effect and the errors of the same value in the file. */
#include "policy/override/override.h"
#include "test.h"
#include <errno.h>

static const char text[] =
	"resources:\n"
	"  - {name: array.1, capacity: 10k iops}\n"
	"tenants:\n"
	"  - name: prod\n"
	"    children:\n"
	"      - {name: db, min: 1k iops, max: [4k iops, 50 MiB/s], burst: 8k iops for 10s,\n"
	"         match: {export: db}}\n"
	"      - {name: web.1, slo: p99 < 5ms, match: {export: web}}\n"
	"  - {name: batch, weight: 2, match: {export: \"*\"}}\n";

static struct weir_policy *parse(void)
{
	struct weir_policy *p;
	struct weir_err err;

	if (weir_policy_parse(text, strlen(text), "t.yaml", &p, &err) != 0)
		FAIL("%s", err.text);
	return p;
}

/* Set it, and check how it is shown; setting the shown value again must change nothing. */
static void sets(const char *key, const char *value, const char *shown)
{
	struct weir_policy *p = parse(), *q = parse();
	char now[POLICY_OVERRIDE_TEXT], again[POLICY_OVERRIDE_TEXT];
	struct weir_err err;

	if (policy_override_set(p, key, value, &err) != 0)
		FAIL("%s %s: %s", key, value, err.text);
	CHECK_INT(policy_override_check(p, NULL, &err), 0);
	CHECK_INT(policy_override_show(p, key, now), 0);
	CHECK_STR(now, shown);
	CHECK_INT(policy_override_set(q, key, now, &err), 0);
	CHECK_INT(policy_override_show(q, key, again), 0);
	CHECK_STR(again, now);
	CHECK(policy_override_same(p, q, key));
	weir_policy_free(p);
	weir_policy_free(q);
}

static void test_values(void)
{
	sets("prod/db.max", "5k iops", "5k iops");
	sets("prod/db.max", "[5k iops, 20 MiB/s]", "[5k iops, 20 MiB/s]");
	sets("prod/db.max", "{all: 5k iops, reads: [1k iops, 1 MiB/s], writes: 3k iops}",
		"{all: 5k iops, reads: [1k iops, 1 MiB/s], writes: 3k iops}");
	sets("prod/db.min", "2k iops", "2k iops");
	sets("prod/db.min", "none", "none");
	sets("prod/db.burst", "6k iops for 30s", "6k iops for 30s");
	sets("prod/db.burst", "[6k iops for 30s, 80 MiB/s for 1s]",
		"[6k iops for 30s, 80 MiB/s for 1s]");
	sets("prod/db.burst", "none", "none");
	sets("prod/web.1.slo", "p99.9 < 10ms", "p99.9 < 10ms");
	sets("prod/web.1.slo", "none", "none");
	sets("prod.weight", "4", "4");
	sets("prod.max", "none", "none");
	sets("batch.weight", "1.5k", "1500");
	sets("array.1.depth", "64", "64");
	sets("array.1.depth", "auto", "auto");
	sets("array.1.depth", "{requests: 8, bytes: 512 KiB}", "{requests: 8, bytes: 512 KiB}");
	sets("array.1.depth", "{bytes: 1.5 MiB}", "{requests: auto, bytes: 1.5 MiB}");
	sets("array.1.depth", "{requests: 8}", "8");
	sets("array.1.capacity", "[3.3k iops, 400 MiB/s]", "[3.3k iops, 400 MiB/s]");
	sets("array.1.capacity", "auto", "auto");
	sets("enforce", "off", "false");
}

static void test_only_that(void)
{
	struct weir_policy *p = parse();
	const struct weir_tenant *t = &p->tenants[1];

	CHECK_INT(policy_override_set(p, "prod/db.max", "5k iops", NULL), 0);
	CHECK_INT(t->n_max, 1);
	CHECK_NEAR(t->max[0].rate, 5000, 0);
	CHECK_NEAR(t->max[0].burst_rate, 8000, 0); /* unchanged */
	CHECK_INT(t->max[0].burst_for, 10 * WEIR_SEC);
	CHECK_INT(t->n_min, 1);
	CHECK_INT(t->n_match, 1);
	weir_policy_free(p);
}

static void refuses(const char *key, const char *value, int code, const char *why)
{
	struct weir_policy *p = parse(), *q = parse();
	static const char *const all[] = {"prod/db.max", "prod/db.min", "prod/db.burst",
		"prod/web.1.slo", "batch.weight", "array.1.depth", "array.1.capacity", "enforce"};
	struct weir_err err;
	int rc = policy_override_set(p, key, value, &err);

	if (rc == 0)
		rc = policy_override_check(p, NULL, &err);
	else
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			CHECK(policy_override_same(p, q, all[i]));
	CHECK_INT(rc, code);
	if (strncmp(err.text, why, strlen(why)) != 0)
		FAIL("%s %s: \"%s\", not \"%s\"", key, value, err.text, why);
	weir_policy_free(p);
	weir_policy_free(q);
}

static void test_mistakes(void)
{
	refuses("prod/dbx.max", "5k iops", -ENOENT, "no tenant 'prod/dbx'");
	refuses("array2.depth", "5", -ENOENT, "no resource 'array2'");
	refuses("prod/db.mx", "5", -ENOENT, "no key 'mx' (did you mean 'max'?)");
	refuses("prod/db.color", "5", -ENOENT, "no key 'color' (weight, min");
	refuses("prod", "5", -ENOENT, "'prod' is not TENANT.KEY");
	refuses("prod.enforce", "true", -ENOENT, "no key 'enforce'");
	refuses("prod/db.max", "5k", -EINVAL, "prod/db.max: ");
	refuses("prod/db.max", "", -EINVAL, "prod/db.max: needs a value");
	refuses("batch.max", "{}", -EINVAL, "batch.max: has no value");
	refuses("batch.max", "{all: }", -EINVAL, "batch.max.all: has no value");
	refuses("prod/db.max", "{all: 5k}", -EINVAL, "prod/db.max.all: ");
	refuses("prod/db.max", "[5k iops, 6k iops]", -EINVAL, "prod/db.max[1]: a second max");
	refuses("prod/db.max", "9k iops", -EINVAL,
		"prod/db.max: there is a burst of 8k iops, which needs a max below it");
	refuses("prod/db.max", "none", -EINVAL, "prod/db.max: there is a burst");
	refuses("prod/db.max", "500 iops", -EINVAL,
		"t.yaml:6:9: the max of 'prod/db', 500 iops, is below its min, 1k iops");
	refuses("prod/db.min", "11k iops", -EINVAL, "t.yaml:");
	refuses("prod/db.burst", "3k iops for 1s", -EINVAL,
		"prod/db.burst: a burst must be more than the max");
	refuses("prod/web.1.slo", "soon", -EINVAL, "prod/web.1.slo: must be a percentile");
	refuses("prod.slo", "p99 < 1ms", -EINVAL, "t.yaml:4:5: 'prod' has children");
	refuses("batch.weight", "0", -EINVAL, "batch.weight: must be more than 0");
	refuses("batch.weight", "none", -EINVAL, "batch.weight: ");
	refuses("array.1.depth", "0", -EINVAL, "array.1.depth: must be from 1");
	refuses("array.1.depth", "{bytes: 0}", -EINVAL, "array.1.depth.bytes: must be from 1 B");
	refuses("array.1.depth", "{byte: 1 MiB}", -EINVAL, "array.1.depth: unknown key 'byte'");
	refuses("array.1.capacity", "500 iops", -EINVAL, "t.yaml:2:5: the mins add up");
	refuses("enforce", "maybe", -EINVAL, "enforce: \"maybe\": must be true or false");
	refuses("batch.weight", "3\ntenants: x", -EINVAL, "batch.weight: must be one line");
	refuses("batch.weight", "3 # three", -EINVAL, "batch.weight: must be one line");
	refuses("batch.weight", "[", -EINVAL, "batch.weight: ");
	refuses("batch.weight", "{a: *b", -EINVAL, "batch.weight: ");
}

/* Two values that are valid only together. */
static void test_together(void)
{
	struct weir_policy *p = parse();
	struct weir_err err;

	CHECK_INT(policy_override_set(p, "prod/db.min", "5k iops", &err), 0);
	CHECK_INT(policy_override_check(p, NULL, &err), -EINVAL);
	CHECK_INT(policy_override_set(p, "prod/db.max", "6k iops", &err), 0);
	CHECK_INT(policy_override_check(p, NULL, &err), 0);
	weir_policy_free(p);
}

static void test_same(void)
{
	struct weir_policy *p = parse(), *q = parse();

	CHECK(policy_override_same(p, q, "prod/db.max"));
	CHECK_INT(policy_override_set(q, "prod/db.max", "[50 MiB/s, 4k iops]", NULL), 0);
	CHECK(policy_override_same(p, q, "prod/db.max")); /* in another order */
	CHECK_INT(policy_override_set(q, "prod/db.max", "[49 MiB/s, 4k iops]", NULL), 0);
	CHECK(!policy_override_same(p, q, "prod/db.max"));
	CHECK(policy_override_same(p, q, "prod/db.burst"));
	CHECK_INT(policy_override_set(q, "prod/db.burst", "7k iops for 10s", NULL), 0);
	CHECK(!policy_override_same(p, q, "prod/db.burst"));
	CHECK(!policy_override_same(p, q, "prod/no.max"));
	weir_policy_free(p);
	weir_policy_free(q);
}

/* The deepest path of the longest names is found, and no longer one. */
static void test_longest_path(void)
{
	char tree[8192] = "tenants: [", path[1200] = "", name[64], key[1300];
	struct weir_policy *p;
	struct weir_err err;

	memset(name, 'n', 63);
	name[63] = '\0';
	for (int i = 0; i < 16; i++) {
		sprintf(tree + strlen(tree), "{name: %s%s", name, i < 15 ? ", children: [" : "");
		sprintf(path + strlen(path), "%s%s", i ? "/" : "", name);
	}
	for (int i = 0; i < 16; i++)
		strcat(tree, "}]");
	CHECK_INT(weir_policy_parse(tree, strlen(tree), "t.yaml", &p, &err), 0);
	sprintf(key, "%s.max", path);
	CHECK_INT(policy_override_set(p, key, "5k iops", &err), 0);
	CHECK_INT(p->tenants[15].n_max, 1);
	sprintf(key, "%s/n.max", path);
	CHECK_INT(policy_override_set(p, key, "5k iops", &err), -ENOENT);
	weir_policy_free(p);
}

static void test_shown_in_full(void)
{
	static const char few[] = "tenants: [{name: a, weight: 1048575, slo: p99.99999 < 1s}]";
	char shown[POLICY_OVERRIDE_TEXT];
	struct weir_policy *p;

	CHECK_INT(weir_policy_parse(few, sizeof(few) - 1, "t.yaml", &p, NULL), 0);
	CHECK_INT(policy_override_show(p, "a.weight", shown), 0);
	CHECK_STR(shown, "1048575");
	CHECK_INT(policy_override_show(p, "a.slo", shown), 0);
	CHECK_STR(shown, "p99.99999 < 1s");
	weir_policy_free(p);
}

static void test_warnings(void)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *p = parse();
	struct weir_err err;

	CHECK_INT(policy_override_set(p, "batch.max", "20k iops", &err), 0);
	CHECK_INT(policy_override_check(p, &remarks, &err), 0);
	CHECK_INT(remarks.n_warnings, 2); /* and for the slo */
	CHECK(strstr(remarks.warnings[0].text, "can never reach its max of 20k iops"));
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_values);
	RUN(test_only_that);
	RUN(test_mistakes);
	RUN(test_together);
	RUN(test_same);
	RUN(test_longest_path);
	RUN(test_shown_in_full);
	RUN(test_warnings);
	return 0;
}
