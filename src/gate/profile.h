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
 *
 * METHOD  Most are of up to four narrow buckets (bucket.h) that count everything. Of those, all that a
 *         request touches lies in two cache lines, of which it changes one, and the buckets
 *         themselves are brought up to date only for whoever needs more. If they are all of one unit,
 *         as pairs of a rate and a burst mostly are, and the machine can, they are counted two at a
 *         time; that it is done so changes no result.
 */
#ifndef WEIR_GATE_PROFILE_H
#define WEIR_GATE_PROFILE_H

#include "gate/bucket.h"

#define PROFILE_FEW 4

struct profile {
	/* what passes change */
	_Alignas(POOL_LINE) weir_time stamp; /* when the levels were true */
	weir_time fits;                      /* when the head fits, as of the last look */
	int64_t lack[PROFILE_FEW];           /* narrow: parts, instead of the buckets' */
	uint8_t n;                           /* buckets */
	bool narrow; /* they are few, all of them are narrow, and count everything; */
	bool alike;  /* and besides all are of one unit, and of rates below PROFILE_SLOW */
	bool head; /* narrow, and the costs of the head are such that that will do, as of the last look */
	uint8_t unit[PROFILE_FEW]; /* as the buckets' */
	uint8_t last;              /* narrow: who was the last to admit a request: a hint */
	/* what only knobs do: the same of all */
	_Alignas(POOL_LINE) uint64_t rate[PROFILE_FEW];
	uint32_t size[PROFILE_FEW];
	float per_rate
		[PROFILE_FEW]; /* about 1/rate: enough to say who will be last; 0: no bucket */
	struct bucket b[];
};
_Static_assert(sizeof(struct profile) == (size_t)2 * POOL_LINE, "two cache lines, then buckets");

static inline size_t profile_lines(uint32_t n)
{
	size_t size = sizeof(struct profile) + n * sizeof(struct bucket);

	return (size + POOL_LINE - 1) / POOL_LINE;
}

/* r is the head now: when does it fit? */
void profile_look(struct profile *p, const struct weir_req *r);
/* r, for which that was found, passes because it fits. */
void profile_charge(struct profile *p, const struct weir_req *r);
/* Brings the levels up to now, if they are not beyond, and the buckets up to date. */
void profile_fill(struct profile *p, weir_time now);
/* Levels or buckets have changed by other means than these. */
void profile_changed(struct profile *p);

#endif
