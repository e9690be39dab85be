/* SPDX-License-Identifier: BSD-3-Clause */
/* install: a policy is enforced by a gate in front of a server of known capacity. */
#include "policy/impl.h"
#include "policy-parse.h"
#include <errno.h>

#define NODES   8
#define BACKLOG 64 /* queued requests of every busy tenant */

/* ---- a server with `slots` requests at once, which completes one every 1/rate, in order */

struct world {
	struct weir_policy *p;
	struct weir_gate *g;
	weir_node nodes[NODES];
	weir_time now, free_at; /* free_at: when the server has completed all requests inside */
	weir_time gap;          /* between two completions; 0: it serves at once */
	struct weir_req *inside[64];
	weir_time due[64];
	size_t first, many;
	struct weir_req reqs[NODES][BACKLOG + 64], *spare[NODES][BACKLOG + 64];
	size_t n_spare[NODES], queued[NODES];
	bool busy[NODES];
	uint32_t bytes;
	uint8_t op;
	uint64_t served[NODES];
};
static struct world w;

static void start(const char *text, double rate)
{
	struct weir_gate_config config;
	struct weir_resource r;
	struct weir_err err;

	memset(&w, 0, sizeof(w));
	w.p = parse(text);
	CHECK(w.p->n_tenants <= NODES);
	policy_resource_default("r", &r);
	r.depth = 16;
	weir_policy_gate(&r, &config);
	CHECK_INT(weir_gate_new(&config, &w.g), 0);
	w.now = 5 * WEIR_SEC;
	if (weir_policy_install(w.p, w.g, w.now, w.nodes, &err) != 0)
		FAIL("%s", err.text);
	w.gap = rate > 0 ? (weir_time)((double)WEIR_SEC / rate) : 0;
	w.bytes = 4096;
	for (size_t i = 0; i < NODES; i++)
		for (size_t k = 0; k < BACKLOG + 64; k++)
			w.spare[i][w.n_spare[i]++] = &w.reqs[i][k];
}

static void stop(void)
{
	weir_gate_free(w.g);
	weir_policy_free(w.p);
}

static void submit(size_t i)
{
	while (w.busy[i] && w.queued[i] < BACKLOG && w.n_spare[i]) {
		struct weir_req *r = w.spare[i][--w.n_spare[i]];

		*r = (struct weir_req){.tenant = w.nodes[i],
			.requests = 1,
			.bytes = w.bytes,
			.op = w.op,
			.user = (void *)(uintptr_t)i};
		CHECK_INT(weir_gate_submit(w.g, w.now, &r, 1), 0);
		w.queued[i]++;
	}
}

static void finish(struct weir_req *r)
{
	size_t i = (size_t)(uintptr_t)r->user;

	weir_gate_done(w.g, w.now, &r, 1);
	w.spare[i][w.n_spare[i]++] = r;
	w.served[i]++;
}

static void step(void)
{
	struct weir_req *r;

	while (w.many && w.due[w.first % 64] <= w.now) {
		finish(w.inside[w.first++ % 64]);
		w.many--;
	}
	for (size_t i = 0; i < w.p->n_tenants; i++)
		submit(i);
	while (weir_gate_next(w.g, w.now, &r, 1) == 1) {
		size_t i = (size_t)(uintptr_t)r->user;

		w.queued[i]--;
		if (w.gap) {
			w.free_at = (w.free_at > w.now ? w.free_at : w.now) + w.gap;
			w.inside[(w.first + w.many) % 64] = r;
			w.due[(w.first + w.many) % 64] = w.free_at;
			w.many++;
		} else {
			finish(r);
		}
		submit(i);
	}
}

/* Run for `span`; served[] counts from its start. */
static void run_for(weir_time span)
{
	weir_time end = w.now + span;

	memset(w.served, 0, sizeof(w.served));
	for (;;) {
		weir_time next;

		step();
		next = weir_gate_wakeup(w.g, w.now);
		if (w.many && w.due[w.first % 64] < next)
			next = w.due[w.first % 64];
		if (next <= w.now)
			next = w.now + 1;
		if (next >= end)
			break;
		w.now = next;
	}
	w.now = end;
}

/* ---- the knobs */

