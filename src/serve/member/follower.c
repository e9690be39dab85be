/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follower: follow, have it put in force, publish.
 *
 * METHOD  The newest version that was seen is `next`. While one is fetched or put in force, later ones only replace it.
 */
#include "serve/member/follower.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/aside.h"
#include "serve/loop/log.h"
#include "serve/member/member-impl.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LATER     (2 * WEIR_SEC) /* after a fetch that failed */
#define AGAIN     (60 * WEIR_SEC) /* after a version that was refused: this machine may have changed */
#define KEEP_WAIT (2 * WEIR_SEC)    /* at the end, for the copy */
#define FAR       (3600 * WEIR_SEC) /* the clock may be set meanwhile */

struct follower {
	struct loop *loop;
	struct store *store;
	struct publish *publish;
	struct aside *aside;
	char *state, *name, *local;
	void (*put)(void *arg, const struct versions_text *v);
	void *arg;
	struct store_follow follow;
	struct versions_text in_force, offer;
	struct record next; /* number 0: none */
	bool busy;          /* `offer` is fetched or put in force */
	bool refused;       /* `next` was refused; it is tried again later */
	bool stopping;
	pthread_mutex_t lock; /* of the text that is offered, which another thread reads */
	bool offered;
	struct loop_timer later, ends;
};

char *follower_text(struct follower *m)
{
	char *text;

	pthread_mutex_lock(&m->lock);
	text = strdup(m->offered ? m->offer.text : m->in_force.text);
	pthread_mutex_unlock(&m->lock);
	return text;
}

int follower_read(void *arg, const char *from, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err)
{
	struct follower_files *m = arg;
	char *local;
	int rc;

	if (strcmp(name, MEMBER_TENANTS) == 0) {
		*ret_text = follower_text(m->follower);
		*ret_len = *ret_text ? strlen(*ret_text) : 0;
		return *ret_text ? 0 : no_memory(err);
	}
	rc = m->reader(m->reader_arg, from, name, &local, ret_len, err);
	if (rc < 0 || strcmp(name, m->file) != 0) {
		*ret_text = rc < 0 ? *ret_text : local;
		return rc;
	}
	*ret_text = member_text(local);
	free(local);
	*ret_len = *ret_text ? strlen(*ret_text) : 0;
	return *ret_text ? 0 : no_memory(err);
}

/* ---- the copy: the disk may be slow */

struct keeping {
	struct aside_job job;
	char *state;
	struct versions_text v;
};

static void keep_aside(struct aside_job *j)
{
	struct keeping *k = container_of(j, struct keeping, job);

	member_keep(k->state, &k->v);
	versions_text_free(&k->v);
	free(k->state);
	free(k);
}

/* Keep a copy of the version in force. */
static void keep(struct follower *m)
{
	struct keeping *k = m->state ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return;
	k->state = strdup(m->state);
	k->v.text = strdup(m->in_force.text);
	if (k->state && k->v.text && record_copy(&m->in_force.record, &k->v.record) == 0) {
		k->job.run = keep_aside;
		aside_post(m->aside, &k->job);
		return;
	}
	versions_text_free(&k->v);
	free(k->state);
	free(k);
}

/* ---- put in force */

static void consider(struct follower *m);

static void set_ends(struct follower *m)
{
	double next = 0, now = loop_date();
	weir_time in;

	for (size_t i = 0; i < m->in_force.record.n_sets; i++) {
		double until = m->in_force.record.sets[i].until;

		if (until > now && (next == 0 || until < next))
			next = until;
	}
	in = next == 0 || next - now > 3600 ? FAR : (weir_time)((next - now) * 1e9) + WEIR_MS;
	loop_set(m->loop, &m->ends, next == 0 ? WEIR_NEVER : loop_clock() + in);
}

void follower_done(struct follower *m, int rc, const struct weir_err *err)
{
	char number[24];

	if (rc == -ESHUTDOWN || m->stopping)
		return;
	log_number(number, (double)m->offer.record.number);
	pthread_mutex_lock(&m->lock);
	m->offered = false;
	if (rc == 0) {
		struct versions_text old = m->in_force;

		m->in_force = m->offer;
		m->offer = old;
	}
	pthread_mutex_unlock(&m->lock);
	if (rc == 0) {
		log_event(LOG_LEVEL_INFO, "version", "number", number, "user",
			m->in_force.record.user, "message", m->in_force.record.message, NULL);
		keep(m);
		publish_version(m->publish, &m->in_force.record, 0, NULL);
		set_ends(m);
	} else {
		log_event(LOG_LEVEL_ERROR, "version-refused", "number", number, "why", err->text,
			NULL);
		publish_version(m->publish, &m->in_force.record, m->offer.record.number, err->text);
		m->refused = strcmp(m->next.id, m->offer.record.id) == 0;
		loop_set(m->loop, &m->later, loop_clock() + AGAIN);
	}
	versions_text_free(&m->offer);
	m->busy = false;
	consider(m);
}

static void put_in_force(struct follower *m)
{
	pthread_mutex_lock(&m->lock);
	m->offered = true;
	pthread_mutex_unlock(&m->lock);
	m->put(m->arg, &m->offer);
}

static void fetched(void *arg, int rc, struct versions_text *v, const struct weir_err *err)
{
	struct follower *m = arg;

	if (rc == -ESHUTDOWN || m->stopping) {
		if (rc == 0)
			versions_text_free(v);
		return;
	}
	if (rc == 0) {
		m->offer = *v;
		put_in_force(m);
		return;
	}
	log_event(LOG_LEVEL_WARNING, "version-not-read", "why", err->text, NULL);
	publish_version(m->publish, &m->in_force.record, m->next.number, err->text);
	m->busy = false;
	loop_set(m->loop, &m->later, loop_clock() + LATER);
}

