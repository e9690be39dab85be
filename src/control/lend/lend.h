/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend: tokens that the jobs of one server lend each other (AdapTBF): it sets the tokens of each job, every period.
 *
 * It needs nothing from other servers. The law is in control/lend/law.h. This file decides which
 * jobs are active, what they demand, how much the server can do, what happens to the records of
 * jobs that leave, and keeps the loans between jobs. It sees the server only through a driver, a
 * small table of functions: Weir's own gate (control/adaptbf/gate.h) is one, Lustre's TBF can be
 * another.
 *
 *   every period:  lend_step   the driver's jobs and counters in; tokens and order out
 *
 * ACTIVE   A job that sent a request in the last period, or has some waiting. Other jobs have no
 *          rule: their next requests pass freely until the end of a period (§III-D).
 * DEMAND   The requests that arrived in the period and the requests that wait. But the deepest
 *          queue must not win: a job that used up its tokens and still has requests waiting, or
 *          whose requests were held for a quarter of the period, counts as wanting twice the tokens
 *          that it had, or twice what its priority gives, whichever is more. If the driver does not
 *          know how many requests wait, a job that used up its tokens counts as having some. Demand
 *          never exceeds the server's tokens, or the job's own limits.
 * RATE     Stated, or learned from a first guess (control/lend/rate.c): a full server shows its
 *          capacity. But tokens keep the server from being full; so a learned rate gives `headroom`
 *          more tokens than the estimate, and if a job waits for tokens while the server is idle
 *          the estimate grows: by 1 % a second, or, if the server has not been full for a second
 *          and its capacity is not known, by a tenth in 100 ms, and then faster and faster. With
 *          `hold`, unused tokens are let to jobs that wait, on top of their own tokens and without
 *          a record. So 95 % of a server are used within 5 s, whatever the guess.
 * RECORDS  A job keeps its record while it is inactive or away. After `forget` of that it is
 *          forgotten, and its record passes to a tombstone: Σ records + tombstone = 0, always.
 *          Debts dropped in this way are never paid; they are written off and reported.
 * PROMISE  While a lender's demand is unmet and its borrowers are active, they give back a part C
 *          of their tokens each period, C ≥ p/2, where p is the lender's priority: lend_bound
 *          returns how long that takes. (C is up to p while the lender has requests waiting and at
 *          most half of all tokens: no demand counts for more than all tokens.)
 * DEBT     The paper's records grow without end, and so does the time of repayment: a job that
 *          borrowed for an hour has a tenth of its share for seven. `debt` bounds both:
 *            φ   a borrower keeps at least the part φ of its own share, K·p, while it repays (in
 *                whole tokens, so that it may be one less in a period); if it has requests waiting
 *                its demand counts as its own share, because its requests depend on the service
 *                that it gets;
 *            H   every claim on a job halves in H of the time in which that job is active. The loss
 *                is written off in both accounts, by name. Claims on jobs that left age in every
 *                period, since no payment will ever settle them.
 *          BOUND. A job that borrows b tokens a second, for however long, owes at most b·H/ln 2.
 *          Once its lenders are busy and it borrows no more, it gives back q tokens a second or
 *          more, q = K·p · min(C, 1 − φ), and owes nothing after
 *            T ≤ H·log₂(1 + ln 2·D/(H·q)) ≤ H·log₂(1 + b/q)
 *          of its active time, where D is its first debt, plus a moment for whole tokens
 *          (lend_bound is exact). If the lenders are idle, q = 0: T ≤ H·(log₂ D + 1.5). With the
 *          default, φ = 50 % and H = 60 s: five equal jobs, of which one had the tokens of all for
 *          any time (1000 a second: b = 800, q = 200·min(0.8/2, 0.5) = 80; C is p/2 of each of the
 *          four lenders): 3.5 minutes with half of its share or more.
 *          φ = 0 and H = 0 (never) give the paper's law.
 *
 * Nothing here locks or reads a clock. One instance belongs to one thread.
 */
#pragma once

