/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/parda-message.h"

#define NUMBER_BITS 8 /* a message has 12 reports at most */

uint64_t parda_message_id(const char *host, uint64_t number)
{
	/* Odd: no two numbers of one host have one id. Far apart: nor have those of two, but by chance. */
	return peer_hash(host) + number * UINT64_C(0x9e3779b97f4a7c15);
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
		.flags = r->steps << NUMBER_BITS | number};
}

struct parda_report parda_message_read(const struct peer_message *m, const struct peer_report *r)
{
	return (struct parda_report){
		.id = parda_message_id(m->name, r->flags % (1u << NUMBER_BITS)),
		.instance = m->instance,
		.sequence = m->sequence,
		.steps = r->flags >> NUMBER_BITS,
		.shares = r->shares,
		.beta = r->beta,
		.window = r->window,
		.inside = r->inside,
		.latency = r->latency,
		.ios = r->ios,
		.bytes = r->bytes,
		.threshold = r->threshold};
}
