/* SPDX-License-Identifier: BSD-3-Clause */
/* The load against correct and incorrect servers. */
#include "load/load.h"
#include "serve/load-server.h"
#include "model/trace/trace.h"

static struct load_job job;
static struct load_result result;
static struct weir_err err;
static uint64_t tick_requests, tick_bytes, tick_count;
static int said;
static char last_said[500];

static void tick(void *arg, const struct load_interval *i)
{
	tick_requests += i->requests;
	tick_bytes += i->bytes;
	tick_count += i->latency->count;
}

static void say(void *arg, const char *name, const char *text)
{
	said++;
	snprintf(last_said, sizeof(last_said), "%s", text);
}

static void start(void)
{
	server_reset();
	load_job_default(&job);
	job.name = "j";
	job.uri = server.uri;
	job.timeout = 20 * WEIR_SEC;
	tick_requests = tick_bytes = tick_count = 0;
	said = 0;
}

static void go_with(unsigned threads, const struct load_job *jobs, size_t n)
{
	const struct load_options o = {
		.threads = threads, .tick = tick, .say = say, .interval = 5 * WEIR_MS};
	struct load *l;

	if (load_new(jobs, n, &o, &l, &err) < 0)
		FAIL("%s", err.text);
	CHECK_INT(load_run(l), 0);
	result = *load_result(l, n - 1);
	load_free(l);
}

static void run_load(void)
{
	go_with(1, &job, 1);
}

static int refused(void)
{
	struct load *l = NULL;
	int r = load_new(&job, 1, NULL, &l, &err);

	CHECK(!l);
	return r;
}

static void counts(void)
{
	start();
	job.requests = 5000;
	job.depth = 16;
	job.connections = 3;
	job.reads = 0.7;
	job.sizes[0] = (struct load_size){512, 3};
	job.sizes[1] = (struct load_size){4096, 1};
	job.sizes[2] = (struct load_size){65536, 0.1};
	job.n_sizes = 3;
	job.flush_every = 100;
	job.fua = 0.5;
	run_load();
	CHECK_STR(result.fault, "");
	CHECK_INT(result.requests, 5000);
	CHECK_INT(result.in_time, 5000);
	CHECK_INT(result.latency.count, 5000);
	CHECK_INT(server.requests, 5000);
	CHECK_INT(server.connections, 3);
	CHECK_INT(result.reads, server.reads);
	CHECK_INT(result.writes, server.writes);
	CHECK_INT(result.flushes, server.flushes);
	CHECK_INT(result.flushes, (result.writes) / 100);
	CHECK_INT(result.bytes, server.bytes);
	CHECK_NEAR((double)result.reads / (double)(5000 - result.flushes), 0.7, 0.05);
	CHECK_NEAR((double)server.fuas / (double)result.writes, 0.5, 0.1);
	CHECK_NEAR((double)result.bytes / 5000, (3 * 512 + 4096 + 6553.6) / 4.1, 0.1);
	CHECK(tick_requests == 5000 && tick_count == 5000 && tick_bytes == result.bytes);
	CHECK(result.iops > 0 && result.elapsed > 0);
}

static uint64_t digest(uint64_t seed, enum load_order order)
{
	start();
	job.seed = seed;
	job.requests = 300;
	job.order = order;
	job.reads = 0.5;
	job.offset = 65536;
	job.length = 65536;
	run_load();
	CHECK(server.highest <= 131072);
	return server.digest;
}

static void seeds(void)
{
	for (int order = LOAD_RANDOM; order <= LOAD_ZIPF; order++) {
		uint64_t a = digest(1, (enum load_order)order);

		CHECK(a == digest(1, (enum load_order)order));
		CHECK(a != digest(2, (enum load_order)order));
	}
}

static void sequential_wraps(void)
{
	start();
	job.order = LOAD_SEQUENTIAL;
	job.requests = 2 * SERVER_SIZE / 65536;
	job.sizes[0].bytes = 65536;
	job.reads = 0;
	run_load();
	CHECK_INT(server.highest, SERVER_SIZE);
	CHECK_INT(server.bytes, 2 * SERVER_SIZE);
}

static void several_jobs(void)
{
	struct load_job jobs[3];

	for (unsigned threads = 1; threads <= 4; threads++) {
		start();
		for (int i = 0; i < 3; i++) {
			jobs[i] = job;
			jobs[i].requests = 500;
			jobs[i].depth = 4;
		}
		go_with(threads, jobs, 3);
		CHECK_INT(server.requests, 1500);
		CHECK_INT(result.requests, 500);
	}
}

static void duration_and_warm_up(void)
{
	start();
	job.duration = 60 * WEIR_MS;
	job.warm_up = 30 * WEIR_MS;
	job.think = 100 * WEIR_US;
	run_load();
	CHECK(result.requests > 0 && result.requests < server.requests);
	CHECK(result.elapsed > 0 && result.elapsed <= 30 * WEIR_MS); /* not until the last reply */
	CHECK(result.in_time <= result.requests);
}

