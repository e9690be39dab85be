/* SPDX-License-Identifier: BSD-3-Clause */
/* versions: reading. */
#include "serve/versions/versions.h"
#include "base/no-memory.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST "policy/v/"

void versions_key(uint64_t number, char ret[VERSIONS_KEY])
{
	snprintf(ret, VERSIONS_KEY, FIRST "%012" PRIu64, number);
}

void versions_piece_key(const char *digest, char ret[VERSIONS_KEY])
{
	snprintf(ret, VERSIONS_KEY, "policy/c/%s", digest);
}

void versions_text_free(struct versions_text *t)
{
	record_free(&t->record);
	free(t->text);
	*t = (struct versions_text){0};
}

/* ---- read */

struct reading {
	struct store *store;
	const struct versions_text *have;
	bool stale;
	uint64_t number;
	struct versions_text v;
	size_t piece, at; /* the piece that is fetched, and its place in the text */
	versions_read_done *done;
	void *arg;
};

static void read_end(struct reading *r, int rc, const struct weir_err *err)
{
	r->done(r->arg, rc, rc < 0 ? NULL : &r->v, err);
	if (rc < 0)
		versions_text_free(&r->v);
	free(r);
}

static void read_piece(struct reading *r);

static void piece_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct reading *r = arg;
	const struct piece *p = &r->v.record.pieces[r->piece];
	char digest[PIECES_DIGEST];
	struct weir_err why;

	if (rc < 0) {
		read_end(r, rc, err);
		return;
	}
	if (a->n == 1)
		pieces_digest(a->keys[0].value, a->keys[0].length, digest);
	if (a->n != 1 || a->keys[0].length != p->length || strcmp(digest, p->digest) != 0) {
		weir_err_set(&why, -EPROTO, "version %" PRIu64 ": a piece of its text is %s in %s",
			r->v.record.number, a->n ? "damaged" : "missing", store_name(r->store));
		read_end(r, -EPROTO, &why);
		return;
	}
	memcpy(r->v.text + r->at, a->keys[0].value, p->length);
	r->at += p->length;
	r->piece++;
	read_piece(r);
}

/* Return a piece of the text that the caller has, or NULL. */
static const char *own_piece(const struct versions_text *have, const struct piece *p)
{
	const char *at = have ? have->text : NULL;

	for (size_t i = 0; have && i < have->record.n_pieces; i++) {
		if (strcmp(have->record.pieces[i].digest, p->digest) == 0)
			return at;
		at += have->record.pieces[i].length;
	}
	return NULL;
}

static void read_piece(struct reading *r)
{
	struct store_request q = {.kind = STORE_LIST, .exact = true, .stale = r->stale};
	char key[VERSIONS_KEY];

	while (r->piece < r->v.record.n_pieces) {
		const struct piece *p = &r->v.record.pieces[r->piece];
		const char *own = own_piece(r->have, p);

		if (!own) {
			versions_piece_key(p->digest, key);
			q.prefix = key;
			store_ask(r->store, &q, piece_came, r);
			return;
		}
		memcpy(r->v.text + r->at, own, p->length);
		r->at += p->length;
		r->piece++;
	}
	r->v.text[r->at] = 0;
	read_end(r, 0, NULL);
}

static void record_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct reading *r = arg;
	struct weir_err why;

	if (rc < 0) {
		read_end(r, rc, err);
		return;
	}
	if (a->n == 0 && r->number)
		rc = weir_err_set(&why, -ENOENT, "there is no version %" PRIu64 " (any more) in %s",
			r->number, store_name(r->store));
	else if (a->n == 0)
		rc = weir_err_set(
			&why, -ENOENT, "there is no policy in %s yet", store_name(r->store));
	else if ((rc = record_read(a->keys[0].value, a->keys[0].length, &r->v.record)) < 0)
		weir_err_set(&why, rc, "%s: the record of a version is damaged: %s",
			store_name(r->store), a->keys[0].key);
	if (rc == 0) {
		r->v.record.revision = a->keys[0].changed;
		r->v.text = malloc(record_length(&r->v.record) + 1);
		rc = r->v.text ? 0 : no_memory(&why);
	}
	if (rc < 0)
		read_end(r, rc, &why);
	else
		read_piece(r);
}

void versions_read(struct store *s, uint64_t number, const struct versions_text *have, bool stale,
	versions_read_done *done, void *arg)
{
	struct reading *r = calloc(1, sizeof(*r));
	struct store_request q = {.kind = STORE_LIST, .exact = true, .stale = stale};
	char key[VERSIONS_KEY] = VERSIONS_HEAD;
	struct weir_err err;

	if (!r) {
		done(arg, no_memory(&err), NULL, &err);
		return;
	}
	*r = (struct reading){.store = s,
		.have = have,
		.stale = stale,
		.number = number,
		.done = done,
		.arg = arg};
	if (number)
		versions_key(number, key);
	q.prefix = key;
	store_ask(s, &q, record_came, r);
}

void versions_fetch(struct store *s, const struct record *record, const struct versions_text *have,
	versions_read_done *done, void *arg)
{
	struct reading *r = calloc(1, sizeof(*r));
	struct weir_err err;
	int rc = r ? record_copy(record, &r->v.record) : -ENOMEM;

	if (rc == 0) {
		r->v.text = malloc(record_length(record) + 1);
		rc = r->v.text ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		done(arg, no_memory(&err), NULL, &err);
		if (r)
			versions_text_free(&r->v);
		free(r);
		return;
	}
	r->store = s;
	r->have = have;
	r->done = done;
	r->arg = arg;
	read_piece(r);
}

/* ---- list */

struct listing {
	struct store *store;
	versions_list_done *done;
	void *arg;
};

static void list_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct listing *l = arg;
	struct record *list = rc == 0 ? calloc(a->n + 1, sizeof(*list)) : NULL;
	struct weir_err why;
	size_t n = 0;

	if (rc == 0 && !list)
		rc = no_memory(&why), err = &why;
	for (size_t i = 0; rc == 0 && i < a->n; i++) {
		rc = record_read(a->keys[i].value, a->keys[i].length, &list[n]);
		if (rc < 0) {
			weir_err_set(&why, rc, "%s: the record of a version is damaged: %s",
				store_name(l->store), a->keys[i].key);
			err = &why;
		} else {
			list[n++].revision = a->keys[i].changed;
		}
	}
	l->done(l->arg, rc, list, rc == 0 ? n : 0, rc == 0 && a->more, err);
	while (n)
		record_free(&list[--n]);
	free(list);
	free(l);
}

void versions_list(struct store *s, uint64_t from, size_t most, bool stale,
	versions_list_done *done, void *arg)
{
	struct listing *l = malloc(sizeof(*l));
	struct store_request q = {
		.kind = STORE_LIST, .prefix = FIRST, .limit = most, .stale = stale};
	char after[VERSIONS_KEY];
	struct weir_err err;

	if (!l) {
		done(arg, no_memory(&err), NULL, 0, false, &err);
		return;
	}
	*l = (struct listing){s, done, arg};
	versions_key(from ? from - 1 : 0, after);
	q.after = after;
	store_ask(s, &q, list_came, l);
}
