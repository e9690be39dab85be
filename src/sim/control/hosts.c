/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/hosts-impl.h"
#include "base/no-memory.h"
#include "sim/world/measure.h"
#include <stdlib.h>
#include <string.h>

/* ---- settings */

int hosts_network_read(const struct scenario *s, struct hosts_network *ret, struct weir_err *err)
{
	static const char *const keys[] = {"delay", "loss", NULL};
	yamldoc_node map = yamldoc_get(yamldoc_root(s->doc), "messages");
	int r;

	*ret = (struct hosts_network){.delay = WEIR_MS};
	if ((map.id && (r = yamldoc_map(map, keys, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "delay", &ret->delay, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "loss", &ret->loss, err))))
		return r;
	if (!(ret->loss <= 1))
		return yamldoc_error(map, err, "loss: must be at most 1");
	return hosts_faults_read(s, ret, err);
}

static bool is_one(const struct scenario *s, const struct map *set, uint32_t host)
{
	const struct scenario_group *g = &s->groups[s->hosts[host].group];

	return g->device == set->device && g->gate.resource.controller == set->kind;
}

/* Read the settings of the hosts' resource; messages and faults are the scenario's. */
static int read_settings(const struct scenario *s, const struct scenario_controller *config,
	struct map *ret, struct weir_err *err)
{
	int r;

	*ret = (struct map){.kind = config->gate->resource.controller,
		.settings = config->gate->resource.settings,
		.device = config->station,
		.period = config->gate->whole->peers.period};
	r = hosts_network_read(s, &ret->network, err);
	if (r == 0 && ret->network.delay > (KEPT / 2) * ret->period) {
		free(ret->network.faults);
		ret->network.faults = NULL;
		r = yamldoc_error(yamldoc_get(yamldoc_root(s->doc), "messages"), err,
			"delay: must be at most %d periods", KEPT / 2);
	}
	return r;
}

static int hosts_check(
	const struct scenario *s, const struct scenario_controller *config, struct weir_err *err)
{
	struct map read;
	int r = read_settings(s, config, &read, err);

	free(read.network.faults);
	return r;
}

/* ---- the site */

static weir_time host_now(struct site *s)
{
	const struct host *h = host_of(s);

	return h->site.world->now + h->skew;
}

static void host_set_window(struct site *s, double window)
{
	host_of(s)->window = window;
	sim_site_ops.set_window(s, window);
}

static size_t slot_of(const struct hosts *c, uint32_t host, uint64_t sequence)
{
	return (sequence % KEPT) * c->n + host;
}

static void host_publish(struct site *s, const void *report, bool at_once)
{
	struct host *h = host_of(s);
	struct hosts *c = h->hosts;
	uint32_t i = (uint32_t)(h - c->hosts);
	size_t at;

	c->sequence[i] = ++h->published;
	at = slot_of(c, i, c->sequence[i]);
	c->sent_at[at] = h->site.world->now;
	memcpy(c->sent + at * c->map.kind->report_size, report, c->map.kind->report_size);
}

/* ---- set-up */

static void hosts_free(void *state)
{
	struct hosts *c = state;

	for (uint32_t i = 0; c->hosts && i < c->n; i++) {
		if (c->hosts[i].site.kind)
			sim_site_end(&c->hosts[i].site);
		free(c->hosts[i].reads);
		free(c->hosts[i].seen);
	}
	free(c->sent);
	free(c->sent_at);
	free(c->sequence);
	free(c->hosts);
	free(c->rows);
	free(c->map.network.faults);
	free(c);
}

int hosts_begin(struct host *h, struct weir_err *err)
{
	struct hosts *c = h->hosts;
	unsigned phases = (unsigned)(h - c->hosts) + HOSTS_PHASES - c->phase; /* until its own */

	sim_site_end(&h->site);
	h->published = h->steps = 0;
	h->site.peers = (struct controller_peers){.host = (uint64_t)(h - c->hosts) + 1,
		.instance = rng_u64(&h->site.random) | 1, /* never 0 */
		.period = HOSTS_PHASES * c->part,
		.first = c->tick + phases % HOSTS_PHASES * c->part,
		.most = c->n};
	return sim_site_begin(&h->site, err);
}

static int start_host(struct hosts *c, struct host *h, struct world *w, struct weir_err *err)
{
	h->hosts =
		c; /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each host is in the world */
	h->site = (struct sim_site){.site = {.ops = &c->ops, .name = h->world->name},
		.world = w,
		.gate = h->world->gate,
		.kind = c->map.kind,
		.settings = c->map.settings};
	rng_init(&h->site.random, w->seed, h->world->name);
	h->seen = calloc(h->world->n_tenants, sizeof(*h->seen));
	return h->seen ? hosts_begin(h, err) : no_memory(err);
}

