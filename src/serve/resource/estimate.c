/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimate: the work of a request, from the resource's profile; and how far the device is from it.
 *
 * LAW     A request's `time` is its work by the profile's table (model/estimate.h), by its distance from the last requests of its
 *         tenant: the planner reads a tenant's trace in the same way. It is the same whatever `cost` is.
 *         Work is 1 ÷ throughput while the device is full. So while the window is full, requests that are done have as much work
 *         as time passes, if the table is right: drift = time ÷ work − 1, over the last ten seconds of such time. It is not
 *         known before one second of it, or with another window than the table's depth.
 * EXAMPLE Table: 100 us a request. Window full for 1 s, 8,000 requests: drift = 1 s ÷ 0.8 s − 1 = 25 %.
 */
#include "serve/resource/impl.h"
#include "serve/loop/log.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMORY ((double)(10 * WEIR_SEC))
#define LEAST  ((double)WEIR_SEC)
#define FULL   0.9  /* of a span, for it to count */
#define FAR    0.20 /* drift that is said */

int resource_estimate_room(struct resource *r, size_t nodes)
{
	if (nodes <= r->n_pasts)
		return 0;
	if (array_resize(&r->pasts, nodes) < 0)
		return -ENOMEM;
	memset(&r->pasts[r->n_pasts], 0, (nodes - r->n_pasts) * sizeof(*r->pasts));
	r->n_pasts = nodes;
	return 0;
}

void resource_estimate_swap(struct resource *r, const struct estimate *e)
{
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): estimates are zeroed before they are read */
	bool same = r->estimate && e && memcmp(r->estimate, e, sizeof(*e)) == 0;

	r->estimate = e;
	if (!same)
		r->drift = (struct resource_drift){0};
}

double resource_drift(const struct resource *r)
{
	const struct resource_drift *d = &r->drift;

	return r->estimate && d->measured >= LEAST && d->table > 0 ? d->measured / d->table - 1
								   : NAN;
}

static void say(struct resource *r, double drift)
{
	char text[160], off[32];

	snprintf(off, sizeof(off), "%.3g", drift);
	snprintf(text, sizeof(text),
		"requests take %.0f %% %s than the profile says; measure the device again with "
		"weir profile, and plan again",
		100 * fabs(drift), drift > 0 ? "longer" : "less time");
	log_event(LOG_LEVEL_WARNING, "profile-drift", "resource", r->name, "profile",
		r->spec.profile, "drift", off, "why", text, NULL);
	r->drift.said = true;
}

void resource_drift_look(struct resource *r, weir_time now)
{
	struct resource_drift *d = &r->drift, last = *d;
	struct weir_gate_totals t;
	double full, span, part, keep, drift;

	weir_gate_get_totals(r->gate, now, &t);
	d->at = now;
	d->full = t.full;
	d->served = t.served;
	d->full_served = t.full_served;
	d->work = r->served_work;
	full = (double)(t.full - last.full);
	span = (double)(now - last.at);
	if (!last.at || full < FULL * span || d->work == last.work || d->served == last.served ||
		fabs(t.window - r->estimate->depth) > 0.5)
		return;
	part = (double)(d->full_served - last.full_served) / (double)(d->served - last.served);
	keep = exp(-full / MEMORY);
	d->measured = keep * d->measured + full;
	d->table = keep * d->table + part * (double)(d->work - last.work);
	drift = resource_drift(r);
	if (!d->said && fabs(drift) > FAR)
		say(r, drift);
}
