/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workload: the IOs of one client and their times.
 *
 * SOURCE   Renewal processes in operational time (e.g. Çinlar, Introduction to Stochastic
 *          Processes, ch. 4); balanced-means H2: W. Whitt, Approximating a point process by a
 *          renewal process (1982); CA² as the measure of burstiness: PriorityMeister §6.2.
 *
 * LAW      Open arrivals are the points t_k with Λ(t_k) = S_k, where Λ(t) is the integral of the
 *          rate over the on-phases of [start, t], and S_k a sum of gaps with mean 1: exponential
 *          (Poisson), hyper-exponential, or 1 (uniform, the first at start). So the process does not
 *          advance while it is off, and a ramp is exact: Λ is inverted, nothing is thinned. A trace
 *          is the same with its own gaps, divided by the speed.
 *
 *          H2 with balanced means: an exponential of rate λ1 = 2pλ with probability p, else of rate
 *          λ2 = 2(1−p)λ. Each branch gives half of the mean: p/λ1 = (1−p)/λ2 = 1/(2λ). Then
 *            E[X²] = 2p/λ1² + 2(1−p)/λ2² = (1/p + 1/(1−p)) / (2λ²) = 1 / (2λ² p(1−p))
 *            CA²   = E[X²]λ² − 1 = 1/(2p(1−p)) − 1,  so  p(1−p) = 1 / (2(CA²+1)),
 *            p     = (1 + √((CA²−1)/(CA²+1))) / 2.
 *
 *          Bursts: m = peak × burst gaps of 1/P (P the peak), then k exponential ones with mean 1/q,
 *          again and again; the first IO is somewhere in such a cycle. k/q = (m/P)(P−λ)/(λ−q) makes
 *          the mean gap 1/λ, and
 *            CA² + 1 = λ² (m/P² + 2k/q²) / (m + k) = λ [(λ−q)/P + 2(P−λ)/q] / (P−q)
 *          whatever m is; so q is the smaller root of, with c = CA² + 1,
 *            (cP − λ) q² − (cP² − λ²) q + 2λP(P−λ) = 0.
 *          CA² = 1 is q = λ; a larger one has fewer IOs between the bursts. k need not be whole: the
 *          fraction is carried to the next cycle.
 *
 *          Over an on-phase that begins at rate λ and rises by m per unit of time, a gap g takes x
 *          with λx + mx²/2 = g, that is x = 2g/(λ + √(λ² + 2mg)), which does not cancel.
 *
 *          Zipf: rank k is block k·a mod n, with a next to 0.618 n and coprime to n: a fixed
 *          permutation, the same for all workloads of the region, that keeps hot blocks far apart.
 *
 * SYMBOLS  pos     position of the process, whole ns after start; `part` of a ns beyond, so that
 *                  rounding errors do not accumulate over a long run
 *          end     ns after start at which it stops
 *          tail    end of the previous IO, bytes from `low`
 *          unit    an IO's size rounded up to 512: its offset is a multiple of it
 *
 * METHOD   O(1) per IO, and O(phases) if phases are random or the rate ramps; fixed phases at a
 *          constant rate are skipped by division. Three streams (arrivals, phases, shape): changing
 *          the shape does not change the times.
 *
 * EXAMPLE  CA² = 20, 100 IOs/s: p = 0.9756; 97.6 % of the gaps have a mean of 5.12 ms, the others
 *          of 205 ms.
 */
#include "base/no-memory.h"
#include "base/divisor.h"
#include "model/workload-impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 workload_u128;

#define SECTOR   512u /* bytes: the smallest addressable unit */
#define OP_READ  0    /* enum weir_op's values */
#define OP_WRITE 1
#define OP_FLUSH 2

struct phase { /* one on-phase and the off-phase after it; ns after start, cut at `end` */
	struct rng rng;
	weir_time on_from, off_from, next_on;
};

struct workload {
	struct workload_config c;
	struct rng arrivals, shape;
	struct phase phase;
	weir_time end;
	weir_time pos;
	double part;
	bool ramp, over;               /* open: the rate changes; no more arrivals */
	double gap_ns;                 /* of a gap of 1 at a constant rate */
	double rate, slope;            /* ramp: 1/ns at start, 1/ns² */
	double branch;                 /* HYPER: p */
	double quiet_gap;              /* BURSTS: λ/q */
	double quiet_gaps;             /* BURSTS: k */
	double burst_left, quiet_left; /* BURSTS: gaps of this cycle to come; < 1: none */
	uint64_t issued;               /* IOs generated so far */
	size_t index;                  /* TRACE: the next record */
	double loop_gap;               /* TRACE: ns from its last record to its first again */
	uint64_t low, len;             /* the region in whole sectors */
	uint64_t tail;
	uint64_t block, n_blocks, stride; /* ZIPF: bytes, how many, a */
	struct rng_zipf zipf;
	double up_to[8]; /* size mix: cumulative shares */
};

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + SECTOR - 1) / SECTOR * SECTOR;
}

