/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/warn.h"
#include <math.h>

#define STEPS 5 /* in a row: windows have settled, or nearly so */
#define LOW                                                                                        \
	2 /* steps in a row at the least windows; beside a stranger they are no longer there after that */
#define AT_WMAX 0.99 /* of wmax */
#define IN_USE  0.8  /* of the window */
#define MORE    1.15 /* of the host's slots a share: what a peer has more is not chance */
#define AT_WMIN 1.2  /* of the least windows */
#define OVER    1.1  /* of the threshold */

static void look_at_wmax(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	bool clipped = seen->window >= AT_WMAX * seen->wmax &&
		       seen->inside > IN_USE * seen->window &&
		       seen->ratio * seen->shares > MORE * seen->window;

	w->clipped = clipped ? w->clipped + 1 : 0;
	w->wmax = w->clipped >= STEPS;
	if (w->wmax) /* its part of what is inside at the threshold */
		w->wanted = seen->all_inside * seen->threshold / seen->latency * seen->shares /
			    seen->all_shares;
}

void parda_warn_step(struct parda_warn *w, const struct parda_warn_seen *seen)
{
	bool at_wmin = seen->all_windows <= AT_WMIN * seen->wmin * seen->hosts;

	if (!(seen->latency > 0) || !(seen->shares > 0))
		return;
	if (!(w->least > 0) || seen->latency < w->least)
		w->least = seen->latency;
	look_at_wmax(w, seen);
	w->low = at_wmin && seen->latency > OVER * seen->threshold ? w->low + 1 : 0;
	w->unreachable |= w->low >= LOW;
	w->unreachable &= w->least > seen->threshold;
}
