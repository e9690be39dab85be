/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: install the tree in the gate, and swap it.
 *
 * METHOD  A swap takes several steps, each shorter than a millisecond, and requests pass between
 *         them: new nodes are added to the gate and knobs are set (policy_swap_step). All this can
 *         fail, and is then undone. The last step puts the policy in force: every client is matched
 *         again. A client without a tenant, or whose export has changed, is disconnected, and its
 *         waiting requests are dropped; requests of the others follow their client to its node, in
 *         order (resource_again), or go straight on when the new policy is not enforced
 *         (resource_pass). Old nodes are removed when their last request is done: checked after
 *         10 ms, then ever more rarely, some at a time.
 *         A controller continues meanwhile, and is called for each tenant that has its new knobs
 *         (control.h).
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "serve/resource/impl.h"
#include "policy/index.h"
#include "policy/knobs/swap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_FIRST (10 * WEIR_MS) /* most requests take less */
#define SWEEP_LAST  WEIR_SEC       /* an upstream may be away for minutes */
#define SWEEP_MOST  256            /* nodes at once */
#define STEP        256            /* tenants */

static struct resource_policy *policy_of(struct resource *r)
{
	struct resource_policy *o = r->policy_of;

	if (!o && (o = calloc(1, sizeof(*o)))) {
		o->resource = r;
		r->policy_of = o;
	}
	return o;
}

void resource_policy_free(struct resource *r)
{
	struct resource_policy *o = r->policy_of;

	if (!o)
		return;
	if (o->sweep.set)
		loop_set(r->loop, &o->sweep, WEIR_NEVER);
	policy_swap_free(&o->swap);
	resource_part_free(&o->part);
	resource_part_free(&o->next.part);
	free(r->retired);
	free(o);
	r->policy_of = NULL;
	r->nodes = NULL;
	r->n_nodes = 0;
}

/* ---- leavers */

static void gone(weir_node node, void *arg)
{
	resource_room_reset(arg, node);
}

static void sweep(struct resource_policy *o, weir_time now)
{
	struct resource *r = o->resource;
	bool more;

	do
		more = policy_swap_sweep(&o->swap, r->gate, SWEEP_MOST, gone, r);
	while (more && !r->started);
	if (!o->swap.n_leaving || !r->started)
		return;
	if (more) { /* after requests that arrived meanwhile */
		loop_set(r->loop, &o->sweep, now);
		return;
	}
	if (loop_set(r->loop, &o->sweep, now + o->sweep_after) == 0 && o->sweep_after < SWEEP_LAST)
		o->sweep_after *= 2;
}

static void sweep_due(struct loop_timer *t, weir_time now)
{
	sweep(container_of(t, struct resource_policy, sweep), now);
}

/* ---- the resource's own keys */

static const struct weir_resource *spec_in(const struct resource *r, const struct weir_policy *p)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, r->name) == 0)
			return &p->resources[i];
	return &r->spec; /* the policy of a part, or of a test: as before */
}

/* Return the window in bytes. A device that works on the parts of a large request at once is full
 * with few of them. If a window counted only requests, large ones would fill it whenever a tenant
 * of small requests has none waiting because its client is late; the small ones would then wait for
 * all of those, and never get their share of time. */
static uint64_t window_bytes(const struct resource *r, const struct weir_resource *spec)
{
	if (spec->depth_bytes || spec->depth > 0 || r->spec.cost != WEIR_UNIT_TIME)
		return spec->depth_bytes;
	return r->back->info.depth_bytes;
}

static bool sets_window(const struct weir_resource *spec)
{
	return spec->controller && spec->controller->sets_window;
}

enum { ROOT_KNOBS = 5 };
static void root_knobs(
	const struct resource *r, const struct weir_resource *spec, struct weir_knob *knobs)
{
	double depth = spec->depth > 0 ? spec->depth : r->back->info.depth;

	if (sets_window(spec) && r->window > 0)
		depth = r->window;
	knobs[0] = (struct weir_knob){.kind = WEIR_KNOB_WINDOW, .value = depth > 0 ? depth : 32};
	knobs[1] = (struct weir_knob){
		.kind = WEIR_KNOB_WINDOW_BYTES, .value = (double)window_bytes(r, spec)};
	knobs[2] = (struct weir_knob){.kind = WEIR_KNOB_RUN, .value = spec->run};
	knobs[3] =
		(struct weir_knob){.kind = WEIR_KNOB_DISTANCE, .value = (double)spec->run_distance};
	knobs[4] = (struct weir_knob){.kind = WEIR_KNOB_CREDIT, .value = (double)spec->credit};
}

