/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/resource/tap.h"
#include "test.h"
#include <pthread.h>
#include <sched.h>

static void in_order(void)
{
	struct tap *t;
	struct tap_entry e = {0}, got[8];

	CHECK_INT(tap_new(5, &t), 0); /* becomes 8 */
	CHECK_INT(tap_take(t, got, 8), 0);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 7; i++) {
			e.offset = (uint64_t)(round * 7 + i);
			e.tenant = (uint16_t)i;
			tap_put(t, &e);
		}
		CHECK_INT(tap_take(t, got, 3), 3);
		CHECK_INT(got[2].offset, round * 7 + 2);
		CHECK_INT(tap_take(t, got, 8), 4);
		CHECK_INT(got[0].offset, round * 7 + 3);
		CHECK_INT(got[3].tenant, 6);
	}
	CHECK_INT(tap_dropped(t), 0);
	tap_free(t);
	tap_free(NULL);
}

static void full(void)
{
	struct tap *t;
	struct tap_entry e = {0}, got[8];

	CHECK_INT(tap_new(8, &t), 0);
	for (int i = 0; i < 11; i++) {
		e.offset = (uint64_t)i;
		tap_put(t, &e);
	}
	CHECK_INT(tap_dropped(t), 3);
	CHECK_INT(tap_take(t, got, 1), 1);
	CHECK_INT(got[0].offset, 0);
	e.offset = 11;
	tap_put(t, &e); /* there is room for one again */
	tap_put(t, &e);
	CHECK_INT(tap_dropped(t), 4);
	CHECK_INT(tap_take(t, got, 8), 8);
	CHECK_INT(got[6].offset, 7);
	CHECK_INT(got[7].offset, 11);
	tap_free(t);
}

/* One thread puts, another takes: entries taken and entries dropped add up to entries put; in
 * order, complete. */
enum { PUT = 200000 };

static void *put_all(void *arg)
{
	for (uint64_t i = 1; i <= PUT; i++) {
		struct tap_entry e = {.at = (weir_time)i, .offset = i, .bytes = (uint32_t)i};

		tap_put(arg, &e);
		if (i % 1024 == 0)
			sched_yield();
	}
	return NULL;
}

static void two_threads(void)
{
	struct tap *t;
	struct tap_entry got[64];
	pthread_t writer;
	uint64_t taken = 0, last = 0;

	CHECK_INT(tap_new(1024, &t), 0);
	CHECK_INT(pthread_create(&writer, NULL, put_all, t), 0);
	while (taken + tap_dropped(t) < PUT) {
		size_t n = tap_take(t, got, 64);

		for (size_t i = 0; i < n; i++) {
			CHECK(got[i].offset > last);
			CHECK(got[i].bytes == got[i].offset &&
				got[i].at == (weir_time)got[i].bytes);
			last = got[i].offset;
		}
		taken += n;
		if (n == 0)
			sched_yield();
	}
	pthread_join(writer, NULL);
	CHECK_INT(taken + tap_dropped(t), PUT);
	CHECK(taken >= 1024);
	tap_free(t);
}

int main(void)
{
	RUN(in_order);
	RUN(full);
	RUN(two_threads);
	return 0;
}
