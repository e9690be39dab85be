/* SPDX-License-Identifier: BSD-3-Clause */
/* Lustre's TBF, and that our gate with one hold bucket per class behaves the same. */
#include "control/tbf/filter.h"
#include "base/rng.h"
#include <weir/gate.h>
#include "test.h"
#include <errno.h>

static struct tbf *make(unsigned depth, double other)
{
	struct tbf *t;

	CHECK_INT(tbf_new(depth, other, &t), 0);
	return t;
}

static void rules_in_order(void)
{
	struct tbf *t = make(0, 0);
	double rate;

	CHECK_STR(tbf_match(t, "dd.0", &rate), "default");
	CHECK_NEAR(rate, TBF_DEFAULT, 0);
	CHECK_INT(tbf_start(t, "all", "*", 100, NULL), 0);
	CHECK_INT(tbf_start(t, "dd", "dd.* cp.1", 50, NULL), 0); /* newest first */
	CHECK_STR(tbf_match(t, "dd.0", &rate), "dd");
	CHECK_STR(tbf_match(t, "cp.1", &rate), "dd");
	CHECK_STR(tbf_match(t, "cp.10", &rate), "all");
	CHECK_INT(tbf_start(t, "late", "dd.7", 5, "all"), 0); /* after dd, which matches first */
	CHECK_STR(tbf_match(t, "dd.7", &rate), "dd");
	CHECK_INT(tbf_stop(t, "dd"), 0);
	CHECK_STR(tbf_match(t, "dd.7", &rate), "late");
	CHECK_INT(tbf_start(t, "x", "a*c*e", 5, NULL), 0);
	CHECK_STR(tbf_match(t, "abcbcde", &rate), "x");
	CHECK_STR(tbf_match(t, "abcbcdef", &rate), "all");
	CHECK_INT(tbf_start(t, "x", "b", 5, NULL), -EEXIST);
	CHECK_INT(tbf_start(t, "y", "b", 5, "nobody"), -ENOENT);
	CHECK_INT(tbf_start(t, "y", "b", 0, NULL), -EINVAL);
	CHECK_INT(tbf_start(t, "y", " ", 1, NULL), -EINVAL);
	CHECK_INT(tbf_start(t, "a-b", "b", 1, NULL), -EINVAL);
	CHECK_INT(tbf_start(t, "sixteen_letters_", "b", 1, NULL), -EINVAL);
	CHECK_INT(tbf_change(t, "nobody", 5), -ENOENT);
	CHECK_INT(tbf_stop(t, "nobody"), 0);
	CHECK_INT(tbf_stop(t, "default"), -EPERM);
	CHECK_INT(tbf_change(t, "default", 7), 0);
	tbf_free(t);
}

static void a_bucket_of_three(void)
{
	struct tbf *t = make(0, 0);
	uint32_t c;

	CHECK_INT(tbf_wakeup(t, 0), WEIR_NEVER);
	CHECK_INT(tbf_start(t, "slow", "*", 10, NULL), 0);
	for (int i = 0; i < 5; i++)
		CHECK_INT(tbf_submit(t, 0, "job"), 0);
	for (int i = 0; i < 3; i++)
		CHECK(tbf_next(t, 0, &c));
	CHECK(!tbf_next(t, 0, &c));
	CHECK_INT(tbf_wakeup(t, 0), 100 * WEIR_MS);
	CHECK(!tbf_next(t, 100 * WEIR_MS - 1, &c));
	CHECK(tbf_next(t, 100 * WEIR_MS, &c));
	CHECK(tbf_next(t, 200 * WEIR_MS, &c));
	CHECK(!tbf_next(t, WEIR_SEC, &c)); /* nothing waits */
	/* Each of two keys of one rule has the rule's rate and a bucket of its own. */
	CHECK_INT(tbf_submit(t, WEIR_SEC, "other"), 1);
	CHECK(tbf_next(t, WEIR_SEC, &c));
	CHECK_INT(c, 1);
	tbf_free(t);
}

static void a_change_refills_at_the_next_arrival(void)
{
	struct tbf *t = make(0, 0);
	uint32_t c;

	CHECK_INT(tbf_start(t, "r", "*", 1, NULL), 0);
	for (int i = 0; i < 6; i++)
		tbf_submit(t, 0, "job");
	for (int i = 0; i < 3; i++)
		CHECK(tbf_next(t, 0, &c));
	CHECK_INT(tbf_change(t, "r", 1), 0);
	CHECK(!tbf_next(t, 0, &c)); /* not earlier */
	tbf_submit(t, 0, "job");
	for (int i = 0; i < 3; i++)
		CHECK(tbf_next(t, 0, &c));
	CHECK(!tbf_next(t, 0, &c));
	/* A class keeps its state until then if its rule stops. */
	CHECK_INT(tbf_stop(t, "r"), 0);
	CHECK(!tbf_next(t, 0, &c));
	tbf_submit(t, 0, "job");
	CHECK(tbf_next(t, 0, &c));
	tbf_free(t);
}

