/* SPDX-License-Identifier: BSD-3-Clause */
/* disk and spindle: seeks, rotation, the track buffer, the orders. */
#include "model/disk.h"
#include "closed.h"
#include <errno.h>

static struct device_io ios[256];

static struct device *make(const struct disk_config *c, uint64_t seed)
{
	struct weir_err err;
	struct device *d;

	if (disk_new(c, seed, "disk", &d, &err) < 0)
		FAIL("%s", err.text);
	return d;
}

static void seek_goes_through_the_data_sheet(void)
{
	struct spindle_config c = spindle_defaults();
	struct spindle_geometry g;
	weir_time last = 0;

	spindle_geometry_make(&g, &c);
	CHECK_INT(spindle_seek(&g, 7, 7), 0);
	CHECK_NEAR((double)spindle_seek(&g, 100, 101), (double)c.seek_track, 1e-4);
	CHECK_NEAR((double)spindle_seek(&g, 0, c.cylinders / 3), (double)c.seek_third, 1e-3);
	CHECK_NEAR((double)spindle_seek(&g, c.cylinders, 0), (double)c.seek_full, 1e-3);
	for (uint32_t to = 0; to < c.cylinders; to += 97) {
		weir_time t = spindle_seek(&g, 0, to);

		CHECK(t >= last);
		CHECK_INT(t, spindle_seek(&g, to, 0));
		last = t;
	}
}

static void addresses_fill_the_disk(void)
{
	struct spindle_config c = spindle_defaults();
	struct spindle_geometry g;
	uint32_t last = 0;

	spindle_geometry_make(&g, &c);
	CHECK_INT(spindle_locate(&g, 0).cylinder, 0);
	for (uint64_t o = 0; o < c.capacity; o += c.capacity / 1000) {
		struct spindle_place p = spindle_locate(&g, o);

		CHECK(p.cylinder >= last && p.cylinder < c.cylinders);
		CHECK(p.angle < g.turn);
		last = p.cylinder;
	}
	CHECK(last > c.cylinders * 99 / 100);
	/* The outer zone holds more than a sixteenth of the data. */
	CHECK(spindle_locate(&g, c.capacity / 16).zone == 0);
}

/* A single random read over the whole disk costs overhead, a seek of about a third, half a turn. */
static void one_random_read_has_its_latency(void)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	struct closed_host h = {.reads = 1,
		.random = 1,
		.bytes = 4096,
		.outstanding = 1,
		.region = c.spindle.capacity};

	closed_run(d, &h, 1, 1, 0, 100 * WEIR_SEC, ios);
	CHECK_NEAR(closed_ms(&h, 1), 0.1 + 3.5 + 2.0 + 0.05, 0.06);
	device_free(d);
}

/* Without a track buffer the same sector comes round once a turn, to the nanosecond. */
static void rotation_is_real(void)
{
	struct disk_config c = disk_defaults();
	struct device_io io = {.offset = 5 << 20, .bytes = 4096};
	struct device *d;
	weir_time last = 0;

	c.spindle.segment = 0;
	d = make(&c, 3);
	for (int i = 0; i < 20; i++) {
		device_submit(d, last + 17 * WEIR_US, &io);
		CHECK(device_step(d, device_next(d) - 1) == NULL);
		CHECK(device_step(d, device_next(d)) == &io);
		CHECK_INT(device_next(d), WEIR_NEVER);
		if (i)
			CHECK(llabs((long long)(io.finished - last - 4 * WEIR_MS)) <= 1);
		last = io.finished;
	}
	/* A pause of a third of a turn changes the wait, not the phase. */
	device_submit(d, last + 4 * WEIR_MS / 3, &io);
	CHECK(device_step(d, WEIR_NEVER - 1) == &io);
	CHECK(llabs((long long)(io.finished - last - 4 * WEIR_MS)) <= 1);
	device_free(d);
}

