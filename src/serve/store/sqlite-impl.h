/* SPDX-License-Identifier: BSD-3-Clause */
/* sqlite-impl: the embedded store's connection, for sqlite-db.c and sqlite-open.c. */
#pragma once

#include "serve/store/sqlite-db.h"
#include <sqlite3.h>

enum statement {
	BEGIN_READ,
	BEGIN_WRITE,
	COMMIT,
	ROLLBACK,
	META,
	SET_META,
	GET,
	PUT,
	REMOVE,
	BURY,
	EXHUME,
	FORGET,
	LIST_PREFIX,
	LIST_NAMES,
	SINCE,
	SINCE_GONE,
	LEASE_GET,
	LEASE_PUT,
	LEASE_DROP,
	LEASE_KEYS,
	LEASE_ENDED,
	LEASE_NEXT,
	STATEMENTS
};

struct sqlite_db {
	sqlite3 *db;
	sqlite3_stmt *all[STATEMENTS];
	char *folder, *path;
	sqlite3_int64 changes; /* of this connection, that others were told of */
};

/* Set a message for SQLite's code, and return the negative errno. */
int sqlite_fail(const struct sqlite_db *d, int code, struct weir_err *err);

/* Return a statement, reset, to bind its values. */
static inline sqlite3_stmt *sqlite_bind(struct sqlite_db *d, enum statement s)
{
	sqlite3_reset(d->all[s]);
	return d->all[s];
}

/* Run a statement without rows, or to its first row. SQLITE_DONE, SQLITE_ROW, or an error. */
static inline int sqlite_step(sqlite3_stmt *s)
{
	int code = sqlite3_step(s);

	if (code != SQLITE_ROW)
		sqlite3_reset(s);
	return code;
}