static int start_hosts(struct hosts *c, struct world *w, struct weir_err *err)
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
	c->rows = calloc(most, sizeof(*c->rows));
	c->sequence = calloc(c->n, sizeof(*c->sequence));
	c->sent_at = calloc((size_t)c->n * KEPT, sizeof(*c->sent_at));
	c->sent = calloc((size_t)c->n * KEPT, c->map.kind->report_size);
	if (!c->hosts || !c->rows || !c->sequence || !c->sent_at || !c->sent)
		return no_memory(err);
	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = start_host(c, &c->hosts[i], w, err);
	return r;
}

static int hosts_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct hosts *c = calloc(1, sizeof(*c));
	int r = c ? read_settings(w->scenario, config, &c->map, err) : no_memory(err);

	if (r) {
		free(c);
		return r;
	}
	c->ops = sim_site_ops;
	c->ops.now = host_now;
	c->ops.loads = hosts_loads;
	c->ops.set_window = host_set_window;
	c->ops.read = hosts_read;
	c->ops.forget = hosts_forget;
	c->ops.all_quiet = hosts_all_quiet;
	c->ops.publish = host_publish;
	c->part = c->tick = config->period;
	r = start_hosts(c, w, err);
	if (r) {
		hosts_free(c);
		return r;
	}
	*ret_state = c;
	return 0;
}

/* ---- reports */

static bool is_lost(const struct hosts *c, uint32_t to, uint32_t from, uint64_t sequence)
{
	/* Places in one number for each, so that no two messages are alike. */
	uint64_t x = c->hosts[to].site.world->seed ^ to * (UINT64_C(1) << 40) ^
		     (from + UINT64_C(1)) * (UINT64_C(1) << 20) ^ sequence;

	if (c->map.network.loss <= 0)
		return false;
	for (int i = 0; i < 2; i++) { /* splitmix64's finish */
		x += UINT64_C(0x9e3779b97f4a7c15);
		x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
		x ^= x >> 31;
	}
	return (double)(x >> 11) * 0x1p-53 < c->map.network.loss;
}

/* Hear the newest report that has arrived of each other host. */
static void hear_all(struct hosts *c, uint32_t to, weir_time now)
{
	const struct controller *kind = c->map.kind;

	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t sequence = c->sequence[i];

		if (i == to || c->hosts[i].is_cut || c->hosts[to].is_cut)
			continue;
		for (int k = 0; k < KEPT && sequence > 0; k++, sequence--) {
			size_t at = slot_of(c, i, sequence);
			struct controller_news news = {.kind = CONTROLLER_REPORT,
				.message = c->sent + at * kind->report_size};

			if (c->sent_at[at] + c->map.network.delay <= now &&
				!is_lost(c, to, i, sequence)) {
				kind->hear(c->hosts[to].site.instance, &news);
				break;
			}
		}
	}
}

/* ---- a step */

static int step_host(struct host *h, struct weir_err *err)
{
	const struct world *w = h->site.world;
	uint64_t steps;
	int r = sim_site_step(&h->site, err);

	if (r)
		return r;
	steps = h->site.kind->steps(h->site.instance);
	if (steps != h->steps && w->scenario->sample)
		r = sim_site_facts(
			&h->site, h->world->name, NULL, w->measure->metrics, (double)w->now / 1e9);
	h->steps = steps;
	return r ? weir_err_set(
			   err, r, "%s: the series of '%s'", h->site.kind->name, h->world->name)
		 : 0;
}

static int step_phase(struct hosts *c, struct world *w, struct weir_err *err)
{
	int r = hosts_faults_step(c, w, err);

	for (uint32_t i = c->phase; r == 0 && i < c->n; i += HOSTS_PHASES)
		if (!c->hosts[i].is_down) {
			hear_all(c, i, w->now);
			r = step_host(&c->hosts[i], err);
		}
	c->phase = (c->phase + 1) % HOSTS_PHASES;
	c->tick += c->part;
	return r;
}

static int hosts_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct hosts *c = state;
	int r = now >= c->tick ? step_phase(c, w, err) : 0;

	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		if (!c->hosts[i].is_down && c->hosts[i].site.due <= now)
			r = step_host(&c->hosts[i], err);
	return r;
}

static weir_time hosts_due(const void *state)
{
	const struct hosts *c = state;
	weir_time due = c->tick;

	for (uint32_t i = 0; i < c->n; i++)
		if (!c->hosts[i].is_down && c->hosts[i].site.due < due)
			due = c->hosts[i].site.due;
	return due;
}

static int hosts_report(void *state, struct world *w, struct metrics *m)
{
	const struct hosts *c = state;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = sim_site_facts(&c->hosts[i].site, c->hosts[i].world->name, NULL, m, -1);
	return r;
}

const struct sim_controller_ops hosts_controller = {
	.period = 2 * WEIR_SEC,
	.phases = HOSTS_PHASES,
	.check = hosts_check,
	.init = hosts_init,
	.step = hosts_step,
	.due = hosts_due,
	.report = hosts_report,
	.free = hosts_free,
};
