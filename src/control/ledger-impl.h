/* SPDX-License-Identifier: BSD-3-Clause */
/* ledger-impl: shared by ledger.c (transfers, accounts) and ledger-sweep.c (ageing and clearing of
 * many loans at once). */
#pragma once

#include "control/ledger.h"
#include "base/lesser.h"

#define LEDGER_NONE UINT32_MAX

struct link {
	uint32_t next, prev;
};

enum side { LENDER, BORROWER };

struct entry {
	struct ledger_loan loan; /* amount 0: free */
	struct link in[2];       /* of the lender's claims, of the borrower's debts */
	uint32_t chain;          /* next in its hash bucket; of a free entry: the next free one */
};

struct list {
	uint32_t first, last;
	uint64_t sum; /* sum of the amounts, tokens; wraps if restored loans are damaged */
	uint32_t
		age; /* debts only: the aged fraction of a token that is still owed, × LEDGER_ONE */
};

struct job {
	struct list of[2]; /* claims, debts */
	struct ledger_account account;
};

struct ledger {
	struct job *jobs;
	uint32_t n_jobs;
	struct list pool[2]; /* loans of jobs that left; these have no account */
	struct entry *entries;
	uint32_t room, free, open;
	uint32_t *buckets; /* `room` of them, a power of 2 */
	struct ledger_loan closed[LEDGER_CLOSED];
	uint64_t n_closed;
	int64_t untracked;
	uint64_t turn; /* of ageing */
};

/* Return one side of the loans of a job, or of LEDGER_POOL. */
struct list *ledger_list(struct ledger *l, uint32_t who, enum side side);
/* Increase the loan from lender to borrower by `amount`; the pool owes itself nothing. `since`: a
 * claim that passes on keeps its age. */
void ledger_lend(struct ledger *l, uint32_t lender, uint32_t borrower, int64_t amount,
	weir_time since, weir_time now);
/* Decrease the loan; close it if nothing is left. */
void ledger_write_down(struct ledger *l, uint32_t i, int64_t amount, weir_time now);
/* Unlink the entry and put it on the free list. */
void ledger_leave(struct ledger *l, uint32_t i);
