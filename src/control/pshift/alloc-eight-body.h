/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc-eight-body: the functions of alloc-eight.h, for vectors of any width. The file of a width
 * includes it once, after it has defined how eight numbers are held:
 *   lanes, bits, floats   vectors of 32-bit numbers; HALVES of them make eight
 *   TARGET, HOT           attributes of functions, and of functions that are inlined
 *   place                 7 … 0
 *   load(at, large, ret)  from int64_t; false: one of them has bits of `large`, and ret is
 *                         undefined
 *   store(at, v)          to int64_t
 *   total(v)              the sum
 *   scan(v, ret)          sums up to each, itself included; last(ret) is that of all
 *   ranks(key, ret)       how many are larger than each
 */
#define EACH PSHIFT_UNROLL for (int h = 0; h < HALVES; h++)

static HOT lanes least(lanes a, lanes b)
{
	lanes less = a < b;

	return (a & less) | (b & ~less);
}

static HOT lanes least0(lanes a, lanes b) /* at least 0 */
{
	lanes n = least(a, b);

	return n & (n > 0);
}

/* Clear all but the first n of v. */
static HOT void first_of(uint32_t n, lanes *v)
{
	static const int32_t only[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

	EACH
	{
		lanes mask;

		__builtin_memcpy(&mask, only + 8 - n + h * (8 / HALVES), sizeof(mask));
		v[h] &= mask;
	}
}

/* A row; entries past its end are read, and ignored. */
struct row {
	uint32_t i, e, n; /* bucket, first entry, entries */
};

#define BLOCKS (PSHIFT_EIGHT_LONG / 8)

/* Return true if a row of n entries from e on is short enough, and vector reads stay within the
 * entries. */
static HOT bool fits(uint32_t n, size_t e, size_t entries)
{
	return n <= PSHIFT_EIGHT_LONG && e + (n <= 8 ? 8 : (n + 7) / 8 * 8) <= entries;
}

/* Get row x of those listed, or of all. Return false if it is too long, or at the very end. */
static HOT bool row_at(
	const struct pshift_flow *f, const uint32_t *rows, size_t x, size_t end, struct row *r)
{
	r->i = rows ? rows[x] : (uint32_t)x;
	if (rows)
		pshift_fetch(f, rows, x, end);
	r->e = f->first[r->i];
	r->n = f->first[r->i + 1] - r->e;
	return r->n == 2 || fits(r->n, r->e, f->first[f->buckets]);
}

/* Gather the low halves of a number of each server of the row; the high halves are 0. */
static HOT void gather(const int64_t *of, const uint32_t *server, lanes *ret)
{
	int32_t v[8];

	PSHIFT_UNROLL
	for (int k = 0; k < 8; k++)
		v[k] = (int32_t)of[server[k]];
	__builtin_memcpy(ret, v, sizeof(v));
}

static HOT void scatter_add(int64_t *to, const uint32_t *server, const lanes *v)
{
	int32_t add[8];

	__builtin_memcpy(add, v, sizeof(add));
	PSHIFT_UNROLL
	for (int k = 0; k < 8; k++)
		to[server[k]] += add[k];
}

/* ---- split */

/* Compute shares rounded down, and their remainders: as shares() of alloc-split.c. */
static HOT void shares(const lanes *d, int32_t a, int32_t sum, lanes *ret, lanes *rest)
{
	/* Too small by more than rounding can add, and by less than 1 in all. */
	float ratio = (float)a / (float)sum * (1 - 0x1p-21f);

	EACH
	{
		lanes q = __builtin_convertvector(
			__builtin_convertvector(d[h], floats) * ratio, lanes);
		/* Modulo 2³², which is exact since it is small. */
		lanes r = (lanes)((bits)d[h] * (uint32_t)a - (bits)q * (uint32_t)sum);
		lanes low = r >= sum; /* true is −1 */

		rest[h] = r - (low & sum);
		ret[h] = q - low;
	}
}

/* Its place makes each remainder unique. Ranks are counted, all against all and without branches,
 * since remainders are unpredictable. */
static HOT bool split_row(const int64_t *demand, uint32_t n, int64_t want, int64_t *tokens)
{
	lanes d[HALVES], q[HALVES], key[HALVES], before[HALVES];
	int32_t a, sum;

	if (!load(demand, ~(PSHIFT_EIGHT_SUM - 1), d))
		return false;
	first_of(n, d);
	sum = total(d);
	if (sum >= PSHIFT_EIGHT_SUM)
		return false;
	a = want < sum ? (int32_t)want : sum;
	shares(d, a, sum + (sum == 0), q, key);
	EACH key[h] = key[h] * 8 + place[h];
	ranks(key, before);
	a -= total(q);
	EACH q[h] -= before[h] < a;
	store(tokens, q);
	return true;
}

/* For a row of up to sixteen, count how many keys are larger than each. */
static HOT void ranks_two(const lanes (*key)[HALVES], lanes (*ret)[HALVES])
{
	int32_t one[2][8];

	__builtin_memcpy(one[0], key[0], sizeof(one[0]));
	__builtin_memcpy(one[1], key[1], sizeof(one[1]));
	ranks(key[0], ret[0]);
	ranks(key[1], ret[1]);
	PSHIFT_UNROLL
	for (int k = 0; k < 8; k++) {
		EACH ret[0][h] -= one[1][k] - (lanes){0} > key[0][h];
		EACH ret[1][h] -= one[0][k] - (lanes){0} > key[1][h];
	}
}

static HOT int32_t count_over(const lanes (*key)[HALVES], uint32_t blocks, int32_t least)
{
	lanes n[HALVES] = {{0}};

	for (uint32_t b = 0; b < blocks; b++)
		EACH n[h] -= key[b][h] > least;
	return total(n);
}

/* Return the threshold above which exactly `left` of the keys lie. Keys are different and below
 * `end`; those past the row's end are −1. The search alternates between interpolation and
 * bisection. */
static HOT int32_t threshold(
	const lanes (*key)[HALVES], uint32_t blocks, int32_t n, int32_t left, int32_t end)
{
	int32_t low = -1, high = end, over_low = n, over_high = 0;

	for (bool even = true;; even = !even) {
		int32_t at = low + (high - low) / 2, over;

		if (even)
			at = low + (int32_t)((float)(high - low) * (float)(over_low - left) /
					     (float)(over_low - over_high));
		at = at <= low ? low + 1 : at >= high ? high - 1 : at;
		over = count_over(key, blocks, at);
		if (over == left)
			return at;
		low = over > left ? at : low;
		over_low = over > left ? over : over_low;
		high = over > left ? high : at;
		over_high = over > left ? over_high : over;
	}
}

/* The same for a row of more than eight. */
static HOT bool split_long(const int64_t *demand, uint32_t n, int64_t want, int64_t *tokens)
{
	lanes d[BLOCKS][HALVES], q[BLOCKS][HALVES], key[BLOCKS][HALVES];
	uint32_t blocks = (n + 7) / 8;
	int32_t a, left, sum = 0, least = INT32_MAX;

	for (uint32_t b = 0; b < blocks; b++) {
		if (!load(demand + 8 * b, ~(PSHIFT_EIGHT_SUM - 1), d[b]))
			return false;
		first_of(n - 8 * b < 8 ? n - 8 * b : 8, d[b]);
		sum += total(d[b]);
	}
	if (sum >= PSHIFT_EIGHT_SUM)
		return false;
	left = a = want < sum ? (int32_t)want : sum;
	for (uint32_t b = 0; b < blocks; b++) {
		shares(d[b], a, sum + (sum == 0), q[b], key[b]);
		left -= total(q[b]);
		EACH key[b][h] =
			(key[b][h] * BLOCKS + (int32_t)(BLOCKS - 1 - b)) * 8 + place[h] + 1;
		first_of(n - 8 * b < 8 ? n - 8 * b : 8, key[b]);
		EACH key[b][h] -= 1;
	}
	if (blocks == 2) {
		lanes before[2][HALVES];

		ranks_two((const lanes(*)[HALVES])key, before);
		for (uint32_t b = 0; b < 2; b++)
			EACH q[b][h] -= before[b][h] < left;
	} else if (left > 0) {
		least = threshold(
			(const lanes(*)[HALVES])key, blocks, (int32_t)n, left, sum * BLOCKS * 8);
	}
	for (uint32_t b = 0; b < blocks; b++) {
		EACH q[b][h] -= key[b][h] > least;
		store(tokens + 8 * b, q[b]);
	}
	return true;
}

static TARGET size_t split(
	const struct pshift_flow *flow, const int64_t *want, int64_t *gap, size_t b, size_t end)
{
	/* a copy, so that the compiler knows that it does not change */
	const struct pshift_flow f = *flow;
	size_t entries = f.first[end];

	for (; b < end; b++) {
		uint32_t e = f.first[b], n = f.first[b + 1] - e;

		if (n == 2) {
			pshift_two_split(f.demand + e, want[b], f.tokens + e);
			gap[f.server[e]] += f.tokens[e];
			gap[f.server[e + 1]] += f.tokens[e + 1];
			continue;
		}
		if (!fits(n, e, entries))
			break;
		if (n > 8) {
			if (!split_long(f.demand + e, n, want[b], f.tokens + e))
				break;
			for (uint32_t k = 0; k < n; k++)
				gap[f.server[e + k]] += f.tokens[e + k];
			continue;
		}
		if (!split_row(f.demand + e, n, want[b], f.tokens + e))
			break;
		PSHIFT_UNROLL
		for (int k = 0; k < 8; k++) /* none past the row's end */
			gap[f.server[e + k]] += f.tokens[e + k];
	}
	return b;
}

/* ---- stage */

/* Compute what the entries may give and take; move as much as possible, from the first that may
 * give to the first that may take. Return the amount, or −1: the numbers are too large. `ret_more`:
 * more could be taken. */
static HOT int64_t stage_row(struct pshift_stage *s, const struct row *r, bool *ret_more)
{
	const uint32_t *server = s->f->server + r->e;
	int64_t *tokens = s->f->tokens + r->e;
	lanes d[HALVES], t[HALVES], m[HALVES], give[HALVES], take[HALVES], gives[HALVES],
		takes[HALVES];
	lanes add[HALVES];
	int32_t n, all;

	if (!load(s->f->demand + r->e, ~(PSHIFT_EIGHT_ONE - 1), d))
		return -1;
	load(tokens, 0, t);
	gather(s->may, server, m);
	first_of(r->n, m);
	EACH
	{
		give[h] = least0(m[h], t[h]);
		take[h] = least0(-m[h], d[h] - t[h]);
	}
	scan(give, gives);
	scan(take, takes);
	n = last(gives);
	all = last(takes);
	*ret_more = all > n;
	n = n < all ? n : all;
	if (n == 0)
		return 0;
	EACH
	{
		lanes x = least0(n - gives[h] + give[h], give[h]);
		lanes y = least0(n - takes[h] + take[h], take[h]);

		add[h] = y - x;
		t[h] += add[h];
	}
	store(tokens, t);
	scatter_add(s->may, server, add);
	return n;
}

/* The same for a row of more than eight. */
static HOT int64_t stage_long(struct pshift_stage *s, const struct row *r, bool *ret_more)
{
	const uint32_t *server = s->f->server + r->e;
	const int64_t *demand = s->f->demand + r->e;
	int64_t *tokens = s->f->tokens + r->e;
	lanes give[BLOCKS][HALVES], take[BLOCKS][HALVES];
	uint32_t blocks = (r->n + 7) / 8;
	int32_t n, gives = 0, takes = 0;

	for (uint32_t b = 0; b < blocks; b++) {
		lanes d[HALVES], t[HALVES], m[HALVES];

		if (!load(demand + 8 * b, ~(PSHIFT_EIGHT_ONE / BLOCKS - 1), d))
			return -1;
		load(tokens + 8 * b, 0, t);
		gather(s->may, server + 8 * b, m);
		first_of(r->n - 8 * b < 8 ? r->n - 8 * b : 8, m);
		EACH
		{
			give[b][h] = least0(m[h], t[h]);
			take[b][h] = least0(-m[h], d[h] - t[h]);
		}
		gives += total(give[b]);
		takes += total(take[b]);
	}
	n = gives < takes ? gives : takes;
	*ret_more = takes > n;
	gives = takes = n;
	for (uint32_t b = 0; b < blocks && (gives > 0 || takes > 0); b++) {
		lanes t[HALVES], x[HALVES], y[HALVES], add[HALVES];

		load(tokens + 8 * b, 0, t);
		scan(give[b], x);
		scan(take[b], y);
		EACH
		{
			add[h] = least0(takes - y[h] + take[b][h], take[b][h]) -
				 least0(gives - x[h] + give[b][h], give[b][h]);
			t[h] += add[h];
		}
		gives -= last(x);
		takes -= last(y);
		store(tokens + 8 * b, t);
		scatter_add(s->may, server + 8 * b, add);
	}
	return n;
}

static HOT size_t stage_rows(
	struct pshift_stage *s, const uint32_t *rows, bool listing, size_t x, size_t end)
{
	for (; x < end && s->moved < s->left; x++) {
		struct row r;
		int64_t n;
		bool more;

		if (!row_at(s->f, rows, x, end, &r))
			break;
		if (r.n == 2) {
			more = pshift_two_stage(s, r.e);
		} else if (r.n <= 4) {
			more = pshift_few_stage(s, r.e, r.n);
		} else {
			n = r.n <= 8 ? stage_row(s, &r, &more) : stage_long(s, &r, &more);
			if (n < 0)
				break;
			s->moved += n;
		}
		if (listing) {
			s->list[s->listed] = r.i;
			s->listed += more;
		}
	}
	return x;
}

static TARGET size_t stage(struct pshift_stage *s, size_t x, size_t end)
{
	if (s->rows)
		return stage_rows(s, s->rows, true, x, end);
	return s->list ? stage_rows(s, NULL, true, x, end) : stage_rows(s, NULL, false, x, end);
}

/* ---- label */

/* Return the spare demand of the row at the level; its servers could pass on that much. −1: as
 * above. */
static HOT int64_t label_row(struct pshift_label *l, const struct row *r)
{
	const uint32_t *server = l->f->server + r->e;
	lanes d[HALVES], t[HALVES], m[HALVES];
	int32_t spare;

	if (!load(l->f->demand + r->e, ~(PSHIFT_EIGHT_ONE - 1), d))
		return -1;
	load(l->f->tokens + r->e, 0, t);
	gather(l->room, server, m);
	first_of(r->n, t);
	first_of(r->n, m);
	EACH m[h] = least(d[h] - t[h], m[h]);
	spare = total(m);
	if (spare == 0)
		return 0;
	EACH t[h] = least(t[h], spare - (lanes){0});
	scatter_add(l->pass, server, t);
	return spare;
}

/* The same for a row of more than eight. */
static HOT int64_t label_long(struct pshift_label *l, const struct row *r)
{
	const uint32_t *server = l->f->server + r->e;
	const int64_t *demand = l->f->demand + r->e, *tokens = l->f->tokens + r->e;
	int32_t spare = 0;

	for (uint32_t k = 0; k < r->n; k += 8) {
		lanes d[HALVES], t[HALVES], m[HALVES];

		if (!load(demand + k, ~(PSHIFT_EIGHT_ONE / BLOCKS - 1), d))
			return -1;
		load(tokens + k, 0, t);
		gather(l->room, server + k, m);
		first_of(r->n - k < 8 ? r->n - k : 8, m);
		EACH m[h] = least(d[h] - t[h], m[h]);
		spare += total(m);
	}
	if (spare == 0)
		return 0;
	for (uint32_t k = 0; k < r->n; k += 8) {
		lanes t[HALVES];

		load(tokens + k, 0, t);
		first_of(r->n - k < 8 ? r->n - k : 8, t);
		EACH t[h] = least(t[h], spare - (lanes){0});
		scatter_add(l->pass, server + k, t);
	}
	return spare;
}

static HOT size_t label_rows(
	struct pshift_label *l, const uint32_t *rows, bool listing, size_t x, size_t end)
{
	for (; x < end; x++) {
		struct row r;
		int64_t spare;

		if (!row_at(l->f, rows, x, end, &r))
			break;
		spare = r.n == 2   ? pshift_two_label(l, r.e)
			: r.n <= 8 ? label_row(l, &r)
				   : label_long(l, &r);
		if (spare < 0)
			break;
		l->spare += spare;
		if (listing) {
			l->list[l->listed] = r.i;
			l->listed += spare > 0;
		}
	}
	return x;
}

static TARGET size_t label(struct pshift_label *l, size_t x, size_t end)
{
	return l->rows ? label_rows(l, l->rows, true, x, end) : label_rows(l, NULL, false, x, end);
}
