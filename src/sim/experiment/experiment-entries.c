/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-entries: read the texts and lists of an experiment's file, and expand `for` and $x. */
#include "sim/experiment/experiment-impl.h"
#include "base/no-memory.h"
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct memory { /* all memory that an experiment owns, in one list */
	struct memory *next;
	max_align_t bytes[];
};

void *experiment_keep(struct experiment *e, size_t bytes)
{
	struct memory *m = calloc(1, sizeof(*m) + bytes);

	if (!m)
		return NULL;
	m->next = e->memory;
	e->memory = m;
	return m->bytes;
}

void experiment_free(struct experiment *e)
{
	struct memory *m, *next;

	if (!e)
		return;
	for (m = e->memory; m; m = next) {
		next = m->next;
		free(m);
	}
	free(e);
}

/* Return the value of the "$…" at `at` and its length in *ret_len; NULL if it has none. */
static const char *parameter_value(
	const struct experiment *e, const char *at, const char *x, size_t *ret_len)
{
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
	return at[1] == 'x' ? x : NULL;
}

int experiment_expand(struct experiment *e, const char *text, const char *x, const char **ret,
	struct weir_err *err)
{
	size_t n = 1, len;
	const char *value;
	char *copy, *to;

	*ret = NULL;
	if (!text)
		return 0;
	for (const char *c = text; *c; c++) {
		value = parameter_value(e, c, x, &len);
		n += 1 + (value ? strlen(value) : 0);
	}
	copy = to = experiment_keep(e, n);
	if (!copy)
		return no_memory(err);
	for (const char *c = text; *c;) {
		value = parameter_value(e, c, x, &len);
		if (value) {
			to = stpcpy(to, value);
			c += len;
		} else {
			*to++ = *c++;
		}
	}
	*ret = copy;
	return 0;
}

int experiment_text_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret)
{
	const char *text = NULL;
	int code = yamldoc_string(map, key, &text, r->err);

	if (code == -ENOENT && needed)
		return yamldoc_error(map, r->err, "'%s' is missing", key);
	if (code < 0 && code != -ENOENT)
		return code;
	return experiment_expand(r->e, text, r->x, ret, r->err);
}

int experiment_expr_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret)
{
	struct weir_err why = {""};
	int code = experiment_text_of(r, map, key, needed, ret);

	if (code < 0 || !*ret || expr_check(*ret, &why) == 0)
		return code;
	return yamldoc_error(yamldoc_get(map, key), r->err, "%s: %s", key, why.text);
}

/* Get the number of entries that an entry's `for` makes of it: 1 without. */
static int count_copies(struct experiment_reader *r, yamldoc_node entry, size_t *ret)
{
	yamldoc_node list = yamldoc_get(entry, "for");
	int code;

	*ret = 1;
	if (!list.id)
		return 0;
	code = yamldoc_list(list, r->err);
	if (code < 0)
		return code;
	*ret = yamldoc_size(list);
	if (!*ret)
		return yamldoc_error(list, r->err, "'for' is empty");
	for (size_t i = 0; i < *ret; i++)
		if (!yamldoc_text(yamldoc_at(list, i)))
			return yamldoc_error(list, r->err, "'for' must list plain values");
	return 0;
}

static const char *copy_x(yamldoc_node entry, size_t i)
{
	yamldoc_node list = yamldoc_get(entry, "for");

	return list.id ? yamldoc_text(yamldoc_at(list, i)) : NULL;
}

static int count_entries(struct experiment_reader *r, yamldoc_node list, size_t *ret)
{
	size_t n = 0, c;

	for (size_t i = 0; i < yamldoc_size(list); i++) {
		int code = count_copies(r, yamldoc_at(list, i), &c);

		if (code < 0)
			return code;
		n += c;
	}
	*ret = n;
	return 0;
}

int experiment_entries(struct experiment_reader *r, yamldoc_node root, const char *key, size_t size,
	experiment_read_entry *read, void **ret, size_t *ret_n)
{
	yamldoc_node list = yamldoc_get(root, key);
	size_t n = 0, total = 0, c = 0;
	char *all;
	int code;

	*ret = NULL;
	*ret_n = 0;
	if (!list.id)
		return 0;
	code = yamldoc_list(list, r->err);
	if (code == 0)
		code = count_entries(r, list, &total);
	if (code < 0)
		return code;
	all = experiment_keep(r->e, (total + 1) * size);
	if (!all)
		return no_memory(r->err);
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		yamldoc_node map = yamldoc_at(list, i);

		code = count_copies(r, map, &c);
		for (size_t k = 0; code == 0 && k < c; k++) {
			r->x = copy_x(map, k);
			code = read(r, map, all + n++ * size);
		}
		if (code < 0)
			return code;
	}
	r->x = NULL;
	*ret = all;
	*ret_n = n;
	return 0;
}
