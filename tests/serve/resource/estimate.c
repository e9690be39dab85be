/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimate: with a profile the device time of a request is the table's, whatever `cost` is and whatever the device does; and the
 * drift between both is known.
 */
#include "serve/device-rig.h"
#include "model/server.h"
#include <math.h>
#include <time.h>

static struct rig w;
static struct estimate table;

static void give(double request_ns, double byte_ns, unsigned depth)
{
	struct resource_change c = {.to = w.policy, .estimate = &table};
	struct weir_err err;

	estimate_constant(&table, request_ns, byte_ns);
	table.depth = depth;
	CHECK_INT(resource_swap_all(w.resource[0], &c, &err), 0);
}

static void start(const char *cost, double rate)
{
	struct server_config config = {
		.servers = 4, .rate = rate, .bytes_per_s = 1e12, .service = SERVER_FIXED};
	struct device *d;
	struct weir_err err;
	char text[256];

	CHECK_INT(server_new(&config, 1, "server", &d, &err), 0);
	snprintf(text, sizeof(text),
		"resources: [{name: d, back: \"memory:1G\", cost: %s, depth: 4}]\n"
		"tenants: [{name: a, match: {export: a}}]\n",
		cost);
	rig_new(&w, text, &d);
}

static void nothing(struct request *q)
{
}

/* Return the time of one request of that place and size. */
static uint32_t time_of(struct client *c, uint8_t op, uint64_t offset, uint32_t bytes)
{
	struct request q = {.client = c, .done = nothing};

	q.io = (struct back_io){.op = op, .offset = offset, .length = bytes};
	resource_submit(c->resource, &q);
	request_list_clear(&c->resource->arrived);
	c->in_flight--;
	return q.gate.time;
}

static void test_any_cost(void)
{
	static const char *const costs[] = {"requests", "bytes", "time"};

	for (int i = 0; i < 3; i++) {
		struct rig_client *c;

		start(costs[i], 4000);
		give(100e3, 10, 4);
		c = rig_join(&w, 0, "a", (struct rig_client){.depth = 4, .length = 4096});
		CHECK_INT(time_of(&c->client, BACK_READ, 0, 4096), 140960);
		rig_run(&w, WEIR_SEC); /* the device takes another time, which is not learned */
		CHECK_INT(time_of(&c->client, BACK_WRITE, 0, 8192), 181920);
		CHECK_INT(time_of(&c->client, BACK_FLUSH, 0, 0), 100000);
		CHECK_INT(time_of(&c->client, BACK_TRIM, 0, 1u << 20), 100000);
		rig_free(&w);
	}
}

/* A request that continues one of the tenant's is sequential, whatever others do in between. */
static void test_sequence_of_a_tenant(void)
{
	const char text[] =
		"resources: [{name: d, back: \"memory:1G\"}]\n"
		"tenants: [{name: a, match: {export: a}}, {name: b, match: {export: b}}]\n";
	struct rig_client *a, *b;

	rig_new(&w, text, NULL);
	give(100e3, 0, 4);
	table.n_rows[0] = 2;
	table.row[0][1] = table.row[0][0];
	estimate_fill(
		&(struct estimate_measured){.distance = 0, .n = 1, .size = {4096}, .work = {7e3}},
		&table.row[0][0]);
	a = rig_join(&w, 0, "a", (struct rig_client){.rate = 1, .length = 4096});
	b = rig_join(&w, 0, "b", (struct rig_client){.rate = 1, .length = 4096});
	CHECK_INT(time_of(&a->client, BACK_READ, 1u << 20, 4096), 100000);
	CHECK_INT(time_of(&b->client, BACK_READ, 3u << 20, 4096), 100000);
	CHECK_INT(time_of(&a->client, BACK_READ, (1u << 20) + 4096, 4096), 7000);
	CHECK_INT(time_of(&b->client, BACK_READ, (1u << 20) + 8192, 4096), 100000);
	rig_free(&w);
}

static void test_without(void)
{
	struct rig_client *c;

	start("requests", 4000);
	c = rig_join(&w, 0, "a", (struct rig_client){.depth = 4, .length = 4096});
	CHECK_INT(time_of(&c->client, BACK_READ, 0, 4096), 0);
	CHECK(isnan(resource_drift(w.resource[0])));
	rig_free(&w);
}

/* The device does 4,000 a second: 250 us of work each. */
static void test_drift(void)
{
	static const struct {
		double work, drift;
		bool said;
	} of[] = {
		{250e3, 0, false}, {225e3, 0.111, false}, {200e3, 0.25, true}, {500e3, -0.5, true}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		start("requests", 4000);
		give(of[i].work, 0, 4);
		rig_join(&w, 0, "a", (struct rig_client){.depth = 16, .length = 4096});
		rig_run(&w, WEIR_SEC / 2);
		CHECK(isnan(resource_drift(w.resource[0])));
		rig_run(&w, 3 * WEIR_SEC);
		CHECK_NEAR(1 + resource_drift(w.resource[0]), 1 + of[i].drift, 0.02);
		CHECK_INT(w.resource[0]->drift.said, of[i].said);
		rig_free(&w);
	}
	/* Nothing is known of a device that is not full, or at another depth than the table's. */
	start("requests", 4000);
	give(200e3, 0, 4);
	rig_join(&w, 0, "a", (struct rig_client){.rate = 1000, .length = 4096});
	rig_run(&w, 3 * WEIR_SEC);
	CHECK(isnan(resource_drift(w.resource[0])));
	rig_free(&w);
	start("requests", 4000);
	give(200e3, 0, 8);
	rig_join(&w, 0, "a", (struct rig_client){.depth = 16, .length = 4096});
	rig_run(&w, 3 * WEIR_SEC);
	CHECK(isnan(resource_drift(w.resource[0])));
	rig_free(&w);
}

/* Only shown: time on a shared machine is no criterion. */
static void test_speed(void)
{
	struct weir_req q = {.bytes = 8192, .tenant = 1};
	struct timespec a, b;
	uint64_t sum = 0;

	start("requests", 4000);
	give(200e3, 10, 4);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < 1000000; i++) {
		q.offset = (uint64_t)i * 12345 * 4096;
		sum += resource_estimate(w.resource[0], &q);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	printf("  %.1f ns a request\n",
		((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e6);
	CHECK(sum > 0);
	rig_free(&w);
}

int main(void)
{
	RUN(test_any_cost);
	RUN(test_sequence_of_a_tenant);
	RUN(test_without);
	RUN(test_drift);
	RUN(test_speed);
	return 0;
}
