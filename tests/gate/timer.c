/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers against a plain array: each expires once, at the first tick at or after its time, in
 * the order of ticks and, inside a tick, in the order in which they were set; and no call
 * exceeds its bound. */
#include "entries.h"

#define ENTRIES 300

struct model {
	struct timer t;
	union block e[ENTRIES];
	int64_t tick[ENTRIES];    /* when due; -1: not set */
	uint64_t serial[ENTRIES]; /* of the call that set it */
	uint64_t settings;
	weir_time now;
};

static void model_start(struct model *m, weir_time now)
{
	uint32_t out[1];

	entries_start(&m->t, m->e, ENTRIES);
	memset(m->tick, -1, sizeof m->tick);
	m->now = now;
	CHECK_INT(timer_expire(&m->t, now, out, 1), 0);
}

static void model_set(struct model *m, uint32_t i, int64_t tick)
{
	if (tick < m->t.now)
		tick = m->t.now; /* a past time is now, or the furthest tick so far */
	if (tick == m->tick[i])
		return;
	m->tick[i] = tick;
	m->serial[i] = m->settings++;
}

static void set(struct model *m, uint32_t i, weir_time when)
{
	int64_t tick = (int64_t)timer_tick(when);

	timer_set(&m->t, i, when);
	if (tick >= 0 && (m->tick[i] < 0 || tick < m->tick[i]))
		model_set(m, i, tick);
}

/* The same after any earlier setting. */
static void set_anew(struct model *m, uint32_t i, weir_time when)
{
	timer_set_tick(&m->t, &m->e[i].entry, i, timer_tick(when));
	if (when == WEIR_NEVER)
		m->tick[i] = -1;
	else
		model_set(m, i, (int64_t)timer_tick(when));
}

static void set_coarse(struct model *m, uint32_t i, weir_time when)
{
	timer_set_coarse(&m->t, &m->e[i].entry, i, when);
	if (when == WEIR_NEVER)
		m->tick[i] = -1;
	else
		model_set(m, i, (int64_t)timer_tick_coarse(when));
}

static void clear(struct model *m, uint32_t i)
{
	timer_clear(&m->t, i);
	m->tick[i] = -1;
}

/* Return the entry that expires first; ENTRIES: none is set. */
static uint32_t model_first(const struct model *m)
{
	uint32_t first = ENTRIES;

	for (uint32_t i = 0; i < ENTRIES; i++)
		if (m->tick[i] >= 0 &&
			(first == ENTRIES || m->tick[i] < m->tick[first] ||
				(m->tick[i] == m->tick[first] && m->serial[i] < m->serial[first])))
			first = i;
	return first;
}

/* Never late; and exact in the current slot. */
static void check_next(struct model *m)
{
	weir_time next = timer_next(&m->t);
	uint32_t first = model_first(m);

	if (first == ENTRIES) {
		CHECK_INT(next, WEIR_NEVER);
		return;
	}
	CHECK(next <= m->tick[first] * TIMER_TICK && next >= m->t.now * TIMER_TICK);
	if (m->tick[first] < m->t.edge[0])
		CHECK_INT(next, m->tick[first] * TIMER_TICK);
}

static uint64_t given, strict; /* entries that expired; of these, in order */

/* Make one call: it stays within its bound, and returns what the array has. Return true if that
 * was all. */
static bool expire(struct model *m, uint32_t max)
{
	uint32_t out[ENTRIES], n;
	int64_t to = m->now / TIMER_TICK;
	uint64_t moves = m->t.moves;

	n = timer_expire(&m->t, m->now, out, max);
	CHECK(n <= max);
	CHECK(n + m->t.moves - moves <= max + TIMER_STEPS);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t first = model_first(m), e = out[k];

		/* (In order, unless they were too many.) */
		if (e != first && n + m->t.moves - moves < (max + TIMER_STEPS) / 2)
			FAIL("entry %u expired instead of %u", e, first);
		CHECK(m->tick[e] >= 0 && m->tick[e] <= to);
		CHECK(m->e[e].entry.tick < 0);
		CHECK_INT(timer_was(&m->e[e].entry), m->tick[e] * TIMER_TICK);
		m->tick[e] = -1;
		strict += e == first;
	}
	given += n;
	law_operations += n;
	check_next(m);
	uint32_t first = model_first(m);

	if (first == ENTRIES || m->tick[first] > to)
		return true;
	/* There is more: the call has reached its bound, and the return value says so. */
	CHECK(n == max || n + m->t.moves - moves == max + TIMER_STEPS);
	CHECK(timer_next(&m->t) <= m->now);
	return false;
}

static void expire_all(struct model *m, uint32_t max)
{
	for (unsigned calls = 0; !expire(m, max); calls++)
		CHECK(calls < 20 * ENTRIES);
}

