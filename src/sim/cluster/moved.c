/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moved: what the buckets of a simulated cluster get that move while their controller is gone.
 *
 * METHOD  For each move: the service in the first whole QoS period after it, and in the third, as a
 *         part of the reservation. A bucket that moves again before a period ends, or when the
 *         controller has come back by then, does not count there.
 */
#include "control/ids.h"
#include "sim/cluster/cluster.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PERIODS 3 /* whole periods that are tracked; the first and the last count */

struct sim_moved {
	struct watched {
		bool moved;      /* while the controller was gone */
		int periods;     /* ended since, including the one in which it moved */
		uint64_t served; /* at the start of the current one */
	} * buckets;
	/* For the first and the last of them: their number; the least part, and the sum of all. */
	struct {
		uint64_t n;
		double least, sum;
	} part[2];
};

int sim_moved_begin(struct sim_cluster *c)
{
	c->moved = calloc(1, sizeof(*c->moved));
	if (!c->moved)
		return -ENOMEM;
	c->moved->part[0].least = c->moved->part[1].least = INFINITY;
	c->moved->buckets = calloc(c->config.buckets, sizeof(*c->moved->buckets));
	return c->moved->buckets ? 0 : -ENOMEM;
}

void sim_moved_end(struct sim_cluster *c)
{
	if (!c->moved)
		return;
	free(c->moved->buckets);
	free(c->moved);
}

static bool is_gone(const struct sim_cluster *c)
{
	return c->config.back > c->config.kill + 1 && c->now >= c->config.kill &&
	       c->now < c->config.back;
}

static uint64_t served(const struct sim_cluster *c, uint32_t bucket)
{
	uint64_t sum = 0;

	for (uint32_t s = 0; s < c->config.servers; s++) {
		size_t at = ids_find(c->pairs, (uint64_t)bucket << 32 | s);

		if (at != SIZE_MAX)
			sum += c->servers[s].places[at].served;
	}
	return sum;
}

void sim_moved_note(struct sim_cluster *c, uint32_t bucket)
{
	c->moved->buckets[bucket] = (struct watched){.moved = is_gone(c)};
}

static void count(struct sim_cluster *c, uint32_t bucket, bool last, uint64_t n)
{
	double part = (double)n / (double)c->buckets[bucket].reservation;

	c->moved->part[last].n++;
	c->moved->part[last].sum += fmin(part, 1);
	c->moved->part[last].least = fmin(c->moved->part[last].least, part);
}

void sim_moved_period(struct sim_cluster *c)
{
	for (uint32_t i = 0; is_gone(c) && i < c->config.buckets; i++) {
		struct watched *b = &c->moved->buckets[i];
		uint64_t now;

		if (!b->moved || !c->buckets[i].reservation)
			continue;
		now = served(c, i);
		if (b->periods == 1 || b->periods == PERIODS)
			count(c, i, b->periods == PERIODS, now - b->served);
		b->moved = b->periods++ < PERIODS;
		b->served = now;
	}
}

int sim_moved_report(struct sim_cluster *c)
{
	static const char *const names[] = {"first", "third"};

	for (int k = 0; k < 2 && c->moved->part[k].n; k++) {
		double n = (double)c->moved->part[k].n;

		metrics_putf(c->metrics, "", n, "%s.moved.%s.count", c->kind, names[k]);
		metrics_putf(c->metrics, "", c->moved->part[k].sum / n, "%s.moved.%s.mean", c->kind,
			names[k]);
		metrics_putf(c->metrics, "", c->moved->part[k].least, "%s.moved.%s.least", c->kind,
			names[k]);
	}
	return metrics_failed(c->metrics);
}
