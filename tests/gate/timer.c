/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers against a plain array: at the first tick at or after their time, in order, each once. */
#include "entries.h"

#define ENTRIES 300

struct model {
	struct timer t;
	union block e[ENTRIES];
	int64_t tick[ENTRIES]; /* when due; -1: not set */
	weir_time now;
};

static int64_t tick_of(weir_time when)
{
	return (when + TIMER_TICK - 1) / TIMER_TICK;
}

static void set(struct model *m, uint32_t i, weir_time when)
{
	int64_t tick = when == WEIR_NEVER ? -1 : tick_of(when);

	timer_set(&m->t, i, when);
	if (tick < 0)
		return;
	if (tick < m->now / TIMER_TICK)
		tick = m->now / TIMER_TICK; /* the past is now */
	if (m->tick[i] < 0 || tick < m->tick[i])
		m->tick[i] = tick;
}

/* The same, whatever was set before. */
static void set_anew(struct model *m, uint32_t i, weir_time when)
{
	timer_set_tick(&m->t, &m->e[i].entry, i, timer_tick(when));
	timer_flush(&m->t);
	m->tick[i] = when == WEIR_NEVER ? -1 : tick_of(when);
}

/* All that is due by now, and nothing else; then nothing is left. */
static void expire(struct model *m, uint32_t batch)
{
	int64_t to = m->now / TIMER_TICK, last = 0;
	uint32_t out[ENTRIES], n;

	do {
		n = timer_expire(&m->t, m->now, out, batch);
		CHECK(n <= batch);
		for (uint32_t k = 0; k < n; k++) {
			CHECK(out[k] < ENTRIES);
			int64_t tick = m->tick[out[k]];

			if (tick < 0 || tick > to)
				FAIL("entry %u expired at tick %lld, set for %lld", out[k],
					(long long)to, (long long)tick);
			CHECK(tick >= last); /* in order */
			last = tick;
			m->tick[out[k]] = -1;
		}
		law_operations += n;
	} while (n == batch);
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (m->tick[i] >= 0 && m->tick[i] <= to)
			FAIL("entry %u, set for tick %lld, did not expire at %lld", i,
				(long long)m->tick[i], (long long)to);
}

static void check_next(struct model *m)
{
	weir_time next = timer_next(&m->t);
	int64_t first = INT64_MAX;

	for (uint32_t i = 0; i < ENTRIES; i++)
		if (m->tick[i] >= 0 && m->tick[i] < first)
			first = m->tick[i];
	if (first == INT64_MAX) {
		CHECK_INT(next, WEIR_NEVER);
		return;
	}
	CHECK(next <= first * TIMER_TICK); /* never late */
	if (first / TIMER_COARSE == m->now / TIMER_TICK / TIMER_COARSE)
		CHECK_INT(next, first * TIMER_TICK); /* near ones exactly */
}

/* Must timer_soon say entry i? If it is set to a slot of the calendar, up to the end of its array, and is in
 * the slot or in a queue of that slot alone. */
static bool is_soon(const struct model *m, uint32_t i)
{
	int64_t slot = m->tick[i] / TIMER_COARSE, now = m->t.now / TIMER_COARSE;
	bool apart = m->e[i].entry.place == TIMER_NIL;

	return m->tick[i] >= 0 && slot > now && slot <= (now | m->t.mask) && slot < m->t.edge &&
	       (!apart || slot >> TIMER_GROUP_BITS < m->t.split);
}

/* What does not hold any more, of all that is in queues. */
static uint32_t stale(const struct model *m)
{
	uint32_t n = m->t.store.n;

	for (uint32_t i = 0; i < ENTRIES; i++)
		n -= m->tick[i] >= 0 && m->e[i].entry.place == TIMER_NIL;
	return n;
}

/* Of n numbers, those that hold are in the order of their slots: if each is taken where it is first said, not
 * before those of an earlier slot. */
