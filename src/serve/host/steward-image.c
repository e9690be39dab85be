/* SPDX-License-Identifier: BSD-3-Clause */
/* steward-image: a copy of all that AdapTBF knows at a resource, for who looks and for who keeps it, and the way
 * back. */
#include "serve/gateway/version.h"
#include "serve/gateway/snapshot.h"
#include "serve/host/steward-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the numbers of the last step */

/* How many jobs are not fresh. */
static size_t audit(const struct adaptbf *of, struct snapshot_adaptbf *to)
{
	struct adaptbf_account a;
	size_t n = 0;

	to->records_off = to->state.tombstone;
	to->tokens_off = to->state.active ? -to->state.tokens : 0;
	for (size_t i = 0; i < adaptbf_places(of); i++) {
		if (!adaptbf_account_at(of, i, &a))
			continue;
		to->records_off += a.record;
		to->tokens_off += a.tokens;
		n += !a.fresh;
	}
	return n;
}

void steward_look(struct resource *r, struct snapshot *s, struct snapshot_resource *to)
{
	const struct steward *w = r->steward;
	struct snapshot_adaptbf *a = snapshot_take(s, 1, sizeof(*a));
	size_t room;

	if (!a)
		return;
	a->hold = w->config.hold;
	a->learns = w->learns;
	a->unit = w->unit;
	a->took = (weir_time)w->took;
	adaptbf_state(w->adaptbf, &a->state);
	room = audit(w->adaptbf, a);
	if (a->learns && to->capacity[a->unit] <= 0)
		to->capacity[a->unit] = a->state.rate * adaptbf_token_size(a->unit);
	to->adaptbf = a;
	a->jobs = room ? snapshot_take(s, room, sizeof(*a->jobs)) : NULL;
	if (!a->jobs || r->policy != s->of->policy)
		return;
	for (size_t i = 0; a->n_jobs < room && i < w->n_ids; i++) {
		struct snapshot_job *j = &a->jobs[a->n_jobs];

		if (adaptbf_account(w->adaptbf, w->ids[i], &j->account) != 0 || j->account.fresh)
			continue;
		j->tenant = snapshot_path(s, i);
		j->index = (uint32_t)i;
		a->n_jobs++;
	}
}

/* ---- a copy */

void steward_image_free(struct steward_image *i)
{
	for (size_t n = 0; n < i->n_names; n++)
		free(i->names[n]);
	free(i->names);
	free(i->resource);
	free(i->jobs);
	free(i->loans);
	free(i->paid);
	*i = (struct steward_image){0};
}

const char *steward_image_name(const struct steward_image *i, uint64_t id)
{
	return id < i->n_names ? i->names[id] : NULL;
}

static bool count_loan(const struct adaptbf_loan *loan, void *arg)
{
	++*(size_t *)arg;
	return true;
}

static bool copy_loan(const struct adaptbf_loan *loan, void *arg)
{
	struct steward_image *to = arg;

	to->loans[to->n_loans++] = *loan;
	return true;
}

static int copy_jobs(const struct steward *s, struct steward_image *to)
{
	size_t places = adaptbf_places(s->adaptbf);

	to->jobs = calloc(places + 1, sizeof(*to->jobs));
	to->names = calloc(s->names.n + 1, sizeof(*to->names));
	if (!to->jobs || !to->names)
		return -ENOMEM;
	to->n_names = s->names.n + 1;
	for (size_t i = 0; i < places; i++) {
		struct adaptbf_account *a = &to->jobs[to->n_jobs];
		const char *name;

		if (!adaptbf_account_at(s->adaptbf, i, a) || a->fresh)
			continue;
		name = jobnames_name(&s->names, a->id);
		to->names[a->id] = name ? strdup(name) : NULL;
		if (!to->names[a->id])
			return -ENOMEM;
		to->n_jobs++;
	}
	return 0;
}

static int copy_loans(const struct steward *s, struct steward_image *to)
{
	size_t n = 0;

	adaptbf_loans(s->adaptbf, count_loan, &n);
	to->loans = calloc(n + 1, sizeof(*to->loans));
	to->paid = calloc(LEDGER_CLOSED, sizeof(*to->paid));
	if (!to->loans || !to->paid)
		return -ENOMEM;
	adaptbf_loans(s->adaptbf, copy_loan, to);
	to->n_paid = adaptbf_paid(s->adaptbf, to->paid, LEDGER_CLOSED);
	return 0;
}

