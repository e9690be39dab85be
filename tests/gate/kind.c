/* SPDX-License-Identifier: BSD-3-Clause */
/* A limit holds only the kinds of requests that it counts: one sentence of gate.h or kind.h per
 * function. */
#include "base/rng.h"
#include "device.h"

#define READS    WEIR_OPS(WEIR_READ)
#define WRITES   (WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM))
#define CLIENTS  16
#define PER_SLOT 128

static struct weir_req *submit_op(struct bench *b, weir_node n, enum weir_op op, uint32_t bytes)
{
	struct weir_req *r = &b->reqs[b->n++];

	CHECK(b->n <= sizeof b->reqs / sizeof b->reqs[0]);
	*r = (struct weir_req){.tenant = n, .bytes = bytes, .op = (uint8_t)op};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	return r;
}

static struct weir_bucket_spec max_of(unsigned ops, enum weir_unit unit, double rate, double size)
{
	return (struct weir_bucket_spec){
		.kind = WEIR_HOLD, .unit = unit, .ops = (uint8_t)ops, .rate = rate, .size = size};
}

/* ---- closed loops: clients with a fixed number of outstanding requests of a kind */

struct client {
	weir_node tenant;
	enum weir_op op;
	unsigned depth;
	uint32_t cost; /* in requests; 0: 1 */
	uint64_t served;
	struct weir_req reqs[PER_SLOT];
};

struct load {
	struct weir_gate *g;
	weir_time now, service;
	struct client *clients;
	unsigned n;
	struct weir_req *inside[CLIENTS * PER_SLOT];
	weir_time ends[CLIENTS * PER_SLOT];
	unsigned n_inside;
	struct rng rng;
};

static void load_submit(struct load *l, struct client *c, struct weir_req *r)
{
	*r = (struct weir_req){.tenant = c->tenant,
		.op = (uint8_t)c->op,
		.requests = c->cost,
		.bytes = 4096,
		.user = c};
	CHECK_INT(weir_gate_submit(l->g, l->now, &r, 1), 0);
}

static void load_start(struct load *l)
{
	rng_init(&l->rng, 1, "kind");
	for (unsigned i = 0; i < l->n; i++)
		for (unsigned k = 0; k < l->clients[i].depth; k++)
			load_submit(l, &l->clients[i], &l->clients[i].reqs[k]);
}

/* Run until a time. Each request is in the device for `service`, give or take a half: otherwise
 * all would complete together, and the next tenant at a new token would not be random. */
static void load_run(struct load *l, weir_time until)
{
	while (l->now < until) {
		struct weir_req *out[64];
		size_t n = weir_gate_next(l->g, l->now, out, 64);
		weir_time to = weir_gate_wakeup(l->g, l->now);

		for (size_t i = 0; i < n; i++) {
			l->inside[l->n_inside] = out[i];
			l->ends[l->n_inside++] =
				l->now + l->service / 2 +
				(weir_time)rng_below(&l->rng, (uint64_t)l->service);
		}
		for (unsigned i = 0; i < l->n_inside; i++)
			to = l->ends[i] < to ? l->ends[i] : to;
		CHECK(to < WEIR_NEVER);
		l->now = to;
		for (unsigned i = 0; i < l->n_inside;) {
			if (l->ends[i] > l->now) {
				i++;
				continue;
			}
			struct weir_req *r = l->inside[i];
			struct client *c = r->user;

			l->inside[i] = l->inside[--l->n_inside];
			l->ends[i] = l->ends[l->n_inside];
			weir_gate_done(l->g, l->now, &r, 1);
			c->served++;
			load_submit(l, c, r);
		}
	}
}

static double rate(const struct client *c, weir_time span)
{
	return (double)c->served / ((double)span / 1e9);
}

