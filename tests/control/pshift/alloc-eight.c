/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector code for rows, of each width, gives the same result as the general code, bit by bit: on
 * random inputs of short and long rows, with sums on both sides of where vectors end. */
#include "control/pshift/alloc-eight.h"
#include "base/rng.h"
#include "test.h"

#define SERVERS 100
#define BUCKETS 120
#define ENTRIES (BUCKETS * 70 + 8)
#define INPUTS  3000
#define MARK    INT64_C(-77)

static struct rng rng;
static struct pshift *pshift;
static int64_t capacity[SERVERS], reservation[BUCKETS], limit[BUCKETS], demand[ENTRIES];
static uint32_t first[BUCKETS + 1], server[ENTRIES];
static struct pshift_input in;

static const struct pshift_eight *forms[2] = {&pshift_eight_plain};
static size_t n_forms = 1;

static int64_t up_to(int64_t most)
{
	return (int64_t)rng_below(&rng, (uint64_t)most + 1);
}

/* ---- whole allocations */

struct outcome {
	int64_t rtokens[ENTRIES], ltokens[ENTRIES], excess[SERVERS];
	struct pshift_result result;
};

/* Draw a number, mostly near `scale`, so that a row of eight sums to about eight times that, and
 * sometimes 0. */
static int64_t number(int64_t scale)
{
	switch (rng_below(&rng, 4)) {
	case 0:
		return up_to(scale);
	case 1:
		return rng_below(&rng, 4) ? scale : 0;
	default:
		return scale - up_to(scale < 3 ? scale : 3);
	}
}

static void draw_row(size_t i, int64_t scale)
{
	size_t n = rng_below(&rng, 4) ? 8 : rng_below(&rng, rng_below(&rng, 4) ? 20 : 70);
	size_t from = rng_below(&rng, in.servers);
	int64_t sum = 0;

	n = n < in.servers ? n : in.servers;
	first[i + 1] = first[i] + (uint32_t)n;
	for (uint32_t k = 0; k < n; k++) {
		server[first[i] + k] = (uint32_t)((from + k * 7) % in.servers);
		sum += demand[first[i] + k] = number(scale);
	}
	sum = sum < PSHIFT_MOST ? sum : PSHIFT_MOST;
	reservation[i] = rng_below(&rng, 8) ? up_to(sum) : number(sum);
	limit[i] = rng_below(&rng, 3) ? reservation[i] / 2 + up_to(sum / 2) : PSHIFT_NO_LIMIT;
}

static void draw(void)
{
	static const int64_t scales[] = {1, 3, 100, PSHIFT_EIGHT_SUM / 8, PSHIFT_EIGHT_SUM / 8 + 1,
		PSHIFT_EIGHT_SUM, PSHIFT_EIGHT_ONE / 8 - 1, PSHIFT_EIGHT_ONE / 8 + 1,
		PSHIFT_EIGHT_ONE - 1, PSHIFT_EIGHT_ONE + 1, PSHIFT_EIGHT_MAY, PSHIFT_MOST};
	int64_t scale = scales[rng_below(&rng, sizeof(scales) / sizeof(scales[0]))];

	do
		in.servers = 1 + rng_below(&rng, SERVERS);
	while (in.servers % 7 == 0); /* else a row with steps of 7 would visit a server twice */
	in.buckets = rng_below(&rng, BUCKETS + 1);
	in.capacity = capacity;
	in.reservation = reservation;
	in.limit = rng_below(&rng, 2) ? limit : NULL;
	in.floor = in.limit ? up_to(5) : 0;
	in.first = first;
	in.server = server;
	in.demand = demand;
	for (size_t i = 0; i < in.buckets; i++)
		draw_row(i, rng_below(&rng, 16) ? scale : PSHIFT_MOST);
	for (size_t j = 0; j < in.servers; j++)
		capacity[j] = up_to(scale < PSHIFT_MOST / 64 ? 64 * scale : PSHIFT_MOST);
}

static void allocate(const struct pshift_eight *form, bool warm, struct outcome *ret)
{
	struct pshift_options o = {.warm = warm};

	pshift->eight = form;
	CHECK_INT(pshift_allocate(pshift, &in, &o, ret->rtokens, ret->ltokens, &ret->result), 0);
	memcpy(ret->excess, ret->result.excess, in.servers * sizeof(*ret->excess));
	ret->result.excess = NULL;
}

