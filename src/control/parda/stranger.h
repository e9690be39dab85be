/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stranger: requests inside an array that no host under PARDA has sent, and what the hosts keep beside them.
 *
 * PARDA lowers windows until latency is at its threshold. Beside an initiator that nobody controls latency may never get
 * there, and the hosts would end with nothing. Each host compares what all of them have inside (N) with the latency (L):
 * with S requests of a stranger, L = (N + S) / C. As N moves, L moves by 1/C for each request, which gives C; what is left
 * of L is the stranger's. Each host then keeps a floor of slots a share, such that all of them together have at least a
 * part of the capacity, with the stranger counted as one more host of the mean shares.
 *
 * A device that has become slower is told from a stranger by the same: there L falls with N.
 *
 * Hosts tell each other the floor that each has found, and hold the upper median, so that their ratios stay.
 *
 * Pure: time is counted in steps, one a period. In any one unit of time; slots are requests.
 */
#ifndef WEIR_CONTROL_PARDA_STRANGER_H
#define WEIR_CONTROL_PARDA_STRANGER_H

#include <stdbool.h>

#define PARDA_STRANGER_POINTS 6 /* steps that are looked at */
/* Of a host's fair part: what the floor is aimed at. Half is promised; the rest is for errors of measuring. */
#define PARDA_STRANGER_KEEP 0.65

struct parda_stranger_seen { /* by a host, in a step */
	double inside;       /* slots in use, of all hosts that count */
	double vanished; /* … of hosts that no longer count and did not say that they leave: they may yet be there */
	double windows;   /* slots that they might use */
	double latency;   /* of their requests; 0: none is known */
	double threshold; /* … where it shall be */
	double shares;    /* of all hosts */
	unsigned hosts;   /* with shares */
	double wmin;      /* least window of a host */
	double period;    /* of a step */
	bool at_work;     /* peers have been at work for long: they know what the array can do */
};

struct parda_stranger {
	struct parda_stranger_point {
		double inside, latency;
		unsigned age;            /* steps */
	} points[PARDA_STRANGER_POINTS]; /* latest first; of one load of the array */
	unsigned n_points;
	double capacity; /* C: slots per unit of time, as the points have it; 0: not known */
	double known; /* what the hosts do per unit of time while latency is near the threshold */
	unsigned knowing; /* steps of that mean */
	double least;     /* latency: the least that was seen; 0: none */
	unsigned low;     /* steps in a row with a reason to draw a line */
	bool sure;     /* what part of the latency is the hosts' own has been seen: `known` holds */
	bool verified; /* C is of a probe, not of a line */
	unsigned doubts;  /* probes in a row with much less than `known` */
	unsigned probing; /* times the floor may yet be doubled to see what latency does */
	unsigned held;    /* steps since it was */
	struct parda_stranger_point from, base; /* before that; and before the first time */
	unsigned agree;  /* steps in a row with as much from a stranger as is told */
	bool here;       /* there is a stranger */
	double requests; /* S, when there is */
	double floor;    /* slots a share that the hosts should keep; 0: as the law says */
};

/* A step. Sets here, requests and floor. */
void parda_stranger_step(struct parda_stranger *s, const struct parda_stranger_seen *seen);

#endif
