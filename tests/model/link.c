/* SPDX-License-Identifier: BSD-3-Clause */
/* link: times to the nanosecond, priorities, marks, drops, conservation. */
#include "model/link.h"
#include "test.h"
#include <errno.h>

static struct device_io ios[64];

static struct device *make(struct link_config c)
{
	struct weir_err err;
	struct device *d;

	if (link_new(&c, &d, &err) < 0)
		FAIL("%s", err.text);
	return d;
}

static struct link_config gigabit(void)
{
	struct link_config c = link_defaults();

	c.rate = 125e6;
	c.delay = 10 * WEIR_US;
	return c;
}

static void packet(struct device *d, weir_time at, int i, uint32_t bytes, uint8_t priority)
{
	ios[i] = (struct device_io){.bytes = bytes, .priority = priority, .source = (uint32_t)i};
	device_submit(d, at, &ios[i]);
}

static void sending_and_flying_take_their_time(void)
{
	struct device *d = make(gigabit());
	struct device_io *done;

	packet(d, 0, 0, 1250, 0); /* 10 µs each */
	packet(d, 0, 1, 1250, 0);
	packet(d, 25 * WEIR_US, 2, 1250, 0); /* the link has been idle for 5 µs */
	CHECK_INT(link_queued(d), 3 * 1250); /* nothing has been stepped yet */
	done = device_step(d, 19 * WEIR_US);
	CHECK(done == NULL);
	CHECK_INT(link_queued(d), 2 * 1250);
	done = device_step(d, WEIR_SEC);
	CHECK(done == &ios[0] && done->finished == 20 * WEIR_US);
	CHECK(done->next == &ios[1] && ios[1].finished == 30 * WEIR_US);
	CHECK(ios[1].next == &ios[2]);
	CHECK(!ios[2].next && !ios[2].marked && !ios[2].dropped);
	CHECK_INT(link_queued(d), 0);
	CHECK_INT(device_next(d), WEIR_NEVER);
	device_free(d);
}

/* 10 packets of 10 µs: one of a higher priority that comes within the third is sent after it, and then the rest. */
static void a_higher_priority_waits_for_a_packet_of_mtu(void)
{
	struct link_config c = gigabit();
	struct device *d;

	c.strict = true;
	c.mtu = 1250;
	d = make(c);
	packet(d, 0, 0, 12500, 3);
	packet(d, 25 * WEIR_US, 1, 1250, 0);
	packet(d, 26 * WEIR_US, 2, 1250, 3); /* behind the rest of the first */
	CHECK(device_step(d, WEIR_SEC) == &ios[1] && ios[1].finished == 50 * WEIR_US);
	CHECK(ios[1].next == &ios[0] && ios[0].finished == 120 * WEIR_US);
	CHECK(ios[0].next == &ios[2] && ios[2].finished == 130 * WEIR_US);
	CHECK_INT(link_queued(d), 0);
	device_free(d);
}

static void an_idle_wire_starts_at_once(void)
{
	struct device *d = make(gigabit());

	packet(d, 0, 0, 1250, 0);
	CHECK(device_step(d, 20 * WEIR_US) == &ios[0]);
	packet(d, 25 * WEIR_US, 1, 1250, 0);
	CHECK_INT(device_next(d), 35 * WEIR_US);
	CHECK(device_step(d, 35 * WEIR_US) == NULL); /* sent, not arrived */
	CHECK_INT(device_next(d), 45 * WEIR_US);
	CHECK(device_step(d, 45 * WEIR_US) == &ios[1]);
	device_free(d);
}

static void fifo_does_not_look_at_priority(void)
{
	struct device *d = make(gigabit());
	struct device_io *done;
	int n = 0;

	for (int i = 0; i < 8; i++)
		packet(d, 0, i, 1250, (uint8_t)(7 - i));
	for (done = device_step(d, WEIR_SEC); done; done = done->next)
		CHECK(done == &ios[n++]);
	CHECK_INT(n, 8);
	device_free(d);
}

static void strict_sends_the_first_class_first(void)
{
	static const int order[] = {0, 3, 5, 2, 1, 4};
	struct link_config c = gigabit();
	struct device_io *done;
	struct device *d;
	int n = 0;

	c.strict = true;
	d = make(c);
	packet(d, 0, 0, 1250, 7); /* in transmission: not interrupted */
	packet(d, 0, 1, 1250, 200);
	packet(d, 0, 2, 1250, 1);
	packet(d, 0, 3, 1250, 0);
	packet(d, 0, 4, 1250, 7); /* the same class as 200 */
	packet(d, 0, 5, 1250, 0);
	for (done = device_step(d, WEIR_SEC); done; done = done->next)
		CHECK_INT(done->source, order[n++]);
	CHECK_INT(n, 6);
	device_free(d);
}

static void marks_start_at_the_threshold(void)
{
	struct link_config c = gigabit();
	struct device *d;

	c.ecn_packets = 3;
	d = make(c);
	for (int i = 0; i < 6; i++)
		packet(d, 0, i, 100, 0);
	for (int i = 0; i < 6; i++)
		CHECK_INT(ios[i].marked, i >= 3);
	CHECK(device_step(d, WEIR_SEC));
	packet(d, WEIR_SEC, 6, 100, 0);
	CHECK(!ios[6].marked);
	device_free(d);
	c.ecn_packets = 0;
	c.ecn_bytes = 250;
	d = make(c);
	for (int i = 0; i < 6; i++)
		packet(d, 0, i, 100, 0);
	for (int i = 0; i < 6; i++)
		CHECK_INT(ios[i].marked, i >= 3);
	device_free(d);
}

