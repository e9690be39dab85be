/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8: the characters of a text that came from somewhere else, for who shows it. */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character at s, which is inside a string, that may reach a terminal or a log. 0: there is
 * none: a byte astray, a character that was cut or written the long way, half of a pair of UTF-16, or what
 * controls a terminal (C0, DEL and C1). Show a '?' then, and go on with the next byte. */
static inline size_t utf8_shown(const unsigned char *s)
{
	size_t n = *s < 0x20 || *s == 0x7f ? 0
		   : *s < 0x80             ? 1
		   : *s < 0xc2             ? 0
		   : *s < 0xe0             ? 2
		   : *s < 0xf0             ? 3
		   : *s < 0xf5             ? 4
					   : 0;
	/* Of the second byte: from where it is no C1, and nothing that has a shorter form; to where it is no
	 * half of a pair, and nothing beyond Unicode. */
	unsigned char least = *s == 0xc2 || *s == 0xe0 ? 0xa0 : *s == 0xf0 ? 0x90 : 0x80;
	unsigned char most = *s == 0xed ? 0x9f : *s == 0xf4 ? 0x8f : 0xbf;

	if (n > 1 && (s[1] < least || s[1] > most))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

#endif
