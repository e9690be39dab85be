/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law: a period's tokens for the jobs of one server: lent, borrowed and given back.
 *
 * AdapTBF (Rashid, Dai: "AdapTBF: Decentralized Bandwidth Control via Adaptive Token Borrowing for
 * HPC Storage", 2025). One call is one period: each job's tokens of the last period, what it asked
 * for and what it has lent or borrowed go in, its tokens for the next period come out. All of it is
 * in whole tokens and fixed point: exact, and the same everywhere.
 *
 * What always holds afterwards:
 *   Σ tokens = the period's, exactly; tokens ≥ 0, and ≥ 1 where there are as many as jobs;
 *   a record changes by initial − tokens, so that Σ records stays what it was;
 *   repayment takes no record across 0, and leaves a borrower its `floor` (by rounding one token less
 *   in a period, and one more in another).
 *
 * Nothing is allocated by a step; the arrays are the caller's. One instance belongs to one thread.
 */
#ifndef WEIR_CONTROL_ADAPTBF_LAW_H
#define WEIR_CONTROL_ADAPTBF_LAW_H

#include "control/remainder.h"

#define ADAPTBF_JOBS   ((size_t)1 << 20) /* at once */
#define ADAPTBF_TOKENS REMAINDER_WHOLE   /* a period */
#define ADAPTBF_NEW    (-1)              /* `tokens` of a job that had no last period */

/* The active jobs: n of each. Of a new one, record, remainder and reclaim are 0. */
struct adaptbf_jobs {
	size_t n;
	const uint32_t *weight; /* > 0: compute nodes, or any measure that gives its priority */
	const uint64_t *demand; /* requests that it asked for in the last period; any number */
	int64_t *tokens;    /* in: of the last period, as finally allocated, or ADAPTBF_NEW; out */
	int64_t *record;    /* in, out: > 0 lent, < 0 borrowed; in tokens */
	int32_t *remainder; /* in, out: what rounding owes it, × REMAINDER_ONE, −1 … 1 */
	int32_t *reclaim;   /* in, out: the fraction of eq. 14, × REMAINDER_ONE, below 1 */
	int64_t *initial;   /* out: eq. 2, its tokens by priority alone */
	int64_t floor; /* part of `initial` that a borrower keeps while it repays, × REMAINDER_ONE,
	                  0 … 1; 0: the paper's */
};

/* What a step works in: room for n jobs. */
struct adaptbf_space {
	int64_t *share, *now, *cap;
	uint64_t *factor;
	uint32_t *keys, *list;
	size_t room;
};
/* 0 or -ENOMEM; what is there may move. A zeroed struct has room for none. */
int adaptbf_space_grow(struct adaptbf_space *s, size_t n);
void adaptbf_space_free(struct adaptbf_space *s);

struct adaptbf_sums {        /* of one step; tokens */
	int64_t surplus;     /* T_s: lent to those who need it more */
	int64_t reclaimed;   /* T_R: given back */
	int64_t coefficient; /* C of eq. 13, × REMAINDER_ONE; ≤ 1 */
};

/* T·Δt as whole tokens; `carry` (× REMAINDER_ONE, 0 … 1) is the fraction that is left for the next
 * period. At most ADAPTBF_TOKENS; a rate or period that is no positive number gives 0. */
int64_t adaptbf_tokens(double rate, double seconds, int32_t *carry);

/* One period of `tokens`, 0 … ADAPTBF_TOKENS, for 0 … ADAPTBF_JOBS jobs; s has room for them. O(n). */
void adaptbf_allocate(const struct adaptbf_jobs *jobs, int64_t tokens, struct adaptbf_space *s,
	struct adaptbf_sums *ret_sums);

#endif
