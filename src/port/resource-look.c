/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource-look: what was measured at one resource, added to a snapshot of the whole gateway; and what is
 * asked of it more often.
 *
 * A tenant that uses several resources has the sum of them; why it waits is told of one where many
 * of its requests do. A group has the sum of its leaves, without latencies.
 */
#include "port/resource-impl.h"
#include "port/snapshot.h"
#include <stdio.h>
#include <string.h>

/* ---- tenants */

static int tenant_of(const struct resource *r, weir_node node)
{
	for (size_t i = 0; i < r->n_nodes; i++)
		if (r->nodes[i] == node)
			return (int)i;
	return -1;
}

static void add_cause(const struct resource *r, struct snapshot *s, struct snapshot_tenant *t,
	const struct weir_gate_stats *st)
{
	int by = -1;

	if (t->queued && st->queued <= t->queued)
		return;
	t->cause = st->cause;
	if (st->queued && (st->cause == WEIR_WAIT_MAX || st->cause == WEIR_WAIT_ABOVE))
		by = tenant_of(r, st->blocker);
	t->held_by = by >= 0 ? s->tenants[by].path : NULL;
}

static void add_counters(
	struct snapshot_tenant *t, const struct weir_gate_stats *st, const struct resource_count *n)
{
	t->arrivals += st->arrivals;
	t->dispatched += st->dispatched;
	t->served += st->served;
	t->bytes += st->bytes;
	for (int k = 0; k < 3; k++)
		t->by_class[k] += st->by_class[k];
	for (int k = 0; k < WEIR_CAUSES; k++)
		t->wait_ns[k] += st->wait_ns[k];
	t->device_ns += st->device_ns;
	t->queued += st->queued;
	t->in_flight += st->in_flight;
	t->arrivals += n->bypassed.served;
	t->dispatched += n->bypassed.served;
	t->by_class[WEIR_CLASS_REST] += n->bypassed.served;
	t->served += n->bypassed.served;
	t->bytes += n->bypassed.bytes;
	t->device_ns += (double)n->bypassed.device_ns;
	t->errors += n->errors;
	t->reads += n->reads;
	t->writes += n->writes;
	t->others += n->others;
}

static void add_oldest(struct snapshot_tenant *t, weir_time now, weir_time oldest)
{
	if (oldest < now && now - oldest > t->oldest_wait)
		t->oldest_wait = now - oldest;
}

static void add_leaf(struct resource *r, struct snapshot *s, size_t i)
{
	weir_node node = r->nodes[i];
	struct snapshot_tenant *t = &s->tenants[i];
	const struct weir_hist *wait = weir_gate_hist_wait(r->gate, node);
	const struct weir_hist *device = weir_gate_hist_device(r->gate, node);
	struct weir_gate_stats st;

	if (weir_gate_get_stats(r->gate, r->now, node, &st) != 0)
		return;
	if (resource_bypasses(r))
		st.in_flight = 0; /* its clients know */
	add_cause(r, s, t, &st);
	for (int a = (int)i; a >= 0; a = r->policy->tenants[a].parent) {
		add_counters(&s->tenants[a], &st, &r->counts[node]);
		add_oldest(&s->tenants[a], r->now, st.oldest);
	}
	if (wait)
		snapshot_hist(s, &t->wait, wait);
	if (device)
		snapshot_hist(s, &t->device, device);
	if (r->totals[node])
		snapshot_hist(s, &t->total, r->totals[node]);
}

/* Without a gate there are only the counts that resource_join chose. */
static void add_bare(struct resource *r, struct snapshot *s, size_t i)
{
	struct weir_gate_stats none = {0};
	struct snapshot_tenant *t = &s->tenants[i];

	if (i + 1 >= r->n_counts)
		return;
	for (int a = (int)i; a >= 0; a = r->policy->tenants[a].parent)
		add_counters(&s->tenants[a], &none, &r->counts[i + 1]);
	if (r->totals[i + 1])
		snapshot_hist(s, &t->total, r->totals[i + 1]);
}

/* ---- clients */

