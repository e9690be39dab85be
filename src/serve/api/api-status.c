/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-status: a snapshot as JSON. Times are in seconds, rates per second, sizes in bytes. A missing
 * value (a max that is not set, a capacity that is not known yet) is null.
 *
 * METHOD  An active tenant is built as a tree and dumped. Idle tenants differ only in their policy:
 *         that is written as text, and the rest is the same for all.
 */
#include "serve/api/api-json.h"
#include "serve/show/facts-json.h"
#include "serve/store/json-text.h"
#include "serve/snapshot/version.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};
static const char *const limit_names[WEIR_LIMITS] = {
	"iops", "read_iops", "write_iops", "bytes", "read_bytes", "write_bytes"};

/* ---- tenants */

#define AT(member) FACT_AT(struct snapshot_tenant, member)
static const struct fact tenant_facts[API_TENANT_FACTS] = {
	{"path", AT(path)},
	{"leaf", AT(leaf)},
	{"weight", "weight", "Weight in the policy.", AT(weight)},
	{"share", "share", "Entitled share of all while all are busy, 0 to 1.", AT(share)},
	/* below: API_TENANT_LEAVES */
	{"arrivals", "arrivals_total", "Requests that arrived.", AT(arrivals)},
	{"dispatched", AT(dispatched)},
	{"waited", AT(waited)},
	{"served", "served_total", "Requests that the resource finished.", AT(served)},
	{"bytes", "bytes_total", "Bytes of the requests that passed.", AT(bytes)},
	{"reads", AT(reads)},
	{"writes", AT(writes)},
	{"others", AT(others)},
	{"errors", "errors_total", "Requests that failed.", AT(errors)},
	{"queued", "queued", "Requests that wait now.", AT(queued)},
	{"oldest_wait_s", "oldest_wait_seconds",
		"Waiting time of the oldest waiting request; 0: none waits.", .unit = FACTS_SECONDS,
		AT(oldest_wait)},
	{"in_flight", "in_flight", "Requests inside the resource now.", AT(in_flight)},
	{"clients", "clients", "Connections now.", AT(clients)},
	{"device_s", .unit = FACTS_SECONDS, AT(device_ns)},
	{"min_off", "min_off", "1: its min does not fit, and is not in force.", AT(min_off)},
	{NULL, "shadow_low",
		"Shadow mode: least expected rate under enforcement, as a part of the counted "
		"rate; 0: enforced.",
		AT(shadow.low)},
	{NULL, "shadow_high",
		"Shadow mode: largest expected rate under enforcement, as a part of the counted "
		"rate; 0: enforced.",
		AT(shadow.high)},
};
const struct facts_table api_tenant_facts = {.facts = tenant_facts, .n_facts = API_TENANT_FACTS};

static json_t *limits(const double *of, bool max)
{
	json_t *j = json_object();

	for (size_t i = 0; i < WEIR_LIMITS; i++)
		if (max ? isfinite(of[i]) : of[i] > 0)
			json_object_set_new(j, limit_names[i], show_real(of[i]));
	return j;
}

/* Make pairs of bucket and count, without empty buckets: two snapshots can be subtracted. */
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
	j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "count", show_count(h->count), "mean_s",
		show_seconds(weir_hist_mean(h)), "p50_s",
		show_seconds((double)weir_hist_percentile(h, 50)), "p99_s",
		show_seconds((double)weir_hist_percentile(h, 99)), "p999_s",
		show_seconds((double)weir_hist_percentile(h, 99.9)), "max_s",
		show_seconds((double)h->max));
	if (histograms && j)
		json_object_set_new(j, "buckets", buckets(h));
	return j;
}

static json_t *waits(const struct snapshot_tenant *t)
{
	json_t *j = json_object();

	for (int i = 0; i < WEIR_CAUSES; i++)
		json_object_set_new(j, cause_names[i], show_seconds(t->wait_ns[i]));
	return j;
}

