/* SPDX-License-Identifier: BSD-3-Clause */
/* books: two servers' lines of one limit. For any order and delay of messages and
 * acknowledgements, the sum of what the servers may use stays within the limit, and is never
 * less than the amount to be kept. */
#include "control/pshift/books.h"
#include "base/rng.h"
#include "test.h"

/* The example of control/pshift/books.h. */
static void example(void)
{
	struct pshift_line a = {6, 6, 6, 1}, b = {4, 4, 4, 1};
	int64_t over = a.least + b.least - 5;

	CHECK_INT(pshift_books_lower(&a, 0, 100, over), 1);
	CHECK_INT(pshift_books_tell(&a, 1, 2), 0);
	CHECK(a.told == 1 && a.most == 6 && a.least == 1);
	CHECK_INT(pshift_books_may(&b, b.most, 10, 10 - a.most - b.most), 4);
	pshift_books_accept(&a, 1, 0); /* of an earlier message: nothing is free yet */
	CHECK(a.most == 6 && a.least == 1);
	pshift_books_accept(&a, 2, 0);
	CHECK_INT(a.most, 1);
	CHECK_INT(pshift_books_may(&b, b.most, 10, 10 - a.most - b.most), 9);
	CHECK_INT(pshift_books_tell(&b, 9, 2), 5);
	CHECK(b.told == 9 && b.most == 9 && b.least == 4);
	CHECK_INT(pshift_books_lower(&a, 0, 100, a.least + b.least - 5), 1);
	pshift_books_accept(&b, 2, 0);
	CHECK_INT(b.least, 9);
	CHECK_INT(pshift_books_lower(&a, 0, 100, a.least + b.least - 5), 0);
}

/* Used tokens cannot be given up, and a server that holds more than expected is believed. */
static void edges(void)
{
	struct pshift_line l = {6, 6, 6, 1};

	pshift_books_tell(&l, 2, 2);
	pshift_books_accept(&l, 2, 5);
	CHECK(l.told == 2 && l.most == 5 && l.least == 5);
	CHECK_INT(pshift_books_may(&l, 5, 9, -3),
		2); /* overdrawn by other servers: it is not raised, */
	CHECK_INT(pshift_books_may(&l, 5, 9, -8), 2); /* and the promised amount stays */
	CHECK_INT(pshift_books_may(&l, 5, 1, 4), 1);
	CHECK_INT(pshift_books_lower(&l, 0, 100, -1), 2);
	CHECK_INT(pshift_books_lower(&l, 0, 100, 4), 1);
	CHECK_INT(pshift_books_lower(&l, 7, 100, 4), 7);
	CHECK_INT(pshift_books_lower(&l, 0, 1, -1), 1); /* more than that would not help */
	CHECK_INT(pshift_books_serves(&l, 1), 1);
	pshift_books_holds(&l, false, 8);
	CHECK(l.told == 8 && l.most == 8 && l.least == 8);
	pshift_books_tell(&l, 3, 4);
	pshift_books_holds(&l, true, 8);
	CHECK(l.told == 3 && l.most == 8 && l.least == 3);
	pshift_books_holds(&l, true, 9);
	CHECK(l.told == 3 && l.most == 9);
	pshift_books_holds(&l, true, 2);
	CHECK(l.told == 3 && l.most == 9 && l.least == 2);
}

#define LIMIT 100
#define KEPT  60

/* Return the amount by which lines may be raised or lowered. */
static int64_t free_of(const struct pshift_line *line)
{
	return LIMIT - line[0].most - line[1].most - line[2].most;
}

static int64_t over_of(const struct pshift_line *line)
{
	return line[0].least + line[1].least + line[2].least - KEPT;
}

/* A server applies messages in order, loses some, and acknowledges late or never. */
static void random_walk(void)
{
	struct pshift_line line[3] = {{30, 30, 30, 0}, {30, 30, 30, 0}, {30, 30, 30, 0}};
	int64_t has[3] = {30, 30, 30}, told[3][4096], lowest = LIMIT, highest = 0;
	uint64_t sent[3] = {0}, taken[3] = {0};
	struct rng rng;

	rng_init(&rng, 1, "pshift-books");
	for (int i = 0; i < 10000; i++) {
		size_t j = rng_below(&rng, 3);
		int64_t sum = 0, want = (int64_t)rng_below(&rng, 2 * LIMIT) - LIMIT / 2;

		switch (rng_below(&rng, 3)) {
		case 0:
			if (sent[j] >= 4095)
				break;
			want = pshift_books_lower(
				&line[j], want > 0 ? want : 0, LIMIT, over_of(line));
			want = pshift_books_may(&line[j], line[j].most, want, free_of(line));
			pshift_books_tell(&line[j], want, ++sent[j]);
			told[j][sent[j]] = want;
			break;
		case 1: /* a message in flight arrives, and with it all earlier ones */
			if (taken[j] < sent[j]) {
				taken[j] += 1 + rng_below(&rng, sent[j] - taken[j]);
				has[j] = told[j][taken[j]];
			}
			break;
		default:
			pshift_books_accept(&line[j], taken[j], 0);
		}
		CHECK(free_of(line) >= 0 && over_of(line) >= 0);
		for (size_t k = 0; k < 3; k++) {
			sum += has[k];
			CHECK(has[k] <= line[k].most && line[k].told <= line[k].most);
			CHECK(has[k] >= line[k].least && line[k].told >= line[k].least);
		}
		CHECK(sum <= LIMIT && sum >= KEPT);
		lowest = sum < lowest ? sum : lowest;
		highest = sum > highest ? sum : highest;
	}
	CHECK(sent[0] > 500 && taken[0] > 500);
	CHECK(lowest == KEPT && highest == LIMIT); /* both ends were reached */
}

int main(void)
{
	RUN(example);
	RUN(edges);
	RUN(random_walk);
	return 0;
}
