/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/loop/spare.h"
#include "test.h"
#include <unistd.h>

static void test_between_nothing_and_all(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t spare = spare_memory();

	if (access("/proc/meminfo", R_OK) < 0)
		SKIP("no /proc here");
	CHECK(spare > 0 && spare <= all);
}

int main(void)
{
	RUN(test_between_nothing_and_all);
	return 0;
}
