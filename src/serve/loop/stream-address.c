/* SPDX-License-Identifier: BSD-3-Clause */
/* stream-address: create sockets from "unix:/run/x.sock" and "tcp:host:port", and names from
 * sockets. */
#include "serve/loop/inherit.h"
#include "serve/loop/stream.h"
#include <weir/clock.h>
#include "wire/address.h"
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 1024 /* for a whole rack that reconnects at once; the system limits it */

struct un { /* a unix socket's address */
	struct sockaddr_un at;
	socklen_t len;
};
static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == ADDRESS_PATH, "paths fit");

static struct un un_of(const struct address *a)
{
	struct un un = {{.sun_family = AF_UNIX}, 0};
	size_t n = strlen(a->path);

	memcpy(un.at.sun_path, a->path, n + 1);
	un.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	if (a->path[0] == '@') { /* Linux's abstract names */
		un.at.sun_path[0] = 0;
		un.len--;
	}
	return un;
}

int stream_address_check(const char *address, struct weir_err *err)
{
	struct address a;

	return address_parse(address, &a, err);
}

static int resolve(const char *address, const struct address *a, bool passive,
	struct addrinfo **ret_list, struct weir_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
	const char *host = a->host[0] ? a->host : NULL;
	int r = getaddrinfo(host, a->port, &hints, ret_list);

	if (r == 0)
		return 0;
	if (r == EAI_SYSTEM)
		return weir_err_set(err, -errno, "%s: %s", address, strerror(errno));
	return weir_err_set(
		err, r == EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH, "%s: %s", address, gai_strerror(r));
}

static int new_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- listen */

/* Return true for a stale file of a dead program: a socket that refuses connections. */
static bool is_stale(const struct un *un)
{
	struct stat st;
	bool dead;
	int fd;

	if (!un->at.sun_path[0] || lstat(un->at.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = new_socket(AF_UNIX);
	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)&un->at, un->len) < 0 && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static int listen_at(int fd, const struct sockaddr *at, socklen_t len)
{
	return bind(fd, at, len) < 0 || listen(fd, BACKLOG) < 0 ? -errno : 0;
}

/* Look up a group by name or number. */
static int find_group(const char *name, gid_t *ret)
{
	char text[4096], *end;
	struct group g, *found = NULL;
	unsigned long id = strtoul(name, &end, 10);

	if (*name && !*end && id < UINT32_MAX) {
		*ret = (gid_t)id;
		return 0;
	}
	getgrnam_r(name, &g, text, sizeof(text), &found);
	if (!found)
		return -ENOENT;
	*ret = found->gr_gid;
	return 0;
}

/* Set the group before the mode, so that the mode never applies to another group. */
static int set_owner(const struct address *a)
{
	gid_t group;

	if (a->group[0] && find_group(a->group, &group) < 0)
		return -EINVAL;
	if (a->group[0] && chown(a->path, (uid_t)-1, group) < 0)
		return -errno;
	return a->mode >= 0 && chmod(a->path, (mode_t)a->mode) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const struct address *a, const struct un *un)
{
	int r;

	/* The socket's file gets the mode of the socket: private until mode and group are set. */
	if ((a->mode >= 0 || a->group[0]) && fchmod(fd, 0600) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&un->at, un->len) < 0)
		return -errno;
	r = set_owner(a);
	if (r == 0 && a->mode < 0 && a->group[0] && chmod(a->path, 0660) < 0)
		r = -errno;
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0 && un->at.sun_path[0])
		unlink(a->path);
	return r;
}

