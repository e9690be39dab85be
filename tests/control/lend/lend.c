/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller with a fake driver, which returns the counters that the test sets and records
 * the rules. */
#include "control/lend/lend.h"
#include "control/remainder.h"
#include "test.h"
#include <errno.h>

#define MOST 16
#define MS   WEIR_MS

struct fake {
	struct lend_job jobs[MOST];
	size_t n;
	struct lend_totals totals;
	struct lend_rule rules[MOST];
	size_t n_rules;
	int fail;
	bool busy; /* the server is saturated, and serves 1000 a second */
};

static int64_t fake_jobs(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	struct fake *f = driver;

	if (f->fail)
		return f->fail;
	if (f->n && f->n <= max)
		memcpy(list, f->jobs, f->n * sizeof(*list));
	return (int64_t)f->n;
}

static int fake_totals(void *driver, weir_time now, struct lend_totals *ret)
{
	struct fake *f = driver;

	if (f->busy) {
		f->totals.full += 100 * MS;
		f->totals.served += 100;
	}
	*ret = f->totals;
	return 0;
}

static int fake_apply(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	struct fake *f = driver;

	CHECK(n <= MOST);
	if (n)
		memcpy(f->rules, rules, n * sizeof(*rules));
	f->n_rules = n;
	return 0;
}

static const struct lend_driver_ops fake_ops = {
	.name = "fake", .jobs = fake_jobs, .totals = fake_totals, .apply = fake_apply};

static struct lend *make(double rate, bool learn)
{
	struct lend_config config = {.rate = rate, .learn = learn, .forget = 10 * WEIR_SEC};
	struct lend *a;

	CHECK_INT(lend_new(&config, &a), 0);
	return a;
}

static void add(struct fake *f, uint64_t id, uint32_t weight)
{
	f->jobs[f->n++] = (struct lend_job){.id = id, .weight = weight};
}

static const struct lend_rule *rule(const struct fake *f, uint64_t id)
{
	for (size_t i = 0; i < f->n_rules; i++) {
		if (f->rules[i].id == id)
			return &f->rules[i];
	}
	return NULL;
}

/* Advance job i by one period: `arrived` new requests, `served` completed, `queued` waiting. */
static void tell(struct fake *f, size_t i, uint64_t arrived, uint64_t served, int64_t queued)
{
	f->jobs[i].arrived += arrived;
	f->jobs[i].served += served;
	f->jobs[i].queued = queued;
}

static struct lend_account account(const struct lend *a, uint64_t id)
{
	struct lend_account x;

	CHECK_INT(lend_account(a, id, &x), 0);
	return x;
}

static void impossible_arguments_are_refused(void)
{
	struct lend *a;

	CHECK_INT(lend_new(&(struct lend_config){.rate = 0}, &a), -EINVAL);
	CHECK_INT(lend_new(&(struct lend_config){.rate = NAN}, &a), -EINVAL);
	CHECK_INT(lend_new(&(struct lend_config){.rate = INFINITY}, &a), -EINVAL);
	CHECK_INT(lend_new(&(struct lend_config){.rate = 1, .period = -1}, &a), -EINVAL);
	CHECK_INT(lend_new(&(struct lend_config){.rate = 1, .headroom = -1}, &a), -EINVAL);
}

