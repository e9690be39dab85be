/* SPDX-License-Identifier: BSD-3-Clause */
/* threads: one list of jobs under a mutex, from which the threads take one at a time. */
#include "serve/loop/threads.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct threads {
	struct loop *loop;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct threads_job *first, **end;
	unsigned waiting; /* jobs in the list */
	unsigned idle;    /* threads that wait for one */
	unsigned n, most;
	bool stop;
	pthread_t ids[];
};

int threads_start(pthread_t *ret_id, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all); /* signals belong to the main thread */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret_id, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0 && name)
		pthread_setname_np(*ret_id, name);
	return -rc;
}

int threads_new(struct loop *loop, unsigned most, struct threads **ret_threads)
{
	struct threads *t = calloc(1, sizeof(*t) + most * sizeof(t->ids[0]));

	if (!t)
		return -ENOMEM;
	t->loop = loop;
	t->most = most;
	t->end = &t->first;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->more, NULL);
	*ret_threads = t;
	return 0;
}

/* NULL: stop. A new thread was counted as idle by who started it. */
static struct threads_job *next_job(struct threads *t, bool new)
{
	struct threads_job *j;

	pthread_mutex_lock(&t->lock);
	t->idle += !new;
	while (!t->first && !t->stop)
		pthread_cond_wait(&t->more, &t->lock);
	t->idle--;
	j = t->first;
	if (j) {
		t->first = j->next;
		if (!t->first)
			t->end = &t->first;
		t->waiting--;
	}
	pthread_mutex_unlock(&t->lock);
	return j;
}

static void work(struct threads *t, struct threads_job *j)
{
	j->work(j);
	loop_post(t->loop, &j->done);
}

static void *thread_main(void *arg)
{
	struct threads_job *j = next_job(arg, true);

	for (; j; j = next_job(arg, false))
		work(arg, j);
	return NULL;
}

/* Under the lock, on the loop's thread, as all uses of `n`. */
static bool start_one(struct threads *t)
{
	if (threads_start(&t->ids[t->n], NULL, thread_main, t) < 0)
		return false;
	t->n++;
	t->idle++;
	return true;
}

void threads_add(struct threads *t, struct threads_job *jobs)
{
	struct threads_job *left = NULL;

	pthread_mutex_lock(&t->lock);
	*t->end = jobs;
	for (; jobs; jobs = jobs->next) {
		t->waiting++;
		t->end = &jobs->next;
		if (t->idle)
			pthread_cond_signal(&t->more);
	}
	while (t->n < t->most && t->waiting > t->idle && start_one(t))
		;
	if (!t->n) { /* not even one: the system has no more threads */
		left = t->first;
		t->first = NULL;
		t->end = &t->first;
		t->waiting = 0;
	}
	pthread_mutex_unlock(&t->lock);
	while (left) {
		struct threads_job *j = left;

		left = j->next;
		work(t, j);
	}
}

void threads_free(struct threads *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->more);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < t->n; i++)
		pthread_join(t->ids[i], NULL);
	pthread_cond_destroy(&t->more);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
