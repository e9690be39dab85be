/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_LEAST 1024   /* slots of a calendar: 34 ms, */
#define TIMER_MOST  262144 /* 8.6 s */
#define TIMER_NONE  INT64_MAX
#define TIMER_AHEAD 32 /* slots, a millisecond: fetched that much ahead */

/* Numbers of slots: the calendar's, 0 …; then */
static uint32_t timer_far_slot(const struct timer *t, int64_t turn)
{
	return t->mask + 1 + (uint32_t)(turn % TIMER_FAR);
}
static uint32_t timer_tick_slot(const struct timer *t, int64_t tick)
{
	return t->mask + 1 + TIMER_FAR + (uint32_t)(tick % TIMER_COARSE);
}
static uint32_t timer_beyond(const struct timer *t)
{
	return t->mask + 1 + TIMER_FAR + TIMER_COARSE;
}
static uint32_t timer_slots(uint32_t calendar)
{
	return calendar + TIMER_FAR + TIMER_COARSE + 1;
}

/* Which half turn of time a tick is in. */
static int64_t timer_turn(const struct timer *t, int64_t tick)
{
	return tick >> (TIMER_COARSE_BITS + t->half);
}
/* The last half turn that is in the calendar. */
static int64_t timer_last_turn(const struct timer *t)
{
	return (t->edge >> t->half) - 1;
}

/* ---- which slots have entries */

static void timer_unmark(struct timer *t, uint32_t s)
{
	if (s <= t->mask) {
		t->bits[s / 64] &= ~(UINT64_C(1) << (s % 64));
		if (t->bits[s / 64])
			return;
		t->words[s / 4096] &= ~(UINT64_C(1) << (s / 64 % 64));
		if (!t->words[s / 4096])
			t->top &= ~(UINT64_C(1) << (s / 4096));
		return;
	}
	s -= t->mask + 1;
	if (s < TIMER_FAR)
		t->far[s / 64] &= ~(UINT64_C(1) << (s % 64));
	else if (s < TIMER_FAR + TIMER_COARSE)
		t->ticks &= ~(1u << (s - TIMER_FAR));
}

/* The first slot of the calendar from `from` on that has entries, without going round; UINT32_MAX. */
static uint32_t timer_scan_on(const struct timer *t, uint32_t from)
{
	uint32_t word = from / 64, high = from / 4096;
	uint64_t bits = t->bits[word] & (~UINT64_C(0) << (from % 64));

	if (bits)
		return word * 64 + (uint32_t)__builtin_ctzll(bits);
	/* Shifted twice: 64 at once would be undefined. */
	bits = t->words[high] & (~UINT64_C(0) << (word % 64) << 1);
	if (!bits) {
		bits = t->top & (~UINT64_C(0) << high << 1);
		if (!bits)
			return UINT32_MAX;
		high = (uint32_t)__builtin_ctzll(bits);
		bits = t->words[high];
	}
	word = high * 64 + (uint32_t)__builtin_ctzll(bits);
	return word * 64 + (uint32_t)__builtin_ctzll(t->bits[word]);
}

/* The first slot of time from `from` on, which is after now, that has entries in the calendar;
 * TIMER_NONE. */
static int64_t timer_first_from(const struct timer *t, int64_t from)
{
	uint32_t at = (uint32_t)from & t->mask, s;

	if (!t->top)
		return TIMER_NONE;
	s = timer_scan_on(t, at);
	if (s == UINT32_MAX)
		s = timer_scan_on(t, 0);
	from += (s - at) & t->mask;
	return from < t->edge ? from : TIMER_NONE; /* else it went round */
}

static int64_t timer_first(const struct timer *t)
{
	return timer_first_from(t, (t->now >> TIMER_COARSE_BITS) + 1);
}

/* The first far half turn that has entries; TIMER_NONE. */
static int64_t timer_first_far(const struct timer *t)
{
	/* They are in the same round of TIMER_FAR as the last one of the calendar, and after it. */
	int64_t round = timer_last_turn(t) / TIMER_FAR * TIMER_FAR;

	for (unsigned w = 0; w < TIMER_FAR / 64; w++)
		if (t->far[w])
			return round + 64 * w + __builtin_ctzll(t->far[w]);
	return TIMER_NONE;
}

