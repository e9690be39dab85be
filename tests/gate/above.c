/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets of inner nodes: which requests wait when one refuses a request, until when, and the
 * causes that are reported meanwhile. */
#include "device.h"

static struct weir_req *submit_cost(
	struct bench *b, weir_node n, enum weir_op op, uint32_t bytes, uint32_t requests)
{
	struct weir_req *r = &b->reqs[b->n++];

	CHECK(b->n <= sizeof b->reqs / sizeof b->reqs[0]);
	*r = (struct weir_req){
		.tenant = n, .bytes = bytes, .requests = requests, .op = (uint8_t)op};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	return r;
}

static struct weir_req *submit_op(struct bench *b, weir_node n, enum weir_op op, uint32_t bytes)
{
	return submit_cost(b, n, op, bytes, 1);
}

static struct weir_gate_stats stats(struct bench *b, weir_node n)
{
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(b->g, b->now, n, &s), 0);
	return s;
}

/* Check the cause for which the leaf's oldest request waits, and the node of its bucket. */
static void waits_for(struct bench *b, weir_node n, enum weir_cause cause, weir_node blocker)
{
	CHECK_INT(stats(b, n).cause, cause);
	CHECK_INT(stats(b, n).blocker, blocker);
}

/* ---- how many heads a call tries */

#define GROUPS 40

/* A call for n requests finds at most 8 + n heads that are refused above, and reports that there
 * may be more. */
static void some_at_a_time(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node groups[GROUPS], leaves[GROUPS], last;
	struct weir_req *out[100], *r = NULL;
	unsigned calls = 0;

	for (unsigned i = 0; i < GROUPS; i++) {
		groups[i] = leaf(&b, WEIR_ROOT, 1);
		leaves[i] = leaf(&b, groups[i], 1);
		buckets(&b, groups[i], &(struct weir_bucket_spec){.rate = 0.01, .size = 1}, 1);
		submit_op(&b, leaves[i], WEIR_READ, 1);
	}
	last = leaf(&b, WEIR_ROOT, 1);
	while (weir_gate_wakeup(b.g, 0) == 0)
		weir_gate_done(b.g, 0, out, weir_gate_next(b.g, 0, out, 100));
	for (unsigned i = 0; i < 10; i++) { /* so that it is not next */
		submit_op(&b, last, WEIR_READ, 1);
		finish(&b, pass(&b));
	}
	for (unsigned i = 0; i < GROUPS; i++)
		submit_op(&b, leaves[i], WEIR_READ, 1);
	submit_op(&b, last, WEIR_READ, 1);
	CHECK_INT(weir_gate_next(b.g, 0, NULL, 0), 0); /* all heads have been tried */
	CHECK_INT(weir_gate_next(b.g, 0, NULL, 0), 0);
	for (; !r; calls++) {
		unsigned before = 0, after = 0;

		CHECK(calls < GROUPS);
		CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
		for (unsigned i = 0; i < GROUPS; i++)
			before += stats(&b, leaves[i]).cause == WEIR_WAIT_ABOVE;
		r = pass(&b);
		for (unsigned i = 0; i < GROUPS; i++)
			after += stats(&b, leaves[i]).cause == WEIR_WAIT_ABOVE;
		CHECK(after - before <= 8 + 1);
		CHECK(r || after - before == 8 + 1);
	}
	CHECK_INT(r->tenant, last);
	for (; weir_gate_wakeup(b.g, 0) == 0; calls++) { /* the remaining groups */
		CHECK(calls < GROUPS);
		CHECK(!pass(&b));
	}
	CHECK(calls >= GROUPS / 9);
	CHECK(weir_gate_wakeup(b.g, 0) > 10 * WEIR_SEC); /* (it may be early) */
	weir_gate_free(b.g);
}

/* ---- which requests wait with a refused one */

struct pair {
	struct bench b;
	weir_node group, x, y;
};

static struct pair pair_new(double window, const struct weir_bucket_spec *specs, unsigned n)
{
	struct pair p = {.b = bench_new((struct weir_gate_config){.window = window})};

