/* SPDX-License-Identifier: BSD-3-Clause */
/* read: from a policy, its profiles and its traces to the input of a plan. */
#include "plan/read-impl.h"
#include "base/no-memory.h"
#include "policy/override/override.h"
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* As many priorities as a gate has. */
#define GATE_LEVELS 64

const char *const planning_inside[] = {"max", "p99.9", "p99", "p50", NULL};

void planning_digest(const char *text, size_t len, const char *tenants, char ret[PLAN_DIGEST])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state s;

	crypto_hash_sha256_init(&s);
	crypto_hash_sha256_update(&s, (const unsigned char *)text, len);
	if (tenants) {
		crypto_hash_sha256_update(&s, (const unsigned char *)"", 1);
		crypto_hash_sha256_update(&s, (const unsigned char *)tenants, strlen(tenants));
	}
	crypto_hash_sha256_final(&s, hash);
	sodium_bin2hex(ret, PLAN_DIGEST, hash, sizeof(hash));
}

int planning_work(const char *word, struct estimate *ret, struct weir_err *err)
{
	char *copy = strdup(word), *plus = copy ? strchr(copy, '+') : NULL;
	bool rate_only = !plus && strstr(word, "/s");
	struct weir_rate rate = {HUGE_VAL, WEIR_UNIT_BYTES};
	weir_time time = 0;
	int rc = copy ? 0 : no_memory(err);

	if (plus)
		*plus++ = '\0';
	if (rc == 0 && !rate_only)
		rc = weir_units_time(copy, &time, err);
	if (rc == 0 && (plus || rate_only))
		rc = weir_units_rate(plus ? plus : copy, &rate, err);
	if (rc == 0 && (rate.unit != WEIR_UNIT_BYTES || !(rate.per_second > 0)))
		rc = weir_err_set(err, -EINVAL, "'%s' has no rate of bytes", word);
	if (rc == 0 && time <= 0 && isinf(rate.per_second))
		rc = weir_err_set(err, -EINVAL, "'%s' is no work", word);
	free(copy);
	if (rc == 0)
		estimate_constant(ret, (double)time, 1e9 / rate.per_second);
	return rc;
}

/* ---- the policy */

static int lay_overrides(struct reading *r)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->o->n_overrides; i++) {
		const struct planning_override *v = &r->o->overrides[i];

		rc = policy_override_set(r->p->policy, v->key, v->value, r->err);
		rc = rc == -ENOENT ? 0 : rc; /* of a tenant that a template makes */
	}
	if (rc == 0 && r->o->n_overrides)
		rc = policy_override_check(r->p->policy, NULL, r->err);
	return rc;
}

static int read_policy(struct reading *r, struct weir_policy_remarks *remarks)
{
	const struct planning_options *o = r->o;
	struct weir_policy_remarks *own = remarks ? NULL : calloc(1, sizeof(*own)),
				   *to = remarks ? remarks : own;
	struct planning *p = r->p;
	int rc;

	if (!to)
		return no_memory(r->err);
	if (o->admit.text)
		rc = policy_parse_more(&o->policy, &o->admit, o->policy_reader, o->policy_arg,
			&p->policy, &p->first_new, to);
	else
		rc = weir_policy_parse_all(o->policy.text, o->policy.len, o->policy.name,
			o->policy_reader, o->policy_arg, &p->policy, to);
	if (rc == 0 && !o->admit.text)
		p->first_new = p->policy->n_tenants;
	if (rc == 0)
		planning_digest(o->policy.text, o->policy.len, p->policy->tenants_text, p->digest);
	if (rc < 0)
		*r->err = to->errors[0];
	free(own);
	return rc < 0 ? rc : lay_overrides(r);
}

/* ---- stages */

