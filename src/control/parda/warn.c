/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/warn.h"

#define STEPS   5  /* in a row: windows have settled, or nearly so */
#define LOW     2  /* steps in a row at the least windows; beside a stranger they are then raised */
#define LONG    10 /* … after which earlier observations are of another device */
#define AT_WMAX 0.99 /* of wmax */
#define IN_USE  0.8  /* of the window */
#define MORE    1.15 /* times the host's slots a share: a peer that has more has it not by chance */
#define AT_WMIN 1.2  /* of the least windows */
#define OVER    1.1  /* of the threshold */

static void look_at_wmax(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	bool clipped = seen->window >= AT_WMAX * seen->wmax &&
		       seen->inside > IN_USE * seen->window &&
		       seen->ratio * seen->shares > MORE * seen->window;

	w->clipped = clipped ? w->clipped + 1 : 0;
	w->wmax = w->clipped >= STEPS;
	if (w->wmax) /* its part of the requests inside at the threshold */
		w->wanted = seen->all_inside * seen->threshold / seen->latency * seen->shares /
			    seen->all_shares;
}

/* Check for latency over the threshold with the least windows, and never below it; observations
 * before LONG such steps no longer count. */
static void look_at_threshold(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	bool at_wmin = seen->all_windows <= AT_WMIN * seen->wmin * seen->hosts;

	w->low = at_wmin && seen->latency > OVER * seen->threshold ? w->low + 1 : 0;
	if (!(w->least > 0) || seen->latency < w->least || w->low == LONG)
		w->least = seen->latency;
	w->unreachable |= w->low >= LOW;
	w->unreachable &= w->least > seen->threshold;
}

void parda_warn_step(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	if (!(seen->latency > 0) || !(seen->shares > 0))
		return;
	look_at_wmax(w, seen);
	look_at_threshold(w, seen);
}
