/* SPDX-License-Identifier: BSD-3-Clause */
/* load-report: see load-report.h. */
#include "cli/load-report.h"
#include <weir/units.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define REDRAW (500 * WEIR_MS) /* of the progress line: slow enough to read */

static const struct {
	const char *title, *key;
	double percent;
} percentiles[] = {
	{"p50", "p50_ns", 50},
	{"p90", "p90_ns", 90},
	{"p99", "p99_ns", 99},
	{"p99.9", "p99.9_ns", 99.9},
	{"p99.99", "p99.99_ns", 99.99},
};
#define N_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

struct watch {
	const struct load_report *o;
	FILE *series;
	bool terminal, drawn;
	weir_time since; /* when the line was last drawn */
	uint64_t requests, bytes;
};

static _Atomic(struct load *) running; /* for the signal handler */

static void on_signal(int signal)
{
	struct load *l = atomic_load(&running);

	if (l)
		load_stop(l);
}

/* ---- during the run */

static void clear_line(struct watch *w)
{
	if (w->drawn)
		fprintf(stderr, "\r\033[K");
	w->drawn = false;
}

static void draw_progress(struct watch *w, weir_time at)
{
	double span = (double)(at - w->since) / 1e9;

	if (span <= 0)
		return;
	fprintf(stderr, "\r%.0f s: %.0f iops, %.1f MiB/s\033[K", (double)at / 1e9,
		(double)w->requests / span, (double)w->bytes / span / 1048576);
	fflush(stderr);
	w->drawn = true;
	w->since = at;
	w->requests = w->bytes = 0;
}

static void on_interval(void *arg, const struct load_interval *i)
{
	struct watch *w = arg;

	if (w->series)
		fprintf(w->series, "%.3f,%s,%.1f,%.1f,%.1f\n", (double)i->at / 1e9, i->name,
			(double)i->requests * 1e9 / (double)i->span,
			(double)weir_hist_percentile(i->latency, 50) / 1e3,
			(double)weir_hist_percentile(i->latency, 99) / 1e3);
	w->requests += i->requests;
	w->bytes += i->bytes;
	if (w->terminal && i->at - w->since >= REDRAW)
		draw_progress(w, i->at);
}

static void print_message(void *arg, const char *job, const char *text)
{
	struct watch *w = arg;

	clear_line(w);
	fprintf(stderr, "weir: %s: %s: %s\n", w->o->verb->name, job, text);
}

/* ---- results */

static const char *show_ns(double ns, char *text, size_t len)
{
	return weir_units_show_time((weir_time)(ns + 0.5), text, len);
}

static int name_width(const struct load *l, size_t n)
{
	int width = 3;

	for (size_t i = 0; i < n; i++) {
		int len = (int)strlen(load_result(l, i)->name);

		width = len > width ? len : width;
	}
	return width;
}

static void print_row(const struct load_result *t, int width)
{
	char text[32];

	printf("%-*s %9.0f %9.1f %8s", width, t->name, t->iops, t->bytes_per_second / 1048576,
		show_ns(weir_hist_mean(&t->latency), text, sizeof(text)));
	for (size_t k = 0; k < N_PERCENTILES; k++)
		printf(" %8s",
			show_ns((double)weir_hist_percentile(&t->latency, percentiles[k].percent),
				text, sizeof(text)));
	printf(" %8s\n", show_ns((double)t->latency.max, text, sizeof(text)));
}

static void print_notes(const struct load_report *o, const struct load_result *t)
{
	char p99[32], max[32];

	if (o->late && t->late.count)
		printf("%s: sent late by %s (p99), %s (most); %" PRIu64 " requests, %" PRIu64
		       " skipped\n",
			t->name,
			show_ns((double)weir_hist_percentile(&t->late, 99), p99, sizeof(p99)),
			show_ns((double)t->late.max, max, sizeof(max)), t->requests, t->skipped);
	if (t->missed)
		printf("%s: %" PRIu64 " requests were due but not sent before the end\n", t->name,
			t->missed);
	if (t->checked || t->wrong)
		printf("%s: %" PRIu64 " blocks checked, %" PRIu64 " wrong\n", t->name, t->checked,
			t->wrong);
	if (t->reconnects)
		printf("%s: %" PRIu64 " reconnects, %" PRIu64 " requests sent again\n", t->name,
			t->reconnects, t->resent);
	for (size_t k = 0; k < LOAD_ERRORS; k++)
		if (t->errors[k])
			printf("%s: %" PRIu64 " errors %s\n", t->name, t->errors[k],
				load_error_names[k]);
}

static void print_table(const struct load_report *o, const struct load *l, size_t n)
{
	int width = name_width(l, n);

	printf("%-*s %9s %9s %8s", width, "job", "IOPS", "MiB/s", "mean");
	for (size_t k = 0; k < N_PERCENTILES; k++)
		printf(" %8s", percentiles[k].title);
	printf(" %8s\n", "max");
	for (size_t i = 0; i < n; i++)
		print_row(load_result(l, i), width);
	for (size_t i = 0; i < n; i++)
		print_notes(o, load_result(l, i));
}

