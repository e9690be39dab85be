/* SPDX-License-Identifier: BSD-3-Clause */
/* json: a plan as an object, and as the file that a gateway takes. */
#include "plan/planning.h"
#include <math.h>
#include <stdlib.h>

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *hop_json(const struct planning *p, uint32_t i, uint32_t k)
{
	const struct plan_hop *h = &p->tenants[i].hop[k];
	const struct planning_stage *s = &p->stage[h->stage];
	json_t *pairs = json_array();

	for (unsigned n = 0; n < h->n; n++)
		json_array_append_new(pairs, json_pack("[f, f]", h->pair[n].rate, h->pair[n].size));
	return json_pack("{s:s, s:s, s:i, s:o}", "name", s->name, "unit",
		s->link ? "bytes" : "time", "priority", (int)plan_hop(&p->plan, i, k)->priority,
		"buckets", pairs);
}

/* A tenant as in the plan's file. */
static json_t *tenant_json(const struct planning *p, uint32_t i)
{
	const struct weir_tenant *t = planning_tenant(p, i);
	json_t *stages = json_array();

	for (uint32_t k = 0; k < p->tenants[i].n_hops; k++)
		json_array_append_new(stages, hop_json(p, i, k));
	return json_pack("{s:s, s:{s:f, s:f}, s:o, s:o}", "name", t->path, "slo", "percentile",
		t->slo_percentile, "latency", p->tenants[i].slo, "bound",
		number(meister_latency(&p->plan.system, i)), "stages", stages);
}

json_t *planning_file(const struct planning *p, const char *made)
{
	json_t *profiles = json_object(), *tenants = json_array();
	json_t *file = json_pack("{s:i, s:s, s:o, s:s, s:o}", "version", 1, "policy", p->digest,
		"profiles", profiles, "made", made, "tenants", tenants);

	for (uint32_t i = 0; file && i < p->in.n_stages; i++)
		if (p->stage[i].digest[0])
			json_object_set_new(
				profiles, p->stage[i].name, json_string(p->stage[i].digest));
	for (uint32_t i = 0; file && i < p->in.n_tenants; i++)
		if (json_array_append_new(tenants, tenant_json(p, i)) < 0) {
			json_decref(file);
			return NULL;
		}
	return file;
}

/* ---- with what explains it */

static json_t *parts_json(const struct planning *p, uint32_t i)
{
	struct plan_parts parts = {.others = calloc(p->in.n_tenants + 1, sizeof(*parts.others))};
	json_t *others = json_object(), *out = NULL;

	if (parts.others && plan_explain(&p->plan, i, &parts) == 0) {
		for (uint32_t k = 0; k < p->in.n_tenants; k++)
			if (parts.others[k] > 0)
				json_object_set_new(others, planning_tenant(p, k)->path,
					json_real(parts.others[k]));
		out = json_pack("{s:f, s:f, s:f, s:O}", "own", parts.own, "blocking",
			parts.blocking, "inside", parts.inside, "others", others);
	}
	json_decref(others);
	free(parts.others);
	return out;
}

static json_t *replayed_json(const struct replay_result *r)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "latency", number(r->at), "low",
		number(r->low), "high", number(r->high), "next", number(r->next), "max",
		number(r->max), "requests", (json_int_t)r->requests);
}

/* An answer to new tenants explains those, and the tenants that are late: the parts of all are n² numbers. */
static bool is_explained(const struct planning *p, uint32_t i)
{
	return p->first_new == p->policy->n_tenants || p->tenant[i].tenant >= p->first_new ||
	       !planning_holds(p, i);
}

/* Add loss, load and bound of each stage, and the parts of the bound. */
static json_t *tenant_all(const struct planning *p, uint32_t i)
{
	json_t *out = tenant_json(p, i), *stages = json_object_get(out, "stages");
	double miss = planning_miss(p, i);

	for (uint32_t k = 0; k < p->tenants[i].n_hops; k++) {
		const struct plan_hop *h = &p->tenants[i].hop[k];
		json_t *to = json_array_get(stages, k);

		json_object_set_new(to, "load", number(h->load));
		json_object_set_new(to, "loss", number(h->loss));
		json_object_set_new(to, "bound", number(plan_hop(&p->plan, i, k)->bound));
	}
	json_object_set_new(out, "met", json_boolean(planning_holds(p, i)));
	if (p->replayed)
		json_object_set_new(out, "replayed", replayed_json(&p->replayed[i]));
	json_object_set_new(out, "margin", number(-miss));
	json_object_set_new(out, "requests", json_integer((json_int_t)p->tenant[i].requests));
	json_object_set_new(out, "too_short", json_boolean(p->tenant[i].too_short));
	json_object_set_new(out, "held_by",
		p->tenant[i].held ? json_string(p->policy->tenants[p->tenant[i].held_by].path)
				  : json_null());
	json_object_set_new(out, "new", json_boolean(p->tenant[i].tenant >= p->first_new));
	if (isfinite(miss) && is_explained(p, i))
		json_object_set_new(out, "waits", parts_json(p, i));
	return out;
}

static json_t *stage_all(const struct planning *p, uint32_t i)
{
	const struct planning_stage *s = &p->stage[i];

	return json_pack("{s:s, s:f, s:f, s:f, s:s?, s:b, s:f, s:b}", "name", s->name, "load",
		plan_load(&p->in, i), "depth", s->depth, "largest", p->stages[i].largest,
		"largest_of", s->largest_of, "assumed", s->assumed, "taken",
		s->link ? plan_load(&p->in, i) : s->taken, "mins_fit", !planning_crowded(p, i));
}

static void remedy(json_t *list, const char *what, const char *name, double value)
{
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:f}", "change", what, "of", name, "to", value));
}

static json_t *remedies_json(const struct planning *p, const struct planning_remedies *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		const char *name = planning_tenant(p, i)->path;

		if (r->slo[i] > 0)
			remedy(list, "slo", name, r->slo[i]);
		if (r->rate[i] > 0)
			remedy(list, "rate", name, r->rate[i]);
		if (r->without[i])
			json_array_append_new(
				list, json_pack("{s:s, s:s}", "change", "without", "of", name));
	}
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (r->depth[i] > 0)
			remedy(list, "depth", p->stage[i].name, r->depth[i]);
	return list;
}

json_t *planning_json(const struct planning *p, const struct planning_remedies *r)
{
	static const char *const found[] = {NULL, "greedy", "anneal"};
	json_t *tenants = json_array(), *unknown = json_array(), *stages = json_array();
	json_t *out = json_pack("{s:b, s:s, s:s?, s:o, s:o, s:o}", "feasible", planning_feasible(p),
		"admit_by", p->by_replay ? "replay" : "bound", "found", found[p->plan.found],
		"tenants", tenants, "unknown", unknown, "stages", stages);

	for (uint32_t i = 0; out && i < p->in.n_tenants; i++)
		json_array_append_new(tenants, tenant_all(p, i));
	for (size_t i = 0; out && i < p->n_unknown; i++)
		json_array_append_new(unknown, json_string(p->policy->tenants[p->unknown[i]].path));
	for (uint32_t i = 0; out && i < p->in.n_stages; i++)
		if (p->stage[i].used)
			json_array_append_new(stages, stage_all(p, i));
	if (out && r)
		json_object_set_new(out, "remedies", remedies_json(p, r));
	return out;
}
