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
#define NEAR    0.75 /* of the threshold: with such a least latency hardly any load reaches it */

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

/* Check for latency over the threshold with the least windows, and never below it, or over it for LONG
 * steps with windows that are not made smaller, and never much below it; observations before LONG steps
 * with the least windows no longer count. */
static void look_at_threshold(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	bool at_wmin = seen->all_windows <= AT_WMIN * seen->wmin * seen->hosts;
	bool over = seen->latency > OVER * seen->threshold;

	w->low = at_wmin && over ? w->low + 1 : 0;
	w->held = seen->floor && over ? w->held + 1 : 0;
	if (!(w->least > 0) || seen->latency < w->least || w->low == LONG)
		w->least = seen->latency;
	w->unreachable |= w->low >= LOW;
	w->unreachable &= w->least > seen->threshold;
	w->unreachable |= w->held >= LONG && w->least > NEAR * seen->threshold;
}

void parda_warn_step(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	if (!(seen->latency > 0) || !(seen->shares > 0))
		return;
	look_at_wmax(w, seen);
	look_at_threshold(w, seen);
}
