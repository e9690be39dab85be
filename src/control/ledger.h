/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger: who lent whom how many tokens, since when, and when it was paid back.
 *
 * AdapTBF itself keeps one number a job, its record. Tokens go into a pool and come out of it, so
 * who lent to whom is a matter of book-keeping; it is kept so that
 *
 *   a job's claims less its debts are its record, exactly;
 *   a job has claims or debts, never both: who owes and gives, pays; who has lent and gets, is
 *   paid. Where payer and payee are strangers, the claim of the payer's creditor passes to
 *   the payee's debtor, as in a clearing house;
 *   the oldest is paid first;
 *   a claim may age: part of it is written off, and both accounts say so.
 *
 * Jobs are small dense numbers, the caller's. LEDGER_POOL stands for those who left: what a job
 * that is dropped owed is owed by the pool from then on, which never pays of itself.
 *
 * METHOD  Loans are linked into their lender's and their borrower's lists, oldest first, and into
 *         a hash by the pair. O(1) for each loan touched; a transfer touches two that it settles, or
 *         makes one.
 */
#ifndef WEIR_CONTROL_LEDGER_H
#define WEIR_CONTROL_LEDGER_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_POOL   UINT32_MAX
#define LEDGER_CLOSED 256 /* loans that were paid back, remembered */

struct ledger_loan {
	uint32_t lender, borrower;
	int64_t amount;        /* open, tokens; of a closed one: 0 */
	int64_t lent;          /* all that was lent under it */
	weir_time since, last; /* first lent; last paid back, or lent where nothing was */
	int64_t written_off;   /* of all that was lent under it, what has aged away */
};

struct ledger_account {           /* of one job, since it was added; tokens */
	int64_t lent, borrowed;   /* to and from others */
	int64_t repaid, regained; /* by it to others; by others to it */
	int64_t lost, spared;     /* claims and debts that were written off when others left */
	int64_t written_off;      /* claims of its that aged away */
	int64_t forgiven;         /* debts of its that aged away */
};
/* Balance = lent + repaid + forgiven − borrowed − regained − written_off. */

struct ledger;
int ledger_new(struct ledger **ret); /* 0 or -ENOMEM */
void ledger_free(struct ledger *l);

/* Room for jobs 0 … n − 1; 0 or -ENOMEM. Those that are new have empty accounts. */
int ledger_grow(struct ledger *l, uint32_t n);

/* `from` gave `amount` > 0 tokens to `to`, which is another. Where memory runs out, what cannot be
 * written down is counted as untracked. */
void ledger_transfer(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount);

/* The job is dropped: its loans are the pool's, those that were paid back too, its account is empty. What
 * it owed, and was owed. */
void ledger_drop(
	struct ledger *l, weir_time now, uint32_t job, int64_t *ret_debt, int64_t *ret_claim);

#define LEDGER_ONE ((uint64_t)1 << 32)
/* What the borrower owes loses `part` (× LEDGER_ONE, below 1) of itself, each claim its own part of that, in whole
 * tokens; the fraction is carried to the next call. `lost` is told each lender that loses tokens (LEDGER_POOL:
 * those who left). Returns their sum. The borrower may be LEDGER_POOL. O(its loans). */
int64_t ledger_age(struct ledger *l, weir_time now, uint32_t borrower, uint64_t part,
	void (*lost)(uint32_t lender, int64_t tokens, void *arg), void *arg);

/* Clears claims against debts, as a clearing house does: each job's balance stays, but there are then at
 * most as many loans as jobs and the pool; those of the oldest lenders are with the oldest borrowers,
 * and each is as old as its lender's oldest. For when there are too many to be of use: as many as pairs
 * of jobs, at worst. Without memory nothing happens. O(n log n). */
void ledger_clear(struct ledger *l, weir_time now);

/* As it was saved: a loan that is open; LEDGER_POOL may be either side. 0, -EINVAL (no such job, no
 * amount, both sides alike, or a side that has the opposite), or -ENOMEM. */
int ledger_restore(struct ledger *l, const struct ledger_loan *loan);
void ledger_restore_account(struct ledger *l, uint32_t job, const struct ledger_account *a);
/* As ledger_closed gave them. */
void ledger_restore_closed(struct ledger *l, const struct ledger_loan *newest_first, size_t n);

/* ---- looking */

int64_t ledger_balance(const struct ledger *l, uint32_t job); /* claims − debts. O(its loans) */
const struct ledger_account *ledger_account(const struct ledger *l, uint32_t job);
/* Open loans, in no order: calls until one returns false. The ledger must not change meanwhile. */
void ledger_each(const struct ledger *l, bool (*visit)(const struct ledger_loan *loan, void *arg),
	void *arg);
size_t ledger_open(const struct ledger *l);
/* The last of those paid back, newest first; how many there are, ≤ LEDGER_CLOSED. */
size_t ledger_closed(const struct ledger *l, struct ledger_loan ret[LEDGER_CLOSED]);
int64_t ledger_untracked(const struct ledger *l); /* tokens not written down for want of memory */

#endif
