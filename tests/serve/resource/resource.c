/* SPDX-License-Identifier: BSD-3-Clause */
/* resource: the path of a request in virtual time, over a back end with a given service time. */
#include "serve/resource/tap.h"
#include "serve/resource-rig.h"

static void test_weights(void)
{
	struct front_held held;
	struct asker a, b;
	struct world w;

	world_new(&w,
		DISK "tenants: [{name: a, weight: 1, match: {export: a}}, {name: b, weight: 3, "
		     "match: {export: b}}]",
		false);
	join(&w, &a, "a", 32);
	join(&w, &b, "b", 32);
	run_world(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.done + b.done, 40000, 0.001); /* four at once, a millisecond each */
	CHECK_NEAR(b.done, 3.0 * a.done, 0.01);
	CHECK_INT(w.resource->inside, 4);
	CHECK_INT(w.resource->queued, 60);
	resource_held(w.resource, &a.client, &held); /* waits for its turn, without a limit */
	CHECK(held.ns == 0 && held.served == a.done);
	CHECK_INT(a.client.in_flight, 32);
	CHECK_INT(a.client.requests, a.done + 32);
	CHECK_INT(a.client.bytes, 4096 * a.client.requests);
	a.again = b.again = false;
	run_world(&w, WEIR_SEC);
	CHECK(!resource_busy(w.resource));
	CHECK_INT(w.resource->submitted, w.resource->served);
	CHECK_INT(w.resource->counts[a.client.node].reads, a.done);
	resource_drain(w.resource);
	/* Two clients joined, and all requests were answered. */
	CHECK_INT(resource_activity(w.resource), w.resource->submitted + w.resource->served + 2);
	CHECK_INT(w.resource->totals[a.client.node]->count, a.done);
	/* 32 of its own before it, of a quarter of 4,000 a second */
	CHECK_NEAR(weir_hist_mean(w.resource->totals[a.client.node]), 32e6, 0.02);
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

/* Let the clients ask again for what was answered, then run a turn. */
static void round_of(struct world *w, struct asker **all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < ASKS; k++)
			if (!all[i]->asks[k].user)
				ask(all[i], k);
	resource_turn(w->resource, w->now);
	w->now += 10 * WEIR_US;
}

/* A back end that does requests at once never fills a window: the weights act on the time of the thread, however many
 * requests the clients have outstanding. One client has nothing to share, and all that it asks for passes in a turn. */
