/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: libmicrohttpd inside the loop.
 *
 * METHOD   Connections are accepted here and handed over (MHD_add_connection), so that one daemon
 *          serves any number of listeners and the address and user of each connection are known. There is a second
 *          daemon for TLS. The daemons' epoll fds are in the loop; their timeouts are one timer.
 * LIMITS   CONNECTIONS connections, of which at most half by TCP, so that no remote client can lock
 *          out the administrator. A new connection replaces the oldest one that has not sent the
 *          token, or the one idle for longest: an unauthenticated client that holds all connections
 *          locks out none. A connection that is silent for SILENT seconds, or has not finished a
 *          request in REQUEST, is closed: a byte per second does not hold it forever. So is one
 *          that reads nothing of a long reply for STUCK while others wait for their replies.
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "base/list.h"
#include "serve/http/impl.h"
#include "serve/loop/log.h"
#include "serve/loop/stream.h"
#include "wire/address.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTIONS 64
#define SILENT      30 /* s */
#define REQUEST     (60 * WEIR_SEC)
#define STUCK       (2 * WEIR_SEC) /* if one waits: long enough for a busy client. Divided if more do */

struct listener {
	struct loop_fd fd;
	struct http *http;
	bool tcp;
	char path[HTTP_SOCKET_MAX]; /* of the file to remove; "": not created here */
	dev_t dev;                  /* … if it is still the same file */
	ino_t ino;
};

/* ---- the default socket */

static void make_address(char ret[HTTP_SOCKET_MAX], const char *folder, const char *name)
{
	snprintf(ret, HTTP_SOCKET_MAX, "unix:%s%s", folder, name);
}

int http_socket(bool listen, char ret_address[HTTP_SOCKET_MAX])
{
	const char *told = getenv("WEIR_SOCKET"), *own = getenv("XDG_RUNTIME_DIR");
	const char *all = "/run/weir";
	bool at_all;

	if (told && *told) { /* a path, or an address */
		make_address(ret_address, strncmp(told, "unix:", 5) == 0 ? told + 5 : told, "");
		return 0;
	}
	if (own && !*own)
		own = NULL;
	if (listen)
		mkdir(all, 0755);
	at_all = listen ? access(all, W_OK) == 0 : access("/run/weir/api.sock", F_OK) == 0;
	if (at_all || (!own && !listen))
		make_address(ret_address, all, "/api.sock");
	else if (own)
		make_address(ret_address, own, "/weir-api.sock");
	else
		return -ENOENT;
	return 0;
}

/* ---- connections */

static void connection_link(struct connection **list, struct connection *k)
{
	list_push(*list, k);
}

static void connection_unlink(struct connection *k)
{
	list_remove(k);
}

static void connection_free(struct connection *k)
{
	connection_unlink(k);
	k->http->n_connections -= !k->evicted;
	k->http->n_tcp -= k->tcp && !k->evicted;
	http_secure_end(k);
	free(k);
}

static void on_notify(void *arg, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	struct http *h = arg;
	const union MHD_ConnectionInfo *info;
	struct connection *k;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			connection_free(*context);
		*context = NULL;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (k = h->accepted; k; k = k->next)
		if (info && k->fd == info->connect_fd) {
			connection_unlink(k);
			connection_link(&h->connections, k);
			*context = k;
			http_secure_begin(k, c);
			return;
		}
}

/* Return how long a client of a long reply may read nothing. */
static weir_time patience(const struct http *h)
{
	unsigned n = h->crowd ? atomic_load_explicit(h->crowd, memory_order_relaxed) : 0;

	return n ? 2 * STUCK / (n + 1) : WEIR_NEVER;
}

/* Run a daemon; return when it is to run again. */
static weir_time run_one(struct http *h, struct MHD_Daemon *d)
{
	MHD_UNSIGNED_LONG_LONG wait; /* ms */

	if (d)
		MHD_run(d);
	if (!d || MHD_get_timeout(d, &wait) != MHD_YES)
		return WEIR_NEVER;
	return loop_now(h->loop) + (weir_time)(wait < 1000 ? wait : 1000) * WEIR_MS;
}

