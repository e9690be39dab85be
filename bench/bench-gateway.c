/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench gateway: the cost of the gateway per request, beside other servers in the same run.
 *
 * METHOD  Every server is a separate process on the first core and is driven over a unix socket by
 *         one thread of this process on the second. In each run every server is started, filled,
 *         measured and ended in turn, so that all see the same machine; the figures are medians
 *         over the runs, and the ratios to a peer are what counts. CPU time is the server's, user
 *         and system, of all its threads, over the requests that it answered. Ours are `weir serve
 *         --bare`, which is the loop without a gate, and `weir serve` with a policy of 50 tenants
 *         that each have a weight, a min and a max; four of them are busy, or, in the row that says
 *         so, all 50. Debian's nbdkit and qemu-nbd run with their defaults; one that is not
 *         installed has no row. A proxy makes three processes for two cores, so none is pinned,
 *         neither there nor where the same load goes to the upstream directly. The gate's window is
 *         the number of requests that the back end serves at once. So the victim's device of 8 x
 *         100 µs has never more than 8 requests inside, and a QD1 victim waits for the first of
 *         them to end.
 */
#include "bench/bench.h"
#include "bench/bench-site.h"
#include "bench/bench-slow.h"
#include "load/load.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BUSY        4 /* jobs, each of one tenant, that load a server */
#define CLIENT_CORE 1
#define SLOW        10 /* slow readers, in the row that has them */

struct outcome {
	double iops, bytes; /* per second */
	double cpu;         /* µs of the server per request */
	double p50, p99;    /* µs, of the first job */
};

/* ---- load */

struct plan {
	unsigned jobs;  /* exports that are used, on servers that have several */
	unsigned depth; /* of each job */
	uint32_t size;  /* bytes of a request */
	bool sequential;
	bool unpinned;
	bool writes;
	unsigned aggressor; /* depth of a second job beside the first; 0: none */
	unsigned slow;      /* clients that do not read their replies fast enough; 0: none */
	weir_time duration;
};

struct jobs {
	struct load_job job[SITE_TENANTS];
	char uri[SITE_TENANTS][200];
	size_t n;
};

static void make_jobs(
	const struct site *s, enum site_server which, const struct plan *p, struct jobs *j)
{
	char path[128];

	site_socket(s, which, path, sizeof(path));
	j->n = p->aggressor ? 2 : p->jobs;
	for (size_t i = 0; i < j->n; i++) {
		struct load_job *job = &j->job[i];

		load_job_default(job);
		if (site_ours(which))
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///e%zu?socket=%s", i,
				path);
		else
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///?socket=%s", path);
		job->uri = j->uri[i];
		job->name = "job";
		job->depth = i && p->aggressor ? p->aggressor : p->depth;
		job->sizes[0] = (struct load_size){.bytes = p->size, .share = 1};
		job->n_sizes = 1;
		job->reads = p->writes ? 0 : 1;
		job->order = p->sequential ? LOAD_SEQUENTIAL : LOAD_RANDOM;
		job->offset = site_divided(which) ? 0 : i * SITE_REGION;
		job->length = SITE_REGION;
		job->seed = i + 1;
		job->structured = false;
		job->duration = p->duration;
		job->requests = UINT64_MAX;
		job->warm_up = p->duration / 5;
	}
}

/* Write every region once. */
static int fill_regions(const struct jobs *of, struct weir_err *err)
{
	struct jobs *j = malloc(sizeof(*j));
	struct load *l;

	if (!j)
		return -ENOMEM;
	*j = *of;
	for (size_t i = 0; i < j->n; i++) {
		j->job[i].reads = 0;
		j->job[i].order = LOAD_SEQUENTIAL;
		j->job[i].sizes[0].bytes = 256 << 10;
		j->job[i].depth = 8;
		j->job[i].duration = WEIR_NEVER;
		j->job[i].warm_up = 0;
		j->job[i].requests = SITE_REGION / (256 << 10);
	}
	int r = load_new(j->job, j->n, NULL, &l, err);

	if (r == 0) {
		r = load_run(l);
		load_free(l);
	}
	free(j);
	return r;
}

