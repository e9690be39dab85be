/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaves: the classes of HTB of single destinations: what a service may send to each, as its receiver has told.
 *
 * LAW     A leaf's ceil is the rate that its receiver told last; its own rate is tiny, so that it borrows all from its service.
 *         It dies PARLEY_LEAF after it was told last: the classifier sees that by itself. Its class, and its number, are
 *         used again only once its queue is empty, so that no packet is lost.
 * DIFFERS A rate that differs from the class's by less than LEAVES_BAND is set only when the class's is LEAVES_OLD; and no
 *         class is set more often than every LEAVES_PACKETS packet times: HTB's tokens would not follow (measured: a ceil
 *         between 20 and 30 Mbit/s that changes each 200 µs gives 28.5, each 10 ms 24.8).
 * COST    At most LEAVES leaves, of 96 bytes here; a receiver that is told of no more is limited with its service only.
 */
#pragma once

#include "serve/shape/device.h"

#define LEAVES         (SHAPE_LEAF_END - SHAPE_LEAF + 1)
#define LEAVES_BAND    0.01
#define LEAVES_OLD     (50 * WEIR_MS)
#define LEAVES_PACKETS 8
#define LEAVES_AHEAD                                                                               \
	(50 * WEIR_MS) /* between two messages to the classifier; a leaf lives so much longer */
#define LEAVES_LEAST 1250.0 /* bytes/s: 10 kbit/s */

struct leaf {
	struct shape_to to;       /* its node may be none of the tree's: of an older version */
	double rate, queue;       /* bytes/s: its class's; and that for which its queue was sized */
	weir_time heard, set;     /* it was told, and its class was set, last … */
	weir_time known;          /* … and the classifier was given its end */
	uint64_t sent, dropped;   /* bytes, packets; when it was looked at last */
	uint32_t queued, quantum; /* quantum: its class's, bytes, at the first device */
	uint16_t next; /* of the same hash, or of the free ones: its number + 1; 0: none */
	uint8_t state; /* enum leaf_state */
};
enum leaf_state { LEAF_FREE, LEAF_LIVES, LEAF_DEAD };

struct leaves_stats {
	unsigned live;      /* leaves that limit */
	uint64_t told, set; /* rates that came, and that classes were given */
	uint64_t full;      /* rates for which there was no free number */
	uint64_t failed;    /* classes that the kernel refused */
};

struct leaves_on { /* what leaves are made on */
	struct tc *tc;
	struct device *devices;
	size_t n_devices;
	const struct tree *tree;
	struct program *program;
};

struct leaves {
	struct leaf *all; /* by minor number − SHAPE_LEAF */
	uint16_t *hashed; /* heads: numbers + 1 */
	uint16_t free;    /* the first of those used before; number + 1 */
	uint32_t used;    /* numbers from 0 on that were ever used */
	struct leaves_stats stats;
};

int leaves_new(struct leaves *l); /* 0 or -ENOMEM */
void leaves_free(struct leaves *l);

/* Limit what a node sends to an address. 0, -ENOSPC, or an error with a message. */
int leaves_tell(struct leaves *l, const struct leaves_on *on, const struct shape_to *to,
	double rate, weir_time now, struct weir_err *err);
/* Take over the classes of leaves that a device has: they are dead, and go when they are empty. For a start, and for a new
 * program, which knows no leaf. */
void leaves_adopt(struct leaves *l, const struct leaves_on *on);
/* Forget what was looked at before; */
void leaves_look_again(struct leaves *l);
/* take what tc_classes has found: sent, dropped, queued. Return the leaf of a class, or NULL. */
const struct leaf *leaves_look(struct leaves *l, const struct tc_class_state *c);
/* After all classes were looked at: bury the dead ones whose queues are empty. `gone` is called with what they sent. */
void leaves_sweep(struct leaves *l, const struct leaves_on *on, weir_time now,
	void (*gone)(void *arg, const struct leaf *leaf), void *arg);
