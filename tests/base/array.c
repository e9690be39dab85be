/* SPDX-License-Identifier: BSD-3-Clause */
/* array: growing keeps elements and grows by doubling; an impossible size changes nothing; a sorted array stays sorted. */
#include "base/array.h"
#include "test.h"

static void test_grow(void)
{
	uint32_t *a = NULL;
	size_t room = 0, times = 0;

	for (size_t n = 0; n < 100000; n++) {
		size_t had = room;

		CHECK_INT(array_grow(&a, &room, n + 1), 0);
		CHECK(room > n);
		times += room != had;
		a[n] = (uint32_t)n;
	}
	CHECK(times <= 14); /* 16 · 2¹³ elements */
	for (size_t n = 0; n < 100000; n++)
		CHECK_INT(a[n], n);
	CHECK_INT(array_grow(&a, &room, 1000000), 0); /* more than twice */
	CHECK_INT(room, 1000000);
	CHECK_INT(array_grow(&a, &room, 5), 0); /* never less */
	CHECK_INT(room, 1000000);
	CHECK_INT(a[99999], 99999);
	free(a);
}

static void test_resize(void)
{
	char *text = NULL;

	CHECK_INT(array_resize(&text, 3), 0);
	memcpy(text, "ab", 3);
	CHECK_INT(array_resize(&text, 2000), 0);
	CHECK_STR(text, "ab");
	CHECK_INT(array_resize(&text, 0), 0);
	CHECK(text);
	free(text);
}

static void test_too_much(void)
{
	uint64_t one = 7, *a = &one, *before = a;
	size_t room = 1;

	CHECK_INT(array_grow(&a, &room, SIZE_MAX / 8 + 1), -ENOMEM);
	CHECK(a == before && room == 1 && *a == 7);
	CHECK_INT(array_resize(&a, SIZE_MAX / 8 + 1), -ENOMEM);
	CHECK(a == before);
}

static int by_number(const void *key, const void *element)
{
	const uint32_t *a = key, *b = element;

	return *a < *b ? -1 : *a > *b;
}

static void test_sorted(void)
{
	uint32_t *a = NULL;
	size_t n = 0, room = 0, at;

	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t key = i * 7919 % 1000 * 2; /* each even number below 2,000 once */

		CHECK(!array_find(a, n, &key, by_number, &at));
		CHECK_INT(array_insert(&a, &n, &room, at, &key), 0);
	}
	CHECK_INT(n, 1000);
	for (uint32_t key = 0; key < 2001; key++) {
		CHECK_INT(array_find(a, n, &key, by_number, &at), key < 2000 && key % 2 == 0);
		CHECK_INT(at, (key + 1) / 2);
	}
	for (size_t i = 0; i < 500; i++)
		array_remove(a, &n, i);
	CHECK_INT(n, 500);
	for (size_t i = 0; i < n; i++)
		CHECK_INT(a[i], 4 * i + 2);
	free(a);
}

int main(void)
{
	RUN(test_grow);
	RUN(test_resize);
	RUN(test_too_much);
	RUN(test_sorted);
	return 0;
}
