/* SPDX-License-Identifier: BSD-3-Clause */
/* calendar: a timer that grows with the number of entries. */
#include "entries.h"

static void growing_keeps_entries(void)
{
	static struct timer t;
	static union block e[3], more[5000];
	uint32_t out[8];

	entries_start(&t, e, 3);
	for (uint32_t i = 0; i < 3; i++)
		timer_set(&t, i, (weir_time)(i + 1) * 200 * WEIR_MS);
	for (uint32_t i = 0; i < 5000; i++)
		more[i].entry = i < 3 ? e[i].entry : (struct timer_entry){.tick = -1};
	CHECK_INT(calendar_fit(&t, &more->entry, 5000), 0);
	timer_set(&t, 4999, 100 * WEIR_MS);
	CHECK_INT(timer_expire(&t, WEIR_SEC, out, 8), 4);
	CHECK_INT(out[0], 4999);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_INT(out[i + 1], i);
	CHECK_INT(timer_next(&t), WEIR_NEVER);
	calendar_free(&t);
}

/* It grows again and again, while entries are set to near and far times: each expires at its
 * time, in order. A request for as many or fewer entries changes nothing. */
static void growing_as_time_goes_on(void)
{
	enum { N = 40000 };
	static union block e[N];
	static int64_t tick[N];
	static uint32_t out[N];
	struct timer t;
	weir_time now = 0;
	uint32_t set = 0, n;

	entries_start(&t, e, 10);
	for (uint32_t room = 10; room < N; room *= 3) {
		uint32_t had = room == 10 ? 0 : room / 3;
		int64_t last = 0;
		size_t bytes;

		for (uint32_t i = had; i < room; i++)
			e[i].entry = (struct timer_entry){.tick = -1};
		CHECK_INT(calendar_fit(&t, &e->entry, room), 0);
		bytes = calendar_memory(&t);
		CHECK_INT(calendar_fit(&t, &e->entry, room / 2), 0);
		CHECK_INT(calendar_memory(&t), bytes);
		for (uint32_t i = had; i < room; i++, set++) {
			weir_time when = now + (weir_time)law_log(1, 1e11);

			timer_set(&t, i, when);
			tick[i] = (int64_t)timer_tick(when);
		}
		CHECK_INT(t.set, set);
		now += 50 * WEIR_MS;
		n = timer_expire(&t, now, out, N);
		for (uint32_t k = 0; k < n; k++) {
			CHECK(tick[out[k]] <= now / TIMER_TICK);
			CHECK(tick[out[k]] >= last);
			last = tick[out[k]];
			tick[out[k]] = INT64_MAX;
		}
		set -= n;
		for (uint32_t i = 0; i < room; i++)
			CHECK(tick[i] > now / TIMER_TICK);
		law_operations += room;
	}
	CHECK_INT(timer_expire(&t, now + 200 * WEIR_SEC, out, N), set);
	calendar_free(&t);
}

/* Entries of the current slot, already sorted into its ticks, are kept. */
static void growing_in_a_slot(void)
{
	static struct timer t;
	static union block e[3], more[5000];
	uint32_t out[8];

	entries_start(&t, e, 3);
	CHECK_INT(timer_expire(&t, WEIR_SEC, out, 8), 0);
	for (uint32_t i = 0; i < 3; i++)
		timer_set(&t, i, WEIR_SEC + (weir_time)(3 - i) * 2 * TIMER_TICK);
	CHECK(t.used[0] != 0);
	for (uint32_t i = 0; i < 5000; i++)
		more[i].entry = i < 3 ? e[i].entry : (struct timer_entry){.tick = -1};
	CHECK_INT(calendar_fit(&t, &more->entry, 5000), 0);
	CHECK_INT(timer_expire(&t, WEIR_SEC + 100 * TIMER_TICK, out, 8), 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_INT(out[i], 2 - i);
	calendar_free(&t);
}

/* Times that wait for their slots to be fetched are kept, too, and set in the new array. */
static void growing_keeps_late_times(void)
{
	static struct timer t;
	static union block e[3], more[5000];
	uint32_t out[8];

	entries_start(&t, e, 3);
	for (uint32_t i = 0; i < 3; i++)
		timer_set_coarse(&t, &e[i].entry, i, (weir_time)(i + 1) * 200 * WEIR_MS);
	for (uint32_t i = 0; i < 5000; i++)
		more[i].entry = i < 3 ? e[i].entry : (struct timer_entry){.tick = -1};
	memset(e, 0xff, sizeof e);
	CHECK_INT(calendar_fit(&t, &more->entry, 5000), 0);
	CHECK_INT(t.set, 3);
	CHECK_INT(timer_expire(&t, WEIR_SEC, out, 8), 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_INT(out[i], i);
	calendar_free(&t);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "calendar");
	RUN(growing_keeps_entries);
	RUN(growing_as_time_goes_on);
	RUN(growing_in_a_slot);
	RUN(growing_keeps_late_times);
	return law_end(30000);
}