/* A read of three and a half tracks from the first byte on: the head switches three times. */
static void a_track_boundary_costs_the_skew(void)
{
	struct disk_config c = disk_defaults();
	struct device_io io = {.bytes = 1750000};
	weir_time with, without;

	for (int skewed = 0; skewed < 2; skewed++) {
		struct device *d;

		c.spindle.skew = skewed ? 300 * WEIR_US : 0;
		d = make(&c, 1);
		io.offset = 0;
		device_submit(d, 0, &io);
		CHECK(device_step(d, WEIR_SEC) == &io);
		*(skewed ? &with : &without) = io.finished;
		device_free(d);
	}
	CHECK_INT(with - without, 3 * 300 * WEIR_US);
}

static double stream_rate(struct disk_config *c, double random, uint32_t bytes, double reads)
{
	struct device *d = make(c, 1);
	struct closed_host h = {.reads = reads,
		.random = random,
		.bytes = bytes,
		.outstanding = 1,
		.region = 4 * GIB};

	closed_run(d, &h, 1, 1, 0, 10 * WEIR_SEC, ios);
	device_free(d);
	return closed_rate(&h, 1, 10 * WEIR_SEC) * bytes;
}

static void sequential_reads_are_cheap(void)
{
	struct disk_config c = disk_defaults();
	double media = c.spindle.outer * 4 / 4.3; /* skew at every track */

	CHECK_NEAR(stream_rate(&c, 0, 65536, 1), media, 0.03);
	CHECK_NEAR(stream_rate(&c, 0, 1 << 20, 1), media, 0.03);
	/* At 4 KiB the command overhead shows, but not a turn each. */
	CHECK(stream_rate(&c, 0, 4096, 1) > 25e6);
	CHECK(stream_rate(&c, 1, 4096, 1) < 2e6);
	c.spindle.segment = 0; /* without a buffer every next sector has just passed */
	CHECK(stream_rate(&c, 0, 4096, 1) < 1.1e6);
}

static void sequential_writes_miss_a_turn_unless_queued(void)
{
	struct disk_config c = disk_defaults();
	struct closed_host h = {.bytes = 65536, .outstanding = 4, .region = 4 * GIB};
	struct device *d = make(&c, 1);

	CHECK(stream_rate(&c, 0, 65536, 0) < 16e6);
	closed_run(d, &h, 1, 1, 0, 5 * WEIR_SEC, ios);
	CHECK(closed_rate(&h, 1, 5 * WEIR_SEC) * 65536 > 100e6);
	device_free(d);
}

/* Return the rate of two distant streams, one IO at a time, `run` of each in turn. */
static double interleaved(uint64_t run)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	uint64_t at[2] = {0, 40 * GIB}, n = 0;
	struct device_io io = {.bytes = 65536};
	weir_time t = 0;

	while (t < 10 * WEIR_SEC) {
		uint64_t *offset = &at[n / run % 2];

		io.offset = *offset;
		*offset += io.bytes;
		device_submit(d, t, &io);
		t = device_next(d);
		CHECK(device_step(d, t) == &io);
		n++;
	}
	device_free(d);
	return (double)n;
}

static void two_streams_in_turns_cost_a_seek_each(void)
{
	CHECK(interleaved(8) > 2 * interleaved(1));
	CHECK(interleaved(64) > interleaved(8));
}

static double order_rate(enum spindle_order order, uint32_t window, weir_time age, weir_time *worst)
{
	struct disk_config c = disk_defaults();
	struct closed_host h = {.reads = 1,
		.random = 1,
		.bytes = 8192,
		.outstanding = 32,
		.region = c.spindle.capacity};
	struct device *d;

	c.spindle.order = order;
	c.spindle.window = window;
	c.spindle.age = age;
	d = make(&c, 1);
	closed_run(d, &h, 1, 1, 0, 200 * WEIR_SEC, ios);
	device_free(d);
	if (worst)
		*worst = h.worst;
	return closed_rate(&h, 1, 200 * WEIR_SEC);
}

