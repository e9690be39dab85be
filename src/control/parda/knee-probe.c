/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own; PARDA (FAST 2009, §3.2) names finding its threshold as future work. The bound is
 *         the asymptotic one of closed networks (Denning and Buzen, Computing Surveys 10(3), 1978).
 * LAW     With N requests inside a read takes L(N) = max(a + bN, N / X): on an array that is not
 *         busy its own queues make it longer; beyond that it takes as long as N requests at X, the
 *         most per second. The knee is where p of X is reached: N* = p a X / (1 − p b X),
 *         L* = N* / (p X).
 *         The two meet at C = a X / (1 − b X) requests, the most that the resource works on: any
 *         more wait in front of it, all of them, for (N − C) / X. So even the quickest reads
 *         take Q(N) = v + w min(N, C) + max(0, N − C) / X.
 * SYMBOLS N reads inside; X per second; L, Q, a, b, v, w ns; p a part, 0.95. c = a X, requests, and
 *         u = b X, 0 … 1, for the fit: C = c / (1 − u).
 * METHOD  The first burst, or few, climb from four reads inside by doubling, until twice as many
 *         add next to nothing. Then each burst has a level near the knee, in turns 0.6 of it and
 *         the knee itself, and one beyond, for X. The order changes from burst to burst: random
 *         reads need longer than a burst to load disks as unevenly as they do in the long run, so
 *         that a burst that begins with few reads inside measures too much throughput, and one that
 *         comes from more too little. Half as many reads as are inside complete before any counts;
 *         the rate is that from one to the last. The mean over groups of reads of the quickest of
 *         each group is Q: it shifts by exactly the wait that all have, and hardly depends on the
 *         long waits of some. Reads that are sent before the end count even if they complete after
 *         it. Rates and Q are kept by level, four bins an octave; a burst that is older by HALF
 *         bursts counts half.
 *         The fit is by least squares of the logarithms of the rates, weighted by reads, and of Q
 *         relative to N / X, weighted by groups, over a grid of c and u; X, v and w follow from
 *         each. If u is nearer to 1 than U_MOST, the most was not observed: the knee is then that
 *         of U_MOST. O(grid × bins) a burst: some milliseconds.
 *         Near the knee 20 % more reads inside add 3 % to the throughput, and some thousand reads
 *         measure a throughput by 2 %: rates alone give the knee within 20 % in 8 of 10 runs of six
 *         bursts with 3,500 reads a second. Q gives C by some per cent, and N* follows from C and a
 *         rough u: all of 40 runs, and 9 of 10 with 1,300 reads a second. Where the queues of the
 *         disks at the knee are so long that they need longer than a burst to become as uneven as
 *         they stay (a knee of more than about 30 ms, or disks with hardly more throughput than
 *         the bottleneck in front of them), the knee is found too low, by 15 to 40 %.
 * DIFFERS From control/parda/knee.c, which only assumes that the curve does not fall, and needs
 *         each of its intervals to be exact by 1 %. A burst of some hundred reads is exact by 3 %:
 *         that takes a curve with few parameters.
 * EXAMPLE Ten disks: a = 2.7 ms, b = 0.25 ms, X = 3460: 95 % are reached with 49 inside, which take
 *         15 ms; C is 68.
 */
#include "control/parda/knee-probe.h"
#include <math.h>

#define PART        0.95
#define HALF        16.0 /* bursts: three minutes, if there is time for all of them */
#define CLIMB_FROM  4
#define CLIMB_READS 16   /* counted reads of a phase of the climb */
#define FLAT        1.1  /* times the rate of half the level: less is next to nothing */
#define BEYOND      1.8  /* times the reads at the knee: where X is measured, … */
#define BEYOND_PART 0.35 /* … for that part of a burst, … */
#define SHORT_PART  0.12 /* … or for less; … */
#define NEAR_PART   0.5  /* … or after the level near the knee, for that part */
#define LOWER       0.6  /* part of the reads at the knee: the other level near it */
#define LENGTH      0.95 /* part of a burst's time that is planned: the rest is for the last reads, … */
#define LATE        1.7 /* … each of which may take so many times the longest so far */
#define FEW         8   /* reads of a phase that count */
#define GROUP       16  /* reads of which the quickest is taken; … */
#define GROUP_SMALL 8   /* … at levels … */
#define SMALL       32  /* … below this */
#define GROUP_READS 10  /* weight of a group in the fit, in reads */
#define U_STEPS     40
#define FINER       5 /* of both steps, around the best */
#define U_MOST      0.95
#define U_LEFT      1e-3 /* least 1 − u */
#define C_LEAST     0.25
#define C_STEP      1.12
#define C_STEPS     74 /* up to a thousand */

void probe_init(struct probe *p, double latency_most, weir_time burst)
{
	*p = (struct probe){
		.part = PART, .latency_most = latency_most, .burst = burst, .climb = CLIMB_FROM};
}

/* ---- a burst */

static uint32_t whole(double level)
{
	return (uint32_t)fmax(1, fmin(level + 0.5, PROBE_MOST));
}

