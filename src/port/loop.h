/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: one thread's events: file descriptors, timers, work from other threads, and turns.
 *
 * Everything of a loop happens on the thread that runs it, except loop_post and loop_stop, which any
 * thread may call. The clock is read once a round, and whenever somebody asks for it (loop_refresh). A round: wait; what is ready; timers that are
 * due; posted tasks; then every turn, in the order in which they were added. So what a round's events
 * brought together is handled in one batch by the turns.
 */
#ifndef WEIR_PORT_LOOP_H
#define WEIR_PORT_LOOP_H

#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop_fd { /* in the owner's memory, from add to remove */
	int fd;
	/* events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, … May remove itself, and any other. */
	void (*ready)(struct loop_fd *f, uint32_t events);
	uint32_t events; /* the loop's: what is waited for */
};

struct loop_timer { /* in the owner's memory; zero it; set to WEIR_NEVER before it goes away */
	void (*due)(struct loop_timer *t, weir_time now);
	uint32_t place; /* the loop's */
	bool set;       /* the loop's */
};

struct loop_task { /* in the caller's memory until it has run */
	void (*run)(struct loop_task *t);
	struct loop_task *next; /* the loop's */
};

struct loop_turn { /* in the owner's memory */
	/* Once a round, after its events. true: there is more to do, so do not wait. */
	bool (*turn)(struct loop_turn *t, weir_time now);
	struct loop_turn *next; /* the loop's */
};

int loop_new(struct loop **ret_loop);
/* Look for events for a moment before sleeping, as long as that finds some: a thread that is woken from
 * sleep answers tens of µs later. For threads that serve requests. */
void loop_poll(struct loop *l);
/* This round served many at once: the wait after it does not begin with a poll. A sleep is paid for by so
 * many, and the core has others to run. */
void loop_served_many(struct loop *l);
void loop_free(struct loop *l);
/* Until loop_stop: 0, or a negative errno when the system refuses to wait. What was posted before the
 * stop is run; what is posted later waits for the next loop_run. A stop before the run ends it at
 * once. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);                      /* any thread */
void loop_post(struct loop *l, struct loop_task *t); /* any thread; never fails or blocks */
/* And waits until it ran; on the loop's own thread it runs at once. The loop must be running. */
void loop_call(struct loop *l, struct loop_task *t);
weir_time loop_now(const struct loop *l); /* CLOCK_MONOTONIC, as last read */
/* Reads the clock, for what must not carry the time at which the round began. On the loop's thread. */
weir_time loop_refresh(struct loop *l);
/* Which round this is, from 1 on. Time does not say: it may be refreshed in the middle. */
uint64_t loop_round(const struct loop *l);
weir_time loop_clock(void); /* CLOCK_MONOTONIC, now */

int loop_add(struct loop *l, struct loop_fd *f, uint32_t events); /* level-triggered */
/* Costs nothing when nothing changes. Of this round's events some may still come. */
void loop_change(struct loop *l, struct loop_fd *f, uint32_t events);
void loop_remove(
	struct loop *l, struct loop_fd *f); /* before it is closed; no call of ready follows */

/* At or soon after `at` (resolution: tens of µs); WEIR_NEVER: not at all. May be set again. 0 or -ENOMEM (only
 * when there were never so many at once). */
int loop_set(struct loop *l, struct loop_timer *t, weir_time at);

void loop_turn_add(struct loop *l, struct loop_turn *t);
void loop_turn_remove(struct loop *l, struct loop_turn *t);

#endif
