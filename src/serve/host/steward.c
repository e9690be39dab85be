/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/host/steward.h"
#include "serve/loop/log.h"
#include "serve/host/steward-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Weights are whole numbers to the law: 1024 keeps ten binary digits of a fractional one. */
#define WEIGHT_UNIT 1024.0
/* While nobody asks for anything a step finds nothing but whom to forget. */
#define IDLE   (10 * WEIR_SEC)
#define SWEEP  256 /* names that a step looks at */
#define NEWEST 0.1 /* of the time of a step: a second of them */

/* ---- a step */

/* Nobody had tokens, and nothing came or went since. */
static bool is_idle(const struct steward *s, weir_time now)
{
	struct adaptbf_state state;

	adaptbf_state(s->adaptbf, &state);
	return state.active == 0 && state.steps > 0 && now - s->stepped < IDLE &&
	       resource_activity(s->resource) == s->activity;
}

/* Of this thread's own: that others run meanwhile is no cost of a step. */
static weir_time cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

static bool is_kept(uint64_t id, void *arg)
{
	const struct steward *s = arg;
	struct adaptbf_account ignored;

	return adaptbf_gate_has(s->driver, id) || adaptbf_account(s->adaptbf, id, &ignored) == 0;
}

/* Some of the names of neither a tenant nor a job that is remembered. A plan has names of its own. */
static void sweep_names(struct steward *s)
{
	if (s->driver && !s->plan.ids)
		jobnames_sweep(&s->names, SWEEP, is_kept, s);
}

void steward_step(struct steward *s, weir_time now)
{
	weir_time begin = cpu_clock();
	double took;
	int rc;

	s->activity = resource_activity(s->resource);
	s->stepped = now;
	rc = adaptbf_step(s->adaptbf, now, &adaptbf_gate_ops, s->driver);
	took = (double)(cpu_clock() - begin);
	s->took += (took - s->took) * (s->took > 0 ? NEWEST : 1);
	sweep_names(s);
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "adaptbf", "resource", s->resource->name, "why",
			strerror(-rc), NULL);
}

static void due(struct loop_timer *t, weir_time now)
{
	struct steward *s = container_of(t, struct steward, timer);

	if (!is_idle(s, now))
		steward_step(s, resource_policy_now(s->resource));
	/* A thread that is late does not make up for it: rates hold on meanwhile. */
	s->due += s->config.period;
	if (s->due < now + s->config.period / 2)
		s->due = now + s->config.period;
	loop_set(s->resource->loop, &s->timer, s->due);
}

/* ---- before a swap */

static void plan_free(struct steward_plan *p)
{
	adaptbf_gate_free(p->driver);
	free(p->ids);
	free(p->shares);
	free(p->leaves);
	*p = (struct steward_plan){0};
}

int steward_make(struct resource *r)
{
	/* Until a policy says otherwise. */
	struct adaptbf_config config = {.rate = 1000, .learn = true};
	struct steward *s;
	int rc;

	if (r->steward)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	rc = adaptbf_new(&config, &s->adaptbf);
	if (rc < 0) {
		free(s);
		return rc;
	}
	s->resource = r;
	s->timer.due = due;
	s->learns = true;
	r->steward = s;
	return 0;
}

static double mean_cost(void *arg, weir_node node)
{
	const struct resource *r = arg;
	const struct resource_count *n = &r->counts[node];
	uint64_t requests = n->reads + n->writes + n->others;

	return requests ? (double)n->cost / (double)requests : 1;
}

static int plan_driver(struct steward *s, const struct weir_policy_adaptbf *to)
{
	int rc;

	if (s->driver && s->config.hold == to->hold && s->config.depth == to->depth &&
		s->config.unit == to->unit)
		return 0;
	rc = adaptbf_gate_new(s->resource->gate, to->hold ? ADAPTBF_GATE_HOLD : ADAPTBF_GATE_FIRST,
		to->depth, &s->plan.driver);
	if (rc < 0)
		return rc;
	adaptbf_gate_unit(s->plan.driver, to->unit);
	adaptbf_gate_cost(s->plan.driver, mean_cost, s->resource);
	if (to->depth <= 0)
		adaptbf_gate_span(s->plan.driver, ADAPTBF_GATE_SPAN);
	return 0;
}

static int plan_begin(struct resource *r, const struct control_version *v)
{
	size_t n = v->policy->n_tenants;
	double *of_parent = calloc(n + 1, sizeof(*of_parent));
	struct steward_plan *plan;
	int rc = of_parent ? steward_make(r) : -ENOMEM;

	if (rc < 0) {
		free(of_parent);
		return rc;
	}
	plan = &r->steward->plan;
	plan_free(plan);
	plan->n_ids = n;
	plan->ids = calloc(n + 1, sizeof(*plan->ids));
	plan->shares = calloc(n + 1, sizeof(*plan->shares));
	plan->leaves = calloc(n + 1, sizeof(*plan->leaves));
	rc = plan->ids && plan->shares && plan->leaves ? 0 : -ENOMEM;
	if (rc == 0)
		weir_policy_share(v->policy, of_parent, plan->shares);
	if (rc == 0 && n > 0) /* the first is no child */
		plan->top = v->policy->tenants[0].weight / of_parent[0];
	free(of_parent);
	return rc == 0 ? plan_driver(r->steward, &v->spec->adaptbf) : rc;
}

static int plan_tenant(struct steward *s, const struct weir_policy *p, size_t i)
{
	struct steward_plan *plan = &s->plan;
	const struct weir_tenant *t = &p->tenants[i];
	double weight = rint(plan->shares[i] * plan->top * WEIGHT_UNIT);

	if (t->first_child >= 0)
		return 0;
	plan->ids[i] = jobnames_add(&s->names, t->path);
	if (!plan->ids[i])
		return -ENOMEM;
	plan->leaves[plan->n_leaves++] = (struct adaptbf_gate_leaf){.node = (weir_node)i,
		.id = plan->ids[i],
		.weight = (uint32_t)fmin(fmax(weight, 1), UINT32_MAX),
		.share = t->weight};
	return 0;
}

