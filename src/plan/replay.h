/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay: traces through gates in virtual time, shifted against each other at random.
 *
 * A bound assumes that all bursts come together. A replay shows how late the requests of a percentile are when they come as
 * they came: each trace begins somewhere inside, goes on with its begin after its end, and passes the gates of its stages with its
 * priority and its buckets of each stage.
 *
 * METHOD   A stage is a gate with a window of W requests before a server that takes the estimated work of a request, one after
 *          the other. A request leaves a stage when its work is done, and not before its time inside, drawn from the profile, is
 *          over. Between the end of a trace and its begin there is a gap: the least with which the sequence fits the buckets. So
 *          no request of it is later than its bound. Traces of one group have the same shift and period.
 *          A tenant without a trace sends without pause: wherever a request arrives at a stage that has such a tenant, it
 *          finds the window full of best effort, and there is more as long as the request stays.
 *          A run begins with empty gates and goes on until it has come round to where it began, so that the busy periods that its
 *          begin has cut are whole.
 * INTERVAL The percentiles of the alignments are independent: their mean ± t s / √n, of Student's t at 95 %. It is an interval of
 *          the mean, for alignments like those that were drawn: a coincidence of bursts that is in one of a hundred alignments is
 *          most often in none of four.
 * COST     About 0.5 us a request and stage. Alignments may run in parallel.
 */
#ifndef WEIR_PLAN_REPLAY_H
#define WEIR_PLAN_REPLAY_H

#include "control/meister/plan.h"
#include "model/estimate.h"
#include "model/station.h"
#include "model/trace/trace.h"

/* The pieces of which a gateway makes a request at a resource: STATION_PIECE bytes each, but no more than REPLAY_PIECES, those of 32 MiB, the
 * largest request of a client. A trace from elsewhere may have larger ones. */
#define REPLAY_PIECES 128
static inline uint32_t replay_pieces(const struct trace_record *q)
{
	uint64_t n = (q->bytes + (uint64_t)STATION_PIECE - 1) / STATION_PIECE;

	if (q->op > TRACE_WRITE || n < 1)
		return 1;
	return n < REPLAY_PIECES ? (uint32_t)n : REPLAY_PIECES;
}

struct replay_stage {
	double rate;  /* work per second */
	double depth; /* W, ≥ 1 */
	bool link;    /* work is bytes; first in, first out inside a priority */
	double piece; /* work: a request is cut into pieces of this work, which pass one by one; 0: it is not */
	double untraced;    /* work of requests of tenants without a trace; 0: there is none */
	double most_inside; /* s: the time inside is cut to this */
	struct estimate_inside inside[ESTIMATE_OPS];
};

struct replay_tenant {
	const struct trace *trace; /* n ≥ 1 */
	weir_time start;           /* its begin after that of its group; ≥ 0 */
	const struct plan_hop *hop;
	uint32_t n_hops;
	double *const *work;      /* by hop and request */
	const uint32_t *priority; /* by hop; NULL: best effort */
	uint32_t
		group; /* tenants of one group are not shifted apart; at most the number of tenants */
	uint8_t ops;   /* a mask of operations that are measured; 0: all */
	double percentile; /* 0 … 100 */
};

struct replay_input {
	const struct replay_stage *stages;
	const struct replay_tenant *tenants;
	uint32_t n_stages, n_tenants;
	unsigned alignments; /* ≥ 1 */
	bool aligned;        /* all traces begin at once: no shift */
	weir_time most;      /* of an alignment; 0: the longest trace goes round once */
	uint64_t seed;
	/* run part(arg, i) for all i < parts, maybe in parallel; NULL: one after the other */
	void (*run)(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);
	void *pool;
};

struct replay_result { /* of a tenant; s */
	double at;     /* the percentile: mean over the alignments; NAN: no request was measured */
	double low, high; /* its interval; NAN with one alignment */
	double next;      /* what it may be in a span to come; NAN as `at` */
	double max;
	uint64_t requests;
};

/* ret: by tenant. 0, or -ENOMEM; -EINVAL: a gate refuses a bucket; -ERANGE: a trace is too long. */
int replay_run(const struct replay_input *in, struct replay_result *ret);

#define REPLAY_ALIGNMENTS 4
#define REPLAY_LONGEST    (INT64_C(1) << 58) /* ns: 9 years */

#endif
