/* SPDX-License-Identifier: BSD-3-Clause */
/* divisor: the greatest common divisor of two counts, by Euclid's algorithm. */
#pragma once

#include <stdint.h>

static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}
