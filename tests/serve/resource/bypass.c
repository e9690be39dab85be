/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass: requests skip the gate, in order, and are counted; then limits hold again. (Random
 * toggling: resource-policy.) */
#include "serve/snapshot/version.h"
#include "serve/snapshot/snapshot.h"
#include "serve/resource-rig.h"

static const struct snapshot_tenant *snapshot_of(struct world *w, struct snapshot *s)
{
	static struct gateway_version v;
	static struct weir_bounds bounds[4];
	static double share[4];
	size_t at = 0;

	memset(s, 0, sizeof(*s));
	v.policy = (struct weir_policy *)(uintptr_t)w->policy;
	v.bounds = bounds;
	v.of_all = share;
	atomic_store(&v.references, 2); /* never the last */
	s->of = &v;
	s->n_tenants = w->policy->n_tenants;
	CHECK(s->n_tenants <= 4);
	s->tenants = snapshot_take(s, s->n_tenants, sizeof(*s->tenants));
	s->n_resources = 1;
	s->resources = snapshot_take(s, 1, sizeof(*s->resources));
	s->resources[0].name = "disk";
	while (resource_snapshot(w->resource, s, &at))
		;
	CHECK_STR(s->tenants[0]->path, "a");
	return s->tenants[0];
}

static void look_end(struct snapshot *s)
{
	struct snapshot *heap = malloc(sizeof(*heap));

	*heap = *s;
	snapshot_free(heap);
}

/* Waiting requests pass at once and in order, and so do new ones; then limits hold again. */
static void test_bypass(void)
{
	const struct snapshot_tenant *t;
	struct snapshot s;
	struct asker a;
	struct world w;
	uint32_t waits;

	world_new(&w, DISK "tenants: [{name: a, max: 10 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 40; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC - WEIR_MS / 2);
	waits = w.resource->queued;
	CHECK(waits >= 25 && w.fake->n == 0 && a.done == 40 - waits);
	t = snapshot_of(&w, &s);
	CHECK_NEAR((double)t->oldest_wait, 1e9 - 5e5, 0.001);
	CHECK(!s.resources[0].bypassed);
	look_end(&s);
	CHECK_INT(resource_bypass(w.resource, true), waits);
	CHECK_INT(resource_bypass(w.resource, true), 0); /* it is on */
	CHECK_INT(w.resource->queued, 0);
	turn(&w);
	CHECK_INT(w.fake->n, waits);
	for (struct back_io *io = w.fake->first, *next; io && (next = io->next); io = next)
		CHECK(io->offset < next->offset);
	ask(&a, 0);
	turn(&w);
	CHECK_INT(w.fake->n, waits + 1);
	t = snapshot_of(&w, &s);
	CHECK(s.resources[0].bypassed);
	CHECK_INT(t->in_flight, waits + 1);
	CHECK_INT(t->oldest_wait, 0);
	look_end(&s);
	run_world(&w, 10 * WEIR_MS);
	CHECK_INT(a.done, 41);
	t = snapshot_of(&w, &s);
	CHECK_INT(t->served, 41);
	CHECK_INT(t->dispatched, 41);
	CHECK_INT(t->bytes, 41 * 4096);
	CHECK_INT(t->total->count, 41);
	CHECK_NEAR((double)t->total->max, 1e9,
		0.01); /* the waiting requests count from their arrival */
	CHECK_INT(t->in_flight, 0);
	look_end(&s);
	CHECK_INT(resource_bypass(w.resource, false), 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC);
	CHECK(a.done >= 41 + 9 && a.done <= 41 + 12);
	resource_leave(w.resource, &a.client);
	w.now += WEIR_SEC;
	turn(&w);
	world_free(&w);
}

/* A group waits for the cause of its oldest request. */
static void test_cause_of_a_group(void)
{
	const struct snapshot_tenant *t;
	struct snapshot s;
	struct asker a;
	struct world w;

	world_new(&w,
		DISK
		"tenants: [{name: a, children: [{name: b, max: 10 iops, match: {export: a}}]}]",
		false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run_world(&w, WEIR_SEC / 2);
	t = snapshot_of(&w, &s);
	CHECK(t->queued > 0 && t->oldest_wait == s.tenants[1]->oldest_wait);
	CHECK_INT(t->cause, WEIR_WAIT_MAX);
	CHECK_STR(t->held_by, "a/b");
	look_end(&s);
	resource_leave(w.resource, &a.client);
	w.now += WEIR_SEC;
	turn(&w);
	world_free(&w);
}

/* The bypass survives a policy change; in shadow mode there is nothing to release. */
static void test_bypass_and_policy(void)
{
	struct weir_policy *next;
	struct weir_err err;
	struct asker a;
	struct world w;

	world_new(&w, SHADOW "tenants: [{name: a, max: 10 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	turn(&w);
	CHECK_INT(w.fake->n, 20);
	CHECK_INT(resource_bypass(w.resource, true), 0);
	CHECK(stats(&w, "a").queued >= 15);
	run_world(&w, 2 * WEIR_MS);
	next = parse(DISK "tenants: [{name: b, max: 10 iops, match: {export: a}}]");
	CHECK_INT(resource_swap(w.resource, next, &err), 0);
	weir_policy_free(w.policy);
	w.policy = next;
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	turn(&w);
	CHECK_INT(w.fake->n, 20);
	run_world(&w, 2 * WEIR_MS);
	resource_bypass(w.resource, false);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	turn(&w);
	CHECK(w.resource->queued > 15);
	resource_leave(w.resource, &a.client);
	w.now += WEIR_SEC;
	turn(&w);
	CHECK_INT(a.done, 60);
	world_free(&w);
}

int main(void)
{
	RUN(test_bypass);
	RUN(test_cause_of_a_group);
	RUN(test_bypass_and_policy);
	return 0;
}
