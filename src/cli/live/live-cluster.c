/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-cluster: run a scenario's `cluster:` as servers with their controller (weir control) and
 * clients.
 *
 *   scenario                 live
 *   a server                 weir serve, its back end a model of a server of that capacity
 *   the controller           weir control; `kill` kills it by SIGKILL
 *   a bucket at a server     a job of weir load, of which there is one process per server
 *
 * METHOD  The simulator's own code generates the demand at each server, and its changes, from the
 *         same seed, and judges the result (sim/cluster/cluster.h): a struct sim_cluster
 *         is kept beside the processes, and the real servers' status replaces its simulated
 *         servers. The requests of a bucket in a period are those that its servers report for it,
 *         when the period is over for all of them.
 * DIFFERS Without a controller (`control: false`) periods are those of this process's clock, and
 *         counters are compared.
 */
#include "cli/live/live-cluster.h"
#include "base/arena.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATUS "/v1/status"
#define LOOK   (100 * WEIR_MS) /* between two status requests; or a fourth of a period */
#define START  (30 * WEIR_SEC) /* until everything runs, plus some periods */

struct cluster {
	struct live *live;
	struct sim_cluster *frame;
	struct arena memory;
	struct seen {          /* of one server */
		uint64_t last; /* the last period that is over for it */
		/* by bucket: used in it; without a controller: total served by then */
		int64_t *done;
		int64_t *served; /* … total */
	} * seen;
	uint64_t judged;                /* the last period that was judged */
	weir_time turned;               /* when the first server finished the next; 0: none has */
	weir_time before;               /* without a controller: start of the period */
	weir_time looked;               /* time of the last status */
	uint64_t messages[2], bytes[2]; /* of the running controller, in its last status */
};

/* ---- status */

static int bucket_of(const struct cluster *k, const json_t *tenant)
{
	const char *name = json_string_value(tenant);
	long i = name && name[0] == 'b' ? strtol(name + 1, NULL, 10) : 0;

	return i >= 1 && i <= (long)k->frame->config.buckets ? (int)i - 1 : -1;
}

/* Take from a server under control the last period that is over, and each bucket's use in it. */
static void take_leases(struct cluster *k, struct seen *s, const json_t *part)
{
	const json_t *leases = json_object_get(part, "leases");

	s->last = (uint64_t)json_integer_value(json_object_get(part, "last_period"));
	for (size_t i = 0; i < json_array_size(leases); i++) {
		const json_t *l = json_array_get(leases, i);
		int b = bucket_of(k, json_object_get(l, "tenant"));

		if (b >= 0)
			s->done[b] = json_integer_value(json_object_get(l, "last_used"));
	}
}

static void take_tenants(struct cluster *k, uint32_t server, const json_t *tenants)
{
	for (size_t i = 0; i < json_array_size(tenants); i++) {
		const json_t *t = json_array_get(tenants, i);
		int b = bucket_of(k, json_object_get(t, "path"));
		struct sim_place *p =
			b < 0 ? NULL : sim_cluster_place(k->frame, (uint32_t)b, server);

		if (!p)
			continue;
		p->arrived = (uint64_t)json_integer_value(json_object_get(t, "arrivals"));
		p->queued = (uint64_t)json_integer_value(json_object_get(t, "queued"));
		k->seen[server].served[b] = json_integer_value(json_object_get(t, "served"));
	}
}

/* Get the status of a server, and of its controller's part there. */
static int get_status(
	struct cluster *k, uint32_t i, json_t **ret, const json_t **ret_part, struct weir_err *err)
{
	const struct live_server *v = &k->live->servers[i];
	struct weir_err why;
	int r = remote_try(v->remote, "GET", STATUS, NULL, 0, ret, &why);

	if (r < 0)
		return weir_err_set(err, r, "the gateway of '%s': %s", v->name, why.text);
	*ret_part = json_object_get(
		json_array_get(json_object_get(*ret, "resources"), 0), k->frame->kind);
	return 0;
}

static int read_status(struct cluster *k, struct weir_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < k->frame->config.servers; i++) {
		const json_t *part;
		json_t *now;

		r = get_status(k, i, &now, &part, err);
		if (r < 0)
			break;
		take_tenants(k, i, json_object_get(now, "tenants"));
		if (k->frame->config.control)
			take_leases(k, &k->seen[i], part);
		json_decref(now);
	}
	return r;
}

/* Add the growth of a controller's counter to *total; after a restart the counter begins at 0. */
static void add_growth(const json_t *now, uint64_t *last, uint64_t *total)
{
	uint64_t n = (uint64_t)json_integer_value(now);

	*total += n >= *last ? n - *last : n;
	*last = n;
}

