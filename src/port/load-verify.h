/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-verify: what blocks must hold, by what was written, acknowledged and flushed.
 *
 * One thread's. A range that is taken has one request under way; its blocks may not be in another's.
 */
#ifndef WEIR_PORT_LOAD_VERIFY_H
#define WEIR_PORT_LOAD_VERIFY_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_VERIFY_BLOCKS (UINT64_C(1) << 28) /* most: 4 GiB of table */
#define LOAD_VERIFY_MIN    512                 /* bytes of a block at least */

struct load_verify;

struct load_verify_fault { /* a wrong block */
	uint64_t offset;
	uint32_t least, most, got; /* generations that it may hold, and holds */
	char text[200];            /* "offset 4096: generation 3, must be 5 (flushed)" */
};
struct load_verify_count {
	uint64_t checked, unchecked, wrong; /* blocks; unchecked: nothing is known of them */
	struct load_verify_fault last;      /* of the wrong ones */
};

/* Blocks of `block` bytes from `offset` on; `length` is a multiple of block. id: a number of this run
 * alone. */
int load_verify_new(uint64_t offset, uint64_t length, uint32_t block, uint64_t seed, uint64_t id,
	struct load_verify **ret_verify);
void load_verify_free(struct load_verify *v);

/* Takes the range; false: a block of it is taken. */
bool load_verify_take(struct load_verify *v, uint64_t offset, uint32_t length);
/* What the next generation of a taken range is, into data (aligned to 8, as what is read must be). */
void load_verify_fill(struct load_verify *v, uint64_t offset, uint32_t length, uint8_t *data);
/* Give it back: the write was answered (error: 0 or a negative errno; fua: it is durable) … */
void load_verify_written(
	struct load_verify *v, uint64_t offset, uint32_t length, bool fua, int error);
/* … or the read, with its data. Adds to *count. */
void load_verify_read(struct load_verify *v, uint64_t offset, uint32_t length, const uint8_t *data,
	int error, struct load_verify_count *count);

/* A flush is being sent: what it will cover. And it was answered with success. */
uint64_t load_verify_mark(const struct load_verify *v);
void load_verify_flushed(struct load_verify *v, uint64_t mark);
/* All connections were lost, and perhaps all that was not flushed. Ranges that are taken stay so:
 * their requests are sent again. */
void load_verify_lost(struct load_verify *v);
/* A taken range whose write will never be answered. */
void load_verify_abandon(struct load_verify *v, uint64_t offset, uint32_t length);

/* The next run of blocks that were ever written, from *cursor on (0 at first), at most `most` bytes;
 * false: no more. */
bool load_verify_next(struct load_verify *v, uint64_t *cursor, uint32_t most, uint64_t *ret_offset,
	uint32_t *ret_length);

/* What is known, to a file and back. Load: -ENOENT: no file; -EINVAL: not of these blocks. What the
 * file says was flushed must be there; what was not, may be. */
int load_verify_save(const struct load_verify *v, const char *path, struct weir_err *err);
int load_verify_load(struct load_verify *v, const char *path, struct weir_err *err);

#endif
