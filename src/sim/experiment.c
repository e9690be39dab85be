/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment: runs the scenarios, judges the claims, draws. See experiment.h. */
#include "sim/experiment.h"
#include "sim/report-impl.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running */

struct share { /* where one run stands among all */
	const struct experiment_options *options;
	const struct experiment *e;
	size_t run;
};

static int progress(double fraction, void *arg)
{
	const struct share *s = arg;
	double all = ((double)s->run + fraction) / (double)s->e->n_runs;

	return s->options->progress(all, s->e->runs[s->run].name, s->options->progress_arg);
}

/* The scenario with the run's changes and, live, those of the experiment. */
static int parse(const struct experiment *e, const struct experiment_run *run, bool live,
	const char *text, size_t len, struct scenario **ret, struct weir_err *err)
{
	size_t n_live = live ? e->n_live_sets : 0;
	struct scenario_set *sets = calloc(run->n_sets + n_live + 1, sizeof(*sets));
	int r;

	if (!sets)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < run->n_sets + n_live; i++)
		sets[i] = i < run->n_sets ? run->sets[i] : e->live_sets[i - run->n_sets];
	r = scenario_parse(text, len, run->scenario, sets, run->n_sets + n_live, ret, err);
	free(sets);
	return r;
}

static int load(const struct experiment *e, const struct experiment_run *run,
	const struct experiment_options *o, struct scenario **ret, struct weir_err *err)
{
	struct weir_err why = {""};
	char *text;
	size_t len;
	int r = o->read(run->scenario, o->read_arg, &text, &len, &why);

	if (r < 0)
		return weir_err_at(err, r, run->at, "run '%s': %s", run->name, why.text);
	r = parse(e, run, o->live, text, len, ret, &why);
	free(text);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, run->name, why.text);
	scenario_set_seed(*ret, o->seed);
	r = scenario_load(*ret, o->read, o->read_arg, &why);
	if (r < 0) {
		scenario_free(*ret);
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, run->name, why.text);
	}
	return 0;
}

static int run_bench(const struct experiment *e, size_t i, const struct experiment_options *o,
	struct experiment_result *result, struct weir_err *err)
{
	const struct experiment_run *run = &e->runs[i];
	struct weir_err why = {""};
	int r;

	if (!o->bench)
		return weir_err_at(
			err, -EINVAL, run->at, "run '%s': nothing is measured here", run->name);
	r = metrics_new(&result->runs[i]);
	if (r == 0)
		r = o->bench(run->bench, result->runs[i], &why);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, run->name, why.text);
	result->scope_runs[i] = (struct expr_run){run->name, result->runs[i]};
	return 0;
}

static int run_scenario(const struct experiment *e, size_t i, const struct experiment_options *o,
	struct experiment_result *result, struct weir_err *err)
{
	struct share share = {.options = o, .e = e, .run = i};
	struct sim_options options = {.seed = o->seed,
		.seed_set = 1,
		.progress = o->progress ? progress : NULL,
		.progress_arg = &share};
	struct sim_cost cost = {0};
	struct weir_err why = {""};
	struct scenario *s;
	int r = load(e, &e->runs[i], o, &s, err);

	if (r < 0)
		return r;
	r = (o->live ? o->live : sim_run)(s, &options, &result->runs[i], &cost, &why);
	scenario_free(s);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, e->runs[i].name, why.text);
	result->cost.events += cost.events;
	result->cost.ios += cost.ios;
	result->scope_runs[i] = (struct expr_run){e->runs[i].name, result->runs[i]};
	return 0;
}

/* ---- judging */

static void define(const struct experiment *e, struct experiment_result *r)
{
	for (size_t i = 0; i < e->n_defines; i++) {
		const struct experiment_define *d = &e->defines[i];
		double x;

		if (expr_eval(d->value, &r->scope, &x, NULL) == 0)
			metrics_put(r->defined, d->name, d->unit, x);
	}
}

static int limits(const struct experiment_claim *c, const struct expr_scope *scope,
	struct experiment_outcome *o)
{
	double of;
	int r = 0;

	o->lo = -INFINITY;
	o->hi = INFINITY;
	if (c->of) {
		r = expr_eval(c->of, scope, &of, &o->reason);
		if (r == 0) {
			o->lo = of - c->within * fabs(of);
			o->hi = of + c->within * fabs(of);
		}
		return r;
	}
	if (c->lo)
		r = expr_eval(c->lo, scope, &o->lo, &o->reason);
	if (r == 0 && c->hi)
		r = expr_eval(c->hi, scope, &o->hi, &o->reason);
	return r;
}