static int read_profile(struct reading *r, const struct weir_resource *from, struct estimate *ret,
	char ret_digest[PLAN_DIGEST])
{
	char *text;
	struct weir_err err;
	size_t len;
	int rc = r->o->read(r->o->arg, PLANNING_PROFILE, NULL, false, from->profile_at,
		from->profile, &text, &len, &err);

	if (rc == 0) {
		planning_digest(text, len, NULL, ret_digest);
		rc = estimate_read(text, len, from->profile, ret, &err);
		free(text);
	}
	return rc < 0 ? weir_err_at(r->err, rc, from->profile_at, "profile: %s", err.text) : 0;
}

/* Return the time inside of requests of any kind, in s. */
static double inside_of(const struct reading *r, const struct estimate *e)
{
	double most = 0;

	for (unsigned op = 0; op < ESTIMATE_OPS; op++) {
		const struct estimate_inside *i = &e->inside[op];
		const double by_word[] = {i->max, i->p999, i->p99, i->p50};

		most = fmax(most, by_word[r->o->inside]);
	}
	return most * 1e-9;
}

static int read_resource(struct reading *r, const struct weir_resource *from,
	struct planning_stage *to, struct plan_stage *in)
{
	int rc = 0;

	if (to->depth > 0) /* already */
		return 0;
	if (r->o->work)
		to->estimate = *r->o->work;
	to->depth = policy_plan_depth(from);
	if (from->profile)
		rc = read_profile(r, from, &to->estimate, to->digest);
	else if (!r->o->work)
		rc = weir_err_at(r->err, -EINVAL, from->at,
			"resource '%s' has no profile; make one with weir profile, or give --work",
			from->name);
	if (rc < 0)
		return rc;
	if (to->depth < 1 && from->profile)
		return weir_err_at(r->err, -EINVAL, from->at,
			"resource '%s': a plan needs a stated depth; the profile was measured at "
			"%u",
			from->name, to->estimate.depth);
	if (to->depth < 1)
		return weir_err_at(r->err, -EINVAL, from->at,
			"resource '%s': a plan needs a stated depth", from->name);
	if (from->profile && to->depth != to->estimate.depth)
		return weir_err_at(r->err, -EINVAL, from->profile_at,
			"profile: it was measured at depth %u, but up to %.0f requests are inside",
			to->estimate.depth, to->depth);
	*in = (struct plan_stage){
		.rate = 1 / (1 + (r->o->error ? *r->o->error : to->estimate.error)),
		.depth = to->depth,
		.inside = inside_of(r, &to->estimate),
		.levels = GATE_LEVELS};
	return 0;
}

int planning_resource(const struct planning_options *o, const struct weir_resource *from,
	struct planning_stage *to, struct plan_stage *in, struct weir_err *err)
{
	return read_resource(&(struct reading){.o = o, .err = err}, from, to, in);
}

static void stages_name(struct planning *p)
{
	const struct weir_policy *policy = p->policy;

	for (size_t i = 0; i < policy->n_resources; i++)
		p->stage[i] = (struct planning_stage){.name = policy->resources[i].name};
	for (size_t i = 0; i < policy->n_links; i++) {
		const struct policy_link *l = &policy->links[i];

		p->stage[policy->n_resources + i] =
			(struct planning_stage){.name = l->name, .link = true, .depth = 1};
		p->stages[policy->n_resources + i] =
			(struct plan_stage){.rate = l->rate, .depth = 1, .levels = l->levels};
	}
}

/* ---- tenants */

static const struct policy_stage only_resource = {false, 0};

bool planning_path(const struct planning *p, const struct weir_tenant *t, struct path *ret)
{
	*ret = (struct path){&only_resource, 1, 0};
	if (t->planned && t->planned->n_path) {
		ret->stage = t->planned->path;
		ret->n = t->planned->n_path;
		while (ret->stage[ret->storage].link)
			ret->storage++;
		return true;
	}
	return p->policy->n_resources == 1 && !(t->planned && t->planned->elsewhere);
}

static void note_largest(
	struct planning *p, uint32_t stage, double work, const char *of, bool assumed)
{
	const size_t resources = p->policy->n_resources;
	uint64_t mtu = stage >= resources ? p->policy->links[stage - resources].mtu : 0;

