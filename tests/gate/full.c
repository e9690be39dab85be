/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of weir_gate_next while the window is full pass nothing; nor do they change which request passes when the
 * window has room again. */
#include "test.h"
#include <weir/gate.h>

static struct weir_gate *g;
static struct weir_req reqs[8];
static unsigned n_reqs;

static void begin(enum weir_order order)
{
	struct weir_gate_config config = {.window = 1, .order = order};

	n_reqs = 0;
	CHECK_INT(weir_gate_new(&config, &g), 0);
}

static weir_node add(weir_node parent, enum weir_bucket_kind kind, double rate, double size)
{
	struct weir_bucket_spec spec = {.kind = kind, .rate = rate, .size = size};
	struct weir_knob knob = {.kind = WEIR_KNOB_BUCKETS, .buckets = &spec, .n_buckets = 1};
	weir_node n;

	CHECK_INT(weir_gate_add(g, parent, &n), 0);
	knob.node = n;
	if (rate > 0)
		CHECK_INT(weir_gate_set(g, 0, &knob, 1, NULL), 0);
	return n;
}

static struct weir_req *submit(weir_time now, weir_node tenant, uint32_t cost)
{
	struct weir_req *r = &reqs[n_reqs++];

	*r = (struct weir_req){.tenant = tenant, .requests = cost};
	CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
	return r;
}

static struct weir_req *next(weir_time now)
{
	struct weir_req *r = NULL;

	return weir_gate_next(g, now, &r, 1) ? r : NULL;
}

/* Submit a request that passes. */
static struct weir_req *fill(weir_node tenant, uint32_t cost)
{
	struct weir_req *r = submit(0, tenant, cost);

	CHECK(next(0) == r);
	return r;
}

static void done(weir_time now, struct weir_req *r)
{
	weir_gate_done(g, now, &r, 1);
}

/* The R-token of `old` comes in shortly before the window has room; it is noticed later, as without the call. */
static void token(bool asked)
{
	begin(WEIR_FIFO);
	weir_node a = add(WEIR_ROOT, WEIR_RTOKENS, 10000, 1);
	weir_node b = add(WEIR_ROOT, WEIR_RTOKENS, 10000, 1);
	struct weir_req *inside = fill(a, 1), *old = submit(0, a, 1), *young;

	CHECK(!next(0));
	if (asked)
		CHECK(!next(101 * WEIR_US));
	young = submit(102 * WEIR_US, b, 1);
	done(104 * WEIR_US, inside);
	CHECK(next(104 * WEIR_US) == young);
	CHECK_INT(young->class_, WEIR_CLASS_RESERVED);
	done(105 * WEIR_US, young);
	CHECK(next(105 * WEIR_US) == old);
	weir_gate_free(g);
}

/* The group's bucket refuses the larger request, the younger one, while the older one is held by its own bucket. When
 * the window has room the older one is next, and the group's bucket admits it. */
static void group(bool asked)
{
	begin(WEIR_FIFO);
	weir_node top = add(WEIR_ROOT, WEIR_HOLD, 10000, 3),
		  other = add(WEIR_ROOT, WEIR_HOLD, 0, 0);
	weir_node a = add(top, WEIR_HOLD, 5000, 1), b = add(top, WEIR_HOLD, 0, 0);
	struct weir_req *inside, *old;

	done(0, fill(a, 1));
	done(0, fill(b, 2));
	inside = fill(other, 1);
	old = submit(10 * WEIR_US, a, 1);
	submit(20 * WEIR_US, b, 3);
	if (asked)
		CHECK(!next(50 * WEIR_US));
	done(250 * WEIR_US, inside);
	CHECK(next(250 * WEIR_US) == old);
	weir_gate_free(g);
}

/* A flush comes while a read is held, which is not held any more when the window has room: the flush goes first,
 * whenever weir_gate_next was called. Once the read is not held, a flush that comes goes after it. */
static void flush(unsigned asked, weir_time came, bool first)
{
	begin(WEIR_FAIR);
	weir_node a = add(WEIR_ROOT, WEIR_HOLD, 10, 1), other = add(WEIR_ROOT, WEIR_HOLD, 0, 0);
	struct weir_req *inside, *read, *control = &reqs[7];

	done(0, fill(a, 1));
	inside = fill(other, 1);
	read = submit(10 * WEIR_MS, a, 1);
	if (asked & 1)
		CHECK(!next(15 * WEIR_MS));
	*control = (struct weir_req){.tenant = a, .op = WEIR_FLUSH};
	if (asked & 2)
		CHECK(!next(came));
	CHECK_INT(weir_gate_submit(g, came, &control, 1), 0);
	if (asked & 4)
		CHECK(!next(came + 10 * WEIR_MS));
	if (asked & 8)
		CHECK(!next(180 * WEIR_MS));
	done(200 * WEIR_MS, inside);
	CHECK(next(200 * WEIR_MS) == (first ? control : read));
	weir_gate_free(g);
}

int main(void)
{
	for (unsigned asked = 0; asked < 16; asked++) {
		flush(asked, 20 * WEIR_MS, true);
		flush(asked, 150 * WEIR_MS, false);
	}
	for (unsigned asked = 0; asked < 2; asked++) {
		token(asked);
		group(asked);
	}
	return 0;
}
