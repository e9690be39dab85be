/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/told.h"
#include <string.h>

static uint64_t pack(const uint8_t bytes[8])
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[i];
	return word;
}

static void unpack(uint64_t word, uint8_t bytes[8])
{
	for (int i = 8; i-- > 0; word >>= 8)
		bytes[i] = (uint8_t)word;
}

void told_write(uint64_t out[TOLD_WORDS], const struct told *t)
{
	memcpy(&out[0], &t->rate, sizeof(out[0]));
	out[1] = pack(t->address);
	out[2] = pack(t->address + 8);
	out[3] = (uint64_t)t->mine << 48 | (uint64_t)t->theirs << 32 | (uint64_t)t->protocol << 24 |
		 (uint64_t)t->dscp << 16;
}

/* Return true for an address that a single machine can have. */
static bool is_single(const uint8_t a[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, 0xff}, none[16];

	if (memcmp(a, v4, sizeof(v4)) == 0)
		return a[12] != 0 && a[12] < 224;
	return memcmp(a, none, sizeof(none)) != 0 && a[0] != 0xff;
}

bool told_read(const uint64_t in[TOLD_WORDS], struct told *ret)
{
	struct told t = {.mine = (uint16_t)(in[3] >> 48),
		.theirs = (uint16_t)(in[3] >> 32),
		.protocol = (uint8_t)(in[3] >> 24),
		.dscp = (uint8_t)(in[3] >> 16)};

	memcpy(&t.rate, &in[0], sizeof(t.rate));
	unpack(in[1], t.address);
	unpack(in[2], t.address + 8);
	if (!(t.rate > 0 && t.rate <= TOLD_MOST) || !is_single(t.address) || t.dscp > 63)
		return false;
	*ret = t;
	return true;
}