/* A max for reads and one for writes, with a reader and a writer: each reaches its own. */
static void each_kind_has_its_max(void)
{
	static struct client clients[3];
	static struct load l;
	const unsigned depths[][2] = {{16, 16}, {1, 64}, {64, 1}};

	for (unsigned k = 0; k < 3; k++) {
		weir_node n;

		memset(clients, 0, sizeof clients);
		l = (struct load){.service = 100 * WEIR_US, .clients = clients, .n = 2};
		CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 32}, &l.g), 0);
		CHECK_INT(weir_gate_add(l.g, WEIR_ROOT, &n), 0);
		struct weir_bucket_spec specs[] = {max_of(READS, WEIR_UNIT_REQUESTS, 3000, 30),
			max_of(WRITES, WEIR_UNIT_REQUESTS, 500, 5)};
		struct weir_knob knob = {
			.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = specs, .n_buckets = 2};

		CHECK_INT(weir_gate_set(l.g, 0, &knob, 1, NULL), 0);
		clients[0] = (struct client){.tenant = n, .op = WEIR_READ, .depth = depths[k][0]};
		clients[1] = (struct client){.tenant = n, .op = WEIR_WRITE, .depth = depths[k][1]};
		load_start(&l);
		load_run(&l, 10 * WEIR_SEC);
		CHECK_NEAR(rate(&clients[0], l.now), 3000, 0.02);
		CHECK_NEAR(rate(&clients[1], l.now), 500, 0.02);
		weir_gate_free(l.g);
	}
}

/* A group's max for writes does not affect a child that reads; children that write share it by
 * weight, also if they read as well; and when the max is removed no tenant catches up. */
static void a_groups_max_for_writes(bool mixed)
{
	static struct client clients[5];
	static struct load l;
	weir_node group, n[3];
	const double weight[] = {1, 1, 3};
	struct weir_bucket_spec spec = max_of(WRITES, WEIR_UNIT_REQUESTS, 200, 1);
	struct weir_knob knob = {.kind = WEIR_KNOB_BUCKETS, .buckets = &spec, .n_buckets = 1};

	memset(clients, 0, sizeof clients);
	l = (struct load){.service = WEIR_MS, .clients = clients, .n = mixed ? 5 : 3};
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 8}, &l.g), 0);
	CHECK_INT(weir_gate_add(l.g, WEIR_ROOT, &group), 0);
	knob.node = group;
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(weir_gate_add(l.g, group, &n[i]), 0);
		CHECK_INT(
			weir_gate_set(l.g, 0,
				&(struct weir_knob){
					.node = n[i], .kind = WEIR_KNOB_WEIGHT, .value = weight[i]},
				1, NULL),
			0);
		clients[i] = (struct client){
			.tenant = n[i], .op = i ? WEIR_WRITE : WEIR_READ, .depth = 16};
	}
	for (unsigned i = 3; i < 5; i++)
		clients[i] = (struct client){.tenant = n[i - 2], .op = WEIR_READ, .depth = 16};
	CHECK_INT(weir_gate_set(l.g, 0, &knob, 1, NULL), 0);
	load_start(&l);
	load_run(&l, 50 * WEIR_SEC);
	double seconds = (double)l.now / 1e9, all = 0;

	for (unsigned i = 0; i < l.n; i++)
		all += (double)clients[i].served;
	CHECK_NEAR(all, 8000 * seconds, 0.01); /* the device is never idle */
	CHECK_NEAR((double)(clients[1].served + clients[2].served), 200 * seconds, 0.02);
	double ratio = (double)clients[2].served / (double)clients[1].served;

	if (!mixed)
		CHECK_NEAR(ratio, 3, 0.02);
	else /* the tenant that is next when a token comes in is random, but by weight */
		CHECK(ratio > 2 && ratio < 5);
	if (mixed) /* the total of each tenant is by weight */
		CHECK_NEAR((double)(clients[2].served + clients[4].served) /
				   (double)(clients[1].served + clients[3].served),
			3, 0.05);
	/* Without the max shares follow the weights, from the first moment on. */
	knob.n_buckets = 0;
	CHECK_INT(weir_gate_set(l.g, l.now, &knob, 1, NULL), 0);
	for (unsigned i = 0; i < l.n; i++)
		clients[i].served = 0;
	load_run(&l, l.now + WEIR_SEC);
	double of[3] = {(double)clients[0].served, (double)(clients[1].served + clients[3].served),
		(double)(clients[2].served + clients[4].served)};

	CHECK_NEAR(of[0], 1600, 0.03);
	CHECK_NEAR(of[1], 1600, 0.03);
	CHECK_NEAR(of[2], 4800, 0.03);
	weir_gate_free(l.g);
}
static void a_group_that_reads_or_writes(void)
{
	a_groups_max_for_writes(false);
}
static void a_group_that_reads_and_writes(void)
{
	a_groups_max_for_writes(true);
}

/* ---- single requests in sequence */

