/* SPDX-License-Identifier: BSD-3-Clause */
/* view-facts: the facts of controllers as tables of weir status and top, and their state by weir
 * status --ledger. */
#include "cli/view/view.h"
#include "control/facts.h"
#include "serve/show/facts-json.h"
#include <weir/units.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define COLUMNS 32 /* as many as a table can align */

/* ---- columns */

struct columns {
	const char *heads[COLUMNS + 1]; /* NULL-terminated */
	unsigned right;
	size_t n;
};

static void add_column(struct columns *c, const char *title, bool right)
{
	if (!title || c->n == COLUMNS)
		return;
	c->right |= (unsigned)right << c->n;
	c->heads[c->n++] = title;
}

static void add_columns(struct columns *c, const struct facts_table *t)
{
	for (size_t i = 0; i < 2 && t->keys[i].name; i++)
		add_column(c, t->keys[i].title, false);
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++)
		add_column(c, f->title, f->type != FACTS_TEXT && f->unit != FACTS_AGO);
	if (t->note)
		add_column(c, "", false);
}

/* ---- cells */

/* Show about three digits. */
static void time_cell(double s, struct table *t)
{
	double ms = s * 1e3;
	char text[32];

	if (ms > 0)
		table_cell(t, "%s",
			weir_units_show_time((weir_time)(round(ms * (ms < 10 ? 100 : 10)) *
							 (ms < 10 ? 1e4 : 1e5)),
				text, sizeof(text)));
	else
		table_cell(t, "-");
}

static void ago_cell(double s, struct table *t)
{
	char text[32];

	s = s < 10 ? round(s * 10) / 10 : round(s);
	table_cell(t, "%s",
		s > 0 ? weir_units_show_time((weir_time)(s * 1e9), text, sizeof(text)) : "now");
}

static void add_cell(const struct fact *f, const void *row, struct table *t)
{
	double value = facts_value(f, row);

	if (!facts_known(f, row))
		table_cell(t, "-");
	else if (f->type == FACTS_TEXT)
		table_cell(t, "%s", facts_text(f, row));
	else if (f->type == FACTS_BOOL)
		table_cell(t, "%s", value != 0 ? "yes" : "no");
	else if (f->unit == FACTS_SECONDS)
		time_cell(value, t);
	else if (f->unit == FACTS_AGO)
		ago_cell(value, t);
	else
		table_cell(t, f->type == FACTS_REAL ? "%.3g" : "%.0f", value);
}

static void add_cells(const struct facts_table *of, const void *row, struct table *t)
{
	const struct facts_row *keys = row;
	char text[FACTS_NOTE];

	for (size_t i = 0; i < 2 && of->keys[i].name; i++)
		table_cell(t, "%s", keys->key[i] ? keys->key[i] : "(left)");
	for (const struct fact *f = of->facts; f < of->facts + of->n_facts; f++)
		if (f->title)
			add_cell(f, row, t);
	if (of->note)
		table_cell(t, "%s", of->note(row, text));
}

/* ---- tables */

/* The lines of a list of rows; before each of them stand the resource and the controller's own
 * values, if given. */
static void add_rows(const json_t *list, const struct facts_table *of, size_t most,
	const char *resource, const struct facts_table *outer, const void *self, struct table *t)
{
	void *row = malloc(of->size);

	for (size_t i = 0; row && i < json_array_size(list) && i < most; i++) {
		facts_json_show(json_array_get(list, i), NULL, of, row);
		if (resource)
			table_cell(t, "%s", resource);
		if (outer)
			add_cells(outer, self, t);
		add_cells(of, row, t);
	}
	free(row);
}

/* A list as a table of its own. */
static void write_list(const json_t *list, const struct facts_table *of, FILE *to)
{
	size_t n = json_array_size(list), most = of->shown ? of->shown : SIZE_MAX;
	struct columns c = {0};
	struct table t;

	add_columns(&c, of);
	table_begin(&t, c.heads, c.right);
	add_rows(list, of, most, NULL, NULL, NULL, &t);
	table_end(&t, to);
	if (n > most)
		fprintf(to, "and %zu earlier ones\n", n - most);
}

static void add_resource(
	const json_t *resource, const json_t *part, const struct facts_kind *kind, struct table *t)
{
	const struct facts_table *rows = &kind->tables[0];
	void *self = malloc(kind->self.size);

	if (!self)
		return;
	facts_json_show(part, resource, &kind->self, self);
	if (rows->size) {
		add_rows(json_object_get(part, rows->name), rows, SIZE_MAX,
			view_text(resource, "name"), &kind->self, self, t);
	} else {
		table_cell(t, "%s", view_text(resource, "name"));
		add_cells(&kind->self, self, t);
	}
	free(self);
}

/* The resources that have this controller: a line for each, or for each of its rows. */
static void write_kind(const json_t *now, const struct facts_kind *kind, FILE *to)
{
	const json_t *list = json_object_get(now, "resources");
	char title[32] = "";
	struct columns c = {0};
	struct table t;
	bool any = false;

	for (size_t i = 0; kind->label[i] && i < sizeof(title) - 1; i++)
		title[i] = (char)toupper((unsigned char)kind->label[i]);
	add_column(&c, title, false);
	add_columns(&c, &kind->self);
	if (kind->tables[0].size)
		add_columns(&c, &kind->tables[0]);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *r = json_array_get(list, i), *part = json_object_get(r, kind->name);

		if (!json_is_object(part))
			continue;
		if (!any) {
			fputc('\n', to);
			table_begin(&t, c.heads, c.right);
		}
		any = true;
		add_resource(r, part, kind, &t);
	}
	if (!any)
		return;
	table_end(&t, to);
	if (!kind->whole.size)
		return;
	fputc('\n', to);
	write_list(json_object_get(now, kind->whole.name), &kind->whole, to);
}

void view_write_facts(const json_t *now, FILE *to)
{
	for (size_t k = 0; facts_kind(k); k++)
		write_kind(now, facts_kind(k), to);
}

/* ---- state */

static void write_state(const json_t *r, const struct facts_kind *kind, FILE *to)
{
	void *self = malloc(kind->self.size);
	char text[256];

	if (!self)
		return;
	facts_json_show(r, NULL, &kind->self, self);
	kind->head(self, text, sizeof(text));
	fprintf(to, "%s: %s\n", view_text(r, "resource"), text);
	free(self);
	for (size_t i = 0; i < FACTS_TABLES && kind->tables[i].size; i++) {
		const json_t *list = json_object_get(r, kind->tables[i].name);

		if (i && !json_array_size(list))
			continue;
		fputc('\n', to);
		write_list(list, &kind->tables[i], to);
	}
}

void view_write_ledger(const json_t *ledger, FILE *to)
{
	const struct facts_kind *kind = facts_stateful();
	const json_t *list = json_object_get(ledger, "resources");

	if (!json_array_size(list))
		fprintf(to, "no resource has been under %s\n", kind->label);
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i)
			fputc('\n', to);
		write_state(json_array_get(list, i), kind, to);
	}
	if (json_array_size(list) && !json_is_true(json_object_get(ledger, "kept")))
		fputs("\nnot kept across a restart: no state folder, or it cannot be written\n",
			to);
}
