/* SPDX-License-Identifier: BSD-3-Clause */
/* parda: one step, from what was measured and heard to a window. See parda.h. */
#include "ctl/parda.h"
#include "alg/knee.h"
#include "ctl/parda-peers.h"
#include "ctl/parda-start.h"
#include "ctl/parda-stranger.h"
#include "ctl/parda-tenant.h"
#include "ctl/parda-warn.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No host says more than this of itself: what does is not a report. */
#define MOST       1e15
#define MIN_MARGIN 1.02
#define IN_USE     0.8 /* of a window: its host is held back by it */
#define LEFT_FLOOR 2.0 /* of the threshold: where windows are after they have left the floor */

struct parda {
	struct parda_config config;
	struct parda_law law; /* the config's, with the threshold that is fed to eq. 2 */
	struct parda_peers peers;
	struct knee *knee; /* NULL: the threshold is given */
	double *ratios;    /* room for the peers' w/β */
	uint32_t ratios_room;
	bool started, idle;
	struct parda_start start;
	struct parda_stranger stranger;
	struct parda_warn warn;
	double inside;     /* of all, averaged as latency is */
	bool was_at_floor; /* beside a stranger, and what hosts have was not yet divided anew */
	unsigned joining;  /* steps for which it still may join */
	double together;   /* slots a share, of all, when some were apart; 0: none were */
	weir_time last;    /* the step before */
	uint64_t sequence;
	double window, latency; /* own; slots, ns */
	double size;            /* slots of a request, averaged; 0: none is known */
	double threshold;       /* aimed at */
	double decided;         /* by our own knee, in the last step */
	double scale;           /* of the last step that could tell one */
	unsigned twice;         /* steps for which to say that our own id is used twice */
	struct parda_counts counts;
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

static void begin(struct parda *p)
{
	p->window = fmax(p->law.wmin, fmin(p->config.window, p->law.wmax));
	if (p->config.window > 0)
		p->joining = p->config.age;
	else
		parda_start_begin(&p->start);
}

double parda_start_window(const struct parda *p)
{
	return p->window;
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
	begin(p);
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
		!may_be(r->threshold) || !may_be(r->floor) || r->sequence == 0 || r->instance == 0)
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

void parda_counts(const struct parda *p, struct parda_counts *ret)
{
	*ret = p->counts;
}

/* ---- a step */

struct sums { /* over the host and the peers that count */
	double shares, slots;
	double ios;
	double weights, latency; /* of latencies, and Σ of them weighted: by ios */
	double inside;       /* slots */
	double windows;      /* of those with shares */
	bool add_up, merge;  /* some were apart from us, and it is time */
	uint32_t hosts;      /* with shares */
	uint32_t peers, now; /* those that count; those heard since the last step */
	double least;        /* shares of the host with the least, but not none; 0: none has any */
	bool at_work;        /* a peer with shares no longer starts */
	double ratio;        /* most slots a share of a peer that uses them */
	double vanished;     /* slots in use of peers that are forgotten and did not leave */
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

static void add(const struct parda *p, struct sums *s, const struct parda_report *r)
{
	s->shares += r->shares;
	s->slots += literal(p) ? 0 : slots_of(p, r);
	s->inside += r->inside;
	s->windows += r->shares > 0 ? r->window : 0;
	s->hosts += r->shares > 0;
	if (r->shares > 0)
		s->least = s->least > 0 ? fmin(s->least, r->shares) : r->shares;
	if (r->latency > 0) {
		double weight = p->config.unweighted ? r->ios > 0 : r->ios;

		s->ios += r->ios;
		s->weights += weight;
		s->latency += weight * r->latency;
	}
}

static struct sums sum_up(struct parda *p, const struct parda_report *own)
{
	struct sums s = {0};

