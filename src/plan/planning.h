/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * planning: the plan of a policy, with the files that it names.
 *
 *   read.c      from a policy, its profiles and its traces to the input of control/meister/plan.h, and the plan
 *   replayed.c  the same traces through gates (replay.h)
 *   remedies.c  the changes with which every slo would hold
 *   json.c      all of it as an object; the plan's file
 *   step.c      a plan that differs little from the one in force
 *   place.c     which workloads fit on equal servers (place.h)
 *
 * The caller reads files, so that an API may allow less than a command line.
 */
#ifndef WEIR_PLAN_PLANNING_H
#define WEIR_PLAN_PLANNING_H

#include "control/meister/plan.h"
#include "model/estimate.h"
#include "model/trace/trace.h"
#include "plan/replay.h"
#include "policy/plan.h"
#include <jansson.h>

#define PLAN_DIGEST 65 /* SHA-256 in hex, with its NUL */
#define PLAN_BEYOND 10 /* requests beyond a percentile, without which it means little */
/* Of an slo: what a replayed percentile leaves of it. This, and the room of the buckets that goes with it, were chosen on the first halves of
 * recorded traces: each was halved again, and with less some tenants that the one part admitted were late with the other. */
#define PLAN_MARGIN 0.60

struct planning_stage { /* a resource or a link */
	const char *name;
	bool link, used;
	double depth;
	struct estimate estimate; /* of a resource */
	char digest[PLAN_DIGEST]; /* of its profile; "": it has none */
	const char *largest_of;   /* path of the tenant that has the largest request; NULL: none */
	bool assumed; /* that tenant has no trace, and its requests are as large as a client's can be */
	double untraced; /* work of the largest request of tenants without a trace; 0: none */
	double taken;    /* part of its time that buckets and mins take together, in the long run */
	double min_most; /* that of the largest min */
	const char *min_of; /* path of its tenant; NULL: there is none */
};

struct planning_trace { /* kept for a replay */
	struct trace trace;
	double **work; /* by stage of the path, and request */
};

struct planning_tenant { /* one that is planned, or has a trace and no slo */
	size_t tenant;   /* index in the policy */
	size_t requests; /* of its trace */
	size_t of_kind;  /* those of the kind of its slo */
	bool too_short;  /* for its percentile */
	bool borrowed;   /* its trace and hops are those of `base` … */
	bool own_hop;    /* … but not its hops */
	bool held;       /* requests of its trace, by this max of this tenant: */
	size_t held_by;  /* index in the policy: itself, or a group of it */
	struct weir_limit held_max;
	struct planning_trace *kept; /* NULL: not kept */
};

struct planning {
	struct weir_policy *policy;
	size_t first_new; /* tenants from here on are those of --admit; n_tenants: none */
	char digest[PLAN_DIGEST];
	struct planning_stage *stage; /* resources, then links: as in the plan's input */
	struct plan_stage *stages;
	struct planning_tenant *tenant; /* those that are planned, then those without an slo */
	struct plan_tenant *tenants;
	uint32_t n_traced; /* in.n_tenants of them are planned */
	size_t *unknown;   /* indices in the policy: an slo without a trace */
	size_t n_unknown;
	struct plan_input in;
	struct plan plan;
	bool planned;                   /* `plan` is set */
	struct replay_result *replayed; /* by planned tenant; NULL: not replayed */
	bool by_replay;                 /* slos are judged by it */
	double margin;                  /* of an slo, for a replayed percentile */
	/* options with which it was made */
	size_t pairs;
	int inside;
	double error; /* -1: the profiles' own */
	struct estimate work;
};

/* Read a file that the policy names at `at`, malloc'ed. of: the tenant of a trace. A new tenant's file is named by its --admit. */
enum planning_file { PLANNING_PROFILE, PLANNING_TRACE };
typedef int planning_reader(void *arg, enum planning_file kind, const struct weir_tenant *of,
	bool is_new, struct weir_place at, const char *name, char **ret_text, size_t *ret_len,
	struct weir_err *err);

struct planning_override { /* a value of `weir set` */
	const char *key, *value;
};

struct planning_options {
	struct policy_text policy, admit; /* admit: text NULL: none */
	const struct planning_override *
		overrides; /* laid over the policy; those of tenants that it does not state are left out */
	size_t n_overrides;
	weir_policy_reader *policy_reader;
	void *policy_arg;
	planning_reader *read;
	void *arg;
	const struct estimate *work; /* of resources without a profile; NULL: they are refused */
	int inside;                  /* index in planning_inside */
	const double *
		error; /* part by which requests may take longer than estimated; NULL: the profile's own */
	size_t pairs; /* 0: PLAN_PAIRS */
	bool keep;    /* traces, for a replay */
	const struct planning *
		base; /* of the same policy without --admit: its traces are not read again; NULL: none */
};
extern const char *const planning_inside[]; /* "max", …; ends with NULL */

