/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * install: convert a policy's tree into the knobs of a gate.
 *
 * LAW     weight → the node's weight.
 *         max r  → a hold bucket of rate r, at the node itself, inner or leaf. Its size is the
 *                amount of r in 25 ms. By law 4 of gate.h service is then ≤ r·(t + 45 ms) + one
 *                largest request over any t: under 1.05·r + 1 over a second. A smaller bucket loses
 *                tokens if the gate's thread or the client runs late: on a busy machine 5 ms gave
 *                0.8 of a max of 1k iops to a client with 8 requests in flight. Never less than two
 *                requests or 8 KiB: with room for one, tokens that arrive while it waits for a slot
 *                would be lost, and a max of 100 iops would give 91.
 *         If gates divide a max, each has its part of the bucket, but one request or 4 KiB at
 *         least: n gates together hold less than n − 1 requests more than one gate. Where that is more than
 *         0.005·r, or n − 1 requests of 64 KiB are, the max is not divided: its part is 0, each gate has a bucket
 *         without a rate, and its tokens come from one bucket for all (control/joint.h). The size of that is one
 *         request or 4 KiB, and the amount of r in 45 ms: a joint bucket is not charged 20 ms late.
 *         burst B for T, B > r → two hold buckets: (rate B, size as for max), and (rate r, size
 *         (B − r)·T). Drained at B from full, the second is empty after T. If gates divide it, its tokens go with the parts
 *         (serve/resource/divide.c).
 *         min g  → an R-bucket of rate g at each leaf (weir_policy_bounds divides an inner node's).
 *                Its size is the amount of g in 100 ms: longer than a device keeps a full window
 *                waiting, so that a tenant that waits for that loses no token; and the most that a
 *                tenant may claim at once after a pause.
 *         A plan's claim → the priority of a leaf, and a profile bucket for each of its pairs. A tenant's `lab` → the same,
 *                and buckets of tokens, and a deadline; its priority stands before the plan's.
 * METHOD  Nodes first, then one weir_gate_set, which takes all or nothing. O(tenants).
 * EXAMPLE max 1k iops, burst 3k iops for 30s: (3000/s, 75) and (1000/s, 60000).
 */
#include "base/no-memory.h"
#include "policy/impl.h"
#include "policy/plan.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MAX_SPAN   0.025        /* s */
#define JOINT_SPAN 0.045        /* s */
#define JOINT_OVER 0.005        /* part of a max that several buckets may hold more than one */
#define JOINT_SIZE 65536        /* bytes of a request */
#define MIN_SPAN   0.100        /* s */
#define WEIGHT_MIN (1.0 / 1024) /* the gate's */
#define WEIGHT_MAX 1048576.0

static const uint8_t slot_ops[3] = {WEIR_OPS_ALL, WEIR_OPS_READS, WEIR_OPS_WRITES};

static double one_request(enum weir_unit unit)
{
	return unit == WEIR_UNIT_BYTES ? 4096 : 1;
}

static double bucket_size(enum weir_unit unit, double rate, double span)
{
	return fmax(rate * span, 2 * one_request(unit));
}

/* Return the size of this part of a max's bucket. Of a bucket that is divided by itself each gate
 * would have two requests. */
static double part_size(enum weir_unit unit, double whole_rate, double part)
{
	return fmax(part * bucket_size(unit, whole_rate, MAX_SPAN), one_request(unit));
}

/* A gate takes no smaller rate than POLICY_RATE_MIN. So each gate may have that much of a divided
 * limit, whatever its part: 1/1024 of a request a second. */
static double rate_of(double rate, double part)
{
	return fmax(rate * part, POLICY_RATE_MIN);
}

bool policy_install_is_joint(const struct weir_limit *max, size_t gates)
{
	double request = max->unit == WEIR_UNIT_BYTES ? JOINT_SIZE : 1;

	return max->burst_rate <= 0 && max->rate * JOINT_OVER < (double)(gates - 1) * request;
}

struct joint_size policy_install_joint(const struct weir_limit *max)
{
	return (struct joint_size){max->rate, max->rate * JOINT_SPAN + one_request(max->unit)};
}

unsigned policy_install_max(
	const struct weir_limit *max, double part, struct weir_bucket_spec ret[2])
{
	double rate = rate_of(max->rate, part);
	double peak = max->burst_rate > 0 ? rate_of(max->burst_rate, part) : rate;
	struct weir_bucket_spec b = {
		.kind = WEIR_HOLD, .unit = max->unit, .ops = max->ops, .rate = peak};

	b.size = part_size(max->unit, max->burst_rate > 0 ? max->burst_rate : max->rate, part);
	if (part <= 0)
		b.rate = 0, b.size = 1;
	ret[0] = b;
	if (max->burst_rate <= 0)
		return 1;
	b.rate = rate;
	b.size = fmax(b.size, (peak - rate) * ((double)max->burst_for / WEIR_SEC));
	ret[1] = b;
	return 2;
}

/* parts: by limit; NULL: all of each. */
static unsigned max_buckets(
	const struct weir_tenant *t, const double *parts, struct weir_bucket_spec *ret)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_max; i++)
		n += policy_install_max(&t->max[i], parts ? parts[i] : 1, ret + n);
	return n;
}

