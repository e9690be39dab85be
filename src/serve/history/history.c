/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/history/history.h"
#include "base/no-memory.h"
#include "serve/history/impl.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct tier history_tiers[TIERS] = {{5, 360, 0}, {60, 360, 360}, {300, 288, 720}};

static const struct column gateway_columns[] = {{"clients", GAUGE, 1}, {"tenants", GAUGE, 1},
	{"buffers", GAUGE, 1}, {"connections", RATE, 1}};
/* Waiting and inside are means: request-seconds per second. */
static const struct column tenant_columns[] = {{"served", RATE, 1}, {"arrived", RATE, 1},
	{"bytes", RATE, 1}, {"errors", RATE, 1}, {"inside", RATE, 1e9}, {"wait_window", RATE, 1e9},
	{"wait_max", RATE, 1e9}, {"wait_above", RATE, 1e9}, {"wait_tokens", RATE, 1e9},
	{"wait_turn", RATE, 1e9}, {"p50_s", PERCENTILE, 50}, {"p99_s", PERCENTILE, 99}};
static const struct column resource_columns[] = {{"served", RATE, 1}, {"arrived", RATE, 1},
	{"errors", RATE, 1}, {"full", RATE, 1e9}, {"window", GAUGE, 1}, {"inside", GAUGE, 1},
	{"queued", GAUGE, 1}, {"clients", GAUGE, 1}, {"capacity_iops", GAUGE, 1},
	{"capacity_bytes", GAUGE, 1}, {"mins", GAUGE, 1}};

enum { SERVED, ARRIVED }; /* columns of a tenant and of a resource */

#define N(list) (sizeof(list) / sizeof(*(list)))
const struct column *const history_columns[] = {gateway_columns, tenant_columns, resource_columns};
const unsigned history_n_columns[] = {N(gateway_columns), N(tenant_columns), N(resource_columns)};

/* ---- points */

struct sample {
	enum history_kind kind;
	const char *name;
	double value[COLUMNS]; /* counters, and gauges */
	const struct snapshot_hist *hist;
};

/* Set the percentile columns to those of the requests between two histograms. */
static void put_percentiles(const struct sample *m, const struct snapshot_hist *from, float *value)
{
	const struct column *c = history_columns[m->kind];
	struct weir_hist now, before;

	for (unsigned i = 0; i < history_n_columns[m->kind]; i++)
		if (c[i].type == PERCENTILE)
			value[i] = NAN;
	if (!m->hist || (from && from->count >= m->hist->count))
		return;
	snapshot_hist(m->hist, &now);
	if (from) {
		snapshot_hist(from, &before);
		for (size_t b = 0; b < WEIR_HIST_BUCKETS; b++)
			now.bucket[b] -=
				before.bucket[b] < now.bucket[b] ? before.bucket[b] : now.bucket[b];
		now.count -= from->count;
	}
	for (unsigned i = 0; i < history_n_columns[m->kind]; i++)
		if (c[i].type == PERCENTILE)
			value[i] = (float)((double)weir_hist_percentile(&now, c[i].of) / 1e9);
}

static void put_point(struct history *h, size_t i, size_t t, uint32_t number, const float *value)
{
	const struct tier *tier = &history_tiers[t];
	struct point *p = &h->series[i].points[tier->at + number % tier->n];

	memcpy(p->value, value, sizeof(p->value));
	p->number = number;
	history_save(h, i, p);
}

static void keep_hist(struct base *b, const struct snapshot_hist *hist)
{
	size_t n = hist ? sizeof(*hist) + hist->n * sizeof(*hist->bucket) : 0;
	struct snapshot_hist *copy = n ? malloc(n) : NULL;

	free(b->hist);
	b->hist = copy;
	if (copy)
		memcpy(copy, hist, n);
}

/* End the points of a tier at `number`, which may be some steps after the last ones. */
static void end_point(
	struct history *h, size_t i, size_t t, uint32_t number, double day, const struct sample *m)
{
	double step = history_tiers[t].step, end = number * step, begin = h->last[t] * step;
	struct base *b = &h->live[i].base[t];
	const struct column *c = history_columns[m->kind];
	bool first = !h->last[t] || (!b->known && h->crowded);
	float value[COLUMNS] = {0};

