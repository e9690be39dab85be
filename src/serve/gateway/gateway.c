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
#include "serve/gateway/impl.h"
#include "serve/host/reports.h"
#include "serve/gateway/change.h"
#include "serve/back/back.h"
#include "serve/back/volumes.h"
#include "serve/host/cluster.h"
#include "serve/gateway/ledger.h"
#include "serve/gateway/note.h"
#include "serve/gateway/slo.h"
#include "serve/loop/tls.h"
#include "base/no-memory.h"
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_DEFAULT ((size_t)1 << 30)  /* bytes of payloads: a second of a fast disk */
#define MEMORY_LEAST   ((size_t)16 << 20) /* a worker: 64 of the largest pieces */

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

struct tls *gateway_tls(const struct gateway *g, bool *ret_required)
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

int gateway_each(struct gateway *g, gateway_each_fn *fn, void *arg, size_t *ret_index)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		struct each e = {fn, arg, &g->resources[i]};
		int rc = worker_call(e.resource->worker, each_call, &e);

		if (rc >= 0)
			continue;
		if (ret_index)
			*ret_index = i;
		return rc;
	}
	return 0;
}

static int nothing(void *arg, struct gateway_resource *r)
{
	return 0;
}

void gateway_settle(struct gateway *g)
{
	gateway_each(g, nothing, NULL, NULL);
}

bool gateway_runs(const struct gateway *g)
{
	for (unsigned i = 0; i < g->n_workers; i++)
		if (!g->workers[i].running)
			return false;
	return true;
}

/* ---- start */

static unsigned count_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static int make_workers(struct gateway *g, struct weir_err *err)
{
	const struct gateway_options *o = &g->options;
	size_t n = o->threads           ? o->threads
		   : g->policy->threads ? g->policy->threads
					: count_cores();
	size_t memory = o->memory            ? o->memory
			: g->policy->buffers ? g->policy->buffers
					     : MEMORY_DEFAULT;

	if (n > g->policy->n_resources)
		n = g->policy->n_resources;
	assert(n > 0); /* start looked */
	memory /= n;
	if (memory < MEMORY_LEAST)
		memory = MEMORY_LEAST;
	g->workers = calloc(n, sizeof(*g->workers));
	if (!g->workers)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		int core = o->n_cores ? o->cores[i % o->n_cores] : -1;
		int rc = worker_init(&g->workers[g->n_workers++], g, (unsigned)i, memory, core);

		if (rc < 0)
			return weir_err_set(err, rc, "cannot make a thread: %s", strerror(-rc));
	}
	return 0;
}

/* Main thread. */
static void learned(struct loop_task *t)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, learned);

	r->size = resource_info(r->resource)->size;
	r->known = true;
	gateway_fits_resource(r->gateway, r);
	gateway_each_size(r->gateway);
	front_known(r->gateway->door);
}

/* The worker's thread. */
static void known(void *arg)
{
	struct gateway_resource *r = arg;

	r->learned.run = learned;
	loop_post(r->gateway->loop, &r->learned);
}

static int open_back(struct gateway *g, const struct weir_resource *spec,
	struct gateway_resource *r, struct back **ret, struct weir_err *err)
{
	if (spec->volumes)
		return back_volumes_new(r->worker->loop, ret) < 0 ? no_memory(err) : 0;
	if (spec->back)
		return gateway_back_open(g, spec, r, NULL, ret, err);
	return weir_err_at(err, -EINVAL, spec->at,
		"resource '%s' names no back end, as in back: \"memory:1G\"", spec->name);
}

static int open_resource(struct gateway *g, size_t i, struct weir_err *err)
{
	const struct weir_resource *spec = &g->policy->resources[i];
	struct gateway_resource *r = &g->resources[i];
	struct resource_config c = {.spec = spec,
		.bare = g->options.bare,
		.known = spec->volumes ? NULL : known,
		.known_arg = r};
	int rc;

	r->gateway = g;
	r->worker = &g->workers[i % g->n_workers];
	r->name = strdup(spec->name);
	r->back_name = strdup(spec->back ? spec->back : "");
	r->volumes = spec->volumes;
	g->n_resources++;
	if (!r->name || !r->back_name)
		return no_memory(err);
	rc = open_back(g, spec, r, &c.back, err);
	if (rc < 0)
		return rc;
	r->size = c.back->info.size;
	c.loop = r->worker->loop;
	rc = resource_new(&c, &r->resource);
	if (rc < 0) {
		back_free(c.back);
		return weir_err_set(err, rc, "%s: %s", r->name, strerror(-rc));
	}
	r->known = !resource_starting(r->resource);
	return 0;
}

