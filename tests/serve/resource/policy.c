/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: a swap with requests inside, in virtual time: requests follow their clients in order;
 * clients without a tenant are disconnected; shadow mode is switched on and off; parts of a max;
 * demand; and random policies one after the other, with the gate bypassed and not, with nothing
 * lost, doubled or reordered within a client.
 */
#include "control/parda/keys.h"
#include "serve/resource/impl.h"
#include "serve/snapshot/snapshot.h"
#include "base/rng.h"
#include "serve/sent.h"
#include "policy-parse.h"
#include <errno.h>

enum { CLIENTS = 6, DEPTH = 12, MOST = 64 };

/* ---- a back end that keeps its requests until the test releases them */

struct held {
	struct back back;
	struct back_io *inside[CLIENTS * DEPTH + MOST];
	size_t n;
};

struct world {
	struct held back;
	struct resource *r;
	struct weir_policy *p;
	weir_time now;
	struct client clients[CLIENTS];
	bool here[CLIENTS];
	struct sent sent[CLIENTS][DEPTH];
	unsigned serial[CLIENTS], expect[CLIENTS];
	uint64_t submitted, passed, done, refused;
};
static struct world w;

static void held_submit(struct back *b, struct back_io *ios)
{
	struct held *h = (struct held *)(void *)b;

	for (; ios; ios = ios->next) {
		struct sent *s = sent_of(ios);

		CHECK(s->away);
		CHECK_INT(s->serial, w.expect[s->client]); /* in order: none lost, none twice */
		w.expect[s->client]++;
		w.passed++;
		h->inside[h->n++] = ios;
	}
}

static void held_free(struct back *b)
{
	(void)b;
}

static const struct back_ops held_ops = {.name = "held", .submit = held_submit, .free = held_free};

static void finish_one(size_t i)
{
	struct back_io *io = w.back.inside[i];

	w.back.inside[i] = w.back.inside[--w.back.n];
	io->error = 0;
	w.back.back.done(w.back.back.done_arg, io);
}

static void turn(void)
{
	while (resource_turn(w.r, w.now))
		;
}

/* ---- clients */

static void request_done(struct request *q)
{
	struct sent *s = (struct sent *)(void *)q;

	CHECK(s->away);
	s->away = false;
	w.done++;
	resource_answered(q->client, q->gate.submitted, w.now);
	if (q->io.error == -ECANCELED)
		w.expect[s->client]++; /* left before it passed */
}

static void submit(unsigned client)
{
	struct sent *s = &w.sent[client][w.serial[client] % DEPTH];

	if (s->away || !w.here[client])
		return;
	w.submitted++;
	sent_submit(w.r, s, &w.clients[client], client, w.serial[client]++, request_done);
}

static void cut_off(struct client *c, const char *why)
{
	unsigned i = (unsigned)(c - w.clients);

	(void)why;
	w.refused++;
	w.here[i] = false;
	resource_leave(w.r, c);
}

static void join(unsigned i, const char *export_)
{
	struct client *c = &w.clients[i];

	memset(c, 0, sizeof(*c));
	snprintf(c->export_, sizeof(c->export_), "%s", export_);
	c->refused = cut_off;
	w.here[i] = true;
	resource_join(w.r, c);
}

/* ---- the world */

static void swap(const char *text)
{
	struct weir_policy *next = parse(text);
	struct weir_err err;

	if (resource_swap(w.r, next, &err) != 0)
		FAIL("%s", err.text);
	weir_policy_free(w.p);
	w.p = next;
}

static void start(const char *text, double depth)
{
	struct weir_resource spec;
	struct resource_config config = {.spec = &spec, .back = &w.back.back};

	memset(&w, 0, sizeof(w));
	policy_resource_default("disk", &spec);
	spec.depth = depth;
	w.back.back.ops = &held_ops;
	w.now = WEIR_SEC;
	CHECK_INT(resource_new(&config, &w.r), 0);
	swap(text);
	turn();
}

