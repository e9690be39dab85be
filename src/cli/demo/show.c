/* SPDX-License-Identifier: BSD-3-Clause */
/* show: the measurements of `weir demo` as a table, a chart and a picture. */
#include "cli/view/chart.h"
#include "cli/demo/demo.h"
#include "cli/common/files.h"
#include "cli/view/out.h"
#include "cli/view/view.h"
#include "sim/experiment/plot.h"
#include "sim/experiment/report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 5 /* of the table */

/* ---- the table */

static double iops(const struct demo_tenant *t, enum demo_phase p)
{
	return t->phase[p].seconds > 0 ? (double)t->phase[p].requests / t->phase[p].seconds : NAN;
}

static double latency(const struct demo_tenant *t, enum demo_phase p, double percent)
{
	return (double)weir_hist_percentile(&t->phase[p].latency, percent) / 1e6;
}

/*
 * Write where a tenant's requests spent most of their time under the policy: waiting for a cause or
 * in the array, as time per request by Little's law.
 */
static void longest_part(const struct view *v, const char *tenant, char *buf, size_t len)
{
	static const char *const said[VIEW_CAUSES] = {[VIEW_WINDOW] = "for the window",
		[VIEW_MAX] = "for its max",
		[VIEW_ABOVE] = "for a parent's max",
		[VIEW_TOKENS] = "for tokens",
		[VIEW_TURN] = "for its turn"};
	const char *most_said = "in the array";
	char number[32];

	buf[0] = '\0';
	for (size_t i = 0; i < v->n_tenants; i++) {
		const struct view_tenant *t = &v->tenants[i];

		if (strcmp(t->path, tenant) != 0 || !(t->iops > 0))
			continue;
		double most = t->inside;

		for (int k = 0; k < VIEW_CAUSES; k++)
			if (t->wait[k] > most) {
				most = t->wait[k];
				most_said = said[k];
			}
		snprintf(buf, len, "%s ms %s",
			report_number(1000 * most / t->iops, number, sizeof(number)), most_said);
	}
}

/* Add a cell "before → after", with aligned arrows. */
static void cell_pair(struct report_table *t, double before, double after)
{
	char a[32], b[32];

	report_cell(t, "%5s → %-5s", report_number(before, a, sizeof(a)),
		report_number(after, b, sizeof(b)));
}

int demo_show_table(const struct demo *d)
{
	static const char *const head[] = {
		"", "    IOPS", "  p50 [ms]", "  p99 [ms]", "most of its time, after"};
	struct report_table t = {.columns = COLUMNS};
	struct view v;
	int r = view_make(d->start, d->end, &v);

	if (r < 0)
		return r;
	report_cells(&t, head, t.columns);
	for (size_t i = 0; i < DEMO_TENANTS; i++) {
		const struct demo_tenant *x = &d->tenant[i];
		char most[64];

		longest_part(&v, demo_tenants[i], most, sizeof(most));
		report_cell(&t, "%s", demo_tenants[i]);
		cell_pair(&t, iops(x, DEMO_WITHOUT), iops(x, DEMO_WITH));
		cell_pair(&t, latency(x, DEMO_WITHOUT, 50), latency(x, DEMO_WITH, 50));
		cell_pair(&t, latency(x, DEMO_WITHOUT, 99), latency(x, DEMO_WITH, 99));
		report_cell(&t, "%s", most);
	}
	puts("Before → after:");
	r = report_table_text(&t, 2, stdout);
	putchar('\n');
	view_free(&v);
	return r;
}

void demo_show_sum(const struct demo *d)
{
	double was = latency(&d->tenant[0], DEMO_WITHOUT, 99),
	       is = latency(&d->tenant[0], DEMO_WITH, 99);
	double part = iops(&d->tenant[DEMO_TENANTS - 1], DEMO_WITH) /
		      iops(&d->tenant[DEMO_TENANTS - 1], DEMO_WITHOUT);
	char a[32], b[32];

	printf("The slowest 1 %% of the database's reads take at least %s ms instead of %s; the\n"
	       "backup, which is not urgent, runs at %.0f %% of its former speed.\n\n",
		report_number(is, a, sizeof(a)), report_number(was, b, sizeof(b)), 100 * part);
}

/* ---- the chart */

static void draw_latency(FILE *to, const struct demo *d, const char *title)
{
	const struct demo_tenant *db = &d->tenant[0];
	struct chart c = {.title = title,
		.points = db->p99,
		.n = db->n,
		.log = true,
		.mark = d->mark > 0 ? d->mark : NAN,
		.left = "no gate",
		.right = "gate and policy",
		.columns = 64,
		.rows = 7,
		.ascii = !chart_utf8(),
		.colour = chart_colour(to)};

	chart_draw(to, &c);
}

static size_t live_lines; /* of the last drawing */

/* Write the drawing to the terminal at once, over the last one. */
static void live_out(const char *text)
{
	if (live_lines)
		printf("\033[%zuA", live_lines);
	printf("\033[J%s", text);
	fflush(stdout);
	live_lines = 0;
	for (const char *p = text; *p; p++)
		live_lines += *p == '\n';
}

void demo_show_live(const struct demo *d)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	fprintf(f, "%4.1f s, %s\n", d->elapsed, d->mark > 0 ? "with the policy" : "without a gate");
	for (size_t i = 0; i < DEMO_TENANTS; i++) {
		const struct demo_tenant *t = &d->tenant[i];

		fprintf(f, "  %-8s %6.0f IOPS   p99 %6.1f ms\n", demo_tenants[i], t->iops,
			t->n ? t->p99[t->n - 1].value : 0);
	}
	if (d->tenant[0].n > 1)
		draw_latency(f, d, "The database's latency, p99 of each half second [ms]");
	fclose(f);
	if (text)
		live_out(text);
	free(text);
}

void demo_show_live_end(void)
{
	live_out("");
}

/* ---- the picture */

static int write_picture(const struct demo *d, const char *dir, struct weir_err *err)
{
	struct plot_line lines[DEMO_TENANTS];
	struct plot p = {.title = "Latency of a database, a web server and a backup on one array, "
				  "with a policy from the "
				  "middle on",
		.x_label = "time [s]",
		.y_label = "p99 latency of each half second [ms]",
		.log_y = true,
		.lines = lines,
		.n_lines = DEMO_TENANTS,
		.mark = d->mark,
		.mark_label = "policy applied"};
	bool no_gnuplot = false;

	for (size_t i = 0; i < DEMO_TENANTS; i++)
		lines[i] = (struct plot_line){
			.label = demo_tenants[i], .points = d->tenant[i].p99, .n = d->tenant[i].n};
	int r = plot_write(&p, dir, "latency", files_write, err);

	if (r == 0)
		r = out_draw(&verb_demo, dir, "latency", &no_gnuplot, err);
	if (r == 0 && !no_gnuplot)
		printf("The picture: %s/latency.svg and .png\n", dir);
	return r;
}

int demo_show_picture(const struct demo *d, const char *dir, struct weir_err *err)
{
	draw_latency(stdout, d, "The database's latency, p99 of each half second [ms]");
	putchar('\n');
	return write_picture(d, dir, err);
}
