/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     A tenant's flow at a gate is all its requests there or, if one of the tenant's limits
 *         counts reads and writes apart, reads and the rest as two flows. Its demand for each limit
 *         that counts it is its rate in requests or bytes, over the limit.
 *         The rate is the recent rate of passed requests, plus a little; for a sender that was
 *         idle, all that passed and waits in this interval. 1.15 times the passed rate is tried if
 *         the tenant's own max held a request for some of the time and the passed rate uses all of
 *         its part (the window may be full because of other tenants), or for most of the time with
 *         room in the window; 1.3, 1.6, 2.2 … 4 times if the max held one through several whole
 *         intervals in a row, and from the fourth on at least all that wait.
 *         Requests that wait for the window or their turn do not count: a larger part of the max
 *         would not help them. A sender whose clients have left has no demand, nor has one that is
 *         silent while 6 requests would have passed.
 *         All of a tenant's max are divided together. Its mins are divided each by itself: a tenant
 *         is guaranteed the largest of them. There all waiting requests count, whatever the cause:
 *         a tenant whose turn does not come is the reason for a min.
 *         A burst's tokens go with the parts: a gate whose part falls gives up as much of its level, and the gates whose parts
 *         rise get that. No token is made on the way, so that the sum of levels stays within the whole bucket.
 * METHOD  Rates rise at once if the max holds. Else they follow by an eighth of the difference per
 *         interval, so that one quiet interval changes little, but by half if requests wait for
 *         something else than the max: the larger part did not help. Bytes per request follow by an
 *         eighth, the passed rate by a sixteenth.
 *         Targets are computed once a round; tenants with no client and settled parts are skipped.
 */
#include "policy/knobs/divide-table.h"
#include "control/divide.h"
#include "policy/impl.h"
#include <math.h>
#include <stdlib.h>

#define FOLLOW (1.0 / 8) /* of the difference, per interval */
#define FALL   0.8       /* of a rate wanted of min, per interval */
#define HELD   (1.0 / 4) /* part of the time: a max that is more than enough holds less */
/* times the passed rate: room for chance, and to notice that it is not used */
#define SPARE 1.05
#define USED  0.98         /* part of a limit's part that counts as all of it */
#define TRY   1.15         /* times what passed */
#define GROW  4.0          /* the same, at most, if the max certainly holds */
#define SURE  0.9          /* of the time */
#define START (1.0 / 1024) /* of a limit, for gates that are new */
#define GONE  6 /* requests that would have arrived: by chance none does in 1 of 400 pauses */

struct sender { /* a tenant at a gate */
	/* by kind */
	float passed[2]; /* requests/s, lately */
	float silent[2]; /* s since the last request */
	float rate[2];   /* requests/s wanted of max */
	float most[2];   /* requests/s wanted of min: with all that wait, for any cause */
	float size[2];   /* bytes of a request */
	float tries;     /* factor of the passed rate, while the max holds */
	bool present;
};

struct divide_table {
	struct arena memory; /* of the arrays, but `first` */
	const struct weir_policy *policy;
	size_t n, gates;
	struct weir_bounds *bounds;
	uint32_t *first;          /* rows of a tenant: first[i] … first[i + 1] */
	uint8_t *slot;            /* by row: as policy_install_rows */
	bool *settled;            /* by tenant: it has no client, and its parts are set for that */
	struct sender *senders;   /* [tenant × gates + gate] */
	struct divide_part *part; /* [row × gates + gate] */
	struct joint **joint;     /* by row; NULL: the limit is divided */
	double *pool;             /* by row: tokens of a burst that no gate has */
	struct divide_gate *gate; /* scratch: one a gate */
	struct divide_flow *flow; /* scratch: two a gate */
};

/* ---- memory */

void divide_table_free(struct divide_table *t)
{
	if (!t)
		return;
	for (size_t row = 0; t->joint && t->first && row < t->first[t->n]; row++)
		joint_unuse(t->joint[row]);
	arena_free(&t->memory);
	free(t->first);
	free(t);
}

