/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convert: `weir trace convert`. Nothing is lost silently: records and fields that the target
 * cannot hold are refused, or with --drop-unsupported left out and counted; rounded times are
 * counted, too. The output gets its name only when it is complete.
 */
#include "cli/trace/trace.h"
#include "cli/view/progress.h"
#include "base/array.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER     (1u << 20) /* bytes between two writes */
#define TICK_EVERY 8192       /* records between two ticks of the progress */

/* ---- losses */

struct losses {
	size_t op, sectors, offset, stream, time;
	size_t records; /* cannot be written at all */
};

static struct losses count_losses(const struct trace *t, enum trace_format to)
{
	struct losses c = {0};
	for (size_t i = 0; i < t->n; i++) {
		unsigned loss = trace_loss(t, i, to);
		c.op += (loss & TRACE_LOSS_OP) != 0;
		c.sectors += (loss & TRACE_LOSS_SECTORS) != 0;
		c.offset += (loss & TRACE_LOSS_OFFSET) != 0;
		c.stream += (loss & TRACE_LOSS_STREAM) != 0;
		c.time += (loss & TRACE_LOSS_TIME) != 0;
		c.records += (loss & (TRACE_LOSS_OP | TRACE_LOSS_SECTORS)) != 0;
	}
	return c;
}

/* Describe the losses, as "3 flushes and trims, 7 offsets"; "" if only precision is lost. */
static const char *losses_in_words(const struct losses *c, char *buf, size_t len)
{
	const struct {
		size_t n;
		const char *what;
	} parts[] = {
		{c->op, "flushes and trims"},
		{c->sectors, "IOs that are not whole sectors"},
		{c->offset, "offsets"},
		{c->stream, "streams' numbers"},
	};
	buf[0] = '\0';
	for (size_t i = 0, used = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].n && used < len)
			used += (size_t)snprintf(buf + used, len - used, "%s%zu %s",
				used ? ", " : "", parts[i].n, parts[i].what);
	return buf;
}

static void drop_records(struct trace *t, enum trace_format to)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->n; i++)
		if (!(trace_loss(t, i, to) & (TRACE_LOSS_OP | TRACE_LOSS_SECTORS)))
			t->records[kept++] = t->records[i];
	t->n = kept;
}

/* ---- the output, under a temporary name until it is complete */

struct output {
	const char *name; /* as given */
	char *path;       /* destination, links followed; NULL: written in place */
	char *temporary;
	FILE *file;
};

static int output_fail(const struct output *o)
{
	opts_fail(&verb_trace, "%s: %s", o->name, strerror(errno));
	return 1;
}

/* Return true for standard output, and for files that must not be replaced (/dev/null, a pipe). */
static bool in_place(const char *name)
{
	struct stat st;
	return strcmp(name, "-") == 0 || (stat(name, &st) == 0 && !S_ISREG(st.st_mode));
}

/* Remove the incomplete output if a signal ends the program. */
static const char *volatile incomplete;
static const int stops[] = {SIGHUP, SIGINT, SIGTERM};

static void on_stop(int number)
{
	if (incomplete)
		unlink(incomplete);
	raise(number); /* with the default action: SA_RESETHAND */
}

static void clean_when_stopped(const char *path)
{
	struct sigaction act = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND}, old;
	incomplete = path;
	for (size_t i = 0; path && i < sizeof stops / sizeof *stops; i++)
		if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(stops[i], &act, NULL); /* under nohup it stays ignored */
}

static int output_open(struct output *o, const char *name)
{
	*o = (struct output){.name = name};
	if (in_place(name)) {
		o->file = strcmp(name, "-") == 0 ? stdout : fopen(name, "we");
		return o->file ? 0 : output_fail(o);
	}
	o->path = realpath(name, NULL);
	if (!o->path)
		o->path = strdup(name);
	if (!o->path || asprintf(&o->temporary, "%s.XXXXXX", o->path) < 0) {
		o->temporary = NULL;
		return output_fail(o);
	}
	int fd = mkstemp(o->temporary); /* NOLINT(clang-analyzer-unix.Malloc): output_close frees */
	if (fd < 0) {
		free(o->temporary);
		o->temporary = NULL;
		return output_fail(o);
	}
	clean_when_stopped(o->temporary);
	mode_t mask = umask(0); /* mkstemp makes it private; the user expects the default mode */
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	o->file = fdopen(fd, "w");
	if (!o->file)
		close(fd);
	return o->file ? 0 : output_fail(o);
}

