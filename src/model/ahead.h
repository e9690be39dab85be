/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: detect sequential streams and track the data read ahead for them.
 *
 * A stream is known by the address at which its next IO must start; reads and writes both continue
 * it. After `trigger` IOs in a row the array reads ahead for the stream. The stream keeps the data
 * in chunks, one per unit of the address space; a read is looked up only in the chunks of the
 * stream that it continues. This is the bookkeeping; array.c does the reading.
 */
#pragma once

#include "model/device.h"

#define AHEAD_CHUNKS 16 /* per stream; a power of two */

struct ahead_chunk {
	uint64_t unit;                    /* number of the unit; UINT64_MAX: unused */
	uint64_t from;                    /* the first byte (address) that it holds */
	bool pending;                     /* being read */
	uint32_t stream;                  /* index of its stream */
	struct device_io *waiters, *last; /* waiting for this chunk, in order */
};
struct ahead_stream {
	uint64_t through; /* units before this one were requested */
	uint64_t used;    /* tick of the last IO */
	uint32_t run;     /* IOs in a row */
	uint32_t pending; /* chunks being read */
	struct ahead_chunk chunks[AHEAD_CHUNKS];
};
struct ahead {
	uint64_t *next; /* per stream: address of its next IO; separate, for a fast search */
	struct ahead_stream *streams;
	uint32_t n, trigger;
	uint64_t tick;
};

int ahead_init(struct ahead *a, uint32_t streams, uint32_t trigger); /* 0 or -ENOMEM */
void ahead_free(struct ahead *a); /* also after a failed init, or zeroed */

/* Record an IO. Return the stream that it continues if it is long enough to read ahead for, else
 * NULL. */
struct ahead_stream *ahead_follow(struct ahead *a, uint64_t offset, uint64_t bytes);
/* Return the chunk that holds, or will hold, the unit from `offset` on; NULL if none. */
struct ahead_chunk *ahead_find(struct ahead_stream *s, uint64_t unit, uint64_t offset);
/* Start a pending chunk for `unit` from `offset` on; NULL if its slot is still being read. */
struct ahead_chunk *ahead_ask(struct ahead_stream *s, uint64_t unit, uint64_t offset);
void ahead_wait(struct ahead_chunk *c, struct device_io *waiter); /* for a pending chunk */
/* Complete a chunk. Return its waiters, linked by `next`, to the caller. */
struct device_io *ahead_come(struct ahead *a, struct ahead_chunk *c);
