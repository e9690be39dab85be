/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"
#include "gate/queue.h"
#include <string.h>

#define TIMER_AHEAD 32 /* slots, a millisecond: fetched that much ahead */

/* ---- which slots have entries */

/* The first slot of time from `from` on, which is after now, that has entries in the calendar;
 * TIMER_NONE. */
static int64_t timer_first_from(const struct timer *t, int64_t from)
{
	uint32_t at = (uint32_t)from & t->mask, s;

	if (!t->marks.top)
		return TIMER_NONE;
	s = marks_from(&t->marks, at);
	if (s == MARKS_NONE)
		s = marks_from(&t->marks, 0);
	from += (s - at) & t->mask;
	return from < t->edge ? from : TIMER_NONE; /* else it went round */
}

static int64_t timer_first(const struct timer *t)
{
	return timer_first_from(t, (t->now >> TIMER_COARSE_BITS) + 1);
}

/* ---- setting */

void timer_flush(struct timer *t)
{
	uint32_t *words = (uint32_t *)t->slots;

	for (uint32_t k = 0; k < t->n_later; k++)
		words[(uint32_t)t->later[k]] = (uint32_t)(t->later[k] >> 32);
	t->n_later = 0;
}

/* Entry i becomes the last of a slot of the calendar. */
static void timer_put(struct timer *t, struct timer_entry *e, uint32_t i, int64_t slot)
{
	uint32_t s = (uint32_t)slot & t->mask;

	if ((t->count[s] & (TIMER_USED | TIMER_MORE)) < TIMER_CELLS) {
		timer_write(t, s, timer_take_cell(t, e, s), i);
	} else {
		queue_put(t, e, i, queue_of_slot(t, slot));
		t->count[s] |= (uint8_t)(TIMER_MORE | timer_fine(e->tick));
	}
	marks_add(&t->marks, s);
}

void timer_link(struct timer *t, struct timer_entry *e, uint32_t i)
{
	int64_t slot = e->tick >> TIMER_COARSE_BITS, turn = timer_turn(t, e->tick);

	if (slot == t->now >> TIMER_COARSE_BITS) {
		t->ticks |= 1u << (e->tick % TIMER_COARSE);
		queue_put(t, e, i, TIMER_Q_TICK + (uint32_t)(e->tick % TIMER_COARSE));
	} else if (slot < t->edge) {
		timer_put(t, e, i, slot);
	} else if (turn / TIMER_FAR == queue_last_turn(t) / TIMER_FAR) {
		t->far[turn % TIMER_FAR / 64] |= UINT64_C(1) << (turn % 64);
		queue_put(t, e, i, TIMER_Q_FAR + (uint32_t)(turn % TIMER_FAR));
	} else {
		queue_put(t, e, i, TIMER_Q_BEYOND);
	}
}

/* Has a slot of this count entries? */
static bool timer_alive(unsigned count)
{
	return count & (TIMER_ALIVE | TIMER_MORE);
}

/* What is in a queue stays there until its time, and does not hold any more. */
static void timer_unlink(struct timer *t, const struct timer_entry *e)
{
	if (e->place == TIMER_NIL)
		return;
	uint32_t s = timer_leave_cell(t, e);

	if (!timer_alive(t->count[s])) {
		t->count[s] = 0;
		marks_remove(&t->marks, s);
	}
}

/* ---- a few at a time */

/* Entry i, which was far, comes nearer: into the calendar, of which a half turn begins at the edge; or where
 * it is after that. */
static void timer_come(struct timer *t, struct timer_entry *e, uint32_t i)
{
	int64_t turn = timer_turn(t, e->tick), first = t->edge >> t->half;

	if (turn == first) {
		timer_put(t, e, i, e->tick >> TIMER_COARSE_BITS);
	} else if (turn / TIMER_FAR == first / TIMER_FAR) {
		t->far[turn % TIMER_FAR / 64] |= UINT64_C(1) << (turn % 64);
		queue_put(t, e, i, TIMER_Q_FAR + (uint32_t)(turn % TIMER_FAR));
	} else {
		queue_put(t, e, i, TIMER_Q_BACK);
	}
}

/* All that was to come into the calendar has. */
static void timer_come_end(struct timer *t)
{
	if (t->pour == TIMER_Q_BEYOND)
		t->queue[TIMER_Q_BEYOND] = queue_take(t, TIMER_Q_BACK);
	else
		t->far[(t->pour - TIMER_Q_FAR) / 64] &=
			~(UINT64_C(1) << ((t->pour - TIMER_Q_FAR) % 64));
	t->pour = TIMER_NIL;
	t->edge += INT64_C(1) << t->half;
}

