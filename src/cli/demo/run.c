/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run: run a gateway as a child process with three loads, and apply the policy half-way.
 *
 * The loads run on a separate thread over real NBD connections and never stop; only the policy
 * changes, applied to the running gateway over its API as by `weir policy apply`.
 */
#include "cli/demo/demo.h"
#include "cli/common/files.h"
#include "cli/common/process.h"
#include "cli/view/view.h"
#include "load/load.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define INTERVAL (500 * WEIR_MS) /* between two points of the chart */
#define LOOK     (250 * WEIR_MS) /* between two drawings */
/* Requests sent before the policy was applied stay in the array's queue for a moment longer. */
#define SETTLE 1.0 /* s */

#define STAY (7 * 86400 * WEIR_SEC) /* with --stay: as good as no end */

const char *const demo_tenants[DEMO_TENANTS] = {"db", "web", "backup"};

struct run {
	const struct demo_plan *plan;
	pthread_mutex_t lock; /* protects d, which the load's thread fills */
	struct demo *d;
	struct load *load;
	char dir[FILES_SCRATCH], socket[64], api[64];
	char uri[DEMO_TENANTS][128];
	struct load_job jobs[DEMO_TENANTS];
	struct remote *remote;
	bool done; /* under lock: the load has ended */
	int status;
};

/* ---- the loads */

/* Two loads with few and small requests, and one with 64 large requests always under way. */
static void make_jobs(struct run *r)
{
	static const struct {
		double rate;
		uint32_t depth, bytes;
	} kinds[DEMO_TENANTS] = {{300, 1024, 8 << 10}, {200, 1024, 16 << 10}, {0, 64, 64 << 10}};

	for (size_t i = 0; i < DEMO_TENANTS; i++) {
		struct load_job *j = &r->jobs[i];

		load_job_default(j);
		snprintf(r->uri[i], sizeof(r->uri[i]), "nbd+unix:///%s?socket=%s", demo_tenants[i],
			r->socket);
		j->name = demo_tenants[i];
		j->uri = r->uri[i];
		j->rate = kinds[i].rate;
		j->depth = kinds[i].depth;
		j->sizes[0] = (struct load_size){.bytes = kinds[i].bytes, .share = 1};
		j->n_sizes = 1;
		j->reads = 1;
		j->seed = r->plan->seed + i;
		j->duration = (weir_time)(2 * r->plan->seconds * 1e9);
		j->requests = UINT64_MAX;
	}
}

/* On the load's thread: record the results of one tenant in an interval. */
static void record_interval(void *arg, const struct load_interval *i)
{
	struct run *r = arg;
	struct demo_tenant *t = &r->d->tenant[i->job];
	double at = (double)i->at / 1e9, span = (double)i->span / 1e9;

	pthread_mutex_lock(&r->lock);
	double mark = r->d->mark;

	r->d->elapsed = at;
	t->iops = (double)i->requests / span;
	/*
	 * The last interval ends with the load: a short one would be a point next to the previous
	 * one.
	 */
	if (i->latency->count && i->span >= INTERVAL / 2 && t->n < DEMO_POINTS)
		t->p99[t->n++] = (struct metrics_point){
			at, (double)weir_hist_percentile(i->latency, 99) / 1e6};
	/* An interval counts for a phase if it lies in it completely, after the time to settle. */
	int phase = mark == 0 ? DEMO_WITHOUT : at - span > mark + SETTLE ? DEMO_WITH : -1;

	if (phase >= 0 && at - span > SETTLE) {
		weir_hist_merge(&t->phase[phase].latency, i->latency);
		t->phase[phase].requests += i->requests;
		t->phase[phase].seconds += span;
	}
	pthread_mutex_unlock(&r->lock);
}

static void *load_thread(void *arg)
{
	struct run *r = arg;
	int status = load_run(r->load);

	pthread_mutex_lock(&r->lock);
	r->status = status;
	r->done = true;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- the gateway */

/* Find a port of loopback that is free now, for the page: a browser opens no unix socket. */
static unsigned free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0 &&
		     getsockname(fd, (struct sockaddr *)&at, &len) == 0;

	if (fd >= 0)
		close(fd);
	return found ? ntohs(at.sin_port) : 0;
}

/* Choose the page's address and token, and write the token's file. */
static int make_page(struct run *r, const char *file, unsigned *ret_port, struct weir_err *err)
{
	unsigned char random[16];

	*ret_port = free_port();
	if (!*ret_port || getrandom(random, sizeof(random), 0) != sizeof(random))
		return weir_err_set(err, -EIO, "no free port of 127.0.0.1");
	snprintf(r->d->page, sizeof(r->d->page), "http://127.0.0.1:%u/", *ret_port);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(r->d->token + 2 * i, 3, "%02x", random[i]);
	int status = files_write(file, r->d->token, strlen(r->d->token), err);

	return status == 0 && chmod(file, 0600) < 0 ? weir_err_set(err, -errno, "%s", file)
						    : status;
}

