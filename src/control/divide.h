/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: split the limits of one tenant over several gates of one process, by demand.
 *
 * A tenant may have several limits (requests and bytes, reads and writes). Each gate has a part of
 * each limit. A flow is a stream of requests at one gate that uses its limits in a fixed ratio:
 * 4 KiB reads use 1 request for every 4096 bytes. The parts of all limits are computed together, so
 * that a gate that is bound by one limit keeps no more of the others than it can use.
 *
 * Every few milliseconds the caller passes the demand of each flow and the parts in force at each
 * gate, and gets the part that each gate should have. Telling a gate takes time; until the gate
 * confirms, both its old and its new part count. So at no moment do all gates together allow more
 * than a limit.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DIVIDE_LIMITS 6

struct divide_gate {
	bool present; /* in: a client is connected and may send requests any moment */
	bool busy;    /* in: has not yet confirmed its last part: gets no new one now */
};

struct divide_flow {
	size_t gate; /* in */
	/* in: demand for each limit if none held the flow, in parts of that limit; may exceed 1.
	 * Only the first d.limits count */
	double want[DIVIDE_LIMITS];
	double level; /* out: granted part of its dominant limit */
	/* scratch */
	double most;               /* demand for its dominant limit */
	double use[DIVIDE_LIMITS]; /* of each limit per unit of level, beyond floors */
	bool stopped;
};

struct divide_part {    /* of one limit at one gate, 0 … 1 */
	double applied; /* in: in force there, as far as is known */
	/* in and out: part that the gate was told last; equal to applied unless busy */
	double told;
	double target; /* out: part that it should have in the end */
};

struct divide {
	size_t gates, flows, limits;
	const struct divide_gate *gate;
	struct divide_flow *flow;
	struct divide_part *part; /* [limit × gates + gate] */
};

/* Set equal parts of one limit, from which the first targets start. */
void divide_start(struct divide_part *part, size_t gates);

/* Set every target. O(flows · (flows + gates) · limits). */
void divide_targets(const struct divide *d);

/* Set `told` so that the parts in force move towards the targets and the parts of no limit exceed
 * 1. Return true if a gate must be told a new part. O(limits · gates). */
bool divide_tell(const struct divide *d);

/* Return how far the parts in use may stay below demand that would fit, in the steady state: the
 * parts that idle gates keep, and changes too small to be worth telling. */
double divide_slack(size_t gates);
