/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of every step, over 100,000 steps: jobs come and go, demand nothing or 2⁴⁰ tokens, are
 * one or many, with equal or random weights. WEIR_SEED or an argument gives another seed.
 */
#include "control/lend/law.h"
#include "base/rng.h"
#include "control/lend/lend.h"
#include "test.h"
#include <errno.h>

#define JOBS  24
#define STEPS 100000

static struct rng rng;

struct world {
	struct lend_job jobs[JOBS];
	bool here[JOBS];
	int64_t tokens; /* given by the rules */
	size_t n_rules;
};

static int64_t world_jobs(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	struct world *w = driver;
	size_t n = 0;

	for (size_t i = 0; i < JOBS; i++) {
		if (w->here[i] && n++ < max)
			list[n - 1] = w->jobs[i];
	}
	return (int64_t)n;
}

static int world_apply(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	struct world *w = driver;

	w->tokens = 0;
	w->n_rules = 0;
	for (size_t i = 0; i < n; i++) {
		CHECK(rules[i].tokens >= 0);
		CHECK(rules[i].active || rules[i].tokens == 0);
		w->tokens += rules[i].tokens;
		w->n_rules += rules[i].active;
	}
	return 0;
}

static const struct lend_driver_ops ops = {
	.name = "world", .jobs = world_jobs, .apply = world_apply};

static uint64_t some_demand(void)
{
	switch (rng_below(&rng, 6)) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)1 << 40;
	case 2:
		return rng_u64(&rng) >> 20;
	default:
		return rng_below(&rng, 60);
	}
}

static void change(struct world *w, int mode)
{
	for (size_t i = 0; i < JOBS; i++) {
		struct lend_job *j = &w->jobs[i];
		uint64_t arrived = some_demand();

		if (rng_below(&rng, 30) == 0)
			w->here[i] = !w->here[i];
		if (mode == 1)
			w->here[i] = i == 3; /* one job only */
		if (rng_below(&rng, 200) == 0)
			j->weight = mode == 2 ? 5 : (uint32_t)(1 + rng_below(&rng, 1000));
		j->arrived += arrived;
		j->served += rng_below(&rng, arrived + 1);
		j->queued = rng_below(&rng, 3) ? (int64_t)some_demand() : 0;
		if (rng_below(&rng, 1000) == 0)
			j->arrived = j->served = 0; /* the job restarted */
		if (rng_below(&rng, 50) == 0)
			j->most = (double)rng_below(&rng, 2000);
	}
}

struct before { /* values before a step; all 0 for a job that is unknown or new */
	bool known;
	int64_t record, written_off, forgiven;
};

/* Check one job's books. */
static void check_job(const struct lend_account *x, const struct before *b)
{
	const struct ledger_account *l = &x->ledger;

	CHECK(x->tokens >= 0);
	/* The ledger's entries, less what was removed with jobs that left. */
	CHECK_INT(l->lent + l->repaid + l->forgiven - l->borrowed - l->regained - l->written_off,
		x->record);
	if (x->fresh)
		return;
	CHECK_INT(x->record - b->record - (x->active ? x->initial - x->tokens : 0),
		l->forgiven - b->forgiven - (l->written_off - b->written_off));
	CHECK(x->active || l->forgiven == b->forgiven); /* debts age by active time */
}

/* Check every sum of the books against the accounts of all jobs. */
static void check(const struct lend *a, const struct world *w, const struct before *before,
	const struct lend_state *was)
{
	struct lend_state s;
	struct lend_account x;
	int64_t records, tokens = 0, written_off = 0, forgiven = 0, gone = 0;

	lend_state(a, &s);
	records = s.tombstone;
	for (size_t i = 0; i < lend_places(a); i++) {
		if (!lend_account_at(a, i, &x))
			continue;
		check_job(&x, &before[x.id]);
		if (x.active && s.tokens >= s.active)
			CHECK(x.tokens >= 1);
		records += x.record;
		tokens += x.tokens;
		if (x.fresh)
			continue;
		gone -= before[x.id].known;
		written_off += x.ledger.written_off - before[x.id].written_off;
		forgiven += x.ledger.forgiven - before[x.id].forgiven;
	}
	CHECK_INT(records, 0);
	CHECK_INT(s.forfeited - s.written_off + s.aged_left, s.tombstone);
	CHECK(s.coefficient <= REMAINDER_ONE);
	if (s.active) {
		CHECK_INT(tokens, s.tokens);
		CHECK_INT(w->tokens, s.tokens);
	}
	CHECK_INT(w->n_rules, s.active);
	for (size_t i = 1; i <= JOBS; i++)
		gone += before[i].known;
	if (gone) /* removed with its account */
		return;
	/* Each token that ages is written off at one job and forgiven another, or a job that
	 * left. */
	CHECK_INT(written_off - forgiven, s.aged_left - was->aged_left);
	CHECK(s.aged - was->aged >= forgiven && s.aged - was->aged >= written_off);
}

