/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile: a request against the profile buckets of its tenant, which give priority while it fits.
 *
 * A request fits from the first time on, not before its submit, at which all of them admit it. They
 * are filled up to that time and no further, and charged as of it, so that what a conforming request
 * loses by waiting for others it does not lose of its profile as well, and a bucket does not overflow
 * while somebody waits (law 4).
 *
 * Few tenants have profiles, so that they are not part of the node.
 */
#ifndef WEIR_GATE_PROFILE_H
#define WEIR_GATE_PROFILE_H

#include "gate/bucket.h"

struct profile {
	weir_time stamp; /* when the levels were true */
	weir_time fits;  /* when the head fits, as of the last look */
	uint32_t n;      /* buckets */
	bool narrow;     /* all of them are, and count everything; */
	bool head; /* and the costs of the head are such that that will do, as of the last look */
	uint8_t unused[10];
	struct bucket b[];
};

static inline size_t profile_lines(uint32_t n)
{
	size_t size = sizeof(struct profile) + n * sizeof(struct bucket);

	return (size + POOL_LINE - 1) / POOL_LINE;
}

/* r is the head now: when does it fit? */
void profile_look(struct profile *p, const struct weir_req *r);
/* r, for which that was found, passes because it fits. */
void profile_charge(struct profile *p, const struct weir_req *r);
/* Brings the levels up to now, if they are not beyond. */
void profile_fill(struct profile *p, weir_time now);
/* Levels or buckets have changed by other means than these. */
void profile_changed(struct profile *p);

#endif
