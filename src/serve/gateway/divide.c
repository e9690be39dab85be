/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: a tenant's max and min hold in total over all its resources: each resource's gate has a
 * part of each limit, by demand (policy/knobs/divide-table.h).
 *
 * METHOD  Every 10 ms the main thread posts a task to each resource's thread, which collects the
 *         demand of every tenant and posts it back. When all are back (or at the next tick, without
 *         late ones) the parts are computed, and each resource whose parts change gets them by
 *         another post; when resources confirm, the lowered parts are free and raise others. Up to
 *         three such steps per tick: new demand has its part after about a tick. There are no locks
 *         and no thread waits: a task and its memory belong to one thread at a time.
 *         The timer runs only while it is needed: a tenant with a max or min is connected to two or
 *         more resources, or a client came within the last second. It slows to 100 ms when all are
 *         idle, and then no resource is asked until one has seen a request or a client.
 */
#include "base/container.h"
#include "policy/knobs/divide-table.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>

#define TICK      (10 * WEIR_MS)
#define TICK_IDLE (100 * WEIR_MS)
#define AWAKE     WEIR_SEC /* after a client came: handshakes are done by then */
#define STEPS     3        /* per tick: lower, raise, and changes meanwhile */
#define QUIET     5        /* ticks with nothing to do: then the clock stops */

struct seat { /* of one resource; while it is away, it belongs to that thread */
	struct loop_task there, back;
	struct gateway_divide *divide;
	struct gateway_resource *resource;
	bool collect, apply;          /* work of the task */
	size_t n, rows;               /* tenants; limits of all of them */
	double *part, *tokens;        /* of the books, one per limit: to be applied */
	struct joint *const *joints;  /* of the books */
	struct divide_demand *demand; /* of the books: collected */
	weir_time at, before;         /* time of the collection, and of the one before */
	int rc;
	struct weir_err err; /* why, if rc < 0 */
};

struct books { /* of one policy and its resources */
	struct divide_table *table;
	double *parts, *tokens;        /* [seat × rows + row] */
	struct divide_demand *demands; /* [seat × tenants + tenant] */
	struct seat *seats;
	bool *away; /* by seat: the task is in flight */
	size_t n;
};

struct gateway_divide {
	struct gateway *gateway;
	struct books *now,
		*next; /* in force; being put there. NULL: there never were two resources */
	size_t n_away;
	unsigned steps;
	struct loop_timer timer;
	weir_time awake;   /* ticks until then in any case */
	bool collected;    /* since the last targets */
	bool paused;       /* the policy is being changed */
	bool changed;      /* in this tick */
	unsigned quiet;    /* ticks since the last change or division */
	uint64_t activity; /* of all resources, at the last collection */
};

/* ---- books */

static void books_free(struct books *b)
{
	if (!b)
		return;
	divide_table_free(b->table);
	free(b->parts);
	free(b->tokens);
	free(b->demands);
	free(b->seats);
	free(b->away);
	free(b);
}

static void seat_there(struct loop_task *task);
static void seat_back(struct loop_task *task);

static struct books *books_new(
	struct gateway_divide *d, const struct weir_policy *p, struct gateway_resource *const *list)
{
	struct books *b = calloc(1, sizeof(*b));
	size_t n = p->n_resources;

	if (!b)
		return NULL;
	b->n = n;
	b->seats = calloc(n, sizeof(*b->seats));
	b->away = calloc(n, sizeof(*b->away));
	b->table = divide_table_new(p, n);
	if (b->table) {
		b->parts = calloc(divide_table_rows(b->table) * n + 1, sizeof(*b->parts));
		b->tokens = calloc(divide_table_rows(b->table) * n + 1, sizeof(*b->tokens));
		b->demands = calloc(p->n_tenants * n + 1, sizeof(*b->demands));
	}
	if (!b->parts || !b->tokens || !b->demands || !b->seats || !b->away) {
		books_free(b);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		b->seats[i] = (struct seat){.there = {.run = seat_there},
			.back = {.run = seat_back},
			.divide = d,
			.resource = list[i]};
	return b;
}

/* Return the seat of a resource; -1: it has none. */
static int seat_of(const struct books *b, const struct gateway_resource *r)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->seats[i].resource == r)
			return (int)i;
	return -1;
}

