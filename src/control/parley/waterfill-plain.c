/* SPDX-License-Identifier: BSD-3-Clause */
/* waterfill-plain: the passes for any processor. */
#define TARGET
#include "control/parley/waterfill-pass.h"

const struct waterfill_passes waterfill_passes_plain = {prepare, sums, between, finish};