	if (!b->known || first)
		b->day = first ? day : begin;
	if (b->day < begin) /* it was idle since then */
		b->day = begin;
	for (unsigned k = 0; !first && k < history_n_columns[m->kind]; k++) {
		/* A snapshot comes after the end: what is counted since then is of the next point. */
		double growth = fmax(0, m->value[k] - b->sum[k]) * (end - b->day) / (day - b->day);

		value[k] = c[k].type == GAUGE ? (float)m->value[k]
					      : (float)(growth / c[k].of / (end - begin));
		b->sum[k] += growth;
	}
	if (first) {
		memcpy(b->sum, m->value, sizeof(b->sum));
	} else {
		put_percentiles(m, b->known ? b->hist : NULL, value);
		for (uint32_t n = h->last[t] + 1; n <= number; n++)
			put_point(h, i, t, n, value);
		b->day = end;
	}
	b->known = true;
	keep_hist(b, m->hist);
}

/* The counters began at 0 again, as those of a tenant that was removed and is back: count on from where they were. */
static void count_on(struct live *l, const struct sample *m)
{
	const struct column *c = history_columns[m->kind];

	for (size_t t = 0; t < TIERS; t++) {
		for (unsigned k = 0; k < history_n_columns[m->kind]; k++)
			if (c[k].type == RATE)
				l->base[t].sum[k] -= l->value[k];
		free(l->base[t].hist);
		l->base[t].hist = NULL;
	}
}

/* ---- samples */

static bool add_sample(struct history *h, const struct sample *m, const bool ends[TIERS],
	const uint32_t number[TIERS], double day)
{
	size_t i = history_find_or_make(h, m->kind, m->name);

	if (i == HISTORY_SERIES)
		return false;
	h->live[i].seen = true;
	h->series[i].last = day;
	if (m->kind != HISTORY_GATEWAY && m->value[ARRIVED] < h->live[i].value[ARRIVED])
		count_on(&h->live[i], m);
	memcpy(h->live[i].value, m->value, sizeof(m->value));
	for (size_t t = 0; t < TIERS; t++)
		if (ends[t])
			end_point(h, i, t, number[t], day, m);
	return true;
}

static struct sample gateway_sample(const struct snapshot *s)
{
	struct sample m = {.kind = HISTORY_GATEWAY, .name = ""};
	double clients = 0, active = 0;

	for (size_t i = 0; i < s->n_resources; i++)
		clients += s->resources[i].clients;
	for (size_t i = 0; i < s->n_tenants; i++)
		active += s->tenants[i] != NULL;
	m.value[0] = clients;
	m.value[1] = active;
	m.value[2] = (double)s->memory;
	m.value[3] = (double)s->connections;
	return m;
}

static struct sample tenant_sample(const struct snapshot_tenant *t)
{
	struct sample m = {.kind = HISTORY_TENANT, .name = t->path, .hist = t->total};
	const double of[] = {(double)t->served, (double)t->arrivals, (double)t->bytes,
		(double)t->errors, t->device_ns, t->wait_ns[WEIR_WAIT_WINDOW],
		t->wait_ns[WEIR_WAIT_MAX], t->wait_ns[WEIR_WAIT_ABOVE],
		t->wait_ns[WEIR_WAIT_TOKENS], t->wait_ns[WEIR_WAIT_TURN]};

	memcpy(m.value, of, sizeof(of));
	return m;
}

static struct sample resource_sample(const struct snapshot_resource *r)
{
	struct sample m = {.kind = HISTORY_RESOURCE, .name = r->name};
	const double of[] = {(double)r->served, (double)r->submitted, (double)r->errors,
		(double)r->full, r->window, r->in_flight, r->queued, r->clients, r->capacity[0],
		r->capacity[1], r->mins};

	memcpy(m.value, of, sizeof(of));
	return m;
}

/* Decide which tiers' points end now. A clock that was set, or a pause of many steps, begins anew. */
static void find_ends(struct history *h, double day, bool ends[TIERS], uint32_t number[TIERS])
{
	for (size_t t = 0; t < TIERS; t++) {
		number[t] = (uint32_t)(day / history_tiers[t].step);
		ends[t] = number[t] != h->last[t];
		if (number[t] < h->last[t] || number[t] - h->last[t] > history_tiers[t].n)
			h->last[t] = 0;
	}
}

