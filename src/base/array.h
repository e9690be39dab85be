/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array: arrays that grow, and such as are sorted.
 *
 *   struct item *items = NULL;
 *   size_t n = 0, room = 0;
 *
 *   if (array_grow(&items, &room, n + 1) < 0)
 *           return -ENOMEM;
 *   items[n++] = item;
 *
 * Sorted by a key, each once:
 *
 *   size_t at;
 *
 *   if (!array_find(items, n, key, order, &at))
 *           rc = array_insert(&items, &n, &room, at, &item);
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST 16 /* elements */

/* Both return 0, or -ENOMEM, and then nothing has changed. `array` is the address of the pointer; new elements are not set. */

/* Make room for exactly n elements. */
#define array_resize(array, n) array_resize_to((array), (n), sizeof(**(array)))
/* Make room for n elements or more, so that the time to grow is in proportion to the last size. */
#define array_grow(array, room, n) array_grow_to((array), (room), (n), sizeof(**(array)))

static inline int array_resize_to(void *array, size_t n, size_t size)
{
	void *old, *now;

	memcpy(&old, array, sizeof(old)); /* a pointer of any type */
	now = n <= SIZE_MAX / size ? realloc(old, n ? n * size : 1) : NULL;
	if (!now)
		return -ENOMEM;
	memcpy(array, &now, sizeof(now));
	return 0;
}

static inline int array_grow_to(void *array, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? 2 * *room : ARRAY_FIRST;

	if (n <= *room)
		return 0;
	if (more < n)
		more = n;
	if (array_resize_to(array, more, size) < 0)
		return -ENOMEM;
	*room = more;
	return 0;
}

/* Compare a key with an element: negative, 0 or positive, as for bsearch(3). */
typedef int array_order(const void *key, const void *element);

/* Return true if the sorted array has the key; *ret_at is its place, or where it would be. O(log n). */
#define array_find(array, n, key, order, ret_at)                                                   \
	array_find_in((array), (n), sizeof(*(array)), (key), (order), (ret_at))
/* Put a copy of *element at a place; the elements from there on move up. 0 or -ENOMEM. */
#define array_insert(array, n, room, at, element)                                                  \
	array_insert_at((array), (n), (room), (at), (element), sizeof(**(array)))
/* Take the element at a place out; those behind it move down. */
#define array_remove(array, n, at) array_remove_at((array), (n), (at), sizeof(*(array)))

static inline bool array_find_in(const void *array, size_t n, size_t size, const void *key,
	array_order *order, size_t *ret_at)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int is = order(key, (const char *)array + middle * size);

		if (is == 0) {
			*ret_at = middle;
			return true;
		}
		if (is > 0)
			from = middle + 1;
		else
			to = middle;
	}
	*ret_at = from;
	return false;
}

static inline int array_insert_at(
	void *array, size_t *n, size_t *room, size_t at, const void *element, size_t size)
{
	char *all;

	if (array_grow_to(array, room, *n + 1, size) < 0)
		return -ENOMEM;
	memcpy(&all, array, sizeof(all));
	memmove(all + (at + 1) * size, all + at * size, (*n - at) * size);
	memcpy(all + at * size, element, size);
	(*n)++;
	return 0;
}

static inline void array_remove_at(void *array, size_t *n, size_t at, size_t size)
{
	char *all = array;

	memmove(all + at * size, all + (at + 1) * size, (--*n - at) * size);
}
