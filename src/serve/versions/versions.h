/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * versions: versions of a policy in a store, each with the whole text, and the newest of them, which is in force.
 *
 *   policy/head            the record of the newest version (record.h)
 *   policy/head-oldest     the oldest version that is kept: {"number": 3, "when": …}
 *   policy/v/000000000042  the record of each version
 *   policy/c/DIGEST        a piece of a text (pieces.h); versions share them
 *
 * A new version becomes the newest by one transaction, whose conditions are that the newest is still the one it was made
 * from, and that its pieces exist. So of two changes at once one is refused, and no version lacks a piece.
 *
 * A `done` is called once, from the loop, or from store_close (-ESHUTDOWN). Errors are those of store.h and, with a message:
 * -ENOENT: no such version; -EPROTO: a record or a piece is damaged.
 */
#pragma once

#include "serve/versions/record.h"
#include "serve/store/store.h"
#include <stdbool.h>

#define VERSIONS_HEAD "policy/head"      /* to follow; head-oldest has this prefix, too */
#define VERSIONS_MOST 1000               /* versions that are kept, unless stated */
#define VERSIONS_TEXT ((size_t)16 << 20) /* bytes of a text, at most */

struct versions_text { /* zero it */
	struct record record;
	char *text; /* of record_length bytes, and a NUL */
};
void versions_text_free(struct versions_text *t);

enum versions_kind { VERSIONS_APPLY, VERSIONS_SET, VERSIONS_ROLLBACK };

struct versions_request { /* zero it; copied */
	enum versions_kind kind;
	const char *user, *member, *message; /* NULL: "" */
	uint64_t base;                       /* must be the newest version; 0: whatever is */
	/* apply */
	const char *text;
	size_t length, tenants; /* the last bytes are the file of tenants */
	const char *name;
	bool keep; /* values that were set stay */
	/* set: value NULL: remove it */
	const char *key, *value;
	double until;  /* s since 1970; 0: no end */
	uint64_t from; /* rollback: to this version */
	/* bounds of the history; 0: VERSIONS_MOST, and any age */
	unsigned most;
	double age; /* s */
};

/* rc 0: the record of the new version. -EBUSY: another version is the newest, `record`. */
typedef void versions_put_done(
	void *arg, int rc, const struct record *record, const struct weir_err *err);
void versions_put(
	struct store *s, const struct versions_request *q, versions_put_done *done, void *arg);

/* Read a version; 0: the newest. have: a version that the caller has, whose pieces are not fetched again, or NULL; it stays
 * until it is done. stale: as in store.h. */
typedef void versions_read_done(
	void *arg, int rc, struct versions_text *v /* taken */, const struct weir_err *err);
void versions_read(struct store *s, uint64_t number, const struct versions_text *have, bool stale,
	versions_read_done *done, void *arg);
/* The same with a record. */
void versions_fetch(struct store *s, const struct record *record, const struct versions_text *have,
	versions_read_done *done, void *arg);

/* List versions in order, from a number on. */
typedef void versions_list_done(void *arg, int rc, const struct record *list, size_t n, bool more,
	const struct weir_err *err);
void versions_list(struct store *s, uint64_t from, size_t most, bool stale,
	versions_list_done *done, void *arg);

/* ---- between the files of versions */

#define VERSIONS_KEY 96 /* bytes */
void versions_key(uint64_t number, char ret[VERSIONS_KEY]);
void versions_piece_key(const char *digest, char ret[VERSIONS_KEY]);
/* Remove versions beyond the bounds, and pieces that none has; unless the newest is another than `head` by then. Failures are
 * left to the next time. versions-prune.c */
void versions_prune(struct store *s, const struct record *head, unsigned most, double age,
	double now, void (*done)(void *arg), void *arg);