/* ---- entries in slots */

void timer_flush(struct timer *t)
{
	uint32_t *words = (uint32_t *)t->slots;

	for (uint32_t k = 0; k < t->n_later; k++)
		words[(uint32_t)t->later[k]] = (uint32_t)(t->later[k] >> 32);
	t->n_later = 0;
}
_Static_assert(sizeof(struct timer_slot) == TIMER_PLACES * sizeof(uint32_t) &&
		       offsetof(struct timer_slot, cell) == 0,
	"a word a place");

/* Entry i becomes the last of a slot. */
static void timer_put(struct timer *t, struct timer_entry *e, uint32_t i, uint32_t s)
{
	struct timer_slot *in = &t->slots[s];
	unsigned used = t->count[s] & TIMER_USED;

	if (used < TIMER_CELLS) {
		timer_write(t, s, timer_take_cell(t, e, s), i);
		return;
	}
	e->next = e->prev = s | TIMER_END;
	if (used == TIMER_LIST) {
		e->prev = in->last;
		timer_entry(t, in->last)->next = i;
	} else {
		in->first = i;
		t->count[s]++;
	}
	in->last = i;
}

/* Where an entry of this tick, not in the past, belongs. */
static void timer_link(struct timer *t, struct timer_entry *e, uint32_t i)
{
	int64_t slot = e->tick >> TIMER_COARSE_BITS, turn = timer_turn(t, e->tick);

	if (slot == t->now >> TIMER_COARSE_BITS) {
		t->ticks |= 1u << (e->tick % TIMER_COARSE);
		timer_put(t, e, i, timer_tick_slot(t, e->tick));
	} else if (slot < t->edge) {
		timer_mark(t, (uint32_t)slot & t->mask);
		timer_put(t, e, i, (uint32_t)slot & t->mask);
		if (e->tick % TIMER_COARSE)
			t->count[(uint32_t)slot & t->mask] |= TIMER_FINE;
	} else if (turn / TIMER_FAR == timer_last_turn(t) / TIMER_FAR) {
		t->far[turn % TIMER_FAR / 64] |= UINT64_C(1) << (turn % 64);
		timer_put(t, e, i, timer_far_slot(t, turn));
	} else {
		timer_put(t, e, i, timer_beyond(t));
	}
}

/* Does a slot of this count have a list, and does that go on with i? */
static bool timer_listed(unsigned count, uint32_t i)
{
	return (count & TIMER_USED) == TIMER_LIST && !(i & TIMER_END);
}

/* Has it entries? */
static bool timer_alive(unsigned count)
{
	return (count & TIMER_ALIVE) || (count & TIMER_USED) == TIMER_LIST;
}

/* An entry was taken out of slot s: without any, it is as new. */
static void timer_less(struct timer *t, uint32_t s)
{
	if (timer_alive(t->count[s]))
		return;
	t->count[s] = 0;
	timer_unmark(t, s);
}

/* Takes an entry out of its slot's list. */
static void timer_unlist(struct timer *t, const struct timer_entry *e)
{
	bool first = e->prev & TIMER_END, last = e->next & TIMER_END;
	uint32_t s = e->prev & ~TIMER_END;

	if (first && last) {
		t->count[s]--;
		timer_less(t, s);
		return;
	}
	if (first)
		t->slots[s].first = e->next;
	else
		timer_entry(t, e->prev)->next = e->next;
	if (last)
		t->slots[e->next & ~TIMER_END].last = e->prev;
	else
		timer_entry(t, e->next)->prev = e->prev;
}

static void timer_unlink(struct timer *t, const struct timer_entry *e)
{
	if (e->next == TIMER_NIL)
		timer_less(t, timer_leave_cell(t, e));
	else
		timer_unlist(t, e);
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
	e->tick = at;
	t->set++;
	timer_link(t, e, i);
}

