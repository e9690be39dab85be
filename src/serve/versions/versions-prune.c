/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * versions-prune: remove old versions, and the pieces that no version has.
 *
 * METHOD  Read all records and the names of all pieces; then remove, in transactions whose condition is that the newest version
 *         is still the one from which this began: a version that was made meanwhile may use any piece.
 */
#include "base/array.h"
#include "serve/versions/versions.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE  100
#define BATCH (STORE_TXN_MAX - 2)

struct kept {
	char digest[PIECES_DIGEST];
};

struct pruning {
	struct store *store;
	uint64_t head, revision; /* of the newest version */
	unsigned most;
	double before;     /* older ones go */
	uint64_t next;     /* first of the next page */
	struct kept *kept; /* of the versions that stay, sorted once all are read */
	size_t n_kept, room_kept;
	char **gone; /* keys */
	size_t n_gone, room_gone, done_gone;
	uint64_t oldest; /* that stays; 0: none is read yet */
	double oldest_when;
	char last[VERSIONS_KEY]; /* name of a piece */
	void (*done)(void *arg);
	void *arg;
};

static void prune_end(struct pruning *p)
{
	void (*done)(void *arg) = p->done;
	void *arg = p->arg;

	for (size_t i = 0; i < p->n_gone; i++)
		free(p->gone[i]);
	free(p->gone);
	free(p->kept);
	free(p);
	done(arg);
}

static int add_gone(struct pruning *p, const char *key)
{
	char *copy = strdup(key);

	if (!copy || array_grow(&p->gone, &p->room_gone, p->n_gone + 1) < 0) {
		free(copy);
		return -1;
	}
	p->gone[p->n_gone++] = copy;
	return 0;
}

static int order(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->digest, ((const struct kept *)b)->digest);
}

/* ---- remove */

static void remove_batch(struct pruning *p);

static void batch_removed(
	void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct pruning *p = arg;

	if (rc < 0 || !a->held)
		prune_end(p);
	else
		remove_batch(p);
}

static void remove_batch(struct pruning *p)
{
	struct store_condition is = {.key = VERSIONS_HEAD, .changed = p->revision};
	struct store_change changes[BATCH + 1];
	struct store_request q = {
		.kind = STORE_TXN, .conditions = &is, .n_conditions = 1, .changes = changes};
	char oldest[96];

	if (p->done_gone == p->n_gone) {
		prune_end(p);
		return;
	}
	snprintf(oldest, sizeof(oldest), "{\"number\":%" PRIu64 ",\"when\":%.3f}", p->oldest,
		p->oldest_when);
	changes[q.n_changes++] = (struct store_change){
		.key = VERSIONS_HEAD "-oldest", .value = oldest, .length = strlen(oldest)};
	while (p->done_gone < p->n_gone && q.n_changes < BATCH)
		changes[q.n_changes++] =
			(struct store_change){.key = p->gone[p->done_gone++], .remove = true};
	store_ask(p->store, &q, batch_removed, p);
}

/* ---- pieces */

static void pieces_came(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct pruning *p = arg;
	struct store_request q = {
		.kind = STORE_LIST, .prefix = "policy/c/", .names = true, .limit = PAGE};

	for (size_t i = 0; rc == 0 && a && i < a->n; i++) {
		struct kept key = {""};

		snprintf(p->last, sizeof(p->last), "%s", a->keys[i].key);
		snprintf(key.digest, sizeof(key.digest), "%s", p->last + strlen(q.prefix));
		if (!bsearch(&key, p->kept, p->n_kept, sizeof(key), order))
			rc = add_gone(p, a->keys[i].key);
	}
	if (rc < 0) {
		prune_end(p);
	} else if (a && !a->more) {
		remove_batch(p);
	} else {
		q.after = a ? p->last : NULL;
		store_ask(p->store, &q, pieces_came, p);
	}
}

/* ---- versions */

static int take_version(struct pruning *p, const struct record *r)
{
	bool stays =
		r->number == p->head || (r->number + p->most > p->head && r->when >= p->before);
	char key[VERSIONS_KEY];

	if (!stays && !p->oldest) {
		versions_key(r->number, key);
		return add_gone(p, key);
	}
	if (!p->oldest) {
		p->oldest = r->number;
		p->oldest_when = r->when;
	}
	if (array_grow(&p->kept, &p->room_kept, p->n_kept + r->n_pieces) < 0)
		return -1;
	for (size_t i = 0; i < r->n_pieces; i++)
		memcpy(p->kept[p->n_kept++].digest, r->pieces[i].digest, PIECES_DIGEST);
	return 0;
}

static void versions_came(void *arg, int rc, const struct record *list, size_t n, bool more,
	const struct weir_err *err)
{
	struct pruning *p = arg;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		p->next = list[i].number + 1;
		rc = take_version(p, &list[i]);
	}
	if (rc < 0) {
		prune_end(p);
	} else if (more) {
		versions_list(p->store, p->next, PAGE, false, versions_came, p);
	} else {
		if (p->n_kept)
			qsort(p->kept, p->n_kept, sizeof(*p->kept), order);
		pieces_came(p, 0, NULL, NULL);
	}
}

void versions_prune(struct store *s, const struct record *head, unsigned most, double age,
	double now, void (*done)(void *arg), void *arg)
{
	struct pruning *p = calloc(1, sizeof(*p));

	if (!p) {
		done(arg);
		return;
	}
	p->store = s;
	p->head = head->number;
	p->revision = head->revision;
	p->most = most;
	p->before = age > 0 ? now - age : 0;
	p->done = done;
	p->arg = arg;
	versions_list(s, 0, PAGE, false, versions_came, p);
}
