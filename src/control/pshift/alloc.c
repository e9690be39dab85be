/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Y. Peng, Q. Liu, P. Varman, "Scalable QoS for Distributed Storage Clusters using Dynamic
 *         Token Allocation" (pShift), MSST 2019, §III.
 * LAW     Φ = Σ_j min(C^j, Σ_i min(a_i^j, d_i^j)) is maximal over all allocations with Σ_j
 *         a_i^j = min(R_i, D_i). Begin in proportion to demand (alloc-split.c), and while there is
 *         a shift path, from an overloaded server over brokers to an underloaded one, move tokens
 *         along it. A server j can give tokens of bucket i to k: min(a_i^j, d_i^k − a_i^k).
 * SYMBOLS tokens of all kinds in requests; gap of a server: Σ a − C, > 0 overloaded, < 0
 *         underloaded; level of a server: transfers on the shortest path to an underloaded one.
 * METHOD  alloc-shift.c. There is no map of server pairs: buckets are read one after the other.
 *         1. One pass removes every path of length 1: a bucket that is left without a pair of
 *            overloaded and underloaded servers never has one again. The pass lists the buckets
 *            that still have spare demand at underloaded servers; no other bucket ever will.
 *         2. Phases. The list shows which servers can give to underloaded ones, and at most how
 *            much: level 1. Then stages: overloaded servers give to level 1 what it can pass on,
 *            and level 1 passes it on. If no overloaded server can give to level 1, the same with
 *            one level more. A server that was given too much is overloaded itself; that allocation
 *            is as good, and the next phase starts from it. If few servers are overloaded after
 *            step 1, shortest paths from each are used instead (alloc-paths.c).
 *         3. Each phase moves tokens, or shows that none can be moved. If the list does not shrink
 *            fast, or tokens have to pass many servers, as along a chain, a push-relabel whose
 *            nodes are servers continues from there (alloc-general.c), after buckets of the same
 *            two servers were joined (alloc-pairs.c).
 *         Rows of up to 64 entries are processed in vectors (alloc-eight.h), rows of two without
 *         (alloc-two.h). On one core of 2.6 GHz 10,000 buckets on 64 servers take 0.6 ms with 2, 8
 *         or 9 entries each, 0.8 with 3, 1.2 with 16, 4 with 64; 8,000,000 entries take 60 ms.
 *         `weir bench pshift` measures every shape beside push-relabel.
 * DIFFERS The paper keeps a map of S² vectors of B numbers, updates it after each path, and finds
 *         paths one at a time (bench/reference/pshift-dense.c is a literal version). Shares are
 *         rounded by the largest remainder; the paper leaves that open. L-tokens need a floor, or a
 *         bucket's first request at an idle server would wait for the next interval; a bucket
 *         without a limit needs none.
 * EXAMPLE C = 100 100, R = 100 100, d = 150 50 and 50 50: split 75 25 and 50 50, gaps 25 and −25;
 *         25 of the first bucket move: 50 50 and 50 50, Φ = 200.
 */
#include "control/pshift/alloc-eight.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays */

int pshift_new(struct pshift **ret)
{
	struct pshift *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->eight = pshift_eight_best();
	*ret = p;
	return 0;
}

void pshift_free(struct pshift *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < PSHIFT_ARRAYS; i++)
		free(p->arrays[i].at);
	free(p);
}

size_t pshift_memory(const struct pshift *p)
{
	size_t sum = sizeof(*p);

	for (size_t i = 0; i < PSHIFT_ARRAYS; i++)
		sum += p->arrays[i].bytes;
	return sum;
}

void *pshift_array(struct pshift *p, enum pshift_array which, size_t n, size_t size)
{
	size_t bytes = (n ? n : 1) * size;

	if (p->arrays[which].bytes < bytes) {
		free(p->arrays[which].at);
		p->arrays[which].at = malloc(bytes);
		p->arrays[which].bytes = p->arrays[which].at ? bytes : 0;
	}
	return p->arrays[which].at;
}

