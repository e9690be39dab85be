/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Rashid, Dai: AdapTBF, 2025, §III-B (the framework), §III-D (the rules). The law itself,
 *         and its differences from the paper, are in control/lend/law.c.
 * LAW     A job waits when requests are queued and served + queued ≥ 0.9 α_prev, or when its tokens
 *         held requests for a quarter of the period: it would have used more. Its demand then is
 *         d = max(arrivals, 2·max(α_prev, K·p)), else arrivals + queued.
 *         A claim on an active job: a ← a·2^(−Δt/H), after the period's allocation.
 * METHOD  A slot for each known job; active jobs are gathered into arrays for the law, and its
 *         results are copied back. The ledger gets the differences α⁰ − α, givers and takers in
 *         order of their slots: at most one transfer a job.
 * DIFFERS The paper uses arrivals as demand. In a closed loop arrivals equal completions, so that a
 *         throttled job looks satisfied; if all waiting requests counted, the deepest queue would
 *         win (decision 13). Factor two: a job that waits doubles in a period while there is
 *         surplus, and a lender that waits is owed up to as much again as its priority gives.
 * EXAMPLE K = 100, two jobs of equal weight, both with requests waiting, one of them eight, the
 *         other 512: d = 100 for both, and 50 tokens each.
 */
#include "control/lend/lend.h"
#include "control/lend/impl.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD   (100 * WEIR_MS) /* the paper's */
#define FORGET   (600 * WEIR_SEC)
#define JOBS_MAX 65536
/* open loans at once, however few jobs: 100 kB, and more than a person reads */
#define LOANS_LEAST 1024
#define LOANS       4    /* … and for each job; pairs of jobs would be their square */
#define HEADROOM    0.05 /* more than a server's rate varies from one second to the next */

static bool good(const struct lend_config *c)
{
	return c->rate > 0 && !isinf(c->rate) && c->period >= 0 && c->headroom >= 0 &&
	       c->forget >= 0 && c->debt.floor >= 0 && c->debt.floor <= 1 && c->debt.half_life >= 0;
}

/* Return the part of a claim that is lost in a period. */
static double aging(const struct lend_config *c)
{
	return c->debt.half_life ? 1 - exp2(-(double)c->period / (double)c->debt.half_life) : 0;
}

static void set_aging(struct lend *a)
{
	double part = rint(aging(&a->config) * (double)LEDGER_ONE);

	a->ages = (uint64_t)fmin(part, (double)(LEDGER_ONE - 1));
}

static struct lend_config with_defaults(struct lend_config c)
{
	if (!c.period)
		c.period = PERIOD;
	if (!c.forget)
		c.forget = FORGET;
	if (!c.jobs_max)
		c.jobs_max = JOBS_MAX;
	if (c.headroom <= 0)
		c.headroom = HEADROOM;
	return c;
}

int lend_new(const struct lend_config *config, struct lend **ret)
{
	struct lend *a;

	if (!good(config))
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->config = with_defaults(*config);
	set_aging(a);
	a->first = true;
	a->state.rate = config->rate;
	a->free = LEND_NOBODY;
	if (ledger_new(&a->ledger)) {
		free(a);
		return -ENOMEM;
	}
	*ret = a;
	return 0;
}

static void free_arrays(struct lend_arrays *x)
{
	free(x->slot);
	free(x->weight);
	free(x->demand);
	free(x->tokens);
	free(x->record);
	free(x->initial);
	free(x->remainder);
	free(x->reclaim);
	free(x->rules);
	*x = (struct lend_arrays){0};
}

void lend_free(struct lend *a)
{
	if (!a)
		return;
	free_arrays(&a->active);
	lend_space_free(&a->space);
	ledger_free(a->ledger);
	free(a->slots);
	ids_free(&a->index);
	free(a->seen);
	free(a);
}

void lend_set_rate(struct lend *a, double rate)
{
	a->config.rate = a->state.rate = rate;
}

int lend_configure(struct lend *a, const struct lend_config *config)
{
	struct lend_config next = with_defaults(*config);

	if (!good(config))
		return -EINVAL;
	next.jobs_max = a->config.jobs_max;
	if (a->config.learn && next.learn)
		next.rate = a->state.rate;
	a->config = next;
	set_aging(a);
	lend_set_rate(a, next.rate);
	return 0;
}

