/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/no-memory.h"
#include "base/container.h"
#include "base/list.h"
#include "serve/lease/lease-hub.h"
#include "serve/loop/log.h"
#include "serve/loop/stream.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define GUESTS     16384           /* more servers than one controller can handle */
#define ACCEPT_MAX 64              /* per round: existing connections need their turn, too */
#define PAUSE      (100 * WEIR_MS) /* no descriptor or memory: retry after this time */
#define UNPROVEN   (60 * WEIR_SEC) /* longer than any period between two reports */
#define SAY_AGAIN  (60 * WEIR_SEC)

struct lease_hub_server {
	struct lease_hub_server *next, **link; /* oldest last */
	struct lease_hub *hub;
	struct lease_conn *conn;
	weir_time since;
	bool proven;
	void *user;
};

struct listener {
	struct loop_fd fd; /* first */
	struct lease_hub *hub;
	char *address;
};

struct lease_hub {
	struct lease_hub_config config;
	struct listener *listeners;
	size_t n_listeners;
	struct loop_timer sweep, again;
	struct lease_hub_server *servers;
	struct lease_message message;
	struct lease_hub_stats stats;
	weir_time said[PEER_VERDICTS];
};

/* ---- servers */

static void say(
	struct lease_hub *h, const struct lease_hub_server *g, enum peer_verdict v, const char *why)
{
	weir_time now = loop_clock();

	if (h->said[v] && now - h->said[v] < SAY_AGAIN)
		return;
	h->said[v] = now;
	log_event(LOG_LEVEL_WARNING, "server-refused", "from", lease_conn_peer(g->conn), "server",
		*lease_conn_name(g->conn) ? lease_conn_name(g->conn) : NULL, "why", why, NULL);
}

static void server_free(struct lease_hub_server *g)
{
	struct lease_hub *h = g->hub;

	h->stats.servers--;
	h->stats.proven -= g->proven;
	list_remove(g);
	lease_conn_free(g->conn);
	free(g);
}

static void over(void *arg, struct lease_conn *c, enum peer_verdict v, const char *why)
{
	struct lease_hub *h = arg;
	struct lease_hub_server *g = lease_conn_user(c);

	if (v != PEER_TAKEN) {
		h->stats.refused++;
		say(h, g, v, why);
	} else if (g->proven) {
		log_event(LOG_LEVEL_INFO, "server-lost", "server", lease_conn_name(c), "from",
			lease_conn_peer(c), "why", why, NULL);
	}
	if (g->proven)
		h->config.gone(h->config.arg, g);
	server_free(g);
}

static void receive(void *arg, struct lease_conn *c, struct lease_message *m)
{
	struct lease_hub *h = arg;
	struct lease_hub_server *g = lease_conn_user(c);

	if (!g->proven) {
		g->proven = true;
		h->stats.proven++;
	}
	h->config.receive(h->config.arg, g, m);
}

void lease_hub_drop(struct lease_hub_server *g, const char *why)
{
	struct lease_hub *h = g->hub;

	if (why) {
		h->stats.refused++;
		say(h, g, PEER_BROKEN, why);
	}
	server_free(g);
}

/* The one that has gone longest without a proof, or NULL. */
static struct lease_hub_server *oldest_unproven(struct lease_hub *h)
{
	struct lease_hub_server *found = NULL;

	for (struct lease_hub_server *g = h->servers; g; g = g->next)
		if (!g->proven)
			found = g;
	return found;
}

static void sweep(struct loop_timer *t, weir_time now)
{
	struct lease_hub *h = container_of(t, struct lease_hub, sweep);
	struct lease_hub_server *g, *next;

	for (g = h->servers; g; g = next) {
		next = g->next;
		if (!g->proven && now - g->since > UNPROVEN)
			lease_hub_drop(g, "it has not proven within a minute that it has the key");
	}
	loop_set(h->config.loop, t, now + UNPROVEN / 4);
}

/* ---- new connections */

static int admit(struct lease_hub *h, int fd)
{
	struct lease_hub_server *g = calloc(1, sizeof(*g));
	struct lease_conn_config config = {.loop = h->config.loop,
		.key = h->config.key,
		.side = LEASE_CONTROLLER,
		.fabric = h->config.fabric,
		.cluster = h->config.cluster,
		.instance = h->config.instance,
		.name = h->config.name,
		.entries = h->config.entries,
		.stats = &h->stats.conn,
		.message = &h->message,
		.receive = receive,
		.over = over,
		.arg = h,
		.user = g};
	int r;

	if (!g) {
		close(fd);
		return -ENOMEM;
	}
	r = lease_conn_new(&config, fd, &g->conn);
	if (r < 0) {
		free(g);
		return r;
	}
	g->hub = h;
	g->since = loop_clock();
	list_push(h->servers, g);
	h->stats.servers++;
	return 0;
}

