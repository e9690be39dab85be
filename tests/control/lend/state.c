/* SPDX-License-Identifier: BSD-3-Clause */
/* A controller that is paused, reconfigured, and restored with its loans. */
#include "control/lend/lend.h"
#include "base/rng.h"
#include "test.h"
#include <errno.h>

#define PERIOD (100 * WEIR_MS)

struct fake {
	struct lend_job jobs[2];
	size_t rules;
	double rate[2];
};

static int64_t fake_jobs(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	if (max >= 2)
		memcpy(list, ((struct fake *)driver)->jobs, 2 * sizeof(*list));
	return 2;
}

static int fake_apply(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	struct fake *f = driver;

	f->rules = n;
	for (size_t i = 0; i < n; i++)
		f->rate[rules[i].id - 1] = rules[i].active ? rules[i].rate : -1;
	return 0;
}

static const struct lend_driver_ops ops = {.name = "fake", .jobs = fake_jobs, .apply = fake_apply};

static struct fake f;
static weir_time now;

/* Job 1 uses all that it gets, job 2 has a demand of `little`. */
static void run_periods(struct lend *a, int periods, uint64_t little)
{
	for (int i = 0; i < periods; i++) {
		f.jobs[0].arrived += 200;
		f.jobs[0].served += 150;
		f.jobs[0].queued = 500;
		f.jobs[1].arrived += little;
		f.jobs[1].served += little;
		f.jobs[1].queued = little > 50 ? 500 : 0;
		CHECK_INT(lend_step(a, now, &ops, &f), 0);
		now += PERIOD;
	}
}

static struct lend *make(void)
{
	struct lend_config config = {.rate = 1000};
	struct lend *a;

	now = WEIR_SEC;
	f = (struct fake){.jobs = {{.id = 1, .weight = 1}, {.id = 2, .weight = 1}}};
	CHECK_INT(lend_new(&config, &a), 0);
	return a;
}

static void it_rests_and_goes_on(void)
{
	struct lend *a = make();
	struct lend_account before, after;
	struct lend_state state;

	run_periods(a, 20, 5);
	CHECK_INT(lend_account(a, 2, &before), 0);
	CHECK(before.record > 100); /* it lends */
	lend_rest(a);
	CHECK_INT(lend_account(a, 2, &after), 0);
	CHECK_INT(after.record, before.record);
	CHECK(!after.active && after.tokens == 0);
	/* Requests that arrived during the pause are not demand of the next period. */
	f.jobs[0].arrived += 1000000;
	f.jobs[1].arrived += 1000000;
	f.jobs[1].queued = f.jobs[0].queued = 0;
	CHECK_INT(lend_step(a, now += PERIOD, &ops, &f), 0);
	lend_state(a, &state);
	CHECK_INT(state.active, 0);
	now += PERIOD;
	run_periods(a, 1, 5);
	CHECK_INT(lend_account(a, 2, &after), 0);
	CHECK(after.active);
	CHECK(after.record >= before.record);
	lend_free(a);
}

static void told_otherwise(void)
{
	struct lend_config config = {.rate = 500, .period = 200 * WEIR_MS};
	struct lend *a = make();
	struct lend_state state;

	run_periods(a, 3, 100);
	CHECK_INT(lend_configure(a, &config), 0);
	run_periods(a, 1, 100);
	lend_state(a, &state);
	CHECK_INT(state.tokens, 100); /* 500 a second for 200 ms */
	CHECK_NEAR(f.rate[0] + f.rate[1], 500, 1e-9);
	config.learn = true;
	CHECK_INT(lend_configure(a, &config), 0);
	lend_set_rate(a, 640); /* as if learned */
	config.rate = 100;     /* another guess */
	CHECK_INT(lend_configure(a, &config), 0);
	lend_state(a, &state);
	CHECK_NEAR(state.rate, 640, 1e-9);
	config.rate = 0;
	CHECK_INT(lend_configure(a, &config), -EINVAL);
	config.rate = 100;
	config.learn = false;
	CHECK_INT(lend_configure(a, &config), 0);
	lend_state(a, &state);
	CHECK_NEAR(state.rate, 100, 1e-9);
	lend_free(a);
}