	add(p, &s, own);
	for (uint32_t i = 0; !p->config.local && i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (!parda_peer_counts(&p->peers, peer)) {
			s.vanished += parda_peer_vanished(&p->peers, peer) ? peer->last.inside : 0;
			continue;
		}
		add(p, &s, &peer->last);
		s.peers++;
		s.add_up |= peer->apart == PARDA_ADD_UP;
		s.merge |= peer->apart == PARDA_MERGE;
		s.now += peer->silent <= 1; /* it has been aged in this step */
		if (peer->last.shares > 0 && peer->last.inside > IN_USE * peer->last.window)
			s.ratio = fmax(s.ratio, peer->last.window / peer->last.shares);
		s.at_work |= peer->last.shares > 0 && peer->last.steps > PARDA_START_STEPS;
	}
	return s;
}

static double scale_of(struct parda *p, const struct sums *s)
{
	double scale;

	if (literal(p))
		return p->config.unit;
	scale = parda_scale(p->config.epsilon, s->slots, s->shares);
	if (scale > 0)
		p->scale = scale;
	return p->scale;
}

/* Room for a value of each peer and of the host. */
static bool room_for_ratios(struct parda *p)
{
	double *more;

	if (p->ratios_room > p->peers.n)
		return true;
	more = realloc(p->ratios, (p->peers.room + 1) * sizeof(*more));
	if (!more)
		return false;
	p->ratios = more;
	p->ratios_room = p->peers.room + 1;
	return true;
}

/* The median of w/shares over the peers that use their slots; 0: there is none. It is that of w/β
 * times the scale, but does not depend on whose scale: the one who joins does not know it yet. */
static double median_ratio(struct parda *p)
{
	uint32_t n = 0;

	if (!room_for_ratios(p))
		return 0;
	for (uint32_t i = 0; i < p->peers.n; i++) {
		const struct parda_peer *peer = &p->peers.peers[i];

		if (parda_peer_counts(&p->peers, peer) && peer->last.shares > 0)
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
	if ((p->joining || p->start.on) && !idle)
		own->shares = all_shares(m);
	if (p->idle && !idle && !p->joining && !p->start.on)
		p->joining = 1;
	p->idle = idle;
}

/* Everybody watches; the lowest id decides, and aims itself at what it has told before: so all of them
 * change at once, and none gains a period on the others. Returns what is to be told. */
static double find_threshold(struct parda *p, const struct sums *s)
{
	struct knee_seen seen = {
		s->inside, s->windows, s->ios, s->weights > 0 ? s->latency / s->weights : 0};
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

/* Slots a share that hosts keep: the upper median of what they have found, so that all keep the same. *ret_common: more
 * than half of them have found some. */
static double common_floor(struct parda *p, double own, bool *ret_common)
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

/* Hosts leave the floor one after the other, with more or less, and come apart by that. */
static void leave_floor(struct parda *p, double latency)
{
	if (!p->was_at_floor || latency > LEFT_FLOOR * p->threshold)
		return;
	p->was_at_floor = false;
	parda_peers_divide(&p->peers);
}

static void keep_floor(
	struct parda *p, const struct sums *s, struct parda_report *own, struct parda_decision *ret)
{
	struct parda_stranger_seen seen = {.inside = p->inside,
		.vanished = s->vanished,
		.windows = s->windows,
		.latency = ret->latency,
		.threshold = p->config.law.threshold,
		.shares = s->shares,
		.hosts = s->hosts,
		.wmin = p->law.wmin};
	double slots;
	bool common;

	if (literal(p) || p->config.no_floor)
		return;
	parda_stranger_step(&p->stranger, &seen);
	own->floor = p->stranger.floor;
	slots = common_floor(p, own->floor, &common) * own->shares;
	ret->stranger = p->stranger.here && common;
	ret->strange = ret->stranger ? p->stranger.requests : 0;
	if (p->start.on || !(slots > p->window)) {
		leave_floor(p, ret->latency);
		return;
	}
	p->was_at_floor = true;
	ret->floor = slots;
	ret->too_low = slots > p->law.wmax;
	p->window = fmin(slots, p->law.wmax);
}

static void warn(struct parda *p, const struct sums *s, const struct parda_report *own,
	struct parda_decision *ret)
{
	struct parda_warn_seen seen = {.window = p->window,
		.inside = own->inside,
		.wmin = p->law.wmin,
		.wmax = p->law.wmax,
		.shares = own->shares,
		.ratio = s->ratio,
		.latency = ret->latency,
		.threshold = p->threshold,
		.all_inside = s->inside,
		.all_windows = s->windows,
		.all_shares = s->shares,
		.hosts = s->hosts};

	parda_warn_step(&p->warn, &seen);
	ret->wmax_short = p->warn.wmax && !ret->stranger;
	ret->wmax_wanted = p->warn.wanted;
	ret->unreachable = p->warn.unreachable;
	ret->least = p->warn.least;
}

/* The window is no smaller than what guarantees need. By Little's law that is so on the mean; the
 * margin is for the spread of latency from period to period. */
static void keep_min(struct parda *p, const struct parda_measured *m)
{
	double slots = MIN_MARGIN * parda_floor(m->vms, m->n_vms, p->latency / 1e9);

	if (p->window < slots)
		p->window = fmin(slots, p->law.wmax);
}

/* A step of the start; true: it is over, and the law moves the window. */
static bool start(struct parda *p, const struct sums *s, double shares, double latency)
{
	struct parda_start_seen seen = {.shares = shares,
		.least = s->least,
		.ratio = p->config.local || !s->now ? 0 : median_ratio(p),
		.at_work = s->at_work,
		.loaded = fmax(latency, p->latency) > p->threshold / 2, /* own is newer */
		.wmin = p->law.wmin,
		.wmax = p->law.wmax};

	bool by_law = !p->idle && shares > 0 && parda_start_step(&p->start, &seen, &p->window);

	if (!p->start.on && seen.ratio > 0)
		parda_peers_settle(&p->peers);
	else if (!p->start.on)
		p->joining = p->config.age; /* their reports may have been lost */
	return by_law;
}

/* Those that have started get their part; of what latency says is free, first. */
static void make_room(struct parda *p, double shares, double latency)
{
	double kept = parda_peers_room(&p->peers, shares);

	if (kept < 1 && latency > 0)
		p->window *= fmin(1, kept * fmax(1, p->threshold / latency));
}

/* The window, from where the law finds it to where the law leaves it. */
static void move(
	struct parda *p, const struct sums *s, const struct parda_report *own, double latency)
{
	bool slowly = !p->config.abrupt;
	double most = p->law.wmax;

	if (p->start.on && !start(p, s, own->shares, latency))
		return;
	if (p->joining && s->now > 0 && !p->idle && join(p, own->shares))
		p->joining = 0;
	else
		merge(p, s, own->shares);
	if (slowly && !p->config.local)
		make_room(p, own->shares, latency);
	if (slowly && latency < p->threshold / 2)
		most = fmin(most, fmax(2 * p->window, p->law.wmin));
	/* Who joins goes the same step as its peers, who have told where they stood before it. */
	p->window = fmin(parda_window(&p->law, p->window, own->beta, latency), most);
	if (p->joining && !p->idle)
		p->joining--;
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
	}
	own.shares = parda_shares(m->vms, m->n_vms, p->window);
	note_joining(p, m, stopped, &own);
	own.latency = p->latency;
	own.window = p->window; /* until it is known better, for the sums */
	own.beta = p->scale * own.shares;
	s = sum_up(p, &own);
	p->inside = parda_average_time(p->inside, (double)span, (double)p->config.tau, s.inside);
	ret->scale = scale_of(p, &s);
	ret->beta = own.beta = ret->scale * own.shares;
	ret->latency = s.weights > 0 ? s.latency / s.weights : 0;
	if (p->config.local)
		ret->latency = p->latency;
	own.threshold = p->knee ? find_threshold(p, &s) : p->threshold;
	move(p, &s, &own, ret->latency);
	keep_floor(p, &s, &own, ret);
	warn(p, &s, &own, ret);
	keep_min(p, m);
	own.window = p->window;
	ret->window = p->window / size_of(p);
	ret->threshold = p->threshold;
	ret->knee = p->knee ? p->knee->knee : 0;
	ret->ios = s.ios;
	ret->inside = s.inside;
	ret->peers = s.peers;
	ret->alone = !p->config.local && s.peers == 0;
	say_twice(p, ret);
	ret->report = own;
}
