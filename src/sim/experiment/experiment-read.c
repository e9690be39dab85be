/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-read: parse an experiment's file from YAML. See experiment.h. */
#include "sim/experiment/experiment-impl.h"
#include "base/no-memory.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the parts */

/* Check that a name can be written in an expression and be part of a file's name. */
static int check_name(struct experiment_reader *r, yamldoc_node map, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !(i && strchr("_-", name[i])))
			return yamldoc_error(
				map, r->err, "name '%s': letters, digits, '_' and '-' only", name);
	if (!n || n > 100)
		return yamldoc_error(map, r->err, "the name must have 1 to 100 characters");
	return 0;
}

int experiment_sets(struct experiment_reader *r, yamldoc_node map, size_t more,
	struct scenario_set **ret, size_t *ret_n)
{
	yamldoc_node set = yamldoc_get(map, "set");
	struct scenario_set *sets;
	int code = 0;

	*ret_n = 0;
	if (!set.id && !more)
		return 0;
	if (set.id && yamldoc_kind(set) != YAMLDOC_MAP)
		return yamldoc_error(set, r->err, "'set' must be a map of path: value");
	*ret = sets = experiment_keep(r->e, (yamldoc_map_size(set) + more + 1) * sizeof(*sets));
	if (!sets)
		return no_memory(r->err);
	for (size_t i = 0; code == 0 && i < yamldoc_map_size(set); i++) {
		struct scenario_set *s = &sets[(*ret_n)++];
		const char *path;
		yamldoc_node value = yamldoc_map_at(set, i, &path);

		if (!yamldoc_text(value))
			return yamldoc_error(value, r->err, "'%s' must be a text (quote it)", path);
		code = experiment_expand(r->e, path, r->x, &s->path, r->err);
		if (code == 0)
			code = experiment_expand(
				r->e, yamldoc_text(value), r->x, &s->value, r->err);
	}
	return code;
}

static int read_run(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {"name", "scenario", "bench", "set", "live", "for", NULL};
	struct experiment_run *run = entry;
	bool live = true;
	int code = yamldoc_map(map, keys, r->err);

	run->at = yamldoc_place(map);
	if (code == 0)
		code = experiment_text_of(r, map, "name", true, &run->name);
	if (code == 0)
		code = check_name(r, map, run->name);
	if (code == 0)
		code = experiment_text_of(r, map, "bench", false, &run->bench);
	if (code == 0 && run->bench && !*run->bench)
		run->bench = NULL;
	if (code == 0 && !run->bench)
		code = experiment_text_of(r, map, "scenario", true, &run->scenario);
	if (code == 0 && run->bench &&
		(yamldoc_get(map, "scenario").id || yamldoc_get(map, "set").id))
		code = yamldoc_error(map, r->err, "a run with a 'bench' has no scenario");
	if (code == 0)
		code = experiment_sets(r, map, 0, &run->sets, &run->n_sets);
	if (code == 0)
		code = yamldoc_optional(yamldoc_bool(map, "live", &live, r->err));
	run->simulated = !live;
	return code;
}

static int read_define(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {"name", "value", "unit", "for", NULL};
	struct experiment_define *d = entry;
	int code = yamldoc_map(map, keys, r->err);

	d->at = yamldoc_place(map);
	if (code == 0)
		code = experiment_text_of(r, map, "name", true, &d->name);
	if (code == 0)
		code = check_name(r, map, d->name);
	if (code == 0)
		code = experiment_expr_of(r, map, "value", true, &d->value);
	if (code == 0)
		code = experiment_text_of(r, map, "unit", false, &d->unit);
	return code;
}

/* Parse "10 % of EXPR". */
static int read_within(struct experiment_reader *r, yamldoc_node map, struct experiment_claim *c)
{
	struct weir_err why = {""};
	const char *text;
	char *end;
	int code = experiment_text_of(r, map, "within", true, &text);

	if (code < 0)
		return code;
	c->within = strtod(text, &end) / 100;
	end += strspn(end, " ");
	if (*end == '%')
		end++;
	else
		c->within = 0;
	end += strspn(end, " ");
	if (!(c->within > 0) || !(c->within < 1) || strncmp(end, "of ", 3) != 0)
		return yamldoc_error(yamldoc_get(map, "within"), r->err,
			"'within' must be \"10 %% of EXPRESSION\"");
	c->of = end + 3;
	if (expr_check(c->of, &why) < 0)
		return yamldoc_error(yamldoc_get(map, "within"), r->err, "within: %s", why.text);
	return 0;
}

