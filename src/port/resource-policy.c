/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource-policy: the tree in the gate: put there, swapped.
 *
 * METHOD  A swap first does what can fail: room, shadow mode, then policy_swap_begin. After that every
 *         client is matched anew: who is nobody's now, or whose export is no longer what it was, is
 *         cut off; the waiting requests of the others follow their client to its node, in order
 *         (resource_again), or straight on when the new policy is not enforced (resource_pass).
 *         Nodes that are left behind go when their last request is done: looked at again after 10 ms,
 *         then ever more rarely.
 */
#include "port/resource-impl.h"
#include "ctl/policy-index.h"
#include "ctl/policy-swap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_FIRST (10 * WEIR_MS) /* most requests take less */
#define SWEEP_LAST  WEIR_SEC       /* an upstream may be away for minutes */

/* ---- what a version needs */

static void part_free(struct resource_part *t)
{
	free(t->bounds);
	free(t->first);
	free(t->rows);
	free(t->rules);
	free(t->seen);
	*t = (struct resource_part){0};
}

static int part_new(const struct weir_policy *p, struct resource_part *ret)
{
	size_t n = p->n_tenants + 1;
	struct resource_part t = {
		.bounds = calloc(n, sizeof(*t.bounds)),
		.rules = calloc(n, sizeof(*t.rules)),
		.seen = calloc(n, sizeof(*t.seen)),
	};

	if (t.bounds && weir_policy_bounds(p, t.bounds) == 0)
		t.first = policy_install_first(p, t.bounds);
	if (t.first)
		t.rows = calloc((size_t)t.first[p->n_tenants] + 1, sizeof(*t.rows));
	if (!t.rows || !t.rules || !t.seen) {
		part_free(&t);
		return -ENOMEM;
	}
	for (uint32_t k = 0; k < t.first[p->n_tenants]; k++)
		t.rows[k] = 1;
	for (size_t i = 0; i < p->n_tenants; i++)
		t.rules[i].scale = 1;
	*ret = t;
	return 0;
}

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
	part_free(&o->part);
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

	if (policy_swap_sweep(&o->swap, r->gate, gone, r) == 0 || !r->started)
		return;
	if (loop_set(r->loop, &o->sweep, now + o->sweep_after) == 0 && o->sweep_after < SWEEP_LAST)
		o->sweep_after *= 2;
}

static void sweep_due(struct loop_timer *t, weir_time now)
{
	sweep((struct resource_policy *)(void *)((char *)t -
						 offsetof(struct resource_policy, sweep)),
		now);
}

/* ---- the resource's own keys */

static const struct weir_resource *spec_in(const struct resource *r, const struct weir_policy *p)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, r->name) == 0)
			return &p->resources[i];
	return &r->spec; /* the policy of a part, or of a test: as before */
}

enum { ROOT_KNOBS = 4 };
static void root_knobs(
	const struct resource *r, const struct weir_resource *spec, struct weir_knob *knobs)
{
	double depth = spec->depth > 0 ? spec->depth : r->back->info.depth;

	if (control_table[spec->controller]->window && r->window > 0)
		depth = r->window;
	knobs[0] = (struct weir_knob){.kind = WEIR_KNOB_WINDOW, .value = depth > 0 ? depth : 32};
	knobs[1] = (struct weir_knob){.kind = WEIR_KNOB_RUN, .value = spec->run};
	knobs[2] =
		(struct weir_knob){.kind = WEIR_KNOB_DISTANCE, .value = (double)spec->run_distance};
	knobs[3] = (struct weir_knob){.kind = WEIR_KNOB_CREDIT, .value = (double)spec->credit};
}

void resource_policy_window(struct resource *r)
{
	struct weir_knob knobs[ROOT_KNOBS];

	if (!r->gate)
		return;
	root_knobs(r, &r->spec, knobs);
	knobs[0].node = WEIR_ROOT;
	weir_gate_set(r->gate, resource_policy_now(r), knobs, 1, NULL);
}

