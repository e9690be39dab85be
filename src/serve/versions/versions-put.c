/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * versions-put: a new version.
 *
 * METHOD  HEAD    read the newest version, and make the record of the next
 *         FROM    rollback: read the version that it goes back to
 *         PIECES  store the pieces of the text that the newest lacks, and that are not there; a few small ones go with COMMIT
 *         COMMIT  make it the newest, if nothing has changed meanwhile
 *         LOOK    no answer came to that: read whether it was made. Its id tells
 *         PRUNE   remove old versions, if some are beyond the bounds by a quarter, or by a day
 */
#include "base/no-memory.h"
#include "serve/versions/versions.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES    5 /* a piece was removed between PIECES and COMMIT */
#define DAY      86400.0
#define TOGETHER 16 /* pieces that COMMIT stores, at most */

struct putting {
	struct store *store;
	struct versions_request q; /* its texts are in `now`, or follow */
	char *text, *key, *value;
	struct record head, now; /* head.number 0: there is none */
	uint64_t oldest;
	double oldest_when;
	size_t piece, at;
	unsigned tries;
	bool check_all; /* the newest's pieces, too */
	bool together;  /* the pieces are stored by COMMIT */
	versions_put_done *done;
	void *arg;
	struct weir_err err; /* of the commit without an answer */
};

static void put_head(struct putting *p);
static void put_piece(struct putting *p);
static void put_commit(struct putting *p);

static void put_end(struct putting *p, int rc, const struct record *r, const struct weir_err *err)
{
	p->done(p->arg, rc, r, err);
	record_free(&p->head);
	record_free(&p->now);
	free(p->text);
	free(p->key);
	free(p->value);
	free(p);
}

static void pruned(void *arg)
{
	struct putting *p = arg;

	put_end(p, 0, &p->now, NULL);
}

static void put_made(struct putting *p, uint64_t revision)
{
	unsigned most = p->q.most ? p->q.most : VERSIONS_MOST;
	uint64_t kept = p->oldest ? p->now.number - p->oldest + 1 : 0;

	p->now.revision = revision;
	if (kept > most + most / 4 || (p->q.age > 0 && p->oldest && kept > 1 &&
					      p->now.when - p->oldest_when > p->q.age + DAY))
		versions_prune(p->store, &p->now, most, p->q.age, p->now.when, pruned, p);
	else
		put_end(p, 0, &p->now, NULL);
}

static void put_conflict(struct putting *p)
{
	struct weir_err err;

	if (!p->head.number)
		weir_err_set(&err, -EBUSY, "there is no version yet, and not %" PRIu64, p->q.base);
	else
		weir_err_set(&err, -EBUSY,
			"version %" PRIu64 " was stored meanwhile%s%s%s%s; nothing was changed",
			p->head.number, *p->head.user ? " by " : "", p->head.user,
			*p->head.message ? ": " : "", p->head.message);
	put_end(p, -EBUSY, p->head.number ? &p->head : NULL, &err);
}

/* ---- pieces of the newest */

static bool head_has(const struct record *head, const char *digest)
{
	for (size_t i = 0; i < head->n_pieces; i++)
		if (strcmp(head->pieces[i].digest, digest) == 0)
			return true;
	return false;
}

/* Return true if the piece is to be stored, unless it is there. */
static bool is_needed(const struct putting *p, const struct piece *piece)
{
	return p->check_all || !head_has(&p->head, piece->digest);
}

/* Return true if all pieces that are needed are so small that they can be stored with the version itself. */
static bool fits_together(const struct putting *p)
{
	size_t all = 0, n = 0;

	for (size_t i = 0; i < p->now.n_pieces; i++)
		if (is_needed(p, &p->now.pieces[i])) {
			all += p->now.pieces[i].length;
			n++;
		}
	return p->text && all <= PIECES_MAX && n <= TOGETHER;
}

/* ---- commit */

static void looked(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;
	struct record r = {0};
	bool ours = rc == 0 && a->n && record_read(a->keys[0].value, a->keys[0].length, &r) == 0 &&
		    strcmp(r.id, p->now.id) == 0;

	record_free(&r);
	if (ours) {
		put_made(p, a->keys[0].changed);
	} else if (rc == 0) {
		weir_err_set(&p->err, -EAGAIN, "the version was not stored: %s",
			strchr(p->err.text, ':') ? p->err.text : "no answer");
		put_end(p, -EAGAIN, NULL, &p->err);
	} else {
		struct weir_err why;

		weir_err_set(&why, rc,
			"version %" PRIu64 " may have been stored or not; see weir policy history "
			"when the store answers (%s)",
			p->now.number, p->err.text);
		put_end(p, rc == -ESHUTDOWN ? rc : -ETIMEDOUT, NULL, &why);
	}
}

static void committed(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;
	struct store_request q = {.kind = STORE_LIST, .exact = true};
	char key[VERSIONS_KEY];

	if (rc == -ETIMEDOUT) {
		p->err = *err;
		versions_key(p->now.number, key);
		q.prefix = key;
		store_ask(p->store, &q, looked, p);
	} else if (rc < 0) {
		put_end(p, rc, NULL, err);
	} else if (a->held) {
		put_made(p, a->revision);
	} else {
		p->check_all = true; /* another version is the newest; or a piece was removed */
		put_head(p);
	}
}