static int listen_unix(const struct address *a, int *ret_fd)
{
	struct un un = un_of(a);
	int fd = new_socket(AF_UNIX), r;

	if (fd < 0)
		return -errno;
	r = bind_unix(fd, a, &un);
	if (r == -EADDRINUSE && is_stale(&un) && unlink(un.at.sun_path) == 0)
		r = bind_unix(fd, a, &un);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

int stream_listen_check(const char *address, struct weir_err *err)
{
	struct address a;
	gid_t ignored;
	int r = address_parse(address, &a, err);

	if (r == 0 && a.group[0] && find_group(a.group, &ignored) < 0)
		r = weir_err_set(err, -EINVAL, "%s: no such group: '%s'", address, a.group);
	return r;
}

static int listen_tcp_at(const struct addrinfo *i, int *ret_fd)
{
	int fd = new_socket(i->ai_family), on = 1, off = 0, r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (i->ai_family == AF_INET6) /* "every address" means both families */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	r = listen_at(fd, i->ai_addr, i->ai_addrlen);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int listen_tcp(
	const char *address, const struct address *a, int *ret_fd, struct weir_err *err)
{
	/* Every address: IPv6 includes IPv4. For a name with both families prefer IPv4: clients
	 * that try both find it, and clients with only IPv4, too. */
	int first = a->host[0] ? AF_INET : AF_INET6, second = a->host[0] ? AF_INET6 : AF_INET;
	struct addrinfo *list, *i;
	int r = resolve(address, a, true, &list, err);

	if (r < 0)
		return r;
	r = -EADDRNOTAVAIL;
	for (int turn = 0; turn < 2; turn++)
		for (i = list; i && r < 0; i = i->ai_next)
			if (i->ai_family == (turn ? second : first))
				r = listen_tcp_at(i, ret_fd);
	freeaddrinfo(list);
	return r < 0 ? weir_err_set(err, r, "%s: %s", address, strerror(-r)) : 0;
}

static int listen_anew(const char *address, int *ret_fd, struct weir_err *err)
{
	struct address a;
	int r = address_parse(address, &a, err);

	if (r < 0)
		return r;
	if (!a.is_unix)
		return listen_tcp(address, &a, ret_fd, err);
	r = stream_listen_check(address, err);
	if (r < 0)
		return r;
	r = listen_unix(&a, ret_fd);
	return r < 0 ? weir_err_set(err, r, "%s: %s", address, strerror(-r)) : 0;
}

int stream_listen(const char *address, int *ret_fd, struct weir_err *err)
{
	int fd = inherit_take(address), r = 0;

	if (fd < 0)
		r = listen_anew(address, &fd, err);
	if (r < 0)
		return r;
	inherit_note(address, fd);
	*ret_fd = fd;
	return 0;
}

void stream_unlink(const char *path, dev_t dev, ino_t ino)
{
	struct stat st;

	if (!inherit_keeps_names() && stat(path, &st) == 0 && st.st_dev == dev && st.st_ino == ino)
		unlink(path);
}

char *stream_listening(int fd, const char *address)
{
	size_t len = strlen(address);
	struct address a;
	struct weir_err ignored;
	struct sockaddr_in6 at = {0}; /* sin6_port is at the offset of sin_port */
	socklen_t size = sizeof(at);
	char *name;

	if (address_parse(address, &a, &ignored) == 0 && a.is_unix)
		return asprintf(&name, "unix:%s", a.path) < 0 ? NULL : name;
	if (strncmp(address, "tcp:", 4) != 0 || len < 2 || strcmp(address + len - 2, ":0") != 0 ||
		getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		return strdup(address);
	return asprintf(&name, "%.*s%u", (int)len - 1, address, ntohs(at.sin6_port)) < 0 ? NULL
											 : name;
}

static void no_delay(int fd)
{
	int on = 1;

	/* Replies are batched here; ignored for a unix socket. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void stream_watch(int fd, int64_t timeout)
{
	const int on = 1, idle = 10, every = 5, most = 3; /* s, s, times */
	const unsigned ms = (unsigned)(timeout / WEIR_MS);

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &most, sizeof(most));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

int stream_accept(int listening)
{
	int fd;

	do {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return -errno;
	no_delay(fd);
	return fd;
}

/* ---- connect */

static weir_time clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

static int wait_connected(int fd, weir_time until)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0, n;
	socklen_t len = sizeof(error);

	do {
		weir_time left = until - clock_now();
		struct timespec t = {.tv_sec = left / WEIR_SEC, .tv_nsec = left % WEIR_SEC};
		if (left <= 0)
			return -ETIMEDOUT;
		n = ppoll(&p, 1, &t, NULL);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	return -error;
}

static int connect_at(
	int family, const struct sockaddr *at, socklen_t len, weir_time until, int *ret_fd)
{
	int fd = new_socket(family), r = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, at, len) < 0)
		r = errno == EINPROGRESS || errno == EINTR ? wait_connected(fd, until) : -errno;
	/* A unix socket with a full backlog returns EAGAIN at once: treat as refused. */
	if (r == -EAGAIN)
		r = -ECONNREFUSED;
	if (r < 0) {
		close(fd);
		return r;
	}
	if (family != AF_UNIX)
		no_delay(fd);
	*ret_fd = fd;
	return 0;
}

bool stream_looks_up(const char *address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *list;
	struct weir_err ignored;
	struct address a;

	if (address_parse(address, &a, &ignored) < 0 || a.is_unix || !a.host[0])
		return false;
	if (getaddrinfo(a.host, a.port, &hints, &list) != 0)
		return true;
	freeaddrinfo(list);
	return false;
}

int stream_connect(const char *address, int64_t timeout, int *ret_fd, struct weir_err *err)
{
	weir_time start = clock_now();
	weir_time until = timeout > INT64_MAX - start ? INT64_MAX : start + timeout;
	struct addrinfo *list = NULL;
	struct address a;
	int r = address_parse(address, &a, err);

	if (r < 0)
		return r;
	if (a.is_unix) {
		struct un un = un_of(&a);

		r = connect_at(AF_UNIX, (struct sockaddr *)&un.at, un.len, until, ret_fd);
	} else {
		r = resolve(address, &a, false, &list, err);
		if (r < 0)
			return r;
		r = -EHOSTUNREACH;
		for (const struct addrinfo *i = list; i && r < 0; i = i->ai_next)
			r = connect_at(i->ai_family, i->ai_addr, i->ai_addrlen, until, ret_fd);
		freeaddrinfo(list);
	}
	return r < 0 ? weir_err_set(err, r, "%s: %s", address, strerror(-r)) : 0;
}

/* ---- the peer */

static void peer_unix(int fd, struct stream_peer *p)
{
	struct ucred c;
	socklen_t len = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) < 0) {
		snprintf(p->name, sizeof(p->name), "unix");
		return;
	}
	p->uid = (long)c.uid;
	snprintf(p->name, sizeof(p->name), "unix:%ld", (long)c.pid);
}

