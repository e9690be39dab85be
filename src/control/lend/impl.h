/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: shared by the files of this folder. lend.c: the step; jobs.c: the table of jobs; rate.c: the
 * rate; state.c: reading and restoring the state. */
#pragma once

#include "control/lend/law.h"
#include "control/lend/lend.h"
#include "control/ids.h"

#define LEND_NOBODY UINT32_MAX

struct lend_slot {   /* a known job */
	uint64_t id; /* 0: free */
	uint32_t weight;
	uint32_t next_free;
	bool active;              /* in the last period */
	bool fresh;               /* never active yet */
	weir_time seen;           /* last active, or first known */
	uint64_t step;            /* step in which the driver last listed it */
	uint64_t arrived, served; /* the driver's counters then */
	/* over the last period: */
	uint64_t arrivals, serves;
	int64_t queued;
	double most;
	bool above;
	weir_time held;  /* from the driver */
	weir_time holds; /* and over the last period */
	uint64_t demand;
	bool waits;  /* for tokens, not for its own limits */
	bool wants;  /* may get tokens that others do not use */
	double rate; /* rate of its rule, tokens a second; 0: no rule */
	double more; /* tokens of the period that the rule allows beyond its own */
	/* the law's own: */
	int64_t tokens, initial, record;
	int32_t remainder, reclaim;
};

struct lend_arrays { /* active jobs, as arrays for the law */
	uint32_t *slot, *weight;
	uint64_t *demand;
	int64_t *tokens, *record, *initial;
	int32_t *remainder, *reclaim;
	struct lend_rule *rules; /* of the active jobs and of jobs whose rules stop */
	size_t room;
};

struct lend_probe {        /* control/lend/rate.c's */
	weir_time full_at; /* when the server was last full for some time */
	weir_time known;   /* F */
	weir_time at;      /* of the last period; and as of then: */
	struct lend_totals last;
	/* over some periods, up to a second: */
	weir_time since; /* when they began */
	weir_time full;  /* time of being full, in periods in which it was not idle */
	uint64_t served; /* in that time */
	double all;      /* served, full or not; tokens */
	bool waited;     /* a job waited at the end of each period */
	double growth;   /* of a guess, a second */
	double lost;     /* extra tokens of a period in each rule, to replace lost ones */
};

struct lend {
	struct lend_config config;
	struct lend_probe probe;
	struct lend_state state;
	/* the next step is the first, or follows a pause: counters have no previous value */
	bool first;
	uint64_t ages; /* part of a claim that is lost in a period, × LEDGER_ONE */

	struct lend_slot *slots;
	uint32_t n_slots, room, free, known;
	struct ids index; /* id → slot */
	struct lend_job *seen;
	size_t seen_room;
	struct lend_arrays active;
	struct lend_space space;
	struct ledger *ledger;
};

/* control/lend/jobs.c */
uint32_t lend_find(const struct lend *a, uint64_t id); /* LEND_NOBODY: not found */
/* Make room for `more` additional jobs; 0 or -ENOMEM. */
int lend_jobs_room(struct lend *a, size_t more);
/* Add an unknown job; there must be room. */
uint32_t lend_add(struct lend *a, uint64_t id);
/* Move the job's record to the tombstone and reset it, except its counters. */
void lend_settle(struct lend *a, weir_time now, uint32_t slot);
/* The same, and remove the job. */
void lend_drop(struct lend *a, weir_time now, uint32_t slot);

/* control/lend/rate.c */
/* Update the rate; the slots have the driver's counters of this period. */
void lend_learn(struct lend *a, weir_time now, const struct lend_driver_ops *ops, void *driver);
/* Return K of a second, from the learned or stated rate. */
double lend_supply(const struct lend *a);
/* Set the rates in the rules of the n active jobs: their tokens, and let tokens that would be
 * lost. */
void lend_rates(struct lend *a, size_t n);
/* Return true if the job would have used more than its tokens. */
bool lend_waits(const struct lend *a, const struct lend_slot *s);
/* The same, and no limit kept it from using more. */
bool lend_waits_for_tokens(const struct lend *a, const struct lend_slot *s);
