/* SPDX-License-Identifier: BSD-3-Clause */
/* view-parda: what hosts that share an array know of each other, as a table of weir status and top. */
#include "cli/view/view.h"
#include <weir/units.h>
#include <math.h>
#include <string.h>

static void seconds(const json_t *j, const char *key, struct table *t)
{
	double ms = json_number_value(json_object_get(j, key)) * 1e3;
	char text[32];

	if (ms > 0) /* to three digits or so */
		table_cell(t, "%s",
			weir_units_show_time((weir_time)(round(ms * (ms < 10 ? 100 : 10)) *
							 (ms < 10 ? 1e4 : 1e5)),
				text, sizeof(text)));
	else
		table_cell(t, "-");
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static const char *note(const json_t *j, char text[160])
{
	if (json_is_true(json_object_get(j, "same_name")))
		return "two hosts have one name";
	if (number(j, "unreachable_s") > 0)
		return "latency is over the threshold at any window";
	if (number(j, "stranger") > 0) {
		snprintf(text, 160, "a stranger has about %.2g requests inside%s",
			number(j, "stranger"),
			json_is_true(json_object_get(j, "wmax_below_floor"))
				? "; wmax is less than half of the fair part"
				: "");
		return text;
	}
	if (number(j, "wmax_needed") > 0) {
		snprintf(text, 160, "wmax is below the share, which is about %.2g",
			number(j, "wmax_needed"));
		return text;
	}
	return json_is_true(json_object_get(j, "alone")) ? "alone: no other host is heard" : "";
}

static void add(const json_t *resource, const json_t *parda, struct table *t)
{
	char text[160];

	table_cell(t, "%s", json_string_value(json_object_get(resource, "name")));
	table_cell(t, "%.0f", json_number_value(json_object_get(parda, "peers")));
	table_cell(t, "%.3g", json_number_value(json_object_get(parda, "shares")));
	table_cell(t, "%.3g", json_number_value(json_object_get(resource, "window")));
	seconds(parda, "latency_s", t);
	seconds(parda, "threshold_s", t);
	seconds(parda, "held_s", t);
	table_cell(t, "%s", note(parda, text));
}

void view_write_parda(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"PARDA", "PEERS", "SHARES", "WINDOW", "LATENCY", "AIMS AT", "HELD", "", NULL};

	view_write_parts(now, "parda", heads, 0x7e, add, to);
}
