/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-slots: the shared file in which hosts publish their reports, one block for each host.
 *
 * The first block is the header: it identifies the file and holds the number of slots, which is
 * fixed when the file is made. A slot is a block with one sealed message at its start (peer.h), or
 * all zero. A host owns one slot. Once per period it reads all slots in one read; then it writes
 * its own. There are no locks, since shared storage offers none:
 *
 *  - Choice. A host tries the slots starting from one given by a hash of its name. A host that starts
 *    takes over a slot that has its name (its own from before). Else it takes the first slot that is
 *    empty or was left in good order, else the one unchanged for longest, at least `stale`.
 *  - Race. If two hosts take one slot at the same time, the later write stands. The other host finds
 *    in its next read that the slot is not its own, and takes another one. So does a host that slept
 *    so long that its slot was reused. This costs one period of freshness, and nothing else.
 *  - Namesakes. Of two hosts with one name, the one that loses the slot to the other takes another
 *    slot, and no longer takes over slots with its name. Both are heard, and `same` is reported.
 *
 * The content of a slot is news if it changed since the last read; no clock is consulted, so the
 * remains of a dead host are never news. Within one instance the sequence must grow. A torn write
 * has a wrong seal and is ignored. A party with write access to this file could restore old
 * content; but it could write to all storage that the hosts share here.
 *
 * Pure: blocks and `now` are arguments; `now` is from any monotonic clock.
 */
#pragma once

#include "wire/peer.h"
#include <stdbool.h>

#define PEER_SLOTS_BLOCK   4096 /* bytes; devices write a block in one piece or a few */
#define PEER_SLOTS_MOST    4095 /* 16 MiB in all */
#define PEER_SLOTS_DEFAULT 63   /* 256 KiB with the header: one request to most devices */

struct peer_slots_config {
	const char *name;           /* of this host; copied */
	uint64_t instance, cluster; /* of this host */
	weir_time stale;            /* ns; > 0 */
	unsigned slots;             /* 1 … PEER_SLOTS_MOST */
	/* Return true if the seal after n bytes is right; write the seal after n bytes. */
	bool (*sealed)(void *arg, const uint8_t *in, size_t n);
	void (*seal)(void *arg, uint8_t *out, size_t n);
	/* Receive the new message of another host's slot. same: another living host has its name. */
	void (*receive)(void *arg, const struct peer_message *m, bool same);
	void *arg;
};

struct peer_slots;
int peer_slots_new(
	const struct peer_slots_config *c, struct peer_slots **ret_slots); /* or -ENOMEM */
void peer_slots_free(struct peer_slots *s);                                /* NULL is allowed */

/* Write the header for this cluster; it is the same for every host. */
void peer_slots_header(const struct peer_slots_config *c, uint8_t block[PEER_SLOTS_BLOCK]);
/* Parse the first block of a file. Return the number of slots (c->slots is ignored); 0: the block
 * is all zero, so the file is new; -EINVAL: foreign content that must not be overwritten; -EACCES:
 * the header of another cluster or key. */
int peer_slots_look(const struct peer_slots_config *c, const uint8_t block[PEER_SLOTS_BLOCK]);

/* Process all slots as just read (without the header): call receive for each new message, and check
 * that our slot is still ours. */
void peer_slots_scan(struct peer_slots *s, const uint8_t *blocks, weir_time now);
/* Return the slot to write to, 0 … slots − 1; -ENOSPC: all belong to living hosts. Call after a
 * scan. */
int peer_slots_choose(struct peer_slots *s, weir_time now);
/* Write our block, sealed. */
void peer_slots_block(
	const struct peer_slots *s, const struct peer_message *m, uint8_t block[PEER_SLOTS_BLOCK]);

struct peer_slots_stats {
	uint64_t verdicts[PEER_VERDICTS]; /* of changed blocks */
	uint64_t lost;                    /* times that another host took our slot */
	unsigned heard;                   /* hosts whose slot changed in the last `span` */
	int mine;                         /* -1: none yet */
};
void peer_slots_stats(
	const struct peer_slots *s, weir_time now, weir_time span, struct peer_slots_stats *ret);
