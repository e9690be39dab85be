/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Rashid, Dai: AdapTBF, 2025, §III-C, eq. 1 to 25.
 * LAW     By priority    (1) p = n/Σn                (2) α⁰ = K·p,  K = T·Δt
 *         Surplus        (3) u = d/α_prev            (4, 5) S = max(0, α⁰ − d), T_s = ΣS
 *                        (6) DF = u + u·p if u > 1, else u·p
 *                        (7, 8) α_RD = α⁰ − S + DF/ΣDF·T_s, r_RD = r + α⁰ − α_RD
 *         Repayment      (9, 10) J₊: r > 0 and r_RD > 0; J₋: r < 0 and r_RD < 0
 *                        (12) ū = d/α_RD    (13) C = Σ_J₊ p·(max(1, u) + max(0, 1 − ū))/2
 *                        (14, 17) R = min(|r|, |r_RD|, ⌊C·α_RD⌋, α_RD − ⌈φ·α⁰⌉)
 *                                 from each of J₋, T_R = ΣR
 *                        (15, 16, 18 to 20) to J₊ by DF: α_RC, r_RC
 *         Whole tokens   (21 to 25) each of the three steps is rounded by the largest remainder,
 *                        and the error counts at the next step.
 * SYMBOLS n weight; K tokens of the period; d demand, requests; α tokens; r record, tokens; p, u,
 *         ū, DF, C, φ (`floor`) without unit. Fixed point: tokens and C × 2²⁴, u × 2²⁴, p × 2³²,
 *         DF × 2⁴⁰.
 * METHOD  A few passes over arrays; a common divisor costs one division and then products. One
 *         division a job (u) remains. O(n); 20 to 40 ns a job, whatever their number.
 * DIFFERS The paper leaves these open, or they failed in tests:
 *         1  T·Δt may be fractional: the fraction is carried to the next period (lend_tokens).
 *         2  α_prev is the final allocation of the last period; for a new job, or after 0, it is α⁰
 *            or 1.
 *         3  Eq. 24 drops the old remainder: an allocation of 1.4 would be 1 for ever. Here
 *            ρ' = α + ρ − ⌊α + ρ⌋.
 *         4  If rounding gave too much, it is taken from the smallest remainder: the largest is
 *            owed most. Ties go by position.
 *         5  ΣDF = 0: no job has demand; the surplus stays where it was.
 *         6  Eq. 13 means one C for all. It can exceed 1, and tokens would be negative: cut to 1.
 *         7  Eq. 14 bounds by |r| only, and a record could change its sign: by |r_RD| too.
 *         8  A lender gets at most its r_RD, and at most its unmet demand d − α_RD; the rest goes
 *            to the other lenders, and no more is reclaimed than they get together.
 *         9  α_RD = 0: the term with ū is 0.
 *         10, 14  A job that leaves: lend.h, which keeps a tombstone. Here Σr never changes.
 *         11 Every job here is active and keeps one token if there are enough: with none, its
 *            demand could not be seen on a server that only counts service. That token is part of
 *            α⁰ (no loan: it could never be repaid) and is neither lent nor reclaimed.
 *         12 ⌊C·α_RD⌋ could be 0 for ever: its fraction is carried (`reclaim`).
 *         13 Demand counts up to K, the most that one job could be served; lend.h, which knows
 *            the queues, decides the rest.
 *         15 Which rules stop, and the use of idle capacity: lend.h.
 *         16 Eq. 14 takes up to C of a borrower's tokens for as long as it owes, which may be
 *            hours: with φ > 0 it keeps φ of its own share, α⁰, meanwhile. φ = 0 is the paper's
 *            law. For the time of a repayment, and the ageing of claims, see lend.h. Near φ = 1
 *            rounding (eq. 21 to 25) may leave it one token less in a period if it had one more
 *            before: no reclaim does.
 *         Besides: u counts up to 65536.
 * EXAMPLE K = 100, weights 1 and 3, demand 60 and 15, nothing borrowed so far, α_prev 25 and 75:
 *         α⁰ = 25, 75. The second leaves S = 60. u = 2.4 and 0.2, DF = 3.0 and 0.15: of the 60 the
 *         first gets 57.14, the second 2.86. α_RD = 82.14, 17.86, whole: 82 and 18, remainders 0.14
 *         and −0.14; records −57 and 57.
 */
#include "control/lend/law.h"
#include "base/lesser.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE    REMAINDER_ONE
#define U_MOST ((uint64_t)1 << (REMAINDER_BITS + 16))
#define P_BITS 32
/* fraction bits of DF: a priority of 10⁻⁶ and a utilisation of 1 % still have 12 digits */
#define F_BITS 40
#define ROUNDS 16 /* rounds of filling lenders up; then the rest goes by position */

