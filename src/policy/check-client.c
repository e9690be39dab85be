/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check-client: warnings about effects on clients.
 *
 * LAW     A client keeps up to `depth` requests in flight. Behind a max of rate r the last of them
 *         waits depth · cost / r, with the cost of the largest request. Beyond the client's
 *         time-out (the kernel's NBD client: 30 s) the client resets the device, and its file
 *         system fails.
 * SYMBOLS depth: the resource's, or the kernel client's if that is larger: its own queue waits at
 *         the gate whatever the window is.
 * EXAMPLE 128 requests of 1 MiB at 1 MiB/s: 128 s.
 */
#include "policy/impl.h"
#include <stdio.h>

#define CLIENT_DEPTH   128                 /* tags of a queue of the kernel's NBD client */
#define CLIENT_REQUEST (UINT64_C(1) << 20) /* bytes; the kernel splits requests above 1.25 MiB */

/* Return the most requests that a client has in flight at once. */
static double deepest(const struct weir_policy *p)
{
	double depth = CLIENT_DEPTH;

	for (size_t i = 0; i < p->n_resources; i++)
		if (p->resources[i].depth > depth)
			depth = p->resources[i].depth;
	return depth;
}

/* Return the cost of the largest request in a unit, at the resource where it costs most. */
static double dearest(const struct weir_policy *p, enum weir_unit unit)
{
	struct weir_resource plain;
	double cost = 0;

	if (unit == WEIR_UNIT_BYTES)
		return (double)CLIENT_REQUEST;
	policy_resource_default("", &plain);
	if (!p->n_resources)
		return weir_policy_cost(&plain, WEIR_WRITE, CLIENT_REQUEST);
	for (size_t i = 0; i < p->n_resources; i++) {
		double here = weir_policy_cost(&p->resources[i], WEIR_WRITE, CLIENT_REQUEST);

		cost = here > cost ? here : cost;
	}
	return cost;
}

static void warn_wait(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_limit *max, double depth, double wait)
{
	char size[32], rate[32], span[32], timeout[32];

	weir_units_show_size(CLIENT_REQUEST, size, sizeof(size));
	weir_units_show_rate((struct weir_rate){max->rate, max->unit}, rate, sizeof(rate));
	weir_units_show_time((weir_time)wait, span, sizeof(span));
	weir_units_show_time(r->policy->client_timeout, timeout, sizeof(timeout));
	policy_warn_at(r, max->at,
		"%.0f requests of %s wait up to %s at the max of '%s', %s%s: clients that give up "
		"after %s (client_timeout) fail",
		depth, size, span, t->path, rate,
		max->ops == WEIR_OPS_READS    ? " of reads"
		: max->ops == WEIR_OPS_WRITES ? " of writes"
					      : "",
		timeout);
}

static void check_waits(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	const double depth = deepest(p);
	const double costs[2] = {
		dearest(p, WEIR_UNIT_REQUESTS),
		dearest(p, WEIR_UNIT_BYTES),
	};

	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_max; k++) {
			const struct weir_limit *max = &p->tenants[i].max[k];
			double wait = depth * costs[max->unit] / max->rate * 1e9;

			/* Longest time that can be shown: 292 years. */
			if (wait > (double)p->client_timeout)
				warn_wait(r, &p->tenants[i], max, depth, wait < 9e18 ? wait : 9e18);
		}
}

/* Write one line for all of them, at the place of the first. */
static void check_slos(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	const struct weir_tenant *first = NULL;
	char more[40] = "";
	bool kinds = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		if (t->slo_percentile <= 0 || t->first_child >= 0 ||
			(t->planned && t->planned->trace && !t->slo_ops))
			continue; /* with a trace a plan can keep it */
		kinds |= p->tenants[i].slo_ops != 0;
		if (!n++)
			first = &p->tenants[i];
	}
	if (n > 1)
		snprintf(more, sizeof(more), " and of %zu more", n - 1);
	if (first)
		policy_warn_at(r, first->slo_at,
			"the slo of '%s'%s is only measured and reported%s", first->path, more,
			kinds ? ", over requests of all kinds" : "");
}

void policy_check_clients(struct policy_reading *r)
{
	check_slos(r);
	if (r->policy->enforce && r->policy->client_timeout > 0)
		check_waits(r);
}
