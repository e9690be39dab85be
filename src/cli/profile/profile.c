/* SPDX-License-Identifier: BSD-3-Clause */
/* profile: `weir profile`, measure the work of requests on a device and write it as a table. */
#include "cli/common/files.h"
#include "cli/common/verb.h"
#include "cli/profile/gauge.h"
#include "cli/view/progress.h"
#include <weir/units.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH, DURATION, DATA, WRITE, OUT, N_OPTIONS };
static const struct opt options[] = {
	[DEPTH] = {"depth", 'd', "N", "requests inside at once (8): the resource's depth"},
	[DURATION] = {"duration", 't', "TIME", "at most so long in all (60s)"},
	[DATA] = {"data", 0, "PERCENT", "at most so much of the device's data in all (1)"},
	[WRITE] = {"write", 'w', NULL, "measure writes as well: DESTROYS the data"},
	[OUT] = {"out", 'o', "FILE", "write the profile to FILE instead of standard output"},
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
extern const struct verb verb_profile;

#define SIZES       4
#define LEAST_SIZES 2 /* of a profile: fewer do not make a line */
#define ROWS        4
#define MIXES       4 /* runs of all kinds mixed */
#define EACH                                                                                       \
	16 /* requests of each slot in a run, at least: with 4, writes of the ssd model took up to 1.8 times their work */
static const uint32_t sizes[SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10};
static const uint64_t distances[ROWS] = {0, 64 << 20, 4096ull << 20, UINT64_MAX};

struct row {
	bool done;
	double work[SIZES]; /* ns */
};

struct profile {
	unsigned depth;
	weir_time duration;
	double data; /* part of the device */
	bool writes;
	unsigned n_sizes;  /* that the time and the data allow */
	uint64_t requests; /* of each run, at most */
	weir_time time;    /* of each run, at most */
	bool slow;         /* a size was left out for want of time */
	struct row row[2][ROWS];
	struct weir_hist inside[2]; /* of all kinds */
	double error; /* part by which a mix of them took longer than the sum of their work */
	struct gauge *gauge;
};

static struct gauge *running; /* for the signal's handler */

static void interrupted(int signal)
{
	if (running)
		gauge_stop(running);
}

/* ---- measure */

/* A row's distance must not exceed the device: there it is the same as any. */
static bool row_fits(const struct profile *p, unsigned r)
{
	return distances[r] == 0 || distances[r] == UINT64_MAX ||
	       distances[r] < gauge_info(p->gauge)->size / 2;
}

static unsigned count_rows(const struct profile *p)
{
	unsigned rows = 0;

	for (unsigned r = 0; r < ROWS; r++)
		rows += row_fits(p, r);
	return p->writes ? 2 * rows : rows;
}

/* Runs of one kind, and at the end of all of them mixed. */
static unsigned count_runs(const struct profile *p)
{
	return count_rows(p) * p->n_sizes + MIXES;
}

static double mean_size(unsigned n_sizes)
{
	double sum = 0;

	for (unsigned i = 0; i < n_sizes; i++)
		sum += sizes[i];
	return sum / n_sizes;
}

/* The bytes of one request of every run. */
static double round_bytes(const struct profile *p, unsigned n_sizes)
{
	return (count_rows(p) * n_sizes + MIXES) * mean_size(n_sizes);
}

/* The percentage of the device that so many sizes need. */
static double percent_for(const struct profile *p, unsigned n_sizes)
{
	double least = EACH * p->depth * round_bytes(p, n_sizes);

	return ceil(1000 * least / (double)gauge_info(p->gauge)->size) / 10;
}

/* Choose as many sizes as the data allows, from the smallest on. All runs have as many requests. */
static int choose_sizes(struct profile *p, struct weir_err *err)
{
	for (p->n_sizes = SIZES; p->n_sizes >= LEAST_SIZES; p->n_sizes--) {
		p->requests = (uint64_t)(p->data * (double)gauge_info(p->gauge)->size /
					 round_bytes(p, p->n_sizes));
		p->time = p->duration / count_runs(p);
		if (p->requests >= EACH * p->depth)
			return 0;
	}
	return weir_err_set(err, -ENODATA,
		"too little data for %u requests of each kind: allow more with --data %g (%g for "
		"all sizes), or a lower --depth",
		EACH * p->depth, percent_for(p, LEAST_SIZES), percent_for(p, SIZES));
}

/* A size that is too slow for its time ends the sizes of all rows. */
static int measure_row(struct profile *p, unsigned op, unsigned r, struct progress *bar,
	double *done, struct weir_err *err)
{
	static struct gauge_result result;

	for (unsigned i = 0; i < p->n_sizes; i++) {
		struct gauge_kind k = {op, sizes[i], distances[r]};
		int rc = gauge_run(p->gauge, &k, 1, p->time, p->requests * sizes[i], &result);

		if (rc < 0)
			return weir_err_set(err, rc, "a %s of %u KiB failed: %s",
				op ? "write" : "read", sizes[i] >> 10, strerror(-rc));
		if (result.n == 0 && i < LEAST_SIZES)
			return weir_err_set(err, -ENODATA,
				"no %s of %u KiB was done in its part of the time: allow more with "
				"--duration",
				op ? "write" : "read", sizes[i] >> 10);
		if (result.n == 0) {
			p->n_sizes = i;
			p->slow = true;
			break;
		}
		p->row[op][r].work[i] = result.work;
		weir_hist_merge(&p->inside[op], &result.inside);
		progress_tick(bar, ++*done);
	}
	p->row[op][r].done = true;
	return 0;
}

/* Compare mixes of all kinds with the sums of their work: the greatest excess is the error of the estimates. A mix that cannot be measured
 * says nothing. */
static int measure_mixes(struct profile *p, struct progress *bar, double *done)
{
	uint64_t budget = (uint64_t)((double)p->requests * mean_size(p->n_sizes));
	struct gauge_kind kinds[2 * ROWS * SIZES];
	double work[2 * ROWS * SIZES];
	static struct gauge_result result;
	unsigned n = 0;
	int rc = 0;

	_Static_assert(2 * ROWS * SIZES <= GAUGE_KINDS, "kinds of a run");
	for (unsigned op = 0; op < 2; op++)
		for (unsigned r = 0; r < ROWS; r++)
			for (unsigned i = 0; p->row[op][r].done && i < p->n_sizes; i++) {
				kinds[n] = (struct gauge_kind){op, sizes[i], distances[r]};
				work[n++] = p->row[op][r].work[i];
			}
	for (int k = 0; rc == 0 && k < MIXES; k++) {
		double sum = 0;

		rc = gauge_run(p->gauge, kinds, n, p->time, budget, &result);
		for (unsigned i = 0; i < n; i++)
			sum += (double)result.of[i] * work[i];
		if (rc == 0 && sum > 0)
			p->error = fmax(p->error, result.work * (double)result.n / sum - 1);
		progress_tick(bar, ++*done);
	}
	return rc == -EINTR ? rc : 0;
}

static int measure_all(struct profile *p, struct weir_err *err)
{
	struct progress bar;
	double done = 0;
	int rc = choose_sizes(p, err);

	if (rc < 0)
		return rc;
	weir_hist_clear(&p->inside[0]);
	weir_hist_clear(&p->inside[1]);
	progress_start(&bar, "profile", count_runs(p));
	for (unsigned op = 0; op <= p->writes; op++)
		for (unsigned r = ROWS;
			rc == 0 && r-- > 0;) /* first the row that is always needed */
			if (row_fits(p, r))
				rc = measure_row(p, op, r, &bar, &done, err);
	if (rc == 0)
		rc = measure_mixes(p, &bar, &done);
	progress_end(&bar);
	return rc;
}

/* ---- write */

static void put_times(FILE *to, const struct profile *p, const struct row *row)
{
	fputs("work: [", to);
	for (unsigned i = 0; i < p->n_sizes; i++) {
		char text[32];

		fprintf(to, "%s%s", i ? ", " : "",
			weir_units_show_time((weir_time)(row->work[i] + 0.5), text, sizeof(text)));
	}
	fputs("]}\n", to);
}

static void put_inside(FILE *to, const struct weir_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} shown[] = {{"p50", 50}, {"p99", 99}, {"p99.9", 99.9}, {"max", 100}};

	fputs("  inside: {", to);
	for (unsigned i = 0; i < 4; i++) {
		char text[32];

		fprintf(to, "%s%s: %s", i ? ", " : "", shown[i].name,
			weir_units_show_time((weir_time)weir_hist_percentile(h, shown[i].percent),
				text, sizeof(text)));
	}
	fputs("}\n", to);
}

