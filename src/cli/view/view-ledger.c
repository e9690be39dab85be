/* SPDX-License-Identifier: BSD-3-Clause */
/* view-ledger: who has lent whom, as tables: in weir status and top, and all of it by weir status --ledger. */
#include "cli/view/view.h"
#include <weir/units.h>
#include "control/adaptbf/adaptbf.h"
#include <math.h>
#include <string.h>

#define PAID_MOST 20 /* of those paid back: more than a screen is for --json */

static double num(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

/* null: those who left. */
static const char *who(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "(left)";
}

static void ago(const json_t *j, const char *key, struct table *t)
{
	double s = num(j, key);
	char text[32];

	s = s < 10 ? round(s * 10) / 10 : round(s);
	table_cell(t, "%s",
		s > 0 ? weir_units_show_time((weir_time)(s * 1e9), text, sizeof(text)) : "now");
}

/* ---- jobs */

static void add_jobs(const json_t *jobs, const char *resource, struct table *t)
{
	static const char *const keys[] = {"tokens", "initial", "demand", "record", "lent",
		"borrowed", "repaid", "regained", "written_off", "forgiven", NULL};

	for (size_t i = 0; i < json_array_size(jobs); i++) {
		const json_t *j = json_array_get(jobs, i);

		if (resource)
			table_cell(t, "%s", resource);
		table_cell(t, "%s", who(j, "tenant"));
		for (const char *const *key = keys; *key; key++)
			table_cell(t, "%.0f", num(j, *key));
	}
}

static void add_resource(const json_t *resource, const json_t *adaptbf, struct table *t)
{
	add_jobs(json_object_get(adaptbf, "jobs"), who(resource, "name"), t);
}

void view_write_adaptbf(const json_t *now, FILE *to)
{
	static const char *const heads[] = {"ADAPTBF", "TENANT", "TOKENS", "BY WEIGHT", "DEMAND",
		"RECORD", "LENT", "BORROWED", "REPAID", "REGAINED", "WRITTEN OFF", "FORGIVEN",
		NULL};

	view_write_parts(now, "adaptbf", heads, 0xffc, add_resource, to);
}

/* ---- all of it */

static void write_loans(const json_t *loans, const char *const *heads, size_t most, FILE *to)
{
	size_t n = json_array_size(loans);
	struct table t;

	if (!n)
		return;
	fputc('\n', to);
	table_begin(&t, heads, 0x1c);
	for (size_t i = 0; i < n && i < most; i++) {
		const json_t *l = json_array_get(loans, i);

		table_cell(&t, "%s", who(l, "lender"));
		table_cell(&t, "%s", who(l, "borrower"));
		table_cell(&t, "%.0f", num(l, "amount"));
		table_cell(&t, "%.0f", num(l, "lent"));
		table_cell(&t, "%.0f", num(l, "written_off"));
		ago(l, "since_ago_s", &t);
		if (num(l, "amount") == 0 ||
			num(l, "amount") + num(l, "written_off") < num(l, "lent"))
			ago(l, "last_ago_s", &t);
		else
			table_cell(&t, "-"); /* nothing was paid back yet */
	}
	table_end(&t, to);
	if (n > most)
		fprintf(to, "and %zu before those\n", n - most);
}

static void write_head(const json_t *r, FILE *to)
{
	const char *unit = json_string_value(json_object_get(r, "unit"));
	bool bytes = unit && strcmp(unit, "bytes") == 0;
	char rate[32], period[32];

	weir_units_show_rate(
		(struct weir_rate){round(num(r, "rate") * (bytes ? ADAPTBF_TOKEN_BYTES : 1)),
			bytes ? WEIR_UNIT_BYTES : WEIR_UNIT_REQUESTS},
		rate, sizeof(rate));
	weir_units_show_time((weir_time)(num(r, "period_s") * 1e9), period, sizeof(period));
	fprintf(to, "%s: ", who(r, "resource"));
	if (!json_is_true(json_object_get(r, "on")))
		fprintf(to, "AdapTBF rests; ");
	else
		fprintf(to, "%s (%s), tokens %s%s, every %s; %.0f of %.0f jobs active; ", rate,
			json_is_true(json_object_get(r, "learns")) ? "learned" : "stated",
			bytes ? "of 4 KiB " : "", who(r, "tokens"), period, num(r, "active"),
			num(r, "known"));
	fprintf(to, "%.0f tokens written off by age, %.0f of tenants that left\n\n", num(r, "aged"),
		num(r, "written_off"));
}

static void write_one(const json_t *r, FILE *to)
{
	static const char *const jobs[] = {"TENANT", "TOKENS", "BY WEIGHT", "DEMAND", "RECORD",
		"LENT", "BORROWED", "REPAID", "REGAINED", "WRITTEN OFF", "FORGIVEN", NULL};
	static const char *const loans[] = {
		"LENDER", "BORROWER", "OPEN", "LENT", "WRITTEN OFF", "SINCE", "LAST PAID", NULL};
	static const char *const paid[] = {
		"LENDER", "BORROWER", "OPEN", "LENT", "WRITTEN OFF", "SINCE", "CLOSED", NULL};
	struct table t;

	write_head(r, to);
	table_begin(&t, jobs, 0x7fe);
	add_jobs(json_object_get(r, "jobs"), NULL, &t);
	table_end(&t, to);
	write_loans(json_object_get(r, "loans"), loans, SIZE_MAX, to);
	write_loans(json_object_get(r, "repaid"), paid, PAID_MOST, to);
}

void view_write_ledger(const json_t *ledger, FILE *to)
{
	const json_t *list = json_object_get(ledger, "resources");

	if (!json_array_size(list))
		fputs("no resource has been under AdapTBF\n", to);
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i)
			fputc('\n', to);
		write_one(json_array_get(list, i), to);
	}
	if (json_array_size(list) && !json_is_true(json_object_get(ledger, "kept")))
		fputs("\nnot kept across a restart: no state folder, or it cannot be written\n",
			to);
}
