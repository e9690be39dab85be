/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/adaptbf/controller.h"
#include "control/adaptbf/facts.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The law takes whole weights: 1024 keeps ten binary digits of a fractional one. */
#define WEIGHT_UNIT 1024.0
/* Interval of steps while no request arrives: there is nothing to do but forget jobs. */
#define IDLE   (10 * WEIR_SEC)
#define SWEEP  256 /* names checked per step */
#define NEWEST 0.1 /* weight of the newest step in the mean step time: about a second of steps */

/* ---- a step */

/* Return true if no job had tokens, and no request came or went since. */
static bool is_idle(const struct adaptbf_control *s, weir_time now)
{
	struct lend_state state;

	lend_state(s->adaptbf, &state);
	return state.active == 0 && state.steps > 0 && now - s->stepped < IDLE &&
	       s->site->ops->activity(s->site) == s->activity;
}

static bool is_kept(uint64_t id, void *arg)
{
	const struct adaptbf_control *s = arg;
	struct lend_account ignored;

	return adaptbf_gate_has(s->driver, id) || lend_account(s->adaptbf, id, &ignored) == 0;
}

/* Drop some names that belong to neither a tenant nor a remembered job. A plan has its own
 * names. */
static void sweep_names(struct adaptbf_control *s)
{
	if (s->driver && !s->plan.ids)
		jobnames_sweep(&s->names, SWEEP, is_kept, s);
}

/* Check that both sums are 0; keep the largest error for the facts. */
static void audit(struct adaptbf_control *s)
{
	int64_t tokens, records;

	adaptbf_facts_audit(s->adaptbf, &tokens, &records);
	if (llabs(tokens) > s->tokens_off)
		s->tokens_off = llabs(tokens);
	if (llabs(records) > s->records_off)
		s->records_off = llabs(records);
}

int adaptbf_control_step(struct adaptbf_control *s, weir_time now)
{
	struct site *site = s->site;
	weir_time begin = site_cpu_time(site);
	double took;
	int r;

	s->activity = site->ops->activity(site);
	s->stepped = now;
	r = lend_step(s->adaptbf, now, &adaptbf_gate_ops, s->driver);
	took = (double)(site_cpu_time(site) - begin);
	s->took += (took - s->took) * (s->took > 0 ? NEWEST : 1);
	sweep_names(s);
	if (site->audits)
		audit(s);
	return r;
}

static weir_time step(void *c, weir_time now)
{
	struct adaptbf_control *s = c;
	int r = is_idle(s, now) ? 0 : adaptbf_control_step(s, now);

	if (r < 0)
		s->site->ops->tell(s->site, SITE_ERROR, "adaptbf",
			(struct site_field[]){
				{"why", r == -ENOMEM ? "out of memory" : "the gate refused a rule",
					0},
				{0}});
	/* A late thread does not catch up: rates stay in force meanwhile. */
	s->due += s->settings.period;
	if (s->due < now + s->settings.period / 2)
		s->due = now + s->settings.period;
	return s->due;
}

/* ---- before a swap */

static void plan_free(struct adaptbf_plan *p)
{
	adaptbf_gate_free(p->driver);
	free(p->ids);
	free(p->shares);
	free(p->leaves);
	*p = (struct adaptbf_plan){0};
}

static int make(struct site *site, void **ret)
{
	/* Replaced by the policy's. */
	struct lend_config config = {.rate = 1000, .learn = true};
	struct adaptbf_control *s = calloc(1, sizeof(*s));
	int r = s ? lend_new(&config, &s->adaptbf) : -ENOMEM;

	if (r < 0) {
		free(s);
		return r;
	}
	s->site = site;
	s->learns = true;
	*ret = s;
	return 0;
}

static double mean_cost(void *arg, weir_node node)
{
	const struct site *site = arg;

	return site->ops->mean_cost(site, node);
}

static int plan_driver(struct adaptbf_control *s, const struct adaptbf_settings *to)
{
	bool hold = to->tokens == ADAPTBF_TOKENS_HOLD;
	int rc;

	if (s->driver && s->settings.tokens == to->tokens && s->settings.depth == to->depth &&
		s->settings.unit == to->unit)
		return 0;
	rc = adaptbf_gate_new(
		s->site, hold ? ADAPTBF_GATE_HOLD : ADAPTBF_GATE_FIRST, to->depth, &s->plan.driver);
	if (rc < 0)
		return rc;
	adaptbf_gate_unit(s->plan.driver, (enum weir_unit)to->unit);
	if (s->site->ops->mean_cost)
		adaptbf_gate_cost(s->plan.driver, mean_cost, s->site);
	if (to->depth <= 0)
		adaptbf_gate_span(s->plan.driver, ADAPTBF_GATE_SPAN);
	return 0;
}

