/* SPDX-License-Identifier: BSD-3-Clause */
/* parallel: threads count up a number to get the next part; a round is over when no thread is at
 * work. */
#include "serve/loop/parallel.h"
#include "serve/loop/threads.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct parallel {
	pthread_mutex_t lock;
	pthread_cond_t begin, done;
	unsigned long round; /* of work; a thread works once in each */
	unsigned at_work;    /* threads that have not ended the round */
	bool stop;
	/* The round's: */
	void (*part)(void *arg, size_t i);
	void *arg;
	size_t parts;
	atomic_size_t next;
	unsigned n; /* threads, without the caller's */
	pthread_t ids[];
};

static void work(struct parallel *p)
{
	for (;;) {
		size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);

		if (i >= p->parts)
			return;
		p->part(p->arg, i);
	}
}

static void *helper_main(void *arg)
{
	struct parallel *p = arg;
	unsigned long seen = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->round == seen && !p->stop)
			pthread_cond_wait(&p->begin, &p->lock);
		if (p->stop)
			break;
		seen = p->round;
		pthread_mutex_unlock(&p->lock);
		work(p);
		pthread_mutex_lock(&p->lock);
		if (--p->at_work == 0)
			pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int parallel_new(unsigned threads, struct parallel **ret)
{
	struct parallel *p = calloc(1, sizeof(*p) + threads * sizeof(p->ids[0]));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->begin, NULL);
	pthread_cond_init(&p->done, NULL);
	while (p->n + 1 < threads && threads_start(&p->ids[p->n], NULL, helper_main, p) == 0)
		p->n++;
	*ret = p;
	return 0;
}

void parallel_free(struct parallel *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->begin);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n; i++)
		pthread_join(p->ids[i], NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->begin);
	pthread_cond_destroy(&p->done);
	free(p);
}

void parallel_run(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg)
{
	struct parallel *p = pool;

	pthread_mutex_lock(&p->lock);
	p->part = part;
	p->arg = arg;
	p->parts = parts;
	atomic_store(&p->next, 0);
	p->at_work = p->n;
	p->round++;
	pthread_cond_broadcast(&p->begin);
	pthread_mutex_unlock(&p->lock);
	work(p);
	pthread_mutex_lock(&p->lock);
	while (p->at_work > 0)
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
