/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes against plain arrays. Fair: the child that is served is eligible, and no eligible child
 * finishes earlier by more than the widths of their groups; for any child that enters, leaves
 * from the middle or is served, with tags that wrap. Keyed: the smallest key first. */
#include "gate/lane-impl.h"
#include "law.h"

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
	double cost[ENTRIES], weight[ENTRIES];
	double due[ENTRIES]; /* distance from its tag by which it must be served */
	uint32_t place[2 * ENTRIES];
	unsigned n; /* entries in use */
	double weights;
};

static void start(struct model *m, unsigned n, bool keyed)
{
	memset(m, 0, sizeof *m);
	lane_init(&m->l, 0, 0, 0, offsetof(union block, entry), keyed, keyed ? m->place : NULL);
	m->h.nodes = (char *)m->e;
	m->h.unit = LANE_UNIT;
	m->n = n;
	for (unsigned i = 0; i < ENTRIES; i++)
		m->e[i].entry.group = LANE_NONE;
	CHECK_INT(lane_fit(&m->l, n), 0);
}

static double step(const struct model *m, uint32_t e)
{
	return lane_step(&m->h, m->cost[e], m->weight[e]);
}

/* Entry e begins to wait for a request. */
static void wait_in_lane(struct model *m, uint32_t e)
{
	double ahead = (double)(int64_t)(m->e[e].entry.tag - m->l.now);

	m->due[e] = ldexp(1, (int)lane_width(&m->h, m->cost[e], m->weight[e]));
	/* (For less than that there may be no narrower group, if it is late.) */
	m->due[e] = fmax(fmax(m->due[e], 64), ahead);
}

static void join(struct model *m, uint32_t e, double cost, double weight)
{
	m->cost[e] = cost;
	m->weight[e] = weight;
	bool empty = lane_join(
		&m->l, &m->h, &m->e[e].entry, e, m->weight[e], lane_width(&m->h, cost, weight), 0);
	unsigned inside = 0;

	for (unsigned i = 0; i < m->n; i++)
		inside += m->inside[i];
	CHECK(empty == (inside == 0));
	m->inside[e] = true;
	wait_in_lane(m, e);
	law_operations++;
}

static void leave(struct model *m, uint32_t e)
{
	if (m->e[e].entry.group != LANE_NONE)
		lane_take(&m->l, &m->h, &m->e[e].entry);
	lane_leave(&m->l, &m->e[e].entry, m->weight[e]);
	CHECK(!m->e[e].entry.far);
	m->inside[e] = false;
	law_operations++;
}

static double width(const struct model *m, uint32_t e)
{
	return ldexp(1, m->l.groups[m->e[e].entry.group].key);
}

/* Check that the first child waits in the lane, and that no other child had to be first. Return
 * it. */
static uint32_t check_first(struct model *m)
{
	uint32_t e = lane_first(&m->l, &m->h);
	unsigned inside = 0;

	for (unsigned i = 0; i < m->n; i++)
		inside += m->inside[i];
	CHECK_INT(m->l.waits, inside);
	CHECK((e == LANE_NIL) == (inside == 0));
	if (e == LANE_NIL)
		return e;
	CHECK(e < m->n && m->inside[e]);
	int64_t ahead = (int64_t)(m->e[e].entry.tag - m->l.now);

	if ((double)ahead >= width(m, e) / 4 + 1)
		FAIL("%u is ahead by %lld, its width is %g", e, (long long)ahead, width(m, e));
	for (uint32_t i = 0; i < m->n; i++) {
		double begin = (double)(int64_t)(m->e[i].entry.tag - m->l.now);

		if (m->inside[i] && i != e && begin <= 0 &&
			begin + 1.25 * m->due[i] + 1 < (double)ahead + width(m, e) - 1)
			FAIL("%u, of tag %g and width %g, should go before %u, of %lld and %g", i,
				begin, m->due[i], e, (long long)ahead, width(m, e));
	}
	return e;
}