/* Keep the parts of the resources that stay; old NULL: the one that was entered had all. */
static int books_inherit(struct books *b, const struct books *old)
{
	int *was = calloc(b->n, sizeof(*was));

	if (!was)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++) {
		const struct gateway_resource *r = b->seats[i].resource;

		was[i] = old ? seat_of(old, r) : r->entered ? 0 : -1;
		if (old && was[i] >= 0)
			b->seats[i].at = old->seats[was[i]].at;
	}
	divide_table_inherit(b->table, old ? old->table : NULL, was);
	free(was);
	return 0;
}

static double *parts_for(struct books *b, size_t seat)
{
	double *part = &b->parts[seat * divide_table_rows(b->table)];

	divide_table_parts(b->table, seat, part);
	return part;
}

/* ---- the task, on the resource's thread */

static void seat_there(struct loop_task *task)
{
	struct seat *s = container_of(task, struct seat, there);
	struct resource *r = s->resource->resource;

	s->rc = s->apply ? resource_divide(r, s->part, s->joints, s->tokens, s->rows, &s->err) : 0;
	if (s->collect) {
		resource_demand(r, s->demand, s->n);
		s->before = s->at;
		s->at = loop_now(s->resource->worker->loop);
	}
	loop_post(s->divide->gateway->loop, &s->back);
}

static void send(struct gateway_divide *d, struct seat *s, bool collect, bool apply)
{
	size_t seat = (size_t)(s - d->now->seats);

	s->collect = collect;
	s->apply = apply;
	s->n = divide_table_policy(d->now->table)->n_tenants;
	s->rows = divide_table_rows(d->now->table);
	s->part = apply ? parts_for(d->now, seat) : NULL;
	s->joints = divide_table_joints(d->now->table);
	s->tokens = &d->now->tokens[seat * s->rows];
	if (apply)
		divide_table_tokens(d->now->table, seat, d->now->away, s->tokens);
	s->demand = &d->now->demands[seat * s->n];
	d->now->away[seat] = true;
	d->n_away++;
	loop_post(s->resource->worker->loop, &s->there);
}

/* ---- steps */

static void step(struct gateway_divide *d)
{
	struct divide_table *t = d->now->table;
	bool told;

	if (d->steps == 0)
		return;
	d->steps--;
	if (d->collected)
		divide_table_targets(t);
	d->collected = false;
	told = divide_table_tell(t, d->now->away);
	d->changed |= told;
	for (size_t k = 0; told && k < d->now->n; k++)
		if (!d->now->away[k] && divide_table_differs(t, k))
			send(d, &d->now->seats[k], false, true);
}

static void seat_back(struct loop_task *task)
{
	struct seat *s = container_of(task, struct seat, back);
	struct gateway_divide *d = s->divide;
	size_t seat = (size_t)(s - d->now->seats);

	d->now->away[seat] = false;
	d->n_away--;
	if (s->rc < 0)
		log_event(LOG_LEVEL_WARNING, "divide", "resource", s->resource->name, "why",
			s->err.text, NULL);
	if (s->apply)
		divide_table_confirm(d->now->table, seat, s->rc == 0, s->tokens);
	if (s->collect) {
		divide_table_take(d->now->table, seat, s->demand, s->at - s->before);
		d->collected = true;
	}
	if (d->n_away == 0 && !d->paused)
		step(d);
}

/* ---- the clock */

/* Return true if no request arrived or completed since the last collection. */
static bool unchanged(struct gateway_divide *d)
{
	uint64_t before = d->activity;

	d->activity = 0;
	for (size_t k = 0; k < d->now->n; k++)
		d->activity += resource_activity(d->now->seats[k].resource->resource);
	return d->activity == before;
}

static void tick(struct loop_timer *timer, weir_time now)
{
	struct gateway_divide *d = container_of(timer, struct gateway_divide, timer);
	bool idle, late = d->n_away > 0, asleep;
	size_t shared;

	if (d->paused || !d->now)
		return;
	shared = divide_table_shared(d->now->table, &idle);

	d->quiet = d->changed || shared || late ? 0 : d->quiet + 1;
	if (d->quiet > QUIET && now > d->awake)
		return; /* until a client comes */
	asleep = shared && idle && now > d->awake;
	loop_set(d->gateway->loop, &d->timer, now + (asleep ? TICK_IDLE : TICK));
	if (unchanged(d) && asleep && !d->changed && !late)
		return;
	d->changed = false;
	d->steps = STEPS;
	if (late)
		step(d);
	for (size_t k = 0; k < d->now->n; k++)
		if (!d->now->away[k])
			send(d, &d->now->seats[k], true, false);
}

