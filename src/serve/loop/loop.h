/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: the events of one thread: file descriptors, timers, tasks from other threads, and turns.
 *
 * Everything in a loop happens on the thread that runs it, except loop_post and loop_stop, which
 * any thread may call. The clock is read once per round, and on request (loop_refresh). A round:
 * wait; ready fds; expired timers; posted tasks; then every turn, in the order in which they were
 * added. So the turns handle all events of a round in one batch.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_fd { /* owned by the caller, from add to remove */
	int fd;
	/* events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, … May remove itself, and any other. */
	void (*ready)(struct loop_fd *f, uint32_t events);
	uint32_t events; /* private to the loop: the events waited for */
};

struct loop_timer { /* owned by the caller; zero it; set to WEIR_NEVER before it is freed */
	void (*due)(struct loop_timer *t, weir_time now);
	uint32_t place; /* private to the loop */
	bool set;       /* private to the loop */
};

struct loop_task { /* owned by the caller until it has run */
	void (*run)(struct loop_task *t);
	struct loop_task *next; /* private to the loop */
};

struct loop_turn { /* owned by the caller */
	/* Called once per round, after its events. Return true if there is more to do: the loop
	 * will not wait. */
	bool (*turn)(struct loop_turn *t, weir_time now);
	struct loop_turn *next; /* private to the loop */
};

int loop_new(struct loop **ret_loop);
/* Poll for events briefly before sleeping, as long as polling finds some: waking from sleep takes
 * tens of µs. For threads that serve requests. */
void loop_poll(struct loop *l);
/* This round served many requests: do not poll before the next wait. Many requests share the cost
 * of a sleep, and other threads can use the core. */
void loop_served_many(struct loop *l);
/* Begin this round's turns now: its other events follow in the next round, which comes at once. So
 * that data just received are still in the CPU's cache when they are sent. */
void loop_enough(struct loop *l);
void loop_free(struct loop *l);
/* Run until loop_stop. Return 0, or a negative errno if the system refuses to wait. Tasks posted
 * before the stop are run; later ones wait for the next loop_run. A stop before the run ends it at
 * once. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);                      /* any thread */
void loop_post(struct loop *l, struct loop_task *t); /* any thread; never fails or blocks */
/* Post a task and wait until it has run; on the loop's own thread it runs at once. The loop must be
 * running. */
void loop_call(struct loop *l, struct loop_task *t);
weir_time loop_now(const struct loop *l); /* CLOCK_MONOTONIC, as last read */
/* Read the clock, where the time of the round's start is not good enough. On the loop's thread. */
/* Seconds since 1970: a clock that survives this process, and that may be set. */
double loop_date(void);
weir_time loop_refresh(struct loop *l);
/* Return the number of this round, from 1 on. The time does not identify it: it may be
 * refreshed. */
uint64_t loop_round(const struct loop *l);
weir_time loop_clock(void);      /* CLOCK_MONOTONIC, now */
weir_time loop_boot_clock(void); /* CLOCK_BOOTTIME: goes on while the machine sleeps */

int loop_add(struct loop *l, struct loop_fd *f, uint32_t events); /* level-triggered */
/* Free of cost if nothing changes. Events of this round may still arrive. */
void loop_change(struct loop *l, struct loop_fd *f, uint32_t events);
void loop_remove(
	struct loop *l, struct loop_fd *f); /* before it is closed; `ready` is not called again */

/* Set a timer to expire at or soon after `at` (resolution: tens of µs); WEIR_NEVER: unset it. May
 * be set again. Return 0 or -ENOMEM (only when the number of timers reaches a new maximum). */
int loop_set(struct loop *l, struct loop_timer *t, weir_time at);

void loop_turn_add(struct loop *l, struct loop_turn *t);
void loop_turn_remove(struct loop *l, struct loop_turn *t);
