/* SPDX-License-Identifier: BSD-3-Clause */
/* slo: records of tenants with an slo, over changes of the policy, and warnings about long
 * waits. */
#include "serve/resource-rig.h"

struct taken {
	unsigned calls;
	uint64_t good, total;
	weir_time oldest_wait;
	int tenant;
};

static void collect_batch(void *arg, int tenant, const struct slo_batch *b, weir_time oldest_wait)
{
	struct taken *t = arg;

	t->calls++;
	t->tenant = tenant;
	t->oldest_wait = oldest_wait;
	t->good += b ? b->good : 0;
	t->total += b ? b->total : 0;
}

static struct taken watch(struct world *w)
{
	struct taken t = {0};

	resource_watch(w->resource, collect_batch, &t);
	return t;
}

static void swap(struct world *w, const char *text)
{
	struct weir_policy *next = parse(text);
	struct weir_err err;

	CHECK_INT(resource_swap(w->resource, next, &err), 0);
	weir_policy_free(w->policy);
	w->policy = next;
}

#define TWO(slo)                                                                                   \
	DISK "tenants: [{name: z, match: {export: z}}, {name: a, " slo                             \
	     "max: 100 iops, match: {export: a}}]"

/* Each request of a tenant with an slo is counted once, and judged by its total latency. */
static void test_slo(void)
{
	struct asker a, z;
	struct taken t;
	struct world w;

	world_new(&w, TWO("slo: p99 < 95ms, "), false);
	join(&w, &a, "a", 10);
	join(&w, &z, "z", 10);
	run_world(&w, 2 * WEIR_SEC);
	t = watch(&w);
	CHECK_INT(t.calls, 1);
	CHECK_INT(t.tenant, 1);
	CHECK_INT(t.total, a.done);
	CHECK(t.good > 0 && t.good <= 15); /* at first; then ten at 100 a second wait 100 ms */
	CHECK_NEAR((double)t.oldest_wait, 90e6, 0.12);
	t = watch(&w);
	CHECK_INT(t.total, 0); /* already read; but requests wait */
	CHECK_INT(t.calls, 1);
	run_world(&w, WEIR_SEC);
	/* Counts that were not read yet move with their tenant, if they were judged by the same
	 * bound. */
	swap(&w, DISK "tenants: [{name: a, slo: p50 < 95ms, max: 100 iops, match: {export: a}}, "
		      "{name: z, match: {export: z}}]");
	t = watch(&w);
	CHECK_INT(t.tenant, 0);
	CHECK_NEAR((double)t.total, 100, 0.03);
	run_world(&w, WEIR_SEC);
	swap(&w, TWO("slo: p99 < 1s, "));
	CHECK_INT(watch(&w).total, 0);
	run_world(&w, WEIR_SEC);
	t = watch(&w);
	CHECK(t.total > 90 && t.good == t.total);
	swap(&w, TWO(""));
	run_world(&w, WEIR_SEC);
	CHECK_INT(watch(&w).calls, 0);
	a.again = z.again = false;
	run_world(&w, WEIR_SEC);
	CHECK(!resource_watch(w.resource, collect_batch, &t)); /* nothing to read later */
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &z.client);
	world_free(&w);
}

/* Bypassed requests count, too; in shadow mode the shadow's latency counts. */
static void test_slo_other_ways(void)
{
	struct taken t;
	struct asker a;
	struct world w;

	world_new(&w, TWO("slo: p99 < 95ms, "), false);
	join(&w, &a, "a", 10);
	resource_bypass(w.resource, true);
	run_world(&w, WEIR_SEC);
	t = watch(&w);
	CHECK_INT(t.total, a.done);
	CHECK_INT(t.good, a.done);
	CHECK_INT(t.oldest_wait, 0);
	a.again = false;
	run_world(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
	world_new(&w, "enforce: false\n" TWO("slo: p99 < 95ms, "), false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 40; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC);
	t = watch(&w);
	CHECK_INT(t.total, 40);
	CHECK(t.good >= 8 && t.good <= 13);
	CHECK_INT(t.oldest_wait, 0); /* no request really waits */
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Reported once at half of the time, and again only after it was better. */
static void test_late(void)
{
	struct asker a;
	struct world w;

	world_new(&w,
		"client_timeout: 4s\n" DISK "tenants: [{name: a, max: 2 iops, match: {export: a}}]",
		false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, 1500 * WEIR_MS);
	watch(&w);
	CHECK(!w.resource->late && !w.resource->counts[a.client.node].late);
	run_world(&w, WEIR_SEC);
	watch(&w);
	CHECK(w.resource->late && w.resource->counts[a.client.node].late);
	resource_bypass(w.resource, true);
	run_world(&w, WEIR_SEC);
	watch(&w);
	CHECK(!w.resource->late && !w.resource->counts[a.client.node].late);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

int main(void)
{
	RUN(test_slo);
	RUN(test_slo_other_ways);
	RUN(test_late);
	return 0;
}
