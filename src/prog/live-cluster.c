/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-cluster: a scenario's `cluster:` as servers with their controller (weir control) and clients.
 *
 *   scenario                 live
 *   a server                 weir serve, its back end a model of a server of that capacity
 *   the controller           weir control; from `kill` on it is gone, killed by SIGKILL
 *   a bucket at a server     a job of weir load, of which there is one process a server
 *
 * METHOD  Who wants what where, and when that changes, is drawn by the simulator's own code, from the same
 *         seed; so is judged what they got (sim/pshift-cluster.h): a struct pshift_cluster is kept beside
 *         the processes, and in the place of its simulated servers the real ones are asked. What a server
 *         counts to a period is its own word (`used`); the last look before the period ends is what is
 *         judged. So looks crowd around the time at which the next period is due: as of the look
 *         before it, that is known to 20 ms.
 * DIFFERS Requests of the last 20 ms of a period may be missing. Without a controller (`control: false`)
 *         periods are our own clock's, and counters are compared.
 */
#include "prog/live-cluster.h"
#include "port/loop.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS "/v1/status"
#define SLOW   (250 * WEIR_MS) /* between looks when nothing is due */
#define FAST   (20 * WEIR_MS)  /* … and when a period is about to end */
#define EARLY  (10 * WEIR_MS)
#define START  (30 * WEIR_SEC) /* until everything runs, and some periods more */

struct cluster {
	struct live *live;
	struct pshift_cluster *frame;
	struct seen { /* of one server */
		uint64_t period;
		uint64_t *used; /* by bucket: of that period; without a controller: in all */
		uint64_t *done; /* … of the one before */
		bool turned;    /* the period that is collected is over for it */
	} * seen;
	uint64_t collected;             /* the period of which `done` is awaited; 0: none yet */
	weir_time before;               /* the last look at which nobody had turned */
	weir_time turned;               /* when the first had; 0: none has */
	weir_time looked;               /* the last look */
	uint64_t messages[2], bytes[2]; /* of the controller that runs, when it was last asked */
};

/* ---- looks */

static int bucket_of(const struct cluster *k, const json_t *tenant)
{
	const char *name = json_string_value(tenant);
	long i = name && name[0] == 'b' ? strtol(name + 1, NULL, 10) : 0;

	return i >= 1 && i <= (long)k->frame->config.buckets ? (int)i - 1 : -1;
}

/* Of a server under control: the period, and what each bucket used in it. */
static void take_leases(struct cluster *k, struct seen *s, const json_t *pshift)
{
	const json_t *leases = json_object_get(pshift, "leases");
	uint64_t period = (uint64_t)json_integer_value(json_object_get(pshift, "period"));

	if (period != s->period) {
		memcpy(s->done, s->used, k->frame->config.buckets * sizeof(*s->done));
		s->turned = s->period == k->collected;
		s->period = period;
	}
	for (size_t i = 0; i < json_array_size(leases); i++) {
		const json_t *l = json_array_get(leases, i);
		int b = bucket_of(k, json_object_get(l, "tenant"));

		if (b >= 0)
			s->used[b] = (uint64_t)json_integer_value(json_object_get(l, "used"));
	}
}

static void take_tenants(struct cluster *k, uint32_t server, const json_t *tenants)
{
	struct seen *s = &k->seen[server];

	for (size_t i = 0; i < json_array_size(tenants); i++) {
		const json_t *t = json_array_get(tenants, i);
		int b = bucket_of(k, json_object_get(t, "path"));
		struct pshift_place *p =
			b < 0 ? NULL : pshift_cluster_place(k->frame, (uint32_t)b, server);

		if (!p)
			continue;
		p->arrived = (uint64_t)json_integer_value(json_object_get(t, "arrivals"));
		p->queued = (uint64_t)json_integer_value(json_object_get(t, "queued"));
		if (!k->frame->config.control)
			s->used[b] = (uint64_t)json_integer_value(json_object_get(t, "served"));
	}
}

