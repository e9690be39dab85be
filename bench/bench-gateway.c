/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench gateway: the cost of the gateway per request, beside other servers in the same run.
 *
 * METHOD  Every server is a separate process on the first core and is driven over a unix socket by
 *         one thread of this process on the second. In each run the servers of a scene are started
 *         and filled, and then measured in turns of a quarter of a second, in alternating order, so
 *         that all see the same machine; a server that is not measured is idle. The figures are
 *         medians over all turns, and the ratios to a peer, each of one turn, are what counts:
 *         whatever else the machine does for seconds changes both. CPU time is the server's, user
 *         and system, of all its threads, over the requests that it answered. Ours are `weir serve
 *         --bare`, which is the loop without a gate, and `weir serve` with a policy of 50 tenants
 *         that each have a weight, a min and a max; four of them are busy, or, in the row that says
 *         so, all 50. With a plan every request is in profile, and charged to four buckets.
 *         Debian's nbdkit and qemu-nbd run with their defaults; one that is not installed has no
 *         row. A proxy makes three processes for two cores, so none is pinned,
 *         neither there nor where the same load goes to the upstream directly. The gate's window is
 *         the number of requests that the back end serves at once. So the victim's device of 8 x
 *         100 µs has never more than 8 requests inside, and a QD1 victim waits for the first of
 *         them to end.
 */
#include "bench/bench.h"
#include "bench/bench-local.h"
#include "bench/bench-site.h"
#include "bench/bench-slow.h"
#include "load/load.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY        4 /* jobs, each of one tenant, that load a server */
#define CLIENT_CORE 1
#define SLOW        10 /* slow readers, in the row that has them */
#define RESTARTS    3  /* of a peer, for one figure */

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
	weir_time duration;
};

/* A server, and what is beside the load. */
struct entry {
	enum site_server server;
	unsigned aggressor; /* depth of a second job beside the first; 0: none */
	unsigned slow;      /* clients that do not read their replies fast enough; 0: none */
};

struct jobs {
	struct load_job job[SITE_MOST];
	char uri[SITE_MOST][200];
	size_t n;
};

