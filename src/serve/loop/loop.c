/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: epoll, a heap of timers, and a list of tasks from other threads.
 *
 * METHOD   One system call per round: epoll_pwait2, with the time to the next timer in nanoseconds
 *          (0 if a turn has more to do). Where it is missing (before Linux 5.11, or forbidden by a
 *          sandbox) a timerfd in the same epoll set wakes the loop.
 *
 *          Tasks are pushed on a list by compare and swap and taken all at once by an exchange.
 *          Only a thread that finds the list empty writes to the eventfd; it is edge-triggered, so
 *          it is never read. A round without a posted task pays one load for all this.
 *
 *          An fd removed in a callback may be among the events already fetched: those are cleared,
 *          with at most EVENTS comparisons.
 *
 *          A loop that polls (loop_poll) looks for events for up to POLL before it sleeps. It does
 *          so while its sleeps were shorter than SHORT and its rounds serve few requests, but not
 *          to the detriment of other threads: after a poll without events it skips 1, 3, 7 … short
 *          sleeps until the next one, and if the thread was preempted in a poll, it does not poll
 *          for CROWDED. A client on the same core causes both.
 *
 *          The clock is read after the wait; and again before it, if a timer is set: else every
 *          timer would be late by the duration of the round.
 */
#include "serve/loop/loop.h"
#include "base/heap.h"
#include "base/array.h"
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256 /* per wait; further ones come with the next wait, at once */
/* ns by which the kernel may delay a timer to save power; its default, 50 µs, is as long as a
 * request to a fast device takes. */
#define SLACK 1000
#define POLL  (50 * WEIR_US) /* the time of a reply from another core and the next request */
#define SHORT                                                                                      \
	(150 * WEIR_US) /* a sleep that a poll might have avoided: waking takes as long again */
#define STOPPED (200 * WEIR_US) /* between two looks of one poll: the thread was preempted */
#define CROWDED (100 * WEIR_MS)

struct loop {
	int epoll, wake, timer; /* fds; timer: -1 while epoll_pwait2 works */
	weir_time now;
	uint64_t round;
	weir_time timer_at; /* expiry of the timerfd */
	bool running_timers;
	bool enough; /* loop_enough, in this round */
	struct {
		bool on;            /* loop_poll */
		bool many;          /* loop_served_many, in this round */
		bool next;          /* poll before the next wait */
		uint32_t skip;      /* short sleeps until the next poll */
		uint32_t fruitless; /* value of `skip` after a poll without events */
		weir_time after;    /* no poll before this */
	} poll;
	atomic_bool stop;
	_Atomic(struct loop_task *) posted; /* newest first */

	struct heap due; /* values: slots */
	uint64_t serial;
	struct loop_timer **slots; /* NULL: free */
	uint32_t *places;          /* positions of the slots in the heap */
	uint32_t *free_slots;      /* a stack */
	uint32_t n_free, n_slots;

	struct loop_turn *turns, **turns_end;
	struct loop_turn *turn_next; /* while the turns run: the next one */

	int n_events, at; /* number fetched; index of the current one */
	struct epoll_event events[EVENTS];
};

static _Thread_local const struct loop *loop_here; /* the loop that this thread runs */

weir_time loop_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

weir_time loop_boot_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

weir_time loop_now(const struct loop *l)
{
	return l->now;
}

uint64_t loop_round(const struct loop *l)
{
	return l->round;
}

double loop_date(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

weir_time loop_refresh(struct loop *l)
{
	l->now = loop_clock();
	return l->now;
}

static int add_fd(struct loop *l, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int loop_new(struct loop **ret_loop)
{
	struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->timer = -1;
	l->turns_end = &l->turns;
	l->timer_at = WEIR_NEVER;
	l->wake = -1;
	l->now = loop_clock();
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll >= 0)
		l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = l->wake < 0 ? -errno : add_fd(l, l->wake, EPOLLIN | EPOLLET);
	if (r < 0) {
		loop_free(l);
		return r;
	}
	*ret_loop = l;
	return 0;
}

void loop_poll(struct loop *l)
{
	l->poll.on = true;
}

void loop_served_many(struct loop *l)
{
	l->poll.many = true;
}

void loop_enough(struct loop *l)
{
	l->enough = true;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	if (l->timer >= 0)
		close(l->timer);
	if (l->wake >= 0)
		close(l->wake);
	if (l->epoll >= 0)
		close(l->epoll);
	heap_free(&l->due);
	free(l->slots);
	free(l->places);
	free(l->free_slots);
	free(l);
}

/* ---- file descriptors */

int loop_add(struct loop *l, struct loop_fd *f, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = f};

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, f->fd, &e) < 0)
		return -errno;
	f->events = events;
	return 0;
}

void loop_change(struct loop *l, struct loop_fd *f, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = f};

	if (f->events == events)
		return;
	f->events = events;
	epoll_ctl(l->epoll, EPOLL_CTL_MOD, f->fd, &e);
}

