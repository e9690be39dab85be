/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * knee-probe: the knee of a resource, found by short bursts of reads while nothing else is inside.
 *
 * control/parda/knee finds the knee from the load that there is, which takes hundreds of intervals where that comes and goes. This
 * finds it in about six bursts: each keeps a number of reads inside for a while, then another number.
 *
 *   probe_plan          the next burst
 *   probe_burst_start   its first read goes off; then, again and again:
 *   probe_burst_more      how many reads are to go off now
 *   probe_burst_done      a read came back
 *   probe_learn         all reads are back
 *
 * A burst lasts PROBE_BURST at most, or less if it is told so, until its last read is back, unless one takes longer than any before. A caller may end one at
 * any time: what was measured until then counts. Nothing here reads a clock; a burst may belong to another thread than
 * its plan.
 */
#ifndef WEIR_CONTROL_PARDA_KNEE_PROBE_H
#define WEIR_CONTROL_PARDA_KNEE_PROBE_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

#define PROBE_BURST  (200 * WEIR_MS)
#define PROBE_PART   50   /* a burst in that many times its own length: 2 % of the time */
#define PROBE_MOST   1024 /* reads inside at once */
#define PROBE_PHASES 8
#define PROBE_OCTAVE 4 /* bins an octave of reads inside */
#define PROBE_BINS   (11 * PROBE_OCTAVE)
#define PROBE_ENOUGH 2 /* bursts after the first climb: then a knee is told */

struct probe_burst {
	struct probe_phase {
		uint32_t level;   /* reads inside */
		weir_time length; /* ns */
		uint32_t skip;    /* reads that come back and do not count, at first */
		uint32_t
			enough; /* reads that count, with which it is over; 0: by its length alone */
		weir_time first,
			last;  /* when the first read that counts came back, and the last; … */
		uint32_t done; /* … reads after the first */
	} phases[PROBE_PHASES];
	weir_time length;         /* ns: of all of it */
	unsigned n, at;           /* phases; the one under way */
	uint32_t inside;          /* reads */
	weir_time started, since; /* the burst; the phase */
	weir_time latency; /* most that a read has taken, or will at this level; 0: not known */
	bool over;         /* no more reads go off; a caller may set it */
};

struct probe {
	double part;              /* of the most throughput: what is had at the knee */
	weir_time burst;          /* ns */
	double latency_most;      /* ns: no more reads inside than take that long */
	struct probe_bin {        /* by reads inside */
		double ns, done;  /* time, and reads that came back in it; faded */
		double inside_ns; /* ∫ of reads inside */
	} bins[PROBE_BINS];
	double climb;    /* reads: the next level of the first climb; 0: it is over */
	unsigned bursts; /* that brought something, since then */
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
/* They count as inside from now on. 0 and nothing inside: it is over. */
uint32_t probe_burst_more(struct probe_burst *b, weir_time now);
/* latency: ns that it took. */
void probe_burst_done(struct probe_burst *b, weir_time now, weir_time latency);

#endif
