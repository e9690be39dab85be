/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc: one allocation step, JSON in, JSON out; one file per algorithm, cli/alloc-NAME.c.
 *
 * Messages about the input begin with the path in the document, as in `hosts[3].window: must be at
 * least 0`.
 */
#pragma once

#include <weir/err.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Run one step on `in`, an object. Return 0 and the output, which the caller frees with
 * json_decref; -EINVAL with a message; or -ENOMEM.
 */
typedef int alloc_step(json_t *in, json_t **ret_out, struct weir_err *err);
alloc_step alloc_adaptbf, alloc_meister, alloc_parda, alloc_pshift, alloc_waterfill;

/* ---- alloc-read.c: members of an object at `path` ("" at the top, "hosts[3]") */

struct alloc_at {
	const char *path;
	json_t *object;
	struct weir_err *err;
};

struct alloc_range { /* of a number */
	double least, most;
	bool above; /* greater than `least`, not equal */
};

/* Check that it is an object with no other members than `keys`, which ends with NULL. */
int alloc_keys(const struct alloc_at *at, const char *const *keys);
/*
 * Return 0; -ENOENT if the member is absent or null (no message); or -EINVAL. Outputs are set only
 * on 0.
 */
int alloc_number(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret);
int alloc_whole(const struct alloc_at *at, const char *key, struct alloc_range range, int64_t *ret);
int alloc_absent_ok(int r); /* -ENOENT as 0 */
int alloc_flag(const struct alloc_at *at, const char *key, bool *ret);
/* The same, but return -EINVAL if the member is absent. */
int alloc_need(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret);
int alloc_name(const struct alloc_at *at, const char **ret);
int alloc_list(const struct alloc_at *at, const char *key, json_t **ret);
/* Read each object of the list `key`, and check that their names are unique. Return 0, -EINVAL or
 * -ENOMEM. */
typedef int alloc_read(const struct alloc_at *at, void *arg, size_t i);
int alloc_each(
	const struct alloc_at *top, const char *key, json_t *list, alloc_read *read, void *arg);
/* Set the message "PATH.KEY: …" and return -EINVAL. */
int alloc_fail(const struct alloc_at *at, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
