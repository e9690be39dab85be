/* SPDX-License-Identifier: BSD-3-Clause */
/* units-impl: shared by units.c (parsing) and units-show.c (formatting). */
#pragma once

#include <weir/units.h>

/* ns; unsigned, since spans are */
#define UNITS_MINUTE (60 * (uint64_t)WEIR_SEC)
#define UNITS_HOUR   (60 * UNITS_MINUTE)

struct units_scale {
	const char *name;
	uint64_t factor;
};

/* Ascending, terminated by a NULL name: formatting uses the largest that is not above the value. */
extern const struct units_scale units_time_scales[], units_binary_scales[], units_decimal_scales[];
