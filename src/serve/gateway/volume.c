/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume: the volumes of resources: opened at the start, added and removed with a policy.
 *
 * METHOD  A volume is an export with a back end of its own (serve/back/volumes.h). A change of the policy opens the new ones
 *         aside, since that may take long and can fail; gives each to its resource's thread in the step in which the
 *         resource's clients follow the new policy; and enters them here when all resources have it. A volume that the new
 *         policy lacks, or that has another back end there, is removed: its clients were disconnected by that step, and its
 *         resource flushes and frees it after the last request.
 */
#include "base/array.h"
#include "base/container.h"
#include "base/list.h"
#include "base/no-memory.h"
#include "policy/index.h"
#include "serve/back/volumes.h"
#include "serve/gateway/change.h"
#include "serve/gateway/each.h"
#include "serve/store/folder.h"
#include "serve/snapshot/note.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST      (10 * WEIR_MS) /* patience with each upstream at the start, and of a change */
#define LEAST_LIVE 1
/* All files that other processes have locked together delay a start by half a second, and a later change not at all. */
#define LOCK_LESS (1500 * WEIR_MS)

/* Return true if a resource that leaves with the next policy has the storage open. */
static bool is_left(struct gateway *g, const char *back)
{
	bool parts = false;

	for (size_t i = 0; !parts && i < g->n_resources; i++)
		parts = g->resources[i]->parts;
	for (size_t i = 0; parts && i < g->volumes.n; i++)
		if (g->volumes.all[i]->resource->parts &&
			gateway_same_storage(g->volumes.all[i]->back_name, back))
			return true;
	for (size_t i = 0; i < g->n_resources; i++)
		if (g->resources[i]->parts &&
			gateway_same_storage(g->resources[i]->back_name, back))
			return true;
	return false;
}

bool gateway_volume_links(const struct weir_export *e)
{
	return e->from == POLICY_EXPORT_FILE || strncmp(e->back, "file:/dev/", 10) == 0;
}

/* The file is locked: if another volume or resource of the gateway has it, name that. */
static int say_user(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, const struct weir_export *e, struct weir_err *err)
{
	const char *name = e ? e->name : spec->name, *back = e ? e->back : spec->back;
	int rc = gateway_file_free(p, spec, name, back, err);

	if (rc == 0 && g->policy && g->policy != p)
		rc = gateway_file_free(g->policy, spec, name, back, err);
	return rc < 0 ? rc : -EBUSY;
}

int gateway_back_open(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, const struct gateway_resource *r,
	const struct weir_export *e, struct back **ret_back, struct weir_err *err)
{
	const char *name = e ? e->back : spec->back;
	int rc;
	weir_time left = g->open_by - loop_clock(), least = g->door ? LEAST_LIVE : LEAST;
	struct back_config c = {
		.patience = left > least ? left : least,
		.loop = r->worker->loop,
		.pool = r->worker->pool,
		.timeout = spec->timeout,
		.connections = spec->connections,
		.keep = spec->keep,
		.read_only = spec->read_only || g->options.read_only,
		.direct = spec->direct,
		.threads = spec->threads,
		.lock = !spec->shared,
		.lock_by = g->open_by - LOCK_LESS,
		.heir = is_left(g, name),
		.seed = r->number,
		.tls_ca = spec->tls.ca,
		.tls_cert = spec->tls.cert,
		.tls_key = spec->tls.key,
		.tls_psk = spec->tls.psk,
	};

	c.no_links = e && !gateway_volume_links(e);
	c.read_only |= e && e->read_only;
	c.followed = e && folders_has(g->folders, e->back);
	rc = back_open(name, &c, ret_back, err);
	return rc == -EBUSY ? say_user(g, p, spec, e, err) : rc;
}

/* ---- the list, by name */

static int by_name(const void *name, const void *element)
{
	const struct gateway_volume *const *v = element;

	return strcmp(name, (*v)->name);
}

static struct gateway_volume *find(const struct gateway_volumes *list, const char *name)
{
	size_t at;

	return array_find(list->all, list->n, name, by_name, &at) ? list->all[at] : NULL;
}

const struct gateway_volume *gateway_volumes_find(
	const struct gateway_volumes *list, const char *name)
{
	return find(list, name);
}

const struct gateway_volume *gateway_volume_find(const struct gateway *g, const char *name)
{
	return find(&g->volumes, name);
}

static int list_volume(struct gateway_volumes *list, struct gateway_volume *v)
{
	size_t at;

	array_find(list->all, list->n, v->name, by_name, &at);
	return array_insert(&list->all, &list->n, &list->room, at, &v);
}

