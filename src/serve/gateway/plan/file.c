/* SPDX-License-Identifier: BSD-3-Clause */
/* file: read a plan. A member that is not known is ignored: a newer planner may say more. */
#include "base/no-memory.h"
#include "control/meister/plan.h"
#include "serve/gateway/plan/values.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STAGES_MAX 64
#define TIME_MAX   1e6 /* s */

/* The least bytes of a tenant, a stage and a pair: [1,1], */
#define TENANT_LEAST 64
#define STAGE_LEAST  48
#define PAIR_LEAST   6

static void *take_memory(struct plan_reading *r, size_t n, size_t size)
{
	void *p = arena_take(&r->plan->memory, n + 1, size);

	if (!p)
		no_memory(r->err);
	return p;
}

/* Make room for all that so many bytes can have; pages that are not used cost nothing. 0 or -ENOMEM. */
static int make_room(struct plan_reading *r, size_t len)
{
	r->names = take_memory(r, len, 1);
	r->stages = r->first = take_memory(r, len / STAGE_LEAST + 1, sizeof(*r->stages));
	r->specs = take_memory(r, len / PAIR_LEAST + POLICY_CLAIM_PAIRS, sizeof(*r->specs));
	r->plan->tenants = take_memory(r, len / TENANT_LEAST + 1, sizeof(*r->plan->tenants));
	return r->names && r->stages && r->specs && r->plan->tenants ? 0 : -ENOMEM;
}

/* Copy a text that is not empty; NULL with a message. */
static const char *read_text(struct plan_reading *r, const json_t *j, const char *what)
{
	const char *text = json_string_value(j), *copy = r->names;

	if (!text || !*text || strlen(text) != json_string_length(j)) {
		plan_refuse(r, what, "must be a text");
		return NULL;
	}
	r->names = stpcpy(r->names, text) + 1;
	return copy;
}

static int read_digest(
	struct plan_reading *r, const json_t *j, const char *what, char ret[GATEWAY_DIGEST])
{
	const char *text = json_string_value(j);

	if (!text || strlen(text) != GATEWAY_DIGEST - 1 ||
		strspn(text, "0123456789abcdef") != GATEWAY_DIGEST - 1)
		return plan_refuse(r, what, "must be a SHA-256 in hex");
	memcpy(ret, text, GATEWAY_DIGEST);
	return 0;
}

static bool within(double x, double above, double most)
{
	return isfinite(x) && x > above && x <= most;
}

/* ---- stages */

/* Refuse a number of a pair that is not above 0 and at most `most`. */
static int check_number(struct plan_reading *r, const char *tenant, const char *stage,
	const char *what, double x, double most)
{
	if (within(x, 0, most))
		return 0;
	return weir_err_set(r->err, -EINVAL,
		"plan: tenant %s at %s: buckets: the %s must be a number above 0, %.6g at most",
		tenant, stage, what, most);
}

/* A stage as it is read: its pairs are checked when unit, names and all are known. */
struct stage_reading {
	struct gateway_plan_stage *to;
	struct weir_bucket_spec *specs;
	const char *like; /* a name that may be used again; NULL: none */
	size_t n;         /* of specs */
	unsigned numbers; /* of the pair that is read */
	double priority;
	bool whole, unit, odd; /* odd: a pair that is none */
};

static int read_pair_number(struct plan_reading *r, void *to)
{
	struct stage_reading *s = to;
	double x;
	bool whole;
	int rc = plan_number(r, &x, &whole);

	if (s->n < POLICY_CLAIM_PAIRS && s->numbers == 0)
		s->specs[s->n].rate = x;
	else if (s->n < POLICY_CLAIM_PAIRS && s->numbers == 1)
		s->specs[s->n].size = x;
	s->numbers++;
	return rc;
}

static int read_pair(struct plan_reading *r, void *to)
{
	struct stage_reading *s = to;
	bool is_list;
	int rc;

	s->numbers = 0;
	rc = plan_list(r, read_pair_number, s, &is_list);
	s->odd |= !is_list || s->numbers != 2;
	s->n++;
	return rc;
}

static const char *const stage_keys[] = {"name", "unit", "priority", "buckets", NULL};

static int read_stage_member(struct plan_reading *r, unsigned key, void *to)
{
	struct stage_reading *s = to;
	bool is_list;
	int rc;

	if (key == 2)
		return plan_number(r, &s->priority, &s->whole);
	if (key == 3)
		return plan_list(r, read_pair, s, &is_list);
	rc = plan_string(r);
	if (rc < 0)
		return rc;
	if (key == 1) {
		s->unit = strcmp(r->names, "time") == 0 || strcmp(r->names, "bytes") == 0;
		s->to->time = r->names[0] == 't';
	} else if (s->like && strcmp(s->like, r->names) == 0) {
		s->to->name = s->like;
	} else if (r->names[0]) {
		s->to->name = r->names;
		r->names += strlen(r->names) + 1;
	}
	return 0;
}

