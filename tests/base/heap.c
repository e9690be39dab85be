/* SPDX-License-Identifier: BSD-3-Clause */
/* heap: order, ties, places, and a long random run against a linear search. */
#include "base/heap.h"
#include "base/rng.h"
#include "test.h"
#include <errno.h>
#include <stdbool.h>

static void leaves_in_order_of_key_then_serial(void)
{
	struct heap h;
	const int64_t keys[] = {5, -3, 5, INT64_MIN, 0, 5, INT64_MAX, -3};
	const uint64_t serials[] = {9, 1, 2, UINT64_MAX, 4, UINT64_MAX, 6, 0};
	const uint64_t want[] = {3, 7, 1, 4, 2, 0, 5, 6}; /* indices, by hand */

	heap_init(&h, NULL);
	CHECK(heap_min(&h) == NULL);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_INT(heap_push(&h, (struct heap_item){keys[i], serials[i], i}), 0);
	for (uint64_t i = 0; i < 8; i++) {
		CHECK_INT(heap_min(&h)->value, want[i]);
		struct heap_item got = heap_pop(&h);
		CHECK_INT(got.value, want[i]);
		CHECK_INT(got.key, keys[want[i]]);
		CHECK(got.serial == serials[want[i]]);
	}
	CHECK(heap_min(&h) == NULL);
	heap_free(&h);
}

static void values_may_be_pointers(void)
{
	struct heap h;
	int x = 1, y = 2;

	heap_init(&h, NULL);
	heap_push(&h, (struct heap_item){2, 0, (uint64_t)(uintptr_t)&x});
	heap_push(&h, (struct heap_item){1, 1, (uint64_t)(uintptr_t)&y});
	CHECK((int *)(uintptr_t)heap_pop(&h).value == &y);
	CHECK((int *)(uintptr_t)heap_pop(&h).value == &x);
	heap_free(&h);
}

static void reserve_makes_room_and_refuses_the_impossible(void)
{
	struct heap h;
	uint32_t place[1];

	heap_init(&h, NULL);
	CHECK_INT(heap_reserve(&h, 1000), 0);
	struct heap_item *items = h.items;
	for (uint64_t i = 0; i < 1000; i++)
		CHECK_INT(heap_push(&h, (struct heap_item){-(int64_t)i, i, i}), 0);
	CHECK(h.items == items);
	CHECK_INT(heap_reserve(&h, 10), 0);
	CHECK(h.room >= 1000);
	CHECK_INT(heap_reserve(&h, SIZE_MAX / 2), -ENOMEM);
	CHECK_INT(h.n, 1000);
	CHECK_INT(heap_pop(&h).value, 999);
	heap_free(&h);
	CHECK_INT(h.n, 0);
	CHECK_INT(heap_push(&h, (struct heap_item){1, 1, 1}), 0); /* usable after free */
	heap_free(&h);

	heap_init(&h, place); /* a place is 32 bits wide */
	CHECK_INT(heap_reserve(&h, (size_t)UINT32_MAX + 1), -ENOMEM);
	heap_free(&h);
}

/* The naive model: the key and serial of every value, and whether it is in the heap. */
#define VALUES 600
static struct heap_item model[VALUES];
static bool inside[VALUES];

static size_t model_least(void)
{
	size_t least = VALUES;

	for (size_t i = 0; i < VALUES; i++)
		if (inside[i] && (least == VALUES || model[i].key < model[least].key ||
					 (model[i].key == model[least].key &&
						 model[i].serial < model[least].serial)))
			least = i;
	return least;
}

static void check_places(const struct heap *h, const uint32_t *place)
{
	for (size_t i = 0; i < VALUES; i++) {
		if (!inside[i]) {
			CHECK(place[i] == HEAP_NOWHERE);
			continue;
		}
		CHECK(place[i] < h->n);
		CHECK_INT(h->items[place[i]].value, i);
		CHECK_INT(h->items[place[i]].key, model[i].key);
	}
}

static size_t find(const struct heap *h, uint64_t value)
{
	size_t i = 0;

	while (i < h->n && h->items[i].value != value)
		i++;
	CHECK(i < h->n);
	return i;
}

/* Do one push (or move or remove, if the value is in the heap) or pop. */
static void one_operation(struct heap *h, struct rng *r, uint64_t serial, unsigned range)
{
	size_t v = rng_below(r, VALUES);
	int64_t key = (int64_t)rng_below(r, range) - (int64_t)range / 2;
	size_t least = model_least();

	CHECK((heap_min(h) == NULL) == (least == VALUES));
	if (least < VALUES)
		CHECK_INT(heap_min(h)->value, least);
	if (rng_below(r, 4) == 0 && least < VALUES) {
		CHECK_INT(heap_pop(h).value, least);
		inside[least] = false;
	} else if (!inside[v]) {
		model[v] = (struct heap_item){key, serial, v};
		inside[v] = true;
		CHECK_INT(heap_push(h, model[v]), 0);
	} else if (rng_below(r, 3) == 0) {
		heap_remove(h, h->place ? h->place[v] : find(h, v));
		inside[v] = false;
	} else {
		model[v] = (struct heap_item){key, serial, v};
		heap_move(h, h->place ? h->place[v] : find(h, v), key, serial);
	}
}

static void random_run(bool places, unsigned range)
{
	static uint32_t place[VALUES];
	struct heap h;
	struct rng r;
	size_t n = 0;

	memset(inside, 0, sizeof(inside));
	memset(place, 0xff, sizeof(place));
	rng_init(&r, 7, places ? "places" : "plain");
	heap_init(&h, places ? place : NULL);
	for (uint64_t serial = 0; serial < 100000; serial++) {
		one_operation(&h, &r, serial, range);
		if (places && serial % 64 == 0)
			check_places(&h, place);
	}
	for (size_t i = 0; i < VALUES; i++)
		n += inside[i];
	CHECK_INT(h.n, n);
	while (h.n) {
		size_t least = model_least();
		CHECK_INT(heap_pop(&h).value, least);
		inside[least] = false;
	}
	heap_free(&h);
}

static void random_run_with_places(void)
{
	random_run(true, 1000000);
}

static void random_run_with_many_ties(void)
{
	random_run(true, 3);
}

static void random_run_without_places(void)
{
	random_run(false, 500);
}

int main(void)
{
	RUN(leaves_in_order_of_key_then_serial);
	RUN(values_may_be_pointers);
	RUN(reserve_makes_room_and_refuses_the_impossible);
	RUN(random_run_with_places);
	RUN(random_run_with_many_ties);
	RUN(random_run_without_places);
	return 0;
}
