/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench sim: the cost of the simulator per event and per IO.
 *
 * METHOD  Each run is a separate process, so that its peak memory is its own and every run starts
 *         with a fresh heap. The time includes reading the scenario, building the world, the run,
 *         and the values at the end.
 *         - Four hosts on the calibrated array, 32 IOs each: everything stays in the cache. Shows
 *           the cost of an event.
 *         - A thousand hosts under PARDA, shares 1 and 2, six slots each on the mean, on an array
 *           that serves 200,000 IOs/s (disks enough for it, random reads over all of them): 300 s
 *           are 60 M IOs. Shows the cost of memory access; and whether each window reaches its
 *           share.
 *         - The same with fixed windows and 64 exponential servers instead of the array: the cost
 *           without the array.
 *         - 1,000 and 2,000 hosts on 64 servers, ten samples: the memory of one more host.
 *         The floor is the event queue alone, driven as the simulator drives it: as many events
 *         armed as the run has IOs in the device, the first popped and armed again (the "hold"
 *         model). It is the cost of one event per IO without any work.
 */
#include "bench/bench.h"
#include "base/rng.h"
#include "sim/event.h"
#include "sim/metrics.h"
#include "sim/sim.h"
#include "sim/scenario/scenario.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW_INSIDE  128  /* IOs in the device, four hosts */
#define MANY_INSIDE 6000 /* the same, a thousand hosts */
#define FLOOR_POPS  4000000
#define QUICK       10 /* --quick does this many times less */

static const char few_hosts[] =
	"duration: 600s\n"
	"devices:\n"
	"  - {name: d, kind: array, preset: cx3}\n"
	"hosts:\n"
	"  - name: h\n"
	"    count: 4\n"
	"    policy: {depth: 32}\n"
	"    workloads:\n"
	"      - {outstanding: 32, size: 16 KiB, reads: 0.7, region: 16 GiB, spread: 16 GiB}\n";

/* 760 disks with eight reads each and the whole stroke to go serve 265/s apiece. The controller and
 * its port are three times as fast, so that the disks decide; nothing is written, so there is no
 * write cache. */
static const char many_array[] =
	"duration: 300s\n"
	"devices:\n"
	"  - name: d\n"
	"    kind: array\n"
	"    raid: raid0\n"
	"    disks: 760\n"
	"    cache: 0 B\n"
	"    active: 6000\n"
	"    cost: 1us\n"
	"    bandwidth: 16 GB/s\n"
	"policy: {depth: 6, controller: parda, threshold: 30ms, parda: {start: depth}}\n"
	"hosts:\n"
	"  - name: one\n"
	"    count: 500\n"
	"    policy: {tenants: [{name: vm, weight: 1}]}\n"
	"    clients: {vm: [{outstanding: 8, size: 4 KiB, region: 96 GiB, spread: 96 GiB}]}\n"
	"  - name: two\n"
	"    count: 500\n"
	"    policy: {tenants: [{name: vm, weight: 2}]}\n"
	"    clients:\n"
	"      vm: [{outstanding: 12, size: 4 KiB, base: 48 TiB, region: 96 GiB, spread: 96 "
	"GiB}]\n";
static const char many_servers[] =
	"duration: 300s\n"
	"devices: [{name: d, kind: server, servers: 64, rate: 200k iops}]\n"
	"hosts:\n"
	"  - name: h\n"
	"    count: 1000\n"
	"    policy: {depth: 6}\n"
	"    workloads: [{outstanding: 8, size: 4 KiB, region: 96 GiB, spread: 96 GiB}]\n";

#define HOSTS_FOR_MEMORY(count)                                                                    \
	"duration: 10s\n"                                                                          \
	"devices: [{name: d, kind: server, servers: 64, rate: 20k iops}]\n"                        \
	"hosts: [{name: h, count: " count                                                          \
	", policy: {depth: 6}, workloads: [{outstanding: 8}]}]\n"

/* ---- one run, in a separate process */

struct outcome {
	double wall, cpu; /* s */
	double memory;    /* peak, bytes */
	double events, ios;
	double device_ms; /* mean latency of the device */
	double off;       /* under PARDA: relative error of the worst window; 0: no PARDA */
};

static double to_seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Return a host's weight if the value is its window at the end, by the names in many_array; else
 * 0. */
