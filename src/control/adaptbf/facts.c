/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/adaptbf/facts.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the description */

#define SELF(member)   FACT_AT(struct adaptbf_facts_self, member)
#define STATE(member)  FACT_AT(struct adaptbf_facts_self, state.member)
#define TOKENS(member) .unit = FACTS_TOKENS, STATE(member)
static const struct fact self_facts[] = {
	{"on", .place = FACTS_IN_STATE, .later = true, SELF(on)},
	{"tokens", .later = true, SELF(tokens)},
	{"learns", .later = true, SELF(learns)},
	{"unit", .later = true, SELF(unit)},
	{"period_s", .place = FACTS_IN_STATE, .later = true, .unit = FACTS_SECONDS, SELF(period)},
	{"tokens_off", .place = FACTS_IN_STATUS, SELF(tokens_off)},
	{"records_off", .place = FACTS_IN_STATUS, SELF(records_off)},
	{"rate", "rate", "Tokens a second, stated or learned.", STATE(rate)},
	{.series = "rate", .end = "rate_end", .unit = FACTS_RATE, SELF(iops)},
	{.series = "rate", .end = "rate_end", .unit = FACTS_TOKEN_RATE, SELF(tokens_s)},
	{"coefficient", .later = true, .unit = FACTS_PART, SELF(coefficient)},
	{"carry", STATE(carry)},
	{"tombstone", TOKENS(tombstone)},
	{"written_off", "written_off_tokens_total", "Debts of jobs that left.", NULL, NULL,
		"written_off", TOKENS(written_off)},
	{"forfeited", TOKENS(forfeited)},
	{"aged", "aged_tokens_total", "Claims that aged away, of all jobs.", NULL, NULL, "aged",
		.later = true, TOKENS(aged)},
	{"aged_left", .later = true, TOKENS(aged_left)},
	{"steps", "steps_total", "Periods.", NULL, NULL, "steps", STATE(steps)},
	{"period_tokens", "period_tokens", "Tokens of the last period, of all jobs.",
		TOKENS(tokens)},
	{"surplus", TOKENS(surplus)},
	{"reclaimed", TOKENS(reclaimed)},
	{"active", "active", "Jobs that had tokens.", STATE(active)},
	{"known", "known", "Jobs that are remembered.", STATE(known)},
	{"left_out", STATE(left_out)},
	{"step_s", "step_seconds", "Recent duration of a step.", .place = FACTS_IN_STATUS,
		.unit = FACTS_SECONDS, SELF(took)},
	{.end = "records_off", .unit = FACTS_TOKENS, SELF(worst_records_off)},
	{.end = "tokens_off", .unit = FACTS_TOKENS, SELF(worst_tokens_off)},
};

#define JOB(member)    FACT_AT(struct adaptbf_facts_job, account.member)
#define HAS(member)    .unit = FACTS_TOKENS, JOB(member)
#define LEDGER(member) .end = #member, HAS(ledger.member)
static const struct fact job_facts[] = {
	{"seen_ago_s", .place = FACTS_IN_STATE, .unit = FACTS_AGO, JOB(seen)},
	{"active", .later = true, JOB(active)},
	{"weight", JOB(weight)},
	{"tokens", "tokens", "Tokens of the last period.", "TOKENS", "tokens", HAS(tokens)},
	{.series = "record", .end = "record_end", HAS(record)},
	{"initial", "initial_tokens", "Tokens by its priority alone.", "BY WEIGHT", HAS(initial)},
	{"demand", "demand", "Demand that counts, in requests.", "DEMAND", "demand",
		.unit = FACTS_REQUESTS, JOB(demand)},
	{"record", "record", "Tokens that it is owed; below 0: that it owes.", "RECORD",
		HAS(record)},
	{.series = "given", .unit = FACTS_TOKENS, FACT_AT(struct adaptbf_facts_job, given)},
	{"lent", "lent_tokens_total", "Lent to others.", "LENT", LEDGER(lent)},
	{"borrowed", "borrowed_tokens_total", "Borrowed from others.", "BORROWED",
		LEDGER(borrowed)},
	{"repaid", "repaid_tokens_total", "Given back to others.", "REPAID", LEDGER(repaid)},
	{"regained", "regained_tokens_total", "Given back by others.", "REGAINED",
		LEDGER(regained)},
	{"lost", HAS(ledger.lost)},
	{"spared", HAS(ledger.spared)},
	{"written_off", "written_off_claims_total", "Its claims that aged away, tokens.",
		"WRITTEN OFF", .later = true, LEDGER(written_off)},
	{"forgiven", "forgiven_tokens_total", "Its debts that aged away.", "FORGIVEN",
		.later = true, LEDGER(forgiven)},
	{"remainder", JOB(remainder)},
	{"reclaim", JOB(reclaim)},
};

