/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes against a plain array: least tag first, exactly in a heap, to a quantum in a circle; also when
 * tags grow while they wait, when they lie beyond the circle, and when the lane is fitted anew. */
#include "gate/lane.h"
#include "law.h"
#include <errno.h>

#define ENTRIES 500

/* An entry is part of something larger. */
union block {
	struct {
		char before[64];
		struct lane_entry entry;
	};
	char bytes[POOL_STRIDE];
};

struct model {
	struct lane l;
	struct lane_home h;
	union block e[ENTRIES];
	bool inside[ENTRIES];
	uint32_t place[2 * ENTRIES];
	unsigned n;      /* entries in use */
	unsigned fitted; /* children that the lane was last fitted to */
	double step, now;
};

static void start(struct model *m, unsigned n, double step, bool keyed)
{
	memset(m, 0, sizeof *m);
	lane_init(&m->l, 0, 0, 0, offsetof(union block, entry), keyed, keyed ? m->place : NULL);
	m->h.nodes = (char *)m->e;
	m->n = n;
	m->step = step;
	for (unsigned i = 0; i < ENTRIES; i++)
		m->e[i].entry.at = LANE_OUT;
	m->fitted = n;
	CHECK_INT(lane_fit(&m->l, &m->h, n, step), 0);
	CHECK((m->l.buckets != NULL) == (n > LANE_HEAP_MAX && !keyed));
}

static void insert(struct model *m, uint32_t e, double tag)
{
	m->e[e].entry.tag = tag;
	lane_insert(&m->l, &m->h, e);
	m->inside[e] = true;
	CHECK(m->e[e].entry.at != LANE_OUT);
	law_operations++;
}

/* What lane_first gives has the least tag, or stands in the same place of the circle as that. */
static uint32_t check_first(struct model *m)
{
	uint32_t e = lane_first(&m->l, &m->h);
	double least = INFINITY;
	unsigned members = 0;

	for (unsigned i = 0; i < m->n; i++) {
		if (!m->inside[i])
			continue;
		members++;
		least = fmin(least, m->e[i].entry.tag);
	}
	CHECK_INT(m->l.members, members);
	CHECK((e == LANE_NIL) == (members == 0));
	if (e == LANE_NIL)
		return e;
	CHECK(e < m->n && m->inside[e]);
	double quantum = m->l.buckets ? m->l.quantum : 0;

	if (m->l.buckets ? floor(m->e[e].entry.tag / quantum) != floor(least / quantum)
			 : m->e[e].entry.tag != least)
		FAIL("%g came first, before %g (quantum %g)", m->e[e].entry.tag, least, quantum);
	CHECK(lane_first(&m->l, &m->h) == e); /* and stays so */
	return e;
}

static void pop(struct model *m, uint32_t e)
{
	lane_pop(&m->l, &m->h, e);
	CHECK_INT(m->e[e].entry.at, LANE_OUT);
	m->inside[e] = false;
	m->now = fmax(m->now, m->e[e].entry.tag);
	law_operations++;
}

/* From wherever it stands. */
static void take_out(struct model *m, uint32_t e)
{
	lane_remove(&m->l, &m->h, e);
	CHECK_INT(m->e[e].entry.at, LANE_OUT);
	m->inside[e] = false;
	law_operations++;
}

/* All that lane_soon says is inside, each once, and as many as asked for. */
static void check_soon(struct model *m)
{
	uint32_t soon[ENTRIES + CHAIN_CELLS];
	uint32_t most = (uint32_t)law_between(1, ENTRIES);
	uint32_t n = lane_soon(&m->l, soon, most);
	bool seen[ENTRIES] = {false};

	CHECK(n == (m->l.buckets ? (most < m->l.members ? most : m->l.members) : 0));
	for (uint32_t i = 0; i < n; i++) {
		CHECK(m->inside[soon[i]] && !seen[soon[i]]);
		seen[soon[i]] = true;
	}
}

/* A random step up, now and then far beyond any circle. */
static double any_step(const struct model *m)
{
	return law_chance(0.02) ? law_log(1, 1e4) * m->step : rng_double(&law_rng) * m->step;
}

