/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-show-json: a policy as JSON; a tenant and an export are a line each. */
#include "serve/store/json-text.h"
#include "policy/by-size.h"
#include "policy/override.h"
#include "serve/api/policy-show.h"
#include <string.h>

#define PRECISION JSON_REAL_PRECISION(12)

/* ---- tenants */

static void put_slot(unsigned slot, double rate, const char **between, FILE *to)
{
	fprintf(to, "%s{\"unit\": \"%s\", \"ops\": \"%s\", \"rate\": ", *between,
		policy_show_units[slot / 3], policy_show_ops[slot % 3]);
	json_text_real(rate, to);
	*between = ", ";
}

static void put_rates(
	const char *key, const double *slots, bool (*is_shown)(const double *, unsigned), FILE *to)
{
	const char *between = "";

	fprintf(to, ", \"%s\": [", key);
	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (is_shown(slots, s)) {
			put_slot(s, slots[s], &between, to);
			fputc('}', to);
		}
	fputc(']', to);
}

static void put_bursts(const struct weir_tenant *t, FILE *to)
{
	const char *between = "";

	fputs(", \"burst\": [", to);
	for (unsigned i = 0; i < t->n_max; i++) {
		const struct weir_limit *max = &t->max[i];

		if (max->burst_rate <= 0)
			continue;
		put_slot(weir_limit_slot(max->unit, max->ops), max->burst_rate, &between, to);
		fputs(", \"seconds\": ", to);
		json_text_real((double)max->burst_for / WEIR_SEC, to);
		fputc('}', to);
	}
	fputc(']', to);
}

static void put_matches(const struct weir_tenant *t, FILE *to)
{
	fputs(", \"match\": [", to);
	for (unsigned i = 0; i < t->n_match; i++) {
		const struct weir_match *m = &t->match[i];
		const char *const fields[][2] = {{"export", m->export_}, {"client", m->client},
			{"uid", m->uid}, {"tls", m->tls}, {"path", m->path}};
		const char *between = "";

		fputs(i ? ", {" : "{", to);
		for (size_t k = 0; k < 5; k++) {
			if (!fields[k][1])
				continue;
			fprintf(to, "%s\"%s\": ", between, fields[k][0]);
			json_text_string(fields[k][1], to);
			between = ", ";
		}
		fputc('}', to);
	}
	fputc(']', to);
}

static void put_real(const char *key, double value, FILE *to)
{
	fprintf(to, ", \"%s\": ", key);
	json_text_real(value, to);
}

static void put_by_size(const char *key, const struct weir_by_size *list, unsigned n, FILE *to)
{
	char text[POLICY_SIZE_TEXT];

	for (unsigned i = 0; i < n; i++) {
		fprintf(to, i ? ", " : ", \"%s\": [", key);
		json_text_string(policy_size_show(&list[i], text), to);
	}
	if (n)
		fputc(']', to);
}

static void put_each(const struct weir_each *e, FILE *to)
{
	fputs(", \"each\": {\"name\": ", to);
	json_text_string(e->name, to);
	put_real("expire_after", (double)e->expire_after / WEIR_SEC, to);
	fprintf(to, ", \"max_tenants\": %u, \"tenants\": %u", e->max_tenants, e->n_made);
	if (e->leaf.class_) {
		fputs(", \"class\": ", to);
		json_text_string(e->leaf.class_, to);
	}
	fputc('}', to);
}

