/* SPDX-License-Identifier: BSD-3-Clause */
/* workload-impl: shared by workload.c and workload-check.c. */
#pragma once

#include "model/workload.h"

#define WORKLOAD_FOREVER (INT64_C(1) << 61) /* ns: 73 years; sums of two still fit */

/* len: bytes of the region from its first whole sector on. Return 0, or -EINVAL with a message that
 * names the field. */
int workload_check(const struct workload_config *c, uint64_t len, struct weir_err *err);
