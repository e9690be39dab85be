/* SPDX-License-Identifier: BSD-3-Clause */
/* control: explanations of reservations that no allocation can meet; and when the controller is
 * due. */
#include "control/pshift/control.h"
#include "test.h"
#include <errno.h>

#define LENGTH WEIR_SEC

static struct world {
	struct pshift_control *control;
	uint64_t generation; /* as in its request */
	unsigned grants;
	char words[4][512];
	size_t n;
} w;

static void sent(void *arg, size_t server, const struct lease_message *m)
{
	w.generation = m->grant.generation;
	w.grants += m->kind == LEASE_GRANT;
}

static const char *server_name(void *arg, size_t i)
{
	static const char *const names[] = {"s1", "s2", "s3"};

	return names[i];
}

static const char *bucket_name(void *arg, size_t i)
{
	static const char *const names[] = {"a", "b", "c"};

	return names[i];
}

static void line(void *arg, const char *words)
{
	CHECK(w.n < 4);
	snprintf(w.words[w.n++], sizeof(w.words[0]), "%s", words);
}

/* A server that follows no controller. */
static void alone(size_t server)
{
	struct lease_message m = {.kind = LEASE_REPORT,
		.cluster = 1,
		.instance = server + 1,
		.sequence = 1,
		.report = {.length = LENGTH, .state = LEASE_STATIC}};

	strcpy(m.name, server_name(NULL, server));
	CHECK_INT(pshift_control_receive(w.control, 0, &m), PEER_UNPROVEN);
}

static void begin(size_t servers, const int64_t *reservations, size_t buckets)
{
	struct cluster_lead_config c = {
		.name = "control", .cluster = 1, .instance = 10, .length = LENGTH, .send = sent};

	w = (struct world){0};
	CHECK(pshift_control_new(&c, &w.control) == 0);
	for (size_t j = 0; j < servers; j++)
		CHECK_INT(pshift_control_server(w.control, server_name(NULL, j)), j);
	for (size_t i = 0; i < buckets; i++) {
		struct cluster_bucket b = {i + 1, reservations[i], LEASE_NO_LIMIT, 1};

		CHECK_INT(pshift_control_bucket(w.control, &b), i);
	}
	CHECK(pshift_control_step(w.control, 0) == 0);
	CHECK_INT(w.generation,
		0); /* the controller does not yet know which generation they follow */
	for (size_t j = 0; j < servers; j++)
		alone(j);
	CHECK(pshift_control_step(w.control, 0) == 0);
	CHECK_INT(w.generation, 1);
	CHECK(pshift_control_due(w.control) == LENGTH / 20); /* time to ask again */
}

/* Send a full report with the queue of each bucket; −1: the bucket is not on this server. */
static void report(size_t server, uint64_t capacity, const int64_t *queues, size_t buckets)
{
	struct lease_demand demands[4];
	struct lease_message m = {.kind = LEASE_REPORT,
		.cluster = 1,
		.instance = server + 1,
		.sequence = 1,
		.demands = demands,
		.report = {.generation = w.generation,
			.controller = 10,
			.length = LENGTH,
			.capacity = capacity,
			.state = LEASE_STATIC,
			.full = 1,
			.asked = 2}};

	strcpy(m.name, server_name(NULL, server));
	for (size_t i = 0; i < buckets; i++)
		if (queues[i] >= 0)
			demands[m.n++] = (struct lease_demand){.bucket = i + 1,
				.queue = queues[i],
				.holds = true,
				.cap = LEASE_NO_LIMIT,
				.limit = LEASE_NO_LIMIT};
	CHECK_INT(pshift_control_receive(w.control, WEIR_MS, &m), PEER_TAKEN);
}

static void explain(void)
{
	CHECK(pshift_control_step(w.control, 2 * WEIR_MS) == 0);
	CHECK(w.grants > 0);
	CHECK(pshift_control_explain(w.control, server_name, bucket_name, NULL, line) == 0);
	pshift_control_free(w.control);
}

static void before_it_knows(void)
{
	begin(2, (const int64_t[]){100}, 1);
	CHECK(pshift_control_explain(w.control, server_name, bucket_name, NULL, line) == 0);
	CHECK_INT(w.n, 0);
	report(0, 1000, (const int64_t[]){500}, 1);
	CHECK(pshift_control_step(w.control, 2 * WEIR_MS) == 0);
	CHECK(w.grants == 0); /* s2 has not reported */
	pshift_control_free(w.control);
}

static void all_can_be_met(void)
{
	begin(2, (const int64_t[]){100, 900}, 2);
	report(0, 1000, (const int64_t[]){500, 500}, 2);
	report(1, 1000, (const int64_t[]){0, 500}, 2);
	explain();
	CHECK_INT(w.n, 0);
}

static void capacity_is_short(void)
{
	begin(1, (const int64_t[]){800, 400}, 2);
	report(0, 1000, (const int64_t[]){900, 900}, 2);
	explain();
	CHECK_INT(w.n, 1);
	CHECK_STR(w.words[0], "a and b need 1200 at s1, which can do 1000: 200 short");
}

/* A bucket with less demand than its reservation misses nothing. */
static void demand_is_short(void)
{
	begin(1, (const int64_t[]){800}, 1);
	report(0, 1000, (const int64_t[]){300}, 1);
	explain();
	CHECK_INT(w.n, 0);
}

static void several_servers(void)
{
	begin(3, (const int64_t[]){1500, 1000, 600}, 3);
	report(0, 1000, (const int64_t[]){2000, 2000, -1}, 3);
	report(1, 1000, (const int64_t[]){2000, 2000, -1}, 3);
	report(2, 1000, (const int64_t[]){-1, -1, 900}, 3);
	explain();
	CHECK_INT(w.n, 1);
	CHECK_STR(w.words[0], "a and b need 2500 at s1 and s2, which can do 2000: 500 short");
}

/* Staged numbers of a known bucket, and the reservation of a new one, count once they enter. */
static void staged(void)
{
	const struct cluster_bucket less = {1, 100, LEASE_NO_LIMIT, 1},
				    more = {3, 600, LEASE_NO_LIMIT, 1};

	for (int entered = 0; entered < 2; entered++) {
		begin(1, (const int64_t[]){800, 400}, 2);
		CHECK_INT(pshift_control_stage(w.control, &less), 0);
		CHECK_INT(pshift_control_stage(w.control, &more), 2);
		if (entered)
			pshift_control_enter(w.control);
		report(0, 1000, (const int64_t[]){900, 900, 900}, 3);
		explain();
		CHECK_INT(w.n, 1);
		CHECK_STR(w.words[0],
			entered ? "a, b and c need 1100 at s1, which can do 1000: 100 short"
				: "a and b need 1200 at s1, which can do 1000: 200 short");
	}
}

int main(void)
{
	RUN(before_it_knows);
	RUN(all_can_be_met);
	RUN(demand_is_short);
	RUN(capacity_is_short);
	RUN(several_servers);
	RUN(staged);
	return 0;
}
