/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/drive/drive.h"
#include "base/container.h"
#include "base/no-memory.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BUCKETS 64              /* of a node, at most */
#define RETRY   (100 * WEIR_MS) /* after an error */
#define LONGEST WEIR_SEC        /* between two steps: a tenant may come to the gate at any time */

struct tenant {
	struct drive_rule told; /* as the driver has it */
	struct drive_count count;
};

struct drive {
	struct site site;
	const struct weir_policy *policy;
	const struct weir_resource *resource;
	const struct drive_ops *ops;
	void *driver;
	void *instance; /* of the controller */
	struct weir_gate *gate;
	weir_node *nodes;              /* by tenant */
	struct tenant *tenants;        /* the same */
	struct controller_rule *rules; /* by tenant */
	weir_time now, due;
	char failed[128]; /* an error that the controller told */
};

/* ---- the site */

static struct drive *drive_of(const struct site *s)
{
	return (struct drive *)container_of(s, const struct drive, site);
}

static weir_time site_now(struct site *s)
{
	return drive_of(s)->now;
}

static uint64_t site_activity(const struct site *s)
{
	const struct drive *d = drive_of(s);
	uint64_t sum = 0;

	for (size_t i = 0; i < d->policy->n_tenants; i++)
		sum += d->tenants[i].count.arrived + d->tenants[i].count.served;
	return sum;
}

static bool site_busy(const struct site *s)
{
	const struct drive *d = drive_of(s);

	for (size_t i = 0; i < d->policy->n_tenants; i++)
		if (d->tenants[i].count.queued)
			return true;
	return false;
}

static void site_wake(struct site *s, weir_time at)
{
	drive_of(s)->due = at;
}

static void site_tell(
	struct site *s, enum site_level level, const char *event, const struct site_field *f)
{
	struct drive *d = drive_of(s);

	if (level == SITE_ERROR)
		snprintf(
			d->failed, sizeof(d->failed), "%s: %s", event, f->text ? f->text : f->name);
}

static const struct site_ops site_ops = {
	.now = site_now,
	.activity = site_activity,
	.busy = site_busy,
	.wake = site_wake,
	.tell = site_tell,
};

static int stats(struct site *s, weir_node leaf, struct weir_gate_stats *ret)
{
	const struct drive *d = drive_of(s);
	struct drive_count c;

	if (!weir_gate_is_leaf(d->gate, leaf))
		return -EINVAL;
	c = d->tenants[leaf - 1].count;
	*ret = (struct weir_gate_stats){.arrivals = c.arrived,
		.dispatched = c.served,
		.served = c.served,
		.bytes = c.bytes,
		.queued = c.queued,
		.oldest = WEIR_NEVER};
	return 0;
}

/* ---- rules */

/* The rule of a tenant by the knobs of its node. */
static int make_rule(struct drive *d, size_t i, struct drive_rule *ret, struct weir_err *err)
{
	struct weir_bucket_spec specs[BUCKETS];
	int n = weir_gate_get_buckets(d->gate, d->now, d->nodes[i], specs, NULL, BUCKETS);

	*ret = (struct drive_rule){.tenant = i, .path = d->policy->tenants[i].path};
	for (int slot = 0; slot < WEIR_LIMITS; slot++)
		ret->most[slot] = INFINITY;
	weir_gate_get(d->gate, d->nodes[i], WEIR_KNOB_WEIGHT, &ret->weight);
	for (int k = 0; k < n; k++) {
		double *most = &ret->most[weir_limit_slot(specs[k].unit, specs[k].ops)];

		if (specs[k].kind != WEIR_HOLD)
			return weir_err_set(err, -ENOTSUP,
				"tenant '%s': %s can limit requests, but not let some go first",
				ret->path, d->ops->name);
		*most = fmin(*most, specs[k].rate);
	}
	return 0;
}

static bool is_told(const struct drive *d, const struct drive_rule *rule)
{
	const struct drive_rule *told = &d->tenants[rule->tenant].told;

	for (size_t i = 0; i < sizeof(rule->most) / sizeof(rule->most[0]); i++)
		if (told->most[i] != rule->most[i])
			return false;
	return told->weight == rule->weight;
}

/* Give the rules that changed to the driver. All are tried; the first error counts. */
static int give_rules(struct drive *d, struct weir_err *err)
{
	struct drive_rule rule;
	struct weir_err later;
	int ret = 0;

	for (size_t i = 0; i < d->policy->n_tenants; i++) {
		int r = make_rule(d, i, &rule, ret ? &later : err);

		if (r == 0 && (d->tenants[i].count.again || !is_told(d, &rule))) {
			r = d->ops->limit(d->driver, &rule, ret ? &later : err);
			if (r == 0)
				d->tenants[i].told = rule;
		}
		if (ret == 0 && r != -EAGAIN)
			ret = r;
	}
	return ret;
}

