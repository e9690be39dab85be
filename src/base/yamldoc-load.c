/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  One pass over libyaml's events. Its own document loader takes time quadratic in the
 *         nesting and in the anchors, and a separate allocation for every value.
 */
#include "base/yamldoc-load.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* Anchors are looked up linearly. */
#define ANCHORS 1000
#define CHUNK   ((size_t)256 << 10)

/* ---- memory */

struct yamldoc_chunk {
	struct yamldoc_chunk *next;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

void *yamldoc_allocate(struct yamldoc_values *v, size_t size)
{
	size = (size + sizeof(int) - 1) / sizeof(int) * sizeof(int);
	if (size > v->left || !v->chunks) {
		size_t room = size > CHUNK ? size : CHUNK;
		struct yamldoc_chunk *c = malloc(sizeof(*c) + room);

		if (!c)
			return NULL;
		*c = (struct yamldoc_chunk){.next = v->chunks, .size = room};
		v->chunks = c;
		v->left = room;
	}
	v->left -= size;
	return v->chunks->bytes + (v->chunks->size - v->left - size);
}

/* Copy a text and terminate it. */
static const char *copy_text(struct yamldoc_values *v, const void *text, size_t len)
{
	char *copy = yamldoc_allocate(v, len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = 0;
	return copy;
}

void yamldoc_values_free(struct yamldoc_values *v)
{
	for (struct yamldoc_chunk *c = v->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(v->of);
	*v = (struct yamldoc_values){0};
}

/* ---- errors */

/* Return the place of a byte, for the errors of libyaml's reader, which has no lines. Columns count
 * characters, as libyaml's marks do. */
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

/* Return true if the character at a place is a tab. */
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

/* ---- values */

struct load {
	struct yamldoc_values values;
	const char *name;
	struct weir_err *err;
	struct {
		int id;
		const char *anchor; /* or NULL */
		size_t from;        /* index of its first item in `items` */
	} open[YAMLDOC_DEPTH + 1];  /* the open lists and maps, outermost first */
	int depth;
	int *items; /* of the open ones */
	size_t n_items, room_items;
	struct {
		const char *name;
		int id;
	} anchors[ANCHORS];
	int n_anchors;
};

static struct weir_place place_of(const struct load *l, const yaml_event_t *e)
{
	return (struct weir_place){
		l->name, (unsigned)e->start_mark.line + 1, (unsigned)e->start_mark.column + 1};
}

static struct yamldoc_value *value(struct load *l, int id)
{
	return &l->values.of[id - 1];
}

/* Add a value. Return its id, or -ENOMEM. */
static int add_value(struct load *l, const yaml_event_t *e, enum yamldoc_kind kind)
{
	struct yamldoc_values *v = &l->values;

	if (v->n >= INT32_MAX || array_grow(&v->of, &v->room, v->n + 1) < 0)
		return -ENOMEM;
	v->of[v->n++] = (struct yamldoc_value){.line = (unsigned)e->start_mark.line + 1,
		.column = (unsigned)e->start_mark.column + 1,
		.kind = kind};
	return (int)v->n;
}

/* Append to the innermost open list or map, if any. */
static int add_item(struct load *l, int id)
{
	if (l->depth == 0)
		return 0;
	if (array_grow(&l->items, &l->room_items, l->n_items + 1) < 0)
		return -ENOMEM;
	l->items[l->n_items++] = id;
	return 0;
}

static int add_tag(struct load *l, int id, const yaml_char_t *tag)
{
	static const char ours[] = "tag:yaml.org,2002:";
	const char *text = (const char *)tag;

	if (l->values.tagged || !text || strcmp(text, "!") == 0 ||
		strncmp(text, ours, sizeof(ours) - 1) == 0)
		return 0;
	l->values.tagged = id;
	l->values.tag = copy_text(&l->values, text, strlen(text));
	return l->values.tag ? 0 : -ENOMEM;
}

/* Record an anchor. *ret: its name, or NULL. */
static int add_anchor(
	struct load *l, int id, const yaml_event_t *e, const yaml_char_t *anchor, const char **ret)
{
	*ret = NULL;
	if (!anchor)
		return 0;
	for (int i = 0; i < l->n_anchors; i++)
		if (strcmp(l->anchors[i].name, (const char *)anchor) == 0)
			return weir_err_at(l->err, -EINVAL, place_of(l, e),
				"anchor '%.60s' is given twice; first in line %u",
				(const char *)anchor, value(l, l->anchors[i].id)->line);
	if (l->n_anchors == ANCHORS)
		return weir_err_at(
			l->err, -EINVAL, place_of(l, e), "more than %d anchors", ANCHORS);
	*ret = copy_text(&l->values, anchor, strlen((const char *)anchor));
	if (!*ret)
		return -ENOMEM;
	l->anchors[l->n_anchors].name = *ret;
	l->anchors[l->n_anchors++].id = id;
	return 0;
}

static bool is_null(const yaml_event_t *e)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};

	if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || e->data.scalar.length > 4)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp((const char *)e->data.scalar.value, words[i]) == 0)
			return true;
	return false;
}