/* Add the pieces: those that are stored with it, once each, as changes; conditions for the others. */
static void commit_pieces(const struct putting *p, char (*keys)[VERSIONS_KEY],
	struct store_condition *ifs, struct store_change *changes, struct store_request *q)
{
	size_t at = 0;

	for (size_t i = 0; i < p->now.n_pieces; at += p->now.pieces[i++].length) {
		const struct piece *piece = &p->now.pieces[i];
		size_t k = 0;

		while (strcmp(p->now.pieces[k].digest, piece->digest) != 0)
			k++;
		if (k < i)
			continue;
		versions_piece_key(piece->digest, keys[i]);
		if (p->together && is_needed(p, piece))
			changes[q->n_changes++] = (struct store_change){
				.key = keys[i], .value = p->text + at, .length = piece->length};
		else
			ifs[q->n_conditions++] =
				(struct store_condition){.key = keys[i], .exists = true};
	}
}

static void put_commit(struct putting *p)
{
	struct store_condition ifs[STORE_TXN_MAX];
	struct store_change changes[3 + TOGETHER];
	char(*keys)[VERSIONS_KEY] = calloc(p->now.n_pieces + 1, sizeof(*keys));
	char key[VERSIONS_KEY], oldest[96], *text = record_write(&p->now);
	struct store_request q = {
		.kind = STORE_TXN, .conditions = ifs, .changes = changes, .n_changes = 2};
	struct weir_err err;

	if (!keys || !text) {
		free(keys);
		free(text);
		put_end(p, no_memory(&err), NULL, &err);
		return;
	}
	ifs[q.n_conditions++] =
		(struct store_condition){.key = VERSIONS_HEAD, .changed = p->head.revision};
	versions_key(p->now.number, key);
	changes[0] =
		(struct store_change){.key = VERSIONS_HEAD, .value = text, .length = strlen(text)};
	changes[1] = (struct store_change){.key = key, .value = text, .length = strlen(text)};
	if (!p->oldest) {
		p->oldest = p->now.number;
		p->oldest_when = p->now.when;
		snprintf(oldest, sizeof(oldest), "{\"number\":%" PRIu64 ",\"when\":%.3f}",
			p->oldest, p->oldest_when);
		changes[q.n_changes++] = (struct store_change){
			.key = VERSIONS_HEAD "-oldest", .value = oldest, .length = strlen(oldest)};
	}
	commit_pieces(p, keys, ifs, changes, &q);
	store_ask(p->store, &q, committed, p);
	free(keys);
	free(text);
}

/* ---- pieces */

static void piece_next(struct putting *p)
{
	p->at += p->now.pieces[p->piece].length;
	p->piece++;
	put_piece(p);
}

static void piece_put(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;

	if (rc == -ETIMEDOUT && ++p->tries < TRIES) /* to store it twice is no harm */
		put_piece(p);
	else if (rc < 0)
		put_end(p, rc, NULL, err);
	else
		piece_next(p);
}

static void piece_looked(
	void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;
	const struct piece *piece = &p->now.pieces[p->piece];
	struct store_change c = {.length = piece->length};
	struct store_request q = {.kind = STORE_TXN, .changes = &c, .n_changes = 1};
	char key[VERSIONS_KEY];
	struct weir_err why;

	if (rc < 0) {
		put_end(p, rc, NULL, err);
	} else if (a->n) {
		piece_next(p);
	} else if (!p->text) {
		weir_err_set(&why, -ENOENT, "the text of the version is not kept any more");
		put_end(p, -ENOENT, NULL, &why);
	} else {
		versions_piece_key(piece->digest, key);
		c.key = key;
		c.value = p->text + p->at;
		store_ask(p->store, &q, piece_put, p);
	}
}

static void put_piece(struct putting *p)
{
	struct store_request q = {.kind = STORE_LIST, .exact = true, .names = true};
	char key[VERSIONS_KEY];

	while (p->piece < p->now.n_pieces) {
		const struct piece *piece = &p->now.pieces[p->piece];

		if (!p->together && is_needed(p, piece)) {
			versions_piece_key(piece->digest, key);
			q.prefix = key;
			store_ask(p->store, &q, piece_looked, p);
			return;
		}
		p->at += piece->length;
		p->piece++;
	}
	put_commit(p);
}

/* ---- the record */

static int start_record(struct putting *p, const struct versions_request *q)
{
	static const char *const kinds[] = {"apply", "set", "rollback"};
	struct record *r = &p->now;

	r->when = loop_date();
	record_new_id(r);
	if (record_text(&r->user, q->user) < 0 || record_text(&r->member, q->member) < 0 ||
		record_text(&r->message, q->message) < 0 || record_text(&r->name, q->name) < 0 ||
		record_text(&r->kind, kinds[q->kind]) < 0)
		return -ENOMEM;
	return 0;
}

