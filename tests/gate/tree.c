/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that come and go between a submit and the next look at it. */
#include "gate/gate.h"
#include "test.h"

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* A leaf whose only request has come and was taken back, before anybody looked, becomes an inner node; or goes,
 * and another has its number. Nobody is to look for its request then. */
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

int main(void)
{
	RUN(becomes_an_inner_node);
	RUN(goes_and_another_comes);
	return 0;
}
