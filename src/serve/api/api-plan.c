/* SPDX-License-Identifier: BSD-3-Clause */
/* api-plan: the plan in force, in a snapshot's JSON and for Prometheus. */
#include "serve/api/api-json.h"
#include "serve/api/metrics-impl.h"
#include "serve/snapshot/note.h"
#include "serve/snapshot/version.h"

/* ---- JSON */

json_t *api_plan(const struct snapshot *s)
{
	const struct gateway_plan *p = s->of ? s->of->plan : NULL;
	json_t *untrue;

	if (!p)
		return json_null();
	untrue = json_array();
	for (size_t i = 0; i < s->of->untrue.n; i++)
		json_array_append_new(untrue, show_text(s->of->untrue.lines[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "number", show_count(p->number), "age_s",
		show_real(s->plan_age), "made", show_text(p->made), "tenants",
		show_count(p->n_tenants), "untrue", untrue);
}

static json_t *claim(const struct snapshot_claim *c)
{
	json_t *out = json_null();

	if (c->excess > 0)
		out = json_pack("{s:o, s:o, s:o, s:[o, o]}", "for_s",
			show_seconds((double)c->out_for), "times", show_real(c->excess), "over_s",
			c->over ? show_seconds((double)c->over) : json_null(), "broke",
			show_real(c->rate), show_real(c->size));
	return json_pack("{s:s?, s:i, s:o, s:o, s:o}", "resource", c->resource, "priority",
		c->priority, "in", show_count(c->in), "out", show_count(c->out), "now_out", out);
}

json_t *api_claims(const struct snapshot_claim *c)
{
	json_t *j = c ? json_array() : json_null();

	for (; c; c = c->next)
		json_array_append_new(j, claim(c));
	return j;
}

/* ---- Prometheus */

static const char *const names[] = {
	"weir_tenant_plan_in_total", "weir_tenant_plan_out_total", "weir_tenant_plan_excess_ratio"};
static const char *const helps[] = {"Requests within the profile of the plan.",
	"Requests beyond the profile of the plan, which went as best effort.",
	"By how much the tenant exceeds its planned curve; 0: it does not."};

static size_t count(const struct metrics_cursor *c)
{
	if (!c->snapshot->of || !c->snapshot->of->plan)
		return 0;
	return c->select ? c->n_select : c->snapshot->n_tenants;
}

static void head(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_family(to, names[k], k < 2 ? "counter" : "gauge", helps[k]);
}

static bool row(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	const struct snapshot_tenant *t = c->snapshot->tenants[c->select ? c->select[i] : i];

	for (const struct snapshot_claim *v = t ? t->claims : NULL; v; v = v->next) {
		fputs(names[k], to);
		metrics_labels(to, "tenant", t->path, "resource", v->resource);
		metrics_number(to, k == 0 ? (double)v->in : k == 1 ? (double)v->out : v->excess);
	}
	return t && t->claims;
}

const struct metrics_rows metrics_plan = {COUNT(names), count, head, row};
