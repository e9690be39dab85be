/* SPDX-License-Identifier: BSD-3-Clause */
/* The window in bytes, one behaviour per function; random cases are in law-random.c, law-fair.c
 * and law-wake.c. */
#include "device.h"

#define KIB 1024u

static struct bench window(double requests, uint64_t bytes)
{
	return bench_new((struct weir_gate_config){.window = requests, .window_bytes = bytes});
}

static void limits_the_bytes_inside(void)
{
	struct bench b = window(8, 512 * KIB);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *out[8];
	struct weir_gate_totals t;

	for (int i = 0; i < 4; i++)
		submit(&b, n, 256 * KIB);
	CHECK_INT(weir_gate_next(b.g, 0, out, 8), 2);
	weir_gate_get_totals(b.g, 0, &t);
	CHECK_INT(t.in_flight_bytes, 512 * KIB);
	CHECK_INT(t.window_bytes, 512 * KIB);
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	finish(&b, out[0]);
	CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
	CHECK_INT(weir_gate_next(b.g, 0, out, 8), 1);
	weir_gate_free(b.g);
}

static void limits_the_requests_too(void)
{
	struct bench b = window(3, 512 * KIB);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *out[8];

	for (int i = 0; i < 5; i++)
		submit(&b, n, 4 * KIB);
	CHECK_INT(weir_gate_next(b.g, 0, out, 8), 3);
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	weir_gate_free(b.g);
}

static void a_larger_request_passes_alone(void)
{
	struct bench b = window(8, 512 * KIB);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *small = submit(&b, n, 4 * KIB), *large = submit(&b, n, 1024 * KIB),
			*last = submit(&b, n, 4 * KIB);

	CHECK(pass(&b) == small);
	CHECK(!pass(&b));
	finish(&b, small);
	CHECK(pass(&b) == large);
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	finish(&b, large);
	CHECK(pass(&b) == last);
	weir_gate_free(b.g);
}

/* FLUSH adds no bytes, whatever is inside. */
static void a_request_without_bytes_fits(void)
{
	struct bench b = window(8, 512 * KIB);
	weir_node x = leaf(&b, WEIR_ROOT, 1), y = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *large = submit(&b, x, 1024 * KIB);

	CHECK(pass(&b) == large);
	struct weir_req *flush = submit(&b, y, 0);

	CHECK(pass(&b) == flush);
	weir_gate_free(b.g);
}

/* Small requests of one tenant do not starve the large ones of another: while a large request
 * that is next waits for room, small ones behind it wait, too. */
static void no_request_overtakes(void)
{
	for (int tree = 0; tree < 2; tree++) {
		struct bench b = window(64, 256 * KIB);
		weir_node parent = WEIR_ROOT;
		struct weir_req *inside[64], *r;
		unsigned n = 0, turns[2] = {0, 0};

		if (tree)
			parent = leaf(&b, WEIR_ROOT, 1);
		weir_node small = leaf(&b, parent, 1), large = leaf(&b, parent, 1);

		for (int i = 0; i < 200; i++)
			submit(&b, small, 4 * KIB);
		for (int i = 0; i < 20; i++)
			submit(&b, large, 256 * KIB);
		for (int i = 0; i < 400 && turns[1] < 20; i++) {
			while ((r = pass(&b))) {
				turns[r->tenant == large]++;
				inside[n++] = r;
			}
			CHECK(n > 0);
			finish(&b, inside[0]);
			memmove(inside, inside + 1, --n * sizeof *inside);
		}
		CHECK_INT(turns[1], 20);
		CHECK(turns[0] >= 19 && turns[0] <= 24); /* equal weights, cost in requests */
		weir_gate_free(b.g);
	}
}

/* A request that does not fit does not hold up those of a higher class. */
static void a_higher_class_passes(void)
{
	struct bench b = window(8, 260 * KIB);
	weir_node x = leaf(&b, WEIR_ROOT, 1), first = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *large = submit(&b, x, 256 * KIB);

	submit(&b, x, 256 * KIB);
	knob(&b, first, WEIR_KNOB_PRIORITY, 0);
	CHECK(pass(&b) == large);
	CHECK(!pass(&b));
	struct weir_req *r = submit(&b, first, 4 * KIB);

	CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
	CHECK(pass(&b) == r);
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	weir_gate_free(b.g);
}

/* Its bucket admits it later: the gate wakes up for it, and not before. */
static void wakes_for_one_that_fits(void)
{
	struct bench b = window(8, 260 * KIB);
	weir_node x = leaf(&b, WEIR_ROOT, 1), first = leaf(&b, WEIR_ROOT, 1);
	struct weir_bucket_spec spec = {.kind = WEIR_HOLD, .rate = 1000, .size = 1};

	knob(&b, first, WEIR_KNOB_PRIORITY, 0);
	buckets(&b, first, &spec, 1);
	struct weir_req *r = submit(&b, first, 1);

	CHECK(pass(&b) == r);
	r = submit(&b, first, 1);
	CHECK(!pass(&b));
	CHECK(pass(&b) == NULL && submit(&b, x, 256 * KIB) == pass(&b));
	submit(&b, x, 256 * KIB);
	CHECK(!pass(&b));
	weir_time at = weir_gate_wakeup(b.g, 0);

	CHECK(at >= WEIR_MS && at <= WEIR_MS + 2048);
	b.now = at;
	CHECK(pass(&b) == r);
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	weir_gate_free(b.g);
}