/* timer_soon returns entries of the calendar, in the order of slots, each once: all that are in
 * cells, up to a time or the end of its array; more than `least` only up to that time. */
static void check_soon(struct model *m, uint32_t max, uint32_t least, weir_time until)
{
	uint32_t soon[ENTRIES + TIMER_WORDS], said[ENTRIES] = {0}, n;
	int64_t last = until / TIMER_TICK / TIMER_COARSE;
	int64_t end = m->t.edge[0] / TIMER_COARSE | m->t.mask, before = 0;

	n = timer_soon(&m->t, until, least, soon, max);
	CHECK(n <= max);
	for (uint32_t k = 0; k < n; k++) {
		int64_t slot = m->tick[soon[k]] / TIMER_COARSE;

		CHECK(soon[k] < ENTRIES && !said[soon[k]]++);
		CHECK(m->tick[soon[k]] >= m->t.edge[0] && slot >= before);
		CHECK(slot <= last || k < least || slot == before);
		before = slot;
	}
	for (uint32_t i = 0; i < ENTRIES && n < max; i++)
		if (m->tick[i] >= 0 && m->e[i].entry.next == TIMER_NIL &&
			m->tick[i] / TIMER_COARSE <= (last < end ? last : end))
			CHECK(said[i]);
}

static weir_time any_span(void)
{
	/* Many at the same few times are many in a slot. */
	if (law_chance(0.2))
		return (weir_time)law_between(1, 3) * 5 * WEIR_MS;
	return (weir_time)law_log(1, law_chance(0.1) ? 1e13 : law_chance(0.5) ? 1e8 : 1e5);
}

static void any_setting(struct model *m)
{
	uint32_t e = (uint32_t)law_below(ENTRIES);
	weir_time when = law_chance(0.01) ? WEIR_NEVER : m->now + any_span();

	switch (law_below(3)) {
	case 0:
		set(m, e, when);
		break;
	case 1:
		set_anew(m, e, when);
		break;
	default:
		set_coarse(m, e, when);
	}
}

static void as_an_array_says(void)
{
	for (unsigned k = 0; k < 30; k++) {
		static struct model m;
		double busy = law_log(0.05, 0.9), whole = law_chance(0.5);

		model_start(&m, k % 3 ? 0 : INT64_C(3155760000) * WEIR_SEC);
		for (unsigned i = 0; i < 5000; i++) {
			law_operations++;
			if (law_chance(busy)) {
				any_setting(&m);
				continue;
			}
			if (law_chance(0.2)) {
				clear(&m, (uint32_t)law_below(ENTRIES));
				continue;
			}
			weir_time next = timer_next(&m.t);

			check_next(&m);
			check_soon(&m, (uint32_t)law_between(1, ENTRIES), (uint32_t)law_below(4),
				m.now + any_span());
			if (next > m.now && next != WEIR_NEVER && law_chance(0.7))
				m.now = next;
			else
				m.now += any_span();
			/* Mostly everything, sometimes only one call. */
			if (law_chance(whole))
				expire_all(&m, (uint32_t)law_between(1, 40));
			else
				expire(&m, (uint32_t)law_between(1, 40));
		}
		/* With calls at timer_next it finishes, and soon. */
		for (unsigned looks = 0; timer_next(&m.t) != WEIR_NEVER; looks++) {
			weir_time next = timer_next(&m.t);

			m.now = next > m.now ? next : m.now;
			expire(&m, 16);
			CHECK(looks < 10 * ENTRIES);
		}
		CHECK_INT(m.t.set, 0);
		calendar_free(&m.t);
	}
}

/* A jump of time, even of years, costs only as much as the entries that are set. */
static void leaps(void)
{
	static struct model m;

	model_start(&m, 0);
	for (unsigned i = 0; i < 3000; i++) {
		for (unsigned k = (unsigned)law_below(20); k; k--)
			set_anew(&m, (uint32_t)law_below(ENTRIES),
				m.now + (weir_time)law_log(1e6, 1e17));
		uint64_t moves = m.t.moves, set = m.t.set;
		unsigned calls = 1;

		m.now += (weir_time)law_log(1e3, 1e16);
		while (!expire(&m, 64))
			calls++;
		CHECK(m.t.moves - moves <= set * TIMER_LEVELS);
		CHECK(calls <= 1 + set * TIMER_LEVELS / 64);
	}
	calendar_free(&m.t);
}

