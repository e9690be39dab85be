/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment: run the scenarios, judge the claims, draw the plots. See experiment.h;
 * experiment-show.c writes the results. */
#include "base/no-memory.h"
#include "sim/experiment/experiment.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- run */

struct share { /* the position of one run among all */
	const struct experiment_options *options;
	const char *run;
	size_t done, all;
};

static int progress(double fraction, void *arg)
{
	const struct share *s = arg;
	double all = ((double)s->done + fraction) / (double)s->all;

	return s->options->progress(all, s->run, s->options->progress_arg);
}

static void append_sets(
	struct scenario_set *to, size_t *n, const struct scenario_set *from, size_t n_from)
{
	for (size_t i = 0; i < n_from; i++)
		to[(*n)++] = from[i];
}

/* Read a policy that a scenario names, as its traces are read. */
static int read_policy(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	const struct experiment_options *o = arg;

	return o->read(name, o->read_arg, ret_text, ret_len, err);
}

/* Collect the changes of the run, if live of the experiment, and of `without`; NULL: no memory. */
static struct scenario_set *collect_sets(const struct experiment *e,
	const struct experiment_run *run, const struct experiment_options *o, size_t *ret_n)
{
	const struct experiment_without *w =
		o->without && o->without->runs[run - e->runs] ? o->without : NULL;
	struct scenario_set *sets =
		calloc(run->n_sets + e->n_live_sets + (w ? w->n_sets : 0) + 1, sizeof(*sets));

	*ret_n = 0;
	if (!sets)
		return NULL;
	append_sets(sets, ret_n, run->sets, run->n_sets);
	append_sets(sets, ret_n, e->live_sets, o->live ? e->n_live_sets : 0);
	append_sets(sets, ret_n, w ? w->sets : NULL, w ? w->n_sets : 0);
	return sets;
}

static int parse_scenario(const struct experiment *e, const struct experiment_run *run,
	const struct experiment_options *o, const char *text, size_t len, struct scenario **ret,
	struct weir_err *err)
{
	size_t n;
	struct scenario_set *sets = collect_sets(e, run, o, &n);
	int r;

	if (!sets)
		return no_memory(err);
	r = scenario_parse_files(
		text, len, run->scenario, sets, n, read_policy, (void *)o, ret, err);
	free(sets);
	return r;
}

static int load_scenario(const struct experiment *e, const struct experiment_run *run,
	const struct experiment_options *o, struct scenario **ret, struct weir_err *err)
{
	struct weir_err why = {""};
	char *text;
	size_t len;
	int r = o->read(run->scenario, o->read_arg, &text, &len, &why);

	if (r < 0)
		return weir_err_at(err, r, run->at, "run '%s': %s", run->name, why.text);
	r = parse_scenario(e, run, o, text, len, ret, &why);
	free(text);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, run->name, why.text);
	(*ret)->seed = o->seed;
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
	struct experiment_bench what = {
		.name = run->bench, .seed = o->seed, .read = o->read, .read_arg = o->read_arg};
	struct scenario_set *sets;
	struct weir_err why = {""};
	int r;

	if (!o->bench)
		return weir_err_at(err, -EINVAL, run->at, "run '%s': benchmarks cannot be run here",
			run->name);
	what.sets = sets = collect_sets(e, run, o, &what.n_sets);
	if (!sets)
		return no_memory(err);
	r = metrics_new(&result->runs[i]);
	if (r == 0)
		r = o->bench(&what, result->runs[i], &why);
	free(sets);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, run->name, why.text);
	result->scope_runs[i].metrics = result->runs[i];
	return 0;
}

static int run_scenario(const struct experiment *e, size_t i, struct share *share,
	struct experiment_result *result, struct weir_err *err)
{
	const struct experiment_options *o = share->options;
	struct sim_options options = {.seed = o->seed,
		.seed_set = 1,
		.progress = o->progress ? progress : NULL,
		.progress_arg = share};
	struct sim_cost cost = {0};
	struct weir_err why = {""};
	struct scenario *s;
	int r = load_scenario(e, &e->runs[i], o, &s, err);

