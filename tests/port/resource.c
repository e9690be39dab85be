/* SPDX-License-Identifier: BSD-3-Clause */
/* resource: the way of a request in made-up time, over a back end that takes as long as it is told. */
#include "port/resource-impl.h"
#include "port/snapshot.h"
#include "port/tap.h"
#include "policy-parse.h"
#include <errno.h>

/* ---- a back end: every request takes `time` */

struct fake {
	struct back back;
	weir_time now, time;
	struct back_io *first, **end; /* in order of their ends; scratch[0]: the end */
	uint32_t n;
	int error;
};

static void fake_submit(struct back *b, struct back_io *ios)
{
	struct fake *f = (struct fake *)(void *)b;

	for (struct back_io *io = ios, *next; io; io = next) {
		next = io->next;
		io->next = NULL;
		io->scratch[0] = (uint64_t)(f->now + f->time);
		*f->end = io;
		f->end = &io->next;
		f->n++;
	}
}

static void fake_free(struct back *b)
{
	free(b);
}

static const struct back_ops fake_ops = {.name = "fake", .submit = fake_submit, .free = fake_free};

static weir_time fake_next(const struct fake *f)
{
	return f->first ? (weir_time)f->first->scratch[0] : WEIR_NEVER;
}

static void fake_step(struct fake *f, weir_time now)
{
	f->now = now;
	while (f->first && fake_next(f) <= now) {
		struct back_io *io = f->first;

		f->first = io->next;
		if (!f->first)
			f->end = &f->first;
		f->n--;
		io->error = f->error;
		f->back.done(f->back.done_arg, io);
	}
}

/* ---- a resource and clients that ask again as soon as they are answered */

#define ASKS 64
struct asker {
	struct client client;
	struct request asks[ASKS];
	uint32_t length;
	uint8_t op;
	uint64_t done, errors, cancelled;
	bool again; /* closed loop */
};

struct world {
	struct fake *fake;
	struct resource *resource;
	struct weir_policy *policy;
	weir_time now;
};

static void answered(struct request *q)
{
	struct asker *a = q->owner;

	a->done++;
	a->errors += q->io.error != 0;
	a->cancelled += q->io.error == -ECANCELED;
	if (a->again)
		resource_submit(a->client.resource, q);
}

static void ask(struct asker *a, unsigned i)
{
	a->asks[i].client = &a->client;
	a->asks[i].done = answered;
	a->asks[i].owner = a;
	a->asks[i].io =
		(struct back_io){.op = a->op, .offset = (uint64_t)i << 20, .length = a->length};
	resource_submit(a->client.resource, &a->asks[i]);
}

static void join(struct world *w, struct asker *a, const char *export_, unsigned depth)
{
	memset(a, 0, sizeof(*a));
	strcpy(a->client.export_, export_);
	a->length = 4096;
	a->again = depth > 0;
	resource_join(w->resource, &a->client);
	for (unsigned i = 0; i < depth; i++)
		ask(a, i);
}

static void world_new(struct world *w, const char *text, bool bare)
{
	struct resource_config config = {.bare = bare};
	struct weir_err err;

	w->fake = calloc(1, sizeof(*w->fake));
	w->fake->back.ops = &fake_ops;
	w->fake->back.info = (struct back_info){.size = UINT64_C(1) << 40, .depth = 16};
	w->fake->time = WEIR_MS;
	w->fake->end = &w->fake->first;
	w->policy = parse(text);
	w->now = WEIR_SEC;
	config.spec = &w->policy->resources[0];
	config.back = &w->fake->back;
	CHECK_INT(resource_new(&config, &w->resource), 0);
	if (resource_swap(w->resource, w->policy, &err) < 0)
		FAIL("%s", err.text);
}

static void world_free(struct world *w)
{
	resource_free(w->resource);
	weir_policy_free(w->policy);
}

static void turn(struct world *w)
{
	fake_step(w->fake, w->now);
	for (int i = 0; resource_turn(w->resource, w->now); i++)
		CHECK(i < 10000);
}

