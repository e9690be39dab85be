/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-show: a policy as tables for people and as JSON for programs. */
#include "prog/policy-verb.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {"all", "reads", "writes"};
static const char *const unit_names[] = {"iops", "bytes"};
static const char *const cost_names[] = {"requests", "bytes", "time"};

/* What the table of costs shows. */
static const struct example {
	const char *name;
	enum weir_op op;
	uint64_t bytes;
} examples[] = {
	{"4 KiB", WEIR_READ, 4 << 10},
	{"64 KiB", WEIR_READ, 64 << 10},
	{"256 KiB", WEIR_READ, 256 << 10},
	{"1 MiB", WEIR_READ, 1 << 20},
	{"flush", WEIR_FLUSH, 0},
	{"trim", WEIR_TRIM, 1 << 20},
};
#define EXAMPLES (sizeof(examples) / sizeof(*examples))

/* ---- tables: cells are collected, then printed as wide as the widest */

enum { COLUMNS = 9 };

struct table {
	const char *const *heads; /* [COLUMNS], NULL behind the last */
	char *(*rows)[COLUMNS];
	size_t n;
	unsigned right; /* columns of numbers: a bit each */
};

/* Characters, not bytes: what is not the first byte of a character is not counted. */
static int width(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static void print_row(const struct table *t, const char *const *cells, const int *widths)
{
	for (int c = 0; c < COLUMNS && t->heads[c]; c++) {
		bool last = c + 1 == COLUMNS || !t->heads[c + 1];
		int pad = widths[c] - width(cells[c]);

		if (t->right >> c & 1)
			printf("%*s%s%s", pad, "", cells[c], last ? "" : "  ");
		else
			printf("%s%*s", cells[c], last ? 0 : pad + 2, "");
	}
	putchar('\n');
}

static void print_table(const struct table *t)
{
	int widths[COLUMNS] = {0};

	for (int c = 0; c < COLUMNS && t->heads[c]; c++) {
		widths[c] = width(t->heads[c]);
		for (size_t i = 0; i < t->n; i++)
			if (width(t->rows[i][c]) > widths[c])
				widths[c] = width(t->rows[i][c]);
	}
	print_row(t, t->heads, widths);
	for (size_t i = 0; i < t->n; i++)
		print_row(t, (const char *const *)t->rows[i], widths);
}

static void free_table(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		for (int c = 0; c < COLUMNS; c++)
			free(t->rows[i][c]);
	free(t->rows);
}

/* ---- cells */

/* A cell being written; "-" stands for an empty one. */
struct cell {
	FILE *to;
	char *text;
	size_t len;
};

static bool open_cell(struct cell *c)
{
	c->text = NULL;
	c->to = open_memstream(&c->text, &c->len);
	return c->to != NULL;
}

static char *close_cell(struct cell *c)
{
	if (ftell(c->to) == 0)
		fputc('-', c->to);
	if (fclose(c->to) == 0)
		return c->text;
	free(c->text);
	return NULL;
}

static void put_rate(FILE *to, unsigned slot, double rate)
{
	char shown[32];

	weir_units_show_rate(
		(struct weir_rate){rate, (enum weir_unit)(slot / 3)}, shown, sizeof(shown));
	fprintf(to, "%s%s%s%s", ftell(to) ? ", " : "", slot % 3 ? class_names[slot % 3] : "",
		slot % 3 ? " " : "", shown);
}

/* Whether a slot is worth showing: a min, unless reads and writes say it already; a max, unless
 * that of all says it already. */
static bool is_min_shown(const double *slots, unsigned slot)
{
	const double *of_unit = &slots[slot / 3 * 3];

	return slots[slot] > (slot % 3 == 0 ? (of_unit[1] + of_unit[2]) * (1 + 1e-9) : 0);
}

static bool is_max_shown(const double *slots, unsigned slot)
{
	return slots[slot] < (slot % 3 == 0 ? INFINITY : slots[slot / 3 * 3]);
}

static char *rates_cell(const double *slots, bool (*is_shown)(const double *, unsigned))
{
	struct cell c;

	if (!open_cell(&c))
		return NULL;
	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (is_shown(slots, s))
			put_rate(c.to, s, slots[s]);
	return close_cell(&c);
}

static char *burst_cell(const struct weir_tenant *t)
{
	char span[32];
	struct cell c;

	if (!open_cell(&c))
		return NULL;
	for (unsigned i = 0; i < t->n_max; i++) {
		const struct weir_limit *max = &t->max[i];

		if (max->burst_rate <= 0)
			continue;
		put_rate(c.to, weir_limit_slot(max->unit, max->ops), max->burst_rate);
		fprintf(c.to, " for %s", weir_units_show_time(max->burst_for, span, sizeof(span)));
	}
	return close_cell(&c);
}

static char *slo_cell(const struct weir_tenant *t)
{
	char span[32];
	struct cell c;

	if (!open_cell(&c))
		return NULL;
	if (t->slo_percentile > 0)
		fprintf(c.to, "p%.12g < %s", t->slo_percentile,
			weir_units_show_time(t->slo_latency, span, sizeof(span)));
	return close_cell(&c);
}

static char *match_cell(const struct weir_tenant *t)
{
	struct cell c;

	if (!open_cell(&c))
		return NULL;
	for (unsigned i = 0; i < t->n_match; i++) {
		const struct weir_match *m = &t->match[i];
		const char *const fields[][2] = {{"export", m->export_}, {"client", m->client},
			{"uid", m->uid}, {"tls", m->tls}, {"path", m->path}};
		const char *between = i ? " or " : "";

		for (size_t k = 0; k < 5; k++) {
			if (!fields[k][1])
				continue;
			fprintf(c.to, "%s%s=%s", between, fields[k][0], fields[k][1]);
			between = " ";
		}
	}
	if (t->is_default)
		fprintf(c.to, "%s(default)", t->n_match ? " or " : "");
	return close_cell(&c);
}

static char *text_cell(const char *fmt, double value)
{
	char *text;

	return asprintf(&text, fmt, value) < 0 ? NULL : text;
}

/* ---- the tenants' table */

static bool tenant_row(
	const struct weir_policy *p, size_t i, const struct weir_bounds *b, char **cells)
{
	const struct weir_tenant *t = &p->tenants[i];
	double of_parent, of_all;

	weir_policy_share(p, i, &of_parent, &of_all);
	cells[0] = strdup(t->path);
	cells[1] = text_cell("%.12g", t->weight);
	cells[2] = text_cell("%.3g%%", 100 * of_parent);
	cells[3] = text_cell("%.3g%%", 100 * of_all);
	cells[4] = rates_cell(b->min, is_min_shown);
	cells[5] = rates_cell(b->max, is_max_shown);
	cells[6] = burst_cell(t);
	cells[7] = slo_cell(t);
	cells[8] = match_cell(t);
	for (int c = 0; c < COLUMNS; c++)
		if (!cells[c])
			return false;
	return true;
}

static int show_tenants(const struct weir_policy *p, const struct weir_bounds *bounds)
{
	static const char *const heads[COLUMNS] = {
		"TENANT", "WEIGHT", "SHARE", "OF ALL", "MIN", "MAX", "BURST", "SLO", "MATCH"};
	struct table t = {.heads = heads, .right = 0x0e};
	bool good = true;

	t.rows = calloc(p->n_tenants ? p->n_tenants : 1, sizeof(*t.rows));
	if (!t.rows)
		return -ENOMEM;
	for (; good && t.n < p->n_tenants; t.n++)
		good = tenant_row(p, t.n, &bounds[t.n], t.rows[t.n]);
	if (good && t.n)
		print_table(&t);
	else if (good)
		printf("No tenants: everybody is equal.\n");
	free_table(&t);
	return good ? 0 : -ENOMEM;
}

/* ---- the resources */

static void show_costs(const struct weir_resource *r)
{
	printf("  %-9s %9s %9s\n", "A request", "requests", "bytes");
	for (size_t i = 0; i < EXAMPLES; i++)
		printf("  %-9s %9u %9u\n", examples[i].name,
			weir_policy_cost(r, examples[i].op, examples[i].bytes),
			weir_policy_cost_bytes(examples[i].op, examples[i].bytes));
}

static void show_resource(const struct weir_resource *r)
{
	char a[32];

	printf("\nRESOURCE %s: %s%s", r->name, r->back ? r->back : "", r->back ? ", " : "");
	if (r->depth > 0)
		printf("depth %g", r->depth);
	else
		printf("depth auto");
	printf(", capacity ");
	for (int u = 0, n = 0; u < 2; u++)
		if (r->capacity[u].per_second > 0)
			printf("%s%s", n++ ? " and " : "",
				weir_units_show_rate(r->capacity[u], a, sizeof(a)));
	printf("%s, shared by %s\n", r->capacity_auto ? "auto" : "", cost_names[r->cost]);
	if (r->run > 1)
		printf("  runs of up to %u requests within %s\n", r->run,
			weir_units_show_size(r->run_distance, a, sizeof(a)));
	show_costs(r);
}

int policy_show_table(const struct weir_policy *p)
{
	struct weir_bounds *bounds = calloc(p->n_tenants ? p->n_tenants : 1, sizeof(*bounds));
	int rc = bounds ? weir_policy_bounds(p, bounds) : -ENOMEM;

	if (rc == 0)
		rc = show_tenants(p, bounds);
	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		show_resource(&p->resources[i]);
	if (rc == 0)
		policy_show_gateway(p);
	if (rc == 0 && !p->enforce)
		printf("\nNot enforced: nobody is held to this; it is counted what would have "
		       "been.\n");
	free(bounds);
	return rc;
}

/* ---- JSON */

static json_t *json_rates(const double *slots, bool (*is_shown)(const double *, unsigned))
{
	json_t *list = json_array();

	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (is_shown(slots, s))
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:f}", "unit", unit_names[s / 3], "ops",
					      class_names[s % 3], "rate", slots[s]));
	return list;
}

