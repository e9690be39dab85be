/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile: check a request against the profile buckets of its tenant, which give priority while it fits.
 *
 * A request fits from the first time on, not before its submit, at which all buckets admit it. They are filled up to
 * that time and no further, and charged as of it, so that a conforming request that waits for others loses nothing
 * of its profile, and no bucket overflows while it waits (law 4).
 *
 * A request that costs more than the size of a bucket never fits, so that what fits keeps to the curve rate·t + size of
 * each bucket.
 *
 * Few tenants have profiles, so profiles are not part of the node.
 *
 * METHOD  Most profiles have up to four narrow buckets (bucket.h) that count everything. Then a request touches two
 *         cache lines and changes one, and the buckets themselves are updated only for functions that read them. If
 *         all are of one unit, as pairs of a rate and a burst mostly are, and the machine has SSE2, they are
 *         computed two at a time, with the same results. Large buckets, of bytes or device time, are made narrow by
 *         counting in 2^shift parts; their rates are rounded to that (profile_round), and then all sums are exact.
 */
#pragma once

#include "gate/bucket.h"

#define PROFILE_FEW 4

struct profile {
	/* changed by dispatches */
	_Alignas(POOL_LINE) weir_time stamp; /* time for which the levels are valid */
	weir_time fits;                      /* when the head fits, as of the last check */
	int64_t lack[PROFILE_FEW];           /* narrow: 2^shift parts, instead of the buckets' */
	uint8_t n;                           /* buckets */
	bool narrow; /* they are few, all of them are narrow, and count everything; */
	bool alike;  /* and all are of one unit, with rates below PROFILE_SLOW */
	bool head;   /* narrow, and the head's costs are in range, as of the last check */
	uint8_t unit[PROFILE_FEW]; /* as the buckets' */
	uint8_t last;              /* narrow: the bucket that was the last to admit a request: a
	                              hint */
	uint8_t shift;             /* of lack and rate; 0 if large buckets are not to be narrow */
	bool wide;                 /* no level makes them narrow */
	uint32_t most;             /* narrow: the largest cost in range, units; of one unit: and no
	                              size is less */
	/* changed by knobs only */
	_Alignas(POOL_LINE) uint64_t rate[PROFILE_FEW]; /* narrow: the buckets' >> shift */
	uint32_t size[PROFILE_FEW];
	float per_rate
		[PROFILE_FEW]; /* about 1/rate: enough to find the last to admit; 0: no bucket */
	struct bucket b[];
};
_Static_assert(sizeof(struct profile) == (size_t)2 * POOL_LINE, "two cache lines, then buckets");

static inline size_t profile_lines(uint32_t n)
{
	size_t size = sizeof(struct profile) + n * sizeof(struct bucket);

	return (size + POOL_LINE - 1) / POOL_LINE;
}

/* Compute when r, the new head, fits. */
void profile_look(struct profile *p, const struct weir_req *r);
/* Charge r, the head, which passes because it fits. */
void profile_charge(struct profile *p, const struct weir_req *r);
/* Return the lack of bucket i, in parts. */
bucket_parts profile_lack(const struct profile *p, unsigned i);
/* Bring the levels up to now, if they are not beyond, and update the buckets. */
void profile_fill(struct profile *p, weir_time now);
/* Choose the shift for new buckets; round their rates to it, and their levels down. */
void profile_round(struct profile *p);
/* Update the other fields above after levels or buckets have been changed by other functions. */
void profile_changed(struct profile *p);
