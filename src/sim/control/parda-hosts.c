/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "sim/measure.h"
#include "sim/control/parda-hosts-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the map */

static const char *const keys[] = {"kind", "period", "device", "hosts", "threshold",
	"threshold_max", "gamma", "epsilon", "unit", "wmin", "wmax", "window", "estimate",
	"smoothing", "alpha", "tau", "age", "delay", "loss", "size_fixed", "slot", "faults",
	"start", "stranger", "idle", "burst", "probe", "without", NULL};
static const char *const estimates[] = {"aggregated", "local", NULL};
static const char *const smoothings[] = {"time", "io", "interval", NULL};
static const char *const switches[] = {"nothing", "ageing", "windows", "weighting", "held", NULL};
#define NEVER (1u << 20) /* periods */
static const char *const strangers[] = {"floor", "ignore", NULL};
static const char *const starts[] = {"least", "depth", NULL};
static const char *const idles[] = {"average", "literal", "ignore", NULL}; /* enum parda_idle */

static int read_law(yamldoc_node map, struct settings *ret, struct weir_err *err)
{
	struct parda_config *c = &ret->config;
	const char *text = yamldoc_text(yamldoc_get(map, "threshold"));
	weir_time threshold = 100 * WEIR_MS;
	int start = 0, stranger = 0, r;

	r = yamldoc_optional(yamldoc_bool(map, "probe", &c->probe, err));
	if (r)
		return r;
	c->find = text && strcmp(text, "auto") == 0;
	if (c->probe && !c->find)
		return yamldoc_error(yamldoc_get(map, "probe"), err, "needs 'threshold: auto'");
	if (c->find)
		r = yamldoc_optional(yamldoc_time(map, "threshold_max", &threshold, err));
	else
		r = yamldoc_time(map, "threshold", &threshold, err);

	if (r == -ENOENT)
		return yamldoc_error(map, err, "needs a 'threshold', as in '30ms' or 'auto'");
	if (r || (r = yamldoc_optional(yamldoc_count(map, "gamma", &c->law.gamma, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "epsilon", &c->epsilon, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "unit", &c->unit, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "wmin", &c->law.wmin, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "wmax", &c->law.wmax, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "window", &c->window, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "start", starts, &start, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "stranger", strangers, &stranger, err))))
		return r;
	c->law.threshold = (double)threshold;
	c->abrupt = start == 1;
	c->no_floor = stranger == 1;
	return 0;
}

static int read_estimate(yamldoc_node map, struct settings *ret, struct weir_err *err)
{
	struct parda_config *c = &ret->config;
	int estimate = 0, smoothing = 0, idle = PARDA_IDLE_AVERAGE, r;
	uint64_t fixed = 0, slot = 0;
	int64_t age = 0;

	if ((r = yamldoc_optional(yamldoc_choice(map, "estimate", estimates, &estimate, err))) ||
		(r = yamldoc_optional(
			 yamldoc_choice(map, "smoothing", smoothings, &smoothing, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "idle", idles, &idle, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "burst", &c->burst, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "alpha", &c->alpha, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "tau", &c->tau, err))) ||
		(r = yamldoc_optional(yamldoc_int(map, "age", 1, 1000, &age, err))) ||
		(r = yamldoc_optional(yamldoc_size_of(map, "size_fixed", &fixed, err))) ||
		(r = yamldoc_optional(yamldoc_size_of(map, "slot", &slot, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "delay", &ret->delay, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "loss", &ret->loss, err))))
		return r;
	if (c->burst > PARDA_BURST_MOST)
		return yamldoc_error(yamldoc_get(map, "burst"), err, "must be at most an hour");
	if (c->alpha > 1)
		return yamldoc_error(map, err, "alpha: must be at most 1");
	if (!(ret->loss <= 1))
		return yamldoc_error(map, err, "loss: must be at most 1");
	if (ret->delay > (KEPT / 2) * ret->period)
		return yamldoc_error(map, err, "delay: must be at most %d periods", KEPT / 2);
	c->local = estimate == 1;
	c->idle = (enum parda_idle)idle;
	c->smoothing = (enum parda_smoothing)smoothing;
	c->age = (unsigned)age;
	c->size_fixed = (double)fixed;
	c->slot = (double)slot;
	return 0;
}

