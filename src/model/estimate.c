/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/estimate.h"
#include <string.h>

static double size_at(size_t i)
{
	return (double)((uint64_t)ESTIMATE_LEAST << i);
}

/* ---- rows */

/* Return the slope between the measured sizes on either side of a size: at the ends, that of the two next ones. A single size
 * costs the same for any. */
static double slope_of(const struct estimate_measured *m, double size, size_t *ret_from)
{
	size_t i = 0;

	while (i + 2 < m->n && (double)m->size[i + 1] <= size)
		i++;
	*ret_from = i;
	return m->n < 2 ? 0 : (m->work[i + 1] - m->work[i]) / ((double)m->size[i + 1] - m->size[i]);
}

void estimate_fill(const struct estimate_measured *m, struct estimate_row *ret)
{
	ret->distance = m->distance;
	for (size_t i = 0; i < ESTIMATE_SIZES; i++) {
		size_t from;
		double work, slope = slope_of(m, size_at(i), &from);

		if (slope < 0 && size_at(i) > m->size[from + 1]) {
			slope = 0; /* beyond the largest size work does not fall further */
			from++;
		}
		work = m->work[from] + slope * (size_at(i) - m->size[from]);
		ret->work[i] = work > 1 ? work : 1;
		ret->per_byte[i] = slope;
	}
	/* between two powers of two the line goes from the one to the other */
	for (size_t i = 0; i + 1 < ESTIMATE_SIZES; i++)
		ret->per_byte[i] = (ret->work[i + 1] - ret->work[i]) / size_at(i);
}

void estimate_constant(struct estimate *e, double request_ns, double byte_ns)
{
	const struct estimate_measured m = {.distance = UINT64_MAX,
		.n = 2,
		.size = {512, 1024},
		.work = {request_ns + 512 * byte_ns, request_ns + 1024 * byte_ns}};

	memset(e, 0, sizeof(*e));
	for (unsigned op = 0; op < ESTIMATE_OPS; op++) {
		e->n_rows[op] = 1;
		estimate_fill(&m, &e->row[op][0]);
	}
}

/* ---- requests */

static uint64_t distance_of(struct estimate_past *past, uint64_t offset, uint64_t end)
{
	uint64_t distance = offset > past->last ? offset - past->last : past->last - offset;
	unsigned slot = past->next;

	distance += distance == 0; /* the same place again, which does not continue it */
	for (unsigned i = 0; i < ESTIMATE_PAST; i++) {
		if (past->end[i] == offset) {
			distance = 0;
			slot = i; /* the same sequence goes on */
		}
	}
	past->end[slot] = end;
	past->last = offset;
	past->next = slot == past->next ? (slot + 1) % ESTIMATE_PAST : past->next;
	return distance;
}

double estimate_most(const struct estimate *e, unsigned op, uint32_t bytes)
{
	double most = estimate_work(e, NULL, op, 0, bytes);

	for (uint32_t size = ESTIMATE_LEAST; size < bytes; size *= 2)
		if (estimate_work(e, NULL, op, 0, size) > most)
			most = estimate_work(e, NULL, op, 0, size);
	return most;
}

double estimate_work(const struct estimate *e, struct estimate_past *past, unsigned op,
	uint64_t offset, uint32_t bytes)
{
	uint64_t distance = 0;
	unsigned kind = op ? 1 : 0, last = e->n_rows[kind] - 1, r = 0, i;
	const struct estimate_row *row;
	double work;

	if (op > 1) /* it moves no data, and no head */
		bytes = 0;
	else if (past && e->n_rows[0] + e->n_rows[1] > ESTIMATE_OPS)
		distance = distance_of(past, offset, offset + bytes);
	else
		distance = UINT64_MAX;
	while (r < last && e->row[kind][r].distance < distance)
		r++;
	row = &e->row[kind][r];
	i = bytes < 2 * ESTIMATE_LEAST ? 0 : 22u - (unsigned)__builtin_clz(bytes);
	i = i < ESTIMATE_SIZES ? i : ESTIMATE_SIZES - 1;
	work = row->work[i] + row->per_byte[i] * ((double)bytes - size_at(i));
	return work > 1 ? work : 1;
}
