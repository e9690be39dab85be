/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/loop/dial.h"
#include "serve/loop/stream.h"
#include "serve/loop/threads.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct dial {
	struct loop_fd event; /* first; eventfd. The loop's, as the next four */
	struct loop *loop;
	dial_done *done;
	void *arg;

	pthread_mutex_t lock; /* of all below */
	int users;            /* 2: thread and loop */
	int fd, result;
	struct weir_err err;
	weir_time timeout;
	char address[];
};

static void let_go(struct dial *d)
{
	int left;

	pthread_mutex_lock(&d->lock);
	left = --d->users;
	pthread_mutex_unlock(&d->lock);
	if (left)
		return;
	if (d->fd >= 0)
		close(d->fd);
	close(d->event.fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* ---- the thread */

static void *connect_main(void *arg)
{
	struct dial *d = arg;
	struct weir_err err = {""};
	int fd = -1, r = stream_connect(d->address, d->timeout, &fd, &err);

	pthread_mutex_lock(&d->lock);
	d->result = r;
	d->fd = r ? -1 : fd;
	d->err = err;
	eventfd_write(d->event.fd, 1);
	pthread_mutex_unlock(&d->lock);
	let_go(d);
	return NULL;
}

static int start_thread(struct dial *d)
{
	pthread_t id;
	int r = threads_start(&id, NULL, connect_main, d);

	if (r == 0)
		pthread_detach(id);
	return r;
}

/* ---- the loop */

static void ready(struct loop_fd *f, uint32_t events)
{
	struct dial *d = container_of(f, struct dial, event);
	dial_done *done = d->done;
	void *arg = d->arg;
	struct weir_err err;
	int fd, r;

	pthread_mutex_lock(&d->lock);
	r = d->result;
	fd = d->fd;
	d->fd = -1;
	err = d->err;
	pthread_mutex_unlock(&d->lock);
	dial_drop(d);
	done(arg, r ? r : fd, &err);
}

void dial_drop(struct dial *d)
{
	if (!d)
		return;
	loop_remove(d->loop, &d->event);
	let_go(d);
}

int dial_start(struct loop *l, const char *address, weir_time timeout, dial_done *done, void *arg,
	struct dial **ret_dial)
{
	size_t n = strlen(address) + 1;
	struct dial *d = calloc(1, sizeof(*d) + n);
	int r;

	if (!d)
		return -ENOMEM;
	d->event = (struct loop_fd){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = ready};
	if (d->event.fd < 0) {
		r = -errno;
		free(d);
		return r;
	}
	pthread_mutex_init(&d->lock, NULL);
	memcpy(d->address, address, n);
	d->loop = l;
	d->done = done;
	d->arg = arg;
	d->timeout = timeout;
	d->fd = -1;
	d->users = 2;
	r = loop_add(l, &d->event, EPOLLIN);
	if (!r)
		r = start_thread(d);
	if (r) {
		loop_remove(l, &d->event);
		d->users = 1;
		let_go(d);
		return r;
	}
	*ret_dial = d;
	return 0;
}
