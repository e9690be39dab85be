/* SPDX-License-Identifier: BSD-3-Clause */
/* member-first: the version with which a member starts, from the store or from its copy. */
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include "serve/member/member-impl.h"
#include "serve/member/publish.h"
#include "serve/store/state-file.h"
#include "serve/store/state.h"
#include "serve/store/wait.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY "version.json"

char *member_text(const char *local)
{
	char *text;

	return asprintf(&text, "%s\ntenants: \"%s\"\n", local, MEMBER_TENANTS) < 0 ? NULL : text;
}

/* ---- the copy */

void member_keep(const char *state, const struct versions_text *v)
{
	char *record = record_write(&v->record);
	json_t *j = record ? json_pack("{s:s, s:s}", "record", record, "text", v->text) : NULL;
	struct weir_err err;

	free(record);
	if (state && state_file_save(state, COPY, "the version in force", j, &err) < 0)
		log_event(LOG_LEVEL_WARNING, "version-not-kept", "why", err.text, NULL);
	else if (!state)
		json_decref(j);
}

static int read_copy(json_t *root, void *arg)
{
	struct versions_text *v = arg;
	const char *record = json_string_value(json_object_get(root, "record"));
	const char *text = json_string_value(json_object_get(root, "text"));
	int rc = record && text ? record_read(record, strlen(record), &v->record) : -EINVAL;

	if (rc == 0 && strlen(text) != record_length(&v->record))
		rc = -EINVAL;
	if (rc == 0 && !(v->text = strdup(text)))
		rc = -ENOMEM;
	if (rc < 0)
		versions_text_free(v);
	return rc == -EPROTO ? -EINVAL : rc;
}

/* ---- the first version */

struct first {
	struct store_wait call;
	const struct member_options *o;
	struct loop_timer wait;
	struct versions_text v;
	bool done;
};

static void first_came(void *arg, int rc, struct versions_text *v, const struct weir_err *err)
{
	struct first *f = arg;

	if (f->done)
		return;
	f->done = true;
	if (rc == 0)
		f->v = *v;
	store_wait_end(&f->call, rc, err);
}

static void first_late(struct loop_timer *t, weir_time now)
{
	struct first *f = container_of(t, struct first, wait);
	struct weir_err err;

	weir_err_set(&err, -EAGAIN, "no answer in time");
	first_came(f, -EAGAIN, NULL, &err);
}

static void name_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct first *f = arg;
	char instance[PIECES_DIGEST];
	struct weir_err why;

	if (f->done)
		return;
	publish_instance(f->o->file, instance);
	if (rc == 0 && a->n)
		rc = publish_check(&a->keys[0], instance, &why), err = &why;
	if (rc < 0)
		first_came(f, rc, NULL, err);
	else
		versions_read(f->call.store, 0, NULL, false, first_came, f);
}

/* Look whether another member has the name. */
static void ask_name(struct first *f)
{
	struct store_request q = {.kind = STORE_LIST, .exact = true};
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), PUBLISH_MEMBERS "%s", f->o->name);
	q.prefix = key;
	store_ask(f->call.store, &q, name_came, f);
}

static void cluster_came(
	void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct first *f = arg;
	struct weir_err why;

	if (f->done)
		return;
	if (rc == 0)
		rc = token_check(f->o->token, store_name(f->call.store), a, &why), err = &why;
	if (rc < 0)
		first_came(f, rc, NULL, err);
	else if (f->o->name)
		ask_name(f);
	else
		versions_read(f->call.store, 0, NULL, false, first_came, f);
}

static int ask_first(const struct member_options *o, weir_time wait, struct first *f)
{
	struct store_request q = {.kind = STORE_LIST, .prefix = TOKEN_KEY, .exact = true};
	int rc = store_wait_open(&f->call, o->token->store, &f->call.err);

	if (rc < 0)
		return rc;
	f->o = o;
	f->wait.due = first_late;
	loop_set(f->call.loop, &f->wait, loop_clock() + wait);
	store_ask(f->call.store, &q, cluster_came, f);
	rc = store_wait(&f->call);
	f->done = true;
	loop_set(f->call.loop, &f->wait, WEIR_NEVER);
	store_wait_close(&f->call);
	return rc;
}

/* The values that were set are the gateway's own from its start on. */
static int keep_sets(const char *state, const struct record *r, struct weir_err *err)
{
	struct gateway_override *list = calloc(r->n_sets + 1, sizeof(*list));
	size_t n = 0;
	int rc;

	if (!list)
		return no_memory(err);
	for (size_t i = 0; i < r->n_sets; i++)
		if (!record_ended(&r->sets[i], loop_date()))
			list[n++] = (struct gateway_override){r->sets[i].key, r->sets[i].value};
	rc = state_write(state, list, n, err);
	free(list);
	return rc;
}

int member_first(const struct member_options *o, weir_time wait, struct versions_text *ret,
	struct weir_err *err)
{
	struct first f = {.done = false};
	struct versions_text copy = {0};
	int rc = ask_first(o, wait, &f);

	if (rc < 0 && rc != -ENOENT && rc != -EINVAL && rc != -ENOMEM && o->state &&
		state_file_load(o->state, COPY, "versions", read_copy, &copy, err) == 0 &&
		copy.text) {
		log_event(LOG_LEVEL_WARNING, "store-lost", "why", f.call.err.text, "now",
			"starting with the copy of the last version", NULL);
		f.v = copy;
		rc = 0;
	}
	if (rc == 0 && o->state && !o->bare)
		rc = keep_sets(o->state, &f.v.record, &f.call.err);
	if (rc < 0) {
		versions_text_free(&f.v);
		*err = f.call.err;
		return rc;
	}
	*ret = f.v;
	return 0;
}