/* Close the output. `status`: of the work so far. Return the exit status. */
static int output_close(struct output *o, int status)
{
	if (o->file && (o->file == stdout ? fflush(o->file) : fclose(o->file)) != 0 && !status)
		status = output_fail(o);
	if (o->temporary && !status && rename(o->temporary, o->path) != 0)
		status = output_fail(o);
	if (o->temporary && status)
		unlink(o->temporary);
	clean_when_stopped(NULL);
	free(o->temporary);
	free(o->path);
	return status;
}

static int write_records(const struct trace *t, enum trace_format to, struct output *o)
{
	size_t room = BUFFER, used = 0;
	char *buf = malloc(room);
	struct progress p;
	int status = 0;
	progress_start(&p, o->name, (double)t->n);
	for (size_t i = 0; i < t->n && buf && !status;) {
		int n = trace_format_record(t, i, to, buf + used, room - used);
		if (n == -ENOSPC && used == 0) { /* a header longer than the buffer */
			if (array_grow(&buf, &room, room + 1) < 0) {
				free(buf);
				buf = NULL;
			}
		} else if (n == -ENOSPC) {
			if (fwrite(buf, 1, used, o->file) != used)
				status = output_fail(o);
			used = 0;
		} else {
			used += (size_t)n; /* no other error: unsupported records were dropped */
			if (++i % TICK_EVERY == 0)
				progress_tick(&p, (double)i);
		}
	}
	progress_end(&p);
	if (!buf)
		errno = ENOMEM;
	if (!status && (!buf || fwrite(buf, 1, used, o->file) != used))
		status = output_fail(o);
	free(buf);
	return status;
}

/* ---- the verb */

/* Cut, speed up, and refuse losses that the user did not allow. Return the exit status. */
static int prepare_trace(struct trace *t, const struct trace_request *q, const char *in)
{
	char words[200];
	const char *to = trace_format_names[q->to];
	trace_slice(t, q->from, q->until);
	if (t->n == 0)
		return opts_fail(&verb_trace, "%s: no IO in that time", in);
	if (trace_speed(t, q->speed) != 0)
		return opts_fail(&verb_trace, "--speed: the trace would take over 292 years");
	struct losses c = count_losses(t, q->to);
	losses_in_words(&c, words, sizeof words);
	if (words[0] && !q->drop_unsupported) {
		opts_fail(&verb_trace,
			"%s: %s cannot hold %s; use --drop-unsupported to leave them out", in, to,
			words);
		return 1;
	}
	drop_records(t, q->to);
	if (t->n == 0) {
		opts_fail(&verb_trace, "%s: %s can hold none of its %zu IOs", in, to, c.records);
		return 1;
	}
	if (words[0])
		fprintf(stderr, "weir: trace: %s: lost: %s; %zu IOs left out, %zu written\n", in,
			words, c.records, t->n);
	if (c.time)
		fprintf(stderr, "weir: trace: %s: %zu arrivals rounded down to %s\n", in, c.time,
			q->to == TRACE_FIO ? "1 us" : "100 ns");
	return 0;
}

int trace_convert(const struct trace_request *q, const char *in, const char *out)
{
	struct weir_err err;
	struct output o;
	struct trace t;
	const char *name = strcmp(in, "-") == 0 ? "standard input" : in;
	if (trace_load(in, q, &t, &err) < 0)
		return opts_fail(&verb_trace, "%s", err.text);
	if (t.bad_lines)
		fprintf(stderr, "weir: trace: %s: %zu bad line%s skipped, the first: %s\n", name,
			t.bad_lines, t.bad_lines > 1 ? "s" : "", t.first_bad);
	int status = prepare_trace(&t, q, name);
	if (!status && !t.has_offsets && q->to != TRACE_WEIR && q->to != TRACE_COMPACTOR)
		fprintf(stderr, "weir: trace: %s: has no offsets; they are written as 0\n", name);
	if (!status) {
		status = output_open(&o, out);
		if (!status)
			status = write_records(&t, q->to, &o);
		status = output_close(&o, status);
	}
	trace_free(&t);
	return status;
}
