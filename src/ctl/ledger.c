/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/ledger.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct link {
	uint32_t next, prev;
};

enum side { LENDER, BORROWER };

struct entry {
	struct ledger_loan loan; /* amount 0: free */
	struct link in[2];       /* of the lender's claims, of the borrower's debts */
	uint32_t chain;          /* in its hash bucket; of a free one: the next free */
};

struct list {
	uint32_t first, last;
	uint32_t
		age; /* of debts: the fraction of a token that has aged and is still owed, × LEDGER_ONE */
};

struct job {
	struct list of[2]; /* claims, debts */
	struct ledger_account account;
};

struct ledger {
	struct job *jobs;
	uint32_t n_jobs;
	struct list pool[2]; /* the loans of those who left; they have no account */
	struct entry *entries;
	uint32_t room, free, open;
	uint32_t *buckets; /* room of them, a power of 2 */
	struct ledger_loan closed[LEDGER_CLOSED];
	uint64_t n_closed;
	int64_t untracked;
	uint64_t turn; /* of ageing */
};

int ledger_new(struct ledger **ret)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->free = NONE;
	l->pool[LENDER] = l->pool[BORROWER] = (struct list){NONE, NONE, 0};
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
	struct job *jobs;

	if (n <= l->n_jobs)
		return 0;
	jobs = realloc(l->jobs, n * sizeof(*jobs));
	if (!jobs)
		return -ENOMEM;
	l->jobs = jobs;
	for (; l->n_jobs < n; l->n_jobs++)
		jobs[l->n_jobs] = (struct job){.of = {{NONE, NONE, 0}, {NONE, NONE, 0}}};
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
	uint32_t i = l->room ? l->buckets[hash(l, lender, borrower)] : NONE;

	while (i != NONE &&
		(l->entries[i].loan.lender != lender || l->entries[i].loan.borrower != borrower))
		i = l->entries[i].chain;
	return i;
}

