/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot: made on the main thread, filled by one worker after the other, read on the main thread.
 *
 * Everything in it is a copy: the policy may be swapped while somebody still looks at it. All its
 * memory hangs on one list, so freeing needs to know nothing of what is inside.
 */
#include "port/agent.h"
#include "port/cluster.h"
#include "port/gateway-impl.h"
#include "port/gateway-slo.h"
#include "port/snapshot.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS_MAX 1000 /* more than a person reads; each is 0.8 kB in here and in what is sent */

struct piece { /* of memory_of; what was asked for follows */
	struct piece *next;
	_Alignas(16) uint8_t data[];
};

void *snapshot_take(struct snapshot *s, size_t n, size_t size)
{
	struct piece *p;

	if (size && n > (SIZE_MAX - sizeof(*p)) / size)
		return NULL;
	p = calloc(1, sizeof(*p) + n * size);
	if (!p)
		return NULL;
	p->next = s->memory_of;
	s->memory_of = p;
	return p->data;
}

static const char *copy(struct snapshot *s, const char *text)
{
	size_t n = strlen(text ? text : "") + 1;
	char *to = snapshot_take(s, n, 1);

	return to ? memcpy(to, text ? text : "", n) : NULL;
}

void snapshot_free(struct snapshot *s)
{
	struct piece *p, *next;

	if (!s)
		return;
	for (p = s->memory_of; p; p = next) {
		next = p->next;
		free(p);
	}
	free(s);
}

static int add_tenants(struct snapshot *s, const struct weir_policy *p)
{
	struct weir_bounds *bounds = calloc(p->n_tenants ? p->n_tenants : 1, sizeof(*bounds));
	int rc = bounds ? weir_policy_bounds(p, bounds) : -ENOMEM;

	s->tenants = snapshot_take(s, p->n_tenants, sizeof(*s->tenants));
	if (!s->tenants)
		rc = -ENOMEM;
	for (size_t i = 0; rc == 0 && i < p->n_tenants; i++) {
		struct snapshot_tenant *t = &s->tenants[i];
		double of_parent;

		t->path = copy(s, p->tenants[i].path);
		t->leaf = p->tenants[i].first_child < 0;
		t->weight = p->tenants[i].weight;
		weir_policy_share(p, i, &of_parent, &t->share);
		memcpy(t->min, bounds[i].min, sizeof(t->min));
		memcpy(t->max, bounds[i].max, sizeof(t->max));
		if (!t->path)
			rc = -ENOMEM;
	}
	s->n_tenants = p->n_tenants;
	free(bounds);
	return rc;
}

static int add_resources(struct snapshot *s, const struct gateway *g)
{
	s->resources = snapshot_take(s, g->n_resources, sizeof(*s->resources));
	if (!s->resources)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_resources; i++) {
		struct snapshot_resource *r = &s->resources[i];

		r->name = copy(s, g->resources[i].name);
		r->back = copy(s, g->resources[i].back_name);
		r->size = g->resources[i].size;
		r->thread = g->resources[i].worker->index;
		if (!r->name || !r->back)
			return -ENOMEM;
	}
	s->n_resources = g->n_resources;
	return 0;
}

int snapshot_new(const struct gateway *g, struct snapshot **ret_snapshot)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->started = g->started;
	s->version = g->version;
	s->enforce = g->policy->enforce;
	rc = add_tenants(s, g->policy);
	if (rc == 0)
		rc = add_resources(s, g);
	if (rc < 0) {
		snapshot_free(s);
		return rc;
	}
	*ret_snapshot = s;
	return 0;
}

void snapshot_hist(struct snapshot *s, struct weir_hist **into, const struct weir_hist *from)
{
	if (!*into) {
		*into = snapshot_take(s, 1, sizeof(**into));
		if (!*into)
			return;
		weir_hist_clear(*into);
	}
	weir_hist_merge(*into, from);
}

/* The array is replaced when it is full; the old one stays on the list until the end: at most twice
 * the memory, and no realloc of what the list owns. */
struct snapshot_client *snapshot_client(struct snapshot *s)
{
	if (s->n_clients == s->room_clients) {
		size_t room = s->room_clients ? s->room_clients * 4 : 16;
		struct snapshot_client *more;

		if (room > CLIENTS_MAX)
			room = CLIENTS_MAX;
		if (s->n_clients == room)
			return NULL;
		more = snapshot_take(s, room, sizeof(*more));
		if (!more)
			return NULL;
		if (s->n_clients)
			memcpy(more, s->clients, s->n_clients * sizeof(*more));
		s->clients = more;
		s->room_clients = room;
	}
	return &s->clients[s->n_clients++];
}

/* ---- gathering: one resource after the other, each in its thread's next round */

static int gather_resource(void *arg, struct gateway_resource *r)
{
	resource_snapshot(r->resource, arg);
	gateway_slo_take(r->worker->gateway, r);
	return 0;
}

static int gather_memory(void *arg, struct worker *w)
{
	struct snapshot *s = arg;

	s->memory += chunk_held(w->pool);
	s->memory_budget += chunk_budget(w->pool);
	return 0;
}

static void gather_agent(struct gateway *g, struct snapshot *s)
{
	struct agent_view v;

	s->has_peers = agent_peers(g, &s->peers);
	for (size_t i = 0; i < g->n_resources; i++) {
		struct snapshot_resource *r = &s->resources[i];

		r->controlled = agent_look(g, i, &v);
		if (!r->controlled)
			continue;
		r->alone = v.last.alone;
		r->peers = v.last.peers;
		r->shares = v.last.report.shares;
		r->beta = v.last.beta;
		r->latency = (weir_time)v.last.latency;
		r->aim = (weir_time)v.last.threshold;
		r->knee = (weir_time)v.last.knee;
		r->held = (weir_time)v.held;
		r->twice = v.last.twice;
	}
}

int gateway_snapshot(struct gateway *g, struct snapshot **ret_snapshot)
{
	struct snapshot *s;
	int rc = snapshot_new(g, &s);

	if (rc < 0)
		return rc;
	gateway_slo_begin(g);
	gateway_each(g, gather_resource, s, NULL);
	gateway_slo_look(g, s);
	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], gather_memory, s);
	s->connections = atomic_load_explicit(&g->connections, memory_order_relaxed);
	s->refused = atomic_load_explicit(&g->refused, memory_order_relaxed);
	s->broken = atomic_load_explicit(&g->broken, memory_order_relaxed);
	gather_agent(g, s);
	cluster_look(g, s);
	s->now = loop_clock();
	*ret_snapshot = s;
	return 0;
}
