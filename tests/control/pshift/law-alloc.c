/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The promises of pshift.h on random inputs of all shapes: few and many servers and buckets, none
 * of either, no demand, no capacity, reservations above demand, numbers up to 2⁵³. Phi must equal
 * the result of two textbook max-flows; the cut is checked by adding up its groups. WEIR_SEED or an
 * argument gives another seed, a second argument the number of inputs.
 */
#include "bench/reference/maxflow.h"
#include "bench/reference/pshift-dense.h"
#include "control/pshift/alloc-impl.h"
#include "base/rng.h"
#include "test.h"
#include <inttypes.h>

#define SERVERS 140
#define BUCKETS 200
#define ENTRIES 4000

static struct rng rng;
static struct pshift *pshift;
static int64_t capacity[SERVERS], reservation[BUCKETS], limit[BUCKETS], demand[ENTRIES];
static uint32_t first[BUCKETS + 1], server[ENTRIES];
static int64_t rtokens[ENTRIES], ltokens[ENTRIES], again[ENTRIES], lagain[ENTRIES];
static struct pshift_input in;
static uint64_t input; /* number of the current input */

#define MUST(expr)                                                                                 \
	do {                                                                                       \
		if (!(expr))                                                                       \
			FAIL("input %" PRIu64 ": not so: %s", input, #expr);                       \
	} while (0)

/* ---- random inputs */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static size_t size(size_t most) /* mostly small */
{
	size_t n = rng_below(&rng, 20);

	if (n == 0)
		return 0;
	return n == 1 ? rng_below(&rng, most + 1) : 1 + rng_below(&rng, n < 10 ? 4 : 14);
}

static int64_t number(int64_t scale)
{
	switch (rng_below(&rng, 8)) {
	case 0:
		return 0;
	case 1:
		return scale;
	case 2:
		return (int64_t)rng_below(&rng, 4) % (scale + 1);
	default:
		return (int64_t)rng_below(&rng, (uint64_t)scale + 1);
	}
}

static void draw_row(size_t i, size_t active, int64_t scale)
{
	uint32_t n = first[i];
	size_t from = in.servers ? rng_below(&rng, in.servers) : 0;

	for (size_t k = 0; k < in.servers && n < first[i] + active && n < ENTRIES; k++) {
		if (rng_below(&rng, in.servers) >= 2 * active)
			continue;
		server[n] = (uint32_t)((from + k) % in.servers);
		demand[n++] = number(scale);
	}
	first[i + 1] = n;
}

/* Demand at neighbouring servers, in the order of the buckets: tokens have to move from one end
 * to the other. */
static void draw_chain(size_t i, size_t active, int64_t scale)
{
	size_t n = active < in.servers ? active : in.servers;
	size_t from = n ? i * (in.servers - n + 1) / in.buckets : 0;

	for (size_t k = 0; k < n; k++) {
		server[first[i] + k] = (uint32_t)(from + k);
		demand[first[i] + k] = number(scale);
	}
	first[i + 1] = first[i] + (uint32_t)n;
}

static void draw(void)
{
	static const int64_t scales[] = {1, 3, 10, 100, 100000, 3000000000, PSHIFT_MOST};
	int64_t scale = scales[rng_below(&rng, 7)];
	size_t active = 1 + rng_below(&rng, 8);
	bool limited = rng_below(&rng, 2), chain = rng_below(&rng, 4) == 0;

	in = (struct pshift_input){.servers = size(SERVERS), .buckets = size(BUCKETS)};
	if (chain)
		active = 2 + rng_below(&rng, 2);
	else if (rng_below(&rng, 5) == 0)
		active = SERVERS; /* everywhere: rows that are processed in blocks */
	in.capacity = capacity;
	in.reservation = reservation;
	in.first = first;
	in.server = server;
	in.demand = demand;
	in.limit = limited ? limit : NULL;
	in.floor = limited && rng_below(&rng, 2) ? number(least(scale, 1000)) : 0;
	for (size_t i = 0; i < in.buckets; i++) {
		reservation[i] = number(scale);
		limit[i] = rng_below(&rng, 3) ? number(scale) : PSHIFT_NO_LIMIT;
		if (chain)
			draw_chain(i, active, scale);
		else
			draw_row(i, active, scale);
	}
	/* About as much capacity as is reserved, sometimes much less or more. */
	for (size_t j = 0; j < in.servers; j++) {
		int64_t part = scale / (int64_t)in.servers + 1;

		capacity[j] =
			rng_below(&rng, 4)
				? number(least(PSHIFT_MOST, part * (int64_t)(1 + in.buckets / 2)))
				: number(scale);
		if (scale == PSHIFT_MOST)
			capacity[j] = number(scale);
	}
}

/* ---- checks */

static int64_t wanted(size_t i)
{
	int64_t sum = 0;

	for (uint32_t e = first[i]; e < first[i + 1]; e++)
		sum += demand[e];
	return least(sum, in.limit ? least(limit[i], reservation[i]) : reservation[i]);
}

/* Check that it is a flow within demand, capacities and reservations. Return its sum. */
static int64_t flow_of(const struct pshift_input *of, const struct maxflow *g)
{
	static int64_t flow[ENTRIES];
	int64_t load[SERVERS] = {0}, sum = 0;

	maxflow_tokens(of, g, flow);
	for (size_t i = 0; i < of->buckets; i++) {
		int64_t all = 0;

		for (uint32_t e = first[i]; e < first[i + 1]; e++) {
			MUST(flow[e] >= 0 && flow[e] <= of->demand[e]);
			all += flow[e];
			load[server[e]] += flow[e];
		}
		MUST(all <= of->reservation[i]);
		sum += all;
	}
	for (size_t j = 0; j < of->servers; j++)
		MUST(load[j] <= of->capacity[j]);
	return sum;
}

static int64_t max_flow(const struct pshift_input *of)
{
	struct maxflow g;
	int64_t push, ways;

	MUST(maxflow_new(of, &g) == 0);
	push = maxflow_push_relabel(&g);
	MUST(push == flow_of(of, &g));
	maxflow_reset(of, &g);
	ways = maxflow_edmonds_karp(&g);
	MUST(ways == flow_of(of, &g));
	maxflow_free(&g);
	MUST(push == ways);
	return push;
}

static int64_t consumed(const int64_t *tokens, const int64_t *can)
{
	int64_t load[SERVERS] = {0}, sum = 0;

	for (uint32_t e = 0; e < first[in.buckets]; e++)
		load[server[e]] += tokens[e];
	for (size_t j = 0; j < in.servers; j++)
		sum += least(load[j], can[j]);
	return sum;
}

static void check_r(const int64_t *tokens, const struct pshift_result *result)
{
	int64_t asked = 0, excess = 0;

	for (size_t i = 0; i < in.buckets; i++) {
		int64_t sum = 0;

		for (uint32_t e = first[i]; e < first[i + 1]; e++) {
			MUST(tokens[e] >= 0 && tokens[e] <= demand[e]);
			sum += tokens[e];
		}
		MUST(sum == wanted(i));
		asked += sum;
	}
	for (size_t j = 0; j < in.servers; j++)
		excess += result->excess[j];
	MUST(result->phi == consumed(tokens, capacity));
	MUST(result->asked == asked);
	MUST(excess == asked - result->phi);
}

/* Check the L-tokens of bucket i. Left beyond the floor: `spare` of its demand, `want` of its
 * limit, `can` of the servers. */
static void check_l_bucket(
	size_t i, const int64_t *r, const int64_t *l, int64_t *spare, int64_t *want, int64_t *can)
{
	int64_t left = in.limit ? limit[i] : PSHIFT_NO_LIMIT, most = 0, sum = 0;
	bool has = left != PSHIFT_NO_LIMIT;
	int64_t n = first[i + 1] - first[i];

	for (uint32_t e = first[i]; e < first[i + 1]; e++)
		left -= r[e];
	*want = has ? left : 0;
	for (uint32_t e = first[i]; e < first[i + 1]; e++) {
		int64_t some = demand[e] - r[e], top = some > in.floor ? some : in.floor;
		int64_t low = left / n + (e - first[i] < (uint64_t)(left % n));

		low = has ? least(in.floor, low) : 0;
		MUST(l[e] >= low && l[e] <= (has ? top : 0));
		most = least(most + top, PSHIFT_SUM);
		sum += l[e];
		*want -= low;
		spare[e] = has ? some - least(low, some) : 0;
		can[server[e]] -= least(can[server[e]], r[e] + least(low, some));
	}
	MUST(sum == (has ? least(left, most) : 0));
}

static void check_l(const int64_t *r, const int64_t *l, const struct pshift_result *result)
{
	static int64_t spare[ENTRIES], can[SERVERS], want[BUCKETS];
	struct pshift_input rest = in;

	memcpy(can, capacity, sizeof(can));
	for (size_t i = 0; i < in.buckets; i++)
		check_l_bucket(i, r, l, spare, &want[i], can);
	rest.capacity = can;
	rest.reservation = want;
	rest.limit = NULL;
	rest.demand = spare;
	MUST(result->lphi == max_flow(&rest));
	if (in.floor == 0)
		MUST(result->lphi == consumed(l, can));
}

/* Add up each group from the input alone. */
static void check_cut(const int64_t *tokens, const struct pshift_result *result)
{
	struct pshift_cut cut;
	int64_t missing = 0;

	MUST(pshift_explain(pshift, &in, tokens, &cut) == 0);
	for (size_t g = 0; g < cut.n; g++) {
		int64_t needed = 0, can = 0;

		for (size_t j = 0; j < in.servers; j++)
			can += cut.server[j] == g ? capacity[j] : 0;
		for (size_t i = 0; i < in.buckets; i++) {
			int64_t elsewhere = 0;

			for (uint32_t e = first[i]; e < first[i + 1]; e++)
				elsewhere += cut.server[server[e]] == g ? 0 : demand[e];
			if (cut.bucket[i] == g)
				needed += wanted(i) - elsewhere;
		}
		MUST(needed == cut.groups[g].needed);
		MUST(can == cut.groups[g].capacity);
		MUST(needed > can);
		MUST(cut.groups[g].buckets > 0 && cut.groups[g].servers > 0);
		missing += needed - can;
	}
	MUST(missing == result->asked - result->phi);
}

/* ---- ways to allocate */

static void backwards(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg)
{
	while (parts > 0)
		part(arg, --parts);
}

static void cold(struct pshift_result *ret)
{
	int64_t phi;

	MUST(pshift_check(pshift, &in, NULL, NULL) == 0);
	MUST(pshift_allocate(pshift, &in, NULL, rtokens, ltokens, ret) == 0);
	check_r(rtokens, ret);
	MUST(ret->phi == max_flow(&in));
	check_cut(rtokens, ret);
	MUST(pshift_allocate(pshift, &in, NULL, rtokens, ltokens, ret) == 0);
	check_l(rtokens, ltokens, ret);
	if (pshift_dense(&in, NULL, again, NULL, &phi) == 0) {
		MUST(phi == ret->phi);
		MUST(consumed(again, capacity) == phi);
	}
}

/* The general algorithm alone, from the split on: few inputs need it. */
static void general(const struct pshift_result *best)
{
	static int64_t gap[SERVERS], want[BUCKETS];
	struct pshift_flow f = {.servers = in.servers,
		.buckets = in.buckets,
		.first = first,
		.server = server,
		.demand = demand,
		.tokens = again,
		.gap = gap};
	struct pshift_split s = {.flow = &f, .want = want};

	for (size_t j = 0; j < in.servers; j++)
		gap[j] = -capacity[j];
	for (size_t i = 0; i < in.buckets; i++)
		want[i] = wanted(i);
	MUST(pshift_split(pshift, &s, NULL) == 0);
	MUST(pshift_general(pshift, &f) == 0);
	MUST(consumed(again, capacity) == best->phi);
}

static void top(const struct pshift_result *best)
{
	struct pshift_options o = {.top = 1 + rng_below(&rng, 4)};
	struct pshift_result result;

	MUST(pshift_allocate(pshift, &in, &o, again, NULL, &result) == 0);
	check_r(again, &result);
	MUST(result.phi <= best->phi);
	o.top = in.buckets + 1;
	MUST(pshift_allocate(pshift, &in, &o, again, NULL, &result) == 0);
	MUST(result.phi == best->phi);
}

/* Some demands change, and perhaps a capacity; a warm start reaches the optimum again. */
static void warm(void)
{
	uint32_t changed[BUCKETS];
	struct pshift_options o = {.warm = true, .changed = changed};
	struct pshift_result result;

	for (uint32_t i = 0; i < in.buckets; i++) {
		if (rng_below(&rng, 4))
			continue;
		changed[o.n_changed++] = i;
		for (uint32_t e = first[i]; e < first[i + 1]; e++)
			demand[e] = rng_below(&rng, 2) ? demand[e] / 2 : demand[e];
		reservation[i] -= reservation[i] / 4;
	}
	if (in.servers)
		capacity[rng_below(&rng, in.servers)] /= 2;
	memcpy(again, rtokens, sizeof(again));
	memcpy(lagain, ltokens, sizeof(lagain));
	MUST(pshift_allocate(pshift, &in, &o, again, lagain, &result) == 0);
	check_r(again, &result);
	MUST(result.phi == max_flow(&in));
	check_l(again, lagain, &result);
	o.changed = NULL;
	MUST(pshift_allocate(pshift, &in, &o, rtokens, ltokens, &result) == 0);
	check_r(rtokens, &result);
	MUST(result.phi == max_flow(&in));
	check_l(rtokens, ltokens, &result);
}

/* Any tokens are safe as a warm start. */
static void warm_from_nonsense(void)
{
	struct pshift_options o = {.warm = true};
	struct pshift_result result;

	for (uint32_t e = 0; e < first[in.buckets]; e++) {
		again[e] = (int64_t)rng_u64(&rng);
		lagain[e] = (int64_t)rng_u64(&rng);
	}
	MUST(pshift_allocate(pshift, &in, &o, again, lagain, &result) == 0);
	check_r(again, &result);
	check_l(again, lagain, &result);
}

/* Parts in another order, as threads might run them, give the same result. */
static void in_parts(void)
{
	struct pshift_parallel parallel = {backwards, NULL};
	struct pshift_options o = {.parallel = &parallel};
	struct pshift_result result;

	MUST(pshift_allocate(pshift, &in, &o, again, lagain, &result) == 0);
	MUST(memcmp(again, rtokens, first[in.buckets] * sizeof(*again)) == 0);
	MUST(memcmp(lagain, ltokens, first[in.buckets] * sizeof(*again)) == 0);
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : getenv("WEIR_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : 1, short_ones = 0;
	uint64_t inputs = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000;

	printf("seed %" PRIu64 ", %" PRIu64 " inputs\n", seed, inputs);
	rng_init(&rng, seed, "law-pshift");
	CHECK_INT(pshift_new(&pshift), 0);
	for (input = 0; input < inputs; input++) {
		struct pshift_result result;

		draw();
		cold(&result);
		short_ones += result.phi < result.asked;
		in_parts();
		general(&result);
		top(&result);
		warm_from_nonsense();
		warm();
	}
	printf("%" PRIu64 " could not be met\n", short_ones);
	CHECK(short_ones > inputs / 20 && short_ones < inputs - inputs / 20);
	pshift_free(pshift);
	return 0;
}