static double weight_of(const struct metrics_entry *e)
{
	size_t len = strlen(e->name), end = strlen(".window_end");

	if (e->is_series || len < end || strcmp(e->name + len - end, ".window_end") != 0)
		return 0;
	return strncmp(e->name, "parda.one", 9) == 0   ? 1
	       : strncmp(e->name, "parda.two", 9) == 0 ? 2
						       : 0;
}

static double windows_off(const struct metrics *m)
{
	double windows = 0, weights = 0, off = 0;

	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		windows += weight_of(&e) > 0 ? e.value : 0;
		weights += weight_of(&e);
	}
	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		double share = windows / weights * weight_of(&e);

		if (share > 0)
			off = fmax(off, fabs(e.value / share - 1));
	}
	return off;
}

static int run_here(const char *text, bool quick, struct outcome *ret)
{
	struct sim_options options = {0};
	weir_time begin = loop_clock();
	struct weir_err err = {0};
	struct metrics *metrics;
	struct scenario *s;
	struct sim_cost cost;
	int r = scenario_parse(text, strlen(text), "bench", NULL, 0, &s, &err);

	if (r)
		return r;
	if (quick)
		options.duration = s->duration / QUICK;
	r = sim_run(s, &options, &metrics, &cost, &err);
	scenario_free(s);
	if (r)
		return r;
	*ret = (struct outcome){.wall = (double)(loop_clock() - begin) / 1e9,
		.events = (double)cost.events,
		.ios = (double)cost.ios,
		.off = windows_off(metrics)};
	r = metrics_get(metrics, "device.d.mean", &ret->device_ms);
	metrics_free(metrics);
	return r;
}

static _Noreturn void run_child(const char *text, bool quick, int out)
{
	struct outcome o;
	int r = run_here(text, quick, &o);

	if (r == 0 && write(out, &o, sizeof o) != (ssize_t)sizeof o)
		r = -EIO;
	_exit(-r); /* an errno fits in a status */
}

/* Run `text` in a child process; the child returns its own figures, the others are from wait4. */
static int run_apart(const char *text, bool quick, struct outcome *ret)
{
	struct rusage usage;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	if (pipe(ends) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;
		close(ends[0]);
		close(ends[1]);
		return r;
	}
	if (pid == 0)
		run_child(text, quick, ends[1]);
	close(ends[1]);
	got = read(ends[0], ret, sizeof *ret);
	close(ends[0]);
	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (!WIFEXITED(status))
		return -ECHILD;
	if (WEXITSTATUS(status) || got != (ssize_t)sizeof *ret)
		return WEXITSTATUS(status) ? -WEXITSTATUS(status) : -EIO;
	ret->cpu = to_seconds(&usage.ru_utime) + to_seconds(&usage.ru_stime);
	ret->memory = (double)usage.ru_maxrss * 1024;
	return 0;
}

/* ---- the floor */

/* Measure ns per pop and arm with `armed` events in the queue. */
static int run_floor(uint32_t armed, bool quick, double *ret)
{
	uint64_t pops = FLOOR_POPS / (quick ? QUICK : 1);
	struct event_queue q;
	weir_time begin, now = 0;
	struct rng rng;
	int r;

	event_init(&q);
	r = event_reserve(&q, armed);
	if (r) {
		event_free(&q);
		return r;
	}
	rng_init(&rng, 1, "floor");
	for (uint32_t id = 0; id < armed; id++)
		event_arm(&q, id, (weir_time)rng_exp(&rng, (double)WEIR_MS));
	begin = loop_clock();
	for (uint64_t i = 0; i < pops; i++) {
		now = event_next(&q);
		event_arm(&q, event_pop(&q), now + 1 + (weir_time)rng_exp(&rng, (double)WEIR_MS));
	}
	*ret = (double)(loop_clock() - begin) / (double)pops;
	event_free(&q);
	return 0;
}

/* ---- rows */

struct series { /* the samples of one scenario's runs */
	struct bench_samples wall, cpu, memory, ios, device_ms, off, event_rate, io_ns;
	struct bench_samples floor_rate, floor_ns;
};

