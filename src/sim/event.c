/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "sim/event.h"
#include <errno.h>
#include <stdlib.h>

void event_init(struct event_queue *q)
{
	*q = (struct event_queue){0};
	heap_init(&q->heap, NULL);
}

void event_free(struct event_queue *q)
{
	heap_free(&q->heap);
	free(q->place);
	free(q->at);
	*q = (struct event_queue){0};
}

int event_reserve(struct event_queue *q, uint32_t ids)
{
	uint32_t room = q->ids ? q->ids : 64;

	if (ids <= q->ids)
		return 0;
	while (room < ids)
		room *= 2;
	if (array_resize(&q->place, room) < 0)
		return -ENOMEM;
	q->heap.place = q->place;
	if (array_resize(&q->at, room) < 0 || heap_reserve(&q->heap, room))
		return -ENOMEM;
	for (uint32_t id = q->ids; id < room; id++)
		q->at[id] = WEIR_NEVER;
	q->ids = room;
	return 0;
}

void event_close(struct event_queue *q)
{
	(void)heap_pop(&q->heap);
	q->hole = false;
}

void event_arm(struct event_queue *q, uint32_t id, weir_time at)
{
	if (q->at[id] == at)
		return;
	if (q->hole) {
		if (heap_min(&q->heap)->value == id) { /* the id was not armed, so `at` is a time */
			heap_move(&q->heap, 0, at, q->serial++);
			q->at[id] = at;
			q->hole = false;
			return;
		}
		event_close(q);
	}
	if (at == WEIR_NEVER)
		heap_remove(&q->heap, q->place[id]);
	else if (q->at[id] == WEIR_NEVER)
		heap_push(&q->heap, (struct heap_item){at, q->serial++, id});
	else
		heap_move(&q->heap, q->place[id], at, q->serial++);
	q->at[id] = at;
}

uint32_t event_pop(struct event_queue *q)
{
	uint32_t id;

	if (q->hole)
		event_close(q);
	id = (uint32_t)heap_min(&q->heap)->value;
	q->at[id] = WEIR_NEVER;
	q->popped++;
	q->hole = true;
	return id;
}
