/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"

#define TIMER_BRING 2  /* entries that timer_expire moves ahead of time; timer_move moves others */
#define TIMER_AHEAD 32 /* slots, a millisecond: prefetch distance */
#define TIMER_FEW   16 /* entries of a list that timer_next reads */
#define TIMER_LAST  (WEIR_NEVER >> TIMER_TICK_BITS) /* ticks: no time is later */

/* ---- levels */

/* Return the list of a level's slot. (Half of the lists of level 0 are used.) */
static uint32_t timer_list(const struct timer *t, unsigned level, int64_t tick)
{
	uint32_t slot = (uint32_t)((uint64_t)tick >> timer_bits(t, level));

	if (level == 1)
		return slot & t->mask;
	return t->mask + 1 + (level ? level - 1 : 0) * TIMER_FAR +
	       slot % (level ? TIMER_FAR : TIMER_COARSE);
}

/* Return the word with the bit of a list that is not the calendar's. */
static uint64_t *timer_used(struct timer *t, uint32_t list)
{
	return &t->used[(list - t->mask - 1) / TIMER_FAR];
}

static bool timer_empty(const struct timer *t, uint32_t list)
{
	return list <= t->mask ? !t->count[list] : timer_ends(t, list)->first & TIMER_LIST;
}

/* Reset slot s if it has no entries. */
static void timer_settle(struct timer *t, uint32_t s)
{
	if (t->count[s] & TIMER_ALIVE)
		return;
	t->count[s] = 0;
	marks_remove(&t->marks, s);
}

/* Note that a list has become empty. */
static void timer_unmark(struct timer *t, uint32_t list)
{
	if (list > t->mask) {
		*timer_used(t, list) &= ~(UINT64_C(1) << list % TIMER_FAR);
		return;
	}
	t->count[list] &= (uint8_t)~TIMER_MORE;
	timer_settle(t, list);
}

/* Return the start of a level's first slot that has entries, from `from` on, which is the start of a slot. */
static int64_t timer_first_of(const struct timer *t, unsigned level, int64_t from)
{
	unsigned bits = timer_bits(t, level);
	uint64_t slot = (uint64_t)from >> bits;

	if (level == 1) {
		uint32_t at = (uint32_t)slot & t->mask, s = MARKS_NONE;

		if (t->marks.top)
			s = marks_from(&t->marks, at);
		if (t->marks.top && s == MARKS_NONE)
			s = marks_from(&t->marks, 0);
		return s == MARKS_NONE ? TIMER_NONE
				       : from + ((int64_t)((s - at) & t->mask) << bits);
	}
	unsigned at = slot % TIMER_FAR;
	uint64_t word = t->used[level - 1];

	word = word >> at | word << (-at % TIMER_FAR);
	return word ? from + ((int64_t)__builtin_ctzll(word) << bits) : TIMER_NONE;
}

/* The same over all levels above 0; *ret_level is that slot's level, or 0 if a lower level has entries, too. */
static __attribute__((noinline)) int64_t timer_first_any(const struct timer *t, unsigned *ret_level)
{
	int64_t first = TIMER_NONE;

	for (unsigned l = 1; l < TIMER_LEVELS; l++) {
		int64_t start = timer_first_of(t, l, t->edge[l - 1]);

		if (start < first) {
			*ret_level = first == TIMER_NONE ? l : 0;
			first = start;
		}
		if (first < t->edge[l])
			break; /* all others are later */
	}
	return first;
}

/* The same. If many entries are set, one of the calendar's next slots has some. */
POOL_HOT int64_t timer_first(const struct timer *t, unsigned *ret_level)
{
	uint32_t at = (uint32_t)(t->edge[0] >> TIMER_COARSE_BITS) & t->mask;
	uint64_t word = t->marks.bits[at / 64] >> at % 64;

	*ret_level = 1;
	if (__builtin_expect(word != 0, 1)) {
		int64_t first = t->edge[0] + ((int64_t)__builtin_ctzll(word) << TIMER_COARSE_BITS);

		if (first < t->edge[1])
			return first;
	}
	return timer_first_any(t, ret_level);
}

