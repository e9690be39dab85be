/* SPDX-License-Identifier: BSD-3-Clause */
/* workload: arrival times, shapes, offsets, and invalid configurations. */
#include "model/workload.h"
#include "test.h"
#include <errno.h>

#define GIB (UINT64_C(1) << 30)

static struct workload_config plain(enum workload_arrivals arrivals)
{
	return (struct workload_config){.arrivals = arrivals,
		.outstanding = 4,
		.rate = 1000,
		.ca2 = 4,
		.peak = 5000,
		.burst = WEIR_SEC,
		.sizes = {{4096, 1}},
		.n_sizes = 1,
		.reads = 1,
		.region = GIB};
}

static struct workload *make(const struct workload_config *c)
{
	struct workload *w;
	struct weir_err err;

	if (workload_new(c, 1, "test", &w, &err) < 0)
		FAIL("refused: %s", err.text);
	return w;
}

/* ---- times: open */

struct gaps { /* of inter-arrival times */
	double n, mean, ca2;
	weir_time last;
};

static struct gaps measure(const struct workload_config *c, int n)
{
	struct workload *w = make(c);
	struct workload_io io;
	struct gaps g = {.last = c->start};
	double sum = 0, square = 0;

	CHECK(!workload_closed(w));
	for (int i = 0; i < n && workload_next(w, 0, &io); i++) {
		double gap = (double)(io.at - g.last);
		CHECK(io.at >= g.last);
		g.last = io.at;
		sum += gap;
		square += gap * gap;
		g.n++;
	}
	g.mean = sum / g.n;
	g.ca2 = square / g.n / (g.mean * g.mean) - 1;
	workload_free(w);
	return g;
}

static void poisson_has_its_rate_and_ca2(void)
{
	struct workload_config c = plain(WORKLOAD_POISSON);
	struct gaps g;

	c.start = 77 * WEIR_SEC;
	g = measure(&c, 400000);
	CHECK_NEAR(g.mean, 1e6, 0.01);
	CHECK_NEAR(g.ca2, 1, 0.02);
}

static void hyper_has_its_rate_and_ca2(void)
{
	static const double ca2[] = {1, 4, 20, 40};

	for (size_t i = 0; i < 4; i++) {
		struct workload_config c = plain(WORKLOAD_HYPER);
		struct gaps g;
		c.ca2 = ca2[i];
		g = measure(&c, 1000000);
		CHECK_NEAR(g.mean, 1e6, 0.02);
		CHECK_NEAR(g.ca2, ca2[i], 0.03);
	}
}

/* Return the most IOs of any second. */
static double peak_of(const struct trace *t)
{
	size_t most = 0;

	for (size_t i = 0, from = 0; i < t->n; i++) {
		while (t->records[i].at - t->records[from].at >= WEIR_SEC)
			from++;
		most = i + 1 - from > most ? i + 1 - from : most;
	}
	return (double)most;
}

/* Judged by the summary that `weir trace info` prints, which knows nothing of the process. */
static void bursts_have_their_rate_ca2_and_peak(void)
{
	static const struct {
		double rate, ca2, peak, burst;
	} of[] = {{25, 20, 100, 1}, {25, 40, 100, 1}, {25, 40, 150, 4}, {5, 14, 100, 1},
		{10, 23, 120, 1}, {110, 145, 400, 2}, {55, 2.2, 100, 1}, {5, 1.3, 60, 1},
		{1000, 40, 5000, 1}};
	enum { N = 200000 };
	struct trace t = {.records = calloc(N, sizeof(*t.records))};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct workload_config c = plain(WORKLOAD_BURSTS);
		struct trace_summary s;
		struct workload_io io;
		struct workload *w;

		c.rate = of[i].rate;
		c.ca2 = of[i].ca2;
		c.peak = of[i].peak;
		c.burst = (weir_time)(of[i].burst * 1e9);
		w = make(&c);
		for (t.n = 0; t.n < N && workload_next(w, 0, &io); t.n++)
			t.records[t.n].at = io.at;
		workload_free(w);
		trace_summarise(&t, &s);
		CHECK_INT(t.n, N);
		CHECK_NEAR(s.rate, of[i].rate, 0.05);
		CHECK_NEAR(s.ca2, of[i].ca2, 0.05);
		CHECK_NEAR(peak_of(&t), of[i].peak, 0.05);
	}
	free(t.records);
}

