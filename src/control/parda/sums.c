/* SPDX-License-Identifier: BSD-3-Clause */
/* sums: sums over a host and the peers that count. */
#include "control/parda/impl.h"
#include "base/array.h"
#include "control/parda/tenant.h"
#include <math.h>
#include <stdlib.h>

#define PASSES    16 /* over the peers: each finds more of those below the level, most in the first */
#define USED_HALF 2.0 /* a host that uses half of its window counts as one that uses all of it */

/* Return the slots of a host's window that count for the scale: those in use, or those that its β
 * will leave it. Not all of w: a host that has just become idle, or one of many at wmin without
 * requests, has slots that load nothing. */
static double slots_of(const struct parda *p, const struct parda_report *r)
{
	double rest = r->beta * (1 + p->config.epsilon) / p->config.epsilon;

	return fmin(r->window, fmax(r->inside, rest));
}

/* Return how much a host counts for the scale and for the sum of windows. A host that leaves its
 * window unused keeps its shares, but does not show the worth of a share: its window may be at wmin
 * or wmax. before: the window in which its `inside` was measured. */
static double used_part(const struct parda *p, const struct parda_report *r, double before)
{
	if (p->config.idle == PARDA_IDLE_LITERAL || !(before > 0))
		return 1;
	return fmin(1, USED_HALF * r->inside / before);
}

/* Return true if a host wants more than its window. before: as above. */
static bool is_limited(const struct parda_report *r, double before)
{
	return !r->bursts && r->inside > PARDA_IN_USE * before;
}

/* Add a report. */
static void add(
	const struct parda *p, struct parda_sums *s, const struct parda_report *r, double before)
{
	double used = used_part(p, r, before);

	s->shares += r->shares;
	s->used_shares += used * r->shares;
	s->slots += parda_is_literal(p) ? 0 : used * slots_of(p, r);
	s->inside += r->inside;
	s->on_credit += fmax(0, r->inside - before);
	s->limited += is_limited(r, before) ? fmin(r->inside, before) : 0;
	if (r->shares > 0) {
		s->hosts++;
		s->windows += r->window;
		s->used_windows += used * r->window;
		s->least = s->least > 0 ? fmin(s->least, r->shares) : r->shares;
	}
	if (r->latency > 0) {
		s->ios += r->ios;
		s->bytes += r->bytes;
		s->done += r->ios * parda_tenant_size(r->ios, r->bytes, p->config.slot);
	}
}

struct mean {
	double weights, sum;
};

static void add_latency(const struct parda *p, const struct parda_report *r, bool bursts,
	double most, struct mean *m)
{
	double weight = p->config.unweighted ? r->ios > 0 : r->ios;

	if (r->bursts != bursts || !(r->latency > 0))
		return;
	m->weights += weight;
	m->sum += weight * fmin(r->latency, most);
}

static void add_latencies(const struct parda *p, const struct parda_report *own, bool bursts,
	double most, struct mean *m)
{
	add_latency(p, own, bursts, most, m);
	for (uint32_t i = 0; !p->config.local && i < p->peers.n; i++)
		if (parda_peer_counts(&p->peers, &p->peers.peers[i]))
			add_latency(p, &p->peers.peers[i].last, bursts, most, m);
}

/* Return the mean latency. That of a host with credit is mostly of its own burst, and ends with it: beside hosts that
 * their windows limit it counts as no more than theirs. A burst that is shorter than a period is seen nowhere else:
 * its mean number of requests inside is below the window. */
static double latency_of(const struct parda *p, const struct parda_report *own)
{
	struct mean m = {0};

	add_latencies(p, own, false, INFINITY, &m);
	add_latencies(p, own, true, m.weights > 0 ? m.sum / m.weights : INFINITY, &m);
	return m.weights > 0 ? m.sum / m.weights : 0;
}

/* Return slots a second of a host. */
static double rate_of(const struct parda *p, const struct parda_report *r)
{
	return r->latency > 0 ? r->ios * parda_tenant_size(r->ios, r->bytes, p->config.slot) : 0;
}

double parda_sums_part(const struct parda *p, const struct parda_report *own, double all)
{
	double level = 0, before;

	if (!(own->shares > 0) || !(all > 0))
		return 0;
	for (unsigned i = 0; i < PASSES; i++) {
		double left = all, shares = own->shares;

		for (uint32_t k = 0; k < p->peers.n; k++) {
			const struct parda_peer *peer = &p->peers.peers[k];
			const struct parda_report *r = &peer->last;
			double rate = rate_of(p, r);

			if (p->config.local || !parda_peer_counts(&p->peers, peer))
				continue;
			if (rate <= level * r->shares && !is_limited(r, peer->before))
				left -= rate;
			else
				shares += r->shares;
		}
		before = level;
		level = left / shares;
		if (level <= before)
			break;
	}
	return level * own->shares;
}

struct parda_sums parda_sums_of(const struct parda *p, const struct parda_report *own)
{
	struct parda_sums s = {0};

	add(p, &s, own, own->window);
	for (uint32_t i = 0; !p->config.local && i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];
		const struct parda_report *r = &peer->last;

		if (!parda_peer_counts(&p->peers, peer)) {
			if (parda_peer_vanished(&p->peers, peer)) {
				s.vanished += r->inside;
				s.vanished_shares += r->shares;
			}
			continue;
		}
		add(p, &s, r, peer->before);
		s.peers++;
		s.add_up |= peer->apart == PARDA_ADD_UP;
		s.merge |= peer->apart == PARDA_MERGE;
		s.now += peer->silent <= 1; /* it was aged in this step */
		if (r->shares > 0 && r->inside > PARDA_IN_USE * r->window)
			s.ratio = fmax(s.ratio, r->window / r->shares);
		s.at_work |= r->shares > 0 && r->steps > PARDA_START_STEPS;
	}
	s.latency = latency_of(p, own);
	return s;
}

static bool room_for_ratios(struct parda *p)
{
	if (p->ratios_room > p->peers.n)
		return true;
	if (array_resize(&p->ratios, p->peers.room + 1) < 0)
		return false;
	p->ratios_room = p->peers.room + 1;
	return true;
}

double parda_sums_ratio(struct parda *p)
{
	uint32_t n = 0;

	if (!room_for_ratios(p))
		return 0;
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (parda_peer_counts(&p->peers, peer) && peer->last.shares > 0 &&
			used_part(p, &peer->last, peer->before) >= 0.5)
			p->ratios[n++] = peer->last.window / peer->last.shares;
	}
	return parda_median(p->ratios, n);
}

double parda_sums_floor(struct parda *p, double own, bool *ret_common)
{
	uint32_t n = 0, found = own > 0;

	*ret_common = own > 0;
	if (!room_for_ratios(p))
		return own;
	p->ratios[n++] = -own; /* so that parda_median's lower one is the upper */
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (!parda_peer_counts(&p->peers, peer) || !(peer->last.shares > 0))
			continue;
		found += peer->last.floor > 0;
		p->ratios[n++] = -peer->last.floor;
	}
	*ret_common = 2 * found > n;
	return -parda_median(p->ratios, n);
}
