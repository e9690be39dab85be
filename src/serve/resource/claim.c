/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: whether tenants keep to the profiles of a plan (control/meister/meter.h): counted as requests arrive, said in the log when
 * it changes.
 */
#include "serve/resource/impl.h"
#include "serve/gateway/snapshot.h"
#include "serve/loop/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resource_claims {
	size_t n;
	struct resource_claim {
		size_t tenant;
		weir_node node;
		struct meister_meter meter;
	} of[]; /* counts[node].claim is the index plus 1 */
};

static bool same(const struct policy_claim *c, const struct meister_meter *m)
{
	return c->n == m->n && memcmp(c->profile, m->pairs, c->n * sizeof(*c->profile)) == 0;
}

/* The profile is the same: keep what was counted. */
static void inherit(struct meister_meter *m, const struct meister_meter *old)
{
	const struct weir_bucket_spec *pairs = m->pairs;

	*m = *old;
	m->pairs = pairs;
}

void resource_claims_swap(struct resource *r)
{
	const struct policy_claim *claims = r->policy_of->part.claims;
	struct resource_claims *old = r->claims, *new = NULL;
	size_t n = 0;

	for (size_t i = 0; claims && i < r->n_nodes; i++)
		n += claims[i].n > 0;
	if (n)
		new = calloc(1, sizeof(*new) + n * sizeof(*new->of));
	for (size_t i = 0; new &&i < r->n_nodes; i++) {
		struct resource_claim *to = &new->of[new->n];
		uint32_t was = r->counts[r->nodes[i]].claim;

		if (!claims[i].n)
			continue;
		new->n++;
		to->tenant = i;
		to->node = r->nodes[i];
		meister_meter_start(&to->meter, claims[i].profile, claims[i].n, r->now);
		if (was && same(&claims[i], &old->of[was - 1].meter))
			inherit(&to->meter, &old->of[was - 1].meter);
	}
	for (size_t i = 0; old && i < old->n; i++)
		r->counts[old->of[i].node].claim = 0;
	for (size_t i = 0; new &&i < new->n; i++)
		r->counts[new->of[i].node].claim = (uint32_t)i + 1;
	free(old);
	r->claims = new;
}

void resource_claim_note(struct resource *r, uint32_t claim, const struct weir_req *q)
{
	struct meister_meter *m = &r->claims->of[claim - 1].meter;

	meister_meter_add(m, r->now, m->pairs->unit == WEIR_UNIT_TIME ? q->time : q->bytes);
}

/* ---- the log */

static void say(const struct resource *r, const struct resource_claim *c, int how)
{
	const struct meister_meter *m = &c->meter;
	char text[120], over[32], pair[64], for_[32];
	double unit = m->pairs->unit == WEIR_UNIT_TIME ? 1e9 : 1;

	weir_units_show_time(m->over, over, sizeof(over));
	snprintf(text, sizeof(text), "sends %.3gx its profile over %s: held to best effort",
		m->excess, m->over ? over : "a moment");
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
		int how = c->meter.since ? meister_meter_tick(&c->meter, r->now) : 0;

		if (how)
			say(r, c, how);
		out |= c->meter.since != 0;
	}
	return out;
}

/* ---- looking */

void resource_claim_look(
	struct resource *r, uint32_t claim, struct snapshot *s, struct snapshot_tenant *to)
{
	struct resource_claim *c = &r->claims->of[claim - 1];
	struct meister_meter *m = &c->meter;
	struct snapshot_claim *v = snapshot_take(s, 1, sizeof(*v));
	double unit = m->pairs->unit == WEIR_UNIT_TIME ? 1e9 : 1;

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
	if (!m->since)
		return;
	v->out_for = r->now - m->since;
	v->excess = m->excess;
	v->over = m->over;
	v->rate = m->pairs[m->broke].rate / unit;
	v->size = m->pairs[m->broke].size / unit;
}
