/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sanitize.h"
#include "serve/loop/confine.h"
#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Names and not numbers: some exist on one architecture only, and those that this machine lacks are
 * left out. glibc decides which call of a family it makes, so families are whole. */
static const char *const calls[] = {
	/* files and folders */
	"access", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
	"dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchmod", "fchmodat",
	"fchown", "fchownat", "fcntl", "fdatasync", "flock", "fstat", "fstatfs", "fsync",
	"ftruncate", "getcwd", "getdents64", "inotify_add_watch", "inotify_init1",
	"inotify_rm_watch", "ioctl", "link", "linkat", "lseek", "lstat", "mkdir", "mkdirat",
	"newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
	"pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "rename",
	"renameat", "renameat2", "rmdir", "splice", "stat", "statfs", "statx", "symlinkat",
	"sync_file_range", "syncfs", "umask", "unlink", "unlinkat", "utimensat", "write", "writev",
	/* sockets and pipes */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "pipe", "pipe2", "recvfrom", "recvmmsg", "recvmsg", "sendfile", "sendmmsg",
	"sendmsg", "sendto", "setsockopt", "shutdown", "socket", "socketpair",
	/* waiting and clocks */
	"clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create1", "epoll_ctl",
	"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2", "gettimeofday", "io_uring_enter",
	"io_uring_register", "io_uring_setup", "nanosleep", "poll", "ppoll", "pselect6",
	"restart_syscall", "select", "signalfd4", "time", "timerfd_create", "timerfd_gettime",
	"timerfd_settime",
	/* memory */
	"brk", "madvise", "memfd_create", "mincore", "mlock", "mlock2", "mmap", "mprotect",
	"mremap", "msync", "munlock", "munmap",
	/* threads and signals */
	"clone", "clone3", "exit", "exit_group", "futex", "futex_waitv", "get_robust_list",
	"getpid", "gettid", "membarrier", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_setaffinity", "sched_yield", "set_robust_list",
	"set_tid_address", "sigaltstack", "tgkill",
	/* what the process is and uses */
	"arch_prctl", "getegid", "geteuid", "getgid", "getgroups", "getcpu", "getpriority",
	"getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getuid", "prctl",
	"prlimit64", "sysinfo", "times", "uname"};

static int add_calls(scmp_filter_ctx filter)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		int number = seccomp_syscall_resolve_name(calls[i]);
		int r = number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The filter forbids its change: seccomp(2) is not in the list. */
static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (!filter)
		return -ENOMEM;
	int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (r == 0)
		r = add_calls(filter);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int confine(struct weir_err *err)
{
	static const struct rlimit none = {0, 0};
	int r;

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return weir_err_set(err, -errno, "no limit for core files: %s", strerror(errno));
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (SANITIZE_ADDRESS || SANITIZE_THREAD) /* the report of leaks at the end needs ptrace */
		return weir_err_set(
			err, -ENOTSUP, "no filter of system calls: a sanitizer's build");
	r = filter_calls();
	if (r == -ENOMEM)
		return weir_err_set(err, r, "out of memory");
	return r < 0 ? weir_err_set(err, -ENOTSUP, "no filter of system calls: %s", strerror(-r))
		     : 0;
}
