/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/store/etcd-json.h"
#include "base/array.h"
#include "serve/store/json-text.h"
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE64 sodium_base64_VARIANT_ORIGINAL
#define LIMIT  100

/* ---- requests */

/* Write bytes in base64, piece by piece: a value may have a megabyte. */
static void put_bytes(FILE *to, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;
	char text[sodium_base64_ENCODED_LEN(3 * 256, BASE64)];

	for (size_t at = 0; at < n; at += 3 * 256) {
		size_t part = n - at < 3 * 256 ? n - at : 3 * 256;

		sodium_bin2base64(text, sizeof(text), b + at, part, BASE64);
		fputs(text, to);
	}
}

/* Write "name":"key in base64", with a last byte more, unless that is 0. */
static void put_key(
	FILE *to, const char *name, const char *space, const char *key, const char *more)
{
	char whole[3 * STORE_KEY_MAX];
	size_t n = (size_t)snprintf(whole, sizeof(whole), "%s%s%s", space, key, more);

	fprintf(to, "\"%s\":\"", name);
	put_bytes(to, whole, n < sizeof(whole) ? n : sizeof(whole) - 1);
	fputc('"', to);
}

static void put_list(FILE *to, const char *space, const struct store_request *q)
{
	static const char after[] = "\1"; /* below all bytes of a key */

	fputc('{', to);
	if (q->after)
		put_key(to, "key", space, q->after, after);
	else
		put_key(to, "key", space, q->prefix, "");
	if (!q->exact) {
		fputc(',', to);
		put_key(to, "range_end", space, q->prefix, "\177");
	}
	fprintf(to, ",\"limit\":\"%zu\"%s%s,\"sort_order\":\"ASCEND\",\"sort_target\":\"KEY\"}",
		q->limit ? q->limit : LIMIT, q->names ? ",\"keys_only\":true" : "",
		q->stale ? ",\"serializable\":true" : "");
}

static void put_condition(FILE *to, const char *space, const struct store_condition *c)
{
	fputc('{', to);
	put_key(to, "key", space, c->key, "");
	if (c->exists)
		fprintf(to,
			",\"target\":\"CREATE\",\"create_revision\":\"0\",\"result\":\"GREATER\"}");
	else
		fprintf(to,
			",\"target\":\"MOD\",\"mod_revision\":\"%" PRIu64
			"\",\"result\":\"EQUAL\"}",
			c->changed);
}

static void put_change(FILE *to, const char *space, const struct store_change *c)
{
	fprintf(to, "{\"%s\":{", c->remove ? "request_delete_range" : "request_put");
	put_key(to, "key", space, c->key, "");
	if (!c->remove) {
		fputs(",\"value\":\"", to);
		put_bytes(to, c->value, c->length);
		fputc('"', to);
	}
	if (!c->remove && c->lease)
		fprintf(to, ",\"lease\":\"%" PRIu64 "\"", c->lease);
	fputs("}}", to);
}

static void put_txn(FILE *to, const char *space, const struct store_request *q)
{
	fputs("{\"compare\":[", to);
	for (size_t i = 0; i < q->n_conditions; i++) {
		fputs(i ? "," : "", to);
		put_condition(to, space, &q->conditions[i]);
	}
	fputs("],\"success\":[", to);
	for (size_t i = 0; i < q->n_changes; i++) {
		fputs(i ? "," : "", to);
		put_change(to, space, &q->changes[i]);
	}
	fputs("]}", to);
}

int etcd_json_request(const char *space, const struct store_request *q, const char **ret_path,
	char **ret_body, size_t *ret_length)
{
	static const char *const paths[] = {[STORE_LIST] = "/kv/range",
		[STORE_TXN] = "/kv/txn",
		[STORE_GRANT] = "/lease/grant",
		[STORE_KEEP] = "/lease/keepalive",
		[STORE_REVOKE] = "/lease/revoke"};
	FILE *to = open_memstream(ret_body, ret_length);

	if (!to)
		return -ENOMEM;
	if (q->kind == STORE_LIST)
		put_list(to, space, q);
	else if (q->kind == STORE_TXN)
		put_txn(to, space, q);
	else if (q->kind == STORE_GRANT)
		fprintf(to, "{\"TTL\":\"%u\"}", q->ttl);
	else
		fprintf(to, "{\"ID\":\"%" PRIu64 "\"}", q->lease);
	*ret_path = paths[q->kind];
	return fclose(to) == 0 ? 0 : -ENOMEM;
}

