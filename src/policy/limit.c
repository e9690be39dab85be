/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit: the values of min, max and burst.
 *
 *   rate             2k iops | 20 MiB/s
 *                    of min and max of a tenant also by size (policy/by-size.h)
 *   rates            rate | [rate, …]
 *   min, max         rates | {all: rates, reads: rates, writes: rates}
 *   burst            as max, with `rate for time` in the place of a rate
 */
#include "policy/impl.h"
#include <string.h>

static const char *const class_keys[] = {"all", "reads", "writes", NULL};
static const uint8_t class_ops[] = {WEIR_OPS_ALL, WEIR_OPS_READS, WEIR_OPS_WRITES};

/* Called with each rate in turn; returns false if refused. */
typedef bool each_rate(struct policy_reading *r, yamldoc_node n, uint8_t ops, void *arg);

static bool walk_rates(
	struct policy_reading *r, yamldoc_node n, uint8_t ops, each_rate *each, void *arg)
{
	bool good = true;

	if (yamldoc_kind(n) == YAMLDOC_SCALAR || yamldoc_has(n, "rate"))
		return each(r, n, ops, arg);
	if (yamldoc_kind(n) != YAMLDOC_LIST || yamldoc_size(n) == 0) {
		policy_refuse(r, n, "must be a rate, as in 2k iops or 20 MiB/s, or a list of them");
		return false;
	}
	for (size_t i = 0; i < yamldoc_size(n); i++)
		good &= each(r, yamldoc_at(n, i), ops, arg);
	return good;
}

static bool walk_classes(struct policy_reading *r, yamldoc_node n, each_rate *each, void *arg)
{
	size_t errors = r->remarks->n_errors;
	bool good = true;

	if (yamldoc_kind(n) != YAMLDOC_MAP || yamldoc_has(n, "rate"))
		return walk_rates(r, n, WEIR_OPS_ALL, each, arg);
	policy_keys(r, n, class_keys);
	if (yamldoc_map_size(n) == 0)
		policy_refuse(r, n, "has no value; leave the key out if that is intended");
	good = r->remarks->n_errors == errors;
	for (int i = 0; class_keys[i]; i++) {
		yamldoc_node rates = yamldoc_get(n, class_keys[i]);

		if (rates.id)
			good &= walk_rates(r, rates, class_ops[i], each, arg);
	}
	return good;
}

bool policy_limit_read_rate(
	struct policy_reading *r, yamldoc_node n, const char *text, struct weir_rate *ret)
{
	struct weir_err err;

	if (!text) {
		policy_refuse(r, n, "must be a rate, as in 2k iops or 20 MiB/s");
	} else if (weir_units_rate(text, ret, &err) < 0) {
		policy_refuse(r, n, "%s", err.text);
	} else if (ret->unit != WEIR_UNIT_REQUESTS && ret->unit != WEIR_UNIT_BYTES) {
		policy_refuse(r, n, "'%s' is a share of time: must be in iops or bytes", text);
	} else if (!(ret->per_second > 0)) {
		policy_refuse(r, n, "must be more than 0; leave the key out to have none");
	} else if (ret->per_second < POLICY_RATE_MIN || ret->per_second > POLICY_RATE_MAX) {
		policy_refuse(r, n, "'%s' is not between 1/1024 and 2·10¹¹ a second", text);
	} else {
		return true;
	}
	return false;
}

static struct weir_limit *find(
	struct weir_limit *limits, unsigned n, enum weir_unit unit, uint8_t ops)
{
	for (unsigned i = 0; i < n; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there are n */
		if (limits[i].unit == unit && limits[i].ops == ops)
			return &limits[i];
	return NULL;
}

static struct weir_by_size *find_by_size(
	struct weir_by_size *limits, unsigned n, enum weir_unit unit, uint8_t ops)
{
	for (unsigned i = 0; i < n; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there are n */
		if (limits[i].unit == unit && limits[i].ops == ops)
			return &limits[i];
	return NULL;
}

static const char *unit_name(enum weir_unit unit)
{
	return unit == WEIR_UNIT_BYTES ? "bytes" : "iops";
}

static const char *ops_name(uint8_t ops)
{
	return ops == WEIR_OPS_READS ? "reads" : ops == WEIR_OPS_WRITES ? "writes" : "all requests";
}

/* ---- min, max, capacity */

struct limits {
	struct weir_limit *at;
	unsigned n;
	const char *what;
	struct weir_by_size *by_size; /* NULL: such a limit is refused */
	unsigned n_by_size;
};

static bool add_limit(struct policy_reading *r, yamldoc_node n, uint8_t ops, void *arg)
{
	struct limits *l = arg;
	bool by_size = l->by_size && policy_size_is(n);
	struct weir_by_size s = {0};
	struct weir_rate rate;

	if (by_size ? !policy_size_read(r, n, &s)
		    : !policy_limit_read_rate(r, n, yamldoc_text(n), &rate))
		return false;
	if (by_size)
		rate.unit = s.unit;
	if (find(l->at, l->n, rate.unit, ops) ||
		find_by_size(l->by_size, l->n_by_size, rate.unit, ops)) {
		policy_refuse(r, n, "a second %s in %s for %s", l->what, unit_name(rate.unit),
			ops_name(ops));
		return false;
	}
	if (by_size) {
		s.ops = ops;
		l->by_size[l->n_by_size++] = s;
		return true;
	}
	l->at[l->n++] = (struct weir_limit){
		.unit = rate.unit, .ops = ops, .rate = rate.per_second, .at = policy_place(r, n)};
	return true;
}

bool policy_limit_read(struct policy_reading *r, yamldoc_node n, const char *what,
	struct weir_limit *limits, unsigned *n_limits)
{
	struct limits l = {limits, 0, what, NULL, 0};
	bool good = !n.id || walk_classes(r, n, add_limit, &l);

