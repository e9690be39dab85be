/* SPDX-License-Identifier: BSD-3-Clause */
/* check: the rules of the protocol, case by case. */
#include "serve/front/nbd/nbd.h"
#include "test.h"
#include <errno.h>

#define ALL                                                                                        \
	(NBD_HAS_FLAGS | NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_SEND_WRITE_ZEROES |   \
		NBD_SEND_DF | NBD_SEND_CACHE | NBD_SEND_FAST_ZERO)
#define SIZE 1000000u

static const struct front_nbd_rules all = {SIZE, ALL, 1, true, true};
static const struct front_nbd_rules none = {SIZE, NBD_HAS_FLAGS, 1, false, false};
static const struct front_nbd_rules no_changes = {
	SIZE, NBD_HAS_FLAGS | NBD_READ_ONLY | NBD_SEND_FLUSH, 1, true, true};
static const struct front_nbd_rules blocks = {1 << 20, ALL, 512, true, true};
static const struct front_nbd_rules huge = {UINT64_C(1) << 40, ALL, 1, true, true};

static const struct {
	const struct front_nbd_rules *rules;
	uint16_t command, flags;
	uint64_t offset;
	uint32_t length;
	int want;
} cases[] = {
	/* ranges */
	{&all, NBD_READ, 0, 0, SIZE, 0},
	{&all, NBD_READ, 0, 0, SIZE + 1, -EINVAL},
	{&all, NBD_READ, 0, SIZE, 0, 0},
	{&all, NBD_READ, 0, SIZE + 1, 0, -EINVAL},
	{&all, NBD_READ, 0, UINT64_MAX, 1, -EINVAL},
	{&all, NBD_READ, 0, UINT64_MAX - 10, 20, -EINVAL},
	{&all, NBD_WRITE, 0, SIZE - 1, 1, 0},
	{&all, NBD_WRITE, 0, SIZE - 1, 2, -ENOSPC},
	{&all, NBD_WRITE_ZEROES, 0, SIZE - 1, 2, -ENOSPC},
	{&all, NBD_TRIM, 0, SIZE - 1, 2, -EINVAL},
	{&all, NBD_CACHE, 0, SIZE - 1, 2, -EINVAL},
	{&all, NBD_BLOCK_STATUS, 0, SIZE - 1, 2, -EINVAL},
	{&all, NBD_BLOCK_STATUS, 0, 0, 0, -EINVAL},
	{&all, NBD_FLUSH, 0, SIZE + 1, 5, 0}, /* its range has no meaning */
	/* lengths */
	{&huge, NBD_READ, 0, 0, NBD_PAYLOAD_MAX, 0},
	{&huge, NBD_READ, 0, 0, NBD_PAYLOAD_MAX + 1, -EINVAL},
	{&huge, NBD_READ, NBD_DF, 0, NBD_PAYLOAD_MAX + 1, -EOVERFLOW},
	{&huge, NBD_WRITE, 0, 0, NBD_PAYLOAD_MAX + 1, -EINVAL},
	{&huge, NBD_TRIM, 0, 0, UINT32_MAX, 0},
	{&huge, NBD_WRITE_ZEROES, 0, 0, UINT32_MAX, 0},
	{&huge, NBD_BLOCK_STATUS, 0, 0, UINT32_MAX, 0},
	/* flags */
	{&all, NBD_READ, NBD_DF, 0, 1, 0},
	{&none, NBD_READ, NBD_DF, 0, 1, -EINVAL},
	{&all, NBD_READ, NBD_FUA, 0, 1, 0},
	{&all, NBD_READ, NBD_NO_HOLE, 0, 1, -EINVAL},
	{&all, NBD_WRITE, NBD_FUA, 0, 1, 0},
	{&none, NBD_WRITE, NBD_FUA, 0, 1, -EINVAL},
	{&all, NBD_WRITE, NBD_DF, 0, 1, -EINVAL},
	{&all, NBD_WRITE_ZEROES, NBD_FUA | NBD_NO_HOLE | NBD_FAST_ZERO, 0, 1, 0},
	{&blocks, NBD_WRITE_ZEROES, NBD_REQ_ONE, 0, 512, -EINVAL},
	{&all, NBD_BLOCK_STATUS, NBD_REQ_ONE, 0, 1, 0},
	{&all, NBD_TRIM, 1 << 9, 0, 1, -EINVAL},
	/* features offered */
	{&none, NBD_FLUSH, 0, 0, 0, -EINVAL},
	{&none, NBD_TRIM, 0, 0, 1, -EINVAL},
	{&none, NBD_WRITE_ZEROES, 0, 0, 1, -EINVAL},
	{&none, NBD_CACHE, 0, 0, 1, -EINVAL},
	{&none, NBD_BLOCK_STATUS, 0, 0, 1, -EINVAL},
	{&all, 8, 0, 0, 1, -EINVAL},
	{&all, 256, 0, 0, 1, -EINVAL},
	{&all, UINT16_MAX, 0, 0, 1, -EINVAL},
	/* read only */
	{&no_changes, NBD_READ, 0, 0, 1, 0},
	{&no_changes, NBD_FLUSH, 0, 0, 0, 0},
	{&no_changes, NBD_WRITE, 0, 0, 1, -EPERM},
	{&no_changes, NBD_WRITE, 0, SIZE, 1, -EPERM},
	{&no_changes, NBD_TRIM, 0, 0, 1, -EPERM},
	{&no_changes, NBD_WRITE_ZEROES, 0, 0, 1, -EPERM},
	/* whole blocks */
	{&blocks, NBD_READ, 0, 512, 1024, 0},
	{&blocks, NBD_READ, 0, 511, 512, -EINVAL},
	{&blocks, NBD_READ, 0, 512, 511, -EINVAL},
	{&blocks, NBD_WRITE, 0, 0, 513, -EINVAL},
};

static void test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nbd_request q = {
			1, cases[i].offset, cases[i].length, cases[i].flags, cases[i].command};
		int got = front_nbd_check(cases[i].rules, &q);

		if (got != cases[i].want)
			FAIL("case %zu: %d, not %d", i, got, cases[i].want);
	}
}

static void test_flags(void)
{
	struct back_info info = {.can_flush = true,
		.can_fua = true,
		.can_trim = true,
		.can_zero = true,
		.can_fast_zero = true,
		.can_cache = true,
		.multi_conn = true,
		.rotational = true};

	CHECK_INT(front_nbd_flags(&info, false), ALL | NBD_MULTI_CONN | NBD_ROTATIONAL);
	CHECK_INT(front_nbd_flags(&info, true), NBD_HAS_FLAGS | NBD_READ_ONLY | NBD_SEND_DF |
							NBD_SEND_FLUSH | NBD_SEND_CACHE |
							NBD_MULTI_CONN | NBD_ROTATIONAL);
	info = (struct back_info){.read_only = true, .can_trim = true};
	CHECK_INT(front_nbd_flags(&info, false), NBD_HAS_FLAGS | NBD_READ_ONLY | NBD_SEND_DF);
	info = (struct back_info){.can_fast_zero = true};
	CHECK_INT(front_nbd_flags(&info, false), NBD_HAS_FLAGS | NBD_SEND_DF);
}

int main(void)
{
	RUN(test_cases);
	RUN(test_flags);
	return 0;
}
