/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: what steers a resource's gate beside the policy: PARDA, AdapTBF, static rules, or nothing.
 *
 * Each kind is one table of functions; the resource knows none of them by name. All of it happens on
 * the resource's thread. PARDA steps on the main thread, where other hosts are heard (agent.c), and
 * has nothing here but that it sets the window.
 *
 * A swap of the policy goes
 *   prepare   what can fail: memory, and the rules that each tenant of the new policy begins with
 *   (the gate's new tree, buckets and weights, the rules' among them, in one step)
 *   begin     the swap is done. Cannot fail
 * or, where the kind is another from then on, the new one's prepare and begin, and the old one's end.
 * So requests are never without the rules of the one or the other.
 *
 *   control.c   the table; static rules
 *   steward.c   AdapTBF
 *   lessee.c    pShift
 */
#ifndef WEIR_PORT_CONTROL_H
#define WEIR_PORT_CONTROL_H

#include "ctl/policy-impl.h"

struct resource;
struct snapshot;
struct snapshot_resource;

struct control_ops {
	const char *name; /* as the policy has it; NULL: none */
	bool window; /* it sets the window by resource_window; the policy's depth holds until then */
	/* The others may be NULL. prepare: ret_rules has one for each tenant, all of them none. 0 or
	 * -ENOMEM; then nothing has changed. */
	int (*prepare)(struct resource *r, const struct weir_policy *p,
		const struct weir_resource *spec, struct policy_rule *ret_rules);
	/* r's policy, nodes and rules are the new ones. */
	void (*begin)(struct resource *r, const struct weir_resource *spec);
	/* It rests: its rules are gone from the gate. It may begin again. */
	void (*end)(struct resource *r);
	/* Tenant i has other buckets of its own from now on, as many as before. */
	void (*divided)(struct resource *r, size_t i, const struct weir_bucket_spec *own);
	/* Adds what it knows to the resource's part of the snapshot. */
	void (*look)(struct resource *r, struct snapshot *s, struct snapshot_resource *to);
	/* Between two of a kind's own steps: the rule that tenant i has now. */
	void (*rule)(struct resource *r, size_t i, struct policy_rule *ret);
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
