/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy: make the next version of the policy from the one in force and a requested change.
 *
 * METHOD  A change makes the whole next policy of all its layers (serve/gateway/layers.h) and runs every check that could
 *         refuse it: the reader, the checks, the sizes of the back ends. Then the state that must survive a restart is
 *         written to disk. At 100,000 tenants this takes seconds: it is done aside (serve/gateway/change.c), and reads the
 *         gateway without changing it.
 *
 *         A policy through the API may name only files that the operator's own policy names: a
 *         client that may change limits need not be able to read every file that the gateway can.
 */
#include "base/no-memory.h"
#include "policy/by-size.h"
#include "policy/policy.h"
#include "policy/override/override.h"
#include "policy/knobs/swap.h"
#include "serve/gateway/change.h"
#include "serve/gateway/layers.h"
#include "serve/gateway/links.h"
#include "serve/gateway/plan.h"
#include "serve/gateway/differences.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/slo.h"
#include "serve/store/state.h"
#include "serve/store/folder.h"
#include "serve/gateway/volume-edit.h"
#include "serve/loop/log.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gateway_draft_free(struct gateway_draft *d)
{
	weir_policy_free(d->base);
	gateway_version_drop(d->version);
	extras_free(&d->extras);
	gateway_note_free(&d->refused);
	state_free(d->overrides, d->n_overrides);
	tls_free(d->tls);
	gateway_volumes_free(&d->volumes);
	gateway_listeners_free(&d->listeners);
	free(d->was);
	*d = (struct gateway_draft){0};
}

/* ---- apply */

/* Return true if there are no files, or a resource in force has the same. */
static bool has_files(const struct gateway *g, const struct weir_policy_tls *t)
{
	bool has = policy_tls_same(t, &(struct weir_policy_tls){0});

	for (size_t i = 0; !has && i < g->policy->n_resources; i++)
		has = policy_tls_same(t, &g->policy->resources[i].tls);
	return has;
}

/* Refuse files that the policy in force does not name. */
static int check_files(struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	if (!policy_tls_same(&g->policy->tls, &p->tls))
		return weir_err_set(err, -EINVAL,
			"tls: other files than before: only the gateway's own policy file may name "
			"them (change that, and send SIGHUP)");
	for (size_t i = 0; i < p->n_resources; i++)
		if (!has_files(g, &p->resources[i].tls))
			return weir_err_at(err, -EINVAL, p->resources[i].at,
				"resource '%s': tls: other files than before: only the gateway's "
				"own "
				"policy file may name them (change that, and send SIGHUP)",
				p->resources[i].name);
	return gateway_volumes_allowed(g, p, err);
}

/* The tenants' file came with the policy, or not at all. */
static int read_sent(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	const struct gateway_change *c = arg;
	char *text;

	if (!c->tenants_len)
		return weir_err_set(err, -EACCES,
			"%s: only the gateway's own policy file may name a file; send its text "
			"with the policy",
			name);
	text = strndup(c->text + c->len, c->tenants_len);
	if (!text)
		return no_memory(err);
	*ret_text = text;
	*ret_len = strlen(text);
	return 0;
}

static int parse(
	struct gateway *g, struct gateway_change *c, struct gateway_layers *v, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	int rc;

	if (!remarks)
		return no_memory(err);
	rc = policy_parse_lab(c->text, c->len, c->name, g->policy->lab,
		c->own ? g->reader : read_sent, c->own ? g->reader_arg : c, &v->base, remarks);
	if (rc < 0)
		weir_err_set(err, rc, "%s", remarks->n_errors ? remarks->errors[0].text : "?");
	free(remarks);
	if (rc == 0)
		rc = policy_lab_served(v->base, err);
	if (rc == 0)
		rc = gateway_files_once(v->base, err);
	if (rc == 0 && !c->own)
		rc = check_files(g, v->base, err);
	if (rc < 0)
		return rc;
	c->text[c->len] = 0;
	v->text = c->text;
	v->name = c->name;
	return policy_copy_everybody(v->base) < 0 ? no_memory(err) : 0;
}

static int fit(struct gateway *g, struct gateway_layers *v, struct weir_err *err)
{
	/* read even if no name changed: the files may have new content */
	int rc = gateway_tls_read(v->policy, &v->tls, err);

	if (rc == -ENOENT || rc == -EACCES) /* a file that it names: the policy is wrong */
		rc = -EINVAL;
	return rc < 0 ? rc : gateway_links_fit(g, v->policy, err);
}

/* Copy the layers in force, with key = value set (both NULL: as they are; value NULL: without key). */
static int copy_layers(
	const struct gateway *g, const char *key, const char *value, struct gateway_layers *v)
{
	int rc = extras_copy(&g->extras, &v->extras);

	return rc < 0 ? rc
		      : state_copy(g->overrides, g->n_overrides, key, value, &v->overrides,
				&v->n_overrides);
}

