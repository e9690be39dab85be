/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: the traces named on the command line, and those in folders, read one after the other. */
#include "cli/trace/rows.h"
#include "cli/view/progress.h"
#include "base/array.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Store the message without the name at its start, which the row shows: "line 17: …". */
static void set_why(struct trace_row *r, const char *message)
{
	const char *shown = strcmp(r->name, "-") == 0 ? "standard input" : r->name;
	size_t n = strlen(shown);
	bool named = strncmp(message, shown, n) == 0 && message[n] == ':';
	const char *rest = named ? message + n + 1 : message;
	r->failed = true;
	snprintf(r->why, sizeof r->why, "%s%s", named && *rest != ' ' ? "line " : "",
		rest + strspn(rest, " "));
}

static struct trace_row *add_row(struct trace_rows *rows, const char *name)
{
	if (array_grow(&rows->row, &rows->room, rows->n + 1) < 0)
		return NULL;
	struct trace_row *r = &rows->row[rows->n];
	*r = (struct trace_row){.name = strdup(name)};
	rows->n += r->name != NULL;
	return r->name ? r : NULL;
}

/* ---- names, and files in folders */

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int add_found(struct trace_rows *rows, const char *path)
{
	struct trace_row *r = add_row(rows, path);
	if (r)
		r->found = true;
	return r ? 0 : -ENOMEM;
}

/* Add every file in the folder, by name, and in its subfolders; links to folders are not followed,
 * to avoid cycles. */
static int add_folder(struct trace_rows *rows, const char *folder)
{
	struct dirent **list;
	size_t before = rows->n;
	int n = scandir(folder, &list, is_visible, alphasort), code = 0;
	if (n < 0) {
		struct trace_row *r = add_row(rows, folder);
		if (r)
			set_why(r, strerror(errno));
		return r ? 0 : -ENOMEM;
	}
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		struct stat st;
		const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
		if (code == 0 && asprintf(&path, "%s%s%s", folder, slash, list[i]->d_name) < 0)
			code = -ENOMEM;
		if (code == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			code = add_folder(rows, path);
		else if (code == 0 && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
			code = add_found(rows, path);
		free(path);
		free(list[i]);
	}
	free(list);
	if (code == 0 && rows->n == before) {
		struct trace_row *r = add_row(rows, folder);
		if (!r)
			return -ENOMEM;
		set_why(r, "contains no file");
	}
	return code;
}

static int add_names(struct trace_rows *rows, char **paths, int n)
{
	for (int i = 0; i < n; i++) {
		struct stat st;
		bool folder = strcmp(paths[i], "-") != 0 && stat(paths[i], &st) == 0 &&
			      S_ISDIR(st.st_mode);
		int code = folder                    ? add_folder(rows, paths[i])
			   : add_row(rows, paths[i]) ? 0
						     : -ENOMEM;
		if (code < 0)
			return code;
	}
	return 0;
}

/* ---- all of them */

size_t trace_rows_prefix(const struct trace_rows *rows)
{
	const char *first = rows->n > 1 ? rows->row[0].name : "";
	size_t n = strlen(first);
	for (size_t i = 1; i < rows->n; i++) {
		size_t same = 0;
		while (same < n && rows->row[i].name[same] == first[same])
			same++;
		n = same;
	}
	while (n > 0 && first[n - 1] != '/')
		n--;
	return n;
}

static void read_row(struct trace_rows *rows, size_t i, const struct trace_request *q,
	trace_rows_fn *fn, void *arg)
{
	struct trace_row *r = &rows->row[i];
	struct trace t;
	struct weir_err err;
	if (r->failed)
		return;
	int code = trace_load(r->name, q, &t, &err);
	if (code < 0) {
		set_why(r, err.text);
		r->alien = r->found && code == -ENOMSG;
		return;
	}
	trace_summarise(&t, &r->s);
	r->has_offsets = t.has_offsets;
	r->was_sorted = t.was_sorted;
	r->format = t.format;
	r->bad_lines = t.bad_lines;
	memcpy(r->first_bad, t.first_bad, sizeof r->first_bad);
	if (fn)
		fn(arg, i, &t);
	trace_free(&t);
}

int trace_rows_find(char **paths, int n, struct trace_rows *ret)
{
	struct trace_rows rows = {0};
	if (add_names(&rows, paths, n) < 0) {
		trace_rows_free(&rows);
		return -ENOMEM;
	}
	*ret = rows;
	return 0;
}

void trace_rows_read(
	struct trace_rows *rows, const struct trace_request *q, trace_rows_fn *fn, void *arg)
{
	struct progress p;
	progress_start(&p, "traces", (double)rows->n);
	for (size_t i = 0; i < rows->n; i++) {
		read_row(rows, i, q, fn, arg);
		progress_tick(&p, (double)i + 1);
	}
	progress_end(&p);
}

int trace_rows_end(struct trace_rows *rows)
{
	size_t failed = 0, alien = 0;
	for (size_t i = 0; i < rows->n; i++) {
		failed += rows->row[i].failed;
		alien += rows->row[i].alien;
	}
	if (failed) {
		fflush(stdout);
		opts_fail(&verb_trace, "%zu of %zu %s", failed, rows->n,
			failed > alien ? "not read" : "are not traces");
	}
	bool bad = failed > alien || (failed && failed == rows->n);
	trace_rows_free(rows);
	return bad ? 1 : 0;
}

void trace_rows_free(struct trace_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->row[i].name);
	free(rows->row);
	*rows = (struct trace_rows){0};
}

const char *trace_row_failure(const struct trace_row *r)
{
	const char *start = r->alien ? strstr(r->why, "it starts") : NULL;
	return start ? start : r->why;
}