static void run_daemons(struct http *h)
{
	weir_time at = run_one(h, h->plain.mhd), other = run_one(h, h->secure.mhd);

	at = other < at ? other : at;
	if (patience(h) < WEIR_SEC && at > loop_now(h->loop) + patience(h))
		at = loop_now(h->loop) + patience(h);
	if (h->paused && at > loop_now(h->loop) + WEIR_SEC)
		at = loop_now(h->loop) + WEIR_SEC;
	loop_set(h->loop, &h->timer, at);
}

/* A listener that stays ready but cannot accept would keep the loop busy. */
static void pause_accept(struct http *h, bool pause)
{
	h->paused = pause;
	for (size_t i = 0; i < h->n_listeners; i++)
		loop_change(h->loop, &h->listeners[i].fd, pause ? 0 : EPOLLIN);
}

/* Return true if a is to be evicted before b. */
static bool is_evicted_first(const struct connection *a, const struct connection *b)
{
	if (a->proven != b->proven)
		return !a->proven;
	return a->since < b->since;
}

/* Evict a connection by TCP, or any. Return false if all are in use. */
static bool evict_one(struct http *h, bool tcp)
{
	struct connection *victim = NULL;

	for (struct connection *k = h->connections; k; k = k->next)
		if (!k->evicted && (k->tcp || !tcp) && !(k->proven && k->busy) &&
			(!victim || is_evicted_first(k, victim)))
			victim = k;
	if (!victim)
		return false;
	victim->evicted = true;
	h->n_connections--;
	h->n_tcp -= victim->tcp;
	shutdown(victim->fd, SHUT_RDWR); /* the daemon detects the end and closes it */
	return true;
}

static bool make_room(struct http *h, bool tcp)
{
	if (tcp && h->n_tcp >= CONNECTIONS / 2)
		return evict_one(h, true);
	return h->n_connections < CONNECTIONS || evict_one(h, false);
}

/* A handshake of TLS is paid for here, before anything is proven; other connections with their first request. */
static bool may_come(struct listener *l, const struct sockaddr_storage *from, bool secure)
{
	struct http *h = l->http;

	if (secure && !throttle_take(h->throttle, (const struct sockaddr *)from, loop_now(h->loop)))
		return false;
	return make_room(h, l->tcp);
}

static void hand_over(struct listener *l, int fd)
{
	struct http *h = l->http;
	bool secure = l->tcp && h->secure.mhd;
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);
	struct connection *k;

	if (getpeername(fd, (struct sockaddr *)&at, &len) < 0)
		len = sizeof(at);
	if (!may_come(l, &at, secure) || !(k = calloc(1, sizeof(*k)))) {
		close(fd);
		return;
	}
	*k = (struct connection){.http = h,
		.fd = fd,
		.tcp = l->tcp,
		.proven = !l->tcp,
		.since = loop_now(h->loop),
		.from = at,
		.owed = secure,
		.paid = secure};
	if (!l->tcp)
		access_unix(h->access, fd, &k->who);
	connection_link(&h->accepted, k);
	h->n_connections++;
	h->n_tcp += k->tcp;
	/* On failure MHD has closed the socket; it may also have announced and ended the
	 * connection. */
	if (MHD_add_connection(secure ? h->secure.mhd : h->plain.mhd, fd, (struct sockaddr *)&at,
		    len) != MHD_YES)
		for (struct connection *a = h->accepted; a; a = a->next)
			if (a == k) {
				connection_free(k);
				break;
			}
}

static void accept_ready(struct loop_fd *f, uint32_t events)
{
	struct listener *l = container_of(f, struct listener, fd);
	int fd = stream_accept(f->fd); /* one per round: others wait in the backlog */

	if (fd >= 0)
		hand_over(l, fd);
	else if (fd != -EAGAIN)
		pause_accept(l->http, true);
	run_daemons(l->http);
}

void http_run_soon(struct http *h)
{
	loop_set(h->loop, &h->timer, loop_now(h->loop));
}

static void daemon_ready(struct loop_fd *f, uint32_t events)
{
	run_daemons(container_of(f, struct http_daemon, fd)->http);
}

static bool is_stuck(const struct connection *k, weir_time now)
{
	return k->busy && k->streams && now - k->took > patience(k->http);
}