static void uniform_is_exact(void)
{
	struct workload_config c = plain(WORKLOAD_UNIFORM);
	struct workload *w;
	struct workload_io io;

	c.start = 5 * WEIR_SEC;
	c.stop = 6 * WEIR_SEC;
	w = make(&c);
	for (int i = 0; i < 1000; i++) {
		CHECK(workload_next(w, 0, &io));
		CHECK_INT(io.at, 5 * WEIR_SEC + i * WEIR_MS);
	}
	CHECK(!workload_next(w, 0, &io)); /* the 1,001st would come at stop */
	CHECK(!workload_next(w, 0, &io));
	workload_free(w);
	c.rate = 3;
	c.stop = 0;
	w = make(&c);
	for (int i = 0; i <= 3000000; i++)
		CHECK(workload_next(w, 0, &io));
	CHECK(llabs(io.at - (5 + 1000000) * WEIR_SEC) <=
		1000); /* rounding errors of thirds do not accumulate */
	workload_free(w);
}

static void stops_for_good(void)
{
	struct workload_config c = plain(WORKLOAD_HYPER);
	struct workload *w;
	struct workload_io io = {.at = -1};
	int n = 0;

	c.ca2 = 40; /* long gaps, then short ones that would fit again */
	c.start = WEIR_SEC;
	c.stop = 3 * WEIR_SEC;
	w = make(&c);
	while (workload_next(w, 0, &io)) {
		CHECK(io.at >= c.start && io.at < c.stop);
		n++;
	}
	CHECK(n > 500);
	for (int i = 0; i < 1000; i++) {
		struct workload_io untouched = io;
		CHECK(!workload_next(w, 0, &io));
		CHECK(memcmp(&untouched, &io, sizeof(io)) == 0);
	}
	workload_free(w);
}

/* A ramp from a to b over T seconds: (a + (b−a)x/2T)x IOs in its first x seconds. */
static void check_ramp(enum workload_arrivals arrivals, double a, double b, double slack)
{
	struct workload_config c = plain(arrivals);
	double counts[10] = {0}, so_far = 0;
	struct workload *w;
	struct workload_io io;

	c.rate = a;
	c.rate_end = b;
	c.start = 100 * WEIR_SEC;
	c.stop = 200 * WEIR_SEC;
	w = make(&c);
	while (workload_next(w, 0, &io))
		counts[(io.at - c.start) / (10 * WEIR_SEC)]++;
	for (int i = 0; i < 10; i++) {
		double x = 10.0 * (i + 1), want = (a + (b - a) * x / 200) * x;
		so_far += counts[i];
		if (fabs(so_far - want) > 1 + slack * sqrt(want))
			FAIL("ramp %g to %g: %g IOs in %g s, not %g", a, b, so_far, x, want);
	}
	workload_free(w);
}

static void ramps_have_exact_counts(void)
{
	check_ramp(WORKLOAD_UNIFORM, 100, 1000, 0);
	check_ramp(WORKLOAD_UNIFORM, 1000, 100, 0);
	check_ramp(WORKLOAD_UNIFORM, 0, 500, 0);
	check_ramp(WORKLOAD_UNIFORM, 300, 300, 0);
	check_ramp(WORKLOAD_POISSON, 100, 5000, 4);
	check_ramp(WORKLOAD_POISSON, 5000, 1, 4);
}

/* ---- times: on and off */

static void fixed_phases_bound_an_open_process(void)
{
	struct workload_config c = plain(WORKLOAD_POISSON);
	struct workload *w;
	struct workload_io io;
	double n = 0;
	int early = 0, late = 0;

	c.start = 3 * WEIR_SEC;
	c.stop = 403 * WEIR_SEC;
	c.on = 100 * WEIR_MS;
	c.off = 300 * WEIR_MS;
	w = make(&c);
	while (workload_next(w, 0, &io)) {
		weir_time in = (io.at - c.start) % (400 * WEIR_MS);
		CHECK(in < c.on);
		early += in < 10 * WEIR_MS;
		late += in >= 90 * WEIR_MS;
		n++;
	}
	CHECK_NEAR(n, 100000, 0.02); /* a quarter of 400,000: suppressed, not postponed */
	CHECK(abs(early - 10000) < 500 && abs(late - 10000) < 500);
	workload_free(w);
}

