/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  pShift §III-B, Algorithm 3; the remainders by Hamilton's method, which the paper leaves
 *         open.
 * LAW     A_i = min(R_i, D_i), a_i^j = A_i d_i^j / D_i rounded down, and one more for those with the
 *         largest remainders, ties by position, until Σ_j a_i^j = A_i. Then a ≤ d: it is prudent.
 * SYMBOLS A, R, D, d, a in tokens; the remainder of a is A d − a D, 0 … D − 1.
 * METHOD  One division a bucket. a is estimated by a product of doubles, which is off by a few at
 *         most, and its remainder is computed modulo 2⁶⁴, which is exact since it is small; then both
 *         are put right. Where D is past 2⁶⁰ each entry is divided, in 128 bits. About 6 ns an entry.
 *         Parts of the buckets have sums of their own, which are added up at the end: whole numbers,
 *         so that it does not matter how many parts there are.
 * DIFFERS The paper's parallel loops are elsewhere (§III-C1): our sparse version has no map to make,
 *         and this pass is what is left that is independent.
 * EXAMPLE A = 10, d = 5 5 5: shares 3.33 each, tokens 4 3 3.
 */
#include "alg/pshift-impl.h"
#include <errno.h>
#include <string.h>

#define DIVIDE     ((int64_t)1 << 60) /* from such a sum of demand on 4 D may not fit 63 bits */
#define SMALL      ((int64_t)1 << 20) /* what a float keeps, with a bit to spare */
#define PART       ((size_t)1 << 15)  /* entries that are worth a thread's while */
#define PARTS_MOST 64
__extension__ typedef __int128 wide;
typedef int32_t lanes __attribute__((vector_size(16)));
typedef uint32_t bits __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));

/* ---- the largest remainders */

/* Eight entries of a demand below SMALL, in two vectors of four: what shares() and add_many() do for any.
 * Ranks are counted, all with all and without branches, since remainders are as good as random; its
 * place makes each remainder unique. */
static inline lanes eight_share(lanes d, int32_t a, int32_t sum, float ratio, lanes *rest)
{
	lanes q = __builtin_convertvector(__builtin_convertvector(d, floats) * ratio, lanes);
	/* Modulo 2³², which is exact since it is small. */
	lanes r = (lanes)((bits)d * (uint32_t)a - (bits)q * (uint32_t)sum);
	lanes low = r >= sum; /* true is −1 */

	*rest = r - (sum & low);
	return q - low;
}

#define RANK(from, i)                                                                              \
	do {                                                                                       \
		lanes one = __builtin_shufflevector(from, from, i, i, i, i);                       \
		before[0] -= one > key[0];                                                         \
		before[1] -= one > key[1];                                                         \
	} while (0)

static void eight(const int64_t *d, int32_t a, int32_t sum, int64_t *tokens)
{
	/* Too small by more than rounding can add, and by less than 1 in all: see SMALL. */
	float ratio = (float)a / (float)sum * (1 - 0x1p-21f);
	lanes place[2] = {{7, 6, 5, 4}, {3, 2, 1, 0}}, before[2] = {{0}, {0}}, q[2], key[2], all;
	int32_t left;

	for (int h = 0; h < 2; h++) {
		lanes four = {(int32_t)d[4 * h], (int32_t)d[4 * h + 1], (int32_t)d[4 * h + 2],
			(int32_t)d[4 * h + 3]};

		q[h] = eight_share(four, a, sum, ratio, &key[h]);
		key[h] = key[h] * 8 + place[h];
	}
	all = q[0] + q[1];
	left = a - (all[0] + all[1] + all[2] + all[3]);
	RANK(key[0], 0);
	RANK(key[0], 1);
	RANK(key[0], 2);
	RANK(key[0], 3);
	RANK(key[1], 0);
	RANK(key[1], 1);
	RANK(key[1], 2);
	RANK(key[1], 3);
	for (int h = 0; h < 2; h++) {
		lanes t = q[h] - (before[h] < left);

		for (int k = 0; k < 4; k++)
			tokens[4 * h + k] = t[k];
	}
}

