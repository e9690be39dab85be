/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yamldoc-load.h"
#include "base/yamldoc.h"

#include <errno.h>
#include <stdlib.h>
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

struct look { /* what the first look has seen so far */
	int depth, anchors;
	struct {
		char *anchor; /* or NULL; malloc'ed */
		size_t line;
	} open[YAMLDOC_DEPTH + 1]; /* the lists and maps that are not closed, outermost first */
};

static int enter(struct look *l, const yaml_event_t *e, const yaml_char_t *anchor)
{
	int i = l->depth++; /* at most YAMLDOC_DEPTH: one more is refused at once */

	l->open[i].line = e->start_mark.line + 1;
	l->open[i].anchor = anchor ? strdup((const char *)anchor) : NULL;
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): look() has set all to 0 */
	l->anchors += anchor != NULL;
	return anchor && !l->open[i].anchor ? -ENOMEM : 0;
}

static void leave(struct look *l)
{
	l->depth--;
	free(l->open[l->depth].anchor);
	l->open[l->depth].anchor = NULL;
}

/* The line of what the alias stands in and for, or 0. Later the alias would be that node itself, and its place
 * not known any more. */
static size_t line_around(const struct look *l, const char *alias)
{
	for (int i = 0; i < l->depth; i++)
		if (l->open[i].anchor && strcmp(l->open[i].anchor, alias) == 0)
			return l->open[i].line;
	return 0;
}

static int look_at(
	struct look *l, const yaml_event_t *e, struct weir_place at, struct weir_err *err)
{
	size_t line = 0;
	int r = 0;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		l->anchors += e->data.scalar.anchor != NULL;
		break;
	case YAML_SEQUENCE_START_EVENT:
		r = enter(l, e, e->data.sequence_start.anchor);
		break;
	case YAML_MAPPING_START_EVENT:
		r = enter(l, e, e->data.mapping_start.anchor);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		leave(l);
		break;
	case YAML_ALIAS_EVENT:
		line = line_around(l, (const char *)e->data.alias.anchor);
		break;
	default:
		break;
	}
	if (r < 0)
		return r;
	if (line)
		return weir_err_at(err, -EINVAL, at,
			"an alias here refers to what contains it (line %zu)", line);
	if (l->depth > YAMLDOC_DEPTH)
		return weir_err_at(err, -EINVAL, at, "nested more than %d deep", YAMLDOC_DEPTH);
	if (l->anchors > ANCHORS)
		return weir_err_at(err, -EINVAL, at, "more than %d anchors", ANCHORS);
	return 0;
}

/* Loading takes time with the square of the nesting and of the anchors: looks first, and stops early.
 * Errors of syntax are left to the loading, which meets them again. */
static int look(const char *text, size_t len, const char *name, struct weir_err *err)
{
	struct look l = {0};
	yaml_parser_t p;
	yaml_event_t e;
	bool more = true;
	int r = 0;

	if (!yaml_parser_initialize(&p))
		return -ENOMEM;
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (more && r == 0 && yaml_parser_parse(&p, &e)) {
		struct weir_place at = {
			name, (unsigned)e.start_mark.line + 1, (unsigned)e.start_mark.column + 1};
		more = e.type != YAML_STREAM_END_EVENT;
		r = look_at(&l, &e, at, err);
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&p);
	while (l.depth > 0)
		leave(&l);
	return r;
}

int yamldoc_load(const char *text, size_t len, const char *name, yaml_document_t *ret_yaml,
	struct weir_err *err)
{
	yaml_parser_t p;
	yaml_document_t yaml;

	int r = look(text, len, name, err);
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
