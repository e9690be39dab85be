/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: shared by the files of this folder, the controllers at a resource (control.h), and their
 * tests.
 *
 * WHERE A REQUEST IS
 *   arrived   resource_submit put it there; the next turn takes it (again: taken back by a swap)
 *   the gate  between weir_gate_submit and weir_gate_next. `gate.user` is NULL
 *   inside    in the back end
 *   finished  the back end is done; the next step of the turn calls `done`
 *
 * A weir_req that the gate hands out, or that weir_gate_cancel drops, belongs to a request (`user`
 * is NULL: resource_request returns it) or to a shadow (`user` is the shadow).
 *
 * A request does not pass the gate when there is none (bare), in shadow mode, when the policy was
 * swapped to shadow mode while it waited (resource_pass), and while the gate is bypassed. Its
 * gate.user is then not NULL: resource_bypass_mark, or the resource itself.
 */
#ifndef WEIR_SERVE_RESOURCE_IMPL_H
#define WEIR_SERVE_RESOURCE_IMPL_H

#include "base/container.h"
#include <weir/hist.h>
#include "policy/knobs/swap.h"
#include "control/shadow-sender.h"
#include "control/meister/meter.h"
#include "control/slo.h"
#include "model/estimate.h"
#include "policy/impl.h"
#include "serve/resource/control.h"
#include "serve/resource/resource.h"
#include <stdatomic.h>

struct resource_bypassed { /* completed requests that bypassed the gate */
	uint64_t served, bytes, device_ns;
};

struct resource_flow { /* costs as limits count them */
	uint64_t requests, bytes;
};

/* Counts of one node of the gate. Without a gate: of one tenant, its index + 1. */
struct resource_count {
	struct resource_flow in[2], out[2]; /* into the gate and out of it; reads and the rest */
	uint64_t reads, writes, others;     /* submitted; CACHE and STATUS are others */
	uint64_t cost;                      /* the same in requests as limits count them */
	uint64_t waited;     /* passed in a later turn than that in which they came */
	uint64_t errors;     /* completed with an error; without those of clients that left */
	uint64_t skipped;    /* shadow mode: requests without a shadow of their own */
	uint32_t shadows[3]; /* in the gate or inside, now; by kind, as in gate/kind.h */
	uint32_t slo : 30;   /* index in serve/resource/slo.c; 0: no slo */
	uint32_t claim;      /* index in serve/resource/claim.c; 0: no claim */
	uint32_t marked : 1; /* false, except while nodes of several clients are collected */
	uint32_t late : 1;   /* its long wait was logged */
	struct resource_bypassed bypassed;
	/* As of the last look, in request·ns: time that requests waited for their own hold buckets,
	 * and the part for a controller's. */
	double max_ns, tokens_ns;
};

struct resource_part { /* data of a version, one per tenant; replaced by a swap */
	const struct weir_bounds *bounds; /* the version's, or own_bounds */
	struct weir_bounds *own_bounds;
	uint32_t *first; /* of a tenant's rows, see struct policy_part */
	double *rows;    /* this gate's part of each limit, 0 … 1 */
	struct controller_rule
		*rules; /* of a controller, as of the swap or a later resource_divide; or NULL */
	const struct policy_claim *claims; /* of a plan, borrowed; or NULL */
	struct resource_seen {             /* at the last resource_demand */
		struct resource_flow out[2];
		weir_time held;
		bool waiting; /* a tenant without clients and waiting requests stays so */
	} * seen;
};

static inline struct policy_part resource_part_all(const struct resource_part *t)
{
	return (struct policy_part){t->first, t->rows, t->rules, t->claims};
}

/* ---- serve/resource/part.c */
/* bounds: weir_policy_bounds, borrowed; NULL: computed. rules: a controller may set some. 0 or
 * -ENOMEM. */
int resource_part_new(const struct weir_policy *p, const struct weir_bounds *bounds, bool rules,
	struct resource_part *ret);
void resource_part_free(struct resource_part *t);
/* A tenant that stays keeps its parts until they are set again. was: policy_swap_map. */
void resource_part_keep(const struct weir_policy *from, const struct weir_policy *to,
	const int *was, const struct resource_part *old, struct resource_part *part);
/* Set the rows of a change (struct resource_change). A limit that is no longer divided keeps its part until the joint bucket is in force. */
void resource_part_give(const struct weir_policy *to, const int *was, const double *rows,
	struct resource_part *part);

