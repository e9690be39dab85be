/* SPDX-License-Identifier: BSD-3-Clause */
/* live-change: the `at:` of a scenario: set values and plans in running gateways, start and end clients. */
#include "base/no-memory.h"
#include "cli/live/live-impl.h"
#include "serve/http/http.h"
#include "sim/world/world.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

static const char *const tenant_keys[] = {"weight", "min", "max", "burst", NULL};

/* Send PUT /v1/set/KEY to one gateway, as weir set does. */
__attribute__((format(printf, 4, 5))) static int set_value(
	struct live_server *v, const char *value, struct weir_err *err, const char *fmt, ...)
{
	char key[1200], path[1300];
	struct weir_err why;
	json_t *reply;
	va_list ap;
	int r;

	va_start(ap, fmt);
	vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), "/v1/set/%s", key);
	r = remote_try(v->remote, "PUT", path, value, strlen(value), &reply, &why);
	if (r < 0)
		return weir_err_set(err, r, "%s of '%s': %s", key, v->name, why.text);
	json_decref(reply);
	return 0;
}

/* Set the tenant's keys of a change, in their own words. */
static int set_tenant(struct live_server *v, const char *path, const struct scenario_change *c,
	struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && tenant_keys[i]; i++) {
		yamldoc_node n = yamldoc_get(c->node, tenant_keys[i]);
		char *text = NULL;
		size_t len;
		FILE *f = n.id ? open_memstream(&text, &len) : NULL;

		if (!n.id)
			continue;
		if (f && yamldoc_text(n))
			fputs(yamldoc_text(n), f); /* `none` is not quoted */
		else if (f)
			live_text_node(f, n);
		r = f && fclose(f) == 0 ? set_value(v, text, err, "%s.%s", path, tenant_keys[i])
					: no_memory(err);
		free(text);
	}
	return r;
}

static int set_window(
	struct live *l, struct live_server *v, const struct scenario_gate *g, struct weir_err *err)
{
	char text[LIVE_DEPTH];

	if (g->given & SCENARIO_GATE_WINDOW)
		v->depth = g->config.window < LIVE_WINDOW_MAX ? g->config.window : LIVE_WINDOW_MAX;
	if (g->given & SCENARIO_GATE_WINDOW_BYTES)
		v->depth_bytes = g->config.window_bytes;
	return set_value(v, live_depth(v, text), err, "%s.depth", l->s->stations[v->device].name);
}

/* ---- by target */

static bool change_applies(
	const struct live *l, const struct live_tenant *t, const struct scenario_change *c)
{
	return scenario_fits(c->where, l->s->hosts[t->host].name) &&
	       scenario_fits(c->tenant, t->path);
}

static int change_tenant(struct live *l, const struct scenario_change *c, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !c->at_device && i < l->n_tenants; i++)
		if (change_applies(l, &l->tenants[i], c))
			r = set_tenant(&l->servers[l->tenants[i].server], l->tenants[i].server_path,
				c, err);
	for (uint32_t d = 0; r == 0 && c->at_device && d < l->s->n_devices; d++) {
		const struct scenario_station *st = &l->s->stations[d];

		if (!st->gate || !scenario_fits(c->where, st->name))
			continue;
		for (size_t i = 0; r == 0 && st->gate->policy && i < st->gate->policy->n_tenants;
			i++)
			if (scenario_fits(c->tenant, st->gate->policy->tenants[i].path))
				r = set_tenant(
					&l->servers[d], st->gate->policy->tenants[i].path, c, err);
	}
	return r;
}

static int change_host(struct live *l, const struct scenario_change *c, struct weir_err *err)
{
	int r = 0;

	for (size_t i = l->s->n_devices; r == 0 && i < l->n_servers; i++)
		if (scenario_fits(c->where, l->servers[i].name))
			r = set_window(l, &l->servers[i], &c->gate, err);
	return r;
}

static int change_device(struct live *l, const struct scenario_change *c, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->s->n_devices; i++)
		if (scenario_fits(c->where, l->servers[i].name))
			r = set_window(l, &l->servers[i], &c->gate, err);
	return r;
}

