/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: the limits of a tenant over several resources, in virtual time: for any requests at any
 * of them, at least 0.95 of the binding limit is used, no limit is exceeded, and a
 * resource is limited only by the limit that binds its own requests.
 */
#include "serve/device-rig.h"
#include "model/server.h"

#define TICK (10 * WEIR_MS)

/* The gateway's tick without its threads: every tick reads and sets all resources. */
static void tick(struct rig *w)
{
	struct divide_table *t = w->user;
	struct divide_demand demand[8];
	double rows[32], tokens[32];
	bool busy[RIG_RESOURCES] = {false};

	for (size_t i = 0; i < w->n_resources; i++) {
		resource_demand(w->resource[i], demand, w->policy->n_tenants);
		divide_table_take(t, i, demand, TICK);
	}
	divide_table_targets(t);
	for (int step = 0; step < 3 && divide_table_tell(t, busy); step++)
		for (size_t i = 0; i < w->n_resources; i++) {
			divide_table_parts(t, i, rows);
			divide_table_tokens(t, i, busy, tokens);
			CHECK_INT(resource_divide(w->resource[i], rows, divide_table_joints(t),
					  tokens, divide_table_rows(t), NULL),
				0);
			divide_table_confirm(t, i, true, tokens);
		}
}

static void start(struct rig *w, const char *text, struct device *const *devices)
{
	double rows[32];

	rig_new(w, text, devices);
	w->user = divide_table_new(w->policy, w->n_resources);
	CHECK(w->user != NULL);
	for (size_t i = 0; i < w->n_resources; i++) {
		divide_table_parts(w->user, i, rows);
		CHECK_INT(resource_divide(w->resource[i], rows, divide_table_joints(w->user), NULL,
				  divide_table_rows(w->user), NULL),
			0);
	}
	w->tick = tick;
	w->period = TICK;
	w->due = w->now + TICK;
}

static void stop(struct rig *w)
{
	rig_free(w);
	divide_table_free(w->user);
}

#define TWO                                                                                        \
	"resources: [{name: a, back: \"memory:1G\"}, {name: b, back: \"memory:1G\"}]\n"            \
	"tenants:\n"

static struct rig w;

static double per_second(uint64_t n)
{
	return (double)n / 4;
}

/* Settle, then count for 4 s. */
static void measure(void)
{
	rig_run(&w, WEIR_SEC);
	rig_clear(&w);
	rig_run(&w, 4 * WEIR_SEC);
}

/* Check that 0.95 … 1.01 of the binding limit is used. */
static void check_binds(double used, double limit)
{
	if (used < 0.95 * limit || used > 1.01 * limit)
		FAIL("%g of %g: %.3f", used, limit, used / limit);
}

static void test_requests_and_bytes(void)
{
	struct rig_client *a, *b;

	start(&w, TWO "  - {name: t, max: [4k iops, 40 MiB/s], match: {export: \"*\"}}\n", NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 32, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 32, .length = 65536});
	measure();
	printf("  4 KiB %.0f, 64 KiB %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->bytes + b->bytes), 40 << 20);
	CHECK(per_second(a->done + b->done) < 4000);
	/* Both have the same part of the limit that they use most. */
	CHECK_NEAR(per_second(a->done) / 4000, per_second(b->bytes) / (40 << 20), 0.03);
	stop(&w);
}

/* Few requests are large: then requests bind, and all are used. */
static void test_both_bind(void)
{
	struct rig_client *a, *b;

	start(&w, TWO "  - {name: t, max: [4k iops, 40 MiB/s], match: {export: \"*\"}}\n", NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 32, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.rate = 200, .even = true, .length = 65536});
	measure();
	printf("  4 KiB %.0f, 64 KiB %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->done + b->done), 4000);
	CHECK_NEAR(per_second(b->done), 200, 0.1);
	stop(&w);
}

static void test_reads_and_writes(void)
{
	struct rig_client *a, *b;

	start(&w,
		TWO
		"  - {name: t, max: {reads: 3k iops, writes: 500 iops}, match: {export: \"*\"}}\n",
		NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 16, .length = 4096});
	b = rig_join(
		&w, 1, "b", (struct rig_client){.depth = 16, .length = 4096, .op = BACK_WRITE});
	measure();
	printf("  reads %.0f, writes %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->done), 3000);
	check_binds(per_second(b->done), 500);
	stop(&w);
}

