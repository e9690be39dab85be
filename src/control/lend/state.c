/* SPDX-License-Identifier: BSD-3-Clause */
/* state: read the state of a controller, and make a controller that continues from a saved one. */
#include "control/lend/impl.h"
#include <assert.h>
#include <errno.h>
#include <math.h>

void lend_state(const struct lend *a, struct lend_state *ret)
{
	*ret = a->state;
}

size_t lend_places(const struct lend *a)
{
	return a->n_slots;
}

static void account(const struct lend *a, uint32_t slot, struct lend_account *ret)
{
	const struct lend_slot *s = &a->slots[slot];

	*ret = (struct lend_account){
		.id = s->id,
		.weight = s->weight,
		.active = s->active,
		.fresh = s->fresh,
		.seen = s->seen,
		.tokens = s->tokens,
		.initial = s->initial,
		.record = s->record,
		.demand = s->active ? s->demand : 0,
		.remainder = s->remainder,
		.reclaim = s->reclaim,
		.ledger = *ledger_account(a->ledger, slot),
	};
}

bool lend_account_at(const struct lend *a, size_t place, struct lend_account *ret)
{
	if (!a->slots[place].id)
		return false;
	account(a, (uint32_t)place, ret);
	return true;
}

int lend_account(const struct lend *a, uint64_t id, struct lend_account *ret)
{
	uint32_t slot = id ? lend_find(a, id) : LEND_NOBODY;

	if (slot == LEND_NOBODY)
		return -ENOENT;
	account(a, slot, ret);
	return 0;
}

/* ---- loans */

static uint64_t id_of(const struct lend *a, uint32_t slot)
{
	return slot == LEDGER_POOL || slot >= a->n_slots ? 0 : a->slots[slot].id;
}

static struct lend_loan outside(const struct lend *a, const struct ledger_loan *l)
{
	return (struct lend_loan){id_of(a, l->lender), id_of(a, l->borrower), l->amount, l->lent,
		l->since, l->last, l->written_off};
}

struct copying {
	const struct lend *a;
	struct lend_loan *to;
	size_t n, max;
};

static bool copy_loan(const struct ledger_loan *l, void *arg)
{
	struct copying *c = arg;

	if (c->n < c->max)
		c->to[c->n] = outside(c->a, l);
	c->n++;
	return true;
}

size_t lend_loans(const struct lend *a, struct lend_loan *ret, size_t max)
{
	struct copying c = {a, ret, 0, max};

	ledger_each(a->ledger, copy_loan, &c);
	return c.n;
}

size_t lend_paid(const struct lend *a, struct lend_loan *ret, size_t max)
{
	struct ledger_loan closed[LEDGER_CLOSED];
	size_t n = ledger_closed(a->ledger, closed);

	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++)
		ret[i] = outside(a, &closed[i]);
	return n;
}

/* ---- starting again */

/* More tokens than a server gives out in a century: a larger value is damage, and would
 * overflow. */
#define MOST ((int64_t)1 << 50)

static bool sane(int64_t tokens)
{
	return tokens >= -MOST && tokens <= MOST;
}

static bool sane_account(const struct lend_account *a)
{
	const struct ledger_account *l = &a->ledger;

	return a->id != 0 && a->weight != 0 && a->tokens >= 0 && sane(a->tokens) &&
	       sane(a->record) && a->remainder >= -REMAINDER_ONE && a->remainder <= REMAINDER_ONE &&
	       sane(l->lent) && sane(l->borrowed) && sane(l->repaid) && sane(l->regained) &&
	       sane(l->lost) && sane(l->spared) && sane(l->written_off) && sane(l->forgiven);
}

static bool sane_state(const struct lend_state *s)
{
	return s->rate > 0 && !isinf(s->rate) && s->carry >= 0 && s->carry < REMAINDER_ONE &&
	       sane(s->tombstone) && sane(s->written_off) && sane(s->forfeited) && sane(s->aged) &&
	       sane(s->aged_left);
}

static int restore_job(struct lend *a, const struct lend_account *from)
{
	struct lend_slot *s;
	uint32_t slot;

	if (!sane_account(from) || lend_find(a, from->id) != LEND_NOBODY)
		return -EINVAL;
	slot = lend_add(a, from->id);
	s = &a->slots[slot];
	s->weight = from->weight;
	s->seen = from->seen;
	s->record = from->record;
	s->remainder = from->remainder;
	s->reclaim = from->reclaim < 0 ? 0 : (int32_t)(from->reclaim & (REMAINDER_ONE - 1));
	s->fresh = false;
	ledger_restore_account(a->ledger, slot, &from->ledger);
	return 0;
}

static int restore_loan(struct lend *a, const struct lend_loan *from)
{
	struct ledger_loan l = {LEDGER_POOL, LEDGER_POOL, from->amount, from->lent, from->since,
		from->last, from->written_off};

	if (!sane(from->amount) || !sane(from->lent) || !sane(from->written_off))
		return -EINVAL;
	if (from->lender && (l.lender = lend_find(a, from->lender)) == LEND_NOBODY)
		return -EINVAL;
	if (from->borrower && (l.borrower = lend_find(a, from->borrower)) == LEND_NOBODY)
		return -EINVAL;
	return ledger_restore(a->ledger, &l);
}

int lend_restore(struct lend *a, const struct lend_state *state,
	const struct lend_account *accounts, size_t n, const struct lend_loan *loans, size_t m)
{
	int64_t sum = state->tombstone;
	int r;

	if (a->state.steps || a->known || n > a->config.jobs_max || !sane_state(state))
		return -EINVAL;
	r = lend_jobs_room(a, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = restore_job(a, &accounts[i]);
		sum += accounts[i].record;
	}
	for (size_t i = 0; r == 0 && i < m; i++)
		r = restore_loan(a, &loans[i]);
	for (uint32_t i = 0; r == 0 && i < a->n_slots; i++) {
		if (ledger_balance(a->ledger, i) != a->slots[i].record)
			r = -EINVAL;
	}
	if (r)
		return r;
	if (sum != 0)
		return -EINVAL;
	a->state.carry = state->carry;
	a->state.tombstone = state->tombstone;
	a->state.written_off = state->written_off;
	a->state.forfeited = state->forfeited;
	a->state.aged = state->aged;
	a->state.aged_left = state->aged_left;
	a->state.known = a->known;
	if (a->config.learn)
		a->state.rate = state->rate;
	return 0;
}

static_assert(REMAINDER_BITS == 24, "LEND_ONE is the fixed-point 1");
static_assert(LEND_NOBODY == LEDGER_POOL, "an unknown job is the pool");

void lend_restore_paid(struct lend *a, const struct lend_loan *newest_first, size_t n)
{
	struct ledger_loan closed[LEDGER_CLOSED];

	n = n < LEDGER_CLOSED ? n : LEDGER_CLOSED;
	for (size_t i = 0; i < n; i++) {
		const struct lend_loan *l = &newest_first[i];

		closed[i] = (struct ledger_loan){lend_find(a, l->lender), lend_find(a, l->borrower),
			l->amount, l->lent, l->since, l->last, l->written_off};
	}
	ledger_restore_closed(a->ledger, closed, n);
}