static void free_volume(struct gateway_volume *v)
{
	if (!v->added)
		back_free(v->back);
	gateway_resource_put(v->resource);
	free(v->name);
	free(v->back_name);
	free(v);
}

void gateway_volumes_free(struct gateway_volumes *list)
{
	for (size_t i = 0; i < list->n; i++)
		free_volume(list->all[i]);
	free(list->all);
	*list = (struct gateway_volumes){0};
}

/* Return true if an export, at its resource, is this volume. */
static bool is_volume(const struct weir_export *e, const struct gateway_resource *at,
	const struct gateway_volume *v)
{
	return e->back && strcmp(v->back_name, e->back) == 0 && v->resource == at &&
	       policy_file_same(&v->file, &e->file);
}

bool gateway_volume_is_open(
	struct gateway *g, const struct weir_export *e, const struct gateway_resource *at)
{
	const struct gateway_volume *v = find(&g->volumes, e->name);

	return v && is_volume(e, at, v);
}

/* Return true if a policy with these resources has the volume. */
static bool is_wanted(const struct weir_policy *p, struct gateway_resource *const *list,
	const struct gateway_volume *v)
{
	int found = policy_index_export(p, v->name);

	return found >= 0 && is_volume(&p->exports[found], list[p->exports[found].resource], v);
}

/* ---- open */

static int volume_new(
	const struct weir_export *e, struct gateway_resource *r, struct gateway_volume **ret)
{
	struct gateway_volume *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = (struct gateway_volume){.name = strdup(e->name),
		.back_name = strdup(e->back),
		.file = e->file,
		.resource = r};
	gateway_resource_hold(r);
	if (!v->name || !v->back_name) {
		free_volume(v);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

/* Volumes that are open, by the inode of their files. */
struct open_files {
	const struct gateway_volume **all;
	size_t n;
};

static int by_inode(const void *key, const void *element)
{
	const struct gateway_volume *const *v = element;
	const uint64_t *inode = key;

	return *inode < (*v)->id.ino ? -1 : *inode > (*v)->id.ino;
}

static int in_order(const void *a, const void *b)
{
	const struct gateway_volume *const *v = a;

	return by_inode(&(*v)->id.ino, b);
}

static int list_files(const struct gateway_volumes *from, struct open_files *ret)
{
	ret->all = calloc(from->n + 1, sizeof(*ret->all));
	if (!ret->all)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++)
		if (from->all[i]->id.ino)
			ret->all[ret->n++] = from->all[i];
	qsort(ret->all, ret->n, sizeof(*ret->all), in_order);
	return 0;
}

static int open_one(struct gateway *g, const struct weir_policy *p,
	const struct weir_resource *spec, struct gateway_resource *r, const struct weir_export *e,
	struct gateway_volume **ret_volume, struct weir_err *err)
{
	struct gateway_volume *v;
	struct weir_err why;
	int rc;

	if (volume_new(e, r, &v) < 0)
		return no_memory(err);
	rc = gateway_back_open(g, p, spec, v->resource, e, &v->back, &why);
	if (rc == 0 && v->back->info.size >= BACK_VOLUMES_SIZE)
		rc = weir_err_set(&why, -EFBIG, "%s: has 256 TiB or more", e->back);
	if (rc < 0) {
		free_volume(v);
		return e->from == POLICY_EXPORT_FILE
			       ? weir_err_at(
					 err, -EINVAL, e->at, "volume '%s': %s", e->name, why.text)
			       : weir_err_set(err, -EINVAL, "volume '%s': %s", e->name, why.text);
	}
	folder_opened(e->back, &v->id);
	v->known = back_real(v->back)->state != BACK_STARTING;
	v->size = v->back->info.size;
	*ret_volume = v;
	return 0;
}

/* A volume of the policy's file that cannot be opened refuses the policy before its file is closed under the last name. */
static int try_one(struct gateway *g, const struct weir_policy *p, struct gateway_resource *r,
	const struct weir_export *e, struct weir_err *err)
{
	struct weir_resource unlocked = p->resources[e->resource];
	struct gateway_volume *v;
	int rc = 0;

	unlocked.shared = true;
	if (e->from == POLICY_EXPORT_FILE && (rc = open_one(g, p, &unlocked, r, e, &v, err)) == 0)
		free_volume(v);
	return rc;
}

/* Return true if the policy in force has the volume, and it is not open: it has waited for its file. */
static bool waited(const struct gateway *g, const struct weir_export *e)
{
	int found = policy_index_export(g->policy, e->name);
	const char *back = found >= 0 ? g->policy->exports[found].back : NULL;

	return back && strcmp(back, e->back) == 0 && !gateway_volume_find(g, e->name);
}

/* A volume of the API that is gone at the next start, and one of a folder, stop neither the others nor later changes. */
static bool may_miss(const struct gateway *g, const struct weir_export *e,
	struct gateway_note *refused, const struct weir_err *err)
{
	int found = g->door ? policy_index_export(g->policy, e->name) : 0;

	if (e->from == POLICY_EXPORT_FILE && !(g->door && waited(g, e)))
		return false;
	if (e->from == POLICY_EXPORT_ADDED && found < 0)
		return false;
	gateway_note_add(refused, "%s", err->text);
	return true;
}

/* Return true if a volume with the export's file is still open and leaves, as after a rename: its last requests must not follow
 * those of the new one, and it has the lock. Then the policy is made anew when it has left. */
static bool must_wait(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource *const *list, const struct weir_export *e,
	const struct open_files *files)
{
	struct policy_file id;
	bool must = false;
	size_t at;

	if (!folder_opened(e->back, &id))
		return false;
	array_find(files->all, files->n, &id.ino, by_inode, &at);
	while (at > 0 && by_inode(&id.ino, &files->all[at - 1]) == 0)
		at--;
	for (; !must && at < files->n && by_inode(&id.ino, &files->all[at]) == 0; at++) {
		const struct gateway_volume *v = files->all[at];

		/* the volumes of a resource that leaves have heirs */
		must = policy_file_same(&v->id, &id) && !is_wanted(p, list, v) &&
		       (e->file.ino || !v->resource->parts);
	}
	pthread_mutex_lock(&g->leaving_lock);
	for (const struct gateway_volume *v = g->volumes_leaving; !must && v; v = v->next)
		must = policy_file_same(&v->id, &id) && (e->file.ino || !v->resource->parts);
	if (must)
		atomic_store(&g->volumes_wait, true);
	pthread_mutex_unlock(&g->leaving_lock);
	if (must)
		log_event(LOG_LEVEL_INFO, "volume-waits", "volume", e->name, "back", e->back, "why",
			"its file is being closed under its last name", NULL);
	return must;
}

int gateway_volumes_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource *const *list, struct gateway_volumes *ret_new,
	struct gateway_note *refused, struct weir_err *err)
{
	struct gateway_volumes fresh = {0};
	struct open_files files = {0};
	int rc = list_files(&g->volumes, &files) < 0 ? no_memory(err) : 0;