/* (In a cluster the controller divides.) */
static int make_joints(struct divide_table *t, size_t i)
{
	const struct weir_tenant *tenant = &t->policy->tenants[i];

	for (unsigned m = 0; m < tenant->n_max && !t->policy->cluster.n_servers; m++) {
		struct joint **j = &t->joint[t->first[i] + m];

		if (policy_install_is_joint(&tenant->max[m], t->gates) && !(*j = joint_new()))
			return -1;
	}
	return 0;
}

static int make_rows(struct divide_table *t)
{
	size_t rows;

	t->bounds = arena_take(&t->memory, t->n, sizeof(*t->bounds));
	if (!t->bounds || weir_policy_bounds(t->policy, t->bounds) < 0)
		return -1;
	t->first = policy_install_first(t->policy, t->bounds);
	if (!t->first)
		return -1;
	rows = t->first[t->n];
	/* policy_install_rows writes up to POLICY_ROWS for a tenant. */
	t->slot = arena_take(&t->memory, rows + POLICY_ROWS, sizeof(*t->slot));
	t->part = arena_take(&t->memory, rows * t->gates, sizeof(*t->part));
	t->joint = arena_take(&t->memory, rows, sizeof(*t->joint));
	t->pool = arena_take(&t->memory, rows, sizeof(*t->pool));
	if (t->memory.failed)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		policy_install_rows(&t->policy->tenants[i], &t->bounds[i], &t->slot[t->first[i]]);
		if (make_joints(t, i) < 0)
			return -1;
	}
	for (size_t row = 0; row < rows; row++)
		divide_start(&t->part[row * t->gates], t->gates);
	for (size_t i = 0; i < t->n; i++)
		t->settled[i] = true; /* equal parts are those of a tenant without clients */
	return 0;
}

struct divide_table *divide_table_new(const struct weir_policy *p, size_t gates)
{
	struct divide_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->policy = p;
	t->n = p->n_tenants;
	t->gates = gates;
	t->settled = arena_take(&t->memory, t->n, sizeof(*t->settled));
	t->senders = arena_take(&t->memory, t->n * gates, sizeof(*t->senders));
	t->gate = arena_take(&t->memory, gates, sizeof(*t->gate));
	t->flow = arena_take(&t->memory, 2 * gates, sizeof(*t->flow));
	if (make_rows(t) < 0) {
		divide_table_free(t);
		return NULL;
	}
	return t;
}

/* New gates have START of the limit together, which the others give up. */
static void inherit_row(struct divide_part *to, const struct divide_part *from,
	const struct divide_table *t, const int *was)
{
	size_t new = 0;

	for (size_t g = 0; g < t->gates; g++)
		new += was[g] < 0;
	for (size_t g = 0; g < t->gates; g++) {
		double had = was[g] < 0 ? 0
			     : from     ? from[was[g]].told
					: to[g].told * (double)t->gates;
		double part = was[g] < 0 ? START / (double)new : had *(new ? 1 - START : 1);

		to[g] = (struct divide_part){part, part, part};
	}
}

static void inherit_tenant(struct divide_table *t, size_t i, const struct divide_table *old,
	size_t tenant, const int *was)
{
	for (size_t g = 0; g < t->gates; g++)
		if (was[g] >= 0)
			t->senders[i * t->gates + g] =
				old->senders[tenant * old->gates + (size_t)was[g]];
	for (uint32_t row = t->first[i]; row < t->first[i + 1]; row++)
		for (uint32_t from = old->first[tenant]; from < old->first[tenant + 1]; from++) {
			if (t->slot[row] != old->slot[from])
				continue;
			inherit_row(
				&t->part[row * t->gates], &old->part[from * old->gates], t, was);
			if (t->joint[row] && old->joint[from]) {
				joint_unuse(t->joint[row]);
				t->joint[row] = joint_use(old->joint[from]);
			}
		}
}

