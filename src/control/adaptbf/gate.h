/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: a gate of ours as the server that control/adaptbf/adaptbf controls.
 *
 * A job is a leaf of the gate. Its tokens are a bucket of the leaf's, beside those that it has by
 * the policy, which are read back from the gate; in one of two ways:
 *
 *   hold    as in Lustre: a request waits for a token. A bucket of `depth`; what nobody uses is lost.
 *           Where the server has less room than tokens, requests go in proportion to tokens: the
 *           leaf's weight is scaled by what it has over what its priority gives. (Lustre goes by
 *           the time of the next token, which comes to about the same.)
 *   first   tokens are a first claim: requests that have one go before those that have none, and
 *           those share what is idle by weight. Nothing is held while the server has room.
 *
 * In both an inactive job has no such bucket. One tenant's requests are never reordered.
 */
#ifndef WEIR_CONTROL_ADAPTBF_GATE_H
#define WEIR_CONTROL_ADAPTBF_GATE_H

#include "control/adaptbf/adaptbf.h"
#include <weir/gate.h>

enum adaptbf_gate_mode { ADAPTBF_GATE_FIRST, ADAPTBF_GATE_HOLD };

struct adaptbf_gate_leaf {
	weir_node node;
	uint64_t id;     /* of the job; ids are small: a table has a place for each */
	uint32_t weight; /* of the job */
	double share;    /* of the leaf in the gate, while it has no rule */
};

#define ADAPTBF_GATE_DEPTH 3 /* requests for which a bucket holds tokens, as in Lustre */
#define ADAPTBF_GATE_SPAN                                                                          \
	0.02 /* s: for how long a full window, or a thread that is late, may keep a
                                  request from its token */

struct adaptbf_gate;
extern const struct adaptbf_driver_ops adaptbf_gate_ops; /* its driver is the struct adaptbf_gate */

/* `gate` is borrowed. depth ≥ 1, 0: ADAPTBF_GATE_DEPTH; only for hold. 0, -EINVAL or -ENOMEM. */
int adaptbf_gate_new(struct weir_gate *gate, enum adaptbf_gate_mode mode, double depth,
	struct adaptbf_gate **ret);
/* The buckets are left as they are. */
void adaptbf_gate_free(struct adaptbf_gate *d);

/* Other leaves from the next step on. A job that had a rule has it still: whoever gave it another node put the
 * rule's bucket there (adaptbf_gate_rule). Leaves that go are left alone. 0, or -ENOMEM, and then nothing changed. */
int adaptbf_gate_leaves(struct adaptbf_gate *d, const struct adaptbf_gate_leaf *leaves, size_t n);
/* The next adaptbf_gate_leaves of up to n leaves with ids up to max_id cannot fail. 0 or -ENOMEM. */
int adaptbf_gate_reserve(struct adaptbf_gate *d, size_t n, uint64_t max_id);
bool adaptbf_gate_has(
	const struct adaptbf_gate *d, uint64_t id); /* one of its leaves is this job's */
/* From now on the leaf has another share; or somebody else has its buckets and weight (share 0) until it is given
 * back with a share, and then with the same rule. A job without a leaf is ignored. */
void adaptbf_gate_share(struct adaptbf_gate *d, uint64_t id, double share);
/* What stands in the gate for a job: the bucket behind its own, and by how much its weight is scaled.
 * false: nothing, and nothing is set. */
bool adaptbf_gate_rule(const struct adaptbf_gate *d, uint64_t id,
	struct weir_bucket_spec *ret_bucket, double *ret_scale);
/* Only for hold: a bucket holds at least what comes in in so many seconds (0, as it begins: `depth` it is), so
 * that a thread that is late for once loses no tokens of those who have many. */
void adaptbf_gate_span(struct adaptbf_gate *d, double seconds);
/* What a token counts: requests, as it begins, or bytes. Before the first step. */
void adaptbf_gate_unit(struct adaptbf_gate *d, enum weir_unit unit);
/* Where tokens count requests: what a leaf's cost on average, in tokens; NULL: one. A token is a request as limits
 * count them, and a large one may be several. */
void adaptbf_gate_cost(
	struct adaptbf_gate *d, double (*cost)(void *arg, weir_node node), void *arg);

/* Leaves whose counters the last step read: those that had requests, and all when a request came to another one. */
size_t adaptbf_gate_looked(const struct adaptbf_gate *d);

/* All leaves back to their own buckets. 0 or the gate's error. */
int adaptbf_gate_release(struct adaptbf_gate *d, weir_time now);

#endif