static int look_at_folders(struct gateway *g, const struct gateway_change *c,
	struct gateway_layers *v, struct weir_err *err)
{
	bool take = !c->dry && (c->kind == CHANGE_APPLY || c->kind == CHANGE_RELOAD);
	int rc = folders_look(g->folders, g->base, v->base, c->scan, take, err);

	if (rc == 0)
		gateway_volume_prune(g, &v->extras);
	return rc;
}

static int make_applied(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	struct weir_err *err = &c->err;
	int rc = parse(g, c, v, err);

	if (rc < 0)
		return rc;
	rc = copy_layers(g, NULL, NULL, v);
	if (rc < 0)
		return no_memory(err);
	if (c->follow) {
		state_free(v->overrides, v->n_overrides);
		v->overrides = NULL;
		v->n_overrides = 0;
		rc = state_copy(c->sets, c->n_sets, NULL, NULL, &v->overrides, &v->n_overrides);
		if (rc < 0)
			return no_memory(err);
	}
	rc = look_at_folders(g, c, v, err);
	if (rc < 0)
		return rc;
	if (!c->keep) {
		gateway_layers_say_undone(g, v->base, &c->note);
		state_free(v->overrides, v->n_overrides);
		v->overrides = NULL;
		v->n_overrides = 0;
	}
	rc = gateway_layers_drop_unfit(v, &c->note, err);
	if (rc == 0)
		rc = gateway_layers_build(g, v, &c->note, err);
	if (rc == -EINVAL)
		gateway_layers_name_set(v, err);
	return rc < 0 ? rc : fit(g, v, err);
}

/* Make the policy as a restart would: the file as it is now, and the overrides. */
static int make_reloaded(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	int rc;

	if (!g->reader)
		return weir_err_set(&c->err, -ENOTSUP, "there is no policy file to read again");
	c->own = c->keep = true;
	c->name = strdup(g->file);
	if (!c->name)
		return no_memory(&c->err);
	rc = g->reader(g->reader_arg, "", g->file, &c->text, &c->len, &c->err);
	return rc < 0 ? rc : make_applied(g, c, v);
}

/* ---- set */

static bool is_set(const struct gateway *g, const char *key)
{
	for (size_t i = 0; i < g->n_overrides; i++)
		if (strcmp(g->overrides[i].key, key) == 0)
			return true;
	return false;
}

/* Copy what the policy in force was made of, with one value set. */
static int copy_sources(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	int rc = policy_copy(g->base, &v->base);

	if (rc == 0)
		rc = copy_layers(g, c->key, c->value, v);
	v->text = g->text;
	v->name = g->name;
	return rc < 0 ? no_memory(&c->err) : look_at_folders(g, c, v, &c->err);
}

static int make_set(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	char is[POLICY_OVERRIDE_TEXT];
	int rc;

	if (!c->value && !is_set(g, c->key))
		return weir_err_set(&c->err, -ENOENT, "%s was not set", c->key);
	rc = copy_sources(g, c, v);
	if (rc == 0)
		rc = gateway_layers_build(g, v, &c->note, &c->err);
	if (rc == 0 && c->value && policy_override_show(v->policy, c->key, is) < 0)
		gateway_note_add(
			&c->note, "%s: no such tenant now; kept until a template makes it", c->key);
	return rc;
}

/* ---- refresh, and volumes */

static int make_refreshed(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	int rc = copy_sources(g, c, v);

	if (rc == 0)
		c->same = !c->forced && folders_version(g->folders) == g->folders_version;
	return rc < 0 || c->same ? rc : gateway_layers_build(g, v, &c->note, &c->err);
}

static int make_volume(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	int rc = copy_sources(g, c, v);

	if (rc == 0)
		rc = gateway_volume_edit(g, c, &v->extras);
	if (rc == 0 && !c->same)
		rc = gateway_layers_build(g, v, &c->note, &c->err);
	return rc < 0 || c->same ? rc : gateway_volumes_allowed(g, v->policy, &c->err);
}

bool gateway_override(
	const struct gateway *g, size_t i, const char **ret_key, const char **ret_value)
{
	if (i >= g->n_overrides)
		return false;
	*ret_key = g->overrides[i].key;
	*ret_value = g->overrides[i].value;
	return true;
}

/* ---- a draft */