	p.group = leaf(&p.b, WEIR_ROOT, 1);
	p.x = leaf(&p.b, p.group, 1);
	p.y = leaf(&p.b, p.group, 1);
	buckets(&p.b, p.group, specs, n);
	return p;
}

/* A bucket of reads and trims refuses a large read: a small trim must not pass it. */
static void a_bucket_holds_all_kinds_it_counts(void)
{
	const struct weir_bucket_spec spec = {.unit = WEIR_UNIT_BYTES,
		.ops = WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_TRIM),
		.rate = 1,
		.size = 10};
	struct pair p = pair_new(100, &spec, 1);
	struct weir_req *large, *trim;

	submit_op(&p.b, p.x, WEIR_READ, 4);
	submit_op(&p.b, p.y, WEIR_READ, 1);
	CHECK(pass(&p.b) && pass(&p.b));
	large = submit_op(&p.b, p.x, WEIR_READ, 8); /* at 3 s */
	CHECK(!pass(&p.b));
	trim = submit_op(&p.b, p.y, WEIR_TRIM, 1);
	CHECK(!pass(&p.b));
	p.b.now = 3 * WEIR_SEC + 2 * WEIR_US;
	CHECK(pass(&p.b) == large);
	p.b.now = 5 * WEIR_SEC;
	CHECK(pass(&p.b) == trim);
	weir_gate_free(p.b.g);
}

/* Two buckets refuse a request: it is tried again when the later of them admits it, in either
 * order. */
static void the_last_to_admit(void)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct weir_bucket_spec specs[] = {
			{.rate = i ? 1 : 0.5, .size = 1}, {.rate = i ? 0.5 : 1, .size = 1}};
		struct pair p = pair_new(100, specs, 2);

		submit_op(&p.b, p.x, WEIR_READ, 1);
		CHECK(pass(&p.b));
		submit_op(&p.b, p.x, WEIR_READ, 1);
		CHECK(!pass(&p.b));
		weir_time at = weir_gate_wakeup(p.b.g, 0);

		CHECK(at >= 2 * WEIR_SEC && at <= 2 * WEIR_SEC + 2 * WEIR_US);
		p.b.now = at;
		CHECK(pass(&p.b));
		weir_gate_free(p.b.g);
	}
}

/* A bucket for reads stops them until 1 s, and a bucket for both kinds then refuses a write
 * until 2 s: the read waits as long. */
static void stopped_for_longer(void)
{
	const struct weir_bucket_spec specs[] = {{.ops = WEIR_OPS(WEIR_READ), .rate = 1, .size = 1},
		{.unit = WEIR_UNIT_BYTES, .rate = 0.5, .size = 10}};
	struct pair p = pair_new(100, specs, 2);
	struct weir_req *read, *write;

	submit_op(&p.b, p.x, WEIR_READ, 1);
	CHECK(pass(&p.b));
	read = submit_op(&p.b, p.x, WEIR_READ, 1);
	CHECK(!pass(&p.b));
	write = submit_op(&p.b, p.y, WEIR_WRITE, 10);
	CHECK(!pass(&p.b));
	p.b.now = 1500 * WEIR_MS;
	CHECK(!pass(&p.b));
	p.b.now = 2 * WEIR_SEC + 2 * WEIR_US;
	CHECK(pass(&p.b) == write);
	p.b.now = 20 * WEIR_SEC;
	CHECK(pass(&p.b) == read);
	weir_gate_free(p.b.g);
}

/* A write stands in its lane when the group's max becomes one for reads only: a sibling's
 * refused read must not hold it. */
static void limits_that_become_of_reads(void)
{
	struct pair p = pair_new(1, &(struct weir_bucket_spec){.rate = 1000, .size = 100}, 1);
	const struct weir_bucket_spec reads = {.ops = WEIR_OPS(WEIR_READ), .rate = 0.01, .size = 1};
	struct weir_req *read, *write;

	knob(&p.b, p.y, WEIR_KNOB_WEIGHT, 100); /* it is next */
	read = submit_op(&p.b, p.y, WEIR_READ, 1);
	CHECK(pass(&p.b) == read);
	write = submit_op(&p.b, p.x, WEIR_WRITE, 1);
	CHECK(!pass(&p.b)); /* it stands in its lane */
	buckets(&p.b, p.group, &reads, 1);
	finish(&p.b, read);
	read = submit_op(&p.b, p.y, WEIR_READ, 1);
	submit_op(&p.b, p.y, WEIR_READ, 1);
	CHECK(pass(&p.b) == read);
	finish(&p.b, read);
	CHECK(pass(&p.b) == write);
	waits_for(&p.b, p.y, WEIR_WAIT_ABOVE, p.group);
	weir_gate_free(p.b.g);
}

