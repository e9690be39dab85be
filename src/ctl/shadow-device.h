/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-device: how long a device would take for a request, if other requests were inside than are.
 *
 * In shadow mode nothing is held, so an overloaded device has far more inside than a gate would let in,
 * and each request takes far longer. What is learned from them is the time by the work that the device finished
 * meanwhile; what is asked for is the time beside the work of the shadows.
 *
 * Pure: times are arguments, no memory of its own.
 */
#ifndef WEIR_CTL_SHADOW_DEVICE_H
#define WEIR_CTL_SHADOW_DEVICE_H

#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define SHADOW_CLASSES 40  /* of requests that take alike, chosen by the caller */
#define SHADOW_BINS    160 /* of work: 4 an octave */
#define SHADOW_RECENT  32

struct shadow_bin {
	double work, ns; /* means: of the work; of the time beyond the least */
	double finished; /* mean of the work finished meanwhile */
	uint32_t n;      /* samples, up to 64 */
	uint32_t
		passes; /* of these, such that did not overlap in time, up to 64: others tell little more */
	weir_time until; /* the last such one ended */
};

struct shadow_device {                      /* zero it */
	double least[SHADOW_CLASSES];       /* ns: the least that was seen; 0: none */
	struct shadow_bin bin[SHADOW_BINS]; /* by the work finished while the request was inside */
	struct shadow_bin beside[SHADOW_BINS]; /* by the work inside when it went in */
	float recent[SHADOW_RECENT];           /* times over what was expected of them, lately */
	double sum;                            /* of these */
	uint32_t at, drawn;                    /* the next to be replaced; the next to be drawn */
};

/* A request of `class_` that went in with `inside` inside is back at `now`; it took `ns`, and `work` was finished meanwhile.
 * Both include its own. Work is in any unit, the same always. */
void shadow_device_learn(struct shadow_device *d, weir_time now, unsigned class_, double inside,
	double work, weir_time ns);

struct shadow_time {
	double mean;      /* ns */
	double low, high; /* what it may be as well, for all that is known */
};
/* The time of a request of that class with `work` inside, `own` of it its own. false: nothing was learned yet. */
bool shadow_device_expect(const struct shadow_device *d, unsigned class_, double own, double work,
	struct shadow_time *ret);
/* One such time, spread around the mean as those that were seen; at least 1 µs. */
weir_time shadow_device_draw(struct shadow_device *d, double mean);

#endif
