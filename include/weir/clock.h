/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock: the one representation of time.
 *
 * Time is an argument. Pure code never reads a clock: the caller passes `now`, in nanoseconds since
 * an origin of its choice (the simulator's zero, CLOCK_MONOTONIC's boot). Spans use the same type.
 * Signed, so that a difference may be negative; 292 years either way.
 */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <stdint.h>

typedef int64_t weir_time; /* ns */

#define WEIR_US    INT64_C(1000)
#define WEIR_MS    INT64_C(1000000)
#define WEIR_SEC   INT64_C(1000000000)
#define WEIR_NEVER INT64_MAX /* later than any time: "no such event" */

/* Mark a symbol that libweir exports; all others are hidden. */
#define WEIR_API __attribute__((visibility("default")))

/* Put around the declarations of every public header, for programs in C++. */
#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" {
#define WEIR_END_DECLS   }
#else
#define WEIR_BEGIN_DECLS
#define WEIR_END_DECLS
#endif

#endif
