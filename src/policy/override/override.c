/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  `key: value` is a YAML document of one line; the readers of the file read it into a copy
 *         of the one tenant or resource, which replaces the original if all went well.
 */
#include "base/no-memory.h"
#include "policy/override/impl.h"
#include "policy/plan.h"
#include "policy/by-size.h"
#include "policy/each.h"
#include "policy/impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
	"weight", "min", "max", "burst", "slo", "depth", "capacity", "enforce", NULL};

enum what policy_override_what(const char *name)
{
	int i = 0;

	while (names[i] && strcmp(names[i], name) != 0)
		i++;
	return (enum what)i;
}

/* ---- keys */

static int find_resource(const struct weir_policy *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (strlen(p->resources[i].name) == len &&
			memcmp(p->resources[i].name, name, len) == 0)
			return (int)i;
	return -1;
}

/* By the index: a comparison of two policies looks up every key of every tenant. */
static int find_tenant(const struct weir_policy *p, const char *path, size_t len)
{
	char text[POLICY_DEPTH_MAX * 64]; /* names of up to 63 bytes, each with a separator */

	if (len >= sizeof(text))
		return -ENOENT;
	memcpy(text, path, len);
	text[len] = '\0';
	return weir_policy_find(p, text);
}

static int no_such_key(const char *name, struct weir_err *err)
{
	const char *near = weir_err_near(name, names);

	return weir_err_set(err, -ENOENT, "no key '%s'%s%s%s", name,
		near ? " (did you mean '" : " (weight, min, max, burst, slo, depth, capacity",
		near ? near : "", near ? "'?)" : ")");
}

int policy_override_find(
	const struct weir_policy *p, const char *key, struct target *ret, struct weir_err *err)
{
	const char *dot = strrchr(key, '.');
	size_t len = dot ? (size_t)(dot - key) : 0;
	struct target t = {policy_override_what(dot ? dot + 1 : key), 0};

	if (!dot) {
		if (t.what != ENFORCE)
			return weir_err_set(err, -ENOENT,
				"'%s' is not TENANT.KEY, RESOURCE.KEY or enforce", key);
	} else if (strstr(key, ".net.")) {
		return weir_err_set(err, -ENOENT,
			"'%s' is of a link: set it at the shaper, by --socket "
			"/run/weir-shape/api.sock",
			key);
	} else if (t.what >= ENFORCE) {
		return no_such_key(dot + 1, err);
	} else if (t.what >= DEPTH) {
		t.index = find_resource(p, key, len);
		if (t.index < 0)
			return weir_err_set(err, -ENOENT, "no resource '%.*s'", (int)len, key);
	} else {
		t.index = find_tenant(p, key, len);
		if (t.index < 0)
			return weir_err_set(err, -ENOENT,
				"no tenant '%.*s' (a path is written 'parent/child')", (int)len,
				key);
	}
	*ret = t;
	return 0;
}

/* ---- values in */

static bool is_none(const char *value)
{
	return strcmp(value, "none") == 0;
}

/* Give values that were set the place of their tenant or resource, for messages about both. */
static void place(struct weir_limit *limits, unsigned n, struct weir_place at)
{
	for (unsigned i = 0; i < n; i++)
		limits[i].at = at;
}

/* Return true if the limit was made of one by size. */
static bool was_by_size(const struct weir_tenant *t, const struct weir_limit *max)
{
	for (unsigned i = 0; i < t->n_max_by_size; i++)
		if (t->max_by_size[i].unit == max->unit && t->max_by_size[i].ops == max->ops)
			return true;
	return false;
}

/* Keep the bursts of maxes by size for new ones below them. A size has decided which was in force: the others are dropped. */
static void keep_bursts_by_size(const struct weir_tenant *old, struct weir_tenant *t)
{
	for (unsigned i = 0; i < old->n_max_by_size; i++)
		for (unsigned k = 0; k < t->n_max; k++) {
			const struct weir_by_size *was = &old->max_by_size[i];
			struct weir_limit *is = &t->max[k];

			if (is->unit != was->unit || is->ops != was->ops ||
				was->burst_rate <= is->rate)
				continue;
			is->burst_rate = was->burst_rate;
			is->burst_for = was->burst_for;
		}
}

/* Keep the bursts of a max. */
static void keep_bursts(struct policy_reading *r, yamldoc_node n, const struct weir_tenant *old,
	struct weir_tenant *t)
{
	for (unsigned i = 0; i < old->n_max; i++) {
		const struct weir_limit *was = &old->max[i];
		struct weir_limit *is = NULL;
		char burst[32];

		if (was_by_size(old, was))
			continue;
		for (unsigned k = 0; k < t->n_max; k++)
			if (t->max[k].unit == was->unit && t->max[k].ops == was->ops)
				is = &t->max[k];
		if (was->burst_rate <= 0)
			continue;
		weir_units_show_rate(
			(struct weir_rate){was->burst_rate, was->unit}, burst, sizeof(burst));
		if (!is || is->rate >= was->burst_rate) {
			policy_refuse(
				r, n, "there is a burst of %s, which needs a max below it", burst);
			return;
		}
		is->burst_rate = was->burst_rate;
		is->burst_for = was->burst_for;
	}
}