static int start_gateway(struct run *r, struct peer *p, struct weir_err *err)
{
	char listen[80], api[128], token[80];
	const char *argv[] = {"weir", "serve", "--listen", listen, "--api", api, "--token-file",
		token, "--log-level", "warning", r->plan->before, NULL};
	unsigned port;

	int status = files_make_scratch("demo", r->dir, err);

	if (status < 0)
		return status;
	snprintf(token, sizeof(token), "%s/token", r->dir);
	status = make_page(r, token, &port, err);
	if (status < 0)
		return status;
	snprintf(r->socket, sizeof(r->socket), "%s/nbd.sock", r->dir);
	snprintf(r->api, sizeof(r->api), "%s/api.sock", r->dir);
	snprintf(listen, sizeof(listen), "unix:%s", r->socket);
	snprintf(api, sizeof(api), "unix:%s,tcp:127.0.0.1:%u", r->api, port);
	status = peer_start(p, argv, -1, r->socket, NULL, err);

	if (status == 0 && remote_open(&verb_demo, r->api, NULL, NULL, NULL, &r->remote) >= 0)
		status = weir_err_set(err, -EIO, "the gateway's API cannot be reached");
	return status;
}

static int apply_policy(struct run *r, struct weir_err *err)
{
	json_t *reply;
	char *text;
	size_t len;
	int status = files_read(r->plan->after, FILES_WRITTEN, &text, &len, err);

	if (status < 0)
		return status;
	status = remote_try(r->remote, "PUT", "/v1/policy", text, len, &reply, err);
	free(text);
	if (status == 0)
		json_decref(reply);
	return status;
}

static int get_status(struct run *r, json_t **ret, struct weir_err *err)
{
	return remote_try(r->remote, "GET", VIEW_PATH, NULL, 0, ret, err);
}

/* ---- the run */

/*
 * Show the progress, apply the policy half-way, and read the status at the right times. Return
 * false when the load has ended.
 */
static bool demo_step(struct run *r, int *status, struct weir_err *err)
{
	struct demo *d = r->d;

	pthread_mutex_lock(&r->lock);
	bool half = d->mark == 0 && d->elapsed >= r->plan->seconds, done = r->done;
	bool settled = d->mark > 0 && !d->start && d->elapsed >= d->mark + SETTLE;
	bool near = d->elapsed >= 2 * r->plan->seconds - 2 * (double)INTERVAL / 1e9;

	if (r->plan->look)
		r->plan->look(d);
	pthread_mutex_unlock(&r->lock);
	if (half) {
		*status = apply_policy(r, err);
		pthread_mutex_lock(&r->lock);
		d->mark = d->elapsed;
		pthread_mutex_unlock(&r->lock);
	} else if (settled) {
		*status = get_status(r, &d->start, err);
	} else if (near && d->start && !d->end) {
		*status = get_status(r, &d->end, err);
	}
	return !done;
}

static int run_load(struct run *r, struct weir_err *err)
{
	struct load_options o = {.interval = INTERVAL, .tick = record_interval, .arg = r};
	pthread_t thread;
	int status = load_new(r->jobs, DEMO_TENANTS, &o, &r->load, err);

	if (status < 0)
		return status;
	int failed = pthread_create(&thread, NULL, load_thread, r);

	if (failed) {
		load_free(r->load);
		return weir_err_set(err, -failed, "no thread: %s", strerror(failed));
	}
	while (status == 0 && demo_step(r, &status, err))
		process_pause(LOOK);
	if (status < 0)
		load_stop(r->load);
	pthread_join(thread, NULL);
	if (status == 0)
		status = r->status;
	for (size_t i = 0; status == 0 && i < DEMO_TENANTS; i++) {
		const struct load_result *result = load_result(r->load, i);

		if (result->fault[0] || result->n_errors)
			status = weir_err_set(err, -EIO, "%s: %s", result->name,
				result->fault[0] ? result->fault : "requests failed");
	}
	load_free(r->load);
	if (status == 0 && (!r->d->start || !r->d->end))
		status = weir_err_set(
			err, -EIO, "the machine was too busy to read the gateway's status");
	return status;
}

/* Load the gateway until SIGINT or SIGTERM. */
static int stay(struct run *r, struct weir_err *err)
{
	struct load_options o = {0};
	pthread_t thread;
	sigset_t ends;
	int status, sig;

	for (size_t i = 0; i < DEMO_TENANTS; i++)
		r->jobs[i].duration = STAY;
	status = load_new(r->jobs, DEMO_TENANTS, &o, &r->load, err);
	if (status < 0)
		return status;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	status = -pthread_create(&thread, NULL, load_thread, r);
	if (status == 0) {
		sigwait(&ends, &sig);
		load_stop(r->load);
		pthread_join(thread, NULL);
	}
	load_free(r->load);
	return status < 0 ? weir_err_set(err, status, "no thread: %s", strerror(-status)) : 0;
}

int demo_run(const struct demo_plan *p, struct demo *d, struct weir_err *err)
{
	struct run r = {.plan = p, .d = d};
	struct peer gateway = {0};

	for (size_t i = 0; i < DEMO_TENANTS; i++)
		for (size_t k = 0; k < DEMO_PHASES; k++)
			weir_hist_clear(&d->tenant[i].phase[k].latency);
	pthread_mutex_init(&r.lock, NULL);
	int status = start_gateway(&r, &gateway, err);

	if (status == 0) {
		p->started(d);
		make_jobs(&r);
		status = run_load(&r, err);
	}
	if (status == 0)
		status = p->measured(p->arg, d, err);
	if (status == 0 && p->stay)
		status = stay(&r, err);
	remote_close(r.remote);
	peer_stop(&gateway);
	files_remove_scratch(r.dir);
	pthread_mutex_destroy(&r.lock);
	return status;
}

void demo_free(struct demo *d)
{
	json_decref(d->start);
	json_decref(d->end);
}
