/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yamldoc-load.h"
#include "base/yamldoc.h"

#include <errno.h>
#include <string.h>

/* libyaml looks anchors up one after the other, so that many make it slow. */
#define ANCHORS 1000

bool yamldoc_is_null(const yaml_node_t *y)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};

	if (y->type != YAML_SCALAR_NODE || y->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp((const char *)y->data.scalar.value, words[i]) == 0)
			return true;
	return false;
}

/* The place of a byte, for the errors of libyaml's reader, which knows no lines. Columns count
 * characters, as its marks do. */
static struct weir_place place_of_offset(const char *name, const char *text, size_t offset)
{
	struct weir_place at = {name, 1, 1};

	for (size_t i = 0; i < offset; i++) {
		if (text[i] == '\n') {
			at.line++;
			at.column = 1;
		} else if (((unsigned char)text[i] & 0xC0) != 0x80) {
			at.column++;
		}
	}
	return at;
}

/* Whether the character at a place (counted from 1) is a tab. */
static bool tab_at(const char *text, size_t len, struct weir_place at)
{
	size_t i = 0;

	for (unsigned line = 1; line < at.line && i < len; i++)
		line += text[i] == '\n';
	for (unsigned column = 1; column < at.column && i < len && text[i] != '\n'; column++)
		for (i++; i < len && ((unsigned char)text[i] & 0xC0) == 0x80;)
			i++;
	return i < len && text[i] == '\t';
}

static int syntax_error(const yaml_parser_t *p, const char *text, size_t len, const char *name,
	struct weir_err *err)
{
	struct weir_place at = {
		name, (unsigned)p->problem_mark.line + 1, (unsigned)p->problem_mark.column + 1};
	const char *problem = p->problem ? p->problem : "not YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR) {
		size_t offset = p->problem_offset < len ? p->problem_offset : len;
		return weir_err_at(
			err, -EINVAL, place_of_offset(name, text, offset), "%s", problem);
	}
	if (tab_at(text, len, at))
		return weir_err_at(err, -EINVAL, at, "%s: a tab; indent with spaces", problem);
	if (!p->context)
		return weir_err_at(err, -EINVAL, at, "%s", problem);
	return weir_err_at(err, -EINVAL, at, "%s, %s (line %zu)", problem, p->context,
		p->context_mark.line + 1);
}

/* A text that says nothing means a map without keys. */
static int make_empty(yaml_document_t *yaml)
{
	yaml_document_delete(yaml);
	if (!yaml_document_initialize(yaml, NULL, NULL, NULL, 1, 1))
		return -ENOMEM;
	return yaml_document_add_mapping(yaml, NULL, YAML_BLOCK_MAPPING_STYLE) ? 0 : -ENOMEM;
}

/* Refuses what follows the first document. */
static int check_last(
	yaml_parser_t *p, const char *text, size_t len, const char *name, struct weir_err *err)
{
	yaml_document_t more;

	if (!yaml_parser_load(p, &more))
		return syntax_error(p, text, len, name, err);
	const yaml_node_t *root = yaml_document_get_root_node(&more);
	struct weir_place at = {name, 0, 0};
	if (root) {
		at.line = (unsigned)more.start_mark.line + 1;
		at.column = (unsigned)more.start_mark.column + 1;
	}
	yaml_document_delete(&more);
	return root ? weir_err_at(err, -EINVAL, at, "a second document; only one may stand here")
		    : 0;
}

static void count_event(const yaml_event_t *e, int *depth, int *anchors)
{
	const yaml_char_t *anchor = NULL;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		anchor = e->data.scalar.anchor;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = e->data.sequence_start.anchor;
		++*depth;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = e->data.mapping_start.anchor;
		++*depth;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		--*depth;
		break;
	default:
		break;
	}
	*anchors += anchor != NULL;
}

/* Loading takes time with the square of the nesting and of the anchors: looks first, and stops early.
 * Errors of syntax are left to the loading, which meets them again. */
static int check_bounds(const char *text, size_t len, const char *name, struct weir_err *err)
{
	yaml_parser_t p;
	yaml_event_t e;
	int depth = 0, anchors = 0, r = 0;
	bool more = true;

	if (!yaml_parser_initialize(&p))
		return -ENOMEM;
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (more && r == 0 && yaml_parser_parse(&p, &e)) {
		struct weir_place at = {
			name, (unsigned)e.start_mark.line + 1, (unsigned)e.start_mark.column + 1};
		more = e.type != YAML_STREAM_END_EVENT;
		count_event(&e, &depth, &anchors);
		if (depth > YAMLDOC_DEPTH)
			r = weir_err_at(
				err, -EINVAL, at, "nested more than %d deep", YAMLDOC_DEPTH);
		else if (anchors > ANCHORS)
			r = weir_err_at(err, -EINVAL, at, "more than %d anchors", ANCHORS);
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&p);
	return r;
}

int yamldoc_load(const char *text, size_t len, const char *name, yaml_document_t *ret_yaml,
	struct weir_err *err)
{
	yaml_parser_t p;
	yaml_document_t yaml;

	int r = check_bounds(text, len, name, err);
	if (r < 0)
		return r;
	if (!yaml_parser_initialize(&p))
		return -ENOMEM;
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	if (!yaml_parser_load(&p, &yaml)) { /* which leaves nothing to delete */
		r = syntax_error(&p, text, len, name, err);
	} else {
		const yaml_node_t *root = yaml_document_get_root_node(&yaml);
		if (root)
			r = check_last(&p, text, len, name, err);
		if (r == 0 && (!root || yamldoc_is_null(root)))
			r = make_empty(&yaml);
		if (r == 0)
			*ret_yaml = yaml;
		else
			yaml_document_delete(&yaml);
	}
	yaml_parser_delete(&p);
	return r;
}
