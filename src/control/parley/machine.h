/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine: a machine's shaper of one link: a meter for each service that receives, a limiter for what
 * a service sends.
 *
 * SOURCE  Parley §3.2.1, §5.1, §7.
 * LAW     Meter: every T the rate R of law rcp.h from the bytes and marks of the last period; R at the
 *         line's rate limits no sender. Limiter: a token bucket, so that bytes in any time t are at most
 *         burst + rate·t, plus one packet. A sender's limit dies PARLEY_LEAF after its last feedback, a
 *         broker's cap when its time-out has passed: then the static policy holds.
 * SYMBOLS T period, C capacity. C·T ≥ 40 packets, or the rate measured is too coarse to settle.
 * EXAMPLE C = 10 Gbit/s: T = 200 µs (167 packets); C = 100 Mbit/s: T = 4.8 ms.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

#include "control/parley/rcp.h"
#include <weir/clock.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define PARLEY_PERIOD  (200 * WEIR_US)
#define PARLEY_PACKETS 40    /* of a period, at least */
#define PARLEY_MTU     1500  /* bytes */
#define PARLEY_SAMPLE  10000 /* bytes between two feedback messages */
#define PARLEY_SETTLE  15    /* periods until senders have settled (§6.3) */
#define PARLEY_LINE                                                                                \
	0.9 /* of a machine's link that receivers fill, as in EyeQ: its queue stays empty */
#define PARLEY_LEAF   WEIR_SEC
#define PARLEY_RACK   (5 * WEIR_SEC)  /* T^t_rack */
#define PARLEY_FABRIC (50 * WEIR_SEC) /* T^t_fabric */

/* Return the period for a capacity in bytes/s, of packets (or segments) of so many bytes. */
static inline weir_time parley_period(double capacity, double packet)
{
	double least = PARLEY_PACKETS * packet * 1e9 / capacity;

	if (!(least < (double)PARLEY_LEAF)) /* feedback must come before leaves die */
		return PARLEY_LEAF;
	return least > (double)PARLEY_PERIOD ? (weir_time)least : PARLEY_PERIOD;
}

/* A cap that a broker set: it holds until `until`, then the static max does. */
struct parley_cap {
	double runtime, fixed; /* bytes/s; INFINITY: none */
	weir_time until;
};

static inline double parley_cap_now(const struct parley_cap *c, weir_time now)
{
	return now < c->until && c->runtime < c->fixed ? c->runtime : c->fixed;
}

struct parley_meter { /* of one service that receives */
	struct rcp rcp;
	uint64_t bytes, packets, marked; /* of this period */
	uint64_t sampled;                /* bytes since the last feedback */
	weir_time began;                 /* this period */
	bool ecn;
};

static inline void parley_meter_init(struct parley_meter *m, double line, bool ecn)
{
	*m = (struct parley_meter){.rcp = {line / 10000, line, line}, .ecn = ecn};
}

/* Count a packet that arrived. Return true if its sender is to be told the rate. */
static inline bool parley_meter_count(struct parley_meter *m, uint32_t bytes, bool marked)
{
	m->bytes += bytes;
	m->packets++;
	m->marked += marked;
	m->sampled += bytes;
	if (m->sampled < PARLEY_SAMPLE)
		return false;
	m->sampled %= PARLEY_SAMPLE;
	return true;
}

/* End a period in which the service had `capacity`. Return R. */
static inline double parley_meter_step(struct parley_meter *m, double capacity, weir_time period)
{
	double rate = (double)m->bytes * 1e9 / (double)period;
	double marked = m->ecn && m->packets ? (double)m->marked / (double)m->packets : 0;

	m->bytes = m->packets = m->marked = 0;
	return rcp_step(&m->rcp, rate, capacity, marked);
}

/* End the period if it has lasted for `least`, and for `wanted`: a slow service needs a longer one than its machine's. */
static inline bool parley_meter_turn(
	struct parley_meter *m, double capacity, weir_time least, weir_time wanted, weir_time now)
{
	weir_time period = now - m->began;

	if (period < least || period < wanted)
		return false;
	parley_meter_step(m, capacity, period);
	m->began = now;
	return true;
}

struct parley_limiter { /* of what a service sends, in all or to one machine */
	double rate;    /* bytes/s; INFINITY: not limited */
	double burst;   /* bytes */
	double tokens;  /* at `at`; a packet may take more than there are, once there is one */
	weir_time at;
};

static inline void parley_limiter_fill(struct parley_limiter *l, weir_time now)
{
	if (l->rate < INFINITY)
		l->tokens += l->rate * (double)(now - l->at) / 1e9;
	if (l->tokens > l->burst || !(l->rate < INFINITY))
		l->tokens = l->burst;
	l->at = now;
}

static inline void parley_limiter_set(struct parley_limiter *l, double rate, weir_time now)
{
	parley_limiter_fill(l, now);
	l->rate = rate;
}

/* Return when the next packet may leave: now, or later; l is filled up to now. */
static inline weir_time parley_limiter_due(struct parley_limiter *l, weir_time now)
{
	double wait;

	parley_limiter_fill(l, now);
	if (l->tokens >= 0 || !(l->rate < INFINITY))
		return now;
	wait = -l->tokens / l->rate * 1e9;
	return wait < 1e18 ? now + 1 + (weir_time)wait : WEIR_NEVER;
}

static inline void parley_limiter_take(struct parley_limiter *l, uint32_t bytes)
{
	if (l->rate < INFINITY)
		l->tokens -= bytes;
}