/* Without --write, writes count as reads of the same size: a plan needs both. */
static void put_op(FILE *to, const struct profile *p, unsigned op)
{
	unsigned from = p->row[op][ROWS - 1].done ? op : 0;

	fprintf(to, "%s:%s\n", op ? "write" : "read",
		from == op ? "" : "  # not measured: taken from reads");
	put_inside(to, &p->inside[from]);
	fputs("  work:\n", to);
	for (unsigned r = 0; r < ROWS; r++) {
		char text[32];

		if (!p->row[from][r].done)
			continue;
		fputs("    - {", to);
		if (distances[r] != UINT64_MAX)
			fprintf(to, "distance: %s, ",
				weir_units_show_size(distances[r], text, sizeof(text)));
		put_times(to, p, &p->row[from][r]);
	}
}

static void put_profile(FILE *to, const struct profile *p, const char *target)
{
	char text[32];

	fprintf(to, "# weir profile --depth %u %s\nprofile: 1\ndepth: %u\n", p->depth, target,
		p->depth);
	fprintf(to, "device: %llu B\nsizes: [", (unsigned long long)gauge_info(p->gauge)->size);
	for (unsigned i = 0; i < p->n_sizes; i++)
		fprintf(to, "%s%s", i ? ", " : "",
			weir_units_show_size(sizes[i], text, sizeof(text)));
	fprintf(to, "]%s\n", p->n_sizes < SIZES ? "  # larger ones were not measured" : "");
	if (p->error > 0)
		fprintf(to, "error: %.3g\n", fmin(p->error, 10));
	put_op(to, p, 0);
	put_op(to, p, 1);
}

