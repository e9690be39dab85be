/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep: what a process that replaces this one gets of a resource: the order of its waiting requests, and the levels of its
 * tenants' buckets.
 *
 * METHOD  Frozen, the resource takes its requests back from the gate, in order, as a change of the policy does: they wait in the
 *         list `again`. Going on submits them from there. In the other process they are submitted as new ones.
 *         A bucket is found again by its tenant's path, its unit, its operations, and its place among the tenant's buckets of the
 *         same kind. A bucket without a rate is filled by a controller or a joint bucket: of such a one only a debt is kept.
 */
#include "serve/handover/record.h"
#include "serve/resource/impl.h"
#include <errno.h>

#define BUCKETS 64 /* of a node, at most */

/* ---- requests */

static bool is_request(const struct weir_req *q, void *arg)
{
	return !q->user;
}

static void take_back(struct weir_req *q, void *arg)
{
	resource_again(arg, resource_request(q));
}

void resource_freeze(struct resource *r, bool on)
{
	struct request_list before = r->again;

	r->now = resource_policy_now(r);
	r->frozen = on;
	if (!on || !r->queued)
		return;
	request_list_clear(&r->again);
	resource_cancel(r, false, is_request, take_back, r);
	if (before.first) { /* they were taken back before, and are behind the older ones */
		*r->again.end = before.first;
		r->again.end = before.end;
	}
}

bool resource_is_quiet(const struct resource *r)
{
	if (r->inside || r->finished.first)
		return false;
	for (const struct request *q = r->again.first; q; q = q->next)
		if (q->client == &r->own)
			return false;
	return true;
}

static void each(const struct request_list *l, const struct resource *r,
	void (*fn)(void *arg, struct request *q), void *arg)
{
	for (struct request *q = l->first; q; q = q->next)
		if (q->client != &r->own)
			fn(arg, q);
}

void resource_each_waiting(struct resource *r, void (*fn)(void *arg, struct request *q), void *arg)
{
	const struct request_list *l;

	for (size_t at = 0; (l = resource_stall_held(r, &at));)
		each(l, r, fn, arg);
	each(&r->again, r, fn, arg);
	each(&r->arrived, r, fn, arg);
}

/* ---- buckets */

struct levels {
	struct weir_bucket_spec specs[BUCKETS];
	double levels[BUCKETS];
	int n;
};

static bool get_levels(const struct resource *r, size_t tenant, weir_time now, struct levels *ret)
{
	ret->n = r->gate && tenant < r->n_nodes
			 ? weir_gate_get_buckets(
				   r->gate, now, r->nodes[tenant], ret->specs, ret->levels, BUCKETS)
			 : 0;
	return ret->n > 0;
}

static bool is_worth(const struct levels *l)
{
	for (int i = 0; i < l->n; i++)
		if (l->specs[i].kind == WEIR_HOLD && l->levels[i] < l->specs[i].size)
			return true;
	return false;
}

void resource_keep(struct resource *r, struct record_out *o)
{
	weir_time now = resource_policy_now(r);
	struct levels l;

	record_put(o, (uint64_t)now);
	for (size_t t = 0; r->policy && t < r->policy->n_tenants; t++) {
		if (!get_levels(r, t, now, &l) || !is_worth(&l))
			continue;
		record_put_text(o, r->policy->tenants[t].path);
		record_put(o, (uint64_t)l.n);
		for (int i = 0; i < l.n; i++) {
			record_put(o, l.specs[i].kind);
			record_put(o, l.specs[i].unit);
			record_put(o, l.specs[i].ops);
			record_put_real(o, l.levels[i]);
		}
	}
}

static bool is_same(const struct weir_bucket_spec *a, const struct weir_bucket_spec *b)
{
	return a->kind == b->kind && a->unit == b->unit && a->ops == b->ops;
}

/* Return the place of the bucket that was at `was`; -1: there is none. */
static int find_bucket(const struct levels *now, const struct levels *before, int was)
{
	int nth = 0;

	for (int i = 0; i < was; i++)
		nth += is_same(&before->specs[i], &before->specs[was]);
	for (int i = 0; i < now->n; i++)
		if (is_same(&now->specs[i], &before->specs[was]) && nth-- == 0)
			return i;
	return -1;
}

static int set_level(struct resource *r, weir_time now, weir_node node, int at, double level)
{
	struct weir_knob k = {
		.node = node, .kind = WEIR_KNOB_LEVEL, .value = level, .n_buckets = (uint32_t)at};
	struct weir_err ignored;

	return weir_gate_set(r->gate, now, &k, 1, &ignored);
}

/* Hold buckets come first: their place is their index. */
static int set_tenant(struct resource *r, size_t tenant, const struct levels *before, weir_time now,
	weir_time ago)
{
	struct levels l;
	int rc = 0;

	if (!get_levels(r, tenant, now, &l))
		return 0;
	for (int i = 0; rc == 0 && i < before->n; i++) {
		int at = before->specs[i].kind == WEIR_HOLD ? find_bucket(&l, before, i) : -1;
		double level = before->levels[i];

		if (at < 0)
			continue;
		level += l.specs[at].rate * (double)ago / WEIR_SEC;
		if (level < l.levels[at])
			rc = set_level(r, now, r->nodes[tenant], at, level);
	}
	return rc;
}

static bool get_tenant(struct record_in *in, struct levels *ret)
{
	ret->n = (int)record_get_most(in, BUCKETS);
	for (int i = 0; i < ret->n; i++) {
		ret->specs[i] = (struct weir_bucket_spec){
			.kind = (enum weir_bucket_kind)record_get_most(in, WEIR_LTOKENS),
			.unit = (enum weir_unit)record_get_most(in, WEIR_UNIT_TIME),
			.ops = (unsigned)record_get_most(in, WEIR_OPS_ALL)};
		ret->levels[i] = record_get_real(in);
	}
	return !in->bad;
}

int resource_take(struct resource *r, struct record_in *in)
{
	weir_time now = resource_policy_now(r), then = (weir_time)record_get(in);
	struct levels before;
	int rc = 0;

	while (rc == 0 && in->at < in->end) {
		const char *path = record_get_text(in);
		int tenant;

		if (!get_tenant(in, &before))
			return -EBADMSG;
		tenant = r->policy ? weir_policy_find(r->policy, path) : -ENOENT;
		if (tenant >= 0)
			rc = set_tenant(
				r, (size_t)tenant, &before, now, now > then ? now - then : 0);
	}
	return in->bad ? -EBADMSG : rc;
}
