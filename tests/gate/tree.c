/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that are added and removed between a submit and the call that examines it; and groups in fair queueing. */
#include <weir/gate.h>
#include "test.h"
#include <errno.h>

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* A leaf whose only request was submitted and cancelled, before a call examined it, becomes an
 * inner node; or is removed, and another leaf has its number. Its request must not be looked for
 * then. */
static void a_leaf_that_was_to_be_looked_at(bool goes)
{
	struct weir_req first = {0}, second = {0}, *r = &first;
	struct weir_gate *g;
	weir_node a, below;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 4}, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &a), 0);
	first.tenant = a;
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_cancel(g, 0, a, any, drop, NULL), 1);
	if (goes) {
		CHECK_INT(weir_gate_remove(g, a), 0);
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &a), 0);
	}
	CHECK_INT(weir_gate_add(g, a, &below), 0);
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_wakeup(g, 0), WEIR_NEVER);
	r = &second;
	second.tenant = below;
	CHECK_INT(weir_gate_submit(g, 1, &r, 1), 0);
	CHECK_INT(weir_gate_next(g, 1, &r, 1), 1);
	CHECK(r == &second);
	weir_gate_done(g, 2, &r, 1);
	weir_gate_free(g);
}

static void becomes_an_inner_node(void)
{
	a_leaf_that_was_to_be_looked_at(false);
}

static void goes_and_another_comes(void)
{
	a_leaf_that_was_to_be_looked_at(true);
}

/* ---- the life of a node and of its number */

static weir_node add(struct weir_gate *g, weir_node parent)
{
	weir_node n;

	CHECK_INT(weir_gate_add(g, parent, &n), 0);
	return n;
}

static void set_bucket(
	struct weir_gate *g, weir_time now, weir_node n, struct weir_bucket_spec spec)
{
	struct weir_knob k = {
		.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = &spec, .n_buckets = 1};

	CHECK_INT(weir_gate_set(g, now, &k, 1, NULL), 0);
}

static struct weir_gate *new_gate(enum weir_order order, uint32_t histograms)
{
	struct weir_gate_config config = {.window = 8, .order = order, .histograms = histograms};
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	return g;
}

static void not_every_gate(void)
{
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 1e6 + 1}, &g), -EINVAL);
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = -1}, &g), -EINVAL);
	CHECK_INT(weir_gate_new(
			  &(struct weir_gate_config){.order = (enum weir_order)(WEIR_EDF + 1)}, &g),
		-EINVAL);
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.cost = (enum weir_unit)WEIR_UNITS}, &g),
		-EINVAL);
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 1e6}, &g), 0);
	weir_gate_free(g);
}

/* 32 levels below the root; a node with requests inside, or with buckets that only a leaf may
 * have, cannot become a parent. */
static void not_every_parent(void)
{
	struct weir_gate *g = new_gate(WEIR_FAIR, 0);
	struct weir_req req = {0}, *r = &req;
	weir_node n = WEIR_ROOT, child;

	for (unsigned depth = 0; depth < 32; depth++)
		n = add(g, n);
	CHECK_INT(weir_gate_add(g, n, &child), -EINVAL);
	req.tenant = n = add(g, WEIR_ROOT);
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_add(g, n, &child), -EBUSY);
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
	CHECK_INT(weir_gate_add(g, n, &child), -EBUSY);
	weir_gate_done(g, 0, &r, 1);
	set_bucket(g, 0, n, (struct weir_bucket_spec){.kind = WEIR_RTOKENS, .rate = 1, .size = 1});
	CHECK_INT(weir_gate_add(g, n, &child), -EINVAL);
	set_bucket(g, 0, n, (struct weir_bucket_spec){.kind = WEIR_PROFILE, .rate = 1, .size = 1});
	CHECK_INT(weir_gate_add(g, n, &child), -EINVAL);
	set_bucket(g, 0, n, (struct weir_bucket_spec){.kind = WEIR_HOLD, .rate = 1, .size = 1});
	CHECK_INT(weir_gate_add(g, n, &child), 0);
	weir_gate_free(g);
}

/* A leaf again: its max for writes holds no reads. */
static void a_leaf_again_with_its_max(void)
{
	struct weir_gate *g = new_gate(WEIR_FAIR, 0);
	struct weir_req reqs[3] = {{.op = WEIR_WRITE}, {.op = WEIR_WRITE}, {.op = WEIR_READ}}, *r;
	weir_node n = add(g, WEIR_ROOT);

	set_bucket(g, 0, n,
		(struct weir_bucket_spec){.ops = WEIR_OPS(WEIR_WRITE), .rate = 0.01, .size = 1});
	CHECK_INT(weir_gate_remove(g, add(g, n)), 0);
	for (unsigned i = 0; i < 3; i++) {
		r = &reqs[i];
		r->tenant = n;
		CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	}
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
	CHECK(r == &reqs[0]);
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
	CHECK(r == &reqs[2]);
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 0);
	weir_gate_free(g);
}

