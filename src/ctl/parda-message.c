/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/parda-message.h"

struct peer_report parda_message_write(
	const struct parda_report *r, uint64_t resource, weir_time period)
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
		.period = period};
}

struct parda_report parda_message_read(const struct peer_message *m, const struct peer_report *r)
{
	return (struct parda_report){.id = peer_hash(m->name),
		.instance = m->instance,
		.sequence = m->sequence,
		.shares = r->shares,
		.beta = r->beta,
		.window = r->window,
		.inside = r->inside,
		.latency = r->latency,
		.ios = r->ios,
		.bytes = r->bytes,
		.threshold = r->threshold};
}