/* Measure `runs` runs, each followed by one of the floor. */
static int measure_scenario(
	const char *text, uint32_t inside, bool quick, unsigned runs, struct series *ret)
{
	double scale = quick ? QUICK : 1, floor;

	*ret = (struct series){0};
	for (unsigned i = 0; i < runs; i++) {
		struct outcome o = {0}; /* the analyzer takes errno for 0 after a failed call */
		int r = run_apart(text, quick, &o);

		if (r == 0)
			r = run_floor(inside, quick, &floor);
		if (r)
			return r;
		bench_sample(&ret->wall, o.wall * scale);
		bench_sample(&ret->cpu, o.cpu * scale);
		bench_sample(&ret->memory, o.memory / 1e6);
		bench_sample(&ret->ios, o.ios * scale / 1e6);
		bench_sample(&ret->device_ms, o.device_ms);
		bench_sample(&ret->off, o.off * 100);
		bench_sample(&ret->event_rate, o.events / o.wall / 1e6);
		bench_sample(&ret->io_ns, o.wall * 1e9 / o.ios);
		bench_sample(&ret->floor_rate, 1e3 / floor);
		bench_sample(&ret->floor_ns, floor);
	}
	return 0;
}

static const char floor_name[] = "event queue alone";

static int rows_few(struct bench *b)
{
	struct series s;
	int r = measure_scenario(few_hosts, FEW_INSIDE, b->quick, b->runs, &s);

	if (r)
		return r;
	bench_add_beside(b, "4 hosts on one array: events", "Mevents/s", &s.event_rate, floor_name,
		&s.floor_rate, ">= 2");
	bench_add_beside(b, "4 hosts on one array: time per IO", "ns", &s.io_ns, floor_name,
		&s.floor_ns, NULL);
	return 0;
}

/* --quick runs a tenth of the 300 s, and the name says so. */
#define MANY_NAME(device, what)                                                                    \
	(b->quick ? "1,000 hosts on " device ", 10 x 30 s: " what                                  \
		  : "1,000 hosts on " device ", 300 s: " what)

static int rows_array(struct bench *b, unsigned runs)
{
	struct series s;
	int r = measure_scenario(many_array, MANY_INSIDE, b->quick, runs, &s);

	if (r)
		return r;
	/* 300 s at 200,000/s */
	bench_add(b, MANY_NAME("an array", "IOs"), "millions", &s.ios, ">= 60");
	bench_add(b, MANY_NAME("an array", "latency in it"), "ms", &s.device_ms, NULL);
	bench_add(
		b, "1,000 hosts under PARDA: worst window, off its share by", "%", &s.off, "<= 10");
	bench_add(b, MANY_NAME("an array", "time"), "s", &s.wall, "< 90");
	bench_add(b, MANY_NAME("an array", "CPU time"), "s", &s.cpu, NULL);
	bench_add(b,
		b->quick ? "1,000 hosts on an array, 30 s: memory"
			 : "1,000 hosts on an array, 300 s: memory",
		"MB", &s.memory, "< 1000");
	bench_add_beside(b, MANY_NAME("an array", "time per IO"), "ns", &s.io_ns, floor_name,
		&s.floor_ns, NULL);
	return 0;
}

static int rows_servers(struct bench *b, unsigned runs)
{
	struct series s;
	int r = measure_scenario(many_servers, MANY_INSIDE, b->quick, runs, &s);

	if (r)
		return r;
	bench_add(b, MANY_NAME("64 servers", "time"), "s", &s.wall, NULL);
	bench_add_beside(b, MANY_NAME("64 servers", "time per IO"), "ns", &s.io_ns, floor_name,
		&s.floor_ns, NULL);
	return 0;
}

/* The same with --quick: it is short anyway. */
static int rows_memory(struct bench *b, unsigned runs)
{
	struct bench_samples bytes = {0};

	for (unsigned i = 0; i < runs; i++) {
		struct outcome few = {0}, many = {0};
		int r = run_apart(HOSTS_FOR_MEMORY("1000"), false, &few);

		if (r == 0)
			r = run_apart(HOSTS_FOR_MEMORY("2000"), false, &many);
		if (r)
			return r;
		bench_sample(&bytes, (many.memory - few.memory) / 1000);
	}
	bench_add(b, "1,000 hosts more: memory per host", "bytes", &bytes, "<= 20000");
	return 0;
}

int bench_sim(struct bench *b, struct weir_err *err)
{
	unsigned long_runs = b->runs_given ? b->runs : 1; /* a run takes a minute */
	int r = rows_few(b);

	if (!r)
		r = rows_array(b, long_runs);
	if (!r)
		r = rows_servers(b, long_runs);
	return r ? r : rows_memory(b, long_runs);
}