static int write_profile(const struct profile *p, const char *target, const char *path)
{
	struct weir_err err;
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	int rc = 0;

	if (!to)
		return opts_no_memory(&verb_profile);
	put_profile(to, p, target);
	if (fclose(to) != 0) {
		free(text);
		return opts_no_memory(&verb_profile);
	}
	if (path)
		rc = files_write(path, text, len, &err);
	else
		fwrite(text, 1, len, stdout);
	free(text);
	return rc < 0 ? opts_fail(&verb_profile, "%s", err.text) : 0;
}

/* ---- the verb */

static int read_options(const char *const *values, struct profile *p)
{
	struct weir_err err = {""};
	int64_t depth = 8;
	double percent = 1;

	*p = (struct profile){.duration = 60 * WEIR_SEC, .writes = values[WRITE]};
	if (values[DEPTH] &&
		(weir_units_int(values[DEPTH], &depth, &err) < 0 || depth < 1 || depth > 4096))
		return opts_fail(&verb_profile, "--depth: '%s' is not a number from 1 to 4096",
			values[DEPTH]);
	if (values[DURATION] && (weir_units_time(values[DURATION], &p->duration, &err) < 0 ||
					p->duration < WEIR_SEC / 10))
		return opts_fail(&verb_profile, "--duration: %s",
			*err.text ? err.text : "must be at least 100ms");
	if (values[DATA]) {
		char *end;

		percent = strtod(values[DATA], &end);
		if (end == values[DATA] || (*end && strcmp(end, "%") != 0) ||
			!(percent > 0 && percent <= 10000))
			return opts_fail(&verb_profile, "--data: '%s' is not a percentage over 0",
				values[DATA]);
	}
	p->depth = (unsigned)depth;
	p->data = percent / 100;
	return 0;
}

static void say_left_out(const struct profile *p)
{
	unsigned kib = sizes[p->n_sizes - 1] >> 10;

	if (p->slow)
		opts_fail(&verb_profile,
			"requests above %u KiB were not measured: they need a longer --duration",
			kib);
	else
		opts_fail(&verb_profile,
			"requests above %u KiB were not measured: they need --data %g", kib,
			percent_for(p, SIZES));
}

static int run_profile(struct profile *p, const char *target, const char *path)
{
	struct sigaction act = {.sa_handler = interrupted, .sa_flags = SA_RESETHAND};
	struct weir_err err;
	bool partial;
	int rc = gauge_new(target, p->depth, p->writes, &p->gauge, &err);

	if (rc < 0)
		return opts_fail(&verb_profile, "%s", err.text);
	if (gauge_info(p->gauge)->size < 2 * CHUNK_MAX) {
		gauge_free(p->gauge);
		return opts_fail(&verb_profile, "%s: is too small to measure", target);
	}
	running = p->gauge;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	rc = measure_all(p, &err);
	partial = p->row[0][ROWS - 1].done;
	if (rc < 0)
		opts_fail(&verb_profile, "%s%s", rc == -EINTR ? "interrupted" : err.text,
			partial ? ": the profile has what was measured" : "");
	else if (p->n_sizes < SIZES)
		say_left_out(p);
	if (rc == 0 || partial)
		rc = write_profile(p, target, path) || rc ? 1 : 0;
	running = NULL;
	gauge_free(p->gauge);
	return rc ? 1 : 0;
}

static int profile_main(const char *const *values, char **operands, int n)
{
	static struct profile p;
	int status = read_options(values, &p);

	if (status)
		return status;
	if (n != 1)
		return opts_fail(&verb_profile,
			"needs one TARGET, such as file:/dev/sdb or nbd://host/export");
	return run_profile(&p, operands[0], values[OUT]);
}

const struct verb verb_profile = {
	.name = "profile",
	.summary = "measure the work of requests on a device",
	.usage = "[OPTION]... TARGET",
	.options = options,
	.run = profile_main,
};
