/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-policy: servers and tenants of the policy as those of the controller.
 *
 * METHOD  A policy may have 100,000 tenants, and a stand-in is on its gateway's main thread. So their buckets are staged in
 *         steps, one a round of the loop, and enter together after the last: no round is long, and no reservation of the
 *         new policy counts beside one of the old. A policy that arrives meanwhile begins anew.
 */
#include "base/array.h"
#include "base/container.h"
#include "base/same.h"
#include "serve/host/control-impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPARE 1024 /* entries of a report, and connections, beyond the known: policies may differ */

/* A server reports the buckets that left the policy, too. */
size_t control_policy_entries(const struct control *l)
{
	return l->n_buckets + l->policy->n_tenants + SPARE;
}

/* As many again, for connections that are not yet, or no longer, a server's. */
size_t control_policy_connections(const struct control *l)
{
	return 2 * l->policy->cluster.n_servers + SPARE;
}

/* ---- servers */

static int add_server(struct control *l, const char *name)
{
	int64_t at;

	if (array_resize(&l->servers, l->n_servers + 1) < 0)
		return -ENOMEM;
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

static int stage_bucket(struct control *l, const char *path, const struct policy_cluster_tokens *t,
	size_t parts, bool gone)
{
	struct cluster_bucket b = {.id = peer_hash(path),
		.reservation = t->reservation,
		.limit = t->limit,
		.parts = (uint32_t)parts};
	char *own = strdup(path); /* before the controller knows the bucket */
	struct control_bucket *to;
	int64_t at;

	if (!own || array_grow(&l->buckets, &l->room_buckets, l->n_buckets + 1) < 0) {
		free(own);
		return -ENOMEM;
	}
	at = l->lead->stage(l->machine, &b);
	if (at < 0) {
		free(own);
		return (int)at;
	}
	to = &l->buckets[at];
	if ((size_t)at == l->n_buckets) {
		*to = (struct control_bucket){.path = own, .gone = true, .is = *t};
		l->n_buckets++;
	} else {
		free(own);
	}
	to->reading = l->reading.number;
	to->next_gone = gone;
	to->next = *t;
	return 0;
}

static int stage_tenant(struct control *l, size_t i)
{
	const struct weir_policy *p = l->policy;
	struct policy_cluster_tokens t;

	if (p->tenants[i].first_child >= 0)
		return 0;
	policy_cluster_tokens(p, i, l->reading.bounds, &t);
	return stage_bucket(l, p->tenants[i].path, &t, policy_cluster_parts(p, i), false);
}

static int stage_gone(struct control *l, size_t i)
{
	const struct control_bucket *b = &l->buckets[i];
	struct policy_cluster_tokens t = {0, b->is.limit};

	if (b->reading == l->reading.number)
		return 0;
	return stage_bucket(l, b->path, &t, l->policy->cluster.n_servers, true);
}

static void enter(struct control *l)
{
	l->lead->enter(l->machine);
	for (size_t i = 0; i < l->n_buckets; i++) {
		l->buckets[i].gone = l->buckets[i].next_gone;
		l->buckets[i].is = l->buckets[i].next;
	}
}

void control_policy_stop(struct control *l)
{
	if (l->reading.timer.due)
		loop_set(l->loop, &l->reading.timer, WEIR_NEVER);
	free(l->reading.own);
	l->reading.own = NULL;
	l->reading.bounds = NULL;
}

int control_policy_step(struct control *l)
{
	struct control_reading *r = &l->reading;
	int rc = 0;

	for (size_t n = 0; rc == 0 && n < CONTROL_POLICY_STEP; n++)
		if (r->tenants < l->policy->n_tenants)
			rc = stage_tenant(l, r->tenants++);
		else if (r->buckets < l->n_buckets)
			rc = stage_gone(l, r->buckets++);
		else
			break;
	if (rc == 0 && (r->tenants < l->policy->n_tenants || r->buckets < l->n_buckets))
		return 1;
	if (rc == 0)
		enter(l);
	control_policy_stop(l);
	return rc;
}

/* Say how a change ended; a stand-in's gateway says that the policy is another one. */
static void say_read(const struct control *l, int rc)
{
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, l->rank ? "stand-in" : "policy-refused", "why",
			strerror(-rc), NULL);
	else if (!l->rank)
		log_event(LOG_LEVEL_INFO, "policy", "text", "read again", NULL);
}

/* One step a round of the loop: messages, handshakes and the API go on. */
static void step_due(struct loop_timer *t, weir_time now)
{
	struct control *l = container_of(t, struct control, reading.timer);
	int rc = control_policy_step(l);

	if (rc > 0)
		rc = loop_set(l->loop, t, loop_clock());
	else if (rc == 0)
		rc = loop_set(l->loop, &l->timer, l->lead->due(l->machine));
	if (rc < 0)
		control_policy_stop(l);
	if (!l->reading.bounds)
		say_read(l, rc);
}

int control_policy_begin(struct control *l, const struct weir_bounds *bounds)
{
	struct control_reading *r = &l->reading;
	int rc = take_servers(l);

	control_policy_stop(l);
	if (rc == 0 && !bounds) {
		bounds = r->own = calloc(l->policy->n_tenants + 1, sizeof(*r->own));
		rc = r->own ? weir_policy_bounds(l->policy, r->own) : -ENOMEM;
	}
	if (rc < 0) {
		control_policy_stop(l);
		return rc;
	}
	if (l->hub)
		lease_hub_allow(l->hub, control_policy_entries(l), control_policy_connections(l));
	r->bounds = bounds;
	r->number++;
	r->tenants = r->buckets = 0;
	r->timer.due = step_due;
	return loop_set(l->loop, &r->timer, loop_clock());
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
static bool differs_fabric(const struct policy_network *a, const struct policy_network *b)
{
	const char *was = a ? a->fabric : NULL, *is = b ? b->fabric : NULL;

	return !same_text(was, is) || (was && (!same_text(a->fabric_key, b->fabric_key) ||
						      !same_text(a->rack_key, b->rack_key)));
}

static const char *differs(const struct control *l, const struct weir_policy *p)
{
	const struct weir_policy_cluster *is = &l->policy->cluster, *be = &p->cluster;

	if (!is->n_servers != !be->n_servers || differs_fabric(l->policy->network, p->network))
		return "a cluster that comes or goes, or another fabric, needs a restart";
	if (!is->n_servers)
		return NULL;
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

int control_policy_take(struct control *l, struct weir_policy *p, char *text, struct weir_err *err)
{
	const struct weir_policy *old = l->policy;
	const char *why;
	int rc = control_check(p, err);

	if (rc == 0 && (why = differs(l, p)))
		rc = weir_err_set(err, -EINVAL, "%s", why);
	if (rc == 0 && l->fabric)
		rc = fabric_host_policy(l->fabric, p, err);
	if (rc < 0) {
		weir_policy_free(p);
		free(text);
		return rc;
	}
	l->policy = p;
	if (text) {
		free(l->options.text);
		l->options.text = text;
	}
	rc = l->machine ? control_policy_begin(l, NULL) : 0;
	weir_policy_free((struct weir_policy *)old); /* which is its own */
	return rc < 0 ? weir_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

void control_policy_reload(struct control *l)
{
	struct weir_policy *p;
	struct weir_err err;
	char *text = NULL;
	int rc = l->options.reread ? l->options.reread(l->options.reread_arg, &p, &text, &err)
				   : weir_err_set(&err, -EINVAL, "there is no file to read");

	if (rc == 0)
		rc = control_policy_take(l, p, text, &err);
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "policy-refused", "why", err.text, NULL);
}
