/* SPDX-License-Identifier: BSD-3-Clause */
/* lesser: the lesser and the greater of two counts or times. */
#pragma once

#include <stdint.h>

static inline int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
