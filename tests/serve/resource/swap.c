/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap: from any controller to any other, with busy clients and controllers that step between the
 * steps of the swap: no step, including the last one, sets more than a bounded number of knobs, for
 * any number of tenants; nor do the parts of limits that several resources share, which come with the policy. Afterwards, and after a swap that was undone, every node has the values of
 * the policy and the controller.
 */
#include "control/adaptbf/controller.h"
#include "control/pshift/gate.h"
#include "serve/resource/impl.h"
#include "serve/resource-rig.h"
#include <math.h>

enum { TENANTS = 700, STEP = 256, KINDS = 5, CLIENTS = 5, PER_TENANT = 4 };

/* ---- knobs are counted on their way into the gate */

static size_t n_knobs;

int __real_weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs,
	size_t n, struct weir_err *err);
int __wrap_weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs,
	size_t n, struct weir_err *err);
int __wrap_weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs,
	size_t n, struct weir_err *err)
{
	int rc = __real_weir_gate_set(g, now, knobs, n, err);

	n_knobs += n;
	CHECK_INT(rc, 0); /* no knob may be refused */
	return rc;
}

/* ---- policies */

static const char *const kinds[KINDS] = {
	"controller: none",
	"controller: adaptbf",
	"controller: adaptbf, adaptbf: {tokens: hold}",
	"controller: tbf, tbf: {depth: 3, default: 50 iops, rules: [{match: t1, rate: 100 iops}]}",
	"controller: pshift",
};
enum { NONE, FIRST, HOLD, TBF, PSHIFT };

/* Make a policy. t0 … t4 are in all of them; `from` chooses the others. */
static struct weir_policy *policy(int kind, unsigned from, unsigned rate)
{
	char *text = malloc(120 * TENANTS + 1000);
	size_t n = 0;
	struct weir_policy *p;

	if (kind == PSHIFT)
		n += (size_t)sprintf(text + n, "cluster: {key: k, controller: \"tcp:c:1\", "
					       "servers: [s], period: 100ms}\n");
	n += (size_t)sprintf(text + n,
		"resources: [{name: s, depth: 16, capacity: 1k iops, %s}]\ntenants:\n",
		kinds[kind]);
	for (unsigned i = 0; i < TENANTS; i++) {
		unsigned name = i < CLIENTS ? i : from + i;

		n += (size_t)sprintf(text + n, "  - {name: t%u, weight: %u, match: {export: t%u}",
			name, 1 + (name + rate) % 7, name);
		/* some have no limit, others than before */
		n += (size_t)sprintf(
			text + n, (name + rate) % 3 ? ", max: %u iops}\n" : "}\n", rate + name % 5);
	}
	p = parse(text);
	free(text);
	return p;
}

/* ---- expected values of a node */

static bool alike(const struct weir_bucket_spec *a, const struct weir_bucket_spec *b)
{
	return a->kind == b->kind && a->unit == b->unit &&
	       (a->ops ? a->ops : WEIR_OPS_ALL) == (b->ops ? b->ops : WEIR_OPS_ALL) &&
	       fabs(a->rate - b->rate) <= 1e-6 * b->rate + 1e-6 &&
	       fabs(a->size - ceil(b->size)) <= 1;
}

static void check_tenant(struct world *w, size_t i)
{
	struct resource *r = w->resource;
	struct resource_part *t = &r->policy_of->part;
	struct weir_bucket_spec want[POLICY_BUCKETS], have[64];
	struct policy_part part = resource_part_all(t);
	int n = weir_gate_get_buckets(r->gate, w->now, r->nodes[i], have, NULL, 64), m;
	double weight;

	resource_policy_rule(r, i);
	m = (int)policy_install_buckets_part(r->policy, i, &t->bounds[i], part, want);
	CHECK_INT(n, m);
	for (int k = 0; k < n; k++)
		if (!alike(&have[k], &want[k]))
			FAIL("%s: bucket %d is %g of %g, and not %g of %g",
				r->policy->tenants[i].path, k, have[k].rate, have[k].size,
				want[k].rate, want[k].size);
	CHECK_INT(weir_gate_get(r->gate, r->nodes[i], WEIR_KNOB_WEIGHT, &weight), 0);
	CHECK_NEAR(weight, policy_install_weight(r->policy, i, part), 1e-6);
}

static void check_all(struct world *w)
{
	CHECK_INT(w->resource->n_nodes, TENANTS);
	for (size_t i = 0; i < TENANTS; i++)
		check_tenant(w, i);
}

/* ---- a swap */

/* Let the clients and the controller run. */
static void others(struct world *w)
{
	struct resource *r = w->resource;

	run_world(w, 10 * WEIR_MS);
	r->now = w->now;
	if (r->control == &adaptbf_controller)
		adaptbf_control_step(resource_control_instance(r, r->control), w->now);
	if (r->control == &pshift_controller)
		pshift_gate_look(resource_control_instance(r, r->control), w->now);
}