/* Read one end of a band: an expression, or `none`. */
static int band_end(struct experiment_reader *r, yamldoc_node n, const char **ret)
{
	const char *text = yamldoc_text(n);
	struct weir_err why = {""};
	int code;

	*ret = NULL;
	if (!text)
		return yamldoc_error(n, r->err, "'band' is [lo, hi]: expressions, or none");
	if (strcmp(text, "none") == 0)
		return 0;
	code = experiment_expand(r->e, text, r->x, ret, r->err);
	if (code == 0 && expr_check(*ret, &why) < 0)
		return yamldoc_error(n, r->err, "band: %s", why.text);
	return code;
}

static int read_band(struct experiment_reader *r, yamldoc_node map, struct experiment_claim *c)
{
	yamldoc_node band = yamldoc_get(map, "band");
	int code;

	if (!band.id == !yamldoc_get(map, "within").id)
		return yamldoc_error(map, r->err, "a claim needs 'band' or 'within', and not both");
	if (!band.id)
		return read_within(r, map, c);
	if (yamldoc_kind(band) != YAMLDOC_LIST || yamldoc_size(band) != 2)
		return yamldoc_error(band, r->err, "'band' is [lo, hi]: expressions, or none");
	code = band_end(r, yamldoc_at(band, 0), &c->lo);
	if (code == 0)
		code = band_end(r, yamldoc_at(band, 1), &c->hi);
	if (code == 0 && !c->lo && !c->hi)
		return yamldoc_error(band, r->err, "a band that is open on both sides cannot fail");
	return code;
}

static int read_claim(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {
		"what", "paper", "value", "band", "within", "unit", "for", NULL};
	struct experiment_claim *c = entry;
	int code = yamldoc_map(map, keys, r->err);

	c->at = yamldoc_place(map);
	if (code == 0)
		code = experiment_text_of(r, map, "what", true, &c->what);
	if (code == 0)
		code = experiment_text_of(r, map, "paper", false, &c->paper);
	if (code == 0)
		code = experiment_expr_of(r, map, "value", true, &c->value);
	if (code == 0)
		code = experiment_text_of(r, map, "unit", false, &c->unit);
	if (code == 0)
		code = read_band(r, map, c);
	c->paper = c->paper ? c->paper : "";
	c->unit = c->unit ? c->unit : "";
	return code;
}

/* Read x: [..] and y: an expression with $x for each x. */
static int read_xy(struct experiment_reader *r, yamldoc_node map, struct experiment_line *l)
{
	yamldoc_node list = yamldoc_get(map, "x");
	struct experiment_reader each = *r;
	int code = yamldoc_list(list, r->err);

	if (code < 0)
		return code;
	l->xs = experiment_keep(r->e, (yamldoc_size(list) + 1) * sizeof(*l->xs));
	l->ys = experiment_keep(r->e, (yamldoc_size(list) + 1) * sizeof(*l->ys));
	if (!l->xs || !l->ys)
		return no_memory(r->err);
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		each.x = yamldoc_text(yamldoc_at(list, i));
		if (!each.x || weir_units_count(each.x, &l->xs[i], NULL) < 0)
			return yamldoc_error(list, r->err, "'x' must list numbers");
		if (i && l->xs[i] < l->xs[i - 1])
			return yamldoc_error(list, r->err, "'x' must be in order");
		code = experiment_expr_of(&each, map, "y", true, &l->ys[i]);
		if (code < 0)
			return code;
	}
	l->n = yamldoc_size(list);
	return 0;
}

static int read_line(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {"label", "series", "x", "y", "style", "for", NULL};
	static const char *const styles[] = {"line", "points", "dashed", NULL};
	struct experiment_line *l = entry;
	int code = yamldoc_map(map, keys, r->err), style = PLOT_LINE;
	bool xy = yamldoc_get(map, "x").id || yamldoc_get(map, "y").id;

	if (code == 0 && xy == (yamldoc_get(map, "series").id != 0))
		return yamldoc_error(map, r->err, "a line needs 'series', or 'x' and 'y'");
	if (code == 0 && xy && yamldoc_get(map, "for").id)
		return yamldoc_error(
			map, r->err, "'for' goes with 'series'; $x is each of 'x' here");
	if (code == 0)
		code = experiment_text_of(r, map, "label", true, &l->label);
	if (code == 0)
		code = yamldoc_choice(map, "style", styles, &style, r->err);
	if (code == -ENOENT) {
		style = xy ? PLOT_POINTS : PLOT_LINE;
		code = 0;
	}
	l->style = (enum plot_style)style;
	if (code == 0)
		code = xy ? read_xy(r, map, l)
			  : experiment_text_of(r, map, "series", true, &l->series);
	return code;
}