static void time_stands_still_while_off(void)
{
	struct workload_config c = plain(WORKLOAD_UNIFORM), steady = c;
	struct workload *w, *s;
	struct workload_io io, same;

	c.on = 2500 * WEIR_US; /* 2½ gaps: the half is carried over */
	c.off = 10 * WEIR_MS;
	w = make(&c);
	s = make(&steady);
	for (int i = 0; i < 10000; i++) {
		CHECK(workload_next(w, 0, &io) && workload_next(s, 0, &same));
		weir_time cycles = same.at / c.on;
		CHECK(llabs(io.at - (same.at + cycles * c.off)) <= 1);
	}
	workload_free(w);
	workload_free(s);
}

static void rare_arrivals_skip_many_phases(void)
{
	struct workload_config c = plain(WORKLOAD_UNIFORM);
	struct workload *w;
	struct workload_io io;

	c.rate = 0.001; /* a gap is 10⁹ on-phases: needs division, a loop would take for ever */
	c.on = WEIR_US;
	c.off = 3 * WEIR_US;
	w = make(&c);
	for (int i = 0; i < 100; i++) {
		CHECK(workload_next(w, 0, &io));
		CHECK(llabs(io.at - i * 4000 * WEIR_SEC) <= 4 * WEIR_US);
	}
	workload_free(w);
	c.stop = 9000 * WEIR_SEC;
	w = make(&c);
	for (int i = 0; i < 3; i++)
		CHECK(workload_next(w, 0, &io));
	CHECK(!workload_next(w, 0, &io));
	workload_free(w);
}

static void random_phases_have_their_means(void)
{
	struct workload_config c = plain(WORKLOAD_UNIFORM);
	struct workload *w;
	struct workload_io io;
	weir_time last = 0, on = 0, off = 0;
	double phases = 0, square = 0;

	c.rate = 100000; /* 10 µs apart: a longer gap is an off-phase */
	c.on = 5 * WEIR_MS;
	c.off = 20 * WEIR_MS;
	c.on_off_random = true;
	c.stop = 500 * WEIR_SEC;
	w = make(&c);
	while (workload_next(w, 0, &io)) {
		weir_time gap = io.at - last;
		if (gap > 20 * WEIR_US) {
			off += gap;
			square += (double)gap * (double)gap;
			phases++;
		} else {
			on += gap;
		}
		last = io.at;
	}
	CHECK_NEAR((double)off / phases, 20e6, 0.03);
	CHECK_NEAR((double)on / phases, 5e6, 0.03);
	CHECK_NEAR(square / phases / (20e6 * 20e6), 2, 0.08); /* exponential: E[X²] = 2 mean² */
	workload_free(w);
}

/* A ramp runs in real time, independent of the phases: the last second is as busy as its rate. */
static void a_ramp_goes_on_while_off(void)
{
	struct workload_config c = plain(WORKLOAD_UNIFORM);
	struct workload *w;
	struct workload_io io;
	double n = 0, end = 0;

	c.rate = 0;
	c.rate_end = 10000;
	c.stop = 100 * WEIR_SEC;
	c.on = c.off = 500 * WEIR_MS;
	w = make(&c);
	while (workload_next(w, 0, &io)) {
		CHECK(io.at % WEIR_SEC < c.on);
		n++;
		end += io.at >= 99 * WEIR_SEC;
	}
	/* Σ over seconds k of the integral of 100 t over [k, k+½]. */
	CHECK_NEAR(n, 100.0 * (4950 * 0.5 + 100 * 0.125), 1e-4);
	CHECK_NEAR(end, 100 * (99 * 0.5 + 0.125), 1e-3);
	workload_free(w);
}

/* ---- times: closed */

static void closed_issues_at_once_then_thinks(void)
{
	struct workload_config c = plain(WORKLOAD_CLOSED);
	struct workload *w;
	struct workload_io io;
	double sum = 0, square = 0;

	c.think = 10 * WEIR_MS;
	c.start = WEIR_SEC;
	w = make(&c);
	CHECK(workload_closed(w));
	for (int i = 0; i < 4; i++) {
		CHECK(workload_next(w, 0, &io));
		CHECK_INT(io.at, WEIR_SEC); /* not before start; the first do not pause */
	}
	for (int i = 0; i < 200000; i++) {
		weir_time now = 2 * WEIR_SEC + i;
		CHECK(workload_next(w, now, &io));
		CHECK(i ? io.at >= now : io.at > now);
		sum += (double)(io.at - now);
		square += (double)(io.at - now) * (double)(io.at - now);
	}
	CHECK_NEAR(sum / 2e5, 1e7, 0.01);
	CHECK_NEAR(square / 2e5, 2e14, 0.03);
	workload_free(w);

	c.think = 0;
	w = make(&c);
	for (int i = 0; i < 100; i++) {
		CHECK(workload_next(w, WEIR_SEC + i, &io));
		CHECK_INT(io.at, WEIR_SEC + i);
	}
	workload_free(w);
}

