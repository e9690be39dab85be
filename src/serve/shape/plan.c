/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: a plan of the SLO planner (weir-plan(1)) in force at this machine's links.
 *
 * SOURCE  PriorityMeister, §4.5-4.7: a workload's requests pass by priority once all of its token buckets admit them.
 * METHOD  The stages of the plan that are links with a `device` and `dir: out` count. A service of the plan has its priority in HTB,
 *         0 to TREE_PRIORITIES - 1, and its buckets are HTB qdiscs, one inside of the other, in its classes: runtime and static. All
 *         others have the lowest priority. The plan is kept as a gateway keeps its own.
 * DIFFERS A packet beyond the buckets waits for them, as in the paper; at a gate it goes best effort.
 */
#include "serve/shape/impl.h"
#include "base/no-memory.h"
#include "policy/plan.h"
#include "serve/gateway/plan/kept.h"
#include "serve/http/json.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME "plan.json"

/* ---- the plan in a tree */

/* Return the device of a stage, or a negative number: it is none of this machine's that sends. */
static int device_of(const struct weir_policy *p, const struct gateway_plan_stage *stage)
{
	struct policy_stage s;

	if (stage->time || !policy_plan_stage(p, stage->name, &s) || !s.link ||
		p->links[s.index].dir != POLICY_NET_OUT)
		return -1;
	return p->links[s.index].device;
}

static int check_claim(
	const char *path, const struct gateway_plan_stage *stage, struct weir_err *err)
{
	if (stage->claim.priority >= TREE_PRIORITIES)
		return weir_err_set(err, -EINVAL,
			"the plan gives '%s' priority %d at %s, and HTB has %d: state 'levels: %d'",
			path, stage->claim.priority, stage->name, TREE_PRIORITIES, TREE_PRIORITIES);
	if (stage->claim.n > TREE_BUCKETS)
		return weir_err_set(err, -EINVAL,
			"the plan gives '%s' %u buckets at %s: plan with --pairs %d", path,
			stage->claim.n, stage->name, TREE_BUCKETS);
	return 0;
}

/* Return the DSCP of a claim's priority at a link, plus 1; 0: none. */
static uint8_t mark_of(const struct weir_policy *p, const struct gateway_plan_stage *stage)
{
	struct policy_stage s;
	const struct policy_link *l =
		policy_plan_stage(p, stage->name, &s) ? &p->links[s.index] : NULL;

	return l && stage->claim.priority < (int)l->n_dscp
		       ? (uint8_t)(l->dscp[stage->claim.priority] + 1)
		       : 0;
}

/* Give a service of the plan its priority and buckets. Return 1, 0: it has none here, or a negative errno. */
static int lay_one(const struct weir_policy *p, const struct gateway_plan_tenant *of,
	struct tree *t, struct weir_err *err)
{
	int i = weir_policy_find(p, of->path), r = 0;
	uint16_t node = i < 0 ? 0 : t->of[i];

	for (size_t k = 0; node && k < of->n_stages; k++) {
		const struct gateway_plan_stage *stage = &of->stages[k];
		int device = device_of(p, stage), e;

		if (device < 0)
			continue;
		if ((e = check_claim(of->path, stage, err)))
			return e;
		t->nodes[node].planned = device + 1;
		t->nodes[node].mark = mark_of(p, stage);
		t->nodes[node].priority = (uint8_t)stage->claim.priority;
		t->nodes[node].n_buckets = (uint8_t)stage->claim.n;
		t->nodes[node].buckets = stage->claim.profile;
		r = 1;
	}
	return r;
}

/* Return the number of services that it has, or a negative errno. */
static int lay(const struct gateway_plan *plan, const struct weir_policy *p, struct tree *t,
	struct weir_err *err)
{
	int n = 0, r = 0;

	for (size_t i = 0; r >= 0 && i < plan->n_tenants; i++) {
		r = lay_one(p, &plan->tenants[i], t, err);
		n += r > 0;
	}
	t->planned = n > 0;
	return r < 0 ? r : n;
}

void shaper_plan_lay(const struct shaper *s, const struct weir_policy *p, struct tree *t)
{
	struct weir_err err;

	if (!s->plan)
		return;
	if (strcmp(s->plan->policy, s->digest) != 0)
		log_event(LOG_LEVEL_WARNING, "plan-untrue", "why",
			"the policy is not the one for which it was made", NULL);
	if (lay(s->plan, p, t, &err) < 0)
		log_event(LOG_LEVEL_ERROR, "plan", "why", err.text, NULL);
}

