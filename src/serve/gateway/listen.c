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
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPT_MAX 64 /* a round and socket */
#define RESERVED   96 /* descriptors that no client gets; at most a quarter */
#define PAUSE_NS   (100 * (weir_time)1000000) /* no memory: retry after this time */

static int spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void refuse_client(struct gateway *g)
{
	gateway_count(g, 0, 1, 0);
	log_event(LOG_LEVEL_ERROR, "client-refused", "why",
		"no file descriptor left; raise LimitNOFILE", NULL);
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
	refuse_client(g);
	return 0;
}

static void polled(struct gateway *g, bool yes)
{
	for (size_t i = 0; i < g->n_listeners; i++)
		loop_change(g->loop, &g->listeners[i]->fd, yes ? EPOLLIN : 0);
}

void gateway_accept(struct gateway *g, bool yes)
{
	polled(g, yes);
	if (!yes && g->accept_again.due)
		loop_set(g->loop, &g->accept_again, WEIR_NEVER);
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

/* Return true if the descriptor is one of those kept for the API, the state and upstreams: without them not even `weir bypass`
 * would work. The system gives out the lowest number that is free. */
static bool is_reserved(int fd)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
		return false;
	return (rlim_t)fd >=
	       files.rlim_cur - (files.rlim_cur / 4 < RESERVED ? files.rlim_cur / 4 : RESERVED);
}

/* Replace a reserved descriptor by that of the oldest handshake, which ends. Return the descriptor, or -1: it is closed. */
static int unreserve(struct gateway *g, int fd)
{
	int low = front_door_evict(g->door) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	close(fd);
	return low;
}

