/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refresh: make the policy anew when one of its sources has changed: a folder of volumes, the
 * senders that have tenants of a template, or a file that another volume has left.
 *
 * METHOD  A refresh is a change like every other (serve/gateway/change.c). Folders are followed by
 *         inotify; the descriptor rests from its first event until the change has read them all.
 *         Every SCAN the folders are read whole.
 */
#include "base/container.h"
#include "serve/gateway/change.h"
#include "serve/loop/log.h"
#include "serve/store/folder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define SCAN (60 * WEIR_SEC) /* file systems that are shared report no changes of other machines */

static void refreshed(
	void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	if (rc < 0 && rc != -ESHUTDOWN)
		log_event(LOG_LEVEL_ERROR, "refresh-failed", "why",
			err->text[0] ? err->text : strerror(-rc), NULL);
}

static void refresh(struct gateway *g, bool scan, bool forced)
{
	struct gateway_change *c = g->refresh;
	bool fresh = !c;

	if (fresh && !g->changes_end)
		c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->kind = CHANGE_REFRESH;
	c->scan |= scan;
	c->forced |= forced;
	if (!fresh)
		return;
	if (g->changes)
		g->refresh = c; /* it waits: others join it */
	gateway_change_start(g, c, refreshed, g);
}

void gateway_refresh(struct gateway *g)
{
	refresh(g, false, true);
}

void gateway_refresh_folders(struct gateway *g, bool scan)
{
	refresh(g, scan, scan && g->unserved.n);
}

static void folders_ready(struct loop_fd *f, uint32_t events)
{
	struct gateway *g = container_of(f, struct gateway, folders_fd);

	loop_change(g->loop, f, 0); /* until the events are read */
	gateway_refresh_folders(g, false);
}

static void folders_due(struct loop_timer *t, weir_time now)
{
	gateway_refresh_folders(container_of(t, struct gateway, folders_timer), true);
}

void gateway_folders_follow(struct gateway *g)
{
	if (!g->folders_fd.ready)
		return;
	loop_change(g->loop, &g->folders_fd, EPOLLIN);
	loop_set(g->loop, &g->folders_timer,
		loop_clock() + (folders_soon(g->folders) ? WEIR_SEC : SCAN));
}

int gateway_folders_start(struct gateway *g)
{
	int rc;

	g->folders_fd = (struct loop_fd){.fd = folders_fd(g->folders), .ready = folders_ready};
	g->folders_timer.due = folders_due;
	rc = loop_add(g->loop, &g->folders_fd, EPOLLIN);
	if (rc < 0)
		g->folders_fd.ready = NULL;
	else
		gateway_folders_follow(g);
	return rc;
}

void gateway_folders_stop(struct gateway *g)
{
	if (!g->folders_fd.ready)
		return;
	loop_set(g->loop, &g->folders_timer, WEIR_NEVER);
	loop_remove(g->loop, &g->folders_fd);
	g->folders_fd.ready = NULL;
}
