/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-network-load: the flows of a live network: a process for each group at each machine that sends, and one that receives.
 *
 * They are children that do not run another program: they enter their machine's namespace, and count what arrives in memory
 * that the harness reads. Bytes are counted with all headers, as shapers count them.
 */
#include "cli/live/live-network.h"
#include "serve/loop/loop.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define UDP_PAYLOAD 1472
#define TCP_PAYLOAD 1448
#define WIRE        1514 /* bytes of a full packet of either */
#define CUBIC       "cubic"
#define AWAY        10 /* exit status: the receiver is not there yet */
/* A sender over UDP waits for its own queues instead of filling them: room for some packets only. */
#define UDP_ROOM (32 * 1024)

static struct sockaddr_in address_of(uint32_t machine, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	char text[20];

	live_net_address(machine, text);
	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int open_socket(bool udp, uint32_t machine, uint16_t port)
{
	struct sockaddr_in a = address_of(machine, port);
	int one = 1, room = 4 << 20, fd;

	fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (udp)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (!udp)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, CUBIC, strlen(CUBIC));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

static void sleep_until(weir_time at)
{
	struct timespec t = {.tv_sec = at / WEIR_SEC, .tv_nsec = at % WEIR_SEC};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* ---- receiving */

struct receiving {
	struct live_net *n;
	struct pollfd fds[LIVE_NET_FLOWS];
	uint32_t flow[LIVE_NET_FLOWS];
	bool listens[LIVE_NET_FLOWS];
	nfds_t many;
	bool udp;
};

static void count(struct live_net *n, uint32_t flow, size_t payload, size_t of)
{
	__atomic_fetch_add(
		&n->shared->got[flow], (uint64_t)(payload * WIRE / of), __ATOMIC_RELAXED);
}

static void receive_some(struct receiving *r, nfds_t i)
{
	static char data[1 << 16];
	ssize_t got;

	if (r->listens[i]) {
		int fd = accept4(r->fds[i].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		close(r->fds[i].fd);
		r->fds[i].fd = fd;
		r->listens[i] = false;
		return;
	}
	for (int k = 0; k < 16 && (got = recv(r->fds[i].fd, data, sizeof(data), MSG_DONTWAIT)) > 0;
		k++)
		count(r->n, r->flow[i], (size_t)got, r->udp ? UDP_PAYLOAD : TCP_PAYLOAD);
}

static int receive_all(struct live_net *n, uint32_t group, uint32_t machine)
{
	static struct receiving r;
	bool udp = n->config->groups[group].kind == NET_UDP;

	r = (struct receiving){.n = n, .udp = udp};
	for (uint32_t f = n->first_flow[group]; f < n->first_flow[group + 1]; f++) {
		int fd;

		if (n->flows[f].to != machine)
			continue;
		fd = open_socket(udp, machine, n->flows[f].port);
		if (fd < 0 || (!udp && listen(fd, 4) < 0))
			return 1;
		r.fds[r.many] = (struct pollfd){.fd = fd, .events = POLLIN};
		r.listens[r.many] = !udp;
		r.flow[r.many++] = f;
		__atomic_store_n(&n->shared->ready[f], true, __ATOMIC_RELEASE);
	}
	while (poll(r.fds, r.many, -1) > 0)
		for (nfds_t i = 0; i < r.many; i++)
			if (r.fds[i].revents)
				receive_some(&r, i);
	return 1;
}

/* ---- sending */

struct sending {
	int fd;
	weir_time due; /* udp */
};

static void start_flow(const struct live_net_flow *f, bool udp, struct sending *s)
{
	struct sockaddr_in to = address_of(f->to, f->port);
	int room = UDP_ROOM;

	s->fd = open_socket(udp, f->from, f->port);
	if (s->fd < 0)
		_exit(1);
	if (udp)
		setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (connect(s->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		_exit(AWAY);
	if (!udp)
		fcntl(s->fd, F_SETFL, O_NONBLOCK);
}

/* Send without end to one machine, or to several over TCP. */
static void send_tcp(struct sending *s, uint32_t many, weir_time until)
{
	static const char data[1 << 16];
	struct pollfd fds[LIVE_NET_FLOWS];

	for (uint32_t i = 0; i < many; i++)
		fds[i] = (struct pollfd){.fd = s[i].fd, .events = POLLOUT};
	while (loop_clock() < until && poll(fds, many, 100) >= 0)
		for (uint32_t i = 0; i < many; i++)
			if (fds[i].revents &&
				send(fds[i].fd, data, sizeof(data), MSG_NOSIGNAL) < 0 &&
				errno != EAGAIN)
				_exit(1);
}

static void send_udp(struct sending *s, uint32_t many, double rate, weir_time until)
{
	static const char data[UDP_PAYLOAD];
	weir_time gap = (weir_time)(WIRE * 1e9 / rate), now;

	for (uint32_t i = 0; i < many; i++)
		s[i].due = loop_clock() + gap * i / many;
	while ((now = loop_clock()) < until) {
		weir_time next = WEIR_NEVER;

		for (uint32_t i = 0; i < many; i++) {
			/* A refused datagram tells of a receiver that is gone; the flow goes on. */
			if (s[i].due <= now) {
				(void)!send(s[i].fd, data, sizeof(data), 0);
				s[i].due += gap;
			}
			if (s[i].due < now - 20 * WEIR_MS) /* it waited: that is not made up */
				s[i].due = now;
			next = s[i].due < next ? s[i].due : next;
		}
		if (next > now + 200 * WEIR_US)
			sleep_until(next);
	}
}

static int send_all(struct live_net *n, uint32_t group, uint32_t machine)
{
	static struct sending s[LIVE_NET_FLOWS];
	const struct net_group *g = &n->config->groups[group];
	double time = n->config->live_time, rate = g->rate / n->config->live_rate;
	weir_time began, until;
	uint32_t many = 0;

	while (!(began = __atomic_load_n(&n->shared->began, __ATOMIC_ACQUIRE)))
		sleep_until(loop_clock() + WEIR_MS);
	sleep_until(began + (weir_time)((double)g->start * time));
	for (uint32_t f = n->first_flow[group]; f < n->first_flow[group + 1]; f++)
		if (n->flows[f].from == machine)
			start_flow(&n->flows[f], g->kind == NET_UDP, &s[many++]);
	until = g->end && g->end < WEIR_NEVER ? began + (weir_time)((double)g->end * time)
					      : WEIR_NEVER;
	if (g->kind == NET_UDP)
		send_udp(s, many, rate, until);
	else
		send_tcp(s, many, until);
	for (uint32_t i = 0; i < many; i++)
		close(s[i].fd);
	while (pause() < 0) /* an end is no failure */
		;
	return 0;
}

/* ---- processes */

static int enter(const char *space)
{
	int fd = open(space, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 || setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

static int start(struct live_net *n, uint32_t group, uint32_t machine,
	int (*run)(struct live_net *n, uint32_t group, uint32_t machine), struct weir_err *err)
{
	char space[LIVE_NET_SPACE];
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return weir_err_set(err, -errno, "fork: %s", strerror(errno));
	if (pid > 0) {
		n->load[n->n_load++].pid = pid;
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	live_net_space(n, machine, space);
	if (getppid() != parent || enter(space) < 0)
		_exit(1);
	_exit(run(n, group, machine));
}

/* Start `run` at each machine where flows of a group begin, or end. */
static int start_group(struct live_net *n, uint32_t group, bool to, struct weir_err *err)
{
	int r = 0;

	for (uint32_t m = 0; r == 0 && m < n->config->n_machines; m++) {
		bool here = false;

		for (uint32_t f = n->first_flow[group]; f < n->first_flow[group + 1]; f++)
			here |= (to ? n->flows[f].to : n->flows[f].from) == m;
		if (here)
			r = start(n, group, m, to ? receive_all : send_all, err);
	}
	return r;
}

int live_net_load(struct live_net *n, struct weir_err *err)
{
	int r = 0;

	n->load = calloc(2 * n->config->n_groups * n->config->n_machines + 1, sizeof(*n->load));
	if (!n->load)
		return weir_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t g = 0; r == 0 && g < n->config->n_groups; g++)
		r = start_group(n, g, true, err);
	for (uint32_t f = 0; r == 0 && f < n->n_flows; f++)
		while (!__atomic_load_n(&n->shared->ready[f], __ATOMIC_ACQUIRE) &&
			(r = live_net_check(n, err)) == 0)
			sleep_until(loop_clock() + WEIR_MS);
	for (uint32_t g = 0; r == 0 && g < n->config->n_groups; g++)
		r = start_group(n, g, false, err);
	return r;
}

int live_net_check(struct live_net *n, struct weir_err *err)
{
	int status;

	for (size_t i = 0; i < n->n_load; i++)
		if (peer_ended(&n->load[i], &status))
			return weir_err_set(err, -ECHILD,
				"a process that sends or receives ended%s",
				WIFEXITED(status) && WEXITSTATUS(status) == AWAY
					? ": its receiver cannot be reached"
					: "");
	return 0;
}

void live_net_unload(struct live_net *n)
{
	for (size_t i = 0; i < n->n_load; i++)
		peer_kill(&n->load[i]);
	free(n->load);
	n->load = NULL;
	n->n_load = 0;
}
