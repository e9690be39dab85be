/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test: the minimum for a test file.
 *
 * A test file is a program: functions that CHECK, and a main that RUNs them. A failed CHECK prints
 * the place, the expression and the value, and exits with 1. SKIP exits with 77 and prints the
 * reason, which the runner repeats.
 */
#ifndef WEIR_TESTS_TEST_H
#define WEIR_TESTS_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                    \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		exit(1);                                                                           \
	} while (0)

#define CHECK(expr)                                                                                \
	do {                                                                                       \
		if (!(expr))                                                                       \
			FAIL("not so: %s", #expr);                                                 \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_)                                                                 \
			FAIL("%s is %lld, not %lld", #got, got_, want_);                           \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!got_ || strcmp(got_, want_) != 0)                                             \
			FAIL("%s is \"%s\", not \"%s\"", #got, got_ ? got_ : "(null)", want_);     \
	} while (0)

/* Within a relative tolerance. */
#define CHECK_NEAR(got, want, tolerance)                                                           \
	do {                                                                                       \
		double got_ = (got), want_ = (want);                                               \
		if (!(fabs(got_ - want_) <= (tolerance)*fabs(want_)))                              \
			FAIL("%s is %g, not within %g of %g", #got, got_, (double)(tolerance),     \
				want_);                                                            \
	} while (0)

/* Set a char * to the text that the call writes to the stream `to`. */
#define WRITE_TEXT(text, call)                                                                     \
	do {                                                                                       \
		size_t len_;                                                                       \
		FILE *to = open_memstream(&(text), &len_);                                         \
		CHECK(to != NULL);                                                                 \
		call;                                                                              \
		CHECK_INT(fclose(to), 0);                                                          \
	} while (0)

#define SKIP(...)                                                                                  \
	do {                                                                                       \
		printf("skipped: ");                                                               \
		printf(__VA_ARGS__);                                                               \
		putchar('\n');                                                                     \
		exit(77);                                                                          \
	} while (0)

#define RUN(fn)                                                                                    \
	do {                                                                                       \
		fn();                                                                              \
		printf("ok %s\n", #fn);                                                            \
	} while (0)

#endif
