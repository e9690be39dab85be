/* SPDX-License-Identifier: BSD-3-Clause */
/* expr-functions: min, max, mean … of series and of numbers; see expr.h. */
#include "sim/experiment/expr-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

const char *const expr_functions[EXPR_FUNCTIONS + 1] = {"min", "max", "mean", "sum", "spread",
	"jain", "last", "abs", "ratio", "median", "below", "atmost", NULL};

static int fail(int code, const char **ret_why, const char *why)
{
	*ret_why = why;
	return code;
}

struct moments {
	size_t n;
	double min, max, sum, squares;
};

static void add_point(struct moments *m, double x)
{
	m->min = m->n ? fmin(m->min, x) : x;
	m->max = m->n ? fmax(m->max, x) : x;
	m->sum += x;
	m->squares += x * x;
	m->n++;
}

static int of_moments(
	enum expr_function fn, const struct moments *m, double *ret, const char **ret_why)
{
	double n = (double)m->n;

	if (!m->n)
		return fail(-EDOM, ret_why, "it contains no value");
	if ((fn == EXPR_SPREAD && m->sum == 0) || (fn == EXPR_JAIN && m->squares == 0))
		return fail(-EDOM, ret_why,
			fn == EXPR_JAIN ? "all values are zero" : "the mean is zero");
	switch (fn) {
	case EXPR_MIN:
		*ret = m->min;
		break;
	case EXPR_MAX:
		*ret = m->max;
		break;
	case EXPR_SUM:
		*ret = m->sum;
		break;
	case EXPR_MEAN:
		*ret = m->sum / n;
		break;
	case EXPR_SPREAD:
		*ret = (m->max - m->min) / (m->sum / n);
		break;
	default: /* EXPR_JAIN: other functions do not reach this */
		*ret = m->sum * m->sum / (n * m->squares);
	}
	return 0;
}

/* Return min, max, mean or last of one series, whole or from … to. */
static int of_series(
	enum expr_function fn, const struct expr_list *l, double *ret, const char **ret_why)
{
	const struct metrics_entry *e = &l->values[0].series;
	double from = -INFINITY, to = INFINITY;
	struct moments m = {0};

	if (fn != EXPR_MIN && fn != EXPR_MAX && fn != EXPR_MEAN && fn != EXPR_LAST)
		return fail(-EINVAL, ret_why, "only min, max, mean and last accept a series");
	if (l->n != 1 && (l->n != 3 || fn == EXPR_LAST))
		return fail(-EINVAL, ret_why,
			"a series takes no further arguments, or from and to: (x, 10s, 20s)");
	if (l->n == 3) {
		if (!l->values[1].is_time || !l->values[2].is_time)
			return fail(-EINVAL, ret_why, "from and to need a unit: 10s");
		/* ms; slightly widened, since steps of 0.1 s do not add up exactly */
		from = l->values[1].x / 1e3 - 1e-9;
		to = l->values[2].x / 1e3 + 1e-9;
	}
	for (size_t i = 0; i < e->n; i++)
		if (e->points[i].t >= from && e->points[i].t <= to)
			add_point(&m, e->points[i].value);
	if (fn == EXPR_LAST && m.n) {
		*ret = e->points[e->n - 1].value;
		return 0;
	}
	return of_moments(fn, &m, ret, ret_why);
}

/* Return the share of points at which the first series is no larger than the second, of those at which one of them is not 0. */
static int compare_series(const struct expr_list *l, double *ret, const char **ret_why)
{
	const struct metrics_entry *a = &l->values[0].series, *b = &l->values[1].series;
	size_t n = 0, kept = 0;

	if (l->n != 2 || !l->values[0].is_series || !l->values[1].is_series || a->n != b->n)
		return fail(-EINVAL, ret_why, "atmost takes two series of equal length");
	for (size_t i = 0; i < a->n; i++) {
		if (a->points[i].value == 0 && b->points[i].value == 0)
			continue;
		n++;
		kept += a->points[i].value <= b->points[i].value;
	}
	if (!n)
		return fail(-EDOM, ret_why, "all values are zero");
	*ret = (double)kept / (double)n;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int median(const struct expr_list *l, double *ret, const char **ret_why)
{
	double *xs = malloc((l->n + 1) * sizeof(*xs));

	if (!xs)
		return fail(-ENOMEM, ret_why, "out of memory");
	for (size_t i = 0; i < l->n; i++)
		xs[i] = l->values[i].x;
	qsort(xs, l->n, sizeof(*xs), by_value);
	*ret = (xs[(l->n - 1) / 2] + xs[l->n / 2]) / 2;
	free(xs);
	return 0;
}

static int of_scalars(
	enum expr_function fn, const struct expr_list *l, double *ret, const char **ret_why)
{
	struct moments m = {0};

	for (size_t i = 0; i < l->n; i++) {
		if (l->values[i].is_series)
			return fail(-EINVAL, ret_why, "only the first argument may be a series");
		add_point(&m, l->values[i].x);
	}
	if (fn == EXPR_LAST)
		return fail(-EINVAL, ret_why, "last takes a series");
	if (fn == EXPR_MEDIAN)
		return median(l, ret, ret_why);
	if (fn == EXPR_BELOW) {
		if (l->n != 2)
			return fail(-EINVAL, ret_why, "below takes two arguments");
		*ret = l->values[0].x < l->values[1].x;
		return 0;
	}
	if (fn == EXPR_ABS || fn == EXPR_RATIO) {
		if (l->n != (fn == EXPR_ABS ? 1 : 2))
			return fail(-EINVAL, ret_why,
				fn == EXPR_ABS ? "abs takes one argument"
					       : "ratio takes two arguments");
		if (fn == EXPR_RATIO && l->values[1].x == 0)
			return fail(-EDOM, ret_why, "divides by zero");
		*ret = fn == EXPR_ABS ? fabs(l->values[0].x) : l->values[0].x / l->values[1].x;
		return 0;
	}
	return of_moments(fn, &m, ret, ret_why);
}

int expr_function_apply(
	enum expr_function fn, const struct expr_list *l, double *ret, const char **ret_why)
{
	if (fn == EXPR_ATMOST)
		return compare_series(l, ret, ret_why);
	return (l->values[0].is_series ? of_series : of_scalars)(fn, l, ret, ret_why);
}
