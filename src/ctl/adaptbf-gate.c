/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/adaptbf-gate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_RULE    (-1.0)
#define WEIGHT_MIN (1.0 / 1024) /* the gate's */
#define WEIGHT_MAX 1048576.0

struct leaf {
	weir_node node;
	uint64_t id;
	uint32_t weight;
	uint32_t own, n_own; /* in `specs`: its own, and room for one more behind them */
	double share;        /* its weight in the gate by the policy */
	double rate, scale;  /* of its rule; NO_RULE and 1 */
	double cost;         /* of a request of its, as of the last look; ≥ 1 */
};

struct table {
	struct leaf *leaves; /* by id */
	struct weir_bucket_spec *specs;
	struct weir_knob *knobs;
	size_t room, room_specs; /* leaves; buckets */
};

struct adaptbf_gate {
	struct weir_gate *gate;
	enum adaptbf_gate_mode mode;
	double depth, span;     /* requests; s */
	struct table now, next; /* next: reserved */
	size_t n;
	double (*cost)(void *arg, weir_node node);
	void *cost_arg;
	double mean;      /* what a request cost, over the leaves, at the last look */
	uint64_t counted; /* requests served while it was full, as of the last totals */
	double done;      /* the same in tokens */
};

int adaptbf_gate_new(struct weir_gate *gate, enum adaptbf_gate_mode mode, double depth,
	struct adaptbf_gate **ret)
{
	struct adaptbf_gate *d;

	if (depth != 0 && !(depth >= 1))
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->gate = gate;
	d->mode = mode;
	d->depth = depth > 0 ? depth : ADAPTBF_GATE_DEPTH;
	*ret = d;
	return 0;
}

static void table_free(struct table *t)
{
	free(t->leaves);
	free(t->specs);
	free(t->knobs);
	*t = (struct table){0};
}

void adaptbf_gate_free(struct adaptbf_gate *d)
{
	if (!d)
		return;
	table_free(&d->now);
	table_free(&d->next);
	free(d);
}

void adaptbf_gate_span(struct adaptbf_gate *d, double seconds)
{
	d->span = seconds;
}

void adaptbf_gate_cost(struct adaptbf_gate *d, double (*cost)(void *arg, weir_node node), void *arg)
{
	d->cost = cost;
	d->cost_arg = arg;
}

static int by_id(const void *x, const void *y)
{
	const struct leaf *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

static struct leaf *find(const struct adaptbf_gate *d, uint64_t id)
{
	struct leaf key = {.id = id};

	return d->n ? bsearch(&key, d->now.leaves, d->n, sizeof(key), by_id) : NULL;
}

int adaptbf_gate_reserve(struct adaptbf_gate *d, size_t n, size_t n_own)
{
	struct table t = {.room = n, .room_specs = n_own + n};

	if (d->next.room >= t.room && d->next.room_specs >= t.room_specs)
		return 0;
	t.leaves = calloc(n + 1, sizeof(*t.leaves));
	t.knobs = calloc(2 * n + 1, sizeof(*t.knobs));
	t.specs = calloc(t.room_specs + 1, sizeof(*t.specs));
	if (!t.leaves || !t.knobs || !t.specs) {
		table_free(&t);
		return -ENOMEM;
	}
	table_free(&d->next);
	d->next = t;
	return 0;
}

int adaptbf_gate_leaves(struct adaptbf_gate *d, const struct adaptbf_gate_leaf *leaves, size_t n)
{
	struct table *to = &d->next;
	size_t own = 0, at = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		own += leaves[i].n_own;
	r = adaptbf_gate_reserve(d, n, own);
	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct adaptbf_gate_leaf *l = &leaves[i];
		const struct leaf *old = find(d, l->id);

		to->leaves[i] = (struct leaf){l->node, l->id, l->weight, (uint32_t)at, l->n_own,
			l->share, old ? old->rate : NO_RULE, old ? old->scale : 1,
			old ? old->cost : 1};
		if (l->n_own)
			memcpy(&to->specs[at], l->own, l->n_own * sizeof(*to->specs));
		at += l->n_own + 1;
	}
	qsort(to->leaves, n, sizeof(*to->leaves), by_id);
	table_free(&d->now);
	d->now = *to;
	d->n = n;
	*to = (struct table){0};
	return 0;
}

void adaptbf_gate_own(struct adaptbf_gate *d, uint64_t id, const struct weir_bucket_spec *own)
{
	const struct leaf *l = find(d, id);

	if (l && l->n_own)
		memcpy(&d->now.specs[l->own], own, l->n_own * sizeof(*own));
}

/* ---- as a driver */

/* What its own limits let it have, in requests a second; by bytes, as large as its requests were. */
static double most(
	const struct adaptbf_gate *d, const struct leaf *l, const struct weir_gate_stats *s)
{
	double least = 0;

	for (uint32_t i = 0; i < l->n_own; i++) {
		const struct weir_bucket_spec *b = &d->now.specs[l->own + i];
		double rate = b->rate;

		if (b->kind != WEIR_HOLD || (b->ops && b->ops != WEIR_OPS_ALL))
			continue;
		if (b->unit == WEIR_UNIT_BYTES && s->bytes)
			rate *= (double)s->dispatched / (double)s->bytes;
		else if (b->unit != WEIR_UNIT_REQUESTS)
			continue;
		if (least <= 0 || rate < least)
			least = rate;
	}
	return least;
}

