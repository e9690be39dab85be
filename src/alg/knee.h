/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knee: the latency beyond which more waiting buys no more throughput, found while it works.
 *
 * For who keeps a latency (alg/parda) and was not told which. It is told what came of each interval,
 * and says which latency to keep in the next: mostly the knee, now and then a little beside it, to see
 * whether the knee has moved.
 */
#ifndef WEIR_ALG_KNEE_H
#define WEIR_ALG_KNEE_H

#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define KNEE_OCTAVE 6                  /* bins an octave: each is 12 % wide */
#define KNEE_BINS   (24 * KNEE_OCTAVE) /* from 1 µs to 17 s */

struct knee_config {
	double part;        /* of the most throughput: what is had at the knee; 0: 0.95 */
	double least, most; /* ns: bounds of what is asked for; 0: 100 µs, 100 ms */
	unsigned dwell;     /* intervals that one latency is asked for; 0: 6 */
	uint64_t memory;    /* intervals after which what was seen is forgotten; 0: 1800 */
};

struct knee {
	struct knee_config config;
	struct knee_bin {
		double rate;   /* requests per second that it does at this latency */
		uint32_t n;    /* how often seen */
		uint64_t seen; /* when last, in intervals */
	} bins[KNEE_BINS];
	uint64_t now; /* intervals */
	unsigned phase;
	double knee;  /* ns; 0: not known yet */
	double asked; /* ns: what is to be kept now */
};

void knee_init(struct knee *k, const struct knee_config *config); /* NULL: defaults */

/* An interval has passed, in which IOs took `latency` ns and `rate` a second were done (0, 0: none).
 * Returns the latency to keep in the next, ns. O(bins). */
double knee_step(struct knee *k, double latency, double rate);

#endif
