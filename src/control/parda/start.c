/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/start.h"
#include <math.h>

/* Steps for which hosts that start together only take each other's window a share, until all have:
 * some see the load before others, and one that then followed the law would be off by a factor of
 * 2. */
#define SETTLING 2

void parda_start_begin(struct parda_start *s)
{
	*s = (struct parda_start){.on = true, .factor = 1};
}

static double part_of(const struct parda_start_seen *seen)
{
	return fmax(seen->wmin, fmin(seen->shares * seen->ratio, seen->wmax));
}

static void wait(struct parda_start *s, const struct parda_start_seen *seen, double *window)
{
	if (++s->waited <= PARDA_START_WAIT || !(seen->ratio > 0))
		return;
	*window = part_of(seen);
	s->on = false;
}

bool parda_start_step(struct parda_start *s, const struct parda_start_seen *seen, double *window)
{
	bool peers = seen->ratio > 0, announced = s->announced;

	if (seen->idle) {
		wait(s, seen, window);
		return false;
	}
	s->announced = true;
	if (peers && announced && (seen->at_work || seen->loaded || s->settling)) {
		*window = part_of(seen);
		s->on = !seen->at_work && ++s->settling < SETTLING;
	} else if (!peers && announced && seen->loaded) {
		s->on = false;
		return true;
	} else if (announced && !seen->at_work && !seen->loaded) {
		s->factor *= 2;
		*window = fmin(seen->wmin * s->factor * seen->shares / seen->least, seen->wmax);
	}
	return false;
}
