/* SPDX-License-Identifier: BSD-3-Clause */
/* replay: no request is later than its bound, whatever the traces and the alignment; percentiles; groups; odd traces. */
#include "plan/replay-impl.h"
#include "base/rng.h"
#include "test.h"
#include <weir/gate.h>

enum { TENANTS = 6, STAGES = 3, REQUESTS = 300 };

struct system_of { /* traces, and their plan */
	struct plan_stage stages[STAGES];
	struct replay_stage replay_stages[STAGES];
	struct trace traces[TENANTS];
	struct trace_record records[TENANTS][REQUESTS];
	double work[TENANTS][STAGES][REQUESTS], *works[TENANTS][STAGES];
	struct plan_hop hops[TENANTS][STAGES];
	struct plan_tenant tenants[TENANTS];
	struct replay_tenant replay_tenants[TENANTS];
	uint32_t priority[TENANTS][STAGES];
	struct plan_input in;
	struct replay_input replay;
};

static struct system_of x;

/* A trace of one of several shapes: steady, bursts, all at once, one request, few and huge. */
static void make_trace(struct rng *r, uint32_t i, double load)
{
	struct trace *t = &x.traces[i];
	unsigned shape = (unsigned)rng_below(r, 6);
	double at = 0, mean = 1e-3 / load;

	*t = (struct trace){.records = x.records[i], .n = shape == 3 ? 1 : REQUESTS};
	for (size_t k = 0; k < t->n; k++) {
		t->records[k] = (struct trace_record){.at = (weir_time)(at * 1e9),
			.bytes = shape == 4 ? UINT32_MAX : 4096,
			.op = (uint8_t)rng_below(r, 2)};
		for (uint32_t s = 0; s < STAGES; s++)
			x.work[i][s][k] = (s ? 1000 : 1e-3) * (0.1 + 1.8 * rng_double(r)) *
					  (shape == 4 && rng_below(r, 50) == 0 ? 40 : 1);
		if (shape == 0)
			at += mean;
		else if (shape == 1 || shape == 4)
			at += rng_exp(r, mean);
		else if (shape == 5)
			at += rng_below(r, 12) ? 0 : 12 * rng_exp(r, mean);
	}
}

static void make_tenant(struct rng *r, uint32_t i, double load)
{
	uint32_t first = (uint32_t)rng_below(r, STAGES),
		 n = 1 + (uint32_t)rng_below(r, STAGES - first);
	struct meister_arrival arrivals[REQUESTS];

	make_trace(r, i, load);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t s = first + k;

		for (size_t q = 0; q < x.traces[i].n; q++)
			arrivals[q] = (struct meister_arrival){
				(double)x.records[i][q].at * 1e-9, x.work[i][s][q]};
		CHECK_INT(plan_hop_of(arrivals, x.traces[i].n, 4, x.stages[s].rate, &x.hops[i][k]),
			0);
		x.hops[i][k].stage = s;
		x.works[i][k] = x.work[i][s];
		x.stages[s].largest = fmax(x.stages[s].largest, x.hops[i][k].largest);
	}
	x.tenants[i] = (struct plan_tenant){1, x.hops[i], n};
}

static void make_system(uint64_t seed)
{
	struct rng r;
	double load;

	rng_init(&r, seed, "replay");
	x = (struct system_of){0};
	load = (0.2 + 0.7 * rng_double(&r)) / TENANTS;
	for (uint32_t s = 0; s < STAGES; s++)
		x.stages[s] = (struct plan_stage){.rate = s ? 1e6 : 1,
			.depth = s ? 1 : 1 + (double)rng_below(&r, 8),
			.levels = 64,
			.inside = s || rng_below(&r, 2) ? 0 : 0.002};
	for (uint32_t i = 0; i < TENANTS; i++)
		make_tenant(&r, i, load);
	for (uint32_t s = 0; s < STAGES; s++) {
		struct plan_stage *p = &x.stages[s];

		x.replay_stages[s] = (struct replay_stage){.rate = p->rate,
			.depth = p->depth,
			.link = s > 0,
			.piece = s && rng_below(&r, 2) ? 600 : 0,
			.most_inside = p->inside};
		if (x.replay_stages[s].piece > 0)
			p->largest = fmin(p->largest, 600);
		for (unsigned op = 0; op < ESTIMATE_OPS; op++)
			x.replay_stages[s].inside[op].max = p->inside * 1e9;
		if (rng_below(&r, 2)) /* a tenant without a trace */
			x.replay_stages[s].untraced = p->largest * rng_double(&r);
	}
	x.in = (struct plan_input){
		x.stages, x.tenants, STAGES, TENANTS, {.greedy = true, .anneal = false, .seed = 1}};
}