static void by_deadline(void)
{
	struct tbf *t = make(1, 0);
	uint32_t c;

	CHECK_INT(tbf_start(t, "fast", "fast", 100, NULL), 0);
	CHECK_INT(tbf_start(t, "slow", "slow", 10, NULL), 0);
	for (int i = 0; i < 20; i++) {
		tbf_submit(t, 0, "slow");
		tbf_submit(t, 0, "fast");
	}
	CHECK(tbf_next(t, 0, &c));
	CHECK_INT(c, 0); /* both have a token: first come, first served */
	CHECK(tbf_next(t, 0, &c));
	CHECK_INT(c, 1);
	/* No look for 100 ms: fast's token is due since 10 ms, slow's since now. */
	CHECK(tbf_next(t, 100 * WEIR_MS, &c));
	CHECK_INT(c, 1);
	CHECK(tbf_next(t, 100 * WEIR_MS, &c));
	CHECK_INT(c, 0);
	tbf_free(t);
}

/* ---- the gate instead of the filter */

#define CLASSES  5
#define ARRIVALS 4000

struct arrival {
	weir_time at;
	int who;
};

static int by_time(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;

	return a->at < b->at ? -1 : a->at > b->at;
}

static const double rates[CLASSES] = {10, 37, 100, 250, 1000};
static const char *const names[CLASSES] = {"a", "b", "c", "d", "e"};
static struct arrival arrivals[ARRIVALS];
static weir_time passed[2][CLASSES]
		       [ARRIVALS]; /* time at which the k-th request of each passed: filter, gate */
static size_t n_passed[2][CLASSES];

static void run_filter(void)
{
	struct tbf *t = make(0, 0);
	int who[CLASSES] = {0}; /* by class */
	size_t next = 0;
	weir_time now = 0;

	for (int i = 0; i < CLASSES; i++)
		CHECK_INT(tbf_start(t, names[i], names[i], rates[i], NULL), 0);
	while (now != WEIR_NEVER) {
		uint32_t c;
		weir_time wake;

		for (; next < ARRIVALS && arrivals[next].at <= now; next++) {
			int64_t class = tbf_submit(t, now, names[arrivals[next].who]);

			CHECK(class >= 0 && class < CLASSES);
			who[class] = arrivals[next].who;
		}
		while (tbf_next(t, now, &c))
			passed[0][who[c]][n_passed[0][who[c]]++] = now;
		wake = tbf_wakeup(t, now);
		if (next < ARRIVALS && arrivals[next].at < wake)
			wake = arrivals[next].at;
		now = wake;
	}
	tbf_free(t);
}

static void run_gate(void)
{
	struct weir_gate_config config = {.nodes = CLASSES + 1, .window = 1000000};
	static struct weir_req reqs[ARRIVALS];
	struct weir_gate *g;
	weir_node nodes[CLASSES];
	size_t next = 0;
	weir_time now = 0;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (int i = 0; i < CLASSES; i++) {
		struct weir_bucket_spec b = {WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, rates[i], TBF_DEPTH};
		struct weir_knob k = {0, WEIR_KNOB_BUCKETS, 0, &b, 1};

		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &nodes[i]), 0);
		k.node = nodes[i];
		CHECK_INT(weir_gate_set(g, 0, &k, 1, NULL), 0);
	}
	while (now != WEIR_NEVER) {
		struct weir_req *out;
		weir_time wake;

		for (; next < ARRIVALS && arrivals[next].at <= now; next++) {
			struct weir_req *r = &reqs[next];

			*r = (struct weir_req){
				.tenant = nodes[arrivals[next].who], .user = &arrivals[next]};
			CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		}
		while (weir_gate_next(g, now, &out, 1)) {
			int who = ((struct arrival *)out->user)->who;

			passed[1][who][n_passed[1][who]++] = now;
			weir_gate_done(g, now, &out, 1);
		}
		wake = weir_gate_wakeup(g, now);
		if (wake <= now) /* may be early */
			wake = now + 1;
		if (next < ARRIVALS && arrivals[next].at < wake)
			wake = arrivals[next].at;
		now = wake;
	}
	weir_gate_free(g);
}

static void the_gate_does_the_same(void)
{
	struct rng rng;
	weir_time at[CLASSES] = {0};

	rng_init(&rng, 1, "tbf");
	for (int i = 0; i < ARRIVALS; i++) {
		int who = i % CLASSES;

		/* Bursts and pauses, at the class's mean rate. */
		if (rng_below(&rng, 4) == 0)
			at[who] += (weir_time)rng_exp(&rng, 4e9 / rates[who]);
		arrivals[i] = (struct arrival){at[who], who};
	}
	qsort(arrivals, ARRIVALS, sizeof(*arrivals), by_time);
	run_filter();
	run_gate();
	for (int c = 0; c < CLASSES; c++) {
		CHECK_INT(n_passed[0][c], ARRIVALS / CLASSES);
		CHECK_INT(n_passed[1][c], ARRIVALS / CLASSES);
		for (size_t i = 0; i < n_passed[0][c]; i++) {
			weir_time off = passed[0][c][i] - passed[1][c][i];

			/* The gate's resolution is 2⁻¹⁰ of a request a second. */
			if (off < -WEIR_MS / 10 || off > WEIR_MS / 10)
				FAIL("class %d, request %zu: %lld and %lld", c, i,
					(long long)passed[0][c][i], (long long)passed[1][c][i]);
		}
	}
}

int main(void)
{
	RUN(rules_in_order);
	RUN(a_bucket_of_three);
	RUN(a_change_refills_at_the_next_arrival);
	RUN(by_deadline);
	RUN(the_gate_does_the_same);
	return 0;
}