static void take_spec(struct resource *r, const struct weir_resource *spec)
{
	r->spec.depth = spec->depth;
	r->spec.controller = spec->controller;
	r->spec.adaptbf = spec->adaptbf;
	if (!control_table[spec->controller]->window)
		r->window = 0;
	memcpy(r->spec.capacity, spec->capacity, sizeof(r->spec.capacity));
	r->spec.capacity_auto = spec->capacity_auto;
	r->spec.run = spec->run;
	r->spec.run_distance = spec->run_distance;
	r->spec.credit = spec->credit;
	r->spec.io_unit = spec->io_unit;
	r->spec.flush_cost = spec->flush_cost;
	r->spec.trim_cost = spec->trim_cost;
}

/* ---- clients */

/* What a client's name for an export leads to; false: nothing by that name. */
static bool export_in(const struct weir_policy *p, const char *name, struct weir_export *ret)
{
	int found = policy_index_export(p, name);

	if (found >= 0) {
		*ret = p->exports[found];
		return true;
	}
	for (size_t i = 0; !p->n_exports && i < p->n_resources; i++)
		if (strcmp(p->resources[i].name, name) == 0) {
			*ret = (struct weir_export){.resource = (int)i};
			return true;
		}
	return false;
}

/* Whether a connected client may go on with what it was told about its export. It cannot be told of
 * a new size; one that grew is used as it was. */