/* ---- setting */

/* Return the link to the successor of an entry, or to the first of a list. */
static uint32_t *timer_after(const struct timer *t, uint32_t x)
{
	return x & TIMER_LIST ? &timer_ends(t, x & ~TIMER_LIST)->first : &timer_entry(t, x)->next;
}
/* Return the link to the predecessor of an entry, or to the last of a list. */
static uint32_t *timer_before(const struct timer *t, uint32_t x)
{
	return x & TIMER_LIST ? &timer_ends(t, x & ~TIMER_LIST)->last : &timer_entry(t, x)->prev;
}

/* Append entry i, which is e, to its slot of a level. */
static void timer_put(struct timer *t, struct timer_entry *e, uint32_t i, unsigned level)
{
	uint32_t list = timer_list(t, level, e->tick);

	if (level == 1 && (t->count[list] & (TIMER_USED | TIMER_MORE)) < TIMER_CELLS) {
		timer_take(t, e, i, list);
		return;
	}
	timer_wake(t, e->tick >> timer_bits(t, level) << timer_bits(t, level));
	if (level == 1)
		t->count[list] |= TIMER_MORE | (e->tick % TIMER_COARSE ? TIMER_FINE : 0);
	else
		*timer_used(t, list) |= UINT64_C(1) << list % TIMER_FAR;
	e->next = TIMER_LIST | list;
	e->prev = timer_ends(t, list)->last;
	*timer_after(t, e->prev) = i;
	timer_ends(t, list)->last = i;
}

void timer_link(struct timer *t, struct timer_entry *e, uint32_t i)
{
	unsigned level = 0;

	while (e->tick >= t->edge[level])
		level++;
	timer_put(t, e, i, level);
}

void timer_unlink(struct timer *t, const struct timer_entry *e)
{
	if (e->next == TIMER_NIL) {
		uint32_t s = e->prev / TIMER_WORDS;
		unsigned count = t->count[s], last = (count & TIMER_USED) - 1;

		t->slots[s].cell[e->prev % TIMER_WORDS] = TIMER_NIL;
		t->count[s] = (uint8_t)(count - TIMER_LIVE - (e->prev % TIMER_WORDS == last));
		timer_settle(t, s);
		return;
	}
	*timer_after(t, e->prev) = e->next;
	*timer_before(t, e->next) = e->prev;
	if (e->next == e->prev) /* both are the list, which is empty now */
		timer_unmark(t, e->next & ~TIMER_LIST);
}

/* ---- advance time */

struct timer_call {
	uint32_t *ret;
	uint32_t n, max; /* returned, and the most to return */
	uint32_t steps;  /* steps left */
};

#define TIMER_STAY TIMER_LEVELS

/* Return entry i, the first of a slot, to the caller of timer_expire if it is due by a tick, else move it to a lower
 * level. Return false if it was left in place: there are no steps left, no room, or `level` is TIMER_STAY. */
POOL_HOT bool timer_pass(
	struct timer *t, uint32_t i, int64_t due, unsigned level, struct timer_call *c)
{
	struct timer_entry *e = timer_entry(t, i);

	if (!c->steps || (e->tick > due && level == TIMER_STAY))
		return false;
	if (e->tick > due) {
		timer_put(t, e, i, level);
		t->moves++;
	} else if (c->n < c->max) {
		c->ret[c->n++] = i;
	} else {
		c->steps = 0; /* end the call */
		return false;
	}
	c->steps--;
	return true;
}

static void timer_drain_list(
	struct timer *t, uint32_t list, int64_t due, unsigned level, struct timer_call *c)
{
	struct timer_list *l = timer_ends(t, list);
	uint32_t i = l->first, next;

	for (; !(i & TIMER_LIST); i = next) {
		next = timer_entry(t, i)->next;
		__builtin_prefetch(timer_before(t, next), 1);
		if (!timer_pass(t, i, due, level, c))
			break;
	}
	if (i == l->first)
		return;
	l->first = i;
	*timer_before(t, i) = TIMER_LIST | list;
	if (i & TIMER_LIST)
		timer_unmark(t, list);
}

