/* SPDX-License-Identifier: BSD-3-Clause */
/* sqlite-open: the tables and statements of the embedded store, and its file. */
#include "base/no-memory.h"
#include "serve/store/sqlite-impl.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000 /* wait for another process */
#define WAL_MAX "4194304"

static const char *const statements[STATEMENTS] = {
	[BEGIN_READ] = "BEGIN",
	[BEGIN_WRITE] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	[ROLLBACK] = "ROLLBACK",
	[META] = "SELECT value FROM meta WHERE name = ?1",
	[SET_META] = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
	[GET] = "SELECT key, created, changed, lease, value FROM keys WHERE key = ?1",
	[PUT] = "INSERT INTO keys (key, created, changed, lease, value) VALUES (?1, ?2, ?2, ?3, "
		"?4) "
		"ON CONFLICT (key) DO UPDATE SET changed = ?2, lease = ?3, value = ?4",
	[REMOVE] = "DELETE FROM keys WHERE key = ?1",
	[BURY] = "INSERT INTO gone VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET changed = ?2",
	[EXHUME] = "DELETE FROM gone WHERE key = ?1",
	[FORGET] = "SELECT changed FROM gone ORDER BY changed DESC LIMIT 1 OFFSET ?1",
	[LIST_PREFIX] =
		"SELECT key, created, changed, lease, value FROM keys WHERE key >= ?1 AND key > ?2 "
		"AND key < ?3 ORDER BY key LIMIT ?4",
	[LIST_NAMES] = "SELECT key, created, changed, lease FROM keys WHERE key >= ?1 AND key > ?2 "
		       "AND key < ?3 ORDER BY key LIMIT ?4",
	[SINCE] = "SELECT key, created, changed, lease, value FROM keys "
		  "WHERE changed >= ?1 AND key >= ?2 AND key < ?3 ORDER BY changed, key",
	[SINCE_GONE] = "SELECT key, 0, changed, 0 FROM gone "
		       "WHERE changed >= ?1 AND key >= ?2 AND key < ?3 ORDER BY changed, key",
	[LEASE_GET] = "SELECT ttl FROM leases WHERE id = ?1",
	[LEASE_PUT] = "INSERT INTO leases VALUES (?1, ?2, ?3) "
		      "ON CONFLICT (id) DO UPDATE SET ends = ?3",
	[LEASE_DROP] = "DELETE FROM leases WHERE id = ?1",
	[LEASE_KEYS] = "SELECT key FROM keys WHERE lease = ?1 LIMIT 1",
	[LEASE_ENDED] = "SELECT id FROM leases WHERE ends <= ?1 LIMIT 1",
	[LEASE_NEXT] = "SELECT MIN(ends) FROM leases",
};

static const char schema[] =
	"PRAGMA journal_mode = WAL;"
	"PRAGMA synchronous = FULL;"
	"PRAGMA journal_size_limit = " WAL_MAX ";"
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, created INTEGER, changed INTEGER,"
	" lease INTEGER, value BLOB);"
	"CREATE INDEX IF NOT EXISTS keys_changed ON keys (changed);"
	"CREATE INDEX IF NOT EXISTS keys_lease ON keys (lease) WHERE lease > 0;"
	"CREATE TABLE IF NOT EXISTS gone (key TEXT PRIMARY KEY, changed INTEGER) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS gone_changed ON gone (changed);"
	"CREATE TABLE IF NOT EXISTS leases (id INTEGER PRIMARY KEY, ttl INTEGER, ends INTEGER);"
	"COMMIT;";

int sqlite_fail(const struct sqlite_db *d, int code, struct weir_err *err)
{
	int rc = code == SQLITE_FULL || code == SQLITE_TOOBIG                            ? -ENOSPC
		 : code == SQLITE_NOMEM                                                  ? -ENOMEM
		 : code == SQLITE_BUSY                                                   ? -EAGAIN
		 : code == SQLITE_READONLY || code == SQLITE_PERM || code == SQLITE_AUTH ? -EACCES
											 : -EIO;

	return weir_err_set(err, rc, "store %s/%s: %s", d->folder, SQLITE_DB_NAME,
		code == SQLITE_BUSY ? "another process uses it" : sqlite3_errstr(code));
}