	*n_limits = l.n;
	return good;
}

/* Put limits by size into the policy's memory. */
static const struct weir_by_size *keep(
	struct policy_reading *r, const struct weir_by_size *limits, unsigned n)
{
	struct weir_by_size *kept = n ? policy_alloc(r, n * sizeof(*kept)) : NULL;

	return kept ? memcpy(kept, limits, n * sizeof(*kept)) : NULL;
}

bool policy_limit_read_tenant(
	struct policy_reading *r, yamldoc_node n, bool max, struct weir_tenant *t)
{
	struct weir_by_size by_size[WEIR_LIMITS];
	struct limits l = {max ? t->max : t->min, 0, max ? "max" : "min", by_size, 0};
	bool good = !n.id || walk_classes(r, n, add_limit, &l);
	const struct weir_by_size *kept = keep(r, by_size, l.n_by_size);

	*(max ? &t->n_max : &t->n_min) = l.n;
	*(max ? &t->max_by_size : &t->min_by_size) = kept;
	*(max ? &t->n_max_by_size : &t->n_min_by_size) = kept ? l.n_by_size : 0;
	return good;
}

/* ---- burst */

/* Split "20k iops for 30s" into rate and time. */
static bool split_burst(
	struct policy_reading *r, yamldoc_node n, struct weir_rate *ret_rate, weir_time *ret_for)
{
	const char *text = yamldoc_text(n), *middle = text ? strstr(text, " for ") : NULL;
	struct weir_err err;
	char rate[64];

	if (!middle || (size_t)(middle - text) >= sizeof(rate)) {
		policy_refuse(r, n, "must be a rate and a time, as in 20k iops for 30s");
		return false;
	}
	memcpy(rate, text, (size_t)(middle - text));
	rate[middle - text] = '\0';
	if (!policy_limit_read_rate(r, n, rate, ret_rate))
		return false;
	if (weir_units_time(middle + 5, ret_for, &err) < 0) {
		policy_refuse(r, n, "%s", err.text);
		return false;
	}
	/* A burst of a day is a max, not a burst. */
	if (*ret_for <= 0 || *ret_for > 24 * 3600 * WEIR_SEC) {
		policy_refuse(r, n, "the time of a burst must be more than 0 and at most 24h");
		return false;
	}
	return true;
}

static bool set_burst(struct policy_reading *r, yamldoc_node n, struct weir_rate rate,
	weir_time span, double most, double *ret_rate, weir_time *ret_for)
{
	char its[32], max[32];

	if (rate.per_second <= most) {
		weir_units_show_rates(
			rate, (struct weir_rate){most, rate.unit}, its, max, sizeof(its));
		policy_refuse(r, n, "a burst must be more than the max, %s", max);
	} else if ((rate.per_second - most) * ((double)span / WEIR_SEC) > POLICY_BUCKET_MAX) {
		policy_refuse(r, n, "too large: use a lower rate or a shorter time");
	} else {
		*ret_rate = rate.per_second;
		*ret_for = span;
		return true;
	}
	return false;
}

static bool add_burst(struct policy_reading *r, yamldoc_node n, uint8_t ops, void *arg)
{
	struct limits *l = arg;
	struct weir_by_size *by_size;
	struct weir_limit *max;
	struct weir_rate rate;
	weir_time span;

	if (!split_burst(r, n, &rate, &span))
		return false;
	max = find(l->at, l->n, rate.unit, ops);
	by_size = find_by_size(l->by_size, l->n_by_size, rate.unit, ops);
	if (!max && !by_size)
		policy_refuse(r, n, "a burst in %s for %s needs a max in %s for the same",
			unit_name(rate.unit), ops_name(ops), unit_name(rate.unit));
	else if ((max ? max->burst_rate : by_size->burst_rate) > 0)
		policy_refuse(
			r, n, "a second burst in %s for %s", unit_name(rate.unit), ops_name(ops));
	else if (max)
		return set_burst(r, n, rate, span, max->rate, &max->burst_rate, &max->burst_for);
	else
		return set_burst(r, n, rate, span, by_size->at_least, &by_size->burst_rate,
			&by_size->burst_for);
	return false;
}

void policy_limit_read_bursts(
	struct policy_reading *r, yamldoc_node n, struct weir_limit *max, unsigned n_max)
{
	struct limits l = {max, n_max, "burst", NULL, 0};

	if (n.id)
		walk_classes(r, n, add_burst, &l);
}

void policy_limit_read_bursts_tenant(
	struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	struct weir_by_size by_size[WEIR_LIMITS];
	struct limits l = {t->max, t->n_max, "burst", by_size, t->n_max_by_size};

	for (unsigned i = 0; i < t->n_max; i++) {
		t->max[i].burst_rate = 0;
		t->max[i].burst_for = 0;
	}
	for (unsigned i = 0; i < t->n_max_by_size; i++) {
		by_size[i] = t->max_by_size[i];
		by_size[i].burst_rate = 0;
		by_size[i].burst_for = 0;
	}
	if (n.id)
		walk_classes(r, n, add_burst, &l);
	if (t->n_max_by_size)
		t->max_by_size = keep(r, by_size, t->n_max_by_size);
}
