/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What holds at every step, over 100,000 of them: jobs come and go, ask for nothing or for 2⁴⁰, are
 * one or many, of equal or any weight. WEIR_SEED or an argument gives another seed.
 */
#include "alg/adaptbf.h"
#include "base/rng.h"
#include "ctl/adaptbf.h"
#include "test.h"
#include <errno.h>

#define JOBS  24
#define STEPS 100000

static struct rng rng;

struct world {
	struct adaptbf_job jobs[JOBS];
	bool here[JOBS];
	int64_t tokens; /* that the rules gave */
	size_t n_rules;
};

static int64_t world_jobs(void *driver, weir_time now, struct adaptbf_job *list, size_t max)
{
	struct world *w = driver;
	size_t n = 0;

	for (size_t i = 0; i < JOBS; i++) {
		if (w->here[i] && n++ < max)
			list[n - 1] = w->jobs[i];
	}
	return (int64_t)n;
}

static int world_apply(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n)
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

static const struct adaptbf_driver_ops ops = {
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
		struct adaptbf_job *j = &w->jobs[i];
		uint64_t arrived = some_demand();

		if (rng_below(&rng, 30) == 0)
			w->here[i] = !w->here[i];
		if (mode == 1)
			w->here[i] = i == 3; /* one */
		if (rng_below(&rng, 200) == 0)
			j->weight = mode == 2 ? 5 : (uint32_t)(1 + rng_below(&rng, 1000));
		j->arrived += arrived;
		j->served += rng_below(&rng, arrived + 1);
		j->queued = rng_below(&rng, 3) ? (int64_t)some_demand() : 0;
		if (rng_below(&rng, 1000) == 0)
			j->arrived = j->served = 0; /* began again */
		if (rng_below(&rng, 50) == 0)
			j->most = (double)rng_below(&rng, 2000);
	}
}

static void check(const struct adaptbf *a, const struct world *w, const int64_t *before)
{
	struct adaptbf_state s;
	struct adaptbf_account x;
	int64_t records, tokens = 0;

	adaptbf_state(a, &s);
	records = s.tombstone;
	for (size_t i = 0; i < adaptbf_places(a); i++) {
		if (!adaptbf_account_at(a, i, &x))
			continue;
		const struct ledger_account *l = &x.ledger;

		CHECK(x.tokens >= 0);
		if (x.active && s.tokens >= s.active)
			CHECK(x.tokens >= 1);
		records += x.record;
		tokens += x.tokens;
		/* What the ledger has written down, less what others' leaving took from it. */
		CHECK_INT(l->lent + l->repaid - l->borrowed - l->regained, x.record);
		if (x.active && before[x.id] != INT64_MIN)
			CHECK_INT(x.record - before[x.id], x.initial - x.tokens);
	}
	CHECK_INT(records, 0);
	CHECK_INT(s.written_off - s.forfeited, -s.tombstone);
	CHECK(s.coefficient <= REMAINDER_ONE);
	if (s.active) {
		CHECK_INT(tokens, s.tokens);
		CHECK_INT(w->tokens, s.tokens);
	}
	CHECK_INT(w->n_rules, s.active);
}

static void both_sums_are_exact(void)
{
	struct adaptbf_config config = {.rate = 1234.5, .forget = 3 * WEIR_SEC};
	struct world w = {0};
	struct adaptbf *a;
	uint64_t all = 0;
	struct adaptbf_state s;

	CHECK_INT(adaptbf_new(&config, &a), 0);
	for (size_t i = 0; i < JOBS; i++)
		w.jobs[i] = (struct adaptbf_job){.id = i + 1, .weight = (uint32_t)i + 1};
	for (int step = 0; step < STEPS; step++) {
		int64_t before[JOBS + 1];
		struct adaptbf_account x;
		int mode = step / 5000 % 4; /* 1: one job; 2: equal weights; 3: few tokens */

		if (step % 5000 == 0)
			adaptbf_set_rate(a, mode == 3 ? 77 : 1234.5);
		change(&w, mode);
		for (uint64_t i = 1; i <= JOBS; i++)
			before[i] = adaptbf_account(a, i, &x) ? INT64_MIN : x.record;
		CHECK_INT(adaptbf_step(a, (weir_time)step * 100 * WEIR_MS, &ops, &w), 0);
		check(a, &w, before);
		adaptbf_state(a, &s);
		all += (uint64_t)s.tokens;
	}
	/* Fractions of a token are not lost either: 1234.5 and 77 a second, all the time. */
	CHECK_NEAR((double)all, (1234.5 * 3 + 77) / 4 * STEPS / 10, 1e-4);
	CHECK(s.written_off > 0);
	adaptbf_free(a);
}

/* Any lender, any borrowers, any weights: once all are busy, the promise of adaptbf.h. */
static void lenders_are_paid_back_in_time(void)
{
	for (int round = 0; round < 200; round++) {
		struct adaptbf_config config = {
			.rate = 2000 + (double)rng_below(&rng, 5000), .period = 100 * WEIR_MS};
		size_t n = 2 + rng_below(&rng, 8), lenders = 1 + rng_below(&rng, n - 1);
		struct world w = {0};
		struct adaptbf_account x[JOBS];
		struct adaptbf *a;
		double weights = 0, p = 0, bound = 0;
		int64_t lent = 0;
		int periods = 0;

		CHECK_INT(adaptbf_new(&config, &a), 0);
		for (size_t i = 0; i < n; i++) {
			w.here[i] = true;
			w.jobs[i] = (struct adaptbf_job){
				.id = i + 1, .weight = (uint32_t)(1 + rng_below(&rng, 20))};
			weights += w.jobs[i].weight;
			/* Lenders that are paid ask no more: the least of them may be the last. */
			if (i == 0 || (i < lenders && w.jobs[i].weight < p))
				p = w.jobs[i].weight;
		}
		p /= weights;
		for (int step = 0; step < 100000; step++) {
			bool busy = step > 50;

			for (size_t i = 0; i < n; i++) {
				uint64_t served;

				x[i].tokens = 0;
				(void)adaptbf_account(a, i + 1, &x[i]);
				served = (uint64_t)x[i].tokens;
				if (i < lenders && !busy)
					served = served < 2 ? served : 2;
				w.jobs[i].arrived += served + (i < lenders && !busy);
				w.jobs[i].served += served;
				w.jobs[i].queued = i < lenders && !busy ? 0 : 9;
			}
			CHECK_INT(adaptbf_step(a, (weir_time)step * 100 * WEIR_MS, &ops, &w), 0);
			lent = 0;
			for (size_t i = 0; i < n; i++) {
				CHECK_INT(adaptbf_account(a, i + 1, &x[i]), 0);
				lent += i < lenders && x[i].record > 0 ? x[i].record : 0;
			}
			if (step == 51) { /* the first in which their demand is seen */
				for (size_t i = lenders; i < n; i++) {
					double least =
						config.rate / 10 * w.jobs[i].weight / weights;
					double b = adaptbf_bound(&config, (double)-x[i].record,
						(double)lenders, p, least);

					bound = b > bound ? b : bound;
				}
			}
			periods += busy;
			if (busy && lent == 0)
				break;
		}
		if (!(periods <= bound + 1))
			FAIL("round %d: %d periods, bound %g, %lld left", round, periods, bound,
				(long long)lent);
		adaptbf_free(a);
	}
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : getenv("WEIR_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	printf("seed %llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, "law-adaptbf");
	RUN(both_sums_are_exact);
	RUN(lenders_are_paid_back_in_time);
	return 0;
}
