/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/device.h"
#include "base/no-memory.h"
#include "sim/control/site.h"
#include "sim/measure.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT "server" /* of the facts */

struct map { /* of the controller */
	const struct controller *kind;
	struct settings settings;
	uint32_t device;
	double capacity[2]; /* per second: requests, bytes; 0: not stated */
};

struct device_control {
	struct sim_site site;
	struct map map;
	struct world_station *station;
	weir_time sampled; /* the last point of the series */
};

/* ---- the map */

static const char *const more[] = {"kind", "device", "rate", "learn", NULL};

static const struct key *key_find(const struct key *keys, const char *name)
{
	while (keys->name && strcmp(keys->name, name) != 0)
		keys++;
	return keys->name ? keys : NULL;
}

/* The capacity is stated, or a first guess of a controller that learns it. */
static int read_rate(yamldoc_node map, struct map *ret, struct weir_err *err)
{
	const struct key *guess = key_find(ret->kind->keys, "guess");
	yamldoc_node n = yamldoc_get(map, "rate");
	struct weir_rate rate;
	bool learn = false;
	int r = yamldoc_optional(yamldoc_bool(map, "learn", &learn, err));

	if (r || !n.id)
		return r;
	if (guess && (r = guess->read(n, &ret->settings, err)))
		return r;
	r = yamldoc_as_rate(n, &rate, err);
	if (r == 0 && !learn)
		ret->capacity[rate.unit == WEIR_UNIT_BYTES] = rate.per_second;
	return r;
}

static int check_gate(
	const struct scenario *s, yamldoc_node map, const struct map *m, struct weir_err *err)
{
	const struct scenario_gate *g = s->stations[m->device].gate;
	const char *name = s->stations[m->device].name;

	if (!g || !g->policy)
		return yamldoc_error(
			map, err, "the device '%s' needs a 'gate' with 'tenants'", name);
	if (m->kind->counts_bytes && m->kind->counts_bytes(m->settings.data) &&
		g->config.cost != WEIR_UNIT_BYTES)
		return yamldoc_error(map, err,
			"the gate of '%s' must share bytes, too: it needs 'cost: bytes'", name);
	return 0;
}

static int read_map(
	const struct scenario *s, yamldoc_node map, struct map *ret, struct weir_err *err)
{
	const char *kind;
	int r = yamldoc_string(map, "kind", &kind, err);

	*ret = (struct map){.kind = controller_find(kind)};
	if (r == 0)
		r = controller_settings_block(ret->kind, map, more, &ret->settings, err);
	if (r)
		return r;
	if ((r = scenario_device_of(s, map, &ret->device, err)) ||
		(r = check_gate(s, map, ret, err)) || (r = read_rate(map, ret, err)))
		free(ret->settings.data);
	return r;
}

/* The settings of the resource's controller. */
static int read_resource(
	const struct scenario_controller *config, struct map *ret, struct weir_err *err)
{
	const struct weir_resource *r = &config->gate->resource;

	*ret = (struct map){.kind = r->controller, .device = config->station};
	ret->settings.len = r->settings_len;
	ret->settings.data = malloc(r->settings_len + 1);
	if (!ret->settings.data)
		return no_memory(err);
	memcpy(ret->settings.data, r->settings, r->settings_len);
	for (int i = 0; i < 2; i++)
		ret->capacity[i] = r->capacity[i].per_second;
	return 0;
}

static int read_config(const struct scenario *s, const struct scenario_controller *config,
	struct map *ret, struct weir_err *err)
{
	return config->gate ? read_resource(config, ret, err) : read_map(s, config->node, ret, err);
}

static int control_check(
	const struct scenario *s, const struct scenario_controller *config, struct weir_err *err)
{
	struct map m;
	int r = read_config(s, config, &m, err);

	if (r == 0)
		free(m.settings.data);
	return r;
}

/* ---- set-up */

static void control_free(void *state)
{
	struct device_control *c = state;

	sim_site_end(&c->site);
	free(c->map.settings.data);
	free(c);
}

static int control_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct device_control *c = calloc(1, sizeof(*c));
	int r = c ? read_config(w->scenario, config, &c->map, err) : no_memory(err);

	if (r) {
		free(c);
		return r;
	}
	c->station = &w->stations[c->map.device];
	c->site = (struct sim_site){
		.site = {.ops = &sim_site_ops, .name = w->scenario->stations[c->map.device].name},
		.world = w,
		.gate = config->gate && config->host != UINT32_MAX ? &w->gates[config->host]
								   : c->station->gate,
		.kind = c->map.kind,
		.settings = c->map.settings.data,
		.capacity = {c->map.capacity[0], c->map.capacity[1]}};
	rng_init(&c->site.random, w->seed, c->site.site.name);
	r = sim_site_begin(&c->site, err);
	if (r) {
		control_free(c);
		return r;
	}
	*ret_state = c;
	return 0;
}

/* ---- a step */

static int put_series(struct device_control *c)
{
	struct world *w = c->site.world;

	if (!w->scenario->sample || (c->sampled && w->now - c->sampled < w->scenario->sample))
		return 0;
	c->sampled = w->now;
	return sim_site_facts(&c->site, SUBJECT, w->measure->metrics, (double)w->now / WEIR_SEC);
}

static int control_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct device_control *c = state;
	const struct controller *kind = c->map.kind;
	double learned;
	int r;

	if (!kind->step)
		return 0;
	r = sim_site_step(&c->site, err);
	if (r)
		return r;
	world_touch(w, c->site.gate);
	learned = kind->learned ? kind->learned(c->site.instance, WEIR_UNIT_REQUESTS) : 0;
	if (learned > 0)
		c->station->capacity = learned;
	r = put_series(c);
	return r ? weir_err_set(err, r, "%s: the series", kind->name) : 0;
}

static weir_time control_due(const void *state)
{
	return ((const struct device_control *)state)->site.due;
}

static int control_report(void *state, struct world *w, struct metrics *m)
{
	return sim_site_facts(&((const struct device_control *)state)->site, SUBJECT, m, -1);
}

const struct sim_controller_ops device_controller = {
	.period = WEIR_SEC, /* not used */
	.check = control_check,
	.init = control_init,
	.step = control_step,
	.due = control_due,
	.report = control_report,
	.free = control_free,
};
