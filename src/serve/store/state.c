/* SPDX-License-Identifier: BSD-3-Clause */
/* state: a list, and its file. */
#include "serve/store/state.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME "set.json"

/* ---- lists */

void state_free(struct gateway_override *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].key);
		free(list[i].value);
	}
	free(list);
}

static int add(struct gateway_override *list, size_t *n, const char *key, const char *value)
{
	struct gateway_override *o = &list[(*n)++];

	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): each override has a key */
	o->key = strdup(key);
	o->value = strdup(value);
	return o->key && o->value ? 0 : -ENOMEM;
}

int state_copy(const struct gateway_override *list, size_t n, const char *except, const char *value,
	struct gateway_override **ret_list, size_t *ret_n)
{
	struct gateway_override *to = calloc(n + 1, sizeof(*to));
	size_t used = 0;
	int rc = to ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!except || strcmp(list[i].key, except) != 0)
			rc = add(to, &used, list[i].key, list[i].value);
	if (rc == 0 && value)
		rc = add(to, &used, except, value);
	if (rc < 0) {
		state_free(to, used);
		return rc;
	}
	*ret_list = to;
	*ret_n = used;
	return 0;
}

/* ---- reading */

struct gateway_state { /* a list that is read */
	struct gateway_override *list;
	size_t n;
};

static int read_overrides(json_t *root, void *arg)
{
	struct gateway_state *to = arg;
	json_t *list = json_object_get(root, "set"), *one;
	int rc = 0;
	size_t i;

	if (!json_is_array(list))
		return -EINVAL;
	to->list = calloc(json_array_size(list) + 1, sizeof(*to->list));
	if (!to->list)
		return -ENOMEM;
	json_array_foreach(list, i, one)
	{
		const char *key = json_string_value(json_object_get(one, "key"));
		const char *value = json_string_value(json_object_get(one, "value"));

		if (rc == 0)
			rc = key && value ? add(to->list, &to->n, key, value) : -EINVAL;
	}
	if (rc < 0) {
		state_free(to->list, to->n);
		*to = (struct gateway_state){0};
	}
	return rc;
}

int state_read(
	const char *folder, struct gateway_override **ret_list, size_t *ret_n, struct weir_err *err)
{
	struct gateway_state s = {0};
	int rc = state_file_load(folder, NAME, "overrides", read_overrides, &s, err);

	if (rc < 0)
		return rc;
	*ret_list = s.list;
	*ret_n = s.n;
	return 0;
}

/* ---- writing */

static json_t *make(const struct gateway_override *list, size_t n)
{
	json_t *set = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(set, json_pack("{s:s, s:s}", "key", list[i].key, "value",
						       list[i].value)) < 0) {
			json_decref(set);
			return NULL;
		}
	return json_pack("{s:o}", "set", set);
}

int state_write(
	const char *folder, const struct gateway_override *list, size_t n, struct weir_err *err)
{
	return state_file_save(folder, NAME, "overrides", make(list, n), err);
}
