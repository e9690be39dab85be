/* SPDX-License-Identifier: BSD-3-Clause */
/* parda: one step, from measurements and reports to a window. See parda.h. */
#include "control/parda/impl.h"
#include "control/parda/tenant.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Larger values are not a report. */
#define MOST 1e15
/* Periods until a host that rejoins has its part, with its credit. */
#define TURN 5

/* ---- set-up */

static int check_law(const struct parda_law *law)
{
	if (!(law->threshold > 0) || !(law->gamma > 0 && law->gamma <= 1) ||
		!(law->wmin >= 0 && law->wmin <= law->wmax) || !(law->wmax < MOST))
		return -EINVAL;
	return 0;
}

static void aim(struct parda *p, double threshold)
{
	p->threshold = threshold;
	p->law.threshold =
		parda_is_literal(p) ? threshold : parda_fed(threshold, p->config.epsilon);
}

int parda_set_law(struct parda *p, const struct parda_law *law)
{
	int r = check_law(law);

	if (r)
		return r;
	p->config.law = p->law = *law;
	if (p->knee)
		p->knee->config.most = law->threshold;
	if (p->probe)
		p->probe->latency_most = law->threshold;
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
		c->age = 4; /* with one report in ten lost, one peer in ten thousand is forgotten */
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
	if (!p->config.probe)
		return 0;
	p->probe = malloc(sizeof(*p->probe));
	if (!p->probe)
		return -ENOMEM;
	probe_init(p->probe, p->config.law.threshold,
		p->config.period < 10 * PROBE_BURST ? p->config.period / 10 : PROBE_BURST);
	return 0;
}

