/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate: who passes next to one resource.
 *
 * A gate stands in front of one resource. Each request names its tenant, a leaf of the gate's
 * tree; the gate holds it until it may pass. One gate belongs to one thread; nothing here locks,
 * reads a clock or, after set-up, allocates.
 *
 *   weir_gate_submit   requests arrive
 *   weir_gate_next     those that may pass now, best first
 *   weir_gate_done     the resource has finished them
 *   weir_gate_wakeup   when to call weir_gate_next again if nothing else happens
 *
 * THE LAW
 * A request costs 1 or more requests, its bytes, and an estimate of device time; every knob names
 * the unit in which it counts. It is of one of three kinds: reads; writes and trims; and control, which is
 * flushes and questions (WEIR_STATUS). A tenant's requests stand in the order in which they came, control apart
 * from data; and reads apart from writes where a bucket of the tenant or of an ancestor tells these two from each
 * other, that is, counts some of reads, writes and trims and not all. The first of each is a head.
 *
 * 1. A head is eligible when in flight < window, every hold bucket of the tenant and of its ancestors
 *    that counts it admits it, and the tenant has no L-bucket or holds an R- or L-token for it. A hold or
 *    L-bucket of the tenant that refuses a head of data refuses every younger one of data that it counts.
 *    Control waits for no held data: only for buckets that count it and to which it costs something. Where there is a
 *    window in bytes, the request whose turn it is passes when the bytes in flight and its own are no more
 *    than that window, or nothing is in flight (so a request larger than the window passes alone), or it
 *    has no bytes.
 * 2. Among the eligible: first those that fit all their profile buckets, by priority; then those
 *    whose tenant holds an R-token; then the rest. Inside each class, fair queueing by weight, per level
 *    of the tree: of those that have not had more than their share the one whose request is due first.
 *    Of a tenant's heads in one class the oldest, but control before data that was held since it came. (Or FIFO or EDF, for comparison.)
 *    A tenant that may pass already is found to hold an R-token up to 34 µs after it has come in, or when its turn comes
 *    among the rest.
 *    One call of weir_gate_next for n requests looks at up to n tenants, or 24 if that is more, or 120 if
 *    that is less, whose buckets have come to admit them, in the order of time, and at 8 more that were idle
 *    and are not any more; and it finds up to 8 + n requests that an ancestor's bucket does not admit. Tenants
 *    not looked at yet count as held: of m such tenants each is looked at within m/8 + 1 calls, and
 *    weir_gate_wakeup says `now` until then. Tenants are looked at one after the other, and where no tenant
 *    has a priority, an ancestor a bucket, or the gate runs or a window in bytes, a head that is found to hold an R-token
 *    passes at once if no other head that holds one waits.
 * 3. A dispatch charges every hold bucket on the path to the root, the profile buckets if it fit
 *    them all, and R-tokens if there are any, else L-tokens if there is a limit. With several
 *    R-buckets, one that holds enough will do, and all that count the request pay: together they
 *    guarantee the most that any of them does, not their sum.
 * 4. A bucket admits when its level ≥ min(cost, size), and may go negative. Hold and L-buckets are
 *    charged as of the submit of the request, or as of when the one before it was charged if that is
 *    later, but of 20 ms before its dispatch at the most: so a caller that looks late takes nothing from
 *    a tenant that waits, nor does a knob that is set meanwhile. Over any interval service ≤ r·(t + 20 ms) + b + one largest cost. A profile
 *    bucket holds nobody: a request that does not fit loses its priority for as long as it does not fit,
 *    keeps its place in its tenant's queue, and is not charged to the profile. One that fits is charged
 *    as of the time from which it fit, not of its dispatch: waiting for others costs a tenant nothing of
 *    its profile.
 * 5. A waiting request is charged, moment by moment, to the first of these that keeps it: max (the
 *    tenant's own, then an ancestor's), tokens, window, turn. Limits come before the window: a request
 *    that its max holds would not pass through a wider one, and under load the window is full all
 *    the time. For the window, in requests or in bytes, waits the one request that would pass next with
 *    more room in it; all others that nothing else keeps wait for their turn. Time in the device is
 *    counted apart. A change of cause is seen at the next weir_gate_next.
 * 6. Two tenants of one parent, both backlogged and eligible in one class over an interval, get
 *    service W with |W_i/r_i − W_j/r_j| ≤ K(c_i/r_i + c_j/r_j): r weight, c the largest cost of the
 *    tenant itself (4 at least where costs are bytes or ns: tags are whole numbers of 2^-18; and c/r counts as 2^26
 *    requests, or 2^42 bytes or ns, at most), K = 5. And a tenant is served at least once per (2 + K/s) largest costs of its parent,
 *    where s is its part of the weights that are backlogged meanwhile. Nothing depends on tenants that are
 *    idle, on weights of the past or on the scale of weights. Runs of R requests make R + 1 of each c; a
 *    credit k adds 2k over the least weight. Each class has its own tags, so what min guarantees comes
 *    first and what is left is shared by weight on top of it: x = g + λ·r.
 * 7. Never lost, duplicated, or reordered within a tenant and kind, whatever knobs change. Submits of
 *    different tenants before one weir_gate_next may be permuted without changing what passes.
 *
 * Where an ancestor's bucket does not admit the request whose turn it is, every request under that
 * ancestor of the same or a lower class waits with it that is of a kind which the bucket counts: a smaller
 * request of a sibling may not slip past, else a stream of small requests would starve a large one. (A request of a
 * higher class may. With a request of control only control waits; in the orders FIFO and EDF all kinds do.)
 * Tenants whose requests wait so neither gain nor lose by that in fair queueing: when the bucket admits them again
 * each is as far ahead of or behind the others as it was.
 * The same holds for the window in bytes and the whole gate: while the request whose turn it is does not
 * fit, no request behind it passes. One that arrives meanwhile and comes before it, by class or by its
 * tags, passes if it fits.
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

