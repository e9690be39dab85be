/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon: what a process that stays needs of the system: signals on its loop, as many descriptors as it
 * may have, and the service manager's watchdog.
 */
#ifndef WEIR_SERVE_LOOP_DAEMON_H
#define WEIR_SERVE_LOOP_DAEMON_H

#include "serve/loop/loop.h"

struct daemon { /* zero it; signals.fd = -1 */
	struct loop *loop;
	void (*stop)(void *arg);   /* SIGTERM, SIGINT */
	void (*reload)(void *arg); /* SIGHUP; between RELOADING=1 and READY=1 */
	void (*alive)(
		void *arg); /* before the watchdog is fed: whoever hangs, hangs here. May be NULL */
	void *arg;
	struct loop_fd signals; /* the daemon's own, as all below */
	struct loop_timer watchdog;
	weir_time every; /* 0: systemd wants none */
};

/* Blocks the signals that it handles, in this thread and those it will start; SIGPIPE is ignored; as
 * many descriptors as the system allows. 0 or a negative errno. */
int daemon_start(struct daemon *d);
/* Tells the service manager, and begins to feed its watchdog. */
void daemon_ready(struct daemon *d);
void daemon_end(struct daemon *d);

#endif
