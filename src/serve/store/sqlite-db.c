/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sqlite-db: requests.
 *
 * METHOD  A key has one row, with the revision of its last change; a key that was removed has a row in `gone`, so that the
 *         changes since a revision are one query. Of these the last GONE are kept; `forgotten` is the highest revision
 *         that was dropped. A lease ends by CLOCK_BOOTTIME, and with the boot of the machine: each request first removes what
 *         has ended.
 */
#include "base/array.h"
#include "serve/store/sqlite-impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GONE  1000 /* keys that were removed */
#define LIMIT 100

/* ---- statements */

static void put_text(sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
}

static void put_number(sqlite3_stmt *s, int at, uint64_t n)
{
	sqlite3_bind_int64(s, at, (sqlite3_int64)n);
}

static int sqlite_run(struct sqlite_db *d, enum statement s)
{
	int code = sqlite_step(sqlite_bind(d, s));

	return code == SQLITE_DONE ? 0 : code;
}

/* Return 0 or SQLite's code; a row that is missing is 0. */
static int get_number(sqlite3_stmt *s, uint64_t *ret)
{
	int code = sqlite_step(s);

	if (code == SQLITE_DONE) {
		*ret = 0;
		return 0;
	}
	if (code != SQLITE_ROW)
		return code;
	*ret = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return 0;
}

static int meta(struct sqlite_db *d, const char *name, uint64_t *ret)
{
	sqlite3_stmt *s = sqlite_bind(d, META);

	put_text(s, 1, name);
	return get_number(s, ret);
}

static int set_meta(struct sqlite_db *d, const char *name, uint64_t value)
{
	put_text(sqlite_bind(d, SET_META), 1, name);
	put_number(d->all[SET_META], 2, value);
	return sqlite_run(d, SET_META);
}

/* ---- answers */

void sqlite_answer_free(struct sqlite_answer *a)
{
	for (size_t i = 0; i < a->result.n; i++) {
		free((char *)a->keys[i].key);
		free((void *)a->keys[i].value);
	}
	free(a->keys);
	free(a->removed);
	*a = (struct sqlite_answer){0};
}

/* Add the row of a statement. */
static int add(struct sqlite_answer *a, sqlite3_stmt *s, bool gone)
{
	bool valued = sqlite3_column_count(s) > 4;
	const char *key = (const char *)sqlite3_column_text(s, 0);
	const void *value = valued ? sqlite3_column_blob(s, 4) : NULL;
	size_t n = valued ? (size_t)sqlite3_column_bytes(s, 4) : 0, room = a->room;
	struct store_key *k;
	char *copy = malloc(n + 1);

	if (array_grow(&a->keys, &a->room, a->result.n + 1) < 0 || !key || !copy ||
		(a->room != room && array_resize(&a->removed, a->room) < 0)) {
		free(copy);
		return SQLITE_NOMEM;
	}
	if (n)
		memcpy(copy, value, n);
	copy[n] = 0;
	k = &a->keys[a->result.n];
	*k = (struct store_key){.key = strdup(key),
		.value = copy,
		.length = n,
		.created = (uint64_t)sqlite3_column_int64(s, 1),
		.changed = (uint64_t)sqlite3_column_int64(s, 2),
		.lease = (uint64_t)sqlite3_column_int64(s, 3)};
	if (!k->key) {
		free(copy);
		return SQLITE_NOMEM;
	}
	a->removed[a->result.n++] = gone;
	return 0;
}

/* Add all rows, at most `limit`. */
static int add_all(struct sqlite_answer *a, sqlite3_stmt *s, size_t limit, bool gone)
{
	int code;

	while ((code = sqlite3_step(s)) == SQLITE_ROW) {
		if (limit && a->result.n == limit) {
			a->result.more = true;
			code = SQLITE_DONE;
			break;
		}
		code = add(a, s, gone);
		if (code)
			break;
	}
	sqlite3_reset(s);
	return code == SQLITE_DONE ? 0 : code;
}

/* ---- changes, inside a transaction */

static int key_remove(struct sqlite_db *d, const char *key, uint64_t revision)
{
	int code;

	put_text(sqlite_bind(d, REMOVE), 1, key);
	code = sqlite_run(d, REMOVE);
	if (code || !sqlite3_changes(d->db))
		return code;
	put_text(sqlite_bind(d, BURY), 1, key);
	put_number(d->all[BURY], 2, revision);
	return sqlite_run(d, BURY);
}

static int key_put(struct sqlite_db *d, const struct store_change *c, uint64_t revision)
{
	sqlite3_stmt *s = sqlite_bind(d, PUT);
	int code;

	put_text(s, 1, c->key);
	put_number(s, 2, revision);
	put_number(s, 3, c->lease);
	sqlite3_bind_blob64(s, 4, c->length ? c->value : "", c->length, SQLITE_STATIC);
	code = sqlite_run(d, PUT);
	if (code)
		return code;
	put_text(sqlite_bind(d, EXHUME), 1, c->key);
	return sqlite_run(d, EXHUME);
}

