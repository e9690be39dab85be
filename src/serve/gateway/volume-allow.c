/* SPDX-License-Identifier: BSD-3-Clause */
/* volume-allow: files that a client of the API may name. */
#include "policy/index.h"
#include "serve/gateway/impl.h"
#include "serve/store/folder.h"
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Return the folder of a path, without links, malloc'ed; NULL: there is none. */
static char *folder_of(const char *path)
{
	char *copy = strdup(path), *folder = copy ? realpath(dirname(copy), NULL) : NULL;

	free(copy);
	return folder;
}

/* Return true if the policy in force names the folder, which may be away. */
static bool names_dir(const struct gateway *g, const char *dir)
{
	for (size_t i = 0; i < g->base->n_folders; i++)
		if (strcmp(g->base->folders[i].dir, dir) == 0)
			return true;
	return false;
}

/* Return true if the policy in force names the volume's back end, which may be away. */
static bool names_back(const struct gateway *g, const struct weir_export *e)
{
	int found = policy_index_export(g->policy, e->name);
	const char *back = found >= 0 ? g->policy->exports[found].back : NULL;

	return back && strcmp(back, e->back) == 0;
}

static bool has_dir(const struct gateway *g, const char *folder)
{
	bool found = false;

	for (size_t i = 0; !found && i < g->base->n_folders; i++) {
		char *there = realpath(g->base->folders[i].dir, NULL);

		found = there && strcmp(there, folder) == 0;
		free(there);
	}
	return found;
}

static bool is_file_in(const char *back, const char *folder)
{
	char *path = folder_path_of(back);
	char *there = path ? folder_of(path) : NULL;
	bool is_in = there && strcmp(there, folder) == 0;

	free(there);
	free(path);
	return is_in;
}

/* Return true if the gateway has a file in the folder, or every file of it. */
static bool has_file_in(const struct gateway *g, const char *folder)
{
	if (has_dir(g, folder)) /* the shortest list */
		return true;
	for (size_t i = 0; i < g->volumes.n; i++)
		if (is_file_in(g->volumes.all[i]->back_name, folder))
			return true;
	for (size_t i = 0; i < g->n_resources; i++)
		if (is_file_in(g->resources[i]->back_name, folder))
			return true;
	return false;
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool may_name(const struct gateway *g, const char *back)
{
	char *path = folder_path_of(back);
	char *folder = path ? folder_of(path) : NULL;
	bool may = !path || (folder && has_file_in(g, folder) && !is_link(path));

	free(folder);
	free(path);
	return may;
}

static int refuse_file(struct weir_place at, const char *what, const char *name, const char *back,
	struct weir_err *err)
{
	return weir_err_at(err, -EINVAL, at,
		"%s '%s': %s: only the gateway's own policy file may name a link, or a file in a "
		"folder in which it has no %s yet",
		what, name, back, what);
}

static bool has_back(const struct gateway *g, const char *back)
{
	for (size_t i = 0; i < g->n_resources; i++)
		if (strcmp(g->resources[i]->back_name, back) == 0)
			return true;
	return false;
}

int gateway_volumes_allowed(struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	const struct weir_place nowhere = {0};

	for (size_t i = 0; i < p->n_folders; i++) {
		const struct weir_folder *f = &p->folders[i];
		char *dir = realpath(f->dir, NULL);
		bool may = names_dir(g, f->dir) || (dir && has_file_in(g, dir));

		free(dir);
		if (!may)
			return weir_err_at(err, -EINVAL, f->at,
				"dir %s: only the gateway's own policy file may name a folder in "
				"which it has no volume yet",
				f->dir);
	}
	for (size_t i = 0; i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];

		if (e->back && e->from != POLICY_EXPORT_FOUND && !names_back(g, e) &&
			!may_name(g, e->back))
			return refuse_file(e->from == POLICY_EXPORT_FILE ? e->at : nowhere,
				"volume", e->name, e->back, err);
	}
	for (size_t i = 0; i < p->n_resources; i++) {
		const struct weir_resource *r = &p->resources[i];

		if (r->back && !has_back(g, r->back) && !may_name(g, r->back))
			return refuse_file(r->at, "resource", r->name, r->back, err);
	}
	return 0;
}
