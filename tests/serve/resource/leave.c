/* SPDX-License-Identifier: BSD-3-Clause */
/* leave: hundreds of clients of a tenant with a long queue leave, move or are released: the number
 * of waiting requests that are looked at does not grow with the number of clients. Counted by
 * wrapping weir_gate_cancel. */
#include "serve/resource-rig.h"

enum { CLIENTS = 500, EACH = 32, ALL = CLIENTS * EACH };

#define A     "{name: a, max: 1 iops, match: {export: a}}"
#define B     "{name: b, match: {export: b}}"
#define TWO   DISK "tenants: [" A ", " B "]"
#define MOVED DISK "tenants: [{name: c, max: 1 iops, match: {export: a}}, " B "]"

static uint32_t looked;
static bool (*match_of)(const struct weir_req *q, void *arg);

static bool counted(const struct weir_req *q, void *arg)
{
	looked++;
	return match_of(q, arg);
}

size_t __real_weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg);
size_t __wrap_weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg);
size_t __wrap_weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg)
{
	match_of = match;
	return __real_weir_gate_cancel(g, now, tenant, counted, drop, arg);
}

static struct asker clients[CLIENTS], other;

static void start(struct world *w)
{
	world_new(w, TWO, false);
	for (unsigned i = 0; i < CLIENTS; i++) {
		join(w, &clients[i], "a", 0);
		for (unsigned k = 0; k < EACH; k++)
			ask(&clients[i], k);
	}
	turn(w);
	CHECK(w->resource->queued > ALL - 10);
	join(w, &other, "b", 0);
	looked = 0;
}

static void swap(struct world *w, const char *text)
{
	struct weir_policy *old = w->policy;
	struct weir_err err;

	w->policy = parse(text);
	if (resource_swap(w->resource, w->policy, &err) < 0)
		FAIL("%s", err.text);
	weir_policy_free(old);
}

static void end(struct world *w)
{
	resource_leave(w->resource, &other.client);
	run_world(w, WEIR_SEC);
	CHECK(!resource_busy(w->resource));
	CHECK(!w->resource->left);
	for (unsigned i = 0; i < CLIENTS; i++) {
		CHECK_INT(clients[i].client.in_flight, 0);
		CHECK_INT(clients[i].done, EACH);
	}
	world_free(w);
}

static void leave_all(struct world *w, unsigned from)
{
	for (unsigned i = from; i < CLIENTS; i++)
		resource_leave(w->resource, &clients[i].client);
}

/* All leave at once: one queue is looked at twice at most, and their requests are gone soon. Another
 * tenant is served meanwhile. */
static void test_all_leave(void)
{
	struct world w;

	start(&w);
	leave_all(&w, 0);
	CHECK(looked <= ALL);
	ask(&other, 0);
	run_world(&w, 2 * WEIR_MS);
	CHECK_INT(other.done, 1);
	run_world(&w, 100 * WEIR_MS);
	CHECK_INT(w.resource->queued, 0);
	CHECK(looked <= 2 * ALL);
	end(&w);
}

/* They leave one after the other: the queue is looked at now and then. */
static void test_leave_one_by_one(void)
{
	struct world w;

	start(&w);
	for (unsigned i = 0; i < CLIENTS; i++) {
		resource_leave(w.resource, &clients[i].client);
		run_world(&w, WEIR_MS);
	}
	run_world(&w, 100 * WEIR_MS);
	CHECK_INT(w.resource->queued, 0);
	CHECK(looked <= (CLIENTS + 100) * (WEIR_MS / 4000));
	end(&w);
}

/* A client whose last requests return before they are dropped is forgotten: its memory may be
 * used for something else. */
static void test_returned_before(void)
{
	struct world w;

	static struct asker last;

	start(&w);
	resource_leave(w.resource, &clients[0].client);
	join(&w, &last, "b", 0);
	ask(&last, 0);
	turn(&w); /* inside */
	resource_leave(w.resource, &last.client);
	CHECK(w.resource->left == &last.client);
	run_world(&w, 2 * WEIR_MS);
	CHECK_INT(last.done, 1);
	CHECK(!w.resource->left);
	leave_all(&w, 1);
	end(&w);
}

