/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench gateway: what the gateway costs a request, beside other servers of the same run.
 *
 * METHOD  Every server is a process of its own on the first core and is driven over a unix socket by
 *         one thread of ours on the second. In each run every server is started, filled, measured and
 *         ended in turn, so that all see the same machine; the figures are medians over the runs, and
 *         ratios to a peer are what counts. CPU time is the server's, user and system, of all its
 *         threads, over the requests that it answered.
 *         Ours are `weir serve --bare`, which is the loop without a gate, and `weir serve` with a
 *         policy of 50 tenants that each have a weight, a min and a max; four of them are busy, or, in
 *         the row that says so, all 50. Debian's nbdkit and qemu-nbd are what they are by default; one
 *         that is not installed has no row.
 *         As a proxy there are three processes for two cores, so that none is pinned, nor where the
 *         same load goes to the upstream directly.
 *         The gate's window is what the back end serves at once. So the victim's device of 8 x 100 µs
 *         has never more than 8 requests inside, and a QD1 victim waits for the first of them to end.
 */
#include "prog/bench.h"
#include "prog/files.h"
#include "prog/peer.h"
#include "port/load.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TENANTS     50
#define BUSY        4
#define REGION      (16ull << 20) /* bytes of each export: written once, so that reads find something */
#define SERVER_CORE 0
#define CLIENT_CORE 1

enum server {
	BARE,
	GATED,
	NBDKIT,
	NBDKIT_RATE,
	QEMU,
	UPSTREAM,
	PROXY,
	NBDKIT_PROXY,
	MODEL,
	SERVERS
};

struct site { /* the folder that everything lies in */
	char dir[64];
	bool pin;
	bool missing[SERVERS]; /* is not installed */
};

struct outcome {
	double iops, bytes; /* a second */
	double cpu;         /* µs of the server a request */
	double p99;         /* µs, of the first job */
};

/* ---- servers */

static void site_path(const struct site *s, const char *name, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%s", s->dir, name);
}

static void socket_path(const struct site *s, enum server which, char *ret, size_t len)
{
	snprintf(ret, len, "%s/%d.sock", s->dir, (int)which);
}

/* The policy of the gated server: `back` behind one gate, an export a tenant. `depth`: as many as the
 * back end serves at once, so that the gate keeps it busy and nothing queues behind the gate. */
static int write_policy(const struct site *s, const char *name, const char *back, const char *depth,
	unsigned tenants, struct weir_err *err)
{
	char path[128], *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	fprintf(f, "resources: [{name: r, back: \"%s\", depth: %s}]\nexports:\n", back, depth);
	for (unsigned i = 0; i < tenants; i++)
		fprintf(f, "  - {name: e%u, resource: r, offset: %llu B, size: %llu B}\n", i,
			i * REGION, REGION);
	fputs("tenants:\n", f);
	for (unsigned i = 0; i < tenants; i++)
		fprintf(f,
			"  - {name: t%u, weight: %u, min: 1k iops, max: 10M iops, match: {export: "
			"e%u}}\n",
			i, tenants > 2 ? 1 + i % 4 : 1, i);
	fclose(f);
	site_path(s, name, path, sizeof(path));
	int r = files_write(path, text, len, err);

	free(text);
	return r;
}

static int write_policies(const struct site *s, struct weir_err *err)
{
	char back[200], path[128];
	int r = write_policy(s, "memory.yaml", "memory:4G", "auto", TENANTS, err);

	if (r == 0)
		/* Eight at once, 100 µs each. */
		r = write_policy(s, "model.yaml",
			"model:server,latency=100us,servers=8,service=fixed+memory:1G", "8", 2,
			err);
	socket_path(s, UPSTREAM, path, sizeof(path));
	snprintf(back, sizeof(back), "nbd+unix:///r?socket=%s", path);
	if (r == 0)
		r = write_policy(s, "proxy.yaml", back, "auto", TENANTS, err);
	return r;
}

struct command {
	const char *argv[16];
	char socket[128], listen[140], first[160], second[160];
};

static void set_argv(struct command *c, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		c->argv[i] = argv[i];
}

