/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/adaptbf/gate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_RULE    (-1.0)
#define WEIGHT_MIN (1.0 / 1024) /* the gate's */
#define WEIGHT_MAX 1048576.0

/* s: as in gate.h; but with large requests inside, no slot is free for longer */
#define CLAIM   0.1
#define BUCKETS 64 /* of a node: room for all */
#define BATCH   16 /* leaves whose rules are set in one call */

struct leaf {
	weir_node node;
	uint32_t weight;
	uint64_t id;
	double share;       /* its weight in the gate by the policy; 0: handed over */
	double rate, scale; /* of its rule; NO_RULE and 1 without */
	double cost;        /* tokens per request, as of the last step */
	/* as of the last step; requests and bytes as the gate counts them, and tokens: */
	uint64_t arrivals, dispatched, bytes;
	double arrived, served;
	weir_time held; /* of the gate */
	bool rests; /* no request of it was there, or had come since the look before, and it has no rule */
};

struct table {
	struct leaf *leaves;
	uint32_t *index; /* by id: 1 + the leaf; 0: no leaf */
	size_t room;     /* leaves */
	uint64_t max_id;
};

struct adaptbf_gate {
	struct site *site;
	enum adaptbf_gate_mode mode;
	enum weir_unit unit;    /* of a token */
	double depth, span;     /* requests; s */
	struct table now, next; /* next: reserved */
	size_t n;
	double (*cost)(void *arg, weir_node node);
	void *cost_arg;
	double mean;        /* what a request cost, over the leaves, lately */
	uint64_t counted;   /* requests served while it was full, as of the last totals */
	double done;        /* the same in tokens */
	uint64_t submitted; /* to the gate, as of the last look */
	bool recount;       /* leaves are others since then */
	size_t looked;      /* leaves of which the gate's counters were read in the last look */
};

int adaptbf_gate_new(
	struct site *site, enum adaptbf_gate_mode mode, double depth, struct adaptbf_gate **ret)
{
	struct adaptbf_gate *d;

	if (depth != 0 && !(depth >= 1))
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->site = site;
	d->mode = mode;
	d->depth = depth > 0 ? depth : ADAPTBF_GATE_DEPTH;
	d->mean = 1;
	*ret = d;
	return 0;
}

static void table_free(struct table *t)
{
	free(t->leaves);
	free(t->index);
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

void adaptbf_gate_unit(struct adaptbf_gate *d, enum weir_unit unit)
{
	d->unit = unit;
}

void adaptbf_gate_cost(struct adaptbf_gate *d, double (*cost)(void *arg, weir_node node), void *arg)
{
	d->cost = cost;
	d->cost_arg = arg;
}

static struct leaf *find(const struct adaptbf_gate *d, uint64_t id)
{
	uint32_t at = d->now.index && id <= d->now.max_id ? d->now.index[id] : 0;

	return at ? &d->now.leaves[at - 1] : NULL;
}

bool adaptbf_gate_has(const struct adaptbf_gate *d, uint64_t id)
{
	return find(d, id) != NULL;
}

int adaptbf_gate_reserve(struct adaptbf_gate *d, size_t n, uint64_t max_id)
{
	struct table t = {.room = n, .max_id = max_id};

	if (d->next.leaves && d->next.room >= n && d->next.max_id >= max_id)
		return 0;
	if (max_id >= UINT32_MAX)
		return -ENOMEM;
	t.leaves = calloc(n + 1, sizeof(*t.leaves));
	t.index = calloc(max_id + 1, sizeof(*t.index));
	if (!t.leaves || !t.index) {
		table_free(&t);
		return -ENOMEM;
	}
	table_free(&d->next);
	d->next = t;
	return 0;
}

static uint64_t largest_id(const struct adaptbf_gate_leaf *leaves, size_t n)
{
	uint64_t max = 0;

	for (size_t i = 0; i < n; i++)
		if (leaves[i].id > max)
			max = leaves[i].id;
	return max;
}

int adaptbf_gate_leaves(struct adaptbf_gate *d, const struct adaptbf_gate_leaf *leaves, size_t n)
{
	struct table *to = &d->next;
	int r = adaptbf_gate_reserve(d, n, largest_id(leaves, n));

	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct adaptbf_gate_leaf *l = &leaves[i];
		const struct leaf *old = find(d, l->id);

		to->leaves[i] = old ? *old : (struct leaf){.rate = NO_RULE, .scale = 1, .cost = 1};
		to->leaves[i].node = l->node;
		to->leaves[i].id = l->id;
		to->leaves[i].weight = l->weight;
		to->leaves[i].share = l->share;
		to->index[l->id] = (uint32_t)i + 1;
	}
	table_free(&d->now);
	d->now = *to;
	d->n = n;
	d->recount = true;
	*to = (struct table){0};
	return 0;
}