static void all_sums_are_exact(struct lend_debt debt)
{
	struct lend_config config = {.rate = 1234.5, .forget = 3 * WEIR_SEC, .debt = debt};
	struct world w = {0};
	struct lend *a;
	uint64_t all = 0;
	struct lend_state s;

	CHECK_INT(lend_new(&config, &a), 0);
	for (size_t i = 0; i < JOBS; i++)
		w.jobs[i] = (struct lend_job){.id = i + 1, .weight = (uint32_t)i + 1};
	for (int step = 0; step < STEPS; step++) {
		struct before before[JOBS + 1];
		struct lend_account x;
		struct lend_state was;
		int mode = step / 5000 % 4; /* 1: one job; 2: equal weights; 3: few tokens */

		if (step % 5000 == 0)
			lend_set_rate(a, mode == 3 ? 77 : 1234.5);
		change(&w, mode);
		for (uint64_t i = 1; i <= JOBS; i++)
			before[i] = lend_account(a, i, &x) || x.fresh
					    ? (struct before){0}
					    : (struct before){true, x.record, x.ledger.written_off,
						      x.ledger.forgiven};
		lend_state(a, &was);
		CHECK_INT(lend_step(a, (weir_time)step * 100 * WEIR_MS, &ops, &w), 0);
		check(a, &w, before, &was);
		lend_state(a, &s);
		all += (uint64_t)s.tokens;
	}
	/* Fractions of a token are not lost: 1234.5 and 77 a second, all the time. */
	CHECK_NEAR((double)all, (1234.5 * 3 + 77) / 4 * STEPS / 10, 1e-4);
	CHECK(s.written_off > 0);
	CHECK((s.aged > 1000) == (debt.half_life > 0));
	lend_free(a);
}

static void sums_with_the_papers_debts(void)
{
	all_sums_are_exact((struct lend_debt){0});
}

static void sums_with_bounded_debts(void)
{
	all_sums_are_exact((struct lend_debt){0.5, 5 * WEIR_SEC});
}

/* While all jobs are busy, a borrower has its floor, but for the rounding to whole tokens. */
static void keep_floors(const struct lend_account *x, size_t n, double floor)
{
	for (size_t i = 0; i < n; i++)
		if (x[i].record < 0)
			CHECK((double)x[i].tokens >= floor * (double)x[i].initial - 2);
}

/* The longest time to repay over all borrowers. Lenders that are repaid take no more, so the
 * smallest may be last. */
static double longest(
	const struct lend_config *config, const struct lend_account *x, size_t n, double weights)
{
	double p = 1, bound = 0;

	for (size_t i = 0; i < n; i++)
		if (x[i].record > 0)
			p = fmin(p, x[i].weight / weights);
	for (size_t i = 0; i < n; i++) {
		double tokens = config->rate / 10 * x[i].weight / weights;

		if (x[i].record < 0)
			bound = fmax(bound, lend_bound(config, (double)-x[i].record, p, tokens));
	}
	return bound;
}

/* For any lender, borrowers and weights: once all are busy, debts are repaid within the bound of
 * lend.h. */