static void test_buckets(void)
{
	struct weir_policy *p =
		parse("tenants: [{name: a, min: {reads: 200 iops, writes: 20 MiB/s}, "
		      "max: [1k iops, 40 MiB/s], burst: 3k iops for 30s}, "
		      "{name: b, min: 5 iops, max: {writes: 10 iops}}]");
	struct weir_bucket_spec b[POLICY_BUCKETS];
	struct weir_bounds bounds[2];

	CHECK_INT(weir_policy_bounds(p, bounds), 0);
	CHECK_INT(policy_install_buckets(&p->tenants[0], &bounds[0], b), 5);
	CHECK(b[0].kind == WEIR_HOLD && b[0].unit == WEIR_UNIT_REQUESTS &&
		b[0].ops == WEIR_OPS_ALL);
	CHECK(b[0].rate == 3000 && b[0].size == 75);
	CHECK(b[1].kind == WEIR_HOLD && b[1].rate == 1000 && b[1].size == 60000);
	CHECK(b[2].unit == WEIR_UNIT_BYTES && b[2].rate == 40 * 1048576.0);
	CHECK_NEAR(b[2].size, 40 * 1048576 * 0.025, 1e-12);
	CHECK(b[3].kind == WEIR_RTOKENS && b[3].ops == WEIR_OPS_READS && b[3].rate == 200);
	CHECK_NEAR(b[3].size, 20, 1e-12);
	CHECK(b[4].kind == WEIR_RTOKENS && b[4].ops == WEIR_OPS_WRITES);
	CHECK(b[4].unit == WEIR_UNIT_BYTES && b[4].rate == 20 * 1048576.0);
	/* small rates: room for two */
	CHECK_INT(policy_install_buckets(&p->tenants[1], &bounds[1], b), 2);
	CHECK(b[0].size == 2 && b[0].ops == WEIR_OPS_WRITES);
	CHECK(b[1].size == 2 && b[1].ops == WEIR_OPS_ALL);
	weir_policy_free(p);
}

static void test_costs(void)
{
	struct weir_resource r;
	struct weir_gate_config config;

	policy_resource_default("r", &r);
	CHECK_INT(weir_policy_cost(&r, WEIR_READ, 0), 1);
	CHECK_INT(weir_policy_cost(&r, WEIR_READ, 4096), 1);
	CHECK_INT(weir_policy_cost(&r, WEIR_WRITE, 256 * 1024), 1);
	CHECK_INT(weir_policy_cost(&r, WEIR_WRITE, 256 * 1024 + 1), 2);
	CHECK_INT(weir_policy_cost(&r, WEIR_READ, 1 << 20), 4);
	CHECK_INT(weir_policy_cost(&r, WEIR_READ, UINT64_MAX), UINT32_MAX);
	CHECK_INT(weir_policy_cost(&r, WEIR_FLUSH, 1 << 20), 1);
	CHECK_INT(weir_policy_cost(&r, WEIR_TRIM, 1 << 30), 1);
	r.flush_cost = 7;
	r.trim_cost = 3;
	r.io_unit = 4096;
	CHECK_INT(weir_policy_cost(&r, WEIR_FLUSH, 0), 7);
	CHECK_INT(weir_policy_cost(&r, WEIR_TRIM, 0), 3);
	CHECK_INT(weir_policy_cost(&r, WEIR_STATUS, 1 << 30), 1);
	CHECK_INT(weir_policy_cost(&r, WEIR_READ, 1 << 20), 256);
	CHECK_INT(weir_policy_cost_bytes(WEIR_STATUS, 5000), 0);
	CHECK_INT(weir_policy_cost_bytes(WEIR_READ, 5000), 5000);
	CHECK_INT(weir_policy_cost_bytes(WEIR_FLUSH, 5000), 0);
	CHECK_INT(weir_policy_cost_bytes(WEIR_TRIM, 5000), 0);
	r.depth = 0;
	r.depth_bytes = 512 << 10;
	r.run = 8;
	r.credit = 5;
	weir_policy_gate(&r, &config);
	CHECK(config.window == 0 && config.run == 8 && config.credit == 5);
	CHECK_INT(config.window_bytes, 512 << 10);
	r.cost = WEIR_UNIT_BYTES;
	weir_policy_gate(&r, &config);
	CHECK_INT(config.cost, WEIR_UNIT_BYTES);
}

