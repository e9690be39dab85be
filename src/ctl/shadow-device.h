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

struct shadow_device {                /* zero it */
	double least[SHADOW_CLASSES]; /* ns: the least that was seen; 0: none */
	struct {
		double work, ns; /* means: finished; time beyond the least */
		uint32_t n;      /* samples, up to 64 */
		uint32_t inside; /* requests that went in beside as much work, up to 64 */
	} bin[SHADOW_BINS];
	float recent[SHADOW_RECENT]; /* times over what was expected of them, lately */
	double sum;                  /* of these */
	uint32_t at;
};

/* A request of `class_` went in, `inside` being inside with it; it took `ns`, and `work` was finished meanwhile, its
 * own too. Work is in any unit, the same always. */
void shadow_device_learn(
	struct shadow_device *d, unsigned class_, double inside, double work, weir_time ns);

struct shadow_time {
	double mean;      /* ns */
	double low, high; /* what it may be as well, for all that is known */
};
/* The time of a request of that class with `work` inside, its own too. false: nothing was learned yet. */
bool shadow_device_expect(
	const struct shadow_device *d, unsigned class_, double work, struct shadow_time *ret);
/* One such time, spread around the mean as those that were seen; at least 1 µs. */
weir_time shadow_device_draw(struct shadow_device *d, double mean);

#endif
