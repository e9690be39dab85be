/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "sim/control/adaptbf-server.h"
#include "control/adaptbf/keys.h"
#include "sim/measure.h"
#include "sim/control/server-jobs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct settings { /* the controller's map */
	struct adaptbf_config config;
	enum adaptbf_gate_mode mode;
	enum weir_unit unit; /* of a token */
	double depth;
};

struct server {
	struct settings settings;
	struct server_jobs jobs;
	struct adaptbf *adaptbf;
	struct adaptbf_gate *driver;
	weir_time sampled;   /* when the series last got a point */
	int64_t records_off; /* the largest |Σ records + tombstone| that was ever seen */
	int64_t tokens_off;  /* and |Σ tokens − the period's| */
};

static const char *const keys[] = {"kind", "period", "device", "rate", "learn", "tokens", "unit",
	"depth", "forget", "headroom", "debt", "without", NULL};
static const char *const switches[] = {"nothing", "lending", "repayment", "bound", NULL};
static const char *const modes[] = {"first", "hold", NULL};

/* Tokens of bytes need weights that share bytes, or small requests could not use theirs beside large ones. */
static int check_unit(
	const struct scenario *s, yamldoc_node map, enum weir_unit unit, struct weir_err *err)
{
	uint32_t device;
	int r = scenario_device_of(s, map, &device, err);

	if (r == 0 && unit == WEIR_UNIT_BYTES &&
		s->stations[device].gate->config.cost != WEIR_UNIT_BYTES)
		r = yamldoc_error(yamldoc_get(map, "unit"), err,
			"the gate of '%s' must share bytes, too: it needs 'cost: bytes'",
			s->stations[device].name);
	return r;
}

static int read_map(
	const struct scenario *s, yamldoc_node map, struct settings *ret, struct weir_err *err)
{
	int mode = ADAPTBF_GATE_FIRST, without = ADAPTBF_WITHOUT_NOTHING, r;

	*ret = (struct settings){
		.config = {.period = adaptbf_server_ops.period, .debt = ADAPTBF_DEBT}};
	if ((r = yamldoc_map(map, keys, err)) || (r = server_jobs_check(s, map, err)) ||
		(r = yamldoc_optional(yamldoc_time(map, "period", &ret->config.period, err))) ||
		(r = yamldoc_optional(yamldoc_bool(map, "learn", &ret->config.learn, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "tokens", modes, &mode, err))) ||
		(r = yamldoc_optional(adaptbf_keys_unit(map, &ret->unit, err))) ||
		(r = check_unit(s, map, ret->unit, err)) ||
		(r = yamldoc_optional(adaptbf_keys_debt(map, &ret->config.debt, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "depth", &ret->depth, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "without", switches, &without, err))) ||
		(r = yamldoc_optional(yamldoc_time(map, "forget", &ret->config.forget, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "headroom", &ret->config.headroom, err))))
		return r;
	r = adaptbf_keys_rate(map, "rate", ret->unit, &ret->config.rate, err);
	if (r == -ENOENT)
		return yamldoc_error(map, err, "needs a 'rate', as in '1k iops'");
	if (r)
		return r;
	if (ret->depth != 0 && ret->depth < 1)
		return yamldoc_error(yamldoc_get(map, "depth"), err, "must be at least 1");
	ret->mode = (enum adaptbf_gate_mode)mode;
	ret->config.hold = mode == ADAPTBF_GATE_HOLD;
	ret->config.without = (enum adaptbf_without)without;
	return 0;
}

static int server_check(const struct scenario *s, yamldoc_node map, struct weir_err *err)
{
	struct settings settings;

	return read_map(s, map, &settings, err);
}

static void server_free(void *state)
{
	struct server *v = state;

	adaptbf_gate_free(v->driver);
	adaptbf_free(v->adaptbf);
	server_jobs_free(&v->jobs);
	free(v);
}

static int server_init(struct world *w, const struct scenario_controller *config, void **ret_state,
	struct weir_err *err)
{
	struct server *v = calloc(1, sizeof(*v));
	int r = v ? read_map(w->scenario, config->node, &v->settings, err) : -ENOMEM;

	if (!v)
		return no_memory(err);
	if (r == 0)
		r = server_jobs_init(&v->jobs, w, config->node, err);
	if (r == 0) {
		r = adaptbf_new(&v->settings.config, &v->adaptbf);
		if (r == 0)
			r = adaptbf_gate_new(v->jobs.gate->gate, v->settings.mode,
				v->settings.depth, &v->driver);
		if (r == 0)
			adaptbf_gate_unit(v->driver, v->settings.unit);
		if (r == 0 && v->settings.depth <= 0)
			adaptbf_gate_span(v->driver, ADAPTBF_GATE_SPAN);
		if (r == 0)
			r = adaptbf_gate_leaves(v->driver, v->jobs.leaves, v->jobs.n);
		if (r)
			weir_err_set(err, r, "adaptbf: %s", strerror(-r));
	}
	if (r) {
		server_free(v);
		return r;
	}
	*ret_state = v;
	return 0;
}

/* ---- a step */

static const char *rate_unit(const struct server *v)
{
	return v->settings.unit == WEIR_UNIT_BYTES ? "tokens/s" : "iops";
}

