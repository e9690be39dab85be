/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/versions/record.h"
#include "base/array.h"
#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MAX ((size_t)256 << 20) /* bytes of a text */

static void set_free(struct record_set *s)
{
	free(s->key);
	free(s->value);
}

void record_free(struct record *r)
{
	for (size_t i = 0; i < r->n_sets; i++)
		set_free(&r->sets[i]);
	free(r->sets);
	free(r->pieces);
	free(r->user);
	free(r->member);
	free(r->message);
	free(r->kind);
	free(r->name);
	*r = (struct record){0};
}

int record_new_id(struct record *r)
{
	unsigned char bytes[(RECORD_ID - 1) / 2];

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(r->id, sizeof(r->id), bytes, sizeof(bytes));
	return 0;
}

size_t record_length(const struct record *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_pieces; i++)
		n += r->pieces[i].length;
	return n;
}

int record_set(struct record *r, const char *key, const char *value, double until)
{
	struct record_set one = {.until = until};
	size_t at = 0;

	while (at < r->n_sets && strcmp(r->sets[at].key, key) != 0)
		at++;
	if (!value && at == r->n_sets)
		return -ENOENT;
	if (value && at == r->n_sets && at == RECORD_SETS)
		return -E2BIG;
	if (value) {
		one.key = strdup(key);
		one.value = strdup(value);
		if (!one.key || !one.value || array_resize(&r->sets, r->n_sets + 1) < 0) {
			set_free(&one);
			return -ENOMEM;
		}
	}
	if (at < r->n_sets) { /* a new value goes to the end, as the gateway's do */
		set_free(&r->sets[at]);
		memmove(&r->sets[at], &r->sets[at + 1], (--r->n_sets - at) * sizeof(one));
	}
	if (value)
		r->sets[r->n_sets++] = one;
	return 0;
}

int record_copy(const struct record *from, struct record *ret)
{
	char *text = record_write(from);
	int rc = text ? record_read(text, strlen(text), ret) : -ENOMEM;

	free(text);
	if (rc == 0)
		ret->revision = from->revision;
	return rc < 0 ? -ENOMEM : 0;
}

/* ---- made from others */

int record_text(char **to, const char *from)
{
	char *copy = strdup(from ? from : "");

	free(*to);
	*to = copy;
	return copy ? 0 : -ENOMEM;
}

int record_take(struct record *to, const struct record *from, bool sets, bool text)
{
	struct record copy = {0};
	int rc = record_copy(from, &copy);

	if (rc < 0)
		return rc;
	if (sets) {
		to->sets = copy.sets;
		to->n_sets = copy.n_sets;
		copy.sets = NULL;
		copy.n_sets = 0;
	}
	if (text) {
		to->pieces = copy.pieces;
		to->n_pieces = copy.n_pieces;
		to->tenants = copy.tenants;
		copy.pieces = NULL;
		rc = record_text(&to->name, copy.name);
	}
	record_free(&copy);
	return rc;
}

void record_clear(struct record *r)
{
	struct record empty = {.number = 0};

	memcpy(empty.id, r->id, sizeof(empty.id));
	empty.when = r->when;
	empty.user = r->user;
	empty.member = r->member;
	empty.message = r->message;
	empty.name = r->name;
	empty.kind = r->kind;
	r->user = r->member = r->message = r->name = r->kind = NULL;
	record_free(r);
	*r = empty;
}

/* ---- as text */

static json_t *pieces_json(const struct record *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_pieces; i++)
		json_array_append_new(list,
			json_pack("[s, I]", r->pieces[i].digest, (json_int_t)r->pieces[i].length));
	return list;
}

static json_t *sets_json(const struct record *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_sets; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:f}", "key", r->sets[i].key, "value",
				      r->sets[i].value, "until", r->sets[i].until));
	return list;
}

static const char *text_of(const char *s)
{
	return s ? s : "";
}