static int steward_prepare(
	struct resource *r, const struct control_version *v, size_t from, size_t to)
{
	int rc = from == 0 ? plan_begin(r, v) : 0;
	struct steward *s = r->steward;

	for (size_t i = from; rc == 0 && i < to; i++)
		rc = plan_tenant(s, v->policy, i);
	if (rc == 0 && to == v->policy->n_tenants)
		rc = adaptbf_gate_reserve(
			s->plan.driver ? s->plan.driver : s->driver, s->plan.n_leaves, s->names.n);
	if (rc < 0 && s)
		plan_free(&s->plan);
	return rc;
}

/* ---- tenant by tenant */

static uint64_t id_of(const struct steward *s, const struct control_version *v, size_t i)
{
	return v->next ? s->plan.ids[i] : s->ids[i];
}

/* A driver that the next version will not have lets go of the tenants that have that one's knobs. */
static void steward_take(
	struct resource *r, const struct control_version *v, size_t i, weir_node node)
{
	const struct steward *s = r->steward;
	bool goes = v->next && s->plan.driver;

	if (s->driver)
		adaptbf_gate_share(
			s->driver, id_of(s, v, i), goes ? 0 : v->policy->tenants[i].weight);
}

static void steward_leave(struct resource *r, const struct control_version *v, size_t i)
{
	const struct steward *s = r->steward;

	if (s->driver)
		adaptbf_gate_share(s->driver, id_of(s, v, i), 0);
}

static void steward_rule(
	struct resource *r, const struct control_version *v, size_t i, struct policy_rule *ret)
{
	const struct steward *s = r->steward;

	*ret = (struct policy_rule){.scale = 1};
	if (s->driver && !(v->next && s->plan.driver))
		adaptbf_gate_rule(s->driver, id_of(s, v, i), &ret->bucket, &ret->scale);
}

/* ---- after it */

static void take_leaves(struct steward *s)
{
	struct steward_plan *plan = &s->plan;

	for (size_t i = 0; i < plan->n_leaves; i++) /* .node was the tenant */
		plan->leaves[i].node = s->resource->nodes[plan->leaves[i].node];
	adaptbf_gate_leaves(s->driver, plan->leaves, plan->n_leaves); /* has its room */
}

void steward_configure(struct steward *s, const struct weir_resource *spec)
{
	enum weir_unit unit = spec->adaptbf.unit;
	double stated = spec->capacity[unit].per_second / adaptbf_token_size(unit);
	double seen = s->resource->capacity.rate[unit] / adaptbf_token_size(unit);
	struct adaptbf_config config = {.period = spec->adaptbf.period,
		.rate = stated > 0 ? stated : spec->adaptbf.guess,
		.learn = stated <= 0,
		.hold = spec->adaptbf.hold,
		.headroom = spec->adaptbf.headroom,
		.forget = spec->adaptbf.forget,
		.debt = {spec->adaptbf.debt_floor, spec->adaptbf.debt_half_life}};
	struct adaptbf_state state;

	/* The first time, or in another unit: what the resource was seen to do is better than a guess. */
	adaptbf_state(s->adaptbf, &state);
	if (config.learn && s->learns &&
		(unit != s->unit || (state.steps == 0 && state.known == 0)))
		adaptbf_set_rate(s->adaptbf, seen > 0 ? seen : config.rate);
	s->unit = unit;
	adaptbf_configure(s->adaptbf, &config); /* the policy's checks have seen to it */
	s->learns = config.learn;
	s->config = spec->adaptbf;
}

static void steward_begin(struct resource *r, const struct weir_resource *spec)
{
	struct steward *s = r->steward;

	if (s->plan.driver) {
		if (s->driver)
			adaptbf_rest(s->adaptbf); /* the next one counts from 0 */
		adaptbf_gate_free(s->driver);
		s->driver = s->plan.driver;
		s->plan.driver = NULL;
	}
	take_leaves(s);
	free(s->ids);
	s->ids = s->plan.ids;
	s->n_ids = s->plan.n_ids;
	s->plan.ids = NULL;
	plan_free(&s->plan);
	steward_configure(s, spec);
	if (s->timer.set || !r->started)
		return;
	s->due = resource_policy_now(r) + s->config.period;
	loop_set(r->loop, &s->timer, s->due);
}

static void steward_end(struct resource *r)
{
	struct steward *s = r->steward;

	if (s->timer.set)
		loop_set(r->loop, &s->timer, WEIR_NEVER);
	adaptbf_rest(s->adaptbf);
	adaptbf_gate_free(s->driver); /* the swap has taken its rules from the gate */
	s->driver = NULL;
	free(s->ids);
	s->ids = NULL;
	s->n_ids = 0;
}

static void steward_free(struct resource *r)
{
	struct steward *s = r->steward;

	if (!s)
		return;
	if (s->timer.set)
		loop_set(r->loop, &s->timer, WEIR_NEVER);
	plan_free(&s->plan);
	adaptbf_gate_free(s->driver);
	adaptbf_free(s->adaptbf);
	jobnames_free(&s->names);
	free(s->ids);
	free(s);
	r->steward = NULL;
}

const struct control_ops steward_ops = {
	.name = "adaptbf",
	.prepare = steward_prepare,
	.take = steward_take,
	.leave = steward_leave,
	.begin = steward_begin,
	.end = steward_end,
	.look = steward_look,
	.rule = steward_rule,
	.free = steward_free,
};
