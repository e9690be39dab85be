/* SPDX-License-Identifier: BSD-3-Clause */
/* arena: zeroed and aligned memory, freed at once (the sanitizers see that all of it is); sizes
 * that overflow. */
#include "base/arena.h"
#include "test.h"
#include <stdint.h>

static void takes(void)
{
	struct arena a = {0};
	char *text;

	for (size_t n = 0; n < 100; n++) {
		uint8_t *p = arena_take(&a, n, 3);

		CHECK(p && (uintptr_t)p % 16 == 0);
		for (size_t i = 0; i < 3 * n; i++)
			CHECK_INT(p[i], 0);
		memset(p, 0xff, 3 * n);
	}
	text = arena_text(&a, "abc");
	CHECK_STR(text, "abc");
	CHECK(!a.failed);
	CHECK(!arena_take(&a, SIZE_MAX / 2, 4));
	CHECK(a.failed);
	arena_free(&a);
	CHECK(!a.pieces);
	arena_free(&a);
}

int main(void)
{
	RUN(takes);
	return 0;
}
