/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closed: hosts that keep a number of IOs outstanding on a device, for the tests of the models.
 *
 * A minimal simulator: no gate, no think time. It checks that the device returns each IO once, in
 * order of `finished`, and not before its time.
 */
#ifndef WEIR_TESTS_MODEL_CLOSED_H
#define WEIR_TESTS_MODEL_CLOSED_H

#include "model/device.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)

struct closed_host {
	double reads, random; /* shares; an IO that is not random follows the one before */
	uint32_t bytes, outstanding;
	uint64_t base, region;
	uint64_t position; /* results and state; zero them */
	struct rng rng;
	uint64_t n;
	double latency; /* sum, ns */
	weir_time worst;
};

static inline void closed_fill(struct closed_host *h, struct device_io *io)
{
	uint64_t offset = h->base + rng_below(&h->rng, h->region / h->bytes) * h->bytes;

	if (h->random < 1 && rng_double(&h->rng) >= h->random) {
		offset = h->position;
		if (offset + h->bytes > h->base + h->region)
			offset = h->base;
	}
	h->position = offset + h->bytes;
	io->offset = offset;
	io->bytes = h->bytes;
	io->op = h->reads < 1 && rng_double(&h->rng) >= h->reads;
	io->user = io;
}

/* Run to `end`; count the IOs that finish after `warm`. The device keeps the outstanding IOs. */
static inline void closed_run(struct device *d, struct closed_host *hosts, unsigned n,
	uint64_t seed, weir_time warm, weir_time end, struct device_io *ios)
{
	weir_time t, last = 0;
	uint64_t inside = 0;
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "host%u", i);
		rng_init(&hosts[i].rng, seed, name);
		hosts[i].position = hosts[i].base;
		hosts[i].n = 0;
		hosts[i].latency = 0;
		hosts[i].worst = 0;
		for (unsigned j = 0; j < hosts[i].outstanding; j++) {
			struct device_io *io = &ios[inside++];

			memset(io, 0, sizeof(*io));
			io->source = i;
			closed_fill(&hosts[i], io);
			device_submit(d, 0, io);
		}
	}
	while ((t = device_next(d)) <= end) {
		struct device_io *io = device_step(d, t), *next;

		for (; io; io = next) {
			struct closed_host *h = &hosts[io->source];

			next = io->next;
			CHECK(io->user == io);
			CHECK(io->finished >= last && io->finished <= t);
			CHECK(io->arrived <= io->finished);
			last = io->finished;
			if (t > warm) {
				h->n++;
				h->latency += (double)(io->finished - io->arrived);
			}
			if (io->finished - io->arrived > h->worst)
				h->worst = io->finished - io->arrived;
			closed_fill(h, io);
			device_submit(d, t, io);
		}
	}
}

/* Return IOs per second over the counted time. */
static inline double closed_rate(const struct closed_host *hosts, unsigned n, weir_time span)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += (double)hosts[i].n;
	return sum * 1e9 / (double)span;
}

/* Return the mean latency in ms. */
static inline double closed_ms(const struct closed_host *hosts, unsigned n)
{
	double sum = 0, count = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += hosts[i].latency;
		count += (double)hosts[i].n;
	}
	return sum / count / 1e6;
}

#endif
