/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time: estimate the device time of a request, for fair queueing by time.
 *
 * LAW     estimate ← estimate + (measured − estimate)/64, for each operation and each size up to 4,
 *         8, 16 … 256 KiB, and more. If the back end reports it, the measured time is how long the
 *         request held parts of the device, so that a request that keeps sixteen dies busy at once
 *         costs sixteen times one that keeps one busy for as long. Else it is the time that the
 *         request was inside, divided by the number inside: all of them share the device equally.
 *         An operation and size without a measurement costs as much as the nearest smaller size, or
 *         else the nearest larger one.
 * EXAMPLE 16 inside, each for 1.6 ms: 100 µs of the device each.
 */
#include "serve/resource/impl.h"

#define NEWEST                                                                                     \
	(1.0 / 64) /* follows a change after some hundred requests; ignores a single outlier */
#define SIZES 8

static unsigned size_class(const struct weir_req *q)
{
	unsigned size = 0;

	while (size < SIZES - 1 && q->bytes > 4096u << size)
		size++;
	return size;
}

uint32_t resource_time(struct resource *r, const struct weir_req *q)
{
	const double *ns = r->device_ns[q->op];
	unsigned at = size_class(q), from = at;

	while (at > 0 && ns[at] <= 0)
		at--;
	if (ns[at] <= 0)
		for (at = from; at < SIZES - 1 && ns[at] <= 0;)
			at++;
	return ns[at] < UINT32_MAX ? (uint32_t)ns[at] : UINT32_MAX;
}

void resource_time_learn(struct resource *r, weir_time now, const struct request *q)
{
	double *ns = &r->device_ns[q->gate.op][size_class(&q->gate)];
	double seen = r->back->info.tells_device
			      ? (double)q->io.device
			      : (double)(now - q->gate.dispatched) / (r->inside + 1);

	*ns = *ns > 0 ? *ns + NEWEST * (seen - *ns) : seen;
}
