/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of timers while they are weeded. */
#include "entries.h"

enum { N = 300 };

static struct timer t;
static union block e[N];

/* Every entry is set to a time after the far half turns, `when` and what comes after it, and had been to
 * another, so that cells that do not hold become too many. Those other times of the first few are nearer:
 * so there are fewer cells in the one queue, and as many in all. */
static void set_beyond(weir_time when, uint32_t nearer)
{
	entries_start(&t, e, N);
	for (uint32_t k = 0; k < 2 * N; k++)
		timer_set_tick(&t, &e[k % N].entry, k % N,
			timer_tick(k < nearer ? WEIR_SEC : when + (weir_time)k * 100 * WEIR_US));
	timer_flush(&t);
}

/* Time leaps to after all of them: each expires once. */
static void leap(weir_time now)
{
	static unsigned times[N];
	uint32_t out[64], n, all = 0;

	memset(times, 0, sizeof times);
	do {
		n = timer_expire(&t, now, out, 64);
		for (uint32_t i = 0; i < n; i++)
			CHECK_INT(++times[out[i]], 1);
		all += n;
	} while (n == 64);
	CHECK_INT(all, N);
	CHECK_INT(timer_next(&t), WEIR_NEVER);
	law_operations += all;
}

/* Weeding does a few cells at a call. After any of these calls, wherever it has come to, time leaps: nothing of
 * what is beyond the far half turns is overlooked, since it stands apart at that moment. Whatever number of
 * cells there is, so that a call ends just with the last of the queue. */
static void a_leap_while_weeding(void)
{
	const weir_time when = 20 * WEIR_SEC;
	uint32_t out[1], weeding = 0;

	for (uint32_t nearer = 0; nearer < QUEUE_STEPS; nearer++)
		for (uint32_t calls = 0;; calls++) {
			set_beyond(when, nearer);
			CHECK(t.weed != 0 && !cells_empty(&t.queue[TIMER_Q_BEYOND]));
			for (uint32_t k = 0; k < calls; k++)
				CHECK_INT(timer_expire(&t, 0, out, 1), 0);
			bool over = t.weed <= TIMER_Q_BEYOND;

			weeding += !over && !cells_empty(&t.kept);
			leap(when + WEIR_SEC);
			calendar_free(&t);
			if (over)
				break;
		}
	CHECK(weeding > 10 * QUEUE_STEPS); /* the leaps were while some cells stood apart */
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "queue");
	RUN(a_leap_while_weeding);
	return law_end(50000);
}
