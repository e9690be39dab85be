/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway-divide: a tenant's max and min hold in total over all its resources: each resource's gate has
 * a part of them, by what is wanted there (ctl/divide).
 *
 * METHOD  Every 10 ms the main thread posts a task to each resource's thread, which leaves there what
 *         every tenant wants and posts it back. When all are back (or at the next tick, without those
 *         that are late) the parts are computed and the resources whose parts change are told, again by
 *         a post each; when they say that it is done, what was lowered is free and raises the others.
 *         Up to three such steps a tick: new demand has its part after about a tick. Nothing locks
 *         and nobody waits: a task and its memory belong to one thread at a time.
 *         The clock runs only while it matters: a tenant with a max or min is connected to two or more
 *         resources, or somebody came within the last second. It goes to 100 ms when all are idle, and
 *         then nobody is asked until somebody's resource has seen a request or a client.
 * SYMBOLS Everything is in parts of the tenant's limit, 0 … 1. A demand is the most of what is wanted
 *         in requests and in bytes per second, each over its limit; it falls by a fifth a tick at most,
 *         so that one quiet tick changes little. Where the max holds somebody right now the
 *         demand is at least twice the part: estimates of cost may be off, waiting is certain.
 */
#include "ctl/divide.h"
#include "port/gateway-impl.h"
#include "port/log.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TICK      (10 * WEIR_MS)
#define TICK_IDLE (100 * WEIR_MS)
#define AWAKE     WEIR_SEC /* after somebody came: handshakes are over by then */
#define STEPS     3        /* a tick: lower, raise, and what came between */
#define FALL      0.8      /* of a demand, a tick */
#define QUIET     5        /* ticks with nothing to do: then the clock stops */

struct seat { /* one resource's; while `away` the thread's that has the task */
	struct loop_task there, back;
	struct gateway_divide *divide;
	struct gateway_resource *resource;
	bool away;
	bool collect, apply;            /* what the task does */
	unsigned serial;                /* of the table with which it was sent */
	size_t n;                       /* tenants */
	double *part;                   /* of the table, one a tenant: to be applied */
	struct resource_demand *demand; /* of the table: collected */
	weir_time at, before;           /* when it was collected, and the time before */
	int rc;
};

struct table { /* of one policy */
	const struct weir_policy *policy;
	size_t n, seats;
	struct weir_bounds *bounds;
	bool *divided;             /* a tenant: has a max, or a leaf's min */
	bool *settled;             /* a tenant: nobody is there, and it has its parts for that */
	struct divide_gate *gates; /* [tenant × seats + seat] */
	double *parts;             /* [seat × n + tenant] */
	struct resource_demand *demands;
};

struct gateway_divide {
	struct gateway *gateway;
	struct table *now, *next; /* in force; being put there */
	struct seat *seats;
	size_t n_seats, n_away;
	unsigned serial, steps;
	struct loop_timer timer;
	weir_time awake;   /* until then it ticks whatever it sees */
	bool changed;      /* in this tick */
	unsigned quiet;    /* ticks since something changed, or there was something to divide */
	uint64_t activity; /* of all resources, when they were last asked */
};

/* ---- tables */

static void table_free(struct table *t)
{
	if (!t)
		return;
	free(t->bounds);
	free(t->divided);
	free(t->settled);
	free(t->gates);
	free(t->parts);
	free(t->demands);
	free(t);
}

static struct divide_gate *gates_of(const struct table *t, size_t tenant)
{
	return &t->gates[tenant * t->seats];
}

static bool is_divided(const struct table *t, size_t i)
{
	const struct weir_tenant *of = &t->policy->tenants[i];
	bool min = false;

	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		min |= t->bounds[i].min[s] > 0;
	/* In a cluster its controller divides. */
	return !t->policy->cluster.n_servers && (of->n_max || (min && of->first_child < 0));
}

static struct table *table_new(const struct weir_policy *p, size_t seats)
{
	struct table *t = calloc(1, sizeof(*t));
	size_t n = p->n_tenants;

	if (!t)
		return NULL;
	t->policy = p;
	t->n = n;
	t->seats = seats;
	t->bounds = calloc(n + 1, sizeof(*t->bounds));
	t->divided = calloc(n + 1, sizeof(*t->divided));
	t->settled = calloc(n + 1, sizeof(*t->settled));
	t->gates = calloc(n * seats + 1, sizeof(*t->gates));
	t->parts = calloc(n * seats + 1, sizeof(*t->parts));
	t->demands = calloc(n * seats + 1, sizeof(*t->demands));
	if (!t->bounds || !t->divided || !t->settled || !t->gates || !t->parts || !t->demands ||
		weir_policy_bounds(p, t->bounds) < 0) {
		table_free(t);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		t->divided[i] = is_divided(t, i);
		divide_start(1, gates_of(t, i), seats);
	}
	return t;
}

