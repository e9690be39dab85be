/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cover: which bytes of a range have come, when it comes in parts of any order.
 *
 * No byte may come twice. So when as many have come as the range has, it is whole: a user that counts
 * them needs nothing else.
 *
 * METHOD  The bytes that came are one run, as long as each part touches it: all of it at once, or one
 *         part behind the other, or before it. From the first part that leaves a gap on there is a
 *         bit a byte, in memory of its own.
 * COST    A part that touches the run: a few comparisons. Else length/64 steps, and length/8 bytes for
 *         as long as the range is incomplete: 32 KiB for the largest request (CHUNK_MAX).
 */
#ifndef WEIR_SERVE_BACK_COVER_H
#define WEIR_SERVE_BACK_COVER_H

#include <stdint.h>

struct cover {             /* all zero: nothing has come */
	uint32_t from, to; /* bytes: the run, while there are no bits */
	uint64_t *bits;    /* NULL: none */
};

/* The bytes from `at` have come, n > 0 of a range of `length`, inside it. -EEXIST: some of them came
 * before; -ENOMEM: nothing changed. */
int cover_add(struct cover *c, uint32_t length, uint32_t at, uint32_t n);
void cover_clear(struct cover *c); /* nothing has come; holds no memory */

#endif
