/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8: validate the characters of foreign text before it is shown. */
#pragma once

#include <stddef.h>

/* Return the bytes of the character at s, inside a string, if it may go to a terminal or a log.
 * Return 0 for a stray byte, a truncated or overlong character, a UTF-16 surrogate, and control
 * characters (C0, DEL and C1). Then show a '?' and continue with the next byte. */
static inline size_t utf8_shown(const unsigned char *s)
{
	size_t n = *s < 0x20 || *s == 0x7f ? 0
		   : *s < 0x80             ? 1
		   : *s < 0xc2             ? 0
		   : *s < 0xe0             ? 2
		   : *s < 0xf0             ? 3
		   : *s < 0xf5             ? 4
					   : 0;
	/* Bounds of the second byte: the lower one excludes C1 and overlong forms, the upper one
	 * surrogates and code points beyond Unicode. */
	unsigned char least = *s == 0xc2 || *s == 0xe0 ? 0xa0 : *s == 0xf0 ? 0x90 : 0x80;
	unsigned char most = *s == 0xed ? 0x9f : *s == 0xf4 ? 0x8f : 0xbf;

	if (n > 1 && (s[1] < least || s[1] > most))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}
