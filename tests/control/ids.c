/* SPDX-License-Identifier: BSD-3-Clause */
/* ids: finds every id that was added and not removed, and no other, for any clustering of ids and size of the
 * table. */
#include "control/ids.h"
#include "base/rng.h"
#include "test.h"

static void empty(void)
{
	struct ids ids = {0};

	CHECK(ids_find(&ids, 0) == SIZE_MAX);
	CHECK(ids_find(&ids, 7) == SIZE_MAX);
	ids_free(&ids);
}

/* Id 0 and index 0 are valid. */
static void zero(void)
{
	struct ids ids = {0};

	CHECK(ids_add(&ids, 5, 0) == 0);
	CHECK(ids_find(&ids, 0) == SIZE_MAX);
	CHECK(ids_add(&ids, 0, 1) == 0);
	CHECK_INT(ids_find(&ids, 5), 0);
	CHECK_INT(ids_find(&ids, 0), 1);
	ids_free(&ids);
	CHECK(ids_find(&ids, 5) == SIZE_MAX);
}

static void many(uint64_t (*id_of)(uint32_t i))
{
	struct ids ids = {0};

	for (uint32_t i = 0; i < 5000; i++) {
		CHECK(ids_find(&ids, id_of(i)) == SIZE_MAX);
		CHECK(ids_add(&ids, id_of(i), i) == 0);
		CHECK_INT(ids_find(&ids, id_of(i)), i);
	}
	for (uint32_t i = 0; i < 5000; i++)
		CHECK_INT(ids_find(&ids, id_of(i)), i);
	for (uint32_t i = 5000; i < 6000; i++)
		CHECK(ids_find(&ids, id_of(i)) == SIZE_MAX);
	CHECK(ids.n == 5000 && ids.room >= 2 * ids.n && ids.room <= 8 * ids.n);
	for (uint32_t i = 0; i < 5000; i += 1 + i % 3) /* neighbours, and gaps between others */
		ids_remove(&ids, id_of(i));
	for (uint32_t i = 0, gone = 0; i < 5000; i++) {
		CHECK_INT(ids_find(&ids, id_of(i)), i == gone ? SIZE_MAX : i);
		gone += i == gone ? 1 + i % 3 : 0;
	}
	ids_free(&ids);
}

static uint64_t small(uint32_t i)
{
	return i;
}

static uint64_t pairs(uint32_t i) /* as in the controller: a bucket and a server */
{
	return (uint64_t)(i / 8) << 32 | i % 8;
}

static uint64_t mixed(uint32_t i)
{
	return (i + UINT64_C(1)) * UINT64_C(0xd1342543de82ef95);
}

/* Ids that differ only in the low half, which the hash does not use. */
static uint64_t crowded(uint32_t i)
{
	return UINT64_C(0xf1de83e19937733d) *
	       i; /* multiplied by the multiplier: i, so that all hash to 0 */
}

static void all_sorts(void)
{
	many(small);
	many(pairs);
	many(mixed);
	many(crowded);
}

int main(void)
{
	RUN(empty);
	RUN(zero);
	RUN(all_sorts);
	return 0;
}