#define LOAN(member) FACT_AT(struct adaptbf_facts_loan, loan.member)
#define LOAN_FACTS(paid)                                                                           \
	{                                                                                          \
		{"amount", .title = "OPEN", LOAN(amount)}, {"lent", .title = "LENT", LOAN(lent)},  \
			{"written_off", .title = "WRITTEN OFF", .later = true, LOAN(written_off)}, \
			{"since_ago_s", .title = "SINCE", .unit = FACTS_AGO, LOAN(since)},         \
			{"last_ago_s", .unit = FACTS_AGO, LOAN(last)},                             \
			{.title = paid,                                                            \
				.unit = FACTS_AGO,                                                 \
				FACT_AT(struct adaptbf_facts_loan, paid_ago)},                     \
	}
static const struct fact open_facts[] = LOAN_FACTS("LAST PAID");
static const struct fact repaid_facts[] = LOAN_FACTS("CLOSED");

/* ---- filling */

size_t adaptbf_facts_audit(const struct lend *a, int64_t *ret_tokens, int64_t *ret_records)
{
	struct lend_state state;
	struct lend_account account;
	size_t n = 0;

	lend_state(a, &state);
	*ret_records = state.tombstone;
	*ret_tokens = state.active ? -state.tokens : 0;
	for (size_t i = 0; i < lend_places(a); i++) {
		if (!lend_account_at(a, i, &account))
			continue;
		*ret_records += account.record;
		*ret_tokens += account.tokens;
		n += !account.fresh;
	}
	return n;
}

static void finish_self(void *row)
{
	struct adaptbf_facts_self *s = row;
	struct facts f = {.self = s};
	bool bytes = adaptbf_facts_unit(&f) == WEIR_UNIT_BYTES;

	s->iops = bytes ? NAN : s->state.rate;
	s->tokens_s = bytes ? s->state.rate : NAN;
	s->worst_tokens_off = s->tokens_off;
	s->worst_records_off = s->records_off;
}

static void finish_job(void *row)
{
	struct adaptbf_facts_job *j = row;
	const struct ledger_account *l = &j->account.ledger;

	j->given = l->lent + l->repaid + l->forgiven - l->borrowed - l->regained - l->written_off;
}

static void finish_loan(void *row)
{
	struct adaptbf_facts_loan *l = row;
	bool paid = l->loan.amount == 0 || l->loan.amount + l->loan.written_off < l->loan.lent;

	l->paid_ago = paid ? (double)l->loan.last : NAN;
}

static const char *name_of(
	const struct adaptbf_facts_of *of, const struct facts_site *site, uint64_t id)
{
	const char *name = id ? jobnames_name(of->names, id) : NULL;

	return name ? arena_text(site->memory, name) : NULL;
}

/* Fill the job of tenant i, or, for a restart, of place i. Return false if it is not listed. */
static bool fill_job(const struct adaptbf_facts_of *of, const struct facts_site *site, size_t i,
	struct adaptbf_facts_job *j)
{
	bool known = of->names ? lend_account_at(of->adaptbf, i, &j->account)
			       : lend_account(of->adaptbf, of->ids[i], &j->account) == 0;

	if (!known)
		j->account = (struct lend_account){.fresh = true};
	if (j->account.fresh && !of->all)
		return false;
	j->row.tenant = (uint32_t)i;
	j->row.key[0] = of->names ? name_of(of, site, j->account.id) : site->path(site->arg, i);
	j->account.seen = of->now - j->account.seen;
	finish_job(j);
	return j->row.key[0] != NULL;
}