	for (size_t i = 0; rc == 0 && i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];
		struct gateway_resource *r = list[e->resource];
		struct gateway_volume *v = NULL;

		if (!e->back || gateway_volume_is_open(g, e, r))
			continue;
		if (must_wait(g, p, list, e, &files)) {
			rc = try_one(g, p, r, e, err);
			continue;
		}
		rc = open_one(g, p, &p->resources[e->resource], r, e, &v, err);
		if (rc == 0 && list_volume(&fresh, v) < 0) {
			free_volume(v);
			rc = no_memory(err);
		} else if (rc < 0 && may_miss(g, e, refused, err)) {
			rc = 0;
		}
	}
	free(files.all);
	if (rc < 0)
		gateway_volumes_free(&fresh);
	*ret_new = fresh;
	return rc;
}

/* ---- known, and gone */

/* Main thread. */
static void learned(struct loop_task *t)
{
	struct gateway_volume *v = container_of(t, struct gateway_volume, learned);

	v->size = v->back->info.size;
	v->known = true;
	gateway_each_size(v->resource->gateway);
	front_known(v->resource->gateway->door);
}

/* The worker's thread. */
static void volume_known(void *arg)
{
	struct gateway_volume *v = arg;

	v->learned.run = learned;
	loop_post(v->resource->gateway->loop, &v->learned);
}

/* ---- removed, and not freed yet */

static void link_leaving(struct gateway_volume *v)
{
	struct gateway *g = v->resource->gateway;

	pthread_mutex_lock(&g->leaving_lock);
	list_push(g->volumes_leaving, v);
	pthread_mutex_unlock(&g->leaving_lock);
}

/* Return true if it was the last. */
static bool unlink_leaving(struct gateway_volume *v)
{
	struct gateway *g = v->resource->gateway;
	bool last;

	pthread_mutex_lock(&g->leaving_lock);
	list_remove(v);
	last = !g->volumes_leaving;
	pthread_mutex_unlock(&g->leaving_lock);
	return last;
}

