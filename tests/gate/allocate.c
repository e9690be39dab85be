/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After set-up the gate does not allocate memory, for any requests that pass or are held; and
 * tenants, idle or not, use no more memory than promised. The linker redirects every allocation of
 * the gate to this file (--wrap in meson.build).
 */
#include "base/rng.h"
#include <weir/gate.h>
#include "test.h"

static unsigned long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}
void *__wrap_aligned_alloc(size_t align, size_t size)
{
	allocations++;
	return __real_aligned_alloc(align, size);
}

static weir_node add(struct weir_gate *g, weir_node parent, double weight, unsigned n,
	const struct weir_bucket_spec *buckets)
{
	weir_node node;
	struct weir_err err = {""};
	struct weir_knob set[2] = {{.kind = WEIR_KNOB_WEIGHT, .value = weight},
		{.kind = WEIR_KNOB_BUCKETS, .buckets = buckets, .n_buckets = n}};

	CHECK_INT(weir_gate_add(g, parent, &node), 0);
	set[0].node = set[1].node = node;
	if (weir_gate_set(g, 0, set, n ? 2 : 1, &err))
		FAIL("%s", err.text);
	return node;
}

#define TENANTS  300
#define REQUESTS 1200

/* Drive every kind of bucket at random, in a tree or with leaves only: nothing is allocated. */
static void drive(bool flat)
{
	static struct weir_req reqs[REQUESTS];
	struct weir_req *out[16];
	weir_node nodes[TENANTS], group;
	struct weir_gate *g;
	struct rng rng;
	weir_time now = 0;
	struct weir_gate_config config = {.window = 24.5,
		.run = flat ? 0 : 4,
		.run_distance = 1 << 20,
		.credit = 8,
		.histograms = TENANTS};

	rng_init(&rng, 1, "allocate");
	CHECK_INT(weir_gate_new(&config, &g), 0);
	group = flat ? WEIR_ROOT : add(g, WEIR_ROOT, 2, 0, NULL);
	for (unsigned i = 0; i < TENANTS; i++) {
		const struct weir_bucket_spec b[] = {{.kind = WEIR_HOLD, .rate = 1 + i, .size = 4},
			{.kind = WEIR_RTOKENS, .rate = 0.3 * (1 + i), .size = 8},
			{.kind = WEIR_PROFILE, .rate = 1 + i / 2.0, .size = 3},
			{.kind = WEIR_LTOKENS, .rate = 100, .size = 50}};

		nodes[i] = add(g, i % 3 ? WEIR_ROOT : group, 1 + i % 7, i % 5, b);
	}
	if (!flat)
		CHECK_INT(weir_gate_set(g, 0,
				  &(struct weir_knob){.node = group,
					  .kind = WEIR_KNOB_BUCKETS,
					  .buckets = &(
						  struct weir_bucket_spec){.rate = 500, .size = 5},
					  .n_buckets = 1},
				  1, NULL),
			0);
	for (unsigned i = 0; i < REQUESTS; i++) {
		reqs[i] = (struct weir_req){.tenant = nodes[i % TENANTS], .bytes = 4096};
		CHECK_INT(weir_gate_submit(g, now, &(struct weir_req *){&reqs[i]}, 1), 0);
	}
	for (unsigned round = 0; round < 20; round++) {
		unsigned long before;

		weir_gate_drain(g); /* may allocate: not in the path of a request */
		before = allocations;
		for (unsigned i = 0; i < 5000; i++) {
			size_t n = weir_gate_next(g, now, out, 16);

			now += (weir_time)rng_below(&rng, 200000);
			weir_gate_done(g, now, out, n);
			for (size_t k = 0; k < n; k++)
				out[k]->offset = rng_below(&rng, 1 << 24);
			CHECK_INT(weir_gate_submit(g, now, out, n), 0);
			(void)weir_gate_wakeup(g, now);
		}
		for (weir_node n = WEIR_ROOT; (n = weir_gate_next_node(g, n)) != WEIR_ROOT;) {
			double value, levels[8];

			CHECK_INT(weir_gate_get(g, n, WEIR_KNOB_WEIGHT, &value), 0);
			CHECK(weir_gate_get_buckets(g, now, n, NULL, levels, 8) >= 0);
		}
		CHECK_INT(allocations, before);
	}
	CHECK(allocations > TENANTS); /* the counter works */
	weir_gate_free(g);
}

static void the_hot_path_does_not_allocate(void)
{
	drive(false);
}

static void nor_that_of_a_flat_gate(void)
{
	drive(true);
}

static void tenants_use_the_promised_memory(void)
{
	const uint32_t many = 100000;
	const struct weir_bucket_spec b[] = {{.kind = WEIR_HOLD, .rate = 100, .size = 4},
		{.kind = WEIR_RTOKENS, .rate = 10, .size = 4}};

	for (unsigned limits = 0; limits <= 2; limits += 2) {
		struct weir_gate *g;

		CHECK_INT(weir_gate_new(&(struct weir_gate_config){.nodes = many + 1}, &g), 0);
		for (uint32_t i = 0; i < many; i++)
			add(g, WEIR_ROOT, 1 + i % 100, limits, b);
		CHECK(weir_gate_memory(g) <= 400ul * many);
		weir_gate_free(g);
	}
}

int main(void)
{
	RUN(the_hot_path_does_not_allocate);
	RUN(nor_that_of_a_flat_gate);
	RUN(tenants_use_the_promised_memory);
	return 0;
}
