/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: overrides of a service's share of the machine's links.
 *
 * METHOD  As override.c: the reader of the file reads the value into a copy of the tenant's `net`.
 *         A max is an operator's brake: mins that do not fit below it give way, those of the services inside in proportion.
 */
#include "base/no-memory.h"
#include "policy/override/impl.h"
#include "policy/impl.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct net_target {
	int tenant;
	bool dir[POLICY_NET_DIRS];
	const char *name; /* min, max or weight */
};

/* Cut `suffix` off the end of `text`, of *len bytes. */
static bool cut(const char *text, size_t *len, const char *suffix)
{
	size_t n = strlen(suffix);

	if (*len < n || memcmp(text + *len - n, suffix, n) != 0)
		return false;
	*len -= n;
	return true;
}

static int find(
	const struct weir_policy *p, const char *key, struct net_target *ret, struct weir_err *err)
{
	const char *dot = strrchr(key, '.');
	size_t len = dot ? (size_t)(dot - key) : 0;
	bool in = cut(key, &len, ".in"), out = !in && cut(key, &len, ".out");
	struct net_target t = {.dir = {!out, !in}, .name = dot ? dot + 1 : ""};
	char path[POLICY_DEPTH_MAX * 64];

	if (!cut(key, &len, ".net") || len >= sizeof(path))
		return weir_err_set(err, -ENOENT,
			"'%s' is not TENANT.net.KEY, TENANT.net.in.KEY or TENANT.net.out.KEY", key);
	if (strcmp(t.name, "min") != 0 && strcmp(t.name, "max") != 0 &&
		strcmp(t.name, "weight") != 0)
		return weir_err_set(err, -ENOENT, "no key '%s' (min, max, weight)", t.name);
	snprintf(path, sizeof(path), "%.*s", (int)len, key);
	t.tenant = weir_policy_find(p, path);
	if (t.tenant < 0 || !p->tenants[t.tenant].net)
		return weir_err_set(
			err, -ENOENT, "no service '%s' (a path is written 'parent/child')", path);
	*ret = t;
	return 0;
}

/* Read the value into a share. Return 0 or a negative number: the first remark says why. */
static int read_value(
	struct policy_reading *r, const char *name, const char *value, struct policy_net_share *to)
{
	size_t room = strlen(name) + strlen(value) + 4;
	char *text = malloc(room);
	struct yamldoc *doc;
	int rc = -ENOMEM;

	if (text) {
		snprintf(text, room, "%s: %s\n", name, value);
		rc = yamldoc_parse(text, strlen(text), "set", &doc, &r->remarks->errors[0]);
	}
	free(text);
	if (rc)
		return rc;
	policy_net_read_share(r, yamldoc_root(doc), to);
	yamldoc_free(doc);
	return r->remarks->n_errors ? -EINVAL : r->no_memory ? -ENOMEM : 0;
}

/* Give a tenant a `net` of its own, which may be written. NULL: no memory. */
static struct policy_net *own_net(struct policy_reading *r, size_t tenant)
{
	struct policy_net *to = policy_alloc(r, sizeof(*to));

	if (to) {
		*to = *r->policy->tenants[tenant].net;
		r->policy->tenants[tenant].net = to;
	}
	return to;
}

/* Return the rate that a tenant must be guaranteed. */
static double needs(const struct weir_policy *p, int tenant, int dir)
{
	const struct policy_net *net = p->tenants[tenant].net;
	double sum = 0, own = net ? net->share[POLICY_NET_MACHINE][dir].min : 0;

	for (int c = p->tenants[tenant].first_child; c >= 0; c = p->tenants[c].next_sibling)
		sum += needs(p, c, dir);
	return fmax(own, sum);
}

static void scale_mins(struct policy_reading *r, int tenant, int dir, double by)
{
	const struct weir_policy *p = r->policy;
	struct policy_net *net = p->tenants[tenant].net ? own_net(r, (size_t)tenant) : NULL;

	if (net)
		net->share[POLICY_NET_MACHINE][dir].min *= by;
	for (int c = p->tenants[tenant].first_child; c >= 0; c = p->tenants[c].next_sibling)
		scale_mins(r, c, dir, by);
}

static int set(
	struct policy_reading *r, const struct net_target *t, const struct policy_net_share *to)
{
	struct policy_net *net = own_net(r, (size_t)t->tenant);

	for (int d = 0; net && d < POLICY_NET_DIRS; d++) {
		struct policy_net_share *of = &net->share[POLICY_NET_MACHINE][d];
		double need;

		if (!t->dir[d])
			continue;
		if (strcmp(t->name, "weight") == 0)
			of->weight = to->weight;
		else if (strcmp(t->name, "min") == 0)
			of->min = to->min;
		else
			of->max = to->max;
		need = needs(r->policy, t->tenant, d);
		if (strcmp(t->name, "max") == 0 && need > to->max)
			scale_mins(r, t->tenant, d, to->max / need);
	}
	return r->no_memory || !net ? -ENOMEM : 0;
}

int policy_override_net(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err)
{
	struct policy_net_share to = {.max = INFINITY, .weight = 1};
	struct policy_reading r = {.policy = p};
	struct net_target t = {0};
	int rc = find(p, key, &t, err);

	if (rc)
		return rc;
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '#')
			return weir_err_set(err, -EINVAL, "%s: must be one line without a #", key);
	if (!(r.remarks = calloc(1, sizeof(*r.remarks))))
		return no_memory(err);
	if (strcmp(value, "none") != 0)
		rc = read_value(&r, t.name, value, &to);
	if (rc == 0)
		rc = set(&r, &t, &to);
	if (rc == -EINVAL)
		weir_err_set(err, rc, "%s: %s", key, policy_override_words(&r.remarks->errors[0]));
	else if (rc)
		no_memory(err);
	free(r.remarks);
	return rc;
}