static void must_be_same(const struct outcome *a, const struct outcome *b)
{
	size_t n = first[in.buckets];

	CHECK(memcmp(a->rtokens, b->rtokens, n * sizeof(*a->rtokens)) == 0);
	CHECK(memcmp(a->ltokens, b->ltokens, n * sizeof(*a->ltokens)) == 0);
	CHECK(memcmp(a->excess, b->excess, in.servers * sizeof(*a->excess)) == 0);
	CHECK_INT(a->result.phi, b->result.phi);
	CHECK_INT(a->result.asked, b->result.asked);
	CHECK_INT(a->result.unasked, b->result.unasked);
	CHECK_INT(a->result.lphi, b->result.lphi);
	CHECK_INT(a->result.passes, b->result.passes);
}

static void forms_agree(void)
{
	static struct outcome any, before, one;

	for (int i = 0; i < INPUTS; i++) {
		draw();
		CHECK_INT(pshift_check(pshift, &in, NULL, NULL), 0);
		allocate(NULL, false, &any);
		for (size_t k = 0; k < n_forms; k++) {
			allocate(forms[k], false, &one);
			must_be_same(&any, &one);
		}
		before = any;
		for (uint32_t e = 0; e < first[in.buckets]; e++)
			demand[e] -= rng_below(&rng, 8) ? 0 : demand[e] / 2;
		allocate(NULL, true, &any);
		for (size_t k = 0; k < n_forms; k++) {
			one = before;
			allocate(forms[k], true, &one);
			must_be_same(&any, &one);
		}
	}
}

static void backwards(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg)
{
	*(size_t *)pool = parts;
	while (parts > 0)
		part(arg, --parts);
}

/* Large enough for several parts, with ends inside a block of eight entries. */
static void forms_agree_in_parts(void)
{
	enum { N = 30000, S = 10 };
	static int64_t d[5 * N], can[S], r[2][5 * N];
	static uint32_t at[N + 1], who[5 * N];
	static int64_t want[N];
	size_t parts = 0;
	struct pshift_parallel parallel = {backwards, &parts};
	struct pshift_options o = {.parallel = &parallel};
	struct pshift_result result;

	in = (struct pshift_input){.servers = S,
		.buckets = N,
		.capacity = can,
		.reservation = want,
		.first = at,
		.server = who,
		.demand = d};
	for (uint32_t i = 0; i < N; i++) {
		uint32_t n = 1 + (uint32_t)rng_below(&rng, 5);

		at[i + 1] = at[i] + n;
		want[i] = up_to(300);
		for (uint32_t k = 0; k < n; k++) {
			who[at[i] + k] = (i + k) % S;
			d[at[i] + k] = up_to(100);
		}
		can[i % S] += want[i] * 3 / 4;
	}
	pshift->eight = NULL;
	CHECK_INT(pshift_allocate(pshift, &in, NULL, r[0], NULL, &result), 0);
	for (size_t k = 0; k < n_forms; k++) {
		pshift->eight = forms[k];
		CHECK_INT(pshift_allocate(pshift, &in, &o, r[1], NULL, &result), 0);
		CHECK(parts > 1);
		CHECK(memcmp(r[0], r[1], at[N] * sizeof(r[0][0])) == 0);
	}
}

/* Make a flow of `rows` rows of n entries, all with demand d, with guard values where nothing
 * may be written. */
static struct pshift_flow rows_of(size_t rows, uint32_t n, int64_t d, int64_t *tokens, int64_t *gap)
{
	struct pshift_flow f = {.servers = SERVERS,
		.buckets = rows,
		.first = first,
		.server = server,
		.demand = demand,
		.tokens = tokens,
		.gap = gap};

	for (uint32_t i = 0; i <= rows; i++)
		first[i] = i * n;
	for (uint32_t e = 0; e < ENTRIES; e++) {
		server[e] = e % SERVERS;
		demand[e] = d;
		tokens[e] = MARK;
	}
	memset(gap, 0, SERVERS * sizeof(*gap));
	return f;
}

