/* SPDX-License-Identifier: BSD-3-Clause */
/* jobnames: a name keeps its number, both can be looked up, and free numbers are reused. */
#include "control/adaptbf/jobnames.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

static void found_both_ways(void)
{
	struct jobnames j = {0};
	char name[24];

	CHECK_INT(jobnames_find(&j, "a"), 0);
	CHECK(!jobnames_name(&j, 1) && !jobnames_name(&j, 0));
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "job/%u", i);
		CHECK_INT(jobnames_add(&j, name), i + 1);
		CHECK_INT(jobnames_add(&j, name), i + 1);
	}
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "job/%u", i);
		CHECK_INT(jobnames_find(&j, name), i + 1);
		CHECK_STR(jobnames_name(&j, i + 1), name);
	}
	CHECK_INT(jobnames_find(&j, "job/1000"), 0);
	CHECK(!jobnames_name(&j, 1001));
	jobnames_free(&j);
}

static bool is_even(uint64_t id, void *arg)
{
	return id % 2 == 0;
}

static void those_that_stay_keep_their_numbers(void)
{
	struct jobnames j = {0};
	char name[24];

	for (unsigned i = 1; i <= 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		CHECK_INT(jobnames_add(&j, name), i);
	}
	jobnames_sweep(&j, SIZE_MAX, is_even, NULL);
	for (unsigned i = 1; i <= 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		CHECK_INT(jobnames_find(&j, name), i % 2 ? 0 : i);
	}
	CHECK_INT(jobnames_add(&j, "new"), 1); /* the lowest free number */
	CHECK_INT(jobnames_add(&j, "newer"), 3);
	CHECK_STR(jobnames_name(&j, 3), "newer");
	CHECK_STR(jobnames_name(&j, 2), "2");
	jobnames_free(&j);
}

int main(void)
{
	RUN(found_both_ways);
	RUN(those_that_stay_keep_their_numbers);
	return 0;
}