static void check_order(const struct model *m, const uint32_t *soon, uint32_t n)
{
	uint32_t from = 0, seen = 0, all = 0;

	for (uint32_t i = 0; i < ENTRIES; i++)
		all += is_soon(m, i);
	for (int64_t last = -1; seen < all;) {
		int64_t slot = INT64_MAX;
		uint32_t end = from;

		for (uint32_t i = 0; i < ENTRIES; i++)
			if (is_soon(m, i) && m->tick[i] / TIMER_COARSE > last &&
				m->tick[i] / TIMER_COARSE < slot)
				slot = m->tick[i] / TIMER_COARSE;
		for (uint32_t i = 0; i < ENTRIES; i++) {
			if (!is_soon(m, i) || m->tick[i] / TIMER_COARSE != slot)
				continue;
			uint32_t at = from;

			while (at < n && soon[at] != i)
				at++;
			if (at == n)
				FAIL("entry %u of slot %lld is not said, or too early", i,
					(long long)slot);
			end = at > end ? at : end;
			seen++;
		}
		from = end;
		last = slot;
	}
}

/* Until a time: the first of those n, all that must be said of slots up to it, and whole slots; or the few
 * that are wanted in any case. */
static void check_until(const struct model *m, const uint32_t *soon, uint32_t n)
{
	weir_time until = m->now + (weir_time)law_log(1, 1e9);
	int64_t last = until / TIMER_TICK / TIMER_COARSE;
	uint32_t some[9 * ENTRIES], k = timer_soon(&m->t, until, 0, some, 8 * ENTRIES), in = 0;
	uint32_t least = timer_soon(&m->t, m->now, 3, some, 8 * ENTRIES);

	CHECK(k <= n && least <= n && least >= (n < 3 ? n : 3));
	for (uint32_t i = 0; i < least; i++)
		CHECK_INT(some[i], soon[i]);
	for (uint32_t i = 0; i < ENTRIES; i++)
		in += is_soon(m, i) && m->tick[i] / TIMER_COARSE <= last;
	CHECK(k >= in);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint32_t at = 0;

		while (at < k && soon[at] != i)
			at++;
		if (is_soon(m, i) && m->tick[i] / TIMER_COARSE <= last)
			CHECK(at < k);
	}
	/* (Slots up to a time before the end of the array are whole, and of that time.) */
	if (last <= (m->t.now / TIMER_COARSE | m->t.mask))
		CHECK(k <= in + stale(m));
}

/* timer_soon says each that it must, in order, once; and besides no more than there are cells that do not hold
 * any more, and entries beyond the end of the calendar's array. */
static void check_soon(const struct model *m)
{
	uint32_t soon[9 * ENTRIES], must = 0, other = 0;
	uint32_t n = timer_soon(&m->t, WEIR_NEVER, 0, soon, 8 * ENTRIES);

	CHECK(n < 8 * ENTRIES);
	for (uint32_t i = 0; i < n; i++)
		CHECK(soon[i] < ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		must += is_soon(m, i);
		other += !is_soon(m, i) &&
			 m->tick[i] / TIMER_COARSE > (m->t.now / TIMER_COARSE | m->t.mask);
	}
	CHECK(n >= must && n <= must + stale(m) + other);
	check_order(m, soon, n);
	/* Fewer are the first of these. */
	uint32_t few[8 + TIMER_CELLS], k = timer_soon(&m->t, WEIR_NEVER, 0, few, 8);

	CHECK_INT(k, n < 8 ? n : 8);
	for (uint32_t i = 0; i < k; i++)
		CHECK_INT(few[i], soon[i]);
	check_until(m, soon, n);
}

static weir_time any_span(void)
{
	/* Many at the same few times are too many for their slots. */
	if (law_chance(0.2))
		return (weir_time)law_between(1, 3) * 5 * WEIR_MS;
	return (weir_time)law_log(1, law_chance(0.1) ? 1e13 : law_chance(0.5) ? 1e8 : 1e5);
}

