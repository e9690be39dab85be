/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: servers whose tenants have one min and one max over all of them (pShift): their names,
 * the addresses of their controllers, and the restrictions.
 *
 * LAW     Tokens count requests. So under pShift a min and a max are in iops and of all operations;
 *         a group has no max of its own, since its members' requests go to many independent gates;
 *         and every resource takes part, or a max would not hold.
 *         Without a controller each of n servers has 1/n of a tenant's min and max.
 */
#include "policy/index.h"
#include "control/controller.h"
#include "policy/plan.h"
#include "wire/peer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cluster_keys[] = {
	"name", "key", "controller", "listen", "servers", "period", "interval", "stand_in", NULL};

#define PERIOD (5 * WEIR_SEC) /* the paper's QoS period (§IV-A) */
/* bytes: the largest piece that passes a gate at once, as one request */
#define PIECE       (256u << 10)
#define CONTROLLERS 8 /* each gets every report: more are a mistake */

/* ---- as written */

static void read_servers(struct policy_reading *r, yamldoc_node n, struct weir_policy_cluster *to)
{
	if (policy_took(r, yamldoc_list(n, &r->err)) != 0)
		return;
	to->servers = policy_alloc(r, (yamldoc_size(n) + 1) * sizeof(*to->servers));
	for (size_t i = 0; to->servers && i < yamldoc_size(n); i++) {
		const char *name = yamldoc_text(yamldoc_at(n, i));

		if (!name || peer_name_check(name) < 0)
			policy_refuse(r, yamldoc_at(n, i),
				"must be the name of a server: of 1 to %d bytes, without spaces",
				PEER_NAME_MAX);
		else if ((to->servers[to->n_servers] = policy_string(r, name)))
			to->n_servers++;
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort, so that each is found fast, and duplicates are adjacent. */
static void check_servers(struct policy_reading *r, yamldoc_node n, struct weir_policy_cluster *to)
{
	if (to->n_servers)
		qsort(to->servers, to->n_servers, sizeof(*to->servers), by_text);
	for (size_t i = 1; i < to->n_servers; i++)
		if (strcmp(to->servers[i], to->servers[i - 1]) == 0) {
			policy_refuse(r, n, "names '%s' twice", to->servers[i]);
			return;
		}
}

void policy_cluster_read_times(
	struct policy_reading *r, yamldoc_node n, struct weir_policy_cluster *to)
{
	const char *text = yamldoc_text(yamldoc_get(n, "interval"));

	to->period = PERIOD;
	if (policy_took(r, yamldoc_time(n, "period", &to->period, &r->err)) == 0 &&
		(to->period < 100 * WEIR_MS || to->period > 60 * WEIR_SEC))
		policy_refuse(r, yamldoc_get(n, "period"), "must be from 100 ms to 60 s");
	if (text && strcmp(text, "auto") == 0)
		return;
	if (policy_took(r, yamldoc_time(n, "interval", &to->interval, &r->err)) == 0 &&
		(to->interval < 10 * WEIR_MS || to->interval > to->period))
		policy_refuse(
			r, yamldoc_get(n, "interval"), "must be from 10 ms to the period, or auto");
}

void policy_cluster_read_stand_in(
	struct policy_reading *r, yamldoc_node n, struct weir_policy_cluster *to)
{
	const char *text = yamldoc_text(n);

	if (!n.id || (text && strcmp(text, "true") == 0))
		return;
	to->no_stand_in = text && strcmp(text, "false") == 0;
	if (to->no_stand_in)
		return;
	policy_serve_read_addresses(r, n, false, &to->stand_ins, &to->n_stand_ins);
	if (to->n_stand_ins > CLUSTER_STAND_INS || to->n_stand_ins > to->n_servers)
		policy_refuse(r, n, "names more than %d, or more than there are servers",
			CLUSTER_STAND_INS);
}

void policy_cluster_read(struct policy_reading *r, yamldoc_node root)
{
	struct weir_policy_cluster *to = &r->policy->cluster;
	yamldoc_node n = yamldoc_get(root, "cluster"), servers = yamldoc_get(n, "servers");
	size_t errors = r->remarks->n_errors;

	if (!n.id || !policy_keys(r, n, cluster_keys))
		return;
	to->at = policy_place(r, n);
	to->name = policy_get_string(r, n, "name");
	if (!to->name)
		to->name = "weir";
	to->key = policy_get_string(r, n, "key");
	policy_serve_read_addresses(
		r, yamldoc_get(n, "controller"), false, &to->controllers, &to->n_controllers);
	policy_serve_read_addresses(r, yamldoc_get(n, "listen"), false, &to->listen, &to->n_listen);
	if (servers.id)
		read_servers(r, servers, to);
	check_servers(r, servers, to);
	policy_cluster_read_times(r, n, to);
	policy_cluster_read_stand_in(r, yamldoc_get(n, "stand_in"), to);
	if (r->remarks->n_errors > errors)
		return;
	if (!to->key)
		policy_refuse(r, n,
			"needs a key: the name of a file with the same content on all machines");
	if (!to->n_controllers)
		policy_refuse(r, n, "needs its controller, as in 'controller: tcp:10.0.0.1:7400'");
	if (to->n_controllers > CONTROLLERS)
		policy_refuse(r, yamldoc_get(n, "controller"), "names more than %d", CONTROLLERS);
	if (!to->n_servers)
		policy_refuse(r, n, "needs its servers: the names of their resources");
}

static bool is_server(const struct weir_policy_cluster *c, const char *name)
{
	return bsearch(&name, c->servers, c->n_servers, sizeof(*c->servers), by_text);
}

bool policy_cluster_elsewhere(const struct weir_policy *p, const char *name)
{
	struct policy_stage s;

	return p->cluster.n_servers && is_server(&p->cluster, name) &&
	       !policy_plan_stage(p, name, &s);
}

void policy_cluster_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	if (!n.id || policy_took(r, yamldoc_list(n, &r->err)) != 0)
		return;
	if (!r->policy->cluster.n_servers && !r->tenants_only) {
		policy_refuse(r, n, "is for tenants of a cluster, but the policy has none");
		return;
	}
	t->servers = policy_alloc(r, (yamldoc_size(n) + 1) * sizeof(*t->servers));
	for (size_t i = 0; t->servers && i < yamldoc_size(n); i++) {
		const char *name = yamldoc_text(yamldoc_at(n, i));

		if (!name || (!r->tenants_only && !is_server(&r->policy->cluster, name)))
			policy_refuse(r, yamldoc_at(n, i), "is not a server of the cluster");
		else if ((t->servers[t->n_servers] = policy_string(r, name)))
			t->n_servers++;
	}
	for (unsigned i = 1; t->servers && i < t->n_servers; i++)
		for (unsigned k = 0; k < i; k++)
			if (strcmp(t->servers[i], t->servers[k]) == 0)
				policy_refuse(r, n, "names '%s' twice", t->servers[i]);
	if (!yamldoc_size(n))
		policy_refuse(r, n, "must name at least one; leave it out for all of them");
}

/* ---- what then cannot be */

static void check_resource(struct policy_reading *r, const struct weir_resource *res)
{
	const struct weir_policy_cluster *c = &r->policy->cluster;
	bool takes_part = res->controller && res->controller->in_cluster;

	if (takes_part && !c->n_servers)
		policy_refuse_at(
			r, res->at, "controller %s needs a 'cluster'", res->controller->name);
	else if (takes_part && !is_server(c, res->name))
		policy_refuse_at(
			r, res->at, "'%s' is not a server of the cluster: add it there", res->name);
	else if (!takes_part && c->n_servers)
		policy_refuse_at(r, res->at,
			"in a cluster every resource has 'controller: %s': a max is over all of "
			"them",
			controller_in_cluster()->name);
	if (takes_part && (res->io_unit < PIECE || res->flush_cost > 1 || res->trim_cost > 1))
		policy_refuse_at(r, res->at,
			"under %s every request is one token: io_unit must be 256 KiB or more, "
			"flush_cost and trim_cost 1",
			res->controller->name);
}

/* Tokens count requests, whatever their size. */
static void check_limits(struct policy_reading *r, const struct weir_tenant *t, const char *what,
	const struct weir_limit *limits, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (limits[i].unit != WEIR_UNIT_REQUESTS || limits[i].ops != WEIR_OPS_ALL)
			policy_refuse_at(r, limits[i].at,
				"the %s of '%s': in a cluster it must be in iops, and of all "
				"operations",
				what, t->path);
		else if (limits[i].burst_rate > 0)
			policy_refuse_at(r, limits[i].at,
				"the burst of '%s': in a cluster there is none; a period's max may "
				"be used at once",
				t->path);
	}
}