static void serve(struct model *m, uint32_t e, double cost)
{
	struct lane_entry *entry = &m->e[e].entry;
	double moved = step(m, e);

	lane_raise(&m->l, entry, moved);
	lane_take(&m->l, &m->h, entry);
	lane_serve(&m->l, entry, m->cost[e] * m->h.unit * LANE_WEIGHT_ONE, moved);
	if (!m->l.banked) /* a newcomer is served soon */
		CHECK((int64_t)(m->l.now - m->l.floor) >= -1);
	for (uint32_t i = 0; i < m->n; i++) /* V may have gone back */
		m->due[i] = fmax(m->due[i], (double)(int64_t)(m->e[i].entry.tag - m->l.now));
	m->cost[e] = cost;
	lane_put(&m->l, &m->h, entry, e, lane_width(&m->h, cost, m->weight[e]));
	wait_in_lane(m, e);
	law_operations++;
}

static void fair_case(unsigned n, unsigned rounds)
{
	static struct model m;
	double most = law_log(1, 1e9);

	start(&m, n, false);
	m.l.now = m.l.before = m.l.until = law_chance(0.5) ? 0 : UINT64_MAX - law_below(1 << 20);
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t e = (uint32_t)law_below(m.n);

		if (!m.inside[e] && law_chance(0.5))
			join(&m, e, ceil(law_log(1, most)), law_log(1.0 / 1024, 1 << 20));
		else if (m.inside[e] && law_chance(0.05))
			leave(&m, e);
		e = check_first(&m);
		if (e != LANE_NIL && law_chance(0.8))
			serve(&m, e, ceil(law_log(1, most)));
	}
	for (uint32_t e; (e = check_first(&m)) != LANE_NIL;)
		leave(&m, e);
	CHECK_INT(m.l.weight, 0);
	CHECK_INT(m.l.active, 0);
	lane_free(&m.l);
}

static void fair(void)
{
	for (unsigned i = 0; i < 60; i++) {
		law_case("fair", i);
		fair_case((unsigned)law_between(1, i % 2 ? 8 : ENTRIES), 3000);
	}
}

/* ---- banks */

static bool allowed(const struct model *m, uint32_t e)
{
	return LANE_KINDS & ~(unsigned)m->e[e].entry.without & m->l.allowed;
}

/* Return the distance from V to the entry's tag. */
static int64_t ahead_of(const struct model *m, uint32_t e)
{
	const struct lane_entry *entry = &m->e[e].entry;
	const struct lane_bank *bank = &m->l.bank[entry->without];

	return (int64_t)(entry->tag + bank->base + (allowed(m, e) ? 0 : m->l.now - bank->frozen) -
			 m->l.now);
}

/* Check that the first child has an allowed kind, and that no other such child had to be first.
 * Return it. */
static uint32_t check_first_allowed(struct model *m)
{
	uint32_t e = lane_first(&m->l, &m->h);
	unsigned kinds = 0, n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		kinds |= m->inside[i] ? LANE_KINDS & ~(unsigned)m->e[i].entry.without : 0;
		n += m->inside[i] && allowed(m, i);
	}
	CHECK_INT(lane_kinds(&m->l), kinds);
	CHECK((e == LANE_NIL) == (n == 0));
	if (e == LANE_NIL)
		return e;
	CHECK(m->inside[e] && allowed(m, e));
	int64_t ahead = ahead_of(m, e);

	CHECK((double)ahead < width(m, e) / 4 + 1);
	for (uint32_t i = 0; i < m->n; i++) {
		double begin = (double)ahead_of(m, i);

		if (m->inside[i] && allowed(m, i) && begin <= 0 &&
			begin + 1.25 * width(m, i) + 1 < (double)ahead + width(m, e) - 1)
			FAIL("%u, of tag %g and width %g, should go before %u, of %lld and %g", i,
				begin, width(m, i), e, (long long)ahead, width(m, e));
	}
	return e;
}

/* Return the entry's tag as it would be if its bank were not frozen. */
static uint64_t true_tag(const struct model *m, uint32_t e)
{
	return m->l.now + (uint64_t)ahead_of(m, e);
}

/* Take V back until only a rounding error of the mean is left. */
static void settle(struct model *m)
{
	for (uint64_t was = ~m->l.now; was != m->l.now;) {
		was = m->l.now;
		lane_settle(&m->l);
	}
}

/* Allow other kinds. V may move, to the mean of the children that are not frozen now, but not what all children have
 * in advance of each other. */
