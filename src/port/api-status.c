/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-status: a snapshot as JSON. Times are in seconds, rates per second, sizes in bytes. What is not
 * there (a max that is not set, a capacity that is not known yet) is null.
 *
 * METHOD  An active tenant is built as a tree and dumped. Idle ones differ in what the policy says of them
 *         only: that is written as text, and what follows is the same for all.
 */
#include "port/api.h"
#include "port/json-text.h"
#include "port/ledger-json.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};
static const char *const limit_names[WEIR_LIMITS] = {
	"iops", "read_iops", "write_iops", "bytes", "read_bytes", "write_bytes"};

/* Text from outside (a client's export name) may be no UTF-8, which JSON cannot hold: '?'. */
static json_t *text(const char *s)
{
	char copy[512];
	size_t n = 0;
	json_t *j;

	if (!s)
		return json_null();
	j = json_string(s);
	if (j)
		return j;
	for (; s[n] && n < sizeof(copy) - 1; n++)
		copy[n] = (unsigned char)s[n] < 0x80 ? s[n] : '?';
	copy[n] = 0;
	return json_string(copy);
}

static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(uint64_t n)
{
	return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

static json_t *seconds(double ns)
{
	return real(ns / 1e9);
}

/* Counters whose names are those of their fields. */
struct counter {
	const char *name;
	size_t at;
	bool wide; /* 64 bits; else 32 */
};
#define COUNTER(type, field)                                                                       \
	{                                                                                          \
		.name = #field, .at = offsetof(type, field),                                       \
		.wide = sizeof(((type *)0)->field) == sizeof(uint64_t)                             \
	}

static void counters(json_t *j, const void *of, const struct counter *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *p = (const char *)of + list[i].at;

		json_object_set_new(j, list[i].name,
			count(list[i].wide ? *(const uint64_t *)(const void *)p
					   : *(const uint32_t *)(const void *)p));
	}
}

/* ---- tenants */

#define OF(field) COUNTER(struct snapshot_tenant, field)
static const struct counter tenant_counters[] = {OF(arrivals), OF(dispatched), OF(served),
	OF(bytes), OF(reads), OF(writes), OF(others), OF(errors), OF(queued), OF(in_flight),
	OF(clients)};
#undef OF

static json_t *limits(const double *of, bool max)
{
	json_t *j = json_object();

	for (size_t i = 0; i < WEIR_LIMITS; i++)
		if (max ? isfinite(of[i]) : of[i] > 0)
			json_object_set_new(j, limit_names[i], real(of[i]));
	return j;
}

/* Pairs of bucket and count, those that are empty left out: two looks can be subtracted. */
static json_t *buckets(const struct weir_hist *h)
{
	json_t *j = json_array();

	for (size_t i = 0; i < WEIR_HIST_BUCKETS; i++)
		if (h->bucket[i]) {
			json_array_append_new(j, json_integer((json_int_t)i));
			json_array_append_new(j, json_integer(h->bucket[i]));
		}
	return j;
}

static json_t *latency(const struct snapshot_hist *of, bool histograms)
{
	struct weir_hist room;
	const struct weir_hist *h;
	json_t *j;

	if (!of || !of->count)
		return json_null();
	h = snapshot_hist(of, &room);
	j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "count", count(h->count), "mean_s",
		seconds(weir_hist_mean(h)), "p50_s", seconds((double)weir_hist_percentile(h, 50)),
		"p99_s", seconds((double)weir_hist_percentile(h, 99)), "p999_s",
		seconds((double)weir_hist_percentile(h, 99.9)), "max_s", seconds((double)h->max));
	if (histograms && j)
		json_object_set_new(j, "buckets", buckets(h));
	return j;
}

static json_t *waits(const struct snapshot_tenant *t)
{
	json_t *j = json_object();

	for (int i = 0; i < WEIR_CAUSES; i++)
		json_object_set_new(j, cause_names[i], seconds(t->wait_ns[i]));
	return j;
}

static json_t *slo_window(const struct slo_view *v)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "value_s",
		v->value >= 0 ? seconds((double)v->value) : json_null(), "good", count(v->good),
		"total", count(v->total), "met", v->known ? json_boolean(v->met) : json_null());
}

static json_t *slo(const struct snapshot_slo *s)
{
	if (!s)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "percentile", real(s->percentile),
		"latency_s", seconds((double)s->bound), "good", count(s->good), "total",
		count(s->total), "minute", slo_window(&s->window[SLO_MINUTE]), "hour",
		slo_window(&s->window[SLO_HOUR]));
}

