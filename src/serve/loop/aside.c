/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/loop/aside.h"
#include "serve/loop/threads.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

struct aside {
	struct loop *loop;
	pthread_t thread;
	bool running; /* the owner's */
	pthread_mutex_t lock;
	pthread_cond_t wake, idle;
	struct aside_job *first, **end;
	bool busy, stop;
};

static void back(struct loop_task *t)
{
	struct aside_job *j = container_of(t, struct aside_job, task);

	j->done(j);
}

static void run_job(struct aside *a, struct aside_job *j)
{
	bool told = j->done;

	j->run(j);
	if (!told)
		return;
	j->task.run = back;
	loop_post(a->loop, &j->task);
}

static void *thread(void *arg)
{
	struct aside *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		struct aside_job *j = a->first;

		if (!j) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		a->first = j->next;
		if (!a->first)
			a->end = &a->first;
		a->busy = true;
		pthread_mutex_unlock(&a->lock);
		run_job(a, j);
		pthread_mutex_lock(&a->lock);
		a->busy = false;
		pthread_cond_signal(&a->idle);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int aside_new(struct loop *l, struct aside **ret_aside)
{
	struct aside *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;

	if (!a)
		return -ENOMEM;
	a->loop = l;
	a->end = &a->first;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	pthread_cond_init(&a->idle, &attr);
	pthread_condattr_destroy(&attr);
	*ret_aside = a;
	return 0;
}

static bool start_thread(struct aside *a)
{
	if (!a->running)
		a->running = threads_start(&a->thread, "weir-aside", thread, a) == 0;
	return a->running;
}

void aside_post(struct aside *a, struct aside_job *j)
{
	j->next = NULL;
	j->aside = a;
	if (!start_thread(a)) {
		run_job(a, j);
		return;
	}
	pthread_mutex_lock(&a->lock);
	*a->end = j;
	a->end = &j->next;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

bool aside_free(struct aside *a, weir_time wait)
{
	weir_time until = loop_clock() + wait;
	struct timespec at = {.tv_sec = until / WEIR_SEC, .tv_nsec = until % WEIR_SEC};
	struct aside_job *left;
	int rc = 0;
	bool busy;

	if (!a)
		return true;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	left = a->first;
	a->first = NULL;
	pthread_cond_signal(&a->wake);
	while (a->busy && rc == 0)
		rc = pthread_cond_timedwait(&a->idle, &a->lock, &at);
	busy = a->busy;
	pthread_mutex_unlock(&a->lock);
	if (busy) {
		pthread_detach(a->thread);
		return false;
	}
	if (a->running)
		pthread_join(a->thread, NULL);
	while (left) { /* jobs that own themselves free their memory */
		struct aside_job *j = left;

		left = j->next;
		if (!j->done)
			j->run(j);
	}
	pthread_cond_destroy(&a->wake);
	pthread_cond_destroy(&a->idle);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return true;
}
