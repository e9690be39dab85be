/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layers: the policy in force, made of its layers.
 *
 *   base        the operator's file, or a policy that was applied
 *   volumes     that came through the API, or that folders have
 *   tenants     that templates have made
 *   overrides   values that `weir set` changed
 *
 * Each layer is added to a copy of the one below; then limits by size get their values, and the whole is checked.
 */
#pragma once

#include "serve/gateway/each.h"
#include "serve/gateway/impl.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/plan/profile.h"

struct gateway_layers { /* of a version that is not complete yet; zero it */
	struct weir_policy *base, *policy;
	struct extras extras;
	struct gateway_note refused; /* volumes that do not fit */
	struct gateway_note remarks; /* gateway_version */
	struct gateway_override *overrides;
	size_t n_overrides;
	const char *text, *name; /* borrowed */
	struct tls *tls;
	struct gateway_profiles profiles;
	struct gateway *gateway;
	struct gateway_instances *instances; /* of the change; NULL: none */
	bool strict; /* a change of one value or volume: refuse it rather than take a min in force away */
};

void gateway_layers_free(struct gateway_layers *v);

/* Make v->policy of all layers. An override that does not fit is an error. Warnings are noted. */
int gateway_layers_build(const struct gateway *g, struct gateway_layers *v,
	struct gateway_note *note, struct weir_err *err);
/* The last step of it, which depends on sizes and on all limits together; and the check. To be repeated when sizes become known;
 * fresh: volumes that are opened and not in force yet, or NULL. */
int gateway_layers_settle(struct gateway_layers *v, const struct gateway_volumes *fresh,
	struct weir_policy_remarks *remarks, struct weir_err *err);
/* Keep the overrides that fit the base; note and drop the others. */
int gateway_layers_drop_unfit(
	struct gateway_layers *v, struct gateway_note *note, struct weir_err *err);
/* The base alone was right: add the overrides to the message that it does not fit with. */
void gateway_layers_name_set(const struct gateway_layers *v, struct weir_err *err);
/* Note the overrides in force that are removed, and differ from a new base. */
void gateway_layers_say_undone(
	const struct gateway *g, const struct weir_policy *base, struct gateway_note *note);