/* Rows with one large share, where the estimate has its largest error. */
static void splits_agree(void)
{
	static int64_t tokens[2][ENTRIES], gap[2][SERVERS], want[BUCKETS];
	struct pshift_flow f;
	struct pshift_split s = {.flow = &f, .want = want};

	for (int i = 0; i < INPUTS; i++) {
		f = rows_of(BUCKETS, 8, 0, tokens[0], gap[0]);
		for (uint32_t b = 0; b < BUCKETS; b++) {
			int64_t left = PSHIFT_EIGHT_SUM - 1 - up_to(100), sum = left;

			for (uint32_t k = 1; k < 8; k++) {
				demand[8 * b + k] = up_to(k < 4 ? 5 : 50000);
				left -= demand[8 * b + k];
			}
			demand[8 * b] = left;
			want[b] = rng_below(&rng, 2) ? up_to(sum) : sum - up_to(9);
		}
		pshift->eight = NULL;
		CHECK_INT(pshift_split(pshift, &s, NULL), 0);
		for (size_t k = 0; k < n_forms; k++) {
			f.tokens = tokens[1];
			f.gap = gap[1];
			memset(gap[1], 0, sizeof(gap[1]));
			CHECK_INT(forms[k]->split(&f, want, gap[1], 0, BUCKETS), BUCKETS);
			CHECK(memcmp(tokens[0], tokens[1], f.first[BUCKETS] * sizeof(int64_t)) ==
				0);
			CHECK(memcmp(gap[0], gap[1], sizeof(gap[0])) == 0);
		}
	}
}

/* ---- where vectors begin and end */

static void split_stops(const struct pshift_eight *form)
{
	static int64_t tokens[ENTRIES], gap[SERVERS], want[BUCKETS];
	struct pshift_flow f = rows_of(20, 8, (PSHIFT_EIGHT_SUM - 1) / 8, tokens, gap);

	for (size_t i = 0; i < BUCKETS; i++)
		want[i] = PSHIFT_EIGHT_SUM - 9;
	CHECK_INT(form->split(&f, want, gap, 0, 20), 20);
	CHECK_INT(tokens[160], MARK);
	for (uint32_t e = 0; e < 160;
		e++) /* one less than the demand, and all remainders are equal */
		CHECK_INT(tokens[e], demand[e] - (e % 8 == 7));
	demand[83] += 7; /* the sum of row 10 is the largest one allowed, and then one more */
	CHECK_INT(form->split(&f, want, gap, 0, 20), 20);
	demand[83]++;
	CHECK_INT(form->split(&f, want, gap, 0, 20), 10);
	demand[83] = 0;
	CHECK_INT(form->split(&f, want, gap, 0, 20), 20);
	demand[83] = PSHIFT_MOST;
	CHECK_INT(form->split(&f, want, gap, 3, 20), 10);
	CHECK_INT(form->split(&f, want, gap, 11, 20), 20);
	/* Nine entries: the last row has fewer than sixteen entries before the end; then 64, and
	 * one more. */
	f = rows_of(20, 9, 1, tokens, gap);
	CHECK_INT(form->split(&f, want, gap, 0, 20), 19);
	f = rows_of(20, 64, 1, tokens, gap);
	CHECK_INT(form->split(&f, want, gap, 0, 20), 20);
	f = rows_of(20, 65, 1, tokens, gap);
	CHECK_INT(form->split(&f, want, gap, 0, 20), 0);
	/* Three entries: the last three rows have fewer than eight entries before the end. */
	f = rows_of(20, 3, 5, tokens, gap);
	CHECK_INT(form->split(&f, want, gap, 0, 10), 8);
	CHECK_INT(tokens[23], 5);
	CHECK_INT(tokens[30], MARK);
	for (size_t j = 0; j < SERVERS; j++)
		CHECK_INT(gap[j], j < 24 ? 5 : 0);
}

/* The largest numbers allowed, at each of the eight positions. */
static void stage_large(const struct pshift_eight *form)
{
	static int64_t tokens[ENTRIES], may[SERVERS];
	struct pshift_flow f = rows_of(2, 8, PSHIFT_EIGHT_ONE - 1, tokens, may);
	struct pshift_stage s = {.f = &f, .may = may, .left = PSHIFT_SUM};

	/* Seven give to one, and one to seven. */
	for (uint32_t e = 0; e < 16; e++) {
		tokens[e] = (e < 8) == (e % 8 < 7) ? PSHIFT_EIGHT_ONE - 1 : 0;
		may[e] = tokens[e] ? PSHIFT_EIGHT_MAY : -PSHIFT_EIGHT_MAY;
	}
	CHECK_INT(form->stage(&s, 0, 2), 2);
	CHECK_INT(s.moved, 2 * (PSHIFT_EIGHT_ONE - 1));
	for (uint32_t e = 0; e < 16; e++) {
		bool full = e < 8 ? e > 0 : e == 8;

		CHECK_INT(tokens[e], full ? PSHIFT_EIGHT_ONE - 1 : 0);
	}
}

