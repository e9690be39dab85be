/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents a block may have after writes, flushes, losses and errors; every deviation is
 * found. */
#include "load/load-verify.h"
#include "test.h"
#include <errno.h>
#include <unistd.h>

#define BLOCK 512
#define N     16
#define BASE  4096 /* of the region in the disk */

static struct load_verify *v;
static struct load_verify_count count;
static _Alignas(8) uint8_t disk[N * BLOCK], saved[N * BLOCK];

static void start(void)
{
	load_verify_free(v);
	CHECK_INT(load_verify_new(BASE, sizeof(disk), BLOCK, 1, 99, &v), 0);
	memset(disk, 0xee, sizeof(disk));
	count = (struct load_verify_count){0};
}

static void write_blocks(int block, int n, bool fua)
{
	uint64_t offset = BASE + (uint64_t)block * BLOCK;

	CHECK(load_verify_take(v, offset, (uint32_t)n * BLOCK));
	load_verify_fill(v, offset, (uint32_t)n * BLOCK, disk + block * BLOCK);
	load_verify_written(v, offset, (uint32_t)n * BLOCK, fua, 0);
}

static uint64_t wrong_after_read(int block, int n)
{
	uint64_t offset = BASE + (uint64_t)block * BLOCK, before = count.wrong;

	CHECK(load_verify_take(v, offset, (uint32_t)n * BLOCK));
	load_verify_read(v, offset, (uint32_t)n * BLOCK, disk + block * BLOCK, 0, &count);
	return count.wrong - before;
}

static void flush(void)
{
	load_verify_flushed(v, load_verify_mark(v));
}

static void right(void)
{
	start();
	write_blocks(2, 3, false);
	CHECK_INT(wrong_after_read(2, 3), 0);
	CHECK_INT(count.checked, 3);
	write_blocks(3, 1, true);
	write_blocks(3, 1, false);
	CHECK_INT(wrong_after_read(0, N), 0);
	CHECK_INT(count.unchecked, N - 3); /* never written: any content is allowed */
	CHECK_INT(count.checked, 6);
}

static void every_byte_counts(void)
{
	start();
	for (int i = 0; i < BLOCK; i++) {
		write_blocks(5, 1, false);
		disk[5 * BLOCK + i] ^= 1;
		CHECK_INT(wrong_after_read(5, 1), 1);
	}
}

static void stale(void)
{
	start();
	write_blocks(1, 1, false);
	memcpy(saved, disk, sizeof(disk));
	write_blocks(1, 1, false);
	memcpy(disk, saved, sizeof(disk)); /* the second write was lost */
	CHECK_INT(wrong_after_read(1, 1), 1);
	CHECK_INT(count.last.offset, BASE + BLOCK);
	CHECK_INT(count.last.least, 2);
	CHECK_INT(count.last.got, 1);
	CHECK_STR(count.last.text,
		"wrong block at offset 4608: expected generation 2, got generation 1");
}

static void moved(void)
{
	start();
	write_blocks(1, 2, false);
	memcpy(disk + 1 * BLOCK, disk + 2 * BLOCK, BLOCK); /* valid, but elsewhere */
	CHECK_INT(wrong_after_read(1, 1), 1);
	CHECK(strstr(count.last.text, "from another offset"));
	CHECK_INT(wrong_after_read(2, 1), 0);
	memset(disk + 2 * BLOCK, 0, BLOCK);
	CHECK_INT(wrong_after_read(2, 1), 1);
	CHECK(strstr(count.last.text, "not a block of this run (begins 0000000000000000)"));
	CHECK_INT(wrong_after_read(2, 1), 0); /* reported once */
	write_blocks(2, 1, false);
	CHECK_INT(wrong_after_read(2, 1), 0);
}

static void one_at_a_time(void)
{
	start();
	CHECK(load_verify_take(v, BASE + BLOCK, 2 * BLOCK));
	CHECK(!load_verify_take(v, BASE + 2 * BLOCK, BLOCK));
	CHECK(!load_verify_take(v, BASE, 4 * BLOCK));
	CHECK(load_verify_take(v, BASE, BLOCK));
	CHECK(load_verify_take(v, BASE + 3 * BLOCK, BLOCK));
}

/* Generations 1 and 2, a flush, 3, a loss. Restore the disk to generation g. */
static void lose(int g)
{
	start();
	for (int i = 1; i <= 3; i++) {
		write_blocks(7, 1, false);
		if (i == 2)
			flush();
		if (i <= g)
			memcpy(saved, disk, sizeof(disk));
	}
	load_verify_lost(v);
	memcpy(disk, saved, sizeof(disk));
}

static void loss(void)
{
	lose(1); /* flushed, but lost */
	CHECK_INT(wrong_after_read(7, 1), 1);
	CHECK_STR(count.last.text, "wrong block at offset 7680: expected generation 2 (flushed) to "
				   "3, got generation 1");
	lose(2); /* unflushed data may be lost */
	CHECK_INT(wrong_after_read(7, 1), 0);
	lose(3); /* or not */
	CHECK_INT(wrong_after_read(7, 1), 0);
}

