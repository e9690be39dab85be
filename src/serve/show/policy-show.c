/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-show: the table.
 *
 * METHOD  The cells of a row are written one after the other into one buffer. Columns are as wide
 *         as their widest cell, so all rows are made twice: once for the widths, once for the
 *         output.
 */
#include "serve/show/policy-show.h"
#include "policy/by-size.h"
#include "policy/override/override.h"
#include "policy/plan.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const policy_show_ops[3] = {"all", "reads", "writes"};
const char *const policy_show_units[2] = {"iops", "bytes"};
const char *const policy_show_costs[3] = {"requests", "bytes", "time"};

const struct policy_show_example policy_show_examples[POLICY_SHOW_EXAMPLES] = {
	{"4 KiB", WEIR_READ, 4 << 10},
	{"64 KiB", WEIR_READ, 64 << 10},
	{"256 KiB", WEIR_READ, 256 << 10},
	{"1 MiB", WEIR_READ, 1 << 20},
	{"flush", WEIR_FLUSH, 0},
	{"trim", WEIR_TRIM, 1 << 20},
};

/* ---- rows */

#define RIGHT 0x0eu /* columns of numbers: a bit each */

static const char *const heads[POLICY_SHOW_COLUMNS] = {
	"TENANT", "WEIGHT", "SHARE", "OF ALL", "MIN", "MAX", "BURST", "SLO", "MATCH"};

struct row { /* each cell ends with a 0 */
	char *text;
	size_t used, room;
	size_t cell; /* start of the current cell */
	bool failed; /* for want of memory */
	struct shown {
		const char *form;
		double value;
		char text[32];
	} shown[32]; /* numbers of late, by a hash */
};

static void put_bytes(struct row *r, const char *s, size_t n)
{
	if (array_grow(&r->text, &r->room, r->used + n) < 0) {
		r->failed = true;
		return;
	}
	memcpy(r->text + r->used, s, n);
	r->used += n;
}

static void put_text(struct row *r, const char *s)
{
	put_bytes(r, s, strlen(s));
}

/* Cache the last number: many tenants have the same weight and share. */
static void put_number(struct row *r, const char *form, double value)
{
	uint64_t bits;
	struct shown *s;

	memcpy(&bits, &value, sizeof(bits));
	s = &r->shown[(bits * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t)form) >> 59];
	if (s->form != form || s->value != value) {
		s->form = form;
		s->value = value;
		snprintf(s->text, sizeof(s->text), form, value);
	}
	put_text(r, s->text);
}

/* End a cell; an empty one becomes "-". */
static void cell_end(struct row *r)
{
	if (r->used == r->cell)
		put_text(r, "-");
	put_bytes(r, "", 1);
	r->cell = r->used;
}

