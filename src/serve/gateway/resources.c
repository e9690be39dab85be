/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resources: the resources of the policy in force: opened, put in force, removed.
 *
 * METHOD  A resource is found by its pointer or its name, never by its place: a change may move, add and remove any. A change
 *         opens new resources aside, since that may take long and can fail; each is started on its thread and gets the policy
 *         with the others' (serve/gateway/change.c). It has clients only once the policy is in force.
 *         A resource that the next policy lacks, or that cannot continue under it, leaves in steps:
 *           LEAVE   its thread: its clients are disconnected, and their waiting requests dropped
 *           DRAIN   the same, every 10 ms: when no request is inside, its back end is flushed. An upstream that is unreachable has
 *                   10 s to come back; requests that it has, and does not answer, return after its `timeout`
 *           END     when no look and no volume needs it: it is freed on its thread
 *           GONE    main thread: the rest is freed, after all that its thread posted before
 *         Each step is posted by the step before, and no thread waits. A back end that never returns its requests (a disk that
 *         hangs) keeps its memory; this is logged, and disturbs no other resource.
 *         A new resource with the storage of one that leaves has its clients wait until that has gone: a write that was not
 *         answered to the old client must not overwrite one of the new.
 */
#include "base/container.h"
#include "base/same.h"
#include "base/no-memory.h"
#include "serve/back/volumes.h"
#include "serve/gateway/change.h"
#include "serve/gateway/each.h"
#include "serve/gateway/impl.h"
#include "serve/gateway/links.h"
#include "serve/loop/log.h"
#include "serve/resource/control.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* For all unreachable upstreams of one policy together: at the start, and of a change, for which other changes and the clients of new
 * tenants wait. */
#define PATIENCE      (2 * WEIR_SEC)
#define PATIENCE_LIVE (50 * WEIR_MS)
#define STEP          (10 * WEIR_MS)
#define STEP_LATE     (100 * WEIR_MS)
#define END_TRIES     100
#define AWAY_TIME                                                                                  \
	(10 * WEIR_SEC) /* an upstream that restarts is back, and has what it acknowledged */

/* ---- which stay */

bool gateway_resource_stays(const struct weir_resource *a, const struct weir_resource *b)
{
	return strcmp(a->name, b->name) == 0 && a->volumes == b->volumes &&
	       same_text(a->back, b->back) && a->cost == b->cost &&
	       a->connections == b->connections && a->timeout == b->timeout && a->keep == b->keep &&
	       a->direct == b->direct && a->threads == b->threads && a->read_only == b->read_only &&
	       a->shared == b->shared && policy_tls_same(&a->tls, &b->tls) &&
	       a->tls.required == b->tls.required;
}

/* Return the resource in force that stays under this name and with these settings, or NULL. */
static struct gateway_resource *staying(struct gateway *g, const struct weir_resource *spec)
{
	for (size_t i = 0; i < g->n_resources; i++)
		if (strcmp(g->resources[i]->name, spec->name) == 0)
			return gateway_resource_stays(&g->policy->resources[i], spec)
				       ? g->resources[i]
				       : NULL;
	return NULL;
}

/* Return true if the list has the resource. */
static bool has(struct gateway_resource *const *list, size_t n, const struct gateway_resource *r)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == r)
			return true;
	return false;
}

/* ---- life */

static void free_last(struct gateway_resource *r)
{
	resource_free(r->resource);
	gateway_links_forget(r);
	free(r->name);
	free(r->back_name);
	free(r);
}

/* Main thread: its thread has nothing of it any more, and has posted nothing after this. */
static void gone(struct loop_task *t)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, gone), **at;
	struct gateway *g = r->gateway;

	for (at = &g->resources_leaving; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	log_event(LOG_LEVEL_INFO, "resource-removed", "resource", r->name, "back", r->back_name,
		NULL);
	if (r->change)
		gateway_change_left(r->change);
	gateway_version_drop(r->version);
	free_last(r);
	front_known(g->door); /* clients of one with the same storage may wait */
}

/* The worker's thread. */
static void end(struct loop_task *t)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, end);

	resource_free(r->resource);
	r->resource = NULL;
	loop_post(r->gateway->loop, &r->gone);
}

void gateway_resource_hold(struct gateway_resource *r)
{
	atomic_fetch_add(&r->refs, 1);
}

void gateway_resource_put(struct gateway_resource *r)
{
	if (atomic_fetch_sub(&r->refs, 1) > 1)
		return;
	if (r->leaving && r->worker->running)
		loop_post(r->worker->loop, &r->end);
	else
		free_last(r);
}

/* ---- open */

/* Main thread. */
static void learned(struct loop_task *t)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, learned);

	if (r->leaving)
		return;
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

/* Return the worker with the fewest resources of the list so far. */
static struct worker *least_worker(
	struct gateway *g, struct gateway_resource *const *list, size_t n)
{
	struct worker *best = NULL;
	size_t least = SIZE_MAX;

