/* SPDX-License-Identifier: BSD-3-Clause */
/* plan-file: read a plan. A member that is not known is ignored: a newer planner may say more. */
#include "base/no-memory.h"
#include "serve/gateway/plan.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STAGES_MAX 64
#define RATE_MAX   100.0 /* seconds of device time a second */
#define TIME_MAX   1e6   /* s */

struct reading {
	struct gateway_plan *plan;
	struct weir_err *err;
	/* room that is left: for names, of which a file has more than their bytes; stages; and buckets */
	char *names;
	struct gateway_plan_stage *stages, *first;
	struct weir_bucket_spec *specs;
};

static int refuse(struct reading *r, const char *what, const char *why)
{
	return weir_err_set(r->err, -EINVAL, "plan: %s: %s", what, why);
}

static void *take(struct reading *r, size_t n, size_t size)
{
	void *p = arena_take(&r->plan->memory, n + 1, size);

	if (!p)
		no_memory(r->err);
	return p;
}

/* Make room for all that the tenants have. 0 or -ENOMEM. */
static int make_room(struct reading *r, const json_t *tenants, size_t len)
{
	size_t stages = 0, specs = 0;

	for (size_t i = 0; i < json_array_size(tenants); i++) {
		const json_t *list = json_object_get(json_array_get(tenants, i), "stages");

		stages += json_array_size(list);
		for (size_t k = 0; k < json_array_size(list); k++)
			specs += json_array_size(
				json_object_get(json_array_get(list, k), "buckets"));
	}
	r->names = take(r, len, 1);
	r->stages = take(r, stages, sizeof(*r->stages));
	r->specs = take(r, specs, sizeof(*r->specs));
	r->first = r->stages;
	return r->names && r->stages && r->specs ? 0 : -ENOMEM;
}

/* Copy a text that is not empty; NULL with a message. like: the same text may be used, or NULL. */
static const char *read_text(struct reading *r, const json_t *j, const char *what, const char *like)
{
	const char *text = json_string_value(j), *copy = r->names;

	if (!text || !*text || strlen(text) != json_string_length(j)) {
		refuse(r, what, "must be a text");
		return NULL;
	}
	if (like && strcmp(like, text) == 0)
		return like;
	r->names = stpcpy(r->names, text) + 1;
	return copy;
}

static int read_digest(
	struct reading *r, const json_t *j, const char *what, char ret[GATEWAY_DIGEST])
{
	const char *text = json_string_value(j);

	if (!text || strlen(text) != GATEWAY_DIGEST - 1 ||
		strspn(text, "0123456789abcdef") != GATEWAY_DIGEST - 1)
		return refuse(r, what, "must be a SHA-256 in hex");
	memcpy(ret, text, GATEWAY_DIGEST);
	return 0;
}

static bool within(const json_t *j, double above, double most)
{
	double x = json_number_value(j);

	return json_is_number(j) && isfinite(x) && x > above && x <= most;
}

/* ---- stages */

static int read_bucket(struct reading *r, const json_t *j, bool time, struct weir_bucket_spec *ret)
{
	const json_t *rate = json_array_get(j, 0), *size = json_array_get(j, 1);
	double unit = time ? 1e9 : 1;

	if (json_array_size(j) != 2 || !within(rate, 0, time ? RATE_MAX : POLICY_RATE_MAX) ||
		!within(size, 0, time ? TIME_MAX : POLICY_BUCKET_MAX))
		return refuse(r, "buckets", "must be pairs of a rate and a size, both above 0");
	*ret = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
		.unit = time ? WEIR_UNIT_TIME : WEIR_UNIT_BYTES,
		.rate = fmax(unit * json_number_value(rate), POLICY_RATE_MIN),
		.size = fmax(ceil(unit * json_number_value(size)), 1)};
	return 0;
}

static int read_stage(struct reading *r, const json_t *j, struct gateway_plan_stage *to)
{
	const json_t *priority = json_object_get(j, "priority"),
		     *list = json_object_get(j, "buckets");
	const char *unit = json_string_value(json_object_get(j, "unit"));
	struct weir_bucket_spec *specs = r->specs;
	size_t n = json_array_size(list);
	int rc = 0;

	to->name = read_text(r, json_object_get(j, "name"), "name of a stage",
		to > r->first ? to[-1].name : NULL);
	if (!to->name)
		return -EINVAL;
	if (!unit || (strcmp(unit, "time") != 0 && strcmp(unit, "bytes") != 0))
		return refuse(r, "unit", "must be time or bytes");
	if (!json_is_integer(priority) || json_integer_value(priority) < 0 ||
		json_integer_value(priority) > 63)
		return refuse(r, "priority", "must be a whole number from 0 to 63");
	if (n < 1 || n > POLICY_CLAIM_PAIRS)
		return weir_err_set(r->err, -EINVAL,
			"plan: buckets: must be 1 to %d pairs at a stage", POLICY_CLAIM_PAIRS);
	to->time = unit[0] == 't';
	r->specs += n;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = read_bucket(r, json_array_get(list, i), to->time, &specs[i]);
	to->claim = (struct policy_claim){(int)json_integer_value(priority), (unsigned)n, specs};
	return rc;
}

static int read_stages(struct reading *r, const json_t *list, struct gateway_plan_tenant *to)
{
	int rc = 0;

	to->n_stages = json_array_size(list);
	if (to->n_stages < 1 || to->n_stages > STAGES_MAX)
		return refuse(r, "stages", "must be a list of 1 to 64");
	to->stages = r->stages;
	r->stages += to->n_stages;
	for (size_t i = 0; rc == 0 && i < to->n_stages; i++) {
		rc = read_stage(r, json_array_get(list, i), &to->stages[i]);
		for (size_t k = 0; rc == 0 && k < i; k++)
			if (strcmp(to->stages[k].name, to->stages[i].name) == 0)
				rc = refuse(r, to->stages[i].name, "stands twice in one path");
	}
	return rc;
}