static void allow(struct model *m, unsigned kinds)
{
	static uint64_t before[ENTRIES];

	settle(m);
	for (uint32_t i = 0; i < m->n; i++)
		before[i] = true_tag(m, i);
	lane_allow(&m->l, kinds);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->inside[i])
			CHECK_INT(true_tag(m, i), before[i]);
}

/* The tags of the children that may be served, and of those that ceased to wait ahead of V, rounded to the slots of
 * their groups; all relative to V, which is one of them. */
struct among {
	double least, most;
};

static void among(const struct model *m, struct among *a)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct lane_entry *entry = &m->e[i].entry;
		double tag = (double)ahead_of(m, i);
		double slot = m->inside[i] && entry->group != LANE_NONE ? width(m, i) : 1;

		if (!(m->inside[i] ? allowed(m, i) : m->l.past && entry->next == m->l.past_id))
			continue;
		a->least = fmin(a->least, tag - slot);
		a->most = fmax(a->most, tag + slot);
	}
}

/* Serve e. V moves to the mean of the tags and on by the service at most: so it stays among them. */
static void serve_among(struct model *m, uint32_t e, double cost)
{
	struct among a = {0};
	uint64_t was = m->l.now;
	double moved = 1.01 * step(m, e); /* (weights are rounded) */

	among(m, &a);
	serve(m, e, cost);
	double v = (double)(int64_t)(m->l.now - was);

	if (v < a.least - 1 || v > a.most + moved + 1)
		FAIL("V moved by %g, a service by %g, and the tags are from %g to %g", v, moved,
			a.least, a.most);
}

static void banks_case(unsigned n, unsigned rounds)
{
	static struct model m;
	double most = law_log(1, 1e9);

	start(&m, n, false);
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t e = (uint32_t)law_below(m.n);
		unsigned without = law_chance(0.3) ? 0 : (unsigned)law_below(LANE_BANKS);

		if (!m.inside[e] && law_chance(0.5)) {
			double weight = law_log(1.0 / 1024, 1 << 20);

			if (m.weight[e] > 0)
				lane_reweigh(&m.l, &m.h, &m.e[e].entry, m.weight[e], weight);
			m.e[e].entry.without = without & LANE_KINDS;
			join(&m, e, ceil(law_log(1, most)), weight);
		} else if (m.inside[e] && law_chance(0.05)) {
			leave(&m, e);
		} else if (m.inside[e] && law_chance(0.2)) {
			settle(&m);
			uint64_t before = true_tag(&m, e);

			lane_change(&m.l, &m.h, &m.e[e].entry, e, m.weight[e],
				lane_width(&m.h, m.cost[e], m.weight[e]), without);
			CHECK_INT(true_tag(&m, e), before);
		}
		if (law_chance(0.2))
			allow(&m, (unsigned)law_between(1, LANE_KINDS));
		e = check_first_allowed(&m);
		if (e != LANE_NIL && law_chance(0.8))
			serve_among(&m, e, ceil(law_log(1, most)));
	}
	for (uint32_t e = 0; e < m.n; e++)
		if (m.inside[e])
			leave(&m, e);
	CHECK_INT(m.l.active | m.l.frozen, 0);
	for (unsigned b = 0; b < LANE_BANKS; b++)
		CHECK_INT(m.l.bank[b].weight, 0);
	CHECK_INT(m.l.weight, 0);
	CHECK_INT(lane_kinds(&m.l), 0);
	lane_free(&m.l);
}

static void banks(void)
{
	for (unsigned i = 0; i < 60; i++) {
		law_case("banks", i);
		banks_case((unsigned)law_between(1, i % 2 ? 8 : 60), 3000);
	}
}

/* A frozen child neither gains nor loses: when it thaws the two share as in the beginning, after
 * any time. */
static void frozen_for_long(void)
{
	static struct model m;
	unsigned served[2] = {0};

	start(&m, 2, false);
	m.e[0].entry.without = 2;
	join(&m, 0, 1, 1);
	m.e[1].entry.without = 1;
	join(&m, 1, 1, 1);
	allow(&m, 1);
	for (unsigned i = 0; i < 10000; i++) {
		uint32_t e = check_first_allowed(&m);

		CHECK_INT(e, 0);
		serve(&m, e, 1);
	}
	allow(&m, 3);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t e = check_first_allowed(&m);

		served[e]++;
		serve(&m, e, 1);
	}
	CHECK(served[0] >= 49 && served[1] >= 49);
	lane_free(&m.l);
}

