/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/back-rig.h"
#include "serve/loop/spare.h"

#define K 1024
#define M (1024 * K)

/* Replaces the function that asks the system. */
static uint64_t spare = UINT64_MAX;
uint64_t spare_memory(void)
{
	return spare;
}

static void test_reads_back(void)
{
	struct rig r;

	rig_open(&r, "memory:8M");
	CHECK_INT(r.back->info.size, 8 * M);
	CHECK(r.back->info.lends && r.back->info.multi_conn && !r.back->info.read_only);
	rig_is(&r, 0, 256 * K, 0);
	CHECK_INT(rig_fill(&r, 0, 1000, 9000, 7), 0);
	rig_is(&r, 0, 1000, 0);
	rig_is(&r, 1000, 9000, 7);
	rig_is(&r, 10000, 5000, 0);
	CHECK_INT(rig_fill(&r, BACK_FUA, 8 * M - 256 * K, 256 * K, 9), 0);
	rig_is(&r, 8 * M - 256 * K, 256 * K, 9);
	CHECK_INT(rig_do(&r, BACK_FLUSH, 0, 0, 0, NULL), 0);
	CHECK_INT(rig_do(&r, BACK_CACHE, 0, 0, 8 * M, NULL), 0);
	CHECK_INT(rig_do(&r, (enum back_op)99, 0, 0, 1, NULL), -EINVAL);
	rig_close(&r);
}

static void test_completes_inside_submit_in_order(void)
{
	uint8_t data[512] = {1};
	struct back_io io[64] = {0};
	struct rig r;

	rig_open(&r, "memory:1M");
	for (int i = 0; i < 64; i++) {
		io[i] = (struct back_io){.op = i % 2 ? BACK_READ : BACK_WRITE,
			.offset = (uint64_t)(i / 2) * 512,
			.length = 512,
			.data = i % 2 ? NULL : data,
			.next = i < 63 ? &io[i + 1] : NULL};
		r.inside++;
	}
	back_submit(r.back, io);
	CHECK_INT(r.inside, 0);
	for (int i = 1; i < 64; i += 2)
		CHECK_INT(io[i].data[0], 1); /* a read sees the write before it */
	rig_close(&r);
}

static void test_trim_and_zero(void)
{
	struct rig r;

	rig_open(&r, "memory:1M");
	for (int no_hole = 0; no_hole < 2; no_hole++) {
		int flags = no_hole ? BACK_NO_HOLE : BACK_FAST_ZERO;

		for (int i = 0; i < 4; i++)
			CHECK_INT(rig_fill(&r, 0, (uint64_t)i * 256 * K, 256 * K, 5), 0);
		CHECK_INT(rig_do(&r, BACK_ZERO, flags, 100, 50, NULL), 0); /* inside a page */
		rig_is(&r, 0, 100, 5);
		rig_is(&r, 100, 50, 0);
		rig_is(&r, 150, 5000, 5);
		CHECK_INT(rig_do(&r, BACK_ZERO, flags, 5000, 500000, NULL), 0);
		rig_is(&r, 4096, 5000 - 4096, 5);
		rig_is(&r, 5000, 250000, 0);
		rig_is(&r, 255000, 250000, 0);
		rig_is(&r, 505000, 3000, 5);
		CHECK_INT(rig_do(&r, BACK_ZERO, flags, 8191, 2, NULL), 0); /* across a boundary */
	}
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 0, M, NULL), 0);
	rig_is(&r, 505000, 3000, 0);
	rig_close(&r);
}

static void test_a_large_zero_takes_several_rounds(void)
{
	struct back_io zero = {.op = BACK_ZERO, .flags = BACK_NO_HOLE, .length = 63 * M + 5};
	struct back_io trim = {.op = BACK_TRIM, .offset = 3, .length = 64 * M - 3};
	struct rig r;

	rig_open(&r, "memory:64M");
	CHECK_INT(rig_fill(&r, 0, 63 * M, 4096, 3), 0);
	r.inside = 2;
	zero.next = &trim;
	back_submit(r.back, &zero);
	CHECK_INT(r.inside, 2); /* other requests have their turn */
	r.stop = true;
	CHECK_INT(loop_run(r.loop), 0);
	CHECK_INT(zero.error | trim.error, 0);
	rig_is(&r, 63 * M, 4096, 0);
	rig_close(&r);
}

static void test_trim_of_nothing_is_done_at_once(void)
{
	struct back_io trim = {.op = BACK_TRIM, .length = UINT64_C(1) << 40};
	struct rig r;

	rig_open(&r, "memory:1T");
	CHECK_INT(rig_fill(&r, 0, 0, 4096, 3), 0);
	r.inside = 1;
	back_submit(r.back, &trim);
	r.stop = true;
	if (r.inside)
		CHECK_INT(loop_run(r.loop), 0);
	rig_is(&r, 0, 4096, 0);
	rig_close(&r);
}