/* kind.h's example: the second write is held, the read and the flush behind it are not. */
static void the_oldest_that_may(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n, &(struct weir_bucket_spec){.ops = WRITES, .rate = 1, .size = 1}, 1);
	struct weir_req *w1 = submit_op(&b, n, WEIR_WRITE, 1), *w2 = submit_op(&b, n, WEIR_TRIM, 1),
			*r = submit_op(&b, n, WEIR_READ, 1), *f = submit_op(&b, n, WEIR_FLUSH, 0);

	CHECK(pass(&b) == w1);
	CHECK(pass(&b) == r);
	CHECK(pass(&b) == f);
	CHECK(!pass(&b));
	b.now = WEIR_SEC + WEIR_MS;
	CHECK(pass(&b) == w2);
	weir_gate_free(b.g);
}

/* Without a bucket that distinguishes kinds the order is that of arrival, flushes included. */
static void the_order_of_arrival(void)
{
	const enum weir_op ops[] = {WEIR_WRITE, WEIR_READ, WEIR_FLUSH, WEIR_TRIM, WEIR_READ,
		WEIR_FLUSH, WEIR_FLUSH, WEIR_WRITE};
	const unsigned n_ops = sizeof ops / sizeof ops[0];

	for (unsigned k = 0; k < 3; k++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 100});
		weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);

		if (k)
			buckets(&b, k == 1 ? n : group,
				&(struct weir_bucket_spec){.rate = 1e6, .size = 1000}, 1);
		for (unsigned i = 0; i < n_ops; i++)
			submit_op(&b, n, ops[i], 512);
		for (unsigned i = 0; i < n_ops; i++)
			CHECK(pass(&b) == &b.reqs[i]);
		weir_gate_free(b.g);
	}
}

/* Small requests of another kind do not pass a large one that a bucket for both kinds refuses. */
static void a_large_one_is_not_starved(void)
{
	for (unsigned above = 0; above < 2; above++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 10});
		weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
		struct weir_bucket_spec specs[] = {
			{.ops = WRITES, .rate = 1000, .size = 10}, /* distinguishes kinds */
			{.unit = WEIR_UNIT_BYTES, .rate = 1000, .size = 1000}};

		buckets(&b, above ? group : n, specs, 2);
		submit_op(&b, n, WEIR_READ, 500);
		CHECK(pass(&b));
		struct weir_req *large = submit_op(&b, n, WEIR_WRITE, 900),
				*small = submit_op(&b, n, WEIR_READ, 100);

		CHECK(!pass(&b));
		b.now = 410 * WEIR_MS;
		CHECK(pass(&b) == large);
		CHECK(!pass(&b));
		b.now = 520 * WEIR_MS;
		CHECK(pass(&b) == small);
		weir_gate_free(b.g);
	}
}

/* A flush waits neither behind held data nor for a bucket of bytes; only for one of requests. */
static void a_flush_waits_for_no_data(void)
{
	for (unsigned above = 0; above < 2; above++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 100});
		weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);

		buckets(&b, above ? group : n,
			&(struct weir_bucket_spec){
				.unit = WEIR_UNIT_BYTES, .rate = 1 << 20, .size = 4096},
			1);
		for (unsigned i = 0; i < 128; i++)
			submit_op(&b, n, WEIR_WRITE, 1 << 20);
		CHECK(pass(&b));
		CHECK(!pass(&b));
		struct weir_req *flush = submit_op(&b, n, WEIR_FLUSH, 0);

		CHECK(pass(&b) == flush);
		buckets(&b, above ? group : n, &(struct weir_bucket_spec){.rate = 10, .size = 1},
			1);
		CHECK(pass(&b)); /* a write takes the token */
		CHECK(!pass(&b));
		flush = submit_op(&b, n, WEIR_FLUSH, 0);
		CHECK(!pass(&b));
		b.now = weir_gate_wakeup(b.g, b.now);
		CHECK(b.now >= 100 * WEIR_MS && b.now <= 101 * WEIR_MS);
		CHECK(pass(&b) == flush);
		CHECK(!pass(&b));
		b.now = weir_gate_wakeup(b.g, b.now);
		CHECK_INT(pass(&b)->op, WEIR_WRITE); /* the next token is for data again */
		weir_gate_free(b.g);
	}
}

/* A stream of flushes does not starve data that waits for the same max: a flush goes before a
 * held request of data once, and then that request goes. Reads that flow beside them change nothing. */