/* Count characters, not bytes: only the first byte of each character counts. */
static int width(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static void pad(int n, FILE *to)
{
	while (n-- > 0)
		putc_unlocked(' ', to);
}

static void print_cell(const char *text, int column, const struct policy_show_width *w, FILE *to)
{
	bool last = column + 1 == POLICY_SHOW_COLUMNS, right = RIGHT >> column & 1;
	int blank = w->column[column] - width(text);

	if (right)
		pad(blank, to);
	fputs_unlocked(text, to);
	if (last)
		putc_unlocked('\n', to);
	else
		pad(right ? 2 : blank + 2, to);
}

/* ---- cells */

static void put_rate(struct row *r, unsigned slot, double rate)
{
	char shown[32];

	weir_units_show_rate(
		(struct weir_rate){rate, (enum weir_unit)(slot / 3)}, shown, sizeof(shown));
	if (r->used > r->cell)
		put_text(r, ", ");
	if (slot % 3) {
		put_text(r, policy_show_ops[slot % 3]);
		put_text(r, " ");
	}
	put_text(r, shown);
}

bool policy_show_is_min(const double *slots, unsigned slot)
{
	const double *of_unit = &slots[slot / 3 * 3];

	return slots[slot] > (slot % 3 == 0 ? (of_unit[1] + of_unit[2]) * (1 + 1e-9) : 0);
}

bool policy_show_is_max(const double *slots, unsigned slot)
{
	return slots[slot] < (slot % 3 == 0 ? INFINITY : slots[slot / 3 * 3]);
}

/* Rates, and for those by size their origin: "300 iops (3 iops/GiB)". */
static void rates_cell(struct row *r, const double *slots,
	bool (*is_shown)(const double *, unsigned), const struct weir_by_size *by_size, unsigned n)
{
	char text[POLICY_SIZE_TEXT];

	for (unsigned s = 0; s < WEIR_LIMITS; s++)
		if (is_shown(slots, s))
			put_rate(r, s, slots[s]);
	for (unsigned i = 0; i < n; i++) {
		put_text(r, r->used > r->cell ? " (" : "(");
		put_text(r, policy_size_show(&by_size[i], text));
		put_text(r, ")");
	}
	cell_end(r);
}

static void burst_cell(struct row *r, const struct weir_tenant *t)
{
	char span[32];

	for (unsigned i = 0; i < t->n_max; i++) {
		const struct weir_limit *max = &t->max[i];

		if (max->burst_rate <= 0)
			continue;
		put_rate(r, weir_limit_slot(max->unit, max->ops), max->burst_rate);
		put_text(r, " for ");
		put_text(r, weir_units_show_time(max->burst_for, span, sizeof(span)));
	}
	cell_end(r);
}

static void slo_cell(struct row *r, const struct weir_tenant *t)
{
	char slo[POLICY_SLO_TEXT];

	if (t->slo_percentile > 0)
		put_text(r, policy_plan_show_slo(t, slo));
	cell_end(r);
}

static void match_cell(struct row *r, const struct weir_tenant *t)
{
	for (unsigned i = 0; i < t->n_match; i++) {
		const struct weir_match *m = &t->match[i];
		const char *const fields[][2] = {{"export", m->export_}, {"client", m->client},
			{"uid", m->uid}, {"tls", m->tls}, {"path", m->path}};
		const char *between = i ? " or " : "";

		for (size_t k = 0; k < 5; k++) {
			if (!fields[k][1])
				continue;
			put_text(r, between);
			put_text(r, fields[k][0]);
			put_text(r, "=");
			put_text(r, fields[k][1]);
			between = " ";
		}
	}
	if (t->is_default)
		put_text(r, t->n_match ? " or (default)" : "(default)");
	cell_end(r);
}

static void number_cell(struct row *r, const char *form, double value)
{
	put_number(r, form, value);
	cell_end(r);
}

/* ---- the tenants' table */

/* Call fn with every cell of tenant i. Return false if out of memory. */
static bool tenant_row(const struct policy_show *s, size_t i, struct row *r,
	void (*fn)(void *arg, int column, const char *text), void *arg)
{
	const struct weir_tenant *t = &s->policy->tenants[i];
	const char *text;

	r->used = r->cell = 0;
	put_text(r, t->path);
	cell_end(r);
	number_cell(r, "%.12g", t->weight);
	number_cell(r, "%.3g%%", 100 * s->of_parent[i]);
	number_cell(r, "%.3g%%", 100 * s->of_all[i]);
	rates_cell(r, s->bounds[i].min, policy_show_is_min, t->min_by_size, t->n_min_by_size);
	rates_cell(r, s->bounds[i].max, policy_show_is_max, t->max_by_size, t->n_max_by_size);
	burst_cell(r, t);
	slo_cell(r, t);
	match_cell(r, t);
	if (r->failed)
		return false;
	text = r->text;
	for (int c = 0; c < POLICY_SHOW_COLUMNS; c++) {
		fn(arg, c, text);
		text += strlen(text) + 1;
	}
	return true;
}

static void widen(void *arg, int column, const char *text)
{
	struct policy_show_width *w = arg;

	if (width(text) > w->column[column])
		w->column[column] = width(text);
}

int policy_show_widths(const struct policy_show *s, struct policy_show_width *ret)
{
	struct policy_show_width w;
	struct row r = {0};
	bool good = true;

	for (int c = 0; c < POLICY_SHOW_COLUMNS; c++)
		w.column[c] = width(heads[c]);
	for (size_t i = 0; good && i < s->policy->n_tenants; i++)
		good = tenant_row(s, i, &r, widen, &w);
	free(r.text);
	if (good)
		*ret = w;
	return good ? 0 : -ENOMEM;
}

struct printing {
	const struct policy_show_width *width;
	FILE *to;
};

static void print(void *arg, int column, const char *text)
{
	const struct printing *p = arg;

	print_cell(text, column, p->width, p->to);
}

static void show_tenants(struct policy_show *s, size_t end, FILE *to)
{
	struct printing p = {s->width, to};
	struct row r = {0};

	for (int c = 0; s->at == 0 && c < POLICY_SHOW_COLUMNS; c++)
		print(&p, c, heads[c]);
	for (; s->at < end; s->at++)
		tenant_row(s, s->at, &r, print, &p);
	free(r.text);
}

/* ---- classes and templates */

static void show_knobs(const struct weir_tenant *t, unsigned given, FILE *to)
{
	static const char *const keys[] = {"weight", "min", "max", "burst", "slo"};
	static const unsigned bits[] = {POLICY_GIVEN_WEIGHT, POLICY_GIVEN_MIN, POLICY_GIVEN_MAX,
		POLICY_GIVEN_MAX, POLICY_GIVEN_SLO};
	char text[POLICY_OVERRIDE_TEXT];
	const char *before = ": ";

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		policy_override_show_tenant(t, keys[i], text);
		if (!(given & bits[i]) || strcmp(text, "none") == 0)
			continue;
		fprintf(to, "%s%s %s", before, keys[i], text);
		before = ", ";
	}
	fputc('\n', to);
}

