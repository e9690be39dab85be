/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/gateway/layers.h"
#include "base/no-memory.h"
#include "policy/policy.h"
#include "policy/override/override.h"
#include "serve/store/state.h"
#include "serve/gateway/volume-edit.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void gateway_layers_free(struct gateway_layers *v)
{
	weir_policy_free(v->base);
	weir_policy_free(v->policy);
	extras_free(&v->extras);
	gateway_note_free(&v->refused);
	gateway_note_free(&v->remarks);
	state_free(v->overrides, v->n_overrides);
	tls_free(v->tls);
	gateway_profiles_free(&v->profiles);
}

/* Set the value; that of a tenant that its template has not made is kept until it is. */
static int override(struct weir_policy *p, const struct gateway_override *o, struct weir_err *err)
{
	int rc = policy_override_set(p, o->key, o->value, err);

	return rc == -ENOENT && policy_override_later(p, o->key, o->value, err) == 0 ? 0 : rc;
}

int gateway_layers_settle(struct gateway_layers *v, const struct gateway_volumes *fresh,
	struct weir_policy_remarks *remarks, struct weir_err *err)
{
	const struct gateway_instances none = {0};
	int rc = gateway_each_limits(
		v->gateway, v->policy, fresh, v->instances ? v->instances : &none, v->strict);

	return rc < 0 ? no_memory(err) : policy_override_check(v->policy, remarks, err);
}

int gateway_layers_build(const struct gateway *g, struct gateway_layers *v,
	struct gateway_note *note, struct weir_err *err)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_err why;
	int rc = remarks ? policy_copy(v->base, &v->policy) : -ENOMEM;

	if (rc == 0)
		rc = gateway_volume_layer(g, v->policy, &v->extras, &v->refused, &v->remarks);
	if (rc == 0 && v->instances)
		rc = gateway_each_make(v->policy, v->instances);
	if (rc < 0)
		no_memory(err);
	for (size_t i = 0; rc == 0 && i < v->n_overrides; i++) {
		rc = override(v->policy, &v->overrides[i], &why);
		if (rc < 0)
			weir_err_set(err, rc, "%s", why.text);
	}
	if (rc == 0)
		rc = gateway_layers_settle(v, NULL, remarks, err);
	for (size_t i = 0; rc == 0 && i < remarks->n_warnings && i < WEIR_POLICY_REMARKS; i++)
		gateway_note_add(note, "%s (warning)", remarks->warnings[i].text);
	if (rc == 0 && v->policy->network)
		gateway_note_add(note,
			"'network' and 'net' have no effect here: the gateway shapes no links");
	free(remarks);
	return rc;
}

int gateway_layers_drop_unfit(
	struct gateway_layers *v, struct gateway_note *note, struct weir_err *err)
{
	struct weir_policy *scratch;
	size_t kept = 0;

	if (policy_copy(v->base, &scratch) < 0)
		return no_memory(err);
	for (size_t i = 0; i < v->n_overrides; i++) {
		struct gateway_override *o = &v->overrides[i];
		struct weir_err why;
		int rc = override(scratch, o, &why);

		if (rc == 0) {
			v->overrides[kept++] = *o;
			continue;
		}
		if (rc == -ENOENT)
			weir_err_set(
				&why, rc, "%s has no tenant, resource or template for it", v->name);
		gateway_note_add(
			note, "%s %s, which was set, is dropped: %s", o->key, o->value, why.text);
		free(o->key);
		free(o->value);
	}
	v->n_overrides = kept;
	weir_policy_free(scratch);
	return 0;
}

void gateway_layers_name_set(const struct gateway_layers *v, struct weir_err *err)
{
	struct weir_err is = *err;
	char list[256] = "";
	size_t len = 0, n = 0;

	for (; n < v->n_overrides && n < 4 && len < sizeof(list) / 2; n++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s %s", n ? ", " : "",
			v->overrides[n].key, v->overrides[n].value);
	if (n)
		weir_err_set(err, 0, "%s; with what was set: %s%s", is.text, list,
			n < v->n_overrides ? ", …" : "");
}

void gateway_layers_say_undone(
	const struct gateway *g, const struct weir_policy *base, struct gateway_note *note)
{
	for (size_t i = 0; i < g->n_overrides; i++) {
		const struct gateway_override *o = &g->overrides[i];
		char is[POLICY_OVERRIDE_TEXT];

		if (policy_override_same(g->policy, base, o->key))
			continue;
		if (policy_override_show(base, o->key, is) == 0)
			gateway_note_add(
				note, "%s %s, which was set, is undone: %s", o->key, o->value, is);
		else
			gateway_note_add(note,
				"%s %s, which was set, is removed with its tenant or resource",
				o->key, o->value);
	}
}
