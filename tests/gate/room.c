/* SPDX-License-Identifier: BSD-3-Clause */
/* A gate that was made for few nodes gets many, one by one, while requests wait in it. */
#include "gate/room.h"
#include "law.h"

enum { N = 700 };

/* Each tenant has a max, which its first request uses up: its second waits, with a timer set,
 * when the next tenant is added and everything moves. */
static void add_one(struct weir_gate *g, weir_time now, struct weir_req *reqs)
{
	struct weir_bucket_spec max = {.kind = WEIR_HOLD, .rate = 1, .size = 1};
	struct weir_knob k = {.kind = WEIR_KNOB_BUCKETS, .buckets = &max, .n_buckets = 1};

	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &k.node), 0);
	law_set(g, now, &k, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct weir_req *r = &reqs[i];

		*r = (struct weir_req){.tenant = k.node, .bytes = 1, .deadline = 1000};
		CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
	}
	law_operations += 2;
}

static void waiting_requests_move_along(enum weir_order order)
{
	static struct weir_req reqs[2 * N], *out[2 * N];
	struct weir_gate_config config = {.nodes = 2, .window = 4 * N, .order = order};
	struct weir_gate *g;
	size_t before;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	before = weir_gate_memory(g);
	for (uint32_t i = 0; i < N; i++) {
		weir_time now = (weir_time)i * WEIR_MS;

		add_one(g, now, &reqs[2 * i]);
		CHECK_INT(weir_gate_next(g, now, out, 2), 1);
		CHECK(out[0] == &reqs[2 * i]);
		/* At or before the time of the first second request, but not at once. */
		weir_time wakeup = weir_gate_wakeup(g, now);

		CHECK(!i || (wakeup > now && wakeup <= WEIR_SEC + TIMER_TICK));
	}
	CHECK(g->room > N && weir_gate_memory(g) >= before + N * sizeof(struct node));
	/* The second requests, each a second and a tick after its first, in that order. */
	for (uint32_t i = 0; i < N; i++) {
		weir_time now = WEIR_SEC + (weir_time)i * WEIR_MS + 2 * WEIR_US;

		CHECK_INT(weir_gate_next(g, now, out, 2), 1);
		CHECK(out[0] == &reqs[2 * i + 1]);
	}
	CHECK_INT(weir_gate_wakeup(g, 10 * WEIR_SEC), WEIR_NEVER);
	weir_gate_free(g);
}

static void many_nodes_one_by_one(void)
{
	waiting_requests_move_along(WEIR_FAIR);
	waiting_requests_move_along(WEIR_FIFO);
	waiting_requests_move_along(WEIR_EDF);
}

static void half_as_much_again(void)
{
	uint64_t *words = NULL;

	CHECK_INT(room_more(0, 16), 16);
	CHECK_INT(room_more(100, 16), 150);
	CHECK_INT(ROOM_GROW(words, 0, 4), 0);
	words[3] = 7;
	CHECK_INT(ROOM_GROW(words, 4, 9), 0);
	CHECK_INT(words[3], 7);
	CHECK_INT(words[8], 0);
	pool_array_free(words);
}

/* With many tenants, an idle one takes no more than 400 bytes. */
static void idle_tenants_are_small(void)
{
	static const uint32_t sizes[] = {
		5000, 6200, 10000, 12300, 20000, 25000, 40000, 50000, 300000};

	for (unsigned k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		struct weir_gate_config config = {.nodes = sizes[k] + 1};
		struct weir_gate *g;
		weir_node n;

		CHECK_INT(weir_gate_new(&config, &g), 0);
		for (uint32_t i = 0; i < sizes[k]; i++)
			CHECK_INT(weir_gate_add(g, WEIR_ROOT, &n), 0);
		CHECK(weir_gate_memory(g) <= 400 * (size_t)sizes[k]);
		weir_gate_free(g);
	}
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "room");
	RUN(many_nodes_one_by_one);
	RUN(half_as_much_again);
	RUN(idle_tenants_are_small);
	return law_end(4000);
}
