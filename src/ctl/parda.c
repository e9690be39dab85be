/* SPDX-License-Identifier: BSD-3-Clause */
/* parda: one step, from what was measured and heard to a window. See parda.h. */
#include "ctl/parda.h"
#include "alg/knee.h"
#include "ctl/parda-credit.h"
#include "ctl/parda-peers.h"
#include "ctl/parda-tenant.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No host says more than this of itself: what does is not a report. */
#define MOST       1e15
#define MIN_MARGIN 1.02
#define USED_HALF  2.0 /* a host that uses half of its window counts as one that uses all of it */

struct parda {
	struct parda_config config;
	struct parda_law law; /* the config's, with the threshold that is fed to eq. 2 */
	struct parda_peers peers;
	struct knee *knee; /* NULL: the threshold is given */
	double *ratios;    /* room for the peers' w/β */
	uint32_t ratios_room;
	bool started, idle;
	unsigned joining; /* steps for which it still may join */
	double together;  /* slots a share, of all, when some were apart; 0: none were */
	weir_time last;   /* the step before */
	uint64_t sequence;
	double window, latency; /* own; slots, ns */
	double size;            /* slots of a request, averaged; 0: none is known */
	double threshold;       /* aimed at */
	double decided;         /* by our own knee, in the last step */
	double scale;           /* of the last step that could tell one */
	unsigned twice;         /* steps for which to say that our own id is used twice */
	struct parda_counts counts;
	struct parda_idle_table idle_vms;
	struct parda_credit credit;
	struct {
		double latency, added; /* ns: in the step before; of it, by bursts on credit */
	} burst;
};

/* ---- set-up */

static int check_law(const struct parda_law *law)
{
	if (!(law->threshold > 0) || !(law->gamma > 0 && law->gamma <= 1) ||
		!(law->wmin >= 0 && law->wmin <= law->wmax) || !(law->wmax < MOST))
		return -EINVAL;
	return 0;
}

static bool literal(const struct parda *p)
{
	return p->config.local || p->config.epsilon <= 0;
}

static void aim(struct parda *p, double threshold)
{
	p->threshold = threshold;
	p->law.threshold = literal(p) ? threshold : parda_fed(threshold, p->config.epsilon);
}

int parda_set_law(struct parda *p, const struct parda_law *law)
{
	int r = check_law(law);

	if (r)
		return r;
	p->config.law = p->law = *law;
	if (p->knee)
		p->knee->config.most = law->threshold;
	aim(p, p->knee ? fmin(p->knee->asked, law->threshold) : law->threshold);
	return 0;
}

static void fill_in(struct parda_config *c)
{
	if (c->unit <= 0)
		c->unit = 1;
	if (c->period <= 0)
		c->period = 2 * WEIR_SEC;
	if (c->alpha <= 0)
		c->alpha = 0.002; /* the paper's */
	if (c->tau <= 0)
		c->tau = WEIR_SEC; /* half a period: the newest interval weighs 0.86 */
	if (c->age == 0)
		c->age = 4; /* one report in ten lost: one peer in ten thousand forgotten */
	if (c->peers_max == 0)
		c->peers_max = 4096;
	if (c->window <= 0)
		c->window = 4; /* little, until peers are heard; alone it grows threefold a step */
}

static int start_finding(struct parda *p)
{
	struct knee_config config = {.most = p->config.law.threshold};

	p->knee = malloc(sizeof(*p->knee));
	if (!p->knee)
		return -ENOMEM;
	knee_init(p->knee, &config);
	p->decided = p->knee->asked;
	return 0;
}

