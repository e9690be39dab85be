/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts-load: the loads of a simulated host's tenants since the last look. */
#include "sim/control/hosts-impl.h"
#include <errno.h>
#include <math.h>

/* request·ns since the last look for which limits of the device's own gate, if it has one, held a tenant's requests:
 * their mean over all tenants that share its leaf there, for each of its own. A gateway learns the same from its upstream
 * (wire/nbd.h, weir:held). */
static double held(const struct host *h, const struct world_tenant *t, struct seen *was)
{
	const struct world *w = h->site.world;
	const struct world_gate *gate = w->stations[h->world->group->device].gate;
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

/* The guarantee of a leaf by its own `min`, in a unit. */
static double leaf_min(const struct weir_tenant *t, enum weir_unit unit)
{
	double min = 0;

	for (unsigned i = 0; i < t->n_min; i++) {
		if (t->min[i].unit == unit)
			min = fmax(min, t->min[i].rate);
	}
	return min;
}

static struct site_load load_of(const struct host *h, uint32_t i)
{
	const struct world_tenant *t = &h->world->tenants[i];
	const struct weir_policy *policy = h->world->gate->policy;
	struct seen *was = &h->seen[i];
	struct weir_gate_stats st;
	struct site_load load;
	double wanting;

	if (weir_gate_get_stats(h->world->gate->gate, h->site.world->now, t->node, &st))
		st = (struct weir_gate_stats){0};
	wanting = st.device_ns + st.wait_ns[WEIR_WAIT_WINDOW] + st.wait_ns[WEIR_WAIT_TURN];
	load = (struct site_load){.tenant = i,
		.shares = weir_policy_shares(policy, t->index),
		.ios = t->count.done - was->ios,
		.bytes = (double)(t->count.bytes - was->bytes),
		.latency_ns = t->count.inside_ns - was->inside_ns,
		.device_ns = st.device_ns - was->device_ns,
		.wanting_ns = wanting - was->wanting_ns,
		.held_ns = held(h, t, was),
		.min_ios = leaf_min(&policy->tenants[t->index], WEIR_UNIT_REQUESTS),
		.min_bytes = leaf_min(&policy->tenants[t->index], WEIR_UNIT_BYTES)};
	was->ios = t->count.done;
	was->bytes = t->count.bytes;
	was->inside_ns = t->count.inside_ns;
	was->device_ns = st.device_ns;
	was->wanting_ns = wanting;
	return load;
}

int hosts_loads(struct site *s, struct site_loads *ret)
{
	struct host *h = host_of(s);
	weir_time now = h->site.world->now;
	struct hosts *c = h->hosts;

	if (now <= h->looked)
		return -EAGAIN;
	for (uint32_t i = 0; i < h->world->n_tenants; i++)
		c->rows[i] = load_of(h, i);
	*ret = (struct site_loads){
		.span = now - h->looked, .rows = c->rows, .n = h->world->n_tenants};
	h->looked = now;
	return 0;
}
