/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look: add the measurements of one resource to a snapshot of the whole gateway; and measurements
 * that are needed more often.
 *
 * A tenant that uses several resources has the sum of them; its cause of waiting is that of its
 * oldest request. A group has the sum of its leaves, without latencies.
 */
#include "serve/snapshot/version.h"
#include "serve/resource/impl.h"
#include "serve/snapshot/snapshot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The most work of a step, in units of an idle tenant, 10 ns; and the work of an active tenant,
 * 5 µs for its histograms. */
#define STEP   20000u
#define ACTIVE 500u

/* ---- what requests wait for */

/* Convert a limit to the unit, by the mean size of the tenant's requests. */
static double in_unit(
	const struct weir_limit *l, enum weir_unit unit, const struct weir_gate_stats *st)
{
	double size = st->dispatched ? (double)st->bytes / (double)st->dispatched : 0;

	if (l->unit == unit || size <= 0)
		return l->rate;
	return unit == WEIR_UNIT_BYTES ? l->rate * size : l->rate / size;
}

/* Return true if a controller's rule holds the tenant, and none of its own limits is below it. */
static bool tokens_hold(struct resource *r, size_t tenant, const struct weir_gate_stats *st)
{
	const struct controller_rule *rules = resource_policy_version(r, false).rules;
	const struct weir_tenant *t = &r->policy->tenants[tenant];
	const struct weir_bucket_spec *b;

	if (!rules)
		return false;
	resource_policy_rule(r, tenant);
	b = &rules[tenant].bucket;
	if (b->size <= 0 || b->kind != WEIR_HOLD)
		return false;
	for (unsigned i = 0; i < t->n_max; i++)
		if (in_unit(&t->max[i], b->unit, st) <= b->rate)
			return false;
	return true;
}

/* For the gate a rule is a limit like the tenant's own. The waiting time since the last look counts
 * for the limit that is the lower one now, so that neither sum ever falls. */
int resource_stats(struct resource *r, size_t tenant, struct weir_gate_stats *ret)
{
	weir_node node = r->nodes[tenant];
	struct resource_count *n = &r->counts[node];
	double *wait;
	bool tokens;
	int rc = weir_gate_get_stats(r->gate, r->now, node, ret);

	if (rc != 0)
		return rc;
	wait = ret->wait_ns;
	if (wait[WEIR_WAIT_MAX] <= 0) /* as for most: skip looking up the rule */
		return 0;
	tokens = tokens_hold(r, tenant, ret);
	if (tokens && wait[WEIR_WAIT_MAX] > n->max_ns)
		n->tokens_ns += wait[WEIR_WAIT_MAX] - n->max_ns;
	n->max_ns = wait[WEIR_WAIT_MAX];
	wait[WEIR_WAIT_MAX] -= n->tokens_ns;
	wait[WEIR_WAIT_TOKENS] += n->tokens_ns;
	if (tokens && ret->cause == WEIR_WAIT_MAX)
		ret->cause = WEIR_WAIT_TOKENS;
	return 0;
}

/* ---- tenants */

/* Return the resource's index of tenant i of the snapshot; -1: none, because another version is in
 * force by now. */
static int place_of(const struct resource *r, const struct snapshot *s, size_t i)
{
	if (r->policy == s->of->policy)
		return (int)i;
	return weir_policy_find(r->policy, snapshot_path(s, i));
}

/* Return the path of the node, which is that of the tenant at `here` or of one above it. */
static const char *path_of(const struct resource *r, struct snapshot *s, int here, weir_node node)
{
	for (; here >= 0; here = r->policy->tenants[here].parent)
		if (r->nodes[here] == node) {
			int i = r->policy == s->of->policy ? here
							   : weir_policy_find(s->of->policy,
								     r->policy->tenants[here].path);

			return i >= 0 ? snapshot_path(s, (size_t)i) : NULL;
		}
	return NULL;
}

/* If the oldest request of t waits here, note for how long and why. */
static void add_oldest(const struct resource *r, struct snapshot *s, struct snapshot_tenant *t,
	int here, const struct weir_gate_stats *st)
{
	weir_time wait = st->oldest < r->now ? r->now - st->oldest : 0;

	if (!st->queued || (t->queued && wait <= t->oldest_wait))
		return;
	t->oldest_wait = wait;
	t->cause = st->cause;
	t->held_by = NULL;
	if (st->cause == WEIR_WAIT_MAX || st->cause == WEIR_WAIT_ABOVE)
		t->held_by = path_of(r, s, here, st->blocker);
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
	t->waited += n->waited;
	t->reads += n->reads;
	t->writes += n->writes;
	t->others += n->others;
}