static int counted(struct world *w, int (*fn)(struct resource *, struct weir_err *), size_t most)
{
	struct weir_err err;
	int rc;

	n_knobs = 0;
	rc = fn(w->resource, &err);
	if (rc < 0)
		FAIL("%s", err.text);
	if (n_knobs > most)
		FAIL("%zu knobs at once", n_knobs);
	return rc;
}

/* undo_after: undo after so many steps; 0: never. */
static void swap(struct world *w, struct weir_policy *to, unsigned undo_after)
{
	struct weir_err err;
	unsigned steps = 0;

	if (resource_swap_start(w->resource, &(struct resource_change){.to = to}, &err) < 0)
		FAIL("%s", err.text);
	for (; counted(w, resource_swap_step, PER_TENANT * STEP) > 0; others(w))
		if (++steps == undo_after)
			break;
	if (undo_after && steps == undo_after) {
		while (resource_swap_undo(w->resource))
			others(w);
		weir_policy_free(to);
		check_all(w);
		return;
	}
	CHECK(steps <= 4 * (TENANTS / STEP + 2));
	counted(w, resource_swap_finish, 64);
	weir_policy_free(w->policy);
	w->policy = to;
	check_all(w);
}

/* Run until every client is served; under pShift after a while, in which the server waits out
 * the grants of others. */
static void settle(struct world *w, const struct asker *a)
{
	uint64_t before[CLIENTS];

	others(w); /* requests inside are done */
	for (int i = 0; i < CLIENTS; i++)
		before[i] = a[i].done;
	for (int i = 0; i < 20; i++)
		others(w);
	for (int i = 0, rounds = 0; i < CLIENTS; i++)
		for (; a[i].done == before[i]; others(w))
			if (++rounds == 500)
				FAIL("%s waits for ever", a[i].client.export_);
	check_all(w);
}

static void start(struct world *w, struct asker *a, struct weir_policy *p)
{
	char export_[8];

	memset(w, 0, sizeof(*w));
	w->policy = p;
	world_open(w, false);
	for (unsigned i = 0; i < CLIENTS; i++) {
		sprintf(export_, "t%u", i);
		join(w, &a[i], export_, 4);
	}
}

static void from_any_to_any(void)
{
	static struct asker askers[CLIENTS];
	struct world w;

	for (int from = 0; from < KINDS; from++)
		for (int to = 0; to < KINDS; to++) {
			start(&w, askers, policy(from, 0, 100));
			settle(&w, askers);
			swap(&w, policy(to, TENANTS / 2, 201), 0);
			settle(&w, askers);
			/* and one more, which is undone after some steps */
			for (unsigned undo = 1; undo < 12; undo += from == to ? 1 : 4) {
				swap(&w, policy(from, TENANTS, 310), undo);
				if (w.resource->policy != w.policy)
					FAIL("the policy is not what it was");
				settle(&w, askers);
			}
			for (int i = 0; i < CLIENTS; i++) {
				askers[i].again = false;
				resource_leave(w.resource, &askers[i].client);
			}
			run_world(&w, WEIR_SEC);
			world_free(&w);
		}
}

/* One of two resources: the parts of the next policy are set in its steps, and nothing is left to do at once. */
static void parts_in_steps(void)
{
	static struct asker askers[CLIENTS];
	static double rows[TENANTS];
	struct weir_policy *to = policy(NONE, TENANTS / 2, 201);
	struct resource_change c = {.to = to, .rows = rows};
	struct weir_err err;
	struct world w;
	size_t n;

	for (size_t i = 0; i < TENANTS; i++)
		rows[i] = i % 2 ? 0.5 : 0.25;
	start(&w, askers, policy(NONE, 0, 100));
	CHECK_INT(resource_swap_start(w.resource, &c, &err), 0);
	while (counted(&w, resource_swap_step, PER_TENANT * STEP) > 0)
		others(&w);
	counted(&w, resource_swap_finish, 64);
	weir_policy_free(w.policy);
	w.policy = to;
	n = w.resource->policy_of->part.first[TENANTS];
	CHECK(n > TENANTS / 2);
	CHECK(memcmp(w.resource->policy_of->part.rows, rows, n * sizeof(*rows)) == 0);
	check_all(&w);
	n_knobs = 0;
	CHECK_INT(resource_divide(w.resource, rows, NULL, NULL, n, &err), 0);
	CHECK_INT(n_knobs, 0);
	for (int i = 0; i < CLIENTS; i++) {
		askers[i].again = false;
		resource_leave(w.resource, &askers[i].client);
	}
	run_world(&w, WEIR_SEC);
	world_free(&w);
}

int main(void)
{
	RUN(from_any_to_any);
	RUN(parts_in_steps);
	return 0;
}
