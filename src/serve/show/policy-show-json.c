/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-show-json: a policy as JSON; a tenant and an export are a line each. */
#include "policy/by-size.h"
#include "policy/override/override.h"
#include "serve/show/value.h"
#include "serve/show/policy-show.h"
#include <string.h>

#define PRECISION JSON_REAL_PRECISION(12)

/* ---- tenants */

static json_t *json_slot(unsigned slot, double rate)
{
	return json_pack("{s:s, s:s, s:o}", "unit", policy_show_units[slot / 3], "ops",
		policy_show_ops[slot % 3], "rate", show_real(rate));
}

static json_t *json_rates(const double *slots, bool (*is_shown)(const double *, unsigned))
{
	json_t *list = json_array();

	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (is_shown(slots, s))
			json_array_append_new(list, json_slot(s, slots[s]));
	return list;
}

static json_t *json_bursts(const struct weir_tenant *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n_max; i++) {
		const struct weir_limit *max = &t->max[i];
		json_t *one;

		if (max->burst_rate <= 0)
			continue;
		one = json_slot(weir_limit_slot(max->unit, max->ops), max->burst_rate);
		json_object_set_new(one, "seconds", show_seconds((double)max->burst_for));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *json_matches(const struct weir_tenant *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n_match; i++) {
		const struct weir_match *m = &t->match[i];

		json_array_append_new(list,
			json_pack("{s:s*, s:s*, s:s*, s:s*, s:s*}", "export", m->export_, "client",
				m->client, "uid", m->uid, "tls", m->tls, "path", m->path));
	}
	return list;
}

/* NULL: none. */
static json_t *json_by_size(const struct weir_by_size *by_size, unsigned n)
{
	json_t *list = n ? json_array() : NULL;
	char text[POLICY_SIZE_TEXT];

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, json_string(policy_size_show(&by_size[i], text)));
	return list;
}

static json_t *json_each(const struct weir_each *e)
{
	return json_pack("{s:s, s:o, s:I, s:I, s:s*}", "name", e->name, "expire_after",
		show_seconds((double)e->expire_after), "max_tenants", (json_int_t)e->max_tenants,
		"tenants", (json_int_t)e->n_made, "class", e->leaf.class_);
}

static json_t *json_slo(const struct weir_tenant *t)
{
	return t->slo_percentile > 0
		       ? json_pack("{s:o, s:o}", "percentile", show_real(t->slo_percentile),
				 "seconds", show_seconds((double)t->slo_latency))
		       : json_null();
}

static json_t *json_tenant(const struct policy_show *s, size_t i)
{
	const struct weir_tenant *t = &s->policy->tenants[i];
	bool made = t->made || t->min_off;

	return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s*, s:o*, s:o*, "
			 "s:o*, s:o*, s:o*, s:b}",
		"path", show_text(t->path), "leaf", t->first_child < 0, "weight",
		show_real(t->weight), "share", show_real(s->of_parent[i]), "of_all",
		show_real(s->of_all[i]), "min", json_rates(s->bounds[i].min, policy_show_is_min),
		"max", json_rates(s->bounds[i].max, policy_show_is_max), "burst", json_bursts(t),
		"slo", json_slo(t), "match", json_matches(t), "class", t->class_, "min_by_size",
		json_by_size(t->min_by_size, t->n_min_by_size), "max_by_size",
		json_by_size(t->max_by_size, t->n_max_by_size), "made",
		made ? json_boolean(t->made) : NULL, "min_off",
		made ? json_boolean(t->min_off != NULL) : NULL, "each",
		t->each ? json_each(t->each) : NULL, "default", t->is_default);
}

/* ---- resources and exports */

