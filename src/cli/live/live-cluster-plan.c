/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-cluster-plan: the files of a cluster's servers and controller, and the jobs of its clients.
 *
 * What every bucket wants of which server, and until when, is what the simulator would draw: its code is
 * run through the whole time, and each stay of a bucket at a server becomes a job of weir load.
 */
#include "cli/common/files.h"
#include "cli/live/live-cluster.h"
#include "base/no-memory.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const struct verb verb_experiment;

/* Bytes of an export: places mean nothing to the model of a server. 200 of them are 25 MiB of a file. */
#define REGION (128u << 10)
#define SIZE   "4KiB"
/* The window. The model is one server, and what waits inside it is begun at the model's time: so a thread that
 * wakes up late, by up to two requests' time, leaves it no more idle than the simulator's. More would be for
 * the device, and not for the gate, to put in order: who goes first must find a place. */
#define DEPTH  3
#define LONGER (60 * WEIR_SEC) /* after the end, which we decide */

static int check(const struct live *l, const struct pshift_cluster_config *g, struct weir_err *err)
{
	const char *what = g->loss > 0    ? "loss"
			   : g->noise > 0 ? "noise"
			   : g->without   ? "without"
			   : g->cut_to > g->cut_from + 1 /* as of `kill` */
				   ? "cut"
				   : g->servers > LIVE_SERVERS / 2
					     ? "more than 32 servers" /* and as many clients */
					     : NULL;

	return what ? weir_err_set(
			      err, -EINVAL, "%s: cluster: cannot run live: %s", l->s->file, what)
		    : 0;
}

/* ---- files */

/* The first n servers. */
static void put_names(FILE *f, uint32_t n)
{
	fputs("[", f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "s%u, ", i + 1);
	fputs("]", f);
}

static void put_cluster(FILE *f, const struct live *l, const struct pshift_cluster_config *g)
{
	fprintf(f,
		"cluster:\n  key: \"%s/key\"\n  controller: \"unix:%s\"\n  period: %" PRId64
		"us\n  interval: ",
		l->dir, l->control.socket, (int64_t)(g->period / WEIR_US));
	if (g->interval)
		fprintf(f, "%" PRId64 "us\n", (int64_t)(g->interval / WEIR_US));
	else
		fputs("auto\n", f);
	if (!g->stand_in)
		fputs("  stand_in: false\n", f);
	fputs("  servers: ", f);
	put_names(f, g->servers);
	fputs("\n", f);
}

static void put_tenants(FILE *f, const struct pshift_cluster *c)
{
	double seconds = (double)c->config.period / (double)WEIR_SEC;

	fputs("tenants:\n", f);
	for (uint32_t i = 0; i < c->config.buckets; i++) {
		const struct pshift_bucket *b = &c->buckets[i];

		fprintf(f, "  - {name: b%u, match: {export: b%u}", i + 1, i + 1);
		if (c->config.control && b->reservation > 0)
			fprintf(f, ", min: %.17g iops", (double)b->reservation / seconds);
		if (c->config.control && b->limit != LEASE_NO_LIMIT)
			fprintf(f, ", max: %.17g iops", (double)b->limit / seconds);
		if (c->config.control && pshift_cluster_parts(c, i) < c->config.servers) {
			fputs(", servers: ", f);
			put_names(f, pshift_cluster_parts(c, i));
		}
		fputs("}\n", f);
	}
}

/* The back end inside the model, which only gives it its time. */
static void put_store(FILE *f, const struct live_server *v, const struct pshift_cluster_config *g)
{
	if (g->files)
		fprintf(f, "file:%s", v->data);
	else
		fprintf(f, "memory:%" PRIu64 " B", (uint64_t)g->buckets * REGION);
}