/* Remove entries from the front of a slot while steps are left: return those due by a tick, and move the others to a
 * lower level; with TIMER_STAY stop at the first of these. */
static void timer_drain(
	struct timer *t, uint32_t list, int64_t due, unsigned level, struct timer_call *c)
{
	if (list <= t->mask) {
		uint32_t *cell = t->slots[list].cell;

		for (unsigned k = 0; k < TIMER_CELLS; k++) {
			if (cell[k] == TIMER_NIL)
				continue;
			if (!timer_pass(t, cell[k], due, level, c))
				return;
			cell[k] = TIMER_NIL;
			t->count[list] = (uint8_t)(t->count[list] - TIMER_LIVE);
		}
		timer_settle(t, list);
	}
	timer_drain_list(t, list, due, level, c);
}

/* Set time to `now`: no entry is due before `tick`, nor in a slot that contains it. */
static void timer_advance(struct timer *t, int64_t now, int64_t tick)
{
	t->now = now;
	for (unsigned l = 0; l < TIMER_LEVELS - 1; l++) {
		int64_t width = INT64_C(1) << timer_bits(t, l + 1);

		tick = (tick + width - 1) & -width;
		if (tick <= t->edge[l])
			break; /* all higher ones are beyond it, too */
		t->edge[l] = tick;
	}
}

/* Move entries down to the calendar and the levels above it, as far ahead as these reach. */
static void timer_bring(struct timer *t, struct timer_call *c)
{
	unsigned l = 1;

	while (l < TIMER_LEVELS - 1 && c->steps) {
		int64_t low = l == 1 ? t->now & -TIMER_COARSE : t->edge[l - 1];
		int64_t width = INT64_C(1) << timer_bits(t, l + 1);
		uint32_t list = timer_list(t, l + 1, t->edge[l]);

		if (t->edge[l] > low + (l == 1 ? timer_reach(t) : width) ||
			t->edge[l] == t->edge[l + 1]) {
			l++; /* no room, or its entries have to come from higher up first */
		} else if (!timer_empty(t, list)) {
			timer_drain(t, list, -1, l, c);
		} else {
			t->edge[l] += width;
			l = 1;
		}
	}
	t->bring = l == TIMER_LEVELS - 1 ? t->edge[1] - timer_reach(t) : t->now;
}

/* Move one entry down ahead of time. */
static void timer_bring_one(struct timer *t)
{
	struct timer_call c = {.steps = 1};

	timer_bring(t, &c);
	t->left = t->now >= t->bring ? t->left - 1 : 0;
}

/* Return the first tick of the current slot that has entries; there is one. */
static int64_t timer_first_tick(const struct timer *t)
{
	return (t->now & -TIMER_COARSE) | __builtin_ctzll(t->used[0]);
}

/* Sort n entries of one slot by tick, keeping the order of those of one tick. `ret` has room for TIMER_CELLS. (No
 * branch: it would be mispredicted.) */
POOL_HOT void timer_sort(const struct timer *t, uint32_t *ret, uint32_t n)
{
	uint32_t key[TIMER_CELLS], was[TIMER_CELLS];

	for (uint32_t k = 0; k < TIMER_CELLS; k++) {
		was[k] = ret[k < n ? k : 0];
		key[k] = (uint32_t)(timer_entry(t, was[k])->tick % TIMER_COARSE) * TIMER_WORDS + k;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t rank = 0;

		for (uint32_t j = 0; j < n; j++)
			rank += key[j] < key[k];
		ret[rank] = was[k];
	}
}

