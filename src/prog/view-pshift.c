/* SPDX-License-Identifier: BSD-3-Clause */
/* view-pshift: what servers of a cluster hold of their tenants' tokens, as tables of weir status. */
#include "prog/table.h"
#include "prog/view.h"
#include <string.h>

static const char *said(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "-";
}

/* null: there is no limit. */
static void tokens(const json_t *j, const char *key, struct table *t)
{
	const json_t *n = json_object_get(j, key);

	if (json_is_number(n))
		table_cell(t, "%.0f", json_number_value(n));
	else
		table_cell(t, "-");
}

static void add_leases(const json_t *resource, const json_t *pshift, struct table *t)
{
	const json_t *list = json_object_get(pshift, "leases");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *l = json_array_get(list, i);

		table_cell(t, "%s", said(resource, "name"));
		table_cell(t, "%s", said(pshift, "state"));
		table_cell(t, "%s", said(l, "tenant"));
		tokens(l, "used", t);
		tokens(l, "claim", t);
		tokens(l, "cap", t);
		tokens(l, "reserved", t);
		tokens(l, "limit", t);
	}
}

static void add_controllers(const json_t *now, struct table *t)
{
	const json_t *list = json_object_get(now, "controllers");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		bool up = json_is_true(json_object_get(c, "up"));

		table_cell(t, "%s", said(c, "address"));
		table_cell(t, "%s", said(c, "server"));
		table_cell(t, "%s", up ? "up" : "lost");
		table_cell(t, "%s", up ? "" : said(c, "why"));
	}
}

void view_write_pshift(const json_t *now, FILE *to)
{
	static const char *const heads[] = {"PSHIFT", "STATE", "TENANT", "USED", "FIRST TO",
		"AT MOST", "MIN HERE", "MAX HERE", NULL};
	static const char *const links[] = {"CONTROLLER", "SERVER", "STATE", "", NULL};
	const json_t *list = json_object_get(now, "resources");
	struct table t;
	bool any = false;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *r = json_array_get(list, i), *pshift = json_object_get(r, "pshift");

		if (!json_is_object(pshift))
			continue;
		if (!any)
			table_begin(&t, heads, 0xf8);
		any = true;
		add_leases(r, pshift, &t);
	}
	if (!any)
		return;
	fputc('\n', to);
	table_end(&t, to);
	fputc('\n', to);
	table_begin(&t, links, 0);
	add_controllers(now, &t);
	table_end(&t, to);
}
