/* SPDX-License-Identifier: BSD-3-Clause */
/* parda-hosts-measure: what a simulated host's gate measured since its last step. */
#include "control/parda/tenant.h"
#include "sim/control/parda-hosts-impl.h"
#include <math.h>

/* request·ns since the last step for which limits of the device's own gate, if it has one, held a tenant's
 * requests: their mean over all who share its leaf there, for each of its own. As a gateway is told it by one
 * upstream (wire/nbd.h, weir:held). */
static double held(struct host *h, uint32_t i, struct world *w)
{
	const struct world_tenant *t = &h->world->tenants[i];
	const struct world_gate *gate = w->stations[h->world->group->device].gate;
	struct seen *was = &h->seen[i];
	struct weir_gate_stats st;
	double ns, mean = 0;

	if (!gate || weir_gate_get_stats(gate->gate, w->now, t->device_node, &st))
		return 0;
	ns = st.wait_ns[WEIR_WAIT_MAX] + st.wait_ns[WEIR_WAIT_ABOVE] + st.wait_ns[WEIR_WAIT_TOKENS];
	if (ns > was->held_ns)
		mean = (ns - was->held_ns) / fmax(1, (double)(st.served - was->held_ios));
	was->held_ns = ns;
	was->held_ios = st.served;
	return mean * (double)(t->count.done - was->ios);
}

/* request·ns for which requests wanted a slot: inside, or waiting for the window or their turn; not held by
 * limits here. */
static double wanting(const struct weir_gate_stats *s)
{
	return s->device_ns + s->wait_ns[WEIR_WAIT_WINDOW] + s->wait_ns[WEIR_WAIT_TURN];
}

/* What a leaf is guaranteed by its own `min`, in a unit. */
static double leaf_min(const struct weir_tenant *t, enum weir_unit unit)
{
	double min = 0;

	for (unsigned i = 0; i < t->n_min; i++) {
		if (t->min[i].unit == unit)
			min = fmax(min, t->min[i].rate);
	}
	return min;
}

/* What became of a tenant since the last step. held_ns: that it was held upstream and so wanted nothing. */
static struct parda_vm vm_of(struct host *h, uint32_t i, const struct weir_gate_stats *st,
	double held_ns, double span, double slot)
{
	const struct world_tenant *t = &h->world->tenants[i];
	const struct weir_policy *policy = &h->world->gate->policy;
	struct seen *was = &h->seen[i];
	struct parda_tenant now = {.shares = weir_policy_shares(policy, t->index),
		.ios = (double)(t->count.done - was->ios),
		.bytes = (double)(t->count.bytes - was->bytes),
		.wanting_ns = wanting(st) - was->wanting_ns - held_ns,
		.min_ios = leaf_min(&policy->tenants[t->index], WEIR_UNIT_REQUESTS),
		.min_bytes = leaf_min(&policy->tenants[t->index], WEIR_UNIT_BYTES)};

	was->ios = t->count.done;
	was->bytes = t->count.bytes;
	was->wanting_ns = wanting(st);
	return parda_tenant_vm(&now, span, slot);
}

void parda_hosts_measure(
	struct hosts *c, struct host *h, struct world *w, struct parda_measured *ret)
{
	double span = (double)(w->now - h->stepped), slot = c->map.config.slot, all_held = 0;
	struct host now = {0};

	for (uint32_t i = 0; i < h->world->n_tenants; i++) {
		const struct world_tenant *t = &h->world->tenants[i];
		double held_ns = held(h, i, w) * (c->map.without != WITHOUT_HELD);
		struct weir_gate_stats stats;

		now.ios += t->count.done;
		now.bytes += t->count.bytes;
		now.inside_ns += t->count.inside_ns;
		all_held += held_ns;
		if (weir_gate_get_stats(h->world->gate->gate, w->now, t->node, &stats))
			stats = (struct weir_gate_stats){0};
		now.device_ns += stats.device_ns;
		c->vms[i] = vm_of(h, i, &stats, held_ns, span, slot);
		c->vms[i].number = i;
	}
	*ret = (struct parda_measured){.ios = now.ios - h->ios,
		.bytes = (double)(now.bytes - h->bytes),
		.latency_ns = fmax(0, now.inside_ns - h->inside_ns - all_held),
		.inside = fmax(0, (now.device_ns - h->device_ns - all_held) / span),
		.vms = c->vms,
		.n_vms = h->world->n_tenants};
	h->ios = now.ios;
	h->bytes = now.bytes;
	h->inside_ns = now.inside_ns;
	h->device_ns = now.device_ns;
}