void adaptbf_gate_share(struct adaptbf_gate *d, uint64_t id, double share)
{
	struct leaf *l = find(d, id);

	if (l)
		l->share = share;
}

/* ---- the leaf's own buckets */

static enum weir_bucket_kind kind_of(const struct adaptbf_gate *d)
{
	return d->mode == ADAPTBF_GATE_HOLD ? WEIR_HOLD : WEIR_RTOKENS;
}

/* Return true if the bucket is the rule's, as the gate stores it: rates in parts of 1/1024. */
static bool is_rule(
	const struct adaptbf_gate *d, const struct leaf *l, const struct weir_bucket_spec *b)
{
	return b->kind == kind_of(d) && b->unit == d->unit && fabs(b->rate - l->rate) <= 1.0 / 1024;
}

/* Copy all buckets of the leaf but its rule's, which is the last of its kind; return their
 * number. */
static int own_buckets(const struct adaptbf_gate *d, weir_time now, const struct leaf *l,
	struct weir_bucket_spec ret[BUCKETS])
{
	int n = weir_gate_get_buckets(d->site->gate, now, l->node, ret, NULL, BUCKETS), i = n;

	if (n <= 0 || l->rate == NO_RULE)
		return n;
	while (i > 0 && ret[i - 1].kind != kind_of(d))
		i--;
	if (i == 0 || !is_rule(d, l, &ret[i - 1]))
		return n;
	memmove(&ret[i - 1], &ret[i], (size_t)(n - i) * sizeof(*ret));
	return n - 1;
}

/* ---- as a driver */

/* Return a limit of the leaf in tokens a second; 0: it limits something else. */
static double limit(const struct adaptbf_gate *d, const struct leaf *l,
	const struct weir_bucket_spec *b, const struct weir_gate_stats *s)
{
	if (b->kind != WEIR_HOLD || (b->ops && b->ops != WEIR_OPS_ALL))
		return 0;
	if (b->unit == d->unit)
		return b->rate / lend_token_size(d->unit);
	if (b->unit == WEIR_UNIT_REQUESTS)
		return b->rate * l->cost;
	if (b->unit == WEIR_UNIT_BYTES && s->bytes) /* by the mean size of its requests */
		return b->rate * (double)s->dispatched / (double)s->bytes * l->cost;
	return 0;
}

/* Return the least of the leaf's limits, in tokens a second; 0: no limit. */
static double most(const struct adaptbf_gate *d, weir_time now, const struct leaf *l,
	const struct weir_gate_stats *s)
{
	struct weir_bucket_spec own[BUCKETS];
	int n = own_buckets(d, now, l, own);
	double least = 0;

	for (int i = 0; i < n; i++) {
		double rate = limit(d, l, &own[i], s);

		if (rate > 0 && (least <= 0 || rate < least))
			least = rate;
	}
	return least;
}

/* Return the recent cost of the leaf's requests; one token each until it is known. */
static double cost_of(
	const struct adaptbf_gate *d, const struct leaf *l, const struct weir_gate_stats *s)
{
	if (d->unit != WEIR_UNIT_BYTES)
		return d->cost ? fmax(d->cost(d->cost_arg, l->node), 1) : 1;
	if (s->dispatched == l->dispatched || s->bytes < l->bytes)
		return l->cost;
	return (double)(s->bytes - l->bytes) / (double)(s->dispatched - l->dispatched) /
	       LEND_TOKEN_BYTES;
}

