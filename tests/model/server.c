/* SPDX-License-Identifier: BSD-3-Clause */
/* server: FIFO, k at once, speed changed during service. (Queueing theory is in queueing.c.) */
#include "model/server.h"
#include "closed.h"
#include <errno.h>

static struct device_io ios[64];

static struct device *make(struct server_config c, uint64_t seed)
{
	struct weir_err err;
	struct device *d;

	if (server_new(&c, seed, "server", &d, &err) < 0)
		FAIL("%s", err.text);
	return d;
}

static void fixed_service_is_fifo(void)
{
	struct server_config c = {.servers = 1, .rate = 1000, .service = SERVER_FIXED};
	struct device *d = make(c, 1);
	struct device_io *done;
	int n = 0;

	CHECK_INT(device_next(d), WEIR_NEVER);
	CHECK(device_step(d, WEIR_SEC) == NULL);
	for (int i = 0; i < 10; i++)
		device_submit(d, i * 100 * WEIR_US, &ios[i]);
	CHECK_INT(device_next(d), WEIR_MS);
	CHECK(device_step(d, WEIR_MS - 1) == NULL);
	for (done = device_step(d, WEIR_SEC); done; done = done->next, n++) {
		CHECK(done == &ios[n]);
		CHECK_INT(done->arrived, n * 100 * WEIR_US);
		CHECK_INT(done->finished, (n + 1) * WEIR_MS); /* not the step's now */
	}
	CHECK_INT(n, 10);
	CHECK_INT(device_next(d), WEIR_NEVER);
	device_free(d);
}

static void k_at_once_each_a_kth_as_fast(void)
{
	struct server_config c = {.servers = 4, .rate = 1000, .service = SERVER_FIXED};
	struct device *d = make(c, 1);
	struct device_io *done;
	int n = 0;

	for (int i = 0; i < 8; i++)
		device_submit(d, 0, &ios[i]);
	for (done = device_step(d, WEIR_SEC); done; done = done->next, n++) {
		CHECK(done == &ios[n]); /* ties in order of arrival */
		CHECK_INT(done->finished, (n / 4 + 1) * 4 * WEIR_MS);
	}
	CHECK_INT(n, 8);
	device_free(d);
}

static void bytes_count_when_asked(void)
{
	struct server_config c = {
		.servers = 2, .rate = 1000, .bytes_per_s = 1e6, .service = SERVER_FIXED};
	struct device *d = make(c, 1);
	struct device_io io = {.bytes = 500};

	device_submit(d, 0, &io);
	CHECK_INT(device_next(d), 2 * WEIR_MS + WEIR_MS);
	device_free(d);
}

/* A quarter of the speed: the rest of a service takes four times as long. */
static void speed_changes_under_way(void)
{
	struct server_config c = {.servers = 1, .rate = 400, .service = SERVER_FIXED};
	struct device *d = make(c, 1);

	device_submit(d, 0, &ios[0]);
	device_submit(d, 0, &ios[1]);
	CHECK_INT(server_set_rate(d, WEIR_MS, 100), 0);
	CHECK_INT(device_next(d), WEIR_MS + 6 * WEIR_MS);
	CHECK(device_step(d, 7 * WEIR_MS) == &ios[0]);
	CHECK_INT(device_next(d), 17 * WEIR_MS);
	CHECK_INT(server_set_rate(d, 12 * WEIR_MS, 400), 0);
	CHECK_INT(device_next(d), 12 * WEIR_MS + 1250 * WEIR_US);
	CHECK_INT(server_set_rate(d, 12 * WEIR_MS, 0), -EINVAL);
	CHECK_INT(server_set_rate(d, 12 * WEIR_MS, NAN), -EINVAL);
	CHECK_INT(server_set_rate(d, 12 * WEIR_MS, INFINITY), -EINVAL);
	CHECK_INT(device_next(d), 12 * WEIR_MS + 1250 * WEIR_US);
	device_free(d);
}

/* A saturated server achieves its rate, before and after a change (PARDA's Figure 2: 400, then
 * 100). */
static void capacity_is_the_rate(void)
{
	struct server_config c = {.servers = 3, .rate = 400, .service = SERVER_EXPONENTIAL};
	struct closed_host h = {
		.reads = 1, .random = 1, .bytes = 4096, .outstanding = 40, .region = GIB};
	struct device *d = make(c, 1);
	weir_time end = 500 * WEIR_SEC, t;
	unsigned n = 0;

	closed_run(d, &h, 1, 1, 0, end, ios);
	CHECK_NEAR(closed_rate(&h, 1, end), 400, 0.01);
	CHECK_NEAR(closed_ms(&h, 1), 100, 0.01);
	CHECK_INT(server_set_rate(d, end, 100), 0);
	while ((t = device_next(d)) < 2 * end) {
		struct device_io *io = device_step(d, t), *next;

		for (; io; io = next, n++) {
			next = io->next;
			device_submit(d, t, io);
		}
	}
	CHECK_NEAR(n / 500.0, 100, 0.015);
	device_free(d);
}

static void streams_have_their_own_numbers(void)
{
	struct server_config c = server_defaults();
	weir_time first[3];

	for (int i = 0; i < 3; i++) {
		struct device *d = make(c, i == 2 ? 6 : 5);

		device_submit(d, 0, &ios[0]);
		first[i] = device_next(d);
		device_free(d);
	}
	CHECK(first[0] == first[1] && first[0] != first[2]);
}

static void refuses(struct server_config c, const char *field)
{
	struct device *d = NULL;
	struct weir_err err;

	CHECK_INT(server_new(&c, 1, "server", &d, &err), -EINVAL);
	CHECK(d == NULL && strstr(err.text, field));
}

static void bad_figures_are_named(void)
{
	struct server_config good = server_defaults(), c;

	c = good, c.servers = 0, refuses(c, "servers");
	c = good, c.rate = 0, refuses(c, "rate");
	c = good, c.rate = NAN, refuses(c, "rate");
	c = good, c.bytes_per_s = -1, refuses(c, "bandwidth");
	c = good, c.service = (enum server_service)7, refuses(c, "service");
}

int main(void)
{
	RUN(fixed_service_is_fifo);
	RUN(k_at_once_each_a_kth_as_fast);
	RUN(bytes_count_when_asked);
	RUN(speed_changes_under_way);
	RUN(capacity_is_the_rate);
	RUN(streams_have_their_own_numbers);
	RUN(bad_figures_are_named);
	return 0;
}
