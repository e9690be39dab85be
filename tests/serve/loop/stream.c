/* SPDX-License-Identifier: BSD-3-Clause */
/* stream: plain sockets, and their peers. TLS: tls.c. */
#include "test.h"
#include "serve/loop/stream.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-stream-XXXXXX";
static char address[200];

static const char *unix_at(const char *name)
{
	snprintf(address, sizeof(address), "unix:%s/%s", folder, name);
	return address;
}

static void both_ways(void)
{
	int fds[2];
	struct stream a, b;
	char text[16];
	struct iovec v[2] = {{(void *)(uintptr_t) "hello ", 6}, {(void *)(uintptr_t) "you", 3}};

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	a = (struct stream){.fd = fds[0]};
	b = (struct stream){.fd = fds[1]};
	CHECK_INT(stream_recv(&b, text, sizeof(text)), -EAGAIN);
	CHECK_INT(stream_send(&a, v, 2), 9);
	CHECK_INT(stream_send(&a, NULL, 0), 0);
	CHECK(!stream_pending(&a));
	CHECK_INT(stream_recv(&b, text, sizeof(text)), 9);
	CHECK_INT(memcmp(text, "hello you", 9), 0);
	stream_close(&a);
	CHECK_INT(a.fd, -1);
	stream_close(&a); /* idempotent */
	CHECK_INT(stream_recv(&b, text, sizeof(text)), 0);
	CHECK_INT(stream_send(&b, v, 2), -EPIPE); /* and no signal */
	stream_close(&b);
}

static void full(void)
{
	static char much[1 << 20];
	struct iovec v = {much, sizeof(much)};
	int fds[2];
	struct stream a;
	ssize_t n = 0;

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	a = (struct stream){.fd = fds[0]};
	for (int i = 0; i < 1000 && (n = stream_send(&a, &v, 1)) > 0; i++)
		;
	CHECK_INT(n, -EAGAIN);
	stream_close(&a);
	close(fds[1]);
}

static int await_client(int listening)
{
	struct pollfd p = {.fd = listening, .events = POLLIN};
	int fd;

	CHECK_INT(poll(&p, 1, 5000), 1);
	fd = stream_accept(listening);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

static void by_unix(void)
{
	int listening, client, server, again = -1;
	struct stream_peer peer;
	struct weir_err err;
	char want[80];

	unix_at("a.sock");
	CHECK_INT(stream_connect(address, 1000000000, &client, &err), -ENOENT);
	CHECK_INT(stream_listen(address, &listening, &err), 0);
	CHECK_INT(stream_accept(listening), -EAGAIN);
	CHECK_INT(stream_connect(address, 1000000000, &client, &err), 0);
	server = await_client(listening);
	stream_peer(server, &peer);
	snprintf(want, sizeof(want), "unix:%ld", (long)getpid());
	CHECK_STR(peer.name, want);
	CHECK_STR(peer.address, "");
	CHECK_INT(peer.uid, getuid());

	/* In use: untouched. Dead: replaced. Not a socket: never replaced. */
	CHECK_INT(stream_listen(address, &again, &err), -EADDRINUSE);
	CHECK_INT(again, -1);
	close(listening);
	CHECK_INT(stream_connect(address, 1000000000, &again, &err), -ECONNREFUSED);
	CHECK_INT(stream_listen(address, &listening, &err), 0);
	close(listening);
	CHECK_INT(unlink(address + 5), 0);
	close(open(address + 5, O_CREAT | O_WRONLY, 0600));
	CHECK_INT(stream_listen(address, &listening, &err), -EADDRINUSE);
	CHECK(strstr(err.text, "a.sock"));
	CHECK_INT(access(address + 5, F_OK), 0);
	CHECK_INT(unlink(address + 5), 0);
	close(client);
	close(server);
}

static int port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	CHECK_INT(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	/* The port is at the same offset in both families. */
	return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

static void by_tcp(const char *host, const char *from, const char *name_form)
{
	int listening, client, server, again;
	struct stream_peer peer;
	struct weir_err err;
	char to[80], want[80];
	int port;

	snprintf(to, sizeof(to), "tcp:%s:0", host);
	CHECK_INT(stream_listen(to, &listening, &err), 0);
	port = port_of(listening);
	snprintf(to, sizeof(to), "tcp:%s:%d", host, port);
	CHECK_INT(stream_listen(to, &again, &err), -EADDRINUSE);
	snprintf(to, sizeof(to), "tcp:127.0.0.1:%d", port);
	if (strchr(from, ':'))
		snprintf(to, sizeof(to), "tcp:[::1]:%d", port);
	CHECK_INT(stream_connect(to, 1000000000, &client, &err), 0);
	server = await_client(listening);
	stream_peer(server, &peer);
	CHECK_STR(peer.address, from);
	CHECK_INT(peer.uid, -1);
	snprintf(want, sizeof(want), name_form, port_of(client));
	CHECK_STR(peer.name, want);
	close(listening);
	close(client);
	close(server);
	CHECK_INT(stream_connect(to, 1000000000, &client, &err), -ECONNREFUSED);
}

static void tcp(void)
{
	struct weir_err err;
	int fd;

	by_tcp("127.0.0.1", "127.0.0.1", "127.0.0.1:%d");
	by_tcp("", "127.0.0.1", "127.0.0.1:%d"); /* a dual-stack socket */
	CHECK_INT(stream_connect("tcp:256.1.1.1:1", 1000000000, &fd, &err), -EHOSTUNREACH);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd >= 0) {
		struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
		if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
			by_tcp("[::1]", "::1", "[::1]:%d");
		close(fd);
	}
}

/* No server accepts and the backlog is full: connecting waits, then times out. */
static void connect_times_out(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0), clients[8], r = 0, n = 0;
	struct weir_err err;
	char to[80];

	CHECK_INT(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_INT(listen(fd, 0), 0);
	snprintf(to, sizeof(to), "tcp:127.0.0.1:%d", port_of(fd));
	while (n < 8 && (r = stream_connect(to, 50000000, &clients[n], &err)) == 0)
		n++;
	CHECK_INT(r, -ETIMEDOUT);
	while (n--)
		close(clients[n]);
	close(fd);
}

static void no_peer(void)
{
	struct stream_peer peer;

	stream_peer(-1, &peer);
	CHECK_STR(peer.name, "?");
	CHECK_INT(peer.uid, -1);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	RUN(both_ways);
	RUN(full);
	RUN(by_unix);
	RUN(tcp);
	RUN(connect_times_out);
	RUN(no_peer);
	rmdir(folder);
	return 0;
}