static void orders_pay_as_they_should(void)
{
	double fifo = order_rate(SPINDLE_FIFO, 16, 0, NULL);
	double look = order_rate(SPINDLE_LOOK, 16, 0, NULL);
	double clook = order_rate(SPINDLE_CLOOK, 16, 0, NULL);
	double sptf = order_rate(SPINDLE_SPTF, 16, 0, NULL);

	CHECK_NEAR(fifo, 1000 / 5.6, 0.05);
	CHECK(look > 1.3 * fifo);
	CHECK(clook > 1.2 * fifo && clook < 1.05 * look);
	CHECK(sptf > 1.2 * look);
	/* A window of one is FIFO in any order. */
	CHECK_NEAR(order_rate(SPINDLE_SPTF, 1, 0, NULL), fifo, 1e-9);
	CHECK(order_rate(SPINDLE_SPTF, 4, 0, NULL) < sptf);
}

static void age_bounds_the_wait(void)
{
	weir_time worst, bounded;
	double free_rate = order_rate(SPINDLE_SPTF, 32, 0, &worst);
	double rate = order_rate(SPINDLE_SPTF, 32, 250 * WEIR_MS, &bounded);

	CHECK(worst > 500 * WEIR_MS);
	CHECK(bounded < 300 * WEIR_MS);
	CHECK(rate > 0.9 * free_rate);
}

/* LOOK passes the middle of the disk at even intervals, the ends at uneven ones. */
static void look_favours_the_middle(void)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	struct closed_host h[3];

	for (unsigned i = 0; i < 3; i++)
		h[i] = (struct closed_host){.reads = 1,
			.random = 1,
			.bytes = 8192,
			.outstanding = 4,
			.base = i * (c.spindle.capacity / 3),
			.region = c.spindle.capacity / 3};
	closed_run(d, h, 3, 1, 0, 300 * WEIR_SEC, ios);
	CHECK(closed_ms(&h[1], 1) < 0.85 * closed_ms(&h[0], 1));
	CHECK(closed_ms(&h[1], 1) < 0.85 * closed_ms(&h[2], 1));
	device_free(d);
}

static void fifo_keeps_the_order(void)
{
	struct disk_config c = disk_defaults();
	struct device_io *done;
	struct device *d;
	struct rng r;
	int n = 0;

	c.spindle.order = SPINDLE_FIFO;
	d = make(&c, 1);
	rng_init(&r, 5, "offsets");
	for (int i = 0; i < 100; i++) {
		ios[i] = (struct device_io){.offset = rng_u64(&r), .bytes = 512, .op = i & 1};
		device_submit(d, 0, &ios[i]);
	}
	for (done = device_step(d, WEIR_SEC * 10); done; done = done->next)
		CHECK(done == &ios[n++]);
	CHECK_INT(n, 100);
	device_free(d);
}

static void flush_and_trim_do_not_queue(void)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	struct device_io read = {.offset = 1 << 30, .bytes = 4096};
	struct device_io flush = {.op = 2}, trim = {.op = 3, .bytes = 1 << 20};
	struct device_io *done;

	device_submit(d, 0, &read);
	device_submit(d, 0, &flush);
	device_submit(d, 1000, &trim);
	CHECK_INT(device_next(d), c.spindle.overhead);
	done = device_step(d, WEIR_SEC);
	CHECK(done == &flush && done->next == &trim && trim.next == &read && !read.next);
	device_free(d);
}

static void a_write_makes_the_buffer_forget(void)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	struct device_io io = {.offset = 1 << 20, .bytes = 65536};
	weir_time hit;

	device_submit(d, 0, &io);
	CHECK(device_step(d, WEIR_SEC) == &io);
	device_submit(d, WEIR_SEC, &io);
	hit = device_next(d) - WEIR_SEC;
	CHECK(hit < WEIR_MS / 2);
	CHECK(device_step(d, 2 * WEIR_SEC) == &io);
	io.op = 1;
	device_submit(d, 2 * WEIR_SEC, &io);
	CHECK(device_step(d, 3 * WEIR_SEC) == &io);
	io.op = 0;
	device_submit(d, 3 * WEIR_SEC, &io);
	CHECK(device_next(d) - 3 * WEIR_SEC > hit);
	device_free(d);
}

