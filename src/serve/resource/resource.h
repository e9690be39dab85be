/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource: one resource of the policy on its thread: clients in front, a gate, a back end behind.
 *
 * A front end (serve/front) makes requests and submits them; in the loop's turn they pass the gate
 * in a batch, go to the back end in a batch, and return through `done`. Nothing on the way
 * allocates, formats or locks.
 *
 *   resource.c         the way of a request; shadow mode
 *   serve/resource/policy.c  the tree in the gate: installed, swapped, divided
 *   serve/resource/bypass.c  past the gate
 *   serve/resource/look.c    measurements
 *   serve/resource/slo.c     slos and long waits
 *   serve/resource/load.c    the loads that a controller of the window measures, and the window
 *   serve/resource/reads.c   a controller's own reads
 *   serve/resource/stall.c   volumes that do not answer
 *   serve/resource/keep.c    what the process that replaces this one gets
 */
#ifndef WEIR_SERVE_RESOURCE_RESOURCE_H
#define WEIR_SERVE_RESOURCE_RESOURCE_H

#include "control/capacity.h"
#include "policy/knobs/divide-table.h"
#include "control/shadow-device.h"
#include "policy/policy.h"
#include <weir/gate.h>
#include "serve/front/request.h"
#include "serve/loop/loop.h"

struct estimate;
struct policy_claim;
struct resource;
struct snapshot;
struct tap;

/* The functions that a front end calls; see serve/front/request.h. */
extern const struct front_gate resource_gate;
void resource_join(struct resource *r, struct client *c);
void resource_leave(struct resource *r, struct client *c);
void resource_unread(struct resource *r, struct client *c);
void resource_submit(struct resource *r, struct request *q);
void resource_finish(struct resource *r, struct request *q);
/* Record the latency that /metrics, status and top show, and that an slo means. Does nothing in
 * shadow mode: there the latency is that of the shadows. */
void resource_answered(const struct client *c, weir_time received, weir_time finished);
void resource_held(struct resource *r, const struct client *c, struct front_held *ret_held);
/* Submit a request of the gateway itself (a flush before the end): q->client is NULL, it bypasses
 * the gate and is counted for no tenant. On the loop's thread. */
void resource_submit_own(struct resource *r, struct request *q);

/* The gateway ends: do not wait for a back end that is unreachable, now or later. All its requests
 * return with -ESHUTDOWN. May be called again. On the loop's thread. */
void resource_abandon(struct resource *r);
/* Return the acknowledged bytes that the back end could not make durable. On the loop's thread. */
uint64_t resource_unflushed(const struct resource *r);

struct resource_config {
	const struct weir_resource *spec; /* its strings are copied */
	struct back *back;                /* owned from now on; started by resource_start */
	struct loop *loop;
	bool bare; /* no gate at all: requests go straight through; for benchmarks */
	/* Called when the back end was reached for the first time: resource_info is known from now
	 * on. On the loop's thread. May be NULL. */
	void (*known)(void *arg);
	void *known_arg;
};
int resource_new(const struct resource_config *c, struct resource **ret_resource);
int resource_start(struct resource *r); /* on the loop's thread */
/* Free it, without clients. Does not wait: no request may be inside. */
void resource_free(struct resource *r);
bool resource_busy(struct resource *r); /* requests are inside */
/* The resource is removed: disconnect its clients, and each that still comes. On the loop's thread. */
void resource_close(struct resource *r, const char *why);
bool resource_has_clients(const struct resource *r);
/* Any thread: return a number that changes when a request or a client comes, a reply leaves, or a
 * client leaves. */
uint64_t resource_activity(const struct resource *r);
/* Any thread, once it is known: does not change then. Known from the start, unless the back end is
 * in state BACK_STARTING (resource_starting, before resource_start); else when `known` was
 * called. */
const struct back_info *resource_info(const struct resource *r);
bool resource_starting(const struct resource *r);
struct back *resource_back(struct resource *r); /* on the loop's thread, or before the start */
const char *resource_name(const struct resource *r);

/* ---- for a process that replaces this one, on the loop's thread (serve/resource/keep.c) */

struct record_in;
struct record_out;
/* on: take back the requests that wait in the gate; from now on only the gateway's own requests pass. Those inside the back end
 * return. off: all of them go on, in their order. */
void resource_freeze(struct resource *r, bool on);
bool resource_is_quiet(const struct resource *r); /* frozen: nothing is inside, or to be answered */
void resource_each_waiting(struct resource *r, void (*fn)(void *arg, struct request *q), void *arg);
/* Write the levels of the tenants' buckets; and set them as they were, for as far as the policy has such buckets: filled for the
 * time that has passed, and never above what they are. 0, -EBADMSG or -ENOMEM. */