static bool same_gates(const struct divide_table *t, const struct divide_table *old, const int *was)
{
	for (size_t g = 0; g < t->gates; g++)
		if (was[g] < 0)
			return false;
	return old && t->gates == old->gates;
}

void divide_table_inherit(struct divide_table *t, const struct divide_table *old, const int *was)
{
	bool same = same_gates(t, old, was);

	for (size_t row = 0; !old && row < t->first[t->n]; row++)
		inherit_row(&t->part[row * t->gates], NULL, t, was);
	for (size_t i = 0; !old && i < t->n; i++)
		t->settled[i] = false;
	if (!old)
		return;
	for (size_t i = 0; i < t->n; i++) {
		int tenant = weir_policy_find(old->policy, t->policy->tenants[i].path);

		if (tenant < 0)
			continue;
		inherit_tenant(t, i, old, (size_t)tenant, was);
		t->settled[i] = same && old->settled[tenant];
	}
}

const struct weir_policy *divide_table_policy(const struct divide_table *t)
{
	return t->policy;
}

size_t divide_table_rows(const struct divide_table *t)
{
	return t->first[t->n];
}

struct joint *const *divide_table_joints(const struct divide_table *t)
{
	return t->joint;
}

static bool is_divided(const struct divide_table *t, size_t i)
{
	for (uint32_t row = t->first[i]; row < t->first[i + 1]; row++)
		if (!t->joint[row])
			return !t->policy->cluster.n_servers;
	return false;
}

/* ---- what is wanted */

static bool sends(const struct sender *s)
{
	return s->rate[0] > 0 || s->rate[1] > 0 || s->most[0] > 0 || s->most[1] > 0;
}

static double limit_of(const struct divide_table *t, size_t i, uint32_t row)
{
	uint32_t k = row - t->first[i];

	return k < t->policy->tenants[i].n_max ? t->policy->tenants[i].max[k].rate
					       : t->bounds[i].min[t->slot[row] - WEIR_LIMITS];
}

static bool counts_kind(const struct divide_table *t, uint32_t row, unsigned k)
{
	unsigned counts = t->slot[row] % WEIR_LIMITS % 3; /* all, reads, writes */

	return counts == 0 || counts == k + 1;
}

/* Return the use of a limit by `rate` requests/s of kind k. */
static double use(const struct divide_table *t, size_t i, uint32_t row, const struct sender *s,
	unsigned k, double rate)
{
	unsigned slot = t->slot[row] % WEIR_LIMITS;

	if (!counts_kind(t, row, k))
		return 0;
	return rate * (slot / 3 == WEIR_UNIT_BYTES ? s->size[k] : 1) / limit_of(t, i, row);
}

/* Return true if the sender uses all of its part of a max that counts kind k. */
static bool uses_part(const struct divide_table *t, size_t i, size_t gate, unsigned k)
{
	const struct sender *s = &t->senders[i * t->gates + gate];
	uint32_t end = t->first[i] + t->policy->tenants[i].n_max;

	for (uint32_t row = t->first[i]; row < end; row++)
		if (counts_kind(t, row, k) &&
			use(t, i, row, s, 0, s->passed[0]) + use(t, i, row, s, 1, s->passed[1]) >=
				USED * t->part[row * t->gates + gate].applied)
			return true;
	return false;
}

static float follow(float old, double now, double by)
{
	return old > 0 ? old + (float)((now - old) * by) : (float)now;
}

/* Update the passed rate of kind k. A sender without clients, or silent for longer than chance
 * explains, is idle at once: its part is for others. */
static void take_passed(struct sender *s, unsigned k, const struct divide_demand *in, double span)
{
	double passed = in->kind[k].passed_requests;
	bool any = passed + in->kind[k].waiting_requests > 0;

	s->passed[k] = follow(s->passed[k], passed / span, FOLLOW / 2);
	s->silent[k] = any ? 0 : s->silent[k] + (float)span;
	if (!in->clients || s->passed[k] * s->silent[k] > GONE)
		s->passed[k] = s->rate[k] = 0;
}

