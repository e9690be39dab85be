/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-entries: read the texts and lists of an experiment's file, and expand `for` and $x. */
#include "sim/experiment/experiment-impl.h"
#include "base/no-memory.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void *experiment_keep(struct experiment_reader *r, size_t n, size_t size)
{
	void *memory = r->code ? NULL : arena_take(&r->e->memory, n, size);

	if (!memory && !r->code)
		r->code = no_memory(r->err);
	return memory;
}

void experiment_free(struct experiment *e)
{
	if (!e)
		return;
	arena_free(&e->memory);
	free(e);
}

/* ---- texts */

/* Return the value of the "$…" at `at` and its length in *ret_len; NULL if it has none. */
static const char *parameter_value(
	const struct experiment_reader *r, const char *at, size_t *ret_len)
{
	const struct experiment *e = r->e;

	if (at[0] != '$')
		return NULL;
	for (size_t i = 0; i < e->n_parameters; i++) {
		size_t len = strlen(e->parameters[i].name);

		if (strncmp(at + 1, e->parameters[i].name, len) == 0 &&
			!isalnum((unsigned char)at[1 + len])) {
			*ret_len = 1 + len;
			return e->parameters[i].value;
		}
	}
	*ret_len = 2;
	return at[1] == 'x' ? r->x : NULL;
}

const char *experiment_expand(struct experiment_reader *r, const char *text)
{
	size_t n = 1, len;
	const char *value;
	char *copy, *to;

	if (!text)
		return NULL;
	for (const char *c = text; *c; c++) {
		value = parameter_value(r, c, &len);
		n += 1 + (value ? strlen(value) : 0);
	}
	copy = to = experiment_keep(r, n, 1);
	for (const char *c = text; copy && *c;) {
		value = parameter_value(r, c, &len);
		if (value) {
			to = stpcpy(to, value);
			c += len;
		} else {
			*to++ = *c++;
		}
	}
	return copy;
}

/* Check that a name can be written in an expression and be part of a file's name. */
static void check_name(struct experiment_reader *r, yamldoc_node map, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !(i && strchr("_-", name[i])))
			experiment_refuse(
				r, map, "name '%s': letters, digits, '_' and '-' only", name);
	if (!n || n > 100)
		experiment_refuse(r, map, "the name must have 1 to 100 characters");
}

const char *experiment_text_of(
	struct experiment_reader *r, yamldoc_node map, const char *key, enum experiment_type type)
{
	const char *text = NULL;
	struct weir_err why = {""};

	if (!r->code)
		r->code = yamldoc_optional(yamldoc_string(map, key, &text, r->err));
	if (!text && type != EXPERIMENT_TEXT)
		experiment_refuse(r, map, "'%s' is missing", key);
	text = experiment_expand(r, text);
	if (text && type == EXPERIMENT_NAME)
		check_name(r, map, text);
	if (text && type == EXPERIMENT_EXPR && expr_check(text, &why) < 0)
		experiment_refuse(r, yamldoc_get(map, key), "%s: %s", key, why.text);
	return text;
}

struct weir_place experiment_place(const struct experiment_reader *r, yamldoc_node n)
{
	struct weir_place at = yamldoc_place(n);

	at.file = r->file;
	return at;
}

void experiment_fields(struct experiment_reader *r, yamldoc_node map,
	const struct experiment_field *fields, void *entry)
{
	const char *keys[16];
	size_t n = 0;

	for (const struct experiment_field *f = fields; f->key; f++)
		keys[n++] = f->key;
	keys[n] = NULL;
	if (!r->code)
		r->code = yamldoc_map(map, keys, r->err);
	for (const struct experiment_field *f = fields; f->key && !r->code; f++) {
		void *at = (char *)entry + f->offset;

		if (f->type == EXPERIMENT_FLAG)
			r->code = yamldoc_optional(yamldoc_bool(map, f->key, at, r->err));
		else if (f->type != EXPERIMENT_PART)
			*(const char **)at = experiment_text_of(r, map, f->key, f->type);
	}
}

/* ---- lists */

/* Return the number of entries that an entry's `for` makes of it: 1 without. */
static size_t count_copies(struct experiment_reader *r, yamldoc_node entry)
{
	yamldoc_node list = yamldoc_get(entry, "for");

	if (!list.id || (!r->code && (r->code = yamldoc_list(list, r->err))))
		return 1;
	if (!yamldoc_size(list))
		experiment_refuse(r, list, "'for' is empty");
	for (size_t i = 0; i < yamldoc_size(list); i++)
		if (!yamldoc_text(yamldoc_at(list, i)))
			experiment_refuse(r, list, "'for' must list plain values");
	return yamldoc_size(list);
}

void *experiment_entries(struct experiment_reader *r, yamldoc_node root, const char *key,
	size_t size, experiment_read_entry *read, size_t *ret_n)
{
	yamldoc_node list = yamldoc_get(root, key);
	size_t n = 0;
	char *all;

	if (!list.id || r->code || (r->code = yamldoc_list(list, r->err)))
		return NULL;
	for (size_t i = 0; i < yamldoc_size(list); i++)
		n += count_copies(r, yamldoc_at(list, i));
	all = experiment_keep(r, n + 1, size);
	for (size_t i = 0, to = 0; i < yamldoc_size(list); i++) {
		yamldoc_node map = yamldoc_at(list, i), values = yamldoc_get(map, "for");

		for (size_t k = 0; !r->code && k < count_copies(r, map); k++) {
			r->x = values.id ? yamldoc_text(yamldoc_at(values, k)) : NULL;
			read(r, map, all + to++ * size);
		}
	}
	r->x = NULL;
	*ret_n = r->code ? 0 : n;
	return all;
}

struct scenario_set *experiment_sets(
	struct experiment_reader *r, yamldoc_node map, size_t more, size_t *ret_n)
{
	yamldoc_node set = yamldoc_get(map, "set");
	size_t n = yamldoc_map_size(set);
	struct scenario_set *sets;

	if (set.id && yamldoc_kind(set) != YAMLDOC_MAP)
		experiment_refuse(r, set, "'set' must be a map of path: value");
	sets = experiment_keep(r, n + more + 1, sizeof(*sets));
	for (size_t i = 0; !r->code && i < n; i++) {
		const char *path;
		yamldoc_node value = yamldoc_map_at(set, i, &path);

		if (!yamldoc_text(value))
			experiment_refuse(r, value, "'%s' must be a text (quote it)", path);
		sets[i].path = experiment_expand(r, path);
		sets[i].value = experiment_expand(r, yamldoc_text(value));
	}
	*ret_n = n;
	return sets;
}
