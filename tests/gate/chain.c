/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains against plain arrays: first in, first out, whatever is taken from the middle; and no more
 * blocks than the header says. */
#include "gate/chain.h"
#include "law.h"

#define CHAINS  7
#define NUMBERS 60 /* in one chain at the most */

struct model {
	struct chain_store s;
	struct chain c[CHAINS];
	uint32_t number[CHAINS][NUMBERS], place[CHAINS][NUMBERS];
	unsigned n[CHAINS];
	uint32_t next;
};

static void put(struct model *m, unsigned c)
{
	unsigned at = m->n[c];

	if (at == NUMBERS)
		return;
	m->number[c][at] = m->next;
	m->place[c][at] = at ? chain_append(&m->s, &m->c[c], m->next, c)
			     : chain_begin(&m->s, &m->c[c], m->next, c);
	CHECK_INT(chain_owner(&m->s, m->place[c][at]), c);
	m->n[c]++;
	m->next++;
}

static void forget(struct model *m, unsigned c, unsigned at, bool empty)
{
	m->n[c]--;
	CHECK_INT(empty, m->n[c] == 0);
	for (unsigned i = at; i < m->n[c]; i++) {
		m->number[c][i] = m->number[c][i + 1];
		m->place[c][i] = m->place[c][i + 1];
	}
	law_operations++;
}

static void check(const struct model *m, unsigned c)
{
	uint32_t out[NUMBERS], most = (uint32_t)law_below(NUMBERS + 1), n;

	if (!m->n[c])
		return;
	CHECK_INT(chain_first(&m->s, &m->c[c]), m->number[c][0]);
	n = chain_peek(&m->s, &m->c[c], out, most);
	CHECK_INT(n, most < m->n[c] ? most : m->n[c]);
	for (uint32_t i = 0; i < n; i++)
		CHECK_INT(out[i], m->number[c][i]);
}

/* `middle`: how often one is taken out from anywhere. */
static void as_arrays_say(double middle, uint32_t room)
{
	static struct model m;

	memset(&m, 0, sizeof m);
	chain_init(&m.s);
	CHECK_INT(chain_room(&m.s, room / 2), 0);
	CHECK_INT(chain_room(&m.s, room), 0);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned c = (unsigned)law_below(CHAINS);

		if (law_chance(i / 20000 % 2 ? 0.4 : 0.6)) {
			put(&m, c);
		} else if (m.n[c] && law_chance(middle)) {
			unsigned at = (unsigned)law_below(m.n[c]);

			forget(&m, c, at, chain_remove(&m.s, &m.c[c], m.place[c][at]));
		} else if (m.n[c]) {
			forget(&m, c, 0, chain_pop(&m.s, &m.c[c]));
		}
		check(&m, c);
		CHECK(m.s.used <= room);
	}
	chain_free(&m.s);
}

static void first_in_first_out(void)
{
	as_arrays_say(0, CHAINS * (2 + (NUMBERS - 2 + CHAIN_CELLS - 1) / CHAIN_CELLS));
}

static void out_of_the_middle(void)
{
	as_arrays_say(0.5, CHAINS * NUMBERS);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "chain");
	RUN(first_in_first_out);
	RUN(out_of_the_middle);
	return law_end(150000);
}
