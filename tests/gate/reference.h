/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reference: the law of gate/gate.h done naively, as an oracle for the real gate.
 *
 * Written from the text of the law, not from the gate: every question is answered by examining
 * every head and every bucket, in integers. It decides which requests may pass and which must, and
 * leaves open what the law leaves open: which request of one class goes first under fair queueing
 * (law-fair.c and law-tree.c check that), and up to a tick between the moment at which a bucket
 * admits and the moment at which the gate knows.
 */
#ifndef WEIR_TESTS_GATE_REFERENCE_H
#define WEIR_TESTS_GATE_REFERENCE_H

#include <weir/gate.h>

__extension__ typedef __int128 ref_parts; /* 1/(1024·10⁹) of a unit: rate × ns is an integer */
#define REF_UNIT ((ref_parts)1024 * 1000000000)

#define REF_TICK 1024 /* ns: how late the gate may find out that a bucket admits */
#define REF_COARSE                                                                                 \
	(33 * REF_TICK)       /* the same for an R-token of a request that may pass without it */
#define REF_LATE     20000000 /* ns: how long before its dispatch a request may be charged */
#define REF_NODES    512
#define REF_BUCKETS  8
#define REF_RESERVED 64 /* slots: priorities 0 … 63, then these */
#define REF_REST     65
#define REF_NO_SLOT  66 /* not eligible by its own buckets */

struct ref_bucket {
	struct weir_bucket_spec spec;
	ref_parts level, size; /* level as of stamp */
	uint64_t rate;         /* 1/1024 units per second */
	weir_time stamp;       /* when the level last changed other than by filling */
	bool charged;          /* by a charge, and not by a knob, which the gate knows at once */
	/* law 4, over all intervals: service − ∫ rate since the last restart, its smallest value
	 * at the beginning of an interval, and the largest cost */
	ref_parts excess, excess_min, largest;
	uint64_t rate_most; /* the largest rate since then */
	weir_time excess_stamp;
};

struct ref_node {
	bool used, leaf;
	uint32_t parent, children;
	int priority; /* -1: none */
	weir_time deadline;
	/* when the last request that passed by priority fitted, or the time of a later knob */
	weir_time fitted;
	/* time as of which the last request was charged, or the time of a later knob */
	weir_time as_of;
	unsigned n_buckets;
	struct ref_bucket b[REF_BUCKETS];
	struct weir_req **queue;                         /* [first, end), in the order of arrival */
	enum { REF_WHOLE, REF_SPLIT, REF_EITHER } split; /* whether reads and writes are apart */
	size_t first, end, room;
	/* expected statistics */
	uint64_t arrivals, dispatched, served, bytes, by_class[3];
	uint32_t in_flight;
	double waited; /* request·ns of requests that no longer wait, cancelled ones included */
};

struct ref_gate {
	struct ref_node nodes[REF_NODES];
	uint32_t n_nodes; /* highest index in use, plus 1 */
	double window;
	uint64_t window_bytes, in_flight_bytes; /* window_bytes 0: none */
	uint32_t in_flight, queued, run;
	uint64_t submitted, dispatched, served;
	enum weir_order order;
	weir_time now;
};

void ref_init(struct ref_gate *g, const struct weir_gate_config *config);
void ref_free(struct ref_gate *g);
void ref_add(struct ref_gate *g, uint32_t parent, uint32_t node);
void ref_remove(struct ref_gate *g, uint32_t node);
void ref_knob(struct ref_gate *g, weir_time now, const struct weir_knob *k);
void ref_submit(struct ref_gate *g, weir_time now, struct weir_req *r);
void ref_cancelled(struct ref_gate *g, weir_time now, struct weir_req *r);
void ref_done(struct ref_gate *g, struct weir_req *r);

static inline size_t ref_queued(const struct ref_node *n)
{
	return n->end - n->first;
}

/* The gate let r pass at `now`. Fail the test unless the law allows it: r is its tenant's head
 * of its kind, eligible, of the class in r->class_, and no request of a better class (or, under
 * FIFO and EDF, with a better key in the same class), and no older head of its tenant, had to go
 * first. Then charge it. */
void ref_pass(struct ref_gate *g, weir_time now, struct weir_req *r);
/* The gate let nothing pass at `now`. Fail the test if a request had to pass. */
void ref_nothing(struct ref_gate *g, weir_time now);
/* The gate's wakeup is `at`, after it let nothing pass. Fail the test if that is late. */
void ref_wakeup(struct ref_gate *g, weir_time now, weir_time at);
/* Compare all counters of the gate with the events. */
void ref_stats(struct ref_gate *g, struct weir_gate *real, weir_time now);

bool ref_bucket_admits(
	const struct ref_bucket *b, const struct weir_req *r, weir_time now, weir_time lag);
/* Return when the bucket admits r if nothing is charged meanwhile, or WEIR_NEVER. */
weir_time ref_bucket_due(const struct ref_bucket *b, const struct weir_req *r);
int64_t ref_cost(const struct weir_req *r, enum weir_unit unit);
void ref_bucket_init(struct ref_bucket *b, const struct weir_bucket_spec *spec, weir_time now);
void ref_bucket_fill(struct ref_bucket *b, weir_time now);

#endif
