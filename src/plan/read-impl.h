/* SPDX-License-Identifier: BSD-3-Clause */
/* read-impl: shared by the parts that read a policy and its files for a plan. */
#pragma once

#include "plan/planning.h"

struct reading {
	struct planning *p;
	const struct planning_options *o;
	size_t pairs;
	const struct planning *base; /* NULL: none that was made with the same options */
	struct weir_err *err;
};

/* The path of a tenant: its own, or the only resource. */
struct path {
	const struct policy_stage *stage;
	unsigned n;
	unsigned storage; /* the place of its resource */
};
/* Return false if it is not known. */
bool planning_path(const struct planning *p, const struct weir_tenant *t, struct path *ret);

static inline uint32_t stage_index(const struct planning *p, struct policy_stage s)
{
	return s.index + (s.link ? (uint32_t)p->policy->n_resources : 0);
}

/* traced.c: read the trace of a tenant and reduce it to buckets, stage by stage. 0 or a negative errno and the reason. */
int planning_traced(struct reading *r, size_t index, const struct path *path);
void planning_kept_free(struct planning_trace *kept, unsigned n);
/* The bytes of a request on a link. */
double planning_link_work(const struct policy_link *l, bool to_server, unsigned op, uint64_t bytes);

/* limits.c: note the first max that holds requests of a trace; find the mins that do not fit beside the plan. */
void planning_note_max(const struct planning *p, const struct weir_resource *of,
	const struct trace *trace, struct planning_tenant *to);
void planning_note_mins(struct planning *p);