/* It is no longer set. */
static uint32_t timer_remove(struct timer *t, uint32_t i)
{
	struct timer_entry *e = timer_entry(t, i);

	timer_unlink(t, e);
	e->tick = -1;
	return i;
}

void timer_clear(struct timer *t, uint32_t i)
{
	if (timer_entry(t, i)->tick < 0)
		return;
	timer_remove(t, i);
	timer_flush(t);
	t->set--;
}

/* ---- time goes on */

/* An entry of a slot that time has reached, or that was brought nearer, is due, if there is room for it
 * in ret, or goes where it belongs now: how many of ret are used. */
POOL_HOT uint32_t timer_pass_on(
	struct timer *t, uint32_t i, uint32_t *ret, uint32_t n, uint32_t max)
{
	struct timer_entry *e = timer_entry(t, i);

	if (e->tick > t->now || n == max) {
		timer_link(t, e, i);
		return n;
	}
	ret[n] = i;
	return n + 1;
}

/* Empties a slot, which has entries: who is due is added to ret, which has n already; how many then. */
POOL_HOT uint32_t timer_pour(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n, uint32_t max)
{
	const struct timer_slot was = t->slots[s];
	unsigned count = t->count[s];

	t->count[s] = 0;
	timer_unmark(t, s);
	memset(t->slots[s].cell, 0xff, sizeof was.cell);
	for (unsigned k = 0; k < TIMER_CELLS; k++)
		if (was.cell[k] != TIMER_NIL)
			n = timer_pass_on(t, was.cell[k], ret, n, max);
	for (uint32_t i = was.first, next; timer_listed(count, i); i = next) {
		next = timer_entry(t, i)->next;
		if (!(next & TIMER_END))
			__builtin_prefetch(timer_entry(t, next), 1);
		n = timer_pass_on(t, i, ret, n, max);
	}
	timer_flush(t);
	return n;
}

/* The same of a slot all of whose entries are due, without a list, if there is room enough in ret. So it is
 * mostly, and no branch depends on who was taken out. */
POOL_HOT uint32_t timer_give(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n)
{
	uint32_t *cell = t->slots[s].cell;

	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		ret[n] = cell[k];
		n += cell[k] != TIMER_NIL;
		cell[k] = TIMER_NIL;
	}
	t->count[s] = 0;
	timer_unmark(t, s);
	return n;
}

/* The same if some are due only after the slot's beginning, but all before time goes on to: they are put in
 * order, and those of one tick stay in the order in which they were set. */
static uint32_t timer_give_fine(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n)
{
	uint32_t end = timer_give(t, s, ret, n);

	for (uint32_t k = n + 1; k < end; k++) {
		uint32_t i = ret[k], at = k;
		int64_t tick = timer_entry(t, i)->tick;

		for (; at > n && timer_entry(t, ret[at - 1])->tick > tick; at--)
			ret[at] = ret[at - 1];
		ret[at] = i;
	}
	return end;
}

/* The same for a tick, whose entries are all due; but those too many stay. */
static uint32_t timer_take(struct timer *t, uint32_t s, uint32_t *ret, uint32_t n, uint32_t max)
{
	const struct timer_slot *in = &t->slots[s];

	for (unsigned k = 0; k < TIMER_CELLS && n < max; k++)
		if (in->cell[k] != TIMER_NIL)
			ret[n++] = timer_remove(t, in->cell[k]);
	while (t->count[s] == TIMER_LIST && n < max)
		ret[n++] = timer_remove(t, in->first);
	return n;
}

/* The next half turn, of those that are far, that has entries; or, if there are only entries beyond, the
 * first of the next round, where they come nearer. TIMER_NONE: there is nothing. */
static int64_t timer_next_turn(const struct timer *t)
{
	int64_t far = timer_first_far(t);

	if (far == TIMER_NONE && t->count[timer_beyond(t)])
		return (timer_last_turn(t) / TIMER_FAR + 1) * TIMER_FAR;
	return far;
}