int pshift_by_server(struct pshift *p, const struct pshift_flow *f)
{
	size_t entries = f->first[f->buckets];
	uint32_t *first = pshift_array(p, PSHIFT_OF_FIRST, f->servers + 2, sizeof(*first));
	struct pshift_own *of = pshift_array(p, PSHIFT_OF, entries + PSHIFT_PREFETCH, sizeof(*of));

	if (!first || !of)
		return -ENOMEM;
	/* Count one place up, so that filling moves each to its place. */
	memset(first, 0, (f->servers + 2) * sizeof(*first));
	for (size_t e = 0; e < entries; e++)
		first[f->server[e] + 2]++;
	for (size_t j = 2; j < f->servers + 2; j++)
		first[j] += first[j - 1];
	for (uint32_t i = 0; i < f->buckets; i++) {
		for (uint32_t e = f->first[i]; e < f->first[i + 1]; e++)
			of[first[f->server[e] + 1]++] = (struct pshift_own){e, i};
	}
	memset(of + entries, 0, PSHIFT_PREFETCH * sizeof(*of));
	return 0;
}

/* ---- is the input in order? */

static bool in_range(int64_t x)
{
	return x >= 0 && x <= PSHIFT_MOST;
}

static bool limited(const struct pshift_input *in, size_t i)
{
	return in->limit && in->limit[i] != PSHIFT_NO_LIMIT;
}

/* Return the wrong entry, or `end`; `seen` of each server: the last bucket, from 1, that was
 * there. */
static uint32_t wrong_entry(const struct pshift_input *in, size_t i, uint32_t *seen)
{
	uint32_t e = in->first[i];

	for (; e < in->first[i + 1]; e++) {
		uint32_t j = in->server[e];

		if (j >= in->servers || seen[j] == i + 1 || !in_range(in->demand[e]))
			break;
		seen[j] = (uint32_t)i + 1;
	}
	return e;
}

/* Return the demand of bucket i: at most PSHIFT_SUM, so that a sum of two cannot overflow. */
static int64_t demand_of(const struct pshift_input *in, size_t i)
{
	int64_t sum = 0;

	for (uint32_t e = in->first[i]; e < in->first[i + 1] && sum < PSHIFT_SUM; e++)
		sum += in->demand[e];
	return sum < PSHIFT_SUM ? sum : PSHIFT_SUM;
}

/* Check first[]; only then the last element is the number of entries. */
static bool ascends(const struct pshift_input *in)
{
	for (size_t i = 0; i < in->buckets; i++) {
		if (in->first[i + 1] < in->first[i])
			return false;
	}
	return in->first[0] == 0;
}

static int check_bucket(const struct pshift_input *in, size_t i, uint32_t *seen, int64_t *asked,
	int64_t *allowed, size_t *ret_entry)
{
	int64_t demand;
	uint32_t e;

	if (!in_range(in->reservation[i]) || (limited(in, i) && !in_range(in->limit[i])))
		return -EINVAL;
	e = wrong_entry(in, i, seen);
	if (e < in->first[i + 1]) {
		*ret_entry = e;
		return -EINVAL;
	}
	demand = demand_of(in, i);
	*asked += in->reservation[i] < demand ? in->reservation[i] : demand;
	if (limited(in, i) &&
		in->floor > 0) /* which counts as demand; the limit is less, or near */
		*allowed += in->limit[i];
	else if (limited(in, i))
		*allowed += in->limit[i] < demand ? in->limit[i] : demand;
	return *asked > PSHIFT_SUM || *allowed > PSHIFT_SUM ? -ERANGE : 0;
}

int pshift_check(
	struct pshift *p, const struct pshift_input *in, size_t *ret_bucket, size_t *ret_entry)
{
	uint32_t *seen;
	int64_t asked = 0, allowed = 0;
	size_t bucket = SIZE_MAX, entry = SIZE_MAX;
	int r = 0;

	if (ret_bucket)
		*ret_bucket = bucket;
	if (ret_entry)
		*ret_entry = entry;
	if (in->servers > PSHIFT_SERVERS || in->buckets >= PSHIFT_ENTRIES ||
		(size_t)in->first[in->buckets] > PSHIFT_ENTRIES)
		return -ERANGE;
	seen = pshift_array(p, PSHIFT_LEVEL, in->servers, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	memset(seen, 0, in->servers * sizeof(*seen));
	for (size_t j = 0; j < in->servers; j++) {
		if (!in_range(in->capacity[j]))
			return -EINVAL;
	}
	if (!ascends(in) || !in_range(in->floor))
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < in->buckets; i++) {
		r = check_bucket(in, i, seen, &asked, &allowed, &entry);
		bucket = i;
	}
	if (r && ret_bucket)
		*ret_bucket = bucket;
	if (r && ret_entry)
		*ret_entry = entry;
	return r;
}

