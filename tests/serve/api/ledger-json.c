/* SPDX-License-Identifier: BSD-3-Clause */
/* ledger-json: all of an image there and back; and what is no ledger. */
#include "serve/api/ledger-json.h"
#include "test.h"
#include <errno.h>
#include <stdlib.h>

#define AT (1000 * WEIR_SEC)

static struct adaptbf_account jobs[2];
static struct adaptbf_loan loans[1], paid[2];
static char *names[4] = {NULL, (char[]){"prod/db"}, NULL, (char[]){"batch"}};
static char resource[] = "ost \"1\"";
static struct steward_image image;

static void fill(void)
{
	jobs[0] = (struct adaptbf_account){.id = 1,
		.weight = 2048,
		.active = true,
		.seen = AT,
		.tokens = 70,
		.initial = 50,
		.record = -((int64_t)1 << 40),
		.demand = (uint64_t)1 << 40,
		.remainder = -5,
		.reclaim = 17,
		.ledger = {1, 2, 3, 4, 5, 6, 7, 8}};
	jobs[1] = (struct adaptbf_account){.id = 3, .weight = 1, .seen = AT - 7 * WEIR_SEC};
	loans[0] =
		(struct adaptbf_loan){0, 1, (int64_t)1 << 40, (int64_t)1 << 41, 5, AT - 1000, 77};
	paid[0] = (struct adaptbf_loan){3, 1, 0, 12, AT - 2 * WEIR_SEC, AT - WEIR_SEC, 0};
	paid[1] = (struct adaptbf_loan){3, 0, 0, 13, AT - 9 * WEIR_SEC, AT - 8 * WEIR_SEC, 13};
	image = (struct steward_image){.resource = resource,
		.at = AT,
		.on = true,
		.period = 100 * WEIR_MS,
		.state = {.rate = 1234.5678901234567,
			.carry = 99,
			.tombstone = -3,
			.written_off = 4,
			.forfeited = 5,
			.aged = 8,
			.aged_left = -2,
			.steps = 6},
		.jobs = jobs,
		.n_jobs = 2,
		.loans = loans,
		.n_loans = 1,
		.paid = paid,
		.n_paid = 2,
		.names = names,
		.n_names = 4};
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

static void near_time(weir_time a, weir_time b)
{
	CHECK(a - b <= 1000 && b - a <= 1000); /* ns: microseconds are kept */
}

static void there_and_back(void)
{
	struct steward_image *back;
	const char *why = NULL;
	json_t *j;
	size_t n;

	fill();
	j = through_text(ledger_json(&image, 1));
	CHECK_INT(ledger_json_read(j, &back, &n, &why), 0);
	CHECK_INT(n, 1);
	CHECK_STR(back->resource, "ost \"1\"");
	CHECK(back->state.rate == image.state.rate);
	CHECK_INT(back->state.carry, 99);
	CHECK_INT(back->state.tombstone, -3);
	CHECK_INT(back->state.written_off, 4);
	CHECK_INT(back->state.forfeited, 5);
	CHECK_INT(back->state.aged, 8);
	CHECK_INT(back->state.aged_left, -2);
	CHECK_INT(back->n_jobs, 2);
	CHECK_STR(steward_image_name(back, back->jobs[0].id), "prod/db");
	CHECK_STR(steward_image_name(back, back->jobs[1].id), "batch");
	near_time(back->jobs[1].seen, -7 * WEIR_SEC); /* on a clock that is 0 at the look */
	back->jobs[0].id = 1;
	back->jobs[0].seen = AT;
	back->jobs[0].active = true; /* nobody is, in the one that begins */
	CHECK_INT(memcmp(&back->jobs[0], &jobs[0], sizeof(*jobs)), 0);
	CHECK_INT(back->n_loans, 1);
	CHECK_INT(back->loans[0].lender, 0);
	CHECK_STR(steward_image_name(back, back->loans[0].borrower), "prod/db");
	CHECK_INT(back->loans[0].amount, loans[0].amount);
	CHECK_INT(back->loans[0].lent, loans[0].lent);
	CHECK_INT(back->loans[0].written_off, 77);
	near_time(back->loans[0].since, 5 - AT);
	near_time(back->loans[0].last, -1000);
	CHECK_INT(back->n_paid, 2);
	CHECK_STR(steward_image_name(back, back->paid[0].lender), "batch");
	CHECK_INT(back->paid[1].borrower, 0);
	near_time(back->paid[0].last, -WEIR_SEC);
	ledger_json_free(back, n);
	json_decref(j);
}

/* As it was written before claims could age. */
static void an_older_one(void)
{
	struct steward_image *back;
	const char *why = NULL;
	json_t *j, *one;
	size_t n;

	fill();
	j = ledger_json(&image, 1);
	one = json_array_get(j, 0);
	json_object_del(one, "aged");
	json_object_del(one, "aged_left");
	json_object_del(json_array_get(json_object_get(one, "jobs"), 0), "written_off");
	json_object_del(json_array_get(json_object_get(one, "jobs"), 0), "forgiven");
	json_object_del(json_array_get(json_object_get(one, "loans"), 0), "written_off");
	CHECK_INT(ledger_json_read(j, &back, &n, &why), 0);
	CHECK_INT(back->state.aged, 0);
	CHECK_INT(back->jobs[0].ledger.spared, 6);
	CHECK_INT(back->jobs[0].ledger.forgiven, 0);
	CHECK_INT(back->loans[0].written_off, 0);
	ledger_json_free(back, n);
	json_decref(j);
}

/* Each of these, changed so in a list that is good. */
static void refused(const char *where, size_t i, const char *key, json_t *value)
{
	struct steward_image *back;
	const char *why = NULL;
	json_t *j, *at;
	size_t n;

	fill();
	j = ledger_json(&image, 1);
	at = json_array_get(j, 0);
	if (where)
		at = json_array_get(json_object_get(at, where), i);
	CHECK(at != NULL);
	if (value)
		json_object_set_new(at, key, value);
	else
		json_object_del(at, key);
	CHECK_INT(ledger_json_read(j, &back, &n, &why), -EINVAL);
	CHECK(why && *why);
	json_decref(j);
}

static void what_is_none(void)
{
	struct steward_image *back;
	const char *why = NULL;
	json_t *odd = json_string("x");
	size_t n;

	CHECK_INT(ledger_json_read(odd, &back, &n, &why), -EINVAL);
	CHECK_INT(ledger_json_read(NULL, &back, &n, &why), -EINVAL);
	json_decref(odd);
	refused(NULL, 0, "resource", NULL);
	refused(NULL, 0, "rate", json_real(0));
	refused(NULL, 0, "carry", json_integer((json_int_t)1 << 40));
	refused(NULL, 0, "tombstone", json_string("3"));
	refused(NULL, 0, "jobs", NULL);
	refused(NULL, 0, "loans", NULL);
	refused(NULL, 0, "repaid", json_integer(3));
	refused("jobs", 0, "tenant", json_string("batch")); /* twice */
	refused("jobs", 0, "tenant", json_string(""));
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

int main(void)
{
	RUN(there_and_back);
	RUN(an_older_one);
	RUN(what_is_none);
	return 0;
}
