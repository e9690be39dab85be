/* SPDX-License-Identifier: BSD-3-Clause */
/* drive: policies, controllers, rules, counters and errors, with a driver that the test plays. */
#include "serve/drive/drive.h"
#include "policy-parse.h"
#include <errno.h>
#include <math.h>

#define TENANTS 8

/* ---- a driver: it counts as it is told, and records rules */

struct played {
	struct drive_count counts[TENANTS];
	struct drive_rule rules[TENANTS];
	unsigned given[TENANTS]; /* times that a rule was given */
	int no_counts;           /* an error of count */
	int refuses[TENANTS];    /* errors of limit */
};

static int count(void *driver, size_t tenant, const char *path, struct drive_count *ret,
	struct weir_err *err)
{
	const struct played *p = driver;

	if (p->no_counts)
		return weir_err_set(err, p->no_counts, "no counters");
	*ret = p->counts[tenant];
	return 0;
}

static int limit(void *driver, const struct drive_rule *rule, struct weir_err *err)
{
	struct played *p = driver;

	p->given[rule->tenant]++;
	if (p->refuses[rule->tenant])
		return weir_err_set(err, p->refuses[rule->tenant], "refused %s", rule->path);
	p->rules[rule->tenant] = *rule;
	return 0;
}

static const struct drive_ops ops = {.name = "played", .count = count, .limit = limit};

static struct played p;
static struct weir_policy *policy;
static struct drive *d;
static struct weir_err err;

static int try(const char *text)
{
	p = (struct played){0};
	policy = parse(text);
	return drive_new(policy, weir_policy_resource(policy, NULL), &ops, &p, &d, &err);
}

static void end(void)
{
	drive_free(d);
	d = NULL;
	weir_policy_free(policy);
}

static double most(size_t tenant, enum weir_unit unit, uint8_t operations)
{
	return p.rules[tenant].most[weir_limit_slot(unit, operations)];
}

/* ---- the tests */

#define STATIC                                                                                     \
	"resources: [{name: r, controller: tbf, tbf: {default: 100 iops, rules: [{match: "         \
	"\"g/a\", "                                                                                \
	"rate: 300 iops}]}}]\n"                                                                    \
	"tenants:\n"                                                                               \
	"  - {name: g, max: 1 MiB/s, children: [{name: a, weight: 2, max: [200 iops, 9 MiB/s]}, "  \
	"{name: b}]}\n"                                                                            \
	"  - {name: c, max: {reads: 50 iops}}\n"

