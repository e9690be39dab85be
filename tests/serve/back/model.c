/* SPDX-License-Identifier: BSD-3-Clause */
/* No test compares with real time: only relations that hold however late the loop is. */
#include "serve/back-rig.h"

#define K 1024
#define M (1024 * K)
#define N 64

static struct back_io *order[N];
static weir_time when[N];
static unsigned n_done;
static struct loop *loop;

static void note(void *arg, struct back_io *io)
{
	order[n_done] = io;
	when[n_done++] = loop_clock();
	if (n_done == *(unsigned *)arg)
		loop_stop(loop);
}

static void test_data_goes_through(void)
{
	static const char *const names[] = {"model:array+memory:16M",
		"model:array-small+memory:16M", "model:disk+memory:16M",
		"model:disk-10k+memory:16M", "model:ssd+memory:16M",
		"model:server,rate=10k,servers=4+memory:16M",
		"model:ssd+model:server,latency=10us+memory:16M", NULL};
	struct back_extent e[4];

	for (int i = 0; names[i]; i++) {
		struct rig r;

		rig_open_with(&r, names[i], (struct back_config){.seed = 1});
		CHECK_INT(r.back->info.size, 16 * M);
		CHECK(r.back->info.lends); /* as the inner memory does */
		CHECK_INT(rig_fill(&r, 0, 5000, 256 * K, 7), 0);
		rig_is(&r, 5000, 256 * K, 7);
		CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
		CHECK_INT(rig_do(&r, BACK_TRIM, 0, 0, 4096, NULL), 0);
		CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE, 0, 64 * K, NULL), 0);
		CHECK_INT(rig_do(&r, BACK_ZERO, 0, 64 * K, 64 * K, NULL), 0);
		CHECK_INT(rig_do(&r, BACK_CACHE, 0, 0, 64 * K, NULL), 0);
		rig_is(&r, 0, 64 * K, 0);
		CHECK_INT(rig_status(&r, 0, 16 * M, e, 4), 4);
		rig_close(&r);
	}
}

/* One server that takes 200 µs each: the i-th request of a batch ends no earlier than 200·i µs. */
static void test_takes_the_time(void)
{
	enum { MANY = 20 };
	unsigned many = MANY;
	struct back_io io[MANY];
	weir_time start;
	struct rig r;

	rig_open(&r, "model:server,latency=200us+memory:1M");
	r.back->done = note;
	r.back->done_arg = &many;
	loop = r.loop;
	n_done = 0;
	for (int i = 0; i < MANY; i++)
		io[i] = (struct back_io){.op = BACK_READ,
			.length = 512,
			.error = 1,
			.next = i < MANY - 1 ? &io[i + 1] : NULL};
	start = loop_clock();
	back_submit(r.back, io);
	CHECK_INT(n_done, 0); /* not before its time, although the memory answered at once */
	CHECK_INT(loop_run(r.loop), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK(order[i] == &io[i]);
		CHECK_INT(io[i].error, 0);
		CHECK(when[i] - start >= (i + 1) * 200 * WEIR_US);
	}
	rig_close(&r);
}

/* A disk with ordering by address: requests far from the arm are not first in, first out. */
static void test_keeps_the_order_of_the_model(void)
{
	enum { MANY = 8 };
	unsigned many = MANY;
	struct back_io io[MANY];
	bool as_submitted = true;
	struct rig r;

	rig_open_with(
		&r, "model:disk,order=sptf,window=16+memory:64G", (struct back_config){.seed = 1});
	CHECK(r.back->info.rotational);
	CHECK_INT(r.back->info.depth, 16);
	r.back->done = note;
	r.back->done_arg = &many;
	loop = r.loop;
	n_done = 0;
	for (int i = 0; i < MANY; i++)
		io[i] = (struct back_io){.op = BACK_READ,
			.offset = (uint64_t)(i * 5 % MANY) << 33,
			.length = 4096,
			.next = i < MANY - 1 ? &io[i + 1] : NULL};
	back_submit(r.back, io);
	CHECK_INT(loop_run(r.loop), 0);
	for (int i = 0; i < MANY; i++)
		as_submitted &= order[i] == &io[i];
	CHECK(!as_submitted);
	rig_close(&r);
}

/* An error of the inner back end is returned, and also takes its time. */
static void test_errors(void)
{
	struct rig r;

	rig_open(&r, "model:server,latency=50us+memory:1M?most=64K");
	CHECK_INT(rig_fill(&r, 0, 0, 64 * K, 1), 0);
	CHECK_INT(rig_fill(&r, 0, 64 * K, 64 * K, 1), -ENOSPC);
	rig_is(&r, 0, 64 * K, 1);
	rig_close(&r);
}

static void test_depth(void)
{
	struct rig r;

	rig_open(&r, "model:array+memory:1M");
	CHECK_INT(r.back->info.depth, 68);
	CHECK(r.back->info.rotational);
	rig_close(&r);
	rig_open(&r, "model:ssd,channels=2,dies=3+memory:1M");
	CHECK_INT(r.back->info.depth, 6);
	CHECK(!r.back->info.rotational);
	rig_close(&r);
	rig_open(&r, "model:server,servers=5+memory:1M");
	CHECK_INT(r.back->info.depth, 5);
	rig_close(&r);
}

/* A model reports the bytes that keep all of it busy, if known, whatever the inner back end. */
static void test_depth_in_bytes(void)
{
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t bytes;
	} of[] = {{"model:ssd+memory:16M", 32, M}, {"model:ssd,page=64k+memory:16M", 32, 4 * M},
		{"model:ssd,channels=2,dies=2+memory:16M", 4, 512 * K},
		{"model:ssd+model:server+memory:16M", 32, M},
		{"model:server,servers=4+model:ssd+memory:16M", 4, 0}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct rig r;

		rig_open_with(&r, of[i].name, (struct back_config){.seed = 1});
		CHECK_INT(r.back->info.depth, of[i].depth);
		CHECK_INT(r.back->info.depth_bytes, of[i].bytes);
		rig_close(&r);
	}
}

int main(void)
{
	RUN(test_data_goes_through);
	RUN(test_takes_the_time);
	RUN(test_keeps_the_order_of_the_model);
	RUN(test_errors);
	RUN(test_depth);
	RUN(test_depth_in_bytes);
	return 0;
}
