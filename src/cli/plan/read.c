/* SPDX-License-Identifier: BSD-3-Clause */
/* read: from a policy, its profiles and its traces to the input of a plan. */
#include "cli/plan/plan.h"
#include "cli/common/files.h"
#include "cli/trace/trace.h"
#include "control/controller.h"
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* As many priorities as a gate has. */
#define GATE_LEVELS 64

struct reading {
	struct planning *p;
	const struct planning_options *o;
	struct estimate constant;
	int inside; /* index in inside_words */
	size_t pairs;
	struct weir_err err;
};

static const char *const inside_words[] = {"max", "p99.9", "p99", "p50", NULL};

static void digest(const char *text, size_t len, char ret[PLAN_DIGEST])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)text, len);
	sodium_bin2hex(ret, PLAN_DIGEST, hash, sizeof(hash));
}

/* Return the path of a file that the policy names, malloc'ed: beside the file in which its name stands. */
static char *beside(struct weir_place at, const char *name)
{
	const char *slash = at.file ? strrchr(at.file, '/') : NULL;
	char *path;

	if (name[0] == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - at.file), at.file, name) < 0 ? NULL : path;
}

/* ---- the policy */

static int parse(struct planning *p, const struct planning_options *o, const char *text, size_t len,
	struct weir_policy_remarks *remarks)
{
	struct weir_err err;
	char *more;
	size_t more_len;
	int rc;

	if (!o->admit) {
		rc = weir_policy_parse_all(
			text, len, o->policy, files_read_beside, NULL, &p->policy, remarks);
		p->first_new = rc == 0 ? p->policy->n_tenants : 0;
		return rc;
	}
	rc = files_read(o->admit, FILES_WRITTEN, &more, &more_len, &err);
	if (rc < 0)
		return opts_fail(&verb_plan, "%s", err.text);
	rc = policy_parse_more(&(struct policy_text){text, len, o->policy},
		&(struct policy_text){more, more_len, o->admit}, files_read_beside, NULL,
		&p->policy, &p->first_new, remarks);
	free(more);
	return rc;
}

static int read_policy(struct planning *p, const struct planning_options *o)
{
	struct weir_policy_remarks *remarks = calloc(1, sizeof(*remarks));
	struct weir_err err;
	char *text = NULL;
	size_t len;
	int rc = -ENOMEM;

	if (!remarks)
		return opts_no_memory(&verb_plan);
	if (files_read(o->policy, FILES_WRITTEN, &text, &len, &err) < 0) {
		rc = opts_fail(&verb_plan, "%s", err.text);
	} else {
		digest(text, len, p->digest);
		rc = parse(p, o, text, len, remarks);
	}
	for (size_t i = 0; i < remarks->n_errors && i < WEIR_POLICY_REMARKS; i++)
		fprintf(stderr, "%s\n", remarks->errors[i].text);
	free(remarks);
	free(text);
	return rc ? 2 : 0;
}

/* ---- stages */

static int read_profile(struct reading *r, const struct weir_resource *from, struct estimate *ret,
	char ret_digest[PLAN_DIGEST])
{
	char *path = beside(from->profile_at, from->profile), *text = NULL;
	struct weir_err err;
	size_t len;
	int rc = path ? files_read(path, FILES_WRITTEN, &text, &len, &err)
		      : weir_err_set(&err, -ENOMEM, "out of memory");

	if (rc == 0) {
		digest(text, len, ret_digest);
		rc = estimate_read(text, len, path, ret, &err);
	}
	if (rc < 0)
		weir_err_at(&r->err, rc, from->profile_at, "profile: %s", err.text);
	free(path);
	free(text);
	return rc;
}

/* Return the most requests inside: the depth, or what its controller may raise it to; 0: not known. */
static double depth_of(const struct weir_resource *from)
{
	const struct key *k = from->controller ? from->controller->keys : NULL;
	double depth = from->depth;

	for (; k && k->name && from->settings; k++)
		if (strcmp(k->name, "wmax") == 0 && k->type == KEY_NUMBER)
			memcpy(&depth, (const char *)from->settings + k->offset, sizeof(depth));
	return ceil(depth);
}

/* Return the time inside of requests of any kind, in s. */
static double inside_of(const struct reading *r, const struct estimate *e)
{
	double most = 0;

	for (unsigned op = 0; op < ESTIMATE_OPS; op++) {
		const struct estimate_inside *i = &e->inside[op];
		const double by_word[] = {i->max, i->p999, i->p99, i->p50};

		most = fmax(most, by_word[r->inside]);
	}
	return most * 1e-9;
}

static int read_resource(struct reading *r, const struct weir_resource *from,
	struct planning_stage *to, struct plan_stage *in)
{
	int rc = 0;

