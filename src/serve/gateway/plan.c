/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: compare a plan with a policy, and turn it into claims. */
#include "serve/gateway/plan.h"
#include "policy/plan.h"
#include "serve/snapshot/note.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 10 /* tenants that are named */

static int find_resource(const struct weir_policy *p, const char *name)
{
	struct policy_stage s;

	return policy_plan_stage(p, name, &s) && !s.link ? (int)s.index : -1;
}

static const struct gateway_profile *profile_of(const struct gateway_profiles *list, int resource)
{
	return resource >= 0 && (size_t)resource < list->n ? list->all[resource] : NULL;
}

void gateway_plan_tenants(const struct weir_policy *p, char ret[GATEWAY_DIGEST])
{
	const char *text = p->tenants_text ? p->tenants_text : "";

	gateway_digest(text, strlen(text), ret);
}

/* Return true if a stage is another server of the cluster, for a plan of its controller. */
static bool is_elsewhere(
	const struct gateway_plan *plan, const struct weir_policy *p, const char *stage)
{
	return plan->tenants_digest[0] && policy_cluster_elsewhere(p, stage);
}

/* ---- differences */

/* Return what has changed of a tenant, in buf; NULL: nothing has. */
static const char *changed(const struct gateway_plan *plan, const struct weir_policy *p,
	const struct gateway_profiles *profiles, const struct gateway_plan_tenant *t, char *buf,
	size_t room)
{
	int i = weir_policy_find(p, t->path);
	const struct weir_tenant *is = i < 0 ? NULL : &p->tenants[i];
	char slo[POLICY_SLO_TEXT];
	struct policy_stage s;

	if (!is)
		return "is no tenant any more";
	if (is->first_child >= 0 || is->each)
		return "takes no requests itself any more";
	if (is->slo_percentile <= 0)
		return "has no slo any more";
	if (fabs(is->slo_percentile - t->percentile) > 1e-9 ||
		fabs((double)is->slo_latency - 1e9 * t->latency) > 1) {
		snprintf(buf, room, "was planned for p%.12g < %.12g ms, and its slo is %s",
			t->percentile, 1e3 * t->latency, policy_plan_show_slo(is, slo));
		return buf;
	}
	for (size_t k = 0; k < t->n_stages; k++) {
		const struct gateway_plan_stage *stage = &t->stages[k];

		if (is_elsewhere(plan, p, stage->name))
			continue;
		if (!policy_plan_stage(p, stage->name, &s)) {
			snprintf(buf, room, "has a path over '%s', which is gone", stage->name);
			return buf;
		}
		if (!s.link && stage->time && !profile_of(profiles, (int)s.index)) {
			snprintf(buf, room,
				"has buckets of device time at '%s', which has no profile",
				stage->name);
			return buf;
		}
	}
	return NULL;
}

static void compare_tenants(const struct gateway_plan *plan, const struct weir_policy *p,
	const struct gateway_profiles *profiles, struct gateway_note *note)
{
	char buf[256];
	size_t n = 0;

	for (size_t i = 0; i < plan->n_tenants; i++) {
		const char *why = changed(plan, p, profiles, &plan->tenants[i], buf, sizeof(buf));

		if (why && n++ < LINES_MAX)
			gateway_note_add(note, "plan: tenant %s %s", plan->tenants[i].path, why);
	}
	if (n > LINES_MAX)
		gateway_note_add(note, "plan: and %zu more tenants", n - LINES_MAX);
}

static void compare_resources(const struct gateway_plan *plan, const struct weir_policy *p,
	const struct gateway_profiles *profiles, struct gateway_note *note)
{
	for (size_t i = 0; i < plan->n_profiles; i++) {
		const struct gateway_plan_profile *was = &plan->profiles[i];
		int at = find_resource(p, was->resource);
		const struct gateway_profile *is = profile_of(profiles, at);
		const struct weir_resource *of = at < 0 ? NULL : &p->resources[at];

		if (is && strcmp(is->digest, was->digest) != 0)
			gateway_note_add(note,
				"plan: it was made with another profile of %s: %.12s…, which is "
				"%.12s… now",
				was->resource, was->digest, is->digest);
		if (is && policy_plan_depth(of) < 1)
			gateway_note_add(note,
				"plan: %s has no stated depth, and its profile was measured at %u",
				was->resource, is->table.depth);
		else if (is && policy_plan_depth(of) != is->table.depth)
			gateway_note_add(note,
				"plan: %s has a depth of %.6g, and its profile was measured at %u",
				was->resource, policy_plan_depth(of), is->table.depth);
	}
}

void gateway_plan_untrue(const struct gateway_plan *plan, const struct weir_policy *p,
	const char *digest, const struct gateway_profiles *profiles, struct gateway_note *note)
{
	char tenants[GATEWAY_DIGEST];

	if (plan->tenants_digest[0]) /* the text may be long */
		gateway_plan_tenants(p, tenants);
	if (plan->tenants_digest[0] && strcmp(plan->tenants_digest, tenants) != 0)
		gateway_note_add(note,
			"plan: the cluster's controller has another file of tenants: %.12s…, which "
			"is %.12s… here",
			plan->tenants_digest, tenants);
	if (!plan->tenants_digest[0] && strcmp(plan->policy, digest) != 0)
		gateway_note_add(note,
			"plan: it was made for another policy: %.12s…, which is %.12s… now",
			plan->policy, digest);
	compare_resources(plan, p, profiles, note);
	compare_tenants(plan, p, profiles, note);
}

/* ---- claims */

/* Give tenant i the claims of its stages. A bucket of device time needs a table. */
static int claim(const struct weir_policy *p, const struct gateway_profiles *profiles,
	const struct gateway_plan_tenant *t, size_t i, struct gateway_claims *to)
{
	for (size_t k = 0; k < t->n_stages; k++) {
		const struct gateway_plan_stage *s = &t->stages[k];
		int r = find_resource(p, s->name);

		if (r < 0 || (s->time && !profile_of(profiles, r)))
			continue;
		if (!to->of[r])
			to->of[r] = calloc(p->n_tenants + 1, sizeof(**to->of));
		if (!to->of[r])
			return -ENOMEM;
		to->of[r][i] = s->claim;
	}
	return 0;
}

int gateway_claims_make(const struct gateway_plan *plan, const struct weir_policy *p,
	const struct gateway_profiles *profiles, struct gateway_claims *ret)
{
	struct gateway_claims to = {
		.of = calloc(p->n_resources + 1, sizeof(*to.of)), .n = p->n_resources};
	int rc = to.of ? 0 : -ENOMEM;

	for (size_t k = 0; rc == 0 && k < plan->n_tenants; k++) {
		int i = weir_policy_find(p, plan->tenants[k].path);

		if (i >= 0 && p->tenants[i].first_child < 0 && !p->tenants[i].each)
			rc = claim(p, profiles, &plan->tenants[k], (size_t)i, &to);
	}
	if (rc < 0) {
		to.n = to.of ? to.n : 0;
		gateway_claims_free(&to);
		return rc;
	}
	*ret = to;
	return 0;
}
