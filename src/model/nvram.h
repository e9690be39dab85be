/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvram: what a write cache holds, gathered by stripe.
 *
 * The address space is cut into groups (a stripe's data, or one unit where there is no parity) of
 * `units` units of `unit` bytes. What is dirty is known to 1/64 of a unit. Taking a group out of
 * the map, to destage it, leaves its bytes counted until nvram_release.
 */
#ifndef WEIR_MODEL_NVRAM_H
#define WEIR_MODEL_NVRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVRAM_LEVELS 5 /* of 64 each: 2^30 groups */

struct nvram_range { /* of one unit: [from, to) bytes; empty when equal */
	uint32_t from, to;
};

struct nvram {
	uint64_t capacity, dirty; /* bytes */
	uint64_t groups;
	uint32_t units, unit; /* units per group, bytes per unit */
	uint32_t grain;       /* bytes per bit of a mask */
	uint32_t *entry;      /* per group: 1 + its entry's index, or 0 */
	uint64_t *masks;      /* per entry: one per unit */
	uint32_t *free_list, n_free;
	uint64_t *level[NVRAM_LEVELS]; /* level 0: bit g: group g is dirty; above: words not 0 */
	uint64_t n_dirty;              /* groups in the map */
	uint64_t hand;                 /* where the next take starts */
};

/* 0 or -ENOMEM; `unit` a multiple of 64, groups in 1 … 2^30. */
int nvram_init(struct nvram *n, uint64_t groups, uint32_t units, uint32_t unit, uint64_t capacity);
void nvram_free(struct nvram *n); /* also after a failed init, or all zero */

/* All of [offset, offset + bytes), or nothing and false when there is no room. A write larger than
 * the whole cache is taken when nothing else is in it. */
bool nvram_write(struct nvram *n, uint64_t offset, uint64_t bytes);
/* True if all of it is dirty (and not taken). */
bool nvram_holds(const struct nvram *n, uint64_t offset, uint64_t bytes);

/* The next dirty group in order of address, from where the last one was, around. Sets the range of
 * every unit (from the first dirty byte to the last); returns the bytes to release later. n_dirty
 * > 0. */
uint64_t nvram_take(struct nvram *n, uint64_t *ret_group, struct nvram_range *ret_ranges);
void nvram_release(struct nvram *n, uint64_t bytes);

#endif
