/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any JSON as the ledger of a resource: it is refused, or a controller starts from it, its
 * books balance, it can step, and it writes the same ledger again. */
#include "fuzz.h"
#include "control/adaptbf/facts.h"
#include "serve/show/facts-json.h"
#include <string.h>

static int64_t one_job(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	if (max)
		list[0] = (struct lend_job){.id = 1, .weight = 1, .queued = 9};
	return 1;
}

static int nothing(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	return 0;
}

static void check_books(const struct lend *a)
{
	struct lend_account account;
	struct lend_state state;
	int64_t sum;

	lend_state(a, &state);
	sum = state.tombstone;
	for (size_t i = 0; i < lend_places(a); i++)
		if (lend_account_at(a, i, &account))
			sum += account.record;
	MUST(sum == 0);
}

static void use(const struct facts *facts)
{
	static const struct lend_driver_ops ops = {
		.name = "fuzz", .jobs = one_job, .apply = nothing};
	struct lend_config config = {.rate = 100, .debt = {0.5, WEIR_SEC}};
	struct jobnames names = {0};
	struct lend *a;

	if (adaptbf_facts_restore(facts, 0, &names, &a) == 0) {
		MUST(lend_loans(a, NULL, 0) == facts->tables[ADAPTBF_FACTS_LOANS].n);
		check_books(a);
		MUST(lend_configure(a, &config) == 0);
		MUST(lend_step(a, 0, &ops, NULL) == 0);
		check_books(a);
		lend_free(a);
	}
	jobnames_free(&names);
}

static void read_one(const json_t *j)
{
	struct arena memory = {0};
	struct facts facts;

	if (facts_json_read(j, facts_stateful(), &memory, &facts) == 0) {
		json_t *again = facts_json(&facts, FACTS_IN_STATE);

		use(&facts);
		MUST(again);
		MUST(facts_json_read(again, facts_stateful(), &memory, &facts) == 0);
		json_decref(again);
	}
	arena_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = json_loadb((const char *)data, size, 0, NULL);

	for (size_t i = 0; i < json_array_size(j); i++)
		read_one(json_array_get(j, i));
	json_decref(j);
	return 0;
}
