/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-books: two servers' lines of one limit: whatever is told and acknowledged, and however late, what they
 * may have in sum stays within it. */
#include "ctl/pshift-books.h"
#include "base/rng.h"
#include "test.h"

/* The example of pshift-books.h. */
static void example(void)
{
	struct pshift_line a = {6, 6, 1}, b = {4, 4, 1};

	CHECK_INT(pshift_books_tell(&a, 3, 2), 0);
	CHECK(a.told == 3 && a.most == 6);
	CHECK_INT(pshift_books_may(b.most, 7, 10 - a.most - b.most), 4);
	pshift_books_accept(&a, 1, 0); /* of before: nothing is free yet */
	CHECK_INT(a.most, 6);
	pshift_books_accept(&a, 2, 0);
	CHECK_INT(a.most, 3);
	CHECK_INT(pshift_books_may(b.most, 7, 10 - a.most - b.most), 7);
	CHECK_INT(pshift_books_tell(&b, 7, 2), 3);
	CHECK(b.told == 7 && b.most == 7);
}

/* What was used cannot be given up, and who holds more than was known is believed. */
static void edges(void)
{
	struct pshift_line l = {6, 6, 1};

	pshift_books_tell(&l, 2, 2);
	pshift_books_accept(&l, 2, 5);
	CHECK(l.told == 2 && l.most == 5);
	CHECK_INT(pshift_books_may(5, 9, -3), 2); /* overdrawn by others: it must have less */
	CHECK_INT(pshift_books_may(5, 9, -8), 0); /* but no less than nothing */
	CHECK_INT(pshift_books_may(5, 1, 4), 1);
	pshift_books_holds(&l, 2, 8);
	CHECK(l.told == 8 && l.most == 8);
	pshift_books_tell(&l, 3, 4);
	pshift_books_holds(&l, 3, 8); /* message 4 is under way */
	CHECK(l.told == 3 && l.most == 8);
	pshift_books_holds(&l, 3, 9);
	CHECK(l.told == 3 && l.most == 9);
}

#define LIMIT 100

/* A server takes its messages in order, some not at all, and says so late or never. */
static void random_walk(void)
{
	struct pshift_line line[3] = {{0}};
	int64_t has[3] = {0}, told[3][4096];
	uint64_t sent[3] = {0}, taken[3] = {0};
	struct rng rng;

	rng_init(&rng, 1, "pshift-books");
	for (int i = 0; i < 10000; i++) {
		size_t j = rng_below(&rng, 3);
		int64_t free = LIMIT, sum = 0, may;

		for (size_t k = 0; k < 3; k++)
			free -= line[k].most;
		CHECK(free >= 0);
		switch (rng_below(&rng, 3)) {
		case 0:
			if (sent[j] >= 4095)
				break;
			may = pshift_books_may(
				line[j].most, (int64_t)rng_below(&rng, 2 * LIMIT), free);
			pshift_books_tell(&line[j], may, ++sent[j]);
			told[j][sent[j]] = may;
			break;
		case 1: /* one of those under way arrives, and with it all before */
			if (taken[j] < sent[j]) {
				taken[j] += 1 + rng_below(&rng, sent[j] - taken[j]);
				has[j] = told[j][taken[j]];
			}
			break;
		default:
			pshift_books_accept(&line[j], taken[j], 0);
		}
		for (size_t k = 0; k < 3; k++) {
			sum += has[k];
			CHECK(has[k] <= line[k].most && line[k].told <= line[k].most);
		}
		CHECK(sum <= LIMIT);
	}
	CHECK(sent[0] > 500 && taken[0] > 500);
}

int main(void)
{
	RUN(example);
	RUN(edges);
	RUN(random_walk);
	return 0;
}
