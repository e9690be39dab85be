/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file-hub: what all files of a loop share: a ring, threads, a watch for deletions. An idle file then costs a descriptor and
 * its own struct, not a ring and threads of its own.
 */
#include "serve/back/file.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 16 /* without io_uring: roughly the queue of a disk */
#define HELPERS 2  /* beside io_uring: for calls that it lacks, which are rare */

static struct file_hub *hubs;
static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;

static void hub_free(struct file_hub *h)
{
	file_ring_free(h);
	file_guard_free(h);
	threads_free(h->threads);
	if (h->vmstat >= 0)
		close(h->vmstat);
	free(h);
}

static int hub_new(struct loop *loop, bool threads_only, struct file_hub **ret)
{
	struct file_hub *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->loop = loop;
	h->threads_only = threads_only;
	h->jobs_end = &h->jobs;
	h->watch.fd = -1;
	h->vmstat = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	if (!threads_only)
		(void)file_ring_start(h);
	r = threads_new(loop, h->ring_up ? HELPERS : THREADS, &h->threads);
	if (r < 0) {
		hub_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

static struct file_hub *find(const struct loop *loop, bool threads_only)
{
	struct file_hub *h = hubs;

	while (h && (h->loop != loop || h->threads_only != threads_only))
		h = h->next;
	return h;
}

int file_hub_join(struct file *f)
{
	struct file_hub *h;
	int r = 0;

	pthread_mutex_lock(&hubs_lock);
	h = find(f->loop, f->threads_only);
	if (!h) {
		r = hub_new(f->loop, f->threads_only, &h);
		if (r == 0) {
			h->next = hubs;
			hubs = h;
		}
	}
	if (r == 0) {
		h->users++;
		f->hub = h;
	}
	pthread_mutex_unlock(&hubs_lock);
	return r;
}

void file_hub_leave(struct file *f)
{
	struct file_hub *h = f->hub, **at = &hubs;

	if (!h)
		return;
	pthread_mutex_lock(&hubs_lock);
	if (--h->users == 0) {
		while (*at != h)
			at = &(*at)->next;
		*at = h->next;
		hub_free(h);
	}
	pthread_mutex_unlock(&hubs_lock);
}
