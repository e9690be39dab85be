/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-read: parse an experiment's file from YAML. See experiment.h. */
#include "sim/experiment/experiment-impl.h"
#include "sim/experiment/plot.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(type, member) offsetof(struct experiment_##type, member)
#define PART(key)                                                                                  \
	{                                                                                          \
		key, EXPERIMENT_PART, 0                                                            \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, EXPERIMENT_PART, 0                                                           \
	}

/* ---- the parts */

static void read_run(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {{"name", EXPERIMENT_NAME, AT(run, name)},
		{"bench", EXPERIMENT_TEXT, AT(run, bench)},
		{"live", EXPERIMENT_FLAG, AT(run, live)}, PART("scenario"), PART("set"),
		PART("for"), END};
	struct experiment_run *run = entry;

	run->at = experiment_place(r, map);
	run->live = true;
	experiment_fields(r, map, fields, run);
	if (run->bench && !*run->bench)
		run->bench = NULL;
	if (!run->bench)
		run->scenario = experiment_text_of(r, map, "scenario", EXPERIMENT_NEED);
	else if (yamldoc_get(map, "scenario").id)
		experiment_refuse(r, map, "a run with a 'bench' has no scenario");
	run->sets = experiment_sets(r, map, 0, &run->n_sets);
}

static void read_define(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {
		{"name", EXPERIMENT_NAME, AT(define, name)},
		{"value", EXPERIMENT_EXPR, AT(define, value)},
		{"unit", EXPERIMENT_TEXT, AT(define, unit)}, PART("for"), END};
	struct experiment_define *d = entry;

	d->at = experiment_place(r, map);
	experiment_fields(r, map, fields, d);
}

static void check_expr(
	struct experiment_reader *r, yamldoc_node n, const char *what, const char *text)
{
	struct weir_err why = {""};

	if (text && expr_check(text, &why) < 0)
		experiment_refuse(r, n, "%s: %s", what, why.text);
}

/* Parse "10 % of EXPR". */
static void read_within(struct experiment_reader *r, yamldoc_node map, struct experiment_claim *c)
{
	const char *text = experiment_text_of(r, map, "within", EXPERIMENT_NEED);
	bool percent;
	char *end;

	if (!text)
		return;
	c->within = strtod(text, &end) / 100;
	end += strspn(end, " ");
	percent = *end == '%';
	end += percent;
	end += strspn(end, " ");
	if (!percent || !(c->within > 0) || !(c->within < 1) || strncmp(end, "of ", 3) != 0) {
		experiment_refuse(
			r, yamldoc_get(map, "within"), "'within' must be \"10 %% of EXPRESSION\"");
		return;
	}
	c->of = end + 3;
	check_expr(r, yamldoc_get(map, "within"), "within", c->of);
}

/* Return one end of a band: an expression, or for `none` NULL. */
static const char *band_end(struct experiment_reader *r, yamldoc_node n)
{
	const char *text = yamldoc_text(n);

	if (!text)
		experiment_refuse(r, n, "'band' is [lo, hi]: expressions, or none");
	if (!text || strcmp(text, "none") == 0)
		return NULL;
	text = experiment_expand(r, text);
	check_expr(r, n, "band", text);
	return text;
}

static void read_claim(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {{"what", EXPERIMENT_NEED, AT(claim, what)},
		{"paper", EXPERIMENT_TEXT, AT(claim, paper)},
		{"value", EXPERIMENT_EXPR, AT(claim, value)},
		{"unit", EXPERIMENT_TEXT, AT(claim, unit)}, PART("band"), PART("within"),
		PART("for"), END};
	yamldoc_node band = yamldoc_get(map, "band");
	struct experiment_claim *c = entry;

	c->at = experiment_place(r, map);
	experiment_fields(r, map, fields, c);
	c->paper = c->paper ? c->paper : "";
	c->unit = c->unit ? c->unit : "";
	if (!band.id == !yamldoc_get(map, "within").id)
		experiment_refuse(r, map, "a claim needs 'band' or 'within', and not both");
	if (!band.id) {
		read_within(r, map, c);
		return;
	}
	if (yamldoc_kind(band) != YAMLDOC_LIST || yamldoc_size(band) != 2)
		experiment_refuse(r, band, "'band' is [lo, hi]: expressions, or none");
	c->lo = band_end(r, yamldoc_at(band, 0));
	c->hi = band_end(r, yamldoc_at(band, 1));
	if (!c->lo && !c->hi)
		experiment_refuse(r, band, "a band that is open on both sides cannot fail");
}

