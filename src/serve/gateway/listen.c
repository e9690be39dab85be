/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen: the sockets on which clients connect.
 *
 * Many are accepted per round, since a restart brings all clients back at once, but not so many
 * that handshakes in progress would wait. When the process has no descriptor left, a reserved one
 * is released to accept the client and close it: the client sees an end instead of silence, and the
 * loop does not spin on a socket that stays readable.
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPT_MAX 64                         /* a round and socket */
#define PAUSE_NS   (100 * (weir_time)1000000) /* no memory: retry after this time */

static int spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor is left: reject the oldest waiting client. 0, or a negative errno: none could be
 * accepted; -EAGAIN: none waits (the system looks for a descriptor before it looks for a
 * client). */
static int turn_away(struct gateway *g, int listener)
{
	int fd, error;

	if (g->spare_fd < 0)
		return -EMFILE;
	close(g->spare_fd);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	error = errno;
	if (fd >= 0)
		close(fd);
	g->spare_fd = spare_open();
	if (fd < 0)
		return -error;
	gateway_count(g, 0, 1, 0);
	log_event(LOG_LEVEL_ERROR, "client-refused", "why",
		"no file descriptor left; raise LimitNOFILE", NULL);
	return 0;
}

static void polled(struct gateway *g, bool yes)
{
	for (size_t i = 0; i < g->n_listeners; i++)
		loop_change(g->loop, &g->listeners[i].fd, yes ? EPOLLIN : 0);
}

static void again(struct loop_timer *t, weir_time now)
{
	struct gateway *g = container_of(t, struct gateway, accept_again);

	polled(g, true);
	if (g->spare_fd < 0)
		g->spare_fd = spare_open();
}

static void pause_all(struct gateway *g, int error)
{
	log_event(LOG_LEVEL_WARNING, "accept-paused", "why", strerror(error), NULL);
	polled(g, false);
	g->accept_again.due = again;
	loop_set(g->loop, &g->accept_again, loop_now(g->loop) + PAUSE_NS);
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct gateway_listener *l = container_of(f, struct gateway_listener, fd);
	struct gateway *g = l->gateway;

	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = stream_accept(f->fd), error = -fd;

		if (fd >= 0) {
			gateway_count(g, 1, 0, 0);
			front_accept(g->door, l->front, fd);
			continue;
		}
		if (error == EMFILE || error == ENFILE)
			error = -turn_away(g, f->fd);
		if (error == EAGAIN || error == EWOULDBLOCK)
			return;
		if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
			pause_all(g, error);
			return;
		}
		/* It was rejected; or it left while in the queue, or its network failed: accept(2),
		 * "Error handling". */
	}
}

/* ---- opening and closing */

static int listener_add(
	struct gateway *g, const struct front_ops *front, int fd, const char *address)
{
	struct gateway_listener *l = &g->listeners[g->n_listeners];
	struct stat st;
	int rc;

	*l = (struct gateway_listener){
		.fd = {.fd = fd, .ready = ready}, .gateway = g, .front = front};
	l->address = address ? stream_listening(fd, address) : strdup("systemd");
	rc = l->address ? loop_add(g->loop, &l->fd, EPOLLIN) : -ENOMEM;
	if (rc < 0) {
		free(l->address);
		close(fd);
		return rc;
	}
	if (address && strncmp(l->address, "unix:", 5) == 0 && stat(l->address + 5, &st) == 0) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	g->n_listeners++;
	return 0;
}

int gateway_listen(struct gateway *g, struct weir_err *err)
{
	const struct gateway_options *o = &g->options;
	const char *const *addresses = o->listen ? o->listen : g->policy->listen;
	size_t n = o->listen ? o->n_listen : g->policy->n_listen;
	int rc, fd;

	if (n + o->n_sockets == 0)
		return weir_err_set(err, -EINVAL,
			"no address to listen on: no 'listen' in %s, and no --listen", g->name);
	g->listeners = calloc(n + o->n_sockets, sizeof(*g->listeners));
	if (!g->listeners)
		return no_memory(err);
	for (size_t i = 0; i < n + o->n_sockets; i++) {
		const struct front_ops *front = gateway_fronts[0];
		const char *address = NULL;

		if (i < n) {
			rc = gateway_front(addresses[i], &front, &address, err);
			if (rc == 0)
				rc = stream_listen(address, &fd, err);
			if (rc < 0)
				return rc;
		} else {
			fd = o->sockets[i - n];
		}
		rc = listener_add(g, front, fd, address);
		if (rc < 0)
			return weir_err_set(err, rc, "%s: %s",
				address ? address : "systemd's socket", strerror(-rc));
	}
	g->spare_fd = spare_open();
	return 0;
}

void gateway_unlisten(struct gateway *g)
{
	for (size_t i = 0; i < g->n_listeners; i++) {
		struct gateway_listener *l = &g->listeners[i];
		const char *path = l->address + 5;
		struct stat st;

		/* Another gateway may have taken over the name in the meantime. */
		if (l->ino && stat(path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
			unlink(path);
		loop_remove(g->loop, &l->fd);
		close(l->fd.fd);
		free(l->address);
	}
	free(g->listeners);
	g->listeners = NULL;
	g->n_listeners = 0;
	if (g->accept_again.due)
		loop_set(g->loop, &g->accept_again, WEIR_NEVER);
	if (g->spare_fd >= 0)
		close(g->spare_fd);
	g->spare_fd = -1;
}
