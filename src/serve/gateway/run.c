/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run: signals, the service manager, and an orderly end.
 *
 * THE END, in steps of 10 ms on the main loop, so that the API still answers:
 *   1. no new clients are accepted; connected ones are not read any more, and each is closed when
 *      its requests are answered
 *   2. after 5 s, or at the second signal, the rest is disconnected: requests that still wait in a
 *      gate are dropped unanswered, so that no client believes that they were done
 *   3. every back end is flushed, in case no client did
 * An unreachable upstream has 700 ms to come back. Then all requests that wait for it are answered
 * with ESHUTDOWN, and writes that it acknowledged and did not flush are reported in one line of the
 * log. A back end that does not return its requests (a disk that hangs) cannot be freed; after a
 * while the process exits anyway and logs this.
 */
#include "base/container.h"
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define MS          ((weir_time)1000000)
#define STEP        (10 * MS)
#define FINISH_TIME (5000 * MS) /* for requests inside at the end */
/* an upstream may be restarting, too; with the time of peers: < 2 s */
#define AWAY_TIME  (700 * MS)
#define CUT_TIME   (1000 * MS)  /* for the back ends to return dropped requests */
#define FLUSH_TIME (30000 * MS) /* a disk array's cache to disk; systemd waits 90 s */

/* ---- the end */

static int finish(void *arg, struct worker *w)
{
	front_finish(w->front, *(bool *)arg);
	return 0;
}

static void finish_all(struct gateway *g, bool at_once)
{
	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], finish, &at_once);
}

static int is_busy(void *arg, struct gateway_resource *r)
{
	return resource_busy(r->resource) ? -EBUSY : 0;
}

static int count_clients(void *arg, struct worker *w)
{
	return front_count(w->front) > 0;
}

bool gateway_busy(struct gateway *g)
{
	for (unsigned i = 0; i < g->n_workers; i++)
		if (worker_call(&g->workers[i], count_clients, NULL))
			return true;
	return g->resources_leaving || gateway_each(g, is_busy, NULL, NULL) < 0;
}

static void flushed(struct request *q)
{
	struct gateway_resource *r = q->owner;
	uint64_t lost = resource_unflushed(r->resource);
	/* all acknowledged writes are durable */
	bool harmless = q->io.error == -ESHUTDOWN && !lost;
	char bytes[24];

	if (q->io.error)
		log_event(harmless ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, "flush-failed",
			"resource", r->name, "why",
			q->io.error == -ESHUTDOWN ? "its upstream is away" : strerror(-q->io.error),
			"unflushed-bytes", log_number(bytes, (double)lost), NULL);
	atomic_store(&r->flushing, false);
}

void gateway_resource_flush(struct gateway_resource *r)
{
	const struct back_info *info = resource_info(r->resource);

	if (info->read_only || !info->can_flush)
		return;
	atomic_store(&r->flushing, true);
	r->flush = (struct request){.io = {.op = BACK_FLUSH}, .done = flushed, .owner = r};
	resource_submit_own(r->resource, &r->flush);
}

static int flush(void *arg, struct gateway_resource *r)
{
	gateway_resource_flush(r);
	return 0;
}

bool gateway_flushing(const struct gateway *g)
{
	for (size_t i = 0; i < g->n_resources; i++)
		if (atomic_load(&g->resources[i]->flushing))
			return true;
	return false;
}

static int abandon(void *arg, struct gateway_resource *r)
{
	resource_abandon(r->resource);
	return 0;
}

static void say_stuck(const struct gateway_resource *r)
{
	log_event(LOG_LEVEL_ERROR, "back-stuck", "resource", r->name, "why",
		"requests inside do not complete; exiting without them", NULL);
}

/* Leave the loop although a back end holds requests. */
static void leave_stuck(struct gateway *g)
{
	for (size_t i = 0; i < g->n_resources; i++)
		if (atomic_load(&g->resources[i]->flushing) ||
			(!g->flushing && gateway_at(g->resources[i], is_busy, NULL) < 0))
			say_stuck(g->resources[i]);
	for (const struct gateway_resource *r = g->resources_leaving; r; r = r->next)
		say_stuck(r);
	g->stuck = true;
	loop_stop(g->loop);
}

