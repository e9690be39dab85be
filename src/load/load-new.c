/* SPDX-License-Identifier: BSD-3-Clause */
/* load-new: create and free a load: threads, jobs, connections, memory. */
#include "load/load-impl.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DIAL_TIME (10 * WEIR_SEC) /* for all connections of a job */

static int check_job(const struct load_job *j, struct weir_err *err)
{
	if (!j->uri)
		return weir_err_set(err, -EINVAL, "%s: needs a server's URI", j->name);
	if (j->connections < 1 || j->connections > 65536 || j->depth > LOAD_DEPTH_MAX)
		return weir_err_set(err, -EINVAL, "%s: connections 1 to 65536, depth 1 to %d",
			j->name, LOAD_DEPTH_MAX);
	if (!j->trace && j->duration == WEIR_NEVER && j->requests == UINT64_MAX)
		return weir_err_set(
			err, -EINVAL, "%s: needs a duration or a number of requests", j->name);
	if (j->warm_up >= j->duration)
		return weir_err_set(
			err, -EINVAL, "%s: the warm-up must be shorter than the duration", j->name);
	if (j->trace && (j->verify || !(j->speed > 0)))
		return weir_err_set(err, -EINVAL,
			"%s: a trace is replayed without verification, at a speed above 0",
			j->name);
	if (j->table && !j->verify)
		return weir_err_set(err, -EINVAL, "%s: a table needs verify", j->name);
	return 0;
}

static int open_tls(struct load_run *r, struct weir_err *err)
{
	const struct load_job *j = &r->job;
	const struct tls_config c = {
		.cert = j->tls_cert, .key = j->tls_key, .ca = j->tls_ca, .psk = j->tls_psk};

	return r->uri.tls ? tls_new(&c, false, &r->tls, err) : 0;
}

static int make_verify(struct load_run *r, struct weir_err *err)
{
	uint64_t n = r->span / r->align, id;
	int e;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = (uint64_t)loop_clock();
	if (n > LOAD_VERIFY_BLOCKS)
		return weir_err_set(err, -EINVAL,
			"%s: too many blocks to verify; use a part of the export (length)",
			r->job.name);
	e = load_verify_new(r->base, r->span, r->align, r->job.seed, id, &r->verify);
	if (e < 0)
		return weir_err_set(err, e, "%s: no memory", r->job.name);
	if (r->job.table)
		e = load_verify_load(r->verify, r->job.table, err);
	return e == -ENOENT ? 0 : e;
}

static int make_payload(struct load_run *r, struct weir_err *err)
{
	size_t n = (r->most + 7u) & ~7u;

	r->payload = malloc(n);
	if (!r->payload)
		return weir_err_set(err, -ENOMEM, "%s: no memory", r->job.name);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t x = rng_u64(&r->rng);

		memcpy(r->payload + i, &x, 8);
	}
	return 0;
}

static int make_conns(struct load_run *r, struct stream *streams, struct weir_err *err)
{
	int e = 0;

	r->conns = calloc(r->job.connections, sizeof(*r->conns));
	for (uint32_t i = 0; i < r->job.connections; i++) {
		if (e == 0 && r->conns)
			e = load_conn_new(r, &r->conns[i]);
		if (e == 0 && r->conns)
			e = load_conn_open(&r->conns[i], streams[i]);
		else
			stream_close(&streams[i]);
	}
	if (!r->conns)
		e = -ENOMEM;
	return e < 0 ? weir_err_set(err, e, "%s: %s", r->job.name, strerror(-e)) : 0;
}

static int open_job(struct load_run *r, struct weir_err *err)
{
	struct stream *streams = calloc(r->job.connections, sizeof(*streams));
	int e;

	if (!streams)
		return weir_err_set(err, -ENOMEM, "%s: no memory", r->job.name);
	e = load_dial(r, DIAL_TIME, streams, &r->export_, err);
	if (e < 0)
		goto out;
	e = load_next_init(r, err);
	if (e == 0 && r->job.verify)
		e = make_verify(r, err);
	else if (e == 0)
		e = make_payload(r, err);
	if (e == 0)
		e = make_conns(r, streams, err);
	else
		for (uint32_t i = 0; i < r->job.connections; i++)
			stream_close(&streams[i]);
out:
	free(streams);
	return e;
}

static int init_run(struct load *l, size_t i, const struct load_job *job, struct weir_err *err)
{
	struct load_run *r = &l->runs[i];
	int e;

	r->job = *job;
	r->load = l;
	r->index = i;
	r->thread = &l->threads[i % l->n_threads];
	r->loop = r->thread->loop;
	r->thread->running++;
	if (!r->job.name)
		r->job.name = "load";
	if (r->job.depth == 0)
		r->job.depth = load_open_loop(r) ? 1024 : 1;
	r->result.name = r->job.name;
	weir_hist_clear(&r->result.latency);
	weir_hist_clear(&r->result.late);
	weir_hist_clear(&r->interval);
	for (size_t k = 0; k < job->n_sizes; k++)
		r->shares += job->sizes[k].share;
	e = check_job(&r->job, err);
	if (e == 0)
		e = nbd_uri_parse(r->job.uri, &r->uri, err);
	if (e == 0)
		e = open_tls(r, err);
	return e < 0 ? e : open_job(r, err);
}

static int init_threads(struct load *l)
{
	for (unsigned i = 0; i < l->n_threads; i++) {
		struct load_thread *t = &l->threads[i];
		int e = loop_new(&t->loop);

		if (e < 0)
			return e;
		t->load = l;
		t->core = l->options.n_cores ? l->options.cores[i % l->options.n_cores] : -1;
		t->scratch = malloc(LOAD_RECV);
		if (!t->scratch)
			return -ENOMEM;
	}
	return 0;
}

int load_new(const struct load_job *jobs, size_t n, const struct load_options *o,
	struct load **ret_load, struct weir_err *err)
{
	struct load *l = calloc(1, sizeof(*l));
	int e = -ENOMEM;

	if (!l)
		return no_memory(err);
	if (o)
		l->options = *o;
	if (l->options.interval <= 0)
		l->options.interval = 100 * WEIR_MS;
	l->n_threads = l->options.threads ? l->options.threads : 1;
	pthread_mutex_init(&l->lock, NULL);
	l->runs = calloc(n ? n : 1, sizeof(*l->runs));
	l->threads = calloc(l->n_threads, sizeof(*l->threads));
	if (l->runs && l->threads)
		e = init_threads(l);
	if (e < 0)
		weir_err_set(err, e, "%s", strerror(-e));
	for (; e == 0 && l->n < n; l->n++)
		e = init_run(l, l->n, &jobs[l->n], err);
	if (e < 0) {
		load_free(l);
		return e;
	}
	*ret_load = l;
	return 0;
}

static void free_run(struct load_run *r)
{
	for (uint32_t i = 0; r->conns && i < r->job.connections; i++)
		if (r->conns[i].run) /* else it was not created */
			load_conn_free(&r->conns[i]);
	free(r->conns);
	load_verify_free(r->verify);
	free(r->payload);
	tls_free(r->tls);
}

void load_free(struct load *l)
{
	if (!l)
		return;
	for (size_t i = 0; l->runs && i < l->n; i++)
		free_run(&l->runs[i]);
	for (unsigned i = 0; l->threads && i < l->n_threads; i++) {
		loop_free(l->threads[i].loop);
		free(l->threads[i].scratch);
	}
	pthread_mutex_destroy(&l->lock);
	free(l->runs);
	free(l->threads);
	free(l);
}