static int look(struct cluster *k, struct weir_err *err)
{
	for (uint32_t i = 0; i < k->frame->config.servers; i++) {
		struct live_server *v = &k->live->servers[i];
		struct weir_err why;
		const json_t *resource;
		json_t *now;
		int r = remote_try(v->remote, "GET", STATUS, NULL, 0, &now, &why);

		if (r < 0)
			return weir_err_set(err, r, "the gateway of '%s': %s", v->name, why.text);
		resource = json_array_get(json_object_get(now, "resources"), 0);
		if (k->frame->config.control)
			take_leases(k, &k->seen[i], json_object_get(resource, "pshift"));
		take_tenants(k, i, json_object_get(now, "tenants"));
		json_decref(now);
	}
	return 0;
}

/* What a counter of the controller has grown by; one that was started again begins at 0. */
static void grew(const json_t *now, uint64_t *last, uint64_t *total)
{
	uint64_t n = (uint64_t)json_integer_value(now);

	*total += n >= *last ? n - *last : n;
	*last = n;
}

/* The messages to the controller and from it, as far as it can be asked. */
static void ask_control(struct cluster *k)
{
	struct pshift_cluster *c = k->frame;
	const json_t *m;
	json_t *now;

	if (!c->config.control ||
		remote_try(k->live->control.remote, "GET", STATUS, NULL, 0, &now, NULL) < 0)
		return;
	m = json_object_get(now, "messages");
	grew(json_object_get(json_object_get(m, "received"), "taken"), &k->messages[0],
		&c->messages[0]);
	grew(json_object_get(m, "received_bytes"), &k->bytes[0], &c->bytes[0]);
	grew(json_object_get(m, "sent"), &k->messages[1], &c->messages[1]);
	grew(json_object_get(m, "sent_bytes"), &k->bytes[1], &c->bytes[1]);
	json_decref(now);
}

/* ---- periods */

/* What the servers served in the period goes to the places, and the judge has its say. */
static int judge(struct cluster *k)
{
	const struct pshift_cluster_config *g = &k->frame->config;

	for (uint32_t s = 0; s < g->servers; s++)
		for (uint32_t b = 0; b < g->buckets; b++) {
			struct pshift_place *p;

			if (!k->seen[s].done[b])
				continue;
			p = pshift_cluster_place(k->frame, b, s);
			if (!p)
				return -ENOMEM;
			p->served += k->seen[s].done[b];
			k->frame->served += k->seen[s].done[b];
		}
	ask_control(k);
	return pshift_judge_period(k->frame);
}

/* Which of the servers are past the period that is collected. */
static size_t past(const struct cluster *k)
{
	size_t n = 0;

	for (uint32_t s = 0; s < k->frame->config.servers; s++)
		n += k->seen[s].turned;
	return n;
}

static uint64_t latest(const struct cluster *k)
{
	uint64_t period = 0;

	for (uint32_t s = 0; s < k->frame->config.servers; s++)
		period = k->seen[s].period > period ? k->seen[s].period : period;
	return period;
}

/* Under control: a period is judged when it is over for all, or was for the first a while ago (one that is
 * behind has nothing to say of it then). */
static int follow(struct cluster *k, weir_time now)
{
	uint32_t servers = k->frame->config.servers;
	size_t n = past(k);
	int r = 0;

	if (!k->collected) {
		k->collected = latest(k);
		k->before = now;
		return 0;
	}
	if (n == 0) {
		k->before = now;
		return 0;
	}
	if (!k->turned)
		k->turned = now;
	if (n < servers && now - k->turned < k->frame->config.period / 4)
		return 0;
	for (uint32_t s = 0; s < servers; s++)
		if (!k->seen[s].turned)
			memset(k->seen[s].done, 0,
				k->frame->config.buckets * sizeof(*k->seen[s].done));
	r = judge(k);
	for (uint32_t s = 0; s < servers; s++)
		k->seen[s].turned = false;
	k->collected = latest(k);
	k->turned = 0;
	return r;
}

