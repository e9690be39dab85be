/* SPDX-License-Identifier: BSD-3-Clause */
/* top: `weir top`, a running gateway second by second. */
#include "prog/remote.h"
#include "prog/screen.h"
#include "prog/table.h"
#include "prog/view.h"
#include "base/units.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct verb verb_top;

#define INTERVAL_MIN (100 * WEIR_MS) /* looking itself costs the gateway something */

enum { INTERVAL, ONCE, BATCH, SORT, SOCKET, URL, TOKEN, N_OPTIONS };
static const struct opt options[] = {
	[INTERVAL] = {"interval", 'i', "TIME", "between two looks (1s)"},
	[ONCE] = {"once", '1', NULL, "one interval as text, without a terminal; --batch 1"},
	[BATCH] = {"batch", 'b', "N", "N intervals as text"},
	[SORT] = {"sort", 's', "BY", "policy, iops, bytes, p99 or queue"},
	[SOCKET] = REMOTE_SOCKET,
	[URL] = REMOTE_URL,
	[TOKEN] = REMOTE_TOKEN,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

struct top {
	struct remote *remote;
	weir_time interval;
	enum view_order order;
	bool show_clients;
	json_t *before, *now, *clients; /* NULL: not had yet */
	struct weir_err fault;          /* of the last look; "": none */
};

static weir_time clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

/* ---- looking */

static int look(struct top *t)
{
	json_t *j;
	int rc;

	t->fault.text[0] = 0;
	rc = remote_try(t->remote, "GET", VIEW_PATH, NULL, 0, &j, &t->fault);
	if (rc < 0)
		return rc;
	json_decref(t->before);
	t->before = t->now;
	t->now = j;
	if (t->show_clients &&
		remote_try(t->remote, "GET", "/v1/clients", NULL, 0, &j, &t->fault) == 0) {
		json_decref(t->clients);
		t->clients = j;
	}
	return 0;
}

static void forget(struct top *t)
{
	json_decref(t->before);
	json_decref(t->now);
	json_decref(t->clients);
	t->before = t->now = t->clients = NULL;
}

/* ---- what is shown */

static void write_body(struct top *t, FILE *f)
{
	struct view v;

	if (view_is_control(t->now)) {
		view_write_control(t->now, f);
		return;
	}
	if (view_make(t->before, t->now, &v) < 0) {
		fputs("that was no gateway's answer\n", f);
		return;
	}
	view_sort(&v, t->order);
	view_write_head(t->now, f);
	fputc('\n', f);
	if (t->show_clients && t->clients) {
		view_write_clients(t->clients, f);
	} else {
		view_write_resources(&v, f);
		fputc('\n', f);
		view_write_tenants(&v, f);
		view_write_slo(t->now, f);
		view_write_parda(t->now, f);
		view_write_adaptbf(t->now, f);
		view_write_pshift(t->now, f);
	}
	view_free(&v);
}

static char *compose(struct top *t, bool terminal)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	if (terminal)
		fprintf(f, "q quit   s sort: %s   r %s%s%s\n", view_order_names[t->order],
			t->show_clients ? "resources and tenants" : "clients",
			t->fault.text[0] ? "   " : "", t->fault.text);
	if (t->now)
		write_body(t, f);
	fclose(f);
	return text;
}

/* ---- as text */

static int batch(struct top *t, int64_t n)
{
	struct timespec nap = {.tv_sec = t->interval / WEIR_SEC, .tv_nsec = t->interval % WEIR_SEC};

	for (int64_t i = 0; i <= n; i++) {
		char *text;
		if (i)
			nanosleep(&nap, NULL);
		if (look(t) < 0) {
			opts_fail(&verb_top, "%s", t->fault.text);
			return 1;
		}
		if (!i)
			continue; /* from here on */
		text = compose(t, false);
		for (const char *p = text; p && *p; p++)
			if (*p != TABLE_HEAD)
				putchar(*p);
		free(text);
		if (i < n)
			putchar('\n');
		fflush(stdout);
	}
	return 0;
}

/* ---- on a terminal */

static void draw(struct top *t)
{
	char *text = compose(t, true);

	if (text)
		screen_draw(text);
	free(text);
}

/* false: quit. */
static bool key(struct top *t, char c)
{
	json_t *j;

	switch (c) {
	case 'q':
	case 'Q':
		return false;
	case 's':
		t->order = (t->order + 1) % VIEW_ORDERS;
		break;
	case 'r':
		t->show_clients = !t->show_clients;
		if (t->show_clients &&
			remote_try(t->remote, "GET", "/v1/clients", NULL, 0, &j, &t->fault) == 0) {
			json_decref(t->clients);
			t->clients = j;
		}
		break;
	}
	return true;
}

static int live(struct top *t)
{
	weir_time next = clock_now();
	enum screen_event e = SCREEN_TIME;
	char c;
	int rc = look(t);

	if (rc < 0) { /* nobody there from the start: a line, and no screen */
		opts_fail(&verb_top, "%s", t->fault.text);
		return 1;
	}
	if (screen_open() < 0)
		return opts_fail(
			&verb_top, "needs a terminal; --once or --batch N prints text instead");
	while (e != SCREEN_END && (e != SCREEN_KEY || key(t, c))) {
		if (e == SCREEN_TIME) {
			weir_time at = clock_now();
			next = next + t->interval > at ? next + t->interval : at + t->interval;
		}
		draw(t);
		e = screen_wait(next, &c);
		if (e == SCREEN_TIME)
			look(t); /* a gateway that is away is waited for */
	}
	screen_close();
	return 0;
}

/* ---- the command line */

static int read_options(const char *const *values, struct top *t, int64_t *batches)
{
	struct weir_err err;

	t->interval = WEIR_SEC;
	if (values[INTERVAL] && weir_units_time(values[INTERVAL], &t->interval, &err) < 0)
		return opts_fail(&verb_top, "--interval: %s", err.text);
	if (t->interval < INTERVAL_MIN || t->interval > 3600 * WEIR_SEC)
		return opts_fail(&verb_top, "--interval: must be from 100ms to 1h");
	*batches = values[ONCE] ? 1 : 0;
	if (values[BATCH] && (weir_units_int(values[BATCH], batches, &err) < 0 || *batches < 1))
		return opts_fail(&verb_top, "--batch: must be a whole number from 1 on");
	for (int i = 0; values[SORT]; i++) {
		if (i == VIEW_ORDERS)
			return opts_fail(
				&verb_top, "--sort: must be policy, iops, bytes, p99 or queue");
		if (strcmp(values[SORT], view_order_names[i]) == 0) {
			t->order = (enum view_order)i;
			break;
		}
	}
	return -1;
}

static int run(int argc, char **argv)
{
	const char *values[N_OPTIONS];
	struct top t = {0};
	int64_t batches = 0;
	int n, status = opts_parse(&verb_top, argc, argv, values, &n);

	if (status >= 0)
		return status;
	if (n)
		return opts_fail(&verb_top, "takes no operands");
	status = read_options(values, &t, &batches);
	if (status < 0)
		status = remote_open(
			&verb_top, values[SOCKET], values[URL], values[TOKEN], &t.remote);
	if (status < 0)
		status = batches ? batch(&t, batches) : live(&t);
	forget(&t);
	remote_close(t.remote);
	return status;
}

const struct verb verb_top = {
	.name = "top",
	.summary = "watch a running gateway: who gets what, and why who waits",
	.usage = "[OPTION]...",
	.options = options,
	.run = run,
};
