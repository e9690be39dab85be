/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume: `volumes` of a resource: exports with a back end of their own behind the resource's gate.
 */
#include "policy/impl.h"
#include <string.h>

static const char *const volume_keys[] = {"name", "back", "read_only", "description", "class", NULL};

const char *policy_volume_name_bad(const char *name)
{
	if (strlen(name) > 255)
		return "has more than 255 bytes";
	if (strchr(name, '/'))
		return "contains a slash";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return "contains a control character";
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
		read_volume(r, yamldoc_at(n, i), resource);
}