/* End clients that the change stops; live.c starts the others. */
static int change_workload(struct live *l, const struct scenario_change *c, struct weir_err *err)
{
	for (size_t i = 0; i < l->n_clients; i++) {
		struct live_client *k = &l->clients[i];

		if (!change_applies(l, k->tenant, c) ||
			!scenario_fits(c->workload, k->workload->name))
			continue;
		k->held = !c->run;
		if (k->held)
			live_client_end(k);
	}
	return 0;
}

/* ---- plans */

/* Put the server's policy file into force, without a restart; values that earlier changes set stay. */
static int put_policy(struct live_server *v, struct weir_err *err)
{
	char *text, *path;
	json_t *reply;
	size_t len;
	int r = files_read(v->file, HTTP_BODY_MAX, &text, &len, err);

	if (r < 0)
		return r;
	path = remote_path("/v1/policy?keep=1", "", "&name=", v->file, NULL);
	r = remote_try(v->remote, "PUT", path, text, len, &reply, err);
	if (r == 0)
		json_decref(reply);
	free(path);
	free(text);
	return r;
}

/* Follow the moment in the simulator's world, which makes the plans; put a new one into force. */
static int change_plan(struct live *l, const struct scenario_moment *m, struct weir_err *err)
{
	bool plan = false;
	int r;

	for (size_t i = 0; i < m->n; i++)
		plan |= m->changes[i].target == SCENARIO_ON_PLAN;
	l->world->now = m->time;
	r = world_change(l->world, m, err);
	if (r == 0 && plan)
		r = live_policy_write(l, err);
	for (size_t i = 0; r == 0 && plan && i < l->n_servers; i++)
		r = put_policy(&l->servers[i], err);
	return r;
}

/* ---- changes that cannot run live */

static const char *tenant_lacks(const struct live *l, const struct scenario_change *c)
{
	return yamldoc_has(c->node, "lab")
		       ? "of a tenant only weight, min, max, burst and slo can change"
		       : NULL;
}

static const char *window_lacks(const struct live *l, const struct scenario_change *c)
{
	if (c->rate > 0)
		return "the rate of a model cannot change";
	if ((c->gate.given & ~(unsigned)(SCENARIO_GATE_WINDOW | SCENARIO_GATE_WINDOW_BYTES)) ||
		((c->gate.given & SCENARIO_GATE_WINDOW) && c->gate.config.window < 1))
		return "of a gate only the window can change, to 1 or more";
	for (uint32_t h = 0; h < l->s->n_hosts; h++)
		if (c->target == SCENARIO_ON_HOST && scenario_fits(c->where, l->s->hosts[h].name) &&
			(l->host_server[h] < 0 || live_controlled(l, h)))
			return "the host has no window that can be changed";
	return NULL;
}

static const struct {
	/* Return the reason why the change cannot run live, or NULL. */
	const char *(*lacks)(const struct live *l, const struct scenario_change *c);
	int (*change)(struct live *l, const struct scenario_change *c, struct weir_err *err);
} targets[] = {
	[SCENARIO_ON_TENANT] = {tenant_lacks, change_tenant},
	[SCENARIO_ON_HOST] = {window_lacks, change_host},
	[SCENARIO_ON_DEVICE] = {window_lacks, change_device},
	[SCENARIO_ON_WORKLOAD] = {NULL, change_workload},
	[SCENARIO_ON_PLAN] = {NULL, NULL}, /* change_plan, after all others */
};

int live_change_check(const struct live *l, struct weir_err *err)
{
	for (size_t i = 0; i < l->s->n_moments; i++)
		for (size_t k = 0; k < l->s->moments[i].n; k++) {
			const struct scenario_change *c = &l->s->moments[i].changes[k];
			const char *what =
				targets[c->target].lacks ? targets[c->target].lacks(l, c) : NULL;

			if (what)
				return weir_err_at(err, -EINVAL, c->at,
					"this change cannot run live: %s", what);
		}
	return 0;
}

int live_change(struct live *l, const struct scenario_moment *m, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n; i++)
		if (targets[m->changes[i].target].change)
			r = targets[m->changes[i].target].change(l, &m->changes[i], err);
	return r ? r : change_plan(l, m, err);
}
