/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway: start and end.
 *
 * The order of the start: the policy with its overrides; every back end, on the main thread, since
 * that may take long and no client waits yet; the threads; in each of them its resources with the
 * policy in their gates; listening last, so that a client that connects finds everything ready. If
 * a step fails, gateway_free frees the parts that exist, so it must cope with each of them missing.
 */
#include "base/container.h"
#include "serve/gateway/each.h"
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/links.h"
#include "serve/gateway/change.h"
#include "serve/back/back.h"
#include "serve/gateway/ledger.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/slo.h"
#include "serve/loop/inherit.h"
#include "serve/loop/tls.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(WEIR_POLICY_KEEP_LEAST == BACK_KEEP_LEAST, "the policy checks the back end's bound");

/* ---- small things that others ask for */

struct loop *gateway_loop(struct gateway *g)
{
	return g->loop;
}

void gateway_reader(struct gateway *g, weir_policy_reader *reader, void *arg)
{
	g->reader = reader;
	g->reader_arg = arg;
}

uint64_t gateway_version(const struct gateway *g)
{
	return g->version;
}

struct gateway_version *gateway_in_force(const struct gateway *g)
{
	return g->in_force;
}

const struct weir_policy *gateway_policy(const struct gateway *g)
{
	return g->policy;
}

const char *gateway_policy_text(const struct gateway *g)
{
	return g->text;
}

const char *gateway_own_file(
	const struct gateway *g, weir_policy_reader **ret_reader, void **ret_arg)
{
	*ret_reader = g->reader;
	*ret_arg = g->reader_arg;
	return g->reader ? g->file : NULL;
}

static struct tls *gateway_tls(const struct gateway *g, bool *ret_required)
{
	*ret_required = g->tls && g->policy->tls.required;
	return g->tls;
}

void gateway_count(struct gateway *g, int connections, int refused, int broken)
{
	atomic_fetch_add_explicit(&g->connections, (uint64_t)connections, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->refused, (uint64_t)refused, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->broken, (uint64_t)broken, memory_order_relaxed);
}

const struct front_site gateway_site = {
	.export_ = gateway_export,
	.find = gateway_find,
	.admit = gateway_admit,
	.tls = gateway_tls,
	.count = gateway_count,
	.fronts = gateway_fronts,
};

struct each {
	gateway_each_fn *fn;
	void *arg;
	struct gateway_resource *resource;
};

static int each_call(void *arg, struct worker *w)
{
	struct each *e = arg;

	return e->fn(e->arg, e->resource);
}

int gateway_at(struct gateway_resource *r, gateway_each_fn *fn, void *arg)
{
	struct each e = {fn, arg, r};

	return worker_call(r->worker, each_call, &e);
}

int gateway_each(struct gateway *g, gateway_each_fn *fn, void *arg, size_t *ret_index)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		int rc = gateway_at(g->resources[i], fn, arg);

		if (rc >= 0)
			continue;
		if (ret_index)
			*ret_index = i;
		return rc;
	}
	return 0;
}

static int all_call(void *arg, struct worker *w)
{
	const struct each *e = arg;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < w->gateway->n_resources; i++)
		if (w->gateway->resources[i]->worker == w)
			rc = e->fn(e->arg, w->gateway->resources[i]);
	return rc < 0 ? rc : 0;
}

int gateway_all(struct gateway *g, gateway_each_fn *fn, void *arg)
{
	struct each e = {.fn = fn, .arg = arg};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < g->n_workers; i++)
		rc = worker_call(&g->workers[i], all_call, &e);
	return rc;
}

struct resource_change gateway_version_change(const struct gateway_version *v, const char *resource)
{
	struct resource_change c = {.to = v->policy, .bounds = v->bounds};

	for (size_t i = 0; i < v->policy->n_resources; i++)
		if (strcmp(v->policy->resources[i].name, resource) == 0) {
			if (v->profiles.n && v->profiles.all[i])
				c.estimate = &v->profiles.all[i]->table;
			c.claims = v->claims.n ? v->claims.of[i] : NULL;
		}
	return c;
}

static int nothing(void *arg, struct worker *w)
{
	return 0;
}

void gateway_settle(struct gateway *g)
{
	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], nothing, NULL);
}

bool gateway_runs(const struct gateway *g)
{
	return g->n_workers > 0;
}

/* ---- start */

