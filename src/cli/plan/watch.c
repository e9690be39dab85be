/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: `weir plan --watch`, plan again and again from the last hour of a gateway's own record.
 *
 * The gateway records one file after the other, each for --every. A file that is complete is read and removed, and its requests are
 * kept, by tenant, as lines of a trace, until they are an hour old.
 */
#include "cli/plan/plan.h"
#include "cli/common/files.h"
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include "cli/trace/trace.h"
#include "base/array.h"
#include "base/no-memory.h"
#include "model/trace/tenant.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS      (INT64_C(100) * 1000 * 1000)
#define WATCHED_MOST (INT64_C(3600) * 1000 * 1000 * 1000)

static volatile sig_atomic_t ended;

static void on_end(int signal)
{
	ended = 1;
}

static weir_time now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (weir_time)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct part {                /* requests of a tenant in one file */
	char *tenant, *text; /* lines without a heading, their times from `start` on */
	size_t len, lines;
	weir_time start;
};

struct watch {
	const struct planning_options *o;
	const struct plan_watch *how;
	struct remote *r;
	struct part *part;
	size_t n, room;
};

/* ---- from a file to parts */

struct split { /* a stream of a file */
	char *tenant;
	FILE *to;
	char *text;
	size_t len, lines;
};

struct splits {
	struct split *stream;
	size_t n, room;
};

/* Note the name of a stream, if the line has one. */
static int note_name(struct splits *all, const char *line)
{
	struct trace_name name;
	size_t i;

	if (!trace_name_of(line, line + strlen(line), &name))
		return 0;
	i = name.stream;
	if (i >= all->n) {
		size_t was = all->n;

		if (array_grow(&all->stream, &all->room, i + 1) < 0)
			return -ENOMEM;
		all->n = i + 1;
		memset(all->stream + was, 0, (all->n - was) * sizeof(*all->stream));
	}
	if (!all->stream[i].tenant) {
		all->stream[i].tenant = strndup(name.tenant, name.len);
		all->stream[i].to = open_memstream(&all->stream[i].text, &all->stream[i].len);
	}
	return all->stream[i].tenant && all->stream[i].to ? 0 : -ENOMEM;
}

static void add_line(struct splits *all, const char *line)
{
	const char *space = strrchr(line, ' ');
	unsigned long i = space ? strtoul(space, NULL, 10) : ULONG_MAX;

	if (line[0] == '#' || i >= all->n || !all->stream[i].to)
		return;
	fprintf(all->stream[i].to, "%s\n", line);
	all->stream[i].lines++;
}

/* Keep what a stream has, or free it. */
static int keep(struct watch *w, struct split *s, weir_time start, bool wanted)
{
	if (s->to && fclose(s->to) != 0)
		wanted = false;
	if (wanted && s->lines && array_grow(&w->part, &w->room, w->n + 1) == 0) {
		w->part[w->n++] = (struct part){s->tenant, s->text, s->len, s->lines, start};
		return 0;
	}
	free(s->tenant);
	free(s->text);
	return wanted && s->lines ? -ENOMEM : 0;
}

/* Split the text of a recording, whose lines end in NUL afterwards, by tenant. */
static int split(struct watch *w, char *text, size_t len, weir_time start)
{
	struct splits all = {0};
	int rc = 0;

	for (size_t i = 0; i < len; i++)
		text[i] = text[i] == '\n' ? '\0' : text[i];
	for (char *at = text; rc == 0 && at < text + len; at += strlen(at) + 1)
		if (at[0] == '#')
			rc = note_name(&all, at);
	for (char *at = text; rc == 0 && at < text + len; at += strlen(at) + 1)
		add_line(&all, at);
	for (size_t i = 0; i < all.n; i++) {
		int bad = keep(w, &all.stream[i], start, rc == 0);

		rc = rc < 0 ? rc : bad;
	}
	free(all.stream);
	return rc;
}

static void forget(struct watch *w, weir_time before)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if (w->part[i].start >= before) {
			w->part[n++] = w->part[i];
		} else {
			free(w->part[i].tenant);
			free(w->part[i].text); /* NOLINT(clang-analyzer-unix.Malloc): a part has its own */
		}
	w->n = n;
}

/* ---- a recording */

/* Wait until the recording has ended; ret_start: the time of its first request. */
static int wait_for(struct watch *w, weir_time *ret_start)
{
	bool on = true;
	int status = -1;

	*ret_start = now_ns();
	for (bool any = false; on && !ended && status < 0;) {
		json_t *j;

		process_pause(POLL_NS);
		status = remote_ask(w->r, "GET", "/v1/record", NULL, 0, &j);
		if (status >= 0)
			break;
		on = json_is_true(json_object_get(j, "recording"));
		if (!any && json_integer_value(json_object_get(j, "recorded")) > 0) {
			any = true;
			*ret_start = now_ns();
		}
		json_decref(j);
	}
	return status;
}