/* Read x: [..] and y: an expression with $x for each x. */
static void read_xy(struct experiment_reader *r, yamldoc_node map, struct experiment_line *l)
{
	yamldoc_node list = yamldoc_get(map, "x");
	size_t n = yamldoc_size(list);

	if (!r->code)
		r->code = yamldoc_list(list, r->err);
	l->xs = experiment_keep(r, n + 1, sizeof(*l->xs));
	l->ys = experiment_keep(r, n + 1, sizeof(*l->ys));
	for (size_t i = 0; !r->code && i < n; i++) {
		r->x = yamldoc_text(yamldoc_at(list, i));
		if (!r->x || weir_units_count(r->x, &l->xs[i], NULL) < 0)
			experiment_refuse(r, list, "'x' must list numbers");
		if (i && l->xs[i] < l->xs[i - 1])
			experiment_refuse(r, list, "'x' must be in order");
		l->ys[i] = experiment_text_of(r, map, "y", EXPERIMENT_EXPR);
	}
	r->x = NULL;
	l->n = n;
}

static void read_line(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {
		{"label", EXPERIMENT_NEED, AT(line, label)}, PART("series"), PART("x"), PART("y"),
		PART("style"), PART("for"), END};
	static const char *const styles[] = {"line", "points", "dashed", NULL};
	bool xy = yamldoc_get(map, "x").id || yamldoc_get(map, "y").id;
	int style = xy ? PLOT_POINTS : PLOT_LINE;
	struct experiment_line *l = entry;

	experiment_fields(r, map, fields, l);
	if (xy == (yamldoc_get(map, "series").id != 0))
		experiment_refuse(r, map, "a line needs 'series', or 'x' and 'y'");
	if (xy && yamldoc_get(map, "for").id)
		experiment_refuse(r, map, "'for' goes with 'series'; $x is each of 'x' here");
	if (!r->code)
		r->code = yamldoc_optional(yamldoc_choice(map, "style", styles, &style, r->err));
	l->style = (enum plot_style)style;
	if (xy)
		read_xy(r, map, l);
	else
		l->series = experiment_text_of(r, map, "series", EXPERIMENT_NEED);
}

/* Return how many characters a text of UTF-8 has. */
static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static void read_plot(struct experiment_reader *r, yamldoc_node map, void *entry)
{
	static const struct experiment_field fields[] = {{"name", EXPERIMENT_NAME, AT(plot, name)},
		{"title", EXPERIMENT_NEED, AT(plot, title)},
		{"x", EXPERIMENT_NEED, AT(plot, x_label)},
		{"y", EXPERIMENT_NEED, AT(plot, y_label)},
		{"panels", EXPERIMENT_FLAG, AT(plot, panels)}, PART("log"), PART("lines"), END};
	static const char *const logs[] = {"none", "x", "y", "xy", NULL};
	struct experiment_plot *p = entry;
	int log = 0;

	p->at = experiment_place(r, map);
	experiment_fields(r, map, fields, p);
	if (!r->code)
		r->code = yamldoc_optional(yamldoc_choice(map, "log", logs, &log, r->err));
	p->log_x = log & 1;
	p->log_y = log & 2;
	if (p->title && characters(p->title) > PLOT_TITLE)
		experiment_refuse(r, map,
			"the title of a plot must have not more than %d characters", PLOT_TITLE);
	if (p->panels && log)
		experiment_refuse(r, map, "panels have no logarithmic axes");
	p->lines = experiment_entries(r, map, "lines", sizeof(*p->lines), read_line, &p->n_lines);
	if (!p->n_lines)
		experiment_refuse(r, map, "a plot needs 'lines'");
}

/* ---- the whole file */

static void check_runs(struct experiment_reader *r, yamldoc_node root)
{
	const struct experiment *e = r->e;

	for (size_t i = 0; i < e->n_runs; i++)
		for (size_t k = 0; !r->code && k < i; k++)
			if (strcmp(e->runs[i].name, e->runs[k].name) == 0)
				r->code = weir_err_at(r->err, -EINVAL, e->runs[i].at,
					"there is already a run named '%s'", e->runs[i].name);
	if (!e->n_runs)
		experiment_refuse(r, root, "an experiment needs 'runs'");
	if (!e->n_claims)
		experiment_refuse(r, root, "an experiment needs 'claims'");
}

