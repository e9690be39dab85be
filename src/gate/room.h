/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room: the arrays of a gate that grow with its nodes and lanes, and how much memory they are. Nothing here is on
 * the hot path. An array that has grown is in another place; if there is no memory for one, those before it
 * are larger than they need be, and all is as it was.
 */
#ifndef WEIR_GATE_ROOM_H
#define WEIR_GATE_ROOM_H

#include "gate/node.h"

/* How much room to make when there was so much: half as much again, but not less than `least`. */
static inline uint32_t room_more(uint32_t room, uint32_t least)
{
	uint32_t more = room + room / 2;

	return more > least ? more : least;
}

/* Grows one array to `n` items, the new ones zero. */
#define ROOM_GROW(array, had, n)                                                                   \
	room_grow(&(array), (size_t)(had) * sizeof *(array), (size_t)(n) * sizeof *(array), true)
/* The same with any values in the new ones. */
#define ROOM_MORE(array, had, n)                                                                   \
	room_grow(&(array), (size_t)(had) * sizeof *(array), (size_t)(n) * sizeof *(array), false)
/* `array` is where the pointer is, of whatever type: so it is copied. 0 or -ENOMEM, then unchanged. */
int room_grow(void *array, size_t old_size, size_t size, bool zero);

/* Room for so many nodes. 0 or -ENOMEM. */
int room_fit(struct weir_gate *g, uint32_t room);
/* Places of so many nodes and lanes, which are in turns, for heaps that know them; nothing in the order FAIR.
 * 0 or -ENOMEM. */
int room_places(struct weir_gate *g, uint32_t room);

#endif
