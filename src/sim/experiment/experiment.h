/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment: a figure or a table of a paper that can be run and checked.
 *
 * An experiment is a few runs of scenarios and claims about their metrics. A claim is an expression
 * over the runs' metrics (expr.h) and a band in which its value must lie, for any seed.
 * weir-experiment(1) is the manual of the file:
 *
 *   id: mix-example
 *   title: what is shown
 *   source: PARDA §3.3
 *   runs:
 *     - {name: "w$x", scenario: scenario.yaml, set: {"hosts[0].window": "$x"}, for: [4, 16]}
 *   define:
 *     - {name: "bound$x", value: "($x + 2) * 1ms", unit: ms, for: [4, 16]}
 *   claims:
 *     - {what: "p99 at window $x", paper: "grows with W", value: "w$x.tenant.h.hi.p99",
 *        band: [none, "bound$x"], unit: ms, for: [4, 16]}
 *   plots:
 *     - name: p99
 *       title: latency over the window
 *       x: window [requests]
 *       y: p99 [ms]
 *       lines: [{label: measured, x: [4, 16], y: "w$x.tenant.h.hi.p99"}]
 *   without:
 *     - {mechanism: priority, set: {"hosts[0].tenants[0].priority": none}, miss: ["p99 at window
 *       *"]}
 *
 * `for` makes one entry for each of its values, which replaces `$x`. `without` is the
 * counter-experiment: with the mechanism switched off the claims that it names must be missed.
 * `parameters: {traces: FOLDER}` are values that a user may set; each replaces its name, here
 * `$traces`.
 *
 *   experiment_parse   parse and check the text
 *   experiment_run     run everything and judge the claims
 *   experiment_text, experiment_markdown, experiment_html   the paper's figures beside ours
 *   experiment_plot    draw one plot
 */
#pragma once

#include <weir/err.h>
#include "base/arena.h"
#include "sim/experiment/expr.h"
#include "sim/metrics.h"
#include "sim/experiment/plot.h"
#include "sim/sim.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct experiment_parameter { /* set by the user; replaces $NAME */
	const char *name, *value;
};

struct experiment_run {
	const char *name;
	const char *scenario; /* a file's name, beside the experiment's own; or: */
	const char *bench;    /* the name of a benchmark to run instead */
	struct scenario_set *sets;
	size_t n_sets;
	bool live; /* else claims that need it are not judged live */
	struct weir_place at;
};

struct experiment_define {
	const char *name, *value, *unit;
	struct weir_place at;
};

struct experiment_claim {
	const char *what;
	const char *paper;   /* the paper's figure; "" if it gives none */
	const char *value;   /* expression */
	const char *lo, *hi; /* expressions; NULL: open on that side */
	double within;       /* > 0: lo and hi are this share below and above `of` */
	const char *of;      /* expression */
	const char *unit;    /* of the value, for display */
	struct weir_place at;
};

/* A mechanism switched off, and the claims that must then be missed. */
struct experiment_without {
	const char *mechanism;
	struct scenario_set *sets; /* settings that switch it off … */
	size_t n_sets;
	bool *runs;   /* … in these runs; the others are unchanged */
	bool *claims; /* claims that must be missed */
	bool live;    /* the switch exists in live runs, too */
	struct weir_place at;
};

struct experiment_line {
	const char *label;
	enum plot_style style;
	const char *series; /* a name; or: */
	const char **ys;    /* an expression for each x */
	double *xs;
	size_t n;
};

struct experiment_plot {
	const char *name; /* part of the file's name */
	const char *title, *x_label, *y_label;
	bool log_x, log_y, panels;
	struct experiment_line *lines;
	size_t n_lines;
	struct weir_place at;
};

struct experiment {
	const char *id, *title, *source, *about;
	bool live;                      /* can also run on real gateways … */
	struct scenario_set *live_sets; /* … with these changes to each of its scenarios */
	size_t n_live_sets;
	struct experiment_parameter *parameters;
	size_t n_parameters;
	/* a file or folder without which it cannot run, as passed to `read`; or NULL */
	const char *needs;
	struct experiment_run *runs;
	size_t n_runs;
	struct experiment_define *defines;
	size_t n_defines;
	struct experiment_claim *claims;
	size_t n_claims;
	struct experiment_plot *plots;
	size_t n_plots;
	struct experiment_without *without;
	size_t n_without;
	const char *no_mechanism; /* why there is no counter-experiment; NULL: not stated */
	struct arena memory;      /* owns everything above */
};

/* Parse and check an experiment. Return 0, or -EINVAL / -ENOMEM and the first error with its place.
 * Expressions are checked here. */
int experiment_parse(const char *text, size_t len, const char *name, struct experiment **ret,
	struct weir_err *err);
void experiment_free(struct experiment *e);

/* sim_run, or a replacement (ret_cost is never NULL). */
typedef int experiment_runner(const struct scenario *s, const struct sim_options *options,
	struct metrics **ret, struct sim_cost *ret_cost, struct weir_err *err);

struct experiment_bench { /* a run that is a benchmark */
	const char *name;
	const struct scenario_set *sets;
	size_t n_sets;
	uint64_t seed;
	scenario_read *read;
	void *read_arg;
};

struct experiment_options {
	uint64_t seed;
	/* One of the experiment's: switch its mechanism off, judge only the claims that it names,
	 * and make only the runs that they need. NULL: run and judge everything unchanged. */
	const struct experiment_without *without;
	/* Run the scenarios on real gateways, with the file's changes for live runs; NULL: simulate
	 * them. */
	experiment_runner *live;
	/* Read a file that the experiment or one of its scenarios names. */
	scenario_read *read;
	void *read_arg;
	/* Run a benchmark and write its rows; NULL: such runs are refused. */
	int (*bench)(const struct experiment_bench *what, struct metrics *m, struct weir_err *err);
	/* As in sim_options, over all runs together; `run` is the current one. May be NULL. */
	int (*progress)(double fraction, const char *run, void *arg);
	void *progress_arg;
};

struct experiment_outcome { /* of one claim */
	bool judged;        /* if false the rest is 0 */
	bool ok;
	bool known;             /* value, lo and hi could be computed */
	double value, lo, hi;   /* lo −inf, hi +inf if open */
	struct weir_err reason; /* why not known; else "" */
};

struct experiment_spread;
struct experiment_result {
	const struct experiment_without *without; /* as in the options */
	struct metrics **runs;                    /* n_runs of the experiment; NULL: not made */
	struct metrics *defined;
	struct expr_run *scope_runs;
	struct expr_scope scope;             /* over the above */
	struct experiment_outcome *outcomes; /* n_claims */
	size_t judged, missed;
	/* With `without`: claims that were not missed although they must be, or could not be
	 * computed. */
	size_t held;
	struct sim_cost cost; /* of all runs together */
	/* Outcomes over several seeds, this one's among them, which are then shown instead (spread.h); NULL: none. Borrowed. */
	const struct experiment_spread *spread;
};

/* Mark the runs (n_runs of them) that the claim needs, directly or through definitions. */
void experiment_needs(const struct experiment *e, const struct experiment_claim *c, bool *runs);

/* Run an experiment. Return 0 if everything ran, whatever the outcome of the claims. A claim whose
 * value cannot be computed is missed, with the reason; a definition that cannot be is left out, and
 * a claim that uses it is missed. */
int experiment_run(const struct experiment *e, const struct experiment_options *options,
	struct experiment_result **ret, struct weir_err *err);
void experiment_result_free(const struct experiment *e, struct experiment_result *r);

/* Write one line per claim. Return 0 or -ENOMEM. */
int experiment_text(const struct experiment *e, const struct experiment_result *r, FILE *to);
/* Write a section of results.md. `pictures`: the folder of the pictures, relative to that file;
 * NULL: there are none. */
int experiment_markdown(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, FILE *to);

/* Write the same as a section of a page. experiment-html.c */
void experiment_html(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, FILE *to);
/* Write a text with &, <, > and quotes escaped. */
void experiment_html_text(const char *text, FILE *to);

/* How the outcome of claim i is shown: "ok", "MISS", or over several seeds "8 of 10"; "3362 iops", "3362 ± 4 iops"; and its band,
 * "2856 … 3864 iops", "≤ 70 ms". EXPERIMENT_SHOWN bytes suffice. Each returns buf. */
#define EXPERIMENT_SHOWN 112
char *experiment_verdict(const struct experiment_result *r, size_t i, char *buf);
char *experiment_value(
	const struct experiment *e, const struct experiment_result *r, size_t i, char *buf);
char *experiment_band(
	const struct experiment *e, const struct experiment_result *r, size_t i, char *buf);
/* Return true if the claim was in its band, with every seed. */
bool experiment_held(const struct experiment_result *r, size_t i);

/* Write the plot's data and script to dir/ID-NAME.* with `put` (plot_write). Return 0, or a
 * negative errno. */
int experiment_plot(const struct experiment *e, const struct experiment_result *r, size_t plot,
	const char *dir, plot_put *put, struct weir_err *err);
/* Format "ID-NAME"; 256 bytes suffice for names that experiment_parse accepts. */
char *experiment_stem(const struct experiment *e, size_t plot, char *buf, size_t len);