/* The command line of a server. Those that hold a file get one that is cached. */
static void command(const struct site *s, enum server which, struct command *c)
{
	char upstream[128];

	memset(c, 0, sizeof(*c));
	socket_path(s, which, c->socket, sizeof(c->socket));
	snprintf(c->listen, sizeof(c->listen), "unix:%s", c->socket);
	socket_path(s, UPSTREAM, upstream, sizeof(upstream));
	const char *policy = which == PROXY   ? "proxy.yaml"
			     : which == MODEL ? "model.yaml"
					      : "memory.yaml";

	site_path(s, which == QEMU ? "qemu.img" : policy, c->first, sizeof(c->first));
	snprintf(c->second, sizeof(c->second), "socket=%s", upstream);
#define ARGV(...) set_argv(c, (const char *const[]){__VA_ARGS__, NULL})
	switch (which) {
	case UPSTREAM: /* one export, by any name */
		ARGV("weir", "serve", "--bare", "--api", "none", "--log-level", "error",
			"--threads", "1", "--listen", c->listen, "memory:4G");
		break;
	case BARE:
		ARGV("weir", "serve", "--bare", "--api", "none", "--log-level", "error",
			"--threads", "1", "--listen", c->listen, c->first);
		break;
	case GATED:
	case PROXY:
	case MODEL:
		ARGV("weir", "serve", "--api", "none", "--log-level", "error", "--threads", "1",
			"--listen", c->listen, c->first);
		break;
	case NBDKIT:
		ARGV("nbdkit", "-f", "-U", c->socket, "memory", "4G");
		break;
	case NBDKIT_RATE: /* a rate that is never reached: what the filter costs */
		ARGV("nbdkit", "-f", "-U", c->socket, "--filter=rate", "memory", "4G",
			"rate=1000G");
		break;
	case NBDKIT_PROXY:
		ARGV("nbdkit", "-f", "-U", c->socket, "nbd", c->second, "export=e0");
		break;
	default:
		ARGV("qemu-nbd", "-k", c->socket, "-f", "raw", "-t", "-e", "16", "--aio=io_uring",
			c->first);
	}
#undef ARGV
}

static int start(
	struct site *s, enum server which, bool pin, struct peer *ret, struct weir_err *err)
{
	struct command c;
	char log[128];

	command(s, which, &c);
	site_path(s, "log", log, sizeof(log));
	int r = peer_start(ret, c.argv, pin && s->pin ? SERVER_CORE : -1, c.socket, log, err);

	s->missing[which] = r == -ENOENT;
	return r;
}

static bool ours(enum server which)
{
	return which != NBDKIT && which != NBDKIT_RATE && which != QEMU && which != NBDKIT_PROXY;
}

/* Has an export for each job; else all use parts of one. */
static bool divided(enum server which)
{
	return ours(which) && which != UPSTREAM;
}

/* ---- load */

struct plan {
	unsigned jobs;  /* exports that are used, on servers that have several */
	unsigned depth; /* of each */
	uint32_t size;  /* bytes of a request */
	bool sequential;
	bool unpinned;
	unsigned aggressor; /* depth of a second job beside the first; 0: none */
	weir_time duration;
};

struct jobs {
	struct load_job job[TENANTS];
	char uri[TENANTS][200];
	size_t n;
};

static void make_jobs(const struct site *s, enum server which, const struct plan *p, struct jobs *j)
{
	char path[128];

	socket_path(s, which, path, sizeof(path));
	j->n = p->aggressor ? 2 : p->jobs;
	for (size_t i = 0; i < j->n; i++) {
		struct load_job *job = &j->job[i];

		load_job_default(job);
		if (ours(which))
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///e%zu?socket=%s", i,
				path);
		else
			snprintf(j->uri[i], sizeof(j->uri[i]), "nbd+unix:///?socket=%s", path);
		job->uri = j->uri[i];
		job->name = "job";
		job->depth = i && p->aggressor ? p->aggressor : p->depth;
		job->sizes[0] = (struct load_size){.bytes = p->size, .share = 1};
		job->n_sizes = 1;
		job->reads = 1;
		job->order = p->sequential ? LOAD_SEQUENTIAL : LOAD_RANDOM;
		job->offset = divided(which) ? 0 : i * REGION;
		job->length = REGION;
		job->seed = i + 1;
		job->structured = false;
		job->duration = p->duration;
		job->requests = UINT64_MAX;
		job->warm_up = p->duration / 5;
	}
}

/* Writes every region once. */
static int fill(const struct jobs *of, struct weir_err *err)
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
		j->job[i].requests = REGION / (256 << 10);
	}
	int r = load_new(j->job, j->n, NULL, &l, err);

	if (r == 0) {
		r = load_run(l);
		load_free(l);
	}
	free(j);
	return r;
}

/* Every job's requests must have been answered, without an error: a fast server that fails is none. */
static int sum(const struct load *l, size_t n, struct outcome *ret, struct weir_err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct load_result *r = load_result(l, i);

		if (r->fault[0] || r->n_errors)
			return weir_err_set(
				err, -EIO, "%s", r->fault[0] ? r->fault : "requests failed");
		ret->iops += r->iops;
		ret->bytes += r->bytes_per_second;
	}
	ret->p99 = (double)weir_hist_percentile(&load_result(l, 0)->latency, 99) / 1000;
	return 0;
}

