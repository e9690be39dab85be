/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-dial: connect all connections of a job, with handshake and TLS.
 *
 * This blocks, so it runs before the load starts, or on a separate thread after a loss: the other
 * jobs of the thread continue. All connections or none.
 */
#include "base/container.h"
#include "load/load-impl.h"
#include <errno.h>
#include <stdlib.h>

static int dial_one(struct load_run *r, weir_time until, struct stream *ret,
	struct nbd_export *export_, struct weir_err *err)
{
	struct weir_err inner = {""};
	struct nbd_link link;
	weir_time left = until - loop_clock();
	int e;

	if (left <= 0)
		return weir_err_set(err, -ETIMEDOUT, "%s: no connection in time", r->job.uri);
	e = nbd_link_open(&link, &r->uri, r->tls, left, r->job.structured, &inner);
	if (e < 0)
		return weir_err_set(err, e, "%s: %s", r->job.uri, inner.text);
	*ret = link.stream;
	*export_ = link.greet.export_;
	return 0;
}

int load_dial(struct load_run *r, weir_time timeout, struct stream *streams,
	struct nbd_export *ret_export, struct weir_err *err)
{
	weir_time until = loop_clock() + timeout;
	uint32_t i;
	int e = 0;

	for (i = 0; i < r->job.connections && e == 0; i++)
		e = dial_one(r, until, &streams[i], ret_export, err);
	if (e < 0)
		for (i--; i-- > 0;)
			stream_close(&streams[i]);
	return e;
}

/* ---- reconnecting in the background */

static void dial_free(struct load_dial *d)
{
	free(d->streams);
	free(d);
}

static void on_dialled(struct loop_task *t) /* on the loop's thread */
{
	struct load_dial *d = container_of(t, struct load_dial, task);
	struct load_run *r = d->run;

	if (!d->joined)
		pthread_join(d->thread, NULL);
	r->dial = NULL;
	load_conn_dialled(r, d);
	dial_free(d);
}

static void *dial_thread(void *arg)
{
	struct load_dial *d = arg;

	d->result = load_dial(d->run, 5 * WEIR_SEC, d->streams, &d->export_, &d->err);
	loop_post(d->run->loop, &d->task);
	return NULL;
}

int load_dial_start(struct load_run *r)
{
	struct load_dial *d = calloc(1, sizeof(*d));
	int e;

	if (!d)
		return -ENOMEM;
	d->run = r;
	d->task.run = on_dialled;
	d->streams = calloc(r->job.connections, sizeof(*d->streams));
	if (!d->streams) {
		free(d);
		return -ENOMEM;
	}
	e = pthread_create(&d->thread, NULL, dial_thread, d);
	if (e) {
		dial_free(d);
		return -e;
	}
	r->dial = d;
	return 0;
}
