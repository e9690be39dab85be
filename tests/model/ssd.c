/* SPDX-License-Identifier: BSD-3-Clause */
/* ssd: dies and buses in parallel, the port, pauses, few slots. */
#include "model/ssd.h"
#include "closed.h"
#include <errno.h>

static struct device_io ios[8192];

static struct device *make(struct ssd_config c, uint64_t seed)
{
	struct weir_err err;
	struct device *d;

	if (ssd_new(&c, seed, "ssd", &d, &err) < 0)
		FAIL("%s", err.text);
	return d;
}

/* 2 buses × 2 dies of 4 KiB pages: read 50 µs, program 500, 4 KiB on the bus in 10 µs. */
static struct ssd_config small(void)
{
	return (struct ssd_config){.channels = 2,
		.dies = 2,
		.page = 4096,
		.read = 50 * WEIR_US,
		.program = 500 * WEIR_US,
		.channel_rate = 409.6e6,
		.slots = 64};
}

/* Do `n` IOs of one page each, on the given pages, all at time 0; return the end of the last. */
static weir_time last_of(struct ssd_config c, uint8_t op, const int *pages, int n)
{
	struct device *d = make(c, 1);
	struct device_io *done;
	weir_time last = 0;
	int count = 0;

	for (int i = 0; i < n; i++) {
		ios[i] = (struct device_io){
			.op = op, .offset = (uint64_t)pages[i] * c.page, .bytes = c.page};
		device_submit(d, 0, &ios[i]);
	}
	for (done = device_step(d, WEIR_SEC); done; done = done->next) {
		CHECK(done->finished >= last);
		last = done->finished;
		count++;
	}
	CHECK_INT(count, n);
	CHECK_INT(device_next(d), WEIR_NEVER);
	device_free(d);
	return last;
}

static void dies_and_buses_work_in_parallel(void)
{
	const int one[] = {0}, apart[] = {0, 1}, bus[] = {0, 2}, die[] = {0, 4};
	const int all[] = {0, 1, 2, 3};

	CHECK_INT(last_of(small(), 0, one, 1), 60 * WEIR_US);
	CHECK_INT(last_of(small(), 0, apart, 2), 60 * WEIR_US); /* two buses */
	CHECK_INT(last_of(small(), 0, bus, 2), 70 * WEIR_US);   /* two dies, one bus */
	CHECK_INT(last_of(small(), 0, die, 2), 120 * WEIR_US);  /* one die: its register is busy */
	CHECK_INT(last_of(small(), 0, all, 4), 70 * WEIR_US);
	CHECK_INT(last_of(small(), 1, one, 1), 510 * WEIR_US);
	CHECK_INT(last_of(small(), 1, bus, 2), 520 * WEIR_US);
	CHECK_INT(last_of(small(), 1, die, 2), 1010 * WEIR_US); /* the bus is free meanwhile */
}

static void parts_of_pages_move_fewer_bytes(void)
{
	struct device *d = make(small(), 1);
	struct device_io io = {.offset = 4096 - 1024, .bytes = 1024 + 2048};

	device_submit(d, 0, &io);
	CHECK(device_step(d, 54999) == NULL);
	CHECK(device_step(d, 55000) == &io); /* 2 KiB on the second bus: 5 µs */
	CHECK_INT(io.finished, 55 * WEIR_US);
	device_free(d);
}

static void the_port_is_a_cap(void)
{
	struct ssd_config c = ssd_defaults();
	struct closed_host h = {
		.reads = 1, .random = 0, .bytes = 131072, .outstanding = 64, .region = GIB};
	struct device *d = make(c, 1);

	closed_run(d, &h, 1, 1, 0, WEIR_SEC, ios);
	CHECK_NEAR(closed_rate(&h, 1, WEIR_SEC) * h.bytes, 3.2e9, 0.02);
	device_free(d);
}

static double rate_of(struct ssd_config c, double reads, uint32_t outstanding, weir_time *worst)
{
	struct closed_host h = {.reads = reads,
		.random = 1,
		.bytes = 4096,
		.outstanding = outstanding,
		.region = 64 * GIB};
	struct device *d = make(c, 1);

	closed_run(d, &h, 1, 1, 0, WEIR_SEC / 2, ios);
	device_free(d);
	if (worst)
		*worst = h.worst;
	return closed_rate(&h, 1, WEIR_SEC / 2);
}

