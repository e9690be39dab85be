/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array: a storage array as hosts see it: one LUN over k disks behind one controller.
 *
 *   host → [FIFO] → slots of the controller → read cache, write cache, disks → port → host
 *
 * - At most `active` IOs are inside the controller; the others wait in one FIFO, in order of arrival,
 *   whatever their kind. This makes throughput level off and latency grow in proportion to the IOs
 *   outstanding.
 * - Each disk orders at most `disk.window` IOs; the others wait in that disk's FIFO.
 * - A LUN address is striped over the disks: `unit` bytes a disk, parity rotating in RAID-5. Lower
 *   addresses are further out on every disk, so placement matters.
 * - The array reads ahead for sequential streams, a unit at a time: the longer the stream, the more,
 *   up to `ahead` units.
 * - Writes are acknowledged once in the write cache (NVRAM), gathered by stripe, and destaged in
 *   order of address, the more at once the fuller the cache is. If it is full they wait, in their
 *   slot. Without a cache they are acknowledged when on disk.
 * - A RAID-5 write of less than a stripe reads and writes the data and the parity (four disk IOs
 *   for a small one); a whole stripe needs no reads.
 * - Flush and trim cost only the controller's time (the write cache survives a power cut).
 *
 * Offsets beyond the LUN wrap around.
 */
#pragma once

#include "model/spindle.h"

#define ARRAY_RAID5_DISKS 33 /* most disks in RAID-5 */

enum array_raid { ARRAY_RAID0, ARRAY_RAID5 };

struct array_config {
	struct spindle_config disk;
	uint32_t disks; /* RAID-0: ≥ 1; RAID-5: 3 … ARRAY_RAID5_DISKS */
	enum array_raid raid;
	uint32_t unit;    /* stripe unit, bytes: a multiple of 4096 */
	uint64_t lun;     /* bytes; 0: all bytes after `start` */
	uint64_t start;   /* bytes on every disk before the LUN */
	uint32_t active;  /* IOs in the controller at once, ≥ 1 */
	weir_time cost;   /* the controller's time per IO, serialised, on the way out */
	weir_time mirror; /* added for a write: its copy in the other controller */
	double bandwidth; /* bytes/s of the port, serialised, on the way out */
	uint32_t streams; /* sequential read streams tracked at once; 0: no read-ahead */
	uint32_t ahead;   /* units read ahead per stream, 1 … 16 */
	uint32_t trigger; /* IOs in a row that make a stream, ≥ 1 */
	uint64_t cache;   /* write cache, bytes; 0: none */
	double low;       /* 0 … 1: the fill level below which nothing is destaged */
	uint32_t destage; /* stripes destaged at once when the cache is full, ≥ 1 */
};

/* The 10-disk RAID-5 group of the CLARiiON CX3-40 in PARDA, Section 5, calibrated to the
 * uncontrolled rows of its Tables 3 and 4 (see array-config.c). */
struct array_config array_cx3(void);
/* The 5-disk RAID-5 group of the same array, with its 400 GB volume (PARDA, Figure 7). */
struct array_config array_cx3_small(void);

/* Create an array. Random: each disk's start angle, from the stream (seed, name). All memory is
 * allocated here. Return 0; -EINVAL with a message that names the field; -ENOMEM. */
int array_new(const struct array_config *config, uint64_t seed, const char *name,
	struct device **ret, struct weir_err *err);

struct array_stats {            /* since the start */
	uint64_t reads, writes; /* IOs taken by the controller */
	uint64_t read_hits;     /* reads that needed no disk IO, or only one of read-ahead */
	uint64_t disk_reads;    /* for reads and read-ahead */
	uint64_t update_reads;  /* old data and parity, for writes */
	uint64_t update_writes; /* data and parity */
	uint64_t full_stripes;  /* written without reading */
	uint64_t blocked;       /* writes that found the cache full */
	uint64_t dirty;         /* bytes in the cache now */
};
/* `d` is an array. */
void array_stats(const struct device *d, struct array_stats *ret);
uint64_t array_size(const struct device *d); /* of the LUN, bytes */