int gateway_draft_finish(
	const struct gateway *g, struct gateway_layers *v, struct gateway_draft *ret)
{
	struct gateway_draft d = *ret;

	d.was = calloc(v->policy->n_tenants + 1, sizeof(*d.was));
	if (!d.was || gateway_version_new(v->policy, v->text, v->name, &d.version) < 0) {
		free(d.was);
		return -ENOMEM;
	}
	v->policy = NULL;
	d.version->remarks = v->remarks;
	v->remarks = (struct gateway_note){0};
	d.version->profiles = v->profiles;
	v->profiles = (struct gateway_profiles){0};
	policy_swap_map(g->policy, d.version->policy, d.was);
	d.base = v->base;
	d.extras = v->extras;
	d.refused = v->refused;
	d.folders = folders_version(g->folders);
	d.overrides = v->overrides;
	d.n_overrides = v->n_overrides;
	d.tls = v->tls;
	v->base = NULL;
	v->extras = (struct extras){0};
	v->refused = (struct gateway_note){0};
	v->overrides = NULL;
	v->n_overrides = 0;
	v->tls = NULL;
	*ret = d;
	return 0;
}

static bool same_overrides(const struct gateway *g, const struct gateway_draft *d)
{
	for (size_t i = 0; i < d->n_overrides && i < g->n_overrides; i++)
		if (strcmp(g->overrides[i].key, d->overrides[i].key) != 0 ||
			strcmp(g->overrides[i].value, d->overrides[i].value) != 0)
			return false;
	return d->n_overrides == g->n_overrides;
}

static int keep(struct gateway *g, struct gateway_change *c)
{
	struct gateway_draft *d = &c->draft;
	int rc = 0;

	if ((c->kind == CHANGE_SET || c->kind == CHANGE_VOLUME) && !g->state)
		gateway_note_add(&c->note, "not kept across a restart: there is no state folder");
	if (!g->state)
		return 0;
	if (!same_overrides(g, d)) {
		rc = state_write(g->state, d->overrides, d->n_overrides, &c->err);
		d->kept = rc == 0;
	}
	if (rc == 0 && !d->kept_extras && !extras_same(&g->extras, &d->extras)) {
		rc = extras_write(g->state, &d->extras, &c->err);
		d->kept_extras = rc == 0;
	}
	return rc;
}

void gateway_draft_unkeep(struct gateway *g, struct gateway_draft *d)
{
	struct weir_err ignored;

	if (d->kept)
		state_write(g->state, g->overrides, g->n_overrides, &ignored);
	if (d->kept_extras)
		extras_write(g->state, &g->extras, &ignored);
	if (d->kept_plan)
		gateway_plan_unkeep(g);
	d->kept = d->kept_extras = d->kept_plan = false;
}

/* Open the new resources and volumes, unless nothing is to be changed. */
static int open_all(struct gateway *g, struct gateway_change *c, struct gateway_layers *v)
{
	const struct weir_policy *p = v->policy;
	int rc = c->dry ? gateway_backs_check(p, &c->err)
			: gateway_resources_open(g, p, &c->draft.resources, &c->err);

	c->draft.n_resources = p->n_resources;
	if (rc == 0)
		rc = gateway_fits(g, p, c->draft.resources, &c->err);
	if (rc == 0 && !c->dry)
		rc = gateway_volumes_open(
			g, p, c->draft.resources, &c->draft.volumes, &v->refused, &c->err);
	return rc;
}

/* Note what is new among the reasons by which the plan is not true any more. */
static void say_plan(const struct gateway *g, struct gateway_change *c)
{
	const struct gateway_note *is = &c->draft.version->untrue, *was = &g->in_force->untrue;
	size_t n = 0;

	for (size_t i = 0; i < is->n; i++)
		if (!gateway_note_has(was, is->lines[i])) {
			gateway_note_add(&c->note, "%s", is->lines[i]);
			n++;
		}
	if (n)
		gateway_note_add(&c->note,
			"plan: its bounds may not hold any more; plan again (the claims of tenants "
			"that remain stay in force)");
}

static void say_changes(
	const struct gateway *g, struct gateway_change *c, const struct gateway_layers *v)
{
	gateway_note_changes(&c->note, g->policy, v->policy, c->own);
	for (size_t i = 0; i < v->remarks.n; i++)
		if (!gateway_note_has(&g->in_force->remarks, v->remarks.lines[i]))
			gateway_note_add(&c->note, "%s", v->remarks.lines[i]);
}

