/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap: tenants that stay keep their node, levels and counters; waiting requests are handed back in
 * order; removed nodes are freed when they are empty; and, over random policies with live requests
 * in virtual time, nothing is lost, duplicated or reordered within a client.
 */
#include "policy/knobs/swap.h"
#include "base/rng.h"
#include "policy-parse.h"
#include <errno.h>

static struct weir_gate *gate_new(double window)
{
	struct weir_gate_config config = {.cost = WEIR_UNIT_REQUESTS, .window = window};
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	return g;
}

/* ---- requests that know their client and serial number */

struct sent {
	struct weir_req req; /* first */
	unsigned client, serial;
};

static void list_moved(struct weir_req *q, void *arg)
{
	struct weir_req ***end = arg;

	CHECK(q->next == NULL);
	**end = q;
	*end = &q->next;
}

static int swap(struct policy_swap *s, const struct weir_policy *from, const struct weir_policy *to,
	struct weir_gate *g, weir_time now, struct weir_req **ret_moved)
{
	struct policy_swap_how how = {.from = from, .to = to};
	struct weir_req **end = ret_moved;
	struct weir_err err;

	*ret_moved = NULL;
	if (policy_swap_begin(s, &how, g, now, &err) != 0)
		FAIL("%s", err.text);
	policy_swap_finish(s, g, now, NULL, 0, NULL, list_moved, &end);
	return 0;
}

static void submit_at(
	struct weir_gate *g, weir_time now, struct sent *q, weir_node node, unsigned serial)
{
	struct weir_req *r = &q->req;

	*q = (struct sent){.req = {.tenant = node, .bytes = 4096}, .serial = serial};
	CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
}

static uint64_t dispatched(struct weir_gate *g, weir_time now, weir_node node)
{
	struct weir_gate_stats st;

	CHECK_INT(weir_gate_get_stats(g, now, node, &st), 0);
	return st.dispatched;
}

static void test_stays(void)
{
	struct weir_policy *a = parse("tenants: [{name: x, max: 80 iops}, {name: y, weight: 2}]");
	struct weir_policy *b = parse("tenants: [{name: z}, {name: y}, {name: x, max: 80 iops}]");
	struct weir_gate *g = gate_new(64);
	struct policy_swap s = {0};
	struct weir_req *moved, *out[8];
	struct sent q[8];
	weir_node x, y;

	swap(&s, NULL, a, g, 0, &moved);
	x = policy_swap_node(&s, 0);
	y = policy_swap_node(&s, 1);
	for (unsigned i = 0; i < 8; i++)
		submit_at(g, 0, &q[i], x, i);
	CHECK_INT(weir_gate_next(g, 0, out, 8), 2); /* a bucket of two */
	swap(&s, a, b, g, 0, &moved);
	CHECK(!moved);
	CHECK_INT(policy_swap_node(&s, 2), x);
	CHECK_INT(policy_swap_node(&s, 1), y);
	CHECK(policy_swap_node(&s, 0) != x && policy_swap_node(&s, 0) != y);
	CHECK_INT(s.n_leaving, 0);
	/* The bucket is as empty as before: a swap must not give more than the max. */
	CHECK_INT(weir_gate_next(g, 0, out, 8), 0);
	CHECK_INT(weir_gate_next(g, 13 * WEIR_MS, out, 8), 1);
	CHECK_INT(dispatched(g, 13 * WEIR_MS, x), 3);
	policy_swap_free(&s);
	weir_gate_free(g);
	weir_policy_free(a);
	weir_policy_free(b);
}

static void count_gone(weir_node node, void *arg)
{
	(void)node;
	++*(unsigned *)arg;
}