static unsigned min_buckets(
	const struct weir_bounds *b, const double *parts, struct weir_bucket_spec *ret)
{
	unsigned n = 0, row = 0;

	for (unsigned s = 0; s < WEIR_LIMITS; s++) {
		enum weir_unit unit = (enum weir_unit)(s / 3);
		const double *of_unit = &b->min[s / 3 * 3];
		double part = parts && b->min[s] > 0 ? parts[row++] : 1;
		double rate = rate_of(b->min[s], part);

		/* A guarantee for all that only sums up reads and writes needs no tokens of its
		 * own. */
		if (b->min[s] <= 0 ||
			(s % 3 == 0 && of_unit[0] <= (of_unit[1] + of_unit[2]) * (1 + 1e-9)))
			continue;
		ret[n++] = (struct weir_bucket_spec){.kind = WEIR_RTOKENS,
			.unit = unit,
			.ops = slot_ops[s % 3],
			.rate = rate,
			.size = bucket_size(unit, rate, MIN_SPAN)};
	}
	return n;
}

static unsigned lab_buckets(const struct policy_lab_tenant *lab, struct weir_bucket_spec *ret)
{
	unsigned n = 0;

	for (; lab && n < lab->n_profile; n++)
		ret[n] = lab->profile[n];
	if (lab && lab->rtokens.size > 0)
		ret[n++] = lab->rtokens;
	if (lab && lab->ltokens.size > 0)
		ret[n++] = lab->ltokens;
	return n;
}

static unsigned buckets_of(const struct weir_tenant *t, const struct weir_bounds *bounds,
	const double *parts, struct weir_bucket_spec *ret)
{
	unsigned n = max_buckets(t, parts, ret);

	if (t->first_child >= 0)
		return n;
	return n + min_buckets(bounds, parts ? parts + t->n_max : NULL, ret + n);
}

unsigned policy_install_rows(const struct weir_tenant *t, const struct weir_bounds *bounds,
	uint8_t ret_slots[POLICY_ROWS])
{
	unsigned n = 0;

	for (; n < t->n_max; n++)
		ret_slots[n] = (uint8_t)weir_limit_slot(t->max[n].unit, t->max[n].ops);
	for (unsigned s = 0; s < WEIR_LIMITS && t->first_child < 0; s++)
		if (bounds->min[s] > 0)
			ret_slots[n++] = (uint8_t)(WEIR_LIMITS + s);
	return n;
}

uint32_t *policy_install_first(const struct weir_policy *p, const struct weir_bounds *bounds)
{
	uint32_t *first = calloc(p->n_tenants + 1, sizeof(*first));
	uint8_t slots[POLICY_ROWS];

	for (size_t i = 0; first && i < p->n_tenants; i++)
		first[i + 1] = first[i] + policy_install_rows(&p->tenants[i], &bounds[i], slots);
	return first;
}

unsigned policy_install_buckets(
	const struct weir_tenant *t, const struct weir_bounds *bounds, struct weir_bucket_spec *ret)
{
	return buckets_of(t, bounds, NULL, ret);
}

unsigned policy_install_buckets_part(const struct weir_policy *p, size_t i,
	const struct weir_bounds *bounds, struct policy_part part, struct weir_bucket_spec *ret)
{
	unsigned n = 0;

	if (!p->cluster.n_servers)
		n = buckets_of(
			&p->tenants[i], bounds, part.rows ? part.rows + part.first[i] : NULL, ret);
	n += lab_buckets(policy_lab_of(p, i), ret + n);
	for (unsigned k = 0; part.claims && k < part.claims[i].n; k++)
		ret[n++] = part.claims[i].profile[k];
	if (part.rules && part.rules[i].bucket.size > 0)
		ret[n++] = part.rules[i].bucket;
	if (part.rules && part.rules[i].second.size > 0)
		ret[n++] = part.rules[i].second;
	return n;
}