/* The tenant is not idle: it had a request, or has one. */
static bool is_active(const struct history *h, const struct snapshot_tenant *t)
{
	size_t i = t ? history_find(h, HISTORY_TENANT, t->path) : HISTORY_SERIES;
	const struct base *was;

	if (!t)
		return false;
	if (i == HISTORY_SERIES)
		return t->arrivals > 0;
	was = &h->live[i].base[TIERS - 1];
	return t->queued || t->in_flight || !was->known ||
	       fabs((double)t->arrivals - was->sum[ARRIVED]) > 0.5 ||
	       fabs((double)t->served - was->sum[SERVED]) > 0.5;
}

size_t history_take(struct history *h, const struct snapshot *s, double day)
{
	bool ends[TIERS];
	uint32_t number[TIERS];
	struct sample m = gateway_sample(s);
	size_t lost = 0;

	find_ends(h, day, ends, number);
	for (size_t i = 0; i < HISTORY_SERIES; i++)
		h->live[i].seen = false;
	add_sample(h, &m, ends, number, day);
	for (size_t i = 0; i < s->n_resources; i++) {
		m = resource_sample(&s->resources[i]);
		lost += !add_sample(h, &m, ends, number, day);
	}
	for (int new = 0; new < 2; new ++) /* those that have a series first: they keep it */
		for (size_t i = 0; i < s->n_tenants; i++) {
			const struct snapshot_tenant *t = s->tenants[i];

			if (!is_active(h, t) ||
				(history_find(h, HISTORY_TENANT, t->path) == HISTORY_SERIES) != new)
				continue;
			m = tenant_sample(t);
			lost += !add_sample(h, &m, ends, number, day);
		}
	for (size_t t = 0; t < TIERS; t++)
		if (ends[t])
			h->last[t] = number[t];
	return lost;
}

int history_wrong(struct history *h)
{
	int r = h->wrong;

	h->wrong = 0;
	return r;
}

/* ---- reading */

static const struct point *find_point(const struct series *s, size_t t, uint32_t number)
{
	const struct tier *tier = &history_tiers[t];
	const struct point *p = &s->points[tier->at + number % tier->n];

	return p->number == number ? p : NULL;
}

static void write_point(const struct series *s, const struct point *p, double time, FILE *to)
{
	fprintf(to, "[%.0f", time);
	for (unsigned k = 0; k < history_n_columns[s->kind]; k++) {
		bool percentile = history_columns[s->kind][k].type == PERCENTILE;
		double v = p ? (double)p->value[k] : percentile ? NAN : 0;

		fputs(", ", to);
		if (isfinite(v))
			fprintf(to, "%.7g", v);
		else
			fputs("null", to);
	}
	fputc(']', to);
}

int history_write(const struct history *h, enum history_kind kind, const char *name, double span,
	double day, FILE *to)
{
	size_t i = history_find(h, kind, name), all = history_find(h, HISTORY_GATEWAY, ""), t = 0;
	const char *between = "";
	const struct tier *tier;
	uint32_t last;

	if (i == HISTORY_SERIES || all == HISTORY_SERIES)
		return -ENOENT;
	while (t + 1 < TIERS && history_tiers[t].step * history_tiers[t].n < span)
		t++;
	tier = &history_tiers[t];
	last = (uint32_t)(day / tier->step);
	fprintf(to, "{\"step_s\": %u, \"columns\": [\"time_s\"", tier->step);
	for (unsigned k = 0; k < history_n_columns[kind]; k++)
		fprintf(to, ", \"%s\"", history_columns[kind][k].name);
	fputs("],\n \"points\": [", to);
	for (uint32_t n = (uint32_t)fmin(tier->n - 1, ceil(span / tier->step)) + 1; n-- > 0;) {
		uint32_t number = last - n;

		/* While snapshots were taken, a series without a point was idle. */
		if (number > last || !find_point(&h->series[all], t, number))
			continue;
		fputs(between, to);
		between = ",\n  ";
		write_point(&h->series[i], find_point(&h->series[i], t, number),
			(double)number * tier->step, to);
	}
	fputs("]}\n", to);
	return 0;
}

/* ---- from start to end */

int history_new(const char *folder, struct history **ret, struct weir_err *err)
{
	struct history *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return no_memory(err);
	r = history_map(h, folder, err);
	if (r < 0) {
		history_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; h->live && i < HISTORY_SERIES; i++)
		for (size_t t = 0; t < TIERS; t++)
			free(h->live[i].base[t].hist);
	history_unmap(h);
	free(h);
}