/* Keys decrease as well as increase. */
static void keyed(void)
{
	static struct model m;

	for (unsigned k = 0; k < 10; k++) {
		start(&m, (unsigned)law_between(2, ENTRIES), true);
		for (unsigned i = 0; i < 5000; i++) {
			uint32_t e = (uint32_t)law_below(m.n), first;
			struct lane_entry *entry = &m.e[e].entry;
			uint64_t least = UINT64_MAX;

			if (!m.inside[e] || law_chance(0.3)) {
				entry->tag = (uint64_t)law_log(1, 1e12);
				lane_key(&m.l, &m.h, e);
				m.inside[e] = true;
			} else if (law_chance(0.3)) {
				entry->tag += (uint64_t)law_log(1, 1e6); /* found at the front */
			} else if (law_chance(0.1)) {
				lane_key_out(&m.l, entry, e);
				m.inside[e] = false;
			}
			for (unsigned j = 0; j < m.n; j++)
				if (m.inside[j] && m.e[j].entry.tag < least)
					least = m.e[j].entry.tag;
			first = lane_first(&m.l, &m.h);
			CHECK((first == LANE_NIL) == (least == UINT64_MAX));
			if (first == LANE_NIL)
				continue;
			CHECK_INT(m.e[first].entry.tag, least);
			if (law_chance(0.5)) {
				lane_key_out(&m.l, &m.e[first].entry, first);
				m.inside[first] = false;
			}
			law_operations++;
		}
		lane_free(&m.l);
	}
}

/* Equal entries are served in the order of arrival, and one that leaves from the middle does not
 * change it. */
static void equals_in_order(void)
{
	static struct model m;

	start(&m, 400, false);
	for (uint32_t i = 0; i < 400; i++)
		join(&m, i, 100, 1);
	for (uint32_t i = 0; i < 400; i += 3)
		leave(&m, i);
	for (uint32_t i = 0; i < 400; i++) {
		if (i % 3 == 0)
			continue;
		CHECK_INT(lane_first(&m.l, &m.h), i);
		leave(&m, i);
	}
	CHECK_INT(lane_first(&m.l, &m.h), LANE_NIL);
	lane_free(&m.l);
}

/* The example of lane.h. */
static void example(void)
{
	static struct model m;
	const uint32_t order[] = {0, 1, 0, 2, 0, 1, 0, 2};

	start(&m, 3, false);
	join(&m, 0, 1, 2);
	join(&m, 1, 1, 1);
	join(&m, 2, 1, 1);
	for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
		CHECK_INT(lane_first(&m.l, &m.h), order[i]);
		serve(&m, order[i], 1);
	}
	lane_free(&m.l);
}

/* A tag ahead of V was served in advance and waits; an old tag, which only looks ahead since
 * tags wrap, does not. */
static void tags_of_the_past(void)
{
	static struct model m;

	start(&m, 3, false);
	join(&m, 0, 1000, 1);
	join(&m, 1, 1000, 1);
	serve(&m, 0, 1000);
	leave(&m, 0);
	join(&m, 0, 1000, 1);
	CHECK_INT(lane_first(&m.l, &m.h), 1);
	leave(&m, 0);
	m.e[0].entry.tag = m.l.now + (UINT64_C(1) << 61);
	join(&m, 0, 1000, 1);
	CHECK((int64_t)(m.e[0].entry.tag - m.l.now) <= 0);
	lane_free(&m.l);
}

/* A width is log2 of the smallest power of two not below cost per weight; a step is at most
 * LANE_STEP_MAX. */
