/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot: memory. All of it but the histograms is in one list, so it can be freed without knowing
 * its content.
 */
#include "serve/snapshot/version.h"
#include "serve/snapshot/snapshot.h"
#include <stdlib.h>
#include <string.h>

#define CLIENTS_MAX 1000 /* more than a person reads; each takes 0.8 kB here and in the answer */

void *snapshot_take(struct snapshot *s, size_t n, size_t size)
{
	return arena_take(&s->arena, n, size);
}

static const char *site_path(void *arg, size_t tenant)
{
	return snapshot_path(arg, tenant);
}

struct facts_site snapshot_site(struct snapshot *s)
{
	return (struct facts_site){&s->arena, site_path, s};
}

static void free_hists(struct snapshot *s)
{
	for (size_t i = 0; s->tenants && i < s->n_tenants; i++) {
		struct snapshot_tenant *t = s->tenants[i];

		if (!t)
			continue;
		free(t->wait);
		free(t->device);
		free(t->total);
	}
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	free_hists(s);
	gateway_version_drop(s->of);
	arena_free(&s->arena);
	free(s);
}

/* ---- tenants */

static void describe(const struct gateway_version *v, size_t i, struct snapshot_tenant *t)
{
	const struct weir_tenant *from = &v->policy->tenants[i];

	t->path = from->path;
	t->leaf = from->first_child < 0;
	t->weight = from->weight;
	t->min_off = from->min_off;
	t->share = v->of_all[i];
	memcpy(t->min, v->bounds[i].min, sizeof(t->min));
	memcpy(t->max, v->bounds[i].max, sizeof(t->max));
}

struct snapshot_tenant *snapshot_active(struct snapshot *s, size_t i)
{
	if (!s->tenants[i] && (s->tenants[i] = snapshot_take(s, 1, sizeof(**s->tenants))))
		describe(s->of, i, s->tenants[i]);
	return s->tenants[i];
}

/* Resources are gathered one after the other, so the tenant's first place is the newest. */
struct snapshot_place *snapshot_place(struct snapshot *s, size_t i, struct snapshot_resource *here)
{
	struct snapshot_tenant *t = snapshot_active(s, i);
	int above = s->of->policy->tenants[i].parent;
	struct snapshot_place *parent = NULL, *p;

	if (!t || (t->at && t->at->here == here))
		return t ? t->at : NULL;
	if (above >= 0 && !(parent = snapshot_place(s, (size_t)above, here)))
		return NULL;
	p = snapshot_take(s, 1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct snapshot_place){t->at, parent, here, t->weight, 0};
	t->at = p;
	*(parent ? &parent->below : &here->weights) += t->weight;
	return p;
}

double snapshot_due(const struct snapshot_place *at)
{
	double part = 1;

	for (; at; at = at->parent)
		part *= at->weight / (at->parent ? at->parent->below : at->here->weights);
	return part;
}

static const struct snapshot_slo *slo_of(const struct snapshot *s, size_t tenant)
{
	size_t low = 0, high = s->n_slos;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->slos[middle].tenant < tenant)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n_slos && s->slos[low].tenant == tenant ? &s->slos[low] : NULL;
}

const struct snapshot_tenant *snapshot_tenant(
	const struct snapshot *s, size_t i, struct snapshot_tenant *room)
{
	if (s->tenants[i])
		return s->tenants[i];
	memset(room, 0, sizeof(*room));
	describe(s->of, i, room);
	room->slo = slo_of(s, i);
	return room;
}

const char *snapshot_path(const struct snapshot *s, size_t i)
{
	return s->of ? s->of->policy->tenants[i].path : s->tenants[i]->path;
}

/* ---- clients */

/* The array is replaced when it is full; the old one stays on the list until the end: at most twice
 * the memory, and no realloc of memory that the list owns. */
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