static void closed_stops(void)
{
	struct workload_config c = plain(WORKLOAD_CLOSED);
	struct workload *w;
	struct workload_io io;

	c.stop = WEIR_SEC;
	w = make(&c);
	CHECK(workload_next(w, WEIR_SEC - 1, &io));
	CHECK(!workload_next(w, WEIR_SEC, &io));
	CHECK(!workload_next(w, 9 * WEIR_SEC, &io));
	workload_free(w);
}

static void closed_waits_for_the_next_fixed_phase(void)
{
	struct workload_config c = plain(WORKLOAD_CLOSED);
	struct workload *w;
	struct workload_io io;
	const weir_time cycle = 100 * WEIR_MS;

	c.start = 7 * WEIR_MS;
	c.on = 30 * WEIR_MS;
	c.off = 70 * WEIR_MS;
	c.stop = c.start + 1000 * cycle + 35 * WEIR_MS;
	w = make(&c);
	for (weir_time now = 0; now < c.stop; now += 997 * WEIR_US) {
		weir_time in = now < c.start ? 0 : (now - c.start) % cycle;
		weir_time want = now < c.start ? c.start : in < c.on ? now : now - in + cycle;
		CHECK_INT(workload_next(w, now, &io), want < c.stop);
		if (want < c.stop)
			CHECK_INT(io.at, want);
	}
	workload_free(w);
}

/* With random phases and long pauses, IOs are out of order; each must still start when its pause is
 * over, or in the next on-phase, independent of the others. One workload without pauses reveals the
 * phases, another without phases the pauses. */
static void closed_keeps_to_random_phases(void)
{
	enum { N = 20000, PHASES = 500 };
	static weir_time from[PHASES], to[PHASES];
	struct workload_config c = plain(WORKLOAD_CLOSED), always = c;
	struct workload *w, *a;
	struct workload_io io, raw;
	const weir_time step = 10 * WEIR_US; /* accuracy of the ends of phases */
	int n = 0, waited = 0;

	c.on = 2 * WEIR_MS;
	c.off = 6 * WEIR_MS;
	c.on_off_random = true;
	w = make(&c);
	for (weir_time now = 0; n < PHASES; now += step) {
		CHECK(workload_next(w, now, &io));
		if (!n || io.at > to[n - 1] + step)
			from[n++] = io.at;
		to[n - 1] = io.at;
	}
	workload_free(w);

	c.think = always.think = 30 * WEIR_MS; /* several cycles ahead */
	w = make(&c);
	a = make(&always);
	for (int i = 0; i < N; i++) {
		weir_time now = i * 100 * WEIR_US;
		int j = 0;
		CHECK(workload_next(w, now, &io) && workload_next(a, now, &raw));
		while (j < PHASES && to[j] + step < raw.at)
			j++;
		CHECK(j + 1 < PHASES);
		if (io.at == raw.at) {
			CHECK(io.at >= from[j]);
		} else { /* in the last step of a phase it may be on or off */
			CHECK(io.at == from[j] || (to[j] < raw.at && io.at == from[j + 1]));
			waited++;
		}
	}
	CHECK(waited > N * 0.65 && waited < N * 0.85); /* three in four fall into off */
	workload_free(w);
	workload_free(a);
}

/* ---- shapes */

