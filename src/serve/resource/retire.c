/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retire: a tenant that a swap removes leaves its counters to the group above it.
 *
 * LAW     The counters of a group are those of its leaves and of leaves that it had: they never fall while the group stays.
 *         Requests that are still inside when their tenant is removed are not counted as done any more.
 * METHOD  Before the swap ends, the counters of each leaf that leaves are added to the record of the nearest group above that
 *         stays. There are as many records as groups that lost a leaf: few.
 */
#include "base/array.h"
#include "serve/resource/impl.h"
#include <stdlib.h>

const struct resource_retired *resource_retired(const struct resource *r, weir_node node)
{
	for (size_t i = 0; i < r->n_retired; i++)
		if (r->retired[i].node == node)
			return &r->retired[i];
	return NULL;
}

/* Return the record of the group, made if it had none; NULL: no memory. */
static struct resource_retired *record_of(struct resource *r, weir_node node)
{
	struct resource_retired *found = (struct resource_retired *)resource_retired(r, node);

	if (found)
		return found;
	if (array_resize(&r->retired, r->n_retired + 1) < 0)
		return NULL;
	found = &r->retired[r->n_retired++];
	*found = (struct resource_retired){.node = node};
	return found;
}

static void add(struct resource_retired *to, const struct weir_gate_stats *st,
	const struct resource_count *n)
{
	to->stats.arrivals += st->arrivals;
	to->stats.dispatched += st->dispatched;
	to->stats.served += st->served;
	to->stats.bytes += st->bytes;
	to->stats.device_ns += st->device_ns;
	for (int k = 0; k < 3; k++)
		to->stats.by_class[k] += st->by_class[k];
	for (int k = 0; k < WEIR_CAUSES; k++)
		to->stats.wait_ns[k] += st->wait_ns[k];
	to->count.reads += n->reads;
	to->count.writes += n->writes;
	to->count.others += n->others;
	to->count.errors += n->errors;
	to->count.waited += n->waited;
	to->count.bypassed.served += n->bypassed.served;
	to->count.bypassed.bytes += n->bypassed.bytes;
	to->count.bypassed.device_ns += n->bypassed.device_ns;
}

/* Return the node of the nearest group above that stays; WEIR_ROOT: none. */
static weir_node heir_of(const struct resource *r, const bool *stays, size_t i)
{
	for (int a = r->policy->tenants[i].parent; a >= 0; a = r->policy->tenants[a].parent)
		if (stays[a])
			return r->nodes[a];
	return WEIR_ROOT;
}

static void retire(struct resource *r, const bool *stays, size_t i)
{
	weir_node heir = heir_of(r, stays, i), node = r->nodes[i];
	const struct resource_retired *own = resource_retired(r, node);
	struct resource_retired *to, was = own ? *own : (struct resource_retired){0};
	struct weir_gate_stats st = {0};
	bool leaf = r->policy->tenants[i].first_child < 0;

	if (own) /* the node's number may be another tenant's one day */
		r->retired[own - r->retired] = r->retired[--r->n_retired];
	if (heir == WEIR_ROOT || (leaf ? resource_idle(&r->counts[node]) : !own) ||
		!(to = record_of(r, heir)))
		return;
	if (!leaf)
		add(to, &was.stats, &was.count);
	else if (resource_stats(r, i, &st) == 0)
		add(to, &st, &r->counts[node]);
}

void resource_retire(struct resource *r, const int *was, size_t n)
{
	bool *stays = calloc(r->n_nodes + 1, sizeof(*stays));

	for (size_t i = 0; stays && i < n; i++)
		if (was[i] >= 0)
			stays[was[i]] = true;
	for (size_t i = r->n_nodes; stays && r->policy && i-- > 0;) /* children before parents */
		if (!stays[i])
			retire(r, stays, i);
	free(stays);
}
