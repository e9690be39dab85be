/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: what steers a resource's gate beside the policy: PARDA, AdapTBF, static rules, or nothing.
 *
 * Each kind is one table of functions; the resource knows none of them by name. All of it happens on
 * the resource's thread. PARDA steps on the main thread, where other hosts are heard (agent.c), and
 * has nothing here but that it sets the window.
 *
 * A swap of the policy takes steps, between which requests pass and the controller in force goes on:
 *   prepare   some tenants: what can fail, and the rules that those of a new policy begin with
 *   (the gate gets new nodes, with their knobs; then knobs of the tenants that stay are set, some at a time)
 *   take      a tenant's knobs, rules and all, are those of this version from now on
 *   leave     they are no longer: its controller is another one, or a new tenant was undone
 *   begin     the swap is done. Cannot fail
 * or, where the kind is another from then on, the new one's prepare, take and begin, and the old one's leave and
 * end. So requests are never without the rules of the one or the other. When a swap is undone, tenants are taken
 * by the version in force again.
 * begin and end take little time however many tenants there are: they set no knobs and do not wait for the gate.
 *
 *   control.c   the table; static rules
 *   steward.c   AdapTBF
 *   lessee.c    pShift
 */
#ifndef WEIR_SERVE_HOST_CONTROL_H
#define WEIR_SERVE_HOST_CONTROL_H

#include "policy/impl.h"

struct resource;
struct snapshot;
struct snapshot_resource;

struct control_version { /* of the policy: the one in force, or the next */
	const struct weir_policy *policy;
	const struct weir_resource *spec;
	const struct weir_bounds *bounds;
	struct policy_rule *rules; /* by tenant; NULL where the kind has no prepare */
	bool next;
};

struct control_ops {
	const char *name; /* as the policy has it; NULL: none */
	bool window; /* it sets the window by resource_window; the policy's depth holds until then */
	/* The others may be NULL. prepare: tenants from … to − 1 of the next version, in order and again from 0
	 * for another one; their rules are none until it sets them. 0 or -ENOMEM. */
	int (*prepare)(struct resource *r, const struct control_version *v, size_t from, size_t to);
	void (*take)(struct resource *r, const struct control_version *v, size_t i, weir_node node);
	void (*leave)(struct resource *r, const struct control_version *v, size_t i);
	/* r's policy, nodes and rules are the new ones. */
	void (*begin)(struct resource *r, const struct weir_resource *spec);
	/* It rests: its rules are gone from the gate. It may begin again. */
	void (*end)(struct resource *r);
	/* Adds what it knows to the resource's part of the snapshot. */
	void (*look)(struct resource *r, struct snapshot *s, struct snapshot_resource *to);
	/* Where rules change between swaps: the one that tenant i has now, or would have in the next version. */
	void (*rule)(struct resource *r, const struct control_version *v, size_t i,
		struct policy_rule *ret);
	/* The resource goes. */
	void (*free)(struct resource *r);
};

/* By enum weir_controller. */
extern const struct control_ops *const control_table[WEIR_CONTROLLERS];

/* What any kind keeps of a resource that goes. */
void control_free(struct resource *r);

extern const struct control_ops steward_ops; /* AdapTBF */
extern const struct control_ops lessee_ops;  /* pShift */

#endif
