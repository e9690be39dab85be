/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: the keys of a resource whose own gate is steered, without other hosts: AdapTBF, and rules
 * as Lustre's filter has them.
 */
#include "control/adaptbf/keys.h"
#include "policy/impl.h"
#include "control/tbf/tbf.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static const char *const adaptbf_keys[] = {
	"period", "tokens", "unit", "depth", "guess", "headroom", "forget", "debt", NULL};
static const char *const tokens_words[] = {"first", "hold", NULL};
static const char *const tbf_keys[] = {"depth", "default", "rules", NULL};
static const char *const rule_keys[] = {"match", "rate", NULL};

#define PERIOD      (100 * WEIR_MS) /* the paper's */
#define GUESS       1000.0          /* requests per second: more than a disk, less than a flash */
#define GUESS_BYTES 104857600.0     /* bytes per second: the same */
#define DEPTH_MAX   1000000

/* -ENOENT: it is not there. */
static int read_iops(struct policy_reading *r, yamldoc_node n, const char *key, double *ret)
{
	struct weir_rate rate;
	struct weir_err err;
	int rc = policy_took(r, yamldoc_rate(n, key, &rate, &err), &err);

	if (rc)
		return rc;
	if (rate.unit != WEIR_UNIT_REQUESTS || !(rate.per_second >= POLICY_RATE_MIN) ||
		rate.per_second > POLICY_RATE_MAX) {
		policy_refuse(r, yamldoc_get(n, key), "must be in iops, and more than 0");
		return -EINVAL;
	}
	*ret = rate.per_second;
	return 0;
}

/* ---- AdapTBF */

static void read_adaptbf(struct policy_reading *r, yamldoc_node n, struct weir_policy_adaptbf *to)
{
	struct adaptbf_debt debt = ADAPTBF_DEBT;
	struct weir_err err;
	int64_t depth = 0;
	int tokens = 0;

	if (!n.id || !policy_keys(r, n, adaptbf_keys))
		return;
	policy_took(r, adaptbf_keys_unit(n, &to->unit, &err), &err);
	if (to->unit == WEIR_UNIT_BYTES)
		to->guess = GUESS_BYTES / ADAPTBF_TOKEN_BYTES;
	policy_took(r, adaptbf_keys_debt(n, &debt, &err), &err);
	to->debt_floor = debt.floor;
	to->debt_half_life = debt.half_life;
	if (policy_took(r, yamldoc_time(n, "period", &to->period, &err), &err) == 0 &&
		(to->period < 10 * WEIR_MS || to->period > 60 * WEIR_SEC))
		policy_refuse(r, yamldoc_get(n, "period"), "must be from 10 ms to 60 s");
	policy_took(r, yamldoc_choice(n, "tokens", tokens_words, &tokens, &err), &err);
	to->hold = tokens == 1;
	policy_took(r, yamldoc_int(n, "depth", 1, DEPTH_MAX, &depth, &err), &err);
	to->depth = (double)depth;
	if (depth && !to->hold)
		policy_refuse(r, yamldoc_get(n, "depth"), "is for 'tokens: hold'");
	policy_took(r, adaptbf_keys_rate(n, "guess", to->unit, &to->guess, &err), &err);
	policy_took(r, yamldoc_count(n, "headroom", &to->headroom, &err), &err);
	if (!(to->headroom <= 1))
		policy_refuse(r, yamldoc_get(n, "headroom"), "must be at most 1");
	if (policy_took(r, yamldoc_time(n, "forget", &to->forget, &err), &err) == 0 &&
		to->forget < WEIR_SEC)
		policy_refuse(r, yamldoc_get(n, "forget"), "must be at least 1 s");
}

/* ---- rules */

static void read_rule(struct policy_reading *r, yamldoc_node n, struct weir_policy_tbf *to)
{
	struct weir_policy_tbf_rule *rule = &to->rules[to->n_rules];

	if (!policy_keys(r, n, rule_keys))
		return;
	rule->match = policy_get_string(r, n, "match");
	if (!yamldoc_has(n, "match") || !yamldoc_has(n, "rate"))
		policy_refuse(r, n, "needs 'match' and 'rate'");
	else if (rule->match && strspn(rule->match, " ") == strlen(rule->match))
		policy_refuse(r, yamldoc_get(n, "match"), "must name something");
	else if (read_iops(r, n, "rate", &rule->rate) == 0 && rule->match)
		to->n_rules++;
}

static void read_tbf(struct policy_reading *r, yamldoc_node n, struct weir_policy_tbf *to)
{
	yamldoc_node rules = yamldoc_get(n, "rules");
	struct weir_err err;
	int64_t depth = TBF_DEPTH;

	if (!n.id || !policy_keys(r, n, tbf_keys))
		return;
	policy_took(r, yamldoc_int(n, "depth", 1, DEPTH_MAX, &depth, &err), &err);
	to->depth = (unsigned)depth;
	read_iops(r, n, "default", &to->other);
	if (!rules.id || policy_took(r, yamldoc_list(rules, &err), &err) != 0)
		return;
	to->rules = policy_alloc(r, (yamldoc_size(rules) + 1) * sizeof(*to->rules));
	for (size_t i = 0; to->rules && i < yamldoc_size(rules); i++)
		read_rule(r, yamldoc_at(rules, i), to);
}

void policy_server_read_resource(struct policy_reading *r, yamldoc_node n, struct weir_resource *to)
{
	to->adaptbf = (struct weir_policy_adaptbf){.period = PERIOD,
		.guess = GUESS,
		.debt_floor = ADAPTBF_DEBT.floor,
		.debt_half_life = ADAPTBF_DEBT.half_life};
	to->tbf = (struct weir_policy_tbf){.depth = TBF_DEPTH, .other = INFINITY};
	read_adaptbf(r, yamldoc_get(n, "adaptbf"), &to->adaptbf);
	read_tbf(r, yamldoc_get(n, "tbf"), &to->tbf);
	if (yamldoc_get(n, "adaptbf").id && to->controller != WEIR_CONTROLLER_ADAPTBF)
		policy_refuse(r, n, "adaptbf is for 'controller: adaptbf'");
	if (yamldoc_get(n, "tbf").id && to->controller != WEIR_CONTROLLER_TBF)
		policy_refuse(r, n, "tbf is for 'controller: tbf'");
	if (to->controller == WEIR_CONTROLLER_TBF && !yamldoc_has(n, "tbf"))
		policy_refuse(r, n,
			"controller tbf needs its rules, as in 'tbf: {rules: [{match: \"*\", rate: "
			"1k iops}]}'");
}
