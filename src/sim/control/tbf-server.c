/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller `tbf`: rules, looked up once for each leaf; then nothing changes. */
#include "control/tbf/tbf.h"
#include "sim/control/adaptbf-server.h"
#include "sim/control/server-jobs.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const keys[] = {"kind", "period", "device", "depth", "default", "rules", NULL};
static const char *const rule_keys[] = {"match", "rate", NULL};

static int read_rate(yamldoc_node map, const char *key, double *ret, struct weir_err *err)
{
	struct weir_rate rate;
	int r = yamldoc_rate(map, key, &rate, err);

	if (r)
		return r;
	if (rate.unit != WEIR_UNIT_REQUESTS || !(rate.per_second > 0))
		return yamldoc_error(
			yamldoc_get(map, key), err, "must be in iops, and more than 0");
	*ret = rate.per_second;
	return 0;
}

/* In the order of the file: each stands before `default`. */
static int read_rule(struct tbf *t, yamldoc_node map, size_t i, struct weir_err *err)
{
	const char *match;
	char name[TBF_NAME];
	double rate;
	int r = yamldoc_map(map, rule_keys, err);

	if (r || (r = yamldoc_string(map, "match", &match, err)) ||
		(r = read_rate(map, "rate", &rate, err)))
		return r == -ENOENT ? yamldoc_error(map, err, "needs 'match' and 'rate'") : r;
	snprintf(name, sizeof(name), "r%u", (unsigned)i);
	r = tbf_start(t, name, match, rate, "default");
	return r ? yamldoc_error(map, err, "match: must name something") : 0;
}

static int read_map(
	const struct scenario *s, yamldoc_node map, struct tbf **ret, struct weir_err *err)
{
	yamldoc_node rules = yamldoc_get(map, "rules");
	double other = INFINITY;
	int64_t depth = TBF_DEPTH;
	int r;

	if ((r = yamldoc_map(map, keys, err)) || (r = server_jobs_check(s, map, err)) ||
		(r = yamldoc_optional(yamldoc_int(map, "depth", 1, 1000000, &depth, err))) ||
		(r = yamldoc_optional(read_rate(map, "default", &other, err))))
		return r;
	if (rules.id && (r = yamldoc_list(rules, err)))
		return r;
	r = tbf_new((unsigned)depth, other, ret);
	if (r)
		return weir_err_set(err, r, "out of memory");
	for (size_t i = 0; rules.id && r == 0 && i < yamldoc_size(rules); i++)
		r = read_rule(*ret, yamldoc_at(rules, i), i, err);
	if (r)
		tbf_free(*ret);
	return r;
}

static int tbf_server_check(const struct scenario *s, yamldoc_node map, struct weir_err *err)
{
	struct tbf *t;
	int r = read_map(s, map, &t, err);

	if (r == 0)
		tbf_free(t);
	return r;
}

static int set_leaf(struct world *w, const struct server_jobs *j, size_t i, const struct tbf *t,
	struct weir_err *err)
{
	const struct adaptbf_gate_leaf *leaf = &j->leaves[i];
	struct weir_bucket_spec specs[64 + 1]; /* room for all, and the rule */
	struct weir_knob knob = {.node = leaf->node, .kind = WEIR_KNOB_BUCKETS, .buckets = specs};
	double rate;
	int n;

	tbf_match(t, j->names[i], &rate);
	if (isinf(rate))
		return 0;
	n = weir_gate_get_buckets(j->gate->gate, w->now, leaf->node, specs, NULL, 64);
	if (n < 0)
		return n;
	specs[n] = (struct weir_bucket_spec){WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, rate, tbf_depth(t)};
	knob.n_buckets = (uint32_t)n + 1;
	return world_gate_set(w, j->gate, &knob, 1, err);
}

static int tbf_server_init(struct world *w, const struct scenario_controller *config,
	void **ret_state, struct weir_err *err)
{
	struct server_jobs jobs = {0};
	struct tbf *t;
	int r = read_map(w->scenario, config->node, &t, err);

	if (r)
		return r;
	r = server_jobs_init(&jobs, w, config->node, err);
	for (size_t i = 0; r == 0 && i < jobs.n; i++)
		r = set_leaf(w, &jobs, i, t, err);
	server_jobs_free(&jobs);
	tbf_free(t);
	*ret_state = NULL;
	return r;
}

static int tbf_server_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	return 0;
}

const struct sim_controller_ops tbf_server_ops = {
	.name = "tbf",
	.period = WEIR_SEC, /* it does nothing then */
	.check = tbf_server_check,
	.init = tbf_server_init,
	.step = tbf_server_step,
	.free = free,
};