static bool damaged(int code)
{
	return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

/* ---- open */

/* Leases of an earlier boot have ended: their ends are of another clock. */
static int check_boot(struct sqlite_db *d)
{
	char is[64] = "", text[160];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	sqlite3_stmt *s = sqlite_bind(d, META);
	const char *was;
	bool same;
	int code;

	if (f) {
		if (fscanf(f, "%36[0-9a-f-]", is) != 1)
			is[0] = 0;
		fclose(f);
	}
	sqlite3_bind_text(s, 1, "boot", -1, SQLITE_STATIC);
	code = sqlite_step(s);
	was = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
	same = was && strcmp(was, is) == 0;
	sqlite3_reset(s);
	if (same)
		return 0;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return code;
	snprintf(text, sizeof(text),
		"UPDATE leases SET ends = 0; REPLACE INTO meta VALUES ('boot', '%s')", is);
	return sqlite3_exec(d->db, text, NULL, NULL, NULL);
}

static int open_once(struct sqlite_db *d, const char *path)
{
	int code = sqlite3_open_v2(path, &d->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW |
			SQLITE_OPEN_FULLMUTEX,
		NULL);

	if (!code) {
		sqlite3_busy_timeout(d->db, BUSY_MS);
		code = sqlite3_exec(d->db, schema, NULL, NULL, NULL);
	}
	for (int i = 0; !code && i < STATEMENTS; i++)
		code = sqlite3_prepare_v3(
			d->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &d->all[i], NULL);
	return code ? code : check_boot(d);
}

static void close_once(struct sqlite_db *d)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(d->all[i]);
	memset((void *)d->all, 0, sizeof(d->all));
	sqlite3_close(d->db);
	d->db = NULL;
}

/* The log of a database that was moved aside must not be read into a new one. */
static void unlink_log(const char *path)
{
	static const char *const ends[] = {"-wal", "-shm"};
	char name[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
}

static int open_path(struct sqlite_db *d, struct weir_err *err)
{
	const char *path = d->path;
	mode_t mask;
	int code;

	if (mkdir(d->folder, 0700) < 0 && errno != EEXIST)
		return weir_err_set(err, -errno, "store %s: %s", d->folder, strerror(errno));
	mask = umask(0077);
	code = open_once(d, path);
	if (damaged(code)) {
		close_once(d);
		state_file_aside(d->folder, SQLITE_DB_NAME, sqlite3_errstr(code));
		unlink_log(path);
		code = open_once(d, path);
	}
	umask(mask);
	if (code == SQLITE_CANTOPEN)
		return weir_err_set(err, -EIO, "store %s: %s", path,
			access(d->folder, W_OK | X_OK) < 0 ? strerror(errno) : "cannot be opened");
	return code ? sqlite_fail(d, code, err) : 0;
}

int sqlite_db_open(const char *folder, struct sqlite_db **ret_db, struct weir_err *err)
{
	struct sqlite_db *d = calloc(1, sizeof(*d));
	int rc;

	if (!d || asprintf(&d->path, "%s/" SQLITE_DB_NAME, folder) < 0) {
		free(d);
		return no_memory(err);
	}
	d->folder = strdup(folder);
	if (!d->folder) {
		sqlite_db_close(d);
		return no_memory(err);
	}
	rc = open_path(d, err);
	if (rc < 0)
		sqlite_db_close(d);
	else
		*ret_db = d;
	return rc;
}

void sqlite_db_close(struct sqlite_db *d)
{
	if (!d)
		return;
	close_once(d);
	free(d->folder);
	free(d->path);
	free(d);
}