static void packets_that_do_not_fit_are_dropped_at_once(void)
{
	struct link_config c = gigabit();
	struct device_io *done;
	struct device *d;

	c.buffer = 3000;
	d = make(c);
	packet(d, 0, 0, 1500, 0);
	packet(d, 0, 1, 1500, 0);
	packet(d, 5, 2, 1500, 0);
	CHECK(ios[2].dropped && !ios[2].marked);
	CHECK_INT(device_next(d), 5);
	CHECK(device_step(d, 5) == &ios[2] && !ios[2].next && ios[2].finished == 5);
	CHECK_INT(device_next(d), 12 * WEIR_US);
	/* Sent at 12 µs: its room is free, although it is still on the wire. Drops and arrivals are
	 * merged. */
	CHECK(device_step(d, 12 * WEIR_US) == NULL);
	packet(d, 12 * WEIR_US, 3, 1500, 0);
	CHECK(!ios[3].dropped);
	packet(d, 23 * WEIR_US, 4, 1501, 0);
	CHECK(ios[4].dropped);
	done = device_step(d, WEIR_SEC);
	CHECK(done == &ios[0] && ios[0].finished == 22 * WEIR_US);
	CHECK(ios[0].next == &ios[4] && ios[4].finished == 23 * WEIR_US);
	CHECK(ios[4].next == &ios[1] && ios[1].next == &ios[3] && !ios[3].next);
	device_free(d);
}

static void speed_changes_under_way(void)
{
	struct device *d = make(gigabit());

	packet(d, 0, 0, 1250, 0);
	packet(d, 0, 1, 1250, 0);
	CHECK_INT(link_set_rate(d, 4 * WEIR_US, 62.5e6), 0);
	CHECK_INT(device_next(d), 16 * WEIR_US);
	CHECK(device_step(d, 16 * WEIR_US) == NULL);
	CHECK_INT(device_next(d), 26 * WEIR_US); /* the first arrives; the second is sent at 36 */
	CHECK(device_step(d, 26 * WEIR_US) == &ios[0]);
	CHECK_INT(device_next(d), 36 * WEIR_US);
	CHECK_INT(link_set_rate(d, 20 * WEIR_US, -1), -EINVAL);
	CHECK_INT(link_set_rate(d, 20 * WEIR_US, NAN), -EINVAL);
	device_free(d);
}

/* Random packets through every feature at once: each comes back once, in order of time; none is
 * faster than the link; the buffer never exceeds its size. */
static void nothing_is_lost(void)
{
	struct link_config c = gigabit();
	struct device_io *spare = NULL, *done;
	uint64_t sent = 0, inside = 0, marked = 0, dropped = 0;
	weir_time t = 0, last = 0;
	struct device *d;
	struct rng r;

	c.strict = true;
	c.buffer = 20000;
	c.ecn_bytes = 8000;
	d = make(c);
	rng_init(&r, 1, "packets");
	for (int i = 0; i < 64; i++) {
		ios[i].next = spare;
		spare = &ios[i];
	}
	for (int i = 0; i < 100000; i++) {
		t += (weir_time)rng_exp(&r, 6500);
		for (done = device_step(d, t); done;) {
			struct device_io *io = done;

			done = io->next;
			CHECK(io->finished >= last && io->finished <= t);
			last = io->finished;
			if (!io->dropped) {
				sent += io->bytes;
				CHECK(io->finished >= io->arrived + c.delay + 8 * io->bytes);
			}
			marked += io->marked;
			dropped += io->dropped;
			io->next = spare;
			spare = io;
			inside--;
		}
		CHECK(link_queued(d) <= c.buffer);
		CHECK(spare != NULL);
		done = spare;
		spare = done->next;
		done->bytes = 64 + (uint32_t)rng_below(&r, 1437);
		done->priority = (uint8_t)rng_below(&r, 9);
		device_submit(d, t, done);
		inside++;
	}
	CHECK(sent <= (uint64_t)((double)t * 0.125));
	CHECK(sent > (uint64_t)((double)t * 0.11));
	CHECK(marked > 1000 && dropped > 100);
	for (done = device_step(d, t + WEIR_SEC); done; done = done->next)
		inside--;
	CHECK_INT(inside, 0);
	CHECK_INT(link_queued(d), 0);
	device_free(d);
}

static void bad_figures_are_named(void)
{
	struct link_config c = link_defaults();
	struct device *d = NULL;
	struct weir_err err;

	c.rate = 0;
	CHECK_INT(link_new(&c, &d, &err), -EINVAL);
	CHECK(strstr(err.text, "rate"));
	c = link_defaults();
	c.delay = -1;
	CHECK_INT(link_new(&c, &d, &err), -EINVAL);
	CHECK(strstr(err.text, "delay"));
	CHECK(d == NULL);
}

int main(void)
{
	RUN(sending_and_flying_take_their_time);
	RUN(a_higher_priority_waits_for_a_packet_of_mtu);
	RUN(an_idle_wire_starts_at_once);
	RUN(fifo_does_not_look_at_priority);
	RUN(strict_sends_the_first_class_first);
	RUN(marks_start_at_the_threshold);
	RUN(packets_that_do_not_fit_are_dropped_at_once);
	RUN(speed_changes_under_way);
	RUN(nothing_is_lost);
	RUN(bad_figures_are_named);
	return 0;
}
