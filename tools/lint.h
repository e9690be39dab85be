/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lint: facts for the analyzer, which reads one file at a time. Functions that set a message return the
 * negative code that they were given: without this it assumes that every refusal may be a success, and warns about
 * outputs that were not set. An array that could grow is not NULL. Only tools/lint includes this file.
 */
#include <weir/err.h>
#include "base/array.h"
#include "base/yamldoc.h"
#include "cli/common/opts.h"
#include <errno.h>
#include <stdlib.h>

#define weir_err_set(err, code, ...)    ((void)weir_err_set(err, code, __VA_ARGS__), (code))
#define weir_err_at(err, code, at, ...) ((void)weir_err_at(err, code, at, __VA_ARGS__), (code))
#define yamldoc_error(n, err, ...)      ((void)yamldoc_error(n, err, __VA_ARGS__), -EINVAL)
#define opts_fail(v, ...)               ((void)opts_fail(v, __VA_ARGS__), 2)

#undef array_grow
#define array_grow(array, room, n)                                                                 \
	(array_grow_to((array), (room), (n), sizeof(**(array))) < 0 ? -ENOMEM                      \
		: *(array)                                          ? 0                            \
								    : (abort(), 0))
