/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: with NETLINK_SHIM="kill N" the process is killed after its N-th message to route netlink, or its N-th file
 * of state; with "fail N" the kernel refuses this one for want of memory. NETLINK_SHIM_COUNT names a file that gets the number of
 * such steps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int steps;

static void tell(void)
{
	const char *file = getenv("NETLINK_SHIM_COUNT");
	FILE *f = file ? fopen(file, "w") : NULL;

	if (f) {
		fprintf(f, "%d\n", steps);
		fclose(f);
	}
}

/* Return true if the step, which comes next, is to be done. */
static int is_done(void)
{
	const char *want = getenv("NETLINK_SHIM");
	int n;

	steps++;
	tell();
	if (!want || sscanf(want, "fail %d", &n) != 1 || steps != n)
		return 1;
	errno = ENOMEM;
	return 0;
}

static void end_step(void)
{
	const char *want = getenv("NETLINK_SHIM");
	int n;

	if (want && sscanf(want, "kill %d", &n) == 1 && steps == n)
		raise(SIGKILL);
}

static int is_netlink(int fd)
{
	struct sockaddr address;
	socklen_t len = sizeof(address);

	return getsockname(fd, &address, &len) == 0 && address.sa_family == AF_NETLINK;
}

#define STEP(result, name, parameters, arguments, counted)                                         \
	result name parameters                                                                     \
	{                                                                                          \
		result(*real) parameters = (result(*) parameters)dlsym(RTLD_NEXT, #name);          \
		result ret;                                                                        \
                                                                                                   \
		if (!(counted))                                                                    \
			return real arguments;                                                     \
		if (!is_done())                                                                    \
			return -1;                                                                 \
		ret = real arguments;                                                              \
		end_step();                                                                        \
		return ret;                                                                        \
	}

STEP(ssize_t, sendto,
	(int fd, const void *at, size_t n, int flags, const struct sockaddr *to, socklen_t len),
	(fd, at, n, flags, to, len), is_netlink(fd))
STEP(ssize_t, send, (int fd, const void *at, size_t n, int flags), (fd, at, n, flags),
	is_netlink(fd))
STEP(int, rename, (const char *from, const char *to), (from, to), strstr(to, ".json") != NULL)
