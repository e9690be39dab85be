/* SPDX-License-Identifier: BSD-3-Clause */
/* resource-load: what a controller of the window is told, and what it says. */
#include "port/resource-impl.h"
#include "ctl/policy-swap.h"
#include <errno.h>
#include <math.h>
#include <string.h>

/* Those that its own limits hold, or limits above it, do not want a slot yet. */
static void leaf_load(struct resource *r, weir_node node, struct resource_load *ret)
{
	struct weir_gate_stats st;

	if (weir_gate_get_stats(r->gate, r->now, node, &st) != 0)
		return;
	ret->served = st.served;
	ret->bytes = st.bytes;
	ret->device_ns = st.device_ns;
	ret->wanting_ns = st.device_ns + st.wait_ns[WEIR_WAIT_WINDOW] + st.wait_ns[WEIR_WAIT_TURN];
}

/* Its part of what it is guaranteed, if it has several resources. */
static void leaf_min(struct resource *r, size_t i, struct resource_load *ret)
{
	struct weir_bucket_spec b[POLICY_BUCKETS];
	unsigned n = resource_divide_own(r, i, b);
	double all[2] = {0}, apart[2] = {0}; /* by unit: requests, bytes; apart: reads and writes */

	for (unsigned k = 0; k < n; k++) {
		bool every = b[k].ops == 0 || b[k].ops == WEIR_OPS_ALL;

		if (b[k].kind == WEIR_RTOKENS && b[k].unit <= WEIR_UNIT_BYTES)
			*(every ? &all[b[k].unit] : &apart[b[k].unit]) += b[k].rate;
	}
	ret->min_ios = fmax(all[WEIR_UNIT_REQUESTS], apart[WEIR_UNIT_REQUESTS]);
	ret->min_bytes = fmax(all[WEIR_UNIT_BYTES], apart[WEIR_UNIT_BYTES]);
}

int resource_load(
	struct resource *r, const struct weir_policy *p, struct resource_load *ret_load, size_t n)
{
	if (!r->gate || r->policy != p || n != r->n_nodes)
		return -ESTALE;
	resource_policy_now(r);
	memset(ret_load, 0, n * sizeof(*ret_load));
	for (const struct client *c = r->clients; c; c = c->next)
		if (c->tenant >= 0)
			ret_load[c->tenant].clients++;
	for (size_t i = 0; i < n; i++) {
		if (p->tenants[i].first_child >= 0)
			continue;
		leaf_load(r, r->nodes[i], &ret_load[i]);
		leaf_min(r, i, &ret_load[i]);
	}
	return 0;
}

void resource_held(struct resource *r, const struct client *c, struct resource_held *ret_held)
{
	struct weir_gate_stats st;

	*ret_held = (struct resource_held){0};
	if (!r->gate || r->shadow || c->tenant < 0) /* a shadow's request is held, its own is not */
		return;
	if (weir_gate_get_stats(r->gate, r->now, c->node, &st) != 0)
		return;
	ret_held->ns = st.wait_ns[WEIR_WAIT_MAX] + st.wait_ns[WEIR_WAIT_ABOVE] +
		       st.wait_ns[WEIR_WAIT_TOKENS];
	ret_held->served = st.served;
}

double resource_held_upstream(const struct resource *r)
{
	return (double)r->back->held;
}

void resource_ask_upstream(struct resource *r)
{
	if (r->back->ops->ask)
		r->back->ops->ask(r->back);
}

void resource_window(struct resource *r, double window)
{
	struct weir_knob knob = {.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = window};

	if (!r->gate || !control_table[r->spec.controller]->window)
		return;
	r->window = window;
	weir_gate_set(r->gate, resource_policy_now(r), &knob, 1, NULL);
}