static void test_leaves(void)
{
	struct weir_policy *a =
		parse("tenants: [{name: p, children: [{name: x}, {name: y}]}, {name: z}]");
	struct weir_policy *b = parse("tenants: [{name: p}, {name: z}]");
	struct weir_gate *g = gate_new(2);
	struct policy_swap s = {0};
	struct weir_req *moved, *out[8];
	struct sent q[6];
	unsigned gone = 0;
	weir_node p, z;

	swap(&s, NULL, a, g, 0, &moved);
	p = policy_swap_node(&s, 0);
	z = policy_swap_node(&s, 3);
	for (unsigned i = 0; i < 5; i++)
		submit_at(g, 0, &q[i], policy_swap_node(&s, 1), i);
	CHECK_INT(weir_gate_next(g, 0, out, 8), 2);
	swap(&s, a, b, g, 0, &moved);
	/* p was a group and now takes requests: it has another node. x, y and the old p leave. */
	CHECK(policy_swap_node(&s, 0) != p);
	CHECK_INT(policy_swap_node(&s, 1), z);
	for (unsigned i = 2; i < 5; i++, moved = moved->next)
		CHECK(moved == &q[i].req);
	CHECK(!moved);
	CHECK_INT(s.n_leaving, 3);
	CHECK(policy_swap_sweep(&s, g, 1, count_gone, &gone)); /* two more are to be examined */
	CHECK(policy_swap_sweep(&s, g, 1, count_gone, &gone));
	CHECK(!policy_swap_sweep(&s, g, 1, count_gone, &gone));
	CHECK_INT(s.n_leaving, 2); /* x, and p because of x */
	CHECK_INT(gone, 1);
	weir_gate_done(g, 1, out, 2);
	CHECK(!policy_swap_sweep(&s, g, 2, count_gone, &gone));
	CHECK_INT(s.n_leaving, 0);
	CHECK_INT(gone, 3);
	policy_swap_free(&s);
	weir_gate_free(g);
	weir_policy_free(a);
	weir_policy_free(b);
}

static bool is_odd(const struct weir_req *q, void *arg)
{
	(void)arg;
	return ((const struct sent *)(const void *)q)->client % 2;
}

/* Of a tenant that stays, the requests of clients that now belong to another tenant. */
static void test_some_move(void)
{
	struct weir_policy *a = parse("tenants: [{name: x}, {name: y}]");
	struct policy_swap_how how = {.from = a, .to = a};
	struct weir_gate *g = gate_new(1);
	struct policy_swap s = {0};
	struct weir_req *moved, **end = &moved;
	struct weir_gate_stats st;
	struct sent q[6];

	swap(&s, NULL, a, g, 0, &moved);
	for (unsigned i = 0; i < 6; i++) {
		submit_at(g, 0, &q[i], policy_swap_node(&s, 0), i);
		q[i].client = i;
	}
	CHECK_INT(policy_swap_begin(&s, &how, g, 0, NULL), 0);
	policy_swap_finish(&s, g, 0, NULL, 0, is_odd, list_moved, &end);
	for (unsigned i = 1; i < 6; i += 2, moved = moved->next)
		CHECK(moved == &q[i].req);
	CHECK(!moved);
	CHECK_INT(weir_gate_get_stats(g, 0, policy_swap_node(&s, 0), &st), 0);
	CHECK_INT(st.queued, 3);
	policy_swap_free(&s);
	weir_gate_free(g);
	weir_policy_free(a);
}

