/* SPDX-License-Identifier: BSD-3-Clause */
/* apply: send a plan to a running gateway. */
#pragma once

#include <stddef.h>

/* Put the plan in force; at: the values of REMOTE_ROWS. Return 0, or the exit status with the reason printed. */
int plan_apply(const char *const *at, const char *text, size_t len);
