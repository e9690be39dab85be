/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replace: the process that is replaced. handover.h has the steps.
 *
 * METHOD  A state and a timer on the main loop. Steps that do not need the pause come before it: waiting for
 *         handshakes, draining TLS, and a first flush of upstreams.
 *         The process ends by _exit: another one has all that it had, and nothing may be closed, removed or written any more.
 */
#include "base/container.h"
#include "serve/gateway/handover.h"
#include "serve/gateway/impl.h"
#include "serve/handover/pass.h"
#include "serve/handover/store.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STEP        (1 * WEIR_MS)
#define OPEN_TIME   (120 * WEIR_SEC) /* for the other process to open everything */
#define DRAIN_TIME  (5 * WEIR_SEC)   /* for handshakes, and clients with TLS */
#define FREEZE_TIME (30 * WEIR_SEC)  /* for the back ends to return what they have */
#define STOP_TIME   (5 * WEIR_SEC) /* … if it stops after that: systemd waits for the end of both */
#define TAKE_TIME   (10 * WEIR_SEC) /* for the other process to read the record */

enum state {
	IDLE,
	ASKED,   /* changes of the policy are in progress */
	OFFERED, /* the other process opens everything */
	DRAINING,
	FLUSHING, /* frozen, and the back ends are empty */
	FREEZING,
	PASSED, /* it reads the record */
};

struct gateway_replace {
	struct gateway *gateway;
	struct loop_fd listening, peer; /* fd -1: none */
	struct loop_timer timer;
	enum state state;
	bool stored; /* the process ends, and leaves everything in the service manager's store */
	bool ends;   /* it ends, and leaves nothing */
	weir_time until; /* the end of this state */
	weir_time began; /* of the pause */
	struct record_map record;
};

static void enter(struct gateway_replace *p, enum state state, weir_time most)
{
	p->state = state;
	p->until = loop_clock() + most;
	loop_set(p->gateway->loop, &p->timer, loop_clock());
}

/* ---- what the threads do */

static int freeze_there(void *arg, struct worker *w)
{
	const struct gateway *g = w->gateway;
	bool on = *(const bool *)arg;

	if (on)
		front_freeze(w->front, true);
	for (size_t i = 0; i < g->n_resources; i++)
		if (g->resources[i]->worker == w)
			resource_freeze(g->resources[i]->resource, on);
	if (!on)
		front_freeze(w->front, false);
	return 0;
}

static void freeze(struct gateway *g, bool on)
{
	for (unsigned i = 0; i < g->n_workers; i++)
		worker_call(&g->workers[i], freeze_there, &on);
}

/* Return 0, -EBUSY, or -EAGAIN: it has to be flushed. */
static int is_ready(void *arg, struct gateway_resource *r)
{
	if (!resource_is_quiet(r->resource))
		return -EBUSY;
	return resource_unflushed(r->resource) ? -EAGAIN : 0;
}

static int count_clients(void *arg, struct worker *w)
{
	return (int)front_count(w->front);
}

static int drain_front(void *arg, struct worker *w)
{
	return (int)front_drain(w->front);
}

static bool is_draining(struct gateway *g)
{
	int n = 0;

	for (unsigned i = 0; i < g->n_workers; i++)
		n += worker_call(&g->workers[i], drain_front, NULL);
	return n > 0;
}

static int flush_there(void *arg, struct gateway_resource *r)
{
	if (resource_unflushed(r->resource))
		gateway_resource_flush(r);
	return 0;
}

/* ---- the end of it */

static void hang_up(struct gateway_replace *p)
{
	if (p->peer.fd >= 0) {
		loop_remove(p->gateway->loop, &p->peer);
		close(p->peer.fd);
	}
	p->peer.fd = -1;
	record_unmap(&p->record);
}

/* The other process serves. */
static void leave(struct gateway_replace *p)
{
	log_event(LOG_LEVEL_INFO, "replaced", NULL);
	gateway_record_stop(p->gateway, NULL, NULL);
	_exit(0);
}

/* Forget the other process, and go on. */
static void cancel(struct gateway_replace *p)
{
	enum state was = p->state;

	hang_up(p);
	p->state = IDLE;
	loop_set(p->gateway->loop, &p->timer, WEIR_NEVER);
	if (was >= FLUSHING)
		freeze(p->gateway, false);
	if (was >= DRAINING && !p->ends)
		gateway_accept(p->gateway, true);
}