/* Sum the results; every request must have been answered without an error. */
static int sum_results(const struct load *l, size_t n, struct outcome *ret, struct weir_err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct load_result *r = load_result(l, i);

		if (r->fault[0] || r->n_errors)
			return weir_err_set(
				err, -EIO, "%s", r->fault[0] ? r->fault : "requests failed");
		ret->iops += r->iops;
		ret->bytes += r->bytes_per_second;
	}
	ret->p50 = (double)weir_hist_percentile(&load_result(l, 0)->latency, 50) / 1000;
	ret->p99 = (double)weir_hist_percentile(&load_result(l, 0)->latency, 99) / 1000;
	return 0;
}

static int drive_load(const struct site *s, const struct peer *p, const struct jobs *j, bool pin,
	struct outcome *ret, struct weir_err *err)
{
	static const int core = CLIENT_CORE;
	struct load_options o = {.cores = &core, .n_cores = pin && s->pin ? 1 : 0};
	struct outcome x = {.iops = 0};
	uint64_t requests = 0;
	struct load *l;
	int r = load_new(j->job, j->n, &o, &l, err);

	if (r < 0)
		return r;
	weir_time cpu = peer_cpu(p);

	r = load_run(l);
	cpu = peer_cpu(p) - cpu;
	if (r == 0)
		r = sum_results(l, j->n, &x, err);
	/* The CPU time is that of all requests, including the warm-up. */
	for (size_t i = 0; r == 0 && i < j->n; i++)
		requests += load_result(l, i)->requests;
	if (r == 0) {
		double warm = 1 - (double)j->job[0].warm_up / (double)j->job[0].duration;

		x.cpu = requests ? (double)cpu / 1000 / ((double)requests / warm) : 0;
		*ret = x;
	}
	load_free(l);
	return r;
}

/* The slow clients belong to another tenant, if there are several. */
static int start_slow(const struct site *s, enum site_server which, const struct plan *p,
	struct slow **ret, struct weir_err *err)
{
	char path[128];

	site_socket(s, which, path, sizeof(path));
	return p->slow ? slow_start(path, site_ours(which) ? "e1" : "", p->slow, ret, err) : 0;
}

static int measure_server(struct site *s, enum site_server which, const struct plan *plan,
	struct outcome *ret, struct weir_err *err)
{
	struct jobs *j = malloc(sizeof(*j));
	struct peer p = {0}, upstream = {0};
	struct slow *slow = NULL;
	bool proxy = which == SITE_PROXY || which == SITE_NBDKIT_PROXY, pin = !plan->unpinned;
	int r = j ? 0 : -ENOMEM;

	if (r == 0 && proxy)
		r = site_start(s, SITE_UPSTREAM, pin, &upstream, err);
	if (r == 0)
		r = site_start(s, which, pin, &p, err);
	if (r == 0) {
		make_jobs(s, which, plan, j);
		r = fill_regions(j, err);
	}
	if (r == 0)
		r = start_slow(s, which, plan, &slow, err);
	if (r == 0)
		r = drive_load(s, &p, j, pin, ret, err);
	slow_stop(slow);
	peer_stop(&p);
	peer_stop(&upstream);
	free(j);
	return r;
}

/* ---- rows */

struct figures {
	struct bench_samples iops, bytes, cpu, p50, p99;
};

/* Measure one run of a server. A server that is not installed gets no samples. */
static int measure_one(struct site *s, const struct plan *plan, enum site_server which,
	struct figures *f, struct weir_err *err)
{
	struct outcome o = {.iops = 0};
	int r = s->missing[which] ? -ENOENT : measure_server(s, which, plan, &o, err);

	if (r == -ENOENT && !site_ours(which))
		return 0;
	if (r < 0)
		return r;
	bench_sample(&f->iops, o.iops / 1000);
	bench_sample(&f->bytes, o.bytes / 1e9);
	bench_sample(&f->cpu, o.cpu);
	bench_sample(&f->p50, o.p50);
	bench_sample(&f->p99, o.p99);
	return 0;
}

/* Measure the servers in turn, b->runs times. */
static int measure_all(struct bench *b, struct site *s, const struct plan *plan,
	const enum site_server *which, size_t n, struct figures *ret, struct weir_err *err)
{
	int r = 0;

	for (unsigned run = 0; run < b->runs; run++)
		for (size_t i = 0; r == 0 && i < n; i++)
			r = measure_one(s, plan, which[i], &ret[i], err);
	return r;
}

