/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench plan: the cost of a planner's parts, and how many orders its search finds.
 *
 * METHOD  Workloads at three stages with four buckets each, whose rates and sizes are spread over magnitudes, as those of real
 *         traces are; together they ask for 80 % of each stage. Their SLOs are the bounds of a random order, the same at each
 *         stage, and a little slack: such an order greedy finds. For the row of the search each stage has an order of its own,
 *         and the slack is 20 %. The frontier is that of a trace with bursts; the replay that of ten minutes of 64 tenants.
 */
#include "base/no-memory.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "control/meister/bound.h"
#include "control/meister/plan.h"
#include "control/meister/sum.h"
#include "plan/ask.h"
#include "serve/loop/parallel.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { STAGES = 3, PAIRS = 4 };

struct system_of {
	struct plan_stage stages[STAGES];
	struct plan_tenant *tenants;
	struct plan_hop *hops; /* STAGES of each */
	struct plan_input in;
};

static double spread(struct rng *r, double least, double most)
{
	return least * pow(most / least, rng_double(r));
}

static int system_new(struct system_of *x, struct rng *r, uint32_t n)
{
	*x = (struct system_of){.tenants = calloc(n, sizeof(*x->tenants)),
		.hops = calloc((size_t)n * STAGES, sizeof(*x->hops))};
	if (!x->tenants || !x->hops)
		return -ENOMEM;
	for (uint32_t s = 0; s < STAGES; s++)
		x->stages[s] = (struct plan_stage){.rate = 1, .depth = 1, .largest = 1e-4};
	for (uint32_t i = 0; i < n; i++) {
		x->tenants[i] = (struct plan_tenant){1, &x->hops[i * STAGES], STAGES};
		for (uint32_t s = 0; s < STAGES; s++) {
			struct plan_hop *h = &x->tenants[i].hop[s];
			double rate = 0.8 / n * spread(r, 0.3, 1.6), size = spread(r, 0.01, 1) / n;

			h->stage = s;
			h->n = PAIRS;
			for (unsigned k = PAIRS; k-- > 0; size *= spread(r, 0.1, 0.8)) {
				h->pair[k] = (struct meister_pair){rate, size};
				rate *= spread(r, 1.2, 8);
			}
			h->n = (unsigned)meister_pairs_reduce(h->pair, PAIRS);
		}
	}
	x->in = (struct plan_input){
		x->stages, x->tenants, STAGES, n, {.greedy = true, .anneal = true, .seed = 1}};
	return 0;
}

static void system_free(struct system_of *x)
{
	free(x->tenants);
	free(x->hops);
}

/* Set SLOs that a random order meets, the same at all stages or one for each. */
static int set_slos(struct system_of *x, struct rng *r, bool own, double slack)
{
	struct plan_input in = x->in;
	uint32_t n = in.n_tenants, *order = calloc(n, sizeof(*order));
	struct plan p;
	int rc;

	in.how = (struct meister_search){0}; /* fills the system in */
	rc = order ? plan_make(&in, &p) : -ENOMEM;
	for (uint32_t s = 0; rc == 0 && s < STAGES; s++) {
		for (uint32_t i = 0; (own || s == 0) && i < n; i++) {
			uint32_t k = (uint32_t)rng_below(r, i + 1);

			order[i] = order[k];
			order[k] = i;
		}
		for (uint32_t i = 0; i < n; i++)
			p.system.hops[p.workloads[i].hops + s].priority = order[i];
	}
	if (rc == 0)
		rc = meister_bounds(&p.system);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		x->tenants[i].slo = meister_latency(&p.system, i) * slack;
	if (order && rc == 0)
		plan_free(&p);
	free(order);
	return rc;
}

/* ---- the prioritizer */

static int plan_once(const struct plan_input *in, double *ret_ns, enum meister_found *ret_found)
{
	struct plan p;
	weir_time begin = bench_cpu_clock();
	int rc = plan_make(in, &p);

	if (rc < 0)
		return rc;
	*ret_ns = (double)(bench_cpu_clock() - begin);
	*ret_found = p.found;
	plan_free(&p);
	return 0;
}

static int bench_prioritizer(
	struct bench *b, uint32_t n, const char *name, const char *key, const char *target)
{
	struct bench_samples ours = {0};
	struct system_of x;
	struct rng r;
	int rc;

	rng_init(&r, n, "bench-plan");
	rc = system_new(&x, &r, n);
	if (rc == 0)
		rc = set_slos(&x, &r, false, 1.001);
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		enum meister_found found;
		double ns = 0;