static void read_max(struct policy_reading *r, yamldoc_node n, bool none, struct weir_tenant *t)
{
	struct weir_tenant old = *t;

	if (policy_limit_read_tenant(r, none ? (yamldoc_node){0} : n, true, t)) {
		keep_bursts(r, n, &old, t);
		keep_bursts_by_size(&old, t);
	}
	place(t->max, t->n_max, t->at);
}

static void read_tenant(struct policy_reading *r, yamldoc_node doc, enum what what, bool none,
	struct weir_tenant *t)
{
	yamldoc_node n = yamldoc_get(doc, names[what]);

	switch (what) {
	case WEIGHT:
		policy_tenant_read_weight(r, doc, &t->weight);
		break;
	case MIN:
		policy_limit_read_tenant(r, none ? (yamldoc_node){0} : n, false, t);
		place(t->min, t->n_min, t->at);
		break;
	case MAX:
		read_max(r, n, none, t);
		break;
	case BURST:
		policy_limit_read_bursts_tenant(r, none ? (yamldoc_node){0} : n, t);
		break;
	default:
		t->slo_percentile = 0;
		t->slo_latency = t->slo_window = 0;
		t->slo_ops = 0;
		if (!none)
			policy_plan_read_slo(r, n, t);
		t->slo_at = t->at;
	}
}

static void read_resource(
	struct policy_reading *r, yamldoc_node doc, enum what what, struct weir_resource *to)
{
	if (what == DEPTH) {
		policy_resource_read_depth(r, doc, to);
		return;
	}
	to->capacity[0].per_second = to->capacity[1].per_second = 0;
	to->capacity_auto = true;
	policy_resource_read_capacity(r, yamldoc_get(doc, "capacity"), to);
	to->capacity_at = to->at;
}

static void read_value(
	struct policy_reading *r, yamldoc_node doc, struct target t, const char *value)
{
	struct weir_policy *p = r->policy;

	if (!yamldoc_get(doc, names[t.what]).id) {
		policy_refuse(r, doc, "needs a value");
	} else if (t.what == ENFORCE) {
		policy_took(r, yamldoc_bool(doc, "enforce", &p->enforce, &r->err));
	} else if (t.what >= DEPTH) {
		struct weir_resource copy = p->resources[t.index];

		read_resource(r, doc, t.what, &copy);
		if (!r->remarks->n_errors)
			p->resources[t.index] = copy;
	} else {
		struct weir_tenant copy = p->tenants[t.index];

		read_tenant(r, doc, t.what, is_none(value), &copy);
		if (!r->remarks->n_errors)
			p->tenants[t.index] = copy;
	}
}

const char *policy_override_words(const struct weir_err *e)
{
	const char *text = strchr(e->text, ' ');

	return text ? text + 1 : e->text;
}

/* Convert "set:1:6: max.all: must be …" to "prod/db.max.all: must be …". */
static int say(const struct weir_err *from, const char *key, struct weir_err *err)
{
	const char *dot = strrchr(key, '.'), *name = dot ? dot + 1 : key;
	const char *text = policy_override_words(from);
	size_t len = strlen(name);

	if (strncmp(text, name, len) == 0 && text[len] && strchr(":.[", text[len]))
		return weir_err_set(err, -EINVAL, "%.*s%s", (int)(name - key), key, text);
	return weir_err_set(err, -EINVAL, "%s: %s", key, text);
}

static int set(struct weir_policy *p, struct target t, const char *key, const char *value,
	struct weir_policy_remarks *remarks, struct weir_err *err)
{
	struct policy_reading r = {.policy = p, .remarks = remarks};
	size_t room = strlen(names[t.what]) + strlen(value) + 4;
	char *text = malloc(room);
	struct yamldoc *doc;
	int rc = -ENOMEM;

	if (text) {
		snprintf(text, room, "%s: %s\n", names[t.what], value);
		rc = yamldoc_parse(text, strlen(text), "set", &doc, &remarks->errors[0]);
	}
	free(text);
	if (rc == -EINVAL)
		return say(&remarks->errors[0], key, err);
	if (rc == 0) {
		read_value(&r, yamldoc_root(doc), t, value);
		yamldoc_free(doc);
	}
	if (rc < 0 || r.no_memory)
		return no_memory(err);
	return remarks->n_errors ? say(&remarks->errors[0], key, err) : 0;
}

int policy_override_set(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err)
{
	struct weir_policy_remarks *remarks;
	struct target t;
	int rc = policy_override_find(p, key, &t, err);

	if (rc < 0)
		return rc;
	/* Only one line, and no comment: exactly the value is kept and shown. */
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '#')
			return weir_err_set(err, -EINVAL, "%s: must be one line without a #", key);
	remarks = calloc(1, sizeof(*remarks));
	if (!remarks)
		return no_memory(err);
	rc = set(p, t, key, value, remarks, err);
	free(remarks);
	return rc;
}

