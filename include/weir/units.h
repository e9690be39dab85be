/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units: parse and format quantities such as rates, times and sizes.
 *
 * "5k iops", "20 MiB/s", "2 Gbit/s", "10ms", "64 KiB", "1.5M". A number is digits[.digits], or that
 * with an exponent (1e6), the same in every locale; a space between it and the unit is optional.
 * Case matters where it distinguishes (b: bit, B: byte, m: milli or minute, M: mega). A bare number
 * where a unit is needed is an error that says which units fit; only 0 needs none, as a time or a
 * size. Numbers are not negative.
 *
 *   kind    canonical    accepted
 *   TIME    ns           ns us µs ms s m min h
 *   SIZE    bytes        B; kB KB MB GB TB PB (powers of 1000); KiB kiB MiB GiB TiB PiB (of 1024);
 *                        a suffix without B (k K M G T P, Ki …) is binary, as in fio and qemu
 *   RATE    per second   requests: iops IOPS io/s IO/s req/s ops/s behind k K M G T P (of 1000):
 *                            "5k iops", "5 kiops", "3.3k IOPS", "200 req/s"
 *                        bytes: any SIZE with a B and /s or ps: "20 MiB/s", "400 MB/s", "1 GBps"
 *                        bits: bit b with /s or ps, prefixes as above: "2 Gbit/s", "100 Mb/s",
 *                            "10 Gbps", "8 Mibit/s"; divided by 8 into bytes
 *                        device time: "500 ms/s" (any TIME unit up to s), into ns per second
 *   COUNT   plain        k K M G T P are powers of 1000
 *   INT     plain        as COUNT, but whole ("1.5k" is), and may be negative
 */
#ifndef WEIR_UNITS_H
#define WEIR_UNITS_H

#include <weir/err.h>
#include <stddef.h>

WEIR_BEGIN_DECLS

enum weir_unit { /* the unit of a rate, a bucket or a cost */
	WEIR_UNIT_REQUESTS = 0,
	WEIR_UNIT_BYTES = 1,
	WEIR_UNIT_TIME = 2, /* estimated device time, ns */
};
#define WEIR_UNITS 3

struct weir_rate {
	double per_second; /* in `unit` */
	enum weir_unit unit;
};

/* Each parses the whole of `text`, except blanks around it. Return 0, or -EINVAL with a message
 * that quotes the text and suggests a valid form (without the place, which the caller knows). Times
 * and sizes are rounded to the nearest; a time is always below WEIR_NEVER. A value that does not
 * fit its type is refused. */
WEIR_API int weir_units_time(const char *text, weir_time *ret_ns, struct weir_err *err);
WEIR_API int weir_units_size(const char *text, uint64_t *ret_bytes, struct weir_err *err);
WEIR_API int weir_units_rate(const char *text, struct weir_rate *ret_rate, struct weir_err *err);
WEIR_API int weir_units_count(const char *text, double *ret_count, struct weir_err *err);
WEIR_API int weir_units_int(const char *text, int64_t *ret_int, struct weir_err *err);

/* Format as a short text that parses to within 0.05 %: "3.36k iops", "20 MiB/s", "37.2ms". Bytes
 * are shown in binary units unless they are round only in decimal ones ("400 MB/s"). Always
 * NUL-terminated (len ≥ 1); returns `buf`. 32 bytes always suffice. Not parseable, for display
 * only: a negative time with its sign, "never" for WEIR_NEVER, "nan" and "inf". */
WEIR_API char *weir_units_show_time(weir_time ns, char *buf, size_t len);
WEIR_API char *weir_units_show_size(uint64_t bytes, char *buf, size_t len);
WEIR_API char *weir_units_show_rate(struct weir_rate rate, char *buf, size_t len);
WEIR_API char *weir_units_show_count(double count, char *buf, size_t len);
/* Format two rates for a message that compares them: if they differ, with enough digits to look
 * different. */
WEIR_API void weir_units_show_rates(
	struct weir_rate a, struct weir_rate b, char *buf_a, char *buf_b, size_t len);

WEIR_END_DECLS

#endif
