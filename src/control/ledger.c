/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/ledger-impl.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ledger_new(struct ledger **ret)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->free = LEDGER_NONE;
	l->pool[LENDER] = l->pool[BORROWER] = (struct list){LEDGER_NONE, LEDGER_NONE, 0, 0};
	*ret = l;
	return 0;
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	free(l->jobs);
	free(l->entries);
	free(l->buckets);
	free(l);
}

int ledger_grow(struct ledger *l, uint32_t n)
{
	if (n <= l->n_jobs)
		return 0;
	if (array_resize(&l->jobs, n) < 0)
		return -ENOMEM;
	for (; l->n_jobs < n; l->n_jobs++)
		l->jobs[l->n_jobs] = (struct job){
			.of = {{LEDGER_NONE, LEDGER_NONE, 0, 0}, {LEDGER_NONE, LEDGER_NONE, 0, 0}}};
	return 0;
}

/* ---- entries */

static uint32_t hash(const struct ledger *l, uint32_t lender, uint32_t borrower)
{
	uint64_t x = ((uint64_t)lender << 32 | borrower) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(x >> 32) & (l->room - 1);
}

static uint32_t party(const struct entry *e, enum side side)
{
	return side == LENDER ? e->loan.lender : e->loan.borrower;
}

static uint32_t find(const struct ledger *l, uint32_t lender, uint32_t borrower)
{
	uint32_t i = l->room ? l->buckets[hash(l, lender, borrower)] : LEDGER_NONE;

	while (i != LEDGER_NONE &&
		(l->entries[i].loan.lender != lender || l->entries[i].loan.borrower != borrower))
		i = l->entries[i].chain;
	return i;
}