static json_t *shadow(const struct shadow_estimate *e)
{
	if (!(e->high > 0))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "low", real(e->low), "high",
		real(e->high), "closed", count(e->closed), "open", count(e->open), "outstanding",
		count(e->outstanding), "think_s",
		seconds(e->closed ? (double)e->think / e->closed : 0));
}

static json_t *tenant(const struct snapshot_tenant *t, bool histograms)
{
	json_t *j = json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "path", text(t->path), "leaf",
		t->leaf, "weight", real(t->weight), "share", real(t->share), "min",
		limits(t->min, false), "max", limits(t->max, true));

	if (!j)
		return NULL;
	counters(j, t, tenant_counters, sizeof(tenant_counters) / sizeof(*tenant_counters));
	json_object_set_new(j, "by_class",
		json_pack("{s:o, s:o, s:o}", "priority", count(t->by_class[0]), "reserved",
			count(t->by_class[1]), "rest", count(t->by_class[2])));
	json_object_set_new(j, "wait_s", waits(t));
	json_object_set_new(j, "device_s", seconds(t->device_ns));
	json_object_set_new(j, "oldest_wait_s", seconds((double)t->oldest_wait));
	json_object_set_new(j, "waits_for", t->queued ? text(cause_names[t->cause]) : json_null());
	json_object_set_new(j, "held_by", text(t->queued ? t->held_by : NULL));
	json_object_set_new(j, "slo", slo(t->slo));
	json_object_set_new(j, "shadow", shadow(&t->shadow));
	json_object_set_new(j, "latency", latency(t->total, histograms));
	json_object_set_new(j, "gate", latency(t->wait, false));
	json_object_set_new(j, "device", latency(t->device, histograms));
	return j;
}

/* The keys that differ between idle tenants come first in tenant(), too. */
static const char *const idle_keys[] = {"path", "leaf", "weight", "share", "min", "max"};

/* The end of an idle tenant's object; malloc'ed. */
static char *idle_end(void)
{
	const struct snapshot_tenant none = {.path = ""};
	json_t *j = tenant(&none, false);
	char *text;

	for (size_t i = 0; i < sizeof(idle_keys) / sizeof(*idle_keys); i++)
		json_object_del(j, idle_keys[i]);
	text = json_dumps(j, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
	json_decref(j);
	if (text)
		text[0] = ' '; /* of "{" */
	return text;
}

static void write_limits(const char *key, const double *of, bool max, FILE *to)
{
	const char *between = "";

	fprintf(to, "\"%s\": {", key);
	for (size_t i = 0; i < WEIR_LIMITS; i++) {
		if (max ? !isfinite(of[i]) : !(of[i] > 0))
			continue;
		fprintf(to, "%s\"%s\": ", between, limit_names[i]);
		json_text_real(of[i], to);
		between = ", ";
	}
	fputs("}, ", to);
}

/* end NULL: brief. */
static void write_idle(const struct snapshot_tenant *t, const char *end, FILE *to)
{
	fputs("{\"path\": ", to);
	json_text_string(t->path, to);
	fprintf(to, ", \"leaf\": %s, \"weight\": ", t->leaf ? "true" : "false");
	json_text_real(t->weight, to);
	fputs(", \"share\": ", to);
	json_text_real(t->share, to);
	if (!end) {
		fputc('}', to);
		return;
	}
	fputs(", ", to);
	write_limits("min", t->min, false, to);
	write_limits("max", t->max, true, to);
	fputs(end, to);
}

static void write_tenant(struct api_status *s, size_t i, FILE *to)
{
	struct snapshot_tenant room;
	const struct snapshot_tenant *t = snapshot_tenant(s->snapshot, i, &room);
	json_t *j;

	if (t == &room && s->idle && !t->slo) {
		write_idle(t, s->brief ? NULL : s->idle, to);
		return;
	}
	j = tenant(t, s->histograms);
	if (!j || json_dumpf(j, to, JSON_REAL_PRECISION(12)) < 0)
		fputs("null", to);
	json_decref(j);
}

/* ---- resources */

#define OF(field) COUNTER(struct snapshot_resource, field)
static const struct counter resource_counters[] = {OF(submitted), OF(dispatched), OF(served),
	OF(errors), OF(lost), OF(queued), OF(in_flight), OF(clients)};
#undef OF

static json_t *capacity(const struct snapshot_resource *r)
{
	return json_pack("{s:o, s:o, s:b}", "iops",
		r->capacity[0] > 0 ? real(r->capacity[0]) : json_null(), "bytes",
		r->capacity[1] > 0 ? real(r->capacity[1]) : json_null(), "stated",
		r->capacity_stated);
}

static json_t *parda(const struct snapshot_resource *r)
{
	if (!r->controlled)
		return json_null();
	return json_pack("{s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "peers", count(r->peers),
		"alone", r->alone, "same_name", r->twice, "shares", real(r->shares), "beta",
		real(r->beta), "latency_s",
		r->latency > 0 ? seconds((double)r->latency) : json_null(), "threshold_s",
		seconds((double)r->aim), "knee_s",
		r->knee > 0 ? seconds((double)r->knee) : json_null(), "held_s",
		seconds((double)r->held));
}

/* What of both sums is off is there to be checked: 0, always. */
static json_t *adaptbf(const struct snapshot_adaptbf *a)
{
	json_t *j = a ? json_pack("{s:s, s:b, s:I, s:I}", "tokens", a->hold ? "hold" : "first",
				"learns", a->learns, "tokens_off", (json_int_t)a->tokens_off,
				"records_off", (json_int_t)a->records_off)
		      : json_null();
	json_t *jobs = a ? json_array() : NULL;

	if (!a || !j)
		return j;
	ledger_json_state(j, &a->state);
	json_object_set_new(j, "step_s", seconds((double)a->took));
	for (size_t i = 0; i < a->n_jobs; i++) {
		json_t *job = json_pack("{s:o}", "tenant", text(a->jobs[i].tenant));

		ledger_json_job(job, &a->jobs[i].account);
		json_array_append_new(jobs, job);
	}
	json_object_set_new(j, "jobs", jobs);
	return j;
}

/* A number of tokens; null: no limit. */
static json_t *tokens(int64_t n)
{
	return n == LEASE_NO_LIMIT ? json_null() : json_integer((json_int_t)n);
}

static json_t *lease(const struct snapshot_lease *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "tenant",
		text(l->tenant), "last_used", count(l->last), "used", tokens(l->used), "claim",
		tokens(l->claim), "cap", tokens(l->cap), "reserved", tokens(l->reserved), "limit",
		tokens(l->limit), "r_tokens", tokens(l->r), "l_tokens", tokens(l->l), "closed_loop",
		l->closed);
}