void loop_remove(struct loop *l, struct loop_fd *f)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, f->fd, NULL);
	for (int i = l->at; i < l->n_events; i++)
		if (l->events[i].data.ptr == f)
			l->events[i].data.ptr = NULL;
}

/* data.ptr is NULL for the eventfd, the timerfd and cleared events: they only end the wait. */
static void run_events(struct loop *l)
{
	l->enough = false;
	while (l->at < l->n_events && !l->enough) {
		const struct epoll_event *e = &l->events[l->at++];
		struct loop_fd *f = e->data.ptr;
		if (f)
			f->ready(f, e->events);
	}
}

/* ---- timers */

static int more_slots(struct loop *l)
{
	uint32_t n = l->n_slots ? 2 * l->n_slots : 16;

	if (array_resize(&l->slots, n) < 0 || array_resize(&l->places, n) < 0)
		return -ENOMEM;
	l->due.place = l->places;
	if (array_resize(&l->free_slots, n) < 0 || heap_reserve(&l->due, n) < 0)
		return -ENOMEM;
	for (uint32_t i = n; i-- > l->n_slots;)
		l->free_slots[l->n_free++] = i;
	l->n_slots = n;
	return 0;
}

static void free_slot(struct loop *l, struct loop_timer *t)
{
	t->set = false;
	l->free_slots[l->n_free++] = t->place;
}

int loop_set(struct loop *l, struct loop_timer *t, weir_time at)
{
	if (at == WEIR_NEVER) {
		if (t->set) {
			heap_remove(&l->due, l->places[t->place]);
			free_slot(l, t);
		}
		return 0;
	}
	/* A timer that its own callback sets to the past waits for the next round, after the others
	 * due now, or it would monopolise the loop. */
	if (l->running_timers && at <= l->now)
		at = l->now + 1;
	if (t->set) {
		heap_move(&l->due, l->places[t->place], at, l->serial++);
		return 0;
	}
	if (!l->n_free && more_slots(l) < 0)
		return -ENOMEM;
	t->place = l->free_slots[--l->n_free];
	t->set = true;
	l->slots[t->place] = t;
	return heap_push(&l->due, (struct heap_item){at, l->serial++, t->place});
}

static void run_timers(struct loop *l)
{
	const struct heap_item *first;
	/* a callback may refresh it: timers that expire then run in the next round */
	weir_time now = l->now;

	l->running_timers = true;
	while ((first = heap_min(&l->due)) && first->key <= now) {
		struct loop_timer *t = l->slots[first->value];
		heap_pop(&l->due);
		free_slot(l, t);
		t->due(t, l->now);
	}
	l->running_timers = false;
}

/* ---- tasks from other threads */