static int open_resources(struct gateway *g, struct weir_err *err)
{
	size_t n = g->policy->n_resources;
	int rc = gateway_resources_open(g, g->policy, &g->resources, err);

	if (rc < 0)
		return rc;
	g->n_resources = n;
	for (size_t i = 0; i < n; i++)
		g->resources[i]->entered = true;
	rc = gateway_volumes_open(g, g->policy, g->resources, &g->volumes, &g->unserved, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = gateway_volumes_add(&g->volumes, g->resources[i], err);
	return rc < 0 ? rc : gateway_fits(g, g->policy, g->resources, err);
}

struct starting {
	struct gateway *gateway;
	struct weir_err *err;
};

static int start_resource(void *arg, struct gateway_resource *r)
{
	struct starting *s = arg;
	struct resource_change c;
	int rc = gateway_resource_start(r, s->err);

	if (rc < 0)
		return rc;
	c = gateway_version_change(s->gateway->in_force, r->name);
	rc = resource_swap_all(r->resource, &c, s->err);
	if (rc < 0)
		return rc;
	rc = gateway_ledger_restore(s->gateway, r);
	return rc < 0 ? no_memory(s->err) : 0;
}

static int start_threads(struct gateway *g, struct weir_err *err)
{
	struct starting s = {g, err};

	int rc = workers_run(g, err);

	return rc < 0 ? rc : gateway_each(g, start_resource, &s, NULL);
}

struct draining {
	struct loop_task task;
	struct loop *loop;
};

static void stop_draining(struct loop_task *t)
{
	loop_stop(container_of(t, struct draining, task)->loop);
}

void gateway_drain(struct gateway *g)
{
	struct draining d = {{.run = stop_draining}, g->loop};

	loop_post(g->loop, &d.task);
	loop_run(g->loop);
}

int gateway_tls_read(const struct weir_policy *p, struct tls **ret_tls, struct weir_err *err)
{
	const struct weir_policy_tls *t = &p->tls;
	struct tls_config c = {.cert = t->cert, .key = t->key, .ca = t->ca, .psk = t->psk};

	*ret_tls = NULL;
	return c.cert || c.psk ? tls_new(&c, true, ret_tls, err) : 0;
}

static int start_gateway(struct gateway *g, struct weir_err *err)
{
	int rc;

	if (g->policy->n_resources == 0)
		return weir_err_set(
			err, -EINVAL, "%s: no resources: there is nothing to serve", g->name);
	if (loop_new(&g->loop) < 0 || aside_new(g->loop, &g->aside) < 0)
		return no_memory(err);
	rc = gateway_signals(g);
	if (rc < 0)
		return weir_err_set(err, rc, "cannot wait for signals: %s", strerror(-rc));
	rc = gateway_tls_read(g->policy, &g->tls, err);
	if (rc == 0)
		rc = open_resources(g, err);
	if (rc == 0)
		rc = gateway_policy_sizes(g, err);
	if (rc == 0 && gateway_ledger_start(g) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = gateway_links_open(g, err);
	if (rc == 0)
		rc = start_threads(g, err);
	if (rc < 0)
		return rc;
	rc = gateway_divide_start(g);
	if (rc == 0)
		rc = gateway_slo_start(g);
	if (rc == 0)
		rc = gateway_each_start(g);
	if (rc < 0)
		return weir_err_set(err, rc, "%s", strerror(-rc));
	rc = gateway_links_start(g, err);
	if (rc == 0 && front_door_new(&gateway_site, g, g->loop, &g->door) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = gateway_listen(g, err);
	if (rc < 0)
		return rc;
	rc = gateway_folders_start(g);
	if (rc < 0)
		return weir_err_set(err, rc, "cannot watch folders: %s", strerror(-rc));
	if (!inherit_keeps_names()) /* else when the process before has ended: succeed.c */
		gateway_replace_start(g);
	gateway_note_news(&(struct gateway_note){0}, &g->unserved, "volume-refused");
	gateway_note_news(&(struct gateway_note){0}, &g->in_force->remarks, "remark");
	rc = gateway_ledger_run(g);
	return rc < 0 ? weir_err_set(err, rc, "cannot keep the ledger: %s", strerror(-rc)) : 0;
}

int gateway_new(struct weir_policy *p, const char *text, const char *name,
	const struct gateway_options *o, struct gateway **ret_gateway, struct weir_err *err)
{
	struct gateway *g = calloc(1, sizeof(*g));
	const char *state = o->state ? o->state : p->state;
	int rc;

	if (!g) {
		weir_policy_free(p);
		return no_memory(err);
	}
	g->options = *o;
	g->version = 1;
	g->changes_last = &g->changes;
	pthread_mutex_init(&g->leaving_lock, NULL);
	g->change_retry.due = gateway_change_retry;
	g->state = state ? strdup(state) : NULL;
	g->spare_fd = g->daemon.signals.fd = -1;
	g->started = loop_clock();
	rc = gateway_policy_start(g, p, text, name, err);
	if (rc == 0)
		rc = start_gateway(g, err);
	if (rc < 0) {
		gateway_free(g);
		return rc;
	}
	*ret_gateway = g;
	return 0;
}

/* ---- the end */

/* Usually gateway_run has waited for the last client. */
static void check_clients(struct gateway *g)
{
	if (gateway_runs(g) && !g->stuck && gateway_busy(g))
		g->stuck = true;
}

void gateway_free(struct gateway *g)
{
	if (!g)
		return;
	if (g->loop) {
		gateway_replace_stop(g);
		gateway_looks_stop(g);
		gateway_folders_stop(g);
		g->abandoned = g->aside && !gateway_changes_stop(g);
		gateway_links_stop(g); /* may run the loop */
		gateway_ledger_stop(g);
		gateway_record_stop(g, NULL, NULL);
		gateway_divide_stop(g);
		gateway_slo_stop(g);
		gateway_each_stop(g);
		gateway_unlisten(g);
		front_door_free(g->door);
		g->door = NULL;
		gateway_signals_end(g);
		gateway_leaving_end(g);
	}
	check_clients(g);
	gateway_resources_end(g);
	for (unsigned i = 0; i < g->n_workers; i++)
		worker_stop(&g->workers[i]);
	/* Else a back end may still write to its memory, or a change opens one for it. */
	for (unsigned i = 0; !g->stuck && !g->abandoned && i < g->n_made; i++)
		worker_free(&g->workers[i]);
	if (!g->stuck && !g->abandoned) {
		gateway_volumes_free(&g->volumes);
		gateway_volumes_end(g);
		gateway_resources_free(g);
	}
	tls_free(g->tls);
	if (g->abandoned)
		return;
	gateway_policy_stop(g);
	if (g->loop)
		loop_free(g->loop);
	if (!g->stuck)
		free(g->workers);
	free(g->state);
	free(g);
}