static json_t *pshift(const struct snapshot_pshift *p)
{
	static const char *const states[LEASE_STATES] = {"blind", "leased", "held", "static"};
	json_t *leases = p ? json_array() : NULL;

	if (!p)
		return json_null();
	for (size_t i = 0; i < p->n_leases; i++)
		json_array_append_new(leases, lease(&p->leases[i]));
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"state", states[p->status.state], "period", count(p->status.period), "last_period",
		count(p->last_period), "granted", count(p->status.granted), "generation",
		count(p->status.generation), "interval_s", seconds((double)p->status.interval),
		"capacity", real(p->capacity), "reports", count(p->status.reports), "entries",
		count(p->status.entries), "taken", count(p->status.taken), "refused",
		count(p->status.refused), "looks", count(p->looks), "busy_s",
		seconds((double)p->busy), "leases", leases);
}

static json_t *resource(const struct snapshot_resource *r)
{
	json_t *j = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name", text(r->name), "back",
		text(r->back), "up", r->up, "state", text(r->state), "size", count(r->size),
		"window", real(r->window), "capacity", capacity(r));

	if (!j)
		return NULL;
	counters(j, r, resource_counters, sizeof(resource_counters) / sizeof(*resource_counters));
	json_object_set_new(j, "healthy", json_boolean(r->healthy));
	json_object_set_new(j, "flush_errors", count(r->flush_errors));
	json_object_set_new(
		j, "window_bytes", r->window_bytes ? count(r->window_bytes) : json_null());
	json_object_set_new(j, "in_flight_bytes", count(r->in_flight_bytes));
	json_object_set_new(j, "full_s", seconds((double)r->full));
	json_object_set_new(j, "bypassed", json_boolean(r->bypassed));
	json_object_set_new(j, "bypassed_s", seconds((double)r->bypassed_for));
	json_object_set_new(j, "thread", count(r->thread));
	json_object_set_new(j, "controller", text(r->controller));
	json_object_set_new(j, "parda", parda(r));
	json_object_set_new(j, "adaptbf", adaptbf(r->adaptbf));
	json_object_set_new(j, "pshift", pshift(r->pshift));
	return j;
}

