/* SPDX-License-Identifier: BSD-3-Clause */
/* load: measurements for a controller of the window, and the window that it sets. */
#include "serve/loop/log.h"
#include "serve/resource/impl.h"
#include "policy/swap.h"
#include <errno.h>
#include <math.h>
#include <string.h>

#define MINS_EVERY (60 * WEIR_SEC) /* between two checks, which visit all tenants */
#define MINS_SLACK 1.05            /* a learned capacity is not exact */

/* Requests that are held by the tenant's own limits, or limits above it, do not want a slot yet. */
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

/* Return its part of its min, if it has several resources. */
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

/* Return the part of a leaf's min that is here. */
static double min_part(const struct resource *r, size_t i, unsigned slot)
{
	const struct resource_part *part = &r->policy_of->part;
	uint8_t slots[POLICY_ROWS];
	unsigned n = policy_install_rows(&r->policy->tenants[i], &part->bounds[i], slots);

	for (unsigned k = 0; k < n; k++)
		if (slots[k] == WEIR_LIMITS + slot)
			return part->rows[part->first[i] + k];
	return 0;
}

/* Return the sum of all tenants' mins here, per second. */
static double promised(const struct resource *r, enum weir_unit unit)
{
	const struct weir_policy *p = r->policy;
	const struct weir_bounds *bounds = r->policy_of->part.bounds;
	unsigned slot = weir_limit_slot(unit, WEIR_OPS_ALL);
	double sum = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].first_child < 0 && bounds[i].min[slot] > 0)
			sum += bounds[i].min[slot] * min_part(r, i, slot);
	return sum;
}

void resource_load_mins(struct resource *r, weir_time now)
{
	if (!r->policy || !r->policy_of || !r->policy_of->part.bounds ||
		(r->min_looked && now - r->min_looked < MINS_EVERY))
		return;
	r->min_looked = now;
	for (int u = 0; u < 2; u++) {
		enum weir_unit unit = (enum weir_unit)u;
		double mins = promised(r, unit), can = r->capacity.rate[u];
		char a[32], b[32];

		if (!(mins > can * MINS_SLACK))
			continue;
		weir_units_show_rates((struct weir_rate){mins, unit}, (struct weir_rate){can, unit},
			a, b, sizeof(a));
		log_event(LOG_LEVEL_WARNING, "min-beyond-capacity", "resource", r->name, "mins", a,
			"capacity", b, NULL);
	}
}

void resource_held(struct resource *r, const struct client *c, struct front_held *ret_held)
{
	struct weir_gate_stats st;

	*ret_held = (struct front_held){0};
	if (!r->gate || r->shadow || c->tenant < 0) /* the gate holds shadows, not requests */
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

	if (!r->gate || !(r->spec.controller && r->spec.controller->sets_window))
		return;
	r->window = window;
	weir_gate_set(r->gate, resource_policy_now(r), &knob, 1, NULL);
}
