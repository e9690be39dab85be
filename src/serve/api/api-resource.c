/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-resource: the resources of a snapshot as JSON, with what their controllers say.
 *
 * METHOD  Jobs of AdapTBF and leases of pShift may be as many as tenants: they stand at the end of their
 *         controller's object, which stands at the end of its resource, and are written a few at a time.
 */
#include "serve/api/api-json.h"
#include "serve/api/ledger-json.h"
#include <stddef.h>

#define OF(field) API_COUNTER(struct snapshot_resource, field)
static const struct api_counter resource_counters[] = {OF(submitted), OF(dispatched), OF(served),
	OF(errors), OF(lost), OF(queued), OF(in_flight), OF(clients)};
#undef OF

static json_t *capacity(const struct snapshot_resource *r)
{
	return json_pack("{s:o, s:o, s:b}", "iops",
		r->capacity[0] > 0 ? api_real(r->capacity[0]) : json_null(), "bytes",
		r->capacity[1] > 0 ? api_real(r->capacity[1]) : json_null(), "stated",
		r->capacity_stated);
}

static json_t *if_any(double x)
{
	return x > 0 ? api_real(x) : json_null();
}

static json_t *parda(const struct snapshot_resource *r)
{
	if (!r->controlled)
		return json_null();
	return json_pack("{s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, "
			 "s:I, s:I, s:f}",
		"peers", api_count(r->peers), "alone", r->alone, "same_name", r->twice, "shares",
		api_real(r->shares), "beta", api_real(r->beta), "latency_s",
		r->latency > 0 ? api_seconds((double)r->latency) : json_null(), "threshold_s",
		api_seconds((double)r->aim), "knee_s",
		r->knee > 0 ? api_seconds((double)r->knee) : json_null(), "held_s",
		api_seconds((double)r->held), "stranger", if_any(r->stranger), "floor",
		if_any(r->floor), "wmax_below_floor", r->too_low, "wmax_needed",
		if_any(r->wmax_wanted), "unreachable_s",
		r->unreachable > 0 ? api_seconds((double)r->unreachable) : json_null(),
		"probe_bursts", (json_int_t)r->probe_bursts, "probe_reads",
		(json_int_t)r->probe_reads, "probe_s", r->probe_time);
}

/* What of both sums is off is there to be checked: 0, always. NULL: it is not on. */
static json_t *adaptbf(const struct snapshot_resource *r)
{
	const struct snapshot_adaptbf *a = r->adaptbf;
	json_t *j;

	if (!a)
		return NULL;
	j = json_pack("{s:s, s:b, s:s, s:I, s:I}", "tokens", a->hold ? "hold" : "first", "learns",
		a->learns, "unit", ledger_json_unit(a->unit), "tokens_off",
		(json_int_t)a->tokens_off, "records_off", (json_int_t)a->records_off);
	ledger_json_state(j, &a->state);
	json_object_set_new(j, "step_s", api_seconds((double)a->took));
	return j;
}

static size_t n_jobs(const struct snapshot_resource *r)
{
	return r->adaptbf->n_jobs;
}

static json_t *job(const struct snapshot_resource *r, size_t i)
{
	const struct snapshot_job *of = &r->adaptbf->jobs[i];
	json_t *j = json_pack("{s:o}", "tenant", api_text(of->tenant));

	ledger_json_job(j, &of->account);
	return j;
}

/* A number of tokens; null: no limit. */
static json_t *tokens(int64_t n)
{
	return n == LEASE_NO_LIMIT ? json_null() : json_integer((json_int_t)n);
}

static size_t n_leases(const struct snapshot_resource *r)
{
	return r->pshift->n_leases;
}

static json_t *lease(const struct snapshot_resource *r, size_t i)
{
	const struct snapshot_lease *l = &r->pshift->leases[i];

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "tenant",
		api_text(l->tenant), "last_used", api_count(l->last), "used", tokens(l->used),
		"claim", tokens(l->claim), "cap", tokens(l->cap), "reserved", tokens(l->reserved),
		"limit", tokens(l->limit), "r_tokens", tokens(l->r), "l_tokens", tokens(l->l),
		"closed_loop", l->closed);
}