static void make_replay(const struct plan *p)
{
	for (uint32_t i = 0; i < TENANTS; i++) {
		for (uint32_t k = 0; k < x.tenants[i].n_hops; k++)
			x.priority[i][k] = plan_hop(p, i, k)->priority;
		x.replay_tenants[i] = (struct replay_tenant){.trace = &x.traces[i],
			.hop = x.hops[i],
			.n_hops = x.tenants[i].n_hops,
			.work = x.works[i],
			.priority = x.priority[i],
			.group = i,
			.percentile = 100};
	}
	x.replay = (struct replay_input){.stages = x.replay_stages,
		.tenants = x.replay_tenants,
		.n_stages = STAGES,
		.n_tenants = TENANTS,
		.alignments = 3,
		.most = 4 * WEIR_SEC,
		.seed = 1};
}

/* Replay as the plan says, shifted or all at once. */
static double check_bounds(uint64_t seed, const struct plan *p, bool aligned)
{
	struct replay_result result[TENANTS];
	double closest = 0;

	x.replay.aligned = aligned;
	x.replay.seed = seed;
	CHECK_INT(replay_run(&x.replay, result), 0);
	for (uint32_t i = 0; i < TENANTS; i++) {
		double bound = meister_latency(&p->system, i);

		CHECK(!(result[i].at > result[i].max * (1 + 1e-9)));
		if (result[i].max > bound * (1 + 1e-6) + 1e-6)
			FAIL("seed %d, tenant %u%s: %g s, and the bound is %g", (int)seed, i,
				aligned ? ", aligned" : "", result[i].max, bound);
		closest = fmax(closest, result[i].max / bound);
	}
	return closest;
}

static void bounds_hold(void)
{
	double closest = 0;
	int bounded = 0;

	for (uint64_t seed = 0; seed < 100; seed++) {
		struct plan p;

		make_system(seed);
		CHECK_INT(plan_make(&x.in, &p), 0);
		make_replay(&p);
		closest = fmax(closest, check_bounds(seed, &p, false));
		closest = fmax(closest, check_bounds(seed, &p, true));
		for (uint32_t i = 0; i < TENANTS; i++)
			bounded += isfinite(meister_latency(&p.system, i));
		plan_free(&p);
	}
	CHECK(bounded > 100 * TENANTS / 2);
	CHECK(closest > 0.8); /* the replay is not idle */
}

/* The same seed gives the same numbers, another one others. */
static void repeatable(void)
{
	struct replay_result a[TENANTS], b[TENANTS], c[TENANTS];
	struct plan p;
	bool differs = false;

	make_system(5);
	CHECK_INT(plan_make(&x.in, &p), 0);
	make_replay(&p);
	CHECK_INT(replay_run(&x.replay, a), 0);
	CHECK_INT(replay_run(&x.replay, b), 0);
	x.replay.seed = 2;
	CHECK_INT(replay_run(&x.replay, c), 0);
	for (uint32_t i = 0; i < TENANTS; i++) {
		CHECK(a[i].at == b[i].at && a[i].high == b[i].high && a[i].max == b[i].max);
		differs |= a[i].at != c[i].at;
		CHECK(a[i].low <= a[i].at && a[i].at <= a[i].high);
	}
	CHECK(differs);
	plan_free(&p);
}

/* Two tenants of one trace at one stage, the second of lower priority. */
enum { PAIR_MOST = 100 };
struct pair {
	double work[PAIR_MOST], *works[1];
	struct trace_record records[PAIR_MOST];
	struct trace trace;
	struct plan_hop hop;
	uint32_t priority[2];
	struct replay_stage stage;
	struct replay_tenant tenants[2];
	struct replay_input in;
	struct replay_result result[2];
};

/* Make n requests of 1 ms in bursts of ten, 10 s apart. */
static void pair_make(struct pair *p, size_t n)
{
	struct meister_arrival arrivals[PAIR_MOST];

	*p = (struct pair){.works = {p->work},
		.trace = {.records = p->records, .n = n},
		.priority = {0, 1},
		.stage = {.rate = 1, .depth = 1},
		.in = {.stages = &p->stage,
			.tenants = p->tenants,
			.n_stages = 1,
			.n_tenants = 2,
			.alignments = 8,
			.seed = 3}};
	for (size_t i = 0; i < n; i++) {
		p->work[i] = 1e-3;
		p->records[i].at = (weir_time)(i / 10) * 10 * WEIR_SEC;
		arrivals[i] = (struct meister_arrival){(double)p->records[i].at * 1e-9, 1e-3};
	}
	CHECK_INT(plan_hop_of(arrivals, n, 4, 1, &p->hop), 0);
	for (uint32_t i = 0; i < 2; i++)
		p->tenants[i] = (struct replay_tenant){.trace = &p->trace,
			.hop = &p->hop,
			.n_hops = 1,
			.work = p->works,
			.priority = &p->priority[i],
			.percentile = 95};
}

/* Two tenants with one burst each: shifted apart neither waits for the other, together one of them does. */
static void together(void)
{
	struct pair p;

	pair_make(&p, 100);
	p.tenants[1].group = 1;
	CHECK_INT(replay_run(&p.in, p.result), 0);
	CHECK_NEAR(p.result[0].max, 0.010, 1e-6);
	CHECK_NEAR(p.result[1].max, 0.010, 1e-6);
	CHECK_NEAR(p.result[1].at, 0.010, 1e-6);
	p.tenants[1].group = 0;
	CHECK_INT(replay_run(&p.in, p.result), 0);
	CHECK_NEAR(p.result[0].max, 0.010, 1e-6);
	CHECK_NEAR(p.result[1].max, 0.020, 1e-6);
}

