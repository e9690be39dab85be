/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: keep a device attached: `weir attach --watch`. See attach.h.
 *
 * METHOD  The driver sends a message for each lost connection. From then on the watch dials every second until the
 *         gateway answers, and gives the driver the new connections; the driver repeats the requests that had no reply.
 *         Every second the watch also looks whether the device is still attached, and every LOOK of them at the
 *         export's size, which no message announces.
 */
#include "base/container.h"
#include "cli/attach/attach.h"
#include "serve/loop/daemon.h"
#include "serve/loop/log.h"
#include <weir/units.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define LOOK 10 /* s */

struct watch {
	struct attach *attach;
	struct daemon daemon;
	struct loop *loop;
	struct loop_fd messages;
	struct loop_timer tick;
	bool dead;       /* a connection is lost */
	unsigned looked; /* s since the size was seen */
	char device[24];
	char trouble[sizeof(((struct weir_err *)0)->text)]; /* that was logged last */
};

/* Log a failure once, until there is another. */
static void say_trouble(struct watch *w, const char *event, const struct weir_err *err)
{
	if (strcmp(w->trouble, err->text) == 0)
		return;
	snprintf(w->trouble, sizeof(w->trouble), "%s", err->text);
	log_event(LOG_LEVEL_WARNING, event, "device", w->device, "why", err->text, NULL);
}

static void repair(struct watch *w)
{
	struct weir_err err = {""};

	if (attach_again(w->attach, &err) < 0) {
		say_trouble(w, "device-waits", &err);
		return;
	}
	w->dead = false;
	w->trouble[0] = '\0';
	log_event(LOG_LEVEL_INFO, "device-attached", "device", w->device, NULL);
}

static void look_at_device(struct watch *w)
{
	struct weir_err err = {""};
	char text[32];
	uint64_t size;

	w->looked = 0;
	if (attach_grow(w->attach, &size, &err) < 0)
		say_trouble(w, "size-unknown", &err);
	else if (size)
		log_event(LOG_LEVEL_INFO, "device-grown", "device", w->device, "size",
			weir_units_show_size(size, text, sizeof(text)), NULL);
}

static void on_tick(struct loop_timer *t, weir_time now)
{
	struct watch *w = container_of(t, struct watch, tick);
	struct weir_err err = {""};
	bool attached;

	if (netlink_attached(&w->attach->netlink, w->attach->device.index, &attached, &err) < 0) {
		say_trouble(w, "device-unknown", &err);
	} else if (!attached) {
		log_event(LOG_LEVEL_INFO, "device-detached", "device", w->device, NULL);
		loop_stop(w->loop);
		return;
	} else if (w->dead) {
		repair(w);
	} else if (++w->looked >= LOOK) {
		look_at_device(w);
	}
	loop_set(w->loop, t, loop_refresh(w->loop) + WEIR_SEC);
}

static void on_message(struct loop_fd *f, uint32_t events)
{
	struct watch *w = container_of(f, struct watch, messages);

	if (!netlink_lost(&w->attach->netlink, w->attach->device.index) || w->dead)
		return;
	w->dead = true;
	log_event(LOG_LEVEL_WARNING, "connection-lost", "device", w->device, NULL);
	loop_set(w->loop, &w->tick, loop_now(w->loop));
}

static void stop(void *arg)
{
	loop_stop(((struct watch *)arg)->loop);
}

static void reload(void *arg)
{
	look_at_device(arg);
}

static int run_watch(struct watch *w)
{
	struct weir_err err = {""};
	int e = netlink_listen(&w->attach->netlink, &w->messages.fd, &err);

	if (e == 0)
		e = loop_add(w->loop, &w->messages, EPOLLIN);
	if (e == 0)
		e = daemon_start(&w->daemon);
	if (e == 0)
		e = loop_set(w->loop, &w->tick, loop_clock());
	if (e == 0) {
		/* A page of this process may have to be read from the device that waits for it. */
		mlockall(MCL_CURRENT | MCL_FUTURE);
		daemon_ready(&w->daemon);
		e = loop_run(w->loop);
	}
	if (e < 0)
		log_event(LOG_LEVEL_ERROR, "watch-ended", "device", w->device, "why",
			*err.text ? err.text : strerror(-e), NULL);
	daemon_end(&w->daemon);
	return e < 0 ? 1 : 0;
}

int watch_run(struct attach *a)
{
	struct watch w = {
		.attach = a, .dead = true, .messages.ready = on_message, .tick.due = on_tick};
	int status;

	snprintf(w.device, sizeof(w.device), "/dev/nbd%d", a->device.index);
	log_open(LOG_LEVEL_INFO, LOG_FORM_TEXT);
	if (loop_new(&w.loop) < 0)
		return 1;
	w.daemon = (struct daemon){
		.loop = w.loop, .stop = stop, .reload = reload, .arg = &w, .signals.fd = -1};
	status = run_watch(&w);
	loop_free(w.loop);
	return status;
}