static int read_plot(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const char *const keys[] = {
		"name", "title", "x", "y", "log", "panels", "lines", NULL};
	static const char *const logs[] = {"none", "x", "y", "xy", NULL};
	struct experiment_plot *p = entry;
	void *lines = NULL;
	int code = yamldoc_map(map, keys, r->err), log = 0;

	p->at = yamldoc_place(map);
	if (code == 0)
		code = experiment_text_of(r, map, "name", true, &p->name);
	if (code == 0)
		code = check_name(r, map, p->name);
	if (code == 0)
		code = experiment_text_of(r, map, "title", true, &p->title);
	if (code == 0)
		code = experiment_text_of(r, map, "x", true, &p->x_label);
	if (code == 0)
		code = experiment_text_of(r, map, "y", true, &p->y_label);
	if (code == 0)
		code = yamldoc_choice(map, "log", logs, &log, r->err);
	if (code == -ENOENT)
		code = 0;
	p->log_x = log & 1;
	p->log_y = log & 2;
	if (code == 0)
		code = yamldoc_optional(yamldoc_bool(map, "panels", &p->panels, r->err));
	if (code == 0 && p->panels && log)
		return yamldoc_error(map, r->err, "panels have no logarithmic axes");
	if (code == 0)
		code = experiment_entries(
			r, map, "lines", sizeof(*p->lines), read_line, &lines, &p->n_lines);
	p->lines = lines;
	if (code == 0 && !p->n_lines)
		return yamldoc_error(map, r->err, "a plot needs 'lines'");
	return code;
}

/* ---- the whole file */

static int check_runs(const struct experiment *e, yamldoc_node root, struct weir_err *err)
{
	for (size_t i = 0; i < e->n_runs; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(e->runs[i].name, e->runs[k].name) == 0)
				return weir_err_at(err, -EINVAL, e->runs[i].at,
					"there is already a run named '%s'", e->runs[i].name);
	if (!e->n_runs)
		return yamldoc_error(root, err, "an experiment needs 'runs'");
	if (!e->n_claims)
		return yamldoc_error(root, err, "an experiment needs 'claims'");
	return 0;
}

static int read_lists(struct experiment_reader *r, yamldoc_node root)
{
	struct experiment *e = r->e;
	void *runs = NULL, *defines = NULL, *claims = NULL, *plots = NULL;
	int code;

	code = experiment_entries(r, root, "runs", sizeof(*e->runs), read_run, &runs, &e->n_runs);
	if (code == 0)
		code = experiment_entries(r, root, "define", sizeof(*e->defines), read_define,
			&defines, &e->n_defines);
	if (code == 0)
		code = experiment_entries(
			r, root, "claims", sizeof(*e->claims), read_claim, &claims, &e->n_claims);
	if (code == 0)
		code = experiment_entries(
			r, root, "plots", sizeof(*e->plots), read_plot, &plots, &e->n_plots);
	e->runs = runs;
	e->defines = defines;
	e->claims = claims;
	e->plots = plots;
	return code;
}

/* Read live: true, or a map of the changes for live runs: times that replace a scenario's, and
 * `set` as in a run. */
static int read_live(struct experiment_reader *r, yamldoc_node root)
{
	static const char *const keys[] = {"duration", "warmup", "set", NULL};
	yamldoc_node live = yamldoc_get(root, "live");
	struct experiment *e = r->e;
	int code;

	if (yamldoc_kind(live) != YAMLDOC_MAP) {
		code = yamldoc_bool(root, "live", &e->live, r->err);
		return yamldoc_optional(code);
	}
	e->live = true;
	code = yamldoc_map(live, keys, r->err);
	if (code == 0)
		code = experiment_sets(r, live, 2, &e->live_sets, &e->n_live_sets);
	for (size_t i = 0; code == 0 && i < 2; i++) {
		struct scenario_set *s = &e->live_sets[e->n_live_sets];
		weir_time time;

		code = yamldoc_time(live, keys[i], &time, r->err);
		if (code == 0)
			code = experiment_text_of(r, live, keys[i], true, &s->value);
		if (code == 0) {
			s->path = keys[i];
			e->n_live_sets++;
		} else if (code == -ENOENT) {
			code = 0;
		}
	}
	return code;
}

