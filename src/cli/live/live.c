/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live: the processes of a live run, and its events.
 *
 * METHOD  Every event has a time of the run: samples, the warm-up's end, clients that start or stop,
 *         changes. The run's time begins when all gateways listen and all clients that start at time
 *         0 have sent a request: the time that they need to start is not part of the scenario.
 *         Between two events the run sleeps, a tenth of a second at most, and checks that all
 *         processes are alive.
 */
#include "cli/live/live.h"
#include "serve/loop/loop.h"
#include "cli/live/live-impl.h"
#include "cli/live/live-network.h"
#include "base/lesser.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BEAT  (100 * WEIR_MS)
#define ASKED (20 * WEIR_MS) /* between checks whether clients have begun: the error of time 0 */
/* Time limit for clients to begin; some hundred milliseconds are usual. */
#define START     (30 * WEIR_SEC)
#define FIRST     (-20) /* of setpriority(2): the highest */
#define AUTOGROUP "/proc/self/autogroup"

static const struct verb verb = {.name = "experiment"}; /* for messages */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = 1;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof(signals) / sizeof(*signals))

/* ---- processes */

int live_server_start(struct live *l, struct live_server *v, struct weir_err *err)
{
	const char *const serve[] = {"weir", "serve", "--lab", v->file, NULL};
	const char *const control[] = {"weir", "control", v->file, NULL};
	struct weir_err why;
	int r = peer_start(
		&v->peer, v == &l->control ? control : serve, -1, v->socket, v->log, &why);

	if (r < 0)
		return weir_err_set(err, r, "the process of '%s': %s", v->name, why.text);
	if (!v->remote && remote_open(&verb, v->api, NULL, NULL, NULL, &v->remote) >= 0)
		return weir_err_set(err, -EIO, "the API of '%s' cannot be reached", v->name);
	v->down = false;
	json_decref(v->begin); /* of an earlier process: counters of this one begin at 0 */
	json_decref(v->last);
	v->begin = v->last = NULL;
	return 0;
}

void live_server_kill(struct live_server *v)
{
	v->down = true;
	peer_kill(&v->peer);
}

static void stop_all(struct live *l)
{
	for (size_t i = 0; i < l->n_clients; i++)
		peer_kill(&l->clients[i].peer); /* requests under way do not matter */
	remote_close(l->control.remote);
	peer_kill(&l->control.peer);
	for (size_t i = 0; i < l->n_servers; i++) {
		remote_close(l->servers[i].remote);
		peer_signal(&l->servers[i].peer, SIGTERM);
	}
	for (size_t i = l->n_servers; i-- > 0;) /* hosts before their devices */
		peer_stop(&l->servers[i].peer);
}

static int fail_died(
	const char *what, const char *name, const char *log, int status, struct weir_err *err)
{
	char said[250], how[40];

	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "by signal %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "with status %d", WEXITSTATUS(status));
	return weir_err_set(err, -ECHILD, "%s '%s' ended %s: %s", what, name, how,
		peer_said(log, said, sizeof(said)));
}

/* Fail if a process has ended. */
static int check_all(struct live *l, struct weir_err *err)
{
	int status = 0;

	if (peer_ended(&l->control.peer, &status))
		return fail_died("the process of", l->control.name, l->control.log, status, err);
	for (size_t i = 0; i < l->n_servers; i++)
		if (peer_ended(&l->servers[i].peer, &status))
			return fail_died("the gateway of", l->servers[i].name, l->servers[i].log,
				status, err);
	for (size_t i = 0; i < l->n_clients; i++) {
		struct live_client *c = &l->clients[i];

		if (!peer_ended(&c->peer, &status))
			continue;
		/* A trace that is over ends its client. */
		if (c->state == LIVE_RUNS && *c->trace && status == 0)
			c->held = true;
		else if (c->state == LIVE_RUNS)
			return fail_died("the client", c->name, c->log, status, err);
		c->state = LIVE_WAITS; /* a change may start it again */
	}
	return 0;
}

/* ---- time */

struct clock {
	struct live *l;
	weir_time sample; /* the next */
	bool warm;
	size_t moment; /* the next */
};