static void put_tenant(const struct policy_show *s, size_t i, FILE *to)
{
	const struct weir_tenant *t = &s->policy->tenants[i];

	fputs(i ? ",\n  {\"path\": " : "\n  {\"path\": ", to);
	json_text_string(t->path, to);
	fprintf(to, ", \"leaf\": %s", t->first_child < 0 ? "true" : "false");
	put_real("weight", t->weight, to);
	put_real("share", s->of_parent[i], to);
	put_real("of_all", s->of_all[i], to);
	put_rates("min", s->bounds[i].min, policy_show_is_min, to);
	put_rates("max", s->bounds[i].max, policy_show_is_max, to);
	put_bursts(t, to);
	if (t->slo_percentile > 0) {
		fputs(", \"slo\": {\"percentile\": ", to);
		json_text_real(t->slo_percentile, to);
		put_real("seconds", (double)t->slo_latency / WEIR_SEC, to);
		fputc('}', to);
	} else {
		fputs(", \"slo\": null", to);
	}
	put_matches(t, to);
	if (t->class_) {
		fputs(", \"class\": ", to);
		json_text_string(t->class_, to);
	}
	put_by_size("min_by_size", t->min_by_size, t->n_min_by_size, to);
	put_by_size("max_by_size", t->max_by_size, t->n_max_by_size, to);
	if (t->made || t->min_off)
		fprintf(to, ", \"made\": %s, \"min_off\": %s", t->made ? "true" : "false",
			t->min_off ? "true" : "false");
	if (t->each)
		put_each(t->each, to);
	fprintf(to, ", \"default\": %s}", t->is_default ? "true" : "false");
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

static void put_resources(const struct weir_policy *p, FILE *to)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_resources; i++)
		json_array_append_new(list, json_resource(&p->resources[i]));
	fputs("\n ],\n \"resources\": ", to);
	json_dumpf(list, to, JSON_INDENT(2) | PRECISION);
	json_decref(list);
}

static void put_export(const struct weir_policy *p, size_t i, FILE *to)
{
	const struct weir_export *e = &p->exports[i];

	fputs(i ? ",\n  {\"name\": " : "\n  {\"name\": ", to);
	json_text_string(e->name, to);
	fputs(", \"resource\": ", to);
	json_text_string(p->resources[e->resource].name, to);
	fprintf(to, ", \"offset\": %llu, \"size\": ", (unsigned long long)e->offset);
	if (e->size)
		fprintf(to, "%llu", (unsigned long long)e->size);
	else
		fputs("null", to);
	fprintf(to, ", \"read_only\": %s", e->read_only ? "true" : "false");
	if (e->back) {
		fputs(", \"back\": ", to);
		json_text_string(e->back, to);
	}
	if (e->class_) {
		fputs(", \"class\": ", to);
		json_text_string(e->class_, to);
	}
	if (e->description) {
		fputs(", \"description\": ", to);
		json_text_string(e->description, to);
	}
	fputc('}', to);
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

static void put_end(const struct weir_policy *p, FILE *to)
{
	json_t *gateway = policy_show_json_gateway(p);
	json_t *folders = json_folders(p), *classes = json_classes(p);

	fputs("\n ],\n \"folders\": ", to);
	json_dumpf(folders, to, JSON_INDENT(2) | PRECISION);
	json_decref(folders);
	fputs(",\n \"classes\": ", to);
	json_dumpf(classes, to, JSON_INDENT(2) | PRECISION);
	json_decref(classes);
	fputs(",\n \"gateway\": ", to);
	json_dumpf(gateway, to, JSON_INDENT(2) | PRECISION);
	fputs("\n}\n", to);
	json_decref(gateway);
}

bool policy_show_json(struct policy_show *s, size_t lines, FILE *to)
{
	const struct weir_policy *p = s->policy;
	size_t tenants = p->n_tenants, end = s->at + lines, all = tenants + 1 + p->n_exports;

	if (s->at == 0)
		fprintf(to, "{\"enforce\": %s,\n \"tenants\": [", p->enforce ? "true" : "false");
	for (; s->at < tenants && s->at < end; s->at++)
		put_tenant(s, s->at, to);
	if (s->at < tenants)
		return true;
	if (s->at == tenants) {
		put_resources(p, to);
		fputs(",\n \"exports\": [", to);
		s->at++;
	}
	for (; s->at < all && s->at < end; s->at++)
		put_export(p, s->at - tenants - 1, to);
	if (s->at < all)
		return true;
	put_end(p, to);
	return false;
}