/* Process one interval of kind k; bound: the sender uses all of its part of a limit that counts
 * it. */
static void take_kind(
	struct sender *s, unsigned k, const struct divide_demand *in, double span, bool bound)
{
	double waiting = in->kind[k].waiting_requests;
	double all = waiting + (in->clients ? in->kind[k].passed_requests : 0);
	double bytes = (double)in->kind[k].passed_bytes + in->kind[k].waiting_bytes;
	bool waits = waiting > 0;
	bool holds = waits && in->held > HELD && (bound || in->held_alone > 0.5);
	double now = s->passed[k] * SPARE;

	if (holds)
		now = s->passed[k] * s->tries;
	if (s->rate[k] <= 0 || (holds && s->tries >= 2))
		now = fmax(now, all / span);
	if (all > 0 && in->clients)
		s->size[k] = follow(s->size[k], bytes / all, FOLLOW);
	if (holds && now > s->rate[k])
		s->rate[k] = (float)now;
	else
		s->rate[k] = follow(s->rate[k], now, waits && in->held < HELD ? 0.5 : FOLLOW);
	s->most[k] = (float)fmax(all / span, in->clients ? s->most[k] * FALL : 0);
	if (s->most[k] < 1e-3f && s->rate[k] < 1e-3f)
		s->most[k] = s->rate[k] = 0; /* a quiet sender wants nothing in the end */
}

void divide_table_take(
	struct divide_table *t, size_t gate, const struct divide_demand *demand, weir_time span)
{
	double seconds = (double)span / WEIR_SEC;

	for (size_t i = 0; i < t->n && span > 0; i++) {
		struct sender *s = &t->senders[i * t->gates + gate];

		if (!is_divided(t, i))
			continue;
		s->present = demand[i].clients > 0;
		if (!s->present && !sends(s))
			continue;
		for (unsigned k = 0; k < 2; k++)
			take_passed(s, k, &demand[i], seconds);
		s->tries = (float)(demand[i].held_alone > SURE
					   ? fmin(fmax(2 * s->tries - 1, TRY), GROW)
					   : TRY);
		for (unsigned k = 0; k < 2; k++)
			take_kind(s, k, &demand[i], seconds, uses_part(t, i, gate, k));
	}
}

/* Return a sender's demand for a limit in its kind k. */
static double want(
	const struct divide_table *t, size_t i, uint32_t row, const struct sender *s, unsigned k)
{
	return use(t, i, row, s, k, t->slot[row] < WEIR_LIMITS ? s->rate[k] : s->most[k]);
}

/* ---- steps */

static bool splits_kinds(const struct divide_table *t, uint32_t row, size_t n)
{
	for (size_t l = 0; l < n; l++)
		if (t->slot[row + l] % 3)
			return true;
	return false;
}

/* Make the problem of n of tenant i's rows, all divided together. */
static struct divide problem(struct divide_table *t, size_t i, uint32_t row, size_t n)
{
	struct divide d = {.gates = t->gates,
		.limits = n,
		.gate = t->gate,
		.flow = t->flow,
		.part = &t->part[row * t->gates]};
	bool apart = splits_kinds(t, row, n);

	for (size_t g = 0; g < t->gates; g++) {
		const struct sender *s = &t->senders[i * t->gates + g];

		t->gate[g].present = s->present;
		for (unsigned k = 0; k < 2; k++) {
			struct divide_flow *f = &t->flow[d.flows];

			if (k == 0 || apart)
				*f = (struct divide_flow){.gate = g};
			for (uint32_t l = 0; l < n; l++)
				f->want[l] += want(t, i, row + l, s, k);
			d.flows += apart || k == 1;
		}
	}
	return d;
}