	work = mtu ? fmin(work, (double)mtu) : work;
	if (work <= p->stages[stage].largest)
		return;
	p->stages[stage].largest = work;
	p->stage[stage].largest_of = of;
	p->stage[stage].assumed = assumed;
}

/* Take the hops of a tenant that `base` has reduced already; false: it has not. */
static bool borrow(struct reading *r, size_t index)
{
	const struct planning *base = r->base;
	struct planning *p = r->p;

	for (uint32_t i = 0; base && index < p->first_new && i < base->n_traced; i++)
		if (base->tenant[i].tenant == index && (!r->o->keep || base->tenant[i].kept)) {
			p->tenants[p->n_traced] = base->tenants[i];
			p->tenant[p->n_traced] = base->tenant[i];
			p->tenant[p->n_traced].own_hop = false;
			p->tenant[p->n_traced++].borrowed = true;
			return true;
		}
	return false;
}

/* A tenant without a trace: its requests may be inside. They may be as large as a client can send: at a resource the pieces of them. */
static void read_untraced(struct planning *p, const struct weir_tenant *t, const struct path *path)
{
	for (unsigned k = 0; k < path->n; k++) {
		const struct policy_stage s = path->stage[k];
		struct planning_stage *stage = &p->stage[stage_index(p, s)];

		for (unsigned op = TRACE_READ; stage->used && op <= TRACE_WRITE; op++) {
			double work = s.link ? planning_link_work(&p->policy->links[s.index],
						       k < path->storage, op,
						       REPLAY_PIECES * STATION_PIECE)
					     : 1e-9 * estimate_most(&stage->estimate, op,
							      (uint32_t)STATION_PIECE);

			if (s.link && p->policy->links[s.index].mtu)
				work = fmin(work, (double)p->policy->links[s.index].mtu);
			stage->untraced = fmax(stage->untraced, work);
			note_largest(p, stage_index(p, s), work, t->path, true);
		}
	}
}

static bool is_traced(const struct weir_tenant *t)
{
	return t->planned && t->planned->trace && !t->planned->elsewhere;
}

/* Read a tenant with an slo, or one without. */
static int read_tenant(struct reading *r, size_t i, bool slo)
{
	struct planning *p = r->p;
	const struct weir_tenant *t = &p->policy->tenants[i];
	struct path path;
	int rc = 0;

	if ((t->slo_percentile > 0) != slo)
		return 0;
	if (!is_traced(t)) {
		if (slo && (t->first_child < 0 || t->each))
			p->unknown[p->n_unknown++] = i;
		return 0;
	}
	if (!planning_path(p, t, &path))
		return weir_err_at(r->err, -EINVAL, t->planned->trace_at,
			"tenant '%s' needs a path: there is not just one resource", t->path);
	for (unsigned k = 0; rc == 0 && k < path.n; k++) {
		uint32_t at = stage_index(p, path.stage[k]);

		p->stage[at].used = true;
		if (!path.stage[k].link)
			rc = read_resource(r, &p->policy->resources[path.stage[k].index],
				&p->stage[at], &p->stages[at]);
	}
	if (rc == 0 && !borrow(r, i))
		rc = planning_traced(r, i, &path);
	for (unsigned k = 0; rc == 0 && k < path.n; k++) {
		const struct plan_hop *h = &p->tenants[p->n_traced - 1].hop[k];

		note_largest(p, h->stage, h->largest, t->path, false);
	}
	p->in.n_tenants += rc == 0 && slo;
	return rc;
}

/* Leaves without a trace: on their path, or on every resource that is used. */
static void read_others(struct planning *p)
{
	for (size_t i = 0; i < p->policy->n_tenants; i++) {
		const struct weir_tenant *t = &p->policy->tenants[i];
		struct path path;

		if (is_traced(t) || t->first_child >= 0)
			continue;
		if (planning_path(p, t, &path))
			read_untraced(p, t, &path);
		for (uint32_t k = 0; !planning_path(p, t, &path) && k < p->policy->n_resources; k++)
			read_untraced(p, t, &(struct path){&(struct policy_stage){false, k}, 1, 0});
	}
}