static json_t *json_bursts(const struct weir_tenant *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n_max; i++) {
		const struct weir_limit *max = &t->max[i];
		unsigned s = weir_limit_slot(max->unit, max->ops);

		if (max->burst_rate > 0)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:f, s:f}", "unit", unit_names[s / 3],
					      "ops", class_names[s % 3], "rate", max->burst_rate,
					      "seconds", (double)max->burst_for / WEIR_SEC));
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

static json_t *json_tenant(const struct weir_policy *p, size_t i, const struct weir_bounds *b)
{
	const struct weir_tenant *t = &p->tenants[i];
	double of_parent, of_all;
	json_t *slo = json_null();

	weir_policy_share(p, i, &of_parent, &of_all);
	if (t->slo_percentile > 0)
		slo = json_pack("{s:f, s:f}", "percentile", t->slo_percentile, "seconds",
			(double)t->slo_latency / WEIR_SEC);
	return json_pack("{s:s, s:b, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:b}", "path", t->path,
		"leaf", t->first_child < 0, "weight", t->weight, "share", of_parent, "of_all",
		of_all, "min", json_rates(b->min, is_min_shown), "max",
		json_rates(b->max, is_max_shown), "burst", json_bursts(t), "slo", slo, "match",
		json_matches(t), "default", t->is_default);
}