/* Counters in requests become tokens. What they cost changes slowly; a counter that falls for it is
 * taken for one that began again, for a period. */
static void weigh(struct adaptbf_job *j, double cost)
{
	if (cost <= 1)
		return;
	j->arrived = (uint64_t)((double)j->arrived * cost);
	j->served = (uint64_t)((double)j->served * cost);
	j->queued = (int64_t)ceil((double)j->queued * cost);
}

static int64_t gate_jobs(void *driver, weir_time now, struct adaptbf_job *list, size_t max)
{
	struct adaptbf_gate *d = driver;
	double requests = 0, tokens = 0;

	if (d->n > max)
		return (int64_t)d->n;
	for (size_t i = 0; i < d->n; i++) {
		struct leaf *l = &d->now.leaves[i];
		struct weir_gate_stats s;
		int r = weir_gate_get_stats(d->gate, now, l->node, &s);

		if (r)
			return r;
		list[i] = (struct adaptbf_job){
			l->id, l->weight, s.arrivals, s.dispatched, s.queued, most(d, l, &s)};
		l->cost = d->cost ? fmax(d->cost(d->cost_arg, l->node), 1) : 1;
		weigh(&list[i], l->cost);
		requests += (double)s.dispatched;
		tokens += (double)list[i].served;
	}
	d->mean = requests > 0 ? tokens / requests : 1;
	return (int64_t)d->n;
}

static int gate_totals(void *driver, weir_time now, struct adaptbf_totals *ret)
{
	struct adaptbf_gate *d = driver;
	struct weir_gate_totals t;

	weir_gate_get_totals(d->gate, now, &t);
	d->done += (double)(t.full_served - d->counted) * d->mean;
	d->counted = t.full_served;
	*ret = (struct adaptbf_totals){t.full, (uint64_t)d->done};
	return 0;
}

static struct weir_bucket_spec bucket(
	const struct adaptbf_gate *d, const struct leaf *l, double rate)
{
	/* As gate.h says of R-buckets: what comes in while a request waits for a slot, or it is lost. */
	double claim = 2 * l->cost + 0.02 * rate;

	return (struct weir_bucket_spec){
		.kind = d->mode == ADAPTBF_GATE_HOLD ? WEIR_HOLD : WEIR_RTOKENS,
		.unit = WEIR_UNIT_REQUESTS,
		.rate = rate,
		.size = d->mode == ADAPTBF_GATE_HOLD ? fmax(d->depth * l->cost, d->span * rate)
						     : claim,
	};
}

/* The knobs that make the leaf's rule this one, behind the m there are; how many there are then. */
static size_t turn(
	struct adaptbf_gate *d, const struct leaf *l, double rate, double scale, size_t m)
{
	struct weir_bucket_spec *own = &d->now.specs[l->own];
	bool rule = rate != NO_RULE;

	if (l->rate != rate) {
		/* Last, so that the others keep their places and so their levels. */
		if (rule)
			own[l->n_own] = bucket(d, l, rate);
		d->now.knobs[m++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = own,
			.n_buckets = l->n_own + rule};
	}
	if (l->scale != scale)
		d->now.knobs[m++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_WEIGHT,
			.value = fmin(fmax(l->share * scale, WEIGHT_MIN), WEIGHT_MAX)};
	return m;
}

static double scale_of(const struct adaptbf_gate *d, const struct adaptbf_rule *r)
{
	if (d->mode != ADAPTBF_GATE_HOLD || !r->active || r->initial == 0 || r->tokens == 0)
		return 1;
	return (double)r->tokens / (double)r->initial;
}

static double rate_of(const struct adaptbf_rule *r)
{
	return r->active ? r->rate : NO_RULE;
}

bool adaptbf_gate_rule(const struct adaptbf_gate *d, uint64_t id,
	struct weir_bucket_spec *ret_bucket, double *ret_scale)
{
	const struct leaf *l = find(d, id);

	if (!l || l->rate == NO_RULE)
		return false;
	*ret_bucket = bucket(d, l, l->rate);
	*ret_scale = l->scale;
	return true;
}

static int gate_apply(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n)
{
	struct adaptbf_gate *d = driver;
	size_t m = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct leaf *l = find(d, rules[i].id);

		if (l)
			m = turn(d, l, rate_of(&rules[i]), scale_of(d, &rules[i]), m);
	}
	if (m == 0)
		return 0;
	r = weir_gate_set(d->gate, now, d->now.knobs, m, NULL);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct leaf *l = find(d, rules[i].id);

		if (l) {
			l->rate = rate_of(&rules[i]);
			l->scale = scale_of(d, &rules[i]);
		}
	}
	return r;
}

int adaptbf_gate_release(struct adaptbf_gate *d, weir_time now)
{
	size_t m = 0;
	int r;

	for (size_t i = 0; i < d->n; i++)
		m = turn(d, &d->now.leaves[i], NO_RULE, 1, m);
	r = m ? weir_gate_set(d->gate, now, d->now.knobs, m, NULL) : 0;
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		d->now.leaves[i].rate = NO_RULE;
		d->now.leaves[i].scale = 1;
	}
	return r;
}

const struct adaptbf_driver_ops adaptbf_gate_ops = {
	.name = "gate",
	.jobs = gate_jobs,
	.totals = gate_totals,
	.apply = gate_apply,
};
