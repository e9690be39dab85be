/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume: `volumes` of a resource: exports with a back end of their own behind the resource's gate; or folders of
 * them.
 */
#include "base/utf8.h"
#include "policy/impl.h"
#include "policy/folder.h"
#include "policy/index.h"
#include "policy/pattern.h"
#include "policy/volume.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const volume_keys[] = {
	"name", "back", "class", "read_only", "description", NULL};
static const char *const folder_keys[] = {"dir", "match", "name", "class", "read_only", NULL};

#define DIR_MOST 2048 /* bytes: with a file's name it is a path */

const char *policy_volume_name_bad(const char *name)
{
	if (!*name)
		return "is empty";
	if (strlen(name) > 255)
		return "has more than 255 bytes";
	if (strchr(name, '/'))
		return "contains a slash";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return "contains a control character";
	for (const char *c = name; *c; c += utf8_shown((const unsigned char *)c))
		if (!utf8_shown((const unsigned char *)c))
			return "is not UTF-8, or has a character that cannot be shown";
	return NULL;
}

static const char *read_name(struct policy_reading *r, yamldoc_node n)
{
	const char *name = policy_get_string(r, n, "name");
	const char *bad = name ? policy_volume_name_bad(name) : NULL;

	if (!yamldoc_has(n, "name"))
		policy_refuse(r, n, "a volume needs a name");
	else if (bad)
		policy_refuse(r, yamldoc_get(n, "name"), "%s", bad);
	return bad ? NULL : name;
}

static const char *get_or(
	struct policy_reading *r, yamldoc_node n, const char *key, const char *otherwise)
{
	return yamldoc_has(n, key) ? policy_get_string(r, n, key) : otherwise;
}

static bool is_pattern(const char *match)
{
	struct policy_token t;

	if (strlen(match) > POLICY_PATTERN_MAX || strchr(match, '/'))
		return false;
	while (match && *match)
		match = policy_pattern_next(match, &t);
	return match;
}

static void read_folder(struct policy_reading *r, yamldoc_node n, int resource)
{
	struct weir_policy *p = r->policy;
	struct weir_folder one = {.resource = resource, .at = policy_place(r, n)};
	const struct policy_class *class_;
	const char *bad;

	if (!policy_keys(r, n, folder_keys))
		return;
	one.dir = policy_get_string(r, n, "dir");
	one.match = get_or(r, n, "match", "*");
	one.name = get_or(r, n, "name", "{stem}");
	class_ = policy_class_get(r, n);
	one.class_ = class_ ? class_->name : NULL;
	policy_took(r, yamldoc_bool(n, "read_only", &one.read_only, &r->err));
	if (!one.dir || !one.match || !one.name)
		return;
	bad = policy_folder_bad(one.name);
	if (*one.dir != '/')
		policy_refuse(r, yamldoc_get(n, "dir"), "must be an absolute path");
	if (strlen(one.dir) > DIR_MOST)
		policy_refuse(r, yamldoc_get(n, "dir"), "has more than %d bytes", DIR_MOST);
	if (!is_pattern(one.match))
		policy_refuse(r, yamldoc_get(n, "match"), "is no pattern of files' names");
	if (bad)
		policy_refuse(r, yamldoc_get(n, "name"), "%s", bad);
	if (policy_grow(r, (void **)&p->folders, p->n_folders, &r->folders_room, sizeof(one)))
		p->folders[p->n_folders++] = one;
}

static void read_volume(struct policy_reading *r, yamldoc_node n, int resource)
{
	struct weir_export one = {.resource = resource, .at = policy_place(r, n)};

	if (!policy_keys(r, n, volume_keys))
		return;
	one.name = read_name(r, n);
	one.back = policy_get_string(r, n, "back");
	if (!yamldoc_has(n, "back"))
		policy_refuse(r, n, "a volume needs a back end, as in back: \"file:/srv/db.raw\"");
	policy_serve_read_export(r, n, &one);
	if (one.name && one.back)
		policy_resource_add_export(r, yamldoc_get(n, "name"), &one);
}

void policy_volume_read(struct policy_reading *r, yamldoc_node map, int resource)
{
	yamldoc_node n = yamldoc_get(map, "volumes");

	if (!n.id)
		return;
	r->policy->resources[resource].volumes = true;
	if (yamldoc_has(map, "back"))
		policy_refuse(r, n, "a resource has either volumes or a back end");
	if (policy_took(r, yamldoc_list(n, &r->err)) != 0)
		return;
	for (size_t i = 0; i < yamldoc_size(n); i++)
		(yamldoc_has(yamldoc_at(n, i), "dir") ? read_folder : read_volume)(
			r, yamldoc_at(n, i), resource);
}

/* ---- volumes of others */

static int by_name(const void *a, const void *b)
{
	const struct policy_volume *const *x = a, *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	return order ? order : *x < *y ? -1 : 1; /* both are in one array */
}

int policy_volume_class(const struct weir_policy *p, const char *class_, struct weir_err *err)
{
	char names[256] = "no classes";
	size_t len = 0;

	if (policy_class_find(p, class_))
		return 0;
	for (size_t i = 0; i < p->n_classes && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
			p->classes[i].name);
	return weir_err_set(
		err, -EINVAL, "there is no class '%s'; the policy has: %s", class_, names);
}

/* Return why the volume does not fit, or NULL. before: the one before it in the order of names, or NULL. */
static const char *unfit(const struct weir_policy *p, const struct policy_volume *v,
	const struct policy_volume *before)
{
	const char *bad = policy_volume_name_bad(v->name);
	const struct weir_resource *resource = weir_policy_resource(p, v->resource);

	if (bad)
		return bad;
	if (!resource || !resource->volumes)
		return "there is no such resource with volumes";
	if (policy_index_export(p, v->name) >= 0)
		return "the policy has an export of that name";
	return before && strcmp(before->name, v->name) == 0 ? "another volume has that name" : NULL;
}

static void add_volume(struct policy_reading *r, const struct policy_volume *v)
{
	struct weir_policy *p = r->policy;
	const struct weir_resource *resource = weir_policy_resource(p, v->resource);

	if (!policy_grow(
		    r, (void **)&p->exports, p->n_exports, &r->exports_room, sizeof(*p->exports)))
		return;
	p->exports[p->n_exports++] = (struct weir_export){.name = policy_string(r, v->name),
		.resource = (int)(resource - p->resources),
		.back = policy_string(r, v->back),
		.class_ = v->class_ ? policy_string(r, v->class_) : NULL,
		.read_only = v->read_only,
		.from = v->found ? POLICY_EXPORT_FOUND : POLICY_EXPORT_ADDED,
		.file = v->file,
		.at = resource->at};
}

int policy_volumes_add(struct weir_policy *p, const struct policy_volume *list, size_t n,
	policy_volume_skipped *skipped, void *arg)
{
	struct policy_reading r = {.policy = p, .exports_room = p->n_exports};
	const struct policy_volume **all = policy_scratch(&r, n, sizeof(*all));
	size_t fit = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		all[i] = &list[i];
	qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		const char *why = unfit(p, all[i], fit ? all[fit - 1] : NULL);

		if (why)
			skipped(arg, all[i], why);
		else
			all[fit++] = all[i];
	}
	for (size_t i = 0; i < fit && !r.no_memory; i++) /* the index is not valid from here on */
		add_volume(&r, all[i]);
	free(all);
	if (n && !r.no_memory)
		policy_index_make(&r);
	return r.no_memory ? -ENOMEM : 0;
}
