/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench: rows of figures, as a table or as JSON.
 *
 * A row is measured several times; its value is the median and its spread (max − min)/median. A
 * peer runs in the same process, interleaved with it, and the ratio is what counts: machines
 * differ, and so does one machine from minute to minute. Where row and peer are measured in pairs,
 * right after each other, the ratio is the median of the pairs' ratios.
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>

#define BENCH_RUNS_MAX 25
#define BENCH_SAMPLES  250

struct bench_row {
	const char *name, *unit;
	const char *key;      /* its name in experiments; NULL: not used there */
	double value, spread; /* median; relative */
	const char *peer;     /* NULL: none */
	double peer_value, ratio;
	const char *target; /* the target, in words */
	bool met;
};

struct experiment_bench;
struct bench {
	struct bench_row rows[48];
	size_t n;
	unsigned runs;                       /* how often each row is measured */
	bool runs_given;                     /* set by the user: rows that take minutes obey, too */
	const struct experiment_bench *from; /* settings of an experiment; NULL: run by hand */
	bool quick;       /* a tenth of the work: for a quick check, not for figures */
	const char *only; /* only rows whose name contains this; NULL: all */
};

/* Return true if the row is to be shown. A benchmark may leave out work that no such row needs. */
bool bench_wants(const struct bench *b, const char *row);

struct bench_samples {
	double v[BENCH_SAMPLES];
	unsigned n;
};
void bench_sample(struct bench_samples *s, double value);
double bench_median(const struct bench_samples *s);

/* Add a row; show it on standard error if that is a terminal. target: "<= 20 us" compares the value,
 * which has that unit, "> 2x" the ratio to the peer; NULL: none. */
struct bench_row *bench_add(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *target);
struct bench_row *bench_add_beside(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *peer, const struct bench_samples *peer_value,
	const char *target);
/* The same, of pairs: ratios has the ratio of each. */
struct bench_row *bench_add_pairs(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *peer, const struct bench_samples *peer_value,
	const struct bench_samples *ratios, const char *target);
struct bench_row *bench_add_value(
	struct bench *b, const char *name, const char *unit, double value, const char *target);

/* CPU time of this thread, for work that does not wait: other processes do not count. */
weir_time bench_cpu_clock(void);

struct verb;
extern const struct verb verb_bench;

typedef int bench_run(struct bench *b, struct weir_err *err); /* 0 or a negative errno */
bench_run bench_alloc, bench_gate, bench_pshift, bench_sim, bench_gateway, bench_hosts,
	bench_cluster, bench_plan, bench_net;
/* The examples and figures of pShift's paper. */
bench_run bench_levels; /* PriorityMeister §4.7 */
bench_run bench_halves; /* admission by replay */
bench_run bench_pshift_ex123, bench_pshift_fig5, bench_pshift_fig6, bench_pshift_fig7;
int bench_net_veth(struct bench *b);     /* for bench_net: throughput under the shaper */
int bench_net_classify(struct bench *b); /* for bench_net: the shaper's programs in the kernel */
int bench_gate_tail(struct bench *b);    /* for bench_gate: the slowest single calls */
bench_run bench_gateway_parda;           /* for bench_hosts: the cost of PARDA at a gateway */

struct metrics;
/* For experiments: run a benchmark with three runs, and put the rows that have a key as
 * KEY, median, and KEY.spread. Return 0, or a negative errno and a message. */
int bench_metrics(const struct experiment_bench *what, struct metrics *m, struct weir_err *err);
