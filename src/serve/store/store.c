/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: the kinds by name, and followers.
 *
 * METHOD  A follower lists its prefix, page by page, and then watches from the revision of the first page: a key that changed
 *         between two pages is seen again, with its later value.
 */
#include "base/array.h"
#include "base/container.h"
#include "base/list.h"
#include "base/no-memory.h"
#include "serve/store/sqlite-db.h"
#include "serve/store/store-impl.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY WEIR_SEC /* after a list that failed */

static const struct store_ops *const kinds[] = {&store_sqlite_ops, &store_etcd_ops};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

char *store_shown(const char *name)
{
	char *shown = strndup(name, strcspn(name, "?")), *at;

	if (!shown || strncmp(shown, "sqlite:", 7) == 0)
		return shown;
	at = strstr(shown, "://");
	at = at ? at + 3 : shown;
	while (at) { /* a password may have any of the other separators */
		char *next = strstr(at, "://");
		char *end = memrchr(at, '@', next ? (size_t)(next - at) : strlen(at));

		if (end)
			memmove(at, end + 1, strlen(end));
		next = strstr(at, "://");
		at = next ? next + 3 : NULL;
	}
	return shown;
}

int store_open(struct loop *l, const char *name, struct store **ret_store, struct weir_err *err)
{
	char *shown;

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = strlen(kinds[i]->name);
		struct store *s;
		int rc;

		if (strncmp(name, kinds[i]->name, n) != 0 || name[n] != ':')
			continue;
		rc = kinds[i]->open(l, name + n + 1, &s, err);
		if (rc < 0)
			return rc;
		s->shown = store_shown(name);
		if (!s->shown) {
			store_close(s);
			return no_memory(err);
		}
		*ret_store = s;
		return 0;
	}
	shown = store_shown(name);
	if (!shown)
		return no_memory(err);
	weir_err_set(err, -EINVAL,
		"'%s' is no store; use sqlite:FOLDER or etcd:https://HOST:2379,…", shown);
	free(shown);
	return -EINVAL;
}

bool store_made(const char *name)
{
	static const char embedded[] = "sqlite:";
	char file[PATH_MAX];

	if (strncmp(name, embedded, sizeof(embedded) - 1) != 0)
		return true;
	snprintf(file, sizeof(file), "%s/" SQLITE_DB_NAME, name + sizeof(embedded) - 1);
	return access(file, F_OK) == 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	while (s->follows)
		store_unfollow(s->follows);
	free(s->shown);
	s->shown = NULL;
	s->ops->close(s);
}

const char *store_name(const struct store *s)
{
	return s->shown;
}

void store_ask(struct store *s, const struct store_request *q, store_done *done, void *arg)
{
	s->ops->ask(s, q, done, arg);
}

/* ---- follow */

struct store_gather { /* the pages so far; freed when the answer to the last request comes */
	struct store_follow *follow; /* NULL: the follower has left */
	struct store_event *events;
	size_t n, room;
	uint64_t revision;
};

static void gather_free(struct store_gather *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free((char *)g->events[i].key.key);
		free((void *)g->events[i].key.value);
	}
	free(g->events);
	free(g);
}

static int gather_add(struct store_gather *g, const struct store_key *k)
{
	struct store_event *e;

	if (array_grow(&g->events, &g->room, g->n + 1) < 0)
		return -ENOMEM;
	e = &g->events[g->n];
	*e = (struct store_event){.key = *k};
	e->key.key = strdup(k->key);
	e->key.value = malloc(k->length + 1);
	if (!e->key.key || !e->key.value) {
		free((char *)e->key.key);
		free((void *)e->key.value);
		return -ENOMEM;
	}
	memcpy((void *)e->key.value, k->value, k->length + 1);
	g->n++;
	return 0;
}

static void report(struct store_follow *f, const char *why)
{
	bool news = f->failed != (why != NULL);

	f->failed = why;
	if (news && f->trouble)
		f->trouble(f, why);
}

static void begin(struct store_follow *f);

static void retry_due(struct loop_timer *t, weir_time now)
{
	begin(container_of(t, struct store_follow, retry));
}

static void begin_later(struct store_follow *f, const char *why)
{
	report(f, why);
	f->retry.due = retry_due;
	loop_set(f->store->loop, &f->retry, loop_clock() + RETRY);
}

static void watched(void *arg, int rc, const struct store_event *events, size_t n,
	uint64_t revision, const struct weir_err *err)
{
	struct store_follow *f = arg;

	if (rc == -ESTALE) {
		f->watch = NULL; /* it has ended */
		begin(f);
		return;
	}
	report(f, rc < 0 ? err->text : NULL);
	if (rc == 0 && n)
		f->seen(f, false, events, n, revision);
}

static void list_page(struct store_gather *g);

static void end_list(struct store_gather *g)
{
	struct store_follow *f = g->follow;

	f->gather = NULL;
	f->watch = f->store->ops->watch(f->store, f->prefix, g->revision + 1, watched, f);
	if (!f->watch) {
		begin_later(f, "out of memory");
	} else {
		report(f, NULL);
		f->seen(f, true, g->events, g->n, g->revision);
	}
	gather_free(g);
}

static void listed(void *arg, int rc, const struct store_result *r, const struct weir_err *err)
{
	struct store_gather *g = arg;

	if (!g->follow) {
		gather_free(g);
		return;
	}
	if (rc == 0 && !g->revision)
		g->revision = r->revision;
	for (size_t i = 0; rc == 0 && i < r->n; i++)
		rc = gather_add(g, &r->keys[i]);
	if (rc < 0) {
		g->follow->gather = NULL;
		if (rc != -ESHUTDOWN)
			begin_later(g->follow, rc == -ENOMEM ? "out of memory" : err->text);
		gather_free(g);
	} else if (r->more) {
		list_page(g);
	} else {
		end_list(g);
	}
}

static void list_page(struct store_gather *g)
{
	struct store_request q = {.kind = STORE_LIST, .prefix = g->follow->prefix};

	q.after = g->n ? g->events[g->n - 1].key.key : NULL;
	store_ask(g->follow->store, &q, listed, g);
}

static void begin(struct store_follow *f)
{
	f->gather = calloc(1, sizeof(*f->gather));
	if (!f->gather) {
		begin_later(f, "out of memory");
		return;
	}
	f->gather->follow = f;
	list_page(f->gather);
}

void store_follow(struct store *s, struct store_follow *f)
{
	f->store = s;
	list_push(s->follows, f);
	begin(f);
}

void store_unfollow(struct store_follow *f)
{
	if (!f->store)
		return;
	if (f->gather)
		f->gather->follow = NULL;
	if (f->watch)
		f->store->ops->unwatch(f->watch);
	loop_set(f->store->loop, &f->retry, WEIR_NEVER);
	list_remove(f);
	f->gather = NULL;
	f->watch = NULL;
	f->store = NULL;
}