/* A swap looks only at queues from which requests move, once each. */
static void test_swap(void)
{
	struct world w;

	start(&w);
	swap(&w, DISK "tenants: [" A ", {name: b, weight: 2, match: {export: b}}]");
	CHECK_INT(looked, 0);
	swap(&w, MOVED);
	turn(&w);
	CHECK(looked <= ALL);
	CHECK(stats(&w, "c").queued > ALL - 10);
	for (unsigned i = 0; i < CLIENTS / 2; i++)
		resource_leave(w.resource, &clients[i].client);
	looked = 0;
	swap(&w, TWO); /* drops the requests of those that left before it moves the others */
	turn(&w);
	CHECK(looked <= 2 * ALL);
	CHECK(stats(&w, "a").queued <= ALL / 2);
	leave_all(&w, CLIENTS / 2);
	end(&w);
}

static void test_bypass(void)
{
	struct world w;

	start(&w);
	CHECK(resource_bypass(w.resource, true) > ALL - 10);
	CHECK(looked <= ALL);
	run_world(&w, WEIR_SEC);
	leave_all(&w, 0);
	end(&w);
}

static void ask_all(struct asker *a, uint8_t op, unsigned from, unsigned n)
{
	a->op = op;
	for (unsigned i = from; i < from + n; i++)
		ask(a, i);
}

/* A client reads no replies any more: its reads are dropped at once, and what it wrote is done at the
 * pace of the tenant's max. Then it leaves. */
static void test_unread(void)
{
	static struct asker a;
	struct world w;

	world_new(&w, DISK "tenants: [{name: a, max: 10 iops, match: {export: a}}]", false);
	join(&w, &a, "a", 0);
	ask_all(&a, BACK_READ, 0, 20);
	ask_all(&a, BACK_WRITE, 20, 2);
	ask_all(&a, BACK_CACHE, 22, 10);
	ask_all(&a, BACK_TRIM, 32, 1);
	ask_all(&a, BACK_STATUS, 33, 5);
	ask_all(&a, BACK_FLUSH, 38, 1);
	run_world(&w, 10 * WEIR_MS);
	resource_unread(w.resource, &a.client);
	run_world(&w, 10 * WEIR_MS);
	CHECK(a.cancelled >= 30);
	CHECK(a.client.in_flight <= 4);
	run_world(&w, WEIR_SEC);
	CHECK_INT(a.done, 39);
	CHECK(a.cancelled <= 35); /* of the reads */
	CHECK_INT(a.errors, a.cancelled);
	CHECK_INT(a.client.in_flight, 0);
	CHECK(!w.resource->left);
	resource_leave(w.resource, &a.client);
	world_free(&w);
}

/* The same for hundreds of clients, which then leave while their writes wait. */
static void test_all_unread(void)
{
	struct world w;

	start(&w);
	for (unsigned i = 0; i < CLIENTS; i++)
		ask_all(&clients[i], BACK_WRITE, EACH, 1);
	turn(&w);
	for (unsigned i = 0; i < CLIENTS; i++)
		resource_unread(w.resource, &clients[i].client);
	CHECK(looked <= 2 * ALL);
	run_world(&w, 100 * WEIR_MS);
	CHECK(w.resource->queued > CLIENTS - 10 && w.resource->queued <= CLIENTS);
	leave_all(&w, 0);
	run_world(&w, 100 * WEIR_MS);
	CHECK_INT(w.resource->queued, 0);
	CHECK(!w.resource->left);
	resource_leave(w.resource, &other.client);
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK_INT(clients[i].done, EACH + 1);
	world_free(&w);
}

int main(void)
{
	RUN(test_all_leave);
	RUN(test_leave_one_by_one);
	RUN(test_returned_before);
	RUN(test_swap);
	RUN(test_bypass);
	RUN(test_unread);
	RUN(test_all_unread);
	return 0;
}