static void test_status(void)
{
	struct back_extent e[8];
	struct rig r;

	rig_open(&r, "memory:1000000B");
	CHECK_INT(rig_status(&r, 0, 1000000, e, 8), 1);
	CHECK_INT(e[0].length, 1000000);
	CHECK_INT(e[0].flags, 3);
	CHECK_INT(rig_fill(&r, 0, 8192, 1, 5), 0);
	CHECK_INT(rig_fill(&r, 0, 999999, 1, 5), 0);
	CHECK_INT(rig_status(&r, 100, 1000000 - 100, e, 8), 4);
	CHECK_INT(e[0].length, 8192 - 100);
	CHECK_INT(e[0].flags, 3);
	CHECK_INT(e[1].length, 4096);
	CHECK_INT(e[1].flags, 0);
	CHECK_INT(e[2].flags, 3);
	CHECK_INT(e[3].length, 1000000 - 999424);
	CHECK_INT(rig_status(&r, 0, 1000000, e, 2), 2);
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 0, 1000000, NULL), 0);
	/* The last page is partial, so it is zeroed and stays. */
	CHECK_INT(rig_status(&r, 0, 999424, e, 8), 1);
	CHECK_INT(e[0].flags, 3);
	rig_close(&r);
}

static void test_full(void)
{
	char text[64];
	struct rig r;

	rig_open(&r, "memory:1G?most=1M");
	for (int i = 0; i < 4; i++)
		CHECK_INT(rig_fill(&r, 0, (uint64_t)i * 100 * M, 256 * K, 1), 0);
	CHECK_INT(rig_fill(&r, 0, 50 * M, 4096, 1), -ENOSPC);
	rig_is(&r, 50 * M, 4096, 0);                        /* nothing was written */
	CHECK_INT(rig_fill(&r, 0, 100 * M, 256 * K, 2), 0); /* allocated pages may be changed */
	CHECK_INT(rig_fill(&r, 0, 100 * M + 1, 256 * K, 2), -ENOSPC); /* one page more */
	CHECK_INT(rig_do(&r, BACK_ZERO, BACK_NO_HOLE, 50 * M, 4096, NULL), -ENOSPC);
	CHECK_INT(rig_do(&r, BACK_ZERO, 0, 50 * M, 4096, NULL), 0);
	r.back->ops->say(r.back, text, sizeof(text));
	CHECK_STR(text, "1 MiB taken");
	CHECK_INT(rig_do(&r, BACK_TRIM, 0, 100 * M, 4096, NULL), 0);
	CHECK_INT(rig_fill(&r, 0, 50 * M, 4096, 1), 0);
	CHECK_INT(rig_fill(&r, 0, 51 * M, 1, 1), -ENOSPC);
	rig_close(&r);
}

/* The machine runs out: refused before the kernel starts to kill. */
static void test_machine_runs_out(void)
{
	uint64_t at = 0;
	struct rig r;

	rig_open(&r, "memory:1G");
	spare = SPARE_LEAST;
	while (rig_fill(&r, 0, at, 256 * K, 1) == 0)
		at += 256 * K;
	CHECK(at < 16 * M); /* it checks every 16 MiB */
	CHECK_INT(rig_fill(&r, 0, at, 4096, 1), -ENOSPC);
	CHECK_INT(rig_fill(&r, 0, 0, 256 * K, 2), 0);
	rig_is(&r, 0, 256 * K, 2);
	rig_is(&r, 512 * M, 256 * K, 0);
	spare = SPARE_LEAST + 1 * M;
	CHECK_INT(rig_fill(&r, 0, at, 256 * K, 1), 0);
	spare = UINT64_MAX;
	rig_close(&r);
}

/* Reading 64 GiB of holes through the mapping must take no memory. */
static void test_sparse(void)
{
	struct back_io io[64];
	unsigned long long sum = 0;
	struct rig r;

	rig_open(&r, "memory:64T");
	for (unsigned round = 0; round < 64; round++) {
		for (unsigned i = 0; i < 64; i++)
			io[i] = (struct back_io){.op = BACK_READ,
				.offset = (uint64_t)(round * 64 + i) << 30,
				.length = 256 * K,
				.next = i < 63 ? &io[i + 1] : NULL};
		rig_run(&r, io);
		for (unsigned i = 0; i < 64; i++)
			for (unsigned at = 0; at < 256 * K; at += 4096)
				sum += io[i].data[at];
	}
	CHECK_INT(sum, 0);
	rig_close(&r);
}

int main(void)
{
	RUN(test_reads_back);
	RUN(test_completes_inside_submit_in_order);
	RUN(test_trim_and_zero);
	RUN(test_a_large_zero_takes_several_rounds);
	RUN(test_trim_of_nothing_is_done_at_once);
	RUN(test_status);
	RUN(test_full);
	RUN(test_machine_runs_out);
	RUN(test_sparse);
	return 0;
}
