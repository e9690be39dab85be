/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/ledger.h"
#include "base/rng.h"
#include "test.h"
#include <errno.h>

#define JOBS 40

static struct ledger *make(uint32_t n)
{
	struct ledger *l;

	CHECK_INT(ledger_new(&l), 0);
	CHECK_INT(ledger_grow(l, n), 0);
	return l;
}

static struct ledger_loan seen[64];
static size_t n_seen;
static bool see(const struct ledger_loan *loan, void *arg)
{
	seen[n_seen++] = *loan;
	return true;
}

static void lent_and_paid_back(void)
{
	struct ledger *l = make(3);
	struct ledger_loan closed[LEDGER_CLOSED];

	ledger_transfer(l, 10, 0, 1, 30);
	ledger_transfer(l, 20, 0, 1, 5);
	CHECK_INT(ledger_balance(l, 0), 35);
	CHECK_INT(ledger_balance(l, 1), -35);
	CHECK_INT(ledger_open(l), 1);
	n_seen = 0;
	ledger_each(l, see, NULL);
	CHECK_INT(n_seen, 1);
	CHECK_INT(seen[0].lender, 0);
	CHECK_INT(seen[0].borrower, 1);
	CHECK_INT(seen[0].amount, 35);
	CHECK_INT(seen[0].since, 10);
	ledger_transfer(l, 30, 1, 0, 20);
	CHECK_INT(ledger_balance(l, 1), -15);
	ledger_transfer(l, 40, 1, 0, 15);
	CHECK_INT(ledger_open(l), 0);
	CHECK_INT(ledger_closed(l, closed), 1);
	CHECK_INT(closed[0].lent, 35);
	CHECK_INT(closed[0].since, 10);
	CHECK_INT(closed[0].last, 40);
	CHECK_INT(ledger_account(l, 0)->lent, 35);
	CHECK_INT(ledger_account(l, 0)->regained, 35);
	CHECK_INT(ledger_account(l, 1)->repaid, 35);
	ledger_free(l);
}

static void strangers_settle(void)
{
	struct ledger *l = make(4);

	ledger_transfer(l, 1, 0, 1, 10); /* 1 owes 0 */
	ledger_transfer(l, 2, 2, 3, 10); /* 3 owes 2 */
	ledger_transfer(l, 3, 1, 2, 10); /* 1 gives to 2: 1 is even, 2 is even, 3 owes 0 */
	CHECK_INT(ledger_balance(l, 1), 0);
	CHECK_INT(ledger_balance(l, 2), 0);
	CHECK_INT(ledger_open(l), 1);
	n_seen = 0;
	ledger_each(l, see, NULL);
	CHECK_INT(seen[0].lender, 0);
	CHECK_INT(seen[0].borrower, 3);
	CHECK_INT(seen[0].since, 1); /* as old as the original debt */
	/* 3 gives to 1, which has no claims and no debts: 1 owes 0 in place of 3. */
	ledger_transfer(l, 4, 3, 1, 4);
	CHECK_INT(ledger_balance(l, 3), -6);
	CHECK_INT(ledger_balance(l, 1), -4);
	CHECK_INT(ledger_balance(l, 0), 10);
	CHECK_INT(ledger_account(l, 3)->repaid, 4);
	CHECK_INT(ledger_account(l, 1)->borrowed, 10 + 4);
	/* More than all of its debts: the rest is a loan. */
	ledger_transfer(l, 5, 1, 2, 9);
	CHECK_INT(ledger_balance(l, 1), 5);
	CHECK_INT(ledger_account(l, 1)->lent, 5);
	ledger_free(l);
}

static void a_dropped_job_leaves_its_loans(void)
{
	struct ledger *l = make(3);
	int64_t debt, claim;

	ledger_transfer(l, 1, 0, 1, 10);
	ledger_drop(l, 2, 1, &debt, &claim);
	CHECK_INT(debt, 10);
	CHECK_INT(claim, 0);
	CHECK_INT(ledger_balance(l, 0), 10);
	CHECK_INT(ledger_balance(l, 1), 0);
	CHECK_INT(ledger_account(l, 0)->lost, 10);
	CHECK_INT(ledger_account(l, 1)->borrowed, 0);
	/* The lender may still be repaid, by the next borrower. */
	ledger_transfer(l, 3, 2, 0, 4);
	CHECK_INT(ledger_balance(l, 0), 6);
	CHECK_INT(ledger_balance(l, 2), 4); /* the pool owes it to 2 now */
	ledger_drop(l, 4, 0, &debt, &claim);
	CHECK_INT(claim, 6);
	CHECK_INT(ledger_open(l), 1);
	ledger_free(l);
}