static void shares_and_sizes(void)
{
	struct workload_config c = plain(WORKLOAD_POISSON);
	struct workload *w;
	struct workload_io io;
	double reads = 0, follow = 0, sizes[3] = {0};
	uint64_t tail = 0;
	const int n = 200000;

	c.reads = 0.67;
	c.sequential = 0.3;
	c.sizes[0] = (struct workload_size){4096, 5};
	c.sizes[1] = (struct workload_size){16384, 3};
	c.sizes[2] = (struct workload_size){131072, 2};
	c.n_sizes = 3;
	w = make(&c);
	for (int i = 0; i < n; i++) {
		CHECK(workload_next(w, 0, &io));
		reads += io.op == 0;
		CHECK(io.op <= 1);
		follow += io.offset == tail;
		tail = io.offset + io.bytes;
		sizes[io.bytes == 4096 ? 0 : io.bytes == 16384 ? 1 : 2]++;
		CHECK(io.bytes == 4096 || io.bytes == 16384 || io.bytes == 131072);
	}
	CHECK_NEAR(reads / n, 0.67, 0.01);
	CHECK_NEAR(follow / n, 0.3, 0.02);
	CHECK_NEAR(sizes[0] / n, 0.5, 0.02);
	CHECK_NEAR(sizes[1] / n, 0.3, 0.02);
	CHECK_NEAR(sizes[2] / n, 0.2, 0.02);
	workload_free(w);
}

static void all_or_nothing_shares(void)
{
	for (int all = 0; all <= 1; all++) {
		struct workload_config c = plain(WORKLOAD_CLOSED);
		struct workload *w;
		struct workload_io io, before;
		c.reads = all;
		c.sequential = all;
		c.region = 1000 * 4096 + 100; /* wraps, and does not end at a block */
		w = make(&c);
		CHECK(workload_next(w, 0, &before));
		for (int i = 0; i < 5000; i++, before = io) {
			CHECK(workload_next(w, 0, &io));
			CHECK_INT(io.op, all ? 0 : 1);
			if (all)
				CHECK_INT(io.offset, (before.offset + 4096) % (1000 * 4096));
		}
		workload_free(w);
	}
}

/* Every IO is inside the region; random ones are at multiples of their size. */
static void check_bounds(uint64_t base, uint64_t region, double zipf, double sequential)
{
	struct workload_config c = plain(WORKLOAD_CLOSED);
	uint64_t low = (base + 511) / 512 * 512, least = UINT64_MAX, most = 0, tail = UINT64_MAX;
	struct workload *w;
	struct workload_io io;

	c.base = base;
	c.region = region;
	c.zipf = zipf;
	c.sequential = sequential;
	c.sizes[1] = (struct workload_size){65536, 1};
	c.sizes[2] = (struct workload_size){1000, 1};
	c.sizes[3] = (struct workload_size){512, 1};
	c.n_sizes = 4;
	w = make(&c);
	for (int i = 0; i < 20000; i++) {
		uint64_t unit;
		CHECK(workload_next(w, 0, &io));
		CHECK(io.offset >= base && io.offset + io.bytes <= base + region);
		unit = (io.bytes + 511) / 512 * 512;
		CHECK(io.offset % 512 == 0);
		CHECK((io.offset - low) % unit == 0 || io.offset == tail || io.offset == low);
		tail = (io.offset + io.bytes + 511) / 512 * 512;
		least = io.offset < least ? io.offset : least;
		most = io.offset + io.bytes > most ? io.offset + io.bytes : most;
	}
	CHECK(least - low <= region / 100); /* and the whole region is used */
	CHECK(base + region - most <= region / 100 + 512 || zipf > 0);
	workload_free(w);
}

static void offsets_stay_in_the_region(void)
{
	check_bounds(0, GIB, 0, 0);
	check_bounds(0, 65536, 0, 0.5);
	check_bounds(5 * GIB + 512, 1000000, 0, 0.9);
	check_bounds(12345, 12345678, 0, 0);
	check_bounds(0, GIB, 0.99, 0);
	check_bounds(777 * 512, 10000001, 1.2, 0.4);
	check_bounds(UINT64_MAX - GIB, GIB, 0, 0.1);
}

/* The sorted hits per block follow Zipf's law; hot blocks are not neighbours; and two workloads on
 * one region have the same hot blocks. */
