/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slo: latencies of tenants with an slo, and tenants whose requests have waited long.
 *
 * METHOD  When latencies leave the ring (serve/resource/total.c) those of tenants with an slo are
 *         also put into a batch (control/slo.h). Once a second the main thread takes the batches;
 *         it has the windows, since a tenant may use several resources. The same pass asks the
 *         clients of these tenants for requests without a reply, and puts those beyond the bound
 *         into a second batch, which counts until the next pass.
 *         A request that has waited at the gate for half of the time after which clients give up is
 *         logged, once, until its tenant waits less than a quarter of it. late_at is the time of the
 *         next look for such requests: the first at which one may have waited so long. It is never
 *         further away than half of that time while requests wait, so that no new one is missed.
 * COST    A latency: one test if no tenant has an slo. A pass: O(clients and waiting requests of
 *         tenants with an slo). A look: O(clients); none while no request waits.
 */
#include "serve/resource/impl.h"
#include "serve/loop/log.h"
#include <stdlib.h>

/* The least time between two looks: client_timeout over LOOKS, or SOON if that is more. */
#define LOOKS 512
#define SOON  WEIR_MS

struct resource_slo {            /* of one tenant */
	struct slo_batch *batch; /* NULL: nothing was recorded yet */
	struct slo_batch
		*waits; /* of this pass; NULL: no request has waited beyond the bound yet */
	struct resource_slo *next;
	weir_time bound;
	struct site_slo seen; /* for a controller */
	int tenant;
	weir_node node;
	bool active; /* it is in the list */
};

struct resource_slos {
	struct resource_slo *active; /* for the next pass */
	size_t n;
	struct resource_slo of[]; /* counts[node].slo is the index plus 1 */
};

/* ---- a policy */

static void free_all(struct resource_slos *s)
{
	for (size_t i = 0; s && i < s->n; i++) {
		free(s->of[i].batch);
		free(s->of[i].waits);
	}
	free(s);
}

void resource_slo_free(struct resource *r)
{
	free_all(r->slos);
	r->slos = NULL;
}

static bool has_slo(const struct weir_tenant *t)
{
	return t->slo_percentile > 0 && t->first_child < 0;
}

static void activate(struct resource_slos *s, struct resource_slo *e)
{
	if (e->active)
		return;
	e->active = true;
	e->next = s->active;
	s->active = e;
}

/* Keep records that were not taken yet, if they were judged by the same bound. */
static void inherit(struct resource_slos *s, struct resource_slo *e, struct resource_slo *old)
{
	if (old->bound != e->bound)
		return;
	e->seen = old->seen;
	e->batch = old->batch;
	old->batch = NULL;
	if (old->active)
		activate(s, e);
}

void resource_slo_swap(struct resource *r)
{
	const struct weir_policy *p = r->policy;
	struct resource_slos *old = r->slos, *s = NULL;
	size_t n = 0;

	resource_drain(r); /* latencies in the ring belong to the old bounds */
	for (size_t i = 0; i < r->n_nodes; i++)
		n += has_slo(&p->tenants[i]);
	if (n)
		s = calloc(1, sizeof(*s) + n * sizeof(*s->of));
	for (size_t i = 0; s && i < r->n_nodes; i++) {
		struct resource_slo *e = &s->of[s->n];
		uint32_t was = r->counts[r->nodes[i]].slo;

		if (!has_slo(&p->tenants[i]))
			continue;
		*e = (struct resource_slo){
			.bound = p->tenants[i].slo_latency, .tenant = (int)i, .node = r->nodes[i]};
		s->n++;
		if (old && was)
			inherit(s, e, &old->of[was - 1]);
	}
	for (size_t i = 0; old && i < old->n; i++)
		r->counts[old->of[i].node].slo = 0;
	for (size_t i = 0; s && i < s->n; i++)
		r->counts[s->of[i].node].slo = (uint32_t)i + 1;
	free_all(old);
	r->slos = s;
	/* client_timeout may be another one. Requests that were taken back are in the gate soon. */
	r->late_at = r->queued || r->again.first || r->late ? r->now + SOON : WEIR_NEVER;
}

/* ---- latencies */

static bool put_latency(struct slo_batch **to, weir_time latency, weir_time bound)
{
	if (!*to && !(*to = calloc(1, sizeof(**to))))
		return false;
	slo_record(*to, latency, bound);
	return true;
}

void resource_slo_record(struct resource *r, weir_node node, weir_time latency)
{
	uint32_t at = r->counts[node].slo;
	struct resource_slo *e;

	if (!at)
		return;
	e = &r->slos->of[at - 1];
	e->seen.total++;
	e->seen.late += latency > e->bound;
	e->seen.near += (double)latency > SITE_NEAR * (double)e->bound;
	if (put_latency(&e->batch, latency, e->bound))
		activate(r->slos, e);
}