static void judge(const struct experiment_claim *c, const struct expr_scope *scope,
	struct experiment_outcome *o)
{
	*o = (struct experiment_outcome){0};
	o->known =
		expr_eval(c->value, scope, &o->value, &o->reason) == 0 && limits(c, scope, o) == 0;
	o->ok = o->known && o->value >= o->lo && o->value <= o->hi;
}

void experiment_result_free(const struct experiment *e, struct experiment_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->runs && i < e->n_runs; i++)
		metrics_free(r->runs[i]);
	free(r->runs);
	free(r->scope_runs);
	free(r->outcomes);
	metrics_free(r->defined);
	free(r);
}

static struct experiment_result *result_new(const struct experiment *e)
{
	struct experiment_result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->runs = calloc(e->n_runs, sizeof(struct metrics *));
	r->scope_runs = calloc(e->n_runs, sizeof(*r->scope_runs));
	r->outcomes = calloc(e->n_claims, sizeof(*r->outcomes));
	if (!r->runs || !r->scope_runs || !r->outcomes || metrics_new(&r->defined) < 0) {
		experiment_result_free(e, r);
		return NULL;
	}
	r->scope = (struct expr_scope){r->scope_runs, e->n_runs, r->defined};
	return r;
}

int experiment_run(const struct experiment *e, const struct experiment_options *options,
	struct experiment_result **ret, struct weir_err *err)
{
	struct experiment_result *r = result_new(e);
	int code = 0;

	if (!r)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; code == 0 && i < e->n_runs; i++)
		code = e->runs[i].bench ? run_bench(e, i, options, r, err)
					: run_scenario(e, i, options, r, err);
	if (code < 0) {
		experiment_result_free(e, r);
		return code;
	}
	define(e, r);
	for (size_t i = 0; i < e->n_claims; i++) {
		judge(&e->claims[i], &r->scope, &r->outcomes[i]);
		r->missed += !r->outcomes[i].ok;
	}
	*ret = r;
	return 0;
}

/* ---- showing */

char *experiment_value(
	const struct experiment_claim *c, const struct experiment_outcome *o, char *buf, size_t len)
{
	char number[32];

	if (!o->known)
		snprintf(buf, len, "?");
	else
		snprintf(buf, len, "%s%s%s", report_number(o->value, number, sizeof(number)),
			*c->unit ? " " : "", c->unit);
	return buf;
}

char *experiment_band(
	const struct experiment_claim *c, const struct experiment_outcome *o, char *buf, size_t len)
{
	char lo[32], hi[32];
	const char *gap = *c->unit ? " " : "";

	if (!o->known)
		snprintf(buf, len, "?");
	else if (isinf(o->lo))
		snprintf(buf, len, "≤ %s%s%s", report_number(o->hi, hi, sizeof(hi)), gap, c->unit);
	else if (isinf(o->hi))
		snprintf(buf, len, "≥ %s%s%s", report_number(o->lo, lo, sizeof(lo)), gap, c->unit);
	else
		snprintf(buf, len, "%s … %s%s%s", report_number(o->lo, lo, sizeof(lo)),
			report_number(o->hi, hi, sizeof(hi)), gap, c->unit);
	return buf;
}

/* The table of the claims: a head, and a row each. */
static int fill_table(
	const struct experiment *e, const struct experiment_result *r, struct report_table *t)
{
	static const char *const head[] = {"", "claim", "paper", "ours", "band"};
	char value[96], band[96];
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(head) / sizeof(*head); i++)
		code = report_cell(t, "%s", head[i]);
	for (size_t i = 0; code == 0 && i < e->n_claims; i++) {
		const struct experiment_claim *c = &e->claims[i];
		const struct experiment_outcome *o = &r->outcomes[i];

		code = report_cell(t, "%s", o->ok ? "ok" : "MISS");
		if (code == 0)
			code = report_cell(t, "%s", c->what);
		if (code == 0)
			code = report_cell(t, "%s", *c->paper ? c->paper : "–");
		if (code == 0)
			code = report_cell(t, "%s", experiment_value(c, o, value, sizeof(value)));
		if (code == 0)
			code = report_cell(t, "%s", experiment_band(c, o, band, sizeof(band)));
	}
	return code;
}