static void wake(struct loop *l)
{
	uint64_t one = 1;

	if (loop_here == l)
		return; /* it checks before it waits */
	/* Cannot fail before 2⁶⁴ − 2 writes. */
	while (write(l->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void loop_post(struct loop *l, struct loop_task *t)
{
	t->next = atomic_load_explicit(&l->posted, memory_order_relaxed);
	for (;;) {
		bool first = !t->next; /* once pushed, t may be freed */
		if (!atomic_compare_exchange_weak_explicit(
			    &l->posted, &t->next, t, memory_order_release, memory_order_relaxed))
			continue;
		if (first)
			wake(l);
		return;
	}
}

static void run_tasks(struct loop *l)
{
	struct loop_task *newest, *t = NULL;

	if (!atomic_load_explicit(&l->posted, memory_order_relaxed))
		return;
	newest = atomic_exchange_explicit(&l->posted, NULL, memory_order_acquire);
	while (newest) { /* reversed: in the order of posting */
		struct loop_task *next = newest->next;
		newest->next = t;
		t = newest;
		newest = next;
	}
	while (t) {
		struct loop_task *next = t->next;
		t->run(t);
		t = next;
	}
}

struct call {
	struct loop_task task;
	struct loop_task *inner;
	sem_t done;
};

static void call_run(struct loop_task *t)
{
	struct call *c = (struct call *)t;

	c->inner->run(c->inner);
	sem_post(&c->done);
}

void loop_call(struct loop *l, struct loop_task *t)
{
	struct call c = {.task.run = call_run, .inner = t};

	if (loop_here == l) {
		t->run(t);
		return;
	}
	sem_init(&c.done, 0, 0);
	loop_post(l, &c.task);
	while (sem_wait(&c.done) < 0)
		; /* EINTR */
	sem_destroy(&c.done);
}

void loop_stop(struct loop *l)
{
	atomic_store_explicit(&l->stop, true, memory_order_release);
	wake(l);
}

/* ---- turns */

void loop_turn_add(struct loop *l, struct loop_turn *t)
{
	t->next = NULL;
	*l->turns_end = t;
	l->turns_end = &t->next;
}

void loop_turn_remove(struct loop *l, struct loop_turn *t)
{
	for (struct loop_turn **link = &l->turns; *link; link = &(*link)->next)
		if (*link == t) {
			*link = t->next;
			if (!*link)
				l->turns_end = link;
			break;
		}
	if (l->turn_next == t)
		l->turn_next = t->next;
}

static bool run_turns(struct loop *l)
{
	bool more = false;

	for (struct loop_turn *t = l->turns; t; t = l->turn_next) {
		l->turn_next = t->next;
		more |= t->turn(t, l->now);
	}
	return more;
}

/* ---- waiting */

/* Wait with a timerfd set to the next timer, if epoll_pwait2 is not available. */
static int wait_by_timerfd(struct loop *l, weir_time wait)
{
	weir_time at = wait <= 0 || wait == WEIR_NEVER ? WEIR_NEVER : heap_min(&l->due)->key;
	struct itimerspec spec = {0};

	if (l->timer < 0) {
		l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (l->timer < 0 || add_fd(l, l->timer, EPOLLIN | EPOLLET) < 0)
			return -1;
	}
	if (at != WEIR_NEVER && at != l->timer_at) {
		spec.it_value.tv_sec = at / WEIR_SEC;
		spec.it_value.tv_nsec = at % WEIR_SEC;
		if (timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
			return -1;
		l->timer_at = at;
	}
	return epoll_wait(l->epoll, l->events, EVENTS, wait > 0 ? -1 : 0);
}

static int sleep_for_events(struct loop *l, weir_time wait)
{
	struct timespec t = {.tv_sec = wait / WEIR_SEC, .tv_nsec = wait % WEIR_SEC};

	if (l->timer < 0) {
		int n = epoll_pwait2(
			l->epoll, l->events, EVENTS, wait == WEIR_NEVER ? NULL : &t, NULL);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
	}
	return wait_by_timerfd(l, wait);
}

/* Poll. Return the number of events, 0 if there were none for POLL, or -1. */
static int poll_events(struct loop *l)
{
	weir_time began = loop_clock(), last = began, now = began;
	int n = 0;

	while (n == 0 && now - began < POLL && now - last < STOPPED) {
		n = epoll_wait(l->epoll, l->events, EVENTS, 0);
		last = now;
		now = loop_clock();
	}
	if (now - last >= STOPPED)
		l->poll.after = now + CROWDED;
	l->poll.next = n > 0;
	if (n > 0)
		l->poll.fruitless = 0;
	else if (l->poll.fruitless < 1023)
		l->poll.fruitless = 2 * l->poll.fruitless + 1;
	l->poll.skip = l->poll.fruitless;
	return n;
}

/* After a sleep, decide whether to poll before the next one. */
static void learn_poll(struct loop *l, weir_time slept)
{
	if (slept > SHORT)
		return;
	if (l->poll.skip)
		l->poll.skip--;
	else
		l->poll.next = true;
}

static int wait_events(struct loop *l, weir_time wait)
{
	weir_time began;
	int n = 0;

	if (wait <= 0) /* the older call: it copies no timeout */
		return epoll_wait(l->epoll, l->events, EVENTS, 0);
	if (!l->poll.on || l->poll.many || wait < POLL) {
		l->poll.many = false;
		return sleep_for_events(l, wait);
	}
	began = loop_clock();
	if (l->poll.next && began >= l->poll.after)
		n = poll_events(l);
	if (n == 0) {
		n = sleep_for_events(l, wait);
		learn_poll(l, loop_clock() - began);
	}
	return n;
}

/* Return ns to wait; ≤ 0: do not wait; WEIR_NEVER: until an event. */
static weir_time time_to_wait(struct loop *l, bool more)
{
	const struct heap_item *first = heap_min(&l->due);

	if (more || atomic_load_explicit(&l->posted, memory_order_relaxed) ||
		atomic_load_explicit(&l->stop, memory_order_relaxed))
		return 0;
	if (!first)
		return WEIR_NEVER;
	return first->key <= l->now ? 0 : first->key - loop_clock();
}

static int run_round(struct loop *l, bool *more)
{
	if (l->at == l->n_events) {
		int n = wait_events(l, time_to_wait(l, *more));

		if (n < 0 && errno != EINTR)
			return -errno;
		l->n_events = n < 0 ? 0 : n;
		l->at = 0;
	}
	l->now = loop_clock();
	l->round++;
	run_events(l);
	run_timers(l);
	run_tasks(l);
	*more = run_turns(l);
	return 0;
}

int loop_run(struct loop *l)
{
	const struct loop *before = loop_here;
	bool more = true; /* the first turns may already have work */
	int r = 0;

	prctl(PR_SET_TIMERSLACK, SLACK);
	loop_here = l;
	while (r == 0 && !atomic_load_explicit(&l->stop, memory_order_acquire))
		r = run_round(l, &more);
	run_tasks(l); /* tasks posted before the stop */
	atomic_store_explicit(&l->stop, false, memory_order_relaxed);
	loop_here = before;
	return r;
}
