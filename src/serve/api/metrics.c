/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics: a snapshot for Prometheus. Pure: no clock, no file. The facts of controllers are in
 * metrics-facts.c.
 *
 * SOURCE   The text exposition format of Prometheus, version 0.0.4.
 * METHOD   A family is HELP, TYPE and then its samples, together. Each family of tenants or
 *          resources is one line of a table. Only leaves have counters: a group's would count
 *          everything twice in a sum; a group has weight, share and limits, and the counters of
 *          leaves that it had, so that a sum never falls. The text is written a
 *          few tenants at a time (metrics_more): there may be a hundred thousand, and so two
 *          million lines.
 *
 *          Histograms have fixed bounds, three a decade from 50 µs to 10 s. Weir's own buckets are
 *          some 1 % wide; one that straddles a bound counts below it if its middle does. A bucket
 *          never exceeds the total count, even if counters saturated.
 */
#include "serve/api/api-json.h"
#include "serve/api/metrics-impl.h"
#include "serve/snapshot/version.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static const double bounds[] = {50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
	50e-3, 100e-3, 250e-3, 0.5, 1, 2.5, 5, 10}; /* s */
#define METRICS_NAME 128                            /* bytes: no name of a fact is longer */
#define BOUNDS       (sizeof(bounds) / sizeof(*bounds))

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};
static const char *const class_names[3] = {"priority", "reserved", "rest"};
static const char *const unit_names[2] = {"requests", "bytes"};
static const char *const ops_names[3] = {"all", "reads", "writes"};

/* ---- the process */

static void write_process(const struct snapshot *s, const struct metrics_process *p, FILE *to)
{
	metrics_family(to, "weir_build_info", "gauge", "The program's version.");
	fputs("weir_build_info", to);
	metrics_labels(to, "version", WEIR_VERSION, "", "");
	metrics_number(to, 1);
	metrics_single(to, "weir_uptime_seconds", "gauge", "Since the gateway started.",
		(double)(s->now - s->started) / 1e9);
	metrics_single(to, "weir_policy_version", "gauge",
		"Version of the policy in force; 1 at the start.", (double)s->version);
	if (s->of && s->of->plan) {
		metrics_single(to, "weir_plan_number", "gauge", "The number of the plan in force.",
			(double)s->of->plan->number);
		metrics_single(to, "weir_plan_age_seconds", "gauge",
			"Time since the plan in force was applied.", s->plan_age);
		metrics_single(to, "weir_plan_untrue", "gauge",
			"Things that are not as they were when the plan was made.",
			(double)s->of->untrue.n);
	}
	metrics_single(to, "weir_enforce", "gauge", "1: the policy is enforced; 0: shadow mode.",
		s->enforce);
	metrics_single(to, "weir_connections_total", "counter", "Clients that were accepted.",
		(double)s->connections);
	metrics_single(to, "weir_connections_refused_total", "counter",
		"Clients that were refused.", (double)s->refused);
	metrics_single(to, "weir_connections_broken_total", "counter",
		"Clients that were disconnected because they broke the protocol.",
		(double)s->broken);
	metrics_single(
		to, "weir_buffer_bytes", "gauge", "Payload buffers in use.", (double)s->memory);
	metrics_single(to, "weir_buffer_limit_bytes", "gauge", "Limit of payload buffers.",
		(double)s->memory_budget);
	if (!p)
		return;
	metrics_single(to, "process_cpu_seconds_total", "counter", "User and system time.", p->cpu);
	metrics_single(to, "process_resident_memory_bytes", "gauge", "Memory in RAM.",
		(double)p->resident);
	metrics_single(to, "process_open_fds", "gauge", "Open file descriptors.", (double)p->fds);
	metrics_single(to, "process_threads", "gauge", "Threads.", (double)p->threads);
}

/* ---- volumes with trouble */

static void write_volumes(const struct snapshot *s, FILE *to)
{
	if (s->n_volumes)
		metrics_family(to, "weir_volume_trouble", "gauge",
			"1: something is wrong with the volume; others have no such line.");
	for (size_t i = 0; i < s->n_volumes; i++) {
		fputs("weir_volume_trouble", to);
		metrics_labels(to, "volume", s->volumes[i].name, "why", s->volumes[i].why);
		metrics_number(to, 1);
	}
}

/* ---- one number a tenant or resource */

/* Return the length of the name; the names of facts are the program's own, and short. */
static size_t fact_name(char name[METRICS_NAME], const char *kind, const struct fact *f)
{
	assert(strlen(kind) + strlen(f->metric) + 7 < METRICS_NAME);
	return (size_t)(stpcpy(stpcpy(stpcpy(stpcpy(name, "weir_"), kind), "_"), f->metric) - name);
}

void metrics_fact_name(FILE *to, const char *kind, const struct fact *f)
{
	char name[METRICS_NAME];

	fwrite_unlocked(name, 1, fact_name(name, kind, f), to);
}

void metrics_fact(FILE *to, const char *kind, const struct fact *f, const char *label,
	const char *value, const void *row)
{
	metrics_fact_name(to, kind, f);
	metrics_labels(to, label, value, "", "");
	metrics_number(to, facts_value(f, row));
}

