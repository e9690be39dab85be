/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: whether tenants keep to the profiles of a plan (control/meister/meter.h): counted as requests arrive, said in the log when
 * it changes.
 */
#include "serve/resource/impl.h"
#include "serve/snapshot/snapshot.h"
#include "serve/loop/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request that is best effort for less than this part of its slo is not worth a word: arrivals jitter. */
#define SLACK 10

struct resource_claims {
	size_t n;
	struct meister_meter *meters; /* memory that is used by the first request of each */
	struct resource_claim {
		size_t tenant;
		weir_node node;
		bool started; /* its meter is */
	} of[];               /* counts[node].claim is the index plus 1 */
};

static struct resource_claims *claims_new(size_t n)
{
	struct resource_claims *c = calloc(1, sizeof(*c) + n * sizeof(*c->of));

	if (c && !(c->meters = calloc(n, sizeof(*c->meters)))) {
		free(c);
		return NULL;
	}
	return c;
}

void resource_claims_free(struct resource_claims *c)
{
	if (c)
		free(c->meters);
	free(c);
}

/* Keep what was counted if the profile is the same. */
static void inherit(struct resource_claims *to, const struct policy_claim *claim,
	const struct resource_claims *from, uint32_t was)
{
	const struct meister_meter *old = &from->meters[was];
	struct meister_meter *m = &to->meters[to->n];

	if (!from->of[was].started || claim->n != old->n ||
		memcmp(claim->profile, old->pairs, old->n * sizeof(*old->pairs)) != 0)
		return;
	*m = *old;
	m->pairs = claim->profile;
	to->of[to->n].started = true;
}

void resource_claims_swap(struct resource *r)
{
	const struct policy_claim *claims = r->policy_of->part.claims;
	struct resource_claims *old = r->claims, *new = NULL;
	size_t n = 0;

	for (size_t i = 0; claims && i < r->n_nodes; i++)
		n += claims[i].n > 0;
	if (n)
		new = claims_new(n); /* without memory they are not watched */
	for (size_t i = 0; new &&i < r->n_nodes; i++) {
		uint32_t was = r->counts[r->nodes[i]].claim;

		if (!claims[i].n)
			continue;
		new->of[new->n] = (struct resource_claim){.tenant = i, .node = r->nodes[i]};
		if (was)
			inherit(new, &claims[i], old, was - 1);
		new->n++;
	}
	for (size_t i = 0; old && i < old->n; i++)
		r->counts[old->of[i].node].claim = 0;
	for (size_t i = 0; new &&i < new->n; i++)
		r->counts[new->of[i].node].claim = (uint32_t)i + 1;
	resource_claims_free(old);
	r->claims = new;
}

void resource_claim_note(struct resource *r, uint32_t claim, const struct weir_req *q)
{
	struct resource_claim *c = &r->claims->of[claim - 1];
	struct meister_meter *m = &r->claims->meters[claim - 1];
	const struct policy_claim *of = &r->policy_of->part.claims[c->tenant];

	if (!c->started)
		meister_meter_start(m, of->profile, of->n,
			r->policy->tenants[c->tenant].slo_latency / SLACK, r->now);
	c->started = true;
	meister_meter_add(m, r->now, m->pairs->unit == WEIR_UNIT_TIME ? q->time : q->bytes);
}

/* ---- the log */

static void say(const struct resource *r, const struct resource_claim *c,
	const struct meister_meter *m, int how)
{
	char text[120], over[32], pair[64], for_[32];
	double unit = m->pairs->unit == WEIR_UNIT_TIME ? 1e9 : 1;

	weir_units_show_time(m->over, over, sizeof(over));
	snprintf(text, sizeof(text), "sends %.3gx its profile %s%s: held to best effort", m->excess,
		m->over ? "over " : "at ", m->over ? over : "once");
	snprintf(pair, sizeof(pair), "%.4g/s %.4g", m->pairs[m->broke].rate / unit,
		m->pairs[m->broke].size / unit);
	if (how > 0)
		log_event(LOG_LEVEL_WARNING, "out-of-profile", "tenant",
			r->policy->tenants[c->tenant].path, "resource", r->name, "why", text,
			"broke", pair, NULL);
	else
		log_event(LOG_LEVEL_INFO, "in-profile", "tenant",
			r->policy->tenants[c->tenant].path, "resource", r->name, "was", text,
			"calm", weir_units_show_time(METER_CALM, for_, sizeof(for_)), NULL);
}

bool resource_claims_tick(struct resource *r)
{
	bool out = false;

	for (size_t i = 0; r->claims && i < r->claims->n; i++) {
		struct resource_claim *c = &r->claims->of[i];
		struct meister_meter *m = &r->claims->meters[i];
		int how = c->started && m->since ? meister_meter_tick(m, r->now) : 0;

		if (how)
			say(r, c, m, how);
		out |= c->started && m->since;
	}
	return out;
}

/* ---- looking */

void resource_claim_look(
	struct resource *r, uint32_t claim, struct snapshot *s, struct snapshot_tenant *to)
{
	struct resource_claim *c = &r->claims->of[claim - 1];
	const struct meister_meter *m = &r->claims->meters[claim - 1];
	struct snapshot_claim *v = snapshot_take(s, 1, sizeof(*v));
	double unit;

	if (!v)
		return;
	v->next = to->claims;
	to->claims = v;
	for (size_t i = 0; !v->resource && i < s->n_resources; i++)
		if (strcmp(s->resources[i].name, r->name) == 0)
			v->resource = s->resources[i].name;
	v->priority = r->policy_of->part.claims[c->tenant].priority;
	v->in = m->in;
	v->out = m->out;
	if (!c->started || !m->since)
		return;
	unit = m->pairs->unit == WEIR_UNIT_TIME ? 1e9 : 1;
	v->out_for = r->now - m->since;
	v->excess = m->excess;
	v->over = m->over;
	v->rate = m->pairs[m->broke].rate / unit;
	v->size = m->pairs[m->broke].size / unit;
}