/* Requests to a resource where a tenant has no tokens would wait for ever. */
static void check_exports(struct policy_reading *r, size_t leaf)
{
	const struct weir_policy *p = r->policy;
	const struct weir_tenant *t = &p->tenants[leaf];

	for (unsigned k = 0; t->n_servers && k < t->n_match; k++) {
		int e = -1;

		while ((e = policy_index_next(p, t->match[k].export_, e)) >= 0) {
			const struct weir_export *to = &p->exports[e];

			if (policy_cluster_at(p, leaf, p->resources[to->resource].name))
				continue;
			policy_refuse_at(r, to->at,
				"export '%s' is on '%s', which is not a server of tenant '%s'",
				to->name, p->resources[to->resource].name, t->path);
		}
	}
}

void policy_cluster_check(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_resources; i++)
		check_resource(r, &p->resources[i]);
	for (size_t i = 0; p->cluster.n_servers && i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		check_limits(r, t, "min", t->min, t->n_min);
		check_limits(r, t, "max", t->max, t->n_max);
		if (t->first_child >= 0 && t->n_max)
			policy_refuse_at(r, t->max[0].at,
				"'%s' has children, and in a cluster only tenants without have a "
				"max",
				t->path);
		if (t->first_child >= 0 && t->n_servers)
			policy_refuse_at(
				r, t->at, "'%s' has children: give 'servers' to them", t->path);
		check_exports(r, i);
	}
}

