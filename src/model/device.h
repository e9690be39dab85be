/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: what every model of a resource looks like from outside.
 *
 * A small table of functions is the plug. A device is told what arrives and when, says when
 * something will next happen inside it, and hands back what has finished. It sees time only as an
 * argument and draws its random numbers from a stream it was given: the simulator drives it in
 * virtual time, the gateway's `model:` back end with the real clock.
 */
#ifndef WEIR_MODEL_DEVICE_H
#define WEIR_MODEL_DEVICE_H

#include "base/clock.h"
#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>

struct device_io {              /* the caller's memory, the device's until step hands it back */
	struct device_io *next; /* links the list that step returns; the device's while inside */
	uint64_t offset;        /* bytes; one beyond the device's size is wrapped, in place */
	uint32_t bytes;
	uint8_t op;           /* enum weir_op's values: 0 read, 1 write, 2 flush, 3 trim */
	uint8_t priority;     /* links with strict priority: 0 first */
	bool marked, dropped; /* links: out: ECN mark; tail drop */
	uint32_t source;      /* which host or stream; some models keep state by it */
	weir_time arrived;    /* set by submit */
	weir_time finished;   /* set when it finishes (may lie before the step's now) */
	weir_time busy; /* out, if the device tells it: for how long it held parts of the device
	                         (a die, a server, an arm), of all of them together; waiting is not counted */
	void *user;
	uint64_t scratch[2]; /* the device's */
};

struct device;
struct device_ops {
	const char *name;
	/* Takes one IO at `now`. Call step(now) first if next() ≤ now. */
	void (*submit)(struct device *d, weir_time now, struct device_io *io);
	/* When something next happens inside; WEIR_NEVER when idle. */
	weir_time (*next)(const struct device *d);
	/* Everything up to and including `now` happens; the IOs that finished, in order of
	 * `finished`, linked by `next`; NULL if none. */
	struct device_io *(*step)(struct device *d, weir_time now);
	void (*free)(struct device *d);
	bool tells_busy; /* every IO that it hands back has `busy` */
	/* ns for which its parts (disks) worked since the start, on the mean of them; NULL: not known */
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

#endif