static void stop(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (w.here[i])
			resource_leave(w.r, &w.clients[i]);
	while (w.back.n) {
		finish_one(0);
		turn();
	}
	turn();
	CHECK(!resource_busy(w.r));
	CHECK_INT(w.done, w.submitted);
	resource_free(w.r);
	weir_policy_free(w.p);
}

static uint32_t queued(const char *path)
{
	int i = weir_policy_find(w.p, path);
	struct weir_gate_stats st;

	CHECK(i >= 0);
	CHECK_INT(weir_gate_get_stats(w.r->gate, w.now, w.r->nodes[i], &st), 0);
	return st.queued;
}

#define AB "tenants: [{name: a, match: {export: \"a*\"}}, {name: b, match: {export: \"b*\"}}]\n"

static void test_follow(void)
{
	start(AB, 1);
	join(0, "a0");
	join(1, "a1");
	join(2, "b");
	for (unsigned i = 0; i < 4; i++)
		for (unsigned c = 0; c < 3; c++)
			submit(c);
	turn();
	CHECK_INT(w.back.n, 1);
	CHECK_INT(queued("a") + queued("b"), 11);
	/* a1 belongs to another tenant now. */
	swap("tenants: [{name: a, match: {export: \"a*\"}}, {name: b, match: {export: \"b*\"}},\n"
	     " {name: one, match: {export: a1}}]\n");
	CHECK_INT(w.clients[0].tenant, 0);
	CHECK_INT(w.clients[1].tenant, 2);
	turn();
	CHECK_INT(queued("one"), 4);
	CHECK_INT(queued("a") + queued("b"), 7);
	/* All old tenants are gone; a new name has all clients. */
	swap("tenants: [{name: all, match: {export: \"*\"}}]\n");
	turn();
	CHECK_INT(queued("all"), 11);
	CHECK_INT(w.back.n, 1);
	stop();
	CHECK_INT(w.refused, 0);
}

static double worst(const struct weir_hist *h)
{
	return h ? (double)weir_hist_percentile(h, 100) : 0;
}

/* The waiting time under one policy is kept under the next. */
static void test_waits_since(void)
{
	weir_node b;

	start("tenants: [{name: a, max: 1 iops, match: {export: a}}]\n", 4);
	join(0, "a");
	for (unsigned i = 0; i < 4; i++)
		submit(0);
	turn();
	CHECK(w.back.n < 4); /* the others wait for a token each */
	while (w.back.n)
		finish_one(0);
	w.now += 500 * WEIR_MS;
	turn();
	swap("tenants: [{name: b, match: {export: a}}]\n");
	turn();
	CHECK(w.back.n >= 2);
	w.now += 250 * WEIR_MS;
	while (w.back.n)
		finish_one(0);
	turn();
	resource_drain(w.r);
	b = w.r->nodes[0];
	CHECK_NEAR(worst(weir_gate_hist_wait(w.r->gate, b)), 500e6, 0.05);
	CHECK_NEAR(worst(w.r->totals[b]), 750e6, 0.05);
	stop();
}

#define DISK "resources: [{name: disk, depth: 1}]\n"
#define ALL  "tenants: [{name: a, match: {export: \"*\"}}]\n"

static void test_cut_off(void)
{
	start(DISK "exports: [{name: a, size: 1 MiB}, {name: b, offset: 2 MiB, size: 1 MiB},\n"
		   "{name: c, offset: 4 MiB, size: 1 MiB}, {name: d, offset: 8 MiB}]\n" ALL,
		1);
	join(0, "a");
	join(1, "b");
	join(2, "c");
	join(3, "d");
	for (unsigned c = 0; c < 4; c++)
		for (unsigned i = 0; i < 3; i++)
			submit(c);
	turn();
	/* b is gone, c has moved; a may grow. */
	swap(DISK "exports: [{name: a, size: 2 MiB}, {name: c, offset: 6 MiB, size: 1 MiB},\n"
		  "{name: d, offset: 8 MiB}]\n" ALL);
	CHECK_INT(w.refused, 2);
	CHECK(w.here[0] && !w.here[1] && !w.here[2] && w.here[3]);
	CHECK_INT(queued("a"), 5);
	/* A smaller size; and read only. */
	swap(DISK "exports: [{name: a, size: 1 MiB}, {name: d, offset: 8 MiB, read_only: "
		  "true}]\n" ALL);
	CHECK_INT(w.refused, 4);
	stop();
}