/* ---- placing tokens, of either kind */

static int flow_begin(struct pshift *p, const struct pshift_input *in, const int64_t *capacity,
	struct pshift_flow *f)
{
	f->servers = in->servers;
	f->buckets = in->buckets;
	f->first = in->first;
	f->server = in->server;
	f->gap = pshift_array(p, PSHIFT_GAP, in->servers, sizeof(*f->gap));
	if (!f->gap)
		return -ENOMEM;
	for (size_t j = 0; j < in->servers; j++)
		f->gap[j] = -capacity[j];
	return 0;
}

static int place(struct pshift *p, const struct pshift_split *s, const struct pshift_options *o)
{
	int r = pshift_split(p, s, o->parallel);

	if (r)
		return r;
	for (size_t j = 0; j < s->flow->servers; j++)
		s->flow->before += s->flow->gap[j] > 0 ? s->flow->gap[j] : 0;
	return o->top ? pshift_top(p, s->flow, o->top) : pshift_shift(p, s->flow);
}

/* Return Σ over servers of min(capacity, tokens). */
static int64_t consumed(const struct pshift_flow *f, const int64_t *capacity)
{
	int64_t sum = 0;

	for (size_t j = 0; j < f->servers; j++)
		sum += capacity[j] + (f->gap[j] < 0 ? f->gap[j] : 0);
	return sum;
}

/* Return the most R-tokens of a bucket, if it has the demand. */
static int64_t most(const struct pshift_input *in, size_t i)
{
	return limited(in, i) && in->limit[i] < in->reservation[i] ? in->limit[i]
								   : in->reservation[i];
}

const int64_t *pshift_wanted(struct pshift *p, const struct pshift_input *in)
{
	int64_t *want;

	if (!in->limit)
		return in->reservation;
	want = pshift_array(p, PSHIFT_WANT, in->buckets, sizeof(*want));
	for (size_t i = 0; want && i < in->buckets; i++)
		want[i] = most(in, i);
	return want;
}

static int place_r(struct pshift *p, const struct pshift_input *in, const struct pshift_options *o,
	int64_t *tokens, struct pshift_result *ret)
{
	struct pshift_flow f = {.demand = in->demand, .tokens = tokens};
	struct pshift_split s = {
		.flow = &f, .warm = o->warm, .changed = o->changed, .n_changed = o->n_changed};
	int64_t *excess = pshift_array(p, PSHIFT_EXCESS, in->servers, sizeof(*excess));
	uint64_t all = 0; /* unsigned: may exceed a sum of tokens */
	int r = flow_begin(p, in, in->capacity, &f);

	s.want = pshift_wanted(p, in);
	if (r || !excess || (!s.want && in->buckets > 0))
		return -ENOMEM;
	r = place(p, &s, o);
	if (r)
		return r;
	*ret = (struct pshift_result){
		.excess = excess, .before = f.before, .passes = f.passes, .general = f.general};
	for (size_t i = 0; i < in->buckets; i++)
		all += (uint64_t)s.want[i];
	ret->phi = consumed(&f, in->capacity);
	for (size_t j = 0; j < in->servers; j++) {
		excess[j] = f.gap[j] > 0 ? f.gap[j] : 0;
		ret->asked += f.gap[j] + in->capacity[j];
	}
	ret->unasked = (int64_t)(all - (uint64_t)ret->asked);
	return 0;
}

/* ---- L-tokens, on what is left */

struct residue {
	const struct pshift_input *in;
	const int64_t *rtokens;
	int64_t *ltokens;  /* in: an earlier allocation, or nothing; out: without the floor's */
	int64_t *demand;   /* out: less R-tokens and floor */
	int64_t *capacity; /* in: the servers'; out: less the consumption of R-tokens and floor */
	int64_t *want;     /* out: of each bucket */
	bool warm;
};