static void active_jobs_have_rules(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};
	struct lend_state s;

	add(&f, 7, 1);
	add(&f, 9, 3);
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	CHECK_INT(f.n_rules, 0); /* no job has demand */
	tell(&f, 0, 500, 10, 490);
	tell(&f, 1, 500, 10, 490);
	CHECK_INT(lend_step(a, 100 * MS, &fake_ops, &f), 0);
	CHECK_INT(f.n_rules, 2);
	CHECK_INT(rule(&f, 7)->tokens, 25);
	CHECK_INT(rule(&f, 9)->tokens, 75);
	CHECK_NEAR(rule(&f, 9)->rate, 750, 1e-9);
	/* A job falls silent: its rule stops, once, and the other job gets all tokens. */
	tell(&f, 0, 25, 25, 490);
	tell(&f, 1, 0, 490, 0);
	CHECK_INT(lend_step(a, 200 * MS, &fake_ops, &f), 0);
	CHECK_INT(f.n_rules, 2);
	CHECK(!rule(&f, 9)->active);
	CHECK_INT(rule(&f, 7)->tokens, 100);
	CHECK_INT(lend_step(a, 300 * MS, &fake_ops, &f), 0);
	CHECK_INT(f.n_rules, 1);
	lend_state(a, &s);
	CHECK_INT(s.active, 1);
	CHECK_INT(s.known, 2);
	CHECK_INT(s.tokens, 100);
	/* The step returns the driver's error; the next step goes on. */
	f.fail = -EIO;
	CHECK_INT(lend_step(a, 400 * MS, &fake_ops, &f), -EIO);
	f.fail = 0;
	CHECK_INT(lend_step(a, 500 * MS, &fake_ops, &f), 0);
	lend_free(a);
}

static void in_order_where_asked(void)
{
	struct lend_driver_ops ops = fake_ops;
	struct lend *a = make(1000, false);
	struct fake f = {0};

	ops.ordered = true;
	for (uint64_t i = 0; i < 6; i++) {
		add(&f, 10 - i, i % 3 + 1);
		f.jobs[i].queued = 5;
	}
	CHECK_INT(lend_step(a, 0, &ops, &f), 0);
	CHECK_INT(f.n_rules, 6);
	for (size_t i = 1; i < f.n_rules; i++)
		CHECK(f.rules[i - 1].weight > f.rules[i].weight ||
			(f.rules[i - 1].weight == f.rules[i].weight &&
				f.rules[i - 1].id < f.rules[i].id));
	lend_free(a);
}

static void without_jobs(void)
{
	struct lend_driver_ops ops = fake_ops;
	struct lend_state s;

	for (int ordered = 0; ordered < 2; ordered++) {
		struct lend *a = make(1000, false);
		struct fake f = {.n_rules = 1};

		ops.ordered = ordered;
		CHECK_INT(lend_step(a, 0, &ops, &f), 0);
		CHECK_INT(f.n_rules, 0);
		lend_state(a, &s);
		CHECK_INT(s.active, 0);
		lend_free(a);
	}
}

static void demand_does_not_count_the_queue_depth(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};
	uint64_t d8, d512;

	add(&f, 1, 1);
	add(&f, 2, 1);
	add(&f, 3, 2); /* lends */
	f.jobs[0].queued = 8;
	f.jobs[1].queued = 512;
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	for (int i = 1; i <= 50; i++) {
		for (size_t k = 0; k < 2; k++) /* closed loops: what was served comes again */
			tell(&f, k, (uint64_t)account(a, k + 1).tokens,
				(uint64_t)account(a, k + 1).tokens, k ? 512 : 8);
		tell(&f, 2, 10, 10, 0);
		CHECK_INT(lend_step(a, i * 100 * MS, &fake_ops, &f), 0);
		d8 = account(a, 1).demand;
		d512 = account(a, 2).demand;
		CHECK(d8 > 25 && d512 <= d8 + 2 && d8 <= d512 + 2); /* within a token or two */
		CHECK(llabs(account(a, 1).tokens - account(a, 2).tokens) <= 1);
	}
	CHECK(account(a, 1).tokens > 35); /* most of the surplus of 40 */
	CHECK(account(a, 3).record > 0);
	lend_free(a);
}

static void a_job_with_enough_tokens_reports_its_arrivals(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};

	add(&f, 1, 1);
	add(&f, 2, 1);
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	tell(&f, 0, 10, 9, 1);
	tell(&f, 1, 300, 20, 280);
	CHECK_INT(lend_step(a, 100 * MS, &fake_ops, &f), 0);
	/* The first report of its queue: it had no tokens yet, so tokens may not be the reason
	 * to wait. */
	tell(&f, 0, 10, 10, 1); /* the request waits for the server, not for tokens */
	tell(&f, 1, 50, 50, 280);
	CHECK_INT(lend_step(a, 200 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 1).demand, 11);
	CHECK_INT(account(a, 2).demand, 100 + 2 * (account(a, 2).demand > 100));
	/* The job is held by its own max: more tokens would be of no use. */
	f.jobs[1].most = 155;
	tell(&f, 0, 10, 10, 0);
	tell(&f, 1, 15, 15, 280);
	CHECK_INT(lend_step(a, 300 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 2).demand, 16);
	lend_free(a);
}