static void random_case(unsigned n, unsigned rounds)
{
	static struct model m;

	start(&m, n, law_log(1e-3, 1e6), false);
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t e = (uint32_t)law_below(m.n);

		if (!m.inside[e])
			insert(&m, e,
				m.now + any_step(&m) - law_chance(0.1) * fmin(m.now, any_step(&m)));
		else if (law_chance(0.2))
			m.e[e].entry.tag += any_step(&m); /* found at the front */
		else if (law_chance(0.1))
			take_out(&m, e);
		if (law_chance(0.05))
			check_soon(&m);
		if (law_chance(0.6)) {
			e = check_first(&m);
			if (e != LANE_NIL && law_chance(0.9))
				pop(&m, e);
		}
		if (law_chance(0.001) && m.n < ENTRIES) { /* more children, or lighter ones */
			m.n += (unsigned)law_below(ENTRIES - m.n + 1);
			m.step *= law_chance(0.5) ? law_log(1, 20) : 1;
			CHECK_INT(lane_fit(&m.l, &m.h, m.n, m.step), 0);
			CHECK((m.l.buckets != NULL) ==
				(m.n > LANE_HEAP_MAX || m.fitted > LANE_HEAP_MAX));
			m.fitted = m.n > m.fitted ? m.n : m.fitted;
		}
	}
	double last = 0; /* all comes out, in order */

	for (uint32_t e; (e = check_first(&m)) != LANE_NIL;) {
		double quantum = m.l.buckets ? m.l.quantum : 0;

		CHECK(m.e[e].entry.tag >= last - quantum);
		last = fmax(last, m.e[e].entry.tag);
		pop(&m, e);
	}
	lane_free(&m.l);
}

static void heaps(void)
{
	for (unsigned i = 0; i < 20; i++)
		random_case((unsigned)law_between(1, LANE_HEAP_MAX), 3000);
}

static void circles(void)
{
	for (unsigned i = 0; i < 20; i++)
		random_case((unsigned)law_between(LANE_HEAP_MAX + 1, ENTRIES), 3000);
}

/* Keyed: keys fall as well as rise; always a heap. */
static void keyed(void)
{
	static struct model m;

	for (unsigned k = 0; k < 10; k++) {
		start(&m, (unsigned)law_between(2, ENTRIES), 1, true);
		for (unsigned i = 0; i < 5000; i++) {
			uint32_t e = (uint32_t)law_below(m.n);

			if (!m.inside[e]) {
				insert(&m, e, floor(law_log(1, 1e12)));
			} else if (law_chance(0.3)) {
				m.e[e].entry.tag = floor(m.e[e].entry.tag * rng_double(&law_rng));
				lane_lower(&m.l, &m.h, e);
			} else if (law_chance(0.3)) {
				m.e[e].entry.tag += floor(law_log(1, 1e6));
			} else if (law_chance(0.1)) {
				take_out(&m, e);
			}
			e = check_first(&m);
			if (e != LANE_NIL && law_chance(0.5))
				pop(&m, e);
		}
		lane_free(&m.l);
	}
}

static void equal_tags_in_order_of_entry(void)
{
	static struct model m;

	for (unsigned n = 10; n <= 400; n += 390) {
		start(&m, n, 100, false);
		for (uint32_t i = 0; i < n; i++)
			insert(&m, i, 1000);
		for (uint32_t i = 0; i < n; i++) {
			CHECK_INT(lane_first(&m.l, &m.h), i);
			pop(&m, i);
		}
		CHECK_INT(lane_first(&m.l, &m.h), LANE_NIL);
		lane_free(&m.l);
	}
}

/* Who leaves from the middle of a bucket leaves the others in their order. */
static void taking_out_keeps_the_order(void)
{
	static struct model m;

	start(&m, 400, 100, false);
	for (uint32_t i = 0; i < 400; i++)
		insert(&m, i, 1000);
	for (uint32_t i = 0; i < 400; i += 3)
		take_out(&m, i);
	for (uint32_t i = 0; i < 400; i++) {
		if (i % 3 == 0)
			continue;
		CHECK_INT(lane_first(&m.l, &m.h), i);
		pop(&m, i);
	}
	CHECK_INT(lane_first(&m.l, &m.h), LANE_NIL);
	lane_free(&m.l);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "lane");
	RUN(heaps);
	RUN(circles);
	RUN(keyed);
	RUN(equal_tags_in_order_of_entry);
	RUN(taking_out_keeps_the_order);
	return law_end(100000);
}
