/* SPDX-License-Identifier: BSD-3-Clause */
/* ledger-sweep: ageing and clearing. */
#include "control/ledger-impl.h"
#include <stdlib.h>

/* ---- ageing */

__extension__ typedef unsigned __int128 wide;

/* Return how many whole tokens of `owed` are written off now; carry the fraction. */
static int64_t age(uint32_t *fraction, uint64_t owed, uint64_t part)
{
	wide exact = (wide)owed * part + *fraction;
	int64_t tokens = (int64_t)(exact >> 32);

	*fraction = (uint64_t)tokens < owed ? (uint32_t)exact : 0;
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
	ledger_write_down(l, i, tokens, now);
}

/* Whole tokens are chosen by position: all claims form a line, and every owed/tokens-th token of it
 * is written off, counted from a different start each time. So in the long run each claim loses
 * exactly its part. */
int64_t ledger_age(struct ledger *l, weir_time now, uint32_t borrower, uint64_t part,
	void (*lost)(uint32_t lender, int64_t tokens, void *arg), void *arg)
{
	struct list *list = ledger_list(l, borrower, BORROWER);
	uint64_t owed = list->sum;
	int64_t tokens = age(&list->age, owed, part);
	uint32_t next;
	wide at;

	if (tokens == 0)
		return 0;
	l->turn += 0x9e3779b97f4a7c15u; /* the golden ratio */
	at = (wide)l->turn * owed >> 64;
	for (uint32_t i = list->first; i != LEDGER_NONE; i = next) {
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

/* ---- clearing */

struct stake { /* total that a job has lent, or owes */
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

/* Sum up all loans into two tables, one entry per job and the pool's last, and remove the loans. */
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
		ledger_leave(l, i);
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
	/* Skip the pool's debts to itself; ledger_lend ignores them. */
	for (size_t i = 0, k = 0; i < n_lent && k < n_owed;) {
		int64_t amount = lesser(lent[i].amount, owed[k].amount);

		ledger_lend(
			l, lent[i].job, owed[k].job, amount, lent[i].since, now); /* has its room */
		lent[i].amount -= amount;
		owed[k].amount -= amount;
		i += lent[i].amount == 0;
		k += owed[k].amount == 0;
	}
	free(lent);
	free(owed);
}