struct step {
	const struct lend_jobs *j;
	struct lend_space *s;
	size_t n;
	int64_t k, least;
	uint64_t weights;         /* Σn */
	struct remainder_ratio p; /* of a weight */
	struct lend_sums *sums;
};

int lend_space_grow(struct lend_space *s, size_t n)
{
	struct lend_space next = {.room = n};

	if (n <= s->room)
		return 0;
	next.share = malloc(n * sizeof(*next.share));
	next.now = malloc(n * sizeof(*next.now));
	next.cap = malloc(n * sizeof(*next.cap));
	next.factor = malloc(n * sizeof(*next.factor));
	next.keys = malloc(n * sizeof(*next.keys));
	next.list = malloc(n * sizeof(*next.list));
	if (!next.share || !next.now || !next.cap || !next.factor || !next.keys || !next.list) {
		lend_space_free(&next);
		return -ENOMEM;
	}
	lend_space_free(s);
	*s = next;
	return 0;
}

void lend_space_free(struct lend_space *s)
{
	free(s->share);
	free(s->now);
	free(s->cap);
	free(s->factor);
	free(s->keys);
	free(s->list);
	*s = (struct lend_space){0};
}

int64_t lend_tokens(double rate, double seconds, int32_t *carry)
{
	double exact = rate * seconds;
	int64_t fixed;

	if (!(exact > 0))
		exact = 0;
	/* Round first: 1000 a second for a tenth of one is 100 despite binary fractions. */
	fixed = llrint(fmin(exact, (double)LEND_TOKENS) * (double)ONE) + *carry;
	if (fixed > LEND_TOKENS * ONE)
		fixed = LEND_TOKENS * ONE;
	*carry = (int32_t)(fixed & (ONE - 1));
	return fixed >> REMAINDER_BITS;
}

/* ---- what several steps ask */

static uint64_t demand(const struct step *t, size_t i)
{
	return t->j->demand[i] < (uint64_t)t->k ? t->j->demand[i] : (uint64_t)t->k;
}

static int64_t divisor(const struct step *t, size_t i) /* α_prev, or its replacement */
{
	int64_t prev = t->j->tokens[i] > 0 ? t->j->tokens[i] : t->j->initial[i];

	return prev > 1 ? lesser(prev, LEND_TOKENS) : 1;
}

static uint64_t utilisation(uint64_t d, int64_t tokens) /* × 2²⁴ */
{
	uint64_t u = (d << REMAINDER_BITS) / (uint64_t)tokens;

	return u < U_MOST ? u : U_MOST;
}

/* ---- eq. 1, 2 */

/* Jobs whose priority is worth less than a token get one, and the others share the rest. These are
 * the jobs with weights below `*ret_small`. Raising them leaves less for the others, so that more
 * may fall below; each round finds some, or is the last. */
static void small_ones(const struct step *t, int64_t *k, uint64_t *weights, uint64_t *ret_small)
{
	uint64_t small = 0, count = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t next = (*weights + (uint64_t)*k - 1) / (uint64_t)*k, sum = 0, below = 0;

		for (size_t i = 0; i < t->n; i++) {
			if (t->j->weight[i] < next) {
				sum += t->j->weight[i];
				below++;
			}
		}
		if (below == count || below == t->n)
			break;
		small = next;
		count = below;
		*k = t->k - (int64_t)below;
		*weights = t->weights - sum;
	}
	*ret_small = small;
}

/* Drop remainders beyond one token, which arise when jobs come and go. */
static void bound(int32_t *remainder)
{
	if (*remainder > ONE)
		*remainder = (int32_t)ONE;
	if (*remainder < -ONE)
		*remainder = (int32_t)-ONE;
}

static void initial(struct step *t)
{
	int64_t k = t->k;
	uint64_t weights = t->weights, small = 0;
	struct remainder_ratio r;

	if (t->least)
		small_ones(t, &k, &weights, &small);
	r = remainder_ratio((uint64_t)k << REMAINDER_BITS, weights);
	for (size_t i = 0; i < t->n; i++) {
		uint32_t w = t->j->weight[i];

		t->s->share[i] = w < small ? ONE : (int64_t)remainder_part(r, w);
		bound(&t->j->remainder[i]);
	}
	remainder_round(
		t->k, t->least, t->n, t->s->share, t->j->remainder, t->j->initial, t->s->keys);
}

/* ---- eq. 3 to 8 */