int64_t pshift_largest(int64_t *v, size_t n, size_t rank)
{
	size_t lo = 0, hi = n - 1, k = rank - 1;

	while (lo < hi) {
		int64_t pivot = v[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;;) {
			while (v[i] > pivot)
				i++;
			while (v[j] < pivot)
				j--;
			if (i >= j)
				break;
			int64_t t = v[i];

			v[i++] = v[j];
			v[j--] = t;
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

/* `rest` n remainders and room for n more. */
static void add_many(int64_t *rest, size_t n, int64_t left, int64_t *tokens)
{
	int64_t *copy = rest + n, least;

	memcpy(copy, rest, n * sizeof(*copy));
	least = pshift_largest(copy, n, (size_t)left);
	for (size_t i = 0; i < n; i++) {
		left -= rest[i] > least;
		tokens[i] += rest[i] > least;
	}
	for (size_t i = 0; i < n && left > 0; i++) {
		left -= rest[i] == least;
		tokens[i] += rest[i] == least;
	}
}

/* ---- one bucket */

static int64_t shares(
	const int64_t *d, size_t n, int64_t a, int64_t sum, int64_t *tokens, int64_t *rest)
{
	/* Less than the quotient by more than rounding can add: an estimate is never too large. */
	double ratio = (double)a / (double)sum * (1 - 0x1p-50);
	int64_t given = 0;

	for (size_t k = 0; k < n; k++) {
		int64_t q = (int64_t)((double)d[k] * ratio);
		int64_t r = (int64_t)((uint64_t)a * (uint64_t)d[k] - (uint64_t)q * (uint64_t)sum);

		for (; r >= sum; r -= sum)
			q++;
		tokens[k] = q;
		rest[k] = r;
		given += q;
	}
	return given;
}

static int64_t shares_wide(
	const int64_t *d, size_t n, int64_t a, wide sum, int64_t *tokens, int64_t *rest)
{
	int64_t given = 0;
	int shift = 0;

	while (sum >> shift > INT64_MAX)
		shift++; /* remainders that differ only below these bits are ties */
	for (size_t k = 0; k < n; k++) {
		wide q = (wide)a * d[k] / sum;

		tokens[k] = (int64_t)q;
		rest[k] = (int64_t)(((wide)a * d[k] - q * sum) >> shift);
		given += (int64_t)q;
	}
	return given;
}

static wide sum_of(const int64_t *d, size_t n)
{
	wide sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += d[k];
	return sum;
}

/* Eight entries with little demand, as most have it; false: it is not so. */
static inline bool split_eight(const int64_t *d, int64_t want, int64_t *tokens)
{
	int64_t sum = d[0] + d[1] + d[2] + d[3] + d[4] + d[5] + d[6] + d[7];

	if (sum >= SMALL || want >= sum)
		return false;
	eight(d, (int32_t)want, (int32_t)sum, tokens);
	return true;
}

/* `rest`: room for 2n. What is wanted may be cut to the demand. */
static void split(const int64_t *d, size_t n, int64_t *want, int64_t *tokens, int64_t *rest)
{
	wide sum;
	int64_t left;

	if (n == 8 && split_eight(d, *want, tokens))
		return;
	if (n == 0 || *want == 0) {
		for (size_t k = 0; k < n; k++)
			tokens[k] = 0;
		*want = 0;
		return;
	}
	sum = sum_of(d, n);
	if (*want >= sum) {
		*want = (int64_t)sum;
		memcpy(tokens, d, n * sizeof(*tokens));
		return;
	}
	if (sum < DIVIDE)
		left = *want - shares(d, n, *want, (int64_t)sum, tokens, rest);
	else
		left = *want - shares_wide(d, n, *want, sum, tokens, rest);
	if (left > 0)
		add_many(rest, n, left, tokens);
}

/* Are these tokens still what a split could have given, or shifts have made of it? */
static bool right(const int64_t *d, size_t n, int64_t *want, const int64_t *tokens)
{
	int64_t sum = 0;
	bool prudent = true;

	for (size_t k = 0; k < n; k++) {
		prudent &= tokens[k] >= 0 && tokens[k] <= d[k] && sum <= *want;
		sum += prudent ? tokens[k] : 0;
	}
	if (!prudent || sum > *want)
		return false;
	if (sum < *want && sum < sum_of(d, n))
		return false;
	*want = sum;
	return true;
}

/* ---- all of them */

struct work {
	const struct pshift_split *s;
	int64_t *gaps; /* parts × servers */
	int64_t *rest; /* parts × longest row × 2 */
	size_t parts, longest;
};

/* Tokens that are to be taken as they are: want is what they are. */
static void keep(int64_t *want, const int64_t *tokens, size_t n)
{
	int64_t sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += tokens[k];
	*want = sum;
}

/* The tokens of bucket b, in the sums of its servers and in its masks. */
static void count(struct pshift_flow *f, size_t b, int64_t *restrict gap)
{
	const uint32_t *restrict server = f->server;
	const int64_t *restrict demand = f->demand, *restrict tokens = f->tokens;
	uint64_t all = 0;
	bool none = false, full = false;

	for (uint32_t e = f->first[b], end = f->first[b + 1]; e < end; e++) {
		uint32_t j = server[e];
		int64_t t = tokens[e];

		gap[j] += t;
		all |= PSHIFT_BIT(j);
		none |= t == 0;
		full |= demand[e] == t;
	}
	f->has[b] = f->can[b] = all;
	if (none || full) /* few: else each entry has some and could have more */
		pshift_masks(f, b);
}

static void part(void *arg, size_t i)
{
	struct work *w = arg;
	const struct pshift_split *s = w->s;
	struct pshift_flow *f = s->flow;
	int64_t *gap = w->gaps + i * f->servers, *rest = w->rest + i * w->longest * 2;
	size_t b = f->buckets * i / w->parts, end = f->buckets * (i + 1) / w->parts;
	size_t c = 0;

	while (s->changed && c < s->n_changed && s->changed[c] < b)
		c++;
	memset(gap, 0, f->servers * sizeof(*gap));
	for (; b < end; b++) {
		size_t at = f->first[b], n = f->first[b + 1] - at;
		const int64_t *d = f->demand + at;
		int64_t *t = f->tokens + at;
		bool same = s->warm && s->changed && (c == s->n_changed || s->changed[c] != b);

		if (same)
			keep(&s->want[b], t, n);
		else if (!s->warm || !right(d, n, &s->want[b], t))
			split(d, n, &s->want[b], t, rest);
		c += s->changed && !same;
		count(f, b, gap);
	}
}

static size_t longest_row(const struct pshift_flow *f)
{
	size_t most = 1;

	for (size_t b = 0; b < f->buckets; b++) {
		size_t n = f->first[b + 1] - f->first[b];

		most = n > most ? n : most;
	}
	return most;
}

int pshift_split(
	struct pshift *p, const struct pshift_split *s, const struct pshift_parallel *parallel)
{
	struct pshift_flow *f = s->flow;
	size_t entries = f->first[f->buckets];
	struct work w = {.s = s, .parts = 1, .longest = longest_row(f)};

	/* As many as the entries are worth; each has an array of servers to clear and to add. */
	if (parallel && entries / (f->servers + PART) > 1)
		w.parts = entries / (f->servers + PART);
	if (w.parts > PARTS_MOST)
		w.parts = PARTS_MOST;
	w.gaps = pshift_array(p, PSHIFT_PARTS, w.parts * f->servers, sizeof(*w.gaps));
	w.rest = pshift_array(p, PSHIFT_REST, w.parts * w.longest * 2, sizeof(*w.rest));
	if (!w.gaps || !w.rest)
		return -ENOMEM;
	if (w.parts > 1)
		parallel->run(parallel->pool, w.parts, part, &w);
	else
		part(&w, 0);
	for (size_t i = 0; i < w.parts; i++) {
		for (size_t j = 0; j < f->servers; j++)
			f->gap[j] += w.gaps[i * f->servers + j];
	}
	return 0;
}