		rc = plan_once(&x.in, &ns, &found);
		if (rc == 0 && found != MEISTER_GREEDY)
			rc = -EIO;
		bench_sample(&ours, ns / 1e6);
	}
	if (rc == 0)
		bench_add(b, name, "ms", &ours, target)->key = key;
	system_free(&x);
	return rc;
}

/* ---- one bound */

static int bench_bound(struct bench *b)
{
	const int rounds = b->quick ? 2000 : 20000;
	struct bench_samples ours = {0};
	struct meister_knee knees[64 * PAIRS], own[64][PAIRS];
	struct meister_turn turns[64 * PAIRS];
	uint32_t place[64] = {0};
	struct meister_sum sum = {0, turns};
	struct meister_curve all = {0, knees};
	struct system_of x;
	struct rng r;
	int rc;

	rng_init(&r, 1, "bench-bound");
	rc = system_new(&x, &r, 64);
	for (uint32_t i = 0; rc == 0 && i < 64; i++) {
		const struct plan_hop *h = &x.tenants[i].hop[0];

		meister_curve_of(h->pair, h->n, own[i]);
		meister_sum_add(&sum, &(struct meister_curve){h->n, own[i]}, i);
	}
	meister_sum_sort(&sum);
	meister_sum_of(&sum, place, 0, 1, &all);
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		weir_time begin = bench_cpu_clock();
		volatile double worst = 0;

		for (int k = 0; k < rounds; k++) {
			const uint32_t w = (uint32_t)k % 64;
			struct meister_curve c = {x.tenants[w].hop[0].n, own[w]};

			for (int s = 0; s < STAGES; s++)
				worst = meister_bound(
					(struct meister_above){&all, &c}, &c, 1, 1e-3 * s);
		}
		(void)worst;
		bench_sample(&ours, (double)(bench_cpu_clock() - begin) / rounds / 1e3);
	}
	if (rc == 0)
		bench_add(b, "a workload's bound, 3 stages, 64 workloads", "us", &ours, "<= 2")
			->key = "plan.bound";
	system_free(&x);
	return rc;
}

/* ---- the frontier */

static double peak_memory(void) /* of the process, MB */
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss * 1024 / 1e6;
}

static int bench_frontier(struct bench *b)
{
	const size_t n = b->quick ? 100000 : 1000000, rates = 1000;
	struct meister_arrival *a = calloc(n, sizeof(*a));
	struct bench_samples ours = {0};
	struct rng r;
	double t = 0, before;
	int rc = a ? 0 : -ENOMEM;

	rng_init(&r, 1, "bench-frontier");
	for (size_t i = 0; rc == 0 && i < n; i++) {
		t += rng_below(&r, 8) ? 1e-6 : rng_exp(&r, 1e-3);
		a[i] = (struct meister_arrival){t, 1e-5 * (1 + rng_double(&r))};
	}
	before = peak_memory();
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		weir_time begin = bench_cpu_clock();
		struct meister_frontier f;
		volatile double size = 0;

		rc = meister_frontier(a, n, &f);
		for (size_t k = 0; rc == 0 && k < rates; k++)
			size = meister_frontier_size(&f, f.mean * (1 + (double)k / 50));
		(void)size;
		bench_sample(&ours, (double)(bench_cpu_clock() - begin) / 1e9);
		if (rc == 0)
			meister_frontier_free(&f);
	}
	if (rc == 0)
		bench_add(b, "the frontier of 1M requests, 1,000 rates", "s", &ours, "<= 0.5")
			->key = "plan.frontier";
	if (rc == 0)
		bench_add_value(
			b, "its memory beyond the trace", "MB", peak_memory() - before, "<= 64")
			->key = "plan.frontier.memory";
	free(a);
	return rc;
}

/* ---- the search */

static uint32_t by_slo(const struct system_of *x)
{
	struct plan_input in = x->in;
	struct plan p;
	uint32_t met;

	in.how = (struct meister_search){0};
	if (plan_make(&in, &p) < 0)
		return 0;
	for (uint32_t h = 0; h < p.system.n_hops; h++) {
		p.system.hops[h].priority = 0;
		for (uint32_t i = 0; i < in.n_tenants; i++)
			p.system.hops[h].priority +=
				x->tenants[i].slo < x->tenants[p.system.hops[h].workload].slo;
	}
	met = meister_bounds(&p.system) == 0 && meister_violation(&p.system) == 0;
	plan_free(&p);
	return met;
}

