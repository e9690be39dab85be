/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cover: which bytes of a range have arrived, if it arrives in parts of any order.
 *
 * No byte may arrive twice. So when as many bytes have arrived as the range has, it is complete:
 * the user only counts them.
 *
 * METHOD  The bytes that arrived are one run as long as each part touches it: all at once, or one
 *         part after the other, or before it. From the first part that leaves a gap on there is one
 *         bit per byte, in memory of its own.
 * COST    A part that touches the run: a few comparisons. Else length/64 steps, and length/8 bytes
 *         while the range is incomplete: 32 KiB for the largest request (CHUNK_MAX).
 */
#pragma once

#include <stdint.h>

struct cover {             /* all zero: empty */
	uint32_t from, to; /* bytes: the run, while there are no bits */
	uint64_t *bits;    /* NULL: none */
};

/* Add n > 0 bytes from `at` on, inside a range of `length`. -EEXIST: some of them were added
 * before; -ENOMEM: nothing changed. */
int cover_add(struct cover *c, uint32_t length, uint32_t at, uint32_t n);
void cover_clear(struct cover *c); /* empty it and free its memory */
