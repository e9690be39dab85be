/* SPDX-License-Identifier: BSD-3-Clause */
/* view-control: the servers and tenants of a cluster, as its controller (weir control) knows them,
 * as tables of weir status. */
#include "cli/view/view.h"

/* Add a cell with a number of tokens; null: no limit. */
static void cell_tokens(const json_t *j, const char *key, struct table *t)
{
	const json_t *n = json_object_get(j, key);

	if (json_is_number(n))
		table_cell(t, "%.0f", json_number_value(n));
	else
		table_cell(t, "-");
}

static void add_server(const json_t *s, struct table *t)
{
	const json_t *heard = json_object_get(s, "heard_s");

	table_cell(t, "%s", view_text(s, "name"));
	table_cell(t, "%s", json_is_true(json_object_get(s, "connected")) ? "up" : "away");
	table_cell(t, "%s", view_text(s, "state"));
	if (json_is_number(heard))
		table_cell(t, "%.1fs ago", json_number_value(heard));
	else
		table_cell(t, "never");
	cell_tokens(s, "capacity", t);
	cell_tokens(s, "reports", t);
	cell_tokens(s, "grants", t);
	table_cell(t, "%s", view_text(s, "address"));
}

static void write_servers(const json_t *now, FILE *to)
{
	static const char *const heads[] = {
		"SERVER", "", "STATE", "HEARD", "CAPACITY", "REPORTS", "GRANTS", "FROM", NULL};
	const json_t *list = json_object_get(now, "servers");
	struct table t;

	table_begin(&t, heads, 0x78);
	for (size_t i = 0; i < json_array_size(list); i++)
		add_server(json_array_get(list, i), &t);
	table_end(&t, to);
}

static void write_buckets(const json_t *now, FILE *to)
{
	static const char *const heads[] = {"TENANT", "MIN", "MAX", NULL};
	const json_t *list = json_object_get(now, "buckets");
	struct table t;

	table_begin(&t, heads, 6);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *b = json_array_get(list, i);

		table_cell(&t, "%s", view_text(b, "tenant"));
		cell_tokens(b, "reservation", &t);
		cell_tokens(b, "limit", &t);
	}
	table_end(&t, to);
}

static void write_reservations(const json_t *r, FILE *to)
{
	static const char *const heads[] = {"NOT MET, BECAUSE", NULL};
	const json_t *why = json_object_get(r, "why");
	struct table t;

	fprintf(to, "Reserved and wanted: %.0f tokens a period; placed: %.0f\n",
		view_count(r, "asked"), view_count(r, "placed"));
	if (json_array_size(why) == 0)
		return;
	fputc('\n', to);
	table_begin(&t, heads, 0);
	for (size_t i = 0; i < json_array_size(why); i++)
		table_cell(&t, "%s", json_string_value(json_array_get(why, i)));
	table_end(&t, to);
}

static void write_racks(const json_t *fabric, FILE *to)
{
	static const char *const heads[] = {"RACK", "LEADER", "HEARD", "REPORTS", NULL};
	const json_t *racks = json_object_get(fabric, "racks");
	struct table t;

	fprintf(to, "Fabric's broker on %s, a round every %g s\n\n", view_text(fabric, "address"),
		view_count(fabric, "period_s"));
	table_begin(&t, heads, 2);
	for (size_t i = 0; i < json_array_size(racks); i++) {
		const json_t *k = json_array_get(racks, i);

		table_cell(&t, "%s", view_text(k, "rack"));
		table_cell(&t, "%s", view_text(k, "leader"));
		table_cell(&t, "%.0f s ago%s", view_count(k, "heard_s"),
			json_is_true(json_object_get(k, "silent")) ? ", silent" : "");
		table_cell(&t, "%.0f", view_count(k, "reports"));
	}
	table_end(&t, to);
}

static void write_shared(const json_t *fabric, FILE *to)
{
	static const char *const heads[] = {"SERVICE", "DIR", "MIN", "MAX", "USED", "GIVEN", NULL};
	const json_t *services = json_object_get(fabric, "services");
	struct table t;

	fputs("\nMbit/s in all racks\n", to);
	table_begin(&t, heads, 2);
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i);

		table_cell(&t, "%s", view_text(s, "service"));
		table_cell(&t, "%s", view_text(s, "dir"));
		table_cell(&t, "%.1f", view_count(s, "min") * 8e-6);
		if (json_is_null(json_object_get(s, "max")))
			table_cell(&t, "-");
		else
			table_cell(&t, "%.1f", view_count(s, "max") * 8e-6);
		table_cell(&t, "%.1f", view_count(s, "used") * 8e-6);
		table_cell(&t, "%.1f", view_count(s, "given") * 8e-6);
	}
	table_end(&t, to);
}

static void write_fabric(const json_t *fabric, FILE *to)
{
	write_racks(fabric, to);
	write_shared(fabric, to);
}

bool view_is_control(const json_t *now)
{
	return json_is_string(json_object_get(now, "controller")) &&
	       (json_is_array(json_object_get(now, "servers")) ||
		       json_is_object(json_object_get(now, "fabric")));
}

void view_write_control(const json_t *now, FILE *to)
{
	const json_t *fabric = json_object_get(now, "fabric");

	if (!json_is_array(json_object_get(now, "servers"))) {
		fprintf(to, "weir %s, up %.0f s; controller %s\n\n", view_text(now, "weir"),
			view_count(now, "uptime_s"), view_text(now, "controller"));
		write_fabric(fabric, to);
		return;
	}
	fprintf(to,
		"weir %s, up %.0f s; controller %s: %s, generation %.0f; period %.0f of %g s, "
		"a round every %g s\n\n",
		view_text(now, "weir"), view_count(now, "uptime_s"), view_text(now, "controller"),
		view_text(now, "state"), view_count(now, "generation"), view_count(now, "period"),
		view_count(now, "period_s"), view_count(now, "interval_s"));
	write_servers(now, to);
	fputc('\n', to);
	write_buckets(now, to);
	fputc('\n', to);
	write_reservations(json_object_get(now, "reservations"), to);
	if (json_is_true(json_object_get(now, "overdrawn")))
		fputs("Servers have larger parts of some max than the controller's policy gives: "
		      "policies differ\n",
			to);
	if (fabric) {
		fputc('\n', to);
		write_fabric(fabric, to);
	}
}
