/* SPDX-License-Identifier: BSD-3-Clause */
/* divide: what part of the tenants' limits one gate of several has, and what they want there. */
#include "base/no-memory.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- divide */

/* Write the tenant's buckets with these parts, and its controller's; return their number. */
static unsigned part_buckets(
	struct resource *r, size_t i, struct policy_part part, struct weir_bucket_spec *ret)
{
	struct resource_part *t = &r->policy_of->part;

	resource_policy_rule(r, i);
	part.rules = t->rules;
	return policy_install_buckets_part(r->policy, i, &t->bounds[i], part, ret);
}

unsigned resource_divide_own(struct resource *r, size_t i, struct weir_bucket_spec *ret)
{
	const struct resource_part *t = &r->policy_of->part;

	return policy_install_buckets_part(
		r->policy, i, &t->bounds[i], (struct policy_part){t->first, t->rows, NULL}, ret);
}

static bool differs(const struct resource_part *t, const double *rows, size_t i)
{
	return memcmp(&rows[t->first[i]], &t->rows[t->first[i]],
		       (t->first[i + 1] - t->first[i]) * sizeof(*rows)) != 0;
}

static int set_buckets(struct resource *r, const struct policy_part *new, struct weir_err *err)
{
	const struct resource_part *t = &r->policy_of->part;
	size_t changed = 0, n = 0;
	struct weir_knob *knobs;
	struct weir_bucket_spec *buckets;
	int rc = -ENOMEM;

	for (size_t i = 0; i < r->n_nodes; i++)
		changed += differs(t, new->rows, i);
	if (!changed)
		return 0;
	knobs = calloc(changed, sizeof(*knobs));
	buckets = calloc(changed, POLICY_BUCKETS * sizeof(*buckets));
	for (size_t i = 0; knobs && buckets && i < r->n_nodes; i++) {
		struct weir_bucket_spec *b = &buckets[n * POLICY_BUCKETS];

		if (!differs(t, new->rows, i))
			continue;
		knobs[n++] = (struct weir_knob){.node = r->nodes[i],
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = b,
			.n_buckets = part_buckets(r, i, *new, b)};
	}
	if (knobs && buckets)
		rc = weir_gate_set(r->gate, resource_policy_now(r), knobs, n, err);
	else
		no_memory(err);
	free(knobs);
	free(buckets);
	return rc;
}

/* ---- the tokens of bursts */

/* Return the place of the burst's bucket of max m among a tenant's buckets, as policy_install_buckets_part has them. */
static unsigned burst_place(const struct weir_tenant *t, unsigned m)
{
	unsigned at = 1;

	for (unsigned k = 0; k < m; k++)
		at += t->max[k].burst_rate > 0 ? 2 : 1;
	return at;
}

/* A level that was read before the parts changed, and what becomes of it. */
struct burst {
	size_t tenant;
	unsigned at;    /* of the bucket */
	uint32_t row;   /* of the limit */
	double level;   /* before */
	double part[2]; /* before and now */
};

static void move_tokens(struct resource *r, const struct burst *b, double *tokens)
{
	struct weir_bucket_spec specs[POLICY_BUCKETS];
	double fall = b->part[1] < b->part[0] ? b->part[1] / b->part[0] : 1;
	double level = fmax(b->level, 0) * fall + tokens[b->row], want;
	struct weir_knob knob = {
		.node = r->nodes[b->tenant], .kind = WEIR_KNOB_LEVEL, .n_buckets = b->at};

	resource_divide_own(r, b->tenant, specs);
	want = knob.value = fmin(level, specs[b->at].size);
	if (b->level < 0) /* a debt stays */
		tokens[b->row] = fall < 1 ? 0 : tokens[b->row];
	else if (weir_gate_set(r->gate, resource_policy_now(r), &knob, 1, NULL) == 0)
		tokens[b->row] = level - want + b->level * (1 - fall);
}

/* Read the levels of bursts whose parts will change. A tenant with buckets of a controller is left out: they may be of the same
 * kind. Return how many there are, at most `max`. */
static size_t read_bursts(
	struct resource *r, const double *rows, const double *tokens, struct burst *ret, size_t max)
{
	const struct resource_part *t = &r->policy_of->part;
	size_t found = 0;

	for (size_t i = 0; i < r->n_nodes; i++) {
		const struct weir_tenant *tenant = &r->policy->tenants[i];
		struct weir_bucket_spec specs[POLICY_BUCKETS];
		double levels[POLICY_BUCKETS];
		bool read = false;

		for (unsigned m = 0; m < tenant->n_max && found < max; m++) {
			uint32_t row = t->first[i] + m;

			if (tenant->max[m].burst_rate <= 0 || rows[row] == t->rows[row] ||
				(t->rules && t->rules[i].bucket.size > 0))
				continue;
			if (!read)
				weir_gate_get_buckets(r->gate, resource_policy_now(r), r->nodes[i],
					specs, levels, POLICY_BUCKETS);
			read = true;
			ret[found++] = (struct burst){i, burst_place(tenant, m), row,
				levels[burst_place(tenant, m)], {t->rows[row], rows[row]}};
		}
	}
	return found;
}