static void make_jobs(
	const struct site *s, const struct entry *e, const struct plan *p, struct jobs *j)
{
	bool divided = site_divided(e->server);
	uint64_t region = site_region(e->server);
	char path[128];

	site_socket(s, e->server, path, sizeof(path));
	j->n = e->aggressor ? 2 : p->jobs;
	for (size_t i = 0; i < j->n; i++) {
		struct load_job *job = &j->job[i];

		load_job_default(job);
		if (site_ours(e->server))
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///e%zu?socket=%s",
				divided ? i : 0, path);
		else
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///?socket=%s", path);
		job->uri = j->uri[i];
		job->name = "job";
		job->depth = i && e->aggressor ? e->aggressor : p->depth;
		job->sizes[0] = (struct load_size){.bytes = p->size, .share = 1};
		job->n_sizes = 1;
		job->reads = p->writes ? 0 : 1;
		job->order = p->sequential ? LOAD_SEQUENTIAL : LOAD_RANDOM;
		job->offset = divided ? 0 : i * region;
		job->length = region;
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
		j->job[i].requests = j->job[i].length / (256 << 10);
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
static int start_slow(
	const struct site *s, const struct entry *e, struct slow **ret, struct weir_err *err)
{
	char path[128];

	site_socket(s, e->server, path, sizeof(path));
	return e->slow ? slow_start(path, site_ours(e->server) ? "e1" : "", e->slow, ret, err) : 0;
}

/* ---- the servers of a scene */

struct running {
	struct peer peers[SITE_SERVERS];
	bool up[SITE_SERVERS];
};

static int start_server(
	struct site *s, enum site_server which, bool pin, struct running *all, struct weir_err *err)
{
	bool proxy = which == SITE_PROXY || which == SITE_NBDKIT_PROXY;
	int r = 0;

	if (all->up[which] || which == SITE_LOCAL)
		return 0;
	if (proxy)
		r = start_server(s, SITE_UPSTREAM, pin, all, err);
	if (r == 0)
		r = site_start(s, which, pin, &all->peers[which], err);
	all->up[which] = r == 0;
	return r;
}

static void stop_servers(struct running *all)
{
	for (size_t i = SITE_SERVERS; i-- > 0;) /* a proxy before its upstream */
		if (all->up[i])
			peer_stop(&all->peers[i]);
}

/* Start an entry's server and write its regions. A server that is not installed is left out. */
static int prepare(struct site *s, const struct entry *e, const struct plan *plan,
	struct running *all, struct weir_err *err)
{
	struct jobs *j = malloc(sizeof(*j));
	int r = !j                      ? -ENOMEM
		: s->missing[e->server] ? -ENOENT
					: start_server(s, e->server, !plan->unpinned, all, err);

	if (r == 0 && e->server != SITE_LOCAL) {
		make_jobs(s, e, plan, j);
		r = fill_regions(j, err);
	}
	free(j);
	return r == -ENOENT && !site_ours(e->server) ? 0 : r;
}

/* Read SITE_FILE's file directly. */
static int measure_local(
	const struct site *s, const struct plan *p, struct outcome *ret, struct weir_err *err)
{
	struct weir_hist latency;
	weir_time cpu;
	char path[128];

	site_file(s, path, sizeof(path));
	int r = local_run(&(struct local_load){.path = path,
				  .region = SITE_REGION,
				  .size = p->size,
				  .core = s->pin ? CLIENT_CORE : -1,
				  .duration = p->duration},
		&latency, &cpu, err);

	if (r == 0)
		*ret = (struct outcome){.p50 = (double)weir_hist_percentile(&latency, 50) / 1000,
			.p99 = (double)weir_hist_percentile(&latency, 99) / 1000,
			.cpu = (double)cpu / 1000 / (double)latency.count};
	return r;
}

static int measure_once(struct site *s, const struct entry *e, const struct plan *plan,
	const struct running *all, struct outcome *ret, struct weir_err *err)
{
	struct jobs *j = malloc(sizeof(*j));
	struct slow *slow = NULL;
	int r = j ? start_slow(s, e, &slow, err) : -ENOMEM;

	if (r == 0) {
		make_jobs(s, e, plan, j);
		r = drive_load(s, &all->peers[e->server], j, !plan->unpinned, ret, err);
	}
	slow_stop(slow);
	free(j);
	return r;
}

/* Return true if the server has ended, or ends within half a second. */
static bool server_ended(struct peer *p)
{
	for (unsigned i = 0; i < 50; i++) {
		if (peer_ended(p, NULL))
			return true;
		process_pause(10 * WEIR_MS);
	}
	return false;
}

/* Measure a server. One of another program that ends meanwhile is started again: Debian's nbdkit
 * aborts when a client closes with requests in flight, as slow readers do. */
static int measure_server(struct site *s, const struct entry *e, const struct plan *plan,
	struct running *all, struct outcome *ret, struct weir_err *err)
{
	int r = e->server == SITE_LOCAL ? measure_local(s, plan, ret, err)
					: measure_once(s, e, plan, all, ret, err);

	for (unsigned i = 0; r < 0 && i < RESTARTS; i++) {
		if (site_ours(e->server) || e->server == SITE_LOCAL ||
			!server_ended(&all->peers[e->server]))
			return r;
		all->up[e->server] = false;
		r = prepare(s, e, plan, all, err);
		if (r == 0)
			r = measure_once(s, e, plan, all, ret, err);
	}
	return r;
}

/* ---- rows */

enum figure { IOPS, BYTES, CPU, P50, P99, FIGURES };
static const char *const units[FIGURES] = {"kIOPS", "GB/s", "us", "us", "us"};

/* A load on some servers, each measured in turn, and the rows of their figures. */
#define MOST_ENTRIES 5
#define MOST_ROWS    10
#define TURNS        10 /* of a run */
struct scene {
	struct plan plan; /* 0: the usual */
	struct entry entries[MOST_ENTRIES];
	size_t n;
	struct row {
		const char *name;
		enum figure figure;
		unsigned of; /* entry */
		const char *peer;
		unsigned beside; /* entry of the peer */
		const char *target;
	} rows[MOST_ROWS];
};

struct samples {
	struct bench_samples of[MOST_ENTRIES][FIGURES], ratios[MOST_ROWS];
};

/* Add the rows of the servers that are installed. */
static void add_rows(struct bench *b, const struct row *rows, const struct samples *s)
{
	for (const struct row *row = rows; row->name; row++) {
		const struct bench_samples *value = &s->of[row->of][row->figure],
					   *peer = &s->of[row->beside][row->figure];

		if (value->n && (!row->peer || peer->n))
			bench_add_pairs(b, row->name, units[row->figure], value, row->peer, peer,
				row->peer ? &s->ratios[row - rows] : NULL, row->target);
	}
}

/* Measure each server once; back: the last one first. */
static int run_turn(struct site *s, const struct scene *c, const struct plan *plan,
	struct running *all, bool back, struct samples *to, struct weir_err *err)
{
	double now[MOST_ENTRIES][FIGURES] = {0};

	for (size_t k = 0; k < c->n; k++) {
		size_t i = back ? c->n - 1 - k : k;
		struct outcome o = {.iops = 0};
		bool there = all->up[c->entries[i].server] || c->entries[i].server == SITE_LOCAL;
		int r = there ? measure_server(s, &c->entries[i], plan, all, &o, err) : 0;
		const double figures[FIGURES] = {o.iops / 1000, o.bytes / 1e9, o.cpu, o.p50, o.p99};

		if (r < 0)
			return r;
		memcpy(now[i], figures, sizeof(figures));
		for (size_t f = 0; f < FIGURES && there; f++)
			bench_sample(&to->of[i][f], figures[f]);
	}
	for (size_t i = 0; c->rows[i].name; i++) {
		const struct row *row = &c->rows[i];
		double peer = now[row->beside][row->figure];

		if (row->peer && peer > 0 && now[row->of][row->figure] > 0)
			bench_sample(&to->ratios[i], now[row->of][row->figure] / peer);
	}
	return 0;
}

static int run_scene(struct bench *b, struct site *s, const struct scene *c, struct weir_err *err)
{
	struct samples *samples = calloc(1, sizeof(*samples));
	struct plan plan = c->plan;
	int r = samples ? 0 : -ENOMEM;

	plan.jobs = plan.jobs ? plan.jobs : BUSY;
	plan.depth = plan.depth ? plan.depth : 32;
	plan.size = plan.size ? plan.size : 4096;
	plan.duration = 250 * WEIR_MS;
	for (unsigned run = 0; r == 0 && run < b->runs; run++) {
		struct running all = {0};

		for (size_t i = 0; r == 0 && i < c->n; i++)
			r = prepare(s, &c->entries[i], &plan, &all, err);
		for (unsigned t = 0; r == 0 && t < (b->quick ? 1 : TURNS); t++)
			r = run_turn(s, c, &plan, &all, t % 2, samples, err);
		stop_servers(&all);
	}
	if (r == 0)
		add_rows(b, c->rows, samples);
	free(samples);
	return r;
}

static bool scene_wanted(const struct bench *b, const struct scene *c)
{
	for (const struct row *row = c->rows; row->name; row++)
		if (bench_wants(b, row->name))
			return true;
	return false;
}

static int run_scenes(struct bench *b, const struct scene *scenes, size_t n, struct weir_err *err)
{
	struct site s = {.dir = ""};
	int r = site_new(&s, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (scene_wanted(b, &scenes[i]))
			r = run_scene(b, &s, &scenes[i], err);
	files_remove_scratch(s.dir);
	return r;
}

/* ---- the whole */

#define FILE_SCENE(title, ...)                                                                     \
	{                                                                                          \
		.plan = {__VA_ARGS__},                                                             \
		.entries = {{.server = SITE_FILE}, {.server = SITE_NBDKIT_FILE}}, .n = 2,          \
		.rows = {                                                                          \
			{title, IOPS, 0, "nbdkit file", 1, ">= 1.0x"}                              \
		}                                                                                  \
	}

static const struct scene scenes[] = {
	{.entries = {{.server = SITE_BARE}, {.server = SITE_GATED}, {.server = SITE_NBDKIT},
		 {.server = SITE_NBDKIT_RATE}, {.server = SITE_QEMU}},
		.n = 5,
		.rows = {{.name = "4 KiB reads, 4 x QD32: bare loop", .figure = IOPS, .of = 0},
			{"  gate, 50 tenants", IOPS, 1, "bare loop", 0, ">= 0.85x"},
			{"  the same, against nbdkit", IOPS, 1, "nbdkit memory", 2, ">= 2.5x"},
			{"  against nbdkit's rate filter", IOPS, 1, "nbdkit rate", 3, ">= 2.5x"},
			{"  against qemu-nbd", IOPS, 1, "qemu-nbd", 4, ">= 5x"},
			{.name = "  CPU a request: bare loop", .figure = CPU, .of = 0},
			{"  CPU a request: gate, 50 tenants", CPU, 1, .target = "<= 2.0"},
			{.name = "  CPU a request: nbdkit", .figure = CPU, .of = 2},
			{.name = "  CPU a request: qemu-nbd", .figure = CPU, .of = 4}}},
	{.plan = {.jobs = SITE_TENANTS, .depth = 4},
		.entries = {{.server = SITE_BARE}, {.server = SITE_GATED}},
		.n = 2,
		.rows = {{"4 KiB reads, 50 x QD4: gate, all 50 busy", IOPS, 1, "bare loop", 0,
			NULL}}},
	/* With and without a plan, at the window of a back end in memory. */
	{.entries = {{.server = SITE_GATED}, {.server = SITE_PLANNED},
		 {.server = SITE_PLANNED_SHORT}},
		.n = 3,
		.rows = {{"4 KiB reads, 4 x QD32: a plan of 50 tenants", IOPS, 1, "without", 0,
				 ">= 0.95x"},
			{"  the same with buckets below a second", IOPS, 2, "without", 0,
				">= 0.95x"},
			{"  CPU a request: a plan of 50 tenants", CPU, 1, "without", 0, NULL},
			{"  CPU a request: buckets below a second", CPU, 2, "without", 0, NULL}}},
	/* The same connections to one volume and tenant, or each to its own. */
	{.plan = {.jobs = SITE_MOST, .depth = 1},
		.entries = {{.server = SITE_VOLUME}, {.server = SITE_VOLUMES}},
		.n = 2,
		.rows = {{"4 KiB reads, 1,000 x QD1: 1,000 volumes and tenants", IOPS, 1,
				 "one of each", 0, ">= 0.9x"},
			{"  CPU a request: 1,000 of each", CPU, 1, "one of each", 0, NULL}}},
	{.plan = {.size = 64 << 10, .sequential = true},
		.entries = {{.server = SITE_BARE}, {.server = SITE_GATED}},
		.n = 2,
		.rows = {{"64 KiB sequential reads: gate", BYTES, 1, "bare loop", 0, ">= 0.95x"}}},
	{.plan = {.unpinned = true},
		.entries = {{.server = SITE_UPSTREAM}, {.server = SITE_PROXY},
			{.server = SITE_NBDKIT_PROXY}},
		.n = 3,
		.rows = {{"as a proxy, 4 x QD32", IOPS, 1, "direct", 0, ">= 0.6x"},
			{.name = "  CPU a request: proxy", .figure = CPU, .of = 1},
			{"  nbdkit as a proxy", IOPS, 2, "direct", 0, NULL}}},
	/* A victim with one request at a time, alone and beside a neighbour with 128. */
	{.plan = {.jobs = 1, .depth = 1},
		.entries = {{.server = SITE_MODEL}, {.server = SITE_MODEL, .aggressor = 128}},
		.n = 2,
		.rows = {{"p99 of QD1 beside QD128, device of 8 x 100 us", P99, 1, "alone", 0,
			"<= 2x"}}},
	/* A file in the page cache, one request at a time and many. */
	FILE_SCENE("cached file, 4 KiB reads, QD1", .jobs = 1, .depth = 1),
	FILE_SCENE("cached file, 4 KiB reads, QD32", .jobs = 1),
	FILE_SCENE("cached file, 64 KiB writes, QD1", .jobs = 1, .depth = 1, .size = 64 << 10,
		.writes = true),
	FILE_SCENE("cached file, 64 KiB writes, QD32", .jobs = 1, .size = 64 << 10, .writes = true),
	/* The cost of being there: a request at a time on a file, through Weir and through QEMU's own NBD server. */
	{.plan = {.jobs = 1, .depth = 1},
		.entries = {{.server = SITE_FILE}, {.server = SITE_QEMU}, {.server = SITE_LOCAL}},
		.n = 3,
		.rows = {{"p50 of QD1 on a file", P50, 0, "qemu-nbd", 1, "<= +15 us"},
			{"  p99", P99, 0, "qemu-nbd", 1, NULL},
			{"  CPU a request", CPU, 0, "qemu-nbd", 1, NULL},
			{.name = "  the file itself: p50", .figure = P50, .of = 2},
			{.name = "  the file itself: p99", .figure = P99, .of = 2},
			{.name = "  the file itself: CPU a request", .figure = CPU, .of = 2}}},
	{.plan = {.jobs = 1},
		.entries = {{.server = SITE_GATED}, {.server = SITE_GATED, .slow = SLOW},
			{.server = SITE_NBDKIT}, {.server = SITE_NBDKIT, .slow = SLOW}},
		.n = 4,
		.rows = {{"4 KiB reads, QD32, beside 10 slow readers", IOPS, 1, "alone", 0,
				 ">= 0.95x"},
			{"  nbdkit beside them", IOPS, 3, "alone", 2, NULL}}},
};

static const struct scene parda = {.entries = {{.server = SITE_WIDE}, {.server = SITE_PARDA}},
	.n = 2,
	.rows = {{"4 KiB reads, 4 x QD32: PARDA, array not overloaded", IOPS, 1, "without", 0,
			 ">= 0.98x"},
		{"  CPU a request", CPU, 1, "without", 0, NULL}}};

int bench_gateway_parda(struct bench *b, struct weir_err *err)
{
	return run_scenes(b, &parda, 1, err);
}

int bench_gateway(struct bench *b, struct weir_err *err)
{
	return run_scenes(b, scenes, sizeof(scenes) / sizeof(*scenes), err);
}
