/* SPDX-License-Identifier: BSD-3-Clause */
/* facts-json: all facts that a restart needs there and back; and what is refused. */
#include "control/adaptbf/facts.h"
#include "serve/show/facts-json.h"
#include "test.h"
#include <errno.h>
#include <stdlib.h>

static struct adaptbf_facts_self self;
static struct adaptbf_facts_job jobs[2];
static struct adaptbf_facts_loan loans[1], paid[2];
static struct facts facts;
static struct arena memory;

static void fill(void)
{
	self = (struct adaptbf_facts_self){.on = true,
		.tokens = "hold",
		.unit = "bytes",
		.period = 100 * WEIR_MS,
		.tokens_off = 3,
		.took = 7,
		.state = {.rate = 1234.5678901234567,
			.carry = 99,
			.tombstone = -3,
			.written_off = 4,
			.forfeited = 5,
			.aged = 8,
			.aged_left = -2,
			.steps = 6}};
	jobs[0] = (struct adaptbf_facts_job){.row = {.key = {"prod/db"}},
		.account = {.weight = 2048,
			.active = true,
			.tokens = 70,
			.initial = 50,
			.record = -((int64_t)1 << 40),
			.demand = (uint64_t)1 << 40,
			.remainder = -5,
			.reclaim = 17,
			.ledger = {1, 2, 3, 4, 5, 6, 7, 8}}};
	jobs[1] = (struct adaptbf_facts_job){
		.row = {.key = {"batch"}}, .account = {.weight = 1, .seen = 7 * WEIR_SEC}};
	loans[0] = (struct adaptbf_facts_loan){.row = {.key = {NULL, "prod/db"}},
		.loan = {.amount = (int64_t)1 << 40,
			.lent = (int64_t)1 << 41,
			.written_off = 77,
			.since = 1000 * WEIR_SEC,
			.last = 1000}};
	paid[0] = (struct adaptbf_facts_loan){.row = {.key = {"batch", "prod/db"}},
		.loan = {.lent = 12, .since = 2 * WEIR_SEC, .last = WEIR_SEC}};
	paid[1] = (struct adaptbf_facts_loan){.row = {.key = {"batch", NULL}},
		.loan = {.lent = 13,
			.written_off = 13,
			.since = 9 * WEIR_SEC,
			.last = 8 * WEIR_SEC}};
	facts = (struct facts){&adaptbf_facts, &self, {{jobs, 2}, {loans, 1}, {paid, 2}}};
}

/* As text, as a file has it. */
static json_t *through_text(json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);
	json_t *again = json_loads(text, 0, NULL);

	json_decref(j);
	free(text);
	CHECK(again != NULL);
	return again;
}

static void there_and_back(void)
{
	const struct adaptbf_facts_self *s;
	const struct adaptbf_facts_job *j;
	const struct adaptbf_facts_loan *l;
	struct facts back;
	json_t *json;

	fill();
	json = through_text(facts_json(&facts, FACTS_IN_STATE));
	CHECK(!json_object_get(json, "tokens_off") && !json_object_get(json, "step_s"));
	CHECK_INT(facts_json_read(json, &adaptbf_facts, &memory, &back), 0);
	json_decref(json); /* nothing is borrowed */
	s = back.self;
	CHECK(s->on && !s->learns);
	CHECK_STR(s->tokens, "hold");
	CHECK_STR(s->unit, "bytes");
	CHECK_INT(adaptbf_facts_unit(&back), WEIR_UNIT_BYTES);
	CHECK_INT(s->period, 100 * WEIR_MS);
	CHECK_INT(memcmp(&s->state, &self.state, sizeof(s->state)), 0);
	CHECK_INT(back.tables[ADAPTBF_FACTS_JOBS].n, 2);
	j = back.tables[ADAPTBF_FACTS_JOBS].rows;
	CHECK_STR(j[0].row.key[0], "prod/db");
	CHECK_STR(j[1].row.key[0], "batch");
	CHECK_INT(memcmp(&j[0].account, &jobs[0].account, sizeof(j->account)), 0);
	CHECK_INT(j[1].account.seen, 7 * WEIR_SEC);
	CHECK_INT(back.tables[ADAPTBF_FACTS_LOANS].n, 1);
	l = back.tables[ADAPTBF_FACTS_LOANS].rows;
	CHECK(!l->row.key[0]);
	CHECK_STR(l->row.key[1], "prod/db");
	CHECK_INT(l->loan.amount, loans[0].loan.amount);
	CHECK_INT(l->loan.lent, loans[0].loan.lent);
	CHECK_INT(l->loan.written_off, 77);
	CHECK_INT(l->loan.since, 1000 * WEIR_SEC);
	CHECK_INT(l->loan.last, 1000); /* ns: microseconds are kept */
	CHECK_INT(back.tables[ADAPTBF_FACTS_REPAID].n, 2);
	l = back.tables[ADAPTBF_FACTS_REPAID].rows;
	CHECK_STR(l[0].row.key[0], "batch");
	CHECK(!l[1].row.key[1]);
	CHECK_INT(l[0].loan.last, WEIR_SEC);
	arena_free(&memory);
}