/* Read the policy and its files, reduce the traces, and plan. 0, or a negative errno and the reason; remarks: NULL, or all reasons
 * for which the policy was refused. After a failure *ret is free of memory. */
int planning_read(const struct planning_options *o, struct planning *ret,
	struct weir_policy_remarks *remarks, struct weir_err *err);
void planning_free(struct planning *p);

/* Read one resource and its profile as a stage; the parts of a planning_read, for other plans. 0, or a negative errno and the reason. */
int planning_resource(const struct planning_options *o, const struct weir_resource *from,
	struct planning_stage *to, struct plan_stage *in, struct weir_err *err);
/* Write the work of a trace on a resource; ret has room for it. Return that of the largest piece of a request. */
double planning_arrivals(
	const struct estimate *e, const struct trace *t, struct meister_arrival *ret);

/* Write the SHA-256 of a file's text, and of that of the file that its `tenants` names, behind a NUL; tenants: NULL: none. */
void planning_digest(const char *text, size_t len, const char *tenants, char ret[PLAN_DIGEST]);

/* Parse the work of a request: a time, a rate of bytes, or both: 100us+500MB/s. 0 or -EINVAL. */
int planning_work(const char *word, struct estimate *ret, struct weir_err *err);

static inline const struct weir_tenant *planning_tenant(const struct planning *p, uint32_t i)
{
	return &p->policy->tenants[p->tenant[i].tenant];
}
/* Return the bound of a tenant beyond its slo, in s; negative: the margin; INFINITY. */
double planning_miss(const struct planning *p, uint32_t i);
/* Return true if the tenant's slo holds, as it is judged; all of them, and every min fits. That of a tenant whose trace is held by a max
 * does not. */
bool planning_holds(const struct planning *p, uint32_t i);
bool planning_feasible(const struct planning *p);
/* Return true if the buckets of the plan and the mins of the policy do not fit a stage together; the buckets alone do. */
bool planning_crowded(const struct planning *p, uint32_t stage);
/* Return true if a max holds a tenant's trace, or a min does not fit: then no remedy is sought. */
bool planning_limited(const struct planning *p);

/* Replay the traces, which were kept. Judged with a margin m, the buckets get 1 / (1 - m)² times
 * their rates and sizes. If the plan misses an slo by its bounds, its priorities are first searched for slos that are
 * all larger by one factor. 0, -ENOMEM, or -EINVAL and the reason. */
struct planning_replay {
	unsigned alignments;
	uint64_t seed;
	bool judge;    /* slos by the replay */
	double margin; /* 0 … 1 */
	void (*run)(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);
	void *pool;
};
int planning_replay(struct planning *p, const struct planning_replay *how, struct weir_err *err);

/* Take over the plan in force, an object as planning_file makes it, as far as it holds for the traces of p, which is planned and judged
 * by bounds. Tenants keep their buckets unless they exceed them by more than PLAN_DRIFT, and their priorities, but for those of one
 * tenant if that is needed. If no such plan meets every slo, p stays as it is. ret_changed, by planned tenant: other buckets or
 * priorities than in force. 0 or -ENOMEM. */
#define PLAN_DRIFT 0.1
enum planning_step { PLANNING_SAME, PLANNING_FEW, PLANNING_ALL };
int planning_step(
	struct planning *p, const json_t *force, bool *ret_changed, enum planning_step *ret_step);

struct planning_remedies {
	double *slo; /* by tenant, s: of all that are late together; 0: none does, or it is not late */
	double *rate;  /* by tenant: a part of its trace's rate; 0: none does, or it is not late */
	double *depth; /* by stage; 0: none does */
	bool *without; /* by tenant */
};
/* Find remedies if an slo is missed. 0 or -ENOMEM; always freed. */
int planning_remedies(const struct planning *p, struct planning_remedies *ret);
void planning_remedies_free(struct planning_remedies *r);

/* All of it as an object; the plan's file. r: NULL if all slos are met. NULL: no memory. */
json_t *planning_json(const struct planning *p, const struct planning_remedies *r);
json_t *planning_file(const struct planning *p, const char *made);

#endif
