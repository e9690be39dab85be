/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units: quantities as people write them, in and out.
 *
 * "5k iops", "20 MiB/s", "2 Gbit/s", "10ms", "64 KiB", "1.5M". Space between number and unit is
 * optional; case matters where it distinguishes (b: bit, B: byte, m: milli, M: mega). A bare
 * number where a unit is needed is an error that says which units fit. Numbers are not negative.
 *
 *   kind    canonical        accepted
 *   TIME    ns               ns us µs ms s m(in) h
 *   SIZE    bytes            B k/K/M/G/T (powers of 1000 with B: kB MB …), KiB MiB GiB TiB;
 *                            a bare suffix K, M, G, T is binary, as in fio and qemu
 *   RATE    per second       iops: "5k iops", "3.3k iops" ; bytes: "20 MiB/s", "400 MB/s" ;
 *                            bits: "2 Gbit/s", "100 Mb/s", divided by 8 into bytes
 *   COUNT   plain            k M G are powers of 1000
 */
#ifndef WEIR_BASE_UNITS_H
#define WEIR_BASE_UNITS_H

#include "base/err.h"
#include <stddef.h>

enum weir_unit { /* what a rate, a bucket or a cost counts */
	WEIR_UNIT_REQUESTS = 0,
	WEIR_UNIT_BYTES = 1,
	WEIR_UNIT_TIME = 2, /* estimated device time, ns */
};
#define WEIR_UNITS 3

struct weir_rate {
	double per_second; /* in `unit` */
	enum weir_unit unit;
};

/* Each parses the whole of `text`. 0, or -EINVAL with a message that quotes the text and says what
 * would do (no place: the caller knows it). */
WEIR_API int weir_units_time(const char *text, weir_time *ret_ns, struct weir_err *err);
WEIR_API int weir_units_size(const char *text, uint64_t *ret_bytes, struct weir_err *err);
WEIR_API int weir_units_rate(const char *text, struct weir_rate *ret_rate, struct weir_err *err);
WEIR_API int weir_units_count(const char *text, double *ret_count, struct weir_err *err);

/* The shortest text that reads back to within 0.05 %: "3.36k iops", "20 MiB/s", "37.2ms". Always
 * NUL-terminated; returns `buf`. 32 bytes always suffice. */
WEIR_API char *weir_units_show_time(weir_time ns, char *buf, size_t len);
WEIR_API char *weir_units_show_size(uint64_t bytes, char *buf, size_t len);
WEIR_API char *weir_units_show_rate(struct weir_rate rate, char *buf, size_t len);
WEIR_API char *weir_units_show_count(double count, char *buf, size_t len);

#endif
