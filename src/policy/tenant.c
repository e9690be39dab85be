/* SPDX-License-Identifier: BSD-3-Clause */
/* tenant: read the tree, depth first, so that parents are before their children. */
#include "policy/each.h"
#include "policy/impl.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const tenant_keys[] = {"name", POLICY_CLASS_KEYS, "class", "each", "match",
	"children", "lab", "servers", "trace", "path", "net", NULL};
static const char *const match_keys[] = {"export", "client", "uid", "tls", "path", NULL};

/* ---- match */

static void read_match(struct policy_reading *r, yamldoc_node n, struct weir_match *m)
{
	const char *field, *why;

	policy_keys(r, n, match_keys);
	m->at = policy_place(r, n);
	m->export_ = policy_get_string(r, n, "export");
	m->client = policy_get_string(r, n, "client");
	m->uid = policy_get_string(r, n, "uid");
	m->tls = policy_get_string(r, n, "tls");
	m->path = policy_get_string(r, n, "path");
	if (yamldoc_kind(n) == YAMLDOC_MAP && yamldoc_map_size(n) == 0)
		policy_refuse(r, n, "matches everything; if that is meant, write {export: \"*\"}");
	else if (policy_match_bad(m, &field, &why))
		policy_refuse(r, yamldoc_get(n, field), "%s", why);
}

void policy_tenant_read_matches(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	bool list = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t many = list ? yamldoc_size(n) : 1;
	struct weir_match *m;

	if (!n.id)
		return;
	if (!many) {
		policy_refuse(r, n, "an empty list matches nothing; leave the key out");
		return;
	}
	m = policy_alloc(r, many * sizeof(*m));
	if (!m)
		return;
	t->n_match = 0;
	for (size_t i = 0; i < many; i++) {
		yamldoc_node one = list ? yamldoc_at(n, i) : n;

		if (!policy_net_is_match(one)) /* those of packets: policy/net.c */
			read_match(r, one, &m[t->n_match++]);
	}
	t->match = m;
}

/* ---- name and weight */

/* Names are used in paths, tables and metrics. */
const char *policy_tenant_name_bad(const char *name)
{
	size_t len = strlen(name);

	if (!len)
		return "a name must not be empty";
	if (len > 63)
		return "a name has at most 63 bytes";
	if (strchr(name, '/'))
		return "a name must not contain '/', which stands between the names of a path";
	if (name[0] == ' ' || name[len - 1] == ' ')
		return "a name must not begin or end with a space";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return "a name must not contain control characters";
	return NULL;
}

/* A tenant with an invalid name is read as "?", so that its other errors are found. */
static const char *read_name(struct policy_reading *r, yamldoc_node n)
{
	struct weir_err err;
	const char *name, *why;
	int rc = yamldoc_string(n, "name", &name, &err);

	if (policy_took(r, rc) == -ENOENT && yamldoc_kind(n) == YAMLDOC_MAP &&
		!yamldoc_has(n, "name"))
		policy_refuse(r, n, "a tenant needs a name");
	if (rc < 0)
		return "?";
	why = policy_tenant_name_bad(name);
	if (why)
		policy_refuse(r, yamldoc_get(n, "name"), "%s", why);
	return why ? "?" : policy_string(r, name);
}

void policy_tenant_read_weight(struct policy_reading *r, yamldoc_node n, double *ret_weight)
{
	double weight = *ret_weight;

	policy_took(r, yamldoc_count(n, "weight", &weight, &r->err));
	/* The gate's range; see WEIR_KNOB_WEIGHT. */
	if (!(weight > 0))
		policy_refuse(r, yamldoc_get(n, "weight"),
			"must be more than 0: a tenant of no weight would never be served");
	else if (weight < 1.0 / 1024 || weight > 1048576)
		policy_refuse(r, yamldoc_get(n, "weight"), "must be from 1/1024 to 1048576");
	else
		*ret_weight = weight;
}

/* ---- the tree */

const char *policy_tenant_path(struct policy_reading *r, int parent, const char *name)
{
	const char *above;
	size_t size;
	char *path;

	if (parent < 0)
		return name;
	above = r->policy->tenants[parent].path;
	size = strlen(above) + strlen(name) + 2;
	path = policy_alloc(r, size);
	if (path)
		snprintf(path, size, "%s/%s", above, name);
	return path;
}

