/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/versions/pieces.h"
#include "base/array.h"
#include <errno.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>

#define BITS 17 /* 128 kB beyond the least length, on average */

/* One random number for each byte, the same for ever: splitmix64 of the byte. */
static void fill_gear(uint64_t gear[256])
{
	for (uint64_t i = 0; i < 256; i++) {
		uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		gear[i] = z ^ (z >> 31);
	}
}

static size_t first_piece(const uint64_t gear[256], const char *text, size_t n)
{
	uint64_t h = 0;

	if (n > PIECES_MAX)
		n = PIECES_MAX;
	for (size_t i = 0; i < n; i++) {
		h = 2 * h + gear[(unsigned char)text[i]];
		if (i + 1 >= PIECES_MIN && h >> (64 - BITS) == 0)
			return i + 1;
	}
	return n;
}

void pieces_digest(const void *bytes, size_t n, char ret[PIECES_DIGEST])
{
	unsigned char sum[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(sum, bytes, n);
	sodium_bin2hex(ret, PIECES_DIGEST, sum, sizeof(sum));
}

int pieces_cut(const char *text, size_t n, struct piece **ret_list, size_t *ret_n)
{
	struct piece *list = NULL;
	size_t used = 0, room = 0;
	uint64_t gear[256];

	fill_gear(gear);
	while (n) {
		size_t part = first_piece(gear, text, n);

		if (array_grow(&list, &room, used + 1) < 0) {
			free(list);
			return -ENOMEM;
		}
		list[used].length = part;
		pieces_digest(text, part, list[used++].digest);
		text += part;
		n -= part;
	}
	*ret_list = list;
	*ret_n = used;
	return 0;
}
