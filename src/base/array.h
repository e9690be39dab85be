/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array: arrays that grow.
 *
 *   struct item *items = NULL;
 *   size_t n = 0, room = 0;
 *
 *   if (array_grow(&items, &room, n + 1) < 0)
 *           return -ENOMEM;
 *   items[n++] = item;
 */
#pragma once

#include <errno.h>
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