	for (unsigned w = 0; w < g->n_made; w++) {
		size_t has = 0;

		for (size_t i = 0; i < n; i++)
			has += list[i] && list[i]->worker == &g->workers[w];
		if (has < least) {
			least = has;
			best = &g->workers[w];
		}
	}
	return best;
}

static int open_back(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, struct gateway_resource *r, struct back **ret,
	struct weir_err *err)
{
	struct weir_err why;
	int rc;

	if (spec->volumes)
		return back_volumes_new(r->worker->loop, ret) < 0 ? no_memory(err) : 0;
	if (!spec->back)
		return weir_err_at(err, -EINVAL, spec->at,
			"resource '%s' names no back end, as in back: \"memory:1G\"", spec->name);
	rc = gateway_back_open(g, p, spec, r, NULL, ret, &why);
	if (rc < 0 && g->door)
		return weir_err_at(
			err, -EINVAL, spec->at, "resource '%s': %s", spec->name, why.text);
	return rc < 0 ? weir_err_set(err, rc, "%s", why.text) : 0;
}

static int fill(struct gateway_resource *r, const struct weir_policy *p,
	const struct weir_resource *spec, struct weir_err *err)
{
	struct gateway *g = r->gateway;
	struct resource_config c = {.spec = spec,
		.bare = g->options.bare,
		.known = spec->volumes ? NULL : known,
		.known_arg = r,
		.loop = r->worker->loop};
	int rc;

	r->name = strdup(spec->name);
	r->back_name = strdup(spec->back ? spec->back : "");
	r->volumes = spec->volumes;
	if (!r->name || !r->back_name)
		return no_memory(err);
	rc = open_back(g, p, spec, r, &c.back, err);
	if (rc < 0)
		return rc;
	r->size = c.back->info.size;
	rc = resource_new(&c, &r->resource);
	if (rc < 0) {
		back_free(c.back);
		return weir_err_set(err, rc, "%s: %s", r->name, strerror(-rc));
	}
	r->known = !resource_starting(r->resource);
	return 0;
}

static void leave(struct loop_task *t);
static void drained(struct loop_task *t);
static void drain(struct loop_timer *t, weir_time now);

static int open_one(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, struct worker *w, struct gateway_resource **ret,
	struct weir_err *err)
{
	struct gateway_resource *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return no_memory(err);
	r->gateway = g;
	r->worker = w;
	r->number = ++g->resources_opened;
	r->opened = g->version + 1;
	r->refs = 1;
	r->leave.run = leave;
	r->drained.run = drained;
	r->end.run = end;
	r->gone.run = gone;
	r->drain.due = drain;
	rc = fill(r, p, spec, err);
	if (rc == 0 && gateway_links_prepare(r) < 0)
		rc = no_memory(err);
	if (rc < 0)
		free_last(r);
	else
		*ret = r;
	return rc;
}

int gateway_resources_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource ***ret_list, struct weir_err *err)
{
	struct gateway_resource **list = calloc(p->n_resources + 1, sizeof(*list));
	int rc = list ? workers_make(g, p, err) : no_memory(err);

	g->open_by = loop_clock() + (g->door ? PATIENCE_LIVE : PATIENCE);
	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		list[i] = staying(g, &p->resources[i]);
	for (size_t i = 0; rc == 0 && i < g->n_resources; i++)
		g->resources[i]->parts = !has(list, p->n_resources, g->resources[i]);
	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		if (!list[i])
			rc = open_one(g, p, &p->resources[i], least_worker(g, list, p->n_resources),
				&list[i], err);
	if (rc == 0) {
		*ret_list = list;
		return 0;
	}
	for (size_t i = 0; list && i < p->n_resources; i++)
		if (list[i] && !list[i]->entered)
			free_last(list[i]);
	free(list);
	return rc;
}

int gateway_resource_start(struct gateway_resource *r, struct weir_err *err)
{
	int rc;

	if (r->started)
		return 0;
	rc = resource_start(r->resource);
	if (rc < 0)
		return weir_err_set(err, rc, "%s: %s: %s", r->name, r->back_name, strerror(-rc));
	r->started = true;
	front_turn_last(r->worker->front);
	return 0;
}

/* ---- leave, on its thread */

static void leave(struct loop_task *t)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, leave);

	resource_tap(r->resource, NULL);
	resource_control_peers(r->resource, NULL);
	resource_control_connect(r->resource, NULL, NULL);
	resource_close(r->resource, "its resource was removed or changed");
	r->away_by = loop_now(r->worker->loop) + AWAY_TIME;
	loop_set(r->worker->loop, &r->drain, loop_now(r->worker->loop));
}

static void say_late(struct gateway_resource *r)
{
	if (r->late)
		return;
	r->late = true;
	log_event(LOG_LEVEL_WARNING, "resource-leaves-late", "resource", r->name, "back",
		r->back_name, "why", "its back end does not return its requests", NULL);
}