void gateway_volumes_unwait(struct gateway *g, const struct gateway_change *c)
{
	pthread_mutex_lock(&g->leaving_lock);
	for (struct gateway_volume *v = g->volumes_leaving; v; v = v->next)
		if (v->change == c)
			v->change = NULL;
	pthread_mutex_unlock(&g->leaving_lock);
}

void gateway_volumes_end(struct gateway *g)
{
	while (g->volumes_leaving) {
		struct gateway_volume *v = g->volumes_leaving;

		g->volumes_leaving = v->next;
		free_volume(v);
	}
	pthread_mutex_destroy(&g->leaving_lock);
}

/* Main thread. */
static void left(struct loop_task *t)
{
	struct gateway_volume *v = container_of(t, struct gateway_volume, left);
	struct gateway *g = v->resource->gateway;
	struct gateway_change *c = v->change;
	bool last = unlink_leaving(v);

	free_volume(v);
	if (last && atomic_exchange(&g->volumes_wait, false))
		gateway_refresh(g);
	if (c)
		gateway_change_left(c);
}

/* The worker's thread. */
static void volume_gone(void *arg, int error)
{
	struct gateway_volume *v = arg;

	log_event(error ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "volume-removed", "volume", v->name,
		"resource", v->resource->name, "flush", error ? strerror(-error) : "done", NULL);
	v->left.run = left;
	loop_post(v->resource->gateway->loop, &v->left);
}

/* ---- at the resource, on its thread */

static int add(struct gateway_volume *v, struct weir_err *err)
{
	struct back *all = resource_back(v->resource->resource);
	struct back_volume_calls calls = {volume_known, volume_gone, v, &v->counts};
	int rc = back_volumes_reserve(all, &v->slot);

	if (rc == 0)
		rc = back_volumes_add(all, v->slot, v->back, &calls);
	v->added = rc == 0;
	return rc < 0 ? weir_err_set(err, rc, "volume '%s': %s", v->name, strerror(-rc)) : 0;
}

int gateway_volumes_add(
	struct gateway_volumes *fresh, struct gateway_resource *r, struct weir_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < fresh->n; i++)
		if (fresh->all[i]->resource == r)
			rc = add(fresh->all[i], err);
	return rc;
}

static void leave(struct loop_task *t)
{
	struct gateway_volume *v = container_of(t, struct gateway_volume, leave);

	back_volumes_remove(resource_back(v->resource->resource), v->slot);
}

void gateway_volumes_undo(struct gateway_volumes *fresh, struct gateway_resource *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < fresh->n; i++) {
		struct gateway_volume *v = fresh->all[i];

		if (v->resource == r && v->added) {
			link_leaving(v);
			leave(&v->leave);
		} else {
			fresh->all[kept++] = v;
		}
	}
	fresh->n = kept;
}

/* ---- in force */

static void remove_unwanted(struct gateway *g, struct gateway_change *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->volumes.n; i++) {
		struct gateway_volume *v = g->volumes.all[i];

		if (is_wanted(g->policy, g->resources, v)) {
			g->volumes.all[kept++] = v;
			continue;
		}
		v->change = c;
		c->leaving++;
		link_leaving(v);
		v->leave.run = leave;
		loop_post(v->resource->worker->loop, &v->leave);
	}
	g->volumes.n = kept;
}

bool gateway_volume_busy(const struct gateway_volume *v)
{
	return atomic_load_explicit(&v->counts.clients, memory_order_relaxed) > 0;
}

int gateway_volume_grown(const struct gateway_volume *v)
{
	return back_volumes_grown(resource_back(v->resource->resource), v->slot);
}

int gateway_volumes_room(struct gateway *g, const struct gateway_volumes *fresh)
{
	return array_grow(&g->volumes.all, &g->volumes.room, g->volumes.n + fresh->n);
}

void gateway_volumes_enter(
	struct gateway *g, struct gateway_volumes *fresh, struct gateway_change *c)
{
	struct gateway_volume *grown;

	remove_unwanted(g, c);
	grown = c->grows ? find(&g->volumes, c->volume.name) : NULL;
	if (grown && grown == c->grows) { /* it may have gone with its file */
		grown->size = grown->back->info.size;
		gateway_each_size(g);
	}
	for (size_t i = 0; i < fresh->n; i++)
		list_volume(&g->volumes, fresh->all[i]);
	fresh->n = 0;
}
