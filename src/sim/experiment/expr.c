/* SPDX-License-Identifier: BSD-3-Clause */
/* expr: a recursive-descent parser that computes while it parses. See expr.h. */
#include "base/field.h"
#include "base/array.h"
#include "base/no-memory.h"
#include "sim/experiment/expr-impl.h"
#include <weir/units.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPR_DEPTH 64  /* nested brackets: far beyond any real expression, far below the stack */
#define EXPR_NAME  256 /* bytes of a name, including the NUL */
#define EXPR_QUOTE 120 /* bytes of the text quoted in a message */

struct parser {
	const char *text, *at;
	const struct expr_scope *scope;             /* NULL: only check the grammar … */
	void (*visit)(const char *name, void *arg); /* … and pass each name to this; may be NULL */
	void *visit_arg;
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

static bool skip_char(struct parser *p, char c)
{
	skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* ---- numbers */

static int parse_number(struct parser *p, struct expr_value *ret)
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
	*ret = (struct expr_value){0};
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

static int parse_name(struct parser *p, char *name)
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

/* Return the metrics that contain a name, and the rest of the name. */
static const struct metrics *find_metrics(
	const struct expr_scope *s, const char *name, const char **rest)
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

static int unknown_name(struct parser *p, const char *at, const char *name)
{
	const struct expr_scope *s = p->scope;
	const char *rest, *near;
	const struct metrics *m = find_metrics(s, name, &rest);
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

static struct expr_value value_of(const struct metrics_entry *e)
{
	return (struct expr_value){.is_series = e->is_series, .x = e->value, .series = *e};
}

static int push_value(struct parser *p, struct expr_list *l, const struct expr_value *v)
{
	if (array_grow(&l->values, &l->room, l->n + 1) < 0)
		return no_memory(p->err);
	l->values[l->n++] = *v;
	return 0;
}

/* Match a name against a pattern, in which `*` matches any one part. */
static bool matches(const char *pattern, const char *name)
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

/* Refuse NaN, which fmin and fmax would ignore silently. */
static int check_measured(struct parser *p, const char *at, const struct metrics_entry *e)
{
	char what[EXPR_NAME + 40];

	if (e->is_series || !isnan(e->value))
		return 0;
	snprintf(what, sizeof(what), "%s: nothing was measured", e->name);
	return fail(p, at, -EDOM, what);
}

static int push_pattern(struct parser *p, const char *at, const char *name, struct expr_list *l)
{
	const char *rest;
	const struct metrics *m = find_metrics(p->scope, name, &rest);
	size_t before = l->n;
	int r;

	for (size_t i = 0; m && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		struct expr_value v = value_of(&e);

		if (!matches(rest, e.name))
			continue;
		r = check_measured(p, at, &e);
		if (r == 0)
			r = push_value(p, l, &v);
		if (r < 0)
			return r;
	}
	return l->n > before ? 0 : unknown_name(p, at, name);
}

static int find_value(struct parser *p, const char *at, const char *name, struct expr_value *ret)
{
	struct metrics_entry e;
	const char *rest;
	const struct metrics *m;

	*ret = (struct expr_value){.x = 1};
	if (strchr(name, '*'))
		return fail(p, at, -EINVAL,
			"a name with '*' matches several values: use it as an argument");
	if (!p->scope) {
		if (p->visit)
			p->visit(name, p->visit_arg);
		return 0;
	}
	m = find_metrics(p->scope, name, &rest);
	if (!m || !metrics_find(m, rest, &e))
		return unknown_name(p, at, name);
	*ret = value_of(&e);
	return check_measured(p, at, &e);
}

/* ---- functions */

static int parse_sum(struct parser *p, struct expr_value *ret);

static int parse_argument(struct parser *p, struct expr_list *l)
{
	const char *start;
	char name[EXPR_NAME];
	struct expr_value v = {0};
	int r;

	skip_space(p);
	start = p->at;
	if (isalpha((unsigned char)*start)) { /* possibly a name with '*' */
		r = parse_name(p, name);
		if (r < 0)
			return r;
		if (strchr(name, '*')) {
			v = (struct expr_value){.x = 1};
			if (p->visit)
				p->visit(name, p->visit_arg);
			return p->scope ? push_pattern(p, start, name, l) : push_value(p, l, &v);
		}
		p->at = start;
	}
	r = parse_sum(p, &v);
	return r < 0 ? r : push_value(p, l, &v);
}

static int parse_arguments(struct parser *p, struct expr_list *l)
{
	int r;

	if (skip_char(p, ')'))
		return 0;
	do {
		r = parse_argument(p, l);
		if (r < 0)
			return r;
	} while (skip_char(p, ','));
	return skip_char(p, ')') ? 0 : fail(p, p->at, -EINVAL, "expected ',' or ')'");
}

static int parse_call(struct parser *p, const char *at, const char *name, struct expr_value *ret)
{
	struct expr_list l = {0};
	char what[128];
	const char *near, *why;
	int fn = field_index(expr_functions, name), r;

	if (fn < 0) {
		near = weir_err_near(name, expr_functions);
		snprintf(what, sizeof(what), "no function '%.40s'%s%s%s", name,
			near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
		return fail(p, at, -EINVAL, what);
	}
	r = parse_arguments(p, &l);
	*ret = (struct expr_value){.x = 1};
	if (r == 0 && l.n == 0)
		r = fail(p, at, -EINVAL, "the function needs an argument");
	if (r == 0 && p->scope) {
		ret->is_time = l.values[0].is_time;
		r = expr_function_apply((enum expr_function)fn, &l, &ret->x, &why);
		if (r < 0)
			r = fail(p, at, r, why);
	}
	free(l.values);
	return r;
}

/* ---- the grammar */

static int name_or_call(struct parser *p, struct expr_value *ret)
{
	const char *start = p->at;
	char name[EXPR_NAME];
	int r = parse_name(p, name);

	if (r < 0)
		return r;
	if (skip_char(p, '('))
		return parse_call(p, start, name, ret);
	return find_value(p, start, name, ret);
}

static int parse_primary(struct parser *p, struct expr_value *ret)
{
	int r;

	skip_space(p);
	if (skip_char(p, '(')) {
		r = parse_sum(p, ret);
		if (r < 0)
			return r;
		return skip_char(p, ')') ? 0 : fail(p, p->at, -EINVAL, "expected ')'");
	}
	if (isdigit((unsigned char)*p->at) || *p->at == '.')
		return parse_number(p, ret);
	if (isalpha((unsigned char)*p->at) || *p->at == '_')
		return name_or_call(p, ret);
	return fail(p, p->at, -EINVAL,
		*p->at ? "expected a number, a name or '('" : "expression ends too early");
}

static int require_scalar(struct parser *p, const char *at, const struct expr_value *v)
{
	if (v->is_series)
		return fail(p, at, -EINVAL, "a series: use its min, max, mean or last");
	return 0;
}

static int parse_unary(struct parser *p, struct expr_value *ret)
{
	const char *start;
	int r;

	if (p->depth >= EXPR_DEPTH)
		return fail(p, p->at, -EINVAL, "too many brackets");
	p->depth++;
	skip_space(p);
	start = p->at;
	if (skip_char(p, '-')) {
		r = parse_unary(p, ret);
		if (r == 0)
			r = require_scalar(p, start + 1, ret);
		if (r == 0)
			ret->x = -ret->x;
	} else {
		r = parse_primary(p, ret);
	}
	p->depth--;
	return r;
}

static int apply_operator(
	struct parser *p, const char *at, char op, struct expr_value *a, const struct expr_value *b)
{
	if (require_scalar(p, at, a) < 0 || require_scalar(p, at + 1, b) < 0)
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

/* Parse operands of the next level, joined from left to right by any of the two `ops`. */
static int parse_chain(struct parser *p, const char *ops,
	int (*next)(struct parser *, struct expr_value *), struct expr_value *ret)
{
	struct expr_value b = {0};
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
			r = apply_operator(p, at, *at, ret, &b);
	}
	return r;
}

static int parse_product(struct parser *p, struct expr_value *ret)
{
	return parse_chain(p, "*/", parse_unary, ret);
}

static int parse_sum(struct parser *p, struct expr_value *ret)
{
	return parse_chain(p, "+-", parse_product, ret);
}

static int parse_whole(struct parser *p, struct expr_value *ret)
{
	int r = parse_sum(p, ret);

	if (r < 0)
		return r;
	skip_space(p);
	if (*p->at)
		return fail(p, p->at, -EINVAL, "expected an operator or the end");
	return require_scalar(p, p->text, ret);
}

int expr_eval(
	const char *text, const struct expr_scope *scope, double *ret_value, struct weir_err *err)
{
	struct parser p = {.text = text, .at = text, .scope = scope, .err = err};
	struct expr_value v = {0};
	int r = parse_whole(&p, &v);

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
	struct expr_value v = {0};

	return parse_whole(&p, &v);
}

void expr_names(const char *text, void (*visit)(const char *name, void *arg), void *arg)
{
	struct parser p = {.text = text, .at = text, .visit = visit, .visit_arg = arg};
	struct expr_value v = {0};

	(void)parse_whole(&p, &v);
}

int expr_series(const char *name, const struct expr_scope *scope, struct metrics_entry *ret,
	struct weir_err *err)
{
	struct parser p = {.text = name, .at = name, .scope = scope, .err = err};
	struct expr_value v = {0};
	int r = find_value(&p, name, name, &v);

	if (r < 0)
		return r;
	if (!v.is_series)
		return fail(&p, name, -EINVAL, "a value, not a series");
	*ret = v.series;
	return 0;
}
