/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export: find the export of a name for a client, and check that a policy's exports fit the back
 * ends.
 *
 * Nothing is stored: each question is answered from the policy in force, so a swap needs no step
 * here.
 */
#include "base/hash.h"
#include "policy/index.h"
#include "serve/back/volumes.h"
#include "serve/back/back.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <string.h>

static bool any_name(const struct gateway *g, const struct weir_policy *p)
{
	return g->options.any_name && policy_whole(p);
}

/* A policy without exports has each resource as one export, whole, under its name. */
static size_t n_exports(const struct gateway *g, const struct weir_policy *p)
{
	if (any_name(g, p))
		return 1;
	return policy_whole(p) ? p->n_resources : p->n_exports;
}

static struct weir_export export_at(const struct gateway *g, const struct weir_policy *p, size_t i)
{
	if (any_name(g, p))
		return (struct weir_export){.name = "", .resource = 0};
	if (p->n_exports)
		return p->exports[i];
	return (struct weir_export){.name = p->resources[i].name, .resource = (int)i};
}

static bool export_named(const struct gateway *g, const char *name, struct weir_export *ret)
{
	const struct weir_policy *p = g->policy;
	int found = any_name(g, p) ? 0 : policy_index_export(p, name);

	for (size_t i = 0; found < 0 && i < p->n_resources && policy_whole(p); i++)
		if (strcmp(p->resources[i].name, name) == 0)
			found = (int)i;
	if (found >= 0)
		*ret = export_at(g, p, (size_t)found);
	return found >= 0;
}

int gateway_export_fits(
	const struct weir_export *e, const char *resource, uint64_t size, struct weir_err *err)
{
	bool empty = !e->size && e->offset && e->offset == size;
	char text[32];

	if (e->offset <= size && e->size <= size - e->offset && !empty)
		return 0;
	return weir_err_at(err, -EINVAL, e->at, "export '%s' %s its resource '%s', which has %s",
		e->name, empty ? "begins at the end of" : "ends beyond", resource,
		weir_units_show_size(size, text, sizeof(text)));
}

static bool fits(const struct weir_export *e, const struct gateway_resource *r)
{
	struct weir_err err;

	return e->back || gateway_export_fits(e, r->name, r->size, &err) == 0;
}

const char *gateway_export(const struct gateway *g, size_t i)
{
	return i < n_exports(g, g->policy) ? export_at(g, g->policy, i).name : NULL;
}

/* Where the bytes of an export are. */
/* A file is what it is by any name; other storage is what its name says. */
static uint64_t identify(const struct back *b, const char *name, uint64_t offset)
{
	uint64_t file = back_real(b)->file;
	uint64_t hash = file ? file : hash_more(HASH_BEGIN, name, strlen(name));

	return hash_more(hash, &offset, sizeof(offset));
}

static void locate(struct gateway_resource *r, const struct weir_export *e, struct front_place *ret)
{
	*ret = (struct front_place){
		.front = r->worker->front,
		.gate = &resource_gate,
		.resource = r->resource,
		.info = resource_info(r->resource),
		.offset = e->offset,
		.size = e->size ? e->size : r->size - e->offset,
		.known = r->known,
	};
}

static void locate_volume(const struct gateway_volume *v, struct front_place *ret)
{
	ret->info = &v->back->info;
	ret->offset = back_volumes_offset(v->slot);
	ret->size = v->size;
	ret->known = v->known;
	ret->storage = identify(v->back, v->back_name, 0);
}

uint64_t gateway_export_size(struct gateway *g, const struct weir_policy *p,
	const struct gateway_volumes *fresh, const char *name)
{
	int i = policy_index_export(p, name);
	const struct weir_export *e = i >= 0 ? &p->exports[i] : NULL;
	const struct gateway_volume *v = NULL;
	const struct gateway_resource *r;

	if (e && e->back) {
		v = fresh ? gateway_volumes_find(fresh, name) : NULL;
		v = v ? v : gateway_volume_find(g, name);
		return v && v->known ? v->size : 0;
	}
	if (e && e->size)
		return e->size;
	r = gateway_resource(g, e ? p->resources[e->resource].name : name);
	if (!r || !r->known || (!e && p->n_exports) || (e && e->offset > r->size))
		return 0;
	return r->size - (e ? e->offset : 0);
}

