/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment: a figure or a table of a paper as something that runs and is checked.
 *
 * An experiment is a few runs of scenarios and claims about what they measured. A claim is an
 * expression over the runs' metrics (expr.h) and a band in which its value must lie, for any seed.
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
 *     - {mechanism: priority, set: {"hosts[0].tenants[0].priority": none}, miss: ["p99 at window *"]}
 *
 * `for` makes one of each of its values, which stands where `$x` is written. `without` is the
 * counter-experiment: with the mechanism switched off the claims that it names must be missed.
 * `parameters: {traces: FOLDER}` are values that a person may set from outside; each stands where `$traces` is written.
 *
 *   experiment_parse   the text, checked
 *   experiment_run     runs everything and judges the claims
 *   experiment_text, experiment_markdown   the paper's figures beside ours
 *   experiment_plot    one picture
 */
#ifndef WEIR_SIM_EXPERIMENT_EXPERIMENT_H
#define WEIR_SIM_EXPERIMENT_EXPERIMENT_H

#include <weir/err.h>
#include "sim/experiment/expr.h"
#include "sim/metrics.h"
#include "sim/experiment/plot.h"
#include "sim/sim.h"
#include <stdbool.h>
#include <stddef.h>

struct experiment_parameter { /* what a person may set; stands where $NAME is written */
	const char *name, *value;
};

struct experiment_run {
	const char *name;
	const char *scenario; /* a file's name, beside the experiment's own; or: */
	const char *bench;    /* what is measured instead: the name of a benchmark */
	struct scenario_set *sets;
	size_t n_sets;
	bool simulated; /* not made live, and neither are the claims that need it judged */
	struct weir_place at;
};

struct experiment_define {
	const char *name, *value, *unit;
	struct weir_place at;
};

struct experiment_claim {
	const char *what;
	const char *paper;   /* what the paper says; "" when it says nothing */
	const char *value;   /* expression */
	const char *lo, *hi; /* expressions; NULL: open on that side */
	double within;       /* > 0: lo and hi are this share below and above `of` */
	const char *of;      /* expression */
	const char *unit;    /* of the value, for show */
	struct weir_place at;
};

/* A mechanism switched off, and what must then be missed. */
struct experiment_without {
	const char *mechanism;
	struct scenario_set *sets; /* which switch it off … */
	size_t n_sets;
	bool *runs;   /* … in these, of all; the others are as they are */
	bool *claims; /* that must be missed, of all */
	bool live;    /* the switch is there live, too */
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
	const char *name; /* the file's stem */
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
	const char *
		needs; /* a file or folder without which it cannot run, as `read` sees it; or NULL */
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
	const char *no_mechanism; /* why there is none of them; NULL: not said */
	void *memory;             /* owns everything above */
};

/* 0, or -EINVAL / -ENOMEM and the first error with its place. Expressions are checked here. */
int experiment_parse(const char *text, size_t len, const char *name, struct experiment **ret,
	struct weir_err *err);
void experiment_free(struct experiment *e);

/* sim_run, or what stands in for it (ret_cost is never NULL). */
typedef int experiment_runner(const struct scenario *s, const struct sim_options *options,
	struct metrics **ret, struct sim_cost *ret_cost, struct weir_err *err);

struct experiment_options {
	uint64_t seed;
	/* One of the experiment's: its mechanism is switched off, only the claims that it names are judged,
	 * and only the runs that they need are made. NULL: everything, as it is. */
	const struct experiment_without *without;
	/* What runs the scenarios on real gateways, with the file's changes for that; NULL: they are
	 * simulated. */
	experiment_runner *live;
	/* Gives the text of a file that the experiment or one of its scenarios names. */
	scenario_read *read;
	void *read_arg;
	/* Runs the benchmark of that name and puts its rows; NULL: such runs are refused. */
	int (*bench)(const char *name, struct metrics *m, struct weir_err *err);
	/* As sim_options' own, over all runs together; `run` is the one at work. May be NULL. */
	int (*progress)(double fraction, const char *run, void *arg);
	void *progress_arg;
};

struct experiment_outcome { /* of one claim */
	bool judged;        /* else the rest is 0 */
	bool ok;
	bool known;             /* value, lo and hi could be computed */
	double value, lo, hi;   /* lo −inf, hi +inf where open */
	struct weir_err reason; /* why not known; "" else */
};

struct experiment_result {
	const struct experiment_without *without; /* as in the options */
	struct metrics **runs;                    /* n_runs of the experiment; NULL: was not made */
	struct metrics *defined;
	struct expr_run *scope_runs;
	struct expr_scope scope;             /* over the above */
	struct experiment_outcome *outcomes; /* n_claims */
	size_t judged, missed;
	/* With `without`: claims that were not missed as they must be, or could not be computed. */
	size_t held;
	struct sim_cost cost; /* of all runs together */
};

/* Marks the runs (n_runs of them) that the claim needs, by way of definitions, too. */
void experiment_needs(const struct experiment *e, const struct experiment_claim *c, bool *runs);

/* 0 when everything ran, whatever the claims came to. A claim whose value cannot be computed is
 * missed, with the reason; a definition that cannot be is left out, and missed where it is used. */
int experiment_run(const struct experiment *e, const struct experiment_options *options,
	struct experiment_result **ret, struct weir_err *err);
void experiment_result_free(const struct experiment *e, struct experiment_result *r);

/* "2856 … 3864 iops", "≤ 70 ms"; buf of 96 bytes suffices. Returns buf. */
char *experiment_band(const struct experiment_claim *c, const struct experiment_outcome *o,
	char *buf, size_t len);
/* "3362 iops"; "?" when not known. */
char *experiment_value(const struct experiment_claim *c, const struct experiment_outcome *o,
	char *buf, size_t len);

/* One line a claim; malloc'ed. 0 or -ENOMEM. */
int experiment_text(const struct experiment *e, const struct experiment_result *r, char **ret);
/* A section of results.md. `pictures`: the folder of the pictures, seen from that file; NULL: none
 * were made. */
int experiment_markdown(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, char **ret);

/* Has `put` write the plot's data and script to dir/ID-NAME.* (plot_write). 0, or a negative errno. */
int experiment_plot(const struct experiment *e, const struct experiment_result *r, size_t plot,
	const char *dir, plot_put *put, struct weir_err *err);
/* "ID-NAME"; buf of 256 suffices for what experiment_parse lets through. */
char *experiment_stem(const struct experiment *e, size_t plot, char *buf, size_t len);

#endif
