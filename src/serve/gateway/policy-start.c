/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-start: the first version of the policy, and the end of the last.
 *
 * Overrides and volumes that were kept from an earlier run, and do not fit the file any more, must not stop the gateway: they are
 * dropped one by one, and logged.
 */
#include "base/no-memory.h"
#include "policy/by-size.h"
#include "policy/policy.h"
#include "serve/gateway/change.h"
#include "serve/store/folder.h"
#include "serve/gateway/layers.h"
#include "serve/gateway/plan.h"
#include "serve/store/state.h"
#include "serve/gateway/volume-edit.h"
#include "serve/loop/log.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void forget_policy(struct gateway_layers *v)
{
	weir_policy_free(v->policy);
	v->policy = NULL;
	gateway_note_free(&v->refused);
	gateway_note_free(&v->remarks);
}

/* Apply overrides one by one; keep each that is valid with those before it. */
static int start_one_by_one(const struct gateway *g, struct gateway_layers *v, struct weir_err *err)
{
	struct gateway_override *all = v->overrides;
	size_t n = v->n_overrides, kept = 0;
	int rc = -ENODATA; /* no policy is built yet */

	for (size_t i = 0; i < n; i++) {
		struct gateway_override one = all[i];
		struct weir_err why;

		all[i] = (struct gateway_override){0};
		all[kept] = one;
		forget_policy(v);
		v->n_overrides = kept + 1;
		rc = gateway_layers_build(g, v, NULL, &why);
		if (rc == 0) {
			kept++;
			continue;
		}
		log_event(LOG_LEVEL_WARNING, "set-dropped", "key", one.key, "value", one.value,
			"why", why.text, NULL);
		all[kept] = (struct gateway_override){0};
		free(one.key);
		free(one.value);
	}
	v->n_overrides = kept;
	if (rc == 0)
		return 0;
	forget_policy(v);
	return gateway_layers_build(g, v, NULL, err);
}

static int make_first_draft(
	struct gateway *g, struct weir_policy *p, struct gateway_layers *v, struct weir_err *err)
{
	struct weir_err ignored;
	int rc;

	v->base = p;
	rc = folders_new(&g->folders);
	if (rc < 0)
		return weir_err_set(err, rc, "cannot watch folders: %s", strerror(-rc));
	if (policy_copy_everybody(p) < 0)
		return no_memory(err);
	if (g->state) {
		state_file_check(g->state);
		rc = state_read(g->state, &v->overrides, &v->n_overrides, err);
		if (rc == 0)
			rc = extras_read(g->state, &v->extras, err);
	}
	if (rc == 0 && folders_expect(g->folders, p, &v->extras) < 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = folders_look(g->folders, NULL, p, true, false, err);
	if (rc < 0)
		return rc;
	gateway_volume_unlink_all(&v->extras); /* as a crash has left them */
	gateway_volume_prune(g, &v->extras);
	if (gateway_layers_build(g, v, NULL, &ignored) == 0)
		return 0;
	forget_policy(v);
	return start_one_by_one(g, v, err);
}

int gateway_policy_start(struct gateway *g, struct weir_policy *p, const char *text,
	const char *name, struct weir_err *err)
{
	struct gateway_layers v = {.text = text, .name = name, .gateway = g};
	struct gateway_draft d = {0};
	struct gateway_plan *plan;
	int rc = make_first_draft(g, p, &v, err);

	if (rc == 0)
		rc = gateway_profiles_make(
			v.policy, &(struct gateway_profiles){0}, true, true, &v.profiles, err);
	g->file = strdup(name);
	if (rc == 0 && (!g->file || gateway_draft_finish(g, &v, &d) < 0))
		rc = no_memory(err);
	if (rc == 0)
		rc = gateway_plan_load(g, &plan, err);
	if (rc == 0 && gateway_plan_give(d.version, plan) < 0)
		rc = no_memory(err);
	if (rc == 0) {
		gateway_draft_exchange(g, &d);
		gateway_plan_log(g, NULL);
	}
	gateway_draft_free(&d);
	gateway_layers_free(&v);
	return rc;
}

int gateway_policy_sizes(struct gateway *g, struct weir_err *err)
{
	struct gateway_layers v = {.gateway = g};
	struct gateway_version *version = NULL;
	int rc;

	if (!policy_size_used(g->policy))
		return 0;
	rc = policy_copy(g->policy, &v.policy) < 0 ? no_memory(err)
						   : gateway_layers_settle(&v, NULL, NULL, err);
	if (rc == 0 && gateway_version_new(v.policy, g->text, g->name, &version) < 0)
		rc = no_memory(err);
	if (!version) {
		weir_policy_free(v.policy);
		return rc;
	}
	version->remarks = g->in_force->remarks; /* no reader has it yet */
	g->in_force->remarks = (struct gateway_note){0};
	version->profiles = g->in_force->profiles;
	version->plan = g->in_force->plan;
	version->claims = g->in_force->claims;
	version->untrue = g->in_force->untrue;
	g->in_force->profiles = (struct gateway_profiles){0};
	g->in_force->plan = NULL;
	g->in_force->claims = (struct gateway_claims){0};
	g->in_force->untrue = (struct gateway_note){0};
	gateway_version_drop(g->in_force);
	g->in_force = version;
	g->policy = version->policy;
	g->text = version->text;
	g->name = version->name;
	return 0;
}

void gateway_policy_stop(struct gateway *g)
{
	weir_policy_free(g->base);
	gateway_version_drop(g->in_force);
	extras_free(&g->extras);
	gateway_note_free(&g->unserved);
	folders_free(g->folders);
	g->folders = NULL;
	state_free(g->overrides, g->n_overrides);
	free(g->file);
	g->base = NULL;
	g->in_force = NULL;
	g->policy = NULL;
	g->overrides = NULL;
	g->n_overrides = 0;
	g->file = NULL;
}