/* Convert requests since the last step into tokens. If the node changed, or its counters were
 * reset, start at 0. */
static void count(const struct adaptbf_gate *d, struct leaf *l, const struct weir_gate_stats *s)
{
	if (s->arrivals < l->arrivals || s->dispatched < l->dispatched)
		l->arrivals = l->dispatched = l->bytes = 0;
	l->cost = cost_of(d, l, s);
	l->arrived += (double)(s->arrivals - l->arrivals) * l->cost;
	l->served += (double)(s->dispatched - l->dispatched) * l->cost;
	l->arrivals = s->arrivals;
	l->dispatched = s->dispatched;
	l->bytes = s->bytes;
}

struct seen { /* of a look: requests that came, and that passed; what those were in tokens */
	uint64_t came;
	double requests, tokens;
};

static int look_at(struct adaptbf_gate *d, weir_time now, struct leaf *l, struct lend_job *to,
	struct seen *seen)
{
	double served = l->served;
	uint64_t arrivals = l->arrivals, dispatched = l->dispatched;
	struct weir_gate_stats s;
	int r = site_stats(d->site, now, l->node, &s);

	if (r)
		return r;
	if (s.dispatched > l->dispatched)
		seen->requests += (double)(s.dispatched - l->dispatched);
	seen->came += s.arrivals - arrivals;
	count(d, l, &s);
	seen->tokens += l->served - served;
	l->held = weir_gate_held(d->site->gate, now, l->node);
	/* A site with counters of its own has none of the whole gate, which would tell that a leaf has to be looked at. */
	l->rests = !d->site->stats && !s.queued && !s.in_flight && s.arrivals == arrivals &&
		   s.dispatched == dispatched && l->rate == NO_RULE;
	d->looked++;
	/* Only a job with requests needs its limits. */
	*to = (struct lend_job){l->id, l->weight, (uint64_t)l->arrived, (uint64_t)l->served,
		d->site->hides_queue ? LEND_UNKNOWN : (int64_t)ceil(s.queued * l->cost),
		s.queued || s.arrivals != arrivals ? most(d, now, l, &s) : 0,
		s.queued && s.cause == WEIR_WAIT_ABOVE, l->held};
	return 0;
}

/* Look at the leaves that rest, or at the others. */
static int look_at_all(
	struct adaptbf_gate *d, weir_time now, struct lend_job *list, bool rest, struct seen *seen)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		struct leaf *l = &d->now.leaves[i];

		if (l->rests == rest)
			r = look_at(d, now, l, &list[i], seen);
		else if (!rest) /* as it was */
			list[i] = (struct lend_job){l->id, l->weight, (uint64_t)l->arrived,
				(uint64_t)l->served, 0, 0, false, l->held};
	}
	return r;
}

/* Leaves that rest are looked at if requests came to the gate that came to none of the others. */
static int64_t gate_jobs(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	struct adaptbf_gate *d = driver;
	struct seen seen = {0};
	struct weir_gate_totals all;
	int r;

	if (d->n > max)
		return (int64_t)d->n;
	weir_gate_get_totals(d->site->gate, now, &all);
	d->looked = 0;
	for (size_t i = 0; d->recount && i < d->n; i++)
		d->now.leaves[i].rests = false;
	r = look_at_all(d, now, list, false, &seen);
	if (r == 0 && !d->recount && !d->site->stats && seen.came != all.submitted - d->submitted)
		r = look_at_all(d, now, list, true, &seen);
	if (r)
		return r;
	d->submitted = all.submitted;
	d->recount = false;
	if (seen.requests > 0)
		d->mean = seen.tokens / seen.requests;
	return (int64_t)d->n;
}

size_t adaptbf_gate_looked(const struct adaptbf_gate *d)
{
	return d->looked;
}

