/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: the driver of AdapTBF for one of Weir's gates.
 *
 * A job is a leaf of the gate. Its tokens are one more bucket of the leaf, beside the policy's
 * buckets, which are read back from the gate. There are two modes:
 *
 *   hold    as in Lustre: a request waits for a token. A bucket of `depth`; unused tokens are lost.
 *           If the server has less room than tokens, requests pass in proportion to tokens: the
 *           leaf's weight is scaled by its tokens over those of its priority. (Lustre orders by the
 *           time of the next token, which gives about the same.)
 *   first   tokens are a first claim: requests with a token pass before those without, which share
 *           the idle rest by weight. Nothing is held while the server has room.
 *
 * In both an inactive job has no such bucket. One tenant's requests are never reordered.
 */
#pragma once

#include "control/lend/lend.h"
#include "control/controller.h"

enum adaptbf_gate_mode { ADAPTBF_GATE_FIRST, ADAPTBF_GATE_HOLD };

struct adaptbf_gate_leaf {
	weir_node node;
	uint64_t id;     /* of the job; ids are small, since a table has a place for each */
	uint32_t weight; /* of the job */
	double share;    /* weight of the leaf in the gate without a rule */
};

#define ADAPTBF_GATE_DEPTH 3 /* requests for which a bucket holds tokens, as in Lustre */
/* s: for how long a full window, or a late thread, may keep a request from its token */
#define ADAPTBF_GATE_SPAN 0.02

struct adaptbf_gate;
extern const struct lend_driver_ops adaptbf_gate_ops; /* its driver is the struct adaptbf_gate */

/* The site is borrowed; only its gate and counters are used. depth ≥ 1, 0: ADAPTBF_GATE_DEPTH; only for hold. 0, -EINVAL or -ENOMEM. */
int adaptbf_gate_new(
	struct site *site, enum adaptbf_gate_mode mode, double depth, struct adaptbf_gate **ret);
/* The buckets are left as they are. */
void adaptbf_gate_free(struct adaptbf_gate *d);

/* Use other leaves from the next step on. A job keeps its rule: a caller that gave it another node
 * has put the rule's bucket there (adaptbf_gate_rule). Removed leaves are left alone. 0, or -ENOMEM
 * with nothing changed. */
int adaptbf_gate_leaves(struct adaptbf_gate *d, const struct adaptbf_gate_leaf *leaves, size_t n);
/* Reserve memory so that the next adaptbf_gate_leaves of up to n leaves with ids up to max_id
 * cannot fail. 0 or -ENOMEM. */
int adaptbf_gate_reserve(struct adaptbf_gate *d, size_t n, uint64_t max_id);
bool adaptbf_gate_has(const struct adaptbf_gate *d, uint64_t id); /* true if the job has a leaf */
/* Change a leaf's share; share 0 hands its buckets and weight over to the caller until a share is
 * set again, which restores the same rule. A job without a leaf is ignored. */
void adaptbf_gate_share(struct adaptbf_gate *d, uint64_t id, double share);
/* Get the gate's settings for a job: the bucket behind its own ones, and the factor of its weight.
 * Return false, and set nothing, if it has no rule. */
bool adaptbf_gate_rule(const struct adaptbf_gate *d, uint64_t id,
	struct weir_bucket_spec *ret_bucket, double *ret_scale);
/* Only for hold: let a bucket hold at least the tokens of so many seconds (0, the default:
 * `depth`), so that a thread that is late once loses no tokens of jobs with high rates. */
void adaptbf_gate_span(struct adaptbf_gate *d, double seconds);
/* Set the unit of a token, before the first step: requests (the default) or bytes. */
void adaptbf_gate_unit(struct adaptbf_gate *d, enum weir_unit unit);
/* If tokens count requests: set the function that returns the mean cost of a leaf's requests in
 * tokens; NULL: one. A token is a request as limits count them, and a large request may count as
 * several. */
void adaptbf_gate_cost(
	struct adaptbf_gate *d, double (*cost)(void *arg, weir_node node), void *arg);

/* Return the number of leaves whose counters the last step read: those that had requests, or all after a request to another. */
size_t adaptbf_gate_looked(const struct adaptbf_gate *d);