static void zipf_is_skewed_scattered_and_shared(void)
{
	enum { BLOCKS = 1000, N = 200000 };
	static double hits[2][BLOCKS];
	struct workload_config c = plain(WORKLOAD_POISSON);
	double total = 0;

	c.region = BLOCKS * 4096;
	c.zipf = 0.99;
	for (int seed = 0; seed < 2; seed++) {
		struct workload *w;
		struct workload_io io;
		CHECK_INT(workload_new(&c, (uint64_t)seed, "z", &w, NULL), 0);
		for (int i = 0; i < N; i++) {
			CHECK(workload_next(w, 0, &io));
			CHECK(io.offset % 4096 == 0 && io.offset < c.region);
			hits[seed][io.offset / 4096]++;
		}
		workload_free(w);
	}
	for (int k = 1; k <= BLOCKS; k++)
		total += pow(k, -0.99);
	int previous = -1000;
	for (int rank = 1; rank <= 10; rank++) {
		int hot = 0;
		for (int i = 1; i < BLOCKS; i++)
			hot = hits[0][i] > hits[0][hot] ? i : hot;
		CHECK_NEAR(hits[0][hot] / N, pow(rank, -0.99) / total, 0.06);
		CHECK_NEAR(hits[1][hot], hits[0][hot], 0.08);
		CHECK(abs(hot - previous) > BLOCKS / 50);
		previous = hot;
		hits[0][hot] = 0;
	}
	for (int i = 0; i < BLOCKS; i++)
		CHECK(hits[1][i] > 0); /* a permutation: every block has a rank */
}

/* ---- repeatability */

static void same_seed_same_ios(void)
{
	struct workload_config c = plain(WORKLOAD_HYPER);
	struct workload *a, *b, *other;
	struct workload_io x, y, z;
	int differ = 0;

	c.ca2 = 9;
	c.reads = c.sequential = 0.5;
	c.zipf = 1.1;
	c.on = c.off = WEIR_SEC;
	c.on_off_random = true;
	CHECK_INT(workload_new(&c, 5, "one", &a, NULL), 0);
	CHECK_INT(workload_new(&c, 5, "one", &b, NULL), 0);
	CHECK_INT(workload_new(&c, 5, "two", &other, NULL), 0);
	for (int i = 0; i < 10000; i++) {
		CHECK(workload_next(a, 0, &x) && workload_next(b, 99, &y));
		CHECK(x.at == y.at && x.offset == y.offset && x.bytes == y.bytes && x.op == y.op);
		CHECK(workload_next(other, 0, &z));
		differ += z.at != x.at && z.offset != x.offset;
	}
	CHECK(differ > 9000);
	workload_free(a);
	workload_free(b);
	workload_free(other);
}

static void shape_does_not_shift_arrivals(void)
{
	struct workload_config c = plain(WORKLOAD_POISSON);
	struct workload *a, *b;
	struct workload_io x, y;

	a = make(&c);
	c.reads = 0.2;
	c.zipf = 1;
	c.sizes[0].bytes = 65536;
	b = make(&c);
	for (int i = 0; i < 1000; i++) {
		CHECK(workload_next(a, 0, &x) && workload_next(b, 0, &y));
		CHECK_INT(x.at, y.at);
	}
	workload_free(a);
	workload_free(b);
}

/* ---- traces */

static struct trace_record records[] = {
	{0, 0, 4096, 0, 0},
	{WEIR_MS, 3 * GIB + 4096, 8192, 0, 1},
	{WEIR_MS, GIB - 512, 4096, 0, 1}, /* folded, it would extend beyond the end */
	{5 * WEIR_MS + 1, 8192, 512, 1, 3},
	{9 * WEIR_MS, 0, 0, 0, 2},
};
static struct trace trace = {.records = records, .n = 5, .has_offsets = true};

static void traces_replay_at_their_speed(void)
{
	static const weir_time half[] = {0, 500000, 500000, 2500001, 4500000};
	struct workload_config c = plain(WORKLOAD_TRACE);
	struct workload *w;
	struct workload_io io;

	c.trace = &trace;
	c.base = GIB;
	c.start = 2 * WEIR_SEC;
	c.n_sizes = 0;
	for (int speed = 0; speed <= 2; speed++) { /* 0 counts as 1 */
		c.speed = speed;
		w = make(&c);
		for (int i = 0; i < 5; i++) {
			CHECK(workload_next(w, 0, &io));
			CHECK_INT(io.at, c.start + (speed == 2 ? half[i] : records[i].at));
			CHECK_INT(io.bytes, records[i].bytes);
			CHECK_INT(io.op, records[i].op);
			CHECK_INT(io.offset - GIB, i == 1   ? 4096
						   : i == 2 ? GIB - 4096
							    : records[i].offset);
		}
		CHECK(!workload_next(w, 0, &io));
		CHECK(!workload_next(w, 0, &io));
		workload_free(w);
	}
}