static remainder_wide factors(struct step *t)
{
	remainder_wide sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint64_t d = demand(t, i), f = 0;
		int64_t prev = divisor(t, i), a = t->j->initial[i];
		int64_t keep = (int64_t)d > t->least ? (int64_t)d : t->least; /* not lent */
		int64_t surplus = a > keep ? a - keep : 0;

		if (d) {
			uint64_t u = utilisation(d, prev);
			uint64_t p = remainder_part(t->p, t->j->weight[i]);

			f = (uint64_t)((remainder_wide)u * p >> (REMAINDER_BITS + P_BITS - F_BITS));
			if ((int64_t)d > prev)
				f += u << (F_BITS - REMAINDER_BITS);
			f = f ? f : 1;
		}
		t->s->factor[i] = f;
		t->s->cap[i] = surplus;
		t->sums->surplus += surplus;
		sum += f;
	}
	return sum;
}

static void redistribute(struct step *t)
{
	remainder_wide sum = factors(t);
	struct remainder_ratio r;

	if (t->sums->surplus == 0 || sum == 0) {
		t->sums->surplus = 0;
		memcpy(t->s->now, t->j->initial, t->n * sizeof(*t->s->now));
		return;
	}
	r = remainder_ratio((uint64_t)t->sums->surplus << REMAINDER_BITS, sum);
	for (size_t i = 0; i < t->n; i++)
		t->s->share[i] = (t->j->initial[i] - t->s->cap[i]) * ONE +
				 (int64_t)remainder_part(r, t->s->factor[i]);
	remainder_round(t->k, t->least, t->n, t->s->share, t->j->remainder, t->s->now, t->s->keys);
}

/* ---- eq. 9 to 20 */

static int64_t record_rd(const struct step *t, size_t i)
{
	return t->j->record[i] + t->j->initial[i] - t->s->now[i];
}

static int64_t coefficient_of(const struct step *t, size_t i) /* the job's term of eq. 13 */
{
	uint64_t d = demand(t, i), u = utilisation(d, divisor(t, i)), term = (uint64_t)ONE;

	if (u > (uint64_t)ONE)
		term = u;
	if (t->s->now[i] > 0 && (int64_t)d < t->s->now[i])
		term += (uint64_t)ONE - utilisation(d, t->s->now[i]);
	return (int64_t)((remainder_wide)term * remainder_part(t->p, t->j->weight[i]) >>
			 (P_BITS + 1));
}

/* Put J₊ into the list, with the most that each may get in `cap`; return the sums of both caps and
 * DF. */
static size_t lenders(struct step *t, int64_t *ret_caps, remainder_wide *ret_factors)
{
	size_t m = 0;
	int64_t c = 0;

	*ret_caps = 0;
	*ret_factors = 0;
	for (size_t i = 0; i < t->n; i++) {
		int64_t r = record_rd(t, i), unmet = (int64_t)demand(t, i) - t->s->now[i];

		if (t->j->record[i] <= 0 || r <= 0)
			continue;
		c = lesser(ONE, c + coefficient_of(t, i));
		if (unmet <= 0)
			continue;
		t->s->cap[i] = lesser(r, unmet);
		t->s->list[m++] = (uint32_t)i;
		*ret_caps += t->s->cap[i];
		*ret_factors += t->s->factor[i];
	}
	t->sums->coefficient = c;
	return m;
}

/* Return the tokens that a borrower keeps while it repays: φ of its own share, rounded up. */
static int64_t kept(const struct step *t, size_t i)
{
	int64_t floor = (t->j->initial[i] * t->j->floor + ONE - 1) >> REMAINDER_BITS;

	return floor > t->least ? floor : t->least;
}

/* For J₋, set the most that each gives in `share`; return the sum. Fractions are carried. */
static int64_t borrowers(struct step *t)
{
	int64_t sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		int64_t r = -record_rd(t, i), now = t->s->now[i], keep, give = 0;

		if (t->j->record[i] < 0 && r > 0 && now > (keep = kept(t, i))) {
			remainder_wide exact =
				(remainder_wide)t->sums->coefficient * (uint64_t)now +
				(uint64_t)t->j->reclaim[i];
			int64_t most = lesser(lesser(r, -t->j->record[i]), now - keep);

			give = (int64_t)(exact >> REMAINDER_BITS);
			t->j->reclaim[i] = (int32_t)((uint64_t)exact & (uint64_t)(ONE - 1));
			give = lesser(give, most);
		}
		t->s->share[i] = give;
		sum += give;
	}
	return sum;
}

/* Give lenders that would exceed their cap just the cap, and remove them from the list; repeat
 * until none does. */