static void an_earlier_time_is_kept(void)
{
	static struct timer t;
	union block e[2];
	uint32_t out[2];

	entries_start(&t, e, 2);
	timer_set(&t, 0, 5000);
	timer_set(&t, 0, 90000);
	CHECK_INT(timer_expire(&t, 4095, out, 2), 0);
	CHECK_INT(timer_next(&t), 5120); /* the tick after 5000 */
	CHECK_INT(timer_expire(&t, 5120, out, 2), 1);
	CHECK_INT(out[0], 0);
	CHECK_INT(timer_expire(&t, 1000000, out, 2), 0);
	timer_set(&t, 1, 3000000);
	timer_set(&t, 1, 2000000);
	CHECK_INT(timer_expire(&t, 2000000 + TIMER_TICK, out, 2), 1);
	CHECK_INT(timer_expire(&t, 4000000, out, 2), 0);
	calendar_free(&t);
}

/* Entries of one tick expire in the order in which they were set, also if that was when it was
 * far away, if they were set to another time first, or if some come nearer before the others. */
static void ties_expire_as_set(void)
{
	static const weir_time spans[] = {20 * WEIR_US, 3 * WEIR_MS, 2 * WEIR_SEC, 400 * WEIR_SEC};
	static struct model m;

	model_start(&m, 5 * WEIR_SEC);
	for (unsigned k = 0; k < 4; k++) {
		uint64_t tick = timer_tick(m.now + spans[k]);

		for (uint32_t i = 0; i < ENTRIES / 2; i++)
			set_anew(&m, i, m.now + spans[k] + (weir_time)law_below(WEIR_SEC));
		for (uint32_t i = 0; i < ENTRIES / 2; i++)
			set_anew(&m, i * 7 % ENTRIES, (weir_time)tick << TIMER_TICK_BITS);
		/* As time goes on and they come nearer, so do others. */
		for (uint32_t i = ENTRIES / 2; i < ENTRIES; i++) {
			set_anew(&m, i * 7 % ENTRIES, (weir_time)tick << TIMER_TICK_BITS);
			m.now += spans[k] / ENTRIES;
			if (i % 5 == 0)
				expire(&m, 2);
		}
		m.now = (weir_time)tick << TIMER_TICK_BITS;
		expire_all(&m, 7);
		CHECK_INT(timer_next(&m.t), WEIR_NEVER);
	}
	calendar_free(&m.t);
}

/* All due at one moment or soon after one another, near or far away: every call stays within its
 * bound and returns some; and all expire, those of one moment in the order in which they were
 * set. */
static void all_at_once(weir_time spread)
{
	enum { N = 20000, MAX = 50 };
	static const weir_time spans[] = {
		100 * WEIR_US, 20 * WEIR_MS, 2 * WEIR_SEC, 200 * WEIR_SEC, 300000 * WEIR_SEC};
	static union block e[N];
	static struct timer t;

	entries_start(&t, e, N);
	for (unsigned k = 0; k < 10; k++) {
		weir_time now = (t.now << TIMER_TICK_BITS) + spans[k % 5] + 12345;
		uint32_t seen = 0, calls = 0, out[MAX];
		uint64_t moves = t.moves;

		for (uint32_t i = 0; i < N; i++)
			timer_set(&t, i, now + (weir_time)law_below(spread));
		CHECK(t.moves == moves);
		now += spread + (k < 5 ? TIMER_TICK : 10 * WEIR_SEC);
		while (t.set) {
			uint32_t n = timer_expire(&t, now, out, MAX);

			CHECK(n + t.moves - moves <= MAX + TIMER_STEPS);
			CHECK(timer_next(&t) <= now || !t.set);
			for (uint32_t i = 0; i < n && spread == 1; i++)
				CHECK_INT(out[i], seen + i);
			seen += n;
			moves = t.moves;
			calls++;
		}
		CHECK_INT(seen, N);
		CHECK(calls <= N / MAX * 2);
		law_operations += N;
	}
	calendar_free(&t);
}

static void all_at_one_moment(void)
{
	all_at_once(1);
}

static void all_in_one_slot(void)
{
	all_at_once(20 * WEIR_US);
}

static void all_in_a_second(void)
{
	all_at_once(WEIR_SEC);
}

/* Distant entries come nearer ahead of time, a few with every call, so that even many expire on
 * time; and calls that set entries help. */
static void many_come_nearer(void)
{
	enum { N = 20000, MAX = 50 };
	static union block e[N];
	static struct timer t;
	weir_time now = 0, half;
	uint32_t out[MAX], late = 0;

	entries_start(&t, e, N);
	half = (weir_time)(t.mask + 1) / 2 * TIMER_COARSE * TIMER_TICK;
	for (uint32_t i = 0; i < N; i++)
		timer_set(&t, i, 4 * half + (weir_time)i * half / N);
	while (t.set) {
		uint64_t moves = t.moves;
		uint32_t n = 0;

		if (timer_due(&t, now += 20 * WEIR_US)) /* else there is no call */
			n = timer_expire(&t, now, out, MAX);
		for (uint32_t k = 0; k < n; k++) {
			weir_time when = 4 * half + (weir_time)out[k] * half / N;

			CHECK(when <= now);
			late += when <= now - 21 * WEIR_US;
		}
		CHECK(n + t.moves - moves <= MAX + TIMER_STEPS);
		law_operations += n;
	}
	CHECK_INT(late, 0);
	calendar_free(&t);
}