static void cut_off_later(struct client *c, const char *why)
{
	(void)c;
	CHECK(strstr(why, "tenant"));
	w.refused++;
}

/* A client that is disconnected leaves a little later. Until then the window and every max hold
 * its waiting requests; when the client leaves they are dropped. */
static void test_cut_off_waiting(bool shadow)
{
	start(AB, 1);
	join(0, "a");
	join(1, "b");
	w.clients[1].refused = cut_off_later;
	submit(1);
	turn();
	for (unsigned i = 0; i < 4; i++)
		submit(1);
	submit(0);
	turn();
	CHECK_INT(w.back.n, 1);
	swap(shadow ? "enforce: false\ntenants: [{name: a, match: {export: \"a*\"}}]\n"
		    : "tenants: [{name: a, match: {export: \"a*\"}}]\n");
	CHECK_INT(w.refused, 1);
	turn();
	CHECK_INT(w.back.n, shadow ? 2 : 1); /* a's request passes if nothing is held */
	w.here[1] = false;
	resource_leave(w.r, &w.clients[1]);
	turn();
	CHECK_INT(w.done, 4);
	finish_one(0);
	turn();
	CHECK_INT(w.passed, 2);
	stop();
}

static void test_cut_off_later(void)
{
	test_cut_off_waiting(false);
	test_cut_off_waiting(true);
}

static void test_clients_without_tenant(void)
{
	start(AB, 1);
	join(0, "a");
	join(1, "b");
	submit(1);
	submit(1);
	turn();
	swap("tenants: [{name: a, match: {export: \"a*\"}}]\n");
	CHECK_INT(w.refused, 1);
	CHECK(w.here[0] && !w.here[1]);
	join(2, "b"); /* and a client that joins now */
	CHECK_INT(w.refused, 2);
	stop();
}

static void test_shadow(void)
{
	start("tenants: [{name: a, max: 10 iops, match: {export: \"*\"}}]\n", 64);
	join(0, "a");
	for (unsigned i = 0; i < 8; i++)
		submit(0);
	turn();
	CHECK_INT(w.back.n, 2); /* the content of a bucket of 10 iops */
	swap("enforce: false\ntenants: [{name: a, max: 10 iops, match: {export: \"*\"}}]\n");
	turn();
	CHECK_INT(w.back.n, 8); /* at once, and in order */
	for (unsigned i = 0; i < 4; i++)
		submit(0);
	turn();
	CHECK_INT(w.back.n, 12);
	CHECK(queued("a") > 0); /* requests that would wait */
	swap("enforce: false\ntenants: [{name: b, max: 10 iops, match: {export: \"*\"}}]\n");
	while (w.back.n)
		finish_one(0);
	turn();
	swap("tenants: [{name: b, max: 10 iops, match: {export: \"*\"}}]\n");
	w.now += 10 * WEIR_SEC;
	for (unsigned i = 0; i < 8; i++)
		submit(0);
	turn();
	CHECK_INT(w.back.n, 2);
	stop();
}