static void show_template(const struct weir_tenant *t, FILE *to)
{
	static const char *const words[] = {"export", "client", "uid", "TLS identity"};
	const struct weir_each *e = t->each;
	const char *before = "one tenant per ";
	char span[32];

	fprintf(to, "\nEACH %s: ", t->path);
	for (unsigned f = 0; f < 4; f++)
		if (e->by & 1u << f) {
			fprintf(to, "%s%s", before, words[f]);
			before = " and ";
		}
	fprintf(to, ", named %s; at most %u, %u now, removed %s after the last client left\n",
		e->name, e->max_tenants, e->n_made,
		weir_units_show_time(e->expire_after, span, sizeof(span)));
	fprintf(to, "  %s%s", e->leaf.class_ ? "class " : "its keys",
		e->leaf.class_ ? e->leaf.class_ : "");
	show_knobs(&e->leaf, ~0u, to);
}

static void show_classes(const struct weir_policy *p, FILE *to)
{
	for (size_t i = 0; i < p->n_classes; i++) {
		fprintf(to, "%sCLASS %s", i ? "" : "\n", p->classes[i].name);
		show_knobs(&p->classes[i].knobs, p->classes[i].given, to);
	}
	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].each)
			show_template(&p->tenants[i], to);
}

/* ---- the resources */

static void show_costs(const struct weir_resource *r, FILE *to)
{
	fprintf(to, "  %-9s %9s %9s\n", "A request", "requests", "bytes");
	for (size_t i = 0; i < POLICY_SHOW_EXAMPLES; i++)
		fprintf(to, "  %-9s %9u %9u\n", policy_show_examples[i].name,
			weir_policy_cost(
				r, policy_show_examples[i].op, policy_show_examples[i].bytes),
			weir_policy_cost_bytes(
				policy_show_examples[i].op, policy_show_examples[i].bytes));
}

