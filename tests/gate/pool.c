/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a pool: aligned, zeroed, distinct; and reused after they were freed. */
#include "gate/pool.h"
#include "test.h"
#include <stdint.h>

#define PIECES 1000

static void pieces_are_apart(void)
{
	static unsigned char *piece[PIECES];
	struct pool p = {0};

	for (unsigned i = 0; i < PIECES; i++) {
		size_t lines = 1 + i % POOL_LINES_MAX;

		piece[i] = pool_get(&p, lines);
		CHECK(piece[i] != NULL && (uintptr_t)piece[i] % POOL_LINE == 0);
		for (size_t k = 0; k < lines * POOL_LINE; k++)
			CHECK_INT(piece[i][k], 0);
		memset(piece[i], (int)(i % 255 + 1), lines * POOL_LINE);
	}
	for (unsigned i = 0; i < PIECES; i++)
		for (size_t k = 0; k < (1 + i % POOL_LINES_MAX) * POOL_LINE; k++)
			CHECK_INT(piece[i][k], i % 255 + 1);
	pool_free(&p);
}

/* For each size, the piece freed last is reused first, for any number of chunks in between. */
static void pieces_are_used_again(void)
{
	struct pool p = {0};
	void *first = pool_get(&p, 3), *second = pool_get(&p, 3), *other = pool_get(&p, 4);
	size_t bytes = p.bytes;

	pool_put(&p, first, 3);
	pool_put(&p, other, 4);
	pool_put(&p, second, 3);
	while (p.bytes < 10 * bytes)
		CHECK(pool_get(&p, 5) != NULL);
	CHECK(pool_get(&p, 3) == second);
	CHECK(pool_get(&p, 3) == first);
	CHECK(pool_get(&p, 4) == other);
	CHECK(pool_get(&p, 4) != other);
	pool_free(&p);
	CHECK_INT(p.bytes, 0);
}

int main(void)
{
	RUN(pieces_are_apart);
	RUN(pieces_are_used_again);
	return 0;
}