static void fill_jobs(const struct adaptbf_facts_of *of, const struct facts_site *site, size_t room,
	struct facts_rows *to)
{
	size_t all = of->names ? lend_places(of->adaptbf) : of->n_ids;

	to->rows = arena_take(site->memory, room + 1, sizeof(struct adaptbf_facts_job));
	for (size_t i = 0; to->rows && to->n < room && i < all; i++)
		to->n += fill_job(of, site, i, (struct adaptbf_facts_job *)to->rows + to->n);
}

static void fill_loans(const struct adaptbf_facts_of *of, const struct facts_site *site,
	const struct lend_loan *loans, size_t n, struct facts_rows *to)
{
	struct adaptbf_facts_loan *l = loans ? arena_take(site->memory, n + 1, sizeof(*l)) : NULL;

	to->rows = l;
	for (; l && to->n < n; to->n++, l++, loans++) {
		l->row.key[0] = name_of(of, site, loans->lender);
		l->row.key[1] = name_of(of, site, loans->borrower);
		l->loan = *loans;
		l->loan.since = of->now - loans->since;
		l->loan.last = of->now - loans->last;
		finish_loan(l);
	}
}

/* Fill the loans, which only a restart needs. */
static void fill_ledger(
	const struct adaptbf_facts_of *of, const struct facts_site *site, struct facts *to)
{
	size_t n = lend_loans(of->adaptbf, NULL, 0);
	struct lend_loan *open = arena_take(site->memory, n + 1, sizeof(*open));
	struct lend_loan *paid = arena_take(site->memory, LEDGER_CLOSED, sizeof(*paid));

	if (open)
		lend_loans(of->adaptbf, open, n);
	fill_loans(of, site, open, n, &to->tables[ADAPTBF_FACTS_LOANS]);
	n = paid ? lend_paid(of->adaptbf, paid, LEDGER_CLOSED) : 0;
	fill_loans(of, site, paid, n, &to->tables[ADAPTBF_FACTS_REPAID]);
}

static void fill(const void *arg, const struct facts_site *site, struct facts *ret)
{
	const struct adaptbf_facts_of *of = arg;
	struct adaptbf_facts_self *s = arena_take(site->memory, 1, sizeof(*s));
	size_t jobs;

	if (!s)
		return;
	*s = (struct adaptbf_facts_self){.on = of->on,
		.learns = of->learns,
		.tokens = of->hold ? "hold" : "first",
		.unit = of->unit == WEIR_UNIT_BYTES ? "bytes" : "requests",
		.period = of->period,
		.took = of->took};
	lend_state(of->adaptbf, &s->state);
	s->coefficient = (double)s->state.coefficient / LEND_ONE;
	jobs = adaptbf_facts_audit(of->adaptbf, &s->tokens_off, &s->records_off);
	finish_self(s);
	s->worst_tokens_off = of->tokens_off;
	s->worst_records_off = of->records_off;
	ret->kind = &adaptbf_facts;
	ret->self = s;
	fill_jobs(of, site, of->all ? of->n_ids : jobs, &ret->tables[ADAPTBF_FACTS_JOBS]);
	if (of->names)
		fill_ledger(of, site, ret);
}

/* ---- the way back */

static bool number(struct jobnames *names, const char *name, uint64_t *ret)
{
	*ret = name ? jobnames_add(names, name) : 0;
	return !name || *ret;
}

/* Restore the accounts, with times on the clock of `then`. Return false if out of memory. */
static bool restore_jobs(const struct facts_rows *from, weir_time then, struct jobnames *names,
	struct lend_account *to)
{
	const struct adaptbf_facts_job *j = from->rows;
	bool ok = true;

	for (size_t i = 0; ok && i < from->n; i++, j++, to++) {
		*to = j->account;
		to->seen = then - j->account.seen;
		ok = number(names, j->row.key[0], &to->id);
	}
	return ok;
}

