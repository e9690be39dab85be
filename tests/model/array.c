/* SPDX-License-Identifier: BSD-3-Clause */
/* array: the calibration to PARDA's uncontrolled rows, and each part of the controller. */
#include "model/array.h"
#include "closed.h"
#include <errno.h>

#define WARM  (5 * WEIR_SEC)
#define SPAN  (25 * WEIR_SEC)
#define SPACE (20 * GIB) /* between virtual disks: 16 GB of data and the 4 GB system disk */

static struct device_io ios[1024];

static struct device *make(const struct array_config *c, uint64_t seed)
{
	struct weir_err err;
	struct device *d;

	if (array_new(c, seed, "array", &d, &err) < 0)
		FAIL("%s", err.text);
	return d;
}

/* Place virtual disks in order on the LUN. */
static void place(struct closed_host *h, unsigned n, struct closed_host like)
{
	for (unsigned i = 0; i < n; i++) {
		h[i] = like;
		h[i].base = i * SPACE;
		h[i].region = 16 * GIB;
	}
}

static const struct closed_host random16k = {
	.reads = 1, .random = 1, .bytes = 16384, .outstanding = 32};

static void run_array(const struct array_config *c, struct closed_host *h, unsigned n,
	uint64_t seed, weir_time warm, weir_time span)
{
	struct device *d = make(c, seed);

	closed_run(d, h, n, seed, warm, warm + span, ios);
	device_free(d);
}

/* ---- calibration: PARDA, Section 5 */

/* Table 3: 780, 900, 890, 790 IOPS; 3360 together at 37 ms. */
static void table_3_is_met(void)
{
	struct array_config c = array_cx3();

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct closed_host h[4];
		double outer, middle;

		place(h, 4, random16k);
		run_array(&c, h, 4, seed, WARM, SPAN);
		CHECK_NEAR(closed_rate(h, 4, SPAN), 3360, 0.05);
		CHECK_NEAR(closed_ms(h, 4), 37, 0.05);
		CHECK_NEAR(closed_rate(&h[0], 1, SPAN), 780, 0.05);
		CHECK_NEAR(closed_rate(&h[1], 1, SPAN), 900, 0.05);
		CHECK_NEAR(closed_rate(&h[2], 1, SPAN), 890, 0.05);
		CHECK_NEAR(closed_rate(&h[3], 1, SPAN), 790, 0.05);
		outer = closed_rate(&h[0], 1, SPAN) + closed_rate(&h[3], 1, SPAN);
		middle = closed_rate(&h[1], 1, SPAN) + closed_rate(&h[2], 1, SPAN);
		CHECK(middle > 1.05 * outer && middle < 1.25 * outer);
	}
}

/* Table 4: 3130 IOPS at 60 ms, the hosts between 430 and 570. */
static void table_4_is_met(void)
{
	struct array_config c = array_cx3();

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct closed_host h[6];

		place(h, 6, random16k);
		run_array(&c, h, 6, seed, WARM, SPAN);
		CHECK_NEAR(closed_rate(h, 6, SPAN), 3130, 0.05);
		CHECK_NEAR(closed_ms(h, 6), 60, 0.05);
		for (int i = 0; i < 6; i++) {
			CHECK(closed_rate(&h[i], 1, SPAN) > 430);
			CHECK(closed_rate(&h[i], 1, SPAN) < 600);
		}
	}
}

/* Section 5.3: windows cut to the target latency keep the throughput, and latency is proportional
 * to the IOs outstanding. */
static void throughput_is_flat_above_the_knee(void)
{
	static const struct {
		unsigned hosts, outstanding;
	} rows[] = {{4, 25}, {4, 20}, {4, 64}, {6, 16}, {6, 24}};
	struct array_config c = array_cx3();
	double full[7];

	for (unsigned n = 4; n <= 6; n += 2) {
		struct closed_host h[6];

		place(h, n, random16k);
		run_array(&c, h, n, 1, WARM, SPAN);
		full[n] = closed_rate(h, n, SPAN);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned n = rows[i].hosts;
		struct closed_host h[6];

		place(h, n, random16k);
		for (unsigned j = 0; j < n; j++)
			h[j].outstanding = rows[i].outstanding;
		run_array(&c, h, n, 1, WARM, SPAN);
		CHECK_NEAR(closed_rate(h, n, SPAN), full[n], 0.03);
		CHECK_NEAR(closed_ms(h, n), n * rows[i].outstanding * 1e3 / full[n], 0.03);
	}
}