/* ---- tenants */

static int read_tenant(struct reading *r, const json_t *j, struct gateway_plan_tenant *to)
{
	const json_t *slo = json_object_get(j, "slo"), *bound = json_object_get(j, "bound");
	const json_t *percentile = json_object_get(slo, "percentile");
	const json_t *latency = json_object_get(slo, "latency");

	to->path = read_text(r, json_object_get(j, "name"), "name of a tenant", NULL);
	if (!to->path)
		return -EINVAL;
	if (!within(percentile, 0, 100) || !within(latency, 0, TIME_MAX))
		return refuse(r, to->path, "slo must have a percentile and a latency");
	if (!json_is_null(bound) && !within(bound, 0, TIME_MAX))
		return refuse(r, to->path, "bound must be a time, or null");
	to->percentile = json_number_value(percentile);
	to->latency = json_number_value(latency);
	to->bound = json_is_null(bound) ? INFINITY : json_number_value(bound);
	return read_stages(r, json_object_get(j, "stages"), to);
}

static int by_path(const void *a, const void *b)
{
	const struct gateway_plan_tenant *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int read_tenants(struct reading *r, const json_t *list)
{
	struct gateway_plan *p = r->plan;
	int rc = 0;

	if (!json_is_array(list) || json_array_size(list) > POLICY_TENANTS_MAX)
		return refuse(r, "tenants", "must be a list");
	p->n_tenants = json_array_size(list);
	p->tenants = take(r, p->n_tenants, sizeof(*p->tenants));
	if (!p->tenants)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < p->n_tenants; i++)
		rc = read_tenant(r, json_array_get(list, i), &p->tenants[i]);
	if (rc < 0)
		return rc;
	qsort(p->tenants, p->n_tenants, sizeof(*p->tenants), by_path);
	for (size_t i = 1; i < p->n_tenants; i++)
		if (by_path(&p->tenants[i - 1], &p->tenants[i]) == 0)
			return refuse(r, p->tenants[i].path, "stands twice");
	return 0;
}

const struct gateway_plan_tenant *gateway_plan_tenant(
	const struct gateway_plan *p, const char *path)
{
	const struct gateway_plan_tenant like = {.path = path};

	return p && p->n_tenants ? bsearch(&like, p->tenants, p->n_tenants, sizeof(like), by_path)
				 : NULL;
}

/* ---- all of it */

static int read_profiles(struct reading *r, json_t *map)
{
	struct gateway_plan *p = r->plan;
	const char *key;
	json_t *value;
	int rc = 0;

	if (!json_is_object(map))
		return refuse(r, "profiles", "must be a map");
	p->profiles = take(r, json_object_size(map), sizeof(*p->profiles));
	if (!p->profiles)
		return -ENOMEM;
	json_object_foreach(map, key, value)
	{
		struct gateway_plan_profile *to = &p->profiles[p->n_profiles];

		if (rc == 0)
			rc = read_digest(r, value, key, to->digest);
		if (rc == 0 && !(to->resource = arena_text(&p->memory, key)))
			rc = no_memory(r->err);
		p->n_profiles += rc == 0;
	}
	return rc;
}

static int read_root(struct reading *r, const json_t *root, size_t len)
{
	const json_t *version = json_object_get(root, "version");
	const json_t *made = json_object_get(root, "made");
	int rc;

	if (!json_is_object(root))
		return weir_err_set(r->err, -EINVAL, "plan: must be an object in JSON");
	if (json_integer_value(version) != 1)
		return refuse(r, "version", "must be 1");
	rc = make_room(r, json_object_get(root, "tenants"), len);
	if (rc == 0)
		rc = read_digest(r, json_object_get(root, "policy"), "policy", r->plan->policy);
	if (rc == 0)
		rc = read_profiles(r, json_object_get(root, "profiles"));
	if (rc == 0 && made && !(r->plan->made = read_text(r, made, "made", NULL)))
		rc = -EINVAL;
	return rc < 0 ? rc : read_tenants(r, json_object_get(root, "tenants"));
}

int gateway_plan_read(const char *text, size_t len, struct gateway_plan **ret_plan,
	struct json_t **ret_json, struct weir_err *err)
{
	struct gateway_plan *p = calloc(1, sizeof(*p));
	struct reading r = {.plan = p, .err = err};
	json_error_t fault;
	json_t *root = p ? json_loadb(text, len, JSON_REJECT_DUPLICATES, &fault) : NULL;
	int rc;

	if (!p)
		return no_memory(err);
	atomic_init(&p->references, 1);
	p->made = "";
	p->text = malloc(len + 1);
	if (!p->text)
		rc = no_memory(err);
	else if (!root)
		rc = weir_err_set(
			err, -EINVAL, "plan:%d:%d: %s", fault.line, fault.column, fault.text);
	else
		rc = read_root(&r, root, len);
	if (rc < 0 || !ret_json)
		json_decref(root);
	if (rc < 0) {
		gateway_plan_drop(p);
		return rc;
	}
	memcpy(p->text, text, len);
	p->text[len] = 0;
	p->len = len;
	*ret_plan = p;
	if (ret_json)
		*ret_json = root;
	return 0;
}

struct gateway_plan *gateway_plan_hold(struct gateway_plan *p)
{
	if (p)
		atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
	return p;
}

void gateway_plan_drop(struct gateway_plan *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
		return;
	arena_free(&p->memory);
	free(p->text);
	free(p);
}
