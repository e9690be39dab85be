/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credit: slots that a host left unused, for its next burst.
 *
 * With windows in the ratio of shares, a host that was idle and now has a burst gets no more of the array than a host
 * that never stops, and less than without any control, where the burst enters at once. A host therefore saves the slots
 * that it leaves unused, and its gate's window is larger while it has some: a burst after a pause passes as if
 * nothing were there, and the host has no more of the array than its part over the time that the credit covers.
 */
#ifndef WEIR_CONTROL_PARDA_CREDIT_H
#define WEIR_CONTROL_PARDA_CREDIT_H

#include <weir/clock.h>

#define PARDA_CREDIT_MOST 8.0 /* times the window, with all that can be saved */

struct parda_credit {
	weir_time span; /* at most what its window admits in this time is saved; 0: nothing */
	double saved;   /* slots × ns */
	double latency, added; /* in the last step; of it, by bursts on credit */
};

/* For `span` ns the law allowed `window` slots, and `inside` of them were used on the mean. */
void parda_credit_step(struct parda_credit *c, double window, double inside, weir_time span);

/* The gate's window, where the law's is `window` and none may be above `wmax`. */
double parda_credit_window(const struct parda_credit *c, double window, double wmax);

/* The latency without what bursts on credit add to it, which does not last and is no reason for smaller windows. part: of
 * the requests inside are on credit. fresh: part of `latency`, an average, that this step has brought. */
double parda_credit_latency(struct parda_credit *c, double latency, double part, double fresh);

#endif
