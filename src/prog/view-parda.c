/* SPDX-License-Identifier: BSD-3-Clause */
/* view-parda: what hosts that share an array know of each other, as a table of weir status and top. */
#include "prog/view.h"
#include "base/units.h"
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

static const char *note(const json_t *j)
{
	if (json_is_true(json_object_get(j, "same_name")))
		return "two hosts have one name";
	return json_is_true(json_object_get(j, "alone")) ? "alone: no other host is heard" : "";
}

static void add(const json_t *resource, const json_t *parda, struct table *t)
{
	table_cell(t, "%s", json_string_value(json_object_get(resource, "name")));
	table_cell(t, "%.0f", json_number_value(json_object_get(parda, "peers")));
	table_cell(t, "%.3g", json_number_value(json_object_get(parda, "shares")));
	table_cell(t, "%.3g", json_number_value(json_object_get(resource, "window")));
	seconds(parda, "latency_s", t);
	seconds(parda, "threshold_s", t);
	seconds(parda, "held_s", t);
	table_cell(t, "%s", note(parda));
}

void view_write_parda(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"PARDA", "PEERS", "SHARES", "WINDOW", "LATENCY", "AIMS AT", "HELD", "", NULL};

	view_write_parts(now, "parda", heads, 0x7e, add, to);
}
