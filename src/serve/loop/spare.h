/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spare: how much memory is left before the system kills processes.
 */
#pragma once

#include <stdint.h>

/* Bytes left for other processes, and for the gateway's own buffers: code that takes memory at will
 * stops here. */
#define SPARE_LEAST (UINT64_C(64) << 20)

/* Return the bytes that are available now: the least of the machine's (MemAvailable) and of the
 * limits of this process's control group and each above it (memory.max of cgroup v2, if mounted);
 * UINT64_MAX if unknown. About 50 µs. */
uint64_t spare_memory(void);
