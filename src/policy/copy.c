/* SPDX-License-Identifier: BSD-3-Clause */
/* copy: copy the arrays, then replace every string in them by a copy. */
#include "policy/index.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static void tls(struct policy_reading *r, struct weir_policy_tls *t)
{
	string(r, &t->cert);
	string(r, &t->key);
	string(r, &t->ca);
	string(r, &t->psk);
}

static void *array(struct policy_reading *r, const void *from, size_t n, size_t size)
{
	void *to = policy_scratch(r, n, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

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
	struct weir_by_size *to = n ? policy_alloc(r, n * sizeof(*to)) : NULL;

	for (unsigned i = 0; to && i < n; i++) {
		to[i] = from[i];
		place(r, &to[i].at);
	}
	return to;
}

/* The parts that a class has, too. */
static void knobs(struct policy_reading *r, struct weir_tenant *t)
{
	place(r, &t->at);
	place(r, &t->slo_at);
	for (unsigned i = 0; i < t->n_min; i++)
		place(r, &t->min[i].at);
	for (unsigned i = 0; i < t->n_max; i++)
		place(r, &t->max[i].at);
	t->min_by_size = by_size(r, t->min_by_size, t->n_min_by_size);
	t->max_by_size = by_size(r, t->max_by_size, t->n_max_by_size);
	string(r, &t->class_);
}

struct weir_each *policy_each_copy(struct policy_reading *r, const struct weir_each *from)
{
	struct weir_each *to = policy_alloc(r, sizeof(*to));

	if (!to)
		return NULL;
	*to = *from;
	knobs(r, &to->leaf);
	knobs(r, &to->own);
	string(r, &to->name);
	place(r, &to->at);
	return to;
}

static const struct policy_planned *planned(
	struct policy_reading *r, const struct policy_planned *from)
{
	struct policy_planned *to = policy_alloc(r, sizeof(*to));
	struct policy_stage *path = policy_alloc(r, from->n_path * sizeof(*path));

	if (!to || !path)
		return NULL;
	*to = *from;
	string(r, &to->trace);
	string(r, &to->trace_of);
	place(r, &to->trace_at);
	place(r, &to->path_at);
	if (from->n_path)
		memcpy(path, from->path, from->n_path * sizeof(*path));
	to->path = path;
	return to;
}

static const struct policy_net *net(struct policy_reading *r, const struct policy_net *from)
{
	struct policy_net *to = policy_alloc(r, sizeof(*to));
	struct policy_net_match *m = policy_alloc(r, from->n_match * sizeof(*m));

	if (!to || !m)
		return NULL;
	*to = *from;
	place(r, &to->at);
	for (int l = 0; l < POLICY_NET_LEVELS; l++)
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			place(r, &to->share[l][d].at);
	for (unsigned i = 0; i < from->n_match; i++) {
		m[i] = from->match[i];
		string(r, &m[i].address);
		string(r, &m[i].cgroup);
		string(r, &m[i].interface);
		place(r, &m[i].at);
	}
	to->match = m;
	return to;
}

static struct policy_network *network(struct policy_reading *r, const struct policy_network *from)
{
	struct policy_network *to = policy_alloc(r, sizeof(*to));
	struct policy_device *d = policy_alloc(r, (from->n_devices + 1) * sizeof(*d));

	if (!to || !d)
		return NULL;
	*to = *from;
	for (size_t i = 0; i < from->n_devices; i++) {
		d[i] = from->devices[i];
		string(r, &d[i].name);
		place(r, &d[i].at);
	}
	to->devices = d;
	string(r, &to->machine);
	string(r, &to->rack);
	string(r, &to->rack_key);
	string(r, &to->fabric);
	string(r, &to->fabric_key);
	to->machines = strings(r, from->machines, from->n_machines);
	place(r, &to->at);
	place(r, &to->rack_at);
	return to;
}

static void tenant(struct policy_reading *r, struct weir_tenant *t)
{
	const struct weir_match *from = t->match;

	string(r, &t->name);
	string(r, &t->path);
	string(r, &t->min_off);
	knobs(r, t);
	if (t->each)
		t->each = policy_each_copy(r, t->each);
	if (t->planned)
		t->planned = planned(r, t->planned);
	if (t->net)
		t->net = net(r, t->net);
	if (t->n_servers)
		t->servers = strings(r, t->servers, t->n_servers);
	if (!t->n_match)
		return;
	t->match = policy_alloc(r, t->n_match * sizeof(*t->match));
	for (unsigned i = 0; t->match && i < t->n_match; i++) {
		struct weir_match *m = &t->match[i];

		*m = from[i];
		string(r, &m->export_);
		string(r, &m->client);
		string(r, &m->uid);
		string(r, &m->tls);
		string(r, &m->path);
		place(r, &m->at);
	}
}

static void tenants(struct policy_reading *r, const struct weir_policy *from)
{
	struct weir_policy *p = r->policy;

	p->tenants = array(r, from->tenants, from->n_tenants, sizeof(*p->tenants));
	for (size_t i = 0; p->tenants && i < from->n_tenants; i++)
		tenant(r, &p->tenants[i]);
}

static void classes(struct policy_reading *r, const struct weir_policy *from)
{
	struct weir_policy *p = r->policy;

	p->classes = policy_alloc(r, from->n_classes * sizeof(*p->classes));
	for (size_t i = 0; p->classes && i < from->n_classes; i++) {
		p->classes[i] = from->classes[i];
		string(r, &p->classes[i].name);
		knobs(r, &p->classes[i].knobs);
		place(r, &p->classes[i].at);
	}
}

static void lab_tenants(struct policy_reading *r, const struct weir_policy *from)
{
	struct weir_policy *p = r->policy;

	p->labs = array(r, from->labs, from->n_labs, sizeof(*p->labs));
	for (size_t i = 0; p->labs && i < from->n_labs; i++)
		place(r, &p->labs[i].at);
}

static void resources(struct policy_reading *r, const struct weir_policy *from)
{
	struct weir_policy *p = r->policy;

	p->resources = array(r, from->resources, from->n_resources, sizeof(*p->resources));
	for (size_t i = 0; p->resources && i < from->n_resources; i++) {
		string(r, &p->resources[i].name);
		string(r, &p->resources[i].back);
		place(r, &p->resources[i].at);
		place(r, &p->resources[i].back_at);
		place(r, &p->resources[i].capacity_at);
		place(r, &p->resources[i].lab.at);
		string(r, &p->resources[i].profile);
		place(r, &p->resources[i].profile_at);
		tls(r, &p->resources[i].tls);
		policy_settings_set(r, &p->resources[i], from->resources[i].settings,
			from->resources[i].settings_len);
	}
	p->exports = array(r, from->exports, from->n_exports, sizeof(*p->exports));
	for (size_t i = 0; p->exports && i < from->n_exports; i++) {
		string(r, &p->exports[i].name);
		string(r, &p->exports[i].back);
		string(r, &p->exports[i].description);
		string(r, &p->exports[i].class_);
		place(r, &p->exports[i].at);
	}
	p->folders = array(r, from->folders, from->n_folders, sizeof(*p->folders));
	for (size_t i = 0; p->folders && i < from->n_folders; i++) {
		string(r, &p->folders[i].dir);
		string(r, &p->folders[i].match);
		string(r, &p->folders[i].name);
		string(r, &p->folders[i].class_);
		place(r, &p->folders[i].at);
	}
}

static void links(struct policy_reading *r, const struct weir_policy *from)
{
	struct weir_policy *p = r->policy;

	p->links = policy_alloc(r, from->n_links * sizeof(*p->links));
	for (size_t i = 0; p->links && i < from->n_links; i++) {
		p->links[i] = from->links[i];
		string(r, &p->links[i].name);
		place(r, &p->links[i].at);
	}
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
	tenants(&r, from);
	lab_tenants(&r, from);
	classes(&r, from);
	resources(&r, from);
	links(&r, from);
	if (from->network)
		p->network = network(&r, from->network);
	p->listen = strings(&r, from->listen, from->n_listen);
	p->api = strings(&r, from->api, from->n_api);
	string(&r, &p->token);
	string(&r, &p->state);
	string(&r, &p->recordings);
	string(&r, &p->tenants_text);
	tls(&r, &p->tls);
	p->peers.to = strings(&r, from->peers.to, from->peers.n_to);
	p->peers.to_at = policy_alloc(&r, from->peers.n_to * sizeof(*p->peers.to_at));
	for (size_t i = 0; p->peers.to_at && i < from->peers.n_to; i++) {
		p->peers.to_at[i] = from->peers.to_at[i];
		place(&r, &p->peers.to_at[i]);
	}
	place(&r, &p->peers.listen_at);
	string(&r, &p->peers.listen);
	string(&r, &p->peers.key);
	string(&r, &p->peers.cluster);
	string(&r, &p->peers.host);
	p->cluster.controllers =
		strings(&r, from->cluster.controllers, from->cluster.n_controllers);
	p->cluster.listen = strings(&r, from->cluster.listen, from->cluster.n_listen);
	p->cluster.stand_ins = strings(&r, from->cluster.stand_ins, from->cluster.n_stand_ins);
	p->cluster.servers = strings(&r, from->cluster.servers, from->cluster.n_servers);
	string(&r, &p->cluster.name);
	string(&r, &p->cluster.key);
	place(&r, &p->cluster.at);
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
