/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot-look: gather a snapshot.
 *
 * METHOD  The main thread makes an empty one and posts it to the thread of the first resource,
 *         which adds its part in steps of some hundred µs, one per round, so that its clients do
 *         not notice; then to the thread of the next; and the last posts it back. So one thread has
 *         it at any time, no thread waits, and the main thread continues meanwhile. If a policy is
 *         swapped in between, tenants of the snapshot's version are found by their path.
 */
#include "base/container.h"
#include "base/list.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/links.h"
#include "serve/gateway/plan.h"
#include "serve/gateway/slo.h"
#include "serve/snapshot/snapshot.h"
#include <errno.h>
#include <stdlib.h>

struct gateway_look {
	struct gateway_look *next, **link; /* of the gateway's, until it is done */
	struct loop_task there, back;
	struct gateway *gateway;
	struct snapshot *snapshot;
	struct gateway_resource **resources; /* of the version, held */
	size_t n_resources;
	size_t resource, at; /* current resource, and progress there */
	atomic_bool *stop;   /* set by the gateway when it ends */
	gateway_look_fn *done;
	void *arg;
};

/* ---- an empty one */

static const char *copy(struct snapshot *s, const char *text)
{
	return arena_text(&s->arena, text ? text : "");
}

static int add_resources(struct snapshot *s, const struct gateway *g)
{
	s->resources = snapshot_take(s, g->n_resources, sizeof(*s->resources));
	if (!s->resources)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_resources; i++) {
		struct snapshot_resource *r = &s->resources[i];

		r->name = copy(s, g->resources[i]->name);
		r->back = copy(s, g->resources[i]->back_name);
		r->size = g->resources[i]->size;
		r->thread = g->resources[i]->worker->index;
		if (!r->name || !r->back)
			return -ENOMEM;
	}
	s->n_resources = g->n_resources;
	return 0;
}

/* List the volumes with trouble. */
static int add_volumes(struct snapshot *s, const struct gateway *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->volumes.n; i++)
		n += gateway_volume_trouble(g->volumes.all[i]) != NULL;
	s->volumes = snapshot_take(s, n + 1, sizeof(*s->volumes));
	for (size_t i = 0; s->volumes && i < g->volumes.n && s->n_volumes < n; i++) {
		const char *why = gateway_volume_trouble(g->volumes.all[i]);
		const char *name = why ? copy(s, g->volumes.all[i]->name) : NULL;

		if (name)
			s->volumes[s->n_volumes++] = (struct snapshot_volume){name, why};
	}
	return s->volumes ? 0 : -ENOMEM;
}

static int snapshot_new(struct gateway *g, struct snapshot **ret_snapshot)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	size_t n = g->policy->n_tenants;

	if (!s)
		return -ENOMEM;
	s->started = g->started;
	s->version = g->version;
	s->enforce = g->policy->enforce;
	s->of = gateway_version_hold(g->in_force);
	s->tenants = snapshot_take(s, n + 1, sizeof(*s->tenants));
	if (!s->tenants || add_resources(s, g) < 0 || add_volumes(s, g) < 0) {
		snapshot_free(s);
		return -ENOMEM;
	}
	s->n_tenants = n;
	*ret_snapshot = s;
	return 0;
}

/* ---- what the main thread knows */

static int take_slos(void *arg, struct gateway_resource *r)
{
	gateway_slo_take(r->worker->gateway, r);
	return 0;
}

static void gather_own(struct gateway *g, struct snapshot *s)
{
	s->connections = atomic_load_explicit(&g->connections, memory_order_relaxed);
	s->refused = atomic_load_explicit(&g->refused, memory_order_relaxed);
	s->broken = atomic_load_explicit(&g->broken, memory_order_relaxed);
	gateway_links_look(g, s);
	if (!g->switching) {
		gateway_slo_begin(g);
		gateway_each(g, take_slos, NULL, NULL);
	}
	gateway_slo_look(g, s);
	s->now = loop_clock();
	s->plan_age = gateway_plan_age(g->in_force->plan);
}

/* ---- in steps */

/* A worker's memory is counted with its first resource. */
static void gather_memory(const struct gateway_look *k)
{
	const struct gateway_resource *r = k->resources[k->resource];
	struct snapshot *s = k->snapshot;

	for (size_t i = 0; i < k->resource; i++)
		if (k->resources[i]->worker == r->worker)
			return;
	s->memory += chunk_held(r->worker->pool);
	s->memory_budget += chunk_budget(r->worker->pool);
}

/* On the resource's thread. Return true if there is more. */
static bool gather(struct gateway_look *k)
{
	if (k->at == 0)
		gather_memory(k);
	return resource_snapshot(k->resources[k->resource]->resource, k->snapshot, &k->at);
}

static void post_next(struct gateway_look *k)
{
	if (k->resource < k->n_resources && !atomic_load(k->stop))
		loop_post(k->resources[k->resource]->worker->loop, &k->there);
	else
		loop_post(k->gateway->loop, &k->back);
}

static void look_there(struct loop_task *t)
{
	struct gateway_look *k = container_of(t, struct gateway_look, there);

	if (!gather(k)) {
		k->resource++;
		k->at = 0;
	}
	post_next(k);
}

static void look_unlink(struct gateway_look *k)
{
	list_remove(k);
}

static void look_back(struct loop_task *t)
{
	struct gateway_look *k = container_of(t, struct gateway_look, back);

	look_unlink(k);
	if (atomic_load(k->stop)) {
		snapshot_free(k->snapshot);
		k->snapshot = NULL;
	} else {
		gather_own(k->gateway, k->snapshot);
	}
	k->done(k->arg, k->snapshot);
	for (size_t i = 0; i < k->n_resources; i++)
		gateway_resource_put(k->resources[i]);
	free(k->resources);
	free(k);
}

static int hold_resources(struct gateway_look *k, const struct gateway *g)
{
	k->resources = calloc(g->n_resources + 1, sizeof(*k->resources));
	if (!k->resources)
		return -ENOMEM;
	for (; k->n_resources < g->n_resources; k->n_resources++) {
		k->resources[k->n_resources] = g->resources[k->n_resources];
		gateway_resource_hold(g->resources[k->n_resources]);
	}
	return 0;
}

int gateway_look(struct gateway *g, const char *clients_of, gateway_look_fn *done, void *arg)
{
	struct gateway_look *k = calloc(1, sizeof(*k));
	int rc = k && !g->looks_end ? snapshot_new(g, &k->snapshot) : -ENOMEM;

	if (rc == 0 && clients_of && !(k->snapshot->clients_of = copy(k->snapshot, clients_of)))
		rc = -ENOMEM;
	if (rc == 0)
		rc = hold_resources(k, g);
	if (rc < 0) {
		snapshot_free(k ? k->snapshot : NULL);
		free(k);
		return rc;
	}
	k->there.run = look_there;
	k->back.run = look_back;
	k->gateway = g;
	k->stop = &g->looks_end;
	k->done = done;
	k->arg = arg;
	list_push(g->looks, k);
	post_next(k);
	return 0;
}

void gateway_looks_stop(struct gateway *g)
{
	atomic_store(&g->looks_end, true);
	if (!g->looks)
		return;
	gateway_settle(g); /* now all of them are on their way back */
	gateway_drain(g);
}
