/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario-traces: draw traces from a folder for the replicas of a host, whatever the folder holds.
 *
 * METHOD  The files are shuffled by the seed and the workload's name, and read in that order until there are enough.
 *         A file that is not a trace is skipped. So is one whose mean rate exceeds `rate_most`; if too few are left,
 *         those with the lowest rates are used, slowed down to it. If there are too few in all, replicas share
 *         traces.
 * COST    Only as many files are read as needed.
 */
#include "base/no-memory.h"
#include "base/rng.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct draw {
	struct scenario_workload *w;
	scenario_read *read;
	void *arg;
	char **names; /* n of them, in the order of the draw; parts of the list */
	size_t n;
	struct heavy { /* skipped because of its rate */
		size_t name;
		double rate; /* per second */
	} * heavy;
	size_t n_heavy;
};

/* Split the lines in place. */
static int split_lines(char *list, char ***ret, size_t *ret_n)
{
	char *rest = NULL;
	size_t n = 0;

	for (const char *c = list; *c; c++)
		n += *c == '\n';
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = 0;
	for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		(*ret)[(*ret_n)++] = line;
	return 0;
}

static void shuffle(char **names, size_t n, uint64_t seed, const char *workload)
{
	struct rng rng;
	char stream[300];

	snprintf(stream, sizeof(stream), "traces/%s", workload);
	rng_init(&rng, seed, stream);
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)rng_below(&rng, i);
		char *name = names[i - 1];

		names[i - 1] = names[k];
		names[k] = name;
	}
}

/* Return 0; -ENOMSG: this file is not a trace; or another errno. */
static int read_file(
	const struct draw *d, const char *name, struct trace *ret, struct weir_err *err)
{
	size_t len, room = strlen(d->w->folder) + strlen(name) + 2;
	char *path = malloc(room), *text;
	int r;

	if (!path)
		return no_memory(err);
	snprintf(path, room, "%s/%s", d->w->folder, name);
	r = d->read(path, d->arg, &text, &len, err);
	if (r == 0) {
		r = trace_read(text, len, path, d->w->format, d->w->skip_bad, ret, err);
		free(text);
	}
	free(path);
	return r == -EINVAL || r == -ENOENT || r == -EACCES ? -ENOMSG : r;
}

static double rate_of(const struct trace *t)
{
	double span = (double)t->records[t->n - 1].at / 1e9;

	return span > 0 ? (double)(t->n - 1) / span : 0;
}

static int by_rate(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	return x->rate < y->rate ? -1 : x->rate > y->rate;
}

/* Keep the trace, or note that its rate is too high. */
static void keep_or_note(struct draw *d, size_t name, struct trace *t)
{
	double rate = rate_of(t);

	if (d->w->rate_most > 0 && rate > d->w->rate_most) {
		d->heavy[d->n_heavy++] = (struct heavy){name, rate};
		trace_free(t);
	} else {
		d->w->traces[d->w->n_traces++] = *t;
	}
}

static int draw_all(struct draw *d, uint32_t count, struct weir_err *err)
{
	struct weir_err why = {""};
	struct trace t;
	int r;

	for (size_t i = 0; i < d->n && d->w->n_traces < count; i++) {
		r = read_file(d, d->names[i], &t, &why);
		if (r == 0)
			keep_or_note(d, i, &t);
		else if (r != -ENOMSG)
			return weir_err_set(err, r, "%s", why.text);
	}
	qsort(d->heavy, d->n_heavy, sizeof(*d->heavy), by_rate);
	for (size_t i = 0; i < d->n_heavy && d->w->n_traces < count; i++) {
		r = read_file(d, d->names[d->heavy[i].name], &t, &why);
		if (r < 0)
			return weir_err_set(err, r, "%s", why.text);
		/* A trace of centuries, which cannot be slowed down, stays unchanged. */
		(void)trace_speed(&t, d->w->rate_most / d->heavy[i].rate);
		d->w->traces[d->w->n_traces++] = t;
	}
	if (d->w->n_traces == 0)
		return weir_err_at(err, -ENOENT, yamldoc_place(yamldoc_get(d->w->node, "traces")),
			"%s: the folder has no trace", d->w->folder);
	return 0;
}

static int check_all(const struct scenario_workload *w, struct weir_err *err)
{
	struct workload_config c = w->config;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < w->n_traces; i++) {
		c.trace = &w->traces[i];
		r = scenario_workload_check(w->node, &c, err);
	}
	return r;
}

int scenario_traces_draw(struct scenario_workload *w, uint32_t count, uint64_t seed,
	scenario_read *read, void *arg, struct weir_err *err)
{
	struct draw d = {.w = w, .read = read, .arg = arg};
	size_t len, room = strlen(w->folder) + 2;
	char *folder = malloc(room), *list = NULL;
	struct weir_err why = {""};
	int r;

	if (w->loaded) {
		free(folder);
		return 0;
	}
	if (!folder)
		return no_memory(err);
	snprintf(folder, room, "%s/", w->folder);
	r = read(folder, arg, &list, &len, &why);
	free(folder);
	if (r)
		return weir_err_at(
			err, r, yamldoc_place(yamldoc_get(w->node, "traces")), "%s", why.text);
	w->traces = calloc(count, sizeof(*w->traces));
	r = split_lines(list, &d.names, &d.n);
	d.heavy = calloc(d.n + 1, sizeof(*d.heavy));
	if (r < 0 || !w->traces || !d.heavy) {
		r = no_memory(err);
	} else {
		shuffle(d.names, d.n, seed, w->name);
		r = draw_all(&d, count, err);
	}
	free(d.names);
	free(d.heavy);
	free(list);
	if (r == 0)
		r = check_all(w, err);
	w->loaded = r == 0;
	return r;
}
