/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * joint: limits that are too small to be divided: their tokens come from a bucket that all gates share.
 *
 * LAW     The gate's own bucket of such a limit has no rate (policy/knobs/install.c): its level is what was taken from
 *         the joint bucket (control/joint.h) and not used yet. While no request waits it is 0 or less.
 * METHOD  A limit is looked at after requests that it counts have come or gone. If some wait and no token is here, tokens
 *         are taken for one request of their mean cost, or for BATCH, if so much waits. They may be there later; until
 *         then the limit is in a heap. If none waits, tokens that are left go back.
 *         Calls of the gate are made in the turn only: a request may go while the gate looks for it.
 * COST    A request of a tenant without such a limit: one comparison.
 */
#include "base/heap.h"
#include "control/joint.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BATCH 1e-3 /* s, of a limit's rate */

struct joint_limit {
	struct joint *joint; /* used */
	struct joint_size size;
	weir_node node;
	uint32_t bucket;       /* of the node: index */
	uint32_t above;        /* next limit that counts the same requests: index + 1; 0: none */
	uint8_t unit, ops;     /* as of weir_bucket_spec */
	bool taken, noted;     /* is in the heap; is in the list */
	double amount;         /* taken, while it is in the heap */
	double waiting, queue; /* units and requests that wait */
};

struct resource_joints {
	struct joint_limit *limits;
	size_t n;
	uint32_t *of; /* by node: its first limit, index + 1; 0: none */
	size_t n_nodes;
	uint32_t *noted; /* to be looked at */
	size_t n_noted;
	struct heap due; /* value: index */
	uint64_t serial;
};

/* ---- requests */

/* Return true if the limit counts requests of this kind (resource_flow_of). */
static bool counts(const struct joint_limit *l, unsigned kind)
{
	return l->ops & WEIR_OPS(kind ? WEIR_WRITE : WEIR_READ);
}

static void note(struct resource_joints *j, struct joint_limit *l)
{
	if (l->noted)
		return;
	l->noted = true;
	j->noted[j->n_noted++] = (uint32_t)(l - j->limits);
}

static void add(struct resource_joints *j, weir_node node, unsigned kind,
	const struct resource_flow *cost, double requests)
{
	uint32_t at = node < j->n_nodes ? j->of[node] : 0;

	while (at) {
		struct joint_limit *l = &j->limits[at - 1];

		at = l->above;
		if (!counts(l, kind))
			continue;
		l->waiting += (double)(int64_t)(l->unit == WEIR_UNIT_BYTES ? cost->bytes
									   : cost->requests);
		l->queue += requests;
		note(j, l);
	}
}

void resource_joint_count(struct resource *r, const struct weir_req *q, int sign)
{
	struct resource_flow cost = {
		(uint64_t)((int64_t)q->requests * sign), (uint64_t)((int64_t)q->bytes * sign)};

	add(r->joints, q->tenant, resource_flow_of(q), &cost, sign);
}

/* ---- the turn */

static double level_of(struct resource *r, const struct joint_limit *l)
{
	double levels[POLICY_BUCKETS];

	weir_gate_get_buckets(
		r->gate, resource_policy_now(r), l->node, NULL, levels, POLICY_BUCKETS);
	return levels[l->bucket];
}

static void set_level(struct resource *r, const struct joint_limit *l, double level)
{
	struct weir_knob knob = {
		.node = l->node, .kind = WEIR_KNOB_LEVEL, .value = level, .n_buckets = l->bucket};

	weir_gate_set(r->gate, resource_policy_now(r), &knob, 1, NULL);
}

static void look_at_limit(struct resource *r, weir_time now, struct joint_limit *l)
{
	struct resource_joints *j = r->joints;
	double level = level_of(r, l), want;
	weir_time at;

	if (l->waiting <= 0 && level > 0) {
		joint_return(l->joint, l->size, level);
		set_level(r, l, 0);
	}
	if (l->waiting <= 0 || level >= 1)
		return;
	want = fmax(l->waiting / l->queue, fmin(l->waiting, l->size.rate * BATCH));
	want = fmax(ceil(want), 1);
	at = joint_take(l->joint, l->size, now, want - level);
	if (at <= now) {
		set_level(r, l, want);
		return;
	}
	l->taken = true;
	l->amount = want - level;
	heap_push(&j->due, (struct heap_item){at, j->serial++, (uint64_t)(l - j->limits)});
}

/* The tokens of a limit are there. */
static void arrive(struct resource *r, struct joint_limit *l)
{
	l->taken = false;
	if (l->waiting > 0)
		set_level(r, l, level_of(r, l) + l->amount);
	else
		joint_return(l->joint, l->size, l->amount);
	note(r->joints, l);
}

