/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: what the buckets of a simulated cluster want, where, and when that changes.
 *
 * SOURCE  pShift §IV-B, Experiment 1: reservations in proportion to k^−s, k drawn with that
 *         probability; a bucket's demand over its servers likewise, in the order drawn; at a change
 *         it draws new servers, which may be the old ones. §IV-E: as many requests always waiting
 *         at each server.
 * DIFFERS Requests that wait at a server that a bucket leaves stay, and are served; those of a
 *         closed loop leave with its clients.
 */
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double weight(uint64_t k, double s)
{
	return pow((double)(k + 1), -s);
}

static int reserve(struct sim_cluster *c)
{
	const struct sim_cluster_config *g = &c->config;
	double seconds = (double)g->period / (double)WEIR_SEC;
	double total = g->reserved * g->capacity * (double)g->servers * seconds, all = 0;
	double *w = calloc(g->buckets, sizeof(*w));
	struct rng_zipf zipf;

	if (!w)
		return -ENOMEM;
	rng_zipf_init(&zipf, g->buckets, g->zipf);
	for (uint32_t i = 0; i < g->buckets; i++)
		all += w[i] = weight(rng_zipf_draw(&c->rng, &zipf), g->zipf);
	for (uint32_t i = 0; i < g->buckets; i++) {
		struct sim_bucket *b = &c->buckets[i];
		double r = g->reserved > 0 ? total * w[i] / all : g->reservation * seconds;

		b->reservation = llround(floor(r));
		b->limit = g->limit > 0 ? llround(g->limit * r) : LEASE_NO_LIMIT;
	}
	free(w);
	return 0;
}

/* ---- servers of a bucket */

static void leave(struct sim_cluster *c, uint32_t bucket)
{
	struct sim_bucket *b = &c->buckets[bucket];

	for (uint32_t k = 0; k < b->n_at; k++) {
		struct sim_place *p = sim_cluster_place(c, bucket, b->at[k]);

		if (p->loop)
			p->queued = 0;
		p->loop = 0;
		p->rate = 0;
	}
	b->n_at = 0;
}

static bool is_at(const struct sim_bucket *b, uint32_t server)
{
	for (uint32_t k = 0; k < b->n_at; k++)
		if (b->at[k] == server)
			return true;
	return false;
}

static void choose(struct sim_cluster *c, uint32_t bucket)
{
	const struct sim_cluster_config *g = &c->config;
	struct sim_bucket *b = &c->buckets[bucket];
	uint32_t n = g->least + (uint32_t)rng_below(&c->rng, g->most - g->least + 1);
	struct rng_zipf zipf;

	if (g->nested) {
		for (b->n_at = 0; b->n_at <= bucket && b->n_at < g->servers; b->n_at++)
			b->at[b->n_at] = b->n_at;
		return;
	}
	rng_zipf_init(&zipf, g->servers, g->skew);
	while (b->n_at < n) {
		uint32_t server = (uint32_t)(g->skew > 0 ? rng_zipf_draw(&c->rng, &zipf)
							 : rng_below(&c->rng, g->servers));

		if (!is_at(b, server))
			b->at[b->n_at++] = server;
	}
}

static int arrive(struct sim_cluster *c, uint32_t bucket)
{
	const struct sim_cluster_config *g = &c->config;
	struct sim_bucket *b = &c->buckets[bucket];
	double seconds = (double)g->period / (double)WEIR_SEC, all = 0;

	leave(c, bucket);
	choose(c, bucket);
	for (uint32_t k = 0; k < b->n_at; k++)
		all += weight(k, g->zipf);
	for (uint32_t k = 0; k < b->n_at; k++) {
		struct sim_place *p = sim_cluster_place(c, bucket, b->at[k]);
		struct sim_server *s = &c->servers[b->at[k]];

		if (!p)
			return -ENOMEM;
		p->loop = g->outstanding;
		p->rate = g->demand * (double)b->reservation / seconds * weight(k, g->zipf) / all;
		sim_server_list(s, p);
	}
	return 0;
}

/* ---- times of changes */

static int by_time(const void *a, const void *b)
{
	weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

	return x < y ? -1 : x > y;
}

/* Draw the same number of changes in each span, at random times in it. A span has as many periods as make this
 * number whole: 2 in each, or 5 in four. */
#define MOST_SPAN 20 /* periods */

static uint64_t span_of(double changes)
{
	uint64_t n = 1;

	while (n < MOST_SPAN && fabs(changes * (double)n - round(changes * (double)n)) > 1e-6)
		n++;
	return n;
}

static int plan(struct sim_cluster *c, uint32_t bucket)
{
	const struct sim_cluster_config *g = &c->config;
	struct sim_bucket *b = &c->buckets[bucket];
	uint64_t periods = span_of(g->changes);
	size_t each = (size_t)llround(g->changes * (double)periods);
	weir_time span = (weir_time)periods * g->period;

	b->at = calloc(g->most, sizeof(*b->at));
	b->n_moves = each * (size_t)(c->duration / span + 1);
	b->moves = calloc(b->n_moves + 1, sizeof(*b->moves));
	if (!b->at || !b->moves)
		return -ENOMEM;
	for (size_t k = 0; k < b->n_moves; k++)
		b->moves[k] = (weir_time)(k / each) * span +
			      (weir_time)(rng_double(&c->rng) * (double)span);
	qsort(b->moves, b->n_moves, sizeof(*b->moves), by_time);
	if (b->n_moves)
		return heap_push(
			&c->moves, (struct heap_item){.key = b->moves[0], .value = bucket});
	return 0;
}

int sim_load_begin(struct sim_cluster *c)
{
	int r = reserve(c);

	for (uint32_t i = 0; r == 0 && i < c->config.buckets; i++)
		r = plan(c, i);
	for (uint32_t i = 0; r == 0 && i < c->config.buckets; i++)
		r = arrive(c, i);
	return r;
}

int sim_load_step(struct sim_cluster *c)
{
	int r = 0;

	while (r == 0 && c->moves.n && heap_min(&c->moves)->key <= c->now) {
		struct heap_item item = heap_pop(&c->moves);
		struct sim_bucket *b = &c->buckets[item.value];

		r = arrive(c, (uint32_t)item.value);
		if (r == 0)
			sim_moved_note(c, (uint32_t)item.value);
		if (r == 0 && ++b->moved < b->n_moves) {
			item.key = b->moves[b->moved];
			r = heap_push(&c->moves, item);
		}
	}
	return r;
}

void sim_load_end(struct sim_cluster *c)
{
	for (uint32_t i = 0; c->buckets && i < c->config.buckets; i++) {
		free(c->buckets[i].at);
		free(c->buckets[i].moves);
	}
	heap_free(&c->moves);
}
