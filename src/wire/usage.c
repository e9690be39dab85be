/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: see usage.h for the layout. */
#include "wire/usage.h"
#include <math.h>

#define MANTISSA 11 /* bits */
#define EXPONENT 5
#define MOST     ((1 << MANTISSA) - 1)

static uint16_t pack_rate(double rate)
{
	int e;
	long m;

	if (!(rate > 0))
		return 0;
	if (rate >= USAGE_MAX)
		return UINT16_MAX;
	frexp(rate, &e);
	e = e > MANTISSA ? e - MANTISSA : 0;
	m = lround(ldexp(rate, -e));
	if (m > MOST) { /* rounded up to the next power of two */
		m = (MOST + 1) / 2;
		e++;
	}
	return e >= 1 << EXPONENT ? UINT16_MAX : (uint16_t)(m << EXPONENT | e);
}

static double unpack_rate(uint16_t v)
{
	return ldexp(v >> EXPONENT, v & ((1 << EXPONENT) - 1));
}

uint64_t usage_pack(const struct usage *u)
{
	return (uint64_t)u->service << 32 | (uint64_t)pack_rate(u->in) << 16 | pack_rate(u->out);
}

struct usage usage_unpack(uint64_t word)
{
	return (struct usage){(uint32_t)(word >> 32), unpack_rate((uint16_t)(word >> 16)),
		unpack_rate((uint16_t)word)};
}

double usage_rounded(double rate)
{
	return unpack_rate(pack_rate(rate));
}

int usage_moved(double a, double b)
{
	return fabs(a - b) > USAGE_MOVED * fmax(a, b);
}