/* ---- all of it */

static int planning_room(struct planning *p)
{
	size_t stages = p->policy->n_resources + p->policy->n_links, n = p->policy->n_tenants;

	p->stage = calloc(stages + 1, sizeof(*p->stage));
	p->stages = calloc(stages + 1, sizeof(*p->stages));
	p->tenant = calloc(n + 1, sizeof(*p->tenant));
	p->tenants = calloc(n + 1, sizeof(*p->tenants));
	p->unknown = calloc(n + 1, sizeof(*p->unknown));
	p->in = (struct plan_input){.stages = p->stages,
		.tenants = p->tenants,
		.n_stages = (uint32_t)stages,
		.how = {.greedy = true, .anneal = true, .seed = 1}};
	return p->stage && p->stages && p->tenant && p->tenants && p->unknown ? 0 : -ENOMEM;
}

/* Profiles that `base` has read. */
static void borrow_stages(struct planning *p, const struct planning *base)
{
	for (uint32_t i = 0; i < p->policy->n_resources; i++) {
		if (!base->stage[i].used)
			continue;
		p->stage[i].estimate = base->stage[i].estimate;
		p->stage[i].depth = base->stage[i].depth;
		memcpy(p->stage[i].digest, base->stage[i].digest, PLAN_DIGEST);
		p->stages[i] = base->stages[i];
		p->stages[i].largest = 0;
	}
}

static bool fits(const struct planning *base, const struct planning *p)
{
	return base->pairs == p->pairs && base->inside == p->inside && base->error == p->error &&
	       /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): plans are zeroed first */
	       memcmp(&base->work, &p->work, sizeof(p->work)) == 0;
}

static int read_all(struct reading *r, struct weir_policy_remarks *remarks)
{
	struct planning *p = r->p;
	int rc = read_policy(r, remarks);

	if (rc < 0)
		return rc;
	if (planning_room(p) < 0)
		return no_memory(r->err);
	stages_name(p);
	if (r->o->base && fits(r->o->base, p))
		r->base = r->o->base;
	if (r->base)
		borrow_stages(p, r->base);
	for (int slo = 1; slo >= 0; slo--)
		for (size_t i = 0; rc == 0 && i < p->policy->n_tenants; i++)
			rc = read_tenant(r, i, slo);
	if (rc < 0)
		return rc;
	read_others(p);
	planning_note_mins(p);
	rc = plan_make(&p->in, &p->plan);
	p->planned = rc == 0;
	return rc < 0 ? no_memory(r->err) : 0;
}

int planning_read(const struct planning_options *o, struct planning *ret,
	struct weir_policy_remarks *remarks, struct weir_err *err)
{
	struct reading r = {
		.p = ret, .o = o, .pairs = o->pairs ? o->pairs : PLAN_PAIRS, .err = err};
	int rc;

	*ret = (struct planning){
		.pairs = r.pairs, .inside = o->inside, .error = o->error ? *o->error : -1};
	if (o->work)
		ret->work = *o->work;
	rc = read_all(&r, remarks);
	if (rc < 0)
		planning_free(ret);
	return rc;
}

void planning_free(struct planning *p)
{
	if (p->planned)
		plan_free(&p->plan);
	for (uint32_t i = 0; i < p->n_traced; i++) {
		if (!p->tenant[i].borrowed)
			planning_kept_free(p->tenant[i].kept, p->tenants[i].n_hops);
		if (!p->tenant[i].borrowed || p->tenant[i].own_hop)
			free(p->tenants[i].hop);
	}
	free(p->stage);
	free(p->stages);
	free(p->tenant);
	free(p->tenants);
	free(p->unknown);
	free(p->replayed);
	weir_policy_free(p->policy);
	*p = (struct planning){0};
}
