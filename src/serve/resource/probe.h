/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe: a burst of reads of the gateway's own at a resource, for PARDA's threshold (control/parda/knee-probe.h).
 *
 * The reads pass the gate by, are counted for nobody, and go all over the part of the back end that clients have
 * touched. No more go off when a client's request is there, or when `stop` is set. On the loop's thread, but for `stop`.
 */
#ifndef WEIR_SERVE_RESOURCE_PROBE_H
#define WEIR_SERVE_RESOURCE_PROBE_H

#include "control/parda/parda.h"
#include "base/rng.h"
#include "serve/resource/resource.h"
#include <stdatomic.h>

struct resource_probe { /* zero it; then free it by resource_probe_free */
	struct resource *resource;
	struct probe_burst burst;               /* in: the plan; out: what came of it */
	uint32_t bytes;                         /* in: of a read; out: as much as it was */
	uint64_t reads;                         /* out: that went off */
	weir_time ended;                        /* out: when the last one came back */
	_Atomic(bool) stop;                     /* any thread: no more reads go off */
	void (*over)(struct resource_probe *p); /* in: all are back */
	/* its own */
	struct request *requests, *spare; /* room for PROBE_MOST; linked by next */
	uint8_t *data;
	uint64_t low, span;
	uint64_t activity; /* of the resource when it began */
	struct rng rng;
	struct loop_timer timer;
};

/* Begins a burst; `over` comes later. -EBUSY: clients have requests there; -ENOSPC: it is too small; -ENOMEM. */
int resource_probe_start(struct resource *r, struct resource_probe *p);
/* Nothing is at the resource, waiting or inside. */
bool resource_probe_quiet(const struct resource *r);
void resource_probe_free(struct resource_probe *p);

#endif
