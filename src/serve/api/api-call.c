/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-call: pass requests between the HTTP thread and the main thread.
 *
 * METHOD  HTTP has its own thread: it reads requests, generates long answers while they are sent,
 *         and waits for slow clients. The main thread handles a request in short tasks: it gets a
 *         task, and posts the answer back, at once or later.
 */
#include "base/container.h"
#include "base/list.h"
#include "serve/api/api-impl.h"
#include "serve/loop/log.h"
#include "serve/loop/threads.h"
#include <stdlib.h>
#include <string.h>

struct api_call {
	struct api_call *next, **link; /* of the API's; the main thread's */
	struct api *api;               /* NULL: the API is stopped */
	struct http_later *later;
	struct http_request request;
	struct loop_task there, back;
	struct http_reply reply;
	bool kept; /* the answer comes later */
};

/* ---- on the main thread */

struct api_call *api_keep(struct http_request *q)
{
	struct api_call *c = container_of(q, struct api_call, request);

	c->kept = true;
	return c;
}

void api_answer(struct api_call *c, const struct http_reply *r)
{
	c->reply = *r;
	if (!c->api) { /* the client is gone with the API */
		http_answer(c->later, &c->reply);
		free(c);
		return;
	}
	list_remove(c);
	loop_post(c->api->loop, &c->back);
}

static void call_there(struct loop_task *t)
{
	struct api_call *c = container_of(t, struct api_call, there);
	struct api *a = c->api;

	list_push(a->calls, c);
	if (!a->stopping)
		api_route(a, &c->request, &c->reply);
	if (!c->kept)
		api_answer(c, &c->reply);
}

/* ---- on the thread of HTTP */

static void call_back(struct loop_task *t)
{
	struct api_call *c = container_of(t, struct api_call, back);

	http_answer(c->later, &c->reply);
	free(c);
}

void api_handle(void *arg, struct http_request *q, struct http_reply *ret)
{
	struct api *a = arg;
	struct api_call *c = calloc(1, sizeof(*c));

	if (!c || !(c->later = http_defer(q))) {
		free(c);
		return;
	}
	c->api = a;
	c->request = *q; /* its strings stay until it is answered */
	c->there.run = call_there;
	c->back.run = call_back;
	loop_post(gateway_loop(a->gateway), &c->there);
}

static void *thread(void *arg)
{
	struct api *a = arg;
	int rc = loop_run(a->loop);

	if (rc < 0)
		log_event(LOG_LEVEL_ERROR, "api-failed", "why", strerror(-rc), NULL);
	return NULL;
}

/* ---- start and end */

int api_calls_start(struct api *a)
{
	int rc = threads_start(&a->thread, "weir-api", thread, a);

	a->running = rc == 0;
	return rc;
}

static void stop_loop(struct loop_task *t)
{
	struct api *a = container_of(t, struct api, stop);

	loop_stop(a->loop);
}

/* Run both loops by hand until no message is left between them. */
void api_calls_stop(struct api *a)
{
	a->stopping = true;
	if (a->running) {
		loop_stop(a->loop);
		pthread_join(a->thread, NULL);
	}
	a->running = false;
	gateway_drain(a->gateway);
	gateway_looks_stop(a->gateway);
	a->stop.run = stop_loop;
	loop_post(a->loop, &a->stop);
	loop_run(a->loop);
	for (struct api_call *c = a->calls; c; c = c->next)
		c->api = NULL; /* its result comes, or is given up, later */
}
