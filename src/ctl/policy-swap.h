/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-swap: brings a gate from one policy to the next, with requests inside.
 *
 * A tenant stays when its path and its being a leaf or a group stay: it keeps its node, so the levels of
 * its buckets, its place in the fair order and its counters. All others are new nodes or leave. A leaver's waiting requests are handed back in their order, to be submitted
 * again; when nothing of it is in flight any more its node goes too.
 *
 *   policy_swap_begin    adds what is new and sets every knob of the version. May fail: then nothing
 *                        has changed
 *   policy_swap_node     in between: where a tenant's requests go from now on
 *   policy_swap_finish   hands back what must move. Cannot fail
 *   policy_swap_sweep    now and then: lets leavers go that are empty
 *
 * Nothing may be submitted or passed between begin and finish. Whether the policy is enforced is not
 * looked at here: its knobs are set either way.
 */
#ifndef WEIR_CTL_POLICY_SWAP_H
#define WEIR_CTL_POLICY_SWAP_H

#include "ctl/policy-impl.h"

struct policy_swap {      /* one gate's; zero it */
	weir_node *nodes; /* of the tenants of the policy in force */
	size_t n_nodes;
	weir_node *leaving; /* children before their parents */
	size_t n_leaving;
	/* between begin and finish */
	weir_node *next_nodes, *next_leaving;
	size_t n_next, n_next_leaving;
};

struct policy_swap_how {
	const struct weir_policy *from; /* in force; NULL: the gate is empty */
	const struct weir_policy *to;
	struct policy_part part;      /* of to's tenants in this gate */
	const struct weir_knob *more; /* of the root, set with the tenants' */
	size_t n_more;
};

/* 0; -ENOMEM or -EINVAL and why. */
int policy_swap_begin(struct policy_swap *s, const struct policy_swap_how *how, struct weir_gate *g,
	weir_time now, struct weir_err *err);

/* The node of tenant i of the policy that is coming (between begin and finish) or in force. */
weir_node policy_swap_node(const struct policy_swap *s, size_t i);

/* Hands back, by `moved`, every waiting request of a leaver, and of those that stay every request for
 * which `moves` (NULL: none); in order, tenant by tenant. They are the caller's again. */
void policy_swap_finish(struct policy_swap *s, struct weir_gate *g, weir_time now,
	bool (*moves)(const struct weir_req *, void *), void (*moved)(struct weir_req *, void *),
	void *arg);

/* Removes leavers of which nothing is in flight; `gone` (may be NULL) is told of each. How many are
 * still there. O(leavers). */
size_t policy_swap_sweep(
	struct policy_swap *s, struct weir_gate *g, void (*gone)(weir_node, void *), void *arg);

void policy_swap_free(struct policy_swap *s);

#endif
