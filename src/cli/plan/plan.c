/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: `weir plan`, priorities and token buckets that keep latency SLOs, and whether they will hold. */
#include "cli/plan/plan.h"
#include "cli/common/files.h"
#include "cli/common/remote.h"
#include "cli/plan/apply.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JSON, ADMIT, OUT, APPLY, BEST, WORK, INSIDE, PAIRS, SOCKET, URL, TOKEN, N_OPTIONS };
static const struct opt options[] = {
	[JSON] = {"json", 0, NULL, "JSON instead of a table"},
	[ADMIT] = {"admit", 0, "FILE", "would the tenants of FILE fit as well? All or none"},
	[OUT] = {"out", 'o', "FILE", "write the plan to FILE, for a gateway"},
	[APPLY] = {"apply", 0, NULL, "put the plan in force in a running gateway"},
	[BEST] = {"best", 0, NULL, "--out, --apply: also if an slo is missed"},
	[WORK] = {"work", 0, "WORK",
		"of resources without a profile: 100us, 500MB/s, 100us+500MB/s"},
	[INSIDE] = {"inside", 0, "PERCENTILE", "time in the device: max, p99.9, p99 or p50 (max)"},
	[PAIRS] = {"pairs", 0, "N", "token buckets of a tenant at a stage (4)"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

#define REMEDY_TENANTS 8 /* tenants without which the plan is tried */

double planning_miss(const struct planning *p, uint32_t i)
{
	return meister_latency(&p->plan.system, i) - p->tenants[i].slo;
}

/* ---- remedies */

void planning_remedies_free(struct planning_remedies *r)
{
	free(r->slo);
	free(r->rate);
	free(r->depth);
	free(r->without);
}

/* Find slos of all tenants that are late: at most the bounds at the priorities found. */
static int remedy_slos(const struct planning *p, struct planning_remedies *r)
{
	double x = 0;
	bool bounded = true;
	int rc = 0;

	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		double bound = meister_latency(&p->plan.system, i) * (1 + 1e-9);

		r->slo[i] = fmax(p->tenants[i].slo, bound);
		bounded &= isfinite(bound);
	}
	if (bounded)
		rc = plan_remedy_slo(&p->in, r->slo, &x);
	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		double slo = p->tenants[i].slo;

		r->slo[i] = rc == 1 && planning_miss(p, i) > 0 ? slo + x * (r->slo[i] - slo) : 0;
	}
	return rc < 0 ? rc : 0;
}

static int remedy_rates(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_tenants; i++)
		if (planning_miss(p, i) > 0)
			rc = plan_remedy_rate(&p->in, i, &r->rate[i]);
	return rc < 0 ? rc : 0;
}

static int remedy_depths(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_stages; i++)
		if (p->stage[i].used && !p->stage[i].link)
			rc = plan_remedy_depth(&p->in, i, &r->depth[i]);
	return rc < 0 ? rc : 0;
}

static int remedy_without(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_tenants && i < REMEDY_TENANTS; i++) {
		rc = plan_remedy_without(&p->in, i);
		r->without[i] = rc > 0;
	}
	return rc < 0 ? rc : 0;
}

int planning_remedies(const struct planning *p, struct planning_remedies *ret)
{
	int rc;

	*ret = (struct planning_remedies){.slo = calloc(p->in.n_tenants + 1, sizeof(*ret->slo)),
		.rate = calloc(p->in.n_tenants + 1, sizeof(*ret->rate)),
		.depth = calloc(p->in.n_stages + 1, sizeof(*ret->depth)),
		.without = calloc(p->in.n_tenants + 1, sizeof(*ret->without))};
	if (!ret->slo || !ret->rate || !ret->depth || !ret->without)
		return -ENOMEM;
	rc = remedy_slos(p, ret);
	if (rc == 0)
		rc = remedy_rates(p, ret);
	if (rc == 0)
		rc = remedy_depths(p, ret);
	return rc < 0 ? rc : remedy_without(p, ret);
}

/* ---- output */

/* Write the plan to a file, and send it to a gateway, as the options say. */
static int write_plan(const struct planning *p, const char *const *values)
{
	time_t now = time(NULL);
	struct tm tm;
	struct weir_err err;
	char made[32], *text;
	json_t *file;
	int status = 0;

	strftime(made, sizeof(made), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	file = planning_file(p, made);
	text = file ? json_dumps(file, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(file);
	if (!text)
		return opts_no_memory(&verb_plan);
	if (values[OUT] && files_write(values[OUT], text, strlen(text), &err) < 0)
		status = opts_fail(&verb_plan, "%s", err.text);
	if (status == 0 && values[APPLY])
		status = plan_apply(values + SOCKET, text, strlen(text));
	free(text);
	return status;
}

static int print_json(const struct planning *p, const struct planning_remedies *r)
{
	json_t *out = planning_json(p, r);
	int bad = !out || json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) < 0;

	putchar('\n');
	json_decref(out);
	return bad ? -ENOMEM : 0;
}

/* Say whether the tenants of --admit fit; all of them are known. */
static void answer(const struct planning *p)
{
	size_t n = p->policy->n_tenants - p->first_new, unknown = 0;

	for (size_t i = 0; i < p->n_unknown; i++)
		unknown += p->unknown[i] >= p->first_new;
	printf("%s: %zu new tenant%s %s\n", p->plan.feasible ? "yes" : "no", n, n == 1 ? "" : "s",
		p->plan.feasible ? "would fit, and every slo would hold"
				 : "would not fit beside the others");
	if (unknown)
		printf("%zu of them %s an slo without a trace, which is not judged.\n", unknown,
			unknown == 1 ? "has" : "have");
}

static int show_all(const struct planning *p, const char *const *values)
{
	struct planning_remedies remedies, *r = NULL;
	int rc = 0;

	if (!p->plan.feasible) {
		rc = planning_remedies(p, &remedies);
		r = &remedies;
	}
	if (rc == 0 && values[ADMIT] && !values[JSON])
		answer(p);
	if (rc == 0)
		rc = values[JSON] ? print_json(p, r) : planning_show(p, r);
	if (r)
		planning_remedies_free(r);
	return rc < 0 ? opts_no_memory(&verb_plan) : 0;
}

static int plan_main(const char *const *values, char **operands, int n)
{
	struct planning p;
	bool wanted = values[OUT] || values[APPLY];
	int status;

	if (n != 1)
		return opts_fail(&verb_plan, "needs one POLICY");
	if (values[ADMIT] && wanted)
		return opts_fail(
			&verb_plan, "--admit changes nothing, and --out and --apply need a plan");
	if (values[BEST] && !wanted)
		return opts_fail(&verb_plan, "--best goes with --out or --apply");
	status = planning_read(&(struct planning_options){operands[0], values[ADMIT], values[WORK],
				       values[INSIDE], values[PAIRS]},
		&p);
	if (status == 0)
		status = show_all(&p, values);
	if (status == 0)
		status = p.plan.feasible ? 0 : 1;
	if (wanted && (status == 0 || (status == 1 && values[BEST]))) {
		int failed = write_plan(&p, values);

		status = failed ? failed : status;
	} else if (wanted && status == 1) {
		fputs("The plan is not used: give --best to use it all the same.\n", stderr);
	}
	planning_free(&p);
	return status;
}

const struct verb verb_plan = {
	.name = "plan",
	.summary = "plan priorities and token buckets that keep latency SLOs",
	.usage = "[OPTION]... POLICY",
	.options = options,
	.run = plan_main,
};
