/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * err: error messages beside a negative errno.
 *
 * Functions that can fail return 0 or a negative errno and set their outputs only on success.
 * Functions that parse user input also take a `struct weir_err *` (NULL: not wanted) and write a
 * message there that names the place: "weir.yaml:12:9: unknown key 'wieght' (did you mean
 * 'weight'?)". One line, no trailing newline, no program name; control characters and invalid UTF-8
 * in quoted input are shown as '?'. The library never prints.
 */
#ifndef WEIR_ERR_H
#define WEIR_ERR_H

#include <weir/clock.h>

WEIR_BEGIN_DECLS

struct weir_err {
	char text[400]; /* NUL-terminated; cut at the end if longer */
};

/* A place in user input. Line and column count from 1; 0 means unknown, and is not printed. `file`
 * is borrowed. */
struct weir_place {
	const char *file;
	unsigned line, column;
};

/* Write the message (if err is not NULL) and return `code`, so that a failure is one line: `return
 * weir_err_set(err, -EINVAL, "weight: must be > 0");` */
WEIR_API int weir_err_set(struct weir_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, with the prefix "file:line:column: ". */
WEIR_API int weir_err_at(struct weir_err *err, int code, struct weir_place at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Return the entry of `words` (NULL-terminated) nearest to `word` by edit distance, or NULL if none
 * is near enough to be a likely typo (distance ≤ 1 + length/4; swapped neighbours count 1, a change
 * of case ½). The first of equals. For "did you mean". */
WEIR_API const char *weir_err_near(const char *word, const char *const *words);

WEIR_END_DECLS

#endif
