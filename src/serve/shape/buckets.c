/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buckets: several token buckets of a class, each an HTB qdisc inside of the one before.
 *
 * LAW     A packet leaves once all of them have tokens for it; each then pays for it (PriorityMeister, §4.6).
 * DIFFERS HTB lets a packet pass that a bucket has not all the tokens for, and waits longer for the next one: the rate is the same,
 *         and a burst up to one packet larger.
 */
#include "serve/shape/tc.h"
#include <errno.h>
#include <math.h>
#include <weir/gate.h>

static struct tc_class class_of(uint32_t qdisc, const struct weir_bucket_spec *b, uint32_t segment)
{
	double burst = fmin(fmax(b->size, segment), 1e9), rate = fmax(b->rate, 1000);

	return (struct tc_class){.id = qdisc | 1,
		.parent = qdisc,
		.rate = rate,
		.ceil = rate,
		.rate_burst = (uint32_t)burst,
		.ceil_burst = (uint32_t)burst,
		.quantum = segment};
}

int tc_class_buckets(struct tc *t, const struct tc_link *l, uint32_t id, uint16_t first,
	const struct weir_bucket_spec *b, unsigned n, uint32_t segment, uint32_t limit,
	struct weir_err *err)
{
	uint32_t parent = id;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		uint32_t qdisc = (uint32_t)(first + n - 1 - i) << 16;
		struct tc_class c = class_of(qdisc, &b[i], segment);

		r = tc_inner_add(t, l, parent, qdisc, err);
		r = r == -EEXIST ? 0 : r;
		r = r ? r : tc_class(t, l, &c, err);
		parent = c.id;
	}
	return r ? r : tc_class_queue(t, l, parent, limit, err);
}