/* Return its index or -1. */
static int add(struct policy_reading *r, yamldoc_node n, const struct weir_tenant *t)
{
	struct weir_policy *p = r->policy;

	if (p->n_tenants == POLICY_TENANTS_MAX) {
		policy_refuse(r, n, "more than %u tenants", POLICY_TENANTS_MAX);
		return -1;
	}
	if (r->no_memory ||
		!policy_grow(r, (void **)&p->tenants, p->n_tenants, &r->tenants_room, sizeof(*t)))
		return -1;
	p->tenants[p->n_tenants] = *t;
	return (int)p->n_tenants++;
}

static struct weir_tenant blank(int parent)
{
	return (struct weir_tenant){
		.parent = parent, .first_child = -1, .next_sibling = -1, .weight = 1};
}

/* Add the tenant of node n; return its index or -1. */
static int read_one(struct policy_reading *r, yamldoc_node n, int parent)
{
	struct weir_tenant t = blank(parent), own = blank(-1);
	unsigned given;
	int index;

	t.at = policy_place(r, n);
	t.name = read_name(r, n);
	if (!t.name || !(t.path = policy_tenant_path(r, parent, t.name)))
		return -1;
	given = policy_class_read_keys(r, n, &own);
	policy_class_join(r, n, policy_class_get(r, n), &own, given, &t);
	policy_tenant_read_matches(r, yamldoc_get(n, "match"), &t);
	policy_cluster_read_tenant(r, yamldoc_get(n, "servers"), &t);
	policy_each_read(r, n, &t);
	policy_plan_read_tenant(r, n, &t);
	policy_net_read_tenant(r, n, &t);
	index = add(r, n, &t);
	if (index >= 0)
		policy_lab_read_tenant(r, n, (size_t)index);
	return index;
}

/* Several sizes share the tenant: a max by size is the most that one of them may have, or else the least. */
static void add_others_max(struct weir_tenant *t, const struct weir_by_size *s)
{
	double rate = s->at_most < INFINITY ? s->at_most : s->at_least;
	bool burst = s->burst_rate > rate;

	if (rate > 0)
		t->max[t->n_max++] = (struct weir_limit){.unit = s->unit,
			.ops = s->ops,
			.rate = rate,
			.burst_rate = burst ? s->burst_rate : 0,
			.burst_for = burst ? s->burst_for : 0,
			.at = s->at};
}

/* Add the tenant for clients of a template that have none of their own: its weight and max. */
static int add_others(struct policy_reading *r, yamldoc_node n, int parent)
{
	const struct weir_each *e = r->policy->tenants[parent].each;
	struct weir_tenant t = blank(parent);

	policy_class_lay(&t, &e->leaf, POLICY_GIVEN_WEIGHT | POLICY_GIVEN_MAX);
	for (unsigned i = 0; i < t.n_max_by_size; i++)
		add_others_max(&t, &t.max_by_size[i]);
	t.max_by_size = NULL;
	t.n_max_by_size = 0;
	t.name = POLICY_EACH_OTHERS;
	t.path = policy_tenant_path(r, parent, t.name);
	t.others = true;
	t.at = e->at;
	return add(r, n, &t);
}

static void read_list(struct policy_reading *r, yamldoc_node list, int parent, int last, int depth)
{

	if (policy_took(r, yamldoc_list(list, &r->err)) != 0)
		return;
	if (depth > POLICY_DEPTH_MAX) {
		policy_refuse(r, list, "deeper than %d levels", POLICY_DEPTH_MAX);
		return;
	}
	for (size_t i = 0; i < yamldoc_size(list) && !r->no_memory; i++) {
		yamldoc_node n = yamldoc_at(list, i), children;
		int t;

		policy_keys(r, n, tenant_keys);
		t = read_one(r, n, parent);
		if (t < 0)
			return;
		if (last >= 0)
			r->policy->tenants[last].next_sibling = t;
		else if (parent >= 0)
			r->policy->tenants[parent].first_child = t;
		last = t;
		children = yamldoc_get(n, "children");
		if (r->policy->tenants[t].each && depth == POLICY_DEPTH_MAX)
			policy_refuse(r, n, "deeper than %d levels", POLICY_DEPTH_MAX);
		if (r->policy->tenants[t].each) {
			int others = add_others(r, n, t);

			if (others < 0)
				return;
			r->policy->tenants[t].first_child = others;
			if (children.id)
				read_list(r, children, t, others, depth + 1);
		} else if (children.id) {
			read_list(r, children, t, -1, depth + 1);
		}
	}
}

void policy_tenant_read(struct policy_reading *r, yamldoc_node tenants)
{
	int last = (int)r->policy->n_tenants - 1;

	while (last >= 0 && r->policy->tenants[last].parent >= 0)
		last--;
	read_list(r, tenants, -1, last, 1);
}