static json_t *peers(const struct snapshot *s)
{
	const struct peer_stats *p = &s->peers;
	json_t *verdicts;

	if (!s->has_peers)
		return json_null();
	verdicts = json_object();
	for (int v = 0; v < PEER_VERDICTS; v++)
		json_object_set_new(
			verdicts, peer_verdict_name((enum peer_verdict)v), count(p->verdicts[v]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "heard",
		count(p->heard), "received", verdicts, "received_bytes", count(p->received_bytes),
		"sent", count(p->sent), "sent_bytes", count(p->sent_bytes), "failed",
		count(p->failed), "missed", count(p->missed), "lost", count(p->lost), "full",
		count(p->full), "same_name", p->same ? text(p->same_name) : json_null());
}

static json_t *controllers(const struct snapshot *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_links; i++) {
		const struct snapshot_link *l = &s->links[i];

		json_array_append_new(list,
			json_pack("{s:o, s:o, s:b, s:o, s:o, s:o}", "server", text(l->resource),
				"address", text(l->address), "up", l->up, "since_s",
				l->since ? seconds((double)(s->now - l->since)) : json_null(),
				"lost", count(l->downs), "why",
				l->why[0] ? text(l->why) : json_null()));
	}
	return list;
}

/* ---- the whole */

/* An object's members without the braces around them. Takes j. */
static void write_members(json_t *j, FILE *to)
{
	char *text = j ? json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len > 4)
		fwrite(text + 2, 1, len - 4, to); /* "{\n" and "\n}" */
	free(text);
	json_decref(j);
}

static size_t count_active(const struct snapshot *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_tenants; i++)
		n += s->tenants[i] != NULL;
	return n;
}

static void write_head(const struct snapshot *s, FILE *to)
{
	uint64_t clients = 0; /* not n_clients, which ends at a thousand */

	for (size_t i = 0; i < s->n_resources; i++)
		clients += s->resources[i].clients;
	fputs("{\n", to);
	write_members(
		json_pack(
			"{s:s, s:o, s:o, s:o, s:b, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:o, s:o, s:o}",
			"weir", WEIR_VERSION, "now_s", seconds((double)s->now), "uptime_s",
			seconds((double)(s->now - s->started)), "policy_version", count(s->version),
			"enforce", s->enforce, "connections", "accepted", count(s->connections),
			"refused", count(s->refused), "broken", count(s->broken), "buffers", "used",
			count(s->memory), "limit", count(s->memory_budget), "clients",
			count(clients), "tenants_all", count(s->n_tenants), "tenants_active",
			count(count_active(s))),
		to);
	fputs(",\n \"tenants\": [", to);
}

static void write_tail(const struct api_status *s, FILE *to)
{
	json_t *resources = json_array();

	for (size_t i = 0; i < s->snapshot->n_resources; i++)
		json_array_append_new(resources, resource(&s->snapshot->resources[i]));
	fputs("\n ],\n", to);
	write_members(json_pack("{s:o, s:o, s:o, s:o, s:o}", "next", text(s->next), "left_out",
			      count(s->left_out), "resources", resources, "peers",
			      peers(s->snapshot), "controllers", controllers(s->snapshot)),
		to);
	fputs("\n}\n", to);
}

bool api_status_more(struct api_status *s, size_t tenants, FILE *to)
{
	size_t all = s->select ? s->n_select : s->snapshot->n_tenants;

	if (s->at == 0) {
		s->idle = idle_end();
		write_head(s->snapshot, to);
	}
	for (; tenants > 0 && s->at < all; s->at++, tenants--) {
		fputs(s->at ? ",\n  " : "\n  ", to);
		write_tenant(s, s->select ? s->select[s->at] : s->at, to);
	}
	if (s->at < all)
		return true;
	write_tail(s, to);
	return false;
}

void api_status_end(struct api_status *s)
{
	free(s->idle);
	s->idle = NULL;
}

json_t *api_clients(const struct snapshot *s, const char *tenant)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_clients; i++) {
		const struct snapshot_client *c = &s->clients[i];

		if (tenant && strncmp(c->tenant, tenant, strlen(tenant)) != 0)
			continue;
		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
				      text(c->name), "export", text(c->export_), "tenant",
				      text(c->tenant), "resource", text(c->resource), "tls",
				      c->tls[0] ? text(c->tls) : json_null(), "connected_s",
				      seconds((double)(s->now - c->since)), "requests",
				      count(c->requests), "bytes", count(c->bytes), "in_flight",
				      count(c->in_flight)));
	}
	return json_pack("{s:o}", "clients", list);
}
