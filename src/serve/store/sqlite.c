/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sqlite: the embedded store on the loop.
 *
 * METHOD  A thread beside the loop does the requests in order (sqlite-db.c). After a change, of this process or of another one,
 *         which touches the file, and when a lease ends, the watches ask for all changes since their
 *         last.
 */
#include "base/container.h"
#include "base/list.h"
#include "base/no-memory.h"
#include "serve/loop/aside.h"
#include "serve/store/sqlite-db.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#define END_WAIT (10 * WEIR_SEC) /* longer than a disk that works needs */

struct sqlite_store {
	struct store store; /* must be first */
	struct sqlite_db *db;
	struct aside *aside;
	struct job *jobs; /* posted, and not done */
	struct store_watch *watches;
	struct loop_fd changes; /* inotify */
	struct loop_timer expiry;
	bool closing;
};

struct job { /* a request, or a look for a watch */
	struct aside_job aside;
	struct sqlite_store *of;
	struct job *next, **link;
	struct store_watch *watch; /* NULL: a request */
	struct store_request request;
	uint64_t from;
	store_done *done;
	void *arg;
	/* result */
	bool ran;
	int rc;
	struct sqlite_answer answer;
	struct weir_err err;
};

struct store_watch {
	struct sqlite_store *of;
	struct store_watch *next, **link;
	char *prefix;
	uint64_t from;
	store_watched *fn;
	void *arg;
	bool busy, again; /* a look is under way; another must follow */
	bool left;        /* free it with the look */
	bool failed;
};

/* ---- a request is copied */

static void request_free(struct store_request *q)
{
	for (size_t i = 0; i < q->n_conditions; i++)
		free((char *)q->conditions[i].key);
	for (size_t i = 0; i < q->n_changes; i++) {
		free((char *)q->changes[i].key);
		free((void *)q->changes[i].value);
	}
	free((void *)q->conditions);
	free((void *)q->changes);
	free((char *)q->prefix);
	free((char *)q->after);
}

