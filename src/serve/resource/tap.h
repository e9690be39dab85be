/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: requests seen by one thread, on their way into a trace written by another.
 *
 * A ring with one writer (the resource's thread, tap_put) and one reader (record.c's thread,
 * tap_take). It never waits: requests that do not fit are counted. Positions only grow; each side
 * owns one and reads the other's with acquire, so an entry is complete before it is seen.
 */
#pragma once

#include <weir/clock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tap_entry {
	weir_time at;    /* when it was submitted */
	uint64_t offset; /* bytes, in the back end */
	uint32_t bytes;
	uint16_t tenant; /* index in the policy in force */
	uint8_t op;      /* enum weir_op */
	uint8_t reserved;
};

struct tap {
	struct tap_entry *entries;
	uint64_t mask;                          /* room − 1; a power of two */
	_Alignas(64) atomic_uint_fast64_t head; /* of the writer: entries put so far */
	atomic_uint_fast64_t dropped;           /* that did not fit */
	uint64_t seen_tail;                     /* the writer's last look at tail */
	_Alignas(64) atomic_uint_fast64_t tail; /* of the reader: entries taken so far */
};

/* room: entries, rounded up to a power of two. */
int tap_new(size_t room, struct tap **ret_tap);
void tap_free(struct tap *t);

/* The writer's side: a few ns, never waits. */
static inline void tap_put(struct tap *t, const struct tap_entry *e)
{
	uint64_t head = atomic_load_explicit(&t->head, memory_order_relaxed);

	if (head - t->seen_tail > t->mask) {
		t->seen_tail = atomic_load_explicit(&t->tail, memory_order_acquire);
		if (head - t->seen_tail > t->mask) {
			uint64_t n = atomic_load_explicit(&t->dropped, memory_order_relaxed);

			atomic_store_explicit(&t->dropped, n + 1, memory_order_relaxed);
			return;
		}
	}
	t->entries[head & t->mask] = *e;
	atomic_store_explicit(&t->head, head + 1, memory_order_release);
}

/* Reader: take up to n of the oldest, in order; return their number. */
size_t tap_take(struct tap *t, struct tap_entry *ret_entries, size_t n);
uint64_t tap_dropped(const struct tap *t);
