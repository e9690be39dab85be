/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-show: the claims of an experiment and their outcomes, as text and as Markdown. */
#include "sim/experiment/experiment.h"
#include "sim/experiment/report.h"
#include "sim/experiment/spread.h"
#include <math.h>
#include <stdio.h>

bool experiment_held(const struct experiment_result *r, size_t i)
{
	return r->spread ? r->spread->claims[i].held == r->spread->claims[i].judged
			 : r->outcomes[i].ok;
}

char *experiment_verdict(const struct experiment_result *r, size_t i, char *buf)
{
	const struct spread_claim *c = r->spread ? &r->spread->claims[i] : NULL;

	if (c && c->held && c->held < c->judged)
		snprintf(buf, EXPERIMENT_SHOWN, "%u of %u", c->held, c->judged);
	else
		snprintf(buf, EXPERIMENT_SHOWN, "%s", experiment_held(r, i) ? "ok" : "MISS");
	return buf;
}

char *experiment_value(
	const struct experiment *e, const struct experiment_result *r, size_t i, char *buf)
{
	const struct experiment_outcome *o = &r->outcomes[i];
	const struct spread_claim *c = r->spread ? &r->spread->claims[i] : NULL;
	const char *unit = e->claims[i].unit, *gap = *unit ? " " : "";
	char number[32], half[32];

	if (c ? !c->n : !o->known)
		snprintf(buf, EXPERIMENT_SHOWN, "?");
	else if (c && c->n > 1)
		snprintf(buf, EXPERIMENT_SHOWN, "%s ± %s%s%s",
			report_number(c->mean, number, sizeof(number)),
			report_number(spread_interval(c), half, sizeof(half)), gap, unit);
	else
		snprintf(buf, EXPERIMENT_SHOWN, "%s%s%s",
			report_number(c ? c->mean : o->value, number, sizeof(number)), gap, unit);
	return buf;
}

char *experiment_band(
	const struct experiment *e, const struct experiment_result *r, size_t i, char *buf)
{
	const struct experiment_outcome *o = &r->outcomes[i];
	const char *unit = e->claims[i].unit, *gap = *unit ? " " : "";
	char lo[32], hi[32];

	if (!o->known)
		snprintf(buf, EXPERIMENT_SHOWN, "?");
	else if (isinf(o->lo))
		snprintf(buf, EXPERIMENT_SHOWN, "≤ %s%s%s", report_number(o->hi, hi, sizeof(hi)),
			gap, unit);
	else if (isinf(o->hi))
		snprintf(buf, EXPERIMENT_SHOWN, "≥ %s%s%s", report_number(o->lo, lo, sizeof(lo)),
			gap, unit);
	else
		snprintf(buf, EXPERIMENT_SHOWN, "%s … %s%s%s", report_number(o->lo, lo, sizeof(lo)),
			report_number(o->hi, hi, sizeof(hi)), gap, unit);
	return buf;
}

/* Fill the table of the claims: a head, and a row for each. */
static void fill_table(
	const struct experiment *e, const struct experiment_result *r, struct report_table *t)
{
	static const char *const head[] = {"", "claim", "paper", "ours", "band"};
	char verdict[EXPERIMENT_SHOWN], value[EXPERIMENT_SHOWN], band[EXPERIMENT_SHOWN];

	report_cells(t, head, t->columns);
	for (size_t i = 0; i < e->n_claims; i++) {
		const struct experiment_claim *c = &e->claims[i];

		if (!r->outcomes[i].judged)
			continue;
		report_cells(t,
			(const char *const[]){experiment_verdict(r, i, verdict), c->what,
				*c->paper ? c->paper : "–", experiment_value(e, r, i, value),
				experiment_band(e, r, i, band)},
			t->columns);
	}
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

int experiment_text(const struct experiment *e, const struct experiment_result *r, FILE *to)
{
	struct report_table t = {.columns = 5};
	int code;

	fill_table(e, r, &t);
	put_head(to, e, r);
	code = report_table_text(&t, 2, to);
	put_reasons(to, e, r, "  ");
	return code;
}

int experiment_markdown(const struct experiment *e, const struct experiment_result *r,
	const char *pictures, FILE *to)
{
	struct report_table t = {.columns = 5};
	char stem[256];
	int code;

	fill_table(e, r, &t);
	fprintf(to, "## %s\n\n%s. *%s*\n\n", e->id, e->title, e->source);
	if (e->about)
		fprintf(to, "%s\n\n", e->about);
	code = report_table_markdown(&t, to);
	put_reasons(to, e, r, "\n");
	put_without(to, e);
	for (size_t i = 0; pictures && i < e->n_plots; i++)
		fprintf(to, "\n![%s](%s/%s.svg)\n", e->plots[i].title, pictures,
			experiment_stem(e, i, stem, sizeof(stem)));
	return code;
}
