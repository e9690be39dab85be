/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap: change a gate from one policy to the next, with requests inside, in steps as short as the
 * caller wants.
 *
 * A tenant stays if its path stays and it remains a leaf or a group: it keeps its node, and so the
 * levels of its buckets, its place in the fair order and its counters. All others are new nodes or
 * leave. The waiting requests of a leaving node are handed back in their order, to be submitted
 * again; the node is removed when none of its requests is in flight any more.
 *
 *   policy_swap_start    memory; which tenants stay. The gate is unchanged
 *   policy_swap_step     adds some new nodes, or sets some knobs. Requests pass in between, all of
 *                        them by the old nodes; limits and weights of tenants that stay change step
 *                        by step
 *   policy_swap_undo     instead of finish: undoes the steps
 *   policy_swap_node     before finish: the node for a tenant's requests from then on
 *   policy_swap_finish   hands back requests that must move. Cannot fail
 *   policy_swap_sweep    now and then: removes leaving nodes that are empty
 *
 * The knobs are set whether the policy is enforced or not. Those of up to 256 tenants that stay change at once, in one
 * weir_gate_set, if all tenants and 15 for each that changes are no more than 4,096.
 */
#pragma once

#include "policy/impl.h"

struct policy_swap_how {
	const struct weir_policy *from; /* in force; NULL: the gate is empty */
	const struct weir_policy *to;
	struct policy_part part, from_part; /* of the tenants in this gate */
	/* weir_policy_bounds of both; NULL: computed. All borrowed pointers here stay valid until
	 * finish or undo. */
	const struct weir_bounds *bounds, *from_bounds;
	const int *was; /* policy_swap_map; NULL: computed */
	/* Rules in `part` and `from_part` change between the steps: update those of to's tenant i,
	 * and of its predecessor. May be NULL. */
	void (*refresh)(void *arg, size_t i);
	void *refresh_arg;
};

struct policy_swap {      /* one gate's; zero it */
	weir_node *nodes; /* of the tenants of the policy in force */
	size_t n_nodes;
	weir_node *leaving; /* children before their parents */
	size_t n_leaving;
	size_t sweep_from, sweep_to; /* progress of a sweep: checked; of those, still there */
	/* from start to finish or undo */
	struct policy_swap_how how;
	struct weir_bounds *own_bounds[2]; /* to's, from's, if they were computed */
	int *stays; /* by tenant of `to`: the index in `from` whose node it takes over, or -1 */
	weir_node *next_nodes, *next_leaving;
	weir_node *room_leaving; /* for `leaving` after it */
	size_t n_next, n_next_leaving;
	size_t added, set; /* tenants that have a node; that have their new knobs */
	struct policy_swap_batch *batch;
};

/* ret_was[i]: the index in `from` of the tenant with the path of to's tenant i, or -1; from may be
 * NULL. O(n log n), or O(n) for tenants at the same index. */
void policy_swap_map(const struct weir_policy *from, const struct weir_policy *to, int *ret_was);

/* 0, or -ENOMEM with a message; then there is nothing to undo. O(tenants). */
int policy_swap_start(
	struct policy_swap *s, const struct policy_swap_how *how, struct weir_err *err);
size_t policy_swap_new(const struct policy_swap *s); /* after start: how many nodes will be added */
/* Process about n more tenants. 1: there is more to do; 0: ready to finish; -ENOMEM or -EINVAL with
 * a message: undo. */
int policy_swap_step(
	struct policy_swap *s, struct weir_gate *g, weir_time now, size_t n, struct weir_err *err);
/* Undo about n tenants. Return true if there is more to do; false: the gate's tree and knobs are as
 * before. */
bool policy_swap_undo(struct policy_swap *s, struct weir_gate *g, weir_time now, size_t n);
/* All at once, from start to the last step; on error everything is as before. */
int policy_swap_begin(struct policy_swap *s, const struct policy_swap_how *how, struct weir_gate *g,
	weir_time now, struct weir_err *err);
/* Return the node of tenant i of the next policy (between begin and finish) or of the one in
 * force. */
weir_node policy_swap_node(const struct policy_swap *s, size_t i);

/* Hand back, by `moved`, every waiting request of a leaving node, and of the others every request
 * for which `moves` returns true (NULL: none); in order, tenant by tenant. The caller owns them
 * again. busy: the only nodes in which requests wait; NULL: any. */
void policy_swap_finish(struct policy_swap *s, struct weir_gate *g, weir_time now,
	const weir_node *busy, size_t n_busy, bool (*moves)(const struct weir_req *, void *),
	void (*moved)(struct weir_req *, void *), void *arg);

/* Check up to n leaving nodes and remove those with nothing in flight; `gone` (may be NULL) is
 * called for each. Return true if some were not checked. s->n_leaving: the least number that
 * remains. */
bool policy_swap_sweep(struct policy_swap *s, struct weir_gate *g, size_t n,
	void (*gone)(weir_node, void *), void *arg);

void policy_swap_free(struct policy_swap *s);
