/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volumes: several back ends behind one gate.
 *
 * A back end whose offsets are divided into parts of 256 TiB, its slots; each volume is a back end of
 * its own and has one slot. A request belongs to the volume of its offset, a FLUSH as well. So a gate, its
 * window and its controllers see one back end, and a volume is an export at the offset of its slot.
 *
 * Its own `info` describes all volumes together; clients are told that of their volume (back_at).
 *
 * EXAMPLE  slot 2, offset 4096 of the volume: offset 0x0002000000001000 of the whole.
 */
#pragma once

#include "serve/back/back.h"
#include <stdatomic.h>

#define BACK_VOLUMES_BITS 48
#define BACK_VOLUMES_SIZE                                                                          \
	(UINT64_C(1) << BACK_VOLUMES_BITS) /* bytes: the largest volume is smaller */
#define BACK_VOLUMES_MOST 65536u

static inline uint64_t back_volumes_offset(uint32_t slot)
{
	return (uint64_t)slot << BACK_VOLUMES_BITS;
}

/* Make one without volumes. It lives on the loop's thread once it was started. 0 or -ENOMEM. */
int back_volumes_new(struct loop *loop, struct back **ret_back);

/* Counters of a volume, written on the loop's thread, and read by any. */
struct back_volume_counts {
	atomic_uint clients;
	atomic_bool stalled;
	atomic_uint_fast64_t requests, bytes; /* bytes: read and written */
};

/* A volume that is added. `known` is called on the loop's thread when an upstream was reached for the first time,
 * see struct back; `gone` when the volume was removed and freed, with the result of its last FLUSH. Both may be
 * NULL. */
struct back_volume_calls {
	void (*known)(void *arg);
	void (*gone)(void *arg, int error);
	void *arg;
	struct back_volume_counts *counts; /* may be NULL; valid until `gone` */
};

/* Reserve a free slot. -ENOSPC: there is none; -ENOMEM. Before the start, or on the loop's thread. */
int back_volumes_reserve(struct back *all, uint32_t *ret_slot);
/* Put a volume, which is opened but not started, into a reserved slot, and start it if the whole was started. The volume
 * is owned from now on, unless it cannot be started: then the slot is free again. 0 or a negative errno. */
int back_volumes_add(struct back *all, uint32_t slot, struct back *volume,
	const struct back_volume_calls *calls);
/* Free a volume, or a slot that was only reserved: when the requests inside are done the volume is flushed, then freed.
 * No request for it may be submitted any more. */
void back_volumes_remove(struct back *all, uint32_t slot);

/* Note in its counts whether a volume is stalled. */
void back_volumes_stalled(struct back *all, uint32_t slot, bool stalled);
/* A client of the volume at an offset comes (1), or leaves (-1). Nothing if there is no volume. */
void back_volumes_client(struct back *all, uint64_t offset, int n);
/* Take the size of a volume's storage anew. 0, or -ENOTSUP. */
int back_volumes_grown(struct back *all, uint32_t slot);

/* Return true if it was made by back_volumes_new. */
bool back_is_volumes(const struct back *b);
/* Return the storage at an offset: a volume, or b itself if it has none. NULL: there is no volume at that offset. */
const struct back *back_at(const struct back *b, uint64_t offset);
