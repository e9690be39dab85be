/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-cluster: the cost of the messages between servers and their controller, pShift §IV-E: eight
 * servers, 200 buckets, QoS periods of one second with five rounds each.
 *
 * METHOD  The controller is `weir control`, a separate process, over TCP. The servers are eight
 *         control/pshift/server of this process, each with its own connection
 *         (serve/lease/lease-link), without clients: a bucket's requests come at random (Poisson),
 *         and a tenth of the buckets change their demand every period. The worst case is measured,
 *         too: the demand of all buckets changes at every report, so that every report contains all
 *         of them. "Communicating" is all the processor time of the controller in a period,
 *         including the placement of tokens, plus that of one server for its messages (the time of
 *         this process, without the simulated gates, over eight): nothing waits for it. (The
 *         paper's 9 ms of a period of 1 s are its "communication"; it does not say more.) The way
 *         of a report is the time from its sending until a grant that answers it is received.
 */
#include "base/container.h"
#include "control/pshift/server.h"
#include "serve/lease/lease-link.h"
#include "serve/loop/log.h"
#include "serve/loop/stream.h"
#include "bench/bench.h"
#include "cli/common/files.h"
#include "cli/common/process.h"
#include "base/rng.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SERVERS = 8, BUCKETS = 200, ACTIVE = 3 }; /* servers at which a bucket is active */
#define PERIOD   WEIR_SEC
#define INTERVAL (200 * WEIR_MS)
#define CAPACITY 50000 /* per second, as the paper's servers */
#define CLUSTER  "bench"

struct server {
	struct cluster *cluster;
	char name[16];
	struct pshift_server *server;
	struct lease_link *link;
	struct lease_message message;
	struct loop_timer timer;
	struct cluster_server_load loads[BUCKETS];
	int64_t tokens[BUCKETS]; /* at the simulated gate */
	double rate[BUCKETS];    /* demand of each, per second */
	weir_time looked;
	size_t n;
	weir_time sent; /* time of its last report */
	uint64_t sequence;
};

struct cluster {
	char dir[FILES_SCRATCH], address[64];
	struct loop *loop;
	struct peer_key key;
	struct lease_conn_stats stats;
	struct server servers[SERVERS];
	struct rng rng;
	bool all; /* worst case: all buckets change in every report */
	struct loop_timer end;
	struct peer controller;
	uint64_t reports, grants;
	weir_time looking; /* processor time that is not for messages */
	double way;        /* s, sum over all reports that were answered */
	uint64_t ways;
};

/* ---- a server */

static void add_tokens(void *arg, size_t index, int64_t r, int64_t l)
{
	((struct server *)arg)->tokens[index] += r + l;
}

static void send_report(void *arg, const struct lease_message *m)
{
	struct server *s = arg;
	weir_time before = bench_cpu_clock();
	uint8_t *frame = malloc(LEASE_FRAME(m->n));

	if (frame && lease_link_send(s->link, frame, lease_write(frame, m)) == 0) {
		s->sent = loop_clock();
		s->sequence = m->sequence;
		s->cluster->reports++;
	}
	free(frame);
	s->cluster->looking -= bench_cpu_clock() - before;
}

/* Return a Poisson number, approximately. */
static uint64_t arrivals(struct rng *r, double mean)
{
	double n = mean + sqrt(mean) * rng_normal(r);

	return n > 0 ? (uint64_t)(n + 0.5) : 0;
}

/* Draw the demand of all buckets, or of a tenth of them: up to twice their part of the server. */
static void draw_rates(struct server *s, bool all)
{
	for (size_t i = 0; i < s->n; i++)
		if (all || rng_below(&s->cluster->rng, 10) == 0)
			s->rate[i] = 2 * rng_double(&s->cluster->rng) * CAPACITY / (double)s->n;
}

/* Serve the buckets as far as they have tokens, and report. A queue is cut to one period's
 * demand. */
static void serve_and_report(struct server *s)
{
	weir_time now = loop_clock(), before = bench_cpu_clock();
	double span = (double)(now - s->looked) / 1e9;

	if (s->cluster->all || now / PERIOD != s->looked / PERIOD)
		draw_rates(s, s->cluster->all);
	s->looked = now;
	for (size_t i = 0; i < s->n; i++) {
		struct cluster_server_load *l = &s->loads[i];
		uint64_t served = s->tokens[i] > 0 ? (uint64_t)s->tokens[i] : 0, came;

		if (served > l->queued)
			served = l->queued;
		l->served += served;
		s->tokens[i] -= (int64_t)served;
		l->queued -= served;
		came = arrivals(&s->cluster->rng, s->rate[i] * span);
		l->arrived += came;
		l->queued += came;
		if ((double)l->queued > s->rate[i])
			l->queued = (uint64_t)s->rate[i];
	}
	pshift_server_look(s->server, now, s->loads, CAPACITY);
	s->cluster->looking += bench_cpu_clock() - before;
	loop_set(s->cluster->loop, &s->timer, pshift_server_due(s->server));
}

static void timer_due(struct loop_timer *t, weir_time now)
{
	serve_and_report(container_of(t, struct server, timer));
}

static void receive_message(void *arg, struct lease_message *m)
{
	struct server *s = arg;
	struct cluster *c = s->cluster;
	weir_time now = loop_clock();

	if (pshift_server_receive(s->server, now, m) == PEER_TAKEN && m->kind == LEASE_GRANT) {
		c->grants++;
		if (s->sent && m->grant.heard >= s->sequence) {
			c->way += (double)(now - s->sent) / 1e9;
			c->ways++;
			s->sent = 0;
		}
	}
}

static void bucket_name(char text[32], unsigned i)
{
	snprintf(text, 32, "b%u", i);
}

/* Return true if the bucket is active at the server: bucket i is at servers i, i + 1, … of the
 * ring. */
static bool is_at(unsigned bucket, unsigned server)
{
	return (server + SERVERS - bucket % SERVERS) % SERVERS < ACTIVE;
}

static int server_start(struct cluster *c, unsigned at)
{
	struct server *s = &c->servers[at];
	struct cluster_server_config config = {.name = s->name,
		.cluster = peer_hash(CLUSTER),
		.instance = at + 1,
		.length = PERIOD,
		.fresh = true,
		.tolerance = c->all ? -1 : 0,
		.grant = add_tokens,
		.send = send_report,
		.arg = s};
	struct lease_link_config link = {.address = c->address,
		.conn = {.loop = c->loop,
			.key = &c->key,
			.cluster = peer_hash(CLUSTER),
			.instance = 1000 + at,
			.name = s->name,
			.entries = LEASE_ENTRIES_MAX,
			.stats = &c->stats,
			.message = &s->message},
		.receive = receive_message,
		.arg = s};
	int r;

	s->cluster = c;
	s->timer.due = timer_due;
	snprintf(s->name, sizeof(s->name), "s%u", at);
	r = pshift_server_new(&config, &s->server);
	for (unsigned i = 0; r == 0 && i < BUCKETS; i++) {
		struct cluster_server_bucket b = {
			.reserved = CAPACITY / BUCKETS / 2, .limit = CAPACITY / BUCKETS};
		char text[32];

		bucket_name(text, i);
		b.id = peer_hash(text);
		if (is_at(i, at) && pshift_server_add(s->server, &b, 0) < 0)
			r = -ENOMEM;
		s->n += is_at(i, at);
	}
	draw_rates(s, true);
	s->looked = loop_clock();
	if (r == 0)
		r = lease_link_new(&link, &s->link);
	return r < 0 ? r : loop_set(c->loop, &s->timer, loop_clock() + at * INTERVAL / SERVERS);
}

/* ---- the controller */

static int write_policy(const struct cluster *c, const char *path, struct weir_err *err)
{
	FILE *f;
	int r = files_create(path, &f, err);

	if (r < 0)
		return r;
	fprintf(f,
		"cluster: {name: %s, key: %s/key, controller: \"%s\", period: 1s, "
		"interval: 200ms, listen: [\"%s\", \"unix:%s/c.sock\"], servers: [",
		CLUSTER, c->dir, c->address, c->address, c->dir);
	for (unsigned s = 0; s < SERVERS; s++)
		fprintf(f, "%ss%u", s ? ", " : "", s);
	fputs("]}\ntenants:\n", f);
	for (unsigned i = 0; i < BUCKETS; i++) {
		fprintf(f, "  - {name: b%u, min: %d iops, max: %d iops, servers: [", i,
			ACTIVE * (CAPACITY / BUCKETS / 2), ACTIVE * (CAPACITY / BUCKETS));
		for (unsigned k = 0; k < ACTIVE; k++)
			fprintf(f, "%ss%u", k ? ", " : "", (i + k) % SERVERS);
		fputs("]}\n", f);
	}
	return files_close(f, path, 0, err);
}

/* Find a free port of this machine. */
static int find_address(struct cluster *c, struct weir_err *err)
{
	int fd, r = stream_listen("tcp:127.0.0.1:0", &fd, err);
	char *address;

	if (r < 0)
		return r;
	address = stream_listening(fd, "tcp:127.0.0.1:0");
	close(fd);
	if (!address)
		return -ENOMEM;
	snprintf(c->address, sizeof(c->address), "%s", address);
	free(address);
	return 0;
}

static int controller_start(struct cluster *c, struct weir_err *err)
{
	char policy[96], socket[96], log[96], key[96];
	const char *argv[] = {"weir", "control", "--log-level", "warning", policy, NULL};
	int r;

	snprintf(policy, sizeof(policy), "%s/control.yaml", c->dir);
	snprintf(socket, sizeof(socket), "%s/c.sock", c->dir);
	snprintf(log, sizeof(log), "%s/log", c->dir);
	snprintf(key, sizeof(key), "%s/key", c->dir);
	r = find_address(c, err);
	if (r == 0)
		r = files_write_key(key, err);
	if (r == 0)
		r = write_policy(c, policy, err);
	if (r == 0)
		r = peer_key_read(key, CLUSTER, &c->key, err);
	return r < 0 ? r : peer_start(&c->controller, argv, -1, socket, log, err);
}

/* ---- a run */

static void end_due(struct loop_timer *t, weir_time now)
{
	loop_stop((container_of(t, struct cluster, end))->loop);
}

static int run_for(struct cluster *c, weir_time span)
{
	c->end.due = end_due;
	loop_set(c->loop, &c->end, loop_clock() + span);
	return loop_run(c->loop);
}

static void clear_counts(struct cluster *c)
{
	c->looking = 0;
	c->reports = c->grants = c->ways = 0;
	c->way = 0;
	c->stats = (struct lease_conn_stats){0};
}

static void cluster_free(struct cluster *c)
{
	for (unsigned i = 0; i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		loop_set(c->loop, &s->timer, WEIR_NEVER);
		lease_link_free(s->link);
		pshift_server_free(s->server);
		lease_message_free(&s->message);
	}
	peer_stop(&c->controller);
	files_remove_scratch(c->dir);
	loop_free(c->loop);
	peer_key_forget(&c->key);
	free(c);
}

enum { SHARE, CONTROLLER, SERVER, WAY, REPORTS, GRANTS, BYTES, ROWS };

static int measure_periods(struct cluster *c, unsigned periods, struct bench_samples *rows)
{
	weir_time before, busy;
	int r = run_for(c, 3 * PERIOD); /* until all servers are connected */

	clear_counts(c);
	before = peer_cpu(&c->controller);
	busy = bench_cpu_clock();
	if (r == 0)
		r = run_for(c, periods * PERIOD);
	if (r < 0)
		return r;
	busy = (bench_cpu_clock() - busy - c->looking) / SERVERS;
	before = peer_cpu(&c->controller) - before;
	if (!c->grants || !c->ways)
		return -ETIMEDOUT;
	bench_sample(&rows[SHARE], 100.0 * (double)(before + busy) / (double)(periods * PERIOD));
	bench_sample(&rows[CONTROLLER], (double)before / 1e6 / periods);
	bench_sample(&rows[SERVER], (double)busy / 1e6 / periods);
	bench_sample(&rows[WAY], c->way / (double)c->ways * 1e3);
	bench_sample(&rows[REPORTS], (double)c->reports / periods);
	bench_sample(&rows[GRANTS], (double)c->grants / periods);
	bench_sample(&rows[BYTES],
		(double)(c->stats.sent_bytes + c->stats.received_bytes) / 1024 / periods);
	return 0;
}

static int one_run(bool all, unsigned periods, struct bench_samples *rows, struct weir_err *err)
{
	struct cluster *c = calloc(1, sizeof(*c));
	int r = c ? loop_new(&c->loop) : -ENOMEM;

	if (r < 0) {
		free(c);
		return r;
	}
	rng_init(&c->rng, 1, "cluster");
	c->all = all;
	r = files_make_scratch("bench", c->dir, err);
	if (r == 0)
		r = controller_start(c, err);
	for (unsigned i = 0; r == 0 && i < SERVERS; i++)
		r = server_start(c, i);
	if (r == 0)
		r = measure_periods(c, periods, rows);
	cluster_free(c);
	return r;
}

int bench_cluster(struct bench *b, struct weir_err *err)
{
	struct bench_samples rows[ROWS] = {0}, most[ROWS] = {0};
	int r = 0;

	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	for (unsigned i = 0; r == 0 && i < b->runs; i++) {
		r = one_run(false, b->quick ? 2 : 10, rows, err);
		if (r == 0)
			r = one_run(true, b->quick ? 2 : 10, most, err);
	}
	if (r < 0)
		return r;
	bench_add(b, "control, 8 x 200: communicating, of a period", "%", &rows[SHARE], "<= 0.5");
	bench_add(b, "  the controller, a period of 1 s", "ms", &rows[CONTROLLER], NULL);
	bench_add(b, "  a server, a period", "ms", &rows[SERVER], NULL);
	bench_add(b, "  a report until its grant is taken", "ms", &rows[WAY], NULL);
	bench_add(b, "  reports a period", "", &rows[REPORTS], NULL);
	bench_add(b, "  grants a period", "", &rows[GRANTS], NULL);
	bench_add(b, "  of both", "KiB", &rows[BYTES], NULL);
	bench_add(b, "the same, all is new at every report", "%", &most[SHARE], NULL);
	bench_add(b, "  reports a period, all new", "", &most[REPORTS], NULL);
	bench_add(b, "  grants a period, all new", "", &most[GRANTS], NULL);
	return 0;
}
