/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: decide which request passes next to one resource.
 *
 * A gate stands in front of one resource. Each request names its tenant, a leaf of the gate's
 * tree; the gate holds it until it may pass. One gate belongs to one thread; nothing here locks,
 * reads a clock or, after set-up, allocates.
 *
 *   weir_gate_submit   take requests that arrive
 *   weir_gate_next     get the requests that may pass now, best first
 *   weir_gate_done     report that the resource has finished them
 *   weir_gate_wakeup   get the time to call weir_gate_next again if nothing else happens
 *
 * THE LAW
 * A request costs 1 or more requests, its bytes, and an estimate of device time; every knob names
 * the unit in which it counts. It is of one of three kinds: reads; writes and trims; and control, which is flushes
 * and status requests (WEIR_STATUS). A tenant's requests are queued in the order in which they came, control apart
 * from data; and reads apart from writes if a bucket of the tenant or of an ancestor distinguishes them, that is,
 * counts some of reads, writes and trims and not all. The first of each is a head. (When an ancestor's buckets begin
 * or cease to distinguish them, a tenant that waits may keep its queues as they are until one of them was empty, or
 * until that ancestor stops one of its kinds: a knob of a group does no work for each tenant below it.)
 *
 * 1. A head is eligible when in flight < window, every hold bucket of the tenant and of its ancestors
 *    that counts it admits it, and the tenant has no L-bucket or holds an R- or L-token for it. A hold or
 *    L-bucket of the tenant that refuses a head of data refuses every younger one of data that it counts.
 *    Control does not wait for held data, only for buckets that count it at a cost above 0; but once a control
 *    request has gone before a head of data that is held, a bucket of the tenant that refuses this head refuses
 *    younger control, too. If there is a window in bytes, the request whose turn it is passes when the bytes in flight and its own are no more than that window,
 *    or nothing is in flight (so a request larger than the window passes alone), or it has no bytes.
 * 2. Among the eligible: first those that fit all their profile buckets, by priority; then those
 *    whose tenant holds an R-token; then the rest. Inside each class, fair queueing by weight, per level
 *    of the tree: of those that have not had more than their share the one whose request is due first.
 *    Of a tenant's heads in one class the oldest, but control before data that was held since the control request
 *    came, once for each such head of data. (Or FIFO or EDF, for comparison.)
 *    A new R-token of a tenant that may pass already is noticed up to 34 µs after it has come in, or when the
 *    tenant's turn comes among the rest. One call of weir_gate_next for n requests
 *    checks up to n tenants, or 24 if that is more, or 120 if that is less, whose buckets have come to admit them,
 *    in the order of time, and 8 more that have ceased to be idle; and it finds up to 8 + n requests that an
 *    ancestor's bucket does not admit. Tenants not checked yet count as held: of m such tenants each is checked
 *    within m/8 + 1 calls, and weir_gate_wakeup returns `now` until then. Tenants are checked one after the other,
 *    each as of the time at which its buckets came to admit it: calls of weir_gate_next while the window is full do
 *    not change what passes, unless more tenants are to be checked than one call checks.
 *    If no tenant has a priority, no ancestor a bucket, and the gate has neither runs nor a window in bytes, a head
 *    that is found to hold an R-token passes at once if no other head that holds one waits, and its tenant is not
 *    to be checked again by then. A tenant that may pass already, and then has got a token, is checked when there is
 *    room for one more request; so that the size of a batch does not change what passes. But that is so for up to 8
 *    tenants: when more wait for room, and while one that holds a token waits for its turn, all are checked at once.
 * 3. A dispatch charges every hold bucket on the path to the root, the profile buckets if it fit
 *    them all, and R-tokens if there are any, else L-tokens if there is a limit. With several R-buckets it is enough
 *    if one holds enough, and all that count the request pay: together they guarantee the most that any of them
 *    does, not their sum.
 * 4. A bucket admits when its level ≥ min(cost, size), and may go negative; a profile bucket when its level ≥ cost, so
 *    that a request which costs more than the size of one never fits. Hold and L-buckets are
 *    charged as of the submit of the request, or as of when the one before it was charged if that is
 *    later, but as of 20 ms before its dispatch at the earliest: so a late call of weir_gate_next takes nothing from
 *    a tenant that waits, nor does a knob that is set meanwhile. Over any interval service ≤ r·(t + 20 ms) + b + one
 *    largest cost. A profile bucket holds no request: one that does not fit loses its priority for as long as it
 *    does not fit, keeps its place in its tenant's queue, and is not charged to the profile. One that fits is
 *    charged as of the time from which it fit, not of its dispatch: waiting for others costs a tenant nothing of its
 *    profile.
 * 5. The time of a waiting request is counted, moment by moment, under the first of these causes that holds it: max
 *    (the tenant's own, then an ancestor's), tokens, window, turn. Limits come before the window: a request
 *    that its max holds would not pass through a wider one, and under load the window is full all the time. Only the
 *    one request that would pass next with more room waits for the window, in requests or in bytes; all others that
 *    nothing else holds wait for their turn. Time in the device is counted separately. A change of cause takes
 *    effect at the next weir_gate_next, weir_gate_set or weir_gate_cancel. While the window is full no ancestor's
 *    bucket is tried: a request that comes before all others then, and which such a bucket would refuse, waits for
 *    its turn until another one is done.
 * 6. Two tenants of one parent, both backlogged and eligible in one class over an interval, get
 *    service W with |W_i/r_i − W_j/r_j| ≤ K(c_i/r_i + c_j/r_j): r weight, c the largest cost of the
 *    tenant itself (4 at least where costs are bytes or ns: tags are whole numbers of 2^-18; and c/r counts as 2^26
 *    requests, or 2^42 bytes or ns, at most), K = 5. Each request's c/r is rounded, by 2^-28 at most where costs are
 *    bytes or ns, and by 2^-44 in requests: over n requests that adds up to n times as much to the difference, so
 *    that costs of 1 at a weight of 2^20 may shift shares by 1/256. And a tenant is served at least once per (2 + K/s) largest
 *    costs of its parent, where s is its part of the weights that are backlogged meanwhile. Nothing depends on
 *    tenants that are idle, on weights of the past or on the scale of weights. Runs of R requests make R + 1 of each
 *    c; a credit k adds 2k over the least weight. Each class has its own tags, so what min guarantees comes
 *    first and what is left is shared by weight on top of it: x = g + λ·r.
 * 7. Requests are never lost, duplicated, or reordered within a tenant and kind, whatever knobs change. Submits of
 *    different tenants before one weir_gate_next may be permuted without changing what passes.
 *
 * If an ancestor's bucket does not admit the request whose turn it is, every request under that ancestor waits with
 * it that is of the same or a lower class and of a kind which the bucket counts: a smaller request of a sibling may
 * not slip past, else a stream of small requests would starve a large one. (A request of a higher class may. With a
 * control request only control waits; in the orders FIFO and EDF all kinds do.) Tenants whose requests wait so
 * neither gain nor lose by that in fair queueing: when the bucket admits them again each is as far ahead of or
 * behind the mean of the others as it was. (This distance c/r counts as 2^27 requests, or 2^43 bytes or ns, at most.) So one that has only such requests gets as much service by weight, within
 * the bound of law 6, as the others get together from when the bucket admits until it next refuses the request whose
 * turn it is. (The others' requests of other kinds are part of that: a tenant whose reads take up its share passes
 * fewer writes.) The same holds for the window in bytes and the whole gate: while the request whose
 * turn it is does not fit, no request behind it passes. One that arrives meanwhile and comes before it, by class or
 * by its tags, passes if it fits.
 *
 * COST    O(depth of the tree) per request. Idle tenants cost memory only.
 */