static void timer_due(struct loop_timer *t, weir_time now)
{
	struct http *h = container_of(t, struct http, timer);

	/* The daemon detects the end of a connection that is shut down, and closes it. */
	for (struct connection *k = h->connections; k; k = k->next)
		if (now - k->since > REQUEST || is_stuck(k, now))
			shutdown(k->fd, SHUT_RDWR);
	if (h->paused)
		pause_accept(h, false);
	run_daemons(h);
}

/* ---- start and end */

static void log_daemon(void *arg, const char *form, va_list args)
{
	char text[200];

	vsnprintf(text, sizeof(text), form, args);
	text[strcspn(text, "\r\n")] = 0;
	log_event(LOG_LEVEL_DEBUG, "http", "text", text, NULL);
}

/* A NUL must not cut a name in the path: it becomes another control character, which no name has. (http_query sees to that in a
 * query.) */
static size_t unescape(void *arg, struct MHD_Connection *c, char *text)
{
	for (char *at = text; strncmp(text, "/v1/", 4) == 0 && (at = strstr(at, "%00")); at += 3)
		at[2] = '1';
	return MHD_http_unescape(text);
}

#define FLAGS                                                                                      \
	(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME)
/* Twice as many connections: evicted ones go soon. */
#define OPTIONS(h)                                                                                 \
	MHD_OPTION_EXTERNAL_LOGGER, log_daemon, NULL, MHD_OPTION_UNESCAPE_CALLBACK, unescape,      \
		NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(2 * CONNECTIONS),                    \
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT, MHD_OPTION_NOTIFY_COMPLETED,      \
		http_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_notify, h

static int start_daemon(struct http *h, struct http_daemon *d, bool secure)
{
	const union MHD_DaemonInfo *info;

	d->http = h;
	if (secure)
		d->mhd = MHD_start_daemon(FLAGS | MHD_USE_TLS, 0, NULL, NULL, http_handle, h,
			OPTIONS(h), MHD_OPTION_HTTPS_CERT_CALLBACK, http_secure_cert,
			MHD_OPTION_END);
	else
		d->mhd = MHD_start_daemon(
			FLAGS, 0, NULL, NULL, http_handle, h, OPTIONS(h), MHD_OPTION_END);
	if (!d->mhd)
		return -ENOMEM;
	info = MHD_get_daemon_info(d->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -ENOSYS;
	d->fd = (struct loop_fd){.fd = info->epoll_fd, .ready = daemon_ready};
	return loop_add(h->loop, &d->fd, EPOLLIN);
}

static bool is_tcp(int fd)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &len) < 0 || at.ss_family != AF_UNIX;
}