static void a_server_without_known_queues(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};

	add(&f, 1, 1);
	add(&f, 2, 1);
	f.jobs[0].queued = f.jobs[1].queued = LEND_UNKNOWN;
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	for (int i = 1; i < 20; i++) {
		uint64_t all = i > 1 ? (uint64_t)account(a, 1).tokens : 30;

		tell(&f, 0, all, all, LEND_UNKNOWN); /* all tokens that it has */
		tell(&f, 1, 5, 5, LEND_UNKNOWN);
		CHECK_INT(lend_step(a, i * 100 * MS, &fake_ops, &f), 0);
	}
	CHECK(account(a, 1).tokens > 80);
	CHECK(account(a, 2).record > 500);
	lend_free(a);
}

static void counters_that_fall_began_again(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};

	add(&f, 1, 1);
	f.jobs[0].arrived = f.jobs[0].served = 1000000; /* counted before the controller started */
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	CHECK_INT(f.n_rules, 0);
	f.jobs[0].arrived = f.jobs[0].served = 12;
	CHECK_INT(lend_step(a, 100 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 1).demand, 12);
	/* A job that is added later reports all arrivals since its start. */
	add(&f, 2, 1);
	f.jobs[1].arrived = f.jobs[1].served = 20;
	f.jobs[0].arrived = f.jobs[0].served = 24;
	CHECK_INT(lend_step(a, 200 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 2).demand, 20);
	lend_free(a);
}

static void next_period(struct lend *a, struct fake *f, weir_time *now)
{
	*now += 100 * MS;
	CHECK_INT(lend_step(a, *now, &fake_ops, f), 0);
}

/* For so many periods, job 1 has little demand and job 2, which has this weight, uses all that
 * it gets. */
static void lend(struct lend *a, struct fake *f, uint32_t weight, int periods, weir_time *now)
{
	add(f, 1, 1);
	add(f, 2, weight);
	f->jobs[1].queued = 100;
	CHECK_INT(lend_step(a, 0, &fake_ops, f), 0);
	for (int i = 0; i < periods; i++) {
		tell(f, 0, 5, 5, 0);
		tell(f, 1, (uint64_t)account(a, 2).tokens, (uint64_t)account(a, 2).tokens, 100);
		next_period(a, f, now);
	}
}

static struct lend_loan loans[MOST];
static size_t n_loans;

static void a_job_that_leaves_is_written_off(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};
	struct lend_state s;
	struct lend_account x;
	weir_time now = 0;
	int64_t lent;

	lend(a, &f, 1, 10, &now);
	lent = account(a, 1).record;
	CHECK(lent > 300);
	CHECK_INT(account(a, 2).record, -lent);
	n_loans = lend_loans(a, loans, MOST);
	CHECK_INT(n_loans, 1);
	CHECK_INT(loans[0].lender, 1);
	CHECK_INT(loans[0].borrower, 2);
	CHECK_INT(loans[0].amount, lent);
	/* The borrower leaves; nothing happens for a while. */
	f.n = 1;
	for (int i = 0; i < 90; i++) {
		tell(&f, 0, 5, 5, 0);
		next_period(a, &f, &now);
	}
	CHECK_INT(account(a, 2).record, -lent);
	for (int i = 0; i < 20; i++) {
		tell(&f, 0, 5, 5, 0);
		next_period(a, &f, &now);
	}
	CHECK_INT(lend_account(a, 2, &x), -ENOENT);
	lend_state(a, &s);
	CHECK_INT(s.tombstone, -lent);
	CHECK_INT(s.written_off, lent);
	CHECK_INT(account(a, 1).record, lent);
	CHECK_INT(account(a, 1).ledger.lost, lent);
	n_loans = lend_loans(a, loans, MOST);
	CHECK_INT(loans[0].borrower, 0);
	/* The borrower returns, without tokens or record. */
	f.n = 2;
	CHECK_INT(lend_step(a, now + 100 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 2).record, 0);
	lend_free(a);
}

