/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/by-size.h"
#include "policy/impl.h"
#include "policy/index.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB 1073741824.0

/* ---- reading */

/* Return the length of the rate in "10 iops/GiB", and the bytes of the unit after the last slash; 0: it is not by size. */
static size_t split(const char *text, uint64_t *ret_bytes)
{
	const char *slash = text ? strrchr(text, '/') : NULL;
	struct weir_err ignored;
	char unit[16];

	if (!slash || snprintf(unit, sizeof(unit), "1%s", slash + 1) >= (int)sizeof(unit) ||
		slash[1] == ' ' || weir_units_size(unit, ret_bytes, &ignored) < 0)
		return 0;
	return (size_t)(slash - text);
}

static yamldoc_node rate_of(yamldoc_node n)
{
	return yamldoc_kind(n) == YAMLDOC_MAP ? yamldoc_get(n, "rate") : n;
}

bool policy_size_is(yamldoc_node n)
{
	uint64_t bytes;

	return yamldoc_kind(n) == YAMLDOC_MAP || split(yamldoc_text(n), &bytes) > 0;
}

/* Read at_least or at_most, which must be in the unit of the rate. */
static bool read_bound(struct policy_reading *r, yamldoc_node map, const char *key,
	enum weir_unit unit, double *to)
{
	yamldoc_node n = yamldoc_get(map, key);
	struct weir_rate rate;

	if (!n.id)
		return true;
	if (!policy_limit_read_rate(r, n, yamldoc_text(n), &rate))
		return false;
	if (rate.unit != unit) {
		policy_refuse(r, n, "must be in the unit of the rate");
		return false;
	}
	*to = rate.per_second;
	return true;
}

bool policy_size_read(struct policy_reading *r, yamldoc_node n, struct weir_by_size *ret)
{
	static const char *const keys[] = {"rate", "at_least", "at_most", NULL};
	yamldoc_node from = rate_of(n);
	const char *text = yamldoc_text(from);
	size_t errors = r->remarks->n_errors, len;
	struct weir_rate rate;
	uint64_t bytes = 1;
	char shorter[64];

	*ret = (struct weir_by_size){.at_most = INFINITY, .at = policy_place(r, n)};
	if (yamldoc_kind(n) == YAMLDOC_MAP)
		policy_keys(r, n, keys);
	len = split(text, &bytes);
	if (!len || len >= sizeof(shorter)) {
		policy_refuse(r, from.id ? from : n, "must be a rate by size, as in 3 iops/GiB");
		return false;
	}
	memcpy(shorter, text, len);
	shorter[len] = '\0';
	if (!policy_limit_read_rate(r, from, shorter, &rate))
		return false;
	ret->unit = rate.unit;
	ret->per_gib = rate.per_second * (GIB / (double)bytes);
	read_bound(r, n, "at_least", rate.unit, &ret->at_least);
	read_bound(r, n, "at_most", rate.unit, &ret->at_most);
	if (ret->at_least > ret->at_most)
		policy_refuse(r, yamldoc_get(n, "at_most"), "must not be below at_least");
	return r->remarks->n_errors == errors;
}

char *policy_size_show(const struct weir_by_size *s, char *ret)
{
	char rate[32], least[32], most[32];
	bool more = s->at_least > 0 || s->at_most < INFINITY;

	weir_units_show_rate((struct weir_rate){s->per_gib, s->unit}, rate, sizeof(rate));
	weir_units_show_rate((struct weir_rate){s->at_least, s->unit}, least, sizeof(least));
	weir_units_show_rate((struct weir_rate){s->at_most, s->unit}, most, sizeof(most));
	snprintf(ret, POLICY_SIZE_TEXT, "%s%s/GiB%s%s%s%s%s", more ? "{rate: " : "", rate,
		s->at_least > 0 ? ", at_least: " : "", s->at_least > 0 ? least : "",
		s->at_most < INFINITY ? ", at_most: " : "", s->at_most < INFINITY ? most : "",
		more ? "}" : "");
	return ret;
}

/* ---- is there a size? */

static void check_tenant(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_match *match, unsigned n_match, unsigned by)
{
	const struct weir_by_size *s = t->n_max_by_size   ? t->max_by_size
				       : t->n_min_by_size ? t->min_by_size
							  : NULL;

	if (!s)
		return;
	if (!n_match)
		policy_refuse_at(r, s->at,
			"a limit by size needs a match of one export, or of several by name: "
			"otherwise there is no size");
	for (unsigned k = 0; k < n_match; k++)
		if (!(by & POLICY_BY_EXPORT) &&
			(!match[k].export_ || strpbrk(match[k].export_, "*?["))) {
			policy_refuse_at(r, s->at,
				"a limit by size needs a match that names its export; that in line "
				"%u does not",
				match[k].at.line);
			return;
		}
}

void policy_size_check(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		if (t->each)
			check_tenant(r, &t->each->leaf, t->match, t->n_match, t->each->by);
		if (!t->made) /* its template was checked */
			check_tenant(r, t, t->match, t->each ? 0 : t->n_match, 0);
	}
}

