/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/container.h"
#include "serve/loop/daemon.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static void reload(struct daemon *d)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)(loop_clock() / 1000));
	sd_notify(0, text);
	d->reload(d->arg);
	sd_notify(0, "READY=1");
}

static void signalled(struct loop_fd *f, uint32_t events)
{
	struct daemon *d = container_of(f, struct daemon, signals);
	struct signalfd_siginfo info;

	while (read(f->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(d);
		else
			d->stop(d->arg);
	}
}

int daemon_start(struct daemon *d)
{
	struct rlimit files;
	sigset_t set;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is an error of one request */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rc != 0)
		return -rc;
	d->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->signals.fd < 0)
		return -errno;
	d->signals.ready = signalled;
	rc = loop_add(d->loop, &d->signals, EPOLLIN);
	if (rc < 0) {
		close(d->signals.fd);
		d->signals.fd = -1;
	}
	return rc;
}

/* A thread that hangs blocks this one in `alive`, so the watchdog is not fed and restarts the
 * process. */
static void feed(struct loop_timer *t, weir_time now)
{
	struct daemon *d = container_of(t, struct daemon, watchdog);

	if (d->alive)
		d->alive(d->arg);
	sd_notify(0, "WATCHDOG=1");
	loop_set(d->loop, t, now + d->every);
}

void daemon_ready(struct daemon *d)
{
	uint64_t usec;

	sd_notify(0, "READY=1");
	if (sd_watchdog_enabled(0, &usec) > 0) {
		d->every = (weir_time)usec * 1000 / 2;
		d->watchdog.due = feed;
		feed(&d->watchdog, loop_clock());
	}
}

void daemon_end(struct daemon *d)
{
	if (d->signals.fd >= 0) {
		loop_remove(d->loop, &d->signals);
		close(d->signals.fd);
		d->signals.fd = -1;
	}
	if (d->watchdog.due)
		loop_set(d->loop, &d->watchdog, WEIR_NEVER);
}