/* The first tick, or beginning of a slot, at or after a time; the last times have none. */
static void first_ticks(void)
{
	static struct timer t;
	union block e[2];

	CHECK_INT(timer_tick(0), 0);
	CHECK_INT(timer_tick(1), 1);
	CHECK_INT(timer_tick(TIMER_TICK), 1);
	CHECK_INT(timer_tick(TIMER_TICK + 1), 2);
	for (weir_time k = 0; k < 3; k++) {
		const weir_time slot = TIMER_COARSE * TIMER_TICK;

		CHECK_INT(timer_tick_coarse(k * slot), k * TIMER_COARSE);
		CHECK_INT(timer_tick_coarse(k * slot + 1), (k + 1) * TIMER_COARSE);
		CHECK_INT(timer_coarse(k * slot), k * slot);
		CHECK_INT(timer_coarse((k + 1) * slot - 1), k * slot);
	}
	CHECK(timer_tick(WEIR_NEVER) == TIMER_NEVER);
	entries_start(&t, e, 2);
	timer_set(&t, 0, WEIR_NEVER);
	CHECK_INT(timer_next(&t), WEIR_NEVER);
	timer_set(&t, 0, WEIR_NEVER - TIMER_TICK);
	CHECK_INT(timer_next(&t), WEIR_NEVER);
	timer_set_coarse(&t, &e[0].entry, 0, WEIR_NEVER);
	CHECK_INT(timer_next(&t), WEIR_NEVER);
	timer_set(&t, 0, WEIR_NEVER - 2 * TIMER_TICK);
	CHECK(t.set == 1 && timer_next(&t) < WEIR_NEVER);
	calendar_free(&t);
}

/* An entry due in the past expires now. */
static void in_the_past(void)
{
	for (weir_time late = 1; late < 100; late++) {
		static struct timer t;
		const weir_time now = WEIR_SEC / TIMER_TICK * TIMER_TICK;
		union block e[2];
		uint32_t out[2];

		entries_start(&t, e, 2);
		CHECK_INT(timer_expire(&t, now, out, 2), 0);
		timer_set(&t, 1, now - late * TIMER_TICK);
		CHECK(timer_next(&t) <= now);
		CHECK(timer_due(&t, now));
		CHECK_INT(timer_expire(&t, now, out, 2), 1);
		calendar_free(&t);
	}
}

/* Entries set around the first ticks beyond the levels, in both orders, expire at their ticks. */
static void at_the_edges(void)
{
	static struct model m;

	for (unsigned k = 0; k < 60; k++) {
		weir_time start = WEIR_SEC + (weir_time)k * 7 * TIMER_COARSE * TIMER_TICK / 3;
		int64_t last = 0;

		model_start(&m, start);
		for (uint32_t i = 0; i < 36; i++) {
			uint32_t j = k % 2 ? 35 - i : i;
			int64_t tick = m.t.edge[j / 12] + (int64_t)(j % 3) - 1;

			set_anew(&m, i, tick * TIMER_TICK);
			last = tick > last ? tick : last;
		}
		/* Up to each in turn, and to the tick before. */
		for (uint32_t first; (first = model_first(&m)) != ENTRIES;) {
			m.now = (m.tick[first] - 1) * TIMER_TICK;
			if (m.now > start)
				expire_all(&m, 8);
			m.now += TIMER_TICK;
			expire_all(&m, 8);
		}
		CHECK(m.now == last * TIMER_TICK);
		calendar_free(&m.t);
	}
}

/* With a few distant entries, timer_next knows when the first expires. */
static void the_first_of_a_few(void)
{
	static struct timer t;
	union block e[16];

	entries_start(&t, e, 16);
	for (uint32_t i = 0; i < 16; i++)
		timer_set(&t, i, 300 * WEIR_SEC + (weir_time)(i * 7 % 16) * 20 * TIMER_TICK);
	CHECK_INT(timer_next(&t), (weir_time)timer_tick(300 * WEIR_SEC) * TIMER_TICK);
	calendar_free(&t);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "timer");
	RUN(as_an_array_says);
	RUN(leaps);
	RUN(an_earlier_time_is_kept);
	RUN(ties_expire_as_set);
	RUN(all_at_one_moment);
	RUN(all_in_one_slot);
	RUN(all_in_a_second);
	RUN(many_come_nearer);
	RUN(first_ticks);
	RUN(in_the_past);
	RUN(at_the_edges);
	RUN(the_first_of_a_few);
	CHECK(strict > given / 10 * 9);
	return law_end(150000);
}
