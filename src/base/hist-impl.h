/* SPDX-License-Identifier: BSD-3-Clause */
/* hist-impl: the bucket of a value, for hist.c and hist-small.c. The law is in hist.c. */
#pragma once

#include <weir/hist.h>

static inline unsigned hist_index(uint64_t v)
{
	unsigned e;

	v = v > WEIR_HIST_MAX ? WEIR_HIST_MAX : v;
	e = 57 - (unsigned)__builtin_clzll(v | 64); /* the 64 makes small values e = 0 */
	return 64 * e + (unsigned)(v >> e);
}
