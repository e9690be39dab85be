/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-show: the claims of an experiment and their outcomes, as text and as Markdown. */
#include "sim/experiment/experiment.h"
#include "sim/experiment/report-impl.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

char *experiment_value(
	const struct experiment_claim *c, const struct experiment_outcome *o, char *buf, size_t len)
{
	char number[32];

	if (!o->known)
		snprintf(buf, len, "?");
	else
		snprintf(buf, len, "%s%s%s", report_number(o->value, number, sizeof(number)),
			*c->unit ? " " : "", c->unit);
	return buf;
}

char *experiment_band(
	const struct experiment_claim *c, const struct experiment_outcome *o, char *buf, size_t len)
{
	char lo[32], hi[32];
	const char *gap = *c->unit ? " " : "";

	if (!o->known)
		snprintf(buf, len, "?");
	else if (isinf(o->lo))
		snprintf(buf, len, "≤ %s%s%s", report_number(o->hi, hi, sizeof(hi)), gap, c->unit);
	else if (isinf(o->hi))
		snprintf(buf, len, "≥ %s%s%s", report_number(o->lo, lo, sizeof(lo)), gap, c->unit);
	else
		snprintf(buf, len, "%s … %s%s%s", report_number(o->lo, lo, sizeof(lo)),
			report_number(o->hi, hi, sizeof(hi)), gap, c->unit);
	return buf;
}

/* Fill the table of the claims: a head, and a row for each. */
static int fill_table(
	const struct experiment *e, const struct experiment_result *r, struct report_table *t)
{
	static const char *const head[] = {"", "claim", "paper", "ours", "band"};
	char value[96], band[96];
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(head) / sizeof(*head); i++)
		code = report_cell(t, "%s", head[i]);
	for (size_t i = 0; code == 0 && i < e->n_claims; i++) {
		const struct experiment_claim *c = &e->claims[i];
		const struct experiment_outcome *o = &r->outcomes[i];

		if (!o->judged)
			continue;
		code = report_cell(t, "%s", o->ok ? "ok" : "MISS");
		if (code == 0)
			code = report_cell(t, "%s", c->what);
		if (code == 0)
			code = report_cell(t, "%s", *c->paper ? c->paper : "–");
		if (code == 0)
			code = report_cell(t, "%s", experiment_value(c, o, value, sizeof(value)));
		if (code == 0)
			code = report_cell(t, "%s", experiment_band(c, o, band, sizeof(band)));
	}
	return code;
}

static void put_reasons(
	FILE *f, const struct experiment *e, const struct experiment_result *r, const char *before)
{
	for (size_t i = 0; i < e->n_claims; i++)
		if (r->outcomes[i].judged && !r->outcomes[i].known)
			fprintf(f, "%s%s: %s\n", before, e->claims[i].what,
				r->outcomes[i].reason.text);
}

/* Write the settings that switch the mechanism off, as "a: 1, b: 2". */
static void put_switch(FILE *f, const struct experiment_without *w)
{
	for (size_t i = 0; i < w->n_sets; i++)
		fprintf(f, "%s%s: %s", i ? ", " : "", w->sets[i].path, w->sets[i].value);
}

/* Write a line per counter-experiment: the settings, and the claims that must be missed. */
static void put_without(FILE *f, const struct experiment *e)
{
	for (size_t i = 0; i < e->n_without; i++) {
		const struct experiment_without *w = &e->without[i];
		const char *before = "must miss";

		fprintf(f, "%s- Without %s (`", i ? "" : "\n", w->mechanism);
		put_switch(f, w);
		fputs("`) ", f);
		for (size_t k = 0; k < e->n_claims; k++) {
			if (!w->claims[k])
				continue;
			fprintf(f, "%s *%s*", before, e->claims[k].what);
			before = ";";
		}
		fputs(".\n", f);
	}
	if (e->no_mechanism)
		fprintf(f, "\nNo mechanism to switch off: %s.\n", e->no_mechanism);
}

static void put_head(FILE *f, const struct experiment *e, const struct experiment_result *r)
{
	fprintf(f, "%s: %s (%s)\n", e->id, e->title, e->source);
	if (!r->without)
		return;
	fprintf(f, "without %s (", r->without->mechanism);
	put_switch(f, r->without);
	fprintf(f, "): %zu claims must be missed, %zu are\n", r->judged, r->judged - r->held);
}

/* Write the head, the table and what follows it. */
static int write_report(const struct experiment *e, const struct experiment_result *r,
	bool markdown, const char *pictures, FILE *f)
{
	struct report_table *t;
	char stem[256], *table = NULL;
	int code = report_table_new(5, &t);

	if (code == 0)
		code = fill_table(e, r, t);
	if (code == 0)
		code = markdown ? report_table_markdown(t, &table)
				: report_table_text(t, 2, &table);
	if (code == 0) {
		if (markdown)
			fprintf(f, "## %s\n\n%s. *%s*\n\n", e->id, e->title, e->source);
		else
			put_head(f, e, r);
		if (markdown && e->about)
			fprintf(f, "%s\n\n", e->about);
		fputs(table, f);
		put_reasons(f, e, r, markdown ? "\n" : "  ");
		if (markdown)
			put_without(f, e);
		for (size_t i = 0; markdown && pictures && i < e->n_plots; i++)
			fprintf(f, "\n![%s](%s/%s.svg)\n", e->plots[i].title, pictures,
				experiment_stem(e, i, stem, sizeof(stem)));
	}
	free(table);
	report_table_free(t);
	return code;
}

static int compose_text(const struct experiment *e, const struct experiment_result *r,
	bool markdown, const char *pictures, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	if (write_report(e, r, markdown, pictures, f) < 0) {
		fclose(f);
		free(text);
		return -ENOMEM;
	}
	return report_finish(f, &text, ret);
}

int experiment_text(const struct experiment *e, const struct experiment_result *r, char **ret)
{
	return compose_text(e, r, false, NULL, ret);
}

int experiment_markdown(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, char **ret)
{
	return compose_text(e, r, true, pictures, ret);
}