struct tenant_reading {
	struct gateway_plan_tenant *to;
	double percentile, latency, bound;
	bool no_bound; /* it is null */
};

static int read_stage(struct plan_reading *r, void *to)
{
	struct gateway_plan_tenant *t = ((struct tenant_reading *)to)->to;
	struct stage_reading s = {.to = r->stages,
		.specs = r->specs,
		.like = r->stages > r->first ? r->stages[-1].name : NULL,
		.priority = -1};
	unsigned given;
	int rc;

	if (t->n_stages++ >= STAGES_MAX)
		return plan_refuse(r, "stages", "must be a list of 1 to 64");
	rc = plan_object(r, stage_keys, read_stage_member, &s, &given);
	if (rc < 0)
		return rc;
	if (!s.to->name)
		return plan_refuse(r, "name of a stage", "must be a text");
	if (!s.unit)
		return plan_refuse(r, "unit", "must be time or bytes");
	if (!s.whole || s.priority < 0 || s.priority > 63)
		return plan_refuse(r, "priority", "must be a whole number from 0 to 63");
	if (s.n < 1 || s.n > POLICY_CLAIM_PAIRS)
		return weir_err_set(r->err, -EINVAL,
			"plan: buckets: must be 1 to %d pairs at a stage", POLICY_CLAIM_PAIRS);
	s.to->claim = (struct policy_claim){(int)s.priority, s.odd ? 0 : (unsigned)s.n, s.specs};
	r->specs += s.n;
	r->stages++;
	return 0;
}

/* The tenant is read: check a stage's pairs, and turn them into buckets. */
static int finish_stage(struct plan_reading *r, const char *tenant, struct gateway_plan_stage *of)
{
	double unit = of->time ? 1e9 : 1;

	if (!of->claim.n)
		return weir_err_set(r->err, -EINVAL,
			"plan: tenant %s at %s: buckets: must be pairs of a rate and a size",
			tenant, of->name);
	for (unsigned i = 0; i < of->claim.n; i++) {
		struct weir_bucket_spec *b = (struct weir_bucket_spec *)&of->claim.profile[i];

		if (check_number(r, tenant, of->name, "rate", b->rate,
			    of->time ? PLAN_RATE_MOST : PLAN_RATE_GATE) < 0 ||
			check_number(r, tenant, of->name, "size", b->size,
				of->time ? TIME_MAX : POLICY_BUCKET_MAX) < 0)
			return -EINVAL;
		*b = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
			.unit = of->time ? WEIR_UNIT_TIME : WEIR_UNIT_BYTES,
			.rate = fmax(unit * b->rate, POLICY_RATE_MIN),
			.size = fmax(ceil(unit * b->size), 1)};
	}
	return 0;
}

static int finish_stages(struct plan_reading *r, struct gateway_plan_tenant *to)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < to->n_stages; i++) {
		rc = finish_stage(r, to->path, &to->stages[i]);
		for (size_t k = 0; rc == 0 && k < i; k++)
			if (strcmp(to->stages[k].name, to->stages[i].name) == 0)
				rc = plan_refuse(r, to->stages[i].name, "stands twice in one path");
	}
	return rc;
}

/* ---- tenants */

static const char *const slo_keys[] = {"percentile", "latency", NULL};

static int read_slo_member(struct plan_reading *r, unsigned key, void *to)
{
	struct tenant_reading *t = to;
	bool whole;

	return plan_number(r, key ? &t->latency : &t->percentile, &whole);
}

static const char *const tenant_keys[] = {"name", "slo", "bound", "stages", NULL};

static int read_tenant_member(struct plan_reading *r, unsigned key, void *to)
{
	struct tenant_reading *t = to;
	unsigned given;
	bool whole, is_list;
	int rc;

	switch (key) {
	case 0:
		rc = plan_string(r);
		if (rc == 0 && r->names[0]) {
			t->to->path = r->names;
			r->names += strlen(r->names) + 1;
		}
		return rc;
	case 1:
		return plan_object(r, slo_keys, read_slo_member, t, &given);
	case 2:
		t->no_bound = plan_next(r) == 'n';
		return t->no_bound ? plan_skip(r) : plan_number(r, &t->bound, &whole);
	default:
		t->to->stages = r->stages;
		return plan_list(r, read_stage, t, &is_list);
	}
}