static void drain(struct loop_timer *t, weir_time now)
{
	struct gateway_resource *r = container_of(t, struct gateway_resource, drain);
	bool idle = !resource_has_clients(r->resource) && !resource_busy(r->resource);

	if (now >= r->away_by)
		resource_abandon(r->resource);
	if (idle && r->flushed && !atomic_load(&r->flushing)) {
		loop_post(r->gateway->loop, &r->drained);
		return;
	}
	if (idle && !r->flushed) {
		r->flushed = true;
		if (!r->volumes) /* each volume is flushed when it leaves */
			gateway_resource_flush(r);
	}
	if (now >= r->away_by)
		say_late(r);
	loop_set(r->worker->loop, t, now + (r->late ? STEP_LATE : STEP));
}

/* Main thread. */
static void drained(struct loop_task *t)
{
	gateway_resource_put(container_of(t, struct gateway_resource, drained));
}

static int hurry(void *arg, struct gateway_resource *r)
{
	r->away_by = 0;
	return 0;
}

void gateway_leaving_abandon(struct gateway *g)
{
	for (struct gateway_resource *r = g->resources_leaving; r; r = r->next)
		gateway_at(r, hurry, NULL);
}

/* ---- in force */

static void let_go(struct gateway_resource *r, struct gateway_version *has)
{
	struct gateway *g = r->gateway;

	r->leaving = true;
	r->left = g->version + 1;
	r->version = gateway_version_hold(has);
	r->next = g->resources_leaving;
	g->resources_leaving = r;
	gateway_links_leave(r);
	loop_post(r->worker->loop, &r->leave);
}

void gateway_resources_enter(struct gateway *g, struct gateway_resource **list, size_t n,
	struct gateway_version *was, struct gateway_change *c)
{
	struct gateway_resource **old = g->resources;
	size_t n_old = g->n_resources;

	g->resources = list;
	g->n_resources = n;
	for (size_t i = 0; i < n_old; i++) {
		if (has(list, n, old[i]))
			continue;
		old[i]->change = c;
		c->leaving++;
		let_go(old[i], was);
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i]->entered)
			continue;
		list[i]->entered = true;
		gateway_links_join(list[i]);
		log_event(LOG_LEVEL_INFO, "resource-added", "resource", list[i]->name, "back",
			list[i]->back_name, NULL);
	}
	for (size_t i = 0; i < n_old; i++)
		if (!has(list, n, old[i]))
			gateway_bypass_left(g, old[i]);
	free(old);
}

void gateway_resources_unwait(struct gateway *g, const struct gateway_change *c)
{
	for (struct gateway_resource *r = g->resources_leaving; r; r = r->next)
		r->change = r->change == c ? NULL : r->change;
}

void gateway_resources_drop(
	struct gateway *g, struct gateway_resource **list, size_t n, struct gateway_version *of)
{
	for (size_t i = 0; list && i < n; i++) {
		if (!list[i] || list[i]->entered)
			continue;
		if (list[i]->started)
			let_go(list[i], of);
		else
			gateway_resource_put(list[i]);
	}
	free(list);
}

/* Return the name of the file of a back end that is, or models, one, with its options; NULL: it is none. */
static const char *file_of(const char *back)
{
	const char *modelled = strstr(back, "+file:");

	return strncmp(back, "file:", 5) == 0 ? back + 5 : modelled ? modelled + 6 : NULL;
}

bool gateway_same_storage(const char *a, const char *b)
{
	const char *x = file_of(a), *y = file_of(b);
	size_t n = x ? strcspn(x, "?") : 0;

	if (x && y)
		return n == strcspn(y, "?") && strncmp(x, y, n) == 0;
	return strncmp(a, "memory:", 7) != 0 && strcmp(a, b) == 0;
}

bool gateway_resource_blocked(const struct gateway_resource *r, const char *back)
{
	for (const struct gateway_resource *o = r->gateway->resources_leaving; o; o = o->next)
		if (o->volumes ? r->opened >= o->left : gateway_same_storage(o->back_name, back))
			return true;
	return false;
}

/* ---- the end */

void gateway_leaving_end(struct gateway *g)
{
	for (int i = 0; i < END_TRIES && g->resources_leaving && gateway_runs(g); i++) {
		gateway_leaving_abandon(g);
		nanosleep(&(struct timespec){.tv_nsec = STEP}, NULL);
		gateway_drain(g);
	}
}

static int free_there(void *arg, struct gateway_resource *r)
{
	resource_free(r->resource);
	r->resource = NULL;
	return 0;
}

void gateway_resources_end(struct gateway *g)
{
	for (size_t i = 0; !g->stuck && i < g->n_resources; i++) {
		if (g->resources[i]->worker->running)
			gateway_at(g->resources[i], free_there, NULL);
		else /* the start failed */
			free_there(NULL, g->resources[i]);
	}
}

void gateway_resources_free(struct gateway *g)
{
	for (size_t i = 0; i < g->n_resources; i++)
		gateway_resource_put(g->resources[i]);
	free(g->resources);
}