static void an_idle_job_that_is_listed_is_not_new(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};
	struct lend_state s;
	weir_time now = 0;

	lend(a, &f, 1, 10, &now);
	CHECK(account(a, 1).record > 300);
	for (int i = 0; i < 150; i++) { /* 15 s without a request; the job is kept */
		tell(&f, 0, 0, 0, 0);
		tell(&f, 1, 10, 10, 0);
		next_period(a, &f, &now);
		CHECK(!account(a, 1).active);
	}
	CHECK_INT(account(a, 1).record, 0);
	CHECK_INT(account(a, 1).ledger.lent, 0);
	lend_state(a, &s);
	CHECK(s.forfeited > 300);
	CHECK_INT(s.tombstone + account(a, 2).record, 0);
	tell(&f, 0, 3, 3, 0);
	CHECK_INT(lend_step(a, now + 100 * MS, &fake_ops, &f), 0);
	CHECK_INT(account(a, 1).demand, 3);
	lend_free(a);
}

static void a_busy_lender_is_paid_back_in_time(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};
	weir_time now = 0;
	double bound;
	int periods = 0;

	lend(a, &f, 3, 100, &now);
	CHECK(account(a, 1).record > 1500);
	/* The lender is busy from now on. Of the borrower's 75 tokens it gets back an eighth or
	 * more each period. */
	bound = lend_bound(
		&(struct lend_config){.period = 100 * MS}, (double)account(a, 1).record, 0.25, 75);
	for (; account(a, 1).record > 0 && periods < 1000; periods++) {
		for (size_t k = 0; k < 2; k++)
			tell(&f, k, (uint64_t)account(a, k + 1).tokens,
				(uint64_t)account(a, k + 1).tokens, 50);
		next_period(a, &f, &now);
	}
	if (!(periods <= bound))
		FAIL("%d periods, bound %g", periods, bound);
	CHECK_INT(account(a, 1).record, 0);
	CHECK_INT(account(a, 2).record, 0);
	CHECK_INT(account(a, 1).ledger.regained, account(a, 1).ledger.lent);
	CHECK_INT(lend_paid(a, loans, MOST), 1);
	CHECK_INT(loans[0].lender, 1);
	CHECK_INT(loans[0].last, now);
	lend_free(a);
}

/* A borrower that has waiting requests, of which few are served beside large requests of other
 * jobs, still wants its share: it keeps its floor, and lends nothing of it. */
static void a_borrower_that_is_not_served_keeps_its_floor(void)
{
	for (int k = 0; k < 2; k++) { /* job 2 has no waiting request, and lends */
		struct lend_config config = {.rate = 1000, .debt = LEND_DEBT};
		struct fake f = {0};
		struct lend *a;
		weir_time now = 0;

		CHECK_INT(lend_new(&config, &a), 0);
		lend(a, &f, 1, 100, &now);
		for (int i = 0; i < 20; i++) {
			uint64_t had = (uint64_t)account(a, 1).tokens;

			tell(&f, 0, had, had, 50);
			tell(&f, 1, 4, 4, k ? 0 : 12);
			next_period(a, &f, &now);
			CHECK(account(a, 2).record < 0);
			if (i > 0 && k == 0)
				CHECK(account(a, 2).demand >= 50 && account(a, 2).tokens >= 25);
			else if (i > 0)
				CHECK(account(a, 2).demand == 4 && account(a, 2).tokens < 25);
		}
		lend_free(a);
	}
}