static void test_reads_writes_and_all(void)
{
	struct rig_client *a, *b;

	start(&w,
		TWO "  - {name: t, max: {all: 5k iops, reads: 3k iops, writes: 40 MiB/s}, "
		    "match: {export: \"*\"}}\n",
		NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 16, .length = 16384});
	b = rig_join(
		&w, 1, "b", (struct rig_client){.depth = 16, .length = 16384, .op = BACK_WRITE});
	measure();
	printf("  reads %.0f, writes %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->done + b->done), 5000);
	CHECK(per_second(a->done) < 3030 && per_second(b->done) < 2590);
	stop(&w);
}

/* A group's limits, with children that differ. */
static void test_group(void)
{
	struct rig_client *a, *b;

	start(&w,
		TWO
		"  - name: g\n    max: [4k iops, 40 MiB/s]\n"
		"    children: [{name: x, match: {export: a}}, {name: y, match: {export: b}}]\n",
		NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 8, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 8, .length = 65536});
	measure();
	check_binds(per_second(a->bytes + b->bytes), 40 << 20);
	stop(&w);
}

/* One device is slow: its clients wait for it and not for the max, and the other one gets the
 * rest. */
static void test_slow_device(void)
{
	struct server_config slow = {.servers = 1, .rate = 1000};
	struct device *devices[2] = {NULL, NULL};
	struct rig_client *a, *b;
	struct weir_err err;

	CHECK_INT(server_new(&slow, 1, "slow", &devices[0], &err), 0);
	start(&w, TWO "  - {name: t, max: 4k iops, match: {export: \"*\"}}\n", devices);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 64, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 64, .length = 4096});
	measure();
	printf("  slow %.0f, fast %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->done + b->done), 4000);
	CHECK_NEAR(per_second(a->done), 1000, 0.05);
	stop(&w);
}

/* The same for reads, beside writes on the slow device that their max holds all the time. */
static void test_slow_device_and_held_writes(void)
{
	struct server_config slow = {.servers = 1, .rate = 1000};
	struct device *devices[2] = {NULL, NULL};
	struct rig_client *a, *b, *c;
	struct weir_err err;

	CHECK_INT(server_new(&slow, 1, "slow", &devices[0], &err), 0);
	start(&w,
		TWO
		"  - {name: t, max: {reads: 4k iops, writes: 100 iops}, match: {export: \"*\"}}\n",
		devices);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 64, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 64, .length = 4096});
	c = rig_join(
		&w, 0, "c", (struct rig_client){.depth = 64, .length = 4096, .op = BACK_WRITE});
	measure();
	printf("  slow %.0f, fast %.0f, writes %.0f iops\n", per_second(a->done),
		per_second(b->done), per_second(c->done));
	check_binds(per_second(a->done + b->done), 4000);
	CHECK(per_second(a->done + b->done) > 0.97 * 4000); /* as without the writes */
	check_binds(per_second(c->done), 100);
	stop(&w);
}

/* A light Poisson stream beside a heavy one gets its demand, and does not keep much more. */
static void test_light(void)
{
	struct rig_client *a, *b;

	start(&w, TWO "  - {name: t, max: 4k iops, match: {export: \"*\"}}\n", NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.rate = 400, .length = 4096});
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 64, .length = 4096});
	measure();
	printf("  light %.0f, heavy %.0f iops\n", per_second(a->done), per_second(b->done));
	check_binds(per_second(a->done + b->done), 4000);
	CHECK_NEAR(per_second(a->done), 400, 0.1);
	stop(&w);
}

/* The heavy client comes and goes at three resources in turn; no second exceeds the max. */
static void test_changes(void)
{
	uint64_t before = 0;

	start(&w,
		"resources: [{name: a, back: \"memory:1G\"}, {name: b, back: \"memory:1G\"},"
		" {name: c, back: \"memory:1G\"}]\n"
		"tenants: [{name: t, max: [4k iops, 40 MiB/s], match: {export: \"*\"}}]\n",
		NULL);
	rig_join(&w, 0, "a", (struct rig_client){.depth = 32, .length = 4096});
	for (int i = 1; i < 3; i++) {
		rig_run(&w, WEIR_SEC);
		rig_join(&w, (size_t)i, "b",
			(struct rig_client){.depth = 32, .length = i == 1 ? 65536 : 16384});
	}
	for (int second = 0; second < 4; second++) {
		uint64_t bytes = 0;

		rig_run(&w, WEIR_SEC);
		for (size_t i = 0; i < w.n_clients; i++)
			bytes += w.client[i].bytes;
		if (second)
			check_binds((double)(bytes - before), 40 << 20);
		before = bytes;
	}
	stop(&w);
}

/* Run `tenths` tenths of a second; every second in them has `part` … 1.01 of 800 requests, and
 * two more or less. */