#include <weir/clock.h>
#include <weir/units.h>
#include "control/ledger.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a token: a request, as limits count them, or 4 KiB; so numbers are alike in both */

#define LEND_TOKEN_BYTES 4096

static inline double lend_token_size(enum weir_unit unit)
{
	return unit == WEIR_UNIT_BYTES ? LEND_TOKEN_BYTES : 1;
}

/* ---- the driver */

#define LEND_UNKNOWN (-1)

struct lend_job {        /* a driver's view of one job */
	uint64_t id;     /* unique as long as the job is remembered; not 0 */
	uint32_t weight; /* > 0: compute nodes; the policy's weight, in any unit */
	/* Requests from any origin; if one falls, the job counts as restarted. A server that counts
	 * only served requests sets both to that. */
	uint64_t arrived, served;
	int64_t queued; /* waiting now, not in service; or LEND_UNKNOWN */
	double most;    /* tokens a second that its own limits allow; 0: no such limit */
	bool above; /* its requests wait for a limit that is not its own: tokens would not help */
	/* time from any origin for which its tokens or own limits held a request; 0: not known */
	weir_time held;
};

struct lend_rule { /* the rule that a driver applies to one job until the next step */
	uint64_t id;
	bool active;    /* false: remove the rule, do not hold its requests */
	int64_t tokens; /* of the period */
	/* tokens by priority alone; tokens / initial is how far the job is ahead */
	int64_t initial;
	double rate; /* tokens per second, including those let by others; 0: none left for it */
	uint32_t weight;
};

struct lend_totals {     /* since any origin */
	weir_time full;  /* time for which it had as many requests as it takes at once */
	uint64_t served; /* tokens' worth of requests completed in that time */
};

struct lend_driver_ops {
	const char *name;
	/* Write up to `max` jobs into the list, each id once. Return the number of jobs, which may
	 * be larger than max (the function is then called again with room for them), or a negative
	 * errno. */
	int64_t (*jobs)(void *driver, weir_time now, struct lend_job *list, size_t max);
	/* NULL: not known, and the rate stays as stated. */
	int (*totals)(void *driver, weir_time now, struct lend_totals *ret);
	/* Apply the rules of the active jobs, and of jobs whose rules stop (they may have left), in
	 * one call; with `ordered`, the greatest weight first (ties by id). 0 or a negative
	 * errno. */
	int (*apply)(void *driver, weir_time now, const struct lend_rule *rules, size_t n);
	bool ordered;
};

/* ---- the controller */

struct lend_debt {           /* all 0: the paper's */
	double floor;        /* φ, 0 … 1 */
	weir_time half_life; /* H; 0: claims do not age */
};
#define LEND_DEBT ((struct lend_debt){0.5, 60 * WEIR_SEC}) /* the policy's default */

/* Mechanisms that an experiment can switch off. */
enum lend_without {
	LEND_WITHOUT_NOTHING,
	LEND_WITHOUT_LENDING,   /* each job has the tokens of its priority */
	LEND_WITHOUT_REPAYMENT, /* loans are never repaid */
	LEND_WITHOUT_BOUND,     /* demand counts all waiting requests, so the deepest queue wins */
};

struct lend_config {
	weir_time period;  /* 0: 100 ms */
	double rate;       /* tokens a second, > 0: stated, or the first guess */
	bool learn;        /* `rate` is a first guess */
	bool hold;         /* a request waits for a token: an unused token is lost */
	double headroom;   /* while learning; 0: 0.05 */
	weir_time forget;  /* 0: 600 s, as long as Lustre keeps statistics of idle jobs */
	uint32_t jobs_max; /* remembered at once; 0: 65536 */
	struct lend_debt debt;
	enum lend_without without;
};

struct lend;
/* 0; -EINVAL: a rate that is not > 0, a period, headroom or half-life below 0, or a floor outside 0
 * … 1; -ENOMEM. */
int lend_new(const struct lend_config *config, struct lend **ret);
void lend_free(struct lend *a);

/* Run one period, which begins at `now`. 0; the driver's error (the state is then as if the
 * allocation had been applied); or -ENOMEM (nothing changed). Jobs beyond jobs_max are left alone.
 * O(n), or O(n log n) with `ordered`. */
