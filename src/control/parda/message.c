/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parda/message.h"
#include <string.h>

#define NUMBERS     16 /* a message has 12 reports at most */
#define ASKS        0x10
#define QUIET       0x20
#define BURSTS      0x40
#define LOW_BITS    8  /* of these four */
#define STEPS_BITS  32 /* 272 years of 2 s */
#define FLOOR_BITS  24
#define FLOOR_SHIFT 7 /* 31 bits of a positive single, without these */

static uint64_t floor_write(double floor)
{
	float single = (float)floor;
	uint32_t bits;

	memcpy(&bits, &single, sizeof(bits));
	return floor > 0 ? bits >> FLOOR_SHIFT & ((1u << FLOOR_BITS) - 1) : 0;
}

static double floor_read(uint64_t bits)
{
	uint32_t all = (uint32_t)bits << FLOOR_SHIFT;
	float single;

	memcpy(&single, &all, sizeof(single));
	return single; /* not a number, or beyond all bounds: parda_hear refuses it */
}

uint64_t parda_message_id(uint64_t host, uint64_t number)
{
	/* Odd: no two numbers of one host have one id. Far apart: nor have those of two, but by chance. */
	return host + number * UINT64_C(0x9e3779b97f4a7c15);
}

struct peer_report parda_message_write(
	const struct parda_report *r, uint64_t resource, uint64_t number, weir_time period)
{
	return (struct peer_report){.resource = resource,
		.shares = r->shares,
		.beta = r->beta,
		.window = r->window,
		.inside = r->inside,
		.latency = r->latency,
		.ios = r->ios,
		.bytes = r->bytes,
		.threshold = r->threshold,
		.period = period,
		.flags = floor_write(r->floor) << (LOW_BITS + STEPS_BITS) |
			 (r->steps & UINT32_MAX) << LOW_BITS | (r->asks ? ASKS : 0) |
			 (r->quiet ? QUIET : 0) | (r->bursts ? BURSTS : 0) | number};
}

struct parda_report parda_message_read(const struct peer_message *m, const struct peer_report *r)
{
	return (struct parda_report){.id = parda_message_id(peer_hash(m->name), r->flags % NUMBERS),
		.instance = m->instance,
		.sequence = m->sequence,
		.asks = r->flags & ASKS,
		.quiet = r->flags & QUIET,
		.bursts = r->flags & BURSTS,
		.steps = r->flags >> LOW_BITS & UINT32_MAX,
		.floor = floor_read(r->flags >> (LOW_BITS + STEPS_BITS)),
		.shares = r->shares,
		.beta = r->beta,
		.window = r->window,
		.inside = r->inside,
		.latency = r->latency,
		.ios = r->ios,
		.bytes = r->bytes,
		.threshold = r->threshold};
}