/* A knob that the gate refuses, here a rule's rate below zero: nothing has changed. */
static void test_all_or_nothing(void)
{
	struct weir_policy *a = parse("tenants: [{name: x}]");
	struct weir_policy *b = parse("tenants: [{name: n, children: [{name: m}]}, {name: x}]");
	struct controller_rule rules[3] = {
		{.scale = 1}, {.scale = 1}, {.bucket = {.rate = -1, .size = 1}, .scale = 1}};
	struct policy_swap_how how = {.from = a, .to = b, .part = {.rules = rules}};
	struct weir_gate *g = gate_new(8);
	struct policy_swap s = {0};
	struct weir_req *moved, *out[8];
	struct weir_err err;
	struct sent q;
	weir_node x, extra;

	swap(&s, NULL, a, g, 0, &moved);
	x = policy_swap_node(&s, 0);
	submit_at(g, 0, &q, x, 0);
	CHECK_INT(policy_swap_begin(&s, &how, g, 0, &err), -EINVAL);
	CHECK(strstr(err.text, "rate"));
	CHECK_INT(s.n_nodes, 1);
	CHECK_INT(policy_swap_node(&s, 0), x);
	CHECK_INT(s.n_leaving, 0);
	/* The nodes that had been added are free again. */
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &extra), 0);
	CHECK(extra <= x + 2);
	CHECK_INT(weir_gate_next(g, 0, out, 8), 1);
	policy_swap_free(&s);
	weir_gate_free(g);
	weir_policy_free(a);
	weir_policy_free(b);
}

static void test_part(void)
{
	struct weir_policy *a = parse(
		"tenants: [{name: x, max: 1000 iops, min: 100 iops, burst: 3k iops for 10s}]");
	double rows[2] = {0.25, 0.5};
	uint32_t first[2] = {0, 2};
	struct policy_part part = {.first = first, .rows = rows};
	struct weir_bounds bounds;
	struct weir_bucket_spec b[POLICY_BUCKETS];

	CHECK_INT(weir_policy_bounds(a, &bounds), 0);
	CHECK_INT(policy_install_buckets_part(a, 0, &bounds, part, b), 3);
	CHECK_NEAR(b[0].rate, 750, 1e-12);
	CHECK_NEAR(b[1].rate, 250, 1e-12);
	CHECK_NEAR(b[1].size, 5000, 1e-12);
	CHECK_NEAR(b[2].rate, 50, 1e-12);
	weir_policy_free(a);
}

/* Each limit has a part of its own; a leaf's mins follow its max. */
static void test_rows(void)
{
	struct weir_policy *p =
		parse("tenants: [{name: g, max: 9k iops, children: [{name: x,"
		      " max: {reads: 1k iops, writes: 2 MiB/s}, min: {reads: 100 iops}}]}]");
	double rows[] = {1, 0.25, 0.5, 1, 0.75};
	struct weir_bounds bounds[2];
	struct weir_bucket_spec b[POLICY_BUCKETS];
	struct policy_part part = {.rows = rows};
	uint32_t *first;

	CHECK_INT(weir_policy_bounds(p, bounds), 0);
	part.first = first = policy_install_first(p, bounds);
	CHECK_INT(first[1], 1);
	CHECK_INT(first[2], 5); /* a min of reads is also one of all */
	CHECK(policy_install_buckets_part(p, 1, &bounds[1], part, b) >= 3);
	CHECK_NEAR(b[0].rate, 250, 1e-12);
	CHECK_NEAR(b[1].rate, 1048576, 1e-12);
	CHECK_NEAR(b[2].rate, 75, 1e-12);
	free(first);
	weir_policy_free(p);
}

/* ---- random policies, live requests */

enum { CLIENTS = 12, DEPTH = 16, INSIDE = 8, NAMES = 6 };

struct world {
	struct rng rng;
	struct weir_policy *p;
	struct weir_gate *g;
	struct policy_swap s;
	weir_time now;
	struct sent sent[CLIENTS][DEPTH];
	bool away[CLIENTS][DEPTH]; /* submitted and not yet done */
	unsigned serial[CLIENTS];  /* of the next one to send */
	unsigned expect[CLIENTS];  /* of the next one that must pass */
	weir_node node[CLIENTS];
	struct weir_req *inside[INSIDE];
	size_t n_inside;
	uint64_t submitted, passed, moves;
};