void resource_policy_window(struct resource *r)
{
	struct weir_knob knobs[ROOT_KNOBS];

	if (!r->gate)
		return;
	root_knobs(r, &r->spec, knobs);
	knobs[0].node = knobs[1].node = WEIR_ROOT;
	weir_gate_set(r->gate, resource_policy_now(r), knobs, 2, NULL);
}

static void take_spec(struct resource *r, const struct weir_resource *spec)
{
	r->spec.depth = spec->depth;
	r->spec.depth_bytes = spec->depth_bytes;
	r->spec.controller = spec->controller;
	r->spec.settings = spec->settings; /* of the policy in force */
	r->spec.settings_len = spec->settings_len;
	if (!sets_window(spec))
		r->window = 0;
	memcpy(r->spec.capacity, spec->capacity, sizeof(r->spec.capacity));
	r->spec.capacity_auto = spec->capacity_auto;
	r->spec.run = spec->run;
	r->spec.run_distance = spec->run_distance;
	r->spec.credit = spec->credit;
	r->spec.io_unit = spec->io_unit;
	r->spec.flush_cost = spec->flush_cost;
	r->spec.trim_cost = spec->trim_cost;
	r->spec.stall = spec->stall;
	r->spec.profile = spec->profile; /* of the policy in force */
}

/* ---- clients */

/* Look up a client's name for an export; return false if there is none. */
static bool export_in(const struct weir_policy *p, const char *name, struct weir_export *ret)
{
	int found = policy_index_export(p, name);

	if (found >= 0) {
		*ret = p->exports[found];
		return true;
	}
	for (size_t i = 0; i < p->n_resources && policy_whole(p); i++)
		if (strcmp(p->resources[i].name, name) == 0) {
			*ret = (struct weir_export){.resource = (int)i};
			return true;
		}
	return false;
}

static bool same_back(const struct weir_export *a, const struct weir_export *b)
{
	return a->back && b->back
		       ? strcmp(a->back, b->back) == 0 && policy_file_same(&a->file, &b->file)
		       : a->back == b->back;
}

/* Return true if a connected client may continue with the description of its export that it has. It
 * cannot be told a new size; an export that grew is used with the old size. */
static bool export_stays(
	const struct weir_policy *from, const struct weir_policy *to, const char *name)
{
	struct weir_export a, b;

	if (!from || !export_in(from, name, &a))
		return true; /* served under any name */
	return export_in(to, name, &b) &&
	       strcmp(from->resources[a.resource].name, to->resources[b.resource].name) == 0 &&
	       a.offset == b.offset && a.read_only == b.read_only && same_back(&a, &b) &&
	       (a.size == b.size || b.size == 0 || (a.size && b.size > a.size));
}

static int match(const struct weir_policy *p, const struct client *c)
{
	struct weir_who who = {.export_ = c->export_,
		.client = *c->address ? c->address : NULL,
		.uid = *c->uid ? c->uid : NULL,
		.tls = *c->tls ? c->tls : NULL};

	return weir_policy_match(p, &who);
}

struct busy { /* nodes at which requests wait that move, each once; room for one per client */
	weir_node *nodes;
	size_t n;
};

static void note_busy(struct resource *r, struct busy *b, weir_node node)
{
	if (node == WEIR_ROOT || r->counts[node].marked)
		return;
	r->counts[node].marked = true;
	b->nodes[b->n++] = node;
}

static void forget_busy(struct resource *r, struct busy *b)
{
	for (size_t i = 0; i < b->n; i++)
		r->counts[b->nodes[i]].marked = false;
	free(b->nodes);
}

static void set_node(struct resource *r, struct client *c, struct busy *ret)
{
	weir_node node = policy_swap_node(&r->policy_of->swap, (size_t)c->tenant);

	if (r->shadow || node != c->node)
		note_busy(r, ret, c->node);
	c->node = node;
}

