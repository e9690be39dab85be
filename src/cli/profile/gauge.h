/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gauge: how fast a back end serves requests of one kind, or of several in random order, while a given number of them is inside.
 *
 * LAW     work = time ÷ requests done, with `depth` inside at every moment; inside = dispatch to reply.
 * METHOD  A closed loop on a thread of its own: each request that is done is replaced by the next one. The first requests, one per
 *         slot, fill the device and are not counted, nor is the time until the last of them is done. A model is measured in its own
 *         time, in which no thread is late: the result is the same on every machine.
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <weir/hist.h>
#include "serve/back/back.h"
#include <stdbool.h>

struct gauge;

struct gauge_kind {
	bool write;
	uint32_t bytes; /* ≤ CHUNK_MAX */
	uint64_t
		distance; /* at most so far from the offset before; 0: each begins where the last one ended; UINT64_MAX: any */
};

#define GAUGE_KINDS 32

struct gauge_result {
	uint64_t n;               /* requests counted */
	uint64_t of[GAUGE_KINDS]; /* of each kind */
	double work;              /* ns each */
	struct weir_hist inside;  /* ns */
};

/* Open the back end; depth ≥ 1. `stop` is set by a signal handler, which calls gauge_stop. 0 or a negative errno with a
 * message. */
int gauge_new(
	const char *target, unsigned depth, bool writes, struct gauge **ret, struct weir_err *err);
void gauge_free(struct gauge *m);
const struct back_info *gauge_info(const struct gauge *m);
/* End the run under way, and every later one at once. From a signal handler, too. */
void gauge_stop(struct gauge *m);

/* Measure n ≤ GAUGE_KINDS kinds for a time, or until so many bytes have passed. 0; -EINTR: stopped; or the error of a request. */
int gauge_run(struct gauge *m, const struct gauge_kind *kinds, unsigned n, weir_time time,
	uint64_t bytes, struct gauge_result *ret);