static int add_scalar(struct load *l, const yaml_event_t *e)
{
	int id = add_value(l, e, YAMLDOC_SCALAR), r;
	const char *text, *anchor;

	if (id < 0)
		return id;
	text = copy_text(&l->values, e->data.scalar.value, e->data.scalar.length);
	if (!text)
		return -ENOMEM;
	value(l, id)->text = text;
	value(l, id)->null = is_null(e);
	value(l, id)->nul = strlen(text) != e->data.scalar.length;
	r = add_tag(l, id, e->data.scalar.tag);
	if (r == 0)
		r = add_anchor(l, id, e, e->data.scalar.anchor, &anchor);
	return r == 0 ? add_item(l, id) : r;
}

static int open_value(struct load *l, const yaml_event_t *e, enum yamldoc_kind kind,
	const yaml_char_t *anchor, const yaml_char_t *tag)
{
	int id = add_value(l, e, kind), r;
	const char *name;

	if (id < 0)
		return id;
	r = add_tag(l, id, tag);
	if (r == 0)
		r = add_anchor(l, id, e, anchor, &name);
	if (r == 0)
		r = add_item(l, id);
	if (r < 0)
		return r;
	if (l->depth == YAMLDOC_DEPTH)
		return weir_err_at(
			l->err, -EINVAL, place_of(l, e), "nested more than %d deep", YAMLDOC_DEPTH);
	l->open[l->depth].id = id;
	l->open[l->depth].anchor = name;
	l->open[l->depth++].from = l->n_items;
	return 0;
}

static int close_value(struct load *l)
{
	size_t from = l->open[--l->depth].from, n = l->n_items - from;
	struct yamldoc_value *v = value(l, l->open[l->depth].id);
	int *items = yamldoc_allocate(&l->values, n * sizeof(*items));

	if (!items)
		return -ENOMEM;
	if (n) /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): n of the items are l's */
		memcpy(items, &l->items[from], n * sizeof(*items));
	v->items = items;
	v->n = (unsigned)(v->kind == YAMLDOC_MAP ? n / 2 : n);
	l->n_items = from;
	return 0;
}

static int add_alias(struct load *l, const yaml_event_t *e)
{
	const char *name = (const char *)e->data.alias.anchor;

	for (int i = 0; i < l->depth; i++)
		if (l->open[i].anchor && strcmp(l->open[i].anchor, name) == 0)
			return weir_err_at(l->err, -EINVAL, place_of(l, e),
				"this alias refers to the value that contains it (line %u)",
				value(l, l->open[i].id)->line);
	for (int i = 0; i < l->n_anchors; i++)
		if (strcmp(l->anchors[i].name, name) == 0)
			return add_item(l, l->anchors[i].id);
	return weir_err_at(l->err, -EINVAL, place_of(l, e), "found undefined alias");
}

static int add_event(struct load *l, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		return l->values.n ? weir_err_at(l->err, -EINVAL, place_of(l, e),
					     "a second document; only one is allowed")
				   : 0;
	case YAML_SCALAR_EVENT:
		return add_scalar(l, e);
	case YAML_SEQUENCE_START_EVENT:
		return open_value(l, e, YAMLDOC_LIST, e->data.sequence_start.anchor,
			e->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return open_value(
			l, e, YAMLDOC_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return close_value(l);
	case YAML_ALIAS_EVENT:
		return add_alias(l, e);
	default:
		return 0;
	}
}

static int load_events(struct load *l, const char *text, size_t len)
{
	yaml_parser_t p;
	bool more = true;
	int r = 0;

	if (!yaml_parser_initialize(&p))
		return -ENOMEM;
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING); /* as other programs read the file */
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (more && r == 0) {
		yaml_event_t e;

		if (!yaml_parser_parse(&p, &e)) {
			r = syntax_error(&p, text, len, l->name, l->err);
			break;
		}
		more = e.type != YAML_STREAM_END_EVENT;
		r = add_event(l, &e);
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&p);
	return r;
}

/* An empty document is an empty map. */
static int make_empty(struct yamldoc_values *v)
{
	yamldoc_values_free(v);
	v->of = calloc(1, sizeof(*v->of));
	if (!v->of)
		return -ENOMEM;
	v->of[0].kind = YAMLDOC_MAP;
	v->of[0].line = v->of[0].column = 1;
	v->n = v->room = 1;
	return 0;
}

int yamldoc_load(const char *text, size_t len, const char *name, struct yamldoc_values *ret,
	struct weir_err *err)
{
	struct load *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (l) {
		l->name = name;
		l->err = err;
		r = load_events(l, text, len);
	}
	if (r == 0 && (l->values.n == 0 || l->values.of[0].null))
		r = make_empty(&l->values);
	if (r == 0)
		*ret = l->values;
	else if (l)
		yamldoc_values_free(&l->values);
	if (l)
		free(l->items);
	free(l);
	return r;
}