/* Go on serving, or end as at any stop, unless the other process has taken the record. */
static void give_up(struct gateway_replace *p, const char *why)
{
	bool stop = p->stored && !p->ends;

	if (p->state == PASSED && !record_mark(&p->record, RECORD_REVOKED))
		leave(p);
	p->ends |= stop;
	log_event(LOG_LEVEL_ERROR, "not-replaced", "why", why, "then",
		p->ends ? "this process ends" : "this process goes on", NULL);
	if (p->peer.fd >= 0)
		pass_send(p->peer.fd, "refused", why, -1, NULL);
	cancel(p);
	if (stop)
		gateway_stop(p->gateway);
}

/* ---- the steps */

static int send_record(
	struct gateway_replace *p, const char *word, struct record_out *o, bool keeps)
{
	int memfd = record_memfd(o), rc = memfd;

	if (rc >= 0 && keeps)
		rc = record_map(memfd, &p->record);
	return rc < 0 ? rc : pass_send(p->peer.fd, word, NULL, memfd, &o->fds);
}

static void offer(struct gateway_replace *p)
{
	struct record_out o = {0};
	int rc;

	handover_put_inherited(&o);
	handover_put_senders(p->gateway, &o);
	rc = send_record(p, "offer", &o, false);
	record_out_free(&o);
	if (rc < 0)
		give_up(p, strerror(-rc));
	else
		enter(p, OFFERED, OPEN_TIME);
}

static void leave_in_store(struct gateway_replace *p)
{
	struct record_out o = {0};
	int memfd, rc;

	handover_put_inherited(&o);
	handover_put_senders(p->gateway, &o);
	handover_keep(p->gateway, p->began, &o);
	memfd = record_memfd(&o);
	rc = memfd < 0 ? memfd : store_put(memfd, &o.fds);
	record_out_free(&o);
	if (rc == 0)
		leave(p);
	give_up(p, strerror(-rc));
}

static void pass(struct gateway_replace *p)
{
	struct record_out o = {0};
	int rc;

	if (p->stored) {
		leave_in_store(p);
		return;
	}
	handover_keep(p->gateway, p->began, &o);
	p->state = PASSED; /* from the moment at which the other one could take it */
	rc = send_record(p, "state", &o, true);
	record_out_free(&o);
	if (rc == 0) {
		enter(p, PASSED, TAKE_TIME);
		return;
	}
	if (!p->record.data)
		p->state = FREEZING;
	give_up(p, strerror(-rc));
}

static void step_drain(struct gateway_replace *p, weir_time now)
{
	struct gateway *g = p->gateway;
	bool leaving = g->resources_leaving || g->volumes_leaving;
	bool busy = is_draining(g) || front_door_talking(g->door) || gateway_flushing(g) || leaving;

	if (busy && now < p->until)
		return;
	p->began = loop_clock();
	freeze(g, true);
	enter(p, FREEZING, p->stored ? STOP_TIME : FREEZE_TIME);
}

static void step_freeze(struct gateway_replace *p, weir_time now)
{
	struct gateway *g = p->gateway;
	int rc = gateway_flushing(g) ? -EBUSY : gateway_all(g, is_ready, NULL);

	if (rc == 0) {
		pass(p);
	} else if (now >= p->until) {
		give_up(p, "a back end does not return its requests");
	} else if (rc == -EAGAIN && p->state == FLUSHING) {
		give_up(p, "an upstream has writes that it could not flush");
	} else if (rc == -EAGAIN) {
		p->state = FLUSHING;
		gateway_all(g, flush_there, NULL);
	}
}

static void due(struct loop_timer *t, weir_time now)
{
	struct gateway_replace *p = container_of(t, struct gateway_replace, timer);
	struct gateway *g = p->gateway;

	switch (p->state) {
	case IDLE:
		return;
	case ASKED:
		if (!g->changes)
			offer(p);
		break;
	case DRAINING:
		step_drain(p, now);
		break;
	case FREEZING:
	case FLUSHING:
		step_freeze(p, now);
		break;
	case OFFERED:
	case PASSED:
		break;
	}
	if (p->state != IDLE && (p->state == ASKED || p->state == OFFERED || p->state == PASSED) &&
		now >= p->until)
		give_up(p, "the other process took too long");
	if (p->state != IDLE)
		loop_set(g->loop, t, now + STEP);
}

/* ---- the other process */

/* The data of a back end in memory would be lost, and its clients would read zeroes. */
static const char *refusal(const struct gateway *g)
{
	if (g->stopping)
		return "this process ends";
	for (size_t i = 0; i < g->n_resources; i++)
		if (resource_info(g->resources[i]->resource)->transient)
			return "a resource is in this process's memory";
	for (size_t i = 0; i < g->volumes.n; i++)
		if (g->volumes.all[i]->known && g->volumes.all[i]->back->info.transient)
			return "a volume is in this process's memory";
	return NULL;
}

