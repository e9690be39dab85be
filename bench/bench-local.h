/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-local: reads of a local file without any server: what a request costs before there is one. */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <weir/hist.h>

struct local_load {
	const char *path;
	uint64_t region; /* bytes of the file that are read */
	uint32_t size;   /* of a request */
	int core;        /* of the thread; -1: any */
	weir_time duration;
};

/* Read at random offsets, one request at a time. latency: of each request; cpu: ns of the thread. 0, or a negative errno and a
 * message. */
int local_run(const struct local_load *l, struct weir_hist *ret_latency, weir_time *ret_cpu,
	struct weir_err *err);