static void open_loop(void)
{
	start();
	job.rate = 10000;
	job.even = true;
	job.requests = 1000;
	job.connections = 2;
	run_load();
	CHECK_INT(result.requests, 1000);
	CHECK(result.elapsed >= 99 * WEIR_MS); /* never early */
	CHECK_INT(result.late.count, 1000);
	start();
	job.rate = 1000;
	job.even = true;
	job.duration = 50 * WEIR_MS;
	run_load();
	CHECK_INT(result.requests, 50); /* those due at 0, 1, … 49 ms */
	CHECK_INT(result.missed, 0);
}

/* A server stalls for 300 ms while 1,000 requests a second are due: all of them show the wait, not
 * only the one in flight. */
static void stall_is_seen(void)
{
	uint64_t waited;

	start();
	server.stall_at = 50;
	server.stall_ms = 300;
	job.rate = 1000;
	job.even = true;
	job.requests = 500;
	job.depth = 1;
	run_load();
	CHECK_INT(result.requests, 500);
	CHECK(result.latency.max >= 295 * WEIR_MS);
	waited = 100 - 10; /* of 500: those due in its first 100 ms waited for 200 ms or more */
	CHECK(weir_hist_percentile(&result.latency, 100.0 * (500 - (double)waited) / 500) >=
		190 * WEIR_MS);
}

static void missed_are_counted(void)
{
	start();
	server.stall_at = 10;
	server.stall_ms = 200;
	job.rate = 1000;
	job.even = true;
	job.duration = 100 * WEIR_MS;
	job.depth = 1;
	run_load();
	/* The tenth is answered after the end, and the later ones were never sent. */
	CHECK_INT(result.requests, 10);
	CHECK_INT(result.missed, 90);
}

static void errors(void)
{
	for (int structured = 0; structured < 2; structured++) {
		start();
		server.error = -EPERM;
		job.requests = 100;
		job.reads = 0.5;
		job.structured = structured;
		run_load();
		CHECK_INT(result.requests, 100);
		CHECK(server.reads > 0);
		CHECK_INT(result.errors[LOAD_EPERM], server.reads);
		CHECK_INT(result.n_errors, server.reads);
		CHECK_INT(result.bytes, server.writes * 4096);
	}
}

static void nonsense(void)
{
	start();
	server.garbage = true;
	job.requests = 100;
	job.depth = 4;
	run_load();
	CHECK(strstr(result.fault, "an invalid reply"));
	CHECK_INT(result.errors[LOAD_UNANSWERED], 4);
}

/* The right number of bytes, but one part twice. */
static void a_part_twice(void)
{
	start();
	server.fragments = server.doubles = true;
	job.structured = true;
	job.requests = 100;
	run_load();
	CHECK(strstr(result.fault, "an invalid reply"));
	CHECK_INT(result.errors[LOAD_UNANSWERED], 1);
}

static void silence(void)
{
	start();
	server.hangs = true;
	job.requests = 100;
	job.timeout = 50 * WEIR_MS;
	run_load();
	CHECK(strstr(result.fault, "no reply within the timeout"));
}

static void verify_job(void)
{
	start();
	job.verify = true;
	job.reads = 0.5;
	job.requests = 2000;
	job.depth = 8;
	job.sizes[0] = (struct load_size){4096, 1};
	job.sizes[1] = (struct load_size){12288, 1};
	job.n_sizes = 2;
}

static void verify_right(void)
{
	for (int form = 0; form < 3; form++) {
		verify_job();
		job.structured = form > 0;
		server.fragments = form > 1;
		job.connections = 2;
		job.order = LOAD_ZIPF;
		run_load();
		CHECK_STR(result.fault, "");
		CHECK_INT(result.wrong, 0);
		CHECK(result.checked > 500);
		CHECK(server.flushes >= result.writes / 64);
	}
}

static void verify_small_region(void) /* more slots than blocks */
{
	verify_job();
	job.length = 16384;
	job.connections = 2;
	run_load();
	CHECK_INT(result.requests, 2000);
	CHECK_INT(result.wrong, 0);
}

static void verify_lost_write(void)
{
	verify_job();
	job.reads = 0;
	job.requests = 50;
	server.lose_write = 50; /* the last: not overwritten */
	run_load();
	CHECK(result.wrong >= 1 && result.wrong <= 3);
	CHECK_INT(said, 1);
	CHECK(strncmp(last_said, "wrong block at offset ", 22) == 0);
}

static void lost_connection(void)
{
	start();
	server.drop_after = 20;
	server.drops = 1;
	job.requests = 100;
	run_load();
	CHECK(strstr(result.fault, server.uri)); /* closed, reset or broken */
	CHECK(result.requests >= 19 && result.requests <= 20);
}