static int put(struct metrics *m, double t, double value, const char *unit, const char *job,
	const char *name)
{
	int series = metrics_seriesf(m, unit, "adaptbf.%s.%s", job, name);

	return series < 0 ? series : metrics_append(m, series, t, value);
}

/* What the ledger says that the job gave beyond its priority, less what it got and what aged away. */
static int64_t ledger_sum(const struct ledger_account *l)
{
	return l->lent + l->repaid + l->forgiven - l->borrowed - l->regained - l->written_off;
}

static int put_series(struct server *v, struct world *w)
{
	struct metrics *m = w->measure->metrics;
	double t = (double)w->now / WEIR_SEC;
	struct adaptbf_state state;
	int r;

	adaptbf_state(v->adaptbf, &state);
	r = put(m, t, state.rate, rate_unit(v), "server", "rate");
	for (size_t i = 0; r == 0 && i < v->jobs.n; i++) {
		struct adaptbf_account a = {0};
		const char *name = v->jobs.names[i];

		(void)adaptbf_account(v->adaptbf, v->jobs.leaves[i].id, &a); /* zeros, if not */
		if ((r = put(m, t, (double)a.tokens, "tokens", name, "tokens")) ||
			(r = put(m, t, (double)a.record, "tokens", name, "record")) ||
			(r = put(m, t, (double)a.demand, "requests", name, "demand")))
			break;
		r = put(m, t, (double)ledger_sum(&a.ledger), "tokens", name, "given");
	}
	return r;
}

/* Both sums, at every step: the run reports the worst. */
static void audit(struct server *v)
{
	struct adaptbf_state state;
	struct adaptbf_account a;
	int64_t records, tokens = 0;

	adaptbf_state(v->adaptbf, &state);
	records = state.tombstone;
	for (size_t i = 0; i < adaptbf_places(v->adaptbf); i++) {
		if (!adaptbf_account_at(v->adaptbf, i, &a))
			continue;
		records += a.record;
		tokens += a.tokens;
	}
	if (state.active)
		tokens -= state.tokens;
	if (llabs(records) > v->records_off)
		v->records_off = llabs(records);
	if (llabs(tokens) > v->tokens_off)
		v->tokens_off = llabs(tokens);
}

static int server_step(void *state, struct world *w, weir_time now, struct weir_err *err)
{
	struct server *v = state;
	struct adaptbf_state s;
	int r = adaptbf_step(v->adaptbf, now, &adaptbf_gate_ops, v->driver);

	if (r)
		return weir_err_set(err, r, "adaptbf: %s", strerror(-r));
	world_touch(w, v->jobs.gate);
	audit(v);
	adaptbf_state(v->adaptbf, &s);
	if (v->settings.config.learn && v->settings.unit == WEIR_UNIT_REQUESTS)
		v->jobs.station->capacity = s.rate;
	if (!w->scenario->sample || (v->sampled && now - v->sampled < w->scenario->sample))
		return 0;
	v->sampled = now;
	r = put_series(v, w);
	return r ? weir_err_set(err, r, "adaptbf: the series") : 0;
}

/* ---- what comes of it */

static int report_job(struct server *v, size_t i, struct metrics *m)
{
	const char *name = v->jobs.names[i];
	struct adaptbf_account a = {0};
	int r;

	(void)adaptbf_account(v->adaptbf, v->jobs.leaves[i].id, &a);
	const struct {
		const char *name;
		int64_t value;
	} values[] = {{"record_end", a.record}, {"lent", a.ledger.lent},
		{"borrowed", a.ledger.borrowed}, {"repaid", a.ledger.repaid},
		{"regained", a.ledger.regained}, {"written_off", a.ledger.written_off},
		{"forgiven", a.ledger.forgiven}};

	r = 0;
	for (size_t k = 0; r == 0 && k < sizeof(values) / sizeof(values[0]); k++)
		r = metrics_putf(m, "tokens", (double)values[k].value, "adaptbf.%s.%s", name,
			values[k].name);
	return r;
}

static int server_report(void *state, struct world *w, struct metrics *m)
{
	struct server *v = state;
	struct adaptbf_state s;
	int r = 0;

	adaptbf_state(v->adaptbf, &s);
	for (size_t i = 0; r == 0 && i < v->jobs.n; i++)
		r = report_job(v, i, m);
	if (r || (r = metrics_put(m, "adaptbf.server.rate_end", rate_unit(v), s.rate)) ||
		(r = metrics_put(
			 m, "adaptbf.server.written_off", "tokens", (double)s.written_off)) ||
		(r = metrics_put(m, "adaptbf.server.aged", "tokens", (double)s.aged)) ||
		(r = metrics_put(m, "adaptbf.server.steps", "", (double)s.steps)) ||
		(r = metrics_put(
			 m, "adaptbf.server.records_off", "tokens", (double)v->records_off)))
		return r;
	return metrics_put(m, "adaptbf.server.tokens_off", "tokens", (double)v->tokens_off);
}

const struct sim_controller_ops adaptbf_server_ops = {
	.name = "adaptbf",
	.period = 100 * WEIR_MS,
	.check = server_check,
	.init = server_init,
	.step = server_step,
	.report = server_report,
	.free = server_free,
};