static void goes_on_where_it_stopped(void)
{
	struct lend *a = make(1003, true), *b = make(500, true);
	struct fake f = {0};
	struct lend_state s, t;
	struct lend_account accounts[MOST];
	size_t n = 0;
	weir_time now = 0;

	lend(a, &f, 1, 10, &now);
	lend_state(a, &s);
	for (size_t i = 0; i < lend_places(a); i++)
		n += lend_account_at(a, i, &accounts[n]);
	CHECK_INT(n, 2);
	n_loans = lend_loans(a, loans, MOST);
	CHECK_INT(lend_restore(b, &s, accounts, n, loans, n_loans), 0);
	lend_state(b, &t);
	CHECK_NEAR(t.rate, s.rate, 0);
	CHECK_INT(t.carry, s.carry);
	CHECK_INT(account(b, 1).record, account(a, 1).record);
	CHECK_INT(account(b, 1).ledger.lent, account(a, 1).ledger.lent);
	f.jobs[0].queued = 10;
	CHECK_INT(lend_step(b, 0, &fake_ops, &f), 0); /* earlier counters are not arrivals */
	CHECK_INT(account(b, 1).demand + account(b, 2).demand > 0, 1);
	CHECK_INT(account(b, 1).record + account(b, 2).record, 0);
	CHECK_INT(lend_restore(b, &s, accounts, n, loans, n_loans),
		-EINVAL); /* after the first step */
	lend_free(b);
	/* State that does not add up is refused. */
	b = make(500, false);
	accounts[0].record++;
	CHECK_INT(lend_restore(b, &s, accounts, n, loans, n_loans), -EINVAL);
	lend_free(b);
	b = make(500, false);
	accounts[0].record--;
	accounts[1].id = accounts[0].id;
	CHECK_INT(lend_restore(b, &s, accounts, n, loans, n_loans), -EINVAL);
	lend_free(b);
	b = make(500, false);
	s.tombstone = 1;
	CHECK_INT(lend_restore(b, &s, NULL, 0, NULL, 0), -EINVAL);
	lend_free(b);
	lend_free(a);
}

static void no_more_jobs_than_it_remembers(void)
{
	struct lend_config config = {.rate = 1000, .jobs_max = 3};
	struct lend *a;
	struct fake f = {0};
	struct lend_state s;

	CHECK_INT(lend_new(&config, &a), 0);
	for (uint64_t i = 1; i <= 9; i++) { /* the first four are idle and get no account */
		add(&f, i, 1);
		f.jobs[i - 1].queued = i > 4 ? 10 : 0;
	}
	CHECK_INT(lend_step(a, 0, &fake_ops, &f), 0);
	lend_state(a, &s);
	CHECK_INT(s.known, 3);
	CHECK_INT(s.left_out, 2);
	CHECK_INT(f.n_rules, 3);
	lend_free(a);
}

/* Return the learned rate after so many periods of a server of 1000 a second, which serves at
 * most what its tokens allow. */
static double learned(double guess, int periods)
{
	struct lend *a = make(guess, true);
	struct fake f = {0};
	struct lend_state s;

	add(&f, 1, 1);
	for (int i = 0; i <= periods; i++) {
		int64_t tokens = 0;
		uint64_t served;

		lend_state(a, &s);
		tokens = s.tokens;
		served = tokens < 100 ? (uint64_t)tokens : 100;
		tell(&f, 0, served, served, 500);
		f.totals.served += tokens >= 100 ? served : 0;
		f.totals.full += tokens >= 100 ? 100 * MS : 0;
		CHECK_INT(lend_step(a, i * 100 * MS, &fake_ops, &f), 0);
	}
	lend_state(a, &s);
	lend_free(a);
	return s.rate;
}

static void the_rate_is_learned(void)
{
	for (int periods = 50; periods <= 300; periods += 250) { /* after 5 s, and from then on */
		CHECK_NEAR(learned(700, periods), 1000, 0.05);
		CHECK_NEAR(learned(1300, periods), 1000, 0.05);
		CHECK_NEAR(learned(10, periods), 1000, 0.05);
		CHECK_NEAR(learned(20000, periods), 1000, 0.05);
	}
}

