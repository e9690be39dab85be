/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/run/systems.h"
#include "base/array.h"
#include "base/no-memory.h"
#include "control/keys.h"
#include "sim/world/measure.h"
#include "sim/world/world.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 50 /* drawn systems for each that is run */

struct found { /* over all systems that ran */
	uint32_t drawn, run, tenants, beyond;
	double logs;   /* Σ ln(bound ÷ slowest) over the tenants */
	double *ratio; /* bound ÷ slowest, of each */
	size_t room;
	struct sim_cost cost;
};

/* ---- the scenario of one system, as text */

struct text {
	char *at;
	size_t len;
	FILE *file;
};

static double draw(struct rng *r, double from, double to) /* log-uniform */
{
	return from * exp(rng_double(r) * log(to / from));
}

static void put_arrivals(FILE *f, struct rng *r, double load, unsigned kib)
{
	double rate = load / (1e-3 + kib / 102400.0); /* 1 ms, and 100 MiB/s */

	switch (rng_below(r, 4)) {
	case 0:
		fprintf(f,
			"arrivals: bursts, rate: %.3f iops, ca2: %.3f, peak: %.3f iops, burst: "
			"300ms",
			rate, draw(r, 1.5, 20), rate * draw(r, 2, 10));
		break;
	case 1:
		fprintf(f, "arrivals: uniform, rate: %.3f iops, on: 200ms, off: %.0fms",
			rate * draw(r, 2, 10), draw(r, 200, 2000));
		break;
	case 2:
		fprintf(f, "arrivals: hyper, rate: %.3f iops, ca2: %.3f", rate, draw(r, 1.5, 20));
		break;
	default:
		fprintf(f, "arrivals: poisson, rate: %.3f iops", rate);
	}
	fprintf(f, ", size: %u KiB, reads: %.2f", kib, rng_double(r));
}

static void put_clients(
	FILE *f, const struct sim_systems_config *c, struct rng *r, unsigned n, unsigned window)
{
	double load = draw(r, 0.2, 0.8);
	unsigned most = 4;

	for (unsigned i = 1; i <= n; i++) {
		unsigned kib = 4u << rng_below(r, 5);

		most = kib > most ? kib : most;
		fprintf(f, "      t%u: [{name: t%u-%u, ", i, i, (unsigned)rng_below(r, 1 << 20));
		if (c->traces)
			fprintf(f, "traces: \"%s\", speed: %.3f, rate_most: %.3f iops", c->traces,
				draw(r, 1, 8), 300 * load / n);
		else
			put_arrivals(f, r, load / n, kib);
		fputs("}]\n", f);
	}
	fprintf(f, "      rest: [{outstanding: %u, size: %u KiB}]\n", 2 * window,
		c->traces ? 64 : most);
}

static void put_link(FILE *f, struct rng *r, unsigned n, bool blocking)
{
	fprintf(f,
		"links:\n  - name: out\n    rate: 1 Gbit/s\n    strict: true\n    mtu: %u KiB\n    "
		"policy:\n"
		"      lab: {plan: meister, limit: requests, levels: 7, blocking: %s}\n"
		"      tenants: [{name: rest}",
		(unsigned)rng_below(r, 2) * 8, blocking ? "true" : "false");
	for (unsigned i = 1; i <= n; i++)
		fprintf(f, ", {name: t%u}", i);
	fputs("]\n", f);
}

/* The gate is the device's: a slot of a host's would not be free before the link has sent the reply. */
static void put_system(FILE *f, const struct sim_systems_config *c, struct rng *r,
	weir_time duration, unsigned window)
{
	unsigned n = 2 + (unsigned)rng_below(r, 5);
	bool link = c->links && rng_below(r, 2);

	fprintf(f,
		"duration: %.6fs\nsample: 0s\ndevices:\n  - name: d\n    kind: server\n    "
		"servers: 1\n    rate: 1k iops\n"
		"    bandwidth: 100 MiB/s\n    service: fixed\n    policy:\n      depth: %u\n      "
		"cost: time\n"
		"      lab: {plan: meister, aligned: true, blocking: %s, estimate: {io: 1ms, rate: "
		"100 MiB/s}}\n"
		"      tenants: [{name: rest}",
		(double)duration / 1e9, window, c->blocking ? "true" : "false");
	for (unsigned i = 1; i <= n; i++)
		fprintf(f, ", {name: t%u}", i);
	fputs("]\n", f);
	if (link)
		put_link(f, r, n, c->blocking);
	fprintf(f,
		"hosts:\n  - name: h\n    device: d\n%s    policy:\n      depth: none\n      "
		"tenants: [{name: rest}",
		link ? "    reply: [out]\n" : "");
	for (unsigned i = 1; i <= n; i++)
		fprintf(f, ", {name: t%u, slo: p99 < %.3fms}", i, draw(r, 20, 5000));
	fputs("]\n    clients:\n", f);
	put_clients(f, c, r, n, window);
}

/* ---- one system */

static bool feasible(const struct world *w)
{
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		const struct world_tenant *t = &w->tenants[i];

		if (t->plan && !(t->plan->bound * 1e9 <= (double)t->slo_latency))
			return false;
	}
	return true;
}

