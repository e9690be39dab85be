/* SPDX-License-Identifier: BSD-3-Clause */
/* copy: copy the arrays, then replace every string in them by a copy. */
#include "policy/index.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- the strings and places of each struct */

struct part {
	enum { END, TEXT, PLACE } kind;
	size_t at;
};
#define T(type, member) .kind = TEXT, .at = offsetof(struct type, member)
#define P(type, member) .kind = PLACE, .at = offsetof(struct type, member)

static const struct part policy_parts[] = {{T(weir_policy, token)},
	{T(weir_policy, access.tls.cert)}, {T(weir_policy, access.tls.key)},
	{T(weir_policy, access.tls.ca)}, {T(weir_policy, access.tokens)},
	{T(weir_policy, access.audit)}, {T(weir_policy, state)}, {T(weir_policy, recordings)},
	{T(weir_policy, tenants_text)}, {T(weir_policy, tls.cert)}, {T(weir_policy, tls.key)},
	{T(weir_policy, tls.ca)}, {T(weir_policy, tls.psk)}, {P(weir_policy, peers.listen_at)},
	{T(weir_policy, peers.listen)}, {T(weir_policy, peers.key)},
	{T(weir_policy, peers.cluster)}, {T(weir_policy, peers.host)},
	{T(weir_policy, cluster.name)}, {T(weir_policy, cluster.key)}, {P(weir_policy, cluster.at)},
	{0}};
static const struct part client_parts[] = {{T(policy_access_client, user)},
	{T(policy_access_client, group)}, {T(policy_access_client, cert)}, {0}};
static const struct part resource_parts[] = {{T(weir_resource, name)}, {T(weir_resource, back)},
	{P(weir_resource, at)}, {P(weir_resource, back_at)}, {P(weir_resource, capacity_at)},
	{P(weir_resource, lab.at)}, {T(weir_resource, profile)}, {P(weir_resource, profile_at)},
	{T(weir_resource, tls.cert)}, {T(weir_resource, tls.key)}, {T(weir_resource, tls.ca)},
	{T(weir_resource, tls.psk)}, {0}};
static const struct part export_parts[] = {{T(weir_export, name)}, {T(weir_export, back)},
	{T(weir_export, description)}, {T(weir_export, class_)}, {P(weir_export, at)}, {0}};
static const struct part folder_parts[] = {{T(weir_folder, dir)}, {T(weir_folder, match)},
	{T(weir_folder, name)}, {T(weir_folder, class_)}, {P(weir_folder, at)}, {0}};
static const struct part class_parts[] = {{T(policy_class, name)}, {P(policy_class, at)}, {0}};
static const struct part link_parts[] = {{T(policy_link, name)}, {P(policy_link, at)}, {0}};
static const struct part lab_parts[] = {{P(policy_lab_tenant, at)}, {0}};
static const struct part tenant_parts[] = {
	{T(weir_tenant, name)}, {T(weir_tenant, path)}, {T(weir_tenant, min_off)}, {0}};
/* Those of a tenant that a class has, too. */
static const struct part knob_parts[] = {
	{P(weir_tenant, at)}, {P(weir_tenant, slo_at)}, {T(weir_tenant, class_)}, {0}};
static const struct part by_size_parts[] = {{P(weir_by_size, at)}, {0}};
static const struct part each_parts[] = {{T(weir_each, name)}, {P(weir_each, at)}, {0}};
static const struct part match_parts[] = {{T(weir_match, export_)}, {T(weir_match, client)},
	{T(weir_match, uid)}, {T(weir_match, tls)}, {T(weir_match, path)}, {P(weir_match, at)},
	{0}};
static const struct part planned_parts[] = {{T(policy_planned, trace)},
	{T(policy_planned, trace_of)}, {P(policy_planned, trace_at)}, {P(policy_planned, path_at)},
	{0}};