/* Keep the last GONE removed keys. */
static int forget(struct sqlite_db *d)
{
	uint64_t last = 0;
	int code;

	put_number(sqlite_bind(d, FORGET), 1, GONE);
	code = get_number(d->all[FORGET], &last);
	if (code || !last)
		return code;
	code = set_meta(d, "forgotten", last);
	if (!code) {
		char text[80];

		snprintf(text, sizeof(text), "DELETE FROM gone WHERE changed <= %llu",
			(unsigned long long)last);
		code = sqlite3_exec(d->db, text, NULL, NULL, NULL);
	}
	return code;
}

/* Remove a lease with its keys. */
static int lease_end(struct sqlite_db *d, uint64_t id, uint64_t revision)
{
	int code = 0;

	for (;;) {
		sqlite3_stmt *s = sqlite_bind(d, LEASE_KEYS);
		char *key;

		put_number(s, 1, id);
		code = sqlite_step(s);
		if (code != SQLITE_ROW)
			break;
		key = strdup((const char *)sqlite3_column_text(s, 0));
		sqlite3_reset(s);
		code = key ? key_remove(d, key, revision) : SQLITE_NOMEM;
		free(key);
		if (code)
			return code;
	}
	if (code != SQLITE_DONE)
		return code;
	put_number(sqlite_bind(d, LEASE_DROP), 1, id);
	return sqlite_run(d, LEASE_DROP);
}

/* End the leases whose time is over; *changed: some had ended. */
static int end_leases(struct sqlite_db *d, weir_time now, uint64_t *revision, bool *changed)
{
	for (;;) {
		uint64_t id = 0;
		int code;

		put_number(sqlite_bind(d, LEASE_ENDED), 1, (uint64_t)now);
		code = get_number(d->all[LEASE_ENDED], &id);
		if (code || !id)
			return code;
		*revision += !*changed;
		*changed = true;
		code = lease_end(d, id, *revision);
		if (code)
			return code;
	}
}

/* ---- requests, inside a transaction */

static int holds(struct sqlite_db *d, const struct store_condition *c, bool *ret)
{
	sqlite3_stmt *s = sqlite_bind(d, GET);
	uint64_t changed = 0;
	int code;

	put_text(s, 1, c->key);
	code = sqlite_step(s);
	if (code == SQLITE_ROW) {
		changed = (uint64_t)sqlite3_column_int64(s, 2);
		sqlite3_reset(s);
		code = SQLITE_DONE;
	}
	*ret = c->exists ? changed > 0 : changed == c->changed;
	return code == SQLITE_DONE ? 0 : code;
}

static int lease_ttl(struct sqlite_db *d, uint64_t id, uint64_t *ret)
{
	put_number(sqlite_bind(d, LEASE_GET), 1, id);
	return get_number(d->all[LEASE_GET], ret);
}

#define NO_LEASE (-1) /* beside SQLite's codes, which are positive */

static int do_txn(struct sqlite_db *d, const struct store_request *q, struct sqlite_answer *a)
{
	uint64_t revision = a->result.revision + 1, ttl = 0;
	int code = 0;

	a->result.held = true;
	for (size_t i = 0; !code && a->result.held && i < q->n_conditions; i++)
		code = holds(d, &q->conditions[i], &a->result.held);
	if (code || !a->result.held || !q->n_changes)
		return code;
	for (size_t i = 0; !code && i < q->n_changes; i++) {
		const struct store_change *c = &q->changes[i];

		if (c->lease) {
			code = lease_ttl(d, c->lease, &ttl);
			if (!code && !ttl)
				code = NO_LEASE;
		}
		if (!code)
			code = c->remove ? key_remove(d, c->key, revision)
					 : key_put(d, c, revision);
	}
	if (!code)
		code = forget(d);
	if (!code)
		code = set_meta(d, "revision", revision);
	a->result.revision = revision;
	return code;
}

static int do_list(struct sqlite_db *d, const struct store_request *q, struct sqlite_answer *a)
{
	sqlite3_stmt *s = sqlite_bind(d, q->exact ? GET : q->names ? LIST_NAMES : LIST_PREFIX);
	size_t limit = q->limit ? q->limit : LIMIT;
	char end[STORE_KEY_MAX + 2];

	put_text(s, 1, q->prefix);
	if (!q->exact) {
		snprintf(end, sizeof(end), "%s\177", q->prefix);
		put_text(s, 2, q->after ? q->after : "");
		sqlite3_bind_text(s, 3, end, -1, SQLITE_TRANSIENT);
		put_number(s, 4, limit + 1);
	}
	return add_all(a, s, limit, false);
}