/* A wider data set has longer seeks. On one shared disk the hosts are alike (Figure 4). */
static void placement_matters(void)
{
	struct array_config c = array_cx3();
	struct closed_host h[6];
	double apart;

	place(h, 4, random16k);
	run_array(&c, h, 4, 1, WARM, SPAN);
	apart = closed_rate(h, 4, SPAN);
	place(h, 6, random16k);
	run_array(&c, h, 6, 1, WARM, SPAN);
	CHECK(closed_rate(h, 6, SPAN) < 0.98 * apart);
	place(h, 4, random16k);
	for (int i = 0; i < 4; i++) {
		h[i].base = 0;
		h[i].region = 60 * GIB;
	}
	run_array(&c, h, 4, 1, WARM, SPAN);
	for (int i = 0; i < 4; i++)
		CHECK_NEAR(closed_rate(&h[i], 1, SPAN), 790, 0.1);
	CHECK_NEAR(closed_rate(&h[0], 1, SPAN), closed_rate(&h[1], 1, SPAN), 0.02);
}

/* Figure 6: 16 KB, 67 % reads, 70 % random. */
static void figure_6_levels_off(void)
{
	struct array_config c = array_cx3();
	struct closed_host h[5], like = random16k;
	double rate[6], ms[6];

	like.reads = 0.67;
	like.random = 0.7;
	for (unsigned n = 1; n <= 5; n++) {
		place(h, n, like);
		run_array(&c, h, n, 1, 20 * WEIR_SEC, SPAN);
		rate[n] = closed_rate(h, n, SPAN);
		ms[n] = closed_ms(h, n);
	}
	for (unsigned n = 2; n <= 5; n++)
		CHECK(ms[n] > 1.2 * ms[n - 1]);
	for (unsigned n = 4; n <= 5; n++)
		CHECK(rate[n] < 1.02 * rate[3]);
	CHECK(rate[5] > 0.85 * rate[3]);
	CHECK_NEAR(rate[3], 2200, 0.1); /* 10 disks × 340 / (0.67 + 0.33 × 4), less short seeks */
}

/* Figure 5: one host, 8 outstanding. */
static void figure_5_extremes(void)
{
	static const uint32_t sizes[] = {4096, 32768, 65536, 131072};
	struct array_config c = array_cx3();
	double best = 1e9, worst = 0, least = 1e18, most = 0;
	int best_at = -1, worst_at = -1;

	for (int i = 0; i < 36; i++) { /* size × reads 0, ½, 1 × random 0, ½, 1 */
		struct closed_host h = {.reads = i / 3 % 3 / 2.0,
			.random = i % 3 / 2.0,
			.bytes = sizes[i / 9],
			.outstanding = 8,
			.region = 16 * GIB};
		double ms, rate;

		run_array(&c, &h, 1, 1, 10 * WEIR_SEC, 3 * WEIR_SEC);
		ms = closed_ms(&h, 1);
		rate = closed_rate(&h, 1, 3 * WEIR_SEC) * h.bytes;
		if (ms < best)
			best = ms, best_at = i;
		if (ms > worst)
			worst = ms, worst_at = i;
		least = rate < least ? rate : least;
		most = rate > most ? rate : most;
	}
	CHECK_INT(best_at, 6);       /* 4 KB, all reads, none random */
	CHECK_INT(worst_at, 27 + 2); /* 128 KB, no reads, all random */
	CHECK(worst > 20 * best);
	CHECK(most > 20 * least);
	CHECK_NEAR(most, 177e6, 0.15);
}

