/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waterfill-pass: the four passes over the arrays of a level. Included by waterfill-pass.c and
 * waterfill-avx2.c, which define TARGET and the name of the table.
 *
 * Four doubles at a time; without AVX the compiler takes two instructions of two. Sums have four
 * parts, so that their rounding errors are a quarter of a plain loop's.
 */
#include "control/parley/waterfill-impl.h"
#include <string.h>

#define HOT inline __attribute__((always_inline)) TARGET
#define BY  4

typedef double four __attribute__((vector_size(BY * sizeof(double))));
typedef int64_t mask __attribute__((vector_size(BY * sizeof(int64_t))));

static HOT void load(four *ret, const double *at)
{
	memcpy(ret, at, sizeof(*ret));
}

static HOT void store(double *at, const four *v)
{
	memcpy(at, v, sizeof(*v));
}

static HOT double total(const four *v)
{
	return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]);
}

#define WHERE(at, v)     ((four)((mask)(v) & (at)))
#define SMALLER(a, b)    ((four)(((mask)(a) & ((a) < (b))) | ((mask)(b) & ~((a) < (b)))))
#define SMALLER_OF(a, b) ((a) < (b) ? (a) : (b))

static TARGET struct waterfill_sums prepare(const struct waterfill *f)
{
	four g = {0}, e = {0};
	struct waterfill_sums ret;
	size_t i = 0;

	for (; i + BY <= f->n; i += BY) {
		four least, most, want, use, low;

		load(&least, f->min + i);
		load(&most, f->max + i);
		load(&want, f->demand + i);
		use = SMALLER(most, want);
		low = SMALLER(least, use);
		use -= low;
		store(f->base + i, &low);
		store(f->room + i, &use);
		g += low;
		e += use;
	}
	ret = (struct waterfill_sums){.full = total(&e), .given = total(&g)};
	for (; i < f->n; i++) {
		waterfill_set(f, i);
		ret.full += f->room[i];
		ret.given += f->base[i];
	}
	return ret;
}

static TARGET struct waterfill_sums sums(
	const double *room, const double *weight, size_t n, double level)
{
	four full = {0}, dry = {0}, by = {level, level, level, level};
	struct waterfill_sums ret;
	size_t i = 0;

	for (; i + BY <= n; i += BY) {
		four e, w;
		mask at;

		load(&e, room + i);
		load(&w, weight + i);
		at = e <= by * w;
		full += WHERE(at, e);
		dry += WHERE(~at, w);
	}
	ret = (struct waterfill_sums){.full = total(&full), .dry = total(&dry)};
	for (; i < n; i++)
		waterfill_count(&ret, room[i], weight[i], level);
	return ret;
}

static TARGET size_t between(const double *room, const double *weight, size_t n, double low,
	double high, double *kept, struct waterfill_sums *ret)
{
	four full = {0}, dry = {0}, lows = {low, low, low, low}, highs = {high, high, high, high};
	size_t i = 0, k = 0;

	for (; i + BY <= n; i += BY) {
		four e, w;
		mask below, above, out;

		load(&e, room + i);
		load(&w, weight + i);
		below = e <= lows * w;
		above = e > highs * w;
		full += WHERE(below, e);
		dry += WHERE(above, w);
		out = below | above;
		if (out[0] & out[1] & out[2] & out[3])
			continue;
		for (int j = 0; j < BY; j++) { /* writes behind the end are overwritten */
			kept[k] = e[j];
			kept[n + k] = w[j];
			k += !out[j];
		}
	}
	*ret = (struct waterfill_sums){.full = total(&full), .dry = total(&dry)};
	for (; i < n; i++) {
		if (room[i] > low * weight[i] && room[i] <= high * weight[i]) {
			kept[k] = room[i];
			kept[n + k++] = weight[i];
		} else {
			waterfill_count(ret, room[i], weight[i], low);
		}
	}
	return k;
}

static TARGET struct waterfill_sums finish(const struct waterfill *f, double level)
{
	four full = {0}, dry = {0}, given = {0}, by = {level, level, level, level};
	struct waterfill_sums ret;
	size_t i = 0;

	for (; i + BY <= f->n; i += BY) {
		four g, e, w, up;
		mask at;

		load(&g, f->base + i);
		load(&e, f->room + i);
		load(&w, f->weight + i);
		up = by * w;
		at = e <= up;
		given += g;
		full += WHERE(at, e);
		dry += WHERE(~at, w);
		g += (four)(((mask)e & at) | ((mask)up & ~at));
		store(f->rate + i, &g);
	}
	ret = (struct waterfill_sums){total(&full), total(&dry), total(&given)};
	for (; i < f->n; i++) {
		double up = level * f->weight[i];

		f->rate[i] = f->base[i] + SMALLER_OF(f->room[i], up);
		ret.given += f->base[i];
		waterfill_count(&ret, f->room[i], f->weight[i], level);
	}
	return ret;
}