/* Between begin and finish: assign a tenant to each client. */
static void match_clients(struct resource *r, const struct weir_policy *p, struct busy *ret)
{
	struct client *c, *next;

	for (c = r->clients; c; c = next) {
		next = c->next; /* refused removes c from the list, and no other client */
		bool stays = export_stays(r->policy, p, c->export_);

		c->tenant = stays ? match(p, c) : -1;
		if (c->tenant >= 0 && r->gate)
			set_node(r, c, ret);
		else if (c->tenant < 0 && c->refused)
			c->refused(c, stays ? "the policy has no tenant for it any more"
					    : "its export was removed or changed");
	}
}

static bool moves(const struct weir_req *q, void *arg)
{
	const struct resource *r = arg;

	const struct client *c = container_of(q, const struct request, gate)->client;

	/* (Requests of a client that is disconnected stay, and are dropped when it leaves.) */
	return c->tenant >= 0 && (r->shadow || c->node != q->tenant);
}

static void moved(struct weir_req *q, void *arg)
{
	struct resource *r = arg;
	struct request *request = resource_request(q);

	if (r->shadow)
		resource_pass(r, request);
	else
		resource_again(r, request);
}

/* ---- swap */

weir_time resource_policy_now(struct resource *r)
{
	weir_time now = r->started ? loop_now(r->loop) : 0;

	if (now > r->now)
		r->now = now;
	return r->now;
}

static const struct controller *control_in(
	const struct weir_policy *p, const struct weir_resource *spec)
{
	return p->enforce || (spec->controller && spec->controller->in_shadow) ? spec->controller
									       : NULL;
}

/* The host's times, of which the next is the first; and the number of resources with the same topic before this one. */
static struct controller_peers peers_of(
	struct resource *r, const struct weir_policy *p, const struct weir_resource *spec)
{
	const struct resource_peers *from = &r->peers;
	struct controller_peers ret = {.host = from->host,
		.instance = from->instance,
		.period = from->period,
		.first = from->first};
	weir_time now = resource_policy_now(r);

	if (ret.period > 0 && ret.first < now)
		ret.first += (now - ret.first + ret.period - 1) / ret.period * ret.period;
	for (size_t i = 0; p && i < p->n_resources && strcmp(p->resources[i].name, r->name) != 0;
		i++)
		ret.number +=
			p->resources[i].controller == spec->controller &&
			resource_control_topic(&p->resources[i]) == resource_control_topic(spec);
	return ret;
}

/* The version of the policy, as controllers see it. */
struct controller_version resource_policy_version(struct resource *r, bool next)
{
	struct resource_policy *o = r->policy_of;
	const struct resource_part *t = next ? &o->next.part : &o->part;
	const struct weir_resource *spec = next ? o->next.spec : &r->spec;
	const struct weir_policy *p = next ? o->next.change.to : r->policy;
	struct controller_version v = policy_version(p, spec, t->bounds);

	v.next = next;
	v.rules = t->rules;
	if (spec->controller && spec->controller->has_peers)
		v.peers = peers_of(r, p, spec);
	return v;
}

/* Update tenant i's rule in the version, if rules change between swaps. */
static void refresh_rule(struct resource *r, const struct controller *control, bool next, size_t i)
{
	struct controller_version v = resource_policy_version(r, next);

	resource_control_rule(r, control, &v, i);
}

void resource_policy_rule(struct resource *r, size_t i)
{
	refresh_rule(r, r->control, false, i);
}

static void refresh(void *arg, size_t i)
{
	struct resource *r = arg;
	struct resource_policy *o = r->policy_of;

	if (o->swap.stays[i] >= 0)
		refresh_rule(r, r->control, false, (size_t)o->swap.stays[i]);
	refresh_rule(r, o->next.control, true, i);
}

static bool has_rules(const struct controller *c)
{
	return c && c->rule;
}