struct resource_next { /* a swap under way */
	struct resource_change change;
	const struct weir_resource *spec;
	const struct controller *control; /* NULL: none */
	struct resource_part part;
	size_t prepared; /* tenants, by the controller */
	bool shadow_on;
};

struct resource_policy {
	struct resource *resource;
	struct policy_swap swap;
	struct resource_part part;
	weir_time looked, full; /* at the last resource_demand: time; time with the window full */
	struct resource_next next;
	struct loop_timer sweep;
	weir_time sweep_after;
};

struct resource_retired { /* counters of leaves that a group had */
	weir_node node;   /* the group's */
	struct weir_gate_stats stats;
	struct resource_count count;
};

struct resource_claims;
struct resource_joints;
struct resource_loads;
struct resource_reads;
struct resource_shadows;
struct resource_slos;
struct resource_stall;
struct resource_totals;

struct resource {
	/* owns its strings `name` and `back_name`; settings: of the policy in force */
	struct weir_resource spec;
	char *name, *back_name;
	struct back *back;
	void (*known)(void *arg); /* resource_config.known */
	void *known_arg;
	struct loop *loop;
	struct weir_gate *gate; /* NULL: bare */
	bool frozen;            /* no request passes: resource_freeze */
	bool shadow;            /* the policy in force says enforce: false */
	bool bypass;            /* resource_bypass turned it on */
	weir_time bypass_since; /* since when it is bypassed */
	bool started;
	const char *closed; /* why clients are refused: resource_close; NULL: they are not */
	weir_time now;      /* time of the last turn, for calls to the gate between turns */
	weir_time began;    /* of the last turn: `now` moves on in it */

	/* private to serve/resource/policy.c; counts and totals by resource_room. */
	const struct weir_policy *policy; /* in force; borrowed. NULL before the first swap */
	weir_node *nodes;                 /* of the policy's tenants in the gate */
	size_t n_nodes;
	double window; /* set by a controller; 0: not set */
	struct resource_policy
		*policy_of; /* freed by resource_policy_free; NULL before the first swap */
	const struct controller *control; /* in force; never NULL */
	struct resource_control *
		*controls; /* instances, by place in the table of controllers; or NULL */
	resource_control_post *control_post;
	void *control_post_arg;
	struct resource_peers peers;

	struct resource_loads
		*loads; /* serve/resource/load.c's; NULL: not measured under this policy */
	struct resource_reads *reads; /* serve/resource/reads.c's; NULL: there were none */
	uint64_t low, high;           /* bytes: the part that clients have touched; 0, 0: none */
	struct client own;            /* of the gateway's own requests; in no list */
	struct client *clients;
	uint32_t n_clients;
	struct client *left; /* clients whose waiting requests are still to be dropped, */
	weir_time left_at;   /* not before this time: serve/resource/client.c */

	/* by weir_node, n_counts of each */
	struct resource_count *counts;
	struct weir_hist *
		*totals; /* from receipt to reply (resource_answered), ns; NULL: none yet */
	size_t n_counts;

	struct resource_retired *retired; /* serve/resource/retire.c's */
	size_t n_retired;

	struct request_list again, arrived, finished; /* again: goes before arrived */
	uint32_t queued; /* requests that wait in the gate, without shadows */
	uint32_t inside; /* in the back end */
	bool at_once;    /* the last requests were done inside submit */

	/* whole resource, since its start */
	uint64_t submitted, dispatched, served, errors;
	uint64_t waited; /* as in the counts */
	/* see resource_activity; written only by its own thread */
	_Atomic(uint64_t) activity;
	uint64_t served_cost, served_bytes; /* input of the capacity estimate */
	struct capacity capacity;           /* learned; only if the spec states none */
	weir_time min_looked;   /* last comparison with the mins (serve/resource/load.c) */
	double min_part;        /* as of then: the mins over the capacity */
	double device_ns[5][8]; /* cost: time: device ns per request, by operation and size */
	const struct estimate *estimate; /* of its profile, borrowed; NULL: it has none */
	struct estimate_past *pasts;     /* by node, n_pasts of them, if it had a profile */
	size_t n_pasts;
	uint64_t served_work; /* ns, by the profile, of requests that passed the gate */
	struct resource_drift {
		weir_time at, full; /* as of the last look */
		uint64_t served, full_served, work;
		double measured, table; /* ns, lately */
		bool said;
	} drift;
	weir_time drained;  /* when histograms were last brought up to date */
	uint32_t undrained; /* served since */

