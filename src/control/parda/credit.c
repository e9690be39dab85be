/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Ours. PARDA (§3.4) gives a bounded credit to idle VMs of one host; this is one among hosts.
 * LAW     f is the host's part of X, max-min by shares, as if it had requests all the time. s grows by f − x, from 0 to
 *         min(B f, T (X − f)), per unit of time in which the host was not limited by its window, and falls by (x − f)⁺;
 *         what is above that after f has fallen is lost by 1/e every B. The gate's window is w + (M + w) φ / (1 − φ)
 *         with φ = s / (P (X − f)), at most wmax; wmax if φ ≥ 1.
 * SYMBOLS w window by eq. 2, M requests inside of all other hosts, on the mean, slots; X throughput of all, f the
 *         host's part of it, x its own, slots a ns; s slots; P period, B span, T turn, ns.
 * METHOD  One step a period. f − x is what the host leaves to the others, x − f what it takes from them. Both are counted
 *         by throughput, not by slots × time: a burst of n requests is inside for a time that grows with n, so that by
 *         slots × time twice the burst would cost four times as much, and bursts that meet would cost more than bursts
 *         that do not. A host that its window limits saves nothing, also if its requests are slower than others' and x < f.
 *         With e requests more than w inside, latency is (M + w + e) / C, and they take C M e / ((M + w) (M + w + e)) from the
 *         others; e is such that s lasts for a period, after which it is known again. That is any number if s is what
 *         all of them have above their parts in a period: a burst then enters at once, as without any control, and meets
 *         less of a host that never stops, which saves nothing and keeps to w. So a host that has credit is not worse off than
 *         without control, also if the bursts of several hosts meet. Each host's part is what it would have alone beside
 *         the others' demand: hosts that were idle together may have saved the same unused part, at most T of it each.
 *         T bounds the time for which one host after a long pause can keep the others to the rest: a burst without end
 *         takes at most X − f from them, and is back at its part after T.
 * EXAMPLE w = 50 beside M = 50 at L = 25 ms: X = 2000/s for an idle host, f = 1000/s. Idle for 5 s with B = 60 s and T =
 *         10 s: s is 5000, at most 10000. With P = 2 s a burst may fill the array from s = 2000 on; at s = 1000, φ = ½, the
 *         window is 150.
 */
#include "control/parda/credit.h"
#include <math.h>

void parda_credit_step(struct parda_credit *c, const struct parda_credit_seen *seen, weir_time span)
{
	double w = seen->window, part = seen->part, others = seen->all - part;
	double change = part - seen->done, most, over;

	if (c->span <= 0 || !(others > 0) || !(w > 0))
		return;
	if (seen->limited)
		change = fmin(change, 0);
	most = fmin(part * (double)c->span, others * (double)c->turn);
	over = fmax(0, c->saved - most);
	most += over * exp(-(double)span / (double)c->span);
	c->saved = fmax(0, fmin(c->saved + change * (double)span, most));
	c->beside = seen->others + w;
	c->lasts = c->saved > 0 ? c->saved / others : 0;
}

/* Return φ. */
static double periods_of(const struct parda_credit *c)
{
	return c->saved > 0 ? c->lasts / (double)c->period : 0;
}

double parda_credit_window(const struct parda_credit *c, double window, double wmax)
{
	double periods = periods_of(c);

	if (!(window > 0))
		return window;
	if (periods >= 1)
		return fmax(window, wmax);
	return fmin(wmax, window + c->beside * periods / (1 - periods));
}

bool parda_credit_has(const struct parda_credit *c)
{
	return periods_of(c) >= 1;
}

double parda_credit_latency(struct parda_credit *c, double latency, double part, double fresh)
{
	double past = 1 - fresh; /* part of the latency, and of the part that bursts have added */

	if (c->span <= 0)
		return latency;
	c->added = fmin(latency, past * c->added + part * fmax(0, latency - past * c->latency));
	c->latency = latency;
	return latency - c->added;
}
