/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room: the arrays of a gate that grow with its nodes and lanes, and their memory use. Nothing here is on the hot
 * path. An array that has grown is at another address; if there is no memory for one, those before it stay larger
 * than needed, and the gate is otherwise unchanged.
 */
#pragma once

#include "gate/node.h"

/* Return the room to make after `room`: half as much again, but no less than `least`. */
static inline uint32_t room_more(uint32_t room, uint32_t least)
{
	uint32_t more = room + room / 2;

	return more > least ? more : least;
}

/* Grow one array to `n` items, the new ones zero. */
#define ROOM_GROW(array, had, n)                                                                   \
	room_grow(&(array), (size_t)(had) * sizeof *(array), (size_t)(n) * sizeof *(array), true)
/* The same without zeroing the new ones. */
#define ROOM_MORE(array, had, n)                                                                   \
	room_grow(&(array), (size_t)(had) * sizeof *(array), (size_t)(n) * sizeof *(array), false)
/* `array` is the address of a pointer of any type: so it is copied. Return 0, or -ENOMEM, then unchanged. */
int room_grow(void *array, size_t old_size, size_t size, bool zero);

/* Make room for this many nodes. Return 0 or -ENOMEM. */
int room_fit(struct weir_gate *g, uint32_t room);
/* Make room for the places of this many nodes and lanes, interleaved, for the heaps of keyed lanes; does nothing in
 * the order FAIR. Return 0 or -ENOMEM. */
int room_places(struct weir_gate *g, uint32_t room);