int etcd_json_watch(
	const char *space, const char *prefix, uint64_t from, char **ret_body, size_t *ret_length)
{
	FILE *to = open_memstream(ret_body, ret_length);

	if (!to)
		return -ENOMEM;
	fputs("{\"create_request\":{", to);
	put_key(to, "key", space, prefix, "");
	fputc(',', to);
	put_key(to, "range_end", space, prefix, "\177");
	fprintf(to, ",\"start_revision\":\"%" PRIu64 "\"}}", from);
	return fclose(to) == 0 ? 0 : -ENOMEM;
}

int etcd_json_login(const char *user, const char *password, char **ret_body, size_t *ret_length)
{
	FILE *to = open_memstream(ret_body, ret_length);

	if (!to)
		return -ENOMEM;
	fputs("{\"name\":", to);
	json_text_string(user, to);
	fputs(",\"password\":", to);
	json_text_string(password, to);
	fputc('}', to);
	return fclose(to) == 0 ? 0 : -ENOMEM;
}

/* ---- answers */

/* Get a 64-bit integer, which is a string, or 0 if it is missing. -EPROTO. */
static int get_number(const json_t *o, const char *name, uint64_t *ret)
{
	const json_t *j = json_object_get(o, name);
	const char *text = json_string_value(j);
	char *end;

	if (!j) {
		*ret = 0;
		return 0;
	}
	if (!text || *text < '0' || *text > '9')
		return -EPROTO;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *end || errno ? -EPROTO : 0;
}

/* Decode base64; a NUL is added. A member that is missing is empty. */
static int get_bytes(const json_t *o, const char *name, char **ret, size_t *ret_n)
{
	const json_t *j = json_object_get(o, name);
	size_t n = json_string_length(j), room = n / 4 * 3 + 1, got = 0;
	char *bytes;

	if (j && !json_is_string(j))
		return -EPROTO;
	bytes = malloc(room);
	if (!bytes)
		return -ENOMEM;
	if (n && (n % 4 || sodium_base642bin((unsigned char *)bytes, room - 1, json_string_value(j),
				   n, NULL, &got, NULL, BASE64) != 0)) {
		free(bytes);
		return -EPROTO;
	}
	bytes[got] = 0;
	*ret = bytes;
	*ret_n = got;
	return 0;
}

/* Get a name without the space before it. */
static int get_key(const char *space, const json_t *kv, char **ret)
{
	size_t n, skip = strlen(space);
	char *key;
	int rc = get_bytes(kv, "key", &key, &n);

	if (rc < 0)
		return rc;
	if (n < skip || strlen(key) != n || !store_has_prefix(key, space)) {
		free(key);
		return -EPROTO;
	}
	memmove(key, key + skip, n - skip + 1);
	*ret = key;
	return 0;
}

static int add_key(const char *space, const json_t *kv, bool removed, struct etcd_answer *a)
{
	struct store_key k = {0};
	size_t room = a->room;
	char *key = NULL, *value = NULL;
	int rc = array_grow(&a->keys, &a->room, a->n + 1);

	if (rc == 0 && a->room != room)
		rc = array_resize(&a->removed, a->room);
	if (rc == 0)
		rc = get_key(space, kv, &key);
	if (rc == 0)
		rc = get_bytes(kv, "value", &value, &k.length);
	if (rc == 0)
		rc = get_number(kv, "create_revision", &k.created);
	if (rc == 0)
		rc = get_number(kv, "mod_revision", &k.changed);
	if (rc == 0)
		rc = get_number(kv, "lease", &k.lease);
	if (rc < 0) {
		free(key);
		free(value);
		return rc;
	}
	k.key = key;
	k.value = value;
	a->removed[a->n] = removed;
	a->keys[a->n++] = k;
	return 0;
}

