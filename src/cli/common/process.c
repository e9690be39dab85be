/* SPDX-License-Identifier: BSD-3-Clause */
/* process: run a server as a child process. */
#include "cli/common/process.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Between two checks of a child's state: short compared with the measurements, and long enough not
 * to slow the child. */
#define PEER_CHECK (5 * WEIR_MS)
#define PEER_START (10 * WEIR_SEC) /* time for a server to listen */
#define PEER_END   (5 * WEIR_SEC)  /* time for it to end */

void process_pause(weir_time ns)
{
	struct timespec t = {.tv_sec = ns / WEIR_SEC, .tv_nsec = ns % WEIR_SEC};

	nanosleep(&t, NULL);
}

int process_bind_udp(uint16_t *ret_port, int *ret_fd)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		r = -errno;
	if (r == 0) {
		*ret_port = ntohs(at.sin_port);
		*ret_fd = fd;
	} else if (fd >= 0) {
		close(fd);
	}
	return r;
}

/* Set up the child and execute argv; return only on failure. */
static void exec_child(const char *const *argv, int core, const char *log)
{
	int fd = open(log ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (core >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)core, &set);
		(void)sched_setaffinity(0, sizeof(set), &set); /* where forbidden: unpinned */
	}
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
	if (strcmp(argv[0], "weir") == 0)
		execv("/proc/self/exe", (char *const *)argv);
	else
		execvp(argv[0], (char *const *)argv);
}

/*
 * Fork and execute. The pipe closes when the child has executed argv[0]; else it carries the errno.
 */
static int spawn(struct peer *p, const char *const *argv, int core, const char *log)
{
	int pipes[2], error = 0;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();

	if (pid == 0) {
		exec_child(argv, core, log);
		error = errno;
		if (write(pipes[1], &error, sizeof(error)) < 0)
			_exit(126);
		_exit(127);
	}
	if (pid < 0)
		error = errno;
	close(pipes[1]);
	if (pid > 0 && read(pipes[0], &error, sizeof(error)) == (ssize_t)sizeof(error))
		waitpid(pid, NULL, 0);
	close(pipes[0]);
	if (error)
		return -error;
	p->pid = pid;
	return 0;
}

static bool listens(const char *socket_path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

#define SAID_LINES 3 /* an error is at the end of a log, and not always in one line */

char *peer_said(const char *log, char *ret, size_t len)
{
	char lines[SAID_LINES][200] = {""};
	size_t n = 0, at = 0;
	FILE *f = log ? fopen(log, "re") : NULL;

	while (f && fgets(lines[n % SAID_LINES], sizeof(lines[0]), f)) {
		char *line = lines[n % SAID_LINES];

		line[strcspn(line, "\n")] = '\0';
		n += line[0] != '\0';
	}
	if (f)
		fclose(f);
	ret[0] = '\0';
	for (size_t i = n < SAID_LINES ? 0 : n - SAID_LINES; i < n && at < len; i++)
		at += (size_t)snprintf(
			ret + at, len - at, "%s%s", at ? " / " : "", lines[i % SAID_LINES]);
	return ret;
}

static int fail_ended(const char *name, const char *log, struct weir_err *err)
{
	char said[sizeof(((struct weir_err *)0)->text) / 2];

	peer_said(log, said, sizeof(said));
	return weir_err_set(err, -ECHILD, "%s ended before it accepted connections%s%s", name,
		said[0] ? ": " : "", said);
}

bool peer_ended(struct peer *p, int *ret_status)
{
	if (p->pid <= 0 || waitpid(p->pid, ret_status, WNOHANG) != p->pid)
		return false;
	p->pid = 0;
	return true;
}

int peer_start(struct peer *p, const char *const *argv, int core, const char *socket,
	const char *log, struct weir_err *err)
{
	int status, r;

	if (socket)
		unlink(socket); /* some servers do not replace a stale socket */
	r = spawn(p, argv, core, log);
	if (r < 0)
		return weir_err_set(err, r, "%s: %s", argv[0], strerror(-r));
	for (weir_time waited = 0; waited < PEER_START; waited += PEER_CHECK) {
		if (!socket || listens(socket))
			return 0;
		if (peer_ended(p, &status))
			return fail_ended(argv[0], log, err);
		process_pause(PEER_CHECK);
	}
	peer_stop(p);
	return weir_err_set(err, -ETIMEDOUT, "%s does not listen on %s", argv[0], socket);
}

weir_time peer_cpu(const struct peer *p)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(p->pid, &clock) || clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

void peer_stop(struct peer *p)
{
	if (p->pid <= 0)
		return;
	kill(p->pid, SIGTERM);
	for (weir_time waited = 0; waited < PEER_END; waited += PEER_CHECK) {
		if (peer_ended(p, NULL))
			return;
		process_pause(PEER_CHECK);
	}
	peer_kill(p);
}

void peer_kill(struct peer *p)
{
	peer_signal(p, SIGKILL);
	if (p->pid > 0)
		waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

void peer_signal(const struct peer *p, int signal)
{
	if (p->pid > 0)
		kill(p->pid, signal);
}