	if (r < 0)
		return r;
	r = (o->live ? o->live : sim_run)(s, &options, &result->runs[i], &cost, &why);
	scenario_free(s);
	if (r < 0)
		return weir_err_set(err, r, "%s, run '%s': %s", e->id, e->runs[i].name, why.text);
	result->cost.events += cost.events;
	result->cost.ios += cost.ios;
	result->scope_runs[i].metrics = result->runs[i];
	return 0;
}

/* ---- judge */

static void compute_defines(const struct experiment *e, struct experiment_result *r)
{
	for (size_t i = 0; i < e->n_defines; i++) {
		const struct experiment_define *d = &e->defines[i];
		double x;

		if (expr_eval(d->value, &r->scope, &x, NULL) == 0)
			metrics_put(r->defined, d->name, d->unit, x);
	}
}

static int compute_band(const struct experiment_claim *c, const struct expr_scope *scope,
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

static void judge_claim(const struct experiment_claim *c, const struct expr_scope *scope,
	struct experiment_outcome *o)
{
	o->reason = (struct weir_err){""};
	o->known = expr_eval(c->value, scope, &o->value, &o->reason) == 0 &&
		   compute_band(c, scope, o) == 0;
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

/* Return true if the claim is judged, and mark the runs that it needs. */
static bool choose_claim(const struct experiment *e, const struct experiment_options *o,
	size_t claim, bool *claim_runs, bool *runs)
{
	if (o->without && !o->without->claims[claim])
		return false;
	memset(claim_runs, 0, e->n_runs);
	experiment_needs(e, &e->claims[claim], claim_runs);
	for (size_t i = 0; o->live && i < e->n_runs; i++)
		if (claim_runs[i] && !e->runs[i].live)
			return false;
	for (size_t i = 0; i < e->n_runs; i++)
		runs[i] |= claim_runs[i];
	return true;
}

/* Choose the claims to judge and the runs to make: with `without` only those that the claims need;
 * else all, for the plots. */
static void choose_all(const struct experiment *e, const struct experiment_options *o,
	struct experiment_result *r, bool *runs)
{
	for (size_t i = 0; i < e->n_claims; i++) {
		r->outcomes[i].judged = choose_claim(e, o, i, runs + e->n_runs, runs);
		r->judged += r->outcomes[i].judged;
	}
	for (size_t i = 0; !o->without && i < e->n_runs; i++)
		runs[i] = !o->live || e->runs[i].live;
}

static int run_all(const struct experiment *e, const struct experiment_options *o,
	struct experiment_result *r, struct weir_err *err)
{
	bool *runs = calloc(2 * e->n_runs, sizeof(*runs));
	struct share share = {.options = o};
	int code = 0;

	if (!runs)
		return no_memory(err);
	choose_all(e, o, r, runs);
	for (size_t i = 0; i < e->n_runs; i++) {
		r->scope_runs[i].name = e->runs[i].name;
		share.all += runs[i];
	}
	for (size_t i = 0; code == 0 && i < e->n_runs; i++) {
		if (!runs[i])
			continue;
		share.run = e->runs[i].name;
		code = e->runs[i].bench ? run_bench(e, i, o, r, err)
					: run_scenario(e, i, &share, r, err);
		share.done++;
	}
	free(runs);
	return code;
}

int experiment_run(const struct experiment *e, const struct experiment_options *options,
	struct experiment_result **ret, struct weir_err *err)
{
	struct experiment_result *r = result_new(e);
	int code;

	if (!r)
		return no_memory(err);
	r->without = options->without;
	code = run_all(e, options, r, err);
	if (code < 0) {
		experiment_result_free(e, r);
		return code;
	}
	compute_defines(e, r);
	for (size_t i = 0; i < e->n_claims; i++) {
		struct experiment_outcome *o = &r->outcomes[i];

		if (!o->judged)
			continue;
		judge_claim(&e->claims[i], &r->scope, o);
		r->missed += !o->ok;
		r->held += options->without && (o->ok || !o->known);
	}
	*ret = r;
	return 0;
}

/* ---- draw */

char *experiment_stem(const struct experiment *e, size_t plot, char *buf, size_t len)
{
	snprintf(buf, len, "%s-%s", e->id, e->plots[plot].name);
	return buf;
}

/* Get the points of one line: a run's series, or computed into *ret_own. */
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
		return no_memory(err);
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
		code = no_memory(&why);
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