/* Return the floor at entry x, from 0, of n, when `left` are left of the limit. */
static int64_t floor_at(const struct pshift_input *in, int64_t left, size_t n, size_t x)
{
	int64_t each = left / (int64_t)n;

	return each >= in->floor ? in->floor : each + ((int64_t)x < left % (int64_t)n);
}

static int64_t limit_left(const struct residue *u, size_t i)
{
	int64_t left = u->in->limit[i];

	for (uint32_t e = u->in->first[i]; e < u->in->first[i + 1]; e++)
		left -= u->rtokens[e];
	return left;
}

static void residue_bucket(struct residue *u, size_t i)
{
	const struct pshift_input *in = u->in;
	uint32_t first = in->first[i], n = in->first[i + 1] - first;
	bool some = limited(in, i);
	int64_t left = some ? limit_left(u, i) : 0;

	u->want[i] = left;
	for (uint32_t x = 0; x < n; x++) {
		uint32_t e = first + x, j = in->server[e];
		int64_t spare = in->demand[e] - u->rtokens[e];
		int64_t floor = some ? floor_at(in, left, n, x) : 0;
		int64_t used = spare < floor ? spare : floor;

		u->demand[e] = some ? spare - used : 0;
		u->want[i] -= floor;
		u->capacity[j] -= u->rtokens[e] + used;
		if (u->capacity[j] < 0)
			u->capacity[j] = 0;
		u->ltokens[e] = u->warm && u->ltokens[e] >= floor ? u->ltokens[e] - floor : 0;
	}
}

static void add_floor(const struct residue *u, size_t i)
{
	const struct pshift_input *in = u->in;
	uint32_t first = in->first[i], n = in->first[i + 1] - first;
	int64_t left = limit_left(u, i);

	for (uint32_t x = 0; x < n; x++)
		u->ltokens[first + x] += floor_at(in, left, n, x);
}

static int place_l(struct pshift *p, const struct pshift_input *in, const struct pshift_options *o,
	const int64_t *rtokens, int64_t *ltokens, int64_t *ret_lphi)
{
	struct residue u = {in, rtokens, ltokens, .warm = o->warm};
	struct pshift_options own = {.parallel = o->parallel, .top = o->top};
	struct pshift_flow f = {.tokens = ltokens};
	struct pshift_split s = {.flow = &f, .warm = o->warm};
	int r;

	u.demand = pshift_array(p, PSHIFT_DEMAND, in->first[in->buckets], sizeof(*u.demand));
	u.capacity = pshift_array(p, PSHIFT_CAPACITY, in->servers, sizeof(*u.capacity));
	s.want = u.want = pshift_array(p, PSHIFT_WANT, in->buckets, sizeof(*u.want));
	if (!u.demand || !u.capacity || !u.want)
		return -ENOMEM;
	for (size_t j = 0; j < in->servers; j++)
		u.capacity[j] = in->capacity[j];
	for (size_t i = 0; i < in->buckets; i++)
		residue_bucket(&u, i);
	f.demand = u.demand;
	r = flow_begin(p, in, u.capacity, &f);
	if (r == 0)
		r = place(p, &s, &own);
	if (r)
		return r;
	*ret_lphi = consumed(&f, u.capacity);
	for (size_t i = 0; in->floor > 0 && i < in->buckets; i++) {
		if (limited(in, i))
			add_floor(&u, i);
	}
	return 0;
}

static bool any_limit(const struct pshift_input *in)
{
	for (size_t i = 0; in->limit && i < in->buckets; i++) {
		if (in->limit[i] != PSHIFT_NO_LIMIT)
			return true;
	}
	return false;
}

int pshift_allocate(struct pshift *p, const struct pshift_input *in,
	const struct pshift_options *options, int64_t *rtokens, int64_t *ltokens,
	struct pshift_result *ret)
{
	static const struct pshift_options none;
	const struct pshift_options *o = options ? options : &none;
	struct pshift_result result;
	int r = place_r(p, in, o, rtokens, &result);

	if (r)
		return r;
	if (ltokens && any_limit(in)) {
		r = place_l(p, in, o, rtokens, ltokens, &result.lphi);
	} else if (ltokens) {
		for (uint32_t e = 0; e < in->first[in->buckets]; e++)
			ltokens[e] = 0;
	}
	if (r == 0)
		*ret = result;
	return r;
}