static void check_seconds(const char *what, size_t tenths, double part)
{
	uint64_t at[99] = {0}, least = UINT64_MAX, most = 0;

	CHECK(tenths < 99);
	for (size_t k = 0; k <= tenths; k++) {
		for (size_t i = 0; i < w.n_clients; i++)
			at[k] += w.client[i].done;
		if (k >= 10) {
			uint64_t second = at[k] - at[k - 10];

			least = second < least ? second : least;
			most = second > most ? second : most;
		}
		if (k < tenths)
			rig_run(&w, WEIR_SEC / 10);
	}
	printf("  %s: %.3f to %.3f\n", what, (double)least / 800, (double)most / 800);
	CHECK((double)least >= part * 800 - 2 && (double)most <= 1.01 * 800 + 2);
}

/* A client comes, the other one goes: no part of the max stays unused. */
static void test_come_and_go(void)
{
	struct rig_client *a, *b;

	start(&w, TWO "  - {name: t, max: 800 iops, match: {export: \"*\"}}\n", NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 256, .length = 4096});
	rig_run(&w, WEIR_SEC);
	check_seconds("one", 20, 0.99);
	b = rig_join(&w, 1, "b", (struct rig_client){.depth = 256, .length = 4096});
	check_seconds("another comes", 20, 0.99);
	CHECK(b->done > 700);
	rig_leave(a);
	check_seconds("the first goes", 20, 0.99);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 256, .length = 4096});
	check_seconds("it comes back", 20, 0.99);
	b->stopped = true;
	/* Its queue passes first; then silence has to be distinguished from chance, and its
	 * floor stays with it. */
	check_seconds("the other one falls silent", 30, 0.97);
	stop(&w);
}

/* The floor of a gate without clients, 1/1024 of a limit, may be below the smallest rate of a
 * gate. */
static void test_small(void)
{
	struct rig_client *a;

	start(&w, TWO "  - {name: t, max: [2 iops, 5 B/s], min: 1 iops, match: {export: \"*\"}}\n",
		NULL);
	a = rig_join(&w, 0, "a", (struct rig_client){.depth = 8, .length = 1});
	rig_run(&w, 10 * WEIR_SEC);
	rig_clear(&w);
	rig_run(&w, 100 * WEIR_SEC);
	CHECK(a->done >= 196 && a->done <= 202);
	stop(&w);
}

static uint64_t all_done(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w.n_clients; i++)
		n += w.client[i].done;
	return n;
}

/* ---- a small max, over many resources */

enum { STEPS = 1200 }; /* of 10 ms */

static void start_many(size_t resources, const char *max)
{
	char text[2048] = "resources: [";

	for (size_t i = 0; i < resources; i++)
		sprintf(text + strlen(text), "%s{name: r%zu, back: \"memory:1G\"}", i ? ", " : "",
			i);
	sprintf(text + strlen(text), "]\ntenants: [{name: t, max: %s, match: {export: \"*\"}}]\n",
		max);
	start(&w, text, NULL);
}

static uint64_t all_bytes(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w.n_clients; i++)
		n += w.client[i].bytes;
	return n;
}

/* Run for 12 s. No second has more than 1.05 of the rate and a request, in bytes; all have 0.95 together. */
static void check_each_second(double rate, uint32_t request)
{
	static uint64_t at[STEPS + 1];
	uint64_t most = 0;

	at[0] = all_bytes();
	for (size_t i = 1; i <= STEPS; i++) {
		rig_run(&w, 10 * WEIR_MS);
		at[i] = all_bytes();
		most = i >= 100 && at[i] - at[i - 100] > most ? at[i] - at[i - 100] : most;
	}
	printf("  %.0f B/s of requests of %u: %.3f at once, at most %.3f in a second, %.3f in "
	       "all\n",
		rate, request, (double)(at[1] - at[0]) / rate, (double)most / rate,
		(double)(at[STEPS] - at[0]) / rate / 12);
	CHECK((double)most <= 1.05 * rate + request);
	CHECK((double)(at[STEPS] - at[0]) >= 0.95 * 12 * rate - request);
}