	struct loop_turn turn;
	struct loop_timer timer;
	weir_time timer_at; /* WEIR_NEVER: not set */
	struct tap *tap;
	struct resource_shadows *shadows; /* NULL until shadow mode was on once */
	struct resource_totals *ring;     /* latencies on their way to `totals` */
	struct resource_claims *claims;   /* serve/resource/claim.c's; NULL: no tenant has one */
	struct resource_slos *slos;       /* serve/resource/slo.c's; NULL: no tenant has an slo */
	bool late;         /* serve/resource/slo.c: some count may have its `late` set */
	weir_time late_at; /* its next look for long waits; WEIR_NEVER: no request waits */
	struct resource_joints *joints; /* serve/resource/joint.c's; NULL: no limit is joint */
	struct resource_stall
		*stall; /* serve/resource/stall.c's; NULL: it has no volumes, or no gate */
};

static inline void resource_stir(struct resource *r)
{
	uint64_t n = atomic_load_explicit(&r->activity, memory_order_relaxed);

	atomic_store_explicit(&r->activity, n + 1, memory_order_relaxed);
}

/* Return 0 for reads, 1 for writes. A request without data counts in no limit of either: it is with
 * the reads. */
static inline unsigned resource_flow_of(const struct weir_req *q)
{
	return q->op != WEIR_READ && q->op != WEIR_STATUS;
}

/* ---- serve/resource/joint.c; r->joints is not NULL, unless noted */
/* A request, or a shadow, enters the gate (1) or leaves it (-1). */
void resource_joint_count(struct resource *r, const struct weir_req *q, int sign);
void resource_joint_turn(struct resource *r, weir_time now); /* give the gate its tokens */
weir_time resource_joint_next(const struct resource *r);     /* when turn has something to do */
/* Use the joint buckets of a table from now on, one a row, or none; the policy's rows are in force. 0 or -ENOMEM; then there
 * are none. */
int resource_joint_set(struct resource *r, struct joint *const *joints, size_t rows);
void resource_joint_clear(struct resource *r); /* r->joints may be NULL */

/* Count a request, or a shadow, that enters the gate or leaves it, passed or taken back. */
static inline void resource_queue_in(struct resource *r, const struct weir_req *q)
{
	struct resource_flow *f = &r->counts[q->tenant].in[resource_flow_of(q)];

	f->requests += q->requests;
	f->bytes += q->bytes;
	r->queued += !q->user;
	if (r->joints)
		resource_joint_count(r, q, 1);
}
static inline void resource_queue_out(struct resource *r, const struct weir_req *q)
{
	struct resource_flow *f = &r->counts[q->tenant].out[resource_flow_of(q)];

	f->requests += q->requests;
	f->bytes += q->bytes;
	r->queued -= !q->user;
	if (r->joints)
		resource_joint_count(r, q, -1);
}

/* ---- resource.c, for serve/resource/policy.c */

/* Return the request that contains this weir_req; the req's user must be NULL. */
static inline struct request *resource_request(struct weir_req *q)
{
	return container_of(q, struct request, gate);
}
/* Run one round: arrived and finished requests, requests that may pass now, the timer. Return true
 * to be called again at once. The loop calls it; tests do by hand, with their own time. */
bool resource_turn(struct resource *r, weir_time now);
/* Make room for `nodes` nodes in counts and totals, new ones empty. 0 or -ENOMEM. Before a new node
 * of the gate is used. */
int resource_room(struct resource *r, size_t nodes);
/* The node was removed from the gate: reset its counts. */
void resource_room_reset(struct resource *r, weir_node node);
/* Put a latency into the ring for `totals`. */
void resource_total(struct resource *r, weir_node node, weir_time ns);
/* Move all latencies into the gate's histograms and `totals`. */
void resource_drain(struct resource *r);
/* Send a request that was taken back from the gate (weir_gate_cancel) to the back end in the next
 * turn, past the gate. Decrements r->queued. */
void resource_pass(struct resource *r, struct request *q);
/* Resubmit a request that was taken back from the gate in the next turn, before new arrivals, to
 * its client's node. Decrements r->queued until then. */
void resource_again(struct resource *r, struct request *q);

/* ---- serve/resource/stall.c: volumes that do not answer. r->stall is not NULL, unless noted. */

