/* SPDX-License-Identifier: BSD-3-Clause */
/* steward-impl: what steward.c and steward-image.c share. Nobody else includes it. */
#ifndef WEIR_SERVE_HOST_STEWARD_IMPL_H
#define WEIR_SERVE_HOST_STEWARD_IMPL_H

#include "control/adaptbf/gate.h"
#include "control/adaptbf/jobnames.h"
#include "serve/resource/impl.h"
#include "serve/host/steward.h"

struct steward_plan {                /* of a policy that is to come */
	struct adaptbf_gate *driver; /* where the old one will not do; else NULL */
	uint64_t *ids;               /* by tenant; 0: a group */
	double *shares; /* by tenant: of all; of what the weights at the top sum up to: */
	double top;
	size_t n_ids;
	struct adaptbf_gate_leaf *leaves;
	size_t n_leaves;
};

struct steward {
	struct resource *resource;
	struct adaptbf *adaptbf;
	struct adaptbf_gate *driver; /* NULL: it rests */
	struct weir_policy_adaptbf config;
	bool learns;
	enum weir_unit unit; /* of the tokens in its books */
	struct jobnames names;
	uint64_t *ids; /* by tenant of the policy in force; 0: a group */
	size_t n_ids;
	struct steward_plan plan;
	struct loop_timer timer;
	weir_time due, stepped;
	uint64_t activity; /* of the resource, at the last step */
	double took;       /* ns of a step: collect, allocate, apply; lately, on average */
};

/* steward.c: makes it, resting, if there is none. 0 or -ENOMEM. */
int steward_make(struct resource *r);
/* What the policy says of it. */
void steward_configure(struct steward *s, const struct weir_resource *spec);
/* One period; the timer does it. For tests, which have times of their own. */
void steward_step(struct steward *s, weir_time now);

/* steward-image.c */
void steward_look(struct resource *r, struct snapshot *s, struct snapshot_resource *to);

#endif
