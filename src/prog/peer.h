/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer: a server as a child of ours: started on a core, waited for, what it used, ended.
 *
 * For the benchmarks and the demo, which run real servers, ours and others', side by side. A child
 * does not outlive its parent.
 */
#ifndef WEIR_PROG_PEER_H
#define WEIR_PROG_PEER_H

#include "base/clock.h"
#include "base/err.h"
#include <sys/types.h>

struct peer {
	pid_t pid; /* 0: none */
};

/* Runs argv (found in PATH; "weir" is this very program) and waits until the unix socket takes
 * connections, up to 10 s. core: -1: any. What it prints goes to `log` (NULL: nowhere). 0, -ENOENT:
 * it is not installed, or a negative errno and why. */
int peer_start(struct peer *p, const char *const *argv, int core, const char *socket,
	const char *log, struct weir_err *err);
weir_time peer_cpu(const struct peer *p); /* ns of all its threads so far, also those that ended */
void peer_stop(struct peer *p);           /* SIGTERM, and SIGKILL after 5 s */

#endif
