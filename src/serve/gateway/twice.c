/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twice: find files that two volumes or resources have.
 *
 * METHOD  The files that are locked are sorted by identity, or by path where there is none, with those that are written first: the
 *         first two of equal ones are in conflict if one of them is written. The file of a dir is one volume, locked or not.
 */
#include "serve/gateway/gateway.h"
#include "base/no-memory.h"
#include "serve/back/back.h"
#include "serve/store/folder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct use {
	struct policy_file id; /* ino 0: the file does not exist */
	char *path;
	bool read_only, found, locks;
	const char *kind, *name, *back;
	struct weir_place at;
};

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_file(const struct use *a, const struct use *b)
{
	int is = by_number(a->id.dev, b->id.dev);

	is = is ? is : by_number(a->id.ino, b->id.ino);
	return is || a->id.ino ? is : strcmp(a->path, b->path);
}

static int by_place(const struct use *a, const struct use *b)
{
	int is = by_number(a->at.line, b->at.line);

	return is ? is : by_number(a->at.column, b->at.column);
}

static int in_order(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int is = by_file(x, y);

	is = is ? is : x->read_only - y->read_only;
	return is ? is : by_place(x, y);
}

/* Identify the file of a back end. false: it is none. */
static bool identify(struct use *one, const struct weir_resource *r)
{
	one->locks = !r->shared;
	one->read_only |= r->read_only;
	one->path = folder_path_of(one->back);
	if (!one->path || back_file_use(one->back, &one->locks, &one->read_only) < 0) {
		free(one->path);
		return false;
	}
	if (!folder_opened(one->back, &one->id))
		one->id = (struct policy_file){0};
	return true;
}

static void enter(struct use *list, size_t *n, struct use one, const struct weir_resource *r)
{
	if (!identify(&one, r))
		return;
	if (one.locks || one.found)
		list[(*n)++] = one;
	else
		free(one.path);
}

static struct use *list_uses(const struct weir_policy *p, size_t *ret_n)
{
	struct use *list = calloc(p->n_resources + p->n_exports + 1, sizeof(*list));

	*ret_n = 0;
	for (size_t i = 0; list && i < p->n_resources; i++) {
		const struct weir_resource *r = &p->resources[i];

		if (r->back)
			enter(list, ret_n,
				(struct use){.kind = "resource",
					.name = r->name,
					.back = r->back,
					.at = r->back_at},
				r);
	}
	for (size_t i = 0; list && i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];

		if (e->back)
			enter(list, ret_n,
				(struct use){.kind = "volume",
					.name = e->name,
					.back = e->back,
					.read_only = e->read_only,
					.found = e->from == POLICY_EXPORT_FOUND,
					.at = e->at},
				&p->resources[e->resource]);
	}
	return list;
}

static void free_uses(struct use *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].path);
	free(list);
}

static int refuse(const struct use *a, const struct use *b, struct weir_err *err)
{
	const struct use *first = by_place(a, b) < 0 ? a : b, *second = first == a ? b : a;

	return weir_err_at(err, -EINVAL, second->at,
		"%s '%s': %s is the file of %s '%s', too (%s:%u:%u); 'lock: false' shares a file",
		second->kind, second->name, second->back, first->kind, first->name, first->at.file,
		first->at.line, first->at.column);
}

int gateway_files_once(const struct weir_policy *p, struct weir_err *err)
{
	size_t n;
	struct use *list = list_uses(p, &n);
	int rc = list ? 0 : no_memory(err);

	if (n)
		qsort(list, n, sizeof(*list), in_order);
	for (size_t i = 1; rc == 0 && i < n; i++)
		if (by_file(&list[i - 1], &list[i]) == 0 && !list[i - 1].read_only)
			rc = refuse(&list[i - 1], &list[i], err);
	free_uses(list, n);
	return rc;
}

static bool in_conflict(const struct use *is, const struct use *asks)
{
	return by_file(is, asks) == 0 &&
	       (is->found || (asks->locks && !(is->read_only && asks->read_only))) &&
	       (strcmp(is->name, asks->name) != 0 || strcmp(is->back, asks->back) != 0);
}

int gateway_file_free(const struct weir_policy *p, const struct weir_resource *r, const char *name,
	const char *back, struct weir_err *err)
{
	struct use asks = {.name = name, .back = back};
	struct use *list;
	int rc = 0;
	size_t n;

	if (!identify(&asks, r))
		return 0;
	list = list_uses(p, &n);
	if (!list)
		rc = no_memory(err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (in_conflict(&list[i], &asks))
			rc = weir_err_set(err, -EBUSY, "%s: is the file of %s '%s'%s", back,
				list[i].kind, list[i].name,
				list[i].found ? " of a dir" : "; 'lock: false' shares a file");
	free_uses(list, n);
	free(asks.path);
	return rc;
}