static void restored_or_refused(void)
{
	struct ledger *l = make(3);

	CHECK_INT(ledger_restore(l, &(struct ledger_loan){0, 1, 7, 9, 1, 2, 0}), 0);
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){LEDGER_POOL, 1, 1, 1, 1, 2, 0}), 0);
	CHECK_INT(ledger_balance(l, 1), -8);
	CHECK_INT(
		ledger_restore(l, &(struct ledger_loan){0, 1, 7, 9, 1, 2, 0}), -EINVAL); /* twice */
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){1, 2, 7, 9, 1, 2, 0}),
		-EINVAL); /* 1 owes */
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){2, 0, 7, 9, 1, 2, 0}),
		-EINVAL); /* 0 lent */
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){0, 0, 7, 9, 1, 2, 0}), -EINVAL);
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){0, 9, 7, 9, 1, 2, 0}), -EINVAL);
	CHECK_INT(ledger_restore(l, &(struct ledger_loan){0, 2, 0, 9, 1, 2, 0}), -EINVAL);
	ledger_free(l);
}

static int64_t lost_by[4], lost_by_pool;
static void lose(uint32_t lender, int64_t tokens, void *arg)
{
	CHECK(tokens > 0);
	*(lender == LEDGER_POOL ? &lost_by_pool : &lost_by[lender]) += tokens;
}

/* Each claim on 2 loses a tenth per call; the debts of 3 stay. */
static void claims_age(void)
{
	struct ledger *l = make(4);
	struct ledger_loan closed[LEDGER_CLOSED];
	uint64_t tenth = LEDGER_ONE / 10;
	int64_t debt, claim, sum = 0;
	int calls = 0;

	ledger_transfer(l, 1, 0, 2, 1000);
	ledger_transfer(l, 2, 1, 2, 15);
	ledger_transfer(l, 3, 1, 3, 50);
	memset(lost_by, 0, sizeof(lost_by));
	lost_by_pool = 0;
	CHECK_INT(ledger_age(l, 5, 2, tenth, lose, NULL), 101); /* of 1015 */
	CHECK_INT(
		ledger_age(l, 6, 2, tenth, lose, NULL), 91); /* of 914, and the half from before */
	CHECK(lost_by[1] >= 2 && lost_by[1] <= 4);           /* of 15; 2.85 in the mean */
	CHECK_INT(lost_by[0], 192 - lost_by[1]);
	CHECK_INT(ledger_balance(l, 2), -(1015 - 192));
	CHECK_INT(ledger_balance(l, 1), 15 - lost_by[1] + 50);
	CHECK_INT(ledger_account(l, 0)->written_off, lost_by[0]);
	CHECK_INT(ledger_account(l, 1)->written_off, lost_by[1]);
	CHECK_INT(ledger_account(l, 2)->forgiven, 192);
	CHECK_INT(ledger_account(l, 3)->forgiven, 0);
	n_seen = 0;
	ledger_each(l, see, NULL);
	CHECK_INT(n_seen, 3);
	for (size_t i = 0; i < n_seen; i++) {
		CHECK_INT(seen[i].amount + seen[i].written_off, seen[i].lent);
		CHECK_INT(seen[i].last, seen[i].since); /* nothing was paid back */
	}
	/* Debts age to the last token, and a loan with nothing left is closed and reported. */
	while (ledger_balance(l, 2) < 0 && calls < 1000) {
		sum += ledger_age(l, 7, 2, tenth, lose, NULL);
		calls++;
	}
	CHECK(calls < 1000);
	CHECK_INT(sum, 1015 - 192);
	CHECK_INT(lost_by[0], 1000);
	CHECK_INT(ledger_open(l), 1);
	CHECK_INT(ledger_closed(l, closed), 2);
	CHECK_INT(closed[0].lender + closed[1].lender, 0 + 1);
	CHECK_INT(closed[0].written_off, closed[0].lent);
	CHECK_INT(closed[0].last, 7);
	/* Jobs that left: their debts and their claims age. */
	ledger_drop(l, 8, 3, &debt, &claim);
	CHECK_INT(ledger_age(l, 9, LEDGER_POOL, tenth, lose, NULL), 4);
	CHECK_INT(ledger_balance(l, 1), 46);
	ledger_transfer(l, 10, 0, 2, 100);
	ledger_drop(l, 11, 0, &debt, &claim);
	CHECK_INT(ledger_age(l, 12, 2, tenth, lose, NULL), 9);
	CHECK_INT(lost_by_pool, 9);
	CHECK_INT(ledger_balance(l, 2), -91);
	ledger_free(l);
}