char *record_write(const struct record *r)
{
	json_t *j = json_pack("{s:I, s:s, s:f, s:s, s:s, s:s, s:s, s:I, s:s, s:I, s:o, s:o}",
		"number", (json_int_t)r->number, "id", r->id, "when", r->when, "user",
		text_of(r->user), "member", text_of(r->member), "message", text_of(r->message),
		"kind", text_of(r->kind), "base", (json_int_t)r->base, "name", text_of(r->name),
		"tenants", (json_int_t)r->tenants, "pieces", pieces_json(r), "set", sets_json(r));
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(j);
	return text;
}

static bool is_hex(const char *s, size_t n)
{
	return s && strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static int copy_text(const json_t *j, const char *key, char **ret)
{
	const char *text = json_string_value(json_object_get(j, key));

	if (!text)
		return -EPROTO;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int copy_number(const json_t *j, const char *key, uint64_t *ret)
{
	const json_t *n = json_object_get(j, key);

	if (!json_is_integer(n) || json_integer_value(n) < 0)
		return -EPROTO;
	*ret = (uint64_t)json_integer_value(n);
	return 0;
}

static int read_pieces(const json_t *list, struct record *r)
{
	size_t i, all = 0;
	const json_t *one;

	if (!json_is_array(list))
		return -EPROTO;
	r->pieces = calloc(json_array_size(list) + 1, sizeof(*r->pieces));
	if (!r->pieces)
		return -ENOMEM;
	json_array_foreach(list, i, one)
	{
		const char *digest = json_string_value(json_array_get(one, 0));
		json_int_t n = json_integer_value(json_array_get(one, 1));

		if (!is_hex(digest, PIECES_DIGEST - 1) || n < 1 || (size_t)n > PIECES_MAX ||
			(all += (size_t)n) > LENGTH_MAX)
			return -EPROTO;
		r->pieces[i].length = (size_t)n;
		memcpy(r->pieces[i].digest, digest, PIECES_DIGEST);
		r->n_pieces++;
	}
	return 0;
}

static int read_sets(const json_t *list, struct record *r)
{
	size_t i;
	const json_t *one;
	int rc = json_is_array(list) && json_array_size(list) <= RECORD_SETS ? 0 : -EPROTO;

	json_array_foreach(list, i, one)
	{
		const char *key = json_string_value(json_object_get(one, "key"));
		const char *value = json_string_value(json_object_get(one, "value"));

		if (rc == 0)
			rc = key && value
				     ? record_set(r, key, value,
					       json_number_value(json_object_get(one, "until")))
				     : -EPROTO;
	}
	return rc;
}

static int read_members(const json_t *j, struct record *r)
{
	const char *id = json_string_value(json_object_get(j, "id"));
	uint64_t tenants = 0;
	int rc = is_hex(id, RECORD_ID - 1) ? 0 : -EPROTO;

	if (rc == 0)
		memcpy(r->id, id, RECORD_ID);
	if (rc == 0)
		rc = copy_number(j, "number", &r->number);
	if (rc == 0)
		rc = copy_number(j, "base", &r->base);
	if (rc == 0)
		rc = copy_number(j, "tenants", &tenants);
	if (rc == 0)
		rc = copy_text(j, "user", &r->user);
	if (rc == 0)
		rc = copy_text(j, "member", &r->member);
	if (rc == 0)
		rc = copy_text(j, "message", &r->message);
	if (rc == 0)
		rc = copy_text(j, "kind", &r->kind);
	if (rc == 0)
		rc = copy_text(j, "name", &r->name);
	if (rc == 0)
		rc = read_pieces(json_object_get(j, "pieces"), r);
	if (rc == 0)
		rc = read_sets(json_object_get(j, "set"), r);
	r->when = json_number_value(json_object_get(j, "when"));
	r->tenants = (size_t)tenants;
	return rc == 0 && (r->number == 0 || tenants > record_length(r)) ? -EPROTO : rc;
}

int record_read(const char *text, size_t n, struct record *ret)
{
	json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	struct record r = {0};
	int rc = json_is_object(j) ? read_members(j, &r) : -EPROTO;

	json_decref(j);
	if (rc < 0)
		record_free(&r);
	else
		*ret = r;
	return rc;
}
