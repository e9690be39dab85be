/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credit: slots that a host left unused, for its next burst.
 *
 * With windows in the ratio of shares, a host that was idle and now has a burst gets no more of the array than a host
 * that never stops, and less than without any control, where the burst enters at once. A host therefore saves the slots
 * that it leaves unused, and its gate's window is larger while it has some: a burst after a pause passes as if
 * nothing were there, and the host has no more of the array than its part over the time that the credit covers.
 * Credit outlasts a fall of the window: the bursts of others do not take it away.
 */
#ifndef WEIR_CONTROL_PARDA_CREDIT_H
#define WEIR_CONTROL_PARDA_CREDIT_H

#include <weir/clock.h>

#define PARDA_CREDIT_MOST 8.0 /* times the window, with all that can be saved */

struct parda_credit {
	/* at most what its window admits in this time is saved, and forgotten in it; 0: nothing */
	weir_time span;
	double saved;          /* slots × ns */
	double latency, added; /* in the last step; of it, by bursts on credit */
};

/* For `span` ns the law allowed `window` slots, and `inside` of them were used on the mean. */
void parda_credit_step(struct parda_credit *c, double window, double inside, weir_time span);

/* Return the gate's window, if the law's is `window` and the most is `wmax`. */
double parda_credit_window(const struct parda_credit *c, double window, double wmax);

/* Return the latency without the part added by bursts on credit, which does not last and is no
 * reason for smaller windows. part: share of the requests inside that are on credit. fresh: share
 * of `latency`, an average, that comes from this step. */
double parda_credit_latency(struct parda_credit *c, double latency, double part, double fresh);

#endif