/* Call fn for each set of tenant i's rows that is divided together: all its max, and each min. */
static bool each_problem(struct divide_table *t, size_t i, bool (*fn)(const struct divide *d))
{
	uint32_t row = t->first[i], n_max = t->policy->tenants[i].n_max;
	struct divide d;
	bool any = false;

	if (n_max) {
		d = problem(t, i, row, n_max);
		any = fn(&d);
	}
	for (row += n_max; row < t->first[i + 1]; row++) {
		d = problem(t, i, row, 1);
		any |= fn(&d);
	}
	return any;
}

static bool targets(const struct divide *d)
{
	divide_targets(d);
	return false;
}

static bool is_wanted(const struct divide_table *t, size_t i)
{
	for (size_t g = 0; g < t->gates; g++)
		if (t->senders[i * t->gates + g].present || sends(&t->senders[i * t->gates + g]))
			return true;
	return false;
}

void divide_table_targets(struct divide_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!is_divided(t, i))
			continue;
		if (is_wanted(t, i))
			t->settled[i] = false;
		if (!t->settled[i])
			each_problem(t, i, targets);
	}
}

/* No gate has a part of these. */
static void confirm_joints(struct divide_table *t, size_t i)
{
	for (uint32_t row = t->first[i]; row < t->first[i + 1]; row++)
		for (size_t g = 0; g < t->gates && t->joint[row]; g++)
			t->part[row * t->gates + g].applied = t->part[row * t->gates + g].told;
}

bool divide_table_tell(struct divide_table *t, const bool *busy)
{
	bool told = false, waits = false;

	for (size_t g = 0; g < t->gates; g++) {
		t->gate[g].busy = busy[g];
		waits |= busy[g];
	}
	for (size_t i = 0; i < t->n; i++) {
		bool now;

		if (!is_divided(t, i) || t->settled[i])
			continue;
		now = each_problem(t, i, divide_tell);
		confirm_joints(t, i);
		t->settled[i] = !now && !waits && !is_wanted(t, i);
		told |= now;
	}
	return told;
}

bool divide_table_differs(const struct divide_table *t, size_t gate)
{
	for (size_t row = 0; row < t->first[t->n]; row++)
		if (t->part[row * t->gates + gate].told != t->part[row * t->gates + gate].applied)
			return true;
	return false;
}

void divide_table_parts(const struct divide_table *t, size_t gate, double *ret_rows)
{
	for (size_t row = 0; row < t->first[t->n]; row++)
		ret_rows[row] = t->policy->cluster.n_servers ? 1
				: t->joint[row]              ? 0
							     : t->part[row * t->gates + gate].told;
}

void divide_table_tokens(struct divide_table *t, size_t gate, const bool *busy, double *ret_rows)
{
	for (size_t row = 0; row < t->first[t->n]; row++) {
		const struct divide_part *part = &t->part[row * t->gates];
		double rise = fmax(part[gate].told - part[gate].applied, 0), all = 0;

		for (size_t g = gate; g < t->gates; g++)
			all += busy[g] ? 0 : fmax(part[g].told - part[g].applied, 0);
		ret_rows[row] = all > 0 ? t->pool[row] * rise / all : 0;
		t->pool[row] -= ret_rows[row];
	}
}

void divide_table_confirm(struct divide_table *t, size_t gate, bool done, const double *tokens)
{
	for (size_t row = 0; row < t->first[t->n]; row++) {
		struct divide_part *p = &t->part[row * t->gates + gate];

		t->pool[row] += tokens[row];
		if (done)
			p->applied = p->told;
		else
			p->told = p->applied;
	}
}

/* ---- for the clock */

size_t divide_table_shared(const struct divide_table *t, bool *ret_idle)
{
	size_t shared = 0;

	*ret_idle = true;
	for (size_t i = 0; i < t->n; i++) {
		const struct sender *s = &t->senders[i * t->gates];
		size_t present = 0;
		bool busy = false;

		for (size_t g = 0; g < t->gates && is_divided(t, i); g++) {
			present += s[g].present;
			busy |= sends(&s[g]);
		}
		shared += present > 1;
		if (present > 1 && busy)
			*ret_idle = false;
	}
	return shared;
}