/* A node of a gate's tree: an index, dense, reused after weir_gate_remove. The root is there from
 * the start. Only leaves other than the root take requests. */
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

/* One request: one cache line. The caller's memory, lent to the gate from submit until next hands
 * it out; the gate reads it again at done. Zero it, then fill what is the caller's. */
struct weir_req {
	struct weir_req *next; /* the gate's, while it has it */
	void *user;
	uint64_t offset;      /* bytes; only for runs of near requests */
	weir_time submitted;  /* set by submit */
	weir_time dispatched; /* set by next; the gate's until then */
	weir_node tenant;
	uint32_t requests; /* cost in requests; submit makes 1 of 0 */
	uint32_t bytes;    /* cost in bytes */
	uint32_t time;     /* cost in device time, ns, estimated */
	uint32_t deadline; /* order EDF: µs after submit. 0: the tenant's knob */
	uint8_t op;        /* enum weir_op */
	uint8_t class_;    /* set by next: enum weir_class */
	uint16_t reserved; /* 0; the gate's in builds with checks, which abort where a request is
	                      submitted again before it was done or cancelled, or done twice */
};

enum weir_class { WEIR_CLASS_PRIORITY = 0, WEIR_CLASS_RESERVED = 1, WEIR_CLASS_REST = 2 };

enum weir_order { WEIR_FAIR = 0, WEIR_FIFO = 1, WEIR_EDF = 2 }; /* inside a class */

struct weir_gate_config {
	uint32_t nodes;      /* room for that many nodes, the root included; grows by add */
	enum weir_unit cost; /* what fair queueing counts */
	enum weir_order order;
	double window;         /* as the knob; 0: 32 */
	uint64_t window_bytes; /* as the knob WINDOW_BYTES */
	uint32_t run;          /* as the knob RUN */
	uint64_t run_distance;
	uint64_t credit;     /* as the knob CREDIT */
	uint32_t histograms; /* tenants that may have histograms at once; 0: none are kept */
};

WEIR_API int weir_gate_new(const struct weir_gate_config *config, struct weir_gate **ret_gate);
/* Requests inside are the caller's again; to submit one elsewhere, zero it first. */
WEIR_API void weir_gate_free(struct weir_gate *g);

/* A new leaf under `parent`, weight 1, no limits. -EINVAL: no such parent; -EBUSY: the parent is a
 * leaf that holds requests; -ENOMEM. May allocate; not for the hot path. */
WEIR_API int weir_gate_add(struct weir_gate *g, weir_node parent, weir_node *ret_node);
/* Makes room for so many more nodes in one go, so that adding them does not move all nodes again and again. -ENOMEM:
 * nothing has changed. */