int parda_new(const struct parda_config *config, struct parda **ret)
{
	struct parda *p;
	int r;

	if (check_law(&config->law) || !(config->epsilon >= 0) || !isfinite(config->epsilon))
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->config = *config;
	fill_in(&p->config);
	r = config->find ? start_finding(p) : 0;
	if (r) {
		parda_free(p);
		return r;
	}
	parda_set_law(p, &config->law);
	p->window = fmax(p->law.wmin, fmin(p->config.window, p->law.wmax));
	p->joining = p->config.age;
	p->credit.span = p->config.burst;
	r = parda_peers_init(&p->peers, p->config.peers_max, p->config.age);
	if (r) {
		parda_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void parda_free(struct parda *p)
{
	if (!p)
		return;
	parda_peers_free(&p->peers);
	parda_idle_clear(&p->idle_vms);
	free(p->ratios);
	free(p->knee);
	free(p);
}

/* ---- hearing */

static bool may_be(double x)
{
	return x >= 0 && x < MOST; /* and a number */
}

static enum parda_heard judge(struct parda *p, const struct parda_report *r)
{
	if (!may_be(r->shares) || !may_be(r->beta) || !may_be(r->window) || !may_be(r->inside) ||
		!may_be(r->latency) || !may_be(r->ios) || !may_be(r->bytes) ||
		!may_be(r->threshold) || r->sequence == 0 || r->instance == 0)
		return PARDA_WRONG;
	if (r->id != p->config.id)
		return parda_peers_hear(&p->peers, r);
	if (r->instance == p->config.instance)
		return PARDA_OWN;
	p->twice = p->config.age + 1;
	return PARDA_TWICE;
}

enum parda_heard parda_hear(struct parda *p, const struct parda_report *r)
{
	enum parda_heard heard = judge(p, r);

	p->counts.heard[heard]++;
	return heard;
}

void parda_leave(struct parda *p, uint64_t id, uint64_t instance)
{
	parda_peers_leave(&p->peers, id, instance);
}

void parda_renumber(struct parda *p)
{
	parda_idle_clear(&p->idle_vms);
}

void parda_counts(const struct parda *p, struct parda_counts *ret)
{
	*ret = p->counts;
}

/* ---- a step */

struct sums { /* over the host and the peers that count */
	double shares;
	double used_shares, slots; /* of those that use their windows, for the scale */
	double ios, latency;       /* latency weighted by ios */
	double inside;             /* slots */
	double windows;            /* of those with shares */
	double used_windows;       /* … that use them */
	double on_credit;          /* slots inside that hosts have above their windows */
	bool add_up, merge;        /* some were apart from us, and it is time */
	uint32_t peers, now;       /* those that count; those heard since the last step */
};

/* The time that this step stands for. *ret_stopped: so long that our peers have forgotten us. */
static weir_time span_of(struct parda *p, weir_time now, bool *ret_stopped)
{
	weir_time span = p->started ? now - p->last : p->config.period;

	*ret_stopped = span > (weir_time)p->config.age * p->config.period;
	if (span <= 0) /* the clock was set back */
		span = p->config.period;
	p->last = now;
	p->started = true;
	return span;
}

/* eq. 1. While requests are inside and none is done, the time that they have spent there counts. */
static void average(struct parda *p, weir_time span, const struct parda_measured *m)
{
	const struct parda_config *c = &p->config;
	double n = m->ios ? (double)m->ios : 1, latency = m->latency_ns / n;

	if (!(latency > 0))
		return;
	if (m->ios)
		p->size = parda_average_time(p->size, (double)span, (double)c->tau,
			parda_tenant_size(n, m->bytes, c->slot));
	latency = parda_per_8k(latency, m->bytes / n, c->size_fixed);
	if (c->smoothing == PARDA_BY_TIME)
		p->latency = parda_average_time(p->latency, (double)span, (double)c->tau, latency);
	else if (c->smoothing == PARDA_BY_IO)
		p->latency = parda_average_ios(p->latency, c->alpha, latency, n);
	else
		p->latency = parda_average(p->latency, c->alpha, latency);
}

static double size_of(const struct parda *p)
{
	return p->size > 0 ? p->size : 1;
}

/* The slots of a host's window that count for the scale: those that it uses, or that its β will
 * leave it. Not all of w: a host that has just become idle, or one of many that stand at wmin with
 * nothing to do, has slots that load nothing. */
static double slots_of(const struct parda *p, const struct parda_report *r)
{
	double rest = r->beta * (1 + p->config.epsilon) / p->config.epsilon;

	return fmin(r->window, fmax(r->inside, rest));
}

/* How much a host counts for the scale and for the windows that there are. A host that leaves its window unused keeps
 * its shares, but says nothing of what a share is worth: its window may stand at wmin or wmax. */
static double used_part(const struct parda *p, const struct parda_report *r)
{
	if (p->config.idle == PARDA_IDLE_LITERAL || !(r->window > 0))
		return 1;
	return fmin(1, USED_HALF * r->inside / r->window);
}

/* before: the window in which its `inside` was measured. */
static void add(const struct parda *p, struct sums *s, const struct parda_report *r, double before)
{
	double used = used_part(p, r);

	s->shares += r->shares;
	s->used_shares += used * r->shares;
	s->slots += literal(p) ? 0 : used * slots_of(p, r);
	s->inside += r->inside;
	s->on_credit += fmax(0, r->inside - before);
	s->windows += r->shares > 0 ? r->window : 0;
	s->used_windows += r->shares > 0 ? used * r->window : 0;
	if (r->latency > 0) {
		s->ios += r->ios;
		s->latency += r->ios * r->latency;
	}
}

static struct sums sum_up(struct parda *p, const struct parda_report *own)
{
	struct sums s = {0};

	add(p, &s, own, p->window);
	for (uint32_t i = 0; !p->config.local && i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (!parda_peer_counts(&p->peers, peer))
			continue;
		add(p, &s, &peer->last, peer->before);
		s.peers++;
		s.add_up |= peer->apart == PARDA_ADD_UP;
		s.merge |= peer->apart == PARDA_MERGE;
		s.now += peer->silent <= 1; /* it has been aged in this step */
	}
	return s;
}

static double scale_of(struct parda *p, const struct sums *s)
{
	double scale;

	if (literal(p))
		return p->config.unit;
	scale = parda_scale(p->config.epsilon, s->slots, s->used_shares);
	if (scale > 0)
		p->scale = scale;
	return p->scale;
}

/* The median of w/shares over the peers that use their slots; 0: there is none. It is that of w/β
 * times the scale, but does not depend on whose scale: the one who joins does not know it yet. */
static double median_ratio(struct parda *p)
{
	uint32_t n = 0;

	if (p->ratios_room < p->peers.n) {
		double *more = realloc(p->ratios, p->peers.room * sizeof(*more));

		if (!more)
			return 0;
		p->ratios = more;
		p->ratios_room = p->peers.room;
	}
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (parda_peer_counts(&p->peers, peer) && peer->last.shares > 0 &&
			used_part(p, &peer->last) >= 0.5)
			p->ratios[n++] = peer->last.window / peer->last.shares;
	}
	return parda_median(p->ratios, n);
}

/* Where a host that joins begins; false: nobody could tell. */
static bool join(struct parda *p, double shares)
{
	double ratio = median_ratio(p);

	if (!(ratio > 0) || !(shares > 0))
		return false;
	p->window = fmax(p->law.wmin, fmin(shares * ratio, p->law.wmax));
	return true;
}

/* Those that were apart are back: what all have together is added up, and divided in the next step. Nobody
 * has changed anything by then, so all divide the same, and latency stays. */
static void merge(struct parda *p, const struct sums *s, double shares)
{
	if (s->merge && p->together > 0 && !p->idle)
		p->window = fmax(p->law.wmin, fmin(shares * p->together, p->law.wmax));
	p->together = s->add_up && s->shares > 0 ? s->windows / s->shares : 0;
}

static double all_shares(const struct parda_measured *m)
{
	double all = 0;

	for (size_t i = 0; i < m->n_vms; i++)
		all += m->vms[i].shares;
	return all;
}

/* The latency without what bursts on credit add to it, which does not last and is no reason for smaller windows. The
 * average goes on with a part of the past, `keep`, and so must what is subtracted: of the new part, as much as is inside
 * on credit. */
static double without_credit(struct parda *p, const struct sums *s, double latency, weir_time span)
{
	const struct parda_config *c = &p->config;
	double keep = c->smoothing == PARDA_BY_TIME ? exp(-(double)span / (double)c->tau) : 0;
	double part = s->inside > 0 ? fmin(1, s->on_credit / s->inside) : 0;
	double fresh = fmax(0, latency - keep * p->burst.latency);

	if (c->burst <= 0)
		return latency;
	p->burst.added = fmin(latency, keep * p->burst.added + part * fresh);
	p->burst.latency = latency;
	return latency - p->burst.added;
}

static double shares_of(struct parda *p, const struct parda_measured *m, weir_time span)
{
	if (p->config.idle == PARDA_IDLE_LITERAL)
		return parda_shares(m->vms, m->n_vms, p->window);
	if (p->config.idle == PARDA_IDLE_IGNORE)
		return all_shares(m);
	return parda_idle_shares(&p->idle_vms, m->vms, m->n_vms, p->window, span);
}

static void say_twice(struct parda *p, struct parda_decision *ret)
{
	if (p->twice) {
		p->twice--;
		ret->twice = true;
		ret->twice_id = p->config.id;
	}
	for (uint32_t i = 0; !ret->twice && i < p->peers.n; i++) {
		if (p->peers.peers[i].twice) {
			ret->twice = true;
			ret->twice_id = p->peers.peers[i].last.id;
		}
	}
}

/* Does it begin anew, and with which shares? One whose tenants were idle has those of eq. 4. */
static void note_joining(
	struct parda *p, const struct parda_measured *m, bool stopped, struct parda_report *own)
{
	bool idle = m->ios == 0 && !(m->inside > 0);

	if (stopped)
		p->joining = p->config.age;
	if (p->joining && !idle)
		own->shares = all_shares(m);
	if (p->idle && !idle && !p->joining)
		p->joining = 1;
	p->idle = idle;
}

/* Everybody watches; the lowest id decides, and aims itself at what it has told before: so all of them
 * change at once, and none gains a period on the others. Returns what is to be told. */
static double find_threshold(struct parda *p, const struct sums *s)
{
	struct knee_seen seen = {
		s->inside, s->used_windows, s->ios, s->ios > 0 ? s->latency / s->ios : 0};
	double before = p->decided, told = p->decided = knee_step(p->knee, &seen);
	uint64_t lowest = p->config.id;

	for (uint32_t i = 0; !p->config.local && i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (!parda_peer_counts(&p->peers, peer) || peer->last.id > lowest ||
			!(peer->last.threshold > 0))
			continue;
		lowest = peer->last.id;
		before = told = fmin(peer->last.threshold, p->config.law.threshold);
	}
	aim(p, before);
	return told;
}

/* The window is no smaller than what guarantees need. By Little's law that is so on the mean; the
 * margin is for the spread of latency from period to period. */
static void keep_min(struct parda *p, const struct parda_measured *m)
{
	double slots = MIN_MARGIN * parda_floor(m->vms, m->n_vms, p->latency / 1e9);

	if (p->window < slots)
		p->window = fmin(slots, p->law.wmax);
}

void parda_step(
	struct parda *p, weir_time now, const struct parda_measured *m, struct parda_decision *ret)
{
	struct parda_report own = {
		.id = p->config.id, .instance = p->config.instance, .sequence = ++p->sequence};
	bool stopped;
	weir_time span = span_of(p, now, &stopped);
	struct sums s;

	*ret = (struct parda_decision){0};
	own.steps = p->sequence;
	parda_peers_age(&p->peers);
	if (!stopped) { /* else what was measured is mostly that nothing moved */
		average(p, span, m);
		own.inside = m->inside * size_of(p);
		own.bytes = m->bytes * 1e9 / (double)span;
		own.ios = (double)(m->ios || !(m->inside > 0) ? m->ios : 1) * 1e9 / (double)span;
		parda_credit_step(&p->credit, p->window, own.inside, span);
	} else {
		p->credit.saved = 0;
	}
	own.shares = shares_of(p, m, stopped ? p->config.period : span);
	note_joining(p, m, stopped, &own);
	own.latency = p->latency;
	own.window = p->window; /* until it is known better, for the sums */
	own.beta = p->scale * own.shares;
	s = sum_up(p, &own);
	ret->scale = scale_of(p, &s);
	ret->beta = own.beta = ret->scale * own.shares;
	ret->latency = s.ios > 0 ? s.latency / s.ios : 0;
	if (p->config.local)
		ret->latency = p->latency;
	own.threshold = p->knee ? find_threshold(p, &s) : p->threshold;
	if (p->joining && s.now > 0 && !p->idle && join(p, own.shares))
		p->joining = 0;
	else
		merge(p, &s, own.shares);
	/* Who joins goes the same step as its peers, who have told where they stood before it. */
	p->window = parda_window(
		&p->law, p->window, own.beta, without_credit(p, &s, ret->latency, span));
	if (p->joining && !p->idle)
		p->joining--;
	keep_min(p, m);
	own.window = p->window;
	ret->window = parda_credit_window(&p->credit, p->window, p->law.wmax) / size_of(p);
	ret->credit = p->credit.saved / 1e9;
	ret->threshold = p->threshold;
	ret->knee = p->knee ? p->knee->knee : 0;
	ret->ios = s.ios;
	ret->inside = s.inside;
	ret->peers = s.peers;
	ret->alone = !p->config.local && s.peers == 0;
	say_twice(p, ret);
	ret->report = own;
}
