/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/device.h"
#include "base/no-memory.h"
#include "sim/control/site.h"
#include "sim/world/measure.h"
#include <stdlib.h>

struct device_control {
	struct sim_site site;
	struct world_station *station;
	weir_time sampled; /* the last point of the series */
};

/* ---- set-up */

static void control_free(void *state)
{
	struct device_control *c = state;

	sim_site_end(&c->site);
	free(c);
}

static int control_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	const struct weir_resource *resource = &config->gate->resource;
	struct device_control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return no_memory(err);
	c->station = &w->stations[config->station];
	c->site = (struct sim_site){
		.site = {.ops = &sim_site_ops, .name = w->scenario->stations[config->station].name},
		.world = w,
		.gate = config->host != UINT32_MAX ? &w->gates[config->host] : c->station->gate,
		.kind = resource->controller,
		.settings = resource->settings,
		.capacity = {resource->capacity[0].per_second, resource->capacity[1].per_second}};
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

/* Values at a host's gate are named after the host: there may be several hosts. */
static int put_facts(const struct device_control *c, struct metrics *m, double t)
{
	const struct world_host *host = c->site.gate->host;

	return sim_site_facts(
		&c->site, host ? host->name : "server", host ? host->name : NULL, m, t);
}

static int put_series(struct device_control *c)
{
	struct world *w = c->site.world;

	if (!w->scenario->sample || (c->sampled && w->now - c->sampled < w->scenario->sample))
		return 0;
	c->sampled = w->now;
	return put_facts(c, w->measure->metrics, (double)w->now / WEIR_SEC);
}

static int control_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct device_control *c = state;
	const struct controller *kind = c->site.kind;
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
	return put_facts(state, m, -1);
}

const struct sim_controller_ops device_controller = {
	.period = WEIR_SEC, /* not used */
	.init = control_init,
	.step = control_step,
	.due = control_due,
	.report = control_report,
	.free = control_free,
};
