/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "control/parda/facts.h"
#include "sim/measure-facts.h"
#include "sim/measure.h"
#include "sim/control/parda-hosts-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings */

#define NEVER (1u << 20) /* periods */

static int read_network(yamldoc_node map, struct map *ret, struct weir_err *err)
{
	int r;

	if ((r = yamldoc_optional(yamldoc_time(map, "delay", &ret->delay, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "loss", &ret->loss, err))))
		return r;
	if (!(ret->loss <= 1))
		return yamldoc_error(map, err, "loss: must be at most 1");
	if (ret->delay > (KEPT / 2) * ret->period)
		return yamldoc_error(map, err, "delay: must be at most %d periods", KEPT / 2);
	return 0;
}

static bool is_one(const struct scenario *s, const struct map *set, uint32_t host)
{
	const struct scenario_group *g = &s->groups[s->hosts[host].group];

	return g->device == set->device && g->gate.resource.controller == &parda_controller;
}

/* The settings of the hosts' resource; messages and faults are the scenario's. */
static int read_settings(const struct scenario *s, const struct scenario_controller *config,
	struct map *ret, struct weir_err *err)
{
	static const char *const keys[] = {"delay", "loss", NULL};
	const struct parda_settings *settings = config->gate->resource.settings;
	yamldoc_node root = yamldoc_root(s->doc), messages = yamldoc_get(root, "messages");
	int r;

	*ret = (struct map){.device = config->station,
		.period = config->gate->whole->peers.period,
		.delay = WEIR_MS,
		.without = (enum without)settings->without};
	ret->config = parda_settings_config(settings, ret->period);
	if (ret->without == WITHOUT_AGEING)
		ret->config.age = NEVER;
	ret->config.unweighted = ret->without == WITHOUT_WEIGHTING;
	if ((messages.id && (r = yamldoc_map(messages, keys, err))) ||
		(r = read_network(messages, ret, err)))
		return r;
	return parda_hosts_faults_read(s, root, ret, err);
}

static int hosts_check(
	const struct scenario *s, const struct scenario_controller *config, struct weir_err *err)
{
	struct map read;
	int r = read_settings(s, config, &read, err);

	free(read.faults);
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
	free(c->map.faults);
	free(c->vms);
	free(c);
}

int parda_hosts_start(struct hosts *c, struct host *h)
{
	struct parda_config config = c->map.config;
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
	if (c->map.without == WITHOUT_WINDOWS)
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
		c->n += is_one(s, &c->map, i);
	c->hosts = calloc(c->n, sizeof(*c->hosts));
	for (uint32_t i = 0; c->hosts && i < s->n_hosts; i++) {
		if (!is_one(s, &c->map, i))
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
	r = read_settings(w->scenario, config, &c->map, err);
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

	if (c->map.loss <= 0)
		return false;
	for (int i = 0; i < 2; i++) { /* splitmix64's finish */
		x += UINT64_C(0x9e3779b97f4a7c15);
		x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
		x ^= x >> 31;
	}
	return (double)(x >> 11) * 0x1p-53 < c->map.loss;
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

			if (s->at + c->map.delay <= now && !is_lost(c, to, &s->report)) {
				parda_hear(c->hosts[to].parda, &s->report);
				break;
			}
		}
	}
}

/* ---- a step */

static int put_facts(const struct hosts *c, const struct host *h, struct metrics *m, double t)
{
	struct parda_facts_of of = {.parda = h->parda,
		.last = &h->last,
		.find = c->map.config.find,
		.probe = c->map.config.probe};
	struct arena memory = {0};
	struct facts_site site = {.memory = &memory};
	struct facts facts = {0};
	int r;

	parda_facts.fill(&of, &site, &facts);
	r = measure_facts(m, &facts, h->world->name, t);
	arena_free(&memory);
	return r;
}

static int step_host(struct hosts *c, uint32_t i, struct world *w, struct weir_err *err)
{
	struct host *h = &c->hosts[i];
	struct parda_measured m;
	int r;

	parda_hosts_measure(c, h, w, &m);
	h->stepped = w->now;
	if (!c->map.config.local)
		hear_all(c, i, w->now);
	parda_step(h->parda, w->now + h->skew, &m, &h->last);
	c->sequence[i] = h->last.report.sequence;
	c->sent[c->sequence[i] % KEPT][i] = (struct sent){w->now, h->last.report};
	r = w->scenario->sample ? put_facts(c, h, w->measure->metrics, (double)w->now / 1e9) : 0;
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
	if (r == 0 && c->map.config.probe && parda_hosts_probe(c, w))
		return no_memory(err);
	return r;
}

static int hosts_report(void *state, struct world *w, struct metrics *m)
{
	const struct hosts *c = state;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = put_facts(c, &c->hosts[i], m, -1);
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
