/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants that have just become busy: each call of weir_gate_next examines some, in the order of
 * their numbers, from where the last call ended; none is forgotten, for any number of tenants
 * and any positions of their bits. */
#include <weir/gate.h>
#include "test.h"

#define ASKED 24     /* requests per call, which examines as many leaves */
#define LOOKS 32     /* and 8 more (gate.h) */
#define MOST  270000 /* nodes: more than one word of the third level, 2^18 */

static struct weir_gate *g;
static struct weir_req reqs[256], *out[256];
static unsigned n_reqs;

/* Start with leaves 1 … n. */
static void start(uint32_t n)
{
	struct weir_gate_config config = {.nodes = n + 1, .window = 256};
	weir_node node;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &node), 0);
	n_reqs = 0;
}

static void submit(weir_node leaf)
{
	struct weir_req *r = &reqs[n_reqs++];

	CHECK(n_reqs <= 256);
	*r = (struct weir_req){.tenant = leaf};
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
}

/* Check that they pass in this order. */
static void pass(const weir_node *leaves, size_t n)
{
	CHECK_INT(weir_gate_next(g, 0, out, n), n);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(out[i]->tenant, leaves[i]);
}

/* Leaves far apart, on both sides of the ends of words. */
static void wherever_they_are(void)
{
	static const weir_node far[] = {1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 8191, 8192,
		262143, 262144, 262145, 266239, 266240, MOST};
	enum { N = sizeof far / sizeof far[0] };

	start(MOST);
	for (unsigned i = 0; i < N; i++) { /* one at a time */
		submit(far[i]);
		pass(&far[i], 1);
		CHECK_INT(weir_gate_wakeup(g, 0), WEIR_NEVER);
	}
	for (unsigned i = 0; i < N; i++) /* all, in any order of arrival */
		submit(far[i * 7 % N]);
	CHECK_INT(weir_gate_wakeup(g, 0), 0);
	CHECK_INT(weir_gate_next(g, 0, out, N), N);
	for (unsigned i = 0; i < N; i++) {
		bool found = false;

		for (unsigned k = 0; k < N; k++)
			found |= out[k]->tenant == far[i];
		CHECK(found);
	}
	weir_gate_free(g);
}

/* A call examines LOOKS leaves, beginning with `first`, and lets ASKED of them pass. The next
 * call examines the leaves after these, to the last, and then starts again. Equal requests pass
 * in the order in which they were examined. */
static void goes_on_where_it_ended(weir_node first, const weir_node *behind, size_t n)
{
	start(10000);
	for (weir_node i = 0; i < LOOKS; i++)
		submit(first + i);
	CHECK_INT(weir_gate_next(g, 0, out, ASKED), ASKED);
	for (size_t i = 0; i < n; i++)
		submit(behind[n - 1 - i]);
	CHECK_INT(weir_gate_next(g, 0, out, LOOKS - ASKED + n), LOOKS - ASKED + n);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(out[LOOKS - ASKED + i]->tenant, behind[i]);
	weir_gate_free(g);
}
#define GOES_ON(first, ...)                                                                        \
	goes_on_where_it_ended(first, (const weir_node[]){__VA_ARGS__},                            \
		sizeof(const weir_node[]){__VA_ARGS__} / sizeof(weir_node))

static void in_the_order_of_numbers(void)
{
	GOES_ON(5, 37, 40, 63, 64, 100, 4500, 5000, 3); /* the next number, the same word, others */
	GOES_ON(5, 100, 3);
	GOES_ON(5, 64, 3, 4);
	GOES_ON(5, 200, 4096, 3);
	GOES_ON(32, 64, 100, 20, 63);         /* at the end of a word */
	GOES_ON(4064, 4096, 4500, 20, 100);   /* at the end of a word of words */
	GOES_ON(4200, 4500, 100, 4100, 4199); /* (some before it in the same word) */
	GOES_ON(4200, 9000, 100, 4100);
	GOES_ON(9968, 10000, 3);      /* only the last is left */
	GOES_ON(9969, 3, 4500, 9968); /* it ended with the last */
}

/* Leaves with higher numbers are examined, however many with lower numbers come. */
static void no_leaf_is_skipped(void)
{
	bool served = false;

	start(300);
	submit(299);
	for (weir_node call = 0; call < 5; call++) {
		size_t n;

		for (weir_node i = 0; i < 40; i++)
			submit(161 - 40 * call + i);
		n = weir_gate_next(g, 0, out, ASKED);
		CHECK_INT(n, ASKED);
		weir_gate_done(g, 0, out, n);
		for (size_t i = 0; i < n; i++)
			served |= out[i]->tenant == 299;
	}
	CHECK(served);
	weir_gate_free(g);
}

/* A leaf stands in its lane with reads, and so many others come that a call does not examine it,
 * when it gets a flush: its read passes nevertheless. */
static void stands_in_line_already(void)
{
	struct weir_bucket_spec max = {.kind = WEIR_HOLD, .rate = 1000, .size = 100};
	struct weir_knob k = {
		.node = 100, .kind = WEIR_KNOB_BUCKETS, .buckets = &max, .n_buckets = 1};
	struct weir_req flush = {.tenant = 100, .op = WEIR_FLUSH}, *r = &flush;

	start(100);
	CHECK_INT(weir_gate_set(g, 0, &k, 1, NULL), 0);
	submit(100);
	submit(100);
	CHECK_INT(weir_gate_next(g, 0, out, 0), 0);
	for (weir_node i = 1; i <= LOOKS + 8; i++)
		submit(i);
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_next(g, 0, out, 1), 1);
	CHECK(out[0] == &reqs[0]);
	weir_gate_free(g);
}

/* The number of leaves that a call examines: as many as requests are asked for, but at least 24
 * and at most 120, and 8 more. All are held by their max, which is found when they are examined. */
static void so_many_at_a_time(void)
{
	static const size_t asked[] = {0, 1, 24, 25, 119, 120, 121, 256};
	static const unsigned looks[] = {32, 32, 32, 33, 127, 128, 128, 128};

	for (unsigned k = 0; k < sizeof asked / sizeof asked[0]; k++) {
		unsigned held = 0;

		start(200);
		for (weir_node i = 1; i <= 200; i++) {
			struct weir_bucket_spec max = {.kind = WEIR_HOLD, .rate = 0, .size = 1};
			struct weir_knob set = {.node = i,
				.kind = WEIR_KNOB_BUCKETS,
				.buckets = &max,
				.n_buckets = 1};
			struct weir_req first = {.tenant = i}, *r = &first;

			CHECK_INT(weir_gate_set(g, 0, &set, 1, NULL), 0);
			CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
			CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
			weir_gate_done(g, 0, &r, 1);
		}
		for (weir_node i = 1; i <= 200; i++)
			submit(i);
		CHECK_INT(weir_gate_next(g, 0, out, asked[k]), 0);
		for (weir_node i = 1; i <= 200; i++) {
			struct weir_gate_stats s;

			CHECK_INT(weir_gate_get_stats(g, 0, i, &s), 0);
			held += s.cause == WEIR_WAIT_MAX;
		}
		CHECK_INT(held, looks[k]);
		CHECK_INT(weir_gate_wakeup(g, 0), 0);
		weir_gate_free(g);
	}
}

int main(void)
{
	RUN(wherever_they_are);
	RUN(in_the_order_of_numbers);
	RUN(no_leaf_is_skipped);
	RUN(stands_in_line_already);
	RUN(so_many_at_a_time);
	return 0;
}