static json_t *json_of(const struct load_result *t)
{
	json_t *errors = json_object(), *row;
	uint64_t late99 = weir_hist_percentile(&t->late, 99);

	for (size_t k = 0; k < LOAD_ERRORS; k++)
		if (t->errors[k])
			json_object_set_new(errors, load_error_names[k],
				json_integer((json_int_t)t->errors[k]));
	row = json_pack("{s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "job",
		t->name, "size", (json_int_t)t->size, "elapsed_s", (double)t->elapsed / 1e9,
		"requests", (json_int_t)t->requests, "reads", (json_int_t)t->reads, "writes",
		(json_int_t)t->writes, "flushes", (json_int_t)t->flushes, "trims",
		(json_int_t)t->trims, "iops", t->iops, "bytes_per_second", t->bytes_per_second,
		"mean_ns", weir_hist_mean(&t->latency), "max_ns", (json_int_t)t->latency.max);
	if (!row) {
		json_decref(errors);
		return NULL;
	}
	for (size_t k = 0; k < N_PERCENTILES; k++)
		json_object_set_new(row, percentiles[k].key,
			json_integer((json_int_t)weir_hist_percentile(
				&t->latency, percentiles[k].percent)));
	json_object_update_new(row,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:s}", "late_p99_ns",
			(json_int_t)late99, "late_max_ns", (json_int_t)t->late.max, "missed",
			(json_int_t)t->missed, "skipped", (json_int_t)t->skipped, "reconnects",
			(json_int_t)t->reconnects, "resent", (json_int_t)t->resent, "checked",
			(json_int_t)t->checked, "unchecked", (json_int_t)t->unchecked, "wrong",
			(json_int_t)t->wrong, "errors", errors, "fault", t->fault));
	return row;
}

static int print_json(const struct load *l, size_t n)
{
	json_t *list = json_array();
	int bad = list ? 0 : -1;

	for (size_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, json_of(load_result(l, i)));
	if (!bad)
		bad = json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(list);
	return bad ? 1 : 0;
}

/* Print the faults; return 1 if there is a failure. */
static int print_faults(const struct load_report *o, const struct load *l, size_t n)
{
	int status = 0;

	for (size_t i = 0; i < n; i++) {
		const struct load_result *t = load_result(l, i);

		if (t->fault[0])
			fprintf(stderr, "weir: %s: %s: %s\n", o->verb->name, t->name, t->fault);
		if (t->fault[0] || t->wrong || (t->n_errors && !o->allow_errors))
			status = 1;
	}
	return status;
}

static int run_and_print(struct load *l, struct watch *w, size_t n)
{
	const struct load_report *o = w->o;
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
	int r, status;

	atomic_store(&running, l);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	r = load_run(l);
	atomic_store(&running, NULL);
	clear_line(w);
	if (r < 0) {
		fprintf(stderr, "weir: %s: %s\n", o->verb->name, strerror(-r));
		return 1;
	}
	status = 0;
	if (o->json)
		status = print_json(l, n);
	else
		print_table(o, l, n);
	return print_faults(o, l, n) | status;
}

int load_report_keys(
	const struct verb *v, const char *const *values, int from, int to, struct load_job *job)
{
	struct weir_err err;

	for (int i = from; i < to; i++)
		if (values[i] && load_job_set(job, v->options[i].name, values[i], &err) < 0)
			return opts_fail(v, "--%s", err.text);
	return -1;
}

int load_report_run(const struct load_report *o, const struct load_job *jobs, size_t n)
{
	struct watch w = {.o = o, .terminal = isatty(STDERR_FILENO) == 1};
	struct load_options options = {
		.threads = o->threads, .tick = on_interval, .say = print_message, .arg = &w};
	struct load *l;
	struct weir_err err;
	int r, status;

	if (o->series) {
		w.series = fopen(o->series, "we");
		if (!w.series)
			return opts_fail(o->verb, "%s: %s", o->series, strerror(errno));
		fputs("time_s,job,iops,p50_us,p99_us\n", w.series);
	}
	r = load_new(jobs, n, &options, &l, &err);
	if (r < 0) {
		opts_fail(o->verb, "%s", err.text);
		/* exit status 2: an invalid command, or one that does not suit the export; 1: the
		 * server's fault */
		status = r == -EINVAL || r == -EROFS || r == -ENOTSUP ? 2 : 1;
	} else {
		status = run_and_print(l, &w, n);
		load_free(l);
	}
	if (w.series && fclose(w.series) != 0) {
		fprintf(stderr, "weir: %s: %s: %s\n", o->verb->name, o->series, strerror(errno));
		status = 1;
	}
	return status;
}