/* Return the entries of slot s, which are all in cells, that are due by a tick. Move the others to the ticks. */
POOL_HOT void timer_give(struct timer *t, uint32_t s, int64_t to, struct timer_call *c)
{
	uint32_t *cell = t->slots[s].cell, *ret = c->ret + c->n, n = 0, due;

	/* (No branch depends on which cells were cleared.) */
	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		ret[n] = cell[k];
		n += cell[k] != TIMER_NIL;
		cell[k] = TIMER_NIL;
	}
	due = n;
	if (t->count[s] & TIMER_FINE) {
		if (n > 1)
			timer_sort(t, ret, n);
		while (due && timer_entry(t, ret[due - 1])->tick > to)
			due--;
		for (uint32_t k = due; k < n; k++, t->moves++)
			timer_put(t, timer_entry(t, ret[k]), ret[k], 0);
	}
	c->n += due;
	c->steps -= n;
	t->count[s] = 0;
	marks_remove(&t->marks, s);
}

/* Start a slot: its entries are due, or move to the ticks. */
static void timer_begin(struct timer *t, int64_t to, struct timer_call *c)
{
	uint32_t list = timer_list(t, 1, t->now), later = c->steps / 2;
	unsigned count = t->count[list];

	if (count < TIMER_MORE && !t->used[0] && c->n + TIMER_CELLS <= c->max &&
		c->steps >= TIMER_CELLS) {
		timer_give(t, list, to, c);
		t->edge[0] += TIMER_COARSE;
		return;
	}
	c->steps -= later;
	timer_drain(t, list, t->now, 0, c);
	c->steps += later;
	/* If that took half of the steps, return the other entries that are due in the order in which they were set,
	 * after those at the ticks: otherwise nothing might be returned for many calls. */
	if (!timer_empty(t, list)) {
		while (c->n < c->max && c->steps && t->used[0] && timer_first_tick(t) <= to)
			timer_drain(t, timer_list(t, 0, timer_first_tick(t)), to, 0, c);
		timer_drain(t, list, to, 0, c);
	}
	if (timer_empty(t, list))
		t->edge[0] += TIMER_COARSE;
}

/* Handle the end of the calendar, which is rare: there were too many entries to move ahead of time, or time has
 * leapt. As in timer_begin half of the steps are kept: with these return the entries that are due at the front of
 * each slot, the lowest level first. */
static void timer_turn(struct timer *t, int64_t to, struct timer_call *c)
{
	uint32_t later = c->steps / 2;
	unsigned l = 1;

	c->steps -= later;
	timer_bring(t, c);
	c->steps += later;
	while (t->edge[1] <= t->now && l < TIMER_LEVELS && c->steps) {
		int64_t start = timer_first_of(t, l, t->edge[l - 1]);
		uint32_t list = timer_list(t, l, start);
		bool begun = start <= t->now;

		if (start <= to)
			timer_drain(t, list, to, begun ? l - 1 : TIMER_STAY, c);
		if (start > to || !(begun || timer_empty(t, list)))
			l++;
	}
}

/* Do the next step before time is `to`; return false if there is nothing to do until `quiet`. */
POOL_HOT bool timer_step(struct timer *t, int64_t to, struct timer_call *c)
{
	unsigned level;

	if (t->edge[1] <= t->now) {
		timer_turn(t, to, c);
	} else if (t->edge[0] <= t->now) {
		timer_begin(t, to, c);
	} else if (t->used[0]) {
		int64_t tick = timer_first_tick(t);

		if (tick > to) {
			t->quiet = tick;
			return false;
		}
		t->now = tick;
		timer_drain(t, timer_list(t, 0, tick), tick, 0, c);
	} else {
		int64_t first = timer_first(t, &level);

		if (first > to) {
			t->quiet = first;
			return false;
		}
		timer_advance(t, first, first);
		if (t->edge[0] <= first && first < t->edge[1])
			timer_begin(t, to, c);
	}
	return true;
}

void timer_set_all(struct timer *t)
{
	while (t->n_taken != t->n_late) {
		const struct timer_late *late = &t->late[t->n_taken++ % TIMER_LATE];

		timer_set_now(t, timer_entry(t, late->entry), late->entry, late->tick);
	}
}

uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max)
{
	int64_t to = now >> TIMER_TICK_BITS;
	struct timer_call c = {.ret = ret, .max = max, .steps = max + TIMER_STEPS};
	uint64_t moves = t->moves;

	timer_set_all(t);
	c.steps -= (uint32_t)(t->moves - moves);
	t->quiet = 0;
	while (c.n < max && c.steps)
		if (!timer_step(t, to, &c)) {
			if (to > t->now)
				timer_advance(t, to, to + 1);
			break;
		}
	for (uint32_t k = 0; k < c.n; k++)
		timer_entry(t, ret[k])->tick = ~timer_entry(t, ret[k])->tick;
	t->set -= c.n;
	t->left = t->now < t->bring ? 0 : c.steps < TIMER_STEPS ? c.steps : TIMER_STEPS;
	for (unsigned k = 0; k < TIMER_BRING && t->left; k++)
		timer_bring_one(t);
	t->quiet = t->bring < t->quiet ? t->bring : t->quiet;
	return c.n;
}

void timer_move(struct timer *t, uint32_t i, uint64_t tick)
{
	struct timer_entry *e = timer_entry(t, i);

	if (e->tick >= 0) {
		timer_unlink(t, e);
		t->set--;
	}
	e->tick = -1;
	if (t->left)
		timer_bring_one(t);
	if (tick >= TIMER_LAST)
		return;
	e->tick = (int64_t)tick > t->now ? (int64_t)tick : t->now;
	t->set++;
	timer_link(t, e, i);
}

/* ---- upcoming expiries */

uint32_t timer_soon(
	const struct timer *t, weir_time until, uint32_t least, uint32_t *ret, uint32_t max)
{
	int64_t first = timer_first_of(t, 1, t->edge[0]), last = until >> TIMER_TICK_BITS;
	uint32_t n = 0, s = (uint32_t)(first >> TIMER_COARSE_BITS) & t->mask;

	/* Only the calendar, up to the end of its array. */
	if (first == TIMER_NONE)
		return 0;
	last = (last >> TIMER_COARSE_BITS) - (first >> TIMER_COARSE_BITS) + s;
	while (s <= t->mask && n < max && (s <= last || n < least)) {
		const struct timer_slot *slot = &t->slots[s];

		__builtin_prefetch(&t->slots[(s + TIMER_AHEAD) & t->mask], 1);
		for (unsigned k = 0; k < TIMER_CELLS; k++) {
			ret[n] = slot->cell[k];
			n += slot->cell[k] != TIMER_NIL;
		}
		if (t->count[s] & TIMER_MORE)
			ret[n++] = slot->more.first;
		if (++s <= t->mask)
			s = marks_from(&t->marks, s);
	}
	return n < max ? n : max;
}

/* Return the least tick of a slot's entries; `start` if there are too many to read. */
static int64_t timer_least(const struct timer *t, uint32_t list, int64_t start)
{
	int64_t least = TIMER_NONE;
	uint32_t i = timer_ends(t, list)->first;

	for (unsigned k = 0; list <= t->mask && k < TIMER_CELLS; k++)
		if (t->slots[list].cell[k] != TIMER_NIL &&
			timer_entry(t, t->slots[list].cell[k])->tick < least)
			least = timer_entry(t, t->slots[list].cell[k])->tick;
	for (unsigned n = 0; !(i & TIMER_LIST); i = timer_entry(t, i)->next) {
		if (++n > TIMER_FEW)
			return start;
		if (timer_entry(t, i)->tick < least)
			least = timer_entry(t, i)->tick;
	}
	return least;
}

weir_time timer_next(struct timer *t)
{
	unsigned level = 0;
	int64_t tick;

	timer_set_all(t);
	if (!t->set)
		return WEIR_NEVER;
	if (t->edge[0] <= t->now) {
		tick = t->now; /* a slot has begun, and timer_expire has not finished it */
	} else if (t->used[0]) {
		tick = timer_first_tick(t);
	} else {
		tick = timer_first(t, &level);
		/* The slot's start would be right, but if the entries are few, reading them saves a needless call. */
		if (tick < t->edge[level])
			tick = timer_least(t, timer_list(t, level, tick), tick);
	}
	return tick < TIMER_NONE ? tick << TIMER_TICK_BITS : WEIR_NEVER;
}