struct site_slo resource_slo_seen(struct resource *r, size_t tenant)
{
	uint32_t at = tenant < r->n_nodes && r->slos ? r->counts[r->nodes[tenant]].slo : 0;

	resource_drain(r);
	return at ? r->slos->of[at - 1].seen : (struct site_slo){0};
}

/* ---- long waits */

static void say_late(const struct resource *r, const struct client *c, weir_time wait,
	const struct weir_gate_stats *st)
{
	static const char *const causes[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};
	char waited[32], timeout[32];

	log_event(LOG_LEVEL_WARNING, "client-timeout-near", "tenant",
		r->policy->tenants[c->tenant].path, "resource", r->name, "wait",
		weir_units_show_time(wait, waited, sizeof(waited)), "client_timeout",
		weir_units_show_time(r->policy->client_timeout, timeout, sizeof(timeout)),
		"waits_for", causes[st->cause], NULL);
}

/* Look at the oldest request of the client's tenant; return when to look again. */
static weir_time look_at(struct resource *r, const struct client *c)
{
	struct resource_count *n = &r->counts[c->node];
	weir_time wait = 0, timeout = r->policy->client_timeout;
	struct weir_gate_stats st = {0};

	if (r->queued && c->in_flight && resource_stats(r, (size_t)c->tenant, &st) == 0 &&
		st.oldest < r->now)
		wait = r->now - st.oldest;
	if (timeout && wait && wait >= timeout / 2 && !n->late) {
		n->late = true;
		say_late(r, c, wait, &st);
	} else if (wait < timeout / 4 || !timeout) {
		n->late = false;
	}
	return r->now + (n->late ? timeout / 4 : timeout / 2 - wait);
}

static bool looks(const struct resource *r)
{
	return r->gate && !r->shadow && r->policy;
}

void resource_late_look(struct resource *r)
{
	weir_time timeout, soon, next;
	bool late = false;

	r->late_at = WEIR_NEVER;
	if (!looks(r) || (!r->queued && !r->late))
		return;
	timeout = r->policy->client_timeout;
	soon = r->now + (timeout / LOOKS > SOON ? timeout / LOOKS : SOON);
	next = r->now + timeout / 2;
	for (const struct client *c = r->clients; c; c = c->next) {
		weir_time at = c->tenant >= 0 ? look_at(r, c) : WEIR_NEVER;

		next = at < next ? at : next;
		late |= r->counts[c->node].late;
	}
	r->late = late;
	if (timeout && (r->queued || late))
		r->late_at = next > soon ? next : soon;
}

void resource_late_join(struct resource *r, const struct client *c)
{
	struct resource_count *n = &r->counts[c->node];
	struct weir_gate_stats st;

	if (n->late && c->tenant >= 0 && resource_stats(r, (size_t)c->tenant, &st) == 0)
		n->late = st.queued > 0;
}

void resource_late_set(struct resource *r)
{
	if (looks(r) && r->policy->client_timeout)
		r->late_at = r->now + r->policy->client_timeout / 2;
}

/* ---- the pass */

struct waits {
	struct resource *resource;
	struct resource_slo *slo;
	bool any;
};

static void add_wait(void *arg, weir_time received)
{
	struct waits *w = arg;
	struct resource_slo *e = w->slo;
	weir_time wait = w->resource->now - received;

	w->any = true;
	if (wait > e->bound && put_latency(&e->waits, wait, e->bound))
		activate(w->resource->slos, e);
}

/* Collect requests without a reply of tenants with an slo; return true if there are any. */
static bool collect_waits(struct resource *r)
{
	struct waits w = {.resource = r};

	for (const struct client *c = r->slos && !r->shadow ? r->clients : NULL; c; c = c->next) {
		uint32_t at = r->counts[c->node].slo;

		if (!at || !c->waiting)
			continue;
		w.slo = &r->slos->of[at - 1];
		c->waiting(c, add_wait, &w);
	}
	return w.any;
}

static void empty(struct slo_batch *b)
{
	if (b && b->total)
		*b = (struct slo_batch){0};
}

bool resource_watch(struct resource *r, resource_watch_fn *fn, void *arg)
{
	struct resource_slo *e, *next;
	bool waiting;

	resource_policy_now(r);
	resource_drain(r);
	waiting = collect_waits(r);
	for (e = r->slos ? r->slos->active : NULL; e; e = next) {
		next = e->next;
		e->active = false;
		fn(arg, e->tenant, e->batch, e->waits);
		empty(e->batch);
		empty(e->waits);
	}
	if (r->slos)
		r->slos->active = NULL;
	return resource_claims_tick(r) || resource_busy(r) || waiting;
}
