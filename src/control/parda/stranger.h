/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stranger: detect requests inside an array that no host under PARDA has sent, and the slots that
 * hosts keep beside them.
 *
 * PARDA lowers windows until latency is at its threshold. Beside an uncontrolled initiator latency
 * may never get there, and the hosts would end with nothing. Each host compares the requests that
 * all hosts have inside (N) with the latency (L): with S requests of a stranger, L = (N + S) / C.
 * As N moves, L moves by 1/C for each request, which gives C; the rest of L is the stranger's. Each
 * host then keeps a floor of slots a share, so that all of them together have at least a part of
 * the capacity, with the stranger counted as one more host of the mean shares.
 *
 * A device that has become slower is distinguished in the same way: there L falls with N.
 *
 * Hosts exchange the floors that they found, and keep the upper median, so that their ratios stay.
 *
 * Pure: time is counted in steps, one a period. Any one unit of time; slots are requests.
 */
#pragma once

#include <stdbool.h>

#define PARDA_STRANGER_POINTS 6 /* steps that are kept */
/* Part of a host's fair part that the floor aims at. Half is promised; the rest is for errors of
 * measurement. */
#define PARDA_STRANGER_KEEP 0.65

struct parda_stranger_seen { /* by a host, in a step */
	double inside;       /* slots in use, of all hosts that count */
	/* … of hosts that no longer count and did not leave: their requests may still be inside */
	double vanished;
	double windows;   /* slots that they might use */
	double latency;   /* of their requests; 0: not known */
	double threshold; /* … its target */
	double shares;    /* of all hosts */
	unsigned hosts;   /* with shares */
	double wmin;      /* least window of a host */
	double period;    /* of a step */
	bool at_work;     /* peers have been at work for long: they know the array's capacity */
};

struct parda_stranger {
	struct parda_stranger_point {
		double inside, latency;
		unsigned age;            /* steps */
	} points[PARDA_STRANGER_POINTS]; /* latest first; all of one load of the array */
	unsigned n_points;
	double capacity;  /* C: slots per unit of time, by the points; 0: not known */
	double known;     /* the hosts' rate while latency is near the threshold */
	unsigned knowing; /* steps in that mean */
	double least;     /* latency: the least observed; 0: none */
	unsigned low;     /* steps in a row with a reason to draw a line */
	bool sure;        /* the hosts' part of the latency was observed: `known` holds */
	bool verified;    /* C is from a probe, not from a line */
	unsigned doubts;  /* probes in a row with much less than `known` */
	unsigned probing; /* times that the floor may still be doubled to test the latency */
	unsigned held;    /* steps since it was */
	struct parda_stranger_point from, base; /* before that; and before the first time */
	unsigned skipped;                       /* steps in a row, with a stranger */
	unsigned restless; /* steps before one is looked for again, after a skipped one */
	unsigned agree;    /* steps in a row with enough requests of a stranger */
	bool here;         /* there is a stranger */
	double requests;   /* S, when there is */
	double floor;      /* slots a share that the hosts should keep; 0: as the law says */
};

/* Skip a step in which the hosts' own demand moved the load: points before it are of another one. A stranger counts for some
 * more steps. */
void parda_stranger_skip(struct parda_stranger *s);

/* Run a step. Sets here, requests and floor. */
void parda_stranger_step(struct parda_stranger *s, const struct parda_stranger_seen *seen);

/* Return S of a stranger that most hosts have found: their own finding, or by the others' floor. */
double parda_stranger_requests(
	const struct parda_stranger *s, const struct parda_stranger_seen *seen, double floor);