static int read_parameters(struct experiment_reader *r, yamldoc_node root)
{
	yamldoc_node map = yamldoc_get(root, "parameters");
	size_t n = map.id ? yamldoc_map_size(map) : 0;
	struct experiment_parameter *all;
	int code = 0;

	if (map.id && yamldoc_kind(map) != YAMLDOC_MAP)
		return yamldoc_error(map, r->err, "must be a map of name: value");
	all = experiment_keep(r->e, (n + 1) * sizeof(*all));
	if (!all)
		return no_memory(r->err);
	for (size_t i = 0; code == 0 && i < n; i++) {
		const char *name;
		yamldoc_node value = yamldoc_map_at(map, i, &name);

		if (!yamldoc_text(value))
			return yamldoc_error(value, r->err, "'%s' must be a text", name);
		if (strspn(name, "abcdefghijklmnopqrstuvwxyz") != strlen(name) || name[0] == 'x')
			return yamldoc_error(value, r->err,
				"'%s': lower-case letters only, not starting with x", name);
		code = experiment_expand(r->e, name, NULL, &all[i].name, r->err);
		if (code == 0)
			code = experiment_expand(
				r->e, yamldoc_text(value), NULL, &all[i].value, r->err);
	}
	r->e->parameters = all;
	r->e->n_parameters = code == 0 ? n : 0;
	return code;
}

static int read_root(struct experiment_reader *r, yamldoc_node root)
{
	static const char *const keys[] = {"id", "title", "source", "about", "live", "parameters",
		"needs", "runs", "define", "claims", "plots", "without", NULL};
	struct experiment *e = r->e;
	int code = yamldoc_map(root, keys, r->err);

	if (code == 0)
		code = experiment_text_of(r, root, "id", true, &e->id);
	if (code == 0)
		code = check_name(r, root, e->id);
	if (code == 0)
		code = experiment_text_of(r, root, "title", true, &e->title);
	if (code == 0)
		code = experiment_text_of(r, root, "source", true, &e->source);
	if (code == 0)
		code = experiment_text_of(r, root, "about", false, &e->about);
	if (code == 0)
		code = read_parameters(r, root);
	if (code == 0)
		code = experiment_text_of(r, root, "needs", false, &e->needs);
	if (code == 0)
		code = read_live(r, root);
	if (code == 0)
		code = read_lists(r, root);
	if (code == 0)
		code = experiment_read_without(r, root);
	return code == 0 ? check_runs(e, root, r->err) : code;
}

/* Copy the file's name: the places in messages outlive the document. */
static int keep_places(struct experiment *e, const char *name, struct weir_err *err)
{
	const char *file;
	int code = experiment_expand(e, name, NULL, &file, err);

	for (size_t i = 0; code == 0 && i < e->n_runs; i++)
		e->runs[i].at.file = file;
	for (size_t i = 0; code == 0 && i < e->n_defines; i++)
		e->defines[i].at.file = file;
	for (size_t i = 0; code == 0 && i < e->n_claims; i++)
		e->claims[i].at.file = file;
	for (size_t i = 0; code == 0 && i < e->n_plots; i++)
		e->plots[i].at.file = file;
	for (size_t i = 0; code == 0 && i < e->n_without; i++)
		e->without[i].at.file = file;
	return code;
}

int experiment_parse(const char *text, size_t len, const char *name, struct experiment **ret,
	struct weir_err *err)
{
	struct experiment *e = calloc(1, sizeof(*e));
	struct experiment_reader r = {.e = e, .err = err};
	struct yamldoc *doc;
	int code;

	if (!e)
		return no_memory(err);
	code = yamldoc_parse(text, len, name, &doc, err);
	if (code == 0) {
		code = read_root(&r, yamldoc_root(doc));
		yamldoc_free(doc);
	}
	if (code == 0)
		code = keep_places(e, name, err);
	if (code < 0) {
		experiment_free(e);
		return code;
	}
	*ret = e;
	return 0;
}