static void stop_step(struct loop_timer *t, weir_time now)
{
	struct gateway *g = container_of(t, struct gateway, stop_timer);

	if (now >= g->away_by) {
		gateway_each(g, abandon, NULL, NULL);
		gateway_leaving_abandon(g);
	}
	if (g->flushing) {
		if (!gateway_flushing(g))
			loop_stop(g->loop);
		else if (now >= g->stop_by)
			leave_stuck(g);
	} else if (!gateway_busy(g)) {
		g->flushing = true;
		g->stop_by = now + FLUSH_TIME;
		gateway_each(g, flush, NULL, NULL);
	} else if (now >= g->stop_by && !g->given_up) {
		log_event(
			LOG_LEVEL_WARNING, "clients-cut-off", "why", "still busy at the end", NULL);
		g->given_up = true;
		g->stop_by = now + CUT_TIME;
		finish_all(g, true);
	} else if (now >= g->stop_by) {
		leave_stuck(g);
	}
	loop_set(g->loop, t, now + STEP);
}

void gateway_stop(struct gateway *g)
{
	weir_time now = loop_clock();

	if (g->stopping) {
		g->stop_by = g->away_by = now;
		loop_set(g->loop, &g->stop_timer, now);
		return;
	}
	if (gateway_replace_store(g))
		return;
	g->stopping = true;
	g->stop_by = now + FINISH_TIME;
	g->away_by = now + AWAY_TIME;
	sd_notify(0, "STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", NULL);
	gateway_unlisten(g);
	front_door_free(g->door);
	g->door = NULL;
	finish_all(g, false);
	g->stop_timer.due = stop_step;
	loop_set(g->loop, &g->stop_timer, now);
}

/* ---- signals */

static void stop(void *arg)
{
	gateway_stop(arg);
}

static void reloaded(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "policy-refused", "why",
			err->text[0] ? err->text : strerror(-rc), NULL);
	for (size_t i = 0; rc == 0 && i < note->n; i++)
		log_event(LOG_LEVEL_INFO, "policy-note", "text", note->lines[i], NULL);
}

static void reload(void *arg)
{
	struct gateway_change *c = gateway_change_reload();

	if (c)
		gateway_change_start(arg, c, reloaded, NULL);
	else
		log_event(LOG_LEVEL_ERROR, "policy-refused", "why", "out of memory", NULL);
}

static int is_alive(void *arg, struct worker *w)
{
	return 0;
}

static void alive(void *arg)
{
	struct gateway *g = arg;

	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], is_alive, NULL);
}

int gateway_signals(struct gateway *g)
{
	g->daemon = (struct daemon){.loop = g->loop,
		.stop = stop,
		.reload = reload,
		.alive = alive,
		.arg = g,
		.signals = {.fd = -1}};
	return daemon_start(&g->daemon);
}

void gateway_signals_end(struct gateway *g)
{
	daemon_end(&g->daemon);
	if (g->stop_timer.due)
		loop_set(g->loop, &g->stop_timer, WEIR_NEVER);
}

/* ---- run */

static void say_ready(struct gateway *g)
{
	char addresses[512] = "", threads[24];
	size_t used = 0;

	for (size_t i = 0; i < g->n_listeners && used < sizeof(addresses); i++)
		used += (size_t)snprintf(addresses + used, sizeof(addresses) - used, "%s%s",
			i ? " " : "", g->listeners[i]->address);
	log_event(LOG_LEVEL_INFO, "ready", "listen", addresses, "threads",
		log_number(threads, g->n_workers), "version", WEIR_VERSION, NULL);
	daemon_ready(&g->daemon);
}

int gateway_run(struct gateway *g)
{
	int rc;

	say_ready(g);
	rc = loop_run(g->loop);
	if (rc == 0)
		log_event(LOG_LEVEL_INFO, "stopped", NULL);
	return rc < 0 ? rc : g->stuck ? -ETIMEDOUT : 0;
}
