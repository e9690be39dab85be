/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/resource/tap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tap_new(size_t room, struct tap **ret_tap)
{
	size_t size = 1;
	struct tap *t;

	while (size < room)
		size *= 2;
	t = aligned_alloc(_Alignof(struct tap), sizeof(*t));
	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->entries = calloc(size, sizeof(*t->entries));
	if (!t->entries) {
		free(t);
		return -ENOMEM;
	}
	t->mask = size - 1;
	atomic_init(&t->head, 0);
	atomic_init(&t->tail, 0);
	atomic_init(&t->dropped, 0);
	*ret_tap = t;
	return 0;
}

void tap_free(struct tap *t)
{
	if (!t)
		return;
	free(t->entries);
	free(t);
}

size_t tap_take(struct tap *t, struct tap_entry *ret_entries, size_t n)
{
	uint64_t tail = atomic_load_explicit(&t->tail, memory_order_relaxed);
	uint64_t there = atomic_load_explicit(&t->head, memory_order_acquire) - tail;

	if (n > there)
		n = there;
	for (size_t i = 0; i < n; i++)
		ret_entries[i] = t->entries[(tail + i) & t->mask];
	atomic_store_explicit(&t->tail, tail + n, memory_order_release);
	return n;
}

uint64_t tap_dropped(const struct tap *t)
{
	return atomic_load_explicit(&t->dropped, memory_order_relaxed);
}