double policy_install_weight(const struct weir_policy *p, size_t i, struct policy_part part)
{
	double weight = p->tenants[i].weight;

	return part.rules ? fmin(fmax(weight * part.rules[i].scale, WEIGHT_MIN), WEIGHT_MAX)
			  : weight;
}

size_t policy_install_knobs(const struct weir_policy *p, size_t i, weir_node node,
	const struct weir_bounds *bounds, struct policy_part part,
	struct weir_knob ret_knobs[POLICY_KNOBS], struct weir_bucket_spec *ret_buckets)
{
	const struct policy_lab_tenant *lab = policy_lab_of(p, i);

	ret_knobs[0] = (struct weir_knob){
		.node = node, .kind = WEIR_KNOB_WEIGHT, .value = policy_install_weight(p, i, part)};
	ret_knobs[1] = (struct weir_knob){.node = node,
		.kind = WEIR_KNOB_BUCKETS,
		.buckets = ret_buckets,
		.n_buckets = policy_install_buckets_part(p, i, bounds, part, ret_buckets)};
	if (p->tenants[i].first_child >= 0)
		return 2;
	ret_knobs[2] = (struct weir_knob){.node = node,
		.kind = WEIR_KNOB_PRIORITY,
		.value = part.claims && part.claims[i].n ? part.claims[i].priority : -1};
	if (lab && lab->given & POLICY_LAB_PRIORITY)
		ret_knobs[2].value = lab->priority;
	if (!lab || !(lab->given & POLICY_LAB_DEADLINE))
		return 3;
	ret_knobs[3] = (struct weir_knob){
		.node = node, .kind = WEIR_KNOB_DEADLINE, .value = (double)lab->deadline};
	return 4;
}

/* Set the knobs of all tenants at once. 0 or an error; then nothing has changed. */
static int set_all(const struct weir_policy *p, struct weir_gate *g, weir_time now,
	const weir_node *nodes, struct weir_err *err)
{
	size_t n = p->n_tenants;
	struct weir_bounds *bounds = calloc(n + 1, sizeof(*bounds));
	struct weir_knob *knobs = calloc(n + 1, POLICY_KNOBS * sizeof(*knobs));
	struct weir_bucket_spec *buckets = calloc(n + 1, POLICY_BUCKETS * sizeof(*buckets));
	int rc = bounds && knobs && buckets ? weir_policy_bounds(p, bounds) : -ENOMEM;
	size_t used = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		used += policy_install_knobs(p, i, nodes[i], &bounds[i], (struct policy_part){0},
			&knobs[used], &buckets[POLICY_BUCKETS * i]);
	if (rc == 0)
		rc = weir_gate_set(g, now, knobs, used, err);
	else
		no_memory(err);
	free(bounds);
	free(knobs);
	free(buckets);
	return rc;
}

/* Remove children before parents, as the gate requires. */
static void remove_nodes(struct weir_gate *g, const weir_node *nodes, size_t n)
{
	while (n-- > 0)
		weir_gate_remove(g, nodes[n]);
}

int weir_policy_install(const struct weir_policy *p, struct weir_gate *g, weir_time now,
	weir_node *ret_nodes, struct weir_err *err)
{
	size_t n = p->n_tenants, added = 0;
	weir_node *nodes = calloc(n ? n : 1, sizeof(*nodes));
	int rc = nodes ? 0 : no_memory(err);

	for (; rc == 0 && added < n; added++) {
		int parent = p->tenants[added].parent;

		rc = weir_gate_add(g, parent < 0 ? WEIR_ROOT : nodes[parent], &nodes[added]);
		if (rc < 0) {
			weir_err_set(err, rc, "no room for tenant '%s' in the gate",
				p->tenants[added].path);
			break;
		}
	}
	if (rc == 0 && n && p->enforce)
		rc = set_all(p, g, now, nodes, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		ret_nodes[i] = nodes[i];
	if (rc < 0 && nodes)
		remove_nodes(g, nodes, added);
	free(nodes);
	return rc;
}

void weir_policy_gate(const struct weir_resource *r, struct weir_gate_config *ret_config)
{
	*ret_config = (struct weir_gate_config){
		.order = r->lab.order,
		.cost = r->cost,
		.window =
			r->depth > 0
				? r->depth
				: 0, /* 0 (auto): the gate's own default until a controller says */
		.window_bytes = r->depth_bytes,
		.run = r->run,
		.run_distance = r->run_distance,
		.credit = r->credit,
	};
}
