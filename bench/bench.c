/* SPDX-License-Identifier: BSD-3-Clause */
/* weir bench: the speed of the parts, against a floor or a peer in the same run. */
#include "base/no-memory.h"
#include "bench/bench.h"
#include "sim/experiment/experiment.h"
#include "cli/common/verb.h"
#include "sim/metrics.h"
#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMES "gate, alloc, pshift, plan, sim, gateway, hosts, cluster or net"

enum { OPT_JSON, OPT_RUNS, OPT_QUICK, OPT_ONLY, OPT_COUNT };
static const struct opt options[] = {
	[OPT_JSON] = {"json", 0, NULL, "print a JSON list of rows instead of a table"},
	[OPT_RUNS] = {"runs", 'n', "N", "measure each row N times (1 to 25, default 5)"},
	[OPT_QUICK] = {"quick", 'q', NULL,
		"do a tenth of the work: for a quick check, not for figures"},
	[OPT_ONLY] = {"only", 0, "TEXT", "show only rows whose name contains TEXT"},
	[OPT_COUNT] = {NULL, 0, NULL, NULL},
};

weir_time bench_cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

/* Pin this thread to its current core. */
static void bench_pin(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof set, &set); /* not allowed: unpinned */
}

void bench_sample(struct bench_samples *s, double value)
{
	unsigned i = s->n < BENCH_SAMPLES ? s->n++ : BENCH_SAMPLES - 1;

	while (i > 0 && s->v[i - 1] > value) {
		s->v[i] = s->v[i - 1];
		i--;
	}
	s->v[i] = value;
}

double bench_median(const struct bench_samples *s)
{
	if (!s->n)
		return 0;
	return (s->v[(s->n - 1) / 2] + s->v[s->n / 2]) / 2;
}

static double bench_spread(const struct bench_samples *s)
{
	double median = bench_median(s);

	return s->n && median != 0 ? (s->v[s->n - 1] - s->v[0]) / median : 0;
}

/* Return true if the row is on the right side of "<= 20 us" or, by its ratio, of "> 2x", or beyond its peer of "<= +15 us". */
static bool meets(const struct bench_row *row, const char *target)
{
	bool less = target[0] == '<', equal = target[1] == '=';
	char *end;
	bool more = strchr(target, '+') != NULL;
	double bound = strtod(target + 1 + equal, &end);
	double value = *end == 'x' ? row->ratio : row->value - (more ? row->peer_value : 0);

	return less ? value < bound || (equal && value <= bound)
		    : value > bound || (equal && value >= bound);
}

struct bench_row *bench_add_pairs(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *peer, const struct bench_samples *peer_value,
	const struct bench_samples *ratios, const char *target)
{
	struct bench_row *row = &b->rows[b->n++];

	*row = (struct bench_row){.name = name,
		.unit = unit,
		.value = bench_median(value),
		.spread = bench_spread(value),
		.peer = peer,
		.peer_value = peer ? bench_median(peer_value) : 0,
		.target = target};
	row->ratio = ratios && ratios->n    ? bench_median(ratios)
		     : row->peer_value != 0 ? row->value / row->peer_value
					    : 0;
	row->met = !target || meets(row, target);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s: %.4g %s", name, row->value, unit);
	return row;
}

struct bench_row *bench_add_beside(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *peer, const struct bench_samples *peer_value,
	const char *target)
{
	return bench_add_pairs(b, name, unit, value, peer, peer_value, NULL, target);
}

struct bench_row *bench_add(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *target)
{
	return bench_add_beside(b, name, unit, value, NULL, NULL, target);
}

struct bench_row *bench_add_value(
	struct bench *b, const char *name, const char *unit, double value, const char *target)
{
	return bench_add(b, name, unit, &(struct bench_samples){{value}, 1}, target);
}

bool bench_wants(const struct bench *b, const char *row)
{
	return !b->only || strstr(row, b->only);
}

/* Remove the rows that are not wanted. An indented row belongs to the one above it. */
static void select_rows(struct bench *b)
{
	bool above = false;
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		above = bench_wants(b, b->rows[i].name) || (above && b->rows[i].name[0] == ' ');
		if (above)
			b->rows[n++] = b->rows[i];
	}
	b->n = n;
}

static void print_row(const struct bench_row *r, int width)
{
	printf("%-*s %8.4g %-8s %4.0f%%", width, r->name, r->value, r->unit, 100 * r->spread);
	if (r->target)
		printf("  %-9s %-4s", r->target, r->met ? "ok" : "MISS");
	else if (r->peer)
		printf("  %-9s %-4s", "", "");
	if (r->peer)
		printf("  %.2f x %s, %.4g", r->ratio, r->peer, r->peer_value);
	putchar('\n');
}

static void print_table(const struct bench *b)
{
	int width = 3;

	for (size_t i = 0; i < b->n; i++)
		if ((int)strlen(b->rows[i].name) > width)
			width = (int)strlen(b->rows[i].name);
	printf("%-*s %8s %-8s %5s  %-14s  %s\n", width, "row", "value", "unit", "+-", "target",
		"ratio to its peer, and the peer's value");
	for (size_t i = 0; i < b->n; i++)
		print_row(&b->rows[i], width);
}

