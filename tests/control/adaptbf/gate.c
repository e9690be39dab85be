/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller with a real gate, and a server behind it that serves one request per
 * millisecond. */
#include "control/adaptbf/gate.h"
#include "test.h"
#include <errno.h>

#define JOBS    4
#define DEPTH   1024
#define SERVICE WEIR_MS

struct world {
	struct weir_gate *gate;
	struct site site;
	struct adaptbf_gate *driver;
	struct lend *adaptbf;
	weir_node nodes[JOBS];
	struct weir_req reqs[JOBS][DEPTH];
	uint64_t served[JOBS];
	struct weir_req *inside[64]; /* first come, first served */
	size_t n_inside;
	unsigned trickle; /* of the third job: requests so far that arrive at a fixed rate */
	bool trickles;
	uint32_t cost; /* of the first job's requests; 0: one token */
	uint32_t bytes[JOBS];
};

static struct world w;

static void begin(enum adaptbf_gate_mode mode, const uint32_t *weights, const unsigned *depths,
	const struct weir_bucket_spec *max)
{
	struct weir_gate_config config = {.nodes = JOBS + 1, .window = 4};
	struct lend_config control = {.rate = 1000};
	struct adaptbf_gate_leaf leaves[JOBS];

	memset(&w, 0, sizeof(w));
	CHECK_INT(weir_gate_new(&config, &w.gate), 0);
	for (int i = 0; i < JOBS; i++) {
		struct weir_knob k = {.kind = WEIR_KNOB_WEIGHT, .value = weights[i]};

		CHECK_INT(weir_gate_add(w.gate, WEIR_ROOT, &w.nodes[i]), 0);
		k.node = w.nodes[i];
		CHECK_INT(weir_gate_set(w.gate, 0, &k, 1, NULL), 0);
		leaves[i] = (struct adaptbf_gate_leaf){
			w.nodes[i], (uint64_t)i + 1, weights[i], weights[i]};
		if (i == 0 && max) {
			k = (struct weir_knob){w.nodes[i], WEIR_KNOB_BUCKETS, 0, max, 1};
			CHECK_INT(weir_gate_set(w.gate, 0, &k, 1, NULL), 0);
		}
		for (unsigned d = 0; d < depths[i]; d++) {
			struct weir_req *r = &w.reqs[i][d];

			*r = (struct weir_req){.tenant = w.nodes[i], .user = &w.served[i]};
			CHECK_INT(weir_gate_submit(w.gate, 0, &r, 1), 0);
		}
	}
	w.site = (struct site){.gate = w.gate};
	CHECK_INT(adaptbf_gate_new(&w.site, mode, 0, &w.driver), 0);
	CHECK_INT(adaptbf_gate_leaves(w.driver, leaves, JOBS), 0);
	CHECK_INT(lend_new(&control, &w.adaptbf), 0);
}

/* Submit 50 requests a second that are not repeated when done. */
static void trickle(weir_time now)
{
	struct weir_req *r = &w.reqs[2][w.trickle++ % DEPTH];

	*r = (struct weir_req){.tenant = w.nodes[2], .user = &w.served[2]};
	CHECK_INT(weir_gate_submit(w.gate, now, &r, 1), 0);
}

/* Run closed loops: each request is submitted again as soon as it is done. */
static void run_loops(weir_time from, weir_time to)
{
	for (weir_time now = from; now < to; now += SERVICE) {
		struct weir_req *out;

		if (now % (100 * WEIR_MS) == 0)
			CHECK_INT(lend_step(w.adaptbf, now, &adaptbf_gate_ops, w.driver), 0);
		if (w.trickles && now % (20 * WEIR_MS) == 0)
			trickle(now);
		if (w.n_inside) {
			struct weir_req *done = w.inside[0];
			weir_node tenant = done->tenant;
			uint64_t *served = done->user;

			memmove(w.inside, w.inside + 1, --w.n_inside * sizeof(*w.inside));
			weir_gate_done(w.gate, now, &done, 1);
			++*served;
			*done = (struct weir_req){.tenant = tenant,
				.user = served,
				.bytes = w.bytes[served - w.served],
				.requests = tenant == w.nodes[0] ? w.cost : 0};
			if (!w.trickles || tenant != w.nodes[2])
				CHECK_INT(weir_gate_submit(w.gate, now, &done, 1), 0);
		}
		while (weir_gate_next(w.gate, now, &out, 1))
			w.inside[w.n_inside++] = out;
	}
}

static void end(void)
{
	adaptbf_gate_free(w.driver);
	lend_free(w.adaptbf);
	weir_gate_free(w.gate);
}

static double served(int job)
{
	return (double)w.served[job];
}