/* Table 2: the favoured (sequential) host stays favoured; throughput falls with the window. */
static void table_2_in_shape(void)
{
	struct array_config c = array_cx3();
	struct closed_host h[4], wide[4];

	place(h, 4, random16k);
	h[0].reads = 0.7, h[0].random = 0.6;
	h[2].bytes = 8192, h[2].reads = 0.75, h[2].random = 0;
	h[3].bytes = 8192, h[3].reads = 0.9;
	run_array(&c, h, 4, 1, 20 * WEIR_SEC, SPAN);
	memcpy(wide, h, sizeof(wide));
	CHECK_NEAR(closed_rate(h, 4, SPAN), 4220, 0.1);
	CHECK(h[2].n > h[0].n && h[0].n > h[1].n && h[0].n > h[3].n);
	h[0].outstanding = h[2].outstanding = 16;
	run_array(&c, h, 4, 1, 20 * WEIR_SEC, SPAN);
	CHECK(h[0].n < 0.75 * (double)wide[0].n);
	CHECK(h[2].n < (double)wide[2].n);
	CHECK(h[1].n > 1.1 * (double)wide[1].n && h[3].n > 1.1 * (double)wide[3].n);
	CHECK(h[2].n > h[1].n && h[2].n > h[3].n);
}

/* Table 5: six different workloads, 3580 IOPS together at 53 ms. */
static void table_5_in_shape(void)
{
	static const struct closed_host rows[6] = {
		{.bytes = 4096, .reads = 1, .random = 1},
		{.bytes = 8192, .reads = 0.5, .random = 0},
		{.bytes = 8192, .reads = 1, .random = 1},
		{.bytes = 8192, .reads = 0.67, .random = 0.6},
		{.bytes = 16384, .reads = 1, .random = 1},
		{.bytes = 16384, .reads = 0.75, .random = 0.7},
	};
	struct array_config c = array_cx3();
	struct closed_host h[6];

	for (unsigned i = 0; i < 6; i++) {
		h[i] = rows[i];
		h[i].outstanding = 32;
		h[i].base = i * SPACE;
		h[i].region = 16 * GIB;
	}
	run_array(&c, h, 6, 1, 20 * WEIR_SEC, SPAN);
	CHECK_NEAR(closed_rate(h, 6, SPAN), 3580, 0.1);
	CHECK_NEAR(closed_ms(h, 6), 53, 0.1);
	CHECK(closed_ms(&h[1], 1) < closed_ms(&h[0], 1));
	CHECK(closed_ms(&h[3], 1) < closed_ms(&h[2], 1));
}

/* Figure 7: seven hosts on five disks, about 85 IOPS each at 360 to 470 ms; three hosts with a
 * window of 16 get half, and all see lower latencies. */
static void figure_7_in_shape(void)
{
	struct array_config c = array_cx3_small();
	struct closed_host h[7];
	double before;

	for (unsigned i = 0; i < 7; i++)
		h[i] = (struct closed_host){.reads = 0.67,
			.random = 0.7,
			.bytes = 32768,
			.outstanding = 32,
			.base = i * 53 * GIB,
			.region = 8 * GIB};
	run_array(&c, h, 7, 1, 60 * WEIR_SEC, 2 * SPAN);
	before = closed_ms(h, 7);
	CHECK_NEAR(closed_rate(h, 7, 2 * SPAN) / 7, 85, 0.1);
	CHECK_NEAR(before, 376, 0.1);
	for (unsigned i = 4; i < 7; i++)
		h[i].outstanding = 16;
	run_array(&c, h, 7, 1, 60 * WEIR_SEC, 2 * SPAN);
	CHECK(closed_ms(h, 7) < 0.85 * before);
	CHECK_NEAR(closed_ms(&h[4], 3), closed_ms(h, 4), 0.05);
	CHECK_NEAR(closed_rate(&h[4], 3, SPAN) / 3, closed_rate(h, 4, SPAN) / 8, 0.05);
}

/* ---- the parts */

static struct array_config bare(void)
{
	struct array_config c = array_cx3();

	c.cache = 0;
	c.streams = 0;
	return c;
}

/* Do one IO alone, and return its latency. */
static weir_time one(struct device *d, weir_time at, uint8_t op, uint64_t offset, uint32_t bytes)
{
	struct device_io io = {.op = op, .offset = offset, .bytes = bytes};

	device_submit(d, at, &io);
	for (;;) {
		weir_time t = device_next(d);

		CHECK(t != WEIR_NEVER);
		if (device_step(d, t))
			break;
	}
	CHECK(io.arrived == at && io.finished > at);
	return io.finished - at;
}