static void add_hists(struct resource *r, weir_node node, struct snapshot_tenant *t)
{
	const struct weir_hist *wait = weir_gate_hist_wait(r->gate, node);
	const struct weir_hist *device = weir_gate_hist_device(r->gate, node);

	if (wait)
		snapshot_hist_add(&t->wait, wait);
	if (device)
		snapshot_hist_add(&t->device, device);
	if (r->totals[node])
		snapshot_hist_add(&t->total, r->totals[node]);
}

/* Return true if it was not idle. */
static bool add_leaf(struct resource *r, struct snapshot *s, size_t i)
{
	int here = place_of(r, s, i);
	struct snapshot_tenant *t;
	struct weir_gate_stats st;
	weir_node node;

	if (here < 0 || resource_idle(&r->counts[r->nodes[here]]))
		return false;
	node = r->nodes[here];
	t = snapshot_active(s, i);
	if (!t || resource_stats(r, (size_t)here, &st) != 0)
		return true;
	if (resource_bypasses(r))
		st.in_flight = 0; /* its clients have the number */
	for (int a = (int)i; a >= 0; a = s->of->policy->tenants[a].parent) {
		t = snapshot_active(s, (size_t)a);
		if (!t)
			continue;
		add_oldest(r, s, t, here, &st);
		add_counters(t, &st, &r->counts[node]);
	}
	add_hists(r, node, s->tenants[i]);
	if (r->counts[node].claim)
		resource_claim_look(r, r->counts[node].claim, s, s->tenants[i]);
	return true;
}

/* Add the counters of leaves that a group had. */
static void add_group(struct resource *r, struct snapshot *s, size_t i)
{
	int here = r->n_retired ? place_of(r, s, i) : -1;
	const struct resource_retired *had = here >= 0 ? resource_retired(r, r->nodes[here]) : NULL;
	struct snapshot_tenant *of = NULL;

	if (had && (of = snapshot_active(s, i)) && !of->gone)
		of->gone = snapshot_take(s, 1, sizeof(*of->gone));
	if (had && of && of->gone)
		add_counters(of->gone, &had->stats, &had->count);
	for (int a = (int)i; had && a >= 0; a = s->of->policy->tenants[a].parent) {
		struct snapshot_tenant *t = snapshot_active(s, (size_t)a);

		if (t)
			add_counters(t, &had->stats, &had->count);
	}
}

/* Without a gate there are only the counts chosen by resource_join. */
static bool add_bare(struct resource *r, struct snapshot *s, size_t i)
{
	struct weir_gate_stats none = {0};
	int place = place_of(r, s, i);
	struct snapshot_tenant *t;
	size_t at;

	if (place < 0)
		return false;
	at = (size_t)place + 1;
	if (at >= r->n_counts || resource_idle(&r->counts[at]))
		return false;
	for (int a = (int)i; a >= 0; a = s->of->policy->tenants[a].parent)
		if ((t = snapshot_active(s, (size_t)a)))
			add_counters(t, &none, &r->counts[at]);
	if (s->tenants[i] && r->totals[at])
		snapshot_hist_add(&s->tenants[i]->total, r->totals[at]);
	return true;
}

/* ---- clients */