#ifndef WEIR_GATE_H
#define WEIR_GATE_H

#include <weir/clock.h>
#include <weir/err.h>
#include <weir/hist.h>
#include <weir/units.h>
#include <stdbool.h>
#include <stddef.h>

WEIR_BEGIN_DECLS

struct weir_gate;

/* A node of a gate's tree: a dense index, reused after weir_gate_remove. The root always exists. Only leaves other
 * than the root take requests. */
typedef uint32_t weir_node;
#define WEIR_ROOT ((weir_node)0)

enum weir_op {
	WEIR_READ = 0,
	WEIR_WRITE = 1,
	WEIR_FLUSH = 2,
	WEIR_TRIM = 3,
	WEIR_STATUS = 4 /* asks about data, and moves none */
};
#define WEIR_OPS_ALL 0x1fu
#define WEIR_OPS(op) (1u << (op)) /* a mask of operations */

/* One request: one cache line. The caller's memory, lent to the gate from submit until weir_gate_next returns it;
 * weir_gate_done reads it again. Zero it, then fill in the caller's fields. */
struct weir_req {
	struct weir_req *next; /* used by the gate while it has the request */
	void *user;
	uint64_t offset;      /* bytes; only for runs of near requests */
	weir_time submitted;  /* set by submit */
	weir_time dispatched; /* set by next; used by the gate until then */
	weir_node tenant;
	uint32_t requests; /* cost in requests; submit changes 0 to 1 */
	uint32_t bytes;    /* cost in bytes */
	uint32_t time;     /* cost in device time, ns, estimated */
	uint32_t deadline; /* order EDF: µs after submit. 0: the tenant's knob */
	uint8_t op;        /* enum weir_op */
	uint8_t class_;    /* set by next: enum weir_class */
	uint16_t reserved; /* 0; used by the gate in builds with checks, which abort if a request
	                      is submitted again before it was done or cancelled, or done twice */
};

