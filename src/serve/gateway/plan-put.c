/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan-put: put a plan in force, and keep it across a restart.
 *
 * METHOD  A plan is a change as that of a policy (serve/gateway/change.c), of a version that shares the policy in force: nothing is
 *         parsed, copied or checked but the plan. The plan is kept in plan.json of the state folder (serve/gateway/plan/kept.h).
 */
#include "base/no-memory.h"
#include "plan/planning.h"
#include "policy/knobs/swap.h"
#include "serve/gateway/change.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/plan.h"
#include "serve/gateway/plan/kept.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "plan.json"

/* ---- a version's plan */

int gateway_plan_give(struct gateway_version *v, struct gateway_plan *plan)
{
	v->plan = plan;
	if (!plan)
		return 0;
	if (!v->digest[0])
		planning_digest(v->text, strlen(v->text), v->policy->tenants_text, v->digest);
	gateway_plan_untrue(plan, v->policy, v->digest, &v->profiles, &v->untrue);
	return gateway_claims_make(plan, v->policy, &v->profiles, &v->claims);
}

/* ---- kept across a restart */

static int keep(
	struct gateway *g, const struct gateway_plan *plan, uint64_t number, struct weir_err *err)
{
	struct plan_kept k = {.number = number, .digest = "", .tenants = ""};

	if (plan)
		k = (struct plan_kept){
			number, plan->applied, plan->digest, plan->tenants_digest, plan->text};
	return plan_kept_write(g->state, NAME, &k, err);
}

void gateway_plan_unkeep(struct gateway *g)
{
	struct weir_err ignored;

	keep(g, g->in_force->plan, g->plan_number, &ignored);
}

int gateway_plan_load(struct gateway *g, struct gateway_plan **ret_plan, struct weir_err *err)
{
	*ret_plan = NULL;
	return g->state ? plan_kept_read(g->state, NAME, &g->plan_number, ret_plan, err) : 0;
}

/* ---- a change */

double gateway_plan_age(const struct gateway_plan *p)
{
	return p && loop_date() > p->applied ? loop_date() - p->applied : 0;
}

/* Refuse a plan that was not made for the version. */
static int check(const struct gateway_version *v, struct weir_err *err)
{
	char all[1024] = "";
	size_t used = 0;

	for (size_t i = 0; i < v->untrue.n && used < sizeof(all); i++)
		used += (size_t)snprintf(
			all + used, sizeof(all) - used, "; %s", v->untrue.lines[i]);
	return v->untrue.n ? weir_err_set(err, -EINVAL,
				     "the plan does not fit the policy in force%s; plan again", all)
			   : 0;
}

static bool has_stage(const struct gateway_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_tenants; i++)
		for (size_t k = 0; k < p->tenants[i].n_stages; k++)
			if (strcmp(p->tenants[i].stages[k].name, name) == 0)
				return true;
	return false;
}

static void say_links(const struct gateway_version *v, struct gateway_note *note)
{
	for (size_t i = 0; i < v->policy->n_links; i++)
		if (has_stage(v->plan, v->policy->links[i].name))
			gateway_note_add(note,
				"plan: %s is a link: no gate stands before it, and its priorities "
				"are for the network to keep",
				v->policy->links[i].name);
}

/* The number of a change; that of the cluster's controller must be higher than the last. */
static int give_number(const struct gateway *g, struct gateway_change *c)
{
	if (!c->number)
		c->number = g->plan_number + (c->text != NULL);
	else if (c->number <= g->plan_number)
		return weir_err_set(
			&c->err, -EINVAL, "plan %llu is newer", (unsigned long long)g->plan_number);
	return 0;
}