static size_t fill(struct step *t, size_t m, int64_t *left, remainder_wide *factors)
{
	for (int round = 0; round < ROUNDS && m && *left; round++) {
		struct remainder_ratio r =
			remainder_ratio((uint64_t)*left << REMAINDER_BITS, *factors);
		int64_t given = 0;
		size_t open = 0;

		for (size_t k = 0; k < m; k++) {
			uint32_t i = t->s->list[k];

			if ((int64_t)(remainder_part(r, t->s->factor[i]) >> REMAINDER_BITS) <
				t->s->cap[i]) {
				t->s->list[open++] = i;
				continue;
			}
			given += t->s->cap[i];
			t->s->now[i] += t->s->cap[i];
			*factors -= t->s->factor[i];
		}
		*left -= given;
		if (open == m)
			break;
		m = open;
	}
	return m;
}

/* Share the rest by DF among the lenders in the list; the largest fractions get one more. */
static void split(struct step *t, size_t m, int64_t left, remainder_wide factors)
{
	struct remainder_ratio r = remainder_ratio((uint64_t)left << REMAINDER_BITS, factors);
	size_t able = 0;
	struct remainder_pick p;

	for (size_t k = 0; k < m; k++) {
		uint32_t i = t->s->list[k];
		int64_t exact = (int64_t)remainder_part(r, t->s->factor[i]) + t->j->remainder[i];
		int64_t get = exact < 0 ? 0 : exact >> REMAINDER_BITS;

		get = lesser(get, lesser(t->s->cap[i], left));
		t->s->now[i] += get;
		t->s->cap[i] -= get;
		left -= get;
		t->j->remainder[i] = (int32_t)(exact - get * ONE > ONE ? ONE : exact - get * ONE);
		/* A key that grows with the remainder; 0: at its cap. */
		t->s->keys[k] = t->s->cap[i] ? remainder_key(t->j->remainder[i]) : 0;
		able += t->s->cap[i] > 0;
	}
	if (left == 0)
		return;
	p = remainder_pick(t->s->keys, m, (size_t)left < able ? (size_t)left : able);
	for (size_t k = 0; k < m && left; k++) {
		uint32_t i = t->s->list[k];
		int64_t get = remainder_taken(&p, t->s->keys[k]);

		t->s->now[i] += get;
		t->s->cap[i] -= get;
		t->j->remainder[i] -= (int32_t)(get * ONE);
		left -= get;
	}
	/* Only if the rounds ended early: by position. */
	for (size_t k = 0; k < m && left; k++) {
		uint32_t i = t->s->list[k];
		int64_t get = lesser(t->s->cap[i], left);

		t->s->now[i] += get;
		left -= get;
	}
}

/* Each borrower's `share` is the most it could give; together they give `want` of `able`. */
static void collect(struct step *t, int64_t want, int64_t able)
{
	struct remainder_ratio r =
		remainder_ratio((uint64_t)want << REMAINDER_BITS, (uint64_t)able);
	int64_t left = want;
	struct remainder_pick p = {0};

	for (size_t i = 0; i < t->n; i++) {
		int64_t most = t->s->share[i], exact, give = most;

		t->s->keys[i] = 0;
		if (most == 0)
			continue;
		if (want < able) {
			exact = (int64_t)remainder_part(r, (uint64_t)most);
			give = lesser(exact >> REMAINDER_BITS, lesser(most, left));
			if (give < most)
				t->s->keys[i] = 1 + (uint32_t)(exact & (ONE - 1));
		}
		t->s->now[i] -= give;
		left -= give;
	}
	if (left == 0)
		return;
	p = remainder_pick(t->s->keys, t->n, (size_t)left);
	for (size_t i = 0; i < t->n; i++)
		t->s->now[i] -= remainder_taken(&p, t->s->keys[i]);
}

static void recompense(struct step *t)
{
	remainder_wide factors;
	int64_t caps, able, left;
	size_t m = lenders(t, &caps, &factors);

	if (m == 0 || (able = borrowers(t)) == 0)
		return;
	t->sums->reclaimed = left = lesser(caps, able);
	collect(t, left, able);
	m = fill(t, m, &left, &factors);
	if (m && left)
		split(t, m, left, factors);
}

void lend_allocate(const struct lend_jobs *jobs, int64_t tokens, struct lend_space *s,
	struct lend_sums *ret_sums)
{
	struct step t = {jobs, s, jobs->n, tokens, 0, 0, {0, 1}, ret_sums};

	*ret_sums = (struct lend_sums){0};
	if (t.n == 0)
		return;
	for (size_t i = 0; i < t.n; i++)
		t.weights += jobs->weight[i];
	t.least = tokens >= (int64_t)t.n;
	t.p = remainder_ratio((uint64_t)1 << P_BITS, t.weights);
	initial(&t);
	redistribute(&t);
	recompense(&t);
	for (size_t i = 0; i < t.n; i++) {
		jobs->record[i] = record_rd(&t, i);
		jobs->tokens[i] = s->now[i];
		bound(&jobs->remainder[i]);
	}
}