static int plan_begin(struct adaptbf_control *s, const struct controller_version *v)
{
	struct adaptbf_plan *plan = &s->plan;
	int r;

	plan_free(plan);
	plan->n_ids = v->n;
	plan->ids = calloc(v->n + 1, sizeof(*plan->ids));
	plan->shares = calloc(v->n + 1, sizeof(*plan->shares));
	plan->leaves = calloc(v->n + 1, sizeof(*plan->leaves));
	r = plan->ids && plan->shares && plan->leaves ? v->shares(v, plan->shares) : -ENOMEM;
	return r == 0 ? plan_driver(s, v->settings) : r;
}

static int plan_tenant(struct adaptbf_control *s, const struct controller_version *v, size_t i)
{
	struct adaptbf_plan *plan = &s->plan;
	struct controller_tenant t = v->tenant(v, i);
	double weight = rint(plan->shares[i] * WEIGHT_UNIT);

	if (!t.is_leaf)
		return 0;
	plan->ids[i] = jobnames_add(&s->names, t.path);
	if (!plan->ids[i])
		return -ENOMEM;
	plan->leaves[plan->n_leaves++] = (struct adaptbf_gate_leaf){.node = (weir_node)i,
		.id = plan->ids[i],
		.weight = (uint32_t)fmin(fmax(weight, 1), UINT32_MAX),
		.share = t.weight};
	return 0;
}

static int prepare(void *c, const struct controller_version *v, size_t from, size_t to)
{
	struct adaptbf_control *s = c;
	int r = from == 0 ? plan_begin(s, v) : 0;

	for (size_t i = from; r == 0 && i < to; i++)
		r = plan_tenant(s, v, i);
	if (r == 0 && to == v->n)
		r = adaptbf_gate_reserve(
			s->plan.driver ? s->plan.driver : s->driver, s->plan.n_leaves, s->names.n);
	if (r < 0)
		plan_free(&s->plan);
	return r;
}

/* ---- tenant by tenant */

static uint64_t id_of(const struct adaptbf_control *s, const struct controller_version *v, size_t i)
{
	return v->next ? s->plan.ids[i] : s->ids[i];
}

/* A driver that the next version will not have lets go of the tenants that have that one's knobs. */
static void take_tenant(void *c, const struct controller_version *v, size_t i, weir_node node)
{
	const struct adaptbf_control *s = c;
	bool goes = v->next && s->plan.driver;

	if (s->driver)
		adaptbf_gate_share(s->driver, id_of(s, v, i), goes ? 0 : v->tenant(v, i).weight);
}

static void leave(void *c, const struct controller_version *v, size_t i)
{
	const struct adaptbf_control *s = c;

	if (s->driver)
		adaptbf_gate_share(s->driver, id_of(s, v, i), 0);
}

static void rule(void *c, const struct controller_version *v, size_t i, struct controller_rule *ret)
{
	const struct adaptbf_control *s = c;

	*ret = (struct controller_rule){.scale = 1};
	if (s->driver && !(v->next && s->plan.driver))
		adaptbf_gate_rule(s->driver, id_of(s, v, i), &ret->bucket, &ret->scale);
}

/* ---- after it */

static void take_leaves(struct adaptbf_control *s)
{
	struct adaptbf_plan *plan = &s->plan;

	for (size_t i = 0; i < plan->n_leaves; i++) /* .node held the tenant's index */
		plan->leaves[i].node = s->site->nodes[plan->leaves[i].node];
	/* cannot fail: memory is reserved */
	adaptbf_gate_leaves(s->driver, plan->leaves, plan->n_leaves);
}

static void configure(struct adaptbf_control *s)
{
	enum weir_unit unit = (enum weir_unit)s->settings.unit;
	double (*capacity)(const struct site *, enum weir_unit) = s->site->ops->capacity;
	double seen = capacity ? capacity(s->site, unit) / lend_token_size(unit) : 0;
	struct lend_config config =
		adaptbf_settings_config(&s->settings, s->capacity[unit] / lend_token_size(unit));
	struct lend_state state;

	/* At first, or in another unit: the capacity that the site has measured is better than a
	 * guess. */
	lend_state(s->adaptbf, &state);
	if (config.learn && s->learns &&
		(unit != s->unit || (state.steps == 0 && state.known == 0)))
		lend_set_rate(s->adaptbf, seen > 0 ? seen : config.rate);
	s->unit = unit;
	lend_configure(s->adaptbf, &config); /* the settings were checked */
	s->learns = config.learn;
}

