/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start: the window of a host that has just started, until PARDA's law can move it.
 *
 * A host that starts knows neither the load of the array nor its part of it. It begins at the least
 * window and doubles it each period until the latency passes half of the threshold, so that the
 * array is never flooded. Beside busy peers it takes its part: the first step with load only
 * announces its shares; in the next period every peer gives up the part of its own window that
 * corresponds to the newcomer's shares (parda_peers_room), and the second step takes the peers'
 * window a share. So the number of requests inside stays, and the ratios are right from then on.
 *
 *   alone                    least, announced; × 2 each period with load, until
 *                            latency > threshold / 2; then the law
 *   all peers start as well  the same, times the shares over the least shares of all, then the
 *   peers' window a share
 *   peers at work            least, announced; then the peers' window a share; then the law
 *
 * A host without load waits, since it learns nothing. Beside peers that use their windows it takes
 * its part after some periods, like a host that was idle for long: without clients so far, no flood
 * is imminent.
 */
#pragma once

#include <stdbool.h>

/* Steps after which a peer no longer counts as one that starts: as many doublings lead to the
 * largest window, 65536. */
#define PARDA_START_STEPS 16
/* Steps without load after which a host takes its part: clients of a restarted host would be back
 * by then. */
#define PARDA_START_WAIT 4

struct parda_start {
	bool on;           /* the host starts */
	bool announced;    /* its shares were reported */
	unsigned settling; /* steps since latency has passed half of the threshold */
	unsigned waited;   /* steps without load so far */
	double factor;     /* of the least window: 1, 2, 4, … */
};

struct parda_start_seen {
	double shares; /* own, > 0 */
	double least;  /* least shares of all hosts that count; ≤ shares */
	/* median of the peers' window a share, of those that use theirs; 0: none does */
	double ratio;
	bool at_work;      /* some peer has been at work for longer than PARDA_START_STEPS */
	bool idle;         /* the host has no load */
	bool loaded;       /* latency has passed half of the threshold */
	double wmin, wmax; /* slots */
};

/* Begin at the least window. */
void parda_start_begin(struct parda_start *s);
/* Run one step, which may set *window and end the start (on). Return true if the law should move
 * the window in this step: the host is alone. Beside peers its window equals theirs after their
 * step. */
bool parda_start_step(struct parda_start *s, const struct parda_start_seen *seen, double *window);
