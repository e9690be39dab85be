/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: the limits of one tenant over several gates of one process, by what is wanted where.
 *
 * A tenant may have several limits (requests and bytes, reads and writes). Each gate has a part of each
 * limit. A flow is a stream of requests at one gate that uses its limits in a fixed ratio: 4 KiB reads
 * use 1 request for every 4096 bytes. The parts of all limits are computed together, so that a gate that
 * is bound by one limit keeps no more of the others than it can use.
 *
 * Every few milliseconds the caller says what each flow wants and what is in force at each gate, and is
 * told what each gate is to have. Telling a gate takes time; until it confirms, what it had and what it
 * was told both count. So at no moment do all gates together allow more than a limit.
 *
 * Pure: no clock, no memory of its own.
 */
#ifndef WEIR_CONTROL_DIVIDE_H
#define WEIR_CONTROL_DIVIDE_H

#include <stdbool.h>
#include <stddef.h>

#define DIVIDE_LIMITS 6

struct divide_gate {
	bool present; /* in: a client is connected that may want something any moment */
	bool busy;    /* in: has not yet confirmed what it was told: is not told anything now */
};

struct divide_flow {
	size_t gate;                /* in */
	double want[DIVIDE_LIMITS]; /* in: what it would use of each limit if none held it, in parts
	                               of that limit; may exceed 1. Only the first d.limits count */
	double level;               /* out: what it is to have of its dominant limit */
	/* scratch */
	double most;               /* its want of its dominant limit */
	double use[DIVIDE_LIMITS]; /* of each limit per unit of level, beyond floors */
	bool stopped;
};

struct divide_part {    /* of one limit at one gate, 0 … 1 */
	double applied; /* in: in force there, as far as is known */
	double told;    /* in and out: what the gate was told last; equal to applied unless busy */
	double target;  /* out: what it is to have in the end */
};

struct divide {
	size_t gates, flows, limits;
	const struct divide_gate *gate;
	struct divide_flow *flow;
	struct divide_part *part; /* [limit × gates + gate] */
};

/* Equal parts of one limit: what the first targets start from. */
void divide_start(struct divide_part *part, size_t gates);

/* Sets every target. O(flows · (flows + gates) · limits). */
void divide_targets(const struct divide *d);

/* Sets `told` so that what is in force moves towards the targets and the parts of no limit exceed 1.
 * true: a gate is told something new. O(limits · gates). */
bool divide_tell(const struct divide *d);

/* How far the parts in use may stay below what is wanted and would fit, in the steady state: what idle
 * gates keep, and changes too small to be worth telling. */
double divide_slack(size_t gates);

#endif
