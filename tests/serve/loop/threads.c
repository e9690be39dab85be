/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sanitize.h"
#include "serve/loop/threads.h"
#include "test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#define N 1000

struct job {
	struct threads_job job;
	pthread_t worker;
	bool worked, finished;
};
static struct job jobs[N];
static struct loop *loop;
static unsigned n_finished, n_wanted;
static atomic_uint inside, most_inside;
static pthread_t here;
static pthread_barrier_t all_in;

static void work(struct threads_job *j)
{
	struct job *job = (struct job *)j;

	CHECK(!job->worked);
	job->worked = true;
	job->worker = pthread_self();
}

static void finish(struct loop_task *t)
{
	struct job *job = (struct job *)t;

	CHECK(pthread_equal(pthread_self(), here)); /* on the loop's thread */
	CHECK(job->worked && !job->finished);
	job->finished = true;
	if (++n_finished == n_wanted)
		loop_stop(loop);
}

static struct threads_job *list(unsigned from, unsigned n, void (*what)(struct threads_job *))
{
	for (unsigned i = from; i < from + n; i++)
		jobs[i] = (struct job){.job = {.done.run = finish,
					       .work = what,
					       .next = i + 1 < from + n ? &jobs[i + 1].job : NULL}};
	return &jobs[from].job;
}

static void wait_for(unsigned n)
{
	n_wanted = n;
	if (n_finished < n)
		CHECK_INT(loop_run(loop), 0);
	CHECK_INT(n_finished, n);
}

static void test_every_job_once(void)
{
	struct threads *t;

	CHECK_INT(threads_new(loop, 4, &t), 0);
	n_finished = 0;
	threads_add(t, list(0, 1, work));
	wait_for(1);
	CHECK(!pthread_equal(jobs[0].worker, here));
	for (unsigned i = 1; i < N; i += 111)
		threads_add(t, list(i, 111, work));
	wait_for(N);
	threads_free(t);
}

/* Each waits until all four are inside at once. */
static void meet(struct threads_job *j)
{
	unsigned now = atomic_fetch_add(&inside, 1) + 1;

	if (now > atomic_load(&most_inside))
		atomic_store(&most_inside, now);
	pthread_barrier_wait(&all_in);
	atomic_fetch_sub(&inside, 1);
	work(j);
}

static void test_at_once_but_no_more(void)
{
	struct threads *t;

	CHECK_INT(threads_new(loop, 4, &t), 0);
	pthread_barrier_init(&all_in, NULL, 4);
	n_finished = 0;
	threads_add(t, list(0, 40, meet));
	wait_for(40);
	CHECK(atomic_load(&most_inside) <= 4);
	pthread_barrier_destroy(&all_in);
	threads_free(t);
}

static void test_unused(void)
{
	struct threads *t;

	CHECK_INT(threads_new(loop, 4, &t), 0);
	threads_free(t);
	threads_free(NULL);
}

/* The system has no thread: the caller does the work, and is still notified by the loop. */
static void test_no_thread_to_be_had(void)
{
	struct rlimit before, none;
	struct threads *t;

#if SANITIZE_ADDRESS
	printf("# not under AddressSanitizer, which needs memory to say that there is none\n");
	return;
#endif
	/* No room for a stack makes pthread_create fail, for any user. */
	CHECK_INT(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 1;
	CHECK_INT(threads_new(loop, 2, &t), 0);
	if (setrlimit(RLIMIT_AS, &none) < 0)
		FAIL("setrlimit");
	n_finished = 0;
	threads_add(t, list(0, 3, work));
	CHECK_INT(setrlimit(RLIMIT_AS, &before), 0);
	CHECK_INT(n_finished, 0);
	wait_for(3);
	CHECK(pthread_equal(jobs[2].worker, here));
	threads_add(t, list(3, 3, work)); /* later there is one */
	wait_for(6);
	CHECK(!pthread_equal(jobs[5].worker, here));
	threads_free(t);
}

int main(void)
{
	here = pthread_self();
	CHECK_INT(loop_new(&loop), 0);
	RUN(test_no_thread_to_be_had); /* first: later glibc has stacks to reuse */
	RUN(test_every_job_once);
	RUN(test_at_once_but_no_more);
	RUN(test_unused);
	loop_free(loop);
	return 0;
}