static size_t count_bursts(const struct resource *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_nodes; i++)
		for (unsigned m = 0; m < r->policy->tenants[i].n_max; m++)
			n += r->policy->tenants[i].max[m].burst_rate > 0;
	return n;
}

int resource_divide(struct resource *r, const double *rows, struct joint *const *joints,
	double *tokens, size_t n, struct weir_err *err)
{
	struct resource_part *t = r->policy_of ? &r->policy_of->part : NULL;
	struct burst *bursts = NULL;
	size_t n_bursts = 0;
	struct policy_part new;
	int rc;

	if (!r->gate)
		return 0;
	if (!t || n != t->first[r->n_nodes])
		return weir_err_set(err, -EINVAL, "%s has another policy", r->name);
	new = (struct policy_part){t->first, rows, NULL};
	if (tokens && (n_bursts = count_bursts(r)) > 0) {
		bursts = calloc(n_bursts, sizeof(*bursts));
		n_bursts = bursts ? read_bursts(r, rows, tokens, bursts, n_bursts) : 0;
	}
	rc = set_buckets(r, &new, err);
	if (rc == 0)
		memcpy(t->rows, rows, n * sizeof(*rows));
	if (rc == 0 && joints && resource_joint_set(r, joints, n) < 0)
		rc = no_memory(err);
	for (size_t i = 0; rc == 0 && i < n_bursts; i++)
		move_tokens(r, &bursts[i], tokens);
	free(bursts);
	return rc;
}

/* ---- demand */

/* Get the requests of one kind since the last look: those that passed, and those that wait. */
static void leaf_kind(const struct resource_count *n, unsigned kind, struct resource_seen *seen,
	struct divide_demand *ret)
{
	const struct resource_flow *in = &n->in[kind], *out = &n->out[kind];
	struct resource_flow *before = &seen->out[kind];

	if (out->requests < before->requests) /* another node by the same path */
		*before = (struct resource_flow){0};
	ret->kind[kind].passed_requests = (float)(out->requests - before->requests);
	ret->kind[kind].passed_bytes = (float)(out->bytes - before->bytes);
	ret->kind[kind].waiting_requests = (float)(in->requests - out->requests);
	ret->kind[kind].waiting_bytes = (float)(in->bytes - out->bytes);
	seen->waiting |= in->requests != out->requests;
	*before = *out;
}

struct look {
	double span; /* ns since the last one */
	double room; /* part of it with room in the window */
};

static struct look look_begin(struct resource *r)
{
	struct resource_policy *o = r->policy_of;
	struct weir_gate_totals totals;
	struct look l;

	weir_gate_get_totals(r->gate, resource_policy_now(r), &totals);
	l.span = (double)(r->now - o->looked);
	l.room = l.span > 0 ? 1 - (double)(totals.full - o->full) / l.span : 1;
	o->looked = r->now;
	o->full = totals.full;
	return l;
}

/* A request that its max holds while the window is full would wait anyway. How often both hold is
 * not known, but practically always if one of them always holds. */
static void own_held(struct resource *r, size_t i, const struct look *l, struct divide_demand *ret)
{
	struct resource_seen *seen = &r->policy_of->part.seen[i];
	weir_time held = weir_gate_held(r->gate, r->now, r->nodes[i]);

	if (held > seen->held && l->span > 0)
		ret->held = (float)((double)(held - seen->held) / l->span);
	ret->held_alone = ret->held * (float)l->room;
	seen->held = held;
}

static void add_demand(struct divide_demand *to, const struct divide_demand *from)
{
	for (unsigned k = 0; k < 2; k++) {
		to->kind[k].passed_requests += from->kind[k].passed_requests;
		to->kind[k].passed_bytes += from->kind[k].passed_bytes;
		to->kind[k].waiting_requests += from->kind[k].waiting_requests;
		to->kind[k].waiting_bytes += from->kind[k].waiting_bytes;
	}
	to->clients += from->clients;
}

void resource_demand(struct resource *r, struct divide_demand *ret_demand, size_t n)
{
	const struct weir_policy *p = r->policy;
	struct look l;

	memset(ret_demand, 0, n * sizeof(*ret_demand));
	if (!r->gate || !p || n != r->n_nodes)
		return;
	l = look_begin(r);
	for (const struct client *c = r->clients; c; c = c->next)
		if (c->tenant >= 0)
			ret_demand[c->tenant].clients++;
	for (size_t i = n; i-- > 0;) { /* children before their parents */
		struct divide_demand *d = &ret_demand[i];
		struct resource_seen *seen = &r->policy_of->part.seen[i];
		bool leaf = p->tenants[i].first_child < 0;
		int parent = p->tenants[i].parent;

		if (leaf && !d->clients && !seen->waiting)
			continue;
		seen->waiting = false;
		for (unsigned k = 0; k < 2 && leaf; k++)
			leaf_kind(&r->counts[r->nodes[i]], k, seen, d);
		if (p->tenants[i].n_max)
			own_held(r, i, &l, d);
		if (parent >= 0)
			add_demand(&ret_demand[parent], d);
	}
}