int steward_image(struct resource *r, struct steward_image *ret)
{
	const struct steward *s = r->steward;
	struct steward_image to = {0};
	int rc;

	if (!s)
		return -ENOENT;
	to = (struct steward_image){.resource = strdup(r->name),
		.at = resource_policy_now(r),
		.on = s->driver != NULL,
		.hold = s->config.hold,
		.learns = s->learns,
		.unit = s->unit,
		.period = (uint64_t)s->config.period};
	adaptbf_state(s->adaptbf, &to.state);
	rc = to.resource ? copy_jobs(s, &to) : -ENOMEM;
	if (rc == 0)
		rc = copy_loans(s, &to);
	if (rc < 0)
		steward_image_free(&to);
	else
		*ret = to;
	return rc;
}

uint64_t steward_steps(const struct resource *r)
{
	struct adaptbf_state state = {0};

	if (r->steward)
		adaptbf_state(r->steward->adaptbf, &state);
	return state.steps;
}

/* ---- the way back */

/* The image's number becomes the steward's. 0 stays: those who left. */
static uint64_t number(const uint64_t *ids, const struct steward_image *from, uint64_t id)
{
	return id < from->n_names ? ids[id] : 0;
}

static int number_names(struct steward *s, const struct steward_image *from, uint64_t *ids)
{
	for (size_t i = 1; i < from->n_names; i++) {
		if (!from->names[i])
			continue;
		ids[i] = jobnames_add(&s->names, from->names[i]);
		if (!ids[i])
			return -ENOMEM;
	}
	return 0;
}

static int renumber(const struct steward_image *from, const uint64_t *ids, weir_time shift,
	struct steward_image *to)
{
	to->jobs = calloc(from->n_jobs + 1, sizeof(*to->jobs));
	to->loans = calloc(from->n_loans + 1, sizeof(*to->loans));
	to->paid = calloc(from->n_paid + 1, sizeof(*to->paid));
	if (!to->jobs || !to->loans || !to->paid)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_jobs; i++) {
		to->jobs[i] = from->jobs[i];
		to->jobs[i].id = number(ids, from, from->jobs[i].id);
		to->jobs[i].seen += shift;
	}
	for (size_t i = 0; i < from->n_loans + from->n_paid; i++) {
		bool open = i < from->n_loans;
		const struct adaptbf_loan *l =
			open ? &from->loans[i] : &from->paid[i - from->n_loans];
		struct adaptbf_loan *t = open ? &to->loans[i] : &to->paid[i - from->n_loans];

		*t = *l;
		t->lender = number(ids, from, l->lender);
		t->borrower = number(ids, from, l->borrower);
		t->since += shift;
		t->last += shift;
	}
	return 0;
}

static int restore(struct steward *s, const struct steward_image *from, const uint64_t *ids,
	weir_time shift, struct adaptbf **ret)
{
	struct adaptbf_config config = {.rate = from->state.rate, .learn = true};
	struct steward_image to = {0};
	struct adaptbf *a = NULL;
	int rc = renumber(from, ids, shift, &to);

	if (rc == 0)
		rc = adaptbf_new(&config, &a);
	if (rc == 0)
		rc = adaptbf_restore(
			a, &from->state, to.jobs, from->n_jobs, to.loans, from->n_loans);
	if (rc == 0) {
		adaptbf_restore_paid(a, to.paid, from->n_paid);
		*ret = a;
	} else {
		adaptbf_free(a);
	}
	steward_image_free(&to);
	return rc;
}

int steward_restore(struct resource *r, const struct steward_image *from)
{
	uint64_t *ids = calloc(from->n_names + 1, sizeof(*ids));
	struct adaptbf_state state;
	struct adaptbf *made = NULL;
	struct steward *s;
	int rc = ids ? steward_make(r) : -ENOMEM;

	if (rc == 0) {
		s = r->steward;
		adaptbf_state(s->adaptbf, &state);
		rc = state.steps ? -EBUSY : number_names(s, from, ids);
		if (rc == 0)
			rc = restore(s, from, ids, resource_policy_now(r) - from->at, &made);
		if (rc == 0) {
			adaptbf_free(s->adaptbf);
			s->adaptbf = made;
			s->unit = from->unit;
			if (s->driver)
				steward_configure(s, &r->spec);
		}
	}
	free(ids);
	return rc;
}
