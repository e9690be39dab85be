/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario-set: `--set hosts[0].window=16`, applied to the text.
 *
 * METHOD  libyaml gives the start and the end of the value at the path; the new value replaces it, and line ends of
 *         the old one are kept. So every later message still names the line that the user sees in the file. Only a
 *         scalar, or a list or map in brackets, can be replaced; a list or map over several indented lines has no
 *         clear end.
 * COST    One parse of the text per override.
 */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct edit {
	yaml_document_t *doc;
	const struct scenario_set *set;
	const char *file;
	struct weir_err *err;
};

static void refuse_path(const struct edit *e, size_t upto, const char *why)
{
	weir_err_set(e->err, -EINVAL, "%s: --set %s: '%.*s' %s", e->file, e->set->path, (int)upto,
		e->set->path, why);
}

static yaml_node_t *child_of_map(
	const struct edit *e, yaml_node_t *map, const char *key, size_t len)
{
	yaml_node_pair_t *p;

	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		yaml_node_t *k = yaml_document_get_node(e->doc, p->key);
		if (k && k->type == YAML_SCALAR_NODE && k->data.scalar.length == len &&
			memcmp(k->data.scalar.value, key, len) == 0)
			return yaml_document_get_node(e->doc, p->value);
	}
	return NULL;
}

static yaml_node_t *child_of_list(const struct edit *e, yaml_node_t *list, unsigned long i)
{
	if (!list || list->type != YAML_SEQUENCE_NODE)
		return NULL;
	if (i >= (unsigned long)(list->data.sequence.items.top - list->data.sequence.items.start))
		return NULL;
	return yaml_document_get_node(e->doc, list->data.sequence.items.start[i]);
}

/* Return the node at "a.b[3].c" from the root; NULL, with the reason, if there is none. */
static yaml_node_t *find_node(const struct edit *e)
{
	yaml_node_t *n = yaml_document_get_root_node(e->doc);
	const char *path = e->set->path, *p = path, *why = NULL;

	while (*p && !why) {
		if (*p == '[') {
			char *end;
			unsigned long i = strtoul(p + 1, &end, 10);
			if (end == p + 1 || *end != ']')
				why = "is not a path: [N] expected";
			n = child_of_list(e, n, i);
			p = end + (*end == ']');
		} else {
			size_t len = strcspn(p, ".[");
			n = child_of_map(e, n, p, len);
			p += len;
		}
		if (!why && !n)
			why = "is not in the file";
		else if (!why && *p && *p != '[' && (*p != '.' || !p[1]))
			why = "is not a path";
		else if (*p == '.')
			p++;
	}
	if (!why && (!n || !path[0]))
		why = "names nothing";
	if (why)
		refuse_path(e, n ? strlen(path) : (size_t)(p - path), why);
	return why ? NULL : n;
}

/* Return the byte offset of a character: libyaml counts characters. */
static size_t byte_of(const char *text, size_t len, size_t character)
{
	size_t at = 0;

	while (at < len && character > 0) {
		at++;
		while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
			at++;
		character--;
	}
	return at;
}

/* Write the value as it must be in the file: unchanged if it is clearly one YAML value, else quoted. `to` has room
 * for two bytes per byte and the quotes. */
static size_t write_value(char *to, const char *value)
{
	char *p = to;

	if (strchr("[{\"'", value[0]) || !strpbrk(value, ":#,[]{}&*!|>'\"%@`\\\n")) {
		if (value[0])
			return (size_t)(stpcpy(to, value) - to);
	}
	*p++ = '"';
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			*p++ = '\\';
		if (*value == '\n') {
			*p++ = '\\';
			*p++ = 'n';
		} else {
			*p++ = *value;
		}
	}
	*p++ = '"';
	return (size_t)(p - to);
}

/* Return true if the value, as written by write_value, is exactly one YAML value: otherwise its error would be
 * reported as the file's. */
static bool is_one_value(const char *written, size_t len)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	yaml_node_t *root;
	bool ok = false;

	if (!yaml_parser_initialize(&parser))
		return true; /* the next parse reports the lack of memory */
	yaml_parser_set_input_string(&parser, (const unsigned char *)written, len);
	if (yaml_parser_load(&parser, &doc)) {
		root = yaml_document_get_root_node(&doc);
		ok = root && byte_of(written, len, root->end_mark.index) == len;
		yaml_document_delete(&doc);
	}
	yaml_parser_delete(&parser);
	return ok;
}

/* Return the text with the value at n replaced; NULL, with the reason, on error. */
static char *splice_value(const struct edit *e, const yaml_node_t *n, const char *text, size_t *len)
{
	size_t from = byte_of(text, *len, n->start_mark.index);
	size_t to = byte_of(text, *len, n->end_mark.index);
	char *out = malloc(*len + 2 * strlen(e->set->value) + 3), *p, *value;

	if (!out) {
		no_memory(e->err);
		return NULL;
	}
	memcpy(out, text, from);
	p = out + from;
	if (from == to && from > 0 && text[from - 1] == ':')
		*p++ = ' '; /* `key:` without a value */
	value = p;
	p += write_value(p, e->set->value);
	if (!is_one_value(value, (size_t)(p - value))) {
		weir_err_set(e->err, -EINVAL, "%s: --set %s: '%s' is not one YAML value", e->file,
			e->set->path, e->set->value);
		free(out);
		return NULL;
	}
	for (size_t i = from; i < to; i++) {
		if (text[i] == '\n')
			*p++ = '\n';
	}
	memcpy(p, text + to, *len - to);
	*len = (size_t)(p - out) + *len - to;
	return out;
}

static bool replaceable(const yaml_node_t *n)
{
	if (n->type == YAML_MAPPING_NODE)
		return n->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
	if (n->type == YAML_SEQUENCE_NODE)
		return n->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE;
	return n->data.scalar.style != YAML_LITERAL_SCALAR_STYLE &&
	       n->data.scalar.style != YAML_FOLDED_SCALAR_STYLE;
}

/* Return the text with one override applied; NULL, with the reason, on error. */
static char *apply_override(const char *text, size_t *len, const char *name,
	const struct scenario_set *set, struct weir_err *err)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	struct edit e = {&doc, set, name, err};
	char *out = NULL;
	yaml_node_t *n;

	if (!yaml_parser_initialize(&parser)) {
		no_memory(err);
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, *len);
	if (!yaml_parser_load(&parser, &doc)) {
		struct weir_place at = {name, (unsigned)parser.problem_mark.line + 1,
			(unsigned)parser.problem_mark.column + 1};
		weir_err_at(err, -EINVAL, at, "%s", parser.problem ? parser.problem : "not YAML");
		yaml_parser_delete(&parser);
		return NULL;
	}
	n = find_node(&e);
	if (n && !replaceable(n))
		refuse_path(&e, strlen(set->path),
			"is a list or map over several lines; name a value in it");
	else if (n)
		out = splice_value(&e, n, text, len);
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	return out;
}

int scenario_override(const char *text, size_t len, const char *name,
	const struct scenario_set *sets, size_t n, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	char *now = malloc(len + 1);

	if (!now)
		return no_memory(err);
	memcpy(now, text, len);
	now[len] = '\0';
	for (size_t i = 0; i < n; i++) {
		char *next = apply_override(now, &len, name, &sets[i], err);
		free(now);
		if (!next)
			return -EINVAL; /* or out of memory, with the same effect */
		now = next;
	}
	*ret_text = now;
	*ret_len = len;
	return 0;
}