/* Sleep until a time by loop_clock, or until a signal. */
static void sleep_until(weir_time at)
{
	struct timespec until = {.tv_sec = at / WEIR_SEC, .tv_nsec = at % WEIR_SEC};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int live_wait(struct live *l, live_condition *is, void *arg, weir_time limit, const char *late,
	struct weir_err *err)
{
	weir_time until = loop_clock() + limit;
	int r = 0;

	while (r == 0 && !interrupted) {
		r = check_all(l, err);
		if (r == 0)
			r = is(arg, err);
		if (r == 0 && loop_clock() > until)
			return weir_err_set(err, -ETIMEDOUT, "%s", late);
		if (r == 0)
			sleep_until(loop_clock() + ASKED);
	}
	return r < 0 ? r : r == 0 ? -ECANCELED : 0;
}

int live_steps(struct live *l, const struct sim_options *o, live_step *step, void *arg,
	struct weir_err *err)
{
	weir_time began = loop_clock(), now = 0, next = 0, duration = l->s->duration;
	int r = 0;

	while (r == 0 && (now = loop_clock() - began) < duration) {
		r = step(arg, now, &next, err);
		if (r == 0 && !interrupted)
			r = check_all(l, err);
		if (interrupted || (o->progress && o->progress((double)now / (double)duration,
							   o->progress_arg)))
			return weir_err_set(err, -ECANCELED, "stopped by a signal");
		if (r == 0)
			sleep_until(began +
				    lesser(lesser(next, duration), loop_clock() - began + BEAT));
	}
	return r ? r : check_all(l, err);
}

static weir_time next_fault(const struct live *l)
{
	return l->next_fault < l->network.n_faults ? l->network.faults[l->next_fault].at
						   : WEIR_NEVER;
}

/* Return the time of the next event. */
static weir_time next_event(const struct clock *k, weir_time now)
{
	const struct live *l = k->l;
	weir_time next = lesser(lesser(k->sample, l->s->duration), next_fault(l));

	if (!k->warm)
		next = lesser(next, l->s->warmup);
	if (k->moment < l->s->n_moments)
		next = lesser(next, l->s->moments[k->moment].time);
	for (size_t i = 0; i < l->n_clients; i++) {
		const struct live_client *c = &l->clients[i];

		if (c->state == LIVE_WAITS && !c->held && now < c->stop)
			next = lesser(next, c->start);
		if (c->state == LIVE_RUNS)
			next = lesser(next, c->stop);
	}
	return next;
}

static int switch_clients(struct live *l, weir_time now, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_clients; i++) {
		struct live_client *c = &l->clients[i];

		if (c->stop <= now)
			live_client_end(c);
		else if (c->state == LIVE_WAITS && !c->held && c->start <= now)
			r = live_client_start(l, c, err);
	}
	return r;
}

static void hold_clients(struct live *l, size_t server, bool hold)
{
	for (size_t i = 0; i < l->n_clients; i++) {
		struct live_client *c = &l->clients[i];

		if (c->tenant->server != server)
			continue;
		if (hold)
			peer_kill(&c->peer);
		c->state = LIVE_WAITS;
		c->held = hold;
	}
}

/* Begin and end crashes that are due. */
static int switch_faults(struct live *l, weir_time now, struct weir_err *err)
{
	int r = 0;

	for (; r == 0 && next_fault(l) <= now; l->next_fault++) {
		const struct hosts_fault *f = &l->network.faults[l->next_fault];
		struct live_server *v = &l->servers[l->host_server[f->host]];

		if (f->ends)
			r = live_server_start(l, v, err);
		hold_clients(l, (size_t)l->host_server[f->host], !f->ends);
		if (!f->ends)
			live_server_kill(v);
	}
	return r;
}

/* Handle all events that are due. */
static int handle_events(void *arg, weir_time now, weir_time *ret_next, struct weir_err *err)
{
	struct clock *k = arg;
	struct live *l = k->l;
	const struct scenario *s = l->s;
	int r = switch_faults(l, now, err);

	while (r == 0 && k->moment < s->n_moments && s->moments[k->moment].time <= now)
		r = live_change(l, &s->moments[k->moment++], err);
	if (r == 0)
		r = switch_clients(l, now, err);
	if (r == 0 && !k->warm && s->warmup <= now) {
		if (s->warmup)
			r = live_look_sample(l, s->warmup, err);
		live_look_begin(l);
		k->warm = true;
	}
	if (r == 0 && k->sample <= now && k->sample < s->duration) {
		if (k->sample != s->warmup)
			r = live_look_sample(l, k->sample, err);
		/* A reading that took longer than a sample skips the next. */
		while (k->sample <= now)
			k->sample += s->sample;
	}
	*ret_next = next_event(k, now);
	return r;
}