/* One tenant alone, whose busy period is as long as its trace: wherever an alignment begins, the same share of the requests waits as long
 * as when the trace goes round without end, which one queue shows. */
static void one_busy_period(void)
{
	enum { N = 1000, ROUNDS = 3 };
	static struct trace_record records[N];
	static struct meister_arrival arrivals[N];
	static double work[N], waits[N];
	struct trace trace = {.records = records, .n = N};
	double *works[1] = {work}, free_at = 0, period, truth;
	struct replay_stage stage = {.rate = 1, .depth = 1};
	struct plan_hop hop = {0};
	uint32_t priority = 0;
	struct replay_result result;
	struct replay_tenant tenant = {.trace = &trace,
		.hop = &hop,
		.n_hops = 1,
		.work = works,
		.priority = &priority,
		.percentile = 50};
	struct replay_input in = {.stages = &stage,
		.tenants = &tenant,
		.n_stages = 1,
		.n_tenants = 1,
		.alignments = 32,
		.seed = 7};

	for (int i = 0; i < N;
		i++) { /* 300 at once, then at 0.7 of the rate: the queue is empty at the end */
		double t = i < 300 ? 0 : (i - 300) * 1e-3 / 0.7;

		work[i] = 1e-3;
		records[i].at = (weir_time)(t * 1e9);
		arrivals[i] = (struct meister_arrival){t, work[i]};
	}
	CHECK_INT(plan_hop_of(arrivals, N, 4, 1, &hop), 0);
	period = arrivals[N - 1].t + 1e-3;
	for (int i = 0; i < N * ROUNDS; i++) {
		double t = arrivals[i % N].t + i / N * period;

		free_at = fmax(free_at, t) + work[i % N];
		waits[i % N] = free_at - t;
	}
	truth = 0;
	for (int i = 0; i < N; i++) { /* the median */
		int below = 0;

		for (int k = 0; k < N; k++)
			below += waits[k] < waits[i] || (waits[k] == waits[i] && k < i);
		truth = below == N / 2 ? waits[i] : truth;
	}
	CHECK_INT(replay_run(&in, &result), 0);
	CHECK_NEAR(result.at, truth, 0.01);
}

/* Two tenants of one recording: the second begins 5 ms after the first, and waits for the rest of its burst. */
static void starts(void)
{
	struct pair p;

	pair_make(&p, 10);
	p.tenants[1].start = 5 * WEIR_MS;
	CHECK_INT(replay_run(&p.in, p.result), 0);
	CHECK_NEAR(p.result[0].max, 0.010, 1e-6);
	CHECK_NEAR(p.result[1].max, 0.015, 1e-6);
}

/* Only requests of the slo's kind are measured. */
static void kinds(void)
{
	struct replay_result all[TENANTS], reads[TENANTS];
	struct plan p;

	make_system(9);
	CHECK_INT(plan_make(&x.in, &p), 0);
	make_replay(&p);
	CHECK_INT(replay_run(&x.replay, all), 0);
	x.replay_tenants[0].ops = WEIR_OPS(WEIR_READ);
	CHECK_INT(replay_run(&x.replay, reads), 0);
	CHECK(reads[0].requests < all[0].requests && reads[0].requests > 0);
	x.replay_tenants[0].ops = WEIR_OPS(WEIR_TRIM);
	CHECK_INT(replay_run(&x.replay, reads), 0);
	CHECK(reads[0].requests == 0 && isnan(reads[0].at));
	plan_free(&p);
}

/* The example of the header: what a percentile may be when the trace goes on depends on how late requests spread over its time. */
static void spread_of_late(void)
{
	enum { N = 20000, LATE = 100 };
	static struct trace_record records[N];
	static double latency[N];
	static struct replay_born born[N];
	const struct trace trace = {.records = records, .n = N};
	const struct replay_tenant of = {.trace = &trace, .percentile = 99};
	const struct replay_sample sample = {.latency = latency, .born = born, .n = N};
	double next;

	for (uint32_t i = 0; i < N; i++) {
		records[i].at = i * WEIR_MS;
		born[i].record = i;
	}
	for (uint32_t i = 0; i < N; i++) /* 10 ms and more, 5 of each 1,000 */
		latency[i] = i % 200 == 7 ? 10 + i : 1;
	CHECK_INT(replay_next(&sample, &of, 1, &next), 0);
	CHECK_NEAR(next, 1, 1e-9);
	for (uint32_t i = 0; i < N; i++) /* the first 100 */
		latency[i] = i < LATE ? 10 + i : 1;
	CHECK_INT(replay_next(&sample, &of, 1, &next), 0);
	CHECK_NEAR(next, 10 + LATE - 44, 1e-9);
}

int main(void)
{
	RUN(spread_of_late);
	RUN(together);
	RUN(starts);
	RUN(one_busy_period);
	RUN(repeatable);
	RUN(kinds);
	RUN(bounds_hold);
	return 0;
}