/* Reads must complete within a third of a burst, and sooner than the largest allowed latency. */
static double latency_bound(const struct probe *p)
{
	return fmin(p->latency_most, (double)p->burst / 3);
}

static void add_phase(struct probe_burst *b, double level, double part, uint32_t enough)
{
	b->phases[b->n++] = (struct probe_phase){.level = whole(level),
		.skip = whole(level) / 2,
		.enough = enough,
		.length = (weir_time)(part * (double)b->length)};
}

/* Plan a level near the knee and one beyond, in either order: a burst that comes from more inside
 * leaves some disks with more work than others, one that comes from less leaves all alike, and
 * neither is as in the long run. */
static void plan_pair(const struct probe *p, struct probe_burst *ret)
{
	double beyond = fmax(2, fmin(BEYOND * p->inside, latency_bound(p) * p->rate / 1e9));
	double near = fmin(p->bursts % 2 ? p->inside : LOWER * p->inside, beyond);

	if (p->bursts % 3 == 2) {
		add_phase(ret, near, NEAR_PART, 0);
		add_phase(ret, beyond, 1, 0);
		return;
	}
	add_phase(ret, beyond, p->bursts % 3 ? SHORT_PART : BEYOND_PART, 0);
	add_phase(ret, near, 1, 0);
}

void probe_plan(const struct probe *p, struct probe_burst *ret)
{
	*ret = (struct probe_burst){
		.length = (weir_time)(LENGTH * (double)p->burst), .bound = latency_bound(p)};
	for (double n = p->climb; n > 0 && ret->n < PROBE_PHASES && n <= PROBE_MOST; n *= 2)
		add_phase(ret, n, 1, CLIMB_READS);
	if (ret->n == 0)
		plan_pair(p, ret);
	if (p->rate > 0)
		ret->latency = (weir_time)(ret->phases[0].level / p->rate * 1e9);
}

void probe_burst_start(struct probe_burst *b, weir_time now)
{
	b->started = b->since = now;
}

static bool too_late(const struct probe_burst *b, weir_time now)
{
	return (double)(now - b->started) + LATE * (double)b->latency >= (double)b->length;
}

static bool phase_over(const struct probe_burst *b, weir_time now)
{
	const struct probe_phase *f = &b->phases[b->at];

	return now - b->since >= f->length || (f->enough && f->done >= f->enough);
}

static bool counts(const struct probe_phase *f)
{
	return f->done >= FEW && f->last > f->first;
}

static double rate_of(const struct probe_phase *f)
{
	return f->done * 1e9 / (double)(f->last - f->first);
}

/* Return true if more reads would take too long, at the rate of this phase. */
static bool too_many(const struct probe_burst *b)
{
	const struct probe_phase *f = &b->phases[b->at];
	uint32_t next = f[1].level;

	return f->enough && counts(f) && next / rate_of(f) * 1e9 > b->bound;
}

/* Reads take longer with more inside, about in proportion. */
static void next_phase(struct probe_burst *b, weir_time now)
{
	b->since = b->phases[b->at].until = now;
	if (b->at + 1 == b->n || too_many(b)) {
		b->over = b->complete = true;
		return;
	}
	b->at++;
	b->latency = b->latency * b->phases[b->at].level / b->phases[b->at - 1].level;
}

uint32_t probe_burst_more(struct probe_burst *b, weir_time now)
{
	uint32_t more;

	if (!b->over && phase_over(b, now))
		next_phase(b, now);
	if (!b->over && too_late(b, now)) { /* reads sent now must complete in time */
		b->over = b->complete = true;
		b->phases[b->at].until = now;
	}
	if (b->over || b->inside >= b->phases[b->at].level)
		return 0;
	more = b->phases[b->at].level - b->inside;
	b->inside += more;
	return more;
}

static void count_latency(struct probe_phase *f, weir_time sent, weir_time latency)
{
	if (!f->first || sent < f->first || (f->until && sent >= f->until))
		return;
	if (f->in_group == 0 || latency < f->quickest)
		f->quickest = latency;
	if (++f->in_group < (f->level < SMALL ? GROUP_SMALL : GROUP))
		return;
	f->in_group = 0;
	f->groups++;
	f->quick_ns += (double)f->quickest;
}

void probe_burst_done(struct probe_burst *b, weir_time now, weir_time latency)
{
	struct probe_phase *f = &b->phases[b->at];
	/* Not after the end, nor while reads of an earlier, higher level are inside. */
	bool counts = !b->over && b->inside <= f->level;

	/* After a burst that was cut short other requests are inside. */
	for (unsigned i = 0; i <= b->at && (!b->over || b->complete); i++)
		count_latency(&b->phases[i], now - latency, latency);
	b->inside--;
	b->latency = latency > b->latency ? latency : b->latency;
	if (!counts)
		return;
	if (f->skip) {
		f->skip--;
		return;
	}
	if (!f->first)
		f->first = now;
	else
		f->done++;
	f->last = now;
}

/* ---- what it says */

