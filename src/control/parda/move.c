/* SPDX-License-Identifier: BSD-3-Clause */
/* move: the window of a host, from one step to the next. */
#include "control/parda/impl.h"
#include <math.h>

#define MIN_MARGIN 1.02
/* part of the requests inside that windows must limit: where the hosts' own demand moves the number inside, it and the
 * latency tell nothing of a stranger */
#define LIMITED    0.5
#define LAG        2.0 /* times the latency by Little's law: more is of requests of an earlier load */
#define LEFT_FLOOR 2.0 /* times the threshold: latency after windows have left the floor */

static double bounded(const struct parda *p, double window)
{
	return fmax(p->law.wmin, fmin(window, p->law.wmax));
}

/* Run a step of the start. Return true if it is over, and the law moves the window. */
static bool start(struct parda *p, const struct parda_sums *s, double shares)
{
	double ratio = p->config.local || !s->now ? 0 : parda_sums_ratio(p);
	struct parda_start_seen seen = {.shares = shares,
		.least = s->least,
		.ratio = ratio,
		.at_work = s->at_work && ratio > 0,
		.idle = p->idle,
		.loaded = fmax(s->latency, p->latency) > p->threshold / 2, /* own is newer */
		.wmin = p->law.wmin,
		.wmax = p->law.wmax};
	bool by_law = shares > 0 && parda_start_step(&p->start, &seen, &p->window);

	if (!p->start.on && ratio > 0)
		parda_peers_settle(&p->peers);
	else if (!p->start.on)
		p->joining = p->config.age; /* their reports may have been lost */
	return by_law;
}

/* Set the first window of a joining host; return false if no peer can tell. */
static bool join(struct parda *p, double shares)
{
	double ratio = parda_sums_ratio(p);

	if (!(ratio > 0) || !(shares > 0))
		return false;
	p->window = bounded(p, shares * ratio);
	return true;
}

/* Hosts that were apart are back: add up the slots in use of all, and divide them in the next step.
 * No host has changed anything by then, so all divide the same sum, and latency stays. */
static void merge(struct parda *p, const struct parda_sums *s, double shares)
{
	if (s->merge && p->together > 0 && !p->idle)
		p->window = bounded(p, shares * p->together);
	p->together = s->add_up && s->used_shares > 0 ? s->used_windows / s->used_shares : 0;
}

/* Give started hosts their part; first from the slots that are free by the latency. */
static void make_room(struct parda *p, double shares, double latency)
{
	double kept = parda_peers_room(&p->peers, shares);

	if (kept < 1 && latency > 0)
		p->window *= fmin(1, kept * fmax(1, p->threshold / latency));
}

/* Apply the law; latency: without the part added by bursts on credit. */
static void by_law(
	struct parda *p, const struct parda_sums *s, const struct parda_report *own, double latency)
{
	bool slowly = !p->config.abrupt;
	double most = p->law.wmax;

	if (p->joining && s->now > 0 && !p->idle && join(p, own->shares))
		p->joining = 0;
	else
		merge(p, s, own->shares);
	if (slowly && !p->config.local)
		make_room(p, own->shares, latency);
	if (slowly && latency < p->threshold / 2)
		most = fmin(most, fmax(2 * p->window, p->law.wmin));
	/* A joining host makes the same step as its peers, which have reported their windows before
	 * it. */
	p->window = fmin(parda_window(&p->law, p->window, own->beta, latency), most);
	if (p->joining && !p->idle)
		p->joining--;
}

/* Hosts leave the floor one after the other, with different windows: divide again. */
static void leave_floor(struct parda *p, double latency)
{
	if (!p->was_at_floor || latency > LEFT_FLOOR * p->threshold)
		return;
	p->was_at_floor = false;
	parda_peers_divide(&p->peers);
}

/* Return the slots a share of hosts that may be cut off from others: each uses its own latency
 * then, by which one would end with everything and the others with nothing. The sum of all windows
 * is known; all floors together are less than that. */
static double floor_apart(const struct parda *p, const struct parda_sums *s)
{
	if (!(s->vanished > 0))
		return 0;
	return PARDA_STRANGER_KEEP * (p->inside + s->vanished) / (s->shares + s->vanished_shares);
}

/* Return true if number inside and latency are of one load, and the windows made it. */
static bool shows_strangers(const struct parda_sums *s, double latency)
{
	return s->limited >= LIMITED * s->inside && latency * s->done <= LAG * 1e9 * s->inside;
}

static void keep_floor(struct parda *p, const struct parda_sums *s, struct parda_report *own,
	struct parda_decision *ret)
{
	struct parda_stranger_seen seen = {.inside = p->inside,
		.vanished = s->vanished,
		.windows = s->windows,
		.latency = ret->latency,
		.threshold = p->knee ? p->config.law.threshold : p->threshold,
		.shares = s->shares,
		.hosts = s->hosts,
		.wmin = p->law.wmin,
		.period = (double)p->config.period,
		.at_work = s->at_work || p->config.abrupt || p->config.window > 0};
	double floor, slots;
	bool common;

	if (parda_is_literal(p) || p->config.no_floor)
		return;
	if (shows_strangers(s, ret->latency))
		parda_stranger_step(&p->stranger, &seen);
	else
		parda_stranger_skip(&p->stranger);
	own->floor = p->stranger.floor;
	floor = parda_sums_floor(p, own->floor, &common);
	slots = fmax(floor, floor_apart(p, s)) * own->shares;
	ret->strange = common ? parda_stranger_requests(&p->stranger, &seen, floor) : 0;
	ret->stranger = ret->strange > 0;
	if (p->start.on || !(slots > p->window)) {
		leave_floor(p, ret->latency);
		return;
	}
	p->was_at_floor = true;
	ret->floor = slots;
	ret->too_low = ret->stranger && slots > p->law.wmax; /* else it only observes */
	p->window = fmin(slots, p->law.wmax);
}

/* Keep the window at the slots that guarantees need. By Little's law that holds on average; the
 * margin is for the spread of latency between periods. */
static void keep_min(struct parda *p, const struct parda_measured *m)
{
	double slots = MIN_MARGIN * parda_floor(m->vms, m->n_vms, p->latency / 1e9);

	if (p->window < slots)
		p->window = fmin(slots, p->law.wmax);
}

/* Return the part of the latency that is new in this step. */
static double new_part(const struct parda *p, weir_time span)
{
	const struct parda_config *c = &p->config;

	return c->smoothing == PARDA_BY_TIME ? 1 - exp(-(double)span / (double)c->tau) : 1;
}

void parda_move(struct parda *p, const struct parda_sums *s, const struct parda_measured *m,
	weir_time span, struct parda_report *own, struct parda_decision *ret)
{
	double part = s->inside > 0 ? fmin(1, s->on_credit / s->inside) : 0;
	double latency = parda_credit_latency(&p->credit, ret->latency, part, new_part(p, span));

	if (!p->start.on || start(p, s, own->shares))
		by_law(p, s, own, latency);
	keep_floor(p, s, own, ret);
	keep_min(p, m);
}
