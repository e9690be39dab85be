/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knee: find the latency beyond which more waiting gives no more throughput, during normal load.
 *
 * For a controller that keeps a latency (control/parda/law.h) that was not configured. It gets the
 * result of each interval, and returns the latency to keep in the next: mostly the knee, now and
 * then a little beside it, to see whether the knee has moved.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define KNEE_OCTAVE 6                  /* bins an octave: each is 12 % wide */
#define KNEE_BINS   (24 * KNEE_OCTAVE) /* from 1/16 inside to a million */

struct knee_config {
	double part;        /* part of the most throughput that defines the knee; 0: 0.95 */
	double least, most; /* ns: bounds of the latency that is asked for; 0: 100 µs, 100 ms */
	unsigned dwell;     /* intervals for which one latency is asked for; 0: 6 */
	uint64_t memory;    /* intervals after which observations are forgotten; 0: 1800 */
};

/* One interval. All 0: it was idle. */
struct knee_seen {
	double inside;  /* requests inside the resource, on the mean */
	double windows; /* the most that might have been inside */
	double rate;    /* requests done per second */
	double latency; /* ns that they took */
};

struct knee {
	struct knee_config config;
	struct knee_bin {
		double weight;  /* weight of all observations; an interval at rest weighs 1 */
		double rate;    /* requests per second with as many inside, … */
		double latency; /* … ns, then */
		double fitted;  /* per second: the rate, by the neighbours' too */
		uint64_t seen;  /* when last, in intervals */
	} bins[KNEE_BINS];
	double variance;         /* of an interval's rate, relative */
	struct knee_seen before; /* the interval before */
	uint64_t now;            /* intervals */
	unsigned dwelt;          /* intervals for which `asked` was asked for so far */
	unsigned missed;         /* of those: with less throughput than expected */
	double lost;             /* lost throughput, in intervals at the knee's throughput */
	unsigned others;         /* intervals in a row that look like another resource */
	unsigned ups;            /* turns in a row that went up, because of low throughput */
	unsigned phase;          /* of a round, in turns */
	double knee;             /* ns; 0: not known yet */
	double asked;            /* ns: the latency to keep now */
};

void knee_init(struct knee *k, const struct knee_config *config); /* NULL: defaults */

/* Record an interval. Return the latency to keep in the next, ns. O(bins). */
double knee_step(struct knee *k, const struct knee_seen *seen);