static void count(const struct device *d, uint64_t reads, uint64_t old, uint64_t writes)
{
	struct array_stats s;

	array_stats(d, &s);
	CHECK_INT(s.disk_reads, reads);
	CHECK_INT(s.update_reads, old);
	CHECK_INT(s.update_writes, writes);
}

static void raid5_has_its_write_penalty(void)
{
	struct array_config c = bare();
	struct device *d = make(&c, 1);
	struct array_stats s;
	uint64_t stripe = 9 * 65536;

	one(d, 0, 0, 0, 16384); /* inside a unit */
	count(d, 1, 0, 0);
	one(d, WEIR_SEC, 0, 60000, 16384); /* over a boundary */
	count(d, 3, 0, 0);
	one(d, 2 * WEIR_SEC, 1, 0, 16384); /* data and parity, read and written */
	count(d, 3, 2, 2);
	one(d, 3 * WEIR_SEC, 1, 65536 * 3, 131072); /* two data disks and one parity */
	count(d, 3, 5, 5);
	one(d, 4 * WEIR_SEC, 1, stripe * 5, (uint32_t)stripe); /* whole: no reads */
	count(d, 3, 5, 15);
	one(d, 5 * WEIR_SEC, 1, stripe * 7 - 4096, 8192); /* two stripes */
	count(d, 3, 9, 19);
	array_stats(d, &s);
	CHECK_INT(s.full_stripes, 1);
	CHECK_INT(s.reads, 2);
	CHECK_INT(s.writes, 4);
	device_free(d);
}

static void raid0_writes_once(void)
{
	struct array_config c = bare();
	struct device *d;

	c.raid = ARRAY_RAID0;
	c.disks = 4;
	d = make(&c, 1);
	CHECK_INT(array_size(d), c.disk.capacity / 65536 * 65536 * 4);
	one(d, 0, 1, 65536 - 512, 1024);
	count(d, 0, 0, 2);
	one(d, WEIR_SEC, 0, 0, 65536 * 4);
	count(d, 4, 0, 2);
	device_free(d);
}

/* Units are spread evenly over the disks, parity included: reads of all the units of as many
 * stripes as disks take as long as the slowest disk, not as one disk alone. */
static void units_are_spread(void)
{
	struct array_config c = bare();
	struct device *d;
	weir_time all, alone;

	c.bandwidth = 1e12;
	d = make(&c, 1);
	all = one(d, 0, 0, 0, 65536 * 90);
	device_free(d);
	c.disks = 3;
	d = make(&c, 1);
	alone = one(d, 0, 0, 0, 65536 * 90);
	CHECK(all < alone * 0.6);
	device_free(d);
}

static void writes_are_answered_from_the_cache(void)
{
	struct array_config c = array_cx3();
	struct device *d = make(&c, 1);
	weir_time quick = c.cost + c.mirror + (weir_time)(16384 * 1e9 / c.bandwidth);
	struct array_stats s;

	CHECK(llabs((long long)(one(d, 0, 1, 1 << 20, 16384) - quick)) <= 1);
	array_stats(d, &s);
	CHECK_INT(s.dirty, 16384);
	CHECK_INT(s.update_writes, 0); /* below `low` nothing is destaged */
	/* Writing the same again takes no more room; reading it back needs no disk. */
	one(d, WEIR_SEC, 1, 1 << 20, 16384);
	one(d, WEIR_SEC * 2, 0, 1 << 20, 16384);
	array_stats(d, &s);
	CHECK_INT(s.dirty, 16384);
	CHECK_INT(s.read_hits, 1);
	CHECK_INT(s.disk_reads, 0);
	device_free(d);
}