static int more_room(struct ledger *l)
{
	uint32_t room = l->room ? 2 * l->room : 64;
	struct entry *entries;
	uint32_t *buckets;

	if (room >= LEDGER_NONE / 2 || array_resize(&l->entries, room) < 0)
		return -ENOMEM;
	entries = l->entries;
	buckets = malloc(room * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(l->buckets);
	l->buckets = buckets;
	for (uint32_t i = l->room; i < room; i++)
		entries[i] = (struct entry){.chain = i + 1 < room ? i + 1 : LEDGER_NONE};
	l->free = l->room;
	memset(buckets, 0xff, room * sizeof(*buckets));
	for (uint32_t i = 0, old = l->room; i < old; i++) {
		uint32_t *b;

		l->room = room;
		b = &buckets[hash(l, entries[i].loan.lender, entries[i].loan.borrower)];
		entries[i].chain = *b;
		*b = i;
	}
	l->room = room;
	return 0;
}

struct list *ledger_list(struct ledger *l, uint32_t who, enum side side)
{
	return who == LEDGER_POOL ? &l->pool[side] : &l->jobs[who].of[side];
}

static void list_add(struct ledger *l, uint32_t i, enum side side)
{
	struct link *in = &l->entries[i].in[side];
	struct list *list = ledger_list(l, party(&l->entries[i], side), side);

	*in = (struct link){LEDGER_NONE, list->last};
	if (list->last == LEDGER_NONE)
		list->first = i;
	else
		l->entries[list->last].in[side].next = i;
	list->last = i;
	list->sum += (uint64_t)l->entries[i].loan.amount;
}

static void list_cut(struct ledger *l, uint32_t i, enum side side)
{
	struct link in = l->entries[i].in[side];
	struct list *list = ledger_list(l, party(&l->entries[i], side), side);

	list->sum -= (uint64_t)l->entries[i].loan.amount;
	if (in.prev == LEDGER_NONE)
		list->first = in.next;
	else
		l->entries[in.prev].in[side].next = in.next;
	if (in.next == LEDGER_NONE)
		list->last = in.prev;
	else
		l->entries[in.next].in[side].prev = in.prev;
}

/* Fill a free entry with the loan and link it; LEDGER_NONE without memory. */
static uint32_t enter(struct ledger *l, const struct ledger_loan *loan)
{
	uint32_t i, *bucket;

	if (l->free == LEDGER_NONE && more_room(l))
		return LEDGER_NONE;
	i = l->free;
	l->free = l->entries[i].chain;
	l->entries[i].loan = *loan;
	bucket = &l->buckets[hash(l, loan->lender, loan->borrower)];
	l->entries[i].chain = *bucket;
	*bucket = i;
	list_add(l, i, LENDER);
	list_add(l, i, BORROWER);
	l->open++;
	return i;
}

void ledger_leave(struct ledger *l, uint32_t i)
{
	struct entry *e = &l->entries[i];
	uint32_t *at = &l->buckets[hash(l, e->loan.lender, e->loan.borrower)];

	while (*at != i)
		at = &l->entries[*at].chain;
	*at = e->chain;
	list_cut(l, i, LENDER);
	list_cut(l, i, BORROWER);
	e->loan.amount = 0;
	e->chain = l->free;
	l->free = i;
	l->open--;
}

/* ---- what happens to loans */

/* Change the loan's amount, and the sums of both sides, by `by`. */
static void change(struct ledger *l, uint32_t i, int64_t by)
{
	struct ledger_loan *loan = &l->entries[i].loan;

	loan->amount += by;
	ledger_list(l, loan->lender, LENDER)->sum += (uint64_t)by;
	ledger_list(l, loan->borrower, BORROWER)->sum += (uint64_t)by;
}

void ledger_lend(struct ledger *l, uint32_t lender, uint32_t borrower, int64_t amount,
	weir_time since, weir_time now)
{
	uint32_t i;

	if (lender == borrower)
		return;
	i = find(l, lender, borrower);
	if (i == LEDGER_NONE) {
		struct ledger_loan loan = {lender, borrower, amount, amount, since, now, 0};

		if (enter(l, &loan) == LEDGER_NONE)
			l->untracked += amount;
		return;
	}
	change(l, i, amount);
	l->entries[i].loan.lent += amount;
	if (since < l->entries[i].loan.since)
		l->entries[i].loan.since = since;
}

void ledger_write_down(struct ledger *l, uint32_t i, int64_t amount, weir_time now)
{
	struct ledger_loan *loan = &l->entries[i].loan;

	change(l, i, -amount);
	if (loan->amount == 0) {
		loan->last = now;
		l->closed[l->n_closed++ % LEDGER_CLOSED] = *loan;
		ledger_leave(l, i);
	}
}

/* Repay `amount` of a loan. Return the time since when it was owed. */
static weir_time settle(struct ledger *l, uint32_t i, int64_t amount, weir_time now)
{
	weir_time since = l->entries[i].loan.since;

	l->entries[i].loan.last = now;
	ledger_write_down(l, i, amount, now);
	return since;
}

/* Make one settlement of at most `amount` and return its size. A debtor that gives passes its debt
 * on; a lender that gets passes its claim on. */
static int64_t pass(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount)
{
	struct ledger_account *giver = &l->jobs[from].account, *taker = &l->jobs[to].account;
	uint32_t debt = l->jobs[from].of[BORROWER].first, claim = l->jobs[to].of[LENDER].first;
	uint32_t lender = from, borrower = to;
	weir_time since = now;

	if (debt != LEDGER_NONE) {
		lender = l->entries[debt].loan.lender;
		amount = lesser(amount, l->entries[debt].loan.amount);
	}
	if (claim != LEDGER_NONE) {
		borrower = l->entries[claim].loan.borrower;
		amount = lesser(amount, l->entries[claim].loan.amount);
	}
	if (debt != LEDGER_NONE) {
		since = settle(l, debt, amount, now);
		giver->repaid += amount;
	} else {
		giver->lent += amount;
	}
	if (claim != LEDGER_NONE) {
		since = lesser(since, settle(l, claim, amount, now));
		taker->regained += amount;
	} else {
		taker->borrowed += amount;
	}
	ledger_lend(l, lender, borrower, amount, since, now);
	return amount;
}

void ledger_transfer(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount)
{
	uint32_t direct = find(l, to, from);

	if (direct != LEDGER_NONE) {
		int64_t paid = lesser(amount, l->entries[direct].loan.amount);

		settle(l, direct, paid, now);
		l->jobs[from].account.repaid += paid;
		l->jobs[to].account.regained += paid;
		amount -= paid;
	}
	while (amount > 0)
		amount -= pass(l, now, from, to, amount);
}

/* Move one side of a dropped job's loans to the pool; return their sum. */
static int64_t bequeath(struct ledger *l, uint32_t job, enum side side, weir_time now)
{
	int64_t sum = 0;
	uint32_t i;

	while ((i = l->jobs[job].of[side].first) != LEDGER_NONE) {
		struct ledger_loan loan = l->entries[i].loan;

		ledger_leave(l, i);
		sum += loan.amount;
		if (side == LENDER && loan.borrower != LEDGER_POOL)
			l->jobs[loan.borrower].account.spared += loan.amount;
		if (side == BORROWER && loan.lender != LEDGER_POOL)
			l->jobs[loan.lender].account.lost += loan.amount;
		if (side == LENDER)
			ledger_lend(l, LEDGER_POOL, loan.borrower, loan.amount, loan.since, now);
		else
			ledger_lend(l, loan.lender, LEDGER_POOL, loan.amount, loan.since, now);
	}
	return sum;
}

void ledger_drop(
	struct ledger *l, weir_time now, uint32_t job, int64_t *ret_debt, int64_t *ret_claim)
{
	*ret_debt = bequeath(l, job, BORROWER, now);
	*ret_claim = bequeath(l, job, LENDER, now);
	l->jobs[job].account = (struct ledger_account){0};
	l->jobs[job].of[BORROWER].age = 0;
	for (size_t i = 0; i < LEDGER_CLOSED && i < l->n_closed; i++) {
		/* The job's number may be reused: assign its closed loans to the pool. */
		if (l->closed[i].lender == job)
			l->closed[i].lender = LEDGER_POOL;
		if (l->closed[i].borrower == job)
			l->closed[i].borrower = LEDGER_POOL;
	}
}

/* ---- as it was saved */

int ledger_restore(struct ledger *l, const struct ledger_loan *loan)
{
	uint32_t lender = loan->lender, borrower = loan->borrower;
	struct ledger_loan entry = *loan;

	if (loan->amount <= 0 || lender == borrower ||
		(lender != LEDGER_POOL &&
			(lender >= l->n_jobs ||
				l->jobs[lender].of[BORROWER].first != LEDGER_NONE)) ||
		(borrower != LEDGER_POOL &&
			(borrower >= l->n_jobs ||
				l->jobs[borrower].of[LENDER].first != LEDGER_NONE)) ||
		find(l, lender, borrower) != LEDGER_NONE)
		return -EINVAL;
	if (entry.lent < entry.amount)
		entry.lent = entry.amount;
	return enter(l, &entry) == LEDGER_NONE ? -ENOMEM : 0;
}

void ledger_restore_closed(struct ledger *l, const struct ledger_loan *newest_first, size_t n)
{
	n = n < LEDGER_CLOSED ? n : LEDGER_CLOSED;
	for (l->n_closed = 0; l->n_closed < n; l->n_closed++)
		l->closed[l->n_closed] = newest_first[n - 1 - l->n_closed];
}

void ledger_restore_account(struct ledger *l, uint32_t job, const struct ledger_account *a)
{
	l->jobs[job].account = *a;
}

/* ---- looking */

static int64_t sum_of(const struct ledger *l, const struct list *list, enum side side)
{
	int64_t sum = 0;

	for (uint32_t i = list->first; i != LEDGER_NONE; i = l->entries[i].in[side].next)
		if (__builtin_add_overflow(sum, l->entries[i].loan.amount, &sum))
			return INT64_MAX; /* damaged state: matches no record */
	return sum;
}

int64_t ledger_balance(const struct ledger *l, uint32_t job)
{
	return sum_of(l, &l->jobs[job].of[LENDER], LENDER) -
	       sum_of(l, &l->jobs[job].of[BORROWER], BORROWER);
}

const struct ledger_account *ledger_account(const struct ledger *l, uint32_t job)
{
	return &l->jobs[job].account;
}

void ledger_each(
	const struct ledger *l, bool (*visit)(const struct ledger_loan *loan, void *arg), void *arg)
{
	for (uint32_t i = 0; i < l->room; i++) {
		if (l->entries[i].loan.amount && !visit(&l->entries[i].loan, arg))
			return;
	}
}

size_t ledger_open(const struct ledger *l)
{
	return l->open;
}

size_t ledger_closed(const struct ledger *l, struct ledger_loan ret[LEDGER_CLOSED])
{
	size_t n = l->n_closed < LEDGER_CLOSED ? (size_t)l->n_closed : LEDGER_CLOSED;

	for (size_t i = 0; i < n; i++)
		ret[i] = l->closed[(l->n_closed - 1 - i) % LEDGER_CLOSED];
	return n;
}

int64_t ledger_untracked(const struct ledger *l)
{
	return l->untracked;
}
