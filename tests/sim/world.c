/* SPDX-License-Identifier: BSD-3-Clause */
/* Random worlds: for any of them nothing is lost, limits and windows hold, times add up, and the
 * same seed gives the same results. WEIR_SEED and WEIR_WORLDS widen the search. */
#include "base/rng.h"
#include "sim/metrics.h"
#include "sim/experiment/report.h"
#include "sim/sim.h"
#include "test.h"
#include <stdarg.h>

#define DURATION 3.0 /* s */
#define WARMUP   0.5

struct limit { /* limits as written, to be checked */
	char tenant[64];
	double max;
};

struct maker {
	struct rng rng;
	FILE *out;
	char *text;
	size_t len;
	int links, hosts;
	struct limit limits[64];
	size_t n_limits;
	struct window {
		char host[32];
		double most;
	} windows[16];
	size_t n_windows;
};

static unsigned pick(struct maker *m, unsigned n)
{
	return (unsigned)rng_below(&m->rng, n);
}

static void append(struct maker *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct maker *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(m->out, fmt, args);
	va_end(args);
}

#define ONE_OF(m, ...)                                                                             \
	(((const char *const[]){__VA_ARGS__})[pick(                                                \
		m, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))])

static void make_device(struct maker *m)
{
	append(m, "devices:\n  - name: d\n    %s\n",
		ONE_OF(m, "kind: server\n    rate: 900 iops", "kind: disk", "kind: array",
			"kind: server\n    servers: 5\n    rate: 2k iops\n    service: fixed",
			"kind: ssd\n    channels: 1\n    dies: 2",
			"kind: array\n    preset: cx3-small"));
	if (pick(m, 2))
		append(m, "    policy: {depth: %s, lab: {order: %s}}\n",
			ONE_OF(m, "1", "3.5", "40"), ONE_OF(m, "fair", "fifo"));
	m->links = (int)pick(m, 3);
	if (m->links)
		append(m, "links:\n");
	for (int i = 0; i < m->links; i++)
		append(m, "  - {name: l%d, rate: %s, delay: %s, strict: %s, buffer: %s}\n", i,
			ONE_OF(m, "5 MB/s", "1 Gbit/s"), ONE_OF(m, "0s", "300us"),
			ONE_OF(m, "true", "false"), ONE_OF(m, "0 B", "256 KiB"));
}

static void make_workload(struct maker *m)
{
	switch (pick(m, 5)) {
	case 0:
		append(m, "{outstanding: %u, think: %s", 1 + pick(m, 40), ONE_OF(m, "0s", "4ms"));
		break;
	case 1:
		append(m, "{arrivals: hyper, ca2: 9, rate: 120 iops");
		break;
	case 2:
		append(m, "{arrivals: uniform, rate: 2k iops, on: 20ms, off: 380ms");
		break;
	case 3:
		append(m, "{outstanding: 8, on: 100ms, off: 200ms, random_phases: %s",
			ONE_OF(m, "true", "false"));
		break;
	default:
		append(m, "{rate: %u iops, start: %s", 20 + pick(m, 300), ONE_OF(m, "0s", "1s"));
		break;
	}
	append(m, ", size: %s, reads: 0.%u, sequential: 0.%u, stopped: %s}",
		ONE_OF(m, "512 B", "4 KiB", "64 KiB"), pick(m, 10), pick(m, 10),
		ONE_OF(m, "false", "false", "true"));
}

static void make_tenant(struct maker *m, int host, int tenant)
{
	append(m, "        - {name: t%d, weight: %u", tenant, 1 + pick(m, 9));
	if (pick(m, 3) == 0) {
		unsigned max = 50 + pick(m, 300);
		struct limit *l = &m->limits[m->n_limits++];

		append(m, ", max: %u iops", max);
		snprintf(l->tenant, sizeof(l->tenant), "h%d.t%d", host, tenant);
		l->max = max;
	}
	if (pick(m, 4) == 0)
		append(m, ", min: 20 iops");
	if (pick(m, 4) == 0)
		append(m,
			", lab: {priority: %u, profile: [{rate: 80 iops, size: 5}, {rate: 1 MB/s, "
			"size: 8 KiB}]}",
			pick(m, 3));
	append(m, "}\n");
}

static void make_clients(struct maker *m, int tenant)
{
	append(m, "      t%d: [", tenant);
	make_workload(m);
	if (pick(m, 2)) {
		append(m, ", ");
		make_workload(m);
	}
	append(m, "]\n");
}

static void make_host(struct maker *m, int host)
{
	const char *window = ONE_OF(m, "1", "2.5", "12", "none");
	unsigned tenants = 1 + pick(m, 4);

	append(m,
		"  - name: h%d\n    policy:\n      depth: %s\n      lab: {order: %s}\n"
		"      run: %u\n      run_distance: 1 MiB\n",
		host, window, ONE_OF(m, "fair", "fair", "fifo", "edf"), pick(m, 3) * 4);
	append(m, "      cost: %s\n", ONE_OF(m, "requests", "bytes", "time"));
	if (window[0] != 'n') {
		snprintf(m->windows[m->n_windows].host, sizeof(m->windows[0].host), "h%d", host);
		m->windows[m->n_windows++].most = atof(window);
	}
	append(m, "      tenants:\n");
	for (unsigned t = 0; t < tenants; t++)
		make_tenant(m, host, (int)t);
	if (m->links)
		append(m, "    retry: 20ms\n    request: l%u\n    reply: l%u\n",
			pick(m, (unsigned)m->links), pick(m, (unsigned)m->links));
	append(m, "    clients:\n");
	for (unsigned t = 0; t < tenants; t++)
		make_clients(m, (int)t);
}