/* Read the counts of messages to and from the controller, if it answers. */
static void ask_control(struct cluster *k)
{
	struct sim_cluster *c = k->frame;
	const json_t *m;
	json_t *now;

	if (!c->config.control ||
		remote_try(k->live->control.remote, "GET", STATUS, NULL, 0, &now, NULL) < 0)
		return;
	m = json_object_get(now, "messages");
	add_growth(json_object_get(json_object_get(m, "received"), "taken"), &k->messages[0],
		&c->messages[0]);
	add_growth(json_object_get(m, "received_bytes"), &k->bytes[0], &c->bytes[0]);
	add_growth(json_object_get(m, "sent"), &k->messages[1], &c->messages[1]);
	add_growth(json_object_get(m, "sent_bytes"), &k->bytes[1], &c->bytes[1]);
	json_decref(now);
}

/* ---- periods */

/*
 * Add the requests served in the period to the places, and judge the period. `of`: only from
 * servers whose last period is this one; 0: from all.
 */
static int judge_period(struct cluster *k, uint64_t of)
{
	const struct sim_cluster_config *g = &k->frame->config;

	for (uint32_t s = 0; s < g->servers; s++)
		for (uint32_t b = 0; (!of || k->seen[s].last == of) && b < g->buckets; b++) {
			uint64_t done = (uint64_t)k->seen[s].done[b];
			struct sim_place *p;

			if (!done)
				continue;
			p = sim_cluster_place(k->frame, b, s);
			if (!p)
				return -ENOMEM;
			p->served += done;
			k->frame->served += done;
		}
	ask_control(k);
	return sim_judge_period(k->frame);
}

/*
 * With a controller: judge a period when it is over for all servers, or has been over for the first
 * for half a period (a slower server then does not report on it).
 */
static int judge_leased(struct cluster *k, weir_time now)
{
	const struct sim_cluster_config *g = &k->frame->config;
	uint64_t last = 0;
	uint32_t n = 0;

	for (uint32_t s = 0; s < g->servers; s++)
		last = k->seen[s].last > last ? k->seen[s].last : last;
	for (uint32_t s = 0; s < g->servers; s++)
		n += k->seen[s].last == last;
	if (!k->judged)
		k->judged = last; /* it was over before the run began */
	if (last <= k->judged)
		return 0;
	if (!k->turned)
		k->turned = now;
	if (n < g->servers && now - k->turned < g->period / 2)
		return 0;
	k->judged = last;
	k->turned = 0;
	return judge_period(k, last);
}

/* Without a controller: judge a period by the clock. */
static int judge_by_clock(struct cluster *k, weir_time now)
{
	const struct sim_cluster_config *g = &k->frame->config;
	int r = 0;

	if (now - k->before < g->period)
		return 0;
	k->before += g->period;
	for (uint32_t s = 0; s < g->servers; s++)
		for (uint32_t b = 0; b < g->buckets; b++)
			k->seen[s].done[b] = k->seen[s].served[b] - k->seen[s].done[b];
	r = judge_period(k, 0);
	for (uint32_t s = 0; s < g->servers; s++)
		memcpy(k->seen[s].done, k->seen[s].served, g->buckets * sizeof(*k->seen[s].done));
	return r;
}

/* Start or kill the controller, as the scenario says. */
static int keep_control(struct cluster *k, weir_time now, struct weir_err *err)
{
	const struct sim_cluster_config *g = &k->frame->config;
	bool gone = g->back > g->kill && now >= g->kill && now < g->back;

	if (!g->control)
		return 0;
	if (gone)
		live_server_kill(&k->live->control);
	return gone || k->live->control.peer.pid > 0
		       ? 0
		       : live_server_start(k->live, &k->live->control, err);
}

static int cluster_step(void *arg, weir_time now, weir_time *ret_next, struct weir_err *err)
{
	struct cluster *k = arg;
	struct sim_cluster *c = k->frame;
	weir_time period = c->config.period;
	int r = keep_control(k, now, err);

	*ret_next = c->config.control ? now + (period / 4 < LOOK ? period / 4 : LOOK)
				      : k->before + period;
	if (r < 0 || (!c->config.control && k->looked && now < *ret_next))
		return r;
	/* A place with demand has had it since the last status. */
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t i = 0; i < c->servers[s].n; i++)
			if (c->servers[s].places[i].loop)
				c->servers[s].places[i].open += now - k->looked;
	k->looked = now;
	c->now = now;
	r = sim_load_step(c);
	if (r < 0)
		return weir_err_set(err, r, "the cluster's demand: %s", strerror(-r));
	r = read_status(k, err);
	if (r < 0)
		return r;
	r = c->config.control ? judge_leased(k, now) : judge_by_clock(k, now);
	return r < 0 ? weir_err_set(err, r, "a period: %s", strerror(-r)) : 0;
}

/* ---- the start */

