/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/member/token.h"
#include "base/no-memory.h"
#include <jansson.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID 16 /* bytes of an id */

void token_free(struct token *t)
{
	free(t->cluster);
	free(t->id);
	free(t->store);
	*t = (struct token){0};
}

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	return n && n <= 48 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

/* A cluster has its own part of etcd, unless the name of the store states one. */
static int copy_store(const char *cluster, const char *store, char **ret)
{
	if (strncmp(store, "etcd:", 5) != 0 || strstr(store, "prefix=")) {
		*ret = strdup(store);
		return *ret ? 0 : -ENOMEM;
	}
	return asprintf(ret, "%s%cprefix=weir/%s", store, strchr(store, '?') ? '&' : '?', cluster) <
			       0
		       ? -ENOMEM
		       : 0;
}

int token_new(const char *cluster, const char *store, struct token *ret, struct weir_err *err)
{
	unsigned char bytes[ID];
	struct token t = {0};

	if (!is_name(cluster))
		return weir_err_set(err, -EINVAL,
			"the name of a cluster has up to 48 letters, digits, '-', '_' and '.'");
	randombytes_buf(bytes, sizeof(bytes));
	t.cluster = strdup(cluster);
	t.id = malloc(2 * ID + 1);
	if (t.id)
		sodium_bin2hex(t.id, 2 * ID + 1, bytes, sizeof(bytes));
	if (!t.cluster || !t.id || copy_store(cluster, store, &t.store) < 0) {
		token_free(&t);
		return no_memory(err);
	}
	*ret = t;
	return 0;
}

char *token_write(const struct token *t)
{
	char *text;

	return asprintf(&text,
		       "# Join token of a cluster of Weir: weir serve --join THIS-FILE --local "
		       "FILE\n"
		       "cluster: %s\nid: %s\nstore: %s\n",
		       t->cluster, t->id, t->store) < 0
		       ? NULL
		       : text;
}

char *token_record(const struct token *t)
{
	json_t *j = json_pack("{s:s, s:s}", "name", t->cluster, "id", t->id);
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	return text;
}

static int read_line(struct token *t, char *line)
{
	char *value = strstr(line, ": "), **to;

	if (!value)
		return -EINVAL;
	*value = 0;
	value += 2;
	to = strcmp(line, "cluster") == 0 ? &t->cluster
	     : strcmp(line, "id") == 0    ? &t->id
	     : strcmp(line, "store") == 0 ? &t->store
					  : NULL;
	if (!to || *to || !*value)
		return -EINVAL;
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

int token_read(const char *text, const char *name, struct token *ret, struct weir_err *err)
{
	char *copy = strdup(text), *rest = copy, *line;
	struct token t = {0};
	int rc = copy ? 0 : -ENOMEM;

	while (rc == 0 && (line = strsep(&rest, "\r\n")))
		if (*line && *line != '#')
			rc = read_line(&t, line);
	free(copy);
	if (rc == 0 && (!t.cluster || !t.id || !t.store))
		rc = -EINVAL;
	if (rc < 0)
		token_free(&t);
	if (rc == -EINVAL)
		return weir_err_set(
			err, rc, "%s: not a token of weir cluster init (cluster, id, store)", name);
	if (rc < 0)
		return no_memory(err);
	*ret = t;
	return 0;
}

static int no_cluster(const char *store, struct weir_err *err)
{
	return weir_err_set(
		err, -EINVAL, "there is no cluster in %s; use weir cluster init", store);
}

int token_check(const struct token *t, const char *store, const struct store_result *a,
	struct weir_err *err)
{
	json_t *j = a->n ? json_loads(a->keys[0].value, 0, NULL) : NULL;
	const char *id = json_string_value(json_object_get(j, "id"));
	const char *name = json_string_value(json_object_get(j, "name"));
	int rc = 0;

	if (a->n == 0)
		rc = no_cluster(store, err);
	else if (!id || strcmp(id, t->id) != 0)
		rc = weir_err_set(err, -EINVAL,
			"the store is that of another cluster (%s), and not of %s, which made the "
			"token",
			name ? name : "?", t->cluster);
	json_decref(j);
	return rc;
}

/* ---- open */

struct opening {
	struct store_wait *wait;
	const struct token *token;
};

static void cluster_came(
	void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct opening *o = arg;
	struct weir_err why;

	if (rc == 0)
		rc = token_check(o->token, store_name(o->wait->store), a, &why), err = &why;
	store_wait_end(o->wait, rc, err);
}

int token_open(const struct token *t, bool stale, struct store_wait *w, struct weir_err *err)
{
	struct store_request q = {
		.kind = STORE_LIST, .prefix = TOKEN_KEY, .exact = true, .stale = stale};
	struct opening o = {w, t};
	int rc;

	if (!store_made(t->store)) /* an embedded one, whose name has no options */
		return no_cluster(t->store, err);
	rc = store_wait_open(w, t->store, err);
	if (rc < 0)
		return rc;
	store_ask(w->store, &q, cluster_came, &o);
	rc = store_wait(w);
	if (rc < 0) {
		*err = w->err;
		store_wait_close(w);
	}
	return rc;
}
