/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  pShift §IV-B, Experiment 1 and Figure 3(a); §IV-C for r and m.
 * LAW     A bucket's weight is w_k = k^−s where k is drawn with probability w_k / Σ w; reservations
 *         are in proportion, and sum to r Σ C. Its demand is m times its reservation, over `active`
 *         servers that it draws, in proportion to 1, 2^−0.5, 3^−0.5, … in the order drawn; or, in a
 *         chain, over neighbours, from the first server for the first buckets to the last for the
 *         last.
 * SYMBOLS as in pshift-make.h; all in requests per QoS period.
 * METHOD  Sums are exact: each number is the difference of two rounded partial sums.
 * DIFFERS `skew` is an addition: with all servers equal and r = 0.9 no server is overloaded for
 *         long; and so is `chain`, in which tokens have to move far.
 * EXAMPLE 64 servers of 100,000, 10,000 buckets, 8 active, r = 1, m = 1.1: 80,000 entries; the mean
 *         reservation is 640.
 */
#include "bench/reference/pshift-make.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WITHIN 0.5 /* the exponent of a bucket's demand over its servers */

void pshift_made_free(struct pshift_made *m)
{
	arena_free(&m->memory);
	*m = (struct pshift_made){.capacity = NULL};
}

/* Draw a server that is not among the n that bucket i has drawn; in a chain, return the n-th from
 * its place. */
static uint32_t draw_server(struct pshift_made *m, size_t i, size_t n)
{
	const uint32_t *has = m->server + m->first[i];
	size_t places = m->shape.servers - m->shape.active + 1;

	if (m->shape.chain)
		return (uint32_t)(i * places / m->shape.buckets + n);
	for (;;) {
		uint32_t j = (uint32_t)rng_zipf_draw(&m->rng, &m->where);
		size_t k = 0;

		while (k < n && has[k] != j)
			k++;
		if (k == n)
			return j;
	}
}

void pshift_make_move(struct pshift_made *m, size_t i)
{
	double total = m->shape.demand * (double)m->reservation[i], weights = 0, sum = 0;
	size_t n = m->shape.active;
	int64_t last = 0;

	for (size_t k = 0; k < n; k++)
		weights += pow((double)(k + 1), -WITHIN);
	for (size_t k = 0; k < n; k++) {
		int64_t upto;

		sum += pow((double)(k + 1), -WITHIN);
		upto = k + 1 == n ? llround(total) : llround(total * sum / weights);
		m->server[m->first[i] + k] = draw_server(m, i, k);
		m->demand[m->first[i] + k] = upto - last;
		last = upto;
	}
}

static int make_reservations(struct pshift_made *m)
{
	const struct pshift_shape *s = &m->shape;
	double total = s->reserved * (double)s->capacity * (double)s->servers, weights = 0, sum = 0;
	double *weight = malloc(s->buckets * sizeof(*weight));
	struct rng_zipf zipf;
	int64_t last = 0;

	if (!weight)
		return -ENOMEM;
	rng_zipf_init(&zipf, s->buckets, s->zipf);
	for (size_t i = 0; i < s->buckets; i++) {
		weight[i] = pow((double)(1 + rng_zipf_draw(&m->rng, &zipf)), -s->zipf);
		weights += weight[i];
	}
	for (size_t i = 0; i < s->buckets; i++) {
		int64_t upto;

		sum += weight[i];
		upto = i + 1 == s->buckets ? llround(total) : llround(total * sum / weights);
		m->reservation[i] = upto - last;
		m->limit[i] = s->limit > 0 ? llround(s->limit * (double)m->reservation[i])
					   : PSHIFT_NO_LIMIT;
		last = upto;
	}
	free(weight);
	return 0;
}

static int allocate_arrays(struct pshift_made *m)
{
	const struct pshift_shape *s = &m->shape;
	size_t entries = s->buckets * s->active;

	m->capacity = arena_take(&m->memory, s->servers, sizeof(*m->capacity));
	m->reservation = arena_take(&m->memory, s->buckets, sizeof(*m->reservation));
	m->limit = arena_take(&m->memory, s->buckets, sizeof(*m->limit));
	m->demand = arena_take(&m->memory, entries, sizeof(*m->demand));
	m->first = arena_take(&m->memory, s->buckets + 1, sizeof(*m->first));
	m->server = arena_take(&m->memory, entries, sizeof(*m->server));
	if (m->memory.failed)
		return -ENOMEM;
	for (size_t j = 0; j < s->servers; j++)
		m->capacity[j] = s->capacity;
	for (size_t i = 0; i <= s->buckets; i++)
		m->first[i] = (uint32_t)(i * s->active);
	m->in = (struct pshift_input){.servers = s->servers,
		.buckets = s->buckets,
		.capacity = m->capacity,
		.reservation = m->reservation,
		.limit = s->limit > 0 ? m->limit : NULL,
		.first = m->first,
		.server = m->server,
		.demand = m->demand};
	return 0;
}

int pshift_make(const struct pshift_shape *shape, uint64_t seed, struct pshift_made *ret)
{
	struct pshift_made m = {.shape = *shape};
	int r;

	if (shape->servers == 0 || shape->buckets == 0 || shape->active == 0 ||
		shape->active > shape->servers || shape->buckets > PSHIFT_ENTRIES / shape->active)
		return -EINVAL;
	rng_init(&m.rng, seed, "pshift");
	rng_zipf_init(&m.where, shape->servers, shape->skew);
	r = allocate_arrays(&m);
	if (r == 0)
		r = make_reservations(&m);
	for (size_t i = 0; r == 0 && i < shape->buckets; i++)
		pshift_make_move(&m, i);
	if (r)
		pshift_made_free(&m);
	else
		*ret = m;
	return r;
}