void metrics_fact_family(FILE *to, const char *kind, const struct fact *f)
{
	const char *end = strstr(f->metric, "_total");
	char name[METRICS_NAME];

	name[fact_name(name, kind, f)] = 0;
	metrics_family(to, name, end && !end[6] ? "counter" : "gauge", f->help);
}

static size_t count_tenants(const struct metrics_cursor *c)
{
	return c->select ? c->n_select : c->snapshot->n_tenants;
}

static const struct snapshot_tenant *tenant_at(
	const struct metrics_cursor *c, size_t i, struct snapshot_tenant *room)
{
	return snapshot_tenant(c->snapshot, c->select ? c->select[i] : i, room);
}

static size_t count_field(const struct metrics_cursor *c)
{
	return api_tenant_facts.facts[c->family].metric ? count_tenants(c) : 0;
}

static void head_field(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_fact_family(to, "tenant", &api_tenant_facts.facts[k]);
}

static bool row_field(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	struct snapshot_tenant room;
	const struct snapshot_tenant *t = tenant_at(c, i, &room);

	const struct fact *f = &api_tenant_facts.facts[k];

	if (!f->metric)
		return true;
	if (t->leaf || k < API_TENANT_LEAVES)
		metrics_fact(to, "tenant", f, "tenant", t->path, t);
	else if (t->gone && strstr(f->metric, "_total"))
		metrics_fact(to, "tenant", f, "tenant", t->path, t->gone);
	return true;
}

/* ---- tenants: families with a second label */

struct split {
	const char *name, *help, *key;
	const char *const *names;
	size_t n, offset;
	bool wide; /* doubles, in ns; else uint64_t */
};

static const char *const op_names[3] = {"read", "write", "other"};
static const struct split splits[] = {
	{"weir_tenant_requests_total", "Requests that arrived, by operation.", "op", op_names, 3,
		offsetof(struct snapshot_tenant, reads), false},
	{"weir_tenant_dispatched_total", "Requests that passed the gate, by class.", "class",
		class_names, 3, offsetof(struct snapshot_tenant, by_class), false},
	{"weir_tenant_wait_seconds_total",
		"Seconds that requests waited, summed over requests, by cause.", "cause",
		cause_names, WEIR_CAUSES, offsetof(struct snapshot_tenant, wait_ns), true},
};
_Static_assert(
	offsetof(struct snapshot_tenant, writes) == offsetof(struct snapshot_tenant, reads) + 8 &&
		offsetof(struct snapshot_tenant, others) ==
			offsetof(struct snapshot_tenant, reads) + 16,
	"reads, writes and others are read as an array");

static void head_split(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_family(to, splits[k].name, "counter", splits[k].help);
}

static bool row_split(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	struct snapshot_tenant room;
	const struct snapshot_tenant *t = tenant_at(c, i, &room);
	const struct split *f = &splits[k];
	const struct snapshot_tenant *of = t->leaf ? t : t->gone;
	const void *at = (const char *)of + f->offset;

	for (size_t n = 0; of && n < f->n; n++) {
		fputs_unlocked(f->name, to);
		metrics_labels(to, "tenant", t->path, f->key, f->names[n]);
		metrics_number(to, f->wide ? ((const double *)at)[n] / 1e9
					   : (double)((const uint64_t *)at)[n]);
	}
	return true;
}

/* Show only real limits: a min of 0 and a max of infinity are none. k: min, max. */
static const char *const limit_names[2] = {"weir_tenant_min", "weir_tenant_max"};

static void head_limit(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_family(
		to, limit_names[k], "gauge", k ? "Its max, per second." : "Its min, per second.");
}

static bool row_limit(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	struct snapshot_tenant room;
	const struct snapshot_tenant *t = tenant_at(c, i, &room);
	for (size_t slot = 0; slot < WEIR_LIMITS; slot++) {
		double value = k ? t->max[slot] : t->min[slot];

		if (k ? isinf(value) : value <= 0)
			continue;
		fputs_unlocked(limit_names[k], to);
		metrics_label(to, '{', "tenant", t->path);
		metrics_label(to, ',', "unit", unit_names[slot / 3]);
		metrics_label(to, ',', "ops", ops_names[slot % 3]);
		fputs_unlocked("} ", to);
		metrics_number(to, value);
	}
	return true;
}

/* ---- histograms */

/* Return the middle of a bucket, ns: hist.h's law. */
static double middle(size_t bucket)
{
	size_t octave;

	if (bucket < 128)
		return (double)bucket;
	octave = (bucket - 128) / 64;
	return ldexp(128 + 2 * (double)((bucket - 128) % 64) + 1, (int)octave);
}

