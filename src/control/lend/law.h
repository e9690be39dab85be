/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * law: a period's tokens for the jobs of one server: lent, borrowed and given back.
 *
 * AdapTBF (Rashid, Dai: "AdapTBF: Decentralized Bandwidth Control via Adaptive Token Borrowing for
 * HPC Storage", 2025). One call is one period: each job's tokens of the last period, its demand and
 * its record go in, its tokens for the next period come out. Everything is in whole tokens and
 * fixed point: exact, and the same on every machine.
 *
 * Invariants after each step:
 *   Σ tokens = the period's, exactly; tokens ≥ 0, and ≥ 1 if there are as many as jobs;
 *   a record changes by initial − tokens, so that Σ records stays;
 *   repayment takes no record across 0, and leaves a borrower its `floor` (by rounding one token
 *   less in a period, and one more in another).
 *
 * A step allocates nothing; the arrays are the caller's. One instance belongs to one thread.
 */
#pragma once

#include "control/remainder.h"

#define LEND_JOBS   ((size_t)1 << 20) /* at once */
#define LEND_TOKENS REMAINDER_WHOLE   /* a period */
#define LEND_NEW    (-1)              /* `tokens` of a job that had no last period */

/* The active jobs: n of each. For a new job, record, remainder and reclaim are 0. */
struct lend_jobs {
	size_t n;
	const uint32_t *weight; /* > 0: compute nodes, or any measure of its priority */
	const uint64_t *demand; /* requests that it wanted in the last period; any number */
	int64_t *tokens;        /* in: of the last period, as finally allocated, or LEND_NEW; out */
	int64_t *record;        /* in, out: > 0 lent, < 0 borrowed; in tokens */
	int32_t *remainder; /* in, out: rounding error owed to it, × REMAINDER_ONE, −1 … 1 */
	int32_t *reclaim;   /* in, out: the fraction of eq. 14, × REMAINDER_ONE, below 1 */
	int64_t *initial;   /* out: eq. 2, its tokens by priority alone */
	/* part of `initial` that a borrower keeps while it repays, × REMAINDER_ONE, 0 … 1; 0: the
	 * paper's */
	int64_t floor;
};

/* Scratch memory of a step: room for n jobs. */
struct lend_space {
	int64_t *share, *now, *cap;
	uint64_t *factor;
	uint32_t *keys, *list;
	size_t room;
};
/* 0 or -ENOMEM; arrays may move. A zeroed struct has room for no job. */
int lend_space_grow(struct lend_space *s, size_t n);
void lend_space_free(struct lend_space *s);

struct lend_sums {           /* sums of one step; tokens */
	int64_t surplus;     /* T_s: lent to jobs that need it more */
	int64_t reclaimed;   /* T_R: given back */
	int64_t coefficient; /* C of eq. 13, × REMAINDER_ONE; ≤ 1 */
};

/* Return T·Δt as whole tokens; `carry` (× REMAINDER_ONE, 0 … 1) keeps the fraction for the next
 * period. At most LEND_TOKENS; 0 if rate or period is not a positive number. */
int64_t lend_tokens(double rate, double seconds, int32_t *carry);

/* Allocate `tokens`, 0 … LEND_TOKENS, of one period to 0 … LEND_JOBS jobs; s has room for
 * them. O(n). */
void lend_allocate(const struct lend_jobs *jobs, int64_t tokens, struct lend_space *s,
	struct lend_sums *ret_sums);
