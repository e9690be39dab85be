/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knee-probe: find the knee of a resource by short bursts of reads while it is otherwise idle.
 *
 * control/parda/knee.h finds the knee from the existing load, which takes hundreds of intervals if
 * that comes and goes. This finds it in about six bursts: each keeps a number of reads inside for a
 * while, then another number, and observes how many complete and how long the quickest of them take.
 *
 *   probe_plan          the next burst
 *   probe_burst_start   its first read is sent; then, again and again:
 *   probe_burst_more      how many reads to send now
 *   probe_burst_done      a read completed
 *   probe_learn         all reads completed
 *
 * A burst lasts PROBE_BURST at most, or less if configured, until its last read completes, unless
 * one takes much longer than any before: nothing calls back a read that was sent. A caller may end one at any time: the measurements until then
 * count. Nothing here reads a clock; a burst may belong to another thread than its plan.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define PROBE_BURST  (200 * WEIR_MS)
#define PROBE_PART   50   /* a burst in that many times its own length: 2 % of the time */
#define PROBE_MOST   1024 /* reads inside at once */
#define PROBE_PHASES 8
#define PROBE_OCTAVE 4 /* bins an octave of reads inside */
#define PROBE_BINS   (11 * PROBE_OCTAVE)
#define PROBE_ENOUGH 2 /* bursts after the first climb until a knee is reported */

struct probe_burst {
	struct probe_phase {
		uint32_t level;   /* reads inside */
		weir_time length; /* ns */
		uint32_t skip;    /* completed reads that do not count, at first */
		uint32_t enough;  /* counted reads that end it; 0: by its length alone */
		weir_time first,
			last;  /* completion of the first read that counts, and of the last; … */
		uint32_t done; /* … reads after the first */
		weir_time until;    /* its end; 0: not yet */
		uint32_t in_group;  /* reads of the current group (see knee-probe.c), … */
		weir_time quickest; /* … and the quickest of them, ns; … */
		uint32_t groups;    /* … complete ones before, … */
		double quick_ns;    /* … and Σ of their quickest reads */
	} phases[PROBE_PHASES];
	weir_time length;         /* ns: of the whole burst */
	double bound;             /* ns: more reads than take this long on the mean are not sent */
	unsigned n, at;           /* phases; the current one */
	uint32_t inside;          /* reads */
	weir_time started, since; /* the burst; the phase */
	weir_time latency;        /* longest read so far, or expected at this level; 0: not known */
	bool over;                /* no more reads are sent; a caller may set it, … */
	bool complete;            /* … or its time was over */
};

struct probe {
	double part;                     /* part of the most throughput that defines the knee */
	weir_time burst;                 /* ns */
	double latency_most;             /* ns: no more reads inside than take this long */
	struct probe_bin {               /* by reads inside */
		double ns, done;         /* time, and completed reads in it; faded */
		double inside_ns;        /* ∫ of reads inside */
		double groups, quick_ns; /* of its phases; faded */
	} bins[PROBE_BINS];
	double climb;    /* reads: the next level of the first climb; 0: the climb is over */
	unsigned bursts; /* useful bursts since then */
	double knee;     /* ns; 0: not known yet */
	double inside;   /* reads at the knee */
	double rate;     /* most, per second */
};

/* latency_most: ns, > 0. */
/* burst: ns, ≤ PROBE_BURST. */
void probe_init(struct probe *p, double latency_most, weir_time burst);
void probe_plan(const struct probe *p, struct probe_burst *ret);
void probe_learn(struct probe *p, const struct probe_burst *b);

void probe_burst_start(struct probe_burst *b, weir_time now);
/* Return how many reads to send; they count as inside from now on. 0 and nothing inside: the burst
 * is over. */
uint32_t probe_burst_more(struct probe_burst *b, weir_time now);
/* latency: ns of the read. */
void probe_burst_done(struct probe_burst *b, weir_time now, weir_time latency);