enum weir_class { WEIR_CLASS_PRIORITY = 0, WEIR_CLASS_RESERVED = 1, WEIR_CLASS_REST = 2 };

enum weir_order { WEIR_FAIR = 0, WEIR_FIFO = 1, WEIR_EDF = 2 }; /* inside a class */

struct weir_gate_config {
	uint32_t nodes;      /* room for this many nodes, the root included; grows by add */
	enum weir_unit cost; /* unit of fair queueing */
	enum weir_order order;
	double window;         /* as the knob; 0: 32 */
	uint64_t window_bytes; /* as the knob WINDOW_BYTES */
	uint32_t run;          /* as the knob RUN */
	uint64_t run_distance;
	uint64_t credit;     /* as the knob CREDIT */
	uint32_t histograms; /* tenants that may have histograms at once; 0: none are kept */
};

WEIR_API int weir_gate_new(const struct weir_gate_config *config, struct weir_gate **ret_gate);
/* Requests in the gate belong to the caller again; to submit one elsewhere, zero it first. */
WEIR_API void weir_gate_free(struct weir_gate *g);

/* Add a leaf under `parent`, with weight 1 and no limits. Return 0; -EINVAL: no such parent, or it cannot have
 * children (it has profile, R or L buckets, or is 32 levels deep); -EBUSY: the parent is a leaf that holds requests;
 * -ENOMEM. May allocate; not for the hot path. */
WEIR_API int weir_gate_add(struct weir_gate *g, weir_node parent, weir_node *ret_node);
/* Make room for this many more nodes at once, so that adding them does not move all nodes again and again. Return 0,
 * or -ENOMEM, then nothing has changed. */
WEIR_API int weir_gate_reserve(struct weir_gate *g, uint32_t more);
/* Return 0; -EBUSY if the node has children, or requests queued or in flight; -EINVAL for the root. */
WEIR_API int weir_gate_remove(struct weir_gate *g, weir_node node);

/* ---- knobs */

enum weir_bucket_kind {
	WEIR_HOLD = 0,    /* a request waits until the bucket admits it */
	WEIR_PROFILE = 1, /* priority while the request fits */
	WEIR_RTOKENS = 2, /* first claim on service; leaves only */
	WEIR_LTOKENS = 3, /* the right to any service; leaves only */
};

struct weir_bucket_spec {
	enum weir_bucket_kind kind;
	enum weir_unit unit;
	uint8_t ops; /* operations that it counts; 0: all */
	double rate; /* units per second, ≥ 0. To 1/1024 of a unit; of a profile bucket that holds
	                more than 2^21 units, or gets more a second, to 2^-17 of the rate. 0 with R
	                or L: granted only */
	double size; /* units, ≥ 1: the most it holds, and its level when new. An R-bucket should
	                hold the tokens that come in while a request waits for a slot, else that
	                much of the min is lost: 2 requests more than 20 ms at its rate is a good
	                size */
};