/* So many cells of what is to come do. What does not hold any more goes. */
static void timer_come_some(struct timer *t, unsigned left)
{
	struct cells *from = &t->queue[t->pour];
	int64_t base = t->edge << TIMER_COARSE_BITS;

	queue_whole(t, t->pour);
	for (; left && !cells_empty(from); left--) {
		uint64_t cell = queue_pop(t, from);

		if (queue_holds_in(t, t->pour, cell, base))
			timer_come(t, queue_entry(t, cell), queue_number(cell));
		t->steps++;
	}
	if (cells_empty(from))
		timer_come_end(t);
}

void timer_come_all(struct timer *t)
{
	if (t->pour != TIMER_NIL)
		timer_come_some(t, UINT32_MAX);
	timer_flush(t);
}

static void timer_work(struct timer *t)
{
	if (t->store.n >= queue_most(t->room))
		queue_weed(t);
	if (t->pour != TIMER_NIL)
		timer_come_some(t, QUEUE_COME);
	queue_work(t);
}

#define TIMER_LAST (WEIR_NEVER >> TIMER_TICK_BITS) /* ticks: no time is after it */

void timer_move(struct timer *t, uint32_t i, uint64_t tick)
{
	struct timer_entry *e = timer_entry(t, i);
	int64_t at = (int64_t)tick > t->now ? (int64_t)tick : t->now;

	if (e->tick >= 0) {
		timer_unlink(t, e);
		t->set--;
	}
	e->tick = -1;
	if (tick >= TIMER_LAST)
		return;
	timer_work(t);
	e->tick = at;
	t->set++;
	timer_link(t, e, i);
}

void timer_clear(struct timer *t, uint32_t i)
{
	timer_move(t, i, TIMER_NEVER);
	timer_flush(t);
}

/* ---- time goes on */

/* Empties a slot all of whose entries are due and in it: they are added to ret, which has n already and room
 * enough; how many then. So it is mostly, and no branch depends on who was taken out. */
POOL_HOT uint32_t timer_give(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n)
{
	uint32_t *cell = t->slots[s].cell;

	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		ret[n] = cell[k];
		n += cell[k] != TIMER_NIL;
		cell[k] = TIMER_NIL;
	}
	t->count[s] = 0;
	marks_remove(&t->marks, s);
	return n;
}

#define TIMER_SORT                                                                                 \
	4 /* entries that are put in order without a branch, since nobody can predict it */

static void timer_order(uint64_t *a, uint64_t *b)
{
	uint64_t less = *a < *b ? *a : *b, more = *a < *b ? *b : *a;

	*a = less;
	*b = more;
}

/* Puts m entries into the order of their ticks, which are of one slot; those of one tick stay in theirs. There
 * is room for TIMER_SORT. */
POOL_HOT void timer_sort_few(const struct timer *t, uint32_t *ret, uint32_t m)
{
	uint64_t key[TIMER_SORT];

	for (uint32_t k = 0; k < TIMER_SORT; k++) {
		uint32_t i = ret[k < m ? k : 0];
		uint64_t tick = (uint64_t)timer_entry(t, i)->tick % TIMER_COARSE;

		key[k] = k < m ? (tick * TIMER_SORT + k) << 32 | i : UINT64_MAX;
	}
	timer_order(&key[0], &key[1]);
	timer_order(&key[2], &key[3]);
	timer_order(&key[0], &key[2]);
	timer_order(&key[1], &key[3]);
	timer_order(&key[1], &key[2]);
	for (uint32_t k = 0; k < TIMER_SORT; k++)
		ret[k] = (uint32_t)key[k];
}

/* The same, of any number. */
static void timer_sort(const struct timer *t, uint32_t *ret, uint32_t m)
{
	for (uint32_t k = 1; k < m; k++) {
		uint32_t i = ret[k], at = k;
		int64_t tick = timer_entry(t, i)->tick;

		for (; at > 0 && timer_entry(t, ret[at - 1])->tick > tick; at--)
			ret[at] = ret[at - 1];
		ret[at] = i;
	}
}

/* The same if some are due only after the slot's beginning, but all before time goes on to: they are put in
 * order, and those of one tick stay in the order in which they were set. */
static uint32_t timer_give_fine(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n)
{
	uint32_t end = timer_give(t, s, ret, n);

	if (end - n - 1 < TIMER_SORT)
		timer_sort_few(t, ret + n, end - n);
	else
		timer_sort(t, ret + n, end - n);
	return end;
}

