/* SPDX-License-Identifier: BSD-3-Clause */
/* same: compare texts of which either may be NULL. */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}