/* ---- reported causes */

/* From the moment the window is full, requests that an ancestor's bucket would refuse wait for
 * that bucket, and no others do: of each kind, and even if another tenant is next. */
static void behind_a_full_window(void)
{
	const struct weir_bucket_spec specs[] = {
		{.ops = WEIR_OPS(WEIR_READ), .rate = 0.01, .size = 1},
		{.ops = WEIR_OPS(WEIR_WRITE), .rate = 0.01, .size = 1}};
	struct pair p = pair_new(1, specs, 2);
	weir_node z = leaf(&p.b, WEIR_ROOT, 1);
	struct weir_req *r;

	submit_op(&p.b, p.x, WEIR_WRITE, 1);
	submit_op(&p.b, p.x, WEIR_WRITE, 1);
	for (unsigned i = 0; i < 3; i++)
		submit_op(&p.b, z, WEIR_WRITE, 1);
	CHECK((r = pass(&p.b)) && r->tenant == p.x);
	waits_for(&p.b, p.x, WEIR_WAIT_ABOVE, p.group);
	waits_for(&p.b, z, WEIR_WAIT_WINDOW, z);
	finish(&p.b, r);
	submit_op(&p.b, p.y, WEIR_READ, 1);
	submit_op(&p.b, p.y, WEIR_READ, 1);
	CHECK((r = pass(&p.b)) && r->tenant == z);
	waits_for(&p.b, p.y, WEIR_WAIT_WINDOW, p.y);
	p.b.now = 10;
	finish(&p.b, r);
	CHECK((r = pass(&p.b)) && r->tenant == p.y);
	waits_for(&p.b, p.x, WEIR_WAIT_ABOVE, p.group);
	waits_for(&p.b, p.y, WEIR_WAIT_ABOVE, p.group);
	p.b.now = 25;
	CHECK_NEAR(stats(&p.b, p.x).wait_ns[WEIR_WAIT_ABOVE], 25, 0);
	CHECK_NEAR(stats(&p.b, p.y).wait_ns[WEIR_WAIT_ABOVE], 15, 0);
	CHECK_INT(weir_gate_held(p.b.g, p.b.now, p.group), 25);
	CHECK_INT(weir_gate_held(p.b.g, p.b.now, p.x), 0);
	weir_gate_free(p.b.g);
}

/* While an ancestor is stopped for the rest, all requests below it count as stopped, even if a
 * higher class may pass: and for no other cause. */
static void a_class_before_the_stopped_rest(void)
{
	const struct weir_bucket_spec spec = {.unit = WEIR_UNIT_BYTES, .rate = 0.01, .size = 10};
	struct pair p = pair_new(2, &spec, 1);
	struct weir_gate_stats s;

	knob(&p.b, p.y, WEIR_KNOB_PRIORITY, 0);
	submit_op(&p.b, p.x, WEIR_READ, 5);
	CHECK(pass(&p.b));
	submit_op(&p.b, p.x, WEIR_READ, 10);
	CHECK(!pass(&p.b));
	submit_op(&p.b, p.y, WEIR_READ, 1);
	submit_op(&p.b, p.y, WEIR_READ, 1);
	CHECK(pass(&p.b)->tenant == p.y); /* the window is full */
	p.b.now = 100;
	s = stats(&p.b, p.y);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_ABOVE], 100, 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_WINDOW], 0, 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN], 0, 0);
	weir_gate_free(p.b.g);
}

/* Root, outer, inner, leaf. The outer bucket stops requests for 1 s, the inner one for another
 * second. Each node reports its own time only; the leaf waited for both. */