static void random_reads_as_documented(void)
{
	double deep = rate_of(ssd_defaults(), 1, 256, NULL);

	CHECK_NEAR(deep, 460000, 0.03);
	CHECK_NEAR(rate_of(ssd_defaults(), 1, 1, NULL), 1e6 / (60 + 5.12 + 8 + 1.28), 0.01);
	CHECK(rate_of(ssd_defaults(), 1, 8, NULL) < 0.3 * deep);
	/* Writes: 32 dies × 1 / 600 µs. */
	CHECK_NEAR(rate_of(ssd_defaults(), 0, 512, NULL), 32 / 605.12e-6, 0.05);
}

static void pauses_show_in_the_tail(void)
{
	struct ssd_config c = ssd_defaults();
	weir_time calm, fixed, random;
	double rate = rate_of(c, 0.7, 16, &calm);

	c.gc_every = 100;
	c.gc_time = 20 * WEIR_MS;
	CHECK(rate_of(c, 0.7, 16, &fixed) < 0.9 * rate);
	CHECK(fixed > calm + 15 * WEIR_MS);
	c.gc_random = true;
	rate_of(c, 0.7, 16, &random);
	CHECK(random > fixed);
}

/* Fewer slots than pages of one IO: it is served in parts, the other IOs after it. */
static void few_slots_are_enough(void)
{
	struct ssd_config c = small();
	struct closed_host h[3];
	struct device *d;
	uint64_t n[2];

	c.slots = 3;
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 3; i++)
			h[i] = (struct closed_host){.reads = 0.5,
				.random = 0.5,
				.bytes = 1000 + i * 30000,
				.outstanding = 5,
				.region = GIB};
		d = make(c, 3);
		closed_run(d, h, 3, 7, 0, WEIR_SEC, ios);
		n[round] = h[0].n * 1000003 + h[1].n * 1009 + h[2].n;
		CHECK(h[0].n > 100 && h[1].n > 100 && h[2].n > 100);
		device_free(d);
	}
	CHECK_INT(n[0], n[1]);
}

static void flush_and_trim_pass(void)
{
	struct ssd_config c = small();
	struct device_io flush = {.op = 2}, trim = {.op = 3};
	struct device *d;

	c.overhead = 3 * WEIR_US;
	d = make(c, 1);
	device_submit(d, 0, &flush);
	device_submit(d, 0, &trim);
	CHECK_INT(device_next(d), 3 * WEIR_US);
	CHECK(device_step(d, 3 * WEIR_US) == &flush && flush.next == &trim && !trim.next);
	device_free(d);
}

static void refuses(struct ssd_config c, const char *field)
{
	struct device *d = NULL;
	struct weir_err err;

	CHECK_INT(ssd_new(&c, 1, "ssd", &d, &err), -EINVAL);
	CHECK(d == NULL && strstr(err.text, field));
}

static void bad_figures_are_named(void)
{
	struct ssd_config good = ssd_defaults(), c;

	c = good, c.channels = 0, refuses(c, "channels");
	c = good, c.dies = 70000, refuses(c, "dies");
	c = good, c.page = 100, refuses(c, "page");
	c = good, c.program = -1, refuses(c, "program:");
	c = good, c.channel_rate = NAN, refuses(c, "channel_rate");
	c = good, c.bandwidth = -1, refuses(c, "bandwidth");
	c = good, c.slots = 0, refuses(c, "slots");
}

/* One die: the fourth and the eighth program pause it, no others. */
static void a_die_pauses_every_so_many_programs(void)
{
	const int pages[9] = {0};
	static const int pauses[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2}; /* after so many writes */
	struct ssd_config c = small();

	c.gc_every = 4;
	c.gc_time = WEIR_MS;
	for (int n = 1; n <= 9; n++)
		CHECK_INT(last_of(c, 1, pages, n),
			10 * WEIR_US + n * 500 * WEIR_US + pauses[n] * WEIR_MS);
}

int main(void)
{
	RUN(dies_and_buses_work_in_parallel);
	RUN(parts_of_pages_move_fewer_bytes);
	RUN(the_port_is_a_cap);
	RUN(random_reads_as_documented);
	RUN(pauses_show_in_the_tail);
	RUN(few_slots_are_enough);
	RUN(flush_and_trim_pass);
	RUN(bad_figures_are_named);
	RUN(a_die_pauses_every_so_many_programs);
	return 0;
}
