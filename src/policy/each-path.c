/* SPDX-License-Identifier: BSD-3-Clause */
/* each-path: the tenants that templates would make, by their paths: where no clients connect, as in the simulator. */
#include "base/no-memory.h"
#include "policy/by-size.h"
#include "policy/each.h"
#include "policy/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return the template above the path of a tenant that it has not made; -1: there is none. */
static int template_of(const struct weir_policy *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[POLICY_DEPTH_MAX * 64];
	size_t len = slash ? (size_t)(slash - path) : 0;
	int parent;

	if (!slash || len >= sizeof(above) || policy_tenant_name_bad(slash + 1) ||
		weir_policy_find(p, path) >= 0)
		return -1;
	memcpy(above, path, len);
	above[len] = '\0';
	parent = weir_policy_find(p, above);
	return parent >= 0 && p->tenants[parent].each ? parent : -1;
}

bool policy_each_absent(const struct weir_policy *p, const char *path)
{
	return template_of(p, path) >= 0;
}

/* Write the field by which the tenants of "vm-{export}" differ, of a tenant's name. */
static bool field_of(const struct weir_each *e, const char *name, char ret[POLICY_EACH_NAME])
{
	const char *begin = strchr(e->name, '{'), *end = strchr(e->name, '}');
	size_t before = (size_t)(begin - e->name), after = strlen(end + 1), len = strlen(name);

	if (strchr(end, '{') || len <= before + after || len >= POLICY_EACH_NAME ||
		strncmp(name, e->name, before) != 0 || strcmp(name + len - after, end + 1) != 0)
		return false;
	memcpy(ret, name + before, len - before - after);
	ret[len - before - after] = '\0';
	return true;
}

/* Find the sender for which the template makes a tenant of this name. */
static bool sender_of(const struct weir_policy *p, int template_, const char *name,
	char field[POLICY_EACH_NAME], struct weir_who *ret)
{
	const struct weir_tenant *t = &p->tenants[template_];
	unsigned by = t->each->by;
	int of;

	if (!field_of(t->each, name, field))
		return false;
	for (unsigned k = 0; k < t->n_match; k++) {
		const struct weir_match *m = &t->match[k];

		*ret = (struct weir_who){.export_ = by & POLICY_BY_EXPORT ? field : m->export_,
			.client = by & POLICY_BY_CLIENT ? field : m->client,
			.uid = by & POLICY_BY_UID ? field : m->uid,
			.tls = by & POLICY_BY_TLS ? field : m->tls};
		if (policy_each_match(p, ret, &of) == -EAGAIN && of == template_)
			return true;
	}
	return false;
}

int policy_each_make(
	struct weir_policy *p, const char *const *paths, size_t n, struct weir_err *err)
{
	struct policy_instance *list = calloc(n + 1, sizeof(*list));
	char(*fields)[POLICY_EACH_NAME] = calloc(n + 1, sizeof(*fields));
	size_t many = 0;
	int rc = list && fields ? 0 : no_memory(err);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		int of = template_of(p, paths[i]);

		if (of < 0)
			continue;
		if (!sender_of(p, of, strrchr(paths[i], '/') + 1, fields[many], &list[many].who))
			rc = weir_err_set(err, -EINVAL,
				"the template of '%s' makes no tenant '%s', or its tenants differ "
				"in more than one field",
				p->tenants[of].path, paths[i]);
		many++;
	}
	if (rc == 0 && many && policy_each_expand(p, list, many) < 0)
		rc = no_memory(err);
	if (rc == 0 && many) {
		policy_size_resolve(p, NULL, NULL);
		rc = policy_each_fit(p, list, many, NULL, false) < 0 ? no_memory(err) : 0;
	}
	free(list);
	free(fields);
	return rc;
}
