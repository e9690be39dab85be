/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slo: latencies of tenants with an slo, and tenants whose requests have waited long.
 *
 * METHOD  When latencies leave the ring (serve/resource/total.c) those of tenants with an slo are
 *         also put into a batch (control/slo.h). Once a second the main thread takes the batches;
 *         it has the windows, since a tenant may use several resources. The same pass finds
 *         requests that have waited at the gate for half of the time after which clients give up,
 *         and logs it once, until the tenant waits less than a quarter of it.
 * COST    A latency: one test if no tenant has an slo. A pass: O(clients, if requests
 *         wait, + tenants with an slo that were active since the last).
 */
#include "serve/resource/impl.h"
#include "serve/loop/log.h"
#include <stdlib.h>

struct resource_slo {            /* of one tenant */
	struct slo_batch *batch; /* NULL: nothing was recorded yet */
	struct resource_slo *next;
	weir_time bound, oldest_wait;
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
	for (size_t i = 0; s && i < s->n; i++)
		free(s->of[i].batch);
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
}

/* ---- latencies */

void resource_slo_record(struct resource *r, weir_node node, weir_time latency)
{
	uint32_t at = r->counts[node].slo;
	struct resource_slo *e;

	if (!at)
		return;
	e = &r->slos->of[at - 1];
	if (!e->batch && !(e->batch = calloc(1, sizeof(*e->batch))))
		return;
	slo_record(e->batch, latency, e->bound);
	activate(r->slos, e);
}

/* ---- waits */

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

/* Return how long the oldest of its tenant's requests has waited at the gate. */
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
	} else if (wait < timeout / 4) {
		n->late = false;
	}
	return wait;
}

static void look_at_waits(struct resource *r)
{
	bool late = false;

	if (!r->gate || r->shadow || !r->policy || (!r->queued && !r->late))
		return;
	for (const struct client *c = r->clients; c; c = c->next) {
		const struct resource_count *n = &r->counts[c->node];
		weir_time wait = c->tenant >= 0 ? look_at(r, c) : 0;

		late |= n->late;
		if (!n->slo || !wait)
			continue;
		r->slos->of[n->slo - 1].oldest_wait = wait;
		activate(r->slos, &r->slos->of[n->slo - 1]);
	}
	r->late = late;
}

/* ---- the look */

bool resource_watch(struct resource *r, resource_watch_fn *fn, void *arg)
{
	struct resource_slo *e, *next;

	resource_policy_now(r);
	resource_drain(r);
	look_at_waits(r);
	for (e = r->slos ? r->slos->active : NULL; e; e = next) {
		next = e->next;
		e->active = false;
		fn(arg, e->tenant, e->batch, e->oldest_wait);
		e->oldest_wait = 0;
		if (e->batch)
			*e->batch = (struct slo_batch){0};
	}
	if (r->slos)
		r->slos->active = NULL;
	return resource_busy(r) || r->late;
}
