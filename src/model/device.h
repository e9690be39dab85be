/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: the interface of every model of a resource.
 *
 * A device accepts IOs at given times, says when its next event is due, and returns the finished
 * IOs. Time is an argument, and random numbers come from a stream given to the device: the
 * simulator drives it in virtual time, the gateway's `model:` back end with the real clock.
 */
#pragma once

#include <weir/clock.h>
#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>

struct device_io {              /* the caller's memory, owned by the device until step returns it */
	struct device_io *next; /* links the list that step returns; the device's while inside */
	uint64_t offset;        /* bytes; wrapped in place if beyond the device's size */
	uint32_t bytes;
	uint8_t op;           /* enum weir_op's values: 0 read, 1 write, 2 flush, 3 trim */
	uint8_t priority;     /* links with strict priority: 0 first */
	bool marked, dropped; /* links, out: ECN mark; tail drop */
	uint32_t source;      /* host or stream; some models keep state by it */
	weir_time arrived;    /* set by submit */
	weir_time finished;   /* set when it finishes (may lie before the step's now) */
	weir_time busy; /* out, if set: how long the IO held parts of the device, summed, without
	                   waits */
	void *user;
	uint64_t scratch[2]; /* private to the device */
};

struct device;
struct device_ops {
	const char *name;
	/* Accept one IO at `now`. Call step(now) first if next() ≤ now. */
	void (*submit)(struct device *d, weir_time now, struct device_io *io);
	/* Return the time of the next event inside; WEIR_NEVER if idle. */
	weir_time (*next)(const struct device *d);
	/* Process everything up to and including `now`. Return the finished IOs, in order of
	 * `finished`, linked by `next`; NULL if none. */
	struct device_io *(*step)(struct device *d, weir_time now);
	void (*free)(struct device *d);
	bool tells_busy; /* step sets `busy` in every IO */
	/* Return the ns for which the parts (disks) have worked since the start, averaged over them; NULL: not
	 * known. */
	double (*worked)(const struct device *d);
};
struct device { /* first member of every model */
	const struct device_ops *ops;
};

static inline void device_submit(struct device *d, weir_time now, struct device_io *io)
{
	d->ops->submit(d, now, io);
}
static inline weir_time device_next(const struct device *d)
{
	return d->ops->next(d);
}
static inline struct device_io *device_step(struct device *d, weir_time now)
{
	return d->ops->step(d, now);
}
static inline void device_free(struct device *d)
{
	if (d)
		d->ops->free(d);
}