static uint64_t unit_of(uint32_t bytes)
{
	return bytes ? round_up(bytes) : SECTOR;
}

/* ---- on-off phases */

static weir_time phase_length(const struct workload *w, struct phase *p, weir_time mean)
{
	double x = w->c.on_off_random ? rng_exp(&p->rng, (double)mean) : (double)mean;

	return x < 1 ? 1 : (weir_time)llround(x);
}

static void phase_begin(const struct workload *w, struct phase *p, weir_time at)
{
	p->on_from = at;
	p->off_from = at + phase_length(w, p, w->c.on);
	p->next_on = p->off_from + phase_length(w, p, w->c.off);
	p->off_from = p->off_from < w->end ? p->off_from : w->end;
	p->next_on = p->next_on < w->end ? p->next_on : w->end;
}

static void phase_first(struct workload *w)
{
	if (w->c.on)
		phase_begin(w, &w->phase, 0);
	else
		w->phase.off_from = w->phase.next_on = w->end;
}

/* Advance to the cycle that contains `at`, or stay if that is in the past. */
static void phase_seek(const struct workload *w, struct phase *p, weir_time at)
{
	weir_time cycle = w->c.on + w->c.off;

	at = at < w->end ? at : w->end - 1;
	if (at < p->next_on)
		return;
	if (!w->c.on_off_random) {
		phase_begin(w, p, p->on_from + (at - p->on_from) / cycle * cycle);
		return;
	}
	while (at >= p->next_on)
		phase_begin(w, p, p->next_on);
}

/* ---- set-up */

static void setup_shape(struct workload *w)
{
	double total = 0, so_far = 0;

	for (unsigned i = 0; i < w->c.n_sizes; i++)
		total += w->c.sizes[i].share;
	for (unsigned i = 0; i < w->c.n_sizes; i++)
		w->up_to[i] = (so_far += w->c.sizes[i].share) / total;
	w->tail = UINT64_MAX; /* no IO to follow yet */
	if (!(w->c.zipf > 0))
		return;
	w->block = unit_of(w->c.n_sizes ? w->c.sizes[0].bytes : 4096);
	w->n_blocks = w->len / w->block ? w->len / w->block : 1;
	/* 2⁶⁴ times the fractional part of the golden ratio. */
	w->stride = (uint64_t)((workload_u128)w->n_blocks * UINT64_C(0x9e3779b97f4a7c15) >> 64);
	while (common_divisor(w->stride, w->n_blocks) != 1)
		w->stride++;
	rng_zipf_init(&w->zipf, w->n_blocks, w->c.zipf);
}

static double burst_gaps(const struct workload_config *c)
{
	double n = round(c->peak * (double)c->burst / 1e9);

	return n < 1 ? 1 : n;
}

static void setup_bursts(struct workload *w)
{
	double rate = w->c.rate, peak = w->c.peak, c = w->c.ca2 + 1;
	double a = c * peak - rate, b = c * peak * peak - rate * rate;
	double quiet = 4 * rate * peak * (peak - rate) /
		       (b + sqrt(fmax(b * b - 8 * a * rate * peak * (peak - rate), 0)));
	double at;

	w->quiet_gap = rate / quiet;
	w->quiet_gaps = burst_gaps(&w->c) / peak * (peak - rate) / (rate - quiet) * quiet;
	at = rng_double(&w->arrivals) * (burst_gaps(&w->c) + w->quiet_gaps);
	w->burst_left = fmax(burst_gaps(&w->c) - at, 0);
	w->quiet_left = w->quiet_gaps - fmax(at - burst_gaps(&w->c), 0);
}

static void setup_arrivals(struct workload *w)
{
	const struct workload_config *c = &w->c;

	w->ramp = c->rate_end > 0 && c->arrivals != WORKLOAD_TRACE;
	if (c->arrivals == WORKLOAD_TRACE) {
		const struct trace *t = c->trace;
		w->gap_ns = c->speed > 0 ? 1 / c->speed : 1; /* gaps are in ns of the trace */
		if (c->loop) /* one more mean gap after the last; a loop has at least two records */
			w->loop_gap = (double)t->records[t->n - 1].at / (double)(t->n - 1);
	} else if (w->ramp) {
		w->rate = c->rate / 1e9;
		w->slope = (c->rate_end - c->rate) / 1e9 / (double)(c->stop - c->start);
	} else if (c->rate > 0) {
		w->gap_ns = 1e9 / c->rate;
	}
	if (c->arrivals == WORKLOAD_HYPER)
		w->branch = (1 + sqrt((c->ca2 - 1) / (c->ca2 + 1))) / 2;
	if (c->arrivals == WORKLOAD_BURSTS)
		setup_bursts(w);
}

