/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array-parts: internals of an array, shared by its three files. Users include array.h.
 *
 *   array.c         slots, reads, the port: from the host's IO to the disks and back
 *   array-update.c  writes: from the cache or the host to data and parity
 *   array-config.c  the predefined arrays, and the check of a configuration
 */
#pragma once

#include "base/heap.h"
#include "model/ahead.h"
#include "model/array.h"
#include "model/iolist.h"
#include "model/nvram.h"

enum array_kind {     /* kind of a disk IO, in its `source` */
	ARRAY_PIECE,  /* part of a host's read; user: the host's IO */
	ARRAY_CHUNK,  /* read ahead; user: the chunk */
	ARRAY_UPDATE, /* part of a stripe's update; user: the job */
};

struct array_job {              /* the update of one stripe (or of one unit, without parity) */
	struct device_io *io;   /* the host's write; NULL: destaged from the cache */
	struct array_job *next; /* in the free list */
	uint64_t group, bytes;
	uint32_t pending; /* disk IOs in progress */
	bool writing;     /* old data and parity have been read */
	struct nvram_range *ranges;
};

struct array {
	struct device device;
	struct array_config config;
	struct spindle_geometry geometry;
	struct spindle *disks;
	struct heap ends; /* every disk, by its `done` */
	uint32_t *place;
	uint64_t lun;
	uint32_t units;        /* of data per group */
	uint64_t group_bytes;  /* of data */
	struct iolist fifo;    /* waiting for a slot */
	uint32_t inside;       /* slots in use */
	struct iolist stalled; /* in a slot, waiting for free disk IOs or jobs */
	struct iolist blocked; /* writes in a slot, waiting for room in the cache */
	struct iolist out;     /* sent through the port, `finished` set */
	weir_time port;        /* time from which it is free */
	double ns_byte;        /* of the port */
	struct device_io *pool, *free_ops;
	uint32_t free_pieces; /* disk IOs left for pieces of reads */
	struct array_job *jobs, *free_jobs;
	struct nvram_range *ranges;
	uint32_t n_jobs; /* in progress */
	struct nvram cache;
	struct ahead ahead;
	struct array_stats stats;
	uint64_t misses; /* reads that needed a disk IO of their own */
};

/* array-config.c */

/* Return 0, or -EINVAL with a message that names the field. */
int array_check(const struct array_config *config, struct weir_err *err);
/* Return the bytes of all disks after `start`, without parity. */
uint64_t array_data_bytes(const struct array_config *config);

/* array.c */

/* Allocate a disk IO from the pool, which is large enough by construction. */
struct device_io *array_op_new(struct array *a, enum array_kind kind, void *user);
void array_to_disk(struct array *a, weir_time t, uint32_t disk, struct device_io *op);
/* Return the disk of a group's data unit `i`, and the address on it; i = units: the parity. */
uint32_t array_place_of(const struct array *a, uint64_t group, uint32_t i, uint64_t *ret_offset);
/* Return one past the last byte of a host's IO, cut at the end of the LUN. */
uint64_t array_end_of(const struct array *a, const struct device_io *io);
/* End one part of a host's IO; after the last part the IO leaves through the port. */
void array_part_done(struct array *a, weir_time t, struct device_io *io);

/* array-update.c */

/* Start the updates of a write without a cache. Return false if out of jobs: call again. */
bool array_write_parts(struct array *a, weir_time t, struct device_io *io);
/* Start as many destages as the fill level of the cache requires. */
void array_destage(struct array *a, weir_time t);
void array_update_ended(
	struct array *a, weir_time t, struct array_job *j); /* one of its IOs ended */