static int read_without(yamldoc_node map, struct settings *ret, struct weir_err *err)
{
	int without = WITHOUT_NOTHING;
	int r = yamldoc_optional(yamldoc_choice(map, "without", switches, &without, err));

	ret->without = (enum without)without;
	if (ret->without == WITHOUT_AGEING)
		ret->config.age = NEVER;
	ret->config.unweighted = ret->without == WITHOUT_WEIGHTING;
	return r;
}

static bool is_one(const struct scenario *s, const struct settings *set, uint32_t host)
{
	return s->groups[s->hosts[host].group].device == set->device &&
	       scenario_fits(set->hosts, s->hosts[host].name);
}

static int read_map(
	const struct scenario *s, yamldoc_node map, struct settings *ret, struct weir_err *err)
{
	struct parda *try;
	uint32_t n = 0;
	int r;

	*ret = (struct settings){.hosts = "*",
		.period = parda_hosts_ops.period,
		.delay = WEIR_MS,
		.config = {.law = {.gamma = 0.8, .wmin = 1, .wmax = 64},
			.epsilon = 0.2,
			.burst = PARDA_BURST}};
	if ((r = yamldoc_map(map, keys, err)) ||
		(r = yamldoc_optional(yamldoc_time(map, "period", &ret->period, err))) ||
		(r = scenario_device_of(s, map, &ret->device, err)) ||
		(r = yamldoc_optional(yamldoc_string(map, "hosts", &ret->hosts, err))) ||
		(r = read_law(map, ret, err)) || (r = read_estimate(map, ret, err)) ||
		(r = read_without(map, ret, err)))
		return r;
	ret->config.period = ret->period;
	for (uint32_t i = 0; i < s->n_hosts; i++)
		n += is_one(s, ret, i);
	if (n == 0)
		return yamldoc_error(map, err, "no host of that device is named '%s'", ret->hosts);
	r = parda_hosts_faults_read(s, map, ret, err);
	if (r)
		return r;
	r = parda_new(&ret->config, &try);
	if (r == -EINVAL)
		return yamldoc_error(map, err,
			"threshold and gamma must be more than 0, gamma at most 1, wmin at most "
			"wmax");
	if (r)
		return weir_err_set(err, r, "out of memory");
	parda_free(try);
	return 0;
}

static int hosts_check(const struct scenario *s, yamldoc_node map, struct weir_err *err)
{
	struct settings settings;
	int r = read_map(s, map, &settings, err);

	free(settings.faults);
	return r;
}

/* ---- set-up */

static void hosts_free(void *state)
{
	struct hosts *c = state;

	for (int k = 0; k < KEPT; k++)
		free(c->sent[k]);
	free(c->sequence);
	for (uint32_t i = 0; c->hosts && i < c->n; i++) {
		parda_free(c->hosts[i].parda);
		parda_hosts_probe_free(&c->hosts[i]);
		free(c->hosts[i].seen);
	}
	free(c->hosts);
	free(c->settings.faults);
	free(c->vms);
	free(c);
}

int parda_hosts_start(struct hosts *c, struct host *h)
{
	struct parda_config config = c->settings.config;
	struct parda *made;
	int r;

	config.id = (uint64_t)(h - c->hosts) + 1;
	config.instance = rng_u64(&h->instances) | 1; /* never 0 */
	config.peers_max = c->n;
	if (config.window <= 0 && config.abrupt)
		config.window = fmin(h->world->gate->config->config.window, config.law.wmax);
	r = parda_new(&config, &made);
	if (r)
		return r;
	parda_free(h->parda);
	h->parda = made;
	h->last = (struct parda_decision){.window = parda_start_window(made)};
	return 0;
}