WEIR_API int weir_gate_reserve(struct weir_gate *g, uint32_t more);
/* -EBUSY while it has children, or requests queued or in flight; -EINVAL for the root. */
WEIR_API int weir_gate_remove(struct weir_gate *g, weir_node node);

/* ---- knobs */

enum weir_bucket_kind {
	WEIR_HOLD = 0,    /* waits until it admits */
	WEIR_PROFILE = 1, /* priority while it fits */
	WEIR_RTOKENS = 2, /* first claim on service; leaves only */
	WEIR_LTOKENS = 3, /* the right to any service; leaves only */
};

struct weir_bucket_spec {
	enum weir_bucket_kind kind;
	enum weir_unit unit;
	uint8_t ops; /* which operations it counts; 0: all */
	double rate; /* units per second, ≥ 0. To 1/1024 of a unit. 0 with R or L: granted only */
	double size; /* units, ≥ 1: the most it holds, and what it holds when new. An R-bucket should
	                hold what comes in while a request waits for a slot, else that much of the
	                min is lost: 2 requests more than 20 ms at its rate is a good size */
};

enum weir_knob_kind {
	WEIR_KNOB_WINDOW, /* value: requests inside at once, ≥ 0, fractions kept over time. Root */
	WEIR_KNOB_WEIGHT, /* value: 1/1024 … 2^20 */
	WEIR_KNOB_PRIORITY, /* value: 0 (first) … 63, among those that fit their profiles, or -1: none.
	                       A leaf that gets a profile bucket and has none gets 63. Leaf */
	WEIR_KNOB_DEADLINE, /* value: ns after submit, for the order EDF; leaf */
	WEIR_KNOB_BUCKETS, /* replaces all the node's buckets; one of the same kind, unit and ops as
	                       before keeps its level, cut to the new size */
	WEIR_KNOB_RGRANT,  /* value: add that many R-tokens to each R-bucket; negative takes */
	WEIR_KNOB_LGRANT,  /* the same for L */
	WEIR_KNOB_RUN,     /* value: most requests in a run of near ones, 0 or 1: none. Root */
	WEIR_KNOB_DISTANCE, /* value: bytes between one's end and the next's start that are near. Root */
	WEIR_KNOB_CREDIT,       /* value: burst credit in the gate's cost unit. Root */
	WEIR_KNOB_WINDOW_BYTES, /* value: bytes inside at once, whole, 0: no such window. Root */
};

struct weir_knob {
	weir_node node; /* WEIR_ROOT for those of the whole gate */
	enum weir_knob_kind kind;
	double value;
	const struct weir_bucket_spec *buckets; /* for WEIR_KNOB_BUCKETS; copied */
	uint32_t n_buckets;                     /* ≤ 64 */
};

/* All or nothing: on error (-EINVAL, -ENOMEM) no knob has changed. Takes effect at once, behind no
 * request. A leaf that has a priority but no profile bucket always fits. */
WEIR_API int weir_gate_set(struct weir_gate *g, weir_time now, const struct weir_knob *knobs,
	size_t n, struct weir_err *err);

/* ---- reading back. Nothing here changes the gate. */

/* The value of a knob as the gate holds it: a window to 1/65536, a deadline in whole ns. -EINVAL: no such
 * node; or weir_gate_set would not take this knob there; or it has no value (buckets and grants: below). */
WEIR_API int weir_gate_get(
	const struct weir_gate *g, weir_node node, enum weir_knob_kind kind, double *ret_value);

/* A node's buckets and what they hold at `now`: how many there are, of which the first `max` are written;
 * or -EINVAL: no such node. Hold buckets come first, then profile, R and L, each kind in the order in
 * which it was set. Sizes are rounded up to whole units, `ops` is never
 * 0. A level is negative while the bucket is in debt, and more than the size after a grant beyond it; so it
 * tells what is left of what was granted. Either array may be NULL. 64 is room for all. */
WEIR_API int weir_gate_get_buckets(const struct weir_gate *g, weir_time now, weir_node node,
	struct weir_bucket_spec *ret_specs, double *ret_levels, uint32_t max);