/* Return the time of a read after one of the first 4 KiB and 100 ms of reading on. */
static weir_time read_later(uint64_t offset)
{
	struct disk_config c = disk_defaults();
	struct device *d = make(&c, 1);
	struct device_io io = {.offset = 0, .bytes = 4096};

	device_submit(d, 0, &io);
	CHECK(device_step(d, 100 * WEIR_MS) == &io);
	io.offset = offset;
	device_submit(d, 100 * WEIR_MS, &io);
	CHECK(device_step(d, WEIR_SEC) == &io);
	device_free(d);
	return io.finished - 100 * WEIR_MS;
}

static void the_head_reads_on_for_a_segment(void)
{
	uint64_t segment = disk_defaults().spindle.segment;

	CHECK(read_later(segment) < 200 * WEIR_US); /* its last 4 KiB */
	CHECK(read_later(segment + 8192) > 200 * WEIR_US);
}

static void offsets_beyond_the_end_wrap_around(void)
{
	uint64_t capacity = disk_defaults().spindle.capacity;

	CHECK_INT(read_later(capacity + (5 << 20)), read_later(5 << 20));
	CHECK(read_later(capacity + (5 << 20)) != read_later(capacity - 4096));
}

static void same_seed_same_times(void)
{
	struct disk_config c = disk_defaults();
	weir_time end[3];

	for (int i = 0; i < 3; i++) {
		struct device *d = make(&c, i == 2 ? 9 : 8);

		ios[0] = (struct device_io){.offset = 12345678, .bytes = 4096};
		device_submit(d, 0, &ios[0]);
		end[i] = device_next(d);
		device_free(d);
	}
	CHECK_INT(end[0], end[1]);
	CHECK(end[0] != end[2]);
}

static void refuses(struct disk_config c, const char *field)
{
	struct device *d = NULL;
	struct weir_err err;

	CHECK_INT(disk_new(&c, 1, "disk", &d, &err), -EINVAL);
	CHECK(d == NULL);
	if (!strstr(err.text, field))
		FAIL("'%s' does not name %s", err.text, field);
	CHECK_INT(disk_new(&c, 1, "disk", &d, NULL), -EINVAL);
}

static void bad_figures_are_named(void)
{
	struct disk_config good = disk_defaults(), c;

	c = good, c.spindle.rpm = 0, refuses(c, "rpm");
	c = good, c.spindle.rpm = NAN, refuses(c, "rpm");
	c = good, c.spindle.cylinders = 1, refuses(c, "cylinders");
	c = good, c.spindle.capacity = 0, refuses(c, "capacity");
	c = good, c.spindle.seek_third = 0, refuses(c, "seek");
	c = good, c.spindle.settle = -1, refuses(c, "settle");
	c = good, c.spindle.inner = INFINITY, refuses(c, "inner");
	c = good, c.spindle.window = 0, refuses(c, "window");
	c = good, c.spindle.window = SPINDLE_WINDOW + 1, refuses(c, "window");
	c = good, c.spindle.order = SPINDLE_ORDERS, refuses(c, "order");
	c = good, c.spindle = spindle_10k();
	device_free(make(&c, 1));
	device_free(NULL);
}

int main(void)
{
	RUN(seek_goes_through_the_data_sheet);
	RUN(addresses_fill_the_disk);
	RUN(one_random_read_has_its_latency);
	RUN(rotation_is_real);
	RUN(a_track_boundary_costs_the_skew);
	RUN(sequential_reads_are_cheap);
	RUN(sequential_writes_miss_a_turn_unless_queued);
	RUN(two_streams_in_turns_cost_a_seek_each);
	RUN(orders_pay_as_they_should);
	RUN(age_bounds_the_wait);
	RUN(look_favours_the_middle);
	RUN(fifo_keeps_the_order);
	RUN(flush_and_trim_do_not_queue);
	RUN(a_write_makes_the_buffer_forget);
	RUN(the_head_reads_on_for_a_segment);
	RUN(offsets_beyond_the_end_wrap_around);
	RUN(same_seed_same_times);
	RUN(bad_figures_are_named);
	return 0;
}
