/* SPDX-License-Identifier: BSD-3-Clause */
/* waterfill-avx2: the passes for processors with AVX2. */
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#include "control/parley/waterfill-pass.h"

const struct waterfill_passes waterfill_passes_avx2 = {prepare, sums, between, finish};
#endif
