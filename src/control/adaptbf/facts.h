/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * facts: the values that AdapTBF shows of one server and its jobs, and their way back: a restart
 * continues from saved facts.
 */
#pragma once

#include "control/lend/lend.h"
#include "control/adaptbf/jobnames.h"
#include "control/facts.h"

struct adaptbf_facts_of { /* adaptbf_facts.fill's `of` */
	const struct lend *adaptbf;
	const uint64_t *ids; /* jobs by tenant; 0: a group */
	size_t n_ids;
	bool all; /* also list jobs that were never active */
	/* not NULL: fill everything that a restart needs, with all jobs and loans */
	const struct jobnames *names;
	bool on, hold, learns;
	enum weir_unit unit;
	weir_time now, period, took; /* took: a step, lately */
	/* largest errors of both sums that the simulator has seen */
	int64_t tokens_off, records_off;
};

struct adaptbf_facts_self {
	bool on, learns;
	const char *tokens, *unit; /* "hold" or "first"; "requests" or "bytes" */
	weir_time period, took;
	struct lend_state state;
	double coefficient;
	/* Errors of both sums, which must be 0: tokens of the active jobs less the period's tokens;
	 * records plus tombstone. */
	int64_t tokens_off, records_off;
	double iops, tokens_s; /* the rate in the unit of a token; the other one is NAN */
	int64_t worst_tokens_off, worst_records_off;
};

struct adaptbf_facts_job {
	struct facts_row row;        /* key: tenant */
	struct lend_account account; /* seen: ns ago; the id only if it was filled */
	int64_t given; /* given beyond its priority, less received and aged, by the ledger */
};

struct adaptbf_facts_loan {
	struct facts_row row;  /* keys: lender, borrower */
	struct lend_loan loan; /* since, last: ns ago; ids likewise */
	double paid_ago;       /* NAN: nothing was repaid yet */
};

enum { ADAPTBF_FACTS_JOBS, ADAPTBF_FACTS_LOANS, ADAPTBF_FACTS_REPAID }; /* tables */

extern const struct facts_kind adaptbf_facts;

/* Compute the errors of both sums over all remembered jobs. Return how many were ever active. */
size_t adaptbf_facts_audit(const struct lend *a, int64_t *ret_tokens, int64_t *ret_records);

/* Make a controller that continues from facts of the moment `then` on its clock. Jobs get numbers
 * from `names`. -EINVAL: the books do not balance; -ENOMEM. */
int adaptbf_facts_restore(
	const struct facts *from, weir_time then, struct jobnames *names, struct lend **ret);
enum weir_unit adaptbf_facts_unit(const struct facts *from); /* of its tokens */
