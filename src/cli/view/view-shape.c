/* SPDX-License-Identifier: BSD-3-Clause */
/* view-shape: the services of a machine's links, as its shaper (weir shape) knows them, as a table of weir status. */
#include "cli/view/view.h"
#include <weir/units.h>

bool view_is_shape(const json_t *now)
{
	return json_is_array(json_object_get(now, "services"));
}

static void cell_rate(const json_t *j, const char *key, struct table *t)
{
	const json_t *n = json_object_get(j, key);

	if (json_is_number(n) && json_number_value(n) > 0)
		table_cell(t, "%.1f", json_number_value(n) * 8e-6);
	else
		table_cell(t, "-");
}

/* Values of `weir set`, and how long they last. */
static void write_set(const json_t *list, FILE *to)
{
	char left[32];

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i), *s = json_object_get(o, "left_s");

		fprintf(to, "%sset: ", i ? "" : "\n");
		table_put_text(view_text(o, "key"), to);
		fputc(' ', to);
		table_put_text(view_text(o, "value"), to);
		if (s)
			fprintf(to, ", for another %s",
				weir_units_show_time(
					json_integer_value(s) * WEIR_SEC, left, sizeof(left)));
		fputc('\n', to);
	}
}

void view_write_shape(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"SERVICE", "DIR", "MIN", "MAX", "NOW", "WANTS", "BOUND BY", NULL};
	const json_t *list = json_object_get(now, "services"),
		     *devices = json_object_get(now, "devices");
	struct table t;

	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i);

		fprintf(to, "%s", i ? ", " : "Mbit/s; ");
		table_put_text(view_text(d, "device"), to);
		fprintf(to, " has %.4g", view_count(d, "rate") * 8e-6);
	}
	fprintf(to, "\n\n");
	table_begin(&t, heads, 0x1c);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i);
		const char *name = view_text(s, "service"), *bound = view_text(s, "bound");

		table_cell(&t, "%s", name[0] ? name : "(no service)");
		table_cell(&t, "%s", view_text(s, "dir"));
		cell_rate(s, "min", &t);
		cell_rate(s, "max", &t);
		table_cell(&t, "%.1f", view_count(s, "rate") * 8e-6);
		table_cell(&t, "%s", json_is_true(json_object_get(s, "wants_more")) ? "more" : "");
		table_cell(&t, "%s", bound[0] ? bound : "nothing");
	}
	table_end(&t, to);
	write_set(json_object_get(now, "overrides"), to);
}
