/* SPDX-License-Identifier: BSD-3-Clause */
/* expr: see expr.h. A recursive-descent reader that computes while it reads. */
#include "sim/expr.h"
#include "base/units.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPR_DEPTH 64  /* nested brackets: far beyond what a person writes, far below the stack */
#define EXPR_NAME  256 /* bytes of a name, its end included */
#define EXPR_QUOTE 120 /* bytes of the text that a message repeats */

struct value {
	bool is_time; /* a time with its unit came into it: ms */
	bool is_series;
	double x;
	struct metrics_entry series;
};

struct list {
	struct value *values;
	size_t n, room;
};

struct parser {
	const char *text, *at;
	const struct expr_scope *scope; /* NULL: only check the grammar */
	struct weir_err *err;
	int depth;
};

static int fail(struct parser *p, const char *at, int code, const char *what)
{
	bool cut = strlen(p->text) > EXPR_QUOTE;

	return weir_err_set(p->err, code, "column %zu of '%.*s%s': %s", (size_t)(at - p->text) + 1,
		EXPR_QUOTE, p->text, cut ? "…" : "", what);
}

static void skip_space(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool take(struct parser *p, char c)
{
	skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* ---- numbers */

static int number(struct parser *p, struct value *ret)
{
	const char *start = p->at, *end = start;
	char text[64];
	weir_time ns;
	uint64_t bytes;

	while (isdigit((unsigned char)*end) || *end == '.')
		end++;
	if (*end == '%')
		end++;
	else /* the unit, µ included */
		while (isalpha((unsigned char)*end) || (unsigned char)*end >= 0x80)
			end++;
	if ((size_t)(end - start) >= sizeof(text))
		return fail(p, start, -EINVAL, "the number is too long");
	memcpy(text, start, (size_t)(end - start));
	text[end - start] = '\0';
	p->at = end;
	*ret = (struct value){0};
	if (end[-1] == '%') {
		text[end - start - 1] = '\0';
		if (weir_units_count(text, &ret->x, NULL) < 0)
			return fail(p, start, -EINVAL, "not a number");
		ret->x /= 100;
	} else if (weir_units_count(text, &ret->x, NULL) == 0) {
		return 0;
	} else if (weir_units_time(text, &ns, NULL) == 0) {
		ret->x = (double)ns / WEIR_MS;
		ret->is_time = true;
	} else if (weir_units_size(text, &bytes, NULL) == 0) {
		ret->x = (double)bytes;
	} else {
		return fail(p, start, -EINVAL,
			"not a number, or not one of its units: k M G % us ms s KiB");
	}
	return 0;
}

/* ---- names */

static bool name_char(const char *at, const char *start)
{
	if (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
		return true;
	if (*at == '-')
		return at > start && isalnum((unsigned char)at[-1]) &&
		       isalnum((unsigned char)at[1]);
	return *at == '*' && at > start && at[-1] == '.';
}

static int take_name(struct parser *p, char *name)
{
	const char *start = p->at;
	size_t n;

	while (name_char(p->at, start))
		p->at++;
	n = (size_t)(p->at - start);
	if (n >= EXPR_NAME)
		return fail(p, start, -EINVAL, "the name is too long");
	memcpy(name, start, n);
	name[n] = '\0';
	return 0;
}

/* Whose metrics a name is in, and what is left of it. */
static const struct metrics *owner(const struct expr_scope *s, const char *name, const char **rest)
{
	struct metrics_entry e;
	const char *dot = strchr(name, '.');

	*rest = name;
	if (s->defined && metrics_find(s->defined, name, &e))
		return s->defined;
	for (size_t i = 0; dot && i < s->n_runs; i++) {
		if (strlen(s->runs[i].name) == (size_t)(dot - name) &&
			strncmp(s->runs[i].name, name, (size_t)(dot - name)) == 0) {
			*rest = dot + 1;
			return s->runs[i].metrics;
		}
	}
	return s->n_runs == 1 ? s->runs[0].metrics : NULL;
}

static const char *near_run(const struct expr_scope *s, const char *name)
{
	const char **names = calloc(s->n_runs + 1, sizeof(*names)), *near = NULL;
	char run[EXPR_NAME];

	snprintf(run, sizeof(run), "%.*s", (int)strcspn(name, "."), name);
	for (size_t i = 0; names && i < s->n_runs; i++)
		names[i] = s->runs[i].name;
	if (names)
		near = weir_err_near(run, names);
	free(names);
	return near;
}

static int unknown(struct parser *p, const char *at, const char *name)
{
	const struct expr_scope *s = p->scope;
	const char *rest, *near;
	const struct metrics *m = owner(s, name, &rest);
	char what[2 * EXPR_NAME + 64];

	if (m) {
		near = metrics_near(m, rest);
		if (near)
			snprintf(what, sizeof(what), "no value '%s' (did you mean '%.*s%s'?)", name,
				(int)(rest - name), name, near);
		else
			snprintf(what, sizeof(what), "no value '%s'", name);
		return fail(p, at, -ENOENT, what);
	}
	near = s->defined ? metrics_near(s->defined, name) : NULL;
	if (!near)
		near = near_run(s, name);
	if (near && strcmp(near, name) == 0)
		snprintf(what, sizeof(what), "'%s' is a run: name one of its values", name);
	else if (near)
		snprintf(what, sizeof(what),
			"'%s' does not start with a run's name (did you mean '%s'?)", name, near);
	else
		snprintf(what, sizeof(what), "'%s' does not start with a run's name", name);
	return fail(p, at, -ENOENT, what);
}

static struct value value_of(const struct metrics_entry *e)
{
	return (struct value){.is_series = e->is_series, .x = e->value, .series = *e};
}

static int push(struct parser *p, struct list *l, const struct value *v)
{
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct value *values = realloc(l->values, room * sizeof(*values));

		if (!values)
			return weir_err_set(p->err, -ENOMEM, "out of memory");
		l->values = values;
		l->room = room;
	}
	l->values[l->n++] = *v;
	return 0;
}

/* One part of `name` may be `*`, which fits any one part. */
static bool fits(const char *pattern, const char *name)
{
	while (*pattern && *name) {
		if (*pattern == '*') {
			pattern++;
			name += strcspn(name, ".");
		} else if (*pattern++ != *name++) {
			return false;
		}
	}
	return !*pattern && !*name;
}

static int push_pattern(struct parser *p, const char *at, const char *name, struct list *l)
{
	const char *rest;
	const struct metrics *m = owner(p->scope, name, &rest);
	size_t before = l->n;
	int r;

	for (size_t i = 0; m && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		struct value v = value_of(&e);

		if (!fits(rest, e.name))
			continue;
		r = push(p, l, &v);
		if (r < 0)
			return r;
	}
	return l->n > before ? 0 : unknown(p, at, name);
}

static int lookup(struct parser *p, const char *at, const char *name, struct value *ret)
{
	struct metrics_entry e;
	const char *rest;
	const struct metrics *m;

	*ret = (struct value){.x = 1};
	if (strchr(name, '*'))
		return fail(p, at, -EINVAL,
			"a name with '*' stands for several: use it as an argument");
	if (!p->scope)
		return 0;
	m = owner(p->scope, name, &rest);
	if (!m || !metrics_find(m, rest, &e))
		return unknown(p, at, name);
	*ret = value_of(&e);
	return 0;
}

/* ---- functions */

enum fn { FN_MIN, FN_MAX, FN_MEAN, FN_SUM, FN_SPREAD, FN_JAIN, FN_LAST, FN_ABS, FN_RATIO, FNS };
static const char *const fn_names[FNS + 1] = {
	"min", "max", "mean", "sum", "spread", "jain", "last", "abs", "ratio", NULL};

static int find_fn(const char *name)
{
	for (int i = 0; i < FNS; i++)
		if (strcmp(fn_names[i], name) == 0)
			return i;
	return -ENOENT;
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
	struct parser *p, const char *at, enum fn fn, const struct moments *m, double *ret)
{
	double n = (double)m->n;

	if (!m->n)
		return fail(p, at, -EDOM, "there is no value in it");
	if ((fn == FN_SPREAD && m->sum == 0) || (fn == FN_JAIN && m->squares == 0))
		return fail(
			p, at, -EDOM, fn == FN_JAIN ? "all values are zero" : "the mean is zero");
	switch (fn) {
	case FN_MIN:
		*ret = m->min;
		break;
	case FN_MAX:
		*ret = m->max;
		break;
	case FN_SUM:
		*ret = m->sum;
		break;
	case FN_MEAN:
		*ret = m->sum / n;
		break;
	case FN_SPREAD:
		*ret = (m->max - m->min) / (m->sum / n);
		break;
	default: /* FN_JAIN: the others do not come here */
		*ret = m->sum * m->sum / (n * m->squares);
	}
	return 0;
}

/* min, max, mean or last of one series, whole or from … to. */
static int of_series(
	struct parser *p, const char *at, enum fn fn, const struct list *l, double *ret)
{
	const struct metrics_entry *e = &l->values[0].series;
	double from = -INFINITY, to = INFINITY;
	struct moments m = {0};

	if (fn != FN_MIN && fn != FN_MAX && fn != FN_MEAN && fn != FN_LAST)
		return fail(p, at, -EINVAL, "a series goes into min, max, mean or last");
	if (l->n != 1 && (l->n != 3 || fn == FN_LAST))
		return fail(p, at, -EINVAL,
			"give the series alone, or with from and to: (x, 10s, 20s)");
	if (l->n == 3) {
		if (!l->values[1].is_time || !l->values[2].is_time)
			return fail(p, at, -EINVAL, "from and to need a unit: 10s");
		/* ms; a hair of slack, since 0.1 s steps do not add up exactly */
		from = l->values[1].x / 1e3 - 1e-9;
		to = l->values[2].x / 1e3 + 1e-9;
	}
	for (size_t i = 0; i < e->n; i++)
		if (e->points[i].t >= from && e->points[i].t <= to)
			add_point(&m, e->points[i].value);
	if (fn == FN_LAST && m.n) {
		*ret = e->points[e->n - 1].value;
		return 0;
	}
	return of_moments(p, at, fn, &m, ret);
}

static int of_scalars(
	struct parser *p, const char *at, enum fn fn, const struct list *l, double *ret)
{
	struct moments m = {0};

	for (size_t i = 0; i < l->n; i++) {
		if (l->values[i].is_series)
			return fail(p, at, -EINVAL, "one series at a time, and first");
		add_point(&m, l->values[i].x);
	}
	if (fn == FN_LAST)
		return fail(p, at, -EINVAL, "last takes a series");
	if (fn == FN_ABS || fn == FN_RATIO) {
		if (l->n != (fn == FN_ABS ? 1 : 2))
			return fail(p, at, -EINVAL,
				fn == FN_ABS ? "abs takes one argument"
					     : "ratio takes two arguments");
		if (fn == FN_RATIO && l->values[1].x == 0)
			return fail(p, at, -EDOM, "divides by zero");
		*ret = fn == FN_ABS ? fabs(l->values[0].x) : l->values[0].x / l->values[1].x;
		return 0;
	}
	return of_moments(p, at, fn, &m, ret);
}

static int sum(struct parser *p, struct value *ret);

static int argument(struct parser *p, struct list *l)
{
	const char *start;
	char name[EXPR_NAME];
	struct value v = {0};
	int r;

	skip_space(p);
	start = p->at;
	if (isalpha((unsigned char)*start)) { /* perhaps a name for several */
		r = take_name(p, name);
		if (r < 0)
			return r;
		if (strchr(name, '*')) {
			v = (struct value){.x = 1};
			return p->scope ? push_pattern(p, start, name, l) : push(p, l, &v);
		}
		p->at = start;
	}
	r = sum(p, &v);
	return r < 0 ? r : push(p, l, &v);
}

static int arguments(struct parser *p, struct list *l)
{
	int r;

	if (take(p, ')'))
		return 0;
	do {
		r = argument(p, l);
		if (r < 0)
			return r;
	} while (take(p, ','));
	return take(p, ')') ? 0 : fail(p, p->at, -EINVAL, "expected ',' or ')'");
}

static int call(struct parser *p, const char *at, const char *name, struct value *ret)
{
	struct list l = {0};
	char what[128];
	const char *near;
	int fn = find_fn(name), r;

	if (fn < 0) {
		near = weir_err_near(name, fn_names);
		snprintf(what, sizeof(what), "no function '%.40s'%s%s%s", name,
			near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
		return fail(p, at, -EINVAL, what);
	}
	r = arguments(p, &l);
	*ret = (struct value){.x = 1};
	if (r == 0 && l.n == 0)
		r = fail(p, at, -EINVAL, "the function needs an argument");
	if (r == 0 && p->scope) {
		ret->is_time = l.values[0].is_time;
		r = l.values[0].is_series ? of_series(p, at, (enum fn)fn, &l, &ret->x)
					  : of_scalars(p, at, (enum fn)fn, &l, &ret->x);
	}
	free(l.values);
	return r;
}

/* ---- the grammar */

static int name_or_call(struct parser *p, struct value *ret)
{
	const char *start = p->at;
	char name[EXPR_NAME];
	int r = take_name(p, name);

	if (r < 0)
		return r;
	if (take(p, '('))
		return call(p, start, name, ret);
	return lookup(p, start, name, ret);
}

static int primary(struct parser *p, struct value *ret)
{
	int r;

	skip_space(p);
	if (take(p, '(')) {
		r = sum(p, ret);
		if (r < 0)
			return r;
		return take(p, ')') ? 0 : fail(p, p->at, -EINVAL, "expected ')'");
	}
	if (isdigit((unsigned char)*p->at) || *p->at == '.')
		return number(p, ret);
	if (isalpha((unsigned char)*p->at) || *p->at == '_')
		return name_or_call(p, ret);
	return fail(p, p->at, -EINVAL,
		*p->at ? "expected a number, a name or '('" : "something is missing here");
}

static int scalar(struct parser *p, const char *at, const struct value *v)
{
	if (v->is_series)
		return fail(p, at, -EINVAL, "a series: take its min, max, mean or last");
	return 0;
}

static int unary(struct parser *p, struct value *ret)
{
	const char *start;
	int r;

	if (p->depth >= EXPR_DEPTH)
		return fail(p, p->at, -EINVAL, "too many brackets");
	p->depth++;
	skip_space(p);
	start = p->at;
	if (take(p, '-')) {
		r = unary(p, ret);
		if (r == 0)
			r = scalar(p, start + 1, ret);
		if (r == 0)
			ret->x = -ret->x;
	} else {
		r = primary(p, ret);
	}
	p->depth--;
	return r;
}

static int apply(struct parser *p, const char *at, char op, struct value *a, const struct value *b)
{
	if (scalar(p, at, a) < 0 || scalar(p, at + 1, b) < 0)
		return -EINVAL;
	a->is_time |= b->is_time;
	if (op == '/' && b->x == 0)
		return p->scope ? fail(p, at, -EDOM, "divides by zero") : 0;
	a->x = op == '+'   ? a->x + b->x
	       : op == '-' ? a->x - b->x
	       : op == '*' ? a->x * b->x
			   : a->x / b->x;
	return 0;
}

/* Operands of the next level, joined from left to right by any of the two `ops`. */
static int chain(struct parser *p, const char *ops, int (*next)(struct parser *, struct value *),
	struct value *ret)
{
	struct value b = {0};
	int r = next(p, ret);

	while (r == 0) {
		const char *at;

		skip_space(p);
		at = p->at;
		if (*at != ops[0] && *at != ops[1])
			return 0;
		p->at++;
		r = next(p, &b);
		if (r == 0)
			r = apply(p, at, *at, ret, &b);
	}
	return r;
}

static int product(struct parser *p, struct value *ret)
{
	return chain(p, "*/", unary, ret);
}

static int sum(struct parser *p, struct value *ret)
{
	return chain(p, "+-", product, ret);
}

static int whole(struct parser *p, struct value *ret)
{
	int r = sum(p, ret);

	if (r < 0)
		return r;
	skip_space(p);
	if (*p->at)
		return fail(p, p->at, -EINVAL, "expected an operator or the end");
	return scalar(p, p->text, ret);
}

int expr_eval(
	const char *text, const struct expr_scope *scope, double *ret_value, struct weir_err *err)
{
	struct parser p = {.text = text, .at = text, .scope = scope, .err = err};
	struct value v = {0};
	int r = whole(&p, &v);

	if (r < 0)
		return r;
	if (!isfinite(v.x))
		return fail(&p, text, -EDOM, "not a finite number");
	*ret_value = v.x;
	return 0;
}

int expr_check(const char *text, struct weir_err *err)
{
	struct parser p = {.text = text, .at = text, .err = err};
	struct value v = {0};

	return whole(&p, &v);
}

int expr_series(const char *name, const struct expr_scope *scope, struct metrics_entry *ret,
	struct weir_err *err)
{
	struct parser p = {.text = name, .at = name, .scope = scope, .err = err};
	struct value v = {0};
	int r = lookup(&p, name, name, &v);

	if (r < 0)
		return r;
	if (!v.is_series)
		return fail(&p, name, -EINVAL, "a value, not a series");
	*ret = v.series;
	return 0;
}