/* As it was written before claims could age, and before a token had a unit. */
static void an_older_one(void)
{
	const struct adaptbf_facts_job *j;
	struct facts back;
	json_t *one;

	fill();
	one = facts_json(&facts, FACTS_IN_STATE);
	json_object_del(one, "aged");
	json_object_del(one, "aged_left");
	json_object_del(one, "unit");
	json_object_del(json_array_get(json_object_get(one, "jobs"), 0), "written_off");
	json_object_del(json_array_get(json_object_get(one, "jobs"), 0), "forgiven");
	json_object_del(json_array_get(json_object_get(one, "loans"), 0), "written_off");
	CHECK_INT(facts_json_read(one, &adaptbf_facts, &memory, &back), 0);
	j = back.tables[ADAPTBF_FACTS_JOBS].rows;
	CHECK_INT(((const struct adaptbf_facts_self *)back.self)->state.aged, 0);
	CHECK_INT(adaptbf_facts_unit(&back), WEIR_UNIT_REQUESTS);
	CHECK_INT(j[0].account.ledger.spared, 6);
	CHECK_INT(j[0].account.ledger.forgiven, 0);
	json_decref(one);
	arena_free(&memory);
}

static int read_and_restore(const json_t *j)
{
	struct jobnames names = {0};
	struct facts back;
	struct lend *a = NULL;
	int rc = facts_json_read(j, &adaptbf_facts, &memory, &back);

	if (rc == 0)
		rc = adaptbf_facts_restore(&back, 0, &names, &a);
	lend_free(a);
	jobnames_free(&names);
	return rc;
}

/* Facts that are good for a restart: the books balance. */
static void fill_balanced(void)
{
	fill();
	self.state.tombstone = 0;
	jobs[0].account.record = -40;
	jobs[1].account.record = 40;
	loans[0].row.key[0] = "batch";
	loans[0].loan = (struct lend_loan){.amount = 40, .lent = 40};
}

/* Each of these, changed so in facts that are good. */
static void refused(const char *where, size_t i, const char *key, json_t *value)
{
	json_t *one, *at;

	fill_balanced();
	at = one = facts_json(&facts, FACTS_IN_STATE);
	if (where)
		at = json_array_get(json_object_get(one, where), i);
	CHECK(at != NULL);
	if (value)
		json_object_set_new(at, key, value);
	else
		json_object_del(at, key);
	CHECK_INT(read_and_restore(one), -EINVAL);
	json_decref(one);
	arena_free(&memory);
}

static void what_is_none(void)
{
	json_t *odd = json_string("x"), *good;
	struct facts back;

	CHECK_INT(facts_json_read(odd, &adaptbf_facts, &memory, &back), -EINVAL);
	CHECK_INT(facts_json_read(NULL, &adaptbf_facts, &memory, &back), -EINVAL);
	json_decref(odd);
	fill_balanced();
	good = facts_json(&facts, FACTS_IN_STATE);
	CHECK_INT(read_and_restore(good), 0);
	json_decref(good);
	arena_free(&memory);
	refused(NULL, 0, "rate", json_real(0));
	refused(NULL, 0, "rate", NULL);
	refused(NULL, 0, "carry", json_integer((json_int_t)1 << 40));
	refused(NULL, 0, "tombstone", json_string("3"));
	refused(NULL, 0, "jobs", NULL);
	refused(NULL, 0, "loans", NULL);
	refused(NULL, 0, "repaid", json_integer(3));
	refused("jobs", 0, "tenant", json_string("batch")); /* twice */
	refused("jobs", 0, "tenant", json_null());
	refused("jobs", 0, "weight", json_integer(-1));
	refused("jobs", 0, "demand", json_integer(-1));
	refused("jobs", 1, "record", NULL);
	refused("jobs", 1, "seen_ago_s", json_real(1e300));
	refused("loans", 0, "borrower", json_string("nobody"));
	refused("loans", 0, "lender", json_integer(1));
	refused("loans", 0, "amount", json_real(1.5));
	refused("loans", 0, "since_ago_s", NULL);
	refused("repaid", 1, "lent", NULL);
}

/* A status may come from another version: what is missing is 0, and what is not known is shown
 * so. */
static void shown(void)
{
	const struct facts_table *t = &adaptbf_facts.tables[ADAPTBF_FACTS_LOANS];
	struct adaptbf_facts_loan l;
	json_t *j = json_pack("{s:s, s:i, s:s, s:f}", "lender", "a", "amount", 12, "lent", "odd",
		"since_ago_s", 60.0);

	facts_json_show(j, NULL, t, &l);
	CHECK_STR(l.row.key[0], "a");
	CHECK(!l.row.key[1]);
	CHECK_INT(l.loan.amount, 12);
	CHECK_INT(l.loan.lent, 0);
	CHECK_INT(l.loan.since, 60 * WEIR_SEC);
	CHECK(isnan(l.paid_ago));
	json_decref(j);
}

int main(void)
{
	RUN(there_and_back);
	RUN(an_older_one);
	RUN(what_is_none);
	RUN(shown);
	return 0;
}