/* Without: by the clock. `used` counts from the start, `done` is what it was. */
static int count(struct cluster *k, weir_time now)
{
	const struct pshift_cluster_config *g = &k->frame->config;
	int r = 0;

	if (now - k->before < g->period)
		return 0;
	k->before += g->period;
	for (uint32_t s = 0; s < g->servers; s++) {
		uint64_t *total = k->seen[s].used, *last = k->seen[s].done;

		for (uint32_t b = 0; b < g->buckets; b++)
			last[b] = total[b] - last[b];
	}
	r = judge(k);
	for (uint32_t s = 0; s < g->servers; s++)
		memcpy(k->seen[s].done, k->seen[s].used, g->buckets * sizeof(*k->seen[s].done));
	return r;
}

/* When to look next. */
static weir_time next_of(const struct cluster *k, weir_time now)
{
	weir_time due = k->before + k->frame->config.period - EARLY;

	if (!k->frame->config.control)
		return due + EARLY;
	if (k->turned || now >= due)
		return now + FAST;
	return now + SLOW < due ? now + SLOW : due;
}

static int step(struct cluster *k, weir_time now, struct weir_err *err)
{
	struct pshift_cluster *c = k->frame;
	int r;

	/* A place that wants something has wanted it since the last look. */
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t i = 0; i < c->sites[s].n; i++)
			if (c->sites[s].places[i].loop)
				c->sites[s].places[i].open += now - k->looked;
	k->looked = now;
	c->now = now;
	r = pshift_load_step(c);
	if (r < 0)
		return weir_err_set(err, r, "the cluster's demand: %s", strerror(-r));
	r = look(k, err);
	if (r < 0)
		return r;
	r = c->config.control ? follow(k, now) : count(k, now);
	return r < 0 ? weir_err_set(err, r, "a period: %s", strerror(-r)) : 0;
}

/* ---- the start */

/* Whether a server holds a lease, and may serve every bucket: one that starts does not know what was
 * served before it, and has nothing to give for some periods. */
static bool is_ready(const json_t *status)
{
	const json_t *resource = json_array_get(json_object_get(status, "resources"), 0);
	const json_t *pshift = json_object_get(resource, "pshift");
	const json_t *leases = json_object_get(pshift, "leases");
	const char *state = json_string_value(json_object_get(pshift, "state"));

	if (!state || strcmp(state, "leased") != 0)
		return false;
	for (size_t i = 0; i < json_array_size(leases); i++) {
		const json_t *cap = json_object_get(json_array_get(leases, i), "cap");

		if (json_is_integer(cap) && json_integer_value(cap) == 0)
			return false;
	}
	return true;
}

/* 1: all of them; 0: not yet. Without a controller each serves whom it likes. */
static int all_ready(struct cluster *k, struct weir_err *err)
{
	int ready = 1;

	for (uint32_t i = 0; k->frame->config.control && i < k->frame->config.servers; i++) {
		json_t *now;
		int r = remote_try(k->live->servers[i].remote, "GET", STATUS, NULL, 0, &now, err);

		if (r < 0)
			return r;
		ready &= is_ready(now);
		json_decref(now);
	}
	return ready;
}

static int all_asked(struct cluster *k, struct weir_err *err)
{
	const struct pshift_cluster *c = k->frame;
	int r = look(k, err);

	if (r < 0)
		return r;
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t i = 0; i < c->sites[s].n; i++)
			if ((c->sites[s].places[i].loop || c->sites[s].places[i].rate > 1) &&
				!c->sites[s].places[i].arrived)
				return 0;
	return 1;
}