/* Add a row with a target for its ratio; no row if the peer is missing. */
static void ratio_row(struct bench *b, const char *name, const char *unit,
	const struct bench_samples *value, const char *peer, const struct bench_samples *peer_value,
	const char *target, double least)
{
	if (!value->n || !peer_value->n)
		return;
	struct bench_row *row = bench_add(b, name, unit, value, peer, peer_value);

	if (target)
		bench_target(row, target, row->ratio >= least);
}

static int rows_small(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {
		SITE_BARE, SITE_GATED, SITE_NBDKIT, SITE_NBDKIT_RATE, SITE_QEMU};
	struct figures f[5] = {0};
	int r = measure_all(b, s, &plan, which, 5, f, err);

	if (r < 0)
		return r;
	bench_add(b, "4 KiB reads, 4 x QD32: bare loop", "kIOPS", &f[0].iops, NULL, NULL);
	ratio_row(b, "  gate, 50 tenants", "kIOPS", &f[1].iops, "bare loop", &f[0].iops, ">= 0.85x",
		0.85);
	ratio_row(b, "  the same, against nbdkit", "kIOPS", &f[1].iops, "nbdkit memory", &f[2].iops,
		">= 2.5x", 2.5);
	ratio_row(b, "  against nbdkit's rate filter", "kIOPS", &f[1].iops, "nbdkit rate",
		&f[3].iops, ">= 2.5x", 2.5);
	ratio_row(b, "  against qemu-nbd", "kIOPS", &f[1].iops, "qemu-nbd", &f[4].iops, ">= 5x", 5);
	bench_add(b, "  CPU a request: bare loop", "us", &f[0].cpu, NULL, NULL);
	struct bench_row *row =
		bench_add(b, "  CPU a request: gate, 50 tenants", "us", &f[1].cpu, NULL, NULL);

	bench_target(row, "<= 2.0", row->value <= 2);
	if (f[2].cpu.n)
		bench_add(b, "  CPU a request: nbdkit", "us", &f[2].cpu, NULL, NULL);
	if (f[4].cpu.n)
		bench_add(b, "  CPU a request: qemu-nbd", "us", &f[4].cpu, NULL, NULL);
	return 0;
}

static int rows_busy(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_BARE, SITE_GATED};
	struct figures f[2] = {0};

	plan.jobs = SITE_TENANTS;
	plan.depth = 4;
	int r = measure_all(b, s, &plan, which, 2, f, err);

	if (r == 0)
		ratio_row(b, "4 KiB reads, 50 x QD4: gate, all 50 busy", "kIOPS", &f[1].iops,
			"bare loop", &f[0].iops, NULL, 0);
	return r;
}

static int rows_large(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_BARE, SITE_GATED};
	struct figures f[2] = {0};

	plan.size = 64 << 10;
	plan.sequential = true;
	int r = measure_all(b, s, &plan, which, 2, f, err);

	if (r == 0)
		ratio_row(b, "64 KiB sequential reads: gate", "GB/s", &f[1].bytes, "bare loop",
			&f[0].bytes, ">= 0.95x", 0.95);
	return r;
}

static int rows_proxy(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_UPSTREAM, SITE_PROXY, SITE_NBDKIT_PROXY};
	struct figures f[3] = {0};

	plan.unpinned = true;
	int r = measure_all(b, s, &plan, which, 3, f, err);

	if (r < 0)
		return r;
	ratio_row(b, "as a proxy, 4 x QD32", "kIOPS", &f[1].iops, "direct", &f[0].iops, ">= 0.6x",
		0.6);
	bench_add(b, "  CPU a request: proxy", "us", &f[1].cpu, NULL, NULL);
	ratio_row(b, "  nbdkit as a proxy", "kIOPS", &f[2].iops, "direct", &f[0].iops, NULL, 0);
	return 0;
}

/* A victim with one request at a time, alone and beside a neighbour with 128. */
static int rows_victim(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_MODEL};
	struct figures alone = {0}, beside = {0};

	plan.jobs = 1;
	plan.depth = 1;
	int r = measure_all(b, s, &plan, which, 1, &alone, err);

	plan.aggressor = 128;
	if (r == 0)
		r = measure_all(b, s, &plan, which, 1, &beside, err);
	if (r < 0)
		return r;
	struct bench_row *row = bench_add(b, "p99 of QD1 beside QD128, device of 8 x 100 us", "us",
		&beside.p99, "alone", &alone.p99);

	bench_target(row, "<= 2x", row->ratio <= 2);
	return 0;
}

