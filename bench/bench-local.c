/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-local: a thread of its own, so that its core and its CPU time are its own. */
#include "bench/bench-local.h"
#include "base/no-memory.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct local_run {
	const struct local_load *load;
	int fd, rc;
	uint8_t *data;
	struct weir_hist *latency;
	weir_time cpu;
};

static void *read_for_a_while(void *arg)
{
	struct local_run *run = arg;
	const struct local_load *l = run->load;
	weir_time now = loop_clock(), end = now + l->duration, cpu = bench_cpu_clock();
	struct rng rng;

	rng_init(&rng, 1, "local");
	while (now < end && run->rc == 0) {
		off_t at = (off_t)(rng_below(&rng, l->region / l->size) * l->size);
		weir_time began = now;

		if (pread(run->fd, run->data, l->size, at) != (ssize_t)l->size)
			run->rc = errno ? -errno : -EIO;
		now = loop_clock();
		weir_hist_record(run->latency, (uint64_t)(now - began));
	}
	run->cpu = bench_cpu_clock() - cpu;
	return NULL;
}

static int start_on(pthread_t *thread, int core, struct local_run *run)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	CPU_ZERO(&set);
	if (core >= 0) {
		CPU_SET(core, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	rc = pthread_create(thread, &attr, read_for_a_while, run);
	pthread_attr_destroy(&attr);
	return -rc;
}

int local_run(const struct local_load *l, struct weir_hist *ret_latency, weir_time *ret_cpu,
	struct weir_err *err)
{
	struct local_run run = {
		.load = l, .fd = open(l->path, O_RDONLY | O_CLOEXEC), .latency = ret_latency};
	pthread_t thread;
	int rc = run.fd < 0 ? -errno : 0;

	if (rc == 0 && !(run.data = malloc(l->size)))
		rc = -ENOMEM;
	weir_hist_clear(ret_latency);
	errno = 0;
	if (rc == 0)
		rc = start_on(&thread, l->core, &run);
	if (rc == 0) {
		pthread_join(thread, NULL);
		rc = run.rc;
		*ret_cpu = run.cpu;
	}
	if (run.fd >= 0)
		close(run.fd);
	free(run.data);
	return rc < 0 ? weir_err_set(err, rc, "%s: %s", l->path, strerror(-rc)) : 0;
}