/* From event to event: the back end's and the resource's timer. */
static void run(struct world *w, weir_time span)
{
	weir_time end = w->now + span;

	for (;;) {
		weir_time next = fake_next(w->fake);

		turn(w);
		next = fake_next(w->fake);
		if (w->resource->timer_at < next)
			next = w->resource->timer_at;
		if (next > end)
			break;
		CHECK(next > w->now);
		w->now = next;
	}
	w->now = end;
	turn(w);
}

static struct weir_gate_stats stats(struct world *w, const char *path)
{
	struct weir_gate_stats s;
	int i = weir_policy_find(w->policy, path);

	CHECK(i >= 0);
	CHECK_INT(
		weir_gate_stats(w->resource->gate, w->resource->now, w->resource->nodes[i], &s), 0);
	return s;
}

#define DISK "resources: [{name: disk, depth: 4}]\n"

static void test_weights(void)
{
	struct resource_held held;
	struct asker a, b;
	struct world w;

	world_new(&w,
		DISK "tenants: [{name: a, weight: 1, match: {export: a}}, {name: b, weight: 3, "
		     "match: {export: b}}]",
		false);
	join(&w, &a, "a", 32);
	join(&w, &b, "b", 32);
	run(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.done + b.done, 40000, 0.001); /* four at once, a millisecond each */
	CHECK_NEAR(b.done, 3.0 * a.done, 0.01);
	CHECK_INT(w.resource->inside, 4);
	CHECK_INT(w.resource->queued, 60);
	resource_held(
		w.resource, &a.client, &held); /* it waits for its turn, and no limit holds it */
	CHECK(held.ns == 0 && held.served == a.done);
	CHECK_INT(a.client.in_flight, 32);
	CHECK_INT(a.client.requests, a.done + 32);
	CHECK_INT(a.client.bytes, 4096 * a.client.requests);
	a.again = b.again = false;
	run(&w, WEIR_SEC);
	CHECK(!resource_busy(w.resource));
	CHECK_INT(w.resource->submitted, w.resource->served);
	CHECK_INT(w.resource->counts[a.client.node].reads, a.done);
	resource_drain(w.resource);
	CHECK_INT(resource_activity(w.resource), w.resource->submitted + 2); /* two came */
	CHECK_INT(w.resource->totals[a.client.node]->count, a.done);
	/* 32 of its own before it, of a quarter of 4,000 a second */
	CHECK_NEAR(weir_hist_mean(w.resource->totals[a.client.node]), 32e6, 0.02);
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

static void test_max(void)
{
	struct resource_held held;
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, max: 500 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 32);
	run(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.done, 5000, 0.01);
	CHECK_INT(stats(&w, "a").cause, WEIR_WAIT_MAX);
	resource_held(w.resource, &a.client, &held); /* 32 at 500 a second, of which 1 ms inside */
	CHECK_NEAR(held.ns / (double)held.served, 63e6, 0.01);
	a.again = false;
	run(&w, WEIR_SEC);
	CHECK(!resource_busy(w.resource));
	CHECK_INT(w.resource->timer_at, WEIR_NEVER);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Larger requests count as several, and a flush as what it is said to cost. */
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
	run(&w, WEIR_SEC);
	CHECK_INT(a.done, 4);
	CHECK_INT(a.errors, 4);
	CHECK_INT(w.resource->counts[a.client.node].errors, 4);
	CHECK_INT(w.resource->counts[a.client.node].others, 3);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Who leaves takes what waits; what is inside comes back later. */
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
	ask(&a, 20); /* this one only arrived */
	CHECK_INT(w.resource->inside, 4);
	resource_leave(w.resource, &a.client);
	CHECK_INT(a.cancelled, 19);
	CHECK_INT(a.client.in_flight, 2);
	CHECK_INT(w.resource->queued, 18);
	run(&w, WEIR_SEC);
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
	run(&w, WEIR_SEC);
	CHECK_INT(a.done, 32000);
	a.again = false;
	run(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

static int refusals;
static void refused(struct client *c)
{
	refusals++;
}

/* A client that came in while the policy changed is whose it is now. */
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

#define SHADOW "enforce: false\n" DISK

/* 10 arrive every 10 ms for a second, 1,000 a second, each takes 1 ms; max 100. */
static void test_shadow(void)
{
	struct asker a;
	struct world w;
	struct weir_gate_stats s;
	const struct weir_hist *wait;

	world_new(&w, SHADOW "tenants: [{name: a, max: 100 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 10; k++)
			ask(&a, k);
		turn(&w);
		CHECK_INT(w.fake->n, 10); /* at once */
		run(&w, 10 * WEIR_MS);
		CHECK_INT(w.fake->n, 0);
	}
	CHECK_INT(a.done, 1000);
	CHECK_INT(a.errors, 0);
	s = stats(&w, "a");
	CHECK_INT(s.arrivals, 1000);
	CHECK_NEAR(s.served, 101, 0.03); /* one at the start besides */
	CHECK_INT(s.queued + s.in_flight + s.served, 1000);
	CHECK_INT(s.cause, WEIR_WAIT_MAX);
	CHECK(!resource_busy(w.resource)); /* nobody really waits */
	run(&w, 10 * WEIR_SEC);
	s = stats(&w, "a");
	CHECK_INT(s.served, 1000);
	resource_drain(w.resource);
	wait = weir_gate_hist_wait(w.resource->gate, a.client.node);
	CHECK_NEAR(weir_hist_percentile(wait, 50), 4.5e9, 0.03); /* (10 − 1)·½ s */
	CHECK_NEAR(
		weir_hist_mean(weir_gate_hist_device(w.resource->gate, a.client.node)), 1e6, 0.01);
	CHECK_INT(w.resource->totals[a.client.node]->count, 1000);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* A window that would be full: the device's time holds it. */
static void test_shadow_window(void)
{
	struct asker a;
	struct world w;
	struct weir_gate_stats s;

	world_new(&w, SHADOW "tenants: [{name: a, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	for (unsigned k = 0; k < 12; k++)
		ask(&a, k);
	turn(&w);
	CHECK_INT(w.fake->n, 12);
	s = stats(&w, "a");
	CHECK_INT(s.in_flight, 4);
	CHECK_INT(s.queued, 8);
	run(&w, WEIR_MS); /* all are back; four shadows are done and four more begin */
	CHECK_INT(a.done, 12);
	s = stats(&w, "a");
	CHECK_INT(s.served, 4);
	CHECK_INT(s.in_flight, 4);
	run(&w, 2 * WEIR_MS);
	CHECK_INT(stats(&w, "a").served, 12);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* Off: no shadow is left in the gate, whatever it was doing; and the requests come back. */
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
	weir_gate_totals(w.resource->gate, w.now, &t);
	CHECK_INT(t.queued + t.in_flight, 0);
	run(&w, WEIR_MS);
	CHECK_INT(a.done, 12);
	for (unsigned k = 0; k < 12; k++)
		ask(&a, k);
	run(&w, WEIR_MS);
	CHECK(w.resource->queued > 6); /* now it is enforced */
	/* And back: those that wait go straight through. */
	enforced = parse(SHADOW "tenants: [{name: b, max: 10 iops, match: {export: a}}]");
	CHECK_INT(resource_swap(w.resource, enforced, &err), 0);
	weir_policy_free(w.policy);
	w.policy = enforced;
	run(&w, 2 * WEIR_MS);
	CHECK_INT(a.done, 24);
	CHECK(!resource_busy(w.resource));
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* One tenant's shadows do not take all the room. */
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
	CHECK_INT(of_a->shadows, 32768);
	CHECK(of_a->unrecorded > 30000);
	for (unsigned i = 0; i < 1000; i++) {
		ask(&b, i % ASKS);
		turn(&w);
		turn(&w);
	}
	CHECK_INT(of_b->unrecorded, 0);
	CHECK_INT(stats(&w, "b").served, 1000);
	resource_leave(w.resource, &a.client);
	resource_leave(w.resource, &b.client);
	world_free(&w);
}

/* ---- past the gate */

static const struct snapshot_tenant *look(struct world *w, struct snapshot *s)
{
	memset(s, 0, sizeof(*s));
	s->n_tenants = w->policy->n_tenants;
	s->tenants = snapshot_take(s, s->n_tenants, sizeof(*s->tenants));
	s->n_resources = 1;
	s->resources = snapshot_take(s, 1, sizeof(*s->resources));
	s->tenants[0].path = "a";
	s->resources[0].name = "disk";
	resource_snapshot(w->resource, s);
	return &s->tenants[0];
}

static void look_end(struct snapshot *s)
{
	struct snapshot *heap = malloc(sizeof(*heap));

	*heap = *s;
	snapshot_free(heap);
}

/* What waits goes at once and in order, as does what comes later; then limits hold again. */
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
	run(&w, WEIR_SEC - WEIR_MS / 2);
	waits = w.resource->queued;
	CHECK(waits >= 25 && w.fake->n == 0 && a.done == 40 - waits);
	t = look(&w, &s);
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
	t = look(&w, &s);
	CHECK(s.resources[0].bypassed);
	CHECK_INT(t->in_flight, waits + 1);
	CHECK_INT(t->oldest_wait, 0);
	look_end(&s);
	run(&w, 10 * WEIR_MS);
	CHECK_INT(a.done, 41);
	t = look(&w, &s);
	CHECK_INT(t->served, 41);
	CHECK_INT(t->dispatched, 41);
	CHECK_INT(t->bytes, 41 * 4096);
	CHECK_INT(t->total->count, 41);
	CHECK_NEAR((double)t->total->max, 1e9, 0.01); /* those that waited did so since they came */
	CHECK_INT(t->in_flight, 0);
	look_end(&s);
	CHECK_INT(resource_bypass(w.resource, false), 0);
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	run(&w, WEIR_SEC);
	CHECK(a.done >= 41 + 9 && a.done <= 41 + 12);
	resource_leave(w.resource, &a.client);
	w.now += WEIR_SEC;
	turn(&w);
	world_free(&w);
}

/* It outlives a policy; in shadow mode there is nothing to let go. */
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
	run(&w, 2 * WEIR_MS);
	next = parse(DISK "tenants: [{name: b, max: 10 iops, match: {export: a}}]");
	CHECK_INT(resource_swap(w.resource, next, &err), 0);
	weir_policy_free(w.policy);
	w.policy = next;
	for (unsigned i = 0; i < 20; i++)
		ask(&a, i);
	turn(&w);
	CHECK_INT(w.fake->n, 20);
	run(&w, 2 * WEIR_MS);
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

/* ---- capacity, tap */

static void test_capacity(void)
{
	struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, match: {export: a}}]", false);
	join(&w, &a, "a", 32);
	run(&w, 3 * WEIR_SEC);
	CHECK(capacity_known(&w.resource->capacity));
	CHECK_NEAR(w.resource->capacity.rate[0], 4000, 0.01);
	CHECK_NEAR(w.resource->capacity.rate[1], 4000.0 * 4096, 0.01);
	a.again = false;
	run(&w, WEIR_SEC);
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
	run(&w, WEIR_SEC);
	resource_tap(w.resource, NULL);
	ask(&a, 4);
	run(&w, WEIR_SEC);
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

/* cost: time: what takes ten times as long counts ten times. */
static void test_time(void)
{
	struct asker a;
	struct world w;

	world_new(&w,
		"resources: [{name: disk, depth: 1, cost: time}]\n"
		"tenants: [{name: a, match: {export: a}}]",
		false);
	join(&w, &a, "a", 1);
	run(&w, WEIR_SEC);
	CHECK_NEAR(a.asks[0].gate.time, 1e6, 0.01);
	w.fake->time = 10 * WEIR_MS;
	run(&w, 10 * WEIR_SEC);
	CHECK_NEAR(a.asks[0].gate.time, 10e6, 0.01);
	a.again = false;
	run(&w, WEIR_SEC);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

int main(void)
{
	RUN(test_weights);
	RUN(test_max);
	RUN(test_costs);
	RUN(test_leave);
	RUN(test_bare);
	RUN(test_join_matches);
	RUN(test_shadow);
	RUN(test_shadow_window);
	RUN(test_shadow_off);
	RUN(test_shadow_bound);
	RUN(test_bypass);
	RUN(test_bypass_and_policy);
	RUN(test_capacity);
	RUN(test_tap);
	RUN(test_time);
	return 0;
}