static int judge(const struct world *w, struct metrics *m, struct found *f)
{
	char name[64];
	double slowest;

	for (uint32_t i = 0; i < w->n_tenants; i++) {
		const struct world_tenant *t = &w->tenants[i];

		if (!t->plan)
			continue;
		snprintf(name, sizeof(name), "tenant.h.%s.max",
			t->host->gate->policy->tenants[t->index].path);
		if (metrics_get(m, name, &slowest) || !(slowest > 0))
			continue;
		if (array_grow(&f->ratio, &f->room, f->tenants + 1) < 0)
			return -ENOMEM;
		f->ratio[f->tenants++] = t->plan->bound * 1e3 / slowest;
		f->logs += log(t->plan->bound * 1e3 / slowest);
		/* Rates, sizes and costs are rounded to 2⁻¹⁰, whole ns and bytes. */
		f->beyond += slowest > t->plan->bound * 1e3 + 1e-3;
	}
	return 0;
}

/* Run the system if it is feasible. */
static int run_world(struct world *w, struct found *f, struct weir_err *err)
{
	struct metrics *m;
	int r;

	if (!feasible(w))
		return 0;
	r = world_run(w, w->end);
	if (r == 0)
		r = measure_end(w->measure, w, &m);
	if (r)
		return weir_err_set(err, r, "system: %s", strerror(-r));
	r = judge(w, m, f);
	f->run++;
	f->cost.events += w->events.popped;
	f->cost.ios += w->completed;
	metrics_free(m);
	return r;
}

static int run_text(const struct scenario *of, const struct text *t, uint64_t seed, struct found *f,
	struct weir_err *err)
{
	struct scenario *s;
	struct world *w;
	int r = scenario_parse(t->at, t->len, "a system", NULL, 0, &s, err);

	if (r)
		return r;
	s->seed = seed;
	if (of->systems->traces)
		r = scenario_load(s, of->read, of->read_arg, err);
	if (r == 0)
		r = world_new(s, seed, &w, err);
	if (r == 0) {
		r = run_world(w, f, err);
		world_free(w);
	}
	scenario_free(s);
	f->drawn++;
	return r;
}

static int run_one(const struct scenario *s, weir_time duration, uint64_t seed, struct found *f,
	struct weir_err *err)
{
	static const unsigned windows[] = {1, 4, 16};
	struct text t = {0};
	struct rng rng;
	int r;

	rng_init(&rng, seed, "systems");
	t.file = open_memstream(&t.at, &t.len);
	if (!t.file)
		return no_memory(err);
	put_system(t.file, s->systems, &rng, duration, windows[rng_below(&rng, 3)]);
	r = fclose(t.file) ? no_memory(err) : run_text(s, &t, seed, f, err);
	free(t.at);
	return r;
}

/* ---- all */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int put_found(const struct found *f, struct metrics **ret)
{
	int r = metrics_new(ret);

	if (r)
		return r;
	metrics_put(*ret, "systems.drawn", "", f->drawn);
	metrics_put(*ret, "systems.run", "", f->run);
	metrics_put(*ret, "systems.tenants", "", f->tenants);
	metrics_put(*ret, "systems.beyond", "", f->beyond);
	if (f->tenants) {
		metrics_put(*ret, "systems.mean", "", exp(f->logs / f->tenants));
		qsort(f->ratio, f->tenants, sizeof(*f->ratio), by_size);
		for (uint32_t i = 0; i < 100; i += 5)
			metrics_putf(
				*ret, "", f->ratio[i * f->tenants / 100], "systems.ratio%u", i);
	}
	return 0;
}

int sim_systems_run(const struct scenario *s, weir_time duration, uint64_t seed,
	const struct sim_options *o, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err)
{
	struct found f = {0};
	int r = 0;

	while (r == 0 && f.run < s->systems->count && f.drawn < TRIES * s->systems->count) {
		r = run_one(s, duration, seed * 1000000 + f.drawn, &f, err);
		if (r == 0 && o && o->progress &&
			o->progress((double)f.run / s->systems->count, o->progress_arg))
			r = weir_err_set(err, -ECANCELED, "stopped");
	}
	if (r == 0 && put_found(&f, ret))
		r = no_memory(err);
	free(f.ratio);
	if (r == 0 && ret_cost)
		*ret_cost = f.cost;
	return r;
}

#define AT(member) KEY_AT(struct sim_systems_config, member)
static const struct key keys[] = {{"count", KEY_WHOLE, AT(count), 100, 1, 100000},
	{"blocking", KEY_FLAG, AT(blocking), 1}, {"links", KEY_FLAG, AT(links), 1}, {0}};

int sim_systems_read(yamldoc_node map, struct sim_systems_config *ret, struct weir_err *err)
{
	static const char *const more[] = {"traces", NULL};
	const char *names[KEYS_MOST];
	struct settings s = {ret, sizeof(*ret)};
	int r = yamldoc_map(map, keys_names(keys, false, true, more, names), err);

	keys_default(keys, ret, sizeof(*ret));
	for (const struct key *k = keys; r == 0 && k->name; k++)
		r = yamldoc_optional(key_read(k, map, &s, err));
	if (r == 0)
		r = yamldoc_optional(yamldoc_string(map, "traces", &ret->traces, err));
	if (r == 0 && ret->traces && strcmp(ret->traces, "none") == 0)
		ret->traces = NULL;
	return r;
}