static bool sides[JOBS][2];
static bool note(const struct ledger_loan *loan, void *arg)
{
	CHECK(loan->amount > 0 && loan->lent >= loan->amount && loan->since <= loan->last);
	if (loan->lender != LEDGER_POOL)
		sides[loan->lender][0] = true;
	if (loan->borrower != LEDGER_POOL)
		sides[loan->borrower][1] = true;
	return true;
}

/* Every lender with every borrower: 100 loans become 20, and no balance changes. */
static void many_loans_are_cleared(void)
{
	struct ledger_loan loan = {.amount = 5, .lent = 9};
	struct ledger *l = make(20);
	int64_t debt, claim;

	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t k = 10; k < 20; k++) {
			loan.lender = i;
			loan.borrower = k;
			loan.since = 1000 - i; /* the last lender's loans are the oldest */
			CHECK_INT(ledger_restore(l, &loan), 0);
		}
	ledger_drop(l, 1000, 0, &debt, &claim);  /* the pool lent 50, … */
	ledger_drop(l, 1000, 19, &debt, &claim); /* … and owes 50 */
	ledger_clear(l, 2000);
	CHECK(ledger_open(l) <= 20);
	for (uint32_t i = 1; i < 19; i++)
		CHECK_INT(ledger_balance(l, i), i < 10 ? 50 : -50);
	n_seen = 0;
	ledger_each(l, see, NULL);
	for (size_t i = 0; i < n_seen; i++) {
		CHECK(seen[i].lender != seen[i].borrower);
		if (seen[i].lender == 9)
			CHECK_INT(seen[i].since, 991);
	}
	ledger_free(l);
}

static void lose_balance(uint32_t lender, int64_t tokens, void *arg)
{
	if (lender != LEDGER_POOL)
		((int64_t *)arg)[lender] -= tokens;
}

static void balances_equal_the_transfers(void)
{
	struct ledger *l = make(JOBS);
	int64_t balance[JOBS] = {0}, debt, claim;
	struct rng rng;

	rng_init(&rng, 1, "ledger");
	for (weir_time now = 1; now <= 50000; now++) {
		uint32_t from = (uint32_t)rng_below(&rng, JOBS),
			 to = (uint32_t)rng_below(&rng, JOBS);
		int64_t amount = 1 + (int64_t)rng_below(&rng, now % 7 ? 20 : 2000);

		if (rng_below(&rng, 500) == 0) {
			ledger_drop(l, now, from, &debt, &claim);
			CHECK_INT(claim - debt, balance[from]);
			balance[from] = 0;
		}
		if (now % 10 == 0)
			balance[to] += ledger_age(l, now, to, rng_u64(&rng) & (LEDGER_ONE - 1),
				lose_balance, balance);
		if (now % 100 == 0)
			ledger_age(l, now, LEDGER_POOL, LEDGER_ONE / 8, lose_balance, balance);
		if (from == to)
			continue;
		ledger_transfer(l, now, from, to, amount);
		balance[from] += amount;
		balance[to] -= amount;
		if (now % 100)
			continue;
		if (now % 300 == 0) {
			ledger_clear(l, now);
			CHECK(ledger_open(l) <= JOBS + 1);
		}
		memset(sides, 0, sizeof(sides));
		ledger_each(l, note, NULL);
		for (uint32_t i = 0; i < JOBS; i++) {
			const struct ledger_account *a = ledger_account(l, i);

			CHECK_INT(ledger_balance(l, i), balance[i]);
			CHECK_INT(a->lent + a->repaid + a->forgiven - a->borrowed - a->regained -
					  a->written_off,
				balance[i]);
			CHECK(!(sides[i][0] && sides[i][1])); /* claims or debts, never both */
		}
	}
	CHECK_INT(ledger_untracked(l), 0);
	ledger_free(l);
}

int main(void)
{
	RUN(lent_and_paid_back);
	RUN(strangers_settle);
	RUN(a_dropped_job_leaves_its_loans);
	RUN(restored_or_refused);
	RUN(claims_age);
	RUN(many_loans_are_cleared);
	RUN(balances_equal_the_transfers);
	return 0;
}