/* Return true if another machine can reach the socket. */
static bool is_reached(int fd)
{
	struct sockaddr_storage at = {0};
	const struct sockaddr_in *four = (const void *)&at;
	const struct sockaddr_in6 *six = (const void *)&at;
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return true;
	if (at.ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
	if (at.ss_family == AF_INET6)
		return !IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	return at.ss_family != AF_UNIX;
}

#define NEEDS_TLS                                                                                  \
	"an API on TCP beyond this machine needs TLS: access: {tls: {cert: FILE, key: FILE}} in "  \
	"the policy"

int http_reach_check(const char *address, bool tls, struct weir_err *err)
{
	struct address a;
	int r = address_parse(address, &a, err);

	return r < 0 || tls || address_is_local(&a)
		       ? r
		       : weir_err_set(err, -EINVAL, "%s: " NEEDS_TLS, address);
}

static int add_listener(struct http *h, int fd, const char *path)
{
	struct listener *l = &h->listeners[h->n_listeners];
	struct stat st;

	*l = (struct listener){.fd = {.fd = fd, .ready = accept_ready}, .http = h};
	l->tcp = is_tcp(fd);
	if (path && stat(path, &st) == 0) {
		snprintf(l->path, sizeof(l->path), "%s", path);
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	h->n_listeners++;
	return loop_add(h->loop, &l->fd, EPOLLIN);
}

static int open_address(struct http *h, const char *address, mode_t mode, struct weir_err *err)
{
	struct address a;
	const char *path = a.path;
	int fd, r = address_parse(address, &a, err);
	bool file = r == 0 && a.is_unix && a.path[0] != '@';
	mode_t mask = umask(0177); /* private until the mode is set, without a window in between */

	if (r == 0)
		r = stream_listen(address, &fd, err);
	umask(mask);
	if (r != 0)
		return r;
	if (file && a.mode < 0 && chmod(path, mode ? mode : 0660) < 0) {
		r = weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
		close(fd);
		unlink(path);
		return r;
	}
	r = add_listener(h, fd, file ? path : NULL);
	if (r == 0 && !access_has_tls(h->access) && is_reached(fd))
		return weir_err_set(err, -EINVAL, "%s: " NEEDS_TLS, address);
	return r < 0 ? weir_err_set(err, r, "%s: %s", address, strerror(-r)) : 0;
}

/* Require tokens or certificates for TCP, which any host could reach. */
static int check_tcp(struct http *h, const struct http_config *c, struct weir_err *err)
{
	bool tcp = false;

	for (size_t i = 0; i < c->n_addresses; i++)
		tcp |= strncmp(c->addresses[i], "unix:", 5) != 0;
	for (size_t i = 0; i < c->n_sockets; i++)
		tcp |= is_tcp(c->sockets[i]);
	return tcp && !access_takes_tcp(h->access)
		       ? weir_err_set(err, -EINVAL, "an API on TCP needs a token")
		       : 0;
}

static int open_listeners(struct http *h, const struct http_config *c, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_addresses; i++)
		r = open_address(h, c->addresses[i], c->mode, err);
	for (size_t i = 0; r == 0 && i < c->n_sockets; i++) {
		r = add_listener(h, c->sockets[i], NULL);
		if (r < 0)
			weir_err_set(err, r, "API socket: %s", strerror(-r));
		else if (!access_has_tls(h->access) && is_reached(c->sockets[i]))
			r = weir_err_set(err, -EINVAL, "API socket: " NEEDS_TLS);
	}
	return r;
}

static int open_all(struct http *h, const struct http_config *c, struct weir_err *err)
{
	const struct policy_access *p = c->access.policy;
	size_t n = c->n_addresses + c->n_sockets;
	int r = access_new(&c->access, &h->access, err);

	if (r == 0)
		r = audit_open(p ? p->audit : NULL, &h->audit, err);
	if (r == 0)
		r = check_tcp(h, c, err);
	if (r < 0)
		return r;
	h->listeners = calloc(n ? n : 1, sizeof(*h->listeners));
	h->throttle = throttle_new();
	if (!h->listeners || !h->throttle)
		return no_memory(err);
	r = start_daemon(h, &h->plain, false);
	if (r == 0 && access_has_tls(h->access))
		r = start_daemon(h, &h->secure, true);
	if (r < 0)
		return weir_err_set(err, r, "cannot start libmicrohttpd");
	return open_listeners(h, c, err);
}

int http_new(
	struct loop *l, const struct http_config *c, struct http **ret_http, struct weir_err *err)
{
	struct http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return no_memory(err);
	h->loop = l;
	h->handler = c->handler;
	h->arg = c->arg;
	h->routes = c->routes;
	h->timer.due = timer_due;
	h->crowd = c->crowd;
	h->files = c->files;
	h->n_files = c->n_files;
	r = open_all(h, c, err);
	if (r < 0) {
		http_free(h);
		return r;
	}
	*ret_http = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_listeners; i++) {
		struct listener *l = &h->listeners[i];

		loop_remove(h->loop, &l->fd);
		close(l->fd.fd);
		if (l->path[0])
			stream_unlink(l->path, l->dev, l->ino);
	}
	if (h->plain.fd.ready)
		loop_remove(h->loop, &h->plain.fd);
	if (h->secure.fd.ready)
		loop_remove(h->loop, &h->secure.fd);
	loop_set(h->loop, &h->timer, WEIR_NEVER);
	http_drop_laters(h);
	if (h->plain.mhd)
		MHD_stop_daemon(h->plain.mhd);
	if (h->secure.mhd)
		MHD_stop_daemon(h->secure.mhd);
	for (struct connection *c = h->accepted, *after; c; c = after) {
		after = c->next;
		connection_free(c); /* handed over but never announced */
	}
	access_free(h->access);
	audit_close(h->audit);
	throttle_free(h->throttle);
	free(h->listeners);
	free(h);
}
