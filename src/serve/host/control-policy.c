/* SPDX-License-Identifier: BSD-3-Clause */
/* control-policy: servers and tenants of the policy as those of the controller. */
#include "policy/impl.h"
#include "serve/host/control-impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- servers */

static int add_server(struct control *l, const char *name)
{
	void *p = realloc(l->servers, (l->n_servers + 1) * sizeof(*l->servers));
	int64_t at;

	if (!p)
		return -ENOMEM;
	l->servers = p;
	at = l->lead->server(l->machine, name);
	if (at < 0)
		return (int)at;
	l->servers[at] = (struct control_server){.link = NULL};
	strncpy(l->servers[at].name, name, PEER_NAME_MAX);
	l->n_servers = (size_t)at + 1;
	return ids_add(&l->server_ids, peer_hash(name), (uint32_t)at);
}

static int take_servers(struct control *l)
{
	const struct weir_policy_cluster *c = &l->policy->cluster;

	for (size_t i = 0; i < c->n_servers; i++) {
		int rc = 0;

		if (ids_find(&l->server_ids, peer_hash(c->servers[i])) == SIZE_MAX)
			rc = add_server(l, c->servers[i]);
		if (rc < 0)
			return rc;
	}
	/* A connection points to its server, which may have moved. */
	for (size_t i = 0; i < l->n_servers; i++)
		if (l->servers[i].link)
			lease_hub_set_user(l->servers[i].link, &l->servers[i]);
	return 0;
}

/* ---- buckets */

static int put_bucket(
	struct control *l, const char *path, const struct policy_cluster_tokens *t, size_t parts)
{
	struct cluster_bucket b = {.id = peer_hash(path),
		.reservation = t->reservation,
		.limit = t->limit,
		.parts = (uint32_t)parts};
	size_t known = ids_find(&l->bucket_ids, b.id);
	int64_t at = l->lead->bucket(l->machine, &b);
	struct control_bucket *to;

	if (at < 0)
		return (int)at;
	if (known == SIZE_MAX) {
		void *p = realloc(l->buckets, ((size_t)at + 1) * sizeof(*l->buckets));

		if (!p)
			return -ENOMEM;
		l->buckets = p;
		l->buckets[at] = (struct control_bucket){.path = strdup(path)};
		l->n_buckets = (size_t)at + 1;
		if (!l->buckets[at].path || ids_add(&l->bucket_ids, b.id, (uint32_t)at))
			return -ENOMEM;
	}
	to = &l->buckets[at];
	to->gone = false;
	to->reservation = t->reservation;
	to->limit = t->limit;
	return 0;
}

static int take_buckets(struct control *l)
{
	const struct weir_policy *p = l->policy;
	struct weir_bounds *bounds = calloc(p->n_tenants + 1, sizeof(*bounds));
	int rc = bounds ? weir_policy_bounds(p, bounds) : -ENOMEM;

	for (size_t i = 0; i < l->n_buckets; i++)
		l->buckets[i].gone = true;
	for (size_t i = 0; rc == 0 && i < p->n_tenants; i++) {
		struct policy_cluster_tokens t;

		if (p->tenants[i].first_child >= 0)
			continue;
		policy_cluster_tokens(p, i, bounds, &t);
		rc = put_bucket(l, p->tenants[i].path, &t, policy_cluster_parts(p, i));
	}
	for (size_t i = 0; rc == 0 && i < l->n_buckets; i++) {
		struct policy_cluster_tokens t = {0, l->buckets[i].limit};

		if (!l->buckets[i].gone)
			continue;
		rc = put_bucket(l, l->buckets[i].path, &t, p->cluster.n_servers);
		l->buckets[i].gone = true;
	}
	free(bounds);
	return rc;
}

int control_policy_take(struct control *l)
{
	int rc = take_servers(l);

	return rc < 0 ? rc : take_buckets(l);
}

/* ---- again */

static bool same_list(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	bool same = n_a == n_b;

	for (size_t i = 0; same && i < n_a; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

/* NULL: it may follow the one in force; else what takes a restart. */
static const char *differs(const struct control *l, const struct weir_policy *p)
{
	const struct weir_policy_cluster *is = &l->policy->cluster, *be = &p->cluster;

	if (strcmp(is->name, be->name) != 0 || strcmp(is->key, be->key) != 0)
		return "another cluster or key needs a restart";
	if (is->period != be->period || is->interval != be->interval)
		return "another period or interval needs a restart";
	if (!same_list(is->listen, is->n_listen, be->listen, be->n_listen) ||
		!same_list(is->controllers, is->n_controllers, be->controllers, be->n_controllers))
		return "another address needs a restart";
	if (be->n_servers < is->n_servers)
		return "removing servers needs a restart";
	for (size_t i = 0; i < is->n_servers; i++) {
		bool there = false;

		for (size_t k = 0; k < be->n_servers && !there; k++)
			there = strcmp(is->servers[i], be->servers[k]) == 0;
		if (!there)
			return "removing one of its servers needs a restart";
	}
	return NULL;
}

void control_policy_reload(struct control *l)
{
	struct weir_policy *p;
	const struct weir_policy *old = l->policy;
	struct weir_err err;
	const char *why = NULL;
	int rc = l->options.reread ? l->options.reread(l->options.reread_arg, &p, &err)
				   : weir_err_set(&err, -EINVAL, "there is no file to read");

	if (rc == 0) {
		why = control_check(p, &err) < 0 ? err.text : differs(l, p);
		if (why) {
			rc = -EINVAL;
			weir_policy_free(p);
		}
	} else {
		why = err.text;
	}
	if (rc == 0) {
		l->policy = p;
		rc = control_policy_take(l);
		weir_policy_free((struct weir_policy *)old); /* which is its own */
		why = rc < 0 ? strerror(-rc) : NULL;
	}
	if (why)
		log_event(LOG_LEVEL_ERROR, "policy-refused", "why", why, NULL);
	else
		log_event(LOG_LEVEL_INFO, "policy", "text", "read again", NULL);
}
