/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/steward.h"
#include "port/log.h"
#include "port/steward-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Weights are whole numbers to the law: 1024 keeps ten binary digits of a fractional one. */
#define WEIGHT_UNIT 1024.0
/* While nobody asks for anything a step finds nothing but whom to forget. */
#define IDLE   (10 * WEIR_SEC)
#define SPAN   0.02 /* s: for how long a thread of a busy machine is kept from running at times */
#define NEWEST 0.1  /* of the time of a step: a second of them */

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
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "adaptbf", "resource", s->resource->name, "why",
			strerror(-rc), NULL);
}

static void due(struct loop_timer *t, weir_time now)
{
	struct steward *s = (struct steward *)(void *)((char *)t - offsetof(struct steward, timer));

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
	free(p->leaves);
	free(p->own);
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

	if (s->driver && s->config.hold == to->hold && s->config.depth == to->depth)
		return 0;
	rc = adaptbf_gate_new(s->resource->gate, to->hold ? ADAPTBF_GATE_HOLD : ADAPTBF_GATE_FIRST,
		to->depth, &s->plan.driver);
	if (rc < 0)
		return rc;
	adaptbf_gate_cost(s->plan.driver, mean_cost, s->resource);
	if (to->depth <= 0)
		adaptbf_gate_span(s->plan.driver, SPAN);
	return 0;
}

/* Two buckets for a max with a burst, one for each of min. */
static size_t own_most(const struct weir_tenant *t)
{
	return 2 * (size_t)t->n_max + WEIR_LIMITS;
}

static int plan_jobs(struct steward *s, const struct weir_policy *p)
{
	struct steward_plan *plan = &s->plan;
	size_t leaves = 0, own = 0;

	plan->ids = calloc(p->n_tenants + 1, sizeof(*plan->ids));
	if (!plan->ids)
		return -ENOMEM;
	plan->n_ids = p->n_tenants;
	for (size_t i = 0; i < p->n_tenants; i++) {
		if (p->tenants[i].first_child >= 0)
			continue;
		plan->ids[i] = jobnames_add(&s->names, p->tenants[i].path);
		if (!plan->ids[i])
			return -ENOMEM;
		leaves++;
		own += own_most(&p->tenants[i]);
	}
	plan->leaves = calloc(leaves + 1, sizeof(*plan->leaves));
	plan->own = calloc(own + 1, sizeof(*plan->own));
	if (!plan->leaves || !plan->own)
		return -ENOMEM;
	return adaptbf_gate_reserve(plan->driver ? plan->driver : s->driver, leaves, own);
}

static int steward_prepare(struct resource *r, const struct weir_policy *p,
	const struct weir_resource *spec, struct policy_rule *ret_rules)
{
	struct steward *s;
	int rc = steward_make(r);

	if (rc < 0)
		return rc;
	s = r->steward;
	plan_free(&s->plan);
	rc = plan_driver(s, &spec->adaptbf);
	if (rc == 0)
		rc = plan_jobs(s, p);
	if (rc < 0) {
		plan_free(&s->plan);
		return rc;
	}
	for (size_t i = 0; s->driver && !s->plan.driver && i < p->n_tenants; i++)
		if (s->plan.ids[i])
			adaptbf_gate_rule(s->driver, s->plan.ids[i], &ret_rules[i].bucket,
				&ret_rules[i].scale);
	return 0;
}

/* ---- after it */

static uint32_t weight_of(const struct weir_policy *p, size_t leaf)
{
	double w = weir_policy_shares(p, leaf) * WEIGHT_UNIT;

	return (uint32_t)fmin(fmax(rint(w), 1), UINT32_MAX);
}

static void take_leaves(struct steward *s)
{
	struct steward_plan *plan = &s->plan;
	struct resource *r = s->resource;
	struct weir_bucket_spec *own = plan->own;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_ids; i++) {
		struct adaptbf_gate_leaf *l = &plan->leaves[n];
		struct weir_bucket_spec buckets[POLICY_BUCKETS];

		if (!plan->ids[i])
			continue;
		*l = (struct adaptbf_gate_leaf){.node = r->nodes[i],
			.id = plan->ids[i],
			.weight = weight_of(r->policy, i),
			.share = r->policy->tenants[i].weight,
			.own = own,
			.n_own = resource_divide_own(r, i, buckets)};
		memcpy(own, buckets, l->n_own * sizeof(*own));
		own += l->n_own;
		n++;
	}
	adaptbf_gate_leaves(s->driver, plan->leaves, n); /* has its room */
}

void steward_configure(struct steward *s, const struct weir_resource *spec)
{
	double stated = spec->capacity[WEIR_UNIT_REQUESTS].per_second;
	double seen = s->resource->capacity.rate[WEIR_UNIT_REQUESTS];
	struct adaptbf_config config = {.period = spec->adaptbf.period,
		.rate = stated > 0 ? stated : spec->adaptbf.guess,
		.learn = stated <= 0,
		.headroom = spec->adaptbf.headroom,
		.forget = spec->adaptbf.forget};
	struct adaptbf_state state;

	/* The first time: what the resource was seen to do is better than a guess. */
	adaptbf_state(s->adaptbf, &state);
	if (config.learn && s->learns && state.steps == 0 && state.known == 0)
		adaptbf_set_rate(s->adaptbf, seen > 0 ? seen : config.rate);
	adaptbf_configure(s->adaptbf, &config); /* the policy's checks have seen to it */
	s->learns = config.learn;
	s->config = spec->adaptbf;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct kept {
	const struct adaptbf *adaptbf;
	uint64_t *ids; /* sorted */
	size_t n;
};

static bool is_kept(uint64_t id, void *arg)
{
	const struct kept *k = arg;
	struct adaptbf_account ignored;

	return bsearch(&id, k->ids, k->n, sizeof(id), by_number) ||
	       adaptbf_account(k->adaptbf, id, &ignored) == 0;
}

/* Names of neither a tenant nor a job that is remembered. Those that stay are only ever too many. */
static void sweep_names(struct steward *s)
{
	struct kept k = {s->adaptbf, calloc(s->n_ids + 1, sizeof(*k.ids)), s->n_ids};

	if (!k.ids)
		return;
	memcpy(k.ids, s->ids, s->n_ids * sizeof(*k.ids));
	qsort(k.ids, k.n, sizeof(*k.ids), by_number);
	jobnames_sweep(&s->names, is_kept, &k);
	free(k.ids);
}

static void steward_begin(struct resource *r, const struct weir_resource *spec)
{
	struct steward *s = r->steward;

	if (s->plan.driver) {
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
	sweep_names(s);
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

/* ---- between steps */

static void steward_divided(struct resource *r, size_t i, const struct weir_bucket_spec *own)
{
	struct steward *s = r->steward;

	if (s->ids[i])
		adaptbf_gate_own(s->driver, s->ids[i], own);
}

static void steward_rule(struct resource *r, size_t i, struct policy_rule *ret)
{
	const struct steward *s = r->steward;

	*ret = (struct policy_rule){.scale = 1};
	if (s->ids[i])
		adaptbf_gate_rule(s->driver, s->ids[i], &ret->bucket, &ret->scale);
}

const struct control_ops steward_ops = {
	.name = "adaptbf",
	.prepare = steward_prepare,
	.begin = steward_begin,
	.end = steward_end,
	.divided = steward_divided,
	.look = steward_look,
	.rule = steward_rule,
	.free = steward_free,
};