static void in_proportion(void)
{
	for (int mode = 0; mode < 2; mode++) {
		begin((enum adaptbf_gate_mode)mode, (uint32_t[]){1, 1, 3, 5},
			(unsigned[]){64, 64, 64, 64}, NULL);
		run_loops(0, 20 * WEIR_SEC);
		CHECK_NEAR(served(0), 2000, 0.05);
		CHECK_NEAR(served(1), 2000, 0.05);
		CHECK_NEAR(served(2), 6000, 0.05);
		CHECK_NEAR(served(3), 10000, 0.05);
		end();
	}
}

static void a_queue_of_512_does_not_beat_one_of_8(void)
{
	for (int mode = 0; mode < 2; mode++) {
		begin((enum adaptbf_gate_mode)mode, (uint32_t[]){1, 1, 2, 1},
			(unsigned[]){8, 512, 0, 0}, NULL);
		w.trickles =
			true; /* the third job, with half of the weight, lends most of its tokens */
		run_loops(0, 30 * WEIR_SEC);
		CHECK_NEAR(served(0), served(1), 0.03);
		CHECK_NEAR(served(2), 1500, 0.01);
		CHECK(served(0) > 13000); /* of 30,000; by priority alone it gets 7,500 */
		end();
	}
}

static void tokens_beside_a_max(void)
{
	struct weir_bucket_spec max = {WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, 150, 3};

	for (int mode = 0; mode < 2; mode++) {
		begin((enum adaptbf_gate_mode)mode, (uint32_t[]){2, 1, 1, 1},
			(unsigned[]){64, 64, 64, 0}, &max);
		run_loops(0, 20 * WEIR_SEC);
		CHECK(served(0) <= 3000 + 3 + 1);
		CHECK(served(0) > 2900);
		CHECK_NEAR(served(1), served(2), 0.03);
		CHECK(served(0) + served(1) + served(2) > 19400); /* no tokens are lost */
		end();
	}
}

/* The policy replaces buckets and nodes: the rules in them must be neither lost nor doubled. */
static void rules_outlive_a_change(void)
{
	struct weir_bucket_spec max[2] = {{WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, 400, 3}};
	struct adaptbf_gate_leaf leaf = {.weight = 1, .share = 1};
	struct weir_knob k = {.kind = WEIR_KNOB_BUCKETS, .buckets = max, .n_buckets = 2};
	struct weir_bucket_spec rule;
	double scale;

	begin(ADAPTBF_GATE_HOLD, (uint32_t[]){1, 1, 1, 1}, (unsigned[]){64, 64, 0, 0}, max);
	CHECK(!adaptbf_gate_rule(w.driver, 1, &rule, &scale));
	run_loops(0, WEIR_SEC);
	CHECK(adaptbf_gate_rule(w.driver, 1, &rule, &scale));
	CHECK_INT(rule.kind, WEIR_HOLD);
	CHECK(rule.rate > 300 && scale > 0.5);
	CHECK(!adaptbf_gate_rule(
		w.driver, 3, &rule, &scale)); /* a job without demand has no rule */
	CHECK(!adaptbf_gate_rule(w.driver, 99, &rule, &scale));
	/* With half of its max, the rule is no longer the tighter limit. */
	max[0].rate = 200;
	CHECK(adaptbf_gate_rule(w.driver, 1, &max[1], &scale));
	k.node = leaf.node = w.nodes[0];
	leaf.id = 1;
	CHECK_INT(weir_gate_set(w.gate, WEIR_SEC, &k, 1, NULL), 0);
	w.served[0] = 0;
	run_loops(WEIR_SEC, 5 * WEIR_SEC);
	CHECK_NEAR(served(0), 800, 0.03);
	/* Setting the same leaf again changes nothing, and leaves the others alone. */
	CHECK(adaptbf_gate_rule(w.driver, 1, &max[1], &scale));
	CHECK_INT(adaptbf_gate_reserve(w.driver, 1, 1), 0);
	CHECK_INT(adaptbf_gate_leaves(w.driver, &leaf, 1), 0);
	CHECK(adaptbf_gate_rule(w.driver, 1, &rule, &scale));
	CHECK_NEAR(rule.rate, max[1].rate, 1e-9);
	CHECK(!adaptbf_gate_rule(w.driver, 2, &rule, &scale));
	end();
}

/* The gate's thread runs only every 15 ms, in which more than three tokens arrive: none is lost. */
static void one_that_is_late_loses_nothing(void)
{
	for (int span = 0; span < 2; span++) {
		uint64_t passed = 0;

		begin(ADAPTBF_GATE_HOLD, (uint32_t[]){1, 1, 1, 1}, (unsigned[]){1000, 0, 0, 0},
			NULL);
		adaptbf_gate_span(w.driver, span ? 0.02 : 0);
		for (weir_time now = 0; now < 900 * WEIR_MS; now += 15 * WEIR_MS) {
			struct weir_req *out;

			if (now % (90 * WEIR_MS) == 0)
				CHECK_INT(
					lend_step(w.adaptbf, now, &adaptbf_gate_ops, w.driver), 0);
			while (weir_gate_next(w.gate, now, &out, 1)) {
				weir_gate_done(w.gate, now, &out, 1);
				passed++;
			}
		}
		CHECK_NEAR((double)passed, 900, 0.05); /* 1000 a second */
		end();
	}
}