/* Limits of the policy and of the controller reach the driver, the lesser of both, and once. */
static void test_rules(void)
{
	weir_time next;

	CHECK_INT(try(STATIC), 0);
	CHECK_INT(p.given[0], 0);
	CHECK_INT(drive_step(d, 0, &next, &err), 0);
	CHECK_INT(next, WEIR_SEC);
	CHECK_STR(p.rules[1].path, "g/a");
	CHECK(isinf(most(0, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL)));
	CHECK(most(0, WEIR_UNIT_BYTES, WEIR_OPS_ALL) == 1 << 20);
	CHECK(most(1, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) == 200);
	CHECK(most(1, WEIR_UNIT_BYTES, WEIR_OPS_ALL) == 9 << 20);
	CHECK(most(2, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) == 100);
	CHECK(most(3, WEIR_UNIT_REQUESTS, WEIR_OPS_READS) == 50);
	CHECK(most(3, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) == 100);
	CHECK(p.rules[1].weight == 2 && p.rules[2].weight == 1);
	CHECK_INT(drive_step(d, WEIR_SEC, &next, &err), 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(p.given[i], 1);
	p.counts[2].again = true;
	CHECK_INT(drive_step(d, 2 * WEIR_SEC, &next, &err), 0);
	CHECK_INT(p.given[2], 2);
	CHECK_INT(p.given[3], 1);
	end();
}

/* A rule that was not taken is given again; the others are in force meanwhile. */
static void test_errors(void)
{
	weir_time next;

	CHECK_INT(try(STATIC), 0);
	p.refuses[1] = -EIO;
	p.refuses[2] = -EAGAIN;
	CHECK_INT(drive_step(d, 0, &next, &err), -EIO);
	CHECK_STR(err.text, "refused g/a");
	CHECK_INT(next, 100 * WEIR_MS);
	CHECK(most(3, WEIR_UNIT_REQUESTS, WEIR_OPS_READS) == 50);
	p.refuses[1] = 0;
	CHECK_INT(drive_step(d, next, &next, &err),
		0); /* a tenant that is not there yet is no error */
	CHECK(most(1, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) == 200);
	p.refuses[2] = 0;
	p.no_counts = -ENODEV;
	CHECK_INT(drive_step(d, next, &next, &err), -ENODEV);
	CHECK_STR(err.text, "no counters");
	CHECK_INT(p.given[2], 2);
	p.no_counts = 0;
	CHECK_INT(drive_step(d, next, &next, &err), 0);
	CHECK(most(2, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) == 100);
	CHECK_INT(p.given[0], 1);
	CHECK_INT(p.given[1], 2);
	CHECK_INT(p.given[2], 3);
	CHECK_INT(p.given[3], 1);
	end();
}

static void test_refused(void)
{
	weir_time next;

	CHECK_INT(try("resources: [{name: r}]\ntenants: [{name: a}]\n"), -EINVAL);
	CHECK_STR(err.text, "resource 'r' needs a controller that works alone");
	weir_policy_free(policy);
	CHECK_INT(try("resources: [{name: r, capacity: 1k iops, controller: adaptbf, adaptbf: "
		      "{tokens: hold}}]\n"
		      "tenants: [{name: a, min: 100 iops}]\n"),
		-ENOTSUP);
	CHECK_STR(err.text, "tenant 'a': played can limit requests, but not let some go first");
	weir_policy_free(policy);
	CHECK_INT(try("resources: [{name: r, capacity: 1k iops, controller: adaptbf}]\n"
		      "tenants: [{name: a}]\n"),
		0);
	p.counts[0].arrived = p.counts[0].queued = 100;
	CHECK_INT(drive_step(d, WEIR_SEC, &next, &err), -ENOTSUP);
	end();
}

/* The number of waiting requests reaches the controller if the driver knows it: AdapTBF gives the jobs that wait 1:3, and an idle one no
 * rule at all. */
static void test_adaptbf(void)
{
	struct arena memory = {0};
	struct facts facts;
	weir_time next = 0;

	CHECK_INT(try("resources: [{name: r, capacity: 1k iops, controller: adaptbf, adaptbf: "
		      "{tokens: hold}}]\n"
		      "tenants: [{name: a, weight: 1}, {name: b, weight: 3}, {name: idle, weight: "
		      "4}]\n"),
		0);
	for (weir_time now = 0; now < 3 * WEIR_SEC; now = next) {
		for (int i = 0; i < 2; i++) {
			p.counts[i].served += i ? 75 : 25;
			p.counts[i].arrived = p.counts[i].served + 50;
			p.counts[i].queued = 50;
		}
		CHECK_INT(drive_step(d, now, &next, &err), 0);
		CHECK(next > now && next <= now + 100 * WEIR_MS);
	}
	CHECK(fabs(most(0, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) - 250) <= 10);
	CHECK(fabs(most(1, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL) - 750) <= 10);
	CHECK(isinf(most(2, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL)));
	drive_look(d, &memory, &facts);
	CHECK(facts.kind && strcmp(facts.kind->name, "adaptbf") == 0);
	CHECK_INT(facts.tables[0].n, 2);
	arena_free(&memory);
	end();
}

int main(void)
{
	RUN(test_rules);
	RUN(test_errors);
	RUN(test_refused);
	RUN(test_adaptbf);
	return 0;
}
