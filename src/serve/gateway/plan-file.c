/* SPDX-License-Identifier: BSD-3-Clause */
/* plan-file: read a plan. A member that is not known is ignored: a newer planner may say more. */
#include "base/no-memory.h"
#include "control/meister/plan.h"
#include "serve/gateway/plan.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STAGES_MAX 64
#define TIME_MAX   1e6 /* s */

struct reading {
	struct gateway_plan *plan;
	struct weir_err *err;
	const char *text, *at, *end; /* at: what is not read yet */
	unsigned given;              /* members, as in member_names */
	/* room that is left; a file has more bytes than there are names, stages and buckets in it */
	char *names;
	struct gateway_plan_stage *stages, *first;
	struct weir_bucket_spec *specs;
};
/* The least bytes of a tenant, a stage and a pair: [1,1], */
#define TENANT_LEAST 64
#define STAGE_LEAST  48
#define PAIR_LEAST   6

static int refuse(struct reading *r, const char *what, const char *why)
{
	return weir_err_set(r->err, -EINVAL, "plan: %s: %s", what, why);
}

static void *take_memory(struct reading *r, size_t n, size_t size)
{
	void *p = arena_take(&r->plan->memory, n + 1, size);

	if (!p)
		no_memory(r->err);
	return p;
}

/* Make room for all that so many bytes can have; pages that are not used cost nothing. 0 or -ENOMEM. */
static int make_room(struct reading *r, size_t len)
{
	r->names = take_memory(r, len, 1);
	r->stages = r->first = take_memory(r, len / STAGE_LEAST + 1, sizeof(*r->stages));
	r->specs = take_memory(r, len / PAIR_LEAST + POLICY_CLAIM_PAIRS, sizeof(*r->specs));
	r->plan->tenants = take_memory(r, len / TENANT_LEAST + 1, sizeof(*r->plan->tenants));
	return r->names && r->stages && r->specs && r->plan->tenants ? 0 : -ENOMEM;
}

/* ---- the text */

static int refuse_here(struct reading *r, const char *why)
{
	int line = 1;

	for (const char *c = r->text; c < r->at; c++)
		line += *c == '\n';
	return weir_err_set(r->err, -EINVAL, "plan:%d: %s", line, why);
}

/* Return the next character that is no space; 0: the end, or a NUL. */
static char next(struct reading *r)
{
	while (r->at < r->end && memchr(" \t\r\n", *r->at, 4))
		r->at++;
	return r->at < r->end ? *r->at : 0;
}

/* Read one value; NULL with a message. */
static json_t *value(struct reading *r)
{
	json_error_t fault;
	json_t *j = json_loadb(r->at, (size_t)(r->end - r->at),
		JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &fault);

	if (j)
		r->at += fault.position;
	else
		refuse_here(r, fault.text);
	return j;
}

/* After an element: return 1 if another one follows, 0 at the end, or -EINVAL. */
static int more(struct reading *r, char end)
{
	char c = next(r);

	if (c != ',' && c != end)
		return refuse_here(r, "',' or the end of a list or map expected");
	r->at++;
	return c == ',';
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

/* Refuse a number of a pair that is not above 0 and at most `most`. */
static int check_number(struct reading *r, const char *tenant, const char *stage, const char *what,
	const json_t *j, double most)
{
	if (within(j, 0, most))
		return 0;
	return weir_err_set(r->err, -EINVAL,
		"plan: tenant %s at %s: buckets: the %s must be a number above 0, %.6g at most",
		tenant, stage, what, most);
}

static int read_bucket(struct reading *r, const char *tenant, const json_t *j,
	const struct gateway_plan_stage *of, struct weir_bucket_spec *ret)
{
	const json_t *rate = json_array_get(j, 0), *size = json_array_get(j, 1);
	double unit = of->time ? 1e9 : 1;

	if (json_array_size(j) != 2)
		return weir_err_set(r->err, -EINVAL,
			"plan: tenant %s at %s: buckets: must be pairs of a rate and a size",
			tenant, of->name);
	if (check_number(r, tenant, of->name, "rate", rate,
		    of->time ? PLAN_RATE_MOST : PLAN_RATE_GATE) < 0 ||
		check_number(r, tenant, of->name, "size", size,
			of->time ? TIME_MAX : POLICY_BUCKET_MAX) < 0)
		return -EINVAL;
	*ret = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
		.unit = of->time ? WEIR_UNIT_TIME : WEIR_UNIT_BYTES,
		.rate = fmax(unit * json_number_value(rate), POLICY_RATE_MIN),
		.size = fmax(ceil(unit * json_number_value(size)), 1)};
	return 0;
}