void resource_joint_turn(struct resource *r, weir_time now)
{
	struct resource_joints *j = r->joints;

	while (j->due.n && heap_min(&j->due)->key <= now)
		arrive(r, &j->limits[heap_pop(&j->due).value]);
	while (j->n_noted) {
		struct joint_limit *l = &j->limits[j->noted[--j->n_noted]];

		l->noted = false;
		if (!l->taken)
			look_at_limit(r, now, l);
	}
}

weir_time resource_joint_next(const struct resource *r)
{
	const struct resource_joints *j = r->joints;

	return j->n_noted ? 0 : j->due.n ? heap_min(&j->due)->key : WEIR_NEVER;
}

/* ---- set and clear */

void resource_joint_clear(struct resource *r)
{
	struct resource_joints *j = r->joints;

	for (size_t i = 0; j && i < j->n; i++) {
		struct joint_limit *l = &j->limits[i];

		if (l->taken) /* NOLINT(clang-analyzer-core.NullDereference): there are n */
			joint_return(l->joint, l->size, l->amount);
		joint_unuse(l->joint);
	}
	if (j) {
		heap_free(&j->due);
		free(j->limits);
		free(j->of);
		free(j->noted);
		free(j);
	}
	r->joints = NULL;
}

/* Append the limits of tenant i to the chain of its parent's. */
static void add_limits(
	struct resource *r, struct resource_joints *j, struct joint *const *joints, size_t i)
{
	const struct weir_tenant *t = &r->policy->tenants[i];
	uint32_t row = r->policy_of->part.first[i], bucket = 0;
	uint32_t at = t->parent >= 0 ? j->of[r->nodes[t->parent]] : 0;

	for (unsigned m = 0; m < t->n_max; m++) {
		if (joints[row + m]) {
			j->limits[j->n++] =
				(struct joint_limit){.joint = joint_use(joints[row + m]),
					.size = policy_install_joint(&t->max[m]),
					.node = r->nodes[i],
					.bucket = bucket,
					.above = at,
					.unit = (uint8_t)t->max[m].unit,
					.ops = t->max[m].ops ? t->max[m].ops : WEIR_OPS_ALL};
			at = (uint32_t)j->n;
		}
		bucket += t->max[m].burst_rate > 0 ? 2 : 1;
	}
	j->of[r->nodes[i]] = at;
}

/* Count the requests that wait at a leaf. */
static void add_waiting(struct resource *r, struct resource_joints *j, weir_node node)
{
	const struct resource_count *n = &r->counts[node];
	struct weir_gate_stats st;

	if (!j->of[node] || weir_gate_get_stats(r->gate, resource_policy_now(r), node, &st) < 0)
		return;
	for (unsigned k = 0; k < 2; k++) {
		struct resource_flow cost = {
			n->in[k].requests - n->out[k].requests, n->in[k].bytes - n->out[k].bytes};

		if (cost.requests)
			add(j, node, k, &cost, st.queued);
	}
}

static bool is_same(const struct resource *r, struct joint *const *joints, size_t rows)
{
	const struct resource_joints *j = r->joints;
	size_t n = 0;

	for (size_t row = 0; row < rows; row++)
		if (joints[row] && (!j || n >= j->n || j->limits[n++].joint != joints[row]))
			return false;
	return n == (j ? j->n : 0);
}

int resource_joint_set(struct resource *r, struct joint *const *joints, size_t rows)
{
	struct resource_joints *j;
	size_t n = 0;

	if (is_same(r, joints, rows))
		return 0;
	for (size_t row = 0; row < rows; row++)
		n += joints[row] != NULL;
	resource_joint_clear(r);
	if (!n)
		return 0;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	r->joints = j;
	heap_init(&j->due, NULL);
	j->n_nodes = r->n_counts;
	j->limits = calloc(n, sizeof(*j->limits));
	j->noted = calloc(n, sizeof(*j->noted));
	j->of = calloc(j->n_nodes, sizeof(*j->of));
	if (!j->limits || !j->noted || !j->of || heap_reserve(&j->due, n) < 0) {
		resource_joint_clear(r);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->n_nodes; i++)
		add_limits(r, j, joints, i);
	for (size_t i = 0; i < r->n_nodes; i++)
		if (r->policy->tenants[i].first_child < 0)
			add_waiting(r, j, r->nodes[i]);
	for (size_t i = 0; i < j->n; i++) {
		set_level(r, &j->limits[i], fmin(level_of(r, &j->limits[i]), 0));
		note(j, &j->limits[i]);
	}
	return 0;
}