int workload_new(const struct workload_config *config, uint64_t seed, const char *name,
	struct workload **ret, struct weir_err *err)
{
	uint64_t high, low = round_up(config->base);
	struct workload *w;
	struct rng parent;
	int r;

	if (low < config->base || __builtin_add_overflow(config->base, config->region, &high))
		return weir_err_set(
			err, -EINVAL, "region, base: the region ends beyond 2^64 bytes");
	r = workload_check(config, high > low ? high - low : 0, err);
	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return no_memory(err);
	w->c = *config;
	w->low = low;
	w->len = high > low ? high - low : 0;
	w->end = config->stop ? config->stop - config->start : WORKLOAD_FOREVER;
	w->end = w->end < WORKLOAD_FOREVER ? w->end : WORKLOAD_FOREVER;
	rng_init(&parent, seed, name); /* the workload's streams derive from (seed, name) */
	seed = rng_u64(&parent);
	rng_init(&w->arrivals, seed, "arrivals");
	rng_init(&w->shape, seed, "shape");
	rng_init(&w->phase.rng, seed, "phases");
	setup_shape(w);
	setup_arrivals(w);
	phase_first(w);
	*ret = w;
	return 0;
}

void workload_free(struct workload *w)
{
	free(w);
}

bool workload_closed(const struct workload *w)
{
	return w->c.arrivals == WORKLOAD_CLOSED;
}

/* ---- times */

static double rate_at(const struct workload *w) /* of a ramp, at `pos`, per ns */
{
	return w->rate + w->slope * ((double)w->pos + w->part);
}

/* Return the increase of Λ over the next `span` ns. */
static double mass(const struct workload *w, double span)
{
	if (w->ramp)
		return (rate_at(w) + w->slope * span / 2) * span;
	return span / w->gap_ns;
}

/* Return the ns over which Λ increases by `gap`. */
static double span_of(const struct workload *w, double gap)
{
	double rate = rate_at(w);

	if (!w->ramp)
		return gap * w->gap_ns;
	return gap > 0 ? 2 * gap / (rate + sqrt(fmax(rate * rate + 2 * w->slope * gap, 0))) : 0;
}

/* Advance by `gap` of Λ; return false if the end comes first. */
static bool advance(struct workload *w, double gap)
{
	struct phase *p = &w->phase;
	double here, span;

	while (gap >= (here = mass(w, (double)(p->off_from - w->pos) - w->part))) {
		weir_time skip = 0;
		gap -= here;
		if (p->next_on >= w->end)
			return false;
		if (!w->c.on_off_random && !w->ramp) {
			double on_mass = (double)w->c.on / w->gap_ns, cycles = floor(gap / on_mass);
			double cycle = (double)(w->c.on + w->c.off);
			if (cycles * cycle >= (double)(w->end - p->next_on))
				return false;
			gap -= cycles * on_mass;
			skip = (weir_time)cycles * (w->c.on + w->c.off);
		}
		phase_begin(w, p, p->next_on + skip);
		w->pos = p->on_from;
		w->part = 0;
	}
	span = fmin(w->part + span_of(w, gap), (double)(p->off_from - w->pos));
	w->pos += (weir_time)span;
	w->part = span - floor(span);
	return true;
}

/* Return the current time, to the nearest ns but never in an off-phase. */
static weir_time time_of(const struct workload *w)
{
	weir_time at = w->pos + (w->part >= 0.5);

	return w->c.start + (at < w->phase.off_from ? at : w->phase.off_from - 1);
}

static double burst_gap(struct workload *w)
{
	while (w->burst_left < 1 && w->quiet_left < 1) {
		w->burst_left = burst_gaps(&w->c);
		w->quiet_left += w->quiet_gaps;
	}
	if (w->burst_left >= 1) {
		w->burst_left--;
		return w->c.rate / w->c.peak;
	}
	w->quiet_left--;
	return rng_exp(&w->arrivals, w->quiet_gap);
}

static double unit_gap(struct workload *w)
{
	double mean = 1;

	if (w->c.arrivals == WORKLOAD_BURSTS)
		return burst_gap(w);
	if (w->c.arrivals == WORKLOAD_UNIFORM)
		return w->issued ? 1 : 0;
	if (w->c.arrivals == WORKLOAD_HYPER)
		mean = rng_double(&w->arrivals) < w->branch ? 0.5 / w->branch
							    : 0.5 / (1 - w->branch);
	return rng_exp(&w->arrivals, mean);
}