static json_t *slo_window(const struct slo_view *v)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "value_s",
		v->value >= 0 ? show_seconds((double)v->value) : json_null(), "good",
		show_count(v->good), "total", show_count(v->total), "met",
		v->known ? json_boolean(v->met) : json_null());
}

static json_t *slo(const struct snapshot_slo *s)
{
	if (!s)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "percentile", show_real(s->percentile),
		"latency_s", show_seconds((double)s->bound), "good", show_count(s->good), "total",
		show_count(s->total), "minute", slo_window(&s->window[SLO_MINUTE]), "hour",
		slo_window(&s->window[SLO_HOUR]));
}

static json_t *shadow(const struct shadow_estimate *e)
{
	bool tells = shadow_estimate_tells(e);

	if (!(e->high > 0))
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "low",
		tells ? show_real(e->low) : json_null(), "high",
		tells ? show_real(e->high) : json_null(), "why",
		show_text(tells ? NULL
				: "the device was not seen with as little inside as the gate would "
				  "let in"),
		"closed", show_count(e->closed), "open", show_count(e->open), "outstanding",
		show_count(e->outstanding), "think_s",
		show_seconds(e->closed ? (double)e->think / e->closed : 0));
}

static json_t *places(const struct snapshot_place *at)
{
	json_t *j = json_array();

	for (; at; at = at->next)
		json_array_append_new(j, json_pack("{s:s, s:o}", "resource", at->here->name, "due",
						 show_real(snapshot_due(at))));
	return j;
}

static json_t *tenant(const struct snapshot_tenant *t, bool histograms)
{
	json_t *j = facts_json_row(&api_tenant_facts, t, FACTS_IN_STATUS);

	json_object_set_new(j, "min", limits(t->min, false));
	json_object_set_new(j, "max", limits(t->max, true));
	json_object_set_new(j, "by_class",
		json_pack("{s:o, s:o, s:o}", "priority", show_count(t->by_class[0]), "reserved",
			show_count(t->by_class[1]), "rest", show_count(t->by_class[2])));
	json_object_set_new(j, "at", places(t->at));
	json_object_set_new(j, "wait_s", waits(t));
	json_object_set_new(
		j, "waits_for", t->queued ? show_text(cause_names[t->cause]) : json_null());
	json_object_set_new(j, "held_by", show_text(t->queued ? t->held_by : NULL));
	json_object_set_new(j, "slo", slo(t->slo));
	json_object_set_new(j, "plan", api_claims(t->claims));
	json_object_set_new(j, "shadow", shadow(&t->shadow));
	json_object_set_new(j, "latency", latency(t->total, histograms));
	json_object_set_new(j, "gate", latency(t->wait, false));
	json_object_set_new(j, "device", latency(t->device, histograms));
	return j;
}

/* The keys that differ between idle tenants. */
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

/* Write an idle tenant; end NULL: brief. */
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

	if (t == &room && s->idle && !t->slo && !t->min_off) {
		write_idle(t, s->brief ? NULL : s->idle, to);
		return;
	}
	show_write(tenant(t, s->histograms), to);
}

/* ---- the cluster */

