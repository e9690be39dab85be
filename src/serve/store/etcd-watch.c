/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * etcd-watch: a stream of changes: one object of JSON per line.
 *
 * METHOD  The stream asks for a server with a leader, so that one that is cut off ends it. After its end the next server is
 *         asked for the revisions that follow the last one seen. A server that has forgotten these ends the watch: -ESTALE.
 */
#include "base/array.h"
#include "base/container.h"
#include "base/list.h"
#include "base/no-memory.h"
#include "serve/store/etcd-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MIN (100 * WEIR_MS)
#define AGAIN_MAX (2 * WEIR_SEC)

struct store_watch {
	struct fetch fetch;
	struct etcd_store *of;
	struct store_watch *next, **link;
	char *prefix, *url, *body;
	uint64_t from;
	store_watched *fn;
	void *arg;
	size_t server;
	struct loop_timer again;
	weir_time pause;
	bool waiting; /* for a token */
	bool stale;   /* it ends, from the timer */
	bool failed;
	char *text; /* lines that are not taken yet */
	size_t n, room;
	struct loop_timer lines;
	struct weir_err why; /* why the stream was ended from here; "": it was not */
};

static void connect_watch(struct store_watch *w);

static void watch_free(struct store_watch *w)
{
	fetch_cancel(&w->fetch);
	loop_set(w->of->store.loop, &w->again, WEIR_NEVER);
	loop_set(w->of->store.loop, &w->lines, WEIR_NEVER);
	list_remove(w);
	free(w->prefix);
	free(w->url);
	free(w->body);
	free(w->text);
	free(w);
}

/* ---- the end of a stream */

static void end_stale(struct store_watch *w)
{
	store_watched *fn = w->fn;
	void *arg = w->arg;
	struct weir_err err;

	weir_err_set(&err, -ESTALE, "the store has forgotten some changes");
	watch_free(w);
	fn(arg, -ESTALE, NULL, 0, 0, &err);
}

static void again_due(struct loop_timer *t, weir_time now)
{
	struct store_watch *w = container_of(t, struct store_watch, again);

	if (w->stale)
		end_stale(w);
	else
		connect_watch(w);
}

static void connect_later(struct store_watch *w, const struct weir_err *err)
{
	w->pause = w->pause ? 2 * w->pause : AGAIN_MIN;
	if (w->pause > AGAIN_MAX)
		w->pause = AGAIN_MAX;
	loop_set(w->of->store.loop, &w->again, loop_clock() + w->pause);
	w->failed = true;
	w->fn(w->arg, -EAGAIN, NULL, 0, 0, err);
}

/* ---- lines */

/* Return false if the stream has to end. */
static bool take_answer(struct store_watch *w, const struct etcd_answer *a)
{
	struct store_event *events = calloc(a->n + 1, sizeof(*events));

	if (!events)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		events[i] = (struct store_event){a->keys[i], a->removed[i]};
		if (a->keys[i].changed >= w->from)
			w->from = a->keys[i].changed + 1;
	}
	if (a->n || w->failed)
		w->fn(w->arg, 0, events, a->n, a->result.revision, NULL);
	w->failed = false;
	w->pause = 0;
	free(events);
	return true;
}

static void note_fault(struct store_watch *w, const json_t *root)
{
	struct etcd_store *s = w->of;
	struct etcd_fault fault;

	etcd_json_fault(root, &fault);
	if (etcd_fault(s, s->urls[w->server], 200, &fault, &w->why) == -EACCES && s->user) {
		free(s->token);
		s->token = NULL;
	}
}

static bool take_line(struct store_watch *w, const char *line, size_t n)
{
	struct etcd_store *s = w->of;
	json_t *root = json_loadb(line, n, 0, NULL);
	struct etcd_answer a = {0};
	bool more = false;
	int rc = -EPROTO;

	if (json_object_get(root, "error"))
		note_fault(w, root);
	else if (root && (rc = etcd_json_watched(s->space, root, &a)) == 0)
		rc = etcd_check(s, &a, s->urls[w->server], 0, &w->why);
	json_decref(root);
	if (rc == 0 && a.compacted) {
		w->stale = true;
	} else if (rc == 0 && a.cancelled) {
		weir_err_set(&w->why, -EAGAIN, "%s: %s", s->urls[w->server],
			a.reason[0] ? a.reason : "the watch was cancelled");
		if (strstr(a.reason, "auth token")) {
			free(s->token);
			s->token = NULL;
		}
	} else if (rc == 0) {
		more = take_answer(w, &a);
	} else if (!w->why.text[0]) {
		weir_err_set(&w->why, rc, "%s: not the answer of etcd's API, version 3",
			s->urls[w->server]);
	}
	etcd_answer_free(&a);
	return more;
}