static void folded_offsets_stay_aligned(void)
{
	struct workload_config c = plain(WORKLOAD_TRACE);
	struct workload *w;
	struct workload_io io;

	c.trace = &trace;
	c.base = 4096;
	c.region = 10000; /* 19 sectors and some bytes */
	w = make(&c);
	for (int i = 0; i < 5; i++) {
		uint64_t place = records[i].offset % (19 * 512), most = 10000 - records[i].bytes;
		CHECK(workload_next(w, 0, &io));
		CHECK_INT(io.offset - 4096, place <= most ? place : most / 512 * 512);
		CHECK_INT(io.offset % 512, 0);
	}
	workload_free(w);
}

static void traces_loop_and_stop(void)
{
	struct workload_config c = plain(WORKLOAD_TRACE);
	struct workload *w;
	struct workload_io io;
	const weir_time period = 9 * WEIR_MS + 9 * WEIR_MS / 4; /* a mean gap after the last */
	int n = 0;

	c.trace = &trace;
	c.loop = true;
	c.speed = 0.5;
	c.stop = 400 * period;
	w = make(&c);
	for (; workload_next(w, 0, &io); n++) {
		CHECK_INT(io.at, 2 * (n / 5 * period + records[n % 5].at));
		CHECK_INT(io.bytes, records[n % 5].bytes);
	}
	CHECK_INT(n, 1000);
	workload_free(w);
}

static void traces_take_on_and_off(void)
{
	struct workload_config c = plain(WORKLOAD_TRACE);
	struct workload *w;
	struct workload_io io;
	static const weir_time want[] = {0, 1000000, 1000000, 25000001, 49000000};

	c.trace = &trace;
	c.on = 2 * WEIR_MS;
	c.off = 10 * WEIR_MS;
	w = make(&c);
	for (int i = 0; i < 5; i++) {
		CHECK(workload_next(w, 0, &io));
		CHECK_INT(io.at, want[i]);
	}
	workload_free(w);
}

static void traces_without_offsets_get_some(void)
{
	struct trace bare = trace;
	struct workload_config c = plain(WORKLOAD_TRACE);
	struct workload *w;
	struct workload_io io;
	uint64_t tail = UINT64_MAX;
	double follow = 0, chances = 0;

	bare.has_offsets = false;
	c.trace = &bare;
	c.loop = true;
	c.sequential = 0.6;
	c.base = 3 * GIB;
	w = make(&c);
	for (int i = 0; i < 50000; i++) {
		CHECK(workload_next(w, 0, &io));
		CHECK(io.offset >= 3 * GIB && io.offset + io.bytes <= 4 * GIB);
		CHECK_INT(io.op, records[i % 5].op);
		if (io.op == 2) /* a flush has no place and breaks no run */
			continue;
		follow += io.offset == tail;
		chances++;
		tail = io.offset + io.bytes;
	}
	CHECK_NEAR(follow / chances, 0.6, 0.02);
	workload_free(w);
}

/* ---- invalid configurations; the message begins with the field or fields */

static void refused(struct workload_config c, const char *field)
{
	struct workload *w = (struct workload *)&c;
	struct weir_err err = {""};

	CHECK_INT(workload_new(&c, 1, "bad", &w, &err), -EINVAL);
	CHECK(w == (struct workload *)&c); /* outputs only on success */
	if (strncmp(err.text, field, strlen(field)) || !strchr(":,", err.text[strlen(field)]))
		FAIL("\"%s\" does not name %s", err.text, field);
	CHECK_INT(workload_new(&c, 1, "bad", &w, NULL), -EINVAL);
}

#define REFUSED(kind, member, value, name)                                                         \
	do {                                                                                       \
		struct workload_config c_ = plain(kind);                                           \
		c_.trace = &trace;                                                                 \
		c_.member = value;                                                                 \
		refused(c_, name);                                                                 \
	} while (0)

