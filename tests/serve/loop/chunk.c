/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk: sizes, alignment, the budget, and no overlaps or leaks. */
#include "test.h"
#include "base/rng.h"
#include "serve/loop/chunk.h"
#include <errno.h>

#define MIB (1u << 20)

static struct chunk_pool *pool(size_t budget)
{
	struct chunk_pool *p;

	CHECK_INT(chunk_pool_new(budget, &p), 0);
	CHECK_INT(chunk_budget(p), budget);
	return p;
}

static void sizes(void)
{
	static const struct {
		size_t bytes;
		uint32_t room;
	} of[] = {{0, 4096}, {1, 4096}, {4096, 4096}, {4097, 16384}, {16384, 16384}, {16385, 65536},
		{65536, 65536}, {65537, CHUNK_MAX}, {CHUNK_MAX, CHUNK_MAX}};
	struct chunk_pool *p = pool(4 * MIB);

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct chunk *c = chunk_get(p, of[i].bytes);
		CHECK(c);
		CHECK_INT(c->room, of[i].room);
		CHECK_INT(c->refs, 1);
		CHECK_INT((uintptr_t)c->data % 4096, 0);
		CHECK_INT(chunk_held(p), of[i].room);
		memset(c->data, 0x55, c->room);
		chunk_put(p, c);
		CHECK_INT(chunk_held(p), 0);
	}
	CHECK(!chunk_get(p, CHUNK_MAX + 1));
	chunk_put(p, NULL);
	chunk_pool_free(p);
	chunk_pool_free(NULL);
}

static void references(void)
{
	struct chunk_pool *p = pool(4 * MIB);
	struct chunk *c = chunk_get(p, 100);

	CHECK(chunk_keep(c) == c);
	chunk_put(p, c);
	CHECK_INT(chunk_held(p), 4096);
	c->data[0] = 1; /* still held */
	chunk_put(p, c);
	CHECK_INT(chunk_held(p), 0);
	chunk_pool_free(p);
}

static void budget(void)
{
	struct chunk_pool *p, *none = NULL;
	struct chunk *all = NULL, *c;
	size_t n = 0;

	CHECK_INT(chunk_pool_new(4 * MIB - 1, &none), -EINVAL);
	CHECK(!none);
	/* With small ones, then with large ones of the same memory, then small ones again. */
	p = pool(5 * MIB + 4096);
	for (int round = 0; round < 3; round++) {
		size_t bytes = round == 1 ? CHUNK_MAX : 4096;
		for (n = 0; (c = chunk_get(p, bytes)); n++) {
			c->next = all;
			all = c;
		}
		CHECK_INT(n, (5 * MIB + 4096) / bytes);
		CHECK_INT(chunk_held(p), n * bytes);
		while ((c = all)) {
			all = c->next;
			chunk_put(p, c);
		}
		CHECK_INT(chunk_held(p), 0);
	}
	chunk_pool_free(p);
}

/* A smaller budget holds from the next chunk on; a larger one at once. */
static void budget_changes(void)
{
	struct chunk_pool *p;
	struct chunk *c[64];

	CHECK_INT(chunk_pool_new(16 << 20, &p), 0);
	for (int i = 0; i < 64; i++)
		CHECK((c[i] = chunk_get(p, CHUNK_MAX)) != NULL);
	CHECK(!chunk_get(p, 1));
	chunk_set_budget(p, 4 << 20);
	CHECK_INT(chunk_held(p), 16 << 20);
	for (int i = 16; i < 64; i++)
		chunk_put(p, c[i]);
	CHECK(!chunk_get(p, CHUNK_MAX));
	chunk_put(p, c[15]);
	CHECK((c[15] = chunk_get(p, CHUNK_MAX)) != NULL);
	chunk_set_budget(p, 32 << 20);
	for (int i = 16; i < 64; i++)
		CHECK((c[i] = chunk_get(p, CHUNK_MAX)) != NULL);
	for (int i = 0; i < 64; i++)
		chunk_put(p, c[i]);
	chunk_pool_free(p);
}

static void stamp(struct chunk *c, uint32_t number)
{
	memcpy(c->data, &number, sizeof(number));
	memcpy(c->data + c->room - sizeof(number), &number, sizeof(number));
}

static void check_stamp(const struct chunk *c, uint32_t number)
{
	CHECK_INT(memcmp(c->data, &number, sizeof(number)), 0);
	CHECK_INT(memcmp(c->data + c->room - sizeof(number), &number, sizeof(number)), 0);
}

/* Random gets and puts; every held chunk has its own number at both ends. */
static void nothing_overlaps(void)
{
	enum { N = 600 };
	struct chunk_pool *p = pool(8 * MIB);
	struct chunk *held[N] = {0};
	size_t sum = 0, refused = 0;
	struct rng r;

	rng_init(&r, 1, "chunk");
	for (uint32_t step = 0; step < 40000; step++) {
		size_t i = rng_below(&r, N);
		struct chunk *c = held[i];
		if (c) {
			check_stamp(c, (uint32_t)i);
			sum -= c->room;
			chunk_put(p, c);
			held[i] = NULL;
			continue;
		}
		c = chunk_get(p, 1 + rng_below(&r, 4096u << (2 * rng_below(&r, 4))));
		if (!c) {
			refused++;
			continue;
		}
		stamp(c, (uint32_t)i);
		sum += c->room;
		held[i] = c;
		CHECK_INT(chunk_held(p), sum);
		CHECK(sum <= 8 * MIB);
	}
	CHECK(refused > 100); /* the budget was reached */
	for (size_t i = 0; i < N; i++)
		chunk_put(p, held[i]);
	CHECK_INT(chunk_held(p), 0);
	/* All blocks are whole again. */
	for (size_t i = 0; i < 32; i++)
		CHECK((held[i] = chunk_get(p, CHUNK_MAX)));
	for (size_t i = 0; i < 32; i++)
		chunk_put(p, held[i]);
	chunk_pool_free(p);
}

int main(void)
{
	RUN(sizes);
	RUN(references);
	RUN(budget);
	RUN(budget_changes);
	RUN(nothing_overlaps);
	return 0;
}