int resource_stall_new(struct resource *r); /* once it has its gate; 0 or -ENOMEM */
void resource_stall_free(struct resource *r);
/* A request goes to the back end, or comes back. */
void resource_stall_sent(struct resource *r, struct request *q);
void resource_stall_back(struct resource *r, struct request *q);
/* Return true if a request that would go to the gate is kept, since its volume is stalled. */
bool resource_stall_holds(struct resource *r, struct request *q, bool again);
/* Return true if the request has left the gate early: its time is no measurement. r->stall may be NULL. */
bool resource_stall_ignores(const struct resource *r, const struct request *q);
/* Return the next list of kept requests; NULL: there are no more. *at: 0 for the first. r->stall may be NULL.
 * resource_stall_dropped: so many were taken from them. */
struct request_list *resource_stall_held(struct resource *r, size_t *at);
void resource_stall_dropped(struct resource *r, uint32_t n);
/* Look for volumes that have stalled; at resource_stall_next or later. */
void resource_stall_look(struct resource *r, weir_time now);
weir_time resource_stall_next(const struct resource *r); /* WEIR_NEVER: nothing is inside */
uint32_t resource_stalled(const struct resource *r);     /* volumes now; r->stall may be NULL */

/* ---- serve/resource/client.c, for the other files */

/* Take back waiting requests of the clients in r->clients, or of those in r->left, as weir_gate_cancel does; the queue
 * of each node once. */
void resource_cancel(struct resource *r, bool left, bool (*is_one)(const struct weir_req *, void *),
	void (*drop_one)(struct weir_req *, void *), void *arg);
/* Drop the waiting requests of all clients in r->left. */
void resource_drop_left(struct resource *r);
/* The last request of a client in r->left has returned: its memory may go. */
void resource_forget_left(struct client *c);
/* A request of the client is about to be answered. */
static inline void resource_returned(struct client *c)
{
	if (--c->in_flight == 0 && c->link_left)
		resource_forget_left(c);
}

/* ---- serve/resource/load.c, for resource.c: the learned capacity was renewed: warns, now and
 * then, if the mins of all tenants here are more than it. */
void resource_load_mins(struct resource *r, weir_time now);

/* The policy in force is another one, or the resource goes. */
void resource_loads_free(struct resource *r);

/* ---- serve/resource/reads.c: site_ops.read and forget */
int resource_reads_start(struct resource *r, struct site_burst *b);
void resource_reads_forget(struct resource *r, const struct site_burst *b);
void resource_reads_free(struct resource *r);

/* ---- serve/resource/time.c, for resource.c: cost: time */

uint32_t resource_time(struct resource *r, const struct weir_req *q);                 /* ns */
void resource_time_learn(struct resource *r, weir_time now, const struct request *q); /* at done */

/* ---- serve/resource/estimate.c: a resource with a profile */

/* Return the work of a request, in ns. */
static inline uint32_t resource_estimate(struct resource *r, const struct weir_req *q)
{
	double work = estimate_work(r->estimate, &r->pasts[q->tenant], q->op, q->offset, q->bytes);

	return work < UINT32_MAX ? (uint32_t)work : UINT32_MAX;
}
int resource_estimate_room(struct resource *r, size_t nodes); /* 0 or -ENOMEM */
/* The table in force is this one; there is room for all nodes. */
void resource_estimate_swap(struct resource *r, const struct estimate *e);
void resource_drift_look(struct resource *r, weir_time now); /* now and then, with a profile */
double resource_drift(const struct resource *r);             /* NAN: not known */

/* ---- serve/resource/claim.c */

void resource_claims_swap(struct resource *r); /* nodes and claims are the new ones */
void resource_claims_free(struct resource_claims *c);
/* A request arrives; claim: counts[node].claim, not 0. */
void resource_claim_note(struct resource *r, uint32_t claim, const struct weir_req *q);
/* Once a second: log tenants that came out of their profile, or into it. Return true if one is out. */
bool resource_claims_tick(struct resource *r);
struct snapshot_tenant;
void resource_claim_look(
	struct resource *r, uint32_t claim, struct snapshot *s, struct snapshot_tenant *to);

/* ---- serve/resource/shadow.c */

/* For resource.c: a request goes straight to the back end, and returns. */
void resource_shadow_sent(struct resource *r, struct request *q);
void resource_shadow_back(struct resource *r, weir_time now, struct request *q);
/* A client's request arrived: return its shadow's weir_req to be submitted, or NULL if it has
 * none. */