static void stage_moves(const struct pshift_eight *form)
{
	static int64_t tokens[ENTRIES], may[SERVERS];
	struct pshift_flow f = rows_of(2, 8, PSHIFT_EIGHT_ONE - 1, tokens, may);
	uint32_t list[3] = {9, 9, 9};
	struct pshift_stage s = {.f = &f, .may = may, .left = PSHIFT_SUM, .list = list};

	for (uint32_t e = 0; e < 16; e++) {
		tokens[e] = e % 2 ? 0 : PSHIFT_EIGHT_ONE - 1;
		may[e] = e % 2 ? -PSHIFT_EIGHT_MAY : PSHIFT_EIGHT_MAY;
	}
	may[14] = 0; /* the last but one may not give, so the last gets nothing */
	CHECK_INT(form->stage(&s, 0, 2), 2);
	CHECK_INT(s.moved, 7 * (PSHIFT_EIGHT_ONE - 1));
	for (uint32_t e = 0; e < 14; e++)
		CHECK_INT(tokens[e], e % 2 ? PSHIFT_EIGHT_ONE - 1 : 0);
	CHECK_INT(tokens[14], PSHIFT_EIGHT_ONE - 1);
	CHECK_INT(tokens[15], 0);
	CHECK_INT(may[0], PSHIFT_EIGHT_MAY - PSHIFT_EIGHT_ONE + 1);
	CHECK_INT(may[1], -PSHIFT_EIGHT_MAY + PSHIFT_EIGHT_ONE - 1);
	CHECK_INT(s.listed, 1);
	CHECK_INT(list[0], 1);
	s.left = s.moved;
	CHECK_INT(form->stage(&s, 0, 2), 0);
	demand[9]++;
	s.left++;
	CHECK_INT(form->stage(&s, 0, 2), 1);
}

static void label_counts(const struct pshift_eight *form)
{
	static int64_t tokens[ENTRIES], room[SERVERS], pass[SERVERS];
	struct pshift_flow f = rows_of(3, 8, 10, tokens, room);
	uint32_t list[3] = {0, 1, 2};
	struct pshift_label l = {.f = &f, .room = room, .pass = pass, .rows = list, .list = list};

	memset(pass, 0, sizeof(pass));
	for (uint32_t e = 0; e < 24; e++)
		tokens[e] = 6;
	room[2] = 3;
	room[3] = PSHIFT_EIGHT_MAY;
	room[20] = 1;
	CHECK_INT(form->label(&l, 0, 3), 3);
	CHECK_INT(l.spare, 3 + 4 + 1);
	CHECK_INT(l.listed, 2);
	CHECK_INT(list[0], 0);
	CHECK_INT(list[1], 2);
	for (uint32_t e = 0; e < 24; e++)
		CHECK_INT(pass[e], e < 8 ? 6 : e < 16 ? 0 : 1);
	demand[5] = PSHIFT_EIGHT_ONE;
	CHECK_INT(form->label(&l, 0, 2), 0);
}

static void each_form(void)
{
	for (size_t k = 0; k < n_forms; k++) {
		split_stops(forms[k]);
		stage_moves(forms[k]);
		stage_large(forms[k]);
		label_counts(forms[k]);
	}
}

int main(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		forms[n_forms++] = &pshift_eight_avx2;
#endif
	printf("%zu forms\n", n_forms);
	CHECK(pshift_eight_best() == forms[n_forms - 1]);
	rng_init(&rng, 1, "pshift-eight");
	CHECK_INT(pshift_new(&pshift), 0);
	CHECK(pshift->eight == pshift_eight_best());
	RUN(each_form);
	RUN(splits_agree);
	RUN(forms_agree);
	RUN(forms_agree_in_parts);
	pshift_free(pshift);
	return 0;
}
