/* SPDX-License-Identifier: BSD-3-Clause */
/* expr-impl: shared by the parser (expr.c) and the functions of the language (expr-functions.c). */
#pragma once

#include "sim/experiment/expr.h"
#include <stdbool.h>

struct expr_value {
	bool is_time; /* derived from a time with a unit: ms */
	bool is_series;
	double x;
	struct metrics_entry series;
};

struct expr_list {
	struct expr_value *values;
	size_t n, room;
};

enum expr_function {
	EXPR_MIN,
	EXPR_MAX,
	EXPR_MEAN,
	EXPR_SUM,
	EXPR_SPREAD,
	EXPR_JAIN,
	EXPR_LAST,
	EXPR_ABS,
	EXPR_RATIO,
	EXPR_MEDIAN,
	EXPR_BELOW,
	EXPR_ATMOST,
	EXPR_FUNCTIONS
};
extern const char *const expr_functions[EXPR_FUNCTIONS + 1]; /* NULL-terminated */
/* Apply a function to at least one argument. Return 0, or -EINVAL or -EDOM with *ret_why: what is
 * wrong with the arguments. */
int expr_function_apply(
	enum expr_function fn, const struct expr_list *l, double *ret, const char **ret_why);