/* ---- their effects */

static void test_max_over_each_second(void)
{
	static const int rates[] = {500, 1000, 20000};

	for (size_t k = 0; k < 3; k++) {
		char text[99];

		snprintf(text, sizeof(text), "tenants: [{name: a, max: %d iops}]", rates[k]);
		start(text, 0);
		w.busy[0] = true;
		run_for(WEIR_SEC / 3);
		for (int s = 0; s < 5; s++) {
			run_for(WEIR_SEC);
			CHECK(w.served[0] <= 1.01 * rates[k]);
			CHECK(w.served[0] >= 0.99 * rates[k]);
		}
		stop();
	}
}

static void test_max_after_idle(void)
{
	start("tenants: [{name: a, max: 1k iops}]", 0);
	run_for(60 * WEIR_SEC);
	w.busy[0] = true;
	run_for(WEIR_SEC);
	CHECK(w.served[0] <= 1026 && w.served[0] >= 990); /* including a full bucket of 25 ms */
	stop();
}

static void test_max_in_bytes_for_writes(void)
{
	start("tenants: [{name: a, max: {writes: 10 MiB/s}}]", 5000);
	w.busy[0] = true;
	w.bytes = 1 << 20; /* larger than the bucket: passes, and is charged afterwards */
	w.op = WEIR_WRITE;
	run_for(WEIR_SEC);
	run_for(20 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 200, 0.011);
	stop();
	start("tenants: [{name: a, max: {writes: 10 MiB/s}}]", 5000);
	w.busy[0] = true;
	w.bytes = 1 << 20;
	w.op = WEIR_READ;
	run_for(WEIR_SEC);
	CHECK(w.served[0] > 4900);
	stop();
}

static void test_burst(void)
{
	start("tenants: [{name: a, max: 1k iops, burst: 3k iops for 30s}]", 0);
	w.busy[0] = true;
	run_for(30 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 90000, 0.005);
	run_for(30 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 30000, 0.005);
	w.busy[0] = false;
	run_for(61 * WEIR_SEC); /* refilled at the rate of max */
	w.busy[0] = true;
	run_for(29 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 87000, 0.005);
	run_for(4 * WEIR_SEC);
	run_for(4 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 4000, 0.01);
	stop();
}

static void test_max_of_an_inner_node(void)
{
	start("tenants: [{name: p, max: 500 iops, children: [{name: a, weight: 3}, {name: b}]}, "
	      "{name: c}]",
		5000);
	w.busy[1] = w.busy[2] = w.busy[3] = true;
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)(w.served[1] + w.served[2]), 5000, 0.01);
	CHECK_NEAR((double)w.served[1], 3750, 0.02);
	CHECK_NEAR((double)w.served[3], 45000, 0.01);
	w.busy[1] = false; /* the sibling may use what it leaves */
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[2], 5000, 0.01);
	stop();
}

static void test_weights_per_level(void)
{
	start("tenants: [{name: p, weight: 4, children: [{name: a, weight: 3}, {name: b}]}, "
	      "{name: c}]",
		5000);
	w.busy[1] = w.busy[2] = w.busy[3] = true;
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[1], 30000, 0.01);
	CHECK_NEAR((double)w.served[2], 10000, 0.01);
	CHECK_NEAR((double)w.served[3], 10000, 0.01);
	w.busy[1] = false; /* its share goes to its sibling, not to c */
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[2], 40000, 0.01);
	CHECK_NEAR((double)w.served[3], 10000, 0.01);
	stop();
}

/* Beside a neighbour of a thousand times its weight. */
static void test_min(void)
{
	start("tenants: [{name: a, min: 600 iops}, {name: b, weight: 1000}]", 1000);
	w.busy[0] = w.busy[1] = true;
	run_for(WEIR_SEC);
	for (int s = 0; s < 5; s++) {
		run_for(WEIR_SEC);
		CHECK(w.served[0] >= 0.99 * 600);
		CHECK(w.served[0] <= 1.02 * 600);
		CHECK_NEAR((double)(w.served[0] + w.served[1]), 1000, 0.01);
	}
	stop();
}

