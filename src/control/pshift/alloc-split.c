/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  pShift §III-B, Algorithm 3; the remainders by Hamilton's method, which the paper leaves
 *         open.
 * LAW     A_i = min(R_i, D_i), a_i^j = A_i d_i^j / D_i rounded down, and one more for the entries
 *         with the largest remainders, ties by position, until Σ_j a_i^j = A_i. Then a ≤ d.
 * SYMBOLS A, R, D, d, a in tokens; the remainder of a is A d − a D, 0 … D − 1.
 * METHOD  One division a bucket. a is estimated by a product of doubles, which is off by a few at
 *         most, and its remainder is computed modulo 2⁶⁴, which is exact since it is small; then
 *         both are corrected. If D exceeds 2⁶⁰ each entry is divided, in 128 bits. About 11 ns an
 *         entry; 2 to 3 in rows of up to eight, which alloc-eight.h handles in the same way with
 *         floats. Each part of the buckets has its own sums, which are added up at the end: whole
 *         numbers, so the number of parts does not matter.
 * DIFFERS The paper's parallel loops are elsewhere (§III-C1): this sparse version makes no map, and
 *         this pass is the only independent work left.
 * EXAMPLE A = 10, d = 5 5 5: shares 3.33 each, tokens 4 3 3.
 */
#include "control/pshift/alloc-two.h"
#include <errno.h>
#include <string.h>

#define DIVIDE     ((int64_t)1 << 60) /* from such a sum of demand on 4 D may not fit 63 bits */
#define PART       ((size_t)1 << 15)  /* entries that are worth a thread */
#define PARTS_MOST 64
__extension__ typedef __int128 wide;

/* ---- the largest remainders */

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

/* `rest` has n remainders and room for n more. */
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
	/* Below the quotient by more than rounding can add: the estimate is never too large. */
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

/* `rest` has room for 2n. */
static void split(const int64_t *d, size_t n, int64_t want, int64_t *tokens, int64_t *rest)
{
	wide sum;
	int64_t left;

	if (n == 2) {
		pshift_two_split(d, want, tokens);
		return;
	}
	if (n == 0 || want == 0) {
		for (size_t k = 0; k < n; k++)
			tokens[k] = 0;
		return;
	}
	sum = sum_of(d, n);
	if (want >= sum) {
		memcpy(tokens, d, n * sizeof(*tokens));
		return;
	}
	if (sum < DIVIDE)
		left = want - shares(d, n, want, (int64_t)sum, tokens, rest);
	else
		left = want - shares_wide(d, n, want, sum, tokens, rest);
	if (left > 0)
		add_many(rest, n, left, tokens);
}

/* Return true if these tokens are still a valid result of a split or of shifts. */
static bool right(const int64_t *d, size_t n, int64_t want, const int64_t *tokens)
{
	int64_t sum = 0;
	bool prudent = true;

	for (size_t k = 0; k < n; k++) {
		prudent &= tokens[k] >= 0 && tokens[k] <= d[k] && sum <= want;
		sum += prudent ? tokens[k] : 0;
	}
	return prudent && (sum == want || (sum < want && sum == sum_of(d, n)));
}

/* ---- all of them */

struct work {
	const struct pshift_split *s;
	const struct pshift_eight *eight; /* or NULL */
	int64_t *gaps;                    /* parts × servers */
	int64_t *rest;                    /* parts × longest row × 2 */
	size_t parts, longest;
};

/* Add the tokens of bucket b to the sums of its servers. */
static void count(const struct pshift_flow *f, size_t b, int64_t *restrict gap)
{
	const uint32_t *restrict server = f->server;
	const int64_t *restrict tokens = f->tokens;

	for (uint32_t e = f->first[b], end = f->first[b + 1]; e < end; e++)
		gap[server[e]] += tokens[e];
}

/* Split the buckets b … end − 1, and count them. */
static void fresh(const struct work *w, size_t b, size_t end, int64_t *gap, int64_t *rest)
{
	const struct pshift_flow *f = w->s->flow;

	for (;; b++) {
		size_t at, n;

		if (w->eight)
			b = w->eight->split(f, w->s->want, gap, b, end);
		if (b == end)
			return;
		at = f->first[b];
		n = f->first[b + 1] - at;
		split(f->demand + at, n, w->s->want[b], f->tokens + at, rest);
		count(f, b, gap);
	}
}

/* The same if most tokens are valid already. */
static void again(const struct work *w, size_t b, size_t end, int64_t *gap, int64_t *rest)
{
	const struct pshift_split *s = w->s;
	const struct pshift_flow *f = s->flow;
	size_t c = 0;

	while (s->changed && c < s->n_changed && s->changed[c] < b)
		c++;
	for (; b < end; b++) {
		size_t at = f->first[b], n = f->first[b + 1] - at;
		bool same = s->changed && (c == s->n_changed || s->changed[c] != b);

		c += s->changed && !same;
		if (same || right(f->demand + at, n, s->want[b], f->tokens + at))
			count(f, b, gap);
		else
			fresh(w, b, b + 1, gap, rest);
	}
}

static void part(void *arg, size_t i)
{
	const struct work *w = arg;
	const struct pshift_flow *f = w->s->flow;
	int64_t *gap = w->gaps + i * f->servers, *rest = w->rest + i * w->longest * 2;
	size_t b = f->buckets * i / w->parts, end = f->buckets * (i + 1) / w->parts;

	memset(gap, 0, f->servers * sizeof(*gap));
	if (w->s->warm)
		again(w, b, end, gap, rest);
	else
		fresh(w, b, end, gap, rest);
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
	struct work w = {.s = s, .eight = p->eight, .parts = 1, .longest = longest_row(f)};

	/* As many parts as the entries are worth; each has an array of servers to clear and to
	 * add. */
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
