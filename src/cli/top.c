/* SPDX-License-Identifier: BSD-3-Clause */
/* top: `weir top`, show a running gateway second by second. */
#include "cli/common/process.h"
#include "cli/common/remote.h"
#include "cli/view/screen.h"
#include "cli/view/table.h"
#include "cli/view/view.h"
#include "serve/loop/loop.h"
#include <weir/units.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_top;

#define INTERVAL_MIN (100 * WEIR_MS) /* each update costs the gateway something */

enum { INTERVAL, ONCE, BATCH, SORT, TENANT, ALL, SOCKET, URL, TOKEN, TLS, N_OPTIONS };
static const struct opt options[] = {
	[INTERVAL] = {"interval", 'i', "TIME", "interval between two updates (1s)"},
	[ONCE] = {"once", '1', NULL, "one interval as text, without a terminal; --batch 1"},
	[BATCH] = {"batch", 'b', "N", "N intervals as text"},
	[SORT] = {"sort", 's', "BY", "policy, iops, bytes, p99 or queue"},
	[TENANT] = {"tenant", 't', "PREFIX", "only tenants whose path begins with PREFIX"},
	[ALL] = {"all", 'a', NULL, "idle tenants too, if there are more than 1,000"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

struct top {
	struct remote *remote;
	weir_time interval;
	enum view_order order;
	bool show_clients, all, help;
	char filter[256];               /* prefix of the tenants' paths */
	bool typing;                    /* typing the filter */
	size_t scroll;                  /* rows above the window */
	size_t n_rows;                  /* rows in all, as of the last drawing */
	json_t *before, *now, *clients; /* NULL: not fetched yet */
	struct weir_err fault;          /* of the last update; "": none */
};

/* ---- fetching */

static void fetch_clients(struct top *t)
{
	char *path = remote_path("/v1/clients?tenant=", t->filter, NULL);
	json_t *j;

	if (remote_try(t->remote, "GET", path, NULL, 0, &j, &t->fault) == 0) {
		json_decref(t->clients);
		t->clients = j;
	}
	free(path);
}

static int fetch_status(struct top *t)
{
	char *path = remote_status(t->filter, t->all);
	json_t *j;
	int rc;

	t->fault.text[0] = 0;
	rc = remote_try(t->remote, "GET", path, NULL, 0, &j, &t->fault);
	free(path);
	if (rc < 0)
		return rc;
	json_decref(t->before);
	t->before = t->now;
	t->now = j;
	if (t->show_clients)
		fetch_clients(t);
	return 0;
}

static void free_answers(struct top *t)
{
	json_decref(t->before);
	json_decref(t->now);
	json_decref(t->clients);
	t->before = t->now = t->clients = NULL;
}

/* ---- output */

/* Return how many of n rows to show from `scroll` on: as many as the terminal can show; all without
 * a terminal. */
static size_t rows_to_show(struct top *t, size_t n, bool terminal)
{
	size_t rows = terminal ? screen_rows() : n;

	t->n_rows = n;
	if (t->scroll >= n)
		t->scroll = n ? n - 1 : 0;
	return n - t->scroll < rows ? n - t->scroll : rows;
}

static void write_clients(struct top *t, bool terminal, FILE *f)
{
	const json_t *list = json_object_get(t->clients, "clients");
	size_t n = rows_to_show(t, json_array_size(list), terminal);
	json_t *some = json_array(), *part = json_pack("{s:o}", "clients", some);

	for (size_t i = 0; i < n; i++)
		json_array_append(some, json_array_get(list, t->scroll + i));
	view_write_clients(part, f);
	json_decref(part);
}

static void write_body(struct top *t, bool terminal, FILE *f)
{
	struct view v;

	if (view_is_control(t->now)) {
		view_write_control(t->now, f);
		return;
	}
	if (view_make(t->before, t->now, &v) < 0) {
		fputs("the answer is not from a gateway\n", f);
		return;
	}
	view_sort(&v, t->order);
	if (t->show_clients && t->clients) {
		view_write_head(t->now, f);
		fputc('\n', f);
		write_clients(t, terminal, f);
	} else {
		struct view some = v;

		some.n_tenants = rows_to_show(t, v.n_tenants, terminal);
		some.tenants += t->scroll;
		view_write_all(&some, t->now, !terminal, f);
	}
	view_free(&v);
}

/* Write the first line of the terminal: the typed filter, or the keys. */
static void write_keys(const struct top *t, FILE *f)
{
	if (t->typing) {
		fprintf(f, "filter: %s_   Enter: show tenants with this prefix   Esc: show all\n",
			t->filter);
		return;
	}
	fprintf(f, "q quit   h help   s sort: %s   r %s", view_order_names[t->order],
		t->show_clients ? "resources and tenants" : "clients");
	if (t->filter[0])
		fprintf(f, "   / filter: %s", t->filter);
	if (t->scroll)
		fprintf(f, "   row %zu of %zu", t->scroll + 1, t->n_rows);
	fprintf(f, "%s%s\n", t->fault.text[0] ? "   " : "", t->fault.text);
}

static void write_help(FILE *f)
{
	fputs("\nh ?              show or leave this help\n"
	      "q                quit\n"
	      "s                sort by the next column: policy, iops, bytes, p99, queue\n"
	      "r                clients instead of resources and tenants, and back\n"
	      "/                only tenants whose path begins with the typed text\n"
	      "Esc              all tenants again; leaves this help\n"
	      "a                idle tenants too, where there are more than 1,000, and back\n"
	      "Up Down k j      scroll by a row\n"
	      "PgUp PgDn b Space  by half a window\n"
	      "Home End g G     to the first and the last\n"
	      "\nweir-top(1) explains the columns.\n",
		f);
}

static char *compose_text(struct top *t, bool terminal)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	if (terminal)
		write_keys(t, f);
	if (terminal && t->help)
		write_help(f);
	else if (t->now)
		write_body(t, terminal, f);
	fclose(f);
	return text;
}

/* ---- as text */

static int run_batch(struct top *t, int64_t n)
{
	for (int64_t i = 0; i <= n; i++) {
		char *text;
		if (i)
			process_pause(t->interval);
		if (fetch_status(t) < 0) {
			opts_fail(&verb_top, "%s", t->fault.text);
			return 1;
		}
		if (!i)
			continue; /* the base of the first interval */
		text = compose_text(t, false);
		if (text)
			table_print_plain(text);
		free(text);
		if (i < n)
			putchar('\n');
		fflush(stdout);
	}
	return 0;
}

/* ---- on a terminal */

static void draw_screen(struct top *t)
{
	char *text = compose_text(t, true);

	if (text)
		screen_draw(text);
	free(text);
}

static void scroll_by(struct top *t, long rows)
{
	if (rows < 0)
		t->scroll -= t->scroll < (size_t)-rows ? t->scroll : (size_t)-rows;
	else
		t->scroll += (size_t)rows; /* rows_to_show() limits it */
}

/* Fetch again for another choice of tenants. */
static void refetch(struct top *t)
{
	t->scroll = 0;
	fetch_status(t);
}

static void type_filter(struct top *t, int c)
{
	size_t n = strlen(t->filter);

	if (c == '\n' || c == '\r' || c == SCREEN_ESCAPE) {
		t->typing = false;
		if (c == SCREEN_ESCAPE)
			t->filter[0] = 0;
		refetch(t);
	} else if (c == 127 || c == '\b') {
		t->filter[n ? n - 1 : 0] = 0;
	} else if (c >= ' ' && c < 256 && n + 1 < sizeof(t->filter)) {
		t->filter[n] = (char)c;
		t->filter[n + 1] = 0;
	}
}

static void scroll_to_key(struct top *t, int c)
{
	long half = (long)screen_rows() / 2;

	if (c == SCREEN_UP || c == 'k')
		scroll_by(t, -1);
	else if (c == SCREEN_DOWN || c == 'j')
		scroll_by(t, 1);
	else if (c == SCREEN_PAGE_UP || c == 'b')
		scroll_by(t, -half);
	else if (c == SCREEN_PAGE_DOWN || c == ' ')
		scroll_by(t, half);
	else if (c == SCREEN_HOME || c == 'g')
		t->scroll = 0;
	else if (c == SCREEN_LAST || c == 'G')
		t->scroll = t->n_rows;
}

/* Leave the help, else clear the filter. */
static void handle_escape(struct top *t)
{
	if (!t->help && t->filter[0]) {
		t->filter[0] = 0;
		refetch(t);
	}
	t->help = false;
}

/* Handle a key. Return false to quit. */
static bool handle_key(struct top *t, int c)
{
	if (t->typing) {
		type_filter(t, c);
		return true;
	}
	switch (c) {
	case 'q':
	case 'Q':
		return false;
	case 'h':
	case '?':
		t->help = !t->help;
		break;
	case 's':
		t->order = (t->order + 1) % VIEW_ORDERS;
		break;
	case 'a':
		t->all = !t->all;
		refetch(t);
		break;
	case SCREEN_ESCAPE:
		handle_escape(t);
		break;
	case '/':
		t->typing = true;
		t->help = false;
		break;
	case 'r':
		t->show_clients = !t->show_clients;
		t->scroll = 0;
		if (t->show_clients)
			fetch_clients(t);
		break;
	default:
		scroll_to_key(t, c);
	}
	return true;
}

static int run_live(struct top *t)
{
	weir_time next = loop_clock();
	enum screen_event e = SCREEN_TIME;
	int c = 0;
	int rc = fetch_status(t);

	if (rc < 0) { /* unreachable from the start: print the error, open no screen */
		opts_fail(&verb_top, "%s", t->fault.text);
		return 1;
	}
	if (screen_open() < 0)
		return opts_fail(
			&verb_top, "needs a terminal; --once or --batch N prints text instead");
	while (e != SCREEN_END && (e != SCREEN_KEY || handle_key(t, c))) {
		if (e == SCREEN_TIME) {
			weir_time at = loop_clock();
			next = next + t->interval > at ? next + t->interval : at + t->interval;
		}
		draw_screen(t);
		e = screen_wait(next, &c);
		if (e == SCREEN_TIME)
			fetch_status(t); /* if the gateway is unreachable, keep trying */
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
	if (values[TENANT] && strlen(values[TENANT]) >= sizeof(t->filter))
		return opts_fail(&verb_top, "--tenant: is too long");
	snprintf(t->filter, sizeof(t->filter), "%s", values[TENANT] ? values[TENANT] : "");
	t->all = values[ALL];
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

static int top_main(const char *const *values, char **operands, int n)
{
	struct top t = {0};
	int64_t batches = 0;
	int status;

	if (n)
		return opts_fail(&verb_top, "takes no operands");
	status = read_options(values, &t, &batches);
	if (status < 0)
		status = remote_of_options(&verb_top, values + SOCKET, &t.remote);
	if (status < 0)
		status = batches ? run_batch(&t, batches) : run_live(&t);
	free_answers(&t);
	remote_close(t.remote);
	return status;
}

const struct verb verb_top = {
	.name = "top",
	.summary = "watch a running gateway: throughput per tenant, and why it waits",
	.usage = "[OPTION]...",
	.options = options,
	.run = top_main,
};
