/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twice: find files that a policy names twice.
 *
 * METHOD  The files that are locked are sorted by identity, or by path where there is none, with those that are written first: the
 *         first two of equal ones are in conflict if one of them is written.
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
	bool read_only;
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

/* Enter a back end if it is a file that is locked. */
static void add(struct use *list, size_t *n, struct use one, const struct weir_resource *r)
{
	bool lock = !r->shared;

	one.read_only |= r->read_only;
	one.path = folder_path_of(one.back);
	if (!one.path || back_file_use(one.back, &lock, &one.read_only) < 0 || !lock) {
		free(one.path);
		return;
	}
	if (!folder_opened(one.back, &one.id))
		one.id = (struct policy_file){0};
	list[(*n)++] = one;
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
	struct use *list = calloc(p->n_resources + p->n_exports + 1, sizeof(*list));
	size_t n = 0;
	int rc = list ? 0 : no_memory(err);

	for (size_t i = 0; rc == 0 && i < p->n_resources; i++) {
		const struct weir_resource *r = &p->resources[i];

		if (r->back)
			add(list, &n,
				(struct use){.kind = "resource",
					.name = r->name,
					.back = r->back,
					.at = r->back_at},
				r);
	}
	for (size_t i = 0; rc == 0 && i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];

		if (e->back && e->from == POLICY_EXPORT_FILE)
			add(list, &n,
				(struct use){.kind = "volume",
					.name = e->name,
					.back = e->back,
					.read_only = e->read_only,
					.at = e->at},
				&p->resources[e->resource]);
	}
	if (n)
		qsort(list, n, sizeof(*list), in_order);
	for (size_t i = 1; rc == 0 && i < n; i++)
		if (by_file(&list[i - 1], &list[i]) == 0 && !list[i - 1].read_only)
			rc = refuse(&list[i - 1], &list[i], err);
	for (size_t i = 0; i < n; i++)
		free(list[i].path);
	free(list);
	return rc;
}