/* Return the next record and the gap before it; NULL at the end of the trace. */
static const struct trace_record *next_record(struct workload *w, double *ret_gap)
{
	const struct trace *t = w->c.trace;
	const struct trace_record *record;

	if (w->index == t->n) {
		if (!w->c.loop)
			return NULL;
		w->index = 0;
	}
	record = &t->records[w->index];
	if (w->index)
		*ret_gap = (double)(record->at - record[-1].at);
	else
		*ret_gap = w->issued ? w->loop_gap : (double)record->at;
	w->index++;
	return record;
}

static bool next_closed(struct workload *w, weir_time now, weir_time *ret_at)
{
	weir_time at = now > w->c.start ? now - w->c.start : 0;

	if (w->c.on)
		phase_seek(w, &w->phase, at); /* phases before `now` are not needed again */
	if (w->c.think && w->issued >= w->c.outstanding)
		at += llround(rng_exp(&w->arrivals, (double)w->c.think));
	if (w->c.on) {
		struct phase ahead = w->phase; /* other slots may still ask about earlier times */
		phase_seek(w, &ahead, at);
		if (at >= ahead.off_from)
			at = ahead.next_on;
		else if (at < ahead.on_from)
			at = ahead.on_from;
	}
	if (at >= w->end)
		return false;
	*ret_at = w->c.start + at;
	return true;
}

/* ---- shapes */

static uint32_t draw_size(struct workload *w)
{
	double u = rng_double(&w->shape);
	unsigned i = 0;

	while (i + 1 < w->c.n_sizes && u >= w->up_to[i])
		i++;
	return w->c.sizes[i].bytes;
}

/* Draw a place for `bytes`, relative to `low`, uniformly or by Zipf. */
static uint64_t draw_place(struct workload *w, uint32_t bytes)
{
	uint64_t unit = unit_of(bytes), slots = (w->len - bytes) / unit + 1, rank, slot;

	if (!(w->c.zipf > 0))
		return rng_below(&w->shape, slots) * unit;
	rank = rng_zipf_draw(&w->shape, &w->zipf);
	slot = (uint64_t)((workload_u128)rank * w->stride % w->n_blocks) * w->block / unit;
	return (slot < slots ? slot : slots - 1) * unit;
}

static uint64_t draw_offset(struct workload *w, uint32_t bytes)
{
	bool follow = rng_double(&w->shape) < w->c.sequential;
	uint64_t place;

	if (!follow || w->tail == UINT64_MAX)
		place = draw_place(w, bytes);
	else
		place = w->tail <= w->len - bytes ? w->tail : 0; /* wrap to the start */
	w->tail = round_up(place + bytes);
	return w->low + place;
}

/* Fold a recorded offset into the region by whole sectors, which keeps its alignment. */
static uint64_t fold_offset(const struct workload *w, uint64_t offset, uint32_t bytes)
{
	uint64_t whole = w->len / SECTOR * SECTOR, place = whole ? offset % whole : 0;

	if (place > w->len - bytes)
		place = (w->len - bytes) / SECTOR * SECTOR;
	return w->low + place;
}

static void shape_drawn(struct workload *w, struct workload_io *io)
{
	io->bytes = draw_size(w);
	io->op = rng_double(&w->shape) < w->c.reads ? OP_READ : OP_WRITE;
	io->offset = draw_offset(w, io->bytes);
}

static void shape_recorded(
	struct workload *w, const struct trace_record *record, struct workload_io *io)
{
	io->bytes = record->bytes;
	io->op = record->op;
	if (w->c.trace->has_offsets)
		io->offset = fold_offset(w, record->offset, record->bytes);
	else if (record->op == OP_FLUSH)
		io->offset = w->low;
	else
		io->offset = draw_offset(w, record->bytes);
}

bool workload_next(struct workload *w, weir_time now, struct workload_io *ret)
{
	const struct trace_record *record = NULL;
	struct workload_io io = {0};
	double gap = 0;

	if (w->c.arrivals == WORKLOAD_CLOSED) {
		if (!next_closed(w, now, &io.at))
			return false;
	} else {
		if (w->c.arrivals != WORKLOAD_TRACE)
			gap = unit_gap(w);
		else if (!(record = next_record(w, &gap)))
			return false;
		if (w->over || !advance(w, gap)) {
			w->over = true; /* a later, shorter gap must not revive it */
			return false;
		}
		io.at = time_of(w);
	}
	if (record)
		shape_recorded(w, record, &io);
	else
		shape_drawn(w, &io);
	w->issued++;
	*ret = io;
	return true;
}
