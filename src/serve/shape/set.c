/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set: values of `weir set`, laid over the policy's: an operator's brake, which no broker outranks.
 *
 * METHOD  They are kept in the folder of state, with the time at which they end: "1 Gbit/s until 1763503600", in s since 1970.
 *         Each change, and each end, puts a new version of the policy in force.
 */
#include "serve/shape/impl.h"
#include "base/no-memory.h"
#include "policy/override/override.h"
#include "serve/http/json.h"
#include "serve/loop/log.h"
#include "serve/store/state.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNTIL " until "

/* ---- values */

/* Split "VALUE until N". Return the end, s since 1970; 0: none. */
static long long split(const char *text, char *ret_value, size_t len)
{
	const char *until = strstr(text, UNTIL);

	snprintf(ret_value, len, "%.*s", until ? (int)(until - text) : (int)strlen(text), text);
	return until ? strtoll(until + strlen(UNTIL), NULL, 10) : 0;
}

/* Turn "VALUE for TIME" into "VALUE until N", malloc'ed. */
static int with_end(const char *text, char **ret, struct weir_err *err)
{
	const char *span = strstr(text, " for ");
	size_t room = strlen(text) + 40;
	weir_time lasts = 0;
	char *to;

	if (strstr(text, UNTIL) || room > POLICY_OVERRIDE_TEXT)
		return weir_err_set(err, -EINVAL, "must be a value, as in 1 Gbit/s for 1h");
	if (span && (weir_units_time(span + 5, &lasts, err) < 0 || lasts < WEIR_SEC))
		return weir_err_set(err, -EINVAL,
			"'%s' must be a time of at least 1 s, as in 1 Gbit/s for 1h", span + 5);
	if (!(to = malloc(room)))
		return no_memory(err);
	if (span)
		snprintf(to, room, "%.*s%s%lld", (int)(span - text), text, UNTIL,
			(long long)time(NULL) + lasts / WEIR_SEC);
	else
		snprintf(to, room, "%s", text);
	*ret = to;
	return 0;
}

static int lay_one(struct weir_policy *p, const struct gateway_override *o, struct weir_err *err)
{
	char value[POLICY_OVERRIDE_TEXT];

	split(o->value, value, sizeof(value));
	return policy_override_net(p, o->key, value, err);
}

/* ---- the policy with them */

/* Make a copy of `base` with a list laid over it. Strict: refuse what does not fit; else leave it out. */
static int lay(const struct weir_policy *base, const struct gateway_override *list, size_t n,
	bool strict, struct weir_policy **ret, struct weir_err *err)
{
	struct weir_policy *p;
	int r = 0;

	if (policy_copy(base, &p) < 0)
		return no_memory(err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = lay_one(p, &list[i], err);
		if (r == 0 || r == -ENOMEM || strict)
			continue;
		log_event(LOG_LEVEL_WARNING, "set-left-out", "key", list[i].key, "why", err->text,
			NULL);
		r = 0;
	}
	if (r == 0)
		r = policy_override_check(p, NULL, err);
	if (r) {
		weir_policy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int shaper_set_lay(struct shaper *s, const struct weir_policy *base, struct weir_policy **ret,
	struct weir_err *err)
{
	int r = lay(base, s->set, s->n_set, false, ret, err);

	/* The file alone was right. */
	return r == -EINVAL ? lay(base, NULL, 0, true, ret, err) : r;
}

int shaper_set_load(struct shaper *s, struct weir_err *err)
{
	return state_read(s->state.folder, &s->set, &s->n_set, err);
}

/* Put another list in force, which belongs to the shaper from now on, also on error. */
static int replace(struct shaper *s, struct gateway_override *list, size_t n, bool strict,
	struct weir_err *err)
{
	struct weir_policy *p;
	struct weir_err again;
	int r = lay(s->base, list, n, strict, &p, err);

	if (r == 0 && (r = state_write(s->state.folder, list, n, err)))
		weir_policy_free(p);
	else if (r == 0 && (r = shaper_change_to(s, p, err)))
		state_write(s->state.folder, s->set, s->n_set, &again);
	if (r) {
		state_free(list, n);
		return r;
	}
	state_free(s->set, s->n_set);
	s->set = list;
	s->n_set = n;
	return 0;
}

static const struct gateway_override *find(const struct shaper *s, const char *key)
{
	for (size_t i = 0; i < s->n_set; i++)
		if (strcmp(s->set[i].key, key) == 0)
			return &s->set[i];
	return NULL;
}

/* Set a key, or with NULL remove it. */
static int change(struct shaper *s, const char *key, const char *text, struct weir_err *err)
{
	struct gateway_override *list;
	char *value = NULL;
	size_t n;
	int r = text ? with_end(text, &value, err) : 0;

	if (r)
		return r;
	if (!text && !find(s, key))
		return weir_err_set(err, -ENOENT, "%s is not set", key);
	if (state_copy(s->set, s->n_set, key, value, &list, &n) < 0)
		r = no_memory(err);
	free(value);
	return r ? r : replace(s, list, n, text != NULL, err);
}

void shaper_set_end(struct shaper *s)
{
	char value[POLICY_OVERRIDE_TEXT];
	long long now = time(NULL), until;
	struct weir_err err;

	for (size_t i = 0; i < s->n_set; i++) {
		until = split(s->set[i].value, value, sizeof(value));
		if (!until || now < until)
			continue;
		log_event(LOG_LEVEL_INFO, "set-ended", "key", s->set[i].key, NULL);
		if (change(s, s->set[i].key, NULL, &err) < 0)
			log_event(LOG_LEVEL_ERROR, "set", "why", err.text, NULL);
		return;
	}
}

void shaper_set_free(struct shaper *s)
{
	state_free(s->set, s->n_set);
}

/* ---- the API */

json_t *shaper_set_json(const struct shaper *s)
{
	json_t *all = json_array();
	char value[POLICY_OVERRIDE_TEXT];

	for (size_t i = 0; i < s->n_set; i++) {
		long long until = split(s->set[i].value, value, sizeof(value)), now = time(NULL);
		json_t *j = json_pack("{s:s, s:s}", "key", s->set[i].key, "value", value);

		if (until)
			json_object_set_new(
				j, "left_s", json_integer(until > now ? until - now : 0));
		json_array_append_new(all, j);
	}
	return all;
}

static void give(const struct shaper *s, const char *key, int r, const struct weir_err *err,
	struct http_reply *ret)
{
	const struct gateway_override *o = find(s, key);
	json_t *notes = json_array();

	if (r) {
		json_decref(notes);
		http_json_fail(ret, r == -ENOENT ? 404 : r == -EINVAL ? 400 : 500, err->text);
		return;
	}
	if (o)
		json_array_append_new(notes, json_sprintf("%s is %s", key, o->value));
	http_json_give(ret, 200, json_pack("{s:o}", "notes", notes));
}

static void set(struct shaper *s, struct http_request *q, const char *value, struct http_reply *ret)
{
	const char *key = q->path + strlen(q->route->path);
	struct weir_err err;

	give(s, key, change(s, key, value, &err), &err, ret);
}

void shaper_put_set(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	set(s, q, q->body, ret);
}

void shaper_delete_set(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	set(s, q, NULL, ret);
}

void shaper_get_policy(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	http_json_give(ret, 200, json_pack("{s:o}", "overrides", shaper_set_json(s)));
}