int lend_step(struct lend *a, weir_time now, const struct lend_driver_ops *ops, void *driver);

void lend_set_rate(struct lend *a, double rate); /* stated anew; > 0 */
/* Use another configuration from the next step on; jobs_max stays. A learned rate is kept if it is
 * still to be learned. -EINVAL as for new. */
int lend_configure(struct lend *a, const struct lend_config *config);
/* Pause: jobs have no rules (the caller removes them from the server), and requests until the next
 * step are not counted. Records and loans stay. */
void lend_rest(struct lend *a);

/* ---- looking, and what a restart needs */

#define LEND_ONE ((int64_t)1 << 24) /* fixed-point 1, as in control/remainder.h */

struct lend_state {          /* state of the whole controller; a save must keep all of it */
	double rate;         /* per second: stated, or learned so far */
	int32_t carry;       /* tokens × LEND_ONE */
	int64_t tombstone;   /* sum of the records of dropped jobs */
	int64_t written_off; /* sum of the debts of dropped jobs; tokens */
	int64_t forfeited;   /* sum of the claims of dropped jobs */
	int64_t aged;        /* claims of all jobs that aged away; tokens */
	/* the part on dropped jobs, less the claims of dropped jobs: tombstone = forfeited −
	 * written_off + aged_left */
	int64_t aged_left;
	uint64_t steps;
	/* results of the last step, for display: */
	int64_t tokens, surplus, reclaimed, coefficient; /* coefficient: × LEND_ONE */
	uint32_t active, known, left_out;                /* jobs; left_out: beyond jobs_max */
};
void lend_state(const struct lend *a, struct lend_state *ret);

struct lend_account { /* of one job */
	uint64_t id;
	uint32_t weight;
	bool active;
	bool fresh;     /* never active since it was first known, or forgotten: has no loans */
	weir_time seen; /* last time it was active */
	int64_t tokens, initial, record;
	uint64_t demand;
	int32_t remainder, reclaim; /* × LEND_ONE */
	struct ledger_account ledger;
};
/* Places 0 … n − 1; lend_at returns false for an empty one. */
size_t lend_places(const struct lend *a);
bool lend_account_at(const struct lend *a, size_t place, struct lend_account *ret);
/* -ENOENT: unknown job. */
int lend_account(const struct lend *a, uint64_t id, struct lend_account *ret);

struct lend_loan { /* id 0: a job that left */
	uint64_t lender, borrower;
	int64_t amount, lent;
	weir_time since, last; /* on the clock of `now` */
	int64_t written_off;   /* part of the loan that aged away */
};
/* Copy at most `max` open loans; return their number. */
size_t lend_loans(const struct lend *a, struct lend_loan *ret, size_t max);
/* Copy at most `max` closed loans (repaid or written off), newest first; return their number. Ids
 * of jobs dropped since are 0. */
size_t lend_paid(const struct lend *a, struct lend_loan *ret, size_t max);

/* Restore a saved state before the first step. `now` and all times are on the new clock (shift the
 * saved times). -EINVAL: an impossible state, e.g. records and tombstone that do not sum to 0, or
 * loans that do not match the records; -ENOMEM. On error `a` must be freed. */
int lend_restore(struct lend *a, const struct lend_state *state,
	const struct lend_account *accounts, size_t n, const struct lend_loan *loans, size_t m);
/* Then restore the loans of lend_paid; an unknown id counts as a job that left. */
void lend_restore_paid(struct lend *a, const struct lend_loan *newest_first, size_t n);

/* Return the most periods until a borrower has repaid `owed`. The borrower is active throughout,
 * borrows nothing and has at least `tokens` each period before it gives back (its priority's, while
 * all are busy). Its lenders have requests waiting throughout, and each has a priority (its share
 * of the active jobs' weights) of `p` or more; 0: they are idle. Only `period` (not 0) and `debt`
 * of the configuration count. */
double lend_bound(const struct lend_config *config, double owed, double p, double tokens);
