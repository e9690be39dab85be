/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  None: parallel arcs of a flow network are one arc.
 * LAW     A bucket that is active at two servers j and k can give min(tokens at j, spare demand at
 *         k) from j to k, and min(tokens at k, spare demand at j) back; each move can be undone. So
 *         all buckets of the same two servers are one bucket with tokens and spare demand of these
 *         sums.
 * SYMBOLS as in alloc.c; sums are at most Σ tokens.
 * METHOD  The bucket of each pair of servers is found by hashing. It gives up after an eighth of
 *         the buckets if nearly all of them had a new pair. The moves of a joint bucket are made by
 *         its buckets, in order. O(entries).
 * EXAMPLE 100,000 buckets along a chain of 1,000 servers: 999 joint buckets.
 */
#include "control/pshift/alloc-two.h"
#include <errno.h>
#include <string.h>

#define NONE UINT32_MAX

struct pairs {
	const struct pshift_flow *f;
	/* The joint buckets. */
	size_t n;
	uint32_t *first, *server;
	int64_t *demand, *tokens;
	int64_t *was;       /* of each: tokens at the lesser server before anything was moved */
	uint32_t *joint_of; /* of each bucket */
	uint32_t *table, mask;
};

/* Get the entries of bucket i at the lesser of its servers, and at the other. */
static void ends(const struct pshift_flow *f, size_t i, uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t e = f->first[i], swap = f->server[e] > f->server[e + 1];

	*ret_low = e + swap;
	*ret_high = e + 1 - swap;
}

/* Return the tokens that entry e can give to entry `to`. */
static int64_t can_give(const struct pshift_flow *f, uint32_t e, uint32_t to)
{
	return pshift_least(f->tokens[e], f->demand[to] - f->tokens[to]);
}

static void give(const struct pshift_flow *f, uint32_t e, uint32_t to, int64_t n)
{
	f->tokens[e] -= n;
	f->tokens[to] += n;
}

static bool is_pair(const struct pshift_flow *f, size_t i)
{
	return f->first[i + 1] - f->first[i] == 2;
}

/* Find or make the joint bucket of servers j < k. */
static uint32_t find(struct pairs *p, uint32_t j, uint32_t k)
{
	uint32_t at = (uint32_t)(((uint64_t)j << 32 | k) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
	uint32_t b, e;

	for (;; at++) {
		b = p->table[at & p->mask];
		if (b == NONE)
			break;
		if (p->server[p->first[b]] == j && p->server[p->first[b] + 1] == k)
			return b;
	}
	b = (uint32_t)p->n++;
	p->table[at & p->mask] = b;
	e = p->first[b];
	p->first[b + 1] = e + 2;
	p->server[e] = j;
	p->server[e + 1] = k;
	p->tokens[e] = p->tokens[e + 1] = 0;
	return b;
}

static void add_pair(struct pairs *p, size_t i)
{
	const struct pshift_flow *f = p->f;
	uint32_t low, high, b, e;

	ends(f, i, &low, &high);
	b = find(p, f->server[low], f->server[high]);
	e = p->first[b];
	p->tokens[e] += can_give(f, low, high);
	p->tokens[e + 1] += can_give(f, high, low);
	p->demand[e] = p->demand[e + 1] = p->tokens[e] + p->tokens[e + 1];
	p->was[b] = p->tokens[e];
	p->joint_of[i] = b;
}

/* Copy a bucket of more or fewer servers. */
static void add_other(struct pairs *p, size_t i)
{
	const struct pshift_flow *f = p->f;
	uint32_t from = f->first[i], n = f->first[i + 1] - from, e = p->first[p->n];

	memcpy(p->server + e, f->server + from, n * sizeof(*p->server));
	memcpy(p->demand + e, f->demand + from, n * sizeof(*p->demand));
	memcpy(p->tokens + e, f->tokens + from, n * sizeof(*p->tokens));
	p->joint_of[i] = (uint32_t)p->n++;
	p->first[p->n] = e + n;
}

static int begin(struct pshift *p, const struct pshift_flow *f, struct pairs *ret)
{
	size_t entries = f->first[f->buckets], slots = 2;

	while (slots < 2 * f->buckets)
		slots *= 2;
	*ret = (struct pairs){.f = f, .mask = (uint32_t)slots - 1};
	ret->first = pshift_array(p, PSHIFT_PAIR_FIRST, f->buckets + 1, sizeof(*ret->first));
	ret->server = pshift_array(p, PSHIFT_PAIR_SERVER, entries, sizeof(*ret->server));
	ret->demand = pshift_array(p, PSHIFT_PAIR_DEMAND, entries, sizeof(*ret->demand));
	ret->tokens = pshift_array(p, PSHIFT_PAIR_TOKENS, entries, sizeof(*ret->tokens));
	ret->was = pshift_array(p, PSHIFT_PAIR_WAS, f->buckets, sizeof(*ret->was));
	ret->joint_of = pshift_array(p, PSHIFT_PAIR_OF, f->buckets, sizeof(*ret->joint_of));
	ret->table = pshift_array(p, PSHIFT_PAIR_TABLE, slots, sizeof(*ret->table));
	if (!ret->first || !ret->server || !ret->demand || !ret->tokens || !ret->was ||
		!ret->joint_of || !ret->table)
		return -ENOMEM;
	memset(ret->table, 0xff, slots * sizeof(*ret->table));
	ret->first[0] = 0;
	return 0;
}

static bool mostly_pairs(const struct pshift_flow *f)
{
	size_t pairs = 0;

	for (size_t i = 0; i < f->buckets; i++)
		pairs += is_pair(f, i);
	return pairs > f->buckets / 2;
}

int pshift_join(struct pshift *p, const struct pshift_flow *f, struct pshift_flow *ret)
{
	struct pairs pairs;
	int r;

	if (!mostly_pairs(f))
		return 0;
	r = begin(p, f, &pairs);
	for (size_t i = 0; r == 0 && i < f->buckets; i++) {
		if (is_pair(f, i))
			add_pair(&pairs, i);
		else
			add_other(&pairs, i);
		if (i == f->buckets / 8 && pairs.n > i - i / 8)
			return 0;
	}
	if (r)
		return r;
	*ret = *f;
	ret->buckets = pairs.n;
	ret->first = pairs.first;
	ret->server = pairs.server;
	ret->demand = pairs.demand;
	ret->tokens = pairs.tokens;
	return 1;
}

void pshift_part(struct pshift *p, const struct pshift_flow *joint, struct pshift_flow *f)
{
	const uint32_t *joint_of = p->arrays[PSHIFT_PAIR_OF].at;
	int64_t *was = p->arrays[PSHIFT_PAIR_WAS].at;

	for (size_t i = 0; i < f->buckets; i++) {
		uint32_t b = joint_of[i], e = joint->first[b], low, high;
		int64_t down, up;

		if (!is_pair(f, i)) {
			memcpy(f->tokens + f->first[i], joint->tokens + e,
				(f->first[i + 1] - f->first[i]) * sizeof(*f->tokens));
			continue;
		}
		ends(f, i, &low, &high);
		up = pshift_least0(was[b] - joint->tokens[e], can_give(f, low, high));
		down = pshift_least0(joint->tokens[e] - was[b], can_give(f, high, low));
		give(f, low, high, up - down);
		was[b] += down - up;
	}
}