/* After a pause no more passes at once at 16 resources than at one. */
static void test_small_parts(void)
{
	static const struct {
		const char *max;
		double rate; /* B/s */
		uint32_t request;
	} of[] = {{"1 iops", 4096, 4096}, {"10 iops", 40960, 4096}, {"33 iops", 33 * 4096, 4096},
		{"100 iops", 409600, 4096}, {"1k iops", 4096000, 4096},
		{"10k iops", 40960000, 4096}, {"[1k iops, 50 KiB/s]", 51200, 4096},
		{"{reads: 10 iops, writes: 1k iops}", 40960, 4096}, {"1 MiB/s", 1 << 20, 65536},
		{"10 MiB/s", 10 << 20, 65536}, {"10 MiB/s", 10 << 20, 4096}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		for (size_t n = 2; n <= 16; n *= 2) {
			start_many(n, of[i].max);
			rig_run(&w, WEIR_SEC);
			for (size_t k = 0; k < n; k++)
				rig_join(&w, k, "x",
					(struct rig_client){.depth = 8, .length = of[i].request});
			check_each_second(of[i].rate, of[i].request);
			stop(&w);
		}
}

/* Demand that moves from one resource to the next, between requests or while some wait, loses nothing, and the first request
 * after a pause does not wait. */
static void test_small_moves(void)
{
	start_many(4, "20 iops");
	for (size_t k = 0; k < 4; k++)
		rig_join(
			&w, k, "x", (struct rig_client){.rate = 5.3, .even = true, .length = 4096});
	check_each_second(20 * 4096.0, 4096);
	stop(&w);

	start_many(4, "20 iops");
	for (size_t k = 0; k < 4; k++) {
		uint64_t before = all_done();
		struct rig_client *c =
			rig_join(&w, k, "x", (struct rig_client){.depth = 4, .length = 4096});

		rig_run(&w, 0);
		CHECK(k > 0 || c->done == 1);
		rig_run(&w, 2 * WEIR_SEC);
		CHECK(all_done() - before >= 39 && all_done() - before <= 42);
		rig_leave(c);
	}
	rig_run(&w, WEIR_SEC);
	for (size_t k = 0; k < 4; k++)
		rig_join(&w, k, "x", (struct rig_client){.depth = 4, .length = 4096});
	check_each_second(20 * 4096.0, 4096);
	stop(&w);
}

/* ---- a gateway that does not run */

/* Stop the gateway for `ms` in each of 20 halves of a second. Return the loss of a stop, in ms of the max. */
static double lost(unsigned depth, weir_time ms)
{
	struct rig_client *c;
	weir_time begin;
	double span;

	start(&w,
		"resources: [{name: a, back: \"memory:1G\"}]\n"
		"tenants: [{name: t, max: 20k iops, match: {export: x}}]\n",
		NULL);
	c = rig_join(&w, 0, "x",
		(struct rig_client){
			.depth = depth, .length = 4096, .think = 20 * WEIR_US, .even = true});
	rig_run(&w, WEIR_SEC);
	rig_clear(&w);
	begin = w.now;
	for (int i = 0; i < 20; i++) {
		rig_run(&w, (500 - ms) * WEIR_MS);
		w.now += ms * WEIR_MS;
	}
	rig_run(&w, 500 * WEIR_MS);
	span = (double)(w.now - begin) / WEIR_MS;
	span -= (double)c->done / 20;
	stop(&w);
	return span / 20;
}

/* Tokens of a stop beyond 25 ms are lost, less as much as waits, up to 20 ms of the max. */
static void test_stops(void)
{
	static const unsigned depths[] = {8, 32, 256, 2048};

	for (size_t d = 0; d < 4; d++)
		for (weir_time ms = 10; ms <= 100; ms += 15) {
			double waits = fmin(depths[d] / 20.0, 20);
			double is = lost(depths[d], ms);

			if (fabs(is - fmax((double)ms - 25 - waits, 0)) > 3)
				FAIL("depth %u, %jd ms: %g ms lost", depths[d], (intmax_t)ms, is);
		}
}

/* ---- gates come and go */

/* Gates that stay keep their parts, wherever they are now; new ones have a little, and no limit is exceeded. */
static void test_inherit(void)
{
	static const int moved[] = {1, -1, 0}, grown[] = {0, -1}, fewer[] = {2};
	struct weir_policy *p = parse("tenants: [{name: t, max: 4k iops}]");
	struct divide_table *one = divide_table_new(p, 2), *two = divide_table_new(p, 3),
			    *three = divide_table_new(p, 1);
	struct divide_demand busy = {.kind = {{.passed_requests = 40}}, .clients = 1}, idle = {0};
	double parts[3], tokens[1] = {0}, before[2];
	bool none[3] = {false};

	divide_table_inherit(one, NULL, grown);
	divide_table_parts(one, 0, &before[0]);
	divide_table_parts(one, 1, &before[1]);
	CHECK(before[0] > 0.99 && before[1] > 0 && before[0] + before[1] <= 1);
	divide_table_take(one, 0, &idle, TICK);
	divide_table_take(one, 1, &busy, TICK);
	divide_table_targets(one);
	for (int step = 0; step < 3 && divide_table_tell(one, none); step++)
		for (size_t g = 0; g < 2; g++)
			divide_table_confirm(one, g, true, tokens);
	for (size_t g = 0; g < 2; g++)
		divide_table_parts(one, g, &before[g]);
	CHECK(before[1] > 0.99);
	divide_table_inherit(two, one, moved);
	for (size_t g = 0; g < 3; g++)
		divide_table_parts(two, g, &parts[g]);
	CHECK_NEAR(parts[0], before[1], 0.01);
	CHECK(parts[1] > 0 && parts[1] < 0.01);
	CHECK_NEAR(parts[2], before[0], 0.01);
	CHECK(parts[0] + parts[1] + parts[2] <= 1);
	divide_table_inherit(three, two, fewer);
	divide_table_parts(three, 0, parts);
	CHECK_NEAR(
		parts[0], before[0], 0.01); /* until the others have confirmed that they are gone */
	divide_table_targets(three);
	CHECK(divide_table_tell(three, none));
	divide_table_parts(three, 0, parts);
	CHECK(parts[0] > 0.99);
	divide_table_free(one);
	divide_table_free(two);
	divide_table_free(three);
	weir_policy_free(p);
}

/* ---- bursts */

enum { SAMPLES = 300, RATE = 500, BURST = 3000, FOR = 10 };

/* Run clients at two resources for 30 s; at each second `who` says which of them send: 1, 2 or both. Return the number of requests
 * in the first 10 s in which one sends. No interval has more than the bound. */
static double burst(const char *who)
{
	static uint64_t passed[SAMPLES + 1];
	struct rig_client *c[2] = {NULL, NULL};
	uint64_t gone = 0;
	size_t begin = strspn(who, "0");

	start(&w,
		TWO
		"  - {name: t, max: 500 iops, burst: 3k iops for 10s, match: {export: \"*\"}}\n",
		NULL);
	for (size_t i = 0; i < 2; i++) /* present, and silent */
		rig_join(&w, i, i ? "b" : "a",
			(struct rig_client){.rate = 1e-4, .even = true, .length = 4096});
	for (size_t at = 0; at < SAMPLES; at++) {
		size_t second = at / 10, length = strlen(who);
		char now = who[second < length ? second : length - 1];

		for (size_t i = 0; i < 2 && at % 10 == 0; i++) {
			bool sends = (now - '0') >> i & 1;

			if (sends && !c[i])
				c[i] = rig_join(&w, i, i ? "b" : "a",
					(struct rig_client){.depth = 64, .length = 4096});
			if (!sends && c[i]) {
				rig_leave(c[i]);
				gone += c[i]->done;
				c[i] = NULL;
			}
		}
		rig_run(&w, 100 * WEIR_MS);
		passed[at + 1] = gone + (c[0] ? c[0]->done : 0) + (c[1] ? c[1]->done : 0);
	}
	for (size_t i = 0; i <= SAMPLES; i++)
		for (size_t k = i; k <= SAMPLES; k++) {
			double t = (double)(k - i) / 10;
			double bound =
				fmin(RATE * t + (double)(BURST - RATE) * FOR, BURST * (t + 0.045));

			if ((double)(passed[k] - passed[i]) > 1.05 * bound + 1)
				FAIL("%s: %llu in %g s, more than %g", who,
					(unsigned long long)(passed[k] - passed[i]), t, bound);
		}
	stop(&w);
	return (double)(passed[(begin + 10) * 10] - passed[begin * 10]);
}

static void test_burst(void)
{
	static const char *const cases[] = {"0002", "0001", "0003", "000112", "00012", "0001212",
		"00031", "00032113", "0001111111111113"};
	double whole = (double)RATE * FOR + (double)(BURST - RATE) * FOR;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double got = burst(cases[i]);

		printf("  %s: %.3f of the burst\n", cases[i], got / whole);
		CHECK(got >= 0.9 * whole);
	}
}

int main(void)
{
	RUN(test_requests_and_bytes);
	RUN(test_both_bind);
	RUN(test_reads_and_writes);
	RUN(test_reads_writes_and_all);
	RUN(test_group);
	RUN(test_inherit);
	RUN(test_burst);
	RUN(test_slow_device);
	RUN(test_slow_device_and_held_writes);
	RUN(test_light);
	RUN(test_changes);
	RUN(test_come_and_go);
	RUN(test_small);
	RUN(test_small_parts);
	RUN(test_small_moves);
	RUN(test_stops);
	return 0;
}
