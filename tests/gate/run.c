/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of near requests: their length, their distance, and what ends them. Tenant x has adjacent
 * requests, and y, of the same weight, distant ones: without runs they take turns. */
#include "device.h"

#define AT    (UINT64_C(1) << 30) /* offset of x's first request */
#define BYTES 4096u
#define NEAR  1000u

struct run {
	struct bench b;
	weir_node group, x, y;
};

static struct run run_new(unsigned run, bool grouped)
{
	struct run r = {.b = bench_new((struct weir_gate_config){
				.window = 1, .run = run, .run_distance = NEAR})};

	r.group = grouped ? leaf(&r.b, WEIR_ROOT, 1) : WEIR_ROOT;
	r.x = leaf(&r.b, r.group, 1);
	r.y = leaf(&r.b, r.group, 1);
	return r;
}

static void submit_at(struct run *r, weir_node n, uint64_t offset)
{
	submit(&r->b, n, BYTES)->offset = offset;
}

static void submit_side_by_side(struct run *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		submit_at(r, r->x, AT + (uint64_t)i * BYTES);
		submit_at(r, r->y, (uint64_t)i << 40);
	}
}

/* Check the tenants of the next requests: x, y, or another, z; -: there is none. */
static void passes(struct run *r, const char *tenants)
{
	for (const char *t = tenants; *t; t++) {
		struct weir_req *req = pass(&r->b);
		char is = !req ? '-' : req->tenant == r->x ? 'x' : req->tenant == r->y ? 'y' : 'z';

		if (is != *t)
			FAIL("request %d of %s is of %c", (int)(t - tenants), tenants, is);
		r->b.now++;
		if (req)
			finish(&r->b, req);
	}
}

/* Then y catches up, one by one. */
static void of_so_many_requests(void)
{
	struct run none = run_new(1, false), two = run_new(2, false), five = run_new(5, false);

	submit_side_by_side(&none, 6);
	passes(&none, "xyxyxy");
	submit_side_by_side(&two, 6);
	passes(&two, "xxyy");
	submit_side_by_side(&five, 6);
	passes(&five, "xxxxxyyyyy");
	weir_gate_free(none.b.g);
	weir_gate_free(two.b.g);
	weir_gate_free(five.b.g);
}

/* From the end of one request to the start of the next, forwards and backwards. */
static void near_is_within_the_distance(void)
{
	for (int back = 0; back < 2; back++)
		for (unsigned far = 0; far < 2; far++) {
			struct run r = run_new(2, false);
			uint64_t end = AT + BYTES, gap = NEAR + far;

			submit_at(&r, r.x, AT);
			submit_at(&r, r.x, back ? end - gap : end + gap);
			submit_at(&r, r.y, 0);
			passes(&r, far ? "xyx" : "xxy");
			weir_gate_free(r.b.g);
		}
}

/* A tenant of a better priority does not wait for the end of a run, even if both fit their
 * profiles. */
static void a_better_class_ends_it(void)
{
	struct run r = run_new(8, false);
	weir_node first = leaf(&r.b, WEIR_ROOT, 1);

	knob(&r.b, r.x, WEIR_KNOB_PRIORITY, 5);
	knob(&r.b, first, WEIR_KNOB_PRIORITY, 3);
	submit_side_by_side(&r, 6);
	passes(&r, "xx");
	submit_at(&r, first, 0);
	passes(&r, "zxxxxy");
	weir_gate_free(r.b.g);
}

/* Each class has its own turns, and its own runs: the first request has an R-token, the others
 * are a run of the rest. */
static void each_class_has_its_own(void)
{
	struct run r = run_new(3, false);
	const struct weir_bucket_spec min = {.kind = WEIR_RTOKENS, .rate = 0.01, .size = 1};

	buckets(&r.b, r.x, &min, 1);
	submit_side_by_side(&r, 6);
	passes(&r, "xxxxy");
	weir_gate_free(r.b.g);
}

static void a_knob_ends_it(void)
{
	struct run r = run_new(4, false);

	submit_side_by_side(&r, 8);
	passes(&r, "xx");
	knob(&r.b, WEIR_ROOT, WEIR_KNOB_RUN, 3);
	passes(&r, "yy");
	weir_gate_free(r.b.g);
}

/* The group's max for writes stops a third tenant, and not a run of reads. */
static void goes_on_while_others_are_stopped(void)
{
	struct run r = run_new(3, true);
	weir_node writer = leaf(&r.b, r.group, 1);
	const struct weir_bucket_spec max = {.ops = WEIR_OPS(WEIR_WRITE), .rate = 0.01, .size = 1};

	buckets(&r.b, r.group, &max, 1);
	for (int i = 0; i < 2; i++) {
		struct weir_req *w = &r.b.reqs[r.b.n++];

		*w = (struct weir_req){.tenant = writer, .op = WEIR_WRITE, .bytes = BYTES};
		CHECK_INT(weir_gate_submit(r.b.g, r.b.now, &w, 1), 0);
	}
	passes(&r, "z-");
	submit_side_by_side(&r, 6);
	passes(&r, "xxxyyy");
	weir_gate_free(r.b.g);
}

/* A leaf that reuses the number of a removed one does not continue its run. */
static void a_new_leaf_has_its_own(void)
{
	struct run r = run_new(4, false);

	r.x = r.y; /* the one with the higher number is removed */
	submit_at(&r, r.x, AT);
	passes(&r, "x");
	CHECK_INT(weir_gate_remove(r.b.g, r.x), 0);
	CHECK_INT(leaf(&r.b, WEIR_ROOT, 1), r.x);
	r.y = r.x - 1;
	submit_at(&r, r.y, 0);
	submit_at(&r, r.x, AT + BYTES);
	passes(&r, "yx");
	weir_gate_free(r.b.g);
}

int main(void)
{
	RUN(of_so_many_requests);
	RUN(near_is_within_the_distance);
	RUN(a_better_class_ends_it);
	RUN(each_class_has_its_own);
	RUN(a_knob_ends_it);
	RUN(goes_on_while_others_are_stopped);
	RUN(a_new_leaf_has_its_own);
	return 0;
}