/* The slot that has what such a half turn is to bring. */
static uint32_t timer_turn_slot(const struct timer *t, int64_t turn)
{
	return turn / TIMER_FAR == timer_last_turn(t) / TIMER_FAR ? timer_far_slot(t, turn)
								  : timer_beyond(t);
}

/* Nothing is left of the present half turn: time goes on to the beginning of the next, or of a later one
 * that is not after `to`, if there is nothing before it; and so does the edge. As timer_pour. */
static uint32_t timer_turn_over(
	struct timer *t, int64_t to, uint32_t *ret, uint32_t n, uint32_t max)
{
	int64_t last = timer_last_turn(t), turn = last, next = timer_next_turn(t);
	uint32_t from = timer_turn_slot(t, next);

	if (!t->top) {
		turn = timer_turn(t, to);
		turn = turn < next ? turn : next - 1;
		turn = turn > last ? turn : last;
	}
	t->now = turn << (TIMER_COARSE_BITS + t->half);
	t->edge = (turn + 2) << t->half;
	if (next == turn + 1)
		n = timer_pour(t, from, ret, n, max);
	uint32_t s = (uint32_t)(t->now >> TIMER_COARSE_BITS) & t->mask;

	return t->count[s] ? timer_pour(t, s, ret, n, max) : n;
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
			n = timer_take(t, timer_tick_slot(t, tick), ret, n, max);
			timer_flush(t);
			continue;
		}
		int64_t slot = timer_first(t);

		if (slot > to >> TIMER_COARSE_BITS)
			break;
		uint32_t s = (uint32_t)slot & t->mask;

		bool simple = (t->count[s] & TIMER_USED) < TIMER_LIST && n + TIMER_CELLS <= max;

		t->now = slot << TIMER_COARSE_BITS;
		if (simple && t->count[s] < TIMER_FINE)
			n = timer_give(t, s, ret, n);
		else if (simple && to >> TIMER_COARSE_BITS > slot)
			n = timer_give_fine(t, s, ret, n);
		else
			n = timer_pour(t, s, ret, n, max);
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
		int64_t turn = timer_last_turn(t) << (TIMER_COARSE_BITS + t->half);

		n = timer_run(t, to < turn ? to : turn - 1, ret, n, max);
		if (n == max || to < turn)
			break;
		n = timer_turn_over(t, to, ret, n, max);
	}
	for (uint32_t k = 0; k < n; k++)
		timer_entry(t, ret[k])->tick = -1;
	t->set -= n;
	return n;
}

/* ---- what comes */

uint32_t timer_soon(const struct timer *t, uint32_t *ret, uint32_t max)
{
	int64_t slot = timer_first(t);
	uint32_t n = 0;

	/* Only the calendar, as far as its array goes on; and what is in the slots themselves. */
	if (slot == TIMER_NONE)
		return 0;
	for (uint32_t s = (uint32_t)slot & t->mask; s <= t->mask; s = timer_scan_on(t, s)) {
		const struct timer_slot *in = &t->slots[s];

		__builtin_prefetch(&t->slots[(s + TIMER_AHEAD) & t->mask], 1);
		for (unsigned k = 0; k < TIMER_CELLS && n < max; k++) {
			ret[n] = in->cell[k];
			n += in->cell[k] != TIMER_NIL;
		}
		if (n == max || ++s > t->mask)
			break;
	}
	return n;
}

/* The first tick of a slot's entries; `start`, before all of them, if they are too many. */
static weir_time timer_least(const struct timer *t, uint32_t s, int64_t start)
{
	const struct timer_slot *in = &t->slots[s];
	int64_t least = TIMER_NONE;

	if ((t->count[s] & TIMER_USED) == TIMER_LIST)
		return start << TIMER_TICK_BITS;
	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		if (in->cell[k] == TIMER_NIL)
			continue;
		int64_t tick = timer_entry(t, in->cell[k])->tick;

		least = tick < least ? tick : least;
	}
	return least << TIMER_TICK_BITS;
}

