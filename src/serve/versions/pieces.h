/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces: a text cut into pieces at places that its content decides.
 *
 * SOURCE   Muthitacharoen, Chen, Mazières: A low-bandwidth network file system, SOSP 2001, §3.1; the hash: Xia et al., Ddelta, 2014.
 * LAW      A piece ends behind a byte where the hash of the bytes before it has BITS zeros, or at its greatest length.
 * METHOD   h ← 2h + gear[byte]: a byte has left h after 64 more. O(n), one addition a byte.
 * DIFFERS  No piece is shorter than PIECES_MIN, so that a text of usual size is one.
 * EXAMPLE  A line inserted into a megabyte changes one piece of about 200 kB, or two.
 */
#pragma once

#include <stddef.h>

#define PIECES_MIN    ((size_t)64 << 10)
#define PIECES_MAX    ((size_t)512 << 10)
#define PIECES_DIGEST 65 /* bytes of a digest in hex, with its NUL */

struct piece {
	size_t length;
	char digest[PIECES_DIGEST]; /* SHA-256 */
};

/* Cut a text; *ret_list is malloc'ed, and NULL if the text is empty. 0 or -ENOMEM. */
int pieces_cut(const char *text, size_t n, struct piece **ret_list, size_t *ret_n);
/* Get the digest of bytes. */
void pieces_digest(const void *bytes, size_t n, char ret[PIECES_DIGEST]);