static void a_full_cache_blocks(void)
{
	struct array_config c = array_cx3();
	struct closed_host h = random16k;
	struct array_stats s;
	struct device *d;

	c.cache = 4 << 20;
	d = make(&c, 1);
	h.reads = 0;
	h.region = 16 * GIB;
	closed_run(d, &h, 1, 1, WARM, WARM + SPAN, ios);
	array_stats(d, &s);
	CHECK(s.blocked > 0);
	CHECK(s.dirty <= c.cache);
	/* Four disk IOs a write, from disks that do about 340 a second. */
	CHECK_NEAR(closed_rate(&h, 1, SPAN), 10 * 340 / 4.0, 0.2);
	CHECK_NEAR((double)s.update_writes, 2.0 * (double)s.writes, 0.05);
	device_free(d);
}

/* Small sequential writes leave the cache as whole stripes. */
static void the_cache_gathers_stripes(void)
{
	struct array_config c = array_cx3();
	struct closed_host h = {.bytes = 8192, .outstanding = 4, .region = 16 * GIB};
	struct device *d = make(&c, 1);
	struct array_stats s;

	closed_run(d, &h, 1, 1, 0, 20 * WEIR_SEC, ios);
	array_stats(d, &s);
	CHECK(s.full_stripes > 1000);
	CHECK(s.update_reads < s.update_writes / 20);
	device_free(d);
}

static void streams_are_read_ahead(void)
{
	struct array_config c = array_cx3();
	struct closed_host h = {
		.reads = 1, .random = 0, .bytes = 8192, .outstanding = 1, .region = 16 * GIB};
	struct device *d = make(&c, 1);
	struct array_stats s;
	double with;

	closed_run(d, &h, 1, 1, 0, 5 * WEIR_SEC, ios);
	array_stats(d, &s);
	CHECK(s.read_hits > s.reads * 99 / 100);
	CHECK(s.disk_reads < s.reads / 7); /* one unit at a time */
	with = closed_rate(&h, 1, 5 * WEIR_SEC);
	device_free(d);
	c.streams = 0;
	d = make(&c, 1);
	closed_run(d, &h, 1, 1, 0, 5 * WEIR_SEC, ios);
	CHECK(with > 2 * closed_rate(&h, 1, 5 * WEIR_SEC));
	array_stats(d, &s);
	CHECK_INT(s.read_hits, 0);
	device_free(d);
}

/* IOs wait for a slot in order, whatever their kind: a cached write too. */
static void the_slots_are_a_fifo(void)
{
	struct array_config c = array_cx3();
	struct device_io *done;
	struct device *d;
	int n = 0;

	c.active = 1;
	d = make(&c, 1);
	for (int i = 0; i < 50; i++) {
		ios[i] = (struct device_io){.op = (uint8_t)(i % 4),
			.offset = (uint64_t)i * 7919 * 65536,
			.bytes = 4096};
		device_submit(d, 0, &ios[i]);
	}
	for (done = device_step(d, 10 * WEIR_SEC); done; done = done->next)
		CHECK(done == &ios[n++]);
	CHECK_INT(n, 50);
	device_free(d);
}

/* Small pools, IOs of all kinds and sizes: all come back, and two runs are the same. */
static uint64_t storm(uint64_t seed, bool cache)
{
	struct array_config c = array_cx3();
	struct closed_host h[4];
	uint64_t sum = 0;
	struct device *d;
	struct rng r;

	c.active = 3;
	c.destage = 2;
	c.streams = 2;
	c.trigger = 1;
	c.cache = cache ? 1 << 20 : 0;
	c.lun = 1000 * 65536 + 12345;
	c.disk.order = SPINDLE_SPTF;
	d = make(&c, seed);
	rng_init(&r, seed, "storm");
	for (unsigned i = 0; i < 4; i++)
		h[i] = (struct closed_host){.reads = 0.5,
			.random = 0.5,
			.bytes = 512 + (uint32_t)rng_below(&r, i == 3 ? 8 << 20 : 100000),
			.outstanding = 8,
			.base = i * 13 * 65536,
			.region = c.lun}; /* beyond the end: wraps */
	closed_run(d, h, 4, seed, 0, 5 * WEIR_SEC, ios);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(h[i].n > 0);
		sum = sum * 31 + h[i].n + (uint64_t)h[i].latency;
	}
	device_free(d);
	return sum;
}

static void nothing_is_lost_and_runs_repeat(void)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		CHECK(storm(seed, true) == storm(seed, true));
		CHECK(storm(seed, false) == storm(seed, false));
	}
	CHECK(storm(1, true) != storm(2, true));
}

