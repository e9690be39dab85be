/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-volume: /v1/volumes: list, make, change and remove volumes.
 *
 * A request is idempotent: repeated, it has the same answer and changes nothing.
 */
#include "serve/api/api-impl.h"
#include "serve/api/api-json.h"
#include <weir/units.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/v1/volumes/"

static json_t *text_or_null(const char *text)
{
	return text ? show_text(text) : json_null();
}

static json_t *volume_json(struct gateway *g, const struct gateway_volume_view *v)
{
	char *uri = gateway_uri(g, v->name);
	json_t *j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
		"name", show_text(v->name), "resource", show_text(v->resource), "back",
		show_text(v->back), "class", text_or_null(v->class_), "tenant",
		text_or_null(*v->tenant ? v->tenant : NULL), "from", v->from, "open", v->open,
		"trouble", text_or_null(v->trouble), "size",
		v->size ? show_count(v->size) : json_null(), "clients", show_count(v->clients),
		"requests", show_count(v->requests), "bytes", show_count(v->bytes), "uri",
		text_or_null(uri));

	free(uri);
	return j;
}

void api_get_volumes(struct api *a, struct http_request *q, struct http_reply *ret)
{
	json_t *list = json_array(), *unserved = json_array(), *remarks = json_array();
	struct gateway_volume_view v;
	const char *why;

	for (size_t i = 0; gateway_volume_view(a->gateway, NULL, i, &v); i++)
		if (v.name)
			json_array_append_new(list, volume_json(a->gateway, &v));
	for (size_t i = 0; (why = gateway_volume_unserved(a->gateway, i)); i++)
		json_array_append_new(unserved, show_text(why));
	for (size_t i = 0; (why = gateway_volume_remark(a->gateway, i)); i++)
		json_array_append_new(remarks, show_text(why));
	http_json_give(ret, 200,
		json_pack("{s:o, s:o, s:o, s:o}", "now_s", show_seconds((double)loop_clock()),
			"volumes", list, "unserved", unserved, "remarks", remarks));
}

void api_get_volume(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *name = q->path + strlen(PATH);
	struct gateway_volume_view v;
	struct weir_err err;

	if (gateway_volume_view(a->gateway, name, 0, &v))
		http_json_give(ret, 200, volume_json(a->gateway, &v));
	else
		api_fail(ret, weir_err_set(&err, -ENOENT, "there is no volume '%s'", name), &err);
}

/* ---- changes */

static json_t *give_volume(struct gateway *g, const char *name, const struct gateway_note *note)
{
	struct gateway_volume_view v;

	return gateway_volume_view(g, name, 0, &v) ? volume_json(g, &v)
						   : json_pack("{s:o}", "removed", show_text(name));
}

static void change(
	struct api *a, struct http_request *q, const struct gateway_volume_request *request)
{
	api_change(a, q, gateway_change_volume(request), request->name, give_volume);
}

/* Read a size: bytes, or a text such as "20GiB". */
static int read_size(const json_t *j, uint64_t *ret, struct weir_err *err)
{
	if (json_is_integer(j) && json_integer_value(j) > 0) {
		*ret = (uint64_t)json_integer_value(j);
		return 0;
	}
	if (!json_is_string(j))
		return weir_err_set(err, -EINVAL, "must be a number of bytes, or as \"20GiB\"");
	if (weir_units_size(json_string_value(j), ret, err) < 0)
		return -EINVAL;
	return *ret ? 0 : weir_err_set(err, -EINVAL, "must be more than 0");
}

/* Read the members of a request. Return what is wrong, in err, or 0. */
static int read_members(
	json_t *root, bool put, struct gateway_volume_request *to, struct weir_err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(root))
		return weir_err_set(err, -EINVAL, "the body must be an object in JSON");
	json_object_foreach(root, key, value)
	{
		const char *text = json_string_value(value);
		const char **string = strcmp(key, "class") == 0             ? &to->class_
				      : put && strcmp(key, "resource") == 0 ? &to->resource
				      : put && strcmp(key, "back") == 0     ? &to->back
									    : NULL;
		struct weir_err why;

		if (strcmp(key, "size") == 0) {
			if (read_size(value, &to->size, &why) < 0)
				return weir_err_set(err, -EINVAL, "size: %s", why.text);
		} else if (!string) {
			return weir_err_set(err, -EINVAL, "unknown member '%s'", key);
		} else if (json_is_null(value)) {
			*string = string == &to->class_ && !put ? "" : NULL;
		} else if (!text || (put && !*text)) {
			return weir_err_set(err, -EINVAL, "%s: must be a text", key);
		} else {
			*string = text;
		}
	}
	return 0;
}

static void read_and_change(
	struct api *a, struct http_request *q, enum gateway_volume_op op, struct http_reply *ret)
{
	struct gateway_volume_request request = {.op = op, .name = q->path + strlen(PATH)};
	json_error_t fault;
	json_t *root =
		json_loadb(q->body ? q->body : "", q->length, JSON_REJECT_DUPLICATES, &fault);
	struct weir_err err;

	if (!root)
		http_json_fail(ret, 400, "the body must be an object in JSON");
	else if (read_members(root, op == VOLUME_PUT, &request, &err) < 0)
		http_json_fail(ret, 400, err.text);
	else
		change(a, q, &request);
	json_decref(root);
}

void api_put_volume(struct api *a, struct http_request *q, struct http_reply *ret)
{
	read_and_change(a, q, VOLUME_PUT, ret);
}

void api_patch_volume(struct api *a, struct http_request *q, struct http_reply *ret)
{
	read_and_change(a, q, VOLUME_CHANGE, ret);
}

void api_delete_volume(struct api *a, struct http_request *q, struct http_reply *ret)
{
	change(a, q,
		&(struct gateway_volume_request){.op = VOLUME_REMOVE,
			.name = q->path + strlen(PATH),
			.force = api_flag(q, "force"),
			.keep = api_flag(q, "keep")});
}