static void test_keys_of_the_resource(void)
{
	struct weir_policy *p = parse("resources: [{name: disk, cost: bytes}]\n" ALL);
	struct weir_err err;

	start("resources: [{name: disk, depth: 3}]\n" ALL, 1);
	join(0, "a");
	for (unsigned i = 0; i < 8; i++)
		submit(0);
	turn();
	CHECK_INT(w.back.n, 3);
	swap("resources: [{name: disk, depth: 5, io_unit: 4 KiB}]\n" ALL);
	turn();
	CHECK_INT(w.back.n, 5);
	CHECK_INT(w.r->spec.io_unit, 4096);
	CHECK_INT(resource_swap(w.r, p, &err), -EINVAL);
	CHECK(strstr(err.text, "restart"));
	CHECK_INT(w.r->spec.cost, WEIR_UNIT_REQUESTS);
	weir_policy_free(p);
	stop();
}

/* Requests have 4 KiB. The window in bytes is added and removed with the policy; a controller of
 * the window does not change it. */
static void test_window_in_bytes(void)
{
	start("resources: [{name: disk, depth: {requests: 8, bytes: 8 KiB}}]\n" ALL, 1);
	join(0, "a");
	for (unsigned i = 0; i < 10; i++)
		submit(0);
	turn();
	CHECK_INT(w.back.n, 2);
	w.r->spec.controller = &parda_controller;
	resource_window(w.r, 6);
	turn();
	CHECK_INT(w.back.n, 2);
	w.r->spec.controller = NULL;
	swap("resources: [{name: disk, depth: {requests: 8, bytes: 20 KiB}}]\n" ALL);
	turn();
	CHECK_INT(w.back.n, 5);
	swap("resources: [{name: disk, depth: 8}]\n" ALL);
	turn();
	CHECK_INT(w.back.n, 8);
	stop();
}

/* ---- parts and demand */

static uint64_t run_for(weir_time span)
{
	uint64_t before = w.passed;
	weir_time end = w.now + span;

	for (; w.now < end; w.now += WEIR_MS) {
		for (unsigned i = 0; i < DEPTH; i++)
			submit(0);
		turn();
		while (w.back.n)
			finish_one(0);
		turn();
	}
	return w.passed - before;
}

static void test_parts(void)
{
	double quarter = 0.25, one = 1, two[2] = {1, 1};

	start("tenants: [{name: a, max: 1000 iops, match: {export: \"*\"}}]\n", 64);
	join(0, "a");
	run_for(WEIR_SEC);
	CHECK_NEAR((double)run_for(WEIR_SEC), 1000, 0.01);
	CHECK_INT(resource_divide(w.r, &quarter, NULL, NULL, 1, NULL), 0);
	run_for(100 * WEIR_MS);
	CHECK_NEAR((double)run_for(WEIR_SEC), 250, 0.02);
	/* Kept for a tenant that stays. */
	swap("tenants: [{name: n}, {name: a, max: 2000 iops, match: {export: \"*\"}}]\n");
	run_for(100 * WEIR_MS);
	CHECK_NEAR((double)run_for(WEIR_SEC), 500, 0.02);
	CHECK_INT(resource_divide(w.r, &one, NULL, NULL, 1, NULL), 0);
	run_for(100 * WEIR_MS);
	CHECK_NEAR((double)run_for(WEIR_SEC), 2000, 0.02);
	CHECK_INT(resource_divide(w.r, two, NULL, NULL, 2, NULL), -EINVAL); /* of another policy */
	stop();
}