void lend_rest(struct lend *a)
{
	for (uint32_t i = 0; i < a->n_slots; i++) {
		a->slots[i].active = false;
		a->slots[i].tokens = a->slots[i].initial = 0;
		a->slots[i].rate = 0;
	}
	a->state.active = 0;
	a->state.tokens = a->state.surplus = a->state.reclaimed = a->state.coefficient = 0;
	a->first = true;
}

static int grow_arrays(struct lend *a, size_t n)
{
	struct lend_arrays x = {.room = n};

	if (n > a->active.room) {
		x.slot = malloc(n * sizeof(*x.slot));
		x.weight = malloc(n * sizeof(*x.weight));
		x.demand = malloc(n * sizeof(*x.demand));
		x.tokens = malloc(n * sizeof(*x.tokens));
		x.record = malloc(n * sizeof(*x.record));
		x.initial = malloc(n * sizeof(*x.initial));
		x.remainder = malloc(n * sizeof(*x.remainder));
		x.reclaim = malloc(n * sizeof(*x.reclaim));
		x.rules = malloc(n * sizeof(*x.rules));
		if (!x.slot || !x.weight || !x.demand || !x.tokens || !x.record || !x.initial ||
			!x.remainder || !x.reclaim || !x.rules) {
			free_arrays(&x);
			return -ENOMEM;
		}
		free_arrays(&a->active);
		a->active = x;
	}
	return lend_space_grow(&a->space, n);
}

/* ---- what the driver says */

static int ask(
	struct lend *a, weir_time now, const struct lend_driver_ops *ops, void *driver, size_t *n)
{
	for (;;) {
		int64_t r = ops->jobs(driver, now, a->seen, a->seen_room);

		if (r < 0)
			return (int)r;
		*n = (size_t)r;
		if (*n <= a->seen_room)
			return 0;
		if (array_resize(&a->seen, *n) < 0)
			return -ENOMEM;
		a->seen_room = *n;
	}
}

/* Update the counters. A counter that fell was reset. At the first sight of a job only its queue is
 * known. */
static void count(struct lend *a, struct lend_slot *s, const struct lend_job *j)
{
	bool again = j->arrived < s->arrived || j->served < s->served;

	if (a->first) {
		s->arrivals = s->serves = 0;
	} else {
		s->arrivals = again ? j->arrived : j->arrived - s->arrived;
		s->serves = again ? j->served : j->served - s->served;
	}
	s->arrived = j->arrived;
	s->served = j->served;
	s->queued = j->queued;
	s->most = j->most;
	s->above = j->above;
	s->holds = a->first || j->held < s->held ? 0 : j->held - s->held;
	s->held = j->held;
	s->weight = j->weight ? j->weight : 1;
	s->step = a->state.steps + 1;
}

static int hear(struct lend *a, weir_time now, size_t n)
{
	size_t room = a->config.jobs_max -
		      (a->known < a->config.jobs_max ? a->known : a->config.jobs_max);
	int r = lend_jobs_room(a, n < room ? n : room);

	if (r)
		return r;
	r = grow_arrays(a, a->room);
	if (r)
		return r;
	a->state.left_out = 0;
	for (size_t i = 0; i < n; i++) {
		const struct lend_job *j = &a->seen[i];
		uint32_t slot = lend_find(a, j->id);
		bool added = slot == LEND_NOBODY;

		if (added && !j->arrived && !j->queued)
			continue; /* forget it: nothing is lost, and there may be very many */
		if (added && (a->known >= a->config.jobs_max || j->id == 0)) {
			a->state.left_out++;
			continue;
		}
		if (added) {
			slot = lend_add(a, j->id);
			a->slots[slot].seen = now;
		}
		count(a, &a->slots[slot], j);
	}
	return 0;
}

/* ---- active jobs and their demand */

/* Return true if a job owes, has requests waiting and was served less than its tokens: its arrivals
 * then depend on its service, and do not show its demand. */
static bool starved(const struct lend *a, const struct lend_slot *s)
{
	return a->config.debt.floor > 0 && s->record < 0 && s->queued > 0;
}

/* Return the job's demand. K·p is `part` of its weight, rounded up: never 0. */
static uint64_t wish(const struct lend *a, const struct lend_slot *s, uint64_t weights)
{
	uint64_t asked = s->arrivals + (s->queued > 0 ? (uint64_t)s->queued : 0);
	uint64_t part, had = s->tokens > 0 ? (uint64_t)s->tokens : 0;
	bool waits = lend_waits(a, s);

	if (!waits && !starved(a, s))
		return asked;
	part = (uint64_t)((double)a->state.tokens * s->weight / (double)weights) + 1;
	if (!waits)
		return asked > part ? asked : part;
	if (part < had)
		part = had;
	return s->arrivals > 2 * part ? s->arrivals : 2 * part;
}