static json_t *json_resource(const struct weir_resource *r)
{
	json_t *costs = json_array(), *capacity = json_object();

	for (size_t i = 0; i < EXAMPLES; i++)
		json_array_append_new(costs,
			json_pack("{s:s, s:I, s:I}", "request", examples[i].name, "requests",
				(json_int_t)weir_policy_cost(r, examples[i].op, examples[i].bytes),
				"bytes",
				(json_int_t)weir_policy_cost_bytes(
					examples[i].op, examples[i].bytes)));
	for (int u = 0; u < 2; u++)
		if (r->capacity[u].per_second > 0)
			json_object_set_new(
				capacity, unit_names[u], json_real(r->capacity[u].per_second));
	return json_pack("{s:s, s:s?, s:o, s:o, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:o, s:o}",
		"name", r->name, "back", r->back, "depth",
		r->depth > 0 ? json_real(r->depth) : json_string("auto"), "capacity", capacity,
		"cost", cost_names[r->cost], "run", (int)r->run, "run_distance",
		(json_int_t)r->run_distance, "credit", (json_int_t)r->credit, "io_unit",
		(json_int_t)r->io_unit, "flush_cost", r->flush_cost, "trim_cost", r->trim_cost,
		"costs", costs, "reached", policy_show_json_reach(r));
}

int policy_show_json(const struct weir_policy *p)
{
	struct weir_bounds *bounds = calloc(p->n_tenants ? p->n_tenants : 1, sizeof(*bounds));
	json_t *tenants = json_array(), *resources = json_array(), *all;
	int rc = bounds ? weir_policy_bounds(p, bounds) : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < p->n_tenants; i++)
		rc = json_array_append_new(tenants, json_tenant(p, i, &bounds[i])) ? -ENOMEM : 0;
	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		rc = json_array_append_new(resources, json_resource(&p->resources[i])) ? -ENOMEM
										       : 0;
	all = json_pack("{s:b, s:o, s:o, s:o, s:o}", "enforce", p->enforce, "tenants", tenants,
		"resources", resources, "exports", policy_show_json_exports(p), "gateway",
		policy_show_json_gateway(p));
	if (rc == 0 &&
		(!all || json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) < 0))
		rc = -ENOMEM;
	if (rc == 0)
		putchar('\n');
	json_decref(all);
	free(bounds);
	return rc;
}