void stream_peer(int fd, struct stream_peer *ret)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);
	char port[8] = "";
	bool v6;

	*ret = (struct stream_peer){.name = "?", .uid = -1};
	if (getpeername(fd, (struct sockaddr *)&at, &len) < 0)
		return;
	if (at.ss_family == AF_UNIX) {
		peer_unix(fd, ret);
		return;
	}
	if (at.ss_family == AF_INET6) { /* show the IPv4 peer of a dual-stack socket as IPv4 */
		struct sockaddr_in6 v = *(struct sockaddr_in6 *)&at;
		if (IN6_IS_ADDR_V4MAPPED(&v.sin6_addr)) {
			struct sockaddr_in *four = (struct sockaddr_in *)&at;
			*four = (struct sockaddr_in){
				.sin_family = AF_INET, .sin_port = v.sin6_port};
			memcpy(&four->sin_addr, v.sin6_addr.s6_addr + 12, 4);
			len = sizeof(*four);
		}
	}
	if (getnameinfo((struct sockaddr *)&at, len, ret->address, sizeof(ret->address), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
		ret->address[0] = 0;
		return;
	}
	v6 = at.ss_family == AF_INET6;
	snprintf(ret->name, sizeof(ret->name), v6 ? "[%s]:%s" : "%s:%s", ret->address, port);
}
