/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/event.h"
#include "base/rng.h"
#include "test.h"

static void earliest_first_then_in_order_of_arming(void)
{
	struct event_queue q;

	event_init(&q);
	CHECK_INT(event_reserve(&q, 10), 0);
	CHECK(event_next(&q) == WEIR_NEVER);
	event_arm(&q, 3, 50);
	event_arm(&q, 1, 20);
	event_arm(&q, 7, 50);
	event_arm(&q, 0, 50);
	CHECK_INT(event_next(&q), 20);
	CHECK_INT(event_pop(&q), 1);
	CHECK_INT(event_pop(&q), 3);
	CHECK_INT(event_pop(&q), 7);
	CHECK_INT(event_pop(&q), 0);
	CHECK_INT(q.popped, 4);
	CHECK(event_next(&q) == WEIR_NEVER);
	event_free(&q);
}

static void arming_moves_the_one_event(void)
{
	struct event_queue q;

	event_init(&q);
	CHECK_INT(event_reserve(&q, 4), 0);
	event_arm(&q, 0, 10);
	event_arm(&q, 1, 20);
	event_arm(&q, 0, 30); /* later */
	CHECK_INT(event_next(&q), 20);
	event_arm(&q, 0, 5); /* sooner */
	CHECK_INT(event_next(&q), 5);
	CHECK_INT(event_at(&q, 0), 5);
	event_arm(&q, 0, WEIR_NEVER); /* disarmed */
	CHECK_INT(event_pop(&q), 1);
	CHECK(event_next(&q) == WEIR_NEVER);
	CHECK(event_at(&q, 1) == WEIR_NEVER);
	event_arm(&q, 1, WEIR_NEVER); /* disarmed twice */
	event_free(&q);
}

/* An event armed again for the same time keeps its turn. */
static void the_same_time_keeps_the_turn(void)
{
	struct event_queue q;

	event_init(&q);
	CHECK_INT(event_reserve(&q, 4), 0);
	event_arm(&q, 2, 10);
	event_arm(&q, 3, 10);
	event_arm(&q, 2, 10);
	CHECK_INT(event_pop(&q), 2);
	event_arm(&q, 2, 10); /* a new event now */
	CHECK_INT(event_pop(&q), 3);
	CHECK_INT(event_pop(&q), 2);
	event_free(&q);
}

static void room_may_grow_while_armed(void)
{
	struct event_queue q;

	event_init(&q);
	CHECK_INT(event_reserve(&q, 1), 0);
	event_arm(&q, 0, 77);
	CHECK_INT(event_reserve(&q, 5000), 0);
	CHECK_INT(event_reserve(&q, 2), 0);
	CHECK_INT(event_at(&q, 0), 77);
	CHECK(event_at(&q, 4999) == WEIR_NEVER);
	event_arm(&q, 4999, 76);
	event_arm(&q, 0, 75);
	CHECK_INT(event_pop(&q), 0);
	CHECK_INT(event_pop(&q), 4999);
	event_free(&q);
}

/* A popped event is gone, whether it, another or no event is armed next. */
static void popped_is_gone(void)
{
	enum { FULL = 64 };
	struct event_queue q;

	event_init(&q);
	CHECK_INT(event_reserve(&q, FULL), 0);
	for (uint32_t id = 0; id < FULL; id++)
		event_arm(&q, id, 10 + id);
	CHECK_INT(event_pop(&q), 0);
	CHECK(event_at(&q, 0) == WEIR_NEVER);
	event_arm(&q, 0, WEIR_NEVER); /* not armed already */
	CHECK_INT(event_next(&q), 11);
	CHECK_INT(event_pop(&q), 1);
	event_arm(&q, 1, 12); /* the same again: after the one armed before it */
	CHECK_INT(event_next(&q), 12);
	CHECK_INT(event_pop(&q), 2);
	event_arm(&q, 3, 11); /* another */
	CHECK_INT(event_pop(&q), 3);
	event_arm(&q, 0, 11); /* up to two below the capacity */
	CHECK_INT(event_reserve(&q, 4 * FULL), 0);
	CHECK_INT(event_pop(&q), 0);
	CHECK_INT(event_pop(&q), 1);
	for (uint32_t id = 4; id < FULL; id++)
		CHECK_INT(event_pop(&q), id);
	CHECK(event_next(&q) == WEIR_NEVER);
	CHECK_INT(q.popped, 6 + FULL - 4);
	event_arm(&q, 5, 1);
	CHECK_INT(event_pop(&q), 5);
	event_free(&q); /* while it is the last one popped */
}

/* Compare with a linear search. */
static void agrees_with_a_search(void)
{
	enum { IDS = 40, STEPS = 100000 };
	weir_time at[IDS];
	uint64_t turn[IDS] = {0}, serial = 0;
	struct event_queue q;
	struct rng r;

	rng_init(&r, 7, "events");
	event_init(&q);
	CHECK_INT(event_reserve(&q, IDS), 0);
	for (int i = 0; i < IDS; i++)
		at[i] = WEIR_NEVER;
	for (int step = 0; step < STEPS; step++) {
		uint32_t id = (uint32_t)rng_below(&r, IDS), best = IDS;

		if (rng_below(&r, 3)) {
			weir_time when =
				rng_below(&r, 20) ? (weir_time)rng_below(&r, 30) : WEIR_NEVER;
			if (when != at[id])
				turn[id] = serial++;
			at[id] = when;
			event_arm(&q, id, when);
			continue;
		}
		for (uint32_t i = 0; i < IDS; i++) {
			if (at[i] != WEIR_NEVER &&
				(best == IDS || at[i] < at[best] ||
					(at[i] == at[best] && turn[i] < turn[best])))
				best = i;
		}
		CHECK(event_next(&q) == (best == IDS ? WEIR_NEVER : at[best]));
		if (best == IDS)
			continue;
		CHECK_INT(event_pop(&q), best);
		at[best] = WEIR_NEVER;
	}
	event_free(&q);
}

int main(void)
{
	RUN(earliest_first_then_in_order_of_arming);
	RUN(arming_moves_the_one_event);
	RUN(the_same_time_keeps_the_turn);
	RUN(room_may_grow_while_armed);
	RUN(popped_is_gone);
	RUN(agrees_with_a_search);
	return 0;
}
