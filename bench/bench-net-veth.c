/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-net-veth: the throughput of a veth pair with the shaper on and nothing limited, against off.
 *
 * METHOD  Two network namespaces of child processes, one TCP connection between them, and windows in turn without the shaper and
 *         with it. Each pair has a ratio, and the median of all is the row's: other load on the machine changes both of a pair. Needs
 *         CAP_SYS_ADMIN and ip(8); without, there is no row.
 */
#include "bench/bench.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef WEIR_SHAPE
#include "serve/loop/loop.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT    5001
#define SETTLE  (50 * WEIR_MS)
#define PAIRS   4 /* of each run */
#define BUFFER  (1 << 20)
#define WAIT_MS 10

static const char policy[] = "network: {devices: [{name: v0, rate: auto}]}\n"
			     "tenants:\n"
			     "  - {name: a, net: {weight: 2}, match: {port: 5001}}\n"
			     "  - {name: b, net: {weight: 1}, match: {port: 5002}}\n";

/* Run a program, without its output; 0 or -EIO. */
static int run(const char *const argv[])
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(1);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : -EIO;
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* ---- the receiver, in a namespace of its own */

static int open_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) /* the default may pace by itself; an error leaves it */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
	return fd;
}

static void receive(int ready, int go)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	char *buffer = malloc(BUFFER), word;
	int fd = unshare(CLONE_NEWNET) == 0 ? open_socket() : -1, to;

	if (fd < 0 || !buffer || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(fd, 1) < 0 || write(ready, "1", 1) != 1 || read(go, &word, 1) != 1 ||
		RUN("ip", "addr", "add", "10.9.0.2/24", "dev", "v0") < 0 ||
		RUN("ip", "link", "set", "v0", "up") < 0 || write(ready, "2", 1) != 1)
		_exit(1);
	to = accept(fd, NULL, NULL);
	while (to >= 0 && recv(to, buffer, BUFFER, 0) > 0)
		;
	_exit(0);
}

/* ---- the sender */

struct side {
	int fd;
	char *buffer, folder[64], pid[80], file[80], api[80];
};

static double window(struct side *s, weir_time length)
{
	weir_time begin = loop_clock(), now = begin;
	double bytes = 0;

	while (now - begin < length) {
		ssize_t n = send(s->fd, s->buffer, BUFFER, MSG_NOSIGNAL);

		if (n <= 0)
			return 0;
		bytes += (double)n;
		now = loop_clock();
	}
	return bytes * 8 / (double)(now - begin);
}

/* Start `weir shape run`. Return its process, once it is ready, or -1. */
static pid_t shape(const struct side *s)
{
	pid_t child = fork();

	if (child == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		execl("/proc/self/exe", "weir", "shape", "run", "--state", s->folder, "--api",
			s->api, "--pidfile", s->pid, s->file, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 2000 / WAIT_MS && access(s->pid, F_OK) < 0; i++) {
		if (waitpid(child, NULL, WNOHANG) != 0)
			return -1;
		usleep(WAIT_MS * 1000);
	}
	return child;
}

/* Write the rate of a window without the shaper and with it, Gbit/s. */
static int measure_pair(struct side *s, bool quick, double ret[2])
{
	weir_time length = (quick ? 100 : 300) * WEIR_MS;
	pid_t shaper;

	window(s, SETTLE);
	ret[0] = window(s, length);
	shaper = shape(s);
	if (shaper < 0)
		return -EPERM;
	window(s, SETTLE);
	ret[1] = window(s, length);
	kill(shaper, SIGTERM);
	waitpid(shaper, NULL, 0);
	unlink(s->pid);
	return RUN("/proc/self/exe", "shape", "clean", "--state", s->folder);
}

static int make_link(pid_t other, int ready, int go, struct side *s)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	char pid[16], word;

	snprintf(pid, sizeof(pid), "%d", (int)other);
	inet_pton(AF_INET, "10.9.0.2", &to.sin_addr);
	if (read(ready, &word, 1) != 1 ||
		RUN("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", pid) <
			0 ||
		RUN("ip", "addr", "add", "10.9.0.1/24", "dev", "v0") < 0 ||
		RUN("ip", "link", "set", "v0", "up") < 0 || write(go, "1", 1) != 1 ||
		read(ready, &word, 1) != 1)
		return -EPERM;
	s->fd = open_socket();
	return s->fd >= 0 && connect(s->fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : -EIO;
}

static int write_policy(struct side *s)
{
	FILE *f;

	snprintf(s->folder, sizeof(s->folder), "/tmp/weir-bench-XXXXXX");
	if (!mkdtemp(s->folder))
		return -errno;
	snprintf(s->pid, sizeof(s->pid), "%s/pid", s->folder);
	snprintf(s->file, sizeof(s->file), "%s/weir.yaml", s->folder);
	snprintf(s->api, sizeof(s->api), "unix:%s/api", s->folder);
	f = fopen(s->file, "we");
	if (!f)
		return -errno;
	fputs(policy, f);
	return fclose(f) == 0 ? 0 : -EIO;
}

/* In a child, so that this process keeps its namespace: write pairs to `out`. */
static void send_all(int out, unsigned pairs, bool quick)
{
	struct side s = {.buffer = calloc(1, BUFFER)};
	int ready[2], go[2], r = s.buffer && pipe(ready) == 0 && pipe(go) == 0 ? 0 : -EIO;
	pid_t other = -1;
	double pair[2];

	if (r == 0 && (other = fork()) == 0)
		receive(ready[1], go[0]);
	if (r == 0) {
		close(ready[1]); /* so that a receiver that ends is seen */
		r = unshare(CLONE_NEWNET) == 0 ? write_policy(&s) : -EPERM;
	}
	if (r == 0)
		r = make_link(other, ready[0], go[1], &s);
	for (unsigned i = 0; r == 0 && i < pairs; i++) {
		r = measure_pair(&s, quick, pair);
		if (r == 0 && write(out, pair, sizeof(pair)) != sizeof(pair))
			r = -EIO;
	}
	if (other > 0)
		kill(other, SIGKILL);
	RUN("rm", "-rf", s.folder);
	_exit(r != 0);
}

int bench_net_veth(struct bench *b)
{
	struct bench_samples on = {0}, off = {0}, ratios = {0};
	unsigned pairs = b->runs * (b->quick ? 1 : PAIRS); /* at most 100: bench.c */
	double pair[2];
	int out[2];
	pid_t child;

	if (pipe(out) < 0)
		return 0;
	child = fork();
	if (child == 0) {
		close(out[0]);
		send_all(out[1], pairs, b->quick);
	}
	close(out[1]);
	while (child > 0 && read(out[0], pair, sizeof(pair)) == sizeof(pair)) {
		if (!(pair[0] > 0))
			continue;
		bench_sample(&off, pair[0]);
		bench_sample(&on, pair[1]);
		bench_sample(&ratios, pair[1] / pair[0]);
	}
	close(out[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (ratios.n)
		bench_add_pairs(b, "a veth pair under the shaper, nothing limited", "Gbit/s", &on,
			"without", &off, &ratios, ">= 0.95x")
			->key = "net.veth";
	return 0;
}

#else

int bench_net_veth(struct bench *b)
{
	return 0;
}

#endif
