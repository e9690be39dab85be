/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc: one allocation step, JSON in, JSON out; one file an algorithm, cli/alloc-NAME.c.
 *
 * What is wrong with the input is said behind its path in the document, as in
 * `hosts[3].window: must be at least 0`.
 */
#ifndef WEIR_CLI_ALLOC_H
#define WEIR_CLI_ALLOC_H

#include <weir/err.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, and what goes out, the caller's to decref; or -EINVAL with a message, or -ENOMEM. `in` is an
 * object. */
typedef int alloc_step(json_t *in, json_t **ret_out, struct weir_err *err);
alloc_step alloc_adaptbf, alloc_parda, alloc_pshift;

/* ---- alloc-read.c: members of an object, which stands at `path` ("" at the top, "hosts[3]") */

struct alloc_at {
	const char *path;
	json_t *object;
	struct weir_err *err;
};

struct alloc_range { /* of a number */
	double least, most;
	bool above; /* more than `least`, not at least */
};

/* Is it an object that has no members but these? `keys` ends with NULL. */
int alloc_keys(const struct alloc_at *at, const char *const *keys);
/* 0; -ENOENT when it is absent or null (no message); -EINVAL. Outputs are set only on 0. */
int alloc_number(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret);
int alloc_whole(const struct alloc_at *at, const char *key, struct alloc_range range, int64_t *ret);
int alloc_absent_ok(int r); /* -ENOENT as 0 */
int alloc_flag(const struct alloc_at *at, const char *key, bool *ret);
/* -EINVAL also when it is absent. */
int alloc_need(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret);
int alloc_name(const struct alloc_at *at, const char **ret);
int alloc_list(const struct alloc_at *at, const char *key, json_t **ret);
/* Is no name of the list's objects there twice? -ENOMEM too. */
int alloc_unique(const struct alloc_at *at, const char *key, json_t *list);
/* The message "PATH.KEY: …"; -EINVAL. */
int alloc_fail(const struct alloc_at *at, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