int parda_hosts_set_window(struct host *h, struct world *w, double window, struct weir_err *err)
{
	struct weir_knob knob = {.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = window};

	return world_gate_set(w, h->world->gate, &knob, 1, err);
}

static int apply_law(struct hosts *c, struct host *h, struct world *w, struct weir_err *err)
{
	if (c->settings.without == WITHOUT_WINDOWS)
		return 0;
	return parda_hosts_set_window(h, w, h->last.window, err);
}

static int start_host(struct hosts *c, struct world *w, struct host *h)
{
	rng_init(&h->instances, w->seed, h->world->name);
	h->seen = calloc(h->world->n_tenants, sizeof(*h->seen));
	return h->seen ? parda_hosts_start(c, h) : -ENOMEM;
}

static int start_hosts(struct hosts *c, struct world *w)
{
	const struct scenario *s = w->scenario;
	uint32_t most = 1, n = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->n_hosts; i++)
		c->n += is_one(s, &c->settings, i);
	c->hosts = calloc(c->n, sizeof(*c->hosts));
	for (uint32_t i = 0; c->hosts && i < s->n_hosts; i++) {
		if (!is_one(s, &c->settings, i))
			continue;
		c->hosts[n++].world = &w->hosts[i];
		most = w->hosts[i].n_tenants > most ? w->hosts[i].n_tenants : most;
	}
	c->vms = calloc(most, sizeof(*c->vms));
	c->sequence = calloc(c->n, sizeof(*c->sequence));
	if (!c->hosts || !c->vms || !c->sequence)
		return -ENOMEM;
	for (int k = 0; k < KEPT; k++) {
		c->sent[k] = calloc(c->n, sizeof(*c->sent[k]));
		if (!c->sent[k])
			return -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = start_host(c, w, &c->hosts[i]);
	return r;
}

static int hosts_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct hosts *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return no_memory(err);
	c->seed = w->seed;
	r = read_map(w->scenario, config->node, &c->settings, err);
	if (r == 0) {
		r = start_hosts(c, w);
		if (r)
			weir_err_set(err, r, "out of memory");
	}
	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = apply_law(c, &c->hosts[i], w, err);
	if (r) {
		hosts_free(c);
		return r;
	}
	*ret_state = c;
	return 0;
}

/* ---- reports */

static bool is_lost(const struct hosts *c, uint32_t to, const struct parda_report *r)
{
	/* Places in one number for each, so that no two messages are alike; a product, since ids use all bits. */
	uint64_t x = c->seed ^ to * (UINT64_C(1) << 40) ^ r->id * (UINT64_C(1) << 20) ^ r->sequence;

	if (c->settings.loss <= 0)
		return false;
	for (int i = 0; i < 2; i++) { /* splitmix64's finish */
		x += UINT64_C(0x9e3779b97f4a7c15);
		x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
		x ^= x >> 31;
	}
	return (double)(x >> 11) * 0x1p-53 < c->settings.loss;
}

/* The newest report of each other host that has arrived. */
static void hear_all(struct hosts *c, uint32_t to, weir_time now)
{
	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t sequence = c->sequence[i];

		if (i == to || c->hosts[i].is_cut || c->hosts[to].is_cut)
			continue;
		for (int k = 0; k < KEPT && sequence > 0; k++, sequence--) {
			const struct sent *s = &c->sent[sequence % KEPT][i];

			if (s->at + c->settings.delay <= now && !is_lost(c, to, &s->report)) {
				parda_hear(c->hosts[to].parda, &s->report);
				break;
			}
		}
	}
}

/* ---- a step */