static void widths_and_steps(void)
{
	const struct lane_home requests = {.unit = LANE_UNIT_REQUESTS}, bytes = {.unit = LANE_UNIT};

	CHECK_INT(lane_width(&bytes, 1, 1), 18);
	CHECK_INT(lane_width(&bytes, 3, 1), 20);
	CHECK_INT(lane_width(&bytes, 4, 1), 20);
	CHECK_INT(lane_width(&bytes, 5, 1), 21);
	CHECK_INT(lane_width(&bytes, 1, 0x1p20), 0);
	CHECK_INT(lane_width(&requests, 0x1p32, 1.0 / 1024), 60);
	for (unsigned i = 0; i < 1000; i++) {
		double cost = ceil(law_log(1, 1e6)), weight = (float)law_log(1, 1000);
		double exact = cost * LANE_UNIT / weight,
		       width = ldexp(1, (int)lane_width(&bytes, cost, weight));

		/* (Without a division: up to twice too large, and never too small.) */
		CHECK(exact <= width && width < 4 * exact);
		CHECK(lane_step(&bytes, cost, weight) == exact);
	}
	CHECK(lane_step(&requests, 0x1p32, 1.0 / 1024) == LANE_STEP_MAX);
}

/* Return the groups of a bank, one bit per key. */
static uint64_t bank_keys(const struct lane *l, unsigned without)
{
	uint64_t keys = 0;

	for (uint64_t left = l->active | l->frozen; left; left &= left - 1) {
		const struct lane_group *q = &l->groups[l->of[__builtin_ctzll(left)]];

		keys |= q->without == without ? UINT64_C(1) << q->key : 0;
	}
	return keys;
}

/* When no more groups can be opened, a child is put in the next wider group of its bank, or else
 * in the widest: and each bank has one. */
static void nearest_groups(void)
{
	static struct model m;
	uint32_t e = 0;
	unsigned nearest = 0;

	start(&m, 300, false);
	for (unsigned i = 0; i < 280; i++) {
		unsigned without = i < 240 ? i % 5 : i % 7;
		unsigned key = i < 240 ? i / 5 * 29 % 48 + 5 : i * 11 % 48 + 5;
		uint64_t had = bank_keys(&m.l, without), wider = had >> key << key;
		unsigned best = wider ? (unsigned)__builtin_ctzll(wider)
				: had ? 63 - (unsigned)__builtin_clzll(had)
				      : key;
		struct lane_entry *entry = &m.e[e].entry;

		entry->without = without & LANE_KINDS;
		lane_join(&m.l, &m.h, entry, e, 1, key, 0);
		unsigned got = m.l.groups[entry->group].key;

		CHECK_INT(m.l.groups[entry->group].without, without);
		CHECK(got == key || got == best);
		if (had >> key & 1)
			CHECK_INT(bank_keys(&m.l, without), had); /* not a second one */
		nearest += got != key;
		e++;
		law_operations++;
	}
	CHECK(nearest > 50);
	for (unsigned without = 0; without < LANE_BANKS; without++)
		CHECK(bank_keys(&m.l, without) != 0);
	lane_free(&m.l);
}

/* Return V, in cost per weight. */
static double virtual(const struct model *m)
{
	return (double)m->l.now / m->h.unit;
}

/* Two of equal weight; one is served, so that it is ahead of V by 50 and the other behind by as
 * much. If the first leaves, its weight counts until V reaches its tag; if the other leaves, V
 * does not jump ahead. */
static void one_of_two_leaves(void)
{
	static struct model m;

	for (uint32_t leaves = 0; leaves < 2; leaves++) {
		start(&m, 2, false);
		join(&m, 0, 100, 1);
		join(&m, 1, 100, 1);
		serve(&m, 0, 100);
		CHECK_NEAR(virtual(&m), 50, 1e-3);
		leave(&m, leaves);
		serve(&m, !leaves, 100);
		CHECK_NEAR(virtual(&m), leaves ? 150 : 100, 1e-3);
		lane_free(&m.l);
	}
}

/* A late child leaves and returns again and again: V must not stand still for longer because of
 * it. */
static void a_late_one_comes_and_goes(void)
{
	static struct model m;

	start(&m, 3, false);
	for (uint32_t i = 0; i < 3; i++)
		join(&m, i, 100, 1);
	serve(&m, 0, 100);
	double owed = m.l.owed;

	for (unsigned i = 0; i < 100; i++) {
		leave(&m, 1);
		join(&m, 1, 100, 1);
	}
	CHECK(m.l.owed >= owed - 100 * m.h.unit * LANE_WEIGHT_ONE);
	lane_free(&m.l);
}