/* The clock of the full window runs while the window in bytes holds the next request, and the
 * cause is the window. */
static void counts_as_full(void)
{
	struct bench b = window(8, 512 * KIB);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r[8];
	struct weir_gate_totals t;
	struct weir_gate_stats s;

	submit(&b, n, 256 * KIB);
	submit(&b, n, 128 * KIB);
	CHECK_INT(weir_gate_next(b.g, 0, r, 8), 2);
	b.now = 100; /* 128 KiB of room, and nothing waits */
	submit(&b, n, 256 * KIB);
	CHECK_INT(weir_gate_next(b.g, 100, r + 2, 6), 0);
	weir_gate_done(b.g, 150, &r[1], 1); /* full for 50: now it fits */
	weir_gate_get_totals(b.g, 170, &t);
	CHECK_INT(t.full, 50);
	CHECK_INT(t.full_served, 1);
	CHECK_INT(weir_gate_next(b.g, 170, r + 1, 1), 1);
	b.now = 200;
	submit(&b, n, 300 * KIB);
	CHECK_INT(weir_gate_next(b.g, 200, r + 2, 6), 0);
	weir_gate_done(b.g, 210, &r[0], 1); /* still too large */
	weir_gate_done(b.g, 230, &r[1], 1); /* alone it fits */
	weir_gate_get_totals(b.g, 240, &t);
	CHECK_INT(t.full, 80);
	CHECK_INT(t.full_served, 3);
	CHECK_INT(weir_gate_next(b.g, 240, r, 8), 1);
	CHECK_INT(weir_gate_get_stats(b.g, 240, n, &s), 0);
	CHECK(s.wait_ns[WEIR_WAIT_WINDOW] == 50 + 30);
	CHECK(s.wait_ns[WEIR_WAIT_TURN] == 20 + 10);
	weir_gate_free(b.g);
}

static void a_knob_turns_it(void)
{
	struct bench b = window(8, 0);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r[8];
	struct weir_err err = {""};
	const struct weir_knob bad[] = {
		{.kind = WEIR_KNOB_WINDOW_BYTES, .value = -1},
		{.kind = WEIR_KNOB_WINDOW_BYTES, .value = 0.5},
		{.kind = WEIR_KNOB_WINDOW_BYTES, .value = 0x1p53},
		{.node = n, .kind = WEIR_KNOB_WINDOW_BYTES, .value = 1},
	};

	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(weir_gate_set(b.g, 0, &bad[i], 1, &err), -EINVAL);
	for (int i = 0; i < 8; i++)
		submit(&b, n, 256 * KIB);
	CHECK_INT(weir_gate_next(b.g, 0, r, 4), 4);
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 512 * KIB); /* bytes inside count */
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	weir_gate_done(b.g, 0, r, 3);
	CHECK(pass(&b) != NULL);
	CHECK(!pass(&b));
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 768 * KIB);
	CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
	CHECK(pass(&b) != NULL);
	CHECK(!pass(&b));
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 0);
	CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
	CHECK_INT(weir_gate_next(b.g, 0, r, 8), 2);
	weir_gate_free(b.g);
}

static bool is_large(const struct weir_req *r, void *arg)
{
	return r->bytes > *(uint32_t *)arg;
}

static void drop(struct weir_req *r, void *arg)
{
}

/* The request that did not fit is cancelled: the next may pass. */
static void a_cancel_makes_way(void)
{
	struct bench b = window(8, 260 * KIB);
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	uint32_t most = 4 * KIB;

	submit(&b, n, 256 * KIB);
	CHECK(pass(&b) != NULL);
	submit(&b, n, 256 * KIB);
	struct weir_req *small = submit(&b, n, 4 * KIB);

	CHECK(!pass(&b));
	CHECK_INT(weir_gate_cancel(b.g, 0, n, is_large, drop, &most), 1);
	CHECK_INT(weir_gate_wakeup(b.g, 0), 0);
	CHECK(pass(&b) == small);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(limits_the_bytes_inside);
	RUN(limits_the_requests_too);
	RUN(a_larger_request_passes_alone);
	RUN(a_request_without_bytes_fits);
	RUN(no_request_overtakes);
	RUN(a_higher_class_passes);
	RUN(wakes_for_one_that_fits);
	RUN(counts_as_full);
	RUN(a_knob_turns_it);
	RUN(a_cancel_makes_way);
	return 0;
}