/* ---- what it comes to */

#define UNIX_PATH 107 /* bytes: the room of a unix socket's address */

const char *policy_cluster_stand_in(
	const struct weir_policy *p, unsigned rank, char *ret_address, size_t room)
{
	const struct weir_policy_cluster *c = &p->cluster;
	const char *server = rank < c->n_servers ? c->servers[rank] : NULL;
	const char *given = rank < c->n_stand_ins ? c->stand_ins[rank] : NULL;
	int n;

	if (!server || c->no_stand_in || (c->n_stand_ins && !given))
		return NULL;
	if (given)
		n = snprintf(ret_address, room, "%s", given);
	else if (strncmp(c->controllers[0], "unix:", 5) == 0)
		n = snprintf(ret_address, room, "%s.%s", c->controllers[0], server);
	else
		return NULL;
	if (n < 0 || (size_t)n >= room || (!given && n > 5 + UNIX_PATH))
		return NULL;
	return server;
}

size_t policy_cluster_parts(const struct weir_policy *p, size_t leaf)
{
	return p->tenants[leaf].n_servers ? p->tenants[leaf].n_servers : p->cluster.n_servers;
}

bool policy_cluster_at(const struct weir_policy *p, size_t leaf, const char *server)
{
	const struct weir_tenant *t = &p->tenants[leaf];

	for (unsigned i = 0; i < t->n_servers; i++)
		if (strcmp(t->servers[i], server) == 0)
			return true;
	return t->n_servers == 0;
}

void policy_cluster_tokens(const struct weir_policy *p, size_t leaf,
	const struct weir_bounds *bounds, struct policy_cluster_tokens *ret)
{
	double seconds = (double)p->cluster.period / (double)WEIR_SEC;
	unsigned slot = weir_limit_slot(WEIR_UNIT_REQUESTS, WEIR_OPS_ALL);
	double max = bounds[leaf].max[slot];

	/* Round a reservation up to whole tokens, and a limit down. */
	*ret = (struct policy_cluster_tokens){
		.reservation = (int64_t)ceil(bounds[leaf].min[slot] * seconds - 1e-6),
		.limit = isinf(max) ? INT64_MAX : (int64_t)floor(max * seconds + 1e-6)};
	if (ret->reservation > ret->limit)
		ret->reservation = ret->limit;
}