enum weir_knob_kind {
	WEIR_KNOB_WINDOW,   /* value: requests in flight at once, ≥ 0, fractions kept over time.
	                       Root */
	WEIR_KNOB_WEIGHT,   /* value: 1/1024 … 2^20 */
	WEIR_KNOB_PRIORITY, /* value: 0 (first) … 63, among tenants that fit their profiles, or
	                       -1: none. A leaf that gets a profile bucket and has none gets 63.
	                       Leaf */
	WEIR_KNOB_DEADLINE, /* value: ns after submit, for the order EDF; leaf */
	WEIR_KNOB_BUCKETS, /* replaces all the node's buckets; one of the same kind, unit and ops as
	                      before keeps its level, cut to the new size */
	WEIR_KNOB_RGRANT,  /* value: add this many R-tokens to each R-bucket; negative takes */
	WEIR_KNOB_LGRANT,  /* the same for L */
	WEIR_KNOB_RUN,     /* value: most requests in a run of near ones, 0 or 1: no runs. Root */
	WEIR_KNOB_DISTANCE,     /* value: most bytes between the end of one request and the start of
	                           a near one. Root */
	WEIR_KNOB_CREDIT,       /* value: burst credit in the gate's cost unit. Root */
	WEIR_KNOB_WINDOW_BYTES, /* value: bytes in flight at once, whole, 0: no such window. Root */
	WEIR_KNOB_LEVEL, /* value: level of the hold bucket with the index `n_buckets`; may be
	                    negative, or above its size */
};

struct weir_knob {
	weir_node node; /* WEIR_ROOT for knobs of the whole gate */
	enum weir_knob_kind kind;
	double value;
	const struct weir_bucket_spec *buckets; /* for WEIR_KNOB_BUCKETS; copied */
	uint32_t n_buckets;                     /* ≤ 64; for WEIR_KNOB_LEVEL an index */
};

/* Set knobs, all or none: on error (-EINVAL, -ENOMEM) no knob has changed. The change takes effect at once, not
 * behind queued requests. A leaf that has a priority but no profile bucket always fits. */
WEIR_API int weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs,
	size_t n, struct weir_err *err);

/* ---- reading back. Nothing here changes the gate. */

/* Get the value of a knob as the gate holds it: a window to 1/65536, a deadline in whole ns. -EINVAL: no such node;
 * or weir_gate_set would not take this knob there; or it has no value (for buckets and grants see below). */
WEIR_API int weir_gate_get(
	const struct weir_gate *g, weir_node node, enum weir_knob_kind kind, double *ret_value);

/* Get a node's buckets and their levels at `now`. Return how many there are, of which the first `max` are written;
 * or -EINVAL: no such node. Hold buckets come first, then profile, R and L, each kind in the order in which it was
 * set. Sizes are rounded up to whole units, `ops` is never 0. A level is negative while the bucket is in debt, and
 * above the size after a grant beyond it; so it shows how much of a grant is left. Either array may be NULL. There
 * are at most 64. */
WEIR_API int weir_gate_get_buckets(const struct weir_gate *g, weir_time now, weir_node node,
	struct weir_bucket_spec *ret_specs, double *ret_levels, uint32_t max);

/* Return the node after `after` in the order of their numbers; WEIR_ROOT if that was the last. To visit all:
 *
 *   weir_node n = WEIR_ROOT;
 *   do
 *           ...
 *   while ((n = weir_gate_next_node(g, n)) != WEIR_ROOT);
 *
 * Nodes may be removed during the walk. Numbers are reused: a child may come before its parent. */
WEIR_API weir_node weir_gate_next_node(const struct weir_gate *g, weir_node after);
/* Return 0, or -EINVAL: no such node, or the root. */
WEIR_API int weir_gate_get_parent(const struct weir_gate *g, weir_node node, weir_node *ret_parent);
/* Return true if the node takes requests: it has no children, and is not the root. Return false if there is no such
 * node. */
WEIR_API bool weir_gate_is_leaf(const struct weir_gate *g, weir_node node);

/* ---- requests. `now` must not be negative (it would count as 0), nor go backwards from one call to the next; if it
 * does, the gate's time stands still until it has caught up. */