static void as_an_array_says(void)
{
	for (unsigned k = 0; k < 30; k++) {
		static struct model m;

		m.now = k % 3 ? 0 : INT64_C(3155760000) * WEIR_SEC;
		double busy = law_log(0.05, 0.9);

		entries_start(&m.t, m.e, ENTRIES);
		memset(m.tick, -1, sizeof m.tick);
		expire(&m, 8);
		for (unsigned i = 0; i < 5000; i++) {
			uint32_t e = (uint32_t)law_below(ENTRIES);

			law_operations++;
			if (law_chance(busy)) {
				weir_time when = law_chance(0.01) ? WEIR_NEVER : m.now + any_span();

				(law_chance(0.5) ? set : set_anew)(&m, e, when);
			} else if (law_chance(0.2)) {
				timer_clear(&m.t, e);
				m.tick[e] = -1;
			} else {
				weir_time next = timer_next(&m.t);

				check_next(&m);
				check_soon(&m);
				if (next > m.now && next != WEIR_NEVER && law_chance(0.7))
					m.now = next;
				else
					m.now += any_span();
				expire(&m, (uint32_t)law_between(1, 40));
			}
		}
		/* By its own advice it comes to an end, and soon. */
		for (unsigned looks = 0; timer_next(&m.t) != WEIR_NEVER; looks++) {
			weir_time next = timer_next(&m.t);

			CHECK(next >= m.now - TIMER_TICK);
			m.now = next > m.now ? next : m.now;
			expire(&m, 16);
			CHECK(looks < 200 * ENTRIES);
		}
		CHECK_INT(m.t.set, 0);
		calendar_free(&m.t);
	}
}

/* What is beyond the far half turns expires in time, also if it is weeded while it comes nearer. */
static void beyond_comes_nearer(void)
{
	static struct model m;
	uint64_t weeding = 0, pouring = 0;

	m.now = 0;
	entries_start(&m.t, m.e, ENTRIES);
	memset(m.tick, -1, sizeof m.tick);
	for (unsigned i = 0; i < 60000; i++) {
		weir_time span = (weir_time)law_log(1e9, 3e10);

		set_anew(&m, (uint32_t)law_below(ENTRIES), m.now + span);
		weeding += m.t.weed == TIMER_Q_BEYOND + 1;
		pouring += m.t.pour == TIMER_Q_BEYOND;
		m.now += (weir_time)law_below(law_chance(0.1) ? 40 * WEIR_MS : WEIR_MS);
		expire(&m, 64);
	}
	CHECK(weeding > 20 && pouring > 20);
	calendar_free(&m.t);
}

/* A leap of time, be it of years: who is due expires, and it takes no longer than for those who are there. */
static void leaps(void)
{
	static struct model m;

	m.now = 0;
	entries_start(&m.t, m.e, ENTRIES);
	memset(m.tick, -1, sizeof m.tick);
	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned k = (unsigned)law_below(20); k; k--)
			set_anew(&m, (uint32_t)law_below(ENTRIES),
				m.now + (weir_time)law_log(1e6, 1e17));
		uint64_t before = m.t.steps, cells = m.t.store.n, set = m.t.set;

		m.now += (weir_time)law_log(1e3, 1e16);
		expire(&m, 64);
		CHECK(m.t.steps - before <= (set - m.t.set + 3) * (cells + 100));
		check_next(&m);
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

/* Those of one tick expire in the order in which they were set, also if they were set when it was far
 * away, were set to something else first, or were weeded; and cells do not become more and more. */
static void ties_expire_as_set(void)
{
	static const weir_time spans[] = {20 * WEIR_US, 3 * WEIR_MS, 2 * WEIR_SEC, 400 * WEIR_SEC};
	enum { N = 50 };
	static struct timer t;
	static union block e[N];
	weir_time now = 5 * WEIR_SEC;
	uint32_t out[N];

	entries_start(&t, e, N);
	CHECK_INT(timer_expire(&t, now, out, N), 0);
	for (unsigned k = 0; k < 4; k++) {
		uint64_t tick = timer_tick(now + spans[k]);

		for (uint32_t round = 0; round < 5; round++)
			for (uint32_t i = 0; i < N; i++)
				timer_set_tick(&t, &e[i].entry, i, tick + 1 + law_below(1000000));
		for (uint32_t i = 0; i < N; i++)
			timer_set_tick(&t, &e[i * 7 % N].entry, i * 7 % N, tick);
		CHECK(t.store.n <= queue_most(N));
		CHECK_INT(t.set, N);
		CHECK_INT(timer_expire(&t, now + spans[k] / 2, out, N), 0);
		CHECK_INT(timer_expire(&t, now + spans[k] - TIMER_TICK, out, N), 0);
		now = (weir_time)tick << TIMER_TICK_BITS;
		CHECK_INT(timer_expire(&t, now, out, N), N);
		for (uint32_t i = 0; i < N; i++)
			CHECK_INT(out[i], i * 7 % N);
		CHECK_INT(timer_next(&t), WEIR_NEVER);
	}
	calendar_free(&t);
}