static int drive(const struct site *s, const struct peer *p, const struct jobs *j, bool pin,
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
		r = sum(l, j->n, &x, err);
	/* The CPU is of all requests, those of the warm-up too. */
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

static int measure(struct site *s, enum server which, const struct plan *plan, struct outcome *ret,
	struct weir_err *err)
{
	struct jobs *j = malloc(sizeof(*j));
	struct peer p = {0}, upstream = {0};
	bool proxy = which == PROXY || which == NBDKIT_PROXY, pin = !plan->unpinned;
	int r = j ? 0 : -ENOMEM;

	if (r == 0 && proxy)
		r = start(s, UPSTREAM, pin, &upstream, err);
	if (r == 0)
		r = start(s, which, pin, &p, err);
	if (r == 0) {
		make_jobs(s, which, plan, j);
		r = fill(j, err);
	}
	if (r == 0)
		r = drive(s, &p, j, pin, ret, err);
	peer_stop(&p);
	peer_stop(&upstream);
	free(j);
	return r;
}

/* ---- rows */

struct figures {
	struct bench_samples iops, bytes, cpu, p99;
};

/* Measures the servers in turns, as often as asked. One that is not installed stays without samples. */
static int measure_all(struct bench *b, struct site *s, const struct plan *plan,
	const enum server *which, size_t n, struct figures *ret, struct weir_err *err)
{
	for (unsigned run = 0; run < b->runs; run++)
		for (size_t i = 0; i < n; i++) {
			struct outcome o = {.iops = 0};
			int r = s->missing[which[i]] ? -ENOENT
						     : measure(s, which[i], plan, &o, err);

			if (r == -ENOENT && !ours(which[i]))
				continue;
			if (r < 0)
				return r;
			bench_sample(&ret[i].iops, o.iops / 1000);
			bench_sample(&ret[i].bytes, o.bytes / 1e9);
			bench_sample(&ret[i].cpu, o.cpu);
			bench_sample(&ret[i].p99, o.p99);
		}
	return 0;
}

/* A row with a target for its ratio; without one when the peer is missing. */
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

static int rows_small(
	struct bench *b, struct site *s, const struct plan *plan, struct weir_err *err)
{
	static const enum server which[] = {BARE, GATED, NBDKIT, NBDKIT_RATE, QEMU};
	struct figures f[5] = {0};
	int r = measure_all(b, s, plan, which, 5, f, err);

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
	static const enum server which[] = {BARE, GATED};
	struct figures f[2] = {0};

	plan.jobs = TENANTS;
	plan.depth = 4;
	int r = measure_all(b, s, &plan, which, 2, f, err);

	if (r == 0)
		ratio_row(b, "4 KiB reads, 50 x QD4: gate, all 50 busy", "kIOPS", &f[1].iops,
			"bare loop", &f[0].iops, NULL, 0);
	return r;
}

static int rows_large(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum server which[] = {BARE, GATED};
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
	static const enum server which[] = {UPSTREAM, PROXY, NBDKIT_PROXY};
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

/* A victim with one request at a time, alone and beside 128 of a neighbour. */
static int rows_victim(struct bench *b, struct site *s, struct plan plan, struct weir_err *err)
{
	static const enum server which[] = {MODEL};
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

/* ---- the whole */

static int site_new(struct site *s, struct weir_err *err)
{
	char path[128];

	snprintf(s->dir, sizeof(s->dir), "/tmp/weir-bench-XXXXXX");
	if (!mkdtemp(s->dir))
		return weir_err_set(err, -errno, "%s: %s", s->dir, strerror(errno));
	s->pin = sysconf(_SC_NPROCESSORS_ONLN) >= 2;
	site_path(s, "qemu.img", path, sizeof(path));
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 || ftruncate(fd, 4ll << 30) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r < 0 ? weir_err_set(err, r, "%s: %s", path, strerror(-r)) : write_policies(s, err);
}

static void site_free(const struct site *s)
{
	static const char *const files[] = {
		"memory.yaml", "model.yaml", "proxy.yaml", "qemu.img", "log"};
	char path[128];

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		site_path(s, files[i], path, sizeof(path));
		unlink(path);
	}
	for (int i = 0; i < SERVERS; i++) {
		socket_path(s, (enum server)i, path, sizeof(path));
		unlink(path);
	}
	rmdir(s->dir);
}

int bench_gateway(struct bench *b, struct weir_err *err)
{
	struct plan plan = {.jobs = BUSY,
		.depth = 32,
		.size = 4096,
		.duration = b->quick ? 250 * WEIR_MS : 2500 * WEIR_MS};
	struct site s = {.dir = ""};
	int r = site_new(&s, err);

	if (r == 0)
		r = rows_small(b, &s, &plan, err);
	if (r == 0)
		r = rows_busy(b, &s, plan, err);
	if (r == 0)
		r = rows_large(b, &s, plan, err);
	if (r == 0)
		r = rows_proxy(b, &s, plan, err);
	if (r == 0)
		r = rows_victim(b, &s, plan, err);
	site_free(&s);
	return r;
}