static void flushes_do_not_starve_data(void)
{
	static struct client clients[3];
	static struct load l;

	for (unsigned i = 0; i < 16; i++) {
		bool above = i & 1, reads = i & 2, deep = i & 4;
		uint32_t cost = i & 8 && !above ? 8 : 1;
		struct bench b = bench_new((struct weir_gate_config){.window = 100});
		weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
		struct weir_bucket_spec spec =
			max_of(WRITES | WEIR_OPS(WEIR_FLUSH), WEIR_UNIT_REQUESTS, 90, 2);

		buckets(&b, above ? group : n, &spec, 1);
		clients[0] =
			(struct client){.tenant = n, .op = WEIR_WRITE, .depth = 4, .cost = cost};
		clients[1] = (struct client){.tenant = n, .op = WEIR_FLUSH, .depth = deep ? 8 : 1};
		clients[2] = (struct client){.tenant = n, .op = WEIR_READ, .depth = 4};
		l = (struct load){
			.g = b.g, .service = WEIR_MS, .clients = clients, .n = reads ? 3 : 2};
		load_start(&l);
		load_run(&l, 10 * WEIR_SEC);
		double writes = rate(&clients[0], l.now), flushes = rate(&clients[1], l.now);

		CHECK_NEAR(writes * cost + flushes, 90, 0.02);
		if (deep) /* (the older of both, then) */
			CHECK(writes > 90. / (2 + cost) * 0.9);
		else
			CHECK_NEAR(writes, 90. / (1 + cost), 0.03);
		if (reads)
			CHECK(rate(&clients[2], l.now) > 3000);
		weir_gate_free(b.g);
	}
}

/* A limit of a kind that is set while requests wait takes effect at once, for all of them. */
static void a_limit_that_comes_later(void)
{
	for (unsigned above = 0; above < 2; above++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 100});
		weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1),
			  m = leaf(&b, group, 1);

		for (unsigned i = 0; i < 10; i++) {
			submit_op(&b, n, WEIR_WRITE, 1);
			submit_op(&b, n, WEIR_READ, 1);
			submit_op(&b, m, i % 2 ? WEIR_WRITE : WEIR_READ, 1);
		}
		buckets(&b, above ? group : n,
			&(struct weir_bucket_spec){.ops = WRITES, .rate = 1, .size = 1}, 1);
		unsigned reads = 0, writes = 0;

		for (struct weir_req *r; (r = pass(&b));) {
			reads += r->op == WEIR_READ;
			writes += r->op == WEIR_WRITE && (above || r->tenant == n);
		}
		CHECK_INT(reads, 15);
		CHECK_INT(writes, 1);
		buckets(&b, above ? group : n, NULL, 0); /* and is removed */
		unsigned left = 0;

		while (pass(&b))
			left++;
		CHECK_INT(left, above ? 14 : 9);
		weir_gate_free(b.g);
	}
}

/* A bucket above that ceases to distinguish reads from writes: a tenant that has been idle since keeps their order.
 * (The leaf's own bucket holds a write, and does not count a read without bytes.) */
static void a_limit_above_that_ends(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
	struct weir_bucket_spec own = max_of(0, WEIR_UNIT_BYTES, 1000, 4096),
				wide = max_of(WRITES, WEIR_UNIT_REQUESTS, 1000, 100);

	buckets(&b, n, &own, 1);
	for (unsigned apart = 2; apart-- > 0; b.now += 10 * WEIR_SEC) {
		buckets(&b, group, &wide, apart);
		submit_op(&b, n, WEIR_WRITE, 4096);
		CHECK(pass(&b));
		struct weir_req *held = submit_op(&b, n, WEIR_WRITE, 4096);
		struct weir_req *read = submit_op(&b, n, WEIR_READ, 0);

		CHECK(pass(&b) == (apart ? read : NULL));
		b.now += 5 * WEIR_SEC;
		CHECK(pass(&b) == held);
		CHECK(pass(&b) == (apart ? NULL : read));
	}
	weir_gate_free(b.g);
}