int gateway_find(struct gateway *g, const struct weir_who *who, struct front_place *ret)
{
	const struct gateway_volume *v = NULL;
	struct front_place place;
	struct weir_export e;
	struct gateway_resource *r;
	int tenant;

	if (!export_named(g, who->export_ ? who->export_ : "", &e))
		return -ENOENT;
	r = g->resources[e.resource];
	if (e.back && !(v = gateway_volume_find(g, e.name)))
		return -ENOENT;
	tenant = weir_policy_match(g->policy, who);
	if (tenant < 0)
		return -EACCES;
	locate(r, &e, &place);
	if (v)
		locate_volume(v, &place);
	else
		place.storage = identify(resource_back(r->resource), r->back_name, e.offset);
	place.known &= !gateway_resource_blocked(r, v ? v->back_name : r->back_name);
	place.read_only =
		e.read_only || g->options.read_only || (place.known && place.info->read_only);
	place.timeout = g->policy->resources[e.resource].timeout;
	place.tenant = tenant;
	place.tenant_path = g->policy->tenants[tenant].path;
	place.description = e.description;
	*ret = place;
	if ((r->known && !fits(&e, r)) || (v && atomic_load(&back_real(v->back)->shrunk)))
		return -ENODEV;
	gateway_divide_wake(g);
	return 0;
}

struct gateway_resource *gateway_resource(const struct gateway *g, const char *name)
{
	for (size_t i = 0; i < g->n_resources; i++)
		if (strcmp(g->resources[i]->name, name) == 0)
			return g->resources[i];
	return NULL;
}

void gateway_fits_resource(struct gateway *g, const struct gateway_resource *r)
{
	const struct weir_policy *p = g->policy;

	for (size_t i = 0; i < n_exports(g, p); i++) {
		struct weir_export e = export_at(g, p, i);

		if (g->resources[e.resource] == r && !fits(&e, r))
			log_event(LOG_LEVEL_ERROR, "export-beyond", "export", e.name, "resource",
				r->name, "why", "it ends beyond its resource: clients are refused",
				NULL);
	}
}

int gateway_lets_in(const struct weir_policy *p, struct weir_err *err)
{
	if (!p->n_tenants || p->default_tenant >= 0)
		return 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].n_match)
			return 0;
	return weir_err_at(err, -EINVAL, p->tenants[0].at,
		"every client would be refused: no tenant has a match, and there is no default");
}

int gateway_fits(struct gateway *g, const struct weir_policy *p,
	struct gateway_resource *const *list, struct weir_err *err)
{
	if (!p->n_resources)
		return weir_err_set(err, -EINVAL, "no resources: there is nothing to serve");
	for (size_t i = 0; i < n_exports(g, p); i++) {
		struct weir_export e = export_at(g, p, i);
		const struct gateway_resource *r = list ? list[e.resource] : NULL;
		int rc = r && r->known && !e.back ? gateway_export_fits(&e, r->name, r->size, err)
						  : 0;

		if (rc < 0)
			return rc;
	}
	return gateway_lets_in(p, err);
}

int gateway_backs_check(const struct weir_policy *p, struct weir_err *err)
{
	for (size_t i = 0; i < p->n_resources; i++) {
		const struct weir_resource *r = &p->resources[i];
		struct weir_err why;

		if (r->back && back_check(r->back, &why) < 0)
			return weir_err_at(err, -EINVAL, r->back_at, "%s", why.text);
	}
	for (size_t i = 0; i < p->n_exports; i++) {
		const struct weir_export *e = &p->exports[i];
		struct weir_err why;

		if (e->back && back_check(e->back, &why) < 0)
			return weir_err_at(
				err, -EINVAL, e->at, "volume '%s': %s", e->name, why.text);
	}
	return 0;
}
