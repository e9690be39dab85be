/* SPDX-License-Identifier: BSD-3-Clause */
/* Test what a confined process may do, in a thread of before and in one of after. Built without
 * sanitizers, under which nothing is confined. */
#include "serve/loop/confine.h"
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t confined;

static void check_forbidden(void)
{
	static char *const argv[] = {(char *)"true", NULL};

	CHECK(execv("/bin/true", argv) < 0 && errno == EPERM);
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
	CHECK(setuid(getuid()) < 0 && errno == EPERM);
	CHECK(mount("none", "/", NULL, MS_REMOUNT, NULL) < 0 && errno == EPERM);
	CHECK(kill(getppid(), 0) < 0 && errno == EPERM);
	CHECK(syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
	CHECK(syscall(SYS_seccomp, 0, 0, NULL) < 0 && errno == EPERM);
}

static void check_permitted(void)
{
	int pair[2];
	char byte = 'x';
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, &byte, 1) == 1);
	close(fd);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(send(pair[0], &byte, 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1);
	close(pair[0]);
	close(pair[1]);
}

static void *work(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&confined);
	check_forbidden();
	check_permitted();
	return NULL;
}

int main(void)
{
	pthread_t before, after;
	struct rlimit core;
	struct weir_err err;

	pthread_barrier_init(&confined, NULL, 2);
	CHECK(pthread_create(&before, NULL, work, NULL) == 0);
	CHECK(confine(&err) == 0);
	pthread_barrier_wait(&confined);
	CHECK(pthread_join(before, NULL) == 0);

	pthread_barrier_init(&confined, NULL, 1);
	CHECK(pthread_create(&after, NULL, work, NULL) == 0);
	CHECK(pthread_join(after, NULL) == 0);
	check_forbidden();
	CHECK(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
	return 0;
}