static json_t *row_json(const struct bench_row *r)
{
	json_t *o = json_pack("{s:s, s:f, s:s, s:f}", "name", r->name, "value", r->value, "unit",
		r->unit, "spread", r->spread);

	json_object_set_new(o, "peer", r->peer ? json_string(r->peer) : json_null());
	json_object_set_new(o, "peer_value", r->peer ? json_real(r->peer_value) : json_null());
	json_object_set_new(o, "ratio", r->peer ? json_real(r->ratio) : json_null());
	if (r->target) {
		json_object_set_new(o, "target", json_string(r->target));
		json_object_set_new(o, "met", json_boolean(r->met));
	}
	return o;
}

static void print_json(const struct bench *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->n; i++)
		json_array_append_new(list, row_json(&b->rows[i]));
	json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(list);
}

static int parse_runs(const char *text, unsigned *ret)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 1 || n > BENCH_RUNS_MAX)
		return -EINVAL;
	*ret = (unsigned)n;
	return 0;
}

static const struct benchmark {
	const char *name;
	bench_run *run;
	bool pinned; /* to one core; not if there are threads or servers, which would inherit it */
} benchmarks[] = {
	{"alloc", bench_alloc, true},
	{"gate", bench_gate, true},
	{"pshift", bench_pshift, true},
	{"levels", bench_levels, true},
	{"halves", bench_halves, false},
	{"pshift-ex123", bench_pshift_ex123, true},
	{"pshift-fig5", bench_pshift_fig5, false},
	{"pshift-fig6", bench_pshift_fig6, true},
	{"pshift-fig7", bench_pshift_fig7, true},
	{"plan", bench_plan, false},
	{"sim", bench_sim, true},
	{"gateway", bench_gateway, false},
	{"hosts", bench_hosts, false},
	{"cluster", bench_cluster, false},
	{"net", bench_net, true},
};

static const struct benchmark *find_benchmark(const char *name)
{
	for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++)
		if (strcmp(name, benchmarks[i].name) == 0)
			return &benchmarks[i];
	return NULL;
}

/* Run a benchmark; a failure has a message. */
static int run_benchmark(struct bench *b, const struct benchmark *what, struct weir_err *err)
{
	int r = what->run(b, err);

	return r < 0 && !err->text[0] ? weir_err_set(err, r, "%s: %s", what->name, strerror(-r))
				      : r;
}

int bench_metrics(const struct experiment_bench *from, struct metrics *m, struct weir_err *err)
{
	const struct benchmark *what = find_benchmark(from->name);
	struct bench *b = calloc(1, sizeof *b);
	int r;

	if (!b)
		return no_memory(err);
	b->runs = 3;
	b->from = from;
	if (!what)
		r = weir_err_set(err, -EINVAL, "no benchmark '%s'", from->name);
	else if (from->n_sets && what->run != bench_halves)
		r = weir_err_set(err, -EINVAL, "benchmark '%s' has nothing to set", from->name);
	else
		r = run_benchmark(b, what, err);
	for (size_t i = 0; r == 0 && i < b->n; i++) {
		const struct bench_row *row = &b->rows[i];

		if (!row->key)
			continue;
		metrics_put(m, row->key, row->unit, row->value);
		r = metrics_putf(m, "", row->spread, "%s.spread", row->key);
	}
	free(b);
	return r;
}

static int bench_main(const char *const *values, char **operands, int n)
{
	const struct benchmark *what = n == 1 ? find_benchmark(operands[0]) : NULL;
	struct bench b = {.runs = 5,
		.runs_given = values[OPT_RUNS],
		.quick = values[OPT_QUICK],
		.only = values[OPT_ONLY]};
	struct weir_err err = {.text = ""};
	int r;

	if (n != 1)
		return opts_fail(&verb_bench, "missing benchmark: " NAMES);
	if (values[OPT_RUNS] && parse_runs(values[OPT_RUNS], &b.runs))
		return opts_fail(&verb_bench, "--runs must be a number from 1 to 25");
	if (!what)
		return opts_fail(&verb_bench, "no benchmark '%s': " NAMES, operands[0]);
	if (what->pinned)
		bench_pin();
	r = run_benchmark(&b, what, &err);
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	select_rows(&b);
	if (r == 0 && b.n == 0)
		r = weir_err_set(&err, -EINVAL, "%s: no row contains '%s'", what->name, b.only);
	if (r < 0) /* what was measured before a failure is shown, too */
		opts_fail(&verb_bench, "%s", err.text);
	if (values[OPT_JSON])
		print_json(&b);
	else if (b.n)
		print_table(&b);
	return r < 0 ? 1 : 0;
}

static const char *const subverbs[] = {
	"gate", "alloc", "pshift", "plan", "sim", "gateway", "hosts", "cluster", "net", NULL};
const struct verb verb_bench = {
	.name = "bench",
	.summary = "measure the parts against a floor or a peer",
	.usage = "[OPTION]... gate|alloc|pshift|plan|sim|gateway|hosts|cluster|net",
	.options = options,
	.subverbs = subverbs,
	.run = bench_main,
};
