/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon: a long-running process: signals on its loop, the maximum of file descriptors, and the
 * service manager's watchdog.
 */
#pragma once

#include "serve/loop/loop.h"

struct daemon { /* zero it; signals.fd = -1 */
	struct loop *loop;
	void (*stop)(void *arg);   /* SIGTERM, SIGINT */
	void (*reload)(void *arg); /* SIGHUP; between RELOADING=1 and READY=1 */
	/* called before the watchdog is fed: blocks if a thread hangs. May be NULL */
	void (*alive)(void *arg);
	void *arg;
	struct loop_fd signals; /* the daemon's own, as all below */
	struct loop_timer watchdog;
	weir_time every; /* 0: no watchdog */
};

/* Block the signals that it handles, in this thread and those it will start; ignore SIGPIPE; raise
 * the limit of descriptors as far as the system allows. 0 or a negative errno. */
int daemon_start(struct daemon *d);
/* Notify the service manager, and begin to feed its watchdog. */
void daemon_ready(struct daemon *d);
void daemon_end(struct daemon *d);
