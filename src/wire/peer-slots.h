/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-slots: the shared file in which hosts tell each other how they fare, one block for each.
 *
 * The first block is the header: that this is such a file, and how many slots follow, which is settled when
 * it is made. A slot is a block with one sealed message at its start (peer.h), or all zero. A host
 * owns one slot. Once a period it reads all, in one read; then it writes its own. There are no locks,
 * since the storage that hosts share offers none:
 *
 *  - Where. A host's slots are tried from one chosen by a hash of its name. A host that starts takes over
 *    a slot that has its name (its own of before). Else the first that is empty or was left in good
 *    order, else the one that did not change for longest, `stale` at least.
 *  - Two that take one slot at the same time: the later write stands. The other finds in its next read
 *    that the slot is not its own, and goes on to another one. So does a host that slept so long that its
 *    slot was given away. It costs a period of freshness, and nothing else.
 *  - Two hosts of one name: the one that loses the slot to its namesake goes on to another, and no
 *    longer takes what bears its name. Both are heard, and it is said.
 *
 * What is new in a slot is taken when it changed since the last read: a clock is not asked, so what a host
 * left behind that is no more is never taken for news. In one instance the sequence must grow. A write
 * that was torn has a wrong seal, and is as if it had not been. Who may write to this file may
 * bring back what stood there before; but who may, may write to all that the hosts share here.
 *
 * Pure: blocks and `now` are arguments; `now` is any clock that never steps.
 */
#ifndef WEIR_WIRE_PEER_SLOTS_H
#define WEIR_WIRE_PEER_SLOTS_H

#include "wire/peer.h"
#include <stdbool.h>

#define PEER_SLOTS_BLOCK   4096 /* bytes; what every device writes in one piece, or in few */
#define PEER_SLOTS_MOST    4095 /* so that all is 16 MiB */
#define PEER_SLOTS_DEFAULT 63   /* with the header 256 KiB: one request to most devices */

struct peer_slots_config {
	const char *name;           /* ours; copied */
	uint64_t instance, cluster; /* ours */
	weir_time stale;            /* ns; > 0 */
	unsigned slots;             /* 1 … PEER_SLOTS_MOST */
	/* Is the seal behind n bytes right? Writes the seal behind n bytes. */
	bool (*sealed)(void *arg, const uint8_t *in, size_t n);
	void (*seal)(void *arg, uint8_t *out, size_t n);
	/* What is new in somebody's slot. same: another living host has its name. */
	void (*receive)(void *arg, const struct peer_message *m, bool same);
	void *arg;
};

struct peer_slots;
int peer_slots_new(
	const struct peer_slots_config *c, struct peer_slots **ret_slots); /* or -ENOMEM */
void peer_slots_free(struct peer_slots *s);                                /* NULL is fine */

/* The header as it must be for this cluster; equal for all who write it. */
void peer_slots_header(const struct peer_slots_config *c, uint8_t block[PEER_SLOTS_BLOCK]);
/* The first block of a file: how many slots follow (c->slots is not looked at); 0: it is all zero, so
 * that there is nothing yet; -EINVAL: it is something else, and not to be written to; -EACCES: one of
 * another cluster or with another key. */
int peer_slots_look(const struct peer_slots_config *c, const uint8_t block[PEER_SLOTS_BLOCK]);

/* Looks at all slots as they were just read (the header is not among them): calls receive for each
 * that is new, and finds out whether ours is still ours. */
void peer_slots_scan(struct peer_slots *s, const uint8_t *blocks, weir_time now);
/* Where to write now: 0 … slots − 1; -ENOSPC: all belong to living hosts. After a scan. */
int peer_slots_choose(struct peer_slots *s, weir_time now);
/* Our block, sealed. */
void peer_slots_block(
	const struct peer_slots *s, const struct peer_message *m, uint8_t block[PEER_SLOTS_BLOCK]);

struct peer_slots_stats {
	uint64_t verdicts[PEER_VERDICTS]; /* of blocks that changed */
	uint64_t lost;                    /* times that another host had taken our slot */
	unsigned heard;                   /* hosts whose slot changed in the last `span` */
	int mine;                         /* -1: none yet */
};
void peer_slots_stats(
	const struct peer_slots *s, weir_time now, weir_time span, struct peer_slots_stats *ret);

#endif
