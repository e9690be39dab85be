/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knee: the latency beyond which more waiting buys no more throughput, found while it works.
 *
 * For who keeps a latency (control/parda/law) and was not told which. It is told what came of each interval,
 * and says which latency to keep in the next: mostly the knee, now and then a little beside it, to see
 * whether the knee has moved.
 */
#ifndef WEIR_CONTROL_PARDA_KNEE_H
#define WEIR_CONTROL_PARDA_KNEE_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define KNEE_OCTAVE 6                  /* bins an octave: each is 12 % wide */
#define KNEE_BINS   (24 * KNEE_OCTAVE) /* from 1/16 inside to a million */

struct knee_config {
	double part;        /* of the most throughput: what is had at the knee; 0: 0.95 */
	double least, most; /* ns: bounds of what is asked for; 0: 100 µs, 100 ms */
	unsigned dwell;     /* intervals that one latency is asked for; 0: 6 */
	uint64_t memory;    /* intervals after which what was seen is forgotten; 0: 1800 */
};

/* An interval. All 0: nothing was done in it. */
struct knee_seen {
	double inside;  /* requests inside the resource, on the mean */
	double windows; /* how many there might have been */
	double rate;    /* requests done per second */
	double latency; /* ns that they took */
};

struct knee {
	struct knee_config config;
	struct knee_bin {
		double weight;  /* of all that was seen; an interval at rest weighs 1 */
		double rate;    /* requests per second with as many inside, … */
		double latency; /* … ns, then */
		double fitted;  /* per second: the rate, by the neighbours' too */
		uint64_t seen;  /* when last, in intervals */
	} bins[KNEE_BINS];
	double variance;         /* of an interval's rate, relative */
	struct knee_seen before; /* the interval before */
	uint64_t now;            /* intervals */
	unsigned dwelt;          /* intervals that `asked` is asked for already */
	unsigned missed;         /* of those: in which less was done than should be */
	double lost;             /* by that, in intervals of the throughput at the knee */
	unsigned others;         /* intervals in a row that were like another resource's */
	unsigned ups;            /* turns in a row that went up, since too little was done */
	unsigned phase;          /* of a round, in turns */
	double knee;             /* ns; 0: not known yet */
	double asked;            /* ns: what is to be kept now */
};

void knee_init(struct knee *k, const struct knee_config *config); /* NULL: defaults */

/* An interval has passed. Returns the latency to keep in the next, ns. O(bins). */
double knee_step(struct knee *k, const struct knee_seen *seen);

#endif