/* Waits for it. */
static int wait_until(struct cluster *k, int (*is)(struct cluster *k, struct weir_err *err),
	const char *what, struct weir_err *err)
{
	weir_time until = loop_clock() + START + 10 * k->frame->config.period;
	int r = 0;

	while (r == 0) {
		if (live_interrupted())
			return -ECANCELED;
		r = live_check(k->live, err);
		if (r == 0)
			r = is(k, err);
		if (r == 0 && loop_clock() > until)
			return weir_err_set(err, -ETIMEDOUT, "%s", what);
		if (r == 0)
			live_sleep_until(loop_clock() + FAST);
	}
	return r < 0 ? r : 0;
}

static int begin(struct cluster *k, struct weir_err *err)
{
	int r = live_cluster_start(k->live, err);

	if (r == 0)
		r = wait_until(
			k, all_ready, "the servers are given nothing by the controller", err);
	if (r == 0)
		r = live_cluster_start_clients(k->live, err);
	if (r == 0)
		r = wait_until(k, all_asked, "there is a client that asks for nothing", err);
	return r;
}

/* ---- the whole */

static int keep_control(struct live *l, weir_time now, struct weir_err *err)
{
	const struct pshift_cluster_config *g = l->s->cluster;
	bool gone = g->back > g->kill && now >= g->kill && now < g->back;

	if (!g->control)
		return 0;
	if (gone)
		peer_kill(&l->control.peer);
	return gone || l->control.peer.pid > 0 ? 0 : live_cluster_start_control(l, err);
}

static int run(struct cluster *k, const struct sim_options *o, struct weir_err *err)
{
	struct live *l = k->live;
	weir_time began = loop_clock(), now = 0;
	int r = 0;

	while (r == 0 && (now = loop_clock() - began) < l->s->duration) {
		r = keep_control(l, now, err);
		if (r == 0)
			r = step(k, now, err);
		if (r == 0)
			r = live_check(l, err);
		if (live_interrupted() ||
			(o->progress &&
				o->progress((double)now / (double)l->s->duration, o->progress_arg)))
			return weir_err_set(err, -ECANCELED, "stopped by a signal");
		if (r == 0)
			live_sleep_until(began + next_of(k, now));
	}
	if (r == 0) {
		r = pshift_judge_report(k->frame);
		if (r < 0)
			weir_err_set(err, r, "the values of the run: %s", strerror(-r));
	}
	return r;
}

static int seen_new(struct cluster *k)
{
	const struct pshift_cluster_config *g = &k->frame->config;

	k->seen = calloc(g->servers, sizeof(*k->seen));
	for (uint32_t s = 0; k->seen && s < g->servers; s++) {
		k->seen[s].used = calloc(g->buckets, sizeof(*k->seen[s].used));
		k->seen[s].done = calloc(g->buckets, sizeof(*k->seen[s].done));
		if (!k->seen[s].used || !k->seen[s].done)
			return -ENOMEM;
	}
	return k->seen ? 0 : -ENOMEM;
}

static void cluster_free(struct cluster *k)
{
	for (uint32_t s = 0; k->seen && s < k->frame->config.servers; s++) {
		free(k->seen[s].used);
		free(k->seen[s].done);
	}
	free(k->seen);
	if (k->frame)
		pshift_cluster_free(k->frame);
}

int live_cluster_run(struct live *l, const struct sim_options *o, struct weir_err *err)
{
	struct cluster k = {.live = l};
	int r = live_cluster_plan(l, err);

	if (r == 0) {
		r = pshift_cluster_new(l->s->cluster, l->s->duration, l->seed, &k.frame);
		if (r == 0)
			r = seen_new(&k);
		if (r < 0)
			weir_err_set(err, r, "the cluster: %s", strerror(-r));
	}
	if (r == 0)
		r = begin(&k, err);
	if (r == 0)
		r = run(&k, o, err);
	if (r == 0) {
		l->metrics = k.frame->metrics;
		k.frame->metrics = NULL;
	}
	cluster_free(&k);
	return r;
}
