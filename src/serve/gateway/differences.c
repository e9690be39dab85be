/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/differences.h"
#include "policy/impl.h"
#include "serve/gateway/impl.h"
#include "policy/index.h"
#include "policy/override/override.h"
#include "base/same.h"
#include <stdio.h>
#include <string.h>

#define LINES_MAX 100 /* more than a person reads */

struct changes {
	struct gateway_note *note;
	const struct weir_policy *from, *to;
	size_t n; /* found, shown or not */
};

/* Return the next note; NULL: the change is counted, but not shown. */
static struct gateway_note *next(struct changes *c)
{
	return c->n++ < LINES_MAX ? c->note : NULL;
}

static void key_of(struct changes *c, const char *name, const char *key)
{
	char full[1200], a[POLICY_OVERRIDE_TEXT], b[POLICY_OVERRIDE_TEXT];

	snprintf(full, sizeof(full), "%s%s%s", name, *name ? "." : "", key);
	if (policy_override_same(c->from, c->to, full) ||
		policy_override_show(c->from, full, a) < 0 ||
		policy_override_show(c->to, full, b) < 0)
		return;
	if (strcmp(a, "none") == 0 && strcmp(b, "none") == 0)
		return; /* no burst, beside a max that changed */
	gateway_note_add(next(c), "%s: %s -> %s", full, a, b);
}

static bool same_matches(const struct weir_tenant *a, const struct weir_tenant *b)
{
	if (a->n_match != b->n_match || a->is_default != b->is_default)
		return false;
	for (unsigned i = 0; i < a->n_match; i++)
		if (!policy_match_same(&a->match[i], &b->match[i]))
			return false;
	return true;
}

static bool same_servers(const struct weir_tenant *a, const struct weir_tenant *b)
{
	for (unsigned i = 0; a->n_servers == b->n_servers && i < a->n_servers; i++)
		if (strcmp(a->servers[i], b->servers[i]) != 0)
			return false;
	return a->n_servers == b->n_servers;
}

/* Note a tenant of a template that has no min any more, as there is no room for it. */
static void min_of(struct changes *c, const struct weir_tenant *was, const struct weir_tenant *is)
{
	if (is->min_off && !(was && was->min_off))
		gateway_note_add(next(c), "%s: its min is not in force: %s; it has its weight only",
			is->path, is->min_off);
}

static void tenants(struct changes *c)
{
	static const char *const keys[] = {"weight", "min", "max", "burst", "slo"};

	for (size_t i = 0; i < c->to->n_tenants; i++) {
		const struct weir_tenant *t = &c->to->tenants[i];
		int was = weir_policy_find(c->from, t->path);

		if (was < 0) {
			gateway_note_add(next(c), "%s: a new tenant", t->path);
			min_of(c, NULL, t);
			continue;
		}
		min_of(c, &c->from->tenants[was], t);
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			key_of(c, t->path, keys[k]);
		if (!same_matches(&c->from->tenants[was], t))
			gateway_note_add(next(c), "%s: matches differently", t->path);
		if (!same_servers(&c->from->tenants[was], t))
			gateway_note_add(next(c), "%s: has other servers", t->path);
	}
	for (size_t i = 0; i < c->from->n_tenants; i++)
		if (weir_policy_find(c->to, c->from->tenants[i].path) < 0)
			gateway_note_add(
				next(c), "%s: no longer a tenant", c->from->tenants[i].path);
}

/* Return true if the policy states an export whose name a volume of the API or of a folder has had. */
static bool takes_name(const struct weir_export *was, const struct weir_export *is)
{
	return was->back && was->from != POLICY_EXPORT_FILE && is->from == POLICY_EXPORT_FILE;
}

/* Return true if an export has other data. */
static bool has_moved(
	const struct changes *c, const struct weir_export *was, const struct weir_export *is)
{
	return was->offset != is->offset || !same_text(was->back, is->back) ||
	       strcmp(c->from->resources[was->resource].name,
		       c->to->resources[is->resource].name) != 0;
}