/* A tree of one or two levels over few names, so that paths return in other shapes. */
static void random_policy(struct rng *r, char *text, size_t len)
{
	size_t used = (size_t)snprintf(text, len, "tenants:\n");
	unsigned leaf = 0;

	for (unsigned i = 0; i < NAMES; i++) {
		unsigned children = rng_below(r, 3) == 0 ? 1 + (unsigned)rng_below(r, 3) : 0;

		if (i && rng_below(r, 3) == 0)
			continue;
		used += (size_t)snprintf(text + used, len - used, "  - {name: n%u, weight: %u", i,
			1 + (unsigned)rng_below(r, 9));
		if (rng_below(r, 3) == 0)
			used += (size_t)snprintf(text + used, len - used, ", max: %u iops",
				2000 + (unsigned)rng_below(r, 3000));
		if (children)
			used += (size_t)snprintf(text + used, len - used, ", children: [");
		for (unsigned c = 0; c < children; c++)
			used += (size_t)snprintf(text + used, len - used,
				"%s{name: c%u, min: %u iops, match: {export: e%u}}", c ? ", " : "",
				c, 1 + (unsigned)rng_below(r, 50), leaf++);
		if (children)
			used += (size_t)snprintf(text + used, len - used, "]");
		else
			used += (size_t)snprintf(
				text + used, len - used, ", match: {export: e%u}", leaf++);
		used += (size_t)snprintf(text + used, len - used, "}\n");
	}
	CHECK(used < len);
}

/* Return the leaf of a client's requests: any, but always the same. */
static weir_node node_of(const struct world *w, const struct weir_policy *p, unsigned client)
{
	size_t leaves = 0, pick;

	for (size_t i = 0; i < p->n_tenants; i++)
		leaves += p->tenants[i].first_child < 0;
	pick = client * 7919u % leaves;
	for (size_t i = 0;; i++)
		if (p->tenants[i].first_child < 0 && pick-- == 0)
			return policy_swap_node(&w->s, i);
}

static bool moves_away(const struct weir_req *q, void *arg)
{
	const struct world *w = arg;

	return w->node[((const struct sent *)(const void *)q)->client] != q->tenant;
}

static struct weir_req *again[CLIENTS * DEPTH];
static size_t n_again;

static void collect(struct weir_req *q, void *arg)
{
	struct world *w = arg;

	again[n_again++] = q;
	w->moves++;
}

static void random_submit(struct world *w)
{
	unsigned c = (unsigned)rng_below(&w->rng, CLIENTS), k = w->serial[c] % DEPTH;
	struct weir_req *r = &w->sent[c][k].req;

	if (w->away[c][k])
		return;
	w->sent[c][k] = (struct sent){.req = {.tenant = w->node[c], .bytes = 4096},
		.client = c,
		.serial = w->serial[c]++};
	w->away[c][k] = true;
	w->submitted++;
	CHECK_INT(weir_gate_submit(w->g, w->now, &r, 1), 0);
}

static void pass(struct world *w)
{
	size_t n =
		weir_gate_next(w->g, w->now, w->inside + w->n_inside, (size_t)INSIDE - w->n_inside);

	for (size_t i = 0; i < n; i++) {
		struct sent *q = (struct sent *)(void *)w->inside[w->n_inside + i];

		CHECK(w->away[q->client][q->serial % DEPTH]);
		CHECK_INT(q->serial, w->expect[q->client]); /* in order: none lost, none twice */
		w->expect[q->client]++;
		w->passed++;
	}
	w->n_inside += n;
}

static void finish_one(struct world *w)
{
	size_t i;
	struct sent *q;

	if (!w->n_inside)
		return;
	i = rng_below(&w->rng, w->n_inside);
	q = (struct sent *)(void *)w->inside[i];
	weir_gate_done(w->g, w->now, &w->inside[i], 1);
	w->away[q->client][q->serial % DEPTH] = false;
	w->inside[i] = w->inside[--w->n_inside];
}

/* Take steps of any length, with requests that come and pass between them. Return 0 when all
 * were taken. */
static int random_steps(struct world *w)
{
	struct weir_err err;
	int rc;

	while ((rc = policy_swap_step(&w->s, w->g, w->now, 1 + rng_below(&w->rng, 3), &err)) > 0) {
		w->now += 100000;
		random_submit(w);
		pass(w);
		finish_one(w);
	}
	return rc;
}

