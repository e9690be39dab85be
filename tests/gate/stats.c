/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms: what is done goes through a ring, and all of it comes out. */
#include "gate/node.h"
#include "test.h"

/* As many as fit the ring several times, and nobody asks for the ring to be emptied. */
static void a_full_ring_loses_nothing(void)
{
	struct weir_gate_config config = {.window = 2, .histograms = 4};
	struct weir_req reqs[2] = {{0}}, *r;
	weir_node leaves[2];
	struct weir_gate *g;
	weir_time now = 0;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaves[i]), 0);
	for (unsigned i = 0; i < 5 * STATS_RING + 7; i++) {
		r = &reqs[i % 2];
		r->tenant = leaves[i % 3 == 0];
		CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		now += WEIR_MS;
		CHECK_INT(weir_gate_next(g, now, &r, 1), 1);
		now += 2 * WEIR_MS;
		weir_gate_done(g, now, &r, 1);
	}
	weir_gate_drain(g);
	CHECK_INT(weir_gate_unrecorded(g), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct weir_hist *wait = weir_gate_hist_wait(g, leaves[i]);
		const struct weir_hist *device = weir_gate_hist_device(g, leaves[i]);
		struct weir_gate_stats s;

		CHECK_INT(weir_gate_get_stats(g, now, leaves[i], &s), 0);
		CHECK(s.served > STATS_RING);
		CHECK_INT(wait->count, s.served);
		CHECK_INT(device->count, s.served);
		CHECK_NEAR((double)weir_hist_percentile(wait, 50), 1e6, 0.01);
		CHECK_NEAR((double)weir_hist_percentile(device, 50), 2e6, 0.01);
	}
	weir_gate_free(g);
}

/* How long the oldest has waited is known while requests wait, and only then. */
static void the_oldest_that_waits(void)
{
	struct weir_gate_config config = {.window = 1};
	struct weir_req reqs[3] = {{0}}, *r;
	struct weir_gate_stats s;
	weir_node leaf, other;
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaf), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &other), 0);
	CHECK_INT(weir_gate_get_stats(g, 0, leaf, &s), 0);
	CHECK_INT(s.oldest, WEIR_NEVER);
	for (unsigned i = 0; i < 3; i++) {
		r = &reqs[i];
		r->tenant = leaf;
		CHECK_INT(weir_gate_submit(g, (weir_time)(10 + i), &r, 1), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		weir_time now = 20 + i;

		CHECK_INT(weir_gate_get_stats(g, now, leaf, &s), 0);
		CHECK_INT(s.oldest, 10 + i);
		CHECK_INT(weir_gate_get_stats(g, now, other, &s), 0);
		CHECK_INT(s.oldest, WEIR_NEVER);
		CHECK_INT(weir_gate_next(g, now, &r, 1), 1);
		weir_gate_done(g, now, &r, 1);
	}
	CHECK_INT(weir_gate_get_stats(g, 30, leaf, &s), 0);
	CHECK_INT(s.oldest, WEIR_NEVER);
	weir_gate_free(g);
}

int main(void)
{
	RUN(the_oldest_that_waits);
	RUN(a_full_ring_loses_nothing);
	return 0;
}