int shaper_plan_load(struct shaper *s, struct weir_err *err)
{
	return plan_kept_read(s->state.folder, NAME, &s->plan_number, &s->plan, err);
}

/* ---- a change */

static int keep(const struct shaper *s, const struct gateway_plan *plan, uint64_t number,
	struct weir_err *err)
{
	struct plan_kept k = {.number = number, .digest = "", .tenants = ""};

	if (plan)
		k = (struct plan_kept){number, plan->applied, "", "", plan->text};
	return plan_kept_write(s->state.folder, NAME, &k, err);
}

/* Refuse a plan that was made for another policy, or that says nothing about this machine. */
static int check_plan(const struct shaper *s, const struct gateway_plan *plan, struct weir_err *err)
{
	struct tree *t;
	int r;

	if (strcmp(plan->policy, s->digest) != 0)
		return weir_err_set(err, -EINVAL,
			"the plan does not fit the policy in force: it was made for %.12s…, and "
			"this is %.12s…; plan again",
			plan->policy, s->digest);
	r = tree_new(s->base, &t, err);
	if (r)
		return r;
	r = lay(plan, s->base, t, err);
	tree_free(t);
	if (r == 0)
		r = weir_err_set(err, -EINVAL,
			"no stage of the plan is a link of this machine, with 'device' and 'dir: "
			"out'");
	return r < 0 ? r : 0;
}

/* Put a plan in force, or with NULL none; it belongs to the shaper if this succeeds. */
static int replace_plan(struct shaper *s, struct gateway_plan *plan, struct weir_err *err)
{
	struct gateway_plan *was = s->plan;
	struct weir_policy *p;
	struct weir_err again;
	int r = shaper_set_lay(s, s->base, &p, err);

	if (r)
		return r;
	if ((r = keep(s, plan, s->plan_number + 1, err))) {
		weir_policy_free(p);
		return r;
	}
	s->plan = plan;
	r = shaper_change_to(s, p, err);
	if (r) {
		s->plan = was;
		keep(s, was, s->plan_number, &again);
		return r;
	}
	s->plan_number++;
	gateway_plan_drop(was);
	return 0;
}

static int take_plan(struct shaper *s, const struct http_request *q, struct weir_err *err)
{
	struct gateway_plan *plan;
	int r = gateway_plan_read(q->body, q->length, &plan, err);

	if (r)
		return r;
	plan->number = s->plan_number + 1;
	plan->applied = (double)time(NULL);
	r = check_plan(s, plan, err);
	if (r == 0)
		r = replace_plan(s, plan, err);
	if (r)
		gateway_plan_drop(plan);
	return r;
}

/* ---- the API */

static void give(const struct shaper *s, struct http_reply *ret)
{
	json_t *notes = json_array();

	if (s->plan)
		json_array_append_new(
			notes, json_sprintf("plan %llu, with %zu tenant%s",
				       (unsigned long long)s->plan->number, s->plan->n_tenants,
				       s->plan->n_tenants == 1 ? "" : "s"));
	http_json_give(ret, 200, json_pack("{s:o}", "notes", notes));
}

static void answer(struct shaper *s, int r, const struct weir_err *err, struct http_reply *ret)
{
	if (r)
		http_json_fail(ret, r == -ENOENT ? 404 : r == -EINVAL ? 400 : 500, err->text);
	else
		give(s, ret);
}

void shaper_get_plan(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	if (!s->plan) {
		http_json_fail(ret, 404, "no plan is in force");
		return;
	}
	ret->body = strdup(s->plan->text);
	ret->length = ret->body ? strlen(ret->body) : 0;
	ret->type = HTTP_JSON;
	ret->status = ret->body ? 200 : 500;
}

void shaper_put_plan(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	struct weir_err err;

	answer(s, take_plan(s, q, &err), &err, ret);
}

void shaper_delete_plan(struct shaper *s, struct http_request *q, struct http_reply *ret)
{
	struct weir_err err;
	int r = s->plan ? replace_plan(s, NULL, &err)
			: weir_err_set(&err, -ENOENT, "no plan is in force");

	answer(s, r, &err, ret);
}

void shaper_plan_free(struct shaper *s)
{
	gateway_plan_drop(s->plan);
}
