/* SPDX-License-Identifier: BSD-3-Clause */
/* load: the loads that a controller of the window measures, and the window that it sets. */
#include "serve/loop/log.h"
#include "serve/resource/impl.h"
#include "policy/knobs/swap.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MINS_EVERY (60 * WEIR_SEC) /* between two checks, which visit all tenants */
#define MINS_SLACK 1.05            /* a learned capacity is not exact */
#define HELD_MOST  0.99            /* of a time inside */

struct resource_loads { /* of the policy in force */
	weir_time at;   /* when they were last looked at */
	double *shares; /* n of each: */
	struct seen {
		uint64_t served, bytes;
		double device_ns;
		double wanting_ns; /* and those for which a request waited for the window or its turn */
		uint32_t clients;
	} * seen;
	struct site_load *rows;
};

/* Requests that limits of the tenant or above it hold do not want a slot yet. */
static void leaf_load(struct resource *r, weir_node node, struct seen *ret)
{
	struct weir_gate_stats st;

	if (weir_gate_get_stats(r->gate, r->now, node, &st) != 0)
		return;
	ret->served = st.served;
	ret->bytes = st.bytes;
	ret->device_ns = st.device_ns;
	ret->wanting_ns = st.device_ns + st.wait_ns[WEIR_WAIT_WINDOW] + st.wait_ns[WEIR_WAIT_TURN];
}

/* Its part of its guarantee, if it has several resources. */
static void leaf_min(struct resource *r, size_t i, struct site_load *ret)
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

void resource_loads_free(struct resource *r)
{
	if (!r->loads)
		return;
	free(r->loads->shares);
	free(r->loads->seen);
	free(r->loads->rows);
	free(r->loads);
	r->loads = NULL;
}

static int loads_new(struct resource *r)
{
	struct controller_version v = resource_policy_version(r, false);
	struct resource_loads *l = calloc(1, sizeof(*l));

	r->loads = l;
	if (l) {
		l->shares = calloc(v.n + 1, sizeof(*l->shares));
		l->seen = calloc(v.n + 1, sizeof(*l->seen));
		l->rows = calloc(v.n + 1, sizeof(*l->rows));
	}
	if (l && l->shares && l->seen && l->rows && v.shares(&v, l->shares) == 0)
		return 0;
	resource_loads_free(r);
	return -ENOMEM;
}

/* A node that was made anew begins at 0. */
static double grown(double now, double was)
{
	return now > was ? now - was : 0;
}

static uint64_t more(uint64_t now, uint64_t was)
{
	return now > was ? now - was : 0;
}

/* The part of a time inside the back end that is due to limits upstream: of as many requests as came back, or of one where
 * none did. The upstream was asked a moment ago, and not for just these: never all of it. */
static double held_of(const struct resource *r, double device_ns, uint64_t served)
{
	double held = (double)r->back->held * (double)(served ? served : 1);

	return held < device_ns * HELD_MOST ? held : device_ns * HELD_MOST;
}

/* Fill the load of leaf i since the last look. Return false if it had none and has no clients. */
static bool row_of(struct resource *r, size_t i, struct site_load *ret)
{
	struct seen *was = &r->loads->seen[i], now = {.clients = was->clients};

	leaf_load(r, r->nodes[i], &now);
	*ret = (struct site_load){.tenant = (uint32_t)i,
		.shares = r->loads->shares[i],
		.ios = more(now.served, was->served),
		.bytes = (double)more(now.bytes, was->bytes),
		.device_ns = grown(now.device_ns, was->device_ns),
		.wanting_ns = grown(now.wanting_ns, was->wanting_ns)};
	ret->latency_ns = ret->device_ns;
	ret->held_ns = held_of(r, ret->device_ns, ret->ios);
	*was = now;
	if (!now.clients && !ret->ios && !(ret->wanting_ns > 0))
		return false;
	leaf_min(r, i, ret);
	return true;
}

int resource_loads(struct resource *r, struct site_loads *ret)
{
	const struct weir_policy *p = r->policy;
	weir_time now = resource_policy_now(r), was = r->loads ? r->loads->at : 0;
	bool first = !r->loads;
	size_t n = 0;

	back_look(r->back);
	if (first && loads_new(r) < 0)
		return -ENOMEM;
	if (!first && now <= was)
		return -EAGAIN;
	for (size_t i = 0; i < r->n_nodes; i++)
		r->loads->seen[i].clients = 0;
	for (const struct client *c = r->clients; c; c = c->next)
		if (c->tenant >= 0)
			r->loads->seen[c->tenant].clients++;
	for (size_t i = 0; i < r->n_nodes; i++)
		if (p->tenants[i].first_child < 0)
			n += row_of(r, i, &r->loads->rows[n]);
	r->loads->at = now;
	if (first)
		return -EAGAIN;
	*ret = (struct site_loads){
		.span = now - was, .rows = r->loads->rows, .n = n, .held = (double)r->back->held};
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
	r->min_part = 0;
	for (int u = 0; u < 2; u++) {
		enum weir_unit unit = (enum weir_unit)u;
		double mins = promised(r, unit), can = r->capacity.rate[u];
		char a[32], b[32];

		if (can > 0)
			r->min_part = fmax(r->min_part, mins / can);
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

void resource_ask_upstream(struct resource *r)
{
	if (r->back->ops->ask)
		r->back->ops->ask(r->back);
}

void resource_window(struct resource *r, double window)
{
	struct weir_knob knob = {.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = window};

	if (!r->gate || r->shadow || !(r->spec.controller && r->spec.controller->sets_window))
		return;
	r->window = window;
	weir_gate_set(r->gate, resource_policy_now(r), &knob, 1, NULL);
}