static void test_demand(void)
{
	struct divide_demand d[3];

	start("tenants: [{name: g, max: 200 iops, children: [{name: a, match: {export: "
	      "\"*\"}}]},\n"
	      " {name: b, match: {export: b}}]\n",
		64);
	join(0, "a");
	resource_demand(w.r, d, 3);
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(d[i].kind[0].passed_requests + d[i].kind[1].waiting_requests, 0, 0);
	CHECK_INT(d[1].clients, 1);
	CHECK_INT(d[0].clients, 1);
	for (unsigned i = 0; i < 10; i++)
		submit(0);
	turn(); /* five pass: 25 ms of the group's max */
	CHECK_INT(w.back.n, 5);
	w.now += WEIR_MS / 2;
	turn();
	resource_demand(w.r, d, 3);
	for (int i = 0; i < 2; i++) {
		CHECK_NEAR(d[i].kind[0].passed_requests, 5, 0);
		CHECK_NEAR(d[i].kind[0].passed_bytes, 5 * 4096, 0);
		CHECK_NEAR(d[i].kind[0].waiting_requests, 5, 0);
		CHECK_NEAR(d[i].kind[0].waiting_bytes, 5 * 4096, 0);
		CHECK_NEAR(d[i].kind[1].passed_requests + d[i].kind[1].waiting_requests, 0, 0);
	}
	CHECK(d[0].held > 0.9 && d[0].held_alone > 0.9 && d[1].held == 0 && d[2].held == 0);
	resource_demand(w.r, d, 3);
	CHECK_NEAR(d[1].kind[0].passed_requests, 0, 0);
	CHECK_NEAR(d[1].kind[0].waiting_requests, 5, 0);
	/* The waiting requests of a client that leaves are dropped. */
	w.here[0] = false;
	resource_leave(w.r, &w.clients[0]);
	resource_demand(w.r, d, 3);
	CHECK_NEAR(d[1].kind[0].waiting_requests, 0, 0);
	stop();
}

/* ---- random */

static void random_policy(struct rng *r, char *text, size_t len)
{
	static const char *const exports[] = {"a", "b", "c"};
	size_t used = (size_t)snprintf(text, len,
		"enforce: %s\ndefault: rest\ntenants:\n  - {name: rest}\n",
		rng_below(r, 5) == 0 ? "false" : "true");

	for (unsigned i = 0; i < 3; i++) {
		if (rng_below(r, 3) == 0)
			continue;
		used += (size_t)snprintf(text + used, len - used,
			rng_below(r, 2)
				? "  - {name: %s, max: 3k iops, children: [{name: x, match: "
				  "{export: %s}}]}\n"
				: "  - {name: %s, min: 10 iops, match: {export: %s}}\n",
			exports[i], exports[i]);
	}
}

static void random_case(uint64_t seed)
{
	static const char *const exports[] = {"a", "b", "c", "other"};
	struct rng r;
	char text[1024];

	rng_init(&r, seed, "resource-policy");
	random_policy(&r, text, sizeof(text));
	start(text, 5);
	for (unsigned i = 0; i < CLIENTS; i++)
		join(i, exports[i % 4]);
	for (unsigned i = 0; i < 3000; i++) {
		switch (rng_below(&r, 10)) {
		case 0:
			random_policy(&r, text, sizeof(text));
			if (rng_below(&r, 3) == 0)
				swap(text);
			break;
		case 1:
			w.now += (weir_time)rng_below(&r, 300 * WEIR_US);
			if (rng_below(&r, 5) ==
				0) /* with requests waiting, and between two turns */
				resource_bypass(w.r, !w.r->bypass);
			break;
		case 2:
		case 3:
			turn();
			break;
		case 4:
		case 5:
			for (uint64_t n = rng_below(&r, 4); w.back.n && n; n--)
				finish_one(rng_below(&r, w.back.n));
			break;
		default:
			submit((unsigned)rng_below(&r, CLIENTS));
		}
	}
	for (unsigned i = 0; i < 10000 && w.passed < w.submitted; i++) {
		turn();
		while (w.back.n)
			finish_one(0);
		w.now += WEIR_MS;
	}
	CHECK_INT(w.passed, w.submitted);
	CHECK(w.submitted > 300);
	CHECK_INT(w.refused, 0);
	stop();
}

static void test_random(void)
{
	for (uint64_t seed = 1; seed <= 30; seed++)
		random_case(seed);
}

int main(void)
{
	RUN(test_follow);
	RUN(test_waits_since);
	RUN(test_cut_off);
	RUN(test_cut_off_later);
	RUN(test_clients_without_tenant);
	RUN(test_shadow);
	RUN(test_keys_of_the_resource);
	RUN(test_window_in_bytes);
	RUN(test_parts);
	RUN(test_demand);
	RUN(test_random);
	return 0;
}
