/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist-small: a histogram that takes memory only where values were recorded.
 *
 * LAW     Has the buckets and the limits of weir_hist, which it can be turned into: to read percentiles, say.
 * COST    184 bytes, and 64 for each 16 neighbouring buckets in use: a tenant whose latencies spread over two
 *         octaves takes 1 KB instead of 8.5. record: O(1), one more cache line than weir_hist. merge, clear and
 *         turning: O(buckets in use).
 */
#ifndef WEIR_BASE_HIST_SMALL_H
#define WEIR_BASE_HIST_SMALL_H

#include "base/hist.h"

#define HIST_SMALL_CHUNK  16 /* buckets: a cache line of counts */
#define HIST_SMALL_CHUNKS (WEIR_HIST_BUCKETS / HIST_SMALL_CHUNK)

struct hist_small {
	uint64_t count, sum, min, max; /* as those of weir_hist */
	uint32_t (*chunk)[HIST_SMALL_CHUNK];
	uint8_t place[HIST_SMALL_CHUNKS]; /* 1 + index in `chunk`; 0: nothing was recorded there */
	uint8_t n, room;
};

void hist_small_init(struct hist_small *h);
void hist_small_free(struct hist_small *h);  /* empty afterwards, and may be used again */
void hist_small_clear(struct hist_small *h); /* keeps the memory */
int hist_small_record(struct hist_small *h, uint64_t value); /* 0 or -ENOMEM */
/* 0, or -ENOMEM: `into` may then have a part of the counts. */
int hist_small_merge(struct hist_small *into, const struct hist_small *from);
/* Asks for the memory that recording will touch first. Changes nothing. */
void hist_small_fetch(const struct hist_small *h);
void hist_small_read(const struct hist_small *h, struct weir_hist *ret);

#endif
