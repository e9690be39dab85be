/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-books: what a server may use of a limit at most, as far as its controller can know.
 *
 * LAW     A line is one number that one server was told. Told more, it may have that at once; told
 *         less, it may have what it had until it acknowledges. So a line holds what was told last, and
 *         the most that it may be: what was told and not acknowledged since, and what was acknowledged.
 *         A line is raised only by what the limit leaves over the sum of all lines' most: then the
 *         servers together never have more than the limit, whatever becomes of the messages.
 * EXAMPLE limit 10; a: told 6, b: told 4. To shift 3: a is told 3, most 6; b may have 4 + (10 − 10) = 4.
 *         a acknowledges: most 3. b may have 4 + (10 − 7) = 7.
 */
#ifndef WEIR_CTL_PSHIFT_BOOKS_H
#define WEIR_CTL_PSHIFT_BOOKS_H

#include <stdint.h>

struct pshift_line {
	int64_t told, most; /* tokens; told ≤ most */
	uint64_t in;        /* sequence of the message that last told it */
};

/* How much it may be told when `want` is wanted: what the others leave of the limit. `own` is what the
 * books have for it; `free` what the limit leaves over all, which is negative where a server that was not
 * heard may have come to more: then the others must have less. */
static inline int64_t pshift_books_may(int64_t own, int64_t want, int64_t free)
{
	int64_t may = own + free;

	return want < may ? want : may > 0 ? may : 0;
}

/* It is told this, in message `in`. Returns by how much its most grew. */
static inline int64_t pshift_books_tell(struct pshift_line *l, int64_t value, uint64_t in)
{
	int64_t grew = value > l->most ? value - l->most : 0;

	l->told = value;
	l->most += grew;
	l->in = in;
	return grew;
}

/* The server has all that it was told up to message `accepted`; it has used `used` already. */
static inline void pshift_books_accept(struct pshift_line *l, uint64_t accepted, int64_t used)
{
	if (l->in <= accepted)
		l->most = l->told > used ? l->told : used;
}

/* The server says itself that it holds `has`; what it was told behind `accepted` is under way. */
static inline void pshift_books_holds(struct pshift_line *l, uint64_t accepted, int64_t has)
{
	if (l->in <= accepted)
		l->told = l->most = has;
	else if (has > l->most)
		l->most = has;
}

#endif
