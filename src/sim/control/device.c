/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/device.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "base/rng.h"
#include "sim/measure-facts.h"
#include "sim/measure.h"
#include "sim/world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 64 /* of a tenant */

struct map { /* of the controller */
	const struct controller *kind;
	struct settings settings;
	uint32_t device;
	double capacity[2]; /* per second: requests, bytes; 0: not stated */
};

struct device_control {
	struct site site;
	struct map map;
	struct world *world;
	struct world_station *station;
	struct world_gate *gate;
	void *instance;
	struct controller_rule *rules; /* by tenant */
	struct rng random;
	const char *of;         /* name of its values: the host's, or "server" at a device */
	char **paths;           /* names of the tenants' values; NULL: their paths */
	weir_time due, sampled; /* the next step; the last point of the series */
	char failed[128];       /* an error that the controller told */
};

/* ---- settings */

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

/* ---- the site */

static struct device_control *control_of(const struct site *s)
{
	return (struct device_control *)container_of(s, const struct device_control, site);
}

static weir_time site_now(struct site *s)
{
	return control_of(s)->world->now;
}

static uint64_t site_activity(const struct site *s)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(s->gate, control_of(s)->world->now, &t);
	return t.submitted + t.served;
}

static bool site_busy(const struct site *s)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(s->gate, control_of(s)->world->now, &t);
	return t.submitted > t.served;
}

static double site_capacity(const struct site *s, enum weir_unit unit)
{
	return 0;
}

static double site_mean_cost(const struct site *s, weir_node node)
{
	return 1;
}

static weir_time site_cpu(struct site *s)
{
	return 0;
}

static void site_wake(struct site *s, weir_time at)
{
	control_of(s)->due = at;
}

static void site_send(struct site *s, uint8_t *message, size_t len)
{
	free(message); /* a device has no cluster */
}

static void site_tell(
	struct site *s, enum site_level level, const char *event, const struct site_field *f)
{
	struct device_control *c = control_of(s);

	if (level == SITE_ERROR)
		snprintf(
			c->failed, sizeof(c->failed), "%s: %s", event, f->text ? f->text : f->name);
}

static void site_random(struct site *s, void *ret, size_t len)
{
	unsigned char *to = ret;

	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)rng_u64(&control_of(s)->random);
}

static const struct site_ops site_ops = {
	.now = site_now,
	.activity = site_activity,
	.busy = site_busy,
	.capacity = site_capacity,
	.mean_cost = site_mean_cost,
	.cpu = site_cpu,
	.wake = site_wake,
	.send = site_send,
	.tell = site_tell,
	.random = site_random,
};

/* ---- the version of the policy */

static struct controller_tenant tenant_of(const struct controller_version *v, size_t i)
{
	const struct weir_tenant *t = &((const struct weir_policy *)v->of)->tenants[i];

	return (struct controller_tenant){
		.path = t->path, .is_leaf = t->first_child < 0, .weight = t->weight};
}

static struct controller_tokens no_tokens(const struct controller_version *v, size_t i)
{
	return (struct controller_tokens){0};
}

static int shares_of(const struct controller_version *v, double *ret)
{
	for (size_t i = 0; i < v->n; i++)
		ret[i] = weir_policy_shares(v->of, i);
	return 0;
}

static struct controller_version version_of(struct device_control *c, bool next)
{
	return (struct controller_version){.n = c->gate->policy.n_tenants,
		.next = next,
		.settings = c->map.settings.data,
		.capacity = {c->map.capacity[0], c->map.capacity[1]},
		.rules = c->rules,
		.tenant = tenant_of,
		.tokens = no_tokens,
		.shares = shares_of,
		.of = &c->gate->policy};
}

/* ---- set-up */

static void control_free(void *state)
{
	struct device_control *c = state;

	if (c->map.kind->free)
		c->map.kind->free(c->instance);
	for (size_t i = 0; c->paths && i < c->gate->policy.n_tenants; i++)
		free(c->paths[i]);
	free(c->paths);
	free(c->map.settings.data);
	free(c->rules);
	free(c);
}