static int bench_search(struct bench *b)
{
	const int sets = b->quick ? 20 : 200;
	double found[3] = {0}; /* by SLO, greedy, all */
	struct rng r;
	int rc = 0;

	rng_init(&r, 1, "bench-search");
	for (int i = 0; rc == 0 && i < sets; i++) {
		struct system_of x;
		enum meister_found how;
		double ns = 0;

		rc = system_new(&x, &r, 8 + (uint32_t)rng_below(&r, 5));
		if (rc == 0)
			rc = set_slos(&x, &r, true, 1.2);
		if (rc == 0)
			rc = plan_once(&x.in, &ns, &how);
		if (rc == 0) {
			found[0] += by_slo(&x);
			found[1] += how == MEISTER_GREEDY;
			found[2] += how != MEISTER_NOT;
		}
		system_free(&x);
	}
	if (rc < 0)
		return rc;
	bench_add_value(b, "orders found: by SLO", "%", 100 * found[0] / sets, NULL);
	bench_add_value(b, "orders found: greedy", "%", 100 * found[1] / sets, NULL);
	bench_add_value(
		b, "orders found: greedy, then annealing", "%", 100 * found[2] / sets, ">= 95")
		->key = "plan.found";
	return 0;
}

/* ---- one more tenant */

static int bench_admit(struct bench *b)
{
	struct bench_samples ours = {0};
	struct system_of x;
	struct rng r;
	int rc;

	rng_init(&r, 257, "bench-admit");
	rc = system_new(&x, &r, 257);
	if (rc == 0)
		rc = set_slos(&x, &r, false, 1.05);
	for (uint32_t i = 0; rc == 0 && i < 257; i++) /* at one stage, as on one server */
		x.tenants[i].n_hops = 1;
	x.stages[0].levels = 64; /* of a gate */
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		enum meister_found found;
		double ns = 0;

		rc = plan_once(&x.in, &ns, &found);
		bench_sample(&ours, ns / 1e6);
	}
	if (rc == 0)
		bench_add(b, "admit one tenant beside 256, by bound", "ms", &ours, "<= 5")->key =
			"plan.admit";
	system_free(&x);
	return rc;
}

/* ---- the same through the API: a body in, an object out */

enum { ASKED = 256, REQUESTS = 1000 };

/* The trace of each of them, with bursts at other times. */
static int read_made(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	FILE *f = open_memstream(ret_text, ret_len);
	double t = 0;
	struct rng r;

	if (!f)
		return no_memory(err);
	rng_init(&r, 1, name);
	fputs("# weir-trace 1\n", f);
	for (int i = 0; i < REQUESTS; i++) {
		t += rng_below(&r, 3) ? 1e-4 : rng_exp(&r, 0.3);
		fprintf(f, "%.0f R 0 4096 0\n", t * 1e9);
	}
	return fclose(f) == 0 ? 0 : -ENOMEM;
}

/* Write the policy and the body of one more tenant. */
static int write_asked(char **ret_policy, char **ret_body)
{
	json_t *body;
	char *trace;
	size_t len;
	struct weir_err err;
	FILE *f = open_memstream(ret_policy, &len);

	if (!f)
		return -ENOMEM;
	fputs("resources: [{name: d, back: \"memory:1M\", depth: 8}]\ntenants:\n", f);
	for (int i = 0; i < ASKED; i++)
		fprintf(f, "- {name: t%d, slo: \"p99 < %dms\", trace: t%d, match: {export: t%d}}\n",
			i, 1500 + 3 * i, i, i);
	if (fclose(f) != 0 || read_made(NULL, "", "new", &trace, &len, &err) < 0)
		return -ENOMEM;
	body = json_pack("{s:s, s:[{s:s, s:s, s:s, s:{s:s}}], s:{s:s}}", "work", "100us+500MB/s",
		"tenants", "name", "new", "slo", "p99 < 3s", "trace", "new", "match", "export",
		"new", "traces", "new", trace);
	*ret_body = body ? json_dumps(body, 0) : NULL;
	json_decref(body);
	free(trace);
	return *ret_body ? 0 : -ENOMEM;
}

static int ask(const struct planning_ask *a, const char *body, struct planning *ret, bool *ret_fits,
	struct weir_err *err)
{
	json_t *answer;
	char *text;
	int rc = planning_ask(a, body, strlen(body), ret, &answer, err);

	if (rc < 0)
		return rc;
	*ret_fits = json_is_true(json_object_get(answer, "feasible"));
	text = json_dumps(answer, JSON_COMPACT);
	json_decref(answer);
	free(text);
	return text ? 0 : -ENOMEM;
}