static const struct part stage_parts[] = {{0}};
static const struct part net_match_parts[] = {{T(policy_net_match, address)},
	{T(policy_net_match, cgroup)}, {T(policy_net_match, interface)}, {P(policy_net_match, at)},
	{0}};
static const struct part network_parts[] = {{T(policy_network, machine)}, {T(policy_network, rack)},
	{T(policy_network, rack_key)}, {T(policy_network, fabric)}, {T(policy_network, fabric_key)},
	{P(policy_network, at)}, {P(policy_network, rack_at)}, {0}};
static const struct part device_parts[] = {{T(policy_device, name)}, {P(policy_device, at)}, {0}};
static const struct part net_parts[] = {{P(policy_net, at)}, {0}};
static const struct part place_parts[] = {{.kind = PLACE}, {0}};

/* ---- copying */

static void string(struct policy_reading *r, const char **text)
{
	if (*text)
		*text = policy_string(r, *text);
}

/* Places name few files: the last copy is found by its text. */
static void place(struct policy_reading *r, struct weir_place *at)
{
	if (at->file && (!r->file || strcmp(r->file, at->file) != 0))
		r->file = policy_string(r, at->file);
	if (at->file)
		at->file = r->file;
}

static void copy_parts(struct policy_reading *r, void *object, const struct part *p)
{
	for (; p->kind; p++) {
		void *at = (char *)object + p->at;

		if (p->kind == TEXT)
			string(r, at);
		else
			place(r, at);
	}
}

/* Copy n structs to memory that may be NULL, and their parts. Return `to`. */
static void *copy_to(struct policy_reading *r, void *to, const void *from, size_t n, size_t size,
	const struct part *p)
{
	if (to && n)
		memcpy(to, from, n * size);
	for (size_t i = 0; to && i < n; i++)
		copy_parts(r, (char *)to + i * size, p);
	return to;
}

/* To the policy's own memory, and to memory that is freed with the policy. */
#define COPY(r, from, n, parts)                                                                    \
	copy_to(r, policy_alloc(r, (n) * sizeof(*(from))), from, n, sizeof(*(from)), parts)
#define COPY_ARRAY(r, from, n, parts)                                                              \
	copy_to(r, policy_scratch(r, n, sizeof(*(from))), from, n, sizeof(*(from)), parts)

static const char **strings(struct policy_reading *r, const char *const *from, size_t n)
{
	const char **to = policy_alloc(r, n * sizeof(*to));

	for (size_t i = 0; to && i < n; i++)
		to[i] = policy_string(r, from[i]);
	return to;
}

static const struct weir_by_size *by_size(
	struct policy_reading *r, const struct weir_by_size *from, unsigned n)
{
	return n ? COPY(r, from, n, by_size_parts) : NULL;
}

static void knobs(struct policy_reading *r, struct weir_tenant *t)
{
	copy_parts(r, t, knob_parts);
	for (unsigned i = 0; i < t->n_min; i++)
		place(r, &t->min[i].at);
	for (unsigned i = 0; i < t->n_max; i++)
		place(r, &t->max[i].at);
	t->min_by_size = by_size(r, t->min_by_size, t->n_min_by_size);
	t->max_by_size = by_size(r, t->max_by_size, t->n_max_by_size);
}

struct weir_each *policy_each_copy(struct policy_reading *r, const struct weir_each *from)
{
	struct weir_each *to = COPY(r, from, 1, each_parts);

	if (!to)
		return NULL;
	knobs(r, &to->leaf);
	knobs(r, &to->own);
	return to;
}

static const struct policy_planned *planned(
	struct policy_reading *r, const struct policy_planned *from)
{
	struct policy_planned *to = COPY(r, from, 1, planned_parts);

	if (to)
		to->path = COPY(r, from->path, from->n_path, stage_parts);
	return to;
}

static const struct policy_net *net(struct policy_reading *r, const struct policy_net *from)
{
	struct policy_net *to = COPY(r, from, 1, net_parts);

	if (!to)
		return NULL;
	for (int l = 0; l < POLICY_NET_LEVELS; l++)
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			place(r, &to->share[l][d].at);
	to->match = COPY(r, from->match, from->n_match, net_match_parts);
	return to;
}

