/* SPDX-License-Identifier: BSD-3-Clause */
/* nbdkit-rig: nbdkit on a unix socket, for tests that kill and restart it. */
#ifndef WEIR_TESTS_PORT_NBDKIT_RIG_H
#define WEIR_TESTS_PORT_NBDKIT_RIG_H

#include "test.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t nbdkit; /* 0: not running */

/* extra: plugin, filters and their arguments; NULL-terminated */
static inline void nbdkit_start(const char *path, const char *const *extra)
{
	const char *args[32] = {"nbdkit", "-f", "--exit-with-parent", "-U", path};
	int n = 5;

	unlink(path);
	for (int i = 0; extra[i]; i++)
		args[n++] = extra[i];
	nbdkit = fork();
	CHECK(nbdkit >= 0);
	if (nbdkit == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2); /* it complains about disconnected clients */
		execvp(args[0], (char *const *)(uintptr_t)args);
		_exit(127);
	}
}

static inline bool nbdkit_answers(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	memcpy(a.sun_path, path, strlen(path) + 1);
	r = connect(fd, (struct sockaddr *)&a, sizeof(a));
	close(fd);
	return r == 0;
}

static inline void nbdkit_await(const char *path)
{
	int status;

	for (int i = 0; i < 5000 && !nbdkit_answers(path); i++) {
		if (waitpid(nbdkit, &status, WNOHANG) == nbdkit)
			SKIP("nbdkit does not start (is it installed, with its filters?)");
		poll(NULL, 0, 1);
	}
}

static inline void nbdkit_kill(void)
{
	int status;

	kill(nbdkit, SIGKILL);
	CHECK_INT(waitpid(nbdkit, &status, 0), nbdkit);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		SKIP("nbdkit is not installed");
	nbdkit = 0;
}

/* Create an empty file of `bytes` bytes. */
static inline void nbdkit_make_file(const char *path, off_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(ftruncate(fd, bytes), 0);
	close(fd);
}

#endif