/* Sometimes undo the swap half-way; then everything is as before. */
static bool random_undo(struct world *w)
{
	struct weir_err err;

	if (rng_below(&w->rng, 4) != 0)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (policy_swap_step(&w->s, w->g, w->now, 2, &err) <= 0)
			break;
	while (policy_swap_undo(&w->s, w->g, w->now, 1 + rng_below(&w->rng, 3)))
		random_submit(w);
	return true;
}

static void random_swap(struct world *w)
{
	struct policy_swap_how how = {.from = w->p};
	struct weir_policy *next;
	struct weir_err err;
	char text[4096];

	random_policy(&w->rng, text, sizeof(text));
	next = parse(text);
	how.to = next;
	n_again = 0;
	CHECK_INT(policy_swap_start(&w->s, &how, &err), 0);
	if (w->p && random_undo(w)) {
		weir_policy_free(next);
		return;
	}
	if (w->p)
		CHECK_INT(random_steps(w), 0);
	else
		while (policy_swap_step(&w->s, w->g, w->now, 1, &err) > 0)
			;
	for (unsigned c = 0; c < CLIENTS; c++)
		w->node[c] = node_of(w, next, c);
	policy_swap_finish(&w->s, w->g, w->now, NULL, 0, moves_away, collect, w);
	for (size_t i = 0; i < n_again; i++)
		again[i]->tenant = w->node[((struct sent *)(void *)again[i])->client];
	CHECK_INT(weir_gate_submit(w->g, w->now, again, n_again), 0);
	weir_policy_free(w->p);
	w->p = next;
}

static void drain(struct world *w)
{
	for (unsigned i = 0; i < 100000 && w->passed < w->submitted; i++) {
		pass(w);
		while (w->n_inside)
			finish_one(w);
		w->now += WEIR_MS;
	}
	CHECK_INT(w->passed, w->submitted);
	for (int i = 0; i < 2; i++) /* the rest of a pass, and a whole one */
		CHECK(!policy_swap_sweep(&w->s, w->g, SIZE_MAX, NULL, NULL));
	CHECK_INT(w->s.n_leaving, 0);
}

static void random_case(uint64_t seed)
{
	static struct world w;
	struct weir_gate_totals totals;

	memset(&w, 0, sizeof(w));
	rng_init(&w.rng, seed, "policy-swap");
	w.g = gate_new(INSIDE);
	w.now = 1;
	random_swap(&w);
	for (unsigned i = 0; i < 4000; i++) {
		switch (rng_below(&w.rng, 8)) {
		case 0:
			if (rng_below(&w.rng, 4) == 0)
				random_swap(&w);
			break;
		case 1:
			policy_swap_sweep(&w.s, w.g, 1 + rng_below(&w.rng, 4), NULL, NULL);
			break;
		case 2:
		case 3:
		case 4:
			random_submit(&w);
			break;
		case 5:
			pass(&w);
			break;
		case 6:
			finish_one(&w);
			break;
		default:
			w.now += (weir_time)rng_below(&w.rng, 200 * WEIR_US);
		}
	}
	CHECK(w.submitted > 500 && w.moves > 50);
	drain(&w);
	weir_gate_get_totals(w.g, w.now, &totals);
	CHECK_INT(totals.queued, 0);
	CHECK_INT(totals.in_flight, 0);
	CHECK_INT(totals.submitted, w.submitted);
	CHECK_INT(totals.served, w.submitted);
	policy_swap_free(&w.s);
	weir_gate_free(w.g);
	weir_policy_free(w.p);
}

static void test_random(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		random_case(seed);
}

int main(void)
{
	RUN(test_stays);
	RUN(test_leaves);
	RUN(test_some_move);
	RUN(test_all_or_nothing);
	RUN(test_part);
	RUN(test_rows);
	RUN(test_random);
	return 0;
}