static void settled(void)
{
	static uint8_t third[BLOCK];

	lose(3);
	memcpy(third, disk + 7 * BLOCK, BLOCK);
	lose(2);
	CHECK_INT(wrong_after_read(7, 1), 0);
	memcpy(disk + 7 * BLOCK, third, BLOCK); /* after 2 was read, it cannot become 3 again */
	CHECK_INT(wrong_after_read(7, 1), 1);
}

static void never_flushed(void)
{
	start();
	memcpy(saved, disk, sizeof(disk));
	write_blocks(4, 1, false);
	load_verify_lost(v);
	memcpy(disk, saved, sizeof(disk)); /* the data from before this run */
	CHECK_INT(wrong_after_read(4, 1), 0);
	start();
	write_blocks(4, 1, true); /* FUA: must survive */
	load_verify_lost(v);
	memcpy(disk, saved, sizeof(disk));
	CHECK_INT(wrong_after_read(4, 1), 1);
}

static void flush_covers_earlier_writes(void)
{
	uint64_t mark;

	start();
	write_blocks(1, 1, false);
	memcpy(saved, disk, sizeof(disk));
	mark = load_verify_mark(v); /* sent, … */
	write_blocks(1, 1, false);  /* … and this write was acknowledged while it was in flight */
	load_verify_flushed(v, mark);
	load_verify_lost(v);
	memcpy(disk, saved, sizeof(disk));
	CHECK_INT(wrong_after_read(1, 1), 0);
	/* A flush that succeeds after a loss does not cover earlier writes. */
	start();
	write_blocks(1, 1, true);
	memcpy(saved, disk, sizeof(disk));
	write_blocks(1, 1, false);
	load_verify_lost(v);
	flush();
	memcpy(disk, saved, sizeof(disk));
	CHECK_INT(wrong_after_read(1, 1), 0);
}

static void failed_write(void)
{
	start();
	write_blocks(1, 1, true);
	CHECK(load_verify_take(v, BASE + BLOCK, BLOCK));
	load_verify_fill(v, BASE + BLOCK, BLOCK, saved);
	load_verify_written(v, BASE + BLOCK, BLOCK, false, -EIO);
	memset(disk + BLOCK, 7, 100); /* a partial write is possible */
	CHECK_INT(wrong_after_read(1, 1), 0);
	CHECK_INT(count.unchecked, 1);
	write_blocks(1, 1, false);
	disk[BLOCK + 60] ^= 1;
	CHECK_INT(wrong_after_read(1, 1), 1);
}

static void read_back(void)
{
	uint64_t cursor = 0, offset;
	uint32_t length;

	start();
	write_blocks(1, 3, false);
	write_blocks(9, 6, false);
	write_blocks(15, 1, false);
	CHECK(load_verify_next(v, &cursor, 2 * BLOCK, &offset, &length));
	CHECK(offset == BASE + BLOCK && length == 2 * BLOCK);
	CHECK(load_verify_next(v, &cursor, 2 * BLOCK, &offset, &length));
	CHECK(offset == BASE + 3 * BLOCK && length == BLOCK);
	CHECK(load_verify_next(v, &cursor, 64 * BLOCK, &offset, &length));
	CHECK(offset == BASE + 9 * BLOCK && length == 7 * BLOCK);
	CHECK(!load_verify_next(v, &cursor, 64 * BLOCK, &offset, &length));
}

static void kept_in_a_file(void)
{
	char path[] = "/tmp/weir-table-XXXXXX";
	int fd = mkstemp(path);
	struct weir_err err;

	CHECK(fd >= 0);
	close(fd);
	start();
	write_blocks(1, 2, true);
	write_blocks(2, 1, false);
	CHECK_INT(load_verify_save(v, path, &err), 0);
	load_verify_free(v);
	CHECK_INT(load_verify_new(BASE, sizeof(disk), BLOCK, 1, 100, &v), 0);
	CHECK_INT(load_verify_load(v, path, &err), 0);
	CHECK_INT(wrong_after_read(1, 2), 0);
	CHECK_INT(count.checked, 2);
	disk[BLOCK + 200] ^= 0x80;
	CHECK_INT(wrong_after_read(1, 1), 1);
	load_verify_free(v);
	CHECK_INT(load_verify_new(BASE, sizeof(disk), BLOCK, 2, 100, &v), 0);
	CHECK_INT(load_verify_load(v, path, &err), -EINVAL); /* another seed */
	unlink(path);
	CHECK_INT(load_verify_load(v, path, &err), -ENOENT);
}

int main(void)
{
	RUN(right);
	RUN(every_byte_counts);
	RUN(stale);
	RUN(moved);
	RUN(one_at_a_time);
	RUN(loss);
	RUN(settled);
	RUN(never_flushed);
	RUN(flush_covers_earlier_writes);
	RUN(failed_write);
	RUN(read_back);
	RUN(kept_in_a_file);
	load_verify_free(v);
	return 0;
}