	if (to->depth > 0) /* already */
		return 0;
	to->estimate = r->constant;
	to->depth = depth_of(from);
	if (from->profile)
		rc = read_profile(r, from, &to->estimate, to->digest);
	else if (!r->o->work)
		rc = weir_err_at(&r->err, -EINVAL, from->at,
			"resource '%s' has no profile; make one with weir profile, or give --work",
			from->name);
	if (rc < 0)
		return rc;
	if (to->depth < 1)
		to->depth = to->estimate.depth;
	if (to->depth < 1)
		return weir_err_at(&r->err, -EINVAL, from->at,
			"resource '%s' has neither a depth nor a profile: the requests inside are "
			"not known",
			from->name);
	if (from->profile && to->depth != to->estimate.depth)
		return weir_err_at(&r->err, -EINVAL, from->profile_at,
			"profile: it was measured at depth %u, but up to %.0f requests are inside",
			to->estimate.depth, to->depth);
	*in = (struct plan_stage){.rate = 1,
		.depth = to->depth,
		.inside = inside_of(r, &to->estimate),
		.levels = GATE_LEVELS};
	return 0;
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

/* The path of a tenant: its own, or the only resource. */
struct path {
	const struct policy_stage *stage;
	unsigned n;
	unsigned storage; /* the place of its resource */
};

static const struct policy_stage only_resource = {false, 0};

/* Return false if it is not known. */
static bool path_of(const struct planning *p, const struct weir_tenant *t, struct path *ret)
{
	*ret = (struct path){&only_resource, 1, 0};
	if (t->planned && t->planned->n_path) {
		ret->stage = t->planned->path;
		ret->n = t->planned->n_path;
		while (ret->stage[ret->storage].link)
			ret->storage++;
		return true;
	}
	return p->policy->n_resources == 1;
}

static uint32_t stage_index(const struct planning *p, struct policy_stage s)
{
	return s.index + (s.link ? (uint32_t)p->policy->n_resources : 0);
}

static double link_work(const struct policy_link *l, bool to_server, unsigned op, uint64_t bytes)
{
	bool carries = op == (to_server ? TRACE_WRITE : TRACE_READ);

	return fmax(1, (double)l->overhead + (carries ? (double)bytes : 0));
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

/* Write the work of a trace at place k of the path. */
static void arrivals_of(const struct planning *p, const struct path *path, unsigned k,
	const struct trace *t, struct meister_arrival *ret)
{
	const struct policy_stage s = path->stage[k];
	const struct estimate *e = &p->stage[stage_index(p, s)].estimate;
	struct estimate_past past = {0};

	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *q = &t->records[i];

		ret[i].t = (double)q->at * 1e-9;
		ret[i].work = s.link ? link_work(&p->policy->links[s.index], k < path->storage,
					       q->op, q->bytes)
				     : 1e-9 * estimate_work(e, t->has_offsets ? &past : NULL, q->op,
						      q->offset, q->bytes);
	}
}

static int reduce(struct reading *r, const struct weir_tenant *t, const struct path *path,
	const struct trace *trace, struct plan_hop *hops)
{
	struct meister_arrival *arrivals = calloc(trace->n, sizeof(*arrivals));
	struct planning *p = r->p;
	int rc = arrivals ? 0 : -ENOMEM;

	for (unsigned k = 0; rc == 0 && k < path->n; k++) {
		uint32_t stage = stage_index(p, path->stage[k]);

		arrivals_of(p, path, k, trace, arrivals);
		rc = plan_hop_of(arrivals, trace->n, r->pairs, p->stages[stage].rate, &hops[k]);
		hops[k].stage = stage;
		if (rc == 0)
			note_largest(p, stage, hops[k].largest, t->path, false);
	}
	free(arrivals);
	return rc < 0 ? weir_err_set(&r->err, rc, "out of memory") : 0;
}

/* Read a tenant's trace; one that has an slo is planned. */
static int read_traced(struct reading *r, size_t index, const struct path *path)
{
	static const struct trace_request request = {.format = TRACE_AUTO};
	struct planning *p = r->p;
	const struct weir_tenant *t = &p->policy->tenants[index];
	char *file = beside(t->planned->trace_at, t->planned->trace);
	struct plan_hop *hops = calloc(path->n, sizeof(*hops));
	struct trace trace;
	struct weir_err err = {"out of memory"};
	int rc = file && hops ? trace_load(file, &request, &trace, &err) : -ENOMEM;

	free(file);
	if (rc < 0) {
		free(hops);
		return weir_err_at(&r->err, rc, t->planned->trace_at, "trace: %s", err.text);
	}
	rc = reduce(r, t, path, &trace, hops);
	if (rc == 0 && t->slo_percentile > 0) {
		p->tenants[p->in.n_tenants] =
			(struct plan_tenant){(double)t->slo_latency * 1e-9, hops, path->n};
		p->tenant[p->in.n_tenants++] = (struct planning_tenant){index, trace.n,
			(double)trace.n * (1 - t->slo_percentile / 100) < PLAN_BEYOND};
		hops = NULL;
	}
	free(hops);
	trace_free(&trace);
	return rc;
}

/* A tenant without a trace: its requests may be inside, and are taken to be io_unit long. */
static void read_untraced(struct planning *p, const struct weir_tenant *t, const struct path *path)
{
	const struct weir_resource *of = &p->policy->resources[path->stage[path->storage].index];

	for (unsigned k = 0; k < path->n; k++) {
		const struct policy_stage s = path->stage[k];
		const struct planning_stage *stage = &p->stage[stage_index(p, s)];

		for (unsigned op = TRACE_READ; stage->used && op <= TRACE_WRITE; op++)
			note_largest(p, stage_index(p, s),
				s.link ? link_work(&p->policy->links[s.index], k < path->storage,
						 op, of->io_unit)
				       : 1e-9 * estimate_work(
							&stage->estimate, NULL, op, 0, of->io_unit),
				t->path, true);
	}
}

static bool is_traced(const struct weir_tenant *t)
{
	return t->planned && t->planned->trace;
}

static int read_tenant(struct reading *r, size_t i)
{
	struct planning *p = r->p;
	const struct weir_tenant *t = &p->policy->tenants[i];
	struct path path;
	int rc = 0;

	if (!is_traced(t)) {
		if (t->slo_percentile > 0 && (t->first_child < 0 || t->each))
			p->unknown[p->n_unknown++] = i;
		return 0;
	}
	if (!path_of(p, t, &path))
		return weir_err_at(&r->err, -EINVAL, t->planned->trace_at,
			"tenant '%s' needs a path: there is not just one resource", t->path);
	for (unsigned k = 0; rc == 0 && k < path.n; k++) {
		uint32_t at = stage_index(p, path.stage[k]);

		p->stage[at].used = true;
		if (!path.stage[k].link)
			rc = read_resource(r, &p->policy->resources[path.stage[k].index],
				&p->stage[at], &p->stages[at]);
	}
	return rc < 0 ? rc : read_traced(r, i, &path);
}

/* Leaves without a trace: on their path, or on every resource that is used. */
static void read_others(struct planning *p)
{
	for (size_t i = 0; i < p->policy->n_tenants; i++) {
		const struct weir_tenant *t = &p->policy->tenants[i];
		struct path path;

		if (is_traced(t) || t->first_child >= 0)
			continue;
		if (path_of(p, t, &path))
			read_untraced(p, t, &path);
		for (uint32_t k = 0; !path_of(p, t, &path) && k < p->policy->n_resources; k++)
			read_untraced(p, t, &(struct path){&(struct policy_stage){false, k}, 1, 0});
	}
}

/* ---- all of it */

static int read_options(struct reading *r)
{
	const struct planning_options *o = r->o;
	char *end;
	long pairs = o->pairs ? strtol(o->pairs, &end, 10) : PLAN_PAIRS;

	if (o->work && trace_read_work(&verb_plan, o->work, &r->constant))
		return 2;
	if (o->pairs && (end == o->pairs || *end || pairs < 1 || pairs > MEISTER_PAIRS))
		return opts_fail(&verb_plan, "--pairs: '%s' is not a number from 1 to %d", o->pairs,
			MEISTER_PAIRS);
	r->pairs = (size_t)pairs;
	while (o->inside && inside_words[r->inside] &&
		strcmp(o->inside, inside_words[r->inside]) != 0)
		r->inside++;
	if (!inside_words[r->inside])
		return opts_fail(
			&verb_plan, "--inside: '%s' is not max, p99.9, p99 or p50", o->inside);
	return 0;
}

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

int planning_read(const struct planning_options *o, struct planning *ret)
{
	struct reading r = {.p = ret, .o = o};
	int rc;

	*ret = (struct planning){0};
	if (read_options(&r) || read_policy(ret, o))
		return 2;
	rc = planning_room(ret);
	if (rc < 0)
		return opts_no_memory(&verb_plan);
	stages_name(ret);
	for (size_t i = 0; rc == 0 && i < ret->policy->n_tenants; i++)
		rc = read_tenant(&r, i);
	if (rc < 0) {
		fprintf(stderr, "%s\n", r.err.text);
		return 2;
	}
	read_others(ret);
	rc = plan_make(&ret->in, &ret->plan);
	ret->planned = rc == 0;
	return rc < 0 ? opts_no_memory(&verb_plan) : 0;
}

void planning_free(struct planning *p)
{
	if (p->planned)
		plan_free(&p->plan);
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		free(p->tenants[i].hop);
	free(p->stage);
	free(p->stages);
	free(p->tenant);
	free(p->tenants);
	free(p->unknown);
	weir_policy_free(p->policy);
}