/* However often it is set, there is room for it; and it expires once, when it was set to last. */
static void settings_do_not_pile_up(void)
{
	static struct timer t;
	static union block e[3];
	uint32_t out[3];

	entries_start(&t, e, 3);
	timer_set(&t, 2, 9 * WEIR_MS);
	for (uint32_t k = 0; k < 200000; k++) { /* also round the count of a cell */
		timer_set_tick(&t, &e[0].entry, 0, timer_tick(k % 2 ? WEIR_SEC : 7 * WEIR_MS));
		CHECK(t.store.n <= queue_most(3) && t.store.used <= t.store.room);
		CHECK_INT(t.set, 2);
	}
	CHECK_INT(timer_expire(&t, 8 * WEIR_MS, out, 3), 0);
	CHECK_INT(timer_next(&t), (weir_time)timer_tick(9 * WEIR_MS) << TIMER_TICK_BITS);
	CHECK_INT(timer_expire(&t, 2 * WEIR_SEC, out, 3), 2);
	CHECK_INT(out[0], 2);
	CHECK_INT(out[1], 0);
	calendar_free(&t);
}

/* However many there are, and wherever they are set to: no call does more for others than a few steps, as long
 * as time goes on without leaps, and there are never more cells than there is room for. */
static void no_call_does_much(void)
{
	enum { N = 20000, CALL = 2 * QUEUE_STEPS + QUEUE_COME + 1, FAR = 2000 };
	static struct timer t;
	static union block e[N];
	static uint32_t out[N];
	weir_time now = 0;
	uint32_t most = 0, pours = 0;

	entries_start(&t, e, N);
	/* Some are far, and stay so until they come nearer. */
	for (uint32_t i = 0; i < FAR; i++)
		timer_set_tick(&t, &e[i].entry, i, timer_tick((2 + i % 2) * WEIR_SEC));
	for (uint32_t k = 0; k < 600000; k++) {
		/* Most to a few times, more than their slots hold, which others have left; near
		 * ones, far ones, and some beyond. */
		static const weir_time spans[] = {
			WEIR_MS, 20 * WEIR_MS, 2 * WEIR_SEC, 200 * WEIR_SEC};
		weir_time span = spans[law_chance(0.01) ? 3 : law_below(3)];
		weir_time when = now + span - (now + span) % (span / 4);
		uint32_t i = (uint32_t)law_between(FAR, N - 1);
		uint64_t before = t.steps;

		timer_set_tick(&t, &e[i].entry, i, timer_tick(when + 1));
		CHECK(t.steps - before <= CALL);
		most = t.store.n > most ? t.store.n : most;
		pours += t.pour != TIMER_NIL;
		before = t.steps;
		now += 5 * WEIR_US;
		law_operations += timer_expire(&t, now, out, N);
		CHECK(t.steps - before <= CALL);
	}
	CHECK(most > queue_enough(N)); /* there was something to do */
	CHECK(most < queue_most(N));
	CHECK(pours > 100);
	CHECK(t.store.used <= t.store.room);
	calendar_free(&t);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "timer");
	RUN(as_an_array_says);
	RUN(beyond_comes_nearer);
	RUN(leaps);
	RUN(an_earlier_time_is_kept);
	RUN(ties_expire_as_set);
	RUN(settings_do_not_pile_up);
	RUN(no_call_does_much);
	return law_end(150000);
}
