/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lint: facts for the analyzer, which reads one file at a time: functions that set a message
 * return the negative code that they were given. Without this it assumes that every refusal may be
 * a success, and warns about outputs that were not set. Only tools/lint includes it.
 */
#include <weir/err.h>
#include "base/yamldoc.h"
#include "cli/common/opts.h"
#include <errno.h>

#define weir_err_set(err, code, ...)    ((void)weir_err_set(err, code, __VA_ARGS__), (code))
#define weir_err_at(err, code, at, ...) ((void)weir_err_at(err, code, at, __VA_ARGS__), (code))
#define yamldoc_error(n, err, ...)      ((void)yamldoc_error(n, err, __VA_ARGS__), -EINVAL)
#define opts_fail(v, ...)               ((void)opts_fail(v, __VA_ARGS__), 2)