/* A job waits while the server is idle: for tokens, for a limit above it, or for its own max,
 * which may be too high to matter. The learned rate grows only in the first case, up to twice
 * the usable rate. */
static void a_guess_grows_for_tokens_only(void)
{
	for (int k = 0; k < 4; k++) {
		struct lend *a = make(100, true);
		struct fake f = {0};
		struct lend_state s;

		add(&f, 1, 1);
		f.jobs[0].above = k == 1;
		f.jobs[0].most = k == 2 ? 50 : k == 3 ? 1e6 : 0;
		for (int i = 0; i <= 100; i++) {
			tell(&f, 0, 5, 5, 1000);
			CHECK_INT(lend_step(a, i * 100 * MS, &fake_ops, &f), 0);
		}
		lend_state(a, &s);
		if (k == 1 || k == 2)
			CHECK_NEAR(s.rate, 100, 1e-9);
		else
			CHECK(s.rate > 9000 && s.rate <= 2 * 10050 * 1.2);
		lend_free(a);
	}
}

/* A job that tokens held counts as waiting, even if its queue is empty at every report: a closed
 * loop of few requests. */
static void held_by_tokens_it_waits(void)
{
	struct lend *a = make(1000, false);
	struct fake f = {0};

	add(&f, 1, 1);
	add(&f, 2, 1);
	for (int i = 0; i < 10; i++) {
		tell(&f, 0, 20, 20, 0);
		tell(&f, 1, 20, 20, 0);
		f.jobs[1].held += i < 5 ? 0 : 30 * MS;
		CHECK_INT(lend_step(a, i * 100 * MS, &fake_ops, &f), 0);
		if (i > 0)
			CHECK_INT(account(a, 1).demand, 20);
		if (i > 0 && i < 5)
			CHECK_INT(account(a, 2).demand, 20);
		else if (i >= 5)
			CHECK(account(a, 2).demand >= 100);
	}
	lend_free(a);
}

/* Job 1 uses a fifth of its tokens; job 2 may use the rest, if tokens are the bottleneck and the
 * rate is learned. */
static void unused_tokens_are_passed_on(void)
{
	for (int k = 0; k < 4; k++) {
		bool learn = k & 1, hold = k & 2;
		struct lend_config config = {.rate = 1000, .learn = learn, .hold = hold};
		const struct lend_rule *one, *two;
		struct lend *a;
		struct fake f = {.busy = true};
		weir_time now = 0;

		CHECK_INT(lend_new(&config, &a), 0);
		lend(a, &f, 1, 20, &now);
		one = rule(&f, 1);
		two = rule(&f, 2);
		CHECK(one->tokens > 5); /* equation 7 gives it part of the surplus for its demand */
		CHECK_INT(one->tokens + two->tokens, learn ? 105 : 100);
		CHECK_NEAR(one->rate, 10 * (double)one->tokens, 1e-9);
		CHECK_NEAR(two->rate,
			10 * (double)(two->tokens + (learn && hold ? one->tokens - 5 : 0)), 1e-9);
		lend_free(a);
	}
}

int main(void)
{
	RUN(impossible_arguments_are_refused);
	RUN(active_jobs_have_rules);
	RUN(in_order_where_asked);
	RUN(without_jobs);
	RUN(demand_does_not_count_the_queue_depth);
	RUN(a_job_with_enough_tokens_reports_its_arrivals);
	RUN(a_server_without_known_queues);
	RUN(counters_that_fall_began_again);
	RUN(a_job_that_leaves_is_written_off);
	RUN(an_idle_job_that_is_listed_is_not_new);
	RUN(a_busy_lender_is_paid_back_in_time);
	RUN(a_borrower_that_is_not_served_keeps_its_floor);
	RUN(goes_on_where_it_stopped);
	RUN(no_more_jobs_than_it_remembers);
	RUN(the_rate_is_learned);
	RUN(a_guess_grows_for_tokens_only);
	RUN(held_by_tokens_it_waits);
	RUN(unused_tokens_are_passed_on);
	return 0;
}
