/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains against plain arrays: first in, first out; and no more blocks than the header says. */
#include "gate/chain.h"
#include "law.h"

#define CHAINS  7
#define NUMBERS 60 /* in one chain at the most */

struct model {
	struct chain_store s;
	struct chain c[CHAINS];
	uint32_t number[CHAINS][NUMBERS];
	unsigned n[CHAINS];
	uint32_t next;
};

static void put(struct model *m, unsigned c, unsigned most)
{
	if (m->n[c] == most)
		return;
	if (m->n[c])
		chain_append(&m->s, &m->c[c], m->next);
	else
		chain_begin(&m->c[c], m->next);
	m->number[c][m->n[c]++] = m->next++;
}

static void pop(struct model *m, unsigned c)
{
	if (!m->n[c])
		return;
	m->n[c]--;
	CHECK_INT(chain_pop(&m->s, &m->c[c]), m->n[c] == 0);
	for (unsigned i = 0; i < m->n[c]; i++)
		m->number[c][i] = m->number[c][i + 1];
	law_operations++;
}

static void check(const struct model *m, unsigned c)
{
	uint32_t out[NUMBERS + CHAIN_CELLS], most = 1 + (uint32_t)law_below(NUMBERS), n;

	if (!m->n[c])
		return;
	CHECK_INT(chain_first(&m->s, &m->c[c]), m->number[c][0]);
	n = chain_peek(&m->s, &m->c[c], out, most);
	CHECK_INT(n, most < m->n[c] ? most : m->n[c]);
	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(out[i], m->number[c][i]);
}

static unsigned blocks_most(unsigned numbers)
{
	unsigned most = 2 + (numbers - 2 + CHAIN_CELLS - 1) / CHAIN_CELLS;

	return most < numbers ? most : numbers;
}

/* Chains of up to `most` numbers. */
static void as_arrays_say(unsigned most)
{
	static struct model m;
	uint32_t room = CHAINS * blocks_most(most);

	memset(&m, 0, sizeof m);
	chain_init(&m.s);
	CHECK_INT(chain_room(&m.s, room / 2), 0);
	CHECK_INT(chain_room(&m.s, room), 0);
	for (unsigned i = 0; i < 250000; i++) {
		unsigned c = (unsigned)law_below(CHAINS);

		if (law_chance(i / 25000 % 2 ? 0.4 : 0.6))
			put(&m, c, most);
		else
			pop(&m, c);
		check(&m, c);
		CHECK(m.s.used <= room);
	}
	while (m.n[0] + m.n[1] + m.n[2] + m.n[3] + m.n[4] + m.n[5] + m.n[6])
		pop(&m, (unsigned)law_below(CHAINS));
	CHECK_INT(m.s.used, m.s.n_free); /* none is lost */
	chain_free(&m.s);
}

static void first_in_first_out(void)
{
	as_arrays_say(NUMBERS);
}

static void one_or_two(void)
{
	as_arrays_say(2);
}

/* With no block to spare, wherever the chain begins: what is beyond is not read (a sanitizer tells). */
static void to_the_end_of_the_room(void)
{
	enum { BLOCKS = 2, ALL = BLOCKS * CHAIN_CELLS };
	uint32_t out[ALL + CHAIN_CELLS];
	struct chain_store s;
	struct chain c;

	chain_init(&s);
	CHECK_INT(chain_memory(&s), 0);
	CHECK_INT(chain_room(&s, BLOCKS), 0);
	chain_begin(&c, 0);
	for (uint32_t i = 1; i < ALL; i++)
		chain_append(&s, &c, i);
	for (uint32_t first = 0; first < ALL; first++) {
		CHECK_INT(chain_peek(&s, &c, out, ALL), ALL - first);
		for (uint32_t i = first; i < ALL; i++)
			CHECK_INT(out[i - first], i);
		CHECK_INT(chain_pop(&s, &c), first + 1 == ALL);
	}
	chain_free(&s);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "chain");
	RUN(first_in_first_out);
	RUN(one_or_two);
	RUN(to_the_end_of_the_room);
	return law_end(150000);
}