/* x = g + λ·w: the capacity beyond the mins is shared by weight on top of them. */
static void test_min_and_weight(void)
{
	start("tenants: [{name: a, min: 600 iops}, {name: b, weight: 3}]", 1000);
	w.busy[0] = w.busy[1] = true;
	run_for(WEIR_SEC);
	run_for(20 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 20 * 700, 0.01);
	CHECK_NEAR((double)w.served[1], 20 * 300, 0.01);
	stop();
}

static void test_min_of_an_inner_node(void)
{
	start("tenants: [{name: p, min: 600 iops, children: [{name: a, weight: 3}, {name: b}]}, "
	      "{name: c, weight: 1M}]",
		1000);
	w.busy[1] = w.busy[2] = w.busy[3] = true;
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[1], 4500, 0.01);
	CHECK_NEAR((double)w.served[2], 1500, 0.01);
	w.busy[1] =
		false; /* tokens stay where they were granted: b keeps its part and gets no more */
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[2], 1500, 0.02);
	stop();
}

static void test_min_within_a_max_above(void)
{
	start("tenants: [{name: p, max: 800 iops, children: [{name: a, min: 700 iops}, "
	      "{name: b, weight: 100}]}]",
		5000);
	w.busy[1] = w.busy[2] = true;
	run_for(WEIR_SEC);
	run_for(10 * WEIR_SEC);
	CHECK(w.served[1] >= 0.99 * 7000);
	CHECK(w.served[1] + w.served[2] <= 1.01 * 8000);
	stop();
}

static void test_shadow_mode(void)
{
	struct weir_gate_stats stats;

	start("enforce: false\ntenants: [{name: a, max: 10 iops}, {name: b, weight: 9}]", 1000);
	w.busy[0] = w.busy[1] = true;
	run_for(10 * WEIR_SEC);
	CHECK_NEAR((double)w.served[0], 5000, 0.01);
	CHECK_NEAR((double)w.served[1], 5000, 0.01);
	CHECK_INT(weir_gate_get_stats(w.g, w.now, w.nodes[0], &stats), 0);
	CHECK(stats.served >= w.served[0]);
	stop();
}

/* On error the gate is unchanged: it has no more nodes than before, and accepts a good policy. */
static void test_all_or_nothing(void)
{
	struct weir_policy *p =
		parse("tenants: [{name: p, children: [{name: a}, {name: b}]}, {name: c}]");
	struct weir_gate_config config = {.window = 4};
	weir_node nodes[4] = {77, 77, 77, 77}, before, after;
	struct weir_gate *g;
	struct weir_err err = {""};

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &before), 0);
	CHECK_INT(weir_gate_remove(g, before), 0);
	p->tenants[2].weight = -1; /* a parsed policy never has this */
	CHECK_INT(weir_policy_install(p, g, 0, nodes, &err), -EINVAL);
	CHECK(err.text[0]);
	CHECK(nodes[0] == 77 && nodes[3] == 77);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &after), 0);
	CHECK_INT(after, before);
	CHECK_INT(weir_gate_remove(g, after), 0);
	p->tenants[2].weight = 1;
	CHECK_INT(weir_policy_install(p, g, 0, nodes, &err), 0);
	CHECK(nodes[0] != WEIR_ROOT && nodes[3] != nodes[0]);
	weir_gate_free(g);
	weir_policy_free(p);
}

static void test_empty_policy(void)
{
	struct weir_policy *p = parse("");
	struct weir_gate_config config = {.window = 4};
	struct weir_gate *g;
	struct weir_err err;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_policy_install(p, g, 0, NULL, &err), 0);
	weir_gate_free(g);
	weir_policy_free(p);
}

int main(void)
{
	RUN(test_buckets);
	RUN(test_costs);
	RUN(test_max_over_each_second);
	RUN(test_max_after_idle);
	RUN(test_max_in_bytes_for_writes);
	RUN(test_burst);
	RUN(test_max_of_an_inner_node);
	RUN(test_weights_per_level);
	RUN(test_min);
	RUN(test_min_and_weight);
	RUN(test_min_of_an_inner_node);
	RUN(test_min_within_a_max_above);
	RUN(test_shadow_mode);
	RUN(test_all_or_nothing);
	RUN(test_empty_policy);
	return 0;
}
