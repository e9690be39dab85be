/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credit: slots that a host left unused, for its next burst.
 *
 * With windows in the ratio of shares, a host that was idle and now has a burst gets no more of the array than a host
 * that never stops, and less than without any control, where the burst enters at once. A host therefore saves the slots
 * that it leaves unused, and its gate's window is larger while it has some: a burst after a pause passes as if
 * nothing were there, and the host has no more of the array than its part over the time that the credit covers.
 *
 * A host that has just started has saved nothing, and its first bursts would be worse off than without control for as
 * long as the credit takes to fill. So in the first PARDA_CREDIT_FIRST after its start a host saves as much as later in
 * the whole span: a host that left its window unused for so long is taken as one that does so at other times, too. One
 * that floods saves nothing then either.
 */
#ifndef WEIR_CONTROL_PARDA_CREDIT_H
#define WEIR_CONTROL_PARDA_CREDIT_H

#include <weir/clock.h>

#define PARDA_CREDIT_MOST 8.0 /* times the window, with all that can be saved */
/* Clients of a host that was restarted are back by then (PARDA_START_WAIT periods by default). */
#define PARDA_CREDIT_FIRST (8 * WEIR_SEC)

struct parda_credit {
	weir_time span; /* at most what its window admits in this time is saved; 0: nothing */
	weir_time age;  /* since the host has started, PARDA_CREDIT_FIRST at most */
	double saved;   /* slots × ns */
	double latency, added; /* in the last step; of it, by bursts on credit */
};

/* The host starts: it has no credit. */
void parda_credit_start(struct parda_credit *c);

/* For `span` ns the law allowed `window` slots, and `inside` of them were used on the mean. */
void parda_credit_step(struct parda_credit *c, double window, double inside, weir_time span);

/* Return the gate's window, if the law's is `window` and the most is `wmax`. */
double parda_credit_window(const struct parda_credit *c, double window, double wmax);

/* Return the latency without the part added by bursts on credit, which does not last and is no
 * reason for smaller windows. part: share of the requests inside that are on credit. fresh: share
 * of `latency`, an average, that comes from this step. */
double parda_credit_latency(struct parda_credit *c, double latency, double part, double fresh);

#endif