static void make_changes(struct maker *m)
{
	append(m,
		"at:\n"
		"  - {time: 700ms, set: [{workload: '*/*/w1', run: true}, {tenant: h0/t0, weight: "
		"5}]}\n"
		"  - {time: 1300ms, set: {workload: h0/*/w1, run: false}}\n"
		"  - {time: 1500ms, set: [{workload: '*/*/*', run: true}, {tenant: '*/t0', "
		"lab: {priority: 1}}]}\n");
}

static void make_world(struct maker *m, uint64_t seed)
{
	*m = (struct maker){0};
	rng_init(&m->rng, seed, "worlds");
	m->out = open_memstream(&m->text, &m->len);
	CHECK(m->out != NULL);
	append(m, "duration: 3s\nwarmup: 500ms\nsample: %s\n", ONE_OF(m, "0s", "250ms", "700ms"));
	make_device(m);
	append(m, "hosts:\n");
	m->hosts = 1 + (int)pick(m, 4);
	for (int i = 0; i < m->hosts; i++)
		make_host(m, i);
	make_changes(m);
	fclose(m->out);
}

/* ---- checks */

static double get(const struct maker *m, const struct metrics *x, const char *fmt, const char *name)
{
	char full[200];
	double value;

	snprintf(full, sizeof(full), fmt, name);
	if (metrics_get(x, full, &value))
		FAIL("no value '%s'\n%s", full, m->text);
	return value;
}

#define HOLDS(m, expr)                                                                             \
	do {                                                                                       \
		if (!(expr))                                                                       \
			FAIL("not so: %s, in\n%s", #expr, (m)->text);                              \
	} while (0)

/* Return true if NAME, KIND.PATH.VALUE, is a latency without completed requests. */
static bool none_completed(const struct metrics *x, const char *name)
{
	static const char *const of_tenants[] = {"inside.", "wait.", "slo."};
	const char *path = name, *what = strrchr(name, '.');
	char ios[300];
	double n;

	for (size_t i = 0; i < sizeof(of_tenants) / sizeof(of_tenants[0]); i++) {
		size_t len = strlen(of_tenants[i]);
		if (strncmp(name, of_tenants[i], len) == 0)
			path = name + len;
	}
	snprintf(ios, sizeof(ios), "%s%.*s.ios", path == name ? "" : "tenant.", (int)(what - path),
		path);
	return metrics_get(x, ios, &n) == 0 && n == 0;
}

static void check_world(const struct maker *m, const struct metrics *x)
{
	double span = DURATION - WARMUP;

	HOLDS(m, get(m, x, "%s", "run.submitted") == get(m, x, "%s", "run.served") +
							     get(m, x, "%s", "run.queued") +
							     get(m, x, "%s", "run.in_flight"));
	HOLDS(m, get(m, x, "%s", "run.served") > 50);
	for (size_t i = 0; i < m->n_limits; i++) {
		/* A request completed here may have passed just before; a bucket holds 5 ms'
		 * worth or one. */
		double max = m->limits[i].max;
		double inside = /* 0 if nothing completed */
			fmax(get(m, x, "inside.%s.max", m->limits[i].tenant), 0) / 1e3;

		HOLDS(m, get(m, x, "tenant.%s.ios", m->limits[i].tenant) <=
				 max * (span + inside) + fmax(max * 0.005, 1) + 2);
	}
	/* A fractional window holds over time, but an IO may last longer than the run. */
	for (size_t i = 0; i < m->n_windows; i++)
		HOLDS(m, get(m, x, "host.%s.in_flight", m->windows[i].host) <=
				 ceil(m->windows[i].most) * (1 + 1e-9));
	for (size_t i = 0; i < metrics_count(x); i++) {
		struct metrics_entry e = metrics_at(x, i);
		if (!e.is_series && !isfinite(e.value) &&
			!(isnan(e.value) && none_completed(x, e.name)))
			FAIL("%s is not finite, in\n%s", e.name, m->text);
		if (!e.is_series && e.value < -1e-9)
			FAIL("%s is %g, in\n%s", e.name, e.value, m->text);
	}
}

static char *run_text(const struct maker *m, struct metrics **ret)
{
	struct sim_options options = {.seed = 3, .seed_set = 1};
	struct scenario *s;
	struct weir_err err;
	char *text;

	if (scenario_parse(m->text, m->len, "t.yaml", NULL, 0, &s, &err) ||
		sim_run(s, &options, ret, NULL, &err))
		FAIL("%s, in\n%s", err.text, m->text);
	scenario_free(s);
	WRITE_TEXT(text, report_values_csv(*ret, to));
	return text;
}

static void worlds_made_at_random_keep_the_laws(void)
{
	const char *seed_text = getenv("WEIR_SEED"), *count_text = getenv("WEIR_WORLDS");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 1;
	int count = count_text ? atoi(count_text) : 60;

	for (int i = 0; i < count; i++) {
		struct metrics *first, *second;
		struct maker m;
		char *a, *b;

		make_world(&m, seed * 1000003 + (uint64_t)i);
		a = run_text(&m, &first);
		b = run_text(&m, &second);
		HOLDS(&m, strcmp(a, b) == 0);
		check_world(&m, first);
		metrics_free(first);
		metrics_free(second);
		free(a);
		free(b);
		free(m.text);
	}
	printf("%d worlds, seed %llu\n", count, (unsigned long long)seed);
}

int main(void)
{
	RUN(worlds_made_at_random_keep_the_laws);
	return 0;
}
