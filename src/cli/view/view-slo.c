/* SPDX-License-Identifier: BSD-3-Clause */
/* view-slo: a line for each tenant with an slo: the slo, and the measured values. */
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

static void write_slo(const char *path, const json_t *slo, struct table *t)
{
	char a[VIEW_SHORT];

	table_cell(t, "%s", path ? path : "?");
	table_cell(t, "p%.12g < %s", view_number(slo, "percentile"),
		view_seconds(view_number(slo, "latency_s"), a));
	write_window(json_object_get(slo, "minute"), t);
	write_window(json_object_get(slo, "hour"), t);
	write_good(slo, t);
}

void view_write_slo(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"SLO", "WANTED", "LAST MINUTE", "", "LAST HOUR", "", "GOOD", NULL};
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
			table_begin(&t, heads, 0x54);
		}
		any = true;
		write_slo(json_string_value(json_object_get(tenant, "path")), slo, &t);
	}
	if (any)
		table_end(&t, to);
}