/* `place`: which of the servers it is. A bucket that is never there has no export. */
static void put_server(
	FILE *f, const struct live_server *v, size_t place, const struct pshift_cluster *c)
{
	const struct pshift_cluster_config *g = &c->config;

	fprintf(f, "listen: \"unix:%s\"\napi: \"unix:%s\"\nthreads: 1\nlog: warning\n", v->socket,
		v->api);
	fprintf(f, "resources:\n  - {name: \"%s\", back: \"model:server,rate=%.17g,service=fixed+",
		v->name, g->capacity);
	put_store(f, v, g);
	fprintf(f, "\", depth: %d, io_unit: 2 GiB, ", DEPTH);
	if (!g->learn)
		fprintf(f, "capacity: %.17g iops, ", g->capacity * g->guess);
	fprintf(f, "%s}\nexports:\n", g->control ? "controller: pshift" : "");
	for (uint32_t i = 0; i < g->buckets; i++)
		if (place < pshift_cluster_parts(c, i))
			fprintf(f, "  - {name: b%u, offset: %" PRIu64 " B, size: %u B}\n", i + 1,
				(uint64_t)i * REGION, REGION);
}

/* `server` NULL: the controller's. */
static int write_file(const struct live *l, const struct pshift_cluster *c,
	const struct live_server *server, struct weir_err *err)
{
	const char *path = server ? server->file : l->control.file;
	FILE *f;
	int r = files_create(path, &f, err);

	if (r < 0)
		return r;
	if (server)
		put_server(f, server, (size_t)(server - l->servers), c);
	else
		fprintf(f, "api: \"unix:%s\"\nlog: warning\n", l->control.api);
	if (c->config.control)
		put_cluster(f, l, &c->config);
	put_tenants(f, c);
	return files_close(f, path, 0, err);
}

/* Written, so that there is something to be read. */
static int write_data(const char *path, size_t bytes, struct weir_err *err)
{
	char *data = malloc(bytes);
	int r;

	if (!data)
		return no_memory(err);
	memset(data, 'w', bytes);
	r = files_write(path, data, bytes, err);
	free(data);
	return r;
}

static int add_servers(struct live *l, const struct pshift_cluster *c, struct weir_err *err)
{
	int r = 0;

	l->servers = calloc(c->config.servers, sizeof(*l->servers));
	if (!l->servers)
		return no_memory(err);
	for (uint32_t i = 0; r == 0 && i < c->config.servers; i++) {
		struct live_server *v = live_server_add(l, NULL, -1, i);

		if (live_text_add(&v->own_name, "s%u", i + 1) < 0)
			return no_memory(err);
		v->name = v->own_name;
		snprintf(v->data, LIVE_PATH, "%s/%u.data", l->dir, i);
		r = write_file(l, c, v, err);
		if (r == 0 && c->config.files)
			r = write_data(v->data, (size_t)c->config.buckets * REGION, err);
	}
	return r;
}

/* ---- clients: a process a server */

struct stay {           /* of a bucket at a server */
	weir_time from; /* -1: it is not there */
	uint32_t loop;
	double rate;
};

static int add_job(
	struct live *l, uint32_t server, uint32_t bucket, const struct stay *s, weir_time to)
{
	struct live_client *k = &l->clients[server];
	char want[64];

	if (s->loop)
		snprintf(want, sizeof(want), "depth=%u", s->loop);
	else
		snprintf(want, sizeof(want), "arrivals=%s,rate=%.17g",
			l->s->cluster->poisson ? "poisson" : "even", s->rate);
	k->jobs++;
	return live_words_add(&k->words,
		"b%u-%zu=nbd+unix:///b%u?socket=%s,%s,start=%" PRId64 "us,duration=%" PRId64 "us",
		bucket + 1, k->jobs, bucket + 1, l->servers[server].socket, want,
		(int64_t)(s->from / WEIR_US), (int64_t)((to - s->from) / WEIR_US));
}

/* What is otherwise now than it was becomes a job, or is noted. */
static int compare(struct live *l, const struct pshift_cluster *c, struct stay *stays, bool over)
{
	int r = 0;

	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t k = 0; r == 0 && k < c->sites[s].n; k++) {
			const struct pshift_place *p = &c->sites[s].places[k];
			struct stay *was = &stays[(size_t)s * c->config.buckets + p->bucket];
			bool same = was->from >= 0 && was->loop == p->loop && !over &&
				    was->rate >= p->rate && was->rate <= p->rate;

			if (same)
				continue;
			if (was->from >= 0 && (was->loop || was->rate > 0))
				r = add_job(l, s, p->bucket, was, c->now);
			*was = (struct stay){c->now, p->loop, p->rate};
		}
	return r;
}