void gateway_draft_make(struct gateway *g, struct gateway_change *c)
{
	static int (*const make[])(
		struct gateway *, struct gateway_change *, struct gateway_layers *) = {
		[CHANGE_APPLY] = make_applied,
		[CHANGE_SET] = make_set,
		[CHANGE_RELOAD] = make_reloaded,
		[CHANGE_REFRESH] = make_refreshed,
		[CHANGE_VOLUME] = make_volume,
	};
	struct gateway_layers v = {.gateway = g,
		.instances = &c->instances,
		.strict = c->kind == CHANGE_SET || c->kind == CHANGE_VOLUME};
	int rc;

	if (c->kind == CHANGE_PLAN) {
		gateway_plan_draft(g, c);
		return;
	}
	rc = make[c->kind](g, c, &v);

	if (c->same) {
		gateway_layers_free(&v);
		c->rc = rc;
		return;
	}
	if (rc == 0)
		rc = gateway_profiles_make(v.policy, &g->in_force->profiles, c->own,
			c->kind == CHANGE_APPLY || c->kind == CHANGE_RELOAD, &v.profiles, &c->err);
	if (rc == 0)
		rc = open_all(g, c, &v);
	if (rc == 0 && c->draft.volumes.n && policy_size_used(v.policy))
		rc = gateway_layers_settle(&v, &c->draft.volumes, NULL, &c->err);
	if (rc == 0) {
		if (c->kind != CHANGE_REFRESH)
			say_changes(g, c, &v);
		rc = gateway_draft_finish(g, &v, &c->draft);
		if (rc == 0)
			rc = gateway_plan_give(
				c->draft.version, gateway_plan_hold(g->in_force->plan));
		if (rc < 0)
			no_memory(&c->err);
		else
			say_plan(g, c);
	}
	c->draft.tls_set = c->kind == CHANGE_APPLY || c->kind == CHANGE_RELOAD;
	if (rc == 0 && !c->dry)
		rc = keep(g, c);
	if (rc == 0 && c->grows)
		rc = gateway_volume_grow(c);
	if (rc < 0) {
		gateway_volume_unmake(c);
		gateway_draft_unkeep(g, &c->draft);
	}
	gateway_layers_free(&v);
	c->rc = rc;
}

void gateway_draft_exchange(struct gateway *g, struct gateway_draft *d)
{
	struct gateway_draft old = {.base = g->base,
		.version = g->in_force,
		.was = d->was,
		.extras = g->extras,
		.refused = g->unserved,
		.overrides = g->overrides,
		.n_overrides = g->n_overrides,
		.tls = d->tls_set ? g->tls : d->tls,
		.volumes = d->volumes,
		.listeners = d->listeners,
		.resources = d->resources,
		.n_resources = d->n_resources};

	g->base = d->base;
	g->in_force = d->version;
	g->policy = d->version->policy;
	g->text = d->version->text;
	g->name = d->version->name;
	g->extras = d->extras;
	g->unserved = d->refused;
	g->folders_version = d->folders;
	g->overrides = d->overrides;
	g->n_overrides = d->n_overrides;
	if (d->tls_set)
		g->tls = d->tls;
	*d = old;
}

void gateway_draft_enter(struct gateway *g, struct gateway_change *c)
{
	static const char *const how[] = {"apply", "set", "apply", "refresh", "volume", "plan"};
	char version[24], number[24];

	if (c->kind == CHANGE_PLAN)
		gateway_plan_borrow(g, &c->draft);
	gateway_draft_exchange(g, &c->draft);
	folders_taken(g->folders, true);
	gateway_resources_enter(g, c->draft.resources, g->policy->n_resources, c->draft.version, c);
	c->draft.resources = NULL;
	if (c->kind != CHANGE_PLAN)
		gateway_note_news(&c->draft.refused, &g->unserved, "volume-refused");
	gateway_note_news(&c->draft.version->remarks, &g->in_force->remarks, "remark");
	gateway_volumes_enter(g, &c->draft.volumes, c);
	if (c->draft.listeners.all && !g->stopping &&
		gateway_listeners_enter(g, &c->draft.listeners) < 0)
		log_event(LOG_LEVEL_ERROR, "not-listening", "why", "out of memory", NULL);
	gateway_listeners_free(&c->draft.listeners);
	workers_memory(g);
	if (g->options.entered)
		g->options.entered(g->options.entered_arg, g->policy);
	g->version++;
	gateway_divide_policy(g);
	gateway_slo_policy(g);
	gateway_links_policy(g);
	record_policy(g);
	if (c->kind == CHANGE_PLAN) /* the tenants are the same */
		gateway_each_failed(g, false);
	else
		gateway_each_entered(g, &c->instances);
	log_event(LOG_LEVEL_INFO, "policy", "how", how[c->kind], "name", g->name, "version",
		log_number(version, (double)g->version), NULL);
	if (c->kind == CHANGE_PLAN)
		g->plan_number = c->number;
	if (c->kind == CHANGE_PLAN && g->in_force->plan) {
		log_event(LOG_LEVEL_INFO, "plan", "number",
			log_number(number, (double)g->plan_number), "made", g->in_force->plan->made,
			NULL);
	} else if (c->kind == CHANGE_PLAN) {
		log_event(LOG_LEVEL_INFO, "plan-removed", NULL);
	}
	gateway_plan_log(g, c->draft.version);
}
