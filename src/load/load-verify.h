/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-verify: the expected contents of blocks, from writes, acknowledgements and flushes.
 *
 * Single-threaded. A taken range has one request in flight; no other request may touch its blocks.
 */
#pragma once

#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_VERIFY_BLOCKS (UINT64_C(1) << 28) /* most blocks: 4 GiB of table */
#define LOAD_VERIFY_MIN    512                 /* least bytes of a block */

struct load_verify;

struct load_verify_fault { /* a wrong block */
	uint64_t offset;
	uint32_t least, most, got; /* expected generations, and the actual one */
	char text[200];            /* "wrong block at offset 4096: expected generation 5, got
	                              generation 3" */
};
struct load_verify_count {
	uint64_t checked, unchecked, wrong; /* blocks; unchecked: expectation unknown */
	struct load_verify_fault last;      /* the last wrong block */
};

/* Blocks of `block` bytes from `offset` on; `length` is a multiple of block. id: unique to this
 * run. */
int load_verify_new(uint64_t offset, uint64_t length, uint32_t block, uint64_t seed, uint64_t id,
	struct load_verify **ret_verify);
void load_verify_free(struct load_verify *v);

/* Take the range; return false if one of its blocks is taken. */
bool load_verify_take(struct load_verify *v, uint64_t offset, uint32_t length);
/* Write the next generation of a taken range into data (aligned to 8, as buffers of reads must be). */
void load_verify_fill(struct load_verify *v, uint64_t offset, uint32_t length, uint8_t *data);
/* Release a range: the write was answered (error: 0 or a negative errno; fua: it is durable) … */
void load_verify_written(
	struct load_verify *v, uint64_t offset, uint32_t length, bool fua, int error);
/* … or the read, with its data. Adds to *count. */
void load_verify_read(struct load_verify *v, uint64_t offset, uint32_t length, const uint8_t *data,
	int error, struct load_verify_count *count);

/* Return the mark of a flush that is being sent; pass it on when the flush succeeds. */
uint64_t load_verify_mark(const struct load_verify *v);
void load_verify_flushed(struct load_verify *v, uint64_t mark);
/* All connections were lost, and possibly all unflushed data. Taken ranges stay taken: their
 * requests are resent. */
void load_verify_lost(struct load_verify *v);
/* Release a taken range whose write will never be answered. */
void load_verify_abandon(struct load_verify *v, uint64_t offset, uint32_t length);

/* Find the next run of blocks that were ever written, from *cursor on (0 at first), at most `most`
 * bytes; return false if there is none. */
bool load_verify_next(struct load_verify *v, uint64_t *cursor, uint32_t most, uint64_t *ret_offset,
	uint32_t *ret_length);

/* Save the table to a file, and load it. Load returns -ENOENT: no file; -EINVAL: a table of other
 * blocks. Blocks flushed according to the file must be intact; others may be. */
int load_verify_save(const struct load_verify *v, const char *path, struct weir_err *err);
int load_verify_load(struct load_verify *v, const char *path, struct weir_err *err);