static json_t *peers(const struct snapshot *s)
{
	const struct peer_stats *p = &s->peers;
	json_t *verdicts;

	if (!s->has_peers)
		return json_null();
	verdicts = json_object();
	for (int v = 0; v < PEER_VERDICTS; v++)
		json_object_set_new(verdicts, peer_verdict_name((enum peer_verdict)v),
			show_count(p->verdicts[v]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "heard",
		show_count(p->heard), "received", verdicts, "received_bytes",
		show_count(p->received_bytes), "sent", show_count(p->sent), "sent_bytes",
		show_count(p->sent_bytes), "failed", show_count(p->failed), "missed",
		show_count(p->missed), "lost", show_count(p->lost), "full", show_count(p->full),
		"same_name", p->same ? show_text(p->same_name) : json_null());
}

/* Set the rows of controllers that belong to no one resource. */
static void set_whole(json_t *j, const struct snapshot *s)
{
	for (size_t k = 0; facts_kind(k); k++) {
		const struct facts_table *t = &facts_kind(k)->whole;
		json_t *list = t->size ? json_array() : NULL;

		for (size_t i = 0; i < s->whole[k].n; i++)
			json_array_append_new(list,
				facts_json_row(t, facts_row(t, &s->whole[k], i), FACTS_IN_STATUS));
		if (list)
			json_object_set_new(j, t->name, list);
	}
}

/* ---- the whole */

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
	fputs("{\n ", to);
	show_write_members(
		json_pack(
			"{s:s, s:o, s:o, s:o, s:b, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:o, s:o, s:o}",
			"weir", WEIR_VERSION, "now_s", show_seconds((double)s->now), "uptime_s",
			show_seconds((double)(s->now - s->started)), "policy_version",
			show_count(s->version), "enforce", s->enforce, "connections", "accepted",
			show_count(s->connections), "refused", show_count(s->refused), "broken",
			show_count(s->broken), "buffers", "used", show_count(s->memory), "limit",
			show_count(s->memory_budget), "clients", show_count(clients), "tenants_all",
			show_count(s->n_tenants), "tenants_active", show_count(count_active(s))),
		to);
	fputs(",\n \"tenants\": [", to);
}

static void write_middle(const struct api_status *s, FILE *to)
{
	fputs("\n ],\n ", to);
	show_write_members(json_pack("{s:o, s:o}", "next", show_text(s->next), "left_out",
				   show_count(s->left_out)),
		to);
	fputs(",\n \"resources\": [", to);
}

static void write_tail(const struct snapshot *s, FILE *to)
{
	json_t *remarks = json_array(), *j = json_pack("{s:o, s:o, s:o}", "peers", peers(s), "plan",
						api_plan(s), "remarks", remarks);

	for (size_t i = 0; s->of && i < s->of->remarks.n; i++)
		json_array_append_new(remarks, show_text(s->of->remarks.lines[i]));
	for (size_t i = 0; i < s->n_volumes; i++) {
		char line[512];

		snprintf(line, sizeof(line), "volume '%s': %s", s->volumes[i].name,
			s->volumes[i].why);
		json_array_append_new(remarks, show_text(line));
	}
	set_whole(j, s);
	fputs("\n ],\n ", to);
	show_write_members(j, to);
	fputs("\n}\n", to);
}

static void write_tenants(struct api_status *s, size_t all, size_t tenants, FILE *to)
{
	if (s->at == 0) {
		s->idle = idle_end();
		write_head(s->snapshot, to);
	}
	for (; tenants > 0 && s->at < all; s->at++, tenants--) {
		fputs(s->at ? ",\n  " : "\n  ", to);
		write_tenant(s, s->select ? s->select[s->at] : s->at, to);
	}
	s->listed = s->at == all;
	if (s->listed)
		write_middle(s, to);
}

bool api_status_more(struct api_status *s, size_t tenants, FILE *to)
{
	if (!s->listed) {
		write_tenants(s, s->select ? s->n_select : s->snapshot->n_tenants, tenants, to);
		return true;
	}
	if (api_resources_more(s, tenants, to))
		return true;
	write_tail(s->snapshot, to);
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
				      show_text(c->name), "export", show_text(c->export_), "tenant",
				      show_text(c->tenant), "resource", show_text(c->resource),
				      "tls", c->tls[0] ? show_text(c->tls) : json_null(),
				      "connected_s", show_seconds((double)(s->now - c->since)),
				      "requests", show_count(c->requests), "bytes",
				      show_count(c->bytes), "in_flight", show_count(c->in_flight)));
	}
	return json_pack("{s:o}", "clients", list);
}