static int more_room(struct ledger *l)
{
	uint32_t room = l->room ? 2 * l->room : 64;
	struct entry *entries =
		room < NONE / 2 ? realloc(l->entries, room * sizeof(*entries)) : NULL;
	uint32_t *buckets;

	if (!entries)
		return -ENOMEM;
	l->entries = entries;
	buckets = malloc(room * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(l->buckets);
	l->buckets = buckets;
	for (uint32_t i = l->room; i < room; i++)
		entries[i] = (struct entry){.chain = i + 1 < room ? i + 1 : NONE};
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

static struct list *list_of(struct ledger *l, uint32_t who, enum side side)
{
	return who == LEDGER_POOL ? &l->pool[side] : &l->jobs[who].of[side];
}

static void list_add(struct ledger *l, uint32_t i, enum side side)
{
	struct link *in = &l->entries[i].in[side];
	struct list *list = list_of(l, party(&l->entries[i], side), side);

	*in = (struct link){NONE, list->last};
	if (list->last == NONE)
		list->first = i;
	else
		l->entries[list->last].in[side].next = i;
	list->last = i;
}

static void list_cut(struct ledger *l, uint32_t i, enum side side)
{
	struct link in = l->entries[i].in[side];
	struct list *list = list_of(l, party(&l->entries[i], side), side);

	if (in.prev == NONE)
		list->first = in.next;
	else
		l->entries[in.prev].in[side].next = in.next;
	if (in.next == NONE)
		list->last = in.prev;
	else
		l->entries[in.next].in[side].prev = in.prev;
}

/* A free entry, hashed and listed as the loan says; NONE without memory. */
static uint32_t enter(struct ledger *l, const struct ledger_loan *loan)
{
	uint32_t i, *bucket;

	if (l->free == NONE && more_room(l))
		return NONE;
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

static void leave(struct ledger *l, uint32_t i)
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

static int64_t sum_of(const struct ledger *l, const struct list *list, enum side side)
{
	int64_t sum = 0;

	for (uint32_t i = list->first; i != NONE; i = l->entries[i].in[side].next)
		if (__builtin_add_overflow(sum, l->entries[i].loan.amount, &sum))
			return INT64_MAX; /* of what was restored; it is nobody's record */
	return sum;
}

/* ---- what happens to loans */

/* `amount` more is owed to the lender by the borrower; two pools owe each other nothing. `since`: a
 * claim that passes on keeps its age. */
static void lend(struct ledger *l, uint32_t lender, uint32_t borrower, int64_t amount,
	weir_time since, weir_time now)
{
	uint32_t i;

	if (lender == borrower)
		return;
	i = find(l, lender, borrower);
	if (i == NONE) {
		struct ledger_loan loan = {lender, borrower, amount, amount, since, now, 0};

		if (enter(l, &loan) == NONE)
			l->untracked += amount;
		return;
	}
	l->entries[i].loan.amount += amount;
	l->entries[i].loan.lent += amount;
	if (since < l->entries[i].loan.since)
		l->entries[i].loan.since = since;
}

/* The loan is smaller by that; with nothing left of it it is closed. */
static void write_down(struct ledger *l, uint32_t i, int64_t amount, weir_time now)
{
	struct ledger_loan *loan = &l->entries[i].loan;

	loan->amount -= amount;
	if (loan->amount == 0) {
		loan->last = now;
		l->closed[l->n_closed++ % LEDGER_CLOSED] = *loan;
		leave(l, i);
	}
}

/* Returns since when it was owed. */
static weir_time settle(struct ledger *l, uint32_t i, int64_t amount, weir_time now)
{
	weir_time since = l->entries[i].loan.since;

	l->entries[i].loan.last = now;
	write_down(l, i, amount, now);
	return since;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* One settlement at the least, of at most `amount`; how much. Who owes and gives, hands its debt
 * on; who has lent and gets, its claim. */
static int64_t pass(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount)
{
	struct ledger_account *giver = &l->jobs[from].account, *taker = &l->jobs[to].account;
	uint32_t debt = l->jobs[from].of[BORROWER].first, claim = l->jobs[to].of[LENDER].first;
	uint32_t lender = from, borrower = to;
	weir_time since = now;

	if (debt != NONE) {
		lender = l->entries[debt].loan.lender;
		amount = least(amount, l->entries[debt].loan.amount);
	}
	if (claim != NONE) {
		borrower = l->entries[claim].loan.borrower;
		amount = least(amount, l->entries[claim].loan.amount);
	}
	if (debt != NONE) {
		since = settle(l, debt, amount, now);
		giver->repaid += amount;
	} else {
		giver->lent += amount;
	}
	if (claim != NONE) {
		since = least(since, settle(l, claim, amount, now));
		taker->regained += amount;
	} else {
		taker->borrowed += amount;
	}
	lend(l, lender, borrower, amount, since, now);
	return amount;
}

void ledger_transfer(struct ledger *l, weir_time now, uint32_t from, uint32_t to, int64_t amount)
{
	uint32_t direct = find(l, to, from);

	if (direct != NONE) {
		int64_t paid = least(amount, l->entries[direct].loan.amount);

		settle(l, direct, paid, now);
		l->jobs[from].account.repaid += paid;
		l->jobs[to].account.regained += paid;
		amount -= paid;
	}
	while (amount > 0)
		amount -= pass(l, now, from, to, amount);
}

/* All of one side of a dropped job's loans: the pool is in its place. */
static int64_t bequeath(struct ledger *l, uint32_t job, enum side side, weir_time now)
{
	int64_t sum = 0;
	uint32_t i;

	while ((i = l->jobs[job].of[side].first) != NONE) {
		struct ledger_loan loan = l->entries[i].loan;

		leave(l, i);
		sum += loan.amount;
		if (side == LENDER && loan.borrower != LEDGER_POOL)
			l->jobs[loan.borrower].account.spared += loan.amount;
		if (side == BORROWER && loan.lender != LEDGER_POOL)
			l->jobs[loan.lender].account.lost += loan.amount;
		if (side == LENDER)
			lend(l, LEDGER_POOL, loan.borrower, loan.amount, loan.since, now);
		else
			lend(l, loan.lender, LEDGER_POOL, loan.amount, loan.since, now);
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
		/* Its number may be another's tomorrow. */
		if (l->closed[i].lender == job)
			l->closed[i].lender = LEDGER_POOL;
		if (l->closed[i].borrower == job)
			l->closed[i].borrower = LEDGER_POOL;
	}
}

/* ---- ageing */

__extension__ typedef unsigned __int128 wide;

/* How many whole tokens of `owed` are lost now. */
static int64_t age(uint32_t *fraction, int64_t owed, uint64_t part)
{
	wide exact = (wide)(uint64_t)owed * part + *fraction;
	int64_t tokens = (int64_t)(exact >> 32);

	*fraction = tokens < owed ? (uint32_t)exact : 0;
	return tokens;
}

static void write_off(struct ledger *l, uint32_t i, int64_t tokens, weir_time now)
{
	struct ledger_loan *loan = &l->entries[i].loan;

	loan->written_off += tokens;
	if (loan->lender != LEDGER_POOL)
		l->jobs[loan->lender].account.written_off += tokens;
	if (loan->borrower != LEDGER_POOL)
		l->jobs[loan->borrower].account.forgiven += tokens;
	write_down(l, i, tokens, now);
}

/* Whole tokens go by position: all claims stand in a row, and every owed/tokens-th token of it is lost, counted from
 * a place that is another each time. So each claim loses its part, in the long run exactly. */
int64_t ledger_age(struct ledger *l, weir_time now, uint32_t borrower, uint64_t part,
	void (*lost)(uint32_t lender, int64_t tokens, void *arg), void *arg)
{
	struct list *list = list_of(l, borrower, BORROWER);
	uint64_t owed = (uint64_t)sum_of(l, list, BORROWER);
	int64_t tokens = age(&list->age, (int64_t)owed, part);
	uint32_t next;
	wide at;

	if (tokens == 0)
		return 0;
	l->turn += 0x9e3779b97f4a7c15u; /* the golden ratio */
	at = (wide)l->turn * owed >> 64;
	for (uint32_t i = list->first; i != NONE; i = next) {
		uint32_t lender = l->entries[i].loan.lender;
		int64_t some;

		next = l->entries[i].in[BORROWER].next;
		at += (wide)(uint64_t)l->entries[i].loan.amount * (uint64_t)tokens;
		some = (int64_t)(at / owed);
		at %= owed;
		if (some == 0)
			continue;
		write_off(l, i, some, now);
		lost(lender, some, arg);
	}
	return tokens;
}

int ledger_restore(struct ledger *l, const struct ledger_loan *loan)
{
	uint32_t lender = loan->lender, borrower = loan->borrower;
	struct ledger_loan entry = *loan;

	if (loan->amount <= 0 || lender == borrower ||
		(lender != LEDGER_POOL &&
			(lender >= l->n_jobs || l->jobs[lender].of[BORROWER].first != NONE)) ||
		(borrower != LEDGER_POOL &&
			(borrower >= l->n_jobs || l->jobs[borrower].of[LENDER].first != NONE)) ||
		find(l, lender, borrower) != NONE)
		return -EINVAL;
	if (entry.lent < entry.amount)
		entry.lent = entry.amount;
	return enter(l, &entry) == NONE ? -ENOMEM : 0;
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

/* ---- clearing */

struct stake { /* what one has lent, or owes, in all */
	uint32_t job;
	int64_t amount;
	weir_time since;
};

static int by_age(const void *x, const void *y)
{
	const struct stake *a = x, *b = y;

	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return a->job < b->job ? -1 : a->job > b->job;
}

static void add_stake(struct stake *to, uint32_t job, const struct ledger_loan *loan)
{
	if (to->amount == 0 || loan->since < to->since)
		to->since = loan->since;
	to->job = job;
	to->amount += loan->amount;
}

/* All sums into the two tables, one entry a job and the pool's last; the loans are gone then. */
static void take_all(struct ledger *l, struct stake *lent, struct stake *owed)
{
	for (uint32_t i = 0; i < l->room; i++) {
		struct ledger_loan loan = l->entries[i].loan;

		if (!loan.amount)
			continue;
		add_stake(&lent[loan.lender == LEDGER_POOL ? l->n_jobs : loan.lender], loan.lender,
			&loan);
		add_stake(&owed[loan.borrower == LEDGER_POOL ? l->n_jobs : loan.borrower],
			loan.borrower, &loan);
		leave(l, i);
	}
}

static size_t pack(struct stake *all, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].amount)
			all[used++] = all[i];
	qsort(all, used, sizeof(*all), by_age);
	return used;
}

void ledger_clear(struct ledger *l, weir_time now)
{
	size_t n = (size_t)l->n_jobs + 1, n_lent, n_owed;
	struct stake *lent = calloc(n, sizeof(*lent)), *owed = calloc(n, sizeof(*owed));

	if (!lent || !owed) {
		free(lent);
		free(owed);
		return;
	}
	take_all(l, lent, owed);
	n_lent = pack(lent, n);
	n_owed = pack(owed, n);
	/* Where the pool meets itself nothing is owed: lend leaves that out. */
	for (size_t i = 0, k = 0; i < n_lent && k < n_owed;) {
		int64_t amount = least(lent[i].amount, owed[k].amount);

		lend(l, lent[i].job, owed[k].job, amount, lent[i].since, now); /* has its room */
		lent[i].amount -= amount;
		owed[k].amount -= amount;
		i += lent[i].amount == 0;
		k += owed[k].amount == 0;
	}
	free(lent);
	free(owed);
}

/* ---- looking */

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