/* Add the buckets of a tenant's rule to the gate. */
static int set_rule(struct device_control *c, size_t i, struct weir_err *err)
{
	const struct controller_rule *rule = &c->rules[i];
	struct weir_bucket_spec specs[BUCKETS + 2];
	struct weir_knob knob = {
		.node = c->gate->nodes[i], .kind = WEIR_KNOB_BUCKETS, .buckets = specs};
	int n;

	if (rule->bucket.size <= 0)
		return 0;
	n = weir_gate_get_buckets(c->gate->gate, c->world->now, knob.node, specs, NULL, BUCKETS);
	if (n < 0)
		return weir_err_set(err, n, "%s: %s", c->map.kind->name, strerror(-n));
	specs[n++] = rule->bucket;
	if (rule->second.size > 0)
		specs[n++] = rule->second;
	knob.n_buckets = (uint32_t)n;
	return world_gate_set(c->world, c->gate, &knob, 1, err);
}

static int begin(struct device_control *c, struct weir_err *err)
{
	const struct controller *kind = c->map.kind;
	struct controller_version v = version_of(c, true);
	int r = 0;

	if (kind->new && (r = kind->new (&c->site, &c->instance)))
		return no_memory(err);
	if (kind->prepare && (r = kind->prepare(c->instance, &v, 0, v.n)))
		return no_memory(err);
	for (size_t i = 0; r == 0 && i < v.n; i++) {
		r = set_rule(c, i, err);
		if (r == 0 && kind->take)
			kind->take(c->instance, &v, i, c->gate->nodes[i]);
	}
	v = version_of(c, false);
	if (r == 0 && kind->begin)
		kind->begin(c->instance, &v);
	return r;
}

/* Name the values of a host's controller after the host: there may be several hosts. */
static int name_values(struct device_control *c)
{
	size_t n = c->gate->policy.n_tenants;

	c->of = c->gate->host ? c->gate->host->name : "server";
	c->paths = c->gate->host ? calloc(n + 1, sizeof(*c->paths)) : NULL;
	for (size_t i = 0; c->paths && i < n; i++)
		if (asprintf(&c->paths[i], "%s/%s", c->of, c->gate->policy.tenants[i].path) < 0) {
			c->paths[i] = NULL;
			return -ENOMEM;
		}
	return c->gate->host && !c->paths ? -ENOMEM : 0;
}

static int control_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct device_control *c = calloc(1, sizeof(*c));
	int r = c ? read_resource(config, &c->map, err) : no_memory(err);

	if (r) {
		free(c);
		return r;
	}
	c->world = w;
	c->station = &w->stations[c->map.device];
	c->gate = config->host != UINT32_MAX ? &w->gates[config->host] : c->station->gate;
	c->due = WEIR_NEVER;
	c->site = (struct site){.ops = &site_ops,
		.name = w->scenario->stations[c->map.device].name,
		.gate = c->gate->gate,
		.nodes = c->gate->nodes,
		.audits = true};
	rng_init(&c->random, w->seed, c->site.name);
	c->rules = calloc(c->gate->policy.n_tenants + 1, sizeof(*c->rules));
	r = c->rules && name_values(c) == 0 ? begin(c, err) : no_memory(err);
	if (r) {
		control_free(c);
		return r;
	}
	*ret_state = c;
	return 0;
}

/* ---- a step */

static const char *path_of(void *arg, size_t i)
{
	const struct device_control *c = arg;

	return c->paths ? c->paths[i] : c->gate->policy.tenants[i].path;
}

static int put_facts(struct device_control *c, struct metrics *m, double t)
{
	struct arena memory = {0};
	struct facts_site site = {&memory, path_of, c};
	struct facts facts = {0};
	int r;

	if (!c->map.kind->look)
		return 0;
	c->map.kind->look(c->instance, &site, true, false, &facts);
	r = measure_facts(m, &facts, c->of, t);
	arena_free(&memory);
	return r;
}

static int put_series(struct device_control *c)
{
	struct world *w = c->world;

	if (!w->scenario->sample || (c->sampled && w->now - c->sampled < w->scenario->sample))
		return 0;
	c->sampled = w->now;
	return put_facts(c, w->measure->metrics, (double)w->now / WEIR_SEC);
}

static int control_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct device_control *c = state;
	const struct controller *kind = c->map.kind;
	double learned;
	int r;

	if (!kind->step)
		return 0;
	c->due = kind->step(c->instance, now);
	if (c->failed[0])
		return weir_err_set(err, -EINVAL, "%s", c->failed);
	world_touch(w, c->gate);
	learned = kind->learned ? kind->learned(c->instance, WEIR_UNIT_REQUESTS) : 0;
	if (learned > 0)
		c->station->capacity = learned;
	r = put_series(c);
	return r ? weir_err_set(err, r, "%s: the series", kind->name) : 0;
}

static weir_time control_due(const void *state)
{
	return ((const struct device_control *)state)->due;
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