/* Take the lines that are complete. Return false if the stream has to end. */
static bool take_lines(struct store_watch *w)
{
	size_t at = 0;
	bool more = true;
	char *end;

	while (more && (end = memchr(w->text + at, '\n', w->n - at))) {
		size_t n = (size_t)(end - w->text) - at;

		more = n == 0 || take_line(w, w->text + at, n);
		at += n + 1;
	}
	memmove(w->text, w->text + at, w->n - at);
	w->n -= at;
	return more;
}

/* libcurl must not be called from here: take the lines from the loop. */
static bool on_data(struct fetch *f, const char *bytes, size_t n)
{
	struct store_watch *w = container_of(f, struct store_watch, fetch);

	if (n > ETCD_BODY - w->n || array_grow(&w->text, &w->room, w->n + n) < 0)
		return false;
	memcpy(w->text + w->n, bytes, n);
	w->n += n;
	return loop_set(w->of->store.loop, &w->lines, loop_clock()) == 0;
}

/* The stream has ended, or has to. */
static void end_stream(struct store_watch *w, const struct weir_err *err)
{
	struct weir_err why = w->why.text[0] ? w->why : *err;

	fetch_cancel(&w->fetch);
	loop_set(w->of->store.loop, &w->lines, WEIR_NEVER);
	if (w->stale) {
		end_stale(w);
		return;
	}
	etcd_next(w->of, w->server);
	connect_later(w, &why);
}

static void lines_due(struct loop_timer *t, weir_time now)
{
	struct store_watch *w = container_of(t, struct store_watch, lines);
	struct weir_err err;

	no_memory(&err); /* unless there is another reason */
	if (!take_lines(w))
		end_stream(w, &err);
}

static void fetched(struct fetch *f, int rc, unsigned status, const char *text)
{
	struct store_watch *w = container_of(f, struct store_watch, fetch);
	const char *url = w->of->urls[w->server];
	struct weir_err err;

	if (w->n)
		take_lines(w);
	if (rc < 0)
		weir_err_set(&err, rc, "%s: %s", url, text);
	else
		weir_err_set(&err, -EAGAIN, "%s: the stream of changes has ended (HTTP status %u)",
			url, status);
	end_stream(w, &err);
}

/* ---- begin */

static void connect_watch(struct store_watch *w)
{
	static const char *const headers[] = {"Grpc-Metadata-hasleader: true", NULL};
	struct etcd_store *s = w->of;
	struct weir_err err;
	size_t length;

	w->waiting = s->user && !s->token;
	if (w->waiting) {
		etcd_log_in(s);
		return;
	}
	free(w->url);
	free(w->body);
	w->url = w->body = NULL;
	w->n = 0;
	w->why.text[0] = 0;
	w->server = s->at;
	if (asprintf(&w->url, "%s/v3/watch", s->reach[w->server]) < 0)
		w->url = NULL;
	if (!w->url || etcd_json_watch(s->space, w->prefix, w->from, &w->body, &length) < 0) {
		no_memory(&err);
		connect_later(w, &err);
		return;
	}
	w->fetch.url = w->url;
	w->fetch.authorization = s->token;
	w->fetch.headers = headers;
	w->fetch.body = w->body;
	w->fetch.length = length;
	w->fetch.connect = ETCD_CONNECT;
	w->fetch.whole = WEIR_NEVER;
	w->fetch.tls = &s->tls;
	w->fetch.data = on_data;
	w->fetch.done = fetched;
	if (fetch_start(s->fetcher, &w->fetch) < 0) {
		no_memory(&err);
		connect_later(w, &err);
	}
}

void etcd_watches_logged_in(struct etcd_store *s, const struct weir_err *err)
{
	for (struct store_watch *w = s->watches, *next; w; w = next) {
		next = w->next;
		if (!w->waiting)
			continue;
		w->waiting = false;
		if (err)
			connect_later(w, err);
		else
			connect_watch(w);
	}
}

void etcd_watches_stale(struct etcd_store *s)
{
	for (struct store_watch *w = s->watches; w; w = w->next) {
		fetch_cancel(&w->fetch);
		loop_set(s->store.loop, &w->lines, WEIR_NEVER);
		w->stale = true;
		w->waiting = false;
		loop_set(s->store.loop, &w->again, loop_clock());
	}
}

struct store_watch *etcd_watch(
	struct store *store, const char *prefix, uint64_t from, store_watched *fn, void *arg)
{
	struct etcd_store *s = container_of(store, struct etcd_store, store);
	struct store_watch *w = calloc(1, sizeof(*w));

	if (!w || !(w->prefix = strdup(prefix))) {
		free(w);
		return NULL;
	}
	w->of = s;
	w->from = from;
	w->fn = fn;
	w->arg = arg;
	w->again.due = again_due;
	w->lines.due = lines_due;
	list_push(s->watches, w);
	loop_set(s->store.loop, &w->again, loop_clock()); /* connects from the loop */
	return w;
}

void etcd_unwatch(struct store_watch *w)
{
	watch_free(w);
}
