/* SPDX-License-Identifier: BSD-3-Clause */
/* device: a gate with a simple device and a clock: the device holds the requests that passed
 * until the test completes them. */
#ifndef WEIR_TESTS_GATE_DEVICE_H
#define WEIR_TESTS_GATE_DEVICE_H

#include <weir/gate.h>
#include "test.h"
#include <errno.h>

struct bench {
	struct weir_gate *g;
	weir_time now;
	struct weir_req reqs[512];
	unsigned n;
};

static inline struct bench bench_new(struct weir_gate_config config)
{
	struct bench b = {.now = 0};

	CHECK_INT(weir_gate_new(&config, &b.g), 0);
	return b;
}

static inline weir_node leaf(struct bench *b, weir_node parent, double weight)
{
	weir_node n;

	CHECK_INT(weir_gate_add(b->g, parent, &n), 0);
	CHECK_INT(weir_gate_set(b->g, b->now,
			  &(struct weir_knob){.node = n, .kind = WEIR_KNOB_WEIGHT, .value = weight},
			  1, NULL),
		0);
	return n;
}

static inline void buckets(
	struct bench *b, weir_node n, const struct weir_bucket_spec *specs, unsigned count)
{
	struct weir_err err = {""};
	struct weir_knob k = {
		.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = specs, .n_buckets = count};

	if (weir_gate_set(b->g, b->now, &k, 1, &err))
		FAIL("%s", err.text);
}

static inline void knob(struct bench *b, weir_node n, enum weir_knob_kind kind, double value)
{
	struct weir_err err = {""};

	if (weir_gate_set(b->g, b->now,
		    &(struct weir_knob){.node = n, .kind = kind, .value = value}, 1, &err))
		FAIL("%s", err.text);
}

static inline struct weir_req *submit(struct bench *b, weir_node n, uint32_t bytes)
{
	struct weir_req *r = &b->reqs[b->n++];

	CHECK(b->n <= sizeof b->reqs / sizeof b->reqs[0]);
	*r = (struct weir_req){.tenant = n, .bytes = bytes};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	return r;
}

static inline struct weir_req *pass(struct bench *b)
{
	struct weir_req *r = NULL;

	return weir_gate_next(b->g, b->now, &r, 1) ? r : NULL;
}

static inline void finish(struct bench *b, struct weir_req *r)
{
	weir_gate_done(b->g, b->now, &r, 1);
}

/* Serve one request at a time, `each` apart, until nothing passes; count by tenant. */
static inline void serve(struct bench *b, weir_time each, unsigned times, unsigned *counts)
{
	for (unsigned i = 0; i < times; i++) {
		struct weir_req *r = pass(b);

		if (!r)
			return;
		counts[r->tenant]++;
		b->now += each;
		finish(b, r);
	}
}

#endif