/* A file in the page cache, one request at a time and many. */
static int rows_file(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_FILE, SITE_NBDKIT_FILE};
	static const struct {
		const char *name;
		uint32_t size;
		unsigned depth;
		bool writes;
	} rows[] = {
		{"cached file, 4 KiB reads, QD1", 4096, 1, false},
		{"cached file, 4 KiB reads, QD32", 4096, 32, false},
		{"cached file, 64 KiB writes, QD1", 64 << 10, 1, true},
		{"cached file, 64 KiB writes, QD32", 64 << 10, 32, true},
	};

	plan.jobs = 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct figures f[2] = {0};
		int r;

		plan.size = rows[i].size;
		plan.depth = rows[i].depth;
		plan.writes = rows[i].writes;
		r = measure_all(b, s, &plan, which, 2, f, err);
		if (r < 0)
			return r;
		ratio_row(b, rows[i].name, "kIOPS", &f[0].iops, "nbdkit file", &f[1].iops,
			">= 1.0x", 1);
	}
	return 0;
}

/* The cost of being there: a request at a time on a file, through Weir and through QEMU's own NBD server. */
static int rows_there(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_FILE, SITE_QEMU};
	struct figures f[2] = {0};
	struct bench_row *row;
	int r;

	plan.jobs = plan.depth = 1;
	r = measure_all(b, s, &plan, which, 2, f, err);
	if (r < 0 || !f[1].p50.n)
		return r;
	row = bench_add(b, "p50 of QD1 on a file", "us", &f[0].p50, "qemu-nbd", &f[1].p50);
	bench_target(row, "<= +15 us", row->value <= row->peer_value + 15);
	bench_add(b, "  p99", "us", &f[0].p99, "qemu-nbd", &f[1].p99);
	bench_add(b, "  CPU a request", "us", &f[0].cpu, "qemu-nbd", &f[1].cpu);
	return 0;
}

/* Each run alone and beside slow readers, in turn. */
static int rows_slow(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_GATED, SITE_NBDKIT};
	struct figures f[2][2] = {0}; /* by server; alone, beside */
	int r = 0;

	plan.jobs = 1;
	for (unsigned run = 0; run < b->runs; run++)
		for (size_t i = 0; r == 0 && i < 4; i++) {
			plan.slow = i % 2 ? SLOW : 0;
			r = measure_one(s, &plan, which[i / 2], &f[i / 2][i % 2], err);
		}
	if (r < 0)
		return r;
	ratio_row(b, "4 KiB reads, QD32, beside 10 slow readers", "kIOPS", &f[0][1].iops, "alone",
		&f[0][0].iops, ">= 0.95x", 0.95);
	ratio_row(
		b, "  nbdkit beside them", "kIOPS", &f[1][1].iops, "alone", &f[1][0].iops, NULL, 0);
	return 0;
}

/* ---- the whole */

static struct plan usual_plan(const struct bench *b)
{
	return (struct plan){.jobs = BUSY,
		.depth = 32,
		.size = 4096,
		.duration = b->quick ? 250 * WEIR_MS : 2500 * WEIR_MS};
}

int bench_gateway_parda(struct bench *b, struct weir_err *err)
{
	static const enum site_server which[] = {SITE_WIDE, SITE_PARDA};
	struct plan plan = usual_plan(b);
	struct figures f[2] = {0};
	struct site s = {.dir = ""};
	int r = site_new(&s, err);

	if (r == 0)
		r = measure_all(b, &s, &plan, which, 2, f, err);
	if (r == 0)
		ratio_row(b, "4 KiB reads, 4 x QD32: PARDA, array not overloaded", "kIOPS",
			&f[1].iops, "without", &f[0].iops, ">= 0.98x", 0.98);
	if (r == 0)
		bench_add(b, "  CPU a request", "us", &f[1].cpu, "without", &f[0].cpu);
	site_free(&s);
	return r;
}

int bench_gateway(struct bench *b, struct weir_err *err)
{
	static int (*const rows[])(
		struct bench *, struct site *, struct plan, struct weir_err *) = {rows_small,
		rows_busy, rows_large, rows_proxy, rows_victim, rows_file, rows_there, rows_slow};
	struct site s = {.dir = ""};
	int r = site_new(&s, err);

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(*rows); i++)
		r = rows[i](b, &s, usual_plan(b), err);
	site_free(&s);
	return r;
}