static int do_lease(
	struct sqlite_db *d, const struct store_request *q, weir_time now, struct sqlite_answer *a)
{
	uint64_t id = q->lease, ttl = q->ttl;
	int code;

	if (q->kind == STORE_GRANT) {
		code = meta(d, "lease", &id);
		id++;
		if (!code)
			code = set_meta(d, "lease", id);
	} else {
		code = lease_ttl(d, id, &ttl);
		if (!code && !ttl)
			code = NO_LEASE;
	}
	if (code)
		return code;
	if (q->kind == STORE_REVOKE) {
		code = lease_end(d, id, ++a->result.revision);
		return code ? code : set_meta(d, "revision", a->result.revision);
	}
	put_number(sqlite_bind(d, LEASE_PUT), 1, id);
	put_number(d->all[LEASE_PUT], 2, ttl);
	put_number(d->all[LEASE_PUT], 3, (uint64_t)(now + (weir_time)ttl * WEIR_SEC));
	a->result.lease = id;
	a->result.ttl = (unsigned)ttl;
	return sqlite_run(d, LEASE_PUT);
}

static int do_request(
	struct sqlite_db *d, const struct store_request *q, weir_time now, struct sqlite_answer *a)
{
	switch (q->kind) {
	case STORE_LIST:
		return do_list(d, q, a);
	case STORE_TXN:
		return do_txn(d, q, a);
	default:
		return do_lease(d, q, now, a);
	}
}

/* Begin: end what has ended, and get the revision. */
static int begin(struct sqlite_db *d, bool write, weir_time now, struct sqlite_answer *a)
{
	uint64_t next = 0;
	bool changed = false;
	int code = sqlite_run(d, write ? BEGIN_WRITE : BEGIN_READ);

	if (!code)
		code = get_number(sqlite_bind(d, LEASE_NEXT), &next);
	if (!code && !write && next && next <= (uint64_t)now) {
		sqlite_run(d, ROLLBACK);
		return begin(d, true, now, a);
	}
	if (!code)
		code = meta(d, "revision", &a->result.revision);
	if (!code && !a->result.revision)
		a->result.revision = 1; /* of the empty store, as etcd has it */
	if (!code && write)
		code = end_leases(d, now, &a->result.revision, &changed);
	if (!code && changed)
		code = set_meta(d, "revision", a->result.revision);
	return code;
}

static int finish(struct sqlite_db *d, int code, struct sqlite_answer *a, struct weir_err *err)
{
	uint64_t next = 0;

	if (!code)
		code = get_number(sqlite_bind(d, LEASE_NEXT), &next);
	if (!code)
		code = sqlite_run(d, COMMIT);
	if (code && !sqlite3_get_autocommit(d->db))
		sqlite_run(d, ROLLBACK);
	if (!code &&
		sqlite3_total_changes64(d->db) != d->changes) { /* tell other processes: sqlite.c */
		d->changes = sqlite3_total_changes64(d->db);
		utimensat(AT_FDCWD, d->path, NULL, 0);
	}
	a->expiry = next ? (weir_time)next : WEIR_NEVER;
	a->result.keys = a->keys;
	if (!code)
		return 0;
	sqlite_answer_free(a);
	if (code == NO_LEASE)
		return weir_err_set(err, -ENOENT, "the lease has ended");
	return sqlite_fail(d, code, err);
}

int sqlite_db_ask(struct sqlite_db *d, const struct store_request *q, weir_time now,
	struct sqlite_answer *ret, struct weir_err *err)
{
	struct sqlite_answer a = {0};
	int code = begin(d, q->kind != STORE_LIST, now, &a), rc;

	if (!code)
		code = do_request(d, q, now, &a);
	rc = finish(d, code, &a, err);
	if (rc == 0)
		*ret = a;
	return rc;
}

int sqlite_db_since(struct sqlite_db *d, const char *prefix, uint64_t from, weir_time now,
	struct sqlite_answer *ret, struct weir_err *err)
{
	struct sqlite_answer a = {0};
	uint64_t forgotten = 0;
	char end[STORE_KEY_MAX + 2];
	int code = begin(d, false, now, &a), rc;

	snprintf(end, sizeof(end), "%s\177", prefix);
	if (!code)
		code = meta(d, "forgotten", &forgotten);
	for (int gone = 0; !code && forgotten < from && gone < 2; gone++) {
		sqlite3_stmt *s = sqlite_bind(d, gone ? SINCE_GONE : SINCE);

		put_number(s, 1, from);
		put_text(s, 2, prefix);
		sqlite3_bind_text(s, 3, end, -1, SQLITE_TRANSIENT);
		code = add_all(&a, s, 0, gone);
	}
	rc = finish(d, code, &a, err);
	if (rc == 0 && forgotten >= from) {
		sqlite_answer_free(&a);
		return -ESTALE;
	}
	if (rc == 0)
		*ret = a;
	return rc;
}