static void one_above_the_other(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node outer = leaf(&b, WEIR_ROOT, 1), inner = leaf(&b, outer, 1),
		  n = leaf(&b, inner, 1), other = leaf(&b, outer, 1);
	const weir_time late = 2 * WEIR_US;

	buckets(&b, outer, &(struct weir_bucket_spec){.rate = 1, .size = 1}, 1);
	buckets(&b, inner, &(struct weir_bucket_spec){.rate = 0.5, .size = 1}, 1);
	submit_op(&b, n, WEIR_READ, 1);
	CHECK(pass(&b));
	b.now = 100 * WEIR_MS;
	submit_op(&b, other, WEIR_READ, 1);
	CHECK(!pass(&b)); /* until 1 s */
	b.now = 500 * WEIR_MS;
	submit_op(&b, n, WEIR_READ, 1); /* until 2 s, but it first waits for the outer bucket */
	CHECK(!pass(&b));
	waits_for(&b, n, WEIR_WAIT_ABOVE, outer);
	b.now = 800 * WEIR_MS;
	CHECK_NEAR(stats(&b, n).wait_ns[WEIR_WAIT_ABOVE], 3e8, 1e-9);
	CHECK_INT(weir_gate_held(b.g, b.now, outer), 700 * WEIR_MS);
	CHECK_INT(weir_gate_held(b.g, b.now, inner), 0);
	b.now = WEIR_SEC + late;
	CHECK(pass(&b)->tenant == other);
	CHECK(!pass(&b)); /* the leaf is next now, and the inner bucket refuses it */
	waits_for(&b, n, WEIR_WAIT_ABOVE, inner);
	b.now = 1500 * WEIR_MS;
	CHECK_NEAR(stats(&b, n).wait_ns[WEIR_WAIT_ABOVE], 1e9, 1e-9);
	CHECK_INT(weir_gate_held(b.g, b.now, outer), 900 * WEIR_MS + late);
	CHECK_INT(weir_gate_held(b.g, b.now, inner), 500 * WEIR_MS - late);
	b.now = 2 * WEIR_SEC + late;
	CHECK(pass(&b)->tenant == n);
	CHECK_NEAR(stats(&b, n).wait_ns[WEIR_WAIT_ABOVE], 1.5e9 + (double)late, 1e-9);
	b.now = 3 * WEIR_SEC;
	CHECK_INT(weir_gate_held(b.g, b.now, outer), 900 * WEIR_MS + late);
	CHECK_INT(weir_gate_held(b.g, b.now, inner), WEIR_SEC);
	CHECK_NEAR(stats(&b, n).wait_ns[WEIR_WAIT_ABOVE], 1.5e9 + (double)late, 1e-9);
	weir_gate_free(b.g);
}

/* A leaf keeps its held time when it gets children, and when it has lost them again. */
static void held_before_and_after(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node n = leaf(&b, WEIR_ROOT, 1), child;
	struct weir_req *r;

	buckets(&b, n, &(struct weir_bucket_spec){.rate = 1, .size = 1}, 1);
	submit_op(&b, n, WEIR_READ, 1);
	finish(&b, pass(&b));
	submit_op(&b, n, WEIR_READ, 1);
	CHECK(!pass(&b));
	b.now = WEIR_SEC + 2 * WEIR_US;
	CHECK((r = pass(&b)));
	finish(&b, r);
	CHECK_INT(weir_gate_held(b.g, b.now, n), b.now);
	child = leaf(&b, n, 1);
	CHECK_INT(weir_gate_held(b.g, b.now, n), b.now);
	submit_op(&b, child, WEIR_READ, 1);
	CHECK(!pass(&b));
	b.now = 2 * WEIR_SEC + 2 * WEIR_US;
	CHECK((r = pass(&b)));
	finish(&b, r);
	CHECK_INT(weir_gate_held(b.g, b.now, n), b.now);
	CHECK_INT(weir_gate_remove(b.g, child), 0);
	CHECK_INT(weir_gate_held(b.g, b.now + WEIR_SEC, n), b.now);
	weir_gate_free(b.g);
}

/* Tenants of the least and of the greatest weight, and a bucket of the root that counts reads only: children that are
 * held and released again and again moved V by the greatest weight over the least, beyond the range of a tag, and the
 * choice of the next request read an empty list. */