static void repaid_in_time(bool bounded)
{
	for (int round = 0; round < 200; round++) {
		struct lend_config config = {
			.rate = 2000 + (double)rng_below(&rng, 5000), .period = 100 * WEIR_MS};
		int calm = bounded ? 50 + (int)rng_below(&rng, 1000) : 50; /* steps */
		size_t n = 2 + rng_below(&rng, 8), lenders = 1 + rng_below(&rng, n - 1);
		struct world w = {0};
		struct lend_account x[JOBS];
		struct lend *a;
		double weights = 0, bound = 0;
		int64_t lent = 0;
		int periods = 0;

		if (bounded)
			config.debt = (struct lend_debt){(double)rng_below(&rng, 101) / 100,
				WEIR_SEC * (weir_time)(1 + rng_below(&rng, 60))};
		CHECK_INT(lend_new(&config, &a), 0);
		for (size_t i = 0; i < n; i++) {
			w.here[i] = true;
			w.jobs[i] = (struct lend_job){
				.id = i + 1, .weight = (uint32_t)(1 + rng_below(&rng, 20))};
			weights += w.jobs[i].weight;
		}
		for (int step = 0; step < 100000; step++) {
			bool busy = step > calm;

			for (size_t i = 0; i < n; i++) {
				uint64_t served;

				x[i].tokens = 0;
				(void)lend_account(a, i + 1, &x[i]);
				served = (uint64_t)x[i].tokens;
				if (i < lenders && !busy)
					served = served < 2 ? served : 2;
				w.jobs[i].arrived += served + (i < lenders && !busy);
				w.jobs[i].served += served;
				w.jobs[i].queued = i < lenders && !busy ? 0 : 9;
			}
			CHECK_INT(lend_step(a, (weir_time)step * 100 * WEIR_MS, &ops, &w), 0);
			lent = 0;
			for (size_t i = 0; i < n; i++) {
				CHECK_INT(lend_account(a, i + 1, &x[i]), 0);
				lent += x[i].record > 0 ? x[i].record : 0;
			}
			if (busy)
				keep_floors(x, n, config.debt.floor);
			if (step == calm + 1) /* the first step that sees their demand */
				bound = longest(&config, x, n, weights);
			periods += busy;
			if (busy && lent == 0)
				break;
		}
		if (!(periods <= bound + 1))
			FAIL("round %d: %d periods, bound %g, %lld left", round, periods, bound,
				(long long)lent);
		lend_free(a);
	}
}

static void lenders_are_paid_back_in_time(void)
{
	repaid_in_time(false);
}

static void bounded_debts_end_in_time(void)
{
	repaid_in_time(true);
}

/* A job that borrows b tokens a second, for any time, owes at most b·H/ln 2; the debt halves
 * every H of active time, and does not age while the job is away. */
static void debts_are_bounded(void)
{
	struct lend_config config = {
		.rate = 1000, .debt = {1, 10 * WEIR_SEC}, .forget = 1000 * WEIR_SEC};
	struct world w = {.here = {true, true}};
	struct lend_account x;
	struct lend *a;
	double owed = 0, keep = exp2(-0.1 / 10);
	weir_time now = 0;

	CHECK_INT(lend_new(&config, &a), 0);
	for (uint64_t i = 0; i < 2; i++)
		w.jobs[i] = (struct lend_job){.id = i + 1, .weight = 1};
	for (int step = 0; step < 6000; step++, now += 100 * WEIR_MS) {
		bool away = step >= 2000 && step < 3000;

		w.jobs[0].arrived += 5;
		w.jobs[0].served += 5;
		if (!away && lend_account(a, 2, &x) == 0) {
			w.jobs[1].arrived += (uint64_t)x.tokens;
			w.jobs[1].served += (uint64_t)x.tokens;
		}
		w.jobs[1].queued = away ? 0 : 100;
		CHECK_INT(lend_step(a, now, &ops, &w), 0);
		CHECK_INT(lend_account(a, 2, &x), 0);
		if (!away)
			owed = (owed + (double)(x.tokens - x.initial)) * keep;
		CHECK(fabs(owed + (double)x.record) <= 1.01);
		CHECK(-x.record <= 500 * 10 / 0.69314);
	}
	CHECK(owed > 4000);
	lend_free(a);
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : getenv("WEIR_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	printf("seed %llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, "law-adaptbf");
	RUN(sums_with_the_papers_debts);
	RUN(sums_with_bounded_debts);
	RUN(lenders_are_paid_back_in_time);
	RUN(bounded_debts_end_in_time);
	RUN(debts_are_bounded);
	return 0;
}