static int run_loop(struct live *l, const struct sim_options *o, struct weir_err *err)
{
	const struct scenario *s = l->s;
	struct clock k = {.l = l, .sample = s->sample ? s->sample : WEIR_NEVER};
	int r = switch_clients(l, 0, err);

	if (r == 0)
		r = live_wait(l, live_look_asked, l, START,
			"after 30 s a client has not sent a request", err);
	if (r == 0)
		r = live_look_sample(l, 0, err); /* the first counters */
	if (r == 0)
		r = live_steps(l, o, handle_events, &k, err);
	if (r == 0)
		r = live_look_sample(l, s->duration, err);
	return r ? r : live_look_end(l, err);
}

/* ---- the run */

/*
 * On a busy machine processes wait for a core for many milliseconds, which no array does. So the
 * processes of a run, which together use a part of a core, get the highest priority if permitted
 * (root). Linux has two priorities: of the process, which children inherit, and of its session
 * among the sessions (sched(7), autogroups).
 */
struct priority {
	int process, session;
	bool grouped; /* the system has autogroups */
};

static void set_priority(const struct priority *p)
{
	FILE *f = p->grouped ? fopen(AUTOGROUP, "we") : NULL;

	(void)setpriority(PRIO_PROCESS, 0, p->process); /* if not permitted, nothing changes */
	if (!f)
		return;
	fprintf(f, "%d", p->session);
	fclose(f);
}

/* Raise the priority; return the previous one. */
static struct priority raise_priority(void)
{
	struct priority before = {.process = getpriority(PRIO_PROCESS, 0)}, first;
	FILE *f = fopen(AUTOGROUP, "re");
	char line[64], *nice = f && fgets(line, sizeof(line), f) ? strstr(line, " nice ") : NULL;

	if (f)
		fclose(f);
	before.grouped = nice != NULL;
	before.session = nice ? (int)strtol(nice + strlen(" nice "), NULL, 10) : 0;
	first = (struct priority){.process = FIRST, .session = FIRST, .grouped = before.grouped};
	set_priority(&first);
	return before;
}

static int run_scenario(struct live *l, const struct sim_options *o, struct weir_err *err)
{
	int r = live_plan(l, err);

	if (r == 0) {
		r = live_look_new(l);
		if (r < 0)
			weir_err_set(err, r, "the series: %s", strerror(-r));
	}
	for (size_t i = 0; r == 0 && !interrupted && i < l->n_servers; i++)
		r = live_server_start(l, &l->servers[i], err);
	return r ? r : run_loop(l, o, err);
}

int live_run(const struct scenario *s, const struct sim_options *options, struct metrics **ret,
	struct sim_cost *ret_cost, struct weir_err *err)
{
	struct live l = {.s = s, .seed = options->seed_set ? options->seed : s->seed};
	struct sigaction act = {.sa_handler = on_signal}, before[N_SIGNALS];
	struct priority priority;
	int r;

	interrupted = 0;
	r = files_make_scratch("live", l.dir, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &act, &before[i]);
	priority = raise_priority();
	r = s->cluster   ? live_cluster_run(&l, options, err)
	    : s->network ? live_network_run(&l, options, err)
			 : run_scenario(&l, options, err);
	/* A signal to the whole group also ends children: that is not a failure of theirs. */
	if (r < 0 && interrupted)
		r = weir_err_set(err, -ECANCELED, "stopped by a signal");
	stop_all(&l);
	set_priority(&priority);
	live_relay_free(l.relay);
	if (r == 0) {
		*ret_cost = (struct sim_cost){0};
		*ret = l.metrics;
		l.metrics = NULL;
	}
	live_look_free(&l);
	live_plan_free(&l);
	files_remove_scratch(l.dir);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	return r;
}
