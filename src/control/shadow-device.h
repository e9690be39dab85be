/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-device: estimate a request's time on a device with less work inside than it has now.
 *
 * In shadow mode nothing is held, so an overloaded device has far more work inside than a gate
 * would let in, and each request takes far longer. The device is observed as it is; the caller asks
 * for the time that a request would take with the work that the gate would have let in.
 *
 * Pure: times are arguments, no allocation (10 KiB a device). The law is in shadow-device.c.
 */
#pragma once

#include "control/shadow-cost.h"
#include <stdbool.h>
#include <stdint.h>

#define SHADOW_CLASSES 40 /* classes of requests that take equally long, chosen by the caller */
#define SHADOW_LEVELS  88 /* of work inside */
#define SHADOW_LIGHT   32
#define SHADOW_RECENT  32

struct shadow_level { /* sums over the requests that went in at this level */
	double n, time;
	struct shadow_work inside;
};

struct shadow_light {              /* one request */
	struct shadow_work inside; /* when it arrived, including its own */
	struct shadow_work beside; /* the same, or finished meanwhile, whichever is more */
	double ns;
};

struct shadow_ratio { /* of times to the curve, weighted */
	double weight, sum;
};

struct shadow_point { /* of the curve */
	double time;  /* log ns */
	double error; /* its standard deviation */
};

struct shadow_order {         /* in which requests end */
	bool disks;           /* set by the caller: rotational disks, each with its own queue */
	double passed[2];     /* the most requests that one request overtook, lately and before */
	double first, random; /* moving averages: overtook nearly all; would at random */
	uint64_t n;
};

struct shadow_device { /* zero-initialised by the caller */
	struct shadow_order order;
	struct shadow_cost cost;
	struct shadow_level level[SHADOW_LEVELS];
	struct shadow_light light[SHADOW_LIGHT]; /* the requests with the least inside */
	uint32_t n_light, next;
	double least;              /* ns: the shortest time seen */
	double own, own2;          /* moving averages of a request's pages and their square */
	double inside, inside2;    /* the same, of the work inside when it arrived */
	uint64_t learned, renewed; /* requests; when the curve was last fitted */
	struct shadow_point curve[SHADOW_LEVELS];
	struct shadow_ratio all[2], class_[SHADOW_CLASSES][2]; /* of times in service, in queues */
	float recent[SHADOW_RECENT]; /* measured times divided by expected times */
	double sum;                  /* of these */
	uint32_t at, drawn;          /* the next to be replaced; the next to be drawn */
};

struct shadow_sample {
	unsigned class_;
	struct shadow_work own;
	struct shadow_work inside;   /* when it arrived, including its own */
	struct shadow_work finished; /* while it was inside, including its own */
	weir_time now, ns; /* when its end was noticed; the time that it took until then */
	double late;       /* ns of that after it ended, on average: not the device's */
};
/* Record a completed request. */
void shadow_device_learn(struct shadow_device *d, const struct shadow_sample *s);

struct shadow_time {
	double mean;      /* ns */
	double low, high; /* range in which the time is expected: two standard deviations */
};
/* Estimate the time of a request of that class with that work inside, including its own. Return
 * false before anything was learned. */
bool shadow_device_expect(const struct shadow_device *d, unsigned class_,
	const struct shadow_work *own, const struct shadow_work *inside, struct shadow_time *ret);
/* Draw one time, spread around the mean like the measured times; at least 1 µs. */
weir_time shadow_device_draw(struct shadow_device *d, double mean);