/* Refuse a profile of a larger device than the resource is: one of the same device, or of an export of it, is not larger. */
static int check_devices(
	const struct gateway *g, const struct gateway_version *v, struct weir_err *err)
{
	char was[32], is[32];

	for (size_t i = 0; i < v->profiles.n; i++) {
		const struct gateway_resource *r =
			gateway_resource(g, v->policy->resources[i].name);
		uint64_t size = r && !r->volumes && r->known ? r->size : 0;

		if (v->profiles.all[i] && size && v->profiles.all[i]->table.device_size > size)
			return weir_err_at(err, -EINVAL, v->policy->resources[i].profile_at,
				"resource '%s': profile: it was measured on a device of %s, and "
				"this one has %s",
				r->name,
				weir_units_show_size(
					v->profiles.all[i]->table.device_size, was, sizeof(was)),
				weir_units_show_size(size, is, sizeof(is)));
	}
	return 0;
}

/* Make the version: the plan in c->text, or none. */
static int make(struct gateway *g, struct gateway_change *c, struct gateway_draft *d)
{
	struct gateway_plan *plan = NULL;
	int rc = c->text ? gateway_plan_read(c->text, c->len, &plan, &c->err) : 0;

	if (rc == 0 && !c->text && !g->in_force->plan && !c->number)
		rc = weir_err_set(&c->err, -ENOENT, "no plan is in force");
	if (rc == 0)
		rc = give_number(g, c);
	if (rc < 0) {
		gateway_plan_drop(plan);
		return rc;
	}
	if (plan) {
		plan->number = c->number;
		plan->applied = loop_date();
		memcpy(plan->tenants_digest, c->tenants_digest, sizeof(plan->tenants_digest));
		if (c->tenants_digest[0])
			gateway_digest(c->text, c->len, plan->digest);
	}
	if (gateway_version_share(g->in_force, &d->version) < 0) {
		gateway_plan_drop(plan);
		return no_memory(&c->err);
	}
	if (gateway_plan_give(d->version, plan) < 0)
		return no_memory(&c->err);
	rc = plan ? check(d->version, &c->err) : 0;
	if (rc == 0 && plan)
		rc = check_devices(g, d->version, &c->err);
	if (rc == 0 && plan) {
		say_links(d->version, &c->note);
		gateway_note_add(&c->note, "plan %llu, with %zu tenant%s",
			(unsigned long long)plan->number, plan->n_tenants,
			plan->n_tenants == 1 ? "" : "s");
	}
	return rc;
}

void gateway_plan_draft(struct gateway *g, struct gateway_change *c)
{
	struct gateway_draft *d = &c->draft;
	const struct weir_policy *p = g->policy;
	int rc = make(g, c, d);

	d->was = calloc(p->n_tenants + 1, sizeof(*d->was));
	if (rc == 0 && !d->was)
		rc = no_memory(&c->err);
	for (size_t i = 0; rc == 0 && i < p->n_tenants; i++)
		d->was[i] = (int)i;
	if (rc == 0 && !c->dry)
		rc = gateway_resources_open(g, p, &d->resources, &c->err);
	d->n_resources = p->n_resources;
	if (rc == 0 && !c->dry && g->state) {
		rc = keep(g, d->version->plan, c->number, &c->err);
		d->kept_plan = rc == 0;
	} else if (rc == 0 && !c->dry && d->version->plan) {
		gateway_note_add(&c->note, "not kept across a restart: there is no state folder");
	}
	c->rc = rc;
}

void gateway_plan_borrow(struct gateway *g, struct gateway_draft *d)
{
	d->base = g->base;
	d->extras = g->extras;
	d->refused = g->unserved;
	d->folders = g->folders_version;
	d->overrides = g->overrides;
	d->n_overrides = g->n_overrides;
	g->base = NULL;
	g->extras = (struct extras){0};
	g->unserved = (struct gateway_note){0};
	g->overrides = NULL;
	g->n_overrides = 0;
}

void gateway_plan_log(const struct gateway *g, const struct gateway_version *was)
{
	const struct gateway_note *is = &g->in_force->untrue;

	for (size_t i = 0; i < is->n; i++)
		if (!was || !gateway_note_has(&was->untrue, is->lines[i]))
			log_event(LOG_LEVEL_WARNING, "plan-untrue", "why", is->lines[i], NULL);
}