static void take_client(struct gateway_listener *l, int fd)
{
	struct gateway *g = l->gateway;

	if (is_reserved(fd))
		fd = unreserve(g, fd);
	if (fd < 0) {
		refuse_client(g);
		return;
	}
	gateway_count(g, 1, 0, 0);
	front_accept(g->door, l->front, fd);
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct gateway_listener *l = container_of(f, struct gateway_listener, fd);
	struct gateway *g = l->gateway;

	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = stream_accept(f->fd), error = -fd;

		if (fd >= 0) {
			take_client(l, fd);
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

/* Close a listener, which may be in the loop or not. */
static void listener_free(struct gateway_listener *l)
{
	const char *path = l->address ? l->address + 5 : NULL;

	/* Another gateway may have taken over the name in the meantime. */
	if (path && l->ino)
		stream_unlink(path, l->dev, l->ino);
	if (l->entered)
		loop_remove(l->gateway->loop, &l->fd);
	if (l->fd.fd >= 0)
		close(l->fd.fd);
	free(l->address);
	free(l->text);
	free(l);
}

/* text: as the policy has it; NULL: `fd` is systemd's. */
static int listener_new(struct gateway *g, const char *text, int fd, struct gateway_listener **ret,
	struct weir_err *err)
{
	struct gateway_listener *l = calloc(1, sizeof(*l));
	const char *address = NULL;
	struct stat st;
	int rc = 0;

	if (!l)
		return no_memory(err);
	*l = (struct gateway_listener){
		.fd = {.fd = fd, .ready = ready}, .gateway = g, .front = gateway_fronts[0]};
	if (text)
		rc = gateway_front(text, &l->front, &address, err);
	if (text && rc == 0)
		rc = stream_listen(address, &l->fd.fd, err);
	l->text = text ? strdup(text) : NULL;
	if (rc == 0)
		l->address = text ? stream_listening(l->fd.fd, address) : strdup("systemd");
	if (rc == 0 && (!l->address || (text && !l->text)))
		rc = no_memory(err);
	if (rc < 0) {
		listener_free(l);
		return rc;
	}
	if (text && strncmp(l->address, "unix:", 5) == 0 && stat(l->address + 5, &st) == 0) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	*ret = l;
	return 0;
}

static struct gateway_listener *listener_at(const struct gateway *g, const char *text)
{
	for (size_t i = 0; i < g->n_listeners; i++)
		if (g->listeners[i]->text && strcmp(g->listeners[i]->text, text) == 0)
			return g->listeners[i];
	return NULL;
}

void gateway_listeners_free(struct gateway_listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		listener_free(l->all[i]);
	free(l->all);
	*l = (struct gateway_listeners){0};
}

static size_t n_addresses(const struct gateway *g, const struct weir_policy *p)
{
	return g->options.listen ? g->options.n_listen : p->n_listen;
}

static const char *address_at(const struct gateway *g, const struct weir_policy *p, size_t i)
{
	return g->options.listen ? g->options.listen[i] : p->listen[i];
}

int gateway_listeners_open(struct gateway *g, const struct weir_policy *p,
	struct gateway_listeners *ret, struct weir_err *err)
{
	const struct gateway_options *o = &g->options;
	size_t n = n_addresses(g, p), sockets = g->n_listeners ? 0 : o->n_sockets;
	struct gateway_listeners l = {
		.all = calloc(n + sockets + g->n_listeners + 1, sizeof(*l.all))};
	int rc = l.all ? 0 : no_memory(err);

	if (rc == 0 && n + o->n_sockets == 0)
		rc = weir_err_set(err, -EINVAL,
			"no address to listen on: no 'listen' in %s, and no --listen", g->name);
	for (size_t i = 0; rc == 0 && i < n + sockets; i++) {
		const char *text = i < n ? address_at(g, p, i) : NULL;

		if (text && listener_at(g, text))
			continue;
		rc = listener_new(g, text, text ? -1 : o->sockets[i - n], &l.all[l.n], err);
		l.n += rc == 0;
	}
	if (rc < 0)
		gateway_listeners_free(&l);
	else
		*ret = l;
	return rc;
}

static bool stays(const struct gateway *g, const struct gateway_listener *l)
{
	bool found = !l->text;

	for (size_t i = 0; !found && i < n_addresses(g, g->policy); i++)
		found = strcmp(address_at(g, g->policy, i), l->text) == 0;
	return found;
}

int gateway_listeners_enter(struct gateway *g, struct gateway_listeners *l)
{
	for (size_t i = 0; i < l->n; i++) {
		int rc = loop_add(g->loop, &l->all[i]->fd, EPOLLIN);

		if (rc < 0)
			return rc;
		l->all[i]->entered = true;
		if (g->n_listeners)
			log_event(LOG_LEVEL_INFO, "listens", "address", l->all[i]->address, NULL);
	}
	for (size_t i = 0; i < g->n_listeners; i++) {
		struct gateway_listener *old = g->listeners[i];

		if (stays(g, old)) {
			l->all[l->n++] = old;
			continue;
		}
		log_event(LOG_LEVEL_INFO, "listens-no-more", "address", old->address, NULL);
		listener_free(old);
	}
	free(g->listeners);
	g->listeners = l->all;
	g->n_listeners = l->n;
	*l = (struct gateway_listeners){0};
	return 0;
}

int gateway_listen(struct gateway *g, struct weir_err *err)
{
	struct gateway_listeners l = {0};
	int rc = gateway_listeners_open(g, g->policy, &l, err);

	if (rc == 0) {
		rc = gateway_listeners_enter(g, &l);
		if (rc < 0)
			weir_err_set(err, rc, "cannot listen: %s", strerror(-rc));
	}
	gateway_listeners_free(&l);
	g->spare_fd = spare_open();
	return rc;
}

void gateway_unlisten(struct gateway *g)
{
	for (size_t i = 0; i < g->n_listeners; i++)
		listener_free(g->listeners[i]);
	free(g->listeners);
	g->listeners = NULL;
	g->n_listeners = 0;
	if (g->accept_again.due)
		loop_set(g->loop, &g->accept_again, WEIR_NEVER);
	if (g->spare_fd >= 0)
		close(g->spare_fd);
	g->spare_fd = -1;
}