static void put_reasons(
	FILE *f, const struct experiment *e, const struct experiment_result *r, const char *before)
{
	for (size_t i = 0; i < e->n_claims; i++)
		if (!r->outcomes[i].known)
			fprintf(f, "%s%s: %s\n", before, e->claims[i].what,
				r->outcomes[i].reason.text);
}

/* Head, table and what comes after, into one text. */
static int compose(const struct experiment *e, const struct experiment_result *r, bool markdown,
	const char *pictures, FILE *f)
{
	struct report_table *t;
	char stem[256], *table = NULL;
	int code = report_table_new(5, &t);

	if (code == 0)
		code = fill_table(e, r, t);
	if (code == 0)
		code = markdown ? report_table_markdown(t, &table)
				: report_table_text(t, 2, &table);
	if (code == 0) {
		fprintf(f, markdown ? "## %s\n\n%s. *%s*\n\n" : "%s: %s (%s)\n", e->id, e->title,
			e->source);
		if (markdown && e->about)
			fprintf(f, "%s\n\n", e->about);
		fputs(table, f);
		put_reasons(f, e, r, markdown ? "\n" : "  ");
		for (size_t i = 0; markdown && pictures && i < e->n_plots; i++)
			fprintf(f, "\n![%s](%s/%s.svg)\n", e->plots[i].title, pictures,
				experiment_stem(e, i, stem, sizeof(stem)));
	}
	free(table);
	report_table_free(t);
	return code;
}

static int compose_text(const struct experiment *e, const struct experiment_result *r,
	bool markdown, const char *pictures, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	if (compose(e, r, markdown, pictures, f) < 0) {
		fclose(f);
		free(text);
		return -ENOMEM;
	}
	return report_finish(f, &text, ret);
}

int experiment_text(const struct experiment *e, const struct experiment_result *r, char **ret)
{
	return compose_text(e, r, false, NULL, ret);
}

int experiment_markdown(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, char **ret)
{
	return compose_text(e, r, true, pictures, ret);
}

/* ---- drawing */

char *experiment_stem(const struct experiment *e, size_t plot, char *buf, size_t len)
{
	snprintf(buf, len, "%s-%s", e->id, e->plots[plot].name);
	return buf;
}

/* The points of one line: a run's series, or computed here into *ret_own. */
static int line_points(const struct experiment_line *l, const struct expr_scope *scope,
	struct plot_line *to, struct metrics_point **ret_own, struct weir_err *err)
{
	struct metrics_point *own;
	struct metrics_entry series;
	int r = 0;

	*to = (struct plot_line){.label = l->label, .style = l->style};
	if (l->series) {
		r = expr_series(l->series, scope, &series, err);
		if (r == 0) {
			to->points = series.points;
			to->n = series.n;
		}
		return r;
	}
	own = calloc(l->n + 1, sizeof(*own));
	if (!own)
		return weir_err_set(err, -ENOMEM, "out of memory");
	*ret_own = own;
	for (size_t i = 0; r == 0 && i < l->n; i++) {
		own[i].t = l->xs[i];
		r = expr_eval(l->ys[i], scope, &own[i].value, err);
	}
	to->points = own;
	to->n = l->n;
	return r;
}

int experiment_plot(const struct experiment *e, const struct experiment_result *r, size_t plot,
	const char *dir, plot_put *put, struct weir_err *err)
{
	const struct experiment_plot *p = &e->plots[plot];
	struct plot_line *lines = calloc(p->n_lines, sizeof(*lines));
	struct metrics_point **own = calloc(p->n_lines, sizeof(struct metrics_point *));
	struct plot picture = {.title = p->title,
		.x_label = p->x_label,
		.y_label = p->y_label,
		.log_x = p->log_x,
		.log_y = p->log_y,
		.panels = p->panels,
		.lines = lines,
		.n_lines = p->n_lines};
	struct weir_err why = {""};
	char stem[256];
	int code = 0;

	if (!lines || !own)
		code = weir_err_set(&why, -ENOMEM, "out of memory");
	for (size_t i = 0; code == 0 && i < p->n_lines; i++)
		code = line_points(&p->lines[i], &r->scope, &lines[i], &own[i], &why);
	if (code == 0)
		code = plot_write(
			&picture, dir, experiment_stem(e, plot, stem, sizeof(stem)), put, &why);
	for (size_t i = 0; own && i < p->n_lines; i++)
		free(own[i]);
	free(own);
	free(lines);
	return code < 0 ? weir_err_at(err, code, p->at, "plot '%s': %s", p->name, why.text) : 0;
}