/* A tenant that stays goes on with its parts. What was told is done before a swap is. */
static void table_inherit(struct table *t, const struct table *old)
{
	for (size_t i = 0; i < t->n; i++) {
		int was = weir_policy_find(old->policy, t->policy->tenants[i].path);
		struct divide_gate *to = gates_of(t, i);

		if (was < 0 || !old->divided[was] || !t->divided[i])
			continue;
		memcpy(to, gates_of(old, (size_t)was), t->seats * sizeof(*to));
		for (size_t k = 0; k < t->seats; k++)
			to[k].applied = to[k].told;
	}
}

static double *parts_for(struct table *t, size_t seat)
{
	double *part = &t->parts[seat * t->n];

	for (size_t i = 0; i < t->n; i++)
		part[i] = t->divided[i] ? gates_of(t, i)[seat].told : 1;
	return part;
}

/* ---- the task, on the resource's thread */

static void seat_back(struct loop_task *task);

static void seat_there(struct loop_task *task)
{
	struct seat *s = (struct seat *)(void *)((char *)task - offsetof(struct seat, there));
	struct resource *r = s->resource->resource;

	s->rc = s->apply ? resource_divide(r, s->part, s->part, s->n) : 0;
	if (s->collect) {
		resource_demand(r, s->demand, s->n);
		s->before = s->at;
		s->at = loop_now(s->resource->worker->loop);
	}
	loop_post(s->divide->gateway->loop, &s->back);
}

static void send(struct gateway_divide *d, struct seat *s, bool collect, bool apply)
{
	size_t seat = (size_t)(s - d->seats);

	s->collect = collect;
	s->apply = apply;
	s->serial = d->serial;
	s->n = d->now->n;
	s->part = apply ? parts_for(d->now, seat) : NULL;
	s->demand = &d->now->demands[seat * d->now->n];
	s->away = true;
	d->n_away++;
	loop_post(s->resource->worker->loop, &s->there);
}

/* ---- what is wanted */

static double over(double rate, double limit)
{
	return limit > 0 && isfinite(limit) ? rate / limit : 0;
}

/* In parts of the tenant's max, or of its min if it has no max. */
static double part_wanted(const struct table *t, size_t i, double requests, double bytes)
{
	const struct weir_tenant *of = &t->policy->tenants[i];
	double most = 0;

	for (unsigned k = 0; k < of->n_max; k++)
		most = fmax(most, over(of->max[k].unit == WEIR_UNIT_BYTES ? bytes : requests,
					  of->max[k].rate));
	for (unsigned s = 0; s < WEIR_LIMITS && !of->n_max; s++)
		most = fmax(most,
			over(s / 3 == WEIR_UNIT_BYTES ? bytes : requests, t->bounds[i].min[s]));
	return fmin(most, 1);
}

static void take_demand(struct gateway_divide *d, const struct seat *s)
{
	struct table *t = d->now;
	size_t seat = (size_t)(s - d->seats);
	double span = (double)(s->at - s->before) / WEIR_SEC;

	for (size_t i = 0; i < t->n; i++) {
		const struct resource_demand *in = &s->demand[i];
		struct divide_gate *g = &gates_of(t, i)[seat];
		double now =
			span > 0 ? part_wanted(t, i, in->requests / span, in->bytes / span) : 0;

		if (!t->divided[i])
			continue;
		if (in->held)
			now = fmax(now, fmin(2 * g->applied, 1));
		g->present = in->clients > 0;
		/* Who left wants nothing; in the end so does who is quiet. */
		g->demand = g->present ? fmax(now, g->demand * FALL) : now;
		if (g->demand < 1e-6)
			g->demand = 0;
	}
}

static void take_applied(struct gateway_divide *d, const struct seat *s)
{
	size_t seat = (size_t)(s - d->seats);

	if (s->rc < 0)
		log_event(LOG_LEVEL_WARNING, "divide", "resource", s->resource->name, "why",
			strerror(-s->rc), NULL);
	for (size_t i = 0; i < d->now->n; i++) {
		struct divide_gate *g = &gates_of(d->now, i)[seat];

		if (s->rc == 0)
			g->applied = g->told;
		else
			g->told = g->applied;
	}
}

/* ---- steps */

/* One tenant's. true: somebody is to be told. */
static bool step_tenant(struct gateway_divide *d, size_t i)
{
	struct table *t = d->now;
	struct divide_gate *g = gates_of(t, i);
	bool wanted = false, told;

	for (size_t k = 0; k < t->seats; k++) {
		g[k].busy = d->seats[k].away;
		wanted |= g[k].present || g[k].demand > 0 || g[k].busy;
	}
	if (!wanted && t->settled[i])
		return false;
	told = divide_step(1, g, t->seats);
	t->settled[i] = !wanted && !told;
	return told;
}

static void step(struct gateway_divide *d)
{
	struct table *t = d->now;
	bool told = false;

	if (d->steps == 0)
		return;
	d->steps--;
	for (size_t i = 0; i < t->n; i++)
		if (t->divided[i])
			told |= step_tenant(d, i);
	d->changed |= told;
	for (size_t k = 0; told && k < t->seats; k++) {
		bool differs = false;

		for (size_t i = 0; i < t->n; i++)
			differs |= gates_of(t, i)[k].told != gates_of(t, i)[k].applied;
		if (differs && !d->seats[k].away)
			send(d, &d->seats[k], false, true);
	}
}