/*
 * Return true if a server holds a lease, and may serve every bucket: a server that starts does not
 * know what was served before, and has no tokens for some periods.
 */
static bool is_ready(const json_t *part)
{
	const json_t *leases = json_object_get(part, "leases");
	const char *state = json_string_value(json_object_get(part, "state"));

	if (!state || strcmp(state, "leased") != 0)
		return false;
	for (size_t i = 0; i < json_array_size(leases); i++) {
		const json_t *cap = json_object_get(json_array_get(leases, i), "cap");

		if (json_is_integer(cap) && json_integer_value(cap) == 0)
			return false;
	}
	return true;
}

/* A live_condition. Without a controller servers are ready at once. */
static int all_ready(void *arg, struct weir_err *err)
{
	struct cluster *k = arg;
	int ready = 1;

	for (uint32_t i = 0; k->frame->config.control && i < k->frame->config.servers; i++) {
		const json_t *part;
		json_t *now;
		int r = get_status(k, i, &now, &part, err);

		if (r < 0)
			return r;
		ready &= is_ready(part);
		json_decref(now);
	}
	return ready;
}

static int all_asked(void *arg, struct weir_err *err)
{
	struct cluster *k = arg;
	const struct sim_cluster *c = k->frame;
	int r = read_status(k, err);

	if (r < 0)
		return r;
	for (uint32_t s = 0; s < c->config.servers; s++)
		for (size_t i = 0; i < c->servers[s].n; i++)
			if ((c->servers[s].places[i].loop || c->servers[s].places[i].rate > 1) &&
				!c->servers[s].places[i].arrived)
				return 0;
	return 1;
}

/* ---- the run */

static int run_cluster(struct cluster *k, const struct sim_options *o, struct weir_err *err)
{
	struct live *l = k->live;
	weir_time limit = START + 10 * k->frame->config.period;
	int r = k->frame->config.control ? live_server_start(l, &l->control, err) : 0;

	for (size_t i = 0; r == 0 && i < l->n_servers; i++)
		r = live_server_start(l, &l->servers[i], err);
	if (r == 0)
		r = live_wait(l, all_ready, k, limit,
			"the controller grants no tokens to the servers", err);
	if (r == 0)
		r = live_cluster_start_clients(l, err);
	if (r == 0)
		r = live_wait(l, all_asked, k, limit, "a client sends no requests", err);
	if (r == 0)
		r = live_steps(l, o, cluster_step, k, err);
	if (r == 0) {
		r = sim_judge_report(k->frame);
		if (r < 0)
			weir_err_set(err, r, "the values of the run: %s", strerror(-r));
	}
	return r;
}

static int seen_new(struct cluster *k)
{
	const struct sim_cluster_config *g = &k->frame->config;

	k->seen = arena_take(&k->memory, g->servers, sizeof(*k->seen));
	for (uint32_t s = 0; k->seen && s < g->servers; s++) {
		k->seen[s].done = arena_take(&k->memory, g->buckets, sizeof(int64_t));
		k->seen[s].served = arena_take(&k->memory, g->buckets, sizeof(int64_t));
	}
	return k->memory.failed ? -ENOMEM : 0;
}

/*
 * Return the rate of a server on this machine, requests a second: low enough that a server that
 * waits for a core for some milliseconds has work inside its model for that time; high enough that
 * a hundredth of a reservation is a request or more.
 */
static double rate_of(const struct sim_cluster_config *g)
{
	double seconds = (double)g->period / (double)WEIR_SEC;
	double part = g->reservation / g->capacity; /* 0: reservations differ */
	double rate = part > 0 ? LIVE_CLUSTER_TOKENS / (part * seconds) : LIVE_CLUSTER_MOST;

	return fmin(fmax(rate, LIVE_CLUSTER_LEAST), LIVE_CLUSTER_MOST);
}

int live_cluster_run(struct live *l, const struct sim_options *o, struct weir_err *err)
{
	struct sim_cluster_config config = *l->s->cluster;
	double scale = config.capacity / rate_of(&config);
	struct cluster k = {.live = l};
	int r;

	scale = scale > 1 ? scale : 1;
	config.capacity /= scale;
	config.reservation /= scale;
	r = live_cluster_plan(l, &config, err);
	if (r == 0) {
		r = sim_cluster_new(&config, l->s->duration, l->seed, &k.frame);
		if (r == 0)
			r = seen_new(&k);
		if (r == 0)
			k.frame->scale = scale;
		if (r < 0)
			weir_err_set(err, r, "the cluster: %s", strerror(-r));
	}
	if (r == 0)
		r = run_cluster(&k, o, err);
	if (r == 0) {
		l->metrics = k.frame->metrics;
		k.frame->metrics = NULL;
	}
	arena_free(&k.memory);
	if (k.frame)
		sim_cluster_free(k.frame);
	return r;
}
