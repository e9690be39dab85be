/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: a scenario in, measurements out.
 *
 * The simulator drives the same gates, device models, workloads and policy as the gateway does, in
 * virtual time. Everything random comes from streams named after the component that draws from
 * them, so the same scenario and seed give the same numbers to the last bit, and a component added
 * does not shift the others.
 *
 *   scenario_parse   the YAML text, checked (weir-scenario(5) is its manual)
 *   scenario_load    reads the trace files that it names, through the caller (rooms read no files)
 *   sim_run          runs it; may be called any number of times on one scenario
 */
#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include <weir/clock.h>
#include <weir/err.h>
#include <stddef.h>
#include <stdint.h>

struct metrics;
struct scenario;

/* One change to the YAML before it is read, as in `--set hosts[0].window=16`: the value replaces
 * what stands at the path, which must be there, and be a single value or a list or map in brackets. */
struct scenario_set {
	const char *path;  /* "hosts[0].tenants[1].weight" */
	const char *value; /* "16", "100 iops", "[1, 2]" */
};

/* `name` is the file's name for messages. Overrides are applied in order. 0, or -EINVAL / -ENOMEM
 * and the first error with its place. */
int scenario_parse(const char *text, size_t len, const char *name,
	const struct scenario_set *overrides, size_t n_overrides, struct scenario **ret,
	struct weir_err *err);
void scenario_free(struct scenario *s);

/* In the place of the scenario's own. Traces that are drawn from a folder are drawn by it: before scenario_load. */
void scenario_set_seed(struct scenario *s, uint64_t seed);

/* Gives `read` each trace file the scenario names, as written there; it leaves the whole text,
 * malloc'ed, in *ret_text. A path that ends in '/' is a folder, and the text the names of the files in it
 * and below it, seen from it, in order, one a line. Needed before sim_run only where a workload has `trace:` or
 * `traces:`. */
typedef int scenario_read(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err);
int scenario_load(struct scenario *s, scenario_read *read, void *arg, struct weir_err *err);

/* What a report may want to know of a scenario. Strings are the scenario's. */
const char *scenario_name(const struct scenario *s);  /* its `name:`, or the file's */
const char *scenario_about(const struct scenario *s); /* its `description:`, or "" */
weir_time scenario_duration(const struct scenario *s);

struct sim_options {
	uint64_t seed;      /* used when seed_set */
	int seed_set;       /* 0: the scenario's own seed */
	weir_time duration; /* 0: the scenario's own; the warm-up is cut to half of it if longer */
	/* Called now and then with the share of virtual time done, 0 … 1; non-zero stops the run,
	 * which then fails with -ECANCELED. May be NULL. */
	int (*progress)(double fraction, void *arg);
	void *progress_arg;
};

/* What the run itself cost; the benchmark's rows. */
struct sim_cost {
	uint64_t events; /* pops of the event queue: device steps, arrivals, wake-ups, samples… */
	uint64_t ios;    /* IOs completed */
};

/* `options` and `ret_cost` may be NULL. The metrics are the caller's, to metrics_free. */
int sim_run(const struct scenario *s, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err);

#endif
