/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: run a scenario and return its metrics.
 *
 * The simulator drives the same gates, device models, workloads and policy as the gateway does, in
 * virtual time. Everything random comes from streams named after the component that draws from
 * them, so the same scenario and seed give the same numbers to the last bit, and adding a component
 * does not shift the others.
 *
 *   scenario_parse   parse and check the YAML text (weir-scenario(5) is its manual)
 *   scenario_load    load the trace files that it names, through a callback (pure code reads no
 *                    files)
 *   sim_run          run it; may be called any number of times for one scenario
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <weir/policy.h>
#include <stddef.h>
#include <stdint.h>

struct metrics;
struct scenario;

/* One change to the YAML before it is parsed, as in `--set hosts[0].window=16`: the value replaces
 * the one at the path, which must exist, and be a scalar or a list or map in brackets. */
struct scenario_set {
	const char *path;  /* "hosts[0].tenants[1].weight" */
	const char *value; /* "16", "100 iops", "[1, 2]" */
};

/* Parse a scenario. `name` is the file's name for messages. Overrides are applied in order. Return
 * 0, or -EINVAL / -ENOMEM and the first error with its place. */
int scenario_parse(const char *text, size_t len, const char *name,
	const struct scenario_set *overrides, size_t n_overrides, struct scenario **ret,
	struct weir_err *err);
/* The same, with policies that are files: `reader` as for weir_policy_parse_all. */
int scenario_parse_files(const char *text, size_t len, const char *name,
	const struct scenario_set *overrides, size_t n_overrides, weir_policy_reader *reader,
	void *reader_arg, struct scenario **ret, struct weir_err *err);
void scenario_free(struct scenario *s);

/* Call `read` for each trace file that the scenario names, as written there; it puts the whole
 * text, malloc'ed, into *ret_text. A path that ends in '/' is a folder; its text is the names of
 * the files in it and below it, relative to it, in order, one per line. Needed before sim_run only
 * if a workload has `trace:` or `traces:`. */
typedef int scenario_read(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err);
int scenario_load(struct scenario *s, scenario_read *read, void *arg, struct weir_err *err);

struct sim_options {
	uint64_t seed;      /* used if seed_set */
	int seed_set;       /* 0: the scenario's own seed */
	weir_time duration; /* 0: the scenario's own; a longer warm-up is cut to half of it */
	/* Called now and then with the share of virtual time done, 0 … 1; non-zero stops the run,
	 * which then fails with -ECANCELED. May be NULL. */
	int (*progress)(double fraction, void *arg);
	void *progress_arg;
};

/* The cost of the run itself, for benchmarks. */
struct sim_cost {
	uint64_t events; /* pops of the event queue: device steps, arrivals, wake-ups, samples … */
	uint64_t ios;    /* IOs completed */
};

/* `options` and `ret_cost` may be NULL. The caller owns the metrics: metrics_free. */
int sim_run(const struct scenario *s, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err);
