/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warn: settings with which PARDA cannot do what it is asked to.
 *
 *   wmax         the host would have more slots by its shares than wmax allows, and hosts beside it have more than their
 *                part by that
 *   unreachable  with the least windows latency was over the threshold, and it never was below, or is for ten steps: the
 *                device takes longer, whatever its load; or somebody else loads it
 *
 * Pure; one step a period.
 */
#ifndef WEIR_CONTROL_PARDA_WARN_H
#define WEIR_CONTROL_PARDA_WARN_H

#include <stdbool.h>

struct parda_warn_seen {
	double window, inside; /* slots of the host, and those in use */
	double wmin, wmax;
	double shares; /* of the host */
	double ratio;  /* most slots a share of a peer that uses them; 0: there is none */
	double latency, threshold;                  /* of all hosts; 0: none is known */
	double all_inside, all_windows, all_shares; /* of all hosts */
	unsigned hosts;                             /* with shares */
};

struct parda_warn {
	unsigned clipped, low; /* steps in a row */
	double least;          /* latency: the least so far, of this device; 0: none */
	bool wmax;
	double wanted; /* slots: a wmax of that much would do, about */
	bool unreachable;
};

void parda_warn_step(struct parda_warn *w, const struct parda_warn_seen *seen);

#endif