static int open_resources(struct gateway *g, struct weir_err *err)
{
	size_t n = g->policy->n_resources;
	int rc;

	g->resources = calloc(n, sizeof(*g->resources));
	if (!g->resources)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		rc = open_resource(g, i, err);
		if (rc < 0)
			return rc;
	}
	rc = gateway_volumes_open(g, g->policy, &g->volumes, &g->unserved, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = gateway_volumes_add(&g->volumes, &g->resources[i], err);
	return rc < 0 ? rc : gateway_fits(g, g->policy, err);
}

struct starting {
	struct gateway *gateway;
	struct weir_err *err;
};

static int start_resource(void *arg, struct gateway_resource *r)
{
	struct starting *s = arg;
	int rc = resource_start(r->resource);

	if (rc < 0)
		return weir_err_set(s->err, rc, "%s: %s: %s", r->name, r->back_name, strerror(-rc));
	rc = resource_swap(r->resource, s->gateway->policy, s->err);
	if (rc < 0)
		return rc;
	rc = gateway_ledger_restore(s->gateway, r);
	return rc < 0 ? no_memory(s->err) : 0;
}

static int start_threads(struct gateway *g, struct weir_err *err)
{
	struct starting s = {g, err};

	for (unsigned i = 0; i < g->n_workers; i++) {
		int rc = worker_run(&g->workers[i]);

		if (rc < 0)
			return weir_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	return gateway_each(g, start_resource, &s, NULL);
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
		rc = make_workers(g, err);
	if (rc == 0)
		rc = open_resources(g, err);
	if (rc == 0)
		rc = gateway_policy_sizes(g, err);
	if (rc == 0 && gateway_ledger_start(g) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = reports_start(g, err);
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
	rc = cluster_start(g, err);
	if (rc == 0 && front_door_new(&gateway_site, g, g->loop, &g->door) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = gateway_listen(g, err);
	if (rc < 0)
		return rc;
	rc = gateway_folders_start(g);
	if (rc < 0)
		return weir_err_set(err, rc, "cannot watch folders: %s", strerror(-rc));
	gateway_note_news(&(struct gateway_note){0}, &g->unserved, "volume-refused");
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

static int free_resource(void *arg, struct gateway_resource *r)
{
	if (r->resource)
		resource_free(r->resource);
	r->resource = NULL;
	return 0;
}

/* Usually gateway_run has waited for the last client. */
static void check_clients(struct gateway *g)
{
	if (gateway_runs(g) && !g->stuck && gateway_busy(g))
		g->stuck = true;
}

/* On their threads while these run, else (the start failed earlier) here. */
static void free_resources(struct gateway *g, bool keep_names)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		struct gateway_resource *r = &g->resources[i];
		struct each e = {free_resource, NULL, r};

		if (g->stuck)
			continue;
		if (r->worker->running)
			worker_call(r->worker, each_call, &e);
		else
			free_resource(NULL, r);
		if (!keep_names) {
			free(r->name);
			free(r->back_name);
		}
	}
}

void gateway_free(struct gateway *g)
{
	bool abandoned = false; /* a large policy is still being read: its memory stays */

	if (!g)
		return;
	if (g->loop) {
		gateway_looks_stop(g);
		gateway_folders_stop(g);
		abandoned = g->aside && !gateway_changes_stop(g);
		reports_stop(g); /* it may run the loop, as the next */
		cluster_stop(g);
		gateway_ledger_stop(g);
		gateway_record_stop(g, NULL, NULL);
		gateway_divide_stop(g);
		gateway_slo_stop(g);
		gateway_each_stop(g);
		gateway_unlisten(g);
		front_door_free(g->door);
		gateway_signals_end(g);
	}
	check_clients(g);
	free_resources(g, abandoned);
	for (unsigned i = 0; i < g->n_workers; i++) {
		worker_stop(&g->workers[i]);
		if (!g->stuck) /* else a back end may still write to its memory */
			worker_free(&g->workers[i]);
	}
	if (!g->stuck) {
		gateway_volumes_free(&g->volumes);
		gateway_volumes_end(g);
	}
	tls_free(g->tls);
	if (abandoned)
		return;
	gateway_policy_stop(g);
	if (g->loop)
		loop_free(g->loop);
	if (!g->stuck) {
		free(g->resources);
		free(g->workers);
	}
	free(g->state);
	free(g);
}