void resource_keep(struct resource *r, struct record_out *o);
int resource_take(struct resource *r, struct record_in *in);

/* ---- the policy, on the loop's thread (serve/resource/policy.c) */

/* Put the policy in force, as a whole: old nodes are removed when they are empty, waiting requests
 * move to the node of their client's new tenant in order. Borrows p until the next swap. On error
 * nothing has changed. */
int resource_swap(struct resource *r, const struct weir_policy *p, struct weir_err *err);

/* The same in steps of less than a millisecond, with requests passing between them. `to` is in
 * force from finish on; until then undo restores everything. */
struct resource_change { /* borrowed until finish or undo has returned */
	const struct weir_policy *to;
	const struct weir_bounds *bounds; /* of it; NULL: computed */
	const int *was;                   /* policy_swap_map; NULL: computed */
	/* By limit of `to`: the part that this gate has of it, 0 if it is not divided; NULL: as before, and all of new ones. */
	const double *rows;
	/* Borrowed for as long as `to`: the work of requests, from the resource's profile; NULL: it has none. */
	const struct estimate *estimate;
	/* The same: a plan's claims, by tenant of `to`; NULL: there is no plan. */
	const struct policy_claim *claims;
};
/* resource_swap with all of these. */
int resource_swap_all(struct resource *r, const struct resource_change *c, struct weir_err *err);
int resource_swap_start(struct resource *r, const struct resource_change *c, struct weir_err *err);
int resource_swap_step(
	struct resource *r, struct weir_err *err); /* 1: more; 0: finish; < 0: undo */
int resource_swap_finish(struct resource *r, struct weir_err *err); /* < 0: undo */
bool resource_swap_undo(struct resource *r);                        /* true: more */

/* Set this gate's part of each limit, 0 … 1, if the process has several resources: 1 until set. joints: of limits
 * whose part is 0, else NULL; NULL: as they are. By row, see struct policy_part; -EINVAL unless n is the number of the policy in force. tokens: by row, tokens of a burst that
 * it gets; set to those that it gave up or could not take; NULL: none. */
int resource_divide(struct resource *r, const double *rows, struct joint *const *joints,
	double *tokens, size_t n, struct weir_err *err);
/* Get the demand of each tenant, groups included, since the last call, and what held it. ret:
 * n_tenants. */
void resource_demand(struct resource *r, struct divide_demand *ret_demand, size_t n);

/* ---- the emergency exit, on the loop's thread (serve/resource/bypass.c) */

/* on: every request bypasses the gate, waiting ones first and in order; over changes of the policy
 * too, until it is turned off. Return how many waiting requests were released. */
uint32_t resource_bypass(struct resource *r, bool on);

/* ---- the window, on the loop's thread (serve/resource/load.c) */

/* The loads of tenants since the last call; see site_ops.loads. */
struct site_loads;
int resource_loads(struct resource *r, struct site_loads *ret);
/* Ask an upstream that can tell it for how long its limits hold our requests; the answer comes soon. */
void resource_ask_upstream(struct resource *r);
/* Set the window of a controller, unless in shadow mode; it holds, over changes of the policy too, for as long as that
 * names such a controller for this resource. */
void resource_window(struct resource *r, double window);

/* ---- slos and waits, on the loop's thread (serve/resource/slo.c) */

/* Take the records of tenants (index in the policy in force) with an slo since the last look, and
 * those of requests that wait beyond the bound; either may be NULL: there are none. Return true to be
 * called again even without activity. */
struct slo_batch;
typedef void resource_watch_fn(
	void *arg, int tenant, const struct slo_batch *batch, const struct slo_batch *waits);
bool resource_watch(struct resource *r, resource_watch_fn *fn, void *arg);

/* Call fn for each client that has a tenant, of the policy in force. On the loop's thread. */
typedef void resource_tenants_fn(
	void *arg, const struct weir_policy *p, const struct weir_who *who, int tenant);
void resource_tenants(struct resource *r, resource_tenants_fn *fn, void *arg);

/* Add the measurements to the snapshot (snapshot.h), in steps of some hundred µs. Return true if
 * there is more: call it again. *at: 0 for the first. */
bool resource_snapshot(struct resource *r, struct snapshot *s, size_t *at);

/* Copy every request that is submitted from now on into the tap (NULL: stop). */
void resource_tap(struct resource *r, struct tap *t);

#endif