static void seat_back(struct loop_task *task)
{
	struct seat *s = (struct seat *)(void *)((char *)task - offsetof(struct seat, back));
	struct gateway_divide *d = s->divide;

	s->away = false;
	d->n_away--;
	if (s->serial != d->serial)
		return; /* of another policy */
	if (s->apply)
		take_applied(d, s);
	if (s->collect)
		take_demand(d, s);
	if (d->n_away == 0)
		step(d);
}

/* ---- the clock */

/* How many tenants have something to divide; *ret_idle: none of them wants anything. */
static size_t count_shared(const struct table *t, bool *ret_idle)
{
	size_t shared = 0;

	*ret_idle = true;
	for (size_t i = 0; i < t->n; i++) {
		const struct divide_gate *g = gates_of(t, i);
		size_t present = 0;
		double demand = 0;

		for (size_t k = 0; k < t->seats && t->divided[i]; k++) {
			present += g[k].present;
			demand += g[k].demand;
		}
		shared += present > 1;
		if (present > 1 && demand > 0)
			*ret_idle = false;
	}
	return shared;
}

/* Has nothing come or gone since all were last asked? */
static bool unchanged(struct gateway_divide *d)
{
	uint64_t before = d->activity;

	d->activity = 0;
	for (size_t k = 0; k < d->n_seats; k++)
		d->activity += resource_activity(d->seats[k].resource->resource);
	return d->activity == before;
}

static void tick(struct loop_timer *timer, weir_time now)
{
	struct gateway_divide *d =
		(struct gateway_divide *)(void *)((char *)timer -
						  offsetof(struct gateway_divide, timer));
	bool idle, late = d->n_away > 0, asleep;
	size_t shared = count_shared(d->now, &idle);

	d->quiet = d->changed || shared || late ? 0 : d->quiet + 1;
	if (d->quiet > QUIET && now > d->awake)
		return; /* until somebody comes */
	asleep = shared && idle && now > d->awake;
	loop_set(d->gateway->loop, &d->timer, now + (asleep ? TICK_IDLE : TICK));
	if (unchanged(d) && asleep && !d->changed && !late)
		return;
	d->changed = false;
	d->steps = STEPS;
	if (late)
		step(d);
	for (size_t k = 0; k < d->n_seats; k++)
		if (!d->seats[k].away)
			send(d, &d->seats[k], true, false);
}

void gateway_divide_wake(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d)
		return;
	d->awake = loop_clock() + AWAKE;
	/* Not earlier than it would come anyway while it runs: a flood of clients is no faster clock. */
	if (!d->timer.set)
		loop_set(g->loop, &d->timer, loop_clock());
}

/* ---- with the policy */

int gateway_divide_prepare(struct gateway *g, const struct weir_policy *p)
{
	struct gateway_divide *d = g->divide;

	if (!d)
		return 0;
	table_free(d->next);
	d->next = p ? table_new(p, d->n_seats) : NULL;
	if (d->next)
		table_inherit(d->next, d->now);
	return d->next || !p ? 0 : -ENOMEM;
}

int gateway_divide_swapped(
	struct gateway *g, struct gateway_resource *r, const struct weir_policy *p)
{
	struct gateway_divide *d = g->divide;
	struct table *t = !d ? NULL : d->next && d->next->policy == p ? d->next : d->now;
	const double *part;

	if (!t)
		return 0;
	part = parts_for(t, (size_t)(r - g->resources));
	return resource_divide(r->resource, part, part, t->n);
}

void gateway_divide_policy(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d || !d->next)
		return;
	table_free(d->now);
	d->now = d->next;
	d->next = NULL;
	d->serial++;
	gateway_divide_wake(g);
}

/* ---- start and stop */

static int give_parts(void *arg, struct gateway_resource *r)
{
	struct gateway *g = arg;

	return gateway_divide_swapped(g, r, g->policy);
}

int gateway_divide_start(struct gateway *g)
{
	struct gateway_divide *d;

	if (g->n_resources < 2 || g->options.bare)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	g->divide = d;
	d->gateway = g;
	d->timer.due = tick;
	d->seats = calloc(g->n_resources, sizeof(*d->seats));
	d->now = table_new(g->policy, g->n_resources);
	if (!d->seats || !d->now)
		return -ENOMEM;
	d->n_seats = g->n_resources;
	for (size_t i = 0; i < d->n_seats; i++)
		d->seats[i] = (struct seat){.there = {.run = seat_there},
			.back = {.run = seat_back},
			.divide = d,
			.resource = &g->resources[i]};
	return gateway_each(g, give_parts, g, NULL);
}

/* The main loop does not run any more: what the seats posted to it is never looked at. */
void gateway_divide_stop(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d)
		return;
	loop_set(g->loop, &d->timer, WEIR_NEVER);
	if (d->n_away)
		gateway_settle(g);
	table_free(d->now);
	table_free(d->next);
	free(d->seats);
	free(d);
	g->divide = NULL;
}
