/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cake: proportional shares that follow measured latencies, after Cake (Wang et al., 2012) as PriorityMeister §5.3 extends it to
 * several tenants. For comparison: it reacts to a burst, when the burst has been there.
 *
 * LAW     Once an interval, for each leaf with an slo: with the measured percentile of the interval above the slo its weight grows
 *         by a step, with one below 0.8 of it the weight shrinks by a step; from 1/64 to 64 times the policy's weight. A leaf
 *         that completed nothing, and whose oldest request has waited for longer than the slo, is above it.
 * METHOD  The percentile is beyond a time if more than its part of the requests took longer: so two counts suffice, of the
 *         requests beyond the slo and of those beyond 0.8 of it, which the site keeps.
 */
#include "control/controller.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SCALE_MOST 64.0

struct cake_settings {
	weir_time interval;
	double step;
};

struct leaf {
	weir_node node;
	double weight, scale;
	double percentile; /* 0: no slo */
	weir_time slo;
	struct site_slo seen;
};

struct cake {
	struct site *site;
	struct cake_settings settings;
	struct leaf *leaves, *next; /* by tenant, of the version in force and of the next */
	size_t n;
};

#define AT(field) KEY_AT(struct cake_settings, field)
static const struct key keys[] = {{"interval", KEY_TIME, AT(interval), 10, 0.1, 3600},
	{"step", KEY_NUMBER, AT(step), 0.25, 0, 1, .above = true}, {0}};

/* ---- a step */

static bool beyond(const struct leaf *l, uint64_t late, uint64_t total)
{
	return (double)late > (1 - l->percentile / 100) * (double)total;
}

/* Return 1: the weight must grow; -1: it may shrink; 0: neither. */
static int judge(struct cake *c, struct leaf *l, size_t i, weir_time now)
{
	struct weir_gate_stats st;
	struct site_slo to = site_slo_count(c->site, i);
	uint64_t total, late, near;

	total = to.total - l->seen.total;
	late = to.late - l->seen.late;
	near = to.near - l->seen.near;
	l->seen = to;
	if (total)
		return beyond(l, late, total) ? 1 : beyond(l, near, total) ? 0 : -1;
	return site_stats(c->site, now, l->node, &st) == 0 && st.queued && now - st.oldest > l->slo;
}

static weir_time step(void *arg, weir_time now)
{
	struct cake *c = arg;
	double factor = 1 + c->settings.step;

	for (size_t i = 0; i < c->n; i++) {
		struct leaf *l = &c->leaves[i];
		struct weir_knob knob = {.node = l->node, .kind = WEIR_KNOB_WEIGHT};
		int more = l->percentile > 0 ? judge(c, l, i, now) : 0;
		double scale = l->scale * (more > 0 ? factor : more < 0 ? 1 / factor : 1);

		scale = fmin(fmax(scale, 1 / SCALE_MOST), SCALE_MOST);
		knob.value = fmin(fmax(l->weight * scale, 1.0 / 1024), 1 << 20);
		if (scale != l->scale && weir_gate_set(c->site->gate, now, &knob, 1, NULL) == 0)
			l->scale = scale;
	}
	return now + c->settings.interval;
}

/* ---- the policy */

static int make(struct site *site, void **ret)
{
	struct cake *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->site = site;
	*ret = c;
	return 0;
}

static void destroy(void *arg)
{
	struct cake *c = arg;

	free(c->leaves);
	free(c->next);
	free(c);
}

/* A version begins with the policy's weights. */
static int prepare(void *arg, const struct controller_version *v, size_t from, size_t to)
{
	struct cake *c = arg;

	if (from == 0) {
		free(c->next);
		c->next = calloc(v->n + 1, sizeof(*c->next));
	}
	if (!c->next)
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		struct controller_tenant t = v->tenant(v, i);

		c->next[i] = (struct leaf){.weight = t.weight,
			.scale = 1,
			.percentile = t.is_leaf ? t.slo_percentile : 0,
			.slo = t.slo_latency};
	}
	return 0;
}

static void begin(void *arg, const struct controller_version *v)
{
	struct cake *c = arg;

	free(c->leaves);
	c->leaves = c->next;
	c->next = NULL;
	c->n = v->n;
	c->settings = *(const struct cake_settings *)v->settings;
	for (size_t i = 0; i < c->n; i++) {
		c->leaves[i].node = c->site->nodes[i];
		c->leaves[i].seen = site_slo_count(c->site, i);
	}
	c->site->ops->wake(c->site, c->site->ops->now(c->site) + c->settings.interval);
}

static void end(void *arg)
{
	((struct cake *)arg)->n = 0;
}

static void rule(
	void *arg, const struct controller_version *v, size_t i, struct controller_rule *ret)
{
	const struct cake *c = arg;

	*ret = (struct controller_rule){.scale = !v->next && i < c->n ? c->leaves[i].scale : 1};
}

static const struct key_help help[] = {
#include "control/cake/keys.inc"
	{0}};

const struct controller cake_controller = {
	.name = "cake",
	.summary = "moves weights by measured latencies towards the tenants' slos, as Cake",
	.keys = keys,
	.help = help,
	.settings_size = sizeof(struct cake_settings),
	.new = make,
	.free = destroy,
	.prepare = prepare,
	.begin = begin,
	.end = end,
	.rule = rule,
	.step = step,
};
