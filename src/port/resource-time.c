/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource-time: how much of the device's time a request will take, where fair queueing counts that.
 *
 * LAW     estimate ← estimate + (seen − estimate)/64, for each operation and each size up to 4, 8, 16 …
 *         256 KiB, and more. Seen is the time that a request was inside, divided by how many were: as
 *         many share the device, and each has that part of it.
 * EXAMPLE 16 inside, each for 1.6 ms: 100 µs of the device each.
 */
#include "port/resource-impl.h"

#define NEWEST                                                                                     \
	(1.0 / 64) /* a change is there after some hundred requests; one outlier is not seen */

static double *place(struct resource *r, const struct weir_req *q)
{
	unsigned size = 0;

	while (size < 7 && q->bytes > 4096u << size)
		size++;
	return &r->device_ns[q->op][size];
}

uint32_t resource_time(struct resource *r, const struct weir_req *q)
{
	double ns = *place(r, q);

	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

void resource_time_learn(struct resource *r, weir_time now, const struct weir_req *q)
{
	double *ns = place(r, q);
	double seen = (double)(now - q->dispatched) / (r->inside + 1);

	*ns = *ns > 0 ? *ns + NEWEST * (seen - *ns) : seen;
}