static json_t *pshift(const struct snapshot_resource *r)
{
	static const char *const states[LEASE_STATES] = {"blind", "leased", "held", "static"};
	const struct snapshot_pshift *p = r->pshift;

	if (!p)
		return NULL;
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"state", states[p->status.state], "period", api_count(p->status.period),
		"last_period", api_count(p->last_period), "granted", api_count(p->status.granted),
		"generation", api_count(p->status.generation), "interval_s",
		api_seconds((double)p->status.interval), "capacity", api_real(p->capacity),
		"reports", api_count(p->status.reports), "entries", api_count(p->status.entries),
		"taken", api_count(p->status.taken), "refused", api_count(p->status.refused),
		"looks", api_count(p->looks), "busy_s", api_seconds((double)p->busy), "leases_all",
		api_count(p->n_all));
}

static json_t *resource(const struct snapshot_resource *r)
{
	json_t *j = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name", api_text(r->name),
		"back", api_text(r->back), "up", r->up, "state", api_text(r->state), "size",
		api_count(r->size), "window", api_real(r->window), "capacity", capacity(r));

	if (!j)
		return NULL;
	api_counters(
		j, r, resource_counters, sizeof(resource_counters) / sizeof(*resource_counters));
	json_object_set_new(j, "healthy", json_boolean(r->healthy));
	json_object_set_new(j, "flush_errors", api_count(r->flush_errors));
	json_object_set_new(
		j, "window_bytes", r->window_bytes ? api_count(r->window_bytes) : json_null());
	json_object_set_new(j, "in_flight_bytes", api_count(r->in_flight_bytes));
	json_object_set_new(j, "full_s", api_seconds((double)r->full));
	json_object_set_new(j, "bypassed", json_boolean(r->bypassed));
	json_object_set_new(j, "bypassed_s", api_seconds((double)r->bypassed_for));
	json_object_set_new(j, "thread", api_count(r->thread));
	json_object_set_new(j, "controller", api_text(r->controller));
	json_object_set_new(j, "parda", parda(r));
	return j;
}

/* ---- in pieces */

/* Controllers with a list that may be long. */
static const struct part {
	const char *key, *list;
	json_t *(*head)(const struct snapshot_resource *r); /* NULL: it is not on */
	size_t (*n)(const struct snapshot_resource *r);
	json_t *(*row)(const struct snapshot_resource *r, size_t i);
} parts[] = {
	{"adaptbf", "jobs", adaptbf, n_jobs, job}, {"pshift", "leases", pshift, n_leases, lease}};
#define PARTS (sizeof(parts) / sizeof(*parts))

/* False: the controller is not on. */
static bool write_head(const struct snapshot_resource *r, const struct part *p, FILE *to)
{
	json_t *head = p->head(r);

	fprintf(to, ", \"%s\": %s", p->key, head ? "{" : "null");
	if (!head)
		return false;
	api_write_members(head, to);
	fprintf(to, ", \"%s\": [", p->list);
	return true;
}

/* At most *items rows, which are taken from it. False: there are more. */
static bool write_part(
	struct api_status *s, const struct snapshot_resource *r, size_t *items, FILE *to)
{
	const struct part *p = &parts[s->part];
	size_t n;

	if (s->row == 0 && !write_head(r, p, to))
		return true;
	for (n = p->n(r); *items > 0 && s->row < n; s->row++, --*items) {
		fputs(s->row ? ",\n   " : "\n   ", to);
		api_write(p->row(r, s->row), to);
	}
	if (s->row < n)
		return false;
	fputs("]}", to);
	s->row = 0;
	return true;
}

bool api_resources_more(struct api_status *s, size_t items, FILE *to)
{
	while (items > 0 && s->resource < s->snapshot->n_resources) {
		const struct snapshot_resource *r = &s->snapshot->resources[s->resource];

		if (s->part == 0 && s->row == 0) {
			fputs(s->resource ? ",\n  {" : "\n  {", to);
			api_write_members(resource(r), to);
		}
		if (!write_part(s, r, &items, to))
			return true;
		if (++s->part < PARTS)
			continue;
		fputc('}', to);
		s->part = 0;
		s->resource++;
		items -= items > 0;
	}
	return s->resource < s->snapshot->n_resources;
}