static double four(void *arg, weir_node node)
{
	return node == w.nodes[0] ? 4 : 1;
}

/* The first job's requests cost four tokens each: with equal tokens it gets a quarter of the
 * requests. */
static void large_requests_cost_several(void)
{
	begin(ADAPTBF_GATE_HOLD, (uint32_t[]){1, 1, 1, 1}, (unsigned[]){0, 64, 0, 0}, NULL);
	adaptbf_gate_cost(w.driver, four, NULL);
	w.cost = 4;
	for (unsigned d = 0; d < 16; d++) {
		struct weir_req *r = &w.reqs[0][d];

		*r = (struct weir_req){.tenant = w.nodes[0], .requests = 4, .user = &w.served[0]};
		CHECK_INT(weir_gate_submit(w.gate, 0, &r, 1), 0);
	}
	run_loops(0, 20 * WEIR_SEC);
	CHECK_NEAR(4 * served(0), served(1), 0.05);
	CHECK_NEAR(4 * served(0) + served(1), 20000, 0.05); /* all tokens are used */
	end();
}

/* A token is 4 KiB. Requests of 64 KiB and of 4 KiB get equal bytes; with a max of its own in
 * bytes the first job lends the rest. */
static void tokens_of_bytes(void)
{
	for (int own = 0; own < 2; own++) {
		struct weir_bucket_spec max = {WEIR_HOLD, WEIR_UNIT_BYTES, 0, 100 * 4096, 65536};

		begin(ADAPTBF_GATE_HOLD, (uint32_t[]){1, 1, 1, 1}, (unsigned[]){0, 0, 0, 0},
			own ? &max : NULL);
		adaptbf_gate_unit(w.driver, WEIR_UNIT_BYTES);
		w.bytes[0] = 65536;
		w.bytes[1] = 4096;
		for (unsigned d = 0; d < 32; d++) {
			struct weir_req *r = &w.reqs[d % 2][d / 2];

			*r = (struct weir_req){.tenant = w.nodes[d % 2],
				.bytes = w.bytes[d % 2],
				.user = &w.served[d % 2]};
			CHECK_INT(weir_gate_submit(w.gate, 0, &r, 1), 0);
		}
		run_loops(0, 20 * WEIR_SEC);
		CHECK_NEAR(16 * served(0), own ? 2000 : 10000, 0.05);
		/* All tokens are used, but for the surplus that equation 7 gives a job at its
		 * max. */
		CHECK_NEAR(16 * served(0) + served(1), 20000, own ? 0.1 : 0.01);
		end();
	}
}

/* Idle jobs cost nothing, and one that asks for something again is noticed in the same step as ever. */
static void idle_jobs_rest(void)
{
	static const uint32_t weights[JOBS] = {1, 1, 1, 1};
	static const unsigned depths[JOBS] = {8, 0, 0, 0};
	struct lend_account account;
	struct weir_req *r = &w.reqs[1][0];
	weir_time now = WEIR_SEC;

	begin(ADAPTBF_GATE_HOLD, weights, depths, NULL);
	run_loops(0, now + 1);
	CHECK_INT(adaptbf_gate_looked(w.driver), 1);
	CHECK_INT(lend_account(w.adaptbf, 2, &account), -ENOENT);
	for (unsigned i = 0; i < 8; i++) {
		r = &w.reqs[1][i];
		*r = (struct weir_req){.tenant = w.nodes[1], .user = &w.served[1]};
		CHECK_INT(weir_gate_submit(w.gate, now, &r, 1), 0);
	}
	run_loops(now + SERVICE, now + 100 * WEIR_MS + 1);
	CHECK_INT(adaptbf_gate_looked(w.driver), JOBS);
	CHECK_INT(lend_account(w.adaptbf, 2, &account), 0);
	CHECK(account.tokens > 0);
	run_loops(now + 101 * WEIR_MS, now + 400 * WEIR_MS + 1);
	CHECK_INT(adaptbf_gate_looked(w.driver), 2);
	end();
}

static void impossible_arguments_are_refused(void)
{
	struct adaptbf_gate *d;

	CHECK_INT(adaptbf_gate_new(NULL, ADAPTBF_GATE_HOLD, 0.5, &d), -EINVAL);
	CHECK_INT(adaptbf_gate_new(NULL, ADAPTBF_GATE_HOLD, NAN, &d), -EINVAL);
}

int main(void)
{
	RUN(in_proportion);
	RUN(a_queue_of_512_does_not_beat_one_of_8);
	RUN(tokens_beside_a_max);
	RUN(rules_outlive_a_change);
	RUN(one_that_is_late_loses_nothing);
	RUN(large_requests_cost_several);
	RUN(tokens_of_bytes);
	RUN(idle_jobs_rest);
	RUN(impossible_arguments_are_refused);
	return 0;
}