static bool restore_loans(
	const struct facts_rows *from, weir_time then, struct jobnames *names, struct lend_loan *to)
{
	const struct adaptbf_facts_loan *l = from->rows;
	bool ok = true;

	for (size_t i = 0; ok && i < from->n; i++, l++, to++) {
		*to = l->loan;
		to->since = then - l->loan.since;
		to->last = then - l->loan.last;
		ok = number(names, l->row.key[0], &to->lender) &&
		     number(names, l->row.key[1], &to->borrower);
	}
	return ok;
}

int adaptbf_facts_restore(
	const struct facts *from, weir_time then, struct jobnames *names, struct lend **ret)
{
	const struct adaptbf_facts_self *s = from->self;
	const struct facts_rows *jobs = &from->tables[ADAPTBF_FACTS_JOBS],
				*open = &from->tables[ADAPTBF_FACTS_LOANS],
				*repaid = &from->tables[ADAPTBF_FACTS_REPAID];
	struct lend_config config = {.rate = s->state.rate, .learn = true};
	struct lend_account *accounts = calloc(jobs->n + 1, sizeof(*accounts));
	struct lend_loan *loans = calloc(open->n + repaid->n + 1, sizeof(*loans));
	struct lend *a = NULL;
	int rc = accounts && loans && restore_jobs(jobs, then, names, accounts) &&
				 restore_loans(open, then, names, loans) &&
				 restore_loans(repaid, then, names, loans + open->n)
			 ? lend_new(&config, &a)
			 : -ENOMEM;

	if (rc == 0)
		rc = lend_restore(a, &s->state, accounts, jobs->n, loans, open->n);
	if (rc == 0) {
		lend_restore_paid(a, loans + open->n, repaid->n);
		*ret = a;
	} else {
		lend_free(a);
	}
	free(accounts);
	free(loans);
	return rc;
}

enum weir_unit adaptbf_facts_unit(const struct facts *from)
{
	const struct adaptbf_facts_self *s = from->self;

	/* Older state has no unit: requests. */
	return s->unit && strcmp(s->unit, "bytes") == 0 ? WEIR_UNIT_BYTES : WEIR_UNIT_REQUESTS;
}

/* ---- a sentence */

static void head(const void *row, char *text, size_t size)
{
	const struct adaptbf_facts_self *s = row;
	struct facts f = {.self = (void *)(uintptr_t)s};
	enum weir_unit unit = adaptbf_facts_unit(&f);
	char rate[32], period[32];
	int n;

	weir_units_show_rate((struct weir_rate){round(s->state.rate * lend_token_size(unit)), unit},
		rate, sizeof(rate));
	weir_units_show_time(s->period, period, sizeof(period));
	if (s->on)
		n = snprintf(text, size, "%s (%s), tokens %s%s, every %s; %u of %u jobs active; ",
			rate, s->learns ? "learned" : "stated",
			unit == WEIR_UNIT_BYTES ? "of 4 KiB " : "", s->tokens ? s->tokens : "-",
			period, (unsigned)s->state.active, (unsigned)s->state.known);
	else
		n = snprintf(text, size, "AdapTBF rests; ");
	if (n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n,
			"%lld tokens written off by age, %lld of tenants that left",
			(long long)s->state.aged, (long long)s->state.written_off);
}

#define LOAN_TABLE(list, array)                                                                    \
	.name = list, .keys = {{"lender", NULL, "LENDER"}, {"borrower", NULL, "BORROWER"}},        \
	FACTS_OF(struct adaptbf_facts_loan, array), .place = FACTS_IN_STATE, .finish = finish_loan

const struct facts_kind adaptbf_facts = {
	.name = "adaptbf",
	.label = "AdapTBF",
	.self = {FACTS_OF(struct adaptbf_facts_self, self_facts), .finish = finish_self},
	.tables = {[ADAPTBF_FACTS_JOBS] = {.name = "jobs",
			   .keys = {{"tenant", "tenant", "TENANT"}},
			   .tenants = true,
			   FACTS_OF(struct adaptbf_facts_job, job_facts),
			   .finish = finish_job},
		[ADAPTBF_FACTS_LOANS] = {LOAN_TABLE("loans", open_facts)},
		[ADAPTBF_FACTS_REPAID] = {LOAN_TABLE("repaid", repaid_facts), .shown = 20}},
	.fill = fill,
	.head = head,
};