static int add_jobs(struct live *l, struct pshift_cluster *c)
{
	size_t n = (size_t)c->config.servers * c->config.buckets;
	struct stay *stays = calloc(n + 1, sizeof(*stays));
	int r = stays ? 0 : -ENOMEM;

	for (size_t i = 0; stays && i < n; i++)
		stays[i].from = -1;
	if (r == 0)
		r = compare(l, c, stays, false);
	while (r == 0 && c->moves.n) {
		c->now = heap_min(&c->moves)->key;
		r = pshift_load_step(c);
		if (r == 0)
			r = compare(l, c, stays, false);
	}
	c->now = l->s->duration + LONGER;
	if (r == 0)
		r = compare(l, c, stays, true);
	free(stays);
	return r;
}

static int add_clients(struct live *l, struct pshift_cluster *c, struct weir_err *err)
{
	int r = 0;

	l->clients = calloc(c->config.servers, sizeof(*l->clients));
	if (!l->clients)
		return no_memory(err);
	l->n_clients = c->config.servers;
	for (uint32_t i = 0; r == 0 && i < c->config.servers; i++) {
		struct live_client *k = &l->clients[i];

		snprintf(k->name, sizeof(k->name), "of s%u", i + 1);
		snprintf(k->log, LIVE_PATH, "%s/c%u.log", l->dir, i);
		k->stop = WEIR_NEVER;
		if ((r = live_words_add(&k->words, "weir")) ||
			(r = live_words_add(&k->words, "load")) ||
			(r = live_words_add(&k->words, "--size=" SIZE)))
			break;
		r = live_words_add(&k->words, "--seed=%" PRIu64, (l->seed << 8) + i);
	}
	if (r == 0)
		r = add_jobs(l, c);
	return r < 0 ? no_memory(err) : 0;
}

int live_cluster_plan(
	struct live *l, const struct pshift_cluster_config *config, struct weir_err *err)
{
	struct pshift_cluster *c; /* a second one: its time is run through here */
	int r = check(l, config, err);

	if (r < 0)
		return r;
	snprintf(l->control.file, LIVE_PATH, "%s/control.yaml", l->dir);
	snprintf(l->control.socket, LIVE_PATH, "%s/control.sock", l->dir);
	snprintf(l->control.api, LIVE_PATH, "%s/control.api", l->dir);
	snprintf(l->control.log, LIVE_PATH, "%s/control.log", l->dir);
	r = pshift_cluster_new(config, l->s->duration, l->seed, &c);
	if (r < 0)
		return weir_err_set(err, r, "the cluster: %s", strerror(-r));
	r = live_control_key(l, err);
	if (r == 0)
		r = write_file(l, c, NULL, err);
	if (r == 0)
		r = add_servers(l, c, err);
	if (r == 0)
		r = add_clients(l, c, err);
	pshift_cluster_free(c);
	return r;
}

/* ---- start */

int live_cluster_start_control(struct live *l, struct weir_err *err)
{
	const char *argv[] = {"weir", "control", l->control.file, NULL};
	struct weir_err why;
	int r = peer_start(&l->control.peer, argv, -1, l->control.socket, l->control.log, &why);

	if (r < 0)
		return weir_err_set(err, r, "the controller: %s", why.text);
	return l->control.remote || remote_open(&verb_experiment, l->control.api, NULL, NULL,
					    &l->control.remote) < 0
		       ? 0
		       : weir_err_set(err, -EIO, "the API of the controller cannot be reached");
}

int live_cluster_start(
	struct live *l, const struct pshift_cluster_config *config, struct weir_err *err)
{
	int r = config->control ? live_cluster_start_control(l, err) : 0;

	for (size_t i = 0; r == 0 && i < l->n_servers; i++)
		r = live_server_start(&l->servers[i], err);
	return r;
}

int live_cluster_start_clients(struct live *l, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_clients; i++) {
		struct live_client *k = &l->clients[i];

		if (!k->jobs)
			continue; /* nobody wants anything of that server, ever */
		r = peer_start(&k->peer, (const char *const *)k->words.word, -1, NULL, k->log, err);
		if (r == 0)
			k->state = LIVE_RUNS;
	}
	return r;
}
