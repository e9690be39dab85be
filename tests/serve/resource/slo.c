/* SPDX-License-Identifier: BSD-3-Clause */
/* slo: records of tenants with an slo, over changes of the policy, and warnings about long
 * waits. */
#include "serve/resource-rig.h"

struct taken {
	unsigned calls;
	uint64_t good, total;
	uint64_t waiting; /* beyond the bound */
	weir_time longest;
	int tenant;
};

static void collect_batch(
	void *arg, int tenant, const struct slo_batch *b, const struct slo_batch *waits)
{
	struct taken *t = arg;

	t->calls++;
	t->tenant = tenant;
	t->waiting += waits ? waits->total - waits->good : 0;
	t->longest = waits ? waits->max : 0;
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
	CHECK_INT(t.waiting, 1);           /* the oldest */
	CHECK(t.longest > 95 * WEIR_MS && t.longest < 100 * WEIR_MS);
	t = watch(&w);
	CHECK(t.total == 0 && t.waiting == 1); /* already read; but it still waits */
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

/* 20 requests at 4 a second: after 1.45 s 7 are done, 5 of them within 1 s, and 13 wait for longer,
 * at the gate or in the device. */
static void test_slo_waits(void)
{
	struct taken t;
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, slo: p50 < 1s, max: 4 iops, match: {export: a}}]",
		false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, 900 * WEIR_MS);
	t = watch(&w);
	CHECK_INT(t.good, 5);
	CHECK_INT(t.waiting, 0);
	run_world(&w, 550 * WEIR_MS);
	t = watch(&w);
	CHECK(t.total == 2 && t.good == 0);
	CHECK_INT(t.waiting, 13);
	CHECK_INT(t.longest, 1450 * WEIR_MS);
	w.fake->time = 2 * WEIR_SEC;
	resource_bypass(w.resource, true);
	run_world(&w, WEIR_SEC);
	CHECK_INT(watch(&w).waiting, 13); /* in the device */
	resource_bypass(w.resource, false);
	run_world(&w, 2 * WEIR_SEC);
	t = watch(&w);
	CHECK(t.total == 13 && t.good == 0 && t.waiting == 0);
	resource_leave(w.resource, &a.client);
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
	CHECK_INT(t.waiting, 0);
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
	CHECK_INT(t.waiting, 0); /* no request really waits */
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

#define LATE(timeout)                                                                              \
	"client_timeout: " timeout "\n" DISK                                                       \
	"tenants: [{name: a, max: 2 iops, match: {export: a}}, "                                   \
	"{name: z, max: 20 iops, match: {export: z}}]"

static bool is_late(const struct asker *a)
{
	return a->client.resource->counts[a->client.node].late;
}

/* Reported once at half of the time, and again only after it was better. */
static void test_late(void)
{
	struct asker a;
	struct world w;

	world_new(&w, LATE("4s"), false);
	join(&w, &a, "a", 0);
	CHECK(w.resource->late_at == WEIR_NEVER);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, 1999 * WEIR_MS);
	CHECK(!is_late(&a));
	run_world(&w, WEIR_MS);
	CHECK(is_late(&a));
	resource_bypass(w.resource, true);
	run_world(&w, WEIR_SEC);
	CHECK(!is_late(&a));
	CHECK(w.resource->late_at == WEIR_NEVER); /* no look while nothing waits */
	CHECK(w.resource->timer_at == WEIR_NEVER);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* To the hundredth, whatever came before and whenever the request came. */
static void test_late_any_time(void)
{
	struct asker a, z;
	struct world w;

	for (weir_time at = 0; at < 3 * WEIR_SEC; at += 130 * WEIR_MS) {
		world_new(&w, LATE("1s"), false);
		join(&w, &z, "z", 1); /* waits all the time, each time for a little */
		join(&w, &a, "a", 0);
		run_world(&w, at);
		for (unsigned i = 0; i < 20; i++)
			ask(&a, i);
		run_world(&w, 499 * WEIR_MS);
		CHECK(!is_late(&a));
		run_world(&w, 6 * WEIR_MS);
		CHECK(is_late(&a) && !is_late(&z));
		resource_leave(w.resource, &a.client);
		resource_leave(w.resource, &z.client);
		world_free(&w);
	}
}

/* A client that gave up: the next one of its tenant has its own line. */
static void test_late_again(void)
{
	struct asker a;
	struct world w;

	world_new(&w, LATE("4s"), false);
	for (unsigned again = 0; again < 2; again++) {
		join(&w, &a, "a", 0);
		CHECK(!is_late(&a));
		for (unsigned i = 0; i < 20; i++)
			ask(&a, i);
		run_world(&w, 2 * WEIR_SEC);
		CHECK(is_late(&a));
		resource_leave(w.resource, &a.client);
		run_world(&w, WEIR_SEC);
		CHECK_INT(a.done, 20);
	}
	world_free(&w);
}

/* Another client_timeout counts at once, for requests that wait already. */
static void test_late_swap(void)
{
	struct asker a;
	struct world w;

	world_new(&w, LATE("100s"), false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, 1500 * WEIR_MS);
	swap(&w, LATE("4s"));
	run_world(&w, 490 * WEIR_MS);
	CHECK(!is_late(&a));
	run_world(&w, 20 * WEIR_MS);
	CHECK(is_late(&a));
	/* Requests that move to another node have waited as long. */
	swap(&w, "client_timeout: 4s\n" DISK
		 "tenants: [{name: b, max: 2 iops, match: {export: a}}]");
	run_world(&w, 2 * WEIR_MS);
	CHECK(is_late(&a));
	swap(&w, LATE("none"));
	run_world(&w, WEIR_SEC);
	CHECK(!is_late(&a));
	swap(&w, LATE("4s"));
	run_world(&w, WEIR_MS);
	CHECK(is_late(&a));
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

int main(void)
{
	RUN(test_slo);
	RUN(test_slo_waits);
	RUN(test_slo_other_ways);
	RUN(test_late);
	RUN(test_late_any_time);
	RUN(test_late_again);
	RUN(test_late_swap);
	return 0;
}