weir_time timer_next(const struct timer *t)
{
	int64_t slot, turn;

	if (!t->set)
		return WEIR_NEVER;
	if (t->ticks)
		return ((t->now & -TIMER_COARSE) | __builtin_ctz(t->ticks)) << TIMER_TICK_BITS;
	/* A slot's beginning would do, but saves a look for nothing if the entries are few enough to be
	 * asked. */
	for (slot = timer_first(t); slot != TIMER_NONE; slot = timer_first_from(t, slot + 1)) {
		uint32_t s = (uint32_t)slot & t->mask;

		if (timer_alive(t->count[s]))
			return timer_least(t, s, slot << TIMER_COARSE_BITS);
	}
	turn = timer_next_turn(t);
	return timer_least(t, timer_turn_slot(t, turn), turn << (TIMER_COARSE_BITS + t->half));
}

/* ---- room */

void timer_init(struct timer *t)
{
	*t = (struct timer){0};
}

void timer_free(struct timer *t)
{
	free(t->slots);
	free(t->count);
	free(t->bits);
}

size_t timer_memory(const struct timer *t)
{
	return t->slots ? timer_slots(t->mask + 1) * (sizeof *t->slots + 1) + (t->mask + 1) / 8 : 0;
}

/* About a slot of the calendar a timer. */
static uint32_t timer_calendar(uint32_t room)
{
	uint32_t slots = TIMER_LEAST;

	while (slots < TIMER_MOST && slots * 2 <= room / 3 * 5)
		slots *= 2;
	return slots;
}

/* Puts all that are set, those of one tick in order, into `out`. */
static void timer_unload(const struct timer *t, uint32_t *out)
{
	for (uint32_t s = 0; s < timer_slots(t->mask + 1); s++) {
		const struct timer_slot *in = &t->slots[s];

		for (unsigned k = 0; k < TIMER_CELLS; k++)
			if (in->cell[k] != TIMER_NIL)
				*out++ = in->cell[k];
		for (uint32_t i = in->first; timer_listed(t->count[s], i);
			i = timer_entry(t, i)->next)
			*out++ = i;
	}
}

/* A calendar of so many slots instead of the present one; n entries in it. */
static int timer_renew(struct timer *t, uint32_t calendar, const uint32_t *inside)
{
	struct timer fresh = {.entries = t->entries, .now = t->now, .set = t->set};

	fresh.slots = pool_array(NULL, 0, timer_slots(calendar) * sizeof *fresh.slots);
	fresh.count = pool_array(NULL, 0, timer_slots(calendar));
	fresh.bits = pool_array(NULL, 0, calendar / 64 * sizeof *fresh.bits);
	if (!fresh.slots || !fresh.count || !fresh.bits) {
		timer_free(&fresh);
		return -ENOMEM;
	}
	memset(fresh.slots, 0xff, timer_slots(calendar) * sizeof *fresh.slots);
	fresh.mask = calendar - 1;
	fresh.half = (unsigned)__builtin_ctz(calendar) - 1;
	fresh.edge = (timer_turn(&fresh, t->now) + 2) << fresh.half;
	timer_free(t);
	*t = fresh;
	for (uint32_t k = 0; k < t->set; k++)
		timer_link(t, timer_entry(t, inside[k]), inside[k]);
	timer_flush(t);
	return 0;
}

int timer_fit(struct timer *t, struct timer_entry *entries, uint32_t room)
{
	uint32_t calendar = timer_calendar(room), *inside;
	char *before = t->entries;
	int r;

	if (t->slots && calendar <= t->mask + 1) {
		t->entries = (char *)entries;
		return 0;
	}
	inside = malloc((t->set ? t->set : 1) * sizeof *inside);
	if (!inside)
		return -ENOMEM;
	t->entries = (char *)entries;
	if (t->slots) {
		timer_flush(t);
		timer_unload(t, inside);
	}
	r = timer_renew(t, calendar, inside);
	if (r)
		t->entries = before;
	free(inside);
	return r;
}
