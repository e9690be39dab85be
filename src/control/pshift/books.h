/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * books: the most and the least that a server may hold of a limit, as far as its controller knows.
 *
 * LAW     A line is one number that one server was told. If told more, it may have that at once; if
 *         told less, it may have the old number until it acknowledges. So a line holds the number
 *         told last, and the most and the least that the server may hold: the acknowledged number,
 *         and all numbers told since.
 *         A line is raised only by the part of the limit beyond the sum of all lines' most: then
 *         the servers together never have more than the limit, whatever happens to the messages.
 *         And it is lowered only by the excess of the sum of all lines' usable least over the
 *         amount to keep: then they never have less than that, even if a machine dies while a part
 *         of the limit moves from one server to another.
 * EXAMPLE limit 10, 5 to keep; a: told 6, b: told 4. To shift 6: a is told 1, least 1 and most 6,
 *         since 5 over all may go; b may have 4 + (10 − 10) = 4. a acknowledges: most 1. b may have
 *         4 + (10 − 5) = 9. b acknowledges: least 9; now a may be told 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pshift_line {
	int64_t told, most, least; /* tokens; least, told ≤ most */
	uint64_t in;               /* sequence of the last message that contained it */
};

/* Return the number to tell if `want` is wanted: raise by no more than the limit leaves. `own` is
 * this server's part in the books, `free` the limit less all books, negative if these exceed it. */
static inline int64_t pshift_books_may(
	const struct pshift_line *l, int64_t own, int64_t want, int64_t free)
{
	int64_t may = own + free > l->told ? own + free : l->told;

	return want < may ? want : may;
}

/* Return the part of a line that is surely usable, if at most `could` can be used. */
static inline int64_t pshift_books_serves(const struct pshift_line *l, int64_t could)
{
	return l->least < could ? l->least : could;
}

/* Return the number to want of a line, if all together may be lowered by `over`. */
static inline int64_t pshift_books_lower(
	const struct pshift_line *l, int64_t want, int64_t could, int64_t over)
{
	int64_t least = pshift_books_serves(l, could) - (over > 0 ? over : 0);

	if (least > l->told)
		least = l->told;
	return want > least ? want : least;
}

/* Record that message `in` tells this number. Return by how much the line's most grew. */
static inline int64_t pshift_books_tell(struct pshift_line *l, int64_t value, uint64_t in)
{
	int64_t grew = value > l->most ? value - l->most : 0;

	l->told = value;
	l->most += grew;
	if (value < l->least)
		l->least = value;
	l->in = in;
	return grew;
}

/* Record that the server has accepted all messages up to `accepted`, and has used `used`
 * already. */
static inline void pshift_books_accept(struct pshift_line *l, uint64_t accepted, int64_t used)
{
	if (l->in <= accepted)
		l->most = l->least = l->told > used ? l->told : used;
}

/* Record that the server holds no more than `most`, by its own law. */
static inline void pshift_books_most(struct pshift_line *l, int64_t most)
{
	l->told = l->told < most ? l->told : most;
	l->most = l->most < most ? l->most : most;
	l->least = l->least < most ? l->least : most;
}

/* Record that the server reports to hold `has`; under_way: an unacknowledged message may still
 * change it. */
static inline void pshift_books_holds(struct pshift_line *l, bool under_way, int64_t has)
{
	if (!under_way)
		l->told = l->most = l->least = has;
	else if (has > l->most)
		l->most = has;
	else if (has < l->least)
		l->least = has;
}