/* The node after `after` in the order of their numbers; WEIR_ROOT if that was the last. So this visits all:
 *
 *   weir_node n = WEIR_ROOT;
 *   do
 *           ...
 *   while ((n = weir_gate_next_node(g, n)) != WEIR_ROOT);
 *
 * Nodes may be removed on the way. Numbers are reused: a child may come before its parent. */
WEIR_API weir_node weir_gate_next_node(const struct weir_gate *g, weir_node after);
/* -EINVAL: no such node, or the root. */
WEIR_API int weir_gate_get_parent(const struct weir_gate *g, weir_node node, weir_node *ret_parent);
/* True if the node takes requests: it has no children, and is not the root. False if there is no such node. */
WEIR_API bool weir_gate_is_leaf(const struct weir_gate *g, weir_node node);

/* ---- requests. `now` never goes backwards from one call to the next; if it does, the gate
 * stands still until it has caught up. */

/* Takes all n. A request for something that is not a leaf, or with an operation that there is not,
 * is -EINVAL, and then none is taken. */
WEIR_API int weir_gate_submit(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n);
/* Up to `max` requests that pass now, in order; how many. 0: none may (see wakeup). */
WEIR_API size_t weir_gate_next(
	struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max);
WEIR_API void weir_gate_done(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n);
/* The earliest time at which weir_gate_next could give something that it would not give now,
 * without a submit or done; WEIR_NEVER if only those can help. `now` itself when it would give
 * something right now. May be early, never late. */
WEIR_API weir_time weir_gate_wakeup(struct weir_gate *g, weir_time now);

/* Takes back every queued request of `tenant` for which match(req, arg); drop(req, arg) receives
 * each, in order. For clients that left. O(the tenant's queue). Returns how many. Who submits one of
 * them again may, before the next call, set its `submitted` to what it was: then it waits since then. */
WEIR_API size_t weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg);

/* ---- what was measured */

enum weir_cause {         /* why requests waited */
	WEIR_WAIT_WINDOW, /* it would pass next, but the window, in requests or in bytes, is full */
	WEIR_WAIT_MAX,    /* the tenant's own hold buckets */
	WEIR_WAIT_ABOVE,  /* an ancestor's; whose: the ancestor whose own `held` grows */
	WEIR_WAIT_TOKENS,
	WEIR_WAIT_TURN, /* other requests come first */
	WEIR_CAUSES
};

struct weir_gate_stats {                       /* of one leaf since it was added, at `now` */
	uint64_t arrivals, dispatched, served; /* requests; cancelled ones are not arrivals */
	uint64_t bytes;                        /* dispatched */
	uint64_t by_class[3];                  /* dispatched, enum weir_class */
	uint32_t queued, in_flight;
	double wait_ns[WEIR_CAUSES]; /* request·ns waited, by cause, the waiting ones included; up
	                                to 2e21: 1,000 requests for 74 years */
	double device_ns;            /* request·ns in the device: ÷ a span = mean in flight */
	enum weir_cause cause;       /* why the oldest head waits now (TURN if nothing waits) */
	weir_node blocker;           /* cause MAX or ABOVE: whose bucket; else the tenant */
	weir_time oldest; /* `submitted` of the oldest queued request; WEIR_NEVER: none is queued */
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
	uint64_t full_served; /* of served: those that came back in that time */
};
WEIR_API void weir_gate_get_totals(
	struct weir_gate *g, weir_time now, struct weir_gate_totals *ret);
/* Time so far during which the node's own hold buckets held it; an inner one: a head under it. */
WEIR_API weir_time weir_gate_held(struct weir_gate *g, weir_time now, weir_node node);

/* Histograms (ns) are fed through a ring; done puts a record there and a full ring is emptied in
 * one go. drain empties it now, and makes room for the histograms of tenants that became active.
 * hist: NULL when the tenant has none (never active, or more tenants than `histograms`). */
WEIR_API void weir_gate_drain(struct weir_gate *g);
WEIR_API const struct weir_hist *weir_gate_hist_wait(const struct weir_gate *g, weir_node leaf);
WEIR_API const struct weir_hist *weir_gate_hist_device(const struct weir_gate *g, weir_node leaf);
WEIR_API uint64_t weir_gate_unrecorded(const struct weir_gate *g); /* for want of a histogram */

WEIR_API size_t weir_gate_memory(const struct weir_gate *g); /* bytes allocated */

WEIR_END_DECLS

#endif
