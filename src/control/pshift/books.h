/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * books: what a server may use of a limit at most, and has of it at least, as far as its controller
 * can know.
 *
 * LAW     A line is one number that one server was told. Told more, it may have that at once; told
 *         less, it may have what it had until it acknowledges. So a line holds what was told last, and
 *         the most and the least that it may be: of what was acknowledged, and what was told since.
 *         A line is raised only by what the limit leaves over the sum of all lines' most: then the
 *         servers together never have more than the limit, whatever becomes of the messages. And it is
 *         lowered only by what the sum of all lines' least, as far as they could be used, has over what is
 *         to be kept: then they never have less of use than that, whoever dies while a part of the limit is
 *         under way from one to another.
 * EXAMPLE limit 10, of which 5 are to be kept; a: told 6, b: told 4. To shift 6: a is told 1, least 1 and most
 *         6, since 5 over all may go; b may have 4 + (10 − 10) = 4. a acknowledges: most 1. b may have
 *         4 + (10 − 5) = 9. b acknowledges: least 9; now a may be told 0.
 */
#ifndef WEIR_CONTROL_PSHIFT_BOOKS_H
#define WEIR_CONTROL_PSHIFT_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct pshift_line {
	int64_t told, most, least; /* tokens; least, told ≤ most */
	uint64_t in;               /* sequence of the message that last told it */
};

/* How much it may be told when `want` is wanted: raised no further than what the others leave of the limit.
 * `own` is what the books have for it, and `free` what the limit leaves over all, negative if they have more. */
static inline int64_t pshift_books_may(
	const struct pshift_line *l, int64_t own, int64_t want, int64_t free)
{
	int64_t may = own + free > l->told ? own + free : l->told;

	return want < may ? want : may;
}

/* What of a line surely serves somebody, if no more than `could` be used. */
static inline int64_t pshift_books_serves(const struct pshift_line *l, int64_t could)
{
	return l->least < could ? l->least : could;
}

/* What is wanted of a line, if all together may be lowered by `over`: no less than that leaves. */
static inline int64_t pshift_books_lower(
	const struct pshift_line *l, int64_t want, int64_t could, int64_t over)
{
	int64_t least = pshift_books_serves(l, could) - (over > 0 ? over : 0);

	if (least > l->told)
		least = l->told;
	return want > least ? want : least;
}

/* It is told this, in message `in`. Returns by how much its most grew. */
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

/* The server has all that it was told up to message `accepted`; it has used `used` already. */
static inline void pshift_books_accept(struct pshift_line *l, uint64_t accepted, int64_t used)
{
	if (l->in <= accepted)
		l->most = l->least = l->told > used ? l->told : used;
}

/* The server says itself that it holds `has`; what it was told is under way (again), or not. */
static inline void pshift_books_holds(struct pshift_line *l, bool under_way, int64_t has)
{
	if (!under_way)
		l->told = l->most = l->least = has;
	else if (has > l->most)
		l->most = has;
	else if (has < l->least)
		l->least = has;
}

#endif