/* A cell of a queue is due: is its entry? */
static uint32_t timer_claim(
	const struct timer *t, uint64_t cell, int64_t tick, uint32_t *ret, uint32_t n)
{
	struct timer_entry *e = queue_entry(t, cell);

	if (!queue_holds(e, cell, tick))
		return n;
	e->tick = -1;
	ret[n] = queue_number(cell);
	return n + 1;
}

/* What a slot has in its queue, now that it has begun: due, if there is room in ret, or to the ticks. */
static uint32_t timer_pour_more(
	struct timer *t, int64_t slot, uint32_t *ret, uint32_t n, uint32_t max)
{
	struct cells from = queue_take_slot(t, slot);

	while (!cells_empty(&from)) {
		uint64_t cell = queue_pop(t, &from);
		int64_t tick = queue_tick(cell, t->now);

		if (tick == t->now && n < max)
			n = timer_claim(t, cell, tick, ret, n);
		else
			queue_put_tick(t, cell, tick);
	}
	return n;
}

/* Time has reached a slot's beginning: all its entries are due, or go to the ticks. As timer_give. */
static uint32_t timer_pour(struct timer *t, int64_t slot, uint32_t *ret, uint32_t n, uint32_t max)
{
	uint32_t s = (uint32_t)slot & t->mask;
	unsigned count = t->count[s];
	const struct timer_slot was = t->slots[s];

	t->count[s] = 0;
	marks_remove(&t->marks, s);
	memset(t->slots[s].cell, 0xff, sizeof was.cell);
	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		if (was.cell[k] == TIMER_NIL)
			continue;
		struct timer_entry *e = timer_entry(t, was.cell[k]);

		if (e->tick > t->now || n == max)
			timer_link(t, e, was.cell[k]);
		else
			ret[n++] = was.cell[k];
	}
	return count & TIMER_MORE ? timer_pour_more(t, slot, ret, n, max) : n;
}

/* The same for a tick, whose entries are all due; but those too many stay. */
static uint32_t timer_take(struct timer *t, int64_t tick, uint32_t *ret, uint32_t n, uint32_t max)
{
	uint32_t q = TIMER_Q_TICK + (uint32_t)(tick % TIMER_COARSE);
	struct cells *c = &t->queue[q];

	queue_whole(t, q);
	while (!cells_empty(c) && n < max)
		n = timer_claim(t, queue_pop(t, c), tick, ret, n);
	if (cells_empty(c))
		t->ticks &= ~(1u << (tick % TIMER_COARSE));
	return n;
}

/* Nothing is left of the present half turn: time goes on to the beginning of the next, or of a later one
 * that is not after `to`, if there is nothing before it; and so does the edge. As timer_give. */
static uint32_t timer_turn_over(
	struct timer *t, int64_t to, uint32_t *ret, uint32_t n, uint32_t max)
{
	timer_come_all(t);
	int64_t last = queue_last_turn(t), turn = last, next = queue_next_turn(t);
	uint32_t from = queue_of_turn(t, next);

	if (!t->marks.top) {
		if (from == TIMER_Q_BEYOND)
			next = queue_leap(t, next, to);
		turn = timer_turn(t, to);
		turn = turn < next ? turn : next - 1;
		turn = turn > last ? turn : last;
	}
	t->now = turn << (TIMER_COARSE_BITS + t->half);
	t->edge = (turn + 1) << t->half;
	t->pour = from;
	if (next != turn + 1) {
		t->pour = TIMER_NIL;
		t->edge += INT64_C(1) << t->half;
	}
	int64_t slot = t->now >> TIMER_COARSE_BITS;

	return t->count[(uint32_t)slot & t->mask] ? timer_pour(t, slot, ret, n, max) : n;
}

/* The same within the present half turn, as far as `to`. */
POOL_HOT uint32_t timer_run(struct timer *t, int64_t to, uint32_t *ret, uint32_t n, uint32_t max)
{
	while (n < max) {
		if (t->ticks) {
			int64_t tick = (t->now & -TIMER_COARSE) | __builtin_ctz(t->ticks);

			if (tick > to)
				break;
			t->now = tick;
			n = timer_take(t, tick, ret, n, max);
			continue;
		}
		int64_t slot = timer_first(t);

		if (slot > to >> TIMER_COARSE_BITS)
			break;
		uint32_t s = (uint32_t)slot & t->mask;

		bool simple = t->count[s] < TIMER_MORE && n + TIMER_CELLS <= max;

		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): not beyond `to` */
		t->now = slot << TIMER_COARSE_BITS;
		if (simple && t->count[s] < TIMER_FINE)
			n = timer_give(t, s, ret, n);
		else if (simple && to >> TIMER_COARSE_BITS > slot)
			n = timer_give_fine(t, s, ret, n);
		else
			n = timer_pour(t, slot, ret, n, max);
	}
	if (n < max && to > t->now)
		t->now = to;
	return n;
}

uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max)
{
	int64_t to = now >> TIMER_TICK_BITS;
	uint32_t n = 0;

	timer_flush(t);
	for (;;) {
		int64_t turn = (timer_turn(t, t->now) + 1) << (TIMER_COARSE_BITS + t->half);

		n = timer_run(t, to < turn ? to : turn - 1, ret, n, max);
		if (n == max || to < turn)
			break;
		n = timer_turn_over(t, to, ret, n, max);
	}
	timer_work(t);
	timer_flush(t);
	for (uint32_t k = 0; k < n; k++)
		timer_entry(t, ret[k])->tick = -1;
	t->set -= n;
	return n;
}

/* ---- what comes */

uint32_t timer_soon(
	const struct timer *t, weir_time until, uint32_t least, uint32_t *ret, uint32_t max)
{
	int64_t slot = timer_first(t), last = until >> TIMER_TICK_BITS >> TIMER_COARSE_BITS;
	uint32_t n = 0;

	/* Only the calendar, as far as its array goes on; of queues, those that are of one slot. */
	if (slot == TIMER_NONE)
		return 0;
	for (uint32_t s = (uint32_t)slot & t->mask, from = s; s <= t->mask;
		s = marks_from(&t->marks, s)) {
		const struct timer_slot *in = &t->slots[s];
		int64_t at = slot + (s - from);

		if (at > last && n >= least)
			break;
		__builtin_prefetch(&t->slots[(s + TIMER_AHEAD) & t->mask], 1);
		for (unsigned k = 0; k < TIMER_CELLS; k++) {
			ret[n] = in->cell[k];
			n += in->cell[k] != TIMER_NIL;
		}
		if (n >= max)
			return max;
		if ((t->count[s] & TIMER_MORE) && at >> TIMER_GROUP_BITS < t->split)
			n += queue_peek(t, queue_of_slot(t, at), ret + n, max - n);
		if (n == max || ++s > t->mask)
			break;
	}
	return n;
}

/* The first tick of a slot's entries; its beginning if it has too many. */
static int64_t timer_least(const struct timer *t, int64_t slot)
{
	uint32_t s = (uint32_t)slot & t->mask;
	int64_t least = TIMER_NONE;

	if (t->count[s] & TIMER_MORE)
		return slot << TIMER_COARSE_BITS;
	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		uint32_t i = t->slots[s].cell[k];

		if (i != TIMER_NIL && timer_entry(t, i)->tick < least)
			least = timer_entry(t, i)->tick;
	}
	return least;
}

weir_time timer_next(struct timer *t)
{
	int64_t tick = TIMER_NONE, slot = timer_first(t), turn;

	if (!t->set)
		return WEIR_NEVER;
	while (t->ticks && tick == TIMER_NONE) {
		tick = (t->now & -TIMER_COARSE) | __builtin_ctz(t->ticks);
		tick = queue_least(t, TIMER_Q_TICK + (uint32_t)(tick % TIMER_COARSE), tick);
		if (tick == TIMER_NONE)
			t->ticks &= t->ticks - 1;
	}
	/* A slot's beginning would do, but saves a look for nothing if the entries are few enough to be
	 * asked. */
	for (; tick == TIMER_NONE && slot != TIMER_NONE; slot = timer_first_from(t, slot + 1))
		if (timer_alive(t->count[(uint32_t)slot & t->mask]))
			tick = timer_least(t, slot);
	if (tick == TIMER_NONE && t->pour != TIMER_NIL)
		tick = t->edge << TIMER_COARSE_BITS; /* it is coming */
	while (tick == TIMER_NONE) {
		turn = queue_next_turn(t);
		uint32_t q = queue_of_turn(t, turn);

		tick = queue_least(t, q, queue_base(t, q));
		if (tick == TIMER_NONE && q != TIMER_Q_BEYOND)
			t->far[turn % TIMER_FAR / 64] &= ~(UINT64_C(1) << (turn % 64));
	}
	return tick << TIMER_TICK_BITS;
}
