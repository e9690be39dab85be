/* SPDX-License-Identifier: BSD-3-Clause */
/* Any JSON as the ledger of a resource: refused, or a controller begins from it, its books balance, it can go on,
 * and it says the same again. */
#include "fuzz.h"
#include "serve/api/ledger-json.h"
#include <string.h>

static int64_t one_job(void *driver, weir_time now, struct adaptbf_job *list, size_t max)
{
	if (max)
		list[0] = (struct adaptbf_job){.id = 1, .weight = 1, .queued = 9};
	return 1;
}

static int nothing(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n)
{
	return 0;
}

static bool count(const struct adaptbf_loan *loan, void *arg)
{
	MUST(loan->amount > 0);
	++*(size_t *)arg;
	return true;
}

static void check_books(const struct adaptbf *a)
{
	struct adaptbf_account account;
	struct adaptbf_state state;
	int64_t sum;

	adaptbf_state(a, &state);
	sum = state.tombstone;
	for (size_t i = 0; i < adaptbf_places(a); i++)
		if (adaptbf_account_at(a, i, &account))
			sum += account.record;
	MUST(sum == 0);
}

static void use(const struct steward_image *image)
{
	static const struct adaptbf_driver_ops ops = {
		.name = "fuzz", .jobs = one_job, .apply = nothing};
	struct adaptbf_config config = {.rate = 100, .learn = true};
	struct adaptbf *a;
	size_t n = 0;

	MUST(adaptbf_new(&config, &a) == 0);
	if (adaptbf_restore(a, &image->state, image->jobs, image->n_jobs, image->loans,
		    image->n_loans) == 0) {
		adaptbf_restore_paid(a, image->paid, image->n_paid);
		adaptbf_loans(a, count, &n);
		MUST(n == image->n_loans);
		check_books(a);
		config.rate = 100;
		config.learn = false;
		config.debt = (struct adaptbf_debt){0.5, WEIR_SEC};
		MUST(adaptbf_configure(a, &config) == 0);
		MUST(adaptbf_step(a, 0, &ops, NULL) == 0);
		check_books(a);
	}
	adaptbf_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = json_loadb((const char *)data, size, 0, NULL), *again;
	struct steward_image *images;
	const char *why = NULL;
	size_t n;

	if (j && ledger_json_read(j, &images, &n, &why) == 0) {
		for (size_t i = 0; i < n; i++)
			use(&images[i]);
		again = ledger_json(images, n);
		MUST(again && json_array_size(again) == json_array_size(j));
		json_decref(again);
		ledger_json_free(images, n);
	} else {
		MUST(!j || (why && *why));
	}
	json_decref(j);
	return 0;
}
