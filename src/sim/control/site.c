/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/control/site.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "sim/world/measure-facts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 64 /* of a tenant */

static struct sim_site *site_of(const struct site *s)
{
	return (struct sim_site *)container_of(s, const struct sim_site, site);
}

/* ---- operations */

static weir_time site_now(struct site *s)
{
	return site_of(s)->world->now;
}

static uint64_t site_activity(const struct site *s)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(s->gate, site_of(s)->world->now, &t);
	return t.submitted + t.served;
}

static bool site_busy(const struct site *s)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(s->gate, site_of(s)->world->now, &t);
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

/* Tenants of several hosts may be one at the gate of a device. */
static void site_slo(struct site *s, size_t tenant, struct site_slo *ret)
{
	const struct sim_site *of = site_of(s);
	const struct world *w = of->world;

	*ret = (struct site_slo){0};
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		const struct world_tenant *t = &w->tenants[i];
		bool here = of->gate->host ? t->host == of->gate->host && t->index == tenant
					   : t->device_node == s->nodes[tenant] &&
						     &w->stations[t->host->group->device] ==
							     of->gate->station;

		ret->total += here ? t->slo.total : 0;
		ret->late += here ? t->slo.late : 0;
		ret->near += here ? t->slo.near : 0;
	}
}

static weir_time site_cpu(struct site *s)
{
	return 0;
}

static void site_wake(struct site *s, weir_time at)
{
	site_of(s)->due = at;
}

static void site_send(struct site *s, uint8_t *message, size_t len)
{
	free(message); /* no cluster */
}

static void site_tell(
	struct site *s, enum site_level level, const char *event, const struct site_field *f)
{
	struct sim_site *to = site_of(s);

	if (level == SITE_ERROR)
		snprintf(to->failed, sizeof(to->failed), "%s: %s", event,
			f->text ? f->text : f->name);
}

static void site_random(struct site *s, void *ret, size_t len)
{
	unsigned char *to = ret;

	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)rng_u64(&site_of(s)->random);
}

static void site_set_window(struct site *s, double window)
{
	struct weir_knob knob = {.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = window};
	struct sim_site *to = site_of(s);
	struct weir_err err;

	if (world_gate_set(to->world, to->gate, &knob, 1, &err))
		snprintf(to->failed, sizeof(to->failed), "%.*s", (int)sizeof(to->failed) - 1,
			err.text);
}

static void site_forget(struct site *s, struct site_burst *b)
{
}

const struct site_ops sim_site_ops = {
	.now = site_now,
	.activity = site_activity,
	.busy = site_busy,
	.capacity = site_capacity,
	.mean_cost = site_mean_cost,
	.slo = site_slo,
	.cpu = site_cpu,
	.wake = site_wake,
	.send = site_send,
	.tell = site_tell,
	.random = site_random,
	.set_window = site_set_window,
	.forget = site_forget,
};

/* ---- the version of the policy */

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

static struct controller_version version_of(struct sim_site *s, bool next)
{
	return (struct controller_version){.n = s->gate->policy->n_tenants,
		.next = next,
		.settings = s->settings,
		.capacity = {s->capacity[0], s->capacity[1]},
		.depth = s->gate->config->config.window,
		.rules = s->rules,
		.peers = s->peers,
		.tenant = policy_version_tenant,
		.tokens = no_tokens,
		.shares = shares_of,
		.of = s->gate->policy};
}

/* ---- life */

/* Add the buckets of a tenant's rule to the gate. */
static int set_rule(struct sim_site *s, size_t i, struct weir_err *err)
{
	const struct controller_rule *rule = &s->rules[i];
	struct weir_bucket_spec specs[BUCKETS + 2];
	struct weir_knob knob = {
		.node = s->gate->nodes[i], .kind = WEIR_KNOB_BUCKETS, .buckets = specs};
	int n;

	if (rule->bucket.size <= 0)
		return 0;
	n = weir_gate_get_buckets(s->gate->gate, s->world->now, knob.node, specs, NULL, BUCKETS);
	if (n < 0)
		return weir_err_set(err, n, "%s: %s", s->kind->name, strerror(-n));
	specs[n++] = rule->bucket;
	if (rule->second.size > 0)
		specs[n++] = rule->second;
	knob.n_buckets = (uint32_t)n;
	return world_gate_set(s->world, s->gate, &knob, 1, err);
}

int sim_site_begin(struct sim_site *s, struct weir_err *err)
{
	const struct controller *kind = s->kind;
	struct controller_version v;
	int r = 0;

	s->site.gate = s->gate->gate;
	s->site.nodes = s->gate->nodes;
	s->site.audits = true;
	s->due = WEIR_NEVER;
	if (!s->rules)
		s->rules = calloc(s->gate->policy->n_tenants + 1, sizeof(*s->rules));
	v = version_of(s, true);
	if (!s->rules || (kind->new && kind->new (&s->site, &s->instance)) ||
		(kind->prepare && kind->prepare(s->instance, &v, 0, v.n)))
		return no_memory(err);
	for (size_t i = 0; r == 0 && i < v.n; i++) {
		r = set_rule(s, i, err);
		if (r == 0 && kind->take)
			kind->take(s->instance, &v, i, s->gate->nodes[i]);
	}
	v = version_of(s, false);
	if (r == 0 && kind->begin)
		kind->begin(s->instance, &v);
	return r == 0 && s->failed[0] ? weir_err_set(err, -EINVAL, "%s", s->failed) : r;
}

void sim_site_end(struct sim_site *s)
{
	if (s->instance && s->kind->free)
		s->kind->free(s->instance);
	free(s->rules);
	s->instance = NULL;
	s->rules = NULL;
}

int sim_site_step(struct sim_site *s, struct weir_err *err)
{
	s->due = s->kind->step(s->instance, s->world->now);
	return s->failed[0] ? weir_err_set(err, -EINVAL, "%s", s->failed) : 0;
}

/* ---- facts */

struct naming { /* of tenants */
	const struct sim_site *site;
	const char *host; /* NULL: paths as they are */
	struct arena *memory;
};

static const char *path_of(void *arg, size_t i)
{
	const struct naming *n = arg;
	const char *path = n->site->gate->policy->tenants[i].path;
	size_t len = n->host ? strlen(n->host) + strlen(path) + 2 : 0;
	char *text = len ? arena_take(n->memory, len, 1) : NULL;

	if (text)
		snprintf(text, len, "%s/%s", n->host, path);
	return text ? text : path;
}

int sim_site_facts(const struct sim_site *s, const char *subject, const char *host,
	struct metrics *m, double t)
{
	struct arena memory = {0};
	struct naming naming = {s, host, &memory};
	struct facts_site site = {&memory, path_of, &naming};
	struct facts facts = {0};
	int r;

	if (!s->kind->look)
		return 0;
	s->kind->look(s->instance, &site, true, false, &facts);
	r = memory.failed ? -ENOMEM : measure_facts(m, &facts, subject, t);
	arena_free(&memory);
	return r;
}
