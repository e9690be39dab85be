/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: detect sequential streams and track the data read ahead for them.
 *
 * METHOD  `streams` slots, searched linearly (a few dozen words). An IO that continues no stream
 *         replaces the least recently used slot; established streams count as 16 times fresher, so
 *         that random IOs evict each other, not the streams.
 */
#include "model/ahead.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT64_MAX

static void clear_stream(struct ahead *a, uint32_t i)
{
	struct ahead_stream *s = &a->streams[i];

	memset(s, 0, sizeof(*s));
	for (int c = 0; c < AHEAD_CHUNKS; c++) {
		s->chunks[c].unit = NOWHERE;
		s->chunks[c].stream = i;
	}
	a->next[i] = NOWHERE;
}

int ahead_init(struct ahead *a, uint32_t streams, uint32_t trigger)
{
	memset(a, 0, sizeof(*a));
	a->next = calloc(streams, sizeof(*a->next));
	a->streams = calloc(streams, sizeof(*a->streams));
	if (!a->next || !a->streams) {
		ahead_free(a);
		return -ENOMEM;
	}
	a->n = streams;
	a->trigger = trigger;
	for (uint32_t i = 0; i < streams; i++)
		clear_stream(a, i);
	return 0;
}

void ahead_free(struct ahead *a)
{
	free(a->next);
	free(a->streams);
	memset(a, 0, sizeof(*a));
}

static int find_stream(const struct ahead *a, uint64_t offset)
{
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->next[i] == offset)
			return (int)i;
	}
	return -1;
}

/* Return the slot to replace, or -1 if all wait for chunks. */
static int choose_victim(const struct ahead *a)
{
	uint64_t oldest = 0;
	int best = -1;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct ahead_stream *s = &a->streams[i];
		uint64_t age = (a->tick - s->used) >> (s->run >= a->trigger ? 4 : 0);

		if (!s->pending && (best < 0 || age > oldest)) {
			oldest = age;
			best = (int)i;
		}
	}
	return best;
}

struct ahead_stream *ahead_follow(struct ahead *a, uint64_t offset, uint64_t bytes)
{
	int i = find_stream(a, offset);
	struct ahead_stream *s;

	a->tick++;
	if (i < 0) {
		i = choose_victim(a);
		if (i < 0)
			return NULL;
		if (a->streams[i].through)
			clear_stream(a, (uint32_t)i);
		a->streams[i].run = 0;
	}
	s = &a->streams[i];
	s->used = a->tick;
	s->run++;
	a->next[i] = offset + bytes;
	return s->run > a->trigger ? s : NULL;
}

struct ahead_chunk *ahead_find(struct ahead_stream *s, uint64_t unit, uint64_t offset)
{
	struct ahead_chunk *c = &s->chunks[unit % AHEAD_CHUNKS];

	return c->unit == unit && c->from <= offset ? c : NULL;
}

struct ahead_chunk *ahead_ask(struct ahead_stream *s, uint64_t unit, uint64_t offset)
{
	struct ahead_chunk *c = &s->chunks[unit % AHEAD_CHUNKS];

	if (c->pending)
		return NULL;
	c->unit = unit;
	c->from = offset;
	c->pending = true;
	s->pending++;
	s->through = unit + 1;
	return c;
}

void ahead_wait(struct ahead_chunk *c, struct device_io *waiter)
{
	waiter->next = NULL;
	if (c->waiters)
		c->last->next = waiter;
	else
		c->waiters = waiter;
	c->last = waiter;
}

struct device_io *ahead_come(struct ahead *a, struct ahead_chunk *c)
{
	struct device_io *waiters = c->waiters;

	c->pending = false;
	c->waiters = NULL;
	a->streams[c->stream].pending--;
	return waiters;
}