/* Fetch the next version, unless one is on its way. */
static void consider(struct follower *m)
{
	if (m->busy || m->stopping || m->refused || !m->next.number)
		return;
	if (strcmp(m->next.id, m->in_force.record.id) == 0) {
		record_free(&m->next);
		return;
	}
	m->busy = true;
	versions_fetch(m->store, &m->next, &m->in_force, fetched, m);
}

static void later_due(struct loop_timer *t, weir_time now)
{
	struct follower *m = container_of(t, struct follower, later);

	m->refused = false;
	consider(m);
}

/* Some value has ended: put the same version in force again, without it. */
static void ends_due(struct loop_timer *t, weir_time now)
{
	struct follower *m = container_of(t, struct follower, ends);

	if (m->busy) {
		loop_set(m->loop, &m->ends, loop_clock() + WEIR_SEC);
		return;
	}
	if (record_copy(&m->in_force.record, &m->offer.record) < 0 ||
		!(m->offer.text = strdup(m->in_force.text))) {
		versions_text_free(&m->offer);
		loop_set(m->loop, &m->ends, loop_clock() + WEIR_SEC);
		return;
	}
	m->busy = true;
	put_in_force(m);
}

/* ---- follow */

static void take_head(struct follower *m, const struct store_key *k)
{
	struct record r = {0};
	struct weir_err err;

	if (record_read(k->value, k->length, &r) < 0) {
		weir_err_set(&err, -EPROTO, "the record of the newest version is damaged");
	} else if (r.number < m->in_force.record.number) {
		weir_err_set(&err, -EPROTO,
			"the store has version %llu, and %llu is in force: was the store restored "
			"from "
			"a backup? Apply a policy again",
			(unsigned long long)r.number,
			(unsigned long long)m->in_force.record.number);
	} else {
		record_free(&m->next);
		m->next = r;
		m->refused = false;
		consider(m);
		return;
	}
	log_event(LOG_LEVEL_ERROR, "version-refused", "why", err.text, NULL);
	publish_version(m->publish, &m->in_force.record, r.number, err.text);
	record_free(&r);
}

static void seen(struct store_follow *f, bool fresh, const struct store_event *events, size_t n,
	uint64_t revision)
{
	struct follower *m = container_of(f, struct follower, follow);

	for (size_t i = 0; i < n; i++)
		if (!events[i].removed && strcmp(events[i].key.key, VERSIONS_HEAD) == 0)
			take_head(m, &events[i].key);
}

static void trouble(struct store_follow *f, const char *why)
{
	if (why)
		log_event(LOG_LEVEL_WARNING, "store-lost", "why", why, "now",
			"the version in force stays", NULL);
	else
		log_event(LOG_LEVEL_INFO, "store-back", NULL);
}

/* ---- start and end */

int follower_new(const struct follower_options *o, struct versions_text *v,
	struct follower **ret_follower, struct weir_err *err)
{
	struct follower *m = calloc(1, sizeof(*m));
	int rc = m ? 0 : no_memory(err);

	if (rc < 0) {
		versions_text_free(v);
		return rc;
	}
	m->loop = o->loop;
	m->put = o->put;
	m->arg = o->arg;
	m->in_force = *v;
	*v = (struct versions_text){0};
	pthread_mutex_init(&m->lock, NULL);
	m->name = strdup(o->name);
	m->local = strdup(o->local);
	m->state = o->state ? strdup(o->state) : NULL;
	if (!m->name || !m->local || (o->state && !m->state) || aside_new(o->loop, &m->aside) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = store_open(o->loop, o->store, &m->store, err);
	if (rc == 0)
		rc = publish_start(o->loop, m->store,
			&(struct publish_options){
				o->members, o->known, o->name, o->local, o->instance},
			&m->publish, err);
	if (rc < 0) {
		follower_stop(m);
		follower_free(m);
		return rc;
	}
	m->later.due = later_due;
	m->ends.due = ends_due;
	m->follow =
		(struct store_follow){.prefix = VERSIONS_HEAD, .seen = seen, .trouble = trouble};
	*ret_follower = m;
	return 0;
}

void follower_start(struct follower *m)
{
	keep(m);
	set_ends(m);
	publish_version(m->publish, &m->in_force.record, 0, NULL);
	store_follow(m->store, &m->follow);
}

void follower_stop(struct follower *m)
{
	if (!m)
		return;
	m->stopping = true;
	loop_set(m->loop, &m->later, WEIR_NEVER);
	loop_set(m->loop, &m->ends, WEIR_NEVER);
	publish_stop(m->publish);
	store_close(m->store);
	if (!aside_free(m->aside, KEEP_WAIT))
		log_event(LOG_LEVEL_WARNING, "version-not-kept", "why", "the disk does not answer",
			NULL);
	m->aside = NULL;
	m->store = NULL;
	m->publish = NULL;
}

void follower_free(struct follower *m)
{
	if (!m)
		return;
	versions_text_free(&m->in_force);
	versions_text_free(&m->offer);
	record_free(&m->next);
	pthread_mutex_destroy(&m->lock);
	free(m->name);
	free(m->local);
	free(m->state);
	free(m);
}

const struct versions_text *follower_in_force(const struct follower *m)
{
	return &m->in_force;
}

struct store *follower_store(const struct follower *m)
{
	return m->store;
}

struct publish *follower_publish(const struct follower *m)
{
	return m->publish;
}

const char *follower_name(const struct follower *m)
{
	return m->name;
}

const char *follower_local(const struct follower *m)
{
	return m->local;
}