void gateway_divide_wake(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d || !d->now)
		return;
	d->awake = loop_clock() + AWAKE;
	/* Not earlier than the next tick while it runs: many clients do not make it faster. */
	if (!d->timer.set && !d->paused)
		loop_set(g->loop, &d->timer, loop_clock());
}

bool gateway_divide_pause(struct gateway *g, bool on)
{
	struct gateway_divide *d = g->divide;

	if (!d)
		return true;
	if (d->paused && !on) {
		d->paused = false;
		gateway_divide_wake(g);
	}
	d->paused = on;
	return d->n_away == 0;
}

/* ---- with the policy */

int gateway_divide_prepare(
	struct gateway *g, const struct weir_policy *p, struct gateway_resource *const *list)
{
	struct gateway_divide *d = g->divide;
	struct books *next = NULL;

	if (!d)
		return 0;
	books_free(d->next);
	d->next = NULL;
	if (!p || (!d->now && p->n_resources < 2))
		return 0;
	next = books_new(d, p, list);
	if (next && books_inherit(next, d->now) < 0) {
		books_free(next);
		next = NULL;
	}
	d->next = next;
	return next ? 0 : -ENOMEM;
}

static struct books *books_of(const struct gateway *g, const struct weir_policy *p)
{
	struct gateway_divide *d = g->divide;

	return d && d->next && divide_table_policy(d->next->table) == p ? d->next
	       : d                                                      ? d->now
									: NULL;
}

const double *gateway_divide_rows(
	struct gateway *g, struct gateway_resource *r, const struct weir_policy *p)
{
	struct books *b = books_of(g, p);
	int seat = b && divide_table_policy(b->table) == p ? seat_of(b, r) : -1;

	return seat < 0 ? NULL : parts_for(b, (size_t)seat);
}

int gateway_divide_swapped(struct gateway *g, struct gateway_resource *r,
	const struct weir_policy *p, struct weir_err *err)
{
	struct books *b = books_of(g, p);
	int seat = b ? seat_of(b, r) : -1;

	return seat < 0 ? 0
			: resource_divide(r->resource, parts_for(b, (size_t)seat),
				  divide_table_joints(b->table), NULL, divide_table_rows(b->table),
				  err);
}

void gateway_divide_policy(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d || !d->next)
		return;
	books_free(d->now);
	d->now = d->next;
	d->next = NULL;
	d->activity = 0;
	gateway_divide_wake(g);
}

/* ---- start and stop */

static int give_parts(void *arg, struct gateway_resource *r)
{
	struct gateway *g = arg;

	return gateway_divide_swapped(g, r, g->policy, NULL);
}

int gateway_divide_start(struct gateway *g)
{
	struct gateway_divide *d;

	if (g->options.bare)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	g->divide = d;
	d->gateway = g;
	d->timer.due = tick;
	if (g->n_resources < 2)
		return 0;
	d->now = books_new(d, g->policy, g->resources);
	return d->now ? gateway_each(g, give_parts, g, NULL) : -ENOMEM;
}

/* The main loop does not run any more: tasks that seats posted to it are never run. */
void gateway_divide_spent(struct gateway *g)
{
	const struct books *b = g->divide ? g->divide->now : NULL;
	struct joint *const *joints = b ? divide_table_joints(b->table) : NULL;

	for (size_t row = 0; joints && row < divide_table_rows(b->table); row++)
		if (joints[row])
			joint_spend(joints[row], loop_clock());
}

void gateway_divide_stop(struct gateway *g)
{
	struct gateway_divide *d = g->divide;

	if (!d)
		return;
	loop_set(g->loop, &d->timer, WEIR_NEVER);
	if (d->n_away)
		gateway_settle(g);
	books_free(d->now);
	books_free(d->next);
	free(d);
	g->divide = NULL;
}