static void errors_name_the_field(void)
{
	struct trace empty = {0}, instant = {.records = records, .n = 1};
	struct workload_config c = plain(WORKLOAD_TRACE);

	REFUSED((enum workload_arrivals)9, reads, 1, "arrivals");
	REFUSED(WORKLOAD_CLOSED, outstanding, 0, "outstanding");
	REFUSED(WORKLOAD_CLOSED, think, -1, "think");
	REFUSED(WORKLOAD_POISSON, rate, 0, "rate");
	REFUSED(WORKLOAD_UNIFORM, rate, -1, "rate");
	REFUSED(WORKLOAD_HYPER, rate, (double)NAN, "rate");
	REFUSED(WORKLOAD_POISSON, rate, 1e10, "rate");
	REFUSED(WORKLOAD_POISSON, rate_end, -1, "rate_end");
	REFUSED(WORKLOAD_POISSON, rate_end, (double)INFINITY, "rate_end");
	REFUSED(WORKLOAD_POISSON, rate_end, 5, "stop"); /* a ramp without an end */
	REFUSED(WORKLOAD_HYPER, ca2, 0.5, "ca2");
	REFUSED(WORKLOAD_HYPER, ca2, (double)NAN, "ca2");
	REFUSED(WORKLOAD_BURSTS, ca2, 1, "ca2");
	REFUSED(WORKLOAD_BURSTS, peak, 1000, "peak"); /* the rate */
	REFUSED(WORKLOAD_BURSTS, burst, 0, "burst");
	REFUSED(WORKLOAD_BURSTS, rate_end, 5, "stop");
	REFUSED(WORKLOAD_CLOSED, on, WEIR_SEC, "off");
	REFUSED(WORKLOAD_CLOSED, off, WEIR_SEC, "on");
	REFUSED(WORKLOAD_CLOSED, on, -1, "on");
	REFUSED(WORKLOAD_CLOSED, start, -1, "start");
	REFUSED(WORKLOAD_CLOSED, stop, -1, "stop");
	REFUSED(WORKLOAD_CLOSED, n_sizes, 0, "sizes");
	REFUSED(WORKLOAD_CLOSED, n_sizes, 9, "sizes");
	REFUSED(WORKLOAD_CLOSED, n_sizes, 2, "sizes[1]");
	REFUSED(WORKLOAD_CLOSED, sizes[0].share, 0, "sizes");
	REFUSED(WORKLOAD_CLOSED, sizes[0].share, -1, "sizes[0].share");
	REFUSED(WORKLOAD_CLOSED, reads, 1.01, "reads");
	REFUSED(WORKLOAD_CLOSED, sequential, -0.1, "sequential");
	REFUSED(WORKLOAD_CLOSED, sequential, (double)NAN, "sequential");
	REFUSED(WORKLOAD_CLOSED, zipf, -1, "zipf");
	REFUSED(WORKLOAD_CLOSED, region, 4095, "region");
	REFUSED(WORKLOAD_CLOSED, base, UINT64_MAX - 4096, "region");
	REFUSED(WORKLOAD_TRACE, trace, NULL, "trace");
	REFUSED(WORKLOAD_TRACE, trace, &empty, "trace");
	REFUSED(WORKLOAD_TRACE, speed, -2, "speed");
	REFUSED(WORKLOAD_TRACE, region, 8191, "region"); /* its largest is 8192 */
	c.trace = &instant;
	c.loop = true;
	refused(c, "loop");
	c = plain(WORKLOAD_CLOSED);
	c.on = 5;
	c.off = WEIR_SEC;
	refused(c, "on");
	c.start = c.stop = 7;
	refused(c, "stop");
	workload_free(NULL);
}

int main(void)
{
	RUN(poisson_has_its_rate_and_ca2);
	RUN(hyper_has_its_rate_and_ca2);
	RUN(bursts_have_their_rate_ca2_and_peak);
	RUN(uniform_is_exact);
	RUN(stops_for_good);
	RUN(ramps_have_exact_counts);
	RUN(fixed_phases_bound_an_open_process);
	RUN(time_stands_still_while_off);
	RUN(rare_arrivals_skip_many_phases);
	RUN(random_phases_have_their_means);
	RUN(a_ramp_goes_on_while_off);
	RUN(closed_issues_at_once_then_thinks);
	RUN(closed_stops);
	RUN(closed_waits_for_the_next_fixed_phase);
	RUN(closed_keeps_to_random_phases);
	RUN(shares_and_sizes);
	RUN(all_or_nothing_shares);
	RUN(offsets_stay_in_the_region);
	RUN(zipf_is_skewed_scattered_and_shared);
	RUN(same_seed_same_ios);
	RUN(shape_does_not_shift_arrivals);
	RUN(traces_replay_at_their_speed);
	RUN(folded_offsets_stay_aligned);
	RUN(traces_loop_and_stop);
	RUN(traces_take_on_and_off);
	RUN(traces_without_offsets_get_some);
	RUN(errors_name_the_field);
	return 0;
}