static void add_client(struct resource *r, struct snapshot *s, struct snapshot_resource *here,
	const struct client *c)
{
	struct snapshot_client *to;
	int i = c->tenant;
	struct weir_gate_stats st;
	bool shadow = r->shadow && c->tenant >= 0 &&
		      weir_gate_get_stats(r->gate, r->now, c->node, &st) == 0;

	if (i >= 0 && r->policy != s->of->policy)
		i = weir_policy_find(s->of->policy, r->policy->tenants[i].path);
	if (i >= 0 && here)
		snapshot_place(s, (size_t)i, here);
	for (int a = i; a >= 0; a = s->of->policy->tenants[a].parent) {
		struct snapshot_tenant *t = snapshot_active(s, (size_t)a);

		if (!t)
			continue;
		t->clients++;
		t->in_flight += resource_bypasses(r) ? c->in_flight : 0;
		if (shadow)
			resource_shadow_estimate(r, c, &st, &t->shadow);
	}
	if (s->clients_of && (c->tenant < 0 || strncmp(r->policy->tenants[c->tenant].path,
						       s->clients_of, strlen(s->clients_of)) != 0))
		return;
	to = snapshot_client(s);
	if (!to)
		return;
	snprintf(to->export_, sizeof(to->export_), "%s", c->export_);
	snprintf(to->name, sizeof(to->name), "%s", c->name);
	snprintf(to->tls, sizeof(to->tls), "%s", c->tls);
	snprintf(to->resource, sizeof(to->resource), "%s", r->name);
	if (c->tenant >= 0)
		snprintf(to->tenant, sizeof(to->tenant), "%s", r->policy->tenants[c->tenant].path);
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
	bool bad = b->trouble || resource_stalled(r);
	const char *word = bad && b->state == BACK_UP ? "unhealthy" : words[b->state];
	char more[120] = "", stalled[32] = "";

	if (r->back->ops->say)
		r->back->ops->say(r->back, more, sizeof(more));
	to->stalled = resource_stalled(r);
	if (to->stalled)
		snprintf(stalled, sizeof(stalled), ", %u stalled", to->stalled);
	snprintf(to->state, sizeof(to->state), "%s%s%s%s%s%s", word, b->trouble ? "; " : "",
		b->trouble ? b->trouble : "", *more ? "; " : "", more, stalled);
	to->up = b->state == BACK_UP;
	to->healthy = to->up && !b->trouble && !to->stalled;
	to->flush_errors = b->flush_errors;
}

static void add_self(struct resource *r, struct snapshot *s, struct snapshot_resource *to)
{
	struct weir_gate_totals totals = {0};

	back_look(r->back);
	say_state(r, to);
	if (r->gate)
		weir_gate_get_totals(r->gate, r->now, &totals);
	to->window = totals.window;
	to->window_bytes = totals.window_bytes;
	to->in_flight_bytes = totals.in_flight_bytes;
	to->full = totals.full;
	to->capacity_stated = !r->spec.capacity_auto;
	for (int u = 0; u < 2; u++)
		to->capacity[u] =
			to->capacity_stated ? r->spec.capacity[u].per_second : r->capacity.rate[u];
	to->drift = resource_drift(r);
	to->mins = r->min_looked ? r->min_part : NAN;
	to->submitted = r->submitted;
	to->dispatched = r->dispatched;
	to->served = r->served;
	to->waited = r->waited;
	to->errors = r->errors;
	to->lost = back_real(r->back)->lost;
	to->queued = r->queued;
	to->in_flight = r->inside > r->own.in_flight ? r->inside - r->own.in_flight : 0;
	to->clients = r->n_clients;
	to->bypassed = r->bypass;
	to->bypassed_for = r->bypass ? r->now - r->bypass_since : 0;
	resource_control_look(r, s, to);
}

static void add_all_but_tenants(struct resource *r, struct snapshot *s)
{
	struct snapshot_resource *here = NULL;

	if (r->started && loop_now(r->loop) > r->now)
		r->now = loop_now(r->loop);
	resource_drain(r);
	for (size_t i = 0; !here && i < s->n_resources; i++)
		if (strcmp(s->resources[i].name, r->name) == 0)
			add_self(r, s, here = &s->resources[i]);
	for (const struct client *c = r->policy ? r->clients : NULL; c; c = c->next)
		add_client(r, s, here, c);
}

bool resource_snapshot(struct resource *r, struct snapshot *s, size_t *at)
{
	size_t left = STEP;

	if (*at == 0)
		add_all_but_tenants(r, s);
	if (!r->policy)
		return false;
	for (; *at < s->n_tenants && left > 0; ++*at) {
		size_t cost = 1;

		if (s->of->policy->tenants[*at].first_child >= 0)
			add_group(r, s, *at);
		else if (r->gate ? add_leaf(r, s, *at) : add_bare(r, s, *at))
			cost = ACTIVE;
		left -= cost < left ? cost : left;
	}
	return *at < s->n_tenants;
}

/* ---- small things that others ask for */

bool resource_busy(struct resource *r)
{
	size_t at = 0;

	return r->queued || r->inside || r->again.first || r->arrived.first || r->finished.first ||
	       resource_stall_held(r, &at);
}

uint64_t resource_activity(const struct resource *r)
{
	return atomic_load_explicit(&r->activity, memory_order_relaxed);
}

bool resource_starting(const struct resource *r)
{
	return back_real(r->back)->state == BACK_STARTING;
}

struct back *resource_back(struct resource *r)
{
	return r->back;
}

const struct back_info *resource_info(const struct resource *r)
{
	return &r->back->info;
}

const char *resource_name(const struct resource *r)
{
	return r->name;
}