static int read_stage(
	struct reading *r, const char *tenant, const json_t *j, struct gateway_plan_stage *to)
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
		rc = read_bucket(r, tenant, json_array_get(list, i), to, &specs[i]);
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
		rc = read_stage(r, to->path, json_array_get(list, i), &to->stages[i]);
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

/* One after the other: the whole as one value would be ten times as large as its text. */
static int read_list(struct reading *r)
{
	struct gateway_plan *p = r->plan;
	int rc = 1;

	if (next(r) != '[')
		return refuse(r, "tenants", "must be a list");
	r->at++;
	if (next(r) == ']') {
		r->at++;
		return 0;
	}
	while (rc > 0) {
		json_t *j = value(r);

		rc = j ? read_tenant(r, j, &p->tenants[p->n_tenants]) : -EINVAL;
		json_decref(j);
		p->n_tenants += rc == 0;
		if (rc == 0)
			rc = more(r, ']');
	}
	return rc;
}

static int read_tenants(struct reading *r)
{
	struct gateway_plan *p = r->plan;
	int rc = read_list(r);

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
	p->profiles = take_memory(r, json_object_size(map), sizeof(*p->profiles));
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

static const char *const member_names[] = {
	"version", "policy", "profiles", "tenants", "made", NULL};
enum { VERSION, POLICY, PROFILES, TENANTS, MADE };

static int read_value(struct reading *r, unsigned member, json_t *j)
{
	switch (member) {
	case VERSION:
		return json_integer_value(j) == 1 ? 0 : refuse(r, "version", "must be 1");
	case POLICY:
		return read_digest(r, j, "policy", r->plan->policy);
	case PROFILES:
		return read_profiles(r, j);
	case MADE:
		r->plan->made = read_text(r, j, "made", NULL);
		return r->plan->made ? 0 : -EINVAL;
	default:
		return 0;
	}
}

static int read_member(struct reading *r)
{
	json_t *key = value(r), *j;
	const char *name = json_string_value(key);
	unsigned member = 0;
	int rc = 0;

	while (name && member_names[member] && strcmp(member_names[member], name) != 0)
		member++;
	json_decref(key);
	if (!key)
		return -EINVAL;
	if (!name || next(r) != ':')
		return refuse_here(r, "a name and ':' expected");
	r->at++;
	next(r);
	if (member <= MADE && r->given >> member & 1)
		return refuse(r, member_names[member], "stands twice");
	r->given |= 1u << member;
	if (member == TENANTS)
		return read_tenants(r);
	j = value(r);
	rc = j ? read_value(r, member, j) : -EINVAL;
	json_decref(j);
	return rc;
}

static int read_root(struct reading *r)
{
	int rc = 1;

	if (next(r) != '{')
		return refuse_here(r, "must be an object in JSON");
	r->at++;
	for (next(r); rc > 0;) {
		rc = read_member(r);
		if (rc == 0)
			rc = more(r, '}');
		next(r);
	}
	if (rc == 0 && r->at != r->end)
		return refuse_here(r, "the end expected");
	for (unsigned i = 0; rc == 0 && i < MADE; i++)
		if (!(r->given >> i & 1))
			rc = refuse(r, member_names[i], "is missing");
	return rc;
}

int gateway_plan_read(
	const char *text, size_t len, struct gateway_plan **ret_plan, struct weir_err *err)
{
	struct gateway_plan *p = calloc(1, sizeof(*p));
	struct reading r = {.plan = p, .err = err, .text = text, .at = text, .end = text + len};
	int rc;

	if (!p)
		return no_memory(err);
	atomic_init(&p->references, 1);
	p->made = "";
	p->text = malloc(len + 1);
	rc = p->text ? make_room(&r, len) : no_memory(err);
	if (rc == 0)
		rc = read_root(&r);
	if (rc < 0) {
		gateway_plan_drop(p);
		return rc;
	}
	memcpy(p->text, text, len);
	p->text[len] = 0;
	p->len = len;
	*ret_plan = p;
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