/* Record for a while, and keep the requests. */
static int record(struct watch *w)
{
	static unsigned number;
	char name[64], *file = NULL, *text = NULL;
	weir_time start;
	struct weir_err err;
	json_t *j;
	size_t len;
	int status;

	snprintf(name, sizeof(name), "weir-watch-%ld-%u.trace", (long)getpid(), number++);
	status = trace_record_start(w->r, name, NULL, w->how->every, &file);
	if (status >= 0)
		return status;
	status = wait_for(w, &start);
	if (status < 0) {
		status = remote_ask(w->r, "DELETE", "/v1/record", NULL, 0, &j);
		if (status < 0)
			json_decref(j);
	}
	if (status < 0 && !ended) {
		if (files_read_trace(file, &text, &len, &err) < 0)
			status = opts_fail(&verb_plan, "--watch: %s", err.text);
		else if (split(w, text, len, start) < 0)
			status = opts_no_memory(&verb_plan);
	}
	unlink(file);
	free(text);
	free(file);
	return status;
}

/* ---- a plan */

/* Write the lines of a part with their times moved. */
static void put_part(FILE *f, const struct part *p, weir_time first)
{
	for (const char *at = p->text, *end; at < p->text + p->len; at = end + 1) {
		char *rest;
		long long t = strtoll(at, &rest, 10);

		end = strchr(at, '\n');
		fprintf(f, "%lld%.*s\n", t + (long long)(p->start - first), (int)(end - rest),
			rest);
	}
}

/* A trace is the record of its tenant, or, if that is too short for the slo, the file that the policy names. */
static int read_recorded(void *arg, enum planning_file kind, const struct weir_tenant *of,
	bool is_new, struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	const struct watch *w = arg;
	const struct part *first = NULL;
	size_t lines = 0;
	FILE *f;

	for (size_t i = 0; of && i < w->n; i++)
		if (strcmp(w->part[i].tenant, of->path) == 0) {
			first = first ? first : &w->part[i];
			lines += w->part[i].lines;
		}
	if (!first || (double)lines * (1 - of->slo_percentile / 100) < PLAN_BEYOND)
		return w->o->read(w->o->arg, kind, of, is_new, at, name, ret_text, ret_len, err);
	f = open_memstream(ret_text, ret_len);
	if (!f)
		return no_memory(err);
	fputs("# weir-trace 1\n", f);
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->part[i].tenant, of->path) == 0)
			put_part(f, &w->part[i], first->start);
	return fclose(f) == 0 ? 0 : no_memory(err);
}

/* Return -1 and the plan in force, NULL if there is none, or the exit status. */
static int in_force(struct watch *w, json_t **ret)
{
	struct weir_err err;
	json_t *j = NULL;
	int rc = remote_try(w->r, "GET", "/v1/plan", NULL, 0, &j, &err);

	*ret = rc == 0 ? json_incref(json_object_get(j, "plan")) : NULL;
	json_decref(rc == 0 ? j : NULL);
	return rc == 0 || rc == -ENODATA ? -1 : opts_fail(&verb_plan, "--watch: %s", err.text);
}

static void say(const struct planning *p, const bool *changed, enum planning_step step)
{
	char at[32];
	time_t now = time(NULL);
	struct tm tm;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		n += changed[i];
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	printf("%s ", at);
	if (step == PLANNING_SAME)
		puts("no change: every tenant keeps to its buckets, and every slo holds");
	else if (step == PLANNING_FEW)
		printf("%u of %u tenants change:\n", n, p->in.n_tenants);
	else
		puts("a new plan of all tenants:");
	if (step == PLANNING_FEW)
		for (uint32_t i = 0; i < p->in.n_tenants; i++)
			if (changed[i])
				printf("%s exceeds its buckets\n", planning_tenant(p, i)->path);
}

/* Plan once. Return -1, or the exit status. */
static int plan_again(struct watch *w)
{
	struct planning_options o = *w->o;
	enum planning_step step = PLANNING_ALL;
	struct weir_err err;
	struct planning p;
	json_t *force;
	bool *changed;
	int status = in_force(w, &force);

	if (status >= 0)
		return status;
	o.read = read_recorded;
	o.arg = w;
	if (planning_read(&o, &p, NULL, &err) < 0) {
		json_decref(force);
		return opts_fail(&verb_plan, "%s", err.text);
	}
	changed = calloc(p.in.n_tenants + 1, sizeof(*changed));
	if (!changed || (force && planning_step(&p, force, changed, &step) < 0)) {
		status = opts_no_memory(&verb_plan);
	} else {
		say(&p, changed, step);
		if (step != PLANNING_SAME)
			status = w->how->show(&p, w->how->values);
		if (step != PLANNING_SAME && status < 0)
			status = w->how->use(&p, w->how->values);
	}
	fflush(stdout);
	free(changed);
	json_decref(force);
	planning_free(&p);
	return status;
}

int plan_watch(
	const struct planning_options *o, const struct plan_watch *how, const char *const *at)
{
	struct sigaction action = {.sa_handler = on_end};
	struct watch w = {.o = o, .how = how};
	int status = remote_of_options(&verb_plan, at, &w.r);

	if (status >= 0)
		return status;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	while (status < 0 && !ended) {
		status = record(&w);
		forget(&w, now_ns() - WATCHED_MOST);
		if (status < 0 && !ended)
			status = plan_again(&w);
	}
	forget(&w, INT64_MAX);
	free(w.part);
	remote_close(w.r);
	return status < 0 ? 0 : status;
}
