/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: which reads follow each other, and what has been read ahead for them.
 *
 * A stream is known by the address at which its next IO must start; reads and writes both carry it
 * on. After `trigger` IOs in a row it is one to read ahead for. What is read ahead is kept by the
 * stream in chunks, one per unit of the address space; a read is looked for only in the chunks of
 * the stream that it carries on. This is the bookkeeping; array.c does the reading.
 */
#ifndef WEIR_MODEL_AHEAD_H
#define WEIR_MODEL_AHEAD_H

#include "model/device.h"

#define AHEAD_CHUNKS 16 /* per stream; a power of two */

struct ahead_chunk {
	uint64_t unit;                    /* which; UINT64_MAX: unused */
	uint64_t from;                    /* the first byte (address) that it holds */
	bool pending;                     /* on its way */
	uint32_t stream;                  /* whose */
	struct device_io *waiters, *last; /* for it to come, in order */
};
struct ahead_stream {
	uint64_t through; /* units before this one have been asked for */
	uint64_t used;    /* tick of the last IO */
	uint32_t run;     /* IOs in a row */
	uint32_t pending; /* chunks on their way */
	struct ahead_chunk chunks[AHEAD_CHUNKS];
};
struct ahead {
	uint64_t *next; /* per stream: where it goes on; apart, to be searched fast */
	struct ahead_stream *streams;
	uint32_t n, trigger;
	uint64_t tick;
};

int ahead_init(struct ahead *a, uint32_t streams, uint32_t trigger); /* 0 or -ENOMEM */
void ahead_free(struct ahead *a); /* also after a failed init, or all zero */

/* Takes note of an IO. The stream it carries on, if long enough to read ahead for; else NULL. */
struct ahead_stream *ahead_follow(struct ahead *a, uint64_t offset, uint64_t bytes);
/* The chunk that holds, or will, the unit from `offset` on; NULL if none. */
struct ahead_chunk *ahead_find(struct ahead_stream *s, uint64_t unit, uint64_t offset);
/* A chunk for `unit` from `offset` on, now pending; NULL if its place is still on its way. */
struct ahead_chunk *ahead_ask(struct ahead_stream *s, uint64_t unit, uint64_t offset);
void ahead_wait(struct ahead_chunk *c, struct device_io *waiter); /* for a pending one */
/* It has come. The waiters, linked by `next`, are the caller's again. */
struct device_io *ahead_come(struct ahead *a, struct ahead_chunk *c);

#endif
