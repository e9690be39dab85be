/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warn: detect settings with which PARDA cannot reach its goals.
 *
 *   wmax         by its shares the host would have more slots than wmax allows, and hosts beside it
 *                have more than their part because of that
 *   unreachable  with the least windows latency was over the threshold, and was never below it, or
 *                is over it for ten steps: the device is slower than that at any load; or an
 *                uncontrolled client loads it. Or it is hardly slower: the least latency was near the
 *                threshold, and with the slots that are kept beside a stranger it is over it
 *
 * Pure; one step a period.
 */
#pragma once

#include <stdbool.h>

struct parda_warn_seen {
	double window, inside; /* slots of the host, and of them in use */
	double wmin, wmax;
	double shares;             /* of the host */
	double ratio;              /* most slots a share of a peer that uses them; 0: none */
	double latency, threshold; /* of all hosts; 0: not known */
	double all_inside, all_windows, all_shares; /* of all hosts */
	unsigned hosts;                             /* with shares */
	bool floor;                                 /* slots are kept beside a stranger */
};

struct parda_warn {
	unsigned clipped, low, held; /* steps in a row */
	double least;                /* latency: the least so far, of this device; 0: none */
	bool wmax;
	double wanted; /* slots: about this wmax would suffice */
	bool unreachable;
};

void parda_warn_step(struct parda_warn *w, const struct parda_warn_seen *seen);
