/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist-small: a histogram that allocates memory only for the ranges in use.
 *
 * LAW     Same buckets and limits as weir_hist, into which hist_small_read converts it, e.g. to read
 *         percentiles.
 * COST    184 bytes, and 64 for each 16 adjacent buckets in use: a tenant whose latencies spread over
 *         two octaves takes 1 KB instead of 8.5. record: O(1), one more cache line than weir_hist.
 *         merge, clear and read: O(buckets in use).
 */
#pragma once

#include <weir/hist.h>

#define HIST_SMALL_CHUNK  16 /* buckets: a cache line of counts */
#define HIST_SMALL_CHUNKS (WEIR_HIST_BUCKETS / HIST_SMALL_CHUNK)

struct hist_small {
	uint64_t count, sum, min, max; /* as in weir_hist */
	uint32_t (*chunk)[HIST_SMALL_CHUNK];
	uint8_t place[HIST_SMALL_CHUNKS]; /* 1 + index in `chunk`; 0: no value recorded there */
	uint8_t n, room;
};

void hist_small_init(struct hist_small *h);
void hist_small_free(struct hist_small *h);  /* empty afterwards, and usable again */
void hist_small_clear(struct hist_small *h); /* keeps the memory */
int hist_small_record(struct hist_small *h, uint64_t value); /* 0 or -ENOMEM */
/* Return 0, or -ENOMEM: `into` may then hold part of the counts. */
int hist_small_merge(struct hist_small *into, const struct hist_small *from);
/* Prefetch the memory that recording touches first. */
void hist_small_fetch(const struct hist_small *h);
void hist_small_read(const struct hist_small *h, struct weir_hist *ret);
