/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker: one thread of the data path: its loop, its payload memory, its connections.
 *
 * The thread is started with every signal blocked (the main thread reads them), and its loop runs
 * until worker_stop. Resources and connections add themselves to the loop.
 */
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include "serve/loop/threads.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_DEFAULT ((size_t)1 << 30)  /* bytes of payloads: a second of a fast disk */
#define MEMORY_LEAST   ((size_t)16 << 20) /* a worker: 64 of the largest pieces */

int worker_init(struct worker *w, struct gateway *g, unsigned index, size_t memory, int core)
{
	int rc;

	*w = (struct worker){.gateway = g, .index = index, .core = core};
	rc = loop_new(&w->loop);
	if (rc == 0)
		loop_poll(w->loop);
	if (rc == 0)
		rc = chunk_pool_new(memory, &w->pool);
	if (rc < 0)
		return rc;
	return front_new(&gateway_site, g, w->loop, w->pool, &w->front);
}

static void pin(const struct worker *w)
{
	char core[24];
	cpu_set_t set;
	int rc;

	if (w->core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)w->core, &set);
	rc = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (rc != 0)
		log_event(LOG_LEVEL_WARNING, "not-pinned", "core", log_number(core, w->core), "why",
			strerror(rc), NULL);
}

static void *thread(void *arg)
{
	struct worker *w = arg;
	int rc;

	pin(w);
	rc = loop_run(w->loop);
	if (rc < 0) {
		/* Its clients would hang, and so would the main thread at its next call: exit, so
		 * that the service is restarted. */
		log_event(LOG_LEVEL_ERROR, "worker-failed", "why", strerror(-rc), NULL);
		abort();
	}
	return NULL;
}

int worker_run(struct worker *w)
{
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "weir-%u", w->index % 10000);
	rc = threads_start(&w->thread, name, thread, w);
	w->running = rc == 0;
	return rc;
}

struct call {
	struct loop_task task; /* first */
	struct worker *worker;
	int (*fn)(void *arg, struct worker *w);
	void *arg;
	int rc;
};

static void run_call(struct loop_task *t)
{
	struct call *c = container_of(t, struct call, task);

	c->rc = c->fn(c->arg, c->worker);
}

int worker_call(struct worker *w, int (*fn)(void *arg, struct worker *w), void *arg)
{
	struct call c = {.task = {.run = run_call}, .worker = w, .fn = fn, .arg = arg};

	loop_call(w->loop, &c.task);
	return c.rc;
}

void worker_stop(struct worker *w)
{
	if (!w->running)
		return;
	loop_stop(w->loop);
	pthread_join(w->thread, NULL);
	w->running = false;
}

/* ---- all of them */

static unsigned count_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Return the bytes of payloads of one of n workers. */
static size_t memory_of(const struct gateway *g, const struct weir_policy *p, size_t n)
{
	size_t all = g->options.memory ? g->options.memory
		     : p->buffers      ? p->buffers
				       : MEMORY_DEFAULT;

	return all / n > MEMORY_LEAST ? all / n : MEMORY_LEAST;
}

int workers_make(struct gateway *g, const struct weir_policy *p, struct weir_err *err)
{
	const struct gateway_options *o = &g->options;
	size_t n = o->threads ? o->threads : p->threads ? p->threads : count_cores();

	if (n > p->n_resources)
		n = p->n_resources;
	if (n > WORKERS_MOST)
		n = WORKERS_MOST;
	if (!g->workers)
		g->workers = calloc(WORKERS_MOST, sizeof(*g->workers));
	if (!g->workers)
		return no_memory(err);
	while (g->n_made < n) {
		unsigned i = g->n_made;
		int core = o->n_cores ? o->cores[i % o->n_cores] : -1;
		int rc = worker_init(&g->workers[i], g, i, memory_of(g, p, n), core);

		if (rc < 0) {
			worker_free(&g->workers[i]);
			return weir_err_set(err, rc, "cannot make a thread: %s", strerror(-rc));
		}
		g->n_made++;
	}
	return 0;
}

int workers_run(struct gateway *g, struct weir_err *err)
{
	for (; g->n_workers < g->n_made; g->n_workers++) {
		int rc = worker_run(&g->workers[g->n_workers]);

		if (rc < 0)
			return weir_err_set(err, rc, "cannot start a thread: %s", strerror(-rc));
	}
	return 0;
}

static int set_memory(void *arg, struct worker *w)
{
	chunk_set_budget(w->pool, *(size_t *)arg);
	return 0;
}

void workers_memory(struct gateway *g)
{
	size_t bytes = memory_of(g, g->policy, g->n_workers);

	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], set_memory, &bytes);
}

void worker_free(struct worker *w)
{
	front_free(w->front);
	if (w->pool)
		chunk_pool_free(w->pool);
	if (w->loop)
		loop_free(w->loop);
}