/* ---- from start to end */

/* The controller begins with the policy, and its first rules are added to the knobs. */
static int begin(struct drive *d, struct weir_err *err)
{
	const struct controller *kind = d->resource->controller;
	struct controller_version v = policy_version(d->policy, d->resource, NULL);
	int r = kind->new ? kind->new (&d->site, &d->instance) : 0;

	v.next = true;
	v.rules = d->rules;
	if (r == 0 && kind->prepare)
		r = kind->prepare(d->instance, &v, 0, v.n);
	for (size_t i = 0; r == 0 && i < v.n; i++) {
		struct weir_bucket_spec specs[BUCKETS + 1];
		int n = weir_gate_get_buckets(d->gate, 0, d->nodes[i], specs, NULL, BUCKETS);

		specs[n] = d->rules[i].bucket;
		if (specs[n].size > 0)
			r = weir_gate_set(d->gate, 0,
				&(struct weir_knob){
					d->nodes[i], WEIR_KNOB_BUCKETS, 0, specs, (uint32_t)n + 1},
				1, err);
		if (kind->take)
			kind->take(d->instance, &v, i, d->nodes[i]);
	}
	v.next = false;
	if (r == 0 && kind->begin)
		kind->begin(d->instance, &v);
	return r;
}

static int fill(struct drive *d, struct weir_err *err)
{
	struct weir_gate_config config;
	size_t n = d->policy->n_tenants;
	struct drive_rule rule;
	int r;

	weir_policy_gate(d->resource, &config);
	d->nodes = calloc(n + 1, sizeof(*d->nodes));
	d->tenants = calloc(n + 1, sizeof(*d->tenants));
	d->rules = calloc(n + 1, sizeof(*d->rules));
	if (!d->nodes || !d->tenants || !d->rules || weir_gate_new(&config, &d->gate) < 0)
		return no_memory(err);
	d->site.gate = d->gate;
	d->site.nodes = d->nodes;
	r = weir_policy_install(d->policy, d->gate, 0, d->nodes, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		assert(d->nodes[i] == i + 1); /* as an empty gate numbers them */
		r = make_rule(d, i, &rule, err);
	}
	return r ? r : begin(d, err);
}

int drive_new(const struct weir_policy *policy, const struct weir_resource *resource,
	const struct drive_ops *ops, void *driver, struct drive **ret, struct weir_err *err)
{
	struct drive *d;
	int r;

	if (!resource->controller || resource->controller->in_cluster ||
		resource->controller->has_peers)
		return weir_err_set(err, -EINVAL,
			"resource '%s' needs a controller that works alone", resource->name);
	d = calloc(1, sizeof(*d));
	if (!d)
		return no_memory(err);
	*d = (struct drive){.policy = policy,
		.resource = resource,
		.ops = ops,
		.driver = driver,
		.due = WEIR_NEVER};
	d->site = (struct site){.ops = &site_ops,
		.name = resource->name,
		.stats = stats,
		.hides_queue = ops->hides_queue};
	r = fill(d, err);
	if (r) {
		drive_free(d);
		return r == -ENOMEM ? no_memory(err) : r;
	}
	*ret = d;
	return 0;
}

void drive_free(struct drive *d)
{
	if (!d)
		return;
	if (d->instance && d->resource->controller->free)
		d->resource->controller->free(d->instance);
	weir_gate_free(d->gate);
	free(d->nodes);
	free(d->tenants);
	free(d->rules);
	free(d);
}

/* ---- a step */

static int read_counts(struct drive *d, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->policy->n_tenants; i++)
		if (d->policy->tenants[i].first_child < 0)
			r = d->ops->count(d->driver, i, d->policy->tenants[i].path,
				&d->tenants[i].count, err);
	return r;
}

int drive_step(struct drive *d, weir_time now, weir_time *ret_next, struct weir_err *err)
{
	const struct controller *kind = d->resource->controller;
	int r = read_counts(d, err);

	d->now = now;
	d->failed[0] = '\0';
	if (r == 0 && now >= d->due)
		d->due = kind->step(d->instance, now);
	if (r == 0 && d->failed[0])
		r = weir_err_set(err, -EINVAL, "%s", d->failed);
	if (r == 0)
		r = give_rules(d, err);
	*ret_next = r ? now + RETRY : d->due < now + LONGEST ? d->due : now + LONGEST;
	return r;
}

static const char *path_of(void *arg, size_t i)
{
	return ((const struct drive *)arg)->policy->tenants[i].path;
}

void drive_look(struct drive *d, struct arena *memory, struct facts *ret)
{
	struct facts_site site = {memory, path_of, d};

	*ret = (struct facts){0};
	if (d->resource->controller->look)
		d->resource->controller->look(d->instance, &site, true, false, ret);
}