static int start_gate(struct resource *r, struct weir_err *err)
{
	struct resource_policy *o = r->policy_of;
	struct resource_next *next = &o->next;
	const struct weir_policy *p = next->change.to;
	struct policy_swap_how how = {.from = r->policy,
		.to = p,
		.part = resource_part_all(&next->part),
		.from_part = resource_part_all(&o->part),
		.bounds = next->part.bounds,
		.from_bounds = o->part.bounds,
		.was = next->change.was,
		.refresh = has_rules(r->control) || has_rules(next->control) ? refresh : NULL,
		.refresh_arg = r};
	struct policy_swap *s = &o->swap;
	int rc = policy_swap_start(s, &how, err);

	if (rc < 0)
		return rc;
	/* A gate uses the lowest free numbers first. */
	rc = resource_room(r, 1 + s->n_nodes + s->n_leaving + policy_swap_new(s));
	if (rc == 0 && next->change.estimate)
		rc = resource_estimate_room(r, r->n_counts);
	if (rc < 0) {
		policy_swap_undo(s, r->gate, resource_policy_now(r), 1);
		return no_memory(err);
	}
	return 0;
}

int resource_swap_start(struct resource *r, const struct resource_change *c, struct weir_err *err)
{
	struct resource_policy *o = policy_of(r);
	const struct weir_resource *spec = spec_in(r, c->to);
	struct resource_part part;
	int rc;

	if (r->gate && spec->cost != r->spec.cost)
		return weir_err_at(err, -EINVAL, spec->at,
			"another 'cost' of resource '%s' needs a restart", r->name);
	if (!o)
		return no_memory(err);
	o->next = (struct resource_next){
		.change = *c, .spec = spec, .control = control_in(c->to, spec)};
	if (!r->gate)
		return 0;
	if (o->next.control && resource_control_make(r, o->next.control) < 0)
		return no_memory(err);
	if (resource_part_new(
		    c->to, c->bounds, o->next.control && o->next.control->prepare, &part) < 0)
		return no_memory(err);
	o->next.part = part;
	o->next.part.claims = c->claims;
	rc = start_gate(r, err);
	if (rc < 0) {
		resource_part_free(&o->next.part);
		return rc;
	}
	resource_part_keep(r->policy, c->to, o->swap.stays, &o->part, &o->next.part);
	if (c->rows)
		resource_part_give(c->to, o->swap.stays, c->rows, &o->next.part);
	return 0;
}

/* Return true if there was something to prepare. */
static bool prepare_some(struct resource *r, int *ret_rc)
{
	struct resource_next *next = &r->policy_of->next;
	size_t n = next->change.to->n_tenants, from = next->prepared;
	size_t to = from + STEP < n ? from + STEP : n;
	struct controller_version v = resource_policy_version(r, true);

	if (!next->control || !next->control->prepare || from > n || (from == n && n > 0))
		return false;
	*ret_rc = resource_control_prepare(r, next->control, &v, from, to);
	next->prepared = n ? to : 1; /* an empty policy has one call, too */
	return true;
}

/* Tenant i of the next policy has its knobs, or (back) the tenant whose node it took over has its
 * own again. */
static void hand_tenant(struct resource *r, size_t i, bool back)
{
	struct resource_policy *o = r->policy_of;
	const struct controller *from = back ? o->next.control : r->control;
	const struct controller *to = back ? r->control : o->next.control;
	struct controller_version in_force = resource_policy_version(r, false);
	struct controller_version next = resource_policy_version(r, true);
	bool stays = o->swap.stays[i] >= 0;
	size_t was = stays ? (size_t)o->swap.stays[i] : 0;
	weir_node node = o->swap.next_nodes[i];

	if (back && (!stays || from != to))
		resource_control_leave(r, from, &next, i);
	if (!back && stays && from != to)
		resource_control_leave(r, from, &in_force, was);
	if (!back)
		resource_control_take(r, to, &next, i, node);
	if (back && stays)
		resource_control_take(r, to, &in_force, was, node);
}

int resource_swap_step(struct resource *r, struct weir_err *err)
{
	struct policy_swap *s = &r->policy_of->swap;
	size_t set;
	int rc;

	if (!r->gate)
		return 0;
	if (prepare_some(r, &rc))
		return rc < 0 ? no_memory(err) : 1;
	set = s->set;
	rc = policy_swap_step(s, r->gate, resource_policy_now(r), STEP, err);
	for (; rc >= 0 && set < s->set; set++)
		hand_tenant(r, set, false);
	return rc;
}