static struct policy_network *network(struct policy_reading *r, const struct policy_network *from)
{
	struct policy_network *to = COPY(r, from, 1, network_parts);

	if (!to)
		return NULL;
	to->devices = COPY(r, from->devices, from->n_devices, device_parts);
	to->machines = strings(r, from->machines, from->n_machines);
	return to;
}

static void tenant(struct policy_reading *r, struct weir_tenant *t)
{
	knobs(r, t);
	if (t->each)
		t->each = policy_each_copy(r, t->each);
	if (t->planned)
		t->planned = planned(r, t->planned);
	if (t->net)
		t->net = net(r, t->net);
	if (t->n_servers)
		t->servers = strings(r, t->servers, t->n_servers);
	if (t->n_match)
		t->match = COPY(r, t->match, t->n_match, match_parts);
}

int policy_copy(const struct weir_policy *from, struct weir_policy **ret_policy)
{
	struct policy_reading r = {.policy = calloc(1, sizeof(*r.policy))};
	struct weir_policy *p = r.policy;

	if (!p)
		return -ENOMEM;
	*p = *from;
	p->memory = (struct arena){0};
	p->index = NULL;
	copy_parts(&r, p, policy_parts);
	p->tenants = COPY_ARRAY(&r, from->tenants, from->n_tenants, tenant_parts);
	for (size_t i = 0; p->tenants && i < from->n_tenants; i++)
		tenant(&r, &p->tenants[i]);
	p->labs = COPY_ARRAY(&r, from->labs, from->n_labs, lab_parts);
	p->classes = COPY(&r, from->classes, from->n_classes, class_parts);
	for (size_t i = 0; p->classes && i < from->n_classes; i++)
		knobs(&r, &p->classes[i].knobs);
	p->resources = COPY_ARRAY(&r, from->resources, from->n_resources, resource_parts);
	for (size_t i = 0; p->resources && i < from->n_resources; i++)
		policy_settings_set(&r, &p->resources[i], from->resources[i].settings,
			from->resources[i].settings_len);
	p->exports = COPY_ARRAY(&r, from->exports, from->n_exports, export_parts);
	p->folders = COPY_ARRAY(&r, from->folders, from->n_folders, folder_parts);
	p->links = COPY(&r, from->links, from->n_links, link_parts);
	if (from->network)
		p->network = network(&r, from->network);
	p->listen = strings(&r, from->listen, from->n_listen);
	p->api = strings(&r, from->api, from->n_api);
	p->access.clients = COPY(&r, from->access.clients, from->access.n_clients, client_parts);
	p->peers.to = strings(&r, from->peers.to, from->peers.n_to);
	p->peers.to_at = COPY(&r, from->peers.to_at, from->peers.n_to, place_parts);
	p->cluster.controllers =
		strings(&r, from->cluster.controllers, from->cluster.n_controllers);
	p->cluster.listen = strings(&r, from->cluster.listen, from->cluster.n_listen);
	p->cluster.stand_ins = strings(&r, from->cluster.stand_ins, from->cluster.n_stand_ins);
	p->cluster.servers = strings(&r, from->cluster.servers, from->cluster.n_servers);
	if (!r.no_memory)
		policy_index_make(&r);
	if (r.no_memory) {
		weir_policy_free(p);
		return -ENOMEM;
	}
	*ret_policy = p;
	return 0;
}

int policy_copy_everybody(struct weir_policy *p)
{
	struct weir_tenant *t;

	if (p->n_tenants)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct weir_tenant){.name = "everybody",
		.path = "everybody",
		.parent = -1,
		.first_child = -1,
		.next_sibling = -1,
		.weight = 1,
		.is_default = true};
	free(p->tenants);
	p->tenants = t;
	p->n_tenants = 1;
	p->default_tenant = 0;
	return 0;
}
