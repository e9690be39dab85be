/* SPDX-License-Identifier: BSD-3-Clause */
/* controller: a resource's controller and the controller's settings, by its table of keys. */
#include "control/controller.h"
#include "policy/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTROLLERS 32

const char **policy_controller_keys(const char *const *more, const char **names, size_t room)
{
	size_t n = 0;

	while (more[n])
		n++;
	memcpy(names, more, n * sizeof(*names));
	for (size_t i = 0; controllers[i]; i++) {
		for (const struct key *k = controllers[i]->keys; k->name; k++)
			if (k->beside && n < room - 2)
				names[n++] = k->name;
		if (controllers[i]->keys->name && n < room - 2)
			names[n++] = controllers[i]->name;
	}
	names[n] = NULL;
	return names;
}

const char **policy_controller_lab_keys(const char *const *own, const char **names)
{
	size_t n = 0;

	while (own[n]) {
		names[n] = own[n];
		n++;
	}
	for (size_t i = 0; controllers[i]; i++)
		for (const struct key *k = controllers[i]->keys; k->name; k++)
			if (k->lab && n + 1 < KEYS_MOST)
				names[n++] = k->name;
	names[n] = NULL;
	return names;
}

/* Return the controller that the rest of the policy asks for: of a cluster's servers, or, where no resource names a
 * controller, of hosts that name each other. NULL: none. Experiments choose their own. */
static const struct controller *implied(const struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	if (p->lab)
		return NULL;
	if (p->cluster.n_servers)
		return controller_in_cluster();
	for (size_t i = 0; p->peers.n_to && !r->names_controllers && controllers[i]; i++)
		if (controllers[i]->has_peers)
			return controllers[i];
	return NULL;
}

/* Return false if the map's `controller` was refused. */
static bool read_kind(struct policy_reading *r, yamldoc_node n, const struct controller **ret)
{
	const char *words[CONTROLLERS] = {"none"};
	int word = 0, rc;

	for (size_t i = 0; controllers[i] && i + 2 < CONTROLLERS; i++)
		words[i + 1] = controllers[i]->name;
	rc = policy_took(r, yamldoc_choice(n, "controller", words, &word, &r->err));
	*ret = word ? controllers[word - 1] : NULL;
	return rc == 0 || !yamldoc_has(n, "controller");
}

/* Refuse a key or a map of a controller that is not chosen. An experiment may have settings for several, of which its runs
 * choose one. */
static void refuse_others(struct policy_reading *r, yamldoc_node n, const struct controller *is)
{
	if (r->policy->lab && yamldoc_has(n, "controller"))
		return;
	for (size_t i = 0; controllers[i]; i++) {
		const struct controller *c = controllers[i];

		if (c == is)
			continue;
		if (yamldoc_has(n, c->name))
			policy_refuse(r, n, "%s is for 'controller: %s'", c->name, c->name);
		for (const struct key *k = c->keys; k->name; k++)
			if (k->beside && yamldoc_has(n, k->name))
				policy_refuse(r, n, "%s is for 'controller: %s'", k->name, c->name);
	}
}

static void refuse(struct controller_check *c, yamldoc_node at, const char *message)
{
	policy_refuse(c->arg, at, "%s", message);
}

static void read_keys(struct policy_reading *r, const struct controller *c,
	struct controller_check *check, struct settings *s)
{
	const char *names[KEYS_MOST];

	if (check->own.id &&
		!policy_keys(r, check->own, keys_names(c->keys, false, false, NULL, names)))
		return;
	for (const struct key *k = c->keys; k->name; k++) {
		yamldoc_node map = k->lab      ? yamldoc_get(check->map, "lab")
				   : k->beside ? check->map
					       : check->own;

		policy_took(r, key_read(k, map, s, &r->err));
	}
	if (c->check)
		c->check(s, check);
}

void policy_controller_read(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	const struct controller *c;
	struct controller_check check = {.resource = to->name,
		.cost = to->cost,
		.has_iops = to->capacity_auto || to->capacity[WEIR_UNIT_REQUESTS].per_second > 0,
		.map = n,
		.refuse = refuse,
		.arg = r};
	struct settings s = {0};

	if (!read_kind(r, n, &c))
		return;
	if (!yamldoc_has(n, "controller"))
		c = implied(r);
	check.implied = to->implied = c && !yamldoc_has(n, "controller");
	to->controller = c;
	refuse_others(r, n, c);
	if (!c)
		return;
	check.own = yamldoc_get(n, c->name);
	s.len = c->settings_size;
	s.data = policy_scratch(r, s.len, 1);
	if (!s.data)
		return;
	keys_default(c->keys, s.data, s.len);
	read_keys(r, c, &check, &s);
	policy_settings_set(r, to, s.data, s.len);
	free(s.data);
}

bool policy_controller_counts_bytes(const struct weir_resource *r)
{
	return r->settings && r->controller->counts_bytes &&
	       r->controller->counts_bytes(r->settings);
}

void policy_settings_set(
	struct policy_reading *r, struct weir_resource *to, const void *settings, size_t len)
{
	void *copy = policy_alloc(r, len + 1);

	if (copy && len)
		memcpy(copy, settings, len);
	to->settings = copy;
	to->settings_len = len;
}

/* ---- a version of the policy, as controllers see it */

struct controller_tenant policy_version_tenant(const struct controller_version *v, size_t i)
{
	const struct weir_tenant *t = &((const struct weir_policy *)v->of)->tenants[i];

	return (struct controller_tenant){.path = t->path,
		.is_leaf = t->first_child < 0,
		.weight = t->weight,
		.slo_percentile = t->slo_percentile,
		.slo_latency = t->slo_latency};
}

static struct controller_tokens tokens_of(const struct controller_version *v, size_t i)
{
	const struct weir_policy *p = v->of;
	struct policy_cluster_tokens t;

	policy_cluster_tokens(p, i, v->at, &t);
	return (struct controller_tokens){.here = policy_cluster_at(p, i, v->server),
		.parts = (unsigned)policy_cluster_parts(p, i),
		.reservation = t.reservation,
		.limit = t.limit};
}

static int shares_of(const struct controller_version *v, double *ret)
{
	const struct weir_policy *p = v->of;
	double *of_parent = calloc(v->n + 1, sizeof(*of_parent));

	if (!of_parent)
		return -ENOMEM;
	weir_policy_share(p, of_parent, ret);
	for (size_t i = 0; i < v->n; i++) /* the first tenant is no child */
		ret[i] *= p->tenants[0].weight / of_parent[0];
	free(of_parent);
	return 0;
}

struct controller_version policy_version(const struct weir_policy *p, const struct weir_resource *r,
	const struct weir_bounds *bounds)
{
	return (struct controller_version){.n = p ? p->n_tenants : 0,
		.settings = r->settings,
		.capacity = {r->capacity[0].per_second, r->capacity[1].per_second},
		.depth = r->depth,
		.cluster = {p ? p->cluster.name : NULL, p ? p->cluster.period : 0},
		.tenant = policy_version_tenant,
		.tokens = tokens_of,
		.shares = shares_of,
		.of = p,
		.at = bounds,
		.server = r->name};
}