static void refuses(struct array_config c, const char *field)
{
	struct device *d = NULL;
	struct weir_err err;

	CHECK_INT(array_new(&c, 1, "array", &d, &err), -EINVAL);
	CHECK(d == NULL);
	if (!strstr(err.text, field))
		FAIL("'%s' does not name %s", err.text, field);
}

static void bad_figures_are_named(void)
{
	struct array_config good = array_cx3(), c;

	c = good, c.disks = 2, refuses(c, "disks");
	c = good, c.disks = ARRAY_RAID5_DISKS + 1, refuses(c, "disks");
	c = good, c.disks = 0, c.raid = ARRAY_RAID0, refuses(c, "disks");
	c = good, c.raid = (enum array_raid)2, refuses(c, "raid");
	c = good, c.unit = 5000, refuses(c, "unit");
	c = good, c.unit = 0, refuses(c, "unit");
	c = good, c.lun = c.disk.capacity * 10, refuses(c, "lun");
	c = good, c.start = c.disk.capacity, refuses(c, "lun");
	c = good, c.active = 0, refuses(c, "active");
	c = good, c.cost = -1, refuses(c, "cost");
	c = good, c.bandwidth = 0, refuses(c, "bandwidth");
	c = good, c.ahead = 17, refuses(c, "ahead");
	c = good, c.trigger = 0, refuses(c, "trigger");
	c = good, c.cache = 1000, refuses(c, "cache");
	c = good, c.low = 1, refuses(c, "low");
	c = good, c.destage = 0, refuses(c, "destage");
	c = good, c.disk.rpm = 0, refuses(c, "rpm");
}

/* Read once from an idle array, and return the latency. */
static weir_time one_read(
	const struct array_config *c, uint64_t offset, uint32_t bytes, struct array_stats *ret)
{
	struct device *d = make(c, 1);
	struct device_io io = {.offset = offset, .bytes = bytes};

	device_submit(d, 0, &io);
	CHECK(device_step(d, WEIR_SEC) == &io);
	array_stats(d, ret);
	device_free(d);
	return io.finished;
}

/* A read of three units goes to three disks, and is one miss. */
static void a_read_misses_once(void)
{
	struct array_config c = array_cx3();
	struct array_stats s;

	one_read(&c, 0, 3 * c.unit, &s);
	CHECK_INT(s.disk_reads, 3);
	CHECK_INT(s.reads, 1);
	CHECK_INT(s.read_hits, 0);
}

/* The LUN begins at `start` of each disk: the arm seeks there first. */
static void the_lun_begins_at_start(void)
{
	static const enum array_raid raids[] = {ARRAY_RAID0, ARRAY_RAID5};

	for (int i = 0; i < 2; i++) {
		struct array_config near = array_cx3(), far;
		struct array_stats s;

		near.raid = raids[i];
		near.lun = 1 << 30;
		near.start = 0;
		far = near;
		far.start = near.disk.capacity / near.unit / 4 * 3 * near.unit;
		CHECK(one_read(&near, 0, 4096, &s) < 4500 * WEIR_US); /* at most one turn */
		CHECK(one_read(&far, 0, 4096, &s) > 5 * WEIR_MS);
	}
}

int main(void)
{
	RUN(table_3_is_met);
	RUN(table_4_is_met);
	RUN(throughput_is_flat_above_the_knee);
	RUN(placement_matters);
	RUN(figure_6_levels_off);
	RUN(figure_5_extremes);
	RUN(table_2_in_shape);
	RUN(table_5_in_shape);
	RUN(figure_7_in_shape);
	RUN(raid5_has_its_write_penalty);
	RUN(raid0_writes_once);
	RUN(units_are_spread);
	RUN(writes_are_answered_from_the_cache);
	RUN(a_full_cache_blocks);
	RUN(the_cache_gathers_stripes);
	RUN(streams_are_read_ahead);
	RUN(the_slots_are_a_fifo);
	RUN(nothing_is_lost_and_runs_repeat);
	RUN(bad_figures_are_named);
	RUN(a_read_misses_once);
	RUN(the_lun_begins_at_start);
	return 0;
}