static void add_client(struct resource *r, struct snapshot *s, const struct client *c)
{
	struct snapshot_client *to;

	struct weir_gate_stats st;
	bool shadow = r->shadow && c->tenant >= 0 &&
		      weir_gate_get_stats(r->gate, r->now, c->node, &st) == 0;

	for (int a = c->tenant; a >= 0 && (size_t)a < s->n_tenants;
		a = r->policy->tenants[a].parent) {
		s->tenants[a].clients++;
		s->tenants[a].in_flight += resource_bypasses(r) ? c->in_flight : 0;
		if (shadow)
			resource_shadow_estimate(r, c, &st, &s->tenants[a].shadow);
	}
	to = snapshot_client(s);
	if (!to)
		return;
	snprintf(to->export_, sizeof(to->export_), "%s", c->export_);
	snprintf(to->name, sizeof(to->name), "%s", c->name);
	snprintf(to->tls, sizeof(to->tls), "%s", c->tls);
	snprintf(to->resource, sizeof(to->resource), "%s", r->name);
	if (c->tenant >= 0 && (size_t)c->tenant < s->n_tenants)
		snprintf(to->tenant, sizeof(to->tenant), "%s", s->tenants[c->tenant].path);
	to->since = c->since;
	to->requests = c->requests;
	to->bytes = c->bytes;
	to->in_flight = c->in_flight;
}

/* ---- the resource itself */

static void say_state(const struct resource *r, struct snapshot_resource *to)
{
	static const char *const words[] = {[BACK_UP] = "up",
		[BACK_LOST] = "lost",
		[BACK_FAILED] = "failed",
		[BACK_STARTING] = "starting"};
	const struct back *b = back_real(r->back);
	const char *word = b->trouble && b->state == BACK_UP ? "unhealthy" : words[b->state];
	char more[120] = "";

	if (r->back->ops->say)
		r->back->ops->say(r->back, more, sizeof(more));
	snprintf(to->state, sizeof(to->state), "%s%s%s%s%s", word, b->trouble ? "; " : "",
		b->trouble ? b->trouble : "", *more ? "; " : "", more);
	to->up = b->state == BACK_UP;
	to->healthy = to->up && !b->trouble;
	to->flush_errors = b->flush_errors;
}

static void add_self(struct resource *r, struct snapshot *s, struct snapshot_resource *to)
{
	struct weir_gate_totals totals = {0};

	say_state(r, to);
	if (r->gate)
		weir_gate_get_totals(r->gate, r->now, &totals);
	to->window = totals.window;
	to->full = totals.full;
	to->capacity_stated = !r->spec.capacity_auto;
	for (int u = 0; u < 2; u++)
		to->capacity[u] =
			to->capacity_stated ? r->spec.capacity[u].per_second : r->capacity.rate[u];
	to->submitted = r->submitted;
	to->dispatched = r->dispatched;
	to->served = r->served;
	to->errors = r->errors;
	to->lost = back_real(r->back)->lost;
	to->queued = r->queued;
	to->in_flight = r->inside;
	to->clients = r->n_clients;
	to->bypassed = r->bypass;
	to->bypassed_for = r->bypass ? r->now - r->bypass_since : 0;
	to->controller = r->control->name;
	if (r->control->look)
		r->control->look(r, s, to);
}

void resource_snapshot(struct resource *r, struct snapshot *s)
{
	if (r->started && loop_now(r->loop) > r->now)
		r->now = loop_now(r->loop);
	resource_drain(r);
	for (size_t i = 0; i < s->n_resources; i++)
		if (strcmp(s->resources[i].name, r->name) == 0)
			add_self(r, s, &s->resources[i]);
	if (!r->policy || s->n_tenants != r->policy->n_tenants)
		return; /* of another version: only while one is put in force */
	for (size_t i = 0; i < r->policy->n_tenants; i++) {
		if (r->policy->tenants[i].first_child >= 0)
			continue;
		if (!r->gate)
			add_bare(r, s, i);
		else if (i < r->n_nodes)
			add_leaf(r, s, i);
	}
	for (const struct client *c = r->clients; c; c = c->next)
		add_client(r, s, c);
}

/* ---- small things that others ask for */

bool resource_busy(const struct resource *r)
{
	return r->queued || r->inside || r->again.first || r->arrived.first || r->finished.first;
}

uint64_t resource_activity(const struct resource *r)
{
	return atomic_load_explicit(&r->activity, memory_order_relaxed);
}

bool resource_starting(const struct resource *r)
{
	return back_real(r->back)->state == BACK_STARTING;
}

const struct back_info *resource_info(const struct resource *r)
{
	return &r->back->info;
}

const char *resource_name(const struct resource *r)
{
	return r->name;
}