static void take_connection(struct lease_hub *h, int fd)
{
	h->stats.accepted++;
	if (h->stats.servers >= h->config.most) {
		struct lease_hub_server *g = oldest_unproven(h);

		if (!g) {
			h->stats.refused++;
			log_event(LOG_LEVEL_ERROR, "server-refused", "why",
				"too many servers for one controller", NULL);
			close(fd);
			return;
		}
		lease_hub_drop(
			g, "replaced by another client before it had proven that it has the key");
	}
	if (admit(h, fd) < 0)
		h->stats.refused++;
}

static void listen_all(struct lease_hub *h, uint32_t events)
{
	for (size_t i = 0; i < h->n_listeners; i++)
		loop_change(h->config.loop, &h->listeners[i].fd, events);
}

static void again(struct loop_timer *t, weir_time now)
{
	listen_all(container_of(t, struct lease_hub, again), EPOLLIN);
}

static void ready(struct loop_fd *f, uint32_t events)
{
	struct lease_hub *h = ((struct listener *)(void *)f)->hub;

	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = stream_accept(f->fd);

		if (fd >= 0) {
			take_connection(h, fd);
		} else if (fd == -EAGAIN) {
			return;
		} else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			log_event(LOG_LEVEL_WARNING, "accept-paused", "why", strerror(-fd), NULL);
			listen_all(h, 0);
			loop_set(h->config.loop, &h->again, loop_clock() + PAUSE);
			return;
		}
	}
}

/* ---- from start to end */

static int open_listeners(struct lease_hub *h, struct weir_err *err)
{
	const struct lease_hub_config *c = &h->config;

	h->listeners = calloc(c->n_addresses, sizeof(*h->listeners));
	if (!h->listeners)
		return no_memory(err);
	for (size_t i = 0; i < c->n_addresses; i++) {
		struct listener *l = &h->listeners[i];
		int fd, r = stream_listen(c->addresses[i], &fd, err);

		if (r < 0)
			return r;
		*l = (struct listener){.fd = {.fd = fd, .ready = ready}, .hub = h};
		l->address = stream_listening(fd, c->addresses[i]);
		h->n_listeners++;
		r = l->address ? loop_add(c->loop, &l->fd, EPOLLIN) : -ENOMEM;
		if (r < 0)
			return weir_err_set(err, r, "%s: %s", c->addresses[i], strerror(-r));
	}
	return 0;
}

int lease_hub_new(
	const struct lease_hub_config *config, struct lease_hub **ret_hub, struct weir_err *err)
{
	struct lease_hub *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return no_memory(err);
	h->config = *config;
	lease_hub_allow(h, config->entries, config->most);
	h->sweep.due = sweep;
	h->again.due = again;
	r = loop_set(config->loop, &h->sweep, loop_clock() + UNPROVEN / 4);
	if (r < 0)
		weir_err_set(err, r, "out of memory");
	else
		r = open_listeners(h, err);
	if (r < 0) {
		lease_hub_free(h);
		return r;
	}
	*ret_hub = h;
	return 0;
}

void lease_hub_free(struct lease_hub *h)
{
	if (!h)
		return;
	loop_set(h->config.loop, &h->sweep, WEIR_NEVER);
	loop_set(h->config.loop, &h->again, WEIR_NEVER);
	while (h->servers)
		server_free(h->servers); /* NOLINT(clang-analyzer-unix.Malloc): it unlinks itself */
	for (size_t i = 0; i < h->n_listeners; i++) {
		struct listener *l = &h->listeners[i];

		loop_remove(h->config.loop, &l->fd);
		close(l->fd.fd);
		if (l->address && strncmp(l->address, "unix:/", 6) == 0)
			unlink(l->address + 5);
		free(l->address);
	}
	free(h->listeners);
	lease_message_free(&h->message);
	free(h);
}

void lease_hub_allow(struct lease_hub *h, size_t entries, size_t most)
{
	h->config.entries = entries;
	h->config.most = most ? most : GUESTS;
	for (struct lease_hub_server *g = h->servers; g; g = g->next)
		lease_conn_allow(g->conn, entries);
}

int lease_hub_send(struct lease_hub_server *g, uint8_t *frame, size_t n)
{
	return lease_conn_send(g->conn, frame, n);
}

int lease_hub_tell(struct lease_hub_server *g, struct lease_message *m)
{
	return lease_conn_tell(g->conn, m);
}

bool lease_hub_plans(const struct lease_hub_server *g)
{
	return lease_conn_plans(g->conn);
}

const char *lease_hub_peer(const struct lease_hub_server *g)
{
	return lease_conn_peer(g->conn);
}

void *lease_hub_user(const struct lease_hub_server *g)
{
	return g->user;
}

void lease_hub_set_user(struct lease_hub_server *g, void *user)
{
	g->user = user;
}

void lease_hub_stats(const struct lease_hub *h, struct lease_hub_stats *ret)
{
	*ret = h->stats;
}

const char *lease_hub_address(const struct lease_hub *h, size_t i)
{
	return i < h->n_listeners ? h->listeners[i].address : NULL;
}