/* Submit n requests. Return 0; or -EINVAL if one names a node that is not a leaf, or an unknown operation: then none
 * is taken. */
WEIR_API int weir_gate_submit(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n);
/* Return how many requests pass now, up to `max`; `ret_reqs` gets them in order. 0: none may (see
 * weir_gate_wakeup). */
WEIR_API size_t weir_gate_next(
	struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max);
WEIR_API void weir_gate_done(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n);
/* Return the earliest time at which weir_gate_next could return a request that it would not return now, without a
 * submit or done; WEIR_NEVER if only those can help; `now` itself if it would return one right now. The time may be
 * early, never late. */
WEIR_API weir_time weir_gate_wakeup(struct weir_gate *g, weir_time now);

/* Take back every queued request of `tenant` for which match(req, arg) is true; drop(req, arg) receives each, in
 * order. For clients that left. O(the tenant's queue). Return how many. A caller that submits one of them again may,
 * before the next call, set its `submitted` to the old value: then the request counts as waiting since that time. */
WEIR_API size_t weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg);

/* ---- statistics */

enum weir_cause {         /* why requests waited */
	WEIR_WAIT_WINDOW, /* the request would pass next, but the window, in requests or in
	                     bytes, is full */
	WEIR_WAIT_MAX,    /* the tenant's own hold buckets */
	WEIR_WAIT_ABOVE,  /* an ancestor's hold buckets: those of the ancestor whose
	                     weir_gate_held grows */
	WEIR_WAIT_TOKENS,
	WEIR_WAIT_TURN, /* other requests come first */
	WEIR_CAUSES
};

struct weir_gate_stats {                       /* one leaf since it was added, at `now` */
	uint64_t arrivals, dispatched, served; /* requests; cancelled ones are not arrivals */
	uint64_t bytes;                        /* dispatched */
	uint64_t by_class[3];                  /* dispatched, enum weir_class */
	uint32_t queued, in_flight;
	double wait_ns[WEIR_CAUSES]; /* request·ns waited, by cause, including the requests that
	                                still wait; up to 2e21: 1,000 requests for 74 years */
	double device_ns;            /* request·ns in the device: divided by a span, the mean
	                                number in flight */
	enum weir_cause cause;       /* why the oldest head waits now (TURN if nothing waits) */
	weir_node blocker;           /* cause MAX or ABOVE: the node of the bucket; else the
	                                tenant */
	weir_time oldest; /* `submitted` of the oldest queued request; WEIR_NEVER: none */
};
WEIR_API int weir_gate_get_stats(
	struct weir_gate *g, weir_time now, weir_node leaf, struct weir_gate_stats *ret_stats);

struct weir_gate_totals {
	uint64_t submitted, dispatched, served;
	uint32_t queued, in_flight;
	uint64_t in_flight_bytes;
	double window;
	uint64_t window_bytes; /* 0: none */
	weir_time full; /* time so far during which the window, in requests or in bytes, was full */
	uint64_t full_served; /* part of `served`: requests that were done in that time */
};
WEIR_API void weir_gate_get_totals(
	struct weir_gate *g, weir_time now, struct weir_gate_totals *ret);
/* Return the time so far during which the node's own hold buckets held it; for an inner node: a head under it. */
WEIR_API weir_time weir_gate_held(struct weir_gate *g, weir_time now, weir_node node);

/* Histograms (ns) are fed through a ring: weir_gate_done adds a record, and a full ring is drained. weir_gate_drain
 * drains it now, and allocates histograms for tenants that became active. The hist functions return NULL if the
 * tenant has none (never active, or more tenants than `histograms`). */
WEIR_API void weir_gate_drain(struct weir_gate *g);
WEIR_API const struct weir_hist *weir_gate_hist_wait(const struct weir_gate *g, weir_node leaf);
WEIR_API const struct weir_hist *weir_gate_hist_device(const struct weir_gate *g, weir_node leaf);
WEIR_API uint64_t weir_gate_unrecorded(const struct weir_gate *g); /* records without a histogram */

WEIR_API size_t weir_gate_memory(const struct weir_gate *g); /* bytes allocated */

WEIR_END_DECLS

#endif