static bool copy_text(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static bool copy_change(struct store_change *to, const struct store_change *from)
{
	void *value = malloc(from->length + 1);

	*to = *from;
	to->value = value;
	if (value && from->length)
		memcpy(value, from->value, from->length);
	return copy_text(&to->key, from->key) && value;
}

static int request_copy(const struct store_request *from, struct store_request *to)
{
	struct store_condition *conditions = calloc(from->n_conditions + 1, sizeof(*conditions));
	struct store_change *changes = calloc(from->n_changes + 1, sizeof(*changes));
	bool ok = conditions && changes;

	*to = *from;
	to->conditions = conditions;
	to->changes = changes;
	to->n_conditions = to->n_changes = 0;
	to->after = NULL;
	ok &= copy_text(&to->prefix, from->prefix) && copy_text(&to->after, from->after);
	for (size_t i = 0; ok && i < from->n_conditions; i++, to->n_conditions++) {
		conditions[i] = from->conditions[i];
		ok = copy_text(&conditions[i].key, from->conditions[i].key);
	}
	for (size_t i = 0; ok && i < from->n_changes; i++, to->n_changes++)
		ok = copy_change(&changes[i], &from->changes[i]);
	return ok ? 0 : -ENOMEM;
}

/* ---- jobs */

static void look(struct store_watch *w);

static void job_free(struct job *j)
{
	request_free(&j->request);
	sqlite_answer_free(&j->answer);
	free(j);
}

static void watch_free(struct store_watch *w)
{
	free(w->prefix);
	free(w);
}

static void job_unlink(struct job *j)
{
	list_remove(j);
}

static void job_run(struct aside_job *a)
{
	struct job *j = container_of(a, struct job, aside);

	j->rc = j->watch ? sqlite_db_since(j->of->db, j->request.prefix, j->from, loop_boot_clock(),
				   &j->answer, &j->err)
			 : sqlite_db_ask(
				   j->of->db, &j->request, loop_boot_clock(), &j->answer, &j->err);
	j->ran = true;
}

static void expire_at(struct sqlite_store *s, weir_time end)
{
	loop_set(s->store.loop, &s->expiry,
		end == WEIR_NEVER ? end : loop_clock() + end - loop_boot_clock() + WEIR_MS);
}

static void look_all(struct sqlite_store *s)
{
	for (struct store_watch *w = s->watches; w; w = w->next)
		look(w);
}

static void expiry_due(struct loop_timer *t, weir_time now)
{
	look_all(container_of(t, struct sqlite_store, expiry));
}

/* Give the watch its events, and look again if there was a change meanwhile. */
static void seen(struct job *j)
{
	struct store_watch *w = j->watch;
	const struct sqlite_answer *a = &j->answer;
	struct store_event *events = calloc(a->result.n + 1, sizeof(*events));
	int rc = events ? j->rc : -ENOMEM;

	w->busy = false;
	for (size_t i = 0; rc == 0 && i < a->result.n; i++)
		events[i] = (struct store_event){a->keys[i], a->removed[i]};
	if (rc == 0)
		w->from = a->result.revision + 1;
	if (rc == -ESTALE) {
		list_remove(w);
	}
	if (rc < 0 || a->result.n || w->failed)
		w->fn(w->arg, rc, events, rc == 0 ? a->result.n : 0, a->result.revision, &j->err);
	free(events);
	if (rc == -ESTALE) {
		watch_free(w);
		return;
	}
	w->failed = rc < 0;
	if (rc < 0) /* look once more in a second */
		expire_at(w->of, loop_boot_clock() + WEIR_SEC);
	if (w->left)
		watch_free(w);
	else if (w->again)
		look(w);
}

static void job_done(struct aside_job *a)
{
	struct job *j = container_of(a, struct job, aside);
	struct sqlite_store *s = j->of;

	if (!s) { /* the store was closed meanwhile */
		job_free(j);
		return;
	}
	job_unlink(j);
	if (j->rc == 0)
		expire_at(s, j->answer.expiry);
	if (j->watch && j->watch->left)
		watch_free(j->watch);
	else if (j->watch)
		seen(j);
	else
		j->done(j->arg, j->rc, &j->answer.result, &j->err);
	if (!j->watch && j->rc == 0 && j->request.kind != STORE_LIST && !s->closing)
		look_all(s);
	job_free(j);
}

static void post(struct sqlite_store *s, struct job *j, void (*run)(struct aside_job *))
{
	j->of = s;
	j->aside.run = run;
	j->aside.done = job_done;
	list_push(s->jobs, j);
	aside_post(s->aside, &j->aside);
}

static void look(struct store_watch *w)
{
	struct job *j = w->busy || w->left ? NULL : calloc(1, sizeof(*j));

	w->again = w->busy;
	if (!j)
		return; /* without memory: with the next change */
	j->watch = w;
	j->from = w->from;
	j->request.prefix = strdup(w->prefix);
	if (!j->request.prefix) {
		free(j);
		return;
	}
	w->busy = true;
	post(w->of, j, job_run);
}

/* A request that could not be copied is answered from the loop, too. */
static void job_refuse(struct aside_job *a)
{
	struct job *j = container_of(a, struct job, aside);

	j->rc = no_memory(&j->err);
	j->ran = true;
}

static void sqlite_ask(
	struct store *store, const struct store_request *q, store_done *done, void *arg)
{
	struct sqlite_store *s = container_of(store, struct sqlite_store, store);
	struct job *j = calloc(1, sizeof(*j));
	struct weir_err err;

	if (!j) {
		done(arg, no_memory(&err), NULL, &err);
		return;
	}
	j->done = done;
	j->arg = arg;
	post(s, j, request_copy(q, &j->request) == 0 ? job_run : job_refuse);
}

/* ---- watches */

static struct store_watch *sqlite_watch(
	struct store *store, const char *prefix, uint64_t from, store_watched *fn, void *arg)
{
	struct sqlite_store *s = container_of(store, struct sqlite_store, store);
	struct store_watch *w = calloc(1, sizeof(*w));

	if (!w || !(w->prefix = strdup(prefix))) {
		free(w);
		return NULL;
	}
	w->of = s;
	w->from = from;
	w->fn = fn;
	w->arg = arg;
	list_push(s->watches, w);
	look(w);
	return w;
}

static void sqlite_unwatch(struct store_watch *w)
{
	list_remove(w);
	w->left = true;
	if (!w->busy)
		watch_free(w);
}

/* A file of the folder has changed: only the database's matter. */
static void changes_ready(struct loop_fd *f, uint32_t events)
{
	struct sqlite_store *s = container_of(f, struct sqlite_store, changes);
	_Alignas(struct inotify_event) char
		buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	ssize_t n = read(f->fd, buffer, sizeof(buffer));
	bool ours = false;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (void *)(buffer + at);

		ours |= e->mask & IN_Q_OVERFLOW || (e->len && strcmp(e->name, SQLITE_DB_NAME) == 0);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	if (ours)
		look_all(s);
}

/* ---- open and close */

static void sqlite_close(struct store *store)
{
	struct sqlite_store *s = container_of(store, struct sqlite_store, store);
	struct weir_err err;

	s->closing = true;
	loop_set(store->loop, &s->expiry, WEIR_NEVER);
	if (s->changes.fd >= 0) {
		loop_remove(store->loop, &s->changes);
		close(s->changes.fd);
	}
	if (!aside_free(s->aside, END_WAIT))
		return; /* the thread still uses it all */
	weir_err_set(&err, -ESHUTDOWN, "the store was closed");
	while (s->jobs) {
		struct job *j = s->jobs;

		job_unlink(j);
		if (j->watch)
			watch_free(j->watch);
		else
			j->done(j->arg, -ESHUTDOWN, NULL, &err);
		if (j->ran) /* its task is in the loop, which frees it */
			j->of = NULL;
		else
			job_free(j);
	}
	sqlite_db_close(s->db);
	free(s);
}

static int follow_folder(struct sqlite_store *s, const char *folder)
{
	s->changes.ready = changes_ready;
	s->changes.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->changes.fd < 0)
		return -errno;
	if (inotify_add_watch(s->changes.fd, folder, IN_ATTRIB) < 0)
		return -errno;
	return loop_add(s->store.loop, &s->changes, EPOLLIN);
}

static int sqlite_open(
	struct loop *l, const char *rest, struct store **ret_store, struct weir_err *err)
{
	struct sqlite_store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return no_memory(err);
	s->store = (struct store){.ops = &store_sqlite_ops, .loop = l};
	s->changes.fd = -1;
	s->expiry.due = expiry_due;
	rc = *rest ? sqlite_db_open(rest, &s->db, err)
		   : weir_err_set(err, -EINVAL, "sqlite: needs a folder, as sqlite:/var/lib/weir");
	if (rc == 0) {
		rc = aside_new(l, &s->aside);
		if (rc == 0)
			rc = follow_folder(s, rest);
		if (rc < 0)
			weir_err_set(err, rc, "store %s: %s", rest, strerror(-rc));
	}
	if (rc < 0) {
		if (s->changes.fd >= 0)
			close(s->changes.fd);
		aside_free(s->aside, 0);
		sqlite_db_close(s->db);
		free(s);
		return rc;
	}
	*ret_store = &s->store;
	return 0;
}

const struct store_ops store_sqlite_ops = {
	.name = "sqlite",
	.open = sqlite_open,
	.close = sqlite_close,
	.ask = sqlite_ask,
	.watch = sqlite_watch,
	.unwatch = sqlite_unwatch,
};
