/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe: a burst of the gateway's own reads at a resource, for PARDA's threshold
 * (control/parda/knee-probe.h).
 *
 * The reads bypass the gate, are counted for no tenant, and are spread over the part of the back
 * end that clients have touched. No more are sent when a client's request arrives, or when `stop`
 * is set. On the loop's thread, except for `stop`.
 */
#ifndef WEIR_SERVE_RESOURCE_PROBE_H
#define WEIR_SERVE_RESOURCE_PROBE_H

#include "control/parda/parda.h"
#include "base/rng.h"
#include "serve/resource/resource.h"
#include <stdatomic.h>

struct resource_probe { /* zero it; then free it by resource_probe_free */
	struct resource *resource;
	struct probe_burst burst;               /* in: the plan; out: its result */
	uint32_t bytes;                         /* in: of a read; out: the actual size */
	uint64_t reads;                         /* out: number of reads sent */
	weir_time ended;                        /* out: end of the last read */
	_Atomic(bool) stop;                     /* any thread: no more reads go off */
	void (*over)(struct resource_probe *p); /* in: called when all are back */
	/* private */
	struct request *requests, *spare; /* room for PROBE_MOST; linked by next */
	uint8_t *data;
	uint64_t low, span;
	uint64_t activity; /* of the resource at the start */
	struct rng rng;
	struct loop_timer timer;
};

/* Begin a burst; `over` is called later. -EBUSY: clients have requests there; -ENOSPC: too small;
 * -ENOMEM. */
int resource_probe_start(struct resource *r, struct resource_probe *p);
/* Return true if no request is at the resource, waiting or inside. */
bool resource_probe_quiet(const struct resource *r);
void resource_probe_free(struct resource_probe *p);

#endif
