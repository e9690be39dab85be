/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spare: how much memory is left before the system begins to kill.
 */
#ifndef WEIR_SERVE_LOOP_SPARE_H
#define WEIR_SERVE_LOOP_SPARE_H

#include <stdint.h>

/* Bytes that others, and the gateway's own buffers, are left with: whoever takes memory at will stops
 * here. */
#define SPARE_LEAST (UINT64_C(64) << 20)

/* Bytes that could be had now: the least of what the machine has (MemAvailable) and what the control
 * group of this process and each above it still allows (memory.max of cgroup v2, where it is mounted);
 * UINT64_MAX when the system does not say. About 50 µs. */
uint64_t spare_memory(void);

#endif
