/* SPDX-License-Identifier: BSD-3-Clause */
/* expr-impl: what the reader (expr.c) and the functions of the language (expr-functions.c) share. */
#ifndef WEIR_SIM_EXPR_IMPL_H
#define WEIR_SIM_EXPR_IMPL_H

#include "sim/expr.h"
#include <stdbool.h>

struct expr_value {
	bool is_time; /* a time with its unit came into it: ms */
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
	EXPR_FUNCTIONS
};
extern const char *const expr_functions[EXPR_FUNCTIONS + 1]; /* their names; NULL at the end */
int expr_function_find(const char *name);                    /* or -ENOENT */
/* Of one argument at least. 0, or -EINVAL or -EDOM: *ret_why says what is wrong with the arguments. */
int expr_function_apply(
	enum expr_function fn, const struct expr_list *l, double *ret, const char **ret_why);

#endif
