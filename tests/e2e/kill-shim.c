/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: with KILL_SHIM="FILE N", the process is killed before the N-th call, since FILE exists, of a function that
 * changes a file's name, size or state on disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void count(void)
{
	static atomic_int calls;
	const char *want = getenv("KILL_SHIM");
	char file[4096];
	int n;

	if (want && sscanf(want, "%4095s %d", file, &n) == 2 && access(file, F_OK) == 0 &&
		atomic_fetch_add(&calls, 1) + 1 == n)
		raise(SIGKILL); /* kill(2) is not among the calls that a confined gateway may make */
}

#define COUNTED(result, name, parameters, arguments)                                               \
	result name parameters                                                                     \
	{                                                                                          \
		result(*real) parameters = (result(*) parameters)dlsym(RTLD_NEXT, #name);          \
                                                                                                   \
		count();                                                                           \
		return real arguments;                                                             \
	}

COUNTED(int, linkat, (int a, const char *x, int b, const char *y, int f), (a, x, b, y, f))
COUNTED(int, renameat, (int a, const char *x, int b, const char *y), (a, x, b, y))
COUNTED(int, unlinkat, (int a, const char *x, int f), (a, x, f))
COUNTED(int, ftruncate, (int fd, off_t size), (fd, size))
COUNTED(int, ftruncate64, (int fd, off64_t size), (fd, size))
COUNTED(int, fsync, (int fd), (fd))
