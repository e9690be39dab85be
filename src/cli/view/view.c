/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view: compute rates, percentiles and wait causes from two statuses. view-write.c prints them.
 *
 * METHOD   Counters of the later status minus those of the earlier, found by name; a counter that
 *          went down (the gateway was restarted) counts from 0. For the latency of the interval the
 *          two histograms are subtracted bucket by bucket.
 */
#include "cli/view/view.h"
#include <weir/units.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const view_order_names[VIEW_ORDERS] = {"policy", "iops", "bytes", "p99", "queue"};
static const char *const cause_names[VIEW_CAUSES] = {"window", "max", "above", "tokens", "turn"};

double view_number(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *view_text(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "-";
}

const char *view_seconds(double s, char to[VIEW_SHORT])
{
	double scale;

	if (isnan(s))
		return "-";
	scale = s > 0 ? pow(10, floor(log10(s)) - 2) : 1; /* three digits */
	return weir_units_show_time((weir_time)(round(s / scale) * scale * 1e9), to, VIEW_SHORT);
}

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

/* Return by how much a counter grew. An idle tenant (brief=1) has no counter: 0. */
static double growth(const json_t *before, const json_t *now, const char *key)
{
	double a = view_number(before, key), b = view_number(now, key);

	if (!(b >= 0))
		return 0;
	return a >= 0 && a <= b ? b - a : b;
}

/* Return the part of the requests that passed in the interval that had waited; NAN: not known. */
static double waited(const json_t *before, const json_t *now)
{
	double passed = growth(before, now, "dispatched");

	return passed > 0 && json_object_get(now, "waited") ? growth(before, now, "waited") / passed
							    : NAN;
}

/* ---- entries of the earlier status, by name */

struct past {
	const json_t *list;
	const char *key; /* of the name */
	size_t at;       /* after the last one found */
	const json_t **by_name;
	size_t n; /* of these */
};

static int compare_names(const void *a, const void *b, void *past)
{
	const char *key = ((const struct past *)past)->key;

	return strcmp(str(*(const json_t *const *)a, key), str(*(const json_t *const *)b, key));
}

/*
 * Return the entry of that name, or NULL. Both statuses have the policy's order, so that most
 * entries are at the expected position. The others, after another filter or policy, are found by
 * binary search, so that the cost is not quadratic in the number of tenants.
 */
static const json_t *find_past(struct past *p, const char *name)
{
	const json_t *one = json_array_get(p->list, p->at);
	size_t n = json_array_size(p->list), from = 0, to;

	if (one && strcmp(str(one, p->key), name) == 0) {
		p->at++;
		return one;
	}
	if (!p->by_name && n && (p->by_name = calloc(n, sizeof(*p->by_name)))) {
		for (; p->n < n; p->n++)
			p->by_name[p->n] = json_array_get(p->list, p->n);
		qsort_r(p->by_name, n, sizeof(*p->by_name), compare_names, p);
	}
	for (to = p->n; from < to;) {
		size_t middle = from + (to - from) / 2;
		int order = strcmp(name, str(p->by_name[middle], p->key));

		if (order == 0)
			return p->by_name[middle];
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return NULL;
}

/* ---- latency */

static void add_buckets(struct weir_hist *h, const json_t *latency, bool take_away)
{
	const json_t *list = json_object_get(latency, "buckets");

	for (size_t i = 0; i + 1 < json_array_size(list); i += 2) {
		json_int_t at = json_integer_value(json_array_get(list, i));
		json_int_t n = json_integer_value(json_array_get(list, i + 1));
		if (at < 0 || at >= WEIR_HIST_BUCKETS || n < 0 || n > UINT32_MAX)
			continue;
		if (!take_away)
			h->bucket[at] += (uint32_t)n;
		else
			h->bucket[at] -= h->bucket[at] < n ? h->bucket[at] : (uint32_t)n;
	}
}

static double total_s(const json_t *latency)
{
	double count = view_number(latency, "count"), mean = view_number(latency, "mean_s");

	return count > 0 ? count * mean : 0;
}

void view_latency(const struct view_tenant *t, const char *key, struct weir_hist *ret)
{
	const json_t *before = json_object_get(t->before, key), *now = json_object_get(t->now, key);
	double sum = total_s(now) - total_s(before);

	weir_hist_clear(ret);
	add_buckets(ret, now, false);
	add_buckets(ret, before, true);
	for (size_t i = 0; i < WEIR_HIST_BUCKETS; i++)
		ret->count += ret->bucket[i];
	if (!ret->count)
		return;
	ret->sum = sum > 0 ? (uint64_t)(sum * 1e9) : 0;
	ret->min = 0;
	ret->max = (uint64_t)(view_number(now, "max_s") *
			      1e9); /* since the start: only a bound here */
	ret->max = weir_hist_percentile(ret, 100);
}

static void set_latency(struct view_tenant *t)
{
	struct weir_hist h;

	t->p50 = t->p99 = NAN;
	if (!json_is_object(json_object_get(t->now, "latency")))
		return; /* it never had a request, as most of many tenants */
	view_latency(t, "latency", &h);
	t->p50 = h.count ? (double)weir_hist_percentile(&h, 50) / 1e9 : NAN;
	t->p99 = h.count ? (double)weir_hist_percentile(&h, 99) / 1e9 : NAN;
}

/* ---- tenants */

static void set_tenant(struct view_tenant *t, const json_t *before, const json_t *now, double span)
{
	bool anew = before && view_number(before, "served") > view_number(now, "served");
	const json_t *waits = json_object_get(now, "wait_s"),
		     *shadow = json_object_get(now, "shadow");

	if (anew)
		before = NULL;
	*t = (struct view_tenant){.path = str(now, "path"),
		.leaf = json_is_true(json_object_get(now, "leaf")),
		.weight = view_number(now, "weight"),
		.iops = growth(before, now, "served") / span,
		.bytes = growth(before, now, "bytes") / span,
		.queued = growth(NULL, now, "queued"),
		.oldest = growth(NULL, now, "oldest_wait_s"),
		.in_flight = growth(NULL, now, "in_flight"),
		.clients = growth(NULL, now, "clients"),
		.errors = growth(before, now, "errors"),
		.inside = growth(before, now, "device_s") / span,
		.waited = waited(before, now),
		.low = json_is_object(shadow) ? view_number(shadow, "low") : 0,
		.high = json_is_object(shadow) ? view_number(shadow, "high") : 0,
		.held_by = json_string_value(json_object_get(now, "held_by")),
		.before = before,
		.now = now};
	for (int i = 0; i < VIEW_CAUSES; i++)
		t->wait[i] =
			growth(json_object_get(before, "wait_s"), waits, cause_names[i]) / span;
	set_latency(t);
}

/* ---- resources */

static void set_resource(
	struct view_resource *r, const json_t *before, const json_t *now, double span)
{
	const json_t *capacity = json_object_get(now, "capacity");

	if (before && view_number(before, "served") > view_number(now, "served"))
		before = NULL;
	*r = (struct view_resource){.name = str(now, "name"),
		.back = str(now, "back"),
		.state = str(now, "state"),
		.up = json_is_true(json_object_get(now, "up")),
		.stated = json_is_true(json_object_get(capacity, "stated")),
		.bypassed = json_is_true(json_object_get(now, "bypassed"))
				    ? view_number(now, "bypassed_s")
				    : NAN,
		.window = view_number(now, "window"),
		.window_bytes = view_number(now, "window_bytes"),
		.in_flight = view_number(now, "in_flight"),
		.queued = growth(NULL, now, "queued"),
		.clients = view_number(now, "clients"),
		.full = fmin(growth(before, now, "full_s") / span, 1),
		.iops = growth(before, now, "served") / span,
		.waited = waited(before, now),
		.capacity = {view_number(capacity, "iops"), view_number(capacity, "bytes")},
		.errors = growth(before, now, "errors"),
		.size = view_number(now, "size")};
}

/* ---- parts of resources */

static double iops_of(const struct view *v, const char *resource)
{
	for (size_t i = 0; i < v->n_resources; i++)
		if (strcmp(v->resources[i].name, resource) == 0)
			return v->resources[i].iops;
	return 0;
}

/*
 * Set the part of all requests of its resources that the tenant got, and the part that is due to it there: weights act
 * only within a resource. Of several resources: the mean, by their rates. Without a client nothing is due, and its
 * requests are a part of those of all resources.
 */
static void set_parts(const struct view *v, struct view_tenant *t, double all)
{
	const json_t *at = json_object_get(t->now, "at");
	size_t n = json_array_size(at);
	double iops = 0, due = 0, mean = 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *a = json_array_get(at, i);
		double rate = iops_of(v, str(a, "resource"));

		iops += rate;
		due += rate * view_number(a, "due");
		mean += view_number(a, "due") / (double)n;
	}
	t->due = n == 0 ? NAN : iops > 0 ? due / iops : mean;
	if (n == 0)
		iops = all;
	t->got = iops > 0 ? t->iops / iops : NAN;
}

static void set_all_parts(struct view *v)
{
	double all = 0;

	for (size_t i = 0; i < v->n_resources; i++)
		all += v->resources[i].iops;
	for (size_t i = 0; i < v->n_tenants; i++)
		set_parts(v, &v->tenants[i], all);
}

/* ---- the view */

int view_make(const json_t *before, const json_t *now, struct view *ret)
{
	const json_t *tenants = json_object_get(now, "tenants"),
		     *resources = json_object_get(now, "resources");
	struct past old_tenants = {.list = json_object_get(before, "tenants"), .key = "path"},
		    old_resources = {.list = json_object_get(before, "resources"), .key = "name"};
	struct view v = {.span = view_number(now, before ? "now_s" : "uptime_s")};

	if (!json_is_array(tenants) || !json_is_array(resources) || !(v.span >= 0))
		return -EPROTO;
	if (before)
		v.span -= view_number(before, "now_s");
	if (!(v.span > 0)) /* another machine's clock, or none at all */
		v.span = INFINITY;
	v.n_tenants = json_array_size(tenants);
	v.n_resources = json_array_size(resources);
	v.tenants = calloc(v.n_tenants + 1, sizeof(*v.tenants));
	v.resources = calloc(v.n_resources + 1, sizeof(*v.resources));
	if (!v.tenants || !v.resources) {
		view_free(&v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < v.n_tenants; i++) {
		const json_t *t = json_array_get(tenants, i);
		set_tenant(&v.tenants[i], find_past(&old_tenants, str(t, "path")), t, v.span);
		v.tenants[i].place = i;
	}
	for (size_t i = 0; i < v.n_resources; i++) {
		const json_t *r = json_array_get(resources, i);
		set_resource(&v.resources[i], find_past(&old_resources, str(r, "name")), r, v.span);
	}
	free(old_tenants.by_name);
	free(old_resources.by_name);
	v.idle = growth(NULL, now, "left_out");
	set_all_parts(&v);
	*ret = v;
	return 0;
}

void view_free(struct view *v)
{
	free(v->tenants);
	free(v->resources);
	*v = (struct view){0};
}

/* ---- order: stable, so that rows do not jump */

static double weight_in(const struct view_tenant *t, enum view_order order)
{
	double x = order == VIEW_BY_POLICY  ? -(double)t->place
		   : order == VIEW_BY_IOPS  ? t->iops
		   : order == VIEW_BY_BYTES ? t->bytes
		   : order == VIEW_BY_P99   ? t->p99
					    : t->queued;

	return isnan(x) ? -1 : x;
}

static int by_weight(const void *a, const void *b, void *order)
{
	const struct view_tenant *x = a, *y = b;
	double p = weight_in(x, *(enum view_order *)order),
	       q = weight_in(y, *(enum view_order *)order);

	if (p != q)
		return p > q ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

void view_sort(struct view *v, enum view_order order)
{
	qsort_r(v->tenants, v->n_tenants, sizeof(*v->tenants), by_weight, &order);
}