bool resource_swap_undo(struct resource *r)
{
	struct resource_policy *o = r->policy_of;
	size_t set = o->swap.set;
	bool more;

	if (!r->gate)
		return false;
	more = policy_swap_undo(&o->swap, r->gate, resource_policy_now(r), STEP);
	while (more && set > o->swap.set)
		hand_tenant(r, --set, true);
	if (!more)
		resource_part_free(&o->next.part);
	return more;
}

/* ---- the last step */

/* Shadows are on nodes of the old tree: replace them. */
static void end_shadows(struct resource *r, bool was, bool is)
{
	if (!was)
		return;
	resource_shadow_off(r);
	if (is)
		resource_shadow_on(r); /* cannot fail: it has its memory since it was first on */
}

/* Run all steps that can still fail. */
static int ready_gate(struct resource *r, struct weir_err *err)
{
	struct resource_policy *o = r->policy_of;
	struct resource_next *next = &o->next;
	const struct weir_policy *p = next->change.to;
	struct weir_knob knobs[ROOT_KNOBS];
	int rc = 0;

	root_knobs(r, next->spec, knobs);
	if (!p->enforce && !r->shadow) {
		rc = resource_shadow_on(r);
		next->shadow_on = rc == 0;
	}
	if (rc < 0)
		no_memory(err);
	if (rc == 0)
		rc = weir_gate_set(r->gate, resource_policy_now(r), knobs, ROOT_KNOBS, err);
	if (rc < 0 && next->shadow_on)
		resource_shadow_off(r);
	return rc;
}

static int finish_gate(struct resource *r, struct weir_err *err)
{
	struct resource_policy *o = r->policy_of;
	struct resource_next *next = &o->next;
	const struct weir_policy *p = next->change.to;
	struct controller_version v;
	bool was_shadow = r->shadow;
	struct busy busy = {.nodes = calloc((size_t)r->n_clients + 1, sizeof(*busy.nodes))};
	int rc = busy.nodes ? ready_gate(r, err) : no_memory(err);

	if (rc < 0) {
		free(busy.nodes);
		return rc;
	}
	end_shadows(r, was_shadow, !p->enforce);
	resource_joint_clear(r); /* of the old nodes */
	resource_drop_left(r);
	resource_retire(r, o->swap.stays, o->swap.n_next);
	match_clients(r, p, &busy);
	policy_swap_finish(&o->swap, r->gate, r->now, busy.nodes, busy.n, moves, moved, r);
	forget_busy(r, &busy);
	resource_part_free(&o->part);
	o->part = next->part;
	next->part = (struct resource_part){0};
	take_spec(r, next->spec);
	resource_estimate_swap(r, next->change.estimate);
	r->policy = p;
	r->nodes = o->swap.nodes;
	r->n_nodes = o->swap.n_nodes;
	resource_slo_swap(r);
	resource_claims_swap(r);
	resource_loads_free(r);
	v = resource_policy_version(r, false);
	resource_control_switch(r, next->control, &v);
	o->sweep.due = sweep_due;
	o->sweep_after = SWEEP_FIRST;
	sweep(o, r->now);
	return 0;
}

int resource_swap_finish(struct resource *r, struct weir_err *err)
{
	const struct weir_policy *p = r->policy_of->next.change.to;

	if (r->gate)
		return finish_gate(r, err);
	match_clients(r, p, NULL);
	take_spec(r, spec_in(r, p));
	r->policy = p;
	return 0;
}

int resource_swap_all(struct resource *r, const struct resource_change *c, struct weir_err *err)
{
	int rc = resource_swap_start(r, c, err);

	if (rc < 0)
		return rc;
	while ((rc = resource_swap_step(r, err)) > 0)
		;
	if (rc == 0)
		rc = resource_swap_finish(r, err);
	while (rc < 0 && resource_swap_undo(r))
		;
	return rc;
}

int resource_swap(struct resource *r, const struct weir_policy *p, struct weir_err *err)
{
	return resource_swap_all(r, &(struct resource_change){.to = p}, err);
}