static json_t *json_resource(const struct weir_resource *r)
{
	json_t *costs = json_array(), *capacity = json_object();

	for (size_t i = 0; i < POLICY_SHOW_EXAMPLES; i++)
		json_array_append_new(costs,
			json_pack("{s:s, s:I, s:I}", "request", policy_show_examples[i].name,
				"requests",
				(json_int_t)weir_policy_cost(r, policy_show_examples[i].op,
					policy_show_examples[i].bytes),
				"bytes",
				(json_int_t)weir_policy_cost_bytes(policy_show_examples[i].op,
					policy_show_examples[i].bytes)));
	for (int u = 0; u < 2; u++)
		if (r->capacity[u].per_second > 0)
			json_object_set_new(capacity, policy_show_units[u],
				json_real(r->capacity[u].per_second));
	return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:o, s:o}",
		"name", r->name, "back", r->back, "depth",
		r->depth > 0 ? json_real(r->depth) : json_string("auto"), "depth_bytes",
		r->depth_bytes ? json_integer((json_int_t)r->depth_bytes) : json_null(), "capacity",
		capacity, "cost", policy_show_costs[r->cost], "run", (int)r->run, "run_distance",
		(json_int_t)r->run_distance, "credit", (json_int_t)r->credit, "io_unit",
		(json_int_t)r->io_unit, "flush_cost", r->flush_cost, "trim_cost", r->trim_cost,
		"costs", costs, "reached", policy_show_json_reach(r));
}

static json_t *json_resources(const struct weir_policy *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_resources; i++)
		json_array_append_new(list, json_resource(&p->resources[i]));
	return list;
}

static json_t *json_export(const struct weir_policy *p, size_t i)
{
	const struct weir_export *e = &p->exports[i];

	return json_pack("{s:o, s:s, s:o, s:o, s:b, s:o*, s:s*, s:s*}", "name", show_text(e->name),
		"resource", p->resources[e->resource].name, "offset", show_count(e->offset), "size",
		e->size ? show_count(e->size) : json_null(), "read_only", e->read_only, "back",
		e->back ? show_text(e->back) : NULL, "class", e->class_, "description",
		e->description);
}

/* Write one of a list, on a line of its own. */
static void put_line(json_t *j, size_t i, FILE *to)
{
	fputs(i ? ",\n  " : "\n  ", to);
	show_write(j, to);
}

static void put_part(const char *key, json_t *j, FILE *to)
{
	fprintf(to, ",\n \"%s\": ", key);
	json_dumpf(j, to, JSON_INDENT(2) | PRECISION);
	json_decref(j);
}

static json_t *json_folders(const struct weir_policy *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_folders; i++) {
		const struct weir_folder *f = &p->folders[i];

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:s, s:s*, s:b}", "resource",
				p->resources[f->resource].name, "dir", f->dir, "match", f->match,
				"name", f->name, "class", f->class_, "read_only", f->read_only));
	}
	return list;
}

static json_t *json_classes(const struct weir_policy *p)
{
	static const char *const keys[] = {"weight", "min", "max", "burst", "slo"};
	static const unsigned bits[] = {POLICY_GIVEN_WEIGHT, POLICY_GIVEN_MIN, POLICY_GIVEN_MAX,
		POLICY_GIVEN_MAX, POLICY_GIVEN_SLO};
	char text[POLICY_OVERRIDE_TEXT];
	json_t *all = json_object();

	for (size_t i = 0; i < p->n_classes; i++) {
		json_t *one = json_object();

		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
			policy_override_show_tenant(&p->classes[i].knobs, keys[k], text);
			if (p->classes[i].given & bits[k] && strcmp(text, "none") != 0)
				json_object_set_new(one, keys[k], json_string(text));
		}
		json_object_set_new(all, p->classes[i].name, one);
	}
	return all;
}

bool policy_show_json(struct policy_show *s, size_t lines, FILE *to)
{
	const struct weir_policy *p = s->policy;
	size_t tenants = p->n_tenants, end = s->at + lines, all = tenants + 1 + p->n_exports;

	if (s->at == 0)
		fprintf(to, "{\"enforce\": %s,\n \"tenants\": [", p->enforce ? "true" : "false");
	for (; s->at < tenants && s->at < end; s->at++)
		put_line(json_tenant(s, s->at), s->at, to);
	if (s->at < tenants)
		return true;
	if (s->at == tenants) {
		fputs("\n ]", to);
		put_part("resources", json_resources(p), to);
		fputs(",\n \"exports\": [", to);
		s->at++;
	}
	for (; s->at < all && s->at < end; s->at++)
		put_line(json_export(p, s->at - tenants - 1), s->at - tenants - 1, to);
	if (s->at < all)
		return true;
	fputs("\n ]", to);
	put_part("folders", json_folders(p), to);
	put_part("classes", json_classes(p), to);
	put_part("gateway", policy_show_json_gateway(p), to);
	fputs("\n}\n", to);
	return false;
}