static double weights(const struct model *m)
{
	return (double)m->l.weight / LANE_WEIGHT_ONE;
}

/* The weight of a child that ceased to wait ahead of V counts until V reaches its tag and no longer, whatever fraction
 * of a unit of W it has. */
static void a_fraction_of_a_weight_leaves(void)
{
	static struct model m;

	start(&m, 2, false);
	join(&m, 0, 1, 0.0019995);
	join(&m, 1, 0.1, 1);
	while (m.e[0].entry.tag == 0) {
		uint32_t e = lane_first(&m.l, &m.h);

		serve(&m, e, e ? 0.1 : 1);
	}
	leave(&m, 0);
	CHECK_INT(m.l.past, (int64_t)(0.0019995 * LANE_WEIGHT_ONE));
	while ((int64_t)(m.e[0].entry.tag - m.l.now) > 0) {
		CHECK_INT(m.l.past, (int64_t)(0.0019995 * LANE_WEIGHT_ONE));
		CHECK_INT(lane_first(&m.l, &m.h), 1);
		serve(&m, 1, 0.1);
	}
	CHECK_INT(m.l.past, 0);
	lane_free(&m.l);
}

/* The weight of a child that leaves ahead of V counts until V reaches its tag, or until it
 * returns; then once. */
static void leaves_in_advance(void)
{
	static struct model m;

	for (unsigned back = 0; back < 2; back++) {
		start(&m, 3, false);
		for (uint32_t i = 0; i < 3; i++)
			join(&m, i, 300, 1);
		serve(&m, 0, 300); /* V 100, its tag 300 */
		leave(&m, 0);
		CHECK_NEAR(weights(&m), 3, 0);
		serve(&m, 1, 300);
		CHECK_NEAR(virtual(&m), 200, 1e-3);
		if (back) {
			join(&m, 0, 300, 1);
			CHECK_NEAR(weights(&m), 3, 0);
		}
		serve(&m, 2, 300);
		CHECK_NEAR(virtual(&m), 300, 1e-3);
		CHECK_NEAR(weights(&m), back ? 3 : 2, 0);
		lane_free(&m.l);
	}
}

/* A child of a bank that was frozen for a while leaves, as far ahead of the other child as before. */
static void leaves_a_bank(void)
{
	static struct model m;
	struct lane_entry *entry = &m.e[1].entry;

	start(&m, 2, false);
	entry->without = 1;
	join(&m, 0, 100, 1);
	join(&m, 1, 100, 1);
	serve(&m, 1, 100); /* ahead of the other by 100, and of V by 50 */
	lane_allow(&m.l, 1);
	for (unsigned i = 1; i <= 5; i++) { /* V is the tag of the other child, which is alone */
		serve(&m, 0, 100);
		CHECK_NEAR(virtual(&m), 100 * i, 1e-3);
	}
	lane_allow(&m.l, LANE_KINDS);
	leave(&m, 1);
	CHECK_NEAR((double)(int64_t)(entry->tag - m.e[0].entry.tag) / m.h.unit, 100, 1e-3);
	lane_free(&m.l);
}

/* A child of large weight that is ahead, and whose kinds are not allowed, does not move V:
 * neither if it begins to wait then nor if it waits already. A flush of a child of little weight
 * once moved V beyond the range of a tag. */
static void a_frozen_child_moves_nothing(void)
{
	static struct model m;

	for (unsigned late = 0; late < 2; late++) {
		const unsigned data = 1, control = 4;
		struct lane_entry *heavy = &m.e[0].entry, *light = &m.e[1].entry;

		start(&m, 2, false);
		heavy->tag = UINT64_C(1) << 58; /* as far ahead */
		heavy->width = 58;
		heavy->without = LANE_KINDS & ~data;
		light->without = LANE_KINDS & ~control;
		lane_allow(&m.l, late ? control : LANE_KINDS);
		join(&m, 1, 1, 1 / 1024.0);
		join(&m, 0, 1, 1 << 20);
		lane_allow(&m.l, control);
		uint64_t before = m.l.now;

		CHECK_INT(lane_first(&m.l, &m.h), 1);
		serve(&m, 1, 1);
		CHECK(m.l.now - before <= (uint64_t)step(&m, 1));
		leave(&m, 1);
		CHECK_INT(lane_first(&m.l, &m.h), LANE_NIL);
		lane_allow(&m.l, LANE_KINDS);
		CHECK_INT(lane_first(&m.l, &m.h), 0);
		lane_free(&m.l);
	}
}

