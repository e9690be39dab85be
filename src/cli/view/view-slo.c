/* SPDX-License-Identifier: BSD-3-Clause */
/* view-slo: a line for each tenant with an slo: the slo, and the measured values; then the plan, and tenants that exceed it. */
#include "cli/view/view.h"
#include <math.h>

static void write_window(const json_t *w, struct table *t)
{
	const json_t *met = json_object_get(w, "met");
	char a[VIEW_SHORT];

	table_cell(t, "%s", view_seconds(view_number(w, "value_s"), a));
	table_cell(t, "%s", json_is_true(met) ? "met" : json_is_false(met) ? "MISSED" : "-");
}

/*
 * Write the part of good requests with as many decimals as the percentile needs: 99.95 % of p99.9
 * is not 100 %.
 */
static void write_good(const json_t *slo, struct table *t)
{
	double good = view_number(slo, "good"), total = view_number(slo, "total"),
	       p = view_number(slo, "percentile");
	int decimals = p < 100 ? (int)ceil(-log10(1 - p / 100) - 1e-6) : 2;

	if (!(total > 0))
		table_cell(t, "-");
	else /* truncated, not rounded: 100 % is shown only for all */
		table_cell(t, "%.*f%%", decimals,
			floor(100 * good / total * pow(10, decimals) + 1e-6) / pow(10, decimals));
}

/* Write the part of the requests that were within the profile, over all resources. */
static void write_in_profile(const json_t *claims, struct table *t)
{
	double in = 0, out = 0;

	for (size_t i = 0; i < json_array_size(claims); i++) {
		in += view_number(json_array_get(claims, i), "in");
		out += view_number(json_array_get(claims, i), "out");
	}
	if (in + out > 0)
		table_cell(t, "%.4g%%", floor(1e4 * in / (in + out)) / 100);
	else
		table_cell(t, "-");
}

static void write_slo(
	const char *path, const json_t *slo, const json_t *claims, bool plan, struct table *t)
{
	char a[VIEW_SHORT];

	table_cell(t, "%s", path ? path : "?");
	table_cell(t, "p%.12g < %s", view_number(slo, "percentile"),
		view_seconds(view_number(slo, "latency_s"), a));
	write_window(json_object_get(slo, "minute"), t);
	write_window(json_object_get(slo, "hour"), t);
	write_good(slo, t);
	if (plan)
		write_in_profile(claims, t);
}

/* ---- the plan */

static void write_out(const char *path, const json_t *claim, FILE *to)
{
	const json_t *out = json_object_get(claim, "now_out");
	const json_t *over = json_object_get(out, "over_s");
	const char *resource = json_string_value(json_object_get(claim, "resource"));
	char a[VIEW_SHORT], b[VIEW_SHORT];

	if (!json_is_object(out))
		return;
	fprintf(to, "%s sends %.3gx its profile %s%s: held to best effort (%s, for %s)\n", path,
		view_number(out, "times"), json_is_number(over) ? "over " : "at ",
		json_is_number(over) ? view_seconds(json_number_value(over), a) : "once",
		resource ? resource : "?", view_seconds(view_number(out, "for_s"), b));
}

static void write_plan(const json_t *now, const json_t *plan, FILE *to)
{
	const json_t *list = json_object_get(now, "tenants");
	const json_t *untrue = json_object_get(plan, "untrue");
	char a[VIEW_SHORT];

	fprintf(to, "\nplan %.0f, of %.0f tenants, in force for %s\n", view_number(plan, "number"),
		view_number(plan, "tenants"), view_seconds(view_number(plan, "age_s"), a));
	for (size_t i = 0; i < json_array_size(untrue); i++)
		fprintf(to, "%s\n", json_string_value(json_array_get(untrue, i)));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *tenant = json_array_get(list, i), *one;
		const char *path = json_string_value(json_object_get(tenant, "path"));
		size_t k;

		json_array_foreach(json_object_get(tenant, "plan"), k, one)
			write_out(path ? path : "?", one, to);
	}
}

void view_write_slo(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"SLO", "WANTED", "LAST MINUTE", "", "LAST HOUR", "", "GOOD", NULL};
	static const char *const planned[] = {
		"SLO", "WANTED", "LAST MINUTE", "", "LAST HOUR", "", "GOOD", "IN PROFILE", NULL};
	const json_t *plan = json_object_get(now, "plan");
	bool has_plan = json_is_object(plan);
	const json_t *list = json_object_get(now, "tenants");
	struct table t;
	bool any = false;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *tenant = json_array_get(list, i);
		const json_t *slo = json_object_get(tenant, "slo");

		if (!json_is_object(slo))
			continue;
		if (!any) {
			fputc('\n', to);
			table_begin(&t, has_plan ? planned : heads, 0xd4);
		}
		any = true;
		write_slo(json_string_value(json_object_get(tenant, "path")), slo,
			json_object_get(tenant, "plan"), has_plan, &t);
	}
	if (any)
		table_end(&t, to);
	if (has_plan)
		write_plan(now, plan, to);
}