static void begin(void *c, const struct controller_version *v)
{
	struct adaptbf_control *s = c;

	if (s->plan.driver) {
		if (s->driver)
			lend_rest(s->adaptbf); /* so that the next step counts from 0 */
		adaptbf_gate_free(s->driver);
		s->driver = s->plan.driver;
		s->plan.driver = NULL;
	}
	take_leaves(s);
	free(s->ids);
	s->ids = s->plan.ids;
	s->n_ids = s->plan.n_ids;
	s->plan.ids = NULL;
	plan_free(&s->plan);
	s->settings = *(const struct adaptbf_settings *)v->settings;
	memcpy(s->capacity, v->capacity, sizeof(s->capacity));
	configure(s);
	if (s->is_on)
		return;
	s->is_on = true;
	s->due = s->site->ops->now(s->site) + s->settings.period;
	s->site->ops->wake(s->site, s->due);
}

static void end(void *c)
{
	struct adaptbf_control *s = c;

	lend_rest(s->adaptbf);
	adaptbf_gate_free(s->driver); /* the swap has removed its rules from the gate */
	s->driver = NULL;
	free(s->ids);
	s->ids = NULL;
	s->n_ids = 0;
	s->is_on = false;
}

static void destroy(void *c)
{
	struct adaptbf_control *s = c;

	plan_free(&s->plan);
	adaptbf_gate_free(s->driver);
	lend_free(s->adaptbf);
	jobnames_free(&s->names);
	free(s->ids);
	free(s);
}

/* ---- facts */

static void fill_facts(
	const void *c, const struct facts_site *site, bool tenants, bool state, struct facts *ret)
{
	const struct adaptbf_control *s = c;
	struct adaptbf_facts_of of = {.adaptbf = s->adaptbf,
		.ids = tenants ? s->ids : NULL,
		.n_ids = tenants ? s->n_ids : 0,
		.all = s->site->audits,
		.names = state ? &s->names : NULL,
		.on = s->driver != NULL,
		.hold = s->settings.tokens == ADAPTBF_TOKENS_HOLD,
		.learns = s->learns,
		.unit = s->unit,
		.now = s->site->ops->now(s->site),
		.period = s->settings.period,
		.took = (weir_time)s->took,
		.tokens_off = s->tokens_off,
		.records_off = s->records_off};

	adaptbf_facts.fill(&of, site, ret);
}

static double learned(const void *c, enum weir_unit unit)
{
	const struct adaptbf_control *s = c;
	struct lend_state state;

	if (!s->learns || unit != s->unit)
		return 0;
	lend_state(s->adaptbf, &state);
	return state.rate * lend_token_size(unit);
}

static uint64_t steps(const void *c)
{
	const struct adaptbf_control *s = c;
	struct lend_state state;

	lend_state(s->adaptbf, &state);
	return state.steps;
}

static int restore(void *c, const struct facts *from, weir_time then)
{
	struct adaptbf_control *s = c;
	struct lend *made;
	int r;

	r = adaptbf_facts_restore(from, then, &s->names, &made);
	if (r < 0)
		return r;
	lend_free(s->adaptbf);
	s->adaptbf = made;
	s->unit = adaptbf_facts_unit(from);
	if (s->driver)
		configure(s);
	return 0;
}

static const struct key_help help[] = {
#include "control/adaptbf/keys.inc"
	{0}};

const struct controller adaptbf_controller = {
	.name = "adaptbf",
	.summary = "lends tokens that a job leaves unused to other jobs of a server, and has them "
		   "repaid",
	.keys = adaptbf_keys,
	.help = help,
	.settings_size = sizeof(struct adaptbf_settings),
	.check = adaptbf_keys_check,
	.counts_bytes = adaptbf_keys_count_bytes,
	.new = make,
	.free = destroy,
	.prepare = prepare,
	.take = take_tenant,
	.leave = leave,
	.begin = begin,
	.end = end,
	.rule = rule,
	.step = step,
	.facts = &adaptbf_facts,
	.look = fill_facts,
	.learned = learned,
	.restore = restore,
	.steps = steps,
};