static int gate_totals(void *driver, weir_time now, struct lend_totals *ret)
{
	struct adaptbf_gate *d = driver;
	struct weir_gate_totals t;

	weir_gate_get_totals(d->site->gate, now, &t);
	d->done += (double)(t.full_served - d->counted) * d->mean;
	d->counted = t.full_served;
	*ret = (struct lend_totals){t.full, (uint64_t)d->done};
	return 0;
}

static struct weir_bucket_spec bucket(
	const struct adaptbf_gate *d, const struct leaf *l, double rate)
{
	double token = lend_token_size(d->unit), request = l->cost * token;
	/* As gate.h explains for R-buckets: hold the tokens that arrive while a request waits for a
	 * slot. */
	double claim = 2 * request + CLAIM * rate;

	return (struct weir_bucket_spec){
		.kind = kind_of(d),
		.unit = d->unit,
		.rate = rate,
		.size = fmax(d->mode == ADAPTBF_GATE_HOLD ? fmax(d->depth * request, d->span * rate)
							  : claim,
			token),
	};
}

struct batch { /* rules to set in one call */
	struct {
		struct leaf *leaf;
		double rate, scale;
	} to[BATCH];
	struct weir_knob knobs[2 * BATCH];
	struct weir_bucket_spec specs[BATCH][BUCKETS + 1];
	size_t n, n_knobs;
};

static int batch_set(struct adaptbf_gate *d, weir_time now, struct batch *b)
{
	int r = b->n_knobs ? weir_gate_set(d->site->gate, now, b->knobs, b->n_knobs, NULL) : 0;

	for (size_t i = 0; r == 0 && i < b->n; i++) {
		b->to[i].leaf->rate = b->to[i].rate;
		b->to[i].leaf->scale = b->to[i].scale;
	}
	b->n = b->n_knobs = 0;
	return r;
}

/* Set the leaf's rule with the next batch. */
static int turn(struct adaptbf_gate *d, weir_time now, struct leaf *l, double rate, double scale,
	struct batch *b)
{
	struct weir_bucket_spec *specs = b->specs[b->n];

	if (l->share <= 0 || (l->rate == rate && l->scale == scale))
		return 0;
	if (l->rate != rate) {
		int n = own_buckets(d, now, l, specs);

		if (n < 0)
			return n;
		/* Append the rule's bucket, so that the others keep their places and so their
		 * levels. */
		if (rate != NO_RULE)
			specs[n++] = bucket(d, l, rate);
		b->knobs[b->n_knobs++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = specs,
			.n_buckets = (uint32_t)n};
	}
	if (l->scale != scale)
		b->knobs[b->n_knobs++] = (struct weir_knob){.node = l->node,
			.kind = WEIR_KNOB_WEIGHT,
			.value = fmin(fmax(l->share * scale, WEIGHT_MIN), WEIGHT_MAX)};
	b->to[b->n].leaf = l;
	b->to[b->n].rate = rate;
	b->to[b->n++].scale = scale;
	return b->n == BATCH ? batch_set(d, now, b) : 0;
}

static double scale_of(const struct adaptbf_gate *d, const struct lend_rule *r)
{
	if (d->mode != ADAPTBF_GATE_HOLD || !r->active || r->initial == 0 || r->tokens == 0)
		return 1;
	return (double)r->tokens / (double)r->initial;
}

/* Return the rate as the gate counts and stores it. */
static double rate_of(const struct adaptbf_gate *d, const struct lend_rule *r)
{
	return r->active ? floor(r->rate * lend_token_size(d->unit) * 1024) / 1024 : NO_RULE;
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

static int gate_apply(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	struct adaptbf_gate *d = driver;
	struct batch b;
	int r = 0;

	b.n = b.n_knobs = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct leaf *l = find(d, rules[i].id);

		if (l)
			r = turn(d, now, l, rate_of(d, &rules[i]), scale_of(d, &rules[i]), &b);
	}
	return r ? r : batch_set(d, now, &b);
}

const struct lend_driver_ops adaptbf_gate_ops = {
	.name = "gate",
	.jobs = gate_jobs,
	.totals = gate_totals,
	.apply = gate_apply,
};