/* ---- rates */

static uint64_t stated(const struct weir_policy *p, const char *name)
{
	int i = policy_index_export(p, name);

	return i >= 0 ? p->exports[i].size : 0;
}

/* Remove the escapes of a pattern without wildcards. */
static const char *plain(const char *pattern, char ret[256])
{
	size_t n = 0;

	for (; *pattern && n < 255; pattern++) {
		pattern += *pattern == '\\' && pattern[1];
		ret[n++] = *pattern;
	}
	ret[n] = '\0';
	return ret;
}

static double size_of(
	const struct weir_policy *p, const struct weir_tenant *t, policy_size_fn *fn, void *arg)
{
	double sum = 0;
	char name[256];

	for (unsigned k = 0; k < t->n_match; k++) {
		const char *of = t->match[k].export_;

		if (of)
			sum += (double)(fn ? fn(arg, plain(of, name)) : stated(p, plain(of, name)));
	}
	return sum;
}

static double clamp(double value, double least, double most)
{
	return fmin(fmax(value, least), most);
}

/* Remove the limits that were made of the list, and add those of the size (0: none). */
static void resolve(const struct weir_by_size *list, unsigned n, double size,
	struct weir_limit *limits, unsigned *n_limits)
{
	for (unsigned i = 0; i < n; i++) {
		const struct weir_by_size *s = &list[i];
		double rate = clamp(clamp(s->per_gib * (size / GIB), s->at_least, s->at_most),
			POLICY_RATE_MIN, POLICY_RATE_MAX);
		bool burst = s->burst_rate > rate;
		unsigned k = 0;

		while (k < *n_limits && (limits[k].unit != s->unit || limits[k].ops != s->ops))
			k++;
		if (k < *n_limits)
			limits[k] = limits[--*n_limits];
		if (size > 0)
			limits[(*n_limits)++] = (struct weir_limit){.unit = s->unit,
				.ops = s->ops,
				.rate = rate,
				.burst_rate = burst ? s->burst_rate : 0,
				.burst_for = burst ? s->burst_for : 0,
				.at = s->at};
	}
}

static bool is_by_size(const struct weir_by_size *list, unsigned n, const struct weir_limit *l)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i].unit == l->unit && list[i].ops == l->ops)
			return true;
	return false;
}

/* Return what the limits of a unit that count for a class add up to: those of reads and writes are part of all. */
static double sum_in(const struct weir_limit *limits, unsigned n, enum weir_unit unit, uint8_t ops)
{
	double own = 0, parts = 0;

	for (unsigned i = 0; i < n; i++) {
		if (limits[i].unit != unit)
			continue;
		if (limits[i].ops == ops)
			own = limits[i].rate;
		else if (ops == WEIR_OPS_ALL)
			parts += limits[i].rate;
	}
	return fmax(own, parts);
}

/* A max by size is at least the min; a min by size at most the max of the same class, or of all. */
static void reconcile(struct weir_tenant *t)
{
	for (unsigned i = 0; i < t->n_max; i++) {
		struct weir_limit *max = &t->max[i];
		double least = sum_in(t->min, t->n_min, max->unit, max->ops);

		if (!is_by_size(t->max_by_size, t->n_max_by_size, max) || max->rate >= least)
			continue;
		max->rate = least;
		if (max->burst_rate <= least)
			max->burst_rate = 0;
	}
	for (unsigned i = 0; i < t->n_min; i++)
		for (unsigned k = 0; k < t->n_max; k++)
			if (is_by_size(t->min_by_size, t->n_min_by_size, &t->min[i]) &&
				t->max[k].unit == t->min[i].unit &&
				(t->max[k].ops == t->min[i].ops || t->max[k].ops == WEIR_OPS_ALL))
				t->min[i].rate = fmin(t->min[i].rate, t->max[k].rate);
}

static bool has_by_size(const struct weir_tenant *t)
{
	return t->n_min_by_size || t->n_max_by_size;
}

void policy_size_resolve(struct weir_policy *p, policy_size_fn *fn, void *arg)
{
	for (size_t i = 0; i < p->n_tenants; i++) {
		struct weir_tenant *t = &p->tenants[i];
		double size;

		if (!has_by_size(t))
			continue;
		size = size_of(p, t, fn, arg);
		resolve(t->min_by_size, t->n_min_by_size, size, t->min, &t->n_min);
		resolve(t->max_by_size, t->n_max_by_size, size, t->max, &t->n_max);
		reconcile(t);
	}
}

bool policy_size_used(const struct weir_policy *p)
{
	for (size_t i = 0; i < p->n_tenants; i++)
		if (has_by_size(&p->tenants[i]) ||
			(p->tenants[i].each && has_by_size(&p->tenants[i].each->leaf)))
			return true;
	for (size_t i = 0; i < p->n_classes; i++)
		if (has_by_size(&p->classes[i].knobs))
			return true;
	return false;
}