struct weir_req *resource_shadow_make(struct resource *r, weir_time now, struct request *q);
/* The gate handed a shadow out; process everything that is due at `now`. */
void resource_shadow_passed(struct resource *r, struct weir_req *req);
void resource_shadow_turn(struct resource *r, weir_time now);
weir_time resource_shadow_next(const struct resource *r);   /* when turn has something to do */
uint32_t resource_shadow_waiting(const struct resource *r); /* in the gate */
bool resource_shadow_busy(const struct resource *r);        /* in the gate, or inside */
void resource_shadow_refused(struct resource *r, struct weir_req *req); /* the gate refused it */
void resource_shadow_leave(struct client *c); /* it has no shadows from now on */
void resource_shadow_free(struct resource *r);

/* Add the client's part to the confidence of its tenant's figures; st: of the tenant. */
void resource_shadow_estimate(const struct resource *r, const struct client *c,
	const struct weir_gate_stats *st, struct shadow_estimate *ret);

/* Switch shadow mode on or off: 0 or -ENOMEM. off: take every shadow out of the gate. A swap from
 * one shadow policy to another calls off, then on, so that no shadow keeps a node. Sets
 * r->shadow. */
int resource_shadow_on(struct resource *r);
void resource_shadow_off(struct resource *r);

/* ---- serve/resource/bypass.c, for resource.c and serve/resource/look.c */

/* Return true if requests bypass the gate and are counted as such: shadow mode has its own
 * counts. */
static inline bool resource_bypasses(const struct resource *r)
{
	return r->bypass && r->gate && !r->shadow;
}
/* Return the gate.user of a request that bypasses the gate. */
static inline void *resource_bypass_mark(struct resource *r)
{
	return &r->bypass;
}
/* A request with the mark is done. */
void resource_bypass_done(struct resource *r, weir_time now, const struct request *q);

/* ---- serve/resource/slo.c: for serve/resource/policy.c (r->policy and nodes are the new ones),
 * serve/resource/total.c, resource.c */

void resource_slo_swap(struct resource *r);
void resource_slo_record(struct resource *r, weir_node node, weir_time latency);
/* Count the requests of a tenant of the version in force so far; 0 without an slo. */
struct site_slo resource_slo_seen(struct resource *r, size_t tenant);
void resource_slo_free(struct resource *r);
/* late_at has come: log tenants whose requests have waited for half of client_timeout. */
void resource_late_look(struct resource *r);
/* A client has come: a long wait of clients that have left is over. */
void resource_late_join(struct resource *r, const struct client *c);
/* Requests wait, or waited long until now, and late_at is WEIR_NEVER: set it. */
void resource_late_set(struct resource *r);

/* ---- serve/resource/look.c: what the gate says of a leaf, with requests that wait for a
 * controller's bucket as waiting for tokens, and not for a max of the tenant's own. */
int resource_stats(struct resource *r, size_t tenant, struct weir_gate_stats *ret);

/* Return true if a node never had a request: the gate is not asked for it. */
static inline bool resource_idle(const struct resource_count *n)
{
	return !n->reads && !n->writes && !n->others && !n->errors;
}

/* ---- serve/resource/retire.c, for serve/resource/policy.c and serve/resource/look.c */

/* Before a swap ends: nodes that none of the n next tenants takes over (was: policy_swap.stays) leave their counters to their
 * groups. */
void resource_retire(struct resource *r, const int *was, size_t n);
const struct resource_retired *resource_retired(
	const struct resource *r, weir_node node); /* or NULL */

/* ---- serve/resource/policy.c, for resource.c: nodes and whatever policy_of is, when the resource
 * goes. */
void resource_policy_free(struct resource *r);
/* Return the time for calls to the gate between turns: the loop's time, which never falls. */
weir_time resource_policy_now(struct resource *r);

/* Return the version in force, or the next one during a swap. */
struct controller_version resource_policy_version(struct resource *r, bool next);
/* Update the controller's rule of tenant i, in the policy in force. */
void resource_policy_rule(struct resource *r, size_t i);

/* Set the windows again, when the back end's default depth is known. */
void resource_policy_window(struct resource *r);

/* ---- serve/resource/divide.c: tenant i's own buckets as they stand in the gate; how many. ret:
 * POLICY_BUCKETS. */
unsigned resource_divide_own(struct resource *r, size_t i, struct weir_bucket_spec *ret);

#endif