/* Requests of each kind are charged to their cause; the reported head is the oldest. */
static void causes_by_kind(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
	struct weir_gate_stats s;

	buckets(&b, n, &(struct weir_bucket_spec){.ops = WRITES, .rate = 1, .size = 1}, 1);
	struct weir_req *inside = submit_op(&b, n, WEIR_WRITE, 1);

	CHECK(pass(&b) == inside);
	submit_op(&b, n, WEIR_WRITE, 1);
	submit_op(&b, n, WEIR_WRITE, 1);
	submit_op(&b, n, WEIR_READ, 1);
	submit_op(&b, n, WEIR_READ, 1);
	CHECK(!pass(&b));
	b.now = 100 * WEIR_MS;
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_MAX], 2e8, 1e-9);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_WINDOW], 1e8, 1e-9);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN], 1e8, 1e-9);
	CHECK_INT(s.cause, WEIR_WAIT_MAX);
	CHECK_INT(s.oldest, 0);
	CHECK_INT(weir_gate_held(b.g, b.now, n), 100 * WEIR_MS);
	/* The same with the bucket at the parent. */
	buckets(&b, n, NULL, 0);
	buckets(&b, group, &(struct weir_bucket_spec){.ops = WRITES, .rate = 1, .size = 1}, 1);
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW, 2);
	CHECK(pass(&b)->op == WEIR_WRITE);
	CHECK(!pass(&b));
	b.now = 200 * WEIR_MS;
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_ABOVE], 1e8, 1e-9);
	CHECK_INT(s.cause, WEIR_WAIT_ABOVE);
	CHECK_INT(s.blocker, group);
	CHECK_INT(weir_gate_held(b.g, b.now, group), 100 * WEIR_MS);
	weir_gate_free(b.g);
}

static bool is_write(const struct weir_req *r, void *arg)
{
	return r->op == WEIR_WRITE;
}

static void dropped(struct weir_req *r, void *arg)
{
	struct weir_req **last = arg;

	CHECK(!*last || *last < r); /* in the order of arrival */
	*last = r;
}

static void cancelled_by_kind(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *last = NULL, *r;

	buckets(&b, n, &(struct weir_bucket_spec){.ops = WRITES, .rate = 1, .size = 1}, 1);
	for (unsigned i = 0; i < 12; i++)
		submit_op(&b, n, (enum weir_op)(i % 3), 1);
	CHECK_INT(weir_gate_cancel(b.g, b.now, n, is_write, dropped, &last), 4);
	for (unsigned i = 0; i < 8; i++) {
		CHECK((r = pass(&b)));
		CHECK(r == &b.reqs[i / 2 * 3 + i % 2 * 2]);
	}
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	weir_gate_free(b.g);
}

/* A read, which the group's bucket refuses, could pass while an older write was held. When a
 * bucket of tokens refuses the write, and the read with it, the group waits for neither. */
static void a_turn_that_is_over(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1), m = leaf(&b, group, 1);
	struct weir_bucket_spec own[] = {{.ops = WRITES, .rate = 100, .size = 1},
		{.kind = WEIR_LTOKENS, .unit = WEIR_UNIT_BYTES, .size = 10000}};

	buckets(&b, group,
		&(struct weir_bucket_spec){.unit = WEIR_UNIT_BYTES, .rate = 4096, .size = 4096}, 1);
	buckets(&b, n, own, 2);
	knob(&b, n, WEIR_KNOB_LGRANT, 5001);
	submit_op(&b, n, WEIR_WRITE, 1);
	submit_op(&b, m, WEIR_READ, 4095);
	CHECK(pass(&b) && pass(&b));
	submit_op(&b, n, WEIR_WRITE, 9000);
	submit_op(&b, n, WEIR_READ, 4096);
	CHECK(!pass(&b));
	struct weir_req *small = submit_op(&b, m, WEIR_READ, 8);

	b.now = 9 * WEIR_MS;
	CHECK(!pass(&b));
	b.now = 11 * WEIR_MS;
	CHECK(pass(&b) == small);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(each_kind_has_its_max);
	RUN(a_group_that_reads_or_writes);
	RUN(a_group_that_reads_and_writes);
	RUN(the_oldest_that_may);
	RUN(the_order_of_arrival);
	RUN(a_large_one_is_not_starved);
	RUN(a_flush_waits_for_no_data);
	RUN(flushes_do_not_starve_data);
	RUN(a_limit_that_comes_later);
	RUN(a_limit_above_that_ends);
	RUN(causes_by_kind);
	RUN(cancelled_by_kind);
	RUN(a_turn_that_is_over);
	return 0;
}