static int bench_ask(struct bench *b, struct weir_err *err)
{
	struct planning_ask a = {.reader = read_made};
	struct bench_samples ours = {0};
	struct planning base = {0}, p;
	char *policy = NULL, *body = NULL;
	bool fits = true;
	int rc = write_asked(&policy, &body);

	if (rc == 0) {
		a.policy = (struct policy_text){policy, strlen(policy), "policy"};
		rc = ask(&a, "{\"work\": \"100us+500MB/s\", \"alignments\": 0}", &base, &fits, err);
	}
	a.admit = true;
	a.base = &base;
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		weir_time begin = bench_cpu_clock();

		rc = ask(&a, body, &p, &fits, err);
		bench_sample(&ours, (double)(bench_cpu_clock() - begin) / 1e6);
		if (rc == 0)
			planning_free(&p);
		if (rc == 0 && !fits)
			rc = -EIO;
	}
	if (rc == 0)
		bench_add(b, "the same as POST /v1/plan/admit, without the socket", "ms", &ours,
			"<= 10")
			->key = "plan.ask";
	planning_free(&base);
	free(policy);
	free(body);
	return rc;
}

/* ---- a replay */

enum { TENANTS = 64 };

struct traces {
	struct trace trace[TENANTS];
	double *work[TENANTS];
	struct plan_hop hop[TENANTS];
	uint32_t priority[TENANTS];
	struct replay_tenant tenants[TENANTS];
};

static int traces_new(struct traces *x, double seconds)
{
	struct rng r;

	rng_init(&r, 1, "bench-replay");
	for (uint32_t i = 0; i < TENANTS; i++) {
		size_t n = (size_t)(seconds * 25), at = 0; /* 1,600 a second: 48 % load */
		struct meister_arrival *arrivals = calloc(n, sizeof(*arrivals));
		struct trace *t = &x->trace[i];
		int rc;

		t->records = calloc(n, sizeof(*t->records));
		x->work[i] = calloc(n, sizeof(**x->work));
		if (!arrivals || !t->records || !x->work[i])
			return -ENOMEM;
		for (t->n = n; at < n; at++) {
			weir_time gap = rng_below(&r, 5) ? 0 : (weir_time)rng_exp(&r, 2e8);

			t->records[at].at = at ? t->records[at - 1].at + gap : 0;
			x->work[i][at] = 3e-4 * (0.5 + rng_double(&r));
			arrivals[at] = (struct meister_arrival){
				(double)t->records[at].at * 1e-9, x->work[i][at]};
		}
		rc = plan_hop_of(arrivals, n, PAIRS, 1, &x->hop[i]);
		free(arrivals);
		if (rc < 0)
			return rc;
		x->priority[i] = i;
		x->tenants[i] = (struct replay_tenant){.trace = t,
			.hop = &x->hop[i],
			.n_hops = 1,
			.work = &x->work[i],
			.priority = &x->priority[i],
			.group = i,
			.percentile = 99.9};
	}
	return 0;
}

static weir_time bench_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

static int bench_replay(struct bench *b)
{
	struct traces *x = calloc(1, sizeof(*x));
	struct replay_stage stage = {.rate = 1, .depth = 8, .untraced = 3e-4};
	struct replay_result result[TENANTS];
	struct bench_samples ours = {0};
	struct parallel *pool = NULL;
	int rc = x ? traces_new(x, b->quick ? 60 : 600) : -ENOMEM;

	if (rc == 0)
		rc = parallel_new(2, &pool);
	for (unsigned i = 0; rc == 0 && i < b->runs; i++) {
		weir_time begin = bench_clock();

		rc = replay_run(&(struct replay_input){.stages = &stage,
					.tenants = x->tenants,
					.n_stages = 1,
					.n_tenants = TENANTS,
					.alignments = 4,
					.seed = 1,
					.run = parallel_run,
					.pool = pool},
			result);
		bench_sample(&ours, (double)(bench_clock() - begin) / 1e9);
	}
	if (rc == 0)
		bench_add(
			b, "a replay of 64 tenants, ten minutes, 4 alignments", "s", &ours, "<= 10")
			->key = "plan.replay";
	parallel_free(pool);
	for (uint32_t i = 0; x && i < TENANTS; i++) {
		free(x->trace[i].records);
		free(x->work[i]);
	}
	free(x);
	return rc;
}

int bench_plan(struct bench *b, struct weir_err *err)
{
	int rc = bench_frontier(b); /* first: it measures the process's memory */

	if (rc == 0)
		rc = bench_bound(b);
	if (rc == 0)
		rc = bench_prioritizer(b, 64, "the prioritizer, 64 workloads", "plan.64", "<= 2");
	if (rc == 0)
		rc = bench_prioritizer(
			b, 256, "the prioritizer, 256 workloads", "plan.256", "<= 20");
	if (rc == 0)
		rc = bench_prioritizer(
			b, 1024, "the prioritizer, 1024 workloads", "plan.1024", "<= 300");
	if (rc == 0)
		rc = bench_admit(b);
	if (rc == 0)
		rc = bench_ask(b, err);
	if (rc == 0)
		rc = bench_replay(b);
	return rc < 0 ? rc : bench_search(b);
}
