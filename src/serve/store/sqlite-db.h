/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sqlite-db: the embedded store's database, FOLDER/store.db. Every call may wait for the disk, or for another process.
 *
 * A commit is on the disk when a call returns. A database that is damaged is renamed to store.db.damaged and logged.
 */
#pragma once

#include "serve/store/store-impl.h"

#define SQLITE_DB_NAME "store.db"

struct sqlite_db;

struct sqlite_answer { /* of a request, or the events since a revision; zero it */
	struct store_result result;
	struct store_key *keys; /* result.keys; malloc'ed, with names and values */
	bool *removed;          /* by key: since; else NULL */
	size_t room;
	weir_time expiry; /* when the next lease ends, CLOCK_BOOTTIME; WEIR_NEVER: none */
};

/* Makes the folder (not its parents). */
int sqlite_db_open(const char *folder, struct sqlite_db **ret_db, struct weir_err *err);
void sqlite_db_close(struct sqlite_db *d); /* NULL is fine */
/* Do a request. now: CLOCK_BOOTTIME. */
int sqlite_db_ask(struct sqlite_db *d, const struct store_request *q, weir_time now,
	struct sqlite_answer *ret, struct weir_err *err);
/* Get the keys of a prefix that changed at revision `from` or later; -ESTALE: some of that is forgotten. */
int sqlite_db_since(struct sqlite_db *d, const char *prefix, uint64_t from, weir_time now,
	struct sqlite_answer *ret, struct weir_err *err);
void sqlite_answer_free(struct sqlite_answer *a);
