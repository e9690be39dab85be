/* SPDX-License-Identifier: BSD-3-Clause */
/* limits: a max that a trace does not fit, and mins that a plan leaves no room for. */
#include "plan/read-impl.h"
#include <math.h>
#include <stdlib.h>

/* ---- a max */

/* Return true if a bucket of a max holds a request of a trace. */
static bool bucket_holds(
	const struct weir_bucket_spec *b, const struct weir_resource *of, const struct trace *t)
{
	double lack = 0;
	weir_time last = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *q = &t->records[i];
		double cost = b->unit == WEIR_UNIT_BYTES
				      ? weir_policy_cost_bytes((enum weir_op)q->op, q->bytes)
				      : weir_policy_cost(of, (enum weir_op)q->op, q->bytes);

		if (!(b->ops >> q->op & 1))
			continue;
		lack = fmax(0, lack - (double)(q->at - last) * 1e-9 * b->rate);
		last = q->at;
		if (b->size - lack < fmin(cost, b->size) * (1 - 1e-9))
			return true;
		lack += cost;
	}
	return false;
}

/* Note the first max, of the tenant or of its groups, that holds requests of its trace: neither bound nor replay has it. */
void planning_note_max(const struct planning *p, const struct weir_resource *of,
	const struct trace *trace, struct planning_tenant *to)
{
	for (int at = (int)to->tenant; p->policy->enforce && at >= 0;
		at = p->policy->tenants[at].parent) {
		const struct weir_tenant *t = &p->policy->tenants[at];

		for (unsigned i = 0; i < t->n_max; i++) {
			struct weir_bucket_spec b[2];
			unsigned n = policy_install_max(&t->max[i], 1, b);

			for (unsigned k = 0; k < n; k++)
				if (bucket_holds(&b[k], of, trace)) {
					to->held = true;
					to->held_by = (size_t)at;
					to->held_max = t->max[i];
					return;
				}
		}
	}
}

/* ---- mins */

/* Return the part of a resource's time that a min takes at least: of its stated capacity, or in sequential requests of 256 KiB, or of 4 KiB
 * if it counts requests. */
static double min_share(const struct planning_stage *s, const struct weir_resource *of,
	const struct weir_limit *min)
{
	const uint32_t bytes = min->unit == WEIR_UNIT_BYTES ? STATION_PIECE : 4096;
	double least = HUGE_VAL, stated = of->capacity[min->unit].per_second;

	if (stated > 0)
		return min->rate / stated;
	for (unsigned op = TRACE_READ; op <= TRACE_WRITE; op++) {
		struct estimate_past past = {0}; /* a request at 0 continues it */

		if (min->ops >> op & 1)
			least = fmin(
				least, 1e-9 * estimate_work(&s->estimate, &past, op, 0, bytes));
	}
	return min->rate * least / (min->unit == WEIR_UNIT_BYTES ? bytes : 1);
}

/* Return the part that the mins of a tenant itself take: of reads and writes together, in the unit in which it is more. */
static double own_mins(
	const struct planning_stage *s, const struct weir_resource *of, const struct weir_tenant *t)
{
	double most = 0;

	for (int unit = WEIR_UNIT_REQUESTS; unit <= WEIR_UNIT_BYTES; unit++) {
		double all = 0, kinds = 0;

		for (unsigned i = 0; i < t->n_min; i++)
			if ((int)t->min[i].unit == unit) {
				double x = min_share(s, of, &t->min[i]);

				*(t->min[i].ops == WEIR_OPS_ALL ? &all : &kinds) += x;
			}
		most = fmax(most, fmax(all, kinds));
	}
	return most;
}

static int by_tenant(const void *key, const void *entry)
{
	size_t tenant = *(const size_t *)key;
	const struct planning_tenant *of = entry;

	return (tenant > of->tenant) - (tenant < of->tenant);
}

/* Return the part of a stage that the buckets of a tenant take in the long run. */
static double planned_share(const struct planning *p, uint32_t stage, size_t tenant)
{
	/* tenants with an slo come first, in the policy's order */
	const struct planning_tenant *found =
		bsearch(&tenant, p->tenant, p->in.n_tenants, sizeof(*p->tenant), by_tenant);
	const struct plan_tenant *t = found ? &p->tenants[found - p->tenant] : NULL;

	for (uint32_t k = 0; t && k < t->n_hops; k++)
		if (t->hop[k].stage == stage)
			return t->hop[k].pair[t->hop[k].n - 1].rate / p->stages[stage].rate;
	return 0;
}

/* Return what a tenant may take of a stage: a leaf the more of its buckets and its min, a group at least what its members take. */
static double share_of(struct planning *p, uint32_t stage, int i)
{
	const struct weir_tenant *t = &p->policy->tenants[i];
	struct planning_stage *s = &p->stage[stage];
	double sum = 0, min;
	struct path path;

	for (int c = t->first_child; c >= 0; c = p->policy->tenants[c].next_sibling)
		sum += share_of(p, stage, c);
	if (t->first_child < 0)
		sum = planned_share(p, stage, (size_t)i);
	if (!planning_path(p, t, &path) || stage_index(p, path.stage[path.storage]) != stage)
		return sum;
	min = own_mins(s, &p->policy->resources[stage], t);
	if (min > s->min_most) {
		s->min_most = min;
		s->min_of = t->path;
	}
	return fmax(sum, min);
}

void planning_note_mins(struct planning *p)
{
	for (uint32_t k = 0; p->policy->enforce && k < p->policy->n_resources; k++) {
		struct planning_stage *s = &p->stage[k];

		for (int i = s->used && p->policy->n_tenants ? 0 : -1; i >= 0;
			i = p->policy->tenants[i].next_sibling)
			s->taken += share_of(p, k, i);
	}
}