static uint64_t demand(const struct lend *a, const struct lend_slot *s, uint64_t weights)
{
	uint64_t d = a->config.without == LEND_WITHOUT_BOUND
			     ? s->arrivals + (s->queued > 0 ? (uint64_t)s->queued : 0)
			     : wish(a, s, weights);
	double most = s->most * (double)a->config.period / WEIR_SEC;

	if (a->config.without == LEND_WITHOUT_LENDING)
		return UINT64_MAX; /* then no job has a surplus */
	return most > 0 && most < (double)d ? (uint64_t)ceil(most) : d;
}

/* Gather the active jobs into the arrays, and put the rules that stop at the end of the array;
 * return how many stop. */
static size_t gather(struct lend *a, weir_time now, struct lend_jobs *jobs)
{
	struct lend_arrays *x = &a->active;
	size_t n = 0, stop = 0;

	for (uint32_t i = 0; i < a->n_slots; i++) {
		struct lend_slot *s = &a->slots[i];
		bool listed = s->id && s->step > a->state.steps;
		bool active = listed && (s->arrivals > 0 || s->queued > 0);

		if (s->active && !active) {
			/* Fill from the end: there are at most as many rules, active or stopped, as
			 * slots. */
			x->rules[x->room - ++stop] =
				(struct lend_rule){.id = s->id, .weight = s->weight};
			s->tokens = s->initial = 0;
			s->rate = 0;
		}
		s->active = active;
		if (!active)
			continue;
		s->seen = now;
		x->slot[n] = i;
		x->weight[n] = s->weight;
		x->tokens[n] = s->fresh ? LEND_NEW : s->tokens;
		/* A job without a record is neither lender nor borrower. */
		x->record[n] = a->config.without == LEND_WITHOUT_REPAYMENT ? 0 : s->record;
		x->remainder[n] = s->remainder;
		x->reclaim[n] = s->reclaim;
		s->fresh = false;
		n++;
	}
	*jobs = (struct lend_jobs){n, x->weight, x->demand, x->tokens, x->record, x->remainder,
		x->reclaim, x->initial, llrint(a->config.debt.floor * REMAINDER_ONE)};
	return stop;
}

static void want(struct lend *a, size_t n)
{
	struct lend_arrays *x = &a->active;
	uint64_t weights = 0;

	for (size_t k = 0; k < n; k++)
		weights += x->weight[k];
	for (size_t k = 0; k < n; k++) {
		struct lend_slot *s = &a->slots[x->slot[k]];

		s->waits = lend_waits_for_tokens(a, s);
		s->demand = demand(a, s, weights);
		x->demand[k] = s->demand;
	}
}

/* ---- what comes of it */

/* Record loans from jobs that got less than their priority gives to jobs that got more, in
 * order. */
static void exchange(struct lend *a, weir_time now, size_t n)
{
	const struct lend_arrays *x = &a->active;
	size_t from = 0, to = 0;
	int64_t gives = 0, takes = 0;

	for (;;) {
		int64_t amount;

		while (gives == 0 && from < n &&
			(gives = x->initial[from] - x->tokens[from]) <= 0) {
			gives = 0;
			from++;
		}
		while (takes == 0 && to < n && (takes = x->tokens[to] - x->initial[to]) <= 0) {
			takes = 0;
			to++;
		}
		if (gives == 0 || takes == 0)
			return;
		amount = gives < takes ? gives : takes;
		ledger_transfer(a->ledger, now, x->slot[from], x->slot[to], amount);
		gives -= amount;
		takes -= amount;
		from += gives == 0;
		to += takes == 0;
	}
}

