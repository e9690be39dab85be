/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "serve/loop/inherit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct noted {
	char *address; /* NULL: a file */
	int fd;
	dev_t dev;
	ino_t ino;
};

struct list {
	struct noted *all;
	size_t n, room;
};

static struct list own, received;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool keeps_names;

static bool is_open(const struct noted *n)
{
	struct stat st;

	return fstat(n->fd, &st) == 0 && st.st_dev == n->dev && st.st_ino == n->ino;
}

static void drop(struct list *l, size_t at)
{
	free(l->all[at].address);
	l->all[at] = l->all[--l->n];
}

static bool add(struct list *l, const char *address, int fd)
{
	struct noted n = {.address = address ? strdup(address) : NULL, .fd = fd};
	struct stat st;

	if (fstat(fd, &st) < 0 || (address && !n.address) ||
		array_grow(&l->all, &l->room, l->n + 1) < 0) {
		free(n.address);
		return false;
	}
	n.dev = st.st_dev;
	n.ino = st.st_ino;
	l->all[l->n++] = n;
	return true;
}

void inherit_note(const char *address, int fd)
{
	pthread_mutex_lock(&lock);
	/* Those that were closed go when the list would grow. */
	for (size_t i = own.n; own.n == own.room && i-- > 0;)
		if (!is_open(&own.all[i]))
			drop(&own, i);
	add(&own, address, fd);
	pthread_mutex_unlock(&lock);
}

void inherit_each(inherit_fn *fn, void *arg)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < own.n; i++)
		if (is_open(&own.all[i]))
			fn(arg, own.all[i].address, own.all[i].fd);
	pthread_mutex_unlock(&lock);
}

void inherit_put(const char *address, int fd)
{
	pthread_mutex_lock(&lock);
	if (!add(&received, address, fd))
		close(fd);
	pthread_mutex_unlock(&lock);
}

int inherit_take(const char *address)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; fd < 0 && i < received.n; i++)
		if (received.all[i].address && strcmp(received.all[i].address, address) == 0) {
			fd = received.all[i].fd;
			drop(&received, i);
		}
	pthread_mutex_unlock(&lock);
	return fd;
}

bool inherit_has(int fd)
{
	bool has = false;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; !has && i < received.n; i++)
		has = !received.all[i].address && received.all[i].dev == st.st_dev &&
		      received.all[i].ino == st.st_ino;
	pthread_mutex_unlock(&lock);
	return has;
}

void inherit_keep_names(bool keep)
{
	atomic_store(&keeps_names, keep);
}

bool inherit_keeps_names(void)
{
	return atomic_load(&keeps_names);
}

void inherit_end(void)
{
	pthread_mutex_lock(&lock);
	while (received.n) {
		close(received.all[received.n - 1].fd);
		drop(&received, received.n - 1);
	}
	free(received.all);
	received = (struct list){0};
	pthread_mutex_unlock(&lock);
}