/* The controller and its settings, as the policy would state them. */
static void show_controller(const struct weir_resource *r, FILE *to)
{
	char value[KEY_TEXT_SIZE];
	const char *before = ": ";

	if (!r->controller)
		return;
	fprintf(to, "  controller %s", r->controller->name);
	for (const struct key *k = r->controller->keys; k->name; k++)
		if (!k->lab && *key_show(k, r->settings, value, sizeof(value))) {
			fprintf(to, "%s%s %s", before, k->name, value);
			before = ", ";
		}
	fputc('\n', to);
}

static void show_resource(const struct weir_resource *r, FILE *to)
{
	char a[32];

	fprintf(to, "\nRESOURCE %s: %s%s", r->name, r->back ? r->back : "", r->back ? ", " : "");
	if (r->depth > 0)
		fprintf(to, "depth %g", r->depth);
	else
		fprintf(to, "depth auto");
	if (r->depth_bytes)
		fprintf(to, " and %s", weir_units_show_size(r->depth_bytes, a, sizeof(a)));
	fprintf(to, ", capacity ");
	for (int u = 0, n = 0; u < 2; u++)
		if (r->capacity[u].per_second > 0)
			fprintf(to, "%s%s", n++ ? " and " : "",
				weir_units_show_rate(r->capacity[u], a, sizeof(a)));
	fprintf(to, "%s, shared by %s\n", r->capacity_auto ? "auto" : "",
		policy_show_costs[r->cost]);
	if (r->run > 1)
		fprintf(to, "  runs of up to %u requests within %s\n", r->run,
			weir_units_show_size(r->run_distance, a, sizeof(a)));
	show_controller(r, to);
	show_costs(r, to);
}

static void show_folder(const struct weir_policy *p, size_t i, FILE *to)
{
	const struct weir_folder *f = &p->folders[i];

	fprintf(to, "%sDIR %s: files %s are volumes %s behind %s%s%s%s\n", i ? "" : "\n", f->dir,
		f->match, f->name, p->resources[f->resource].name, f->class_ ? ", class " : "",
		f->class_ ? f->class_ : "", f->read_only ? ", read-only" : "");
}

/* Show what follows the tenants and the exports. */
static void show_end(const struct weir_policy *p, FILE *to)
{
	policy_show_gateway(p, to);
	if (!p->enforce)
		fprintf(to, "\nNot enforced: no request is delayed; the policy's effect is only "
			    "estimated.\n");
}

bool policy_show_table(struct policy_show *s, size_t lines, FILE *to)
{
	const struct weir_policy *p = s->policy;
	size_t tenants = p->n_tenants, end = s->at + lines, all = tenants + 1 + p->n_exports;

	if (s->at < tenants) {
		show_tenants(s, end < tenants ? end : tenants, to);
		return true;
	}
	if (s->at == tenants) {
		if (!tenants)
			fprintf(to, "No tenants: all clients are equal.\n");
		show_classes(p, to);
		for (size_t i = 0; i < p->n_resources; i++)
			show_resource(&p->resources[i], to);
		for (size_t i = 0; i < p->n_folders; i++)
			show_folder(p, i, to);
		s->at++;
	}
	for (; s->at < all && s->at < end; s->at++)
		policy_show_export(p, s->at - tenants - 1, to);
	if (s->at < all)
		return true;
	show_end(p, to);
	return false;
}

/* ---- all of it */

int policy_show_all(const struct weir_policy *p, bool json, FILE *to)
{
	size_t n = p->n_tenants + 1;
	struct weir_bounds *bounds = calloc(n, sizeof(*bounds));
	double *of_parent = calloc(n, sizeof(*of_parent)), *of_all = calloc(n, sizeof(*of_all));
	struct policy_show_width w;
	struct policy_show s = {p, bounds, of_parent, of_all, &w, 0};
	int rc = bounds && of_parent && of_all ? weir_policy_bounds(p, bounds) : -ENOMEM;

	if (rc == 0) {
		weir_policy_share(p, of_parent, of_all);
		rc = policy_show_widths(&s, &w);
	}
	while (rc == 0 && (json ? policy_show_json : policy_show_table)(&s, SIZE_MAX / 2, to))
		;
	free(bounds);
	free(of_parent);
	free(of_all);
	return rc;
}