/* The first child that lacks a kind begins to wait while its other kinds are not allowed, and was counted as ahead of
 * V; another child is ahead as well. The lane's groups are known by number then, no longer by width. */
static void the_first_bank_is_frozen(void)
{
	static struct model m;

	start(&m, 4, false);
	for (uint32_t i = 0; i < 3; i++)
		join(&m, i, 300, 1);
	serve(&m, 0, 300);
	leave(&m, 0);
	m.e[3].entry.tag = m.l.now + (UINT64_C(1) << 30);
	m.e[3].entry.width = 31;
	join(&m, 3, 300, 1);
	lane_allow(&m.l, 1);
	m.e[0].entry.without = 1;
	join(&m, 0, 300, 1);
	CHECK(m.l.banked);
	CHECK(lane_first(&m.l, &m.h) != 0);
	lane_allow(&m.l, LANE_KINDS);
	leave(&m, 0);
	lane_free(&m.l);
}

/* A run continues with a child whose kinds are no longer allowed: they are allowed then, so that
 * its weight counts. */
static void a_frozen_child_is_served(void)
{
	static struct model m;

	start(&m, 2, false);
	m.e[1].entry.without = 1;
	join(&m, 0, 100, 1);
	join(&m, 1, 100, 1);
	lane_allow(&m.l, 1);
	CHECK_INT(m.l.weight, LANE_WEIGHT_ONE);
	serve(&m, 1, 100);
	CHECK_INT(m.l.allowed, LANE_KINDS);
	CHECK_INT(m.l.weight, 2 * LANE_WEIGHT_ONE);
	CHECK_NEAR(virtual(&m), 50, 1e-3);
	lane_free(&m.l);
}

/* However far V moves, a bank's sum is relative to a recent V. */
static void the_origin_of_sums(void)
{
	static struct model m;

	start(&m, 2, false);
	m.e[1].entry.without = 1;
	join(&m, 0, 0x1p31, 1.0 / 64);
	join(&m, 1, 0x1p31, 1.0 / 64);
	uint64_t origin = m.l.origin;

	for (unsigned i = 0; i < 100; i++) {
		serve(&m, check_first_allowed(&m), 0x1p31);
		const struct lane_bank *bank = &m.l.bank[1];
		double sum = (double)bank->weight *
			     (double)(int64_t)(m.e[1].entry.tag + bank->base - m.l.origin);

		CHECK(m.l.now - m.l.origin < UINT64_C(1) << 56);
		CHECK_NEAR(bank->ahead, sum, 0x1p40);
	}
	CHECK(m.l.origin - origin >= UINT64_C(1) << 57);
	lane_free(&m.l);
}

/* One child is served beside another, and both leave: it is ahead of V. */
static void beside(struct model *m, uint32_t e, double cost, double weight)
{
	uint32_t other = (e + 1) % 3;

	join(m, e, cost, weight);
	join(m, other, cost, weight);
	CHECK(lane_first(&m->l, &m->h) == e || lane_first(&m->l, &m->h) == other);
	serve(m, e, cost);
	leave(m, e);
	leave(m, other);
}

static void check_same(const struct model *a, const struct model *b, uint32_t e)
{
	CHECK(a->l.now == b->l.now && a->l.before == b->l.before);
	CHECK(a->l.weight == b->l.weight && a->l.owed == b->l.owed && a->l.floor == b->l.floor);
	CHECK(a->l.past == b->l.past && a->l.waits == b->l.waits);
	CHECK(a->e[e].entry.tag == b->e[e].entry.tag);
	CHECK_INT(a->e[e].entry.group == LANE_NONE, b->e[e].entry.group == LANE_NONE);
	CHECK_INT(a->e[e].entry.waits, b->e[e].entry.waits);
	if (!a->e[e].entry.waits)
		CHECK_INT(a->e[e].entry.width, b->e[e].entry.width);
}