static void begin(struct gateway_replace *p)
{
	const char *why = refusal(p->gateway);

	if (why) {
		give_up(p, why);
		return;
	}
	log_event(LOG_LEVEL_INFO, "replace-begins", NULL);
	enter(p, ASKED, OPEN_TIME);
}

static void drain(struct gateway_replace *p)
{
	gateway_accept(p->gateway, false);
	gateway_all(p->gateway, flush_there, NULL);
	enter(p, DRAINING, DRAIN_TIME);
}

static void received(struct gateway_replace *p, const struct pass_message *m)
{
	if (strcmp(m->word, "replace") == 0 && p->state == IDLE)
		begin(p);
	else if (strcmp(m->word, "ready") == 0 && p->state == OFFERED)
		drain(p);
	else if (strcmp(m->word, "taken") == 0 && p->state == PASSED)
		give_up(p, "it has not taken the record"); /* or it has, and this process ends */
	else if (strcmp(m->word, "failed") == 0)
		give_up(p, m->text);
	else
		give_up(p, "it does not keep to the protocol");
}

static void peer_ready(struct loop_fd *f, uint32_t events)
{
	struct gateway_replace *p = container_of(f, struct gateway_replace, peer);
	struct pass_message m;
	int rc = pass_recv(f->fd, 0, &m);

	if (rc == -EAGAIN)
		return;
	if (rc < 0) {
		give_up(p, rc == -EPIPE ? "it ended" : strerror(-rc));
		return;
	}
	received(p, &m);
	pass_message_free(&m);
}

static void asked(struct loop_fd *f, uint32_t events)
{
	struct gateway_replace *p = container_of(f, struct gateway_replace, listening);
	int fd = pass_accept(f->fd);

	if (fd < 0)
		return;
	if (p->peer.fd >= 0) {
		pass_send(fd, "refused", "another process is replacing it", -1, NULL);
		close(fd);
		return;
	}
	p->peer = (struct loop_fd){.fd = fd, .ready = peer_ready};
	if (loop_add(p->gateway->loop, &p->peer, EPOLLIN) < 0) {
		close(fd);
		p->peer.fd = -1;
	}
}

/* Return a bound of the descriptors that a record would have. */
static size_t count_descriptors(struct gateway *g)
{
	struct record_out o = {0};
	size_t n;

	handover_put_inherited(&o);
	n = o.fds.n + 1;
	record_out_free(&o);
	for (unsigned i = 0; i < g->n_workers; i++)
		n += (size_t)worker_call(&g->workers[i], count_clients, NULL);
	return n;
}

bool gateway_replace_store(struct gateway *g)
{
	struct gateway_replace *p = g->replace;

	if (!p || p->ends || p->stored || p->state != IDLE || refusal(g) ||
		!store_is_restart(count_descriptors(g))) {
		if (p && p->state != IDLE && !p->ends) {
			p->ends = true;
			give_up(p, "this process was told to end");
		}
		return false;
	}
	log_event(LOG_LEVEL_INFO, "restart-begins", NULL);
	p->stored = true;
	drain(p);
	return true;
}

bool gateway_is_replaced(const struct gateway *g)
{
	return g->replace && g->replace->state != IDLE;
}

void gateway_replace_start(struct gateway *g)
{
	struct gateway_replace *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : -ENOMEM;

	if (p) {
		p->gateway = g;
		p->listening.fd = p->peer.fd = -1;
		p->timer.due = due;
	}
	g->replace = p;
	if (p && g->state)
		rc = pass_listen(g->state, &p->listening.fd);
	if (p && g->state && rc == 0) {
		p->listening.ready = asked;
		rc = loop_add(g->loop, &p->listening, EPOLLIN);
		if (rc < 0) {
			close(p->listening.fd);
			p->listening.fd = -1;
		}
	}
	if (rc < 0)
		log_event(LOG_LEVEL_WARNING, "not-replaceable", "why", strerror(-rc), NULL);
}

void gateway_replace_stop(struct gateway *g)
{
	struct gateway_replace *p = g->replace;

	if (!p)
		return;
	hang_up(p);
	loop_set(g->loop, &p->timer, WEIR_NEVER);
	if (p->listening.fd >= 0) {
		loop_remove(g->loop, &p->listening);
		close(p->listening.fd);
	}
	free(p);
	g->replace = NULL;
}