static void test_at_once(void)
{
	struct asker a, b, *all[] = {&a, &b};
	struct world w;

	world_new(&w,
		"resources: [{name: disk, depth: 128}]\n"
		"tenants: [{name: a, weight: 20, match: {export: a}}, {name: b, weight: 1, match: "
		"{export: b}}]",
		false);
	w.fake->at_once = true;
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 10; i++)
		round_of(&w, all, 1);
	CHECK_INT(a.done, 10 * ASKS);
	CHECK_INT(w.resource->waited, 0);
	join(&w, &b, "b", 0);
	a.done = 0;
	for (unsigned i = 0; i < 2000; i++)
		round_of(&w, all, 2);
	CHECK_NEAR(a.done, 20.0 * b.done, 0.01);
	CHECK_NEAR(a.done + b.done, 2000 * 32, 0.01);
	CHECK(w.resource->waited > 0.9 * (a.done + b.done));
	CHECK_NEAR(w.resource->counts[b.client.node].waited, b.done, 0.01);
	run_world(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

static void test_max(void)
{
	struct front_held held;
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, max: 500 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 32);
	run_world(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.done, 5000, 0.01);
	CHECK_INT(stats(&w, "a").cause, WEIR_WAIT_MAX);
	resource_held(w.resource, &a.client, &held); /* 32 at 500 a second, of which 1 ms inside */
	CHECK_NEAR(held.ns / (double)held.served, 63e6, 0.01);
	a.again = false;
	run_world(&w, WEIR_SEC);
	CHECK(!resource_busy(w.resource));
	CHECK_INT(w.resource->timer_at, WEIR_NEVER);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Larger requests count as several, and a flush as configured. */
static void test_costs(void)
{
	struct asker a;
	struct world w;

	world_new(&w,
		"resources: [{name: disk, io_unit: 16 KiB, flush_cost: 7, trim_cost: 3}]\n"
		"tenants: [{name: a, match: {export: a}}]",
		false);
	join(&w, &a, "a", 0);
	a.length = 65536;
	ask(&a, 0);
	CHECK_INT(a.asks[0].gate.requests, 4);
	CHECK_INT(a.asks[0].gate.bytes, 65536);
	a.op = BACK_FLUSH;
	a.length = 0;
	ask(&a, 1);
	CHECK_INT(a.asks[1].gate.requests, 7);
	a.op = BACK_TRIM;
	a.length = 1u << 30;
	ask(&a, 2);
	CHECK_INT(a.asks[2].gate.requests, 3);
	CHECK_INT(a.asks[2].gate.bytes, 0);
	a.op = BACK_STATUS;
	ask(&a, 3);
	CHECK_INT(a.asks[3].gate.requests, 1);
	CHECK_INT(a.asks[3].gate.bytes, 0);
	w.fake->error = -EIO;
	run_world(&w, WEIR_SEC);
	CHECK_INT(a.done, 4);
	CHECK_INT(a.errors, 4);
	CHECK_INT(w.resource->counts[a.client.node].errors, 4);
	CHECK_INT(w.resource->counts[a.client.node].others, 3);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Waiting requests of a client that leaves are dropped; those inside complete later. */
static void test_leave(void)
{
	struct asker a, b;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, match: {export: \"*\"}}]", false);
	join(&w, &a, "a", 0);
	join(&w, &b, "b", 0);
	for (unsigned i = 0; i < 20; i++) {
		ask(&a, i);
		ask(&b, i);
	}
	turn(&w);
	ask(&a, 20); /* has only arrived */
	CHECK_INT(w.resource->inside, 4);
	resource_leave(w.resource, &a.client);
	CHECK_INT(a.cancelled, 19);
	CHECK_INT(a.client.in_flight, 2);
	CHECK_INT(w.resource->queued, 18);
	run_world(&w, WEIR_SEC);
	CHECK_INT(a.done, 21);
	CHECK_INT(a.errors, 19);
	CHECK_INT(a.client.in_flight, 0);
	CHECK_INT(b.done, 20);
	CHECK_INT(b.errors, 0);
	CHECK(!resource_busy(w.resource));
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

static void test_bare(void)
{
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, max: 1 iops, match: {export: a}}]", true);
	join(&w, &a, "a", 32);
	turn(&w);
	CHECK_INT(w.fake->n, 32);
	run_world(&w, WEIR_SEC);
	CHECK_INT(a.done, 32000);
	a.again = false;
	run_world(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

static int refusals;
static void refused(struct client *c, const char *why)
{
	(void)why;
	refusals++;
}

/* A client that joined while the policy changed gets its tenant of now. */
static void test_join_matches(void)
{
	struct client c = {.export_ = "b", .tenant = 0}, d = {.export_ = "z", .refused = refused};
	struct world w;

	world_new(&w,
		DISK "tenants: [{name: a, match: {export: a}}, {name: b, match: {export: b}}]",
		false);
	resource_join(w.resource, &c);
	CHECK_INT(c.tenant, 1);
	CHECK_INT(c.node, w.resource->nodes[1]);
	resource_join(w.resource, &d);
	CHECK_INT(refusals, 1);
	CHECK_INT(w.resource->n_clients, 2);
	resource_leave(w.resource, &c);
	resource_leave(w.resource, &d);
	CHECK_INT(w.resource->n_clients, 0);
	world_free(&w);
}

/* ---- shadow mode */

/* 10 arrive every 10 ms for a second, 1,000 a second, each takes 1 ms; max 100. The loop is
 * open, but no reply is late: this looks like 10 in a closed loop that think for 9 ms. */
static void test_shadow(void)
{
	struct asker a;
	struct world w;
	struct weir_gate_stats s;
	struct shadow_estimate e = {.closed = 0};

	world_new(&w, SHADOW "tenants: [{name: a, max: 100 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 10; k++)
			ask(&a, k);
		turn(&w);
		CHECK_INT(w.fake->n, 10); /* at once */
		run_world(&w, 10 * WEIR_MS);
		CHECK_INT(w.fake->n, 0);
	}
	CHECK_INT(a.done, 2000);
	CHECK_INT(a.errors, 0);
	s = stats(&w, "a");
	CHECK_NEAR(s.served, 201, 0.03); /* and one at the start */
	CHECK(s.queued > 0 && s.queued <= 1024);
	CHECK_INT(s.cause, WEIR_WAIT_MAX);
	CHECK(!resource_busy(w.resource)); /* no request really waits */
	resource_drain(w.resource);
	CHECK_NEAR(
		weir_hist_mean(weir_gate_hist_device(w.resource->gate, a.client.node)), 1e6, 0.1);
	CHECK_INT(w.resource->totals[a.client.node]->count, s.served);
	resource_shadow_estimate(w.resource, &a.client, &s, &e);
	CHECK(e.low > 0.8 && e.low < 1 && e.high > 1 && e.high < 1.25); /* its max is certain */
	CHECK_INT(e.closed + e.open, 1);
	resource_leave(w.resource, &a.client);
	run_world(&w, 20 * WEIR_SEC); /* the waiting shadows are over, and no new ones come */
	s = stats(&w, "a");
	CHECK_INT(s.queued + s.in_flight, 0);
	CHECK(!resource_shadow_busy(w.resource));
	world_free(&w);
}

/* A window that would be full: requests wait for the device. */
static void test_shadow_window(void)
{
	struct asker a;
	struct world w;
	struct weir_gate_stats s;

	world_new(&w, SHADOW "tenants: [{name: a, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	ask(&a, 0); /* the device's time is known then */
	run_world(&w, 2 * WEIR_MS);
	for (unsigned k = 0; k < 12; k++)
		ask(&a, k);
	turn(&w);
	CHECK_INT(w.fake->n, 12);
	s = stats(&w, "a");
	CHECK_INT(s.in_flight, 4);
	CHECK_INT(s.queued, 8);
	run_world(&w, WEIR_MS / 2);
	CHECK_INT(stats(&w, "a").in_flight, 4);
	run_world(&w, 100 * WEIR_MS);
	CHECK_INT(a.done, 13);
	CHECK_INT(stats(&w, "a").served, 13);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Off: no shadow is left in the gate, in any state; and the requests complete. */
static void test_shadow_off(void)
{
	struct asker a;
	struct world w;
	struct weir_gate_totals t;
	struct weir_policy *enforced;
	struct weir_err err;

	world_new(&w, SHADOW "tenants: [{name: a, max: 100 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned k = 0; k < 12; k++)
		ask(&a, k);
	turn(&w);
	enforced = parse(DISK "tenants: [{name: b, max: 10 iops, match: {export: a}}]");
	CHECK_INT(resource_swap(w.resource, enforced, &err), 0);
	weir_policy_free(w.policy);
	w.policy = enforced;
	weir_gate_get_totals(w.resource->gate, w.now, &t);
	CHECK_INT(t.queued + t.in_flight, 0);
	run_world(&w, WEIR_MS);
	CHECK_INT(a.done, 12);
	for (unsigned k = 0; k < 12; k++)
		ask(&a, k);
	run_world(&w, WEIR_MS);
	CHECK(w.resource->queued > 6); /* now it is enforced */
	/* And back: waiting requests pass at once. */
	enforced = parse(SHADOW "tenants: [{name: b, max: 10 iops, match: {export: a}}]");
	CHECK_INT(resource_swap(w.resource, enforced, &err), 0);
	weir_policy_free(w.policy);
	w.policy = enforced;
	run_world(&w, 2 * WEIR_MS);
	CHECK_INT(a.done, 24);
	CHECK(!resource_busy(w.resource));
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* One tenant's shadows do not use up all the room. */
static void test_shadow_bound(void)
{
	struct asker a, b;
	struct world w;
	struct resource_count *of_a, *of_b;

	world_new(&w,
		SHADOW "tenants: [{name: a, max: 1 iops, match: {export: a}}, "
		       "{name: b, match: {export: b}}]",
		false);
	w.fake->time = 0;
	join(&w, &a, "a", 0);
	join(&w, &b, "b", 0);
	for (unsigned i = 0; i < 65536 + 1000; i++) {
		ask(&a, i % ASKS);
		turn(&w);
		turn(&w);
	}
	CHECK_INT(a.done, 65536 + 1000);
	of_a = &w.resource->counts[a.client.node];
	of_b = &w.resource->counts[b.client.node];
	CHECK(of_a->shadows[0] <= 1024);
	CHECK(of_a->skipped > 60000);
	for (unsigned i = 0; i < 1000; i++) {
		ask(&b, i % ASKS);
		turn(&w);
		w.now += 10 * WEIR_US; /* a shadow takes at least 1 µs */
		turn(&w);
	}
	CHECK_INT(of_b->skipped, 0);
	w.now += 10 * WEIR_US;
	turn(&w);
	CHECK_INT(stats(&w, "b").served, 1000);
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

/* ---- capacity, tap */

static void test_capacity(void)
{
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, match: {export: a}}]", false);
	join(&w, &a, "a", 32);
	run_world(&w, 3 * WEIR_SEC);
	CHECK(capacity_known(&w.resource->capacity));
	CHECK_NEAR(w.resource->capacity.rate[0], 4000, 0.01);
	CHECK_NEAR(w.resource->capacity.rate[1], 4000.0 * 4096, 0.01);
	a.again = false;
	run_world(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

static void test_tap(void)
{
	struct tap_entry seen[8];
	struct asker a;
	struct world w;
	struct tap *t;

	world_new(&w, DISK "tenants: [{name: z}, {name: a, match: {export: a}}]", false);
	CHECK_INT(tap_new(16, &t), 0);
	join(&w, &a, "a", 0);
	resource_tap(w.resource, t);
	ask(&a, 3);
	run_world(&w, WEIR_SEC);
	resource_tap(w.resource, NULL);
	ask(&a, 4);
	run_world(&w, WEIR_SEC);
	CHECK_INT(tap_take(t, seen, 8), 1);
	CHECK_INT(seen[0].at, WEIR_SEC);
	CHECK_INT(seen[0].offset, 3 << 20);
	CHECK_INT(seen[0].bytes, 4096);
	CHECK_INT(seen[0].tenant, 1);
	CHECK_INT(seen[0].op, WEIR_READ);
	tap_free(t);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* cost: time: requests that take ten times as long count ten times. */
static void test_time(void)
{
	struct asker a;
	struct world w;

	world_new(&w,
		"resources: [{name: disk, depth: 1, cost: time}]\n"
		"tenants: [{name: a, match: {export: a}}]",
		false);
	join(&w, &a, "a", 1);
	run_world(&w, WEIR_SEC);
	CHECK_NEAR(a.asks[0].gate.time, 1e6, 0.01);
	w.fake->time = 10 * WEIR_MS;
	run_world(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.asks[0].gate.time, 10e6, 0.01);
	a.again = false;
	run_world(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

int main(void)
{
	RUN(test_weights);
	RUN(test_at_once);
	RUN(test_max);
	RUN(test_costs);
	RUN(test_leave);
	RUN(test_bare);
	RUN(test_join_matches);
	RUN(test_shadow);
	RUN(test_shadow_window);
	RUN(test_shadow_off);
	RUN(test_shadow_bound);
	RUN(test_capacity);
	RUN(test_tap);
	RUN(test_time);
	return 0;
}
