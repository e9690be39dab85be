/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of cells against plain arrays: first in, first out; and no more blocks than the header says. */
#include "gate/cells.h"
#include "law.h"

#define QUEUES 5
#define WORDS  80 /* in one queue at the most */
#define JOINS  10 /* before all are emptied */

struct model {
	struct cells_store s;
	struct cells c[QUEUES];
	uint64_t word[QUEUES][WORDS];
	unsigned n[QUEUES];
	unsigned joined; /* since all were empty */
	uint64_t next;
};

static void put(struct model *m, unsigned q, unsigned most)
{
	if (m->n[q] == most)
		return;
	CHECK_INT(cells_append(&m->s, &m->c[q], m->next), m->n[q] == 0);
	m->word[q][m->n[q]++] = m->next++;
}

static void pop(struct model *m, unsigned q)
{
	CHECK_INT(cells_empty(&m->c[q]), m->n[q] == 0);
	if (!m->n[q])
		return;
	CHECK_INT(cells_pop(&m->s, &m->c[q]), m->word[q][0]);
	m->n[q]--;
	memmove(m->word[q], m->word[q] + 1, m->n[q] * sizeof m->word[q][0]);
	law_operations++;
}

/* All of one queue comes before all of another, if there is room for it; that many are joined. */
static void join(struct model *m, unsigned from, unsigned to, unsigned most)
{
	if (from == to || m->n[from] + m->n[to] > most)
		return;
	m->joined += m->n[from] && m->n[to];
	cells_join(&m->s, &m->c[from], &m->c[to]);
	memmove(m->word[to] + m->n[from], m->word[to], m->n[to] * sizeof m->word[to][0]);
	memcpy(m->word[to], m->word[from], m->n[from] * sizeof m->word[to][0]);
	m->n[to] += m->n[from];
	m->n[from] = 0;
}

static void check(const struct model *m, unsigned q)
{
	uint32_t at = m->c[q].head;

	for (unsigned i = 0; i < m->n[q]; i++) {
		CHECK_INT(*cells_word(&m->s, at), m->word[q][i]);
		CHECK_INT(at + 1 == m->c[q].tail, i + 1 == m->n[q]);
		if (i + 1 < m->n[q])
			at = cells_after(&m->s, at);
	}
}

/* Blocks that are neither free nor never used. */
static unsigned blocks(const struct cells_store *s)
{
	unsigned n = s->used - 1;

	for (uint32_t k = s->free; k; k = s->blocks[k].next)
		n--;
	return n;
}

static void check_blocks(const struct model *m)
{
	unsigned all = 0, some = 0;

	for (unsigned q = 0; q < QUEUES; q++) {
		all += m->n[q];
		some += m->n[q] > 0;
	}
	CHECK_INT(m->s.n, all);
	CHECK(blocks(&m->s) <= all &&
		blocks(&m->s) <= all / CELLS_BLOCK + 2 * some + 2 * m->joined);
	CHECK(m->s.used <= m->s.room);
}

/* Queues of up to `most` words. */
static void as_arrays_say(unsigned most)
{
	static struct model m;
	unsigned all = QUEUES * most, room = all / CELLS_BLOCK + 2 * QUEUES + 2 * JOINS;

	m = (struct model){.next = 1};
	CHECK_INT(cells_init(&m.s, room < all ? room : all), 0);
	for (unsigned q = 0; q < QUEUES; q++)
		m.c[q].tail = CELLS_EMPTY;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned q = (unsigned)law_below(QUEUES);
		bool fill = law_chance(i / 500 % 2 ? 0.7 : 0.3);

		if (fill)
			put(&m, q, most);
		else
			pop(&m, q);
		if (m.joined < JOINS && law_chance(0.02)) {
			join(&m, (unsigned)law_below(QUEUES), q, most);
		} else if (m.joined == JOINS) {
			for (unsigned k = 0; k < QUEUES; k++)
				while (m.n[k])
					pop(&m, k);
			m.joined = 0;
		}
		check(&m, q);
		check_blocks(&m);
	}
	cells_free(&m.s);
}

static void queues_are_arrays(void)
{
	static const unsigned most[] = {1, 2, 7, 8, 15, WORDS};

	for (unsigned k = 0; k < 6; k++)
		as_arrays_say(most[k]);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "cells");
	RUN(queues_are_arrays);
	return law_end(30000);
}