static void repaid_loans_are_kept(void)
{
	struct lend_loan paid[4], again[4], odd = {7, 1, 0, 9, 1, 2, 3};
	struct lend *a = make(), *b;
	struct lend_config config = {.rate = 1000};
	struct lend_account accounts[2];
	struct lend_state state;
	size_t n;

	run_periods(a, 5, 5);     /* job 2 lends, … */
	run_periods(a, 100, 200); /* … and is repaid */
	n = lend_paid(a, paid, 4);
	CHECK(n >= 1);
	CHECK_INT(paid[0].lender, 2);
	CHECK_INT(paid[0].borrower, 1);
	CHECK(paid[0].lent > 0 && paid[0].last > paid[0].since);
	for (size_t i = 0; i < 2; i++)
		CHECK_INT(lend_account(a, i + 1, &accounts[i]), 0);
	CHECK_INT(accounts[0].record, 0);
	lend_state(a, &state);
	CHECK_INT(lend_new(&config, &b), 0);
	CHECK_INT(lend_restore(b, &state, accounts, 2, NULL, 0), 0);
	lend_restore_paid(b, paid, n);
	CHECK_INT(lend_paid(b, again, 4), (int)n);
	CHECK_INT(memcmp(paid, again, n * sizeof(*paid)), 0);
	lend_restore_paid(b, &odd, 1); /* its lender is unknown: a job that left */
	CHECK_INT(lend_paid(b, again, 4), 1);
	CHECK_INT(again[0].lender, 0);
	CHECK_INT(again[0].borrower, 1);
	lend_free(a);
	lend_free(b);
}

/* ---- many jobs that all lend to each other */

#define MANY 1000

struct crowd {
	struct lend_job jobs[MANY];
};

static int64_t crowd_jobs(void *driver, weir_time at, struct lend_job *list, size_t max)
{
	if (max >= MANY)
		memcpy(list, ((struct crowd *)driver)->jobs, MANY * sizeof(*list));
	return MANY;
}

static int crowd_apply(void *driver, weir_time at, const struct lend_rule *rules, size_t n)
{
	return 0;
}

/* balance[0]: how many loans there are; balance[id]: lent less borrowed. */
static void add_loans(const struct lend *a, int64_t *balance)
{
	static struct lend_loan loans[8192];
	size_t n = lend_loans(a, loans, 8192);

	CHECK(n <= 8192);
	for (size_t i = 0; i < n; i++) {
		balance[0]++;
		balance[loans[i].lender] += loans[i].amount;
		balance[loans[i].borrower] -= loans[i].amount;
	}
}

/* For any pattern of lending, the number of loans stays bounded, and they always add up to the
 * records. */
static void loans_are_bounded(void)
{
	static const struct lend_driver_ops crowd_ops = {
		.name = "crowd", .jobs = crowd_jobs, .apply = crowd_apply};
	struct lend_config config = {.rate = 50 * MANY * 10};
	static struct crowd c;
	struct lend *a;
	struct rng rng;
	bool cleared = false;
	int64_t was = 0; /* half of the previous step's loans */

	rng_init(&rng, 1, "crowd");
	CHECK_INT(lend_new(&config, &a), 0);
	for (uint64_t i = 0; i < MANY; i++)
		c.jobs[i] = (struct lend_job){.id = i + 1, .weight = 1};
	for (int step = 0; step < 300; step++) {
		int64_t balance[MANY + 1] = {0};

		for (int i = 0; i < MANY; i++) {
			uint64_t n = rng_below(&rng, 3) ? rng_below(&rng, 40) : 500;

			c.jobs[i].arrived += 1 + n;
			c.jobs[i].served += 1 + n / 2;
			c.jobs[i].queued = n > 100 ? 50 : 0;
		}
		CHECK_INT(lend_step(a, step * PERIOD, &crowd_ops, &c), 0);
		add_loans(a, balance);
		CHECK(balance[0] <= 1024 + 4 * MANY);
		cleared |= balance[0] < was;
		was = balance[0] / 2;
		for (uint64_t i = 1; i <= MANY; i++) {
			struct lend_account of;

			CHECK_INT(lend_account(a, i, &of), 0);
			CHECK_INT(of.record, balance[i]);
		}
	}
	CHECK(cleared); /* loans were cleared */
	lend_free(a);
}

int main(void)
{
	RUN(it_rests_and_goes_on);
	RUN(told_otherwise);
	RUN(repaid_loans_are_kept);
	RUN(loans_are_bounded);
	return 0;
}
