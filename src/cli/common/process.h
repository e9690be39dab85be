/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process: a server, or a client of one, as a child of ours: started on a core, waited for, what it used,
 * ended.
 *
 * For the benchmarks, the demo and live experiments, which run real servers, ours and others', side by
 * side. A child does not outlive its parent.
 */
#ifndef WEIR_CLI_COMMON_PROCESS_H
#define WEIR_CLI_COMMON_PROCESS_H

#include <weir/clock.h>
#include <weir/err.h>
#include <stdbool.h>
#include <sys/types.h>

struct peer {
	pid_t pid; /* 0: none */
};

/* Runs argv (found in PATH; "weir" is this very program) and waits until the unix socket takes
 * connections, up to 10 s; socket NULL: it is not waited for. core: -1: any. What it prints goes to `log`
 * (NULL: nowhere). 0, -ENOENT: it is not installed, or a negative errno and why. */
int peer_start(struct peer *p, const char *const *argv, int core, const char *socket,
	const char *log, struct weir_err *err);
weir_time peer_cpu(const struct peer *p); /* ns of all its threads so far, also those that ended */
void peer_stop(struct peer *p);           /* SIGTERM, and SIGKILL after 5 s */
void peer_kill(struct peer *p);           /* SIGKILL */
void peer_signal(const struct peer *p, int signal); /* and does not wait */
/* Whether it has ended by itself; once, since then there is none. *ret_status is as waitpid(2) has it. */
bool peer_ended(struct peer *p, int *ret_status);
/* The last of what stands in a log, at most `len` bytes of it and of its lines three, " / " between them;
 * "" if there is nothing. Returns `ret`. */
char *peer_said(const char *log, char *ret, size_t len);

#endif