void etcd_answer_free(struct etcd_answer *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free((char *)a->keys[i].key);
		free((void *)a->keys[i].value);
	}
	free(a->keys);
	free(a->removed);
	*a = (struct etcd_answer){0};
}

static int get_header(const json_t *root, struct etcd_answer *a)
{
	const json_t *header = json_object_get(root, "header");
	int rc = json_is_object(header) ? get_number(header, "cluster_id", &a->cluster) : -EPROTO;

	return rc < 0 ? rc : get_number(header, "revision", &a->result.revision);
}

static int get_ttl(const json_t *root, struct etcd_answer *a)
{
	uint64_t ttl = 0;
	int rc = get_number(root, "ID", &a->result.lease);

	if (rc == 0)
		rc = get_number(root, "TTL", &ttl);
	a->result.ttl = ttl < UINT32_MAX ? (unsigned)ttl : UINT32_MAX;
	return rc;
}

int etcd_json_answer(
	const char *space, enum store_kind kind, const json_t *root, struct etcd_answer *ret)
{
	const json_t *from = kind == STORE_KEEP ? json_object_get(root, "result") : root, *list,
		     *kv;
	struct etcd_answer a = {0};
	size_t i;
	int rc = get_header(from, &a);

	if (rc == 0 && kind == STORE_LIST) {
		list = json_object_get(from, "kvs");
		if (list && !json_is_array(list))
			rc = -EPROTO;
		for (i = 0; rc == 0 && (kv = json_array_get(list, i)); i++)
			rc = add_key(space, kv, false, &a);
		a.result.more = json_is_true(json_object_get(from, "more"));
		if (a.result.more && !a.n)
			rc = -EPROTO;
	}
	if (rc == 0 && kind == STORE_TXN)
		a.result.held = json_is_true(json_object_get(from, "succeeded"));
	if (rc == 0 && (kind == STORE_GRANT || kind == STORE_KEEP))
		rc = get_ttl(from, &a);
	a.result.keys = a.keys;
	a.result.n = a.n;
	if (rc < 0)
		etcd_answer_free(&a);
	else
		*ret = a;
	return rc;
}

int etcd_json_watched(const char *space, const json_t *root, struct etcd_answer *ret)
{
	const json_t *from = json_object_get(root, "result"), *list, *e;
	const char *reason = json_string_value(json_object_get(from, "cancel_reason"));
	struct etcd_answer a = {0};
	size_t i;
	int rc = get_header(from, &a);

	list = json_object_get(from, "events");
	if (list && !json_is_array(list))
		rc = -EPROTO;
	for (i = 0; rc == 0 && (e = json_array_get(list, i)); i++) {
		const char *type = json_string_value(json_object_get(e, "type"));

		rc = add_key(
			space, json_object_get(e, "kv"), type && strcmp(type, "DELETE") == 0, &a);
	}
	a.cancelled = json_is_true(json_object_get(from, "canceled"));
	if (rc == 0)
		rc = get_number(from, "compact_revision", &a.compacted);
	snprintf(a.reason, sizeof(a.reason), "%s", reason ? reason : "");
	if (rc < 0)
		etcd_answer_free(&a);
	else
		*ret = a;
	return rc;
}

void etcd_json_fault(const json_t *root, struct etcd_fault *ret)
{
	const json_t *error = json_object_get(root, "error"), *from = root;
	const char *text;

	if (json_is_object(error)) /* of a stream */
		from = error;
	text = json_string_value(json_object_get(from, "message"));
	if (!text)
		text = json_string_value(error);
	ret->code =
		(int)json_integer_value(json_object_get(from, from == root ? "code" : "grpc_code"));
	snprintf(ret->text, sizeof(ret->text), "%s", text ? text : "");
}