static int by_weight(const void *x, const void *y)
{
	const struct lend_rule *a = x, *b = y;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Copy the results back into the slots and build the rules; those that stop come last. */
static void scatter(struct lend *a, size_t n, size_t stop, bool ordered)
{
	struct lend_arrays *x = &a->active;

	lend_rates(a, n);
	for (size_t k = 0; k < n; k++) {
		struct lend_slot *s = &a->slots[x->slot[k]];

		s->tokens = x->tokens[k];
		s->initial = x->initial[k];
		s->record = x->record[k] +
			    (a->config.without == LEND_WITHOUT_REPAYMENT ? s->record : 0);
		s->remainder = x->remainder[k];
		s->reclaim = x->reclaim[k];
		x->rules[k] =
			(struct lend_rule){s->id, true, s->tokens, s->initial, s->rate, s->weight};
	}
	if (ordered && n)
		qsort(x->rules, n, sizeof(*x->rules), by_weight);
	if (stop) /* before the first job the array is NULL */
		memmove(&x->rules[n], &x->rules[x->room - stop], stop * sizeof(*x->rules));
}

static void lose(uint32_t lender, int64_t tokens, void *arg)
{
	struct lend *a = arg;

	if (lender == LEDGER_POOL) {
		a->state.tombstone -= tokens;
		a->state.aged_left -= tokens;
	} else {
		a->slots[lender].record -= tokens;
	}
}

/* Age the claims on the n active jobs, and on jobs that left. The slots have their new records. */
static void age(struct lend *a, weir_time now, size_t n)
{
	int64_t left;

	if (!a->ages || !n)
		return;
	for (size_t k = 0; k < n; k++) {
		uint32_t slot = a->active.slot[k];
		int64_t tokens = 0;

		if (a->slots[slot].record < 0)
			tokens = ledger_age(a->ledger, now, slot, a->ages, lose, a);
		a->slots[slot].record += tokens;
		a->state.aged += tokens;
	}
	left = ledger_age(a->ledger, now, LEDGER_POOL, a->ages, lose, a);
	a->state.tombstone += left;
	a->state.aged_left += left;
	a->state.aged += left;
}

/* A job that the driver still lists keeps its counters, so that it is not new when it becomes
 * active again. */
static void forget(struct lend *a, weir_time now)
{
	for (uint32_t i = 0; i < a->n_slots; i++) {
		const struct lend_slot *s = &a->slots[i];

		if (!s->id || s->active || now - s->seen <= a->config.forget)
			continue;
		if (s->step == a->state.steps)
			lend_settle(a, now, i);
		else
			lend_drop(a, now, i);
	}
}

int lend_step(struct lend *a, weir_time now, const struct lend_driver_ops *ops, void *driver)
{
	double seconds = (double)a->config.period / WEIR_SEC;
	struct lend_sums sums;
	struct lend_jobs jobs;
	size_t n = 0, stop;
	int r = ask(a, now, ops, driver, &n);

	if (r == 0)
		r = hear(a, now, n);
	if (r)
		return r;
	lend_learn(a, now, ops, driver);
	stop = gather(a, now, &jobs);
	a->state.tokens = lend_tokens(lend_supply(a), seconds, &a->state.carry);
	want(a, jobs.n);
	lend_allocate(&jobs, a->state.tokens, &a->space, &sums);
	exchange(a, now, jobs.n);
	if (ledger_open(a->ledger) > LOANS_LEAST + LOANS * (size_t)a->known)
		ledger_clear(a->ledger, now);
	scatter(a, jobs.n, stop, ops->ordered);
	age(a, now, jobs.n);
	a->state.surplus = sums.surplus;
	a->state.reclaimed = sums.reclaimed;
	a->state.coefficient = sums.coefficient;
	a->state.active = (uint32_t)jobs.n;
	a->state.steps++;
	a->first = false;
	forget(a, now);
	a->state.known = a->known;
	return ops->apply(driver, now, a->active.rules, jobs.n + stop);
}

/* y is the debt without rounding: y ← (y − each)·(1 − f); whole tokens lag behind by less than
 * one. */
double lend_bound(const struct lend_config *config, double owed, double p, double tokens)
{
	/* A borrower keeps one token, the floor is rounded up, and a period's fraction comes with
	 * the next period. */
	double most =
		fmin(tokens - 1, (1 - config->debt.floor) * tokens - (config->debt.floor > 0));
	double each = fmin(p / 2 * tokens, most);
	double f = aging(config), bound = each > 0 ? ceil(owed / each) + 2 : INFINITY;
	double half = f > 0 ? (double)config->debt.half_life / (double)config->period : 0;

	if (f > 0)
		bound = fmin(bound, ceil(half * log2(fmax(owed, 1)) + 1 / f) + 2);
	if (f > 0 && each > 0)
		bound = fmin(
			bound, ceil(half * log2(1 + f * owed / (each * (1 - f))) + 1 / each) + 3);
	return bound;
}