/* Cut the last name of a path. */
static const char *path_above(char *path)
{
	*strrchr(path, '/') = '\0';
	return path;
}

int policy_override_later(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err)
{
	const char *dot = strrchr(key, '.');
	char path[POLICY_DEPTH_MAX * 64 + 16];
	struct weir_tenant was;
	int of, rc;

	if (!dot || (size_t)(dot - key) >= sizeof(path) || policy_override_what(dot + 1) >= DEPTH)
		return -ENOENT;
	snprintf(path, sizeof(path), "%.*s", (int)(dot - key), key);
	if (!policy_each_absent(p, path))
		return -ENOENT;
	/* Try it at the tenant `others`, with the knobs that the template would give. */
	of = weir_policy_find(p, path_above(path));
	of = p->tenants[of].first_child;
	was = p->tenants[of];
	policy_class_lay(&p->tenants[of], &p->tenants[was.parent].each->leaf, ~0u);
	snprintf(path, sizeof(path), "%s%s", was.path, dot);
	rc = policy_override_set(p, path, value, err);
	p->tenants[of] = was;
	return rc;
}

int policy_override_check(
	struct weir_policy *p, struct weir_policy_remarks *remarks, struct weir_err *err)
{
	struct weir_policy_remarks *own = calloc(1, sizeof(*own));
	struct policy_reading r = {.policy = p, .remarks = remarks ? remarks : own};
	int rc = 0;

	if (!own)
		return no_memory(err);
	r.remarks->n_errors = r.remarks->n_warnings = 0;
	policy_check(&r);
	if (r.no_memory)
		rc = no_memory(err);
	else if (r.remarks->n_errors)
		rc = weir_err_set(err, -EINVAL, "%s", r.remarks->errors[0].text);
	free(own);
	return rc;
}

/* ---- the same? */

static bool same_limit(const struct weir_limit *a, const struct weir_limit *b)
{
	return a->unit == b->unit && a->ops == b->ops && a->rate == b->rate;
}

/* Compare limits in any order. */
static bool same_limits(
	const struct weir_limit *a, unsigned n, const struct weir_limit *b, unsigned m, bool bursts)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < m; k++) {
			bool burst = a[i].burst_rate == b[k].burst_rate &&
				     a[i].burst_for == b[k].burst_for;

			found += bursts ? a[i].unit == b[k].unit && a[i].ops == b[k].ops && burst
					: same_limit(&a[i], &b[k]);
		}
	return n == m && found == n;
}

/* Compare limits by size, in any order; bursts: only their bursts, else all but these. */
static bool same_by_size(const struct weir_by_size *a, unsigned n, const struct weir_by_size *b,
	unsigned m, bool bursts)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < m; k++) {
			bool same = bursts ? a[i].burst_rate == b[k].burst_rate &&
						     a[i].burst_for == b[k].burst_for
					   : a[i].per_gib == b[k].per_gib &&
						     a[i].at_least == b[k].at_least &&
						     a[i].at_most == b[k].at_most;

			found += a[i].unit == b[k].unit && a[i].ops == b[k].ops && same;
		}
	return n == m && found == n;
}

static bool same_maxes(const struct weir_tenant *a, const struct weir_tenant *b, bool bursts)
{
	return same_limits(a->max, a->n_max, b->max, b->n_max, bursts) &&
	       same_by_size(
		       a->max_by_size, a->n_max_by_size, b->max_by_size, b->n_max_by_size, bursts);
}

static bool same_tenant(const struct weir_tenant *a, const struct weir_tenant *b, enum what what)
{
	switch (what) {
	case WEIGHT:
		return a->weight == b->weight;
	case MIN:
		return same_limits(a->min, a->n_min, b->min, b->n_min, false) &&
		       same_by_size(a->min_by_size, a->n_min_by_size, b->min_by_size,
			       b->n_min_by_size, false);
	case MAX:
		return same_maxes(a, b, false);
	case BURST:
		return same_maxes(a, b, true);
	default:
		return a->slo_percentile == b->slo_percentile && a->slo_latency == b->slo_latency &&
		       a->slo_ops == b->slo_ops && a->slo_window == b->slo_window;
	}
}

bool policy_override_same(const struct weir_policy *a, const struct weir_policy *b, const char *key)
{
	struct target x, y;

	if (policy_override_find(a, key, &x, NULL) < 0 ||
		policy_override_find(b, key, &y, NULL) < 0)
		return false;
	if (x.what == ENFORCE)
		return a->enforce == b->enforce;
	if (x.what == DEPTH)
		return a->resources[x.index].depth == b->resources[y.index].depth &&
		       a->resources[x.index].depth_bytes == b->resources[y.index].depth_bytes;
	if (x.what == CAPACITY) {
		const struct weir_rate *c = a->resources[x.index].capacity;
		const struct weir_rate *d = b->resources[y.index].capacity;

		return c[0].per_second == d[0].per_second && c[1].per_second == d[1].per_second;
	}
	return same_tenant(&a->tenants[x.index], &b->tenants[y.index], x.what);
}
