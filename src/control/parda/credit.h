/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credit: requests that a host left to others, for its next burst.
 *
 * With windows in the ratio of shares, a host that was idle and now has a burst gets no more of the array than a host
 * that never stops, and less than without any control, where the burst enters at once. A host therefore saves the
 * requests that it leaves to others, and its gate's window is larger while it has some: a burst after a pause passes as if
 * no control were there, and the host has no more of the array than its part over the time that the credit covers.
 * Credit outlasts a fall of the window: the bursts of others do not take it away.
 */
#ifndef WEIR_CONTROL_PARDA_CREDIT_H
#define WEIR_CONTROL_PARDA_CREDIT_H

#include <stdbool.h>
#include <weir/clock.h>

struct parda_credit {
	/* at most the host's part of this time is saved, and forgotten in it; 0: nothing */
	weir_time span;
	weir_time turn;        /* a burst without end is back at its part after this */
	weir_time period;      /* of a step */
	double saved;          /* slots */
	double lasts;          /* ns: as long as that lasts if a burst takes all that it can */
	double beside;         /* slots: the window, and those that others used */
	double latency, added; /* in the last step; of it, by bursts on credit */
};

struct parda_credit_seen {
	double window; /* slots that the law allowed */
	double others; /* slots of all other hosts in use, on the mean */
	double done;   /* slots that the host has used and given back per ns, … */
	double all;    /* … all hosts, … */
	double part;   /* … and the host, if it had had requests all the time; 0: not known */
	bool limited; /* its window was in use: what it had less than its part was not left to others */
};

/* Save, or spend, for `span` ns. */
void parda_credit_step(
	struct parda_credit *c, const struct parda_credit_seen *seen, weir_time span);

/* Return the gate's window, if the law's is `window` and the most is `wmax`. */
double parda_credit_window(const struct parda_credit *c, double window, double wmax);

/* Return true if it lasts for a period whatever the burst: the window does not limit the host. */
bool parda_credit_has(const struct parda_credit *c);

/* Return the latency without the part added by bursts on credit, which does not last and is no
 * reason for smaller windows. part: share of the requests inside that are on credit. fresh: share
 * of `latency`, an average, that comes from this step. */
double parda_credit_latency(struct parda_credit *c, double latency, double part, double fresh);

#endif
