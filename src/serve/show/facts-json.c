/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/show/facts-json.h"
#include "serve/show/value.h"
#include <errno.h>
#include <string.h>

/* ---- out */

static bool is_shown(enum facts_place of, enum facts_place place)
{
	return of == FACTS_EVERYWHERE || of == place;
}

static json_t *value(const struct fact *f, const void *row)
{
	if (f->type == FACTS_BOOL)
		return json_boolean(facts_value(f, row) != 0);
	if (!facts_known(f, row))
		return json_null();
	if (f->type == FACTS_TEXT)
		return show_text(facts_text(f, row));
	if (facts_is_whole(f))
		return json_integer(facts_whole(f, row));
	return json_real(facts_value(f, row));
}

json_t *facts_json_row(const struct facts_table *t, const void *row, enum facts_place place)
{
	const struct facts_row *keys = row;
	json_t *j = json_object();

	for (size_t i = 0; i < 2 && t->keys[i].name; i++)
		json_object_set_new(j, t->keys[i].name, show_text(keys->key[i]));
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++)
		if (f->name && is_shown(f->place, place))
			json_object_set_new(j, f->name, value(f, row));
	return j;
}

json_t *facts_json(const struct facts *f, enum facts_place place)
{
	json_t *j = facts_json_row(&f->kind->self, f->self, place);

	for (size_t i = 0; i < FACTS_TABLES && f->kind->tables[i].size; i++) {
		const struct facts_table *t = &f->kind->tables[i];
		json_t *list;

		if (!is_shown(t->place, place))
			continue;
		list = json_array();
		for (size_t k = 0; k < f->tables[i].n; k++)
			json_array_append_new(
				list, facts_json_row(t, facts_row(t, &f->tables[i], k), place));
		json_object_set_new(j, t->name, list);
	}
	return j;
}

/* ---- in */

/* Return false if the value has another type, or does not fit. memory NULL: borrow the text. */
static bool read_value(const json_t *j, const struct fact *f, struct arena *memory, void *row)
{
	const char *text;

	if (json_is_null(j) && f->none == FACTS_NO_LIMIT)
		return facts_set_whole(f, row, INT64_MAX);
	switch (f->type) {
	case FACTS_TEXT:
		text = json_string_value(j);
		if (text && memory)
			text = arena_text(memory, text);
		facts_set_text(f, row, text);
		return text != NULL;
	case FACTS_BOOL:
		return json_is_boolean(j) && facts_set_whole(f, row, json_is_true(j));
	default:
		if (facts_is_whole(f))
			return json_is_integer(j) && facts_set_whole(f, row, json_integer_value(j));
		return json_is_number(j) && facts_set_real(f, row, json_number_value(j));
	}
}

static void finish(const struct facts_table *t, void *row)
{
	if (t->finish)
		t->finish(row);
}

void facts_json_show(
	const json_t *j, const json_t *resource, const struct facts_table *t, void *ret_row)
{
	struct facts_row *keys = ret_row;

	memset(ret_row, 0, t->size);
	for (size_t i = 0; i < 2 && t->keys[i].name; i++)
		keys->key[i] = json_string_value(json_object_get(j, t->keys[i].name));
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++)
		if (f->name)
			read_value(json_object_get(
					   f->place == FACTS_OF_RESOURCE ? resource : j, f->name),
				f, NULL, ret_row);
	finish(t, ret_row);
}

void facts_json_show_all(const json_t *j, const json_t *resource, const struct facts_kind *kind,
	struct arena *memory, struct facts *ret)
{
	*ret = (struct facts){.kind = kind, .self = arena_take(memory, 1, kind->self.size)};
	if (ret->self)
		facts_json_show(j, resource, &kind->self, ret->self);
	for (size_t i = 0; i < FACTS_TABLES && kind->tables[i].size; i++) {
		const struct facts_table *t = &kind->tables[i];
		const json_t *list = json_object_get(j, t->name);
		struct facts_rows *to = &ret->tables[i];

		to->rows = arena_take(memory, json_array_size(list) + 1, t->size);
		for (; to->rows && to->n < json_array_size(list); to->n++)
			facts_json_show(
				json_array_get(list, to->n), resource, t, facts_row(t, to, to->n));
	}
}

/* null: a job that left. */
static bool read_keys(
	const json_t *j, const struct facts_table *t, struct arena *memory, struct facts_row *to)
{
	for (size_t i = 0; i < 2 && t->keys[i].name; i++) {
		const json_t *key = json_object_get(j, t->keys[i].name);
		const char *text = json_string_value(key);

		if (!text && !json_is_null(key))
			return false;
		to->key[i] = text ? arena_text(memory, text) : NULL;
		if (text && !to->key[i])
			return false;
	}
	return true;
}

static bool read_row(const json_t *j, const struct facts_table *t, struct arena *memory, void *row)
{
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++) {
		const json_t *v = f->name ? json_object_get(j, f->name) : NULL;

		if (!f->name || !is_shown(f->place, FACTS_IN_STATE))
			continue;
		if (f->later && (!v || json_is_null(v)))
			continue;
		if (!read_value(v, f, memory, row))
			return false;
	}
	finish(t, row);
	return read_keys(j, t, memory, row);
}

static bool read_table(const json_t *list, const struct facts_table *t, struct arena *memory,
	struct facts_rows *ret)
{
	size_t n = json_array_size(list);

	ret->rows = arena_take(memory, n + 1, t->size);
	if (!json_is_array(list) || !ret->rows)
		return false;
	for (; ret->n < n; ret->n++)
		if (!read_row(json_array_get(list, ret->n), t, memory, facts_row(t, ret, ret->n)))
			return false;
	return true;
}

int facts_json_read(
	const json_t *j, const struct facts_kind *kind, struct arena *memory, struct facts *ret)
{
	struct facts f = {.kind = kind, .self = arena_take(memory, 1, kind->self.size)};
	bool ok = f.self && read_row(j, &kind->self, memory, f.self);

	for (size_t i = 0; ok && i < FACTS_TABLES && kind->tables[i].size; i++)
		ok = read_table(json_object_get(j, kind->tables[i].name), &kind->tables[i], memory,
			&f.tables[i]);
	if (memory->failed)
		return -ENOMEM;
	if (!ok)
		return -EINVAL;
	*ret = f;
	return 0;
}