static void weights_far_apart(void)
{
	static const struct step {
		enum { WAIT, SUBMIT, NEXT } what;
		unsigned leaf; /* SUBMIT */
		enum weir_op op;
		uint32_t n; /* WAIT: ms; SUBMIT: cost in requests; NEXT: how many may pass */
	} steps[] = {{SUBMIT, 1, WEIR_READ, 200}, {NEXT, .n = 3}, {SUBMIT, 1, WEIR_READ, 1},
		{SUBMIT, 1, WEIR_FLUSH, 1}, {SUBMIT, 0, WEIR_READ, 200}, {NEXT, .n = 2},
		{SUBMIT, 2, WEIR_WRITE, 1}, {SUBMIT, 1, WEIR_FLUSH, 1}, {SUBMIT, 2, WEIR_WRITE, 1},
		{SUBMIT, 3, WEIR_FLUSH, 1}, {SUBMIT, 0, WEIR_FLUSH, 200}, {SUBMIT, 3, WEIR_READ, 1},
		{NEXT, .n = 3}, {WAIT, .n = 1000}, {NEXT, .n = 8}, {WAIT, .n = 1000},
		{NEXT, .n = 8}, {WAIT, .n = 1000}, {NEXT, .n = 8}};
	static const double weight[] = {1 << 20, 1.0 / 1024, 1, 1.0 / 1024};
	struct bench b = bench_new((struct weir_gate_config){.window = 1000});
	weir_node leaves[4];
	struct weir_req *out[8];
	size_t passed = 0;

	for (unsigned i = 0; i < 4; i++)
		leaves[i] = leaf(&b, WEIR_ROOT, weight[i]);
	buckets(&b, WEIR_ROOT,
		&(struct weir_bucket_spec){.ops = WEIR_OPS(WEIR_READ), .rate = 1000, .size = 1}, 1);
	for (const struct step *s = steps; s < steps + sizeof steps / sizeof *steps; s++) {
		if (s->what == SUBMIT)
			submit_cost(&b, leaves[s->leaf], s->op, 0, s->n);
		else if (s->what == NEXT)
			passed += weir_gate_next(b.g, b.now, out, s->n);
		b.now += s->what == WAIT ? s->n * WEIR_MS : 0;
	}
	CHECK_INT(passed, b.n);
	weir_gate_free(b.g);
}

/* A write that waited already when a bucket of reads was set above it waits for the window in bytes, and not for that
 * bucket, too. */
static void one_cause_at_a_time(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 9, .window_bytes = 1000});
	weir_node small = leaf(&b, WEIR_ROOT, 1), reader = leaf(&b, WEIR_ROOT, 1),
		  writer = leaf(&b, WEIR_ROOT, 1);

	submit_op(&b, writer, WEIR_WRITE, 5000);
	buckets(&b, WEIR_ROOT,
		&(struct weir_bucket_spec){.unit = WEIR_UNIT_BYTES,
			.ops = WEIR_OPS(WEIR_READ),
			.rate = 100,
			.size = 10},
		1);
	submit_op(&b, reader, WEIR_READ, 5000);
	submit_op(&b, small, WEIR_READ, 3);
	struct weir_req *r = pass(&b);

	CHECK(r && r->tenant == small);
	CHECK(!pass(&b));
	b.now = WEIR_MS;
	waits_for(&b, writer, WEIR_WAIT_WINDOW, writer);
	struct weir_gate_stats s = stats(&b, writer);

	CHECK_INT(s.wait_ns[WEIR_WAIT_WINDOW], WEIR_MS);
	CHECK_INT(s.wait_ns[WEIR_WAIT_ABOVE], 0);
	CHECK_INT(s.wait_ns[WEIR_WAIT_TURN], 0);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(some_at_a_time);
	RUN(a_bucket_holds_all_kinds_it_counts);
	RUN(the_last_to_admit);
	RUN(stopped_for_longer);
	RUN(limits_that_become_of_reads);
	RUN(behind_a_full_window);
	RUN(a_class_before_the_stopped_rest);
	RUN(one_above_the_other);
	RUN(held_before_and_after);
	RUN(weights_far_apart);
	RUN(one_cause_at_a_time);
	return 0;
}