static void exports(struct changes *c)
{
	for (size_t i = 0; i < c->to->n_exports; i++) {
		const struct weir_export *e = &c->to->exports[i];
		int found = policy_index_export(c->from, e->name);
		const struct weir_export *was = found < 0 ? NULL : &c->from->exports[found];

		if (found < 0)
			gateway_note_add(next(c), "export %s: new", e->name);
		else if (has_moved(c, was, e))
			gateway_note_add(next(c),
				"export %s: changed%s%s; its clients are disconnected", e->name,
				takes_name(was, e) ? ", it was the volume " : "",
				takes_name(was, e) ? was->back : "");
		else if (was->size != e->size || was->read_only != e->read_only)
			gateway_note_add(next(c), "export %s: changed", e->name);
	}
	for (size_t i = 0; i < c->from->n_exports; i++)
		if (policy_index_export(c->to, c->from->exports[i].name) < 0)
			gateway_note_add(next(c),
				"export %s: removed; its clients are disconnected",
				c->from->exports[i].name);
}

/* ---- what the process has */

static bool same_list(const char *const *a, size_t n, const char *const *b, size_t m)
{
	for (size_t i = 0; i < n && n == m; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return n == m;
}

static void later(struct changes *c, const char *what, const char *why)
{
	gateway_note_add(next(c), "%s: unchanged until a restart: %s", what, why);
}

static void process(struct changes *c, bool own)
{
	const struct weir_policy *a = c->from, *b = c->to;

	if (!same_list(a->listen, a->n_listen, b->listen, b->n_listen))
		gateway_note_add(next(c), own ? "listen: changed; connections stay"
					      : "listen: unchanged: only the gateway's own policy "
						"file may name other "
						"addresses (change that, and send SIGHUP)");
	if (!same_list(a->api, a->n_api, b->api, b->n_api) || !same_text(a->token, b->token) ||
		!policy_access_same(&a->access, &b->access))
		later(c, "api", "a change must not cut off the way by which it can be undone");
	if (!same_text(a->state, b->state))
		later(c, "state", "the values and loans in force are kept in the old folder");
	if (!same_text(a->recordings, b->recordings))
		later(c, "recordings", "the API has opened its folder at the start");
	if (a->threads != b->threads)
		gateway_note_add(next(c), "threads: changed for new resources");
	if (a->buffers != b->buffers)
		gateway_note_add(next(c), "memory: changed");
	if (a->log_level != b->log_level || a->log_form != b->log_form)
		gateway_note_add(next(c), "log: changed");
}

static void resources(struct changes *c)
{
	for (size_t i = 0; i < c->to->n_resources; i++) {
		const struct weir_resource *r = &c->to->resources[i];
		const struct weir_resource *was = weir_policy_resource(c->from, r->name);

		if (!was) {
			gateway_note_add(next(c), "resource %s: new", r->name);
			continue;
		}
		key_of(c, r->name, "depth");
		key_of(c, r->name, "capacity");
		if (!gateway_resource_stays(was, r))
			gateway_note_add(next(c),
				"resource %s: closed and opened anew; its clients are disconnected",
				r->name);
	}
	for (size_t i = 0; i < c->from->n_resources; i++)
		if (!weir_policy_resource(c->to, c->from->resources[i].name))
			gateway_note_add(next(c),
				"resource %s: removed; its clients are disconnected",
				c->from->resources[i].name);
}

void gateway_note_changes(struct gateway_note *n, const struct weir_policy *from,
	const struct weir_policy *to, bool own)
{
	struct changes c = {n, from, to, 0};

	key_of(&c, "", "enforce");
	tenants(&c);
	resources(&c);
	exports(&c);
	if (!policy_tls_same(&from->tls, &to->tls) || from->tls.required != to->tls.required)
		gateway_note_add(next(&c), "tls: changed for new connections");
	process(&c, own);
	if (c.n > LINES_MAX)
		gateway_note_add(n, "and %zu more changes", c.n - LINES_MAX);
}
