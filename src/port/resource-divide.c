/* SPDX-License-Identifier: BSD-3-Clause */
/* resource-divide: what part of the tenants' limits one gate of several has, and what they want there. */
#include "port/resource-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- divide */

/* The tenant's buckets with these parts, and its controller's; how many. */
static unsigned part_buckets(
	struct resource *r, size_t i, struct policy_part part, struct weir_bucket_spec *ret)
{
	struct resource_part *t = &r->policy_of->part;

	if (r->control->rule)
		r->control->rule(r, i, &t->rules[i]);
	part.rules = t->rules;
	return policy_install_buckets_part(r->policy, i, &t->bounds[i], part, ret);
}

unsigned resource_divide_own(struct resource *r, size_t i, struct weir_bucket_spec *ret)
{
	const struct resource_part *t = &r->policy_of->part;

	return policy_install_buckets_part(
		r->policy, i, &t->bounds[i], (struct policy_part){t->max, t->min, NULL}, ret);
}

/* The parts are in the gate. */
static void tell_control(struct resource *r, const struct policy_part *now)
{
	const struct resource_part *t = &r->policy_of->part;
	struct weir_bucket_spec own[POLICY_BUCKETS];

	for (size_t i = 0; r->control->divided && i < r->n_nodes; i++)
		if ((now->max[i] != t->max[i] || now->min[i] != t->min[i]) &&
			policy_install_buckets_part(r->policy, i, &t->bounds[i], *now, own))
			r->control->divided(r, i, own);
}

int resource_divide(struct resource *r, const double *max_share, const double *min_share, size_t n)
{
	struct resource_policy *o = r->policy_of;
	struct resource_part *part = o ? &o->part : NULL;
	struct policy_part new = {max_share, min_share, NULL};
	struct weir_knob *knobs;
	struct weir_bucket_spec *buckets;
	size_t changed = 0;
	int rc = -ENOMEM;

	if (!r->gate || !o || n != r->n_nodes)
		return r->gate ? -EINVAL : 0;
	knobs = calloc(n + 1, sizeof(*knobs));
	buckets = calloc(n + 1, POLICY_BUCKETS * sizeof(*buckets));
	for (size_t i = 0; knobs && buckets && i < n; i++) {
		struct weir_bucket_spec *b = &buckets[changed * POLICY_BUCKETS];

		if (max_share[i] == part->max[i] && min_share[i] == part->min[i])
			continue;
		knobs[changed++] = (struct weir_knob){.node = r->nodes[i],
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = b,
			.n_buckets = part_buckets(r, i, new, b)};
	}
	if (knobs && buckets)
		rc = weir_gate_set(r->gate, resource_policy_now(r), knobs, changed, NULL);
	free(knobs);
	free(buckets);
	if (rc < 0)
		return rc;
	tell_control(r, &new);
	memcpy(part->max, max_share, n * sizeof(*max_share));
	memcpy(part->min, min_share, n * sizeof(*min_share));
	return 0;
}

/* ---- demand */

/* Whose max keeps a leaf's head waiting: its own, or that of one above. */
static void mark_held(
	const struct resource *r, size_t i, weir_node blocker, struct resource_demand *all)
{
	for (int a = (int)i; a >= 0; a = r->policy->tenants[a].parent)
		if (r->nodes[a] == blocker)
			all[a].held = true;
}

static void leaf_demand(struct resource *r, size_t i, struct resource_demand *all)
{
	struct resource_policy *o = r->policy_of;
	struct resource_seen *seen = &o->part.seen[i];
	struct resource_demand *ret = &all[i];
	struct weir_gate_stats st;
	uint64_t requests;

	if (!ret->clients && !seen->queued)
		return;
	if (weir_gate_get_stats(r->gate, r->now, r->nodes[i], &st) != 0)
		return;
	if (st.dispatched < seen->dispatched) /* another node by the same path */
		*seen = (struct resource_seen){0};
	requests = st.dispatched - seen->dispatched;
	if (requests)
		seen->mean = (double)(st.bytes - seen->bytes) / (double)requests;
	seen->dispatched = st.dispatched;
	seen->bytes = st.bytes;
	seen->queued = st.queued;
	ret->requests = (double)(requests + st.queued);
	ret->bytes = ret->requests * seen->mean;
	/* Large ones count as several. */
	if (seen->mean > r->spec.io_unit)
		ret->requests *= seen->mean / r->spec.io_unit;
	if (st.queued && (st.cause == WEIR_WAIT_MAX || st.cause == WEIR_WAIT_ABOVE))
		mark_held(r, i, st.blocker, all);
}

void resource_demand(struct resource *r, struct resource_demand *ret_demand, size_t n)
{
	const struct weir_policy *p = r->policy;

	memset(ret_demand, 0, n * sizeof(*ret_demand));
	if (!r->gate || !p || n != r->n_nodes)
		return;
	resource_policy_now(r);
	for (const struct client *c = r->clients; c; c = c->next)
		if (c->tenant >= 0)
			ret_demand[c->tenant].clients++;
	for (size_t i = n; i-- > 0;) {
		struct resource_demand *d = &ret_demand[i];
		int parent = p->tenants[i].parent;

		if (p->tenants[i].first_child < 0)
			leaf_demand(r, i, ret_demand);
		if (parent < 0)
			continue;
		ret_demand[parent].requests += d->requests;
		ret_demand[parent].bytes += d->bytes;
		ret_demand[parent].clients += d->clients;
	}
}
