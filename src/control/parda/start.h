/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start: the window of a host that has just started, until PARDA's law can move it.
 *
 * A host that starts knows neither the load of the array nor its part of it. It begins at the least window and doubles
 * it each period until the latency passes half of the threshold, so that the array is never flooded. Where peers are at
 * work it takes its part beside them: the first step with load only announces its shares; in the period after it every
 * peer gives up the part of its own window that the shares of the newcomer stand for (parda_peers_room), and the second
 * step takes the peers' window a share. So requests inside stay as they were, and the ratios are right from then on.
 *
 *   alone                    least, announced; × 2 each period with load, until latency > threshold / 2; then the law
 *   all peers start as well  the same, times the shares over the least shares of all, then the peers' window a share
 *   peers at work            least, announced; then the peers' window a share; then the law
 *
 * A host without load waits: nothing is learned by it. Beside peers that use their windows it takes its part after some
 * periods, as a host that was idle for long: with no clients so far nobody is about to flood the array.
 */
#ifndef WEIR_CONTROL_PARDA_START_H
#define WEIR_CONTROL_PARDA_START_H

#include <stdbool.h>

/* Steps after which a peer no longer counts as one that starts: the largest window, 65536, is as many doublings away. */
#define PARDA_START_STEPS 16
/* Steps without load after which a host takes its part: clients of one that was restarted would be back by then. */
#define PARDA_START_WAIT 4

struct parda_start {
	bool on;           /* the host starts */
	bool announced;    /* a report has told its shares */
	unsigned settling; /* steps since latency has passed half of the threshold */
	unsigned waited;   /* steps without load so far */
	double factor;     /* of the least window: 1, 2, 4, … */
};

struct parda_start_seen {
	double shares; /* own, > 0 */
	double least;  /* shares of the host with the least of all that count; ≤ shares */
	double ratio; /* median of the peers' window a share, of those that use theirs; 0: none does */
	bool at_work;      /* some peer has been at work for longer than PARDA_START_STEPS */
	bool idle;         /* the host has no load */
	bool loaded;       /* latency has passed half of the threshold */
	double wmin, wmax; /* slots */
};

/* From the least window. */
void parda_start_begin(struct parda_start *s);
/* One step, which may set *window and end the start (on). true: the law is to move the window in this step: the host is
 * alone. Beside peers it stands where they stand after theirs. */
bool parda_start_step(struct parda_start *s, const struct parda_start_seen *seen, double *window);

#endif