static int put_series(struct host *h, struct world *w)
{
	const struct parda_decision *d = &h->last;
	const struct {
		const char *name, *unit;
		double value;
	} all[] = {{"beta", "requests", d->beta}, {"shares", "", d->report.shares},
		{"latency", "ms", d->latency / 1e6}, {"threshold", "ms", d->threshold / 1e6},
		{"stranger", "requests", d->strange}, {"floor", "requests", d->floor},
		{"too_low", "", d->too_low}, {"wmax_short", "", d->wmax_short},
		{"unreachable", "", d->unreachable}, {"knee", "ms", d->knee / 1e6}};
	struct metrics *m = w->measure->metrics;
	int r = 0;

	for (size_t i = 0; r == 0 && w->scenario->sample && i < sizeof(all) / sizeof(all[0]); i++) {
		int series =
			metrics_seriesf(m, all[i].unit, "parda.%s.%s", h->world->name, all[i].name);

		r = series < 0 ? series
			       : metrics_append(m, series, (double)w->now / 1e9, all[i].value);
	}
	return r;
}

static int step_host(struct hosts *c, uint32_t i, struct world *w, struct weir_err *err)
{
	struct host *h = &c->hosts[i];
	struct parda_measured m;
	int r;

	parda_hosts_measure(c, h, w, &m);
	h->stepped = w->now;
	if (!c->settings.config.local)
		hear_all(c, i, w->now);
	parda_step(h->parda, w->now + h->skew, &m, &h->last);
	c->sequence[i] = h->last.report.sequence;
	c->sent[c->sequence[i] % KEPT][i] = (struct sent){w->now, h->last.report};
	r = put_series(h, w);
	if (r)
		return weir_err_set(err, r, "parda: the series of '%s'", h->world->name);
	return apply_law(c, h, w, err);
}

static int hosts_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct hosts *c = state;
	int r = parda_hosts_faults_step(c, w, err);

	for (uint32_t i = c->phase; r == 0 && i < c->n; i += PARDA_HOSTS_PHASES)
		if (!c->hosts[i].is_down && c->hosts[i].stepped < now)
			r = step_host(c, i, w, err);
	c->phase = (c->phase + 1) % PARDA_HOSTS_PHASES;
	if (r == 0 && c->settings.config.probe && parda_hosts_probe(c, w))
		return no_memory(err);
	return r;
}

static int put_probe(const struct host *h, struct metrics *m)
{
	struct parda_counts n;
	int r;

	parda_counts(h->parda, &n);
	r = metrics_putf(m, "", (double)n.bursts, "parda.%s.probe_bursts", h->world->name);
	if (r == 0)
		r = metrics_putf(m, "", (double)n.reads, "parda.%s.probe_reads", h->world->name);
	if (r == 0)
		r = metrics_putf(
			m, "ms", (double)n.probed / 1e6, "parda.%s.probe_time", h->world->name);
	return r;
}

static int hosts_report(void *state, struct world *w, struct metrics *m)
{
	const struct hosts *c = state;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->n; i++) {
		const struct host *h = &c->hosts[i];

		r = metrics_putf(
			m, "requests", h->last.window, "parda.%s.window_end", h->world->name);
		if (r == 0)
			r = metrics_putf(
				m, "requests", h->last.beta, "parda.%s.beta_end", h->world->name);
		if (r == 0)
			r = metrics_putf(
				m, "", h->last.peers, "parda.%s.peers_end", h->world->name);
		if (r == 0 && c->settings.config.probe)
			r = put_probe(h, m);
		if (r == 0 && c->settings.config.find)
			r = metrics_putf(
				m, "ms", h->last.knee / 1e6, "parda.%s.knee_end", h->world->name);
	}
	return r;
}

const struct sim_controller_ops parda_hosts_ops = {
	.name = "parda",
	.period = 2 * WEIR_SEC,
	.phases = PARDA_HOSTS_PHASES,
	.check = hosts_check,
	.init = hosts_init,
	.step = hosts_step,
	.report = hosts_report,
	.free = hosts_free,
};
