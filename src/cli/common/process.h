/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process: run a server or client as a child process: start it on a core, wait for it, measure its
 * CPU time, end it.
 *
 * For the benchmarks, the demo and live experiments, which run Weir and other servers side by side.
 * A child does not outlive its parent.
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <stdbool.h>
#include <sys/types.h>

void process_pause(weir_time ns); /* sleep, unless a signal arrives */
/* Bind a free UDP port on 127.0.0.1; return the port and its socket. */
int process_bind_udp(uint16_t *ret_port, int *ret_fd);

struct peer {
	pid_t pid; /* 0: none */
};

/*
 * Run argv (found in PATH; "weir" is this program itself) and wait until the unix socket accepts
 * connections, up to 10 s; socket NULL: do not wait. core -1: any. Its output goes to `log` (NULL:
 * nowhere). Return 0, or a negative errno and a message; -ENOENT: not installed.
 */
int peer_start(struct peer *p, const char *const *argv, int core, const char *socket,
	const char *log, struct weir_err *err);
weir_time peer_cpu(const struct peer *p); /* ns of all its threads so far, including ended ones */
void peer_stop(struct peer *p);           /* SIGTERM, and SIGKILL after 5 s */
void peer_kill(struct peer *p);           /* SIGKILL */
void peer_signal(const struct peer *p, int signal); /* without waiting */
/* Return true, once, if the child has ended by itself; *ret_status is that of waitpid(2). */
bool peer_ended(struct peer *p, int *ret_status);
/*
 * Copy the last lines of a log to `ret`, at most `len` bytes and three lines, separated by " / ";
 * "" if it is empty. Return `ret`.
 */
char *peer_said(const char *log, char *ret, size_t len);
