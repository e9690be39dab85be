/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger: the open loans of tokens between jobs: lender, borrower, amount and age.
 *
 * AdapTBF itself keeps one number per job, its record. Tokens go into a pool and come out of it;
 * the ledger assigns each transfer to a lender and a borrower so that
 *
 *   a job's claims minus its debts equal its record, exactly;
 *   a job has claims or debts, never both: tokens given by a debtor repay its debts, and tokens
 *   received by a lender repay its claims. If the payer owes to another job than the payee, the
 *   claim of the payer's creditor passes to the payee's debtor, as in a clearing house;
 *   the oldest loan is repaid first;
 *   a claim may age: part of it is written off, in both accounts.
 *
 * Jobs are small dense numbers chosen by the caller. LEDGER_POOL stands for jobs that left: it
 * takes over the debts and claims of a dropped job, and never pays.
 *
 * METHOD  Loans are linked into their lender's and their borrower's lists, oldest first, and into a
 *         hash by the pair. O(1) for each loan touched; a transfer settles at most two loans, or
 *         makes one.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_POOL   UINT32_MAX
#define LEDGER_CLOSED 256 /* repaid loans that are remembered */

struct ledger_loan {
	uint32_t lender, borrower;
	int64_t amount;        /* tokens still owed; of a closed loan: 0 */
	int64_t lent;          /* total lent under this loan */
	weir_time since, last; /* first lent; last repaid, or lent if nothing was repaid yet */
	int64_t written_off;   /* part of the total that has aged away */
};

struct ledger_account {           /* of one job, since it was added; tokens */
	int64_t lent, borrowed;   /* to and from others */
	int64_t repaid, regained; /* by this job to others; by others to this job */
	int64_t lost, spared;     /* claims and debts that were written off when others left */
	int64_t written_off;      /* claims of this job that aged away */
	int64_t forgiven;         /* debts of this job that aged away */
};
/* Balance = lent + repaid + forgiven − borrowed − regained − written_off. */

struct ledger;
int ledger_new(struct ledger **ret); /* 0 or -ENOMEM */
void ledger_free(struct ledger *l);

/* Make room for jobs 0 … n − 1; new jobs have empty accounts. 0 or -ENOMEM. */
int ledger_grow(struct ledger *l, uint32_t n);

/* Record that `from` gave `amount` > 0 tokens to another job, `to`. If memory runs out, the part
 * that cannot be recorded is counted as untracked. */
void ledger_transfer(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount);

/* Drop a job: move its loans, open and closed, to the pool and empty its account. Return the sums
 * that it owed and was owed. */
void ledger_drop(
	struct ledger *l, weir_time now, uint32_t job, int64_t *ret_debt, int64_t *ret_claim);

#define LEDGER_ONE ((uint64_t)1 << 32)
/* Write off `part` (× LEDGER_ONE, below 1) of the borrower's debts, from each claim in proportion,
 * in whole tokens; the fraction is carried to the next call. Call `lost` for each lender that loses
 * tokens (LEDGER_POOL: jobs that left). Return the sum of these tokens. The borrower may be
 * LEDGER_POOL. O(its loans). */
int64_t ledger_age(struct ledger *l, weir_time now, uint32_t borrower, uint64_t part,
	void (*lost)(uint32_t lender, int64_t tokens, void *arg), void *arg);

/* Clear claims against debts, as a clearing house does, when there are too many loans (at worst as
 * many as pairs of jobs). Each job's balance stays, and at most as many loans remain as there are
 * jobs and the pool. The oldest lenders are matched with the oldest borrowers, and each loan is as
 * old as its lender's oldest. Without memory nothing changes. O(n log n). */
void ledger_clear(struct ledger *l, weir_time now);

/* Restore an open loan; LEDGER_POOL may be either side. 0, -EINVAL (no such job, no amount, both
 * sides alike, or a job that already has loans on the other side), or -ENOMEM. */
int ledger_restore(struct ledger *l, const struct ledger_loan *loan);
void ledger_restore_account(struct ledger *l, uint32_t job, const struct ledger_account *a);
/* Restore closed loans, in the order of ledger_closed. */
void ledger_restore_closed(struct ledger *l, const struct ledger_loan *newest_first, size_t n);

/* ---- looking */

int64_t ledger_balance(const struct ledger *l, uint32_t job); /* claims − debts. O(its loans) */
const struct ledger_account *ledger_account(const struct ledger *l, uint32_t job);
/* Visit open loans, in no order, until visit returns false. The ledger must not change
 * meanwhile. */
void ledger_each(const struct ledger *l, bool (*visit)(const struct ledger_loan *loan, void *arg),
	void *arg);
size_t ledger_open(const struct ledger *l);
/* Copy the last closed loans, newest first; return their number, ≤ LEDGER_CLOSED. */
size_t ledger_closed(const struct ledger *l, struct ledger_loan ret[LEDGER_CLOSED]);
int64_t ledger_untracked(const struct ledger *l); /* tokens not recorded for lack of memory */