static int read_tenant(struct plan_reading *r, struct gateway_plan_tenant *to)
{
	struct tenant_reading t = {.to = to, .percentile = NAN, .latency = NAN, .bound = NAN};
	unsigned given;
	int rc = plan_object(r, tenant_keys, read_tenant_member, &t, &given);

	if (rc < 0)
		return rc;
	if (!to->path)
		return plan_refuse(r, "name of a tenant", "must be a text");
	if (!within(t.percentile, 0, 100) || !within(t.latency, 0, TIME_MAX))
		return plan_refuse(r, to->path, "slo must have a percentile and a latency");
	if (!t.no_bound && !within(t.bound, 0, TIME_MAX))
		return plan_refuse(r, to->path, "bound must be a time, or null");
	if (!to->n_stages)
		return plan_refuse(r, "stages", "must be a list of 1 to 64");
	to->percentile = t.percentile;
	to->latency = t.latency;
	to->bound = t.no_bound ? INFINITY : t.bound;
	return finish_stages(r, to);
}

static int by_path(const void *a, const void *b)
{
	const struct gateway_plan_tenant *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* One after the other: the whole as one value would be ten times as large as its text. */
static int read_list(struct plan_reading *r)
{
	struct gateway_plan *p = r->plan;
	int rc = 1;

	if (plan_next(r) != '[')
		return plan_refuse(r, "tenants", "must be a list");
	r->at++;
	if (plan_next(r) == ']') {
		r->at++;
		return 0;
	}
	while (rc > 0) {
		rc = read_tenant(r, &p->tenants[p->n_tenants]);
		p->n_tenants += rc == 0;
		if (rc == 0)
			rc = plan_more(r, ']');
	}
	return rc;
}

static int read_tenants(struct plan_reading *r)
{
	struct gateway_plan *p = r->plan;
	int rc = read_list(r);

	if (rc < 0)
		return rc;
	qsort(p->tenants, p->n_tenants, sizeof(*p->tenants), by_path);
	for (size_t i = 1; i < p->n_tenants; i++)
		if (by_path(&p->tenants[i - 1], &p->tenants[i]) == 0)
			return plan_refuse(r, p->tenants[i].path, "stands twice");
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

static int read_profiles(struct plan_reading *r, json_t *map)
{
	struct gateway_plan *p = r->plan;
	const char *key;
	json_t *value;
	int rc = 0;

	if (!json_is_object(map))
		return plan_refuse(r, "profiles", "must be a map");
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

static int read_value(struct plan_reading *r, unsigned member, json_t *j)
{
	switch (member) {
	case VERSION:
		return json_integer_value(j) == 1 ? 0 : plan_refuse(r, "version", "must be 1");
	case POLICY:
		return read_digest(r, j, "policy", r->plan->policy);
	case PROFILES:
		return read_profiles(r, j);
	case MADE:
		r->plan->made = read_text(r, j, "made");
		return r->plan->made ? 0 : -EINVAL;
	default:
		return 0;
	}
}

static int read_member(struct plan_reading *r)
{
	json_t *key = plan_value(r), *j;
	const char *name = json_string_value(key);
	unsigned member = 0;
	int rc = 0;

	while (name && member_names[member] && strcmp(member_names[member], name) != 0)
		member++;
	json_decref(key);
	if (!key)
		return -EINVAL;
	if (!name || plan_next(r) != ':')
		return plan_refuse_here(r, "a name and ':' expected");
	r->at++;
	plan_next(r);
	if (member <= MADE && r->given >> member & 1)
		return plan_refuse(r, member_names[member], "stands twice");
	r->given |= 1u << member;
	if (member == TENANTS)
		return read_tenants(r);
	j = plan_value(r);
	rc = j ? read_value(r, member, j) : -EINVAL;
	json_decref(j);
	return rc;
}

static int read_root(struct plan_reading *r)
{
	int rc = 1;

	if (plan_next(r) != '{')
		return plan_refuse_here(r, "must be an object in JSON");
	r->at++;
	for (plan_next(r); rc > 0;) {
		rc = read_member(r);
		if (rc == 0)
			rc = plan_more(r, '}');
		plan_next(r);
	}
	if (rc == 0 && r->at != r->end)
		return plan_refuse_here(r, "the end expected");
	for (unsigned i = 0; rc == 0 && i < MADE; i++)
		if (!(r->given >> i & 1))
			rc = plan_refuse(r, member_names[i], "is missing");
	return rc;
}

int gateway_plan_read(
	const char *text, size_t len, struct gateway_plan **ret_plan, struct weir_err *err)
{
	struct gateway_plan *p = calloc(1, sizeof(*p));
	struct plan_reading r = {
		.plan = p, .err = err, .text = text, .at = text, .end = text + len};
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

void gateway_claims_free(struct gateway_claims *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->of[i]);
	free(c->of);
	*c = (struct gateway_claims){0};
}