static void reconnects(bool forgets, bool flush_lies)
{
	verify_job();
	job.connections = 2;
	job.reconnect = 20 * WEIR_SEC;
	job.flush_every = 10;
	server.drop_after = 300;
	server.drops = 3;
	server.forgets = forgets;
	server.flush_lies = flush_lies;
	run_load();
	CHECK_STR(result.fault, "");
	CHECK_INT(result.requests, 2000);
	CHECK_INT(result.n_errors, 0);
	CHECK(result.reconnects >= 1 && result.reconnects <= 3);
	CHECK(result.resent > 0);
}

static void reconnect_nothing_lost(void)
{
	reconnects(false, false);
	CHECK_INT(result.wrong, 0);
	reconnects(true, false);
	CHECK_INT(result.wrong, 0);
}

static void reconnect_lies(void)
{
	reconnects(true, true);
	CHECK(result.wrong > 0);
}

static void reconnect_gives_up(void)
{
	start();
	job.reconnect = 50 * WEIR_MS;
	job.requests = 100000;
	server.drop_after = 10;
	server.drops = 1;
	server.vanishes = true;
	run_load();
	CHECK(result.fault[0]);
	CHECK_INT(result.requests, 10);
	CHECK_INT(result.errors[LOAD_UNANSWERED], 1);
	CHECK_INT(result.reconnects, 0);
}

static void replay(void)
{
	static struct trace_record records[] = {
		{0, 0, 4096, 0, TRACE_READ},
		{WEIR_MS, 8192, 512, 0, TRACE_WRITE},
		{2 * WEIR_MS, 0, 0, 0, TRACE_FLUSH},
		{3 * WEIR_MS, UINT64_C(1) << 30, 4096, 0, TRACE_TRIM},
		{40 * WEIR_MS, (UINT64_C(1) << 31) - 8192, 8192, 0, TRACE_WRITE},
	};
	struct trace t = {.records = records, .n = 5, .has_offsets = true};

	start();
	job.trace = &t;
	job.speed = 2;
	CHECK_INT(refused(), -EINVAL);
	CHECK(strstr(err.text, "--scale-offsets"));
	job.scale_offsets = true;
	run_load();
	CHECK_INT(result.requests, 5);
	CHECK(server.reads == 1 && server.writes == 2 && server.flushes == 1 && server.trims == 1);
	CHECK_INT(server.highest, SERVER_SIZE);
	CHECK(result.elapsed >= 20 * WEIR_MS);
	CHECK_INT(result.late.count, 5);
	start();
	server.flags = NBD_SEND_FLUSH;
	job.trace = &t;
	job.scale_offsets = true;
	run_load();
	CHECK_INT(result.skipped, 1); /* the trim */
	CHECK_INT(server.trims, 0);
	CHECK_INT(result.requests, 4);
}

static void jobs_that_make_no_sense(void)
{
	start();
	CHECK_INT(refused(), -EINVAL); /* without an end */
	job.requests = 1;
	job.sizes[0].bytes = 64u << 20;
	CHECK_INT(refused(), -EINVAL);
	job.sizes[0].bytes = SERVER_SIZE * 2;
	CHECK_INT(refused(), -EINVAL);
	job.sizes[0].bytes = 4096;
	job.offset = SERVER_SIZE;
	CHECK_INT(refused(), -EINVAL);
	job.offset = 0;
	job.uri = "nbd+unix:///x?socket=/nonexistent/s";
	CHECK(refused() < 0);
	job.uri = server.uri;
	job.reads = 0.5;
	server.flags = NBD_READ_ONLY;
	CHECK_INT(refused(), -EROFS);
	server.flags = 0;
	job.flush_every = 1;
	CHECK_INT(refused(), -ENOTSUP);
	job.flush_every = 0;
	job.fua = 0.1;
	CHECK_INT(refused(), -ENOTSUP);
	job.fua = 0;
	job.verify = true;
	job.connections = 2; /* without MULTI_CONN a flush covers one connection */
	CHECK_INT(refused(), -EINVAL);
	job.connections = 1;
	job.sizes[0].bytes = 500;
	CHECK_INT(refused(), -EINVAL);
}

int main(void)
{
	server_start();
	RUN(counts);
	RUN(seeds);
	RUN(sequential_wraps);
	RUN(several_jobs);
	RUN(duration_and_warm_up);
	RUN(open_loop);
	RUN(stall_is_seen);
	RUN(missed_are_counted);
	RUN(errors);
	RUN(nonsense);
	RUN(a_part_twice);
	RUN(silence);
	RUN(verify_right);
	RUN(verify_small_region);
	RUN(verify_lost_write);
	RUN(lost_connection);
	RUN(reconnect_nothing_lost);
	RUN(reconnect_lies);
	RUN(reconnect_gives_up);
	RUN(replay);
	RUN(jobs_that_make_no_sense);
	server_end();
	return 0;
}