/* A group is stopped when its last child is removed: it is no longer, also when it gets another. */
static void stopped_when_its_child_goes(void)
{
	struct weir_gate *g = new_gate(WEIR_FAIR, 0);
	struct weir_req reqs[2] = {{0}}, *r;
	weir_node n = add(g, WEIR_ROOT), child = add(g, n);

	set_bucket(g, 1000, n, (struct weir_bucket_spec){.rate = 0.01, .size = 1});
	for (unsigned i = 0; i < 2; i++) {
		r = &reqs[i];
		r->tenant = child;
		CHECK_INT(weir_gate_submit(g, 1000, &r, 1), 0);
	}
	CHECK_INT(weir_gate_next(g, 1000, &r, 1), 1);
	weir_gate_done(g, 1000, &r, 1);
	CHECK_INT(weir_gate_next(g, 1000, &r, 1), 0);
	CHECK_INT(weir_gate_cancel(g, 1500, child, any, drop, NULL), 1);
	CHECK_INT(weir_gate_remove(g, child), 0);
	CHECK_INT(weir_gate_held(g, 2000, n), 500);
	child = add(g, n);
	CHECK_INT(weir_gate_held(g, 3000, n), 500);
	weir_gate_free(g);
}

/* A new node inherits nothing from the one that had its number. */
static void a_number_again(void)
{
	struct weir_gate *g = new_gate(WEIR_EDF, 4);
	weir_node n = add(g, WEIR_ROOT);
	struct weir_req req = {.tenant = n}, *r = &req;
	const struct weir_hist *hist;
	double deadline;

	CHECK_INT(weir_gate_set(g, 0,
			  &(struct weir_knob){.node = n, .kind = WEIR_KNOB_DEADLINE, .value = 7}, 1,
			  NULL),
		0);
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_next(g, 5, &r, 1), 1);
	weir_gate_done(g, 9, &r, 1);
	weir_gate_drain(g);
	CHECK_INT(weir_gate_hist_wait(g, n)->count, 1);
	CHECK_INT(weir_gate_submit(g, 9, &r, 1), 0);
	CHECK_INT(weir_gate_next(g, 9, &r, 1), 1);
	weir_gate_done(g, 9, &r, 1); /* in the ring when it is removed */
	CHECK_INT(weir_gate_remove(g, n), 0);
	CHECK_INT(add(g, WEIR_ROOT), n);
	CHECK_INT(weir_gate_get(g, n, WEIR_KNOB_DEADLINE, &deadline), 0);
	CHECK_NEAR(deadline, 0, 0);
	weir_gate_drain(g);
	hist = weir_gate_hist_wait(g, n);
	CHECK(!hist || hist->count == 0);
	hist = weir_gate_hist_device(g, n);
	CHECK(!hist || hist->count == 0);
	weir_gate_free(g);
}

/* Groups of equal weight. The first begins with a request that costs 1, and then all its requests cost twice as much
 * as those of the other two. When each has had about the same, the smaller requests are due first. */
static void a_group_whose_requests_grow(void)
{
	enum { EACH = 8, GROUPS = 3 };
	struct weir_req reqs[EACH][GROUPS], *r;
	char order[EACH * GROUPS + 1] = "";
	weir_node leaves[GROUPS];
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 1}, &g), 0);
	for (unsigned i = 0; i < GROUPS; i++)
		leaves[i] = add(g, add(g, WEIR_ROOT));
	for (unsigned k = 0; k < EACH; k++)
		for (unsigned i = 0; i < GROUPS; i++) {
			reqs[k][i] = (struct weir_req){.tenant = leaves[i],
				.requests = i   ? 8
					    : k ? 16
						: 1};
			r = &reqs[k][i];
			CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
		}
	for (unsigned n = 0; n < 14; n++) {
		CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
		for (unsigned i = 0; i < GROUPS; i++)
			if (leaves[i] == r->tenant)
				order[n] = (char)('a' + i);
		weir_gate_done(g, 0, &r, 1);
	}
	CHECK_STR(order, "abacbcbcabcbca");
	weir_gate_free(g);
}

int main(void)
{
	RUN(becomes_an_inner_node);
	RUN(goes_and_another_comes);
	RUN(not_every_gate);
	RUN(not_every_parent);
	RUN(a_leaf_again_with_its_max);
	RUN(stopped_when_its_child_goes);
	RUN(a_number_again);
	RUN(a_group_whose_requests_grow);
	return 0;
}