static void write_hist(const char *name, const char *tenant, const struct weir_hist *h, FILE *to)
{
	uint64_t below = 0;
	size_t bucket = 0;
	char le[32];

	for (size_t i = 0; i < BOUNDS; i++) {
		for (; bucket < WEIR_HIST_BUCKETS && middle(bucket) <= bounds[i] * 1e9; bucket++)
			below += h->bucket[bucket];
		snprintf(le, sizeof(le), "%g", bounds[i]);
		fprintf(to, "%s_bucket", name);
		metrics_labels(to, "tenant", tenant, "le", le);
		fprintf(to, "%" PRIu64 "\n", below < h->count ? below : h->count);
	}
	fprintf(to, "%s_bucket", name);
	metrics_labels(to, "tenant", tenant, "le", "+Inf");
	fprintf(to, "%" PRIu64 "\n%s_sum", h->count, name);
	metrics_labels(to, "tenant", tenant, "", "");
	metrics_number(to, (double)h->sum / 1e9);
	fprintf(to, "%s_count", name);
	metrics_labels(to, "tenant", tenant, "", "");
	fprintf(to, "%" PRIu64 "\n", h->count);
}

static const struct {
	const char *name, *help;
	size_t offset;
} hists[] = {
	{"weir_tenant_latency_seconds",
		"From receipt of a request to the end of its reply, as clients sent it.",
		offsetof(struct snapshot_tenant, total)},
	{"weir_tenant_gate_seconds", "Waiting at the gate.",
		offsetof(struct snapshot_tenant, wait)},
	{"weir_tenant_device_seconds", "Inside the resource.",
		offsetof(struct snapshot_tenant, device)},
};

static void head_hist(const struct metrics_cursor *c, size_t k, FILE *to)
{
	metrics_family(to, hists[k].name, "histogram", hists[k].help);
}

/* Idle tenants have no histogram. */
static bool row_hist(const struct metrics_cursor *c, size_t i, size_t k, FILE *to)
{
	const struct snapshot_tenant *t = c->snapshot->tenants[c->select ? c->select[i] : i];
	const struct snapshot_hist *h;
	struct weir_hist room;

	if (!t)
		return false;
	h = *(struct snapshot_hist *const *)(const void *)((const char *)t + hists[k].offset);
	if (t->leaf && h)
		write_hist(hists[k].name, t->path, snapshot_hist(h, &room), to);
	return true;
}

/* ---- resources */

static void write_resources(const struct snapshot *s, FILE *to)
{
	metrics_family(to, "weir_resource_info", "gauge", "The back end of the resource.");
	for (size_t i = 0; i < s->n_resources; i++) {
		fputs("weir_resource_info", to);
		metrics_labels(to, "resource", s->resources[i].name, "back", s->resources[i].back);
		metrics_number(to, 1);
	}
	metrics_family(to, "weir_resource_capacity", "gauge",
		"Per second, stated or learned; absent while it is not known.");
	for (size_t i = 0; i < s->n_resources; i++)
		for (size_t u = 0; u < 2; u++)
			if (s->resources[i].capacity[u] > 0) {
				fputs("weir_resource_capacity", to);
				metrics_labels(to, "resource", s->resources[i].name, "unit",
					unit_names[u]);
				metrics_number(to, s->resources[i].capacity[u]);
			}
	for (size_t k = 0; k < api_resource_facts.n_facts; k++) {
		const struct fact *f = &api_resource_facts.facts[k];

		if (!f->metric)
			continue;
		metrics_fact_family(to, "resource", f);
		for (size_t i = 0; i < s->n_resources; i++)
			metrics_fact(to, "resource", f, "resource", s->resources[i].name,
				&s->resources[i]);
	}
}

/* ---- the whole */

static const struct metrics_rows tenant_rows[] = {
	{API_TENANT_FACTS, count_field, head_field, row_field},
	{COUNT(splits), count_tenants, head_split, row_split},
	{2, count_tenants, head_limit, row_limit},
	{COUNT(hists), count_tenants, head_hist, row_hist},
};
/* After those of controllers. */
static const struct metrics_rows *const parts[] = {&metrics_slos[0], &metrics_slos[1],
	&metrics_plan, &tenant_rows[0], &tenant_rows[1], &tenant_rows[2], &tenant_rows[3]};

/* Write the lines of one family, from c->at on. */
static void write_rows(struct metrics_cursor *c, size_t n, FILE *to)
{
	size_t facts = metrics_facts_parts();
	struct metrics_rows p = c->part < facts ? metrics_facts_rows(c) : *parts[c->part - facts];
	size_t all = p.count(c);

	if (c->at == 0 && all > 0)
		p.head(c, c->family, to);
	for (; n > 0 && c->at < all; c->at++)
		n -= p.row(c, c->at, c->family, to);
	if (c->at < all)
		return;
	c->at = 0;
	if (++c->family >= p.families) {
		c->family = 0;
		c->part++;
	}
}

bool metrics_more(struct metrics_cursor *c, size_t tenants, FILE *to)
{
	size_t all = metrics_facts_parts() + COUNT(parts);

	if (!c->begun) {
		write_process(c->snapshot, c->process, to);
		write_resources(c->snapshot, to);
		write_volumes(c->snapshot, to);
		metrics_facts(c->snapshot, to);
		c->begun = true;
	} else if (c->part < all) {
		write_rows(c, tenants, to);
	}
	return c->part < all;
}