static void put_record(struct putting *p, const struct record *from)
{
	struct record *r = &p->now;
	struct weir_err err = {""};
	int rc = 0;

	record_clear(r);
	r->number = p->head.number + 1;
	r->base = p->head.number;
	if (p->q.kind == VERSIONS_APPLY) {
		rc = pieces_cut(p->text, p->q.length, &r->pieces, &r->n_pieces);
		r->tenants = p->q.tenants;
		if (rc == 0 && p->q.keep && p->head.number)
			rc = record_take(r, &p->head, true, false);
	} else {
		rc = record_take(r, from, true, true);
	}
	if (rc == 0 && p->q.kind == VERSIONS_SET)
		rc = record_set(r, p->key, p->value, p->q.until);
	if (rc == 0 && r->n_pieces > STORE_TXN_MAX - 2)
		rc = -E2BIG;
	if (rc == -ENOENT)
		weir_err_set(&err, rc, "%s was not set", p->key);
	else if (rc == -E2BIG)
		rc = weir_err_set(&err, -EINVAL, "the version would be too large");
	else if (rc < 0)
		no_memory(&err);
	p->piece = p->at = 0;
	p->together = rc == 0 && fits_together(p);
	if (rc < 0)
		put_end(p, rc, NULL, &err);
	else
		put_piece(p);
}

/* ---- the newest version */

static void from_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;
	struct record from = {0};
	struct weir_err why;

	if (rc == 0 && !a->n)
		rc = weir_err_set(&why, -ENOENT, "there is no version %" PRIu64 " (any more) in %s",
			p->q.from, store_name(p->store)),
		err = &why;
	else if (rc == 0 && (rc = record_read(a->keys[0].value, a->keys[0].length, &from)) < 0)
		weir_err_set(&why, rc, "the record of version %" PRIu64 " is damaged", p->q.from),
			err = &why;
	if (rc < 0)
		put_end(p, rc, NULL, err);
	else
		put_record(p, &from);
	record_free(&from);
}

static int read_oldest(struct putting *p, const struct store_key *k)
{
	json_t *j = json_loadb(k->value, k->length, 0, NULL);

	p->oldest = (uint64_t)json_integer_value(json_object_get(j, "number"));
	p->oldest_when = json_number_value(json_object_get(j, "when"));
	json_decref(j);
	return 0;
}

static void head_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct putting *p = arg;
	struct store_request q = {.kind = STORE_LIST, .exact = true};
	uint64_t before = p->now.number;
	struct weir_err why;
	char key[VERSIONS_KEY];

	record_free(&p->head);
	for (size_t i = 0; rc == 0 && i < a->n; i++) {
		if (strcmp(a->keys[i].key, VERSIONS_HEAD) != 0) {
			read_oldest(p, &a->keys[i]);
			continue;
		}
		rc = record_read(a->keys[i].value, a->keys[i].length, &p->head);
		p->head.revision = a->keys[i].changed;
		if (rc < 0)
			weir_err_set(&why, rc, "%s: the record of the newest version is damaged",
				store_name(p->store)),
				err = &why;
	}
	if (rc == 0 && p->q.kind == VERSIONS_SET && !p->head.number)
		rc = weir_err_set(
			&why, -ENOENT, "there is no policy in %s yet", store_name(p->store)),
		err = &why;
	if (rc < 0)
		put_end(p, rc, NULL, err);
	else if ((p->q.base && p->head.number != p->q.base) ||
		 (before && p->head.number + 1 != before && p->q.kind != VERSIONS_SET) ||
		 p->tries++ > TRIES)
		put_conflict(p);
	else if (p->q.kind == VERSIONS_ROLLBACK) {
		versions_key(p->q.from, key);
		q.prefix = key;
		store_ask(p->store, &q, from_came, p);
	} else {
		put_record(p, &p->head);
	}
}

static void put_head(struct putting *p)
{
	struct store_request q = {.kind = STORE_LIST, .prefix = VERSIONS_HEAD};

	store_ask(p->store, &q, head_came, p);
}

void versions_put(
	struct store *s, const struct versions_request *q, versions_put_done *done, void *arg)
{
	struct putting *p = calloc(1, sizeof(*p));
	struct weir_err err;
	bool ok = p;

	if (q->kind == VERSIONS_APPLY && q->length > VERSIONS_TEXT) {
		free(p);
		weir_err_set(
			&err, -EINVAL, "the policy has more than %zu MiB", VERSIONS_TEXT >> 20);
		done(arg, -EINVAL, NULL, &err);
		return;
	}
	if (ok) {
		p->store = s;
		p->q = *q;
		p->done = done;
		p->arg = arg;
		ok = start_record(p, q) == 0;
	}
	if (ok && q->kind == VERSIONS_APPLY) {
		p->text = malloc(q->length + 1);
		if (p->text)
			memcpy(p->text, q->text, q->length);
		ok = p->text;
	}
	if (ok && q->kind == VERSIONS_SET) {
		p->key = strdup(q->key);
		p->value = q->value ? strdup(q->value) : NULL;
		ok = p->key && (p->value || !q->value);
	}
	if (ok)
		put_head(p);
	else if (p)
		put_end(p, no_memory(&err), NULL, &err);
	else
		done(arg, no_memory(&err), NULL, &err);
}