/* Read live: true, or a map of the changes for live runs: times that replace a scenario's, and
 * `set` as in a run. */
static void read_live(struct experiment_reader *r, yamldoc_node root)
{
	static const char *const keys[] = {"duration", "warmup", "set", NULL};
	yamldoc_node live = yamldoc_get(root, "live");
	struct experiment *e = r->e;

	if (r->code)
		return;
	if (yamldoc_kind(live) != YAMLDOC_MAP) {
		r->code = yamldoc_optional(yamldoc_bool(root, "live", &e->live, r->err));
		return;
	}
	e->live = true;
	r->code = yamldoc_map(live, keys, r->err);
	e->live_sets = experiment_sets(r, live, 2, &e->n_live_sets);
	for (size_t i = 0; !r->code && i < 2; i++) {
		weir_time time;

		if (yamldoc_get(live, keys[i]).id &&
			!(r->code = yamldoc_time(live, keys[i], &time, r->err)))
			e->live_sets[e->n_live_sets++] = (struct scenario_set){.path = keys[i],
				.value = experiment_text_of(r, live, keys[i], EXPERIMENT_NEED)};
	}
}

static void read_parameters(struct experiment_reader *r, yamldoc_node root)
{
	yamldoc_node map = yamldoc_get(root, "parameters");
	size_t n = yamldoc_map_size(map);
	struct experiment_parameter *all;

	if (map.id && yamldoc_kind(map) != YAMLDOC_MAP)
		experiment_refuse(r, map, "must be a map of name: value");
	all = experiment_keep(r, n + 1, sizeof(*all));
	for (size_t i = 0; !r->code && i < n; i++) {
		const char *name;
		yamldoc_node value = yamldoc_map_at(map, i, &name);

		if (!yamldoc_text(value))
			experiment_refuse(r, value, "'%s' must be a text", name);
		if (strspn(name, "abcdefghijklmnopqrstuvwxyz") != strlen(name) || name[0] == 'x')
			experiment_refuse(r, value,
				"'%s': lower-case letters only, not starting with x", name);
		all[i].name = experiment_expand(r, name);
		all[i].value = experiment_expand(r, yamldoc_text(value));
	}
	r->e->parameters = all;
	r->e->n_parameters = r->code ? 0 : n;
}

static void read_root(struct experiment_reader *r, yamldoc_node root)
{
#define TOP(member) offsetof(struct experiment, member)
	static const struct experiment_field fields[] = {{"id", EXPERIMENT_NAME, TOP(id)},
		{"title", EXPERIMENT_NEED, TOP(title)}, {"source", EXPERIMENT_NEED, TOP(source)},
		{"about", EXPERIMENT_TEXT, TOP(about)}, PART("live"), PART("parameters"),
		PART("needs"), PART("runs"), PART("define"), PART("claims"), PART("plots"),
		PART("without"), END};
	struct experiment *e = r->e;

	experiment_fields(r, root, fields, e);
	read_parameters(r, root);
	e->needs = experiment_text_of(r, root, "needs", EXPERIMENT_TEXT);
	read_live(r, root);
	e->runs = experiment_entries(r, root, "runs", sizeof(*e->runs), read_run, &e->n_runs);
	e->defines = experiment_entries(
		r, root, "define", sizeof(*e->defines), read_define, &e->n_defines);
	e->claims =
		experiment_entries(r, root, "claims", sizeof(*e->claims), read_claim, &e->n_claims);
	e->plots = experiment_entries(r, root, "plots", sizeof(*e->plots), read_plot, &e->n_plots);
	experiment_read_without(r, root);
	check_runs(r, root);
}

int experiment_parse(const char *text, size_t len, const char *name, struct experiment **ret,
	struct weir_err *err)
{
	struct experiment *e = calloc(1, sizeof(*e));
	struct experiment_reader r = {.e = e, .err = err};
	struct yamldoc *doc;

	if (!e)
		return no_memory(err);
	r.file = experiment_expand(&r, name);
	if (!r.code)
		r.code = yamldoc_parse(text, len, name, &doc, err);
	if (!r.code) {
		read_root(&r, yamldoc_root(doc));
		yamldoc_free(doc);
	}
	if (r.code)
		experiment_free(e);
	else
		*ret = e;
	return r.code;
}
