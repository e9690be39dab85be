/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvram: the content of a write cache, gathered by stripe.
 *
 * The address space is divided into groups (a stripe's data, or one unit without parity) of `units`
 * units of `unit` bytes. Dirty ranges are known to 1/64 of a unit. Taking a group out of the map,
 * to destage it, leaves its bytes counted until nvram_release.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NVRAM_LEVELS 5 /* of 64 each: 2^30 groups */

struct nvram_range { /* in one unit: [from, to) bytes; empty when equal */
	uint32_t from, to;
};

struct nvram {
	uint64_t capacity, dirty; /* bytes */
	uint64_t groups;
	uint32_t units, unit; /* units per group, bytes per unit */
	uint32_t grain;       /* bytes per bit of a mask */
	uint32_t *entry;      /* per group: 1 + index of its entry, or 0 */
	uint64_t *masks;      /* per entry: one per unit */
	uint32_t *free_list, n_free;
	uint64_t *level[NVRAM_LEVELS]; /* level 0: bit g: group g is dirty; above: nonzero words */
	uint64_t n_dirty;              /* groups in the map */
	uint64_t hand;                 /* where the next take starts */
};

/* 0 or -ENOMEM; `unit` a multiple of 64, groups in 1 … 2^30. */
int nvram_init(struct nvram *n, uint64_t groups, uint32_t units, uint32_t unit, uint64_t capacity);
void nvram_free(struct nvram *n); /* also after a failed init, or zeroed */

/* Write all of [offset, offset + bytes), or nothing and return false if there is no room. A write
 * larger than the whole cache is taken when the cache is empty. */
bool nvram_write(struct nvram *n, uint64_t offset, uint64_t bytes);
/* Return true if the whole range is dirty (and not taken). */
bool nvram_holds(const struct nvram *n, uint64_t offset, uint64_t bytes);

/* Take the next dirty group in order of address, starting after the last one and wrapping around.
 * Set the range of every unit (from the first dirty byte to the last); return the bytes to release
 * later. n_dirty > 0. */
uint64_t nvram_take(struct nvram *n, uint64_t *ret_group, struct nvram_range *ret_ranges);
void nvram_release(struct nvram *n, uint64_t bytes);