/* A child that is served alone leaves the lane as if it had waited and been first. */
static void served_alone(void)
{
	static struct model a, b, c;

	start(&a, 3, false);
	start(&b, 3, false);
	start(&c, 3, false);
	for (unsigned i = 0; i < 5000; i++) {
		uint32_t e = (uint32_t)law_below(3);
		double weight = exp2(e * 4.0), cost = ceil(law_log(1, 1e6));

		if (i % 64 < 40) { /* V goes half round, and more, before others wait */
			weight = exp2(-10);
			cost = 0x1p31;
		} else if (law_chance(0.3)) {
			double before = ceil(law_log(1, 1e6));

			beside(&a, e, before, weight);
			beside(&b, e, before, weight);
			beside(&c, e, before, weight);
		}
		join(&a, e, cost, weight);
		CHECK_INT(lane_first(&a.l, &a.h), e);
		lane_serve_first(
			&a.l, &a.h, &a.e[e].entry, weight, cost, lane_step(&a.h, cost, weight));
		leave(&a, e);
		lane_serve_alone(&b.l, &b.h, &b.e[e].entry, weight, cost, 0);
		b.weight[e] = c.weight[e] = weight;
		leave(&b, e);
		lane_serve_by(&c.l, &c.h, &c.e[e].entry, weight, cost, 0);
		CHECK((int64_t)(b.l.now - b.l.until) >= 0); /* the next choice is a new one */
		CHECK((int64_t)(c.l.now - c.l.until) >= 0);
		check_same(&a, &b, e);
		check_same(&a, &c, e);
	}
	lane_free(&a.l);
	lane_free(&b.l);
	lane_free(&c.l);
}

/* The first is served, and waits again or leaves: in one step, or in several. */
static void served_in_one_step(void)
{
	static struct model a, b;

	start(&a, 20, false);
	start(&b, 20, false);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t e = (uint32_t)law_below(20);
		double cost = ceil(law_log(1, 1e4)), weight = law_log(1.0 / 1024, 1024);

		if (!a.inside[e] && law_chance(0.5)) {
			join(&a, e, cost, weight);
			join(&b, e, cost, weight);
		}
		e = lane_first(&a.l, &a.h);
		CHECK_INT(e, lane_first(&b.l, &b.h));
		if (e == LANE_NIL)
			continue;
		struct lane_entry *of_a = &a.e[e].entry, *of_b = &b.e[e].entry;
		double served = b.cost[e];

		weight = a.weight[e];
		lane_raise(&a.l, of_a, step(&a, e));
		if (law_chance(0.9)) {
			serve(&a, e, cost);
			b.cost[e] = cost;
			lane_serve_again(&b.l, &b.h, of_b, e, weight, served,
				lane_step(&b.h, served, weight), lane_width(&b.h, cost, weight));
		} else {
			lane_take(&a.l, &a.h, of_a);
			lane_serve(&a.l, of_a, served * a.h.unit * LANE_WEIGHT_ONE, step(&a, e));
			leave(&a, e);
			lane_serve_out(
				&b.l, &b.h, of_b, weight, served, lane_step(&b.h, served, weight));
			b.inside[e] = false;
		}
		check_same(&a, &b, e);
	}
	lane_free(&a.l);
	lane_free(&b.l);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "lane");
	RUN(fair);
	RUN(banks);
	RUN(frozen_for_long);
	RUN(keyed);
	RUN(equals_in_order);
	RUN(example);
	RUN(tags_of_the_past);
	RUN(widths_and_steps);
	RUN(nearest_groups);
	RUN(one_of_two_leaves);
	RUN(a_late_one_comes_and_goes);
	RUN(leaves_in_advance);
	RUN(a_fraction_of_a_weight_leaves);
	RUN(leaves_a_bank);
	RUN(a_frozen_child_moves_nothing);
	RUN(the_first_bank_is_frozen);
	RUN(a_frozen_child_is_served);
	RUN(the_origin_of_sums);
	RUN(served_alone);
	RUN(served_in_one_step);
	return law_end(100000);
}