static void fade(struct probe *p)
{
	double kept = exp2(-1 / HALF);

	for (int i = 0; i < PROBE_BINS; i++) {
		p->bins[i].ns *= kept;
		p->bins[i].done *= kept;
		p->bins[i].inside_ns *= kept;
		p->bins[i].groups *= kept;
		p->bins[i].quick_ns *= kept;
	}
}

static void add(struct probe *p, const struct probe_phase *f)
{
	int place = (int)(log2(f->level) * PROBE_OCTAVE + 0.5);
	struct probe_bin *bin = &p->bins[place < PROBE_BINS ? place : PROBE_BINS - 1];

	bin->ns += (double)(f->last - f->first);
	bin->done += f->done;
	bin->inside_ns += (double)(f->last - f->first) * f->level;
	bin->groups += f->groups;
	bin->quick_ns += f->quick_ns;
}

/* Continue the climb from the last measured level, or end it. */
static void climb(struct probe *p, const struct probe_burst *b)
{
	double before = 0, most = latency_bound(p);
	unsigned flat = 0;

	for (unsigned i = 0; i < b->n && flat < 2 && counts(&b->phases[i]); i++) {
		double level = b->phases[i].level, rate = rate_of(&b->phases[i]);

		flat = before > 0 && rate < FLAT * before ? flat + 1 : 0;
		if (2 * level / rate * 1e9 > most || 2 * level > PROBE_MOST)
			flat = 2;
		before = rate;
		p->climb = 2 * level;
	}
	if (flat == 2)
		p->climb = 0;
}

/* Return the error of least squares of the quickest reads, relative to N / X, with `most` requests
 * that the resource works on: of the line v + w min(N, most), w ≥ 0, less the wait beyond. */
static double quick_error(const struct probe *p, double most, double rate)
{
	double weight = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

	for (int i = 0; i < PROBE_BINS; i++) {
		const struct probe_bin *b = &p->bins[i];
		double n, at, quick, w;

		if (b->groups < 0.5)
			continue;
		n = b->inside_ns / b->ns;
		at = fmin(n, most);
		quick = b->quick_ns / b->groups * rate / 1e9 - (n - at);
		w = b->groups / (n * n);
		weight += w;
		x += w * at;
		y += w * quick;
		xx += w * at * at;
		xy += w * at * quick;
		yy += w * quick * quick;
	}
	if (!(weight > 0))
		return 0;
	xx -= x * x / weight;
	xy -= x * y / weight;
	yy -= y * y / weight;
	return xx > 0 && xy > 0 ? yy - xy * xy / xx : yy;
}

/* Return the error of least squares for given c and u; set X. */
static double error_of(const struct probe *p, double c, double u, double *ret_rate)
{
	double weight = 0, sum = 0, squares = 0;

	for (int i = 0; i < PROBE_BINS; i++) {
		const struct probe_bin *b = &p->bins[i];
		double n, off;

		if (b->done < 1)
			continue;
		n = b->inside_ns / b->ns;
		off = log(b->done / b->ns * 1e9) - log(fmin(1, n / (c + u * n)));
		weight += b->done;
		sum += b->done * off;
		squares += b->done * off * off;
	}
	if (!(weight > 0))
		return INFINITY;
	*ret_rate = exp(sum / weight);
	return squares - sum * sum / weight +
	       GROUP_READS * quick_error(p, c / fmax(1 - u, U_LEFT), *ret_rate);
}

struct best {
	double c, u, rate, error;
};

static void try(const struct probe *p, double c, double u, struct best *best)
{
	struct best it = {.c = c, .u = u};

	it.error = error_of(p, c, u, &it.rate);
	if (it.error < best->error)
		*best = it;
}

static struct best find_best(const struct probe *p)
{
	struct best best = {.error = INFINITY}, rough;

	for (int i = 0; i < C_STEPS; i++)
		for (int k = 0; k <= U_STEPS; k++)
			try(p, C_LEAST * pow(C_STEP, i), (double)k / U_STEPS, &best);
	rough = best;
	for (int i = -FINER; i <= FINER; i++)
		for (int k = -FINER; k <= FINER; k++)
			try(p, rough.c * pow(C_STEP, (double)i / FINER),
				fmax(0, fmin(1, rough.u + (double)k / (FINER * U_STEPS))), &best);
	return best;
}

static void fit(struct probe *p)
{
	struct best best = find_best(p);

	if (!isfinite(best.error))
		return;
	p->rate = best.rate;
	p->inside = fmax(1, p->part * best.c / (1 - p->part * fmin(best.u, U_MOST)));
	if (p->climb == 0 && p->bursts >= PROBE_ENOUGH)
		p->knee = fmin(p->inside / (p->part * p->rate) * 1e9, p->latency_most);
}

void probe_learn(struct probe *p, const struct probe_burst *b)
{
	bool climbing = p->climb > 0, any = false;

	for (unsigned i = 0; i < b->n; i++)
		any |= counts(&b->phases[i]);
	if (!any)
		return;
	fade(p);
	for (unsigned i = 0; i < b->n; i++)
		if (counts(&b->phases[i]))
			add(p, &b->phases[i]);
	p->bursts += !climbing;
	fit(p);
	if (climbing)
		climb(p, b);
}
