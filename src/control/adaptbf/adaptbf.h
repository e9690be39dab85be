/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adaptbf: the controller of one server: every period, how many tokens each of its jobs has.
 *
 * It needs nothing from other servers. The law is control/adaptbf/law's; here is what surrounds it: which
 * jobs are active, what they want, how much the server can do, what becomes of the records of
 * those who leave, and who lent whom. It sees the server only through a driver, a small table of
 * functions: our own gate (control/adaptbf/gate) is one, Lustre's TBF can be another.
 *
 *   every period:  adaptbf_step   the driver's jobs and counters in; tokens and order out
 *
 * ACTIVE   A job that sent a request in the last period, or has some waiting. Others have no rule:
 *          their next requests pass unhindered until a period has seen them (§III-D).
 * DEMAND   What arrived in the period, and what waits. But the deepest queue must not win: a job
 *          that used up its tokens and still has requests waiting, however many, or that they held up for
 *          a quarter of the period, counts as wanting
 *          twice what it had, or twice what its priority gives, whichever is more. Where the
 *          driver does not know what waits, who used up its tokens is taken to have some waiting.
 *          Nobody counts as wanting more than there is, or than its own limits let it have.
 * RATE     Stated, or learned from a first guess (control/adaptbf/rate.c): what a server does while it is full is what it
 *          can do. But tokens keep it from being full; so, where it is learned, they are `headroom` more than the
 *          estimate, and where a job waits for tokens while the server is idle the estimate grows: by 1 % a
 *          second, or, where the server has not been full for a second and what it can do is not known, by a
 *          tenth in 100 ms, and then by more and more. Where tokens `hold`, what jobs have and do not use
 *          is let to those that wait, on top of their tokens and without a record. So 95 % of a server are
 *          used within 5 s, whatever the guess.
 * RECORDS  A job keeps its record while it is inactive or away. After `forget` of that it is
 *          forgotten, and its record passes to a tombstone: Σ records + tombstone = 0, always. Debts
 *          that are dropped so are written off: nobody pays them, and they are reported.
 * PROMISE  While a lender's demand is unmet and its borrowers are active, they give back a C-th of
 *          their tokens each period, C ≥ p/2 where p is the lender's priority: adaptbf_bound says how
 *          long that takes. (C is up to p while the lender has requests waiting and no more than half
 *          of all tokens: nobody's demand counts for more than there is.)
 * DEBT     The paper's records grow without end, and so does the time in which they are repaid: a job
 *          that borrowed for an hour has a tenth of its share for seven. `debt` bounds both:
 *            φ   a borrower keeps at least the part φ of its own share, K·p, while it repays (in whole tokens,
 *                so that it may be one less in a period); if it has requests waiting it counts as
 *                wanting its own share, for what it asks for depends on what it is served;
 *            H   every claim on a job loses half of itself in H of the time in which that job is
 *                active. What is lost is written off in both accounts, by name. Claims on jobs
 *                that left age in every period: nobody else would ever settle them.
 *          BOUND. A job that borrows b tokens a second, for however long, owes at most b·H/ln 2. Once
 *          its lenders are busy and it borrows no more, it gives back q tokens a second or more,
 *          q = K·p · min(C, 1 − φ), and owes nothing after
 *            T ≤ H·log₂(1 + ln 2·D/(H·q)) ≤ H·log₂(1 + b/q)
 *          of its active time, where D is what it owes at first, and a moment for whole tokens
 *          (adaptbf_bound has all of it). Lenders that ask for nothing, q = 0: T ≤ H·(log₂ D + 1.5).
 *          With the default, φ = 50 % and H = 60 s: five equal jobs, of which one had the tokens of all
 *          for as long as you like (1000 a second: b = 800, q = 200·min(0.8/2, 0.5) = 80; C is p/2 of each of the
 *          four lenders): 3.5 minutes with half of its share or more.
 *          With φ = 0 and H = 0 (never) it is the paper's.
 *
 * Nothing here locks or reads a clock. One instance belongs to one thread.
 */
#ifndef WEIR_CONTROL_ADAPTBF_ADAPTBF_H
#define WEIR_CONTROL_ADAPTBF_ADAPTBF_H

#include <weir/clock.h>
#include <weir/units.h>
#include "control/ledger.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a token: a request, as limits count them, or 4 KiB; so numbers are alike in both */

#define ADAPTBF_TOKEN_BYTES 4096

static inline double adaptbf_token_size(enum weir_unit unit)
{
	return unit == WEIR_UNIT_BYTES ? ADAPTBF_TOKEN_BYTES : 1;
}

/* ---- the driver */

#define ADAPTBF_UNKNOWN (-1)

struct adaptbf_job {     /* what a driver says of one job */
	uint64_t id;     /* its own for as long as it may be remembered; not 0 */
	uint32_t weight; /* > 0: compute nodes; the policy's weight, in any unit */
	/* Requests since any origin; where one falls, the job is taken to have begun again. A server
	 * that counts only what it served says that in both. */
	uint64_t arrived, served;
	int64_t queued; /* waiting now, not those being served; or ADAPTBF_UNKNOWN */
	double most;    /* tokens a second that its own limits let it have; 0: no such limit */
	bool above; /* what waits, waits for a limit that is not its own: tokens would not help */
	weir_time
		held; /* since any origin, for how long its tokens or own limits held a request; 0: not known */
};

struct adaptbf_rule { /* what a driver is to do for one job until the next step */
	uint64_t id;
	bool active;    /* false: its rule stops, and its requests are not held */
	int64_t tokens; /* of the period */
	int64_t initial; /* what its priority alone gives; tokens / initial is by how much it is ahead */
	double rate; /* tokens per second, with those that others will not use; 0: none was left for it */
	uint32_t weight;
};

struct adaptbf_totals {  /* since any origin */
	weir_time full;  /* for how long it had all that it takes at once */
	uint64_t served; /* requests, as tokens count them, that it finished in that time */
};

struct adaptbf_driver_ops {
	const char *name;
	/* Up to `max` jobs into the list; how many there are, which may be more (it is then called
	 * again with room for them), or a negative errno. Each id once. */
	int64_t (*jobs)(void *driver, weir_time now, struct adaptbf_job *list, size_t max);
	/* NULL: not known, and the rate stays as stated. */
	int (*totals)(void *driver, weir_time now, struct adaptbf_totals *ret);
	/* The rules of the active jobs, and of those that stop (they may have left), once; with `ordered`, those of the
	 * greatest weight first (ties by id). 0 or a negative errno. */
	int (*apply)(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n);
	bool ordered;
};

/* ---- the controller */

struct adaptbf_debt {        /* all 0: the paper's */
	double floor;        /* φ, 0 … 1 */
	weir_time half_life; /* H; 0: claims do not age */
};
#define ADAPTBF_DEBT                                                                               \
	((struct adaptbf_debt){0.5, 60 * WEIR_SEC}) /* unless the policy says otherwise */

/* What is switched off, so that an experiment can show what it does. */
enum adaptbf_without {
	ADAPTBF_WITHOUT_NOTHING,
	ADAPTBF_WITHOUT_LENDING,   /* each has what its priority gives */
	ADAPTBF_WITHOUT_REPAYMENT, /* what was lent is never given back */
	ADAPTBF_WITHOUT_BOUND, /* of demand: all that waits counts, so that the deepest queue wins */
};

struct adaptbf_config {
	weir_time period;  /* 0: 100 ms */
	double rate;       /* tokens a second, > 0: stated, or the first guess */
	bool learn;        /* it is a guess */
	bool hold;         /* a request waits for a token: one that is not used is lost */
	double headroom;   /* while learning; 0: 0.05 */
	weir_time forget;  /* 0: 600 s, as long as Lustre keeps statistics of idle jobs */
	uint32_t jobs_max; /* remembered at once; 0: 65536 */
	struct adaptbf_debt debt;
	enum adaptbf_without without;
};

struct adaptbf;
/* 0; -EINVAL: a rate that is not > 0, a period, headroom or half-life below 0, or a floor that is no part;
 * -ENOMEM. */
int adaptbf_new(const struct adaptbf_config *config, struct adaptbf **ret);
void adaptbf_free(struct adaptbf *a);

/* One period, which begins at `now`. 0, or the driver's error (what had been allocated is then as if
 * it had been applied), or -ENOMEM (nothing changed). Jobs beyond jobs_max are left alone. O(n), or
 * O(n log n) with `ordered`. */
int adaptbf_step(
	struct adaptbf *a, weir_time now, const struct adaptbf_driver_ops *ops, void *driver);

void adaptbf_set_rate(struct adaptbf *a, double rate); /* stated anew; > 0 */
/* Another configuration from the next step on; jobs_max stays. A rate that was learned and is to be
 * learned still is kept. -EINVAL as for new. */
int adaptbf_configure(struct adaptbf *a, const struct adaptbf_config *config);
/* It is switched off for a while: nobody has a rule (which the caller takes from the server), and what
 * comes until the next step is not counted. Records and loans stay. */
void adaptbf_rest(struct adaptbf *a);

/* ---- looking, and what a restart needs */

#define ADAPTBF_ONE ((int64_t)1 << 24) /* 1 of what is not whole: control/remainder's */

struct adaptbf_state {       /* of the whole; all of it is what a save must keep */
	double rate;         /* per second: stated, or as learned so far */
	int32_t carry;       /* tokens × ADAPTBF_ONE */
	int64_t tombstone;   /* records of those who were dropped */
	int64_t written_off; /* debts of those who were dropped, summed; tokens */
	int64_t forfeited;   /* claims of those who were dropped */
	int64_t aged;        /* claims that aged away, of all jobs; tokens */
	int64_t aged_left;   /* of these, on those who were dropped, less those of them: tombstone =
	                      forfeited − written_off + aged_left */
	uint64_t steps;
	/* of the last step, for show: */
	int64_t tokens, surplus, reclaimed, coefficient; /* coefficient: × ADAPTBF_ONE */
	uint32_t active, known, left_out;                /* jobs; left_out: beyond jobs_max */
};
void adaptbf_state(const struct adaptbf *a, struct adaptbf_state *ret);

struct adaptbf_account { /* of one job */
	uint64_t id;
	uint32_t weight;
	bool active;
	bool fresh; /* never active since it was first known, or forgotten: owes and is owed nothing */
	weir_time seen; /* when it was last active */
	int64_t tokens, initial, record;
	uint64_t demand;
	int32_t remainder, reclaim; /* × ADAPTBF_ONE */
	struct ledger_account ledger;
};
/* Places 0 … n − 1, of which some are empty: false. */
size_t adaptbf_places(const struct adaptbf *a);
bool adaptbf_account_at(const struct adaptbf *a, size_t place, struct adaptbf_account *ret);
/* -ENOENT: it is not known. */
int adaptbf_account(const struct adaptbf *a, uint64_t id, struct adaptbf_account *ret);

struct adaptbf_loan { /* 0 in place of an id: those who left */
	uint64_t lender, borrower;
	int64_t amount, lent;
	weir_time since, last; /* on the clock of `now` */
	int64_t written_off;   /* of what was lent, by age */
};
/* Copy open loans, at most `max`; how many there are. */
size_t adaptbf_loans(const struct adaptbf *a, struct adaptbf_loan *ret, size_t max);
/* The last of those that are closed, paid back or written off, newest first; at most `max`; how many. The ids
 * of jobs that were dropped since are 0. */
size_t adaptbf_paid(const struct adaptbf *a, struct adaptbf_loan *ret, size_t max);

/* As it was: before the first step. `now` is the new clock's; times are given on it (what was saved
 * is on the old one: shift it). -EINVAL: not what a controller can have been in, e.g. records and
 * tombstone that do not sum to 0, or loans that are not the records; -ENOMEM. On error `a` must be
 * freed. */
int adaptbf_restore(struct adaptbf *a, const struct adaptbf_state *state,
	const struct adaptbf_account *accounts, size_t n, const struct adaptbf_loan *loans,
	size_t m);
/* And what adaptbf_paid gave, after that; who is not known is one who left. */
void adaptbf_restore_paid(struct adaptbf *a, const struct adaptbf_loan *newest_first, size_t n);

/* How many periods at most until a borrower that is active throughout, borrows nothing and has at least
 * `tokens` each period before it gives back (its priority's, while all are busy) owes nothing of `owed`, to
 * lenders that have requests waiting throughout, and each of which has a priority (its share of the active
 * jobs' weights) of `p` or more; 0: they ask for nothing. Of the configuration `period` (not 0) and `debt`
 * count. */
double adaptbf_bound(const struct adaptbf_config *config, double owed, double p, double tokens);

#endif