static bool export_stays(
	const struct weir_policy *from, const struct weir_policy *to, const char *name)
{
	struct weir_export a, b;

	if (!from || !export_in(from, name, &a))
		return true; /* served under any name */
	return export_in(to, name, &b) &&
	       strcmp(from->resources[a.resource].name, to->resources[b.resource].name) == 0 &&
	       a.offset == b.offset && a.read_only == b.read_only &&
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

/* Between begin and finish: whose each client is from now on. */
static void match_clients(struct resource *r, const struct weir_policy *p)
{
	const struct resource_policy *o = r->policy_of;
	struct client *c, *next;

	for (c = r->clients; c; c = next) {
		next = c->next; /* refused takes c from the list, and nobody else */
		c->tenant = export_stays(r->policy, p, c->export_) ? match(p, c) : -1;
		if (c->tenant >= 0 && r->gate)
			c->node = policy_swap_node(&o->swap, (size_t)c->tenant);
		else if (c->tenant < 0 && c->refused)
			c->refused(c);
	}
}

static bool moves(const struct weir_req *q, void *arg)
{
	const struct resource *r = arg;

	return r->shadow || ((const struct request *)(const void *)q)->client->node != q->tenant;
}

static void moved(struct weir_req *q, void *arg)
{
	struct resource *r = arg;
	struct request *request = resource_request(q);

	/* One that is cut off and has not left yet has no node: what it asked for before is done. */
	if (r->shadow || request->client->tenant < 0)
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

/* Limits that a tenant had before keep their parts. */
static void keep_rows(const struct weir_tenant *from, const struct weir_tenant *to,
	const struct resource_part *old, size_t was, struct resource_part *part, size_t is)
{
	uint8_t slots[POLICY_ROWS], before[POLICY_ROWS];
	unsigned n = policy_install_rows(to, &part->bounds[is], slots);
	unsigned m = policy_install_rows(from, &old->bounds[was], before);

	for (unsigned k = 0; k < n; k++)
		for (unsigned l = 0; l < m; l++)
			if (slots[k] == before[l])
				part->rows[part->first[is] + k] = old->rows[old->first[was] + l];
}

/* A tenant that stays keeps its parts until told otherwise. Most stand where they stood. */
static void keep_parts(const struct weir_policy *from, const struct weir_policy *to,
	const struct resource_part *old, struct resource_part *part)
{
	for (size_t i = 0; from && old->rows && i < to->n_tenants; i++) {
		const char *path = to->tenants[i].path;
		int was = i < from->n_tenants && strcmp(from->tenants[i].path, path) == 0
				  ? (int)i
				  : weir_policy_find(from, path);

		if (was < 0)
			continue;
		keep_rows(&from->tenants[was], &to->tenants[i], old, (size_t)was, part, i);
		part->seen[i] = old->seen[was];
	}
}

static int begin(struct resource *r, const struct weir_policy *p, const struct weir_resource *spec,
	const struct resource_part *part, struct weir_err *err)
{
	struct resource_policy *o = r->policy_of;
	struct weir_knob knobs[ROOT_KNOBS];
	struct policy_swap_how how = {.from = r->policy,
		.to = p,
		.part = {part->first, part->rows, part->rules},
		.more = knobs,
		.n_more = ROOT_KNOBS};
	/* A gate uses the lowest free numbers first. */
	size_t nodes = 1 + o->swap.n_nodes + o->swap.n_leaving + p->n_tenants;
	bool on = !p->enforce && !r->shadow;
	int rc = resource_room(r, nodes);

	root_knobs(r, spec, knobs);
	if (rc == 0 && on)
		rc = resource_shadow_on(r);
	if (rc < 0)
		return weir_err_set(err, rc, "out of memory");
	rc = policy_swap_begin(&o->swap, &how, r->gate, resource_policy_now(r), err);
	if (rc < 0 && on)
		resource_shadow_off(r);
	return rc;
}

/* Shadows stand on nodes of the old tree: they go, and new ones come. */
static void end_shadows(struct resource *r, bool was, bool is)
{
	if (!was)
		return;
	resource_shadow_off(r);
	if (is)
		resource_shadow_on(r); /* has its memory since it was on first */
}

/* Whose turn it is from now on; its rules are in the gate. */
static void hand_over(
	struct resource *r, const struct control_ops *next, const struct weir_resource *spec)
{
	if (next != r->control && r->control->end)
		r->control->end(r);
	r->control = next;
	if (next->begin)
		next->begin(r, spec);
}

static int swap_gate(struct resource *r, const struct weir_policy *p, struct weir_err *err)
{
	struct resource_policy *o = policy_of(r);
	const struct weir_resource *spec = spec_in(r, p);
	const struct control_ops *control =
		control_table[p->enforce ? spec->controller : WEIR_CONTROLLER_NONE];
	bool was_shadow = r->shadow;
	struct resource_part part;
	int rc = 0;

	if (spec->cost != r->spec.cost)
		return weir_err_at(err, -EINVAL, spec->at,
			"resource '%s' is shared by another cost: it takes a restart", r->name);
	if (!o || part_new(p, &part) < 0)
		return weir_err_set(err, -ENOMEM, "out of memory");
	keep_parts(r->policy, p, &o->part, &part);
	if (control->prepare)
		rc = control->prepare(r, p, spec, part.rules);
	rc = rc < 0 ? weir_err_set(err, rc, "out of memory") : begin(r, p, spec, &part, err);
	if (rc < 0) {
		part_free(&part);
		return rc;
	}
	end_shadows(r, was_shadow, !p->enforce);
	match_clients(r, p);
	policy_swap_finish(&o->swap, r->gate, r->now, moves, moved, r);
	part_free(&o->part);
	o->part = part;
	take_spec(r, spec);
	r->policy = p;
	r->nodes = o->swap.nodes;
	r->n_nodes = o->swap.n_nodes;
	resource_slo_swap(r);
	hand_over(r, control, spec);
	o->sweep.due = sweep_due;
	o->sweep_after = SWEEP_FIRST;
	sweep(o, r->now);
	return 0;
}

int resource_swap(struct resource *r, const struct weir_policy *p, struct weir_err *err)
{
	if (r->gate)
		return swap_gate(r, p, err);
	match_clients(r, p);
	take_spec(r, spec_in(r, p));
	r->policy = p;
	return 0;
}