static void begin(struct parda *p)
{
	p->window = fmax(p->law.wmin, fmin(p->config.window, p->law.wmax));
	p->credit.span = p->config.burst;
	p->credit.period = p->config.period;
	p->credit.turn = TURN * p->config.period;
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
	parda_idle_clear(&p->idle_vms);
	free(p->ratios);
	free(p->knee);
	free(p->probe);
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

void parda_renumber(struct parda *p)
{
	parda_idle_clear(&p->idle_vms);
}

void parda_counts(const struct parda *p, struct parda_counts *ret)
{
	*ret = p->counts;
}

/* ---- a step */

/* Return the time since the last step. *ret_stopped: so long that our peers have forgotten us. */
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

/* eq. 1. While requests are inside and none completes, their time inside counts. */
static void average(struct parda *p, weir_time span, const struct parda_measured *m)
{
	const struct parda_config *c = &p->config;
	double n = m->ios ? (double)m->ios : 1, latency = m->latency_ns / n;

	if (!(latency > 0))
		return;
	if (m->ios)
		p->size = parda_average_time(p->size, (double)span, (double)c->tau,
			parda_tenant_size(n, m->bytes, c->slot));
	if (c->smoothing == PARDA_BY_TIME)
		p->latency = parda_average_time(p->latency, (double)span, (double)c->tau, latency);
	else if (c->smoothing == PARDA_BY_IO)
		p->latency = parda_average_ios(p->latency, c->alpha, latency, n);
	else
		p->latency = parda_average(p->latency, c->alpha, latency);
}

/* Aim at the threshold for the mean size of all hosts' requests. One that is found follows the sizes by itself. */
static void aim_by_size(struct parda *p, const struct parda_sums *s, weir_time span)
{
	if (s->ios > 0 && s->bytes > 0)
		p->io_mean = parda_average_time(
			p->io_mean, (double)span, (double)p->config.tau, s->bytes / s->ios);
	aim(p, parda_by_size(p->config.law.threshold, p->io_mean, p->config.size_fixed));
}

static double size_of(const struct parda *p)
{
	return p->size > 0 ? p->size : 1;
}

static double scale_of(struct parda *p, const struct parda_sums *s)
{
	double scale;

	if (parda_is_literal(p))
		return p->config.unit;
	scale = parda_scale(p->config.epsilon, s->slots, s->used_shares);
	if (scale > 0)
		p->scale = scale;
	return p->scale;
}

static double all_shares(const struct parda_measured *m)
{
	double all = 0;

	for (size_t i = 0; i < m->n_vms; i++)
		all += m->vms[i].shares;
	return all;
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

/* Decide whether it joins again, and with which shares. If its tenants were idle: those of eq.
 * 4. */
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

/* All hosts observe; the one with the lowest id decides, and follows its own last report: so all
 * change at once, and none is a period ahead. Return the threshold to report. */
static double find_threshold(struct parda *p, const struct parda_sums *s)
{
	struct knee_seen seen = {s->inside, s->used_windows, s->ios, s->latency};
	double before = p->decided, told = knee_step(p->knee, &seen);
	uint64_t lowest = p->config.id;

	if (p->probe && p->probe->knee > 0)
		told = fmin(p->probe->knee, p->config.law.threshold);
	p->decided = told;

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

static void warn(struct parda *p, const struct parda_sums *s, const struct parda_report *own,
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
		.hosts = s->hosts,
		.floor = ret->stranger && ret->floor > 0};

	parda_warn_step(&p->warn, &seen);
	ret->wmax_short = p->warn.wmax && !ret->stranger;
	ret->wmax_wanted = p->warn.wanted;
	ret->unreachable = p->warn.unreachable;
	ret->least = p->warn.least;
}

static double knee_of(const struct parda *p)
{
	if (p->probe && p->probe->knee > 0)
		return p->probe->knee;
	return p->knee ? p->knee->knee : 0;
}

static void save(struct parda *p, const struct parda_sums *s, const struct parda_report *own,
	double held, weir_time span)
{
	double gate = parda_credit_window(&p->credit, p->window, p->law.wmax);
	struct parda_credit_seen seen = {.window = p->window,
		.others = fmax(0, s->inside - own->inside),
		.done = own->ios * size_of(p) / 1e9,
		.all = s->done / 1e9,
		.part = parda_sums_part(p, own, s->done) / 1e9,
		.limited = own->inside + held > PARDA_IN_USE * gate};

	parda_credit_step(&p->credit, &seen, span);
}

void parda_step(
	struct parda *p, weir_time now, const struct parda_measured *m, struct parda_decision *ret)
{
	struct parda_report own = {
		.id = p->config.id, .instance = p->config.instance, .sequence = ++p->sequence};
	bool stopped;
	weir_time span = span_of(p, now, &stopped);
	struct parda_sums s;

	*ret = (struct parda_decision){0};
	own.steps = p->sequence;
	if (p->sequence == 1) /* keeps below 2 % from the start */
		p->probe_next = p->probe ? now + PROBE_PART * p->probe->burst : 0;
	parda_peers_age(&p->peers);
	if (!stopped) { /* else most measurements are of a stopped host */
		average(p, span, m);
		parda_probe_size(p, m);
		own.inside = m->inside * size_of(p);
		own.bytes = m->bytes * 1e9 / (double)span;
		own.ios = (double)(m->ios || !(m->inside > 0) ? m->ios : 1) * 1e9 / (double)span;
	}
	if (stopped || p->start.on)
		p->credit.saved = 0;
	own.bursts = parda_credit_has(&p->credit);
	own.shares = shares_of(p, m, stopped ? p->config.period : span);
	note_joining(p, m, stopped, &own);
	own.latency = p->latency;
	own.window = p->window; /* preliminary, for the sums */
	own.beta = p->scale * own.shares;
	s = parda_sums_of(p, &own);
	if (!stopped && !p->start.on && p->latency > 0) /* none before its first request */
		save(p, &s, &own, m->held * size_of(p), span);
	p->inside = parda_average_time(p->inside, (double)span, (double)p->config.tau, s.inside);
	ret->scale = scale_of(p, &s);
	ret->beta = own.beta = ret->scale * own.shares;
	ret->latency = p->config.local ? p->latency : s.latency;
	if (!p->knee)
		aim_by_size(p, &s, span);
	own.threshold = p->knee ? find_threshold(p, &s) : p->threshold;
	parda_move(p, &s, m, span, &own, ret);
	warn(p, &s, &own, ret);
	own.window = p->window;
	ret->window = parda_credit_window(&p->credit, p->window, p->law.wmax) / size_of(p);
	ret->credit = p->credit.saved;
	ret->threshold = p->threshold;
	ret->knee = knee_of(p);
	ret->ios = s.ios;
	ret->inside = s.inside;
	ret->peers = s.peers;
	ret->alone = !p->config.local && s.peers == 0;
	say_twice(p, ret);
	ret->report = own;
}
